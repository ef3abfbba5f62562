"""Stop the daemon (qbatch down)."""

from __future__ import annotations

import asyncio

import msgspec

from qbatch.daemon.connected_client import ConnectedClient
from qbatch.daemon.service import Service
from qbatch.wire.records import Done
from qbatch.wire.requests import Delete, Shutdown

PATIENCE = 5.0
"""Seconds beyond the kill delay in which jobs that are ended must be gone."""

_encode = msgspec.json.Encoder().encode


async def handle(service: Service, client: ConnectedClient, request: Shutdown) -> Done:
    """Commit what was taken, snapshot, stop; jobs run on unless they are to end too."""
    text = ""
    if request.is_with_jobs:
        ended = await _end_all(service, client)
        text = f"{ended} running jobs were ended; "
    running = _running(service)
    waiting = sum(queue.waiting for queue in service.core.queues.values())
    if running and service.settings.executor == "emulated" and service.clock.mode == "real":
        text += f"{running} emulated jobs end at their time all the same; "
    elif running and service.settings.executor == "emulated":
        text += f"{running} emulated jobs stand still until the next qbatch up; "
    elif running:
        text += f"{running} jobs run on; "
    if waiting:
        text += f"{waiting} waiting ones stay queued; "
    service.stop(f"at request of {client.actor.user}")
    return Done(text=f"stopping; {text or 'no jobs are left; '}".removesuffix("; "))


def _running(service: Service) -> int:
    return sum(len(pool.running) for pool in service.core.pools)


async def _end_all(service: Service, client: ConnectedClient) -> int:
    """Delete every job that runs, through the journal, and wait until they have ended; return how many there were.

    No pass is made meanwhile: it would start waiting jobs in their place.
    """
    core = service.core
    service.pass_driver.hold()
    names = tuple(core.id_of(job.key) for pool in core.pools for job in pool.running.values())
    if names:
        request = Delete(jobs=names, message=f"ended by qbatch down --jobs of {client.actor.user}")
        service.change(client.actor, request, _encode(request))
    deadline = asyncio.get_running_loop().time() + core.settings.kill_delay / 1e6 + PATIENCE
    while _running(service) and asyncio.get_running_loop().time() < deadline:
        await asyncio.sleep(0.02)
    return len(names) - _running(service)
