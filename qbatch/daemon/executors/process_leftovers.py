"""What a lost supervisor leaves behind, and directories that nobody wants any more: found, killed, removed.

A process is killed only where it certainly belongs to the attempt: it is in the attempt's control group, or it
carries the attempt's token in its environment, or it descends from one that does, or its session is led by the script
itself (number and start agree).  These functions wait; they run on a thread of their own.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from .process_directory import TOKEN, Alive, DirectoryClaim, Gone, Over, RunDirectory, StartRecord, Unclaimed
from .supervision import files, leaf, processes

PATIENCE = 5.0
STOP_PATIENCE = 3.0
TICK = 0.02


def kill_leftovers(directory: RunDirectory, claim: DirectoryClaim | None) -> bool:
    """Kill what a lost attempt left running; True where nothing of it is left that we know of."""
    if claim is None or claim.boot != processes.boot_id():
        return True  # the script was never started, or all died with the machine
    started, group = directory.started_record(), _leaf_of(directory, claim)
    deadline = time.monotonic() + PATIENCE
    while True:
        found = _find(claim, started, group)
        if not found:
            # What was just killed may be on its way out for a moment longer.
            while group and not leaf.remove_leaf(group) and time.monotonic() < deadline:
                time.sleep(TICK)
            return True
        if time.monotonic() > deadline:
            return False
        if group:
            leaf.kill_leaf(group)
        processes.kill_all(lambda: _find(claim, started, group))
        time.sleep(TICK)


def discard(path: Path, key: str) -> bool:
    """End what runs in a directory that was given up, and remove it; True where nothing is left."""
    directory = RunDirectory(path, key)
    deadline = time.monotonic() + STOP_PATIENCE
    try:
        if isinstance(directory.look(), Unclaimed):
            directory.fence()
        if isinstance(directory.look(), Alive):
            directory.tell("stop 0")
        while isinstance(situation := directory.look(), Alive) and time.monotonic() < deadline:
            time.sleep(TICK)
        # The token is in the environment of the supervisor too, so that a deaf one is killed with the rest.
        if not isinstance(situation, Over):
            kill_leftovers(directory, situation.claim if isinstance(situation, Alive | Gone) else None)
    except OSError:
        pass  # not even a directory, or not ours: remove what can be removed
    return files.remove_tree(str(path))


def _find(claim: DirectoryClaim, started: StartRecord | None, group: str) -> dict[int, int]:
    found = processes.marked(claim.token) if TOKEN.fullmatch(claim.token) else {}
    if started is not None and started.start is not None and processes.start_of(started.pid) == started.start:
        for pid in processes.every_process():
            stat = processes.read_stat(pid)
            if stat is not None and stat[2] == started.pid and stat[0] not in "ZX":
                found[pid] = stat[3]
    if found:
        found |= processes.descendants(set(found))
    if group:
        found |= _members(group)
    found.pop(os.getpid(), None)
    return found


def _leaf_of(directory: RunDirectory, claim: DirectoryClaim) -> str:
    """The control group of the attempt, if the record names one that can be no other's."""
    is_ours = claim.leaf.rpartition("/")[2] == f"qbatch-{directory.key}-{claim.token[:8]}"
    return claim.leaf if is_ours and TOKEN.fullmatch(claim.token) and Path(claim.leaf, "cgroup.kill").exists() else ""


def _members(group: str) -> dict[int, int]:
    result = {}
    for place, _, names in os.walk(group):
        if "cgroup.procs" in names:
            try:
                lines = Path(place, "cgroup.procs").read_text(encoding="ascii").split()
            except OSError:  # removed meanwhile
                continue
            for pid in map(int, lines):
                stat = processes.read_stat(pid)
                if stat is not None and stat[0] not in "ZX":
                    result[pid] = stat[3]
    return result
