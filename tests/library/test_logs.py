"""Logs of the library are those of the commands, byte for byte; and how messages speak of
arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import qbatch as qb
from qbatch.library.arguments import in_arguments
from tests.library.commands import DEMO, TINY, qbatch

MODELS: list[tuple[list[str], str, dict[str, Any]]] = [
    (
        ["trace", "generate", "--jobs", "200", "--procs", "64", "--campaigns", "0.3"],
        "plain",
        {"jobs": 200, "procs": 64, "campaigns": 0.3},
    ),
    (
        [
            "generate",
            "lublin",
            "--jobs",
            "200",
            "--load",
            "0.7",
            "--estimates",
            "tsafrir",
            "--seed=5",
        ],
        "lublin",
        {"jobs": 200, "load": 0.7, "estimates": "tsafrir", "seed": 5},
    ),
    (
        ["generate", "origin2000", "--month", "1999-12", "--warmup-days", "2"],
        "origin2000",
        {"month": "1999-12", "warmup_days": 2},
    ),
]


@pytest.mark.parametrize(
    ("words", "model", "parameters"), MODELS, ids=[model for _, model, _ in MODELS]
)
def test_a_model_gives_the_log_of_its_command(
    words: list[str], model: str, parameters: dict[str, Any], tmp_path: Path
) -> None:
    qbatch(*words, "--out", str(tmp_path / "theirs.swf"))
    qb.write_log(qb.generate(model, **parameters), tmp_path / "ours.swf")
    assert (tmp_path / "ours.swf").read_bytes() == (tmp_path / "theirs.swf").read_bytes()
    assert len(qb.read_log(tmp_path / "ours.swf")) == len(qb.generate(model, **parameters))


def test_steps_give_the_log_of_the_command(tmp_path: Path) -> None:
    cases = (
        ["take:first=500,skip=20", "duplicate:load=1.3"],
        ["estimates:model=tsafrir", "expand:load=1.1"],
    )
    for number, steps in enumerate(cases):
        theirs, ours = tmp_path / f"theirs{number}.swf", tmp_path / f"ours{number}.swf"
        qbatch("transform", DEMO, *steps, "--seed", "8", "-o", str(theirs))
        made = qb.transform(DEMO, steps[0], seed=8)
        qb.write_log(qb.transform(made, steps[1], seed=8), ours)
        assert ours.read_bytes() == theirs.read_bytes()
    assert repr(made) == f"<DeadlineLog of {made.log!r}, 0 with deadlines>"


def test_bad_rows_are_named_or_skipped(tmp_path: Path) -> None:
    (tmp_path / "bad.txt").write_text(
        "; MaxProcs: 4\n0 10 2 20\nno job\n5 10 1 20\n", encoding="utf-8"
    )
    with pytest.raises(qb.InputError, match="line 3"):
        qb.read_log(tmp_path / "bad.txt")
    log = qb.read_log(tmp_path / "bad.txt", lenient=True)
    assert (len(log), log.bad_rows) == (2, 1)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (
            lambda: qb.generate("lublim", jobs=3),
            "there is no model 'lublim'; did you mean 'lublin'",
        ),
        (
            lambda: qb.generate("lublin", job=3),
            "lublin: 'job' is no parameter of it; did you mean 'jobs'",
        ),
        (lambda: qb.generate("plain", jobs=3), "plain: procs is missing"),
        (lambda: qb.generate("origin2000", month="2001-01"), "2001-01"),
        (
            lambda: qb.generate("origin2000", month="2000-01", warmup_days=99),
            "^warmup_days is 99; use 0 to 28",
        ),
        (lambda: qb.transform(TINY, "tak:first=2"), "there is no step 'tak'; did you mean 'take'"),
        (
            lambda: qb.transform(DEMO, "deadlines:stringency=0.2", "take:first=3"),
            "deadlines come last",
        ),
    ],
)
def test_mistakes(ask, words: str) -> None:
    with pytest.raises(qb.UsageError, match=words) as caught:
        ask()
    assert "--" not in str(caught.value)


def test_a_log_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    with pytest.raises(qb.OutputError, match="is a directory"):
        qb.write_log(qb.read_log(TINY), tmp_path)
    qb.write_log(qb.read_log(TINY), tmp_path / "log.swf.gz")
    assert (tmp_path / "log.swf.gz").read_bytes()[:2] == b"\x1f\x8b"


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("--from 'x': neither", "since 'x': neither"),
        ("say how many with --procs N", "say how many with procs=N"),
        ("12 jobs skipped: too wide (--skipped FILE lists them)", "12 jobs skipped: too wide"),
        ("ended there (--no-kill lifts it)", "ended there (kill=False lifts it)"),
        (
            "name B too, as in: qbatch compare a --with b",
            "name B too, as in: qbatch compare a --with b",
        ),
        ("--warmup-days is 99", "warmup_days is 99"),
        ("a--b and x--yes stay", "a--b and x--yes stay"),
    ],
)
def test_messages_speak_of_arguments(written: str, said: str) -> None:
    assert in_arguments(written) == said


def test_a_log_is_a_data_frame_and_a_data_frame_is_a_log() -> None:
    import pandas
    import polars
    import pyarrow

    log = qb.read_log(DEMO)
    frames = log.to_pandas(), log.to_polars(), log.to_arrow()
    assert [type(frame) for frame in frames] == [pandas.DataFrame, polars.DataFrame, pyarrow.Table]
    assert [len(frame) for frame in frames] == [len(log)] * 3
    assert frames[1]["wait"].null_count() == frames[2]["wait"].null_count == len(log)  # unknown
    (expected,) = qb.replay(log, "easy").schedules
    for frame in frames:
        again = qb.read_log(frame, procs=128, name="again")
        assert repr(again).startswith("<Log again: 2,000 jobs for 128 processors")
        (found,) = qb.replay(again, "easy").schedules
        assert found.start.tolist() == expected.start.tolist()


def test_a_frame_of_few_columns_in_any_order_is_enough() -> None:
    log = qb.read_log(
        {
            "procs": [2, 1],
            "run": [5, 7.5],
            "submit": [10, 0],
            "colour": ["red", "blue"],
            "estimate": [None, 9],
        }
    )
    assert log["submit"].tolist() == [0, 10]
    assert log["time_requested"].tolist() == [9, -1]
    assert log["job"].tolist() == [2, 1]
    assert log.notes[0] == "columns that are not used: colour"


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (
            {"submit": [1], "runtime": [2], "procs": [1]},
            "frame: column run is missing; did you mean 'runtime'",
        ),
        (
            {"submit": [1], "run": ["long"], "procs": [1]},
            "frame: column run holds something that is no number",
        ),
        ({"submit": [], "run": [], "procs": []}, "frame: has no row"),
    ],
)
def test_a_frame_that_is_no_log_is_refused(frame: dict[str, list[Any]], message: str) -> None:
    with pytest.raises(qb.InputError, match=message):
        qb.read_log(frame)
