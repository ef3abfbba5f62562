"""What the garbage collector has looked at for long, it leaves alone; a pass is not interrupted by
it."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from qbatch.daemon import collector
from qbatch.daemon.clock import Clock
from qbatch.daemon.core import passes
from qbatch.daemon.pass_driver import PassDriver
from qbatch.wire.requests import Spec, Submit
from tests.daemon.core.driver import ROOT, Bench


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    callbacks = list(gc.callbacks)
    gc.unfreeze()
    yield
    gc.callbacks[:] = callbacks
    gc.unfreeze()


@pytest.mark.parametrize(
    ("seconds", "is_spared"), [(2 * collector.LONG, True), (collector.LONG / 2, False)]
)
def test_what_was_looked_at_for_long_is_left_alone(seconds: float, is_spared: bool) -> None:
    times = iter([0.0, seconds])
    kept = [[number] for number in range(1000)]
    gc.callbacks.append(collector.Sparing(lambda: next(times)))
    gc.collect(1)  # not a full one: the clock is not asked
    gc.collect()
    assert (gc.get_freeze_count() >= len(kept)) is is_spared


def test_a_daemon_spares_what_is_there_and_what_comes() -> None:
    kept = [[number] for number in range(1000)]
    collector.spare_the_old()
    assert gc.get_freeze_count() >= len(kept)
    assert isinstance(gc.callbacks[-1], collector.Sparing)


@pytest.mark.parametrize("is_in_order", [True, False])
def test_a_pass_is_not_interrupted(monkeypatch: pytest.MonkeyPatch, is_in_order: bool) -> None:
    was_on = []

    def advance(*_: object) -> None:
        was_on.append(gc.isenabled())
        if not is_in_order:
            raise ValueError("a pass that raises")

    async def one_pass() -> None:
        bench = Bench()
        bench.do(ROOT, Submit(spec=Spec(script="true\n", runtime=1)))
        service: Any = SimpleNamespace(
            core=bench.core,
            containment=SimpleNamespace(is_spoiled=False, pass_failed=lambda _: None),
            failure=None,
            uncommitted=0,
            journal=lambda *_: None,
            collect=lambda: None,
            commit_soon=lambda: None,
        )
        PassDriver(service, Clock("virtual", 1.0), None).step_once()

    monkeypatch.setattr(passes, "advance", advance)
    asyncio.run(one_pass())
    assert was_on == [False]
    assert gc.isenabled()
