"""What survives: the daemon's death, a supervisor's death, damage, and the ways in which two could
start one attempt."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import msgspec
import pytest

from qbatch.daemon.executors import process
from qbatch.daemon.executors.attempt import LOST, Ended, Started
from qbatch.daemon.executors.process_directory import RunDirectory
from qbatch.daemon.executors.supervision import processes

from .test_control import ready, stubborn
from .world import DEADLINE, World, named, supervisor_of, until

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def mark() -> str:
    return uuid.uuid4().hex


def test_every_attempt_runs_once_and_its_end_is_known_though_the_daemon_is_killed(
    world: World,
) -> None:
    chance = random.Random(11)
    plan, wanted = [], {}
    for number in range(50):
        key, nap = f"{number}.1", chance.uniform(0.0, 2.5)
        status = chance.choice([*range(256), *(256 + n for n in (1, 2, 6, 9, 15, 10))])
        last = f"exit {status}" if status < 256 else f"kill -{status - 256} $$"
        plan.append(world.attempt(key, f"echo {key} >> ran; sleep {nap:.2f}; {last}"))
        wanted[key] = status
    (world.base / "plan.json").write_bytes(msgspec.json.encode(plan))
    kills = 0
    for kill in [True] * 10 + [False]:
        driver = subprocess.Popen(
            [sys.executable, "-m", "tests.daemon.executors.driver", str(world.base)], cwd=ROOT
        )
        try:
            driver.wait(chance.uniform(0.1, 0.6) if kill else DEADLINE)
        except subprocess.TimeoutExpired:
            assert kill
            driver.kill()
            driver.wait()
            kills += 1
    assert kills >= 3
    assert driver.returncode == 0
    ends = [
        msgspec.json.decode(line, type=Ended)
        for line in (world.base / "ends").read_bytes().splitlines()
    ]
    assert {end.key: end.status for end in ends} == wanted
    # An end that is reported twice is the same.
    assert all(wanted[end.key] == end.status for end in ends)
    assert sorted(world.text("ran").split()) == sorted(wanted)


def only_unmarked_orphans_are_left(mark: str, has_group: bool) -> None:
    """Without a control group and without the supervisor, an orphan that shed its environment
    cannot be recognised."""
    left = named(mark)
    assert len(left) <= (0 if has_group else 1)
    for pid in left:
        os.kill(pid, signal.SIGKILL)


def test_killed_supervisor_is_noticed_and_its_job_is_cleared_up(
    world: World, mark: str, either_way: bool
) -> None:
    async def go() -> None:
        async with world.running() as executor:
            executor.launch(world.attempt("1.1", stubborn(world, mark)))
            await until(lambda: ready(world))
            await world.start_of("1.1")
            before = time.monotonic()
            os.kill(supervisor_of(world, "1.1"), signal.SIGKILL)
            end = await world.end_of("1.1")
            assert time.monotonic() - before < 2.0 + 2.0  # two for a loaded machine
            assert end.status == LOST
            assert "supervisor" in end.why
            executor.forget("1.1")

    asyncio.run(go())
    only_unmarked_orphans_are_left(mark, either_way)


def test_supervisors_killed_at_any_instant_never_start_a_script_twice(world: World) -> None:
    chance = random.Random(5)

    async def kill_soon(executor: process.ProcessExecutor, key: str) -> None:
        await until(lambda: key not in executor._tracks or executor._tracks[key].child is not None)
        await asyncio.sleep(chance.uniform(0.0, 0.12))
        track = executor._tracks.get(key)
        if track is not None and track.child is not None:
            os.kill(track.child, signal.SIGKILL)

    async def go() -> dict[str, int]:
        async with world.running() as executor:
            for number in range(40):
                key = f"{number}.1"
                executor.launch(world.attempt(key, f"echo {key} >> ran; exec sleep 0.5"))
                await kill_soon(executor, key)
            return {
                f"{number}.1": (await world.end_of(f"{number}.1")).status for number in range(40)
            }

    ends = asyncio.run(go())
    ran = world.text("ran").split() if (world.base / "ran").exists() else []
    assert len(ran) == len(set(ran))
    assert set(ends.values()) <= {0, LOST}
    assert {key for key, status in ends.items() if status == 0} <= set(ran)
    assert not [key for key in ends if named(str(world.root / key / f"{key}.SC"))]


def test_supervisor_that_dies_together_with_the_daemon_is_a_loss_and_stays_one(
    world: World, mark: str
) -> None:
    attempt = world.attempt("1.1", stubborn(world, mark))

    async def before() -> None:
        async with world.running() as executor:
            executor.launch(attempt)
            await until(lambda: ready(world))

    async def after() -> int:
        world.reports.clear()
        async with world.running(attempt):
            return (await world.end_of("1.1")).status

    asyncio.run(before())
    os.kill(supervisor_of(world, "1.1"), signal.SIGKILL)
    assert asyncio.run(after()) == LOST
    only_unmarked_orphans_are_left(mark, bool(processes.leaf_path("1.1", mark)))
    assert asyncio.run(after()) == LOST


def test_what_ended_while_no_daemon_was_there_is_reported_until_it_is_forgotten(
    world: World,
) -> None:
    attempt = world.attempt(
        "1.1", "echo once >> ran; until test -e go; do sleep 0.02; done; exit 9"
    )

    async def before() -> None:
        async with world.running() as executor:
            executor.launch(attempt)
            await world.start_of("1.1")

    async def after(forget: bool) -> None:
        world.reports.clear()
        async with world.running(attempt) as executor:
            assert (await world.end_of("1.1")).status == 9
            assert [type(each) for each in world.reports] == [Started, Ended]
            if forget:
                executor.forget("1.1")

    asyncio.run(before())
    (world.base / "go").touch()
    asyncio.run(until(lambda: (world.root / "1.1" / "exit.json").exists()))
    asyncio.run(after(False))
    asyncio.run(after(True))
    assert world.text("ran") == "once\n"
    assert os.listdir(world.root) == ["events"]


def test_what_is_not_expected_is_killed_and_removed(world: World, mark: str) -> None:
    async def before() -> None:
        async with world.running() as executor:
            executor.launch(world.attempt("1.1", stubborn(world, mark)))
            executor.launch(world.attempt("2.1", "true"))
            await until(lambda: ready(world))
            await world.end_of("2.1")

    async def after() -> None:
        async with world.running():
            await until(lambda: os.listdir(world.root) == ["events"])

    asyncio.run(before())
    (world.root / "3.1").mkdir()  # a launch that had hardly begun
    world.reports.clear()
    asyncio.run(after())
    assert named(mark) == []
    assert world.reports == []


def test_intent_without_a_claim_is_launched(world: World) -> None:
    attempts = [
        world.attempt(f"{number}.1", f"echo {number} >> ran; exit {number}") for number in range(4)
    ]
    world.root.mkdir()
    (world.root / "1.1").mkdir()
    (world.root / "2.1").mkdir()
    # Torn by a power cut.
    (world.root / "2.1" / "spec.json").write_text('{"key": "2.', encoding="utf-8")
    (world.root / "3.1").mkdir()
    (world.root / "3.1" / "spec.json").write_bytes(msgspec.json.encode(attempts[3]))

    async def go() -> None:
        async with world.running(*attempts):
            for number in range(4):
                assert (await world.end_of(f"{number}.1")).status == number

    asyncio.run(go())
    assert sorted(world.text("ran").split()) == ["0", "1", "2", "3"]


def test_of_many_supervisors_one_runs_the_script(world: World) -> None:
    attempt = world.attempt("1.1", "echo once >> ran; sleep 0.3; exit 2")
    world.root.mkdir(mode=0o700)
    directory = RunDirectory(world.root / "1.1")
    directory.prepare(attempt)
    command = [sys.executable, "-I", "-S", process.SUPERVISOR, str(world.root / "1.1")]
    running = [subprocess.Popen(command, env={"QBATCH_ATTEMPT": f"{n:032x}"}) for n in range(6)]

    async def go() -> None:
        async with world.running(attempt):  # and the executor's own
            assert (await world.end_of("1.1")).status == 2

    asyncio.run(go())
    assert sorted(each.wait(DEADLINE) for each in running)[1:] == [3] * 5
    assert world.text("ran") == "once\n"


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"status": "x", "at": 1}', "\xff\xfe", '{"status": 1}']
)
def test_damaged_exit_record_is_a_loss_with_words(world: World, text: str) -> None:
    attempt = world.attempt("1.1", "exit 0")
    assert world.run("exit 0").status == 0
    (world.root / "1.1" / "exit.json").write_bytes(text.encode("latin-1"))
    world.reports.clear()

    async def go() -> None:
        async with world.running(attempt):
            end = await world.end_of("1.1")
            assert (end.status, "exit.json" in end.why) == (LOST, True)

    asyncio.run(go())


def test_damage_elsewhere_never_stops_the_executor(world: World) -> None:
    world.root.mkdir(mode=0o700)
    attempts = [world.attempt(f"{number}.1", "echo ran >> ran") for number in range(5)]
    for number in (0, 1, 2):
        (world.root / f"{number}.1").mkdir()
    (world.root / "0.1" / "claim").touch()  # killed between making and writing the claim
    (world.root / "1.1" / "claim").write_text(
        '{"pid": 1, "start": 1, "boot": "other", "token": ""}', encoding="utf-8"
    )
    (world.root / "2.1" / "claim").mkdir()
    (world.root / "3.1").write_text("not a directory", encoding="utf-8")

    async def go() -> None:
        async with world.running(*attempts) as executor:
            ends = [await world.end_of(f"{number}.1") for number in range(5)]
            assert [end.status for end in ends] == [LOST, LOST, LOST, -1, 0]
            assert all(end.why for end in ends[:4])
            assert "restarted" in ends[1].why
            for number in range(5):
                executor.forget(f"{number}.1")

    asyncio.run(go())
    assert world.text("ran") == "ran\n"
    assert os.listdir(world.root) == ["events"]


def test_damaged_specification_is_not_started(world: World) -> None:
    world.root.mkdir(mode=0o700)
    (world.root / "1.1").mkdir()
    (world.root / "1.1" / "spec.json").write_text(
        '{"walltime": null, "grace": 1, "umask": "x"}', encoding="utf-8"
    )
    command = [sys.executable, "-I", "-S", process.SUPERVISOR, str(world.root / "1.1")]
    assert (
        subprocess.run(
            command, env={"QBATCH_ATTEMPT": "0" * 32}, timeout=DEADLINE, check=False
        ).returncode
        == 0
    )

    async def go() -> None:
        async with world.running(world.attempt("1.1", "true")):
            end = await world.end_of("1.1")
            assert end.status == -1
            assert "spec.json" in end.why

    asyncio.run(go())


def test_supervisor_that_cannot_start_is_given_up(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = world.base / "broken.py"
    program.write_text("raise SystemExit('no luck')", encoding="utf-8")
    monkeypatch.setattr(process, "SUPERVISOR", str(program))
    end = world.run("true")
    assert (end.status, "no luck" in end.why) == (-1, True)
    monkeypatch.undo()
    world.reports.clear()

    async def go() -> None:
        async with world.running(world.attempt("1.1", "echo ran > ran")):
            assert (await world.end_of("1.1")).status == -1

    asyncio.run(go())
    assert not (world.base / "ran").exists()


def children() -> set[int]:
    """Children of this process, dead ones too."""
    stats = {pid: processes.read_stat(pid) for pid in processes.every_process()}
    return {pid for pid, stat in stats.items() if stat is not None and stat[1] == os.getpid()}


def test_two_hundred_quick_jobs_leave_nothing(world: World) -> None:
    async def go() -> None:
        async with world.running() as executor:
            executor.launch(world.attempt("0.0", "true"))
            await world.end_of("0.0")
            executor.forget("0.0")
            before = len(os.listdir("/proc/self/fd"))
            children_before = children()
            for number in range(200):
                executor.launch(world.attempt(f"{number}.1", f"exit {number}"))
            for number in range(200):
                assert (await world.end_of(f"{number}.1")).status == number
                executor.forget(f"{number}.1")
            await until(lambda: os.listdir(world.root) == ["events"])
            assert len(os.listdir("/proc/self/fd")) == before
            assert children() == children_before

    asyncio.run(go())


def _start_of_new() -> int | None:
    with subprocess.Popen(["sleep", "600"]) as new:
        start = processes.start_of(new.pid)
        new.kill()
    return start


def test_number_of_a_process_that_is_gone_never_hits_another() -> None:
    with subprocess.Popen(["sleep", "600"]) as first:
        start = processes.start_of(first.pid)
        assert start is not None
        assert not processes.signal_process(first.pid, start + 1, signal.SIGKILL)
        assert first.poll() is None
        assert processes.signal_process(first.pid, start, signal.SIGKILL)
    while _start_of_new() == start:
        pass  # within one tick (10 ms) of the clock, it cannot distinguish two processes
    hits = 0
    for _ in range(50):
        with contextlib.suppress(OSError):
            Path("/proc/sys/kernel/ns_last_pid").write_text(str(first.pid - 1), encoding="ascii")
        with subprocess.Popen(["sleep", "600"]) as other:
            hits += other.pid == first.pid
            assert not processes.signal_process(first.pid, start, signal.SIGKILL)
            assert other.poll() is None
            other.kill()
    if not hits:
        pytest.skip("process numbers cannot be chosen here")


def test_exit_is_recorded_though_the_job_filled_the_disk(world: World) -> None:
    world.root.mkdir(mode=0o700)
    mount = ["mount", "-t", "tmpfs", "-o", "size=512k,mode=0700", "qbatch-test", str(world.root)]
    if os.getuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("cannot mount a small disk here")
    try:
        script = (
            f"cat /dev/zero > {world.root}/fill; sleep 0.1; cat /dev/zero > $TMPDIR/fill; exit 12"
        )
        assert world.run(script).status == 12
        assert (world.root / "fill").stat().st_size > 100_000
    finally:
        subprocess.run(["umount", "-l", str(world.root)], check=True)


def test_supervisor_is_small_and_knows_nothing_of_qbatch() -> None:
    code = (
        "import sys; sys.path.append(sys.argv[1]); import supervision.loop; "
        "print(*sorted(sys.modules), [l for l in open('/proc/self/status') if "
        "l.startswith('VmRSS')][0].split()[1])"
    )
    folder = str(Path(process.SUPERVISOR).parent)
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, folder], check=True, capture_output=True, text=True
    )
    *modules, memory = done.stdout.split()
    assert not {
        "json",
        "re",
        "enum",
        "signal",
        "typing",
        "subprocess",
        "pathlib",
        "contextlib",
    } & set(modules)
    assert not [module for module in modules if module.startswith("qbatch")]
    assert int(memory) < 20_000
