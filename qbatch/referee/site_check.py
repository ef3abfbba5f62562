"""What the referee checks of a schedule on a machine of hosts, by what the side file says of its jobs,
and what it cannot check."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from qbatch.model.job import SERVER
from qbatch.model.record import BoolArray, Int64Array, Schedule
from qbatch.model.reservations import windows_of
from qbatch.referee.allocations import Held, check_amounts, check_exclusive, check_server
from qbatch.referee.breach import Breach, Findings, jobs_counted
from qbatch.referee.permissions import (
    check_features,
    check_outages,
    check_partitions,
    check_reservations,
    permissions,
)
from qbatch.referee.reading import NEVER
from qbatch.referee.site import (
    CPUS,
    MEMORY,
    HostRequests,
    Parts,
    Site,
    amounts_on_hosts,
    asked_on_hosts,
    capacities,
    parts_of,
)

_NAMED_MAX = 5


def check_site(done: Schedule, site: Site, found: Findings, *, is_preempted: bool) -> None:
    """Check a schedule against partitions, features, reservations, and the amounts of hosts and of
    the server.

    The estimates of ``done`` are the requested times.  ``is_preempted``: the log contains totals of
    jobs that may have been suspended.

    Raises:
        InputError: the reservations of the machine cannot be placed on the clock of the log.
    """
    work, rows = done.workload, site.rows
    of = rows.of[work.log_row]
    parts, asked = parts_of(done, site), asked_on_hosts(of, rows.requests)
    names = [host.name for host in site.machine.real_hosts]
    lines = int((of >= 0).sum())
    if lines < len(done):
        found.unchecked.append(
            f"{jobs_counted(len(done) - lines)} without a line in the side file: only times and "
            "processors"
        )
    for row, name in parts.strange:
        number = int(work.number[row])
        text = f"job {number} ran on {name}, which the machine does not have"
        found.breaches.append(Breach("unknown-host", int(done.start[row]), (number,), text))
    is_alone = _check_permissions(done, site, of, parts, asked, names, found)
    _check_reservations(done, site, of, parts, names, found)
    if site.outages:
        judged = check_outages(done, parts, site.outages, names)
        found.breaches += judged.breaches
        ran_on = jobs_counted(judged.overlaps)
        more = f"; {ran_on} that started earlier ran on there" if judged.overlaps else ""
        hosts = len({each.host for each in site.outages})
        found.checked.append(f"starts on closed hosts ({hosts} closed at times){more}")
    with_hosts = int((parts.width > 0).sum())
    if with_hosts < len(done):
        of_what = "side file" if site.has_hosts else "job rows"
        found.unchecked.append(
            f"the hosts of {jobs_counted(len(done) - with_hosts)}: the {of_what} "
            f"{'does' if site.has_hosts else 'do'} not name them"
            f"{'' if site.has_hosts else ' (those of qbatch replay --driver engine do)'}"
        )
    suspended = rows.suspended
    if is_preempted and suspended is None:
        found.unchecked.append(
            "what is in use on hosts and of the server: the log has Preemption: TS, and the side file "
            "has no column suspended, so any job may have been suspended"
        )
        return
    is_known = ~done.lacks_pieces
    if suspended is not None and (suspended[work.log_row] > 0).any():
        was = suspended[work.log_row] > 0
        is_known &= ~was
        found.unchecked.append(
            f"what {jobs_counted(int(was.sum()))} had in use: suspended at times that the log does not "
            "contain, so nothing of them counts"
        )
    held, part = _held(done, parts, is_known, has_hosts=site.has_hosts)
    slots = _slots(site, of, names, is_preempted=is_preempted)
    if slots.each > 1:
        found.unchecked.append(
            "processors and whole hosts that jobs of several partitions had at once: with Preemption: "
            "TS a host may be given to several, so it is checked for one partition at a time"
        )
    _check_hosts(done, site, parts, asked, held, part, slots, names, found)
    if is_alone.any() and len(held.job):
        found.breaches += check_exclusive(done, slots.of_lines(held), is_alone, slots.names)
        found.checked.append(f"hosts without other jobs, of {jobs_counted(int(is_alone.sum()))}")
    _check_server(done, site, of, is_known, found)


def _check_permissions(
    done: Schedule,
    site: Site,
    of: Int64Array,
    parts: Parts,
    asked: HostRequests,
    names: list[str],
    found: Findings,
) -> BoolArray:
    """Check partitions and features; return the jobs that have their hosts alone, as a mask."""
    machine, requests = site.machine, site.rows.requests
    is_even = ~site.rows.is_spread_unknown[done.workload.log_row]

    def total(name: str) -> Int64Array:
        each = asked.each.get(name, np.zeros(len(done), np.int64))
        known = np.where(is_even, asked.nodes * each, asked.nodes * (each - 1) + 1)
        return np.where(each > 0, known, 0)

    hosts = np.where(parts.width > 0, parts.width, asked.nodes)
    cpus = np.maximum(total(CPUS), done.workload.procs)
    allowed = permissions(
        machine, requests, of, hosts, cpus, total(MEMORY), np.asarray(done.workload.estimate)
    )
    if machine.partitions:
        found.breaches += check_partitions(done, parts, allowed, machine, names)
        found.checked.append(
            f"partitions: their limits and hosts, of {jobs_counted(int((of >= 0).sum()))}"
        )
    if any(chunk.features for request in requests for chunk in request.chunks):
        found.breaches += check_features(done, parts, machine, requests, of, names)
        found.checked.append("features of hosts that jobs ask for")
    return allowed.is_exclusive


def _check_reservations(
    done: Schedule,
    site: Site,
    of: Int64Array,
    parts: Parts,
    names: list[str],
    found: Findings,
) -> None:
    kept = site.machine.reservations
    numbers = {each.name: number for number, each in enumerate(kept)} | {"": -1}
    by_request = [numbers.get(each.reservation, -2) for each in site.rows.requests]
    reservation = np.array([*by_request, -1], np.int64)[of]
    unknown = int((reservation == -2).sum())
    if unknown:
        found.unchecked.append(
            f"the reservations of {jobs_counted(unknown)}: the machine file does not have them"
        )
    if not kept:
        return
    ends = done.end[done.start < NEVER]
    windows = windows_of(kept, site.clock, int(ends.max()) + 1 if len(ends) else 0)
    judged = check_reservations(done, parts, site.machine, windows, reservation, names)
    found.breaches += judged.breaches
    over = jobs_counted(judged.overlaps)
    more = f"; {over} that started earlier ran on into one" if judged.overlaps else ""
    times = "time" if len(windows) == 1 else "times"
    found.checked.append(f"reservations at {len(windows)} {times}: hosts and starts{more}")
    if (np.isin(reservation, [n for n, each in enumerate(kept) if each.users])).any():
        found.unchecked.append("the users of reservations: a log has numbers for them")


class _Slots(NamedTuple):
    """Hosts as jobs of one partition see them, ``each`` for each host: ``of``, by row of the
    schedule, which of them a job has; and their names."""

    each: int
    of: Int64Array
    names: list[str]

    def of_lines(self, held: Held) -> Held:
        """Return what is held with these in place of hosts."""
        return held._replace(host=held.host * self.each + self.of[held.job])


def _slots(site: Site, of: Int64Array, names: list[str], *, is_preempted: bool) -> _Slots:
    """Return one for each host, or one for each host and partitions of a request if jobs of several
    partitions may have a host in turns (gang scheduling of Slurm)."""
    kinds = dict.fromkeys(each.partitions for each in site.rows.requests) if is_preempted else {}
    if len(kinds) < 2:
        return _Slots(1, np.zeros(len(of), np.int64), names)
    numbers = {partitions: number for number, partitions in enumerate(kinds)}
    by_request = [*(numbers[each.partitions] for each in site.rows.requests), 0]
    return _Slots(
        len(kinds),
        np.array(by_request, np.int64)[of],
        [
            f"{name} in partition {','.join(each) or 'of default'}"
            for name in names
            for each in kinds
        ],
    )


def _held(
    done: Schedule, parts: Parts, is_known: BoolArray, *, has_hosts: bool
) -> tuple[Held, Int64Array]:
    """Return the times at which jobs held their hosts, with the amount 1, and by line the number of
    its part."""
    spans = done.spans()
    spans = spans.only(is_known[spans.job])
    first = np.searchsorted(parts.job, spans.job)
    count = np.searchsorted(parts.job, spans.job, side="right") - first
    span = np.repeat(np.arange(len(spans.job)), count)
    part = np.arange(len(span)) - np.repeat(np.cumsum(count) - count - first, count)
    host = parts.host[part]
    if not has_hosts:  # an execution interval names its own host
        host = np.where(spans.host[span] >= 0, spans.host[span], host)
    ones = np.ones(len(span), np.int64)
    return Held(spans.job[span], host, spans.begin[span], spans.end[span], ones), part


def _check_hosts(
    done: Schedule,
    site: Site,
    parts: Parts,
    asked: HostRequests,
    held: Held,
    part: Int64Array,
    slots: _Slots,
    names: list[str],
    found: Findings,
) -> None:
    """Check the amounts of hosts; ``part``: by line of ``held`` the number of its part."""
    if not len(held.job):
        return
    spread = site.rows.is_spread_unknown[done.workload.log_row]
    used = done.workload.procs
    counted, absent = [], []
    uncertain = np.zeros(len(done), np.bool_)
    for name, each in asked.each.items():
        if name == CPUS and not site.has_hosts:
            continue  # of job rows with hosts they are checked by interval
        there = capacities(site.machine, name)
        if there is None:
            absent.append(f"{name} ({jobs_counted(int((each > 0).sum()))})")
            continue
        amounts = amounts_on_hosts(parts, asked, name, there, spread, used)
        lines = held._replace(amount=amounts.amount[part])
        if name == CPUS:
            lines, there = slots.of_lines(lines), np.repeat(there, slots.each)
        shown = slots.names if name == CPUS else names
        found.breaches += check_amounts(done, lines, name, there, shown)
        counted.append(name)
        uncertain[parts.job[amounts.is_least]] = True
    if counted:
        found.on_hosts = (
            f"{_listed(counted)} on each of {len(names)} hosts at every instant, of "
            f"{jobs_counted(len(np.unique(held.job)))}"
        )
        found.checked.append(found.on_hosts)
    if absent:
        found.unchecked.append(
            f"{_listed(absent)} on hosts: no host of the machine file has an amount of it"
        )
    if uncertain.any():
        found.unchecked.append(
            f"the shares of hosts of {jobs_counted(int(uncertain.sum()))}: only the sum of each job is "
            "known; each host counts what must be there at least"
        )


def _check_server(
    done: Schedule, site: Site, of: Int64Array, is_known: BoolArray, found: Findings
) -> None:
    machine, requests = site.machine, site.rows.requests
    server = dict(machine.hosts[machine.server].resources) if machine.server >= 0 else {}
    wanted: dict[str, Int64Array] = {}
    for number, request in enumerate(requests):
        for chunk in request.chunks:
            for name, amount in chunk.resources if chunk.host == SERVER else ():
                amounts = wanted.setdefault(name, np.zeros(len(requests) + 1, np.int64))
                amounts[number] += chunk.count * amount
    spans = done.spans()
    spans = spans.only(is_known[spans.job])
    zeros = np.zeros(len(spans.job), np.int64)
    for name in wanted.keys() & server.keys():
        amounts = wanted[name][of[spans.job]]
        held = Held(spans.job, zeros, spans.begin, spans.end, amounts).only(amounts > 0)
        found.breaches += check_server(done, held, name, server[name])
    known = sorted(wanted.keys() & server.keys())
    if known:
        found.checked.append(f"{_listed(known)} of the server at every instant")
    unknown = sorted(wanted.keys() - server.keys())
    if unknown:
        found.unchecked.append(
            f"{_listed(unknown)}: the machine file has no such amount of the server"
        )


def _listed(names: Sequence[str]) -> str:
    shown = list(names[:_NAMED_MAX])
    if len(names) > _NAMED_MAX:
        shown.append(f"{len(names) - _NAMED_MAX} more")
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))
