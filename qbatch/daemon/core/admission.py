"""Admission by a policy that may refuse: the pass that takes a submission in decides the answer.

The policy judges a job that goes to the engine at once at the instant of its submission: the server
makes a pass of the pool before it answers.  Submission and pass are one command, so they are one
entry of the journal and one commit, and a replay of the journal makes the same pass at the same
place.  A job that is held, or waits for a time, for other jobs or at a run limit, is queued; the
pass that later hands it to the policy judges it.  The same holds for a job that only closed hosts
could run, and for one that qmove, qalter, qrls or qorder brings to the policy.

If the policy never refuses, all this costs nothing: its passes follow the answers (docs/design.md,
"The laws", 3).

A deadline is an instant or a time from the submission, and is the same for every job of an array.
A job that cannot go to the policy yet gets no promise: the pass that hands it to the policy
refuses it if its deadline can no longer be kept.  An accepted job that has to wait again, because
its host went down or it is rerun, keeps its deadline and is not refused; its promise may break.  A
new deadline of an array is for all its jobs that have not ended.  The policy judges those that it
knows together: all of them get the deadline, or none.
"""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from qbatch.daemon.core import passes, run_limits
from qbatch.daemon.core.job import BatchJob, Prepared
from qbatch.daemon.core.state import Actor, Core, QueueState
from qbatch.engine import snapshot
from qbatch.model.actions import Reject
from qbatch.model.events import Submitted, Withdrawn
from qbatch.model.quote import Quote
from qbatch.model.reasons import Reason
from qbatch.wire.deadlines import RESOURCE, deadline_of
from qbatch.wire.errors import Refusal
from qbatch.wire.requests import Spec
from qbatch.wire.resources import format_duration


def deadline_asked(core: Core, spec: Spec) -> int | None:
    """Return the deadline that a specification asks for at this instant, or None; refuse one that
    cannot be read."""
    text = spec.resources.get(RESOURCE)
    if text is None:
        return None
    try:
        return deadline_of(text, core.now)
    except ValueError as error:
        raise Refusal("bad-value", f"illegal -l value: {RESOURCE}: {error}") from None


def check_deadline(core: Core, queue: QueueState, prepared: Prepared, deadline: int | None) -> None:
    """Refuse a deadline that cannot be kept or that the policy would ignore, with the reason and
    the way out."""
    if deadline is None:
        return
    pool = core.pools[queue.pool]
    if not getattr(pool.engine.policy, "takes_deadlines", False):
        text = (
            f"policy {pool.name_of_policy} of queue {queue.settings.name} takes no deadlines; "
            f"leave out -l {RESOURCE}, or set "
            "a policy that takes them, such as qops"
        )
        raise Refusal("refused-by-policy", text, reason="no-deadlines")
    if deadline < core.now + prepared.walltime:
        left = (
            f"there are {format_duration(deadline - core.now)} until then"
            if deadline > core.now
            else "it is past"
        )
        text = (
            f"the deadline cannot be kept: {left}, and the job asks for "
            f"walltime={format_duration(prepared.walltime)}; "
            "ask for a later deadline or a shorter walltime"
        )
        raise Refusal("refused-by-policy", text, reason="deadline-too-soon")


def refusal_of_deadline(
    core: Core, jobs: list[BatchJob], deadline: int, prepared: Prepared
) -> Reason | None:
    """Return why the policy refuses another deadline to waiting jobs of one pool, or None if it
    accepts all of them.

    ``jobs``: jobs that the policy knows; those of an array in order of index.  The policy is asked
    in a copy of the engine, where the jobs are withdrawn and submitted again at this instant.
    """
    if not jobs:
        return None
    pool = core.pool_of(jobs[0])
    engine = snapshot.load(pool.machine, pool.engine.policy, snapshot.dump(pool.engine))
    submitted = [
        Submitted(run_limits.request_of(core, job, prepared, core.now, deadline=deadline))
        for job in jobs
    ]
    done = engine.handle(core.now, [*(Withdrawn(job.row) for job in jobs), *submitted])
    own = set(done.arrived[-len(jobs) :])
    rejected = (
        action for action in done.actions if isinstance(action, Reject) and action.row in own
    )
    return next(
        (msgspec.structs.replace(action.reason, blocked_by=()) for action in rejected), None
    )


def refusal_of(reason: Reason, name: str = "") -> Refusal:
    """Return the refusal that the client gets for a job that the policy refuses; ``name``: its
    identifier, if it has one."""
    return Refusal(
        "refused-by-policy", f"{reason.said_by}: {reason.text}", name, reason.code, reason.numbers
    )


def judge(core: Core, job: BatchJob) -> Refusal | None:
    """Let the policy judge a job or an array that has just been submitted; return the refusal, or
    None.

    An array is refused if all of its jobs are; otherwise only the refused ones end.  A job that
    does not go to the engine yet is not judged.
    """
    if not any(each.is_pending for each in core.members(job)):
        return None
    passes.make_pass(core, core.pool_of(job))
    reason = job.refused
    if reason is None:
        return None
    if job.deadline is not None:
        # A refused job changes nothing, so this answer holds at this instant.
        request = run_limits.request_of(
            core, job, job.prepared, core.now, number=core.next_sequence, deadline=None
        )
        reason = with_earliest(reason, core.pool_of(job).engine.quote(request, core.now))
    return refusal_of(reason, core.id_of(job.key))


def with_earliest(reason: Reason, quote: Quote | None) -> Reason:
    """Return a reason with the earliest deadline that would be accepted, if that is known."""
    earliest = quote.earliest_deadline if quote is not None else None
    if earliest is None:
        return reason
    moment = datetime.fromtimestamp(earliest // 1_000_000, UTC).isoformat()
    text = f"{reason.text}; the earliest deadline that would be accepted now is {moment}"
    return msgspec.structs.replace(
        reason, text=text, numbers={**reason.numbers, "earliest_deadline": earliest}
    )


def quote(
    core: Core, actor: Actor, spec: Spec, queue: QueueState, prepared: Prepared
) -> Quote | None:
    """Return what the policy of a queue would answer to a job (the first of an array), without
    submitting it.

    None: the policy cannot answer, or the job would not go to it at once.  What is due by now is
    handled first, as at a submission.
    """
    pool = core.pools[queue.pool]
    waits = spec.hold.strip("n ") or spec.depend or (spec.not_before or 0) > core.now
    names = run_limits.names_of(queue, actor.user)
    if not pool.engine.may_refuse or waits or any(run_limits.is_full(core, name) for name in names):
        return None
    passes.make_pass(core, pool)
    user, group = (core.numbers.get(name, len(core.numbers)) for name in (actor.user, actor.group))
    job = msgspec.structs.replace(
        prepared.request,
        number=core.next_sequence,
        submit=core.now,
        is_rerunnable=spec.is_rerunnable,
        user=user,
        group=group,
        queue=queue.place,
        deadline=deadline_asked(core, spec),
        priority=spec.priority,
    )
    return pool.engine.quote(job, core.now)
