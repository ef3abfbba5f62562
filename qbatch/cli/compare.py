"""``qbatch compare``: two schedules of one log, job by job, and whether they differ at all."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qbatch.cli.console import number_text, print_table, talk
from qbatch.model.errors import UsageError, suggestion

if TYPE_CHECKING:
    from qbatch.reports.comparison import Side
    from qbatch.results.result import Result

_HEADINGS = ("A", "B", "B - A", "low", "high", "rel.", "finding")


def compare(
    a: Annotated[
        str,
        typer.Argument(
            metavar="A", help="DIR or DIR:POLICY of a result, job rows, or a log with waits (as it really was)."
        ),
    ],
    b: Annotated[str | None, typer.Argument(metavar="B", help="The same; left out if A holds two policies.")] = None,
    replica: Annotated[
        list[str] | None,
        typer.Option("--with", metavar="DIR", help="A replica: a result of the same policies with another seed."),
    ] = None,
    logs_differ: Annotated[bool, typer.Option("--logs-differ", help="Replicas may be of other logs too.")] = False,
    by: Annotated[
        list[str] | None,
        typer.Option("--by", metavar="KEY", help="Parts: class and month if not told; size, runtime, user, ..."),
    ] = None,
    confidence: Annotated[float, typer.Option("--confidence", help="Of the intervals.")] = 0.95,
    practical: Annotated[
        float, typer.Option("--practical", help="Share of A below which a difference does not matter.")
    ] = 0.01,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the resamples of medians.")] = 0,
    procs: Annotated[
        int | None, typer.Option("--procs", min=1, help="Processors of the machine of bare job rows.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON (schema qbatch.compare/1).")] = False,
) -> None:
    """Compare two schedules of one log, job by job: which is better, by how much, or whether it is noise."""
    from qbatch.metrics import BREAKDOWNS
    from qbatch.reports.comparison import PARTS, ComparedSettings, check_pairs
    from qbatch.reports.comparison import compare as compared
    from qbatch.results.reading import split_name

    for key in by or []:
        if key not in BREAKDOWNS:
            raise UsageError(f"--by {key!r}: use one of {', '.join(BREAKDOWNS)}{suggestion(key, BREAKDOWNS)}")
    if not 0 < confidence < 1:
        raise UsageError(f"--confidence {confidence:g}: is not between 0 and 1; 0.95 is usual")
    if not 0 <= practical < 1:
        raise UsageError(f"--practical {practical:g}: should be a share from 0 to below 1, such as 0.01")
    sized = _Sized(procs)
    first, second = _sides(a, b, sized)
    _check_replicas([split_name(name)[0] for name in (a, *([b] if b is not None else []))], replica or [])
    pairs = [_replica(path, first.schedule.policy, second.schedule.policy, sized) for path in replica or []]
    check_pairs([(first, second), *pairs], may_logs_differ=logs_differ)
    if logs_differ and not pairs:
        raise UsageError("--logs-differ is about replicas: name them with --with DIR, or leave it out")
    sized.check(a)
    how = ComparedSettings(confidence, practical, seed, tuple(dict.fromkeys(by)) if by else PARTS)
    document = compared(first, second, how, pairs)
    if as_json:
        typer.echo(json.dumps(document, indent=2, allow_nan=False))
    else:
        _print(document)


class _Sized:
    """Reads results and job rows, and gives bare job rows the size of the machine that was told."""

    def __init__(self, procs: int | None) -> None:
        self.procs = procs
        self.is_used = False

    def read(self, path: str) -> Result:
        """Return what was read."""
        from qbatch.results.reading import read_result
        from qbatch.results.recorded import is_log

        if is_log(path):
            self.is_used = True
            return read_result(path, procs=self.procs)
        result = read_result(path)
        if self.procs is None or not result.is_size_guessed:
            return result
        self.is_used = True
        return result.sized(self.procs)

    def check(self, first: str) -> None:
        """Refuse a size that nobody needs."""
        if self.procs is not None and not self.is_used:
            raise UsageError(f"--procs is for bare job rows, and {first} says how large its machine is; leave it out")


def _sides(a: str, b: str | None, sized: _Sized) -> tuple[Side, Side]:
    from qbatch.reports.comparison import Side

    if b is None:
        where, result, policy = _read(a, sized)
        if result.is_recorded:
            raise UsageError(
                f"{a}: is one schedule, what really happened; name B too, as in: qbatch compare {a} DIR:POLICY"
            )
        if policy is not None or len(result.schedules) != 2:
            has = "names one policy" if policy is not None else f"holds {', '.join(result.policies)}"
            raise UsageError(f"{a}: {has}; name B too, as in: qbatch compare {where}:POLICY {where}:POLICY")
        one, other = result.schedules
        return Side(result, one, f"{a}:{one.policy}", one.policy), Side(
            result, other, f"{a}:{other.policy}", other.policy
        )
    sides = [_side(text, sized) for text in (a, b)]
    first, second = sides
    if first.label == second.label:
        first, second = (Side(side.result, side.schedule, side.where, side.where) for side in sides)
    if first.label == second.label:
        first, second = (
            Side(side.result, side.schedule, side.where, f"{name} ({side.label})")
            for name, side in zip("AB", sides, strict=True)
        )
    return first, second


def _side(text: str, sized: _Sized) -> Side:
    from qbatch.reports.comparison import Side

    where, result, policy = _read(text, sized)
    if policy is None and len(result.schedules) != 1:
        names = ", ".join(f"{where}:{name}" for name in result.policies)
        raise UsageError(f"{text}: holds {len(result.schedules)} policies; name one of {names}")
    schedule = result.only([policy] if policy is not None else []).schedules[0]
    if not schedule.ran.any():
        raise UsageError(f"{text}: no job ran under {schedule.policy}")
    return Side(result, schedule, text, schedule.policy)


def _read(text: str, sized: _Sized) -> tuple[str, Result, str | None]:
    """Read DIR or DIR:POLICY; return the directory, its result and the policy."""
    from qbatch.results.reading import split_name

    path, policy = split_name(text)
    return path, sized.read(path), policy


def _check_replicas(first: list[str], replicas: list[str]) -> None:
    """Refuse a result that is there already: it would make intervals narrow that nothing supports."""
    known = {os.path.realpath(path) for path in first}
    for path in replicas:
        if os.path.realpath(path) in known:
            raise UsageError(f"--with {path}: is compared already; a replica is a result of another seed or log")
        known.add(os.path.realpath(path))


def _replica(path: str, a: str, b: str, sized: _Sized) -> tuple[Side, Side]:
    from qbatch.reports.comparison import Side

    if a == b:
        raise UsageError(f"--with {path}: A and B are one policy ({a}) in two results; replicas need two policies")
    result = sized.read(path).only([a, b])
    if not all(schedule.ran.any() for schedule in result.schedules):
        raise UsageError(f"--with {path}: no job ran under one of {a}, {b}")
    one, other = result.schedules
    return Side(result, one, path, a), Side(result, other, path, b)


# ------------------------------------------------------------------------------------------------ printing


def _print(document: dict[str, Any]) -> None:
    jobs = document["jobs"]
    left = [f"{jobs[key]:,} {words}" for key, words in
            (("only_a", "only in A"), ("only_b", "only in B"), ("not_counted", "warm-up")) if jobs[key]]  # fmt: skip
    typer.echo(f"A is {document['a']['result']}, B is {document['b']['result']}: {jobs['common']:,} common jobs"
               f"{' (left out: ' + ', '.join(left) + ')' if left else ''}")  # fmt: skip
    runs = {name: document[name.lower()]["run"] for name in "AB"}
    if runs["A"] == runs["B"]:
        typer.echo(runs["A"])
    else:
        for name, run in runs.items():
            typer.echo(f"{name}: {run}")
    for note in document["notes"]:
        talk(f"note: {note}")
    typer.echo("")
    for record in document["metrics"]:
        typer.echo(record["sentence"])
    typer.echo("")
    print_table("", ["metric", *_HEADINGS], [[record["name"], *_cells(record)] for record in document["metrics"]])
    typer.echo("")
    _print_effects(document["metrics"])
    for key, records in document["parts"].items():
        if records:
            typer.echo("")
            rows = [[r["label"], r["name"], str(r["jobs"]), *_cells(r), number_text(r["p_holm"])] for r in records]
            print_table(f"by {key}", [key, "metric", "jobs", *_HEADINGS, "p (Holm)"], rows, left=2)
    typer.echo("")
    if document["pairs"] > 1:
        typer.echo(
            f"{document['pairs']} pairs; effects and parts are those of the first pair, but a part that holds every job is as "
            "the whole."
        )
    typer.echo(f"Intervals of {document['confidence'] * 100:g} %: {document['method']}.")
    typer.echo(f"Findings of parts follow p corrected for their number: {document['correction']}.")


def _cells(record: dict[str, Any]) -> list[str]:
    unit = record["unit"]
    numbers = [number_text(record[key], unit) for key in ("a", "b", "difference", "low", "high")]
    relative = record["relative"]
    return [*numbers, "-" if relative is None else f"{relative * 100:+.1f}%", record["finding"]]


def _print_effects(records: list[dict[str, Any]]) -> None:
    rows = []
    for record in records:
        if "effect" not in record:
            continue
        effect, median = record["effect"], record["median"]
        shares = [f"{effect[key] * 100:.1f}%" for key in ("jobs_better", "jobs_worse", "jobs_equal")]
        sizes = [f"{effect[key]:+.3f}" for key in ("cliff_delta", "rank_biserial")]
        medians = [number_text(median[key], record["unit"]) for key in ("difference", "low", "high")]
        rows.append([record["name"].replace("_mean", ""), *shares, *sizes, *medians])
    headings = ["of the jobs", "better in B", "worse", "equal", "Cliff's delta", "rank-biserial", "median B - A"]
    print_table("", [*headings, "low", "high"], rows)
