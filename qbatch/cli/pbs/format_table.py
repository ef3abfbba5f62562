"""The plain tables of ``qstat``: jobs, queues (-Q) and servers (-B).  Pure functions.

A table without rows has no header either: without jobs, ``qstat`` prints nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from qbatch.cli.pbs.format_attributes import shown_state
from qbatch.cli.pbs.text import cell, seconds_of, whole_cell
from qbatch.wire.records import JobRecord, QueueRecord, ServerRecord

_DASHES = "----------------  ---------------- ----------------  -------- - -----\n"
_WIDE_DASHES = "------------------------------ --------------- ---------------  -------- - ---------------\n"
_TORQUE_DASHES = "------------------------- ---------------- --------------- -------- - -----\n"
_QUEUE_ROW = "%-16s %5s %5s %3s %3s %5s %5s %5s %5s %5s %5s %-4s\n"
_SERVER_ROW = "%-16s %5s %5s %5s %5s %5s %5s %5s %5s %-10s\n"


class Layout:
    """A table of jobs: its header, the format of a row and the widths of id, name, user and queue."""

    def __init__(self, header: str, row: str, widths: tuple[int, int, int, int]) -> None:
        self.header = header
        self.row = row
        self.widths = widths


PLAIN = Layout(
    "Job id            Name             User              Time Use S Queue\n" + _DASHES,
    "%-17s %-16s %-16s  %8s %1s %-16s\n",
    (17, 16, 16, 16),
)
PERCENT = Layout(
    "Job id            Name             User               % done  S Queue\n" + _DASHES, PLAIN.row, PLAIN.widths
)
WIDE = Layout(
    "Job id                         Name            User             Time Use S Queue\n" + _WIDE_DASHES,
    "%-30s %-15s %-15s  %8s %1s %-15s\n",
    (30, 15, 15, 15),
)
WIDE_PERCENT = Layout(WIDE.header.replace(" Time Use ", "  % done  "), WIDE.row, WIDE.widths)
TORQUE = Layout(
    "Job ID                    Name             User            Time Use S Queue\n" + _TORQUE_DASHES,
    "%-25s %-16s %-15s %8s %1s %-15s\n",
    (25, 16, 15, 15),
)


def shown_id(job: str, width: int) -> str:
    """Return a job's identifier for a table, with the server's name up to its first dot.  A cut adds no mark, so that the text
    is always the beginning of the whole identifier."""
    if job.count(".") > 1:
        job = ".".join(job.split(".", 2)[:2])
    return whole_cell(job[:width])


def layout_of(is_wide: bool = False, is_percent: bool = False, is_torque: bool = False) -> Layout:
    """Return the layout that the options ask for."""
    if is_torque and not is_wide and not is_percent:
        return TORQUE
    if is_wide:
        return WIDE_PERCENT if is_percent else WIDE
    return PERCENT if is_percent else PLAIN


def job_rows(jobs: Iterable[JobRecord], layout: Layout, is_percent: bool = False, is_torque: bool = False) -> list[str]:
    """Return one line for each job."""
    id_width, name_width, user_width, queue_width = layout.widths
    row, rows = layout.row, []
    for job in jobs:
        time_text = percent_done(job) if is_percent else job.used.get("cput", "0")[:8]
        rows.append(
            row
            % (
                shown_id(job.id, id_width),
                cell(job.name, name_width),
                cell(job.user.partition("@")[0], user_width),
                time_text or "0",
                shown_state(job.state, is_torque)[:1],
                cell(job.queue, queue_width),
            )
        )
    return rows


def job_table(
    jobs: Iterable[JobRecord], is_wide: bool = False, is_percent: bool = False, is_torque: bool = False
) -> str:
    """Return the whole table, empty if there are no jobs."""
    layout = layout_of(is_wide, is_percent, is_torque)
    rows = job_rows(jobs, layout, is_percent, is_torque)
    return layout.header + "".join(rows) if rows else ""


def percent_done(job: JobRecord) -> str:
    """Return the part of a job that is done, in percent: of an array's subjobs, else of cput or walltime."""
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


def _counts(counts: Mapping[str, int]) -> tuple[str, ...]:
    running = counts.get("R", 0) + counts.get("S", 0) + counts.get("U", 0) + counts.get("B", 0)
    return tuple(
        str(each)[:5]
        for each in (
            counts.get("Q", 0),
            running,
            counts.get("H", 0),
            counts.get("W", 0),
            counts.get("T", 0),
            counts.get("E", 0),
        )
    )


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def queue_table(queues: Iterable[QueueRecord]) -> str:
    """Return the table of ``qstat -Q``."""
    rows = [
        _QUEUE_ROW
        % (
            cell(queue.name, 16),
            str(queue.max_running or 0)[:5],
            str(queue.total)[:5],
            _yes(queue.enabled),
            _yes(queue.started),
            *_counts(queue.counts),
            queue.kind[:4],
        )
        for queue in queues
    ]
    if not rows:
        return ""
    header = (
        "Queue              Max   Tot Ena Str   Que   Run   Hld   Wat   Trn   Ext Type\n"
        "---------------- ----- ----- --- --- ----- ----- ----- ----- ----- ----- ----\n"
    )
    return header + "".join(rows)


def server_table(servers: Iterable[ServerRecord]) -> str:
    """Return the table of ``qstat -B``."""
    rows = [
        _SERVER_ROW
        % (cell(server.name, 16), "0", str(server.total)[:5], *_counts(server.counts), cell(server.state, 10))
        for server in servers
    ]
    header = (
        "Server             Max   Tot   Que   Run   Hld   Wat   Trn   Ext Status\n"
        "---------------- ----- ----- ----- ----- ----- ----- ----- ----- -----------\n"
    )
    return header + "".join(rows)
