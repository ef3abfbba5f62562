"""An allocation is ranges of hosts: what is read from it is what was given, host by host."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from qbatch.model.actions import Chunk, is_on_one_host, outside, parts_of, procs_of, ranges_of

HOSTS = st.lists(
    st.tuples(st.integers(0, 30), st.integers(1, 2), st.integers(0, 1)),
    unique_by=lambda part: part[0],
    max_size=20,
)


@given(HOSTS)
def test_parts_come_back_in_their_order_and_no_two_ranges_could_be_one(
    parts: list[tuple[int, int, int]],
) -> None:
    found = ranges_of((*part, 1) for part in parts)
    assert list(parts_of(found)) == parts
    for one, other in pairwise(found):
        alike = (one.procs, one.memory) == (other.procs, other.memory)
        assert not (alike and one.host + one.count == other.host)
    assert (
        ranges_of((chunk.host, chunk.procs, chunk.memory, chunk.count) for chunk in found) == found
    )
    assert procs_of(found) == sum(procs for _, procs, _ in parts)
    assert is_on_one_host(found) == (len(parts) == 1)


@given(HOSTS, st.sets(st.integers(0, 30)))
def test_what_is_outside_some_hosts_is_the_rest(
    parts: list[tuple[int, int, int]], closed: set[int]
) -> None:
    found = outside(ranges_of((*part, 1) for part in parts), closed)
    assert list(parts_of(found)) == [part for part in parts if part[0] not in closed]


def test_a_whole_machine_is_one_range() -> None:
    assert ranges_of((host, 1, 0, 1) for host in range(1152)) == (Chunk(0, 1, 0, 1152),)
    assert ranges_of([(3, 1, 0, 2), (5, 1, 0, 3), (9, 1, 0, 1), (10, 2, 0, 1)]) == (
        Chunk(3, 1, 0, 5),
        Chunk(9, 1),
        Chunk(10, 2),
    )
