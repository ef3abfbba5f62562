"""The picture of a sweep: a metric against one axis, a line for each value of another, with its
intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from textwrap import fill
from typing import TYPE_CHECKING, Any

from qbatch.metrics import METRICS
from qbatch.metrics.interval import SAME
from qbatch.metrics.table import words_of
from qbatch.model.errors import InputError, UsageError, suggestion
from qbatch.reports import plot_style
from qbatch.reports.report.charts import SIZE, STYLE
from qbatch.reports.report.charts import look as series_look
from qbatch.sweeps.grid import AXES
from qbatch.sweeps.summary import Point, points
from qbatch.sweeps.table import SweepTable, metric_named

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_PANELS = 6
_COLUMNS = 3
_NOT_SEED = tuple(axis for axis in AXES if axis != "seed")
_WORDS = {
    "load": "Load (gaps between arrivals divided by)",
    "log": "Log",
    "machine": "Machine",
    "window": "Window",
    "resample": "Log resampled by",
    "estimates": "Estimates",
    "policy": "Policy",
}


@dataclass(frozen=True, slots=True)
class SweepPicture:
    """The description of a picture: a metric (with or without its unit) against ``x``, one line for
    each value of ``by``.

    ``where``: for some axes, the values to draw.  An axis that keeps several values makes a panel
    for each.
    """

    x: str | None = None
    y: str = "wait_mean_s"
    by: str = "policy"
    where: Mapping[str, Sequence[Any]] | None = None
    confidence: float = 0.95
    is_logarithmic: bool = False
    title: str | None = None
    columns: int = 2
    """The width of the figure, in columns of a journal."""
    is_grey: bool = False
    axes: Sequence[Axes] = ()
    """Axes to draw into, one for each panel, instead of a new figure."""
    is_for_page: bool = False
    """Whether it takes the colours, the fonts and the width of a page, which has its own key of the
    policies."""


def draw_sweep(sweep: SweepTable, asked: SweepPicture | None = None) -> Figure:
    """Draw a metric of a sweep.

    Raises:
        UsageError: there is no such axis, metric or value, or too many panels would be needed.
        InputError: no selected run was done.
    """
    asked = asked or SweepPicture()
    name = metric_named(asked.y)
    found = points(sweep, [name], asked.where)
    if not found:
        raise InputError(f"{sweep.folder}: none of the selected runs was done")
    if not any(point.mean(name).value is not None for point in found):
        raise InputError(
            f"{sweep.folder}: {name} has no value in any selected run; draw another metric"
        )
    for axis in (asked.x, asked.by):
        if axis is not None and axis not in _NOT_SEED:
            why = (
                "replicas become intervals"
                if axis == "seed"
                else f"there are {', '.join(_NOT_SEED)}"
            )
            raise UsageError(
                f"{axis!r} is not an axis of a picture{suggestion(axis, _NOT_SEED)} ({why})"
            )
    by = asked.by
    values = {axis: list(dict.fromkeys(point.at[axis] for point in found)) for axis in _NOT_SEED}
    varying = [axis for axis in _NOT_SEED if len(values[axis]) > 1 and axis != by]
    x = asked.x or ("load" if "load" in varying or not varying else varying[0])
    if x == by:
        raise UsageError(f"--x and --by are both {x}; name two axes")
    others = [axis for axis in _NOT_SEED if axis not in (x, by) and len(values[axis]) > 1]
    panels = list(product(*(values[axis] for axis in others)))
    if len(panels) > MOST_PANELS:
        counts = ", ".join(f"{axis} {len(values[axis])}" for axis in others)
        raise UsageError(
            f"{len(panels)} panels would be needed ({counts}); choose values with --where "
            "AXIS=VALUE"
        )
    with plot_style.styled(STYLE if asked.is_for_page else None):
        return _drawn(sweep, asked, name, (x, by), found, values, others, panels)


def _drawn(
    sweep: SweepTable,
    asked: SweepPicture,
    name: str,
    axes_of: tuple[str, str],
    found: list[Point],
    values: dict[str, list[Any]],
    others: list[str],
    panels: list[tuple[Any, ...]],
) -> Figure:
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    x, by = axes_of
    metric = next(one for one in METRICS if one.name == name)
    columns = min(len(panels), _COLUMNS)
    lines = -(-len(panels) // columns)
    width = plot_style.WIDTH if asked.columns == 2 else plot_style.ONE_COLUMN
    size = SIZE if asked.is_for_page else (width, 0.6 + 2.7 * lines)
    words = words_of(name)
    if asked.axes:
        if len(asked.axes) != len(panels):
            raise UsageError(
                f"ax: this picture has {len(panels)} panels, not {len(asked.axes)}; give a list of "
                "as many axes"
            )
        drawn: list[Any] = list(asked.axes)
        figure: Figure = drawn[0].figure
    else:
        figure = Figure(figsize=size, layout=ConstrainedLayoutEngine(w_pad=0.06, h_pad=0.05))
        drawn = list(figure.subplots(lines, columns, squeeze=False, sharey=True, sharex=True).flat)
    factor, unit = _unit(metric.unit, found, name)
    for place, panel in enumerate(panels):
        axes = drawn[place]
        inside = [
            point
            for point in found
            if all(point.at[axis] == value for axis, value in zip(others, panel, strict=True))
        ]
        for value in values[by]:
            line = sweep.document["grid"][by].index(value)
            of_line = [point for point in inside if point.at[by] == value]
            look = (
                series_look(line)
                if asked.is_for_page
                else plot_style.policy_look(line, is_grey=asked.is_grey)
            )
            _line(
                axes,
                of_line,
                x,
                values[x],
                name,
                factor,
                asked.confidence,
                {"label": value_text(value), **look},
            )
        if panel:
            title = ", ".join(
                f"{axis} {value_text(one)}" for axis, one in zip(others, panel, strict=True)
            )
            axes.set_title(plot_style.plain_text(title))
        if x != "load":
            axes.set_xticks(
                range(len(values[x])), [plot_style.plain_text(value_text(one)) for one in values[x]]
            )
        if place // columns == lines - 1:
            axes.set_xlabel(_WORDS[x])
        if asked.is_logarithmic:
            axes.set_yscale("log")
            plot_style.plain_log_ticks(axes.yaxis)
        else:
            axes.set_ylim(bottom=0)
    drawn[0].set_ylabel(f"{words}{f' ({unit})' if unit else ''}")
    for axes in drawn[len(panels) :]:
        axes.set_visible(False)
    if asked.axes:
        drawn[0].legend()
    if asked.axes or asked.is_for_page:
        return figure
    title = asked.title or f"{words} against {x}: {', '.join(sweep.document['grid']['log'])}"
    figure.suptitle(plot_style.plain_text(fill(title, 80)), x=0.01, ha="left", fontsize=10)
    plot_style.legend_outside(figure, drawn[0])
    plot_style.caption(figure, _caption(found, name, by, asked.confidence))
    return figure


def _line(
    axes: Axes,
    of_line: list[Point],
    x: str,
    known: list[Any],
    name: str,
    factor: float,
    confidence: float,
    look: dict[str, Any],
) -> None:
    """Draw one line with its intervals: a band over numbers, bars over words."""
    at = [point.at[x] if x == "load" else known.index(point.at[x]) for point in of_line]
    means = [point.mean(name, confidence) for point in of_line]
    shown = [(place, mean) for place, mean in zip(at, means, strict=True) if mean.value is not None]
    if not shown:
        return
    places = [place for place, _ in shown]
    middle = [(mean.value or 0.0) * factor for _, mean in shown]
    low = [(mean.value if mean.low is None else mean.low or 0.0) * factor for _, mean in shown]  # type: ignore[operator]
    high = [(mean.value if mean.high is None else mean.high or 0.0) * factor for _, mean in shown]  # type: ignore[operator]
    if x == "load":
        axes.plot(places, middle, marker="o", markersize=2.5, **look)
        axes.fill_between(places, low, high, color=look["color"], alpha=0.18, linewidth=0)
        return
    has_bar = [mean.low is not None for _, mean in shown]
    below = [
        one - bound if has else float("nan")
        for one, bound, has in zip(middle, low, has_bar, strict=True)
    ]
    above = [
        bound - one if has else float("nan")
        for one, bound, has in zip(middle, high, has_bar, strict=True)
    ]
    axes.errorbar(places, middle, yerr=[below, above], marker="o", markersize=3, capsize=2, **look)


def _unit(unit: str, found: list[Point], name: str) -> tuple[float, str]:
    """Return the factor for values and their unit: many seconds become minutes or hours."""
    if unit == "share":
        return 100.0, "%"
    if unit != "s":
        return 1.0, "" if unit == "ratio" else unit
    largest = max(
        (mean.value or 0.0 for mean in (point.mean(name) for point in found)), default=0.0
    )
    return (1 / 3600, "h") if largest >= 7200 else (1 / 60, "min") if largest >= 600 else (1.0, "s")


def value_text(value: Any) -> str:
    """Return a value of an axis as text."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def _caption(found: list[Point], name: str, by: str, confidence: float) -> str:
    counts = sorted({point.replicas for point in found})
    if counts == [1]:
        return "One run per point, so there are no intervals: they need replicas (several seeds)."
    several = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return (
        f"Means over {several} replicas; bands and bars are {confidence * 100:g} % intervals by "
        "Student's t over the replicas, "
        f"cut at 0. {same_words(found, name, by)}"
    ).strip()


def same_words(found: list[Point], name: str, by: str) -> str:
    """Return a sentence on the lines without intervals because replicas cannot differ; empty if all
    have one."""
    lines: dict[str, list[bool]] = {}
    for point in found:
        lines.setdefault(value_text(point.at[by]), []).append(bool(point.mean(name).reason))
    same = [
        line if all(points) else f"{line} (at {sum(points)} of {len(points)} points)"
        for line, points in lines.items()
        if any(points)
    ]
    return f"{', '.join(same)}: {SAME}." if same else ""
