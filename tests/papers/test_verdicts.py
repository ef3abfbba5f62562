"""Verdicts on made-up numbers, and the registry."""

import pytest

from qbatch.metrics import interval
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
    claim,
)
from qbatch.papers.registry import PAPERS, find_paper
from qbatch.papers.sp2_backfilling import (
    TABLE_2,
    TABLE_3,
    USERS,
    EstimateFigures,
    FactorFigures,
    LoadFigures,
    MonthFigures,
    SizeFigures,
)
from qbatch.papers.sp2_backfilling_claims import (
    claims_of_figure_11,
    claims_of_figures_9_and_10,
    claims_of_table_1,
    claims_of_table_2,
    claims_of_table_3,
    domination,
    table_1,
    table_2,
    table_3,
    table_11,
)


def month(label: str, easy: float, conservative: float, jobs: int = 100) -> MonthFigures:
    return MonthFigures(label, jobs, {"easy": easy, "conservative": conservative})


def verdicts(claims: list[Claim]) -> dict[str, str]:
    return {one.name.partition(".")[2]: one.verdict for one in claims}


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
def test_a_number_is_within_the_share_or_the_amount(printed: float | None, ours: float | None, verdict: str) -> None:
    assert Tolerance(0.25, 10).verdict(printed, ours) == verdict


def test_a_claim_that_cannot_be_checked_is_neither_true_nor_false() -> None:
    assert [claim("a", "", value, "").verdict for value in (True, False, None)] == [HOLDS, FAILS, UNCHECKED]


def test_cells_of_a_table_as_text() -> None:
    table = Table("t", "T", [Column("a", "A"), Column("b", "B", 1), Column("c", "C")], [{"a": 3, "b": 2.25}])
    assert [column.heading for column in table.shown] == ["A", "B"]
    assert table.texts() == [["3", "2.2"]]
    assert table.document()["rows"] == [{"a": 3, "b": 2.25, "c": None}]


@pytest.mark.parametrize(("easy_wins", "verdict"), [(9, HOLDS), (10, FAILS), (2, HOLDS), (1, FAILS)])
def test_more_than_nine_of_eleven_months_is_domination(easy_wins: int, verdict: str) -> None:
    months = [month(str(place), *((1, 2) if place < easy_wins else (2, 1))) for place in range(11)]
    months.append(month("tie", 2.1, 1.9))
    found = domination("table2", months)
    assert found.verdict == verdict
    assert f"EASY is better in {easy_wins}" in found.numbers
    assert "1 ties" in found.numbers


def test_one_month_tells_nothing_of_domination() -> None:
    assert domination("table2", [month("a", 1, 2)]).verdict == UNCHECKED


def test_the_printed_table_2_beside_itself_is_within_and_its_claims_hold() -> None:
    months = [month(one.label, one.easy, one.conservative, one.jobs) for one in TABLE_2]
    made = table_2(months, "whole", is_kth=True)
    assert {row[f"{policy}_verdict"] for row in made.rows for policy in ("easy", "conservative")} == {"within"}
    assert made.rows[-1]["jobs"] == 28290
    assert set(verdicts(claims_of_table_2(months, "whole")).values()) == {HOLDS}


def test_another_log_is_not_held_to_the_printed_numbers() -> None:
    made = table_2([month("1996-10", 1, 1)], "files", is_kth=False)
    assert made.name == "table2-files"
    assert made.rows[0]["easy_printed"] is None
    assert made.rows[0]["easy_verdict"] == "-"


def factors(changes: dict[int | str, tuple[float, float]]) -> list[FactorFigures]:
    values = {**TABLE_3, **changes}
    names = ("easy", "conservative")
    return [
        FactorFigures(factor, {name: interval([value - 1, value + 1]) for name, value in zip(names, pair, strict=True)})
        for factor, pair in values.items()
    ]


