"""Steps that replace the users' requested times: by the run times, or by a model of users."""

from __future__ import annotations

import numpy as np

from qbatch.workloads.log import Log
from qbatch.workloads.transform.load import can_run, changed
from qbatch.workloads.tsafrir import tsafrir_estimates


def exact_estimates(log: Log) -> Log:
    """Return the log with every estimate equal to the run time."""
    columns = dict(log.columns) | {"time_requested": np.maximum(log["run"], 0)}
    return changed(log, columns, "estimates: exact")


def users_estimates(log: Log, *, seed: int, largest_s: int | None = None) -> Log:
    """Return the log with estimates of the model of Tsafrir, Etsion and Feitelson instead of its own.

    Rows that no replay would run keep theirs.

    Args:
        seed: a whole number >= 0.
        largest_s: the largest estimate in seconds; None: the least whole hour that no run exceeds.

    Raises:
        UsageError: see ``tsafrir_estimates``: a job runs longer than ``largest_s``, or too many run long.
    """
    rows = np.flatnonzero(can_run(log))
    estimate = np.array(log["time_requested"], np.float64)
    estimate[rows] = tsafrir_estimates(np.asarray(log["run"])[rows], seed=seed, largest_s=largest_s)
    said = "" if largest_s is None else f", max={largest_s}"
    return changed(log, dict(log.columns) | {"time_requested": estimate}, f"estimates: model=tsafrir{said}, seed={seed}")
