"""The reservations of a server: those of its machine files, and those that its users make.

Each is a queue of its own, and its jobs are the only ones on its hosts at its times.  The pool's
engine gets all of them, with their times, as one event; a reservation that goes on for ever gets
further times when half of those are past.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from qbatch.daemon.core.state import Core, PoolState, QueueState, ReservationState
from qbatch.model.errors import QbatchError, suggestion
from qbatch.model.events import Reserved
from qbatch.model.job import Job
from qbatch.model.machine import Machine, Reservation, fold_names
from qbatch.model.record import LogClock
from qbatch.model.reservations import Window, windows_of
from qbatch.planning.placement import place_chunks
from qbatch.planning.policy import check_resources
from qbatch.planning.reserved_times import first_start, never_text
from qbatch.planning.windows import windows_on
from qbatch.results.shown import moment, span
from qbatch.wire.errors import Refusal
from qbatch.wire.records import Explanation, ReservationRecord

MOST_AHEAD = 64
"""Times of one repeated reservation that the engine knows in advance."""

MOST = 1_000
"""Reservations of one pool."""

FOREVER = 1 << 61

CLOCK = LogClock(0, "UTC")
"""The clock of a server: a date without an offset is in UTC."""


class Time(NamedTuple):
    """The present or next time of a reservation, ``[begin, end)``."""

    begin: int
    end: int


def add(core: Core, number: int, made: ReservationState) -> None:
    """Add a reservation to a pool.

    Raises:
        Refusal: it overlaps another one, or the pool or its policy cannot keep it; nothing has
            changed.
    """
    pool, kept = core.pools[number], made.kept
    if kept.name in core.queues or any(each.kept.name == kept.name for each in pool.reservations):
        raise Refusal(
            "reservation-exists",
            f"there is a queue or a reservation {kept.name} already; choose another name",
        )
    drop_over(core, pool)
    if len(pool.reservations) >= MOST:
        raise Refusal(
            "reservation-denied",
            f"pool {pool.settings.name} has {MOST} reservations; delete some first (pbs_rdel)",
        )
    after = [*(each.kept for each in pool.reservations), kept]
    try:
        check_resources(
            pool.policy, msgspec.structs.replace(pool.machine, reservations=tuple(after))
        )
        windows_from(after, core.now, may_overlap=False)
    except QbatchError as error:
        raise Refusal("reservation-denied", str(error)) from None
    pool.reservations.append(made)
    renew(core, number)


def remove(core: Core, number: int, made: ReservationState) -> None:
    """Take a reservation away; its queue goes when it has no jobs."""
    made.kept, made.is_over = msgspec.structs.replace(made.kept, hosts=()), True
    drop_over(core, core.pools[number])
    renew(core, number)


def left(core: Core, queue: str) -> None:
    """Forget a reservation that is over when the last job has left its queue."""
    pool = core.pools[core.queues[queue].pool]
    if any(made.is_over and made.kept.name == queue for made in pool.reservations):
        drop_over(core, pool)


def renew(core: Core, number: int) -> None:
    """Let the engine of a pool have its reservations with the times from now on, if they are others
    than before."""
    pool = core.pools[number]
    kept = [each.kept for each in pool.reservations]
    windows = windows_from(kept, core.now)
    following = [FOREVER]
    for place, made in enumerate(pool.reservations):
        if made.is_over:
            continue
        own = [window for window in windows if window.reservation == place]
        if not own:
            made.is_over = True
            _close_queue(core, made)
            continue
        core.open_queue(number, made.kept)
        if len(own) == MOST_AHEAD:
            following.append(own[MOST_AHEAD // 2].begin)
        else:
            following.append(own[-1].end)
    pool.machine = msgspec.structs.replace(pool.machine, reservations=tuple(kept))
    core.prepared.clear()
    core.asked.clear()
    event = Reserved(tuple(kept), windows)
    pool.events = [each for each in pool.events if not isinstance(each, Reserved)]
    if event.reservations != pool.engine.machine.reservations or set(windows).difference(
        pool.engine.windows
    ):
        pool.events.append(event)
        core.is_dirty = True
    if min(following) < FOREVER:
        core.renew_at(number, min(following))


def renew_if_due(core: Core, number: int, at: int) -> None:
    """Renew the reservations of a pool at an instant of the calendar, unless another one was chosen
    since."""
    if number < len(core.pools) and core.pools[number].renewal == at:
        renew(core, number)


def time_of(made: ReservationState, now: int) -> Time | None:
    """Return the present or next time of a reservation, or None if it is over."""
    found = windows_from([made.kept], now, most=1)
    return Time(found[0].begin, found[0].end) if found and not made.is_over else None


def find(core: Core, name: str) -> tuple[int, ReservationState]:
    """Return the number of the pool of a reservation, and the reservation.

    Raises:
        Refusal: there is none of this name.
    """
    short = name.partition(".")[0]
    names = []
    for number, pool in enumerate(core.pools):
        for made in pool.reservations:
            if made.is_over:
                continue
            if made.kept.name == short:
                return number, made
            names.append(made.kept.name)
    known = f" (known: {', '.join(names[:20])})" if names else ""
    raise Refusal("unknown-reservation", f"Unknown Reservation Id {short[:80]}{known}")


def hosts_named(pool: PoolState, names: tuple[str, ...]) -> tuple[int, ...]:
    """Return the places of hosts; ``all``: every host of the pool.

    Raises:
        Refusal: a host is not in the pool.
    """
    places = {host.name: place for place, host in enumerate(pool.machine.real_hosts)}
    if names == ("all",):
        return tuple(places.values())
    for name in names:
        if name not in places:
            raise Refusal(
                "unknown-host", f"Unknown node {name[:80]}{suggestion(name[:80], places)}"
            )
    return tuple(sorted({places[name] for name in names}))


def busy_hosts(
    pool: PoolState, time: Time, *, is_maintenance: bool = False, ignores_jobs: bool = False
) -> dict[int, str]:
    """Return the hosts that are not free for a reservation at a time, with the reason: they are
    offline, another one has them, or a job there may run into it.

    Maintenance may take hosts that are offline or reserved.
    """
    busy = {} if is_maintenance else dict.fromkeys(pool.shut, "it is offline")
    for window in windows_from([each.kept for each in pool.reservations], time.begin):
        if window.begin < time.end and not is_maintenance:
            name = pool.reservations[window.reservation].kept.name
            busy |= dict.fromkeys(window.hosts, f"the reservation {name} has it")
    for run in () if ignores_jobs else pool.engine.view().running.values():
        if run.expected_end > time.begin:
            text = f"a job may run there until {moment(run.expected_end)}"
            busy |= {host: text for chunk in run.allocation for host in chunk.hosts}
    return busy


def check_free(pool: PoolState, hosts: tuple[int, ...], busy: dict[int, str], time: Time) -> None:
    """Refuse a reservation of hosts that are not free at its time."""
    taken = [host for host in hosts if host in busy]
    if taken:
        names = fold_names([pool.machine.hosts[host].name for host in taken])
        raise Refusal(
            "reservation-denied",
            f"{', '.join(names)} {'is' if len(taken) == 1 else 'are'} not free from "
            f"{moment(time.begin)} for {span(time.end - time.begin)}: "
            f"{pool.machine.hosts[taken[0]].name}: {busy[taken[0]]}; choose another time or other "
            "hosts",
        )


def hosts_for(pool: PoolState, request: Job, busy: dict[int, str], time: Time) -> tuple[int, ...]:
    """Return some of the hosts that are free at a time: they hold a request together.

    Raises:
        Refusal: there are not enough of them.
    """
    machine = msgspec.structs.replace(pool.machine, reservations=())
    there = [
        [0 if host in busy else amount for host, amount in enumerate(row)] for row in machine.there
    ]
    found = {host for chunk in place_chunks(machine, there, request) for host in chunk.hosts}
    if not found:
        raise Refusal(
            "reservation-denied",
            f"the {len(machine.real_hosts) - len(busy)} hosts that are free from {moment(time.begin)} for "
            f"{span(time.end - time.begin)} do not hold the request; choose another time or ask "
            "for less",
        )
    return tuple(sorted(found - {machine.server}))


def record_of(core: Core, number: int, made: ReservationState, now: int) -> ReservationRecord:
    """Return a reservation as it is shown at an instant."""
    pool, kept = core.pools[number], made.kept
    time = time_of(made, now)
    if time is None:
        state = "over"
    else:
        state = "running" if time.begin <= now else "confirmed"
    hosts = [pool.machine.hosts[host] for host in kept.hosts]
    return ReservationRecord(
        name=kept.name,
        id=f"{kept.name}.{core.settings.name}",
        pool=pool.settings.name,
        state=state,
        hosts=tuple(host.name for host in hosts),
        start=None if time is None else time.begin,
        end=None if time is None else time.end,
        duration=kept.duration,
        repeat=kept.repeat,
        times=kept.times,
        users=kept.users,
        owner=made.owner,
        title=made.title,
        resources=made.resources,
        made=made.made,
        is_maintenance=kept.is_maintenance,
        is_flexible=kept.is_flexible,
        procs=sum(host.cpus for host in hosts),
    )


def windows_from(
    kept: Sequence[Reservation], since: int, *, most: int = MOST_AHEAD, may_overlap: bool = True
) -> tuple[Window, ...]:
    """Return the present and next times of reservations on the clock of a server.

    Raises:
        InputError: two overlap on a host, and that is not allowed.
    """
    return windows_of(kept, CLOCK, FOREVER, since=since, most=most, may_overlap=may_overlap)


def check_times(core: Core, queue: QueueState, request: Job) -> None:
    """Refuse a job that fits none of the known times of the reservation of its queue."""
    if not queue.reservation:
        return
    pool = core.pools[queue.pool]
    kept = [each.kept for each in pool.reservations]
    own = next((each for each in kept if each.name == queue.reservation), None)
    if own is None or own.is_flexible or not own.hosts:
        return
    machine = msgspec.structs.replace(pool.machine, reservations=tuple(kept))
    windows = windows_on(machine, windows_from(kept, core.now))
    if first_start(windows, machine, request, core.now) is None:
        raise Refusal("never-fits", f"queue {queue.settings.name}: {never_text(request)}")


def past(machine: Machine, now: int) -> list[str]:
    """Return the reservations of a machine file that are over, in words."""
    return [
        f"the reservation {kept.name} (start {kept.start}) of the machine file is past and keeps no "
        "hosts; give it another start, or take it out"
        for kept in machine.reservations
        if not windows_from([kept], now, most=1)
    ]


def explanation(core: Core, text: str, now: int) -> Explanation | None:
    """Return what a reservation keeps for which jobs, if a text names one: its name, its identifier
    or its number; None if it names none."""
    short = text.strip().partition(".")[0]
    found = [
        (number, made)
        for number, pool in enumerate(core.pools)
        for made in pool.reservations
        if short == made.kept.name
        or (short.isdigit() and made.kept.name in (f"R{short}", f"M{short}"))
    ]
    if not found:
        return None
    number, made = found[0]
    record = record_of(core, number, made, now)
    jobs = [
        each for job in core.live_jobs() if job.queue == record.name for each in core.members(job)
    ]
    runs, waits = sum(job.holds_hosts for job in jobs), sum(job.is_waiting for job in jobs)
    if record.start is None or record.end is None:
        times = "is over"
    else:
        verb = "keeps" if record.state == "running" else "will keep"
        names = ", ".join(fold_names(record.hosts))
        times = f"{verb} {names} from {moment(record.start)} until {moment(record.end)}"
        times += f" ({record.repeat})" if record.repeat else ""
    users = ", ".join(record.users) or "all users"
    kind = "no job runs there" if record.is_maintenance else f"for the jobs of {users} in its queue"
    counts = "" if record.is_maintenance else f"; {runs} of them run and {waits} wait"
    more = "; they may also use other hosts and times" if record.is_flexible else ""
    return Explanation(
        job=record.id,
        state=record.state,
        code="reservation",
        text=f"{times}, {kind}{counts}{more}",
        said_by="server",
        numbers={"running": runs, "waiting": waits},
        now=now,
    )


def _close_queue(core: Core, made: ReservationState) -> None:
    """Let the queue of a reservation that is over take no more jobs; without jobs, it goes."""
    queue = core.queues.get(made.kept.name)
    if queue is None or not queue.reservation:
        return
    queue.enabled = False
    if not queue.total:
        del core.queues[made.kept.name]


def drop_over(core: Core, pool: PoolState) -> None:
    """Forget the reservations that are over, unless their queue has jobs."""
    for made in pool.reservations:
        if made.is_over:
            _close_queue(core, made)
    pool.reservations = [
        made for made in pool.reservations if not made.is_over or made.kept.name in core.queues
    ]
