"""Sweeps: what a run costs in addition to its simulation, how well two cores are used, how fast a
large table opens."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from qbatch.sweeps.executors import Place, each_outcome
from qbatch.sweeps.grid import grid_of
from qbatch.sweeps.plan import plan_of
from qbatch.sweeps.summary import points
from qbatch.sweeps.sweep import run_sweep
from qbatch.sweeps.table import TABLE, SweepTable
from qbatch.workloads import write_log
from qbatch.workloads.generate import generate_log
from tests.bench.timing import best, missed

Row = Callable[[str, str], None]
WORKERS = 2


def busy(_context: None, case: float) -> float:
    """Use the processor for so many seconds."""
    end = time.process_time() + case
    while time.process_time() < end:
        pass
    return case


def figures(row: Row, traces: Path, *, is_short: bool) -> None:
    """Measure and tell."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        kth = traces / "KTH-SP2-1996-2.1-cln.swf.gz"
        if kth.exists():
            _study(row, kth, place / "kth")
        _ideal(row, 10 if is_short else 30)
        _short_runs(row, place, 1_000 if is_short else 10_000)
        _large_table(row, place / "large", 1_000_000)


def _study(row: Row, log: Path, out: Path) -> None:
    """A study like that of the README on a real log, with drawn estimates, as a command."""
    words = [
        sys.executable,
        "-m",
        "qbatch",
        "sweep",
        "--log",
        str(log),
        "--load",
        "0.7:1.1:0.05",
        "--seed",
        "1:10",
        "--estimates",
        "f:2",
        "-o",
        str(out),
        "-q",
        "--on",
        f"local:{WORKERS}",
    ]

    def command() -> None:
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)

    seconds = best(command, 1)
    row(
        "KTH, three policies, nine loads, ten seeds: 270 runs",
        f"{seconds:.1f} s (aim 15{missed(seconds > 15)})",
    )
    seconds = best(command, 3)
    row("the same again, everything kept", f"{seconds:.2f} s (aim 1{missed(seconds > 1)})")
    plot = [
        sys.executable,
        "-m",
        "qbatch",
        "plot",
        str(out),
        "--x",
        "load",
        "--y",
        "wait_mean",
        "-o",
        str(out.parent / "x.png"),
    ]
    row(
        "its picture",
        f"{best(lambda: subprocess.run(plot, check=True, stderr=subprocess.DEVNULL), 2):.2f} s",
    )


def _ideal(row: Row, runs: int) -> None:
    begin = time.perf_counter()
    spent = sum(outcome.seconds for outcome in each_outcome(busy, [1.0] * runs, Place(WORKERS)))
    took = time.perf_counter() - begin
    over = took / (spent / WORKERS) - 1
    row(
        f"{runs} runs of a second on {WORKERS} cores, above ideal",
        f"{over:.1%} (aim 5 %{missed(over > 0.05)})",
    )


def _short_runs(row: Row, folder: Path, runs: int) -> None:
    log = generate_log(jobs=1_000, procs=128, load=0.85, seed=1)
    path = folder / "short.swf"
    with path.open("wb") as file:
        write_log(file, log.header, log.columns)
    loads = np.round(np.linspace(0.5, 1.5, runs // 2), 6).tolist()
    plan = plan_of(grid_of({"log": str(path), "policy": ["fcfs", "easy"], "load": loads}, "bench"))
    begin = time.perf_counter()
    done = run_sweep(plan, folder / "short", Place(WORKERS))
    took = time.perf_counter() - begin
    each = 1000 * (took - done.seconds / WORKERS) / runs
    row(
        (
            f"{runs:,} runs of a thousand jobs: {took:.1f} s; on top of the runs "
            f"({1000 * done.seconds / runs:.1f} ms each)"
        ),
        f"{each:.2f} ms a run (aim 3{missed(each > 3)})",
    )


def _large_table(row: Row, folder: Path, rows: int) -> None:
    """A table of a million runs: 10 policies at 1,000 loads with 100 seeds."""
    folder.mkdir()
    policies = [f"policy {number}" for number in range(10)]
    loads = [0.5 + number / 1000 for number in range(rows // 1000)]
    draw = np.random.Generator(np.random.PCG64(1))
    columns = {
        "log": pa.array(["log"] * rows),
        "machine": pa.array(["log"] * rows),
        "window": pa.array(["all"] * rows),
        "resample": pa.array(["none"] * rows),
        "load": pa.array(np.repeat(loads, 1000)),
        "estimates": pa.array(["f:2"] * rows),
        "seed": pa.array(np.tile(np.repeat(np.arange(100), 10), rows // 1000)),
        "policy": pa.array(policies * (rows // 10)),
        "status": pa.array(["done"] * rows),
        "wait_mean_s": pa.array(draw.random(rows)),
    }
    pq.write_table(pa.table(columns), folder / TABLE, compression="zstd")
    grid = {
        "log": ["log"],
        "machine": ["log"],
        "window": ["all"],
        "resample": ["none"],
        "load": loads,
        "estimates": ["f:2"],
        "seed": list(range(100)),
        "policy": policies,
    }
    sweep = SweepTable(folder, {"grid": grid})
    assert len(points(sweep, ["wait_mean_s"])) == rows // 100
    seconds = best(lambda: points(sweep, ["wait_mean_s"]), 3)
    row(f"the points of a table of {rows:,} runs", f"{seconds:.2f} s (aim 1{missed(seconds > 1)})")
