"""A world for each test; with and without control groups where that matters."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from qbatch.daemon.executors import process
from qbatch.daemon.executors.supervision import processes

from .world import World

PLAIN = """
import sys
sys.path.append({folder!r})
from supervision import loop, processes
processes.leaf_path = lambda key, token: ""
sys.exit(loop.main(sys.argv))
"""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    if made.root.exists():
        asyncio.run(end_everything(made))


async def end_everything(world: World) -> None:
    """Leave nothing running behind a test, whatever it did."""
    async with world.running():
        pass


@pytest.fixture(params=["groups where there are", "no groups"])
def either_way(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> bool:
    if request.param == "no groups":
        program = tmp_path / "supervisor_without_groups.py"
        program.write_text(
            PLAIN.format(folder=str(Path(process.SUPERVISOR).parent)), encoding="utf-8"
        )
        monkeypatch.setattr(process, "SUPERVISOR", str(program))
        return False
    return bool(processes.leaf_path("1.1", "0" * 32))
