"""Pictures of distributions: waits, slowdowns by size, estimates against run times.

They show the counted jobs that are submitted in the window.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from qbatch.metrics.per_job import bounded_slowdowns, job_times
from qbatch.model.errors import UsageError
from qbatch.model.record import MICROSECONDS, Int64Array, Schedule, Workload
from qbatch.reports.plot_style import (
    GREY,
    Canvas,
    PlotRange,
    duration_text,
    policy_look,
    whole_ticks,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]

_ROUND_DAYS = (0.25, 1, 7, 30, 365, 3650)
_ROUND_TIMES = (0.001, 0.01, 0.1, 1, 10, 60, 600, 3600, *(days * 86400 for days in _ROUND_DAYS))
_BINS_PER_DECADE = 4
_MANY_JOBS = 3_000
_LONGEST_REQUEST = 2 * 3600
"""The longest request in the scatter plot, as in Feitelson and Weil 1998, Fig. 11."""


def _counted(view: PlotRange) -> list[Schedule]:
    """Return the counted jobs of each policy; refuse a window without any."""
    counted = [view.counted(ran) for ran in view.schedules]
    if not any(map(len, counted)):
        raise UsageError(f"{view.name}: no counted job is submitted between --from and --to")
    return counted


# ------------------------------------------------------------------------------------------------
# waits


def wait_histogram(view: PlotRange) -> Canvas:
    """Draw the distribution of waits per policy: shares in logarithmic bins, with one for no wait,
    and cumulated."""
    counted = [ran for ran in _counted(view) if len(ran)]
    waits = [job_times(ran).wait / MICROSECONDS for ran in counted]
    edges = wait_edges(waits)
    canvas = Canvas(view, 4.4, "Waits", rows=2)
    upper, lower = canvas.axes
    low, high = np.log10(edges[0]), float(np.log10(edges[-1]))
    # The width of the bin of no wait, left of the logarithmic ones.
    gap = float(max(0.09 * (high - low), 0.25))
    left = float(low - gap)
    for place, (ran, wait) in enumerate(zip(counted, waits, strict=True)):
        look = policy_look(place, is_grey=view.is_grey)
        label = ran.policy
        shares = np.histogram(wait[wait > 0], edges)[0] / len(wait) * 100
        upper.stairs(shares, np.log10(edges), label=label, linewidth=1.1, **look)
        width = gap / (len(counted) + 1)
        upper.bar(
            left + (place + 0.5) * width, np.mean(wait == 0) * 100, width * 0.9, color=look["color"]
        )
        values, counts = np.unique(wait, return_counts=True)
        shares = np.cumsum(counts) / len(wait) * 100
        places = np.where(values > 0, np.log10(np.maximum(values, 1e-9)), left)
        if values[0] > 0:
            places, shares = np.append(left, places), np.append(0.0, shares)
        lower.step(places, shares, where="post", label=label, **look)
    upper.set_ylabel("Jobs in the bin (%)")
    lower.set_ylabel("Jobs that wait\nat most this long (%)")
    lower.set_ylim(0, 101)
    shown = [time for time in _ROUND_TIMES if edges[0] <= time <= edges[-1]]
    lower.set_xticks([left + gap / 2, *np.log10(shown)], ["0", *map(duration_text, shown)])
    lower.set_xlim(left, high)
    lower.set_xlabel("Wait")
    for axes in (upper, lower):
        axes.axvline(left + gap, color="#BBBBBB", linewidth=0.6)
    canvas.legend(upper)
    means = [
        f"{ran.policy} {duration_text(float(np.mean(wait)))}"
        for ran, wait in zip(counted, waits, strict=True)
    ]
    most = max(map(len, counted))
    text = f"{most:,} jobs, {_BINS_PER_DECADE} bins for each factor of ten; left: no wait."
    canvas.caption(f"{text} Mean wait: {', '.join(means)}.")
    return canvas


def wait_edges(waits: list[Floats]) -> Floats:
    """Return the edges, in seconds, of logarithmic bins that hold every wait above 0."""
    positive = np.concatenate([wait[wait > 0] for wait in waits])
    if not len(positive):
        return np.array([1.0, 10.0])
    least = min(1.0, 10.0 ** np.floor(np.log10(positive.min())))
    first = round(np.log10(least) * _BINS_PER_DECADE)
    last = int(np.floor(np.log10(max(positive.max(), 10.0)) * _BINS_PER_DECADE)) + 1
    edges = 10.0 ** (np.arange(first, last + 1) / _BINS_PER_DECADE)
    edges[-1] = max(edges[-1], positive.max())
    return np.asarray(edges)


# ------------------------------------------------------------------------------------------------
# slowdowns


def size_class(procs: Int64Array) -> Int64Array:
    """Return the class of each size: 0 holds 1 processor, 1 holds 2, 2 holds 3 and 4, 3 holds 5 to
    8, and so on."""
    return np.frexp(np.maximum(procs, 1) - 0.5)[1].astype(np.int64)


def class_name(place: int) -> str:
    """Return the sizes of a class as text."""
    if place < 2:
        return str(2**place)
    return f"{2 ** (place - 1) + 1}\N{EN DASH}{2**place}"


def slowdown_by_size(view: PlotRange) -> Canvas:
    """Draw the bounded slowdown of each size class and policy: quartiles, median, mean, 5th and
    95th percentile."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch
    from matplotlib.ticker import FuncFormatter, NullFormatter

    counted = _counted(view)
    classes = np.unique(np.concatenate([size_class(ran.workload.procs) for ran in counted]))
    canvas = Canvas(view, 3.4, "Bounded slowdown by size")
    (axes,) = canvas.axes
    lowest = min(
        _draw_boxes(axes, ran, classes, view.palette, place, len(counted))
        for place, ran in enumerate(counted)
    )
    largest = max(counted, key=len)
    sizes = size_class(largest.workload.procs)
    names = [f"{class_name(one)}\n{np.count_nonzero(sizes == one):,}" for one in classes.tolist()]
    axes.set_xticks(range(len(classes)), names)
    axes.set_xlim(-0.6, len(classes) - 0.4)
    axes.tick_params(axis="x", length=0)
    axes.set_yscale("log")
    axes.set_ylim(0.8 * lowest, None)
    # Plain numbers, between the powers of ten only if there are few of them.
    low, high = axes.get_ylim()
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
    minor = FuncFormatter(lambda value, _: f"{value:,.6g}" if f"{value:e}"[0] in "25" else "")
    axes.yaxis.set_minor_formatter(NullFormatter() if high / low > 100 else minor)
    axes.set_xlabel("Processors / number of jobs")
    axes.set_ylabel("Bounded slowdown")
    keys: list[Any] = [Patch(**_box_look(view.palette, place)) for place in range(len(counted))]
    keys += [
        Line2D([], [], color="black", linewidth=1.2),
        Line2D([], [], color="black", marker="o", ls="", ms=3.5),
    ]
    canvas.legend(axes, (keys, [*(ran.policy for ran in counted), "median", "mean"]))
    canvas.caption(
        "Response over max(run time, 10 s). Boxes: quartiles; whiskers: 5th and 95th percentile."
    )
    return canvas


