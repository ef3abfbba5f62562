"""The alternate tables of ``qstat``: jobs (-a -i -r -H -u -n -s -T -G -M) and queues (-q).  Pure
functions: callers pass the present instant, and the time zone comes from :mod:`time`."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import NamedTuple

from qbatch.cli.pbs.format_attributes import comment_of, shown_state, torque_hosts
from qbatch.cli.pbs.format_table import shown_id
from qbatch.cli.pbs.text import MICROSECONDS, cell, clock, plain, size_in, whole_cell
from qbatch.wire.records import JobRecord, QueueRecord
from qbatch.wire.resources import format_duration, format_size

BLANK = " -- "
_DAY = 86_400
_WIDE_WIDTHS = (30, 15, 15, 15, 8, 4, 5)
_ROW = "%-15.15s %-8.8s %-8.8s %-10.10s %6.6s %3.3s %3.3s %6.6s %5.5s %1.1s %5.5s"
_WIDE_ROW = "%-30.30s %-15.15s %-15.15s %-15.15s %8.8s %4.4s %5.5s %6.6s %5.5s %1.1s %5s"
_QUEUE_ROW = "%-16.16s %6.6s %8.8s %8.8s %4.4s %5d %5d %4.4s   %c %c\n"
_TITLES = ("Job ID", "Username", "Queue", "Jobname", "SessID", "NDS", "TSK")


class Look(NamedTuple):
    """The options of the table: ``unit`` of memory (``g``: -G, ``w``: -M), hosts (-n), comments
    (-s), one line for each job (-1), estimated starts (-T), wide columns (-w), Torque's letters."""

    unit: str = ""
    has_hosts: bool = False
    has_comments: bool = False
    is_one_line: bool = False
    has_estimates: bool = False
    is_wide: bool = False
    is_torque: bool = False


def _header(server: str, look: Look) -> str:
    """Return the lines above the jobs."""
    last = "Start" if look.has_estimates else "Elap"
    indent = " " * (sum(_WIDE_WIDTHS) + len(_WIDE_WIDTHS) if look.is_wide else 60)
    out = f"\n{plain(server)}: \n"
    if look.has_estimates:
        out += f"{indent}               Est\n"
    out += f"{indent}Req'd  Req'd   {last}\n"
    if look.is_wide:
        out += " ".join(
            f"{title:<{width}}" for title, width in zip(_TITLES, _WIDE_WIDTHS, strict=True)
        )
        out += " Memory Time  S Time\n"
        return out + " ".join("-" * width for width in _WIDE_WIDTHS) + " ------ ----- - -----\n"
    out += "Job ID          Username Queue    Jobname    SessID NDS TSK Memory Time  S Time\n"
    return (
        out + "--------------- -------- -------- ---------- ------ --- --- ------ ----- - -----\n"
    )


def alternate_table(jobs: Iterable[JobRecord], server: str, now: int, look: Look) -> str:
    """Return the whole table, empty if there are no jobs.

    With estimates, running jobs come first, by their start, then the others by their estimate.
    """

    def order(job: JobRecord) -> tuple[int, int]:
        if job.state == "R" and job.started is not None:
            return (0, job.started)
        estimate = _estimate(job)
        return (1, estimate) if estimate is not None else (2, 0)

    rows = [
        _row(job, now, look) for job in (sorted(jobs, key=order) if look.has_estimates else jobs)
    ]
    return _header(server, look) + "".join(rows) if rows else ""


def _estimate(job: JobRecord) -> int | None:
    return job.estimated_start if job.estimated_start is not None else job.promised


