"""The metrics of a finished schedule, each from its definition (docs/spec/papers.md 0.3), over
plain lists.

Integers are summed exactly and divided once; ratios are summed with `math.fsum`. What has no
value (a mean over no jobs, a share of no time) is None.
"""

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

SECOND = 1_000_000
HOUR = 3600 * SECOND


class Row(NamedTuple):
    """One job that ran; any plain tuple in this order will do."""

    submit: int
    start: int
    end: int
    procs: int
    run: int
    kind: str


class _Instant(NamedTuple):
    """The state after the instant `at` is fully processed; it holds until the next one."""

    at: int
    idle: int
    queued: int
    smallest: int | None  # the fewest processors that any queued job wants


def measure(
    rows: Sequence[tuple[int, int, int, int, int, str]],
    procs: int,
    *,
    threshold_us: int = 10_000_000,
) -> dict[str, float | int | None]:
    """Every metric of `rows` on a machine of `procs`; times in microseconds, results in seconds."""
    jobs = [Row(*row) for row in rows]
    waits = [job.start - job.submit for job in jobs]
    responses = [job.end - job.submit for job in jobs]
    slowdowns = [(job.end - job.submit) / job.run for job in jobs if job.run > 0]
    bounded = [(job.end - job.submit) / max(job.run, threshold_us) for job in jobs]
    clipped = [max(1.0, ratio) for ratio in bounded]
    result: dict[str, float | int | None] = {}
    result |= _of_times("wait", waits)
    result |= _of_times("response", responses)
    result |= _of_ratios("slowdown", slowdowns)
    result["slowdown_skipped"] = sum(1 for job in jobs if job.run == 0)
    result |= _of_ratios("bounded_slowdown", bounded)
    result |= _of_ratios("bounded_slowdown_clipped", clipped)
    states = _instants(jobs, procs)
    result |= _of_machine(jobs, states, procs)
    result["queue_max"] = max((state.queued for state in states), default=0)
    backfilled = sum(1 for job in jobs if job.kind == "backfilled")
    result["backfilled_share"] = _share(backfilled, len(jobs))
    return result


def nearest_rank(values: Sequence[float], percent: int) -> float:
    """The ceil(percent/100 * n)-th smallest, in integers: no float decides which one it is."""
    rank = -(-percent * len(values) // 100)
    return sorted(values)[rank - 1]


def _of_times(name: str, times: list[int]) -> dict[str, float | None]:
    keys = [f"{name}_{what}_s" for what in ("mean", "median", "p95", "max")]
    if not times:
        return dict.fromkeys(keys)
    figures = (
        sum(times) / (len(times) * SECOND),
        nearest_rank(times, 50) / SECOND,
        nearest_rank(times, 95) / SECOND,
        max(times) / SECOND,
    )
    return dict(zip(keys, figures, strict=True))


def _of_ratios(name: str, ratios: list[float]) -> dict[str, float | None]:
    keys = [f"{name}_{what}" for what in ("mean", "median", "p95", "max")]
    if not ratios:
        return dict.fromkeys(keys)
    figures = (
        math.fsum(ratios) / len(ratios),
        nearest_rank(ratios, 50),
        nearest_rank(ratios, 95),
        max(ratios),
    )
    return dict(zip(keys, figures, strict=True))


def _of_machine(jobs: list[Row], states: list[_Instant], procs: int) -> dict[str, float | None]:
    if not jobs:
        return dict.fromkeys(
            (
                "makespan_s",
                "throughput_per_hour",
                "utilisation_makespan",
                "utilisation_submit",
                "loss_of_capacity",
            )
        )
    first = min(job.submit for job in jobs)
    last_submit = max(job.submit for job in jobs)
    makespan = max(job.end for job in jobs) - first
    work = sum(job.procs * job.run for job in jobs)
    # What was used while jobs still came: each job's part inside [first submit, last submit].
    work_inside = sum(
        job.procs * max(0, min(job.end, last_submit) - max(job.start, first)) for job in jobs
    )
    return {
        "makespan_s": makespan / SECOND,
        "throughput_per_hour": _share(len(jobs) * HOUR, makespan),
        "utilisation_makespan": _share(work, procs * makespan),
        "utilisation_submit": _share(work_inside, procs * (last_submit - first)),
        "loss_of_capacity": _share(_lost(states), procs * makespan),
    }


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _instants(jobs: list[Row], procs: int) -> list[_Instant]:
    """The state after each instant at which anything happened, in order."""
    happenings: dict[int, list[tuple[str, Row]]] = {}
    for job in jobs:
        happenings.setdefault(job.submit, []).append(("submit", job))
        happenings.setdefault(job.start, []).append(("start", job))
        happenings.setdefault(job.end, []).append(("end", job))
    idle = procs
    waiting: dict[int, int] = {}  # how many wait, by processors wanted
    states = []
    for at in sorted(happenings):
        for what, job in happenings[at]:
            if what == "submit":
                waiting[job.procs] = waiting.get(job.procs, 0) + 1
            elif what == "start":
                waiting[job.procs] = waiting.get(job.procs, 0) - 1
                idle -= job.procs
            else:
                idle += job.procs
        assert 0 <= idle <= procs, f"{idle} of {procs} idle at {at}"
        smallest = min((want for want, count in waiting.items() if count), default=None)
        states.append(_Instant(at, idle, sum(waiting.values()), smallest))
    return states


def _lost(states: list[_Instant]) -> int:
    """Idle processor time while some queued job would have fitted on the idle processors."""
    return sum(
        state.idle * (following.at - state.at)
        for state, following in itertools.pairwise(states)
        if state.smallest is not None and state.smallest <= state.idle
    )
