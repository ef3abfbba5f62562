"""How far a job has got: what it has done, what it is doing, and when it will have done all.

Work is processors times time, in processor-microseconds; speedup is linear.  A job that runs for ``run`` microseconds on
the ``asked`` processors that it asks for takes ``run * asked`` of it.  The engine counts by the estimate, an executor by the
real run; both count like this.
"""

from __future__ import annotations

import msgspec

NEVER = -1
"""For an amount of work, or an instant, that is not known: the end of such a run does not come by itself."""


def time_left(work: int, procs: int) -> int:
    """Return the microseconds that work (processor-microseconds) takes on so many processors, rounded up; at least 0."""
    return -(-work // procs) if work > 0 else 0


class Progress(msgspec.Struct, array_like=True, gc=False):
    """The present run of a job, through suspensions and resizes.

    ``procs``: processors that it works on (suspended: will work on).  ``since``: the instant at which it last began to run
    on, ``NEVER`` while it stands still.  ``done``: processor-microseconds that it had done by then.  ``work``: those that it
    takes in all, ``NEVER`` where that is not known.  ``due``: the instant at which its end is due, ``NEVER`` while there is
    none.  Instants in microseconds.
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

        Of what it has done more than that by then: when it would have had it done, had it run through until ``at``.
        """
        return at - (self.worked(at) - work) // self.procs

    def go_on(self, at: int) -> None:
        """It runs on from an instant."""
        self.since = at
        if self.work >= 0:
            self.due = at + time_left(self.work - self.done, self.procs)

    def stand_still(self, at: int) -> None:
        """It stops at an instant: what it did is added up."""
        self.done, self.since, self.due = self.worked(at), NEVER, NEVER
