"""The monitor on a real daemon: the board says what the daemon says, also after kill -9; keys
really do what they say."""

from __future__ import annotations

import asyncio
import os
import pwd
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from textual.widgets import Input

from qbatch.client import ClientSession, NoDaemon
from qbatch.tui.app import Monitor
from qbatch.tui.board import Board
from qbatch.tui.live import Live
from qbatch.tui.panels.jobs import JobTable
from qbatch.tui.query import Query
from qbatch.tui.recording import FileRecording, RecordingWriter
from qbatch.tui.screens.output import Follow
from qbatch.wire.records import HostRecord, Hosts, JobRecord, Jobs, SubmissionRecord
from qbatch.wire.requests import HostStatus, JobStatus, Spec, Submit
from tests.daemon.harness import Daemon, emulated
from tests.tui.test_keys import press

SECOND = 1_000_000


def submit(
    daemon: Daemon, count: int, *, procs: int = 1, seconds: float = 3600, user: str = "x"
) -> list[str]:
    with ClientSession(daemon.socket) as session:
        return [
            session.ask(
                Submit(
                    spec=Spec(
                        name=f"j{number}",
                        argv=("true",),
                        runtime=int(seconds * SECOND),
                        host=user,
                        resources={"select": f"1:ncpus={procs}:mem=1gb", "walltime": "7200"},
                    )
                ),
                SubmissionRecord,
            ).job
            for number in range(count)
        ]


async def until(what: Callable[[], bool], seconds: float = 20.0) -> None:
    """Wait until something is so."""
    limit = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < limit, "it did not come"
        await asyncio.sleep(0.02)


def told_by(daemon: Daemon) -> tuple[dict[str, str], dict[str, tuple[int, str]]]:
    """Return what the daemon itself says: jobs with their states, hosts with processors in use and
    their states."""
    with ClientSession(daemon.socket) as session:
        jobs: dict[str, JobRecord] = {
            job.id: job for job in session.jobs(JobStatus(subjobs=True)) if not job.is_array
        }
        hosts: tuple[HostRecord, ...] = session.ask(HostStatus(), Hosts).hosts
    states = {name: job.state for name, job in jobs.items() if job.state not in "FX"}
    return states, {
        host.name: (host.cpus_used, host.state.replace("job-busy", "free")) for host in hosts
    }


def shown_by(board: Board) -> tuple[dict[str, str], dict[str, tuple[int, str]]]:
    states = {job.id: job.state for job in [*board.running.values(), *board.waiting.values()]}
    hosts = {
        name: (place.busy, place.record.state.replace("job-busy", "free"))
        for name, place in board.grid.places.items()
    }
    return states, hosts


def test_the_board_agrees_with_the_daemon_through_kills(tmp_path: Path) -> None:
    with Daemon(tmp_path, "--time", "x30", config=emulated()) as daemon:
        submit(daemon, 6, procs=3, seconds=20)

        async def run() -> None:
            board = Board()
            with (tmp_path / "r.jsonl").open("wb") as file:
                live = Live(daemon.socket, RecordingWriter(file, "1"))
                watching = asyncio.create_task(live.run(board))
                await until(lambda: bool(board.queues))
                await asyncio.to_thread(submit, daemon, 12, procs=2, seconds=150)
                await asyncio.to_thread(daemon.run, "qbatch", "host", "drain", "n3")
                await asyncio.to_thread(daemon.run, "qhold", "15")
                await until(lambda: shown_by(board) == told_by(daemon))
                await asyncio.to_thread(daemon.kill)
                await until(lambda: bool(live.trouble))
                assert board.is_stale
                await asyncio.to_thread(daemon.start)
                await until(lambda: not live.trouble)
                await asyncio.to_thread(submit, daemon, 5, procs=4, seconds=30)
                await asyncio.to_thread(daemon.run, "qrls", "15")
                await until(lambda: told_by(daemon)[0] == {}, 60)
                await until(lambda: shown_by(board) == told_by(daemon))
                texts = [event.text for event in board.events if event.kind == "monitor"]
                assert texts == [
                    "the daemon has gone; waiting for it to come back",
                    "the daemon is back",
                ]
                watching.cancel()
            played = FileRecording(str(tmp_path / "r.jsonl"))
            assert played.kinds.count("submitted") == 17
            assert (
                sum(played.picture(place) is not None for place in range(len(played.at) + 1)) == 3
            )

        asyncio.run(run())


