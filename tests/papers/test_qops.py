"""The paper of QoPS: its groups of runs, tables, verdicts on made-up numbers, what is kept, and the
command."""

import json
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
from qbatch.papers import qops, qops_claims
from qbatch.papers.harness import Runner
from qbatch.papers.markdown import markdown_of
from qbatch.papers.qops import (
    BY_ESTIMATE,
    BY_RUN,
    CONSERVATIVE,
    DUPLICATION,
    EASY,
    EXACT,
    EXPANSION,
    LOADS,
    MRT,
    MRT_LLF,
    MSB,
    MSB_FRACTION,
    PREDICTED,
    PRESETS,
    QOPS,
    SCHEMES,
    SHARES,
    STRONGER,
    USERS,
    EstimateCase,
    GroupFigures,
    QopsCase,
    QopsEstimateFigures,
    QopsSource,
    QopsStudy,
    SchemeFigures,
    Setting,
    SettingFigures,
    Trace,
    log_of,
    settings_of,
    simulate,
    simulate_bounds,
    subset_of,
)
from qbatch.papers.qops_claims import (
    EXPECTED,
    RESPONSE,
    RUNS,
    SLOWDOWN,
    TraceRuns,
    all_tables,
    figures_of_share,
    first_figures,
)
from qbatch.papers.record import FAILS, HOLDS, UNDECIDED, VERDICTS, Claim
from qbatch.policies import load_policy
from qbatch.simulation import prepare, run
from qbatch.simulation.drivers import easy_responses
from qbatch.workloads import generate_log, parse_header, write_log
from qbatch.workloads.transform import with_deadlines

OWN = Trace("generated", "generated", 128)
SMALL = QopsStudy((QopsSource(OWN, 2, (DUPLICATION, EXPANSION)),), jobs=60)


@pytest.fixture(scope="module")
def groups() -> list[GroupFigures]:
    return Runner(workers=1).runs(RUNS, SMALL.cases())


# ------------------------------------------------------------------------------------------------
# runs


def test_the_figures_of_a_run_are_those_of_its_schedule(groups: list[GroupFigures]) -> None:
    case, setting = QopsCase(OWN, DUPLICATION, 1, 1.6, 60, 1), Setting(0.8, 0.5, 2.0)
    log, machine = log_of(case), one_host(128)
    assert len(log) == 96
    asked = with_deadlines(log, easy_responses(log), stringency=0.5, share=0.8, seed=2).deadline
    work = prepare(log, machine, deadlines=np.where(asked >= 0, asked * MICROSECONDS, -1))
    schedule = run(
        work, machine, load_policy("qops:others=reject,factor=2"), driver="engine", is_audited=True
    )
    rows = range(len(work))
    has = [work.deadline[row] >= 0 for row in rows]
    refused = {rejection.row for rejection in schedule.rejected}
    area = [int(work.procs[row]) * int(work.run[row]) for row in rows]
    others = [row for row in rows if row not in refused and not has[row]]
    responses = [int(schedule.end[row] - work.submit[row]) for row in others]
    slowdowns = [
        response / int(work.run[row])
        for row, response in zip(others, responses, strict=True)
        if work.run[row]
    ]
    ran = [row for row in rows if row not in refused]
    span = max(int(schedule.end[row]) for row in ran) - min(int(work.submit[row]) for row in ran)

    (group,) = [one for one in groups if one.case == case]
    (found,) = [each.schemes[QOPS] for each in group.settings if each.setting == setting]
    assert refused, "a load at which no job is refused shows nothing"
    assert found.refused == len([row for row in refused if has[row]])
    assert found.unadmitted == pytest.approx(found.refused / sum(has))
    assert found.unadmitted_all == pytest.approx(len(refused) / len(work))
    assert found.lost_work == pytest.approx(
        sum(area[row] for row in refused if has[row]) / sum(area[row] for row in rows if has[row])
    )
    assert found.lost_work_all == pytest.approx(sum(area[row] for row in refused) / sum(area))
    assert found.utilisation == pytest.approx(sum(area[row] for row in ran) / (128 * span))
    assert found.response_s == pytest.approx(sum(responses) / len(responses) / MICROSECONDS)
    assert found.slowdown == pytest.approx(sum(slowdowns) / len(slowdowns))
    assert found.late == 0


