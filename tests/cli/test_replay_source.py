"""``qbatch replay --source`` and ``--closed`` as a user types them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_replay_command import command

LOG = """; MaxProcs: 8
1 0 500 100 4 -1 -1 4 100 -1 1 1 1 1 1 1 -1 -1
2 700 0 100 4 -1 -1 4 100 -1 1 1 1 1 1 1 -1 -1
3 710 0 100 8 -1 -1 8 100 -1 1 2 1 1 1 1 -1 -1
"""
SHORT = "closed:N=4,P=4,warmup=2,length=20"


def test_a_source_is_replayed_under_policies(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = command(
        capfd, "replay", "--source", SHORT, "-p", "taskqueues", "-p", "easy", "--json", "--audit"
    )
    assert code == 0
    document = json.loads(out)
    assert document["source"] == SHORT
    assert document["machine"]["hosts"] == 4
    queues, easy = document["results"]
    assert queues["policy"] == "taskqueues"
    assert queues["metrics"]["parents"] > 5
    assert (
        queues["metrics"]["parent_response_mean_s"]
        > easy["metrics"]["parent_response_mean_s"] * 0.5
    )
    assert (
        code
        == command(
            capfd,
            "replay",
            "--source",
            SHORT,
            "-p",
            "taskqueues",
            "-p",
            "easy",
            "--json",
            "--audit",
        )[0]
    )


def test_its_table_ends_with_parents_and_names_the_source(
    capfd: pytest.CaptureFixture[str],
) -> None:
    code, out, _ = command(capfd, "replay", "--source", SHORT, "--seed", "2", "--all")
    assert code == 0
    assert "parent_spread_mean_s" in out
    assert (
        "Mean response of parents" in command(capfd, "replay", "--source", SHORT, "--seed", "2")[1]
    )
    assert f"{SHORT}, seed 2" in out
    other = command(capfd, "replay", "--source", SHORT, "--seed", "3", "--all")[1]
    assert out.splitlines()[1:20] != other.splitlines()[1:20]


def test_its_result_is_measured_verified_and_reported(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    result, page = tmp_path / "result", tmp_path / "page.html"
    other = "taskqueues:routing=probabilistic"
    assert (
        command(
            capfd,
            "replay",
            "--source",
            SHORT,
            "-p",
            "taskqueues",
            "-p",
            other,
            "--out",
            str(result),
            "-q",
        )[0]
        == 0
    )
    assert command(capfd, "verify", f"{result}:taskqueues")[0] == 0
    assert "estimates of the log" not in command(capfd, "metrics", str(result))[1]
    assert command(capfd, "report", str(result), "-o", str(page))[0] == 0
    text = page.read_text()
    assert "mean of the responses of parents" in text
    assert "parent_spread_max_s" in text


def test_outputs_that_cannot_be_written_are_refused_before_any_work(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "result"
    code, _, err = command(
        capfd, "replay", "--source", SHORT, "--out", str(out), "--jobs", str(out / "rows.csv")
    )
    assert code == 2
    assert "a directory of its own" in err
    assert not out.exists()


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--source", "closed:N=0"], "N=0"),
        (["x.swf", "--source", "closed"], "leave out LOG"),
        ([], "a LOG is missing"),
        (["--source", "closed", "--load", "2", "--closed"], "leave out --closed, --load"),
        (["--source", "closed", "--driver", "compiled"], "only the engine can run a source"),
        (["--source", "open"], "known: closed"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(
    capfd: pytest.CaptureFixture[str], arguments: list[str], named: str
) -> None:
    code, _, err = command(capfd, "replay", *arguments)
    assert code == 2
    assert named in err
    assert "Traceback" not in err


def test_users_that_wait_come_earlier_on_a_machine_that_is_faster(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    log = tmp_path / "log.swf"
    log.write_text(LOG)
    rows = tmp_path / "rows.csv"
    code, out, err = command(
        capfd, "replay", str(log), "--closed", "-p", "easy", "--jobs", str(rows), "--audit"
    )
    assert code == 0
    assert "1 of 3 jobs of the log are submitted after another has ended (derived" in err
    assert "1 jobs submitted after another has ended and a think time (derived from the log)" in out
    submits = {line.split(",")[0]: line.split(",")[1] for line in rows.read_text().splitlines()[1:]}
    assert submits == {"1": "0", "2": "200", "3": "710"}
    swf = tmp_path / "out.swf"
    assert (
        command(capfd, "replay", str(log), "--closed", "-p", "easy", "--swf", str(swf), "--quiet")[
            0
        ]
        == 0
    )
    assert [
        line.split()[:2] for line in swf.read_text().splitlines() if not line.startswith(";")
    ] == [
        ["1", "0"],
        ["2", "200"],
        ["3", "710"],
    ]


def test_closed_has_no_compiled_loop_and_prints_no_story(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    log = tmp_path / "log.swf"
    log.write_text(LOG)
    code, _, err = command(capfd, "replay", str(log), "--closed", "--driver", "compiled")
    assert code == 2
    assert "compiled loop" in err
    code, _, err = command(capfd, "replay", str(log), "--closed", "--step")
    assert code == 2
    assert "--closed" in err
