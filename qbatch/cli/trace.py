"""``qbatch trace``: inspect a workload log, check it, generate one, or fetch a public one.

This module holds only the commands and the form of their output; ``qbatch.workloads.log`` computes
the facts and the findings.  Only numbers go to stdout.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qbatch.cli.console import command_group, talk, write_log_to
from qbatch.cli.trace_catalogue import catalogue, get
from qbatch.model.errors import InputError

if TYPE_CHECKING:
    from qbatch.workloads.log import Log

app = command_group("Inspect a workload log, check it, generate one, or fetch a public one.")

LogArgument = Annotated[
    str, typer.Argument(metavar="LOG", help="SWF or five-column log, also .gz or .xz; - is stdin.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
LenientOption = Annotated[bool, typer.Option("--lenient", help="Skip rows that cannot be read.")]


@app.command()
def info(log: LogArgument, as_json: JsonOption = False, lenient: LenientOption = False) -> None:
    """Show the contents of a log: machine, span, load, sizes, estimates."""
    from qbatch.workloads.log import facts
    from qbatch.workloads.swf import read_log

    read = read_log(log, lenient=lenient)
    document = {"schema": "qbatch.trace-info/1", **facts(read), "header": _header_facts(read)}
    typer.echo(json.dumps(document, indent=2) if as_json else "\n".join(_info_lines(document)))


@app.command()
def head(
    log: LogArgument,
    rows: Annotated[int, typer.Option("-n", "--rows", min=1, help="Number of rows.")] = 10,
    as_json: JsonOption = False,
    lenient: LenientOption = False,
) -> None:
    """Print the first rows of a log with named columns, in order of submission."""
    from qbatch.results.run_words import header_notes
    from qbatch.workloads.log import FIELDS
    from qbatch.workloads.swf import read_log
    from qbatch.workloads.swf_writer import number_text

    read = read_log(log, lenient=lenient)
    for note in header_notes(read.header) if len(read.part_lines) else ():
        talk(f"note: {note}")
    columns = [read[name][:rows].tolist() for name in FIELDS]
    if as_json:
        jobs = [dict(zip(FIELDS, row, strict=True)) for row in zip(*columns, strict=True)]
        typer.echo(
            json.dumps({"schema": "qbatch.trace-head/1", "rows": len(read), "jobs": jobs}, indent=2)
        )
        return
    _print_rows(
        list(FIELDS), [[number_text(value) for value in row] for row in zip(*columns, strict=True)]
    )


@app.command()
def validate(log: LogArgument, as_json: JsonOption = False, lenient: LenientOption = False) -> None:
    """List everything that is wrong in a log; exit code 0 when it can be used, 3 when not."""
    from qbatch.workloads.findings import findings
    from qbatch.workloads.header import readable
    from qbatch.workloads.swf import read_log

    read = read_log(log, lenient=True)
    found = findings(read, lenient=lenient)
    is_usable = all(finding.severity != "error" for finding in found)
    if as_json:
        document = {
            "schema": "qbatch.trace-validate/1",
            "log": {
                "name": readable(read.name),
                "sha256": read.sha256,
                "rows": len(read),
                "bad_rows": read.bad_rows,
            },
            "usable": is_usable,
            "findings": [asdict(finding) for finding in found],
        }
        typer.echo(json.dumps(document, indent=2))
    else:
        for finding in found:
            more = ", ..." if finding.count > len(finding.lines) else ""
            where = (
                f" (line{'s' if finding.count > 1 else ''} "
                f"{', '.join(map(str, finding.lines))}{more})"
            )
            rows = f"{finding.count:,} row{'s' if finding.count > 1 else ''}: "
            typer.echo(
                f"{finding.severity}: "
                + (rows + finding.text + where if finding.lines else finding.text)
            )
        verdict = "usable" if is_usable else "not usable"
        typer.echo(f"{verdict}: {len(read):,} rows, {len(found)} findings")
    if not is_usable:
        raise typer.Exit(InputError.exit_code)


@app.command()
def generate(
    *,
    jobs: Annotated[int, typer.Option("--jobs", help="Number of jobs.")],
    procs: Annotated[int, typer.Option("--procs", help="Processors of the machine.")],
    load: Annotated[
        float, typer.Option("--load", help="Offered load: work per processor and second.")
    ] = 0.85,
    seed: Annotated[
        int, typer.Option("--seed", help="Seed; the same seed gives the same log.")
    ] = 1,
    accuracy: Annotated[
        float, typer.Option("--accuracy", help="Approximate mean of run time over estimate.")
    ] = 0.4,
    campaigns: Annotated[
        float, typer.Option("--campaigns", help="Share of jobs that arrive in bursts, 0 to 1.")
    ] = 0.0,
    out: Annotated[
        str, typer.Option("--out", help="SWF file (.gz compresses); - is stdout.")
    ] = "-",
) -> None:
    """Generate a workload log in SWF from a seed."""
    from qbatch.workloads.generate import generate_log

    log = generate_log(
        jobs=jobs, procs=procs, load=load, seed=seed, accuracy=accuracy, campaigns=campaigns
    )
    write_log_to(log, out)


app.command()(catalogue)
app.command()(get)


def _header_facts(log: Log) -> dict[str, Any]:
    import msgspec

    from qbatch.workloads.left_out import left_out_of

    header = log.header
    return {
        "version": header.version,
        "computer": header.computer,
        "installation": header.installation,
        "max_jobs": header.max_jobs,
        "max_records": header.max_records,
        "max_nodes": header.max_nodes,
        "max_procs": header.max_procs,
        "max_runtime_s": header.max_runtime,
        "unix_start_time": header.unix_start_time,
        "time_zone": header.time_zone_string,
        "start_time": header.start_time,
        "end_time": header.end_time,
        "preemption": header.preemption,
        "queues": header.queues,
        "partitions": header.partitions,
        "acknowledge": list(header.acknowledgements),
        "notes": list(header.notes),
        "left_out": msgspec.to_builtins([*left_out_of(header)]),
    }


def _info_lines(facts: dict[str, Any]) -> list[str]:
    """Return the facts as aligned lines of text."""
    from qbatch.results.run_words import left_out_words

    header, jobs, span, load, sizes = (
        facts[key] for key in ("header", "jobs", "span", "load", "sizes")
    )
    estimates = facts["estimates"]
    top = ", ".join(f"{top['time_s']} ({top['jobs']:,})" for top in estimates["top"])
    pairs = [
        ("log", facts["log"]["name"]),
        ("sha256", facts["log"]["sha256"]),
        ("computer", header["computer"]),
        ("installation", header["installation"]),
        ("machine", _with_unit(facts["machine"]["procs"], "processors")),
        ("rows", f"{jobs['rows']:,}"),
        (
            "never ran",
            (
                f"{jobs['never_ran']:,} (no processors or no run time; {jobs['cancelled']:,} were "
                "cancelled)"
            ),
        ),
        ("run time 0", f"{jobs['zero_run']:,}"),
        ("longer than estimate", f"{jobs['longer_than_estimate']:,}"),
        ("wider than machine", _with_unit(jobs["wider_than_machine"])),
        ("without estimate", f"{jobs['without_estimate']:,}"),
        ("first submit", _instant(span["submit_first_s"], span["submit_first"])),
        ("last submit", _instant(span["submit_last_s"], span["submit_last"])),
        ("time zone", span["time_zone"]),
        ("offered load", _with_unit(load["offered"], "(work over machine x submit span)")),
        (
            "interarrival",
            f"{_with_unit(load['interarrival_mean_s'])} s mean, "
            f"{_with_unit(load['interarrival_median_s'])} s median",
        ),
        (
            "run time",
            f"{_with_unit(load['run_mean_s'])} s mean, {_with_unit(load['run_median_s'])} s median",
        ),
        (
            "sizes",
            f"{sizes['serial_percent']:.1f}% serial, {sizes['power_of_two_percent']:.1f}% powers "
            "of two, "
            f"{sizes['procs_mean']:.1f} processors mean, {sizes['procs_max']:,} at most",
        ),
        (
            "estimates",
            f"{estimates['distinct']:,} distinct{'; most popular: ' if top else ''}{top}",
        ),
        ("users", f"{facts['users']:,}"),
        ("submit ties", f"{facts['submit_ties']:,}"),
        ("not in log", left_out_words(header) or None),
        *(("note", note) for note in facts["notes"]),
    ]
    return [f"{name:<21} {_one_line(value)}" for name, value in pairs if value is not None]


def _one_line(text: str) -> str:
    """Return the text without line breaks and control characters, which a header may contain."""
    return "".join(character if character.isprintable() else " " for character in text)


def _with_unit(value: float | None, unit: str = "") -> str:
    if value is None:
        return "unknown"
    return (
        f"{value:,} {unit}".rstrip() if isinstance(value, int) else f"{value:,.3f} {unit}".rstrip()
    )


def _instant(second: float, date: str | None) -> str:
    return f"{second} s" if date is None else f"{second} s = {date}"


_UNITS = dict.fromkeys(
    ("submit", "wait", "run", "cpu_time", "time_requested", "think_time"), "s"
) | {
    "memory_used": "KB",
    "memory_requested": "KB",
}


def _print_rows(names: list[str], rows: list[list[str]]) -> None:
    """Print one row per job as plain aligned text.

    On a terminal, print them under headings with units, and split a wide table into several that
    begin with the job.
    """
    if not sys.stdout.isatty():
        widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
        for row in [names, *rows]:
            typer.echo(" ".join(text.rjust(width) for text, width in zip(row, widths, strict=True)))
        return
    from rich.console import Console
    from rich.table import Table

    console = Console()
    headings = [f"{name} ({_UNITS[name]})" if name in _UNITS else name for name in names]
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    tables, used = [[0]], widths[0]  # the columns of each table; the first column is in all of them
    for place, width in enumerate(widths[1:], 1):
        if used + 2 + width > console.width and len(tables[-1]) > 1:
            tables.append([0])
            used = widths[0]
        tables[-1].append(place)
        used += 2 + width
    for number, places in enumerate(tables):
        if number:
            console.print()
        table = Table(box=None, header_style="bold", pad_edge=False)
        for place in places:
            table.add_column(headings[place], justify="right", no_wrap=True)
        for row in rows:
            table.add_row(*(row[place] for place in places))
        console.print(table)
