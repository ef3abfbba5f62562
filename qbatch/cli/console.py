"""Output shared by the commands: tables that are plain when piped, and messages on stderr."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from qbatch.model.errors import UsageError, suggestion

if TYPE_CHECKING:
    from qbatch.workloads import Log


OnlyPolicies = Annotated[
    list[str] | None, typer.Option("--policy", "-p", help="Only this policy; may be repeated.")
]
"""The option that selects policies of a result."""


def command_group(text: str | None = None) -> typer.Typer:
    """Return a group of commands with help pages like those of all others: plain, without
    completion options."""
    return typer.Typer(
        add_completion=False,
        no_args_is_help=text is not None,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        help=text,
    )


def talk(text: str) -> None:
    """Write a message to stderr."""
    sys.stderr.write(f"{text}\n")


def check_choice(option: str, value: str, known: Collection[str]) -> None:
    """Refuse a value that is not among the known ones.

    Raises:
        UsageError: it names the known values and suggests the nearest one.
    """
    if value not in known:
        raise UsageError(
            f"{option} {value!r}: use one of {', '.join(known)}{suggestion(value, known)}"
        )


def refuse_given(why: str, options: Mapping[str, object]) -> None:
    """Refuse options that have no effect: those with a value.

    Raises:
        UsageError: ``why``, and which options to leave out.
    """
    names = ", ".join(name for name, value in options.items() if value)
    if names:
        raise UsageError(f"{why}; leave out {names}")


def write_log_to(log: Log, out: str) -> None:
    """Write a log to a file (``-``: stdout), and print on stderr where, its jobs, its processors
    and its span."""
    import numpy as np

    from qbatch.results.output import log_file
    from qbatch.results.run_words import hours_text
    from qbatch.workloads import machine_procs, write_log

    with log_file(out) as file:
        write_log(file, log.header, log.columns)
    submit = np.asarray(log["submit"])
    span = (
        f", submitted over {hours_text(float(submit.max() - submit.min()))}" if len(submit) else ""
    )
    procs = machine_procs(log.header)
    machine = f" on {procs:,} processors" if procs is not None else ""
    talk(f"{'standard output' if out == '-' else out}: {len(log):,} jobs{machine}{span}")


@contextmanager
def progress_bar(
    what: str, total: int | None, *columns: str, is_quiet: bool
) -> Iterator[Callable[..., None] | None]:
    """Show a bar on stderr, if that is a terminal; yield the function that updates it, None without
    a bar.

    ``columns``: names of columns of ``rich.progress``, after the text and the bar.
    """
    if is_quiet or not sys.stderr.isatty():
        yield None
        return
    from rich import progress
    from rich.console import Console

    shown = [
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        *(getattr(progress, each)() for each in columns),
    ]
    with progress.Progress(*shown, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(what, total=total)
        yield lambda **changes: bars.update(task, **changes)


def print_table(
    title: str, headings: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1
) -> None:
    """Print a table to stdout: with lines and colour on a terminal, plain and aligned in a pipe.

    The first ``left`` columns are aligned to the left, the others to the right.
    """
    widths = [max(len(line[place]) for line in [headings, *rows]) for place in range(len(headings))]
    # If the table is wider than the terminal, print it plain: a number cut at its end would be a
    # wrong number.
    is_wide = sum(widths) + 3 * len(widths) + 1 > shutil.get_terminal_size().columns
    if sys.stdout.isatty() and not is_wide:
        from rich.console import Console
        from rich.markup import escape
        from rich.table import Table

        table = Table(title=escape(title) or None, title_justify="left")
        for place, heading in enumerate(headings):
            table.add_column(escape(heading), justify="left" if place < left else "right")
        for row in rows:
            table.add_row(*(escape(cell) for cell in row))
        Console().print(table)
        return
    for line in [headings, *rows]:
        cells = [
            cell.ljust(width) if place < left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        sys.stdout.write("  ".join(cells).rstrip() + "\n")
