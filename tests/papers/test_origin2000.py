"""The paper of the Origin 2000 on a short part of two months, and its verdicts on made-up numbers,
both ways."""

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from qbatch.cli.main import app
from qbatch.metrics import interval, measure
from qbatch.model.errors import UsageError
from qbatch.model.record import Schedule
from qbatch.papers import evidence
from qbatch.papers import origin2000_claims as claims_of_paper
from qbatch.papers.harness import Runner
from qbatch.papers.markdown import markdown_of
from qbatch.papers.origin2000 import (
    BOUNDED,
    POLICIES,
    Origin2000Case,
    Origin2000Figures,
    Origin2000Study,
    simulate,
    study_of,
    workload_of,
)
from qbatch.papers.origin2000_claims import EXPECTED, RUNS, WHY, Months, expected, outcome_of, whole
from qbatch.papers.record import (
    CONTRADICTED,
    FAILS,
    HOLDS,
    UNCHECKED,
    UNDECIDED,
    VERDICTS,
    PaperOutcome,
)
from qbatch.papers.replicas import scaled
from qbatch.policies import load_policy
from qbatch.simulation import Options, prepare, run
from qbatch.workloads.machines import load_machine
from qbatch.workloads.origin2000 import CLASSES, generate_month

MONTHS = ("1999-12", "2000-02")
STUDY = Origin2000Study(MONTHS, (1, 2), days=1, warmup_days=1)


@pytest.fixture(scope="module")
def found() -> list[Origin2000Figures]:
    return Runner(workers=1).runs(RUNS, STUDY.cases())


@pytest.fixture(scope="module")
def outcome(found: list[Origin2000Figures]) -> PaperOutcome:
    return outcome_of(STUDY, found)


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["paper", "origin2000", *arguments])


# ------------------------------------------------------------------------------------------------
# runs


def test_every_month_seed_and_policy_is_run_once(found: list[Origin2000Figures]) -> None:
    assert [one.case for one in found] == STUDY.cases()
    assert len(set(STUDY.cases())) == len(found) == 2 * 2 * len(POLICIES)


def test_only_the_month_counts_and_the_warm_up_runs(found: list[Origin2000Figures]) -> None:
    log = generate_month("1999-12", seed=1, warmup_days=1)
    submit = np.asarray(log["submit"])
    inside = int(np.count_nonzero((submit >= 86_400) & (submit < 2 * 86_400)))
    assert {one.jobs for one in found if one.case.month == "1999-12" and one.case.seed == 1} == {
        inside
    }
    assert len(workload_of("1999-12", 1, 1, 1)) > inside


@pytest.mark.parametrize("policy", ["LSF*", "/immediate", "EQ-5m"])
def test_the_numbers_are_those_of_a_replay_by_hand(policy: str) -> None:
    machine = load_machine("origin2000")
    log = generate_month("1999-12", seed=2, warmup_days=1)
    work = prepare(log, machine, Options(counted_from="86400", before=str(2 * 86_400)))
    schedule = run(work, machine, load_policy(POLICIES[policy]))
    found = simulate(Origin2000Case("1999-12", 2, policy, 1, 1))
    assert found.whole == {
        **measure(schedule, costly=False),
        BOUNDED: pytest.approx(minute_slowdown(schedule)),
    }


def minute_slowdown(schedule: Schedule) -> float:
    """Return the mean slowdown bounded by a minute, job by job."""
    work = schedule.workload
    ratios = [
        max(1.0, (end - submit) / max(run, 60_000_000))
        for submit, end, run, is_counted in zip(
            work.submit.tolist(),
            schedule.end.tolist(),
            work.run.tolist(),
            work.counted.tolist(),
            strict=True,
        )
        if is_counted
    ]
    return sum(ratios) / len(ratios)


def test_classes_and_ranges_add_up_to_the_whole(found: list[Origin2000Figures]) -> None:
    for one in found:
        for groups in (one.classes, one.ranges):
            assert sum(int(group["jobs"] or 0) for group in groups.values()) == one.jobs
            waited = sum(
                int(group["jobs"] or 0) * float(group["wait_mean_s"] or 0)
                for group in groups.values()
            )
            assert waited / one.jobs == pytest.approx(
                float(one.whole["wait_mean_s"] or 0), abs=1e-6
            )
            slowed = sum(
                int(group["jobs"] or 0) * float(group[BOUNDED] or 0) for group in groups.values()
            )
            assert slowed / one.jobs == pytest.approx(float(one.whole[BOUNDED] or 0))
            assert slowed / one.jobs >= 1


