"""The progress of a job: its work so far, its current run, and when its work will be done.

Work is processors x time, in processor-microseconds; speedup is linear.  The engine counts by the
estimate, an executor by the real run; both use this module.
"""

from __future__ import annotations

import msgspec

NEVER = -1
"""An unknown amount of work or instant: no end of such a run is due."""


def time_left(work: int, procs: int) -> int:
    """Return the microseconds that work (processor-microseconds) takes on ``procs`` processors,
    rounded up; at least 0."""
    return -(-work // procs) if work > 0 else 0


class Progress(msgspec.Struct, array_like=True, gc=False):
    """The current run of a job, through suspensions and resizes.

    ``procs``: processors that it uses (suspended: will use).  ``since``: the instant at which it
    last began to run, ``NEVER`` while it is suspended.  ``done``: processor-microseconds done by
    then.  ``work``: those that it takes in total, ``NEVER`` if unknown.  ``due``: the instant at
    which its end is due, ``NEVER`` if there is none.  Instants in microseconds.
    """

    procs: int
    since: int = NEVER
    done: int = 0
    work: int = NEVER
    due: int = NEVER

    def worked(self, at: int) -> int:
        """Return the processor-microseconds done by an instant."""
        return self.done + (max(at - self.since, 0) * self.procs if self.since >= 0 else 0)

    def end_of(self, work: int, at: int) -> int:
        """Return the instant at which it will have done ``work`` if it runs on from ``at``.

        If it has already done more by ``at``: when it would have finished ``work``, had it run
        without pause until ``at``.
        """
        return at - (self.worked(at) - work) // self.procs

    def go_on(self, at: int) -> None:
        """Continue at an instant."""
        self.since = at
        if self.work >= 0:
            self.due = at + time_left(self.work - self.done, self.procs)

    def stand_still(self, at: int) -> None:
        """Stop at an instant and add up the work done."""
        self.done, self.since, self.due = self.worked(at), NEVER, NEVER
