"""A run directory as the executor sees it: what became of an attempt, from its files alone.

The supervisor's side is in ``supervision``; ``supervision.files`` lists the files.  Whatever a file
contains, nothing here raises anything but OSError: a damaged record is a `Gone`.

The module also kills and removes what a lost supervisor leaves behind.  It kills a process only if
that certainly belongs to the attempt.  The process is in the attempt's control group, or carries
the attempt's token in its environment, or descends from one that does, or the script itself leads
its session (number and start agree).
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from .attempt import Attempt, Ended
from .supervision import files, outputs, processes

GONE_PREFIX = ".gone-"
"""A directory that is being removed is called by this, its key, ``~`` and random letters."""

PATIENCE = 5.0
STOP_PATIENCE = 3.0
TICK = 0.02
KEY = re.compile(r"[0-9][0-9.\-]{0,99}")
TOKEN = re.compile(r"[0-9a-f]{32}")
_Record = TypeVar("_Record")


def is_key(text: str) -> bool:
    """Return whether a text can be the key of an attempt."""
    return KEY.fullmatch(text) is not None


def check_key(key: str) -> str:
    """Return the key; raise ValueError if it contains anything but digits, '-' and '.'."""
    if not is_key(key):
        raise ValueError(f"not the key of an attempt: {key!r}")
    return key


def now() -> int:
    """Return the present, in microseconds since 1970."""
    return time.time_ns() // 1000


class DirectoryClaim(msgspec.Struct, frozen=True):
    """What decided the fate of an attempt: a supervisor (process number, start, boot), or the
    executor (pid 0)."""

    pid: int = 0
    start: int | None = None
    boot: str = ""
    token: str = ""
    leaf: str = ""


class _ExitRecord(msgspec.Struct, frozen=True):
    """How an attempt ended, as its supervisor writes it."""

    status: int
    at: int
    why: str = ""
    used: dict[str, float] = {}
    session: int = 0
    started: int = 0
    undelivered: str = ""


class StartRecord(msgspec.Struct, frozen=True):
    """The process of the script of an attempt."""

    pid: int
    session: int
    at: int
    start: int | None = None


class Alive(msgspec.Struct, frozen=True):
    """A supervisor holds the attempt; its claim, or None while that is being written."""

    claim: DirectoryClaim | None


class Gone(msgspec.Struct, frozen=True):
    """The supervisor is lost; what the script did is not known."""

    claim: DirectoryClaim | None
    why: str


class RunDirectory:
    """The directory of one attempt; its name gives the ``key``."""

    def __init__(self, path: Path) -> None:
        self.path, self.key = path, path.name.removeprefix(GONE_PREFIX).partition("~")[0]

    def prepare(self, attempt: Attempt) -> None:
        """Make the directory and write the attempt down, unless that is done."""
        with contextlib.suppress(FileExistsError):
            self.path.mkdir(mode=0o700)
        text = msgspec.json.encode(attempt)
        spec = self.path / files.SPEC
        with contextlib.suppress(FileNotFoundError):
            if spec.read_bytes() == text:
                return
        temporary = self.path / f"{files.SPEC}.tmp"
        files.write(str(temporary), text, None, os.O_CREAT | os.O_TRUNC)
        temporary.rename(spec)

    def look(self) -> Ended | Alive | Gone | None:
        """Return what became of the attempt, None if no supervisor has claimed it."""
        over = self._exit()
        if over is not None:
            return over
        text = self._read(files.CLAIM)
        if text is None:
            return None
        claim = _decoded(text, DirectoryClaim)
        with self._opened() as directory:
            lock = files.take_lock(directory, 0.0)
        if lock is None:
            return Alive(claim)
        os.close(lock)
        # A supervisor writes the record before it gives up the lock: it may have been written
        # between our two looks.
        if (over := self._exit()) is not None:
            return over
        if claim is None:
            why = "the supervisor was lost while it claimed the attempt"
        elif claim.boot != processes.boot_id():
            why = "the machine was restarted while the job ran"
        else:
            words = self.last_words()
            why = "the supervisor was lost" + (f": {words}" if words else "")
        return Gone(claim, why)

    def _exit(self) -> Ended | Gone | None:
        text = self._read(files.EXIT)
        if text is None:
            return None
        try:
            record = msgspec.json.decode(text, type=_ExitRecord)
            return Ended(
                self.key, record.status, record.at, record.why, record.used, record.undelivered
            )
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return Gone(
                _decoded(self._read(files.CLAIM), DirectoryClaim),
                f"{files.EXIT} is damaged: {error}",
            )

    def started(self) -> StartRecord | None:
        """Return the process of the script, if its start is on record."""
        return _decoded(self._read(files.STARTED), StartRecord)

    def used(self) -> dict[str, float]:
        """Return what the attempt had used when its supervisor last looked."""
        try:
            return _decoded(self._read(files.USED), dict[str, float]) or {}
        except OSError:
            return {}

    def last_words(self) -> str:
        """Return the last line that a supervisor wrote to its log."""
        text = (self._read(files.LOG) or b"").decode("utf-8", "replace").strip()
        return text.rpartition("\n")[2]

    def fence(self) -> bool:
        """Take the claim, so that no supervisor can start the attempt any more; return False if one
        has it."""
        with self._opened() as directory:
            return files.make_claim(
                directory, {"pid": 0, "boot": processes.boot_id(), "token": "", "leaf": ""}
            )

    def send(self, line: str) -> bool:
        """Append a line to the control file and wake the supervisor; return False if there is no
        such directory."""
        flags = os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
        try:
            files.write(f"{self.path}/{files.CONTROL}", f"{line}\n".encode("ascii"), None, flags)
        except FileNotFoundError:
            return False
        # The FIFO may have no reader: no supervisor yet (it reads the control file when it comes),
        # or none any more.
        files.write_if_possible(f"{self.path}/{files.WAKE}", b"\0", None, os.O_NONBLOCK)
        return True

    def deliver(self) -> str:
        """Deliver what a lost attempt has written; return which files could not be delivered, and
        why."""
        with contextlib.suppress(OSError):
            attempt = _decoded(self._read(files.SPEC), Attempt)
            if attempt is not None:
                targets = outputs.targets_of(
                    attempt.output, attempt.error, attempt.join, attempt.direct
                )
                with self._opened() as directory:
                    return outputs.deliver(targets, directory, self.key, attempt.job_id)
        return ""

    def record_exit(
        self, status: int, why: str, undelivered: str = "", used: dict[str, float] | None = None
    ) -> Ended:
        """Record an end that no supervisor can record; return its report."""
        why, undelivered = (
            " ".join(text.split())[: files.WHY_LIMIT] for text in (why, undelivered)
        )
        end = Ended(self.key, status, now(), why, used or {}, undelivered)
        fields = {
            "status": status,
            "at": end.at,
            "why": why,
            "undelivered": undelivered,
            "used": end.used,
        }
        # A full disk: then the end is found out again after a restart.
        with contextlib.suppress(OSError), self._opened() as directory:
            files.write_exit(directory, fields)
        return end

    def kill_leftovers(self, claim: DirectoryClaim | None) -> bool:
        """Kill what a lost attempt left running; return whether none of its known processes is
        left."""
        if claim is None or claim.boot != processes.boot_id():
            return True  # the script was never started, or all its processes ended with the machine
        # The control group of the attempt, if the claim names one that cannot belong to another.
        is_ours = (
            TOKEN.fullmatch(claim.token)
            and os.path.basename(claim.leaf) == f"qbatch-{self.key}-{claim.token[:8]}"
        )
        group = claim.leaf if is_ours and Path(claim.leaf, "cgroup.kill").exists() else ""
        started = self.started()
        deadline = time.monotonic() + PATIENCE
        while True:
            found = _find(claim, started, group)
            if not found:
                # The group may still contain for a moment what was just killed.
                while group and not processes.remove_leaf(group) and time.monotonic() < deadline:
                    time.sleep(TICK)
                return True
            if time.monotonic() > deadline:
                return False
            if group:
                processes.kill_leaf(group)
            processes.kill_all(lambda: _find(claim, started, group))
            time.sleep(TICK)

    def discard(self) -> bool:
        """End what runs in the directory, which was given up, and remove it; return whether nothing
        is left."""
        deadline = time.monotonic() + STOP_PATIENCE
        try:
            if self.look() is None:
                self.fence()
            if isinstance(self.look(), Alive):
                self.send("stop 0")
            while isinstance(situation := self.look(), Alive) and time.monotonic() < deadline:
                time.sleep(TICK)
            # The token is in the environment of the supervisor too: one that does not react is
            # killed with the rest.
            if not isinstance(situation, Ended):
                self.kill_leftovers(situation.claim if situation is not None else None)
        except OSError:
            pass  # not even a directory, or not ours: remove what can be removed
        return files.remove_tree(str(self.path))

    @contextlib.contextmanager
    def _opened(self) -> Iterator[int]:
        handle = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            yield handle
        finally:
            os.close(handle)

    def _read(self, name: str) -> bytes | None:
        """Return the bytes of a small file: None if it is absent, none if it is no regular file."""
        try:
            handle = os.open(self.path / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            return None
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            return b""
        with open(handle, "rb") as stream:
            return stream.read()


def _decoded(text: bytes | None, kind: type[_Record]) -> _Record | None:
    """Return a record from the text of its file; None if there is none or it is damaged."""
    try:
        return msgspec.json.decode(text or b"", type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _find(claim: DirectoryClaim, started: StartRecord | None, group: str) -> dict[int, int]:
    """Return the processes of an attempt, each with its start."""
    found = processes.marked(claim.token) if TOKEN.fullmatch(claim.token) else {}
    if (
        started is not None
        and started.start is not None
        and processes.start_of(started.pid) == started.start
    ):
        for pid in processes.every_process():
            stat = processes.read_stat(pid)
            if stat is not None and stat[2] == started.pid and stat[0] not in "ZX":
                found[pid] = stat[3]
    if found:
        found |= processes.descendants(set(found))
    for place, _, names in os.walk(group) if group else ():
        if "cgroup.procs" in names:
            with contextlib.suppress(OSError):  # removed meanwhile
                for pid in map(
                    int, Path(place, "cgroup.procs").read_text(encoding="ascii").split()
                ):
                    stat = processes.read_stat(pid)
                    if stat is not None and stat[0] not in "ZX":
                        found[pid] = stat[3]
    found.pop(os.getpid(), None)
    return found
