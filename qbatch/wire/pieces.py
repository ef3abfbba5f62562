"""The execution intervals of a job's present attempt, from its record, and the processors that it
asked for and has."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from qbatch.wire.records import JobRecord

ON_HOSTS = "RSE"
"""The states of a job that is on hosts: running, suspended, exiting."""


class Piece(NamedTuple):
    """An execution interval: from ``begin`` to before ``end`` (microseconds since 1970) on
    ``procs`` processors."""

    begin: int
    end: int
    procs: int


def procs_asked(job: JobRecord) -> int:
    """Return the processors that a job asked for, 1 if its record has none."""
    text = job.resources.get("ncpus", "1")
    return int(text) if text.isdigit() else 1


def procs_now(job: JobRecord) -> int:
    """Return the processors of a job on hosts (of a suspended one: those it will have again), else
    those it asked for."""
    return job.sizes[-1][1] if job.sizes and job.state in ON_HOSTS else procs_asked(job)


def procs_text(job: JobRecord) -> str:
    """Return a job's processors as text: ``8``, ``4 of 8`` if it has 4 of the 8 it asked for, ``-``
    if unknown."""
    if "ncpus" not in job.resources:
        return "-"
    has, asked = procs_now(job), procs_asked(job)
    return str(asked) if has == asked else f"{has} of {asked}"


def pieces_of(job: JobRecord, now: int) -> list[Piece]:
    """Return the execution intervals up to ``now`` or the job's end, in order.

    Suspensions and resizes separate them; none is empty.
    """
    if job.started is None:
        return []
    last = max(job.started, now if job.ended is None else job.ended)
    changes = [(job.started, procs_asked(job)), *job.sizes]
    stops = [(since, last if until is None else until) for since, until in job.pauses]
    edges = sorted(
        {job.started, last, *(at for at, _ in changes), *(at for stop in stops for at in stop)}
    )
    edges = [at for at in edges if job.started <= at <= last]
    pieces = []
    for begin, end in pairwise(edges):
        if not any(since <= begin < until for since, until in stops):
            pieces.append(Piece(begin, end, [procs for at, procs in changes if at <= begin][-1]))
    return pieces


def run_of(job: JobRecord, now: int) -> int:
    """Return the work of the present attempt divided by the processors asked for, in microseconds.

    The result is rounded down: the end of a resized job is rounded up, so that an emulated job
    completes its run time.
    """
    return sum(
        (piece.end - piece.begin) * piece.procs for piece in pieces_of(job, now)
    ) // procs_asked(job)
