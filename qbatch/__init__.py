"""qbatch: an emulated batch system around one scheduling engine, and its library.

``import qbatch`` is cheap, so that the short commands start fast: a public name loads its module at
its first use (PEP 562). The packages and their imports are described in docs/design.md and enforced
by the import contracts in ``pyproject.toml``. The guide docs/how-to/use-in-a-notebook.md and
``help()`` describe the public names.
"""

from qbatch.distribution import __version__

TYPE_CHECKING = False
"""The constant of ``typing`` under the same name, without the cost of importing it; type checkers
take it for true."""

if TYPE_CHECKING:
    from typing import Any

    from qbatch.client import ConnectionLost, NoDaemon
    from qbatch.library.comparing import Comparison, compare
    from qbatch.library.gym import AgentPolicy as AgentPolicy
    from qbatch.library.gym import SchedulingEnv as SchedulingEnv
    from qbatch.library.logs import generate, read_log, transform, write_log
    from qbatch.library.replaying import machine, policy, replay
    from qbatch.library.result import ReplayResult, read_result
    from qbatch.library.session import Session
    from qbatch.library.sweeping import SweepResult, read_sweep, sweep
    from qbatch.model.errors import (
        AuditError,
        DecisionError,
        InputError,
        OutputError,
        QbatchError,
        UsageError,
    )
    from qbatch.model.machine import Machine
    from qbatch.planning.policy import Policy
    from qbatch.wire.errors import Refusal
    from qbatch.workloads.log import Log
    from qbatch.workloads.transform.deadlines import DeadlineLog

__all__ = [
    "AuditError",
    "Comparison",
    "ConnectionLost",
    "DeadlineLog",
    "DecisionError",
    "InputError",
    "Log",
    "Machine",
    "NoDaemon",
    "OutputError",
    "Policy",
    "QbatchError",
    "Refusal",
    "ReplayResult",
    "Session",
    "SweepResult",
    "UsageError",
    "__version__",
    "compare",
    "generate",
    "machine",
    "policy",
    "read_log",
    "read_result",
    "read_sweep",
    "replay",
    "sweep",
    "transform",
    "write_log",
]

_MODULES = {
    "qbatch.client": ("ConnectionLost", "NoDaemon"),
    "qbatch.library.comparing": ("Comparison", "compare"),
    "qbatch.library.gym": ("AgentPolicy", "SchedulingEnv"),
    "qbatch.library.logs": ("generate", "read_log", "transform", "write_log"),
    "qbatch.library.replaying": ("machine", "policy", "replay"),
    "qbatch.library.result": ("ReplayResult", "read_result"),
    "qbatch.library.session": ("Session",),
    "qbatch.library.sweeping": ("SweepResult", "read_sweep", "sweep"),
    "qbatch.model.errors": (
        "AuditError",
        "DecisionError",
        "InputError",
        "OutputError",
        "QbatchError",
        "UsageError",
    ),
    "qbatch.model.machine": ("Machine",),
    "qbatch.planning.policy": ("Policy",),
    "qbatch.wire.errors": ("Refusal",),
    "qbatch.workloads.log": ("Log",),
    "qbatch.workloads.transform.deadlines": ("DeadlineLog",),
}
"""The modules that hold the public names."""

_EXTRAS = {"qbatch.library.gym": ("gymnasium", "gym")}
"""Modules that need a package of an extra: the package and the extra.  ``from qbatch import *``
leaves their names out."""


def __getattr__(name: str) -> "Any":
    from importlib import import_module

    for module, names in _MODULES.items():
        if name in names:
            try:
                found = getattr(import_module(module), name)
            except ModuleNotFoundError as error:
                package, extra = _EXTRAS.get(module, ("", ""))
                if error.name != package:
                    raise
                from qbatch.distribution import install_command

                raise ImportError(
                    f"qbatch.{name} needs {package}: {install_command(extra)}", name=package
                ) from error
            globals()[name] = found
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(
        name for names in (__all__, *(_MODULES[module] for module in _EXTRAS)) for name in names
    )
