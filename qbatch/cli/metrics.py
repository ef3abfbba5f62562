"""``qbatch metrics``: the meaning, formula and source of each metric; or the metrics of finished schedules."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from qbatch.cli.console import talk
from qbatch.model.errors import UsageError, suggestion

if TYPE_CHECKING:
    from qbatch.metrics.table import Metric

SCHEMA = "qbatch.measured/1"


def metrics(
    metric: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="METRIC|RESULT",
            help="Metrics to describe; or schedules to measure: DIR or DIR:POLICY, job rows, a log with waits.",
        ),
    ] = None,
    policy: Annotated[
        list[str] | None, typer.Option("--policy", "-p", help="Only this policy; may be repeated.")
    ] = None,
    by: Annotated[list[str] | None, typer.Option(metavar="KEY", help="Break down by month, user, size, ...")] = None,
    procs: Annotated[int | None, typer.Option("--procs", min=1, help="Processors of the machine.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Describe each metric, its formula and its source; or measure finished schedules of one log."""
    from qbatch.metrics.table import METRICS

    known = {each.name: each for each in METRICS}
    unknown = [name for name in metric or () if name not in known]
    for name in unknown:
        if "." not in name and not os.path.exists(name.partition(":")[0]):
            raise UsageError(
                f"{name!r} is neither a metric nor a schedule{suggestion(name, known)} (see qbatch metrics)"
            )
    if metric and unknown:
        _measure(metric, policy or [], by or [], procs, as_json)
        return
    if policy or by or procs:
        raise UsageError("--policy, --by and --procs are about a schedule: name a result or a log with waits")
    chosen = tuple(known[name] for name in metric) if metric else METRICS
    if as_json:
        document = {"schema": "qbatch.metrics/1", "metrics": [asdict(metric) for metric in chosen]}
        typer.echo(json.dumps(document, indent=2))
    elif sys.stdout.isatty():
        _print_rich_table(chosen)
    else:
        _print_plain_table(chosen)


def _measure(results: list[str], policies: list[str], by: list[str], procs: int | None, as_json: bool) -> None:
    from qbatch.cli.run_table import print_run
    from qbatch.metrics import BREAKDOWNS
    from qbatch.reports.report.study import gather
    from qbatch.reports.report.summary import measured

    for key in by:
        if key not in BREAKDOWNS:
            raise UsageError(f"--by {key!r}: use one of {', '.join(BREAKDOWNS)}{suggestion(key, BREAKDOWNS)}")
    study = gather(results, policies=policies, procs=procs)
    if study.has_replicas:
        raise UsageError(
            f"{', '.join(results)}: are of {len(study.replicas)} workloads (logs or seeds); measure each separately, or "
            "write one qbatch report over them"
        )
    document = {"schema": SCHEMA, **measured(study.first, by)}
    if study.first.result.is_size_guessed:
        talk(
            "note: job rows do not contain the size of the machine, so the most in use at once is taken; give it with --procs N"
        )
    for note in study.notes:
        talk(f"note: {note.removesuffix('.')}")
    if as_json:
        typer.echo(json.dumps(document, indent=2, allow_nan=False))
    else:
        print_run(document)


def _print_plain_table(table: tuple[Metric, ...]) -> None:
    rows = [("name", "unit", "formula", "source", "meaning")]
    rows += [(metric.name, metric.unit, metric.formula, metric.source, metric.meaning) for metric in table]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        typer.echo("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())


def _print_rich_table(table: tuple[Metric, ...]) -> None:
    """Print each metric with its meaning, its formula and its source below, so that it fits an ordinary terminal."""
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
