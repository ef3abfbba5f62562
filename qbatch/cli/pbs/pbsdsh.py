"""``pbsdsh``: run a program on the slots of a job, from inside the job.

A slot is a line of the node file.  The hosts here are local processes, so each task is a child of
``pbsdsh``.  It has the environment of ``pbsdsh`` with ``PBS_NODENUM`` (the number of its host in
the job, from 0), ``PBS_VNODENUM`` (its slot, from 0) and ``PBS_TASKNUM`` (from 2: task 1 is the
script).  Like a task of PBS, it begins in ``PBS_JOBDIR``.

As in OpenPBS (pbsdsh.c), ``pbsdsh`` reports a failed task on stdout and exits with 0.  A signal
ends the tasks; the exit code is then 1.
"""

from __future__ import annotations

import os
from typing import NamedTuple, NoReturn

from qbatch.cli.pbs.command import Call, Command, CommandFault, UsageFault

USAGE = """pbsdsh [-c copies] [-s] [-v] [-o] -- program [arg...]
       pbsdsh [-n node_index] [-s] [-v] [-o] -- program [arg...]"""

SIGNALS = (1, 2, 15)
"""HUP, INT and TERM: they end the tasks."""

NOT_STARTED = 254
"""Exit status of a task if its program cannot start."""


class TaskPlace(NamedTuple):
    """A line of the node file: the number of its host in the job, and its own number."""

    node: int
    number: int


class _Interrupted(Exception):  # noqa: N818 - a signal is no error
    """A signal has arrived."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def slots_of(node_file: str) -> list[TaskPlace]:
    """Return the slots that the text of a node file names."""
    names = node_file.split()
    hosts = list(dict.fromkeys(names))
    return [TaskPlace(hosts.index(name), number) for number, name in enumerate(names)]


def chosen(slots: list[TaskPlace], copies: int | None, index: int | None) -> list[TaskPlace]:
    """Return the slots for the program: all, the first ``copies`` (from the first slot again if
    there are fewer), or one."""
    if index is not None:
        return [slots[index % len(slots)]]
    return [
        slots[number % len(slots)] for number in range(len(slots) if copies is None else copies)
    ]


def _count(call: Call, letter: str) -> int | None:
    if not call.given.has(letter):
        return None
    value = call.given.last(letter).strip()
    if not (value.isascii() and value.isdigit()):
        raise UsageFault(f"illegal -{letter} value")
    return int(value)


def _slots(call: Call) -> list[TaskPlace]:
    environment = call.here.environment
    if "PBS_ENVIRONMENT" not in environment:
        raise CommandFault("not executing under PBS")
    path = environment.get("PBS_NODEFILE", "")
    try:
        with open(path, encoding="utf-8") as stream:
            slots = slots_of(stream.read())
    except OSError as error:
        raise CommandFault(
            f"the node file {path!r} ($PBS_NODEFILE) cannot be read: {error.strerror}"
        ) from None
    if not slots:
        raise CommandFault(f"the node file {path} ($PBS_NODEFILE) names no host")
    return slots


def _start(
    call: Call, number: int, slot: TaskPlace, program: list[str], running: dict[int, int]
) -> None:
    """Start a task, and put its process into ``running``.

    Signals wait for both: no task is missed by a signal that ends the tasks.
    """
    import signal

    places = {"PBS_NODENUM": slot.node, "PBS_VNODENUM": slot.number, "PBS_TASKNUM": number + 2}
    environment = {**call.here.environment, **{name: str(value) for name, value in places.items()}}
    directory = environment.get("PBS_JOBDIR") or environment.get("HOME") or "/"
    call.here.out.flush()
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    process = os.fork()
    if process:
        running[process] = number
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        if call.given.has("v"):
            call.write(f"pbsdsh: spawned task 0x{number:08X} on logical node {slot.number}\n")
        return
    try:
        for each in SIGNALS:
            signal.signal(each, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        os.chdir(directory)
        os.execvpe(program[0], program, environment)
    except OSError as error:
        os.write(2, f"pbsdsh: {program[0]}: {error.strerror}\n".encode(errors="backslashreplace"))
    finally:
        os._exit(NOT_STARTED)


def _wait(call: Call, running: dict[int, int]) -> None:
    """Wait until all running tasks (process: number) have ended, and report those that failed."""
    while running:
        process, how = os.waitpid(-1, 0)
        number = running.pop(process, None)
        status = os.waitstatus_to_exitcode(how)
        if number is not None and (status or call.given.has("v")):
            call.write(
                f"pbsdsh: task 0x{number:08X} exit status "
                f"{status if status >= 0 else 256 - status}\n"
            )


def _act(call: Call) -> int:
    import signal

    given = call.given
    program = given.operands + (given.after_dashes or [])
    copies, index = _count(call, "c"), _count(call, "n")
    if not program or (copies is not None and index is not None):
        raise UsageFault("conflicting options." if program else "no program is named")
    places = chosen(_slots(call), copies, index)
    running: dict[int, int] = {}

    def interrupted(number: int, _: object) -> NoReturn:
        for each in SIGNALS:
            signal.signal(each, signal.SIG_IGN)  # one is enough
        raise _Interrupted(number)

    for each in SIGNALS:
        signal.signal(each, interrupted)
    try:
        for number, slot in enumerate(places):
            _start(call, number, slot, program, running)
            if given.has("s") and not given.has("o"):
                _wait(call, running)
        if not given.has("o"):
            _wait(call, running)
    except _Interrupted as interruption:
        for process, number in running.items():
            call.write(f"pbsdsh: killing task 0x{number:08X} signal {interruption.number}\n")
            os.kill(process, interruption.number)
        return 1
    return 0


OPTIONS = {
    "c": (
        "copies",
        "Run this many tasks, on the first slots; go round again if there are fewer slots.",
    ),
    "n": ("node_index", "Run on this slot only, counted from 0."),
    "o": ("", "Do not wait for the tasks to end."),
    "s": ("", "Run one task after the other."),
    "v": ("", "Report the start and the exit status of each task."),
}

pbsdsh = Command("pbsdsh", __doc__, USAGE, OPTIONS, _act, stops_early=True)
