"""A job that gets another number of processors: its file says so, its processes get a signal, its
walltime runs slower."""

from __future__ import annotations

import asyncio

from .world import World, until

COUNTING = """
trap 'echo "resized: $(grep NCPUS $QBATCH_ALLOCATION)"' WINCH
echo "begins: $(grep NCPUS $QBATCH_ALLOCATION)"
while [ ! -e go ]; do sleep 0.05; done
"""

CARELESS = """
sleep 0.6
echo unharmed
"""


def test_a_job_learns_how_many_processors_it_has(world: World) -> None:
    async def go() -> None:
        async with world.running() as executor:
            executor.launch(world.attempt("1.1", COUNTING, procs=4, direct="o"))
            await world.start_of("1.1")
            await until(lambda: "begins" in world.text("1.1.o"))
            for procs in (2, 3):
                executor.resize("1.1", procs, procs / 4)
                await until(lambda procs=procs: f"resized: NCPUS={procs}" in world.text("1.1.o"))
            text = (world.root / "1.1" / "allocation").read_text(encoding="utf-8")
            assert text == "NCPUS=3\nOMP_NUM_THREADS=3\n"
            (world.base / "go").touch()
            assert (await world.end_of("1.1")).status == 0
        assert world.text("1.1.o").split("\n")[0] == "begins: NCPUS=4"

    asyncio.run(go())


def test_a_job_that_does_not_care_is_not_harmed(world: World) -> None:
    async def go() -> None:
        async with world.running() as executor:
            executor.launch(world.attempt("1.1", CARELESS))
            await world.start_of("1.1")
            executor.resize("1.1", 1, 0.5)
            assert (await world.end_of("1.1")).status == 0
        assert world.text("1.1.o") == "unharmed\n"

    asyncio.run(go())


def test_walltime_runs_at_the_share_of_processors_that_the_job_has(world: World) -> None:
    """A third of the processors for 3 s use 1 s of the walltime of 3 s; the other 2 s take 3 s at
    two thirds: 6 s in all."""

    async def go() -> float:
        async with world.running() as executor:
            executor.launch(
                world.attempt("1.1", "sleep 60", walltime=3.0, grace=0.0, procs=1, share=1 / 3)
            )
            begun = await world.start_of("1.1")
            await asyncio.sleep(3.0)  # a second of it is used
            executor.resize("1.1", 2, 2 / 3)
            end = await world.end_of("1.1")
            assert end.status == -29
            return (end.at - begun.at) / 1e6

    assert 5.5 < asyncio.run(go()) < 9.0
