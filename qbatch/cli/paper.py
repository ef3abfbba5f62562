"""``qbatch paper``: run the experiments of a paper, compare its printed numbers with ours, and
judge each claim.

Each paper is a subcommand; the registry declares its options.
"""

from __future__ import annotations

import csv
import inspect
import io
import json
import os
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup

from qbatch.cli.console import print_table, talk
from qbatch.model.errors import OutputError, UsageError, suggestion
from qbatch.papers.registry import PAPERS, Paper, PaperOption, find_paper

if TYPE_CHECKING:
    from qbatch.papers.harness import Progress
    from qbatch.papers.record import PaperOutcome

SCHEMA = "qbatch.paper/1"

_FORMS = ("png", "svg")
_MARKS = {
    "holds": "yes",
    "does not hold": "NO",
    "the paper contradicts itself": "!",
    "cannot be checked on this log": "?",
    "not decidable": "?",
}

_COMMON: dict[str, tuple[Any, Any]] = {
    "out": (
        str | None,
        typer.Option(None, metavar="DIR", help="Write results.md, tables.json, CSV, pictures."),
    ),
    "as_json": (bool, typer.Option(False, "--json", help="Print JSON in place of the tables.")),
    "check": (
        bool,
        typer.Option(
            False,
            "--check",
            help=(
                "Exit with 1 if a verdict is not the known one (holds, or the one that the results "
                "document explains), or if none is "
                "known for this seed and size."
            ),
        ),
    ),
    "list_papers": (bool, typer.Option(False, "--list", help="List the papers.")),
    "quiet": (bool, typer.Option(False, "--quiet", "-q", help="Print no progress and no notes.")),
}
"""The options of every paper: type and option by parameter."""


class PaperGroup(TyperGroup):
    """The papers as subcommands; options may stand before or after the name."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the name of the paper first."""
        named = [
            each
            for before, each in zip(["", *args], args, strict=False)
            if each in PAPERS and before != "--out"
        ]
        if named:
            args.remove(named[0])
            args.insert(0, named[0])
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Refuse a name that no paper has, and suggest the nearest one."""
        find_paper(args[0])
        return super().resolve_command(ctx, args)


class PaperCommand(TyperCommand):
    """One paper; its refusal of an option names those that it takes."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take the options of this paper only."""
        try:
            rest = super().parse_args(ctx, args)
        except Exception as error:
            if type(error).__name__ == "NoSuchOption":
                raise self._refusal(str(getattr(error, "option_name", ""))) from None
            raise
        if ctx.args and not ctx.resilient_parsing:
            raise self._refusal("LOG")
        return rest

    def _refusal(self, option: str) -> UsageError:
        return UsageError(
            f"paper {self.name} takes no {option}; it takes "
            f"{', '.join(PAPERS[str(self.name)].takes)}"
        )


app = typer.Typer(
    cls=PaperGroup,
    add_completion=False,
    invoke_without_command=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    subcommand_metavar="PAPER [OPTIONS]",
)


@app.callback()
def paper(
    context: typer.Context,
    list_papers: bool = typer.Option(False, "--list", help="List the papers."),
) -> None:
    """Run the experiments of a paper and compare them with its printed numbers; different numbers
    are no failure.

    Without the name of a paper, list the papers.
    """
    if context.invoked_subcommand is None or list_papers:
        _print_papers()


def _command_of(chosen: Paper) -> Callable[..., None]:
    """Return the command of a paper, with its options as parameters."""

    def command(**given: Any) -> None:
        _run(chosen, **given)

    options: dict[str, tuple[Any, Any]] = {}
    if chosen.most_logs != 0:
        text = "SWF log (.gz, .xz)" if chosen.most_logs else "SWF logs (.gz, .xz)"
        options["logs"] = (
            list[str] | None,
            typer.Argument(None, metavar="LOG", help=f"{text}; none: generated."),
        )
    if chosen.has_parts:
        text = f"Only this part: {', '.join(chosen.parts + chosen.on_request)}; may be repeated."
        options["table"] = (list[str] | None, typer.Option(None, "--table", "-t", help=text))
    options |= {option.name: _option(option) for option in chosen.options} | _COMMON
    kinds = {name: kind for name, (kind, _) in options.items()}
    command.__annotations__ = kinds
    parameters = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kinds[name]
        )
        for name, (_, default) in options.items()
    ]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return command


def _option(option: PaperOption) -> tuple[Any, Any]:
    """Return the type and the command-line option for an option of a paper."""
    if option.kind is bool:
        return bool, typer.Option(True, *option.flags, help=option.help)
    kind: Any = int | None if option.kind is int else list[str] | None
    return kind, typer.Option(
        None, *option.flags, min=option.least, max=option.most, help=option.help
    )


for _name, _paper in PAPERS.items():
    app.command(
        _name,
        cls=PaperCommand,
        help=f"{_paper.authors}: {_paper.title} ({_paper.source}).",
        short_help=_paper.title,
        context_settings={"allow_extra_args": True},
    )(_command_of(_paper))


