from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from qbatch.distribution import __version__
from qbatch.model.errors import InputError, OutputError, UsageError
from qbatch.model.record import MICROSECONDS
from qbatch.results import result as module
from qbatch.results.job_rows import write_job_rows
from qbatch.results.reading import read_result
from qbatch.results.result import most_procs, write_result
from tests.reports.samples import (
    KTH_CLOCK,
    by_hand,
    check_read_back,
    random_workload,
    scheduled,
    unseal,
    workload,
)

S = MICROSECONDS


@pytest.fixture
def easy():
    return scheduled(random_workload(30, clock=KTH_CLOCK))


def test_a_result_is_read_back(tmp_path, easy):
    other = scheduled(easy.workload, "conservative", "conservative:a=1,b=2")
    document = {
        "command": ["qbatch"],
        "metrics": {"easy": {"wait_mean_s": np.float64(3.5), "bad": float("nan")}},
        "seed": 7,
    }
    write_result(tmp_path / "out", document, [easy, other])
    assert sorted(os.listdir(tmp_path / "out")) == [
        "jobs-conservative-a-1-b-2.parquet",
        "jobs-easy.parquet",
        "result.json",
    ]
    assert os.listdir(tmp_path) == ["out"]
    result = read_result(tmp_path / "out")
    assert result.policies == ("easy", "conservative:a=1,b=2")
    assert (result.name, result.procs_total, result.clock) == ("sample", 16, KTH_CLOCK)
    for rows, schedule in zip(result.schedules, (easy, other), strict=True):
        check_read_back(rows, schedule)
    assert result.document["schema"] == "qbatch.result/1"
    assert result.document["version"] == __version__
    assert result.document["log"] == {"name": "sample", "sha256": "0" * 64}
    assert result.document["metrics"] == {"easy": {"wait_mean_s": 3.5, "bad": None}}
    assert result.document["seed"] == 7


def test_the_document_s_own_facts_win(tmp_path, easy):
    write_result(
        tmp_path / "out", {"procs_total": 99, "log": {"name": "mine"}, "schema": "x"}, [easy]
    )
    result = read_result(tmp_path / "out")
    assert (result.procs_total, result.name) == (99, "mine")
    assert read_result(tmp_path / "out", procs=40).procs_total == 40


def test_names_that_would_be_one_file_stay_two(tmp_path, easy):
    schedules = [scheduled(easy.workload, "easy", name) for name in ("a:b", "a=b", "A/b", "..")]
    write_result(tmp_path / "out", {}, schedules)
    assert len(os.listdir(tmp_path / "out")) == 5
    assert read_result(tmp_path / "out").policies == ("a:b", "a=b", "A/b", "..")
    with pytest.raises(OutputError, match="two schedules"):
        write_result(tmp_path / "again", {}, [easy, easy])


def test_an_earlier_result_is_replaced_whole(tmp_path, easy):
    out = tmp_path / "out"
    out.mkdir()
    write_result(out, {}, [easy])
    write_result(out, {}, [scheduled(easy.workload, "fcfs")])
    assert sorted(os.listdir(out)) == ["jobs-fcfs.parquet", "result.json"]
    assert os.listdir(tmp_path) == ["out"]


def test_nothing_else_is_replaced(tmp_path, easy):
    out = tmp_path / "out"
    out.mkdir()
    (out / "thesis.tex").write_text("years of work")
    with pytest.raises(OutputError, match="no result of qbatch"):
        write_result(out, {}, [easy])
    (out / "result.json").write_text('{"schema": "other/1", "files": {}}')
    with pytest.raises(OutputError, match="no result of qbatch"):
        write_result(out, {}, [easy])
    write_result(tmp_path / "good", {}, [easy])
    (tmp_path / "good" / "gantt.png").write_bytes(b"picture")
    with pytest.raises(OutputError, match=r"holds gantt\.png"):
        write_result(tmp_path / "good", {}, [easy])
    with pytest.raises(OutputError, match="is a file"):
        write_result(out / "thesis.tex", {}, [easy])
    assert (out / "thesis.tex").read_text() == "years of work"


def test_a_folder_that_is_not_there_is_an_output_error(tmp_path, easy):
    with pytest.raises(OutputError, match="No such file"):
        write_result(tmp_path / "none" / "out", {}, [easy])


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), KeyboardInterrupt(), ValueError("defect")]
)
@pytest.mark.parametrize("is_new", [True, False])
def test_a_failure_in_the_middle_leaves_all_as_it_was(tmp_path, easy, monkeypatch, error, is_new):
    out = tmp_path / "out"
    if not is_new:
        write_result(out, {"seed": 1}, [easy])
    calls = []

    def fail_at_the_second(file, schedules, suffix):
        calls.append(1)
        if len(calls) == 2:
            raise error
        write_job_rows(file, schedules, suffix)

    monkeypatch.setattr(module, "write_job_rows", fail_at_the_second)
    expected = OutputError if isinstance(error, OSError) else type(error)
    with pytest.raises(expected):
        write_result(out, {"seed": 2}, [easy, scheduled(easy.workload, "fcfs")])
    assert os.listdir(tmp_path) == ([] if is_new else ["out"])
    if not is_new:
        assert read_result(out).document["seed"] == 1


