"""Users' estimates of run times: few popular values have most jobs, the largest most of all.

Source: D. Tsafrir, Y. Etsion and D. G. Feitelson, *Modeling user runtime estimates*, Job Scheduling
Strategies for Parallel Processing, 2005; constants and readings of its program in
docs/spec/workloads.md 2.2.  First the histogram: up to 20 popular *head* values with 89 % of the
jobs, and a *tail* of many rare ones.  Then each job, the longest first, draws an estimate that its
run time does not exceed.  The draws are the same on every machine: see ``draws``.
"""

from __future__ import annotations

from itertools import chain, pairwise

import numpy as np

from qbatch.model.errors import UsageError
from qbatch.workloads.draws import Draws, exp, ln
from qbatch.workloads.log import Column

LEAST_LARGEST_S = 3600
"""The model has a largest estimate of at least an hour."""

HEAD = 20
HEAD_PERCENT = 89.0

_MINUTE_S, _HOUR_S = 60, 3600
_LARGEST_S_MAX = 10**9
_BINS_BY_JOBS = (
    (0, 0),
    (20, 10),
    (200, 20),
    (1_000, 35),
    (10_000, 90),
    (70_000, 340),
    (250_000, 565),
)
POPULAR_S = (
    *(minutes * _MINUTE_S for minutes in (5, 15, 10, 20, 30)),
    *(hours * _HOUR_S for hours in (1, 2, 3, 4, 5, 6, 8, 10, 12, 18)),
)
"""Estimates that users type most, in seconds."""
# The head is filled up with multiples of these; of a minute only if the largest estimate is below
# 100 minutes.
_FILLING_S = (
    *(hours * _HOUR_S for hours in (200, 100, 50, 10, 5, 2, 1)),
    *(minutes * _MINUTE_S for minutes in (20, 10, 5, 1)),
)
# The popularity rank of each head value in four logs (SDSC-106, CTC, KTH-4h, BLUE), the largest
# estimate first.
_RANKS = (
    (3, 1, 1, 1),
    (1, 3, 4, 6),
    (4, 4, 10, 5),
    (17, 2, 14, 3),
    (13, 12, 20, 7),
    (7, 9, 2, 2),
    (8, 8, 3, 18),
    (18, 18, 7, 19),
    (2, 6, 12, 4),
    (6, 7, 6, 11),
    (16, 11, 19, 20),
    (10, 20, 5, 9),
    (5, 16, 18, 10),
    (15, 5, 16, 14),
    (14, 14, 9, 13),
    (19, 13, 17, 16),
    (11, 10, 15, 15),
    (12, 15, 13, 17),
    (9, 17, 8, 8),
    (20, 19, 11, 12),
)
_LAST_PLACE = {
    rank: max(place for place, row in enumerate(_RANKS) if rank in row)
    for rank in range(1, HEAD + 1)
}
_SHIFTS_S = (30, -30, 20, -20, 10, -10)
_STREAM = 6
_RANK_DRAWS, _TAIL_DRAWS, _JOB_DRAWS = 1, 2, 3


