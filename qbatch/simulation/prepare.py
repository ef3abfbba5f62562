"""From a log to a workload: which rows run, on how many processors, with which estimates and run
times.

The rules are those of docs/design.md, "The meaning of one instant".
"""

from __future__ import annotations

from itertools import compress
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from qbatch.model.errors import InputError, UsageError
from qbatch.model.job import ChunkRequest, JobRequest
from qbatch.model.machine import Machine
from qbatch.model.record import MICROSECONDS, Int64Array, LogClock, Workload
from qbatch.planning.partitions import default_time, has_limits, limited
from qbatch.workloads import Log, machine_procs
from qbatch.workloads.estimates import read_estimates
from qbatch.workloads.log import cancelled_rows, log_second, used_procs
from qbatch.workloads.resource_rows import ResourceRows
from qbatch.workloads.unfinished import unfinished_of
from qbatch.workloads.user_names import users_of_reservations

_HORIZON = 1 << 61
"""The longest time of a replay in microseconds: half of the kernels' ``FOREVER``."""

_MEMORY_MAX = 1 << 60
"""The most bytes in a log; more is reduced to this."""

_BIGGEST = (1 << 62) // MICROSECONDS // 1024


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How a log becomes a workload.  Times in seconds of the log's own clock, or ISO texts.

    ``estimates``: a model of ``qbatch.workloads.estimates``, as written.  ``kill``: a job that
    reaches its estimate ends there; else its estimate is lifted to its run time.  ``since``,
    ``before``: half-open span of submission.  ``first``: at most this many jobs. ``warmup``:
    seconds after the first submission in which jobs run but are not counted; ``counted_from``: jobs
    submitted before this instant run but are not counted.  ``load``: divides the gaps between
    arrivals.
    """

    estimates: str = "log"
    seed: int = 0
    kill: bool = True
    since: str | None = None
    before: str | None = None
    first: int | None = None
    warmup: float = 0.0
    counted_from: str | None = None
    load: float = 1.0


def prepare(
    log: Log,
    machine: Machine,
    options: Options | None = None,
    deadlines: Int64Array | None = None,
    resources: ResourceRows | None = None,
) -> Workload:
    """Return the jobs of a log that can run on a machine, in order of sequence.

    ``deadlines``: by row of the log, in microseconds of its clock, -1 for none; they move with the
    submissions (``load``).  ``resources``: what the jobs ask for in chunks.

    Raises:
        InputError: no job can run, or a number is too large.
        UsageError: an option cannot be understood, or jobs ask for chunks of a machine that has no
            hosts for them.
    """
    options = options or Options()
    if resources is not None and not machine.chunked:
        raise UsageError(
            "the machine has no hosts on which nodes, memory and GPUs of a job count; give a machine "
            "file with schema = 2 and without single_host"
        )
    clock = LogClock(log.header.unix_start_time, log.header.time_zone_string)
    submit_s, run_s = np.asarray(log["submit"]), run_times(log)
    procs = np.asarray(log.procs)
    if resources is not None:
        resources = _on(machine, resources)
        procs = _of_requests(resources, [each.procs for each in resources.requests], procs)
    reasons = reasons_to_skip(log, machine, resources)
    skipped = {name: len(rows) for name, rows in reasons.items()}
    keep = np.ones(len(log), np.bool_)
    if options.since is not None:
        keep &= submit_s >= log_second(options.since, clock, log.name, "--from")
    if options.before is not None:
        keep &= submit_s < log_second(options.before, clock, log.name, "--to")
    for rows in reasons.values():
        keep[rows] = False
    rows = np.flatnonzero(keep)[: options.first]
    if not len(rows):
        why = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in skipped.items())
        raise InputError(
            f"{log.name}: no job in it can run "
            f"({why or 'none was submitted in the span asked for'})"
        )
    submit = _microseconds(submit_s[rows], log.name, "submit")
    counted = submit >= submit[0] + round(options.warmup * MICROSECONDS)
    if options.counted_from is not None:
        counted &= submit_s[rows] >= log_second(options.counted_from, clock, log.name, "--warmup")
    submitted, submit = submit, _scaled(submit, options.load)
    deadline = np.broadcast_to(np.int64(-1), len(rows))
    if deadlines is not None:
        deadline = np.where(deadlines[rows] >= 0, deadlines[rows] + submit - submitted, -1)
    # Arrivals that fall on one instant, to the microsecond and after scaling, are ordered by job
    # number.
    order = np.lexsort((log["job"][rows], submit))
    if np.any(order[1:] < order[:-1]):
        rows, submit, counted, deadline = (
            rows[order],
            submit[order],
            counted[order],
            deadline[order],
        )
    run = _microseconds(run_s[rows], log.name, "run")
    requested = np.asarray(log["time_requested"])[rows]
    estimate = np.where(
        requested > 0, _microseconds(np.maximum(requested, 0), log.name, "requested time"), run
    )
    if resources is not None:
        times = [default_time(machine, each.partitions) for each in resources.requests]
        usual = np.array([*times, default_time(machine, ())], np.int64)[resources.of[rows]]
        estimate = np.where((requested <= 0) & (usual > 0), usual, estimate)
    estimate = read_estimates(options.estimates).of(estimate, run, options.seed)
    # If jobs ran one after another, would they end after the last instant that can be counted?
    last = float(submit.max()) + float(
        np.maximum(np.maximum(estimate, run), MICROSECONDS).sum(dtype=np.float64)
    )
    if last > _HORIZON:
        raise InputError(
            f"{log.name}: its submissions and estimates add up to {last / MICROSECONDS:.3g} s, "
            "more than the "
            f"{_HORIZON / MICROSECONDS:.3g} s that can be counted; use --first, or a smaller f:N"
        )
    memory = np.broadcast_to(np.int64(0), len(rows))
    if machine.counts_memory:
        memory = _memory(log, rows, procs)
    columns: dict[str, Any] = {}
    if resources is not None:
        requests, of = resources.requests, resources.of[rows]
        if has_limits(machine):
            requests, of = in_partitions(machine, requests, of, procs[rows], estimate)
            resources = resources._replace(requests=requests)
        memory = _of_requests(resources, [each.memory for each in requests], memory, of)
        names = dict.fromkeys(name for each in requests for name in each.resources)
        columns = {
            "requests": requests,
            "request": of,
            "charges": resources.charges,
            "charge": resources.charge[rows] if resources.charges else resources.charge,
            "resources": {
                name: _of_requests(
                    resources, [each.resources.get(name, 0) for each in requests], 0 * of, of
                )
                for name in names
            },
        }
    effective = np.minimum(run, estimate) if options.kill else run
    estimate = estimate if options.kill else np.maximum(estimate, run)
    return Workload(
        name=log.name,
        procs_total=machine.procs,
        number=np.ascontiguousarray(log["job"][rows]).astype(np.int64),
        submit=submit,
        procs=procs[rows].astype(np.int64),
        estimate=estimate,
        run=effective,
        logged_run=run,
        memory=memory,
        used_memory=_used_memory(log, rows),
        user=_column(log, "user", rows),
        group=_column(log, "group", rows),
        queue=_column(log, "queue", rows),
        counted=counted,
        log_row=rows,
        clock=clock,
        skipped=skipped,
        sha256=log.sha256,
        queue_names=log.header.queue_names(),
        estimates_missing=int(np.count_nonzero(requested <= 0)),
        deadline=deadline,
        **columns,
    )


def _on(machine: Machine, resources: ResourceRows) -> ResourceRows:
    """Return what jobs ask for of a machine: one without partitions or reservations does not count
    those of a log."""
    lacks = [not machine.reservations, not machine.partitions]
    nothing = dict(compress((("reservation", ""), ("partitions", ())), lacks))
    requests = tuple(msgspec.structs.replace(each, **nothing) for each in resources.requests)
    return resources._replace(requests=requests)


def in_partitions(
    machine: Machine,
    requests: tuple[JobRequest, ...],
    of: Int64Array,
    procs: NDArray[Any],
    estimate: Int64Array,
) -> tuple[tuple[JobRequest, ...], Int64Array]:
    """Return requests with only the partitions that admit them, and the index of each row's.  A job
    without a request has the limits of the default partition."""
    known: dict[JobRequest, int] = {}
    pairs, places = np.unique(
        np.stack([of, np.where(of < 0, procs, 0), estimate]), axis=1, return_inverse=True
    )
    found = []
    for number, width, longest in pairs.T.tolist():
        asked = requests[number] if number >= 0 else JobRequest((ChunkRequest(width, 1),))
        found.append(known.setdefault(limited(machine, asked, longest), len(known)))
    return tuple(known), np.array(found, np.int64)[places.ravel()]


def _of_requests(
    resources: ResourceRows,
    values: list[int],
    otherwise: NDArray[Any],
    of: Int64Array | None = None,
) -> Int64Array:
    """Return the value of each row's request, and for rows without one that of another column."""
    of = resources.of if of is None else of
    return np.where(of >= 0, np.array([*values, 0], np.int64)[of], otherwise)


