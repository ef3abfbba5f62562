"""Predicted run times around a policy: against the naive oracle, and by hand."""

from __future__ import annotations

import random

import numpy as np
import pytest

from qbatch.engine.engine import Engine
from qbatch.engine.round import Round
from qbatch.model.errors import UsageError
from qbatch.model.machine import Host, Machine, one_host
from qbatch.model.record import Schedule, Workload
from qbatch.planning.policy import name_of
from qbatch.planning.run_times import INCREMENTS, outlasting
from qbatch.policies import load_policy
from qbatch.simulation.calendar import Calendar
from tests.harness import same_schedule, size, workload_of
from tests.oracle.naive import Job
from tests.policies.prediction_oracle import SECOND, Task, easy_by_predictions

MINUTE, HOUR = 60 * SECOND, 3600 * SECOND
LENGTHS = (
    0,
    1,
    SECOND,
    7 * SECOND,
    MINUTE,
    2 * MINUTE,
    5 * MINUTE,
    20 * MINUTE,
    HOUR,
    2 * HOUR,
    9 * HOUR,
    80 * HOUR,
    900 * HOUR,
)


def random_tasks(rng: random.Random, procs: int) -> list[Task]:
    """Few users that repeat, few lengths and few instants, so that much falls together."""
    users = rng.choice([[0], [0, 1], [0, 1, 2, -1]])
    lengths = rng.sample(LENGTHS, rng.randint(2, 6))
    step = rng.choice([SECOND, MINUTE, 10 * MINUTE, HOUR])
    submits = sorted(
        rng.randint(0, rng.choice([0, 3, 40])) * step for _ in range(rng.randint(1, 30))
    )
    tasks = []
    for submit in submits:
        run, estimate = sorted([rng.choice(lengths), rng.choice(lengths)])
        is_killed = rng.random() < 0.2
        tasks.append(
            Task(
                rng.choice(users),
                submit,
                rng.randint(1, procs),
                estimate,
                estimate if is_killed else run,
            )
        )
    return tasks


def workload(tasks: list[Task], procs: int) -> Workload:
    jobs = [
        Job(place, task.submit, task.procs, task.estimate, task.run)
        for place, task in enumerate(tasks)
    ]
    return workload_of(jobs, procs).changed(user=np.array([task.user for task in tasks], np.int64))


def replay(tasks: list[Task], procs: int, policy: str = "predicted") -> Schedule:
    return Calendar(
        workload(tasks, procs), one_host(procs), load_policy(policy), is_audited=True
    ).run()


def test_it_is_the_oracle_to_the_microsecond() -> None:
    corrected = most = predicted = backfilled = 0
    for seed in range(size(300, 1500)):
        rng = random.Random(seed)
        procs, last = rng.randint(1, 8), rng.choice([1, 2, 2, 3])
        tasks = random_tasks(rng, procs)
        corrected += easy_by_predictions(tasks, procs, last)
        work = workload(tasks, procs)
        calendar = Calendar(
            work, one_host(procs), load_policy(f"predicted:last={last}"), is_audited=True
        )
        schedule = calendar.run()
        assert schedule.start.tolist() == [task.start for task in tasks], seed
        assert schedule.end.tolist() == [task.end for task in tasks], seed
        first = calendar.engine.policy.first_predictions(calendar.engine.view())
        assert first.tolist() == [task.first for task in tasks], seed
        most = max(most, *(task.outlived for task in tasks))
        predicted += int((first >= 0).sum())
        plain = Calendar(work, one_host(procs), load_policy("easy")).run()
        backfilled += not same_schedule(schedule, plain)
    assert corrected > size(400, 2000)
    assert most > len(INCREMENTS)
    assert predicted > size(1000, 5000)
    assert backfilled > size(20, 100)


