"""Metrics of predictions, against one job after another."""

from __future__ import annotations

import random
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest

from qbatch.metrics import measure
from qbatch.metrics.measure import accuracies
from qbatch.model.record import Schedule
from qbatch.results.job_rows import read_job_rows, write_job_rows
from tests.harness import run_named
from tests.policies.test_predicted import random_tasks, workload


def schedule_of(seed: int, policy: str = "predicted") -> Schedule:
    return run_named(workload(random_tasks(random.Random(seed), 6), 6), policy)


def test_they_are_those_of_the_jobs_one_by_one() -> None:
    measured = 0
    for seed in range(60):
        schedule = schedule_of(seed)
        figures = measure(schedule)
        if schedule.predicted is None:
            assert not [name for name in figures if "predict" in name]
            continue
        measured += 1
        work, count = schedule.workload, len(schedule)
        errors, of_expected, of_estimates, short = [], [], [], 0
        for row in range(count):
            run, estimate = int(work.run[row]), int(work.estimate[row])
            predicted = int(schedule.predicted[row])
            expected = estimate if predicted < 0 else predicted
            assert expected <= estimate
            errors.append(abs(expected - run))
            of_expected.append(
                1.0 if expected == run else run / expected if expected > run else expected / run
            )
            of_estimates.append(1.0 if estimate == run else run / estimate)
            short += run > expected
        assert (
            figures["predicted_share"]
            == sum(each >= 0 for each in schedule.predicted.tolist()) / count
        )
        assert figures["prediction_error_mean_s"] == pytest.approx(
            sum(errors) / count / 1e6, rel=1e-15
        )
        assert figures["prediction_error_max_s"] == max(errors) / 1e6
        assert figures["prediction_accuracy_mean"] == pytest.approx(
            sum(of_expected) / count, rel=1e-12
        )
        assert figures["estimate_accuracy_mean"] == pytest.approx(
            sum(of_estimates) / count, rel=1e-12
        )
        assert figures["underprediction_share"] == short / count
    assert measured > 20


def test_zero_is_met_by_zero_and_missed_by_all_else() -> None:
    assert accuracies(np.array([0, 0, 5, 4]), np.array([0, 5, 0, 8])).tolist() == [
        1.0,
        0.0,
        0.0,
        0.5,
    ]


def test_a_run_without_predictions_has_none() -> None:
    schedule = schedule_of(3, "easy")
    assert schedule.predicted is None
    assert "prediction_accuracy_mean" not in measure(schedule)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_job_rows_show_them_and_give_the_same_metrics(tmp_path: Path, suffix: str) -> None:
    schedule = next(
        found
        for found in map(schedule_of, range(20))
        if found.predicted is not None and len(found) > 9
    )
    for each in (schedule, replace(schedule, predicted=None)):
        out = BytesIO()
        write_job_rows(out, [each], suffix)
        path = tmp_path / f"rows{suffix}"
        path.write_bytes(out.getvalue())
        (back,) = read_job_rows(path)
        if each.predicted is None:
            assert back.predicted is None
        else:
            assert back.predicted is not None
            assert back.predicted.tolist() == each.predicted.tolist()
        ours, theirs = measure(each, costly=False), measure(back, costly=False)
        named = [name for name in ours if "predict" in name or "accuracy" in name]
        assert [ours[name] for name in named] == [theirs[name] for name in named]
