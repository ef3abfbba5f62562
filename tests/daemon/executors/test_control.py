"""Stop, signals and the walltime: everything that a job started goes, when it should."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import time
import uuid
from pathlib import Path

import pytest

from qbatch.daemon.executors.attempt import LOST
from qbatch.daemon.executors.supervision import processes

from .world import World, named, supervisor_of, until

PYTHON = f"#!{sys.executable} -IS\n"

STUBBORN = (
    PYTHON
    + """
import os, signal, subprocess, sys, time
mark = {mark!r}
deaf = "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)\\n"
deaf += "open({ready!r} + str(os.getpid()), 'w'); time.sleep(600)"
signal.signal(signal.SIGTERM, signal.SIG_IGN)
command = [sys.executable, "-ISc", deaf, mark]
subprocess.Popen(command)                                  # a child
subprocess.Popen(command, start_new_session=True)          # a session of its own
subprocess.Popen(command, env={{}}, start_new_session=True)  # and without our mark in its environment
for environment in (dict(os.environ), {{}}):               # orphans: forked twice
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execve(sys.executable, command, environment)
        os._exit(0)
{last}
"""
)


def stubborn(world: World, mark: str, last: str = "time.sleep(600)") -> str:
    return STUBBORN.format(mark=mark, ready=str(world.base / "ready."), last=last)


def ready(world: World) -> bool:
    return len(list(world.base.glob("ready.*"))) == 5


@pytest.fixture
def mark() -> str:
    return uuid.uuid4().hex


@pytest.mark.usefixtures("either_way")
def test_walltime_ends_everything_that_the_job_started(world: World, mark: str) -> None:
    end = world.run(stubborn(world, mark), walltime=2.0, grace=0.5)
    assert named(mark) == []
    assert ready(world)
    start = world.started("1.1")
    assert start is not None
    assert end.status == -29
    assert end.why == "walltime 3 exceeded limit 2"
    # Walltime + grace + 1 s, and 2 s for a loaded machine.
    assert 2.4 <= (end.at - start.at) / 1e6 <= 3.5 + 2.0
    assert "walltime" in world.text("1.1.e")


@pytest.mark.usefixtures("either_way")
def test_what_is_left_when_the_script_ends_is_killed(world: World, mark: str) -> None:
    wait = (
        f"import glob\nwhile len(glob.glob({str(world.base / 'ready.*')!r})) < 5: "
        "time.sleep(0.02)\nsys.exit(5)"
    )
    end = world.run(stubborn(world, mark, wait))
    assert end.status == 5
    assert named(mark) == []


@pytest.mark.usefixtures("either_way")
def test_stop_gives_grace_then_kills_everything(world: World, mark: str) -> None:
    async def go() -> None:
        async with world.running() as executor:
            executor.launch(world.attempt("1.1", stubborn(world, mark)))
            await until(lambda: ready(world))
            executor.stop("1.1", 0.3)
            assert (await world.end_of("1.1")).status == 271
            assert named(mark) == []

    asyncio.run(go())


def test_supervisor_whose_directory_was_deleted_still_goes(world: World, mark: str) -> None:
    async def go() -> None:
        async with world.running() as executor:
            executor.launch(world.attempt("1.1", f"exec tail -f /dev/null {mark}"))
            await world.start_of("1.1")
            await until(lambda: named(mark))
            supervisor = supervisor_of(world, "1.1")
            start = processes.start_of(supervisor)
            shutil.rmtree(world.root / "1.1")
            os.kill(supervisor, signal.SIGTERM)
            await until(lambda: processes.open_process(supervisor, start or 0) is None)
            assert named(mark) == []
            assert (await world.end_of("1.1")).status == LOST

    asyncio.run(go())


def test_a_process_that_heeds_the_stop_has_the_grace_also_after_its_parent(world: World) -> None:
    child = world.base / "child"
    heed = (
        "trap 'sleep 0.4; echo saved > saved; exit 0' TERM; touch up; while :; do sleep 0.05; done"
    )
    child.write_text(heed, encoding="utf-8")

    async def go() -> None:
        async with world.running() as executor:
            executor.launch(world.attempt("1.1", f"sh {child} & exec sleep 600"))
            await until(lambda: (world.base / "up").exists())
            executor.stop("1.1", 30.0)
            assert (await world.end_of("1.1")).status == 271
            assert world.text("saved") == "saved\n"

    asyncio.run(go())


def test_script_that_heeds_the_walltime_keeps_what_it_wrote(world: World) -> None:
    script = "trap 'echo bye; exit 0' TERM; while :; do sleep 0.05; done"
    end = world.run(script, walltime=0.5, grace=30.0)
    assert (end.status, world.text("1.1.o")) == (-29, "bye\n")
    assert 0.5 <= end.used["walltime"] < 10


def test_stop_before_the_script_is_started(world: World) -> None:
    """The stop follows its launch on the launching thread; a supervisor takes longer to start, on
    an idle machine at least."""

    async def go() -> None:
        before = 0
        async with world.running() as executor:
            for number in range(8):
                executor.launch(world.attempt(f"{number}.1", "sleep 600; echo went on"))
                executor.stop(f"{number}.1", 0.2)
            for number in range(8):
                end = await world.end_of(f"{number}.1")
                assert end.status == 271
                before += "before" in end.why
                assert world.text(f"{number}.1.o") == ""
        assert before > 0

    asyncio.run(go())


def test_signals_sent_at_any_time_arrive(world: World) -> None:
    async def go() -> None:
        async with world.running() as executor:
            executor.launch(world.attempt("1.1", "sleep 600"))
            executor.signal("1.1", signal.SIGUSR1)  # before there is a supervisor
            assert (await world.end_of("1.1")).status == 256 + signal.SIGUSR1
            executor.launch(
                world.attempt(
                    "2.1", "trap 'echo heard; exit 3' TERM; touch up; while :; do sleep 0.05; done"
                )
            )
            await until(lambda: (world.base / "up").exists())
            executor.signal("2.1", signal.SIGTERM)
            # Its shell dies of it; what the script does then is still done.
            assert (await world.end_of("2.1")).status == 256 + signal.SIGTERM
            assert world.text("2.1.o") == "heard\n"
            ignored = "trap '' USR2; touch deaf; while ! test -e go; do sleep 0.05; done; exit 3"
            executor.launch(world.attempt("3.1", ignored))
            await until(lambda: (world.base / "deaf").exists())
            executor.signal("3.1", signal.SIGUSR2)
            assert (await world.end_of("3.1")).status == 256 + signal.SIGUSR2
            handler = (
                "trap 'echo on' USR2; touch on; while ! test -e go; do sleep 0.05; done; exit 3"
            )
            executor.launch(
                world.attempt("4.1", None, argv=("sh", "-c", handler))
            )  # no shell but its own
            await until(lambda: (world.base / "on").exists())
            executor.signal("4.1", signal.SIGUSR2)
            await until(lambda: "on" in Path(executor.spools("4.1")[0]).read_text())
            (world.base / "go").touch()
            assert (await world.end_of("4.1")).status == 3

    asyncio.run(go())


def test_suspended_jobs_stand_still_and_so_does_their_walltime(world: World) -> None:
    script = "(while :; do echo x; sleep 0.05; done) & while :; do echo y; sleep 0.05; done"
    output = world.base / "1.1.o"

    async def go() -> None:
        async with world.running() as executor:
            executor.launch(world.attempt("1.1", script, walltime=2.0, grace=0.5, direct="oe"))
            await until(lambda: output.exists() and output.stat().st_size > 8)
            executor.signal("1.1", signal.SIGSTOP)
            session = (await world.start_of("1.1")).session
            await until(lambda: " T " in _stat(session))
            await asyncio.sleep(0.3)
            size = output.stat().st_size
            until_then = time.monotonic() + 2.5  # longer than the walltime
            while time.monotonic() < until_then:
                assert world.ended("1.1") is None
                assert output.stat().st_size == size
                await asyncio.sleep(0.1)
            executor.signal("1.1", signal.SIGCONT)
            await until(lambda: output.stat().st_size > size)
            end = await world.end_of("1.1")
            start = world.started("1.1")
            assert start is not None
            assert end.status == -29
            assert 2.0 <= end.used["walltime"] < 6
            assert (end.at - start.at) / 1e6 >= end.used["walltime"] + 2.4

    asyncio.run(go())


def test_suspended_job_can_be_stopped(world: World) -> None:
    async def go() -> None:
        async with world.running() as executor:
            executor.launch(
                world.attempt(
                    "1.1", "trap 'echo bye; exit 6' TERM; touch up; while :; do sleep 0.05; done"
                )
            )
            await until(lambda: (world.base / "up").exists())
            executor.signal("1.1", signal.SIGSTOP)
            executor.stop("1.1", 30.0)
            assert (await world.end_of("1.1")).status == 271
            assert world.text("1.1.o") == "bye\n"

    asyncio.run(go())


def test_control_works_after_a_restart(world: World, mark: str) -> None:
    attempt = world.attempt("1.1", stubborn(world, mark))

    async def before() -> None:
        async with world.running() as executor:
            executor.launch(attempt)
            await until(lambda: ready(world))

    async def after() -> None:
        async with world.running(attempt) as executor:
            assert world.started("1.1") is not None
            executor.stop("1.1", 0.1)
            assert (await world.end_of("1.1")).status == 271

    asyncio.run(before())
    assert len(named(mark)) == 5
    world.reports.clear()
    asyncio.run(after())
    assert named(mark) == []


def test_terminated_supervisor_stops_its_job_and_records_it(world: World, mark: str) -> None:
    async def go() -> None:
        async with world.running() as executor:
            executor.launch(world.attempt("1.1", stubborn(world, mark), grace=0.2))
            await until(lambda: ready(world))
            os.kill(supervisor_of(world, "1.1"), signal.SIGTERM)
            assert (await world.end_of("1.1")).status == 271
            assert named(mark) == []

    asyncio.run(go())


def _stat(pid: int) -> str:
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stream:
        return stream.read()
