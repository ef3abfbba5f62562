"""The paper of group optimisation: its runs, what is kept, the logs, and the command."""

import json
import math
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from qbatch.cli.main import app
from qbatch.model.errors import InputError, UsageError
from qbatch.model.machine import one_host
from qbatch.model.record import MICROSECONDS
from qbatch.papers import scojo, scojo_claims
from qbatch.papers.harness import Runner
from qbatch.papers.markdown import markdown_of
from qbatch.papers.record import CONTRADICTED, FAILS, HOLDS, UNCHECKED, UNDECIDED, VERDICTS
from qbatch.papers.scojo import (
    CONSERVATIVE,
    EASY,
    ESTIMATES,
    EXACT,
    FIGURES,
    GROUPS,
    INTERARRIVAL_S,
    LABELS,
    LEX,
    MODEL,
    ONE,
    PLAIN,
    SCHEMES,
    SCHEMES_OF,
    SCOJO,
    SIZES_PART,
    USERS,
    ScojoCase,
    ScojoFigures,
    ScojoSource,
    ScojoStudy,
    cells_of,
    counted_nodes,
    grouped_share,
    label_of,
    nodes_of,
    seed_of,
    simulate,
    sized,
    workload_of,
)
from qbatch.papers.scojo_claims import EXPECTED, RUNS, tree_table
from qbatch.policies import load_policy
from qbatch.simulation import run
from qbatch.simulation.calendar import Calendar
from qbatch.workloads import generate_log, parse_header, write_log
from qbatch.workloads.transform import taken

SMALL = ScojoStudy(2, jobs=40)


@pytest.fixture(scope="module")
def runs() -> list[ScojoFigures]:
    return Runner(workers=1).runs(RUNS, SMALL.cases(tuple(SCHEMES_OF)))


# ------------------------------------------------------------------------------------------------
# runs


@pytest.mark.parametrize("scheme", [SCOJO, EASY])
def test_the_figures_of_a_run_are_those_of_its_schedule(scheme: str) -> None:
    case = ScojoCase(MODEL, 1, USERS, scheme, 150)
    work = workload_of(case)
    schedule = run(
        work, one_host(128), load_policy(SCHEMES[scheme]), driver="engine", is_audited=True
    )
    found = simulate(case)
    cells: dict[str, list[int]] = {}
    for row in range(len(work)):
        run_s, procs = int(work.run[row]) / 1e6, int(work.procs[row])
        kind = "short" if run_s < 600 else "medium" if run_s < 10800 else "long"
        width = "narrow" if procs < 12.8 else "wide" if procs > 64 else "medium"
        for name in (kind, "all", f"{kind} {width}", f"all {width}"):
            cells.setdefault(name, []).append(row)
    assert set(found.cells) == set(cells)
    for name, rows in cells.items():
        responses = [int(schedule.end[row] - work.submit[row]) / 1e6 for row in rows]
        bounded = [
            max(1.0, response / max(int(work.run[row]) / 1e6, 600))
            for row, response in zip(rows, responses, strict=True)
        ]
        cell = found.cells[name]
        assert cell.jobs == len(rows)
        assert cell.slowdown == pytest.approx(sum(math.ceil(one) for one in bounded) / len(rows))
        assert cell.plain_slowdown == pytest.approx(sum(bounded) / len(rows))
        assert cell.worst == pytest.approx(max(bounded))
        assert cell.response_s == pytest.approx(sum(responses) / len(rows))
        waits = [int(schedule.start[row] - work.submit[row]) / 1e6 for row in rows]
        assert cell.wait_s == pytest.approx(sum(waits) / len(rows)), "to the first start"
    area = int((work.procs * work.run).sum())
    span = int(schedule.end.max() - work.submit.min())
    assert found.utilisation == pytest.approx(area / (128 * span))


def test_the_groups_of_a_run_are_those_that_the_policy_has_counted() -> None:
    case = ScojoCase(MODEL, 0, EXACT, GROUPS, 1500)
    found = simulate(case)
    calendar = Calendar(workload_of(case), one_host(128), load_policy("scojo-groups"))
    formed: list[int] = []
    seen: set[int] = set()

    def watch(engine, _done) -> None:  # type: ignore[no-untyped-def]
        for group in engine.view().memory.groups:
            if group is not None and id(group) not in seen:
                seen.add(id(group))
                kept.append(group)
                formed.append(len(group.rows))

    kept: list[object] = []
    calendar.run(watch)
    assert sum(found.groups) == len(formed) > 2
    assert found.groups[0] == 0, "short jobs form none"
    assert sum(found.grouped) >= sum(formed), "those that start at once have left the plan"
    assert found.nodes > found.pruned > 0
    there = found.cells["medium"].jobs + found.cells["long"].jobs
    assert grouped_share(found) == pytest.approx(sum(found.grouped) / there)
    assert simulate(ScojoCase(MODEL, 0, EXACT, EASY, 1500)).groups == [0, 0, 0]