def _box_look(palette: tuple[str, ...], place: int) -> dict[str, Any]:
    """Return the look of the box of the policy at this place; repeated colours are hatched."""
    hatch = ("", "////", "....", "xxxx")[place // len(palette) % 4]
    return {
        "facecolor": palette[place % len(palette)],
        "edgecolor": "white",
        "hatch": hatch,
        "alpha": 0.45,
        "linewidth": 0,
    }


def _draw_boxes(
    axes: Axes,
    ran: Schedule,
    classes: Int64Array,
    palette: tuple[str, ...],
    place: int,
    policies: int,
) -> float:
    """Draw the boxes of one policy and return the lowest end of a whisker."""
    lowest = 1.0
    times, sizes = job_times(ran), size_class(ran.workload.procs)
    slowdown = bounded_slowdowns(times.response, times.run)
    width = 0.8 / policies
    colour = palette[place % len(palette)]
    for at, one in enumerate(classes.tolist()):
        values = slowdown[sizes == one]
        # A job of no length that never waited has no value on a logarithmic axis.
        values = values[values > 0]
        if not len(values):
            continue
        x = at - 0.4 + (place + 0.5) * width
        low, first, median, third, high = np.percentile(values, [5, 25, 50, 75, 95])
        lowest = min(lowest, float(low))
        half = width * 0.42
        axes.vlines(x, low, high, color=colour, linewidth=0.7)
        axes.bar(x, third - first, half * 2, bottom=first, **_box_look(palette, place))
        axes.hlines(median, x - half, x + half, color=colour, linewidth=1.4)
        axes.plot(
            x,
            values.mean(),
            "o",
            color=colour,
            markersize=3.2,
            markeredgecolor="white",
            markeredgewidth=0.4,
        )
    return lowest


# ------------------------------------------------------------------------------------------------
# estimates


def estimates(view: PlotRange) -> Canvas:
    """Draw the accuracy of estimates, as Feitelson and Weil 1998 do in Fig. 11, for the first
    policy's jobs.

    Left, the percentage of the requested time that the jobs used, in bins of 1 %; right, run time
    against estimate, for requests of up to two hours.
    """
    from matplotlib.ticker import MultipleLocator

    jobs = _counted(view)[0].workload
    jobs = jobs.only(np.flatnonzero(jobs.estimate > 0))
    if not len(jobs):
        raise UsageError(f"{view.name}: no job with an estimate above 0")
    shares = used_percent(jobs)
    canvas = Canvas(view, 3.3, "Estimates and run times", columns=2)
    left, right = canvas.axes
    left.hist(shares, bins=np.arange(0, 102), color=view.palette[0], linewidth=0)
    left.set_xlim(0, 101)
    whole_ticks(left)
    left.xaxis.set_major_locator(MultipleLocator(20))
    left.set_xlabel("Requested time that was used (%)")
    left.set_ylabel("Jobs in a bin of 1 %")
    shown = jobs.only(np.flatnonzero(jobs.estimate <= _LONGEST_REQUEST * MICROSECONDS))
    _draw_scatter(right, shown, view.palette[0])
    exact = np.mean(jobs.run == jobs.estimate)
    text = f"{exact:.1%} of {len(jobs):,} jobs used exactly 100 % of the time they requested."
    canvas.caption(
        f"{text} Right: the {len(shown):,} jobs that requested at most "
        f"{duration_text(_LONGEST_REQUEST)}."
    )
    return canvas


def used_percent(jobs: Workload) -> Floats:
    """Return run time as a percentage of the estimate, rounded down to whole percents: 100 is the
    full time only."""
    return np.minimum(np.floor(jobs.run / jobs.estimate * 100), 100)


def _draw_scatter(axes: Axes, jobs: Workload, colour: str) -> None:
    asked, ran = jobs.estimate / MICROSECONDS / 60, jobs.run / MICROSECONDS / 60
    longest = _LONGEST_REQUEST / 60
    axes.plot([0, longest], [0, longest], color=GREY, linewidth=0.6)
    if len(jobs) > _MANY_JOBS:
        area = (0.0, longest, 0.0, longest)
        drawn = axes.hexbin(
            asked, ran, gridsize=60, bins="log", mincnt=1, cmap="viridis_r", extent=area, lw=0.1
        )
        axes.figure.colorbar(drawn, ax=axes, label="Jobs", shrink=0.8)
    else:
        axes.plot(asked, ran, ".", color=colour, markersize=4, alpha=0.4, markeredgewidth=0)
    axes.set_xlim(0, longest * 1.02)
    axes.set_ylim(0, longest * 1.02)
    axes.set_xticks(range(0, int(longest) + 1, 30))
    axes.set_yticks(range(0, int(longest) + 1, 30))
    axes.set_xlabel("Requested time (min)")
    axes.set_ylabel("Run time (min)")
    axes.set_aspect("equal")
