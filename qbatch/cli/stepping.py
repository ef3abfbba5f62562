"""``qbatch replay --step``: draw a schedule pass by pass, one key per pass on a terminal, all at
once in a pipe."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from qbatch.model.machine import Machine
    from qbatch.model.record import Workload
    from qbatch.planning.policy import Policy

_CLEAR = "\x1b[H\x1b[2J"
_FORWARD = (b" ", b"\r", b"\n", b"n", b"\x1b[C", b"\x1b[B")
_BACK = (b"b", b"p", b"\x7f", b"\x1b[D", b"\x1b[A")
_QUIT = (b"q", b"\x1b", b"\x04", b"")


def step_through(
    work: Workload, machine: Machine, policies: list[Policy], *, at_once: bool
) -> None:
    """Show every pass of every policy.

    ``at_once``: print all passes without waiting for keys, as when input or output is no terminal.

    Raises:
        UsageError: the log or the machine is too large to be drawn.
    """
    from qbatch.simulation.steps import draw_steps

    drawn = [draw_steps(work, machine, policy) for policy in policies]
    if at_once or not (sys.stdin.isatty() and sys.stdout.isatty()):
        for heading, passes in drawn:
            typer.echo("\n".join(heading))
            for lines in passes:
                typer.echo("\n".join(["", *lines]))
        return
    shown = [
        "\n".join(
            [
                *heading,
                "",
                *lines,
                "",
                f"pass {number} of {len(passes)}   space: next, b: back, q: quit",
            ]
        )
        for heading, passes in drawn
        for number, lines in enumerate(passes, 1)
    ]
    # Show one text after another, forward and back, until the last is left or q is pressed.
    place = 0
    with _keys() as descriptor:
        while place < len(shown):
            sys.stdout.write(f"{_CLEAR}{shown[place]}\n")
            sys.stdout.flush()
            key = os.read(descriptor, 8)
            if key in _QUIT:
                return
            if key in _BACK:
                place = max(place - 1, 0)
            elif key in _FORWARD:
                place += 1


@contextmanager
def _keys() -> Iterator[int]:
    """Make the terminal deliver each key at once and without echo; restore its settings
    afterwards."""
    import termios
    import tty

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)
        yield descriptor
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