def test_one_class_is_conservative_backfilling_where_run_times_are_known() -> None:
    one, other = (
        simulate(ScojoCase(MODEL, 2, EXACT, scheme, 300)) for scheme in (ONE, CONSERVATIVE)
    )
    assert one.cells == other.cells
    case = ScojoCase(MODEL, 2, USERS, ONE, 300)
    from_scratch = run(
        workload_of(case), one_host(128), load_policy("conservative:compress=scratch")
    )
    assert simulate(case).cells == cells_of(from_scratch), (
        "else it is a plan that is made anew in each pass"
    )


def test_workloads_of_the_model_have_the_gaps_of_table_5() -> None:
    known = {workload: label_of(workload) for workload in range(8)}
    assert known == {0: 71, 1: 31, 2: 73, 3: 35, 4: 7, 5: 13, 6: None, 7: None}
    works = [workload_of(ScojoCase(MODEL, workload, EXACT, SCOJO, 200)) for workload in range(8)]
    gaps = [int(work.submit[-1] - work.submit[0]) / 1e6 / 199 for work in works]
    assert gaps == pytest.approx([808, 859, 797, 800, 839, 820.6, 820.6, 820.6], abs=0.01)
    assert len({tuple(work.run.tolist()) for work in works}) == 8, "each has jobs of its own"
    again = workload_of(ScojoCase(MODEL, 6, EXACT, SCOJO, 200, seed=102))
    assert again.run.tolist() == works[7].run.tolist(), (
        "the seed is that of the first without a label"
    )


def test_another_seed_draws_every_workload_of_the_model_anew() -> None:
    for workload in range(8):
        usual, other = (
            workload_of(ScojoCase(MODEL, workload, EXACT, SCOJO, 200, seed=seed))
            for seed in (101, 7)
        )
        assert usual.run.tolist() != other.run.tolist(), workload
    assert len({seed_of(workload, 7) for workload in range(1000)}) == 1000
    # The workloads with a label of the paper keep its mean gap.
    first = workload_of(ScojoCase(MODEL, 0, EXACT, SCOJO, 4000, seed=7))
    gap = (first.submit[-1] - first.submit[0]) / (len(first) - 1) / MICROSECONDS
    assert gap == pytest.approx(INTERARRIVAL_S[LABELS[0]], rel=0.01)


def test_both_kinds_of_estimates_are_of_the_same_jobs() -> None:
    exact, users = (workload_of(ScojoCase(MODEL, 0, known, SCOJO, 400)) for known in (EXACT, USERS))
    for name in ("submit", "run", "procs"):
        assert getattr(exact, name).tolist() == getattr(users, name).tolist()
    assert (exact.estimate == exact.run).all()
    assert (users.estimate >= users.run).all()
    assert (users.estimate > users.run).mean() > 0.5


# ------------------------------------------------------------------------------------------------
# Table 2


def test_the_tree_has_the_nodes_of_table_2() -> None:
    assert [counted_nodes(jobs) for jobs in (1, 2, 3, 4, 8)] == [1, 4, 15, 64, 109_600]
    assert [nodes_of(jobs) for jobs in (4, 8, 10)] == [64, 109_600, 9_864_100]
    rows = {row["jobs"]: row for row in tree_table().rows}
    assert rows[15]["paths"] == math.factorial(15)
    assert rows[8]["counted"] == rows[8]["nodes"]
    (claim,) = scojo_claims.tree()
    assert claim.verdict == HOLDS


# ------------------------------------------------------------------------------------------------
# what is run and kept


