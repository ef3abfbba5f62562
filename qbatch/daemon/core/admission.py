"""Admission by a policy that may refuse: a submission is answered by the pass that takes it in.

A job that goes to the engine at once is judged at the instant of its submission, by a pass of its pool that is made before the
answer.  Submission and pass are one command, so they are one entry of the journal and one commit, and a replay of the journal
makes the same pass at the same place.  A job that is held, that waits for a time, for other jobs or at a run limit is taken in
and judged by the pass that hands it to the policy later.  So is one that only closed hosts could hold, and one that qmove,
qalter, qrls or qorder brings there.

Where the policy never refuses all this costs nothing: its passes follow the answers, as law 3 says.
"""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from qbatch.daemon.core import deadlines, passes, run_limits
from qbatch.daemon.core.job import BatchJob, Prepared
from qbatch.daemon.core.state import Actor, Core, QueueState
from qbatch.model.quote import Quote
from qbatch.model.reasons import Reason
from qbatch.wire.errors import Refusal
from qbatch.wire.requests import Spec


def refusal_of(reason: Reason, name: str = "") -> Refusal:
    """Return what the asker is told of a job that the policy refuses; ``name``: its identifier, if it has one."""
    return Refusal("refused-by-policy", f"{reason.said_by}: {reason.text}", name, reason.code, reason.numbers)


def judge(core: Core, job: BatchJob) -> Refusal | None:
    """Let the policy judge a job, or the jobs of an array, that has just been taken in; return the refusal, if it is one.

    An array is refused if all of its jobs are; if not, those that are end as refused.  A job that does not go to the engine yet
    is not judged.
    """
    if not any(each.is_pending for each in core.members(job)):
        return None
    passes.make_pass(core, core.pool_of(job))
    if job.refused is None:
        return None
    reason = job.refused
    if job.deadline is not None:
        # What is refused changes nothing: the answer holds at this instant.
        user, group = core.number_of(job.user), core.number_of(job.group)
        request = run_limits.request_of(
            job.prepared, core.next_sequence, core.now, user, group, core.queues[job.queue].place, priority=job.priority
        )
        reason = with_earliest(reason, core.pool_of(job).engine.quote(request, core.now))
    return refusal_of(reason, core.id_of(job.key))


def with_earliest(reason: Reason, quote: Quote | None) -> Reason:
    """Return a reason that also tells the earliest deadline that would be accepted, where that is known."""
    earliest = quote.earliest_deadline if quote is not None else None
    if earliest is None:
        return reason
    moment = datetime.fromtimestamp(earliest // 1_000_000, UTC).isoformat()
    text = f"{reason.text}; the earliest deadline that would be accepted now is {moment}"
    return msgspec.structs.replace(reason, text=text, numbers={**reason.numbers, "earliest_deadline": earliest})


def quote(core: Core, actor: Actor, spec: Spec, queue: QueueState, prepared: Prepared) -> Quote | None:
    """Return what the policy of a queue would answer to a job (the first of an array) that is not submitted.

    None: it cannot say, or the job would not go to it at once.  What is due by now is taken in first, as it would be.
    """
    pool = core.pools[queue.pool]
    waits = spec.hold.strip("n ") or spec.depend or (spec.not_before or 0) > core.now
    names = run_limits.names_of(queue, actor.user)
    used = {name: core.run_limits[name].used for name in names if name in core.run_limits}
    if not pool.engine.may_refuse or waits or any(used.get(name, 0) >= run_limits.limit_of(core, name) for name in names):
        return None
    passes.make_pass(core, pool)
    user, group = (core.numbers.get(name, len(core.numbers)) for name in (actor.user, actor.group))
    job = run_limits.request_of(
        prepared, core.next_sequence, core.now, user, group, queue.place, deadline=deadlines.asked(core, spec),
        priority=spec.priority,
    )  # fmt: skip
    return pool.engine.quote(job, core.now)
