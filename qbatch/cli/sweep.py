"""``qbatch sweep``: run a grid of logs, loads, estimates, seeds and policies; keep, resume and
summarise the runs."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer

from qbatch.cli.console import print_table, progress_bar, talk
from qbatch.model.errors import UsageError
from qbatch.results.run_words import left_out_notes, number_text

_SHOWN_POINTS = 60
_SHOWN_FAILURES = 5

Several = list[str] | None


def sweep(
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE", help="Grid as TOML; options override its values.", show_default=False
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", metavar="DIR", help="Directory for the runs and the table."),
    ] = None,
    log: Annotated[
        Several,
        typer.Option(metavar="LOG", help="Log, or model such as lublin:jobs=500; repeatable."),
    ] = None,
    policy: Annotated[
        Several, typer.Option("--policy", "-p", help="NAME[:key=value,...]; may be repeated.")
    ] = None,
    machine: Annotated[
        Several,
        typer.Option(metavar="MACHINE", help="Machine file, origin2000, processors; repeatable."),
    ] = None,
    window: Annotated[
        Several,
        typer.Option(metavar="FROM..TO", help="Span of submissions, or all; may be repeated."),
    ] = None,
    resample: Annotated[
        str | None,
        typer.Option(metavar="HOW,...", help="Resampling of the log: none, weeks, users."),
    ] = None,
    load: Annotated[
        str | None,
        typer.Option(metavar="LOADS", help="Divide the gaps by 0.7:1.1:0.05, or by 0.8,0.9."),
    ] = None,
    estimates: Annotated[
        str | None, typer.Option(metavar="MODEL,...", help="log, perfect, f:N, ... as in replay.")
    ] = None,
    seed: Annotated[
        str | None, typer.Option(metavar="SEEDS", help="Seeds of the replicas: 1:20, or 1,2,5.")
    ] = None,
    resources: Annotated[
        Several,
        typer.Option(
            metavar="FILE", help="Side file of resources of the log; once for each log, in order."
        ),
    ] = None,
    first: Annotated[
        int | None, typer.Option(min=1, help="Replay at most this many jobs of each log.")
    ] = None,
    warmup: Annotated[
        str | None, typer.Option(metavar="T", help="Do not count the first T (12h, 7d).")
    ] = None,
    no_kill: Annotated[
        bool, typer.Option("--no-kill", help="Raise estimates to run times; end no job early.")
    ] = False,
    closed: Annotated[
        bool,
        typer.Option("--closed", help="Users wait for their jobs before they submit the next."),
    ] = False,
    audit: Annotated[
        bool, typer.Option("--audit", help="Check the invariants of each schedule.")
    ] = False,
    lenient: Annotated[
        bool, typer.Option("--lenient", help="Skip rows of logs that cannot be read.")
    ] = False,
    on: Annotated[
        str,
        typer.Option(metavar="WHERE", help="Place of the runs: local, local:N or dask=ADDRESS."),
    ] = "local",
    retry: Annotated[bool, typer.Option("--retry", help="Repeat runs that have failed.")] = False,
    metric: Annotated[
        Several, typer.Option("--metric", metavar="NAME", help="Metric to show; may be repeated.")
    ] = None,
    confidence: Annotated[
        float, typer.Option("--confidence", help="Confidence of the intervals.")
    ] = 0.95,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON (schema qbatch.sweep/1).")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Show no progress and no notes.")
    ] = False,
) -> int:
    """Replay a grid of logs, loads, estimates, seeds and policies; keep every run, and resume an
    interrupted sweep."""
    from pathlib import Path

    from qbatch.sweeps.executors import place_of
    from qbatch.sweeps.grid import grid_of, read_grid
    from qbatch.workloads.estimates import split_estimates

    if not 0 < confidence < 1:
        raise UsageError(f"--confidence {confidence:g}: is not between 0 and 1; 0.95 is usual")
    given: dict[str, Any] = {
        "log": log,
        "policy": policy,
        "machine": machine,
        "window": window,
        "resample": _listed(resample),
        "load": _listed(load),
        "seed": _listed(seed),
        "estimates": None if estimates is None else split_estimates(estimates),
        "resources": resources,
        "first": first,
        "warmup": warmup,
        "kill": False if no_kill else None,
        "closed": closed or None,
        "audit": audit or None,
        "lenient": lenient or None,
    }
    given = {name: value for name, value in given.items() if value is not None}
    place = place_of(on)
    of_file: dict[str, Any] = {}
    if file is not None:
        of_file, folder = read_grid(file)
        out = folder if out is None else out
        grid_of({"log": "any", **of_file}, file)
    if out is None:
        raise UsageError(
            "--out DIR is missing: name the directory of the runs, here or in the FILE as out = "
            '"DIR"'
        )
    grid = grid_of(
        {**of_file, **given},
        "qbatch sweep" if file is None else file,
        form="--{}" if file is None else "{}",
    )
    return _run(
        grid,
        Path(out),
        place,
        metric,
        confidence,
        is_quiet=quiet,
        is_retried=retry,
        as_json=as_json,
    )


def _listed(text: str | None) -> list[str] | None:
    return None if text is None else [part for part in text.split(",") if part]


def _run(
    grid: Any,
    out: Any,
    place: Any,
    metric: Several,
    confidence: float,
    *,
    is_quiet: bool,
    is_retried: bool,
    as_json: bool,
) -> int:
    from qbatch.results.output import check_folder, make_folder
    from qbatch.sweeps.plan import plan_of
    from qbatch.sweeps.summary import SHOWN, record
    from qbatch.sweeps.sweep import run_sweep, runs_kept
    from qbatch.sweeps.table import metric_named

    shown = [metric_named(name) for name in metric or SHOWN]
    check_folder(out)
    plan = plan_of(grid)
    make_folder(out)
    count = len(plan)
    try:
        with progress_bar(
            "runs", count, "MofNCompleteColumn", "TimeRemainingColumn", is_quiet=is_quiet
        ) as update:
            progress = None if update is None else lambda done, _: update(completed=done)
            done = run_sweep(
                plan,
                out,
                place,
                progress=progress,
                retry=is_retried,
                command=["qbatch", *sys.argv[1:]],
            )
    except KeyboardInterrupt:
        talk(f"{runs_kept(plan, out):,} of {count:,} runs kept in {out}; the same command resumes")
        raise
    document = record(done.table, shown, confidence=confidence)
    if as_json:
        typer.echo(json.dumps(document, indent=2, allow_nan=False))
    else:
        _print(document)
    if not is_quiet:
        there = f", {done.kept:,} were there already" if done.kept else ""
        talk(f"{count:,} runs: {done.made:,} made{there}; {out} has them all (runs.parquet)")
        if all(point["replicas"] == 1 for point in document["points"]):
            talk(
                "note: one run per point: intervals need replicas (--seed 1:10 with drawn "
                "estimates, or --resample weeks)"
            )
    for failure in document["failures"][:_SHOWN_FAILURES]:
        where = ", ".join(
            f"{axis} {failure[axis]}"
            for axis in ("policy", *done.table.varying)
            if axis != "policy"
        )
        talk(f"failed: {failure['policy']}{', ' if where else ''}{where}: {failure['error']}")
    if done.failed > _SHOWN_FAILURES:
        talk(f"{done.failed:,} runs failed in all; runs.parquet names them (status, error)")
    return 1 if done.failed else 0


def _print(document: dict[str, Any]) -> None:
    grid = document["grid"]
    varying = [
        axis
        for axis in ("log", "machine", "window", "resample", "load", "estimates")
        if len(grid[axis]) > 1
    ]
    names = list(document["points"][0]["metrics"]) if document["points"] else []
    rows = []
    for point in document["points"][:_SHOWN_POINTS]:
        at = point["at"]
        cells = [_cell(point["metrics"][name], name) for name in names]
        rows.append(
            [
                *(f"{at[axis]:g}" if axis == "load" else str(at[axis]) for axis in varying),
                at["policy"],
                *cells,
            ]
        )
    title = ", ".join(grid["log"]) if "log" not in varying else ""
    print_table(title, [*varying, "policy", *names], rows, left=len(varying) + 1)
    reasons = [
        mean["reason"]
        for point in document["points"]
        for mean in point["metrics"].values()
        if mean["reason"]
    ]
    if reasons:
        typer.echo(f"\n[-]: {reasons[0]}")
    for log in document["logs"]:
        for note in left_out_notes({"log": log, "resources": log.get("resources")}):
            typer.echo(f"\n{log['name']}: {note}")
    more = len(document["points"]) - _SHOWN_POINTS
    if more > 0:
        talk(f"{more:,} more points: --json, qbatch plot and runs.parquet show them")


def _cell(mean: dict[str, Any], name: str) -> str:
    """Return ``12.3 [11.9, 12.7]``: the mean and its interval; ``12.3 [-]`` for replicas that
    cannot differ."""
    unit = "s" if name.endswith("_s") else ""
    text = number_text(mean["mean"], unit)
    low, high = mean["low"], mean["high"]
    if low is None or high is None:
        return f"{text} [-]" if mean["reason"] else text
    return f"{text} [{number_text(low, unit)}, {number_text(high, unit)}]"
