"""``measure`` against the oracle, which computes every metric from its definition over plain
lists."""

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qbatch.metrics import METRICS, measure
from qbatch.model.record import KINDS, Rejection, Schedule
from tests.oracle.metrics import measure as oracle
from tests.oracle.workloads import random_jobs, workloads

from .samples import POLICIES, SECOND, Row, loose_rows, rows_of, schedule_of, seconds

WHOLE_RUN = {
    "makespan_s",
    "throughput_per_hour",
    "utilisation_makespan",
    "utilisation_submit",
    "loss_of_capacity",
    "queue_max",
}
SUMMED_RATIOS = {"slowdown_mean", "bounded_slowdown_mean", "bounded_slowdown_clipped_mean"}
NOT_IN_ORACLE = {"jobs", "immediate_share", "queue_max"}


NAMES = [metric.name for metric in METRICS]
ALWAYS = [
    name
    for name in NAMES
    if not name.startswith(("rejected_", "parent", "predict", "underpredict", "estimate_"))
]
"""The metrics that every run has; others need a job that was refused, is a task of a parent, or had
its run time predicted."""


def assert_as_oracle(rows: list[Row], procs_total: int) -> None:
    """Every digit agrees, but for sums of ratios: those are rounded once by the oracle, often by
    us."""
    ours, expected = measure(schedule_of(rows, procs_total)), oracle(rows, procs_total)
    assert ours.keys() - NOT_IN_ORACLE == expected.keys() - {"queue_max"}
    for name in expected.keys() - {"queue_max"}:
        if name in SUMMED_RATIOS and expected[name] is not None:
            assert ours[name] == pytest.approx(expected[name], rel=1e-13), name
        else:
            assert ours[name] == expected[name], name
    assert ours["jobs"] == len(rows)


def test_every_metric_is_as_the_oracle_has_it() -> None:
    for seed in range(300):
        rng = random.Random(seed)
        procs_total = rng.randint(1, 8)
        jobs = random_jobs(rng, rng.randint(1, 25), procs_total)
        outcomes = rng.choice(POLICIES)(jobs, procs_total)
        assert_as_oracle(rows_of(jobs, outcomes), procs_total)


def test_so_it_is_where_jobs_that_fit_are_left_waiting() -> None:
    lost = 0
    for seed in range(300):
        rng = random.Random(seed)
        procs_total = rng.randint(1, 9)
        rows = loose_rows(rng, rng.randint(1, 15), procs_total)
        assert_as_oracle(rows, procs_total)
        lost += bool(oracle(rows, procs_total)["loss_of_capacity"])
    assert lost > 200


@given(workloads(), st.sampled_from(POLICIES))
@settings(max_examples=80, deadline=None)
def test_hypothesis_finds_no_workload_that_is_measured_otherwise(
    workload: Any, policy: Any
) -> None:
    jobs, procs_total = workload
    assert_as_oracle(rows_of(jobs, policy(jobs, procs_total)), procs_total)


def test_nothing_overflows() -> None:
    """A thousand jobs, each of a quarter of a year on a million processors, one after the other."""
    quarter, procs_total = 90 * 86_400 * SECOND, 1 << 20
    rows: list[Row] = [
        (
            0,
            rank * quarter,
            (rank + 1) * quarter - 1,
            procs_total - rank % 2,
            quarter - 1,
            "in_order",
        )
        for rank in range(1000)
    ]
    rows.append((1000 * quarter,) * 3 + (1, 0, "immediate"))
    assert_as_oracle(rows, procs_total)


def test_the_order_of_the_rows_changes_no_digit() -> None:
    rng = random.Random(5)
    rows = loose_rows(rng, 40, 7)
    expected = measure(schedule_of(rows, 7))
    for _ in range(10):
        rng.shuffle(rows)
        assert measure(schedule_of(rows, 7)) == expected


def test_a_warm_up_counts_for_the_machine_only() -> None:
    rng = random.Random(11)
    rows = loose_rows(rng, 30, 6)
    counted = np.arange(30) >= 10
    measured = measure(schedule_of(rows, 6, counted=counted))
    whole, later = measure(schedule_of(rows, 6)), measure(schedule_of(rows[10:], 6))
    assert {name for name in measured if measured[name] != later[name]} <= WHOLE_RUN
    assert {name: measured[name] for name in WHOLE_RUN} == {name: whole[name] for name in WHOLE_RUN}
    assert measured["jobs"] == 20
    nobody = measure(schedule_of(rows, 6, counted=np.zeros(30, bool)))
    assert nobody["jobs"] == 0
    assert nobody["wait_mean_s"] is None
    assert nobody["makespan_s"] == whole["makespan_s"]


def test_a_rejected_job_is_no_job_at_all() -> None:
    with_one = seconds((0, 0, 4, 10), (1, -1, 8, 99), (2, 8, 6, 5))
    without = seconds((0, 0, 4, 10), (2, 8, 6, 5))
    assert measure(with_one) == measure(without)