def run_times(log: Log) -> NDArray[Any]:
    """Return the run times in seconds, negative if there is none.

    For a job that ran or waited when the log was written it is the requested time, as in a forecast
    of the daemon.  Its run time so far is less than its whole run time.
    """
    run = np.asarray(log["run"])
    unfinished = unfinished_of(log)
    if unfinished is None:
        return run
    return np.where(unfinished.runs | unfinished.waits, np.maximum(run, log["time_requested"]), run)


def choose_procs(log: Log, procs: int | None) -> int:
    """Return the processors of the machine of a log: those given, else the header's MaxProcs, else
    MaxNodes.

    Raises:
        InputError: if the header has neither.
    """
    found = procs if procs is not None else machine_procs(log.header)
    if found is None:
        raise InputError(
            f"{log.name}: its header has neither MaxProcs nor MaxNodes; say how many with --procs N"
        )
    return found


def reasons_to_skip(
    log: Log, machine: Machine, resources: ResourceRows | None = None
) -> dict[str, Int64Array]:
    """Return the rows of a log that cannot run on a machine, by reason; a row is under the first
    reason that applies.

    ``resources``: what the jobs ask for in chunks.
    """
    submit, run = np.asarray(log["submit"]), run_times(log)
    procs = np.asarray(log.procs)
    if resources is not None:
        procs = _of_requests(resources, [each.procs for each in resources.requests], procs)
    is_strange = np.zeros(len(log), np.bool_)
    is_strange[users_of_reservations(log, machine, resources).refused] = True
    number = np.asarray(log["job"])
    keep = np.ones(len(log), np.bool_)
    memory = _memory(log, slice(None), np.maximum(procs, 1))
    # Of jobs that may be on several hosts, admission refuses those that do not fit.
    has_host = np.full(len(log), machine.chunked)
    for host in set(machine.hosts):
        has_host |= (procs <= host.cpus) & ((host.memory == 0) | (memory <= host.memory))
    found: dict[str, Int64Array] = {}
    for name, bad in (
        ("cancelled", cancelled_rows(log)),
        ("negative_job_number", number < 0),
        ("negative_submit", submit < 0),
        ("no_processors", procs < 1),
        ("negative_run", run < 0),
        ("too_wide", procs > machine.widest_job),
        ("not_a_user_of_its_reservation", is_strange),
        ("too_much_memory", ~has_host if machine.counts_memory else np.zeros(len(log), np.bool_)),
    ):
        rows = np.flatnonzero(bad & keep)
        if len(rows):
            found[name] = rows
        keep &= ~bad
    return found


