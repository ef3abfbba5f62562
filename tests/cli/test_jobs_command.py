"""``qbatch jobs``: the order of the rows (a daemon's answers are in ``test_live_commands``)."""

from __future__ import annotations

import pytest

from qbatch.cli.jobs import COLUMNS, _order
from qbatch.wire.records import JobRecord


def record(number: str, walltime: str, memory: str, priority: int, waited: int) -> JobRecord:
    resources = {name: text for name, text in (("walltime", walltime), ("mem", memory)) if text}
    return JobRecord(
        id=f"{number}.qbatch",
        name="n",
        user="u",
        queue="b",
        state="F",
        resources=resources,
        priority=priority,
        submitted=0,
        started=waited * 1_000_000,
    )


JOBS = [
    record("10", "100:00:00", "512mb", -5, 36_000),
    record("9", "20:00:00", "2gb", 3, 7_200),
    record("9[10]", "00:10:00", "1gb", 0, 100),
    record("9[9]", "", "", 20, 0),
]


@pytest.mark.parametrize(
    ("column", "order"),
    [
        ("id", ["9", "9[9]", "9[10]", "10"]),
        ("walltime", ["9[10]", "9", "10", "9[9]"]),  # a job without one is last
        ("memory", ["10", "9[10]", "9", "9[9]"]),
        ("priority", ["10", "9[10]", "9", "9[9]"]),
        ("waited", ["9[9]", "9[10]", "9", "10"]),
        ("name", ["10", "9", "9[10]", "9[9]"]),
    ],
)
def test_a_column_is_sorted_by_what_it_means(column: str, order: list[str]) -> None:
    ordered = sorted(JOBS, key=lambda job: _order(job, 0, column))
    assert [job.id.partition(".")[0] for job in ordered] == order


def test_every_column_can_be_sorted_by() -> None:
    for name in COLUMNS:
        assert len(sorted(JOBS, key=lambda job: _order(job, 0, name))) == len(JOBS)
