"""The paper as a whole: on a small generated log, on KTH where it is at hand, and from the command
line."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from qbatch.cli.main import app
from qbatch.model.errors import InputError
from qbatch.model.machine import one_host
from qbatch.papers import sp2_backfilling as runs
from qbatch.papers.evidence import inside
from qbatch.papers.harness import Runner
from qbatch.papers.record import HOLDS, VERDICTS, Claim, PaperOutcome
from qbatch.papers.sp2_backfilling import MODEL_LOGS, USERS, ResampledMeans, Sp2Study, month_files
from qbatch.papers.sp2_backfilling_claims import is_kth, run_paper, with_resampled
from qbatch.simulation import Options, prepare
from qbatch.workloads import Log, generate_log, read_log, write_log
from tests.harness import TRACES

pytest.importorskip("matplotlib")

KTH = TRACES / "KTH-SP2-1996-2.1-cln.swf.gz"


@pytest.fixture(scope="module", autouse=True)
def _short_model() -> Iterator[None]:
    """Make the generated logs short, so that the suite also ends when the kernels run
    uncompiled."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "MODEL_JOBS", 300)
        patch.setattr(runs, "OWN_JOBS", 1500)
        yield


@pytest.fixture(scope="module")
def small_log() -> Log:
    return generate_log(jobs=600, procs=32, load=0.8, seed=5)


@pytest.fixture(scope="module")
def small_file(small_log: Log, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("log") / "small.swf"
    with path.open("wb") as file:
        write_log(file, small_log.header, small_log.columns)
    return str(path)


@pytest.fixture(scope="module")
def small(small_log: Log) -> PaperOutcome:
    return run_paper(Sp2Study(small_log, 32, (0, 1)))


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["paper", "sp2-backfilling", *arguments])


def test_a_whole_run_has_every_table_claim_and_picture(small: PaperOutcome) -> None:
    names = [table.name for table in small.tables]
    assert names == [
        "table1",
        "table1-same",
        "table1-printed",
        "table2",
        "table3",
        "figure9",
        "figure11",
    ]
    assert list(small.pictures) == ["table2", "table3", "figure9", "figure10", "figure11"]
    assert {claim.verdict for claim in small.claims} <= set(VERDICTS)
    assert len({claim.name for claim in small.claims}) == len(small.claims)
    assert any("KTH" in note for note in small.notes)


def test_the_jobs_of_the_months_are_the_jobs_of_the_log(small: PaperOutcome) -> None:
    rows = next(table for table in small.tables if table.name == "table2").rows
    assert sum(int(row["jobs"] or 0) for row in rows[:-1]) == rows[-1]["jobs"] == 600


def test_only_drawn_estimates_have_an_interval(small: PaperOutcome) -> None:
    rows = next(table for table in small.tables if table.name == "table3").rows
    assert [row["easy_half_interval"] is None for row in rows] == [True, *[False] * 5, True]


def test_the_same_seed_gives_the_same_figures(small: PaperOutcome, small_log: Log) -> None:
    again = run_paper(Sp2Study(small_log, 32, (0, 1)), ("3",))
    assert (
        again.tables[0].rows == next(table for table in small.tables if table.name == "table3").rows
    )
    assert run_paper(Sp2Study(small_log, 32, (7, 8)), ("3",)).tables[0].rows != again.tables[0].rows


def test_claims_that_rest_on_one_log_have_intervals_over_logs_of_its_weeks(small_log: Log) -> None:
    log = generate_log(jobs=1200, procs=32, load=0.8, seed=5)
    outcome = run_paper(Sp2Study(log, 32, (0, 1, 2, 3)), ("2", "3"))
    texts = {claim.name: claim.together for claim in outcome.claims}
    of_weeks = {
        "table2.alike",
        "table3.inaccuracy-helps",
        "table3.users-are-worse",
        "table3.conservative-is-better",
    }
    assert {name for name, text in texts.items() if text} == of_weeks
    values = [
        means[USERS]["conservative"] / means[USERS]["easy"]
        for means in runs.run_resampled(Sp2Study(log, 32, (0, 1, 2, 3)), [USERS])
    ]
    found = inside("conservative / EASY", values, 0.9, 1.1, is_ratio=True)
    assert found.found.low is not None
    assert (
        texts["table2.alike"]
        == f"4 logs of its weeks, drawn with replacement: 1 {found.says}: {found.text()}"
    )
    assert texts["table3.conservative-is-better"].count("conservative / EASY") == 6
    assert len({claim.verdict for claim in outcome.claims} - set(VERDICTS)) == 0
    # What is drawn moves with the seed; one log of weeks has no interval, and of a short log there
    # are none.
    other = run_paper(Sp2Study(log, 32, (9, 10, 11, 12)), ("2",))
    assert other.claims[1].together not in ("", texts["table2.alike"])
    assert not any(claim.together for claim in run_paper(Sp2Study(log, 32, (0,)), ("2",)).claims)
    assert not any(
        claim.together for claim in run_paper(Sp2Study(small_log, 32, (0, 1, 2)), ("2",)).claims
    )


