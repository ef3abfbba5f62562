"""``qbatch machine``: what it says of a machine file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from qbatch.cli.main import run
from tests.model.test_site_tables import SITE


@pytest.fixture
def file(tmp_path: Path) -> str:
    (tmp_path / "site.toml").write_text(SITE)
    return str(tmp_path / "site.toml")


def test_a_file_is_shown_with_a_picture(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["machine", "show", file]) == 0
    shown = capsys.readouterr().out
    assert "3 hosts, 20 processors, 8 gpu, 8 gpu:a100, 20 matlab, 1 partition, 2 reserv" in shown
    assert [line.split() for line in shown.splitlines() if line.startswith(("g[", "(the"))] == [
        ["g[1-2]", "gpu=4", "gpu:a100=4", "-", "2", "8", "-"],
        ["(the", "server)", "matlab=20", "-", "-", "-", "-"],
    ]
    assert (
        "gpu        g[1-2]  exclusive          16       1:00:00   48:00:00          1 to 2" in shown
    )
    assert "course       c1         flexible     ann" in shown
    assert shown.endswith(
        "┌────────┐ ┌─────────────────────────┐\n"
        "│ c1     │ │ g[1-2]                  │\n"
        "│ 4 cpus │ │ each 8 cpus, 4 gpu:a100 │\n"
        "└────────┘ └─────────────────────────┘\n"
    )


def test_the_picture_has_a_box_for_each_rack(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = SITE.replace("weight = 10", 'weight = 10\nrack = "r2"\nmemory = "64GB"')
    Path(file).write_text(text.replace("cpus = 4", 'cpus = 4\nrack = "r1"'))
    assert run(["machine", "show", file]) == 0
    assert capsys.readouterr().out.endswith(
        "┌─ r1 ───┐ ┌─ r2 ──────────────────────────┐\n"
        "│ c1     │ │ g[1-2]                        │\n"
        "│ 4 cpus │ │ each 8 cpus, 64GB, 4 gpu:a100 │\n"
        "└────────┘ └───────────────────────────────┘\n"
    )
    Path(file).write_text(SITE.replace("weight = 10", 'rack = "r2"'))
    assert run(["machine", "show", file]) == 0
    assert "┌─ no rack ─┐" in capsys.readouterr().out


def test_the_record_has_every_fact(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["machine", "show", file, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["schema"] == "qbatch.machine/1"
    assert record["procs"] == 20
    assert [each["name"] for each in record["partitions"]] == ["gpu"]
    assert [each["name"] for each in record["reservations"]] == ["course", "maintenance"]


def test_a_file_is_checked(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["machine", "check", file]) == 0
    assert "site.toml: ok, 3 hosts, 20 processors" in capsys.readouterr().err
    Path(file).write_text(SITE.replace("weight = 10", "wieght = 10"))
    assert run(["machine", "check", file]) != 0
    said = capsys.readouterr().err
    assert "line 7, key 'wieght': is not known in [[host]]; did you mean 'weight'?" in said
    assert run(["machine", "check", "origin2000"]) == 0
