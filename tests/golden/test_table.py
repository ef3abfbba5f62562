"""Schedules are those of the table: the first of each case here, all of them by ``python -m
tests.golden``.

The schedules of a policy are made again when what they depend on has changed (:mod:`.keys`), and at
night.  Until ``python -m tests.golden --keys`` has written its new key, that is each time.
"""

from __future__ import annotations

import pytest

from tests.golden.cases import FIRST, Case, cases, hash_of
from tests.golden.keys import key_of, modules_of, read_keys
from tests.golden.table import first_difference, is_of_log, read
from tests.harness import NIGHTLY, TRACES

KEPT, KEYS = read(), read_keys()


def test_the_table_holds_every_case() -> None:
    assert set(KEPT) == set(cases())


@pytest.mark.parametrize("policy", sorted({case.policy for case in cases()}))
def test_a_policy_makes_the_schedules_of_the_table(policy: str) -> None:
    mine = [case for case in cases() if case.policy == policy and not is_of_log(case)]
    if NIGHTLY or key_of(policy) != KEYS.get(policy):
        assert first_difference(mine, KEPT, FIRST if NIGHTLY else 1) is None
    elif ":" not in policy:  # one of each all the same
        assert first_difference(mine[:1], KEPT, 1) is None


@pytest.mark.skipif(not TRACES.is_dir(), reason="the real logs are not here")
@pytest.mark.skipif(not NIGHTLY, reason="at night: prefixes of real logs, and whole ones")
@pytest.mark.parametrize("policy", sorted({case.policy for case in cases() if is_of_log(case)}))
def test_a_policy_makes_the_schedules_of_real_logs(policy: str) -> None:
    mine = [case for case in cases() if case.policy == policy and is_of_log(case)]
    assert first_difference(mine, KEPT, 1) is None


def test_a_key_follows_what_a_policy_runs_and_nothing_else() -> None:
    easy, around = modules_of("easy"), modules_of("immediate:inner=lsf,quantum=2")
    assert {"qbatch.planning.kernels.host_pass", "qbatch.engine.engine"} <= easy & around
    assert {"qbatch.policies.lsf", "qbatch.planning.kernels.lsf"} <= around - easy
    assert "qbatch.policies.backfill" in easy
    assert not [name for name in easy if name.startswith(("qbatch.daemon", "qbatch.cli"))]


def test_a_schedule_that_is_not_that_of_the_table_is_named() -> None:
    case = Case("fcfs", "random one host")
    assert first_difference([case], {case: [hash_of(case, 0)]}, 1) is None
    assert first_difference([case], {case: ["0" * 16]}, 1) == "fcfs on random one host, schedule 0"
