"""Recordings: what was written is what is played; any jump shows what playing up to there shows."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qbatch.model.errors import InputError
from qbatch.model.record import Schedule, finished_run
from qbatch.results.result import write_result
from qbatch.tui import playback
from qbatch.tui.board import Board
from qbatch.tui.panels.jobs import run_time
from qbatch.tui.panels.lists import event_text
from qbatch.tui.playback import Playback
from qbatch.tui.recording import FileRecording, Picture, RecordingWriter
from qbatch.tui.schedule_recording import ScheduleRecording, open_recording
from qbatch.wire.errors import Refusal
from qbatch.wire.records import EventRecord, Explanation, Jobs
from qbatch.wire.requests import Explain, History, JobStatus
from tests.reports.samples import in_pieces, tried
from tests.tui.scene import HOSTS, NOW, QUEUES, RUNNING, SERVER, WAITING, job
from tests.tui.test_board import events

CHOICES = [
    (1, 1, 0),
    (2, 0, 0),
    (2, 1, 1),
    (1, 7, 0),
    (3, 0, 0),
    (3, 4, 0),
    (2, 2, 1),
    (2, 3, 1),
    (2, 7, 1),
    (4, 0, 0),
]


def recording(path: Path, made: list[EventRecord]) -> str:
    with path.open("wb") as file:
        recorder = RecordingWriter(file, "1")
        recorder.picture(SERVER, HOSTS, QUEUES, RUNNING, WAITING)
        for event in made:
            recorder.event(event)
    return str(path)


def seen(board: Board) -> tuple[Any, ...]:
    """Return what a board shows, for comparing."""
    return (
        dict(board.running),
        dict(board.waiting),
        board.grid.busy,
        board.ended,
        list(board.events),
        {name: (place.runs, place.stopped) for name, place in board.grid.places.items()},
        dict(board.queues),
        sum(board.series.ended),
    )


async def shown(played: Any, jumps: list[int]) -> Board:
    board = Board(wall=lambda: 0.0)
    source = Playback(played, wall=lambda: 0.0)
    task = asyncio.create_task(source.run(board))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    for at in jumps:
        await source.drive("jump", at=at)
    task.cancel()
    return board


def test_a_recording_plays_what_was_written(tmp_path: Path) -> None:
    made = events(CHOICES)
    played = FileRecording(recording(tmp_path / "r.jsonl", made))
    assert [played.event(place) for place in range(len(played.at))] == made
    board = asyncio.run(shown(played, [NOW + 100]))
    plain = Board(wall=lambda: 0.0)
    plain.window = 1 << 60
    plain.load(SERVER, HOSTS, QUEUES, RUNNING, WAITING)
    for event in made:
        plain.apply(event)
    assert seen(board) == seen(plain)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 12), min_size=1, max_size=8))
def test_any_jumps_end_where_playing_ends(
    tmp_path_factory: pytest.TempPathFactory, jumps: list[int]
) -> None:
    played = FileRecording(recording(tmp_path_factory.mktemp("r") / "r.jsonl", events(CHOICES)))
    playback.EVERY, was = 3, playback.EVERY  # keyframes close together, so that they are used
    try:
        jumped = asyncio.run(shown(played, [NOW + each for each in jumps]))
        straight = asyncio.run(shown(played, [NOW + jumps[-1]]))
    finally:
        playback.EVERY = was
    assert seen(jumped) == seen(straight)


def test_a_cut_recording_plays_to_its_last_whole_line(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    recording(path, events(CHOICES))
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    assert len(FileRecording(str(path)).at) == len(CHOICES) - 1


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "first picture"),
        (b"{}\n", "schema 'missing'"),
        (b'{"schema": "qbatch.recording/9"}\n', "recording/9"),
        (b'{"schema": "qbatch.recording/1"}\n', "first picture"),
        (b'{"schema": "qbatch.recording/1"}\n\xff\xfe\n', "line 2"),
        (b'{"schema": "qbatch.recording/1"}\n{"event": 3}\n', "line 2"),
        (b"\x00" * 100, "first picture"),
    ],
)
def test_what_is_no_recording_is_refused(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputError, match=says):
        FileRecording(str(path))
    with pytest.raises(InputError, match="No such file"):
        open_recording(str(tmp_path / "none"))


def rows(count: int = 200, seed: int = 3) -> Schedule:
    """Return what ran on a machine of 64 processors, first come first served, some of no length."""
    random = np.random.default_rng(seed)
    submit = np.sort(random.integers(0, 5_000_000_000, count))
    run = random.integers(0, 400_000_000, count) * (random.random(count) > 0.1)
    start, free = submit.copy(), 0
    for each in range(count):  # one at a time: no two overlap
        start[each] = free = max(int(submit[each]), free)
        free += int(run[each])
    return finished_run(
        "fcfs",
        number=np.arange(1, count + 1),
        submit=submit,
        start=start,
        end=start + run,
        procs=random.integers(1, 65, count),
        estimate=run + 1,
        run=run,
        procs_total=64,
    )


def test_job_rows_play_as_they_ran() -> None:
    table = rows()
    played = ScheduleRecording(table, NOW, "rows")
    at = list(played.at)
    assert at == sorted(at)
    assert len(at) == 3 * len(table)

    async def run() -> None:
        board = Board(wall=lambda: 0.0)
        source = Playback(played, wall=lambda: 0.0)
        task = asyncio.create_task(source.run(board))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        for instant in sorted(np.random.default_rng(1).integers(0, 9_000_000_000, 25).tolist()):
            await source.drive("jump", at=NOW + instant)
            now = min(instant, int(table.end.max()))
            running = {
                str(each)
                for each in table.workload.number[(table.start <= now) & (table.end > now)]
            }
            waiting = {
                str(each)
                for each in table.workload.number[
                    (table.workload.submit <= now) & (table.start > now)
                ]
            }
            assert (set(board.running), set(board.waiting)) == (running, waiting)
            assert board.waiting_total == len(waiting)
            assert board.ended == int(((table.end <= now) & (table.workload.submit <= now)).sum())
        history = await source.ask(History(limit=5), Jobs)
        assert len(history.jobs) == 5
        more = await source.ask(History(limit=5, after=history.next), Jobs)
        assert not {each.id for each in history.jobs} & {each.id for each in more.jobs}
        assert (await source.ask(JobStatus(jobs=(history.jobs[0].id,)), Jobs)).jobs[
            0
        ].ended is not None
        with pytest.raises(Refusal, match="recording"):
            await source.ask(Explain(job="1"), Explanation)
        task.cancel()

    asyncio.run(run())


def pieces_of(schedule: Schedule, row: int) -> list[list[int]]:
    return (
        []
        if schedule.pieces is None
        else [line for line in schedule.pieces.tolist() if line[0] == row]
    )


def state_of(schedule: Schedule, row: int, at: int) -> tuple[str, int]:
    """Return the state letter of a job just after an instant, and its processors, from the record
    itself."""
    lines = sorted(pieces_of(schedule, row))
    lines = lines or [
        [
            row,
            int(schedule.start[row]),
            int(schedule.end[row]),
            int(schedule.workload.procs[row]),
            0,
            1,
        ]
    ]
    if at < schedule.workload.submit[row]:
        return "", 0
    for _, begin, end, procs, _, _ in lines:
        if begin <= at < end:
            return "R", procs
    before = [line for line in lines if line[2] <= at]
    if len(before) == len(lines):
        return "F", 0
    return ("S" if before and before[-1][5] else "Q"), 0


@pytest.mark.parametrize("seed", range(8))
def test_jobs_in_pieces_are_shown_suspended_resized_and_back_in_the_queue(seed: int) -> None:
    schedule = in_pieces(seed)
    table = schedule
    played = ScheduleRecording(table, NOW, "pieces")
    assert list(played.at) == sorted(played.at)

    async def run() -> None:
        board = Board(wall=lambda: 0.0)
        source = Playback(played, wall=lambda: 0.0)
        task = asyncio.create_task(source.run(board))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        first, last = (each - NOW for each in (played.at[0], played.at[-1]))
        for instant in np.random.default_rng(seed).integers(first, last, 30).tolist():
            await source.drive("jump", at=NOW + instant)
            states = {row: state_of(schedule, row, instant) for row in range(len(table))}
            shown_states = {
                int(job.id) - 1: job.state
                for job in (*board.running.values(), *board.waiting.values())
            }
            assert shown_states == {
                row: state for row, (state, _) in states.items() if state not in ("", "F")
            }
            assert board.grid.busy == sum(procs for _, procs in states.values())
            counts = board.queues["log"].counts
            for letter in "QRS":
                assert counts.get(letter, 0) == sum(state == letter for state, _ in states.values())
            for shown_job in board.running.values():
                row = int(shown_job.id) - 1
                lines = pieces_of(schedule, row)
                begun = [line for line in lines if line[1] <= instant]
                thrown = max(
                    (line[2] for line in begun if not line[5] and line[2] <= instant), default=-1
                )
                worked = sum(
                    (min(line[2], instant) - line[1]) * line[3]
                    for line in begun
                    if line[1] >= thrown
                )
                went = worked // int(schedule.workload.procs[row])
                expected = went if lines else instant - int(schedule.start[row])
                assert run_time(shown_job, NOW + instant) == expected
        task.cancel()

    asyncio.run(run())


def test_playing_stops_at_the_given_instant() -> None:
    played = ScheduleRecording(rows(), NOW, "rows")
    wall = [0.0]

    async def run() -> None:
        board = Board(wall=lambda: wall[0])
        source = Playback(played, wall=lambda: wall[0])
        source.speed = 1e6
        task = asyncio.create_task(source.run(board))

        async def until_paused() -> None:
            for _ in range(100):
                wall[0] += 0.5
                await asyncio.sleep(playback.TICK * 1.2)
                if source.is_paused:
                    return

        await asyncio.sleep(0.01)
        await source.drive("until-start", job="7")
        await until_paused()
        assert "7" in board.running
        ended = board.ended
        await source.drive("until-count", count=3)
        await until_paused()
        assert board.ended == ended + 3
        goal = board.now() + 10**8
        await source.drive("until", at=goal)
        await until_paused()
        assert board.now() == goal
        await source.drive("step")
        assert board.now() == min(each for each in played.at if each > goal)
        task.cancel()

    asyncio.run(run())


def test_a_result_of_several_policies_asks_which(tmp_path: Path) -> None:
    from qbatch.cli.main import run

    out = tmp_path / "result"
    assert (
        run(["replay", "traces/tiny.txt", "-p", "fcfs", "-p", "easy", "--out", str(out), "--quiet"])
        == 0
    )
    with pytest.raises(InputError, match="name one"):
        open_recording(str(out))
    played = open_recording(f"{out}:easy")
    assert set(played.kinds) == {"submitted", "started", "ended"}
    assert played.picture(0) is not None


def test_policies_have_colons_too(tmp_path: Path) -> None:
    write_result(tmp_path / "out", {}, [tried("immediate:inner=easy"), tried("equispatial")])
    played = open_recording(f"{tmp_path / 'out'}:immediate:inner=easy")
    assert played.title == "out: immediate:inner=easy"
    assert sorted({*played.kinds}) == [
        "ended",
        "requeued",
        "resumed",
        "started",
        "submitted",
        "suspended",
    ]
    resizing = open_recording(f"{tmp_path / 'out'}:equispatial")
    first = resizing.event(list(resizing.kinds).index("resized"))
    assert event_text(first) == "job1, -, 3 of 4 procs, log, on machine*3"


def test_an_interrupted_writer_leaves_whole_lines() -> None:
    file = io.BytesIO()
    recorder = RecordingWriter(file, "1")
    recorder.picture(SERVER, HOSTS, QUEUES, RUNNING, WAITING)
    recorder.event(EventRecord(number=1, at=NOW, kind="submitted", record=job(7)))
    assert file.getvalue().endswith(b"}\n")
    assert file.getvalue().count(b"\n") == 3


def test_a_long_recording_keeps_few_keyframes_and_their_jumps_are_right(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(playback, "EVERY", 4)
    monkeypatch.setattr(playback, "MOST_KEYFRAMES", 8)

    class Long:
        title = "long"
        at = tuple(NOW + number for number in range(600))
        kinds = ("submitted", "ended") * 300

        def picture(self, place: int) -> Picture | None:
            return None if place else Picture(server=SERVER)

        def event(self, place: int) -> EventRecord:
            record = job(place // 2, "Q" if place % 2 == 0 else "F")
            return EventRecord(
                number=place + 1,
                at=self.at[place],
                kind=self.kinds[place],
                job=record.id,
                record=record,
            )

    async def run() -> None:
        played, board = Playback(Long()), Board()
        playing = asyncio.create_task(played.run(board))
        await asyncio.sleep(0)
        await played.drive("pause")
        for place in (599, 10, 301, 300, 0, 450):
            await played.drive("jump", at=NOW + place)
            assert (len(board.waiting), board.ended) == ((place + 1) % 2, (place + 1) // 2)
            assert [each.number for each in board.events] == list(range(1, place + 2))
        assert 4 <= len(played._keyframes) <= 8
        assert not any(each.events for each in played._keyframes.values())
        await played.drive("until-end", job="250")
        await asyncio.sleep(0.2)
        assert board.events[-1].job == "250.qbatch"
        playing.cancel()

    asyncio.run(run())


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(0, 7), st.integers(0, 1)), max_size=30),
    st.lists(st.integers(0, 30)),
)
def test_a_grid_that_follows_shows_what_the_other_shows(
    choices: list[tuple[int, int, int]], looks: list[int]
) -> None:
    board, shown = Board(wall=lambda: 0.0), Board(wall=lambda: 0.0)
    board.load(SERVER, HOSTS, QUEUES, RUNNING, WAITING)
    for place, event in enumerate(events(choices)):
        board.apply(event)
        if place in looks:
            shown.frame(board, board.take_changed())
            assert shown.grid.busy == board.grid.busy
            assert {
                name: (each.runs, each.stopped, each.memory, each.record)
                for name, each in shown.grid.places.items()
            } == {
                name: (each.runs, each.stopped, each.memory, each.record)
                for name, each in board.grid.places.items()
            }
            assert seen(shown) == seen(board)
            assert shown.grid.places["n1"] is not board.grid.places["n1"]
