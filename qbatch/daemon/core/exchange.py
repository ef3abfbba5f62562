"""Another policy decides in a pool from here on, over the jobs that wait and run in it."""

from __future__ import annotations

from qbatch.daemon.core.state import Core, PoolState
from qbatch.model.events import Woken
from qbatch.planning.policy import Policy, name_of


def exchange(core: Core, pool: PoolState, policy: Policy) -> None:
    """Let a policy decide in a pool; promises are forgotten, and a pass follows.

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
