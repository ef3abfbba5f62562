"""Heat maps of hosts: how much of a resource of each host was in use over time.

Hosts stand below each other by rack, if the machine file has racks, and then by class, that is with
equal hosts together.  Each pixel is the mean over its time.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from qbatch.model.errors import UsageError
from qbatch.model.machine import Reservation
from qbatch.model.record import Int64Array, Schedule
from qbatch.model.reservations import windows_of
from qbatch.reports.gantt import edges_of
from qbatch.reports.host_use import HostClass, HostLines, HostMap
from qbatch.reports.plot_style import Canvas, PlotRange, TimeAxis, plain_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_POLICIES = 6
_COLUMNS = 480
_LABELLED_MAX = 24
_LETTERS = 24


def host_map(view: PlotRange) -> Canvas:
    """Draw the use of each host over time, one panel per policy.

    Raises:
        UsageError: it is unknown on which hosts jobs ran, or there are too many policies.
    """
    shown = view.host_map or _of_one_host_each(view)
    if len(view.schedules) > _MOST_POLICIES:
        raise UsageError(
            f"a map of hosts shows at most {_MOST_POLICIES} policies, not {len(view.schedules)}; "
            "use --policy"
        )
    classes = [
        each._replace(hosts=[host for host in each.hosts if shown.there[host] > 0])
        for each in shown.classes
    ]
    classes = [each for each in classes if each.hosts]
    order = np.array([host for each in classes for host in each.hosts], np.int64)
    each_high = min(max(1.4, 0.09 * len(order)), 3.6)
    canvas = Canvas(
        view,
        0.9 + each_high * len(view.schedules),
        f"Use of {shown.resource} by host",
        rows=len(view.schedules),
    )
    axis = TimeAxis(view)
    left, right = (float(axis.numbers(at)) for at in (view.begin, view.begin + view.span))
    image = None
    for axes, ran in zip(canvas.axes, view.schedules, strict=True):
        axes.grid(visible=False)
        image = axes.imshow(
            shares(view, shown, ran)[order],
            extent=(left, right, len(order), 0),
            aspect="auto",
            interpolation="none",
            vmin=0,
            vmax=1,
            cmap="Greys" if view.is_grey else "viridis",
        )
        _hatch_reservations(axes, view, shown.reservations, order)
        _label_hosts(axes, classes, "black" if view.is_grey else "white")
        axes.set_title(plain_text(f"{ran.policy}: {len(ran):,} jobs"), pad=4)
    axis.label(canvas.axes[-1])
    if canvas.figure is not None and image is not None:
        bar = canvas.figure.colorbar(image, ax=canvas.axes, fraction=0.04, pad=0.01)
        bar.set_label(plain_text(f"Share of {shown.resource} in use"), fontsize=7)
        bar.set_ticks([0, 0.5, 1], labels=["0", "50 %", "100 %"])
    hosts = f"{len(order):,} host{'s' * (len(order) != 1)}"
    sorting = "by rack" if any(each.rack for each in classes) else "equal hosts together"
    hatched = " Hatched: reservations." if shown.reservations else ""
    canvas.caption(
        f"{hosts} with {shown.resource}, {sorting}. Each pixel is the mean over its time.{hatched}"
    )
    return canvas


def shares(view: PlotRange, shown: HostMap, ran: Schedule) -> NDArray[np.float64]:
    """Return the share in use, by host and equal parts of the view's time; 0 where a host has
    nothing."""
    lines, hosts = shown.lines_of(ran), len(shown.there)
    sums = np.zeros(hosts * (_COLUMNS + 2))
    ends = [
        (
            (np.clip(at, view.begin, view.begin + view.span) - view.begin) / view.span * _COLUMNS,
            sign,
        )
        for at, sign in ((lines.begin, 1.0), (lines.end, -1.0))
    ]
    for column, weight in edges_of(ends):
        cell = lines.host * (_COLUMNS + 2) + column
        sums += np.bincount(cell, weights=weight * lines.amount, minlength=len(sums))
    used = sums.reshape(hosts, _COLUMNS + 2).cumsum(axis=1)[:, :_COLUMNS]
    return np.asarray(used / np.maximum(shown.there, 1)[:, None])


def _hatch_reservations(
    axes: Axes, view: PlotRange, reservations: Sequence[Reservation], order: Int64Array
) -> None:
    """Hatch the hosts of reservations at their times; ``order``: the hosts from top to bottom."""
    from matplotlib.patches import Rectangle

    axis = TimeAxis(view)
    windows = windows_of(
        reservations, view.clock, view.begin + view.span, since=view.begin, may_overlap=True
    )
    for window in windows:
        left, right = (
            float(axis.numbers(min(max(at, view.begin), view.begin + view.span)))
            for at in (window.begin, window.end)
        )
        places = np.flatnonzero(np.isin(order, window.hosts))
        for run in np.split(places, np.flatnonzero(np.diff(places) > 1) + 1):
            if len(run):
                axes.add_patch(
                    Rectangle(
                        (left, float(run[0])),
                        right - left,
                        len(run),
                        fill=False,
                        hatch="//////",
                        edgecolor="black" if view.is_grey else "white",
                        linewidth=0.6,
                    )
                )


def _label_hosts(axes: Axes, classes: Sequence[HostClass], colour: str) -> None:
    """Write the name of each rack, with a line between racks; without racks, the names of each class
    of hosts, with a line between classes."""
    labels, sizes = [], []
    for rack, group in groupby(classes, key=lambda each: each.rack or each):
        inside = list(group)
        names = _short(",".join(each.names for each in inside))
        second = names if inside[0].rack else inside[0].has
        labels.append(f"{rack if inside[0].rack else names}{second and chr(10)}{second}")
        sizes.append(sum(len(each.hosts) for each in inside))
    edges = np.cumsum([0, *sizes])
    for edge in edges[1:-1].tolist():
        axes.axhline(edge, color=colour, linewidth=1.2)
    each = -(-len(labels) // _LABELLED_MAX)
    axes.set_yticks(
        ((edges[:-1] + edges[1:]) / 2)[::each], [plain_text(label) for label in labels[::each]]
    )
    axes.tick_params(axis="y", length=0)


def _short(text: str) -> str:
    return text if len(text) <= _LETTERS else f"{text[: _LETTERS - 1]}\N{HORIZONTAL ELLIPSIS}"


def _of_one_host_each(view: PlotRange) -> HostMap:
    """Return the map of a machine on which each job runs inside one host, by its job rows."""
    if not view.host_cpus:
        raise UsageError(
            "it is not known on which hosts jobs ran: give --machine and --resources, and a log with "
            "hosts or a replay with --driver engine"
        )
    kinds: dict[int, list[int]] = {}
    for host, cpus in enumerate(view.host_cpus):
        kinds.setdefault(cpus, []).append(host)
    classes = [
        HostClass(", ".join(view.host_names[host] for host in hosts), f"{cpus} processors", hosts)
        for cpus, hosts in kinds.items()
    ]

    def lines_of(ran: Schedule) -> HostLines:
        spans = ran.spans()
        return HostLines(spans.host, spans.begin, spans.end, spans.procs)

    return HostMap("processors", np.array(view.host_cpus, np.int64), classes, lines_of)
