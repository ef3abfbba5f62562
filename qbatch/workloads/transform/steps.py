"""The pipeline: steps by name, as they are typed (``duplicate:load=1.4``), each with its parameters checked.

Steps run from left to right.  ``deadlines`` needs the responses of a reference schedule: the caller makes it, with EASY.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from qbatch.model.errors import UsageError, suggestion
from qbatch.workloads.log import Column, Log
from qbatch.workloads.transform.deadlines import DeadlineLog, with_artificial, with_deadlines
from qbatch.workloads.transform.load import duplicated, exact_estimates, expanded, taken

Reference = Callable[[Log], Column]
"""Gives the response of each row in whole seconds under the reference schedule, -1 for rows that do not run."""

Made = Callable[[DeadlineLog, dict[str, float], int, Reference], DeadlineLog]


@dataclass(frozen=True)
class Step:
    """A step: what it does, and its parameters with their defaults (None: it must be given)."""

    make: Made
    meaning: str
    parameters: dict[str, float | None]


def _loads(change: Callable[[Log], Log]) -> Callable[[DeadlineLog], DeadlineLog]:
    """Return a change of a log as one of a log that has no deadlines yet."""

    def make(log: DeadlineLog) -> DeadlineLog:
        if (log.deadline >= 0).any():
            raise UsageError("deadlines come last: steps that change jobs or the load stand before them")
        return DeadlineLog.without(change(log.log))

    return make


def _take(log: DeadlineLog, given: dict[str, float], seed: int, reference: Reference) -> DeadlineLog:
    return _loads(lambda each: taken(each, skip=_whole("skip", given), first=_whole("first", given)))(log)


def _deadlines(log: DeadlineLog, given: dict[str, float], seed: int, reference: Reference) -> DeadlineLog:
    responses = reference(log.log)
    return with_deadlines(log.log, responses, stringency=given["stringency"], share=given["share"], seed=seed)


STEPS: dict[str, Step] = {
    "take": Step(_take, "FIRST jobs that can run, after SKIP of them", {"skip": 0, "first": 0}),
    "estimates": Step(
        lambda log, given, seed, reference: _loads(exact_estimates)(log), "estimates become the run times", {}
    ),
    "duplicate": Step(
        lambda log, given, seed, reference: _loads(lambda each: duplicated(each, given["load"], seed))(log),
        "jobs are submitted twice until the load is LOAD times as high (1 to 2), nested",
        {"load": None},
    ),
    "expand": Step(
        lambda log, given, seed, reference: _loads(lambda each: expanded(each, given["load"]))(log),
        "run times and estimates become LOAD times as long",
        {"load": None},
    ),
    "deadlines": Step(
        _deadlines,
        "a SHARE of the jobs gets the deadline submission + max(run, (1 - STRINGENCY) x response under EASY)",
        {"stringency": None, "share": 1.0},
    ),
    "artificial": Step(
        lambda log, given, seed, reference: with_artificial(log, factor=given["factor"]),
        "jobs without a deadline get submission + max(24 h, FACTOR x estimate)",
        {"factor": 5.0},
    ),
}
"""The steps by name."""


def _whole(name: str, given: dict[str, float]) -> int:
    value = given[name]
    if value != int(value) or value < 0:
        raise UsageError(f"take: {name}={value:g} is not a whole number from 0")
    return int(value)


def read_steps(texts: list[str]) -> list[tuple[Step, dict[str, float]]]:
    """Return the steps that texts such as ``deadlines:stringency=0.2,share=0.8`` name, with their parameters.

    Raises:
        UsageError: for an unknown step or parameter, one that is missing, or a value that is no number.
    """
    found = []
    for text in texts:
        name, _, tail = text.partition(":")
        if name not in STEPS:
            raise UsageError(f"step {text!r}: there is no step {name!r}{suggestion(name, STEPS)} (known: {', '.join(STEPS)})")
        step = STEPS[name]
        given = {key: value for key, value in step.parameters.items() if value is not None}
        for pair in (pair for pair in tail.split(",") if pair):
            key, sign, value = pair.partition("=")
            if not sign or key not in step.parameters:
                known = ", ".join(step.parameters) or "it takes none"
                raise UsageError(f"step {text!r}: {pair!r} is no parameter of it{suggestion(key, step.parameters)} ({known})")
            given[key] = _number(value, text, key)
        missing = [key for key in step.parameters if key not in given]
        if missing:
            raise UsageError(f"step {text!r}: {missing[0]} is missing; write {name}:{missing[0]}=NUMBER")
        found.append((step, given))
    return found


def _number(value: str, text: str, key: str) -> float:
    try:
        number = float(value) if value.isascii() and "_" not in value else float("nan")
    except ValueError:
        number = float("nan")
    if not abs(number) < 1e15:
        raise UsageError(f"step {text!r}: {key}={value[:40]} is not a number")
    return number
