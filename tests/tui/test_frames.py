"""What is on the screen is one instant: numbers agree, nothing is drawn of an instant that is not
over, axes show the scale."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from textual.pilot import Pilot

from qbatch.cli.main import run as run_command
from qbatch.tui.app import Monitor
from qbatch.tui.board import Board
from qbatch.tui.live import Live
from qbatch.tui.panels.charts import LiveChart
from qbatch.tui.panels.jobs import JobTable, run_time, walltime_of
from qbatch.tui.panels.status import Status
from qbatch.tui.playback import Playback
from qbatch.tui.schedule_recording import open_recording
from qbatch.wire.frames import encode
from qbatch.wire.records import ClockRecord, EventRecord
from qbatch.wire.requests import Shadow
from tests.tui.scene import (
    CLOCK,
    HOSTS,
    MINUTE,
    NOW,
    QUEUES,
    RUNNING,
    SERVER,
    WAITING,
    Scene,
    job,
    requests_of,
)
from tests.tui.test_keys import play, press, settle


class Wall:
    """A clock of the wall that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("played") / "result"
    assert (
        run_command(
            ["replay", "traces/deep-queue-256.swf.gz", "-p", "easy", "--out", str(out), "--quiet"]
        )
        == 0
    )
    return str(out)


def lines_of(panel: Any) -> list[str]:
    return [
        "".join(segment.text for segment in panel.render_line(y)) for y in range(panel.size.height)
    ]


def agree(app: Monitor) -> int:
    """Hold what is drawn now to itself: the header, the panels, the bars; return how many jobs
    wait."""
    header = app.query_one(Status).render().plain
    queued = int(re.search(r"([\d,]+) queued", header)[1].replace(",", ""))  # type: ignore[index]
    running = int(re.search(r"([\d,]+) running", header)[1].replace(",", ""))  # type: ignore[index]
    waiting, table = app.query_one("#waiting", JobTable), app.query_one("#running", JobTable)
    assert (queued, running) == (len(waiting.rows), len(table.rows))
    assert str(waiting.border_subtitle) == f"{queued:,}"
    assert lines_of(app.query_one("#hosts")) is not None
    assert sum(int(row.resources["ncpus"]) for row in table.rows) == app.shown.grid.busy
    shares = [int(found) for line in lines_of(table) for found in re.findall(r"(\d+)%", line)]
    assert all(share <= 100 for share in shares), shares
    for row in table.rows:
        assert run_time(row, app.shown.now()) <= walltime_of(row), row
        assert row.started is not None
        assert row.started <= app.shown.now()
    for row in waiting.rows:
        assert row.submitted is not None
        assert row.submitted <= app.shown.now()
    return queued


@pytest.mark.parametrize("speed", [1e4, 3e5])
def test_a_frame_of_a_fast_recording_is_one_instant(result: str, speed: float) -> None:
    wall = Wall()

    async def run() -> list[int]:
        source = Playback(open_recording(result), wall=wall)
        source.speed = speed
        app = Monitor(source)
        seen = []
        async with app.run_test(size=(160, 50)) as pilot:
            await settle(pilot)
            for _ in range(12):
                wall.now += 0.25
                await asyncio.sleep(0.06)  # the source moves on, at any place of its work
                app.paint()
                await pilot.pause()
                for _ in range(5):  # what is drawn later is of the same instant
                    wall.now += 0.1
                    await asyncio.sleep(0.011)
                    seen.append(agree(app))
        return seen

    seen = asyncio.run(run())
    assert len(set(seen)) > 3


