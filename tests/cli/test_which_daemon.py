"""Daemons side by side: ``--state`` alone distinguishes them, on ``up`` and on every command that
talks to them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from qbatch.wire import paths
from tests.daemon.harness import ROOT

STATES = ("", "one", "two")


class Shell:
    """One user at one shell: a HOME, a runtime directory, no variable of ours."""

    def __init__(self, home: Path) -> None:
        self.home = home
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("QBATCH_", "PBS_", "XDG_"))
        }
        runtime = home / "run"
        runtime.mkdir(mode=0o700)
        cache = str(paths.cache_directory())
        self.environment = {
            **kept,
            "PATH": f"{Path(sys.executable).parent}:{kept['PATH']}",
            "HOME": str(home),
            "XDG_RUNTIME_DIR": str(runtime),
            "QBATCH_CACHE": cache,
            "PYTHONPATH": str(ROOT),
        }

    def type(self, line: str, code: int = 0, **variables: str) -> str:
        done = subprocess.run(
            ["bash", "-c", line],
            capture_output=True,
            text=True,
            cwd=self.home,
            timeout=120,
            check=False,
            env={**self.environment, **variables},
        )
        assert done.returncode == code, (line, done.returncode, done.stdout, done.stderr)
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    found = Shell(tmp_path_factory.mktemp("h"))
    try:
        yield found
    finally:
        for state in STATES:
            subprocess.run(
                ["bash", "-c", f"qbatch {f'--state {state}' if state else ''} down --jobs"],
                cwd=found.home,
                env=found.environment,
                capture_output=True,
                timeout=60,
                check=False,
            )


def test_three_daemons_live_side_by_side(shell: Shell) -> None:
    assert "try: echo" in shell.type("qbatch up --executor emulated")
    said = shell.type("qbatch up --state one --executor emulated --procs 7")
    assert f"socket {shell.home}/one/qbatch.sock" in said
    assert f"export QBATCH_STATE={shell.home}/one" in said
    shell.type("qbatch --state two up --machine origin2000")
    assert "cpus" in shell.type("qbatch hosts")
    assert "0/7 " in shell.type("qbatch hosts --state one")
    assert "0/7 " in shell.type("qbatch --state one hosts")
    assert "nerthus" in shell.type(f"qbatch hosts --socket {shell.home}/two/qbatch.sock")
    # For the PBS commands, and for commands where --state means letters, the variable or an option
    # before the name chooses.
    job = shell.type("echo sleep 60 | qsub -N there", QBATCH_STATE="one").strip()
    assert job == "1.qbatch"
    assert "there" in shell.type("qbatch --state one jobs --state R")
    assert "no active jobs" in shell.type("qbatch jobs")
    assert "there" not in shell.type("qstat", QBATCH_STATE="two")
    # The option is stronger than the variables.
    assert "there" in shell.type(
        "qbatch --state one jobs", QBATCH_SOCKET="/nowhere", QBATCH_STATE="two"
    )
    assert shell.type("qbatch jobs --socket one/qbatch.sock --json").count('"name": "there"') == 1


def test_a_second_one_in_the_same_directory_is_refused_with_the_way_out(shell: Shell) -> None:
    shell.type("qbatch up --state one --executor emulated || true")
    said = shell.type("qbatch up --state one", code=75)
    assert re.search(
        r"is up already .* qbatch down, or give this one a directory of its own with --state DIR",
        said,
    )


def test_the_way_to_start_it_is_reported_where_none_is(shell: Shell) -> None:
    away = f"no daemon listens at {shell.home}/three/qbatch.sock"
    assert (
        f"{away} (No such file or directory); start one with: qbatch up --state {shell.home}/three"
        in shell.type("qbatch --state three jobs", code=5)
    )
    assert "start one with: qbatch up --socket x.sock" in shell.type(
        "qbatch status --socket x.sock", code=5
    )
    assert shell.type("qbatch status", code=5, QBATCH_SOCKET="y.sock").endswith(
        "start one with: qbatch up\n"
    )


@pytest.mark.parametrize("command", ["jobs", "delete", "hold", "signal TERM"])
def test_states_that_are_none_are_refused(shell: Shell, command: str) -> None:
    said = shell.type(f"qbatch {command} --state nonsense", code=2)
    assert said == "qbatch: --state nonsense: write letters of BEFHMQRSTUWX, such as QH\n"
    assert "for another daemon: qbatch --state . COMMAND" in shell.type(
        f"qbatch {command} --state .", code=2
    )


def test_what_was_typed_is_remembered_without_the_daemon(shell: Shell) -> None:
    shell.type("qbatch up --state one --executor emulated || true")
    job = shell.type("qbatch --state one submit --name named -- sleep 60").strip()
    assert "Submit_arguments = --name named -- sleep 60" in shell.type(
        f"qstat -f {job}", QBATCH_STATE="one"
    )
