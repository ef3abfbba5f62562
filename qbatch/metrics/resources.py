"""The use of named resources in a run: GPUs, licences, and whatever else a machine counts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from qbatch.metrics.sums import exact_area
from qbatch.model.machine import CPUS_BILLED, MEMORY_BILLED, Machine
from qbatch.model.record import MICROSECONDS, Schedule
from qbatch.planning.partitions import partitions_of

_HOUR = 3600 * MICROSECONDS


class ResourceUse(NamedTuple):
    """One resource in a run.

    ``there``: how much of it the machine has.  ``hours``: amounts times run times of the jobs that
    ran, such as GPU hours.  ``utilisation_submit``: what was held from the first to the last
    submission, as a share of what was there; None without such a span.
    """

    name: str
    there: int
    hours: float
    utilisation_submit: float | None


class BilledHours(NamedTuple):
    """What the jobs of a partition are charged: their number, and the sum over them of run time in
    hours times the amounts that they asked for, each times its weight in ``billing``."""

    partition: str
    jobs: int
    hours: float


def billed_hours(schedule: Schedule, machine: Machine) -> list[BilledHours]:
    """Return the charges by partition, if a partition has ``billing``; without it a processor hour
    costs 1 (docs/spec/production.md 2.2).

    A job of several partitions is charged by the first that it names and that admits it.
    """
    if not any(each.billing for each in machine.partitions):
        return []
    ran = schedule.only_ran()
    jobs = ran.workload
    first = [partitions_of(machine, each.partitions)[:1] for each in jobs.requests]
    names = [*("".join(one.name for one in each) for each in first)]
    usual = "".join(one.name for one in partitions_of(machine, ())[:1])
    request = np.broadcast_to(jobs.request, len(jobs)) if len(jobs.requests) else None
    own = np.full(len(jobs), usual) if request is None else np.array([*names, usual])[request]
    hours = (ran.end - ran.start) / _HOUR
    none = np.zeros(len(jobs), np.int64)
    found = []
    for each in machine.partitions:
        is_here = own == each.name
        charge = np.zeros(len(jobs))
        for name, weight in each.billing or ((CPUS_BILLED, 1.0),):
            if name == CPUS_BILLED:
                charge += jobs.procs * weight
            elif name == MEMORY_BILLED:
                charge += jobs.memory / 2**30 * weight
            else:
                charge += np.asarray(jobs.resources.get(name, none)) * weight
        total = float((charge * hours)[is_here].sum())
        found.append(BilledHours(each.name, int(is_here.sum()), total))
    return found


def resource_use(schedule: Schedule, machine: Machine) -> list[ResourceUse]:
    """Return the use of each named resource of a machine by the jobs that ran.

    A job holds its resources from its start to its end; the definition of utilisation is that of
    processors (docs/spec/papers.md 0.3).  Nothing is returned of a run in which jobs have several
    execution intervals: what they held meanwhile is not recorded.
    """
    ran = schedule.only_ran()
    jobs = ran.workload
    if ran.pieces is not None or not len(jobs):
        return []
    first, last = int(jobs.submit.min()), int(jobs.submit.max())
    inside = np.minimum(ran.end, last) - np.minimum(ran.start, last)
    none = np.zeros(len(jobs), np.int64)
    found = []
    for name in machine.resources:
        there = sum(dict(host.resources).get(name, 0) for host in machine.hosts)
        held = np.asarray(jobs.resources.get(name, none), np.int64)
        whole = there * (last - first)
        found.append(
            ResourceUse(
                name,
                there,
                exact_area(held, ran.end - ran.start) / _HOUR,
                exact_area(held, inside) / whole if whole else None,
            )
        )
    return found
