"""A program that plays the daemon: launches what is planned, keeps a ledger, and may be killed at
any instant.

``python -m tests.daemon.executors.driver DIRECTORY``: plan.json holds the attempts; intents and
ends are appended to ledgers, an intent before its launch, as the daemon commits before it launches.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import msgspec

from qbatch.daemon.executors.attempt import Attempt, Ended, Report
from qbatch.daemon.executors.process import ProcessExecutor


def append(path: Path, line: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(handle, line + b"\n")
    os.close(handle)


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines() if path.exists() else []


async def play(base: Path) -> None:
    plan = {
        each.key: each
        for each in msgspec.json.decode((base / "plan.json").read_bytes(), type=list[Attempt])
    }
    over = {msgspec.json.decode(line, type=Ended).key for line in lines(base / "ends")}
    intended = [line.decode() for line in lines(base / "intents")]
    all_over = asyncio.Event()

    def report(news: Report) -> None:
        if isinstance(news, Ended):
            append(base / "ends", msgspec.json.encode(news))
            over.add(news.key)
            if len(over) == len(plan):
                all_over.set()

    executor = ProcessExecutor(base / "run", report)
    await executor.recover([plan[key] for key in intended if key not in over])
    for key in plan:
        if key not in intended:
            append(base / "intents", key.encode())
            executor.launch(plan[key])
            await asyncio.sleep(0.02)
    if len(over) < len(plan):
        await all_over.wait()
    await executor.close()


if __name__ == "__main__":
    asyncio.run(play(Path(sys.argv[1])))
