"""Reading of finished schedules for the referee, from any simulator: SWF with waits, job rows, a
result.

This reader is more tolerant than those of other commands: a row that starts before its submission
is a breach to report, not a reason to refuse the file.  Rows that never ran (no wait, no run time,
no processors) are counted and left out.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from qbatch.model.errors import InputError, UsageError, suggestion
from qbatch.model.machine import Machine
from qbatch.model.record import LogClock, Schedule
from qbatch.referee.site import Site
from qbatch.results.job_rows import read_job_rows
from qbatch.results.recorded import read_recorded
from qbatch.results.run_words import header_notes, left_out_notes
from qbatch.workloads.left_out import LeftOut, left_out_of, still_left_out
from qbatch.workloads.machines import load_machine
from qbatch.workloads.outages import read_outages
from qbatch.workloads.resource_rows import (
    ResourceRows,
    kinds_of,
    read_resources,
    resources_of_jobs,
)

NEVER = 1 << 62
"""The start of a job that still waited when its log was written."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """Facts about the machine and the log that the referee needs in addition to a schedule.

    ``host_cpus``: the processors of each host, if the schedule names the host of each job; else
    empty.  ``is_one_pool``: whether all processors are alike to every job, which need not hold for
    several hosts.  ``is_preempted``: the header of the log has ``Preemption: TS``, so it holds
    totals of jobs, any of which may have been suspended.  ``known_until``: the instant, in
    microseconds, at which a log with running and waiting jobs was written.  The running jobs are
    taken to end at their estimates, the waiting ones to start at ``NEVER``.  ``notes``: remarks for
    the reader.  ``site``: the machine of hosts, and what a side file says of the jobs; None: there is
    none.  ``is_log``: the schedule is that of a log.  ``lacking``: what neither the log nor its side
    file has.
    """

    host_cpus: tuple[int, ...] = ()
    is_one_pool: bool = True
    is_preempted: bool = False
    known_until: int | None = None
    notes: tuple[str, ...] = ()
    site: Site | None = None
    is_log: bool = False
    lacking: tuple[LeftOut, ...] = ()

    @property
    def is_recorded(self) -> bool:
        """Whether the schedule is what really happened: its side file says on which hosts."""
        return self.site is not None and self.is_log and bool(self.site.rows.hosts)


class SiteFiles(NamedTuple):
    """A machine of hosts, and the paths of a side file of resources, of the machine file, and of a
    file of outages."""

    machine: Machine
    resources: str
    path: str = ""
    outages: str | None = None

    def of(self, rows: ResourceRows, clock: LogClock, name: str, *, has_hosts: bool = True) -> Site:
        """Return what a schedule is checked against; ``rows``: what its jobs ask for; ``clock`` and
        ``name``: of its log."""
        if self.outages is None:
            return Site(self.machine, rows, clock, has_hosts)
        closed = read_outages(self.outages, self.machine, clock, name).spans
        return Site(self.machine, rows, clock, has_hosts, closed)


def site_files(
    machine: str | None, resources: str | None, procs: int | None, outages: str | None = None
) -> SiteFiles | None:
    """Return the machine and the files that are named together, or None.

    Raises:
        InputError: the machine file cannot be used.
        UsageError: only one of them is named, or ``procs`` too.
    """
    if outages is not None and (machine is None or resources is None):
        raise UsageError(
            "--outages goes with --machine and --resources, which say on which hosts jobs ran; give "
            "them too"
        )
    if machine is None and resources is None:
        return None
    if machine is None or resources is None:
        raise UsageError(
            "--machine and --resources go together: what the hosts have, and what jobs ask for; give "
            "both"
        )
    if procs is not None:
        raise UsageError("--machine says how many processors there are; leave --procs out")
    return SiteFiles(load_machine(machine), resources, machine, outages)


Judged = tuple[Schedule, Conditions]
"""A schedule with its conditions; its policy is empty if the input names none."""


def read_finished(
    path: str, procs: int | None = None, site: SiteFiles | None = None
) -> list[Judged]:
    """Read the schedules in a file or in a result: one for each policy in it, or the one that
    ``DIR:POLICY`` names.

    ``procs``, or the machine of ``site``, overrides the size of the machine in the header or the
    result.  Job rows in a result's directory are checked as that part of the result.

    Raises:
        InputError: the file cannot be read, holds no schedule, or the size of the machine is
            unknown.
        UsageError: the result holds no such policy.
    """
    from qbatch.results.reading import read_named, split_name
    from qbatch.results.result import result_of_rows

    procs = site.machine.procs if site is not None else procs
    bare, policy = split_name(path)
    if os.path.isdir(bare) or result_of_rows(bare) is not None:
        result = read_named(path)
        if procs is not None:
            # A machine that is too small is a breach to report.
            result = result.with_facts(procs_total=procs)
        machine = result.document.get("machine")
        known = machine if isinstance(machine, dict) else {}
        # By default it is one pool, unless jobs must stay in a host.
        is_one_pool = known.get(
            "one_pool", not (known.get("single_host") and known.get("hosts") != 1)
        )
        notes = tuple(left_out_notes(result.document))
        conditions = Conditions(result.host_cpus, bool(is_one_pool), notes=notes)
        return _with_site([(schedule, conditions) for schedule in result.schedules], site)
    if bare.lower().endswith((".csv", ".parquet")):
        return _with_site(_read_rows(bare, procs, policy), site)
    return [_read_swf(path, procs, site)]


def _with_site(judged: list[Judged], site: SiteFiles | None) -> list[Judged]:
    """Return schedules of job rows with what a side file says of their jobs, by number.

    The hosts in the side file are those of the log, not of these schedules.
    """
    if site is None:
        return judged
    found: list[Judged] = []
    for schedule, known in judged:
        work = schedule.workload
        rows = resources_of_jobs(site.resources, work.number, work.name, may_have_others=True)
        # What an import says of the real run is not of this one.
        rows = rows._replace(is_spread_unknown=np.zeros(len(work), np.bool_), suspended=None)
        work = work.changed(log_row=np.arange(len(work)))
        of_site = site.of(rows, work.clock, work.name, has_hosts=schedule.hosts is not None)
        is_one_pool = known.is_one_pool and site.machine.is_one_pool
        conditions = replace(known, site=of_site, is_one_pool=is_one_pool)
        found.append((replace(schedule, workload=work), conditions))
    return found


def _read_rows(path: str, procs: int | None, policy: str | None) -> list[Judged]:
    """Read the job rows of one policy, of all if none is named."""
    from qbatch.policies.registry import name_among

    if procs is None:
        raise InputError(
            f"{path}: job rows do not contain the size of the machine; give it with --procs N"
        )
    found: list[Judged] = []
    for schedule in read_job_rows(path, is_judged=True):
        if schedule.ran.any():
            work = schedule.workload.changed(name=path, procs_total=procs)
            notes = (
                ("no column estimate: run times serve as estimates",)
                if work.estimates_missing
                else ()
            )
            found.append((replace(schedule, workload=work), Conditions(notes=notes)))
    if not found:
        raise InputError(f"{path}: no job in it")
    if policy is None:
        return found
    known = {each[0].policy or "None": each for each in found}
    name = name_among(policy, known)
    if name not in known:
        raise UsageError(
            f"{path}: no policy {policy!r}{suggestion(policy, known)}; it has {', '.join(known)}"
        )
    return [known[name]]


def _read_swf(path: str, procs: int | None, site: SiteFiles | None) -> Judged:
    from qbatch.workloads.unfinished import is_on_hosts

    recorded = read_recorded(path, procs, with_waiting=True)
    start = np.where(recorded.waits, NEVER, recorded.submit + recorded.wait)
    rows = None if site is None else read_resources(site.resources, recorded.log)
    kinds = {} if rows is None else kinds_of(rows)
    notes = tuple(header_notes(recorded.log.header, kinds)) + (
        ()
        if (recorded.requested > 0).all()
        else ("jobs without an estimate: their run time serves as one",)
    )
    schedule = replace(recorded.schedule(start, name=path, skipped=recorded.skipped), policy="")
    of_site = None
    if site is not None and rows is not None:
        header = recorded.log.header
        clock = LogClock(header.unix_start_time, header.time_zone_string)
        of_site = site.of(rows, clock, recorded.log.name)
    return schedule, Conditions(
        site=of_site,
        is_log=True,
        lacking=tuple(
            still_left_out(left_out_of(recorded.log.header), kinds, len(recorded.log.line))
        ),
        is_preempted=recorded.is_preempted,
        is_one_pool=not is_on_hosts(recorded.log.header)
        and (site is None or site.machine.is_one_pool),
        known_until=recorded.known_until,
        notes=(*recorded.log.notes, *notes),
    )
