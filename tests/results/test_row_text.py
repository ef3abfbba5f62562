"""The text of rows equals what Python's own formatting makes of every cell."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from qbatch.results.row_text import Cells, quoted, ratios, row_text, times

WHOLE = st.integers(-(10**18), 10**18)
RATIO = st.one_of(
    st.floats(0, 1e15, allow_nan=False),
    st.just(float("nan")),
    st.integers(0, 10**10).map(
        lambda halves: (halves + 0.5) / 1e6
    ),  # halves of the last decimal, as near as doubles come
    st.sampled_from([0.9999995, 0.99999949999, 1.0, 2.5e-6, 4294967295.9999995, 1e15 + 0.125]),
)


def plain(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def as_seconds(microseconds: int) -> str:
    return plain(f"{Decimal(microseconds) / 10**6:.6f}")


@given(
    st.lists(
        st.tuples(WHOLE, WHOLE, RATIO, st.booleans(), st.integers(0, 2)), min_size=1, max_size=40
    )
)
def test_rows_are_what_python_writes(rows: list[tuple[int, int, float, bool, int]]) -> None:
    numbers, instants, values, absent, places = zip(*rows, strict=True)
    words = ["easy", "", 'one, "two"']
    is_absent = np.array(absent)
    found = bytes(
        row_text(
            [
                Cells(np.array(numbers), is_absent=is_absent),
                times(np.array(instants)),
                times(np.array(instants), is_absent),
                ratios(np.array(values)),
                Cells(np.array(places), words=words),
            ]
        )
    ).decode()
    expected = ""
    for number, instant, value, is_empty, place in rows:
        cells = [
            "" if is_empty else str(number),
            as_seconds(instant),
            "" if is_empty else as_seconds(instant),
            "" if value != value else plain(f"{value:.6f}"),
            quoted(words[place]),
        ]
        expected += ",".join(cells) + "\n"
    assert found == expected


def test_no_rows_are_no_text() -> None:
    assert (
        bytes(
            row_text([Cells(np.empty(0, np.int64)), Cells(np.empty(0, np.int64), words=["easy"])])
        )
        == b""
    )
