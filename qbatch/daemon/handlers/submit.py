"""Queue a job (qsub)."""

from __future__ import annotations

from qbatch.daemon.core import admission, dependencies, submission
from qbatch.daemon.core.faults import take_fault
from qbatch.daemon.core.state import Actor, Core
from qbatch.daemon.core.steps import Steps
from qbatch.daemon.handlers.verbs import handles
from qbatch.wire.deadlines import RESOURCE
from qbatch.wire.errors import Refusal
from qbatch.wire.identifiers import JobKey
from qbatch.wire.records import SubmissionRecord
from qbatch.wire.requests import Submit
from qbatch.wire.resources import format_duration


@handles(Submit)
def submit(core: Core, actor: Actor, request: Submit) -> Steps[SubmissionRecord | Refusal]:
    """Queue a job (an array in steps), or return what would become of it.

    A policy that may refuse judges the job before the answer; its refusal is the result, since the
    job has its number and its record.  The submission key is forgotten then: a repeated submission
    asks again.  If a refusal is raised, nothing has changed.
    """
    if request.is_dry_run:
        return _foreseen(core, actor, request)
    before = core.next_sequence
    if RESOURCE in request.spec.resources and (actor.uid, request.key) not in core.keys:
        queue, prepared = submission.check(core, actor, request.spec)
        admission.check_deadline(
            core, queue, prepared, admission.deadline_asked(core, request.spec)
        )
    key = yield from enter(core, actor, request)
    job = core.jobs.get(key.sequence) if key.sequence >= before else None
    if job is not None and core.pool_of(job).engine.may_refuse:
        refusal = admission.judge(core, job)
        if refusal is not None:
            core.keys.pop((actor.uid, request.key), None)
            return refusal
    return SubmissionRecord(job=core.id_of(key))


def enter(core: Core, actor: Actor, request: Submit) -> Steps[JobKey]:
    """Queue a job, such as one of a log; the pass that takes it in follows.  If the job is refused,
    nothing has changed."""
    _raise_fault(core, request)
    if len(request.key) > 200:
        raise Refusal("bad-value", "a submission key has at most 200 letters")
    return (yield from submission.submit(core, actor, request.spec, request.key))


def _raise_fault(core: Core, request: Submit) -> None:
    fault = take_fault(core.faults, "submit-refused", request.spec.name)
    if fault is not None:
        raise Refusal(
            "refused-by-fault", fault.message or "submissions are refused (a fault on demand)"
        )


def _foreseen(core: Core, actor: Actor, request: Submit) -> SubmissionRecord | Refusal:
    _raise_fault(core, request)
    spec = request.spec
    queue, prepared = submission.check(core, actor, spec)
    dependencies.refuse_cycle(core, None, dependencies.parse(core, actor, spec.depend))
    admission.check_deadline(core, queue, prepared, admission.deadline_asked(core, spec))
    quote = admission.quote(core, actor, spec, queue, prepared)
    if quote is not None and quote.reason is not None:
        return admission.refusal_of(admission.with_earliest(quote.reason, quote))
    count = f"{len(prepared.indices)} jobs" if prepared.indices else "a job"
    text = (
        f"would be queued in {queue.settings.name}: {count} of {prepared.demand.procs} processors "
        "in "
        f"{prepared.demand.hosts} chunks for {format_duration(prepared.walltime)}"
    )
    if quote is not None:
        text += f"; {core.pools[queue.pool].name_of_policy} would accept {'the first' if prepared.indices else 'it'}"
    return SubmissionRecord(job="", comment=text, quote=quote)
