"""The class of a job: the paper's examples, the bounds themselves, and a naive reading of the
rule."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbatch.model.job_class import JobClass
from qbatch.model.machine import Machine
from qbatch.workloads.machines import load_machine

HOUR = 3_600_000_000
GB = 2**30
ORIGIN = load_machine("origin2000")

TIME_HOURS = {"vst": 5, "st": 50, "mt": 200, "lt": 400}
SIZES = {"sj": (8, 2 * GB), "mj": (16, 4 * GB), "lj": (64, 16 * GB)}


def name_of(procs: int, memory: int, estimate: int, cpu_time: int | None = None) -> str | None:
    found = ORIGIN.class_of(procs, memory, estimate, cpu_time)
    return None if found is None else found.name


@pytest.mark.parametrize(
    ("procs", "memory_gb", "hours", "name"),
    [
        # The paper's own example: 4800 hours of processor time on 16 processors.
        (16, 4, 4800 / 16, "lt_mj"),
        (1, 3, 1, "vst_mj"),  # of one processor, but of the middle size for its memory
        (2, 10, 30, "st_lj"),
        (8, 2, 5, "vst_sj"),
        (9, 2, 5, "vst_mj"),
        (16, 4.001, 200, "mt_lj"),
        (64, 16, 400, "lt_lj"),
    ],
)
def test_the_examples_of_the_paper_and_every_bound(
    procs: int, memory_gb: float, hours: float, name: str
) -> None:
    assert name_of(procs, int(memory_gb * GB), int(hours * HOUR)) == name


def test_what_is_beyond_every_class_is_in_none() -> None:
    assert name_of(65, 1, HOUR) is None
    assert name_of(1, 16 * GB + 1, HOUR) is None
    assert name_of(1, 1, 400 * HOUR + 1) is None


def test_the_processor_time_and_the_run_time_bound_apart() -> None:
    assert name_of(1, 0, 5 * HOUR + HOUR // 2, 5 * HOUR) == "vst_sj"
    assert name_of(1, 0, 5 * HOUR + HOUR // 2 + 1, 5 * HOUR) == "st_sj"
    assert name_of(1, 0, HOUR, 5 * HOUR + 1) == "st_sj"
    assert name_of(1, 0, 1000 * HOUR, 50 * HOUR) == "st_sj", (
        "only the shortest class bounds the run time"
    )


@given(st.integers(1, 70), st.integers(0, 17 * GB), st.integers(0, 420 * HOUR))
def test_the_class_is_the_smallest_of_each_kind(procs: int, memory: int, estimate: int) -> None:
    times = [name for name, hours in TIME_HOURS.items() if estimate <= hours * HOUR]
    sizes = [name for name, (most, bytes_) in SIZES.items() if procs <= most and memory <= bytes_]
    assert name_of(procs, memory, estimate) == (
        f"{times[0]}_{sizes[0]}" if times and sizes else None
    )


def test_the_pairs_stand_in_the_order_of_the_file() -> None:
    names = [pair.name for pair in ORIGIN.class_pairs]
    assert names == [f"{time}_{size}" for size in SIZES for time in TIME_HOURS]


def test_a_plain_class_is_the_first_that_takes_the_job() -> None:
    small, large = JobClass("small", procs=2), JobClass("large", procs=8, memory=10)
    machine = Machine((), classes=(small, large))
    found = machine.class_of(3, 10, HOUR)
    assert found is not None
    assert (found.name, found.time, found.size) == ("large", large, large)
    assert machine.class_of(3, 11, HOUR) is None
    assert Machine(()).class_of(1, 0, 0) is None
    assert [pair.name for pair in machine.class_pairs] == ["small", "large"]
