"""Gantt charts: which processors ran which job when.

Job rows say how many processors a job had, not which, so they are dealt out here, as a machine without a topology
might: in order of start, the lowest run of free processors that is long enough, else the lowest free ones.  Few jobs
are drawn as boxes with their numbers, many as a picture made of pixels, each the mean colour of what it covers.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from qbatch.model.errors import UsageError
from qbatch.model.free_runs import FreeRuns
from qbatch.model.record import KINDS, Int64Array
from qbatch.reports.distributions import class_name, size_class
from qbatch.reports.job_rows import JobRows
from qbatch.reports.plot_style import PALETTE, WIDTH, TimeAxis, View, caption, new_figure, plain_text
from qbatch.reports.result import most_procs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_LABELLED = 60
"""Up to so many jobs are drawn as boxes with labels."""

MOST_BOXES = 2_000
"""Up to so many pieces are drawn as boxes; more become pixels."""

_MOST_POLICIES = 6
_PIXELS = (1200, 1000)
_BACKFILLED = KINDS.index("backfilled")
_OTHER_USER = "#BBBBBB"


@dataclass(frozen=True, slots=True)
class Pieces:
    """The processors of jobs: ``job`` (its place in the rows) holds those from ``low`` to before ``high``."""

    job: Int64Array
    low: Int64Array
    high: Int64Array


@dataclass(frozen=True, slots=True)
class Panel:
    """One policy's part of a chart: its jobs, the processors and the colour of each, and the processors drawn."""

    view: View
    rows: JobRows
    pieces: Pieces
    colour: NDArray[np.float64]
    total: int


def assign(rows: JobRows, procs_total: int) -> Pieces:
    """Deal out processors to jobs, which must never use more than there are; a job of no length gets none."""
    free = FreeRuns(procs_total)
    running: list[tuple[int, int, list[tuple[int, int]]]] = []
    pieces: list[tuple[int, int, int]] = []
    start, end, procs = rows.start.tolist(), rows.end.tolist(), rows.procs.tolist()
    for job in np.argsort(rows.start, kind="stable").tolist():
        now = start[job]
        while running and running[0][0] <= now:
            for low, high in heapq.heappop(running)[2]:
                free.give(low, high)
        if end[job] > now:
            taken = free.take(procs[job])
            heapq.heappush(running, (end[job], job, taken))
            pieces += [(job, low, high) for low, high in taken]
    table = np.array(pieces, np.int64).reshape(-1, 3)
    return Pieces(table[:, 0], table[:, 1], table[:, 2])


# ------------------------------------------------------------------------------------------------ the chart


def gantt(view: View) -> Figure:
    """Draw the jobs on the processors over time, one panel a policy, coloured by size or by user."""
    colour_by = view.colour_by
    if len(view.rows) > _MOST_POLICIES:
        raise UsageError(f"a Gantt chart shows at most {_MOST_POLICIES} policies, not {len(view.rows)}; use --policy")
    if colour_by not in ("size", "user"):
        raise UsageError(f"a Gantt chart is coloured by size or by user, not by {colour_by!r}")
    shown = [_in_window(view, rows) for rows in view.rows]
    total = max(view.procs_total, *map(most_procs, shown))
    parts = [assign(rows, total) for rows in shown]
    is_small = max(map(len, shown)) <= MOST_LABELLED
    each = 2.6 if len(shown) > 1 else 3.6
    figure = new_figure(view, 0.7 + each * len(shown) + (0.5 if is_small else 0), "Jobs on processors")
    colours, keys = (_by_size if colour_by == "size" else _by_user)(shown, total)
    panels = figure.subplots(len(shown), 1, sharex=True, squeeze=False)[:, 0]
    for axes, rows, pieces, colour in zip(panels, shown, parts, colours, strict=True):
        _draw_panel(axes, Panel(view, rows, pieces, colour, total))
        axes.set_title(plain_text(f"{rows.policy}: {len(rows):,} jobs"), pad=9 if is_small else 4)
    axis = TimeAxis(view)
    axis.label(panels[-1])
    keys += _marks(is_small, shown)
    figure.legend(
        [key for key, _ in keys], [name for _, name in keys], loc="outside right upper",
        title="Processors" if colour_by == "size" else "User", title_fontsize=7,
    )  # fmt: skip
    caption(figure, _words(view, shown, parts, is_small))
    return figure


def _in_window(view: View, rows: JobRows) -> JobRows:
    return rows.taken((rows.start < view.end) & ((rows.end > view.begin) | (rows.start >= view.begin)))


