"""The limits of QOS and associations that keep a job from starting now (docs/spec/production.md,
section 3; Slurm's ``acct_policy_job_runnable_pre_select`` and ``..._post_select``).

The QOS of the partition comes first, then that of the job (``over-partition-qos`` swaps them): the
first that sets a limit decides it.  Then the association and all accounts above it, for limits that
no QOS has set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

from qbatch.model.job import Job
from qbatch.model.machine import Partition
from qbatch.model.site import NO_LIMIT, Amounts, Limits
from qbatch.policies.multifactor import SiteRules

_CPUS, _HOSTS = "cpus", "hosts"
_WORDS = {_CPUS: "Cpu", _HOSTS: "Node", "memory": "Memory", "billing": "Billing"}
_SECOND = 1_000_000


class Active(NamedTuple):
    """A running job as limits count it: its association and user, the QOS that it counts for, how
    much of each resource it has, and its hosts."""

    association: int
    owner: str
    qos: tuple[int, ...]
    amounts: Mapping[str, int]
    hosts: frozenset[int]


class LimitRules:
    """The limits of a site, for one pass; ``active``: the running jobs by row, as they are now."""

    def __init__(self, rules: SiteRules, active: Mapping[int, Active]) -> None:
        self.rules, self.site, self.active = rules, rules.site, active
        self._sets = {each.name: each for each in rules.site.limits}
        self._none = Limits("")

    @property
    def hold(self) -> bool:
        """Whether the site enforces limits."""
        return self.site.enforces_limits

    def order(self, job: Job, partition: Partition | None) -> tuple[int, ...]:
        """Return the numbers of the QOS that count for a job, the one that decides first."""
        own = self.rules.qos(job)
        part = self.rules.qos_named(partition.qos) if partition and partition.qos else -1
        found = [part, own]
        if own >= 0 and "over-partition-qos" in self.site.qos[own].flags:
            found.reverse()
        return tuple(dict.fromkeys(each for each in found if each >= 0))

    def of_qos(self, qos: int) -> Limits:
        """Return the limits of a QOS."""
        return self._sets.get(self.site.qos[qos].limits, self._none)

    def path(self, association: int) -> Iterator[tuple[Limits, Callable[[Active], bool]]]:
        """Yield the limits of an association and of each account above it, with the running jobs
        that each counts."""
        if association < 0:
            return
        each = self.site.associations[association]
        user = self.site.accounts[each.account].users[each.user]
        yield self._sets.get(user.limits, self._none), lambda job: job.association == association
        for above in self.site.accounts_above(each.account):
            below = self._below(above)
            name = self.site.accounts[above].limits
            yield self._sets.get(name, self._none), partial(_is_among, below)

    def _below(self, account: int) -> frozenset[int]:
        return frozenset(
            number
            for number, each in enumerate(self.site.associations)
            if account in self.site.accounts_above(each.account)
        )

    def before(self, job: Job, partition: Partition | None) -> str:
        """Return Slurm's word for the limit that keeps a job from starting whatever its hosts; empty:
        none does."""
        if not self.hold:
            return ""
        order, association = self.order(job, partition), self.rules.association(job)
        account = self._account(association)
        is_set = set[str]()
        for field, word, is_counted in (
            ("max_jobs_per_account", "MaxJobsPerAccount", self._of_account(account)),
            ("total_jobs", "QOSGrpJobsLimit", _every),
            ("max_jobs_per_user", "QOSMaxJobsPerUserLimit", lambda each: each.owner == job.owner),
        ):
            for qos in order:
                most = getattr(self.of_qos(qos), field)
                if most == NO_LIMIT:
                    continue
                is_set.add(field)
                if self._count(qos, is_counted) >= most:
                    return word
                break
        walls = [wall for qos in order if (wall := self.of_qos(qos).max_wall) != NO_LIMIT]
        if walls and job.estimate // _SECOND > walls[0] * 60:
            return "QOSMaxWallDurationPerJobLimit"
        is_own = not is_set & {"max_jobs_per_user", "max_jobs_per_account"}
        for limits, is_below in self.path(association):
            many = sum(map(is_below, self.active.values()))
            is_free = "total_jobs" not in is_set and limits.total_jobs != NO_LIMIT
            if is_free and many >= limits.total_jobs:
                return "AssocGrpJobsLimit"
            if is_own and limits.max_jobs_per_user != NO_LIMIT:
                own = sum(each.association == association for each in self.active.values())
                if own >= limits.max_jobs_per_user:
                    return "AssocMaxJobsLimit"
                is_own = False
        return ""

    def after(
        self,
        job: Job,
        partition: Partition | None,
        asked: Mapping[str, int],
        hosts: Iterable[int] | None,
    ) -> str:
        """Return the word for the limit on amounts that a start would break; empty: none.

        ``asked``: by resource, ``hosts`` among them; the hosts that the job would have, None: not
        chosen yet.
        """
        if not self.hold:
            return ""
        order, association = self.order(job, partition), self.rules.association(job)
        account = self._account(association)
        chosen = None if hosts is None else frozenset(hosts)
        for field, word, is_counted in (
            ("total", "QOSGrp{}Limit", _every),
            ("max_per_job", "QOSMax{}PerJobLimit", None),
            ("min_per_job", "QOSMin{}NotSatisfied", None),
            ("max_per_account", "QOSMax{}PerAccount", self._of_account(account)),
            ("max_per_user", "QOSMax{}PerUserLimit", lambda each: each.owner == job.owner),
        ):
            for name, qos, most in self._amounts(order, field):
                want = asked.get(name, 0)
                if field == "min_per_job":
                    is_broken = want < most
                elif is_counted is None:
                    is_broken = want > most
                else:
                    held = [
                        each
                        for each in self.active.values()
                        if qos in each.qos and is_counted(each)
                    ]
                    is_broken = _together(held, name, want, chosen) > most
                if is_broken:
                    return word.format(_WORDS.get(name, "GRES"))
        set_by_qos = {name for name, _, _ in self._amounts(order, "total")}
        for limits, is_below in self.path(association):
            for name, most in limits.total:
                held = [each for each in self.active.values() if is_below(each)]
                is_free = name not in set_by_qos
                if is_free and _together(held, name, asked.get(name, 0), chosen) > most:
                    return f"AssocGrp{_WORDS.get(name, 'GRES')}Limit"
        return ""

    def _amounts(self, order: Iterable[int], field: str) -> Iterator[tuple[str, int, int]]:
        """Yield each resource that a QOS limits, with the first QOS that does, and the limit."""
        seen = set[str]()
        for qos in order:
            amounts: Amounts = getattr(self.of_qos(qos), field)
            for name, most in amounts:
                if name not in seen:
                    yield name, qos, most
                seen.add(name)

    def _count(self, qos: int, is_counted: Callable[[Active], bool]) -> int:
        return sum(qos in each.qos and is_counted(each) for each in self.active.values())

    def _account(self, association: int) -> int:
        return self.site.associations[association].account if association >= 0 else -1

    def _of_account(self, account: int) -> Callable[[Active], bool]:
        return lambda each: self._account(each.association) == account


def _every(each: Active) -> bool:
    return True


def _is_among(associations: frozenset[int], each: Active) -> bool:
    return each.association in associations


def _together(held: Iterable[Active], name: str, want: int, hosts: frozenset[int] | None) -> int:
    """Return how much running jobs and a new one have together; a host counts once."""
    if name != _HOSTS:
        return sum(each.amounts.get(name, 0) for each in held) + want
    used = frozenset[int]().union(*(each.hosts for each in held))
    return len(used) + want if hosts is None else len(used | hosts)
