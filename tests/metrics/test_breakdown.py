"""``breakdown``: its groups, and that each is measured as if it were alone."""

import random
from dataclasses import replace

import numpy as np
import pytest

from qbatch.metrics import BREAKDOWNS, breakdown, measure
from qbatch.model.errors import UsageError
from qbatch.model.record import LogClock, Schedule

from .samples import SECOND, loose_rows, schedule_of, seconds


def counts(schedule: Schedule, key: str) -> dict[str, int]:
    return {group.label: group.jobs for group in breakdown(schedule, key)}


def _size(procs: int) -> str:
    return (
        "1"
        if procs == 1
        else "2"
        if procs == 2
        else "3-4"
        if procs <= 4
        else "5-8"
        if procs <= 8
        else "9-16"
    )


@pytest.mark.parametrize("key", list(BREAKDOWNS))
def test_every_group_is_measured_as_if_it_were_alone(key: str) -> None:
    rng = random.Random(3)
    rows = loose_rows(rng, 60, 9)
    users = [rng.choice((-1, 2, 5)) for _ in rows]
    counted = np.array([rng.random() < 0.8 for _ in rows])
    # Second 10 of the log is the first of 1996: it lies inside the span of the submits.
    columns = {
        "user": np.array(users),
        "group": np.array(users) + 10,
        "queue": np.array(users) + 20,
    }
    clock = LogClock(820_454_400 - 10, "UTC")
    schedule = schedule_of(rows, 9, counted=counted, clock=clock, **columns)
    labels = {
        "user": ["unknown" if user == -1 else str(user) for user in users],
        "group": [str(user + 10) for user in users],
        "queue": [str(user + 20) for user in users],
        "month": ["1995-12" if row[0] < 10 * SECOND else "1996-01" for row in rows],
        "day": ["1995-12-31" if row[0] < 10 * SECOND else "1996-01-01" for row in rows],
        "size": [_size(row[3]) for row in rows],
        "runtime": ["<1m" for _ in rows],
        "class": ["short wide" if row[3] > 8 else "short narrow" for row in rows],
        "kind": [row[5] for row in rows],
        "partition": ["unknown" for _ in rows],
    }[key]
    groups = breakdown(schedule, key)
    assert len({group.label for group in groups}) == len(groups) == len(set(labels))
    for group in groups:
        mine = np.array([label == group.label for label in labels]) & counted
        alone = measure(schedule_of(rows, 9, counted=mine))
        assert group.jobs == alone["jobs"]
        assert group.metrics == {name: alone[name] for name in group.metrics}
        assert "wait_p95_s" in group.metrics


def test_one_group_is_the_whole_run() -> None:
    schedule = schedule_of(loose_rows(random.Random(8), 30, 9), 9)
    (group,) = breakdown(schedule, "user")
    whole = measure(schedule)
    assert group.label == "0"
    assert group.metrics == {name: whole[name] for name in group.metrics}


def test_numbers_are_in_their_order_and_absent_ones_unknown() -> None:
    schedule = seconds(*((0, 0, 1, 1),) * 4, queue=np.array([10, 9, -1, 10]))
    assert counts(schedule, "queue") == {"unknown": 1, "9": 1, "10": 2}
    assert list(counts(schedule, "queue")) == ["unknown", "9", "10"]


def test_a_queue_has_the_name_that_the_log_gives_it_and_stays_in_its_order() -> None:
    names = {9: "standby", 10: "express", 3: "nobody's"}
    schedule = seconds(*((0, 0, 1, 1),) * 5, queue=np.array([10, 9, -1, 10, 11]), queue_names=names)
    assert list(counts(schedule, "queue").items()) == [
        ("unknown", 1),
        ("standby", 1),
        ("express", 2),
        ("11", 1),
    ]


def test_classes_are_width_by_length() -> None:
    hour = 3600
    jobs = (
        (0, 0, 8, hour),
        (0, 0, 9, hour),
        (0, 0, 8, hour + 1),
        (0, 0, 9, hour + 1),
        (0, 0, 1, 1),
    )
    schedule = seconds(*jobs, procs_total=64)
    assert counts(schedule, "class") == {
        "short narrow": 2,
        "short wide": 1,
        "long narrow": 1,
        "long wide": 1,
    }


def test_sizes_are_between_powers_of_two() -> None:
    sizes = [1, 2, 3, 4, 5, 8, 9, 16, 33, 64, 65, 1 << 20, (1 << 20) + 1]
    schedule = seconds(*((0, 0, size, 1) for size in sizes), procs_total=1 << 30)
    assert counts(schedule, "size") == {
        "1": 1,
        "2": 1,
        "3-4": 2,
        "5-8": 2,
        "9-16": 2,
        "33-64": 2,
        "65-128": 1,
        "524289-1048576": 1,
        "1048577-2097152": 1,
    }


def test_run_times_on_an_edge_are_of_the_longer_class() -> None:
    runs = [
        0,
        59.999999,
        60,
        599,
        600,
        3599,
        3600,
        35_999,
        36_000,
        180_000,
        359_999,
        360_000,
        10**7,
    ]
    schedule = seconds(*((0, 0, 1, run) for run in runs), procs_total=99)
    assert counts(schedule, "runtime") == {
        "<1m": 2,
        "1-10m": 2,
        "10m-1h": 2,
        "1-10h": 2,
        "10-50h": 1,
        "50-100h": 2,
        ">100h": 2,
    }


def test_kinds_and_months_have_their_names() -> None:
    schedule = seconds(
        (0, 0, 1, 1), (0, 1, 1, 1), (86_400, 0, 1, 1), clock=LogClock(846_720_000, "UTC")
    )
    assert counts(schedule, "kind") == {"in_order": 1, "immediate": 2}
    assert counts(schedule, "month") == {"1996-10": 2, "1996-11": 1}
    assert counts(schedule, "day") == {"1996-10-31": 2, "1996-11-01": 1}


def test_a_warm_up_and_rejected_jobs_are_in_no_group() -> None:
    schedule = seconds(
        (0, 0, 1, 1), (0, -1, 2, 1), (0, 0, 4, 1), counted=np.array([False, True, True])
    )
    assert counts(schedule, "size") == {"3-4": 1}


@pytest.mark.parametrize("key", list(BREAKDOWNS))
def test_no_jobs_make_no_groups(key: str) -> None:
    assert breakdown(schedule_of([], 8), key) == []
    assert breakdown(schedule_of([], 8, clock=LogClock(0, "UTC")), key) == []


def test_an_unknown_key_is_named_with_a_suggestion() -> None:
    with pytest.raises(
        UsageError, match="breakdown by 'moth': there is none; did you mean 'month'"
    ):
        breakdown(schedule_of([], 8), "moth")


def test_groups_of_jobs_in_pieces_wait_as_the_whole_does() -> None:
    schedule = schedule_of(
        [
            (0, 0, 30 * SECOND, 2, 10 * SECOND, "in_order"),
            (0, 0, 10 * SECOND, 1, 10 * SECOND, "in_order"),
        ],
        4,
    )
    pieces = np.array([[0, 0, 4, 2, 0, 1], [0, 24, 30, 2, 0, 1]], np.int64)
    pieces[:, 1:3] *= SECOND
    schedule = replace(schedule, pieces=pieces)
    waits = {group.label: group.metrics["wait_mean_s"] for group in breakdown(schedule, "size")}
    assert waits == {"1": 0.0, "2": 20.0}
    assert measure(schedule)["wait_mean_s"] == 10.0
