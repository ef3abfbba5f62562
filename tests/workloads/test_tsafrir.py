"""Users' estimates: the histogram of the model, and which job gets which of them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qbatch.model.errors import UsageError
from qbatch.workloads import generate_log
from qbatch.workloads.lublin import generate_lublin
from qbatch.workloads.transform import taken, users_estimates
from qbatch.workloads.tsafrir import (
    HEAD,
    _head_ranks,
    _head_times,
    bins_of,
    estimate_histogram,
    tsafrir_estimates,
)

HOUR = 3600
# The popularity ranks of docs/spec/workloads.md 2.2, row by row.
ROWS = """3 1 1 1; 1 3 4 6; 4 4 10 5; 17 2 14 3; 13 12 20 7;
7 9 2 2; 8 8 3 18; 18 18 7 19; 2 6 12 4; 6 7 6 11; 16 11 19 20;
10 20 5 9; 5 16 18 10; 15 5 16 14; 14 14 9 13; 19 13 17 16; 11 10 15 15; 12 15 13 17; 9 17 8 8; 20 19 11 12"""
RANKS = [[int(each) for each in row.split()] for row in ROWS.split(";")]


@pytest.mark.parametrize(
    ("jobs", "bins"),
    [
        (1, 1),
        (2, 1),
        (20, 10),
        (200, 20),
        (1000, 35),
        (10_000, 90),
        (70_000, 340),
        (250_000, 565),
        (10**6, 565),
        (5500, 63),
    ],
)
def test_the_number_of_different_estimates_grows_with_the_jobs(jobs: int, bins: int) -> None:
    assert bins_of(jobs) == bins


@pytest.mark.parametrize("jobs", [1000, 10_000, 70_000])
@pytest.mark.parametrize("largest", [4 * HOUR, 18 * HOUR, 46 * HOUR, 500 * HOUR])
def test_the_histogram_is_that_of_the_model(jobs: int, largest: int) -> None:
    time, count = estimate_histogram(jobs, largest, seed=3)
    assert count.sum() == jobs
    assert count.min() >= 1
    assert (np.diff(time) > 0).all()
    assert (time[0] > 0, time[-1]) == (True, largest)
    assert len(time) <= bins_of(jobs)
    assert len(time) >= 0.9 * bins_of(jobs) or largest < 18 * HOUR
    assert count[-1] == count.max()
    head = _head_times(largest)
    popular = np.sort(count[np.isin(time, head)])[::-1]
    assert len(popular) == HEAD
    assert popular.sum() / jobs == pytest.approx(0.89, abs=0.003 + 5 / jobs)
    # Rank 1 takes what the formula of the others leaves of 89 %.
    shares = [14.0491 * np.exp(-0.177531 * rank) + 0.462513 for rank in range(2, HEAD + 1)]
    shares = [89 - sum(shares), *shares]
    assert (100 * popular[1:] / jobs).tolist() == pytest.approx(shares[1:], abs=50.01 / jobs)
    assert 100 * popular[0] / jobs == pytest.approx(shares[0], abs=700 / jobs)
    rare = np.sort(count[~np.isin(time, head)])[::-1]
    law = np.arange(HEAD + 1, HEAD + 1 + len(rare)) ** -2.267
    assert rare.tolist() == pytest.approx((law / law.sum() * 0.11 * jobs).tolist(), abs=0.99)


def test_the_tail_is_denser_where_estimates_are_short() -> None:
    time, _ = estimate_histogram(70_000, 46 * HOUR, seed=1)
    tail = sorted(set(time.tolist()) - set(_head_times(46 * HOUR)))
    bend = 1 + 12.1039 * 340**-0.6026
    for place, each in enumerate(tail, 1):
        x = place / len(tail)
        assert each == pytest.approx(46 * HOUR * (bend - 1) * x / (bend - x), rel=0.02, abs=62)
    assert all(each % 60 in (0, 10, 20, 30, 40, 50) for each in tail)


def test_the_popular_values_are_the_usual_ones_and_multiples_of_round_times() -> None:
    minutes = [each // 60 for each in _head_times(18 * HOUR)]
    assert minutes[:15] == [1080, 5, 15, 10, 20, 30, 60, 120, 180, 240, 300, 360, 480, 600, 720]
    # Multiples of 10 h and 5 h (15 h), 2 h, 1 h, those left, the largest first.
    assert minutes[15:] == [900, 960, 840, 1020, 780]
    longest = [each // HOUR for each in _head_times(500 * HOUR)]
    assert longest[16:] == [400, 200, 300, 100]
    assert _head_times(HOUR)[:6] == [3600, 300, 900, 600, 1200, 1800]
    for largest in (HOUR, HOUR + 1, 5000, 2 * HOUR, 10**9):
        assert len(set(_head_times(largest))) == HEAD
        assert max(_head_times(largest)) == largest


def test_ranks_are_those_of_the_logs_at_that_place() -> None:
    seen = [Counter[int]() for _ in RANKS]
    for seed in range(300):
        ranks = _head_ranks(HEAD, seed)
        assert sorted(ranks) == list(range(1, HEAD + 1))
        assert ranks[0] == 1
        for place, rank in enumerate(ranks):
            seen[place][rank] += 1
            if place:
                # Drawn from the ranks of the rows so far.
                assert any(rank in row for row in RANKS[: place + 1])
            # A rank goes before all others when its last row is reached.
            due = [
                each
                for each in ranks[place:]
                if place and not any(each in row for row in RANKS[place + 1 :])
            ]
            assert rank in due or not due
    # The better of two draws: of the first pool (3; 3, 4, 6) rank 3 is drawn with probability 3/4,
    # 4 and 6 more rarely.
    assert seen[1][3] / 300 == pytest.approx(0.75, abs=0.08)
    assert seen[1][6] / 300 == pytest.approx(1 / 16, abs=0.05)


def test_of_fewer_values_the_ranks_close_up() -> None:
    assert all(
        sorted(_head_ranks(count, seed)) == list(range(1, count + 1))
        for count in (1, 5, 13)
        for seed in range(20)
    )


@settings(max_examples=80, deadline=None)
@given(
    run=st.lists(st.integers(0, 30_000), min_size=1, max_size=300),
    seed=st.integers(0, 2**70),
    more=st.integers(0, 500_000),
)
def test_no_job_runs_longer_than_its_estimate_and_all_estimates_are_given(
    run: list[int], seed: int, more: int
) -> None:
    largest = max(max(run), HOUR) + more
    time, count = estimate_histogram(len(run), largest, seed)
    pool = np.repeat(time, count)
    is_possible = (np.sort(pool) >= np.sort(run)).all()
    if not is_possible:
        with pytest.raises(UsageError, match="estimates of the model are that long"):
            tsafrir_estimates(np.array(run), seed=seed, largest_s=largest)
        return
    estimate = tsafrir_estimates(np.array(run), seed=seed, largest_s=largest)
    assert (estimate >= run).all()
    assert sorted(estimate.tolist()) == pool.tolist()


def test_a_job_draws_uniformly_among_the_estimates_that_are_long_enough() -> None:
    # 200 jobs that nearly all fit any estimate: a job that can take all of them gets each in
    # proportion to its count.
    run = np.zeros(200, np.int64)
    found = Counter(
        int(tsafrir_estimates(run, seed=seed, largest_s=18 * HOUR)[77]) for seed in range(800)
    )
    share = [estimate_histogram(200, 18 * HOUR, seed) for seed in range(60)]
    mean = np.mean([count[time == 18 * HOUR][0] for time, count in share]) / 200
    assert found[18 * HOUR] / 800 == pytest.approx(mean, abs=0.055)
    assert found[300] / 800 == pytest.approx(
        np.mean([count[time == 300][0] for time, count in share]) / 200, abs=0.04
    )


def test_the_largest_estimate_is_the_most_popular_one_of_a_log_and_whole_hours_unless_given() -> (
    None
):
    log = generate_lublin(jobs=10_000, estimates="tsafrir", seed=4)
    value, count = np.unique(log["time_requested"], return_counts=True)
    assert value[np.argmax(count)] == value[-1] == -(-int(log["run"].max()) // HOUR) * HOUR
    assert (log["time_requested"] >= log["run"]).all()
    # "20 values cover ~90% of jobs"; most jobs use little of what they ask for.
    assert np.sort(count)[-HEAD:].sum() / 10_000 == pytest.approx(0.89, abs=0.003)
    assert np.median(log["run"] / log["time_requested"]) < 0.4


def test_a_seed_is_kept_and_another_one_gives_other_estimates() -> None:
    run = np.arange(500) * 5
    first = tsafrir_estimates(run, seed=1)
    assert first.tolist() == tsafrir_estimates(run, seed=1).tolist()
    assert first.tolist() != tsafrir_estimates(run, seed=2).tolist()


def test_run_times_need_not_be_whole_and_there_may_be_none() -> None:
    assert (tsafrir_estimates(np.array([3599.5, 0.25]), seed=1) == HOUR).all()
    assert len(tsafrir_estimates(np.empty(0), seed=1)) == 0


@pytest.mark.parametrize(
    ("run", "largest", "said"),
    [
        (
            [10, 9000, 8000],
            7200,
            "is 7200 s, but 2 of 3 jobs run longer, the longest 9000 s; use 9000 or more",
        ),
        ([10], 3599, "the largest estimate is 3599 s; use 3600 to"),
        ([10], 10**10, "use 3600 to 1,000,000,000 seconds"),
        ([7000] * 100, 7200, "jobs run 7000 s or longer, but only"),
    ],
)
def test_what_cannot_be_is_refused(run: list[int], largest: int, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        tsafrir_estimates(np.array(run), seed=1, largest_s=largest)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_of_a_log_the_estimates_are_replaced_and_all_else_is_kept() -> None:
    log = taken(generate_log(jobs=400, procs=64, load=0.7, seed=3), first=300)
    log.columns["run"] = np.array(log["run"])
    log.columns["run"][5] = -1
    made = users_estimates(log, seed=8, largest_s=20 * HOUR)
    ran = np.flatnonzero(log["run"] >= 0)
    assert (
        made["time_requested"][ran].tolist()
        == tsafrir_estimates(log["run"][ran], seed=8, largest_s=20 * HOUR).tolist()
    )
    assert made["time_requested"][5] == log["time_requested"][5]
    for name in ("job", "submit", "run", "procs_requested", "user"):
        assert made[name].tolist() == log[name].tolist()
    assert made.header.notes[-1] == "estimates: model=tsafrir, max=72000, seed=8"
