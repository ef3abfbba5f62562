"""``qbatch generate``: generate workload logs from models, as SWF on stdout or in a file."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Annotated

import typer

from qbatch.cli.console import command_group, print_table, talk, write_log_to
from qbatch.model.errors import UsageError

if TYPE_CHECKING:
    from qbatch.workloads import Log
    from qbatch.workloads.cluster import GeneratedCluster

SCHEMA = "qbatch.generate-facts/1"
CLUSTER_SCHEMA = "qbatch.generate-cluster/1"

app = command_group("Generate a workload log from a model.")


@app.command()
def origin2000(
    month: Annotated[str, typer.Option(metavar="YYYY-MM", help="Month, from 1999-10 to 2000-03.")],
    seed: Annotated[int, typer.Option(min=0, help="Seed; the same seed gives the same log.")] = 1,
    warmup_days: Annotated[
        int, typer.Option(help="Days of the previous month to add, 0 to 28.")
    ] = 7,
    out: Annotated[
        str,
        typer.Option("--out", "-o", metavar="FILE", help="SWF file (.gz compresses); - is stdout."),
    ] = "-",
    facts: Annotated[
        bool,
        typer.Option("--facts", help="Print a comparison with the paper's month, not the log."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the facts as JSON.")] = False,
) -> None:
    """Generate a month of NCSA's Origin 2000 after table 4 of Chiang and Vernon (2001)."""
    from qbatch.workloads.origin2000 import generate_month

    if facts or as_json:
        if out != "-":
            raise UsageError("--facts prints to stdout; leave out -o")
        _print_facts(month, seed, as_json=as_json)
        return
    write_log_to(generate_month(month, seed=seed, warmup_days=warmup_days), out)


@app.command()
def lublin(
    out: Annotated[
        str,
        typer.Option("--out", "-o", metavar="FILE", help="SWF file (.gz compresses); - is stdout."),
    ] = "-",
    jobs: Annotated[int, typer.Option(help="Number of jobs.")] = 10_000,
    procs: Annotated[int, typer.Option(help="Processors of the machine.")] = 128,
    types: Annotated[
        str,
        typer.Option(
            metavar="TYPES", help="Types of jobs: none, batch, interactive, or both in two queues."
        ),
    ] = "none",
    seed: Annotated[int, typer.Option(min=0, help="Seed; the same seed gives the same log.")] = 1,
    load: Annotated[
        float | None, typer.Option(help="Offered load to reach by stretching the arrivals.")
    ] = None,
    interarrival: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="Mean gap to reach by stretching the arrivals."),
    ] = None,
    estimates: Annotated[
        str,
        typer.Option(
            metavar="MODEL", help="exact (the run times) or tsafrir (what users request)."
        ),
    ] = "exact",
    estimate_max: Annotated[
        int | None,
        typer.Option(
            metavar="SECONDS",
            help="Largest estimate of tsafrir [whole hours, at least the longest run].",
        ),
    ] = None,
    ulow: Annotated[
        float | None, typer.Option(help="log2 of the smallest parallel size, plus or minus 0.2.")
    ] = None,
    umed: Annotated[
        float | None, typer.Option(help="log2 of the size that most jobs do not exceed.")
    ] = None,
    uhi: Annotated[float | None, typer.Option(help="log2 of the largest size.")] = None,
    uprob: Annotated[
        float | None, typer.Option(help="Share of the parallel jobs below umed.")
    ] = None,
) -> None:
    """Generate a log of the model of Lublin and Feitelson (2003)."""
    from qbatch.workloads.lublin import generate_lublin

    log = generate_lublin(
        jobs=jobs,
        procs=procs,
        types=types,
        seed=seed,
        load=load,
        interarrival=interarrival,
        estimates=estimates,
        estimate_max=estimate_max,
        ulow=ulow,
        umed=umed,
        uhi=uhi,
        uprob=uprob,
    )
    write_log_to(log, out)


