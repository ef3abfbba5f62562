"""Take holds away (qrls)."""

from __future__ import annotations

from qbatch.daemon.core import flow
from qbatch.daemon.core.state import Actor, Core
from qbatch.daemon.core.states import BatchState
from qbatch.daemon.core.steps import Steps, is_enough, members_of
from qbatch.daemon.handlers.authority import each, owned
from qbatch.daemon.handlers.hold import bits_for
from qbatch.wire.records import Outcomes
from qbatch.wire.requests import Release


def handle(core: Core, actor: Actor, request: Release) -> Steps[Outcomes]:
    """Release each job that is named; it ranks from now."""
    bits = bits_for(actor, request.kinds)

    def act(name: str) -> Steps[None]:
        job = owned(core, actor, name)
        members = yield from members_of(core, job)
        for one in [job, *members] if job.is_array else [job]:
            if is_enough(core):
                yield
            if one.is_over:
                continue
            one.hold &= ~bits
            one.modified = core.now
            if not one.is_array and one.state is BatchState.HELD and not one.hold:
                flow.settle(core, one)
        core.happened("released", job.key)

    return each(core, request.jobs, act)
