"""The pipeline: steps by name (``duplicate:load=1.4``), with their parameters checked.

Steps run from left to right.  ``deadlines`` needs the responses of a reference schedule: the caller
makes it, with EASY.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from qbatch.model.errors import UsageError, suggestion
from qbatch.workloads.log import Column, Log
from qbatch.workloads.transform.deadlines import DeadlineLog, with_artificial, with_deadlines
from qbatch.workloads.transform.load import (
    duplicated,
    exact_estimates,
    expanded,
    taken,
    users_estimates,
)
from qbatch.workloads.transform.resampling import RESAMPLINGS, resampled

Reference = Callable[[Log], Column]
"""Returns the response of each row in whole seconds under the reference schedule, -1 for rows that
do not run."""

Given = dict[str, Any]
"""Parameters as given: a number, or one of the words of the parameter."""

Made = Callable[[DeadlineLog, Given, int, Reference], DeadlineLog]


@dataclass(frozen=True)
class Step:
    """A step: its description, its parameters with their defaults (None: required), and those that
    may be left out.

    ``words``: for each parameter that is not a number, its possible values.
    """

    make: Made
    meaning: str
    parameters: dict[str, float | str | None]
    optional: tuple[str, ...] = ()
    words: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """Return the names of all parameters."""
        return [*self.parameters, *self.optional]


def _changed(log: DeadlineLog, change: Callable[[Log], Log]) -> DeadlineLog:
    """Return a log that has no deadlines yet, changed."""
    if (log.deadline >= 0).any():
        raise UsageError("deadlines come last: put steps that change jobs or the load before them")
    return DeadlineLog.without(change(log.log))


def _take(log: DeadlineLog, given: Given, seed: int, reference: Reference) -> DeadlineLog:
    return _changed(
        log,
        lambda each: taken(
            each, skip=_whole("take", "skip", given), first=_whole("take", "first", given)
        ),
    )


def _deadlines(log: DeadlineLog, given: Given, seed: int, reference: Reference) -> DeadlineLog:
    responses = reference(log.log)
    return with_deadlines(
        log.log, responses, stringency=given["stringency"], share=given["share"], seed=seed
    )


def _estimates(log: DeadlineLog, given: Given, seed: int, reference: Reference) -> DeadlineLog:
    if given["model"] == "tsafrir":
        largest_s = _whole("estimates", "max", given) if "max" in given else None
        own_seed = _whole("estimates", "seed", given) if "seed" in given else seed
        return _changed(log, lambda each: users_estimates(each, seed=own_seed, largest_s=largest_s))
    for name in ("max", "seed"):
        if name in given:
            raise UsageError(f"estimates: {name} goes with model=tsafrir")
    return _changed(log, exact_estimates)


def _resample(log: DeadlineLog, given: Given, seed: int, reference: Reference) -> DeadlineLog:
    own_seed = _whole("resample", "seed", given) if "seed" in given else seed
    return _changed(log, lambda each: resampled(each, given["by"], own_seed))


STEPS: dict[str, Step] = {
    "take": Step(_take, "FIRST jobs that can run, after SKIP of them", {"skip": 0, "first": 0}),
    "estimates": Step(
        _estimates,
        (
            "estimates become the run times; model=tsafrir: what users would request, at most MAX "
            "seconds"
        ),
        {"model": "exact"},
        optional=("max", "seed"),
        words={"model": ("exact", "tsafrir")},
    ),
    "duplicate": Step(
        lambda log, given, seed, reference: _changed(
            log, lambda each: duplicated(each, given["load"], seed)
        ),
        "jobs are submitted twice until the load is LOAD times as high (1 to 2), nested",
        {"load": None},
    ),
    "expand": Step(
        lambda log, given, seed, reference: _changed(
            log, lambda each: expanded(each, given["load"])
        ),
        "run times and estimates become LOAD times as long",
        {"load": None},
    ),
    "resample": Step(
        _resample,
        (
            "BY weeks or users, as many as the log has, drawn with replacement; jobs keep weekday "
            "and "
            "hour"
        ),
        {"by": "weeks"},
        optional=("seed",),
        words={"by": RESAMPLINGS},
    ),
    "deadlines": Step(
        _deadlines,
        (
            "a SHARE of the jobs gets the deadline submission + max(run, (1 - STRINGENCY) x "
            "response "
            "under EASY)"
        ),
        {"stringency": None, "share": 1.0},
    ),
    "artificial": Step(
        lambda log, given, seed, reference: with_artificial(log, factor=given["factor"]),
        "jobs without a deadline get submission + max(24 h, FACTOR x estimate)",
        {"factor": 5.0},
    ),
}
"""The steps by name."""


def _whole(step: str, name: str, given: Given) -> int:
    value = given[name]
    if value != int(value) or value < 0:
        raise UsageError(f"{step}: {name}={value:g} is not a whole number from 0")
    return int(value)


def read_steps(texts: list[str]) -> list[tuple[Step, Given]]:
    """Return the steps of texts such as ``deadlines:stringency=0.2,share=0.8``, with their
    parameters.

    Raises:
        UsageError: a step or parameter is unknown, one is missing, or a value is not a number or
            word of its parameter.
    """
    found = []
    for text in texts:
        name, _, tail = text.partition(":")
        if name not in STEPS:
            raise UsageError(
                f"step {text!r}: there is no step {name!r}{suggestion(name, STEPS)} (known: "
                f"{', '.join(STEPS)})"
            )
        step = STEPS[name]
        given: Given = {key: value for key, value in step.parameters.items() if value is not None}
        for pair in (pair for pair in tail.split(",") if pair):
            key, sign, value = pair.partition("=")
            if not sign or key not in step.names:
                known = ", ".join(step.names)
                raise UsageError(
                    f"step {text!r}: {pair!r} is no parameter of it{suggestion(key, step.names)} "
                    f"({known})"
                )
            if key not in step.words:
                given[key] = _number(value, text, key)
            elif value in (words := step.words[key]):
                given[key] = value
            else:
                near = suggestion(value, words)
                raise UsageError(
                    f"step {text!r}: {key}={value[:40]} is none of {', '.join(words)}{near}"
                )
        missing = [key for key in step.parameters if key not in given]
        if missing:
            raise UsageError(
                f"step {text!r}: {missing[0]} is missing; write {name}:{missing[0]}=NUMBER"
            )
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
