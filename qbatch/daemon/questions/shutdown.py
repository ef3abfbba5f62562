"""Stop the daemon (qbatch down, qterm)."""

from __future__ import annotations

import asyncio

import msgspec

from qbatch.daemon.connected_client import ConnectedClient
from qbatch.daemon.service import Service
from qbatch.wire.records import Done
from qbatch.wire.requests import Delete, Rerun, Shutdown

PATIENCE = 5.0
"""Seconds beyond the kill delay in which jobs that are ended must be gone."""

_encode = msgspec.json.Encoder().encode


async def handle(service: Service, client: ConnectedClient, request: Shutdown) -> Done:
    """Commit what was taken, snapshot, stop; jobs run on unless they are to end too."""
    text = ""
    if request.is_requeueing or request.is_with_jobs:
        again, ended = await _empty(service, client, request)
        text += f"{again} running jobs are queued again; " if request.is_requeueing else ""
        text += f"{ended} running jobs were ended; " if request.is_with_jobs else ""
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


async def _empty(service: Service, client: ConnectedClient, request: Shutdown) -> tuple[int, int]:
    """Queue again and end, through the journal, the running jobs that are meant, and wait until they are gone; return how many
    of each there were.

    No pass is made meanwhile: it would start waiting jobs in their place.
    """
    core = service.core
    service.pass_driver.hold()
    running = [job for pool in core.pools for job in pool.running.values()]
    again = [core.id_of(job.key) for job in running if request.is_requeueing and job.spec.is_rerunnable]
    ended = [core.id_of(job.key) for job in running if request.is_with_jobs]
    ended = [name for name in ended if name not in set(again)]
    if again:
        rerun = Rerun(jobs=tuple(again))
        service.change(client.actor, rerun, _encode(rerun))
    if ended:
        delete = Delete(jobs=tuple(ended), message=f"ended with the server by {client.actor.user}")
        service.change(client.actor, delete, _encode(delete))
    left = len(running) - len(again) - len(ended)
    deadline = asyncio.get_running_loop().time() + core.settings.kill_delay / 1e6 + PATIENCE
    while _running(service) > left and asyncio.get_running_loop().time() < deadline:
        await asyncio.sleep(0.02)
    return len(again), len(ended)
