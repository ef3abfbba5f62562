"""The passes of Slurm: the main scheduler, which starts the first jobs of each partition, and backfill
in cycles, with planned starts (docs/spec/production.md 4.1 and 4.2; the rules were held against
recordings of Slurm 22.05.8).

Jobs start in these passes only, in whole seconds of the controller, in the order of multifactor
priorities or of submission.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

import msgspec
import numpy as np

from qbatch.model.actions import Action, Allocation, Start, WakeAt
from qbatch.model.job import Job
from qbatch.model.machine import Machine, Partition
from qbatch.model.reasons import Reason
from qbatch.model.site import BACKFILL, FULL, QUICK, TICK, Passes
from qbatch.planning.kernels.types import BoolArray
from qbatch.planning.partitions import partitions_of
from qbatch.planning.requests import hosts_for, requested
from qbatch.planning.view import View
from qbatch.planning.windows import number_of
from qbatch.policies.limits import Active, LimitRules
from qbatch.policies.multifactor import Multifactor, SiteMemory, SiteRules
from qbatch.policies.slurm_nodes import (
    CPUS,
    MANY,
    MEMORY,
    NAMED,
    SECOND,
    Ask,
    Holding,
    Nodes,
    allocation_of,
    ask_of,
    holding_of,
)
from qbatch.policies.slurm_plans import PlannedHosts

RESOURCES, PRIORITY, LICENCES, RESERVED, UNAVAILABLE, NOT_TRIED = REASONS = (
    "Resources",
    "Priority",
    "Licenses",
    "Reservation",
    "ReqNodeNotAvail",
    "None",
)
"""Why a job waits, in Slurm's words."""

_IN_WORDS = {
    RESOURCES: "it is the first of its partition, and its hosts are not free",
    PRIORITY: "a job of higher priority in its partition waits for its hosts",
    LICENCES: "its licences are not free",
    RESERVED: "a reservation has its hosts",
    UNAVAILABLE: "the hosts that it could have are not there",
    NOT_TRIED: "no pass has looked at it yet",
}
_STARTED = ""


class Entry(NamedTuple):
    """A waiting job in one of its partitions, as an entry of the queue."""

    row: int
    job: Job
    partition: Partition | None
    priority: int


class SlurmMemory(SiteMemory):
    """What the passes remember: when they were, what waits for one, what running jobs have and count
    for limits, planned starts and reasons by row.

    ``counted``: :class:`qbatch.policies.slurm_nodes.Nodes`.
    """

    def __init__(self, rules: SiteRules) -> None:
        super().__init__(rules)
        self.last_main = self.last_full = self.next_backfill = -1
        self.is_asked = False
        self.is_changed = False
        self.holdings: dict[int, Holding] = {}
        self.active: dict[int, Active] = {}
        self.planned: dict[int, int] = {}
        self.reasons: dict[int, str] = {}
        self.counted: list[int] = [255] * len(rules.machine.real_hosts)