def test_no_daemon_is_said_at_once(tmp_path: Path) -> None:
    async def run() -> None:
        with pytest.raises(NoDaemon, match="qbatch up"):
            await Live(str(tmp_path / "none")).run(Board())
        app = Monitor(Live(str(tmp_path / "none")))
        async with app.run_test() as pilot:
            await until(lambda: app.failure is not None)
            await pilot.pause()
        assert isinstance(app.failure, NoDaemon)

    asyncio.run(run())


def test_more_than_the_window_wait_and_the_daemon_chooses(tmp_path: Path) -> None:
    with Daemon(tmp_path, "--time", "virtual", "--paused", config=emulated()) as daemon:
        daemon.run("qsub", "-J", "0-699", "-N", "many", "--", "true")
        last = daemon.run("qsub", "-N", "last", "-q", "batch", "--", "true").stdout.strip()

        async def run() -> None:
            board = Board()
            live = Live(daemon.socket)
            watching = asyncio.create_task(live.run(board))
            await until(lambda: len(board.waiting) >= 400)
            assert board.is_window
            assert board.waiting_total == 701
            assert last not in board.waiting
            users = Query(f"user={pwd.getpwuid(os.getuid()).pw_name}").exact("user") or ()
            await live.choose_waiting(users, ("batch",))
            assert len(board.waiting) >= 400
            page = await live.ask(JobStatus(jobs=(last,)), Jobs)
            assert page.jobs[0].state == "Q"
            watching.cancel()

        asyncio.run(run())


def test_keys_act_on_a_daemon_and_output_is_followed(tmp_path: Path) -> None:
    with Daemon(tmp_path) as daemon:
        first = daemon.run(
            "qsub",
            "-N",
            "talk",
            "--",
            "/bin/sh",
            "-c",
            "echo one; printf 'two\\033[31m\\n'; sleep 60",
        ).stdout.strip()
        daemon.run("qsub", "-N", "wide", "-l", "select=4:ncpus=16", "--", "sleep", "60")

        async def run() -> None:
            app = Monitor(Live(daemon.socket))
            async with app.run_test(size=(160, 50)) as pilot:
                waiting, running = (
                    app.query_one("#waiting", JobTable),
                    app.query_one("#running", JobTable),
                )
                await until(lambda: len(waiting.rows) == 1 and len(running.rows) == 1)
                await press(pilot, "3", "h", "y")
                await until(lambda: bool(waiting.rows) and waiting.rows[0].state == "H")
                await press(pilot, "r", "y")
                await until(lambda: waiting.rows[0].state == "Q")
                await press(pilot, "p")
                app.screen.query_one(Input).value = "77"
                await press(pilot, "enter", "y")
                await until(lambda: waiting.rows[0].priority == 77)
                await press(pilot, "w")
                why = app.screen.query_one("#why-text")
                await until(
                    lambda: (
                        "needs" in str(why.render()) and "expected to start" in str(why.render())
                    )
                )
                await press(pilot, "escape", "4", "o")
                follow = app.screen.query_one(Follow)
                await until(lambda: "two?[31m" in "\n".join(follow.lines))
                await press(pilot, "d", "y")
                await until(lambda: not any(job.id == first for job in running.rows))
                await press(pilot, "escape", "8")
                history = app.query_one("#history", JobTable)
                await until(lambda: any(job.id == first for job in history.rows))

        asyncio.run(run())
