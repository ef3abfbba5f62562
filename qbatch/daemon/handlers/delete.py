"""End jobs (qdel)."""

from __future__ import annotations

from qbatch.daemon.core import flow
from qbatch.daemon.core.state import Actor, Core
from qbatch.daemon.core.steps import Steps
from qbatch.daemon.handlers.authority import each, owned
from qbatch.wire.errors import Refusal
from qbatch.wire.records import Outcomes
from qbatch.wire.requests import Delete


def handle(core: Core, actor: Actor, request: Delete) -> Steps[Outcomes]:
    """End each job that is named; what waits leaves, what runs is stopped."""
    grace = core.settings.kill_delay
    if request.grace is not None:
        if not 0 <= request.grace <= 86_400:
            raise Refusal("bad-value", "the delay is not from 0 to 86400 seconds")
        grace = round(request.grace * 1e6)

    def act(name: str) -> Steps[None] | None:
        try:
            job = owned(core, actor, name)
        except Refusal as error:
            if error.code == "finished-job" and request.with_history:
                return None
            raise
        how = {"is_forced": request.is_forced, "grace": grace, "message": request.message[:200], "by": actor.user}
        if job.is_array:
            return flow.delete_array(core, job, **how)  # type: ignore[arg-type]
        flow.delete(core, job, **how)  # type: ignore[arg-type]
        return None

    return each(core, request.jobs, act)
