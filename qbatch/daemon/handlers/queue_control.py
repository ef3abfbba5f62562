"""Open and close queues (qenable, qdisable, qstart, qstop)."""

from __future__ import annotations

from qbatch.daemon.core import run_limits
from qbatch.daemon.core.state import Actor, Core
from qbatch.daemon.core.steps import Steps
from qbatch.daemon.handlers.authority import each
from qbatch.wire.records import Outcomes
from qbatch.wire.requests import QueueControl


def handle(core: Core, actor: Actor, request: QueueControl) -> Steps[Outcomes]:
    """Change each queue that is named."""

    def act(name: str) -> Steps[None]:
        queue = core.queue(name.partition("@")[0])
        if request.enabled is not None:
            queue.enabled = request.enabled
        if request.started is not None and request.started != queue.started:
            yield from run_limits.set_started(core, queue, request.started)
        core.happened("queue", None, queue.settings.name)

    return each(core, request.queues, act)
