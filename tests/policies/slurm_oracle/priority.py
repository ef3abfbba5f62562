"""Priorities: priority/basic, and priority/multifactor with fair tree and decay of usage.

Sources: docs/spec/production.md, sections 2.1, 2.2 and 2.4, fitted against `sprio -l`, `sshare -l` and the log.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from tests.policies.slurm_oracle import site as sites
from tests.policies.slurm_oracle.world import RUNNING, Job, World

FIRST_BASIC = 4294901759
SMALLEST = 2.2250738585072014e-308


def power(base: float, exponent: int) -> float:
    """base to a whole exponent by repeated squaring."""
    result = 1.0
    while exponent > 0:
        if exponent % 2:
            result *= base
        base *= base
        exponent //= 2
    return result


@dataclass
class Account:
    """What an association has used, and its factors of the last tick."""

    usage: float = 0.0
    wall: float = 0.0
    run_seconds: dict[str, int] = field(default_factory=dict)
    tres_usage: dict[str, float] = field(default_factory=dict)
    norm_usage: float = 0.0
    effective: float = 0.0
    level: float | None = math.inf
    factor: float = 1.0


@dataclass
class Factors:
    """The weighted terms of one priority, unrounded."""

    age: float
    assoc: float
    fairshare: float
    size: float
    partition: float
    qos: float
    tres: float
    nice: int
    total: int


class Priorities:
    """The memory of a priority plugin."""

    def __init__(self, world: World) -> None:
        self.world = world
        site = world.site
        self.site = site
        self.multifactor = site.setting("PriorityType", "priority/basic") == "priority/multifactor"
        self.half_life = sites.seconds(site.setting("PriorityDecayHalfLife", "7-0"))
        self.decay = 1 - (0.693 / self.half_life) if self.half_life else 1.0
        self.max_age = sites.seconds(site.setting("PriorityMaxAge", "7-0"))
        self.weights = {
            name: int(site.setting("PriorityWeight" + name, "0"))
            for name in ("Age", "Assoc", "Fairshare", "JobSize", "Partition", "QOS")
        }
        self.accounts = {key: Account() for key in site.associations}
        self.qos_usage: dict[str, Account] = {name: Account() for name in site.qos}
        self.last_tick: int | None = None
        self.lowest = FIRST_BASIC + 1
        self.fair_tree()

    # priority/basic

    def next_basic(self, nice: int) -> int:
        """Each new job gets one less than the lowest so far; a nice value is taken off as well. A held job gets 0."""
        self.lowest -= 1
        return self.lowest - nice

    # priority/multifactor

    def factors(self, job: Job, partition: sites.Partition) -> Factors:
        """The priority of a job in a partition [`_get_priority_internal`]."""
        site = self.site
        now = self.world.second
        waited = max(now - int(job.accrues), 0) if job.accrues else 0
        age = waited / self.max_age if waited < self.max_age else 1.0
        size = self.size_factor(job)
        greatest = max(part.job_factor for part in site.partitions.values())
        part = partition.job_factor / greatest if greatest else 0.0
        highest = max(qos.priority for qos in site.qos.values())
        quality = site.qos[job.request.qos].priority / highest if highest else 0.0
        account = self.accounts.get((job.request.account, job.request.user))
        fair = account.factor if account else 0.0
        terms = [
            age * self.weights["Age"],
            0.0 * self.weights["Assoc"],
            fair * self.weights["Fairshare"],
            size * self.weights["JobSize"],
            part * self.weights["Partition"],
            quality * self.weights["QOS"],
        ]
        total = 0.0
        for term in terms:
            total += term
        tres = self.tres_term(job, partition)
        total += tres
        total -= job.nice
        whole = 1 if total < 1 else min(int(total), 4294967295)
        return Factors(
            terms[0], terms[1], terms[2], terms[3], terms[4], terms[5], tres, job.nice, whole
        )

    def size_factor(self, job: Job) -> float:
        """The factor of the size of a job; PriorityFavorSmall and SMALL_RELATIVE_TO_TIME are in no recording."""
        nodes = len(self.site.nodes)
        processors = sum(node.cpus for node in self.site.nodes)
        wanted, cpus = job.request.minimum_nodes, job.request.minimum_cpus
        small = self.site.setting("PriorityFavorSmall", "NO").upper() == "YES"
        if "SMALL_RELATIVE_TO_TIME" in self.site.setting("PriorityFlags").upper():
            size = max(wanted * processors / nodes, cpus) / max(job.limit, 1) / processors
            size = 1.0 - size if small else size
        elif small:
            size = (nodes - wanted) / nodes if nodes > wanted else 0.0
            if cpus:
                size = (size + (processors - cpus) / processors) / 2
        else:
            size = wanted / nodes
            if cpus:
                size = (size + cpus / processors) / 2
        return min(max(size, 0.0), 1.0)

    def tres_term(self, job: Job, partition: sites.Partition) -> float:
        """PriorityWeightTRES: what is asked by what the partition has, times the weight; in no recording."""
        request = job.request
        members = [self.site.nodes[index] for index in partition.nodes]
        memory = request.memory_per_node or 0
        asked = {
            "cpu": request.minimum_cpus,
            "mem": memory * request.minimum_nodes
            or (request.memory_per_cpu or 0) * request.minimum_cpus,
            "node": request.minimum_nodes,
            "gres/gpu": request.gpus_per_job or request.gpus_per_node * request.minimum_nodes,
        }
        there = {
            "cpu": sum(node.cpus for node in members),
            "mem": sum(node.memory for node in members),
            "node": len(members),
            "gres/gpu": sum(node.gpus for node in members),
        }
        weights = sites.amounts(self.site.setting("PriorityWeightTRES"))
        total = 0.0
        for name, amount in asked.items():
            if there[name] and name in weights:
                total += amount / there[name] * weights[name]
        return total

    def recalculate(self, job: Job) -> None:
        """Sets the priority of a job in each of its partitions."""
        if job.held:
            return
        for name in job.request.partitions:
            factors = self.factors(job, self.site.partitions[name])
            job.partition_priority[name] = factors.total
            job.printed[name] = printed(factors)
        job.priority = max(job.partition_priority.values())

    def submitted(self, job: Job) -> None:
        """The first priority of a job."""
        if not self.multifactor:
            job.priority = 0 if job.held else self.next_basic(job.nice)
            return
        self.recalculate(job)
        if job.held:
            job.priority = 0

    def requeued(self, job: Job) -> None:
        """The priority of a requeued job: with priority/basic it keeps its own."""
        if self.multifactor:
            self.recalculate(job)

    def tick(self, now: int) -> None:
        """Decays all usage, adds what running jobs used, orders the tree and sets priorities anew [`_decay_thread`]."""
        if self.last_tick is None:
            self.last_tick = now
        elapsed = now - self.last_tick
        factor = max(power(self.decay, elapsed), SMALLEST)
        for account in [*self.accounts.values(), *self.qos_usage.values()]:
            account.usage *= factor
            account.wall *= factor
            for name in account.tres_usage:
                account.tres_usage[name] *= factor
        for job in self.world.running():
            if job.state == RUNNING:
                self.add_usage(job, self.last_tick, now)
        self.last_tick = now
        self.fair_tree()
        for job in self.world.pending():
            self.recalculate(job)

    def ended(self, job: Job, now: int) -> None:
        """Adds what a job used since the last tick, and gives back the rest of its run minutes."""
        if not self.multifactor:
            self.give_back_run_seconds(job)
            return
        self.add_usage(job, self.last_tick or 0, now)
        self.give_back_run_seconds(job)

    def add_usage(self, job: Job, since: int, now: int) -> None:
        """Adds the usage of a job since an instant or its start, decayed by its own length [`_apply_new_usage`]."""
        begin = max(job.start, since)
        end = now
        length = max(end - begin, 0)
        real = length * power(self.decay, length)
        billing = job.cpus
        for account in self.concerned(job):
            account.usage += real * billing
            account.wall += real
            for name, amount in amounts_of(job).items():
                account.tres_usage[name] = account.tres_usage.get(name, 0.0) + real * amount
        counted = max(min(end, job.limit_end) - begin, 0)
        for account in self.concerned(job):
            for name, amount in amounts_of(job).items():
                left = account.run_seconds.get(name, 0)
                account.run_seconds[name] = max(left - amount * counted, 0)
        job.counted_until = max(job.counted_until, begin + counted)

    def concerned(self, job: Job) -> list[Account]:
        """The association of a job with all above it, its QOS and the QOS of its partition."""
        association = self.site.associations.get((job.request.account, job.request.user))
        result = [self.accounts[item.key] for item in association.path()] if association else []
        names = [job.request.qos]
        part = self.site.partitions.get(job.partition)
        if part and part.qos and part.qos not in names:
            names.append(part.qos)
        return result + [self.qos_usage[name] for name in names if name in self.qos_usage]

    def started(self, job: Job) -> None:
        """Adds amount * limit to the run seconds of all that a job concerns."""
        job.counted_until = job.start
        for account in self.concerned(job):
            for name, amount in amounts_of(job).items():
                account.run_seconds[name] = (
                    account.run_seconds.get(name, 0) + amount * job.limit * 60
                )

    def limit_changed(self, job: Job, minutes: int) -> None:
        """A new limit of a running job changes the run seconds by the difference [`acct_policy_alter_job`]."""
        for account in self.concerned(job):
            for name, amount in amounts_of(job).items():
                account.run_seconds[name] = (
                    account.run_seconds.get(name, 0) + amount * (minutes - job.limit) * 60
                )

    def give_back_run_seconds(self, job: Job) -> None:
        """Takes the rest of the run seconds away at the end of a job."""
        rest = max(job.limit_end - job.counted_until, 0)
        for account in self.concerned(job):
            for name, amount in amounts_of(job).items():
                account.run_seconds[name] = max(account.run_seconds.get(name, 0) - amount * rest, 0)
        job.counted_until = job.limit_end

    # fair tree

    def fair_tree(self) -> None:
        """Level values and ranks of all associations [`_calc_tree_fs`]."""
        users = [item for item in self.site.associations.values() if item.user is not None]
        total = self.accounts[self.site.root.key].usage
        for item in self.site.associations.values():
            account = self.accounts[item.key]
            account.norm_usage = account.usage / total if total else 0.0
            account.level, account.effective = self.level(item)
        rank = next_rank = len(users)

        def visit(parent: sites.Association, tied_parent: bool) -> None:
            nonlocal rank, next_rank
            children = sorted(
                parent.children,
                key=lambda item: (-self.sort_level(item), item.user is None),
            )
            before: float | None = None
            for position, child in enumerate(children):
                value = self.sort_level(child)
                tied = value == before if position else tied_parent
                if child.user is not None:
                    if not tied:
                        rank = next_rank
                    self.accounts[child.key].factor = rank / len(users)
                    next_rank -= 1
                else:
                    visit(child, tied)
                before = value

        visit(self.site.root, False)

    def sort_level(self, item: sites.Association) -> float:
        """The level value by which siblings are sorted; a user with Fairshare=parent is first."""
        level = self.accounts[item.key].level
        return math.inf if level is None else level

    def level(self, item: sites.Association) -> tuple[float | None, float]:
        """Level value (shares by usage among siblings) and effective usage of an association."""
        parent = item.parent
        if parent is None:
            return math.inf, 1.0
        above = parent
        while above.parent is not None and above.shares_of_parent:
            above = above.parent
        usage = self.accounts[item.key].usage
        base = self.accounts[above.key].usage
        part = usage / base if base else 0.0
        if item.shares_of_parent:
            return None, part
        share = self.share(item)
        if share == 0:
            return 0.0, part
        if part == 0:
            return math.inf, part
        return share / part, part

    def share(self, item: sites.Association) -> float:
        """Normalized shares among siblings; of a user with Fairshare=parent those of its account."""
        parent = item.parent
        if parent is None:
            return 0.0
        if item.shares_of_parent:
            return self.share(parent)
        level = sum(child.shares for child in parent.children if not child.shares_of_parent)
        return item.shares / level if level else 0.0


def amounts_of(job: Job) -> dict[str, int]:
    """The TRES of a running job that limits and usage count."""
    return {
        "cpu": job.cpus,
        "mem": sum(job.memory.values()),
        "node": len(job.cores),
        "billing": job.cpus,
        "gres/gpu": sum(job.gpus.values()),
    }


def printed(factors: Factors) -> list[str]:
    """The columns PRIORITY to NICE of `sprio -l`: whole numbers, rounded to the nearest."""

    def whole(value: float) -> str:
        return f"{value:.0f}"

    return [
        str(factors.total),
        "0",
        whole(factors.age),
        whole(factors.assoc),
        whole(factors.fairshare),
        whole(factors.size),
        whole(factors.partition),
        whole(factors.qos),
        str(factors.nice),
    ]


def share_row(priorities: Priorities, item: sites.Association) -> dict[str, str]:
    """The columns of `sshare -l` that a tick or a running job changes."""
    account = priorities.accounts[item.key]
    minutes = {name: seconds // 60 for name, seconds in account.run_seconds.items()}
    row = {
        "RawUsage": str(int(account.usage)),
        "NormUsage": f"{account.norm_usage:.6f}",
        "EffectvUsage": f"{account.effective:.6f}",
        "TRESRunMins": ",".join(
            f"{name}={minutes.get(name, 0)}" for name in ("cpu", "mem", "energy", "node", "billing")
        ),
    }
    if item.parent is None:
        row["NormUsage"] = ""
    if item.user is not None:
        row["FairShare"] = f"{account.factor:.6f}"
    if item.parent is not None:
        row["NormShares"] = f"{priorities.share(item):.6f}"
        row["LevelFS"] = "" if account.level is None else f"{account.level:.6f}"
    return row