def test_every_group_has_every_run_and_breaks_no_promise(groups: list[GroupFigures]) -> None:
    assert len(groups) == 2 * 2 * len(LOADS)
    for group in groups:
        assert group.easy_late == 0
        assert {each.setting: tuple(each.schemes) for each in group.settings} == dict(
            settings_of(group.case.method)
        )
        assert [
            one.late
            for each in group.settings
            for name, one in each.schemes.items()
            if name in SCHEMES
        ] == [0] * sum(len(set(each.schemes) & set(SCHEMES)) for each in group.settings)
        assert group.jobs == (
            round(60 * group.case.load) if group.case.method == DUPLICATION else 60
        )
    assert len(list(settings_of(DUPLICATION))) == 6 + 8
    assert len(list(settings_of(EXPANSION))) == 6


def test_subsets_of_a_log_are_disjoint_and_those_generated_differ(tmp_path: Path) -> None:
    path = written(tmp_path / "log.swf", 1300)
    trace = Trace("log", "log", 128, None, path)
    numbers = [
        set(subset_of(QopsCase(trace, DUPLICATION, subset, 1.0, 100))["job"].tolist())
        for subset in range(3)
    ]
    assert [len(each) for each in numbers] == [100, 100, 100]
    assert len(set.union(*numbers)) == 300
    assert min(numbers[0]) > 1000, "the first 1,000 jobs are left out"
    one, other = (subset_of(QopsCase(OWN, DUPLICATION, subset, 1.0, 100)) for subset in (0, 1))
    assert one["run"].tolist() != other["run"].tolist()
    assert (one["time_requested"] == one["run"]).all()


# ------------------------------------------------------------------------------------------------
# verdicts


def made(
    numbers: Callable[[Setting, float, str, int], dict[str, float]],
    trace: Trace = OWN,
    method: str = DUPLICATION,
) -> TraceRuns:
    """Return replicas of three subsets with made-up numbers."""
    groups = []
    for subset in range(3):
        for load in LOADS:
            settings = []
            for setting, names in settings_of(method):
                schemes = {}
                for name in names:
                    row = {
                        "unadmitted": 0.1,
                        "lost_work": 0.1,
                        "utilisation": 0.7,
                        "response_s": 3600.0,
                        "slowdown": 5.0,
                        "refused": 500.0,
                    } | numbers(setting, load, name, subset)
                    schemes[name] = SchemeFigures(
                        int(row["refused"]),
                        row["unadmitted"],
                        row["unadmitted"],
                        row["lost_work"],
                        row["lost_work"],
                        row["utilisation"],
                        row["response_s"],
                        row["slowdown"],
                        0,
                    )
                settings.append(SettingFigures(setting, schemes))
            groups.append(GroupFigures(QopsCase(trace, method, subset, load), 5000, 0, settings))
    return TraceRuns(trace, method, groups)


def by_name(claims: list[Claim]) -> dict[str, Claim]:
    return {one.name.partition(".")[2]: one for one in claims}


def test_the_presets_and_the_stronger_rivals_are_judged_apart() -> None:
    share = {QOPS: 0.10, MSB: 0.13, MRT: 0.12, MSB_FRACTION: 0.10, MRT_LLF: 0.08}

    def numbers(setting: Setting, load: float, name: str, subset: int) -> dict[str, float]:
        wider = 1 + (load - 1) * (name in PRESETS)
        return {"unadmitted": share.get(name, 0.0) * wider + subset / 1000}

    claims = by_name(qops_claims.admission(made(numbers)))
    assert claims["4.jobs"].verdict == HOLDS
    assert claims["4.jobs"].answers == {"yes": 8}
    assert claims["4.jobs-stronger"].verdict == FAILS
    assert claims["4.jobs-stronger"].answers == {"no": 4, "open": 4}
    assert "MRT LLF 10 - QoPS, load 1 -2 points [-2, -2]" in claims["4.jobs-stronger"].numbers
    assert claims["4.gap-grows"].verdict == HOLDS
    assert claims["4.gap-grows-stronger"].verdict == UNDECIDED
    assert claims["4.work"].verdict == UNDECIDED, "all the same: every interval holds 0"
    assert claims["5.converge"].verdict == UNDECIDED


