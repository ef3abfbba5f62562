"""A page about a sweep: pictures with intervals, its points, the differences from a baseline, and
its provenance."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from qbatch.distribution import __version__
from qbatch.metrics import METRICS
from qbatch.metrics.interval import SAME
from qbatch.metrics.table import words_of
from qbatch.model.errors import UsageError, suggestion
from qbatch.reports.comparison_words import amount
from qbatch.reports.report.charts import Chart, inline_svg
from qbatch.reports.report.page import environment, listed
from qbatch.reports.sweep_plot import SweepPicture, draw_sweep, same_words, value_text
from qbatch.results.run_words import left_out_notes
from qbatch.sweeps.grid import AXES
from qbatch.sweeps.summary import SHOWN, Mean, Point, PolicyDifference, differences, points
from qbatch.sweeps.table import SweepTable
from qbatch.workloads.log import counted

MOST_POINTS = 500
"""Most points that are printed; the table of runs has them all."""

_NONE = " [\N{EN DASH}]"
"""The text in place of an interval if replicas cannot differ."""

_WIDE = 30
"""The ratio between means above which a picture has a logarithmic scale."""


@dataclass(frozen=True, slots=True)
class SweepWishes:
    """The options of a page: a title, a baseline, the confidence of intervals, and the command to
    show."""

    title: str | None = None
    baseline: str | None = None
    confidence: float = 0.95
    command: tuple[str, ...] = ()


def render_sweep(sweep: SweepTable, wishes: SweepWishes | None = None) -> str:
    """Return the page about a sweep as HTML text.

    Raises:
        UsageError: there is no such baseline, or jinja2 or matplotlib are not installed.
        InputError: no run was done.
    """
    asked = wishes or SweepWishes()
    policies = sweep.document["grid"]["policy"]
    if asked.baseline is not None and asked.baseline not in policies:
        raise UsageError(
            f"--baseline {asked.baseline}: is not in this "
            f"sweep{suggestion(asked.baseline, policies)}; "
            f"it has {', '.join(policies)}"
        )
    found = points(sweep, SHOWN)
    style = (files("qbatch.reports") / "assets" / "report.css").read_text(encoding="utf-8")
    return str(
        environment()
        .get_template("sweep.html.j2")
        .render(**_context(sweep, asked, found), style=style)
    )


def _context(sweep: SweepTable, asked: SweepWishes, found: list[Point]) -> dict[str, Any]:
    grid, document = sweep.document["grid"], sweep.document
    logs = ", ".join(grid["log"])
    axes = [axis for axis in sweep.varying if axis not in ("policy", "seed")]
    baseline = asked.baseline or grid["policy"][0]
    notes = []
    if document["failed"]:
        notes.append(
            f"{document['failed']:,} of {document['runs']:,} runs failed; they are in no mean."
        )
    if document["missing"]:
        notes.append(
            f"{document['missing']:,} of {document['runs']:,} runs were not made yet: the sweep "
            "was interrupted."
        )
    if all(point.replicas == 1 for point in found):
        notes.append(
            "One run per point: there are no intervals, and no difference is called real. "
            "Intervals need replicas."
        )
    if any(point.mean(name).reason for point in found for name in SHOWN):
        notes.append(f"[\N{EN DASH}]: {SAME}.")
    notes += [
        f"{log['name']}: {note}."
        for log in document["logs"]
        for note in left_out_notes({"log": log, "resources": log.get("resources")})
    ]
    title = f"{logs}: {counted(len(grid['policy']), 'policy', 'policies')}"
    return {
        "title": asked.title or title + (f" by {listed(axes)}" if axes else ""),
        "lead": _lead(document, found),
        "notes": notes,
        "charts": [_chart(sweep, name, asked, found, axes) for name in SHOWN],
        "axes": axes,
        "policies": grid["policy"],
        "names": [words_of(name) for name in SHOWN],
        "rows": [_row(point, axes, asked.confidence) for point in found[:MOST_POINTS]],
        "left_out": max(len(found) - MOST_POINTS, 0),
        "baseline": baseline,
        "differences": [
            (words_of(name), [_difference_row(one, axes) for one in several[:MOST_POINTS]])
            for name in SHOWN
            if len(grid["policy"]) > 1
            and (several := differences(found, name, baseline, confidence=asked.confidence))
        ],
        "confidence": f"{asked.confidence * 100:g} %",
        "failures": [
            [*(str(failure[axis]) for axis in (*axes, "seed", "policy")), failure["error"]]
            for failure in document["failures"]
        ],
        "design": [
            (axis, listed([value_text(one) for one in grid[axis]]))
            for axis in AXES
            if len(grid[axis]) > 1
        ],
        "provenance": _provenance(document, asked),
        "definitions": [metric for metric in METRICS if metric.name in SHOWN],
        "version": __version__,
    }


def _lead(document: dict[str, Any], found: list[Point]) -> str:
    counts = sorted({point.replicas for point in found}) or [0]
    several = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    runs, places = counted(document["runs"], "run", "runs"), counted(len(found), "point", "points")
    return f"{runs} at {places}, {several} replica{'' if counts == [1] else 's'} each."


def _chart(
    sweep: SweepTable, name: str, asked: SweepWishes, found: list[Point], axes: list[str]
) -> Chart:
    words = words_of(name)
    across = "load" if "load" in axes or not axes else axes[0]
    # A page has space for one panel: other axes stay at their first value, which the title names.
    where = {axis: [sweep.document["grid"][axis][0]] for axis in axes if axis != across}
    fixed = ", ".join(f"{axis} {value_text(values[0])}" for axis, values in where.items())
    means = [value for point in found if (value := point.mean(name).value) is not None]
    is_wide = bool(means) and min(means) > 0 and max(means) > _WIDE * min(means)
    picture = SweepPicture(
        across,
        name,
        where=where,
        confidence=asked.confidence,
        is_for_page=True,
        is_logarithmic=is_wide,
    )
    figure = draw_sweep(sweep, picture)
    title = f"{words} against {across}{f' ({fixed})' if fixed else ''}"
    svg = inline_svg(
        figure,
        f"chart-{name.replace('_', '-')}",
        title,
        f"{words} of each policy; the numbers are in the table.",
    )
    shown = [
        point
        for point in found
        if all(point.at[axis] == values[0] for axis, values in where.items())
    ]
    texts = [_mean_text(point.mean(name, asked.confidence), name) for point in shown]
    rows = tuple(
        (value_text(one.at[across]), one.at["policy"], mean)
        for one, mean in zip(shown, texts, strict=True)
    )
    return Chart(title, svg, same_words(shown, name, "policy"), (across, "policy", words), rows)


def _row(point: Point, axes: list[str], confidence: float) -> list[str]:
    cells = [_mean_text(point.mean(name, confidence), name) for name in SHOWN]
    return [
        *(value_text(point.at[axis]) for axis in axes),
        point.at["policy"],
        str(point.replicas),
        *cells,
    ]


def _mean_text(mean: Mean, name: str) -> str:
    if mean.value is None:
        return "-"
    unit = next(metric.unit for metric in METRICS if metric.name == name)
    if mean.low is None or mean.high is None:
        return f"{amount(mean.value, unit)}{_NONE if mean.reason else ''}"
    return f"{amount(mean.value, unit)} [{amount(mean.low, unit)}, {amount(mean.high, unit)}]"


def _difference_row(one: PolicyDifference, axes: list[str]) -> list[str]:
    share, bounds = "-", ""
    if one.difference is not None and one.base:
        share = f"{one.difference / one.base:+.1%}"
        if one.reason:
            bounds = _NONE
        elif one.low is not None and one.high is not None:
            bounds = f" [{one.low / one.base:+.1%}, {one.high / one.base:+.1%}]"
    return [
        *(value_text(one.at[axis]) for axis in axes),
        one.policy,
        f"{share}{bounds}",
        one.finding,
    ]


def _provenance(document: dict[str, Any], asked: SweepWishes) -> list[tuple[str, str]]:
    said = [("Program", f"qbatch {document['version']}, source {document['program']}")]
    if document["command"]:
        said.append(("Command of the sweep", shlex.join(document["command"])))
    if asked.command:
        said.append(("Command of this page", shlex.join(asked.command)))
    for log in document["logs"]:
        said.append((f"SHA-256 of {log['name']}", str(log["sha256"] or "generated by its model")))
        if side := log.get("resources"):
            said.append((f"SHA-256 of the side file of {log['name']}", side["sha256"]))
    options = {
        name: document["grid"][name]
        for name in ("first", "warmup", "kill", "closed", "audit", "lenient")
    }
    return [*said, ("Options", ", ".join(f"{name} = {value}" for name, value in options.items()))]
