"""The columns of a finished run that metrics read, cut down to the rows that they are about."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from qbatch.model.record import BoolArray, Int8Array, Int64Array, Schedule


@dataclass(frozen=True, slots=True)
class MeasuredColumns:
    """Jobs that ran, a row each: times in microseconds, ``kind`` as places in ``KINDS``."""

    submit: Int64Array
    start: Int64Array
    end: Int64Array
    run: Int64Array
    procs: Int64Array
    kind: Int8Array

    def __len__(self) -> int:
        return len(self.submit)

    def only(self, rows: BoolArray | Int64Array) -> MeasuredColumns:
        """Return some of the rows, by mask or by number."""
        return MeasuredColumns(
            self.submit[rows], self.start[rows], self.end[rows], self.run[rows], self.procs[rows], self.kind[rows]
        )


def all_rows(schedule: Schedule) -> MeasuredColumns:
    """Return the columns of every row, none copied; a rejected row has a start of -1."""
    jobs = schedule.workload
    return MeasuredColumns(jobs.submit, schedule.start, schedule.end, jobs.run, jobs.procs, schedule.kind)


def rows_that_ran(schedule: Schedule) -> MeasuredColumns:
    """Return the rows that ran, the warm-up among them; a copy only where some did not run."""
    return _only(all_rows(schedule), schedule.ran)


def rows_in_pieces(schedule: Schedule) -> MeasuredColumns:
    """Return what ran, a row each: a job that ran in pieces stands there once for each of them."""
    ran = rows_that_ran(schedule)
    if schedule.pieces is None:
        return ran
    rows, begin, end, procs = schedule.pieces[:, :4].T
    is_whole = schedule.ran.copy()
    is_whole[rows] = False
    whole, submit = all_rows(schedule).only(is_whole), schedule.workload.submit[rows]
    return MeasuredColumns(
        np.concatenate([whole.submit, submit]),
        np.concatenate([whole.start, begin]),
        np.concatenate([whole.end, end]),
        np.concatenate([whole.run, end - begin]),
        np.concatenate([whole.procs, procs]),
        np.concatenate([whole.kind, schedule.kind[rows]]),
    )


def rows_that_count(schedule: Schedule) -> MeasuredColumns:
    """Return the rows that ran and are counted; a copy only where some are not."""
    return _only(all_rows(schedule), schedule.ran & schedule.workload.counted)


def begun_late(schedule: Schedule) -> Schedule:
    """Return the schedule with jobs that ran in pieces begun so that they ran in one go until their ends.

    Their wait is then all the time in which they did not advance (papers.md 0.3, ``wait_total``).
    """
    if schedule.pieces is None:
        return schedule
    rows = np.unique(schedule.pieces[:, 0])
    start = schedule.start.copy()
    start[rows] = schedule.end[rows] - schedule.workload.run[rows]
    return replace(schedule, start=start)


def _only(columns: MeasuredColumns, mask: BoolArray) -> MeasuredColumns:
    return columns if bool(np.all(mask)) else columns.only(mask)
