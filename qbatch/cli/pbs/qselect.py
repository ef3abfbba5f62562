"""``qselect``: print the identifiers of the jobs that the options select, one on each line."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

from qbatch.cli.pbs.command import Call, Command, UsageFault, queue_of
from qbatch.cli.pbs.submission import illegal, read_date
from qbatch.cli.pbs.text import plain
from qbatch.wire.attributes import BY_LETTER
from qbatch.wire.errors import Refusal
from qbatch.wire.records import DEFAULT_PROJECT, JobRecord
from qbatch.wire.requests import STATES, JobStatus
from qbatch.wire.resources import parse_duration, parse_size

USAGE = "\n       ".join((
    "qselect [-a [op]date_time] [-A account_string] [-c [op]interval] [-h hold_list] [-H] [-J] [-l resource_list]",
    "[-N name] [-p [op]priority] [-P project] [-q destination] [-r y|n] [-s states] [-t [c|e|m|q|s][op]date_time]",
    "[-T] [-u user_list] [-x]",
))  # fmt: skip

_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "ge": operator.ge,
    "gt": operator.gt,
    "le": operator.le,
    "lt": operator.lt,
}
_TIMES = {
    "a": "not_before",
    "c": "submitted",
    "e": "eligible",
    "g": "eligible",
    "m": "modified",
    "q": "queued",
    "s": "started",
}
Test = Callable[[JobRecord], bool]


def _comparison(letter: str, value: str) -> tuple[Callable[[Any, Any], bool], str]:
    found = re.match(r"\.([a-z]{2})\.", value)
    if found is None:
        return operator.eq, value
    if found[1] not in _COMPARISONS:
        raise illegal(letter, f"known are {', '.join(_COMPARISONS)}")
    return _COMPARISONS[found[1]], value[4:]


def _time_test(letter: str, field: str, value: str) -> Test:
    compare, text = _comparison(letter, value)
    asked = read_date(letter, text)

    def test(job: JobRecord) -> bool:
        instant = getattr(job, field)
        return instant is not None and compare(instant // 1_000_000, asked // 1_000_000)

    return test


def resource_tests(value: str) -> list[Test]:
    """Return the tests of one -l argument: ``ncpus.ge.4,walltime.lt.1:00:00``, ``place=free``.

    Raises:
        CommandFault: a part cannot be read.
    """
    tests: list[Test] = []
    for part in value.split(","):
        found = re.fullmatch(r"\s*([A-Za-z_]\w*)(?:\.(eq|ne|ge|gt|le|lt)\.|=)(.*)", part)
        if found is None:
            raise illegal("l", f"{part!r} is not of the form name.op.value")
        tests.append(_resource_test(found[1], _COMPARISONS[found[2] or "eq"], found[3].strip()))
    return tests


def _resource_test(name: str, compare: Callable[[Any, Any], bool], text: str) -> Test:
    asked = _measure(name, text)

    def test(job: JobRecord) -> bool:
        if name not in job.resources:
            return False
        has = _measure(name, job.resources[name])
        return type(has) is type(asked) and compare(has, asked)

    return test


def _measure(name: str, text: str) -> int | str:
    readers: list[Callable[[str], int]] = [int]
    if name in ("walltime", "cput", "pcput"):
        readers = [parse_duration]
    elif "mem" in name or name == "file":
        readers = [parse_size]
    for read in readers:
        try:
            return read(text)
        except ValueError:
            pass
    return text


def _field_test(field: str, compare: Callable[[Any, Any], bool], asked: object) -> Test:
    return lambda job: compare(getattr(job, field), asked)


def _hold_test(asked: str) -> Test:
    letters = set(asked.replace("n", ""))
    return lambda job: set(job.hold.replace("n", "")) == letters


def read_tests(call: Call) -> list[Test]:
    """Return the tests of a job that the daemon does not make itself.

    Raises:
        CommandFault: a value is illegal.
    """
    tests: list[Test] = []
    for letter, value in call.given.options:
        if letter == "l":
            tests += resource_tests(value)
        elif letter in "at":
            is_kind = letter == "t" and value[:1] in _TIMES
            field = _TIMES[value[0]] if is_kind else "not_before"
            tests.append(_time_test(letter, field, value[1:] if is_kind else value))
        elif letter == "p":
            compare, text = _comparison("p", value)
            if not re.fullmatch(r"[+-]?[0-9]{1,5}", text):
                raise illegal("p", "a priority is a whole number")
            tests.append(_field_test(BY_LETTER[letter].field, compare, int(text)))
        elif letter == "h":
            tests.append(_hold_test(value))
        elif letter == "r":
            tests.append(_field_test(BY_LETTER[letter].field, operator.eq, value == "y"))
        elif letter in "ANPc":
            asked = "" if letter == "P" and value == DEFAULT_PROJECT else value
            tests.append(_field_test(BY_LETTER[letter].field, operator.eq, asked))
    return tests


def _act(call: Call) -> int:
    given = call.given
    if given.operands or given.after_dashes:
        raise UsageFault("no operands are taken")
    states = given.last("s")
    if states and not set(states) <= set(STATES):
        raise illegal("s", f"letters of {STATES}")
    tests = read_tests(call)
    if not call.is_here(given.last("q")):
        return call.code
    queue = queue_of(given.last("q"))
    question = JobStatus(
        queues=(queue,) if queue else (),
        users=tuple(part.partition("@")[0] for part in given.last("u").split(",") if part),
        states=states,
        finished="only" if given.has("H") else "also" if given.has("x") else "no",
        subjobs=given.has("T"),
        arrays_only=given.has("J"),
        is_brief=not tests,
    )
    is_posix = "POSIXLY_CORRECT" in call.here.environment
    try:
        for page in call.session.pages(question):
            server = f"@{page.server}" if is_posix else ""
            call.write("".join(f"{plain(job.id)}{server}\n" for job in page.jobs if all(test(job) for test in tests)))
    except Refusal as refusal:
        call.job_fault(refusal.record, queue)
    return call.code


OPTIONS = {
    "a": ("[op]date_time", "Select by the time from which the job may start; op: .eq. .ne. .ge. .gt. .le. .lt."),
    "A": ("account_string", "Select by the account."),
    "c": ("interval", "Select by the checkpointing that the job asks for."),
    "h": ("hold_list", "Select by the exact set of holds."),
    "H": ("", "Select finished jobs only."),
    "J": ("", "Select arrays only."),
    "l": ("resource_list", "Select by resources: ncpus.ge.4, walltime.lt.1:00:00, place=free."),
    "N": ("name", "Select by the name."),
    "p": ("[op]priority", "Select by the user's priority."),
    "P": ("project", "Select by the project."),
    "q": ("destination", "Select by the queue."),
    "r": ("y|n", "Select by whether the job may run again."),
    "s": ("states", "Select by the state: letters of B E F H M Q R S T U W X."),
    "t": ("[c|e|m|q|s][op]date_time", "Select by an instant: submitted, eligible, modified, queued, started."),
    "T": ("", "Select each subjob of arrays too."),
    "u": ("user_list", "Select by the user."),
    "x": ("", "Select finished jobs too."),
}

qselect = Command("qselect", __doc__, USAGE, OPTIONS, _act)
