"""The use of named resources in a run (GPUs, licences, and whatever else a machine counts), and of
partitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from qbatch.metrics.machine import lost, makespan_us
from qbatch.metrics.sums import exact_area
from qbatch.model.machine import CPUS_BILLED, MEMORY_BILLED, Machine
from qbatch.model.record import MICROSECONDS, BoolArray, Int64Array, Schedule
from qbatch.planning.partitions import partitions_of

_HOUR = 3600 * MICROSECONDS


class ResourceUse(NamedTuple):
    """One resource in a run.

    ``there``: how much of it the machine has.  ``hours``: amounts times run times of the jobs that
    ran, such as GPU hours.  ``utilisation_submit``: what was held from the first to the last
    submission, as a share of what was there; None without such a span.  ``loss_of_capacity``: what
    was free while a waiting job asked for no more, as a share of what was there; None if no time
    passed.  ``unusable_mean``: how much was free in the mean, from the first to the last submission,
    that no waiting job could use (:func:`fragmentation`); None if the hosts of jobs are unknown.
    """

    name: str
    there: int
    hours: float
    utilisation_submit: float | None
    loss_of_capacity: float | None
    unusable_mean: float | None = None


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


class Shapes(NamedTuple):
    """What jobs ask for on one host, each different.

    ``amounts``: by name, the amount of each resource.  ``may_run``: on which hosts, by shape and
    host.  ``is_exclusive``: whether no other job may be there.  ``partitions``: names of those that
    the jobs may use.
    """

    amounts: dict[str, Int64Array]
    may_run: BoolArray
    is_exclusive: BoolArray
    partitions: Sequence[frozenset[str]]


class OnHosts(NamedTuple):
    """What the jobs of a schedule had on hosts.

    ``job``, ``host`` and, by name, ``amounts`` of each resource: a line for each job on each of its
    hosts.  ``there``: by name, what each host has.  ``shape``: by row of the schedule, the index of
    what the job asks for among ``shapes``.  ``wanted``: by name and row, what it asks for in all.
    ``unsure``: of how many jobs only the sum is known; their lines have what each host must have
    had at least.
    """

    job: Int64Array
    host: Int64Array
    amounts: dict[str, Int64Array]
    there: dict[str, Int64Array]
    shapes: Shapes
    shape: Int64Array
    wanted: dict[str, Int64Array]
    unsure: int


class PartitionUse(NamedTuple):
    """One resource on the hosts of one partition; the fields are those of :class:`ResourceUse`.

    Jobs of other partitions may use its hosts too: they count in ``hours`` and
    ``utilisation_submit``.  ``loss_of_capacity`` is about waiting jobs of the partition.
    """

    partition: str
    name: str
    there: int
    hours: float
    utilisation_submit: float | None
    loss_of_capacity: float | None


def resource_use(
    schedule: Schedule, machine: Machine, on_hosts: OnHosts | None = None
) -> list[ResourceUse]:
    """Return the use of each named resource of a machine by the jobs that ran.

    A job holds its resources from its start to its end; the definitions of utilisation and loss of
    capacity are those of processors (docs/spec/papers.md 0.3).  Nothing is returned of a run in
    which jobs have several execution intervals: what they held meanwhile is not recorded.
    """
    ran = schedule.only_ran()
    jobs = ran.workload
    if ran.pieces is not None or not len(jobs):
        return []
    none = np.zeros(len(jobs), np.int64)
    unusable = {} if on_hosts is None else fragmentation(schedule, on_hosts, machine.resources)
    found = []
    for name in machine.resources:
        there = sum(dict(host.resources).get(name, 0) for host in machine.hosts)
        held = np.asarray(jobs.resources.get(name, none), np.int64)
        asks = held > 0
        area = lost(jobs.submit[asks], ran.start[asks], ran.end[asks], held[asks], there)
        use = _use(ran, ran.start, ran.end, held, there, area)
        found.append(ResourceUse(name, there, *use, unusable.get(name)))
    return found


def partition_use(schedule: Schedule, machine: Machine, on_hosts: OnHosts) -> list[PartitionUse]:
    """Return the use of processors and of each named resource on the hosts of each partition."""
    if schedule.pieces is not None or not schedule.ran.any():
        return []
    ran = schedule.only_ran()
    did_run = schedule.ran[on_hosts.job]
    job, host = on_hosts.job[did_run], on_hosts.host[did_run]
    begin, end = schedule.start[job], schedule.end[job]
    found = []
    for partition in machine.partitions:
        is_here = np.isin(host, partition.hosts)
        own = np.array([partition.name in names for names in on_hosts.shapes.partitions], np.bool_)
        is_own = own[on_hosts.shape] & schedule.ran
        for name, by_host in on_hosts.there.items():
            there = int(by_host[list(partition.hosts)].sum())
            if name == "memory" or not there:
                continue
            amount = on_hosts.amounts[name][did_run]
            holds, waits = is_here & (amount > 0), is_own & (on_hosts.wanted[name] > 0)
            # What waits holds nothing, and what holds something never waits.
            area = lost(
                np.concatenate([schedule.workload.submit[waits], begin[holds]]),
                np.concatenate([schedule.start[waits], begin[holds]]),
                np.concatenate([schedule.start[waits], end[holds]]),
                np.concatenate([on_hosts.wanted[name][waits], amount[holds]]),
                there,
            )
            use = _use(ran, begin[holds], end[holds], amount[holds], there, area)
            found.append(PartitionUse(partition.name, name, there, *use))
    return found


def _use(
    ran: Schedule, begin: Int64Array, end: Int64Array, held: Int64Array, there: int, area: int
) -> tuple[float, float | None, float | None]:
    """Return hours, utilisation and loss of what was held in spans; ``area``: what was lost."""
    submit = ran.workload.submit
    first, last = int(submit.min()), int(submit.max())
    inside = np.minimum(end, last) - np.minimum(begin, last)
    whole, span = there * (last - first), there * makespan_us(submit, ran.end)
    return (
        exact_area(held, end - begin) / _HOUR,
        exact_area(held, inside) / whole if whole else None,
        area / span if span else None,
    )


def fragmentation(
    schedule: Schedule, on_hosts: OnHosts, names: Sequence[str]
) -> dict[str, float | None]:
    """Return for each resource how much of it is free and of no use to any waiting job, for want of
    something else on its host.  It is the mean from the first to the last submission.

    At an instant, what is free on a host is of no use if both hold.  The part on one host of a
    waiting job that asks for the resource, and may run on this host, asks for no more of it than is
    free.  And no such part fits there, for want of processors, memory or another resource, or since
    it has to be alone.  Where only more of the resource is asked for, nothing counts.  The
    definition is ours, after Weng et al., "Beware of Fragmentation", USENIX ATC 2023, which counts
    over the tasks of a typical mix and not over those that wait.

    A server-wide resource has no value.
    """
    names = [name for name in names if name in on_hosts.there]
    ran = np.flatnonzero(schedule.ran)
    submit = schedule.workload.submit
    first, last = (int(submit[ran].min()), int(submit[ran].max())) if len(ran) else (0, 0)
    if last <= first:
        return dict.fromkeys(names)
    shapes, kinds = on_hosts.shapes, list(on_hosts.there)
    asked = np.array([shapes.amounts[kind] for kind in kinds])
    free = np.array([on_hosts.there[kind] for kind in kinds])
    held = np.array([on_hosts.amounts[kind] for kind in kinds])
    jobs_on, waiting = np.zeros(free.shape[1], np.int64), np.zeros(asked.shape[1], np.int64)
    enough = (asked[:, :, None] == 0) | (asked[:, :, None] <= free[:, None, :])
    fits = enough.all(axis=0) & shapes.may_run
    lines = np.flatnonzero(schedule.ran[on_hosts.job])
    # An event is of a line that begins (+1) or ends (-1), or of a job that begins or ceases to wait.
    at = [schedule.start[on_hosts.job[lines]], schedule.end[on_hosts.job[lines]]]
    at += [submit[ran], schedule.start[ran]]
    instant = np.concatenate(at)
    subject = np.concatenate([lines, lines, ran, ran])
    sign = np.repeat(np.array([1, -1, 1, -1]), [len(lines), len(lines), len(ran), len(ran)])
    is_line = np.arange(len(instant)) < 2 * len(lines)
    order = np.argsort(instant, kind="stable")
    instants, begins = np.unique(instant[order], return_index=True)
    area = dict.fromkeys(names, 0)
    bounds = [*begins.tolist(), len(order)]
    following = [*instants.tolist()[1:], last]
    for place, now in enumerate(instants.tolist()):
        if now >= last:
            break
        events = order[bounds[place] : bounds[place + 1]]
        of_lines, of_jobs = events[is_line[events]], events[~is_line[events]]
        np.add.at(waiting, on_hosts.shape[subject[of_jobs]], sign[of_jobs])
        if len(of_lines):
            changed = on_hosts.host[subject[of_lines]]
            np.subtract.at(free.T, changed, (held[:, subject[of_lines]] * sign[of_lines]).T)
            np.add.at(jobs_on, changed, sign[of_lines])
            here = np.unique(changed)
            some = asked[:, :, None]
            enough[:, :, here] = (some == 0) | (some <= free[:, None, here])
            is_alone = ~shapes.is_exclusive[:, None] | (jobs_on[here] == 0)
            fits[:, here] = enough[:, :, here].all(axis=0) & shapes.may_run[:, here] & is_alone
        span = min(following[place], last) - max(now, first)
        for name in names if span > 0 and waiting.any() else ():
            kind = kinds.index(name)
            asking = (waiting > 0) & (asked[kind] > 0)
            wants = (enough[kind][asking] & shapes.may_run[asking]).any(axis=0)
            is_unusable = wants & ~fits[asking].any(axis=0)
            area[name] += int(free[kind][is_unusable].sum()) * span
    return {name: area[name] / (last - first) for name in names}
