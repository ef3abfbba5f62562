"""``qbatch states``: the states of a job, drawn from the table that the engine follows."""

from __future__ import annotations

from typing import Annotated

import typer

from qbatch.model.errors import UsageError, suggestion

_FORMATS = ("text", "mermaid", "dot")


def states(
    style: Annotated[
        str, typer.Option("--format", metavar="text|mermaid|dot", help="Format of the drawing.")
    ] = "text",
) -> None:
    """Draw the states of a job and the legal transitions between them."""
    if style not in _FORMATS:
        raise UsageError(
            f"--format {style!r}: use {', '.join(_FORMATS)}{suggestion(style, _FORMATS)}"
        )
    from qbatch.engine.states import diagram

    typer.echo(diagram(style))
