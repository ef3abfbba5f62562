"""The jobs of a server as a result that can be exported: job rows, bars on hosts, a workload log.

If a trial run put a job back into the queue, the job's start is that of its first trial, as in a
replay, and the trials are execution intervals of lost work.  So are lost attempts (a host went
down, qrerun).  Times of rows and bars count from the first submission, rounded down to a second,
which ``UnixStartTime`` gives.  Jobs of arrays are numbered like others, in order of eligibility.

On a server that was fed with a log, the jobs of the log keep their numbers, and times are those of
the log, so that the export can be compared with it.  The numbers of all other jobs follow the
largest of the log.  The workload log also has the running and waiting jobs of one instant
(:mod:`qbatch.workloads.unfinished`); the other forms have ended jobs only.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from msgspec import structs

from qbatch.daemon.core.state import LOG_NUMBER
from qbatch.model.job import FREE, SERVER, JobRequest
from qbatch.model.machine import fold_names
from qbatch.model.record import Int64Array, LogClock, Schedule, finished_run
from qbatch.results.exports import Exportable, ExportedBar
from qbatch.results.job_rows import ABSENT
from qbatch.results.result import Result, queue_names_in
from qbatch.wire.identifiers import JobKey, parse_id
from qbatch.wire.pieces import Piece, pieces_of, run_of
from qbatch.wire.records import FedLogRecord, HostRecord, JobRecord, QueueRecord
from qbatch.wire.resources import parse_duration, parse_size
from qbatch.workloads.accounting.pbs_requests import request_of
from qbatch.workloads.header import Header
from qbatch.workloads.log import Column
from qbatch.workloads.resource_rows import COLUMNS, cells_of
from qbatch.workloads.side_file import SideText, side_bytes
from qbatch.workloads.swf_writer import number_text, write_log
from qbatch.workloads.unfinished import RUNS, WAITS, hosts_note, unfinished_note

POLICY = "live"
"""The policy name of the jobs of a live server."""

_LOG_KEEPS = "first start (field 3) and the time that each really ran (field 4)"
_LOG_LOSES = (
    "when each was suspended, resized, on trial or lost, and so its end, which is later "
    "than field 2 + 3 + 4"
)
_SECOND = 1_000_000
_DELETED = (265, 271)
_HELD = "HWTM"


class ServerExport(NamedTuple):
    """The export of a server's jobs, and how many jobs there are of each kind.

    ``running`` and ``waiting``: at the instant of the export; ``others``: jobs that never ran, or
    are held.  ``side``: the side file of what the jobs ask for beyond the fields of the workload log;
    None: nothing.
    """

    exported: Exportable
    side: SideText | None
    ended: int
    running: int
    waiting: int
    others: int


def exportable_of(
    jobs: Sequence[JobRecord],
    hosts: Sequence[HostRecord],
    server: str,
    now: int | None = None,
    log: FedLogRecord | None = None,
    queues: Sequence[QueueRecord] = (),
) -> ServerExport:
    """Return the export of jobs that have ended, and that run or wait ``now`` (None: only of ended
    ones).

    ``log``: the log that the server was fed with.  ``queues``: those that may have a partition.
    """
    ended, running, waiting = _states_at(jobs, now)
    in_order = sorted((*ended, *running, *waiting), key=_order)
    first = min((_submitted(job) for job in in_order), default=0) // _SECOND * _SECOND
    first = log.offset if log is not None and 0 <= log.offset <= first else first
    in_log = {
        job.id: int(job.extra[LOG_NUMBER])
        for job in in_order
        if job.extra.get(LOG_NUMBER, "").isdecimal()
    }
    last = max(*in_log.values(), 0 if log is None else log.last_number, 0)
    others = (job.id for job in in_order if job.id not in in_log)
    numbers = in_log | {name: number for number, name in enumerate(others, last + 1)}
    selected = _Selected(in_order, running, waiting, hosts, now or 0, first, numbers)
    schedule = selected.schedule(ended)
    bars = [
        bar
        for row in schedule.in_order_of_start().tolist()
        for bar in _bars(row, ended[row], first)
    ]
    total = max(sum(host.cpus for host in hosts), 1)
    name = f"server {server}"
    machine: dict[str, Any] = {"procs": total, "hosts": len(hosts), "one_pool": len(hosts) == 1}
    if len(hosts) > 1:  # charts use them if every job ran inside one host
        machine |= {
            "host_names": [host.name for host in hosts],
            "host_cpus": [host.cpus for host in hosts],
        }
    document = {
        "log": {"name": name}
        | ({"sha256": log.sha256} if log is not None and len(in_log) == len(in_order) else {}),
        "machine": machine,
        "queues": {
            str(number): queue for queue, number in _numbers(job.queue for job in in_order).items()
        },
    }
    clock = LogClock(first // _SECOND)
    facts = {
        "name": name,
        "procs_total": total,
        "clock": clock,
        "queue_names": queue_names_in(document),
    }
    result = Result((schedule,), document).with_facts(**facts)

    def write_swf(out: BinaryIO) -> None:
        selected.write_log(out, server)

    exported = Exportable(
        result, {POLICY: bars}, write_swf, swf_keeps=_LOG_KEEPS, swf_loses=_LOG_LOSES
    )
    side = selected.side_file(name, {queue.name: queue.partition for queue in queues})
    left = len(jobs) - len(in_order)
    return ServerExport(exported, side, len(ended), len(running), len(waiting), left)


def _states_at(
    jobs: Sequence[JobRecord], now: int | None
) -> tuple[list[JobRecord], list[JobRecord], list[JobRecord]]:
    """Return the jobs that had run and ended, that ran, and that waited at an instant, each in
    order of eligibility.

    The pages of an answer are of several instants, so what happened after this instant is undone.
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
                structs.replace(
                    job, started=None, ended=None, pauses=(), sizes=(), lost=lost, trials=trials
                )
            )
    for each in (ended, running, waiting):
        each.sort(key=_order)
    return ended, running, waiting


