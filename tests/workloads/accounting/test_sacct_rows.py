"""Bars and line ends inside the texts of sacct: a job keeps all that is known of it."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import pytest

from qbatch.workloads.accounting.record import ImportCounts, Line
from qbatch.workloads.accounting.sacct import _KNOWN
from qbatch.workloads.accounting.sacct_rows import Row, rows_of

from .samples import column, imported, reasons
from .test_sacct import COLUMNS, line, text

RECORDINGS = Path(__file__).parent / "recordings"
"""What sacct of a real Slurm 22.05 printed: some columns of jobs, and all columns."""

TEXTS = (
    "jobname",
    "submitline",
    "comment",
    "admincomment",
    "systemcomment",
    "reason",
    "container",
    "wckey",
    "workdir",
    "constraints",
)
BAR = "bars inside a job's name or another free text: part of it"
LINE_END = "line ends inside a job's name or another free text: part of it"


def recorded(name: str) -> str:
    return gzip.decompress((RECORDINGS / f"{name}.psv.gz").read_bytes()).decode()


def read(content: str) -> tuple[list[Row], ImportCounts]:
    counts = ImportCounts()
    lines = [
        Line("f", number, each.encode()) for number, each in enumerate(content.splitlines(), 1)
    ]
    return [row for row, _ in rows_of(lines, counts)], counts


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    "name", ["partitions-gpu-all", "partitions-gpu-jobs", "arrays-deps-all", "arrays-deps-jobs"]
)
@pytest.mark.parametrize("mark", ["|", "\n"])
def test_no_row_of_a_real_sacct_is_lost_or_misread_by_marks_in_its_texts(
    name: str, mark: str, seed: int
) -> None:
    draws = random.Random(f"{name} {seed}")
    header = recorded(name).split("\n", 1)[0]
    before, counts = read(recorded(name))
    texts = [each for each in TEXTS if each in before[0]]
    written = []
    for row in before:
        for each in draws.sample(texts, draws.choice([1, 1, 2, 3])):
            if each == "constraints":
                row[each] = f"thin{mark}amd" if mark == "|" else row[each]
                row["submitline"] += f" --constraint={row[each]} --mem=1"
            elif each == "workdir":  # a path begins with a bar of its own
                row[each] += f"{mark}more"
            else:
                place = draws.randint(0, len(row[each]))
                more = draws.choice(["x", " y ", "12", "COMPLETED", "2024-05-01T10:00:00"])
                row[each] = f"{row[each][:place]}{mark}{more}{row[each][place:]}"
        written.append("|".join(row.values()))
    after, counts = read("\n".join([header, *written]) + "\n")
    assert not counts.unusable
    assert len(after) == len(before)
    for wanted, found in zip(before, after, strict=True):
        wrong = {each for each in wanted if found[each] != wanted[each]}
        unknown = {each for each in wrong if found[each] == ""}
        # Neighbours that are both texts cannot be separated.  Suspended stands between two.
        assert not unknown & (_KNOWN - {*TEXTS, "suspended"})
        assert "jobname" not in unknown
        # Such as a bar at the end of Reason and one at the start of SubmitLine.
        assert wrong - unknown <= {*TEXTS} - {"jobname"}
    assert sum(each.count for each in counts.adjusted.values()) >= len(
        {row["jobidraw"] for row in before if any(mark in value for value in row.values())}
    )


@pytest.mark.parametrize("name", ["partitions-gpu-all", "partitions-gpu-jobs"])
def test_the_constraint_of_a_real_job_is_kept_with_its_bar(tmp_path: Path, name: str) -> None:
    done = imported(tmp_path, "slurm", recorded(name))
    features = [each for each in done.document["left_out"] if each["what"] == "features"]
    # Job 14 had --constraint=thin|amd, others big and intel&gpu.
    assert features[0]["names"] == "5 different: amd 1, big 1, gpu 1, intel 1, thin 1"
    assert (reasons(done), reasons(done, "adjusted")) == ({}, {BAR: 1})
    assert len(column(done, "job")) == recorded(name).count("\n") - 1


NAMED = [*COLUMNS, "Constraints", "SubmitLine"]


@pytest.mark.parametrize("columns", [NAMED, [*NAMED, "Priority"]])
@pytest.mark.parametrize(
    "name", ["a|b", "|", "a|", "COMPLETED|x", "12|n1|4G", "a\nb", "a|\n\n|b", "\nx"]
)
def test_a_job_whose_name_is_in_its_command_too(
    tmp_path: Path, columns: list[str], name: str
) -> None:
    command = (
        f"sbatch --job-name={name} --constraint=thin|amd --exclusive --wrap=cat x | sort || exit"
    )
    odd = line(columns, JobID="2", JobName=name, Constraints="thin|amd", SubmitLine=command)
    again = odd.replace("2|", "3|", 1)
    other = line(columns, JobID="4", JobName="plain", SubmitLine="sbatch x")
    done = imported(tmp_path, "slurm", text(odd, again, other, columns=columns))
    assert (column(done, "run"), reasons(done)) == ([90] * 3, {})
    assert column(done, "executable") == [1, 1, 2]
    assert column(done, "procs_allocated") == [4] * 3
    found = {each["what"]: (each["jobs"], each["names"]) for each in done.document["left_out"]}
    assert found["features"] == (2, "2 different: amd 2, thin 2")
    assert found["exclusive allocation"] == (2, "")
    adjusted = done.document["adjusted"]
    assert {each["reason"]: each["count"] for each in adjusted} == {
        BAR: 2,
        **({LINE_END: 2} if "\n" in name else {}),
    }
    assert {each["first"] for each in adjusted} == {f"{tmp_path}/part0:2"}


def test_a_command_of_many_lines_is_one_row(tmp_path: Path) -> None:
    script = "".join(f"line {n} | grep {n} | sort\n" for n in range(60))
    for columns in (NAMED, [*COLUMNS[:4], "SubmitLine", *COLUMNS[4:]]):
        rows = [line(columns, JobID=f"{n}", SubmitLine=f"sbatch --wrap={script}") for n in (1, 2)]
        done = imported(tmp_path, "slurm", text(*rows, line(columns, JobID="3"), columns=columns))
        assert (column(done, "run"), reasons(done)) == ([90] * 3, {})
        assert reasons(done, "adjusted")[LINE_END] == 2


def test_what_cannot_be_told_apart_is_empty_and_counted(tmp_path: Path) -> None:
    columns = [*COLUMNS[:4], "Comment", *COLUMNS[4:]]
    rows = [line(columns, JobID=str(n), Comment="a|b" if n == 2 else "c") for n in (1, 2, 3)]
    done = imported(tmp_path, "slurm", text(*rows, columns=columns))
    assert (column(done, "run"), column(done, "executable")) == ([90] * 3, [1, -1, 1])
    assert column(done, "user") == [1] * 3
    found = {each["reason"]: each["first"] for each in done.document["adjusted"]}
    said = "bars that may be in one or another of Comment, JobName: these are left empty"
    assert found == {said: f"{tmp_path}/part0:3", BAR: f"{tmp_path}/part0:3"}
    # The command says what the name is.
    more = [*columns, "SubmitLine"]
    told = line(more, JobID="2", Comment="a|b", JobName="x", SubmitLine="sbatch -J x --mem=1 a.sh")
    done = imported(tmp_path, "slurm", text(rows[0].strip() + "|\n", told, columns=more))
    assert (column(done, "executable"), reasons(done, "adjusted")) == ([1, 2], {BAR: 1})


def test_bars_that_hide_what_a_job_needs_cost_that_job_alone(tmp_path: Path) -> None:
    bad = line(JobID="2", JobName="a|b").replace("COMPLETED", "X")
    cut = line(JobID="3")[:60] + "\n"
    done = imported(tmp_path, "slurm", text(line(JobID="1"), bad, cut, line(JobID="4")))
    assert column(done, "run") == [90, 90]
    unusable = done.document["unusable"]
    assert [(each["count"], each["first"]) for each in unusable] == [(2, f"{tmp_path}/part0:3")]


def test_a_job_that_is_called_as_a_column(tmp_path: Path) -> None:
    done = imported(tmp_path, "slurm", text(line(JobName="JobID"), line(JobID="1", JobName="x")))
    assert (column(done, "run"), reasons(done)) == ([90, 90], {})


@pytest.mark.parametrize(
    "rest", ["12_[4-9]", "12_[4-9%2]", "12_[8,10,12,14,...]", "12_[8,10,...", "12_[1-3,5-...%4]"]
)
@pytest.mark.parametrize("name", ["wrap", "a|b"])
def test_the_rest_of_an_array_is_no_step(tmp_path: Path, rest: str, name: str) -> None:
    first = line(JobID="12_1")
    for state, never in (("CANCELLED by 7", 1), ("PENDING", 0)):
        times = {"Start": "Unknown", "NodeList": "None assigned", "Elapsed": "00:00:00"}
        left = line(JobID=rest, JobName=name, State=state, AllocCPUS="0", **times)
        done = imported(tmp_path, "slurm", text(first, line(JobID="12_1.batch"), left))
        assert done.document["jobs"]["never_ran"] == never
        assert sum(reasons(done).values()) == 1 - never
        assert count(reasons(done, "adjusted"), "rests of arrays") == never


def count(counts: dict[str, int], start: str) -> int:
    return sum(number for reason, number in counts.items() if reason.startswith(start))
