"""Say why a job waits, and when it is expected to start (qbatch explain)."""

from __future__ import annotations

from qbatch.daemon.connected_client import ConnectedClient
from qbatch.daemon.core.excess import excess
from qbatch.daemon.service import Service
from qbatch.results.shown import is_cancelled
from qbatch.wire.errors import Refusal
from qbatch.wire.records import Explanation
from qbatch.wire.requests import Explain


async def handle(service: Service, client: ConnectedClient, request: Explain) -> Explanation:
    """Explain one job: the reason now, the promise if it has one, the forecast if there is one."""
    core = service.core
    key = core.key_of(request.job)
    job = core.find(key)
    if job is None or job.is_over:
        return await _ended(service, request.job)
    reason = service.forecasts.reason(job)
    estimate, none = None, ""
    waiting = [each.key for each in core.members(job) if each.is_waiting]
    if waiting:
        made = await service.forecasts.until(jobs=[job])
        expected = [made.found[key].start for key in waiting if key in made.found]
        estimate = min(expected, default=None)
        still = [each for key in waiting if (each := core.find(key)) is not None and each.is_waiting]
        none = service.forecasts.why_none(still[0], made)[1] if estimate is None and still else ""
    executor, beyond = service.outbox.executor, ""
    if job.holds_hosts and executor is not None:
        beyond = excess(core, job, executor.used(job.file_key))
    pool = core.pool_of(job)
    ahead = [pool.by_row[row] for row in reason.blocked_by if row < len(pool.by_row)]
    return Explanation(
        job=core.id_of(job.key),
        state=job.state.letter,
        code=reason.code,
        text=f"{reason.text}; {beyond}" if beyond else reason.text,
        said_by=reason.said_by,
        numbers=reason.numbers,
        blocked_by=tuple(core.id_of(other.key) for other in ahead if other is not None),
        promised=job.promised,
        estimated_start=estimate,
        no_estimate=none,
        now=max(core.now, service.clock.now()),
    )


async def _ended(service: Service, name: str) -> Explanation:
    """Say how a job ended that is asked about too late to wait."""
    core = service.core
    key = core.key_of(name)
    record = core.recent.get(key) or (await service.store.finished([key])).get(key)
    if record is None:
        core.live(name)
        raise Refusal("unknown-job", f"Unknown Job Id {core.id_of(key)}", core.id_of(key))
    why = f" ({record.comment})" if record.comment else ""
    if record.refused is not None:
        said = record.refused
        return Explanation(job=record.id, state=record.state, code=said.code, text=f"was refused: {said.text}",
                           said_by=said.said_by, numbers=said.numbers, now=core.now)  # fmt: skip
    how = "was cancelled before it ran" if is_cancelled(record) else f"has ended with {record.exit_status}"
    text = f"{how}{why}; see: tracejob {record.id}"
    return Explanation(job=record.id, state=record.state, code="ended", text=text, said_by="server", now=core.now)
