"""EQspatial: every job on a host gets an equal share of its processors, resized as jobs come and go.

Source: Chiang and Vernon, "Production Job Scheduling for Parallel Shared Memory Systems", IPDPS 2001, section 2.5; exact
readings in spec/papers.md 3.5 and 3.7, item 11.  All jobs count as malleable, from 1 to the processors asked for, and
work as fast as they have processors: the policy says so (``is_malleable``), and the engine takes every job as such.

* Shares: water-filling to the greatest common level, nobody above his request, the remainder one each in order of arrival.
* Placement, in sequence: of the hosts with memory and as many unallocated processors as are asked for, the one with the
  fewest; else, of those with memory, the one with the most processors for each one requested on it, the new job included.
* ``interval``: a host is divided anew at most so often; until then a new job takes what is unallocated there.
* Waiting compensation: a job for which no host has memory waits, and what it would have got is added up: its share on the
  host that the second rule picks, from event to event.  Once placed it gets all that it asks for until it has had that.
* ``over50=yes``: a job that has executed for more than 50 hours gets all that it asks for from then on.
* Who gets all leaves one processor to every other job of the host.
* A job without memory anywhere gets a quantum on arrival, as with immediate service; what it does there is thrown away if it
  does not end.

Where the paper and the specification are silent (``tests/oracle/equispatial.py`` reads it the same way):

* Ties between hosts go to the first; a job goes to no host with fewer processors than it asks for.
* With more jobs than processors on a host the last ones stand still (suspended, or not yet started) and hold their memory.
* Several who are to get all share, as equally as all jobs otherwise do, what leaves one processor to every other job: so
  nobody is favoured and has less than his share.  With more jobs than processors nobody has more than the others.
* The extra processors that make a host count as smaller are those that an owed job has above its share at that moment; the
  share is among all who have a place there by then.  Guests count among those who request processors.
* A guest's processors are not there to be shared, neither for those on its host nor for who would be there if he had memory.
* A guest goes where the placement rules say, of the hosts with the quantum's memory where one processor is left to every
  other job.  It takes idle processors if they are enough.  If not, the others shrink for it, at once, instead of being
  suspended, and have their processors back at once when it goes, as victims do (papers.md 3.4); the interval begins anew.
* What a job would have got is added up while it waits: its quantum does not count, nor does it for the 50 hours.
* A division counts, and the interval begins anew, even if nobody has more or less after it.  A debt that is paid and 50
  hours that are over (one microsecond more) are reasons to divide, within the interval.
* Of a host that is closed nothing changes; who was placed there and has not begun is placed anew.

A pass touches only the hosts on which something happens: what their jobs have executed, and are owed, is brought up to date then.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf

import numpy as np

from qbatch.model.actions import Action, Chunk, Resize, Resume, Start, Suspend, WakeAt
from qbatch.model.job import Job
from qbatch.model.machine import Machine, memory_text
from qbatch.model.reasons import Reason
from qbatch.planning.view import View
from qbatch.policies.entry import check_single_hosts

LONG = 50 * 3600 * 1_000_000
"""Executed time after which a job may get all that it asks for, microseconds."""


@dataclass
class Share:
    """One job that has a place: its host, the processors that it asks for and has now, what equal sharing would give it, what
    is still owed to it (processor-microseconds), how long it has executed, both by ``Division.at``; whether it is a guest for
    a quantum, and whether the others shrank for it."""

    host: int
    asked: int
    procs: int = 0
    share: int = 0
    owed: int = 0
    executed: int = 0
    is_guest: bool = False
    is_squeezing: bool = False


@dataclass
class Division:
    """One host: who has a place there, in order of arrival; processors that nobody has, that all together ask for, that guests
    have; to whom something is owed; the instant up to which its shares are kept; when it was divided last (None: never) and
    whether it must be again; whether who has a place changed since the shares were found; when to look at it again."""

    idle: int
    rows: list[int] = field(default_factory=list)
    asked: int = 0
    guests: int = 0
    owing: list[int] = field(default_factory=list)
    at: int = 0
    last: int | None = None
    is_due: bool = False
    is_stale: bool = False
    look_at: int | None = None


@dataclass
class Shares:
    """What is remembered: who has a place, and where; who has a place and has not begun; of those that wait, what they would
    have got and would get now; the instant of the last pass; which hosts were closed."""

    placed: dict[int, Share] = field(default_factory=dict)
    hosts: list[Division] = field(default_factory=list)
    not_begun: list[int] = field(default_factory=list)
    missed: dict[int, int] = field(default_factory=dict)
    missing: dict[int, int] = field(default_factory=dict)
    at: int = 0
    closed: frozenset[int] = frozenset()


class EquiSpatial:
    """Equal shares of hosts.

    Args:
        interval: the shortest time between two divisions of a host, microseconds.
        is_long_first: whether a job gets all that it asks for after ``LONG``.
        quantum: how long a job without memory may run on arrival, microseconds.
        memory: the most memory that it gets for that, bytes.
    """

    is_malleable = True

    def __init__(self, name: str, interval: int, is_long_first: bool, quantum: int, memory: int) -> None:
        self.name = name
        self.interval = interval
        self.is_long_first = is_long_first
        self.quantum = quantum
        self.memory = memory

    def new_memory(self, machine: Machine) -> Shares:
        """Return the record for a machine on which nothing has happened yet.

        Raises:
            UsageError: if a job may span hosts of the machine, or comes in chunks.
        """
        check_single_hosts(machine, self.name, "a job has a share of one host", takes_chunks=False)
        return Shares(hosts=[Division(host.cpus) for host in machine.hosts])

    def decide(self, view: View) -> Iterable[Action]:
        """Place who waits, divide the hosts that are due, and say who has more or less than before."""
        memory: Shares = view.memory
        books = _HostBooks(view, memory, self.is_long_first)
        length = view.now - memory.at
        for row, share in memory.missing.items():
            memory.missed[row] += share * length
        has_memory_come = self._follow(view, memory, books)
        guests = [row for row in self._place(view, memory, books, has_memory_come) if self._serve(view, books, row)]
        for host, division in enumerate(memory.hosts):
            if host in view.closed or not division.is_due:
                continue
            books.level(host)
            if division.last is None or view.now - division.last >= self.interval or host in books.forced:
                books.divide(host)
        if books.touched or view.is_machine_changed or memory.missed.keys() != memory.missing.keys():
            memory.missing = books.virtual_shares(memory.missed)
        memory.at, memory.closed = view.now, view.closed
        actions = [*self._changes(view, memory, books, guests), *self._timer(view, memory, books)]
        memory.not_begun = [row for row in memory.not_begun if not memory.placed[row].procs]
        return actions

    def explain(self, view: View, row: int) -> Reason:
        """Say why a waiting job has not begun."""
        memory: Shares = view.memory
        job = view.jobs[row]
        numbers = {"procs": job.procs, "memory": job.memory, "free": view.free_procs}
        if row in memory.placed:
            name = view.machine.hosts[memory.placed[row].host].name
            return Reason(
                "processors", self.name, f"has its place on host {name}, which has no processor for it yet", numbers
            )
        text = f"no open host of {job.procs} processors or more has {memory_text(job.memory)} of memory free"
        return Reason("memory", self.name, text, numbers)

    def _follow(self, view: View, memory: Shares, books: _HostBooks) -> bool:
        """Forget who has gone; who has not begun on a host that closed is placed anew.  Tell whether memory may be free
        that was not."""
        # A guest whose host closed is both requeued and, if no open host could hold it, withdrawn.
        gone = {row for row in (*view.finished, *view.withdrawn, *view.requeued) if row in memory.placed}
        for row in (*view.finished, *view.withdrawn):
            memory.missed.pop(row, None)
        if view.is_machine_changed:
            waiting = set(view.queue.tolist())
            memory.missed = {row: missed for row, missed in memory.missed.items() if row in waiting}
            for row, each in memory.placed.items():
                is_here = row in view.running or row in view.suspended
                if not is_here and (row not in waiting or each.host in view.closed):
                    gone.add(row)
            for host in memory.closed - view.closed:
                books.touch(host)
                memory.hosts[host].is_due = True
        for row in sorted(gone):
            books.leave(row)
        if view.is_machine_changed:
            for row, run in sorted((*view.running.items(), *view.suspended.items())):
                if row not in memory.placed:
                    procs = run.procs if row in view.running else 0
                    books.adopt(row, Share(run.allocation[0].host, view.jobs[row].procs, procs))
        return bool(gone) or view.is_machine_changed

    def _place(self, view: View, memory: Shares, books: _HostBooks, has_memory_come: bool) -> list[int]:
        """Give places to those who wait, in sequence; return the arrivals for which no host has memory."""
        left = []
        arrived = set(view.arrived)
        rows = view.queue if has_memory_come else np.array(view.arrived, np.int64)
        most = books.most_memory()
        for row, need in zip(rows.tolist(), view.columns.memory[rows].tolist(), strict=True):
            if row in memory.placed or (need > most and row in memory.missed):
                continue
            job = view.jobs[row]
            host = books.choose(job, job.memory)
            if host is None:
                memory.missed.setdefault(row, 0)
                if row in arrived:
                    left.append(row)
                continue
            procs = min(job.procs, memory.hosts[host].idle)
            books.enter(row, Share(host, job.procs, procs, owed=memory.missed.pop(row, 0)), job.memory)
        return left

    def _serve(self, view: View, books: _HostBooks, row: int) -> bool:
        """Give an arrival without memory its quantum, if there is a host for it."""
        job = view.jobs[row]
        need = min(job.memory, self.memory)
        if not job.is_rerunnable or need >= job.memory:
            return False
        open_hosts = {
            host for host, spec in enumerate(view.machine.hosts) if spec.cpus >= job.procs + books.taken_at_least(host)
        }
        host = books.choose(job, need, open_hosts)
        if host is None:
            return False
        is_squeezing = books.memory.hosts[host].idle < job.procs
        del books.memory.missed[row]
        books.enter(row, Share(host, job.procs, job.procs, is_guest=True, is_squeezing=is_squeezing), need)
        if is_squeezing:
            books.forced.add(host)
        return True

    def _changes(self, view: View, memory: Shares, books: _HostBooks, guests: list[int]) -> Iterator[Action]:
        """Say who changes: those who give processors up first."""
        more: list[Action] = []
        placed, running = memory.placed, view.running
        for row in sorted(row for host in books.touched for row in memory.hosts[host].rows):
            each, run = placed[row], running.get(row)
            if run is not None:
                had = run.allocation[0].procs
                if not each.procs:
                    yield Suspend(row)
                elif each.procs < had:
                    yield Resize(row, each.procs)
                elif each.procs > had:
                    more.append(Resize(row, each.procs))
            elif each.procs and row in view.suspended:
                if each.procs != view.suspended[row].allocation[0].procs:
                    yield Resize(row, each.procs)
                more.append(Resume(row))
            elif each.procs:
                counts, asked = view.machine.hosts[each.host].memory, view.jobs[row].memory
                size = min(asked, self.memory) if each.is_guest else asked
                until = view.now + self.quantum if row in guests else None
                chunk = Chunk(each.host, each.procs, size if counts else 0)
                more.append(Start(row, (chunk,), until, is_trial=row in guests))
        yield from more

    def _timer(self, view: View, memory: Shares, books: _HostBooks) -> Iterator[WakeAt]:
        """Ask to be woken when the next host may be divided, a debt is paid, a job becomes a long one."""
        for host in books.touched:
            memory.hosts[host].look_at = books.next_look(host)
        instants = [each.look_at for each in memory.hosts if each.look_at is not None]
        instants += [
            each.last + self.interval
            for host, each in enumerate(memory.hosts)
            if each.is_due and each.last is not None and host not in view.closed
        ]
        at = min((at for at in instants if at > view.now), default=None)
        if at is not None:
            yield WakeAt(at)


class _HostBooks:
    """The books of the hosts while a pass goes on; only those of hosts on which something happens are brought up to date.

    ``touched``: the hosts of which the books are up to date.  ``forced``: those that are divided whatever the interval.
    """

    def __init__(self, view: View, memory: Shares, is_long_first: bool) -> None:
        self.view, self.memory, self.is_long_first = view, memory, is_long_first
        self.hosts = view.machine.hosts
        self.touched: set[int] = set()
        self.forced: set[int] = set()
        self.free_memory = list(view.free_memory)
        for row in memory.not_begun:
            self.free_memory[memory.placed[row].host] -= view.jobs[row].memory
        for host, division in enumerate(memory.hosts):
            if division.look_at is not None and division.look_at <= view.now:
                self.touch(host)

    def touch(self, host: int) -> None:
        """Bring the books of a host up to date: who executed how long, whose debt is paid."""
        if host in self.touched:
            return
        self.touched.add(host)
        division, placed = self.memory.hosts[host], self.memory.placed
        length = self.view.now - division.at
        division.at = self.view.now
        for row in division.rows if length else ():
            each = placed[row]
            if each.procs:
                each.executed += length
                if self.is_long_first and each.executed - length <= LONG < each.executed and not each.is_guest:
                    division.is_due = True
        for row in list(division.owing) if length else ():
            each = placed[row]
            each.owed = max(each.owed - (each.procs - each.share) * length, 0)
            if not each.owed:
                division.owing.remove(row)
                division.is_due = True

    def enter(self, row: int, share: Share, need: int) -> None:
        """Give a job its place; its host must be divided anew."""
        self.adopt(row, share)
        self.memory.not_begun.append(row)
        self.free_memory[share.host] -= need

    def adopt(self, row: int, share: Share) -> None:
        """Give its place to a job that has its memory, or has begun under another policy."""
        self.touch(share.host)
        division = self.memory.hosts[share.host]
        self.memory.placed[row] = share
        insort(division.rows, row)
        division.idle -= share.procs
        division.asked += share.asked
        division.guests += share.procs if share.is_guest else 0
        division.owing += [row] if share.owed else []
        division.is_due = division.is_stale = True

    def leave(self, row: int) -> None:
        """Take a job from its place; its host must be divided anew, at once if the others shrank for it."""
        share = self.memory.placed[row]
        self.touch(share.host)
        division = self.memory.hosts[share.host]
        del self.memory.placed[row]
        division.rows.remove(row)
        division.idle += share.procs
        division.asked -= share.asked
        division.guests -= share.procs if share.is_guest else 0
        if row in division.owing:
            division.owing.remove(row)
        if row in self.memory.not_begun:
            self.memory.not_begun.remove(row)
            self.free_memory[share.host] += self.view.jobs[row].memory
        division.is_due = division.is_stale = True
        if share.is_squeezing:
            self.forced.add(share.host)

    def level(self, host: int) -> None:
        """Say what equal sharing would give to each job of a host, whether it is divided now or later."""
        division = self.memory.hosts[host]
        if division.is_stale:
            here = self._sharing(host)
            for each, share in zip(here, water_fill(self._room(host), [each.asked for each in here]), strict=True):
                each.share = share
            division.is_stale = False

    def divide(self, host: int) -> None:
        """Divide a host among its jobs."""
        self.touch(host)
        division = self.memory.hosts[host]
        here, room = self._sharing(host), self._room(host)
        favoured = [each for each in here if each.owed or (self.is_long_first and each.executed > LONG)]
        if favoured and room >= len(here):
            others = [each for each in here if not (each.owed or (self.is_long_first and each.executed > LONG))]
            theirs = water_fill(room - len(others), [each.asked for each in favoured])
            rest = water_fill(room - sum(theirs), [each.asked for each in others])
            for each, procs in zip((*favoured, *others), (*theirs, *rest), strict=True):
                each.procs = procs
        else:
            for each in here:
                each.procs = each.share
        division.idle = room - sum(each.procs for each in here)
        division.last, division.is_due = self.view.now, False

    def next_look(self, host: int) -> int | None:
        """Return when a debt is paid or a job becomes a long one, if all stays as it is; None if never."""
        division, placed, now = self.memory.hosts[host], self.memory.placed, self.view.now
        instants = []
        if host not in self.view.closed:
            for each in (placed[row] for row in division.owing):
                if each.procs > each.share:
                    instants.append(now - (-each.owed // (each.procs - each.share)))
            if self.is_long_first:
                going = [each.executed for each in self._sharing(host) if each.procs and each.executed <= LONG]
                instants += [now + LONG - max(going) + 1] if going else []
        return min(instants, default=None)

    def choose(self, job: Job, need: int, among: set[int] | None = None) -> int | None:
        """Return the host for a job that needs so much memory, None if no host has it."""
        hosts, divisions, procs, best = [], self.memory.hosts, job.procs, None
        for host, free in enumerate(self.free_memory):
            spec, idle = self.hosts[host], divisions[host].idle
            has_memory = host not in self.view.closed and (free >= need or not spec.memory)
            if spec.cpus >= procs and has_memory and (among is None or host in among):
                hosts.append(host)
                if procs <= idle and (best is None or idle < divisions[best].idle):
                    best = host
        return _best_ratio(procs, self._offers(hosts)) if best is None else best

    def virtual_shares(self, waiting: Collection[int]) -> dict[int, int]:
        """Return the share that each waiting job would have on the host that the placement ratio picks.

        It depends on the processors that it asks for and, if the level is lower, on who comes before it on the host.
        """
        found: dict[int, int] = {}
        levels: dict[int, tuple[int, int, list[int]]] = {}
        offers = self._offers(range(len(self.hosts)) if waiting else ())
        for row, procs in zip(waiting, self.view.columns.procs[list(waiting)].tolist(), strict=True):
            if procs not in levels:
                host = _best_ratio(procs, [offer for offer in offers if self.hosts[offer[0]].cpus >= procs])
                levels[procs] = (0, 0, []) if host is None else self._level_with(host, procs)
            level, spare, short = levels[procs]
            found[row] = procs if procs <= level else level + (bisect_left(short, row) < spare)
        return found

    def _level_with(self, host: int, procs: int) -> tuple[int, int, list[int]]:
        """Return the level of a host with one job more, how many get one processor above it, and the rows that ask for more."""
        placed = self.memory.placed
        asked = {row: placed[row].asked for row in self.memory.hosts[host].rows if not placed[row].is_guest}
        level, spare = _water_level(self._room(host), sorted((procs, *asked.values())))
        return level, spare, [row for row, request in asked.items() if request > level]

    def most_memory(self) -> float:
        """Return the most memory that is free on an open host; without bound where memory is not counted."""
        open_hosts = (host for host in range(len(self.hosts)) if host not in self.view.closed)
        return max((self.free_memory[host] if self.hosts[host].memory else inf for host in open_hosts), default=-1)

    def taken_at_least(self, host: int) -> int:
        """Return how many processors of a host cannot be freed for a guest: one for each job, all of each guest."""
        division = self.memory.hosts[host]
        return len(self._sharing(host)) + division.guests

    def _offers(self, hosts: Iterable[int]) -> list[tuple[int, int, int]]:
        """Return of each open host the processors that can be shared and those that its jobs ask for."""
        found, closed, divisions = [], self.view.closed, self.memory.hosts
        for host in hosts:
            if host not in closed:
                extra = self._extra(host) if divisions[host].owing else 0
                found.append((host, self.hosts[host].cpus - extra, divisions[host].asked))
        return found

    def _extra(self, host: int) -> int:
        """Return how many processors above their share those have to whom something is owed."""
        self.level(host)
        owing = map(self.memory.placed.__getitem__, self.memory.hosts[host].owing)
        return sum([each.procs - each.share for each in owing if each.procs > each.share])

    def _sharing(self, host: int) -> list[Share]:
        """Return the jobs of a host that are no guests, in order of arrival."""
        here = map(self.memory.placed.__getitem__, self.memory.hosts[host].rows)
        return [each for each in here if not each.is_guest]

    def _room(self, host: int) -> int:
        """Return the processors that guests leave."""
        return self.hosts[host].cpus - self.memory.hosts[host].guests


def _best_ratio(procs: int, offers: Iterable[tuple[int, int, int]]) -> int | None:
    """Return the host with the most processors for each one requested on it, those of a new job included."""
    best, most, least = None, 0, 1
    for host, size, asked in offers:
        if best is None or size * least > most * (asked + procs):
            best, most, least = host, size, asked + procs
    return best


def water_fill(room: int, asked: Sequence[int]) -> list[int]:
    """Divide processors equally: the greatest common level, nobody above his request, the remainder one each in order."""
    level, spare = _water_level(room, sorted(asked))
    shares = [request if request < level else level for request in asked]
    if spare:
        for place, request in enumerate(asked):
            if request > level:
                shares[place] += 1
                spare -= 1
                if not spare:
                    break
    return shares


def _water_level(room: int, asked: list[int]) -> tuple[int, int]:
    """Return the level, and how many of those that ask for more get one above it; ``asked`` ascending."""
    level, left, count = 0, room, len(asked)
    for request in asked:
        level = left // count
        if request > level:
            return level, left - level * count
        left -= request
        count -= 1
        level = request
    return level, 0
