"""Show all that happened to a job (tracejob)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter

from qbatch.daemon.connected_client import ConnectedClient
from qbatch.daemon.core.flow import QUANTUM_OVER
from qbatch.daemon.core.records import full_record
from qbatch.daemon.service import Service
from qbatch.wire.errors import Refusal
from qbatch.wire.records import JobRecord, TrailEntry, Trails
from qbatch.wire.requests import Trail


async def handle(service: Service, client: ConnectedClient, request: Trail) -> Trails:
    """Return what the server, the scheduler and the accounting say of a job, in order."""
    core = service.core
    key = core.key_of(request.job)
    job = core.find(key)
    if job is not None:
        record = full_record(core, job)
    else:
        found = core.recent.get(key) or (await service.store.finished([key])).get(key)
        if found is None:
            raise Refusal("unknown-job", f"Unknown Job Id {core.id_of(key)}", core.id_of(key))
        record = found
    return Trails(job=record.id, entries=tuple(trail_of(record)))


def trail_of(record: JobRecord) -> list[TrailEntry]:
    """Return what happened to the job of a record, in order."""
    owner = record.owner
    entries = [
        (record.submitted, "S", "enqueuing into " + record.queue + ", state 1 hop 1"),
        (
            record.queued,
            "S",
            f"Job Queued at request of {owner}, owner = {owner}, job name = {record.name}, queue = {record.queue}",
        ),
        (record.queued, "A", f"queue={record.queue}"),
    ]
    entries += sorted(_thrown_away(record), key=itemgetter(0))
    entries += [(at, "S", f"the promised start is lost: {why}") for at, _, why in record.broken]
    if record.started is not None and (record.exec_host or record.is_array):
        entries.append((record.started, "L", "Job run"))
        entries.append(
            (record.started, "S", f"Job Run at request of Scheduler@{record.server} on exec_vnode {record.exec_vnode}")
        )
        entries.append(
            (
                record.started,
                "A",
                f"user={record.user} jobname={record.name} queue={record.queue} exec_host={record.exec_host}",
            )
        )
    changes = sorted(_changes(record), key=lambda change: change[0])
    entries += changes
    if record.ended is not None:
        used = " ".join(f"resources_used.{name}={value}" for name, value in record.used.items())
        if record.comment:
            entries.append((record.ended, "S", record.comment))
        entries.append((record.ended, "S", f"Exit_status={record.exit_status} {used}".rstrip()))
        entries.append(
            (
                record.ended,
                "A",
                f"user={record.user} jobname={record.name} queue={record.queue} Exit_status={record.exit_status} {used}".rstrip(),
            )
        )
    return [TrailEntry(at=at, kind=kind, text=text) for at, kind, text in entries if at is not None]


def _thrown_away(record: JobRecord) -> Iterator[tuple[int, str, str]]:
    """Yield the starts and ends of trials and of attempts that were lost."""
    run = f"Job Run at request of Scheduler@{record.server} on"
    for since, until, _, where in record.trials:
        yield since, "S", f"{run} trial on {where}"
        yield until, "S", QUANTUM_OVER
    for attempt, pieces in groupby(record.lost, key=lambda piece: piece[0]):
        ran = list(pieces)
        yield ran[0][1], "S", f"{run} {ran[0][4]}, attempt {attempt}"
        yield ran[-1][2], "S", f"attempt {attempt} is lost, job queued again"


def _changes(record: JobRecord) -> Iterator[tuple[int, str, str]]:
    """Yield what the last attempt met between its start and its end: suspensions, and other numbers of processors."""
    for since, until in record.pauses:
        yield since, "S", "Job suspended"
        if until is not None:
            yield until, "S", "Job resumed" if until != record.ended else "Job ended while suspended"
    for at, procs in record.sizes:
        yield at, "S", f"Job has {procs} processors; asked for {record.resources.get('ncpus', '1')}"
