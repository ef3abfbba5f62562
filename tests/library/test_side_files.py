"""A log in Python knows what its jobs ask for: the same files as those of the commands."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import qbatch as qb
from qbatch.model.errors import InputError, UsageError
from qbatch.workloads.resource_rows import read_resources
from tests.library.commands import qbatch

LOG = """; MaxProcs: 8
1 0 -1 100 4 -1 -1 4 100 -1 1 1 1 -1 1 -1 -1 -1
2 0 -1 100 4 -1 -1 4 100 -1 1 1 1 -1 1 -1 -1 -1
3 1 -1  50 4 -1 -1 4  60 -1 1 2 1 -1 1 -1 -1 -1
"""
SIDE = "job,nodes,cpus_per_node,gpus_per_node\n1,1,4,1\n3,1,4,1\n"
MACHINE = """schema = 2
[[host]]
name = "g1"
cpus = 4
resources = { gpu = 1 }
[[host]]
name = "c1"
cpus = 4
"""
CLUSTER = ("--days", "2", "--nodes", "8", "--seed", "3")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "log.swf").write_text(LOG)
    (tmp_path / "side.csv").write_text(SIDE)
    (tmp_path / "machine.toml").write_text(MACHINE)
    return tmp_path


def test_a_generated_cluster_has_its_machine_and_its_side_file(tmp_path: Path) -> None:
    qbatch("generate", "cluster", *CLUSTER, "-o", "theirs.swf", cwd=tmp_path)
    log = qb.generate("cluster", days=2, nodes=8, seed=3)
    qb.write_log(log, tmp_path / "ours.swf")
    for ending in (".swf", ".resources.csv"):
        ours, theirs = (tmp_path / f"{name}{ending}" for name in ("ours", "theirs"))
        assert ours.read_bytes() == theirs.read_bytes()
    ours = qb.replay(log, "easy", first=300)
    theirs = qb.replay(
        tmp_path / "theirs.swf",
        "easy",
        machine=tmp_path / "theirs.toml",
        resources=tmp_path / "theirs.resources.csv",
        first=300,
    )
    assert ours.metrics == theirs.metrics
    assert "resources" in ours.document["results"][0]


def test_a_transformed_log_keeps_the_lines_of_its_jobs(files: Path) -> None:
    steps = ("take:skip=1", "duplicate:load=1.5")
    asked = ("--resources", "side.csv", "--seed", "5", "-o", "theirs.swf")
    qbatch("transform", "log.swf", *steps, *asked, cwd=files)
    read = qb.read_log(files / "log.swf", resources=files / "side.csv")
    made = qb.transform(read, steps[0], seed=5)
    made = qb.transform(made, steps[1], seed=5)
    qb.write_log(made, files / "ours.swf", resources=files / "ours.csv")
    assert (files / "ours.swf").read_bytes() == (files / "theirs.swf").read_bytes()
    assert (files / "ours.csv").read_text() == (files / "theirs.resources.csv").read_text()
    assert made.log.side is not None
    assert (read_resources(made.log.side, made.log).of >= 0).sum() >= 1


def test_a_replay_uses_what_the_log_knows_where_hosts_count_it(files: Path) -> None:
    read = qb.read_log(files / "log.swf", resources=files / "side.csv")
    machine = files / "machine.toml"
    ours = qb.replay(read, "fcfs", machine=machine)
    theirs = qb.replay(files / "log.swf", "fcfs", machine=machine, resources=files / "side.csv")
    start = ours.schedules[0].start
    assert np.array_equal(start, theirs.schedules[0].start)
    assert start.tolist() == [0, 0, 100_000_000]  # job 3 waits for the GPU
    pool = qb.replay(read, "fcfs")
    assert any("does not count: the machine has no hosts" in note for note in pool.notes)
    with pytest.raises(UsageError, match="the log knows what its jobs ask for; leave it out"):
        qb.replay(read, "fcfs", machine=machine, resources=files / "side.csv")
    with pytest.raises(UsageError, match="does not know what its jobs ask for"):
        qb.write_log(qb.read_log(files / "log.swf"), files / "x.swf", resources=files / "x.csv")
    (files / "side.csv").write_text("job,nodes\n9,1\n")
    with pytest.raises(InputError, match="line 2: job 9 is not in"):
        qb.read_log(files / "log.swf", resources=files / "side.csv")


def test_a_table_gives_what_its_jobs_ask_for(files: Path) -> None:
    table = {
        "id": [1, 2],
        "sub": [0, 1],
        "beg": [5, 5],
        "fin": [50, 60],
        "cores": [4, 4],
        "n": [1, 1],
        "g": [1, 0],
    }
    names = {"job": "id", "submit": "sub", "start": "beg", "end": "fin", "procs": "cores"}
    given = {"columns": names | {"nodes": "n", "gpus": "g"}, "times": {"unit": "s"}}
    log = qb.read_log(table, map=given)
    assert log.side is not None
    assert log.side.content.decode().splitlines()[1].startswith("1,1,4,0,1,")
    done = qb.replay(log, "fcfs", machine=files / "machine.toml")
    assert done.document["resources"]["jobs"] == 2
    with pytest.raises(UsageError, match="leave one out"):
        qb.read_log(table, map=given, resources=files / "side.csv")
