"""evalys, unmodified and in its own environment, computes from our ``jobs.csv`` what we compute
from the schedule."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from qbatch.metrics import measure
from qbatch.metrics.per_job import job_times
from qbatch.results.exports import FORMS, Exportable
from qbatch.results.result import Result, most_procs
from tests.clients.test_clients_run import python_of
from tests.reports.samples import random_workload, scheduled

SCRIPT = Path(__file__).resolve().parents[2] / "clients" / "run_evalys.py"


def test_evalys_agrees_with_us(tmp_path: Path) -> None:
    python = python_of("evalys")
    schedule = scheduled(random_workload(150, seed=5))
    rows = schedule
    path, picture = tmp_path / "jobs.csv", tmp_path / "gantt.png"
    with open(path, "wb") as file:
        FORMS["batsim"].write(file, Exportable(Result((rows,))))
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("PYTHON")
    }
    done = subprocess.run(
        [python, SCRIPT, path, "16", picture],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        env={**environment, "MPLCONFIGDIR": str(tmp_path)},
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    theirs = json.loads(done.stdout)
    ours = measure(schedule)
    by_end = np.lexsort((rows.start, rows.end))
    assert theirs["jobs"] == ours["jobs"] == len(rows)
    assert theirs["processors"] == 16
    assert theirs["allocated"] == rows.workload.procs[by_end].tolist()
    assert theirs["wait_mean"] == pytest.approx(ours["wait_mean_s"])
    assert theirs["wait_sum"] == pytest.approx(job_times(rows).wait.sum() / 1e6)
    assert theirs["turnaround_mean"] == pytest.approx(ours["response_mean_s"])
    assert theirs["stretch_mean"] == pytest.approx(ours["slowdown_mean"], rel=1e-5)
    span = float(rows.end.max() - rows.start.min())
    assert theirs["busy_mean"] == pytest.approx(
        float((rows.workload.procs * rows.workload.run).sum()) / span
    )
    assert theirs["busy_max"] == most_procs(rows)
    assert theirs["queue_area"] == pytest.approx(
        float((rows.workload.procs * job_times(rows).wait).sum()) / 1e6
    )
    assert theirs["least_free"] >= 0
    assert picture.read_bytes()[:4] == b"\x89PNG"
