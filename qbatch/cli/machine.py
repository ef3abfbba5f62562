"""``qbatch machine``: check a machine file, and show what qbatch understood: hosts, partitions,
amounts of the server and reservations."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Annotated

import typer

from qbatch.cli.console import command_group, print_table, talk

if TYPE_CHECKING:
    from qbatch.model.machine import Host, Machine

app = command_group("Check a machine file, and show what qbatch understood.")

SCHEMA = "qbatch.machine/1"

FileArgument = Annotated[
    str, typer.Argument(metavar="FILE", help="Machine file (TOML), or the name of a shipped one.")
]


@app.command()
def check(file: FileArgument) -> None:
    """Check a machine file: every key, every value, and whether they fit together."""
    from qbatch.workloads.machines import load_machine

    talk(f"{file}: ok, {_in_words(load_machine(file))}")


@app.command()
def show(
    file: FileArgument,
    as_json: Annotated[bool, typer.Option("--json", help=f"Print JSON (schema {SCHEMA}).")] = False,
) -> None:
    """Show the hosts, partitions and reservations of a machine file, with a picture of the racks."""
    from qbatch.workloads.machines import load_machine

    machine = load_machine(file)
    if as_json:
        record = {
            "schema": SCHEMA,
            "procs": machine.procs,
            "digest": machine.digest,
            **machine.facts(),
        }
        typer.echo(json.dumps(record, indent=2))
        return
    typer.echo(f"{machine.name or file}: {_in_words(machine)}\n")
    _print_hosts(machine)
    if machine.partitions:
        typer.echo("")
        _print_partitions(machine)
    if machine.reservations:
        typer.echo("")
        _print_reservations(machine)
    typer.echo("")
    _print_racks(machine)


def _in_words(machine: Machine) -> str:
    hosts = machine.real_hosts
    parts = [
        f"{len(hosts):,} host{'s' * (len(hosts) != 1)}",
        f"{machine.procs:,} processors",
    ]
    totals = dict.fromkeys(machine.resources, 0)
    for host in machine.hosts:
        for name, amount in host.resources:
            totals[name] += amount
    parts += [f"{amount:,} {name}" for name, amount in totals.items()]
    for noun, there in (("partition", machine.partitions), ("reservation", machine.reservations)):
        if there:
            parts.append(f"{len(there)} {noun}{'s' * (len(there) != 1)}")
    return ", ".join(parts)


def _alike(hosts: Sequence[Host]) -> Iterator[tuple[str, Host, int]]:
    """Yield hosts that follow each other and differ in the name only: their names, one of them,
    their number."""
    from msgspec.structs import replace

    from qbatch.model.machine import fold_names

    for _, group in groupby(hosts, key=lambda host: replace(host, name="")):
        equal = list(group)
        yield ",".join(fold_names([host.name for host in equal])), equal[0], len(equal)


def _amounts(pairs: Sequence[tuple[str, int]]) -> str:
    return " ".join(f"{name}={amount}" for name, amount in pairs) or "-"


def _print_hosts(machine: Machine) -> None:
    from qbatch.model.machine import memory_text

    rows = [
        [
            names,
            _amounts(host.resources),
            " ".join(host.features) or "-",
            str(count),
            str(host.cpus),
            memory_text(host.memory) if host.memory else "-",
        ]
        for names, host, count in _alike(machine.real_hosts)
    ]
    if machine.server >= 0:
        server = machine.hosts[machine.server]
        rows.append(["(the server)", _amounts(server.resources), "-", "-", "-", "-"])
    headings = ["hosts", "resources", "features", "number", "processors", "memory"]
    print_table("Hosts", headings, rows, left=3)


def _span(microseconds: int) -> str:
    from qbatch.results.shown import span

    return span(microseconds) if microseconds else "-"


def _print_partitions(machine: Machine) -> None:
    from qbatch.model.machine import USUAL_TIER, fold_names, memory_text

    rows, has_rank = [], any(each.tier != USUAL_TIER for each in machine.partitions)
    has_billing = any(each.billing for each in machine.partitions)
    for each in machine.partitions:
        hosts = [machine.hosts[place] for place in each.hosts]
        most = memory_text(each.max_memory_per_cpu) if each.max_memory_per_cpu else "-"
        rows.append(
            [
                each.name + (" (default)" if each.is_default else ""),
                ",".join(fold_names([host.name for host in hosts])),
                each.share,
                str(sum(host.cpus for host in hosts)),
                _span(each.default_time),
                _span(each.max_time),
                f"{each.min_hosts or 1} to {each.max_hosts or len(hosts)}",
                most,
                *([str(each.tier)] if has_rank else []),
                *([_weights(each.billing)] if has_billing else []),
            ]
        )
    headings = ["partition", "hosts", "share", "processors", "default time", "most time"]
    headings += ["hosts of a job", "memory of a cpu"]
    headings += ["tier"] * has_rank + ["billing of an hour"] * has_billing
    print_table("Partitions", headings, rows, left=3)


def _weights(billing: Sequence[tuple[str, float]]) -> str:
    return ",".join(f"{name}={weight:g}" for name, weight in billing) or "cpus=1"


def _print_reservations(machine: Machine) -> None:
    from qbatch.model.machine import fold_names

    rows = [
        [
            each.name,
            ",".join(fold_names([machine.hosts[place].name for place in each.hosts])),
            "maintenance" if each.is_maintenance else "flexible" if each.is_flexible else "-",
            ",".join(each.users) or "all",
            each.start,
            _span(each.duration),
            each.repeat or "once",
        ]
        for each in machine.reservations
    ]
    headings = ["reservation", "hosts", "kind", "users", "start", "lasts", "repeats"]
    print_table("Reservations", headings, rows, left=4)


def _print_racks(machine: Machine) -> None:
    """Print a box for each rack, with its hosts; without racks, for each kind of equal hosts."""
    from msgspec.structs import replace
    from rich import box
    from rich.columns import Columns
    from rich.console import Console
    from rich.panel import Panel
    from rich.text import Text

    boxes: dict[str, dict[Host, list[Host]]] = {}
    has_racks = any(host.rack for host in machine.real_hosts)
    for host in machine.real_hosts:
        kind = replace(host, name="")
        rack = (host.rack or "no rack") if has_racks else str(kind)
        boxes.setdefault(rack, {}).setdefault(kind, []).append(host)
    panels = [
        Panel(
            Text(
                "\n".join(line for kind, hosts in kinds.items() for line in _in_a_box(kind, hosts))
            ),
            title=Text(rack) if has_racks else None,
            title_align="left",
            box=box.SQUARE,
            expand=False,
        )
        for rack, kinds in boxes.items()
    ]
    text = io.StringIO()
    Console(file=text, width=shutil.get_terminal_size().columns).print(Columns(panels))
    typer.echo("\n".join(line.rstrip() for line in text.getvalue().splitlines()))


def _in_a_box(kind: Host, hosts: Sequence[Host]) -> Iterator[str]:
    """Yield the names of equal hosts, and what each of them has."""
    from qbatch.model.machine import fold_names, memory_text

    typed = {name.partition(":")[0] for name, _ in kind.resources if ":" in name}
    parts = [f"{kind.cpus} cpus", *([memory_text(kind.memory)] if kind.memory else [])]
    parts += [f"{amount} {name}" for name, amount in kind.resources if name not in typed]
    yield ",".join(fold_names([host.name for host in hosts]))
    yield ("each " if len(hosts) > 1 else "") + ", ".join(parts)
