"""The use of GPUs and licences, and waits by partition."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

from qbatch.cli.main import run as command
from qbatch.metrics import breakdown
from qbatch.metrics.resources import resource_use
from qbatch.model.machine_file import parse_machine
from qbatch.policies import load_policy
from qbatch.simulation import run
from qbatch.simulation.prepare import prepare
from qbatch.workloads import read_log
from qbatch.workloads.resource_rows import read_resources
from tests.policies.test_partitions import random_site, work_of

LOG = """; MaxProcs: 16
1 0 -1 3600 4 -1 -1 4 3600 -1 1 1 1 -1 1 -1 -1 -1
2 0 -1 1800 4 -1 -1 4 1800 -1 1 1 1 -1 1 -1 -1 -1
3 7200 -1 100 1 -1 -1 1 100 -1 1 1 1 -1 1 -1 -1 -1
"""
SIDE = """job,nodes,cpus_per_node,gpus_per_node,partitions,server
1,1,4,2,gpu,
2,2,2,1,gpu,lic=1
"""
SITE = """schema = 2
resource = [{ name = "lic", kind = "server", total = 2 }]
host = [{ name = "g[1-2]", cpus = 4, resources = { gpu = 2 } }, { name = "c[1-2]", cpus = 4 }]
[[partition]]
name = "gpu"
hosts = ["g[1-2]"]
[[partition]]
name = "cpu"
hosts = ["c[1-2]"]
default = true
"""


def test_the_record_and_the_table_have_hours_and_utilisation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in (("log.swf", LOG), ("side.csv", SIDE), ("site.toml", SITE)):
        (tmp_path / name).write_text(text)
    log, side, site = (str(tmp_path / name) for name in ("log.swf", "side.csv", "site.toml"))
    asked = ["replay", log, "--machine", site, "--resources", side, "-p", "easy", "-q"]
    assert command([*asked, "--by", "partition", "--json"]) == 0
    (result,) = json.loads(capsys.readouterr().out)["results"]
    # Job 2 waits for the GPUs of job 1: 2 GPUs for an hour, then 2 for half an hour; of two hours.
    # Meanwhile 2 GPUs and 2 licences are free, which is as many as it asks for, until second 7300.
    gpu, lic = result["resources"]
    assert gpu == {
        "name": "gpu",
        "there": 4,
        "hours": 3.0,
        "utilisation_submit": 3 / 8,
        "loss_of_capacity": 2 * 3600 / (4 * 7300),
        "unusable_mean": None,
    }
    assert [*lic.values()] == ["lic", 2, 0.5, 1 / 8, 3600 / 7300, None]
    waits = {
        each["label"]: (each["jobs"], each["metrics"]["wait_mean_s"])
        for each in result["by"]["partition"]
    }
    assert waits == {"gpu": (2, 1800.0), "default": (1, 0.0)}
    assert command(asked) == 0
    shown = capsys.readouterr().out
    assert [line.split() for line in shown.splitlines() if line.startswith(("gpu", "lic"))] == [
        ["gpu", "easy", "4", "3.0", "37.50", "%", "24.66", "%", "-"],
        ["lic", "easy", "2", "0.5", "12.50", "%", "49.32", "%", "-"],
    ]


def test_a_job_without_a_time_has_the_default_of_its_partition(tmp_path: Path) -> None:
    site = SITE.replace('name = "gpu"', 'name = "gpu"\ntimes = { default = "2:00:00" }', 1)
    log = LOG.replace("4 3600 -1 1 1", "4 -1 -1 1 1", 1)
    for name, text in (("log.swf", log), ("side.csv", SIDE)):
        (tmp_path / name).write_text(text)
    read = read_log(str(tmp_path / "log.swf"))
    rows = read_resources(str(tmp_path / "side.csv"), read)
    work = prepare(read, parse_machine(site, "site"), resources=rows)
    assert (work.estimate // 1_000_000).tolist() == [7200, 1800, 100]


@pytest.mark.parametrize("seed", range(6))
def test_the_use_is_the_sum_over_the_jobs(seed: int) -> None:
    rng = random.Random(seed)
    machine = random_site(rng)
    work = work_of(rng, machine)
    done = run(work, machine, load_policy("easy"), driver="engine")
    first, last = min(work.submit[done.ran], default=0), max(work.submit[done.ran], default=0)
    for used in resource_use(done, machine):
        held = work.resources.get(used.name, np.zeros(len(work)))
        whole = inside = 0
        for row in np.flatnonzero(done.ran).tolist():
            begin, end = int(done.start[row]), int(done.end[row])
            whole += int(held[row]) * (end - begin)
            inside += int(held[row]) * max(0, min(end, last) - min(max(begin, first), last))
        assert used.hours == pytest.approx(whole / 3.6e9)
        span = used.there * (last - first)
        assert used.utilisation_submit == (pytest.approx(inside / span) if span else None)
    jobs = sum(group.jobs for group in breakdown(done, "partition"))
    assert jobs == int(done.ran.sum())
