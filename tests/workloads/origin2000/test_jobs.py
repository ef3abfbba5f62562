"""One class: its distribution bent until the demands are met."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbatch.workloads.draws import Draws
from qbatch.workloads.origin2000 import MONTHS
from qbatch.workloads.origin2000.jobs import DemandTarget, draw_class, early_count, tilted
from qbatch.workloads.origin2000.tables import EARLY_PERCENT


@given(st.floats(0, 0.999), st.floats(1, 1e4), st.floats(1.01, 1e5), st.floats(-3, 12))
def test_the_tilted_distribution_is_the_formula(
    u: float, low: float, ratio: float, tilt: float
) -> None:
    found = float(tilted(np.array([u]), np.array([low]), np.log([ratio]), tilt)[0])
    if abs(tilt) < 1e-3:
        assert found == pytest.approx(low * ratio**u, rel=1e-2)
    else:
        assert found == pytest.approx(low * (1 + u * (ratio**tilt - 1)) ** (1 / tilt), rel=1e-6)
    assert low * (1 - 1e-9) <= found <= low * ratio * (1 + 1e-9)


def test_a_greater_tilt_gives_greater_numbers() -> None:
    u, low, high = (np.array(values) for values in ([0.1, 0.5, 0.9], [60.0] * 3, [18000.0] * 3))
    curves = [
        tilted(u, low, np.log(high / low), tilt).tolist() for tilt in (-3, -1, -1e-9, 0, 1e-9, 1, 6)
    ]
    for one, other in pairwise(curves):
        assert all(a <= b * (1 + 1e-6) for a, b in zip(one, other, strict=True))


def test_the_early_are_15_to_20_percent_in_every_class_of_the_table() -> None:
    times = list(EARLY_PERCENT) * 3
    for month in MONTHS.values():
        for jobs, time in zip(month.counts, times, strict=True):
            share = early_count(jobs, EARLY_PERCENT[time]) / jobs
            assert 0.15 <= share <= 0.20
            assert abs(share - EARLY_PERCENT[time] / 100) <= 1 / jobs


@given(
    seed=st.integers(0, 2**60), size=st.sampled_from(["sj", "mj", "lj"]), share=st.floats(0.15, 0.4)
)
def test_what_is_drawn_meets_its_demands(seed: int, size: str, share: float) -> None:
    procs = {"sj": 4, "mj": 14, "lj": 34}[size]
    area = round(100 * procs * share * 40 * 3600)
    target = DemandTarget("st", size, 100, area, area * 100_000)
    jobs = draw_class(Draws(seed), target)
    assert jobs is not None
    work = jobs.procs * jobs.run_s
    assert int(work.sum()) == pytest.approx(area, rel=0.002)
    assert int((work * jobs.memory_kb).sum()) == pytest.approx(target.memory_seconds, rel=0.002)
    assert int((jobs.run_s < 60).sum()) == early_count(100, EARLY_PERCENT["st"])
    assert (jobs.run_s >= 1).all()
    assert (jobs.run_s <= jobs.requested_s).all()
    assert ((jobs.used_kb >= 1) & (jobs.used_kb <= jobs.memory_kb)).all()


@pytest.mark.parametrize(
    ("procs_seconds", "kb"), [(10**12, 10**5), (1, 10**5), (10**8, 10**9), (10**8, 1)]
)
def test_demands_that_cannot_be_met_are_reported(procs_seconds: int, kb: int) -> None:
    for size in ("sj", "lj"):
        assert (
            draw_class(Draws(1), DemandTarget("st", size, 100, procs_seconds, procs_seconds * kb))
            is None
        )


def test_the_memory_of_serial_jobs_can_be_bent_apart() -> None:
    target = DemandTarget("st", "sj", 500, 60_000_000, 60_000_000 * 150_000)
    plain, lean = draw_class(Draws(5), target), draw_class(Draws(5), target, -2.0)
    assert plain is not None
    assert lean is not None
    serial = plain.procs == 1
    assert lean.memory_kb[serial].sum() < plain.memory_kb[serial].sum()
    assert lean.memory_kb[~serial].sum() > plain.memory_kb[~serial].sum()
    assert math.isclose(
        int((lean.procs * lean.run_s * lean.memory_kb).sum()), target.memory_seconds, rel_tol=0.002
    )