def _draw_panel(axes: Axes, panel: Panel) -> None:
    view, rows, pieces, total = panel.view, panel.rows, panel.pieces, panel.total
    axes.grid(visible=False)
    if len(rows) <= MOST_LABELLED:
        _draw_boxes(axes, panel, has_labels=True)
        _draw_submits(axes, panel)
    elif len(pieces.job) <= MOST_BOXES:
        _draw_boxes(axes, panel, has_labels=False)
    else:
        _draw_pixels(axes, panel)
    if total > view.procs_total:
        axes.axhline(view.procs_total, color="black", linewidth=0.8, linestyle=(0, (4, 3)))
    axes.set_ylim(0, total)
    axes.set_ylabel("Processor")
    if total <= 10:
        axes.set_yticks(range(total + 1))


def _words(view: View, shown: list[JobRows], parts: list[Pieces], is_small: bool) -> str:
    held = " Suspended jobs hold theirs." if view.has_suspended else ""
    if is_small:
        return f"Processors dealt out lowest first; job rows do not say which were used.{held} Marks above: submits."
    jobs = " + ".join(f"{len(rows):,}" for rows in shown)
    is_boxes = max(len(pieces.job) for pieces in parts) <= MOST_BOXES
    how = "" if is_boxes else " Pixels: mean colour of what they cover; white: idle."
    return f"{jobs} jobs on {view.procs_total:,} processors, dealt out lowest first.{held}{how}"


# ------------------------------------------------------------------------------------------------ colours

Keys = list[tuple[Any, str]]


def _by_size(shown: list[JobRows], procs_total: int) -> tuple[list[NDArray[np.float64]], Keys]:
    """Return the colour of each job by its class of size, dark is wide, and the keys of the legend."""
    import matplotlib
    from matplotlib.patches import Patch

    scale = matplotlib.colormaps["viridis_r"]
    most = max(int(size_class(np.array([procs_total]))[0]), 1)
    shade = scale(0.08 + 0.92 * np.arange(most + 1) / most)
    classes = [size_class(rows.procs) for rows in shown]
    present = np.unique(np.concatenate(classes)).tolist()
    keys: Keys = [(Patch(color=tuple(shade[one])), class_name(one)) for one in present]
    return [shade[one] for one in classes], keys


def _by_user(shown: list[JobRows], procs_total: int) -> tuple[list[NDArray[np.float64]], Keys]:
    """Return the colour of each job by its user, those with the most work apart, and the keys of the legend."""
    from matplotlib.colors import to_rgba
    from matplotlib.patches import Patch

    first = shown[0]
    users, place = np.unique(first.user, return_inverse=True)
    work = np.bincount(place, weights=first.procs * (first.end - first.start).astype(np.float64))
    top = users[np.argsort(-work, kind="stable")][: len(PALETTE)].tolist()
    colours = [np.tile(to_rgba(_OTHER_USER), (len(rows), 1)) for rows in shown]
    keys: Keys = []
    for user, colour in zip(top, PALETTE, strict=False):
        for rows, of_rows in zip(shown, colours, strict=True):
            of_rows[rows.user == user] = to_rgba(colour)
        keys.append((Patch(color=colour), str(user) if user >= 0 else "unknown"))
    if len(users) > len(top):
        keys.append((Patch(color=_OTHER_USER), f"{len(users) - len(top)} others"))
    return colours, keys