def tsafrir_estimates(run_s: Column, *, seed: int, largest_s: int | None = None) -> Column:
    """Return estimates for run times, none below its run time, in whole seconds.

    Args:
        run_s: run times in seconds, 0 or more; shape (jobs,).
        seed: a whole number >= 0.
        largest_s: the largest estimate, which is also the most popular one; None: the least whole
            hour that no run exceeds.

    Raises:
        UsageError: ``largest_s`` is out of range or below a run time, or more jobs run long than
            the model has long estimates.
    """
    jobs = len(run_s)
    if jobs == 0:
        return np.empty(0, np.int64)
    run = np.ceil(run_s).astype(np.int64)
    longest = int(run.max())
    if largest_s is None:
        largest_s = max(-(-longest // _HOUR_S) * _HOUR_S, LEAST_LARGEST_S)
    if not LEAST_LARGEST_S <= largest_s <= _LARGEST_S_MAX:
        raise UsageError(
            f"the largest estimate is {largest_s} s; use {LEAST_LARGEST_S} to {_LARGEST_S_MAX:,} "
            "seconds"
        )
    if longest > largest_s:
        above = int(np.count_nonzero(run > largest_s))
        raise UsageError(
            f"the largest estimate is {largest_s} s, but {above:,} of {jobs:,} jobs run longer, "
            f"the longest {longest} s; "
            f"use {longest} or more, or leave it out"
        )
    time, count = estimate_histogram(jobs, largest_s, seed)
    return _assigned(run, np.repeat(time, count)[::-1], seed)


def estimate_histogram(jobs: int, largest_s: int, seed: int) -> tuple[Column, Column]:
    """Return the estimates in seconds, ascending, and how many jobs have each; the counts add up to
    ``jobs`` (1 or more)."""
    bins = bins_of(jobs)
    head = _head_times(largest_s)[:bins]
    rank = _head_ranks(len(head), seed)
    tail = _tail_times(bins, largest_s, set(head))
    head_percent = HEAD_PERCENT if tail else 100.0
    popularity = np.arange(2, len(head) + 1).astype(np.float64)
    share = np.concatenate((np.zeros(1), 14.0491 * exp(-0.177531 * popularity) + 0.462513))
    share[0] = head_percent - sum(share.tolist())
    head_share = share[np.array(rank) - 1]
    place = np.arange(HEAD + 1, HEAD + 1 + len(tail)).astype(np.float64)
    rare = 795.6 * exp(-2.267 * ln(place))
    rare = rare / (sum(rare.tolist()) or 1.0) * (100.0 - head_percent)
    tail_share = rare[Draws((seed, _STREAM, _TAIL_DRAWS)).shuffled(len(tail))]
    count = _counts(np.concatenate((head_share, tail_share)), jobs)
    time = np.array([*head, *tail], np.int64)
    order = np.argsort(time)
    return time[order], count[order]


def bins_of(jobs: int) -> int:
    """Return the number of different estimates for ``jobs`` jobs: linear between the values of the
    model, rounded, at least 1."""
    for (fewer, low), (more, high) in pairwise(_BINS_BY_JOBS):
        if jobs <= more:
            width = more - fewer
            return max(low + (2 * (jobs - fewer) * (high - low) + width) // (2 * width), 1)
    return _BINS_BY_JOBS[-1][1]


def _head_times(largest_s: int) -> list[int]:
    """Return the popular estimates, the largest first."""
    popular = [largest_s, *(each for each in POPULAR_S if each < largest_s)]
    multiples = (range((largest_s - 1) // step * step, 0, -step) for step in _FILLING_S)
    for each in chain.from_iterable(multiples):
        if len(popular) >= HEAD:
            break
        if each not in popular:
            popular.append(each)
    return popular


def _head_ranks(count: int, seed: int) -> list[int]:
    """Return the popularity rank, from 1, of each of the first ``count`` head values.

    The largest estimate has rank 1.  For each of the others the ranks in its row join a pool, and
    the better of two draws from it is taken; a rank at its last row is taken without a draw.  With
    fewer than 20 values the ranks close up.
    """
    draws = Draws((seed, _STREAM, _RANK_DRAWS))
    ranks = [1]
    pool = [rank for rank in _RANKS[0] if rank != 1]
    for place in range(1, HEAD):
        pool += [rank for rank in _RANKS[place] if rank not in ranks]
        due = sorted(
            rank for rank, last in _LAST_PLACE.items() if last <= place and rank not in ranks
        )
        drawn = draws.below(len(pool), 2).tolist()
        taken = due[0] if due else min(pool[each] for each in drawn)
        ranks.append(taken)
        pool = [rank for rank in pool if rank != taken]
    kept = sorted(ranks[:count])
    return [1 + kept.index(rank) for rank in ranks[:count]]


def _tail_times(bins: int, largest_s: int, used: set[int]) -> list[int]:
    """Return the rare estimates: whole minutes, denser for short ones.

    An estimate that is in use already moves by up to 30 s, or is left out.
    """
    count = max(bins - HEAD, 0)
    bend = 1.0 + 12.1039 * float(exp(-0.6026 * ln(np.array([float(bins)])))[0])
    found: list[int] = []
    taken = set(used)
    for place in range(1, count + 1):
        x = place / count
        time = int(largest_s * ((bend - 1.0) * x) / (bend - x) / _MINUTE_S + 0.5) * _MINUTE_S
        fitting = (time + shift for shift in (0, *_SHIFTS_S) if 0 < time + shift <= largest_s)
        chosen = next((each for each in fitting if each not in taken), None)
        if chosen is not None:
            found.append(chosen)
            taken.add(chosen)
    return found


def _counts(percent: Column, jobs: int) -> Column:
    """Return whole numbers of jobs, at least 1, with the right sum; the first value, the most
    popular, takes the rest.

    An excess is taken one by one from the value that has most, among equals from the last: the
    first one stays the most popular.
    """
    count = np.maximum(np.floor(percent * jobs / 100.0 + 0.5).astype(np.int64), 1)
    missing = jobs - int(count.sum())
    if missing >= 0:
        count[0] += missing
        return count
    for _ in range(-missing):
        count[len(count) - 1 - int(np.argmax(count[::-1]))] -= 1
    return count


def _assigned(run: Column, estimate: Column, seed: int) -> Column:
    """Return an estimate for each run time, of the given ones (descending, as many as jobs), drawn
    among those long enough."""
    jobs = len(run)
    order = np.argsort(-run, kind="stable")
    enough = np.searchsorted(-estimate, -run[order], side="right")
    choices = enough - np.arange(jobs)
    if choices.min() < 1:
        short = int(np.argmax(choices < 1))
        least, there = int(run[order[short]]), int(enough[short])
        raise UsageError(
            f"{short + 1:,} of {jobs:,} jobs run {least} s or longer, but only {there:,} estimates "
            "of the model are that long; "
            f"take more jobs, or a largest estimate above {int(estimate[0])} s"
        )
    drawn = Draws((seed, _STREAM, _JOB_DRAWS)).below(choices, jobs).tolist()
    values = estimate.tolist()
    taken: list[int] = []
    left: list[int] = []
    reached = 0
    for upto, place in zip(enough.tolist(), drawn, strict=True):
        left += values[reached:upto]
        reached = upto
        left[place], left[-1] = left[-1], left[place]
        taken.append(left.pop())
    result = np.empty(jobs, np.int64)
    result[order] = taken
    return result
