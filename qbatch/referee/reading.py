"""How the referee reads a finished schedule, of whatever simulator: SWF with waits, job rows, a result.

The reading is more tolerant than that of other commands: a row that starts before its submission is a breach to name, not a
file to refuse.  Rows that never ran (no wait, no run time, no processors) are counted and left out.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from qbatch.model.errors import InputError, UsageError, suggestion
from qbatch.model.record import Schedule
from qbatch.results.job_rows import read_job_rows
from qbatch.results.recorded import read_recorded

NEVER = 1 << 62
"""The start of a job that still waited when its log was written."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """What the referee has to know besides a schedule, of the machine and of the log.

    ``host_cpus``: the processors of each host, where the schedule says on which each job ran; else empty.  ``is_one_pool``:
    whether all processors are alike to every job, which a machine of several hosts need not be.  ``is_preempted``: a log whose
    header says ``Preemption: TS`` holds totals of jobs that may have been suspended, and does not say which.  ``known_until``: a
    log that was written while jobs ran and waited shows the schedule up to this instant, in microseconds; those that ran are
    taken to end at their estimates, those that waited to start at ``NEVER``.  ``notes``: what a reader must know.
    """

    host_cpus: tuple[int, ...] = ()
    is_one_pool: bool = True
    is_preempted: bool = False
    known_until: int | None = None
    notes: tuple[str, ...] = ()


Judged = tuple[Schedule, Conditions]
"""A schedule as it comes before the referee; its policy is empty where nobody names one."""


def read_finished(path: str, procs: int | None = None) -> list[Judged]:
    """Read the schedules in a file or in a result: one for each policy in it, or the one that ``DIR:POLICY`` names.

    ``procs`` overrides what the header or the result says of the machine.  Job rows in a result's directory are checked as that
    part of the result.

    Raises:
        InputError: if it cannot be read, holds no schedule, or nobody says how large the machine is.
        UsageError: if a result holds no such policy.
    """
    from qbatch.results.reading import read_named, split_name
    from qbatch.results.result import result_beside

    bare, policy = split_name(path)
    if os.path.isdir(bare) or result_beside(bare) is not None:
        result = read_named(path)
        if procs is not None:
            result = result.told(procs_total=procs)  # too small a machine is what is judged
        conditions = Conditions(result.host_cpus, _is_one_pool(result.document.get("machine")))
        return [(schedule, conditions) for schedule in result.schedules]
    if bare.lower().endswith((".csv", ".parquet")):
        return _only(_read_rows(bare, procs), bare, policy)
    return [_read_swf(path, procs)]


def _only(found: list[Judged], path: str, policy: str | None) -> list[Judged]:
    """Return the schedule of one policy, of all if none is named."""
    from qbatch.policies.registry import name_among

    if policy is None:
        return found
    known = {each[0].policy or "None": each for each in found}
    name = name_among(policy, known)
    if name not in known:
        raise UsageError(f"{path}: no policy {policy!r}{suggestion(policy, known)}; it has {', '.join(known)}")
    return [known[name]]


def _is_one_pool(machine: Any) -> bool:
    """Return what a result says of its machine; one that does not say it has one pool, unless jobs must stay in a host."""
    told = machine if isinstance(machine, dict) else {}
    return bool(told.get("one_pool", not (told.get("single_host") and told.get("hosts") != 1)))


def _read_rows(path: str, procs: int | None) -> list[Judged]:
    if procs is None:
        raise InputError(f"{path}: job rows do not say how large the machine is; say it with --procs N")
    found: list[Judged] = []
    for schedule in read_job_rows(path, is_judged=True):
        if schedule.ran.any():
            work = schedule.workload.changed(name=path, procs_total=procs)
            notes = ("no column estimate: run times are taken for estimates",) if work.estimates_missing else ()
            found.append((replace(schedule, workload=work), Conditions(notes=notes)))
    if not found:
        raise InputError(f"{path}: no job in it")
    return found


def _read_swf(path: str, procs: int | None) -> Judged:
    from qbatch.workloads.unfinished import is_on_hosts

    recorded = read_recorded(path, procs, with_waiting=True)
    start = np.where(recorded.waits, NEVER, recorded.submit + recorded.wait)
    notes = () if (recorded.requested > 0).all() else ("jobs without an estimate: their run time is taken for it",)
    schedule = replace(recorded.schedule(start, name=path, skipped=recorded.skipped), policy="")
    return schedule, Conditions(
        is_preempted=recorded.is_preempted,
        is_one_pool=not is_on_hosts(recorded.log.header),
        known_until=recorded.known_until,
        notes=(*recorded.log.notes, *notes),
    )
