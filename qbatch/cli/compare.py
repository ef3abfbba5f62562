"""``qbatch compare``: compare two schedules of one log, job by job."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from qbatch.cli.console import print_table, talk
from qbatch.results.run_words import number_text

_HEADINGS = ("A", "B", "B / A", "B - A", "low", "high", "finding")


def compare(
    a: Annotated[
        str,
        typer.Argument(
            metavar="A",
            help="DIR or DIR:POLICY of a result, job rows, or a log with its own waits.",
        ),
    ],
    b: Annotated[
        str | None,
        typer.Argument(metavar="B", help="The same as A; leave it out if A holds two policies."),
    ] = None,
    replica: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            metavar="DIR",
            help="A replica: a result of the same policies with another seed.",
        ),
    ] = None,
    logs_differ: Annotated[
        bool, typer.Option("--logs-differ", help="Allow replicas of other logs.")
    ] = False,
    by: Annotated[
        list[str] | None,
        typer.Option(
            "--by",
            metavar="KEY",
            help="Break down by class and month [default], size, runtime, user, ...",
        ),
    ] = None,
    confidence: Annotated[
        float, typer.Option("--confidence", help="Confidence of the intervals.")
    ] = 0.95,
    practical: Annotated[
        float,
        typer.Option(
            "--practical", help="Ignore differences below this share of the larger value."
        ),
    ] = 0.01,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the resampling of medians.")] = 0,
    procs: Annotated[
        int | None,
        typer.Option("--procs", min=1, help="Processors of the machine, if A and B are job rows."),
    ] = None,
    machine: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Check the log's schedule: machine file; goes with --resources."
        ),
    ] = None,
    resources: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="What each job asks for, and where it ran (CSV)."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON (schema qbatch.compare/1).")
    ] = False,
) -> None:
    """Compare two schedules of one log, job by job: which is better, by how much, and whether the
    difference is noise.

    A log with its own waits is described next to a policy, and neither is called better.  With
    --machine and --resources it is first checked whether that schedule can have run there; if so,
    there are findings.
    """
    from qbatch.library.sides import comparison_of, settings_of

    how = settings_of(by or [], confidence, practical, seed)
    document = comparison_of(
        a,
        b,
        replica or [],
        how,
        may_logs_differ=logs_differ,
        procs=procs,
        machine=machine,
        resources=resources,
    )
    if as_json:
        typer.echo(json.dumps(document, indent=2, allow_nan=False))
    else:
        _print(document)


def _print(document: dict[str, Any]) -> None:
    from qbatch.reports.comparison_words import intervals

    jobs = document["jobs"]
    left = [
        f"{jobs[key]:,} {words}"
        for key, words in (
            ("only_a", "only in A"),
            ("only_b", "only in B"),
            ("not_counted", "warm-up"),
        )
        if jobs[key]
    ]
    typer.echo(
        f"A is {document['a']['result']}, B is {document['b']['result']}: {jobs['common']:,} "
        "common jobs"
        f"{' (left out: ' + ', '.join(left) + ')' if left else ''}"
    )
    runs = {name: document[name.lower()]["run"] for name in "AB"}
    if runs["A"] == runs["B"]:
        typer.echo(runs["A"])
    else:
        for name, run in runs.items():
            typer.echo(f"{name}: {run}")
    for note in document["notes"]:
        talk(f"note: {note}")
    typer.echo("")
    for line in document["history"]:
        typer.echo(f"{line[:1].upper()}{line[1:]}.")
    if document["history"]:
        typer.echo("")
    for record in document["metrics"]:
        typer.echo(record["sentence"])
    typer.echo("")
    print_table(
        "",
        ["metric", *_HEADINGS],
        [[record["name"], *_cells(record)] for record in document["metrics"]],
    )
    typer.echo("")
    rows = []
    for record in document["metrics"]:
        if "effect" in record:
            effect, median = record["effect"], record["median"]
            shares = [
                f"{effect[key] * 100:.1f}%" for key in ("jobs_better", "jobs_worse", "jobs_equal")
            ]
            sizes = [f"{effect[key]:+.3f}" for key in ("cliff_delta", "rank_biserial")]
            medians = [
                number_text(median[key], record["unit"]) for key in ("difference", "low", "high")
            ]
            rows.append([record["name"].replace("_mean", ""), *shares, *sizes, *medians])
    headings = [
        "of the jobs",
        "less in B",
        "more",
        "equal",
        "Cliff's delta",
        "rank-biserial",
        "median B - A",
    ]
    print_table("", [*headings, "low", "high"], rows)
    for key, records in document["parts"].items():
        if records:
            typer.echo("")
            rows = [
                [r["label"], r["name"], str(r["jobs"]), *_cells(r), number_text(r["p_holm"])]
                for r in records
            ]
            print_table(f"by {key}", [key, "metric", "jobs", *_HEADINGS, "p (Holm)"], rows, left=2)
    typer.echo("")
    if document["pairs"] > 1:
        typer.echo(
            f"{document['pairs']} pairs; effects and parts are those of the first pair, but a part "
            "that holds every job is as "
            "the whole."
        )
    typer.echo(intervals(document))
    if not document["is_described"]:
        typer.echo(
            f"Findings of parts follow p corrected for their number: {document['correction']}."
        )


def _cells(record: dict[str, Any]) -> list[str]:
    numbers = {
        key: number_text(record[key], record["unit"])
        for key in ("a", "b", "difference", "low", "high")
    }
    return [
        numbers["a"],
        numbers["b"],
        number_text(record["ratio"]),
        *list(numbers.values())[2:],
        record["finding"],
    ]
