"""A new configuration for a server that has jobs."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter

import msgspec

from qbatch.daemon.core import reservations, run_limits
from qbatch.daemon.core.job import BatchJob, BatchState
from qbatch.daemon.core.state import (
    Core,
    PoolState,
    QueueState,
    ReservationState,
    machine_of,
    places_of,
)
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

    A pool that keeps its hosts and its policy keeps its engine with all promises.  A pool that
    changes only its policy goes on with its jobs under the new one, as after ``qbatch policy set``.
    A pool that changes its hosts takes its waiting jobs anew, in their order; no job may run in
    it.  A queue goes to another pool only when none of its jobs runs.

    Raises:
        InputError: a queue or a pool that has jobs is gone, or a pool changes under running jobs;
            nothing has changed.
    """
    new = {pool.name: pool for pool in settings.pools}
    found = [(pool.settings.name, pool) for pool in core.pools]
    kept = {
        name: pool
        for name, pool in found
        if name in new and _hosts(new[name]) == _hosts(pool.settings)
    }
    _check_reservations(core, settings, set(kept))
    _check(core, settings, set(kept))
    pools = [
        kept[each.name] if each.name in kept else PoolState(each, core.load_policy(each.policy))
        for each in settings.pools
    ]
    others = {
        each.name: core.load_policy(each.policy)
        for each in settings.pools
        if each.name in kept and each.policy != kept[each.name].settings.policy
    }
    for name, policy in others.items():
        Engine(kept[name].machine, policy)  # refuses an unsuitable machine before anything changes
        kept[name].engine.check_exchange(policy)
    old, asked = core.queues, {queue.name: queue for queue in settings.queues}
    limits = [
        name
        for name, queue in asked.items()
        if name in old and _limits(queue) != _limits(old[name].settings)
    ]
    places = {pool.name: place for place, pool in enumerate(settings.pools)}
    pool_of = {name: places.get(queue.pool, 0) for name, queue in asked.items()}
    # The waiting jobs of queues that leave their pool, in the order in which they became eligible.
    leaving = {
        name
        for name in asked
        if name in old and pools[pool_of[name]] is not core.pools[old[name].pool]
    }
    ones: Iterable[BatchJob] = (
        (job for whole in core.live_jobs() for job in core.members(whole)) if leaving else ()
    )
    moved = [job for job in ones if job.queue in leaving and job.state is BatchState.QUEUED]
    moved.sort(key=attrgetter("eligible", "sequence", "member"))
    for job in moved:
        run_limits.withdraw(core, job)
    _close_again(core, [pool for pool in pools if pool.settings.name not in kept])
    core.pools, core.settings = pools, settings
    for pool, configured in zip(pools, settings.pools, strict=True):
        pool.settings = configured
    core.host_places = places_of(settings)
    reserved = {name: queue for name, queue in old.items() if queue.reservation}
    core.queues = {}
    for place, each in enumerate(settings.queues, 1):
        queue = old.get(each.name) or QueueState(each, place, 0, each.enabled, each.started, {}, {})
        # It stays opened or closed as it was by hand.
        queue.settings, queue.place, queue.pool = each, place, pool_of[each.name]
        core.queues[each.name] = queue
    for name, queue in reserved.items():
        if queue.settings.pool in places:
            queue.pool = places[queue.settings.pool]
            core.queues[name] = queue
    for number, pool in enumerate(pools):
        _reserve_again(core, number, pool)
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
        # It may have ended, been held or come again in the meantime.
        if is_out and job.state is BatchState.QUEUED:
            run_limits.enter(core, job)
    yield from run_limits.recount(core, limits)


def _reserve_again(core: Core, number: int, pool: PoolState) -> None:
    """Keep the reservations that users made, and take those of the new machine file."""
    machine = machine_of(pool.settings)
    others = {kept.name: kept for kept in machine.reservations}
    for made in pool.reservations:
        if made.is_configured and made.kept != others.get(made.kept.name):
            made.kept, made.is_over = msgspec.structs.replace(made.kept, hosts=()), True
    there = {made.kept.name for made in pool.reservations}
    pool.reservations += [
        ReservationState(kept) for name, kept in others.items() if name not in there
    ]
    reservations.drop_over(core, pool)
    if pool.reservations or pool.machine.reservations:
        reservations.renew(core, number)


