"""Deadlines in job rows, and what the referee says of them."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from qbatch.model.machine import one_host
from qbatch.model.record import Schedule
from qbatch.policies import load_policy
from qbatch.referee.every_schedule import check_deadlines
from qbatch.results.job_rows import read_job_rows, write_job_rows
from qbatch.simulation.drivers import run
from tests.policies.test_deadlines import with_deadlines


def schedule_of(policy: str, seed: int = 5) -> Schedule:
    return run(with_deadlines(seed), one_host(8), load_policy(policy))


def without_deadlines(schedule: Schedule) -> Schedule:
    return replace(schedule, workload=schedule.workload.changed(deadline=np.empty(0, np.int64)))


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_deadlines_are_written_where_there_are_any_and_read_back(
    tmp_path: Path, suffix: str
) -> None:
    schedule = schedule_of("qops")
    for each in (schedule, without_deadlines(schedule)):
        out = io.BytesIO()
        write_job_rows(out, [each], suffix)
        path = tmp_path / f"rows{suffix}"
        path.write_bytes(out.getvalue())
        (again,) = read_job_rows(path)
        assert again.workload.deadline.tolist() == each.workload.deadline.tolist()
        if suffix == ".csv":
            assert (b"deadline" in out.getvalue().split(b"\n")[0]) == (each is schedule)


def test_an_accepted_deadline_that_is_missed_is_a_breach_and_one_that_was_taken_back_is_not() -> (
    None
):
    schedules = (schedule_of("qops", seed) for seed in range(50))
    schedule = next(each for each in schedules if (each.ran & (each.workload.deadline >= 0)).any())
    assert list(check_deadlines(schedule)) == []
    row = int(np.argmax(np.where(schedule.workload.deadline >= 0, schedule.end, 0)))
    late = schedule.workload.deadline.copy()
    late[row] = schedule.end[row] - 1
    missed = replace(schedule, workload=schedule.workload.changed(deadline=late))
    (breach,) = check_deadlines(missed)
    assert (breach.code, breach.jobs, breach.instant) == (
        "deadline-missed",
        (int(schedule.workload.number[row]),),
        late[row],
    )
    broken = np.zeros(len(schedule.workload), np.int64)
    broken[row] = 1
    assert list(check_deadlines(replace(missed, broken=broken))) == []
