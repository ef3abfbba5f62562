"""The table of a run: each metric of each policy, the breakdowns that were asked for, and under them what was run."""

from __future__ import annotations

from typing import Any

import typer

from qbatch.cli.console import print_table
from qbatch.results.run_words import number_text

_SHOWN = ("wait_mean_s", "wait_p95_s", "slowdown_mean", "bounded_slowdown_mean")


def print_run(document: dict[str, Any]) -> None:
    """Print the record of ``qbatch replay`` or ``qbatch metrics`` as tables on stdout."""
    from qbatch.metrics import METRICS
    from qbatch.results.run_words import run_facts, short_name

    results = document["results"]
    policies = [result["policy"] for result in results]
    rows = []
    for metric in METRICS:
        values = [result["metrics"].get(metric.name) for result in results]
        if any(metric.name in result["metrics"] for result in results):
            rows.append([metric.name, *(number_text(value, metric.unit) for value in values)])
    title = (
        f"{short_name(document['log']['name'])}: {document['log']['jobs']} jobs on {document['machine']['procs']} "
        "processors"
    )
    print_table(title, ["metric", *policies], rows)
    for key in results[0].get("by", {}):
        _print_breakdown(key, results)
    facts = run_facts(document)
    width = max(len(name) for name, _ in facts)
    typer.echo("")
    for name, text in facts:
        typer.echo(f"{name:<{width}}  {text}")


def _print_breakdown(key: str, results: list[dict[str, Any]]) -> None:
    rows = [
        [group["label"], result["policy"], str(group["jobs"])]
        + [number_text(group["metrics"].get(name), "s" if name.endswith("_s") else "") for name in _SHOWN]
        for result in results
        for group in result["by"][key]
    ]
    typer.echo("")
    print_table(f"by {key}", [key, "policy", "jobs", *_SHOWN], rows, left=2)