def test_only_lsf_reports_specials_and_only_equal_shares_places(
    found: list[Origin2000Figures],
) -> None:
    assert {one.case.policy for one in found if one.kept_idle is not None} == {"LSF*"}
    placed = {one.case.policy: one.placed for one in found if one.placed is not None}
    assert set(placed) == {"EQ-5m", "EQ-0m", "EQ-5m/>50hr"}
    assert all(0 < float(share or 0) <= 1 for share in placed.values())


def test_the_longest_waits_are_a_twentieth_of_the_jobs_longest_first(
    found: list[Origin2000Figures],
) -> None:
    for one in found:
        waits = [wait for _, wait in one.top]
        assert len(waits) == one.jobs // 20
        assert waits == sorted(waits, reverse=True)
        assert waits[0] == one.whole["wait_max_s"]


def test_a_pool_gives_what_one_process_gives() -> None:
    study = Origin2000Study(("1999-12",), (1,), ("LSF*", "FCFS-bf"), days=1, warmup_days=1)
    calls: list[tuple[int, int]] = []
    pool = Runner(lambda _, done, of: calls.append((done, of)), workers=2)
    assert pool.runs(RUNS, study.cases()) == Runner(workers=1).runs(RUNS, study.cases())
    assert calls == [(0, 2), (1, 2), (2, 2)]


# ------------------------------------------------------------------------------------------------
# tables


def test_the_tables_have_a_line_for_all_that_was_run(outcome: PaperOutcome) -> None:
    rows = {table.name: len(table.rows) for table in outcome.tables}
    assert rows == {
        "figure3": len(CLASSES),
        "figure4": 7,
        "figure5": 14,
        "figure5-months": 6,
        "figure7": 8,
        "figure8": 6,
        "figure9": 7,
        "figure10": 8,
        "reservations": 12,
        "shares": 2,
        "table4": 6,
        "figure1": 24,
        "statistics": 14,
    }


def test_a_cell_is_the_mean_over_the_replicas_in_hours(
    outcome: PaperOutcome, found: list[Origin2000Figures]
) -> None:
    table = next(table for table in outcome.tables if table.name == "figure5-months")
    row = next(row for row in table.rows if row["month"] == "2000-02" and row["policy"] == "LSF*")
    waits = [
        one.whole["wait_mean_s"]
        for one in found
        if one.case.month == "2000-02" and one.case.policy == "LSF*"
    ]
    expected = interval([float(wait or 0) / 3600 for wait in waits])
    assert row["replicas"] == 2
    assert row["mean"] == pytest.approx(expected.mean)
    assert row["mean_half"] == pytest.approx((expected.high or 0) - (expected.mean or 0))


@pytest.mark.parametrize(
    "name",
    ["figure5", "figure5-months", "figure7", "figure8", "figure9", "figure10", "reservations"],
)
def test_tables_with_a_slowdown_have_it_raw_and_bounded(outcome: PaperOutcome, name: str) -> None:
    table = next(table for table in outcome.tables if table.name == name)
    headings = [column.heading for column in table.columns]
    raw = [heading for heading in headings if heading.endswith("slowdown")]
    assert raw
    assert [f"{heading} 60 s" for heading in raw] == [
        heading for heading in headings if heading.endswith("slowdown 60 s")
    ]


def test_every_row_of_r004_has_a_claim(outcome: PaperOutcome) -> None:
    assert {claim.name.partition(".")[0] for claim in outcome.claims} == set("AF123456789")
    assert len({claim.name for claim in outcome.claims}) == len(outcome.claims)
    assert {claim.verdict for claim in outcome.claims} <= set(VERDICTS)


def test_every_picture_can_be_drawn(outcome: PaperOutcome) -> None:
    pytest.importorskip("matplotlib")
    assert len(outcome.pictures) == 9
    for draw in outcome.pictures.values():
        figure = draw()
        assert figure.axes
        for axes in figure.axes:
            # The whole of the highest bar is to be seen.
            assert max((bar.get_height() for bar in axes.patches), default=0) <= axes.get_ylim()[1]


# ------------------------------------------------------------------------------------------------
# verdicts


