"""Pictures over time: the processors in use, the number of waiting jobs and their requested
processors.

A value over time is a step function.  A short window shows it directly; a long one shows its mean
over each hour, day or week (24 hours each, from the log's midnight), because months of steps would
be a black block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from qbatch.model.record import Int64Array, Schedule
from qbatch.reports import plot_style
from qbatch.reports.plot_style import DAY, GREY, HOUR, Canvas, PlotRange, TimeAxis

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_BINS = 510
_MOST_BINS_OF_SEVERAL = 120
_SAMPLES = 48
_BAND_POLICIES = 2


@dataclass(frozen=True, slots=True)
class Steps:
    """A step function: ``values[i]`` from ``at[i]`` to before ``at[i + 1]``, and 0 before all."""

    at: Int64Array
    values: Int64Array

    def value(self, times: NDArray[Any]) -> Int64Array:
        """Return the values at some instants."""
        places = np.searchsorted(self.at, times, side="right") - 1
        return np.where(places >= 0, self.values[np.maximum(places, 0)], 0)

    def within(self, begin: int, end: int) -> Steps:
        """Return the same function between two instants, with a step at the first and the last."""
        inside = self.at[(self.at > begin) & (self.at < end)]
        at = np.concatenate([[begin], inside, [end]]).astype(np.int64)
        return Steps(at, self.value(at))

    def means(self, edges: Int64Array) -> NDArray[np.float64]:
        """Return the exact mean between each two neighbouring edges."""
        part = self.within(int(edges[0]), int(edges[-1]))
        at = (part.at - edges[0]).astype(np.float64)
        area = np.concatenate([[0.0], np.cumsum(part.values[:-1] * np.diff(at))])
        return np.asarray(np.diff(np.interp(edges - edges[0], at, area)) / np.diff(edges))


def steps(begin: Int64Array, end: Int64Array, weight: Int64Array) -> Steps:
    """Return, over time, the sum of the weights of the half-open spans that contain each
    instant."""
    at, place = np.unique(np.concatenate([begin, end]), return_inverse=True)
    change = np.bincount(place, weights=np.concatenate([weight, -weight]), minlength=len(at))
    return Steps(at, np.cumsum(np.rint(change).astype(np.int64)))


def used_procs(schedule: Schedule) -> Steps:
    """Return the processors in use over time; a job with unknown execution intervals holds its own
    from start to end."""
    spans = schedule.spans()
    return steps(spans.begin, spans.end, spans.procs)


def waiting(schedule: Schedule, *, in_procs: bool = False) -> Steps:
    """Return the number of jobs in the queue over time, or of the processors that they request."""
    waits = schedule.queue_spans()
    return steps(
        waits.begin, waits.end, waits.procs if in_procs else np.ones(len(waits.begin), np.int64)
    )


def bin_edges(view: PlotRange, most: int = _MOST_BINS) -> tuple[Int64Array, str] | None:
    """Return the edges and the name of at most ``most`` bins for the means of a long view; None for
    a short view."""
    if view.span <= 4 * DAY:
        return None
    sizes = ((HOUR, "hour"), (DAY, "day"), (7 * DAY, "week"), (28 * DAY, "4 weeks"))
    size, name = next((one for one in sizes if view.span <= most * one[0]), sizes[-1])
    inner = np.arange(plot_style.midnight_before(view), view.end, size, dtype=np.int64)
    inner = inner[inner > view.begin]
    return np.concatenate([[view.begin], inner, [view.end]]).astype(np.int64), name


def utilisation(view: PlotRange) -> Canvas:
    """Draw the processors in use over time, one line per policy."""
    canvas = Canvas(view, 2.9, "Processors in use")
    (axes,) = canvas.axes
    few = len(view.schedules) <= _BAND_POLICIES
    most = _MOST_BINS if len(view.schedules) == 1 else _MOST_BINS_OF_SEVERAL
    note = _draw(view, axes, [used_procs(ran) for ran in view.schedules], most=most, has_band=few)
    axes.axhline(
        view.procs_total, color=GREY, linewidth=0.8, linestyle=(0, (4, 3)), label="machine"
    )
    axes.set_ylim(0, None)
    axes.set_ylabel("Processors in use")
    total = view.procs_total
    per_cent: Any = (lambda used: used / total * 100, lambda part: part / 100 * total)
    share = axes.secondary_yaxis("right", functions=per_cent)
    share.set_ylabel("Share of the machine (%)")
    TimeAxis(view).label(axes)
    canvas.legend(axes)
    means = []
    for ran in view.schedules:
        # Up to the last end shown: the slowest policy's, when all have done the same work.
        last = min(view.begin + view.span, int(ran.end.max(initial=view.begin)))
        mean = used_procs(ran).means(np.array([view.begin, max(last, view.begin + 1)]))[0] / total
        means.append(f"{ran.policy} {mean:.1%}")
    note += "Suspended jobs count as running. " if view.has_suspended else ""
    canvas.caption(f"{note}Mean of each until its last job ends: {', '.join(means)}.")
    return canvas


def queue(view: PlotRange) -> Canvas:
    """Draw the number of waiting jobs, and of the processors that they request, over time."""
    canvas = Canvas(view, 4.2, "Waiting jobs", rows=2)
    upper, lower = canvas.axes
    note = _draw(view, upper, [waiting(ran) for ran in view.schedules])
    _draw(view, lower, [waiting(ran, in_procs=True) for ran in view.schedules])
    lower.axhline(
        view.procs_total, color=GREY, linewidth=0.8, linestyle=(0, (4, 3)), label="machine"
    )
    upper.set_ylabel("Jobs waiting")
    lower.set_ylabel("Processors requested\nby waiting jobs")
    for axes in (upper, lower):
        axes.set_ylim(0, None)
        plot_style.whole_ticks(axes)
    TimeAxis(view).label(lower)
    canvas.legend(lower)
    longest = [
        f"{ran.policy} {waiting(ran).within(view.begin, view.end).values.max():,}"
        for ran in view.schedules
    ]
    canvas.caption(f"{note}Most that a pass left waiting: {', '.join(longest)}.")
    return canvas


def _draw(
    view: PlotRange,
    axes: Axes,
    series: list[Steps],
    *,
    most: int = _MOST_BINS,
    has_band: bool = False,
) -> str:
    """Draw one step function per policy, directly or in bins; return the caption's words about
    it."""
    axis = TimeAxis(view)
    bins = bin_edges(view, most)
    for place, (ran, line) in enumerate(zip(view.schedules, series, strict=True)):
        look = plot_style.policy_look(place, is_grey=view.is_grey)
        if bins is None:
            part = line.within(view.begin, view.begin + view.span)
            axes.step(axis.numbers(part.at), part.values, where="post", label=ran.policy, **look)
            continue
        edges = bins[0]
        at = axis.numbers(edges)
        if has_band:
            # The 10th and the 90th percentile of the function in each bin, at evenly spaced
            # instants.
            parts = (np.arange(_SAMPLES) + 0.5) / _SAMPLES
            times = edges[:-1, None] + (np.diff(edges)[:, None] * parts).astype(np.int64)
            low, high = np.percentile(
                line.value(times.ravel()).reshape(times.shape), [10, 90], axis=1
            )
            axes.fill_between(
                at,
                _held(low),
                _held(high),
                step="post",
                alpha=0.18,
                color=look["color"],
                linewidth=0,
            )
        axes.step(at, _held(line.means(edges)), where="post", label=ran.policy, **look)
    if bins is None:
        return ""
    return (
        "Lines: mean of each "
        f"{bins[1]}{'; bands: 10th to 90th percentile of its time' if has_band else ''}. "
    )


def _held(values: NDArray[Any]) -> NDArray[Any]:
    return np.append(values, values[-1])
