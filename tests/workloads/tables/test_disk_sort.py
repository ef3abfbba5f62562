"""Sorting through runs on disk gives the order of sorting in memory."""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbatch.model.errors import OutputError
from qbatch.workloads.tables.disk_sort import DiskSort

DTYPE = np.dtype([("major", np.int64), ("minor", np.int64), ("place", np.int64)])
KEYS = ("major", "minor", "place")


def in_blocks(
    pairs: list[tuple[int, int]], run_rows: int, batch: int
) -> list[np.ndarray[Any, Any]]:
    rows = np.array([(*pair, place) for place, pair in enumerate(pairs)], DTYPE)
    sort = DiskSort(DTYPE, KEYS, run_rows)
    for first in range(0, len(rows), batch):
        sort.add(rows[first : first + batch])
    return list(sort.blocks())


@given(
    st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 2)), max_size=600),
    st.integers(1, 200),
    st.integers(1, 50),
)
def test_rows_come_back_once_and_in_order(
    pairs: list[tuple[int, int]], run_rows: int, batch: int
) -> None:
    found = [tuple(row) for block in in_blocks(pairs, run_rows, batch) for row in block.tolist()]
    assert found == sorted((*pair, place) for place, pair in enumerate(pairs))


def test_a_table_in_order_is_merged_in_small_blocks() -> None:
    pairs = [(number, 0) for number in range(20_000)]
    blocks = in_blocks(pairs, 1000, 100)
    assert sum(map(len, blocks)) == 20_000
    assert max(map(len, blocks)) <= 1000


def test_a_directory_without_space_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**_: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    with pytest.raises(OutputError, match=r"No space left on device.*set TMPDIR"):
        in_blocks([(1, 1)] * 10, 2, 2)
