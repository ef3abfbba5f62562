"""A run directory as the executor sees it: what became of an attempt, told from its files alone.

The supervisor's side is in ``supervision``; the files are listed in ``supervision.files``.  Whatever a file holds,
nothing here raises but OSError: a damaged record is a `Gone`.

What a lost supervisor leaves behind is killed and removed here too.  A process is killed only where it certainly belongs to the
attempt: it is in the attempt's control group, or it carries the attempt's token in its environment, or it descends from one that
does, or its session is led by the script itself (number and start agree).
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import time
from pathlib import Path

import msgspec

from .attempt import LOST, Attempt, Ended, Started
from .supervision import files, leaf, outputs, processes

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


KEY = re.compile(r"[0-9][0-9.\-]{0,99}")
TOKEN = re.compile(r"[0-9a-f]{32}")


def check_key(key: str) -> str:
    """The key, if it is one; ValueError where it holds anything but digits, '-' and '.'."""
    if KEY.fullmatch(key) is None:
        raise ValueError(f"not the key of an attempt: {key!r}")
    return key


class DirectoryClaim(msgspec.Struct, frozen=True):
    """Who decided the fate of an attempt: a supervisor (process number, start, boot), or the executor (pid 0)."""

    pid: int = 0
    start: int | None = None
    boot: str = ""
    token: str = ""
    leaf: str = ""


class ExitRecord(msgspec.Struct, frozen=True):
    """How an attempt ended."""

    status: int
    at: int
    why: str = ""
    used: dict[str, float] = {}
    session: int = 0
    started: int = 0
    undelivered: str = ""


class StartRecord(msgspec.Struct, frozen=True):
    """The script of an attempt."""

    pid: int
    session: int
    at: int
    start: int | None = None


class Unclaimed(msgspec.Struct, frozen=True):
    """Nobody has started the attempt."""


class Alive(msgspec.Struct, frozen=True):
    """A supervisor holds the attempt; its claim, unless that is being written."""

    claim: DirectoryClaim | None


class Over(msgspec.Struct, frozen=True):
    """The attempt ended, and how is on record."""

    record: ExitRecord


class Gone(msgspec.Struct, frozen=True):
    """The supervisor is lost; what the script did is not known."""

    claim: DirectoryClaim | None
    why: str


Situation = Unclaimed | Alive | Over | Gone


class RunDirectory:
    """The directory of one attempt."""

    def __init__(self, path: Path, key: str) -> None:
        self.path, self.key = path, key

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
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as stream:
            stream.write(text)
        temporary.rename(spec)

    def look(self) -> Situation:
        """What became of the attempt."""
        if (over := self._exit()) is not None:
            return over
        text = self._read(files.CLAIM)
        if text is None:
            return Unclaimed()
        try:
            claim = msgspec.json.decode(text, type=DirectoryClaim)
        except (msgspec.DecodeError, UnicodeDecodeError):
            claim = None
        if not self._is_locked():
            # The record first, then the lock: it may have been written between our two looks.
            return self._exit() or Gone(claim, self._why_gone(claim))
        return Alive(claim)

    def started(self) -> Started | None:
        """That the script runs, if it does."""
        text = self._read(files.STARTED)
        try:
            record = msgspec.json.decode(text, type=StartRecord) if text else None
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
        return Started(self.key, record.session, record.at) if record else None

    def started_record(self) -> StartRecord | None:
        """Process number and start of the script, if they are on record."""
        try:
            return msgspec.json.decode(self._read(files.STARTED) or b"", type=StartRecord)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None

    def fence(self) -> bool:
        """Take the claim, so that no supervisor can start the attempt any more; False where one has it."""
        directory = self._open()
        try:
            return files.make_claim(directory, {"pid": 0, "boot": processes.boot_id(), "token": "", "leaf": ""})
        finally:
            os.close(directory)

    def deliver(self) -> str:
        """Deliver what a lost attempt has written; what could not be delivered, in words."""
        try:
            attempt = msgspec.json.decode(self._read(files.SPEC) or b"", type=Attempt)
            directory = self._open()
        except (msgspec.DecodeError, UnicodeDecodeError, OSError):
            return ""
        try:
            targets = outputs.targets_of(attempt.output, attempt.error, attempt.join, attempt.direct)
            return outputs.deliver(targets, directory, self.key, attempt.job_id)
        finally:
            os.close(directory)

    def used(self) -> dict[str, float]:
        """What the attempt had used when its supervisor last looked."""
        try:
            return msgspec.json.decode(self._read(files.USED) or b"{}", type=dict[str, float])
        except (msgspec.DecodeError, UnicodeDecodeError, OSError):
            return {}

    def record_exit(
        self, status: int, why: str, undelivered: str = "", used: dict[str, float] | None = None
    ) -> ExitRecord:
        """Put an ending on record that no supervisor can; the record as it counts."""
        why, undelivered = (" ".join(text.split())[: files.WHY_LIMIT] for text in (why, undelivered))
        record = ExitRecord(status, time.time_ns() // 1000, why, used or {}, undelivered=undelivered)
        with contextlib.suppress(OSError):  # a full disk: then it is found out again after a restart
            directory = self._open()
            try:
                said = {"status": status, "at": record.at, "why": why, "undelivered": undelivered, "used": record.used}
                files.write_exit(directory, said)
            finally:
                os.close(directory)
        return record

    def tell(self, line: str) -> bool:
        """Write a line into the control file and wake the supervisor, whoever and wherever it is.

        False where there is no such directory.
        """
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            _write(os.open(self.path / files.CONTROL, flags, 0o600), f"{line}\n".encode("ascii"))
        except FileNotFoundError:
            return False
        # Nobody reads the FIFO: no supervisor yet (it reads the control file when it comes), or none any more.
        with contextlib.suppress(OSError):
            _write(os.open(self.path / files.WAKE, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC), b"\0")
        return True

    def last_words(self) -> str:
        """The last line that a supervisor wrote to its log."""
        text = (self._read(files.LOG) or b"").decode("utf-8", "replace").strip()
        return text.rpartition("\n")[2]

    def _exit(self) -> Over | Gone | None:
        text = self._read(files.EXIT)
        if text is None:
            return None
        try:
            return Over(msgspec.json.decode(text, type=ExitRecord))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            claim = self._read(files.CLAIM) or b""
            with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError):
                return Gone(msgspec.json.decode(claim, type=DirectoryClaim), f"{files.EXIT} is damaged: {error}")
            return Gone(None, f"{files.EXIT} is damaged: {error}")

    def _why_gone(self, claim: DirectoryClaim | None) -> str:
        if claim is None:
            return "the supervisor was lost while it claimed the attempt"
        if claim.boot != processes.boot_id():
            return "the machine was restarted while the job ran"
        words = self.last_words()
        return "the supervisor was lost" + (f": {words}" if words else "")

    def _is_locked(self) -> bool:
        directory = self._open()
        try:
            lock = files.take_lock(directory, 0.0)
        finally:
            os.close(directory)
        if lock is None:
            return True
        os.close(lock)
        return False

    def _open(self) -> int:
        return os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)

    def _read(self, name: str) -> bytes | None:
        """A small file; None where it is absent, nothing where it is no file at all."""
        try:
            handle = os.open(self.path / name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            return None
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            return b""
        with open(handle, "rb") as stream:
            return stream.read()


def _write(handle: int, text: bytes) -> None:
    try:
        os.write(handle, text)
    finally:
        os.close(handle)


def ended(key: str, record: ExitRecord) -> Ended:
    """The report of an exit record."""
    return Ended(key, record.status, record.at, record.why, record.used, record.undelivered)


def lost(key: str, why: str) -> Ended:
    """The report that what an attempt did is not known."""
    return Ended(key, LOST, time.time_ns() // 1000, why)
