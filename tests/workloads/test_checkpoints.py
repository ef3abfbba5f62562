"""Logs with a row of a checkpointed job and rows of its parts: the whole job counts, once."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import qbatch
from qbatch.cli.main import app
from qbatch.workloads import facts, findings, read_log
from qbatch.workloads.left_out import LeftOut, left_out_of
from qbatch.workloads.left_out_in_file import left_out_in
from qbatch.workloads.unfinished import unfinished_note

HEADER = "; MaxProcs: 8\n; MaxJobs: 2\n; MaxRecords: 5\n; UnixStartTime: 0\n"


def row(job: int, submit: int, run: int, status: int, *, wait: int = 10, user: int = 1) -> str:
    return f"{job} {submit} {wait} {run} 4 -1 -1 4 200 -1 {status} {user} 1 1 1 1 -1 -1\n"


WHOLE = row(1, 0, 60, 1)
PARTS = row(1, 0, 20, 2) + row(1, -1, 20, 2, wait=5) + row(1, -1, 20, 3, wait=5)
OTHER = row(2, 10, 50, 0, wait=70)
WORDS = "checkpoint parts: 1 of 2 jobs (3 rows)"


@pytest.fixture
def path(tmp_path: Path) -> str:
    file = tmp_path / "parts.swf"
    file.write_text(HEADER + WHOLE + PARTS + OTHER, encoding="utf-8")
    return str(file)


def run(*words: str) -> str:
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code in (0, 1), done.output
    return done.output


@pytest.mark.parametrize(
    ("rows", "jobs", "left"),
    [
        (WHOLE + PARTS + OTHER, [1, 2], 3),
        (PARTS + WHOLE + OTHER, [1, 2], 3),
        (OTHER + PARTS + WHOLE.replace(" 1 1 1 1 1 1 -1", " 5 1 1 1 1 1 -1"), [1, 2], 3),
        (WHOLE + row(1, 0, 60, 4) + OTHER, [1, 2], 1),
        (WHOLE + row(1, 0, 60, 4, user=-1) + OTHER, [1, 2], 1),
        # Without their summary parts are all that there is of the job.
        (row(1, 0, 20, 2) + row(1, 50, 20, 3) + OTHER, [1, 2, 1], 0),
        # The same number in logs that were put together: another user's job.
        (row(1, 0, 60, 1, user=7) + row(1, 5, 20, 3) + OTHER, [1, 1, 2], 0),
        (WHOLE + WHOLE + OTHER, [1, 1, 2], 0),
    ],
)
def test_parts_go_where_their_summary_stands(
    tmp_path: Path, rows: str, jobs: list[int], left: int
) -> None:
    file = tmp_path / "x.swf"
    file.write_text(HEADER + rows, encoding="utf-8")
    log = read_log(str(file))
    assert (log["job"].tolist(), len(log.part_lines)) == (jobs, left)
    assert [each.what for each in left_out_of(log.header)] == ["checkpoint parts"] * bool(left)
    assert not any("part" in note for note in log.notes)
    kinds = {finding.code: finding.count for finding in findings(log)}
    assert kinds.get("checkpoint_part", 0) == left
    assert left_out_in(str(file)) == left_out_of(log.header)


def test_figures_of_a_log_count_its_jobs_once(path: str) -> None:
    log = read_log(path)
    found = facts(log)
    assert (found["jobs"]["rows"], found["load"]["offered"]) == (2, (60 * 4 + 50 * 4) / (8 * 10))
    assert left_out_of(log.header) == (LeftOut("checkpoint parts", 1, 2, "3 rows"),)
    # MaxJobs counts jobs, MaxRecords rows: both are right.
    assert {finding.code for finding in findings(log)} == {"checkpoint_part", "missing_keyword"}
    lines = next(each.lines for each in findings(log) if each.code == "checkpoint_part")
    assert lines == (6, 7, 8)


def test_every_table_of_the_log_says_how_many_parts_are_left_out(path: str, tmp_path: Path) -> None:
    out, made = str(tmp_path / "r"), str(tmp_path / "t.swf")
    skipped = tmp_path / "skipped.csv"
    replayed = run(
        "replay", path, "-p", "easy", "-p", "fcfs", "--out", out, "--skipped", str(skipped)
    )
    assert WORDS in replayed
    assert skipped.read_text() == (
        "line,job_id,reason\n6,1,checkpoint_part\n7,1,checkpoint_part\n8,1,checkpoint_part\n"
    )
    document = json.loads((tmp_path / "r" / "result.json").read_text())
    assert (document["log"]["jobs"], document["skipped"]) == (2, {})
    for words in (
        ["trace", "info", path],
        ["trace", "head", path],
        ["metrics", path, out],
        ["compare", path, f"{out}:easy"],
        ["compare", f"{out}:easy", f"{out}:fcfs"],
        ["verify", path],
        ["verify", f"{out}:easy"],
        ["export", "swf", path, "-o", str(tmp_path / "e.swf")],
        ["sweep", "--log", path, "-p", "easy", "--out", str(tmp_path / "s")],
        ["transform", path, "take:first=1", "-o", made],
        ["trace", "info", made],
        ["replay", made, "-p", "easy"],
        ["trace", "info", str(tmp_path / "e.swf")],
    ):
        assert WORDS in run(*words), words
    assert "3 rows: part of a checkpointed job" in run("trace", "validate", path)


def test_parts_in_a_table_go_too(path: str) -> None:
    log = read_log(path)
    columns = {
        name: np.concatenate([log[name], log[name][:1], log[name][:1]])
        for name in ("job", "submit", "run")
    }
    columns |= {"procs": np.full(4, 4), "status": np.array([1, 0, 2, 3])}
    read = qbatch.read_log(columns, procs=8)
    assert (read["job"].tolist(), left_out_of(read.header)[0].names) == ([1, 2], "2 rows")


def test_jobs_that_ran_when_the_log_was_written_are_no_parts(tmp_path: Path) -> None:
    file = tmp_path / "now.swf"
    note = f"; Note: {unfinished_note('100', 1, 0)}\n"
    file.write_text(HEADER + note + WHOLE + row(1, 60, 20, 2), encoding="utf-8")
    assert len(read_log(str(file))) == 2


def test_a_row_of_its_own_is_needed_for_a_comparison_with_what_happened(path: str) -> None:
    said = run("compare", path, path)
    # Parts say nothing of the machine.
    assert "the log does not show whether the machine had partitions" in said
