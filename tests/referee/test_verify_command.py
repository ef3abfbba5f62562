"""``qbatch verify``: what it reads, what it says, its exit codes."""

from __future__ import annotations

import gzip
import json
import sys
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest

from qbatch.cli.main import run
from qbatch.model.machine import one_host
from qbatch.model.record import MICROSECONDS
from qbatch.policies import load_policy
from qbatch.referee.verify import judge, read_finished, verdict_document
from qbatch.results.job_rows import write_job_rows
from qbatch.simulation import run as run_policy
from tests.reports.samples import random_workload, scheduled, tried

SWF = """; MaxProcs: 4
1 0 0 10 3 -1 -1 3 10 -1 1 -1 -1 -1 -1 -1 -1 -1
2 1 29 10 4 -1 -1 4 10 -1 1 -1 -1 -1 -1 -1 -1 -1
3 2 0 20 1 -1 -1 1 20 -1 1 -1 -1 -1 -1 -1 -1 -1
4 3 -1 -1 1 -1 -1 1 20 -1 5 -1 -1 -1 -1 -1 -1 -1
"""
ROWS = "job_id,submit,start,end,procs,estimate\n1,0,0,10,3,10\n2,1,10,20,4,10\n"


def written(folder: Path, text: str, name: str = "schedule.swf") -> str:
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return str(path)


def test_a_breach_is_named_with_jobs_and_instant(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["verify", written(tmp_path, SWF, "a.swf.gz"), "--policy", "easy"]) == 1
    said = capsys.readouterr()
    assert "head-delayed at 2 s: job 3 was backfilled before job 2" in said.out
    assert "breaches in all" in said.out
    assert "1 job left out: no wait" in said.err
    assert run(["verify", written(tmp_path, SWF), "--policy", "easy", "--all"]) == 1
    assert "guarantee at 10 s" in capsys.readouterr().out


