"""The same jobs under another configuration."""

from __future__ import annotations

from collections.abc import Callable

from qbatch.daemon.core import flow, image
from qbatch.daemon.core.state import Core
from qbatch.daemon.settings import Pool, Settings
from qbatch.model.errors import InputError
from qbatch.planning.policy import Policy


def resettle(core: Core, settings: Settings, policy_of: Callable[[str], Policy]) -> Core:
    """Return the state under other settings.

    A pool whose hosts and policy stay keeps its engine with all promises.  A pool that changes takes its waiting jobs
    anew, in their order; it may not change while jobs run in it.

    Raises:
        InputError: a queue or a pool that has jobs is gone, or a pool changes under running jobs; nothing has changed.
    """
    same = _unchanged(core, settings)
    for pool in core.pools:
        if pool.settings.name not in same and pool.running:
            raise InputError(
                f"pool {pool.settings.name}: {len(pool.running)} jobs run in it under other hosts or another policy than "
                "are asked for now; start and end them as before (qbatch down --jobs), or take another store (--state DIR)"
            )
    for name, queue in core.queues.items():
        if queue.total and name not in {each.name for each in settings.queues}:
            raise InputError(f"queue {name} cannot go while it has {queue.total} jobs; move or delete them first")
    waiting = []
    for job in core.live_jobs():
        for one in core.members(job):
            pool = core.pool_of(one)
            now_in = next((each for each in settings.queues if each.name == one.queue), None)
            is_elsewhere = now_in is not None and settings.pool_of(now_in).name != pool.settings.name
            if one.letter == "Q" and not one.is_array and (pool.settings.name not in same or is_elsewhere or one.gate):
                flow.withdraw(core, one)
                waiting.append(one.key)
    new = image.load(image.dump(core), settings, policy_of, keep_engines=same)
    for key in waiting:
        found = new.find(key)
        if found is not None:
            flow.enter(new, found)
    return new


def _unchanged(core: Core, settings: Settings) -> set[str]:
    def what_counts(pool: Pool) -> tuple[object, ...]:
        return pool.hosts, pool.policy, pool.single_host, pool.spans

    new = {pool.name: what_counts(pool) for pool in settings.pools}
    return {pool.settings.name for pool in core.pools if new.get(pool.settings.name) == what_counts(pool.settings)}
