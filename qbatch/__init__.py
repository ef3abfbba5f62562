"""qbatch: an emulated batch system around one scheduling engine, and its library.

``import qbatch`` loads almost nothing, so that the short commands start fast: a public name loads its module when it is first
used (PEP 562).  README.md shows the packages and which may import which; the import contracts in ``pyproject.toml`` enforce
it.  ``docs/how-to/use-in-a-notebook.md`` and ``help()`` describe the public names.

``qbatch.replay`` is both a package and a public function, and Python sets the attribute of a package to the submodule that was
imported last.  So the attribute is always the module, and the module can be called.  ``import qbatch.replay.prepare``,
``from qbatch import replay``, ``mock.patch`` and pickle all find this one object under the name.  A function in its place would
be overwritten by the next import of the package, or break ``import qbatch.replay as package``.  The package itself does not
know of this: its class is changed here, when Python binds it to ``qbatch``.
"""

import sys

from qbatch.distribution import __version__

TYPE_CHECKING = False
"""The constant of ``typing``, without the cost of importing it; type checkers take it for true."""

if TYPE_CHECKING:
    from typing import Any

    from qbatch.client import ConnectionLost, NoDaemon
    from qbatch.library.comparing import Comparison, compare
    from qbatch.library.logs import generate, read_log, transform, write_log
    from qbatch.library.replaying import machine, policy, replay
    from qbatch.library.result import ReplayResult, read_result
    from qbatch.library.session import Session
    from qbatch.library.sweeping import SweepResult, read_sweep, sweep
    from qbatch.model.errors import AuditError, DecisionError, InputError, OutputError, QbatchError, UsageError
    from qbatch.model.machine import Machine
    from qbatch.planning.policy import Policy
    from qbatch.wire.errors import Refusal
    from qbatch.workloads.log import Log
    from qbatch.workloads.transform.deadlines import DeadlineLog

__all__ = [
    "AuditError", "Comparison", "ConnectionLost", "DeadlineLog", "DecisionError", "InputError", "Log", "Machine", "NoDaemon",
    "OutputError", "Policy", "QbatchError", "Refusal", "ReplayResult", "Session", "SweepResult", "UsageError", "__version__",
    "compare", "generate", "machine", "policy", "read_log", "read_result", "read_sweep", "replay", "sweep", "transform",
    "write_log",
]  # fmt: skip

_HOMES = {
    "qbatch.client": ("ConnectionLost", "NoDaemon"),
    "qbatch.library.comparing": ("Comparison", "compare"),
    "qbatch.library.logs": ("generate", "read_log", "transform", "write_log"),
    "qbatch.library.replaying": ("machine", "policy"),
    "qbatch.library.result": ("ReplayResult", "read_result"),
    "qbatch.library.session": ("Session",),
    "qbatch.library.sweeping": ("SweepResult", "read_sweep", "sweep"),
    "qbatch.model.errors": ("AuditError", "DecisionError", "InputError", "OutputError", "QbatchError", "UsageError"),
    "qbatch.model.machine": ("Machine",),
    "qbatch.planning.policy": ("Policy",),
    "qbatch.wire.errors": ("Refusal",),
    "qbatch.workloads.log": ("Log",),
    "qbatch.workloads.transform.deadlines": ("DeadlineLog",),
}
"""Public names by the module that holds them."""

_FUNCTION, _FUNCTION_HOME = "replay", "qbatch.library.replaying"


def __getattr__(name: str) -> "Any":
    from importlib import import_module

    if name == _FUNCTION:
        return import_module(f"{__name__}.{name}")
    for home, names in _HOMES.items():
        if name in names:
            found = getattr(import_module(home), name)
            globals()[name] = found
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Package(type(sys)):  # type: ignore[misc]
    """This package; it makes the package ``qbatch.replay`` callable when Python binds it."""

    def __setattr__(self, name: str, value: object) -> None:
        if name == _FUNCTION and type(value) is type(sys):
            value.__class__ = _CallableModule
        super().__setattr__(name, value)


class _CallableModule(type(sys)):  # type: ignore[misc]
    """A module that can be called; ``help``, ``inspect`` and pickle see the function."""

    def __call__(self, *given: "Any", **named: "Any") -> "Any":
        return self._function(*given, **named)

    @property
    def _function(self) -> "Any":
        from importlib import import_module

        return getattr(import_module(_FUNCTION_HOME), _FUNCTION)

    @property
    def __signature__(self) -> "Any":
        from inspect import signature

        return signature(self._function)

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        return f"replay{self.__signature__}\n\n{self._function.__doc__}"

    def __reduce__(self) -> "Any":
        from importlib import import_module

        return import_module, (self.__name__,)


sys.modules[__name__].__class__ = _Package
