"""The charts of a report as SVG: small, of one kind, side by side; each with its numbers as a
table, too.

Figures are drawn in placeholder colours (``INK``, ``FAINT``, ``SERIES``) that become CSS variables
in ``inline_svg``, so that one picture suits light and dark mode.  Texts stay texts: readers can
search, copy and hear them.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from qbatch.reports.comparison_words import amount, signed
from qbatch.reports.plot_style import PALETTE, duration_text, plain_log_ticks, plain_text, styled
from qbatch.reports.report.study import ReportStudy
from qbatch.reports.report.summary import Part, Promises, quantities

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#010203"
FAINT = "#010204"
GRID = "#010205"
PAPER = "#010206"
SERIES = tuple(f"#0a0b{place:02x}" for place in range(len(PALETTE)))
"""The placeholders of the series' colours; after the last they repeat, with another line style."""

_VARIABLES = {INK: "--ink", FAINT: "--faint", GRID: "--rule", PAPER: "--paper"} | {
    colour: f"--s{place}" for place, colour in enumerate(SERIES)
}

SIZE = (3.9, 2.65)
"""Width and height of a chart in inches; its texts are readable at a width of 320 pixels."""

STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "qbatch",
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "axes.labelsize": 9.5,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "text.color": INK,
    "axes.labelcolor": FAINT,
    "axes.edgecolor": FAINT,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": FAINT,
    "ytick.labelcolor": FAINT,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.5,
    "path.simplify": True,
}
"""The differences of a page's charts from the style of ``plot_style``."""


def inline_svg(figure: Figure, name: str, title: str, text: str) -> str:
    """Return a figure as an SVG element for a page; ``name`` makes its ids unique, and must be a
    plain word."""
    out = io.StringIO()
    # Texts become texts or outlines when the figure is written, not when it is drawn.
    with styled(STYLE):
        figure.savefig(
            out,
            format="svg",
            metadata={"Date": None, "Creator": None, "Format": None, "Type": None},
        )
    svg = out.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<!--.*?-->", "", svg, flags=re.DOTALL)
    head = re.search(r'viewBox="([^"]*)"', svg)
    assert head is not None  # matplotlib always writes one
    body = svg[svg.index(">") + 1 :]
    body = re.sub(r'\bid="([^"]*)"', rf'id="{name}-\1"', body)
    body = re.sub(r'href="#([^"]*)"', rf'href="#{name}-\1"', body)
    body = re.sub(r"url\(#([^)]*)\)", rf"url(#{name}-\1)", body)
    body = body.replace("xlink:href", "href")
    body = re.sub(r"'DejaVu Sans'(, *[^;\"]*)?", "inherit", body)
    body = re.sub(r"font: (?:[a-z]+ )*([\d.]+px) inherit", r"font-size: \1", body)
    for colour, variable in _VARIABLES.items():
        body = body.replace(colour, f"var({variable})")
    # Round coordinates to a hundredth of a point; texts between the tags, such as the 0.005 of a
    # tick, stay unchanged.
    body = re.sub(r"<[^>]*>", lambda tag: re.sub(r"(\d+\.\d{2})\d+", r"\1", tag[0]), body)
    body = re.sub(r"\n\s*", "\n", body)
    label = (
        f'<title id="{name}-title">{escape(title)}</title><desc '
        f'id="{name}-desc">{escape(text)}</desc>'
    )
    return (
        f'<svg class="chart" viewBox="{head[1]}" role="img" aria-labelledby="{name}-title '
        f'{name}-desc" '
        f'xmlns="http://www.w3.org/2000/svg">{label}{body}'
    )


Floats = NDArray[np.float64]

DASHES: tuple[Any, ...] = (
    "-",
    (0, (5, 1.6)),
    (0, (1.6, 1.2)),
    (0, (6, 1.5, 1.5, 1.5)),
    (0, (9, 2)),
    (0, (3, 1, 1, 1, 1, 1)),
)
"""The line styles of the series, so that no meaning depends on colour alone."""

_LEAST_RATIO = 1e-4
"""The lowest drawn bound of an interval; one over replicas may reach 0."""

MARKERS = ("o", "s", "D", "^", "v", "P", "X")

