"""What really ran, as a result that can be exported: job rows, bars on hosts, a workload log.

Of a job that ran on trial and was thrown back into the queue, the start is that of its first trial, as in a replay, and the
trials are pieces whose work was thrown away.  Attempts that were lost (a host went down, qrerun) are told in the same way.
Times of rows and bars count from the first submission, cut to a whole second, which the clock (``UnixStartTime``) says.  Jobs
of arrays are jobs like others, numbered in order of eligibility.  On a server that was fed with a log, the jobs of the log keep
their numbers and times are those of the log, so that the export can be compared with it; the numbers of all other jobs follow
the largest of the log.  The workload log tells of jobs that run and wait too, as they
stood at one instant (:mod:`qbatch.workloads.unfinished`); the other forms are of jobs that have ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from msgspec import structs

from qbatch.daemon.core.state import LOG_NUMBER
from qbatch.model.record import Int64Array, LogClock, Schedule, finished_run
from qbatch.results.exports import Exportable, ExportedBar
from qbatch.results.job_rows import ABSENT
from qbatch.results.result import Result, queue_names_in
from qbatch.wire.identifiers import JobKey, parse_id
from qbatch.wire.pieces import Piece, pieces_of, run_of
from qbatch.wire.records import FedLogRecord, HostRecord, JobRecord
from qbatch.wire.resources import parse_duration, parse_size
from qbatch.workloads.header import Header
from qbatch.workloads.log import Column
from qbatch.workloads.swf_writer import number_text, write_log
from qbatch.workloads.unfinished import RUNS, WAITS, hosts_note, unfinished_note

POLICY = "live"
"""The name under which the jobs of a live server stand."""

_LOG_KEEPS = "first start (field 3) and the time that each really ran (field 4)"
_LOG_LOSES = "when each was suspended, resized, on trial or lost, and so its end, which is later than field 2 + 3 + 4"
_SECOND = 1_000_000
_DELETED = (265, 271)
_HELD = "HWTM"


class Lived(NamedTuple):
    """What the server's jobs are as exports, and how many there are of which kind.

    ``running`` and ``waiting``: not over at the instant of the export; ``others``: never ran, or are held.
    """

    exported: Exportable
    ended: int
    running: int
    waiting: int
    others: int


def exportable_of(
    jobs: Sequence[JobRecord], hosts: Sequence[HostRecord], server: str, now: int | None = None, log: FedLogRecord | None = None
) -> Lived:
    """Return what ran, and what ran and waited ``now`` (None: only what has ended is there to be told).

    ``log``: the log that the server was fed with.
    """
    ran, running, waiting = _as_they_stood(jobs, now)
    in_order = sorted((*ran, *running, *waiting), key=_order)
    told = _Told(in_order, running, waiting, now or 0, _second_0(in_order, log), _job_numbers(in_order, log))
    schedule = _schedule(ran, told, hosts)
    bars = [bar for row in schedule.in_order_of_start().tolist() for bar in _bars(row, ran[row], told.first)]
    total = max(sum(host.cpus for host in hosts), 1)
    name = f"server {server}"
    document = {
        "log": {"name": name, **_hash_of(in_order, log)},
        "machine": {"procs": total, "hosts": len(hosts), "one_pool": len(hosts) == 1, **_hosts(hosts)},
        "queues": {str(number): queue for queue, number in _numbers(job.queue for job in in_order).items()},
    }
    clock = LogClock(told.first // _SECOND)
    facts = {"name": name, "procs_total": total, "clock": clock, "queue_names": queue_names_in(document)}
    result = Result((schedule,), document).with_facts(**facts)

    def write_swf(out: BinaryIO) -> None:
        _write_log(out, told, hosts, server)

    exported = Exportable(result, {POLICY: bars}, write_swf, swf_keeps=_LOG_KEEPS, swf_loses=_LOG_LOSES)
    others = len(jobs) - len(ran) - len(running) - len(waiting)
    return Lived(exported, len(ran), len(running), len(waiting), others)


def _second_0(jobs: Sequence[JobRecord], log: FedLogRecord | None) -> int:
    """Return the instant from which times count: the log's second 0, unless a job was submitted before it."""
    first = min((_submitted(job) for job in jobs), default=0) // _SECOND * _SECOND
    return log.offset if log is not None and 0 <= log.offset <= first else first


