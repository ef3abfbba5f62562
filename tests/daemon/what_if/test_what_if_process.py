"""The process of the what-if policies, without a daemon around it: what it is sent, when it is
given up."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from qbatch.daemon import what_if_process as shadows_module
from qbatch.daemon.core.state import Core
from qbatch.daemon.event_stream import EventStream
from qbatch.daemon.what_if_process import WhatIfProcess
from tests.daemon.core.driver import SECOND, Bench
from tests.daemon.what_if.driver import bench_of


class Service:
    """As much of a service as shadows ask."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.sent = 0
        self.event_stream = EventStream(self._count)

    def _count(self) -> list[Any]:
        self.sent += 1
        return []

    @property
    def core(self) -> Core:
        return self.bench.core

    def frontier(self) -> int:
        return self.bench.now

    def is_at_rest(self) -> bool:
        return True

    def commit_soon(self) -> None:
        raise AssertionError("all is committed")


def run(story: Callable[[Service, WhatIfProcess], Awaitable[None]], bench: Bench) -> None:
    async def whole() -> None:
        service = Service(bench)
        shadows = WhatIfProcess(service, service)  # type: ignore[arg-type]  # its core is a property
        try:
            await asyncio.wait_for(story(service, shadows), 60)
        finally:
            shadows.end()
            await asyncio.sleep(0.1)

    asyncio.run(whole())


async def so(is_so: Callable[[], bool]) -> None:
    while not is_so():
        await asyncio.sleep(0.02)


def test_a_child_that_falls_behind_is_given_up_and_nothing_waits_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shadows_module, "MOST_UNREAD", 200_000)
    bench = bench_of("fcfs")

    async def story(service: Service, shadows: WhatIfProcess) -> None:
        shadows.begin(["easy"])
        child = shadows.process
        assert child is not None
        await so(lambda: shadows.table().made is not None)
        os.kill(child, signal.SIGSTOP)
        for _ in range(500):
            bench.submit("x" * 1000)
        shadows.follow(bench.journal)
        await so(lambda: "fell behind" in shadows.table().note)
        assert shadows.process is None
        assert shadows.table().policies
        shadows.follow(bench.journal)  # it is followed no more
        await so(lambda: not Path(f"/proc/{child}").exists())

    run(story, bench)


def test_time_that_only_passes_is_sent_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shadows_module, "HEARTBEAT", 0.1)
    monkeypatch.setattr(shadows_module, "SELDOM", 0.1)
    bench = bench_of("fcfs")
    bench.now = 100 * SECOND

    async def story(service: Service, shadows: WhatIfProcess) -> None:
        shadows.begin(["easy", "conservative"])
        bench.now += 7 * SECOND
        await so(lambda: shadows.table().made == 107 * SECOND)
        assert shadows.table().since == 100 * SECOND
        assert [row.utilisation for row in shadows.table().policies] == [0, 0, 0]
        assert service.sent >= 2
        shadows.begin([])
        assert (shadows.process, shadows.policies, shadows.table().policies) == (None, (), ())

    run(story, bench)


def test_what_the_child_cannot_do_is_in_the_note(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(shadows_module.PolicyGroup):
        def __init__(self, *_: object) -> None:
            raise RuntimeError("no\nsuch thing")

    monkeypatch.setattr(shadows_module, "PolicyGroup", Broken)

    async def story(service: Service, shadows: WhatIfProcess) -> None:
        shadows.begin(["easy"])
        await so(lambda: shadows.process is None)
        assert "status 1" in shadows.table().note
        assert "RuntimeError: no such thing" in shadows.table().note

    run(story, bench_of("fcfs"))