def _run(
    chosen: Paper,
    *,
    out: str | None,
    as_json: bool,
    check: bool,
    list_papers: bool,
    quiet: bool,
    logs: list[str] | None = None,
    table: list[str] | None = None,
    **given: Any,
) -> None:
    """Run a paper; ``given``: its own options."""
    from qbatch.papers.harness import Runner

    if list_papers:
        _print_papers()
        return
    if logs and chosen.most_logs is not None and len(logs) > chosen.most_logs:
        raise UsageError(f"paper {chosen.name} takes one LOG, not {len(logs)}")
    left_out = [
        option.name
        for option in chosen.options
        if option.kind is bool and not given.pop(option.name)
    ]
    parts = _parts(chosen, table or [], left_out)
    if out is not None:
        _check_folder(out)
    study = chosen.study(
        **{
            name: value
            for name, value in {"logs": logs, **given}.items()
            if value not in (None, [])
        }
    )
    if not quiet:
        from qbatch.planning.kernels.jit import is_warm

        if not all(is_warm(name) for name in chosen.kernels):
            talk(
                "compiling the kernels: once, about ten seconds; later runs load them from the "
                "cache"
            )
    say: Callable[[str], None] = (lambda _: None) if quiet else talk
    with _progress(is_quiet=quiet) as progress:
        outcome = chosen.run(
            study,
            parts,
            Runner(progress, folder=None if out is None else Path(out) / "runs", say=say),
        )
    document = _document(chosen, study.facts(parts), outcome)
    if out is not None:
        _write(out, document, outcome, is_quiet=quiet)
    if as_json:
        typer.echo(json.dumps(document, indent=2, allow_nan=False))
    else:
        _print(outcome, is_quiet=quiet)
    if check:
        _check(outcome)


def _parts(chosen: Paper, wanted: list[str], left_out: list[str]) -> list[str]:
    known = chosen.parts + chosen.on_request
    for part in wanted:
        if part not in known:
            raise UsageError(
                f"--table {part!r}: use one of {', '.join(known)}{suggestion(part, known)}"
            )
        if part in left_out:
            raise UsageError(f"--table {part} and --no-{part} contradict each other; leave one out")
    return [part for part in known if part in (wanted or chosen.parts) and part not in left_out]


def _print_papers() -> None:
    rows = []
    for one in PAPERS.values():
        what = f"{one.authors}: {one.title} ({one.source})"
        rows.append([one.name, what, ", ".join(one.parts + one.on_request)])
    print_table("", ["paper", "what it is", "parts"], rows, left=3)


def _check(outcome: PaperOutcome) -> None:
    """Fail if the verdict of a claim is not the known one: it holds, or what the paper's module
    records for it."""
    breaches = [claim for claim in outcome.claims if claim.is_breach]
    for claim in breaches:
        talk(f"check: {claim.name}: {claim.verdict}; known verdict: {claim.expected}")
    lost = [claim.name for claim in outcome.claims if claim.is_lost]
    if lost:
        talk(f"check: known to hold, and not decidable now: {', '.join(lost)}")
    if outcome.unknown:
        talk(f"check: {outcome.unknown}")
    if breaches or outcome.unknown:
        raise typer.Exit(1)
    usual = ("holds", "cannot be checked on this log", "not decidable")
    names = ", ".join(
        f"{claim.name} ({claim.verdict})" for claim in outcome.claims if claim.verdict not in usual
    )
    talk(f"check: every verdict is the known one{f'; known not to hold: {names}' if names else ''}")


def _check_folder(out: str) -> None:
    """Refuse a folder that cannot be written before any work is done; make it if its parent
    exists."""
    if os.path.exists(out) and not os.path.isdir(out):
        raise OutputError(f"{out}: is a file; --out names a folder")
    parent = os.path.dirname(os.path.abspath(out))
    if not os.path.isdir(parent):
        raise OutputError(f"{out}: the folder {parent} does not exist; create it first")
    os.makedirs(out, exist_ok=True)
    if not os.access(out, os.W_OK | os.X_OK):
        raise OutputError(f"{out}: you may not write to this folder")


@contextmanager
def _progress(*, is_quiet: bool) -> Iterator[Progress]:
    """Show a progress bar for each experiment on stderr if it is a terminal; yield the function
    that moves the bars."""
    from qbatch.papers.harness import silent

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
    """Return the record of the whole command, which --json prints and --out writes."""
    from qbatch.distribution import __version__

    return {
        "schema": SCHEMA,
        "version": __version__,
        "command": ["qbatch", *sys.argv[1:]],
        "paper": {
            "name": chosen.name,
            "authors": chosen.authors,
            "title": chosen.title,
            "source": chosen.source,
        },
        **facts,
        **outcome.document(),
    }


def _write(out: str, document: dict[str, Any], outcome: PaperOutcome, *, is_quiet: bool) -> None:
    from qbatch.papers.markdown import markdown_of
    from qbatch.reports.plot_style import styled, write_figure
    from qbatch.results.output import whole_file

    for table in outcome.tables:
        text, keys = io.StringIO(newline=""), [column.key for column in table.columns]
        rows = csv.writer(text, lineterminator="\n")
        rows.writerow(keys)
        rows.writerows(
            [["" if row.get(key) is None else row[key] for key in keys] for row in table.rows]
        )
        with whole_file(os.path.join(out, f"{table.name}.csv")) as file:
            file.write(text.getvalue().encode())
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
        talk(
            f"wrote {out}: results.md, tables.json, {len(outcome.tables)} tables, "
            f"{len(outcome.pictures)} pictures"
        )


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
    typer.echo("What the paper claims")
    for claim in outcome.claims:
        typer.echo(f"  {_MARKS[claim.verdict]:<4}{claim.name}: {claim.verdict}")
        counts = f"{claim.counts}: " if claim.counts else ""
        texts = [f"{claim.text}. {counts}{claim.numbers}."]
        if claim.together:
            texts.append(f"Taken together (no part of the verdict): {claim.together}.")
        if claim.why:
            because = "Our best explanation" if claim.verdict == "does not hold" else "Why"
            texts.append(f"{because}: {claim.why}.")
        for line in (line for one in texts for line in textwrap.wrap(one, 104)):
            typer.echo(f"        {line}")
