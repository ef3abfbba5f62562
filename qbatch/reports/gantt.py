"""Gantt charts: the jobs on processors over time.

Job rows hold how many processors a job had, not which, so :mod:`qbatch.results.boxes` assigns them.
Few jobs are drawn as boxes with their numbers, many as pixels, each in the mean colour of what it
covers.  A job with several execution intervals has gaps where it was suspended, and more or fewer
processors where it was resized.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from qbatch.model.errors import UsageError
from qbatch.model.record import KINDS, Int64Array, Schedule
from qbatch.model.spans import rows_in_pieces
from qbatch.reports.distributions import class_name, size_class
from qbatch.reports.plot_style import WIDTH, Canvas, PlotRange, TimeAxis, plain_text
from qbatch.results.boxes import Boxes, assign
from qbatch.results.result import most_procs

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_LABELLED = 60
"""Most jobs that are drawn as boxes with labels."""

MOST_BOXES = 2_000
"""Most boxes that are drawn; more become pixels."""

_MOST_POLICIES = 6
_MOST_HOST_NAMES = 20
_PIXELS = (1200, 1000)
_BACKFILLED = KINDS.index("backfilled")
_OTHER_USER = "#BBBBBB"


@dataclass(frozen=True, slots=True)
class Panel:
    """One policy's part of a chart: its jobs, the processors and the colour of each, and the
    processors drawn."""

    view: PlotRange
    ran: Schedule
    boxes: Boxes
    colour: NDArray[np.float64]
    total: int


# ------------------------------------------------------------------------------------------------
# the chart


def gantt(view: PlotRange) -> Canvas:
    """Draw the jobs on the processors over time, one panel per policy, coloured by size or by
    user."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    colour_by, axis = view.colour_by, TimeAxis(view)
    if len(view.schedules) > _MOST_POLICIES:
        raise UsageError(
            f"a Gantt chart shows at most {_MOST_POLICIES} policies, not {len(view.schedules)}; "
            "use --policy"
        )
    if colour_by not in ("size", "user"):
        raise UsageError(f"a Gantt chart is coloured by size or by user, not by {colour_by!r}")
    shown = [
        ran.only((ran.start < view.end) & ((ran.end > view.begin) | (ran.start >= view.begin)))
        for ran in view.schedules
    ]
    total = max(view.procs_total, *map(most_procs, shown))
    parts = [assign(ran, total, view.host_cpus) for ran in shown]
    is_small = max(map(len, shown)) <= MOST_LABELLED
    each = 2.6 if len(shown) > 1 else 3.6
    canvas = Canvas(
        view,
        0.7 + each * len(shown) + (0.5 if is_small else 0),
        "Jobs on processors",
        rows=len(shown),
    )
    colours, keys = (
        _by_size(shown, total, view.is_grey)
        if colour_by == "size"
        else _by_user(shown, view.palette)
    )
    for axes, ran, boxes, colour in zip(canvas.axes, shown, parts, colours, strict=True):
        panel = Panel(view, ran, boxes, colour, total)
        axes.grid(visible=False)
        if len(ran) <= MOST_LABELLED:
            _draw_boxes(axes, panel, has_labels=True)
            submit = ran.workload.submit
            at = axis.numbers(submit[(submit >= view.begin) & (submit < view.end)])
            axes.plot(
                at,
                np.full(len(at), 1.02),
                "v",
                transform=axes.get_xaxis_transform(),
                color="black",
                markersize=3,
                markeredgewidth=0,
                clip_on=False,
            )
        elif len(boxes.job) <= MOST_BOXES:
            _draw_boxes(axes, panel, has_labels=False)
        else:
            left, right = (
                float(axis.numbers(time)) for time in (view.begin, view.begin + view.span)
            )
            extent = (left, right, 0, total)
            axes.imshow(
                painted(panel), extent=extent, origin="lower", aspect="auto", interpolation="none"
            )
        _draw_processors(axes, view, total)
        axes.set_title(plain_text(f"{ran.policy}: {len(ran):,} jobs"), pad=9 if is_small else 4)
    axis.label(canvas.axes[-1])
    if is_small:
        if any((ran.kind == _BACKFILLED).any() for ran in shown):
            keys.append(
                (
                    Patch(facecolor="white", edgecolor="black", hatch="////", linewidth=0.5),
                    "backfilled",
                )
            )
        keys.append(
            (Line2D([], [], color="black", marker="v", markersize=3.5, linestyle=""), "submit")
        )
    canvas.legend(
        canvas.axes[0],
        ([key for key, _ in keys], [name for _, name in keys]),
        title="Processors" if colour_by == "size" else "User",
        title_fontsize=7,
    )
    canvas.caption(_words(view, shown, parts, is_small))
    return canvas


