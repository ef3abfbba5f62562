"""The paper of group optimisation: verdicts and tables on made-up numbers."""

import re
from collections.abc import Callable

import pytest

from qbatch.papers import scojo, scojo_claims
from qbatch.papers.evidence import above, change_interval
from qbatch.papers.record import CONTRADICTED, FAILS, HOLDS, UNCHECKED, UNDECIDED, Claim
from qbatch.papers.replicas import Replicas
from qbatch.papers.scojo import (
    BOTTOM,
    BOTTOM_ALONE,
    EXACT,
    GROUPS,
    GROUPS_ALONE,
    LEX,
    MODEL,
    NO_DYNAMIC,
    NO_LEVEL2,
    RESPONSE,
    SCHEMES,
    SCOJO,
    SCOJO_ALONE,
    WIDTHS,
    Facts,
    Runs,
    ScojoCase,
    ScojoCell,
    ScojoFigures,
    ScojoSource,
    Source,
    cell_name,
    only,
    pooled,
    sized,
    slowdown,
)
from qbatch.papers.scojo_claims import change, groups_table, nodes_table, sizes_table
from qbatch.policies.slice_rules import NAMES

# ------------------------------------------------------------------------------------------------
# verdicts

FACTS = Facts([0.64, 0.195, 0.165], [0.005, 0.262, 0.733], [8.8, 16.8, 20.2], 820.0, 0.8, 0.06, 0.6)
Numbers = Callable[[str, str, str, str], float]
"""Of a scheme, a field of its cells, a class and a width (``all`` for both): the number."""


def made(
    numbers: Numbers, groups: Callable[[str], int] = lambda scheme: 60, used: float = 0.0
) -> Runs:
    """Return replicas of six workloads with made-up numbers, near each other."""
    made_runs = []
    for workload in range(6):
        for scheme in SCHEMES:
            cells = {
                cell_name(kind, width): ScojoCell(
                    10,
                    *(
                        numbers(scheme, field, kind, width) * _jitter(scheme, workload)
                        for field in FIELDS
                    ),
                )
                for kind in ("all", *NAMES)
                for width in ("all", *WIDTHS)
            }
            count = groups(scheme) + workload % 2
            loss = used if scheme == GROUPS else 0.0
            made_runs.append(
                ScojoFigures(
                    ScojoCase(MODEL, workload, EXACT, scheme),
                    FACTS,
                    cells,
                    0.8 - loss + workload / 1e5,
                    [0, 1, count - 1],
                    [0, 1, 2],
                    1000,
                    50 + workload,
                )
            )
    return held("model", made_runs)


def held(slug: str, runs: list[ScojoFigures]) -> Runs:
    """Return runs of one source."""
    return Replicas(Source(slug), ((one.case.scheme, one.case.workload, one) for one in runs))


FIELDS = ("slowdown", "plain_slowdown", "worst", "response_s", "wait_s")


def _jitter(scheme: str, workload: int) -> float:
    """Return a little noise, so that intervals have a length."""
    return 1 + 1e-4 * ((len(scheme) * 7 + workload * 3) % 5)


def by_name(claims: list[Claim]) -> dict[str, Claim]:
    return {claim.name: claim for claim in claims}


def as_printed(scheme: str, field: str, kind: str, width: str) -> float:
    """Return numbers of a world in which all is as the paper has it."""
    if width == "wide":
        gain = {GROUPS: 1.2, GROUPS_ALONE: 1.2, BOTTOM: 0.9, BOTTOM_ALONE: 0.9, NO_LEVEL2: 1.21}
    else:
        by_kind = {"short": 0.95, "medium": 0.88, "long": 0.85, "all": 0.87}
        gain = {GROUPS: by_kind[kind], GROUPS_ALONE: {"long": 0.75, "medium": 0.85}.get(kind, 0.97)}
        gain |= {BOTTOM: gain[GROUPS] * 1.12, BOTTOM_ALONE: gain[GROUPS_ALONE] * 1.12}
        gain |= {NO_LEVEL2: gain[GROUPS] * 1.04, NO_DYNAMIC: gain[GROUPS]}
    if field in ("response_s", "wait_s"):
        gain |= {GROUPS: 0.88, GROUPS_ALONE: 0.86, NO_LEVEL2: 0.93, SCOJO_ALONE: 1 / 0.73}
        gain |= {
            NO_DYNAMIC: 0.88 * {"short": 1.09, "medium": 1.08, "long": 1.01, "all": 1.06}[kind]
        }
        gain[GROUPS_ALONE] = 0.86 * gain[SCOJO_ALONE]
    if field == "worst":
        gain |= {GROUPS_ALONE: {"long": 1.3, "medium": 0.8}.get(kind, 1.0), SCOJO_ALONE: 1.0}
    for medium in scojo.SIZES:
        for long in scojo.SIZES:
            worse = (
                (1.0 if long == 30 else 1.1) if kind == "long" else (1.05 if medium == 10 else 1.0)
            )
            gain[sized(medium, long)] = gain[GROUPS] * worse
    return 1000 * gain.get(scheme, 1.0)


