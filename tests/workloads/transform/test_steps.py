"""The steps of a pipeline: load, estimates, deadlines, packed sets, the side file, and how steps
are written."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from qbatch.model.errors import InputError, UsageError
from qbatch.workloads import Log, generate_log
from qbatch.workloads.transform import (
    DeadlineLog,
    duplicated,
    exact_estimates,
    expanded,
    packed_set,
    read_deadlines,
    read_steps,
    taken,
    users_estimates,
    with_artificial,
    with_deadlines,
    write_deadlines,
)


def log_of(jobs: int = 400, seed: int = 3) -> Log:
    return generate_log(jobs=jobs, procs=64, load=0.7, seed=seed)


def work_of(log: Log) -> int:
    return int((np.asarray(log["run"], np.int64) * log.procs).sum())


def test_taking_jobs_keeps_their_order_and_numbers() -> None:
    log = log_of()
    part = taken(log, skip=10, first=50)
    assert len(part) == 50
    assert part["job"].tolist() == log["job"].tolist()[10:60]
    with pytest.raises(UsageError, match="400 jobs that can run, not 401"):
        taken(log, skip=400)


def test_duplicates_are_nested_seeded_and_within_the_span() -> None:
    log = log_of()
    less, more = duplicated(log, 1.2, 7), duplicated(log, 1.6, 7)
    assert (len(less), len(more)) == (480, 640)
    names = ("job", "submit", "run")
    jobs = [
        set(zip(*(each[name].tolist() for name in names), strict=True))
        for each in (log, less, more)
    ]
    assert jobs[0] < jobs[1] < jobs[2]
    assert set(more["job"].tolist()) == set(range(1, 641))
    assert more["submit"].min() >= log["submit"].min()
    assert more["submit"].max() <= log["submit"].max()
    assert duplicated(log, 1.6, 7)["submit"].tolist() == more["submit"].tolist()
    assert duplicated(log, 1.6, 8)["submit"].tolist() != more["submit"].tolist()
    assert (np.diff(more["submit"]) >= 0).all()


@pytest.mark.parametrize("load", [0.9, 2.5, float("nan"), 1.00005])
def test_a_load_that_cannot_be_is_refused(load: float) -> None:
    with pytest.raises(UsageError, match="load="):
        duplicated(log_of(20), load, 0)


def test_where_no_job_is_left_none_is_duplicated() -> None:
    log = log_of(20)
    empty = replace(log, columns={**log.columns, "run": np.full(20, -1)})
    with pytest.raises(
        InputError, match=r"no job in it can run, so none can be duplicated; leave duplicate out"
    ):
        duplicated(empty, 1.4, 0)


def test_expansion_makes_jobs_longer_and_leaves_their_arrivals() -> None:
    log = exact_estimates(log_of())
    longer = expanded(log, 1.4)
    assert longer["submit"].tolist() == log["submit"].tolist()
    assert longer["run"].tolist() == [
        max((run * 1400 + 500) // 1000, 1) for run in log["run"].tolist()
    ]
    assert longer["time_requested"].tolist() == longer["run"].tolist()
    assert work_of(longer) == pytest.approx(1.4 * work_of(log), rel=0.01)


def test_deadlines_follow_the_rule_and_shares_are_nested() -> None:
    log = log_of()
    responses = np.asarray(log["run"], np.int64) + np.arange(len(log)) * 10
    whole = with_deadlines(log, responses, stringency=0.2)
    expected = np.asarray(log["submit"]) + np.maximum(
        np.asarray(log["run"]), 800 * responses // 1000
    )
    assert whole.deadline.tolist() == expected.tolist()
    some, few = (
        with_deadlines(log, responses, stringency=0.2, share=share, seed=5).deadline >= 0
        for share in (0.8, 0.2)
    )
    assert (few <= some).all()
    assert some.mean() == pytest.approx(0.8, abs=0.08)
    assert few.mean() == pytest.approx(0.2, abs=0.08)
    # What another load adds changes no job's draw.
    more = duplicated(log, 1.4, 1)
    numbers = dict(zip(log["job"].tolist(), some.tolist(), strict=True))
    drawn = (
        with_deadlines(
            more, np.asarray(more["run"], np.int64), stringency=0.2, share=0.8, seed=5
        ).deadline
        >= 0
    )
    assert all(
        numbers.get(job, has) == has
        for job, has in zip(more["job"].tolist(), drawn.tolist(), strict=True)
    )


def test_artificial_deadlines_fill_what_is_left_and_are_distinguished() -> None:
    log = log_of(60)
    some = with_deadlines(log, np.asarray(log["run"], np.int64), stringency=0, share=0.5, seed=1)
    full = with_artificial(some, factor=2)
    assert (full.deadline >= 0).all()
    assert (full.is_artificial == (some.deadline < 0)).all()
    late = full.deadline[full.is_artificial] - np.asarray(log["submit"])[full.is_artificial]
    assert (
        late == np.maximum(86_400, 2 * np.asarray(log["time_requested"])[full.is_artificial])
    ).all()


@pytest.mark.parametrize("seed", range(8))
def test_a_packed_set_fills_the_machine_without_a_hole(seed: int) -> None:
    made = packed_set("dynamic", procs=32, span_s=7200, slack=0.0, seed=seed)
    log = made.log
    start, run, procs = (
        np.asarray(log[name], np.int64) for name in ("submit", "run", "procs_requested")
    )
    assert int((run * procs).sum()) == 32 * 7200
    used = np.zeros(7200, np.int64)
    for begin, seconds, width in zip(start.tolist(), run.tolist(), procs.tolist(), strict=True):
        used[begin : begin + seconds] += width
    assert (used == 32).all()
    assert (2 * procs <= 32).all()
    assert ((run >= 60) & (20 * run <= 7200)).all()
    assert (made.deadline == start + run).all()
    static = packed_set("static", procs=32, span_s=7200, slack=0.05, seed=seed)
    assert (np.asarray(static.log["submit"]) == 0).all()
    assert (static.deadline == 7560).all()
    assert sorted(static.log["job"].tolist()) == list(range(1, len(log) + 1))


@pytest.mark.parametrize(
    "wrong", [{"kind": "round"}, {"procs": 1}, {"span_s": 100}, {"slack": -1.0}, {"slack": 0.00001}]
)
def test_a_packed_set_that_cannot_be_is_refused(wrong: dict[str, object]) -> None:
    asked = {"kind": "static", "procs": 32, "span_s": 7200, "slack": 0.0, **wrong}
    with pytest.raises(UsageError):
        packed_set(str(asked.pop("kind")), seed=0, **asked)  # type: ignore[arg-type]


# ---------------------------------------------------------------------------------------------- the
# side file


def written(log: DeadlineLog, path: Path) -> str:
    out = io.BytesIO()
    write_deadlines(out, log)
    path.write_bytes(out.getvalue())
    return str(path)


def test_a_side_file_is_read_back(tmp_path: Path) -> None:
    log = log_of(50)
    made = with_artificial(
        with_deadlines(log, np.asarray(log["run"], np.int64) + 7, stringency=0.1, share=0.6, seed=2)
    )
    path = written(made, tmp_path / "d.csv")
    assert read_deadlines(path, log).tolist() == (made.deadline * 1_000_000).tolist()
    asked = read_deadlines(path, log, with_artificial=False)
    assert (asked >= 0).tolist() == (~made.is_artificial).tolist()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "line 1: no columns job_id and deadline"),
        ("job,deadline\n1,5\n", "line 1: no columns"),
        ("job_id,deadline\n1\n", "line 2: 1 values, the header names 2"),
        ("job_id,deadline\nx,5\n", "line 2: job_id 'x' is not a whole number"),
        ("job_id,deadline\n1,-5\n", "line 2: deadline '-5' is not seconds"),
        ("job_id,deadline\n1,1e5\n", "line 2: deadline '1e5' is not seconds"),
        ("job_id,deadline\n1,99999999999999999999\n", "line 2: deadline"),
        (
            "job_id,deadline\n77,5\n",
            "line 2: job 77 is not in generated; is this the side file of another log?",
        ),
        ("job_id,deadline\n1,5\n1,6\n", "line 3: job 1 has a deadline already"),
        ("job_id,deadline,kind\n1,5,late\n", "line 2: kind 'late' is neither asked nor artificial"),
    ],
)
def test_a_side_file_that_cannot_be_used_is_refused_by_name(
    tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "d.csv"
    path.write_text(text)
    with pytest.raises(InputError, match="^" + str(path)) as caught:
        read_deadlines(str(path), log_of(5))
    assert said in str(caught.value)


def test_a_side_file_that_is_not_there_or_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        read_deadlines(str(tmp_path / "none"), log_of(5))
    (tmp_path / "d.csv").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="not a text in UTF-8"):
        read_deadlines(str(tmp_path / "d.csv"), log_of(5))


# ---------------------------------------------------------------------------------------------- how
# steps are written


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("deadline:stringency=1", "did you mean 'deadlines'"),
        ("duplicate", "load is missing; write duplicate:load=NUMBER"),
        ("duplicate:lod=1.4", "did you mean 'load'"),
        ("expand:load=much", "load=much is not a number"),
        ("estimates:load=1", "(model, max, seed)"),
        (
            "estimates:model=tsafir",
            "model=tsafir is none of exact, tsafrir; did you mean 'tsafrir'",
        ),
        ("estimates:model=tsafrir,max=1d", "max=1d is not a number"),
    ],
)
def test_a_step_that_cannot_be_read_is_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_steps([text])
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("estimates:max=3600", "max goes with model=tsafrir"),
        ("estimates:model=exact,seed=1", "seed goes with model=tsafrir"),
        ("estimates:model=tsafrir,max=0.5", "estimates: max=0.5 is not a whole number"),
        ("estimates:model=tsafrir,max=60", "the largest estimate is 60 s; use 3600 to"),
        ("take:skip=-1", "take: skip=-1 is not a whole number"),
    ],
)
def test_a_step_that_cannot_be_made_is_refused(text: str, said: str) -> None:
    ((step, given),) = read_steps([text])
    with pytest.raises(UsageError) as caught:
        step.make(
            DeadlineLog.without(log_of(40)), given, 1, lambda log: np.asarray(log["run"], np.int64)
        )
    assert said in str(caught.value)


def test_estimates_are_exact_or_those_of_users_with_a_seed_of_their_own() -> None:
    log = log_of()

    def made(text: str, seed: int) -> list[int]:
        ((step, given),) = read_steps([text])
        log_made = step.make(
            DeadlineLog.without(log), given, seed, lambda each: np.asarray(each["run"], np.int64)
        ).log
        return np.asarray(log_made["time_requested"]).tolist()

    assert made("estimates", 1) == made("estimates:model=exact", 2) == log["run"].tolist()
    users = made("estimates:model=tsafrir,max=90000", 1)
    assert users == users_estimates(log, seed=1, largest_s=90_000)["time_requested"].tolist()
    assert max(users) == 90_000
    assert (
        made("estimates:model=tsafrir,max=90000,seed=1", 5)
        == users
        != made("estimates:model=tsafrir,max=90000", 5)
    )


def test_a_pipeline_runs_from_left_to_right_and_deadlines_come_last() -> None:
    made = DeadlineLog.without(log_of())
    for step, given in read_steps(
        [
            "take:first=100",
            "estimates",
            "duplicate:load=1.4",
            "deadlines:stringency=0",
            "artificial",
        ]
    ):
        made = step.make(made, given, 1, lambda log: np.asarray(log["run"], np.int64))
    assert len(made.log) == 140
    assert (made.deadline >= 0).all()
    (step, given), *_ = read_steps(["expand:load=2"])
    with pytest.raises(UsageError, match="deadlines come last"):
        step.make(made, given, 1, lambda log: np.asarray(log["run"], np.int64))
