from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbatch.cli.pbs.command import UsageFault, parse_options

KNOWN = {"f": ("", ""), "w": ("", ""), "u": ("user", ""), "x": ("", "")}


def test_flags_arguments_and_operands_mix_as_with_the_gnu_library() -> None:
    given_ = parse_options(["-fw", "1", "-u", "alice", "-ubob", "-", "--", "-x"], KNOWN)
    assert given_.options == [("f", ""), ("w", ""), ("u", "alice"), ("u", "bob")]
    assert given_.operands == ["1", "-"]
    assert given_.after_dashes == ["-x"]
    assert given_.has("xf")
    assert not given_.has("x")
    assert (given_.last("u"), given_.last("z", "none")) == ("bob", "none")


def test_posix_stops_at_the_first_operand() -> None:
    assert parse_options(["-f", "1", "-w"], KNOWN, stops_early=True).operands == ["1", "-w"]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["-Z"], "invalid option -- 'Z'"),
        (["-:"], "invalid option -- ':'"),
        (["-fu"], "option requires an argument -- 'u'"),
        (["--version"], "'-'"),
    ],
)
def test_faults_are_worded_as_by_the_library(words: list[str], text: str) -> None:
    with pytest.raises(UsageFault, match=text):
        parse_options(words, KNOWN)


@given(st.lists(st.text(alphabet="-fu:xé ", max_size=5), max_size=8))
def test_no_arguments_break_it(words: list[str]) -> None:
    try:
        found = parse_options(words, KNOWN)
    except UsageFault:
        return
    assert all(letter in KNOWN for letter, _ in found.options)
