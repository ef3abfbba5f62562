"""``qbatch transform``: change a log step by step, with the deadlines of its jobs in a side
file."""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qbatch.cli.console import print_table, talk
from qbatch.library.progress import progress_bars
from qbatch.model.errors import UsageError

if TYPE_CHECKING:
    from qbatch.workloads import Log
    from qbatch.workloads.log import Column

PACKED = "packed"
_PACKED = {"kind": "static", "procs": "32", "span": "7200", "slack": "0"}


def transform(
    log: Annotated[
        str | None,
        typer.Argument(metavar="LOG", help="SWF log (.gz, .xz); - is stdin; or packed[:kind=...]."),
    ] = None,
    steps: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="STEP", help="Steps NAME[:key=value,...], from left to right (see --list)."
        ),
    ] = None,
    out: Annotated[
        str,
        typer.Option("--out", "-o", metavar="FILE", help="SWF file (.gz compresses); - is stdout."),
    ] = "-",
    deadlines: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Side file (CSV) with deadlines by job number."),
    ] = None,
    resources: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Side file (CSV) of resources of LOG; jobs keep theirs."),
    ] = None,
    resources_out: Annotated[
        str | None,
        typer.Option(
            "--resources-out",
            metavar="FILE",
            help="Side file of the log that is written [OUT.resources.csv].",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of all draws; the same seed gives the same log.")
    ] = 0,
    procs: Annotated[
        int | None, typer.Option(min=1, max=10**9, help="Processors [those of the log's header].")
    ] = None,
    list_steps: Annotated[bool, typer.Option("--list", help="List the steps.")] = False,
    lenient: Annotated[
        bool, typer.Option("--lenient", help="Skip rows that cannot be read.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Show no progress and no notes.")
    ] = False,
) -> None:
    """Change the load, the estimates and the deadlines of a log, for a replay (with
    --deadlines)."""
    from dataclasses import replace

    from qbatch.library.logs import transformed
    from qbatch.results.output import log_file, whole_file
    from qbatch.results.run_words import header_notes
    from qbatch.workloads import read_log, write_log
    from qbatch.workloads.resource_rows import read_resources
    from qbatch.workloads.side_file import load_side_file
    from qbatch.workloads.transform import (
        STEPS,
        DeadlineLog,
        read_steps,
        sized,
        write_deadlines,
    )

    if list_steps:
        rows = []
        for name, step in STEPS.items():
            values = {
                key: value if isinstance(value, str | None) else f"{value:g}"
                for key, value in step.parameters.items()
            }
            shown = [key if value is None else f"{key}={value}" for key, value in values.items()]
            rows.append(
                [name, ", ".join([*shown, *(f"[{key}]" for key in step.optional)]), step.meaning]
            )
        packed = ", ".join(f"{key}={value}" for key, value in _PACKED.items())
        rows.append([PACKED, packed, "in place of LOG: a set of jobs that fills a machine"])
        print_table("steps, from left to right", ["step", "parameters", "what it does"], rows)
        return
    if log is None:
        raise UsageError(
            "a LOG is missing; name an SWF file, - for stdin, or packed (--list shows the steps)"
        )
    if (
        deadlines is not None
        and out != "-"
        and os.path.realpath(deadlines) == os.path.realpath(out)
    ):
        raise UsageError(f"--deadlines {deadlines}: the log goes there; name another file")
    new_side = _side_file(log, out, deadlines, resources, resources_out)
    chosen = read_steps(steps or [])
    if log.partition(":")[0] == PACKED and not os.path.exists(log):
        if resources is not None:
            raise UsageError(f"--resources {resources}: {PACKED} jobs have none; leave it out")
        made = _packed(log, seed)
    else:
        from qbatch.simulation.prepare import choose_procs

        read = read_log(log, lenient=lenient)
        if not quiet and len(read.part_lines):
            for note in header_notes(read.header):
                talk(f"note: {note}")
        read = sized(read, choose_procs(read, procs))
        if resources is not None:
            side = load_side_file(resources)
            read_resources(side, read)  # refuses what a replay would refuse
            read = replace(read, side=side)
        made = DeadlineLog.without(read)

    def easy(reference: Log) -> Column:
        """Return the responses of the reference schedule, with progress."""
        from qbatch.model.record import MICROSECONDS
        from qbatch.simulation.drivers import easy_responses

        ends = (
            [int(each) * MICROSECONDS for each in reference["submit"][[0, -1]]]
            if len(reference)
            else [0, 0]
        )
        with progress_bars(
            "easy, for reference", len(reference), *ends, is_quiet=quiet
        ) as progress:
            return easy_responses(reference, progress)

    made = transformed(made, chosen, seed, easy)
    count = int((made.deadline >= 0).sum())
    if count and deadlines is None:
        raise UsageError(
            f"{count:,} jobs have deadlines, which SWF has no field for; add --deadlines FILE"
        )
    with ExitStack() as files:
        # All files get their names at the end, or none does.
        if deadlines is not None:
            write_deadlines(files.enter_context(whole_file(deadlines)), made)
        if made.log.side is not None and new_side is not None:
            files.enter_context(whole_file(new_side)).write(made.log.side.content)
        write_log(files.enter_context(log_file(out)), made.log.header, made.log.columns)
    if not quiet:
        talk(f"{len(made.log):,} jobs, {count:,} of them with deadlines")


def _side_file(
    log: str, out: str, deadlines: str | None, resources: str | None, given: str | None
) -> str | None:
    """Return the name of the side file of resources to write; None if there is none."""
    from qbatch.workloads.resource_rows import side_file_of

    if resources is None:
        if given is not None:
            raise UsageError("--resources-out goes with --resources, the side file of LOG; add it")
        return None
    if given is None and out == "-":
        raise UsageError("-o - names no side file; name it with --resources-out FILE")
    new = given or side_file_of(out)
    others = [each for each in (log, out, deadlines, resources) if each not in (None, "-")]
    if os.path.realpath(new) in map(os.path.realpath, others):
        raise UsageError(f"{new}: is used already; name another file with --resources-out")
    return new


def _packed(text: str, seed: int) -> Any:
    from qbatch.workloads.transform import packed_set

    given = dict(_PACKED)
    for pair in (pair for pair in text.partition(":")[2].split(",") if pair):
        key, sign, value = pair.partition("=")
        if not sign or key not in given:
            raise UsageError(f"{text!r}: {pair!r} is no parameter of it ({', '.join(given)})")
        given[key] = value
    try:
        procs, span, slack = int(given["procs"]), int(given["span"]), float(given["slack"])
    except ValueError as error:
        raise UsageError(
            f"{text!r}: {error}; procs and span are whole numbers, slack is a number"
        ) from error
    return packed_set(given["kind"], procs=procs, span_s=span, slack=slack, seed=seed)
