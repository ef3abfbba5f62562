"""The predecessor of each job of a log, for which its user waited before submitting it, and the
user's think time after that.

SWF has two fields for it (17, the preceding job, and 18, the think time).  If no job of a log has
them they are derived (docs/spec/papers.md 5.5, rule 14; sessions with gaps of at most 20 minutes
after Zilber, Amit and Talby 2005).
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np

from qbatch.model.errors import InputError
from qbatch.model.record import MICROSECONDS, Int64Array
from qbatch.workloads.log import Log

PATIENCE = 20 * 60 * MICROSECONDS
"""A user that submits later than this after an end, in microseconds, did not wait for it."""

NO_JOB = -1
"""The predecessor of a job without one."""


class Feedback(NamedTuple):
    """Of each row of a log: the row of its predecessor, ``NO_JOB`` for none, and the think time in
    microseconds.

    ``is_told``: the log has the fields; else they are derived.
    """

    predecessor: Int64Array
    think: Int64Array
    is_told: bool


def feedback_of(log: Log) -> Feedback:
    """Return the predecessors of the jobs of a log.

    Raises:
        InputError: jobs wait for each other in a circle (field 17).
    """
    number, before = (
        np.asarray(log["job"]).astype(np.int64),
        np.asarray(log["preceding_job"]).astype(np.int64),
    )
    if not (before > 0).any():
        return _derived(log)
    numbers, first = np.unique(number, return_index=True)
    places = np.minimum(np.searchsorted(numbers, before), len(numbers) - 1)
    is_there = (numbers[places] == before) & (before != number) & (before > 0)
    found = np.where(is_there, first[places], NO_JOB).astype(np.int64)
    think = np.where(is_there, _microseconds(np.maximum(np.asarray(log["think_time"]), 0)), 0)
    # In each step every row looks twice as far back: one that still sees another at the end is in a
    # circle, or behind one.
    ahead = found.copy()
    for _ in range(len(ahead).bit_length()):
        ahead = np.where(ahead >= 0, ahead[np.maximum(ahead, 0)], NO_JOB)
    if (ahead >= 0).any():
        row = int(ahead[np.flatnonzero(ahead >= 0)[0]])
        raise InputError(
            f"{log.name}: job {number[row]} waits for itself, by field 17 of the jobs before it"
        )
    return Feedback(found, think, is_told=True)


def _derived(log: Log) -> Feedback:
    user = np.asarray(log["user"])
    submit, wait, run = (_microseconds(np.asarray(log[name])) for name in ("submit", "wait", "run"))
    end = np.where((wait >= 0) & (run >= 0), submit + wait + run, NO_JOB)
    predecessor, think = np.full(len(log), NO_JOB, np.int64), np.zeros(len(log), np.int64)
    running: dict[int, list[tuple[int, int, int]]] = {}
    latest: dict[int, tuple[int, int, int]] = {}
    order = np.lexsort((np.asarray(log["job"]), submit))
    facts = zip(
        order.tolist(),
        user[order].tolist(),
        submit[order].tolist(),
        end[order].tolist(),
        strict=True,
    )
    for rank, (row, owner, now, over) in enumerate(facts):
        if owner < 0:
            continue
        ends = running.setdefault(owner, [])
        while ends and ends[0][0] <= now:
            latest[owner] = max(latest.get(owner, ends[0]), heapq.heappop(ends))
        if owner in latest and now - latest[owner][0] <= PATIENCE:
            predecessor[row], think[row] = latest[owner][2], now - latest[owner][0]
        if over >= 0:
            heapq.heappush(ends, (over, rank, row))
    return Feedback(predecessor, think, is_told=False)


def _microseconds(seconds: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Int64Array:
    """Return seconds as microseconds, negative (unknown) ones as -1."""
    return np.where(seconds < 0, -1, np.rint(np.maximum(seconds, 0) * float(MICROSECONDS))).astype(
        np.int64
    )
