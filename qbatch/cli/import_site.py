"""``qbatch import site``: make a machine file of a site's own configuration."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from qbatch.cli.console import talk
from qbatch.cli.import_outputs import check_output
from qbatch.model.errors import UsageError

SCHEMA = "qbatch.import-site/1"

File = str | None


def import_site(
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="SITE", help="Machine file (TOML); - is stdout.")
    ],
    slurm: Annotated[File, typer.Option(metavar="FILE", help="The site's slurm.conf.")] = None,
    gres: Annotated[File, typer.Option(metavar="FILE", help="Its gres.conf.")] = None,
    sacctmgr: Annotated[
        File, typer.Option(metavar="FILE", help="Accounts and users: a file of sacctmgr dump.")
    ] = None,
    assoc: Annotated[
        File,
        typer.Option(
            metavar="FILE",
            help="Accounts and users: sacctmgr -P show assoc, with the column ParentName.",
        ),
    ] = None,
    qos: Annotated[
        File, typer.Option(metavar="FILE", help="QOS: the output of sacctmgr -P show qos.")
    ] = None,
    reservations: Annotated[
        File,
        typer.Option(metavar="FILE", help="The output of scontrol -o show reservation."),
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Leave out a setting that is refused; may be repeated."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help=f"Print what was used and ignored as JSON ({SCHEMA}).")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print no summary on stderr.")
    ] = False,
) -> None:
    """Make a machine file of a site's own files: hosts, partitions, accounts, QOS, limits, priorities
    and passes."""
    if slurm is None:
        raise UsageError("--slurm names the slurm.conf of the site; without it there are no hosts")
    if sacctmgr is not None and assoc is not None:
        raise UsageError("--sacctmgr and --assoc both name the accounts; give one of them")
    if out == "-" and as_json:
        raise UsageError("--json and -o - both want standard output; name a file with -o")
    from qbatch.model.machine_file import machine_as_toml
    from qbatch.results.output import whole_file
    from qbatch.workloads.site.notes import SiteNotes
    from qbatch.workloads.site.slurm_site import SlurmFiles, read_slurm_site

    files = SlurmFiles(slurm, gres, sacctmgr, assoc, qos, reservations)
    check_output(out, [each for each in files if each is not None])
    notes = SiteNotes(frozenset(without or ()))
    machine = read_slurm_site(files, notes)
    notes.check()
    text = "\n".join(machine_as_toml(machine)) + "\n"
    if out == "-":
        typer.echo(text, nl=False)
    else:
        with whole_file(out) as file:
            file.write(text.encode(errors="surrogateescape"))
    if as_json:
        kinds = {"used": notes.used, "ignored": notes.ignored}
        record = {name: [each._asdict() for each in found] for name, found in kinds.items()}
        typer.echo(json.dumps({"schema": SCHEMA, **record}, indent=2))
    elif not quiet:
        named = "standard output" if out == "-" else out
        talk(f"{named}: {len(machine.real_hosts)} hosts; {len(notes.used)} settings are used")
        for place, name, why in notes.ignored:
            talk(f"{place}: {name}: {why}")
        if assoc is None and sacctmgr is None:
            talk(
                "no accounts: give a file of sacctmgr dump with --sacctmgr for fair share and limits"
            )
        if qos is None:
            talk("no QOS: give the output of sacctmgr -P show qos with --qos")