def _order(job: JobRecord) -> tuple[int, JobKey]:
    return (_submitted(job), parse_id(job.id))


def _submitted(job: JobRecord) -> int:
    """Return when a job became eligible; its submission if it became eligible again after a lost
    attempt."""
    is_anew = bool(job.lost) and (job.eligible or 0) > (job.first_started or 0)
    return job.eligible if job.eligible is not None and not is_anew else job.submitted or 0


def _numbers(names: Iterable[str]) -> dict[str, int]:
    return {
        name: number for number, name in enumerate(dict.fromkeys(name or "-" for name in names), 1)
    }


class _Selected(NamedTuple):
    """All jobs of an export in order of eligibility, and those that ran or waited at its instant
    ``now``.

    ``first``: the instant from which times count; ``numbers``: the number of each job by its
    identifier.
    """

    jobs: list[JobRecord]
    running: list[JobRecord]
    waiting: list[JobRecord]
    hosts: Sequence[HostRecord]
    now: int
    first: int
    numbers: dict[str, int]

    def schedule(self, ran: Sequence[JobRecord], now: int = 0) -> Schedule:
        """Return the schedule, in order of eligibility; the server keeps neither kinds of start nor
        promises.

        Users, groups and queues are numbered among all jobs of the export, so that all its forms
        agree.  A job that still runs ends ``now``.
        """
        first = self.first

        def numbers(values: Iterable[int]) -> Int64Array:
            return np.fromiter(values, np.int64, len(ran))

        def named(name_of: Callable[[JobRecord], str]) -> Int64Array:
            table = _numbers(name_of(job) for job in self.jobs)
            return numbers(table[name_of(job) or "-"] for job in ran)

        def only_host(job: JobRecord) -> int:
            names = list(_procs_on_hosts(job.exec_host))
            return places.get(names[0], ABSENT) if len(names) == 1 else ABSENT

        # A clock that was set back must not make a job start before it was submitted.
        submit = numbers(max(_submitted(job) - first, 0) for job in ran)
        start = np.maximum(numbers((job.first_started or 0) - first for job in ran), submit)
        end = np.maximum(numbers((job.ended or now) - first for job in ran), start)
        pieces = self._pieces(ran, now)
        places = (
            {host.name: place for place, host in enumerate(self.hosts)}
            if len(self.hosts) > 1
            else {}
        )
        on_hosts = numbers(map(only_host, ran))
        deadline = numbers(
            -1 if job.deadline is None else max(job.deadline - first, 0) for job in ran
        )
        broken = numbers(len(job.broken) for job in ran)
        return finished_run(
            POLICY,
            number=numbers(self.numbers[job.id] for job in ran),
            submit=submit,
            start=start,
            end=end,
            procs=numbers(_cpus(job) for job in ran),
            estimate=numbers(parse_duration(job.resources.get("walltime", "0")) for job in ran),
            run=numbers(run_of(job, now) for job in ran),
            user=named(lambda job: job.user),
            group=named(lambda job: job.group),
            queue=named(lambda job: job.queue),
            host=on_hosts if (on_hosts >= 0).any() else None,
            pieces=pieces if len(pieces) else None,
            broken=broken if broken.any() else None,
            **({"deadline": deadline} if (deadline >= 0).any() else {}),
        )

    def _pieces(self, ran: Sequence[JobRecord], now: int) -> Int64Array:
        """Return the execution intervals of suspended, resized and trial jobs as
        ``Schedule.pieces``, in order of their ends."""
        places, first = {host.name: place for place, host in enumerate(self.hosts)}, self.first

        def host_of(where: str) -> int:
            return places.get(where.partition("/")[0], ABSENT)

        found = []
        for row, job in enumerate(ran):
            for begin, end, procs, where in job.thrown_away:
                found.append((row, begin - first, end - first, procs, host_of(where), 0))
            if job.pauses or job.sizes or job.thrown_away:
                host = host_of(job.exec_host)
                found += [
                    (row, begin - first, end - first, procs, host, 1)
                    for begin, end, procs in _last_attempt(job, now)
                ]
        found.sort(key=lambda piece: piece[2])
        return np.array(found, np.int64).reshape(-1, 6)

    def write_log(self, out: BinaryIO, server: str) -> None:
        """Write the workload log of ended, running and waiting jobs, in order of eligibility."""
        jobs, hosts, first = self.jobs, self.hosts, self.first
        states = {
            job.id: code
            for code, some in ((RUNS, self.running), (WAITS, self.waiting))
            for job in some
        }
        columns = _columns(jobs, self.schedule(jobs, self.now), states)
        queues, users = _numbers(job.queue for job in jobs), _numbers(job.user for job in jobs)
        is_preempted = any(job.pauses or job.sizes or job.thrown_away for job in jobs)
        lines = [
            "; Version: 2.2",
            f"; Computer: qbatch server {server}",
            f"; MaxJobs: {len(jobs)}",
            f"; MaxRecords: {len(jobs)}",
            f"; Preemption: {'TS' if is_preempted else 'No'}",
            f"; UnixStartTime: {first // _SECOND}",
            f"; MaxNodes: {len(hosts)}",
            f"; MaxProcs: {sum(host.cpus for host in hosts)}",
            *(f"; Queue: {number} {name}" for name, number in queues.items()),
            *(f"; Note: user {number} is {name}" for name, number in users.items()),
        ]
        if states:
            second = number_text((self.now - first) / _SECOND)
            lines.append(f"; Note: {unfinished_note(second, len(self.running), len(self.waiting))}")
        if len(hosts) > 1:
            lines.append(f"; Note: {hosts_note([host.cpus for host in hosts])}")
        write_log(out, Header(lines=tuple(lines)), columns)

    def side_file(self, name: str, partition_of: Mapping[str, str]) -> SideText | None:
        """Return the side file of what the jobs ask for that the hosts count, with the partitions
        of their queues; None if no job asks for more than processors anywhere, or in one chunk."""
        names = {each for host in self.hosts for each in (*host.resources, *host.features)}
        asked = [_request_of(job, names, partition_of.get(job.queue, "")) for job in self.jobs]
        if not any(request is not None and not _is_plain(request) for request in asked):
            return None
        rows = []
        for job, request in zip(self.jobs, asked, strict=True):
            if request is not None and (cells := cells_of(request)):
                cells |= {"job": str(self.numbers[job.id])}
                cells |= {"hosts": ",".join(fold_names([*_procs_on_hosts(job.exec_host)]))}
                rows.append([cells.get(column, "") for column in COLUMNS])
        return SideText(name, side_bytes(COLUMNS, rows))


