"""``qbatch plot``: a picture of a result, as a file."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from qbatch.cli.console import talk


class Kind(StrEnum):
    """The pictures that there are; they are drawn in ``qbatch.reports.plots``."""

    gantt = "gantt"
    utilisation = "utilisation"
    queue = "queue"
    wait_hist = "wait-hist"
    slowdown_by_size = "slowdown-by-size"
    estimates = "estimates"


class Colouring(StrEnum):
    """What the colours of a Gantt chart can mean."""

    size = "size"
    user = "user"


def plot(
    result: Annotated[
        str, typer.Argument(metavar="RESULT", help="DIR or DIR:POLICY of a result, job rows, or a log with waits.")
    ],
    kind: Annotated[Kind, typer.Option("--kind", help="Which picture.")],
    out: Annotated[str | None, typer.Option("--out", "-o", help="PNG, SVG or PDF; else KIND.png.")] = None,
    policy: Annotated[
        list[str] | None, typer.Option("--policy", "-p", help="Only this policy; may be repeated.")
    ] = None,
    begin: Annotated[str | None, typer.Option("--from", help="Log seconds or ISO time.")] = None,
    end: Annotated[str | None, typer.Option("--to", help="Log seconds or ISO time; not shown any more.")] = None,
    procs: Annotated[int | None, typer.Option("--procs", min=1, help="Processors of the machine.")] = None,
    colour_by: Annotated[Colouring, typer.Option("--colour-by", help="Gantt chart: colours by this.")] = Colouring.size,
    title: Annotated[str | None, typer.Option("--title", help="Title, in place of our own.")] = None,
) -> None:
    """Draw a picture of a result: Gantt chart, utilisation, queue, waits, slowdowns or estimates."""
    from qbatch.reports.plot_style import checked_suffix, write_figure
    from qbatch.reports.plots import draw
    from qbatch.results.output import make_folder
    from qbatch.results.reading import read_named
    from qbatch.results.run_words import recorded_notes, short_name

    path = out if out is not None else f"{kind.value}.png"
    checked_suffix(path)
    read = read_named(result, procs=procs)
    for note in recorded_notes(read):
        talk(f"note: {note}")
    figure = draw(read, kind.value, policies=policy or [], begin=begin, end=end, title=title, colour_by=colour_by.value)
    make_folder(path)
    write_figure(figure, path)
    talk(f"wrote {path}: {kind.value} of {short_name(read.name)}")
