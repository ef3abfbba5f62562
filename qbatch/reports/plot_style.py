"""The style of every picture: fonts, colours, the time axis, legends and captions, and the writing
of a file.

Pictures are drawn without pyplot and without the user's matplotlibrc, so that the same result gives
the same bytes anywhere with the same version of matplotlib.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from qbatch.distribution import install_command
from qbatch.model.errors import UsageError
from qbatch.model.record import MICROSECONDS, LogClock, Schedule
from qbatch.results.output import whole_file
from qbatch.results.run_words import title_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from qbatch.reports.host_use import HostMap

SUFFIXES = (".png", ".svg", ".pdf")
"""The file formats of pictures."""

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Colours that colour-blind readers can distinguish (Okabe and Ito), without their yellow, which is
faint on white."""

LINE_STYLES = ("-", "--", ":", "-.")

_LEGEND_LETTERS = 24
GREY = "#666666"
WIDTH, ONE_COLUMN = 7.2, 3.5
"""The width of a picture in inches: two columns of a journal, and one."""

GREYS = ("0.0", "0.5", "0.25", "0.65", "0.4", "0.75", "0.15")
"""The colours of a picture in grey; lines differ in their style, too."""

HOUR = 3600 * MICROSECONDS
DAY = 24 * HOUR

_STYLE: dict[str, Any] = {
    "figure.dpi": 200,
    "savefig.dpi": 200,
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.titlelocation": "left",
    "axes.labelsize": 8,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.linewidth": 0.4,
    "grid.color": "#DDDDDD",
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "lines.linewidth": 1.1,
    "hatch.linewidth": 0.5,
    "pdf.fonttype": 42,
    "svg.hashsalt": "qbatch",
    "path.simplify": True,
}


@dataclass(frozen=True, slots=True)
class PlotRange:
    """The contents of a picture: the jobs that ran under these policies on this machine, from
    ``begin`` to before ``end``.

    ``host_map``: what a map of hosts shows, if a machine file says it.
    ``axes``: where to draw, instead of in a new figure, which is one or two ``columns`` of a
    journal wide.
    """

    name: str
    schedules: tuple[Schedule, ...]
    procs_total: int
    clock: LogClock
    begin: int
    end: int
    title: str | None = None
    colour_by: str = "size"
    host_cpus: tuple[int, ...] = ()
    host_names: tuple[str, ...] = ()
    axes: tuple[Axes, ...] = ()
    columns: int = 2
    is_grey: bool = False
    host_map: HostMap | None = None

    @property
    def palette(self) -> tuple[str, ...]:
        """The colours of the policies."""
        return GREYS if self.is_grey else PALETTE

    @property
    def span(self) -> int:
        """The length of the shown time, at least one second."""
        return max(self.end - self.begin, MICROSECONDS)

    @property
    def has_suspended(self) -> bool:
        """Whether a job took longer from start to end than it ran, with unknown execution
        intervals."""
        return any(
            ran.pieces is None and bool((ran.end - ran.start > ran.workload.run).any())
            for ran in self.schedules
        )

    def counted(self, ran: Schedule) -> Schedule:
        """Return the jobs for statistics: submitted in the window, without the warm-up."""
        submit = ran.workload.submit
        return ran.only(ran.workload.counted & (submit >= self.begin) & (submit < self.end))


@contextmanager
def styled(changes: Mapping[str, Any] | None = None) -> Iterator[None]:
    """Draw in qbatch's style, with some changes to it, whatever the user's own settings are.

    Raises:
        UsageError: matplotlib is not installed.
    """
    try:
        import matplotlib.style
    except ImportError as error:
        raise UsageError(f"drawing needs matplotlib: {install_command('report')}") from error
    with matplotlib.style.context(["default", {**_STYLE, **(changes or {})}]):
        yield


def write_figure(figure: Figure, path: str | Path) -> None:
    """Write a picture, completely or not at all, in the format of its suffix.

    Raises:
        UsageError: the suffix is none of ``SUFFIXES``.
        OutputError: the file cannot be written.
    """
    form = checked_suffix(path)[1:]
    silent = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
    with styled(), whole_file(path) as out:
        figure.savefig(out, format=form, metadata=silent[form])


def checked_suffix(path: str | Path) -> str:
    """Return the suffix of a picture's name in lower case; refuse an unknown one."""
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise UsageError(f"{path}: a picture ends in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}")
    return suffix


def new_figure(view: PlotRange, height: float, title: str) -> Figure:
    """Return an empty figure of the usual width with a title: the view's own, else this one."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    width = WIDTH if view.columns == 2 else ONE_COLUMN
    figure = Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(w_pad=0.06, h_pad=0.05))
    text = plain_text(view.title or f"{title}: {title_name(view.name)}")
    figure.suptitle(
        text if view.columns == 2 else fill(text, 48),
        x=0.01,
        ha="left",
        fontsize=10 if view.columns == 2 else 8,
    )
    return figure


def plain_text(text: str) -> str:
    """Return a text that matplotlib prints unchanged: ``$`` begins no formula."""
    return text.replace("$", r"\$")


class Canvas:
    """The place of a picture: a figure of its own with a title, a caption and a legend outside, or
    the caller's axes.

    Args:
        height: of the figure, inches.
        title: of the figure; axes of the caller get none.
        rows, columns: panels, which share their horizontal axis if they stand above each other.

    Raises:
        UsageError: the caller has given another number of axes than there are panels.
    """

    def __init__(
        self, view: PlotRange, height: float, title: str, rows: int = 1, columns: int = 1
    ) -> None:
        self.axes: list[Any] = list(view.axes)
        self.figure: Figure | None = None
        if not self.axes:
            self.figure = new_figure(view, height, title)
            self.axes = list(
                self.figure.subplots(rows, columns, squeeze=False, sharex=columns == 1).flat
            )
        elif len(self.axes) != rows * columns:
            raise UsageError(
                f"ax: this picture has {rows * columns} panels, not {len(self.axes)}; give a list "
                "of as many axes"
            )

    def legend(
        self, axes: Axes, keys: tuple[list[Any], list[str]] | None = None, **look: Any
    ) -> None:
        """Add the legend of these axes, or other handles and labels: outside of the figure, or
        inside the caller's axes."""
        handles, labels = keys or axes.get_legend_handles_labels()
        if not handles:
            return
        texts = [legend_text(label) for label in labels]
        if self.figure is None:
            axes.legend(handles, texts, **look)
        else:
            self.figure.legend(handles, texts, loc="outside right upper", **look)

    def caption(self, text: str) -> None:
        """Write the caption below a figure; the caller's axes get none."""
        if self.figure is not None:
            caption(self.figure, text)


