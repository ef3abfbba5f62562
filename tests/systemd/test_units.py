"""The units: accepted by systemd, as closed as they say, and true to what the daemon needs."""

from __future__ import annotations

import configparser
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
UNITS = sorted((ROOT / "systemd").glob("*/qbatch.*"))
analyze = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed"
)


def unit(where: str, kind: str) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(ROOT / "systemd" / where / f"qbatch.{kind}", encoding="utf-8")
    return parser


@analyze
@pytest.mark.parametrize("where", ["system", "user"])
def test_systemd_accepts_them(where: str, tmp_path: Path) -> None:
    program = tmp_path / "qbatch"
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o755)
    for kind in ("socket", "service"):
        text = (ROOT / "systemd" / where / f"qbatch.{kind}").read_text(encoding="utf-8")
        (tmp_path / f"qbatch.{kind}").write_text(
            text.replace("/usr/bin/qbatch", str(program)), encoding="utf-8"
        )
    command = ["systemd-analyze", "verify", "--man=no", *(["--user"] if where == "user" else [])]
    done = subprocess.run(
        [*command, str(tmp_path / "qbatch.service"), str(tmp_path / "qbatch.socket")],
        capture_output=True,
        text=True,
        check=False,
        env={"XDG_RUNTIME_DIR": str(tmp_path), "PATH": "/usr/bin:/bin", "HOME": "/root"},
    )
    ours = [line for line in done.stderr.splitlines() if "qbatch" in line]
    assert ours == [], done.stderr
    assert done.returncode == 0, done.stderr


@analyze
def test_the_system_unit_is_closed() -> None:
    path = ROOT / "systemd" / "system" / "qbatch.service"
    done = subprocess.run(
        [
            "systemd-analyze",
            "security",
            "--offline=true",
            "--no-pager",
            "--threshold=15",
            str(path),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:]


def test_what_would_break_the_daemon_is_not_asked_for() -> None:
    service = unit("system", "service")["Service"]
    assert "PrivateUsers" not in service
    assert "MemoryDenyWriteExecute" not in service
    assert service["KillMode"] == "process"
    assert service["Type"] == "notify"
    assert service["CacheDirectory"] == "qbatch"
    assert unit("user", "service")["Service"]["Delegate"] == "yes"
    assert unit("user", "socket")["Socket"]["SocketMode"] == "0600"


def test_the_command_lines_are_understood() -> None:
    from qbatch.cli.main import COMMANDS
    from qbatch.cli.up import up

    known = set(up.__annotations__)
    for where in ("system", "user"):
        words = unit(where, "service")["Service"]["ExecStart"].split()
        assert words[1] in COMMANDS
        for word in words[2:]:
            if word.startswith("--"):
                assert word[2:].replace("-", "_") in known
