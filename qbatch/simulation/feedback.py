"""Users that wait: a job is submitted at its predecessor's end plus its think time (``--closed``),
whatever the log says.

The instants of a log are those of its users on the machine of that time.  On a faster or slower one
they would have submitted earlier or later (Zilber, Amit and Talby 2005; docs/spec/papers.md 5.5,
rule 14).
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np

from qbatch.engine.round import Round
from qbatch.model.actions import Reject
from qbatch.model.machine import Machine
from qbatch.model.record import Int64Array, Workload
from qbatch.simulation.prepare import reasons_to_skip
from qbatch.simulation.sources import Arrival, arrivals_of
from qbatch.workloads import Log
from qbatch.workloads.feedback import NO_JOB, Feedback


class FeedbackSource:
    """The jobs of a workload, each submitted at the end of its predecessor plus the think time.

    Args:
        workload: jobs in order of sequence, prepared from a log.
        predecessor: by job the index of its predecessor in the workload, ``NO_JOB`` for none: the
            job comes at its own instant.
        think: by job, microseconds.
    """

    def __init__(self, workload: Workload, predecessor: Int64Array, think: Int64Array) -> None:
        self.size = len(workload)
        self._workload = workload
        self._think = think.tolist()
        self._followers: dict[int, list[int]] = {}
        for place in np.flatnonzero(predecessor >= 0).tolist():
            self._followers.setdefault(int(predecessor[place]), []).append(place)
        self._number = number = workload.number.tolist()
        first = np.flatnonzero(predecessor < 0).tolist()
        self._due = [(int(workload.submit[place]), number[place], place) for place in first]
        heapq.heapify(self._due)
        self._taken: list[int] = []
        self._submit: list[int] = []

    def next_instant(self) -> int | None:
        """Return the next submission that is certain."""
        return self._due[0][0] if self._due else None

    def take(self, at: int) -> list[Arrival]:
        """Return the jobs that are submitted by an instant, in order of job number."""
        places = []
        while self._due and self._due[0][0] <= at:
            places.append(heapq.heappop(self._due)[2])
        found = list(arrivals_of(self._workload, np.array(places, np.int64), at, len(self._taken)))
        self._taken += places
        self._submit += [at] * len(places)
        return found

    def ended(self, at: int, rows: Sequence[int]) -> None:
        """Submit the successors of these jobs, each after its think time: without one, at this very
        instant."""
        for row in rows:
            for place in self._followers.pop(self._taken[row], ()):
                heapq.heappush(self._due, (at + self._think[place], self._number[place], place))

    def after_round(self, done: Round) -> None:
        """Submit the successors of jobs that were refused, which is known after the pass."""
        self.ended(done.at, [row for row, _ in done.refused])
        self.ended(done.at, [action.row for action in done.actions if isinstance(action, Reject)])

    def workload(self) -> Workload:
        """Return the jobs in the order of their submission, with its instants."""
        places, work = np.array(self._taken, np.int64), self._workload
        columns = work.columns_at(places)
        submit = np.array(self._submit, np.int64)
        deadline = np.where(
            columns["deadline"] >= 0, columns["deadline"] + submit - columns["submit"], -1
        )
        return work.changed(**columns | {"submit": submit, "deadline": deadline})


def feedback_source(
    log: Log, work: Workload, machine: Machine, feedback: Feedback, load: float = 1.0
) -> FeedbackSource:
    """Return the jobs of a workload with feedback, for one run: a source cannot be used twice.

    ``load``: the divisor of the gaps between the workload's submissions; think times do not change.
    A predecessor that cannot run on the machine counts as ended at its submission.  If the
    predecessor is not replayed (``--from`` and similar), its end is unknown, and the job comes at
    its own instant.
    """
    place_of = np.full(len(log) + 1, NO_JOB)
    place_of[work.log_row] = np.arange(len(work))
    before = feedback.predecessor[work.log_row]
    skipped = np.zeros(len(log) + 1, np.bool_)
    for rows in reasons_to_skip(log, machine).values():
        skipped[rows] = True
    submit, logged = work.submit.copy(), np.rint(np.asarray(log["submit"], np.float64) * 1e6)
    is_early = (before >= 0) & skipped[before]
    think = feedback.think[work.log_row]
    moved = submit[0] + np.rint((logged[before[is_early]] - logged[work.log_row[0]]) / load).astype(
        np.int64
    )
    submit[is_early] = np.maximum(moved, 0) + think[is_early]
    return FeedbackSource(work.changed(submit=submit), place_of[before], think)
