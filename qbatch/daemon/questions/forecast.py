"""Say when every waiting job is expected to start (qstat -T, qbatch forecast)."""

from __future__ import annotations

import asyncio
from itertools import islice

import msgspec

from qbatch.daemon.connected_client import ConnectedClient
from qbatch.daemon.core.state import Core
from qbatch.daemon.service import Service
from qbatch.wire.identifiers import JobKey
from qbatch.wire.records import ForecastRecord, Forecasts
from qbatch.wire.requests import Forecast

MOST = 100_000
"""Jobs in one answer."""

PART = 500
"""Jobs that are looked at before other requests have their turn."""


async def handle(service: Service, client: ConnectedClient, request: Forecast) -> Forecasts:
    """Run the policy forward from the present state, off the event loop, and return every waiting job's start."""
    made = max(service.core.now, service.clock.now())
    most = min(request.limit, MOST) if request.limit > 0 else MOST
    told = await service.forecasts.until(first=most)
    core = service.core
    records = []
    for key, each in islice(told.found.items(), most):  # they come by start
        records.append(msgspec.structs.replace(_record(core, key), start=each.start, end=each.end))
        if len(records) % PART == 0:
            await asyncio.sleep(0)
    looked_at = 0
    for number in [job.sequence for job in core.live_jobs()]:  # some may leave in the meantime
        whole = core.jobs.get(number)
        for job in core.members(whole) if whole is not None else ():
            if len(records) < most and job.is_waiting and not job.is_array and job.key not in told.found:
                code, reason = service.forecasts.why_none(job, told)
                records.append(msgspec.structs.replace(_record(core, job.key), code=code, reason=reason))
            looked_at += 1
            if looked_at % PART == 0:
                await asyncio.sleep(0)
    error = service.forecasts.error()
    return Forecasts(
        made=made,
        jobs=tuple(records),
        error_mean=error.get("mean_s"),
        error_count=int(error.get("count", 0)),
        server=core.settings.name,
    )


def _record(core: Core, key: JobKey) -> ForecastRecord:
    """Return what is known of a job without a forecast; it may have left since that was made."""
    job = core.find(key)
    if job is None:
        return ForecastRecord(job=core.id_of(key))
    return ForecastRecord(job=core.id_of(key), promised=job.promised, deadline=job.deadline)
