"""What a site decides beyond its hosts (docs/spec/production.md, sections 2, 3, 4, 6 and 7).

These are accounts and users with their shares, qualities of service (QOS), limits, the weights of
priorities, fair share, and the passes of its scheduler.

They are tables of the machine file's second schema (:mod:`qbatch.model.site_policy_tables` reads and
writes them).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import msgspec

NO_LIMIT = -1
"""A limit that is not set."""

OF_PARENT = -1
"""The shares of an account or a user that has those of its account (``Fairshare=parent``)."""

ROOT = "root"
"""The name of the account above all."""

MULTIFACTOR, BY_SUBMISSION = "multifactor", "submit"
PRIORITIES = (MULTIFACTOR, BY_SUBMISSION)
"""How the priority of a job is made: as Slurm's multifactor plugin does, or by its submission."""

TREE, CLASSIC = FAIR_SHARES = ("tree", "classic")
"""Fair share by ranks in the tree of accounts (Slurm's Fair Tree), or by the older formula."""

PRIORITY_FLAGS = (
    "accrue-always",
    "favor-small",
    "relative-to-time",
    "max-tres",
    "max-tres-gres",
    "no-normal-association",
    "no-normal-partition",
    "no-normal-qos",
    "no-normal-resources",
)
"""Changes of the formula, as ``PriorityFlags`` and ``PriorityFavorSmall`` of Slurm."""

QOS_FLAGS = ("deny-on-limit", "no-decay", "no-reserve", "over-partition-qos", "usage-factor-safe")
"""What a QOS does differently, as the ``Flags`` of Slurm."""

PREEMPT_MODES = ("off", "cancel", "requeue", "suspend")
"""What happens to a job that is preempted."""

QUICK, FULL, BACKFILL, TICK = PASSES = ("quick", "full", "backfill", "tick")
"""The kinds of Slurm's passes: of the main scheduler over the head of the queue and over all of it,
of backfill; and a tick, at which priorities are made anew."""

Amounts = tuple[tuple[str, int], ...]
"""Amounts by the name of a resource: ``cpus``, ``memory`` (bytes), ``hosts``, ``billing``, and the
resources of the machine."""


class Limits(msgspec.Struct, frozen=True, omit_defaults=True):
    """A named set of limits; ``NO_LIMIT`` or no amounts: there is none.

    A QOS, a partition and a share name one.  ``total_...`` hold for all jobs of it together, that of
    an account also for those of the accounts below it; ``..._per_user`` for the jobs of each user,
    ``..._per_account`` of each account, ``..._per_job`` for one job.  Minutes are amounts multiplied
    by minutes: ``total_minutes`` of used ones, which decay, ``run_minutes`` of what running jobs may
    still use.  ``max_wall`` and ``total_wall`` are minutes.
    """

    name: str
    total_jobs: int = NO_LIMIT
    total_submitted: int = NO_LIMIT
    total_accruing: int = NO_LIMIT
    total_wall: int = NO_LIMIT
    total: Amounts = ()
    total_minutes: Amounts = ()
    run_minutes: Amounts = ()
    max_jobs_per_user: int = NO_LIMIT
    max_submitted_per_user: int = NO_LIMIT
    max_accruing_per_user: int = NO_LIMIT
    max_per_user: Amounts = ()
    run_minutes_per_user: Amounts = ()
    max_jobs_per_account: int = NO_LIMIT
    max_submitted_per_account: int = NO_LIMIT
    max_accruing_per_account: int = NO_LIMIT
    max_per_account: Amounts = ()
    run_minutes_per_account: Amounts = ()
    max_wall: int = NO_LIMIT
    max_per_job: Amounts = ()
    min_per_job: Amounts = ()
    max_per_host: Amounts = ()
    max_minutes_per_job: Amounts = ()
    min_priority: int = NO_LIMIT


class Qos(msgspec.Struct, frozen=True, omit_defaults=True):
    """A quality of service.

    ``preempts``: the QOS with jobs that its jobs may preempt.  ``preempt_mode``: what happens to its
    own jobs then (empty: what the site says).  That comes ``grace`` seconds after their notice, and not
    before they ran for ``exempt`` seconds (``NO_LIMIT``: what the site says).
    ``usage_factor``: by how much the use of its jobs counts.  ``flags``: some of ``QOS_FLAGS``.
    """

    name: str
    priority: int = 0
    limits: str = ""
    preempts: tuple[str, ...] = ()
    preempt_mode: str = ""
    grace: int = 0
    exempt: int = NO_LIMIT
    usage_factor: float = 1.0
    flags: tuple[str, ...] = ()


class UserShare(msgspec.Struct, frozen=True, omit_defaults=True):
    """A user in an account: shares among the accounts and users next to it (``OF_PARENT``: those of
    the account).

    ``qos``: those that its jobs may name (empty: those of the account); ``default_qos``: of a job
    that names none.  ``is_default``: the account of the user's jobs that name none.
    """

    user: str
    shares: int = 1
    limits: str = ""
    qos: tuple[str, ...] = ()
    default_qos: str = ""
    priority: int = 0
    is_default: bool = False


class Account(msgspec.Struct, frozen=True, omit_defaults=True):
    """An account below another, with its users in order of definition."""

    name: str
    parent: str = ROOT
    shares: int = 1
    users: tuple[UserShare, ...] = ()
    limits: str = ""
    qos: tuple[str, ...] = ()
    default_qos: str = ""
    priority: int = 0


