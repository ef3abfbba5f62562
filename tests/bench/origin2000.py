"""One month of the Origin 2000 under each policy of its paper, and what a pass over a queue of
5,000 costs."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import numpy as np

from qbatch.engine.engine import Engine
from qbatch.model.actions import Start
from qbatch.model.events import Submitted
from qbatch.model.job import Job
from qbatch.papers.origin2000 import POLICIES
from qbatch.policies import load_policy
from qbatch.simulation import Options, prepare, run
from qbatch.workloads import write_log
from qbatch.workloads.machines import load_machine
from qbatch.workloads.origin2000 import generate_month
from tests.bench.timing import best

Row = Callable[[str, str], None]
MONTH = "2000-01"
"""The fullest of the six."""
MONTH_TARGET_S, EQUAL_SHARES_TARGET_S, PASS_TARGET_MS = 2, 1, 1
WAITING, PASSES = 5000, 200
_HOUR_US = 3_600_000_000


def figures(row: Row, *, times: int = 3) -> None:
    """Measure and report the best of ``times`` for the months, medians for the passes."""
    for policy in ("priority-backfill", "lxfw-backfill", "sjf-backfill"):
        row(
            f"a pass over {WAITING:,} waiting jobs under {policy}",
            _against(1e3 * pass_seconds(policy), "ms", PASS_TARGET_MS),
        )
    machine = load_machine("origin2000")
    log = generate_month(MONTH, seed=1)
    work = prepare(log, machine, Options(counted_from=f"{MONTH}-01"))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "month.swf")
        with open(path, "wb") as file:
            write_log(file, log.header, log.columns)
        for name, policy in POLICIES.items():
            chosen = load_policy(policy)
            run(work, machine, chosen)
            simulation = best(lambda chosen=chosen: run(work, machine, chosen), times)  # type: ignore[misc]
            command = best(lambda policy=policy: _replay(path, policy), times)  # type: ignore[misc]
            target = EQUAL_SHARES_TARGET_S if policy.startswith("equispatial") else MONTH_TARGET_S
            figure = f"{_against(simulation, 's', target)}; whole command {command:.2f} s"
            row(f"{MONTH} with its warm-up, {len(work):,} jobs, under {name} ({policy})", figure)


def _against(measured: float, unit: str, target: int) -> str:
    verdict = "" if measured < target else ", MISSED"
    return f"{measured:.2f} {unit} (target {target} {unit}{verdict})"


def _replay(path: str, policy: str) -> None:
    command = [
        sys.executable,
        "-m",
        "qbatch",
        "replay",
        path,
        "--machine",
        "origin2000",
        "-p",
        policy,
        "-q",
    ]
    subprocess.run([*command, "--warmup", f"{MONTH}-01"], check=True, capture_output=True)


def pass_seconds(policy: str) -> float:
    """Return the median time of a round in which one job arrives, 5,000 wait, and every host has a
    few processors free.

    So every pass reads the whole queue, computes and sorts all priorities, makes a reservation and
    starts no job.
    """
    engine = Engine(load_machine("origin2000"), load_policy(policy))
    draw = np.random.Generator(np.random.PCG64(1))
    # Two of 62 on each host of 128 and one on that of 64 leave 4 or 2 processors.
    busy = [Job(number=number, submit=0, procs=62, estimate=100 * _HOUR_US) for number in range(15)]
    engine.handle(0, [Submitted(job) for job in busy])
    waiting = [_waiting(draw, 100 + number, at=1 + number) for number in range(WAITING)]
    for job in waiting:
        engine.handle(job.submit, [Submitted(job)])
    times = []
    for turn in range(PASSES):
        at = _HOUR_US + turn * 1_000_000
        late = _waiting(draw, 10_000 + turn, at)
        begun = time.perf_counter()
        done = engine.handle(at, [Submitted(late)])
        times.append(time.perf_counter() - begun)
        assert not any(isinstance(action, Start) for action in done.actions), (
            "a pass that starts a job is not the one that is to be measured"
        )
    assert min(engine.view().free) > 0, "a pass over full hosts reads no queue"
    return float(np.median(times))


def _waiting(draw: np.random.Generator, number: int, at: int) -> Job:
    estimate = int(draw.integers(1, 51)) * _HOUR_US
    return Job(
        number=number, submit=at, procs=int(draw.integers(5, 65)), estimate=estimate, memory=1 << 28
    )
