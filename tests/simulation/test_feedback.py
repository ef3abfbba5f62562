"""Users that wait: which job each waits for, against the oracle, and the instants at which their
jobs come then."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from qbatch.model.errors import InputError
from qbatch.model.machine import one_host
from qbatch.policies import load_policy
from qbatch.simulation import Options, prepare, run
from qbatch.simulation.feedback import feedback_source
from qbatch.workloads import Log, read_log
from qbatch.workloads.feedback import feedback_of
from tests.harness import size
from tests.policies.feedback_oracle import Lived, Logged, feedback_submissions, lived, predecessors

Row = list[int]


def row(
    number: int,
    submit: int,
    wait: int,
    run_time: int,
    procs: int,
    user: int,
    before: int = -1,
    think: int = -1,
) -> Row:
    return [
        number,
        submit,
        wait,
        run_time,
        procs,
        -1,
        -1,
        procs,
        2000,
        -1,
        1,
        user,
        1,
        1,
        1,
        1,
        before,
        think,
    ]


def random_rows(rng: random.Random, *, is_told: bool) -> list[Row]:
    rows, submit = [], 0
    for number in range(1, rng.randint(2, 40)):
        submit += rng.choice([0, 0, 10, 600, 3000])
        before = rng.randint(1, number) if is_told and number > 1 and rng.random() < 0.5 else -1
        rows.append(
            row(
                number,
                submit,
                rng.choice([-1, 0, 5, 500, 900]),
                rng.choice([-1, 0, 10, 300, 1500]),
                rng.randint(1, 9),
                rng.choice([-1, 1, 2, 3]),
                before,
                rng.choice([-1, 0, 7, 100]) if before > 0 else -1,
            )
        )
    return rows


def log_of(rows: list[Row], folder: Path, procs: int = 8) -> Log:
    path = folder / "log.swf"
    path.write_text(
        f"; MaxProcs: {procs}\n" + "".join(" ".join(map(str, each)) + "\n" for each in rows)
    )
    return read_log(str(path))


def logged(rows: list[Row]) -> list[Logged]:
    def scaled(value: int) -> int:
        return value if value < 0 else value * 1_000_000

    return [
        Logged(
            each[0],
            scaled(each[1]),
            scaled(each[2]),
            scaled(each[3]),
            each[11],
            each[16],
            scaled(each[17]),
        )
        for each in rows
    ]


@pytest.mark.parametrize("seed", range(60))
def test_jobs_come_when_their_users_have_waited_and_thought(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    rows = random_rows(rng, is_told=seed % 3 == 0)
    procs = rng.randint(2, 8)
    log, machine = log_of(rows, tmp_path, procs), one_host(procs)
    follows = feedback_of(log)
    jobs = logged(rows)
    assert list(
        zip(follows.predecessor.tolist(), follows.think.tolist(), strict=True)
    ) == predecessors(jobs)
    try:
        work = prepare(log, machine)
    except InputError:
        return  # none of them can run
    policy = rng.choice(["easy", "fcfs", "conservative", "taskqueues"])
    schedule = run(
        feedback_source(log, work, machine, follows), machine, load_policy(policy), is_audited=True
    )
    came = schedule.workload
    assert sorted(came.number.tolist()) == sorted(work.number.tolist())
    ended: list[int | None] = [None] * len(rows)
    for place, end in zip(came.log_row.tolist(), schedule.end.tolist(), strict=True):
        ended[place] = end
    wanted = feedback_submissions(jobs, ended)
    assert {place: wanted[place] for place in came.log_row.tolist()} == dict(
        zip(came.log_row.tolist(), came.submit.tolist(), strict=True)
    )
    assert came.submit.tolist() == sorted(came.submit.tolist())


def test_a_job_whose_user_does_not_think_comes_with_the_others_of_that_instant_in_order_of_number(
    tmp_path: Path,
) -> None:
    # Job 2 follows job 1 at once, at 10 s, where job 3 comes by itself.  The machine can run one of
    # them.
    rows = [
        row(1, 0, 0, 10, 8, 1),
        row(2, 10, 0, 10, 8, 1, before=1, think=0),
        row(3, 10, 0, 10, 8, 2),
    ]
    log, machine = log_of(rows, tmp_path), one_host(8)
    for policy in ("fcfs", "easy", "conservative"):
        source = feedback_source(log, prepare(log, machine), machine, feedback_of(log))
        schedule = run(source, machine, load_policy(policy), is_audited=True)
        assert schedule.workload.number.tolist() == [1, 2, 3]
        assert (schedule.start // 1_000_000).tolist() == [0, 10, 20]


@pytest.mark.parametrize("think", [0, 10])
def test_random_users_that_hardly_think_live_as_the_oracle_says(think: int, tmp_path: Path) -> None:
    together = 0
    for seed in range(size(40, 200)):
        rng, procs = random.Random(seed), 8
        count = rng.randint(2, 25)
        numbers = rng.sample(range(1, 99), count)
        rows: list[Row] = []
        for number in numbers:
            before = rng.choice([each[0] for each in rows]) if rows and rng.random() < 0.6 else -1
            wait = rng.choice((0, think)) if before > 0 else -1
            length = rng.choice((0, 10, 10, 20)) if seed % 2 else rng.choice((10, 20))
            rows.append(
                row(
                    number,
                    10 * rng.randint(0, 8),
                    0,
                    length,
                    rng.randint(1, procs),
                    1,
                    before,
                    wait,
                )
            )
        if all(each[16] < 0 for each in rows):
            rows[1][16:18] = [rows[0][0], 0]
        rows.sort(key=lambda each: (each[1], each[0]))
        log, machine = log_of(rows, tmp_path, procs), one_host(procs)
        source = feedback_source(log, prepare(log, machine), machine, feedback_of(log))
        schedule = run(source, machine, load_policy("fcfs"), is_audited=True)
        wanted = lived(logged(rows), [each[4] for each in rows], procs)
        came = schedule.workload
        found = {
            place: Lived(*each)
            for place, *each in zip(
                came.log_row.tolist(),
                came.submit.tolist(),
                schedule.start.tolist(),
                schedule.end.tolist(),
                strict=True,
            )
        }
        assert found == dict(enumerate(wanted)), seed
        if not seed % 2:  # no job has length 0: one round an instant
            order = list(zip(came.submit.tolist(), came.number.tolist(), strict=True))
            assert order == sorted(order), seed
            together += len(order) - len({submit for submit, _ in order})
    assert together > 50


def test_a_faster_machine_has_its_next_job_earlier(tmp_path: Path) -> None:
    rows = [row(1, 0, 500, 100, 4, 1), row(2, 700, 0, 100, 4, 1), row(3, 710, 0, 100, 4, 2)]
    log, machine = log_of(rows, tmp_path), one_host(8)
    schedule = run(
        feedback_source(log, prepare(log, machine), machine, feedback_of(log)),
        machine,
        load_policy("easy"),
    )
    # Job 1 waited for 500 s in the log; here it starts at once, and its user still thinks for 100
    # s.
    assert dict(
        zip(
            schedule.workload.number.tolist(),
            (schedule.workload.submit // 1_000_000).tolist(),
            strict=True,
        )
    ) == {
        1: 0,
        2: 200,
        3: 710,
    }


def test_of_a_predecessor_that_is_not_replayed_the_end_is_unknown(tmp_path: Path) -> None:
    rows = [row(1, 0, 0, 100, 4, 1), row(2, 150, 0, 100, 4, 1)]
    log, machine = log_of(rows, tmp_path), one_host(8)
    work = prepare(log, machine, Options(since="100"))
    schedule = run(
        feedback_source(log, work, machine, feedback_of(log)), machine, load_policy("easy")
    )
    assert schedule.workload.submit.tolist() == [150_000_000]


def test_of_a_predecessor_that_cannot_run_the_submission_counts_as_its_end_also_at_another_load(
    tmp_path: Path,
) -> None:
    rows = [row(1, 0, 0, 5, 1, 9), row(2, 10_000, 0, 1950, 9, 1), row(3, 12_000, 0, 10, 1, 1)]
    log, machine = log_of(rows, tmp_path), one_host(8)
    for load, wanted in ((1.0, 10_050), (2.0, 5_050), (10.0, 1_050)):
        work = prepare(log, machine, Options(load=load))
        source = feedback_source(log, work, machine, feedback_of(log), load)
        schedule = run(source, machine, load_policy("easy"))
        assert (schedule.workload.submit // 1_000_000).tolist() == [0, wanted]


def test_a_deadline_moves_with_its_submission(tmp_path: Path) -> None:
    rows = [row(1, 0, 0, 1000, 8, 1), row(2, 1100, 0, 50, 8, 1)]
    log, machine = log_of([[*each[:8], 4000, *each[9:]] for each in rows], tmp_path), one_host(8)
    deadline = np.array([-1, 1_200_000_000])
    work = prepare(log, machine, Options(estimates="perfect"), deadline)
    faster = work.changed(run=np.array([500_000_000, 50_000_000]))
    schedule = run(
        feedback_source(log, faster, machine, feedback_of(log)),
        machine,
        load_policy("qops"),
        is_audited=True,
    )
    assert schedule.workload.submit.tolist() == [0, 600_000_000]
    assert schedule.workload.deadline.tolist() == [-1, 700_000_000]


def test_jobs_that_wait_for_each_other_are_refused(tmp_path: Path) -> None:
    rows = [
        row(1, 0, 0, 10, 1, 1),
        row(2, 5, 0, 10, 1, 1, before=4),
        row(3, 6, 0, 1, 1, 1, before=2),
        row(4, 9, 0, 1, 1, 1, before=3),
    ]
    with pytest.raises(InputError, match=r"job [234] waits for itself, by field 17"):
        feedback_of(log_of(rows, tmp_path))


def test_the_same_input_gives_the_same_schedule(tmp_path: Path) -> None:
    log, machine = log_of(random_rows(random.Random(5), is_told=False), tmp_path), one_host(8)
    work, follows = prepare(log, machine), feedback_of(log)
    one, other = (
        run(feedback_source(log, work, machine, follows), machine, load_policy("easy"))
        for _ in range(2)
    )
    assert one.start.tolist() == other.start.tolist()
    assert one.workload.submit.tolist() == other.workload.submit.tolist()