def test_a_study_has_each_run_once() -> None:
    log, mute = (
        ScojoSource("kth", "KTH", 100),
        ScojoSource("lanl", "LANL-CM5", 1024, has_estimates=False),
    )
    study = ScojoStudy(7, ((log, 2), (mute, 1)), ("lanl",))
    cases = study.cases(tuple(SCHEMES_OF))
    assert len(cases) == len(set(cases))
    of_model = [case for case in cases if case.source == MODEL]
    assert [case.workload for case in of_model] == sorted(case.workload for case in of_model), (
        "workload by workload"
    )
    by_size = [case for case in cases if case.scheme == sized(40, 40)]
    assert [case.workload for case in by_size] == list(range(6)), (
        "of the workloads that the paper labels"
    )
    assert {case.estimates for case in cases if case.source == mute} == {EXACT}
    assert {case.workload for case in cases if case.source == log} == {0, 1}
    assert {case.scheme for case in study.cases([PLAIN])} == set(SCHEMES_OF[PLAIN])
    assert not [case for case in study.cases([SIZES_PART]) if case.source != MODEL]
    assert {case.source for case in study.cases([ESTIMATES])} == {MODEL, log}
    assert {case.source for case in study.cases([FIGURES])} == {MODEL, mute}


def test_a_run_depends_on_its_own_policy_only() -> None:
    one, other, again = (
        ScojoCase(MODEL, place, EXACT, scheme)
        for place, scheme in ((0, GROUPS), (0, LEX), (1, GROUPS))
    )
    assert len(RUNS.sources(one)) == 64
    assert RUNS.sources(one) == RUNS.sources(again)
    assert RUNS.sources(one) != RUNS.sources(other), "what is asked for counts"
    assert simulate(SMALL.cases([FIGURES])[3]) == simulate(SMALL.cases([FIGURES])[3])


def test_two_processes_make_what_one_makes(runs: list[ScojoFigures]) -> None:
    results = {one.case: one for one in runs}
    cases = SMALL.cases([PLAIN])
    assert Runner(workers=2).runs(RUNS, cases) == [results[case] for case in cases]


# ------------------------------------------------------------------------------------------------
# logs


def written(path: Path, jobs: int, *lines: str) -> str:
    log = generate_log(jobs=jobs, procs=128, load=0.7, seed=3)
    kept = [
        line for line in log.header.lines if not line.startswith(("; Computer", "; Installation"))
    ]
    header = parse_header([*kept, *lines])
    with path.open("wb") as file:
        write_log(file, header, log.columns)
    return str(path)


def test_logs_are_known_by_their_headers(tmp_path: Path) -> None:
    blue = written(
        tmp_path / "a.swf", 350, "; Computer: IBM SP", "; Installation: SDSC Blue Horizon"
    )
    lanl = written(tmp_path / "b.swf", 350, "; Installation: Los Alamos National Lab (LANL)")
    sp2 = written(tmp_path / "c.swf", 350, "; Computer: IBM SP2", "; Installation: SDSC")
    other = written(tmp_path / "Some.Log.swf", 350)
    study = scojo.study_of([blue, lanl, sp2, other], jobs=100)
    assert [(source.slug, source.has_estimates, count) for source, count in study.logs] == [
        ("sdsc-blue", True, 3),
        ("lanl", False, 1),
        ("sdsc-sp2", True, 3),
        ("some-log", True, 3),
    ]
    assert study.figures == ("sdsc-blue", "lanl")
    assert scojo.study_of([blue], jobs=100, workloads=2).logs[0][1] == 2
    assert scojo.study_of([blue], jobs=200).logs[0][1] == 1
    with pytest.raises(UsageError, match="name each log once"):
        scojo.study_of([blue, blue], jobs=100)
    with pytest.raises(InputError, match="not the 10,000 of one workload"):
        scojo.study_of([blue])


def test_windows_of_a_log_are_disjoint_and_begin_with_its_first_jobs(tmp_path: Path) -> None:
    path = written(tmp_path / "log.swf", 320)
    ((source, count),) = scojo.study_of([path], jobs=100).logs
    works = [
        workload_of(ScojoCase(source, workload, EXACT, SCOJO, 100)) for workload in range(count)
    ]
    numbers = [work.number.tolist() for work in works]
    assert [number for each in numbers for number in each] == list(range(1, 301))
    users = workload_of(ScojoCase(source, 1, USERS, SCOJO, 100))
    assert users.number.tolist() == numbers[1]
    assert users.run.tolist() == works[1].run.tolist(), "no job is ended at an estimate"
    assert (users.estimate >= users.run).all()
    assert (works[1].estimate == works[1].run).all()
    log = generate_log(jobs=320, procs=128, load=0.7, seed=3)
    first = taken(log, skip=100, first=100)
    assert (
        works[1].submit.tolist() == (np.asarray(first["submit"], np.int64) * MICROSECONDS).tolist()
    )