_MOST_POINTS = 240
_QUANTILES = (10, 25, 50, 75, 90, 95, 99)
_TIMES = (1, 10, 60, 600, 3600, 6 * 3600, 86400, 7 * 86400, 30 * 86400, 365 * 86400)


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart of the page: its SVG, the note below it, and its numbers as a table."""

    title: str
    svg: str
    note: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@contextmanager
def _canvas(height: float = SIZE[1]) -> Iterator[tuple[Figure, Axes]]:
    with styled(STYLE):
        from matplotlib.figure import Figure

        figure = Figure(figsize=(SIZE[0], height), layout="constrained")
        axes = figure.add_subplot()
        axes.tick_params(length=2.5)
        yield figure, axes


def look(place: int) -> dict[str, Any]:
    """Return the colour and line style of the series at this place."""
    return {"color": SERIES[place % len(SERIES)], "linestyle": DASHES[place % len(DASHES)]}


# ------------------------------------------------------------------------------------------------
# distributions


def distribution_charts(study: ReportStudy) -> list[Chart]:
    """Return the cumulated distributions of wait, slowdown and bounded slowdown, one chart each
    with all policies."""
    found = {
        policy: quantities(schedule)
        for policy in study.policies
        if (schedule := study.first.schedule(policy)) is not None
    }
    charts = []
    for key, title, unit in (
        ("wait", "Wait", "s"),
        ("slowdown", "Slowdown", "ratio"),
        ("bounded_slowdown", "Bounded slowdown", "ratio"),
    ):
        values = {
            policy: of_policy[key] for policy, of_policy in found.items() if len(of_policy[key])
        }
        if values:
            charts.append(_cumulated(study, key, title, unit, values))
    return charts


def _cumulated(
    study: ReportStudy, key: str, title: str, unit: str, values: dict[str, Floats]
) -> Chart:
    least = min(float(column[column > 0].min(initial=np.inf)) for column in values.values())
    most = max(float(column.max()) for column in values.values())
    least = max(least, 1.0) if unit == "s" else max(min(least, 1.0), 0.01)
    least = least if np.isfinite(least) else 1.0
    most = max(most, least * 10)
    has_none = unit == "s" and any((column <= 0).any() for column in values.values())
    with _canvas() as (figure, axes):
        low, high = np.log10(least), np.log10(most)
        left = low - (0.1 * (high - low) if has_none else 0.0)
        grid = np.linspace(low, high, _MOST_POINTS)
        for policy, column in values.items():
            ordered = np.sort(column)
            shares = (
                np.searchsorted(ordered, 10**grid * (1 + 1e-12), side="right") / len(ordered) * 100
            )
            at_none = float(np.searchsorted(ordered, 0, side="right")) / len(ordered) * 100
            x, y = (
                (np.append(left, grid), np.append(at_none, shares)) if has_none else (grid, shares)
            )
            axes.step(x, y, where="post", **look(study.policies.index(policy)))
        axes.set_ylim(0, 101)
        axes.set_xlim(left, high)
        axes.set_ylabel("Jobs, cumulated (%)")
        _log_ticks(axes, low, high, unit, left if has_none else None)
        axes.set_xlabel(
            {"wait": "Wait at most", "slowdown": "Slowdown at most"}.get(
                key, "Bounded slowdown at most"
            )
        )
        rows = tuple(
            (
                policy,
                *(
                    amount(float(np.percentile(column, q, method="inverted_cdf")), unit)
                    for q in _QUANTILES
                ),
                amount(float(column.mean()), unit),
            )
            for policy, column in values.items()
        )
        text = "; ".join(
            f"{row[0]}: half of the jobs at most {row[3]}, nine in ten at most {row[5]}"
            for row in rows
        )
        svg = inline_svg(figure, f"chart-{key}", f"{title}, cumulated share of jobs", text)
    note = "Leftmost: no wait." if has_none else ""
    return Chart(title, svg, note, ("Policy", *(f"{q} %" for q in _QUANTILES), "Mean"), rows)


def _log_ticks(axes: Axes, low: float, high: float, unit: str, none_at: float | None) -> None:
    if unit == "s":
        shown = [time for time in _TIMES if low <= np.log10(time) <= high]
        shown = shown[:: max(1, -(-len(shown) // 6))]
        places = [float(np.log10(time)) for time in shown]
        names = [duration_text(time).replace(" ", "") for time in shown]
        if none_at is not None:
            places, names = [none_at, *places], ["0", *names]
    else:
        powers = range(int(np.ceil(low)), int(np.floor(high)) + 1)
        powers = powers[:: max(1, -(-len(powers) // 6))]
        places, names = (
            [float(power) for power in powers],
            [f"{10.0**power:,.10g}" for power in powers],
        )
        names = [name if len(name) < 6 else f"1e{len(name.replace(',', '')) - 1}" for name in names]
    axes.set_xticks(places, names)
    axes.grid(visible=True, axis="x")


# ------------------------------------------------------------------------------------------------
# parts of a run


def part_chart(
    study: ReportStudy, key: str, title: str, parts: Sequence[Part], metric: str
) -> Chart:
    """Return a chart of a metric by part of the run: months as lines, classes as points on a line
    each."""
    from matplotlib.ticker import MaxNLocator

    unit, scale, words = (
        ("s", 3600.0, "Mean wait (h)")
        if metric.endswith("_s")
        else ("ratio", 1.0, "Mean bounded slowdown")
    )
    known = [value for part in parts for value in part.values[metric] if value]
    most = max(known, default=1.0)
    # Values that span so much need a logarithmic axis.
    is_wide = bool(known) and most > 30 * min(known)
    limit = most / scale * (1.5 if is_wide else 1.06)
    columns = [
        [part.values[metric][place] for part in parts] for place in range(len(study.policies))
    ]
    texts = []
    for policy, column in zip(study.policies, columns, strict=True):
        shown = [
            (value, part.label)
            for value, part in zip(column, parts, strict=True)
            if value is not None
        ]
        if shown:
            (low, low_label), (high, high_label) = min(shown), max(shown)
            texts.append(
                f"{policy}: from {amount(low, unit)} ({low_label}) to {amount(high, unit)} "
                f"({high_label})"
            )
    text = "; ".join(texts)
    scaled = [
        np.array([np.nan if value is None else value / scale for value in column])
        for column in columns
    ]
    policies = len(study.policies)
    is_over_months = key == "month" and len(parts) > 1
    height = (
        SIZE[1] if is_over_months else max(SIZE[1], 0.9 + max(0.24, 0.1 * policies) * len(parts))
    )
    with _canvas(height) as (figure, axes):
        if is_over_months:
            for place, values in enumerate(scaled):
                axes.plot(
                    range(len(parts)),
                    values,
                    marker=MARKERS[place % len(MARKERS)],
                    markersize=3,
                    **look(place),
                )
            if is_wide:
                axes.set_yscale("symlog", linthresh=0.1)
            axes.set_ylim(0, limit)
            places = range(0, len(parts), max(1, -(-len(parts) // 5)))
            axes.set_xticks(list(places), [parts[place].label for place in places])
            axes.set_ylabel(words)
            _plain_numbers(axes.yaxis)
            heading, text = f"{words} by month", f"{title}. {text}"
        else:
            lines = np.arange(len(parts))[::-1]
            for place, values in enumerate(scaled):
                offset = (policies - 1) / 2 - place
                axes.plot(
                    values,
                    lines + offset * 0.7 / policies,
                    linestyle="",
                    marker=MARKERS[place % len(MARKERS)],
                    markersize=4,
                    color=SERIES[place % len(SERIES)],
                )
            for line in lines[:-1]:
                axes.axhline(line - 0.5, color=GRID, linewidth=0.6)
            if is_wide:
                axes.set_xscale("symlog", linthresh=0.1)
            else:
                axes.xaxis.set_major_locator(MaxNLocator(5))
            axes.set_xlim(0, limit)
            _on_lines(axes, [part.label for part in parts], lines)
            axes.set_xlabel(words)
            _plain_numbers(axes.xaxis)
            heading = f"{words}, {title.lower()}"
        svg = inline_svg(figure, f"chart-{key}-{metric}", heading, text)
    return Chart(title, svg, "", *part_table(study, key, parts))


def _on_lines(axes: Axes, labels: Sequence[str], lines: Any) -> None:
    """Label a chart that has a line for each of several things, from the top."""
    axes.set_yticks(lines, labels)
    axes.set_ylim(-0.6, len(labels) - 0.4)
    axes.grid(visible=False, axis="y")
    axes.grid(visible=True, axis="x")
    axes.tick_params(axis="y", length=0)


def part_table(
    study: ReportStudy, key: str, parts: Sequence[Part]
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Return the headings and rows of the parts: jobs, then for each policy mean wait and mean
    bounded slowdown."""
    headings = [key.capitalize(), "Jobs"]
    for policy in study.policies:
        headings += [f"{policy}: mean wait", f"{policy}: mean bounded slowdown"]
    rows = []
    for part in parts:
        cells = [part.label, f"{part.jobs:,}"]
        for place in range(len(study.policies)):
            cells += [
                amount(part.values["wait_mean_s"][place], "s"),
                amount(part.values["bounded_slowdown_mean"][place], "ratio"),
            ]
        rows.append(tuple(cells))
    return tuple(headings), tuple(rows)


