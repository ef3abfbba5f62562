"""The check of where and when a job may run: its partitions and their limits, the features of its
hosts, and reservations (docs/spec/production.md, sections 1.1 and 5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from qbatch.model.job import SCATTER, SERVER, ChunkRequest, JobRequest
from qbatch.model.machine import EXCLUSIVE, Machine
from qbatch.model.record import BoolArray, Int64Array, Schedule
from qbatch.model.reservations import Window
from qbatch.planning.partitions import breach, partitions_of
from qbatch.referee.breach import Breach, seconds
from qbatch.referee.site import Parts
from qbatch.workloads.outages import Outage


class Admitted(NamedTuple):
    """What partitions say of jobs with equal requests, sizes and times: in which a job may run, by
    name (none: on all hosts), whether it has its hosts alone, and why none admits it."""

    names: tuple[str, ...]
    is_exclusive: bool
    refusal: str


def admitted(
    machine: Machine, request: JobRequest, hosts: int, cpus: int, memory: int, estimate: int
) -> Admitted:
    """Return what partitions say of a job, by what it had: hosts, processors and bytes of all, and
    by its requested time in microseconds."""
    named = partitions_of(machine, request.partitions)
    if not named and request.partitions and machine.partitions:
        unknown = ", ".join(request.partitions)
        why = f"names the partition {unknown}, which the machine does not have"
        return Admitted(request.partitions, request.is_exclusive, why)
    chunks = (ChunkRequest(hosts, cpus, memory),)
    why_not = [breach(each, chunks, SCATTER, estimate) for each in named]
    chosen = [each for each, why in zip(named, why_not, strict=True) if not why]
    refusal = "breaks a limit of " + "; and of ".join(
        f"partition {each.name}: {why}" for each, why in zip(named, why_not, strict=True)
    )
    of_all = chosen or named
    return Admitted(
        tuple(each.name for each in of_all),
        request.is_exclusive or any(each.share == EXCLUSIVE for each in of_all),
        "" if chosen or not named else refusal,
    )


class Permissions(NamedTuple):
    """What partitions say of the jobs of a schedule: ``kinds``, each different, and ``of``, by row
    the index of its own, -1 for a job without a line in the side file."""

    kinds: tuple[Admitted, ...]
    of: Int64Array

    @property
    def is_exclusive(self) -> BoolArray:
        """The rows that have their hosts alone, as a mask."""
        return np.array([*(each.is_exclusive for each in self.kinds), False], np.bool_)[self.of]


def permissions(
    machine: Machine,
    requests: Sequence[JobRequest],
    of: Int64Array,
    hosts: Int64Array,
    cpus: Int64Array,
    memory: Int64Array,
    estimate: Int64Array,
) -> Permissions:
    """Return what partitions say of jobs, by row: the index of the request, hosts, processors, bytes
    and microseconds."""
    known: dict[Admitted, int] = {}

    @cache
    def kind(number: int, *sizes: int) -> int:
        found = admitted(machine, requests[number], *sizes)
        return known.setdefault(found, len(known))

    rows = zip(*(column.tolist() for column in (of, hosts, cpus, memory, estimate)), strict=True)
    kinds = [kind(*each) if each[0] >= 0 else -1 for each in rows]
    return Permissions(tuple(known), np.array(kinds, np.int64))


def check_partitions(
    done: Schedule, parts: Parts, allowed: Permissions, machine: Machine, names: list[str]
) -> Iterator[Breach]:
    """Check that each job keeps the limits of one of its partitions, and ran on hosts of those that
    admit it."""
    refused = np.array([*(bool(each.refusal) for each in allowed.kinds), False])[allowed.of]
    for row in np.flatnonzero(refused).tolist():
        text = allowed.kinds[allowed.of[row]].refusal
        yield _breach(done, row, "partition-limit", text)
    sets = {
        each: number for number, each in enumerate(dict.fromkeys(k.names for k in allowed.kinds))
    }
    may = np.ones((len(sets) + 1, len(names)), np.bool_)
    for chosen, number in sets.items():
        if chosen:
            hosts = {
                host for each in machine.partitions if each.name in chosen for host in each.hosts
            }
            may[number] = [place in hosts for place in range(len(names))]
    of_set = np.array([*(sets[each.names] for each in allowed.kinds), len(sets)], np.int64)
    for row, where in _by_job(parts, ~may[of_set[allowed.of[parts.job]], parts.host], names):
        partitions = ", ".join(allowed.kinds[allowed.of[row]].names)
        text = f"ran on {where}, outside of partition {partitions}"
        yield _breach(done, row, "outside-partition", text)


def check_features(
    done: Schedule,
    parts: Parts,
    machine: Machine,
    requests: Sequence[JobRequest],
    of: Int64Array,
    names: list[str],
) -> Iterator[Breach]:
    """Check that each host of a job has the features that the job asks for; ``of``: by row the index
    of its request, -1: none."""
    wanted = [
        {name for chunk in each.chunks if chunk.host != SERVER for name in chunk.features}
        for each in requests
    ]
    features = [frozenset(host.features) for host in machine.real_hosts]
    kinds = dict.fromkeys(map(frozenset, [*wanted, set()]))
    numbers = {each: number for number, each in enumerate(kinds)}
    has = np.array([[each <= there for there in features] for each in kinds], np.bool_)
    kind = np.array([numbers[frozenset(each)] for each in (*wanted, set())], np.int64)
    for row, where in _by_job(parts, ~has[kind[of[parts.job]], parts.host], names):
        lacks = " and ".join(sorted(wanted[of[row]]))
        yield _breach(done, row, "missing-feature", f"asks for {lacks}, and ran on {where}")


class ReservedTimes(NamedTuple):
    """The breaches of reservations or outages, and how many jobs that ran before one began were still
    on its hosts then."""

    breaches: list[Breach]
    overlaps: int


def check_reservations(
    done: Schedule,
    parts: Parts,
    machine: Machine,
    windows: Sequence[Window],
    reservation: Int64Array,
    names: list[str],
) -> ReservedTimes:
    """Check that only jobs that name a reservation started on its hosts during a window, and that
    they started there and then.

    ``reservation``: by row the place of the reservation that the job names, -1: none, -2: one that
    the machine does not have.
    """
    found: list[Breach] = []
    order = np.argsort(done.start[parts.job], kind="stable")
    job, host = parts.job[order], parts.host[order]
    start, end = done.start[job], done.end[job]
    longest = int((end - start).max()) if len(job) else 0
    overlapping: set[int] = set()
    for window in windows:
        is_kept = np.zeros(len(names), np.bool_)
        is_kept[list(window.hosts)] = True
        before, first, last = np.searchsorted(
            start, [window.begin - longest, window.begin, window.end]
        ).tolist()
        inside = np.zeros(len(parts.job), np.bool_)
        near = slice(first, last)
        inside[order[near]] = is_kept[host[near]] & (reservation[job[near]] != window.reservation)
        name = machine.reservations[window.reservation].name
        for row, where in _by_job(parts, inside, names) if inside.any() else ():
            text = (
                f"started on {where} during the reservation {name}, from {seconds(window.begin)} "
                f"to {seconds(window.end)}, without naming it"
            )
            found.append(_breach(done, row, "reserved-host", text))
        near = slice(before, first)
        is_over = is_kept[host[near]] & (end[near] > window.begin)
        is_over &= reservation[job[near]] != window.reservation
        overlapping.update(job[near][is_over].tolist())
    found += _named(done, parts, machine, windows, reservation, names)
    return ReservedTimes(found, len(overlapping))


def check_outages(
    done: Schedule, parts: Parts, outages: Sequence[Outage], names: list[str]
) -> ReservedTimes:
    """Check that no job started on a host while it was closed; also count the jobs that started
    before and ran on there."""
    found: list[Breach] = []
    order = np.lexsort((done.start[parts.job], parts.host))
    job, host = parts.job[order], parts.host[order]
    start, end = done.start[job], done.end[job]
    firsts = np.searchsorted(host, np.arange(len(names) + 1))
    ran_on: set[int] = set()
    for begin, over, closed in outages:
        own = slice(*firsts[closed : closed + 2].tolist())
        first, last = np.searchsorted(start[own], [begin, over]).tolist()
        for row in job[own][first:last].tolist():
            text = (
                f"started on host {names[closed]} while it was closed, from {seconds(begin)} to "
                f"{seconds(over)}"
            )
            found.append(_breach(done, row, "closed-host", text))
        ran_on.update(job[own][:first][end[own][:first] > begin].tolist())
    return ReservedTimes(found, len(ran_on))


def _named(
    done: Schedule,
    parts: Parts,
    machine: Machine,
    windows: Sequence[Window],
    reservation: Int64Array,
    names: list[str],
) -> Iterator[Breach]:
    """Yield the breaches of jobs that name a reservation which is not flexible."""
    for number, kept in enumerate(machine.reservations):
        rows = np.flatnonzero(reservation == number)
        if kept.is_flexible or not len(rows):
            continue
        own = [window for window in windows if window.reservation == number]
        begins, ends = (
            np.array([0, *each], np.int64)
            for each in ([window.begin for window in own], [window.end for window in own])
        )
        last = np.searchsorted(begins[1:], done.start[rows], side="right")
        for row in rows[(last == 0) | (ends[last] <= done.start[rows])].tolist():
            text = f"names the reservation {kept.name}, and started outside of its times"
            yield _breach(done, row, "outside-reservation", text)
        is_kept = np.zeros(len(names), np.bool_)
        is_kept[list(kept.hosts)] = True
        is_away = (reservation[parts.job] == number) & ~is_kept[parts.host]
        for row, where in _by_job(parts, is_away, names):
            text = f"names the reservation {kept.name}, and ran on {where}, which it does not have"
            yield _breach(done, row, "outside-reservation", text)


def _by_job(parts: Parts, wrong: BoolArray, names: list[str]) -> Iterator[tuple[int, str]]:
    """Yield the rows with wrong parts, each with a text of its hosts."""
    where = np.flatnonzero(wrong)
    rows, firsts = np.unique(parts.job[where], return_index=True)
    lasts = [*firsts.tolist(), len(where)][1:]
    for row, first, last in zip(rows.tolist(), firsts.tolist(), lasts, strict=True):
        host = names[parts.host[where[first]]]
        more = last - first - 1
        yield row, f"host {host} and {more} more" if more else f"host {host}"


def _breach(done: Schedule, row: int, code: str, text: str) -> Breach:
    number = int(done.workload.number[row])
    return Breach(code, int(done.start[row]), (number,), f"job {number} {text}")
