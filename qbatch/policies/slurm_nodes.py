"""The hosts that Slurm gives a job: the choice of ``select/cons_tres`` without topology
(docs/spec/production.md 4.4).

All amounts are by host, in the order of the machine; time is in whole seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from qbatch.model.actions import Allocation, amounts_of, ranges_of
from qbatch.model.job import PACK, SCATTER, SERVER, Job
from qbatch.model.machine import Machine
from qbatch.planning.kernels.types import BoolArray, Int64Array
from qbatch.planning.requests import requested

SECOND = 1_000_000
CPUS, MEMORY, NAMED = 0, 1, 2
"""Rows of the tables of amounts: processors, memory, and from ``NAMED`` on the resources of the
machine."""

ENDS_TOGETHER = 30
"""Running jobs that end within so many seconds are taken away together when a start is sought."""

OVERDUE_WAIT = 30
"""A job past its limit is expected to end this long after it (``KillWait``), seconds."""

MANY = 500_000
_NO_GPU_COUNTED = 255


class Ask(msgspec.Struct, frozen=True):
    """What a job asks for, in Slurm's terms.

    ``least``, ``most``: hosts (``most`` ``MANY``: any number).  ``tasks`` of ``cpus_per_task``
    processors each; ``per_host``: tasks on each host, 0 if it is open.  ``memory``, ``named``: what it
    takes on each host, or of each task if ``is_by_task``.  ``server``: amounts of the server.
    """

    least: int
    most: int
    tasks: int
    cpus_per_task: int
    per_host: int
    memory: int
    named: tuple[int, ...]
    is_by_task: bool
    is_exclusive: bool
    server: tuple[tuple[str, int], ...]
    wants_gpus: bool

    @property
    def cpus(self) -> int:
        """Processors of the whole job."""
        return self.tasks * self.cpus_per_task

    @property
    def cpus_on_host(self) -> int:
        """The fewest processors that it uses on a host."""
        return max(self.cpus_per_task, self.per_host * self.cpus_per_task)


def ask_of(machine: Machine, job: Job) -> Ask | None:
    """Return what a job asks for; None if its chunks differ, which Slurm has no words for."""
    chunks = [chunk for chunk in requested(job) if chunk.host != SERVER]
    server = tuple(
        pair for chunk in requested(job) if chunk.host == SERVER for pair in chunk.resources
    )
    if len(chunks) != 1:
        return None
    chunk = chunks[0]
    is_on_one = machine.single_host or len(machine.real_hosts) == 1
    named = machine.amounts(chunk.resources)
    wants = any(name.partition(":")[0] == "gpu" and amount for name, amount in chunk.resources)
    if job.placing == SCATTER:
        count, tasks, each, per_host = chunk.count, chunk.count * chunk.procs, 1, chunk.procs
        least = most = count
        memory, is_by_task = chunk.memory, False
    elif job.placing == PACK or chunk.count == 1 or is_on_one:
        least = most = tasks = 1
        each, per_host = chunk.count * chunk.procs, 0
        memory, is_by_task = job.memory, False
        named = tuple(chunk.count * amount for amount in named)
    else:
        least, most = job.least_hosts or 1, job.most_hosts or MANY
        tasks, each, per_host = chunk.count, chunk.procs, 0
        memory, is_by_task = chunk.memory, True
    return Ask(
        least=least,
        most=most,
        tasks=tasks,
        cpus_per_task=each,
        per_host=per_host,
        memory=memory,
        named=named,
        is_by_task=is_by_task,
        is_exclusive=job.is_exclusive,
        server=server,
        wants_gpus=wants,
    )


class Holding(NamedTuple):
    """What a running job has: hosts, amounts ``[N, hosts]``, the second of its expected end, and
    whether it has its hosts alone."""

    row: int
    hosts: Int64Array
    amounts: Int64Array
    end: int
    is_exclusive: bool


def holding_of(row: int, allocation: Allocation, resources: int, end: int, alone: bool) -> Holding:
    """Return what a running job has, without the amounts of the server."""
    parts = [(host, *amounts) for host, *amounts in amounts_of(allocation) if amounts[0] > 0]
    hosts = np.array([part[0] for part in parts], np.int64)
    amounts = np.zeros((NAMED + resources, len(parts)), np.int64)
    for place, (_, *values) in enumerate(parts):
        amounts[: len(values), place] = values
    return Holding(row, hosts, amounts, end, alone)


class Nodes:
    """What each host has and what is free there, for one pass.

    ``weights``: the place of each host in the order of weights.  ``counted``: among hosts of one
    weight those with a smaller number come first; it stays over passes.
    """

    def __init__(
        self,
        machine: Machine,
        holdings: Iterable[Holding],
        weights: Int64Array,
        counted: Int64Array,
    ) -> None:
        self.there = np.array(machine.there, np.int64)[:, : len(machine.real_hosts)]
        self.counts_memory = machine.counts_memory
        self.gpus = next(
            (NAMED + place for place, name in enumerate(machine.resources) if name == "gpu"), -1
        )
        self.weights, self.counted = weights, counted
        self.free = self.there.copy()
        self.holders = np.zeros(self.there.shape[1], np.int64)
        self.alone = np.zeros(self.there.shape[1], np.int64)
        self.running: dict[int, Holding] = {}
        for holding in holdings:
            self.take(holding)

    def take(self, holding: Holding) -> None:
        """Give a job what it has."""
        self.running[holding.row] = holding
        self._add(holding, 1)

    def _add(self, holding: Holding, sign: int) -> None:
        self.free[:, holding.hosts] -= sign * holding.amounts
        self.holders[holding.hosts] += sign
        if holding.is_exclusive:
            self.alone[holding.hosts] += sign

    def amounts(self, ask: Ask, among: BoolArray, *, ever: bool = False) -> Int64Array:
        """Return how many processors of each host a job can use, 0 where it cannot be; ``ever``:
        whatever other jobs have."""
        free = self.there if ever else self.free
        count = np.where(among, free[CPUS], 0)
        per_task = ask.cpus_per_task
        tasks = ask.per_host or (ask.tasks if ask.most == 1 else 1)
        count[(count < ask.cpus_on_host) | (count < tasks * per_task)] = 0
        wanted = [(MEMORY, ask.memory)] if self.counts_memory and ask.memory else []
        wanted += [(NAMED + place, amount) for place, amount in enumerate(ask.named) if amount]
        for place, amount in wanted:
            there = free[place]
            if place == MEMORY:  # a host without memory does not count it
                there = np.where(self.there[MEMORY] > 0, there, np.iinfo(np.int64).max)
            if ask.is_by_task:
                count = np.minimum(count, there // amount * per_task)
            else:
                count[there < amount] = 0
        count -= count % per_task if ask.is_by_task else 0
        if not ever:
            if ask.is_exclusive:
                count[(self.holders > 0) | (free[NAMED:] < self.there[NAMED:]).any(axis=0)] = 0
            count[self.alone > 0] = 0
        if ask.wants_gpus:
            self._count_gpus(among, free)
            if not ask.is_exclusive and (ask.per_host or ask.most == 1):
                count = np.where(count > 0, tasks * per_task, 0)
        return count

    def _count_gpus(self, among: BoolArray, free: Int64Array) -> None:
        """Let hosts with more free GPUs come first: so it stays until the main scheduler or a start
        tries a job on them."""
        if self.gpus >= 0:
            self.counted[among] = _NO_GPU_COUNTED - free[self.gpus][among]

    def forget_gpus(self, among: BoolArray) -> None:
        """Order these hosts by their weights alone."""
        self.counted[among] = _NO_GPU_COUNTED

    def select(self, ask: Ask, among: BoolArray, *, ever: bool = False) -> dict[int, int] | None:
        """Return the hosts that a job takes of some, with its processors on each; None: it does not
        fit.  If the hosts do not do as a whole, those with the fewest processors are left out step
        by step."""
        amounts = self.amounts(ask, among, ever=ever)
        usable = amounts > 0
        many, least, most = int(usable.sum()), ask.least, ask.most
        if many < least:
            return None
        if ask.per_host:
            least = max(least, -(-ask.tasks // ask.per_host))
        most = max(min(most, ask.tasks), least)
        found = self._evaluate(ask, amounts, usable, least, most)
        if found is not None or many <= least:
            return found
        remaining = usable.copy()
        for count in np.unique(amounts[usable]).tolist()[:-1]:
            small = np.flatnonzero(remaining & (amounts <= count))
            spare = int(remaining.sum()) - least
            remaining[small[: max(spare, 0)]] = False
            found = self._evaluate(ask, amounts, remaining, least, most)
            if found is not None or int(remaining.sum()) <= least:
                return found
        return None

    def _evaluate(
        self, ask: Ask, all_amounts: Int64Array, usable: BoolArray, least: int, most: int
    ) -> dict[int, int] | None:
        """Return the best fit over runs of neighbours of one weight.

        The run of the least weight comes first; then one that suffices, of these the one with the
        fewest processors; of those that do not suffice the one with the most.  If one more host is
        enough, it is the one of the run with the fewest processors that suffice.
        """
        desired = most if ask.most < MANY else least
        rest, rest_hosts, rest_least = ask.cpus, max(least, desired), least
        rest_most, taken = ask.cpus, dict[int, int]()
        groups = self._runs(all_amounts, usable)
        while groups and most > 0:
            needed = rest_hosts + least - desired if desired > least else rest_hosts
            best = _best_of(groups, rest, needed)
            order = best.members
            if rest_hosts <= 1:
                enough = [host for host in order if all_amounts[host] >= rest]
                if enough:
                    order = [min(enough, key=lambda host: int(all_amounts[host]))]
            for host in order:
                if most == 0 or (rest_hosts <= 0 and rest <= 0):
                    break
                count = int(all_amounts[host])
                if most == 1 and count < rest:
                    continue
                limit = rest_most - max(rest_least - 1, 0)
                if not ask.is_exclusive and count > limit:
                    count = max(limit, ask.cpus_on_host)
                taken[host] = count
                all_amounts[host] = count
                rest, rest_most = rest - count, rest_most - count
                rest_hosts, rest_least, most = rest_hosts - 1, rest_least - 1, most - 1
            if rest_hosts <= 0 and rest <= 0:
                return taken
            groups.remove(best)
        needed = rest_hosts + least - desired if desired > least else rest_hosts
        return taken if rest <= 0 and needed <= 0 else None

    def _runs(self, amounts: Int64Array, usable: BoolArray) -> list[_Run]:
        """Return the runs of usable neighbours of equal weight, in the order of the file."""
        places = np.flatnonzero(usable)
        if not len(places):
            return []
        keys = self.weights[places] * (_NO_GPU_COUNTED + 1) + self.counted[places]
        cuts = np.flatnonzero((np.diff(places) > 1) | (np.diff(keys) != 0)) + 1
        found = []
        for part, key in zip(np.split(places, cuts), keys[np.r_[0, cuts]].tolist(), strict=True):
            found.append(_Run(int(key), int(amounts[part].sum()), part.tolist()))
        return found

    def earliest(
        self, ask: Ask, candidates: BoolArray, now: int, offset: int
    ) -> tuple[int, dict[int, int]] | None:
        """Return when and where a job can start if running jobs end at their limits; None: never.

        The ends of running jobs on candidates are taken away in windows.  The first window ends 30 s
        after the first end, rounded up to 30 s (to a whole further one at a multiple).  Each further
        one is twice as long.  After each window the job is tried.  It starts at the end
        of the last job that was taken away.  ``offset``: of the epoch.
        """
        chosen = self.select(ask, candidates)
        if chosen is not None:
            return now, chosen
        ending = sorted(
            (each for each in self.running.values() if candidates[each.hosts].any()),
            key=lambda each: each.end,
        )
        gone: list[Holding] = []
        found, place, window = None, 0, ENDS_TOGETHER
        base = 0
        while place < len(ending) and found is None:
            first = ending[place]
            rest = (first.end + offset) % ENDS_TOGETHER
            base = base if gone else first.end + ENDS_TOGETHER - rest
            while place < len(ending) and (
                ending[place] is first or ending[place].end <= base + window
            ):
                self._add(ending[place], -1)
                gone.append(ending[place])
                place += 1
            window *= 2
            while place < len(ending) and ending[place].end > base + window:
                window *= 2
            chosen = self.select(ask, candidates)
            if chosen is not None:
                last = gone[-1].end
                found = last if last > now else max(last + OVERDUE_WAIT, now + 1)
        for each in gone:
            self._add(each, 1)
        return None if found is None or chosen is None else (found, chosen)


class _Run(NamedTuple):
    """Neighbouring hosts of one weight, and their processors."""

    weight: int
    cpus: int
    members: list[int]


def _best_of(runs: Sequence[_Run], rest: int, needed: int) -> _Run:
    """Return the run that is taken first."""
    best: _Run | None = None
    is_best_enough = False
    for run in runs:
        is_enough = run.cpus >= rest and len(run.members) >= needed
        if best is not None and run.weight != best.weight:
            is_better = run.weight < best.weight
        else:
            is_better = best is None or (
                (is_enough and not is_best_enough)
                or (is_enough and run.cpus < best.cpus)
                or (not is_enough and run.cpus > best.cpus)
            )
        if is_better:
            best, is_best_enough = run, is_enough
    assert best is not None
    return best


def allocation_of(machine: Machine, nodes: Nodes, ask: Ask, chosen: dict[int, int]) -> Allocation:
    """Return the allocation of a job on chosen hosts: tasks go round the hosts, as far as each has
    processors left for them; with tasks by host each gets exactly these."""
    hosts = sorted(chosen)
    if ask.per_host:
        tasks = dict.fromkeys(hosts, ask.per_host)
    else:
        tasks, left = dict.fromkeys(hosts, 0), ask.tasks
        while left > 0:
            before = left
            for host in hosts:
                if left > 0 and (tasks[host] + 1) * ask.cpus_per_task <= chosen[host]:
                    tasks[host] += 1
                    left -= 1
            if left == before:
                return ()
    parts = []
    for host in hosts:
        if ask.is_exclusive:
            cpus, memory, *named = nodes.there[:, host].tolist()
        else:
            many = tasks[host] if ask.is_by_task else 1
            cpus = tasks[host] * ask.cpus_per_task
            memory = ask.memory * many if nodes.there[MEMORY, host] else 0
            named = [amount * many for amount in ask.named]
        if cpus:
            parts.append((host, cpus, memory, 1, *named))
    if ask.server and machine.server >= 0:
        parts.append((machine.server, 0, 0, 1, *machine.amounts(ask.server)))
    return ranges_of(parts)
