"""``qbatch top`` and ``qbatch demo`` on a terminal of their own, and where there is none."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from qbatch.cli.main import run
from tests.daemon.harness import ROOT, Daemon, emulated


class Terminal:
    """A command in a pseudo terminal of 160 x 50: what it draws, keys, its exit code."""

    def __init__(self, *command: str, cwd: Path, environment: dict[str, str] | None = None) -> None:
        self.drawn = b""
        given = {
            **os.environ,
            **(environment or {}),
            "TERM": "xterm-256color",
            "PYTHONPATH": str(ROOT),
        }
        for name in ("COLUMNS", "LINES", "NO_COLOR"):
            given.pop(name, None)
        self.pid, self._file = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 160, 0, 0))
            os.execve(sys.executable, [sys.executable, "-m", "qbatch", *command], given)

    def until(self, text: str, seconds: float = 40.0) -> None:
        """Read until a text has been drawn."""
        limit = time.monotonic() + seconds
        while text.encode() not in self.drawn:
            assert time.monotonic() < limit, self.drawn[-3000:]
            if not self._read():
                break
        assert text.encode() in self.drawn, self.drawn[-3000:]

    def _read(self) -> bool:
        if select.select([self._file], [], [], 0.2)[0]:
            try:
                self.drawn += os.read(self._file, 1 << 16)
            except OSError:
                return False
        return True

    def press(self, keys: bytes) -> None:
        """Type."""
        os.write(self._file, keys)

    def end(self, seconds: float = 40.0) -> int:
        """Wait for its end; return the exit code (128 + N for a signal)."""
        limit = time.monotonic() + seconds
        while True:
            found, status = os.waitpid(self.pid, os.WNOHANG)
            if found:
                while self._read() and select.select([self._file], [], [], 0.1)[0]:
                    pass
                os.close(self._file)
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else 128 - code
            if time.monotonic() > limit:
                os.kill(self.pid, signal.SIGKILL)
                pytest.fail(f"it does not end: {self.drawn[-2000:]!r}")
            self._read()


def test_without_a_terminal_it_says_what_scripts_take(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["top"]) == 2
    said = capfd.readouterr()
    assert said.out == ""
    assert "qbatch jobs --json" in said.err
    assert run(["top", "--recording", "a", "--record", "b"]) == 2
    assert "one of them" in capfd.readouterr().err


def test_no_daemon_is_one_line_after_the_screen_is_restored(tmp_path: Path) -> None:
    terminal = Terminal("top", cwd=tmp_path, environment={"QBATCH_SOCKET": str(tmp_path / "none")})
    assert terminal.end() == 5
    assert b"start one with: qbatch up" in terminal.drawn.splitlines()[-1]
    assert b"Traceback" not in terminal.drawn


@pytest.mark.parametrize(
    ("arguments", "says", "code"),
    [
        (("--theme", "textual-drak"), "textual-dark", 2),
        (("--recording", "none.jsonl"), "none.jsonl: No such file", 3),
        (("--record", "/nonexistent/x"), "/nonexistent/x", 4),
    ],
)
def test_a_mistake_is_one_line(
    tmp_path: Path, arguments: tuple[str, ...], says: str, code: int
) -> None:
    terminal = Terminal(
        "top", *arguments, cwd=tmp_path, environment={"QBATCH_SOCKET": str(tmp_path / "none")}
    )
    assert terminal.end() == code
    assert says.encode() in terminal.drawn
    assert b"Traceback" not in terminal.drawn


def test_a_daemon_is_watched_recorded_and_played_again(tmp_path: Path) -> None:
    with Daemon(tmp_path, "--time", "x60", config=emulated()) as daemon:
        daemon.run("qsub", "-N", "visible", "--", "sleep", "600")
        terminal = Terminal(
            "top", "--record", "r.jsonl", cwd=tmp_path, environment=daemon.environment
        )
        terminal.until("visible")
        daemon.run("qsub", "-N", "later", "--", "sleep", "600")
        terminal.until("later")
        terminal.press(b"q")
        assert terminal.end() == 0
    again = Terminal("top", "--recording", "r.jsonl", "--theme", "ansi-light", cwd=tmp_path)
    again.until("visible")
    again.until("recording")
    again.press(b"q")
    assert again.end() == 0


def test_the_demo_moves_on_a_terminal_and_leaves_nothing(tmp_path: Path) -> None:
    place = {"TMPDIR": str(tmp_path)}
    terminal = Terminal("demo", "--jobs", "60", "--speed", "20000", cwd=tmp_path, environment=place)
    terminal.until("log")
    terminal.until("started")
    terminal.press(b"q")
    assert terminal.end(120) == 0
    assert b"Mean wait" in terminal.drawn
    assert list(tmp_path.iterdir()) == []


def test_the_demo_without_a_terminal_compares_and_leaves_nothing(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "qbatch", "demo", "--jobs", "60"]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "conservative" in done.stdout
    assert "demo5" in done.stdout
    assert list(tmp_path.iterdir()) == []
