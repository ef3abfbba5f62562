"""The option ``--state DIR``, before or after the command: it selects the daemon that a command
talks to.

The choice is stored in the environment, which this process and its children read
(:mod:`qbatch.wire.paths`).
"""

from __future__ import annotations

import functools
import inspect
import os
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer


def choose(directory: Path | None) -> Path | None:
    """Make this process talk to the daemon of a directory, whatever the environment contains."""
    if directory is not None:
        os.environ["QBATCH_STATE"] = os.path.abspath(directory)
        os.environ.pop("QBATCH_SOCKET", None)
    return directory


STATE = typer.Option(
    None,
    "--state",
    metavar="DIR",
    callback=choose,
    help="Directory of the daemon, instead of the usual one.",
)
"""The option ``--state``; its value is in the environment before the command begins."""


def with_state(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command with ``--state`` in addition to its ``--socket``, unless ``--state`` has
    another meaning there."""
    signature = inspect.signature(command)
    if "socket" not in signature.parameters or "state" in signature.parameters:
        return command

    @functools.wraps(command)
    def chosen(*given: Any, state: Path | None = None, **named: Any) -> Any:
        return command(*given, **named)

    kinds = typing.get_type_hints(command, include_extras=True)
    own = [each.replace(annotation=kinds[each.name]) for each in signature.parameters.values()]
    option = inspect.Parameter(
        "state", inspect.Parameter.KEYWORD_ONLY, default=STATE, annotation=Path | None
    )
    chosen.__signature__ = signature.replace(parameters=[*own, option])  # type: ignore[attr-defined]
    chosen.__annotations__ = {**kinds, "state": Path | None}
    return chosen
