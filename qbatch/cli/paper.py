"""``qbatch paper``: the experiments of a paper, its printed numbers beside ours, a verdict on each claim."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qbatch.cli.console import print_table, talk
from qbatch.model.errors import OutputError, UsageError, suggestion

if TYPE_CHECKING:
    from qbatch.papers.record import PaperOutcome, Table
    from qbatch.papers.registry import Paper
    from qbatch.sweeps.kept import Tell

SCHEMA = "qbatch.paper/1"

Text = str | None
ORIGIN2000, QOPS, SCOJO, CLOSED_NETWORK = "origin2000", "qops", "scojo", "closed-network"
_OPTIONS = {
    "sp2-backfilling": ("LOG", "--table", "--seeds", "--seed", "--procs", "--no-figures"),
    ORIGIN2000: ("--months", "--replicas", "--seed", "--days"),
    QOPS: ("LOG", "--table", "--subsets", "--jobs", "--seed", "--procs"),
    SCOJO: ("LOG", "--table", "--workloads", "--jobs", "--seed"),
    CLOSED_NETWORK: ("--table", "--replications", "--seed"),
}
"""What each paper takes beside what is for all."""

DRAWS = 10
"""Draws of estimates, or of each month, where nothing else is said."""

Check = Annotated[
    bool,
    typer.Option(
        "--check",
        help="Exit with 1 if a verdict is not the known one (holds, or what the document of its results explains), or if none is "
        "known of this seed and size.",
    ),
]
_FORMS = ("png", "svg")
_MARKS = {
    "holds": "yes", "does not hold": "NO", "the paper contradicts itself": "!", "cannot be checked on this log": "?",
    "not decidable": "?",
}  # fmt: skip


def paper(
    name: Annotated[Text, typer.Argument(metavar="PAPER", help="Which paper; none lists them.")] = None,
    log: Annotated[
        list[str] | None,
        typer.Argument(metavar="LOG", help="SWF log (.gz, .xz), qops, scojo: or several; none: generated."),
    ] = None,
    table: Annotated[
        list[str] | None, typer.Option("--table", "-t", help="Only this part (--list shows them); may be repeated.")
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(min=1, max=1000, help="How many draws of estimates, and of logs made of the log's weeks (10)."),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Seed of all that is drawn: estimates (sp2-backfilling), months (origin2000), generated logs, deadlines and "
            "duplicates (qops), workloads of the model (scojo), replications (closed-network).",
        ),
    ] = None,
    procs: Annotated[int | None, typer.Option(min=1, max=10**9, help="Processors (else the log's header).")] = None,
    figures: Annotated[bool, typer.Option("--figures/--no-figures", help="Figures 9 to 11 too.")] = True,
    months: Annotated[
        list[str] | None, typer.Option("--months", "-m", help="origin2000: only this month; may be repeated.")
    ] = None,
    replicas: Annotated[
        int | None, typer.Option(min=1, max=1000, help="origin2000: how often each month is drawn (10).")
    ] = None,
    days: Annotated[int | None, typer.Option(help="origin2000: only the first days of each month.")] = None,
    subsets: Annotated[
        int | None, typer.Option(min=1, max=1000, help="qops: how many disjoint subsets of each log (10).")
    ] = None,
    workloads: Annotated[
        int | None, typer.Option(min=1, max=1000, help="scojo: how many workloads of the model (20).")
    ] = None,
    replications: Annotated[
        int | None, typer.Option(min=1, max=1000, help="closed-network: replications of each network (30).")
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(min=10, max=1_000_000, help="Jobs to a subset (qops: 5000) or workload (scojo: 10000)."),
    ] = None,
    out: Annotated[Text, typer.Option(metavar="DIR", help="Write results.md, tables.json, CSV, pictures.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON in place of the tables.")] = False,
    check: Check = False,
    list_papers: Annotated[bool, typer.Option("--list", help="List the papers.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no notes.")] = False,
) -> None:
    """Re-run the experiments of a paper beside its printed numbers; numbers that differ are no failure."""
    from qbatch.papers.registry import PAPERS, find_paper

    if name is None or list_papers:
        _print_papers(PAPERS)
        return
    chosen = find_paper(name)
    given = {
        "LOG": log or None, "--table": table or None, "--seeds": seeds, "--seed": seed, "--procs": procs,
        "--no-figures": not figures, "--months": months or None, "--replicas": replicas, "--days": days,
        "--subsets": subsets, "--workloads": workloads, "--replications": replications, "--jobs": jobs,
    }  # fmt: skip
    _check_options(chosen.name, [option for option, value in given.items() if value is not None and value is not False])
    if chosen.name not in (QOPS, SCOJO) and log is not None and len(log) > 1:
        raise UsageError(f"paper {chosen.name} takes one LOG, not {len(log)}")
    parts = _parts(chosen, table, has_figures=figures)
    if out is not None:
        _check_folder(out)
    facts, outcome = _run(chosen.name, given, parts, out, is_quiet=quiet)
    document = _document(chosen, facts, outcome)
    if out is not None:
        _write(out, document, outcome, is_quiet=quiet)
    if as_json:
        typer.echo(json.dumps(document, indent=2, allow_nan=False))
    else:
        _print(outcome, is_quiet=quiet)
    if check:
        _check(outcome)


def _run(
    name: str, given: dict[str, Any], parts: list[str], out: str | None, *, is_quiet: bool
) -> tuple[dict[str, Any], PaperOutcome]:
    """Run a paper with the options that were given; return what it ran on and what came out."""
    logs, seed, jobs, procs = (given[option] for option in ("LOG", "--seed", "--jobs", "--procs"))
    if name == ORIGIN2000:
        return _run_months(
            given["--months"], given["--replicas"] or DRAWS, seed, given["--days"], out, is_quiet=is_quiet
        )
    if name == QOPS:
        return _run_subsets(logs or [], procs, (given["--subsets"] or DRAWS, jobs, seed), parts, out, is_quiet=is_quiet)
    if name == SCOJO:
        return _run_workloads(logs or [], (given["--workloads"], jobs, seed), parts, out, is_quiet=is_quiet)
    if name == CLOSED_NETWORK:
        return _run_network(given["--replications"], seed, parts, out, is_quiet=is_quiet)
    return _run_log(logs[0] if logs else None, procs, given["--seeds"] or DRAWS, seed or 0, parts, is_quiet=is_quiet)


def _check_options(name: str, given: list[str]) -> None:
    """Refuse an option that the paper does not take."""
    for option in given:
        if option not in _OPTIONS[name]:
            raise UsageError(f"paper {name} takes no {option}; it takes {', '.join(_OPTIONS[name])}")


def _check(outcome: PaperOutcome) -> None:
    """Fail on claims that are decided otherwise than is known: they hold, or what the paper's module records of them."""
    breaches = [claim for claim in outcome.claims if claim.is_breach]
    for claim in breaches:
        talk(f"check: {claim.name}: {claim.verdict}; known of it: {claim.expected}")
    lost = [claim.name for claim in outcome.claims if claim.is_lost]
    if lost:
        talk(f"check: known to hold, and not decidable now: {', '.join(lost)}")
    if outcome.unknown:
        talk(f"check: {outcome.unknown}")
    if breaches or outcome.unknown:
        raise typer.Exit(1)
    others = [
        claim
        for claim in outcome.claims
        if claim.verdict not in ("holds", "cannot be checked on this log", "not decidable")
    ]
    said = ", ".join(f"{claim.name} ({claim.verdict})" for claim in others)
    talk(f"check: no claim is decided otherwise than is known{f'; not held, and known: {said}' if said else ''}")


