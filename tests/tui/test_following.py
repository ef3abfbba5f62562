"""Following a daemon without a gap: what happens while the picture is taken, arrays, moves, a
configuration read again."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import msgspec

from qbatch.tui.board import Board
from qbatch.tui.live import Live
from qbatch.tui.recording import FileRecording, RecordingWriter
from qbatch.wire.frames import encode
from qbatch.wire.records import (
    Done,
    EventRecord,
    HostRecord,
    Hosts,
    Jobs,
    QueueRecord,
    Queues,
    ServerRecord,
)
from tests.daemon.harness import Daemon, emulated
from tests.tui.scene import CLOCK, NOW, job
from tests.tui.test_live import shown_by, told_by, until

RUNS = job(7, "R", procs=2, hosts=("n1",))


def event(number: int, kind: str) -> EventRecord:
    record = {"started": RUNS, "ended": msgspec.structs.replace(RUNS, state="F")}[kind]
    return EventRecord(
        number=number,
        at=NOW + number,
        kind=kind,
        job=RUNS.id,
        record=record,
        counts={"R": 2 - number},
    )


async def answered(
    board: Board, directory: Path, events: dict[str, list[EventRecord]], running: bool
) -> None:
    """Follow a server that waits with job 7 (or runs it), and sends events together with its answer
    to a verb."""
    answers = {
        "subscribe": Done(),
        "server-status": ServerRecord(name="s", version="1", clock=CLOCK),
        "host-status": Hosts(hosts=(HostRecord(name="n1", pool="p", state="free", cpus=4),)),
        "queue-status": Queues(
            queues=(QueueRecord(name="batch", pool="p", policy="easy", counts={"Q": 1}),)
        ),
    }

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.read(4):
            asked = msgspec.json.decode(await reader.readexactly(int.from_bytes(head, "big")))
            verb = asked["verb"]
            if verb == "job-status":
                verb = "running" if "R" in asked["states"] else "waiting"
            shown = (
                Jobs(jobs=(RUNS if running else job(7),))
                if verb == ("running" if running else "waiting")
                else Jobs()
            )
            frames = [{"id": asked["id"], "result": answers.get(verb, shown)}]
            frames += [{"event": each} for each in events.get(verb, [])]
            writer.write(b"".join(encode(msgspec.json.encode(frame)) for frame in frames))

    server = await asyncio.start_unix_server(serve, str(directory / "s"))
    watching = asyncio.create_task(Live(str(directory / "s")).run(board))
    await until(lambda: len(board.events) == sum(map(len, events.values())))
    watching.cancel()
    server.close()


def test_what_happens_while_the_picture_is_taken_is_not_lost(tmp_path: Path) -> None:
    async def run() -> None:
        for verb in ("subscribe", "server-status", "running", "waiting"):
            board = Board()
            await answered(board, tmp_path, {verb: [event(1, "started")]}, running=False)
            assert (list(board.running), list(board.waiting), board.grid.busy) == (
                [RUNS.id],
                [],
                2,
            ), verb
            assert board.queues["batch"].counts == {"R": 1}
            board = Board()
            await answered(board, tmp_path, {verb: [event(2, "ended")]}, running=True)
            assert (list(board.running), list(board.waiting), board.grid.busy) == ([], [], 0), verb

    asyncio.run(run())


SHORT = '[[queue]]\nname = "short"\n'


def test_arrays_moves_hosts_and_a_new_configuration_reach_the_board(tmp_path: Path) -> None:
    with Daemon(tmp_path, "--time", "x1", "--paused", config=emulated(queues=SHORT)) as daemon:

        async def do(*command: str) -> str:
            return (await asyncio.to_thread(daemon.run, *command)).stdout.strip()

        async def run() -> None:
            board = Board()
            with (tmp_path / "r.jsonl").open("wb") as file:
                watching = asyncio.create_task(
                    Live(daemon.socket, RecordingWriter(file, "1")).run(board)
                )
                await until(lambda: bool(board.queues))
                array = await do("qsub", "-J", "0-9", "-l", "ncpus=4", "--", "true")
                await until(lambda: len(board.waiting) + len(board.running) == 10)
                await do("qhold", array)
                await until(lambda: {each.state for each in board.waiting.values()} == {"H"})
                await do("qrls", array)
                await until(lambda: {each.state for each in board.waiting.values()} == {"Q"})
                one = await do("qsub", "-l", "ncpus=4", "--", "true")
                await do("qmove", "short", one)
                await until(lambda: board.queues["short"].counts == {"Q": 1})
                await until(
                    lambda: (
                        sum(board.queues["batch"].counts.get(letter, 0) for letter in "QR") == 10
                    )
                )
                await do("qbatch", "host", "drain", "n3")
                await until(lambda: board.grid.places["n3"].record.state == "offline")
                assert shown_by(board) == told_by(daemon)
                text = emulated(queues=SHORT + "max_running = 3\n")
                (tmp_path / "qbatch.toml").write_text(text, encoding="utf-8")
                await do("qbatch", "reload")
                await until(lambda: board.queues["short"].max_running == 3)
                await until(lambda: shown_by(board) == told_by(daemon))
                watching.cancel()
            played = FileRecording(str(tmp_path / "r.jsonl"))
            pictures = [
                found
                for place in range(len(played.at) + 1)
                if (found := played.picture(place)) is not None
            ]
            states = {host.name: host.state for host in pictures[-1].hosts}
            assert states["n3"] == "offline"

        asyncio.run(run())


def test_queues_of_hosts_reach_the_board_also_when_the_policy_keeps_them_later(
    tmp_path: Path,
) -> None:
    with Daemon(tmp_path, "--time", "x1", "--paused", config=emulated(hosts="n[1-2]")) as daemon:

        async def run() -> None:
            board = Board()
            watching = asyncio.create_task(Live(daemon.socket).run(board))
            await until(lambda: bool(board.queues))
            assert not board.has_host_queues
            await asyncio.to_thread(daemon.run, "qbatch", "policy", "set", "taskqueues:ties=lowest")
            await asyncio.to_thread(
                daemon.run, "qsub", "-J", "1-6", "-l", "ncpus=4", "--", "sleep", "60"
            )
            await until(
                lambda: (
                    [len(place.record.queue or ()) for place in board.grid.places.values()]
                    == [2, 2]
                )
            )
            watching.cancel()

        asyncio.run(run())


def test_jobs_that_only_time_and_dependencies_released_reach_the_board(tmp_path: Path) -> None:
    with Daemon(tmp_path, "--time", "virtual", "--paused", config=emulated(hosts="n1")) as daemon:

        async def do(*command: str) -> str:
            return (await asyncio.to_thread(daemon.run, *command)).stdout.strip()

        async def run() -> None:
            board = Board()
            watching = asyncio.create_task(Live(daemon.socket).run(board))
            await until(lambda: bool(board.queues))
            first = await do("qsub", "-l", "ncpus=4", "-l", "walltime=1:00", "--", "sleep", "10")
            await do("qsub", "-l", "ncpus=4", "-l", "walltime=9:00", "--", "sleep", "500")
            later = time.strftime("%Y%m%d%H%M.%S", time.localtime(board.now() / 1e6 + 100))
            timed = await do("qsub", "-a", later, "--", "sleep", "1")
            child = await do("qsub", "-W", f"depend=afterok:{first}", "--", "sleep", "1")
            held = await do("qsub", "-l", "ncpus=4", "--", "sleep", "1")
            before = await do(
                "qsub", "-W", f"depend=beforeok:{held}", "-l", "ncpus=4", "--", "sleep", "1"
            )
            await until(lambda: before in board.waiting)
            # What this does to the job that it stands before is an event of its own.
            await until(
                lambda: (
                    [board.waiting[each].state for each in (timed, child, held)] == ["W", "H", "H"]
                )
            )
            await do("qbatch", "time", "until", str(board.now() // 1_000_000 + 200))
            await until(lambda: board.waiting[timed].state == "Q")
            await until(lambda: shown_by(board) == told_by(daemon))
            assert board.waiting[child].state == "Q"
            watching.cancel()

        asyncio.run(run())


def test_a_recording_that_cannot_be_written_ends_and_the_monitor_goes_on(tmp_path: Path) -> None:
    with Daemon(tmp_path, "--time", "virtual", "--paused", config=emulated()) as daemon:

        async def run() -> None:
            board = Board()
            with open("/dev/full", "wb", buffering=0) as file:
                recorder = RecordingWriter.__new__(RecordingWriter)
                recorder._file = file
                watching = asyncio.create_task(Live(daemon.socket, recorder).run(board))
                await until(lambda: bool(board.queues))
                await asyncio.to_thread(daemon.run, "qsub", "--", "true")
                await until(lambda: len(board.events) >= 2)
                assert "the recording ends here: No space left on device" in [
                    each.text for each in board.events
                ]
                watching.cancel()

        asyncio.run(run())
