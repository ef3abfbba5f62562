"""The Markdown of a record: what stands in it, and that nothing in a cell breaks the table."""

import json
from typing import Any

from qbatch.papers.markdown import markdown_of
from qbatch.papers.record import (
    CONTRADICTED,
    FAILS,
    HOLDS,
    Claim,
    Column,
    PaperOutcome,
    Table,
    table_of,
)


def record(**more: Any) -> dict[str, Any]:
    table = Table(
        "figure5",
        "Waits of LSF* | by range",
        [Column("range", "range"), Column("wait", "wait h", 1), Column("none", "none")],
        [{"range": "<1m", "wait": 1.25}, {"range": ">100h", "wait": None}],
        ["a note"],
    )
    months = Table("figure5-months", "By month", [Column("month", "month")], [{"month": "1999-10"}])
    claims = [
        Claim(
            "1.a",
            "A is larger",
            HOLDS,
            "1999-12 a | b",
            {"yes": 17, "open": 1},
            "1 yes: all 2 [1, 3]",
        ),
        Claim("2.b", "B too", FAILS, "0.5", {"no": 1}, why="LSF* is odd"),
        Claim("3.c", "C is 5", CONTRADICTED, "6", why="the text says 5, the table 6"),
    ]
    outcome = PaperOutcome([table, months], claims, ["no log"], {}, ["By *intervals*."])
    return {
        "schema": "qbatch.paper/1",
        "version": "1.2",
        "command": ["qbatch", "paper", "x", "--out", "a b"],
        "paper": {"name": "x", "authors": "A. Author", "title": "On X", "source": "Proc. 1"},
        "options": {"months": ["1999-12", "2000-01"], "days": None},
        **outcome.document(),
        **more,
    }


def test_a_table_comes_back_from_plain_data() -> None:
    document = json.loads(json.dumps(record()))["tables"][0]
    assert table_of(document).document() == document
    assert table_of(document).texts() == [["<1m", "1.2"], [">100h", "-"]]


def test_the_document_says_what_was_run_judged_and_found() -> None:
    text = markdown_of(json.loads(json.dumps(record())))
    for part in (
        "# On X\n",
        "A. Author, Proc. 1. Made by qbatch 1.2:",
        "    qbatch paper x --out 'a b'\n",
        "* months: 1999-12, 2000-01\n* no log\n",
        "By *intervals*.",
        "3 claims. Holds: 1, does not hold: 1, the paper contradicts itself: 1.",
        "### Where the paper contradicts itself\n\n* **3.c**: the text says 5, the table 6.",
        "| claim | verdict | yes | no | open | numbers |\n|---|---|---|---|---|---|\n",
        "| 1.a: A is larger | **holds** | 17 | - | 1 | 1999-12 a \\| b |",
        "| 1.a | holds | 1 yes: all 2 \\[1, 3] |",
        "* **2.b**: LSF\\* is odd.",
        (
            "### Waits of LSF\\* \\| by range\n\n| range | wait h |\n|---|---|\n| \\<1m | 1.2 |\n| "
            ">100h | - |\n\nNote: a note."
        ),
    ):
        assert part in text, part
    assert "days" not in text
    rows = [line for line in text.splitlines() if line.startswith("| 1.a:")]
    assert rows[0].replace("\\|", "").count("|") == 7


def test_a_picture_stands_under_its_table_and_one_without_at_the_end() -> None:
    text = markdown_of(record(pictures=["other", "figure5-ranges", "figure5-months"]))
    places = [
        text.index(part)
        for part in (
            "### Waits",
            "(figure5-ranges.png)",
            "### By month",
            "(figure5-months.png)",
            "(other.png)",
        )
    ]
    assert places == sorted(places)


def test_a_paper_of_plain_claims_has_no_counts() -> None:
    text = markdown_of(record(claims=[Claim("1", "A", HOLDS, "2").document()], method=[]))
    assert "| claim | verdict | numbers |" in text
    assert "How a claim is judged" not in text
    assert "Taken together" not in text
    assert "No claim was checked" in markdown_of(record(claims=[]))
