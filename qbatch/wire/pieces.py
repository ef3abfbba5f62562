"""The pieces of a job's present attempt: when it ran on how many processors, from what its record says."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from qbatch.wire.records import JobRecord


class Piece(NamedTuple):
    """The half-open time from ``begin`` to ``end`` (microseconds since 1970) on ``procs`` processors."""

    begin: int
    end: int
    procs: int


def pieces_of(job: JobRecord, now: int) -> list[Piece]:
    """Return the pieces by ``now`` or by its end, in order: cut where it was suspended and resized; none of no length."""
    if job.started is None:
        return []
    last = max(job.started, now if job.ended is None else job.ended)
    changes = [(job.started, int(job.resources.get("ncpus", "1"))), *job.sizes]
    stops = [(since, last if until is None else until) for since, until in job.pauses]
    edges = sorted({job.started, last, *(at for at, _ in changes), *(at for stop in stops for at in stop)})
    edges = [at for at in edges if job.started <= at <= last]
    pieces = []
    for begin, end in pairwise(edges):
        if not any(since <= begin < until for since, until in stops):
            pieces.append(Piece(begin, end, [procs for at, procs in changes if at <= begin][-1]))
    return pieces


def worked(job: JobRecord, now: int) -> int:
    """Return the processor-microseconds that the present attempt has done."""
    return sum((piece.end - piece.begin) * piece.procs for piece in pieces_of(job, now))


def run_of(job: JobRecord, now: int) -> int:
    """Return how long it has run as if on the processors that it asked for, in microseconds, rounded up."""
    return -(-worked(job, now) // int(job.resources.get("ncpus", "1")))
