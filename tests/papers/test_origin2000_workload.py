"""What the paper says of its workload, held to the printed table and to drawn months, both ways."""

from dataclasses import replace

import pytest

from qbatch.papers import origin2000_claims as printed
from qbatch.papers.origin2000 import DrawnMonth, drawn_month
from qbatch.papers.origin2000_claims import EXPECTED, figure_1, statistics, table_4, workload_claims
from qbatch.papers.record import CONTRADICTED, FAILS, HOLDS, UNDECIDED
from qbatch.workloads.origin2000 import CLASSES, MONTHS, generate_month


@pytest.fixture(scope="module")
def drawn() -> list[DrawnMonth]:
    return [drawn_month(month, seed) for month in ("1999-12", "2000-01") for seed in (1, 2, 3)]


def verdicts(drawn: list[DrawnMonth]) -> dict[str, str]:
    return {claim.name: claim.verdict for claim in workload_claims(drawn, [])}


def test_the_printed_table_is_that_of_the_paper() -> None:
    assert {name: sum(month.counts) for name, month in MONTHS.items()} == printed.TOTAL_JOBS
    assert sum(printed.TOTAL_JOBS.values()) == 45_387
    assert sorted(hour for hours in printed.PERIODS.values() for hour in hours) == list(range(24))


def test_arrivals_by_hour_are_those_of_the_weekdays_of_the_log(drawn: list[DrawnMonth]) -> None:
    submit = generate_month("1999-12", seed=2, warmup_days=0)["submit"].tolist()
    # December 1999 began on a Wednesday: 23 weekdays.
    nine = [
        second for second in submit if second // 3600 % 24 == 9 and (second // 86_400 + 2) % 7 < 5
    ]
    assert drawn[1].hourly[9] == pytest.approx(len(nine) / 23)


def test_the_tables_stand_on_the_drawn_months(drawn: list[DrawnMonth]) -> None:
    rows = {row["month"]: row for row in table_4(drawn).rows}
    assert rows["1999-12"]["procs_drawn"] == pytest.approx(
        sum(sum(one.procs) for one in drawn[:3]) / 3
    )
    assert (rows["1999-12"]["lj"], rows["2000-01"]["lt_mj"]) == (34, 6)
    assert rows["2000-03"]["procs_drawn"] is None
    assert [row["arrivals"] for row in figure_1(drawn).rows][9] == pytest.approx(
        sum(one.hourly[9] for one in drawn[:3]) / 3
    )
    row = next(row for row in statistics(drawn).rows if row["name"] == "serial jobs")
    values = [one.statistics["serial jobs"] for one in drawn]
    assert (row["least"], row["most"]) == (min(values), max(values))


def test_what_r004_says_of_table_4(drawn: list[DrawnMonth]) -> None:
    found = verdicts(drawn)
    assert [found[name] for name in ("A.counts-add-up", "A.demands-add-up", "A.mt_lj")] == [
        HOLDS
    ] * 3
    assert found["A.lt_mj"] == CONTRADICTED
    (claim,) = [claim for claim in workload_claims(drawn, []) if claim.name == "A.lt_mj"]
    assert "2000-01 6" in claim.numbers
    assert (
        claim.why
        == "the text says 1 to 5 %, Table 4 prints 6 % for 2000-01; the generated months follow the table"
    )
    assert not replace(claim, expected=CONTRADICTED).is_breach


def test_a_month_that_is_not_as_the_table_is_ours_to_answer_for(drawn: list[DrawnMonth]) -> None:
    place = CLASSES.index("lt_mj")
    odd = replace(
        drawn[0],
        procs=tuple(9.0 if each == place else share for each, share in enumerate(drawn[0].procs)),
    )
    (claim,) = [
        claim for claim in workload_claims([odd, *drawn[1:]], []) if claim.name == "A.lt_mj"
    ]
    assert claim.verdict == FAILS
    assert replace(claim, expected=EXPECTED["A.lt_mj"]).is_breach


def test_what_is_said_of_the_jobs_holds_of_drawn_months(drawn: list[DrawnMonth]) -> None:
    found = verdicts(drawn)
    assert {
        name: verdict for name, verdict in found.items() if name.startswith("F.")
    } == dict.fromkeys(("F.arrival-periods", *printed.STATEMENTS), HOLDS)
    assert verdicts(drawn[:1])["F.arrival-periods"] == UNDECIDED


@pytest.mark.parametrize("name", printed.STATEMENTS)
def test_one_month_outside_is_enough_against_a_statement(
    drawn: list[DrawnMonth], name: str
) -> None:
    statistic = printed.STATEMENTS[name][1][0]
    odd = replace(drawn[0], statistics=drawn[0].statistics | {statistic: 0.01})
    found = verdicts([odd, *drawn[1:]])
    assert found[name] == FAILS
    assert [other for other in printed.STATEMENTS if found[other] == FAILS] == [name]


def test_a_month_with_other_demands_or_flat_arrivals_fails(drawn: list[DrawnMonth]) -> None:
    more = replace(drawn[0], procs=tuple(2 * share for share in drawn[0].procs))
    found = verdicts([more, *drawn[1:]])
    assert [found["A.demands-add-up"], found["A.mt_lj"]] == [FAILS, FAILS]
    flat = [
        replace(
            one,
            hourly=tuple(10.0 if 9 <= hour < 18 else 9.0 + 0.1 * one.seed for hour in range(24)),
        )
        for one in drawn
    ]
    assert (
        verdicts([replace(one, hourly=tuple(reversed(one.hourly))) for one in drawn])[
            "F.arrival-periods"
        ]
        == FAILS
    )
    assert verdicts(flat)["F.arrival-periods"] in (UNDECIDED, FAILS)
    assert CLASSES[-2] == "mt_lj"