def policy_look(place: int, *, is_grey: bool = False) -> dict[str, Any]:
    """Return the colour and the line style of the policy at this place."""
    if is_grey:
        return {
            "color": GREYS[place % len(GREYS)],
            "linestyle": LINE_STYLES[place % len(LINE_STYLES)],
        }
    return {
        "color": PALETTE[place % len(PALETTE)],
        "linestyle": LINE_STYLES[place // len(PALETTE) % len(LINE_STYLES)],
    }


def legend_outside(figure: Figure, axes: Axes) -> None:
    """Put the legend of these axes to the right of the figure, where it hides no data."""
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        figure.legend(handles, [legend_text(label) for label in labels], loc="outside right upper")


def legend_text(label: str) -> str:
    """Return a label in lines short enough to leave space for the data, broken after a comma or a
    colon."""
    lines = [""]
    for part in re.split(r"(?<=[,:])", label):
        if lines[-1] and len(lines[-1]) + len(part) > _LEGEND_LETTERS:
            lines.append("")
        lines[-1] += part
    return plain_text("\n".join(fill(line, _LEGEND_LETTERS) for line in lines))


def caption(figure: Figure, text: str) -> None:
    """Write one or two small grey lines below the picture."""
    letters = 125 if figure.get_figwidth() > ONE_COLUMN else 60
    figure.supxlabel(plain_text(fill(text, letters)), x=0.01, ha="left", fontsize=7, color=GREY)


def plain_log_ticks(axis: Any) -> None:
    """Write plain numbers on a logarithmic axis: 10 and 100, and between them 20 and 50 if few
    powers of ten are in view."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    subs = (1.0,) if high >= 1000 * low else (1.0, 2.0, 5.0)
    axis.set_major_locator(LogLocator(subs=subs, numticks=12))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
    axis.set_minor_formatter(NullFormatter())


def whole_ticks(axes: Axes) -> None:
    """Put vertical ticks on whole numbers only."""
    from matplotlib.ticker import MaxNLocator

    axes.yaxis.set_major_locator(MaxNLocator(nbins="auto", integer=True))


def zone_of(clock: LogClock) -> tzinfo:
    """Return the zone of a clock; UTC if it names no known zone."""
    try:
        return ZoneInfo(clock.zone or "UTC")
    except (ValueError, OSError, LookupError):
        return UTC


class TimeAxis:
    """Log time as numbers for the horizontal axis: dates if the clock is known, else hours or days
    of log time."""

    def __init__(self, view: PlotRange) -> None:
        self.clock, self.view = view.clock, view
        self.unit, self.word = (DAY, "days") if view.span > 4 * DAY else (HOUR, "hours")
        if view.span <= 3 * HOUR:
            self.unit, self.word = 60 * MICROSECONDS, "minutes"

    def numbers(self, times: NDArray[Any] | int) -> NDArray[np.float64]:
        """Return instants as places on the axis."""
        array = np.asarray(times, np.float64)
        if self.clock.unix_start is not None:
            return np.asarray((array / MICROSECONDS + self.clock.unix_start) / 86400)
        return np.asarray(array / self.unit)

    def label(self, axes: Axes) -> None:
        """Set limits, ticks and the label of the axis."""
        import matplotlib.dates

        dates: Any = matplotlib.dates
        begin, end = self.numbers(self.view.begin), self.numbers(self.view.begin + self.view.span)
        axes.set_xlim(float(begin), float(end))
        if self.clock.unix_start is None:
            axes.set_xlabel(f"Time of the log ({self.word})")
            return
        zone = zone_of(self.clock)
        locator = dates.AutoDateLocator(tz=zone, minticks=4, maxticks=9)
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator, tz=zone))
        axes.set_xlabel(f"Date ({zone})" if self.view.span > 4 * DAY else f"Time ({zone})")


def midnight_before(view: PlotRange) -> int:
    """Return the last midnight up to the view's begin, in the log's zone, or in log time if the log
    has no clock."""
    start = view.clock.unix_start
    if start is None:
        return view.begin // DAY * DAY
    zone = zone_of(view.clock)
    local = datetime.fromtimestamp(start + view.begin // MICROSECONDS, zone)
    midnight = local.replace(hour=0, minute=0, second=0, microsecond=0)
    return (int(midnight.timestamp()) - start) * MICROSECONDS


def duration_text(seconds: float) -> str:
    """Return a length of time in a suitable unit."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"
