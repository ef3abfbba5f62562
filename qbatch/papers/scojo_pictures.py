"""The pictures of Figures 15 to 41 of the thesis on group optimisation, and of what was asked beyond it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from qbatch.metrics import interval
from qbatch.model.record import LogClock
from qbatch.papers import scojo_printed as printed
from qbatch.papers.evidence import change_interval
from qbatch.papers.record import half
from qbatch.papers.scojo_changes import Comparison
from qbatch.papers.scojo_figures import HOUR_S, PERCENT, workload_name
from qbatch.papers.scojo_replicas import RESPONSE, UTILISATION, WAIT, Number, ScojoReplicas, of_cell, slowdown
from qbatch.papers.scojo_runs import (
    BOTTOM,
    BOTTOM_ALONE,
    GROUPS,
    GROUPS_ALONE,
    NO_DYNAMIC,
    NO_LEVEL2,
    SCOJO,
    SCOJO_ALONE,
    WIDTHS,
    label_of,
    sized,
)
from qbatch.policies.slice_rules import NAMES
from qbatch.reports.plot_style import GREY, PALETTE, PlotRange, caption, legend_outside, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BARS = "Slowdown: ceil(max(1, response / max(run, 600 s))); bars of several workloads: means with 95 % intervals."
_ONE = "Each workload has one run under each scheme."
_CHANGE = (
    "Change of the mean slowdown in percent, below 0 is better: mean ratio over the workloads with its 95 % interval."
)

Values = Sequence[Sequence[float]]
"""Of each bar of a series the values of its workloads."""


def all_pictures(model: ScojoReplicas, logs: Mapping[str, ScojoReplicas]) -> dict[str, Callable[[], Figure]]:
    """Return what draws each picture of the paper's runs, by name of file."""
    pictures: dict[str, Callable[[], Figure]] = {}
    for name, title, schemes in (
        ("scojo-figure16-20", "Figures 16 to 20: mean slowdown", (SCOJO, GROUPS)),
        ("scojo-figure27", "Figure 27: mean slowdown without the second level", (SCOJO, NO_LEVEL2, GROUPS)),
        ("scojo-figure30-34", "Figures 30 to 34: without smart backfilling", (SCOJO_ALONE, GROUPS_ALONE)),
        ("scojo-figure40", "Figure 40: against the bottom line", (SCOJO, BOTTOM, GROUPS)),
        ("scojo-figure41", "Figure 41: the same without smart backfilling", (SCOJO_ALONE, BOTTOM_ALONE, GROUPS_ALONE)),
    ):
        pictures[name] = partial(draw_slowdowns, model, title, schemes)
    for slug, log in logs.items():
        title = f"Figures 21, 22, 35 and 36: {slug}"
        pictures[f"scojo-figure21-{slug}"] = partial(
            draw_slowdowns, log, title, (SCOJO, GROUPS, SCOJO_ALONE, GROUPS_ALONE)
        )
    sources = [model, *logs.values()]
    for name, title, number, schemes in (
        ("scojo-figure23", "Figures 23 and 28: mean response (h)", RESPONSE, (SCOJO, NO_LEVEL2, GROUPS)),
        ("scojo-figure24", "Figures 24 and 29: mean wait (h)", WAIT, (SCOJO, NO_LEVEL2, GROUPS)),
        ("scojo-figure25", "Figure 25: mean wait without dynamic backfilling (h)", WAIT, (SCOJO, NO_DYNAMIC, GROUPS)),
        ("scojo-figure26", "Figure 26: utilisation (%)", UTILISATION, (SCOJO, GROUPS)),
        (
            "scojo-figure38",
            "Figure 38: mean response without smart backfilling (h)",
            RESPONSE,
            (SCOJO_ALONE, GROUPS_ALONE),
        ),
        ("scojo-figure39", "Figure 39: mean wait without smart backfilling (h)", WAIT, (SCOJO_ALONE, GROUPS_ALONE)),
    ):
        factor = PERCENT if number is UTILISATION else 1 / HOUR_S
        pictures[name] = partial(draw_workloads, sources, title, number, factor, schemes)
    pictures["scojo-figure37"] = partial(draw_worst, model)
    return pictures


def draw_sizes(model: ScojoReplicas) -> Figure:
    """Draw Figure 15: the slowdown by the longest groups, ours and the printed one."""
    figure = _figure(3.6, "Figure 15: mean slowdown by the longest groups of medium (M) and long (L) jobs")
    for axes, place, kind in zip(figure.subplots(2, 1, sharex=True), (0, 1), ("medium", "long"), strict=True):
        ours = []
        for medium, long in printed.BY_SIZE:
            found = model.of(sized(medium, long), slowdown(kind))
            ours.append([value for workload, value in found.items() if label_of(workload) is not None])
        at = np.arange(len(ours))
        _bars(axes, at - 0.2, ours, 0.4, 0, "ours")
        axes.bar(at + 0.2, [row[place] for row in printed.BY_SIZE.values()], 0.36, color=PALETTE[4], label="printed")
        axes.set_title(f"{kind} jobs", fontsize=7)
        axes.set_xticks(at, [f"M{medium}\nL{long}" for medium, long in printed.BY_SIZE], fontsize=6)
    legend_outside(figure, figure.axes[0])
    caption(
        figure,
        "Means over the workloads that the paper labels, with 95 % intervals; the order of its columns is deduced.",
    )
    return figure