def test_what_changes_with_load_and_stringency_is_seen() -> None:
    def numbers(setting: Setting, load: float, name: str, subset: int) -> dict[str, float]:
        tight = setting.stringency > 0.4
        gap = 0.0 if name == QOPS or tight else 0.05
        return {
            "refused": 900 - 100 * load + subset,
            "lost_work": 0.3 - load / 10,
            "unadmitted": 0.1 + 0.1 * tight + gap,
        }

    claims = by_name(qops_claims.admission(made(numbers)))
    for name in (
        "4.count-falls",
        "4.work-falls",
        "5.converge",
        "5.converge-stronger",
        "4.jobs-rise-with-s",
    ):
        assert claims[name].verdict == HOLDS, name
    assert claims["4.work-rises-with-s"].verdict == UNDECIDED
    rising = by_name(
        qops_claims.admission(
            made(lambda s, load, name, k: {"refused": 100 * load, "lost_work": load / 10})
        )
    )
    assert (rising["4.count-falls"].verdict, rising["4.work-falls"].verdict) == (FAILS, FAILS)


def test_what_of_the_machine_is_lost_is_judged_in_points() -> None:
    busy = {
        EASY: 0.80,
        CONSERVATIVE: 0.79,
        QOPS: 0.70,
        MSB: 0.69,
        MRT: 0.655,
        MSB_FRACTION: 0.75,
        MRT_LLF: 0.72,
    }

    def numbers(setting: Setting, load: float, name: str, subset: int) -> dict[str, float]:
        lost = (busy[EASY] - busy[name]) * (
            1.0 if setting.share == 1 else 0.8 if setting.share == 0.8 else 0.25
        )
        tighter = 0.07 if setting.stringency > 0.4 and name in SCHEMES else 0.0
        return {"utilisation": busy[EASY] - lost - tighter + subset / 1e6}

    replicas = made(numbers)
    claims = by_name(
        [*qops_claims.utilisation(replicas), *qops_claims.utilisation_of_mixed(replicas)]
    )
    held = (
        "6.loss",
        "6.stringency-costs",
        "6.alike",
        "6.mrt-below",
        "37.loss-at-80",
        "37.loss-at-20",
        "37.loss-grows-with-q",
    )
    assert {name: claims[name].verdict for name in held} == dict.fromkeys(held, HOLDS)
    assert claims["6.mrt-by-3-to-5"].verdict == HOLDS
    assert claims["6.alike-stronger"].verdict == FAILS
    assert claims["6.mrt-below-stronger"].verdict == FAILS
    far = by_name(
        qops_claims.utilisation(
            made(lambda s, load, name, k: {"utilisation": 0.9 if name == EASY else 0.6})
        )
    )
    assert far["6.loss"].verdict == FAILS


def test_curves_are_compared_at_equal_utilisation() -> None:
    slope = {QOPS: 10.0, MSB: 20.0, EASY: 30.0}

    def numbers(setting: Setting, load: float, name: str, subset: int) -> dict[str, float]:
        busy = load / 2 + (0.05 if name == EASY else 0.0)
        return {
            "utilisation": busy,
            "slowdown": slope.get(name, 10.0) * busy,
            "response_s": 3600 * busy,
        }

    replicas = made(numbers)
    found = replicas.ratios_at_equal_utilisation(Setting(0.2, 0.2), EASY, QOPS, SLOWDOWN)
    assert found == pytest.approx({0: 3.0, 1: 3.0, 2: 3.0})
    assert replicas.ratios_at_equal_utilisation(
        Setting(0.2, 0.2), MSB, QOPS, RESPONSE
    ) == pytest.approx({0: 1, 1: 1, 2: 1})
    claims = by_name(qops_claims.against(replicas))
    assert claims["43.slowdown-gains-more"].verdict == UNDECIDED, "of conservative there is no gain"
    assert claims["43.best"].answers["yes"] == 1
    apart = made(lambda s, load, name, k: {"utilisation": load / 10 + (name == QOPS)})
    assert apart.ratios_at_equal_utilisation(Setting(0.2, 0.2), EASY, QOPS, SLOWDOWN) == {}
    flat = made(lambda s, load, name, k: {"response_s": s.factor * 3600, "slowdown": 9 / s.factor})
    assert {one.verdict for one in qops_claims.relaxation(flat)} == {HOLDS}