def test_every_claim_holds_in_a_world_as_the_paper_has_it() -> None:
    model = made(as_printed, lambda scheme: 90 if scheme == GROUPS_ALONE else 60, used=0.01)
    claims = by_name(scojo_claims.all_claims(model, {}) + scojo_claims.sizes(model))
    found = {name: claim.verdict for name, claim in claims.items() if claim.verdict != HOLDS}
    logs = {
        f"{figure}.{slug}": UNCHECKED
        for slug in ("sdsc-blue", "lanl")
        for figure in ("t6", "t7", "f21")
    }
    assert found == {
        "gains.size": CONTRADICTED,
        "f16.by-seed": UNCHECKED,
        "abstract.gains": FAILS,
        **logs,
    }
    assert "18 to 32 % (abstract)" in claims["gains.size"].text
    assert "medium -12" in claims["gains.size"].numbers


def test_claims_of_a_gain_fail_where_there_is_a_loss() -> None:
    def numbers(scheme: str, field: str, kind: str, width: str) -> float:
        loss = {GROUPS: 1.3, GROUPS_ALONE: 1.3, SCOJO_ALONE: 1.0, NO_DYNAMIC: 1.0, NO_LEVEL2: 1.0}
        return 1000 * (2 - loss.get(scheme, 1.0) if width == "wide" else loss.get(scheme, 1.0))

    model = made(numbers, lambda scheme: 30)
    claims = by_name(scojo_claims.all_claims(model, {}))
    signs = (
        "f16.medium",
        "f16.long",
        "f16.narrow-medium",
        "f16.wide",
        "f16.text-medium",
        "f16.text-long",
        "abstract.gains",
        "conclusion.gains",
        "f23.response",
        "f23.by-12",
        "f24.wait",
        "f24.by-10",
        "f25.wait",
        "f25.by-5",
        "f27.gains",
        "f27.by-2-to-6",
        "f27.wide",
        "f28.response",
        "f29.wait",
        "f30.long",
        "f30.medium",
        "f30.long-25",
        "f30.medium-15",
        "f30.short-little",
        "f37.medium",
        "f38.by-12",
        "f38.response",
        "f39.by-12",
        "f39.wait",
        "f40.better",
        "f40.wide",
        "f41.better",
        "t7.count",
    )
    assert {name: claims[name].verdict for name in signs} == dict.fromkeys(signs, FAILS)
    assert claims["gains.size"].verdict == CONTRADICTED, (
        "whatever we see, the paper says three things"
    )
    assert claims["t9.more"].verdict != HOLDS
    assert claims["f28.at-most-10"].verdict == HOLDS, "a loss is no gain above 10 %"


def test_claims_without_runs_or_with_one_workload_are_left_open() -> None:
    nothing = by_name(scojo_claims.all_claims(held("model", []), {}))
    assert nothing["f16.long"].verdict == UNDECIDED
    assert by_name(scojo_claims.gains(only(made(as_printed), 0)))["f16.long"].verdict == UNDECIDED


def log_run(scheme: str, long: float, facts: Facts, groups: list[int]) -> ScojoFigures:
    cells = {
        cell_name(kind, width): ScojoCell(10, long, long, long, 1.0, 1.0)
        for kind in ("all", *NAMES)
        for width in ("all", *WIDTHS)
    }
    return ScojoFigures(
        ScojoCase(ScojoSource("sdsc-blue", "SDSC-BLUE", 1152), 0, EXACT, scheme),
        facts,
        cells,
        0.8,
        groups,
        [0, 0, 0],
        0,
        0,
    )


