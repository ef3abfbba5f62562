"""Drain hosts, take them down and bring them back (pbsnodes -o, -r)."""

from __future__ import annotations

from qbatch.daemon.core import flow
from qbatch.daemon.core.state import Actor, Core
from qbatch.daemon.core.steps import Steps
from qbatch.daemon.handlers.authority import each
from qbatch.model.errors import suggestion
from qbatch.model.events import HostClosed, HostOpened
from qbatch.wire.errors import Refusal
from qbatch.wire.records import Outcomes
from qbatch.wire.requests import HostControl

ACTIONS = ("drain", "resume", "up", "down", "comment")


def handle(core: Core, actor: Actor, request: HostControl) -> Steps[Outcomes]:
    """Change each host that is named."""
    if request.action not in ACTIONS:
        raise Refusal("bad-value", f"{request.action[:40]!r} is no action on a host (known: {', '.join(ACTIONS)})")

    def act(name: str) -> None:
        if name not in core.host_places:
            raise Refusal("unknown-host", f"Unknown node {name[:80]}{suggestion(name[:80], core.host_places)}")
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