def _draw_processors(axes: Axes, view: PlotRange, total: int) -> None:
    """Label the processors; draw a line between hosts, which are stacked, with the name of each
    next to it."""
    if total > view.procs_total:
        axes.axhline(view.procs_total, color="black", linewidth=0.8, linestyle=(0, (4, 3)))
    axes.set_ylim(0, total)
    axes.set_ylabel("Host" if view.host_cpus else "Processor")
    if not view.host_cpus:
        if total <= 10:
            axes.set_yticks(range(total + 1))
        return
    edges = np.cumsum([0, *view.host_cpus])
    for edge in edges[1:-1].tolist():
        axes.axhline(edge, color="black", linewidth=0.6)
    each = -(-len(view.host_names) // _MOST_HOST_NAMES)
    axes.set_yticks(
        ((edges[:-1] + edges[1:]) / 2)[::each],
        [plain_text(name) for name in view.host_names[::each]],
    )
    axes.tick_params(axis="y", length=0)


def _words(view: PlotRange, shown: list[Schedule], parts: list[Boxes], is_small: bool) -> str:
    held = " Suspended jobs hold theirs." if view.has_suspended else ""
    if any(ran.pieces is not None for ran in shown):
        held += " Gaps: suspended, or queued again; steps: resized."
    which = "of each host " if view.host_cpus else ""
    if is_small:
        return (
            f"Processors {which}assigned lowest first; job rows do not name them.{held} Marks "
            "above: submits."
        )
    counts = [f"{len(ran):,}" for ran in shown]
    jobs = counts[0] if len(set(counts)) == 1 else " + ".join(counts)
    is_boxes = max(len(boxes.job) for boxes in parts) <= MOST_BOXES
    how = "" if is_boxes else " Pixels: mean colour of what they cover; white: idle."
    return (
        f"{jobs} jobs on {view.procs_total:,} processors, {which}assigned lowest first.{held}{how}"
    )


# ------------------------------------------------------------------------------------------------
# colours

Keys = list[tuple[Any, str]]


def _by_size(
    shown: list[Schedule], procs_total: int, is_grey: bool
) -> tuple[list[NDArray[np.float64]], Keys]:
    """Return the colour of each job by its class of size, dark is wide, and the keys of the
    legend."""
    import matplotlib
    from matplotlib.patches import Patch

    scale = matplotlib.colormaps["Greys" if is_grey else "viridis_r"]
    most = max(int(size_class(np.array([procs_total]))[0]), 1)
    shade = scale(0.08 + 0.92 * np.arange(most + 1) / most)
    classes = [size_class(ran.workload.procs) for ran in shown]
    present = np.unique(np.concatenate(classes)).tolist()
    keys: Keys = [(Patch(color=tuple(shade[one])), class_name(one)) for one in present]
    return [shade[one] for one in classes], keys


def _by_user(
    shown: list[Schedule], palette: tuple[str, ...]
) -> tuple[list[NDArray[np.float64]], Keys]:
    """Return the colour of each job by its user, with own colours for those with the most work, and
    the keys of the legend."""
    from matplotlib.colors import to_rgba
    from matplotlib.patches import Patch

    first = shown[0]
    users, place = np.unique(first.workload.user, return_inverse=True)
    work = np.bincount(
        place, weights=first.workload.procs * (first.end - first.start).astype(np.float64)
    )
    top = users[np.argsort(-work, kind="stable")][: len(palette)].tolist()
    colours = [np.tile(to_rgba(_OTHER_USER), (len(ran), 1)) for ran in shown]
    keys: Keys = []
    for user, colour in zip(top, palette, strict=False):
        for ran, of_jobs in zip(shown, colours, strict=True):
            of_jobs[ran.workload.user == user] = to_rgba(colour)
        keys.append((Patch(color=colour), str(user) if user >= 0 else "unknown"))
    if len(users) > len(top):
        keys.append((Patch(color=_OTHER_USER), f"{len(users) - len(top)} others"))
    return colours, keys


# ------------------------------------------------------------------------------------------------
# boxes


def _draw_boxes(axes: Axes, panel: Panel, *, has_labels: bool) -> None:
    """Draw every box; with labels, backfilled jobs are hatched."""
    from matplotlib.collections import PolyCollection

    view, ran, boxes, colour = panel.view, panel.ran, panel.boxes, panel.colour
    axis = TimeAxis(view)
    begin, end = axis.numbers(boxes.begin), axis.numbers(boxes.end)
    corners = np.stack(
        [
            np.stack([x, y], axis=-1)
            for x, y in (
                (begin, boxes.low),
                (end, boxes.low),
                (end, boxes.high),
                (begin, boxes.high),
            )
        ],
        axis=1,
    )
    is_hatched = ran.kind[boxes.job] == _BACKFILLED if has_labels else np.zeros(len(corners), bool)
    for which, hatch in ((~is_hatched, None), (is_hatched, "////")):
        axes.add_collection(
            PolyCollection(
                list(corners[which]),
                facecolors=colour[boxes.job[which]],
                hatch=hatch,
                linewidths=0.5 if has_labels else 0.1,
                edgecolors="white" if hatch is None else "#FFFFFFB0",
            ),
            autolim=False,
        )
    if has_labels:
        _label_boxes(axes, panel)


def _label_boxes(axes: Axes, panel: Panel) -> None:
    """Write its number into every job with enough space: into its largest box, or into each box of
    a resized job."""
    view, ran, boxes, colour = panel.view, panel.ran, panel.boxes, panel.colour
    axis = TimeAxis(view)
    is_split = rows_in_pieces(ran.pieces, len(ran))
    labelled: dict[tuple[int, int], int] = {}
    height = boxes.high - boxes.low
    area = height * (np.minimum(boxes.end, view.end) - np.maximum(boxes.begin, view.begin)).astype(
        np.float64
    )
    for place, job in enumerate(boxes.job.tolist()):
        key = (job, place if is_split[job] else -1)
        if key not in labelled or area[place] > area[labelled[key]]:
            labelled[key] = place
    whole = float(axis.numbers(view.end) - axis.numbers(view.begin))
    inch = (WIDTH - 1.6) / whole, 2.2 / panel.total
    for (job, _), place in labelled.items():
        begin = max(int(boxes.begin[place]), view.begin)
        end = min(int(boxes.end[place]), view.end)
        left, right = float(axis.numbers(begin)), float(axis.numbers(end))
        text = str(ran.workload.number[job])
        wide, high = (right - left) * inch[0], height[place] * inch[1]
        size = min(7.0, high * 72 * 0.8, wide * 72 / (0.68 * len(text)))
        if size < 3.5:
            continue
        red, green, blue = colour[job][:3]
        is_dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.55
        axes.text(
            (left + right) / 2,
            (boxes.low[place] + boxes.high[place]) / 2,
            text,
            ha="center",
            va="center",
            fontsize=size,
            color="white" if is_dark else "black",
            clip_on=True,
            bbox={"facecolor": tuple(colour[job]), "edgecolor": "none", "pad": 0.6},
        )


# ------------------------------------------------------------------------------------------------
# pixels


def painted(panel: Panel) -> NDArray[np.uint8]:
    """Return an image of time by processors; each pixel mixes the colours of its jobs, and white
    for idle processors."""
    view, boxes, total = panel.view, panel.boxes, panel.total
    columns, lines = _PIXELS[0], min(total, _PIXELS[1])
    begin = np.clip(boxes.begin, view.begin, view.end) - view.begin
    end = np.clip(boxes.end, view.begin, view.end) - view.begin
    across = [(at / view.span * columns, sign) for at, sign in ((begin, 1.0), (end, -1.0))]
    upward = [(at / total * lines, sign) for at, sign in ((boxes.low, 1.0), (boxes.high, -1.0))]
    shape = (lines + 2, columns + 2)
    corners = [
        (line * shape[1] + column, weight_y * weight_x)
        for line, weight_y in edges_of(upward)
        for column, weight_x in edges_of(across)
    ]
    image = np.empty((lines, columns, 3), np.uint8)
    for channel in range(3):
        ink = 1.0 - panel.colour[boxes.job, channel]
        sums = np.zeros(shape[0] * shape[1])
        for cell, weight in corners:
            sums += np.bincount(cell, weights=weight * ink, minlength=len(sums))
        shade = sums.reshape(shape).cumsum(axis=0).cumsum(axis=1)[:lines, :columns]
        image[:, :, channel] = np.rint(255 * (1.0 - np.clip(shade, 0.0, 1.0)))
    return image


def edges_of(
    sides: list[tuple[NDArray[np.float64], float]],
) -> list[tuple[Int64Array, NDArray[np.float64]]]:
    """Return increments at places, so that their running sum over pixels is the part of each pixel
    between the sides."""
    found = []
    for at, sign in sides:
        pixel = np.floor(at).astype(np.int64)
        part = at - pixel
        found += [(pixel, sign * (1.0 - part)), (pixel + 1, sign * part)]
    return found