@pytest.mark.parametrize(
    ("values", "above", "below", "inside"),
    [
        ([2.0, 2.1, 2.2], "yes", "no", "no"),
        ([0.2, 0.1, 0.3], "no", "yes", "no"),
        ([1.0, 1.01, 0.99], "open", "open", "yes"),
        ([0.0, 2.0, 1.0], "open", "open", "open"),
        ([2.0], "open", "open", "open"),
    ],
)
def test_a_comparison_is_yes_or_no_only_if_the_whole_interval_is(
    values: list[float], above: str, below: str, inside: str
) -> None:
    assert evidence.above("", values, 1.0).says == above
    assert evidence.below("", values, 1.0).says == below
    assert evidence.inside("", values, 0.9, 1.1).says == inside


def test_ratios_have_intervals_that_their_inverses_agree_on() -> None:
    values = [1.5, 8.0, 40.0]
    found, inverse = (
        evidence.ratio_interval(values),
        evidence.ratio_interval([1 / value for value in values]),
    )
    assert (
        found.mean
        == pytest.approx((1.5 * 8 * 40) ** (1 / 3))
        == pytest.approx(1 / (inverse.mean or 0))
    )
    assert found.low == pytest.approx(1 / (inverse.high or 0))
    assert evidence.ratio_interval([0.0, 0.0]).mean == pytest.approx(0.001)
    assert evidence.above("", [9.0, 30.0, 100.0, 60.0], 2.0, is_ratio=True).says == "yes"
    assert evidence.above("", [9.0, 30.0, 100.0, 60.0], 2.0).says == "open"


@pytest.mark.parametrize(
    ("says", "verdict"),
    [
        (["yes", "yes"], HOLDS),
        (["yes", "no", "open"], FAILS),
        (["yes", "open"], UNDECIDED),
        ([], UNCHECKED),
    ],
)
def test_what_comparisons_add_up_to(says: list[str], verdict: str) -> None:
    assert evidence.verdict_of(says) == verdict


def made(
    policy: str,
    seed: int,
    month: str = "2000-02",
    *,
    mean: float = 1.0,
    p95: float = 5.0,
    longest: float = 20.0,
    slowdown: float = 10.0,
    very_long: float = 20.0,
    **more: Any,
) -> Origin2000Figures:
    """Return a run with these hours of wait, a little more with each seed."""
    part = 1 + seed / 1000
    numbers: dict[str, float | int | None] = {
        "wait_mean_s": mean * 3600 * part,
        "wait_p95_s": p95 * 3600 * part,
        "wait_max_s": longest * 3600 * part,
        "slowdown_mean": slowdown * part,
        "jobs": 100,
    }
    classes = more.pop(
        "classes", {name: {"jobs": 5, "wait_mean_s": mean * 3600 * part} for name in CLASSES}
    )
    ranges = {">100h": {"jobs": 5, "wait_max_s": very_long * 3600 * part}}
    case = Origin2000Case(month, seed, policy)
    return Origin2000Figures(
        case, 100, numbers, more.pop("longer", numbers), classes, ranges, **more
    )


def replicas(*policies: tuple[str, dict[str, Any]]) -> list[Origin2000Figures]:
    return [made(policy, seed, **numbers) for policy, numbers in policies for seed in (1, 2, 3)]


def judged(
    row: Callable[..., list[Any]],
    runs: list[Origin2000Figures],
    months: tuple[str, ...] = ("2000-02",),
) -> dict[str, str]:
    return {claim.name.partition(".")[2]: claim.verdict for claim in row(Months(months, runs))}


def test_row_1_both_ways() -> None:
    long = {"mean": 3.0, "p95": 9.0, "longest": 99.0}
    holds = judged(
        claims_of_paper.row_1,
        replicas(("LSF*", long), ("FCFS-bf", {}), ("Priority-bf", {"mean": 1.1})),
    )
    assert holds == {"lsf-is-worse": HOLDS, "backfills-are-alike": HOLDS}
    fails = judged(
        claims_of_paper.row_1, replicas(("LSF*", {}), ("FCFS-bf", long), ("Priority-bf", {}))
    )
    assert fails == {"lsf-is-worse": FAILS, "backfills-are-alike": FAILS}


@pytest.mark.parametrize(("idle", "verdict"), [(0.01, HOLDS), (0.08, FAILS)])
def test_row_2_both_ways(idle: float, verdict: str) -> None:
    runs = [made("LSF*", seed, kept_idle=idle + seed / 10_000) for seed in (1, 2, 3)]
    assert judged(claims_of_paper.row_2, runs) == {"idle-under-specials": verdict}