def _row(job: JobRecord, now: int, look: Look) -> str:
    resources = job.resources
    time_resource = "cput" if "cput" in resources else "walltime"
    if look.has_estimates:
        has_one = job.state in ("Q", "S") or (
            job.started is None and job.estimated_start is not None
        )
        last = start_text(_estimate(job), now, look.is_wide) if has_one else "--"
    elif used := job.used.get(time_resource, ""):
        last = used
    elif job.started is None or job.state in ("Q", "H", "W", "T"):
        last = BLANK
    else:
        last = clock(((job.ended if job.ended is not None else now) - job.started) // MICROSECONDS)
    tasks = resources.get("ncpus", "0")
    row, widths = (_WIDE_ROW, (30, 15, 15, 15)) if look.is_wide else (_ROW, (15, 8, 8, 10))
    names = zip((job.user.partition("@")[0], job.queue, job.name), widths[1:], strict=True)
    line = row % (
        shown_id(job.id, widths[0]),
        *(whole_cell(name[:width]) for name, width in names),
        BLANK if job.session is None else str(job.session),
        resources.get("nodect", BLANK),
        tasks if tasks != "0" else BLANK,
        size_in(resources["mem"], look.unit) if "mem" in resources else BLANK,
        resources.get(time_resource, BLANK),
        shown_state(job, look.is_torque),
        last,
    )
    line += " " if look.is_one_line else "\n"
    if look.has_hosts:
        line += hosts_text(
            (torque_hosts(job) if look.is_torque else job.exec_host) or BLANK, look.is_one_line
        )
    if look.has_comments:
        line += f"   {_comment_text(comment_of(job), look.is_wide)}\n"
    if look.has_estimates and job.no_estimate and job.state != "H":
        line += f"   {_comment_text(f'No forecast: {job.no_estimate}', look.is_wide)}\n"
    return line if line.endswith("\n") else line + "\n"


def _comment_text(comment: str, is_wide: bool) -> str:
    """Return a comment for -s, cut to 74 columns (114 if wide) with ``...`` at its end, but not
    within a number or a date."""
    width = 114 if is_wide else 74
    shown = plain(comment[: width + 1]) or BLANK
    if len(shown) <= width:
        return shown
    kept = shown[: width - 3]
    word = kept.rpartition(" ")[2]
    if shown[width - 3] != " " and any(letter.isdigit() for letter in word) and word != kept:
        kept = kept[: -len(word)].rstrip()
    return kept + "..."


def hosts_text(hosts: str, is_one_line: bool = False) -> str:
    """Return exec_host for -n: hosts without their domains, in lines of at most 77 columns that
    break before a ``+``."""
    lines, line = [], ""
    for place, part in enumerate(plain(hosts).split("+")):
        name, slash, slots = part.partition("/")
        piece = ("+" if place else "") + name.partition(".")[0] + slash + slots
        if not is_one_line and line and len(line) + len(piece) >= 77:
            lines.append(line)
            line = ""
        line += piece
    lines.append(line)
    return f"{lines[0]}\n" if is_one_line else "".join(f"   {each}\n" for each in lines)


def start_text(instant: int | None, now: int, is_wide: bool = False) -> str:
    """Return an estimated start for -T: ``HH:MM`` today, ``Tu 15`` within a week, ``Nov`` this
    year, ``2027``, ``>5yrs``; ``?`` if it is not known and ``--`` if it is past."""
    if instant is None:
        return "?"
    if instant < now:
        return "--"
    try:
        then, today = time.localtime(instant // MICROSECONDS), time.localtime(now // MICROSECONDS)
    except (OverflowError, ValueError, OSError):
        return "?"
    if then[:3] == today[:3]:
        return time.strftime("Today %H:%M" if is_wide else "%H:%M", then)
    if instant - now < 7 * _DAY * MICROSECONDS:
        day = ("Mo", "Tu", "We", "Th", "Fr", "Sa", "Su")[then.tm_wday]
        return time.strftime("%a %H:%M", then) if is_wide else f"{day} {then.tm_hour:02d}"
    if then.tm_year == today.tm_year:
        return time.strftime("%a %b %d %H:%M" if is_wide else "%b", then)
    if then.tm_year - today.tm_year > 5:
        return ">5yrs"
    return time.strftime("%a %b %d %Y %H:%M" if is_wide else "%Y", then)


def queue_limits_table(queues: Iterable[QueueRecord], server: str, unit: str = "") -> str:
    """Return the table of ``qstat -q``."""
    out = [
        f"\nserver: {plain(server)}\n\n"
        "Queue            Memory CPU Time Walltime Node   Run   Que   Lm  State\n"
        "---------------- ------ -------- -------- ---- ----- ----- ----  -----\n"
    ]
    none = "  --   "
    running = waiting = 0
    for queue in queues:
        runs = sum(queue.counts.get(letter, 0) for letter in "RSUB")
        waits = sum(queue.counts.get(letter, 0) for letter in "QHW")
        running, waiting = running + runs, waiting + waits
        out.append(
            _QUEUE_ROW
            % (
                cell(queue.name, 16),
                "--  "
                if queue.max_memory is None
                else size_in(format_size(queue.max_memory), unit),
                none,
                none if queue.max_walltime is None else format_duration(queue.max_walltime),
                "-- ",
                runs,
                waits,
                none if queue.max_running is None else str(queue.max_running),
                "E" if queue.enabled else "D",
                "R" if queue.started else "S",
            )
        )
    blank = " " * 47
    return "".join(out) + f"{blank}----- -----\n{blank}{running:5d} {waiting:5d}\n"
