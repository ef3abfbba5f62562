"""The pictures of Feitelson and Weil 1998: Figures 9 to 11, and Tables 2 and 3 with the printed numbers beside ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from qbatch.model.record import LogClock
from qbatch.papers.sp2_backfilling_printed import POLICIES, TABLE_2, TABLE_3, USERS
from qbatch.papers.sp2_backfilling_runs import (
    MODEL_POLICIES,
    EstimateFigures,
    FactorFigures,
    LoadFigures,
    MonthFigures,
    estimated,
)
from qbatch.papers.sp2_backfilling_verdicts import half
from qbatch.reports.plot_style import GREY, PALETTE, PlotRange, caption, legend_outside, new_figure
from qbatch.workloads import Log

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = {"fcfs": PALETTE[2], "easy": PALETTE[0], "conservative": PALETTE[1]}
_NAMES = {"fcfs": "FCFS", "easy": "EASY", "conservative": "conservative"}
_READINGS = {"whole": "whole log, by submission", "files": "month by month, by logged end"}
_LONGEST_REQUEST_MIN = 120
_AT_LOADS = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


def _figure(height: float, title: str, name: str) -> Figure:
    name = Path(name).name.removesuffix(".gz").removesuffix(".xz").removesuffix(".swf")
    return new_figure(PlotRange(name, (), 1, LogClock(), 0, 1), height, title)


# ------------------------------------------------------------------------------------------------ tables


def draw_table_2(found: Mapping[str, Sequence[MonthFigures]], name: str, *, is_kth: bool) -> Figure:
    """Draw the months under both schemes, one panel for each reading, the printed numbers as marks."""
    figure = _figure(1.1 + 1.7 * len(found), "Table 2, bounded slowdown by month", name)
    panels = figure.subplots(len(found), 1, squeeze=False, sharey=True)[:, 0]
    for axes, (reading, months) in zip(panels, found.items(), strict=True):
        _draw_months(axes, months, is_kth=is_kth)
        axes.set_title(_READINGS[reading])
        axes.set_ylabel("Bounded slowdown")
    legend_outside(figure, panels[0])
    caption(figure, "Users' estimates. Not clipped at 1." + (" Marks: Feitelson and Weil 1998." if is_kth else ""))
    return figure


def _draw_months(axes: Axes, months: Sequence[MonthFigures], *, is_kth: bool) -> None:
    printed = {month.label: month for month in TABLE_2} if is_kth else {}
    for place, policy in enumerate(POLICIES):
        at = np.arange(len(months)) + (place - 0.5) * 0.4
        colour = _COLOURS[policy]
        axes.bar(at, [month.slowdown[policy] for month in months], 0.36, color=colour, alpha=0.55, label=_NAMES[policy])
        known = [(x, getattr(printed[m.label], policy)) for x, m in zip(at, months, strict=True) if m.label in printed]
        if known:
            xs, ys = zip(*known, strict=True)
            axes.plot(xs, ys, "D", color=colour, ms=4, mec="white", mew=0.6, label=f"{_NAMES[policy]}, printed")
    step = -(-len(months) // 14)
    labels = [_month_text(month.label, is_first=not place) for place, month in enumerate(months)]
    axes.set_xticks(range(0, len(months), step), labels[::step])


def _month_text(label: str, *, is_first: bool) -> str:
    """Return ``Oct`` for ``1996-10``, with the year below where one begins; other labels as they are."""
    try:
        month = date.fromisoformat(f"{label}-01")
    except ValueError:
        return label
    return f"{month:%b}\n{month.year}" if is_first or month.month == 1 else f"{month:%b}"


def draw_table_3(found: Mapping[str, Sequence[FactorFigures]], name: str, *, is_kth: bool) -> Figure:
    """Draw the slowdown by factor with 95 % intervals, users' estimates last, one panel for each reading."""
    figure = _figure(2.9, "Table 3, quality of estimates", name)
    panels = figure.subplots(1, len(found), squeeze=False, sharey=True)[0]
    for axes, (reading, rows) in zip(panels, found.items(), strict=True):
        for policy in POLICIES:
            _draw_factors(axes, rows, policy, is_kth=is_kth)
        axes.set_xticks(range(len(rows)), [str(row.factor) for row in rows])
        axes.set_title(_READINGS[reading])
        axes.set_xlabel("f of the estimates")
        axes.set_ylim(0, None)
    panels[0].set_ylabel("Bounded slowdown")
    legend_outside(figure, panels[0])
    seeds = max(row.slowdown["easy"].n for rows in found.values() for row in rows)
    text = f"Estimates uniform in [run, f x run], mean of {seeds} seeds; bars: 95 % interval; users: as logged."
    caption(figure, text)
    return figure


