"""Place holds (qhold)."""

from __future__ import annotations

from qbatch.daemon.core import run_limits
from qbatch.daemon.core.job import BatchJob, hold_bits
from qbatch.daemon.core.state import Actor, Core
from qbatch.daemon.core.steps import Steps, is_enough, members_of
from qbatch.daemon.handlers.authority import RANKS, each, owned
from qbatch.wire.errors import Refusal
from qbatch.wire.records import Outcomes
from qbatch.wire.requests import Hold


def bits_for(actor: Actor, kinds: str) -> int:
    """Return the bits of the kinds of hold, if the asker may place and lift them.

    Raises:
        Refusal: a kind is not known or not for the asker.
    """
    try:
        bits = hold_bits(kinds)
    except ValueError as error:
        raise Refusal("bad-value", f"Hold_Types: {error}") from None
    if bits & ~1 and RANKS[actor.role] < RANKS["operator"]:
        raise Refusal("not-permitted", "Unauthorized Request: only operators place and lift o and s holds")
    return bits


def handle(core: Core, actor: Actor, request: Hold) -> Steps[Outcomes]:
    """Hold each job that is named: what waits leaves the policy's queue; what runs is held if it is ever queued again."""
    bits = bits_for(actor, request.kinds)

    def act(name: str) -> Steps[None] | None:
        job = owned(core, actor, name)
        return hold(job) if bits else None

    def hold(job: BatchJob) -> Steps[None]:
        members = yield from members_of(core, job)
        for one in [job, *members] if job.is_array else [job]:
            if is_enough(core):
                yield
            if one.is_over:
                continue
            one.hold |= bits
            one.modified = core.now
            one.comment = request.comment[:200] or one.comment
            if not one.is_array and not one.holds_hosts:
                run_limits.withdraw(core, one)
                core.set_state(one, "held")
        core.happened("held", job.key)

    return each(core, request.jobs, act)
