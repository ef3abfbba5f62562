"""All metrics of one run."""

from __future__ import annotations

import numpy as np

from qbatch.metrics import machine, per_job
from qbatch.metrics.parents import parent_metrics
from qbatch.metrics.per_job import Metrics
from qbatch.metrics.predictions import prediction_metrics
from qbatch.model.record import Schedule


def measure(schedule: Schedule, *, costly: bool = True) -> Metrics:
    """Return every metric of ``METRICS`` by name; None if it is undefined (no jobs, no time), but ``jobs`` is then 0.

    Waits, responses, slowdowns, the shares and ``jobs`` are over the jobs that ran and are counted.  Makespan,
    throughput, utilisation, loss of capacity and ``queue_max`` are over the whole run, including the warm-up.  With
    ``costly=False`` there is no ``loss_of_capacity``, the one metric that needs a compiled kernel.

    For jobs with execution intervals (``Schedule.pieces``) the wait is all the time in which they did not advance: end - submit -
    run (docs/spec/papers.md 0.3, ``wait_total``).  The utilisation up to the last submission counts what really ran, discarded or
    not; loss of capacity is then undefined (None).

    If jobs are tasks of parents, ``parents`` and the statistics of their responses, slowdowns and spreads are included.

    If run times were predicted, their accuracy is included (:mod:`qbatch.metrics.predictions`).

    Refused jobs are in none of them; if there are any, ``rejected_count`` and ``rejected_share`` count them.
    """
    rows = np.flatnonzero(schedule.ran & schedule.workload.counted)
    figures: Metrics = {"jobs": len(rows), **per_job.job_metrics(per_job.job_times(schedule, rows))}
    figures["backfilled_share"] = per_job.backfilled_share(schedule.kind[rows])
    figures["immediate_share"] = per_job.immediate_share(schedule.kind[rows])
    ran = schedule.only_ran()
    figures["makespan_s"] = machine.makespan_s(ran.workload.submit, ran.end)
    figures["throughput_per_hour"] = machine.throughput_per_hour(ran)
    figures["utilisation_makespan"] = machine.utilisation_makespan(ran)
    figures["utilisation_submit"] = machine.utilisation_submit(ran)
    if costly:
        figures["loss_of_capacity"] = None if ran.is_in_pieces.any() else machine.loss_of_capacity(ran)
    if not len(ran):
        figures["queue_max"] = None
    else:
        figures["queue_max"] = machine.longest_queue(ran) if schedule.queue_max is None else schedule.queue_max
    if (schedule.workload.parent[rows] >= 0).any():
        figures |= parent_metrics(schedule, rows)
    figures |= prediction_metrics(schedule, rows)
    if schedule.rejected:
        count = sum(bool(schedule.workload.counted[each.row]) for each in schedule.rejected)
        came = count + int(figures["jobs"] or 0)
        figures |= {"rejected_count": count, "rejected_share": count / came if came else None}
    return figures
