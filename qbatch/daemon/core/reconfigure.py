"""A new configuration for a server that has jobs."""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter

from qbatch.daemon.core import run_limits
from qbatch.daemon.core.job import BatchJob, BatchState
from qbatch.daemon.core.state import Core, PoolState, QueueState, machine_of, places_of
from qbatch.daemon.core.steps import Steps, is_enough
from qbatch.daemon.settings import Pool, Queue, Settings
from qbatch.engine.admission import refusal
from qbatch.engine.engine import Engine
from qbatch.model.errors import InputError
from qbatch.model.events import HostClosed, Woken
from qbatch.planning.policy import Policy, name_of


def exchange(core: Core, pool: PoolState, policy: Policy) -> None:
    """Let another policy decide in a pool; promises are forgotten, and a pass follows.

    Raises:
        QbatchError: the policy refuses the pool's machine; nothing has changed.
    """
    pool.engine.exchange_policy(policy)
    pool.policy = policy
    pool.events.append(Woken())
    for job in pool.by_row:  # others have no promise
        if job is not None and job.promised is not None and not job.holds_hosts:
            job.promised = None
    core.is_dirty = True
    core.happened("queue", None, f"{pool.settings.name} policy {name_of(policy)}")


def reconfigure(core: Core, settings: Settings) -> Steps[None]:
    """Put a state under other settings, in steps.

    A pool that keeps its hosts and its policy keeps its engine with all promises.  A pool that changes only its policy goes on
    with its jobs under the new one, as after ``qbatch policy set``.  A pool that changes its hosts takes its waiting jobs anew,
    in their order; no job may run in it.  A queue goes to another pool only when none of its jobs runs.

    Raises:
        InputError: a queue or a pool that has jobs is gone, or a pool changes under running jobs; nothing has changed.
    """
    same = _unchanged(core, settings)
    other = _under_another_policy(core, settings) - same
    kept = {pool.settings.name: pool for pool in core.pools if pool.settings.name in same | other}
    _check(core, settings, set(kept))
    pools = [kept[each.name] if each.name in kept else PoolState(each, core.load_policy(each.policy)) for each in settings.pools]
    others = {each.name: core.load_policy(each.policy) for each in settings.pools if each.name in other}
    for name, policy in others.items():
        Engine(kept[name].machine, policy)  # refuses an unsuitable machine before anything changes
        kept[name].engine.check_exchange(policy)
    limits = _other_limits(core, settings)
    moved = _taken_out(core, {queue.name: pools[_pool_of(settings, queue)] for queue in settings.queues})
    _close_again(core, pools, kept)
    core.pools, core.settings = pools, settings
    for pool, each in zip(pools, settings.pools, strict=True):
        pool.settings = each
    core.host_places = places_of(settings)
    core.queues = {
        queue.name: _queue(core.queues.get(queue.name), queue, place, _pool_of(settings, queue))
        for place, queue in enumerate(settings.queues, 1)
    }
    core.prepared.clear()
    core.asked.clear()
    for name, policy in others.items():
        exchange(core, kept[name], policy)
        kept[name].chosen = ""
    core.is_dirty = True
    for job in moved:
        if is_enough(core):
            yield
        is_out = not (job.is_pending or job.row >= 0 or job.run_limit)
        if is_out and job.state is BatchState.QUEUED:  # it may have ended, been held or come again in the meantime
            run_limits.enter(core, job)
    yield from run_limits.recount(core, limits)


def _pool_of(settings: Settings, queue: Queue) -> int:
    """Return the place of a queue's pool among the pools."""
    return next((place for place, pool in enumerate(settings.pools) if pool.name == queue.pool), 0)


def _queue(old: QueueState | None, settings: Queue, place: int, pool: int) -> QueueState:
    """Return a queue under other settings, with its jobs; it stays opened or closed as it was by hand."""
    if old is None:
        return QueueState(settings, place, pool, settings.enabled, settings.started, {}, {})
    old.settings, old.place, old.pool = settings, place, pool
    return old


