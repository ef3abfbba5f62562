"""``qbatch import table`` as a user types it: the log, the side file, the report; mistakes in one
line, with nothing left."""

from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path

import pytest

from qbatch.cli.main import run

TABLE = "id,sub,beg,fin,cores,nn,gpu\n1,0,5,65,8,2,4\n2,1,5,35,4,1,0\n3,x,5,35,4,1,0\n"
MAP = """
[columns]
job = "id"
submit = "sub"
start = "beg"
end = "fin"
procs = "cores"
nodes = "nn"
gpus = "gpu"
"""
MACHINE = """
schema = 2
[[host]]
name = "n[1-2]"
cpus = 8
resources = { gpu = 2 }
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("jobs.csv").write_text(TABLE, encoding="utf-8")
    Path("map.toml").write_text(MAP, encoding="utf-8")
    Path("machine.toml").write_text(MACHINE, encoding="utf-8")
    return tmp_path


def command(capfd: pytest.CaptureFixture[str], line: str) -> tuple[int, str, str]:
    code = run(line.split())
    out, err = capfd.readouterr()
    return code, out, err


def test_a_table_becomes_a_log_a_side_file_and_a_replay(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code, out, err = command(capfd, "import table jobs.csv --map map.toml -o log.swf.gz")
    assert (code, out) == (0, "")
    assert "log.swf.gz: 2 jobs that ran, 0 cancelled before they ran" in err
    assert "without a time of submission" in err
    assert "first: jobs.csv:4" in err
    assert "log.resources.csv: what 2 jobs ask for; replay takes it with --resources" in err
    rows = gzip.decompress(Path("log.swf.gz").read_bytes()).splitlines()
    assert rows[-2:] == [
        b"1 0 5 60 8 -1 -1 8 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1",
        b"2 1 4 30 4 -1 -1 4 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1",
    ]
    assert Path("log.resources.csv").read_text(encoding="utf-8").splitlines() == [
        "job,nodes,cpus_per_node,memory_per_node,gpus_per_node,gpu_type,partitions,qos,account,"
        "reservation,eligible,priority",
        "1,2,4,0,2,,,,,,,",
        "2,1,4,0,0,,,,,,,",
    ]
    line = "replay log.swf.gz --machine machine.toml --resources log.resources.csv -p easy --audit"
    assert command(capfd, line)[0] == 0


def test_json_quiet_and_a_side_file_of_a_name(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    line = "import table jobs.csv --map map.toml -o log.swf --resources side.csv --json -q"
    code, out, err = command(capfd, line)
    document = json.loads(out)
    assert (code, err) == (0, "")
    assert document["schema"] == "qbatch.import/1"
    assert document["resources"] == {"file": "side.csv", "jobs": 2}
    assert document["unusable"] == [
        {"reason": "without a time of submission", "count": 1, "first": "jobs.csv:4"}
    ]
    assert sorted(path.name for path in folder.iterdir()) == [
        "jobs.csv",
        "log.swf",
        "machine.toml",
        "map.toml",
        "side.csv",
    ]


def test_standard_input_and_output(
    folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TABLE.encode())))
    code, out, _ = command(capfd, "import table - --map map.toml -o -")
    assert code == 0
    assert out.splitlines()[-1].startswith("2 1 4 30 4 ")
    assert not list(folder.glob("*.resources.csv"))


@pytest.mark.parametrize(
    ("line", "code", "part"),
    [
        ("jobs.csv -o log.swf", 2, "a table needs --map: the name of a map (alcf, eagle,"),
        ("jobs.csv --map pm10 -o log.swf", 2, "did you mean 'pm100'?"),
        ("jobs.csv --map pm100 -o log.swf", 3, "jobs.csv: there is no column 'job_id'"),
        ("jobs.csv --map jobs.csv -o log.swf", 3, "jobs.csv: not valid TOML"),
        ("none.csv --map map.toml -o log.swf", 3, "no such file"),
        ("jobs.csv --map map.toml -o jobs.csv", 2, "must be different files"),
        ("jobs.csv --map map.toml -o map.toml", 2, "must be different files"),
        ("jobs.csv --map map.toml -o log.swf --resources jobs.csv", 2, "must be different files"),
        ("jobs.csv --map map.toml -o log.swf --resources log.swf", 2, "must be different files"),
        ("jobs.csv --map map.toml -o no/log.swf", 4, "does not exist; create it first"),
        ("jobs.csv --map map.toml -o log.swf --resources map.toml/side", 4, "is not a folder"),
        ("jobs.csv --map map.toml -o - --json", 2, "both want standard output"),
        ("jobs.csv --map map.toml -o log.swf --user ann", 2, "leave out --user"),
        ("jobs.csv --map map.toml -o log.swf --unit nodes --key k", 2, "leave out --unit, --key"),
        ("jobs.csv --map map.toml -o log.swf --machine-procs 3", 2, "--machine-procs 3: the log"),
        ("jobs.csv --map map.toml -o log.swf --timezone Mars", 2, "'Mars'"),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing(
    line: str, code: int, part: str, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    found, out, err = command(capfd, f"import table {line}")
    assert (found, out) == (code, "")
    assert part in err
    assert err.count("\n") == 1
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_map_goes_with_tables_only(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, _, err = command(capfd, "import slurm jobs.csv --map pm100 -o log.swf")
    assert (code, err.strip()) == (2, "qbatch: --map goes with tables; leave out --map")