def test_the_printed_table_3_beside_itself_is_within_and_its_claims_hold() -> None:
    rows = factors({})
    made = table_3(rows, "whole", is_kth=True)
    assert {row["easy_verdict"] for row in made.rows} == {"within"}
    assert made.rows[0]["easy_half_interval"] == pytest.approx(12.706, abs=0.001)
    assert set(verdicts(claims_of_table_3(rows, "whole", has_estimates=True)).values()) == {HOLDS}


@pytest.mark.parametrize(
    ("changes", "broken"),
    [
        ({1: (40, 40)}, "inaccuracy-helps"),
        ({USERS: (81, 60)}, "users-are-worse"),
        ({31: (45, 57)}, "conservative-is-better"),
    ],
)
def test_each_claim_of_table_3_can_fail(changes: dict[int | str, tuple[float, float]], broken: str) -> None:
    found = verdicts(claims_of_table_3(factors(changes), "whole", has_estimates=True))
    assert {name for name, verdict in found.items() if verdict == FAILS} == {broken}


def test_without_estimates_of_users_their_claim_cannot_be_checked() -> None:
    found = verdicts(claims_of_table_3(factors({}), "whole", has_estimates=False))
    assert found["users-are-worse"] == UNCHECKED


def test_a_smaller_machine_must_be_slower_in_every_month() -> None:
    small = SizeFigures(66, 7, [month("a", 20, 21), month("b", 30, 29), month("only", 1, 1)])
    large = SizeFigures(100, 0, [month("a", 10, 10), month("b", 15, 15)])
    assert set(verdicts(claims_of_table_1([small, large], "fitting")).values()) == {HOLDS}
    assert table_1([small, large], "fitting").notes == ["7 wide jobs are left out at 66 processors"]
    worse = SizeFigures(100, 0, [month("a", 10, 10), month("b", 15, 40)])
    found = verdicts(claims_of_table_1([small, worse], "same"))
    assert found["smaller-is-slower"] == FAILS


def point(load: float, fcfs: float, easy: float, conservative: float, share: float = 0.5) -> LoadFigures:
    slowdown = {"fcfs": fcfs, "easy": easy, "conservative": conservative}
    return LoadFigures(load, slowdown, {"fcfs": 0.0, "easy": share, "conservative": share + 0.01})


def test_the_claims_of_figures_9_and_10() -> None:
    good = [point(0.5, 20, 10, 10), point(0.7, 100, 20, 21), point(0.9, 500, 30, 28), point(1.0, 900, 80, 70, 0.95)]
    assert set(verdicts(claims_of_figures_9_and_10(good)).values()) == {HOLDS}
    bad = [point(0.7, 50, 20, 30), point(1.0, 900, 70, 80)]
    found = verdicts(claims_of_figures_9_and_10(bad))
    assert {name for name, verdict in found.items() if verdict == HOLDS} == {"conservative-backfills-more"}


def test_figure_11_beside_the_printed_counts() -> None:
    found = EstimateFigures(20054, 0, 3215, 3204, 500, 793, 60.0, 0.5, 0.9, (*[100] * 100, 3215))
    assert {row["verdict"] for row in table_11(found, is_kth=True).rows} == {"within", "-"}
    assert set(verdicts(claims_of_figure_11(found, tells_kills=True)).values()) == {HOLDS}
    assert verdicts(claims_of_figure_11(found, tells_kills=False))["killed"] == UNCHECKED


@pytest.mark.parametrize("verdict", VERDICTS)
@pytest.mark.parametrize("expected", [HOLDS, FAILS, CONTRADICTED, UNDECIDED])
def test_a_breach_is_a_claim_that_is_decided_otherwise_than_is_known(verdict: str, expected: str) -> None:
    is_decided = verdict in (HOLDS, FAILS, CONTRADICTED)
    wanted = is_decided and expected != UNDECIDED and verdict != expected
    assert Claim("a", "A", verdict, "1", expected=expected).is_breach is wanted
