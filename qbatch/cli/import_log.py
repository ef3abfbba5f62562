"""``qbatch import``: convert accounting files of a real batch system into a workload log."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from qbatch.cli.console import check_choice, progress_bar, refuse_given, talk
from qbatch.cli.import_outputs import check_output, print_summary
from qbatch.cli.import_table import import_table
from qbatch.model.errors import UsageError
from qbatch.model.machine import Machine

FORMATS = ("pbs", "slurm", "table")
UNITS = ("cores", "nodes")
SUBMISSIONS = ("submitted", "eligible")

_TWO_OUTPUTS = "--json and -o - both want standard output; name a file with -o"

Text = str | None


def import_log(
    form: Annotated[
        str,
        typer.Argument(
            metavar="FORMAT",
            help="pbs (accounting files), slurm (sacct --parsable2) or table (CSV, JSON, Parquet).",
        ),
    ],
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE", help="Files (also .gz or .xz) or directories; - is stdin."),
    ],
    out: Annotated[
        str,
        typer.Option("--out", "-o", metavar="LOG", help="SWF file (.gz compresses); - is stdout."),
    ],
    map_given: Annotated[
        Text,
        typer.Option(
            "--map",
            metavar="MAP",
            help="What the columns of a table mean: a map of qbatch (pm100, ...) or a FILE.toml.",
        ),
    ] = None,
    timezone: Annotated[
        Text,
        typer.Option(
            metavar="Area/City",
            help="Time zone of local times [this machine's; of a table: the map's].",
        ),
    ] = None,
    unit: Annotated[
        str, typer.Option(help="Unit of a processor in the log: cores or nodes.")
    ] = "cores",
    submit: Annotated[
        str,
        typer.Option(
            help="Start of the wait: submitted, or eligible (not held, dependent or timed)."
        ),
    ] = "submitted",
    queue: Annotated[
        list[str] | None,
        typer.Option("--queue", "--partition", help="Only this queue; may be repeated."),
    ] = None,
    user: Annotated[
        list[str] | None, typer.Option("--user", help="Only this user; may be repeated.")
    ] = None,
    cluster: Annotated[
        list[str] | None,
        typer.Option(
            "--cluster", "--server", help="Only this cluster (server of PBS); may be repeated."
        ),
    ] = None,
    since: Annotated[
        Text, typer.Option("--from", metavar="T", help="First submission (ISO time or seconds).")
    ] = None,
    before: Annotated[
        Text, typer.Option("--to", metavar="T", help="Only submissions before this instant.")
    ] = None,
    machine_procs: Annotated[
        int | None, typer.Option(min=1, help="Processors of the machine [the peak in use].")
    ] = None,
    machine_file: Annotated[
        Text,
        typer.Option(
            "--machine-file",
            metavar="FILE",
            help="Write a machine file (TOML) with the hosts seen.",
        ),
    ] = None,
    slurm_conf: Annotated[
        Text,
        typer.Option(
            "--slurm-conf", metavar="FILE", help="Make the machine file of this slurm.conf."
        ),
    ] = None,
    reservations: Annotated[
        Text,
        typer.Option(
            metavar="FILE",
            help="Put reservations into the machine file (output of scontrol -o show reservation).",
        ),
    ] = None,
    resources: Annotated[
        Text,
        typer.Option(
            metavar="FILE",
            help="Write nodes, memory, GPUs and partitions by job (CSV) [of tables: "
            "LOG.resources.csv].",
        ),
    ] = None,
    tasks: Annotated[
        bool,
        typer.Option(
            "--tasks",
            help="Follow the submit lines of Slurm: tasks on any hosts, all partitions (--resources).",
        ),
    ] = False,
    computer: Annotated[Text, typer.Option(help="Value of Computer in the header.")] = None,
    installation: Annotated[Text, typer.Option(help="Value of Installation in the header.")] = None,
    anonymize: Annotated[
        bool,
        typer.Option(
            "--anonymize", help="Replace the names of users, groups and accounts by numbers."
        ),
    ] = False,
    anonymize_queues: Annotated[
        bool, typer.Option("--anonymize-queues", help="Replace the names of queues too.")
    ] = False,
    key: Annotated[
        Text,
        typer.Option(
            "--key",
            metavar="FILE",
            help="Key that gives the same numbers in every import; created if missing.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a summary as JSON.")] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print no summary on stderr.")
    ] = False,
) -> None:
    """Make a workload log from the accounting files of a real cluster, or from tables of its jobs,
    to replay it under other policies."""
    from shlex import join

    from qbatch.distribution import __version__
    from qbatch.results.output import log_file, whole_file
    from qbatch.workloads.accounting import ImportOptions, import_files
    from qbatch.workloads.accounting.slurm_conf import other_cluster, read_site
    from qbatch.workloads.header import Header
    from qbatch.workloads.resource_rows import COLUMNS
    from qbatch.workloads.side_file import side_bytes
    from qbatch.workloads.swf_writer import write_log

    # The header of an anonymous log has nothing that could identify a user.
    command = "qbatch import ... --anonymize" if anonymize else join(["qbatch", *sys.argv[1:]])
    note = f"made by qbatch {__version__}: {command}"
    for option, value, known in (
        ("FORMAT", form, FORMATS),
        ("--unit", unit, UNITS),
        ("--submit", submit, SUBMISSIONS),
    ):
        check_choice(option, value, known)
    if form == "table":
        refuse_given(
            "a table of jobs takes what its map says ([filter] chooses rows)",
            {
                "--unit": unit != UNITS[0],
                "--submit": submit != SUBMISSIONS[0],
                "--queue": queue,
                "--user": user,
                "--cluster": cluster,
                "--from": since,
                "--to": before,
                "--machine-file": machine_file,
                "--slurm-conf": slurm_conf,
                "--anonymize": anonymize,
                "--anonymize-queues": anonymize_queues,
                "--key": key,
            },
        )
        if out == "-" and as_json:
            raise UsageError(_TWO_OUTPUTS)
        import_table(
            files,
            map_given=map_given,
            out=out,
            resources=resources,
            timezone=timezone,
            machine_procs=machine_procs,
            computer=computer,
            installation=installation,
            note=note,
            as_json=as_json,
            is_quiet=quiet,
        )
        return
    refuse_given("--map goes with tables", {"--map": map_given})
    _check_together(
        form,
        unit,
        anonymize=anonymize,
        anonymize_queues=anonymize_queues,
        key=key,
        has_two_outputs=out == "-" and as_json,
        machine_file=machine_file,
        slurm_conf=slurm_conf,
        reservations=reservations,
        resources=resources,
    )
    site = None if slurm_conf is None else read_site(slurm_conf, reservations)
    inputs = (slurm_conf, reservations, resources)
    check_output(out, [*files, *filter(None, inputs)], key, machine_file)
    options = ImportOptions(
        timezone=timezone,
        is_eligible_submit=submit == "eligible",
        queues=tuple(queue or ()),
        users=tuple(user or ()),
        clusters=tuple(cluster or ()),
        since=since,
        before=before,
        unit=unit,
        is_anonymous=anonymize,
        has_anonymous_queues=anonymize_queues,
        key=_key(key) if key is not None else None,
        machine_procs=machine_procs,
        site_procs=site.machine.procs if site is not None and unit == "cores" else 0,
        computer=computer,
        keeps_hosts=machine_file is not None and site is None,
        keeps_requests=resources is not None,
        keeps_tasks=tasks,
        is_time_sliced=site is not None and site.is_time_sliced,
        installation=installation,
        notes=(note,),
    )
    with progress_bar("reading", None, "DownloadColumn", is_quiet=quiet) as update:

        def move(path: str, count: int) -> None:
            if update is not None:
                total = os.path.getsize(path) if os.path.isfile(path) else None
                update(description=os.path.basename(path), completed=count, total=total)

        done = import_files(form, files, options, move)
    with log_file(out) as file:
        write_log(file, Header(lines=tuple(done.log.lines)), done.log.columns)
    if resources is not None:
        with whole_file(resources) as file:
            rows = ((job, *cells) for job, cells in enumerate(done.requests, 1) if cells)
            file.write(side_bytes(COLUMNS, rows))
    if machine_file is not None and site is not None:
        _write_machine(machine_file, site.remarks, site.machine)
        for remark in site.remarks if not quiet else ():
            talk(f"{slurm_conf}: {remark}")
        for remark in other_cluster(site.machine, done.document["jobs"]["clusters"], done.hosts):
            talk(f"warning: {slurm_conf} may be of another cluster: {remark}")
    seen = done.seen
    if machine_file is not None and seen is not None:
        _write_machine(machine_file, seen.remarks, seen.machine)
    if not quiet:
        print_summary(done.document, out, resources)
        if seen is not None:
            talk(
                f"machine file: {machine_file}: {len(seen.machine.hosts):,} hosts, "
                f"{seen.machine.procs:,} processors (of each "
                "host the most in use at once; hosts on which nothing ran are not in it); its "
                "comments describe the "
                "partitions"
            )
        elif machine_file is None and done.document["machine"]["hosts_seen"] and unit != "nodes":
            talk("--machine-file FILE writes the hosts seen as a machine file, for replay and up")
    if as_json:
        typer.echo(json.dumps(done.document, indent=2))


def _check_together(
    form: str,
    unit: str,
    *,
    anonymize: bool,
    anonymize_queues: bool,
    key: Text,
    has_two_outputs: bool,
    machine_file: Text,
    slurm_conf: Text,
    reservations: Text,
    resources: Text,
) -> None:
    """Refuse options that do not go together."""
    if (anonymize_queues or key is not None) and not anonymize:
        raise UsageError("--key and --anonymize-queues go with --anonymize; give it too")
    if has_two_outputs:
        raise UsageError(_TWO_OUTPUTS)
    if machine_file is not None and unit == "nodes":
        raise UsageError(
            "--machine-file counts processors of hosts, and --unit nodes counts hosts; leave one "
            "out"
        )
    if resources is not None and (anonymize or unit == "nodes"):
        raise UsageError(
            "--resources takes records by cores and with their names; leave it out, or leave out "
            "--anonymize and --unit"
        )
    if slurm_conf is not None and machine_file is None:
        raise UsageError("--slurm-conf goes with --machine-file FILE, which it writes; give it too")
    if reservations is not None and slurm_conf is None:
        raise UsageError(
            "--reservations goes with --slurm-conf, which names the hosts; give it too"
        )


def _write_machine(path: str, remarks: Sequence[str], machine: Machine) -> None:
    """Write a machine file, with remarks as comments before it."""
    from qbatch.model.machine_file import machine_as_toml
    from qbatch.results.output import whole_file

    lines = [*(f"# {remark}" for remark in remarks), "", *machine_as_toml(machine)]
    with whole_file(path) as file:
        file.write(("\n".join(lines) + "\n").encode(errors="replace"))


def _key(path: str) -> bytes:
    from qbatch.workloads.accounting.swf_log import read_or_make_key

    key, is_new, is_open = read_or_make_key(path)
    if is_new:
        talk(
            f"note: {path}: a new key; keep it, and keep it secret: later imports with it give the "
            "same numbers"
        )
    if is_open:
        talk(
            f"warning: {path}: others may read this key, and try names against the log; chmod 600 "
            f"{path}"
        )
    return key
