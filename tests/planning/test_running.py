"""The parts of running jobs in order of their ends, against a sorted list."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from qbatch.planning.kernels import running
from qbatch.planning.kernels.entries import uncompiled

PARTS = st.lists(st.tuples(*(st.integers(0, most) for most in (20, 3, 2, 2, 20))), max_size=12)


@given(PARTS, st.integers(0, 20), st.sets(st.integers(0, 3)))
def test_parts_are_those_of_open_hosts_by_end_and_ties_stay(
    parts: list[tuple[int, ...]], now: int, closed: set[int]
) -> None:
    expected = []
    for end, host, procs, memory, begin in parts:
        if (procs or memory) and host not in closed:
            expected.append((now + 5 if end <= now and begin < now else end, host, procs, memory))
    expected.sort(key=lambda part: part[0])
    pieces = np.array(parts, np.int64).reshape(-1, 5).T.copy()
    hosts = np.array(sorted(closed), np.int64)
    for kernel in (running.parts_by_end, uncompiled(running.parts_by_end)):
        found, count = kernel(pieces, now, now + 5, hosts)
        assert count == len(expected)
        assert found.T.tolist() == [list(part) for part in expected]
