"""How the benchmarks measure and report."""

from __future__ import annotations

import time
from collections.abc import Callable


def best(action: Callable[[], object], times: int = 5) -> float:
    """Return the best of several wall times in seconds."""
    found = float("inf")
    for _ in range(times):
        begun = time.perf_counter()
        action()
        found = min(found, time.perf_counter() - begun)
    return found


def missed(is_missed: bool) -> str:
    """Return what stands behind a target that was not reached."""
    return ", MISSED" if is_missed else ""
