"""Wait for jobs (qsub -W block=true, qbatch wait)."""

from __future__ import annotations

import asyncio

from qbatch.daemon.connected_client import ConnectedClient
from qbatch.daemon.service import Service
from qbatch.wire.errors import Refusal
from qbatch.wire.records import Outcome, Outcomes
from qbatch.wire.requests import Wait


async def handle(service: Service, client: ConnectedClient, request: Wait) -> Outcomes:
    """Answer when all the jobs have ended (or started)."""
    if request.until not in ("end", "start"):
        raise Refusal("bad-value", f"until={request.until[:20]!r} is neither end nor start")
    found: list[Outcome | asyncio.Future[Outcome]] = []
    try:
        for name in request.jobs:
            found.append(await _one(service, name, request.until))
        waits = [each for each in found if isinstance(each, asyncio.Future)]
        open_ones = (await asyncio.wait(waits, timeout=request.timeout))[1] if waits else set()
        if open_ones:
            raise Refusal(
                "timeout",
                f"{len(open_ones)} of {len(found)} jobs have not come to their {request.until} in {request.timeout:g} s",
            )
    finally:
        service.waiters.forget(request.until, [each for each in found if isinstance(each, asyncio.Future)])
    return Outcomes(outcomes=tuple(each.result() if isinstance(each, asyncio.Future) else each for each in found))


async def _one(service: Service, name: str, until: str) -> Outcome | asyncio.Future[Outcome]:
    core = service.core
    key = core.key_of(name)
    job = core.find(key)
    if job is not None and not job.is_over:
        if until == "start" and job.has_begun:
            return Outcome(name=core.id_of(key), state=job.state.letter)
        return service.waiters.enter(key, until)
    record = core.recent.get(key) or (await service.store.finished([key])).get(key)
    if record is None:
        core.live(name)  # says precisely what is wrong with it
        raise Refusal("unknown-job", f"Unknown Job Id {core.id_of(key)}", core.id_of(key))
    return Outcome(
        name=record.id, exit_status=record.exit_status, state=record.state, has_run=record.run_count > 0 or record.is_array
    )  # fmt: skip
