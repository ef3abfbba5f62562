"""Python's cyclic garbage collector in a daemon with many jobs: old objects are exempt after a long
collection.

A full collection visits every job and record while everything else waits: a tenth of a second for
200,000 jobs, whenever their number has grown by a quarter.  Jobs, records and connections form no
reference cycles, so their reference counts free them; the collector finds nothing among them.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

LONG = 0.02
"""Seconds from which a full collection counts as long."""

_FULL = 2


def spare_the_old() -> None:
    """Exempt the objects of now from collection, and later all objects after each long full
    collection."""
    gc.callbacks.append(Sparing())
    gc.freeze()


@contextmanager
def undisturbed() -> Iterator[None]:
    """Put off collections until the work inside is done."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class Sparing:
    """A callback of the collector; ``clock`` returns seconds."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._began = 0.0

    def __call__(self, phase: str, info: Mapping[str, int]) -> None:
        """Note the beginning or the end of a collection."""
        if info["generation"] < _FULL:
            return
        if phase == "start":
            self._began = self._clock()
        elif self._clock() - self._began > LONG:
            gc.freeze()