def _run_log(
    log: str | None, procs: int | None, seeds: int, seed: int, parts: list[str], *, is_quiet: bool
) -> tuple[dict[str, Any], PaperOutcome]:
    """Run a paper on a log; return what it ran on and what came out."""
    from qbatch.papers.sp2_backfilling import own_log, run_paper
    from qbatch.replay.prepare import choose_procs
    from qbatch.workloads import read_log

    read = read_log(log) if log is not None else own_log()
    if log is None and not is_quiet:
        talk(
            f"NO LOG GIVEN: running on a generated log of {len(read):,} jobs; the printed numbers are those of KTH's SP2"
        )
    size = choose_procs(read, procs)
    _announce_compiler("run_rounds_*", is_quiet=is_quiet)
    with _progress(is_quiet=is_quiet) as tell:
        outcome = run_paper(read, procs=size, seeds=seeds, seed=seed, parts=parts, tell=tell)
    facts = {
        "log": {"name": read.name, "sha256": read.sha256, "rows": len(read), "notes": read.notes},
        "machine": {"procs": size},
        "options": {"seeds": seeds, "seed": seed, "parts": parts},
    }
    return facts, outcome


def _run_months(
    months: list[str] | None, replicas: int, seed: int | None, days: int | None, out: str | None, *, is_quiet: bool
) -> tuple[dict[str, Any], PaperOutcome]:
    """Run the paper of the Origin 2000 on generated months; return what it ran on and what came out.

    With a folder for what comes out, each simulation is kept there as soon as it is made: a command that was interrupted goes
    on where it stopped, and after a change of the sources only what depends on them is run again.
    """
    from qbatch.papers.harness import Runner
    from qbatch.papers.origin2000 import SEED, study_of
    from qbatch.papers.origin2000_claims import run_paper

    study = study_of(months=months or (), replicas=replicas, seed=SEED if seed is None else seed, days=days)
    folder = None if out is None else Path(out) / "runs"
    said: list[str] = []
    with _progress(is_quiet=is_quiet) as tell:
        outcome = run_paper(study, (), Runner(tell, folder=folder, say=said.append))
    if not is_quiet:
        for text in said:
            talk(text)
    return study.facts(()), outcome


