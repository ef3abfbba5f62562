"""How the installed PBS commands start: ``qsub`` is ``start:qsub``, and so is each of them (``[project.scripts]``).

Most of what a short command costs is its imports (tests/bench/LIVE.md says how much).  Two things are spared before the first
import: the garbage collector does not run, because nothing is thrown away yet; and msgspec does not load
``typing_extensions``, which with what it imports (``inspect``, ``ast``, ``tokenize``) takes a sixth of a start.  msgspec falls
back to ``typing`` where that package is not installed, and ``typing`` knows all that our records use.
"""

from __future__ import annotations

import gc
import sys
from importlib import import_module

TYPE_CHECKING = False
"""What ``typing`` has under this name, without the price of it."""

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from qbatch.cli.pbs.command import Command

SHARED = {
    **dict.fromkeys(("qdel", "qhold", "qrls", "qmove", "qorder", "qrerun", "qrun", "qmsg", "qsig"), "job_commands"),
    **dict.fromkeys(("qenable", "qdisable", "qstart", "qstop", "qterm"), "server_commands"),
}
"""Commands that share a module; each other one has a module of its own."""


def command_of(name: str) -> Command:
    """Return the command of this name, which has its name in its module too."""
    command: Command = getattr(import_module(f"qbatch.cli.pbs.{SHARED.get(name, name)}"), name)
    return command


def __getattr__(name: str) -> Callable[[], NoReturn]:
    """Return the program of the command of this name (PEP 562).  A module that is None in ``sys.modules`` cannot be imported."""
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    gc.disable()
    sys.modules.setdefault("typing_extensions", None)  # type: ignore[arg-type]
    return command_of(name).main
