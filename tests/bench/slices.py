"""Time slices and group optimisation: 10,000 jobs of the model under each policy, and how fast a
search places jobs."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from qbatch.model.machine import one_host
from qbatch.planning import search as searching
from qbatch.planning.kernels.profile import add, new_profile
from qbatch.policies import load_policy
from qbatch.simulation import prepare, run
from qbatch.workloads.lublin import generate_lublin
from tests.bench.timing import best, missed

Row = Callable[[str, str], None]
JOBS, PROCS = 10_000, 128
POLICIES = {"scojo": 2, "scojo-groups": 20, "scojo-groups:search=lex": 20, "bottom-line": 20}
"""Policies, and the seconds that they may take for 10,000 jobs."""
PLACEMENTS_TARGET = 1_000_000
_SECOND = 1_000_000


def figures(row: Row, *, times: int = 3) -> None:
    """Measure and report the best of ``times``."""
    work = prepare(generate_lublin(jobs=JOBS, procs=PROCS, seed=71, load=0.8), one_host(PROCS))
    for name, target in POLICIES.items():
        run(work, one_host(PROCS), load_policy(name))
        seconds = best(lambda name=name: run(work, one_host(PROCS), load_policy(name)), times)  # type: ignore[misc]
        figure = f"{seconds:.2f} s (target {target} s{missed(seconds > target)})"
        row(f"{JOBS:,} Lublin jobs on {PROCS} processors under {name}", figure)
    for count in (8, 15, 30):
        speed = max(placements(count) for _ in range(times))
        text = (
            f"{speed:,.0f} placements/s (target "
            f"{PLACEMENTS_TARGET:,}{missed(speed < PLACEMENTS_TARGET)})"
        )
        row(f"a search over {count} jobs, 20 running", text)


def placements(count: int) -> float:
    """Return how many placements a search over so many jobs makes in a second."""
    draw = np.random.Generator(np.random.PCG64(5))
    base, left = new_profile(PROCS, 0, 128), PROCS
    for _ in range(20):
        procs = int(min(left, draw.integers(1, 9)))
        add(base, 0, int(draw.integers(1, 40_000)) * _SECOND, -procs)
        left -= procs
    procs, estimates = 2 ** draw.integers(0, 7, count), draw.integers(600, 60_000, count) * _SECOND
    jobs = searching.jobs_to_search(procs, estimates, -draw.integers(0, 50_000, count) * _SECOND, 1)
    rules = searching.SearchRules(budget=20_000)
    searching.search(0, base, jobs, rules)
    begun = time.perf_counter()
    nodes = sum(searching.search(0, base, jobs, rules).nodes for _ in range(5))
    return nodes / (time.perf_counter() - begun)
