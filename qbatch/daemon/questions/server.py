"""Questions about the server and its daemon: its queues, hosts, figures, time and store; requests
to reload and to stop it."""

from __future__ import annotations

import asyncio
import os
import pwd
import sqlite3
from collections import Counter
from collections.abc import Awaitable, Iterator, Mapping
from pathlib import Path

import msgspec

from qbatch.daemon.child import Child, ChildFailed
from qbatch.daemon.clock import FASTEST, FOREVER, SLOWEST
from qbatch.daemon.config import as_toml
from qbatch.daemon.connection import ConnectedClient
from qbatch.daemon.core import state_snapshot
from qbatch.daemon.core.invariants import breaches
from qbatch.daemon.core.records import assigned, host_records, queue_record, running_jobs
from qbatch.daemon.core.reservations import find, record_of
from qbatch.daemon.core.state import Core
from qbatch.daemon.core.submission import check_server
from qbatch.daemon.handlers.verbs import handles
from qbatch.daemon.restore import add_snapshot
from qbatch.daemon.service import Service, to_its_end
from qbatch.daemon.sources import fed_log
from qbatch.distribution import __version__
from qbatch.model.errors import suggestion
from qbatch.results.shown import moment, span
from qbatch.wire import records, requests
from qbatch.wire.errors import Refusal

TIME_ACTIONS = (
    "show",
    "pause",
    "play",
    "step",
    "speed",
    "until",
    "until-start",
    "until-end",
    "until-count",
)
SHADOW_ACTIONS = ("show", "set")

PATIENCE = 5.0
"""Seconds after the kill delay in which the jobs that the server ends must be gone."""

_encode = msgspec.json.Encoder().encode


@handles(requests.Hello)
def hello(service: Service, client: ConnectedClient, request: requests.Hello) -> records.Welcome:
    """Return the server's name, version and protocol, and the user and the role of the client;
    refuse another server's name."""
    check_server(service.core, request.server, os.uname().nodename)
    name, actor = service.settings.name, client.actor
    return records.Welcome(
        server=name,
        version=__version__,
        protocol=requests.PROTOCOL,
        user=actor.user,
        role=actor.role,
    )


@handles(requests.QueueStatus)
def queue_status(
    service: Service, client: ConnectedClient, request: requests.QueueStatus
) -> records.Queues:
    """Show the named queues, or all (qstat -Q)."""
    core = service.core
    found, errors = [], []
    for name in request.queues or core.queues:
        try:
            found.append(queue_record(core, core.queue(name.partition("@")[0])))
        except Refusal as error:
            errors.append(error.record)
    return records.Queues(
        queues=tuple(found), errors=tuple(errors), now=service.now, server=core.settings.name
    )


@handles(requests.HostStatus)
def host_status(
    service: Service, client: ConnectedClient, request: requests.HostStatus
) -> records.Hosts:
    """Show the named hosts, or all (pbsnodes)."""
    hosts = {record.name: record for record in host_records(service.core, service.now)}
    names = request.hosts or tuple(hosts)
    found = tuple(hosts[name] for name in names if name in hosts)
    unknown = [name[:80] for name in names if name not in hosts]
    errors = [
        Refusal("unknown-host", f"Unknown node {name}{suggestion(name, hosts)}").record
        for name in unknown
    ]
    return records.Hosts(
        hosts=found, errors=tuple(errors), now=service.now, server=service.settings.name
    )


@handles(requests.ReservationStatus)
def reservation_status(
    service: Service, client: ConnectedClient, request: requests.ReservationStatus
) -> records.Reservations:
    """Show the named reservations, or all (pbs_rstat)."""
    core = service.core
    found, errors = [], []
    if request.reservations:
        for name in request.reservations:
            try:
                found.append(record_of(core, *find(core, name), service.now))
            except Refusal as error:
                errors.append(error.record)
    else:
        found = [
            record_of(core, number, made, service.now)
            for number, pool in enumerate(core.pools)
            for made in pool.reservations
            if not made.is_over
        ]
    found.sort(key=lambda record: (record.start or 0, record.name))
    return records.Reservations(
        reservations=tuple(found), errors=tuple(errors), now=service.now, server=core.settings.name
    )


