"""Multifactor priorities: age, fair share, size, partition, QOS and resources, weighed as Slurm does
(docs/spec/production.md 2.1 and 2.2).

The priorities of waiting jobs are made at their submission and at each tick of the site
(``[priority] period``), not in between.  Use is added at each tick and at each end of a job.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import msgspec
import numpy as np

from qbatch.model.actions import Action, Start, WakeAt
from qbatch.model.job import SCATTER, Job
from qbatch.model.machine import CPUS_BILLED, MEMORY_BILLED, Machine, Partition
from qbatch.model.reasons import COULD_START, Reason
from qbatch.model.site import Site
from qbatch.planning.kernels.types import Int64Array
from qbatch.planning.partitions import has_tiers, partitions_of, tier_of
from qbatch.planning.requests import chunks_on_hosts, requested
from qbatch.planning.resources import PoolModel
from qbatch.planning.view import Reserved, View
from qbatch.policies.fair_share import ShareTree, Usage, Use, decay_of, new_usage

SECOND = 1_000_000
_GIB, _MIB = 2**30, 2**20
_MOST_PRIORITY = 2**32 - 1
_CPUS, _MEMORY, _HOSTS, _BILLING = "cpus", "memory", "hosts", "billing"
_FIRST = (_CPUS, _MEMORY, _HOSTS, _BILLING)


class Terms(msgspec.Struct, frozen=True, gc=False):
    """What makes the priority of a job besides its age and its fair share, already weighed: the
    terms of the association, the size, the partition, the QOS, and resources less the nice value."""

    association: float
    size: float
    partition: float
    qos: float
    resources: float
    nice: int


class Made(msgspec.Struct, frozen=True, gc=False):
    """A priority and what it is made of: the terms of age and fair share, and the others."""

    value: int
    age: float
    fairshare: float
    terms: Terms

    def numbers(self) -> dict[str, int]:
        """Return the whole part of each term, by name."""
        terms = self.terms
        return {
            "priority": self.value,
            "age": int(self.age),
            "association": int(terms.association),
            "fairshare": int(self.fairshare),
            "size": int(terms.size),
            "partition": int(terms.partition),
            "qos": int(terms.qos),
            "resources": int(terms.resources),
            "nice": terms.nice,
        }

    def in_words(self) -> str:
        """Return the priority with those of its terms that are not 0."""
        named = self.numbers()
        nice = named.pop("nice")
        parts = [f"{name} {value}" for name, value in named.items() if value and name != "priority"]
        parts += [f"nice -{nice}"] if nice else []
        return f"{self.value} ({', '.join(parts)})" if parts else str(self.value)


class SiteRules:
    """The rules of a site for the jobs of a machine; nothing in it changes."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.site = machine.site or Site()
        self.tree = ShareTree(self.site)
        self.weights = self.site.priority
        self._qos = {each.name: place for place, each in enumerate(self.site.qos)}
        self.no_decay = ["no-decay" in each.flags for each in self.site.qos]
        self._most = {
            "association": max((each.priority for each in self._shares()), default=0),
            "partition": max((each.priority for each in machine.partitions), default=0),
            "qos": max((each.priority for each in self.site.qos), default=0),
        }
        self.association_of = cache(self.site.association_of)
        self._there = cache(self._totals)

    def _shares(self) -> Iterator[Any]:
        for account in self.site.accounts:
            yield account
            yield from account.users

    def association(self, job: Job) -> int:
        """Return the number of the association that a job is charged to, -1 for none."""
        return self.association_of(job.owner, job.account)

    def qos(self, job: Job) -> int:
        """Return the number of the QOS of a job: the one that it names, else the default of its
        association; -1 for none."""
        name = job.qos
        if not name and (number := self.association(job)) >= 0:
            each = self.site.associations[number]
            user = self.site.accounts[each.account].users[each.user]
            name = user.default_qos or next(
                (
                    self.site.accounts[above].default_qos
                    for above in self.site.accounts_above(each.account)
                    if self.site.accounts[above].default_qos
                ),
                "",
            )
        return self._qos.get(name, -1)

    def qos_named(self, name: str) -> int:
        """Return the number of a QOS, -1 if there is none of this name."""
        return self._qos.get(name, -1)

    def fair_shares(self, usage: Usage) -> list[float]:
        """Return the fair-share factor of each association."""
        rules = self.site.fairshare
        return self.tree.factors(usage.of_nodes, rules.kind, rules.dampening)

    def weighed(self, terms: Terms, waited: int, share: float) -> Made:
        """Return the priority of a job that has waited so many seconds, in the order in which Slurm
        adds it up."""
        weights = self.weights
        age = waited / weights.max_age if waited < weights.max_age else 1.0
        of_age, of_share = age * weights.age, share * weights.fairshare
        x = of_age + terms.association
        x = x + of_share
        x = x + terms.size
        x = x + terms.partition
        x = x + terms.qos
        x = x + terms.resources
        x = x - terms.nice
        return Made(1 if x < 1 else min(int(x), _MOST_PRIORITY), of_age, of_share, terms)

    def _totals(self, partition: str) -> dict[str, int]:
        """Return how much of each resource a partition has (empty: the machine)."""
        machine = self.machine
        chosen = next((each.hosts for each in machine.partitions if each.name == partition), None)
        hosts = [
            machine.hosts[place]
            for place in (range(len(machine.real_hosts)) if chosen is None else chosen)
        ]
        found = {
            _CPUS: sum(host.cpus for host in hosts),
            _MEMORY: sum(host.memory for host in hosts),
            _HOSTS: len(hosts),
        }
        for name in machine.resources:
            found[name] = sum(dict(host.resources).get(name, 0) for host in hosts)
        if machine.server >= 0:
            found |= dict(machine.hosts[machine.server].resources)
        return found

    def amounts(self, job: Job, partition: Partition | None) -> dict[str, int]:
        """Return how much of each resource a job asks for, and what its partition bills for it."""
        found = {_CPUS: job.procs, _MEMORY: job.memory, _HOSTS: hosts_of(job)}
        found |= dict(job.resources)
        found[_BILLING] = round(self.billing(job, partition))
        return found

    def billing(self, job: Job, partition: Partition | None) -> float:
        """Return what a second of a job costs: its processors, or what its partition bills.

        With ``max-tres`` it is the greatest of what each host gives, and amounts of the server are
        added to it.
        """
        if partition is None or not partition.billing:
            return float(job.procs)
        amounts = dict(job.resources) | {
            CPUS_BILLED: job.procs,
            MEMORY_BILLED: job.memory / _GIB,
            _HOSTS: hosts_of(job),
        }
        flags, machine = self.weights.flags, self.machine
        server = set(dict(machine.hosts[machine.server].resources)) if machine.server >= 0 else ()
        costs = [(name, amounts.get(name, 0) * weight) for name, weight in partition.billing]
        if "max-tres" not in flags and "max-tres-gres" not in flags:
            whole = 0.0
            for _, cost in costs:
                whole = whole + cost
            return whole
        plain = (CPUS_BILLED, MEMORY_BILLED, _HOSTS)
        is_added = {
            name: name in server or ("max-tres-gres" in flags and name not in plain)
            for name, _ in costs
        }
        whole = max((cost for name, cost in costs if not is_added[name]), default=0.0)
        for name, cost in costs:
            whole = whole + (cost if is_added[name] else 0.0)
        return whole

    def use(self, job: Job, start: int) -> Use:
        """Return what a job uses from an instant on."""
        named = partitions_of(self.machine, job.partitions)
        billing = self.billing(job, named[0] if named else None)
        qos = self.qos(job)
        factor = self.site.qos[qos].usage_factor if qos >= 0 else 1.0
        return Use(self.association(job), qos, billing * factor, start // SECOND)

    def terms(self, job: Job) -> tuple[Terms, ...]:
        """Return the terms of a job in each of its partitions, in the order of the file."""
        named = partitions_of(self.machine, job.partitions)
        return tuple(self._terms_in(job, each) for each in named or (None,))

    def _terms_in(self, job: Job, partition: Partition | None) -> Terms:
        weights, flags = self.weights, self.weights.flags

        def normal(value: float, kind: str) -> float:
            if f"no-normal-{kind}" in flags:
                return float(value)
            return value / self._most[kind] if self._most[kind] else 0.0

        association, qos = self.association(job), self.qos(job)
        share = 0
        if association >= 0:
            each = self.site.associations[association]
            account = self.site.accounts[each.account]
            share = account.users[each.user].priority or account.priority
        return Terms(
            normal(share, "association") * weights.association,
            self._size(job) * weights.size if weights.size else 0.0,
            normal(partition.priority, "partition") * weights.partition if partition else 0.0,
            normal(self.site.qos[qos].priority, "qos") * weights.qos if qos >= 0 else 0.0,
            self._of_resources(job, partition),
            job.nice,
        )

    def _size(self, job: Job) -> float:
        """Return the factor of a job's size, 0 to 1: large jobs are favoured, or small ones."""
        flags, there = self.weights.flags, self._there("")
        hosts, procs = hosts_of(job), job.procs
        many, all_procs = there[_HOSTS], there[_CPUS]
        is_small = "favor-small" in flags
        if "relative-to-time" in flags:
            size = hosts * all_procs / many
            size = max(size, procs)
            size = size / max(job.estimate / (60 * SECOND), 1)
            size = size / all_procs
            size = 1.0 - size if is_small else size
        elif is_small:
            size = (many - hosts) / many if many > hosts else 0.0
            if procs > 0:
                size = (size + (all_procs - procs) / all_procs) / 2
        else:
            size = hosts / many
            if procs > 0:
                size = (size + procs / all_procs) / 2
        return min(max(size, 0.0), 1.0)

    def _of_resources(self, job: Job, partition: Partition | None) -> float:
        weights = dict(self.weights.resources)
        if not weights:
            return 0.0
        there = self._there(partition.name if partition else "")
        asked, whole = self.amounts(job, partition), 0.0
        for name in (*_FIRST, *(each for each in weights if each not in _FIRST)):
            if name not in weights:
                continue
            amount = float(asked.get(name, 0))
            if "no-normal-resources" in self.weights.flags:
                whole = whole + (amount / _MIB if name == _MEMORY else amount) * weights[name]
            elif there.get(name, 0):
                whole = whole + (amount / there[name]) * weights[name]
        return whole


def greatest(made: Sequence[Made]) -> Made:
    """Return the greatest priority of a job that may run in several partitions."""
    return max(made, key=lambda each: each.value)


def hosts_of(job: Job) -> int:
    """Return how many hosts a job asks for: as many as it has chunks if these go to different hosts,
    else one."""
    return chunks_on_hosts(requested(job)) if job.placing == SCATTER else 1


class SiteMemory:
    """What a policy with multifactor priorities remembers: use, and the running jobs that are charged.

    Of each waiting job it has by row the terms and the priority in each of its partitions, and the
    second of its submission.

    ``begun``: the second of the first event, of which ticks are counted.  ``factors``: the fair-share
    factor of each association at the last tick; it stays until the next.
    """

    def __init__(self, rules: SiteRules) -> None:
        self.usage = new_usage(rules.tree, rules.site)
        self.factors = rules.fair_shares(self.usage)
        self.running: dict[int, Use] = {}
        self.terms: dict[int, tuple[Terms, ...]] = {}
        self.since: dict[int, int] = {}
        self.made: dict[int, tuple[Made, ...]] = {}
        self.begun = -1
        self.next_tick = -1


class Multifactor:
    """A list scheduler in the order of multifactor priorities, with ``depth`` reservations."""

    follows_tiers = True
    follows_site = True

    def __init__(self, name: str, depth: int) -> None:
        self.name, self.depth = name, depth
        self._rules: tuple[Machine, SiteRules] | None = None

    def new_memory(self, machine: Machine) -> SiteMemory:
        """Return the record for a machine before its first event.  Without weights in the machine
        file all priorities are equal, and jobs go by their submission."""
        return SiteMemory(self.rules_of(machine))

    def rules_of(self, machine: Machine) -> SiteRules:
        """Return the rules of a machine."""
        if self._rules is None or self._rules[0] is not machine:
            self._rules = machine, SiteRules(machine)
        return self._rules[1]

    def decide(self, view: View) -> Iterator[Action]:
        """Make one pass, after the ticks that are due."""
        memory = self.follow(view)
        if len(view.queue) == 0:
            return
        starts, _ = view.resources.list_pass(self.in_order(view), self.depth)
        yield from starts
        self._note(view, memory, starts)
        if len(starts) < len(view.queue):
            yield WakeAt(memory.next_tick * SECOND)

    def follow(self, view: View, *, is_ticking: bool | None = None) -> SiteMemory:
        """Bring the record up to date: ends, ticks, arrivals.  ``is_ticking``: now is a tick (None: the
        period of the site says that)."""
        rules: SiteRules = self.rules_of(view.machine)
        memory: SiteMemory = view.memory
        now = view.now // SECOND
        period = rules.weights.period
        if memory.begun < 0:
            memory.begun, memory.next_tick = now, now + period
            memory.usage.last = now
        while is_ticking is None and memory.next_tick < now:
            self._tick(rules, memory, memory.next_tick)
            memory.next_tick += period
        decay = decay_of(rules.site.fairshare)
        for run in view.ended:
            use = memory.running.pop(run.row, None)
            if use is not None:
                memory.usage.add(rules.tree, use, now, decay)
            self._forget(memory, run.row)
        for row in (*view.withdrawn, *view.requeued):
            memory.running.pop(row, None)
        known = memory.terms
        for row in view.withdrawn:
            self._forget(memory, row)
        arrived = [row for row in view.queue.tolist() if row not in known]
        for row in arrived:
            job = view.jobs[row]
            known[row], memory.since[row] = rules.terms(job), job.submit // SECOND
        if memory.next_tick == now if is_ticking is None else is_ticking:
            self._tick(rules, memory, now)
            memory.next_tick = now + period
            arrived = view.queue.tolist()
        self._prioritise(rules, memory, arrived, now, view)
        return memory

    def _forget(self, memory: SiteMemory, row: int) -> None:
        for table in (memory.terms, memory.since, memory.made):
            table.pop(row, None)

    def _tick(self, rules: SiteRules, memory: SiteMemory, now: int) -> None:
        uses = [memory.running[row] for row in sorted(memory.running)]
        memory.usage.tick(rules.tree, rules.site.fairshare, uses, now, rules.no_decay)
        memory.factors = rules.fair_shares(memory.usage)

    def _prioritise(
        self, rules: SiteRules, memory: SiteMemory, rows: Sequence[int], now: int, view: View
    ) -> None:
        """Make the priorities of some rows."""
        if not rows:
            return
        factors = memory.factors
        for row in rows:
            association = rules.association(view.jobs[row])
            share = factors[association] if association >= 0 else 0.0
            waited = max(now - memory.since[row], 0)
            memory.made[row] = tuple(
                rules.weighed(terms, waited, share) for terms in memory.terms[row]
            )

    def in_order(self, view: View) -> Int64Array:
        """Return the waiting rows: the highest tier first, then the highest priority, ties by
        sequence."""
        made, queue = view.memory.made, view.queue
        keys = -np.array([greatest(made[row]).value for row in queue.tolist()], np.int64)
        order = np.argsort(keys, kind="stable")
        if has_tiers(view.machine):
            tiers = cache(lambda names: tier_of(view.machine, names))
            of_tiers = -np.array(
                [tiers(view.jobs[row].partitions) for row in queue[order].tolist()], np.int64
            )
            order = order[np.argsort(of_tiers, kind="stable")]
        found: Int64Array = queue[order]
        return found

    def _note(self, view: View, memory: SiteMemory, starts: Sequence[Start]) -> None:
        """Charge the jobs that start."""
        rules = self.rules_of(view.machine)
        for start in starts:
            memory.running[start.row] = rules.use(view.jobs[start.row], view.now)

    def reserved_after(self, view: View) -> list[Reserved]:
        """Return the reservations of the pass just over."""
        if len(view.queue) == 0:
            return []
        return view.resources.list_pass(self.in_order(view), self.depth)[1]

    def explain(self, view: View, row: int) -> Reason:
        """Return why a waiting job did not start in the pass just over, with what its priority is
        made of."""
        job, made = view.jobs[row], greatest(view.memory.made[row])
        numbers = {"procs": job.procs, "free": view.free_procs, **made.numbers()}
        order = self.in_order(view)
        starts, reserved = view.resources.list_pass(order, self.depth)
        if any(start.row == row for start in starts):
            return Reason(COULD_START, self.name, "could start now", numbers)
        own = next((at for each, _, at in reserved if each == row), None)
        heads = [each for each, _, _ in reserved if each != row][:1]
        text = f"its priority is {made.in_words()}"
        if not view.resources.fits(job):
            code, heads = "processors", []
            why = f"needs {job.procs} processors, {view.free_procs} are free"
            if not isinstance(view.resources, PoolModel):
                why = f"needs {job.procs} processors, and no free hosts have what it asks for"
        else:
            code, why = "reservation", "would delay a job of higher priority with a reservation"
            if heads:
                first = view.jobs[heads[0]]
                other = greatest(view.memory.made[heads[0]])
                why = f"would delay job {first.number}, of priority {other.value}"
        if own is not None:
            why = f"{why}; it has a reservation at {own / SECOND:.15g} s"
        return Reason(code, self.name, f"{why}; {text}", numbers, tuple(heads))
