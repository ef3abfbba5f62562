"""An experiment between reading and printing: a log on a machine, the schedules of policies, the
record of them.

``qbatch replay`` and :func:`qbatch.replay` share this module.  Messages name the options of the
command; :mod:`qbatch.library.arguments` translates them for the library.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import msgspec
import numpy as np

from qbatch.distribution import __version__
from qbatch.library.on_hosts import reservation_records, use_facts
from qbatch.metrics import breakdown, measure
from qbatch.model.errors import UsageError
from qbatch.model.machine import Machine, one_host
from qbatch.model.record import MICROSECONDS, Int64Array, Schedule, Workload
from qbatch.planning.policy import Policy, name_of, note_of_classes, note_of_site, note_of_tiers
from qbatch.results.run_words import left_out_notes, missing_estimates_of
from qbatch.simulation.calendar import ProgressCallback
from qbatch.simulation.drivers import run
from qbatch.simulation.feedback import FeedbackSource, feedback_source
from qbatch.simulation.prepare import Options, choose_procs, prepare
from qbatch.workloads import Log
from qbatch.workloads.feedback import Feedback, feedback_of
from qbatch.workloads.left_out import left_out_of
from qbatch.workloads.machines import load_machine
from qbatch.workloads.outages import Outages, read_outages
from qbatch.workloads.resource_rows import ResourceRows, kinds_of
from qbatch.workloads.unfinished import is_on_hosts, unfinished_of
from qbatch.workloads.user_names import users_of_reservations

SCHEMA = "qbatch.replay/1"

_WARMUP_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


@dataclass(frozen=True, slots=True)
class Experiment:
    """A log on a machine, ready to be replayed.

    ``work``: the jobs of the log that can run there.  ``follows``: if users wait for their jobs
    (``closed``), the job of the log for which each job waits.  ``resources``: what the jobs ask for
    in chunks, None if no side file says it.  ``outages``: when hosts are closed, None: never.
    """

    log: Log
    work: Workload
    machine: Machine
    options: Options
    follows: Feedback | None = None
    resources: ResourceRows | None = None
    outages: Outages | None = None

    def closed(self) -> Experiment:
        """Return the same experiment with users that wait for their jobs before they submit the
        next."""
        return replace(self, follows=feedback_of(self.log))

    def schedule(
        self,
        policy: Policy,
        *,
        driver: str = "auto",
        is_audited: bool = False,
        progress: ProgressCallback | None = None,
    ) -> Schedule:
        """Return the schedule of a policy.

        Raises:
            UsageError, DecisionError, AuditError: as :func:`qbatch.simulation.drivers.run`.
        """
        jobs: Workload | FeedbackSource = self.work
        if self.follows is not None:
            jobs = feedback_source(
                self.log, self.work, self.machine, self.follows, self.options.load
            )
        return run(
            jobs,
            self.machine,
            policy,
            driver=driver,
            is_audited=is_audited,
            progress=progress,
            outages=self.outages.spans if self.outages is not None else (),
        )

    def document(
        self, schedules: Sequence[Schedule], by: Iterable[str], command: Sequence[str]
    ) -> dict[str, Any]:
        """Return the record of all schedules, schema ``qbatch.replay/1``; ``by``: breakdowns;
        ``command``: its command line."""
        facts: dict[str, Any] = {}  # that only some logs have
        if count := int((self.work.deadline >= 0).sum()):
            facts["deadlines"] = count
        if self.resources is not None:
            facts["resources"] = {
                "name": self.resources.path,
                "sha256": self.resources.sha256,
                "jobs": int((self.work.request >= 0).sum()),
                "kinds": kinds_of(self.resources),
            }
        if self.outages is not None:
            facts["outages"] = {
                "name": self.outages.path,
                "sha256": self.outages.sha256,
                "spans": len(self.outages.spans),
                "host_seconds": sum(each.end - each.begin for each in self.outages.spans)
                / MICROSECONDS,
            }
        if unfinished := self._unfinished():
            facts["unfinished"] = unfinished
        if self.follows is not None:
            facts["closed"] = self._closed_facts(self.follows)
        log = log_facts(self.log, self.work)
        return document_of(
            log, self.work, self.machine, self.options, schedules, by, facts, command
        )

    def notes(self, policies: Iterable[Policy]) -> list[str]:
        """Return remarks to print before the numbers, a sentence each; ``note_of_users`` describes
        how users wait."""
        log, work = self.log, self.work
        notes = list(log.notes)
        for reason, count in work.skipped.items():
            notes.append(
                f"{count} jobs skipped: {reason.replace('_', ' ')} (--skipped FILE lists them)"
            )
        if self.resources is not None:
            notes += [
                f"{self.resources.path}: the column {name} does not count yet ({count:,} lines)"
                for name, count in self.resources.not_counted.items()
                if count
            ]
            asked = self.resources.requests
            for noun, there, names in (
                ("partition", self.machine.partitions, [bool(each.partitions) for each in asked]),
                (
                    "reservation",
                    self.machine.reservations,
                    [bool(one.reservation) for one in asked],
                ),
            ):
                count = int(np.array([*names, False])[self.resources.of].sum())
                if count and not there:
                    notes.append(
                        f"{self.resources.path}: {count:,} lines name a {noun}, which does not "
                        "count: the machine has none"
                    )
        unknown = users_of_reservations(log, self.machine, self.resources).unknown
        if count := int(np.isin(unknown, work.log_row).sum()):
            notes.append(
                f"whether {count:,} jobs may name their reservation is not known, and they may run "
                "in it: the log has no names of their users (a note in its header, such as user 3 "
                "is ann)"
            )
        if work.requests and (count := int((work.request < 0).sum())):
            notes.append(
                f"{count:,} of {len(work):,} jobs have no line with resources: they ask for their "
                "processors only, on any hosts"
            )
        if work.estimates_missing and self.options.estimates == "log":
            notes.append(missing_estimates_of(work.estimates_missing, len(work)))
        if counts := self._unfinished():
            notes.append(
                f"when the log was written (second {counts['second']:g}), {counts['running']:,} of "
                "these jobs ran and "
                f"{counts['waiting']:,} waited: they take part and are counted, with the requested "
                "time as run time; their "
                "slowdowns, and waits that end after it, are projections"
            )
        if self.machine.is_one_pool and is_on_hosts(log.header):
            notes.append(
                "the log's jobs ran on several hosts; here all processors are one pool (--machine "
                "FILE describes hosts)"
            )
        kinds = {} if self.resources is None else kinds_of(self.resources)
        notes += left_out_notes({"log": log_facts(log, work), "resources": {"kinds": kinds}})
        killed = int((work.run < work.logged_run).sum())
        if killed:
            notes.append(
                f"{killed} jobs run longer than their estimate and are ended there (--no-kill "
                "lifts it)"
            )
        if not work.counted.any():
            notes.append("--warmup is longer than the log: no job is counted")
        chosen = list(policies)
        heedless = [
            note(chosen, self.machine) for note in (note_of_classes, note_of_tiers, note_of_site)
        ]
        return [*notes, *filter(None, heedless)]

    def note_of_users(self) -> str:
        """Return how many jobs are submitted after others, and how that is known; empty if users do
        not wait."""
        if self.follows is None:
            return ""
        facts = self._closed_facts(self.follows)
        how = "by its field 17" if facts["is_told"] else "derived, since it has no field 17"
        lacking = (
            ""
            if facts["jobs"] or facts["is_told"]
            else "; that takes users and waits, which a generated log lacks"
        )
        return (
            f"{facts['jobs']:,} of {len(self.work):,} jobs of the log are submitted after "
            f"another has ended ({how}{lacking})"
        )

    def _unfinished(self) -> dict[str, Any]:
        """Return when the log was written and how many of its jobs ran and waited then; empty if
        none did."""
        found = unfinished_of(self.log)
        if found is None:
            return {}
        running, waiting = (
            int(mask[self.work.log_row].sum()) for mask in (found.runs, found.waits)
        )
        return (
            {"second": found.second, "running": running, "waiting": waiting}
            if running or waiting
            else {}
        )

    def _closed_facts(self, follows: Feedback) -> dict[str, Any]:
        return {
            "jobs": int((follows.predecessor[self.work.log_row] >= 0).sum()),
            "is_told": follows.is_told,
        }


def experiment_of(
    log: Log,
    machine: Machine,
    options: Options,
    deadlines: Int64Array | None = None,
    resources: ResourceRows | None = None,
    outages: str | None = None,
) -> Experiment:
    """Return the experiment of a log on a machine.

    Args:
        deadlines: by row of the log, microseconds of its clock, -1 for none.
        resources: what the jobs ask for in chunks.
        outages: the path of a file that says when hosts are closed.

    Raises:
        InputError, UsageError: as :func:`qbatch.simulation.prepare.prepare`, or the file of outages
            cannot be used.
    """
    check_load(options.load)
    work = prepare(log, machine, options, deadlines, resources)
    closed = None if outages is None else read_outages(outages, machine, work.clock, log.name)
    return Experiment(log, work, machine, options, resources=resources, outages=closed)


def machine_of(log: Log, procs: int | None, name: str | None) -> Machine:
    """Return the machine of a file or a shipped name; without one, ``procs`` processors or those of
    the log's header.

    Raises:
        InputError: the file cannot be used, or the number of processors is unknown.
        UsageError: both are given.
    """
    if name is None:
        return one_host(choose_procs(log, procs))
    if procs is not None:
        raise UsageError("--procs and --machine both set the machine; leave one out")
    return load_machine(name)


def check_load(load: float) -> None:
    """Refuse a factor of the load that is out of range.

    Raises:
        UsageError: it is; the message names the range.
    """
    if not 0.000001 <= load <= 1_000_000:
        raise UsageError(f"--load {load:g}: use a factor from 0.000001 to 1000000")


def warmup_of(text: str) -> dict[str, Any]:
    """Return the fields of ``Options`` for ``3600``, ``90m``, ``12h``, ``7d``, ``1w`` or an ISO
    time.

    Raises:
        UsageError: the text is none of these.
    """
    number, unit = (
        (text[:-1], _WARMUP_UNITS[text[-1]]) if text and text[-1] in _WARMUP_UNITS else (text, 1)
    )
    try:
        value = float(number) * unit
    except ValueError:
        with suppress(ValueError):
            datetime.fromisoformat(text)
            return {"counted_from": text}
        value = -1.0
    if not 0 <= value < 1e12:
        raise UsageError(
            f"--warmup {text!r}: use seconds, a number with s, m, h, d or w (such as 7d), or a "
            "date such as 1999-12-01"
        )
    return {"warmup": value}


def distinct(policies: Iterable[Policy]) -> list[Policy]:
    """Return the policies unchanged, after checking that no name occurs twice.

    Raises:
        UsageError: a policy occurs twice.
    """
    policies = list(policies)
    names = [name_of(policy) for policy in policies]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"--policy {name}: the policy occurs twice; name it once")
    return policies


def document_of(
    log: dict[str, Any],
    work: Workload,
    machine: Machine,
    options: Options,
    schedules: Sequence[Schedule],
    by: Iterable[str],
    facts: dict[str, Any],
    command: Sequence[str],
) -> dict[str, Any]:
    """Return the record of a replay, for the table, ``--json`` and the result directory.

    ``log``: facts about the log; ``facts``: by name, facts that only some runs have; ``command``:
    the command line.
    """
    results = []
    for schedule in schedules:
        rejected = int((~schedule.ran).sum())
        result: dict[str, Any] = {
            "policy": schedule.policy,
            "rejected": rejected,
            "metrics": measure(schedule),
        }
        result |= use_facts(schedule, machine)
        for key in by:
            groups = [
                {"label": g.label, "jobs": g.jobs, "metrics": g.metrics}
                for g in breakdown(schedule, key)
            ]
            result.setdefault("by", {})[key] = groups
        results.append(result)
    hosts: dict[str, Any] = {}  # if a job runs inside one of several
    if machine.single_host and len(machine.hosts) > 1:
        hosts = {
            "host_names": [host.name for host in machine.hosts],
            "host_cpus": [host.cpus for host in machine.hosts],
        }
    return {
        "schema": SCHEMA,
        "version": __version__,
        "command": list(command),
        "log": log,
        "machine": {
            "procs": machine.procs,
            "hosts": len(machine.real_hosts),
            "single_host": machine.single_host,
            "one_pool": machine.is_one_pool,
            **hosts,
            **_of_site(machine),
        },
        "machine_digest": machine.digest,
        "options": msgspec.to_builtins(options),
        "seed": options.seed,
        "skipped": work.skipped,
        "estimates_missing": work.estimates_missing,
        "killed_at_estimate": int((work.run < work.logged_run).sum()),
        **facts,
        "results": results,
    }


def _of_site(machine: Machine) -> dict[str, Any]:
    """Return the names of the partitions and the tables of the reservations of a machine, where there
    are any."""
    found: dict[str, Any] = {}
    if machine.partitions:
        found["partitions"] = [each.name for each in machine.partitions]
    if machine.reservations:
        found["reservations"] = reservation_records(machine)
    return found


def log_facts(log: Log, work: Workload) -> dict[str, Any]:
    """Return the facts of the record about a log."""
    return {
        "name": log.name,
        "sha256": log.sha256,
        "rows": len(log),
        "jobs": len(work),
        "notes": log.notes,
        "acknowledge": list(log.header.acknowledgements),
        "left_out": msgspec.to_builtins([*left_out_of(log.header)]),
    }
