"""What a paper hands out: tolerances, tables of lines, claims and what a check makes of them; and
the registry."""

import pytest

from qbatch.model.errors import UsageError
from qbatch.papers.record import (
    CONTRADICTED,
    FAILS,
    HOLDS,
    UNCHECKED,
    UNDECIDED,
    VERDICTS,
    Claim,
    Column,
    Table,
    Tolerance,
    cell,
    claim,
    means,
    table_of_lines,
)
from qbatch.papers.registry import PAPERS, find_paper


def test_the_registry_knows_the_paper_and_suggests_it() -> None:
    assert find_paper("sp2-backfilling") is PAPERS["sp2-backfilling"]
    with pytest.raises(UsageError, match=r"no paper 'sp2-backfiling'.*sp2-backfilling"):
        find_paper("sp2-backfiling")


@pytest.mark.parametrize(
    ("printed", "ours", "verdict"),
    [
        (100, 125, "within"),
        (100, 126, "outside (+26 %)"),
        (100, 74, "outside (-26 %)"),
        (2, 11.9, "within"),
        (2, 12.1, "outside (+505 %)"),
        (None, 1, "-"),
        (1, None, "-"),
    ],
)
def test_a_number_is_within_the_share_or_the_amount(
    printed: float | None, ours: float | None, verdict: str
) -> None:
    assert Tolerance(0.25, 10).verdict(printed, ours) == verdict


def test_a_claim_that_cannot_be_checked_is_neither_true_nor_false() -> None:
    assert [claim("a", "", value, "").verdict for value in (True, False, None)] == [
        HOLDS,
        FAILS,
        UNCHECKED,
    ]


def test_cells_of_a_table_as_text() -> None:
    table = Table(
        "t", "T", [Column("a", "A"), Column("b", "B", 1), Column("c", "C")], [{"a": 3, "b": 2.25}]
    )
    assert [column.heading for column in table.shown] == ["A", "B"]
    assert table.texts() == [["3", "2.2"]]
    assert table.document()["rows"] == [{"a": 3, "b": 2.25, "c": None}]


@pytest.mark.parametrize("verdict", VERDICTS)
@pytest.mark.parametrize("expected", [HOLDS, FAILS, CONTRADICTED, UNDECIDED])
def test_a_breach_is_a_claim_that_is_decided_otherwise_than_is_known(
    verdict: str, expected: str
) -> None:
    is_decided = verdict in (HOLDS, FAILS, CONTRADICTED)
    wanted = is_decided and expected != UNDECIDED and verdict != expected
    assert Claim("a", "A", verdict, "1", expected=expected).is_breach is wanted


def test_lines_bring_their_columns_in_the_order_in_which_they_come() -> None:
    lines = [
        [*cell("a", "A", 1), *means("b", "B", 2, {0: 1.0, 1: 3.0}, 10.0, per=2.0)],
        [*cell("a", "A", None), *means("b", "B", 2, []), *cell("c", "C", "x")],
    ]
    table = table_of_lines("t", "T", lines, ["a note"])
    assert [(column.key, column.decimals) for column in table.columns] == [
        ("a", 0),
        ("b", 2),
        ("b_half", 2),
        ("c", 0),
    ]
    assert table.texts() == [["1", "10.00", "63.53", "-"], ["-", "-", "-", "x"]]
    assert table.rows[0]["b_half"] == pytest.approx(12.706 * 5, abs=0.01)
    assert table.notes == ["a note"]
