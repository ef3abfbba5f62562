"""The jobs that have ended, as the monitor pages through them: nothing twice, nothing lost when
more jobs end."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from qbatch.tui import asking
from qbatch.tui.asking import Asking
from qbatch.tui.board import Board
from qbatch.tui.query import Query
from qbatch.wire.records import JobRecord, Jobs
from qbatch.wire.requests import History
from tests.tui.scene import NOW, Scene, job


class Ended(Scene):
    """A daemon at which jobs have ended: page by page, the latest first."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.jobs: list[JobRecord] = [self.ended(number) for number in range(count)]

    def ended(self, number: int) -> JobRecord:
        return job(
            number,
            "F",
            ended=NOW + number,
            name="rare" if number % 997 == 0 else "common",
            procs=number % 7 + 1,
        )

    def _history(self, request: History) -> Jobs:
        latest = [
            each for each in reversed(self.jobs) if not request.name or each.name == request.name
        ]
        place = next((at for at, each in enumerate(latest, 1) if each.id == request.after), 0)
        page = latest[place : place + request.limit]
        return Jobs(
            jobs=tuple(page), next=page[-1].id if place + request.limit < len(latest) else ""
        )


def numbers(found: list[JobRecord]) -> list[int]:
    return [int(each.id.partition(".")[0]) for each in found]


def without_pauses(monkeypatch: Any) -> None:
    """Let answers take no time, however busy the machine is: the next question may follow at
    once."""
    monkeypatch.setattr(asking, "LEAST", 0.0)
    monkeypatch.setattr(asking, "time", SimpleNamespace(monotonic=lambda: 0.0))


async def settled(some: Asking, board: Board, messages: list[str]) -> None:
    """Let what is due be asked and answered."""
    count = len(messages)
    some.changed({"events"}, {"history"}, messages.append)
    for _ in range(50):
        if len(messages) > count:
            return
        await asyncio.sleep(0)


def test_what_was_paged_through_stays_when_more_jobs_end(monkeypatch: Any) -> None:
    without_pauses(monkeypatch)

    async def run() -> None:
        source, board, messages = Ended(3000), Board(), []  # type: ignore[var-annotated]
        some = Asking(board, source)
        await settled(some, board, messages)
        assert numbers(some.history) == list(range(2999, 2799, -1))
        some.more_history(messages.append)
        some.more_history(messages.append)  # the key goes on repeating
        for _ in range(50):
            await asyncio.sleep(0)
        assert numbers(some.history) == list(range(2999, 2599, -1))
        source.jobs.append(source.ended(3000))
        board.ended += 1
        await settled(some, board, messages)
        assert numbers(some.history) == list(range(3000, 2599, -1))
        some.more_history(messages.append)
        for _ in range(50):
            await asyncio.sleep(0)
        assert numbers(some.history) == list(range(3000, 2399, -1))

        for text, kept in (
            ("rare", 4),
            ("procs>=7", 428),
            ("user=alice procs>=7", 142),
            ("name=rare", 4),
            ("2991", 1),
        ):
            some.choose(Query(text), messages.append)
            await settled(some, board, messages)
            while some.more:
                some.more_history(messages.append)
                for _ in range(50):
                    await asyncio.sleep(0)
            expected = [each for each in reversed(source.jobs) if Query(text).keeps(each)]
            assert len(expected) >= kept
            assert some.history == expected, text

    asyncio.run(run())
