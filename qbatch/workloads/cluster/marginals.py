"""Statistics of a generated cluster, next to those of published GPU clusters.

Sources of the published figures:

- Helios: Q. Hu, P. Sun, S. Yan, Y. Wen and T. Zhang, *Characterization and prediction of deep
  learning workloads in large-scale GPU datacenters*, SC 2021; four clusters, April to September
  2020.  Its artifact (github.com/S-Lab-System-Group/HeliosArtifact) has most of them in
  ``analysis/1_compare with Philly trace/helios_cluster_summary.csv``, row ``total``.
- Philly: M. Jeon, S. Venkataraman, A. Phanishayee, J. Qian, W. Xiao and F. Yang, *Analysis of
  large-scale multi-tenant GPU clusters for DNN training workloads*, USENIX ATC 2019.
"""

from __future__ import annotations

from collections.abc import Callable
from math import fsum
from typing import NamedTuple

import numpy as np

from qbatch.workloads.cluster.generate import CANCELLED, COMPLETED, FAILED, GeneratedCluster
from qbatch.workloads.cluster.kinds import DAY_S, HOUR_S
from qbatch.workloads.log import Column


class Marginal(NamedTuple):
    """A statistic: its name, its unit, how it is measured, and published values as text (empty:
    none is known).

    A text ends in its source: ``A`` the artifact of Helios, ``D`` computed from it, ``P`` stated in
    the paper of the cluster, ``H`` stated for Philly in the paper on Helios.
    """

    name: str
    unit: str
    measure: Callable[[GeneratedCluster], float]
    helios: str = ""
    philly: str = ""


def _gpu_jobs(cluster: GeneratedCluster) -> Column:
    return cluster.gpus > 0


def _run(cluster: GeneratedCluster) -> Column:
    return np.asarray(cluster.log["run"], np.int64)


def _percent(which: Column, among: Column, weight: Column | None = None) -> float:
    """Return what share of the weight (1 for each if there is none) is in a part of a group."""
    both = which & among
    if weight is None:
        return 100.0 * int(both.sum()) / max(int(among.sum()), 1)
    return 100.0 * int(weight[both].sum()) / max(int(weight[among].sum()), 1)


def _of_jobs(
    part: Callable[[GeneratedCluster], Column], *, gpu: bool = True
) -> Callable[..., float]:
    """Return the measure of a share of the jobs with GPUs, or of those without."""
    return lambda cluster: _percent(part(cluster), _gpu_jobs(cluster) == gpu)


def _of_gpu_time(part: Callable[[GeneratedCluster], Column]) -> Callable[..., float]:
    """Return the measure of a share of the GPU time."""
    return lambda cluster: _percent(part(cluster), _gpu_jobs(cluster), cluster.gpus * _run(cluster))


def _ends(status: int) -> Callable[[GeneratedCluster], Column]:
    return lambda cluster: np.asarray(cluster.log["status"]) == status


def _gpus_from(least: int, most: int = 1 << 30) -> Callable[[GeneratedCluster], Column]:
    return lambda cluster: (cluster.gpus >= least) & (cluster.gpus <= most)


def _load(cluster: GeneratedCluster) -> float:
    """Return the GPU time of the jobs over that of the cluster, on whole days of submissions."""
    there = sum(dict(host.resources).get("gpu", 0) for host in cluster.machine.hosts)
    days = int(np.max(cluster.log["submit"])) // DAY_S + 1
    return 100.0 * int((cluster.gpus * _run(cluster)).sum()) / (there * days * DAY_S)


def _mean(values: Column) -> float:
    return fsum(values.tolist()) / max(len(values), 1)


def _run_of(summary: Callable[[Column], float], *, gpu: bool) -> Callable[..., float]:
    return lambda cluster: float(summary(_run(cluster)[_gpu_jobs(cluster) == gpu]))


def _in_arrays(cluster: GeneratedCluster) -> Column:
    """Return which jobs were submitted at one second with an equal job of their user."""
    columns = [
        np.asarray(cluster.log[name], np.int64)
        for name in ("submit", "user", "queue", "procs_requested", "time_requested")
    ]
    _, of, count = np.unique(
        np.stack(columns, axis=1), axis=0, return_inverse=True, return_counts=True
    )
    return np.asarray(count[of.reshape(-1)] > 1)


