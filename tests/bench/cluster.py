"""A year of a thousand hosts: replays under EASY and conservative backfilling, and a live pass with
10,000 jobs waiting.

The generated cluster has four classes of hosts in five partitions (``qbatch generate cluster``).
Its jobs are short: at a load of 0.8 a year of a thousand hosts would have 7.5 million of them.  Here
it has 500,000, and each runs and asks for a number of times as long, at most two weeks.  That number
is the least with which the nodes of a model have a load of 0.8.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np

from qbatch.engine.engine import Engine
from qbatch.model.events import Finished, Submitted
from qbatch.model.machine import Machine
from qbatch.model.record import Workload
from qbatch.policies import load_policy
from qbatch.simulation import prepare, run
from qbatch.simulation.sources import arrivals_of
from qbatch.workloads.cluster import generate_cluster
from qbatch.workloads.cluster.generate import COLUMNS
from qbatch.workloads.resource_rows import read_resources
from qbatch.workloads.side_file import SideText, side_bytes
from tests.bench.timing import missed

Row = Callable[[str, str], None]
HOSTS, DAYS, LOAD = 1000, 365, 0.8
DAY_S, LONGEST_S = 86_400, 14 * 86_400
WAITING, PASSES = 10_000, 50
DRAWN_LOAD = 0.0536
"""The load of the generated year before its jobs are made longer; it gives 500,000 jobs."""

UNITS = {"gpu": 3000, "large": 2000, "small": 500, "cpu": 32_000}
"""GPUs, or processors where there are none, of the nodes of each model, by their first
partition."""

OTHERS = {"interactive": "small", "gpu,small": "small"}
"""Partitions of other jobs on the nodes of these."""


@cache
def year(days: int = DAYS) -> tuple[Workload, Machine]:
    """Return the jobs and the machine of the year, or of so many of its days."""
    made = generate_cluster(days=days, nodes=HOSTS, load=DRAWN_LOAD)
    asked = [cells[COLUMNS.index("partitions") - 1] for cells in made.requests]
    of_model = np.array([OTHERS.get(name, name) for name in asked])
    values = dict(made.log.columns)
    units = np.where(made.gpus > 0, made.gpus, values["procs_requested"])
    for name, there in UNITS.items():
        chosen, factor, drawn = of_model == name, 1, values["run"]
        enough = LOAD * there * days * DAY_S
        while (units * np.minimum(drawn * factor, LONGEST_S))[chosen].sum() < enough:
            factor += 1
        for field in ("run", "time_requested"):
            longer = np.minimum(values[field] * factor, LONGEST_S)
            values[field] = np.where(chosen, longer, values[field])
    log = replace(made.log, columns=values)
    rows = ((job, *cells) for job, cells in enumerate(made.requests, 1))
    resources = read_resources(SideText(made.log.name, side_bytes(COLUMNS, rows)), log)
    return prepare(log, made.machine, resources=resources), made.machine


def figures(row: Row, *, is_short: bool) -> None:
    """Measure the replays of the year, or of its first 20 days, and the live passes."""
    work, machine = year(20 if is_short else DAYS)
    few = year(3)[0]
    for name, target_s in (("easy", 30), ("conservative", 300)):
        policy = load_policy(name)
        run(few, machine, policy, driver="compiled")
        begun = time.process_time()
        longest = run(work, machine, policy, driver="compiled").queue_max
        seconds = time.process_time() - begun
        row(
            f"{len(work):,} jobs on {HOSTS:,} hosts under {name}, compiled",
            f"{seconds:.1f} s of processor time (target {target_s} s for 500,000 jobs"
            f"{missed(not is_short and seconds > target_s)}); longest queue {longest:,}",
        )
    milliseconds = 1e3 * pass_seconds("easy")
    row(
        f"a live pass under easy after an end, {WAITING:,} jobs wait",
        f"median {milliseconds:.1f} ms (target 20 ms{missed(milliseconds > 20)})",
    )


def pass_seconds(policy: str) -> float:
    """Return the median processor time of a round of the engine in which a job ends, with 10,000
    jobs or more waiting."""
    work, machine = year(20)
    engine = Engine(machine, load_policy(policy))
    jobs = [each.job for each in arrivals_of(work, np.arange(len(work)), 0, 0)]
    engine.handle(0, [Submitted(job) for job in jobs])
    times = []
    for turn in range(PASSES):
        view = engine.view()
        assert len(view.queue) >= WAITING
        ending = next(iter(view.running))
        begun = time.process_time()
        engine.handle((turn + 1) * 1_000_000, [Finished(ending)])
        times.append(time.process_time() - begun)
    return float(np.median(times))
