"""Months made once for all tests of this folder."""

from __future__ import annotations

from functools import cache

from qbatch.workloads import Log
from qbatch.workloads.origin2000 import MONTHS, generate_month

SEEDS = (1, 2, 3)
CASES = [(name, seed) for name in MONTHS for seed in SEEDS]


@cache
def month_log(name: str, seed: int = 1, warmup_days: int = 0) -> Log:
    """Return a month, without the warm-up unless it is asked for."""
    return generate_month(name, seed=seed, warmup_days=warmup_days)