def phases(core: Core) -> Iterator[records.PhaseRecord]:
    """Yield the present phase of each pool that is shared in time."""
    for pool in core.pools:
        if (phase := pool.engine.phase()) is not None:
            yield records.PhaseRecord(
                pool=pool.settings.name,
                name=phase.name,
                until=phase.until,
                following=dict(phase.following),
                on_disk=phase.on_disk,
                procs_on_disk=phase.procs_on_disk,
            )


@handles(requests.ServerStatus)
def server_status(
    service: Service, client: ConnectedClient, request: requests.ServerStatus
) -> records.ServerRecord:
    """Show the server (qstat -B, qbatch status)."""
    core, settings, instance = service.core, service.settings, service.instance
    counts = Counter[str]()
    for queue in core.queues.values():
        counts.update({letter: count for letter, count in queue.letter_counts.items() if count})
    clock = service.pass_driver.clock_record()
    problems = []
    if service.is_full:
        problems.append(f"the disk of {service.store.directory} is full: submissions are refused")
    if clock.ahead:
        problems.append(
            f"the machine's clock was set back: the server's, at {moment(clock.now)}, is "
            f"{span(clock.ahead)} ahead of it until "
            "the server is started again (qbatch down, qbatch up; jobs run on)"
        )
    return records.ServerRecord(
        name=settings.name,
        version=__version__,
        state="Active" if not service.stop_reason else "Terminating",
        pid=os.getpid(),
        policy=", ".join(dict.fromkeys(pool.name_of_policy for pool in core.pools)),
        executor=settings.executor,
        default_queue=settings.default_queue,
        counts=dict(counts),
        total=counts.total(),
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
        owner=_user_name(),
        assigned=assigned(running_jobs(core)),
        max_array=settings.max_array,
        history_kept=settings.history_kept,
        mail_command=" ".join(settings.mail_command),
    )


