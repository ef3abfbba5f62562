"""The jobs of one class of one month: their numbers fixed, their demands met.

Everything random is drawn first.  Two exponents then bend the distributions of run time and of
requested memory until the class demands what the table has; bisection over whole numbers finds
them, with the same result on every machine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from qbatch.workloads.draws import Draws, exp, ln
from qbatch.workloads.log import Column
from qbatch.workloads.origin2000 import tables

RUN_TILTS = (-3.0, 6.0)
MEMORY_TILTS = (-6.0, 12.0)
"""The range of bends of the distributions: 0 is uniform over the logarithm, 1 uniform."""

_STEP_PERCENT = 5
_HALVINGS = 48
_STRAIGHT = 2.0**-20


@dataclass(frozen=True)
class DemandTarget:
    """The totals that one class of a month must reach: processor-seconds and KB-seconds of
    requested memory."""

    time: str
    size: str
    jobs: int
    procs_seconds: int
    memory_seconds: int


@dataclass(frozen=True)
class DrawnJobs:
    """Jobs in no order: seconds, and KB per processor."""

    procs: Column
    requested_s: Column
    run_s: Column
    memory_kb: Column
    used_kb: Column

    def __len__(self) -> int:
        return len(self.procs)


@dataclass(frozen=True)
class _Drawn:
    """The draws of a class before anything is bent."""

    wide: Column
    narrow: Column
    narrowness: Column
    requested_s: Column
    early: Column
    is_killed: Column
    run_s: Column
    run_u: Column
    is_bound: Column
    memory_u: Column


def draw_class(
    draws: Draws,
    target: DemandTarget,
    serial_tilt: float = 0.0,
    bound_percent: int = tables.BOUND_PERCENT,
) -> DrawnJobs | None:
    """Return the jobs of a class, or None if these draws cannot meet the demands.

    ``serial_tilt``: how much more the memory of serial sj jobs is bent than that of the others.
    ``bound_percent``: see ``tables.BOUND_PERCENT``.
    """
    drawn = _draw(draws, target, bound_percent)
    percent = tables.NARROW_PERCENT[target.size]
    jobs, sign = _met(draws, drawn, target, percent, serial_tilt)
    if jobs is not None or target.size == "sj" or sign == 0:
        return jobs
    # More jobs that are in their class because of their memory need more of it.  If not even all of
    # them suffice, no draw will.
    last = 100 if sign > 0 else 0
    if _met(draws, drawn, target, last, serial_tilt)[1] == sign:
        return None
    for share in range(percent + sign * _STEP_PERCENT, last + sign, sign * _STEP_PERCENT):
        jobs, _ = _met(draws, drawn, target, share, serial_tilt)
        if jobs is not None:
            return jobs
    return None


def _met(
    draws: Draws, drawn: _Drawn, target: DemandTarget, percent: int, serial_tilt: float
) -> tuple[DrawnJobs | None, int]:
    """Return the jobs with this share of narrow ones; else None and 1 for too little memory, -1 for
    too much, 0 for run times."""
    is_narrow = drawn.narrowness < percent
    procs = np.where(is_narrow, drawn.narrow, drawn.wide)
    run_s = _run_times(drawn, procs, target)
    if run_s is None:
        return None, 0
    memory_kb, sign = _memory(drawn, procs, is_narrow, run_s, target, serial_tilt)
    if memory_kb is None:
        return None, sign
    used_kb = _used_memory(draws, drawn, procs, run_s, memory_kb)
    return DrawnJobs(procs, drawn.requested_s, run_s, memory_kb, used_kb), 0


def early_count(jobs: int, percent: int) -> int:
    """Return how many jobs of a class end within a minute: the share, kept within the range of the
    paper."""
    low, high = tables.EARLY_PERCENT_RANGE
    return max(-(-jobs * low // 100), min(jobs * high // 100, (jobs * percent + 50) // 100))


def tilted(u: Column, low: Column, span: Column, tilt: float) -> Column:
    """Return numbers of [low, low * exp(span)]: density proportional to x**(tilt - 1), by the
    inverse of its distribution."""
    if abs(tilt) < _STRAIGHT:
        return np.asarray(low * exp(u * span))
    grown = u * (exp(tilt * span) - 1.0)
    return np.asarray(low * exp(ln(1.0 + grown) / tilt))


def _draw(draws: Draws, target: DemandTarget, bound_percent: int) -> _Drawn:
    jobs = target.jobs
    early = np.zeros(jobs, np.bool_)
    early[draws.shuffled(jobs)[: early_count(jobs, tables.EARLY_PERCENT[target.time])]] = True
    seconds = exp(draws.fractions(jobs) * ln(np.array([float(tables.EARLY_S)]))).astype(np.int64)
    return _Drawn(
        wide=_chosen(draws, tables.WIDE_PROCS[target.size], jobs),
        narrow=_chosen(draws, tables.NARROW_PROCS[target.size], jobs),
        narrowness=draws.below(100, jobs),
        requested_s=_chosen(draws, tables.REQUESTED_HOURS[target.time], jobs) * 3600,
        early=early,
        is_killed=~early & (draws.below(100, jobs) < tables.KILLED_PERCENT),
        run_s=np.clip(seconds, 1, tables.EARLY_S - 1),
        run_u=draws.fractions(jobs),
        is_bound=draws.below(100, jobs) < bound_percent,
        memory_u=draws.fractions(jobs),
    )


def _chosen(draws: Draws, weights: tables.Weights, jobs: int) -> Column:
    return np.array(list(weights), np.int64)[draws.weighted(list(weights.values()), jobs)]


def _run_times(drawn: _Drawn, procs: Column, target: DemandTarget) -> Column | None:
    """Return the run times with which the class demands its processor-seconds, or None if there are
    none."""
    low = np.full(len(procs), float(tables.EARLY_S))
    run_u = drawn.run_u.copy()
    bound = np.flatnonzero(drawn.is_bound & ~drawn.early & ~drawn.is_killed)
    run_u[bound[np.argsort(procs[bound], kind="stable")]] = np.sort(run_u[bound])

    span = ln(drawn.requested_s.astype(np.float64) / low)

    def run_s(tilt: float) -> Column:
        bent = np.clip(
            np.floor(tilted(run_u, low, span, tilt)).astype(np.int64),
            tables.EARLY_S,
            drawn.requested_s,
        )
        return np.where(
            drawn.early, drawn.run_s, np.where(drawn.is_killed, drawn.requested_s, bent)
        )

    found, _ = _solve(run_s, procs, target.procs_seconds, RUN_TILTS)
    return found


def _memory(
    drawn: _Drawn,
    procs: Column,
    is_narrow: Column,
    run_s: Column,
    target: DemandTarget,
    serial_tilt: float,
) -> tuple[Column | None, int]:
    """Return KB per processor with which the class demands its memory; else None and whether there
    is too little (1)."""
    smaller = tables.MEMORY_KB_MAX["sj" if target.size == "mj" else "mj"]
    least = np.where(is_narrow, smaller // procs + 1, -(-tables.MEMORY_KB_MIN // procs))
    most = tables.MEMORY_KB_MAX[target.size] // procs

    low = least.astype(np.float64)
    span = ln(most.astype(np.float64) / low)
    is_apart = (procs == 1) & (target.size == "sj") & (serial_tilt != 0.0)

    def memory_kb(tilt: float) -> Column:
        bent = tilted(drawn.memory_u, low, span, tilt)
        if is_apart.any():
            bent = np.where(is_apart, tilted(drawn.memory_u, low, span, tilt + serial_tilt), bent)
        return np.clip(np.floor(bent).astype(np.int64), least, most)

    return _solve(memory_kb, procs * run_s, target.memory_seconds, MEMORY_TILTS)


def _solve(
    values: Callable[[float], Column], weights: Column, wanted: int, tilts: tuple[float, float]
) -> tuple[Column | None, int]:
    """Return the values with the weighted sum, which grows with the tilt, nearest to ``wanted``;
    else None and the side."""
    low, high = tilts
    if int((values(low) * weights).sum()) > wanted:
        return None, -1
    if int((values(high) * weights).sum()) < wanted:
        return None, 1
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        if int((values(middle) * weights).sum()) < wanted:
            low = middle
        else:
            high = middle
    return values(high), 0


def _used_memory(
    draws: Draws, drawn: _Drawn, procs: Column, run_s: Column, memory_kb: Column
) -> Column:
    """Return KB per processor really used: a fixed share of the jobs uses less than a tenth of what
    it asked for.

    Nearly all jobs that end within a minute use less than one GB; those for which that is less than
    a tenth are the first of that share.  Among some of the others the shorter jobs come first.
    """
    jobs = len(procs)
    cap = (tables.SMALL_EARLY_KB - 1) // procs
    is_capped = drawn.early & (draws.below(100, jobs) < tables.SMALL_EARLY_PERCENT)
    tenth = -(-memory_kb // 10)
    key = draws.shuffled(jobs)
    bound = np.flatnonzero(draws.below(100, jobs) < tables.BOUND_MEMORY_PERCENT)
    key[bound[np.argsort(run_s[bound], kind="stable")]] = np.sort(key[bound])
    key += jobs * ~(is_capped & (cap < tenth))
    rank = np.argsort(np.argsort(key, kind="stable"), kind="stable")
    is_low = rank < (tables.LOW_MEMORY_PERCENT * jobs + 50) // 100
    u = draws.fractions(jobs)
    low = np.floor(u * (tenth - 1)).astype(np.int64)
    high = tenth + np.floor(u * (memory_kb - tenth + 1)).astype(np.int64)
    used = np.minimum(np.where(is_low, low, high), memory_kb)
    return np.asarray(np.maximum(np.where(is_capped, np.minimum(used, cap), used), 1))