def _draw_factors(axes: Axes, rows: Sequence[FactorFigures], policy: str, *, is_kth: bool) -> None:
    colour = _COLOURS[policy]
    drawn = [row for row in rows if row.factor != USERS]
    look: dict[str, Any] = {"color": colour, "marker": "o", "ms": 3, "capsize": 2, "lw": 1.1}
    means = [row.slowdown[policy].mean or 0.0 for row in drawn]
    halves = [half(row.slowdown[policy]) or 0.0 for row in drawn]
    axes.errorbar(range(len(drawn)), means, halves, label=_NAMES[policy], **look)
    users = [row.slowdown[policy].mean or 0.0 for row in rows if row.factor == USERS]
    axes.plot([len(drawn)], users, "o", color=colour, ms=4)
    if is_kth:
        printed = [TABLE_3[row.factor][POLICIES.index(policy)] for row in rows]
        axes.plot(range(len(rows)), printed, "D", mfc="none", color=colour, ms=4.5, label=f"{_NAMES[policy]}, printed")


# ------------------------------------------------------------------------------------------------ figures


def draw_figure_9(points: Sequence[LoadFigures]) -> Figure:
    """Draw bounded slowdown against load under three schemes, as the paper's Figure 9."""
    figure = _figure(3.0, "Figure 9, bounded slowdown by load", "generated logs")
    axes = figure.add_subplot()
    _draw_loads(axes, points, {policy: [point.slowdown[policy] for point in points] for policy in MODEL_POLICIES})
    axes.set_yscale("log")
    axes.set_ylabel("Bounded slowdown")
    legend_outside(figure, axes)
    caption(figure, "Perfect estimates; our generator in place of the paper's model. Logarithmic scale.")
    return figure


def draw_figure_10(points: Sequence[LoadFigures]) -> Figure:
    """Draw the share of jobs that are backfilled against load, as the paper's Figure 10."""
    figure = _figure(3.0, "Figure 10, jobs backfilled by load", "generated logs")
    axes = figure.add_subplot()
    shares = {policy: [100 * point.backfilled[policy] for point in points] for policy in POLICIES}
    _draw_loads(axes, points, shares)
    axes.set_ylim(0, 100)
    axes.set_ylabel("Jobs backfilled (%)")
    legend_outside(figure, axes)
    caption(figure, "Backfilled: started while a job submitted earlier was left waiting. Perfect estimates.")
    return figure


def _draw_loads(axes: Axes, points: Sequence[LoadFigures], values: Mapping[str, Sequence[float]]) -> None:
    loads = [point.load for point in points]
    for policy, line in values.items():
        style = "--" if policy == "conservative" else "-"
        axes.plot(loads, line, style, marker="o", ms=3, color=_COLOURS[policy], label=_NAMES[policy])
    axes.set_xticks(_AT_LOADS)
    axes.set_xlabel("Offered load")


def draw_figure_11(log: Log, found: EstimateFigures) -> Figure:
    """Draw how much of the requested time was used, and run time against request, as the paper's Figure 11."""
    figure = _figure(3.3, "Figure 11, estimates and run times", log.name)
    left, right = figure.subplots(1, 2)
    left.bar(np.arange(101), found.histogram, 1.0, color=PALETTE[0], linewidth=0)
    left.set_xlim(-0.5, 101)
    left.set_xlabel("Requested time that was used (%)")
    left.set_ylabel("Jobs in a bin of 1 %")
    asks = estimated(log)
    asked, ran = (np.asarray(log[name])[asks] / 60 for name in ("time_requested", "run"))
    shown = (asked <= _LONGEST_REQUEST_MIN) & (ran >= 1)
    dots: dict[str, Any] = {"color": PALETTE[0], "ms": 1.2, "alpha": 0.35, "mew": 0, "rasterized": True}
    right.plot(asked[shown], ran[shown], "o", **dots)
    right.plot([0, _LONGEST_REQUEST_MIN], [0, _LONGEST_REQUEST_MIN], color=GREY, linewidth=0.6)
    for limits in (right.set_xlim, right.set_ylim):
        limits(0, 1.02 * _LONGEST_REQUEST_MIN)
    right.set_xticks(range(0, _LONGEST_REQUEST_MIN + 1, 30))
    right.set_yticks(range(0, _LONGEST_REQUEST_MIN + 1, 30))
    right.set_xlabel("Requested time (min)")
    right.set_ylabel("Run time (min)")
    right.set_aspect("equal")
    text = f"{found.jobs:,} jobs of a minute or more; runs beyond the request count as 100 %."
    caption(figure, f"{text} Right: the {int(shown.sum()):,} that asked for at most 2 h.")
    return figure
