"""Hold a replay of a site's scheduler against what really happened there
(docs/spec/production.md, section 9)."""

from __future__ import annotations

from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import msgspec
import numpy as np

from qbatch.model.machine import Machine
from qbatch.model.record import Int64Array, Schedule, Workload
from qbatch.model.site import Passes
from qbatch.policies.slurm import Slurm
from qbatch.simulation.calendar import ProgressCallback
from qbatch.simulation.drivers import run
from qbatch.workloads import Log
from qbatch.workloads.resource_rows import ResourceRows
from qbatch.workloads.site.controller_log import ControllerLog

SCHEMA = "qbatch.validate/1"

_SECOND = 1_000_000
_SHARES_S = (1, 60, 300, 3600)


class Validation(NamedTuple):
    """A replay, and the real starts of its jobs in microseconds, by row."""

    schedule: Schedule
    real: Int64Array


def validated(
    log: Log,
    work: Workload,
    machine: Machine,
    rows: ResourceRows,
    controller: ControllerLog | None = None,
    progress: ProgressCallback | None = None,
) -> Validation:
    """Return the replay of a log under the passes of its site.

    ``controller``: of it come the instants of passes, of submissions, starts and ends of jobs; else
    these are whole seconds of the log, and the passes those of the site's settings.
    """
    epoch = max(log.header.unix_start_time or 0, 0)
    start = np.asarray(log["submit"]) + np.maximum(np.asarray(log["wait"]), 0)
    real = start[work.log_row] * _SECOND
    instants: list[tuple[int, str]] = []
    if controller is not None:
        ids = [rows.ids.get(number, "") for number in work.number.tolist()]

        def of(table: dict[str, float], usual: Int64Array) -> Int64Array:
            pairs = zip(ids, usual.tolist(), strict=True)
            return np.array(
                [
                    round((table[each] - epoch) * 1e6) if each in table else value
                    for each, value in pairs
                ],
                np.int64,
            )

        submit, real = of(controller.submitted, work.submit), of(controller.started, real)
        ends = of(controller.ended, real + work.run)
        work = work.changed(submit=submit, run=np.maximum(ends - real, 0))
        order = np.lexsort((work.number, submit))
        work, real = work.only(order), real[order]
        instants = [(round((at - epoch) * 1e6), kind) for at, kind in controller.passes]
        instants = sorted(each for each in instants if each[0] >= 0)
    policy = Slurm("slurm", epoch, instants)
    return Validation(run(work, machine, policy, driver="engine", progress=progress), real)


def facts_of(found: Validation, passes: Passes) -> dict[str, Any]:
    """Return the start errors and what comes of them; times in seconds, names end in their unit."""
    schedule, work = found.schedule, found.schedule.workload
    ran = schedule.start >= 0
    error = (schedule.start[ran] - found.real[ran]) / _SECOND
    size = np.abs(error)
    waits = (schedule.start[ran] - work.submit[ran]) / _SECOND
    real_waits = (found.real[ran] - work.submit[ran]) / _SECOND
    shares = {f"within_{limit}_s": float(np.mean(size <= limit)) for limit in _SHARES_S}
    return {
        "jobs": int(ran.sum()),
        "not_started": int((~ran).sum()),
        "error_mean_s": float(error.mean()),
        "error_median_s": _percentile(error, 50),
        "error_p5_s": _percentile(error, 5),
        "error_p95_s": _percentile(error, 95),
        "error_size_p95_s": _percentile(size, 95),
        **shares,
        "backfill_interval_s": passes.backfill_interval,
        "within_backfill_interval": float(np.mean(size <= passes.backfill_interval)),
        "wait_mean_s": float(waits.mean()),
        "real_wait_mean_s": float(real_waits.mean()),
        "wait_rank_correlation": _rank_correlation(waits, real_waits),
    }


def jobs_of(found: Validation, rows: ResourceRows) -> list[dict[str, Any]]:
    """Return the jobs that did not start within a second of their real start, the greatest error
    first."""
    schedule, work = found.schedule, found.schedule.workload
    error = np.where(schedule.start >= 0, schedule.start - found.real, np.iinfo(np.int64).max)
    order = np.argsort(-np.abs(error), kind="stable")
    return [
        {
            "job": int(work.number[row]),
            "id": rows.ids.get(int(work.number[row]), ""),
            "start_s": int(schedule.start[row]) / _SECOND if schedule.start[row] >= 0 else None,
            "real_start_s": int(found.real[row]) / _SECOND,
        }
        for row in order.tolist()
        if abs(int(error[row])) > _SECOND
    ]


def without_limits(machine: Machine) -> Machine:
    """Return a machine of which the limits do not hold."""
    assert machine.site is not None
    site = msgspec.structs.replace(machine.site, enforces_limits=False)
    return msgspec.structs.replace(machine, site=site)


def zone_of(log: Log) -> ZoneInfo:
    """Return the time zone of a log's header, UTC if it has none."""
    name = (log.header.time_zone_string or "UTC").removeprefix(":")
    return ZoneInfo(name)


def _percentile(values: np.ndarray, percent: int) -> float:
    """Return a percentile by the nearest rank."""
    place = max(int(np.ceil(percent / 100 * len(values))) - 1, 0)
    return float(np.sort(values)[place])


def _rank_correlation(one: np.ndarray, other: np.ndarray) -> float | None:
    """Return Spearman's correlation with mean ranks of ties; None if one side does not vary."""
    ranks = []
    for values in (one, other):
        _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
        ends = np.cumsum(counts)
        ranks.append(((ends - counts + 1 + ends) / 2)[places])
    if any(float(each.std()) == 0 for each in ranks):
        return None
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])
