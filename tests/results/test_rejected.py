"""Jobs that a policy refuses: in the schedule, the job rows, the metrics, the comparison, and
before the referee."""

from __future__ import annotations

import csv
import json
import random
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest

from qbatch.metrics import breakdown, measure
from qbatch.model.machine import one_host
from qbatch.model.record import NO_PROMISE, Rejection, Schedule, Workload
from qbatch.policies import load_policy
from qbatch.referee.verify import judge, read_finished
from qbatch.reports.comparison import Side, compare
from qbatch.reports.report.summary import promises
from qbatch.results.job_rows import COLUMNS, read_job_rows, write_job_rows
from qbatch.results.reading import read_result
from qbatch.results.result import read_directory, write_result
from qbatch.simulation import run
from qbatch.simulation.story import tell_story
from tests.harness import workload_of
from tests.oracle.naive import Job
from tests.reports.samples import changed, check_read_back

BOUNDED = "tests.policies.refusing:Bounded"
SECOND = 1_000_000


def work_of(seed: int, jobs: int = 40) -> Workload:
    draw = random.Random(seed)
    found, at = [], 0
    for number in range(jobs):
        at += draw.choice((0, 1, 5, 20)) * SECOND
        estimate = draw.randrange(1, 40) * SECOND
        found.append(Job(number, at, draw.randrange(1, 5), estimate, draw.randrange(estimate + 1)))
    return workload_of(found, 4)


def schedule(policy: str = f"{BOUNDED}:most=60", seed: int = 1) -> Schedule:
    return run(work_of(seed), one_host(4), load_policy(policy), is_audited=True)


def written(schedules: list[Schedule], suffix: str = ".csv") -> bytes:
    out = BytesIO()
    write_job_rows(out, schedules, suffix)
    return out.getvalue()


def test_a_schedule_names_which_job_was_refused_when_and_why() -> None:
    done = schedule()
    assert len(done.rejected) > 5
    assert [each.row for each in done.rejected] == np.flatnonzero(~done.ran).tolist()
    for each in done.rejected:
        assert each.at == done.workload.submit[each.row]
        assert each.code == "too-late"
        assert each.text.startswith("it would end ")
        assert (done.start[each.row], done.end[each.row], done.promise[each.row]) == (
            -1,
            -1,
            NO_PROMISE,
        )


def test_a_schedule_counts_the_promises_that_were_broken() -> None:
    done = schedule(f"{BOUNDED}:most=90,order=sjf")
    assert done.broken is not None
    assert done.broken.sum() > 0
    late = done.ran & (done.first_promise >= 0) & (done.start > done.first_promise)
    assert (done.broken[late] > 0).all()
    assert schedule().broken is None


def test_a_report_counts_promises_that_were_taken_back_as_broken() -> None:
    done = schedule(f"{BOUNDED}:most=90,order=sjf")
    counted = promises(done)
    late = done.ran & (done.first_promise >= 0) & (done.start > done.first_promise)
    assert counted.broken >= late.sum() > 0
    assert counted.promised == int((done.first_promise >= 0).sum())
    assert promises(schedule()).broken == 0


def test_a_promise_that_is_taken_back_and_not_renewed_is_broken() -> None:
    done = schedule()
    forgotten = replace(done, promise=np.full(len(done), NO_PROMISE))
    assert promises(forgotten).broken == int(done.ran.sum())