def _run_subsets(
    logs: list[str],
    procs: int | None,
    draws: tuple[int, int | None, int | None],
    parts: list[str],
    out: str | None,
    *,
    is_quiet: bool,
) -> tuple[dict[str, Any], PaperOutcome]:
    """Run the paper of QoPS on subsets of logs, or on generated ones; ``draws``: subsets, jobs of each, the first seed.

    With a folder for what comes out, each group of runs is kept there as soon as it is made, as for the Origin 2000.
    """
    from qbatch.papers.harness import Runner
    from qbatch.papers.qops import SEED, SUBSET_JOBS, study_of
    from qbatch.papers.qops_claims import run_paper

    subsets, jobs, seed = draws
    study = study_of(logs, procs=procs, subsets=subsets, jobs=jobs or SUBSET_JOBS, seed=SEED if seed is None else seed)
    folder = None if out is None else Path(out) / "runs"
    said: list[str] = []
    _announce_compiler("run_rounds_*", is_quiet=is_quiet)
    with _progress(is_quiet=is_quiet) as tell:
        outcome = run_paper(study, parts, Runner(tell, folder=folder, say=said.append))
    if not is_quiet:
        for text in said:
            talk(text)
    return study.facts(parts), outcome


def _run_workloads(
    logs: list[str],
    draws: tuple[int | None, int | None, int | None],
    parts: list[str],
    out: str | None,
    *,
    is_quiet: bool,
) -> tuple[dict[str, Any], PaperOutcome]:
    """Run the paper of group optimisation on workloads of the model and of logs; runs are kept as for the Origin 2000.

    ``draws``: workloads, jobs of each, the first seed.
    """
    from qbatch.papers.harness import Runner
    from qbatch.papers.scojo import SEED, WORKLOAD_JOBS, WORKLOADS, study_of
    from qbatch.papers.scojo_claims import run_paper

    workloads, jobs, seed = draws
    study = study_of(
        logs, workloads=workloads or WORKLOADS, jobs=jobs or WORKLOAD_JOBS, seed=SEED if seed is None else seed
    )
    folder = None if out is None else Path(out) / "runs"
    said: list[str] = []
    _announce_compiler("run_rounds_*", is_quiet=is_quiet)
    with _progress(is_quiet=is_quiet) as tell:
        outcome = run_paper(study, parts, Runner(tell, folder=folder, say=said.append))
    if not is_quiet:
        for text in said:
            talk(text)
    return study.facts(parts), outcome


def _run_network(
    replications: int | None, seed: int | None, parts: list[str], out: str | None, *, is_quiet: bool
) -> tuple[dict[str, Any], PaperOutcome]:
    """Run the paper of the closed network; blocks of runs are kept as for the Origin 2000."""
    from qbatch.papers.closed_network import REPLICATIONS, SEED, study_of
    from qbatch.papers.closed_network_claims import run_paper
    from qbatch.papers.harness import Runner

    study = study_of(replications=replications or REPLICATIONS, seed=SEED if seed is None else seed)
    folder = None if out is None else Path(out) / "runs"
    said: list[str] = []
    _announce_compiler("run_network", is_quiet=is_quiet)
    with _progress(is_quiet=is_quiet) as tell:
        outcome = run_paper(study, parts, Runner(tell, folder=folder, say=said.append))
    if not is_quiet:
        for text in said:
            talk(text)
    return study.facts(parts), outcome


def _print_papers(papers: dict[str, Paper]) -> None:
    rows = []
    for one in papers.values():
        what = f"{one.authors}: {one.title} ({one.source})"
        rows.append([one.name, what, ", ".join(one.parts + one.on_request)])
    print_table("", ["paper", "what it is", "parts"], rows, left=3)