@pytest.mark.parametrize(
    "schedule", [schedule_of([], 8), seconds((0, -1, 1, 1))], ids=["empty", "all rejected"]
)
def test_without_jobs_everything_is_none_but_their_count(schedule: Schedule) -> None:
    measured = measure(schedule)
    assert {name: value for name, value in measured.items() if value is not None} == {"jobs": 0}
    assert list(measured) == ALWAYS


def test_a_run_without_length_has_no_shares_of_time() -> None:
    measured = measure(seconds((3, 0, 2, 0), (3, 0, 1, 0)))
    assert measured["makespan_s"] == 0.0
    undefined = {name for name, value in measured.items() if value is None}
    assert undefined == (WHOLE_RUN - {"queue_max", "makespan_s"}) | {
        f"slowdown_{statistic}" for statistic in ("mean", "median", "p95", "max")
    }
    assert measured["slowdown_skipped"] == 2
    assert measured["bounded_slowdown_mean"] == 0.0
    assert measured["bounded_slowdown_clipped_mean"] == 1.0


def test_jobs_of_no_length_are_left_out_of_the_slowdown_waiting_or_not() -> None:
    measured = measure(seconds((0, 0, 1, 0), (0, 5, 1, 0), (0, 5, 1, 5), (0, 0, 1, 2)))
    assert [
        measured[f"slowdown_{what}"] for what in ("mean", "median", "p95", "max", "skipped")
    ] == [1.5, 1, 2, 2, 2]


def test_bounded_slowdown_is_as_printed_and_clipped_as_today() -> None:
    measured = measure(seconds((0, 0, 1, 2), (0, 30, 1, 15)))
    assert measured["bounded_slowdown_mean"] == pytest.approx((0.2 + 3) / 2)
    assert measured["bounded_slowdown_median"] == 0.2
    assert measured["bounded_slowdown_clipped_mean"] == 2.0
    assert measured["bounded_slowdown_clipped_median"] == 1.0


def test_shares_are_of_the_kinds() -> None:
    rows: list[Row] = [(0, 0, SECOND, 1, SECOND, kind) for kind in (*KINDS, "backfilled")]
    measured = measure(schedule_of(rows, 8))
    assert (measured["backfilled_share"], measured["immediate_share"]) == (0.5, 0.25)


def test_the_costly_metric_can_be_left_out() -> None:
    schedule = seconds((0, 0, 4, 10), (2, 9, 2, 5))
    cheap, whole = measure(schedule, costly=False), measure(schedule, costly=True)
    assert whole.pop("loss_of_capacity") == pytest.approx((4 * 8 + 8 * 1) / (8 * 16))
    assert cheap == whole


def test_measuring_changes_nothing() -> None:
    schedule = seconds((0, 0, 4, 10), (2, 9, 2, 5), (2, 9, 2, 0))
    columns = (
        schedule.start,
        schedule.end,
        schedule.workload.submit,
        schedule.workload.run,
        schedule.workload.procs,
    )
    before = [column.copy() for column in columns]
    for column in columns:
        column.setflags(write=False)
    assert measure(schedule) == measure(schedule)
    assert all(np.array_equal(column, old) for column, old in zip(columns, before, strict=True))


def test_values_are_plain_numbers() -> None:
    assert {type(value) for value in measure(seconds((0, 1, 4, 10))).values()} <= {
        int,
        float,
        type(None),
    }


def test_the_table_lists_every_metric_in_order_and_says_something() -> None:
    run = seconds((0, 0, 4, 10), (1, -1, 8, 99))
    assert list(measure(run)) == ALWAYS
    tasks = replace(run, workload=run.workload.changed(parent=np.array([7, 7])))
    tasks = replace(tasks, predicted=np.array([7, -1]))
    assert list(measure(replace(tasks, rejected=(Rejection(1, 1, "code", "text"),)))) == NAMES
    assert all(metric.formula.isascii() and metric.source and metric.meaning for metric in METRICS)
    assert all(metric.name.endswith("_s") == (metric.unit == "s") for metric in METRICS)
    assert {metric.unit for metric in METRICS} == {"s", "ratio", "share", "jobs", "jobs/h"}


def test_jobs_in_pieces_wait_whenever_they_do_not_advance_and_use_what_their_pieces_used() -> None:
    schedule = schedule_of(
        [(0, 0, 30 * SECOND, 2, 10 * SECOND, "in_order"), (20 * SECOND,) * 3 + (1, 0, "in_order")],
        4,
    )
    pieces = np.array([[0, 0, 4, 2, 0, 0], [0, 8, 12, 2, 0, 1], [0, 24, 30, 2, 0, 1]], np.int64)
    pieces[:, 1:3] *= SECOND
    measured = measure(replace(schedule, pieces=pieces))
    assert measured["wait_max_s"] == 20
    assert measured["response_max_s"] == 30
    # Up to the last submission, at 20 s: 4 s and 4 s on 2 of 4 processors.
    assert measured["utilisation_submit"] == 16 / 80
    assert measured["loss_of_capacity"] is None
    assert measure(schedule)["wait_max_s"] == 0