def test_rows_of_refused_jobs_come_last_with_the_reason() -> None:
    done = schedule()
    lines = written([done]).decode().splitlines()
    assert lines[0] == ",".join((*COLUMNS, "reason"))
    ran, refused = lines[1 : 1 + int(done.ran.sum())], lines[1 + int(done.ran.sum()) :]
    assert len(refused) == len(done.rejected)
    assert all(line.endswith(",") for line in ran)
    cells = next(csv.DictReader([lines[0], refused[0]]))
    first = done.rejected[0]
    work = done.workload
    assert cells["job_id"] == str(work.number[first.row])
    assert cells["estimate"] == str(work.estimate[first.row] // SECOND)
    assert (cells["kind"], cells["reason"]) == ("rejected", f"too-late: {first.text}")
    for name in (
        "start",
        "end",
        "run",
        "wait",
        "slowdown",
        "bounded_slowdown",
        "promise",
        "first_promise",
    ):
        assert cells[name] == "", name


def test_a_file_without_refused_jobs_has_no_such_column() -> None:
    header, *lines = written([schedule(f"{BOUNDED}:most=100000")]).decode().splitlines()
    assert header == ",".join(COLUMNS)
    assert len(lines) == 40


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_refused_job_keeps_the_fraction_of_a_second_of_its_submission(
    suffix: str, tmp_path: Path
) -> None:
    done = schedule()
    refused = done.only(~done.ran)  # alone: the times of those that ran are whole seconds
    refused = changed(refused, submit=refused.workload.submit + SECOND // 4)
    path = tmp_path / f"rows{suffix}"
    path.write_bytes(written([refused], suffix))
    (again,) = read_job_rows(path)
    assert again.workload.submit.tolist() == refused.workload.submit.tolist()
    assert [each.row for each in again.rejected] == list(range(len(refused)))


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_rows_are_read_back_as_they_were(suffix: str, tmp_path: Path) -> None:
    both = [schedule(), schedule("easy"), schedule(f"{BOUNDED}:most=90,order=sjf")]
    path = tmp_path / f"rows{suffix}"
    path.write_bytes(written(both, suffix))
    for read, done in zip(read_job_rows(path), both, strict=True):
        check_read_back(read, done)
    assert written(read_job_rows(path), suffix) == path.read_bytes()


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_rows_show_how_often_a_promise_was_broken_only_where_one_was(
    suffix: str, tmp_path: Path
) -> None:
    done, kept = schedule(f"{BOUNDED}:most=90,order=sjf"), schedule("conservative")
    assert done.broken is not None
    assert kept.broken is None
    header, *lines = written([done]).decode().splitlines()
    assert header == ",".join((*COLUMNS, "broken", "reason"))
    assert "broken" not in written([kept]).decode().splitlines()[0].split(",")
    broken = {row["job_id"]: row["broken"] for row in csv.DictReader([header, *lines])}
    numbers = done.workload.number.tolist()
    assert broken == {
        str(number): str(count) for number, count in zip(numbers, done.broken.tolist(), strict=True)
    }
    path = tmp_path / f"rows{suffix}"
    path.write_bytes(written([done, kept], suffix))
    again, other = read_job_rows(path)
    assert again.broken is not None
    assert again.broken.tolist() == done.broken.tolist()
    assert other.broken is None


def test_a_broken_count_of_nothing_is_none(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(
        "job_id,submit,start,run,procs,broken\n1,0,3,5,1,\n2,0,3,5,1,0\n", encoding="utf-8"
    )
    assert read_job_rows(path)[0].broken is None


def test_a_job_that_ran_may_not_lack_its_start(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(
        "job_id,submit,start,end,procs,kind\n1,0,,5,1,immediate\n2,0,,,1,rejected\n",
        encoding="utf-8",
    )
    with pytest.raises(Exception, match="line 2, column start: is empty"):
        read_job_rows(path)


def test_rows_without_ends_may_be_refused_too(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(
        "job_id,submit,start,run,procs,kind\n1,0,3,5,1,in_order\n2,0,,,1,rejected\n",
        encoding="utf-8",
    )
    (rows,) = read_job_rows(path)
    assert rows.end.tolist() == [8 * SECOND, -1]
    assert rows.workload.run.tolist() == [5 * SECOND, -1]
    assert [(each.row, each.at, each.code) for each in rows.rejected] == [(1, 0, "")]


def test_metrics_are_over_jobs_that_ran_and_show_the_share_of_the_others(tmp_path: Path) -> None:
    done = schedule()
    figures = measure(done)
    assert figures["jobs"] == int(done.ran.sum())
    assert figures["rejected_count"] == len(done.rejected)
    assert figures["rejected_share"] == len(done.rejected) / 40
    assert "rejected_count" not in measure(schedule("easy"))
    write_result(tmp_path / "out", {"command": []}, [done])
    result = read_result(str(tmp_path / "out"))
    again = result.schedules[0]
    assert measure(again) == figures
    assert [(each.at, each.code, each.text) for each in again.rejected] == [
        each[1:] for each in done.rejected
    ]
    for key in ("class", "user", "month"):
        groups, others = breakdown(done, key), breakdown(again, key)
        assert [(each.label, each.jobs, each.metrics) for each in groups] == [
            (each.label, each.jobs, each.metrics) for each in others
        ]


def test_a_warm_up_counts_no_refusal() -> None:
    done = schedule()
    counted = np.ones(40, np.bool_)
    counted[[each.row for each in done.rejected[:3]]] = False
    work = done.workload.changed(counted=counted)
    figures = measure(
        Schedule(
            work,
            "x",
            done.start,
            done.kind,
            done.promise,
            done.promise,
            done.end,
            1,
            rejected=done.rejected,
        )
    )
    assert figures["rejected_count"] == len(done.rejected) - 3


def test_no_job_ran_at_all(tmp_path: Path) -> None:
    done = schedule(f"{BOUNDED}:most=-1")
    assert len(done.rejected) == 40
    figures = measure(done)
    assert (figures["jobs"], figures["rejected_share"], figures["wait_mean_s"]) == (0, 1.0, None)
    write_result(tmp_path / "out", {}, [done])
    (again,) = read_directory(tmp_path / "out").schedules
    assert not again.ran.any()
    assert len(again.rejected) == 40


def test_a_refused_job_is_no_breach(tmp_path: Path) -> None:
    done = schedule()
    write_result(tmp_path / "out", {}, [done])
    (tmp_path / "rows.csv").write_bytes(written([done]))
    for finished, known in (
        *read_finished(str(tmp_path / "out")),
        *read_finished(str(tmp_path / "rows.csv"), 4),
    ):
        verdict = judge(finished, "fcfs", known)
        assert verdict.is_kept
        assert len(verdict.schedule) == int(done.ran.sum())
        assert (
            verdict.notes[-1]
            == f"{len(done.rejected)} jobs were refused by the policy and never ran"
        )


def test_a_comparison_is_over_jobs_that_both_ran_and_says_how_many_one_refused(
    tmp_path: Path,
) -> None:
    done = schedule()
    write_result(tmp_path / "out", {}, [done, schedule("easy")])
    result = read_result(str(tmp_path / "out"))
    a, b = (Side(result, rows, rows.policy, rows.policy) for rows in result.schedules)
    document = compare(a, b)
    assert document["jobs"]["common"] == int(done.ran.sum())
    assert document["jobs"]["only_b"] == len(done.rejected)
    count = len(done.rejected)
    assert f"A refused {count} jobs, of which {count} ran in B" in document["notes"]
    json.dumps(document, allow_nan=False)


def test_the_story_of_a_refused_job_ends_with_the_reason() -> None:
    done = schedule()
    first = done.rejected[0]
    number = str(done.workload.number[first.row])
    lines = list(tell_story(done.workload, one_host(4), load_policy(f"{BOUNDED}:most=60"), number))
    assert lines[-1].endswith(f"rejected [too-late] {first.text}")


def test_the_story_of_a_job_shows_its_broken_promise() -> None:
    done = schedule(f"{BOUNDED}:most=90,order=sjf")
    assert done.broken is not None
    row = int(np.argmax(done.broken))
    lines = list(
        tell_story(
            done.workload,
            one_host(4),
            load_policy(done.policy.replace("bounded", BOUNDED)),
            str(row + 1),
        )
    )
    assert sum("its promise is broken [overtaken]" in line for line in lines) == done.broken[row]


def test_a_rejection_is_plain() -> None:
    assert Rejection(1, 2, "a", "b") < Rejection(2, 0, "a", "b")