@pytest.mark.parametrize(("steady", "verdict"), [("Priority-bf", HOLDS), ("LSF*", FAILS)])
def test_row_3_both_ways(steady: str, verdict: str) -> None:
    runs = [
        made(
            policy, seed, month, mean=1.0 if policy == steady or month == MONTHS[0] else 3.0 + seed
        )
        for policy in ("LSF*", "Priority-bf")
        for month in MONTHS
        for seed in (1, 2, 3)
    ]
    assert judged(claims_of_paper.row_3, runs, MONTHS) == {"lsf-varies-more": verdict}
    assert judged(claims_of_paper.row_3, runs, MONTHS[:1]) == {"lsf-varies-more": UNCHECKED}


def test_row_4_both_ways() -> None:
    short = {"mean": 0.5, "p95": 2.0, "slowdown": 3.0, "longest": 30.0}
    shorter = {"mean": 0.4, "p95": 1.0, "slowdown": 2.0, "longest": 60.0}
    holds = judged(
        claims_of_paper.row_4,
        replicas(("Priority-bf", {}), ("LXF&W-bf", short), ("SJF-bf", shorter)),
    )
    assert set(holds.values()) == {HOLDS}
    fails = judged(
        claims_of_paper.row_4,
        replicas(("Priority-bf", shorter), ("LXF&W-bf", short), ("SJF-bf", {})),
    )
    assert set(fails.values()) == {FAILS}


@pytest.mark.parametrize(("mean", "verdict"), [(1.0, HOLDS), (0.5, FAILS)])
def test_row_5_both_ways(mean: float, verdict: str) -> None:
    more = {"mean": mean}
    runs = replicas(
        ("Priority-bf", {}), *((f"Priority-bf, D={depth}", {}) for depth in ("2", "4", "8", "16"))
    )
    runs += replicas(("Priority-bf, D=all", more))
    assert judged(claims_of_paper.row_5, runs) == {"one-reservation-is-enough": verdict}
    (claim,) = claims_of_paper.row_5(
        Months(("2000-02",), [one for one in runs if one.case.seed == 1])
    )
    assert "not judged: D=2 / D=1, max wait 1; " in claim.numbers


def test_row_6_both_ways() -> None:
    holds = judged(
        claims_of_paper.row_6,
        replicas(("LXF&W-bf", {}), ("/immediate", {"slowdown": 2.0}), ("/soon", {"slowdown": 5.0})),
    )
    assert set(holds.values()) == {HOLDS}
    harmed = {"mean": 2.0, "p95": 9.0, "longest": 60.0}
    fails = judged(
        claims_of_paper.row_6,
        replicas(("LXF&W-bf", {}), ("/immediate", harmed), ("/soon", {"slowdown": 5.0})),
    )
    assert set(fails.values()) == {FAILS}
    helped = {"mean": 0.5, "p95": 2.0, "longest": 9.0, "slowdown": 2.0}
    better = judged(
        claims_of_paper.row_6,
        replicas(("LXF&W-bf", {}), ("/immediate", helped), ("/soon", {"slowdown": 5.0})),
    )
    assert better["others-unharmed"] == HOLDS
    assert better["others-unchanged"] == FAILS


def test_row_7_both_ways() -> None:
    equal = {"p95": 1.0, "very_long": 90.0}
    holds = judged(
        claims_of_paper.row_7,
        replicas(
            ("/immediate", {}),
            ("EQ-5m", {**equal, "placed": 0.999}),
            ("EQ-0m", equal),
            ("EQ-5m/>50hr", {}),
        ),
    )
    assert set(holds.values()) == {HOLDS}
    other = {"p95": 9.0, "mean": 9.0, "very_long": 1.0}
    fails = judged(
        claims_of_paper.row_7,
        replicas(
            ("/immediate", {}),
            ("EQ-5m", {**other, "placed": 0.9}),
            ("EQ-0m", {}),
            ("EQ-5m/>50hr", {}),
        ),
    )
    assert set(fails.values()) == {FAILS}


