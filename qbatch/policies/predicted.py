"""Run-time prediction around any policy that starts jobs: by the run times of a user's last jobs,
not by requested times.

Source: Tsafrir, Etsion and Feitelson, "Backfilling using system-generated predictions rather than
user runtime estimates", IEEE TPDS 18(6), 2007.  Read as follows:

* The prediction of a job is the mean run time of the last ``last`` jobs of its user that have ended
  (two).  It is a whole number of microseconds, rounded down; at least one second, as bookings are,
  and never above the estimate.  It is made once, when the job is submitted: jobs that end at that
  very instant count.  Of jobs that end together the last one by sequence is the latest.  A job that
  was killed or deleted while it ran has ended, too.  An attempt that was lost or stopped and starts
  again has not, nor has one that could not start.  On a server the time for which a job was
  suspended is not run time.
* A job that a server takes out of the engine and submits again (held and released, queued again)
  gets a new prediction.
* Without ``last`` ended jobs, or without a user, the estimate is used.
* A job that outlives its prediction gets a longer one, at that very instant, never above the
  estimate.  The additions are 1, 5, 15 and 30 minutes, then 1, 2, 5, 10, 20, 50 hours, and from
  then on 100 hours each time.
* The kill limit stays the estimate.  A job that outlives its estimate too is expected to end one
  second from now, in each pass again, as under any policy.  A job that a user suspends on a server
  keeps running for the policy, and outlives its prediction.

The inner policy sees a view in which estimates are predictions (:mod:`qbatch.planning.predicted`).
When a prediction is corrected, a policy that keeps a plan rebuilds it, in order of submission (as
when a host opens).  Its promises stay, and a start after one is recorded as a broken promise.

A policy that takes over a machine does not know the earlier jobs of a user: it uses estimates until
enough jobs have ended.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any

import numpy as np

from qbatch.model.actions import Action, Start, WakeAt
from qbatch.model.events import NO_RUN_TIME
from qbatch.model.machine import Machine
from qbatch.model.reasons import Reason
from qbatch.planning.kernels.types import Int64Array
from qbatch.planning.policy import Explaining, Policy, Remembering, name_of
from qbatch.planning.predicted import PredictedEnds, PredictedWindow
from qbatch.planning.run_times import lengthened, mean_run_time
from qbatch.planning.view import Run, View


@dataclass
class PredictionMemory:
    """The memory of the wrapper.

    ``inner``: the inner policy's record.  ``ended``: by user the run times of the last ended jobs,
    the latest last. ``first``: by row the run time predicted at submission, -1 for none;
    ``predicted``: the current prediction. ``rows``: the number of rows.  ``ends``: of the running
    jobs, as predicted now.  ``dues``: a heap of the instants at which predictions that can be
    corrected are outlived, with their rows; it may contain outdated entries.  ``corrections``: how
    often the predictions of running jobs were corrected.  ``asked``: the instants at which to be
    woken, the next one last.
    """

    inner: Any
    ended: dict[int, list[int]] = field(default_factory=dict)
    first: Int64Array = field(default_factory=lambda: np.zeros(64, np.int64))
    predicted: Int64Array = field(default_factory=lambda: np.zeros(64, np.int64))
    rows: int = 0
    ends: PredictedEnds = field(default_factory=PredictedEnds)
    dues: list[tuple[int, int]] = field(default_factory=list)
    corrections: dict[int, int] = field(default_factory=dict)
    asked: list[int] = field(default_factory=list)


class PredictedRunTimes:
    """An inner policy that sees predictions in place of estimates.

    Args:
        inner: the policy that decides.
        last: the number of jobs of which the mean is taken.
    """

    breaks_promises = True
    """A corrected prediction may delay what the previous one promised."""

    def __init__(self, name: str, inner: Policy, last: int) -> None:
        self.name = name
        self.inner = inner
        self.last = last

    def new_memory(self, machine: Machine) -> PredictionMemory:
        """Return the record for a machine before its first event."""
        return PredictionMemory(
            self.inner.new_memory(machine) if isinstance(self.inner, Remembering) else None
        )

    def decide(self, view: View) -> Iterable[Action]:
        """Learn from ended jobs, predict arrivals, correct outlived predictions, and make the inner
        policy's pass."""
        memory: PredictionMemory = view.memory
        for run in view.ended:
            self._learn(view, memory, run)
        if view.is_machine_changed:  # add jobs that came under another policy, with their estimates
            if memory.rows == 0:
                _new_rows(view, memory)
            for row, run in view.running.items():
                if row not in memory.ends.by_row:
                    memory.ends.enter(row, run.expected_end, run.procs)
        self._predict(view, memory)
        is_corrected = (
            _correct(view, memory) if memory.dues and memory.dues[0][0] <= view.now else False
        )
        is_changed, only_arrivals = (
            view.is_machine_changed or is_corrected,
            view.only_arrivals and not is_corrected,
        )
        seen = _shown(view, memory, is_machine_changed=is_changed, only_arrivals=only_arrivals)
        actions = list(self.inner.decide(seen))
        for action in actions:
            if isinstance(action, Start):
                predicted = int(memory.predicted[action.row])
                end = view.now + predicted
                memory.ends.enter(action.row, end, int(view.columns.procs[action.row]))
                if predicted < view.columns.estimate[action.row]:
                    heappush(memory.dues, (end, action.row))
        asked, dues = memory.asked, memory.dues
        while asked and asked[-1] <= view.now:
            asked.pop()
        if dues and (not asked or dues[0][0] < asked[-1]):
            asked.append(dues[0][0])
            actions.append(WakeAt(dues[0][0]))
        return actions

    def explain(self, view: View, row: int) -> Reason:
        """Return why a waiting job did not start in the inner policy's pass just over, and its
        predicted run time."""
        memory: PredictionMemory = view.memory
        if isinstance(self.inner, Explaining):
            said = self.inner.explain(_shown(view, memory), row)
        else:
            said = Reason(
                "policy", name_of(self.inner), f"{name_of(self.inner)} did not start it", {}
            )
        first = int(memory.first[row])
        if first < 0:
            return said
        of = "job" if self.last == 1 else f"{self.last} jobs"
        text = (
            f"{said.text}; it is predicted to run {first / 1e6:.15g} s by the last {of} of its user"
        )
        return Reason(
            said.code, said.said_by, text, {**said.numbers, "predicted": first}, said.blocked_by
        )

    def first_predictions(self, view: View) -> Int64Array:
        """Return by row the run time predicted at submission, microseconds; -1 for jobs without a
        prediction."""
        memory: PredictionMemory = view.memory
        return memory.first[: memory.rows].copy()

    def _learn(self, view: View, memory: PredictionMemory, run: Run) -> None:
        memory.ends.leave(run.row)
        memory.corrections.pop(run.row, None)
        job = view.jobs[run.row]
        ran = view.ran.get(run.row, run.done // job.procs)
        if job.user >= 0 and ran != NO_RUN_TIME:
            ended = memory.ended.setdefault(job.user, [])
            ended.append(ran)
            del ended[: -self.last]

    def _predict(self, view: View, memory: PredictionMemory) -> None:
        """Predict the run times of the new rows."""
        for row in _new_rows(view, memory) if len(view.columns.estimate) > memory.rows else ():
            job = view.jobs[row]
            ended = memory.ended.get(job.user, ())
            found = mean_run_time(ended, self.last, job.estimate)
            if found is not None:
                memory.first[row] = memory.predicted[row] = found


def _new_rows(view: View, memory: PredictionMemory) -> range:
    """Return the new rows; until they are predicted, their estimates are used."""
    estimates, rows = view.columns.estimate, memory.rows
    memory.rows = count = len(estimates)
    while count > len(memory.first):
        memory.first = np.concatenate([memory.first, np.zeros_like(memory.first)])
        memory.predicted = np.concatenate([memory.predicted, np.zeros_like(memory.predicted)])
    memory.first[rows:count] = -1
    memory.predicted[rows:count] = estimates[rows:]
    return range(rows, count)


def _shown(view: View, memory: PredictionMemory, **facts: Any) -> View:
    """Return the view that the inner policy sees."""
    predicted = memory.predicted[: memory.rows]
    predicted.flags.writeable = False
    return view.seen_through(
        PredictedWindow(view, predicted, memory.ends), memory=memory.inner, **facts
    )


def _correct(view: View, memory: PredictionMemory) -> bool:
    """Lengthen the predictions that jobs have outlived; return whether there were any."""
    now, dues, ends, is_corrected = view.now, memory.dues, memory.ends.by_row, False
    while dues and (dues[0][0] <= now or ends.get(dues[0][1]) != dues[0][0]):
        end, row = heappop(dues)
        if ends.get(row) != end:
            continue
        count = memory.corrections.get(row, 0)
        memory.corrections[row] = count + 1
        # The job has run for its prediction, and from that end until now.
        reached, most = int(memory.predicted[row]) + now - end, int(view.columns.estimate[row])
        memory.predicted[row] = found = lengthened(reached, count, most)
        memory.ends.enter(row, now + found - reached, view.running[row].procs)
        if found < most:
            heappush(dues, (now + found - reached, row))
        is_corrected = True
    return is_corrected
