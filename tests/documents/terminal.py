"""One user at one terminal: a bash that lines are typed into, in a home of its own."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

from qbatch.wire.paths import cache_directory
from tests.documents.blocks import ROOT
from tests.documents.prepared import write_command

PROMPT = re.compile(rb"\x1e([0-9]+)\x1e")
FULL_SCREEN, CLEARED, LEFT = b"\x1b[?1049h", b"\x1b[H\x1b[2J", b"\x1b[?1049l"
PATIENCE, QUIET, BUSY, LEAVING = 600.0, 1.5, 6.0, 20.0
"""Seconds: for a line; for which a full screen has been still; after which it is taken to be always
moving; to leave it."""


class TypedShell:
    """A context manager; ``type`` returns what a line printed and how it ended.

    ``home``: its HOME and working directory, with the logs of ``traces/`` and the way to the
    program as after ``make demo``. Places outside that documents name are kept in it: ``/tmp`` and
    the accounting of a PBS.  ``is_executed``: ``qbatch`` is the installed program, else it is
    forked (:mod:`.prepared`).
    """

    def __init__(self, home: Path, *, is_executed: bool = True) -> None:
        self.home = home
        self.elsewhere = {"/tmp/": f"{home}/t/", "/var/spool/pbs/": f"{home}/spool/"}
        for name in ("run", "t", "bin"):
            (home / name).mkdir(mode=0o700)
        if not is_executed:
            write_command(home / "bin" / "qbatch")
        shutil.copytree(ROOT / "traces", home / "traces")
        own = home / ".venv" / "bin"
        own.mkdir(parents=True)
        ours = Path(sys.executable).parent
        (own / "activate").write_text(f'PATH="{home}/bin:{ours}:$PATH"\n', encoding="utf-8")
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("QBATCH_", "PBS_", "XDG_"))
        }
        self.environment = {
            **kept,
            "HOME": str(home),
            "XDG_RUNTIME_DIR": str(home / "run"),
            "QBATCH_CACHE": str(cache_directory()),
            "PYTHONPATH": str(ROOT),
            "TERM": "xterm-256color",
            "PATH": f"{home}/bin:{ours}:{os.environ['PATH']}",
            "PS1": "",
            "PS2": "",
            "PROMPT_COMMAND": "printf '\\036%d\\036' $?",
            "HISTFILE": "/dev/null",
        }
        self._seen = b""

    def __enter__(self) -> TypedShell:
        self.pid, self._file = pty.fork()
        if self.pid == 0:
            os.chdir(self.home)
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
            os.execvpe(
                "bash", ["bash", "--norc", "--noprofile", "--noediting", "-i"], self.environment
            )
        self._until_prompt()
        self.type("stty -echo")
        return self

    def type(self, line: str) -> tuple[str, int]:
        """Type a line (or one that goes on); a program that fills the screen is left with q."""
        for there, here in self.elsewhere.items():
            line = line.replace(there, here)
        os.write(self._file, b"\x15" + line.encode() + b"\n")  # ^U: nothing may stand before it
        return self._until_prompt()

    def _until_prompt(self) -> tuple[str, int]:
        begin = time.monotonic()
        limit = begin + PATIENCE
        last = time.monotonic()
        while (found := PROMPT.search(self._seen)) is None:
            now = time.monotonic()
            assert now < limit, f"no prompt after {PATIENCE:g} s: {self._seen[-2000:]!r}"
            is_drawing = FULL_SCREEN in self._seen or CLEARED in self._seen
            # It has drawn what there is.
            if is_drawing and LEFT not in self._seen and now > last + QUIET:
                last = begin = now + LEAVING
                os.write(self._file, b"q")
            if select.select([self._file], [], [], 0.2)[0]:
                self._seen += os.read(self._file, 1 << 16)
                last = max(time.monotonic(), last) if time.monotonic() < begin + BUSY else last
        said, self._seen = self._seen[: found.start()], self._seen[found.end() :]
        return said.decode("utf-8", "replace").replace("\r\n", "\n"), int(found[1])

    def __exit__(self, *_: object) -> None:
        for path in self.home.rglob("qbatch.sock"):
            subprocess.run(
                [sys.executable, "-m", "qbatch", "down", "--jobs", "--socket", str(path)],
                env=self.environment,
                cwd=self.home,
                capture_output=True,
                timeout=60,
                check=False,
            )
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self._file)
