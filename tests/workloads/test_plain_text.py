"""The five-column text log."""

from pathlib import Path

import pytest

from qbatch.workloads import machine_procs, read_log

from .samples import refused, written


def test_three_four_and_five_columns(tmp_path: Path) -> None:
    three = read_log(written(tmp_path, "0 10 2\n5 20 1\n"))
    assert three["job"].tolist() == [1, 2]
    assert three["procs_requested"].tolist() == three["procs_allocated"].tolist() == [2, 1]
    assert three["time_requested"].tolist() == three["user"].tolist() == [-1, -1]
    four = read_log(written(tmp_path, "0 10 2 30\n"))
    assert (four["run"].tolist(), four["time_requested"].tolist()) == ([10], [30])
    five = read_log(written(tmp_path, "0 10 2 30 7\n"))
    assert five["user"].tolist() == [7]
    assert "plain text log" in five.notes[0]


def test_words_are_users_in_order_of_appearance(tmp_path: Path) -> None:
    content = "# a comment\n; MaxProcs: 16\n0 1 1 1 bob\n\n1 1 1 1 ann\n2 1 1 1 bob\n3 1 1 1 42\n"
    log = read_log(written(tmp_path, content))
    assert log["user"].tolist() == [1, 2, 1, 3]
    assert log.user_names == {1: "bob", 2: "ann", 3: "42"}
    assert machine_procs(log.header) == 16
    assert log.line.tolist() == [3, 5, 6, 7]


def test_job_numbers_count_lines_also_when_out_of_order(tmp_path: Path) -> None:
    log = read_log(written(tmp_path, "9 1 1\n3 1 1\n9 2 2\n"))
    assert log["job"].tolist() == [2, 1, 3]
    assert log["submit"].tolist() == [3, 9, 9]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("0 1 1\n0 1 1 1\n", "line 2: 4 fields where the first row has 3"),
        ("0 1 1 1 5\n0 1 1 1 bob\n", "line 2: user is 'bob', but the first row has a number there"),
        ("0 1 1 1 5\n0 x 1 1 5\n", "line 2: field 2 (run) is 'x', which is not a number"),
        ("0 nan 1\n", "line 1: 3 fields where SWF has 18"),
        ("0 1 1 1 bob\n0 1 1 nan bob\n", "line 2: field 4 (estimate) is 'nan'"),
        ("0 1 1 1 1 1\n", "line 1: 6 fields where SWF has 18"),
    ],
)
def test_what_is_refused(tmp_path: Path, content: str, reason: str) -> None:
    assert reason in refused(written(tmp_path, content))


def test_lenient(tmp_path: Path) -> None:
    log = read_log(written(tmp_path, "0 1 1\n0 1\n1 1 1\n2 x 1\n3 1 1\n"), lenient=True)
    assert log["submit"].tolist() == [0, 1, 3]
    assert log["job"].tolist() == [1, 2, 3]
    assert log.bad_lines == (2, 4)