class Priority(msgspec.Struct, frozen=True, omit_defaults=True):
    """The weights of a job's priority, and when it is made: every ``period`` seconds.

    ``max_age``: seconds after which a job has the whole weight of age.  ``resources``: the weight of
    each resource that a job asks for.  ``flags``: some of ``PRIORITY_FLAGS``.
    """

    kind: str = BY_SUBMISSION
    age: int = 0
    association: int = 0
    fairshare: int = 0
    size: int = 0
    partition: int = 0
    qos: int = 0
    resources: tuple[tuple[str, float], ...] = ()
    max_age: int = 604_800
    period: int = 300
    flags: tuple[str, ...] = ()


class FairShare(msgspec.Struct, frozen=True, omit_defaults=True):
    """How use becomes a factor: ``half_life`` in seconds (0: it never decays), ``reset``: when all
    use is forgotten.  ``dampening``: a number of the older formula."""

    kind: str = TREE
    half_life: int = 604_800
    reset: str = ""
    dampening: int = 1


class Passes(msgspec.Struct, frozen=True, omit_defaults=True):
    """When Slurm's scheduler makes its passes and how far it looks, in seconds and jobs
    (docs/spec/production.md 4.1 and 4.2).

    The main scheduler: a pass over the whole queue every ``interval``; a short one, over
    ``depth`` jobs, ``delay`` after what asks for it and at least ``least_gap`` after the last.
    Backfill: every ``backfill_interval``, over at most ``backfill_depth`` jobs, with planned starts
    up to ``backfill_window`` from now, in steps of ``backfill_resolution``.  Each other number is a
    limit of the same name in ``SchedulerParameters``; 0: none.
    """

    has_backfill: bool = True
    interval: int = 60
    delay: int = 3
    least_gap: int = 2
    depth: int = 100
    partition_depth: int = 0
    is_deferring: bool = False
    backfill_interval: int = 30
    backfill_depth: int = 500
    backfill_window: int = 86_400
    backfill_resolution: int = 60
    backfill_per_user: int = 0
    backfill_per_partition: int = 0
    backfill_per_user_and_partition: int = 0
    backfill_per_association: int = 0
    backfill_starts: int = 0
    backfill_array_tasks: int = 20
    backfill_min_age: int = 0
    backfill_min_priority: int = 0
    backfill_once_per_job: bool = False
    backfill_licences: bool = False
    assoc_limit_stop: bool = False


class Preemption(msgspec.Struct, frozen=True, omit_defaults=True):
    """Which jobs may preempt others: ``none``, by ``partition`` (its tier), or by ``qos``.

    ``mode``: what happens to the preempted jobs.  ``exempt``: seconds for which a job runs before it
    may be preempted.
    """

    kind: str = "none"
    mode: str = "off"
    exempt: int = 0


class Association(msgspec.Struct, frozen=True):
    """A user in an account: a leaf of the tree, by the indices of its account and of the user in
    it."""

    account: int
    user: int


class Site(msgspec.Struct, frozen=True, omit_defaults=True, dict=True):
    """What a site decides beyond its hosts.

    ``enforces_accounts``: a job of a user without an account is refused; ``enforces_limits`` and
    ``enforces_qos``: limits hold, and so does the list of QOS that an account may use.
    ``is_safe``: a job starts only if it can end before ``total_minutes`` are used up.
    """

    accounts: tuple[Account, ...] = ()
    qos: tuple[Qos, ...] = ()
    limits: tuple[Limits, ...] = ()
    priority: Priority = Priority()
    fairshare: FairShare = FairShare()
    passes: Passes | None = None
    preemption: Preemption = Preemption()
    enforces_accounts: bool = False
    enforces_limits: bool = False
    enforces_qos: bool = False
    is_safe: bool = False

    @cached_property
    def associations(self) -> tuple[Association, ...]:
        """Every user of every account, in order of definition: number 0 is the first."""
        return tuple(
            Association(place, user)
            for place, account in enumerate(self.accounts)
            for user in range(len(account.users))
        )

    @cached_property
    def _by_names(self) -> dict[tuple[str, str], int]:
        return {
            (self.accounts[each.account].users[each.user].user, self.accounts[each.account].name): n
            for n, each in enumerate(self.associations)
        }

    @cached_property
    def _default_of(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for number, each in enumerate(self.associations):
            user = self.accounts[each.account].users[each.user]
            if user.is_default or user.user not in found:
                found[user.user] = number
        return found

    def association_of(self, user: str, account: str) -> int:
        """Return the number of a user in an account (empty: the user's default account), -1 if
        there is none."""
        if account:
            return self._by_names.get((user, account), -1)
        return self._default_of.get(user, -1)

    def parent_of(self, account: int) -> int:
        """Return the index of the account above another; -1: it is the root."""
        parent = self.accounts[account].parent
        return self._places[parent] if self.accounts[account].name != ROOT else -1

    @cached_property
    def _places(self) -> dict[str, int]:
        return {account.name: place for place, account in enumerate(self.accounts)}

    def accounts_above(self, account: int) -> Iterator[int]:
        """Yield an account, and each one above it up to the root."""
        while account >= 0:
            yield account
            account = self.parent_of(account)
