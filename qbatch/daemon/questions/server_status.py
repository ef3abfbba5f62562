"""Show the server (qstat -B, qbatch status)."""

from __future__ import annotations

import os
from collections.abc import Iterator

import msgspec

from qbatch.daemon.connected_client import ConnectedClient
from qbatch.daemon.core.state import Core
from qbatch.daemon.service import Service
from qbatch.daemon.trace_source import fed_log
from qbatch.distribution import __version__
from qbatch.results.shown import moment, span
from qbatch.wire.records import PhaseRecord, ServerRecord
from qbatch.wire.requests import ServerStatus


def phases(core: Core) -> Iterator[PhaseRecord]:
    """Return whose turn it is in each pool that is shared in time."""
    for pool in core.pools:
        phase = pool.engine.phase()
        if phase is not None:
            yield PhaseRecord(
                pool=pool.settings.name,
                name=phase.name,
                until=phase.until,
                following=dict(phase.following),
                on_disk=phase.on_disk,
                procs_on_disk=phase.procs_on_disk,
            )


def handle(service: Service, client: ConnectedClient, request: ServerStatus) -> ServerRecord:
    """Return all that is known of the server."""
    core, settings = service.core, service.settings
    counts: dict[str, int] = {}
    for queue in core.queues.values():
        for letter, count in queue.letter_counts.items():
            if count:
                counts[letter] = counts.get(letter, 0) + count
    clock = service.clock.record()
    if service.trace is not None:
        clock = msgspec.structs.replace(clock, log_arrived=core.log_arrived, log_jobs=service.trace.size)
    problems = []
    if service.is_full:
        problems.append(f"the disk of {service.store.directory} is full: submissions are refused")
    if clock.ahead:
        problems.append(
            f"the machine's clock was set back: the server's, at {moment(clock.now)}, is {span(clock.ahead)} ahead of it until "
            "the server is started again (qbatch down, qbatch up; jobs run on)"
        )
    instance = service.instance
    return ServerRecord(
        name=settings.name,
        version=__version__,
        state="Active" if not service.stop_reason else "Terminating",
        pid=os.getpid(),
        policy=", ".join(dict.fromkeys(pool.name_of_policy for pool in core.pools)),
        executor=settings.executor,
        default_queue=settings.default_queue,
        counts=counts,
        total=sum(counts.values()),
        clock=clock,
        started=instance.started,
        socket=instance.socket,
        store=str(service.store.directory),
        config=instance.config,
        is_compiled=instance.is_compiled(),
        operators=settings.operators,
        managers=settings.managers,
        problems=tuple(problems),
        is_history_kept=settings.is_history_shown,
        forecast_error=service.forecasts.error(),
        phases=tuple(phases(core)),
        log=fed_log(core),
    )
