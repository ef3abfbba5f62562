"""Entry points of the installed PBS commands: ``qsub`` is ``start:qsub``, and likewise each other
one (``[project.scripts]``).

A short command spends most of its time on imports (tests/bench/LIVE.md has the figures).  The
module saves two things before the first import.  The garbage collector does not run, because there
is nothing to free yet.  msgspec does not load ``typing_extensions``, which with its own imports
(``inspect``, ``ast``, ``tokenize``) takes a sixth of a start.  Without that package msgspec uses
``typing``, which has all that the records need.
"""

from __future__ import annotations

import gc
import sys
from importlib import import_module

TYPE_CHECKING = False
"""The constant of ``typing``, without importing that module."""

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from qbatch.cli.pbs.command import Command

SHARED = {
    **dict.fromkeys(
        ("qdel", "qhold", "qrls", "qmove", "qorder", "qrerun", "qrun", "qmsg", "qsig"),
        "job_commands",
    ),
    **dict.fromkeys(("pbs_rsub", "pbs_rstat", "pbs_rdel"), "reservations"),
    **dict.fromkeys(("qenable", "qdisable", "qstart", "qstop", "qterm"), "server_commands"),
}
"""Commands that share a module; each other command has a module of its own."""


def command_of(name: str) -> Command:
    """Return the command of this name."""
    command: Command = getattr(import_module(f"qbatch.cli.pbs.{SHARED.get(name, name)}"), name)
    return command


def __getattr__(name: str) -> Callable[[], NoReturn]:
    """Return the entry point of the command of this name (PEP 562).  None in ``sys.modules``
    prevents an import."""
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    gc.disable()
    sys.modules.setdefault("typing_extensions", None)  # type: ignore[arg-type]
    return command_of(name).main