@pytest.mark.parametrize(("busy", "verdict"), [("2000-02", HOLDS), ("2000-03", FAILS)])
def test_row_8_both_ways(busy: str, verdict: str) -> None:
    hours = {"LSF*": 8.0, "Priority-bf": 4.0, "/immediate": 2.0, "EQ-5m": 1.0}
    runs = [
        made(policy, seed, month, mean=mean * (3 if month == busy else 1))
        for policy, mean in hours.items()
        for month in ("2000-02", "2000-03")
        for seed in (1, 2, 3)
    ]
    assert judged(claims_of_paper.row_8, runs, ("2000-02", "2000-03")) == {
        "high-load-differs-more": verdict
    }


def test_row_9_both_ways() -> None:
    every = tuple((run_s, 9.0) for run_s in (30.0, 300.0, 3000.0, 30_000.0, 100_000.0))
    holds = [made("LSF*", seed, mean=9.0, longest=300.0, top=every) for seed in (1, 2, 3)]
    assert set(judged(claims_of_paper.row_9, holds).values()) == {HOLDS}
    fails = [made("LSF*", seed, mean=0.1, longest=30.0, top=every[1:]) for seed in (1, 2, 3)]
    assert judged(claims_of_paper.row_9, fails) == {
        "hours-or-tens": FAILS,
        "max-hundreds": FAILS,
        "at-all-run-times": UNDECIDED,
    }


def test_a_replica_is_one_seed_in_all_months() -> None:
    """Over the months a seed that one month lacks is left out, not matched with another; nor is a
    month a replica."""
    waits = {1: (1.0, 5.0), 2: (3.0, 70.0), 3: (4.0, 90.0)}
    runs = [
        made(policy, seed, month, mean=mean / (1 + seed / 1000))
        for seed, (low, high) in waits.items()
        for month, mean in (("2000-02", low), ("2000-03", high))
        for policy, mean in (("SJF-bf", mean), ("LXF&W-bf", 1.0))
        if (seed, month) != (1, "2000-02")
    ]
    months, mean = Months(("2000-02", "2000-03", "1999-10"), runs), whole("wait_mean_s")
    hours = scaled(months.of("SJF-bf", mean), 1 / 3600)
    assert hours == pytest.approx({2: (3 + 70) / 2, 3: (4 + 90) / 2})
    gaps = scaled(months.more("SJF-bf", "LXF&W-bf", mean), 1 / 3600)
    assert gaps == pytest.approx({2: (3 + 70) / 2 - 1, 3: (4 + 90) / 2 - 1})
    assert months.ratio("SJF-bf", "LXF&W-bf", mean) == pytest.approx(
        {2: (3 + 70) / 2, 3: (4 + 90) / 2}
    )
    assert len(months.at("2000-03").more("SJF-bf", "LXF&W-bf", mean)) == 3


def test_where_the_longest_waits_are_rests_on_replicas_and_not_on_months() -> None:
    """Two months that differ make no interval wider or narrower: there are three replicas, not
    six."""
    top = {
        "2000-02": ((30.0, 9.0),) * 3 + ((300.0, 9.0),),
        "2000-03": ((30.0, 9.0),) + ((300.0, 9.0),) * 3,
    }
    runs = [
        made("LSF*", seed, month, top=jobs) for month, jobs in top.items() for seed in (1, 2, 3)
    ]
    claim = claims_of_paper.row_9(Months(tuple(top), runs))[-1]
    assert "<1m, share of the 5 % 50 % [50, 50]" in claim.numbers


def test_a_claim_names_first_what_speaks_against_it() -> None:
    findings = [evidence.above("a", [2.0, 2.1], 1.0), evidence.above("b", [0.1, 0.11], 1.0)]
    claim, other = evidence.explained(
        [evidence.claim_of("x", "X", findings), evidence.claim_of("1.2.y", "Y", findings[:1])],
        {"x": "because", "y": "no reason is needed"},
        lambda name: UNDECIDED,
    )
    assert (claim.answers, claim.counts) == ({"yes": 1, "no": 1}, "1 yes, 1 no")
    assert claim.numbers.startswith("b 0.105")
    assert (claim.why, claim.expected) == ("because", UNDECIDED)
    assert not other.why
    assert evidence.explained([replace(other, verdict=FAILS)], {"y": "so"}, str)[0].why == "so"


