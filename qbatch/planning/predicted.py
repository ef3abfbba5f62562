"""The view of an inner policy in which predicted run times replace the estimates of users.

Only the inner policy sees them: the engine, which kills and audits, keeps the estimates.  Every
form in which a view gives the end of a running job has the prediction (runs by row, sorted ends,
parts on hosts, the job itself).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from msgspec.structs import replace

from qbatch.model.job import Job
from qbatch.planning.kernels import running as kernels
from qbatch.planning.kernels.entries import entry_to
from qbatch.planning.kernels.types import Int64Array, read_only
from qbatch.planning.projection import ends_and_amounts, parts_of_runs
from qbatch.planning.view import Columns, Run, SeenWindow, View

_enter = entry_to(kernels.enter)
_leave = entry_to(kernels.leave)


class PredictedEnds:
    """The predicted ends of the running jobs by row, and in order with their processors, in the
    form of a view."""

    def __init__(self) -> None:
        self.by_row: dict[int, int] = {}
        self._procs: dict[int, int] = {}
        self._ends = np.zeros(64, np.int64)
        self._amounts = np.zeros(64, np.int64)

    def enter(self, row: int, end: int, procs: int) -> None:
        """Note when a running job ends; if it is known already, replace its end."""
        self.leave(row)
        count = len(self.by_row)
        if count == len(self._ends):
            self._ends = np.concatenate([self._ends, np.zeros_like(self._ends)])
            self._amounts = np.concatenate([self._amounts, np.zeros_like(self._amounts)])
        _enter(self._ends, self._amounts, count, end, procs)
        self.by_row[row], self._procs[row] = end, procs

    def leave(self, row: int) -> None:
        """Forget a job that has ended, if it is known."""
        if row in self.by_row:
            _leave(
                self._ends,
                self._amounts,
                len(self.by_row),
                self.by_row.pop(row),
                self._procs.pop(row),
            )

    @property
    def ends(self) -> Int64Array:
        return read_only(self._ends[: len(self.by_row)])

    @property
    def amounts(self) -> Int64Array:
        return read_only(self._amounts[: len(self.by_row)])


class PredictedWindow(SeenWindow):
    """The state with predicted run times (:class:`qbatch.planning.view.Window`).

    Args:
        seen: the view of the wrapper.
        predicted: the run time by row, microseconds.
        ends: of the running jobs, without those that start in this round.
    """

    def __init__(self, seen: View, predicted: Int64Array, ends: PredictedEnds) -> None:
        super().__init__(seen)
        self._predicted = predicted
        self._predicted_ends = ends

    @property
    def columns(self) -> Columns:
        return self._seen.columns._replace(estimate=self._predicted)

    @property
    def jobs(self) -> Sequence[Job]:
        return _PredictedJobs(self._seen.jobs, self._predicted)

    def jobs_of(self, rows: Sequence[int]) -> Iterator[Job]:
        return map(_as_predicted, super().jobs_of(rows), self._predicted[list(rows)].tolist())

    @property
    def running(self) -> Mapping[int, Run]:
        ends = self._predicted_ends.by_row
        return {
            row: replace(run, expected_end=ends[row]) for row, run in self._seen.running.items()
        }

    @property
    def _is_counted(self) -> bool:
        """Whether each running job gives back all that it holds as one number of processors."""
        return self._seen.machine.is_one_pool and not self._seen.closed

    @property
    def ends(self) -> Int64Array:
        return self._predicted_ends.ends if self._is_counted else self._ends_and_amounts[0]

    @property
    def amounts(self) -> Int64Array:
        return self._predicted_ends.amounts if self._is_counted else self._ends_and_amounts[1]

    @cached_property
    def _ends_and_amounts(self) -> tuple[Int64Array, Int64Array]:
        return ends_and_amounts(self.running.values(), self._seen.closed)

    @property
    def pieces(self) -> Int64Array:
        return parts_of_runs(self.running.values(), self._seen.machine)


class _PredictedJobs(Sequence[Job]):
    """The jobs by row, each with its predicted run time."""

    def __init__(self, jobs: Sequence[Job], predicted: Int64Array) -> None:
        self._jobs = jobs
        self._predicted = predicted

    def __getitem__(self, row: Any) -> Any:
        return _as_predicted(self._jobs[row], int(self._predicted[row]))

    def __len__(self) -> int:
        return len(self._jobs)


def _as_predicted(job: Job, predicted: int) -> Job:
    return job if job.estimate == predicted else replace(job, estimate=predicted)
