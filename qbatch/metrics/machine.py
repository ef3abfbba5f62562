"""Metrics of the machine over the whole run, from a schedule in which every job ran
(``Schedule.only_ran``).

Utilisation over the makespan counts the run times; up to the last submission it counts what held
processors.  Loss of capacity is undefined if jobs have several execution intervals: it assumes that
a job holds its processors from start to end.
"""

from __future__ import annotations

import numpy as np

from qbatch.metrics.sums import LOW_BITS, exact_area
from qbatch.model.record import MICROSECONDS, Int64Array, Schedule

HOUR_US = 3600 * MICROSECONDS


def makespan_us(submit: Int64Array, end: Int64Array) -> int:
    """Makespan = last end - first submit (docs/spec/papers.md 0.3); 0 without jobs."""
    return int(end.max()) - int(submit.min()) if len(submit) else 0


def makespan_s(submit: Int64Array, end: Int64Array) -> float | None:
    """Makespan in seconds = last end - first submit (docs/spec/papers.md 0.3); None without
    jobs."""
    return makespan_us(submit, end) / MICROSECONDS if len(submit) else None


def throughput_per_hour(ran: Schedule) -> float | None:
    """Throughput = jobs that ran / makespan (standard)."""
    return _share(len(ran.start) * HOUR_US, makespan_us(ran.workload.submit, ran.end))


def utilisation_makespan(ran: Schedule) -> float | None:
    """Utilisation = sum(procs * run) / (P * makespan) (docs/spec/papers.md 0.3)."""
    jobs = ran.workload
    return _share(
        exact_area(jobs.procs, jobs.run), jobs.procs_total * makespan_us(jobs.submit, ran.end)
    )


def utilisation_submit(ran: Schedule) -> float | None:
    """Utilisation from the first to the last submit = processor time used in that window / (P * its
    length).

    Only the part inside the window counts of what held processors (docs/spec/papers.md 0.3: the
    window for open traces).
    """
    jobs = ran.workload
    if not len(jobs):
        return None
    first, last = int(jobs.submit.min()), int(jobs.submit.max())
    spans = ran.spans()
    inside = np.minimum(spans.end, last) - np.minimum(spans.begin, last)
    return _share(exact_area(spans.procs, inside), jobs.procs_total * (last - first))


def longest_queue(ran: Schedule) -> int:
    """Longest queue = max(waiting before a pass) (standard); a job that starts in the pass of its
    arrival waits before it."""
    waits = ran.queue_spans()
    at = np.concatenate([waits.begin, waits.end])
    change = np.repeat(np.array([1, -1]), len(waits.begin))
    ordered = np.lexsort((-change, at))  # at one instant, arrivals are counted first
    return int(np.cumsum(change[ordered]).max(initial=0))


def loss_of_capacity(ran: Schedule) -> float | None:
    """Loss of capacity = processor time idle while a waiting job would fit on the idle processors /
    (P * makespan).

    At each instant all idle processors are lost if the smallest request that waits is no larger
    than their number, none if not.  So a policy that starts whatever fits loses nothing, and the
    rest of the idle time is fragmentation or lack of jobs.  Definition: tests/oracle/metrics.py.
    """
    jobs = ran.workload
    whole = jobs.procs_total * makespan_us(jobs.submit, ran.end)
    return _share(lost(jobs.submit, ran.start, ran.end, jobs.procs, jobs.procs_total), whole)


def lost(
    submit: Int64Array, start: Int64Array, end: Int64Array, amount: Int64Array, there: int
) -> int:
    """Return the area lost (amount x microseconds) of a resource of which there is so much.

    By row: what waits for an amount from ``submit`` to ``start``, and holds it until ``end``.
    """
    # Imported here, because the other metrics do not need the compiler.
    from qbatch.metrics.kernels.loss import lost_area
    from qbatch.planning.kernels.entries import little

    # Nearly sorted columns, so a stable sort is fast.
    by_submit, by_start = np.argsort(submit, kind="stable"), np.argsort(start, kind="stable")
    high, low = little(lost_area, len(submit))(
        submit, start, end, amount, by_submit, by_start, np.argsort(end), there
    )
    return (int(high) << LOW_BITS) + int(low)


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