def _microseconds(seconds: NDArray[Any], name: str, field: str) -> Int64Array:
    if len(seconds) and float(seconds.max()) > _BIGGEST:
        raise InputError(
            f"{name}: {field} of {seconds.max():g} s is too large; times up to {_BIGGEST} s can be "
            "replayed"
        )
    if seconds.dtype.kind == "i":
        return np.asarray(seconds.astype(np.int64) * MICROSECONDS)
    return np.asarray(np.rint(seconds * MICROSECONDS).astype(np.int64))


def _scaled(submit: Int64Array, load: float) -> Int64Array:
    """Divide the gaps between arrivals by ``load``, keeping the first arrival and the order."""
    if load == 1.0:
        return submit
    if float(submit[-1] - submit[0]) / load > _BIGGEST * MICROSECONDS:
        raise UsageError(f"--load {load:g}: stretches the log beyond {_BIGGEST} s")
    return np.asarray(submit[0] + np.rint((submit - submit[0]) / load).astype(np.int64))


def _column(log: Log, name: str, rows: Int64Array) -> NDArray[Any]:
    """Return a column for some rows; a constant column takes no memory."""
    column = log[name]
    if column.strides == (0,):
        return np.broadcast_to(column[:1].reshape(()), len(rows))
    return np.ascontiguousarray(column[rows])


def _memory(log: Log, rows: Int64Array | slice, procs: NDArray[Any]) -> Int64Array:
    """Return bytes for the whole job, at most ``_MEMORY_MAX``: SWF counts KB per processor."""
    per_processor = np.maximum(log["memory_requested"][rows], 0).astype(np.int64)
    whole = procs[rows].astype(np.int64)
    is_beyond = per_processor.astype(np.float64) * whole * 1024.0 > _MEMORY_MAX
    return np.where(is_beyond, _MEMORY_MAX, per_processor * whole * 1024)


def _used_memory(log: Log, rows: Int64Array) -> NDArray[Any]:
    """Return bytes for the whole job, -1 for unknown: SWF counts KB per processor, over those that
    the job had."""
    used = log["memory_used"]
    if used.strides == (0,):
        return np.broadcast_to(np.int64(-1), len(rows))
    per_processor = used[rows].astype(np.float64)
    known = np.maximum(per_processor, 0.0)  # an unknown value must not be multiplied beyond 64 bits
    total = np.rint(np.minimum(known * used_procs(log)[rows] * 1024.0, float(_MEMORY_MAX)))
    return np.where(per_processor < 0, -1, total.astype(np.int64))
