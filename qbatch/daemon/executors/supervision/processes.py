"""The processes of the machine and of an attempt, and how to signal one without ever signalling
another.

A control group (version 2) for one attempt, its leaf, is used if a writable tree is found, which
many machines do not have.  One write kills all processes in it, however they forked; everything
works without it.
"""

from __future__ import annotations

import os

from . import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as signal
    from collections.abc import Callable, Iterator
else:
    # `signal` itself makes enumerations, which costs as much as half a start of Python.
    import _signal as signal

MARKER = "QBATCH_ATTEMPT"
"""Name of the environment variable with a random token, which marks the processes of one
attempt."""

FREEZE_ROUNDS = 20


def boot_id() -> str:
    """Return the random name of this start of the machine; process numbers are valid only within
    one start."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as stream:
        return stream.read().strip()


def read_stat(pid: int) -> tuple[str, int, int, int] | None:
    """Return state, parent, session and start (ticks since boot) of a process; None if it is
    gone."""
    fields = stat_fields(pid)
    return (
        (fields[0].decode("ascii"), int(fields[1]), int(fields[3]), int(fields[19]))
        if fields
        else None
    )


def stat_fields(pid: int) -> list[bytes]:
    """Return the fields of /proc/PID/stat that follow the program's name; none if the process is
    gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as stream:
            # The name may contain anything, blanks and brackets too.
            fields = stream.read().rpartition(b")")[2].split()
    except OSError:
        return []
    return fields if len(fields) > 21 else []


def start_of(pid: int) -> int | None:
    """Return the start of a process in ticks since boot, which identifies it with its number; None
    if it is gone."""
    found = read_stat(pid)
    return None if found is None else found[3]


def open_process(pid: int, start: int) -> int | None:
    """Return a pidfd of the process that has this number **and** this start; None if there is no
    such process."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return None
    # The handle is made before the identity is read: if this is the right process, it was so when
    # the handle was made.
    if start_of(pid) == start:
        return handle
    os.close(handle)
    return None


def signal_process(pid: int, start: int, number: int) -> bool:
    """Signal the process that has this number and this start, and no other; return False if it is
    gone or forbidden."""
    handle = open_process(pid, start)
    if handle is None:
        return False
    try:
        signal.pidfd_send_signal(handle, number)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def every_process() -> Iterator[int]:
    """Yield the numbers of all processes."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            yield int(name)


def descendants(roots: set[int]) -> dict[int, int]:
    """Return the living descendants of some processes, without these, each with its start.

    Parents come before their children: a shell that gets its signal first does not live to report
    its child's end.
    """
    children: dict[int, list[tuple[int, int, str]]] = {}
    for pid in every_process():
        found = read_stat(pid)
        if found is not None:
            state, parent, _, start = found
            children.setdefault(parent, []).append((pid, start, state))
    result: dict[int, int] = {}
    waiting = list(roots)
    for parent in waiting:  # grows as we go
        for pid, start, state in children.get(parent, ()):
            if pid not in result and pid not in roots and state not in "ZX":
                result[pid] = start
                waiting.append(pid)
    return result


def marked(token: str) -> dict[int, int]:
    """Return the living processes that started with the token in their environment, each with its
    start."""
    wanted = f"{MARKER}={token}".encode("ascii")
    result: dict[int, int] = {}
    for pid in every_process():
        try:
            with open(f"/proc/{pid}/environ", "rb", buffering=0) as stream:
                text = stream.read()
        except OSError:
            continue
        if wanted in text.split(b"\0"):
            found = read_stat(pid)
            if found is not None and found[0] not in "ZX":
                result[pid] = found[3]
    result.pop(os.getpid(), None)
    return result


def signal_all(find: Callable[[], dict[int, int]], number: int) -> list[tuple[int, int]]:
    """Signal all processes found, once each, in the order found; look again until there is no new
    one.  Return them."""
    done: dict[tuple[int, int], None] = {}
    for _ in range(FREEZE_ROUNDS):
        new = [each for each in find().items() if each not in done]
        if not new:
            break
        for pid, start in new:
            signal_process(pid, start, number)
            done[pid, start] = None
    return list(done)


def kill_all(find: Callable[[], dict[int, int]]) -> None:
    """Stop, then kill all processes found: a stopped process cannot fork."""
    for pid, start in signal_all(find, signal.SIGSTOP):
        signal_process(pid, start, signal.SIGKILL)


def leaf_path(key: str, token: str) -> str:
    """Return the path of an attempt's leaf, in the control group of this process; empty if none can
    be made."""
    try:
        with open("/proc/self/cgroup", encoding="utf-8") as stream:
            own = next((line[3:].rstrip("\n") for line in stream if line.startswith("0::")), None)
        with open("/proc/self/mountinfo", encoding="utf-8") as stream:
            lines = stream.readlines()
    except (OSError, ValueError):
        return ""
    for line in lines:
        before, _, after = line.partition(" - ")
        fields = before.split()
        if own is None or len(fields) < 5 or not after.startswith("cgroup2 "):
            continue
        root, mount = _unescape(fields[3]).rstrip("/"), _unescape(fields[4]).rstrip("/")
        if own == root or own.startswith(root + "/"):
            group = (mount + own[len(root) :]).rstrip("/")
            return (
                f"{group}/qbatch-{key}-{token[:8]}" if group and os.access(group, os.W_OK) else ""
            )
    return ""


def _unescape(text: str) -> str:
    """Undo the octal escapes of /proc/self/mountinfo."""
    for escape, plain in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(escape, plain)
    return text


def make_leaf(path: str) -> bool:
    """Make a leaf; return False if that is not possible (then there is none)."""
    try:
        os.mkdir(path)
    except OSError:
        return False
    if os.access(path + "/cgroup.kill", os.W_OK) and os.access(path + "/cgroup.procs", os.W_OK):
        return True
    remove_leaf(path)
    return False


def kill_leaf(path: str) -> None:
    """Kill all processes in a leaf."""
    files.write_if_possible(path + "/cgroup.kill", b"1")


def remove_leaf(path: str) -> bool:
    """Remove a leaf and the groups that the job made inside it; return False if a process still
    lives there."""
    for directory, _, _ in os.walk(path, topdown=False):
        try:
            os.rmdir(directory)
        except OSError:
            return False
    return True
