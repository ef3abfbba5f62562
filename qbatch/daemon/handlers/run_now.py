"""Start waiting jobs past the policy (qrun)."""

from __future__ import annotations

from qbatch.daemon.core.state import Actor, Core
from qbatch.daemon.core.states import BatchState
from qbatch.daemon.handlers.authority import each, owned
from qbatch.wire.errors import Refusal
from qbatch.wire.records import Outcomes
from qbatch.wire.requests import RunNow


def handle(core: Core, actor: Actor, request: RunNow) -> Outcomes:
    """Start each job that is named at the next pass, if its hosts have room then."""

    def act(name: str) -> None:
        job = owned(core, actor, name)
        identifier = core.id_of(job.key)
        if job.state is not BatchState.QUEUED:
            raise Refusal("bad-state", f"Request invalid for state of job {identifier}", identifier)
        raise Refusal(
            "unsupported",
            f"{identifier}: a job cannot be started past the policy yet; alter what it asks for",
            identifier,
        )

    return each(core, request.jobs, act)
