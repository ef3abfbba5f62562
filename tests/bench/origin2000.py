"""One month of the Origin 2000 under each of its policies, and what a pass over a queue of 5,000 costs."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from qbatch.engine.engine import Engine
from qbatch.model.events import Submitted
from qbatch.model.job import Job
from qbatch.policies import load_policy
from qbatch.replay import Options, prepare, run
from qbatch.workloads.machines import load_machine
from qbatch.workloads.origin2000.month import generate_month

Row = Callable[[str, str], None]
POLICIES = (
    "lsf", "fcfs-backfill", "priority-backfill", "priority-backfill:depth=16", "sjf-backfill", "lxfw-backfill",
    "soon:inner=lxfw-backfill", "immediate:inner=lxfw-backfill", "equispatial:interval=300",
)  # fmt: skip
WAITING = 5000


def figures(row: Row) -> None:
    """Measure and tell."""
    machine = load_machine("origin2000")
    work = prepare(generate_month("1999-12", seed=1), machine, Options(counted_from="1999-12-01"))
    for policy in POLICIES:
        run(work, machine, load_policy(policy))
        begun = time.perf_counter()
        run(work, machine, load_policy(policy))
        row(f"December 1999 ({len(work):,} jobs) under {policy}", f"{time.perf_counter() - begun:.2f} s")
    for policy in ("priority-backfill", "lxfw-backfill", "lsf"):
        row(f"a pass over {WAITING:,} waiting jobs under {policy}", f"{1e3 * _pass_seconds(policy):.2f} ms")


def _pass_seconds(policy: str) -> float:
    """Return the median time of a pass while 5,000 wait and a few processors are free."""
    machine = load_machine("origin2000")
    engine = Engine(machine, load_policy(policy))
    draw = np.random.Generator(np.random.PCG64(1))
    jobs = [
        Job(number=number, submit=0, procs=int(draw.integers(5, 9)), estimate=int(draw.integers(1, 50)) * 3_600_000_000)
        for number in range(WAITING + 400)
    ]
    engine.handle(0, [Submitted(job) for job in jobs])
    times = []
    for turn in range(1, 200):
        narrow = Job(number=10_000 + turn, submit=turn, procs=64, estimate=3_600_000_000, memory=1 << 33)
        begun = time.perf_counter()
        engine.handle(turn, [Submitted(narrow)])
        times.append(time.perf_counter() - begun)
    return float(np.median(times))
