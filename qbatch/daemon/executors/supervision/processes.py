"""Which processes there are, which belong to an attempt, and how one is signalled without ever hitting a stranger."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Iterator
else:
    import _signal as signal  # `signal` itself makes enumerations, which costs as much as half a start of Python

MARKER = "QBATCH_ATTEMPT"
"""Name of the environment variable whose value, a random token, tells the processes of one attempt."""

SIGKILL, SIGTERM, SIGCONT, SIGSTOP = int(signal.SIGKILL), int(signal.SIGTERM), int(signal.SIGCONT), int(signal.SIGSTOP)

FREEZE_ROUNDS = 20


def boot_id() -> str:
    """The random name of this start of the machine: a process number means nothing in another."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as stream:
        return stream.read().strip()


def read_stat(pid: int) -> tuple[str, int, int, int] | None:
    """State, parent, session and start (ticks since boot) of a process; None where it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as stream:
            text = stream.read()
    except OSError:
        return None
    fields = text.rpartition(b")")[2].split()  # the name before it may hold anything, blanks and brackets too
    if len(fields) < 20:
        return None
    return fields[0].decode("ascii"), int(fields[1]), int(fields[3]), int(fields[19])


def start_of(pid: int) -> int | None:
    """Start of a process in ticks since boot: with the number, its identity.  None where it is gone."""
    found = read_stat(pid)
    return None if found is None else found[3]


def open_process(pid: int, start: int) -> int | None:
    """A pidfd of the process that has this number **and** this start; None where there is no such process."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return None
    # The handle is held before the identity is read: if this is the right process, it was so when the handle was made.
    if start_of(pid) == start:
        return handle
    os.close(handle)
    return None


def signal_process(pid: int, start: int, number: int) -> bool:
    """Signal the process that has this number and this start, and no other; False where it is gone or forbidden."""
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
    """The numbers of all processes."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            yield int(name)


def descendants(roots: set[int]) -> dict[int, int]:
    """Living descendants of some processes, each with its start; the roots themselves are left out.

    Parents come before their children: a shell that is told to end first does not live to report its child's end.
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
    """Living processes that carry the token in the environment they were started with, each with its start."""
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
    """Signal everything that is found, once each, in the order found, looking again until nothing new turns up."""
    done: dict[tuple[int, int], None] = {}
    for _ in range(FREEZE_ROUNDS):
        new = [each for each in find().items() if each not in done]
        if not new:
            break
        for pid, start in new:
            signal_process(pid, start, number)
            done[pid, start] = None
    return list(done)


def kill_all(find: Callable[[], dict[int, int]]) -> int:
    """Stop, then kill everything that is found; how many that were.  Stopped first: what stands still cannot fork."""
    found = signal_all(find, SIGSTOP)
    for pid, start in found:
        signal_process(pid, start, SIGKILL)
    return len(found)