def _hourly(cluster: GeneratedCluster) -> Column:
    """Return how many jobs with GPUs were submitted in each hour of the day."""
    submit = np.asarray(cluster.log["submit"], np.int64)[_gpu_jobs(cluster)]
    return np.bincount(submit // HOUR_S % 24, minlength=24)


def _busiest_over_quietest(cluster: GeneratedCluster) -> float:
    hourly = _hourly(cluster)
    return int(hourly.max()) / max(int(hourly.min()), 1)


def _requested_over_run(cluster: GeneratedCluster) -> float:
    run, requested = _run(cluster), np.asarray(cluster.log["time_requested"], np.int64)
    return float(np.median((requested / np.maximum(run, 1))[_gpu_jobs(cluster)]))


MARGINALS = (
    Marginal(
        "jobs with GPUs",
        "% of jobs",
        lambda cluster: 100.0 * int(_gpu_jobs(cluster).sum()) / len(cluster.gpus),
        "47.0 D",
        "100 H",
    ),
    Marginal(
        "GPUs of a job, mean",
        "GPUs",
        lambda each: _mean(each.gpus[each.gpus > 0]),
        "3.72 A",
        "1.75 H",
    ),
    Marginal("jobs with one GPU", "% of GPU jobs", _of_jobs(_gpus_from(1, 1)), "at least 50 D"),
    Marginal("jobs with 8 GPUs or more", "% of GPU jobs", _of_jobs(_gpus_from(8)), "below 10 P"),
    Marginal("jobs with one GPU", "% of GPU time", _of_gpu_time(_gpus_from(1, 1)), "3 to 12 P"),
    Marginal(
        "jobs with 8 GPUs or more", "% of GPU time", _of_gpu_time(_gpus_from(8)), "about 60 P"
    ),
    Marginal("run time of GPU jobs, median", "s", _run_of(np.median, gpu=True), "206 A"),
    Marginal("run time of GPU jobs, mean", "s", _run_of(_mean, gpu=True), "6,652 A", "28,329 H"),
    Marginal("run time above a day", "% of GPU jobs", _of_jobs(lambda each: _run(each) > DAY_S)),
    Marginal(
        "run time above 7 days",
        "% of GPU jobs",
        _of_jobs(lambda each: _run(each) > 7 * DAY_S),
        philly="0.5 P",
    ),
    Marginal("run time of CPU jobs, median", "s", _run_of(np.median, gpu=False), "2 A"),
    Marginal("run time of CPU jobs, mean", "s", _run_of(_mean, gpu=False), "629 A"),
    Marginal("completed", "% of GPU jobs", _of_jobs(_ends(COMPLETED)), "62.4 A", "69.3 P"),
    Marginal("cancelled", "% of GPU jobs", _of_jobs(_ends(CANCELLED)), "22.1 A", "13.5 P"),
    Marginal("failed", "% of GPU jobs", _of_jobs(_ends(FAILED)), "15.5 A", "17.2 P"),
    Marginal("completed", "% of GPU time", _of_gpu_time(_ends(COMPLETED)), "51.3 D", "44.5 P"),
    Marginal("cancelled", "% of GPU time", _of_gpu_time(_ends(CANCELLED)), "39.4 D", "37.7 P"),
    Marginal("failed", "% of GPU time", _of_gpu_time(_ends(FAILED)), "9.3 D", "17.8 P"),
    Marginal("completed", "% of CPU jobs", _of_jobs(_ends(COMPLETED), gpu=False), "90.9 A"),
    Marginal("tasks of arrays", "% of GPU jobs", _of_jobs(_in_arrays)),
    Marginal("submissions, busiest hour over quietest", "", _busiest_over_quietest),
    Marginal("requested time over run time, median", "", _requested_over_run),
    Marginal("load", "% of GPUs", _load),
)
"""All statistics, in the order of the documentation."""
