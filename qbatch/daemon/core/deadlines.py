"""Deadlines of batch jobs: what was asked for, what is refused before a policy is asked, and a deadline that is changed.

A deadline counts from the submission, or is an instant, for every job of an array alike.  A job that cannot go to the policy
yet (it is held, waits for a time, for other jobs or at a run limit) is promised nothing: it is judged by the pass that hands it
to the policy, and ends as refused if its deadline can then not be kept any more.  A job that was accepted and has to wait again,
because its host went down or it is to run again, keeps its deadline and is not refused; its promise may break.

Another deadline of an array is for all its jobs that have not ended: those that the policy knows are judged together, and all
get it or none.
"""

from __future__ import annotations

import msgspec

from qbatch.daemon.core import run_limits
from qbatch.daemon.core.job import BatchJob, Prepared
from qbatch.daemon.core.state import Core, PoolState, QueueState
from qbatch.engine import snapshot
from qbatch.model.actions import Reject
from qbatch.model.events import Submitted, Withdrawn
from qbatch.model.reasons import Reason
from qbatch.wire.deadlines import RESOURCE, deadline_of
from qbatch.wire.errors import Refusal
from qbatch.wire.requests import Spec
from qbatch.wire.resources import format_duration


def asked(core: Core, spec: Spec) -> int | None:
    """Return the deadline that a specification asks for, by now, or None.

    Raises:
        Refusal: it is none.
    """
    text = spec.resources.get(RESOURCE)
    if text is None:
        return None
    try:
        return deadline_of(text, core.now)
    except ValueError as error:
        raise Refusal("bad-value", f"illegal -l value: {RESOURCE}: {error}") from None


def takes_deadlines(pool: PoolState) -> bool:
    """Tell whether the policy of a pool keeps deadlines."""
    return bool(getattr(pool.engine.policy, "takes_deadlines", False))


def check(core: Core, queue: QueueState, prepared: Prepared, deadline: int | None) -> None:
    """Refuse a deadline that nothing could keep, or that nobody would look at.

    Raises:
        Refusal: with the reason and the way out.
    """
    if deadline is None:
        return
    pool, name = core.pools[queue.pool], queue.settings.name
    if not takes_deadlines(pool):
        raise Refusal(
            "refused-by-policy",
            f"policy {pool.name_of_policy} of queue {name} takes no deadlines; leave out -l {RESOURCE}, or set a policy that "
            "does, such as qops",
            reason="no-deadlines",
        )
    if deadline < core.now + prepared.walltime:
        left = format_duration(deadline - core.now)
        text = f"there are {left} until then" if deadline > core.now else "it is past"
        raise Refusal(
            "refused-by-policy",
            f"the deadline cannot be kept: {text}, and the job asks for walltime={format_duration(prepared.walltime)}; a "
            "later deadline, or a shorter walltime",
            reason="deadline-too-soon",
        )


def refusal_of_change(core: Core, jobs: list[BatchJob], deadline: int, prepared: Prepared) -> Reason | None:
    """Return why waiting jobs of one pool may not have another deadline, all of them, or None: they would be accepted with it.

    ``jobs``: the policy knows them; an array's in order of index.  The policy is asked in a copy of the engine: there they are
    taken back and come again, at this instant.
    """
    if not jobs:
        return None
    pool = core.pool_of(jobs[0])
    engine = snapshot.load(pool.machine, pool.engine.policy, snapshot.dump(pool.engine))
    submitted = []
    for job in jobs:
        user, group = core.number_of(job.user), core.number_of(job.group)
        place = core.queues[job.queue].place
        request = run_limits.request_of(
            prepared, job.sequence, core.now, user, group, place, deadline=deadline, priority=job.priority,
            is_admitted=job.attempts > 0,
        )  # fmt: skip
        submitted.append(Submitted(request))
    done = engine.handle(core.now, [*(Withdrawn(job.row) for job in jobs), *submitted])
    own = set(done.arrived[-len(jobs) :])
    rejected = (action for action in done.actions if isinstance(action, Reject) and action.row in own)
    return next((msgspec.structs.replace(action.reason, blocked_by=()) for action in rejected), None)