def test_every_figure_of_the_paper_is_shown_once() -> None:
    traces = [
        made(lambda s, load, name, k: {}, Trace(slug, slug, 128), method)
        for slug, method in (("ctc", DUPLICATION), ("sdsc", DUPLICATION), ("ctc", EXPANSION))
    ]
    numbers = []
    for replicas in traces:
        first = first_figures(replicas)
        lengths = {"all": 3, "mixed": 4, "response": 4, "utilisation": 2, "against": 4}
        numbers += [
            first[kind] + place for kind, length in lengths.items() for place in range(length)
        ]
    assert sorted([*numbers, 55, 56, 57, 58]) == list(range(4, 59))
    assert [figures_of_share(traces[0], share) for share in SHARES] == [
        "Figures 4 to 6",
        "Figures 13-14, 27-28, 37-38 and 45-46",
        "Figures 15-16, 25-26, 37-38 and 43-44",
    ]


def test_the_tables_have_presets_and_stronger_rivals_side_by_side(
    groups: list[GroupFigures],
) -> None:
    tables = {table.name: table for table in all_tables(TraceRuns(OWN, DUPLICATION, groups))}
    assert list(tables) == [
        f"generated-duplication-{what}" for what in ("q100", "q80", "q20", "differences", "R")
    ]
    table = tables["generated-duplication-q100"]
    assert len(table.rows) == 2 * len(LOADS) * 7
    assert {row["scheme"] for row in table.rows} == {EASY, CONSERVATIVE, *SCHEMES}
    assert {row["rival"] for row in tables["generated-duplication-differences"].rows} == {
        *PRESETS,
        *STRONGER,
    }
    assert any("picked because" in note for note in table.notes)
    easy = next(row for row in table.rows if row["scheme"] == EASY)
    assert easy.get("jobs") is None
    assert easy["subsets"] == 2


# ------------------------------------------------------------------------------------------------
# what is kept


def test_a_group_depends_on_kernels_and_policies() -> None:
    case = SMALL.cases()[0]
    assert len(RUNS.sources(case)) == 64
    assert simulate(case) == simulate(case)


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


def test_the_logs_of_the_paper_are_known_by_their_headers(tmp_path: Path) -> None:
    ctc = written(
        tmp_path / "a.swf",
        1300,
        "; Computer: IBM SP2",
        "; Installation: Cornell Theory Center (CTC)",
    )
    sdsc = written(tmp_path / "b.swf", 1300, "; Computer: IBM SP2", "; Installation: SDSC")
    other = written(tmp_path / "Some.Log.swf", 1300)
    study = qops.study_of([ctc, sdsc, other], subsets=9, jobs=100)
    assert [
        (one.trace.slug, one.trace.procs, one.subsets, one.methods) for one in study.sources
    ] == [
        ("ctc", 430, 3, (DUPLICATION, EXPANSION)),
        ("sdsc", 128, 3, (DUPLICATION,)),
        ("some-log", 128, 3, (DUPLICATION, EXPANSION)),
    ]
    assert len(study.cases()) == 3 * len(LOADS) * 5
    assert qops.study_of([ctc], procs=338, jobs=100).sources[0].trace.procs == 338
    with pytest.raises(UsageError, match="name each once"):
        qops.study_of([ctc, ctc], jobs=100)
    with pytest.raises(UsageError, match="2 logs"):
        qops.study_of([ctc, sdsc], procs=100, jobs=100)
    with pytest.raises(UsageError, match="generated logs are for 128"):
        qops.study_of(procs=100)
    with pytest.raises(InputError, match="not the 6,000 jobs of one subset"):
        qops.study_of([other])


def test_what_is_known_of_a_verdict_is_only_of_whole_studies_of_the_logs_of_the_paper() -> None:
    ctc, sdsc = Trace("ctc", "CTC", 430), Trace("sdsc", "SDSC", 128)
    whole = QopsStudy((QopsSource(ctc, 10, (DUPLICATION, EXPANSION)), QopsSource(sdsc, 10)))
    part = QopsStudy((QopsSource(ctc, 3, (DUPLICATION, EXPANSION)), QopsSource(sdsc, 3)))
    for name, verdict in EXPECTED.items():
        assert qops_claims.expected(name, whole) == verdict
        assert qops_claims.expected(name, part) == (
            verdict if name.startswith("4.1.") else UNDECIDED
        )
    assert qops_claims.expected("all.promises-kept", part) == HOLDS
    assert qops_claims.expected("generated.4.jobs", SMALL) == UNDECIDED


