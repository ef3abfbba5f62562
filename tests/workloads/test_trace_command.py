"""``qbatch trace``: what it prints, and its exit codes."""

import gzip
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from qbatch.cli.trace import app
from qbatch.model.errors import InputError, OutputError, UsageError
from qbatch.workloads import FIELDS, read_log

from .samples import HEADER, SHIPPED, row, written

TINY = str(SHIPPED / "tiny.txt")
DEMO = str(SHIPPED / "demo-128.swf")


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments))


def test_info_as_text_and_json_say_the_same() -> None:
    text = run("info", DEMO)
    assert text.exit_code == 0
    assert "machine               128 processors" in text.stdout
    assert "2024-12-30T00:00:00+00:00" in text.stdout
    document = json.loads(run("info", DEMO, "--json").stdout)
    assert document["schema"] == "qbatch.trace-info/1"
    assert document["jobs"]["rows"] == 2000
    assert document["load"]["offered"] == pytest.approx(0.85, abs=1e-5)
    assert document["header"]["queues"] == {"1": "short", "2": "long"}


def test_info_without_a_header(tmp_path: Path) -> None:
    result = run("info", written(tmp_path, row(1, 0, 2.5) + row(2, 0)))
    assert result.exit_code == 0
    assert "machine               unknown" in result.stdout
    assert "first submit          0 s\n" in result.stdout


def test_a_header_cannot_break_the_terminal(tmp_path: Path) -> None:
    result = run(
        "info", written(tmp_path, b"; Computer: a\x1b[2Jb\n;   on two lines\n" + row().encode())
    )
    assert "computer              a [2Jb on two lines\n" in result.stdout


def test_head_names_the_columns() -> None:
    lines = run("head", TINY, "-n", "2").stdout.splitlines()
    assert lines[0].split() == list(FIELDS)
    assert len(lines) == 3
    assert lines[1].split()[:5] == ["1", "0", "-1", "100", "5"]
    document = json.loads(run("head", TINY, "-n", "2", "--json").stdout)
    assert [job["user"] for job in document["jobs"]] == [1, 2]


@pytest.mark.parametrize("columns", ["80", "300"])
def test_head_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], columns: str
) -> None:
    from qbatch.cli import trace

    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    trace.head(TINY, rows=3)
    shown = re.sub(r"\x1b\[\d*m", "", capsys.readouterr().out)
    assert all(name in shown for name in FIELDS)
    assert all(len(line) <= int(columns) for line in shown.splitlines())
    headings = [
        line.split()[0]
        for line in shown.splitlines()
        if line.strip() and not line.split()[0].isdigit()
    ]
    assert set(headings) == {"job"}  # every table has headings, and says of which job each row is
    assert "submit (s)" in shown
    assert "memory_used (KB)" in shown


def test_validate_reports_and_decides(tmp_path: Path) -> None:
    path = written(tmp_path, HEADER + row(1, 9) + row(2, 5) + "x\n")
    strict, lenient = run("validate", path), run("validate", path, "--lenient")
    assert (strict.exit_code, lenient.exit_code) == (3, 0)
    assert "error: 1 row: unreadable rows" in strict.stdout
    assert "(line 5)" in strict.stdout
    assert "warning: 1 row: submitted earlier" in lenient.stdout
    assert lenient.stdout.splitlines()[-1].startswith("usable: 2 rows")
    document = json.loads(run("validate", path, "--json").stdout)
    assert (document["schema"], document["usable"]) == ("qbatch.trace-validate/1", False)
    assert document["findings"][0]["lines"] == [5]


@pytest.mark.parametrize("command", ["info", "head", "validate"])
def test_a_log_that_is_not_there(command: str) -> None:
    result = run(command, "/nowhere.swf")
    assert isinstance(result.exception, InputError)
    assert result.exception.exit_code == 3


def test_generate_to_a_file_and_to_stdout(tmp_path: Path) -> None:
    asked = ["generate", "--jobs", "40", "--procs", "8", "--load", "0.5", "--seed", "3"]
    plain, packed = str(tmp_path / "a.swf"), str(tmp_path / "a.swf.gz")
    assert run(*asked, "--out", plain).exit_code == 0
    assert run(*asked, "--out", packed).exit_code == 0
    content = Path(plain).read_bytes()
    assert run(*asked).stdout_bytes == content == gzip.decompress(Path(packed).read_bytes())
    assert len(read_log(plain)) == 40
    assert sorted(os.listdir(tmp_path)) == ["a.swf", "a.swf.gz"]


def test_generate_refuses_in_one_line(tmp_path: Path) -> None:
    wrong = run("generate", "--jobs", "0", "--procs", "8")
    assert isinstance(wrong.exception, UsageError)
    nowhere = run("generate", "--jobs", "5", "--procs", "8", "--out", "/proc/no/a.swf")
    assert isinstance(nowhere.exception, OutputError)
    assert os.listdir(tmp_path) == []
