"""Schedules are those of the table: the first of each case here, all of them by ``python -m
tests.golden``."""

from __future__ import annotations

import pytest

from tests.golden.cases import FIRST, Case, cases, hash_of
from tests.golden.table import read
from tests.harness import NIGHTLY, TRACES

KEPT = read()


def _checked(case: Case) -> int:
    """Return how many schedules of a case are computed here: none of a log but at night."""
    if NIGHTLY:
        return min(case.count, FIRST)
    return 0 if case.on.startswith(("log ", "whole log ")) else 1


def test_the_table_holds_every_case() -> None:
    assert set(KEPT) == set(cases())


@pytest.mark.parametrize("policy", sorted({case.policy for case in cases()}))
def test_a_policy_makes_the_schedules_of_the_table(policy: str) -> None:
    for case in (case for case in cases() if case.policy == policy):
        if case.on.startswith(("log ", "whole log ")) and not TRACES.is_dir():
            continue
        found = KEPT[case]
        if "Error:" in " ".join(found):
            continue  # the table records the refusal of a whole case
        for number in range(_checked(case)):
            assert hash_of(case, number) == found[number], (
                f"{case.policy} on {case.on}, schedule {number}"
            )
