"""A pool of processes that shares the runs of a study."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import TypeVar

Case = TypeVar("Case")
Made = TypeVar("Made")

WORKERS = len(os.sched_getaffinity(0))
"""As many processes as there are cores for this one."""


def each_made(make: Callable[[Case], Made], cases: Sequence[Case], workers: int = WORKERS) -> Iterator[Made]:
    """Give what is made of each case, as they are made; with one worker everything runs in this process."""
    if workers == 1 or len(cases) < 2:
        yield from map(make, cases)
        return
    # A process begun afresh: a fork of one that draws bars in a thread may inherit a lock that nobody holds.
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_ignore_interrupts)
    try:
        for future in as_completed([pool.submit(make, case) for case in cases]):
            yield future.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _ignore_interrupts() -> None:
    """Leave Ctrl-C to the process that the user talks to; it ends the pool."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
