"""Clocks that jump, configurations that change under load, the end of the service, and systemd's
side of it."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from qbatch.client import ClientSession
from qbatch.daemon import clock
from qbatch.daemon.clock import Clock
from qbatch.wire.errors import Refusal
from qbatch.wire.records import Outcomes, Queues, SubmissionRecord, Text
from qbatch.wire.requests import Delete, QueueStatus, Reload, Spec, Submit
from tests.daemon.harness import Daemon
from tests.daemon.hostile.tools import EMULATED, REAL, Load, all_jobs, check, needs_strace, until
from tests.harness import size

HOUR, YEAR = 3600, 365 * 86_400
SECOND = 1_000_000


class FakeTime:
    """Stands in for the module ``time``: a wall that jumps and a monotonic clock that does not."""

    def __init__(self) -> None:
        self.wall, self.steady = 1_700_000_000.0, 5000.0

    def time_ns(self) -> int:
        return int(self.wall * 1e9)

    def monotonic(self) -> float:
        return self.steady

    def go_on(self, seconds: float) -> None:
        self.wall += seconds
        self.steady += seconds


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeTime]:
    there = FakeTime()
    monkeypatch.setattr(clock, "time", there)
    return there


@pytest.mark.parametrize("jump", [1, HOUR, 20 * YEAR])
def test_a_step_of_the_wall_forward_is_followed_at_once(fake: FakeTime, jump: int) -> None:
    ours = Clock()
    begin = ours.now()
    due = begin + (20 + jump) * SECOND
    fake.go_on(10)
    fake.wall += jump
    assert ours.now() == begin + (10 + jump) * SECOND
    assert ours.delay(due) == clock.LOOK
    fake.go_on(10)
    assert ours.limit() >= due
    assert ours.delay(due) == 0.0
    assert ours.record().ahead == 0


def test_after_a_small_step_backward_time_stands_until_the_wall_has_caught_up(
    fake: FakeTime,
) -> None:
    ours = Clock()
    begin = ours.now()
    fake.go_on(10)
    ours.now()
    fake.wall -= 5
    assert (ours.now(), ours.record().ahead) == (begin + 10 * SECOND, 5 * SECOND)
    assert ours.delay(begin + 10 * SECOND + 1) == clock.LOOK
    fake.go_on(4)
    assert ours.now() == begin + 10 * SECOND
    fake.go_on(3)
    assert (ours.now(), ours.record().ahead) == (begin + 12 * SECOND, 0)


@pytest.mark.parametrize("jump", [HOUR, 20 * YEAR])
def test_after_a_large_step_backward_time_goes_on_ahead_of_the_wall_and_says_so(
    fake: FakeTime, jump: int, caplog: pytest.LogCaptureFixture
) -> None:
    ours = Clock()
    begin = ours.now()
    fake.go_on(10)
    fake.wall -= jump
    for _ in range(3):
        fake.go_on(10)
        ours.now()
    assert (ours.now(), ours.record().ahead) == (begin + 40 * SECOND, jump * SECOND)
    assert ours.delay(begin + 40 * SECOND + 500_000) == 0.5
    assert caplog.text.count("was set back by") == 1
    fake.wall += jump + 100  # right again, and more
    assert (ours.now(), ours.record().ahead) == (begin + 140 * SECOND, 0)
    assert caplog.text.count("was set forward by") == 1


def test_drift_of_the_two_clocks_is_no_step(
    fake: FakeTime, caplog: pytest.LogCaptureFixture
) -> None:
    ours = Clock()
    for _ in range(50):
        fake.go_on(10)
        fake.wall += 0.03
        ours.now()
    assert abs(ours.now() / 1e6 - fake.wall) <= 0.2


@pytest.mark.parametrize("jump", [HOUR, -HOUR, 20 * YEAR, -20 * YEAR])
def test_a_jump_between_two_runs_never_turns_time_back(fake: FakeTime, jump: int) -> None:
    first = Clock()
    fake.go_on(100)
    last = first.now()
    fake.wall += jump
    again = Clock()
    again.start_at(last)
    assert again.now() == max(last, int(fake.wall * 1e6))
    fake.go_on(1)
    assert again.now() == max(last, int((fake.wall - 1) * 1e6)) + 1_000_000


def test_time_never_runs_backwards_whatever_the_clocks_do(fake: FakeTime) -> None:
    chance = random.Random(3)
    for mode, speed in (("real", 1.0), ("scaled", 60.0), ("virtual", 100.0), ("virtual", 0.0)):
        ours = Clock(mode, speed, None if mode == "real" else 0)
        last = ours.now()
        for _ in range(500):
            fake.go_on(chance.uniform(0, 5))
            fake.wall += chance.choice([0, 0, HOUR, -HOUR, YEAR, -YEAR])
            if mode != "real":
                chance.choice([ours.pause, ours.play, lambda: None])()
            now = ours.now()
            assert now >= last
            assert (ours.delay(now + 1) or 0) >= 0
            last = now


def test_a_zone_and_its_summer_time_change_no_instant(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path, config=EMULATED)
    before = os.environ.get("TZ")
    stamps = []
    try:
        for zone in ("Europe/Berlin", "Pacific/Kiritimati", "UTC"):
            os.environ["TZ"] = zone
            daemon.start()
            name = daemon.submit("sleep 600\n", hold="u")
            stamps.append(all_jobs(daemon)[name].submitted or 0)
            assert abs(stamps[-1] / 1e6 - time.time()) < 60
            daemon.kill()
    finally:
        os.environ.pop("TZ")
        if before is not None:
            os.environ["TZ"] = before
    assert stamps == sorted(stamps)


def held(key: str) -> Spec:
    return Spec(script="sleep 600\n", name=f"k{key}", hold="u")


def test_reloads_under_load_fail_no_request_and_a_bad_file_keeps_the_old(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path, config=EMULATED).start()
    file = tmp_path / "qbatch.toml"
    assert daemon.process is not None
    count = size(25, 100)
    with Load(daemon.socket, held, clients=3, pause=0.002) as load, daemon.session() as session:
        for number in range(count):
            if number % 5 == 4:
                file.write_text(
                    EMULATED + f'\n[[queue]]\nname = "q{number}"\nnonsense = 1\n', encoding="utf-8"
                )
                with pytest.raises(Refusal, match="nonsense"):
                    session.ask(Reload(), Text)
            elif number % 5 == 3:
                file.write_text(EMULATED.replace("10:00", f"{number + 1}:00"), encoding="utf-8")
                daemon.process.send_signal(signal.SIGHUP)
            else:
                file.write_text(EMULATED + f'\n[[queue]]\nname = "q{number}"\n', encoding="utf-8")
                said = session.ask(Reload(), Text).text
                # A signal before it may have come late.
                assert f"q{number}" in said or "not changed" in said
                job = session.ask(
                    Submit(spec=Spec(script="sleep 9\n", hold="u", queue=f"q{number}")),
                    SubmissionRecord,
                ).job
                session.ask(Submit(spec=Spec(script="sleep 9\n")), SubmissionRecord)
                session.ask(Delete(jobs=(job,)), Outcomes)
        file.write_text(EMULATED + '\n[[queue]]\nname = "last"\n', encoding="utf-8")
        session.ask(Reload(), Text)
    assert load.refused == []
    assert load.broken == 0
    assert len(load.acknowledged) > count
    with daemon.session() as session:
        assert "last" in {queue.name for queue in session.ask(QueueStatus(), Queues).queues}
    assert "integrity ok" in check(daemon)
    daemon.kill()
    daemon.start()
    found = {job.name[1:]: name for name, job in all_jobs(daemon).items()}
    assert {key: found.get(key) for key in load.acknowledged} == load.acknowledged
    assert daemon.kill(signal.SIGTERM) == 0


@needs_strace
@pytest.mark.parametrize(
    "point",
    [
        ("rename", 1),
        ("fsync", 1),
        ("fsync", 2),
        ("fdatasync", 1),
        ("fdatasync", 2),
        ("fdatasync", 3),
    ],
)
def test_a_crash_in_the_midst_of_a_reload_loses_nothing(
    tmp_path: Path, point: tuple[str, int]
) -> None:
    daemon = Daemon(tmp_path, config=EMULATED).start()
    file = tmp_path / "qbatch.toml"
    daemon.submit("sleep 600\n", hold="u")
    assert daemon.process is not None
    tracer = subprocess.Popen(
        [
            "strace",
            "-f",
            "-qq",
            "-o",
            str(tmp_path / "trace"),
            "-p",
            str(daemon.process.pid),
            "-e",
            f"trace={point[0]}",
            "-e",
            f"inject={point[0]}:signal=SIGKILL:when={point[1]}",
        ],
    )
    until(
        lambda: (
            f"TracerPid:\t{tracer.pid}"
            in Path(f"/proc/{daemon.process.pid}/status").read_text(encoding="ascii")
        ),
        "strace",
    )
    acknowledged = []
    file.write_text(
        EMULATED.replace("n[1-4]", "n[1-6]") + '\n[[queue]]\nname = "other"\n', encoding="utf-8"
    )
    try:
        with ClientSession(daemon.socket, patience=0.0) as session:
            session.ask(Reload(), Text)
            for _ in range(3):
                acknowledged.append(
                    session.ask(
                        Submit(spec=Spec(script="sleep 9\n", hold="u", queue="other")),
                        SubmissionRecord,
                    ).job
                )
    except Exception:  # it is gone
        pass
    if daemon.process.poll() is None:
        daemon.process.kill()
    daemon.process.wait(60)
    tracer.wait(60)
    daemon.start()
    assert {"1.qbatch", *acknowledged} <= set(all_jobs(daemon))
    assert "integrity ok" in check(daemon)
    assert daemon.kill(signal.SIGTERM) == 0


def test_what_a_new_queue_took_survives_a_kill_right_after_the_reload(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path, config=EMULATED).start()
    acknowledged: dict[str, str] = {}
    for number in range(size(5, 60)):
        queues = "".join(f'[[queue]]\nname = "q{each}"\n' for each in range(number + 1))
        (tmp_path / "qbatch.toml").write_text(EMULATED + queues, encoding="utf-8")

        def spec_of(key: str, name: str = f"q{number}") -> Spec:
            return Spec(script="sleep 9\n", hold="u", queue=name, name=f"{name}-{key}")

        with Load(daemon.socket, spec_of, clients=4) as load:
            assert daemon.process is not None
            daemon.process.send_signal(signal.SIGHUP)
            until(lambda load=load: load.acknowledged, "a submission that the new queue took")  # type: ignore[misc]
            daemon.kill()
            load.is_over = True
        acknowledged |= {f"q{number}-{key}": job for key, job in load.acknowledged.items()}
        daemon.start()
        found = {job.name: name for name, job in all_jobs(daemon).items()}
        assert {name: found.get(name) for name in acknowledged} == acknowledged
    assert daemon.kill(signal.SIGTERM) == 0


def test_sigterm_under_load_commits_answers_and_ends_while_jobs_run_on(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path, config=REAL).start()
    go = tmp_path / "go"
    job = daemon.submit(
        f"while [ ! -e {go} ]; do sleep 0.05; done\nexit 5\n", output="/dev/null", error="/dev/null"
    )
    daemon.until(job, "R")
    with Load(daemon.socket, held, clients=size(8, 64)) as load:
        until(lambda: len(load.acknowledged) > 50, "fifty submissions")
        began = time.monotonic()
        code = daemon.kill(signal.SIGTERM)
        took = time.monotonic() - began
        load.is_over = True
    assert code == 0
    assert took < size(15, 5)
    assert not os.path.exists(daemon.socket)
    assert {error.code for error in load.refused} <= {"stopping"}
    go.touch()
    daemon.start()
    assert daemon.until(job, "F").exit_status == 5
    found = {each.name[1:]: name for name, each in all_jobs(daemon).items()}
    assert {key: found.get(key) for key in load.acknowledged} == load.acknowledged
    assert daemon.kill(signal.SIGTERM) == 0


# systemd


def start_with(daemon: Daemon, prologue: str, **environment: str) -> subprocess.Popen[bytes]:
    """Start a daemon in a process of which a few lines come first, as systemd would."""
    text = (
        f"import os, sys\n{prologue}\nfrom qbatch.cli.main import main\nsys.argv[0] = "
        "'qbatch'\n"
        "main()"
    )
    command = [
        sys.executable,
        "-c",
        text,
        "up",
        "--foreground",
        "--state",
        str(daemon.state),
        "--socket",
        daemon.socket,
    ]
    with open(daemon.directory / "log", "ab") as log:
        daemon.process = subprocess.Popen(
            [*command, *daemon.arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**daemon.environment, **environment},
            cwd=daemon.directory,
            close_fds=False,
        )
    return daemon.process


def test_systemd_hears_of_readiness_after_recovery_and_of_the_end(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path, config=EMULATED).start()
    for _ in range(20):
        daemon.submit("sleep 600\n", hold="u")
    daemon.kill()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as bus:
        bus.bind(str(tmp_path / "notify"))
        bus.settimeout(60)
        start_with(daemon, "", NOTIFY_SOCKET=str(tmp_path / "notify"), WATCHDOG_USEC="400000")
        first = bus.recv(4096)
        assert b"READY=1" in first
        assert b"20 jobs" in first
        with ClientSession(daemon.socket, patience=0.0) as session:  # ready means: at once
            session.ask(QueueStatus(), Queues)
        assert b"WATCHDOG=1" in until(
            lambda: next((m for m in [bus.recv(4096)] if b"WATCHDOG=1" in m), b""), "a watchdog"
        )
        assert daemon.process is not None
        daemon.process.send_signal(signal.SIGHUP)
        until(lambda: b"RELOADING=1" in bus.recv(4096), "reloading")
        until(lambda: b"READY=1" in bus.recv(4096), "ready again")
        daemon.process.send_signal(signal.SIGTERM)
        until(lambda: b"STOPPING=1" in bus.recv(4096), "stopping")
        assert daemon.process.wait(60) == 0


STALL = """
import qbatch.daemon.store as store, time, pathlib
commit = store.Store.commit
async def slow(self, *rest):
    import asyncio
    if pathlib.Path("stall").exists():
        await asyncio.sleep(3600)
    return await commit(self, *rest)
