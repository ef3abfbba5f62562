"""``qbatch report``: one HTML page about results, to be sent on."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from qbatch.cli.console import talk
from qbatch.model.errors import UsageError


def report(
    results: Annotated[
        list[str],
        typer.Argument(metavar="RESULT", help="DIR or DIR:POLICY of results (qbatch replay --out), or job rows."),
    ],
    out: Annotated[str, typer.Option("--out", "-o", metavar="FILE", help="The page, .html.")] = "report.html",
    policy: Annotated[
        list[str] | None, typer.Option("--policy", "-p", help="Only this policy; may be repeated.")
    ] = None,
    baseline: Annotated[str | None, typer.Option("--baseline", help="Compare the others with this policy.")] = None,
    title: Annotated[str | None, typer.Option("--title", help="Title, in place of our own.")] = None,
    procs: Annotated[int | None, typer.Option("--procs", min=1, help="Processors of the machine.")] = None,
    confidence: Annotated[float, typer.Option("--confidence", help="Of the intervals.")] = 0.95,
) -> None:
    """Write one HTML page about results: tables, every job on a time axis, differences, and how it was run."""
    from qbatch.reports.report.page import Wishes, render
    from qbatch.reports.report.study import gather, with_baseline
    from qbatch.results.output import make_folder, whole_file

    if not out.lower().endswith((".html", ".htm")):
        raise UsageError(f"--out {out}: a page ends in .html")
    if not 0 < confidence < 1:
        raise UsageError(f"--confidence {confidence:g}: is not between 0 and 1; 0.95 is usual")
    study = with_baseline(gather(results, policies=policy or [], procs=procs), baseline)
    page = render(study, Wishes(title, confidence, ("qbatch", *sys.argv[1:]))).encode(errors="backslashreplace")
    make_folder(out)
    with whole_file(out) as file:
        file.write(page)
    for note in study.notes:
        talk(f"note: {note}")
    jobs = max(int(schedule.ran.sum()) for schedule in study.first.result.schedules)
    talk(f"wrote {out}: {jobs:,} jobs, {', '.join(study.policies)}; {len(page) / 1e6:.1f} MB")
