"""Questions about jobs: why one waits, what happened to it, where its output is, when it ends, when
jobs start."""

from __future__ import annotations

import asyncio
import os
import pwd
from collections.abc import Iterator
from itertools import groupby, islice
from operator import itemgetter

import msgspec

from qbatch.daemon import attempts
from qbatch.daemon.connection import ConnectedClient
from qbatch.daemon.core import reservations
from qbatch.daemon.core.accounting import text_of_record
from qbatch.daemon.core.flow import QUANTUM_OVER
from qbatch.daemon.core.records import excess, full_record
from qbatch.daemon.core.state import Core
from qbatch.daemon.handlers.verbs import handles, is_operator, may_see
from qbatch.daemon.service import Service
from qbatch.model.reasons import Reason
from qbatch.results.shown import is_cancelled
from qbatch.wire import records, requests
from qbatch.wire.errors import Refusal
from qbatch.wire.identifiers import JobKey

MOST_FORECASTS = 100_000
"""Jobs in one answer."""

PART = 500
"""Jobs in a forecast after which other requests have their turn."""


async def _finished(service: Service, name: str, *, or_gone: bool = False) -> records.JobRecord:
    """Return the record of a job that has ended; ``or_gone``: the refusal of one without a record
    says if it ever existed."""
    core = service.core
    key = core.key_of(name)
    record = core.recent.get(key) or (await service.store.finished([key])).get(key)
    if record is None:
        if or_gone:
            core.live(name)
        raise Refusal("unknown-job", f"Unknown Job Id {core.id_of(key)}", core.id_of(key))
    return record


@handles(requests.Explain)
async def explain(
    service: Service, client: ConnectedClient, request: requests.Explain
) -> records.Explanation:
    """Return why a job waits: the present reason, its promise and its forecast, if it has them; or
    what a reservation keeps."""
    core = service.core
    if not core.is_live(request.job):
        kept = reservations.explanation(core, request.job, service.now)
        if kept is not None:
            return kept
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
        still = [
            each for key in waiting if (each := core.find(key)) is not None and each.is_waiting
        ]
        none = service.forecasts.why_none(still[0], made)[1] if estimate is None and still else ""
    executor, beyond = service.outbox.executor, ""
    if job.holds_hosts and executor is not None:
        beyond = excess(core, job, executor.used(job.file_key))
    pool = core.pool_of(job)
    ahead = [pool.by_row[row] for row in reason.blocked_by if row < len(pool.by_row)]
    return records.Explanation(
        job=core.id_of(job.key),
        state=job.state.letter,
        code=reason.code,
        said_by=reason.said_by,
        numbers=reason.numbers,
        text=f"{reason.text}; {beyond}" if beyond else reason.text,
        blocked_by=tuple(core.id_of(other.key) for other in ahead if other is not None),
        promised=job.promised,
        estimated_start=estimate,
        no_estimate=none,
        now=service.now,
    )


async def _ended(service: Service, name: str) -> records.Explanation:
    """Return how a job ended."""
    record = await _finished(service, name, or_gone=True)
    reason = record.refused
    if reason is None:
        how = (
            "was cancelled before it ran"
            if is_cancelled(record)
            else f"has ended with {record.exit_status}"
        )
        why = f" ({record.comment})" if record.comment else ""
        reason = Reason("ended", "server", f"{how}{why}; see: tracejob {record.id}")
    else:
        reason = msgspec.structs.replace(reason, text=f"was refused: {reason.text}")
    return records.Explanation(
        job=record.id,
        state=record.state,
        code=reason.code,
        text=reason.text,
        said_by=reason.said_by,
        numbers=reason.numbers,
        now=service.core.now,
    )


@handles(requests.Wait)
async def wait(
    service: Service, client: ConnectedClient, request: requests.Wait
) -> records.Outcomes:
    """Answer when all named jobs have ended (or started)."""
    if request.until not in ("end", "start"):
        raise Refusal("bad-value", f"until={request.until[:20]!r} is neither end nor start")
    found: list[records.Outcome | asyncio.Future[records.Outcome]] = []
    try:
        for name in request.jobs:
            found.append(await _one(service, name, request.until))
        waits = [each for each in found if isinstance(each, asyncio.Future)]
        open_ones = (await asyncio.wait(waits, timeout=request.timeout))[1] if waits else set()
        if open_ones:
            missed = f"{len(open_ones)} of {len(found)} jobs have not come to their {request.until}"
            raise Refusal("timeout", f"{missed} in {request.timeout:g} s")
    finally:
        service.waiters.forget(
            request.until, [each for each in found if isinstance(each, asyncio.Future)]
        )
    return records.Outcomes(
        outcomes=tuple(
            each.result() if isinstance(each, asyncio.Future) else each for each in found
        )
    )


