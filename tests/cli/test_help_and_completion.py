"""Pages of help look alike, and a shell completes policies, metrics and what the daemon knows."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from qbatch.cli.main import COMMANDS, LazyGroup, app
from tests.daemon.harness import Daemon, emulated


def pages() -> Iterator[tuple[str, ...]]:
    group = typer.main.get_command(app)
    assert isinstance(group, LazyGroup)
    for name in COMMANDS:
        yield (name,)
        found = group.get_command(None, name)
        yield from ((name, part) for part in getattr(found, "commands", {}))


@pytest.mark.parametrize("page", list(pages()), ids=" ".join)
def test_a_page_of_help_is_plain_and_like_the_others(
    page: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERMINAL_WIDTH", "80")
    command = typer.main.get_command(app)
    with pytest.raises(SystemExit) as ended:
        command.main([*page, "--help"], prog_name="qbatch")
    assert ended.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"Usage: qbatch {' '.join(page)}")
    assert not [line for line in lines if "\x1b" in line or set(line) & set("╭│╰")]
    assert not [line for line in lines if "completion" in line]
    assert any(line.split()[:2] == ["-h,", "--help"] for line in lines)
    # What is given is written in capitals, once, with three dots behind it where it may be
    # repeated.
    assert "...]..." not in lines[0]
    assert "[[" not in lines[0]
    given = lines[0].partition(" [OPTIONS]")[2]
    assert given == given.upper() or "show|set|off" in given, lines[0]


def complete(line: str, **environment: str) -> list[str]:
    """Return what bash may put in place of the last word of a line."""
    words = line.split(" ")
    variables = {
        "_QBATCH_COMPLETE": "complete_bash",
        "COMP_WORDS": line.removesuffix(" "),
        "COMP_CWORD": str(len(words) - 1),
    }
    code = "import sys; from qbatch.cli.main import main; sys.argv = ['qbatch']; main()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, **environment, **variables},
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_policies_metrics_and_keys_are_completed(tmp_path: Path) -> None:
    nowhere = {"QBATCH_SOCKET": str(tmp_path / "none")}
    assert complete("qbatch replay x -p eas") == ["easy"]
    assert complete("qbatch up --policy cons") == ["conservative"]
    assert complete("qbatch policy set lx", **nowhere) == ["lxf-backfill", "lxfw-backfill"]
    assert complete("qbatch shadow set sjf", **nowhere) == ["sjf-backfill"]
    assert complete("qbatch metrics wait_me") == ["wait_mean_s", "wait_median_s"]
    assert complete("qbatch replay x --by mo") == ["month"]
    assert complete("qbatch delete ", **nowhere) == []


def test_what_the_daemon_knows_is_completed(tmp_path: Path) -> None:
    with Daemon(tmp_path, "--time", "virtual", "--paused", config=emulated()) as daemon:
        jobs = [daemon.submit("sleep 100\n") for _ in range(2)]
        there = {"QBATCH_SOCKET": daemon.socket}
        assert complete("qbatch explain ", **there) == jobs
        assert complete("qbatch delete 2", **there) == jobs[1:]
        assert complete(f"qbatch hold --socket {daemon.socket} 1") == jobs[:1]
        assert complete("qbatch host drain n", **there) == ["n1", "n2", "n3", "n4"]
        assert complete("qbatch jobs --queue b", **there) == ["batch"]


def test_metrics_can_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    from qbatch.cli.main import run

    assert run(["metrics", "wait_mean_s"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert lines[1].startswith("wait_mean_s")
    assert run(["metrics", "wait_men_s"]) == 2
    assert "did you mean 'wait_mean_s'" in capsys.readouterr().err
