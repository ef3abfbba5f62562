"""Why a job waits: the reasons of the server itself, or those of the engine and its policy."""

from __future__ import annotations

from itertools import islice

from qbatch.daemon.core import dependencies, run_limits
from qbatch.daemon.core.job import BY_POLICY, BY_USER, BatchJob, BatchState, hold_text
from qbatch.daemon.core.state import Core
from qbatch.model.actions import parts_of
from qbatch.model.reasons import Reason
from qbatch.wire.resources import format_duration


def reason_for(core: Core, job: BatchJob) -> Reason:
    """Return why a job is in its state, with the numbers behind it."""
    if job.is_array and not job.unmet:
        waiting = [each for each in core.members(job) if not each.holds_hosts]
        if waiting:
            return reason_for(core, waiting[0])
        return Reason("not-waiting", "server", "all jobs of the array run or have run")
    if job.state is BatchState.HELD:
        if job.is_subjob and core.jobs[job.sequence].unmet:
            return reason_for(core, core.jobs[job.sequence])
        rival = next(
            (
                key
                for key in dependencies.rivals(core, job.key)
                if dependencies.has_begun(core, key)
            ),
            None,
        )
        if rival is not None:
            text = (
                f"waits: only one job of its set runs (depend=runone), and {core.id_of(rival)} "
                "has begun"
            )
            return Reason("dependency", "server", text, {"unmet": job.unmet})
        if job.unmet:
            text = (
                "waits for other jobs: "
                f"{job.spec.depend or 'they name it in depend=before...'} "
                f"({job.unmet} not met yet)"
            )
            return Reason("dependency", "server", text, {"unmet": job.unmet})
        return Reason(
            "held",
            "server",
            f"is held ({hold_text(job.hold)}); release it with: qrls {core.id_of(job.key)}",
        )
    if job.state is BatchState.WAITING_FOR_TIME and job.not_before is not None:
        text = f"may not start before {job.not_before / 1e6:.15g} s"
        return Reason("not-before", "server", text, {"not_before": job.not_before})
    if job.holds_hosts:
        return _on_hosts(core, job)
    if job.state is not BatchState.QUEUED:
        return Reason("not-waiting", "server", f"is not waiting: its state is {job.state.letter}")
    if job.run_limit:
        return _at_run_limit(core, job.run_limit)
    if job.is_pending or job.row < 0:
        return Reason("arriving", "server", "has just arrived; the next pass looks at it")
    return core.pool_of(job).engine.explain(job.row)


def _on_hosts(core: Core, job: BatchJob) -> Reason:
    """Return how a job runs, or why it is suspended, in server time."""
    pool, attempt = core.pool_of(job), job.present
    hosts = ", ".join(
        pool.machine.hosts[place].name
        for place, _, _ in islice(parts_of(attempt.allocation), 8)
        if place != pool.machine.server
    )
    lived = attempt.ran(core.now)
    ran, most = format_duration(lived), format_duration(job.prepared.walltime)
    asked = job.prepared.request.procs
    if job.state is BatchState.SUSPENDED:
        causes = {
            BY_USER: "by a user (go on: qsig -s resume)",
            BY_POLICY: f"by {pool.name_of_policy}",
        }
        cause = causes.get(attempt.stopped_by, "by a user and by the policy")
        begun = attempt.pauses[-1][0]
        since = format_duration(core.now - begun)
        keeps, numbers = "keeps its memory", {"since": begun, "ran": lived}
        if (
            attempt.stopped_by == BY_POLICY
            and (reason := pool.engine.explain(job.row)).code == "on-disk"
        ):
            keeps, numbers = reason.text, numbers | reason.numbers
        text = f"is suspended {cause} for {since} on {hosts}, {keeps}, has run for {ran} of {most}"
        return Reason("suspended", "server", text, numbers)
    if job.row >= 0 and pool.engine.is_trial(job.row):
        text = (
            f"has a quantum on {hosts} and has run for {ran}; if it does not end within it, it "
            "waits again and starts over"
        )
        return Reason("quantum", "server", text, {"ran": lived})
    used = format_duration(job.walltime_used(core.now))
    share = f" on {job.size} of its {asked} processors" if job.size < asked else ""
    spent = (
        f", {used} of its {most} of walltime are used"
        if attempt.sizes
        else f", at most {most} in all"
    )
    return Reason("not-waiting", "server", f"has run for {ran} on {hosts}{share}{spent}")


def _at_run_limit(core: Core, name: str) -> Reason:
    kind, _, rest = name.partition(" ")
    limit = run_limits.limit_of(core, name)
    run_limit = core.run_limits.get(name)
    numbers = {"limit": limit, "used": run_limit.used if run_limit is not None else 0}
    if kind == "array":
        return Reason(
            "array-limit",
            "server",
            f"its array may have {limit} jobs running or next at once",
            numbers,
        )
    queue = core.queues[rest.partition(" ")[0]]
    name = queue.settings.name
    if kind == "queue" and not queue.started:
        return Reason(
            "queue-stopped",
            "server",
            f"queue {name} is stopped; start it with: qstart {name}",
            numbers,
        )
    if kind == "queue":
        return Reason(
            "queue-limit", "server", f"queue {name} lets {limit} jobs run at once", numbers
        )
    return Reason(
        "user-limit", "server", f"queue {name} lets {limit} jobs of one user run at once", numbers
    )