def _user_name() -> str:
    """Return the name of the user who runs the server, or its number."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


@handles(requests.Metrics)
def metrics(service: Service, client: ConnectedClient, request: requests.Metrics) -> records.Text:
    """Return counters and gauges in the Prometheus text format."""
    core, passes = service.core, service.pass_driver.pass_times
    jobs = {
        f'{{queue="{name}",state="{letter}"}}': count
        for name, queue in core.queues.items()
        for letter, count in sorted(queue.letter_counts.items())
    }
    hosts = {
        f'{{pool="{pool.settings.name}"}}': sum(pool.engine.view().free) for pool in core.pools
    }
    found: tuple[tuple[str, str, str, float | dict[str, int]], ...] = (
        ("jobs", "gauge", "Jobs by queue and state.", jobs),
        ("jobs_ended_total", "counter", "Jobs that have ended.", core.ended_count),
        ("jobs_submitted_total", "counter", "Sequence numbers given out.", core.next_sequence - 1),
        ("commits_total", "counter", "Commits of the journal.", service.commits),
        ("passes_total", "counter", "Scheduling passes.", passes.count),
        ("pass_seconds_total", "counter", "Seconds spent in passes.", passes.seconds),
        ("pass_seconds_max", "gauge", "The longest pass.", passes.longest),
        ("connections", "gauge", "Connected clients.", len(service.clients)),
        ("free_processors", "gauge", "Free processors of open hosts, by pool.", hosts),
    )
    lines: list[str] = []
    for name, kind, text, values in found:
        lines += [f"# HELP qbatch_{name} {text}", f"# TYPE qbatch_{name} {kind}"]
        by_labels: Mapping[str, float] = values if isinstance(values, dict) else {"": values}
        lines += [
            f"qbatch_{name}{labels} {float(value):.17g}" for labels, value in by_labels.items()
        ]
    return records.Text(text="\n".join(lines) + "\n")


@handles(requests.ConfigShow)
def config_show(
    service: Service, client: ConnectedClient, request: requests.ConfigShow
) -> records.Text:
    """Return the settings as TOML."""
    return records.Text(text=as_toml(service.settings))


@handles(requests.Reload)
async def reload(
    service: Service, client: ConnectedClient, request: requests.Reload
) -> records.Text:
    """Read the configuration again (SIGHUP, qbatch reload): take it as a whole, or keep the old one
    and return the error."""
    return records.Text(text=await service.instance.reload())


@handles(requests.Time)
def time(service: Service, client: ConnectedClient, request: requests.Time) -> records.ClockRecord:
    """Drive scaled and virtual time, and return the clock."""
    clock = service.clock
    if request.action not in TIME_ACTIONS:
        word = request.action[:20]
        raise Refusal("bad-value", f"{word!r} is no action on time{suggestion(word, TIME_ACTIONS)}")
    if request.action == "show":
        return service.pass_driver.clock_record()
    if clock.mode == "real":
        raise Refusal(
            "bad-state",
            "real time cannot be driven; start the daemon with --time x60 or --time virtual",
        )
    speed = request.speed
    if speed is not None and not (
        SLOWEST <= speed <= FASTEST or (speed == 0 and clock.mode == "virtual")
    ):
        bounds = f"from {SLOWEST:g} to {FASTEST:g} (virtual time takes 0: as fast as it can)"
        raise Refusal("bad-value", f"speed {speed:g} is not {bounds}")
    if request.action == "pause":
        clock.pause()
    elif request.action == "step":
        clock.pause()
        service.pass_driver.step_once()
    elif request.action in ("play", "speed"):
        if request.action == "speed" and speed is None:
            raise Refusal("bad-value", "the request names no speed; add one")
        service.pass_driver.breakpoint = None
        is_still = request.action == "speed" and clock.is_paused
        clock.play(speed)
        if is_still:
            clock.pause()
    else:
        _until(service, request)
    service.pass_driver.move_on()
    return service.pass_driver.clock_record()


def _until(service: Service, request: requests.Time) -> None:
    clock, core = service.clock, service.core
    service.pass_driver.breakpoint = None
    if request.action == "until":
        at = request.at
        if at is not None and service.trace is not None and at < service.trace.offset:
            # An instant before the log's calendar begins is one of the log's own seconds.
            at += service.trace.offset
        if at is None or at < clock.now():
            raise Refusal(
                "bad-value", "the request names no instant that is still to come; name one"
            )
        clock.play(request.speed, at, moment(at))
        return
    if request.action == "until-count":
        if request.count is not None and request.count < 1:
            raise Refusal(
                "bad-value", f"{request.count} is no number of jobs to wait for; name at least 1"
            )
        goal = core.ended_count + (request.count or 1)
        service.pass_driver.breakpoint = lambda: service.core.ended_count >= goal
        clock.play(request.speed, FOREVER, f"{request.count or 1} more jobs have ended")
        return
    job = core.live(request.job)
    key, is_start = job.key, request.action == "until-start"

    def is_reached() -> bool:
        now = service.core.find(key)
        return now is None or now.is_over or (is_start and now.has_begun)

    service.pass_driver.breakpoint = is_reached
    clock.play(
        request.speed, FOREVER, f"job {core.id_of(key)} has {'started' if is_start else 'ended'}"
    )


@handles(requests.Shadow)
def shadow(
    service: Service, client: ConnectedClient, request: requests.Shadow
) -> records.Shadows | Awaitable[records.Shadows]:
    """Show the what-if policies, or set them (qbatch shadow)."""

    async def changed() -> records.Shadows:
        await service.own_policies.admit(request.policies)
        async with service.quiet():
            service.what_if.begin(request.policies)
        return service.what_if.table()

    if request.action not in SHADOW_ACTIONS:
        word = request.action[:20]
        raise Refusal(
            "bad-value",
            f"{word!r} is no action on what-if policies{suggestion(word, SHADOW_ACTIONS)}",
        )
    return changed() if request.action == "set" else service.what_if.table()


@handles(requests.Subscribe)
def subscribe(
    service: Service, client: ConnectedClient, request: requests.Subscribe
) -> records.Done:
    """Push events from now on; the text is the number of the last event before them.

    A client that names an earlier last event is refused: the server does not keep those in between.
    """
    last, after = service.event_stream.last, request.after
    if after is not None and after != last:
        what = (
            "have come since and are not kept"
            if after < last
            else "have never been: the store is another one"
        )
        wrong = f"after={after}: the last event is {last}, those between {what}"
        raise Refusal(
            "bad-value", f"{wrong}; ask for the jobs anew, and subscribe without a number"
        )
    client.is_subscribed = True
    return records.Done(text=str(last))


@handles(requests.Upload)
async def upload(
    service: Service, client: ConnectedClient, request: requests.Upload
) -> records.Done:
    """Take a part of a script that is too long for one frame; the digest completes it, and the
    answer comes once it is safe."""
    uid = client.actor.uid
    service.refuse_if_busy()
    service.scripts.append(uid, request.upload, request.offset, request.data)
    if request.digest:
        keep = service.scripts.finish(uid, request.upload, request.digest)
        async with service.unread.turn_of(uid):
            await asyncio.get_running_loop().run_in_executor(None, keep)
    return records.Done(text=request.digest)


@handles(requests.Check)
async def check(service: Service, client: ConnectedClient, request: requests.Check) -> records.Text:
    """Check the store and the invariants of the running state; return what was checked, or refuse
    with what is wrong."""
    async with service.store.at_rest():
        async with service.quiet():
            await service.store.settle()
            last = service.store.number
            child = Child(lambda: msgspec.json.encode(breaches(service.core)))
        found = msgspec.json.decode(await child.answer(), type=list[str])
        if found:
            raise Refusal("failed", f"{len(found)} invariants do not hold; the first: {found[0]}")
        checked = await asyncio.get_running_loop().run_in_executor(None, service.store.check, last)
    return records.Text(
        text=(
            f"{checked}\n{len(service.core.jobs)} live jobs: all counts, run limits, hosts and "
            "rows agree\n"
        )
    )


@handles(requests.Backup)
async def backup(
    service: Service, client: ConnectedClient, request: requests.Backup
) -> records.Done:
    """Write a copy of the store: the database, with the snapshot in it, to a file that does not
    exist yet."""
    path = Path(request.path)
    if not path.is_absolute() or "\0" in request.path:
        raise Refusal("bad-value", f"{request.path[:200]!r} is no absolute path")
    return await to_its_end(_written(service, path))


async def _written(service: Service, path: Path) -> records.Done:
    async with service.store.at_rest():
        async with service.quiet():
            await service.store.settle()
            number, settings = service.store.number, as_toml(service.settings)
            child = Child(lambda: state_snapshot.dump(service.core))
        try:
            await asyncio.get_running_loop().run_in_executor(None, service.store.backup, path)
            data = await child.answer()
            await asyncio.get_running_loop().run_in_executor(
                None, add_snapshot, path, number, data, settings
            )
            return records.Done(text=f"{path}: {path.stat().st_size} bytes")
        except (OSError, sqlite3.Error, ChildFailed) as error:
            path.unlink(missing_ok=True)
            raise Refusal("failed", f"backup to {path}: {error}") from error


@handles(requests.Shutdown)
async def shutdown(
    service: Service, client: ConnectedClient, request: requests.Shutdown
) -> records.Done:
    """Stop the daemon (qbatch down, qterm): commit, snapshot, stop; jobs run on unless the request
    ends them, too."""
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
    return records.Done(text=f"stopping; {text or 'no jobs are left; '}".removesuffix("; "))


def _running(service: Service) -> int:
    return sum(len(pool.running) for pool in service.core.pools)


async def _empty(
    service: Service, client: ConnectedClient, request: requests.Shutdown
) -> tuple[int, int]:
    """Queue running jobs again or end them, through the journal, and wait until they are gone;
    return the two numbers.

    No pass is made meanwhile: it would start waiting jobs in their place.
    """
    core = service.core
    service.pass_driver.hold()
    running = {core.id_of(job.key): job for pool in core.pools for job in pool.running.values()}
    again = {
        name: job
        for name, job in running.items()
        if request.is_requeueing and job.spec.is_rerunnable
    }
    ended = [name for name in running if request.is_with_jobs and name not in again]
    delete = requests.Delete(
        jobs=tuple(ended), message=f"ended with the server by {client.actor.user}"
    )
    commands: tuple[requests.Rerun | requests.Delete, ...] = (
        requests.Rerun(jobs=tuple(again)),
        delete,
    )
    for command in commands:
        if command.jobs:
            service.change(client.actor, command, _encode(command))
    left = len(running) - len(again) - len(ended)
    deadline = asyncio.get_running_loop().time() + core.settings.kill_delay / 1e6 + PATIENCE
    while _running(service) > left and asyncio.get_running_loop().time() < deadline:
        await asyncio.sleep(0.02)
    return len(again), len(ended)