def draw_slowdowns(replicas: ScojoReplicas, title: str, schemes: Sequence[str]) -> Figure:
    """Draw the mean slowdown by class and width: a panel for each class."""
    labelled = [workload for workload in replicas.workloads if label_of(workload) in printed.FACTS]
    chosen = [None] if replicas.slug != "model" or len(replicas.workloads) < 2 else [None, *labelled]
    figure = _figure(1.6 * len(chosen) if len(chosen) > 1 else 2.6, title)
    panels = figure.subplots(len(chosen), len(NAMES), sharex=True, squeeze=False)
    for row, workload in zip(panels, chosen, strict=True):
        for axes, kind in zip(row, NAMES, strict=True):
            for place, scheme in enumerate(schemes):
                at = np.arange(1 + len(WIDTHS)) + _shift(place, len(schemes))
                values = []
                for width in ("all", *WIDTHS):
                    found = replicas.of(scheme, slowdown(kind, width))
                    values.append([value for one, value in found.items() if workload in (None, one)])
                _bars(axes, at, values, 0.8 / len(schemes), place, scheme)
            whose = ", all workloads" if workload is None else f", {workload_name(replicas, workload)}"
            axes.set_title(f"{kind} jobs{whose if len(chosen) > 1 else ''}", fontsize=7)
            axes.set_xticks(range(1 + len(WIDTHS)), ["all", *WIDTHS])
            axes.set_ylim(bottom=0)
    legend_outside(figure, panels[0][0])
    caption(figure, _BARS)
    return figure


def draw_workloads(
    sources: Sequence[ScojoReplicas], title: str, number: Number, factor: float, schemes: Sequence[str]
) -> Figure:
    """Draw a number of each workload: a bar for each scheme."""
    places = [
        (replicas, workload) for replicas in sources for workload in replicas.workloads if replicas.runs(schemes[0])
    ]
    figure = _figure(2.8, title)
    axes = figure.subplots()
    for place, scheme in enumerate(schemes):
        values = []
        for replicas, workload in places:
            found = replicas.of(scheme, number).get(workload)
            values.append([] if found is None else [factor * found])
        _bars(axes, np.arange(len(places)) + _shift(place, len(schemes)), values, 0.8 / len(schemes), place, scheme)
    axes.set_xticks(range(len(places)), [workload_name(*one) for one in places], rotation=60, fontsize=6)
    legend_outside(figure, axes)
    caption(figure, _ONE)
    return figure


def draw_worst(model: ScojoReplicas) -> Figure:
    """Draw Figure 37: the largest slowdown of a job of each class, without smart backfilling."""
    figure = _figure(2.6, "Figure 37: the worst slowdown without smart backfilling")
    axes = figure.subplots()
    for place, scheme in enumerate((SCOJO_ALONE, GROUPS_ALONE)):
        values = [list(model.of(scheme, of_cell("worst", kind)).values()) for kind in NAMES]
        _bars(axes, np.arange(len(NAMES)) + _shift(place, 2), values, 0.4, place, scheme)
    axes.set_xticks(range(len(NAMES)), NAMES)
    legend_outside(figure, axes)
    caption(figure, "The largest slowdown of a job, not rounded up: means over the workloads with 95 % intervals.")
    return figure


def draw_changes(sources: Sequence[ScojoReplicas], title: str, comparisons: Sequence[Comparison]) -> Figure:
    """Draw the change of slowdown by class and by width of long jobs, a panel for each comparison, a row of dots a source."""
    names = [f"{replicas.slug}, {replicas.estimates}" for replicas in sources]
    parts = [(kind, "all") for kind in NAMES] + [("long", width) for width in WIDTHS]
    figure = _figure(0.5 + 1.7 * len(comparisons), title)
    panels = figure.subplots(len(comparisons), 1, sharex=True, squeeze=False)[:, 0]
    for axes, (scheme, base) in zip(panels, comparisons, strict=True):
        axes.axhline(0, color=GREY, linewidth=0.6)
        for place, (replicas, name) in enumerate(zip(sources, names, strict=True)):
            found = [change_interval(list(replicas.ratio(scheme, base, slowdown(*part)).values())) for part in parts]
            means = [np.nan if one.mean is None else one.mean for one in found]
            halves = [
                [0.0 if one.mean is None or one.low is None else one.mean - one.low for one in found],
                [0.0 if one.mean is None or one.high is None else one.high - one.mean for one in found],
            ]
            look = {"color": PALETTE[place // 2 % len(PALETTE)], "marker": "os"[place % 2], "label": name}
            if place % 2:
                look["markerfacecolor"] = "white"
            at = np.arange(len(parts)) + _shift(place, len(sources))
            axes.errorbar(at, means, halves, linestyle="", ms=3, capsize=1.5, elinewidth=0.6, **look)
        axes.set_title(f"{scheme} against {base}", fontsize=7)
        axes.set_yscale("symlog", linthresh=20)
        axes.set_yticks([-80, -40, -20, -10, 0, 10, 20, 40, 80, 200], labels=None)
        axes.yaxis.set_major_formatter("{x:+.0f}")
        axes.set_xticks(range(len(parts)), [kind if width == "all" else f"{kind}\n{width}" for kind, width in parts])
    legend_outside(figure, panels[0])
    caption(figure, _CHANGE)
    return figure


def _shift(place: int, count: int) -> float:
    """Return how far from the middle one of several bars stands."""
    return (place - (count - 1) / 2) * 0.8 / count


def _bars(axes: Axes, at: np.ndarray, values: Values, width: float, place: int, label: str) -> None:
    """Draw bars with intervals; one without a workload is left out."""
    found = [interval(each) for each in values]
    halves = [half(one) or 0.0 for one in found]
    means = [one.mean or 0.0 for one in found]
    axes.bar(at, means, width * 0.9, color=PALETTE[place % len(PALETTE)], label=label)
    if any(halves):
        axes.errorbar(at, means, halves, fmt="none", ecolor="#333333", elinewidth=0.6)


def _figure(height: float, title: str) -> Figure:
    return new_figure(PlotRange("scojo", (), 1, LogClock(), 0, 1, title=title), height, title)
