"""An engine as bytes and back, so that a daemon that was killed continues as if nothing had
happened.

A snapshot is a mark, a SHA-256 of the body, and the body: one MessagePack record with the cluster's
arrays, the living jobs, and the policy's memory (:mod:`qbatch.engine.plain`).  Damaged bytes are
refused.
"""

from __future__ import annotations

import hashlib
from collections import deque
from typing import Any

import msgspec
import numpy as np

from qbatch.engine import plain
from qbatch.engine.admission import Admission
from qbatch.engine.engine import Engine
from qbatch.engine.states import STATES
from qbatch.engine.waiting import Waiting
from qbatch.model.actions import Chunk
from qbatch.model.errors import InputError
from qbatch.model.job import Job
from qbatch.model.machine import Machine, Reservation
from qbatch.model.reservations import Window
from qbatch.planning.policy import Policy, name_of
from qbatch.planning.view import Run

FORMAT = 8
"""The version of the body; another one is refused."""

_MARK = b"qbatch engine\n"
_START = len(_MARK) + hashlib.sha256().digest_size

_Run = tuple[int, list[Chunk], int, int, int, bool]


class _Array(msgspec.Struct, array_like=True):
    """An array of 64-bit integers, as bytes."""

    data: bytes

    @classmethod
    def of(cls, array: np.ndarray[Any, Any]) -> _Array:
        return cls(np.ascontiguousarray(array, "<i8").tobytes())

    def array(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        return np.frombuffer(self.data, "<i8").astype(np.int64)

    def table(self, rows: int, *, space: int = 0) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Read a table of ``rows`` rows, with space for more columns after the stored ones."""
        found = np.frombuffer(self.data, "<i8").reshape(rows, -1)
        table = np.empty((rows, found.shape[1] + space), np.int64)
        table[:, : found.shape[1]] = found
        return table


class _Body(msgspec.Struct):
    """Everything, in the order in which it is read back."""

    format: int
    machine: str
    reservations: tuple[Reservation, ...]
    windows: tuple[Window, ...]
    policy: str
    now: int | None
    columns: _Array
    states: bytes
    living: _Array
    jobs: list[Job]
    queue: _Array
    parked: _Array
    alike: _Array
    closed: list[int]
    hosts: _Array
    parts: _Array
    running: list[_Run]
    suspended: list[_Run]
    until: list[tuple[int, int]]
    promises: list[tuple[int, int]]
    wake_at: list[int]
    over: list[int]
    memory: bytes
    trials: list[int]
    left_behind: list[int]
    is_new_policy: bool


def dump(engine: Engine) -> bytes:
    """Return an engine as bytes for :func:`load`; an InputError if the policy's memory cannot be
    written down."""
    cluster = engine._cluster
    jobs = [job for job in cluster.jobs if job is not None]
    alike = (
        np.empty(0, np.int64)
        if cluster.requests is None
        else cluster.requests.alike(cluster.requesting_rows())
    )
    body = _Body(
        format=FORMAT,
        machine=_identity(engine.machine),
        reservations=engine.machine.reservations,
        windows=engine.windows,
        policy=name_of(engine.policy),
        now=engine.now,
        columns=_Array.of(cluster.table),
        states=bytes(cluster.codes),
        living=_Array.of(np.array([job.row for job in jobs], np.int64)),
        jobs=jobs,
        queue=_Array.of(cluster.waiting.rows),
        parked=_Array.of(cluster.parked.rows),
        alike=_Array.of(alike),
        closed=sorted(cluster.closed),
        hosts=_Array.of(cluster.hosts),
        parts=_Array.of(cluster.parts),
        running=[_written(run) for run in cluster.running.values()],
        suspended=[_written(run) for run in cluster.suspended.values()],
        until=list(cluster.until.items()),
        promises=list(cluster.promises.items()),
        wake_at=engine._wake_at,
        over=engine._over,
        memory=plain.encode(engine._memory, type(engine.policy).__module__),
        trials=sorted(cluster.trials),
        left_behind=sorted(cluster.left_behind),
        is_new_policy=engine._is_new_policy,
    )
    data = msgspec.msgpack.encode(body)
    return b"".join((_MARK, hashlib.sha256(data).digest(), data))


def load(machine: Machine, policy: Policy, data: bytes, *, is_audited: bool = False) -> Engine:
    """Return the engine that was dumped: from here on it behaves exactly, to the bit, as the other
    would have.  It has the reservations of the other, not those of ``machine``.

    Raises:
        InputError: the bytes are damaged, or from another machine, policy or version.
    """
    if not data.startswith(_MARK) or len(data) < _START:
        raise InputError("this is not a snapshot of a qbatch engine")
    packed = memoryview(data)[_START:]
    if hashlib.sha256(packed).digest() != data[len(_MARK) : _START]:
        raise InputError(
            "the snapshot is damaged or cut short: its checksum is wrong; use an older one and the "
            "journal"
        )
    try:
        body = msgspec.msgpack.decode(packed, type=_Body)
    except msgspec.DecodeError as error:
        raise InputError(
            f"the snapshot was written by another version of qbatch: {error}"
        ) from error
    if body.format != FORMAT:
        raise InputError(
            f"the snapshot has format {body.format}; this version of qbatch reads {FORMAT}"
        )
    if body.machine != _identity(machine):
        raise InputError(
            "the snapshot is of another machine: its hosts or classes are not those of this one"
        )
    if body.policy != name_of(policy):
        raise InputError(
            f"the snapshot is of the policy {body.policy!r}, not of {name_of(policy)!r}"
        )
    machine = msgspec.structs.replace(machine, reservations=body.reservations)
    engine = Engine(machine, policy, is_audited=is_audited, windows=body.windows)
    try:
        _restore(engine, body)
    except (IndexError, ValueError, TypeError, OverflowError) as error:
        raise InputError(f"the snapshot is inconsistent: {error}") from error
    return engine


def _restore(engine: Engine, body: _Body) -> None:
    cluster, count = engine._cluster, len(body.states)
    if count and max(body.states) >= len(STATES):
        raise InputError(
            "the snapshot contains states that this version of qbatch does not know; start from "
            "the journal"
        )
    cluster.jobs[:] = [None] * count
    for job in body.jobs:
        cluster.jobs[job.row] = job
    cluster.codes[:] = body.states
    columns = body.columns.table(len(cluster.table), space=max(count, 64))
    if columns.shape[1] != count + max(count, 64):
        raise InputError("a snapshot contains tables of different lengths")
    cluster.hold_columns(columns)
    cluster.waiting = Waiting(body.queue.array())
    cluster.parked = Waiting(body.parked.array())
    cluster.closed = frozenset(body.closed)
    cluster.hold_hosts(body.hosts.array().reshape(cluster.hosts.shape))
    cluster.until.update(body.until)
    cluster.trials.update(body.trials)
    cluster.promises.update(body.promises)
    cluster.left_behind.update(body.left_behind)
    parts = body.parts.table(len(cluster.parts))
    cluster.runs.restore(
        list(map(_read, body.running)), list(map(_read, body.suspended)), parts, cluster.width
    )
    if cluster.requests is not None:  # one job per request is enough, not one per row
        cluster.requests.restore(cluster.requesting_rows(), body.alike.array(), cluster.job)
    engine.now = body.now
    engine._wake_at = list(body.wake_at)
    engine._turns = deque(turn for turn in engine._turns if turn > (body.now or 0))
    engine._over = list(body.over)
    engine._is_new_policy = body.is_new_policy
    engine._open_hosts = Admission(engine.machine, cluster.closed)
    engine._memory = plain.decode(body.memory, type(engine.policy).__module__)
    if engine._watch is not None:
        engine._watch.resume(cluster, engine.now)


def _identity(machine: Machine) -> str:
    facts = msgspec.structs.replace(machine, reservations=()).facts()
    return hashlib.sha256(msgspec.msgpack.encode(facts)).hexdigest()


def _written(run: Run) -> _Run:
    return (run.row, list(run.allocation), run.since, run.expected_end, run.done, run.holds_memory)


def _read(run: _Run) -> Run:
    return Run(run[0], tuple(run[1]), *run[2:])
