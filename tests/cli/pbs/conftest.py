from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.pbs.harness import Shell, jobs
from tests.wire.fake_server import FakeServer


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    directory = tmp_path / "work"
    directory.mkdir()
    with FakeServer(tmp_path / "s.sock", jobs()) as server:
        yield Shell(server, directory)
    assert os.path.isdir(directory)
