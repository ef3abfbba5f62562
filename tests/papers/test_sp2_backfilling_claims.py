"""The claims of Feitelson and Weil 1998 on made-up numbers, and the arithmetic of the printed
tables (docs/spec/papers.md, R001)."""

from itertools import pairwise

import pytest

from qbatch.metrics import interval
from qbatch.papers.record import FAILS, HOLDS, UNCHECKED, Claim
from qbatch.papers.sp2_backfilling import (
    FIGURE_11_FULL,
    FIGURE_11_JOBS,
    FIGURE_11_KILLED,
    TABLE_1,
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

IUCC_JOBS = 5203
KTH_JOBS = 28240
"""Jobs in the text of section 3.2."""

# ------------------------------------------------------------------------------------------------
# the printed tables


def wins(pairs: list[tuple[int, int]]) -> tuple[int, int, int]:
    """Return how often EASY is better, conservative is better, and neither."""
    return (
        sum(easy < conservative for easy, conservative in pairs),
        sum(easy > conservative for easy, conservative in pairs),
        sum(easy == conservative for easy, conservative in pairs),
    )


def test_the_jobs_of_table_1_add_up_to_the_text() -> None:
    assert sum(jobs for jobs, _ in TABLE_1.values()) == IUCC_JOBS


def test_the_best_in_table_1_is_as_the_text_says() -> None:
    on_33, _, on_58 = ([pairs[place] for _, pairs in TABLE_1.values()] for place in range(3))
    assert wins(on_33) == (4, 4, 0)
    assert wins(on_58) == (0, 4, 4)


def test_in_table_1_a_smaller_machine_is_slower_in_every_month() -> None:
    for _, pairs in TABLE_1.values():
        assert all(
            small[place] > large[place] for small, large in pairwise(pairs) for place in (0, 1)
        )


def test_the_jobs_of_table_2_are_not_those_of_the_text() -> None:
    assert sum(month.jobs for month in TABLE_2) == 28290 != KTH_JOBS


def test_the_best_in_table_2_is_as_the_text_says() -> None:
    assert wins([(month.easy, month.conservative) for month in TABLE_2]) == (7, 4, 1)


@pytest.mark.parametrize(
    ("policy", "place", "mean"), [("easy", 0, 81.2), ("conservative", 1, 83.9)]
)
def test_the_mean_of_table_2_is_the_row_of_users_in_table_3(
    policy: str, place: int, mean: float
) -> None:
    total = sum(month.jobs * getattr(month, policy) for month in TABLE_2)
    assert total / sum(month.jobs for month in TABLE_2) == pytest.approx(mean, abs=0.05)
    assert round(mean) == TABLE_3[USERS][place]


def test_table_3_says_what_the_text_concludes() -> None:
    drawn = {factor: pair for factor, pair in TABLE_3.items() if factor != USERS}
    for place in (0, 1):
        assert TABLE_3[USERS][place] > max(pair[place] for pair in drawn.values())
        assert min(drawn[factor][place] for factor in (4, 11, 31)) < drawn[1][place]
    assert all(conservative <= easy for easy, conservative in drawn.values())


def test_the_percentages_of_figure_11() -> None:
    assert round(100 * FIGURE_11_FULL / FIGURE_11_JOBS) == 16
    assert round(100 * FIGURE_11_KILLED / FIGURE_11_FULL, 1) == 99.7


# ------------------------------------------------------------------------------------------------
# claims


def month(label: str, easy: float, conservative: float, jobs: int = 100) -> MonthFigures:
    return MonthFigures(label, jobs, {"easy": easy, "conservative": conservative})


def verdicts(claims: list[Claim]) -> dict[str, str]:
    return {one.name.partition(".")[2]: one.verdict for one in claims}


@pytest.mark.parametrize(
    ("easy_wins", "verdict"), [(9, HOLDS), (10, FAILS), (2, HOLDS), (1, FAILS)]
)
def test_more_than_nine_of_eleven_months_is_domination(easy_wins: int, verdict: str) -> None:
    months = [month(str(place), *((1, 2) if place < easy_wins else (2, 1))) for place in range(11)]
    months.append(month("tie", 2.1, 1.9))
    found = domination("table2", months)
    assert found.verdict == verdict
    assert f"EASY is better in {easy_wins}" in found.numbers
    assert "1 ties" in found.numbers


def test_one_month_shows_nothing_of_domination() -> None:
    assert domination("table2", [month("a", 1, 2)]).verdict == UNCHECKED


def test_the_printed_table_2_against_itself_is_within_and_its_claims_hold() -> None:
    months = [month(one.label, one.easy, one.conservative, one.jobs) for one in TABLE_2]
    made = table_2(months, "whole", is_kth=True)
    assert {
        row[f"{policy}_verdict"] for row in made.rows for policy in ("easy", "conservative")
    } == {"within"}
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
        FactorFigures(
            factor,
            {
                name: interval([value - 1, value + 1])
                for name, value in zip(names, pair, strict=True)
            },
        )
        for factor, pair in values.items()
    ]


def test_the_printed_table_3_against_itself_is_within_and_its_claims_hold() -> None:
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
def test_each_claim_of_table_3_can_fail(
    changes: dict[int | str, tuple[float, float]], broken: str
) -> None:
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


def point(
    load: float, fcfs: float, easy: float, conservative: float, share: float = 0.5
) -> LoadFigures:
    slowdown = {"fcfs": fcfs, "easy": easy, "conservative": conservative}
    return LoadFigures(load, slowdown, {"fcfs": 0.0, "easy": share, "conservative": share + 0.01})


def test_the_claims_of_figures_9_and_10() -> None:
    good = [
        point(0.5, 20, 10, 10),
        point(0.7, 100, 20, 21),
        point(0.9, 500, 30, 28),
        point(1.0, 900, 80, 70, 0.95),
    ]
    assert set(verdicts(claims_of_figures_9_and_10(good)).values()) == {HOLDS}
    bad = [point(0.7, 50, 20, 30), point(1.0, 900, 70, 80)]
    found = verdicts(claims_of_figures_9_and_10(bad))
    assert {name for name, verdict in found.items() if verdict == HOLDS} == {
        "conservative-backfills-more"
    }


def test_figure_11_next_to_the_printed_counts() -> None:
    found = EstimateFigures(20054, 0, 3215, 3204, 500, 793, 60.0, 0.5, 0.9, (*[100] * 100, 3215))
    assert {row["verdict"] for row in table_11(found, is_kth=True).rows} == {"within", "-"}
    assert set(verdicts(claims_of_figure_11(found, has_kills=True)).values()) == {HOLDS}
    assert verdicts(claims_of_figure_11(found, has_kills=False))["killed"] == UNCHECKED