@pytest.mark.parametrize("which", [1, 2])
def test_a_failing_rename_puts_the_earlier_result_back(tmp_path, easy, monkeypatch, which):
    out = tmp_path / "out"
    write_result(out, {"seed": 1}, [easy])
    rename, calls = os.rename, []

    def failing(source, target):
        calls.append(1)
        if len(calls) == which:
            raise PermissionError(13, "Permission denied")
        rename(source, target)

    monkeypatch.setattr(module.os, "rename", failing)
    with pytest.raises(OutputError, match="Permission denied"):
        write_result(out, {"seed": 2}, [easy])
    assert os.listdir(tmp_path) == ["out"]
    assert read_result(out).document["seed"] == 1


def test_a_bare_file_of_job_rows_is_a_result(tmp_path):
    work = workload([0, 0, 5 * S, 5 * S], [3, 4, 6, 9], [5 * S, 9 * S, S, 0], [5 * S, 9 * S, S, 0])
    schedule = by_hand(work, [0, 0, 5 * S, 5 * S])
    path = tmp_path / "rows.csv"
    with path.open("wb") as out:
        write_job_rows(out, [schedule])
    result = read_result(path)
    assert (result.name, result.policies, result.procs_total) == ("rows.csv", ("hand",), 10)
    assert most_procs(result.schedules[0]) == 10
    assert read_result(path, procs=64).procs_total == 64


def test_a_result_without_jobs_is_refused(tmp_path):
    empty = by_hand(workload([0], [1], [S], [S]), [-1])
    write_result(tmp_path / "out", {}, [empty])
    with pytest.raises(InputError, match="no job ran"):
        read_result(tmp_path / "out")


DAMAGES = {
    "is not JSON": "{",
    "schema: should be 'qbatch.result/1', not 'qbatch.result/9'": {"schema": "qbatch.result/9"},
    "schema: should be 'qbatch.result/1', not None": [],
    "files: should name": {"files": 3},
    "lies outside of the result": {"files": {"easy": "../jobs-easy.parquet"}},
    "cannot be read": {"files": {"easy": "jobs-none.parquet"}},
    "should hold the jobs of 'fcfs', but holds those of easy": {
        "files": {"fcfs": "jobs-easy.parquet"}
    },
    "procs_total: should be": {"procs_total": "many"},
    "log: should be an object, not [1]": {"log": [1]},
    "machine: should be an object, not None": {"machine": None},
    "results: should be a list of objects": {"results": 5},
    "results: should be a list of objects, one for each policy, not ['easy']": {
        "results": ["easy"]
    },
    "log: notes: should be a list, not 7": {"log": {"notes": 7}},
    "clock: should hold": {"clock": {"unix_start": "noon"}},
}


@pytest.mark.parametrize(("reason", "change"), DAMAGES.items())
def test_a_damaged_result_is_refused(tmp_path, easy, reason, change):
    write_result(tmp_path / "out", {}, [easy])
    path = tmp_path / "out" / "result.json"
    if isinstance(change, dict):
        change = json.dumps(unseal(path) | change)
    path.write_text(change if isinstance(change, str) else json.dumps(change))
    with pytest.raises(InputError) as caught:
        read_result(tmp_path / "out")
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_directory_without_a_document_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"holds no result\.json"):
        read_result(tmp_path)


def test_policies_are_chosen_by_name(tmp_path, easy):
    write_result(tmp_path / "out", {}, [easy, scheduled(easy.workload, "fcfs")])
    result = read_result(tmp_path / "out")
    assert result.only([]).policies == ("easy", "fcfs")
    assert result.only(["fcfs", "fcfs"]).policies == ("fcfs",)
    assert result.only(["easy:"]).policies == ("easy",)
    with pytest.raises(UsageError, match="did you mean 'easy'"):
        result.only(["eazy"])
    with pytest.raises(UsageError, match="no policy 'hybrid:depth=4'; it has easy, fcfs"):
        result.only(["hybrid:depth=4"])


def test_a_device_is_written_to_and_a_link_is_followed(tmp_path: Path) -> None:
    from qbatch.results.output import whole_file

    target = tmp_path / "target"
    target.write_bytes(b"old")
    link = tmp_path / "link"
    link.symlink_to(target)
    with whole_file(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    reader, writer = os.pipe()
    with whole_file(f"/dev/fd/{writer}") as file:
        file.write(b"through")
    os.close(writer)
    assert os.read(reader, 99) == b"through"
    os.close(reader)
