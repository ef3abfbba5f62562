"""Reservations: which promises of a start were kept as first told, which moved earlier, which were broken."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qbatch.model.record import MICROSECONDS
from qbatch.results.job_rows import JobRows


@dataclass(frozen=True, slots=True)
class Promises:
    """The promises of one policy, counted in jobs; each promised job is in one of ``kept``, ``earlier``, ``broken``.

    ``broken``: it started after the start that it was last told, or a promise to it was taken back (the last is later than the
    first, or there is none).  ``earlier``: it was told an earlier start at least once
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


def promises(rows: JobRows) -> Promises:
    """Count the promises of one policy's jobs; a first promise that the rows do not tell is the last one."""
    told = rows.taken((rows.promise >= 0) | (rows.first_promise >= 0))
    first = np.where(told.first_promise >= 0, told.first_promise, told.promise)
    is_broken = (told.start > told.promise) | (told.promise > first)
    is_earlier = ~is_broken & (told.promise < first)
    gains = (first - told.start)[~is_broken] / MICROSECONDS
    return Promises(
        rows.policy,
        len(rows),
        int((~is_broken & ~is_earlier).sum()),
        int(is_earlier.sum()),
        int(is_broken.sum()),
        float(gains.mean()) if len(gains) else None,
    )
