"""Commands about the server: its queues, its hosts, the policies of its pools, faults on demand."""

from __future__ import annotations

import re

from qbatch.daemon.core import flow, run_limits
from qbatch.daemon.core.faults import KINDS, FaultState
from qbatch.daemon.core.reconfigure import exchange
from qbatch.daemon.core.state import Actor, Core, PoolState
from qbatch.daemon.core.steps import Steps
from qbatch.daemon.handlers.verbs import each, handles
from qbatch.engine.engine import Engine
from qbatch.model.errors import QbatchError, suggestion
from qbatch.model.events import HostClosed, HostOpened
from qbatch.planning.policy import Policy, name_of
from qbatch.wire import requests
from qbatch.wire.errors import Refusal
from qbatch.wire.records import Done, Outcomes, Text

HOST_ACTIONS = ("drain", "resume", "up", "down", "comment")


@handles(requests.QueueControl)
def queue_control(core: Core, actor: Actor, request: requests.QueueControl) -> Steps[Outcomes]:
    """Open or close each named queue (qenable, qdisable, qstart, qstop); jobs of a stopped one wait
    at its run limit."""

    def act(name: str) -> Steps[None]:
        queue = core.queue(name.partition("@")[0])
        if request.enabled is not None:
            queue.enabled = request.enabled
        if request.started is not None and request.started != queue.started:
            queue.started = request.started
            yield from run_limits.recount(core, [queue.settings.name])
        core.happened("queue", None, queue.settings.name)

    return each(core, request.queues, act)


@handles(requests.HostControl)
def host_control(core: Core, actor: Actor, request: requests.HostControl) -> Steps[Outcomes]:
    """Drain each named host, take it down or bring it back (pbsnodes -o, -r)."""
    if request.action not in HOST_ACTIONS:
        raise Refusal(
            "bad-value",
            f"{request.action[:40]!r} is no action on a host (known: {', '.join(HOST_ACTIONS)})",
        )

    def act(name: str) -> None:
        if name not in core.host_places:
            raise Refusal(
                "unknown-host", f"Unknown node {name[:80]}{suggestion(name[:80], core.host_places)}"
            )
        number, place = core.host_places[name]
        pool = core.pools[number]
        if request.comment is not None:
            pool.host_comments[place] = request.comment[:200]
        if request.action in ("drain", "down") and place not in pool.shut:
            pool.shut.add(place)
            pool.events.append(HostClosed(place))
        if request.action == "down":
            pool.down.add(place)
            for job in sorted(pool.running.values(), key=lambda job: job.key):
                if any(place in chunk.hosts for chunk in job.present.allocation):
                    flow.stop_running(core, job, "host", f"host {name} went down")
        elif request.action in ("resume", "up") and place in pool.shut:
            pool.shut.discard(place)
            pool.down.discard(place)
            pool.events.append(HostOpened(place))
        core.is_dirty = True
        core.happened("host", None, f"{name} {request.action}")

    return each(core, request.hosts, act)


@handles(requests.PolicySet)
def policy_set(core: Core, actor: Actor, request: requests.PolicySet) -> Text:
    """Let another policy decide in all pools, or in the named one (qbatch policy set), or only
    return what that would do."""
    pools = [pool for pool in core.pools if request.pool in ("", pool.settings.name)]
    if not pools:
        name, names = request.pool[:80], [pool.settings.name for pool in core.pools]
        raise Refusal(
            "bad-value",
            f"there is no pool {name!r}{suggestion(name, names)} (pools: {', '.join(names)})",
        )
    try:
        policies = [core.load_policy(request.policy) for _ in pools]
        for pool, policy in zip(pools, policies, strict=True):
            Engine(pool.machine, policy)  # refuses an unsuitable machine before anything changes
            pool.engine.check_exchange(policy)
    except QbatchError as error:
        raise Refusal("bad-value", str(error)) from None
    lines = []
    for pool, policy in zip(pools, policies, strict=True):
        name = name_of(policy)
        lines.append(_fate_of_jobs(pool, policy, name))
        if not request.is_dry_run and name != pool.name_of_policy:
            exchange(core, pool, policy)
            pool.chosen = request.policy if request.policy != pool.settings.policy else ""
    return Text("\n".join(lines) + "\n")


def _fate_of_jobs(pool: PoolState, policy: Policy, name: str) -> str:
    """Return in words what becomes of a pool's jobs under another policy, with its name."""
    view = pool.engine.view()
    waiting = len(view.queue) + len(view.parked)
    if name == pool.name_of_policy:
        return f"pool {pool.settings.name}: {name} decides already"
    promises = sum(1 for row in view.queue.tolist() if pool.engine.promise_to(row) is not None)
    trials = sum(1 for row in view.running if pool.engine.is_trial(row))
    words = [
        f"{len(view.running) - trials} running jobs run on",
        f"{waiting} waiting jobs are looked at anew",
    ]
    if promises:
        words.append(f"{promises} promised starts are forgotten")
    if trials:
        words.append(f"{trials} quanta end and their jobs wait again")
    if view.suspended:
        words.append(
            f"{len(view.suspended)} jobs that it has suspended go on as soon as their processors "
            "are free"
        )
    small = [row for row, run in view.running.items() if run.procs < view.jobs[row].procs]
    resized = sum(1 for row in small if not pool.engine.is_trial(row))
    if resized and not getattr(policy, "is_malleable", False):
        words.append(f"{resized} jobs keep the fewer processors that they have now")
    return f"pool {pool.settings.name}: {pool.name_of_policy} -> {name}; {', '.join(words)}"


@handles(requests.Fault)
def fault(core: Core, actor: Actor, request: requests.Fault) -> Done:
    """Add a fault on demand, or clear all of them (qbatch fault)."""
    if request.kind == "clear":
        core.faults.clear()
        return Done(text="no faults")
    if request.kind not in KINDS:
        kind = request.kind[:40]
        raise Refusal(
            "bad-value",
            f"{kind!r} is no fault{suggestion(kind, KINDS)} (known: clear, {', '.join(KINDS)})",
        )
    try:
        re.compile(request.pattern)
    except re.error as error:
        raise Refusal("bad-value", f"pattern {request.pattern[:60]!r}: {error}") from None
    if not 0 <= request.seconds <= 3600:
        raise Refusal("bad-value", "seconds is not from 0 to 3600")
    text = request.message[:200]
    core.faults.append(
        FaultState(
            request.kind, request.count, request.seconds, request.status, request.pattern, text
        )
    )
    return Done(
        text=f"{request.kind}: {'until cleared' if request.count < 0 else f'{request.count} times'}"
    )