async def _one(
    service: Service, name: str, until: str
) -> records.Outcome | asyncio.Future[records.Outcome]:
    core = service.core
    key = core.key_of(name)
    job = core.find(key)
    if job is not None and not job.is_over:
        if until == "start" and job.has_begun:
            return records.Outcome(name=core.id_of(key), state=job.state.letter)
        return service.waiters.enter(key, until)
    record = await _finished(service, name, or_gone=True)
    has_run = record.run_count > 0 or record.is_array
    return records.Outcome(
        name=record.id, exit_status=record.exit_status, state=record.state, has_run=has_run
    )


@handles(requests.Trail)
async def trail(
    service: Service, client: ConnectedClient, request: requests.Trail
) -> records.Trails:
    """Return all that happened to a job (tracejob), in order, by server, scheduler and
    accounting."""
    job = service.core.find(service.core.key_of(request.job))
    record = (
        full_record(service.core, job) if job is not None else await _finished(service, request.job)
    )
    return records.Trails(job=record.id, entries=tuple(trail_of(record)))


def trail_of(record: records.JobRecord) -> list[records.TrailEntry]:
    """Return what happened to the job of a record, in order."""
    return [
        records.TrailEntry(at=at, kind=kind, text=text)
        for at, kind, text in _happenings(record)
        if at is not None
    ]


def _happenings(record: records.JobRecord) -> Iterator[tuple[int | None, str, str]]:
    owner = record.owner
    run = f"Job Run at request of Scheduler@{record.server} on"
    first = "H" if record.state == "H" or record.depend else "W" if record.not_before else "Q"
    yield record.submitted, "S", f"enqueuing into {record.queue}, state {first} hop 1"
    queued = (
        f"Job Queued at request of {owner}, owner = {owner}, job name = {record.name}, queue "
        f"= {record.queue}"
    )
    yield record.queued, "S", queued
    yield record.queued, "A", text_of_record(record, "Q")
    yield from sorted(_lost_runs(record, run), key=itemgetter(0))
    for at, _, why in record.broken:
        yield at, "S", f"the promised start is lost: {why}"
    if record.started is not None and (record.exec_host or record.is_array):
        yield record.started, "L", "Job run"
        yield record.started, "S", f"{run} exec_vnode {record.exec_vnode}"
        yield record.started, "A", text_of_record(record, "S")
    yield from sorted(_changes(record), key=itemgetter(0))
    if record.ended is not None:
        if record.started is not None:
            substate = "42" if record.session else "41"
            yield (
                record.ended,
                "S",
                f"Obit received momhop:1 serverhop:1 state:R substate:{substate}",
            )
        if record.comment:
            yield record.ended, "S", record.comment
        used = " ".join(f"resources_used.{name}={value}" for name, value in record.used.items())
        end = f"Exit_status={record.exit_status} {used}".rstrip()
        yield record.ended, "S", end
        yield record.ended, "S", f"dequeuing from {record.queue}, state {record.state}"
        yield record.ended, "A", text_of_record(record, "E", record.ended)


def _lost_runs(record: records.JobRecord, run: str) -> Iterator[tuple[int, str, str]]:
    """Yield the starts and ends of trial runs and of attempts that were lost."""
    for since, until, _, where in record.trials:
        yield since, "S", f"{run} trial on {where}"
        yield until, "S", QUANTUM_OVER
    for attempt, intervals in groupby(record.lost, key=itemgetter(0)):
        ran = list(intervals)
        yield ran[0][1], "S", f"{run} {ran[0][4]}, attempt {attempt}"
        yield ran[-1][2], "S", f"attempt {attempt} is lost, job queued again"


def _changes(record: records.JobRecord) -> Iterator[tuple[int, str, str]]:
    """Yield the suspensions of the last attempt and the changes of its processors."""
    for since, until in record.pauses:
        yield since, "S", "Job suspended"
        if until is not None:
            yield (
                until,
                "S",
                "Job resumed" if until != record.ended else "Job ended while suspended",
            )
    for at, procs in record.sizes:
        yield at, "S", f"Job has {procs} processors; asked for {record.resources.get('ncpus', '1')}"


