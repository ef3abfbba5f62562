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

Where the paper is silent: ties between hosts go to the first; a job goes to no host with fewer processors than it asks
for.  With more jobs than processors on a host the last ones stand still (suspended, or not yet started) and hold their
memory.  A job without memory anywhere gets its quantum on arrival where the quantum's memory is free and one processor
is left to every other job: the others shrink for it, at once, instead of being suspended; what it does there is thrown
away if it does not end.  Of a host that is closed nothing changes; who was placed there and has not begun is placed anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from qbatch.model.actions import Action, Chunk, Resize, Resume, Start, Suspend, WakeAt
from qbatch.model.errors import UsageError
from qbatch.model.job import Job
from qbatch.model.machine import Machine
from qbatch.model.reasons import Reason
from qbatch.planning.view import View

LONG = 50 * 3600 * 1_000_000
"""Executed time after which a job may get all that it asks for, microseconds."""


@dataclass
class Share:
    """One job that has a place: its host, its processors now, what equal sharing would give it, what is still owed to it
    (processor-microseconds), how long it has executed, whether it is a guest for a quantum."""

    host: int
    procs: int = 0
    share: int = 0
    owed: int = 0
    executed: int = 0
    is_guest: bool = False


@dataclass
class Shares:
    """What is remembered: who has a place; when each host was divided last (None: never) and whether it must be again; of
    those that wait, what they would have got and would get now; the instant of the last pass; which hosts were closed."""

    placed: dict[int, Share] = field(default_factory=dict)
    divided: list[int | None] = field(default_factory=list)
    is_due: list[bool] = field(default_factory=list)
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
        if machine.chunked or not (machine.single_host or len(machine.hosts) == 1):
            raise UsageError(
                f"policy {self.name}: a job has a share of one host, and jobs may span the hosts of this machine; "
                "write single_host = true in the machine file, or choose another policy"
            )
        return Shares(divided=[None] * len(machine.hosts), is_due=[False] * len(machine.hosts))

    def decide(self, view: View) -> Iterable[Action]:
        """Place who waits, divide the hosts that are due, and say who has more or less than before."""
        memory: Shares = view.memory
        self._pass_time(view, memory)
        self._follow(view, memory)
        desk = _Desk(view, memory)
        guests = [row for row in self._place(view, memory, desk) if self._serve(view, memory, desk, row)]
        for host in range(len(view.machine.hosts)):
            last = memory.divided[host]
            may = last is None or view.now - last >= self.interval
            if host in view.closed or not memory.is_due[host]:
                continue
            self._level(view, memory, host)
            if may or desk.is_forced[host]:
                self._divide(view, memory, host)
                memory.divided[host], memory.is_due[host] = view.now, False
        memory.missing = {row: self._virtual(view, memory, desk, view.jobs[row]) for row in memory.missed}
        memory.at, memory.closed = view.now, view.closed
        return [*self._changes(view, memory, guests), *self._timers(view, memory)]

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
        text = f"no open host of {job.procs} processors or more has {job.memory} bytes free"
        return Reason("memory", self.name, text, numbers)

    def _pass_time(self, view: View, memory: Shares) -> None:
        """Add up what was done, and missed, since the last pass."""
        length = view.now - memory.at
        for each in memory.placed.values():
            if each.procs:
                was = each.executed
                each.executed += length
                if self.is_long_first and was <= LONG < each.executed:
                    memory.is_due[each.host] = True
            if each.owed:
                each.owed = max(each.owed - (each.procs - each.share) * length, 0)
                memory.is_due[each.host] |= not each.owed
        for row, share in memory.missing.items():
            memory.missed[row] += share * length

    def _follow(self, view: View, memory: Shares) -> None:
        """Forget who has gone; who has not begun on a host that closed is placed anew."""
        waiting = set(view.queue.tolist())
        for row, each in list(memory.placed.items()):
            is_here = row in view.running or row in view.suspended
            if not is_here and (row not in waiting or each.host in view.closed or each.is_guest):
                del memory.placed[row]
                memory.is_due[each.host] = True
        memory.missed = {row: missed for row, missed in memory.missed.items() if row in waiting}
        for host in memory.closed - view.closed:
            memory.is_due[host] = True

    def _place(self, view: View, memory: Shares, desk: _Desk) -> list[int]:
        """Give places to those who wait, in sequence; return the arrivals for which no host has memory."""
        left = []
        arrived = set(view.arrived)
        for row in view.queue.tolist():
            if row in memory.placed:
                continue
            job = view.jobs[row]
            host = desk.choose(job, job.memory)
            if host is None:
                memory.missed.setdefault(row, 0)
                if row in arrived:
                    left.append(row)
                continue
            desk.enter(row, Share(host, min(job.procs, desk.free[host]), owed=memory.missed.pop(row, 0)), job.memory)
        return left

    def _serve(self, view: View, memory: Shares, desk: _Desk, row: int) -> bool:
        """Give an arrival without memory its quantum, if there is a host for it."""
        job = view.jobs[row]
        need = min(job.memory, self.memory)
        if not job.is_rerunnable or need >= job.memory:
            return False
        open_hosts = {
            host for host, spec in enumerate(view.machine.hosts) if spec.cpus >= job.procs + desk.taken_at_least(host)
        }
        host = desk.choose(job, need, open_hosts)
        if host is None:
            return False
        del memory.missed[row]
        desk.enter(row, Share(host, job.procs, job.procs, is_guest=True), need)
        desk.is_forced[host] = True
        return True

    def _here(self, view: View, memory: Shares, host: int) -> tuple[list[Share], list[int], int]:
        """Return the jobs of a host in order of arrival, what they ask for, and the processors for them."""
        here = [
            (row, each) for row, each in sorted(memory.placed.items(), key=lambda pair: pair[0]) if each.host == host
        ]
        guests = sum(each.procs for _, each in here if each.is_guest)
        jobs = [(view.jobs[row].procs, each) for row, each in here if not each.is_guest]
        return [each for _, each in jobs], [procs for procs, _ in jobs], view.machine.hosts[host].cpus - guests

    def _level(self, view: View, memory: Shares, host: int) -> None:
        """Say what equal sharing would give to each job of a host, whether it is divided now or later."""
        here, asked, room = self._here(view, memory, host)
        for each, share in zip(here, water_fill(room, asked), strict=True):
            each.share = share

    def _divide(self, view: View, memory: Shares, host: int) -> None:
        """Divide a host among its jobs."""
        here, asked, room = self._here(view, memory, host)
        full: dict[int, int] = {}
        for place, each in enumerate(here):
            if each.owed or (self.is_long_first and each.executed > LONG):
                most = room - sum(full.values()) - (len(here) - len(full) - 1)
                if min(asked[place], most) > each.share:
                    full[place] = min(asked[place], most)
        others = [place for place in range(len(here)) if place not in full]
        rest = water_fill(room - sum(full.values()), [asked[place] for place in others])
        for place, procs in (*full.items(), *zip(others, rest, strict=True)):
            here[place].procs = procs

    def _virtual(self, view: View, memory: Shares, desk: _Desk, job: Job) -> int:
        """Return the share that a waiting job would have on the host that the placement ratio picks."""
        host = desk.best_ratio(job, [h for h, spec in enumerate(view.machine.hosts) if spec.cpus >= job.procs])
        if host is None:
            return 0
        rows = sorted(
            [(row, view.jobs[row].procs) for row, each in memory.placed.items() if each.host == host]
            + [(job.row, job.procs)]
        )
        shares = water_fill(view.machine.hosts[host].cpus, [procs for _, procs in rows])
        return shares[[row for row, _ in rows].index(job.row)]

    def _changes(self, view: View, memory: Shares, guests: list[int]) -> Iterator[Action]:
        """Say who changes: those who give processors up first."""
        more: list[Action] = []
        for row, each in sorted(memory.placed.items()):
            run = view.running.get(row)
            if run is not None and each.procs < run.procs:
                yield Resize(row, max(each.procs, 1))
                if not each.procs:
                    yield Suspend(row)
            elif run is not None and each.procs > run.procs:
                more.append(Resize(row, each.procs))
            elif run is None and each.procs and row in view.suspended:
                more.append(Resume(row))
                more += [Resize(row, each.procs)] if each.procs > 1 else []
            elif run is None and each.procs:
                counts, asked = view.machine.hosts[each.host].memory, view.jobs[row].memory
                size = min(asked, self.memory) if each.is_guest else asked
                until = view.now + self.quantum if row in guests else None
                chunk = Chunk(each.host, each.procs, size if counts else 0)
                more.append(Start(row, (chunk,), until, is_trial=row in guests))
        yield from more

    def _timers(self, view: View, memory: Shares) -> Iterator[WakeAt]:
        """Ask to be woken when a host may be divided, a debt is paid, a job becomes a long one."""
        instants = set()
        for host, is_due in enumerate(memory.is_due):
            last = memory.divided[host]
            if is_due and host not in view.closed and last is not None:
                instants.add(last + self.interval)
        for each in memory.placed.values():
            if each.host in view.closed:
                continue
            if each.owed and each.procs > each.share:
                instants.add(view.now - (-each.owed // (each.procs - each.share)))
            if self.is_long_first and each.procs and each.executed <= LONG:
                instants.add(view.now + LONG - each.executed + 1)
        yield from (WakeAt(at) for at in sorted(instants) if at > view.now)


class _Desk:
    """What is free on each host while a pass goes on."""

    def __init__(self, view: View, memory: Shares) -> None:
        self.view, self.memory = view, memory
        self.hosts = view.machine.hosts
        self.is_forced = [False] * len(self.hosts)
        self.free = [host.cpus for host in self.hosts]
        self.free_memory = list(view.free_memory)
        for row, each in memory.placed.items():
            self.free[each.host] -= each.procs
            if row not in view.running and row not in view.suspended and self.hosts[each.host].memory:
                self.free_memory[each.host] -= view.jobs[row].memory

    def has_memory(self, host: int, need: int) -> bool:
        """Tell whether a host that is open has so much memory free."""
        return host not in self.view.closed and (not self.hosts[host].memory or self.free_memory[host] >= need)

    def choose(self, job: Job, need: int, among: set[int] | None = None) -> int | None:
        """Return the host for a job that needs so much memory, None if no host has it."""
        hosts = [
            host
            for host, spec in enumerate(self.hosts)
            if spec.cpus >= job.procs and self.has_memory(host, need) and (among is None or host in among)
        ]
        roomy = [host for host in hosts if self.free[host] >= job.procs]
        if roomy:
            return min(roomy, key=lambda host: (self.free[host], host))
        return self.best_ratio(job, hosts)

    def best_ratio(self, job: Job, hosts: Sequence[int]) -> int | None:
        """Return the host with the most processors for each one requested on it, the job's own included."""
        asked = [job.procs] * len(self.hosts)
        extra = [0] * len(self.hosts)
        for row, each in self.memory.placed.items():
            asked[each.host] += self.view.jobs[row].procs
            extra[each.host] += max(each.procs - each.share, 0) if each.owed else 0
        open_hosts = [host for host in hosts if host not in self.view.closed]
        ratio = {host: Fraction(self.hosts[host].cpus - extra[host], asked[host]) for host in open_hosts}
        return max(open_hosts, key=lambda host: (ratio[host], -host), default=None)

    def taken_at_least(self, host: int) -> int:
        """Return how many processors of a host cannot be freed for a guest: one for each job, all of each guest."""
        return sum(each.procs if each.is_guest else 1 for each in self.memory.placed.values() if each.host == host)

    def enter(self, row: int, share: Share, need: int) -> None:
        """Give a job its place; its host must be divided anew."""
        self.memory.placed[row] = share
        self.memory.is_due[share.host] = True
        self.free[share.host] -= share.procs
        if self.hosts[share.host].memory:
            self.free_memory[share.host] -= need


def water_fill(room: int, asked: Sequence[int]) -> list[int]:
    """Divide processors equally: the greatest common level, nobody above his request, the remainder one each in order."""
    level, left, most = 0, room, sorted(asked)
    for place, request in enumerate(most):
        level = left // (len(most) - place)
        if request > level:
            break
        left -= request
        level = request
    shares = [min(request, level) for request in asked]
    spare = room - sum(shares)
    for place, request in enumerate(asked):
        if spare > 0 and shares[place] < request:
            shares[place] += 1
            spare -= 1
    return shares