def _plain_numbers(axis: Any) -> None:
    from matplotlib.ticker import FuncFormatter, NullLocator

    if axis.get_scale() == "symlog":
        low, high = axis.get_view_interval()
        powers = [power for power in range(-1, 12) if 10.0**power <= high]
        powers = powers[:: max(1, -(-len(powers) // 5))]
        axis.set_ticks([low, *(10.0**power for power in powers)])
        axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))


# ------------------------------------------------------------------------------------------------
# promises, differences


def promise_chart(found: Sequence[Promises]) -> Chart:
    """Return the shares of promises kept, moved earlier and broken, one bar per policy."""
    shown = [one for one in found if one.promised]
    with _canvas(0.75 + 0.42 * len(shown)) as (figure, axes):
        lines = np.arange(len(shown))[::-1]
        left = np.zeros(len(shown))
        for place, key in ((0, "kept"), (5, "earlier"), (1, "broken")):
            share = np.array([getattr(one, key) / one.promised * 100 for one in shown])
            axes.barh(
                lines, share, 0.55, left=left, color=SERIES[place], edgecolor=PAPER, linewidth=0.8
            )
            left += share
        axes.set_yticks(lines, [plain_text(one.policy) for one in shown])
        axes.set_ylim(-0.6, len(shown) - 0.4)
        axes.set_xlim(0, 100)
        axes.grid(visible=False)
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel("Jobs that were promised a start (%)")
        text = "; ".join(
            f"{one.policy}: {one.kept:,} kept, {one.earlier:,} earlier, {one.broken:,} broken"
            for one in shown
        )
        svg = inline_svg(figure, "chart-promises", "Promises kept, moved earlier, broken", text)
    rows = tuple(
        (
            one.policy,
            f"{one.promised:,}",
            *(
                f"{count:,} ({count / one.promised:.1%})"
                for count in (one.kept, one.earlier, one.broken)
            ),
            amount(one.gain_mean_s, "s"),
        )
        for one in shown
    )
    headings = (
        "Policy",
        "Promised",
        "Kept as first given",
        "Moved earlier",
        "Broken",
        "Mean gain on the first promise",
    )
    return Chart("Promises of a start", svg, "", headings, rows)


def difference_chart(documents: Sequence[dict[str, Any]], places: Sequence[int]) -> Chart:
    """Return the mean waits divided by the baseline's, for all jobs and each class, with intervals,
    on a scale of ratios.

    One half is as far to the left of 1 as two is to the right, so that no policy looks better for
    being the baseline.
    """
    labels = [
        "all jobs",
        *dict.fromkeys(r["label"] for one in documents for r in one["parts"].get("class", [])),
    ]
    with _canvas(0.9 + max(0.3, 0.13 * len(documents)) * len(labels)) as (figure, axes):
        lines = {label: len(labels) - 1 - at for at, label in enumerate(labels)}
        axes.set_xscale("log")
        axes.axvline(1, color=INK, linewidth=0.8)
        texts, rows, has_interval = [], [], False
        for order, (document, place) in enumerate(zip(documents, places, strict=True)):
            offset = ((len(documents) - 1) / 2 - order) * 0.6 / len(documents)
            for label, record in _waits(document):
                if not record["ratio"]:
                    continue
                line, colour = lines[label] + offset, SERIES[place % len(SERIES)]
                axes.plot(
                    record["ratio"],
                    line,
                    marker=MARKERS[place % len(MARKERS)],
                    markersize=4.5,
                    color=colour,
                )
                interval = "\N{EN DASH}"
                if record["low"] is not None and record["high"] is not None:
                    low, high = (1 + record[key] / record["a"] for key in ("low", "high"))
                    axes.hlines(
                        line,
                        max(low, min(_LEAST_RATIO, record["ratio"])),
                        high,
                        color=colour,
                        linewidth=1.6,
                    )
                    interval, has_interval = (
                        f"{signed(record['low'], 's')} to {signed(record['high'], 's')}",
                        True,
                    )
                texts.append(f"{document['b']['label']}, {label}: {record['ratio']:.2g}")
                rows.append(
                    (
                        document["b"]["label"],
                        label,
                        f"{record.get('jobs', 0):,}",
                        amount(record["a"], "s"),
                        amount(record["b"], "s"),
                        f"{record['ratio']:.3g}",
                        signed(record["difference"], "s"),
                        interval,
                        record["finding"],
                    )
                )
        _on_lines(axes, labels, list(lines.values()))
        plain_log_ticks(axes.xaxis)
        axes.set_xlabel(
            plain_text(f"Mean wait, divided by that of {documents[0]['a']['label']}"), color=FAINT
        )
        svg = inline_svg(
            figure, "chart-difference", "Mean wait, divided by the baseline's", "; ".join(texts)
        )
    headings = (
        "Policy",
        "Jobs of",
        "Number",
        "Baseline",
        "Policy's",
        "Ratio",
        "Difference",
        "Interval",
        "Finding",
    )
    note = (
        "Left of 1 is lower; a line across 1 is noise." if has_interval else "Left of 1 is lower."
    )
    return Chart("Mean wait against the baseline", svg, note, headings, tuple(rows))


def _waits(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    yield (
        "all jobs",
        next(record for record in document["metrics"] if record["name"] == "wait_mean_s"),
    )
    for record in document["parts"].get("class", []):
        if record["name"] == "wait_mean_s":
            yield record["label"], record
