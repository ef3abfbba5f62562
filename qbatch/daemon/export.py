"""What really ran, as a log in the Standard Workload Format."""

from __future__ import annotations

from collections.abc import Sequence

from qbatch.wire.identifiers import parse_id
from qbatch.wire.records import HostRecord, JobRecord
from qbatch.wire.resources import parse_duration, parse_size

_SECOND = 1_000_000


def swf_of(jobs: Sequence[JobRecord], hosts: Sequence[HostRecord], server: str) -> tuple[str, int]:
    """Return the log as a text, and how many jobs never ran and are left out.

    Times count from the first submission; ``UnixStartTime`` says when that was.  Jobs of arrays follow one another with
    numbers of their own.  Status: 1 for exit status 0, 5 for deleted, 0 for failed.
    """
    ran = [job for job in jobs if job.started is not None and job.ended is not None and job.exec_host]
    ran.sort(key=lambda job: (job.eligible or job.submitted or 0, parse_id(job.id)))
    first = min((job.submitted or 0 for job in ran), default=0) // _SECOND * _SECOND
    users = _numbers(job.user for job in ran)
    groups = _numbers(job.group for job in ran)
    queues = _numbers(job.queue for job in ran)
    procs = sum(host.cpus for host in hosts)
    lines = [
        "; Version: 2.2", f"; Computer: qbatch server {server}", f"; MaxJobs: {len(ran)}", f"; MaxRecords: {len(ran)}",
        f"; UnixStartTime: {first // _SECOND}", f"; MaxNodes: {len(hosts)}", f"; MaxProcs: {procs}",
        *(f"; Queue: {number} {name}" for name, number in queues.items()),
        *(f"; Note: user {number} is {name}" for name, number in users.items()),
    ]  # fmt: skip
    for number, job in enumerate(ran, 1):
        lines.append(_line(number, job, first, users, groups, queues))
    return "\n".join(lines) + "\n", len(jobs) - len(ran)


def _numbers(names: object) -> dict[str, int]:
    found: dict[str, int] = {}
    for name in names:  # type: ignore[attr-defined]
        found.setdefault(name or "-", len(found) + 1)
    return found


def _line(
    number: int, job: JobRecord, first: int, users: dict[str, int], groups: dict[str, int], queues: dict[str, int]
) -> str:
    submitted = job.eligible if job.eligible is not None else job.submitted or 0
    started, ended = job.started or 0, job.ended or 0
    count = int(job.resources.get("ncpus", "1"))
    requested = parse_duration(job.resources["walltime"]) if "walltime" in job.resources else 0
    used = parse_size(job.used.get("mem", "0kb")) // 1024 // count if job.used else -1
    asked = parse_size(job.resources["mem"]) // 1024 // count if "mem" in job.resources else -1
    cput = parse_duration(job.used["cput"]) / _SECOND / count if "cput" in job.used else -1
    status = 1 if job.exit_status == 0 else 5 if job.exit_status in (265, 271) else 0
    fields: list[object] = [
        number, _seconds(submitted - first), _seconds(started - submitted), _seconds(ended - started), count,
        f"{cput:.2f}" if cput >= 0 else -1, used, count, _seconds(requested), asked, status, users[job.user or "-"],
        groups[job.group or "-"], -1, queues[job.queue or "-"], -1, -1, -1,
    ]  # fmt: skip
    return " ".join(str(field) for field in fields)


def _seconds(microseconds: int) -> str:
    whole, rest = divmod(max(microseconds, 0), _SECOND)
    return f"{whole}.{rest:06d}".rstrip("0") if rest else str(whole)