def test_what_is_known_of_a_verdict_is_only_of_whole_studies() -> None:
    blue = ScojoSource("sdsc-blue", "SDSC-BLUE", 1152)
    whole, part = ScojoStudy(20, ((blue, 3),), ("sdsc-blue",)), ScojoStudy(3)
    assert EXPECTED
    for name, verdict in EXPECTED.items():
        is_elsewhere = name.endswith(".lanl")
        assert scojo_claims.expected(name, whole) == (UNDECIDED if is_elsewhere else verdict), name
        assert scojo_claims.expected(name, part) == (
            verdict if name.startswith("t2.") else UNDECIDED
        ), name
    assert scojo_claims.expected("f99.nothing", whole) == UNDECIDED


# ------------------------------------------------------------------------------------------------
# command


def test_the_command_makes_the_folder_and_a_second_one_takes_its_runs(
    tmp_path: Path, forms: Callable[..., None]
) -> None:
    pytest.importorskip("matplotlib")
    out = tmp_path / "made"
    log = written(tmp_path / "blue.swf", 60, "; Installation: SDSC Blue Horizon")
    asked = ["paper", "scojo", log, "--workloads", "1", "--jobs", "40", "--out", str(out)]
    forms("png")
    printed = CliRunner().invoke(app, [*asked, "--json", "-q"])
    assert printed.exit_code == 0, printed.output
    first = json.loads(printed.stdout)
    assert first["options"] == {
        "workloads": 1,
        "jobs": 40,
        "seed": 101,
        "parts": ["figures", "sizes", "estimates", "plain"],
    }
    assert [(one["name"], one["procs"], one["subsets"]) for one in first["logs"]] == [
        ("SDSC-BLUE", 128, 1)
    ]
    assert {claim["verdict"] for claim in first["claims"]} <= set(VERDICTS)
    verdicts = {claim["name"]: claim["verdict"] for claim in first["claims"]}
    assert verdicts["t2.tree"] == HOLDS
    assert verdicts["gains.size"] == CONTRADICTED
    assert verdicts["t6.lanl"] == UNCHECKED
    assert (out / "results.md").read_text() == markdown_of(
        json.loads((out / "tables.json").read_text())
    )
    assert all((out / f"{name}.png").is_file() for name in first["pictures"])
    assert all((out / f"{table['name']}.csv").is_file() for table in first["tables"])
    assert len(first["pictures"]) == 5 + 1 + 6 + 1 + 1 + 2
    forms()
    again = CliRunner().invoke(app, [*asked, "--check"])
    assert again.exit_code == 1, again.output
    assert re.search(r"(\d+) of \1 runs were there already", again.stderr)
    assert "NO LOG OF LANL GIVEN" in again.stderr
    wanted = (
        "no verdicts are on record of 1 workloads of 40 jobs with seed 101, only of 20 or "
        "more of 10,000 with seed 101"
    )
    assert again.stderr.rstrip().splitlines()[-1] == f"check: {wanted}"
    second = json.loads((out / "tables.json").read_text())
    assert (second["tables"], second["claims"]) == (first["tables"], first["claims"])


def test_windows_of_all_logs_are_reported_together(tmp_path: Path) -> None:
    paths = [written(tmp_path / f"{name}.swf", 90) for name in ("one", "two")]
    study = scojo.study_of(paths, workloads=2, jobs=40)
    outcome = scojo_claims.run_paper(study, ["plain"], Runner(workers=1))
    tables = {table.name: table for table in outcome.tables}
    counts = {
        (row["source"], row["estimates"]): row["workloads"]
        for row in tables["scojo-plain-changes"].rows
    }
    assert counts == {
        (source, known): count
        for source, count in (("model", 2), ("one", 2), ("two", 2), ("all logs", 4))
        for known in (EXACT, USERS)
    }
    assert outcome.claims == [], "what is beyond the paper has no claims"
    assert list(outcome.pictures) == ["scojo-plain-changes"]


def test_the_verdicts_that_are_known_are_those_of_the_document() -> None:
    text = (Path(__file__).parents[2] / "docs" / "papers" / "scojo-results.md").read_text(
        encoding="utf-8"
    )
    by_claim = dict(
        re.findall(r"^\| ([a-z0-9]+\.\S+): .*? \| \*\*([a-z ]+)\*\* \|", text, re.MULTILINE)
    )
    assert len(by_claim) == 60
    decided = {
        name: verdict
        for name, verdict in by_claim.items()
        if verdict in (HOLDS, FAILS, CONTRADICTED)
    }
    assert decided == EXPECTED