# ------------------------------------------------------------------------------------------------
# packed sets


def test_packed_sets_are_admitted_whole_ever_more_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(qops, "SETS", 2)
    found = [qops.simulate_packed(case) for case in qops.PACKED_CASES]
    assert [(one.kind, one.slack) for one in found] == [
        ("static", 0.0),
        ("static", 0.05),
        ("static", 0.1),
        ("static", 0.2),
        ("dynamic", 0.0),
        ("dynamic", 0.1),
        ("dynamic", 0.5),
    ]
    assert set(found[0].whole.values()) == {0}
    assert set(found[3].whole.values()) == {2}
    judged = qops_claims.explained(qops_claims.packed_claims(found), qops_claims.WHY, str)
    claims = {one.name: one for one in judged}
    assert {name: one.verdict for name, one in claims.items()} == {
        "4.1.static": HOLDS,
        "4.1.dynamic-at-0": HOLDS,
        "4.1.dynamic-falls": FAILS,
    }
    assert "no job ever waits" in claims["4.1.dynamic-falls"].why
    assert len(qops_claims.packed_table(found).rows) == 7
    found[5].whole[QOPS] = 1
    assert qops_claims.packed_claims(found)[2].verdict == HOLDS
    found[2].whole[QOPS] = 0
    found[1].whole[QOPS] = 1
    assert qops_claims.packed_claims(found)[0].verdict == FAILS


# ------------------------------------------------------------------------------------------------
# users' estimates


