"""Python's cyclic garbage collector in a daemon with many jobs: what it has looked at for long, it leaves alone from then on.

A full collection looks at every job and record that there is, while everything waits: a tenth of a second for 200,000 jobs, and
one falls due whenever their number has grown by a quarter.  They refer to each other in one direction only and go by themselves,
by their counts of references, as connections do; there is nothing for the collector to find among them.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

LONG = 0.02
"""Seconds after which a full collection was a long one."""

_FULL = 2


def spare_the_old() -> None:
    """Let the collector leave alone what is there whenever a full collection was a long one, and what is there now."""
    gc.callbacks.append(Sparing())
    gc.freeze()


@contextmanager
def undisturbed() -> Iterator[None]:
    """A stretch of work that is long enough by itself: what falls due meanwhile is collected behind it."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class Sparing:
    """A callback of the collector.

    Args:
        clock: seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._began = 0.0

    def __call__(self, phase: str, info: Mapping[str, int]) -> None:
        """Take note of the beginning or the end of a collection."""
        if info["generation"] < _FULL:
            return
        if phase == "start":
            self._began = self._clock()
        elif self._clock() - self._began > LONG:
            gc.freeze()
