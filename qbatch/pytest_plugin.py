"""The pytest plugin: a private batch server for tests, with real PBS commands.

Fixtures: ``qbatch_server``, a running :class:`Server`; ``qbatch_commands``, the same with the PBS commands on PATH for the
test and its children.  ``@pytest.mark.qbatch(config="...", executor="emulated")`` configures the server of a test.  The ini
option ``qbatch_scope`` or ``--qbatch-scope`` sets the lifetime of a server: ``function`` (default) or ``session``, in which
tests with the same configuration share a server.  This module imports nothing slow: pytest loads it in every run of an
environment in which qbatch is installed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from qbatch.library.private_server import PrivateServer
    from qbatch.library.session import Server

_OPTIONS = ("config", "executor", "policy", "time", "torque")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the option and its ini key."""
    text = "lifetime of a qbatch server: function, or session (tests with the same configuration share a server)"
    group = parser.getgroup("qbatch")
    group.addoption("--qbatch-scope", choices=("function", "session"), default=None, help=text)
    parser.addini("qbatch_scope", text, default="function")


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker."""
    config.addinivalue_line(
        "markers",
        "qbatch(config, executor, policy, time, torque): the server of this test: a configuration (TOML text, or the "
        "path of a file), process or emulated, a policy, real, x60 or virtual, Torque's commands",
    )


def __getattr__(name: str) -> Any:
    if name != "Server":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from qbatch.library.session import Server

    return Server


class _ServerPool:
    """The servers of a session, by configuration."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.servers: dict[tuple[Any, ...], PrivateServer] = {}

    def start(self, options: dict[str, Any]) -> PrivateServer:
        from qbatch.library.private_server import PrivateServer

        arguments = []
        for name in ("executor", "policy", "time"):
            if options.get(name):
                arguments += [f"--{name}", str(options[name])]
        config = options.get("config")
        if config is not None:
            config = str(config)
            if "=" in config or "\n" in config:  # a text, not a path
                number = len(list(self.directory.iterdir()))
                path = self.directory / f"qbatch-{number}.toml"
                path.write_text(config, encoding="utf-8")
                config = str(path)
        server = PrivateServer(*arguments, config=config, is_torque=bool(options.get("torque")))
        server.start()
        server.wait_until_up()
        return server

    def shared(self, options: dict[str, Any]) -> PrivateServer:
        key = tuple(str(options.get(name)) for name in _OPTIONS)
        if key not in self.servers:
            self.servers[key] = self.start(options)
        return self.servers[key]

    def stop(self) -> None:
        for server in self.servers.values():
            server.stop()


@pytest.fixture(scope="session")
def _qbatch_pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_ServerPool]:
    pool = _ServerPool(tmp_path_factory.mktemp("qbatch"))
    yield pool
    pool.stop()


@pytest.fixture
def qbatch_server(request: pytest.FixtureRequest, _qbatch_pool: _ServerPool) -> Iterator[Server]:
    """A private batch server: submit, wait, job, fault, hosts, environment, socket."""
    from qbatch.library.session import Server

    marker = request.node.get_closest_marker("qbatch")
    options = dict(marker.kwargs) if marker is not None else {}
    unknown = sorted(set(options) - set(_OPTIONS))
    if unknown or (marker is not None and marker.args):
        raise pytest.UsageError(f"qbatch marker: {unknown or marker.args}: known are {', '.join(_OPTIONS)}")
    scope = request.config.getoption("--qbatch-scope") or request.config.getini("qbatch_scope")
    if scope not in ("function", "session"):
        raise pytest.UsageError(f"qbatch_scope: {scope!r}: write function or session")
    if scope == "session":
        server = Server(_qbatch_pool.shared(options))
        yield server
        server.fault("clear")
        return
    private = _qbatch_pool.start(options)
    try:
        yield Server(private)
    finally:
        private.stop()


@pytest.fixture
def qbatch_commands(qbatch_server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """The server, with the PBS commands on PATH and the environment set for this process and its children."""
    import os

    wanted = qbatch_server.environment
    for name in [name for name in os.environ if name not in wanted]:
        monkeypatch.delenv(name)
    for name, value in wanted.items():
        if os.environ.get(name) != value:
            monkeypatch.setenv(name, value)
    return qbatch_server
