"""Commands about reservations (pbs_rsub, pbs_rdel, qbatch reserve, qbatch maintenance)."""

from __future__ import annotations

import re

from qbatch.daemon.core import flow, reservations, submission
from qbatch.daemon.core.reservations import Time
from qbatch.daemon.core.state import Actor, Core, QueueState, ReservationState
from qbatch.daemon.core.steps import Steps
from qbatch.daemon.handlers.verbs import each, handles, is_operator
from qbatch.daemon.settings import Queue
from qbatch.model.errors import QbatchError, suggestion
from qbatch.model.machine import REPEATS, Reservation, expand_names
from qbatch.results.shown import moment, span
from qbatch.wire import requests
from qbatch.wire.errors import Refusal
from qbatch.wire.records import Outcomes, ReservationRecord
from qbatch.wire.requests import Spec

_HOUR = 3600 * 1_000_000
PERIODS = {
    "hourly": _HOUR,
    **dict.fromkeys(("daily", "weekday", "weekend"), 24 * _HOUR),
    "weekly": 7 * 24 * _HOUR,
}
"""After which time a reservation comes again, in microseconds."""

LONGEST = 10 * 365 * 86_400 * 1_000_000
"""The longest reservation: ten years."""


@handles(requests.Reserve)
def reserve(core: Core, actor: Actor, request: requests.Reserve) -> ReservationRecord:
    """Keep hosts for the jobs of a new queue, or for maintenance; refuse if they are not free."""
    if (request.is_maintenance or request.ignores_jobs) and not is_operator(actor):
        raise Refusal(
            "not-permitted",
            "Unauthorized Request: only operators make maintenance, and reservations that "
            "running jobs may run into",
        )
    start = core.now + request.delay if request.start is None else request.start
    _check_request(core, request, start)
    time = Time(start, start + request.duration)
    name = request.name or f"{'M' if request.is_maintenance else 'R'}{core.next_sequence}"
    names = _names_of(request.hosts)
    number = _pool_of(core, request.pool, names)
    pool = core.pools[number]
    if not pool.machine.chunked:
        raise Refusal(
            "unsupported",
            f"pool {pool.settings.name} does not place jobs on hosts, so none of them can be "
            "reserved; give it several hosts, or one with memory, without spans or single_host",
        )
    busy = reservations.busy_hosts(
        pool, time, is_maintenance=request.is_maintenance, ignores_jobs=request.ignores_jobs
    )
    if names:
        hosts = reservations.hosts_named(pool, names)
        reservations.check_free(pool, hosts, busy, time)
    else:
        queue = QueueState(Queue(name=name), 0, number, True, True, {}, {})
        spec = Spec(resources=dict(request.resources) | {"walltime": "1"})
        every = tuple(each.name for each in pool.machine.partitions)
        asked = submission.asked_of(core, spec, queue, every).request
        hosts = reservations.hosts_for(pool, asked, busy, time)
    kept = Reservation(
        name=name,
        hosts=hosts,
        start=f"{start // 1_000_000}.{start % 1_000_000:06d}",
        duration=request.duration,
        repeat=request.repeat,
        users=() if request.is_maintenance else request.users or (actor.user,),
        is_maintenance=request.is_maintenance,
        is_flexible=request.is_flexible,
        times=request.times,
    )
    made = ReservationState(
        kept,
        actor.user,
        actor.uid,
        core.now,
        request.title or request.name,
        dict(request.resources),
    )
    reservations.add(core, number, made)
    if not request.name:
        core.next_sequence += 1
    core.happened("reserved", None, name)
    return reservations.record_of(core, number, made, core.now)


@handles(requests.Unreserve)
def unreserve(core: Core, actor: Actor, request: requests.Unreserve) -> Steps[Outcomes]:
    """End each named reservation, and the jobs in its queue."""

    def act(name: str) -> Steps[None]:
        number, made = reservations.find(core, name)
        kept = made.kept
        if not (is_operator(actor) or actor.uid == made.uid):
            raise Refusal("not-permitted", f"Unauthorized Request {kept.name}")
        if made.is_configured:
            raise Refusal(
                "bad-state",
                f"the reservation {kept.name} is of the configuration; take it out there, then "
                "qbatch reload",
            )
        if kept.name in core.queues:
            core.queues[kept.name].enabled = False
            for job in [job for job in core.live_jobs() if job.queue == kept.name]:
                yield from flow.delete(
                    core, job, is_forced=False, grace=core.settings.kill_delay, by=actor.user
                )
        reservations.remove(core, number, made)
        core.happened("unreserved", None, kept.name)

    return each(core, request.reservations, act)


def _check_request(core: Core, request: requests.Reserve, start: int) -> None:
    """Refuse times, names and repetitions that cannot be."""
    if start < core.now:
        raise Refusal(
            "bad-time",
            f"Bad time specification(s): the start {moment(start)} is past; choose a later one",
        )
    if request.duration <= 0:
        raise Refusal("bad-time", "Bad time specification(s): the end is not after the start")
    if request.duration > LONGEST:
        raise Refusal("bad-time", "Bad time specification(s): it lasts longer than ten years")
    if request.repeat and request.repeat not in REPEATS:
        word = request.repeat[:20]
        raise Refusal(
            "bad-value",
            f"{word!r} is no repetition{suggestion(word, REPEATS)} (known: {', '.join(REPEATS)})",
        )
    period = PERIODS.get(request.repeat)
    if period is not None and request.duration > period:
        raise Refusal(
            "bad-time",
            f"Bad time specification(s): it lasts {span(request.duration)} and comes again after "
            f"{span(period)}; make it shorter, or repeat it less often",
        )
    if request.times < 0 or (request.times and not request.repeat):
        raise Refusal(
            "bad-value", "a number of times goes with a repetition, and is at least 1; give both"
        )
    if request.name and not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,14}", request.name):
        raise Refusal(
            "bad-value",
            f"{request.name[:20]!r} is no name of a reservation: write a letter, then up to 14 "
            "letters, digits, - or _",
        )
    if bool(request.hosts) is bool(request.resources):
        raise Refusal(
            "bad-value", "name hosts, or what they must have together (-l, --select), and not both"
        )


def _names_of(hosts: tuple[str, ...]) -> tuple[str, ...]:
    try:
        return tuple(
            name
            for text in hosts
            for part in re.split(r"[+,](?![^\[]*\])", text)
            for name in expand_names(part)
        )
    except (ValueError, QbatchError) as error:
        raise Refusal("unknown-host", str(error)) from None


def _pool_of(core: Core, name: str, hosts: tuple[str, ...]) -> int:
    """Return the number of the named pool, of that of the first host, or of the default queue's."""
    pools = [pool.settings.name for pool in core.pools]
    if name and name not in pools:
        raise Refusal("bad-value", f"there is no pool {name[:80]!r}{suggestion(name[:80], pools)}")
    if name:
        return pools.index(name)
    if hosts and hosts[0] in core.host_places:
        return core.host_places[hosts[0]][0]
    return core.queues[core.settings.default_queue].pool
