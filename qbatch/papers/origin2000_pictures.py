"""The pictures of Figures 3 to 10: means over the replicas, with 95 % intervals where there are several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from qbatch.metrics import interval
from qbatch.model.record import LogClock
from qbatch.papers.origin2000_figures import MEASURES, SUMMARIES, divisor_of, read_group, the_month
from qbatch.papers.origin2000_replicas import HOUR_S, RANGES
from qbatch.papers.origin2000_runs import Origin2000Figures, by_policy
from qbatch.reports.plot_style import PALETTE, PlotRange, caption, legend_outside, new_figure
from qbatch.workloads.origin2000 import CLASSES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Runs = Sequence[Origin2000Figures]
_NOTE = "Generated months, not the logs of the paper. Means over the replicas; bars: 95 % intervals."


_HEADINGS = {
    "wait_mean_s": "Mean wait (h)", "wait_p95_s": "95th percentile of wait (h)", "wait_max_s": "Longest wait (h)",
    "slowdown_mean": "Mean slowdown",
}  # fmt: skip


def all_pictures(runs: Runs, months: Sequence[str]) -> dict[str, Callable[[], Figure]]:
    """Return what draws each picture, by name of file."""
    pictures: dict[str, Callable[[], Figure]] = {
        "figure3": partial(draw_classes, runs, months),
        "figure4": partial(draw_longest, runs, the_month(months, "2000-01")),
        "figure5-ranges": partial(
            draw_ranges, runs, the_month(months, "2000-01"), SUMMARIES["figure5-months"][1], "Figure 5 (a), (b)"
        ),
        "figure9": partial(
            draw_ranges, runs, the_month(months, "1999-11"), SUMMARIES["figure10"][1][:3], "Figure 9: equal shares"
        ),
    }
    return pictures | {name: partial(draw_months, runs, months, name) for name in SUMMARIES}


def draw_classes(runs: Runs, months: Sequence[str]) -> Figure:
    """Draw the mean wait of each class under LSF*, a bar for each month."""
    figure = _figure(3.2, "Figure 3: mean wait of each class under LSF*")
    axes = figure.subplots()
    for place, month in enumerate(months):
        at = np.arange(len(CLASSES)) + (place - (len(months) - 1) / 2) * 0.8 / len(months)
        mine = by_policy(runs, month, "LSF*")
        waits = [list(read_group(mine, name, "wait_mean_s", "classes")) for name in CLASSES]
        values = [[wait / HOUR_S for wait in each] for each in waits]
        _bars(axes, at, values, 0.8 / len(months), place, month)
    axes.set_ylim(bottom=0)  # after the last bar: a bound that is set ends the scaling of the other
    axes.set_xticks(range(len(CLASSES)), CLASSES, rotation=45)
    axes.set_ylabel("Mean wait (h)")
    legend_outside(figure, axes)
    caption(figure, _NOTE)
    return figure


def draw_longest(runs: Runs, month: str) -> Figure:
    """Draw wait over run time of the 5 % of jobs that wait longest under LSF*, of the first replica."""
    figure = _figure(3.0, f"Figure 4: the 5 % that wait longest under LSF*, {month}")
    axes = figure.subplots()
    points = [point for one in by_policy(runs, month, "LSF*")[:1] for point in one.top]
    axes.plot(
        [max(run_s, 1.0) / HOUR_S for run_s, _ in points],
        [wait_s / HOUR_S for _, wait_s in points],
        ".",
        color=PALETTE[0],
        ms=3,
    )
    axes.set_xscale("log")
    axes.set_xlabel("Run time (h)")
    axes.set_ylabel("Wait (h)")
    caption(figure, "A generated month, its first replica; not the log of the paper.")
    return figure


def draw_ranges(runs: Runs, month: str, policies: Sequence[str], title: str) -> Figure:
    """Draw mean wait and 95th percentile by range of run time."""
    figure = _figure(3.6, f"{title}, {month}")
    panels = figure.subplots(1, 2)
    for axes, (_, _, metric, _) in zip(panels, MEASURES[:2], strict=True):
        for place, policy in enumerate(policies):
            mine = by_policy(runs, month, policy)
            found = [
                interval([wait / HOUR_S for wait in read_group(mine, label, metric, "ranges")]) for label in RANGES
            ]
            means = [np.nan if one.mean is None else one.mean for one in found]
            halves = [one.high - one.mean if one.high is not None and one.mean is not None else 0.0 for one in found]
            at = np.arange(len(RANGES)) + 0.08 * (place - (len(policies) - 1) / 2)
            axes.errorbar(at, means, halves, fmt="o-", ms=3, capsize=2, color=PALETTE[place], label=policy)
        axes.set_xticks(range(len(RANGES)), RANGES, rotation=45)
        axes.set_title(_HEADINGS[metric])
        axes.set_ylim(bottom=0)
    legend_outside(figure, panels[0])
    caption(figure, _NOTE)
    return figure


def draw_months(runs: Runs, months: Sequence[str], name: str) -> Figure:
    """Draw the four measures of some policies by month, a panel for each measure."""
    title, policies = SUMMARIES[name]
    figure = _figure(5.2, title)
    panels = figure.subplots(2, 2).ravel()
    for axes, (_, _, metric, _) in zip(panels, MEASURES[: len(panels)], strict=True):
        divisor = divisor_of(metric)
        for place, policy in enumerate(policies):
            at = np.arange(len(months)) + (place - (len(policies) - 1) / 2) * 0.8 / len(policies)
            values = [[float(one.whole[metric] or 0) / divisor for one in by_policy(runs, m, policy)] for m in months]
            _bars(axes, at, values, 0.8 / len(policies), place, policy)
        axes.set_ylim(bottom=0)
        axes.set_xticks(range(len(months)), [month[2:] for month in months])
        axes.set_title(_HEADINGS[metric])
    legend_outside(figure, panels[0])
    caption(figure, _NOTE)
    return figure


def _bars(
    axes: Axes,
    at: NDArray[Any],
    values: Sequence[Sequence[float]],
    width: float,
    place: int,
    label: str,
) -> None:
    """Draw bars with intervals; one of no replica is left out."""
    found = [interval(each) for each in values]
    means = [one.mean or 0.0 for one in found]
    halves = [one.high - one.mean if one.high is not None and one.mean is not None else 0.0 for one in found]
    axes.bar(at, means, width * 0.9, color=PALETTE[place % len(PALETTE)], label=label)
    if any(halves):
        axes.errorbar(at, means, halves, fmt="none", ecolor="#333333", elinewidth=0.6)


def _figure(height: float, title: str) -> Figure:
    return new_figure(PlotRange("origin2000", (), 1, LogClock(), 0, 1), height, title)
