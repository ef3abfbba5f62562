"""The same jobs under another configuration."""

from __future__ import annotations

from collections.abc import Callable

from qbatch.daemon.core import run_limits, state_snapshot
from qbatch.daemon.core.exchange import exchange
from qbatch.daemon.core.state import Core, machine_of
from qbatch.daemon.core.states import BatchState
from qbatch.daemon.settings import Pool, Settings
from qbatch.engine.admission import refusal
from qbatch.model.errors import InputError
from qbatch.model.events import HostClosed
from qbatch.planning.policy import Policy
from qbatch.wire.identifiers import JobKey


def reconfigure(core: Core, settings: Settings, policy_of: Callable[[str], Policy]) -> Core:
    """Return the state under other settings.

    A pool whose hosts and policy stay keeps its engine with all promises.  One in which only the policy is another goes on
    with its jobs under that, as after ``qbatch policy set``.  A pool of other hosts takes its waiting jobs anew, in their
    order; it may not change while jobs run in it.

    Raises:
        InputError: a queue or a pool that has jobs is gone, or a pool changes under running jobs; nothing has changed.
    """
    same = _unchanged(core, settings)
    other = _under_another_policy(core, settings) - same
    _check(core, settings, same | other)
    # On a copy: what follows takes jobs out of engines, and the old state must stay whole if anything fails.
    old = state_snapshot.load(state_snapshot.dump(core), core.settings, policy_of)
    for pool in old.pools:
        wanted = next((each for each in settings.pools if each.name == pool.settings.name), None)
        if wanted is not None and wanted.name in other:
            exchange(old, pool, policy_of(wanted.policy))
            pool.settings, pool.chosen = wanted, ""
    same |= other
    waiting = []
    for job in old.live_jobs():
        for one in old.members(job):
            pool = old.pool_of(one)
            now_in = next((each for each in settings.queues if each.name == one.queue), None)
            is_elsewhere = now_in is not None and settings.pool_of(now_in).name != pool.settings.name
            if (
                one.state is BatchState.QUEUED
                and not one.is_array
                and (pool.settings.name not in same or is_elsewhere or one.run_limit)
            ):
                run_limits.withdraw(old, one)
                waiting.append((one.eligible, *one.key))
    new = state_snapshot.load(state_snapshot.dump(old), settings, policy_of, keep_engines=same)
    _close_again(old, new, same)
    for _, sequence, member in sorted(waiting):
        found = new.find(JobKey(sequence, member))
        if found is not None:
            run_limits.enter(new, found)
    run_limits.recount(new, _other_limits(core, settings))
    return new


def _check(core: Core, settings: Settings, same: set[str]) -> None:
    """Refuse what would take hosts, queues or the executor away from jobs that need them."""
    running = sum(len(pool.running) for pool in core.pools)
    if settings.executor != core.settings.executor and running:
        raise InputError(
            f"executor {settings.executor} is asked for, but {running} jobs run under {core.settings.executor}; end them first "
            "(qbatch down --jobs), or take another store (--state DIR)"
        )
    for pool in core.pools:
        if pool.settings.name not in same and pool.running:
            raise InputError(
                f"pool {pool.settings.name}: {len(pool.running)} jobs run in it under other hosts than are asked for now (or on "
                "another Dask cluster or directory); start and end them as before (qbatch down --jobs), or take another store "
                "(--state DIR)"
            )
    names = {each.name for each in settings.queues}
    for name, queue in core.queues.items():
        if queue.total and name not in names:
            raise InputError(f"queue {name} cannot go while it has {queue.total} jobs; move or delete them first")
    machines = {pool.name: machine_of(pool) for pool in settings.pools}
    queues = {queue.name: settings.pool_of(queue).name for queue in settings.queues}
    for job in core.live_jobs():
        reason = refusal(machines[queues[job.queue]], job.prepared.request) if job.queue in queues else None
        if reason is not None and not job.holds_hosts:
            raise InputError(
                f"job {core.id_of(job.key)} could never run any more: {reason.text}; delete or alter it first"
            )


def _close_again(old: Core, new: Core, same: set[str]) -> None:
    """Hosts that were drained or down stay so, by name, in pools that begin with a new engine."""
    shut = {}
    for pool in old.pools:
        for place in sorted(pool.shut | set(pool.host_comments)):
            shut[pool.machine.hosts[place].name] = (
                place in pool.shut,
                place in pool.down,
                pool.host_comments.get(place, ""),
            )
    for pool in new.pools:
        if pool.settings.name in same:
            continue
        for place, host in enumerate(pool.machine.hosts):
            is_shut, is_down, comment = shut.get(host.name, (False, False, ""))
            if comment:
                pool.host_comments[place] = comment
            if is_shut:
                pool.shut.add(place)
                pool.events.append(HostClosed(place))
            if is_down:
                pool.down.add(place)


def _other_limits(core: Core, settings: Settings) -> list[str]:
    """Return the queues whose limits on running jobs change."""
    found = []
    for queue in settings.queues:
        old = core.queues.get(queue.name)
        new = (queue.max_running, queue.max_running_per_user)
        if old is not None and (old.settings.max_running, old.settings.max_running_per_user) != new:
            found.append(queue.name)
    return found


def _unchanged(core: Core, settings: Settings) -> set[str]:
    """Return the pools of which hosts, their executor with its place, and policy stay."""
    new = {pool.name: (pool.policy, _hosts(pool)) for pool in settings.pools}
    return {
        pool.settings.name
        for pool in core.pools
        if new.get(pool.settings.name) == (pool.settings.policy, _hosts(pool.settings))
    }


def _under_another_policy(core: Core, settings: Settings) -> set[str]:
    """Return the pools of which the hosts stay, whatever their policy."""
    new = {pool.name: _hosts(pool) for pool in settings.pools}
    return {pool.settings.name for pool in core.pools if new.get(pool.settings.name) == _hosts(pool.settings)}


def _hosts(pool: Pool) -> tuple[object, ...]:
    return pool.hosts, pool.single_host, pool.spans, pool.machine, pool.executor, pool.address, pool.directory
