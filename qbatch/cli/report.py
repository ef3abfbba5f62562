"""``qbatch report``: write a self-contained HTML page about results."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from qbatch.cli.console import OnlyPolicies, refuse_given, talk
from qbatch.model.errors import UsageError


def report(
    results: Annotated[
        list[str],
        typer.Argument(
            metavar="RESULT", help="DIR or DIR:POLICY of results, job rows, or one sweep."
        ),
    ],
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="FILE", help="HTML file to write.")
    ] = "report.html",
    policy: OnlyPolicies = None,
    baseline: Annotated[
        str | None, typer.Option("--baseline", help="Policy with which the others are compared.")
    ] = None,
    title: Annotated[
        str | None, typer.Option("--title", help="Title, instead of the usual one.")
    ] = None,
    procs: Annotated[
        int | None, typer.Option("--procs", min=1, help="Processors of the machine.")
    ] = None,
    confidence: Annotated[
        float, typer.Option("--confidence", help="Confidence of the intervals.")
    ] = 0.95,
    machine: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Show its hosts, and check a log's schedule: machine file; goes with --resources.",
        ),
    ] = None,
    resources: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="What each job asks for, and where it ran (CSV)."),
    ] = None,
) -> None:
    """Write one HTML page about results or a sweep: tables, every job on a time axis, differences,
    and the commands."""
    from qbatch.library.on_hosts import on_machine
    from qbatch.library.sides import checks_of
    from qbatch.referee.reading import site_files
    from qbatch.reports.report.page import Wishes, render
    from qbatch.reports.report.study import gather, with_baseline
    from qbatch.reports.sweep_page import SweepWishes, render_sweep
    from qbatch.results.output import make_folder, whole_file
    from qbatch.sweeps.table import is_sweep, read_sweep

    if not out.lower().endswith((".html", ".htm")):
        raise UsageError(f"--out {out}: a page ends in .html")
    if not 0 < confidence < 1:
        raise UsageError(f"--confidence {confidence:g}: is not between 0 and 1; 0.95 is usual")
    command = ("qbatch", *sys.argv[1:])
    if any(map(is_sweep, results)):
        if len(results) > 1:
            raise UsageError(
                f"{results[0]}, {results[1]}: a page is about one sweep, or about results; name one"
            )
        refuse_given(
            f"{results[0]} is a sweep: its page takes --title, --baseline and --confidence",
            {
                "--policy": policy,
                "--procs": procs,
                "--machine": machine,
                "--resources": resources,
            },
        )
        sweep, notes = read_sweep(results[0]), list[str]()
        text = render_sweep(sweep, SweepWishes(title, baseline, confidence, command))
        what = f"{sweep.document['runs']:,} runs"
    else:
        site = site_files(machine, resources, procs)
        checks = checks_of(results, site)
        study = gather(results, policies=policy or [], procs=procs, checks=checks)
        study = with_baseline(study, baseline)
        notes = list(study.notes)
        of_site = None if site is None else on_machine(study, site)
        text = render(study, Wishes(title, confidence, command), of_site)
        jobs = max(int(schedule.ran.sum()) for schedule in study.first.result.schedules)
        what = f"{jobs:,} jobs, {', '.join(study.policies)}"
    page = text.encode(errors="backslashreplace")
    make_folder(out)
    with whole_file(out) as file:
        file.write(page)
    for note in notes:
        talk(f"note: {note}")
    talk(f"wrote {out}: {what}; {len(page) / 1e6:.1f} MB")
