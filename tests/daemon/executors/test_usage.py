"""What a job uses is measured over all its processes, reported while it runs, and limited to what
it asked for."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
import time

import pytest

from qbatch.daemon.executors.attempt import LOST
from qbatch.daemon.executors.supervision import usage

from .world import World, supervisor_of, until

MEGABYTE = 1 << 20
HOLD = (
    f'{sys.executable} -S -c \'import time; x = b"x" * (40 << 20); open("held{{}}", "w"); '
    f"time.sleep({{}})'"
)
WORK = f"{sys.executable} -S -c 'import time\nwhile time.process_time() < 0.5: pass'"
BURN = f"{sys.executable} -S -c 'while True: pass'"


def test_memory_is_that_of_all_processes_at_once(world: World) -> None:
    end = world.run(f"{HOLD.format(1, 3)} & {HOLD.format(2, 3)} & wait")
    assert end.status == 0
    assert 80 * MEGABYTE < end.used["mem"] < 160 * MEGABYTE
    assert end.used["vmem"] > end.used["mem"]


def test_what_a_small_job_uses_is_not_what_its_supervisor_has(world: World) -> None:
    end = world.run("sleep 0.5")
    assert 0 < end.used["mem"] < 8 * MEGABYTE


def test_a_peak_between_two_looks_counts(world: World) -> None:
    end = world.run(f"sleep 0.4; {HOLD.format(1, 0)}")
    assert end.used["mem"] > 40 * MEGABYTE


def test_processor_time_counts_processes_that_run_and_that_have_ended(world: World) -> None:
    end = world.run(f"{WORK}; {WORK} & {WORK}; wait")
    assert 1.5 <= end.used["cput"] < 4.0
    assert end.used["mem"] > MEGABYTE


@pytest.mark.parametrize(
    ("limits", "script", "status", "line"),
    [
        ({"cput": 1.0}, f"{BURN} & {BURN} & wait", -28, r"cput \d+ exceeded limit 1"),
        ({"pcput": 1.0}, f"{BURN} & wait", -28, "pcput exceeded limit 1"),
        ({"mem": 30.0 * MEGABYTE}, HOLD.format(1, 60), -27, r"mem \d+kb exceeded limit 30720kb"),
        ({"vmem": 30.0 * MEGABYTE}, HOLD.format(1, 60), -26, r"vmem \d+kb exceeded limit 30720kb"),
    ],
)
def test_a_job_that_exceeds_what_it_asked_for_is_ended(
    world: World, limits: dict[str, float], script: str, status: int, line: str
) -> None:
    end = world.run(script, limits=limits, grace=0.2)
    assert end.status == status
    assert re.fullmatch(line, end.why)
    assert re.search(f"^=>> PBS: job killed: {line}$", world.text("1.1.e"), re.MULTILINE)


def test_a_process_limit_counts_each_for_itself(world: World) -> None:
    script = f"timeout -s KILL 1.2 {BURN} & timeout -s KILL 1.2 {BURN} & wait; exit 0"
    assert world.run(script, limits={"pcput": 3.0}).status == 0


def test_what_a_running_job_uses_is_reported_and_survives_its_supervisor(world: World) -> None:
    async def go() -> None:
        async with world.running() as executor:
            executor.launch(world.attempt("1.1", HOLD.format(1, 60)))
            await until(lambda: executor.used("1.1").get("mem", 0) > 40 * MEGABYTE)
        # Another daemon.
        async with world.running(world.attempt("1.1", HOLD.format(1, 60))) as executor:
            assert executor.used("1.1")["mem"] > 40 * MEGABYTE
            os.kill(supervisor_of(world, "1.1"), signal.SIGKILL)
            end = await world.end_of("1.1")
            assert end.status == LOST
            assert end.used["mem"] > 40 * MEGABYTE
            assert executor.used("2.1") == {}

    asyncio.run(go())


def test_the_walltime_can_be_changed_while_it_runs(world: World) -> None:
    async def go() -> None:
        async with world.running() as executor:
            executor.launch(world.attempt("1.1", "sleep 60", walltime=50.0, grace=0.2))
            executor.launch(world.attempt("2.1", "sleep 3", walltime=1.5, grace=0.2))
            await world.start_of("1.1")
            await world.start_of("2.1")
            executor.set_walltime("1.1", 1.0)
            executor.set_walltime("2.1", 30.0)
            assert (await world.end_of("1.1")).status == -29
            assert (await world.end_of("2.1")).status == 0

    asyncio.run(go())
    assert re.search(
        r"^=>> PBS: job killed: walltime \d+ exceeded limit 1$", world.text("1.1.e"), re.MULTILINE
    )


def test_a_look_costs_little_and_is_rare() -> None:
    meter = usage.Meter({}, "", 0.0)
    now, looks = 0.0, 0
    while now < 600:
        now = meter.due
        meter.look(now, 0.0)
        looks += 1
    assert looks < 70
    began = time.process_time()
    for _ in range(100):
        meter.look(now, 0.0)
    # A thousand jobs: a few percent of one processor.
    assert (time.process_time() - began) / 100 < 0.005
