"""The use of named resources in a run: GPUs, licences, and whatever else a machine counts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from qbatch.metrics.sums import exact_area
from qbatch.model.machine import Machine
from qbatch.model.record import MICROSECONDS, Schedule

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