@handles(requests.JobOutput)
async def job_output(
    service: Service, client: ConnectedClient, request: requests.JobOutput
) -> records.OutputFiles:
    """Return where the output of the present or last attempt is."""
    core = service.core
    key = core.key_of(request.job)
    job = core.find(key)
    if job is not None:
        record, is_mine = full_record(core, job), may_see(client.actor, job.uid)
    else:
        record = await _finished(service, request.job)
        is_mine = record.user == client.actor.user or is_operator(client.actor)
    name = record.id
    if not is_mine:
        raise Refusal(
            "not-permitted",
            f"Unauthorized Request {name}: the output is for its owner and for operators",
            name,
        )
    if record.is_array:
        text = f"{name} is an array: name one of its jobs, such as {name.replace('[]', '[1]')}"
        raise Refusal("bad-request", text, name)
    if service.outbox.executor is None:
        raise Refusal(
            "unsupported",
            f"{name} is a timer (executor emulated): emulated jobs write no output",
            name,
        )
    if record.started is None and record.state in "FX":
        raise Refusal(
            "finished-job",
            f"{name} never ran, so there is no output ({record.comment or 'deleted'})",
            name,
        )
    is_running = job is not None and job.holds_hosts
    is_waiting = record.started is None or not (is_running or record.state in "FX")
    return records.OutputFiles(
        job=name,
        state=record.state,
        attempt=record.run_count,
        join=record.join,
        is_running=is_running,
        output=_places(service, record, key, "out", is_running),
        error=_places(service, record, key, "err", is_running),
        is_waiting=is_waiting and record.state not in "FX",
        comment=record.comment,
        removed=record.extra.get("remove", "") if record.exit_status == 0 else "",
    )


def _places(
    service: Service, record: records.JobRecord, key: JobKey, which: str, is_running: bool
) -> tuple[str, ...]:
    """Return where a file is or was; while the job runs, that is the spool, unless it writes to the
    place of delivery."""
    assert service.outbox.executor is not None
    try:
        home = attempts.home_of(pwd.getpwnam(record.user))
    except KeyError:
        home = "/"
    letter, spool, text = ("o", 0, record.output) if which == "out" else ("e", 1, record.error)
    path = attempts.local_path(text, record.directory or home, record.id, which)
    inner = f"-{key.member}" if key.member >= 0 else ""
    spooled = service.outbox.executor.spools(f"{key.sequence}{inner}.{max(record.run_count, 1)}")[
        spool
    ]
    if letter in record.keep or path == "/dev/null":
        is_default = text.startswith(f"{record.directory.rstrip('/')}/{record.name}.{letter}")
        in_home = (
            (f"{home}/{os.path.basename(path)}",) if "d" not in record.keep and is_default else ()
        )
        return (*in_home, path)
    if is_running:
        return (spooled,)
    directory, _, file = os.path.dirname(spooled).rpartition("/")
    return (f"{directory}/undelivered/{file}.{os.path.basename(spooled)}", path)


@handles(requests.Forecast)
async def forecast(
    service: Service, client: ConnectedClient, request: requests.Forecast
) -> records.Forecasts:
    """Run the policy forward from the present state, outside the event loop, and return when each
    waiting job starts."""
    now = service.now
    most = min(request.limit, MOST_FORECASTS) if request.limit > 0 else MOST_FORECASTS
    made = await service.forecasts.until(first=most)
    core = service.core
    found = []
    for key, each in islice(made.found.items(), most):  # in the order of their starts
        found.append(msgspec.structs.replace(_record(core, key), start=each.start, end=each.end))
        if len(found) % PART == 0:
            await asyncio.sleep(0)
    looked_at = 0
    for number in [job.sequence for job in core.live_jobs()]:  # some may leave in the meantime
        whole = core.jobs.get(number)
        for job in core.members(whole) if whole is not None else ():
            if (
                len(found) < most
                and job.is_waiting
                and not job.is_array
                and job.key not in made.found
            ):
                code, reason = service.forecasts.why_none(job, made)
                found.append(
                    msgspec.structs.replace(_record(core, job.key), code=code, reason=reason)
                )
            looked_at += 1
            if looked_at % PART == 0:
                await asyncio.sleep(0)
    error = service.forecasts.error()
    return records.Forecasts(
        made=now,
        jobs=tuple(found),
        error_mean=error.get("mean_s"),
        error_count=int(error.get("count", 0)),
        server=core.settings.name,
    )


def _record(core: Core, key: JobKey) -> records.ForecastRecord:
    """Return the record of a job without its forecast; the job may have left since that was
    made."""
    job = core.find(key)
    promised, deadline = (None, None) if job is None else (job.promised, job.deadline)
    return records.ForecastRecord(job=core.id_of(key), promised=promised, deadline=deadline)