def test_a_prediction_is_the_mean_of_the_last_two_that_ended_capped_by_the_estimate() -> None:
    log = generate_log(jobs=6, procs=8, load=0.5, seed=1)
    work = prepare(log, one_host(8))
    second = MICROSECONDS
    work = work.changed(
        user=np.array([1, 1, 2, 1, 1, 1]),
        submit=np.array([0, 1, 2, 50, 60, 1000]) * second,
        run=np.array([10, 20, 5, 40, 30, 7]) * second,
        estimate=np.array([100, 100, 100, 100, 12, 100]) * second,
    )
    end = np.array([30, 21, 7, 500, 90, 1007]) * second
    # Row 3: rows 0 and 1 have ended; row 4 the same, capped at 12 s; row 5: the last two to end are
    # 4 (at 90 s) and 3 (at 500 s).
    assert (qops.predictions(work, end) // second).tolist() == [100, 100, 100, 15, 12, 35]


def test_a_job_that_outlives_its_bound_breaks_the_promise_of_the_one_behind_it() -> None:
    log = generate_log(jobs=2, procs=4, load=0.5, seed=1)
    second = MICROSECONDS
    work = prepare(log, one_host(4)).changed(
        submit=np.array([0, 1]) * second,
        procs=np.array([4, 4]),
        run=np.array([100, 10]) * second,
        estimate=np.array([50, 10]) * second,
        deadline=np.array([200, 70]) * second,
    )
    found = qops.bound_figures(run(work, one_host(4), load_policy("qops"), driver="engine"), work)
    assert (found.admitted, found.late, found.refused) == (2, 1, 0.0)
    assert (found.late_s, found.late_most_s) == (40.0, 40.0), "it ends at 110 s in place of 70 s"


@pytest.fixture(scope="module")
def bounds() -> list[QopsEstimateFigures]:
    study = QopsStudy((QopsSource(OWN, 2, (DUPLICATION,)),), jobs=60)
    return [simulate_bounds(case) for case in qops.estimate_cases(study)]


def test_upper_bounds_break_nothing_and_predictions_are_outlived(
    bounds: list[QopsEstimateFigures],
) -> None:
    assert [one.case for one in bounds] == [
        EstimateCase(OWN, 1000, 60, 1),
        EstimateCase(OWN, 1060, 60, 2),
    ]
    for one in bounds:
        assert set(one.runs) == {BY_RUN, BY_ESTIMATE}
        for runs in one.runs.values():
            assert [runs[bound].late for bound in (EXACT, USERS, qops.ALL_USED)] == [0, 0, 0]
            assert runs[PREDICTED].admitted > 0
        assert 0 < one.outlived < 1
        assert one.runs[BY_RUN][USERS].refused > one.runs[BY_RUN][EXACT].refused
    assert simulate_bounds(bounds[0].case) == bounds[0]


def test_the_table_and_the_questions_show_every_bound(bounds: list[QopsEstimateFigures]) -> None:
    table = qops_claims.estimates_table(bounds)
    assert [(row["deadlines"], row["bound"]) for row in table.rows] == [
        (rule, bound)
        for rule in (BY_RUN, BY_ESTIMATE)
        for bound in (EXACT, USERS, qops.ALL_USED, PREDICTED)
    ]
    assert "jobs that outlive the prediction: generated" in table.notes[0]
    claims = {one.name: one for one in qops_claims.estimates_claims(bounds)}
    assert claims["generated.estimates.upper-bounds-keep"].verdict == HOLDS
    assert len(claims) == 5


# ------------------------------------------------------------------------------------------------
# command


def test_the_command_makes_the_folder_and_a_second_one_takes_its_runs(
    tmp_path: Path, forms: Callable[..., None]
) -> None:
    pytest.importorskip("matplotlib")
    out = tmp_path / "made"
    asked = [
        "paper",
        "qops",
        "--table",
        "figures",
        "--subsets",
        "1",
        "--jobs",
        "40",
        "--out",
        str(out),
    ]
    forms("png")
    printed = CliRunner().invoke(app, [*asked, "--json", "-q"])
    assert printed.exit_code == 0, printed.output
    first = json.loads(printed.stdout)
    assert first["options"] == {"subsets": 1, "jobs": 40, "seed": 1, "parts": ["figures"]}
    assert first["logs"] == [{"name": "generated", "sha256": None, "procs": 128, "subsets": 1}]
    assert {claim["verdict"] for claim in first["claims"]} <= set(VERDICTS)
    kept = {claim["name"]: claim["verdict"] for claim in first["claims"]}
    assert kept["all.promises-kept"] == HOLDS
    assert (out / "results.md").read_text() == markdown_of(
        json.loads((out / "tables.json").read_text())
    )
    assert "picked because they match the paper" in (out / "results.md").read_text()
    assert all((out / f"{name}.png").is_file() for name in first["pictures"])
    assert len(first["pictures"]) == 5 + 1 + 5
    forms()
    again = CliRunner().invoke(app, asked)
    assert "8 of 8 groups of runs were there already" in again.stderr
    assert "NO LOG GIVEN" in again.stderr
    assert "generated.4.jobs-stronger: not decidable" in again.stdout
    checked = CliRunner().invoke(app, [*asked, "--check", "-q"])
    assert checked.exit_code == 1
    assert (
        "check: no verdicts are on record of 1 subsets of generated, 40 jobs each, with seed 1, "
        "only of 10"
    ) in checked.stderr
    second = json.loads((out / "tables.json").read_text())
    assert (second["tables"], second["claims"]) == (first["tables"], first["claims"])


def test_the_verdicts_that_are_known_are_those_of_the_document() -> None:
    text = (Path(__file__).parents[2] / "docs" / "papers" / "qops-results.md").read_text(
        encoding="utf-8"
    )
    verdicts = dict(
        re.findall(r"^\| ([a-z0-9]+\.\S+): .*? \| \*\*([a-z ]+)\*\* \|", text, re.MULTILINE)
    )
    assert len(verdicts) == 199
    of_logs = {
        name: verdict for name, verdict in verdicts.items() if name.startswith(("ctc.", "sdsc."))
    }
    known = {name: verdict for name, verdict in of_logs.items() if verdict in (HOLDS, FAILS)}
    assert known == {
        name: verdict for name, verdict in EXPECTED.items() if not name.startswith("4.1.")
    }
    assert verdicts["4.1.dynamic-falls"] == FAILS == EXPECTED["4.1.dynamic-falls"]
    assert verdicts["all.promises-kept"] == HOLDS
