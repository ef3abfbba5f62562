"""Say where the output of a job can be read (qbatch output, the monitor)."""

from __future__ import annotations

import os
import pwd

from qbatch.daemon import attempts
from qbatch.daemon.connected_client import ConnectedClient
from qbatch.daemon.core.records import full_record
from qbatch.daemon.handlers.authority import may_see
from qbatch.daemon.service import Service
from qbatch.wire.errors import Refusal
from qbatch.wire.identifiers import JobKey
from qbatch.wire.records import JobRecord, OutputFiles
from qbatch.wire.requests import JobOutput


async def handle(service: Service, client: ConnectedClient, request: JobOutput) -> OutputFiles:
    """Return the places of the present or last attempt."""
    core = service.core
    key = core.key_of(request.job)
    job = core.find(key)
    if job is not None:
        record, is_mine = full_record(core, job), may_see(client.actor, job.uid)
    else:
        found = core.recent.get(key) or (await service.store.finished([key])).get(key)
        if found is None:
            raise Refusal("unknown-job", f"Unknown Job Id {core.id_of(key)}", core.id_of(key))
        record, is_mine = found, found.user == client.actor.user or may_see(client.actor, -1)
    name = record.id
    if not is_mine:
        raise Refusal(
            "not-permitted", f"Unauthorized Request {name}: the output is for its owner and for operators", name
        )
    if record.is_array:
        one = name.replace("[]", "[1]")
        raise Refusal("bad-request", f"{name} is an array: name one of its jobs, such as {one}", name)
    if service.outbox.executor is None:
        raise Refusal("unsupported", f"{name} is a timer (executor emulated): emulated jobs write no output", name)
    if record.started is None and record.state in "FX":
        raise Refusal("finished-job", f"{name} never ran, so there is no output ({record.comment or 'deleted'})", name)
    is_running = job is not None and job.holds_hosts
    is_waiting = record.started is None or not (is_running or record.state in "FX")
    return OutputFiles(
        job=name,
        state=record.state,
        attempt=record.run_count,
        output=_places(service, record, key, "out", is_running),
        error=_places(service, record, key, "err", is_running),
        join=record.join,
        is_waiting=is_waiting and record.state not in "FX",
        is_running=is_running,
        comment=record.comment,
        removed=record.extra.get("remove", "") if record.exit_status == 0 else "",
    )


def _places(service: Service, record: JobRecord, key: JobKey, which: str, is_running: bool) -> tuple[str, ...]:
    """Return where a file is or was: where nothing is delivered before the end, only the spool while the job runs."""
    assert service.outbox.executor is not None
    letter, spool, home = ("o", 0, _home(record.user)) if which == "out" else ("e", 1, _home(record.user))
    text = record.output if which == "out" else record.error
    path = attempts.local_path(text, record.directory or home, record.id, which)
    inner = f"-{key.member}" if key.member >= 0 else ""
    spooled = service.outbox.executor.spools(f"{key.sequence}{inner}.{max(record.run_count, 1)}")[spool]
    if letter in record.keep or path == "/dev/null":
        is_default = text.startswith(f"{record.directory.rstrip('/')}/{record.name}.{letter}")
        in_home = (f"{home}/{os.path.basename(path)}",) if "d" not in record.keep and is_default else ()
        return (*in_home, path)
    if is_running:
        return (spooled,)
    directory, _, file = os.path.dirname(spooled).rpartition("/")
    return (f"{directory}/undelivered/{file}.{os.path.basename(spooled)}", path)


def _home(user: str) -> str:
    try:
        return attempts.home_of(pwd.getpwnam(user))
    except KeyError:
        return "/"
