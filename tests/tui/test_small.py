"""The monitor on a small terminal: it says when that is too small, and cuts no heading where it is
not."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from qbatch.tui.app import Monitor
from qbatch.tui.panels.charts import LiveChart
from qbatch.tui.panels.registry import KEYS
from qbatch.tui.row_table import RowTable
from qbatch.tui.screens.output import Follow
from qbatch.wire.errors import Refusal
from tests.tui.scene import NOW, Scene
from tests.tui.test_keys import settle


def watched(
    size: tuple[int, int],
    test: Callable[[Monitor, Pilot[Any]], Awaitable[None]],
    source: Scene | None = None,
) -> None:
    """Run a test on the monitor in a terminal of so many columns and lines."""

    async def run() -> None:
        app = Monitor(source or Scene(), "textual-dark")
        async with app.run_test(size=size) as pilot:
            for _ in range(3):
                await settle(pilot)
            await test(app, pilot)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("size", "is_too_small"),
    [
        ((44, 15), True),
        ((60, 20), True),
        ((79, 40), True),
        ((120, 23), True),
        ((80, 24), False),
        ((160, 50), False),
    ],
)
def test_a_terminal_that_is_too_small_is_reported(
    size: tuple[int, int], is_too_small: bool
) -> None:
    async def test(app: Monitor, _: Pilot[Any]) -> None:
        notice = app.query_one("#small", Static)
        assert notice.display == is_too_small
        if is_too_small:
            assert (
                notice.render_line(0).text.strip()
                == f"too small ({size[0]}x{size[1]}): make it 80x24 at least"
            )
            assert app.query_one("#waiting").size.height > 5, (
                "the panel in front is shown all the same"
            )

    watched(size, test)


def test_no_heading_is_cut_in_eighty_columns() -> None:
    async def test(app: Monitor, pilot: Pilot[Any]) -> None:
        seen = 0
        for name, number in KEYS.items():
            await pilot.press(number)
            await settle(pilot)
            table = app.query_one(f"#{name}")
            if not isinstance(table, RowTable):
                continue
            heading, place = table.render_line(0).text, 0
            for column in table.visible_columns:
                drawn = heading[place : place + column.width].replace("»", " ").strip()
                assert drawn in (column.title, ""), name
                seen += bool(drawn)
                place += column.width + 1
            assert heading.rstrip().endswith("»") == (place - 1 > len(heading)), name
        assert seen > 30

    watched((80, 24), test)


def test_a_column_that_does_not_fit_is_left_out_and_a_text_goes_on_as_far_as_it_can() -> None:
    async def history(app: Monitor, pilot: Pilot[Any]) -> None:
        await pilot.press("8")
        await settle(pilot)
        table = app.query_one("#history", RowTable)
        line, place = (
            table.render_line(1).text,
            sum(column.width + 1 for column in table.visible_columns[:8]),
        )
        assert table.visible_columns[8].title == "submitted"
        assert line[place:].strip() == ""

    async def events(app: Monitor, pilot: Pilot[Any]) -> None:
        await pilot.press("6")
        await settle(pilot)
        table = app.query_one("#events", RowTable)
        assert table.render_line(0).text.split() == ["time", "event", "job", "what", "»"]
        assert table.render_line(1).text.rstrip().endswith("…")

    watched((80, 24), history)
    watched((60, 24), events)


def test_the_chart_of_ended_jobs_has_a_scale_that_its_highest_bar_reaches() -> None:
    async def test(app: Monitor, pilot: Pilot[Any]) -> None:
        series = app.board.series
        for second in range(0, 400, 2):
            series.note(
                NOW + second * 1_000_000,
                10,
                3 if second == 30 else 0,
                ended=1 if second == 200 else 0,
            )
        await pilot.press("5")
        await settle(pilot)
        _, waiting, ended = app.query(LiveChart)
        for chart in (waiting, ended):
            chart.show()
            assert "█" in chart.render_line(0).text, "the highest bar reaches the top"
        assert 0 < len(ended.render_line(0).text.partition("┤")[0].strip()) <= 4

    watched((80, 24), test)


def test_the_output_of_an_emulated_job_says_that_it_writes_nothing() -> None:
    class Emulated(Scene):
        async def ask(self, request: Any, kind: type[Any]) -> Any:
            if type(request).__name__ == "JobOutput":
                raise Refusal(
                    "unsupported",
                    "1.qbatch is a timer (executor emulated): emulated jobs write no output",
                )
            return await super().ask(request, kind)

    async def test(app: Monitor, pilot: Pilot[Any]) -> None:
        await pilot.press("4")
        await settle(pilot)
        await pilot.press("o")
        for _ in range(3):
            await settle(pilot)
        follow = app.screen.query_one(Follow)
        said = "1.qbatch is a timer (executor emulated): emulated jobs write no output"
        assert [line.rstrip() for line in follow.lines] == [said]
        follow.look()
        assert len(follow.lines) == 1

    watched((120, 40), test, Emulated())