def test_a_claim_of_every_month_shows_what_all_months_say_together() -> None:
    """One month against it, five clearly for it: it does not hold, and all months together say
    yes."""
    months = study_of().months
    longest = dict.fromkeys(months, 900.0) | {months[0]: 50.0}
    runs = [
        made("LSF*", seed, month, longest=hours)
        for month, hours in longest.items()
        for seed in (1, 2, 3)
    ]
    (claim,) = [
        one for one in claims_of_paper.row_9(Months(months, runs)) if one.name == "9.max-hundreds"
    ]
    assert (claim.verdict, claim.answers) == (FAILS, {"yes": 5, "no": 1})
    assert claim.together.startswith("1 yes: all months 76")


# ------------------------------------------------------------------------------------------------
# command


ONE_DAY = ("--months", "1999-12", "--days", "1", "--replicas", "1")


@pytest.fixture(scope="module")
def folder(
    tmp_path_factory: pytest.TempPathFactory, forms: Callable[..., None]
) -> tuple[Path, Any]:
    """Return the folder that a command has made, and the command."""
    pytest.importorskip("matplotlib")
    out = tmp_path_factory.mktemp("origin2000") / "made"
    forms("png")
    return out, invoke(*ONE_DAY, "--out", str(out), "--json", "-q")


def test_the_folder_has_the_document_and_the_runs_and_a_second_command_takes_them(
    folder: tuple[Path, Any], forms: Callable[..., None]
) -> None:
    out, printed = folder
    assert printed.exit_code == 0, printed.output
    first = json.loads(printed.stdout)
    assert first["paper"]["name"] == "origin2000"
    assert first["options"] == {"months": ["1999-12"], "seeds": [1], "days": 1, "warmup_days": 7}
    assert {claim["verdict"] for claim in first["claims"]} <= set(VERDICTS)
    assert json.loads((out / "tables.json").read_text()) == first
    assert (out / "results.md").read_text() == markdown_of(first)
    assert all((out / f"{name}.png").is_file() for name in first["pictures"])
    assert (out / "runs" / "runs.sqlite").is_file()
    forms()
    again = invoke(*ONE_DAY, "--out", str(out))
    assert f"{len(POLICIES)} of {len(POLICIES)} simulations were there already" in again.stderr
    assert "4.sjf-starves: not decidable" in again.stdout
    second = json.loads((out / "tables.json").read_text())
    assert (second["tables"], second["claims"]) == (first["tables"], first["claims"])


def test_the_verdicts_that_are_known_are_those_of_the_document() -> None:
    text = (Path(__file__).parents[2] / "docs" / "papers" / "origin2000-results.md").read_text(
        encoding="utf-8"
    )
    verdicts = dict(
        re.findall(r"^\| ([A-Z0-9]\.\S+): .*? \| \*\*([a-z ]+)\*\* \|", text, re.MULTILINE)
    )
    assert len(verdicts) == 35
    assert {name: verdict for name, verdict in verdicts.items() if verdict != HOLDS} == EXPECTED
    whole, part = study_of(), study_of(months=["1999-12"])
    assert {expected(name, whole) for name in verdicts} == {HOLDS, FAILS, CONTRADICTED, UNDECIDED}
    assert {expected(name, part) for name in verdicts} == {HOLDS, CONTRADICTED, UNDECIDED}
    assert set(WHY) >= {name for name, verdict in EXPECTED.items() if verdict == FAILS}


def test_a_check_fails_on_what_is_not_known_and_only_on_that(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    folder: tuple[Path, Any],
    forms: Callable[..., None],
) -> None:
    shutil.copytree(folder[0] / "runs", tmp_path / "made" / "runs")
    forms()
    asked = (*ONE_DAY, "--out", str(tmp_path / "made"), "--check")
    done = invoke(*asked)
    assert done.exit_code == 0, done.output
    assert "known not to hold: A.lt_mj (the paper contradicts itself)" in done.stderr
    monkeypatch.setitem(EXPECTED, "A.mt_lj", CONTRADICTED)  # type: ignore[arg-type]
    failed = invoke(*asked)
    assert failed.exit_code == 1
    assert "check: A.mt_lj: holds; known verdict: the paper contradicts itself" in failed.stderr


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(UsageError, match=r"--month '1999-21'.*1999-12"):
        study_of(months=["1999-21"])
    with pytest.raises(UsageError, match="--days is 30"):
        study_of(days=30)
    assert isinstance(invoke("some.swf").exception, UsageError)
    assert isinstance(
        CliRunner().invoke(app, ["paper", "sp2-backfilling", "--days", "2"]).exception, UsageError
    )
