"""Put waiting jobs into another queue (qmove)."""

from __future__ import annotations

from qbatch.daemon.core import deadlines, flow, submission
from qbatch.daemon.core.state import Actor, Core
from qbatch.daemon.core.steps import Steps, is_enough, members_of
from qbatch.daemon.handlers.authority import each, owned
from qbatch.wire.errors import Refusal
from qbatch.wire.records import Outcomes
from qbatch.wire.requests import Move


def handle(core: Core, actor: Actor, request: Move) -> Steps[Outcomes]:
    """Move each job that is named to the queue, if it takes jobs of the owner; where it is already, nothing happens."""
    queue = core.queue(request.destination.partition("@")[0] or core.settings.default_queue)
    if queue.settings.destinations:
        raise Refusal("queue-access", f"queue {queue.settings.name} is a routing queue; name an execution queue")

    def act(name: str) -> Steps[None]:
        job = owned(core, actor, name)
        members = yield from members_of(core, job)
        if job.is_subjob or any(each.holds_hosts for each in members):
            identifier = core.id_of(job.key)
            raise Refusal("bad-state", f"Request invalid for state of job {identifier}", identifier)
        submission.check_server(core, request.destination.partition("@")[2], job.spec.host)
        if job.queue == queue.settings.name:
            return
        prepared = submission.prepare(core, job.spec, queue)
        owner = Actor(job.uid, job.user, job.group, "user")
        submission.check_queue(core, owner, queue, prepared, is_new=False)
        deadlines.check(core, queue, prepared, job.deadline)
        for one in [*members, job] if job.is_array else [job]:
            if is_enough(core):
                yield
            if not (one.is_over or one.holds_hosts):
                flow.change(core, one, submission.of_task(prepared, one.member), queue.settings.name)
        core.happened("moved", job.key, queue.settings.name)

    return each(core, request.jobs, act)
