"""No daemon outlives the test that started it, also when the test fails."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.daemon.harness import Daemon


@pytest.fixture(autouse=True)
def _no_daemon_is_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    started: list[Daemon] = []
    start = Daemon.start

    def noted(self: Daemon, *words: str, **options: Any) -> Daemon:
        if self.directory.is_relative_to(tmp_path):
            started.append(self)
        return start(self, *words, **options)

    monkeypatch.setattr(Daemon, "start", noted)
    yield
    for daemon in started:
        if daemon.process is not None and daemon.process.poll() is None:
            daemon.process.kill()
            daemon.process.wait(60)
