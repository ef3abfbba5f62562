"""The processes of the machine and of an attempt, and how to signal one without ever signalling another."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Iterator
else:
    import _signal as signal  # `signal` itself makes enumerations, which costs as much as half a start of Python

MARKER = "QBATCH_ATTEMPT"
"""Name of the environment variable with a random token, which marks the processes of one attempt."""

SIGKILL, SIGTERM, SIGCONT, SIGSTOP = int(signal.SIGKILL), int(signal.SIGTERM), int(signal.SIGCONT), int(signal.SIGSTOP)

FREEZE_ROUNDS = 20


def boot_id() -> str:
    """Return the random name of this start of the machine; process numbers are valid only within one start."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as stream:
        return stream.read().strip()


def read_stat(pid: int) -> tuple[str, int, int, int] | None:
    """Return state, parent, session and start (ticks since boot) of a process; None if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as stream:
            text = stream.read()
    except OSError:
        return None
    fields = text.rpartition(b")")[2].split()  # the name before it may contain anything, blanks and brackets too
    if len(fields) < 20:
        return None
    return fields[0].decode("ascii"), int(fields[1]), int(fields[3]), int(fields[19])


def start_of(pid: int) -> int | None:
    """Return the start of a process in ticks since boot, which identifies it with its number; None if it is gone."""
    found = read_stat(pid)
    return None if found is None else found[3]


def open_process(pid: int, start: int) -> int | None:
    """Return a pidfd of the process that has this number **and** this start; None if there is no such process."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return None
    # The handle is made before the identity is read: if this is the right process, it was so when the handle was made.
    if start_of(pid) == start:
        return handle
    os.close(handle)
    return None


def signal_process(pid: int, start: int, number: int) -> bool:
    """Signal the process that has this number and this start, and no other; return False if it is gone or forbidden."""
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

    Parents come before their children: a shell that gets its signal first does not live to report its child's end.
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
    """Return the living processes that started with the token in their environment, each with its start."""
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
    """Signal all processes found, once each, in the order found; look again until there is no new one.  Return them."""
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
    for pid, start in signal_all(find, SIGSTOP):
        signal_process(pid, start, SIGKILL)
