"""Progress bars of a run on stderr: one of jobs and one of simulated time."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from qbatch.simulation.calendar import ProgressCallback


@contextmanager
def progress_bars(
    label: str, jobs: int, first: int, last: int, *, is_quiet: bool, is_anywhere: bool = False
) -> Iterator[ProgressCallback | None]:
    """Show the bars if stderr is a terminal; yield the function that moves them, or None without bars.

    Args:
        jobs: their number; ``first``, ``last``: the instants, in microseconds, of the first and the last submission.
        is_anywhere: if stderr is no terminal but the page of a notebook, write a line that changes.
    """
    if is_quiet or not (sys.stderr.isatty() or is_anywhere):
        yield None
        return
    if not sys.stderr.isatty():
        with _on_a_page(label, jobs) as told:
            yield told
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
def _on_a_page(label: str, jobs: int) -> Iterator[ProgressCallback]:
    """Write one line that changes, as a notebook shows it without a widget."""
    last = -1

    def move(arrived: int, now: int) -> None:
        nonlocal last
        percent = 100 * arrived // max(jobs, 1)
        if percent > last:
            last = percent
            sys.stderr.write(f"\r{label}: {percent} % of {jobs:,} jobs")
            sys.stderr.flush()

    move(0, 0)
    yield move
    sys.stderr.write(f"\r{label}: {jobs:,} jobs{' ' * 12}\n")
