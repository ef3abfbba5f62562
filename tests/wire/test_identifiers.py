from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbatch.wire.identifiers import (
    ARRAY,
    PLAIN,
    JobKey,
    expand_id,
    format_id,
    format_indices,
    is_job_id,
    parse_id,
    parse_indices,
)

Read = TypeVar("Read")

keys = st.builds(
    JobKey,
    st.integers(0, 10**15 - 1),
    st.one_of(st.just(PLAIN), st.just(ARRAY), st.integers(0, 10**9 - 1)),
)


@given(keys, st.from_regex(r"[a-z][a-z0-9-]{0,10}", fullmatch=True))
def test_what_is_printed_is_read_back(key: JobKey, server: str) -> None:
    text = format_id(key, server)
    assert parse_id(text) == parse_id(f"{text}@{server}") == parse_id(text.split(".")[0]) == key
    assert expand_id(text) == [text]
    assert is_job_id(text)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("123", (123, PLAIN)),
        ("123.srv", (123, PLAIN)),
        ("123.srv@srv", (123, PLAIN)),
        ("123[]", (123, ARRAY)),
        ("123[4]", (123, 4)),
        ("123[4].srv@other.dom.ain", (123, 4)),
    ],
)
def test_every_form_of_the_contract_is_read(text: str, key: tuple[int, int]) -> None:
    assert parse_id(text) == key


@pytest.mark.parametrize(
    "text", ["", "x", "-1", "1x", "1[", "1]", "1[a]", "[1]", "1 2", "1[1][2]", "\uff11", "9" * 16]
)
def test_anything_else_is_no_identifier(text: str) -> None:
    with pytest.raises(ValueError, match="illegally formed job identifier"):
        parse_id(text)


def read_by(reader: Callable[[str], Read], text: str) -> Read | None:
    """Return what a reader makes of a text; None where it says that it is none."""
    try:
        return reader(text)
    except ValueError:
        return None


def is_read_within_bounds(text: str) -> bool:
    """Whatever a reader takes is within its bounds, and can be written and read again."""
    key = read_by(parse_id, text)
    if key is not None:
        assert 0 <= key.sequence < 10**15
        assert ARRAY <= key.member < 10**9
        assert parse_id(format_id(key, "srv")) == key
        assert expand_id(text) == [text.strip()]
    expanded = read_by(expand_id, text)
    if expanded is not None:
        keys_read = [parse_id(each) for each in expanded]
        assert keys_read == sorted(set(keys_read))
        assert len({each.sequence for each in keys_read}) == 1
    found = read_by(parse_indices, text)
    if found is not None:
        indices, limit = found
        assert indices == sorted(set(indices))
        assert indices[0] >= 0
        assert limit is None or limit >= 1
        assert parse_indices(format_indices(indices)) == (indices, None)
    return True


@given(st.text(max_size=40))
def test_what_is_read_of_any_text_is_within_bounds(text: str) -> None:
    assert is_read_within_bounds(text)


@given(st.text(alphabet="0123456789[],-:%.@s", max_size=25))
def test_so_it_is_of_one_that_looks_like_an_identifier(text: str) -> None:
    assert is_read_within_bounds(text)


def test_ranges_of_subjobs_are_expanded() -> None:
    assert expand_id("12[1-3,7].srv") == ["12[1].srv", "12[2].srv", "12[3].srv", "12[7].srv"]
    assert expand_id("12[0-6:3]") == ["12[0]", "12[3]", "12[6]"]
    with pytest.raises(ValueError, match="illegally"):
        expand_id("12[1-999999]")
    with pytest.raises(ValueError, match="illegally"):
        expand_id("12[1-3%2]")
    with pytest.raises(ValueError, match="illegally"):
        expand_id("1" * 100_000)


@given(st.sets(st.integers(0, 2000), min_size=1))
def test_indices_go_round(indices: set[int]) -> None:
    ordered = sorted(indices)
    assert parse_indices(format_indices(ordered)) == (ordered, None)


def test_indices_as_people_write_them() -> None:
    assert parse_indices("1-10:3") == ([1, 4, 7, 10], None)
    assert parse_indices("1,3,5-7%4") == ([1, 3, 5, 6, 7], 4)
    assert format_indices([1, 4, 7, 10]) == "1-10:3"
    for text in (
        "",
        "5-1",
        "1-5:0",
        "1-2%0",
        "1-2%",
        "1-2%²",
        "a",
        "1--2",
        "0-9999999",
        ",".join(["1-1000001"] * 3),
    ):
        with pytest.raises(ValueError):
            parse_indices(text)
