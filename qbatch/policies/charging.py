"""The price of an accepted job: higher if it is urgent or the machine is crowded (docs/spec/papers.md 2.8, rule 14).

price = processors x estimate in hours x (1 + urgency s) x (1 + crowding u).  s = max(0, 1 - (deadline - submit) / (E - submit)),
where E is the earliest end of the job in the plan without it; s is 0 without a deadline.  u is the share of the
machine that is booked in the 24 hours before the job came.  The paper's authors left charging open; this model is our own.
"""

from __future__ import annotations

from fractions import Fraction

from qbatch.model.job import Job
from qbatch.planning.kernels import profile as profiles
from qbatch.planning.kernels.types import Int64Array

HOUR = 3_600_000_000
DAY = 24 * HOUR

MILLIONTHS = 1_000_000
"""Prices are whole millionths."""


def price_of(
    job: Job, now: int, start: int, booked: Int64Array, procs: int, *, urgency: Fraction, crowding: Fraction
) -> int:
    """Return the price of a job in millionths of a processor-hour, rounded half to even.

    Args:
        job: the job, with its own deadline.
        now: when the price is set, microseconds.
        start: its earliest start in the plan without it.
        booked: the profile that the running and the accepted jobs leave.
        procs: of the machine.
        urgency: the weight of the urgency.
        crowding: the weight of the crowding.
    """
    needed = start + job.estimate - job.submit
    tight = Fraction(0)
    if job.deadline is not None and needed > 0:
        tight = max(Fraction(0), 1 - Fraction(job.deadline - job.submit, needed))
    used = Fraction(procs * DAY - _free_area(booked, now, now + DAY), procs * DAY)
    price = Fraction(job.procs * job.estimate, HOUR) * (1 + urgency * tight) * (1 + crowding * used)
    return round(price * MILLIONTHS)


def _free_area(profile: Int64Array, begin: int, end: int) -> int:
    """Return what is free over a span, in processor-microseconds."""
    times = [*profile[profiles.TIME, 1 : int(profile[0, 0]) + 1].tolist(), end]
    free = profile[profiles.FREE, 1 : int(profile[0, 0]) + 1].tolist()
    spans = zip(times, times[1:], free, strict=False)
    return sum(amount * max(min(until, end) - max(since, begin), 0) for since, until, amount in spans)
