"""Reservations: which promised starts were kept as first given, which moved earlier, which were broken."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qbatch.model.record import MICROSECONDS, Schedule


@dataclass(frozen=True, slots=True)
class Promises:
    """The promises of one policy, counted in jobs; each promised job is in one of ``kept``, ``earlier``, ``broken``.

    ``broken``: the job started after its last promised start, or a promise to it was withdrawn (its row records this, or the
    last promise is later than the first, or is missing).  ``earlier``: the promised start moved earlier at least once and was
    kept.  ``kept``: the first promise was kept.  ``gain_mean_s``: from the start to the first promise, mean over the promises
    that were not broken, in seconds; None without any.
    """

    policy: str
    jobs: int
    kept: int
    earlier: int
    broken: int
    gain_mean_s: float | None

    @property
    def promised(self) -> int:
        """Number of jobs with a promised start."""
        return self.kept + self.earlier + self.broken


def promises(schedule: Schedule) -> Promises:
    """Count the promises to the jobs that ran; without a recorded first promise, the last one counts as the first."""
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
