"""EASY that backfills the shortest job first, by estimates and by predictions: against the oracle,
in both drivers, by hand."""

from __future__ import annotations

import random

import numpy as np
import pytest

from qbatch.engine.engine import Engine
from qbatch.model.errors import UsageError
from qbatch.model.events import Submitted
from qbatch.model.job import Job
from qbatch.model.machine import Host, Machine, one_host
from qbatch.planning.policy import compiled_of, name_of
from qbatch.policies import load_policy
from qbatch.simulation.drivers import run
from tests.harness import same_schedule, size, workload_of
from tests.oracle.naive import Job as Waiting
from tests.oracle.workloads import random_jobs
from tests.policies import prediction_oracle
from tests.policies.prediction_oracle import Task, easy_by_predictions
from tests.policies.shortest_oracle import shortest_pass
from tests.policies.test_predicted import random_tasks, workload

SECOND = 1_000_000
POLICY = "easy:backfill=sjf"


@pytest.fixture
def oracle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prediction_oracle, "easy_pass", shortest_pass)


@pytest.mark.usefixtures("oracle")
def test_by_estimates_it_is_the_oracle_in_both_drivers() -> None:
    different = 0
    for seed in range(size(400, 2000)):
        rng = random.Random(seed)
        procs = rng.randint(1, 10)
        jobs = random_jobs(rng, rng.randint(1, 20), procs)
        tasks = [Task(-1, job.submit, job.procs, job.estimate, job.run) for job in jobs]
        easy_by_predictions(tasks, procs)
        work = workload_of(jobs, procs)
        one, other = (
            run(work, one_host(procs), load_policy(POLICY), driver=driver, is_audited=True)
            for driver in ("compiled", "engine")
        )
        assert same_schedule(one, other), seed
        assert one.start.tolist() == [task.start for task in tasks], seed
        assert one.end.tolist() == [task.end for task in tasks], seed
        different += not same_schedule(one, run(work, one_host(procs), load_policy("easy")))
    assert different > size(60, 300)


@pytest.mark.usefixtures("oracle")
def test_by_predictions_it_is_the_oracle_to_the_microsecond() -> None:
    different = 0
    for seed in range(size(200, 1000)):
        rng = random.Random(seed)
        procs, last = rng.randint(1, 8), rng.choice([1, 2, 3])
        tasks = random_tasks(rng, procs)
        easy_by_predictions(tasks, procs, last)
        policy = f"predicted:inner=easy,last={last},inner.backfill=sjf"
        schedule = run(
            workload(tasks, procs), one_host(procs), load_policy(policy), is_audited=True
        )
        assert schedule.start.tolist() == [task.start for task in tasks], seed
        assert schedule.end.tolist() == [task.end for task in tasks], seed
        plain = run(workload(tasks, procs), one_host(procs), load_policy(f"predicted:last={last}"))
        different += not same_schedule(schedule, plain)
    assert different > size(20, 100)


def starts(jobs: list[tuple[int, int, int]], procs: int, policy: str = POLICY) -> list[int]:
    """Return the starts, in seconds, of jobs as (submit, processors, seconds)."""
    rows = [
        Waiting(n, at * SECOND, width, time * SECOND, time * SECOND)
        for n, (at, width, time) in enumerate(jobs)
    ]
    found: list[int] = (
        run(workload_of(rows, procs), one_host(procs), load_policy(policy)).start // SECOND
    ).tolist()
    return found


def test_the_head_stays_first_and_the_shortest_behind_it_is_tried_first() -> None:
    # From 10 s on one of 4 processors is free, until job 3, the head, takes all at 100 s.  Job 6,
    # the shortest, comes first; then job 5.  Jobs 4 and 7 would end behind 100 s.
    jobs = [(0, 1, 10), (0, 3, 100), (1, 4, 500), (2, 1, 60), (2, 1, 40), (2, 1, 30), (2, 1, 60)]
    assert starts(jobs, 4) == [0, 0, 100, 600, 40, 10, 600]
    assert starts(jobs, 4, "easy") == [0, 0, 100, 10, 600, 70, 600]
    # In order of the shortest first alone the head waits until the last: its estimate is the
    # longest.
    assert starts([(0, 4, 100), (1, 4, 500), (2, 4, 60)], 4) == [0, 100, 600]
    assert starts([(0, 4, 100), (1, 4, 500), (2, 4, 60)], 4, "easy:order=sjf") == [0, 160, 100]


HOSTS = Machine((Host("a", 4), Host("b", 4)), single_host=True)


def test_on_hosts_the_head_is_the_first_that_fits_on_no_host() -> None:
    assert compiled_of(load_policy(POLICY), HOSTS) is None  # the engine replays it there
    assert compiled_of(load_policy(POLICY), one_host(8)) is not None
    # At 1 s one processor is free on host a, two on host b: job 3 waits for b, until 50 s.  There
    # job 5 or job 6 fits until then.
    rows = [(0, 3, 100), (0, 2, 50), (1, 3, 200), (2, 2, 90), (2, 2, 40), (2, 2, 30)]
    jobs = [
        Waiting(n, at * SECOND, width, time * SECOND, time * SECOND)
        for n, (at, width, time) in enumerate(rows)
    ]
    for policy, wanted in ((POLICY, [0, 0, 50, 100, 100, 2]), ("easy", [0, 0, 50, 100, 2, 100])):
        schedule = run(workload_of(jobs, HOSTS.procs), HOSTS, load_policy(policy), is_audited=True)
        assert (schedule.start // SECOND).tolist() == wanted


def test_an_explanation_names_the_head_that_a_start_would_delay() -> None:
    engine = Engine(one_host(4), load_policy(POLICY), is_audited=True)
    jobs = [(3, 100), (4, 500), (1, 900), (1, 300)]
    engine.handle(
        0,
        [
            Submitted(Job(number=n, submit=0, procs=procs, estimate=time * SECOND))
            for n, (procs, time) in enumerate(jobs, 1)
        ],
    )
    for row in (2, 3):
        assert engine.explain(row).blocked_by == (1,)
    assert engine.explain(1).code == "processors"


@pytest.mark.parametrize("policy", ["easy:order=sjf,backfill=sjf", "easy:backfill=sjf,search=dds"])
def test_another_order_of_the_queue_is_refused(policy: str) -> None:
    with pytest.raises(
        UsageError,
        match=r"backfill=sjf leaves the queue in order of submission .* leave out order and search",
    ):
        load_policy(policy)


def test_its_name_is_canonical() -> None:
    assert name_of(load_policy("easy:backfill=order")) == "easy"
    assert name_of(load_policy("predicted:inner.backfill=sjf")) == "predicted:inner.backfill=sjf"


def test_a_tie_goes_by_sequence() -> None:
    work = workload_of(
        [
            Waiting(0, 0, 3, 9 * SECOND, 9 * SECOND),
            Waiting(1, 0, 4, SECOND, SECOND),
            *(Waiting(n, 0, 1, 4 * SECOND, 4 * SECOND) for n in (2, 3, 4)),
        ],
        4,
    )
    found = run(work, one_host(4), load_policy(POLICY))
    assert np.argsort(found.start[2:], kind="stable").tolist() == [0, 1, 2]
    assert found.start[2:].tolist() == [0, 4 * SECOND, 10 * SECOND]
