"""What the jobs of a schedule had on each host of a machine, for the metrics and pictures of
hosts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np

from qbatch.metrics.resources import OnHosts, Shapes, billed_hours, partition_use, resource_use
from qbatch.model.errors import UsageError, suggestion
from qbatch.model.job import SCATTER, SERVER, JobRequest
from qbatch.model.machine import EXCLUSIVE, Host, Machine, fold_names
from qbatch.model.record import Schedule
from qbatch.model.site_tables import site_tables
from qbatch.planning.partitions import partitions_of
from qbatch.referee.reading import SiteFiles
from qbatch.referee.site import CPUS, MEMORY, amounts_on_hosts, asked_on_hosts, capacities, parts_on
from qbatch.reports.host_use import HostClass, HostLines, HostMap
from qbatch.reports.report.study import OnMachine, Replica, ReportStudy
from qbatch.workloads.resource_rows import ResourceRows, kinds_in, resources_of_jobs
from qbatch.workloads.side_file import read_side_file

_MOST_MAPS = 4
"""Maps of hosts on a page: of processors, and of the first resources."""


def on_site(replica: Replica, site: SiteFiles) -> Replica:
    """Return a replica with what the jobs of each schedule ask for by a side file.

    Raises:
        InputError: the side file cannot be read.
    """
    schedules = tuple(
        with_requests(each, site.resources, is_log=each.policy in replica.history)
        for each in replica.result.schedules
    )
    return replace(replica, result=replace(replica.result, schedules=schedules))


def remarks(replica: Replica, site: SiteFiles) -> list[str]:
    """Return what a reader of metrics by host must know: another machine, breaches of the log, and
    schedules of which the hosts are unknown."""
    notes = []
    for document in replica.documents:
        if document.get("machine_digest", site.machine.digest) != site.machine.digest:
            notes.append(f"a replay was not on the machine of {site.path}")
    if replica.check is not None and (why := replica.check.breach_words):
        notes.append(why)
    unknown = [each.policy for each in replica.result.schedules if each.hosts is None]
    if unknown:
        notes.append(
            f"the hosts of jobs under {', '.join(unknown)} are unknown, so that partitions and "
            "what is unusable are not measured; qbatch replay --driver engine records them"
        )
    return notes


def side_facts(site: SiteFiles, schedules: Sequence[Schedule]) -> dict[str, Any]:
    """Return the facts of a record about a side file."""
    return {
        "name": site.resources,
        "sha256": read_side_file(site.resources).sha256,
        "jobs": max(int((each.workload.request >= 0).sum()) for each in schedules),
        "kinds": kinds_in(site.resources),
    }


def with_requests(schedule: Schedule, path: str, *, is_log: bool) -> Schedule:
    """Return a schedule with what its jobs ask for by a side file, and with the hosts there if it is
    that of the log.

    Raises:
        InputError: the side file cannot be read.
    """
    work = schedule.workload
    rows = resources_of_jobs(path, work.number, work.name, may_have_others=True)
    work = work.changed(
        requests=rows.requests, request=rows.of, resources=_sums(rows), log_row=np.arange(len(work))
    )
    if not is_log:
        return replace(schedule, workload=work)
    hosts = np.array([rows.hosts.get(row, "") for row in range(len(work))], object)
    return replace(schedule, workload=work, hosts=hosts if rows.hosts else None)


def _sums(rows: ResourceRows) -> dict[str, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """Return what jobs ask for of each named resource in all, by row."""
    names = dict.fromkeys(name for each in rows.requests for name in each.resources)
    return {
        name: np.array([*(each.resources.get(name, 0) for each in rows.requests), 0])[rows.of]
        for name in names
    }


def held_on_hosts(schedule: Schedule, machine: Machine) -> OnHosts | None:
    """Return what the jobs of a schedule had on hosts; None if the hosts of a job that ran are
    unknown, or it had several execution intervals."""
    work, ran = schedule.workload, schedule.ran
    if schedule.hosts is None or schedule.pieces is not None:
        return None
    if not all(map(_has_nodes_of_one_kind, work.requests)):
        return None
    parts = parts_on(machine, schedule.hosts.tolist())
    if parts.strange or (parts.width[ran] == 0).any():
        return None
    of, requests = np.asarray(work.request), work.requests
    asked = asked_on_hosts(of, requests)
    # A job without a line asks for processors only, and may have had other numbers on its hosts.
    is_bare, width = of < 0, np.maximum(parts.width, 1)
    each = {CPUS: np.zeros(len(work), np.int64)} | asked.each
    each[CPUS] = np.where(is_bare, -(-work.procs // width), each[CPUS])
    asked = asked._replace(nodes=np.where(is_bare, width, asked.nodes), each=each)
    shapes = _shapes(machine, requests)
    alone = shapes.is_exclusive[of][parts.job]
    amounts, there, wanted, unsure = {}, {}, {}, np.zeros(len(parts.job), np.bool_)
    for name in (CPUS, MEMORY, *machine.resources):
        by_host = capacities(machine, name)
        if by_host is None:
            continue
        there[name], wanted[name] = by_host, np.zeros(len(work), np.int64)
        amounts[name] = np.zeros(len(parts.job), np.int64)
        if name in each:
            found = amounts_on_hosts(
                parts, asked, name, by_host, is_bare & (width > 1), np.asarray(work.procs)
            )
            amounts[name], wanted[name] = found.amount, asked.nodes * each[name]
            unsure |= found.is_least
        if name == CPUS:
            wanted[name] = np.where(is_bare, work.procs, wanted[name])
        amounts[name] = np.where(alone, by_host[parts.host], amounts[name])
    for name in there:
        # A host has one type of a resource: a job that holds the resource there holds that type.
        whole = name.partition(":")[0]
        if whole != name and whole in there:
            is_typed = there[name][parts.host] > 0
            amounts[name] = np.where(is_typed, amounts[whole], amounts[name])
    unsure &= ~alone
    shape = np.where(is_bare, len(requests), of)
    amounts_of_shapes = {name: shapes.amounts.get(name, 0 * shapes.is_exclusive) for name in there}
    return OnHosts(
        parts.job,
        parts.host,
        amounts,
        there,
        shapes._replace(amounts=amounts_of_shapes),
        shape,
        wanted,
        len(np.unique(parts.job[unsure])),
    )


def host_map_of(machine: Machine, resource: str) -> HostMap:
    """Return what a map of the hosts of a machine shows, of processors or another resource.

    Raises:
        UsageError: no host has such a resource.
    """
    there = capacities(machine, resource)
    if there is None:
        known = [
            CPUS,
            *(name for name in machine.resources if capacities(machine, name) is not None),
        ]
        raise UsageError(
            f"--resource {resource}: no host has it{suggestion(resource, known)}; there are "
            f"{', '.join(known)}"
        )
    kinds: dict[Host, list[int]] = {}
    for place, host in enumerate(machine.real_hosts):
        kinds.setdefault(msgspec.structs.replace(host, name=""), []).append(place)
    classes = []
    racks = list(dict.fromkeys(host.rack for host in kinds))
    for host, places in sorted(kinds.items(), key=lambda pair: racks.index(pair[0].rack)):
        names = ",".join(fold_names([machine.hosts[place].name for place in places]))
        typed = {name.partition(":")[0] for name, _ in host.resources if ":" in name}
        amounts = ", ".join(
            f"{amount} {name}" for name, amount in host.resources if name not in typed
        )
        has = amounts or f"{host.cpus} processors"
        classes.append(HostClass(names, has, places, host.rack))

    def lines_of(ran: Schedule) -> HostLines:
        on_hosts = held_on_hosts(ran, machine)
        if on_hosts is None:
            raise UsageError(
                f"the hosts of jobs under {ran.policy} are unknown: a replay with --driver engine "
                "records them, and a log has them in its side file"
            )
        job, amount = on_hosts.job, on_hosts.amounts[resource]
        return HostLines(on_hosts.host, ran.start[job], ran.end[job], amount)

    return HostMap(resource, there, classes, lines_of, machine.reservations)


def _has_nodes_of_one_kind(request: JobRequest) -> bool:
    """Return whether a request is as a side file says it: equal nodes, each another host."""
    chunks = [chunk for chunk in request.chunks if chunk.host != SERVER]
    return len(chunks) == 1 and (chunks[0].count == 1 or request.placing == SCATTER)


def resource_facts(schedule: Schedule, machine: Machine) -> dict[str, Any]:
    """Return the use of each named resource and of each partition for a record, as far as it is
    known."""
    on_hosts = held_on_hosts(schedule, machine)
    facts: dict[str, Any] = {}
    if used := resource_use(schedule, machine, on_hosts):
        facts["resources"] = [each._asdict() for each in used]
    if on_hosts is not None:
        if parts := partition_use(schedule, machine, on_hosts):
            facts["partitions"] = [each._asdict() for each in parts]
        if on_hosts.unsure:
            facts["unsure_on_hosts"] = on_hosts.unsure
    return facts


def use_facts(schedule: Schedule, machine: Machine) -> dict[str, Any]:
    """Return the facts of :func:`resource_facts`, and the billed hours."""
    facts = resource_facts(schedule, machine)
    if charged := billed_hours(schedule, machine):
        facts["billed"] = [each._asdict() for each in charged]
    return facts


def reservation_records(machine: Machine) -> list[dict[str, Any]]:
    """Return the tables of the reservations of a machine, for a record in JSON."""
    records = []
    for name, values in site_tables(machine):
        if name == "reservation":
            start = values["start"]
            is_number = isinstance(start, float)
            shown = values | {"start": start if is_number else start.isoformat()}
            records.append({key: value for key, value in shown.items() if value is not None})
    return records


def on_machine(study: ReportStudy, site: SiteFiles) -> OnMachine:
    """Return what a machine file and a side file add to a page about results.

    Raises:
        InputError: the side file cannot be read.
    """
    replica, machine = on_site(study.first, site), site.machine
    schedules = replica.result.schedules
    placed = tuple(each for each in schedules if held_on_hosts(each, machine) is not None)
    named = [name for name in machine.resources if ":" not in name]
    shown = [CPUS, *(name for name in named if capacities(machine, name) is not None)]
    return OnMachine(
        {each.policy: use_facts(each, machine) for each in schedules},
        [host_map_of(machine, name) for name in shown[:_MOST_MAPS]],
        replace(replica.result, schedules=placed) if placed else None,
        reservation_records(machine),
        bool(machine.partitions),
        remarks(replica, site),
    )


def _shapes(machine: Machine, requests: tuple[JobRequest, ...]) -> Shapes:
    """Return what each request asks for on one host; the last shape is that of jobs without a
    request, of one processor."""
    hosts, count = machine.real_hosts, len(requests) + 1
    asked = asked_on_hosts(np.arange(count - 1), requests)
    amounts = {name: np.append(values, 0) for name, values in asked.each.items()}
    amounts.setdefault(CPUS, np.zeros(count, np.int64))[-1] = 1
    may_run = np.zeros((count, len(hosts)), np.bool_)
    is_exclusive, names = np.zeros(count, np.bool_), []
    for place, request in enumerate((*requests, JobRequest(()))):
        allowed = partitions_of(machine, request.partitions)
        inside = {host for each in allowed for host in each.hosts}
        wanted = {
            name for chunk in request.chunks if chunk.host != SERVER for name in chunk.features
        }
        may_run[place] = [
            (not allowed or number in inside) and wanted <= set(host.features)
            for number, host in enumerate(hosts)
        ]
        is_exclusive[place] = request.is_exclusive or any(
            each.share == EXCLUSIVE for each in allowed
        )
        names.append(frozenset(each.name for each in allowed))
    return Shapes(amounts, may_run, is_exclusive, names)
