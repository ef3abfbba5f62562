"""``qbatch metrics``: what each metric means, its formula and its source."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from qbatch.model.errors import UsageError, suggestion

if TYPE_CHECKING:
    from qbatch.metrics.table import Metric

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def metrics(
    metric: Annotated[list[str] | None, typer.Argument(metavar="METRIC", help="Only these metrics.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Tell what each metric means, how it is computed and where it comes from."""
    from qbatch.metrics.table import METRICS

    known = {each.name: each for each in METRICS}
    for name in metric or ():
        if name not in known:
            raise UsageError(f"there is no metric {name!r}{suggestion(name, known)} (see qbatch metrics)")
    chosen = tuple(known[name] for name in metric) if metric else METRICS
    if as_json:
        document = {"schema": "qbatch.metrics/1", "metrics": [asdict(metric) for metric in chosen]}
        typer.echo(json.dumps(document, indent=2))
    elif sys.stdout.isatty():
        _print_rich_table(chosen)
    else:
        _print_plain_table(chosen)


def _print_plain_table(table: tuple[Metric, ...]) -> None:
    rows = [("name", "unit", "formula", "source", "meaning")]
    rows += [(metric.name, metric.unit, metric.formula, metric.source, metric.meaning) for metric in table]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        typer.echo("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())


def _print_rich_table(table: tuple[Metric, ...]) -> None:
    """Print a line a metric, its formula and source under its meaning: so it fits an ordinary terminal."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None, header_style="bold", pad_edge=False)
    shown.add_column("name", style="bold", no_wrap=True)
    shown.add_column("unit", no_wrap=True)
    shown.add_column("meaning, formula, source")
    for metric in table:
        meaning = Text(metric.meaning)
        meaning.append(f"\n= {metric.formula}  ({metric.source})", style="dim")
        shown.add_row(metric.name, metric.unit, meaning)
    Console().print(shown)
