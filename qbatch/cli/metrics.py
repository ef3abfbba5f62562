"""``qbatch metrics``: the meaning, formula and source of each metric; or the metrics of finished
schedules."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from typing import Annotated

import typer

from qbatch.cli.console import OnlyPolicies, check_choice, print_table, refuse_given, talk
from qbatch.model.errors import UsageError, suggestion

SCHEMA = "qbatch.measured/1"


def metrics(
    metric: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="METRIC|RESULT",
            help=(
                "Metrics to describe; or schedules to measure: DIR or DIR:POLICY, job rows, a "
                "log "
                "with waits."
            ),
        ),
    ] = None,
    policy: OnlyPolicies = None,
    by: Annotated[
        list[str] | None, typer.Option(metavar="KEY", help="Break down by month, user, size, ...")
    ] = None,
    procs: Annotated[
        int | None, typer.Option("--procs", min=1, help="Processors of the machine.")
    ] = None,
    machine: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Also measure resources, partitions and hosts: machine file."
        ),
    ] = None,
    resources: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="What each job asks for (CSV); goes with --machine."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Describe each metric, its formula and its source; or measure finished schedules of one
    log."""
    from qbatch.metrics.table import METRICS

    known = {each.name: each for each in METRICS}
    unknown = [name for name in metric or () if name not in known]
    for name in unknown:
        if "." not in name and not os.path.exists(name.partition(":")[0]):
            raise UsageError(
                f"{name!r} is neither a metric nor a schedule{suggestion(name, known)} (see qbatch "
                "metrics)"
            )
    if metric and unknown:
        _measure(metric, policy or [], by or [], procs, machine, resources, as_json)
        return
    refuse_given(
        "some options are about a schedule: name a result or a log with waits",
        {
            "--policy": policy,
            "--by": by,
            "--procs": procs,
            "--machine": machine,
            "--resources": resources,
        },
    )
    chosen = tuple(known[name] for name in metric) if metric else METRICS
    if as_json:
        document = {"schema": "qbatch.metrics/1", "metrics": [asdict(metric) for metric in chosen]}
        typer.echo(json.dumps(document, indent=2))
    elif (
        sys.stdout.isatty()
    ):  # the meaning, formula and source below each other, so that they fit an ordinary terminal
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        shown = Table(box=None, header_style="bold", pad_edge=False)
        shown.add_column("name", style="bold", no_wrap=True)
        shown.add_column("unit", no_wrap=True)
        shown.add_column("meaning, formula, source")
        for each in chosen:
            meaning = Text(each.meaning)
            meaning.append(f"\n= {each.formula}  ({each.source})", style="dim")
            shown.add_row(each.name, each.unit, meaning)
        Console().print(shown)
    else:
        rows = [
            (metric.name, metric.unit, metric.formula, metric.source, metric.meaning)
            for metric in chosen
        ]
        print_table("", ["name", "unit", "formula", "source", "meaning"], rows, left=5)


def _measure(
    results: list[str],
    policies: list[str],
    by: list[str],
    procs: int | None,
    machine: str | None,
    resources: str | None,
    as_json: bool,
) -> None:
    from qbatch.cli.run_table import print_run
    from qbatch.library.on_hosts import on_site, remarks, resource_facts, side_facts
    from qbatch.library.sides import checks_of
    from qbatch.metrics import BREAKDOWNS
    from qbatch.referee.reading import site_files
    from qbatch.reports.report.study import gather
    from qbatch.reports.report.summary import measured

    for key in by:
        check_choice("--by", key, BREAKDOWNS)
    site = site_files(machine, resources, procs)
    checks = checks_of(results, site)
    study = gather(results, policies=policies, procs=procs, checks=checks)
    if study.has_replicas:
        raise UsageError(
            f"{', '.join(results)}: are of {len(study.replicas)} workloads (logs or seeds); "
            "measure each separately, or "
            "write one qbatch report over them"
        )
    replica = study.first if site is None else on_site(study.first, site)
    document = {"schema": SCHEMA, **measured(replica, by)}
    if site is not None:
        document |= {"resources": side_facts(site, replica.result.schedules)}
        for one, schedule in zip(document["results"], replica.result.schedules, strict=True):
            one |= resource_facts(schedule, site.machine)
        for note in remarks(replica, site):
            talk(f"note: {note}")
    if study.first.result.is_size_guessed:
        talk(
            "note: job rows do not contain the size of the machine, so the most in use at once is "
            "taken; give it with --procs N"
        )
    for note in study.notes:
        talk(f"note: {note.removesuffix('.')}")
    if as_json:
        typer.echo(json.dumps(document, indent=2, allow_nan=False))
    else:
        print_run(document)
