"""Progress bars of a run on stderr: one of jobs and one of simulated time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from qbatch.simulation.calendar import ProgressCallback


@contextmanager
def progress_bars(
    label: str, jobs: int, first: int, last: int, *, is_quiet: bool, is_anywhere: bool = False
) -> Iterator[ProgressCallback | None]:
    """Show the bars if stderr is a terminal; yield the function that moves them, or None without
    bars.

    Args:
        jobs: their number; ``first``, ``last``: the instants, in microseconds, of the first and the
            last submission.
        is_anywhere: if stderr is no terminal but the page of a notebook, write a line that changes.
    """
    if is_quiet or not (sys.stderr.isatty() or is_anywhere):
        yield None
        return
    if not sys.stderr.isatty():
        with changing_line(f"\r{label}: {jobs:,} jobs{' ' * 12}\n") as write:

            def move_line(arrived: int, now: int) -> None:
                percent = 100 * arrived // max(jobs, 1)
                write(percent, f"{label}: {percent} % of {jobs:,} jobs")

            move_line(0, 0)
            yield move_line
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        by_jobs = bars.add_task(f"{label}: jobs", total=jobs)
        by_time = bars.add_task(f"{label}: simulated time", total=max(last - first, 1))

        def move(arrived: int, now: int) -> None:
            bars.update(by_jobs, completed=arrived)
            bars.update(by_time, completed=min(now, last) - first)

        yield move


@contextmanager
def changing_line(last: str) -> Iterator[Callable[[int, str], None]]:
    """Yield a function that writes a percentage, once, as a text over the one before; ``last``:
    what is written at the end.

    A notebook shows it without a widget.
    """
    written = -1

    def write(percent: int, text: str) -> None:
        nonlocal written
        if percent > written:
            written = percent
            sys.stderr.write(f"\r{text}")
            sys.stderr.flush()

    yield write
    sys.stderr.write(last)
