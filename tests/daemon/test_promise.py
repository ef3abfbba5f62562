"""The promise: what a policy does in a replay it does in the daemon, at any speed, and after a kill
-9."""

from __future__ import annotations

import random
import time
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from qbatch.daemon.core import passes
from qbatch.daemon.core.state import Core, Ending
from qbatch.daemon.settings import Pool, Queue, Settings
from qbatch.daemon.sources import TraceSource
from qbatch.model.machine import Host, one_host
from qbatch.model.record import Schedule, Workload
from qbatch.policies.registry import load_policy
from qbatch.simulation.drivers import run
from qbatch.simulation.prepare import Options, prepare
from qbatch.wire.records import ClockRecord, JobRecord, Jobs
from qbatch.wire.requests import JobStatus, Time
from qbatch.workloads import read_log
from tests.daemon.harness import ROOT, Daemon
from tests.harness import size

TRACE = ROOT / "traces" / "demo-128.swf"
JOBS = size(1000, 2000)
POLICIES = (
    "fcfs",
    "easy",
    "easy:order=sjf",
    "easy:order=lxf",
    "easy:backfill=sjf",
    "hybrid:depth=4",
    "conservative",
    "conservative:compress=start",
    "conservative:compress=none",
    "predicted",
    "predicted:inner=conservative",
    "predicted:inner.backfill=sjf",
)


def known(policy: str) -> str:
    try:
        load_policy(policy)
    except Exception as error:
        pytest.skip(f"{policy}: {error}")
    return policy


@cache
def workload() -> Workload:
    return prepare(read_log(str(TRACE)), one_host(128), Options(first=JOBS))


def replayed(policy: str, driver: str = "auto") -> Schedule:
    return run(workload(), one_host(128), load_policy(policy), driver=driver)


CALENDAR = 1_735_516_800_000_000
"""The UnixStartTime of the log, in microseconds: a daemon that plays it lives in its days."""


def rows(jobs: list[JobRecord], zero: int = 0) -> dict[int, tuple[int, int]]:
    return {
        int(job.extra["log_number"]): ((job.started or 0) - zero, (job.ended or 0) - zero)
        for job in jobs
    }


def expected(schedule: Schedule) -> dict[int, tuple[int, int]]:
    return {
        int(number): (int(start), int(end))
        for number, start, end in zip(
            schedule.workload.number, schedule.start, schedule.end, strict=True
        )
    }


def finished(daemon: Daemon, seconds: float = 120.0) -> list[JobRecord]:
    """Wait until the whole log has run and return its jobs."""
    deadline = time.monotonic() + seconds
    with daemon.session() as session:
        while True:
            clock = session.ask(Time(), ClockRecord)
            left = session.ask(JobStatus(is_brief=True, limit=1), Jobs).jobs
            if clock.log_arrived == clock.log_jobs and not left:
                break
            assert time.monotonic() < deadline, (clock, daemon.log()[-2000:])
            time.sleep(0.1)
        return [job for page in session.pages(JobStatus(finished="also")) for job in page.jobs]


@pytest.mark.parametrize("policy", POLICIES)
def test_the_core_takes_the_decisions_of_the_replay(policy: str) -> None:
    known(policy)
    ended = lived(policy)
    for driver in ("auto", "engine"):
        assert rows(ended) == expected(replayed(policy, driver))


@pytest.mark.parametrize(
    "policy",
    ["immediate", "immediate:inner=easy,quantum=600,protect=60", "soon:inner=conservative"],
)
def test_the_core_gives_the_quanta_of_the_replay(policy: str) -> None:
    ends = {number: end for number, (_, end) in rows(lived(policy)).items()}
    schedule = replayed(policy)
    assert schedule.pieces is not None
    assert (schedule.pieces[:, 5] == 0).any()
    assert ends == {number: end for number, (_, end) in expected(schedule).items()}


@pytest.mark.parametrize(
    "policy", ["scojo", "scojo-groups", "bottom-line:nodes=100", "scojo:backfill=easy,switch=0"]
)
def test_the_core_gives_the_slices_of_the_replay(policy: str) -> None:
    schedule = replayed(policy)
    assert schedule.pieces is not None
    assert len(schedule.pieces) > 100
    assert rows(lived(policy)) == expected(schedule)


def lived(policy: str) -> list[JobRecord]:
    """Run the log through a live core and return the records of its jobs."""
    work = workload()
    pool = Pool(name="main", hosts=(Host("machine", 128),), policy=policy, spans=True)
    core = Core(
        Settings(executor="emulated", pools=(pool,), queues=(Queue(name="batch"),)), load_policy
    )
    trace = TraceSource(work, 0)
    trace.attach(core)
    ended = []
    while instants := [
        each for each in (passes.next_due(core), trace.next_instant()) if each is not None
    ]:
        at = max(min(instants), core.now)
        trace.take(core, at)
        passes.advance(core, at)
        ended += [effect.record for effect in core.take_effects() if isinstance(effect, Ending)]
    return ended


@pytest.mark.parametrize("policy", ["easy", "conservative", "fcfs"])
def test_the_daemon_in_virtual_time_takes_them_too(policy: str, tmp_path: Path) -> None:
    arguments = (
        "--trace",
        str(TRACE),
        "--first",
        str(JOBS),
        "--policy",
        policy,
        "--time",
        "virtual",
    )
    with Daemon(tmp_path, *arguments) as daemon:
        assert rows(finished(daemon), CALENDAR) == expected(replayed(policy))


@pytest.mark.parametrize("policy", ["easy", "conservative", "qops", "scojo-groups"])
def test_the_daemon_in_scaled_time_takes_them_too_and_a_kill_changes_nothing(
    policy: str, tmp_path: Path
) -> None:
    schedule = replayed(policy)
    span = (int(schedule.end.max()) - int(schedule.workload.submit[0])) / 1e6
    arguments = (
        "--trace",
        str(TRACE),
        "--first",
        str(JOBS),
        "--policy",
        policy,
        "--time",
        f"x{span / 10:.0f}",
    )
    draw = random.Random(policy)
    daemon = Daemon(tmp_path, *arguments).start()
    for _ in range(size(2, 4)):
        time.sleep(draw.uniform(0.3, 1.5))
        daemon.kill()
        daemon.start()
    with daemon:
        jobs = finished(daemon)
    assert rows(jobs, CALENDAR) == expected(schedule)
    promised = {
        int(job.extra["log_number"]): job.promised - CALENDAR
        for job in jobs
        if job.promised is not None
    }
    if policy in ("conservative", "qops"):
        of_replay = {
            int(number): int(at)
            for number, at in zip(schedule.workload.number, schedule.promise, strict=True)
            if at >= 0
        }
        assert promised == of_replay
        late = [
            job.id for job in jobs if job.promised is not None and (job.started or 0) > job.promised
        ]
        assert late == []
    assert np.all(schedule.start >= schedule.workload.submit)
