"""Say when every waiting job is expected to start (qstat -T, qbatch forecast)."""

from __future__ import annotations

from qbatch.daemon.service import Caller, Service
from qbatch.wire.records import ForecastRecord, Forecasts
from qbatch.wire.requests import Forecast


async def handle(service: Service, caller: Caller, request: Forecast) -> Forecasts:
    """Run the policy forward from the present state, off the event loop, and return every waiting job's start."""
    made = max(service.core.now, service.clock.now())
    found = await service.forecasts.all()
    core = service.core
    records = [ForecastRecord(job=core.id_of(key), start=each.start, end=each.end) for key, each in found.items()]
    records.sort(key=lambda record: record.start)
    error = service.forecasts.error()
    return Forecasts(
        made=made,
        jobs=tuple(records[:100_000]),
        error_mean=error.get("mean_s"),
        error_count=int(error.get("count", 0)),
        server=core.settings.name,
    )
