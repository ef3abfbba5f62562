"""Jobs written as accounting text, by hand and from the manuals' descriptions, not by the code
under test."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from qbatch.workloads.accounting import Imported, ImportOptions, import_files

BASE = 1_700_000_000


@dataclass(frozen=True)
class Sample:
    """A job that ran; instants in seconds since 1970."""

    number: int
    submit: int
    wait: int
    run: int
    hosts: int
    cores: int  # of each host
    limit: int
    is_good: bool
    user: str
    queue: str

    @property
    def start(self) -> int:
        return self.submit + self.wait

    @property
    def end(self) -> int:
        return self.start + self.run


def span(seconds: int) -> str:
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


def stamp(at: int, zone: str = "UTC") -> str:
    return datetime.fromtimestamp(at, UTC).astimezone(ZoneInfo(zone)).strftime("%m/%d/%Y %H:%M:%S")


def iso(at: int, zone: str = "UTC") -> str:
    return datetime.fromtimestamp(at, UTC).astimezone(ZoneInfo(zone)).strftime("%Y-%m-%dT%H:%M:%S")


def torque(job: Sample, zone: str = "UTC") -> list[str]:
    """Return the Q, S and E records that Torque writes."""
    who = f"user={job.user} group=staff jobname=job{job.number} queue={job.queue} "
    times = (
        f"ctime={job.submit} qtime={job.submit} etime={job.submit} start={job.start} "
        f"owner={job.user}@head "
    )
    hosts = "+".join(f"n{host}/{slot}" for host in range(job.hosts) for slot in range(job.cores))
    nodes = f"{job.hosts}:ppn={job.cores}"
    asked = (
        f"exec_host={hosts} Resource_List.neednodes={nodes} Resource_List.nodect={job.hosts} "
        f"Resource_List.nodes={nodes} Resource_List.walltime={span(job.limit)} "
    )
    used = (
        f"session=7 end={job.end} Exit_status={0 if job.is_good else 1} "
        f"resources_used.cput={span(job.run)} "
        "resources_used.mem=2048kb resources_used.vmem=99kb "
        f"resources_used.walltime={span(job.run)}"
    )
    identifier = f"{job.number}.head"
    return [
        f"{stamp(job.submit, zone)};Q;{identifier};queue={job.queue}",
        f"{stamp(job.start, zone)};S;{identifier};{who}{times}{asked}",
        f"{stamp(job.end, zone)};E;{identifier};{who}{times}{asked}{used}",
    ]


def pbs_pro(job: Sample, zone: str = "UTC") -> list[str]:
    """Return the E record that PBS Pro and OpenPBS write."""
    hosts = "+".join(f"n{host}/0*{job.cores}" for host in range(job.hosts))
    vnodes = "+".join(f"(n{host}:ncpus={job.cores}:mem=1048576kb)" for host in range(job.hosts))
    return [
        f'{stamp(job.end, zone)};E;{job.number}.head;user={job.user} group=staff account="a b" '
        "project=_pbs_project_default "
        f"jobname=job{job.number} queue={job.queue} ctime={job.submit} qtime={job.submit} "
        f"etime={job.submit} "
        f"start={job.start} exec_host={hosts} exec_vnode={vnodes} "
        f"Resource_List.ncpus={job.hosts * job.cores} "
        f"Resource_List.nodect={job.hosts} Resource_List.place=scatter "
        f"Resource_List.select={job.hosts}:ncpus={job.cores} "
        f"Resource_List.walltime={span(job.limit)} session=7 end={job.end} "
        f"Exit_status={0 if job.is_good else 1} "
        f"resources_used.cpupercent=99 resources_used.cput={span(job.run)} "
        "resources_used.mem=2048kb "
        f"resources_used.ncpus={job.cores} resources_used.vmem=99kb "
        f"resources_used.walltime={span(job.run)} run_count=1"
    ]


SACCT_HEADER = (
    "JobID|User|Group|Account|JobName|Partition|State|Submit|Eligible|Start|End|Elapsed|Suspended|Timelimit|"
    "AllocCPUS|ReqCPUS|NNodes|NodeList|ReqMem|MaxRSS|NTasks|TotalCPU"
)


def slurm(job: Sample, zone: str = "UTC") -> list[str]:
    """Return the line of a job and of its batch step, as sacct --parsable2 prints them."""
    cores = job.hosts * job.cores
    state = "COMPLETED" if job.is_good else "FAILED"
    days, rest = divmod(job.limit, 86_400)
    limit = f"{days}-{span(rest)}" if days else span(rest)
    hosts = f"n[0-{job.hosts - 1}]" if job.hosts > 1 else "n0"
    submit, start, end = iso(job.submit, zone), iso(job.start, zone), iso(job.end, zone)
    return [
        f"{job.number}|{job.user}|staff|lab|job{job.number}|{job.queue}|{state}|{submit}|{submit}|{start}|{end}|"
        f"{span(job.run)}|00:00:00|{limit}|{cores}|{cores}|{job.hosts}|{hosts}|1Gc|||{span(job.run)}",
        f"{job.number}.batch|||lab|batch||{state}|{start}|{start}|{start}|{end}|{span(job.run)}|00:00:00||{job.cores}|"
        f"{job.cores}|1|n0||2048K|1|{span(job.run)}",
    ]


def imported(folder: Path, form: str, *texts: str | bytes, **options: object) -> Imported:
    """Write each text as a file and import them all, local times in UTC unless an option says
    otherwise."""
    paths = []
    for number, text in enumerate(texts):
        path = folder / f"part{number}"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        paths.append(str(path))
    return import_files(form, paths, ImportOptions(**{"timezone": "UTC", **options}))  # type: ignore[arg-type]


def column(done: Imported, name: str) -> list[float]:
    return done.log.columns[name].tolist()


def reasons(done: Imported, part: str = "unusable") -> dict[str, int]:
    return {each["reason"]: each["count"] for each in done.document[part]}