def test_run_until_stops_behind_the_whole_instant(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_text("; MaxProcs: 4\n0 10 2 10\n0 10 2 10\n10 5 4 5\n", encoding="utf-8")
    assert (
        run_command(["replay", str(log), "-p", "easy", "--out", str(tmp_path / "r"), "--quiet"])
        == 0
    )
    wall = Wall()

    async def run() -> tuple[set[str], set[str]]:
        source, board = Playback(open_recording(str(tmp_path / "r")), wall=wall), Board(wall=wall)
        task = asyncio.create_task(source.run(board))
        await asyncio.sleep(0.1)
        source.speed = 1.0
        await source.drive("until-end", job="1")
        for _ in range(20):
            wall.now += 2.0
            await asyncio.sleep(0.06)
        task.cancel()
        assert source.is_paused
        return {name.partition(".")[0] for name in board.running}, set(board.waiting)

    # At second 10 both jobs end, the third one comes and starts: all of it, or nothing.
    assert asyncio.run(run()) == ({"3"}, set())


def test_an_instant_that_comes_in_two_pieces_is_taken_at_once() -> None:
    def frame(event: EventRecord) -> bytes:
        return encode(msgspec.json.encode({"event": event}))

    starts = EventRecord(
        number=1, at=NOW, kind="started", job="10.qbatch", record=job(10, "R", hosts=("n4",))
    )
    ends = EventRecord(
        number=2, at=NOW, kind="ended", job="1.qbatch", record=job(1, "F", ended=NOW)
    )
    late = EventRecord(
        number=3, at=NOW + 1, kind="ended", job="2.qbatch", record=job(2, "F", ended=NOW)
    )

    async def run() -> list[int]:
        board, source = Board(), Live("/nonexistent")
        board.load(SERVER, HOSTS, QUEUES, RUNNING, WAITING)
        reader = asyncio.StreamReader()
        reading = asyncio.create_task(source._read(reader, board))
        seen = []
        both, last = frame(starts) + frame(ends), frame(late)
        for piece in (both[:-5], both[-5:], last[:9], last[9:]):
            reader.feed_data(piece)
            for _ in range(3):
                await asyncio.sleep(0)
            seen.append(board.number)
        reading.cancel()
        return seen

    assert asyncio.run(run()) == [0, 2, 2, 3]


def test_scaled_time_does_not_pass_an_end_whose_event_is_on_its_way() -> None:
    wall = Wall()
    board, shown = Board(wall=wall), Board(wall=wall)
    running = [job(1, "R", hosts=("n1",), started=NOW - 59 * MINUTE)]
    clock = ClockRecord(mode="scaled", now=NOW, speed=5000.0)
    board.load(msgspec.structs.replace(SERVER, clock=clock), HOSTS, QUEUES, running, [])
    wall.now += 0.001
    shown.frame(board, board.take_changed())
    assert shown.now() == pytest.approx(NOW + 5_000_000, abs=2)
    wall.now += 0.012
    shown.frame(board, {"clock"})
    assert shown.now() == NOW + MINUTE
    wall.now += 0.001
    assert shown.now() == NOW + MINUTE
    board.apply(
        EventRecord(
            number=1,
            at=NOW + MINUTE,
            kind="ended",
            job="1.qbatch",
            record=job(1, "F", ended=NOW + MINUTE),
        )
    )
    wall.now += 0.001
    shown.frame(board, board.take_changed())
    assert shown.now() == pytest.approx(NOW + MINUTE + 15_000_000, abs=2)
    assert shown.grid.busy == 0


def test_charts_keep_their_width_when_a_panel_was_alone_while_time_stands_still() -> None:
    async def steps(app: Monitor, scene: Scene, pilot: Pilot[Any]) -> None:
        charts = list(app.query(LiveChart))
        for _ in range(200):  # enough values that they are resampled to the width
            scene.board.series.note(scene.board.series._last + 1_000_000, 40, 3)
        scene.board.changed.add("clock")
        await settle(pilot)
        before = [lines_of(chart) for chart in charts]
        assert all(len(chart._points) > 40 for chart in charts)
        await press(pilot, "z", "z")
        assert app.screen.maximized is None
        assert [lines_of(chart) for chart in charts] == before

    play(steps, scene=Scene(msgspec.structs.replace(CLOCK, is_paused=True)))


def test_charts_have_axes() -> None:
    async def steps(app: Monitor, scene: Scene, pilot: Pilot[Any]) -> None:
        busy, waiting, _ = (lines_of(chart) for chart in app.query(LiveChart))
        assert busy[0].startswith("100%┤")
        assert busy[-2].startswith("   0┤")
        assert re.match(r" +└-\S+ ?─*now", busy[-1]), busy
        assert waiting[0].startswith("   4┤")

    play(steps)


def test_news_of_shadows_are_no_events_but_ask_for_the_table_again() -> None:
    async def steps(app: Monitor, scene: Scene, pilot: Pilot[Any]) -> None:
        await press(pilot, "9")
        count, asked = len(scene.board.events), len(requests_of(scene, Shadow))
        app.asking._paces["shadows"]._next = 0.0
        scene.board.apply(EventRecord(number=40, at=NOW, kind="shadow"))
        await settle(pilot)
        await settle(pilot)
        assert len(scene.board.events) == count
        assert len(requests_of(scene, Shadow)) == asked + 1

    play(steps)


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (160, 50)])
def test_what_waits_shows_when_it_is_expected_and_what_it_was_promised(
    size: tuple[int, int],
) -> None:
    async def steps(app: Monitor, scene: Scene, pilot: Pilot[Any]) -> None:
        await press(pilot, "3")
        heading, *rows = lines_of(app.query_one("#waiting"))
        assert heading.index("expected") < heading.index("promised") < len(heading.rstrip())
        assert "promised" in heading.rstrip()
        promised = heading.index("promised")
        assert any(re.match(r"\d\d", row[promised:]) for row in rows)

    play(steps, size)
