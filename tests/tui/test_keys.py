"""Every key of the monitor, pressed: what it does to the screen, what it asks the daemon, and what
it asks the user first."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from textual.binding import Binding
from textual.pilot import Pilot
from textual.widgets import Input, TabbedContent

from qbatch.tui.app import Monitor
from qbatch.tui.panels.hosts import HostPanel
from qbatch.tui.panels.jobs import JobTable
from qbatch.tui.panels.registry import KEYS
from qbatch.tui.panels.timeline import Timeline
from qbatch.tui.row_table import RowTable
from qbatch.tui.screens.help import Help
from qbatch.tui.screens.host import HostScreen
from qbatch.tui.screens.job import JobScreen
from qbatch.tui.screens.questions import Ask, Choose, Confirm
from qbatch.wire import requests
from qbatch.wire.errors import Refusal
from qbatch.wire.records import ReservationRecord, Reservations
from tests.tui.scene import MINUTE, NOW, Scene, job, requests_of

Play = Callable[[Monitor, Scene, Pilot[Any]], Awaitable[None]]


def play(steps: Play, size: tuple[int, int] = (160, 50), scene: Scene | None = None) -> None:
    """Run steps in a monitor."""
    source = scene or Scene()

    async def run() -> None:
        app = Monitor(source)
        async with app.run_test(size=size) as pilot:
            await settle(pilot)
            await steps(app, source, pilot)

    asyncio.run(run())


async def settle(pilot: Pilot[Any]) -> None:
    """Let answers come and the screen be painted."""
    await pilot.pause()
    pilot.app.paint()  # type: ignore[attr-defined]
    await pilot.pause()


async def press(pilot: Pilot[Any], *keys: str) -> None:
    """Press keys, one after the other."""
    for key in keys:
        await pilot.press(key)
        await settle(pilot)


def test_number_keys_go_to_the_panels() -> None:
    async def steps(app: Monitor, scene: Scene, pilot: Pilot[Any]) -> None:
        for name, number in KEYS.items():
            await press(pilot, number)
            assert app.query_one(f"#{name}").has_class("-active"), name
            assert app.query_one(f"#{name}").display, name
            if name != "charts":
                assert app.focused is app.query_one(f"#{name}"), name

    play(steps)
    play(steps, (80, 24))


def test_a_small_terminal_shows_one_panel() -> None:
    async def steps(app: Monitor, scene: Scene, pilot: Pilot[Any]) -> None:
        for name, number in KEYS.items():
            await press(pilot, number)
            assert [each for each in KEYS if app.query_one(f"#{each}").display] == [name]
            assert app.query_one(f"#{name}").size.height > 10

    play(steps, (80, 24))


def test_arrows_and_letters_move_in_a_table_and_enter_opens() -> None:
    async def steps(app: Monitor, scene: Scene, pilot: Pilot[Any]) -> None:
        table = app.query_one("#waiting", JobTable)
        places = []
        for key in ("down", "j", "up", "k", "end", "home", "pagedown", "pageup"):
            await press(pilot, key)
            places.append(table.cursor)
        assert places == [1, 2, 1, 0, 3, 0, 3, 0]
        await press(pilot, "right")
        assert table.scroll_offset.x > 0
        await press(pilot, "left")
        assert table.scroll_offset.x == 0
        await press(pilot, "down", "enter")
        assert isinstance(app.screen, JobScreen)
        assert app.screen.job == "11.qbatch"
        assert app.screen.query_one(TabbedContent).active == "why"  # it waits: that is the question
        assert "needs 64 processors" in text_of(app, "#why-text")
        await press(pilot, "escape")
        assert not isinstance(app.screen, JobScreen)

    play(steps)


def text_of(app: Monitor, selector: str) -> str:
    """Return what a widget of the screen on top says."""
    return str(app.screen.query_one(selector).render())


def test_sort_reverse_and_columns() -> None:
    async def steps(app: Monitor, scene: Scene, pilot: Pilot[Any]) -> None:
        table = app.query_one("#waiting", JobTable)
        await press(pilot, "s", "s", "s", "s")  # job, name, user, procs
        assert [row.resources["ncpus"] for row in table.rows] == ["1", "2", "16", "64"]
        await press(pilot, "S")
        assert [row.resources["ncpus"] for row in table.rows] == ["64", "16", "2", "1"]
        await press(pilot, "c")
        assert isinstance(app.screen, Choose)
        await press(pilot, "space", "enter")
        assert "id" not in table.shown
        assert "name" in table.shown

    play(steps)


def test_the_filter_narrows_as_it_is_written_and_says_what_is_wrong() -> None:
    async def steps(app: Monitor, scene: Scene, pilot: Pilot[Any]) -> None:
        table = app.query_one("#waiting", JobTable)
        await press(pilot, "slash")
        line = app.query_one("#filter", Input)
        assert app.focused is line
        line.value = "procs>=16"
        await settle(pilot)
        assert [row.id for row in table.rows] == ["10.qbatch", "11.qbatch"]
        line.value = "procz>=16"
        await settle(pilot)
        assert line.has_class("-wrong")
        assert "procs" in str(line.border_subtitle)
        assert len(table.rows) == 2  # the last good filter stays
        line.value = "user=bob"
        await press(pilot, "enter")
        assert app.focused is table
        assert {row.user for row in table.rows} == {"bob"}
        assert {row.user for row in app.query_one("#running", JobTable).rows} == {"bob"}
        await press(pilot, "8")
        assert requests_of(scene, requests.History)[-1].users == ("bob",)
        await press(pilot, "escape")
        await press(pilot, "3")
        assert len(table.rows) == 4

    play(steps)


@pytest.mark.parametrize(
    ("key", "panel", "expected"),
    [
        ("h", "3", requests.Hold(jobs=("10.qbatch",))),
        ("r", "3", requests.Release(jobs=("10.qbatch",), kinds="u")),
        ("d", "4", requests.Delete(jobs=("1.qbatch",))),
    ],
)
def test_hold_release_and_delete_ask_first(
    key: str, panel: str, expected: requests.Request
) -> None:
    async def steps(app: Monitor, scene: Scene, pilot: Pilot[Any]) -> None:
        await press(pilot, panel, key)
        assert isinstance(app.screen, Confirm)
        await press(pilot, "enter")  # No is chosen
        assert requests_of(scene, type(expected)) == []
        await press(pilot, key, "n")
        assert requests_of(scene, type(expected)) == []
        await press(pilot, key, "escape")
        assert requests_of(scene, type(expected)) == []
        await press(pilot, key, "y")
        assert requests_of(scene, type(expected)) == [expected]

    play(steps)


def test_move_and_priority_ask_for_a_value_and_then_once_more() -> None:
    async def steps(app: Monitor, scene: Scene, pilot: Pilot[Any]) -> None:
        await press(pilot, "m")
        assert isinstance(app.screen, Ask)
        assert app.screen.query_one(Input).value == "fat"  # the other queue
        await press(pilot, "enter", "y")
        assert requests_of(scene, requests.Move) == [
            requests.Move(jobs=("10.qbatch",), destination="fat")
        ]
        await press(pilot, "p")
        app.screen.query_one(Input).value = "many"
        await press(pilot, "enter")
        assert requests_of(scene, requests.Alter) == []
        await press(pilot, "p")
        app.screen.query_one(Input).value = "-5"
        await press(pilot, "enter", "y")
        assert requests_of(scene, requests.Alter)[0].changes.priority == -5
        await press(pilot, "p", "escape")
        assert not isinstance(app.screen, Ask)
        assert len(requests_of(scene, requests.Alter)) == 1

    play(steps)


def test_several_jobs_are_marked_for_one_action() -> None:
    async def steps(app: Monitor, scene: Scene, pilot: Pilot[Any]) -> None:
        table = app.query_one("#waiting", JobTable)
        await press(pilot, "3", "v", "v")
        assert str(table.border_subtitle) == "4 · 2 marked"
        drawn = ["".join(segment.text for segment in table.render_line(y)) for y in range(1, 5)]
        assert [line.count("●") for line in drawn] == [1, 1, 0, 0]
        await press(pilot, "h")
        assert "Hold 2 jobs (10, 11)?" in str(app.screen.query_one("Label").render())
        await press(pilot, "y")
        assert requests_of(scene, requests.Hold) == [requests.Hold(jobs=("10.qbatch", "11.qbatch"))]
        await press(pilot, "y")  # copied: what is marked
        assert app.clipboard == "10.qbatch 11.qbatch"
        await press(pilot, "V", "d")
        assert "4 wait: they leave the queue." in str(app.screen.query_one("Label").render())
        await press(pilot, "y")
        assert requests_of(scene, requests.Delete) == [
            requests.Delete(jobs=tuple(f"{n}.qbatch" for n in (10, 11, 12, 13)))
        ]
        await press(pilot, "V")
        assert str(table.border_subtitle) == "4"
        await press(pilot, "v")
        # What goes away is not acted upon, and escape takes the marks away.
        scene.board.apply(scene.event(30, "ended", job(12, "F", ended=NOW)))
        await settle(pilot)
        assert table.marked == set()
        await press(pilot, "home", "v", "escape", "r", "y")
        assert requests_of(scene, requests.Release) == [
            requests.Release(jobs=("11.qbatch",), kinds="u")
        ]

    play(steps)


def test_what_became_of_several_jobs_is_shown_by_number() -> None:
    async def steps(app: Monitor, scene: Scene, pilot: Pilot[Any]) -> None:
        scene.failing = {"11.qbatch"}
        await press(pilot, "3", "V", "h", "y")
        said = [note.message for note in app._notifications]
        assert said[-1] == "3 of 4 held; 11.qbatch: no"

    play(steps)


def test_the_identifier_of_a_job_is_copied() -> None:
    async def steps(app: Monitor, scene: Scene, pilot: Pilot[Any]) -> None:
        await press(pilot, "4", "down", "y")
        assert app.clipboard == "2.qbatch"
        await press(pilot, "enter")
        assert isinstance(app.screen, JobScreen)
        app.copy_to_clipboard("")
        await press(pilot, "y")
        assert app.clipboard == "2.qbatch"
        await press(pilot, "escape", "7", "y")
        assert "go to a job first" in [note.message for note in app._notifications][-1]

    play(steps)


def test_a_refusal_is_shown_and_changes_nothing() -> None:
    async def steps(app: Monitor, scene: Scene, pilot: Pilot[Any]) -> None:
        await press(pilot, "h")
        scene.refusal = Refusal("not-permitted", "you may not, \x1b[31mno")
        await press(pilot, "y")
        said = [note.message for note in app._notifications]
        assert "you may not, ?[31mno" in said[-1]

    play(steps)


def test_hosts_are_drained_resumed_and_opened() -> None:
    async def steps(app: Monitor, scene: Scene, pilot: Pilot[Any]) -> None:
        hosts = app.query_one(HostPanel)
        await press(pilot, "1", "x")
        assert "continue" in str(app.screen.query_one("Label").render())
        await press(pilot, "y")
        assert requests_of(scene, requests.HostControl) == [
            requests.HostControl(hosts=("n1",), action="drain")
        ]
        await press(pilot, "right", "down", "right", "down", "right", "right")
        assert hosts.current == "n7"
        await press(pilot, "x", "y")
        assert requests_of(scene, requests.HostControl)[-1] == requests.HostControl(
            hosts=("n7",), action="resume"
        )
        await press(pilot, "end")
        assert hosts.current == "big1"
        await press(pilot, "home", "right", "left", "j", "k", "up")
        assert hosts.current == "n1"
        await press(pilot, "right", "enter")
        assert isinstance(app.screen, HostScreen)
        assert [row.id for row in app.screen.query_one(JobTable).rows] == ["2.qbatch", "3.qbatch"]
        await press(pilot, "x", "n")
        await press(pilot, "enter")
        assert isinstance(app.screen, JobScreen)
        await press(pilot, "q", "q")
        assert len(app.screen_stack) == 1

    play(steps)


def test_a_host_shows_how_many_wait_in_its_own_queue_and_which() -> None:
    async def steps(app: Monitor, scene: Scene, pilot: Pilot[Any]) -> None:
        hosts = app.query_one(HostPanel)
        records = [place.record for place in hosts.board.grid.places.values()]
        queues = {
            "n1": tuple(f"{number}.qbatch" for number in range(40, 55)),
            "n2": ("60[3].qbatch",),
        }
        hosts.board.set_host_queues(
            msgspec.structs.replace(each, queue=queues.get(each.name, ())) for each in records
        )
        hosts.show()
        lines = ["".join(segment.text for segment in hosts.line(number)) for number in range(4)]
        assert any("n1 " in line and "+15" in line for line in lines)
        assert "waiting there" in lines[0]
        await press(pilot, "1", "home", "enter")
        text = str(app.screen.query_one("#host-text").render())
        assert "15 waiting here: 40.qbatch 41.qbatch" in text
        assert text.rstrip().endswith("...")

    play(steps)


def test_queues_are_disabled_and_stopped() -> None:
    async def steps(app: Monitor, scene: Scene, pilot: Pilot[Any]) -> None:
        await press(pilot, "7", "e", "y", "t", "y")
        assert requests_of(scene, requests.QueueControl) == [
            requests.QueueControl(queues=("batch",), enabled=False),
            requests.QueueControl(queues=("batch",), started=False),
        ]
        await press(pilot, "down", "e", "y")
        assert requests_of(scene, requests.QueueControl)[-1] == requests.QueueControl(
            queues=("fat",), enabled=True
        )

    play(steps)


def test_time_is_driven() -> None:
    async def steps(app: Monitor, scene: Scene, pilot: Pilot[Any]) -> None:
        await press(pilot, "space", "space", "full_stop", "greater_than_sign", "less_than_sign")
        assert scene.driven == [
            ("play", {}),
            ("pause", {}),
            ("step", {}),
            ("speed", {"speed": 100.0}),
            ("speed", {"speed": 50.0}),
        ]
        for text, expected in (
            ("start 17", ("until-start", {"job": "17"})),
            ("end 17", ("until-end", {"job": "17"})),
            ("5 jobs", ("until-count", {"count": 5})),
            ("+2h", ("until", {"at": NOW + 7200 * 10**6})),
        ):
            await press(pilot, "u")
            app.screen.query_one(Input).value = text
            await press(pilot, "enter")
            assert scene.driven[-1] == expected
        count = len(scene.driven)
        await press(pilot, "u")
        app.screen.query_one(Input).value = "soon"
        await press(pilot, "enter")
        assert len(scene.driven) == count
        await press(pilot, "g")  # nothing to jump in
        assert len(scene.driven) == count

    play(steps)


def test_why_and_output_of_the_job_under_the_cursor() -> None:
    async def steps(app: Monitor, scene: Scene, pilot: Pilot[Any]) -> None:
        await press(pilot, "4", "o")
        assert isinstance(app.screen, JobScreen)
        assert app.screen.query_one(TabbedContent).active == "output"
        for key, tab in (
            ("1", "details"),
            ("2", "why"),
            ("3", "trail"),
            ("4", "output"),
            ("w", "why"),
            ("o", "output"),
        ):
            await press(pilot, key)
            assert app.screen.query_one(TabbedContent).active == tab
        assert "does not wait" in text_of(app, "#why-text")
        assert "16 processors" in text_of(app, "#details-text")
        await press(pilot, "h", "y")  # actions work here too
        assert requests_of(scene, requests.Hold) == [requests.Hold(jobs=("1.qbatch",))]
        await press(pilot, "escape", "2", "w")
        assert isinstance(app.screen, JobScreen)

    play(steps)


def test_the_timeline_moves_and_zooms() -> None:
    async def steps(app: Monitor, scene: Scene, pilot: Pilot[Any]) -> None:
        timeline = app.query_one(Timeline)
        await press(pilot, "2")
        first = str(timeline.border_subtitle)
        await press(pilot, "plus", "equals_sign", "minus")
        nearer = str(timeline.border_subtitle)
        await press(pilot, "minus", "minus")
        farther = str(timeline.border_subtitle)
        await press(pilot, "0")
        assert len({first, nearer, farther}) == 3
        assert str(timeline.border_subtitle) == first
        await press(pilot, "down", "j", "down")
        job = timeline.current
        await press(pilot, "up", "k", "down", "down", "enter")
        assert isinstance(app.screen, JobScreen)
        assert app.screen.job == job

    play(steps)


def test_the_timeline_shows_reservations_between_running_jobs_and_those_to_come() -> None:
    kept = ReservationRecord(
        name="course",
        id="course.qbatch",
        pool="cluster",
        state="confirmed",
        hosts=("n1",),
        start=NOW + 20 * MINUTE,
        end=NOW + 40 * MINUTE,
        duration=20 * MINUTE,
        owner="ann",
        procs=16,
    )

    async def steps(app: Monitor, scene: Scene, pilot: Pilot[Any]) -> None:
        scene.reservations = (kept,)
        timeline = app.query_one(Timeline)
        await press(pilot, "2")
        timeline.board.take_reservations(Reservations(reservations=(kept,)))
        timeline.show()
        lines = ["".join(part.text for part in timeline.line(number)) for number in range(12)]
        place = next(number for number, line in enumerate(lines) if line.startswith("course"))
        assert lines[place].startswith("course  ann       16 ")
        assert "░░░" in lines[place]
        assert all("╌" not in line for line in lines[:place])
        timeline.cursor = place - 1
        await press(pilot, "enter")
        assert not isinstance(app.screen, JobScreen)

    play(steps)


def test_the_history_goes_on_at_its_end() -> None:
    async def steps(app: Monitor, scene: Scene, pilot: Pilot[Any]) -> None:
        await press(pilot, "8")
        table = app.query_one("#history", JobTable)
        assert len(table.rows) == 8
        await press(pilot, "end")
        await settle(pilot)
        assert len(table.rows) == 16
        assert len({row.id for row in table.rows}) == 16

    play(steps)


def test_shadows_stand_side_by_side() -> None:
    async def steps(app: Monitor, scene: Scene, pilot: Pilot[Any]) -> None:
        await press(pilot, "9")
        table = app.query_one("#shadows", RowTable)
        texts = [[column.text(row) for column in table.columns] for row in table.rows]
        assert texts[0][0] == "easy (real)"
        assert "6 jobs" in texts[1]
        assert "settled" in texts[0]

    play(steps)


def test_zoom_theme_help_palette_and_quit() -> None:
    async def steps(app: Monitor, scene: Scene, pilot: Pilot[Any]) -> None:
        await press(pilot, "z")
        assert app.screen.maximized is app.query_one("#waiting")
        await press(pilot, "z")
        assert app.screen.maximized is None
        await press(pilot, "T")
        assert app.theme == "textual-light"
        await press(pilot, "T")
        assert app.theme == "textual-dark"
        await press(pilot, "question_mark")
        assert isinstance(app.screen, Help)
        shown = str(app.screen.query_one("Static").render())
        for binding in Monitor.BINDINGS:
            if isinstance(binding, Binding) and not binding.description.startswith("Panel"):
                assert (binding.tooltip or binding.description) in shown
        assert "Mark this job" in shown
        assert "Reverse" in shown
        await press(pilot, "escape")
        commands = {command.title for command in app.get_system_commands(app.screen)}
        assert {"Hold", "Filter", "Run until", "Theme", "Panel: history"} <= commands
        await press(pilot, "q")
        assert app._exit

    play(steps)


def test_keys_that_need_a_place_say_so() -> None:
    async def steps(app: Monitor, scene: Scene, pilot: Pilot[Any]) -> None:
        await press(pilot, "7", "h", "w", "x")
        await press(pilot, "3", "e")
        said = [note.message for note in app._notifications]
        assert [text.split(":")[0] for text in said[-4:]] == [
            "go to a job first",
            "go to a job first",
            "go to a host first",
            "go to a queue first",
        ]
        assert len(app.screen_stack) == 1

    play(steps)


def test_clicks_choose_sort_and_open() -> None:
    async def steps(app: Monitor, scene: Scene, pilot: Pilot[Any]) -> None:
        table = app.query_one("#running", JobTable)
        await pilot.click("#running", offset=(4, 3))
        await settle(pilot)
        assert table.cursor == 1
        await pilot.click("#running", offset=(14, 1))
        await settle(pilot)
        assert table.sort_key == "name"
        await pilot.click("#hosts", offset=(3, 3))
        await settle(pilot)
        assert app.query_one(HostPanel).current == "n3"

    play(steps)


def test_a_job_is_opened_and_left_faster_than_it_is_drawn() -> None:
    async def steps(app: Monitor, scene: Scene, pilot: Pilot[Any]) -> None:
        for _ in range(3):
            await pilot.press("3", "w", "escape", "enter", "q")
        await settle(pilot)
        assert not isinstance(app.screen, JobScreen)

    play(steps)


def test_the_table_of_a_host_sorts() -> None:
    async def steps(app: Monitor, scene: Scene, pilot: Pilot[Any]) -> None:
        await press(pilot, "1", "right", "enter", "s", "S")
        table = app.screen.query_one(JobTable)
        assert isinstance(app.screen, HostScreen)
        assert [each.id for each in table.rows] == ["3.qbatch", "2.qbatch"]

    play(steps)


@pytest.mark.parametrize(
    "text", ["+1e400s", "+infs", "+1e30h", "² jobs", "9" * 30 + " jobs", "0001-01-01"]
)
def test_an_instant_that_is_none_is_refused_in_words(text: str) -> None:
    async def steps(app: Monitor, scene: Scene, pilot: Pilot[Any]) -> None:
        await press(pilot, "u")
        app.screen.query_one(Input).value = text
        await press(pilot, "enter")
        assert "is not an instant" in str([note.message for note in app._notifications])
        assert scene.driven == []

    play(steps)


def test_every_key_is_pressed_in_this_file() -> None:
    pressed = set(re.findall(r'"([a-zA-Z0-9_]+)"', Path(__file__).read_text(encoding="utf-8")))
    for kind in (
        Monitor,
        RowTable,
        JobTable,
        HostPanel,
        Timeline,
        JobScreen,
        HostScreen,
        Confirm,
        Ask,
        Choose,
        Help,
    ):
        for binding in kind.BINDINGS:
            assert isinstance(binding, Binding)
            numbers = set(KEYS.values())  # pressed in a loop
            assert set(binding.key.split(",")) - numbers <= pressed, (kind.__name__, binding.key)