def _parts(chosen: Paper, wanted: list[str] | None, *, has_figures: bool) -> list[str]:
    known = chosen.parts + chosen.on_request
    for part in wanted or []:
        if part not in known:
            raise UsageError(f"--table {part!r}: use one of {', '.join(known)}{suggestion(part, known)}")
    if wanted and "figures" in wanted and not has_figures:
        raise UsageError("--table figures and --no-figures contradict each other; leave one out")
    parts = [part for part in known if part in (wanted or chosen.parts)]
    return [part for part in parts if has_figures or part != "figures"]


def _check_folder(out: str) -> None:
    """Refuse, before any work, a folder that could not be written after it; make it if only it is missing."""
    if os.path.exists(out) and not os.path.isdir(out):
        raise OutputError(f"{out}: is a file; --out names a folder")
    parent = os.path.dirname(os.path.abspath(out))
    if not os.path.isdir(parent):
        raise OutputError(f"{out}: the folder {parent} does not exist; create it first")
    os.makedirs(out, exist_ok=True)
    if not os.access(out, os.W_OK | os.X_OK):
        raise OutputError(f"{out}: may not be written")


def _announce_compiler(*kernels: str, is_quiet: bool) -> None:
    from qbatch.planning.kernels.jit import is_warm

    if not is_quiet and not all(is_warm(name) for name in kernels):
        talk("compiling the kernels: once, about ten seconds; later runs load them from the cache")


@contextmanager
def _progress(*, is_quiet: bool) -> Iterator[Tell]:
    """Show one bar for each experiment on stderr, if that is a terminal; give the function that moves them."""
    from qbatch.sweeps.kept import silent

    if is_quiet or not sys.stderr.isatty():
        yield silent
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        known: dict[str, TaskID] = {}

        def move(what: str, done: int, of: int) -> None:
            if what not in known:
                known[what] = bars.add_task(what, total=of)
            bars.update(known[what], completed=done)

        yield move


def _document(chosen: Paper, facts: dict[str, Any], outcome: PaperOutcome) -> dict[str, Any]:
    """Return the record of the whole command: what --json prints and --out keeps."""
    from qbatch.distribution import __version__

    return {
        "schema": SCHEMA,
        "version": __version__,
        "command": ["qbatch", *sys.argv[1:]],
        "paper": {"name": chosen.name, "authors": chosen.authors, "title": chosen.title, "source": chosen.source},
        **facts,
        **outcome.document(),
    }


def _write(out: str, document: dict[str, Any], outcome: PaperOutcome, *, is_quiet: bool) -> None:
    from qbatch.papers.markdown import markdown_of
    from qbatch.reports.plot_style import styled, write_figure
    from qbatch.results.output import whole_file

    for table in outcome.tables:
        with whole_file(os.path.join(out, f"{table.name}.csv")) as file:
            file.write(_csv(table))
    for name, draw in outcome.pictures.items():
        with styled():
            picture = draw()
        for form in _FORMS:
            write_figure(picture, os.path.join(out, f"{name}.{form}"))
    with whole_file(os.path.join(out, "tables.json")) as file:
        file.write((json.dumps(document, indent=2, allow_nan=False) + "\n").encode())
    with whole_file(os.path.join(out, "results.md")) as file:
        file.write(markdown_of(document).encode())
    if not is_quiet:
        talk(f"wrote {out}: results.md, tables.json, {len(outcome.tables)} tables, {len(outcome.pictures)} pictures")


def _csv(table: Table) -> bytes:
    keys = [column.key for column in table.columns]
    text = io.StringIO(newline="")
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(keys)
    rows.writerows([["" if row.get(key) is None else row[key] for key in keys] for row in table.rows])
    return text.getvalue().encode()


def _print(outcome: PaperOutcome, *, is_quiet: bool) -> None:
    if not is_quiet:
        for note in outcome.notes:
            talk(f"note: {note}")
    for table in outcome.tables:
        typer.echo(table.title)
        print_table("", [column.heading for column in table.shown], table.texts())
        for note in table.notes:
            typer.echo(f"note: {note}")
        typer.echo("")
    _print_claims(outcome)


def _print_claims(outcome: PaperOutcome) -> None:
    typer.echo("What the paper claims")
    for claim in outcome.claims:
        typer.echo(f"  {_MARKS[claim.verdict]:<4}{claim.name}: {claim.verdict}")
        counts = f"{claim.counts}: " if claim.counts else ""
        said = [f"{claim.text}. {counts}{claim.numbers}."]
        if claim.together:
            said.append(f"Taken together (no part of the verdict): {claim.together}.")
        if claim.why:
            said.append(f"{_because(claim.verdict)}: {claim.why}.")
        for line in (line for one in said for line in textwrap.wrap(one, 104)):
            typer.echo(f"        {line}")


def _because(verdict: str) -> str:
    return "Our best explanation" if verdict == "does not hold" else "Why"
