"""Reservations: which promises of a start were kept as first told, which moved earlier, which were broken."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qbatch.model.record import MICROSECONDS, Schedule


@dataclass(frozen=True, slots=True)
class Promises:
    """The promises of one policy, counted in jobs; each promised job is in one of ``kept``, ``earlier``, ``broken``.

    ``broken``: it started after the start that it was last told, or a promise to it was taken back (the rows say so,
    the last is later than the first, or there is none).  ``earlier``: it was told an earlier start at least once
    and that was kept.  ``kept``: the first promise stood.  ``gain_mean_s``: from the start to the first promise, mean over
    the promises that were not broken, in seconds; None without any.
    """

    policy: str
    jobs: int
    kept: int
    earlier: int
    broken: int
    gain_mean_s: float | None

    @property
    def promised(self) -> int:
        """How many jobs were told a start."""
        return self.kept + self.earlier + self.broken


def promises(schedule: Schedule) -> Promises:
    """Count the promises to the jobs that ran; a first promise that nobody tells is the last one."""
    jobs = int(schedule.ran.sum())
    told = schedule.only(schedule.ran & ((schedule.promise >= 0) | (schedule.first_promise >= 0)))
    first = np.where(told.first_promise >= 0, told.first_promise, told.promise)
    is_broken = (told.start > told.promise) | (told.promise > first)
    if told.broken is not None:
        is_broken |= told.broken > 0
    is_earlier = ~is_broken & (told.promise < first)
    gains = (first - told.start)[~is_broken] / MICROSECONDS
    return Promises(
        schedule.policy,
        jobs,
        int((~is_broken & ~is_earlier).sum()),
        int(is_earlier.sum()),
        int(is_broken.sum()),
        float(gains.mean()) if len(gains) else None,
    )
