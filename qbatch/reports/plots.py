"""The pictures of a result by name, and the part of the result that they show."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from qbatch.model.errors import InputError, UsageError, suggestion
from qbatch.model.record import MICROSECONDS, LogClock
from qbatch.reports.distributions import estimates, slowdown_by_size, wait_histogram
from qbatch.reports.gantt import gantt
from qbatch.reports.host_map import host_map
from qbatch.reports.host_use import HostMap
from qbatch.reports.plot_style import Canvas, PlotRange, styled, zone_of
from qbatch.reports.series import queue, utilisation
from qbatch.results.result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PICTURES: dict[str, Callable[[PlotRange], Canvas]] = {
    "gantt": gantt,
    "utilisation": utilisation,
    "queue": queue,
    "wait-hist": wait_histogram,
    "slowdown-by-size": slowdown_by_size,
    "estimates": estimates,
    "hosts": host_map,
}
"""Every kind of picture and the function that draws it."""


def draw(
    result: Result,
    kind: str,
    *,
    policies: Sequence[str] = (),
    begin: str | None = None,
    end: str | None = None,
    title: str | None = None,
    colour_by: str = "size",
    columns: int = 2,
    is_grey: bool = False,
    axes: Sequence[Axes] = (),
    of_hosts: HostMap | None = None,
) -> Figure:
    """Draw a picture of a result: of all its policies or of some, of all its time or from ``begin``
    to ``end``.

    ``begin`` and ``end`` are log seconds or ISO times; the window is half-open.  ``colour_by`` is
    for Gantt charts. ``columns``: the width of the figure, in columns of a journal (1 or 2).
    ``is_grey``: draw in grey.  ``axes``: draw into these axes, one for each panel, instead of in a
    new figure.  ``of_hosts``: what a map of hosts shows; without it, the processors of each host if
    each job is inside one.  Returns the figure.

    Raises:
        UsageError: there is no such kind or policy, the window is empty, or matplotlib is missing.
    """
    if kind not in PICTURES:
        raise UsageError(
            f"no picture {kind!r}{suggestion(kind, PICTURES)}; there are {', '.join(PICTURES)}"
        )
    view = view_of(result.only(policies), begin=begin, end=end, title=title)
    with styled():
        canvas = PICTURES[kind](
            replace(
                view,
                colour_by=colour_by,
                columns=columns,
                is_grey=is_grey,
                axes=tuple(axes),
                host_map=of_hosts,
            )
        )
    figure: Figure = canvas.axes[0].figure
    return figure


def view_of(
    result: Result, *, begin: str | None = None, end: str | None = None, title: str | None = None
) -> PlotRange:
    """Return the part of a result for a picture; without bounds, from the first submit to the last
    end."""
    schedules = tuple(ran for ran in (each.only_ran() for each in result.schedules) if len(ran))
    if not schedules:
        raise InputError(f"{result.name}: no job ran under {', '.join(result.policies)}")
    first = min(int(ran.workload.submit.min()) for ran in schedules)
    last = max(int(ran.end.max()) for ran in schedules)
    since = first if begin is None else instant(begin, result.clock, "--from")
    until = last + (last == first) if end is None else instant(end, result.clock, "--to")
    if since >= until:
        raise UsageError(
            f"--from {begin or 'the first submit'} is not before --to {end or 'the last end'}"
        )
    if since > last or until <= first:
        raise UsageError(
            f"{result.name}: no job in this window; the jobs are from {first / MICROSECONDS:.0f} "
            "to "
            f"{last / MICROSECONDS:.0f} s of the log"
        )
    return PlotRange(
        result.name,
        schedules,
        result.procs_total,
        result.clock,
        since,
        until,
        title,
        host_cpus=result.host_cpus,
        host_names=result.host_names,
    )


def instant(text: str, clock: LogClock, option: str) -> int:
    """Return log seconds, or an ISO time by the log's clock, as microseconds of log time.

    Raises:
        UsageError: the text is neither, or it is an ISO time and the log has no clock.
    """
    if re.fullmatch(r"-?\d{1,12}(\.\d+)?", text, re.ASCII):
        return round(float(text) * MICROSECONDS)
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"{option} {text!r}: should be log seconds or an ISO time like 1996-10-01T08:00"
        ) from None
    if clock.unix_start is None:
        raise UsageError(
            f"{option} {text!r}: this log has no clock (UnixStartTime); give log seconds"
        )
    if time.tzinfo is None:
        time = time.replace(tzinfo=zone_of(clock))
    since = time - datetime.fromtimestamp(clock.unix_start, UTC)
    return (since.days * 86400 + since.seconds) * MICROSECONDS + since.microseconds


def instant_text(time: int, clock: LogClock) -> str:
    """Return an instant of log time, in microseconds, as a date of the log's zone, or as log
    seconds without a clock."""
    if clock.unix_start is None:
        return f"{time / MICROSECONDS:,.0f} s of the log"
    return datetime.fromtimestamp(clock.unix_start + time // MICROSECONDS, zone_of(clock)).strftime(
        "%Y-%m-%d"
    )
