"""The comment lines of a log are kept as they are and read for what they say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbatch.workloads import machine_procs, parse_header
from qbatch.workloads.header import keyword_of, leading_integer


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("338 (batch partition; 512 total)", 338),
        ("1664 (72, 1368, 224)", 1664),
        ("1,152 processors", 1152),
        ("  128  ", 128),
        ("-1", -1),
        ("12, 13", 12),
        ("about 128", None),
        ("", None),
        ("9" * 40, None),
    ],
)
def test_a_number_with_remarks_is_its_leading_integer(text: str, number: int | None) -> None:
    assert leading_integer(text) == number


def test_keywords_are_typed() -> None:
    header = parse_header(
        [
            "; Version: 2.2",
            ";Computer:IBM SP2",
            "; Information: http://one.example/",
            ";              http://two.example/",
            "; Information: third",
            "; UnixStartTime: 843480031",
            "; TimeZoneString: Europe/Stockholm (with summer time)",
            "; StartTime: Mon Sep 23 14:00:31 CEST 1996",
            "; MaxNodes: 338 (batch partition; 512 total)",
            "; Preemption: No",
            "; Queue:  1 DSI      ",
            "; Queue: 2",
            "; Partition: 3  wide nodes",
            "; Copyright: Data Usage Agreement:",
            ";   Permission to use: granted.",
            ";",
            ";   not a continuation",
            "; Note: one",
        ]
    )
    assert (header.version, header.computer) == ("2.2", "IBM SP2")
    assert header.information == ("http://one.example/\nhttp://two.example/", "third")
    assert (header.unix_start_time, header.time_zone_string) == (843480031, "Europe/Stockholm")
    assert header.start_time == "Mon Sep 23 14:00:31 CEST 1996"
    assert (header.max_nodes, header.preemption) == (338, "No")
    assert header.queues == {1: "DSI", 2: ""}
    assert header.queue_names() == {1: "DSI"}
    assert header.partitions == {3: "wide nodes"}
    assert ("copyright", "Data Usage Agreement:\nPermission to use: granted.") in header.entries
    assert header.notes == ("one",)


@pytest.mark.parametrize(
    "line", ["; MaxProcs: 64", ";maxprocs:64", ";;  MAX PROCS : 64", "# Max_Procs:  64 (all)"]
)
def test_case_and_blanks_do_not_matter(line: str) -> None:
    assert machine_procs(parse_header([line])) == 64


@pytest.mark.parametrize(
    ("lines", "procs"),
    [
        (["; MaxNodes: 32", "; MaxProcs: 64"], 64),
        (["; MaxNodes: 32"], 32),
        (["; MaxNodes: 32", "; MaxProcs: -1"], 32),
        (["; MaxProcs: 0"], None),
        (["; MaxProcs: unknown", "; MaxProcs: 16"], 16),
        (["; MaxProcs: 99999999999999"], None),
        ([], None),
    ],
)
def test_the_machine_is_max_procs_else_max_nodes(lines: list[str], procs: int | None) -> None:
    assert machine_procs(parse_header(lines)) == procs


def test_a_web_address_is_no_keyword() -> None:
    assert keyword_of("; http://www.example.org") is None


def test_bytes_that_are_no_utf8_are_shown_as_latin_1() -> None:
    line = b"; Installation: H\xf6gskolan".decode("utf-8", "surrogateescape")
    header = parse_header([line])
    assert header.installation == "H\u00f6gskolan"
    assert header.lines == (line,)


@given(st.lists(st.binary(max_size=40)))
def test_no_line_makes_it_fail(lines: list[bytes]) -> None:
    texts = tuple(f";{line.decode('utf-8', 'surrogateescape')}" for line in lines)
    assert parse_header(texts).lines == texts


def test_names_of_queues_are_short_printable_and_all_different() -> None:
    lines = (
        "; Queue:  0  interactive    ",
        "; Queue:  6  0",
        "; Queue: 3 other",
        "; Queue: 4 other",
        "; Queue: 5 " + "long " * 20,
        "; Queue: 7 two",
        ";   lines of it",
        "; Queue: 8 e\x1b[31mvil",
    )
    assert parse_header(lines).queue_names() == {
        0: "interactive",
        6: "0 (6)",
        3: "other (3)",
        4: "other (4)",
        5: "long long long long long long lo",
        7: "two",
        8: "e?[31mvil",
    }
