"""qbatch: an emulated batch system around one scheduling engine, and the library of it.

``import qbatch`` costs nothing, so that the short commands start fast: a public name loads its module when it is first used
(PEP 562).  The rooms, and who may import whom, are drawn in README.md and enforced by the import contracts in
``pyproject.toml``; what the names do is in ``docs/notebook.md`` and in their ``help()``.

``qbatch.replay`` is a room and a public function at once, and Python sets the attribute of a package to whatever submodule was
imported last.  So the attribute is the module in every order of imports, and the module can be called: it is the one object
that ``import qbatch.replay.prepare``, ``from qbatch import replay``, ``mock.patch`` and pickle all find under this name.  A
function in its place would be overwritten by the next import of the room, or break ``import qbatch.replay as room``.  The room
itself knows nothing of this: the class of its module is changed here, at the moment at which Python binds it to the package.
"""

import sys

from qbatch.distribution import __version__

TYPE_CHECKING = False
"""What ``typing`` has under this name, without the price of it: tools that check types take it for true."""

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
"""By module the public names that it holds."""

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
    """This package, which notices when the room that is a function too is bound to it."""

    def __setattr__(self, name: str, value: object) -> None:
        if name == _FUNCTION and type(value) is type(sys):
            value.__class__ = _CallableRoom
        super().__setattr__(name, value)


class _CallableRoom(type(sys)):  # type: ignore[misc]
    """A room that can be called: what ``help``, ``inspect`` and pickle ask of it is answered for the function."""

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
