"""Let another policy decide in pools (qbatch policy set)."""

from __future__ import annotations

from qbatch.daemon.core.exchange import exchange
from qbatch.daemon.core.state import Actor, Core, PoolState
from qbatch.engine.engine import Engine
from qbatch.model.errors import QbatchError, suggestion
from qbatch.planning.policy import Policy, name_of
from qbatch.wire.errors import Refusal
from qbatch.wire.records import Text
from qbatch.wire.requests import PolicySet


def handle(core: Core, actor: Actor, request: PolicySet) -> Text:
    """Exchange the policy of each pool that is meant, or only say what that would do."""
    pools = _pools(core, request.pool)
    try:
        policies = [core.load_policy(request.policy) for _ in pools]
        for pool, policy in zip(pools, policies, strict=True):
            Engine(pool.machine, policy)  # refuses a machine that it is not for, before anything changes
            pool.engine.check_exchange(policy)
    except QbatchError as error:
        raise Refusal("bad-value", str(error)) from None
    lines = []
    for pool, policy in zip(pools, policies, strict=True):
        name = name_of(policy)
        lines.append(_said(pool, policy, name))
        if not request.is_dry_run and name != pool.name_of_policy:
            exchange(core, pool, policy)
            pool.chosen = request.policy if request.policy != pool.settings.policy else ""
    return Text("\n".join(lines) + "\n")


def _pools(core: Core, name: str) -> list[PoolState]:
    if not name:
        return core.pools
    found = [pool for pool in core.pools if pool.settings.name == name]
    if not found:
        names = [pool.settings.name for pool in core.pools]
        raise Refusal(
            "bad-value", f"there is no pool {name[:80]!r}{suggestion(name[:80], names)} (pools: {', '.join(names)})"
        )
    return found


def _said(pool: PoolState, policy: Policy, name: str) -> str:
    """Return what becomes of a pool's jobs."""
    view = pool.engine.view()
    waiting = len(view.queue) + len(view.parked)
    if name == pool.name_of_policy:
        return f"pool {pool.settings.name}: {name} decides already"
    promises = sum(1 for row in view.queue.tolist() if pool.engine.promise_to(row) is not None)
    trials = sum(1 for row in view.running if pool.engine.is_trial(row))
    words = [f"{len(view.running) - trials} running jobs run on", f"{waiting} waiting jobs are looked at anew"]
    if promises:
        words.append(f"{promises} promised starts are forgotten")
    if trials:
        words.append(f"{trials} quanta end and their jobs wait again")
    if view.suspended:
        words.append(f"{len(view.suspended)} jobs that it has suspended go on as soon as their processors are free")
    small = [row for row, run in view.running.items() if run.procs < view.jobs[row].procs]
    resized = sum(1 for row in small if not pool.engine.is_trial(row))
    if resized and not getattr(policy, "is_malleable", False):
        words.append(f"{resized} jobs keep the fewer processors that they have now")
    return f"pool {pool.settings.name}: {pool.name_of_policy} -> {name}; {', '.join(words)}"
