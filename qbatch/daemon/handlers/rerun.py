"""Stop running jobs and queue them again (qrerun)."""

from __future__ import annotations

from qbatch.daemon.core import flow
from qbatch.daemon.core.state import Actor, Core
from qbatch.daemon.core.steps import Steps, is_enough, members_of
from qbatch.daemon.handlers.authority import each, owned
from qbatch.wire.errors import Refusal
from qbatch.wire.records import Outcomes
from qbatch.wire.requests import Rerun


def handle(core: Core, actor: Actor, request: Rerun) -> Steps[Outcomes]:
    """Run each job that is named again from its beginning."""

    def act(name: str) -> Steps[None]:
        job = owned(core, actor, name)
        members = yield from members_of(core, job)
        identifier = core.id_of(job.key)
        running = [one for one in members if one.is_running_or_suspended and one.ending != "deleted"]
        if not running:
            raise Refusal("bad-state", f"Request invalid for state of job {identifier}", identifier)
        if not job.spec.is_rerunnable and not request.is_forced:
            raise Refusal("not-rerunnable", f"Job is not rerunnable {identifier}", identifier)
        for one in running:
            if is_enough(core):
                yield
            if one.is_running_or_suspended and one.ending != "deleted":
                flow.stop_running(core, one, "rerun", f"run again by {actor.user}")

    return each(core, request.jobs, act)
