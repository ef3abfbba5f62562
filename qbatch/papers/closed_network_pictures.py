"""The pictures of Figures 3 to 14 of Karatza and Hilzer 2003, and of what is asked beyond it: means with 95 % intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from qbatch.metrics import interval
from qbatch.model.record import LogClock
from qbatch.papers.closed_network_printed import INTERVALS, JOBS, POLICIES, SQFCFS, VARIATIONS
from qbatch.papers.closed_network_replicas import LONGEST, NetworkReplicas, Values
from qbatch.papers.closed_network_study import (
    BEYOND_JOBS,
    COMBINATIONS,
    COMBINED,
    ERROR_STEPS,
    ERRORS,
    FIGURES,
    SERVERS,
    SIZED_JOBS,
    SIZES,
    STATIONS,
    NetworkStudy,
)
from qbatch.papers.record import half
from qbatch.reports.plot_style import GREY, PALETTE, PlotRange, caption, legend_outside, new_figure
from qbatch.workloads.network import Network

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Draw = Callable[[], "Figure"]
Curve = Callable[[str, float], Values]
"""Of a policy, and a place on the axis, the values of the replications."""

_BARS = "Bars: 95 % intervals over the replications, by pairs (common draws)."
_GAIN = "D_R: throughput against PrFCFS, percent. "
_MARKS = "os^Dv<>p"


def all_pictures(study: NetworkStudy, replicas: NetworkReplicas, parts: Sequence[str]) -> dict[str, Draw]:
    """Return what draws each picture of some parts, by name of file."""
    pictures: dict[str, Draw] = {}
    if FIGURES in parts:
        for variation, first in zip(VARIATIONS, (3, 6), strict=True):
            pictures[f"closed-network-figure3-C{variation:g}"] = partial(draw_gains, study, replicas, variation, first)
        for variation, first in zip(VARIATIONS, (9, 12), strict=True):
            pictures[f"closed-network-figure9-C{variation:g}"] = partial(draw_longest, study, replicas, variation, first)
    if ERRORS in parts:
        pictures["closed-network-errors-order"] = partial(draw_errors, study, replicas)
    if COMBINATIONS in parts:
        pictures["closed-network-combinations"] = partial(draw_combinations, study, replicas)
    if STATIONS in parts:
        pictures["closed-network-stations"] = partial(draw_stations, study, replicas)
    if SIZES in parts:
        pictures["closed-network-sizes"] = partial(draw_sizes, study, replicas)
    return pictures


def draw_gains(study: NetworkStudy, replicas: NetworkReplicas, variation: float, first: int) -> Figure:
    """Draw Figures 3 to 5, or 6 to 8: D_R against N, a panel for each d."""
    figure = _figure(f"Figures {first} to {first + 2}: D_R (%) against N, C = {variation:g}")
    for axes, length in zip(figure.subplots(1, len(INTERVALS), sharey=True), INTERVALS, strict=True):

        def curve(policy: str, jobs: float, length: float = length) -> Values:
            return replicas.gain(study.network(int(jobs), variation, length), policy)

        _lines(axes, POLICIES[1:], JOBS, curve)
        axes.axhline(0, color=GREY, linewidth=0.6)
        _say(axes, f"d = e = {length:g}", "N")
    return _finished(figure, _GAIN)


def draw_longest(study: NetworkStudy, replicas: NetworkReplicas, variation: float, first: int) -> Figure:
    """Draw Figures 9 to 11, or 12 to 14: the ratio of RT_max to that of PrFCFS, a panel for each d."""
    figure = _figure(f"Figures {first} to {first + 2}: RT_max ratio against N, C = {variation:g}")
    for axes, length in zip(figure.subplots(1, len(INTERVALS), sharey=True), INTERVALS, strict=True):

        def curve(policy: str, jobs: float, length: float = length) -> Values:
            return replicas.ratio(study.network(int(jobs), variation, length), policy, LONGEST)

        _lines(axes, POLICIES[1:], JOBS, curve)
        _say(axes, f"d = e = {length:g}", "N")
        axes.axhline(1, color=GREY, linewidth=0.6)
        axes.set_yscale("log", base=2)
        axes.yaxis.set_major_formatter("{x:g}")
    return _finished(figure, "RT_max: the longest response of a replication, against PrFCFS; a scale of logarithms. ")


def draw_errors(study: NetworkStudy, replicas: NetworkReplicas) -> Figure:
    """Draw D_R against the error of estimates: a row for each C, a panel for each N."""
    steps = (0.0, *ERROR_STEPS)
    return _panels(
        replicas, "Beyond the paper: D_R (%) by the error of estimates", "E", steps, POLICIES[1:],
        lambda jobs, variation, error: study.network(jobs, variation, error=error),
    )  # fmt: skip


def draw_stations(study: NetworkStudy, replicas: NetworkReplicas) -> Figure:
    """Draw D_R against the processors of a station: a row for each C, a panel for each N."""
    return _panels(
        replicas, "Beyond the paper: D_R (%) by processors of a station", "processors of a station, of 16", SERVERS,
        POLICIES[1:], lambda jobs, variation, servers: study.network(jobs, variation, servers=int(servers)), is_log=True,
    )  # fmt: skip


def _panels(
    replicas: NetworkReplicas,
    title: str,
    below: str,
    places: Sequence[float],
    policies: Sequence[str],
    network: Callable[[int, float, float], Network],
    *,
    is_log: bool = False,
) -> Figure:
    figure = _figure(title, 4.2)
    rows = figure.subplots(len(VARIATIONS), len(BEYOND_JOBS), sharey="row", sharex=True)
    for row, variation in zip(rows, VARIATIONS, strict=True):
        for axes, jobs in zip(row, BEYOND_JOBS, strict=True):

            def curve(policy: str, place: float, jobs: int = jobs, variation: float = variation) -> Values:
                return replicas.gain(network(jobs, variation, place), policy)

            _lines(axes, policies, places, curve, is_log=is_log)
            _say(axes, f"C = {variation:g}, N = {jobs}", below if variation == VARIATIONS[-1] else "")
    return _finished(figure, _GAIN)


def draw_combinations(study: NetworkStudy, replicas: NetworkReplicas) -> Figure:
    """Draw the throughput of the shortest queue with each discipline against that with FCFS."""
    figure = _figure("Beyond the paper: the shortest queue, throughput against SQFCFS (%)")
    for axes, variation in zip(figure.subplots(1, len(VARIATIONS), sharey=True), VARIATIONS, strict=True):

        def curve(policy: str, jobs: float, variation: float = variation) -> Values:
            return replicas.gain(study.network(int(jobs), variation), policy, SQFCFS)

        _lines(axes, COMBINED[1:], JOBS, curve)
        axes.axhline(0, color=GREY, linewidth=0.6)
        _say(axes, f"C = {variation:g}", "N")
    return _finished(figure, "")


def draw_sizes(study: NetworkStudy, replicas: NetworkReplicas) -> Figure:
    """Draw D_R against the processors: a row for each C, a panel for each N / P."""
    figure = _figure("Beyond the paper: D_R (%) by the number of processors", 4.2)
    shares = (1, 2, 3)
    places = (JOBS[0], *SIZED_JOBS)
    rows = figure.subplots(len(VARIATIONS), len(shares), sharey="row", sharex=True)
    for row, variation in zip(rows, VARIATIONS, strict=True):
        for axes, share in zip(row, shares, strict=True):

            def curve(policy: str, processors: float, share: int = share, variation: float = variation) -> Values:
                size = int(processors)
                is_paper = size == JOBS[0]
                of = study.network if is_paper else partial(study.sized, size)
                return replicas.gain(of(share * size, variation), policy)

            _lines(axes, POLICIES[1:], places, curve, is_log=True)
            _say(axes, f"C = {variation:g}, N = {share} P".replace("1 P", "P"), "P" if variation == VARIATIONS[-1] else "")
    return _finished(figure, _GAIN)


def _lines(axes: Axes, policies: Sequence[str], places: Sequence[float], curve: Curve, *, is_log: bool = False) -> None:
    """Draw a line for each policy; a place without runs is left out."""
    for number, policy in enumerate(policies, 0 if SQFCFS in policies else 4):
        found = [(place, interval(list(curve(policy, place).values()))) for place in places]
        drawn = [(place, one.mean, half(one) or 0.0) for place, one in found if one.mean is not None]
        if drawn:
            at, means, halves = zip(*drawn, strict=True)
            axes.errorbar(
                at, means, halves, color=PALETTE[number], marker=_MARKS[number], ms=3, capsize=1.5, elinewidth=0.6,
                linewidth=0.9, label=policy,
            )  # fmt: skip
    if is_log:
        axes.set_xscale("log", base=2)
    axes.set_xticks(places, [f"{place:g}" for place in places])
    axes.minorticks_off()


def _say(axes: Axes, title: str, below: str) -> None:
    axes.set_title(title, fontsize=7)
    axes.set_xlabel(below)


def _finished(figure: Figure, text: str) -> Figure:
    legend_outside(figure, figure.axes[0])
    caption(figure, text + _BARS)
    return figure


def _figure(title: str, height: float = 2.6) -> Figure:
    return new_figure(PlotRange("closed-network", (), 1, LogClock(), 0, 1, title=title), height, title)
