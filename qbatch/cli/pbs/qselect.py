"""``qselect``: print the identifiers of the jobs that the options select, one on each line."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

from qbatch.cli.pbs.command import Call, Command, CommandFault, UsageFault, queue_of
from qbatch.cli.pbs.submission import illegal, read_date
from qbatch.cli.pbs.text import MICROSECONDS, plain
from qbatch.wire.attributes import BY_LETTER
from qbatch.wire.errors import Refusal
from qbatch.wire.records import DEFAULT_PROJECT, JobRecord
from qbatch.wire.requests import STATES, JobStatus
from qbatch.wire.resources import parse_duration, parse_size

USAGE = """qselect [-a [op]date_time] [-A account_string] [-c [op]interval]
\t[-h hold_list] [-H] [-J] [-l resource_list] [-N name] [-p [op]priority]
\t[-q destination] [-r y|n] [-s states] [-t subopt[op]date_time] [-T] [-P project_name]
\t[-x] [-u user_name]"""

_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    name: getattr(operator, name) for name in ("eq", "ne", "ge", "gt", "le", "lt")
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


def _resource_test(part: str) -> Test:
    """Return the test of one part of -l: ``ncpus.ge.4``, ``walltime.lt.1:00:00``,
    ``place.eq.free``."""
    found = re.fullmatch(r"\s*([A-Za-z_]\w*)\.(eq|ne|ge|gt|le|lt)\.(.*)", part)
    if found is None:
        known = ", ".join(_COMPARISONS)
        raise UsageFault(
            f"illegal -l value: {part!r} is not of the form name.op.value (op: {known})",
            f"resource_list: {part}",
        )
    name, compare = found[1], _COMPARISONS[found[2]]
    asked = _measure(name, found[3].strip())

    def test(job: JobRecord) -> bool:
        has = _measure(name, job.resources[name]) if name in job.resources else None
        return type(has) is type(asked) and compare(has, asked)

    return test


def _measure(name: str, text: str) -> int | str:
    try:
        if name in ("walltime", "cput", "pcput"):
            return parse_duration(text)
        return parse_size(text) if "mem" in name or name == "file" else int(text)
    except ValueError:
        return text


def _field_test(field: str, compare: Callable[[Any, Any], bool], asked: object) -> Test:
    return lambda job: compare(getattr(job, field), asked)


def _time_test(field: str, compare: Callable[[Any, Any], bool], asked: int) -> Test:
    def test(job: JobRecord) -> bool:
        instant = getattr(job, field)
        return instant is not None and compare(instant // MICROSECONDS, asked // MICROSECONDS)

    return test


def _read_tests(call: Call) -> list[Test]:
    """Return the tests of a job that the daemon does not make itself."""
    tests: list[Test] = []
    for letter, value in call.given.options:
        if letter == "l":
            tests += [_resource_test(part) for part in value.split(",")]
        elif letter in "at":
            is_kind = letter == "t" and value[:1] in _TIMES
            field = _TIMES[value[0]] if is_kind else "not_before"
            compare, text = _comparison(letter, value[1:] if is_kind else value)
            tests.append(_time_test(field, compare, read_date(letter, text)))
        elif letter == "p":
            compare, text = _comparison("p", value)
            if not re.fullmatch(r"[+-]?[0-9]{1,5}", text):
                raise illegal("p", "a priority is a whole number")
            tests.append(_field_test(BY_LETTER[letter].field, compare, int(text)))
        elif letter == "h":
            letters = set(value) - {"n"}
            tests.append(lambda job, letters=letters: set(job.hold) - {"n"} == letters)  # type: ignore[misc]
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
    try:
        if states and not set(states) <= set(STATES):
            raise illegal("s", f"letters of {STATES}")
        tests = _read_tests(call)
    except CommandFault as fault:
        raise UsageFault(str(fault)) from None
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
            call.write(
                "".join(
                    f"{plain(job.id)}{server}\n"
                    for job in page.jobs
                    if all(test(job) for test in tests)
                )
            )
    except Refusal as refusal:
        call.job_fault(refusal.record, queue)
    return call.code


OPTIONS = {
    "a": (
        "[op]date_time",
        "Select by the time from which the job may start; op: .eq. .ne. .ge. .gt. .le. .lt.",
    ),
    "A": ("account_string", "Select by the account."),
    "c": ("interval", "Select by the checkpointing that the job asks for."),
    "h": ("hold_list", "Select by the exact set of holds."),
    "H": ("", "Select finished jobs only."),
    "J": ("", "Select arrays only."),
    "l": ("resource_list", "Select by resources: ncpus.ge.4, walltime.lt.1:00:00, place.eq.free."),
    "N": ("name", "Select by the name."),
    "p": ("[op]priority", "Select by the user's priority."),
    "P": ("project", "Select by the project."),
    "q": ("destination", "Select by the queue."),
    "r": ("y|n", "Select by whether the job may run again."),
    "s": ("states", "Select by the state: letters of B E F H M Q R S T U W X."),
    "t": (
        "[c|e|m|q|s][op]date_time",
        "Select by an instant: submitted, eligible, modified, queued, started.",
    ),
    "T": ("", "Select each subjob of arrays too."),
    "u": ("user_list", "Select by the user."),
    "x": ("", "Select finished jobs too."),
}

qselect = Command("qselect", __doc__, USAGE, OPTIONS, _act)
