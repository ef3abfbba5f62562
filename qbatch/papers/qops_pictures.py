"""The pictures of Figures 4 to 58: means over the subsets with 95 % intervals, against load and against utilisation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from qbatch.model.record import LogClock
from qbatch.papers.qops_figures import CURVES, HOUR_S, curve, figures_of_share, name_of, trace_words
from qbatch.papers.qops_replicas import JOBS, RESPONSE, SLOWDOWN, UTILISATION, WORK, Number, QopsReplicas
from qbatch.papers.qops_runs import (
    CONSERVATIVE,
    DUPLICATION,
    EASY,
    FACTORS,
    LOADS,
    MRT,
    MRT_LLF,
    MSB,
    MSB_FRACTION,
    QOPS,
    SCHEMES,
    SHARES,
    STRINGENCIES,
    Setting,
)
from qbatch.reports.plot_style import PALETTE, PlotRange, caption, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LOOKS = {
    EASY: (PALETTE[6], "-", ""),
    CONSERVATIVE: (PALETTE[6], ":", ""),
    QOPS: (PALETTE[0], "-", "o"),
    MSB: (PALETTE[1], "-", "s"),
    MRT: (PALETTE[2], "-", "^"),
    MSB_FRACTION: (PALETTE[1], "--", "s"),
    MRT_LLF: (PALETTE[2], "--", "^"),
}
"""Colour, line and marker: a rival's stronger setting is its dashed line."""

_LEGEND = 0.05
"""The share of the height that is kept for the legend, under the title."""

_CAPTION = (
    "Jobs with deadlines (response and slowdown: those without). Means over the subsets; bars: 95 % intervals. "
    "Solid: presets, picked to match the paper; dashed: stronger rivals."
)

_ADMISSION: tuple[tuple[str, Number, float], ...] = (
    ("Unadmitted jobs (%)", JOBS, 100.0),
    ("Unadmitted processor-seconds (%)", WORK, 100.0),
    ("Utilisation (%)", UTILISATION, 100.0),
)
_SERVICE: tuple[tuple[str, Number, float], ...] = (("Response (h)", RESPONSE, 1 / HOUR_S), ("Slowdown", SLOWDOWN, 1.0))


def all_pictures(replicas: QopsReplicas) -> dict[str, Callable[[], Figure]]:
    """Return what draws each picture of a trace, by name of file."""
    pictures: dict[str, Callable[[], Figure]] = {}
    for share in SHARES:
        name = name_of(replicas, f"q{100 * share:g}")
        pictures[name] = partial(draw_admission, replicas, share)
        if share < 1:
            pictures[f"{name}-response"] = partial(draw_response, replicas, share)
    if replicas.method == DUPLICATION:
        pictures[name_of(replicas, "R")] = partial(draw_relaxation, replicas)
    return pictures


def draw_admission(replicas: QopsReplicas, share: float) -> Figure:
    """Draw what is not admitted and how busy the machine is, against load: a row for each stringency."""
    figure = _figure(f"{figures_of_share(replicas, share, ('mixed', 'utilisation'))}, q = {share:g}", replicas)
    panels = figure.subplots(len(STRINGENCIES), len(_ADMISSION), sharex=True, sharey="col")
    for row, stringency in zip(panels, STRINGENCIES, strict=True):
        for axes, (heading, number, factor) in zip(row, _ADMISSION, strict=True):
            names = CURVES if number is UTILISATION else tuple(SCHEMES)
            _lines(axes, replicas, Setting(share, stringency), names, number, factor)
            _say(axes, f"{heading}, s = {stringency:g}", is_last=row[0] is panels[-1][0])
    for axes in panels[:, :2].flat:
        axes.set_ylim(bottom=0)  # after the last line of a column: a bound that is set ends the scaling of the other
    _finish(figure, panels[0][-1])
    return figure


def draw_response(replicas: QopsReplicas, share: float) -> Figure:
    """Draw response and slowdown of jobs without deadlines, against load and against utilisation."""
    figure = _figure(f"{figures_of_share(replicas, share, ('response', 'against'))}, q = {share:g}", replicas)
    panels = figure.subplots(len(STRINGENCIES), 2 * len(_SERVICE), sharey="col")
    for row, stringency in zip(panels, STRINGENCIES, strict=True):
        for place, (heading, number, factor) in enumerate(_SERVICE):
            for axes, by_load in ((row[place], True), (row[place + len(_SERVICE)], False)):
                _lines(axes, replicas, Setting(share, stringency), CURVES, number, factor, by_load=by_load)
                _say(axes, f"{heading}, s = {stringency:g}", is_last=row[0] is panels[-1][0], by_load=by_load)
    for axes in panels.flat:
        axes.set_yscale("log")  # the references lie far above the schemes
    _finish(figure, panels[0][0])
    return figure


def draw_relaxation(replicas: QopsReplicas) -> Figure:
    """Draw response and slowdown of jobs without deadlines under QoPS, a line for each R."""
    figure = _figure("Figures 55 to 58, QoPS by R", replicas)
    panels = figure.subplots(len(_SERVICE), 4, sharex=True)
    settings = [(share, stringency) for share in (0.2, 0.8) for stringency in STRINGENCIES]
    for row, (heading, number, unit) in zip(panels, _SERVICE, strict=True):
        for axes, (share, stringency) in zip(row, settings, strict=True):
            for place, factor in enumerate(FACTORS):
                points = list(curve(replicas, Setting(share, stringency, factor), QOPS, number))
                _line(axes, points, f"R = {factor:g}", (PALETTE[place], "-", "o"), unit)
            _say(axes, f"{heading}, q = {share:g}, s = {stringency:g}", is_last=row[0] is panels[-1][0])
    for axes in panels.flat:
        axes.set_ylim(bottom=0)
    _finish(figure, panels[0][0], "Means over the subsets; bars: 95 % intervals.")
    return figure


def _lines(
    axes: Axes,
    replicas: QopsReplicas,
    setting: Setting,
    names: Sequence[str],
    number: Number,
    factor: float,
    *,
    by_load: bool = True,
) -> None:
    for name in names:
        _line(axes, list(curve(replicas, setting, name, number)), name, _LOOKS[name], factor, by_load=by_load)


def _line(
    axes: Axes,
    points: Sequence[tuple[float, float, float, float]],
    label: str,
    look: tuple[str, str, str],
    factor: float,
    *,
    by_load: bool = True,
) -> None:
    colour, style, marker = look
    at = [load if by_load else 100 * busy for load, busy, _, _ in points]
    means, halves = ([factor * point[place] for point in points] for place in (2, 3))
    axes.errorbar(
        at, means, halves if by_load else None, color=colour, linestyle=style, marker=marker, ms=2.5, capsize=1.5,
        elinewidth=0.6, label=label,
    )  # fmt: skip


def _say(axes: Axes, title: str, *, is_last: bool, by_load: bool = True) -> None:
    axes.set_title(title, fontsize=7)
    if by_load:
        axes.set_xticks(LOADS)
    if is_last:
        axes.set_xlabel("Load" if by_load else "Utilisation (%)")


def _finish(figure: Figure, axes: Axes, text: str = _CAPTION) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper left", bbox_to_anchor=(0.0, 1 - _LEGEND), ncols=len(labels), fontsize=6.5)
    engine: Any = figure.get_layout_engine()
    engine.set(rect=(0, 0, 1, 1 - _LEGEND))
    caption(figure, text)


def _figure(title: str, replicas: QopsReplicas) -> Figure:
    return new_figure(PlotRange(trace_words(replicas), (), 1, LogClock(), 0, 1), 4.4, title)
