"""The pytest plugin: a private batch server for tests, with real PBS commands.

Fixtures: ``qbatch_server``, a running :class:`Server`; ``qbatch_commands``, the same with the PBS
commands on PATH for the test and its children.  ``@pytest.mark.qbatch(config="...",
executor="emulated")`` configures the server of a test.  The ini option ``qbatch_scope`` or
``--qbatch-scope`` sets the lifetime of a server: ``function`` (default) or ``session``, in which
tests with the same configuration share a server.  This module imports nothing slow: pytest loads it
in every run of an environment in which qbatch is installed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from qbatch.library.session import Server, Session

_OPTIONS = ("config", "executor", "policy", "time", "torque")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the option and its ini key."""
    text = (
        "lifetime of a qbatch server: function, or session (tests with the same configuration "
        "share a server)"
    )
    group = parser.getgroup("qbatch")
    group.addoption("--qbatch-scope", choices=("function", "session"), default=None, help=text)
    parser.addini("qbatch_scope", text, default="function")


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker."""
    config.addinivalue_line(
        "markers",
        "qbatch(config, executor, policy, time, torque): the server of this test: a configuration "
        "(TOML text, or the "
        "path of a file), process or emulated, a policy, real, x60 or virtual, Torque's commands",
    )


def __getattr__(name: str) -> Any:
    if name != "Server":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from qbatch.library.session import Server

    return Server


@pytest.fixture(scope="session")
def _qbatch_servers() -> Iterator[dict[tuple[str, ...], Session]]:
    """The servers of a session, by configuration."""
    servers: dict[tuple[str, ...], Session] = {}
    yield servers
    for server in servers.values():
        server.stop()


@pytest.fixture
def qbatch_server(
    request: pytest.FixtureRequest, _qbatch_servers: dict[tuple[str, ...], Session]
) -> Iterator[Server]:
    """A private batch server: submit, wait, job, fault, hosts, environment, socket."""
    from qbatch.library.session import Session

    marker = request.node.get_closest_marker("qbatch")
    options = dict(marker.kwargs) if marker is not None else {}
    unknown = sorted(set(options) - set(_OPTIONS))
    if unknown or (marker is not None and marker.args):
        raise pytest.UsageError(
            f"qbatch marker: {unknown or marker.args}: known are {', '.join(_OPTIONS)}"
        )
    scope = request.config.getoption("--qbatch-scope") or request.config.getini("qbatch_scope")
    if scope not in ("function", "session"):
        raise pytest.UsageError(f"qbatch_scope: {scope!r}: write function or session")
    options["torque"] = bool(options.get("torque"))
    if scope == "function":
        with Session(**options) as server:
            yield server
        return
    key = tuple(str(options.get(name)) for name in _OPTIONS)
    if key not in _qbatch_servers:
        _qbatch_servers[key] = Session(**options).__enter__()
    yield _qbatch_servers[key]
    _qbatch_servers[key].fault("clear")


@pytest.fixture
def qbatch_commands(qbatch_server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """The server, with the PBS commands on PATH and the environment set for this process and its
    children."""
    import os

    wanted = qbatch_server.environment
    for name in [name for name in os.environ if name not in wanted]:
        monkeypatch.delenv(name)
    for name, value in wanted.items():
        if os.environ.get(name) != value:
            monkeypatch.setenv(name, value)
    return qbatch_server