def _request_of(job: JobRecord, names: Collection[str], partition: str) -> JobRequest | None:
    """Return what a job asks for on hosts, of the resources and features with these names, in the
    partition of its queue."""
    found = request_of(job.resources)
    if found is None:
        return None
    chunks = []
    for chunk in found.request.chunks:
        gpus = dict(chunk.resources).get("gpu", 0)
        types = [each for each in chunk.features if f"gpu:{each}" in names and gpus]
        amounts = (*chunk.resources, *((f"gpu:{each}", gpus) for each in types))
        kept = tuple(each for each in amounts if each[0] in names)
        features = tuple(each for each in chunk.features if each in names)
        if chunk.host != SERVER:
            chunks.append(structs.replace(chunk, resources=kept, features=features))
    partitions = (partition,) if partition else ()
    return structs.replace(found.request, chunks=tuple(chunks), partitions=partitions)


def _is_plain(request: JobRequest) -> bool:
    """Return whether a log says all of a request: one chunk, or single processors anywhere."""
    chunks = request.chunks
    is_bare = not (request.is_exclusive or request.partitions)
    is_bare = is_bare and not any(each.resources or each.features for each in chunks)
    is_one = sum(chunk.count for chunk in chunks) == 1
    are_single = request.placing == FREE and all(chunk.procs == 1 for chunk in chunks)
    return is_bare and (is_one or are_single)


