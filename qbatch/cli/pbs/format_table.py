"""The plain tables of ``qstat``: jobs, queues (-Q) and servers (-B).  Pure functions.

A table without rows has no header either: without jobs, ``qstat`` prints nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from qbatch.cli.pbs.format_attributes import shown_state
from qbatch.cli.pbs.text import cell, seconds_of, whole_cell
from qbatch.wire.records import JobRecord, QueueRecord, ServerRecord

_QUEUE_ROW = "%-16s %5s %5s %3s %3s %5s %5s %5s %5s %5s %5s %-4s\n"
_SERVER_ROW = "%-16s %5s %5s %5s %5s %5s %5s %5s %5s %-10s\n"


# Tables of jobs: the header, the format of a row and the widths of id, name, user and queue.
_PLAIN = (
    "Job id            Name             User              Time Use S Queue\n"
    "----------------  ---------------- ----------------  -------- - -----\n",
    "%-17s %-16s %-16s  %8s %1s %-16s\n",
    (17, 16, 16, 16),
)
_WIDE = (
    "Job id                         Name            User             Time Use S Queue\n"
    "-----------------------------  --------------- ---------------  -------- - ---------------\n",
    "%-30s %-15s %-15s  %8s %1s %-15s\n",
    (30, 15, 15, 15),
)
_TORQUE = (
    "Job ID                    Name             User            Time Use S Queue\n"
    "------------------------- ---------------- --------------- -------- - -----\n",
    "%-25s %-16s %-15s %8s %1s %-15s\n",
    (25, 16, 15, 15),
)


def shown_id(job: str, width: int) -> str:
    """Return a job's identifier for a table, with the server's name up to its first dot.  A cut
    adds no mark, so that the text is always the beginning of the whole identifier."""
    if job.count(".") > 1:
        job = ".".join(job.split(".", 2)[:2])
    return whole_cell(job[:width])


def job_table(
    jobs: Iterable[JobRecord],
    is_wide: bool = False,
    is_percent: bool = False,
    is_torque: bool = False,
) -> str:
    """Return the whole table, empty if there are no jobs."""
    header, row, widths = _WIDE if is_wide else _TORQUE if is_torque and not is_percent else _PLAIN
    id_width, name_width, user_width, queue_width = widths
    rows = []
    for job in jobs:
        id_, name, queue = (
            shown_id(job.id, id_width),
            cell(job.name, name_width),
            cell(job.queue, queue_width),
        )
        time_text = percent_done(job) if is_percent else job.used.get("cput", "0")[:8] or "0"
        state = shown_state(job, is_torque)[:1]
        rows.append(
            row % (id_, name, cell(job.user.partition("@")[0], user_width), time_text, state, queue)
        )
    if is_percent:
        header = header.replace(" Time Use ", "  % done  ")
    return header + "".join(rows) if rows else ""


def percent_done(job: JobRecord) -> str:
    """Return the part of a job that is done, in percent: of an array's subjobs, else of cput or
    walltime."""
    if job.state in ("Q", "T", "W"):
        return "-- "
    if job.state == "X":
        return "100"
    if job.is_array and job.array_counts:
        total = sum(job.array_counts.values())
        done = sum(job.array_counts.get(name, 0) for name in ("X", "F", "Expired"))
        return f"{done * 100 // total:3d} " if total else "-- "
    best = -1
    for name in ("cput", "walltime"):
        asked, used = job.resources.get(name), job.used.get(name)
        if asked and used and seconds_of(asked):
            best = max(best, seconds_of(used) * 100 // seconds_of(asked))
    return f"{best:3d} " if best >= 0 else "-- "


def _counts(counts: Mapping[str, int]) -> Iterable[str]:
    """Yield the numbers of jobs that are queued, running, held, waiting, in transit, exiting."""
    return (
        str(sum(counts.get(letter, 0) for letter in letters))[:5]
        for letters in ("Q", "RSUB", "H", "W", "T", "E")
    )


def queue_table(queues: Iterable[QueueRecord]) -> str:
    """Return the table of ``qstat -Q``."""
    rows = []
    for queue in queues:
        most, total = str(queue.max_running or 0)[:5], str(queue.total)[:5]
        flags = ["yes" if value else "no" for value in (queue.enabled, queue.started)]
        rows.append(
            _QUEUE_ROW
            % (
                cell(queue.name, 16),
                most,
                total,
                *flags,
                *_counts(queue.counts),
                cell(queue.kind, 4),
            )
        )
    header = (
        "Queue              Max   Tot Ena Str   Que   Run   Hld   Wat   Trn   Ext Type\n"
        "---------------- ----- ----- --- --- ----- ----- ----- ----- ----- ----- ----\n"
    )
    return header + "".join(rows) if rows else ""


def server_table(server: ServerRecord) -> str:
    """Return the table of ``qstat -B``."""
    name, total, state = cell(server.name, 16), str(server.total)[:5], cell(server.state, 10)
    return (
        "Server             Max   Tot   Que   Run   Hld   Wat   Trn   Ext Status\n"
        "---------------- ----- ----- ----- ----- ----- ----- ----- ----- -----------\n"
    ) + _SERVER_ROW % (name, "0", total, *_counts(server.counts), state)
