"""An executor in a temporary world: attempts are made short to write, and everything is waited for,
never slept for."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from qbatch.daemon.executors.attempt import Attempt, Ended, Report, Started
from qbatch.daemon.executors.process import ProcessExecutor

DEADLINE = 40.0


class World:
    """Attempts, one executor after the other on the same run directory, and what they reported."""

    def __init__(self, base: Path) -> None:
        self.base, self.root = base, base / "run"
        self.reports: list[Report] = []
        self.executor: ProcessExecutor

    def attempt(self, key: str, script: str | None, **changes: object) -> Attempt:
        values: dict[str, object] = {
            "key": key,
            "job_id": key,
            "script": script,
            "argv": (),
            "shell": "/bin/sh",
            "environment": {"PATH": "/usr/bin:/bin"},
            "directory": str(self.base),
            "output": str(self.base / f"{key}.o"),
            "error": str(self.base / f"{key}.e"),
            "join": "n",
            "node_file": ("alpha", "alpha", "beta"),
            "walltime": None,
            "grace": 1.0,
            "uid": os.getuid(),
            "gid": os.getgid(),
        }
        return Attempt(**{**values, **changes})  # type: ignore[arg-type]

    @asynccontextmanager
    async def running(self, *expected: Attempt) -> AsyncIterator[ProcessExecutor]:
        self.executor = ProcessExecutor(self.root, self.reports.append)
        await self.executor.recover(list(expected))
        try:
            yield self.executor
        finally:
            await self.executor.close()

    def started(self, key: str) -> Started | None:
        return next(
            (each for each in self.reports if isinstance(each, Started) and each.key == key), None
        )

    def ended(self, key: str) -> Ended | None:
        return next(
            (each for each in self.reports if isinstance(each, Ended) and each.key == key), None
        )

    async def end_of(self, key: str) -> Ended:
        await until(lambda: self.ended(key) is not None)
        found = self.ended(key)
        assert found is not None
        return found

    async def start_of(self, key: str) -> Started:
        await until(lambda: self.started(key) is not None)
        found = self.started(key)
        assert found is not None
        return found

    def run(self, script: str | None, key: str = "1.1", /, **changes: object) -> Ended:
        """Run one attempt from beginning to end."""

        async def go() -> Ended:
            async with self.running() as executor:
                executor.launch(self.attempt(key, script, **changes))
                return await self.end_of(key)

        return asyncio.run(go())

    def text(self, name: str) -> str:
        return (self.base / name).read_text(encoding="utf-8")


async def until(holds: Callable[[], object], seconds: float = DEADLINE) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "waited in vain"
        await asyncio.sleep(0.01)


def named(mark: str) -> list[int]:
    """Living processes with the mark among their arguments."""
    found = []
    for pid in os.listdir("/proc"):
        if pid.isdigit() and int(pid) != os.getpid():
            try:
                arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                state = (
                    Path(f"/proc/{pid}/stat")
                    .read_text(encoding="utf-8", errors="replace")
                    .rpartition(")")[2]
                    .split()[0]
                )
            except OSError:
                continue
            if mark.encode() in arguments and state not in "ZX":
                found.append(int(pid))
    return found


def supervisor_of(world: World, key: str) -> int:
    """Process number from the claim of an attempt."""
    import json

    return int(json.loads((world.root / key / "claim").read_text(encoding="utf-8"))["pid"])