def _number_in_log(job: JobRecord) -> int | None:
    """Return the number of a job in the log that the server was fed with; None of other jobs."""
    text = job.extra.get(LOG_NUMBER, "")
    return int(text) if text.isdecimal() else None


def _job_numbers(jobs: Sequence[JobRecord], log: FedLogRecord | None) -> dict[str, int]:
    """Return the number of each job by its identifier: that of the log, or one after the largest of the log."""
    in_log = {job.id: number for job in jobs if (number := _number_in_log(job)) is not None}
    last = max(max(in_log.values(), default=0), 0 if log is None else log.last_number)
    others = (job.id for job in jobs if job.id not in in_log)
    return in_log | {name: number for number, name in enumerate(others, last + 1)}


def _hash_of(jobs: Sequence[JobRecord], log: FedLogRecord | None) -> dict[str, str]:
    """Return the hash of the log, where all jobs are its own."""
    if log is None or any(_number_in_log(job) is None for job in jobs):
        return {}
    return {"sha256": log.sha256}


def _as_they_stood(
    jobs: Sequence[JobRecord], now: int | None
) -> tuple[list[JobRecord], list[JobRecord], list[JobRecord]]:
    """Return who had ended after a run, who ran and who waited at an instant, each in order of eligibility.

    The pages of an answer are of several instants: what has happened since this one is undone.
    """
    ended, running, waiting = [], [], []
    for job in jobs:
        if now is None or (job.ended is not None and job.ended <= now):
            if job.started is not None and job.ended is not None and job.exec_host:
                ended.append(job)
        elif job.started is not None and job.started <= now and job.exec_host:
            running.append(structs.replace(job, ended=None, exit_status=None))
        elif job.state not in _HELD and job.eligible is not None and job.eligible <= now:
            lost = tuple(piece for piece in job.lost if piece[2] <= now)
            trials = tuple(piece for piece in job.trials if piece[1] <= now)
            waiting.append(
                structs.replace(job, started=None, ended=None, pauses=(), sizes=(), lost=lost, trials=trials)
            )
    for each in (ended, running, waiting):
        each.sort(key=_order)
    return ended, running, waiting


class _Told(NamedTuple):
    """All jobs that an export may tell of, in order of eligibility, and which of them ran and waited at its instant ``now``.

    ``first``: the instant from which times count; ``numbers``: the number of each job by its identifier.
    """

    jobs: list[JobRecord]
    running: list[JobRecord]
    waiting: list[JobRecord]
    now: int
    first: int
    numbers: dict[str, int]


def _write_log(out: BinaryIO, told: _Told, hosts: Sequence[HostRecord], server: str) -> None:
    """Write the workload log of all who ran, run and wait, in order of eligibility."""
    status = {job.id: code for code, jobs in ((RUNS, told.running), (WAITS, told.waiting)) for job in jobs}
    jobs, first = told.jobs, told.first
    columns = _columns(jobs, _schedule(jobs, told, hosts, told.now))
    waits = np.array([status.get(job.id) == WAITS for job in jobs], np.bool_)
    for name in ("wait", "run", "procs_allocated", "cpu_time", "memory_used"):
        columns[name] = np.where(waits, -1, columns[name])
    columns["status"] = np.array(
        [status.get(job.id, known) for job, known in zip(jobs, columns["status"].tolist(), strict=True)], np.int64
    )
    lines = _header(jobs, hosts, server, first)
    if status:
        second = number_text((told.now - first) / _SECOND)
        lines.append(f"; Note: {unfinished_note(second, len(told.running), len(told.waiting))}")
    if len(hosts) > 1:
        lines.append(f"; Note: {hosts_note([host.cpus for host in hosts])}")
    write_log(out, Header(lines=tuple(lines)), columns)


def _hosts(hosts: Sequence[HostRecord]) -> dict[str, Any]:
    """Return names and sizes of several hosts: charts follow them where every job lived inside one."""
    if len(hosts) < 2:
        return {}
    return {"host_names": [host.name for host in hosts], "host_cpus": [host.cpus for host in hosts]}