def test_without_users_it_is_the_inner_policy() -> None:
    for seed in range(size(30, 100)):
        rng = random.Random(seed)
        tasks = random_tasks(rng, 6)
        for task in tasks:
            task.user = -1
        for inner in ("easy", "conservative", "lxfw-backfill"):
            one, other = replay(tasks, 6, f"predicted:inner={inner}"), replay(tasks, 6, inner)
            assert same_schedule(one, other), (seed, inner)


def first_wave(user: int, *runs: int) -> list[Task]:
    return [Task(user, 0, 1, 10 * HOUR, run) for run in runs]


def predictions(tasks: list[Task], procs: int, policy: str = "predicted") -> list[int]:
    calendar = Calendar(
        workload(tasks, procs), one_host(procs), load_policy(policy), is_audited=True
    )
    calendar.run()
    found: list[int] = calendar.engine.policy.first_predictions(calendar.engine.view()).tolist()
    return found


def test_the_mean_of_the_last_two_that_have_ended_never_above_the_estimate() -> None:
    ended = first_wave(1, 4 * MINUTE, 10 * MINUTE, 20 * MINUTE)
    later = [
        Task(1, 4 * MINUTE, 1, HOUR, 1),
        Task(1, 10 * MINUTE, 1, HOUR, 3),
        Task(2, 30 * MINUTE, 1, HOUR, 1),
    ]
    last = [Task(1, 30 * MINUTE, 1, HOUR, 1), Task(1, 30 * MINUTE, 1, MINUTE, 1)]
    found = predictions([*ended, *later, *last], 99)
    # One has ended at 4 min; at 10 min the two of 1 us (of 4 min) and 10 min have; then 3 us and 20
    # min.
    assert found == [-1, -1, -1, -1, (1 + 10 * MINUTE) // 2, -1, (3 + 20 * MINUTE) // 2, MINUTE]


def test_of_more_jobs_than_have_ended_there_is_no_mean() -> None:
    tasks = [*first_wave(1, 60, 90), Task(1, MINUTE, 1, HOUR, 1)]
    assert predictions(tasks, 9, "predicted:last=3")[-1] == -1
    assert predictions(tasks, 9, "predicted:last=1")[-1] == SECOND


def test_a_job_lives_on_beyond_its_prediction_until_its_estimate() -> None:
    tasks = [*first_wave(1, MINUTE, MINUTE), Task(1, HOUR, 2, 9 * HOUR, 9 * HOUR)]
    schedule = replay(tasks, 4)
    assert schedule.end[2] == 10 * HOUR
    instants: list[int] = []

    def look(engine: Engine, done: Round) -> None:
        if not (done.finished or done.arrived):
            instants.append(done.at - HOUR)

    Calendar(workload(tasks, 4), one_host(4), load_policy("predicted")).run(look)
    # The next would be the estimate, which is not outlived.
    minutes = [1, 2, 7, 22, 52, 112, 232, 532]
    assert instants == [each * MINUTE for each in minutes]


def test_a_short_prediction_lets_a_job_be_backfilled_that_its_estimate_would_keep_waiting() -> None:
    tasks = [
        *first_wave(1, MINUTE, MINUTE),
        Task(2, HOUR, 3, 2 * HOUR, 2 * HOUR),
        Task(2, HOUR, 4, HOUR, HOUR),
        Task(1, HOUR, 1, 8 * HOUR, MINUTE),
    ]
    assert replay(tasks, 4).start.tolist()[2:] == [HOUR, 3 * HOUR, HOUR]
    assert replay(tasks, 4, "easy").start.tolist()[2:] == [HOUR, 3 * HOUR, 4 * HOUR]


def test_the_correction_itself_lets_a_job_start() -> None:
    # The head waits for a job that is thought to end in a minute; a job of five minutes fits once
    # it is thought to run on.
    tasks = [
        *first_wave(1, MINUTE, MINUTE),
        Task(1, HOUR, 3, 9 * HOUR, HOUR),
        Task(2, HOUR, 4, HOUR, HOUR),
        Task(2, HOUR, 1, 4 * MINUTE, 4 * MINUTE),
    ]
    # Corrected to 2, 7 minutes at 1, 2: from then on the 4 minutes fit before the head.
    assert replay(tasks, 4).start.tolist()[2:] == [HOUR, 2 * HOUR, HOUR + 2 * MINUTE]


def test_a_plan_is_made_anew_when_a_prediction_is_outlived_and_the_broken_promise_is_recorded() -> (
    None
):
    tasks = [
        *first_wave(1, MINUTE, MINUTE),
        Task(1, HOUR, 4, 9 * HOUR, HOUR),
        Task(2, HOUR, 4, HOUR, HOUR),
    ]
    schedule = replay(tasks, 4, "predicted:inner=conservative")
    assert schedule.first_promise[3] == HOUR + MINUTE
    assert schedule.promise[3] == HOUR + MINUTE
    assert schedule.start[3] == 2 * HOUR
    assert schedule.broken is not None
    assert schedule.broken.tolist() == [0, 0, 0, 1]


MACHINES = {
    "pool": one_host(8),
    "hosts": Machine((Host("a", 8), Host("b", 4)), single_host=True),
    "chunks": Machine((Host("a", 8), Host("b", 4)), chunked=True),
}


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    "inner",
    [
        "easy",
        "hybrid",
        "conservative",
        "priority-backfill",
        "sjf-backfill",
        "easy:order=sjf",
        "easy:backfill=sjf",
    ],
)
def test_perfect_predictions_are_perfect_estimates(inner: str, machine: str) -> None:
    """Each user's jobs run alike: what is predicted is what the inner policy alone does by perfect
    estimates."""
    head, _, tail = inner.partition(":")
    policy = f"predicted:inner={head}" + (f",inner.{tail}" if tail else "")
    different = 0
    for seed in range(size(15, 40)):
        rng = random.Random(seed)
        lengths = {user: rng.randint(1, 40) * MINUTE for user in range(3)}
        past = [
            Task(user, 0, 1, lengths[user], lengths[user]) for user in lengths for _ in range(2)
        ]
        submits = sorted(HOUR + rng.randint(0, 60) * MINUTE for _ in range(25))
        now = [
            Task(user, submit, rng.randint(1, 8), 50 * HOUR, lengths[user])
            for submit in submits
            for user in [rng.randrange(3)]
        ]
        exact = [
            *past,
            *(Task(task.user, task.submit, task.procs, task.run, task.run) for task in now),
        ]
        works = [workload(tasks, 8) for tasks in ([*past, *now], exact, [*past, *now])]
        found, wanted, plain = (
            Calendar(work, MACHINES[machine], load_policy(each), is_audited=True).run()
            for work, each in zip(works, (policy, inner, inner), strict=True)
        )
        assert same_schedule(found, wanted), seed
        different += not same_schedule(found, plain)
    assert different > size(4, 10)


def test_what_is_predicted_of_a_job_that_goes_on() -> None:
    found = [
        outlasting(MINUTE, executed, HOUR)
        for executed in (0, MINUTE - 1, MINUTE, 2 * MINUTE, 7 * MINUTE, HOUR, 2 * HOUR)
    ]
    assert found == [each * MINUTE for each in (1, 1, 2, 7, 22, 60, 60)]
    assert outlasting(0, 0, 0) == 0


def test_names_and_what_cannot_be_inside() -> None:
    assert name_of(load_policy("predicted:inner=easy,last=2")) == "predicted"
    text = "predicted:inner=priority-backfill,last=3,inner.wait=2"
    assert name_of(load_policy(text)) == "predicted:inner=priority-backfill,last=3,inner.wait=2"
    for inner in ("qops", "immediate", "scojo", "equispatial", "taskqueues", "predicted", "lsf"):
        with pytest.raises(UsageError, match=f"inner={inner}"):
            load_policy(f"predicted:inner={inner}")
