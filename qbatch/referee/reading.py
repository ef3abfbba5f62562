"""Reading of finished schedules for the referee, from any simulator: SWF with waits, job rows, a
result.

This reader is more tolerant than those of other commands: a row that starts before its submission
is a breach to report, not a reason to refuse the file.  Rows that never ran (no wait, no run time,
no processors) are counted and left out.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

import numpy as np

from qbatch.model.errors import InputError, UsageError, suggestion
from qbatch.model.record import Schedule
from qbatch.results.job_rows import read_job_rows
from qbatch.results.recorded import read_recorded
from qbatch.results.run_words import header_notes, left_out_notes

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
    the reader.
    """

    host_cpus: tuple[int, ...] = ()
    is_one_pool: bool = True
    is_preempted: bool = False
    known_until: int | None = None
    notes: tuple[str, ...] = ()


Judged = tuple[Schedule, Conditions]
"""A schedule with its conditions; its policy is empty if the input names none."""


def read_finished(path: str, procs: int | None = None) -> list[Judged]:
    """Read the schedules in a file or in a result: one for each policy in it, or the one that
    ``DIR:POLICY`` names.

    ``procs`` overrides the size of the machine in the header or the result.  Job rows in a result's
    directory are checked as that part of the result.

    Raises:
        InputError: the file cannot be read, holds no schedule, or the size of the machine is
            unknown.
        UsageError: the result holds no such policy.
    """
    from qbatch.results.reading import read_named, split_name
    from qbatch.results.result import result_of_rows

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
        return [(schedule, conditions) for schedule in result.schedules]
    if bare.lower().endswith((".csv", ".parquet")):
        return _read_rows(bare, procs, policy)
    return [_read_swf(path, procs)]


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


def _read_swf(path: str, procs: int | None) -> Judged:
    from qbatch.workloads.unfinished import is_on_hosts

    recorded = read_recorded(path, procs, with_waiting=True)
    start = np.where(recorded.waits, NEVER, recorded.submit + recorded.wait)
    notes = tuple(header_notes(recorded.log.header)) + (
        ()
        if (recorded.requested > 0).all()
        else ("jobs without an estimate: their run time serves as one",)
    )
    schedule = replace(recorded.schedule(start, name=path, skipped=recorded.skipped), policy="")
    return schedule, Conditions(
        is_preempted=recorded.is_preempted,
        is_one_pool=not is_on_hosts(recorded.log.header),
        known_until=recorded.known_until,
        notes=(*recorded.log.notes, *notes),
    )