def _last_attempt(job: JobRecord, now: int = 0) -> list[Piece]:
    """Return the execution intervals of the last attempt; one of no length if the attempt took no
    time."""
    start = job.started or 0
    return pieces_of(job, now) or [Piece(start, start, _cpus(job))]


def _cpus(job: JobRecord) -> int:
    return int(job.resources.get("ncpus", "1"))


def _bars(row: int, job: JobRecord, first: int) -> list[ExportedBar]:
    """Return the bars of a job: ``n1/0*4+n2/0*4`` is two bars (a host may be named more than once),
    a pause adds two.

    Trials and lost attempts are bars like the others.
    """
    # A resized job runs on one host with the processors of its interval; ``where`` has only its
    # last number.
    resized = {attempt for attempt, _, _, procs, _ in job.lost if procs != _cpus(job)}
    intervals = [
        *((begin, end, None, where) for begin, end, _, where in job.trials),
        *(
            (begin, end, procs if attempt in resized else None, where)
            for attempt, begin, end, procs, where in job.lost
        ),
    ]
    bars = [
        ExportedBar(row, host, begin - first, end - first, has if procs is None else procs)
        for begin, end, procs, where in intervals
        for host, has in _procs_on_hosts(where).items()
    ]
    return bars + [
        ExportedBar(row, host, begin - first, end - first, procs if job.sizes else has)
        for host, has in _procs_on_hosts(job.exec_host).items()
        for begin, end, procs in _last_attempt(job)
    ]


def _procs_on_hosts(where: str) -> dict[str, int]:
    """Return the processors on each host of a text such as ``n1/0*4+n2/0``."""
    found: dict[str, int] = {}
    for part in where.split("+"):
        host, _, slots = part.partition("/")
        times = slots.partition("*")[2]
        found[host] = found.get(host, 0) + (int(times) if times.isdigit() else 1)
    return found


def _columns(
    jobs: Sequence[JobRecord], schedule: Schedule, states: dict[str, int]
) -> dict[str, Column]:
    """Return the columns of the log: from the schedule, with memory, processor time and status from
    the records.

    For a job with several execution intervals, the wait is that before its first start.  The run
    time is what it really ran, as if on the processors that it asked for; the header then has
    ``Preemption: TS``.  ``states``: the status of jobs that run or wait, by identifier.
    """
    memory, asked, processor_time, status = [], [], [], []
    for job in jobs:
        cpus = _cpus(job)
        memory.append(parse_size(job.used.get("mem", "0kb")) // 1024 // cpus if job.used else -1)
        asked.append(
            parse_size(job.resources["mem"]) // 1024 // cpus if "mem" in job.resources else -1
        )
        processor_time.append(
            round(parse_duration(job.used["cput"]) / _SECOND / cpus, 2)
            if "cput" in job.used
            else -1
        )
        status.append(
            states.get(
                job.id, 1 if job.exit_status == 0 else 5 if job.exit_status in _DELETED else 0
            )
        )
    work = schedule.workload
    columns: dict[str, Column] = {
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
    for name in ("wait", "run", "procs_allocated", "cpu_time", "memory_used"):
        columns[name] = np.where(columns["status"] == WAITS, -1, columns[name])
    return columns


def _seconds(microseconds: Int64Array) -> Column:
    return microseconds // _SECOND if not (microseconds % _SECOND).any() else microseconds / _SECOND