def _marks(is_small: bool, shown: list[JobRows]) -> Keys:
    """Return the keys of the marks beside the colours."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    keys: Keys = []
    if is_small:
        if any((rows.kind == _BACKFILLED).any() for rows in shown):
            keys.append((Patch(facecolor="white", edgecolor="black", hatch="////", linewidth=0.5), "backfilled"))
        keys.append((Line2D([], [], color="black", marker="v", markersize=3.5, linestyle=""), "submit"))
    return keys


# ------------------------------------------------------------------------------------------------ boxes


def _draw_boxes(axes: Axes, panel: Panel, *, has_labels: bool) -> None:
    """Draw every piece as a box; with labels, those that were backfilled are hatched."""
    from matplotlib.collections import PolyCollection

    view, rows, pieces, colour = panel.view, panel.rows, panel.pieces, panel.colour
    axis = TimeAxis(view)
    begin, end = axis.numbers(rows.start[pieces.job]), axis.numbers(rows.end[pieces.job])
    boxes = np.stack(
        [np.stack([x, y], axis=-1) for x, y in
         ((begin, pieces.low), (end, pieces.low), (end, pieces.high), (begin, pieces.high))], axis=1,
    )  # fmt: skip
    is_hatched = rows.kind[pieces.job] == _BACKFILLED if has_labels else np.zeros(len(boxes), bool)
    for which, hatch in ((~is_hatched, None), (is_hatched, "////")):
        axes.add_collection(
            PolyCollection(
                list(boxes[which]), facecolors=colour[pieces.job[which]], hatch=hatch,
                linewidths=0.5 if has_labels else 0.1,
                edgecolors="white" if hatch is None else "#FFFFFFB0",
            ),
            autolim=False,
        )  # fmt: skip
    if has_labels:
        _label_boxes(axes, panel)


def _label_boxes(axes: Axes, panel: Panel) -> None:
    """Write its number into every box that has room for it: into the tallest piece of each job."""
    view, rows, pieces, colour = panel.view, panel.rows, panel.pieces, panel.colour
    axis = TimeAxis(view)
    tall: dict[int, int] = {}
    height = pieces.high - pieces.low
    for place, job in enumerate(pieces.job.tolist()):
        if job not in tall or height[place] > height[tall[job]]:
            tall[job] = place
    whole = float(axis.numbers(view.end) - axis.numbers(view.begin))
    inch = (WIDTH - 1.6) / whole, 2.2 / panel.total
    for job, place in tall.items():
        begin = max(int(rows.start[job]), view.begin)
        end = min(int(rows.end[job]), view.end)
        left, right = float(axis.numbers(begin)), float(axis.numbers(end))
        text = str(rows.job_id[job])
        wide, high = (right - left) * inch[0], height[place] * inch[1]
        size = min(7.0, high * 72 * 0.8, wide * 72 / (0.68 * len(text)))
        if size < 3.5:
            continue
        red, green, blue = colour[job][:3]
        is_dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.55
        axes.text(
            (left + right) / 2, (pieces.low[place] + pieces.high[place]) / 2, text, ha="center", va="center",
            fontsize=size, color="white" if is_dark else "black", clip_on=True,
            bbox={"facecolor": tuple(colour[job]), "edgecolor": "none", "pad": 0.6},
        )  # fmt: skip


def _draw_submits(axes: Axes, panel: Panel) -> None:
    submit = panel.rows.submit
    at = TimeAxis(panel.view).numbers(submit[(submit >= panel.view.begin) & (submit < panel.view.end)])
    axes.plot(
        at, np.full(len(at), 1.02), "v", transform=axes.get_xaxis_transform(), color="black", markersize=3,
        markeredgewidth=0, clip_on=False,
    )  # fmt: skip


# ------------------------------------------------------------------------------------------------ pixels


def _draw_pixels(axes: Axes, panel: Panel) -> None:
    """Draw the jobs as an image over the whole panel."""
    view, total = panel.view, panel.total
    axis = TimeAxis(view)
    image = painted(panel)
    left, right = float(axis.numbers(view.begin)), float(axis.numbers(view.begin + view.span))
    axes.imshow(image, extent=(left, right, 0, total), origin="lower", aspect="auto", interpolation="none")


def painted(panel: Panel) -> NDArray[np.uint8]:
    """Return an image of time by processors; each pixel mixes the colours of the jobs on it, and white for idleness."""
    view, rows, pieces, total = panel.view, panel.rows, panel.pieces, panel.total
    columns, lines = _PIXELS[0], min(total, _PIXELS[1])
    begin = np.maximum(rows.start[pieces.job], view.begin) - view.begin
    end = np.minimum(rows.end[pieces.job], view.end) - view.begin
    across = [(at / view.span * columns, sign) for at, sign in ((begin, 1.0), (end, -1.0))]
    upward = [(at / total * lines, sign) for at, sign in ((pieces.low, 1.0), (pieces.high, -1.0))]
    shape = (lines + 2, columns + 2)
    corners = [
        (line * shape[1] + column, weight_y * weight_x)
        for line, weight_y in _edges(upward)
        for column, weight_x in _edges(across)
    ]
    image = np.empty((lines, columns, 3), np.uint8)
    for channel in range(3):
        ink = 1.0 - panel.colour[pieces.job, channel]
        sums = np.zeros(shape[0] * shape[1])
        for cell, weight in corners:
            sums += np.bincount(cell, weights=weight * ink, minlength=len(sums))
        shade = sums.reshape(shape).cumsum(axis=0).cumsum(axis=1)[:lines, :columns]
        image[:, :, channel] = np.rint(255 * (1.0 - np.clip(shade, 0.0, 1.0)))
    return image


def _edges(sides: list[tuple[NDArray[np.float64], float]]) -> list[tuple[Int64Array, NDArray[np.float64]]]:
    """Return what to add where, so that the running sum over pixels is the part of each that lies between the sides."""
    found = []
    for at, sign in sides:
        pixel = np.floor(at).astype(np.int64)
        part = at - pixel
        found += [(pixel, sign * (1.0 - part)), (pixel + 1, sign * part)]
    return found
