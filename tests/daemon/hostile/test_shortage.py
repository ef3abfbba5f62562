"""Too few descriptors, a client that wants everything, a wall clock that jumps: others are served,
nothing is lost."""

from __future__ import annotations

import os
import select
import signal
import statistics
import threading
import time
from pathlib import Path

from qbatch.client import ClientSession
from qbatch.wire.frames import encode
from qbatch.wire.records import ServerRecord
from qbatch.wire.requests import ServerStatus
from tests.daemon.harness import Daemon
from tests.daemon.hostile.test_time_and_service import start_with
from tests.daemon.hostile.tools import EMULATED, REAL, Raw, all_jobs, check, until
from tests.harness import size

DESCRIPTORS = 96

FEW = f"import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, ({DESCRIPTORS}, {DESCRIPTORS}))"


def answered(crowd: list[Raw]) -> list[Raw]:
    """Return the connections on which something waits to be read."""
    ready, _, _ = select.select([raw.socket for raw in crowd], [], [], 0)
    return [raw for raw in crowd if raw.socket in ready]


def descriptors(daemon: Daemon) -> int:
    """Return how many descriptors the daemon has."""
    assert daemon.process is not None
    return len(os.listdir(f"/proc/{daemon.process.pid}/fd"))


def test_too_few_descriptors_refuse_connections_and_delay_jobs_but_lose_nothing(
    tmp_path: Path,
) -> None:
    daemon = Daemon(tmp_path, config=REAL)
    start_with(daemon, FEW)
    daemon.wait_until_up()
    nowhere, base = {"output": "/dev/null", "error": "/dev/null"}, descriptors(daemon)
    with daemon.session() as session:
        crowd = [Raw(daemon.socket, 60.0) for _ in range(2 * DESCRIPTORS)]
        # Each is served or refused; clients that were connected before are still served.
        replies = [raw.ask({"verb": "hello", "id": 1}) for raw in crowd[: DESCRIPTORS // 4]]
        assert all(reply is not None and "result" in reply for reply in replies)
        most = DESCRIPTORS // 2
        until(
            lambda: len(answered(crowd)) >= len(crowd) - most,
            "an answer to those for which there are no descriptors",
        )
        refused = [reply for raw in answered(crowd) if (reply := raw.receive()) is not None]
        assert {reply["error"]["code"] for reply in refused} == {"busy"}
        assert session.ask(ServerStatus(), ServerRecord).total == 0
        for raw in crowd:
            raw.close()
    # Those that left before they were accepted are accepted still, and kept for two seconds as half
    # open.
    until(
        lambda: time.sleep(3.0) or descriptors(daemon) <= base + 3,
        "free descriptors for new connections",
    )
    # More jobs run at once than there are descriptors to watch them: the others start as it goes
    # on.
    jobs = [
        daemon.submit(f"sleep 1\nexit {number % 4}\n", **nowhere) for number in range(size(64, 200))
    ]
    for number, job in enumerate(jobs):
        assert daemon.until(job, "F", 300).exit_status == number % 4
    log = daemon.log()
    assert log.count("Too many open files") <= 2
    assert "Traceback" not in log, log[-3000:]
    assert "integrity ok" in check(daemon)
    assert daemon.kill(signal.SIGTERM) == 0


def p99(daemon: Daemon, count: int) -> float:
    """Return the 99th percentile of the time that an ordinary question takes, in seconds."""
    taken = []
    with ClientSession(daemon.socket) as session:
        for _ in range(count):
            began = time.perf_counter()
            session.ask(ServerStatus(), ServerRecord)
            taken.append(time.perf_counter() - began)
    return statistics.quantiles(taken, n=100)[98]


def test_one_client_that_asks_for_everything_at_once_does_not_starve_the_others(
    tmp_path: Path,
) -> None:
    with Daemon(tmp_path, config=EMULATED).start() as daemon:
        daemon.submit("sleep 600\n", hold="u", array="1-5000")
        base = p99(daemon, 200)
        heavy = encode(b'{"verb":"job-status","finished":"also","subjobs":true,"limit":1000}')
        greedy = Raw(daemon.socket)
        is_over = threading.Event()

        def want() -> None:
            try:
                while not is_over.is_set():
                    greedy.socket.sendall(heavy * 50)
            except OSError:
                return

        def take() -> None:
            try:
                while not is_over.is_set():
                    greedy.socket.recv(1 << 20)
            except OSError:
                return

        threads = [threading.Thread(target=want), threading.Thread(target=take)]
        for thread in threads:
            thread.start()
        try:
            worse = p99(daemon, 200)
            job = daemon.submit("true\n")
        finally:
            is_over.set()
            greedy.close()
            for thread in threads:
                thread.join(60)
        print(f"one greedy client: p99 of the others {base * 1e3:.1f} -> {worse * 1e3:.1f} ms")
        # A turn of one client ends; its next one comes after those of all other clients.
        assert worse < size(5.0, 0.5)
        assert job in all_jobs(daemon)


JUMPING = """
import pathlib, time
import qbatch.daemon.clock as clock
class Wall:
    monotonic = staticmethod(time.monotonic)
    @staticmethod
    def time_ns():
        return time.time_ns() + int(pathlib.Path("jump").read_text()) * 10**9
clock.time = Wall
"""

HOUR, YEAR = 3600, 365 * 86_400


def test_a_wall_that_jumps_kills_no_job_early_and_orders_what_follows(tmp_path: Path) -> None:
    jump = tmp_path / "jump"
    jump.write_text("0")
    daemon = Daemon(tmp_path, config=REAL)
    start_with(daemon, JUMPING)
    daemon.wait_until_up()
    nowhere = {"output": "/dev/null", "error": "/dev/null"}
    stamps: list[int] = []
    for offset in (HOUR, -HOUR, 20 * YEAR, -YEAR, 0):
        good = daemon.submit("sleep 1.5; exit 6\n", resources={"walltime": "10"}, **nowhere)
        late = daemon.submit("sleep 60\n", resources={"walltime": "1"}, **nowhere)
        daemon.until(good, "R")
        jump.write_text(str(offset))
        if offset in (HOUR, -YEAR):  # also across a restart
            assert daemon.kill() == -signal.SIGKILL
            start_with(daemon, JUMPING)
            daemon.wait_until_up()
            # A start gives up what the clock was ahead: the instants of earlier jobs may be later
            # ones.
            assert stamps == sorted(stamps)
            stamps = []
        ended = {name: daemon.until(name, "F") for name in (good, late)}
        assert (ended[good].exit_status, ended[late].exit_status) == (6, -29)
        for job in ended.values():
            assert job.submitted is not None
            assert job.started is not None
            assert job.ended is not None
            stamps += [job.submitted]
            assert job.submitted <= job.started <= job.ended
            assert float(job.used["walltime"].rpartition(":")[2]) <= 10
    assert stamps == sorted(stamps)
    assert "integrity ok" in check(daemon)
    assert "Traceback" not in daemon.log()
    assert daemon.kill(signal.SIGTERM) == 0
    until(lambda: not os.path.exists(daemon.socket), "the end of the socket")
