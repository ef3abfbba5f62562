"""Why a job waits: what the server itself says, or what the engine and its policy say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qbatch.daemon.core import gates
from qbatch.daemon.core.job import hold_text
from qbatch.model.reasons import Reason

if TYPE_CHECKING:
    from qbatch.daemon.core.job import BatchJob
    from qbatch.daemon.core.state import Core


def reason_for(core: Core, job: BatchJob) -> Reason:
    """Return why a job is where it is, with the numbers behind it."""
    if job.is_array and not job.unmet:
        waiting = [each for each in core.members(job) if each.letter not in "RSE"]
        if waiting:
            return reason_for(core, waiting[0])
        return Reason("not-waiting", "server", "all jobs of the array run or have run")
    if job.letter == "H":
        if job.is_subjob and core.jobs[job.sequence].unmet:
            return reason_for(core, core.jobs[job.sequence])
        if job.unmet:
            text = f"waits for other jobs: {job.spec.depend or 'they were submitted with before...'} ({job.unmet} not met yet)"
            return Reason("dependency", "server", text, {"unmet": job.unmet})
        return Reason("held", "server", f"is held ({hold_text(job.hold)}); release it with: qrls {core.id_of(job.key)}")
    if job.letter == "W":
        text = f"may not start before {job.not_before / 1e6:.0f} s"
        return Reason("not-before", "server", text, {"not_before": job.not_before})
    if job.letter in "RSE":
        hosts = ", ".join(core.pool_of(job).machine.hosts[chunk.host].name for chunk in job.allocation[:8])
        ran, most = job.ran(core.now) / 1e6, job.prepared.walltime / 1e6
        return Reason("not-waiting", "server", f"runs since {ran:.0f} s on {hosts}, at most {most:.0f} s in all")
    if job.letter != "Q":
        return Reason("not-waiting", "server", f"is not waiting: its state is {job.letter}")
    if job.gate:
        return _at_gate(core, job)
    if job.is_pending or job.row < 0:
        return Reason("arriving", "server", "has just arrived; the next pass looks at it")
    return core.pool_of(job).engine.explain(job.row)


def _at_gate(core: Core, job: BatchJob) -> Reason:
    kind, _, rest = job.gate.partition(" ")
    limit = gates.limit_of(core, job.gate)
    gate = core.gates.get(job.gate)
    numbers = {"limit": limit, "used": gate.used if gate is not None else 0}
    if kind == "array":
        return Reason("array-limit", "server", f"its array may have {limit} jobs running or next at once", numbers)
    queue = core.queues[rest.partition(" ")[0]]
    name = queue.settings.name
    if kind == "queue" and not queue.started:
        return Reason("queue-stopped", "server", f"queue {name} is stopped; start it with: qstart {name}", numbers)
    if kind == "queue":
        return Reason("queue-limit", "server", f"queue {name} lets {limit} jobs run at once", numbers)
    text = f"queue {name} lets {limit} jobs of one user run at once"
    return Reason("user-limit", "server", text, numbers)
