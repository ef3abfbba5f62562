"""The tables of a run: each metric of each policy, the breakdowns, and a description of the run."""

from __future__ import annotations

from typing import Any

import typer

from qbatch.cli.console import print_table
from qbatch.results.run_words import number_text, value_text

_COMPARED = (
    "jobs",
    "wait_mean_s",
    "wait_median_s",
    "wait_p95_s",
    "wait_max_s",
    "slowdown_mean",
    "bounded_slowdown_mean",
    "utilisation_submit",
    "makespan_s",
    "backfilled_share",
)
"""Metrics of the short table."""

_WHERE_PRESENT = ("parent_response_mean_s", "rejected_count")
"""Metrics that are added to the short table if a policy has them."""

_OF_PARTS = ("wait_mean_s", "wait_p95_s", "slowdown_mean", "bounded_slowdown_mean")


def print_run(document: dict[str, Any], *, is_whole: bool = True) -> None:
    """Print the record of ``qbatch replay`` or ``qbatch metrics`` as tables on stdout.

    ``is_whole``: show every metric by its name, durations in seconds; else the usual metrics, in
    words, durations in hours and minutes.
    """
    from qbatch.metrics import METRICS
    from qbatch.metrics.table import words_of
    from qbatch.results.run_words import run_facts, short_name

    results = document["results"]
    policies = [result["policy"] for result in results]
    shown = {
        metric.name: metric
        for metric in METRICS
        if any(metric.name in result["metrics"] for result in results)
    }
    if not is_whole:
        shown = {name: shown[name] for name in (*_COMPARED, *_WHERE_PRESENT) if name in shown}
    rows = [
        [name if is_whole else words_of(name)]
        + [_text(result["metrics"].get(name), metric.unit, is_whole) for result in results]
        for name, metric in shown.items()
    ]
    log, procs = document["log"], document["machine"]["procs"]
    title = f"{short_name(log['name'])}: {log['jobs']} jobs on {procs} processors"
    print_table(title, ["metric", *policies], rows)
    for key in results[0].get("by", {}):
        rows = [
            [group["label"], result["policy"], _text(group["jobs"], "jobs", is_whole)]
            + [
                _text(group["metrics"].get(name), "s" if name.endswith("_s") else "", is_whole)
                for name in _OF_PARTS
            ]
            for result in results
            for group in result["by"][key]
        ]
        names = _OF_PARTS if is_whole else tuple(map(words_of, _OF_PARTS))
        typer.echo("")
        print_table(f"by {key}", [key, "policy", "jobs", *names], rows, left=2)
    if rows := [
        [
            used["name"],
            result["policy"],
            f"{used['there']:,}",
            f"{used['hours']:,.1f}",
            _text(used["utilisation_submit"], "share", is_whole),
            _text(used.get("loss_of_capacity"), "share", is_whole),
            _text(used.get("unusable_mean"), "", is_whole),
        ]
        for result in results
        for used in result.get("resources", ())
    ]:
        typer.echo("")
        headings = ["resource", "policy", "there", "hours", "utilisation", "lost", "unusable"]
        print_table("resources", headings, rows, left=2)
    if rows := [
        [
            used["partition"],
            used["name"],
            result["policy"],
            f"{used['there']:,}",
            f"{used['hours']:,.1f}",
            _text(used["utilisation_submit"], "share", is_whole),
            _text(used["loss_of_capacity"], "share", is_whole),
        ]
        for result in results
        for used in result.get("partitions", ())
    ]:
        typer.echo("")
        headings = ["partition", "resource", "policy", "there", "hours", "utilisation", "lost"]
        print_table("partitions", headings, rows, left=3)
    if rows := [
        [each["partition"], result["policy"], f"{each['jobs']:,}", f"{each['hours']:,.1f}"]
        for result in results
        for each in result.get("billed", ())
    ]:
        typer.echo("")
        headings = ["partition", "policy", "jobs", "billed hours"]
        print_table("billed hours", headings, rows, left=2)
    if unsure := max(result.get("unsure_on_hosts", 0) for result in results):
        typer.echo("")
        typer.echo(
            f"Of {unsure:,} jobs only the sum over their hosts is known: each host counts what it "
            "must have had at least."
        )
    facts = run_facts(document)
    if not is_whole:
        facts.append(("more", "--all shows every metric by its name, in seconds"))
    width = max(len(name) for name, _ in facts)
    typer.echo("")
    for name, text in facts:
        typer.echo(f"{name:<{width}}  {text}")


def _text(value: float | int | None, unit: str, is_whole: bool) -> str:
    return number_text(value, unit) if is_whole else value_text(value, unit)
