"""Metrics of predicted run times: their error at submission against the real run times."""

from __future__ import annotations

import numpy as np

from qbatch.metrics.per_job import Float64Array, Metrics, statistics_of_times
from qbatch.model.record import Int64Array, Schedule


def accuracies(expected: Int64Array, run: Int64Array) -> Float64Array:
    """Return min(expected, run) / max(expected, run): 1 for a correct prediction, also if both are 0.

    Source: Tsafrir, Etsion and Feitelson, IEEE TPDS 2007: run / expected if the prediction was too long, expected / run if it
    was too short.
    """
    high = np.maximum(expected, run)
    return np.asarray(np.divide(np.minimum(expected, run), high, out=np.ones(len(run)), where=high > 0))


def prediction_metrics(schedule: Schedule, rows: Int64Array) -> Metrics:
    """Return the metrics of the predictions of some rows, all of which ran; empty if no run time was predicted.

    For a job without a prediction the expected run time is its estimate, as the scheduler had it.
    """
    if schedule.predicted is None:
        return {}
    predicted, estimate, run = schedule.predicted[rows], schedule.workload.estimate[rows], schedule.workload.run[rows]
    expected, count = np.where(predicted >= 0, predicted, estimate), len(rows)
    return {
        "predicted_share": int((predicted >= 0).sum()) / count if count else None,
        **statistics_of_times("prediction_error", np.abs(expected - run)),
        "prediction_accuracy_mean": _mean(accuracies(expected, run)),
        "estimate_accuracy_mean": _mean(accuracies(estimate, run)),
        "underprediction_share": int((expected < run).sum()) / count if count else None,
    }


def _mean(values: Float64Array) -> float | None:
    return float(np.sum(np.sort(values))) / len(values) if len(values) else None
