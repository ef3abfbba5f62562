"""What ``pbsnodes`` prints: blocks (-a), lists (-l), summaries (-S, -Sj), ``-F dsv``, ``-F json``.  Pure."""

from __future__ import annotations

from collections.abc import Iterable

from qbatch.cli.pbs.format_attributes import host_attributes
from qbatch.cli.pbs.format_full import json_object
from qbatch.cli.pbs.text import cell, plain, whole_cell
from qbatch.wire.records import HostRecord

_HEADER = (
    "vnode           state           OS       hardware host            queue        mem     ncpus   nmics   ngpus  "
    "comment\n"
    "--------------- --------------- -------- -------- --------------- ---------- -------- ------- ------- ------- "
    "---------\n"
)
_JOBS_HEADER = (
    "                                                        mem       ncpus   nmics   ngpus\n"
    "vnode           state           njobs   run   susp      f/t        f/t     f/t     f/t   jobs\n"
    "--------------- --------------- ------ ----- ------ ------------ ------- ------- ------- -------\n"
)


def host_block(host: HostRecord, version: str) -> str:
    """Return one block of ``pbsnodes -a``: the name, its attributes indented by five, a blank line."""
    lines = [plain(host.name)]
    lines += [f"     {plain(each.full_name)} = {plain(each.value)}" for each in host_attributes(host, version)]
    return "\n".join(lines) + "\n\n"


def host_object(host: HostRecord, version: str) -> dict[str, object]:
    """Return what ``-F json`` has of a host."""
    found = json_object(host_attributes(host, version))
    if host.jobs:
        found["jobs"] = list(dict.fromkeys(host.jobs))
    return found


def host_line(host: HostRecord) -> str:
    """Return one line of ``pbsnodes -l``: name, state, comment."""
    return f"{whole_cell(host.name):<20} {plain(host.state)} {plain(host.comment)}".rstrip() + "\n"


def short_size(size: int) -> str:
    """Return bytes in at most three digits: ``64gb``."""
    kilobytes, letters = -(-size // 1024), "kmgtp"
    place = 0
    while kilobytes > 999 and place < len(letters) - 1:
        kilobytes = (kilobytes % 1024 + kilobytes) >> 10
        place += 1
    return f"{kilobytes}{letters[place]}b"


def summary_table(hosts: Iterable[HostRecord], server: str, has_jobs: bool = False, is_long: bool = False) -> str:
    """Return the table of ``pbsnodes -S`` (``-Sj`` with jobs; ``-L``: nothing is cut)."""
    rows = [_job_row(host, server, is_long) if has_jobs else _row(host, is_long) for host in hosts]
    return (_JOBS_HEADER if has_jobs else _HEADER) + "".join(rows)


def _cut(text: str, width: int, is_long: bool) -> str:
    return f"{whole_cell(text) if is_long else cell(text, width):<{width}}"


def _row(host: HostRecord, is_long: bool) -> str:
    queue = host.queues[0] if len(host.queues) == 1 else "--"
    return (
        f"{_cut(host.name, 15, is_long)} {_cut(host.state, 15, is_long)} {'--':<8} {'--':<8} "
        f"{_cut(host.name, 15, is_long)} {_cut(queue, 10, is_long)} {short_size(host.memory):>8} {host.cpus:>7} "
        f"{0:>7} {0:>7} {plain(host.comment) or '--'}\n"
    )


def _job_row(host: HostRecord, server: str, is_long: bool) -> str:
    jobs = list(dict.fromkeys(host.jobs))
    memory = f"{short_size(max(host.memory - host.memory_used, 0))}/{short_size(host.memory)}"
    names = ",".join(whole_cell(job.removesuffix(f".{server}")) for job in jobs) or "--"
    return (
        f"{_cut(host.name, 15, is_long)} {_cut(host.state, 15, is_long)} {len(jobs):>6} {len(jobs):>5} {0:>6} "
        f"{memory:>12} {f'{host.cpus - host.cpus_used}/{host.cpus}':>7} {'0/0':>7} {'0/0':>7} {names}\n"
    )
