"""A small workload generator with a seed, for demonstrations and tests, and all models that
generate a log, by name.

It draws what makes scheduling interesting and nothing more: arrivals with a daily and a weekly
cycle, many short and few long jobs, sizes that favour powers of two.  Estimates are rounded up to
popular values, as by people; there are a few busy users, and campaigns (one user submits many equal
jobs at once).  Unlike the Lublin-Feitelson model (``lublin``) it is not fitted to a machine.

Deterministic on every machine (law 5): raw 64-bit draws of PCG64, a stream that NumPy promises not
to change, integer arithmetic and correctly rounded operations; no transcendental function.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from importlib import import_module
from math import isqrt
from types import MappingProxyType
from typing import Any

import numpy as np

from qbatch.model.errors import UsageError, suggestion
from qbatch.workloads.draws import Draws
from qbatch.workloads.header import PROCS_MAX, parse_header
from qbatch.workloads.log import FIELDS, Column, Log, absent, compact

JOBS_MAX = 50_000_000
UNIX_START_TIME = 1_735_516_800  # Monday, 30 December 2024, 00:00 UTC
POPULAR_S = tuple(60 * minutes for minutes in (5, 10, 15, 30, 60, 120, 240, 480, 720, 1080))
RUN_MAX_S = POPULAR_S[-1]

_HOUR_S = 3_600
# Arrivals per hour of the day and per day of the week (Monday first), relative: quiet nights, busy
# afternoons.
_HOURLY = (
    30,
    24,
    20,
    16,
    14,
    14,
    18,
    28,
    50,
    78,
    96,
    104,
    98,
    100,
    110,
    112,
    108,
    98,
    80,
    66,
    58,
    52,
    44,
    36,
)
_DAILY = (100, 108, 110, 106, 96, 48, 40)
# Run times: an octave [2**k, 2**(k+1)) seconds is drawn by these weights, then a second within it.
_OCTAVE_FIRST = 3
_OCTAVE_WEIGHTS = (5, 7, 9, 9, 9, 9, 9, 9, 8, 8, 8, 7, 3)
_SERIAL_PERCENT = 24
_POWER_OF_TWO_PERCENT = 60
_EXACT_PERCENT = 12  # jobs that run up to their estimate
_FAILED_PERCENT = 6
_CAMPAIGN_MAX = 120
_CAMPAIGN_GAP_S = 40


def generate_log(
    *,
    jobs: int,
    procs: int,
    load: float = 0.85,
    seed: int = 1,
    accuracy: float = 0.4,
    campaigns: float = 0.0,
) -> Log:
    """Return a generated log of ``jobs`` jobs for ``procs`` processors.

    ``load``: the work offered per processor and second over the span of submissions, reached by
    stretching the span. ``accuracy``: about the mean of run over estimate.  ``campaigns``: the
    share of jobs that are submitted in bursts. Times are whole seconds.  Raises UsageError for
    values out of range.
    """
    for is_right, wrong in (
        (1 <= jobs <= JOBS_MAX, f"--jobs is {jobs}; use 1 to {JOBS_MAX:,}"),
        (1 <= procs <= PROCS_MAX, f"--procs is {procs}; use 1 to {PROCS_MAX:,}"),
        (0.001 <= load <= 1000, f"--load is {load:g}; use 0.001 to 1000, for example 0.85"),
        (seed >= 0, f"--seed is {seed}; use 0 or more"),
        (0.01 <= accuracy <= 1, f"--accuracy is {accuracy:g}; use 0.01 to 1"),
        (0 <= campaigns <= 1, f"--campaigns is {campaigns:g}; use a share of jobs from 0 to 1"),
    ):
        if not is_right:
            raise UsageError(f"trace generate: {wrong}")
    draws = Draws(seed)
    leader = _campaign_leaders(draws, jobs, campaigns)
    is_leader = leader == np.arange(jobs)
    size = _sizes(draws, jobs, procs)[leader]
    base_s = (1 << _OCTAVE_FIRST + draws.weighted(_OCTAVE_WEIGHTS, jobs))[leader]
    run = np.minimum(base_s + draws.below(base_s, jobs), RUN_MAX_S)
    estimate = _estimates(draws, run, accuracy)
    estimate = np.maximum(
        estimate, np.maximum.reduceat(estimate, np.flatnonzero(is_leader))[np.cumsum(is_leader) - 1]
    )
    is_exact = draws.below(100, jobs) < _EXACT_PERCENT
    run = np.where(is_exact & is_leader, estimate, run)
    # Users by Zipf's law; their number is about the square root of half the jobs, 4 to 400.
    users = min(max(4, isqrt((jobs - 1) // 2) + 1), 400)
    user = (1 + draws.weighted([1_000_000 // rank for rank in range(1, users + 1)], jobs))[leader]
    span_s = max(1, round(float((run * size).sum()) / (procs * load)))
    submit = _submits(draws, leader, span_s)
    status = np.where(draws.below(100, jobs) < _FAILED_PERCENT, 0, 1)
    order = np.argsort(submit, kind="stable")
    values = {
        "submit": submit,
        "run": run,
        "procs_allocated": size,
        "procs_requested": size,
        "time_requested": estimate,
        "status": status,
        "user": user,
        "group": (user - 1) % 8 + 1,
        "queue": np.where(estimate <= _HOUR_S, 1, 2),
    }
    values = {name: column[order] for name, column in values.items()} | {
        "job": np.arange(1, jobs + 1)
    }
    command = f"qbatch trace generate --jobs {jobs} --procs {procs} --load {load:g} --seed {seed}"
    command += f" --accuracy {accuracy:g} --campaigns {campaigns:g}"
    return generated_log("generated", command, values, procs=procs)


def _campaign_leaders(draws: Draws, jobs: int, campaigns: float) -> Column:
    """Return for each job the first job of its campaign; a job outside any campaign is its own
    leader."""
    length = 1 + draws.below(_CAMPAIGN_MAX, jobs)
    # A campaign has on average 1 + (max + 1) / 2 more jobs than a single start: weight starts
    # accordingly.
    mean = (_CAMPAIGN_MAX + 1) / 2
    per_mille = round(1000 * campaigns / (campaigns + (1 - campaigns) * mean)) if campaigns else 0
    length = np.where(draws.below(1000, jobs) < per_mille, length, 1)
    ends = np.cumsum(length)
    leaders = np.concatenate(([0], ends[ends < jobs]))
    return np.repeat(leaders, np.diff(np.append(leaders, jobs)))


def _sizes(draws: Draws, jobs: int, procs: int) -> Column:
    """Draw serial jobs, powers of two (each exponent equally likely, the largest less) and other
    sizes."""
    exponents = procs.bit_length() - 1
    kind = draws.below(100, jobs)
    weights = [1] if exponents < 1 else [4] * max(exponents - 1, 0) + [1]
    power = 1 << np.minimum(1 + draws.weighted(weights, jobs), exponents)
    other = 1 + draws.below(power, jobs)
    size = np.where(kind < _SERIAL_PERCENT + _POWER_OF_TWO_PERCENT, power, other)
    return np.where(kind < _SERIAL_PERCENT, 1, size)


def _estimates(draws: Draws, run: Column, accuracy: float) -> Column:
    """Stretch each run time by a random factor with the mean 1 / accuracy, and round up to a
    popular value."""
    per_mille = 1000 + draws.below(max(1, round(2000 / accuracy) - 2000), len(run))
    wished = -(-run * per_mille // 1000)
    popular = np.asarray(POPULAR_S, dtype=np.int64)
    estimate: Column = popular[np.minimum(np.searchsorted(popular, wished), len(popular) - 1)]
    return estimate


def _submits(draws: Draws, leader: Column, span_s: int) -> Column:
    """Return the submit times: leaders by the cycles of day and week, the others shortly after
    their leader."""
    hours = span_s // _HOUR_S + 1
    hour = np.arange(hours, dtype=np.int64)
    weight = (
        np.asarray(_HOURLY, dtype=np.int64)[hour % 24]
        * np.asarray(_DAILY, dtype=np.int64)[hour // 24 % 7]
    )
    is_leader = leader == np.arange(len(leader))
    campaigns = int(np.count_nonzero(is_leader))
    second = draws.weighted(weight, campaigns) * _HOUR_S + draws.below(_HOUR_S, campaigns)
    second = np.minimum(second, span_s)[np.cumsum(is_leader) - 1]
    gap = np.where(is_leader, 0, draws.below(2 * _CAMPAIGN_GAP_S, len(leader)))
    total = np.cumsum(gap)
    submit: Column = np.minimum(second + total - total[leader], span_s)
    # The span is exact: the first job comes at 0, the last at its end.
    submit[np.argmin(submit)] = 0
    submit[np.argmax(submit)] = span_s if len(submit) > 1 else 0
    return submit


def generated_log(
    name: str,
    command: str,
    values: dict[str, Column],
    *,
    computer: str = "none (generated workload)",
    installation: str = "qbatch",
    start: int = UNIX_START_TIME,
    procs: int,
    nodes: int | None = None,
    longest_s: int = RUN_MAX_S,
    queues: Mapping[int, str] = MappingProxyType({1: "short", 2: "long"}),
    notes: Iterable[str] = (),
) -> Log:
    """Return generated columns, the others absent, as a log with a header that names the command.

    ``start``: log second 0, in seconds since 1970.  ``longest_s``: the longest run or request that
    the model can give.
    """
    jobs, end_s = len(values["job"]), int((values["submit"] + values["run"]).max())
    lines = [
        "Version: 2.2",
        f"Computer: {computer}",
        f"Installation: {installation}",
        f"MaxJobs: {jobs}",
        f"MaxRecords: {jobs}",
        "Preemption: No",
        f"UnixStartTime: {start}",
        "TimeZoneString: UTC",
        f"StartTime: {_header_date(start)}",
        f"EndTime: {_header_date(start + min(end_s, 10**11))}",
        f"MaxNodes: {nodes or procs}",
        f"MaxProcs: {procs}",
        f"MaxRuntime: {longest_s}",
        *([f"MaxQueues: {len(queues)}"] if queues else []),
        *(f"Queue: {number} {queue}" for number, queue in queues.items()),
        f"Note: made by {command}",
        *(f"Note: {note}" for note in notes),
    ]
    header = parse_header(f"; {line}" for line in lines)
    columns = {
        field: compact(values[field]) if field in values else absent(jobs) for field in FIELDS
    }
    line = np.arange(len(lines) + 1, len(lines) + jobs + 1, dtype=np.int32)
    return Log(name, hashlib.sha256(command.encode()).hexdigest(), header, columns, line)


def _header_date(second: int) -> str:
    """Return an instant, in seconds since 1970, in the date format of headers, whatever the
    locale."""
    moment = datetime.fromtimestamp(second, UTC)
    days = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
    months = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
    return (
        f"{days[moment.weekday()]} {months[moment.month - 1]} {moment:%d %H:%M:%S} UTC "
        f"{moment.year}"
    )


def _function(module: str, name: str) -> Callable[[], Callable[..., Log]]:
    """Return a function that loads another one only when it is called."""
    return lambda: getattr(import_module(module), name)


MODELS: dict[str, Callable[[], Callable[..., Log]]] = {
    "lublin": _function("qbatch.workloads.lublin", "generate_lublin"),
    "origin2000": _function("qbatch.workloads.origin2000", "generate_month"),
    "plain": _function("qbatch.workloads.generate", "generate_log"),
}
"""The models: that of Lublin and Feitelson, a month of the Origin 2000, and the small generator of
``qbatch trace generate``.  A sweep takes these."""

ALL_MODELS = MODELS | {"cluster": _function("qbatch.workloads.cluster", "cluster_log")}
"""Also the GPU cluster, of which a log has its own machine."""

_TYPES: dict[str, Callable[[str], Any]] = {"int": int, "float": float, "str": str}


def is_model(text: str) -> bool:
    """Return whether a text names a model, with or without parameters."""
    return text.partition(":")[0] in MODELS


def read_model(text: str) -> Callable[[int], Log]:
    """Return the function from a seed to the log of a text such as ``lublin:jobs=5000,procs=128``.

    The parameters are those of ``qbatch generate`` and ``qbatch trace generate``, with ``_`` or
    ``-`` in their names, without the seed.

    Raises:
        UsageError: names the parameter and those of the model.
    """
    name, _, tail = text.partition(":")
    where = f"log {text!r}"
    if name not in MODELS:
        raise UsageError(
            f"{where}: there is no model {name!r}{suggestion(name, MODELS)} (known: "
            f"{', '.join(MODELS)})"
        )
    make = MODELS[name]()
    takes = {key: each for key, each in inspect.signature(make).parameters.items() if key != "seed"}
    given: dict[str, Any] = {}
    for pair in (pair for pair in tail.split(",") if pair):
        key, sign, value = pair.partition("=")
        key = key.replace("-", "_")
        if not sign or key not in takes:
            known = f"it takes {', '.join(takes)}"
            raise UsageError(
                f"{where}: {pair!r} is no parameter of {name}{suggestion(key, takes)} ({known})"
            )
        kind = str(takes[key].annotation).partition(" ")[0]
        try:
            given[key] = _TYPES[kind](value)
        except ValueError:
            raise UsageError(
                f"{where}: {key}={value} is no {'whole ' if kind == 'int' else ''}number"
            ) from None
    missing = [
        key
        for key, each in takes.items()
        if each.default is inspect.Parameter.empty and key not in given
    ]
    if missing:
        raise UsageError(f"{where}: {', '.join(f'{key}=' for key in missing)} is missing")
    return lambda seed: make(**given, seed=seed)
