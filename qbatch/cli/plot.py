"""``qbatch plot``: draw a picture of a result or of a sweep into a file."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import Annotated

import typer

from qbatch.cli.console import OnlyPolicies, refuse_given, talk
from qbatch.model.errors import UsageError


class Kind(StrEnum):
    """The kinds of pictures; ``qbatch.reports.plots`` draws them."""

    gantt = "gantt"
    utilisation = "utilisation"
    queue = "queue"
    wait_hist = "wait-hist"
    slowdown_by_size = "slowdown-by-size"
    estimates = "estimates"
    hosts = "hosts"


class Colouring(StrEnum):
    """The possible meanings of the colours of a Gantt chart."""

    size = "size"
    user = "user"


def plot(
    result: Annotated[
        str,
        typer.Argument(
            metavar="RESULT",
            help="DIR or DIR:POLICY of a result, job rows, a log with waits, or a sweep.",
        ),
    ],
    kind: Annotated[
        Kind | None, typer.Option("--kind", help="Kind of picture of a result.")
    ] = None,
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", help="PNG, SVG or PDF file [KIND.png or sweep.png]."),
    ] = None,
    policy: OnlyPolicies = None,
    begin: Annotated[
        str | None, typer.Option("--from", help="Start of the picture: log seconds or ISO time.")
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", help="End of the picture: log seconds or ISO time.")
    ] = None,
    procs: Annotated[
        int | None, typer.Option("--procs", min=1, help="Processors of the machine.")
    ] = None,
    machine: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="For hosts: machine file; goes with --resources."),
    ] = None,
    resources: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="For hosts: what each job asks for (CSV)."),
    ] = None,
    resource: Annotated[
        str, typer.Option(metavar="NAME", help="For hosts: resource, such as gpu.")
    ] = "processors",
    colour_by: Annotated[
        Colouring, typer.Option("--colour-by", help="Colours of a Gantt chart.")
    ] = Colouring.size,
    columns: Annotated[
        int, typer.Option("--columns", min=1, max=2, help="Width: one or two columns of a journal.")
    ] = 2,
    grey: Annotated[bool, typer.Option("--grey", help="Draw in grey, for print.")] = False,
    title: Annotated[
        str | None, typer.Option("--title", help="Title, instead of the usual one.")
    ] = None,
    x: Annotated[
        str | None,
        typer.Option("--x", metavar="AXIS", help="For a sweep: horizontal axis, such as load."),
    ] = None,
    y: Annotated[
        str | None,
        typer.Option("--y", metavar="METRIC", help="For a sweep: metric, such as wait_mean."),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option("--by", metavar="AXIS", help="For a sweep: axis with a line per value."),
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            "--where", metavar="AXIS=VALUE", help="For a sweep: only this value; may be repeated."
        ),
    ] = None,
    log_scale: Annotated[
        bool, typer.Option("--log-scale", help="For a sweep: logarithmic scale of the metric.")
    ] = False,
) -> None:
    """Draw a picture of a result (Gantt chart, utilisation, queue, waits, slowdowns, estimates,
    hosts) or of a sweep."""
    from qbatch.sweeps.table import is_sweep

    if is_sweep(result):
        of_result = {
            "--kind": kind,
            "--policy": policy,
            "--from": begin,
            "--to": end,
            "--procs": procs,
            "--machine": machine,
            "--resources": resources,
            "--resource": resource != "processors",
        }
        refuse_given(
            f"{result} is a sweep: its pictures take --x, --y, --by and --where", of_result
        )
        _plot_sweep(
            result,
            out,
            x,
            y or "wait_mean_s",
            by or "policy",
            where or [],
            title,
            log_scale=log_scale,
            columns=columns,
            is_grey=grey,
        )
        return
    of_sweep = {"--x": x, "--y": y, "--by": by, "--where": where, "--log-scale": log_scale}
    refuse_given(f"{result} is no sweep: its pictures take --kind", of_sweep)
    if kind is None:
        raise UsageError(
            f"--kind is missing: name the picture of {result}, one of "
            f"{', '.join(each.value for each in Kind)}"
        )
    of_hosts = {
        "--machine": machine,
        "--resources": resources,
        "--resource": resource != "processors",
    }
    if kind is not Kind.hosts:
        refuse_given(f"--kind {kind.value} is no map of hosts", of_hosts)
    _plot_result(
        result,
        kind,
        out,
        policy,
        begin,
        end,
        procs,
        colour_by,
        title,
        machine,
        resources,
        resource,
        columns=columns,
        is_grey=grey,
    )


def _plot_sweep(
    path: str,
    out: str | None,
    x: str | None,
    y: str,
    by: str,
    where: list[str],
    title: str | None,
    *,
    log_scale: bool,
    columns: int,
    is_grey: bool,
) -> None:
    from qbatch.reports.plot_style import checked_suffix, write_figure
    from qbatch.reports.sweep_plot import SweepPicture, draw_sweep
    from qbatch.results.output import make_folder
    from qbatch.sweeps.table import read_sweep

    name = out if out is not None else "sweep.png"
    checked_suffix(name)
    chosen: dict[str, list[str]] = {}
    for pair in where:
        axis, sign, value = pair.partition("=")
        if not sign:
            raise UsageError(f"--where {pair!r}: write AXIS=VALUE, such as estimates=f:2")
        chosen.setdefault(axis, []).append(value)
    picture = SweepPicture(
        x, y, by, chosen, is_logarithmic=log_scale, title=title, columns=columns, is_grey=is_grey
    )
    figure = draw_sweep(read_sweep(path), picture)
    make_folder(name)
    write_figure(figure, name)
    talk(f"wrote {name}: {y} of {path}")


def _plot_result(
    result: str,
    kind: Kind,
    out: str | None,
    policy: list[str] | None,
    begin: str | None,
    end: str | None,
    procs: int | None,
    colour_by: Colouring,
    title: str | None,
    machine: str | None,
    resources: str | None,
    resource: str,
    *,
    columns: int,
    is_grey: bool,
) -> None:
    from qbatch.referee.reading import site_files
    from qbatch.reports.plot_style import checked_suffix, write_figure
    from qbatch.reports.plots import draw
    from qbatch.results.output import make_folder
    from qbatch.results.reading import read_named
    from qbatch.results.run_words import left_out_notes, recorded_notes, short_name

    path = out if out is not None else f"{kind.value}.png"
    checked_suffix(path)
    site, of_hosts = site_files(machine, resources, procs), None
    read = read_named(result, procs=procs)
    if site is not None:
        from qbatch.library.on_hosts import host_map_of, side_facts, with_requests

        of_hosts = host_map_of(site.machine, resource)
        schedules = tuple(
            with_requests(each, site.resources, is_log=read.is_recorded) for each in read.schedules
        )
        facts = {"resources": side_facts(site, schedules)}
        read = replace(read, schedules=schedules, document=read.document | facts)
    for note in (*recorded_notes(read), *left_out_notes(read.document)):
        talk(f"note: {note}")
    figure = draw(
        read,
        kind.value,
        policies=policy or [],
        begin=begin,
        end=end,
        title=title,
        colour_by=colour_by.value,
        columns=columns,
        is_grey=is_grey,
        of_hosts=of_hosts,
    )
    make_folder(path)
    write_figure(figure, path)
    talk(f"wrote {path}: {kind.value} of {short_name(read.name)}")
