"""The whole state as bytes and back: the content of a snapshot.

Equal jobs share their specification, as they do in memory; engines write themselves
(:mod:`qbatch.engine.snapshot`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import msgspec

from qbatch.daemon.core import slots
from qbatch.daemon.core.faults import FaultState
from qbatch.daemon.core.job import BatchJob, BatchState, Prepared
from qbatch.daemon.core.state import ArrayState, Core, ReservationState, RunLimit, SourceState
from qbatch.daemon.settings import Settings
from qbatch.engine import snapshot
from qbatch.model.errors import InputError
from qbatch.model.events import Event
from qbatch.model.job import Job
from qbatch.planning.policy import Policy
from qbatch.wire.identifiers import JobKey
from qbatch.wire.requests import Spec
from qbatch.wire.resources import Demand

PreparedSnapshot = tuple[Spec, Demand, int, Job, tuple[int, ...], int | None]
"""A specification that jobs share, as :class:`~qbatch.daemon.core.job.Prepared` takes it."""


class PoolSnapshot(msgspec.Struct, array_like=True):
    """One pool: its engine, and what waits for its next pass."""

    engine: bytes
    rows: int
    running: list[JobKey]
    pending: list[tuple[JobKey, Job]]
    events: list[Event]
    comments: dict[int, str]
    shut: list[int]
    down: list[int]
    reservations: list[ReservationState]
    renewal: int | None


class CoreSnapshot(msgspec.Struct):
    """Everything of a core but its settings and policies.

    ``jobs``: each array is followed by its jobs.  ``arrays``: by number, how many of the jobs
    failed, and when the first started.
    """

    now: int
    next_sequence: int
    prepared: list[PreparedSnapshot]
    jobs: msgspec.Raw
    arrays: dict[int, tuple[int, int | None]]
    queues: dict[str, tuple[bool, bool, dict[BatchState, int], dict[str, int]]]
    pools: dict[str, PoolSnapshot]
    run_limits: dict[str, tuple[int, list[tuple[int, int, int]]]]
    children: list[tuple[JobKey, list[tuple[str, JobKey]]]]
    endings: list[tuple[JobKey, int]]
    keys: list[tuple[int, str, JobKey]]
    calendar: list[tuple[int, int, str, int, int, int]]
    entries: int
    numbers: dict[str, int]
    user_jobs: dict[str, int]
    events_made: int
    log_arrived: int
    ended_count: int
    is_dirty: bool
    faults: list[FaultState]
    log_id: str
    log_offset: int
    chosen: dict[str, tuple[str, str]]
    source: SourceState
    run_times: dict[str, list[int]]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(CoreSnapshot).decode


def dump(core: Core) -> bytes:
    """Return the state as bytes."""
    places: dict[int, int] = {}
    prepared: list[PreparedSnapshot] = []

    def place_of(shared: Any) -> int:
        if not isinstance(shared, Prepared):
            raise TypeError(f"{type(shared).__name__} cannot be written")
        if id(shared) not in places:
            places[id(shared)] = len(prepared)
            values = (
                shared.spec,
                shared.demand,
                shared.walltime,
                shared.request,
                shared.indices,
                shared.slot_limit,
            )
            prepared.append(values)
        return places[id(shared)]

    ones: list[BatchJob] = []
    for job in core.jobs.values():
        ones.append(job)
        if job.is_array:
            ones += core.arrays[job.sequence].members.values()
    jobs = msgspec.Raw(msgspec.msgpack.Encoder(enc_hook=place_of).encode(ones))
    state = CoreSnapshot(
        core.now,
        core.next_sequence,
        prepared,
        jobs,
        {sequence: (array.failed, array.started) for sequence, array in core.arrays.items()},
        {name: (q.enabled, q.started, q.counts, q.users) for name, q in core.queues.items()},
        {
            pool.settings.name: PoolSnapshot(
                snapshot.dump(pool.engine),
                len(pool.by_row),
                list(pool.running),
                list(pool.pending.items()),
                pool.events,
                pool.host_comments,
                sorted(pool.shut),
                sorted(pool.down),
                pool.reservations,
                pool.renewal,
            )
            for pool in core.pools
        },
        {name: (limit.used, limit.waiting) for name, limit in core.run_limits.items()},
        list(core.children.items()),
        list(core.endings.items()),
        [(uid, text, key) for (uid, text), key in core.keys.items()],
        core.calendar,
        core.entries,
        core.numbers,
        core.user_jobs,
        core.events_made,
        core.log_arrived,
        core.ended_count,
        core.is_dirty,
        core.faults,
        core.log_id,
        core.log_offset,
        {
            pool.settings.name: (pool.settings.policy, pool.chosen)
            for pool in core.pools
            if pool.chosen
        },
        core.source,
        core.run_times,
    )
    return _encode(state)


def load(data: bytes | memoryview, settings: Settings, policy_of: Callable[[str], Policy]) -> Core:
    """Return the core that the bytes describe, under the settings that it was made with.

    Raises:
        InputError: the bytes are no snapshot, or do not belong to these settings.
    """
    try:
        state = _decode(data)
    except msgspec.MsgspecError as error:
        raise InputError(f"the snapshot cannot be read: {error}") from error
    core = Core(settings, policy_of)
    _load_reservations(core, state)
    _load_tables(core, state)
    for pool in core.pools:
        configured, chosen = state.chosen.get(pool.settings.name, ("", ""))
        if chosen and configured == pool.settings.policy:
            # It was set on the live server, and the configured policy has not changed since.
            pool.chosen, pool.policy = chosen, policy_of(chosen)
            pool.engine.exchange_policy(pool.policy)
        saved = state.pools.get(pool.settings.name)
        if saved is None:
            continue
        pool.engine = snapshot.load(pool.machine, pool.policy, saved.engine)
        pool.by_row = [None] * saved.rows
        pool.pending = dict(saved.pending)
        pool.events = list(saved.events)
        pool.host_comments, pool.shut, pool.down = saved.comments, set(saved.shut), set(saved.down)
    _load_jobs(core, state)
    for pool in core.pools:
        saved = state.pools.get(pool.settings.name)
        found = {key: core.find(key) for key in saved.running} if saved is not None else {}
        pool.running = {
            key: job for key, job in found.items() if job is not None and job.key in pool.running
        }
    return core


def _load_reservations(core: Core, state: CoreSnapshot) -> None:
    """Take the reservations of the snapshot, with their queues, in place of those of the machine
    files."""
    for name in [name for name, queue in core.queues.items() if queue.reservation]:
        del core.queues[name]
    for number, pool in enumerate(core.pools):
        saved = state.pools.get(pool.settings.name)
        if saved is not None:
            pool.reservations, pool.renewal = saved.reservations, saved.renewal
            kept = tuple(each.kept for each in pool.reservations)
            pool.machine = msgspec.structs.replace(pool.machine, reservations=kept)
        for each in pool.reservations:
            if each.kept.name in state.queues:
                core.open_queue(number, each.kept)


def _load_tables(core: Core, state: CoreSnapshot) -> None:
    for name in (
        "now",
        "next_sequence",
        "calendar",
        "entries",
        "numbers",
        "user_jobs",
        "events_made",
        "log_arrived",
        "ended_count",
        "is_dirty",
        "faults",
        "log_id",
        "log_offset",
        "source",
        "run_times",
    ):
        setattr(core, name, getattr(state, name))
    for name, (enabled, started, counts, users) in state.queues.items():
        queue = core.queues.get(name)
        if queue is None:
            if sum(counts.values()):
                raise InputError(
                    f"queue {name} has jobs, but the configuration does not have it any more; put "
                    "it back"
                )
            continue
        queue.enabled, queue.started, queue.counts, queue.users = enabled, started, counts, users
    for name, (used, waiting) in state.run_limits.items():
        core.run_limits[name] = RunLimit(used, waiting)
    core.children = {key: list(waiting) for key, waiting in state.children}
    core.endings = OrderedDict(state.endings)
    core.keys = OrderedDict(((uid, text), key) for uid, text, key in state.keys)


def _load_jobs(core: Core, state: CoreSnapshot) -> None:
    prepared = [Prepared(*each) for each in state.prepared]
    decoder = msgspec.msgpack.Decoder(list[BatchJob], dec_hook=lambda _, place: prepared[place])
    pools = {name: core.pools[queue.pool] for name, queue in core.queues.items()}
    for job in decoder.decode(state.jobs):
        if not job.is_subjob:
            core.jobs[job.sequence] = job
            if job.is_array:
                failed, started = state.arrays[job.sequence]
                core.arrays[job.sequence] = ArrayState({}, {}, 0, failed, started)
        else:
            array = core.arrays[job.sequence]
            array.members[job.member] = job
            array.counts[job.state] = array.counts.get(job.state, 0) + 1
            array.live += not job.is_over
        if job.row >= 0:
            pools[job.queue].by_row[job.row] = job
        # A job that is being ended has no row after its trial is over, and still runs.
        if job.attempt is not None and job.holds_hosts:
            pool = pools[job.queue]
            pool.running[job.key] = job
            slots.mark(pool, job, in_use=True)
    core.order = list(core.jobs)
