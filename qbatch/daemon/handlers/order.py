"""Exchange the places of two waiting jobs (qorder)."""

from __future__ import annotations

from qbatch.daemon.core import explain, run_limits
from qbatch.daemon.core.state import Actor, Core
from qbatch.daemon.core.states import BatchState
from qbatch.daemon.handlers.authority import owned
from qbatch.wire.errors import Refusal
from qbatch.wire.records import Outcome, Outcomes
from qbatch.wire.requests import Order


def handle(core: Core, actor: Actor, request: Order) -> Outcomes:
    """Exchange two jobs of one queue that wait and have no promise yet."""
    first, second = owned(core, actor, request.first), owned(core, actor, request.second)
    for job in (first, second):
        if job.state is not BatchState.QUEUED or not job.is_plain:
            name = core.id_of(job.key)
            raise Refusal("bad-state", f"Request invalid for state of job {name}", name)
        if job.run_limit:
            name, reason = core.id_of(job.key), explain.reason_for(core, job)
            raise Refusal(
                "bad-state", f"Request invalid for state of job {name}: it has no place yet: {reason.text}", name
            )
    if first.queue != second.queue:
        raise Refusal("bad-request", f"the jobs are in different queues: {first.queue} and {second.queue}")
    run_limits.exchange(core, first, second)
    return Outcomes(outcomes=(Outcome(name=request.first), Outcome(name=request.second)))