def _order(job: JobRecord) -> tuple[int, JobKey]:
    return (_submitted(job), parse_id(job.id))


def _submitted(job: JobRecord) -> int:
    """Return when a job became eligible; when it came, if it has become so once more after an attempt that was lost."""
    is_anew = bool(job.lost) and (job.eligible or 0) > (job.first_started or 0)
    return job.eligible if job.eligible is not None and not is_anew else job.submitted or 0


def _numbers(names: Iterable[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for name in names:
        found.setdefault(name or "-", len(found) + 1)
    return found


def _schedule(ran: Sequence[JobRecord], told: _Told, hosts: Sequence[HostRecord], now: int = 0) -> Schedule:
    """Return the schedule, in order of eligibility; the kind of start and promises are not kept by the server.

    Users, groups and queues have their numbers among all jobs that are ``told`` of, so that every form of one instant has the
    same ones.  A job that still runs ends ``now``.
    """
    first = told.first

    def numbers(values: Iterable[int]) -> Int64Array:
        return np.fromiter(values, np.int64, len(ran))

    def named(name_of: Callable[[JobRecord], str]) -> Int64Array:
        table = _numbers(name_of(job) for job in told.jobs)
        return numbers(table[name_of(job) or "-"] for job in ran)

    # A clock that was set back must not make a job start before it was submitted.
    submit = numbers(max(_submitted(job) - first, 0) for job in ran)
    start = np.maximum(numbers((job.first_started or 0) - first for job in ran), submit)
    end = np.maximum(numbers((job.ended or now) - first for job in ran), start)
    pieces = _pieces(ran, hosts, first, now)
    places = {host.name: place for place, host in enumerate(hosts)} if len(hosts) > 1 else {}
    on_hosts = numbers(_only_host(job.exec_host, places) for job in ran)
    deadline = numbers(-1 if job.deadline is None else max(job.deadline - first, 0) for job in ran)
    broken = numbers(len(job.broken) for job in ran)
    return finished_run(
        POLICY,
        number=numbers(told.numbers[job.id] for job in ran),
        submit=submit,
        start=start,
        end=end,
        procs=numbers(_cpus(job) for job in ran),
        estimate=numbers(_walltime(job) for job in ran),
        run=numbers(run_of(job, now) for job in ran),
        user=named(lambda job: job.user),
        group=named(lambda job: job.group),
        queue=named(lambda job: job.queue),
        host=on_hosts if (on_hosts >= 0).any() else None,
        pieces=pieces if len(pieces) else None,
        broken=broken if broken.any() else None,
        **({"deadline": deadline} if (deadline >= 0).any() else {}),
    )


def _pieces(ran: Sequence[JobRecord], hosts: Sequence[HostRecord], first: int, now: int) -> Int64Array:
    """Return what the jobs ran that were suspended, resized or on trial, as ``Schedule.pieces``, in order of their ends."""
    places = {host.name: place for place, host in enumerate(hosts)}

    def host_of(where: str) -> int:
        return places.get(where.partition("/")[0], ABSENT)

    found = []
    for row, job in enumerate(ran):
        for begin, end, procs, where in job.thrown_away:
            found.append((row, begin - first, end - first, procs, host_of(where), 0))
        if job.pauses or job.sizes or job.thrown_away:
            host = host_of(job.exec_host)
            found += [(row, begin - first, end - first, procs, host, 1) for begin, end, procs in _kept(job, now)]
    found.sort(key=lambda piece: piece[2])
    return np.array(found, np.int64).reshape(-1, 6)


def _only_host(where: str, places: dict[str, int]) -> int:
    """Return the place of the host of a job that lived inside one, ``ABSENT`` of one that had several."""
    names = list(_held(where))
    return places.get(names[0], ABSENT) if len(names) == 1 else ABSENT


def _kept(job: JobRecord, now: int = 0) -> list[Piece]:
    """Return the pieces of the last attempt; one of no length of an attempt that took no time."""
    start = job.started or 0
    return pieces_of(job, now) or [Piece(start, start, _cpus(job))]


def _cpus(job: JobRecord) -> int:
    return int(job.resources.get("ncpus", "1"))


def _walltime(job: JobRecord) -> int:
    return parse_duration(job.resources["walltime"]) if "walltime" in job.resources else 0


def _bars(row: int, job: JobRecord, first: int) -> list[ExportedBar]:
    """Return where a job ran: ``n1/0*4+n2/0*4`` is two bars (one host may be named more than once), a pause two more.

    Its trials and lost attempts, which were thrown away, are bars like the others.
    """
    # A job that is resized lives on one host, and has there what its piece says: ``where`` says how many it had at last.
    resized = {attempt for attempt, _, _, procs, _ in job.lost if procs != _cpus(job)}
    tried = [(begin, end, None, where) for begin, end, _, where in job.trials]
    lost = [
        (begin, end, procs if attempt in resized else None, where) for attempt, begin, end, procs, where in job.lost
    ]
    return [
        ExportedBar(row, host, begin - first, end - first, has if procs is None else procs)
        for begin, end, procs, where in (*tried, *lost)
        for host, has in _held(where).items()
    ] + [
        ExportedBar(row, host, begin - first, end - first, procs if job.sizes else has)
        for host, has in _held(job.exec_host).items()
        for begin, end, procs in _kept(job)
    ]


def _held(where: str) -> dict[str, int]:
    """Return the processors by host of a text such as ``n1/0*4+n2/0``."""
    held: dict[str, int] = {}
    for part in where.split("+"):
        host, _, slots = part.partition("/")
        times = slots.partition("*")[2]
        held[host] = held.get(host, 0) + (int(times) if times.isdigit() else 1)
    return held


def _header(ran: Sequence[JobRecord], hosts: Sequence[HostRecord], server: str, first: int) -> list[str]:
    users, queues = _numbers(job.user for job in ran), _numbers(job.queue for job in ran)
    is_in_pieces = any(job.pauses or job.sizes or job.thrown_away for job in ran)
    return [
        "; Version: 2.2", f"; Computer: qbatch server {server}", f"; MaxJobs: {len(ran)}", f"; MaxRecords: {len(ran)}",
        f"; Preemption: {'TS' if is_in_pieces else 'No'}", f"; UnixStartTime: {first // _SECOND}", f"; MaxNodes: {len(hosts)}",
        f"; MaxProcs: {sum(host.cpus for host in hosts)}",
        *(f"; Queue: {number} {name}" for name, number in queues.items()),
        *(f"; Note: user {number} is {name}" for name, number in users.items()),
    ]  # fmt: skip


def _columns(ran: Sequence[JobRecord], schedule: Schedule) -> dict[str, Column]:
    """Return the columns of the log: what the schedule says, and memory, processor time and status from the records.

    Of jobs in pieces the wait is that before the first start, and the run time that which they really ran, as if on the
    processors that they asked for; the header then says ``Preemption: TS``.
    """
    memory, asked, processor_time, status = [], [], [], []
    for job in ran:
        cpus = _cpus(job)
        memory.append(parse_size(job.used.get("mem", "0kb")) // 1024 // cpus if job.used else -1)
        asked.append(parse_size(job.resources["mem"]) // 1024 // cpus if "mem" in job.resources else -1)
        processor_time.append(round(parse_duration(job.used["cput"]) / _SECOND / cpus, 2) if "cput" in job.used else -1)
        status.append(1 if job.exit_status == 0 else 5 if job.exit_status in _DELETED else 0)
    work = schedule.workload
    return {
        "job": work.number,
        "submit": _seconds(work.submit),
        "wait": _seconds(schedule.start - work.submit),
        "run": _seconds(work.run),
        "procs_allocated": work.procs,
        "cpu_time": np.array(processor_time, np.float64),
        "memory_used": np.array(memory, np.int64),
        "procs_requested": work.procs,
        "time_requested": _seconds(work.estimate),
        "memory_requested": np.array(asked, np.int64),
        "status": np.array(status, np.int64),
        "user": work.user,
        "group": work.group,
        "queue": work.queue,
    }


def _seconds(microseconds: Int64Array) -> Column:
    return microseconds // _SECOND if not (microseconds % _SECOND).any() else microseconds / _SECOND