@app.command()
def cluster(
    out: Annotated[
        str | None,
        typer.Option(
            "--out", "-o", metavar="LOG", help="SWF file (.gz compresses).", show_default=False
        ),
    ] = None,
    resources: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Side file (CSV) of resources [LOG.resources.csv]."),
    ] = None,
    machine_file: Annotated[
        str | None,
        typer.Option("--machine-file", metavar="FILE", help="Machine file (TOML) [LOG.toml]."),
    ] = None,
    days: Annotated[int, typer.Option(help="Days of submissions, 1 to 366.")] = 30,
    nodes: Annotated[int, typer.Option(help="Nodes of the cluster, 8 to 1024.")] = 64,
    load: Annotated[
        float, typer.Option(help="GPU time of the jobs over that of the cluster, 0.01 to 4.")
    ] = 0.8,
    seed: Annotated[int, typer.Option(min=0, help="Seed; the same seed gives the same files.")] = 1,
    facts: Annotated[
        bool,
        typer.Option("--facts", help="Print statistics next to published ones, not the files."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the statistics as JSON.")] = False,
) -> None:
    """Generate a GPU cluster of today: a log, its side file of resources, and its machine file."""
    from qbatch.workloads.cluster import cluster_log, generate_cluster

    if facts or as_json:
        if out is not None or resources is not None or machine_file is not None:
            raise UsageError(
                "--facts prints to stdout; leave out -o, --resources and --machine-file"
            )
        made = generate_cluster(days=days, nodes=nodes, load=load, seed=seed)
        _print_marginals(made, as_json=as_json)
        return
    if out is None or out == "-":
        raise UsageError(
            "generate cluster writes three files; name the log with -o, as in -o c.swf"
        )
    from qbatch.workloads.resource_rows import side_file_of

    resources = resources or side_file_of(out)
    machine_file = machine_file or f"{out.removesuffix('.gz').removesuffix('.swf')}.toml"
    if len({os.path.realpath(path) for path in (out, resources, machine_file)}) < 3:
        raise UsageError("-o, --resources and --machine-file must be three different files")
    _write_cluster(
        cluster_log(days=days, nodes=nodes, load=load, seed=seed), out, resources, machine_file
    )


def _write_cluster(made: Log, out: str, resources: str, machine_file: str) -> None:
    """Write the three files; after an error none of them is left."""
    from qbatch.model.machine_file import machine_as_toml
    from qbatch.results.output import make_folder, whole_file

    assert made.machine is not None, "a generated cluster has a machine"
    assert made.side is not None, "a generated cluster has a side file"
    for path in (resources, machine_file):
        make_folder(path)
    with whole_file(machine_file) as hosts, whole_file(resources) as side:
        hosts.write("\n".join((*machine_as_toml(made.machine), "")).encode())
        side.write(made.side.content)
        write_log_to(made, out)
    talk(f"replay it with --machine {machine_file} --resources {resources}")


def _print_marginals(made: GeneratedCluster, *, as_json: bool) -> None:
    from qbatch.workloads.cluster import MARGINALS

    if as_json:
        values = [
            {"name": each.name, "unit": each.unit, "value": each.measure(made)}
            | {"helios": each.helios, "philly": each.philly}
            for each in MARGINALS
        ]
        record = {"schema": CLUSTER_SCHEMA, "jobs": len(made.log), "statistics": values}
        typer.echo(json.dumps(record, indent=2, allow_nan=False))
        return
    rows = [
        [each.name, each.unit, f"{each.measure(made):,.4g}", each.helios, each.philly]
        for each in MARGINALS
    ]
    title = f"{len(made.log):,} jobs, next to published clusters (A, D, P, H: see the reference)"
    print_table(title, ["statistic", "unit", "generated", "Helios", "Philly"], rows, left=2)


def _print_facts(name: str, seed: int, *, as_json: bool) -> None:
    from qbatch.workloads.origin2000.month import month_record

    record = month_record(name, seed)
    if as_json:
        typer.echo(json.dumps({"schema": SCHEMA, **record}, indent=2, allow_nan=False))
        return
    demands = [
        [
            each["name"],
            str(each["jobs"]),
            str(each["procs_printed"]),
            f"{each['procs_percent']:.2f}",
            str(each["memory_printed"]),
            f"{each['memory_percent']:.2f}",
        ]
        for each in (record["overall"], *record["classes"])
    ]
    title = f"{name}, seed {seed}: demands in percent of the machine, as printed and as generated"
    print_table(title, ["class", "jobs", "processors", "generated", "memory", "generated"], demands)
    typer.echo("")
    lines = [
        [
            each["name"],
            f"{each['value']:.3f}",
            f"{each['low']:g} to {each['high']:g}",
            "" if each["in_range"] else "NO",
        ]
        for each in record["facts"]
    ]
    print_table("", ["of the jobs of the month", "value", "range", ""], lines)