def test_claims_of_the_model_have_intervals_over_its_logs(small: PaperOutcome) -> None:
    texts = {
        claim.name: claim.together
        for claim in small.claims
        if claim.name.startswith(("figure9", "figure10"))
    }
    assert len(texts) == 5
    assert all(text.startswith("2 generated logs: ") for text in texts.values()), texts
    assert texts["figure9.alike"].count("conservative / EASY") == 11
    assert texts["figure10.conservative-backfills-more"].count("conservative - EASY") == 13
    assert "FCFS / EASY" in texts["figure9.fcfs-far-worse"]


def test_a_week_without_jobs_leaves_out_one_resampled_log_and_not_the_paper(
    small_log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(log: Log, how: str, seed: int) -> Log:
        if seed == 1:
            raise InputError("no job")
        return log

    monkeypatch.setattr(runs, "resampled", refused)
    assert len(runs.run_resampled(Sp2Study(small_log, 32, (0, 1, 2)), [USERS])) == 2


def test_the_intervals_of_each_claim_can_speak_against_it() -> None:
    def logs(easy: float, conservative: float, users: float, drawn: float) -> list[ResampledMeans]:
        factors = dict.fromkeys((4, 11, 31, 101, 301), drawn) | {1: 1.0, USERS: users}
        wobble = (0.99, 1.0, 1.01)
        return [
            {
                each: {"easy": easy * by * value, "conservative": conservative * by * value}
                for each, value in factors.items()
            }
            for by in wobble
        ]

    names = (
        "table2.alike",
        "table3.inaccuracy-helps",
        "table3.users-are-worse",
        "table3.conservative-is-better",
    )
    claims = [Claim(name, "text", HOLDS, "1") for name in names]

    def said(*world: float) -> list[str]:
        return [
            one.together.split(": ")[1]
            for one in with_resampled(claims, logs(*world), has_estimates=True)
        ]

    assert said(1.0, 0.95, 1.5, 0.8) == ["1 yes", "6 yes", "2 yes", "6 yes"]
    assert said(1.0, 1.2, 0.7, 1.3) == ["1 no", "6 no", "2 no", "6 no"]
    assert [
        one.verdict for one in with_resampled(claims, logs(1.0, 1.2, 0.7, 1.3), has_estimates=True)
    ] == [HOLDS] * 4


def test_progress_is_reported_to_its_end(small_log: Log) -> None:
    calls: list[tuple[str, int, int]] = []
    run_paper(
        Sp2Study(small_log, 32, (0, 1)), ("2", "figures"), Runner(lambda *one: calls.append(one))
    )
    assert [one for one in calls if one[1] == one[2]] == [
        ("Table 2", 1, 1),
        ("Weeks resampled", 2, 2),
        ("Figures 9 and 10", 13, 13),
    ]
    assert MODEL_LOGS >= 2


def test_the_months_of_the_logged_end_hold_each_job_once(small_log: Log) -> None:
    waited = Log(
        **{
            **{name: getattr(small_log, name) for name in ("name", "sha256", "header", "line")},
            "columns": {**small_log.columns, "wait": np.full(600, 40_000, np.int32)},
        }
    )
    work = prepare(waited, one_host(32), Options())
    files = month_files(waited, work)
    assert files is not None
    assert np.array_equal(np.sort(np.concatenate([rows for _, rows in files])), np.arange(600))
    assert work.only(files[0][1]).number.tolist() == work.number[files[0][1]].tolist()
    assert month_files(small_log, prepare(small_log, one_host(32), Options())) is None
    names = [
        table.name for table in run_paper(Sp2Study(waited, 32, (0, 1)), ("1", "2", "3")).tables
    ]
    assert {"table1-files", "table2-files", "table3-files"} <= set(names)


def test_a_log_without_estimates_has_no_figure_11(small_log: Log) -> None:
    bare = Log(
        **{
            **{name: getattr(small_log, name) for name in ("name", "sha256", "header", "line")},
            "columns": {**small_log.columns, "time_requested": np.full(600, -1, np.int32)},
        }
    )
    outcome = run_paper(Sp2Study(bare, 32, (0, 1)), ("3", "figures"))
    verdicts = {claim.name: claim.verdict for claim in outcome.claims}
    assert "figure11" not in outcome.pictures
    assert verdicts["table3.users-are-worse"] == "cannot be checked on this log"


def test_json_on_stdout_is_the_whole_record(small_file: str) -> None:
    result = run(small_file, "--table", "2", "--table", "3", "--seeds", "2", "--json")
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    assert document["schema"] == "qbatch.paper/1"
    assert document["paper"]["name"] == "sp2-backfilling"
    assert document["log"]["rows"] == 600
    assert document["options"] == {"seeds": 2, "seed": 0, "parts": ["2", "3"]}
    assert [table["name"] for table in document["tables"]] == ["table2", "table3"]
    assert set(document["claims"][0]) == {
        "name",
        "text",
        "verdict",
        "numbers",
        "answers",
        "together",
        "why",
        "expected",
    }


def test_the_folder_holds_the_record_the_tables_and_the_pictures(
    small_file: str, tmp_path: Path
) -> None:
    out = tmp_path / "made"
    result = run(
        small_file, "-t", "2", "-t", "figures", "--seeds", "1", "--out", str(out), "--quiet"
    )
    assert result.exit_code == 0
    pictures = {
        f"{name}.{form}"
        for name in ("table2", "figure9", "figure10", "figure11")
        for form in ("png", "svg")
    }
    assert {path.name for path in out.iterdir()} == {
        "tables.json",
        "results.md",
        "table2.csv",
        "figure9.csv",
        "figure11.csv",
        *pictures,
    }
    assert json.loads((out / "tables.json").read_text())["schema"] == "qbatch.paper/1"
    assert (
        (out / "table2.csv")
        .read_text()
        .splitlines()[0]
        .startswith("month,jobs_printed,jobs,easy_printed,easy,")
    )
    results = (out / "results.md").read_text()
    assert results.startswith("# Utilization and Predictability")
    assert [line for line in results.splitlines() if line.startswith("![")] == [
        "![table2](table2.png)",
        "![figure9](figure9.png)",
        "![figure11](figure11.png)",
        "![figure10](figure10.png)",
    ]
    assert (out / "figure11.png").read_bytes().startswith(b"\x89PNG")


def test_without_a_log_it_says_loudly_that_the_log_is_generated() -> None:
    result = run("--table", "2")
    assert result.exit_code == 0
    assert "NO LOG GIVEN" in result.stderr
    assert "Table 2: users' estimates" in result.stdout
    assert "What the paper claims" in result.stdout
    assert "NO LOG GIVEN" not in run("--table", "2", "--quiet").stderr


def test_check_fails_when_a_claim_does_not_hold() -> None:
    # On our generated log users' estimates are no worse than drawn ones: that claim of the paper
    # does not hold there.
    arguments = ("--table", "3", "--seeds", "2", "--quiet")
    result = run(*arguments)
    assert result.exit_code == 0
    assert "table3.users-are-worse: does not hold" in result.stdout
    assert run(*arguments, "--check").exit_code == 1


@pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="a real log takes minutes uncompiled"
)
@pytest.mark.skipif(
    not KTH.exists(), reason=f"{KTH} is not on this machine; real logs are not part of the project"
)
def test_on_kth_the_claims_of_tables_2_and_3_hold_and_month_by_month_the_numbers_too() -> None:
    log = read_log(str(KTH))
    assert is_kth(log)
    outcome = run_paper(Sp2Study(log, 100, (0, 1, 2)), ("2", "3", "figures"))
    verdicts = {claim.name: claim.verdict for claim in outcome.claims}
    held = {name for name, verdict in verdicts.items() if verdict == HOLDS}
    assert {name for name in verdicts if name.startswith(("table2", "table3", "figure11"))} <= held
    tables = {table.name: table for table in outcome.tables}
    whole = tables["table2"].rows[-1]
    assert (round(float(whole["easy"] or 0), 1), round(float(whole["conservative"] or 0), 1)) == (
        92.9,
        89.2,
    )
    for name in ("table2-files", "figure11"):
        cells = [
            value
            for row in tables[name].rows
            for key, value in row.items()
            if key.endswith("verdict")
        ]
        assert set(cells) <= {"within", "-"}, name