def _check(core: Core, settings: Settings, same: set[str]) -> None:
    """Refuse settings that take hosts, queues or the executor away from jobs; the pools ``same``
    keep their hosts."""
    running = sum(len(pool.running) for pool in core.pools)
    if settings.executor != core.settings.executor and running:
        raise InputError(
            f"executor {settings.executor} is asked for, but {running} jobs run under "
            f"{core.settings.executor}; end them first "
            "(qbatch down --jobs), or take another store (--state DIR)"
        )
    for pool in core.pools:
        if pool.settings.name not in same and pool.running:
            raise InputError(
                f"pool {pool.settings.name}: {len(pool.running)} jobs run in it, and the "
                "configuration changes its hosts, Dask "
                "cluster or directory; start as before and end the jobs (qbatch down --jobs), or "
                "take another store (--state DIR)"
            )
    names = {each.name for each in settings.queues}
    for name, queue in core.queues.items():
        if queue.total and name not in names and not queue.reservation:
            raise InputError(
                f"queue {name} cannot go while it has {queue.total} jobs; move or delete them first"
            )
    machines = {pool.name: machine_of(pool) for pool in settings.pools}
    queues = {queue.name: settings.pool_of(queue).name for queue in settings.queues}
    pools = {name: core.pools[queue.pool].settings.name for name, queue in core.queues.items()}
    queues |= {name: pools[name] for name, queue in core.queues.items() if queue.reservation}
    stay = {name for name, pool in pools.items() if queues.get(name) == pool and pool in same}
    if stay == set(core.queues):
        return
    for pool in core.pools:
        for job in pool.running.values():
            if queues.get(job.queue) != pool.settings.name:
                raise InputError(
                    f"queue {job.queue} cannot go to pool {queues.get(job.queue)} while its jobs "
                    "run in pool "
                    f"{pool.settings.name}, such as {core.id_of(job.key)}; "
                    f"leave it there until they have ended (qstop {job.queue}: no others start)"
                )
    for job in core.live_jobs():
        is_other = job.queue in queues and job.queue not in stay
        reason = refusal(machines[queues[job.queue]], job.prepared.request) if is_other else None
        if reason is not None and not job.holds_hosts:
            raise InputError(
                f"job {core.id_of(job.key)} could no longer run: {reason.text}; delete or alter it "
                "first"
            )


def _check_reservations(core: Core, settings: Settings, same: set[str]) -> None:
    """Refuse settings that take hosts or names away from reservations that users made, or from jobs
    of reservations; the pools ``same`` keep their hosts."""
    names = {each.name for each in settings.queues}
    new = {pool.name: machine_of(pool).reservations for pool in settings.pools}
    for pool in core.pools:
        own = pool.settings.name
        made = [each.kept for each in pool.reservations if not (each.is_configured or each.is_over)]
        taken = names.union(each.name for each in new.get(own, ()))
        for kept in made:
            if own not in same:
                raise InputError(
                    f"pool {own}: it has the reservation {kept.name}, and the configuration changes "
                    f"its hosts; delete the reservation first (start with the former configuration, then pbs_rdel "
                    f"{kept.name})"
                )
            if kept.name in taken:
                raise InputError(
                    f"pool {own}: a user made a reservation {kept.name}; choose another name for "
                    "the new queue or reservation"
                )
        reservations.windows_from((*made, *new.get(own, ())), core.now, may_overlap=False)
    for name, queue in core.queues.items():
        if queue.total and queue.reservation and queue.settings.pool not in same:
            raise InputError(
                f"the reservation {name} cannot go while it has {queue.total} jobs; move or delete "
                "them first"
            )


def _close_again(core: Core, pools: list[PoolState]) -> None:
    """Close hosts that were drained or down again, by name, in pools that begin with a new engine;
    they keep their comments."""
    old = {
        host.name: (pool, place)
        for pool in core.pools
        for place, host in enumerate(pool.machine.hosts)
    }
    for pool in pools:
        for place, host in enumerate(pool.machine.hosts):
            if host.name not in old:
                continue
            was, there = old[host.name]
            if comment := was.host_comments.get(there):
                pool.host_comments[place] = comment
            if there in was.shut:
                pool.shut.add(place)
                pool.events.append(HostClosed(place))
            if there in was.down:
                pool.down.add(place)


def _limits(queue: Queue) -> tuple[int | None, int | None]:
    return queue.max_running, queue.max_running_per_user


def _hosts(pool: Pool) -> tuple[object, ...]:
    return (
        pool.hosts,
        pool.single_host,
        pool.spans,
        pool.machine and msgspec.structs.replace(pool.machine, reservations=()),
        pool.executor,
        pool.address,
        pool.directory,
    )
