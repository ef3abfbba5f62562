"""kill -9 of the daemon and of supervisors under load: nothing lost, nothing twice, nothing left
over."""

from __future__ import annotations

import collections
import os
import random
import signal
import time
import uuid
from pathlib import Path

from qbatch.wire.requests import Spec
from tests.daemon.harness import Daemon
from tests.daemon.hostile.tools import REAL, Load, all_jobs, check, until
from tests.harness import size


def of_jobs(mark: str) -> list[int]:
    """Return the processes that have the mark in their environment."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def supervisors(daemon: Daemon) -> dict[str, int]:
    """Return the supervisors that live, by the name of their run directory."""
    found = {}
    for directory in (daemon.state / "run").glob("[0-9]*"):
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if str(directory).encode() in words:
                found[directory.name] = int(entry.name)
    return found


def kill_one_supervisor(daemon: Daemon, killed: set[str], chance: random.Random) -> None:
    alive = supervisors(daemon)
    if alive:
        name = chance.choice(sorted(alive))
        try:
            os.kill(alive[name], signal.SIGKILL)
        except ProcessLookupError:
            return
        killed.add(name)


def test_no_job_is_lost_or_started_twice_though_daemon_and_supervisors_are_killed(
    tmp_path: Path,
) -> None:
    chance = random.Random(7)
    mark = uuid.uuid4().hex
    ran = tmp_path / "ran"
    ran.touch()

    def spec_of(key: str) -> Spec:
        draw = random.Random(key)
        nap, code = draw.randrange(10), draw.choice([0, 0, 3, 7])
        script = f"echo {key} $PBS_JOBCOOKIE >> {ran}\nsleep 0.{nap}\nexit {code}\n"
        return Spec(
            script=script,
            name=f"k{key}",
            directory=str(tmp_path),
            output="/dev/null",
            error="/dev/null",
            is_rerunnable=draw.random() < 0.5,
            variables={"MARK": mark},
        )

    daemon = Daemon(tmp_path, config=REAL).start()
    killed: set[str] = set()
    restarts = []
    kills = size(12, 200)
    with Load(daemon.socket, spec_of, clients=3, pause=0.08) as load:
        for number in range(kills):
            time.sleep(chance.uniform(0.02, 0.7))
            if number % 3 == 1:
                kill_one_supervisor(daemon, killed, chance)
            daemon.kill()
            if number % 3 == 2:
                kill_one_supervisor(daemon, killed, chance)
            began = time.monotonic()
            daemon.start()
            restarts.append(time.monotonic() - began)
    until(lambda: not daemon.jobs(finished="no"), "the end of every job", 120)
    found = {job.name[1:]: job for job in all_jobs(daemon).values()}
    lines = collections.Counter(ran.read_text(encoding="ascii").splitlines())
    starts = collections.Counter(line.split()[0] for line in lines.elements())

    lost = [key for key in load.acknowledged if key not in found]
    twice = [line for line, count in lines.items() if count > 1]
    again = [
        key for key, count in starts.items() if count > 1 and not load_lost(found[key], killed)
    ]
    never = [
        key for key in load.acknowledged if not starts[key] and not load_lost(found[key], killed)
    ]
    wrong = [
        (key, job.exit_status, job.comment)
        for key, job in found.items()
        if not load_lost(job, killed) and job.exit_status != random_code(key)
    ]
    hit = [job for job in found.values() if load_lost(job, killed)]
    restarts.sort()
    print(
        f"kills {kills} supervisors {len(killed)} acknowledged {len(load.acknowledged)} lost "
        f"{len(lost)} twice {len(twice)} "
        f"again {len(again)} never {len(never)} wrong {len(wrong)} restart p50 "
        f"{restarts[len(restarts) // 2]:.2f} "
        f"max {restarts[-1]:.2f} s"
    )
    assert (lost, twice, again, never, wrong) == ([], [], [], [], [])
    for job in hit:
        # Lost: reported so, and run again where it may be; or it had ended already when its
        # supervisor was killed. A script that has not yet become itself still has its supervisor's
        # name: it may have been hit instead.
        was_over = (
            job.exit_status in (random_code(job.name[1:]), 256 + signal.SIGKILL)
            and job.attempt == 1
        )
        assert was_over or (job.attempt > 1) == job.is_rerunnable, job
        assert was_over or job.is_rerunnable or "LOST" in job.comment, job
    until(lambda: not of_jobs(mark), "the end of every process of a job", 20)
    until(lambda: not supervisors(daemon), "the end of every supervisor", 20)
    until(
        lambda: [each.name for each in (daemon.state / "run").iterdir()] == ["events"],
        "empty run directory",
        20,
    )
    assert "integrity ok" in check(daemon)
    assert daemon.kill(signal.SIGTERM) == 0


def random_code(key: str) -> int:
    """Return the exit code that the job of a key has."""
    draw = random.Random(key)
    draw.randrange(10)
    return draw.choice([0, 0, 3, 7])


def load_lost(job: object, killed: set[str]) -> bool:
    """Whether a supervisor of this job was killed."""
    sequence = str(getattr(job, "id", "")).partition(".")[0]
    return any(name.partition(".")[0] == sequence for name in killed)