def test_a_window_of_a_log_is_held_to_what_is_printed_of_it() -> None:
    near = Facts([0.75, 0.165, 0.085], [0.012, 0.15, 0.838], [33, 112, 110], 336, 0.76, 0.5, 0.7)
    far = Facts([0.60, 0.30, 0.10], [0.012, 0.15, 0.838], [33, 112, 110], 336, 0.76, 0.5, 0.7)
    model = made(as_printed)
    for facts, gain, groups, verdict in (
        (near, 0.99, [0, 9, 1], HOLDS),
        (far, 0.5, [0, 30, 1], FAILS),
    ):
        log = held(
            "sdsc-blue",
            [log_run(SCOJO, 4.0, facts, [0, 0, 0]), log_run(GROUPS, 4.0 * gain, facts, groups)],
        )
        claims = by_name(scojo_claims.on_log("sdsc-blue", model, log))
        assert {claim.verdict for claim in claims.values()} == {verdict}, claims
    assert "medium -50.0 % (the model -12" in claims["f21.sdsc-blue"].numbers


def test_changes_are_averaged_by_logarithms() -> None:
    found = change_interval([0.5, 2.0])
    assert found.mean == pytest.approx(0.0), "half and twice take each other back"
    assert change({0: 0.9}) == "-10.0"
    assert change({}) is None
    assert re.fullmatch(r"-10\.0 \[-1[0-9.]+, -[0-9.]+\]", change({0: 0.89, 1: 0.9, 2: 0.91}) or "")
    assert above("a", [1.1, 1.1, 1.1001], 9.0, " %", is_change=True).says == "yes"
    assert above("a", [1.1, 1.1, 1.1001], 11.0, " %", is_change=True).says == "no"


# ------------------------------------------------------------------------------------------------
# tables


def test_tables_have_the_printed_numbers_next_to_ours() -> None:
    model = made(as_printed)
    rows = {row["workload"]: row for row in groups_table([model], GROUPS).rows}
    assert list(rows) == ["71", "31", "73", "35", "7", "13", "mean of 6"]
    assert (rows["71"]["printed"], rows["13"]["printed_percent"]) == ("24 + 31", "16.5")
    assert rows["mean of 6"]["total"] == pytest.approx(60.5)
    without = {row["workload"]: row for row in groups_table([model], GROUPS_ALONE).rows}
    assert without["13"]["printed"] is None
    nodes = {row["workload"]: row for row in nodes_table(model).rows}
    assert nodes["35"]["printed_percent"] == pytest.approx(8.36, abs=0.01), "the paper prints 9"
    assert nodes["35"]["lex_percent"] == model.runs(LEX)[3].pruned / 10
    sizes = {(row["medium"], row["long"]): row for row in sizes_table(model).rows}
    assert len(sizes) == 16
    assert sizes[20, 30]["printed_long"] == 7.46
    assert sizes[20, 30]["change_long"] == "0.0 [0.0, 0.0]"
    assert str(sizes[20, 10]["change_long"]).startswith("10.0 [")


def test_changes_are_reported_by_class_and_by_width() -> None:
    model = made(as_printed)
    by_class, by_width = scojo_claims.change_tables(
        [model], "x", "X", [(GROUPS, SCOJO), (GROUPS, BOTTOM)]
    )
    assert [row["base"] for row in by_class.rows] == [SCOJO, BOTTOM]
    assert str(by_class.rows[0]["long"]).startswith("-15.0 [")
    assert str(by_class.rows[0]["response"]).startswith("-12.0 [")
    assert str(by_width.rows[0]["long_wide"]).startswith("20.0 [")
    assert by_class.rows[0]["workloads"] == 6
    none = scojo_claims.change_tables([held("kth", [])], "x", "X", [(GROUPS, SCOJO)])
    assert none[0].rows == []


def test_replicas_pair_by_workload() -> None:
    model = made(as_printed)
    assert model.numbers == list(range(6))
    ratio = model.ratio(GROUPS, SCOJO, RESPONSE)
    assert set(ratio) == set(range(6))
    assert ratio[3] == pytest.approx(0.88, abs=1e-3)
    assert only(model, 2).of(SCOJO, slowdown("long")) == {2: model.of(SCOJO, slowdown("long"))[2]}
    assert model.of("no such scheme", RESPONSE) == {}
    whole = pooled("all", [model, only(model, 2)])
    assert whole.numbers == [0, 1, 2, 3, 4, 5, 1002]
    assert whole.ratio(GROUPS, SCOJO, RESPONSE)[1002] == ratio[2]