def _taken_out(core: Core, pools: dict[str, PoolState]) -> list[BatchJob]:
    """Take the waiting jobs out of the pools that their queues leave; return them in the order in which they became eligible.

    ``pools``: the new pool of each queue.
    """
    leaving = {name for name, queue in core.queues.items() if name in pools and pools[name] is not core.pools[queue.pool]}
    if not leaving:
        return []
    moved = []
    for job in core.live_jobs():
        if job.queue in leaving or job.is_array:
            moved += [one for one in core.members(job) if one.queue in leaving and one.state is BatchState.QUEUED]
    moved.sort(key=attrgetter("eligible", "sequence", "member"))
    for job in moved:
        run_limits.withdraw(core, job)
    return moved


def _check(core: Core, settings: Settings, same: set[str]) -> None:
    """Refuse settings that would take hosts, queues or the executor away from jobs that need them."""
    running = sum(len(pool.running) for pool in core.pools)
    if settings.executor != core.settings.executor and running:
        raise InputError(
            f"executor {settings.executor} is asked for, but {running} jobs run under {core.settings.executor}; end them first "
            "(qbatch down --jobs), or take another store (--state DIR)"
        )
    for pool in core.pools:
        if pool.settings.name not in same and pool.running:
            raise InputError(
                f"pool {pool.settings.name}: {len(pool.running)} jobs run in it, and the configuration changes its hosts, Dask "
                "cluster or directory; start as before and end the jobs (qbatch down --jobs), or take another store (--state DIR)"
            )
    names = {each.name for each in settings.queues}
    for name, queue in core.queues.items():
        if queue.total and name not in names:
            raise InputError(f"queue {name} cannot go while it has {queue.total} jobs; move or delete them first")
    machines = {pool.name: machine_of(pool) for pool in settings.pools}
    queues = {queue.name: settings.pool_of(queue).name for queue in settings.queues}
    pools = {name: core.pools[queue.pool].settings.name for name, queue in core.queues.items()}
    stay = {name for name, pool in pools.items() if queues.get(name) == pool and pool in same}
    if stay == set(core.queues):
        return
    for pool in core.pools:
        for job in pool.running.values():
            if queues.get(job.queue) != pool.settings.name:
                raise InputError(
                    f"queue {job.queue} cannot go to pool {queues.get(job.queue)} while its jobs run in pool "
                    f"{pool.settings.name}, such as {core.id_of(job.key)}; "
                    f"leave it there until they have ended (qstop {job.queue}: no others start)"
                )
    for job in core.live_jobs():
        is_other = job.queue in queues and job.queue not in stay
        reason = refusal(machines[queues[job.queue]], job.prepared.request) if is_other else None
        if reason is not None and not job.holds_hosts:
            raise InputError(
                f"job {core.id_of(job.key)} could no longer run: {reason.text}; delete or alter it first"
            )


def _close_again(core: Core, pools: list[PoolState], kept: Mapping[str, PoolState]) -> None:
    """Close hosts that were drained or down again, by name, in pools that begin with a new engine."""
    shut = {}
    for pool in core.pools:
        for place in sorted(pool.shut | set(pool.host_comments)):
            shut[pool.machine.hosts[place].name] = (
                place in pool.shut,
                place in pool.down,
                pool.host_comments.get(place, ""),
            )
    for pool in pools:
        if pool.settings.name in kept:
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
    """Return the queues with limits on running jobs that change."""
    found = []
    for queue in settings.queues:
        old = core.queues.get(queue.name)
        new = (queue.max_running, queue.max_running_per_user)
        if old is not None and (old.settings.max_running, old.settings.max_running_per_user) != new:
            found.append(queue.name)
    return found


def _unchanged(core: Core, settings: Settings) -> set[str]:
    """Return the pools that keep their hosts, their executor with its place, and their policy."""
    new = {pool.name: (pool.policy, _hosts(pool)) for pool in settings.pools}
    return {
        pool.settings.name
        for pool in core.pools
        if new.get(pool.settings.name) == (pool.settings.policy, _hosts(pool.settings))
    }


def _under_another_policy(core: Core, settings: Settings) -> set[str]:
    """Return the pools that keep their hosts and executor, whatever their policy."""
    new = {pool.name: _hosts(pool) for pool in settings.pools}
    return {pool.settings.name for pool in core.pools if new.get(pool.settings.name) == _hosts(pool.settings)}


def _hosts(pool: Pool) -> tuple[object, ...]:
    return pool.hosts, pool.single_host, pool.spans, pool.machine, pool.executor, pool.address, pool.directory
