"""SIGKILL at each system call that makes something durable: what was acknowledged is there, the
store is sound."""

from __future__ import annotations

import itertools
import re
import shutil
import signal
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.daemon.harness import Daemon
from tests.daemon.hostile.scenario import CONFIG, carry_out, operations
from tests.daemon.hostile.tools import all_jobs, check, needs_strace
from tests.harness import NIGHTLY

SAMPLED = {
    "fdatasync": 19,
    "pwrite64": 89,
    "pwrite64 committed": 21,
    "fsync": 5,
    "rename": 5,
    "unlink": 5,
    "write": 25,
}
"""System calls, the second word a file; by default one in so many of each is a point.  strace
counts by thread: the file separates what the event loop writes from what the thread of the database
writes."""

FAILING = {
    "fdatasync": 92,
    "pwrite64": 542,
    "fsync": 28,
    "rename": 28,
    "unlink": 28,
    "write": 182,
    "pread64 qbatch.db": 28,
    "openat qbatch.db": 16,
    "openat committed": 16,
}
"""Those that a disk fails at, and one in how many of each is a point."""

WRITING = ("fdatasync", "pwrite64", "fsync", "rename", "write")
"""Those that a full disk fails at."""

pytestmark = needs_strace


def verify(daemon: Daemon, said: list[tuple[str, str, str]]) -> list[str]:
    """Return what was acknowledged and is not there."""
    found = all_jobs(daemon, subjobs=True)
    whole = all_jobs(daemon)
    done = {name: detail for what, name, detail in said if what == "done"}
    problems = [
        f"{name}: job {job} is not there" for name, job in done.items() if job and job not in whole
    ]
    if "hold three" in done and "release three" not in {name for _, name, _ in said}:
        problems += [] if whole["3.qbatch"].hold != "n" else ["the hold of 3 is gone"]
    if "delete" in done and whole["2.qbatch"].state != "F":
        problems.append("the deletion of 2 is gone")
    if "alter" in done and whole["3.qbatch"].name != "renamed":
        problems.append("the new name of 3 is gone")
    if "delete subjob" in done and found["4[3].qbatch"].state not in "FX":
        problems.append("the deletion of 4[3] is gone")
    if "not refused" in done and whole[done["not refused"]].name != "refused-not":
        problems.append("a job that was accepted after a fault is gone")
    asked = {name for what, name, _ in said if what == "asked"}
    names = {job.name for job in whole.values()}
    problems += [
        f"{name} is there, but no client asked for it"
        for name in names & {"last", "big", "many"}
        if name not in asked
    ]
    return problems


def crash_at(
    directory: Path, call: str, number: int, what: str = "signal=SIGKILL"
) -> tuple[bool, list[str]]:
    """Run the scenario with SIGKILL, or ``what`` strace injects, at the ``number``-th call; return
    whether it struck, and what is wrong after it."""
    name, _, file = call.partition(" ")
    options = ("-e", f"trace={name}", "-e", f"inject={name}:{what}:when={number}")
    has_struck, problems = lived(directory, options, file)
    return has_struck, [f"{call} {number} {what}: {problem}" for problem in problems]


def lived(directory: Path, options: tuple[str, ...], file: str = "") -> tuple[bool, list[str]]:
    """Run the scenario under strace; return whether it struck, and what is wrong after it."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(mode=0o700)
    daemon = Daemon(directory, "--time", "virtual", "--paused", config=CONFIG)
    wrap = ("strace", "-f", "-qq", "-o", str(directory / "strace"), *options)
    if file:
        daemon.state.mkdir(mode=0o700)
        wrap += ("-P", str(daemon.state / file))
    daemon.start(wrap=wrap, wait=False)
    said: list[tuple[str, str, str]] = []
    try:
        daemon.wait_until_up()
        said = carry_out(daemon.socket, operations(str(directory / "copy")))
    except AssertionError:
        pass
    assert daemon.process is not None
    code = daemon.process.wait(60)
    log = daemon.log()
    has_struck = code != 0 or "(INJECTED)" in (directory / "strace").read_text(
        encoding="utf-8", errors="replace"
    )
    tracebacks = ["a traceback in the log: " + log[-1500:]] if "Traceback" in log else []
    if code not in (0, 74, -9):
        tracebacks.append(f"exit code {code}: {log[-1500:]}")
    try:
        daemon.start()
        problems = verify(daemon, said)
        if "integrity ok" not in check(daemon):
            problems.append("the check is not clean")
        daemon.kill(signal.SIGTERM)
    except Exception as error:
        problems = [f"{type(error).__name__}: {str(error)[-1500:]}"]
        if daemon.process is not None and daemon.process.poll() is None:
            daemon.kill()
    return has_struck, tracebacks + problems


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> Counter[str]:
    """Return how often one thread makes each call where nothing strikes."""
    directory = tmp_path_factory.mktemp("calls") / "daemon"
    names = {call.partition(" ")[0] for call in [*SAMPLED, *FAILING]}
    assert lived(directory, ("-y", "-s", "200", "-e", f"trace={','.join(names)}")) == (False, [])
    by_thread: Counter[tuple[str, str]] = Counter()
    for line in (directory / "strace").read_text(encoding="utf-8", errors="replace").splitlines():
        thread, _, rest = line.partition(" ")
        name, _, given = rest.strip().partition("(")
        by_thread[thread, name] += 1
        for file in ("qbatch.db", "committed"):
            by_thread[thread, f"{name} {file}"] += (
                re.search(f'/state/{re.escape(file)}[>"]', given) is not None
            )
    most: Counter[str] = Counter()
    for (_, call), count in by_thread.items():
        most[call] = max(most[call], count)
    return most


def struck(
    directory: Path, call: str, points: Iterable[int], what: str = "signal=SIGKILL"
) -> tuple[int, list[str]]:
    """Strike at one point after the other, until one is not reached; return how many were, and what
    is wrong."""
    count = 0
    problems: list[str] = []
    for number in points:
        has_struck, found = crash_at(directory, call, number, what)
        problems += found
        if not has_struck:
            break
        count += 1
    return count, problems


def points_of(calls: Counter[str], call: str, first: int, step: int) -> Iterable[int]:
    """Return the calls to strike at: some of those that are made, at night all."""
    return itertools.count(first) if NIGHTLY else range(first, calls[call] + 1, step)


@pytest.mark.parametrize("call", SAMPLED)
def test_a_crash_at_any_durable_call_loses_nothing(
    tmp_path: Path, call: str, calls: Counter[str]
) -> None:
    points, problems = struck(tmp_path / "daemon", call, points_of(calls, call, 1, SAMPLED[call]))
    print(f"{call}: {points} points, {len(problems)} bad")
    assert points > 0
    assert problems == []


@pytest.mark.parametrize("error", ["EIO", "ENOSPC"])
def test_a_disk_that_fails_at_any_call_costs_one_line_and_loses_nothing(
    tmp_path: Path, error: str, calls: Counter[str]
) -> None:
    problems: list[str] = []
    points = 0
    for call, step in FAILING.items():
        if error == "ENOSPC" and call not in WRITING and not NIGHTLY:
            continue
        # The two errors strike in turn.
        first = 2 if NIGHTLY or error == "EIO" else max(2, calls[call] // 2)
        count, found = struck(
            tmp_path / "daemon", call, points_of(calls, call, first, step), f"error={error}"
        )
        points += count
        problems += found
    print(f"{error}: {points} points, {len(problems)} bad")
    assert points > 3
    assert problems == []
