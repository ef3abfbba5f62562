"""The filter of the tables: ``user=alice state=Q procs>=64 sim*`` keeps the jobs that satisfy every
condition."""

from __future__ import annotations

import operator
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import NamedTuple

from qbatch.model.errors import UsageError, suggestion
from qbatch.wire.pieces import procs_now
from qbatch.wire.records import JobRecord
from qbatch.wire.resources import parse_duration, parse_size

_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
    "=": operator.eq,
}

_STATES = {
    "queued": "Q",
    "waiting": "Q",
    "held": "H",
    "running": "R",
    "suspended": "S",
    "ended": "F",
    "finished": "F",
}

_WORDS: dict[str, Callable[[JobRecord], str]] = {
    "id": lambda job: job.id.partition(".")[0],
    "name": lambda job: job.name,
    "user": lambda job: job.user,
    "group": lambda job: job.group,
    "queue": lambda job: job.queue,
    "state": lambda job: job.state,
    "host": lambda job: job.exec_host,
}

_NUMBERS: dict[str, tuple[Callable[[JobRecord], float | None], Callable[[str], float]]] = {
    "procs": (
        lambda job: procs_now(job) if job.resources.get("ncpus", "1").isdigit() else None,
        float,
    ),
    "priority": (lambda job: float(job.priority), float),
    "status": (lambda job: None if job.exit_status is None else float(job.exit_status), float),
    "walltime": (lambda job: parse_duration(job.resources.get("walltime", "0")), parse_duration),
    "memory": (lambda job: parse_size(job.resources.get("mem", "0")), parse_size),
}

FIELDS = (*_WORDS, *_NUMBERS)
"""The fields of conditions."""


class Condition(NamedTuple):
    """One condition of a filter: a field, a comparison, and a value."""

    field: str
    comparison: str
    value: str


class Query:
    """A filter; an empty one keeps every job.

    Raises:
        UsageError: a condition cannot be parsed; the message names it and a suggestion.
    """

    def __init__(self, text: str = "") -> None:
        self.text = " ".join(text.split())
        self.conditions = [_condition(word) for word in self.text.split()]
        self._tests = [_test(condition) for condition in self.conditions]

    def keeps(self, job: JobRecord) -> bool:
        return all(test(job) for test in self._tests)

    def exact(self, field: str) -> tuple[str, ...]:
        """Return the value that a field must have, for the daemon's own filter; empty if there is
        none."""
        found = [
            each.value for each in self.conditions if each.field == field and each.comparison == "="
        ]
        return (found[0],) if len(found) == 1 and not set(found[0]) & set("*?[") else ()


def _condition(word: str) -> Condition:
    for sign in _OPERATORS:
        field, found, value = word.partition(sign)
        if found:
            if field not in FIELDS:
                raise UsageError(
                    f"filter: no field {field!r}{suggestion(field, FIELDS)}; known: "
                    f"{', '.join(FIELDS)}"
                )
            if field in _WORDS and sign not in ("=", "!="):
                raise UsageError(
                    f"filter: {word}: {field} is a word; write {field}={value} or {field}!={value}"
                )
            return Condition(field, sign, value)
    return Condition("", "", word)


def _test(condition: Condition) -> Callable[[JobRecord], bool]:
    field, sign, value = condition
    if not field:
        pattern = value.lower() if set(value) & set("*?[") else f"*{value.lower()}*"
        return lambda job: any(
            fnmatchcase(text.lower(), pattern)
            for text in (job.id.partition(".")[0], job.name, job.user, job.queue, job.exec_host)
        )
    if field in _WORDS:
        word = _WORDS[field]
        wanted = _STATES.get(value.lower(), value) if field == "state" else value
        is_wanted = sign == "="
        return lambda job: fnmatchcase(word(job), wanted) is is_wanted
    number, read = _NUMBERS[field]
    try:
        limit = read(value)
    except ValueError:
        raise UsageError(
            f"filter: {field}{sign}{value}: {value!r} is not a value of {field}"
        ) from None
    compare = _OPERATORS[sign]

    def test(job: JobRecord) -> bool:
        try:
            found = number(job)
        except ValueError:  # a recording may contain anything
            return False
        return found is not None and compare(found, limit)

    return test