class Slurm(Multifactor):
    """The main scheduler and backfill of Slurm.

    Args:
        instants: instants and kinds of passes, ascending, in place of those that the site's settings
            give: of a controller's log, microseconds.  After the last of them the site's hold.
        offset: the second of the epoch at which the clock begins: planned times are whole steps of
            the epoch.
    """

    knows_resources = True

    def __init__(
        self, name: str, offset: int = 0, instants: Sequence[tuple[int, str]] = ()
    ) -> None:
        super().__init__(name, 0)
        self.offset = offset
        self.instants = instants
        self._at = [at for at, _ in instants]
        self._ticks = {each for each in instants if each[1] == TICK}
        self._asks: dict[tuple[object, ...], Ask | None] = {}

    def new_memory(self, machine: Machine) -> SlurmMemory:
        """Return the record for a machine before its first event."""
        return SlurmMemory(self.rules_of(machine))

    def decide(self, view: View) -> Iterator[Action]:
        """Make the passes that are due, and ask for the next."""
        is_recorded = bool(self._at) and view.now <= self._at[-1]
        is_ticking = (view.now, TICK) in self._ticks if is_recorded and self._ticks else None
        self.follow(view, is_ticking=is_ticking)
        memory: SlurmMemory = view.memory
        passes = passes_of(view.machine)
        now = view.now // SECOND
        if memory.last_full < 0:
            memory.last_full, memory.last_main = now, now - max(passes.delay, passes.least_gap)
            memory.next_backfill = now + passes.backfill_interval
        self._hold(view, memory)
        if view.arrived or view.ended or view.is_machine_changed or view.requeued:
            memory.is_asked = memory.is_changed = True
        if is_recorded:
            yield from self._as_recorded(view, memory, passes, now)
            return
        is_whole = view.now % SECOND == 0
        for kind in self._due(memory, passes, now) if is_whole else ():
            yield from self._pass(kind, view, memory, passes, now)
        waiting = len(view.queue) - sum(row in memory.holdings for row in view.queue.tolist())
        # Where nothing runs and nothing is planned, the next pass would find what the last one found.
        may_change = memory.is_asked or memory.is_changed or memory.planned or memory.holdings
        if waiting and may_change:
            yield WakeAt(self._next(memory, passes, now) * SECOND)

    def _as_recorded(
        self, view: View, memory: SlurmMemory, passes: Passes, now: int
    ) -> Iterator[Action]:
        """Make the recorded passes of this instant, and ask for the next one."""
        place = bisect_left(self._at, view.now)
        while place < len(self._at) and self._at[place] == view.now:
            if self.instants[place][1] != TICK:
                yield from self._pass(self.instants[place][1], view, memory, passes, now)
            place += 1
        following = (now + 1) * SECOND if place == len(self._at) else self._at[place]
        yield WakeAt(following)

    def _due(self, memory: SlurmMemory, passes: Passes, now: int) -> Iterator[str]:
        """Yield the passes of this second."""
        gap = max(passes.delay, passes.least_gap)
        if now - memory.last_full >= passes.interval:
            memory.last_full += (now - memory.last_full) // passes.interval * passes.interval
            memory.last_main, memory.is_asked = now, False
            yield FULL
        elif memory.is_asked and now - memory.last_main >= gap:
            memory.last_main, memory.is_asked = now, False
            yield QUICK
        if passes.has_backfill and now >= memory.next_backfill:
            late = (now - memory.next_backfill) // passes.backfill_interval
            memory.next_backfill += (late + 1) * passes.backfill_interval
            if memory.is_changed or memory.planned:
                memory.is_changed = False
                yield BACKFILL

    def _next(self, memory: SlurmMemory, passes: Passes, now: int) -> int:
        """Return the second of the next pass."""
        following = [memory.last_full + passes.interval]
        if memory.is_asked:
            following.append(memory.last_main + max(passes.delay, passes.least_gap))
        if passes.has_backfill:
            following.append(memory.next_backfill)
        return max(min(following), now + 1)

    def _pass(
        self, kind: str, view: View, memory: SlurmMemory, passes: Passes, now: int
    ) -> Iterator[Start]:
        tables = Tables(self, view, memory, now)
        made = tables.backfill(passes) if kind == BACKFILL else tables.main(passes, kind == FULL)
        for start in made:
            self._note(view, memory, [start])
            yield start
        memory.counted = tables.counted.tolist()

    def _hold(self, view: View, memory: SlurmMemory) -> None:
        """Follow what running jobs have: those that ended, and those that an operator started."""
        running = view.running
        for row in [row for row in memory.holdings if row not in running]:
            del memory.holdings[row]
            memory.active.pop(row, None)
        if len(memory.holdings) < len(running):
            for row, run in running.items():
                if row not in memory.holdings:
                    memory.holdings[row] = holding_of(
                        row,
                        run.allocation,
                        len(view.machine.resources),
                        -(-run.expected_end // SECOND),
                        view.jobs[row].is_exclusive,
                    )
        for table in (memory.planned, memory.reasons):
            for row in [row for row in table if row not in memory.terms]:
                del table[row]

    def ask(self, machine: Machine, job: Job) -> Ask | None:
        """Return what a job asks for in Slurm's terms."""
        hosts = (job.least_hosts, job.most_hosts)
        key = (
            *(job.chunks, job.procs, job.memory, job.placing, job.is_exclusive, job.resources),
            *hosts,
        )
        if key not in self._asks:
            self._asks[key] = ask_of(machine, job)
        return self._asks[key]

    def explain(self, view: View, row: int) -> Reason:
        """Return why a waiting job did not start in the last pass, in Slurm's word."""
        memory: SlurmMemory = view.memory
        word = memory.reasons.get(row, NOT_TRIED)
        text = f"{_IN_WORDS.get(word, 'a limit of its QOS or account is reached')} ({word})"
        numbers = {"procs": view.jobs[row].procs}
        if row in memory.planned:
            numbers["at"] = memory.planned[row] * SECOND
            text = f"{text}; its planned start is {memory.planned[row]} s"
        if row in memory.made:
            numbers |= memory.made[row][0].numbers()
        return Reason(word.lower(), self.name, text, numbers)


def passes_of(machine: Machine) -> Passes:
    """Return when the site of a machine makes its passes."""
    site = machine.site
    return Passes() if site is None or site.passes is None else site.passes


class Tables:
    """One pass: the hosts, the queue, and what the pass has decided so far."""

    def __init__(self, policy: Slurm, view: View, memory: SlurmMemory, now: int) -> None:
        self.policy, self.view, self.memory, self.now = policy, view, memory, now
        self.machine = machine = view.machine
        hosts = machine.real_hosts
        self.closed = np.zeros(len(hosts), np.bool_)
        self.closed[[host for host in view.closed if host < len(hosts)]] = True
        weights = np.array([host.weight for host in hosts], np.int64)
        self.counted = np.array(memory.counted, np.int64)
        self.nodes = Nodes(machine, memory.holdings.values(), weights, self.counted)
        server = machine.server
        self.left = (
            dict(
                zip(
                    machine.resources,
                    (amounts[server] for amounts in view.free_resources),
                    strict=True,
                )
            )
            if server >= 0
            else {}
        )
        self._mask = cache(self._hosts_of)
        self.limits = LimitRules(policy.rules_of(machine), memory.active)

    def _hosts_of(self, hosts: tuple[int, ...]) -> BoolArray:
        found = np.zeros(len(self.machine.real_hosts), np.bool_)
        found[list(hosts)] = True
        return found

    def entries(self) -> list[Entry]:
        """Return the queue: jobs that name a reservation first, then by tier, priority, submission
        and number."""
        view, memory, found = self.view, self.memory, list[Entry]()
        for row in view.queue.tolist():
            job = view.jobs[row]
            named: tuple[Partition | None, ...] = partitions_of(self.machine, job.partitions)
            for place, partition in enumerate(named or (None,)):
                found.append(Entry(row, job, partition, memory.made[row][place].value))
        found.sort(
            key=lambda each: (
                not each.job.reservation,
                -(each.partition.tier if each.partition else 0),
                -each.priority,
                each.job.submit // SECOND,
                each.row,
            )
        )
        return found

    def everywhere(self, entry: Entry) -> BoolArray:
        """Return the hosts on which a job could be: of the partition, the features, and the
        reservation that it names."""
        job, machine = entry.job, self.machine
        names = (entry.partition.name,) if entry.partition else ()
        within = msgspec.structs.replace(job, partitions=names)
        chunk = requested(job)[0]
        hosts = hosts_for(machine, within, chunk)
        if hosts is None:
            return np.ones(len(machine.real_hosts), np.bool_)
        return self._mask(hosts)

    def kept_out(self, job: Job, among: BoolArray, start: int, end: int) -> BoolArray:
        """Return the hosts that reservations keep from a job over a span, in seconds."""
        found = np.zeros(len(among), np.bool_)
        windows, machine = self.view.windows, self.machine
        if not len(windows.firsts):
            return found
        number = number_of(machine, job)
        must_be_inside = number >= 0 and not machine.reservations[number].is_flexible
        for host in np.flatnonzero(among).tolist():
            found[host] = windows.keeping_out(number, host, start * SECOND, end * SECOND) >= 0 or (
                must_be_inside and not windows.is_inside(number, host, start * SECOND)
            )
        return found

    def has_licences(self, ask: Ask) -> bool:
        """Return whether the amounts of the server that a job asks for are free."""
        return all(self.left.get(name, 0) >= amount for name, amount in ask.server)

    def counts(self, ask: Ask, entry: Entry) -> Ask:
        """Return what a job asks for with the least hosts of its partition."""
        fewest = entry.partition.min_hosts if entry.partition else 0
        most = entry.partition.max_hosts if entry.partition else 0
        least = max(ask.least, fewest)
        return msgspec.structs.replace(
            ask, least=least, most=min(ask.most, most) if most and ask.most < MANY else ask.most
        )

    def main(self, passes: Passes, is_full: bool) -> Iterator[Start]:
        """Make a pass of the main scheduler.

        A job that does not fit stops its partition: the hosts of the partition are closed for all
        entries that follow.  A job without its licences is skipped; so is one that hosts can never
        hold, or that only reservations keep from its hosts.
        """
        opened = ~self.closed
        stopped: set[str] = set()
        stopped_reservations: set[str] = set()
        for tested, entry in enumerate(self.entries()):
            row, job, partition = entry.row, entry.job, entry.partition
            if row in self.memory.holdings:
                continue
            if not is_full and tested > passes.depth:
                return
            name = partition.name if partition else ""
            is_stopped = (
                job.reservation in stopped_reservations if job.reservation else name in stopped
            )
            if is_stopped:
                if self.memory.reasons.get(row, NOT_TRIED) in (NOT_TRIED, RESOURCES):
                    self.memory.reasons[row] = PRIORITY
                continue
            if word := self.limits.before(job, partition):
                self.memory.reasons[row] = word
                continue
            ask = self.policy.ask(self.machine, job)
            if ask is None:
                start = self.start_chunks(entry)
                if start is not None:
                    yield start
                continue
            ask, everywhere = self.counts(ask, entry), self.everywhere(entry)
            of_partition = (
                np.ones_like(opened) if partition is None else self._mask(partition.hosts)
            )
            if ask.least > int((opened & of_partition).sum()):
                word = RESOURCES
            else:
                word, start = self.try_now(entry, ask, everywhere, opened)
                if start is not None:
                    yield start
                    continue
            self.memory.reasons[row] = word
            if word != RESOURCES:
                continue
            if job.reservation:
                stopped_reservations.add(job.reservation)
            elif name not in stopped:
                stopped.add(name)
                opened = opened & ~of_partition

    def try_now(
        self,
        entry: Entry,
        ask: Ask,
        everywhere: BoolArray,
        opened: BoolArray,
        barred: BoolArray | None = None,
    ) -> tuple[str, Start | None]:
        """Try to start a job; return why it did not, and its start.

        A job that does not fit waits for resources if it would fit on the open hosts were they idle,
        or if one of its hosts is in use.  Else its hosts are not there, which stops nothing.
        """
        if not self.has_licences(ask):
            return LICENCES, None
        job, now = entry.job, self.now
        kept = self.kept_out(job, everywhere, now, now + job.estimate // SECOND)
        if job.reservation and not (everywhere & ~kept).any():
            return RESERVED, None
        if barred is not None:
            everywhere = everywhere & ~barred
        present = everywhere & opened & ~kept
        self.nodes.forget_gpus(everywhere)
        idle = self.nodes.holders == 0
        usable = present & (idle if ask.is_exclusive else self.nodes.alone == 0)
        chosen = self.nodes.select(ask, usable) if int(usable.sum()) >= ask.least else None
        asked = self.asked(entry, ask, len(chosen) if chosen is not None else ask.least)
        if word := self.limits.after(job, entry.partition, asked, chosen):
            return word, None
        if chosen is not None:
            start = self.start(entry, ask, chosen)
            if start is not None:
                return _STARTED, start
        if self.nodes.select(ask, present, ever=True) is not None:
            return RESOURCES, None
        if self.nodes.select(ask, everywhere, ever=True) is None:
            return UNAVAILABLE, None
        if (usable != present).any():
            return RESOURCES, None
        return (RESERVED if kept.any() else UNAVAILABLE), None

    def asked(self, entry: Entry, ask: Ask, hosts: int) -> dict[str, int]:
        """Return how much of each resource a job would have, as limits count it."""
        found = self.policy.rules_of(self.machine).amounts(entry.job, entry.partition)
        return found | {"hosts": hosts}

    def start_chunks(self, entry: Entry) -> Start | None:
        """Return the start of a job of different chunks, on the hosts that other policies give it, if
        they are free.  It never stops its partition, and no start of it is planned."""
        machine, free = self.machine, self.nodes.free.tolist()
        kept = self.kept_out(entry.job, ~self.closed, self.now, self.now + 1) | self.closed
        cpus = [0 if kept[host] else amount for host, amount in enumerate(free[CPUS])]
        padding = [[0]] if machine.server >= 0 else []
        left = [[self.left[name]] if machine.server >= 0 else [] for name in machine.resources]
        allocation = self.view.window.kind.allocation(
            machine,
            cpus + [0] * len(padding),
            free[MEMORY] + [0] * len(padding),
            entry.job,
            [amounts + more for amounts, more in zip(free[NAMED:], left, strict=True)],
        )
        if not allocation:
            return None
        server = dict.fromkeys(machine.resources, 0)
        for chunk in allocation:
            if chunk.host == machine.server:
                server |= dict(zip(machine.resources, chunk.resources, strict=True))
        return self._begin(entry, allocation, tuple(server.items()), entry.job.is_exclusive)

    def start(self, entry: Entry, ask: Ask, chosen: dict[int, int]) -> Start | None:
        """Return the start of a job on chosen hosts."""
        allocation = allocation_of(self.machine, self.nodes, ask, chosen)
        if not allocation:
            return None
        return self._begin(entry, allocation, ask.server, ask.is_exclusive)

    def _begin(
        self,
        entry: Entry,
        allocation: Allocation,
        server: Iterable[tuple[str, int]],
        is_exclusive: bool,
    ) -> Start:
        """Note what a starting job takes."""
        memory = self.memory
        end = self.now + -(-entry.job.estimate // SECOND)
        resources = len(self.machine.resources)
        held = holding_of(entry.row, allocation, resources, end, is_exclusive)
        self.nodes.take(held)
        memory.holdings[entry.row] = held
        if self.limits.hold:
            rules = self.policy.rules_of(self.machine)
            amounts = rules.amounts(entry.job, entry.partition) | {"hosts": len(held.hosts)}
            memory.active[entry.row] = Active(
                rules.association(entry.job),
                entry.job.owner,
                self.limits.order(entry.job, entry.partition),
                amounts,
                frozenset(held.hosts.tolist()),
            )
        for name, amount in server:
            self.left[name] = self.left.get(name, 0) - amount
        memory.planned.pop(entry.row, None)
        memory.reasons.pop(entry.row, None)
        memory.is_changed = True
        return Start(entry.row, allocation)

    def backfill(self, passes: Passes) -> Iterator[Start]:
        """Make a cycle of backfill: each entry starts now, or its earliest start is planned on whole
        hosts, which bind the entries after it."""
        now, resolution = self.now, passes.backfill_resolution
        window_end = self._step(now + passes.backfill_window, resolution)
        plans = PlannedHosts(self._step(now, resolution), window_end, ~self.closed)
        before = self.memory.planned
        self.memory.planned = {}
        of_users: dict[tuple[str, str], int] = {}
        for tested, entry in enumerate(self.entries()):
            if passes.backfill_depth and tested >= passes.backfill_depth:
                break
            if entry.row in self.memory.holdings or _is_over(passes, entry, of_users):
                continue
            if word := self.limits.before(entry.job, entry.partition):
                self.memory.reasons[entry.row] = word
                continue
            ask = self.policy.ask(self.machine, entry.job)
            if ask is None or not self.has_licences(ask):
                continue
            start = self._plan(entry, self.counts(ask, entry), plans, passes, window_end)
            if start is not None:
                yield start
        for row, at in before.items():
            # A planned start that was earlier stays shown.
            if row in self.memory.planned:
                self.memory.planned[row] = (
                    min(at, self.memory.planned[row]) if at > now else (self.memory.planned[row])
                )

    def _step(self, instant: int, resolution: int) -> int:
        """Return the last whole step of the epoch up to an instant."""
        return instant - (instant + self.policy.offset) % resolution

    def _plan(
        self, entry: Entry, ask: Ask, plans: PlannedHosts, passes: Passes, window_end: int
    ) -> Start | None:
        """Start one entry, or plan it."""
        now, resolution = self.now, passes.backfill_resolution
        limit = -(-entry.job.estimate // SECOND)
        everywhere, later = self.everywhere(entry), now
        while True:
            start = later
            if start > window_end:
                return None
            candidates, later = self._candidates(entry, everywhere, plans, start, window_end)
            found = None
            if int(candidates.sum()) >= ask.least:
                found = self.nodes.earliest(ask, candidates, now, self.policy.offset)
            if found is None:
                if later:
                    continue
                return None
            when, chosen = max(found[0], start), found[1]
            if when <= now:
                others = ~candidates
                opened = ~self.closed
                word, begun = self.try_now(entry, ask, everywhere, opened, others)
                if begun is None and word not in (RESOURCES, UNAVAILABLE, LICENCES):
                    self.memory.reasons[entry.row] = word
                    return None
                if begun is not None:
                    if ask.is_exclusive:
                        end = self._step(now + limit, resolution)
                        plans.book(
                            plans.segments[0].begin, end, self._mask(tuple(chosen)), resolution
                        )
                    return begun
                later = 0
            if later and when > later:
                continue
            begin = self._step(when, resolution)
            finish = max(self._step(when + limit, resolution), begin + resolution)
            if when > now + passes.backfill_window:
                return None
            asked = self.asked(entry, ask, len(chosen))
            if word := self.limits.after(entry.job, entry.partition, asked, None):
                self.memory.reasons[entry.row] = word
                return None
            taken = self._mask(tuple(chosen))
            if when > now and plans.overlaps(taken, begin, finish):
                later = when
                continue
            self.memory.planned[entry.row] = when
            plans.book(begin, finish, taken, resolution)
            return None

    def _candidates(
        self, entry: Entry, everywhere: BoolArray, plans: PlannedHosts, start: int, window_end: int
    ) -> tuple[BoolArray, int]:
        """Return the hosts that no reservation and no other plan has while a job would run from an
        instant on, and when more of them may come (0: not before the end of the window)."""
        end = start + -(-entry.job.estimate // SECOND)
        kept = self.kept_out(entry.job, everywhere, start, end)
        candidates = everywhere & ~self.closed & ~kept
        base, segments, later = candidates, plans.segments, 0
        for place, segment in enumerate(segments):
            if segment.end <= start:
                continue
            if later == 0 and place + 1 < len(segments):
                coming = base & segments[place + 1].hosts
                if (coming & ~(candidates & segment.hosts)).any():
                    later = segment.end
            if segment.begin > end:
                break
            candidates = candidates & segment.hosts
        if kept.any():
            turns = (turn // SECOND for turn in self.view.windows.turns())
            opening = next((turn for turn in turns if turn > start), 0)
            if opening and opening + 1 < window_end and (later == 0 or opening + 1 < later):
                later = opening + 1
        return candidates, later


def _is_over(passes: Passes, entry: Entry, counted: dict[tuple[str, str], int]) -> bool:
    """Count an entry, and return whether its user or its partition has had all that a cycle looks
    at."""
    user = entry.job.owner or str(entry.job.user)
    partition = entry.partition.name if entry.partition else ""
    is_over = False
    for most, key in (
        (passes.backfill_per_user, ("", user)),
        (passes.backfill_per_partition, (partition, "")),
        (passes.backfill_per_user_and_partition, (partition, user)),
    ):
        if most:
            counted[key] = counted.get(key, 0) + 1
            is_over = is_over or counted[key] > most
    return is_over
