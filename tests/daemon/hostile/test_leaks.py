"""After thousands of jobs nothing is left: no descriptor, thread, run directory or zombie, and no
memory that grows."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from qbatch.client import ClientSession
from qbatch.daemon.outbox import Waiters
from qbatch.daemon.questions import jobs
from qbatch.wire.errors import Refusal
from qbatch.wire.records import Outcomes, SubmissionRecord
from qbatch.wire.requests import Spec, Submit, Wait
from tests.daemon.core.driver import Bench
from tests.daemon.harness import Daemon
from tests.daemon.hostile.tools import EMULATED, REAL, check, rss, settled_rss, until
from tests.harness import size


def counts(pid: int) -> tuple[int, int, int]:
    """Return open descriptors, threads and children that have ended but were not collected."""
    zombies = 0
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (
                (entry / "stat")
                .read_text(encoding="utf-8", errors="replace")
                .rpartition(")")[2]
                .split()
            )
        except OSError:
            continue
        zombies += words[0] == "Z" and int(words[1]) == pid
    return len(os.listdir(f"/proc/{pid}/fd")), len(os.listdir(f"/proc/{pid}/task")), zombies


def run_many(daemon: Daemon, count: int) -> None:
    """Submit jobs, wait for the last ones, and go."""
    with ClientSession(daemon.socket, timeout=120.0) as session:
        names = []
        for number in range(count):
            spec = Spec(
                script="sleep 0\n", name=f"j{number % 7}", output="/dev/null", error="/dev/null"
            )
            names.append(session.ask(Submit(spec=spec), SubmissionRecord).job)
        session.ask(Wait(jobs=tuple(names), timeout=110.0), Outcomes)


def test_emulated_jobs_leave_nothing_behind(tmp_path: Path) -> None:
    with Daemon(tmp_path, "--time", "virtual", config=EMULATED).start() as daemon:
        assert daemon.process is not None
        pid = daemon.process.pid
        batch = size(250, 10_000)
        # nightly: past what is kept at hand on purpose, 5000 finished records.
        run_many(daemon, 6 * batch)
        settled_rss(daemon)
        before, growths = counts(pid), []
        for _ in range(3):
            memory = rss(pid)
            run_many(daemon, 2 * batch)
            growths.append(rss(pid) - memory)
        until(lambda: counts(pid)[2] == 0, "no zombies")
        now = counts(pid)
        assert now[0] <= before[0] + 3, (before, now)
        assert now[1] <= before[1] + 2, (before, now)
        grown = sorted(growths)[1]
        print(f"emulated: {2 * batch} jobs, {grown / 1024:.0f} KiB more")
        assert grown < (6 << 20) + 4000 * 2 * min(batch, 2500)
        assert "integrity ok" in check(daemon)


def test_real_jobs_leave_nothing_behind(tmp_path: Path) -> None:
    with Daemon(tmp_path, config=REAL).start() as daemon:
        assert daemon.process is not None
        pid = daemon.process.pid
        run_many(daemon, 20)
        until(
            lambda: len(list((daemon.state / "run").iterdir())) == 1 and counts(pid)[2] == 0,
            "the end of the first twenty",
        )
        before, memory = counts(pid), settled_rss(daemon)
        run_many(daemon, size(60, 200))
        until(
            lambda: [each.name for each in (daemon.state / "run").iterdir()] == ["events"],
            "an empty run directory",
        )
        until(lambda: counts(pid)[2] == 0, "no zombies")
        until(
            lambda: counts(pid)[0] <= before[0] + 1 and counts(pid)[1] <= before[1] + 1,
            f"{before}, not {counts(pid)}",
        )
        print(f"real: {before} -> {counts(pid)}, {(rss(pid) - memory) / 1024:.0f} KiB more")
        assert rss(pid) - memory < 8 << 20
        assert "integrity ok" in check(daemon)


@pytest.mark.parametrize("until_what", ["end", "start"])
def test_waits_that_are_given_up_are_forgotten(until_what: str) -> None:
    bench = Bench()
    name = bench.submit(hold="u")
    waiters = Waiters()
    service: Any = SimpleNamespace(core=bench.core, waiters=waiters, store=None)

    async def go() -> None:
        stays = asyncio.ensure_future(
            jobs.wait(service, None, Wait(jobs=(name,), until=until_what))
        )  # type: ignore[arg-type]
        await asyncio.sleep(0)
        for _ in range(50):
            with pytest.raises(Refusal, match="not come to their"):
                await jobs.wait(
                    service, None, Wait(jobs=(name,) * 20, until=until_what, timeout=0.0)
                )  # type: ignore[arg-type]
        gone = asyncio.ensure_future(
            jobs.wait(service, None, Wait(jobs=(name,) * 20, until=until_what))
        )  # type: ignore[arg-type]
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.wait([gone])
        # One still waits.
        assert (
            sum(len(futures) for table in waiters._tables.values() for futures in table.values())
            == 1
        )
        stays.cancel()
        await asyncio.wait([stays])

    asyncio.run(go())
    assert not any(waiters._tables.values())  # no job for which no client waits is remembered
