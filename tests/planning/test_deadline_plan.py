"""What the plan of the deadline schedulers reckons with."""

from __future__ import annotations

import random
from fractions import Fraction

from qbatch.planning.kernels.deadline_plan import slack_of


def test_slack_is_exact_where_products_are_more_than_64_bits() -> None:
    rng = random.Random(1)
    for _ in range(500):
        machine, ended = rng.randint(1, 100_000), rng.randint(0, 1_000_000)
        waited, procs = rng.randint(0, 10**15), rng.randint(1, machine)
        factor = rng.randint(0, 10_000)
        exact = (
            Fraction(factor, 1000)
            * Fraction(3_600_000_000 + waited, 1 + ended)
            / (Fraction(1, 2) + Fraction(procs, machine))
        )
        assert slack_of(factor, machine, waited, ended, procs, 1, 1, 1) == int(exact)
