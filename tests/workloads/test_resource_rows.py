"""The side file of resources: what is read, and what is refused with its line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from qbatch.model.errors import InputError
from qbatch.model.job import FREE, SCATTER, Charge, ChunkRequest, JobRequest
from qbatch.workloads import Log, read_log
from qbatch.workloads.resource_rows import read_resources, resources_of_jobs

ROWS = """; MaxProcs: 64
7 0 -1 100 4 -1 -1 4 100 -1 1 1 1 -1 1 -1 -1 -1
8 0 -1 100 8 -1 -1 8 100 -1 1 1 1 -1 1 -1 -1 -1
9 5 -1 100 2 -1 -1 2 100 -1 1 1 1 -1 1 -1 -1 -1
"""


@pytest.fixture
def log(tmp_path: Path) -> Log:
    (tmp_path / "log.swf").write_text(ROWS)
    return read_log(str(tmp_path / "log.swf"))


def test_rows_become_requests_and_equal_rows_share_one(log: Log, tmp_path: Path) -> None:
    file = tmp_path / "side.csv"
    file.write_text(
        "job,nodes,cpus_per_node,memory_per_node,gpus_per_node,gpu_type,features,partitions,"
        "exclusive,priority,user,account,qos,nice\n"
        '9,2,4,8GB,2,a100,ib&nvme,"gpu,long",1,7,ann,physics,high,-5\n'
        '7,2,4,8GB,2,a100,ib&nvme,"gpu,long",1,,ann,physics,high,-5\n'
        "8,1,,,,,,,,,,,,\n"
    )
    found = read_resources(str(file), log)
    gpus = (("gpu", 2), ("gpu:a100", 2))
    wide = ChunkRequest(2, 4, 8 * 2**30, resources=gpus, features=("ib", "nvme"))
    assert found.requests == (
        JobRequest((wide,), SCATTER, True, ("gpu", "long")),
        JobRequest((ChunkRequest(1, 1),), FREE),
    )
    assert found.of.tolist() == [0, 1, 0]
    assert found.requests[0].procs == 8
    assert found.requests[0].resources == {"gpu": 4, "gpu:a100": 4}
    assert found.not_counted == {"priority": 1}
    assert found.charges == (Charge("ann", "physics", "high", -5),)
    assert found.charge.tolist() == [0, -1, 0]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "line 1: no column job; a side file begins job,nodes"),
        ("job,cpus_per_node\n", "line 1: no column nodes"),
        ("job,nodes,gpu_per_node\n", "'gpu_per_node' is not known; did you mean 'gpus_per_node'?"),
        ("job,nodes,nodes\n", "line 1: the column 'nodes' appears twice"),
        ("job,nodes\n7,1\n7,2\n", "line 3: job 7 has another line before it"),
        ("job,nodes\n7,1\n\n70,2\n", "line 4: job 70 is not in "),
        ("job,nodes\n7,0\n", "line 2: nodes '0' is not a whole number from 1"),
        ("job,nodes\n7,two\n", "line 2: nodes 'two' is not a whole number"),
        ("job,nodes\n7\n", "line 2: 1 values, the header names 2"),
        ("job,nodes,memory_per_node\n7,1,8 apples\n", "line 2: memory_per_node: '8 apples' is"),
        ("job,nodes,gpus_per_node\n7,1,-1\n", "line 2: gpus_per_node '-1' is not a whole number"),
    ],
)
def test_a_wrong_file_is_refused_with_line_and_reason(
    log: Log, tmp_path: Path, text: str, error: str
) -> None:
    file = tmp_path / "side.csv"
    file.write_text(text)
    with pytest.raises(InputError) as found:
        read_resources(str(file), log)
    assert error in str(found.value)
    assert str(file) in str(found.value)


def test_a_file_that_is_absent_or_no_text_is_refused(log: Log, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        read_resources(str(tmp_path / "absent.csv"), log)
    (tmp_path / "bytes.csv").write_bytes(b"job,nodes\n7,\xff\n")
    with pytest.raises(InputError, match="not a text in UTF-8"):
        read_resources(str(tmp_path / "bytes.csv"), log)


def test_what_really_happened_is_by_row_of_the_log(log: Log, tmp_path: Path) -> None:
    file = tmp_path / "side.csv"
    file.write_text("job,nodes,hosts,spread,suspended\n9,2,n[1-2],unknown,30\n7,1,n1,,\n")
    found = read_resources(str(file), log)
    assert found.hosts == {0: "n1", 2: "n[1-2]"}
    assert found.is_spread_unknown.tolist() == [False, False, True]
    assert found.suspended is not None
    assert found.suspended.tolist() == [0, 0, 30]
    file.write_text("job,nodes\n9,2\n")
    assert read_resources(str(file), log).suspended is None
    file.write_text("job,nodes,spread\n9,2,even\n")
    with pytest.raises(InputError, match="line 2: spread 'even' is neither empty nor unknown"):
        read_resources(str(file), log)


def test_lines_of_other_jobs_are_left_out_where_there_may_be_some(tmp_path: Path) -> None:
    file = tmp_path / "side.csv"
    file.write_text("job,nodes,cpus_per_node\n5,1,2\n7,2,4\n")
    found = resources_of_jobs(str(file), np.array([6, 7]), "result", may_have_others=True)
    assert found.of.tolist() == [-1, 0]
    with pytest.raises(InputError, match="line 2: job 5 is not in result"):
        resources_of_jobs(str(file), np.array([6, 7]), "result")
