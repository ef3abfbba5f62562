"""``pbsdsh``: run a program on the slots of a job, from inside the job.

A slot is a line of the node file.  The hosts here are local processes, so each task is a child of ``pbsdsh``.  It has the
environment of ``pbsdsh`` with ``PBS_NODENUM`` (the number of its host in the job, from 0), ``PBS_VNODENUM`` (its slot, from 0)
and ``PBS_TASKNUM`` (from 2: task 1 is the script).  Like a task of PBS, it begins in ``PBS_JOBDIR``.

As in OpenPBS (pbsdsh.c), ``pbsdsh`` reports a failed task on stdout and exits with 0.  A signal ends the tasks; the exit code is
then 1.
"""

from __future__ import annotations

import os
from typing import NamedTuple, NoReturn

from qbatch.cli.pbs.command import Call, Command, CommandFault, UsageFault

USAGE = """pbsdsh [-c copies] [-s] [-v] [-o] -- program [arg...]
       pbsdsh [-n node_index] [-s] [-v] [-o] -- program [arg...]"""

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
    """Return the slots for the program: all, the first ``copies`` (from the first slot again if there are fewer), or one."""
    if index is not None:
        return [slots[index % len(slots)]]
    return [slots[number % len(slots)] for number in range(len(slots) if copies is None else copies)]


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
        raise CommandFault(f"the node file {path!r} ($PBS_NODEFILE) cannot be read: {error.strerror}") from None
    if not slots:
        raise CommandFault(f"the node file {path} ($PBS_NODEFILE) names no host")
    return slots


def _start(program: list[str], environment: dict[str, str], directory: str) -> int:
    """Start a task and return its process."""
    process = os.fork()
    if process:
        return process
    try:
        os.chdir(directory)
        os.execvpe(program[0], program, environment)
    except OSError as error:
        os.write(2, f"pbsdsh: {program[0]}: {error.strerror}\n".encode(errors="backslashreplace"))
    finally:
        os._exit(NOT_STARTED)


class _Tasks:
    """The tasks of one call."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.is_verbose = call.given.has("v")
        self.running: dict[int, int] = {}

    def start(self, number: int, slot: TaskPlace, program: list[str]) -> None:
        here = self.call.here
        places = {"PBS_NODENUM": slot.node, "PBS_VNODENUM": slot.number, "PBS_TASKNUM": number + 2}
        environment = {**here.environment, **{name: str(value) for name, value in places.items()}}
        directory = environment.get("PBS_JOBDIR") or environment.get("HOME") or "/"
        here.out.flush()
        process = _start(program, environment, directory)
        self.running[process] = number
        if self.is_verbose:
            self.call.write(f"pbsdsh: spawned task 0x{number:08X} on logical node {slot.number}\n")

    def wait(self) -> None:
        """Wait until all running tasks have ended, and report those that failed."""
        while self.running:
            process, how = os.waitpid(-1, 0)
            number = self.running.pop(process, None)
            status = os.waitstatus_to_exitcode(how)
            if number is not None and (status or self.is_verbose):
                shown = status if status >= 0 else 256 - status
                self.call.write(f"pbsdsh: task 0x{number:08X} exit status {shown}\n")

    def end(self, signal: int) -> None:
        for process, number in self.running.items():
            self.call.write(f"pbsdsh: killing task 0x{number:08X} signal {signal}\n")
            os.kill(process, signal)


def _act(call: Call) -> int:
    import signal

    given = call.given
    program = given.operands + (given.after_dashes or [])
    copies, index = _count(call, "c"), _count(call, "n")
    if not program or (copies is not None and index is not None):
        raise UsageFault("conflicting options." if program else "no program is named")
    places = chosen(_slots(call), copies, index)
    tasks = _Tasks(call)

    def interrupted(number: int, _: object) -> NoReturn:
        raise _Interrupted(number)

    for each in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(each, interrupted)
    try:
        for number, slot in enumerate(places):
            tasks.start(number, slot, program)
            if given.has("s") and not given.has("o"):
                tasks.wait()
        if not given.has("o"):
            tasks.wait()
    except _Interrupted as interruption:
        tasks.end(interruption.number)
        return 1
    return 0


OPTIONS = {
    "c": ("copies", "Run this many tasks, on the first slots; go round again if there are fewer slots."),
    "n": ("node_index", "Run on this slot only, counted from 0."),
    "o": ("", "Do not wait for the tasks to end."),
    "s": ("", "Run one task after the other."),
    "v": ("", "Report the start and the exit status of each task."),
}

pbsdsh = Command("pbsdsh", __doc__, USAGE, OPTIONS, _act, stops_early=True)
