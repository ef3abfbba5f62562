"""The spans in which jobs held processors: from start to end, or the execution intervals of
interrupted jobs.

Execution intervals are one line each of row, begin, end, processors, (first) host, and whether the
work was kept (1) or discarded (0).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Int64Array = NDArray[np.int64]


class Peak(NamedTuple):
    """The most processors in use at once, and the first instant at which they are."""

    procs: int
    at: int


def most_at_once(begin: Int64Array, end: Int64Array, procs: Int64Array) -> Peak:
    """Return the peak of some spans, ends before begins; a span of no length counts at its begin,
    and by itself."""
    lasting = end > begin
    at = np.concatenate([end[lasting], begin[lasting]])
    change = np.concatenate([-procs[lasting], procs[lasting]])
    order = np.argsort(at, kind="stable")  # at one instant, ends come first
    used = np.cumsum(change[order])
    most = Peak(int(used.max()), int(at[order[np.argmax(used)]])) if len(used) else Peak(0, 0)
    widest = int(np.argmax(procs)) if len(procs) else -1
    return (
        most
        if widest < 0 or procs[widest] <= most.procs
        else Peak(int(procs[widest]), int(begin[widest]))
    )


def too_small(
    option: str, given: int, what: str, peak: Peak, when: str, unit: str = "processors"
) -> str:
    """Return why a machine of the size given by an option cannot be the one on which something
    ran."""
    return (
        f"{option} {given}: {what} has {peak.procs} {unit} in use at once ({when}), which a "
        "smaller machine does not have; give "
        f"{peak.procs} or more, or leave it out"
    )


class Spans(NamedTuple):
    """The job of row ``job`` had ``procs`` processors in the half-open ``[begin, end)``, in
    microseconds, on the host ``host`` (-1: unknown)."""

    job: Int64Array
    begin: Int64Array
    end: Int64Array
    procs: Int64Array
    host: Int64Array

    def only(self, which: NDArray[np.bool_] | Int64Array) -> Spans:
        """Return some of them, by mask or by number."""
        return Spans(*(column[which] for column in self))


def with_pieces(whole: Spans, pieces: Int64Array | None) -> Spans:
    """Return the spans of jobs without execution intervals, followed by the execution intervals of
    the others."""
    if pieces is None:
        return whole
    return Spans(*(np.concatenate(both) for both in zip(whole, pieces[:, :5].T, strict=True)))


def rows_in_pieces(pieces: Int64Array | None, count: int) -> NDArray[np.bool_]:
    """Return a mask of the rows, of ``count``, that have execution intervals."""
    mask = np.zeros(count, np.bool_)
    if pieces is not None:
        mask[pieces[:, 0]] = True
    return mask


def queued_again(first: Spans, pieces: Int64Array, procs: Int64Array) -> Spans:
    """Return the first stays in the queue, followed by those from a discarded execution interval to
    the next of its job.

    ``procs``: the processors that each row asked for.
    """
    ordered = pieces[np.lexsort((pieces[:, 2], pieces[:, 1], pieces[:, 0]))]
    job, begin, end, kept = ordered[:, 0], ordered[:, 1], ordered[:, 2], ordered[:, 5]
    is_again = np.flatnonzero((job[:-1] == job[1:]) & (kept[:-1] == 0))
    again = Spans(
        job[is_again],
        end[is_again],
        begin[is_again + 1],
        procs[job[is_again]],
        np.full(len(is_again), -1),
    )
    return Spans(*(np.concatenate(both) for both in zip(first, again, strict=True)))