def test_without_a_policy_only_what_every_schedule_owes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["verify", written(tmp_path, SWF)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("kept as far as could be checked: ")
    assert said.splitlines()[0].endswith(
        "policy not named (not checked: order and backfilling; the jobs left out)"
    )
    assert "not checked  order and backfilling: name the policy with --policy" in said
    assert run(["verify", written(tmp_path, SWF), "--procs", "3"]) == 1
    assert "capacity at 2 s: 4 of 3 processors in use" in capsys.readouterr().out


def test_standard_input_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Stdin:
        buffer = BytesIO(SWF.encode())

    monkeypatch.setattr(sys, "stdin", Stdin())
    assert run(["verify", "-"]) == 0
    assert capsys.readouterr().out.startswith(
        "kept as far as could be checked: -: 3 jobs on 4 processors"
    )


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", written(tmp_path, SWF), "-p", "easy", "--json", "--all"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "qbatch.verify/1"
    [result] = document["results"]
    assert (result["policy"], result["jobs"], result["procs"], result["kept"]) == (
        "easy",
        3,
        4,
        False,
    )
    assert result["breaches"][0]["code"] == "head-delayed"
    assert result["breaches"][0]["at_s"] == 2.0
    assert result["breaches"][0]["jobs"] == [3, 2]
    assert result["breaches_total"] == len(result["breaches"]) > 1
    assert result["skipped"] == {"no_wait": 1}


def test_rows_of_another_simulator(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = written(tmp_path, ROWS, "rows.csv")
    assert run(["verify", rows]) == 3
    assert "--procs" in capsys.readouterr().err
    assert run(["verify", rows, "--procs", "4", "--policy", "easy"]) == 0
    assert run(["verify", rows, "--procs", "2"]) == 1
    early = written(tmp_path, ROWS + "3,30,29,31,1,10\n", "early.csv")
    capsys.readouterr()
    assert run(["verify", early, "--procs", "4"]) == 1
    assert (
        "early-start at 29 s: job 3 started before its submission at 30 s"
        in capsys.readouterr().out
    )


@pytest.mark.parametrize(
    ("text", "name", "reason"),
    [
        ("job_id,submit\n1,0\n", "rows.csv", "no column start, procs, end or run"),
        (ROWS + "x,0,0,1,1,1\n", "rows.csv", "line 4"),
        ("job_id,submit,start,end,procs\n", "rows.csv", "no job in it"),
        ("; MaxProcs: 4\n0 10 2 10\n", "log.txt", "no job in it has a wait"),
        (SWF.replace("; MaxProcs: 4\n", ""), "log.swf", "--procs"),
        ("", "empty.swf", "empty"),
    ],
)
def test_what_is_no_schedule_is_refused(
    text: str, name: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--procs", "4"] if name.endswith(".csv") else []
    assert run(["verify", written(tmp_path, text, name), *arguments]) == 3
    assert reason in capsys.readouterr().err


def test_missing_files_and_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", str(tmp_path / "none.swf")]) == 3
    assert run(["verify", str(tmp_path / "none.csv"), "--procs", "4"]) == 3
    assert run(["verify", str(tmp_path)]) == 3
    assert run(["verify"]) == 2
    assert run(["verify", written(tmp_path, SWF), "--policy", "eassy"]) == 2
    assert "did you mean 'easy'" in capsys.readouterr().err
    assert run(["verify", written(tmp_path, SWF), "--list-conformance"]) == 2


@pytest.mark.parametrize("policies", [["easy"], ["fcfs", "conservative"]])
def test_our_own_rows_are_checked_against_the_policy_that_they_name(
    policies: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    work = random_workload(60)
    path = tmp_path / "jobs.csv"
    schedules = [scheduled(work, policy) for policy in policies]
    with open(path, "wb") as file:
        write_job_rows(file, schedules)
    assert run(["verify", str(path), "--procs", "16"]) == 0
    said = capsys.readouterr().out
    for policy in policies:
        assert f"processors, policy {policy}" in said
    read = read_finished(str(path), 16)
    assert [(done.start == one.start).all() for (done, _), one in zip(read, schedules, strict=True)]
    if len(policies) == 2:
        assert run(["verify", str(path), "--procs", "16", "-p", "fcfs"]) == 0
        assert "conservative" not in capsys.readouterr().out
        assert run(["verify", str(path), "--procs", "16", "-p", "easy"]) == 2


def test_a_name_in_a_file_loads_no_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("antigravity:Policy", "easy:depth=3"):
        rows = ROWS.replace("\n", ",policy\n", 1).replace("10\n", f"10,{name}\n")
        assert run(["verify", written(tmp_path, rows, "rows.csv"), "--procs", "4"]) == 0
        said = capsys.readouterr()
        assert "policy not named" in said.out
        assert f"the rows name the policy '{name}'" in said.err
    assert "antigravity" not in sys.modules


def test_a_result_is_verified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyarrow")
    from qbatch.results.result import write_result

    work = random_workload(60)
    write_result(
        tmp_path / "result", {}, [scheduled(work, "easy"), scheduled(work, "conservative")]
    )
    assert run(["verify", str(tmp_path / "result")]) == 0
    said = capsys.readouterr().out
    assert "policy easy" in said
    assert "the promises recorded in the rows, of 60 jobs" in said


def test_one_policy_of_a_result_is_verified_and_all_that_was_checked_says_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyarrow")
    from qbatch.results.result import write_result

    work = random_workload(60)
    policies = ("easy", "hybrid:depth=3")
    out = tmp_path / "re:sult"
    write_result(
        out, {}, [run_policy(work, one_host(16), load_policy(policy)) for policy in policies]
    )
    for named, kept in (
        ("easy", "kept: "),
        ("hybrid:depth=3,order=fcfs", "kept as far as could be checked: "),
    ):
        assert run(["verify", f"{out}:{named}", "--json"]) == 0
        [result] = json.loads(capsys.readouterr().out)["results"]
        assert result["policy"] == named.removesuffix(",order=fcfs")
        assert result["all_checked"] is (kept == "kept: ")
        assert run(["verify", f"{out}:{named}"]) == 0
        assert capsys.readouterr().out.startswith(kept)
    assert run(["verify", f"{out}:esy"]) == 2
    assert "did you mean 'easy'" in capsys.readouterr().err
    assert run(["verify", f"{out}:easy", "-p", "fcfs"]) == 1
    assert run(["verify", str(out), "-p", "hybrid:depth=3,order=fcfs"]) == 0


def test_job_rows_in_a_result_are_checked_as_that_part_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyarrow")
    from qbatch.results.reading import read_result
    from qbatch.results.result import write_result

    out = tmp_path / "result"
    write_result(out, {}, [tried("immediate:inner=easy"), tried("equispatial")])
    rows = out / "jobs-equispatial.parquet"
    assert run(["verify", str(rows)]) == 0
    said = capsys.readouterr().out
    assert "6 jobs on 12 processors, policy equispatial" in said
    assert "checked      the " in said
    assert "times, work, and capacity" in said
    result = read_result(rows)
    assert (result.policies, result.procs_total, result.is_size_guessed) == (
        ("equispatial",),
        12,
        False,
    )
    # The same file elsewhere is bare, also next to a result that does not name it.
    bare = tmp_path / "jobs-equispatial.parquet"
    bare.write_bytes(rows.read_bytes())
    assert run(["verify", str(bare)]) == 3
    (tmp_path / "result.json").write_bytes(
        (out / "result.json").read_bytes().replace(b"jobs-equispatial", b"jobs-other")
    )
    assert run(["verify", str(bare)]) == 3
    # One next to a damaged result may be a part of it.
    (tmp_path / "result.json").write_text("{")
    assert run(["verify", str(bare), "--procs", "12"]) == 3
    bare = bare.rename(tmp_path / "rows.parquet")
    assert run(["verify", str(bare), "--procs", "12"]) == 0
    assert run(["verify", f"{bare}:equispatial", "--procs", "12"]) == 0
    assert run(["verify", f"{bare}:easy", "--procs", "12"]) == 2


def test_a_promise_that_the_policy_took_back_is_reported_and_no_breach(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyarrow")
    from qbatch.referee.every_schedule import taken_back
    from qbatch.results.result import write_result

    work = random_workload(80, seed=2)
    policy = "tests.policies.refusing:Bounded:most=1000000,order=sjf"
    done = run_policy(work, one_host(16), load_policy(policy))
    assert done.broken is not None
    moved = int((done.promise > done.first_promise).sum())
    assert moved > 0
    counts = taken_back(done)
    write_result(tmp_path / "result", {}, [done])
    with open(tmp_path / "rows.csv", "wb") as file:
        write_job_rows(file, [done])
    for named in ((str(tmp_path / "result"),), (str(tmp_path / "rows.csv"), "--procs", "16")):
        assert run(["verify", *named]) == 0
        promises, jobs = int(counts.sum()), int((counts > 0).sum())
        assert (
            f"  taken back   {promises} promises to {jobs} jobs, by the policy itself: no breach"
            in capsys.readouterr().out
        )
        assert run(["verify", *named, "--json"]) == 0
        [result] = json.loads(capsys.readouterr().out)["results"]
        assert result["promises_taken_back"] == {"promises": promises, "jobs": jobs}
        assert result["breaches_total"] == 0
    # Where the rows do not say that it was taken back, a promise that moved is a breach.
    silent = judge(replace(done, broken=None))
    assert [breach.code for breach in silent.breaches] == ["promise-moved"] * moved
    assert silent.taken_back == (0, 0)
    assert "promises_taken_back" not in verdict_document(silent, 1)


def test_a_start_after_a_promise_that_was_made_anew_is_a_breach() -> None:
    policy = load_policy("tests.policies.refusing:Bounded:most=1000000,order=sjf")
    done = run_policy(random_workload(80, seed=2), one_host(16), policy)
    assert done.broken is not None
    row = int(np.flatnonzero((done.promise > done.first_promise) & (done.broken == 1))[0])
    start, end, broken = done.start.copy(), done.end.copy(), done.broken.copy()
    start[row], end[row], broken[row] = start[row] + MICROSECONDS, end[row] + MICROSECONDS, 2
    verdict = judge(replace(done, start=start, end=end, broken=broken))
    number = int(done.workload.number[row])
    assert [
        (each.code, each.jobs) for each in verdict.breaches if each.code.startswith("promise")
    ] == [("promise-broken", (number,))]
    assert verdict.taken_back == judge(done).taken_back
    # Counted once, it was not kept, and never taken back: that it moved is then a breach too.
    broken[row] = 1
    codes = [
        each.code for each in judge(replace(done, start=start, end=end, broken=broken)).breaches
    ]
    assert {"promise-broken", "promise-moved"} <= set(codes)


def test_plots_exports_and_reports_take_one_policy_of_a_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyarrow")
    pytest.importorskip("matplotlib")
    from qbatch.results.result import write_result

    out = tmp_path / "result"
    work = random_workload(20)
    policies = ("easy", "hybrid:depth=2")
    write_result(
        out, {}, [run_policy(work, one_host(16), load_policy(policy)) for policy in policies]
    )
    assert run(["export", "csv", f"{out}:hybrid:depth=2", "-o", str(tmp_path / "a.csv")]) == 0
    assert "20 jobs of" in capsys.readouterr().err
    assert run(["plot", f"{out}:easy", "--kind", "queue", "-o", str(tmp_path / "a.png")]) == 0
    assert run(["report", f"{out}:easy", "-o", str(tmp_path / "a.html")]) == 0
    assert "20 jobs, easy;" in capsys.readouterr().err


def test_fractions_of_seconds_are_exact(tmp_path: Path) -> None:
    text = SWF.replace("2 1 29 10 4", "2 1.000001 29.1 10.5 4")
    [(done, _)] = read_finished(written(tmp_path, text))
    assert done.start[1] == round(30.100001 * MICROSECONDS)
    assert done.end[1] - done.start[1] == 10_500_000


def test_the_conformance_set_is_listed_and_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["verify", "--list-conformance"]) == 0
    assert "a head starved by backfilling" in capsys.readouterr().out
    assert run(["verify", "--list-conformance", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert listed["schema"] == "qbatch.conformance/1"
    folder = tmp_path / "set"
    assert run(["verify", "--write-conformance", str(folder)]) == 0
    capsys.readouterr()
    for each in listed["workloads"]:
        assert (
            run(["verify", str(folder / "right" / f"{each['name']}.easy.swf"), "--policy", "easy"])
            == 0
        )
    assert run(["verify", "--write-conformance", str(folder / "README.txt")]) == 4
