"""Say when every waiting job is expected to start (qstat -T, qbatch forecast)."""

from __future__ import annotations

from qbatch.daemon.caller import Caller
from qbatch.daemon.core.state import Core
from qbatch.daemon.service import Service
from qbatch.wire.identifiers import JobKey
from qbatch.wire.records import ForecastRecord, Forecasts
from qbatch.wire.requests import Forecast

MOST = 100_000
"""Jobs in one answer."""


async def handle(service: Service, caller: Caller, request: Forecast) -> Forecasts:
    """Run the policy forward from the present state, off the event loop, and return every waiting job's start."""
    made = max(service.core.now, service.clock.now())
    found = await service.forecasts.all()
    core = service.core
    first = sorted(found.items(), key=lambda item: item[1].start)[: request.limit or MOST]
    records = [
        ForecastRecord(job=core.id_of(key), start=each.start, end=each.end, promised=_promised(core, key))
        for key, each in first
    ]
    error = service.forecasts.error()
    return Forecasts(
        made=made,
        jobs=tuple(records),
        error_mean=error.get("mean_s"),
        error_count=int(error.get("count", 0)),
        server=core.settings.name,
    )


def _promised(core: Core, key: JobKey) -> int | None:
    job = core.find(key)
    return job.promised if job is not None and job.promised >= 0 else None
