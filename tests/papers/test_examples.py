"""The hand-drawn examples of Feitelson and Weil 1998, Figures 3, 4, 7 and 8, on a machine of ten
processors.

Jobs are written as (submit, processors, run) or (submit, processors, run, estimate), in seconds;
each test runs both drivers, audited.
"""

import numpy as np
import pytest

from qbatch.metrics import measure
from qbatch.model.record import KINDS, MICROSECONDS, Schedule
from qbatch.simulation import DRIVERS
from tests.harness import run_named, workload_of
from tests.oracle.naive import Job

PROCS = 10

both_drivers = pytest.mark.parametrize("driver", [name for name in DRIVERS if name != "auto"])


def schedule_of(policy: str, driver: str, *jobs: tuple[int, ...]) -> Schedule:
    made = [
        Job(place, job[0] * MICROSECONDS, job[1], job[-1] * MICROSECONDS, job[2] * MICROSECONDS)
        for place, job in enumerate(jobs)
    ]
    return run_named(workload_of(made, PROCS), policy, driver=driver)


def starts(schedule: Schedule) -> list[int]:
    return [int(start) // MICROSECONDS for start in schedule.start]


def promises(schedule: Schedule) -> list[int]:
    return [int(at) // MICROSECONDS for at in schedule.first_promise]


# Figure 3: three jobs run; the first queued job fits when two of them are done, the second would
# fit after one.
FIGURE_3 = ((0, 3, 10), (0, 3, 20), (0, 2, 60), (1, 7, 20), (1, 4, 30), (1, 2, 5))


@both_drivers
@pytest.mark.parametrize("compress", ["arrival", "start", "none", "scratch"])
def test_figure_3_a_reservation_blocks_the_first_anchor_point_and_the_third_job_backfills(
    driver: str, compress: str
) -> None:
    schedule = schedule_of(f"conservative:compress={compress}", driver, *FIGURE_3)
    assert promises(schedule)[3:] == [20, 40, 1]
    assert starts(schedule)[3:] == [20, 40, 1]
    assert KINDS[schedule.kind[5]] == "backfilled"


@both_drivers
def test_figure_3_without_the_first_queued_job_the_second_takes_the_first_anchor_point(
    driver: str,
) -> None:
    schedule = schedule_of("conservative", driver, *FIGURE_3[:3], *FIGURE_3[4:])
    assert promises(schedule)[3:] == [10, 1]


# Figure 4: the second queued job may backfill at T1 = 10; then the lower running job ends at 5, 25
# s early.
FIGURE_4 = ((0, 4, 10), (0, 6, 5, 30), (1, 10, 20), (1, 4, 20))
FIRST, SECOND = 2, 3


@both_drivers
def test_figure_4_a_new_round_of_backfilling_delays_the_second_job_past_its_promise(
    driver: str,
) -> None:
    schedule = schedule_of("conservative:compress=scratch", driver, *FIGURE_4)
    assert promises(schedule)[FIRST:] == [30, 10]
    assert starts(schedule)[FIRST:] == [10, 30]


@both_drivers
@pytest.mark.parametrize(("compress", "first_starts"), [("arrival", 30), ("start", 25)])
def test_figure_4_compression_keeps_every_promise(
    driver: str, compress: str, first_starts: int
) -> None:
    schedule = schedule_of(f"conservative:compress={compress}", driver, *FIGURE_4)
    assert promises(schedule)[FIRST:] == [30, 10]
    assert starts(schedule)[FIRST:] == [first_starts, 5]
    assert (schedule.start <= schedule.first_promise).all()


# Figure 7: at 10 the first queued job fits and leaves two processors; a long job of two processors
# arrives behind.
def figure_7(length: int) -> tuple[tuple[int, ...], ...]:
    return ((0, 6, 10), (1, 8, 10), (1, 10, 10), (2, 2, length))


@both_drivers
@pytest.mark.parametrize("length", [18, 50, 1_000, 1_000_000])
def test_figure_7_easy_delays_the_second_queued_job_by_the_length_of_the_backfilled_one(
    driver: str, length: int
) -> None:
    assert starts(schedule_of("easy", driver, *figure_7(length))) == [0, 10, 2 + length, 2]


@both_drivers
@pytest.mark.parametrize("length", [18, 50, 1_000, 1_000_000])
def test_figure_7_conservative_delays_no_job(driver: str, length: int) -> None:
    found = starts(schedule_of("conservative", driver, *figure_7(length)))
    assert found[:3] == [0, 10, 20]
    assert found[3] == (2 if length == 18 else 30)


# Figure 8: the job that EASY starts early would have fitted next to a later one; now both leave a
# hole.
FIGURE_8 = (*figure_7(100), (3, 8, 100))


def used(schedule: Schedule, begin: int, end: int) -> float:
    """Return the processors in use between two seconds, in the mean."""
    inside = np.minimum(schedule.end, end * MICROSECONDS) - np.maximum(
        schedule.start, begin * MICROSECONDS
    )
    return float((np.maximum(inside, 0) * schedule.workload.procs).sum()) / (
        (end - begin) * MICROSECONDS
    )


@both_drivers
def test_figure_8_easy_gains_for_a_moment_and_loses_in_the_long_run(driver: str) -> None:
    easy, conservative = (
        schedule_of(policy, driver, *FIGURE_8) for policy in ("easy", "conservative")
    )
    assert starts(easy) == [0, 10, 102, 2, 112]
    assert starts(conservative) == [0, 10, 20, 30, 30]
    assert used(easy, 2, 10) == 8 > used(conservative, 2, 10) == 6
    assert used(easy, 30, 100) == 2 < used(conservative, 30, 100) == 10
    assert measure(easy)["utilisation_makespan"] < measure(conservative)["utilisation_makespan"]
