"""``qbatch replay --step`` on a terminal: a key a pass, forward and back; all at once with
``--all`` or in a pipe."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import termios
import time
from types import TracebackType

from tests.harness import OWN_TRACES

TINY = str(OWN_TRACES / "tiny.txt")
SHOWN = re.compile(r"pass (\d+) of (\d+)   space: next, b: back, q: quit")


class Stepped:
    """The command on a pseudo-terminal."""

    def __init__(self, *more: str) -> None:
        self.master, self.slave = pty.openpty()
        self.before = termios.tcgetattr(self.slave)
        self.output = ""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "qbatch", "replay", TINY, "-p", "easy", "--step", "-q", *more],
            stdin=self.slave,
            stdout=self.slave,
            stderr=self.slave,
            start_new_session=True,
        )

    def __enter__(self) -> Stepped:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)

    def read(self) -> None:
        """Take what it has written, if anything comes within a moment."""
        if select.select([self.master], [], [], 0.05)[0]:
            self.output += os.read(self.master, 65_536).decode()

    def place(self) -> tuple[int, int]:
        """Wait until a pass is shown since the last key; return which of how many."""
        deadline = time.monotonic() + 60
        while not (found := SHOWN.findall(self.output)):
            assert self.process.poll() is None, self.output
            assert time.monotonic() < deadline, self.output
            self.read()
        return int(found[-1][0]), int(found[-1][1])

    def press(self, key: str) -> None:
        """Press a key."""
        self.output = ""
        os.write(self.master, key.encode())

    def code(self) -> int:
        """Wait for the end; return its exit code."""
        deadline = time.monotonic() + 60
        while self.process.poll() is None:
            assert time.monotonic() < deadline, self.output
            self.read()
        self.read()
        return self.process.returncode


def test_a_key_shows_the_next_pass_another_the_one_before_and_q_leaves() -> None:
    with Stepped() as stepped:
        assert stepped.place()[0] == 1
        assert "t = 0 s: arrived 1(1); started 1(1)" in stepped.output
        for key, place in (
            (" ", 2),
            (" ", 3),
            ("b", 2),
            ("x", 2),
            ("\x1b[C", 3),
            ("b", 2),
            ("b", 1),
            ("b", 1),
            (" ", 2),
        ):
            stepped.press(key)
            assert stepped.place()[0] == place, key
        assert stepped.output.count("t = ") == 1
        assert "t = 5 s" in stepped.output
        stepped.press("q")
        assert stepped.code() == 0
        assert termios.tcgetattr(stepped.slave) == stepped.before


def test_after_the_last_pass_it_ends() -> None:
    with Stepped() as stepped:
        place, count = stepped.place()
        while place < count:
            stepped.press(" ")
            place, _ = stepped.place()
        assert "ended 12(C)" in stepped.output
        stepped.press(" ")
        assert stepped.code() == 0


def test_all_prints_every_pass_at_once_on_a_terminal_as_a_pipe_does() -> None:
    with Stepped("--all") as stepped:
        assert stepped.code() == 0
        # From colorama, if Numba finds it.
        shown = stepped.output.replace("\r\n", "\n").removesuffix("\x1b[0m")
    piped = subprocess.run(
        [sys.executable, "-m", "qbatch", "replay", TINY, "-p", "easy", "--step", "-q"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert shown == piped
    assert piped.count("\nt = ") > 10
