"""Queue a job (qsub)."""

from __future__ import annotations

from qbatch.daemon.core import dependencies, submission
from qbatch.daemon.core.faults import take_fault
from qbatch.daemon.core.state import Actor, Core
from qbatch.wire.errors import Refusal
from qbatch.wire.records import Submitted
from qbatch.wire.requests import Submit
from qbatch.wire.resources import format_duration


def handle(core: Core, actor: Actor, request: Submit) -> Submitted:
    """Queue a job, or say what would become of it."""
    if core.faults:
        fault = take_fault(core.faults, "submit-refused", request.spec.name)
        if fault is not None:
            raise Refusal("refused-by-fault", fault.message or "submissions are refused (a fault on demand)")
    if request.is_dry_run:
        queue, prepared = submission.check(core, actor, request.spec)
        dependencies.refuse_cycle(core, None, dependencies.parse(core, actor, request.spec.depend))
        count = f"{len(prepared.indices)} jobs" if prepared.indices else "a job"
        text = (
            f"would be queued in {queue.settings.name}: {count} of {prepared.demand.procs} processors in "
            f"{prepared.demand.hosts} chunks for {format_duration(prepared.walltime)}"
        )
        return Submitted(job="", comment=text)
    if len(request.key) > 200:
        raise Refusal("bad-value", "a submission key has at most 200 letters")
    return Submitted(job=core.id_of(submission.submit(core, actor, request.spec, request.key)))