store.Store.commit = slow
"""


def test_the_watchdog_starves_when_the_committer_stalls(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path, config=EMULATED)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as bus:
        bus.bind(str(tmp_path / "notify"))
        bus.settimeout(60)
        start_with(daemon, STALL, NOTIFY_SOCKET=str(tmp_path / "notify"), WATCHDOG_USEC="200000")
        daemon.wait_until_up()
        until(lambda: b"WATCHDOG=1" in bus.recv(4096), "a watchdog")
        (tmp_path / "stall").touch()
        with (
            ClientSession(daemon.socket, timeout=1.0, patience=0.0) as session,
            pytest.raises(Refusal),
        ):
            session.ask(Submit(spec=held("1")), SubmissionRecord)
        # The loop lives: questions are answered.
        with ClientSession(daemon.socket, timeout=10.0) as session:
            session.ask(QueueStatus(), Queues)
        bus.setblocking(False)
        try:
            while True:
                bus.recv(4096)
        except BlockingIOError:
            pass
        bus.settimeout(1.5)
        with pytest.raises(TimeoutError):
            bus.recv(4096)
    assert daemon.process is not None
    daemon.process.kill()
    daemon.process.wait()


def test_a_passed_socket_is_served_and_left_in_its_place(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path, config=EMULATED)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(daemon.socket)
        listener.listen(64)
        inode = os.stat(daemon.socket).st_ino
        for _ in range(2):
            prologue = (
                f"os.dup2({listener.fileno()}, 3)\n"
                "os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS='1')"
            )
            os.set_inheritable(listener.fileno(), True)
            process = start_with(daemon, prologue)
            # The queue of the socket holds us until it is up.
            daemon.submit("sleep 600\n", hold="u")
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
            assert os.stat(daemon.socket).st_ino == inode
        process = start_with(daemon, prologue)
        assert len(all_jobs(daemon)) == 2
        process.kill()
        process.wait()
