"""The common parts of the pictures of papers: titles, bars and lines of means with 95 % intervals,
legends and captions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qbatch.metrics import interval
from qbatch.model.record import LogClock
from qbatch.papers.record import half
from qbatch.papers.replicas import Values, listed
from qbatch.reports.plot_style import PALETTE, PlotRange, caption, legend_outside, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 0.8
"""The share of the width of one place that its bars fill together."""


def new_picture(height: float, title: str, name: str | None = None) -> Figure:
    """Return an empty picture of this height in inches; ``name`` follows the title."""
    return new_figure(
        PlotRange(name or "", (), 1, LogClock(), 0, 1, None if name else title), height, title
    )


def shift(place: int, count: int, width: float = WIDTH) -> float:
    """Return the distance of one of several bars or points from the middle of its place."""
    return (place - (count - 1) / 2) * width / count


def bars(
    axes: Axes,
    at: ArrayLike,
    values: Sequence[Values | Sequence[float]],
    place: int,
    count: int,
    label: str,
) -> None:
    """Draw the bars of one of ``count`` series, with the intervals of bars of several values; a bar
    without values is left out.

    ``at``: the middles of the places.  ``values``: for each bar, the values of the replicas.
    """
    found = [interval(listed(each)) for each in values]
    means, halves = [one.mean or 0.0 for one in found], [half(one) or 0.0 for one in found]
    where: NDArray[Any] = np.asarray(at) + shift(place, count)
    axes.bar(where, means, WIDTH / count * 0.9, color=PALETTE[place % len(PALETTE)], label=label)
    if any(halves):
        axes.errorbar(where, means, halves, fmt="none", ecolor="#333333", elinewidth=0.6)


def curve(
    axes: Axes,
    at: Sequence[float | None],
    values: Sequence[Values | Sequence[float]],
    factor: float = 1.0,
    *,
    has_bars: bool = True,
    **look: Any,
) -> None:
    """Draw a line through means, each times a factor, with their intervals; a place without values
    is left out."""
    each = [(place, interval(listed(one))) for place, one in zip(at, values, strict=True)]
    found = [(place, one) for place, one in each if one.mean is not None]
    where = [place for place, _ in found if place is not None]
    means = [factor * (one.mean or 0.0) for _, one in found]
    halves = [factor * (half(one) or 0.0) for _, one in found]
    axes.errorbar(where, means, halves if has_bars else None, capsize=1.5, elinewidth=0.6, **look)


def finished(figure: Figure, text: str) -> Figure:
    """Return a picture with the legend of its first panel and a caption."""
    legend_outside(figure, figure.axes[0])
    caption(figure, text)
    return figure
