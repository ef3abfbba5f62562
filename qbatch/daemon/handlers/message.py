"""Append a line to the files of running jobs (qmsg)."""

from __future__ import annotations

from qbatch.daemon.core.state import Actor, Append, Core
from qbatch.daemon.core.steps import Steps
from qbatch.daemon.handlers.authority import each, owned
from qbatch.wire.errors import Refusal
from qbatch.wire.records import Outcomes
from qbatch.wire.requests import Message


def handle(core: Core, actor: Actor, request: Message) -> Steps[Outcomes]:
    """Send the text to each job that is named."""

    def act(name: str) -> None:
        job = owned(core, actor, name)
        if not job.holds_hosts:
            identifier = core.id_of(job.key)
            raise Refusal("bad-state", f"Request invalid for state of job {identifier}", identifier)
        core.outbox.append(Append(job.key, request.files, request.text[:4096]))

    return each(core, request.jobs, act)
