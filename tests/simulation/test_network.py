"""The closed network: compiled loop, engine with source and policy, and the oracle, to the
microsecond; what is known of it."""

from __future__ import annotations

import os
import random
from itertools import product

import numpy as np
import pytest

from qbatch.model.errors import UsageError
from qbatch.planning.kernels import fractions
from qbatch.policies import load_policy
from qbatch.policies.task_queues import DISCIPLINES, ROUTINGS, QueueRules
from qbatch.simulation.calendar import Calendar
from qbatch.simulation.network import NetworkSource
from qbatch.simulation.network_run import NetworkMeasures, NetworkRun
from qbatch.workloads.network import Network, NetworkDraws
from tests.policies import network_oracle

IS_UNCOMPILED = os.environ.get("NUMBA_DISABLE_JIT") == "1"
RULES = [QueueRules(routing, discipline) for routing, discipline in product(ROUTINGS, DISCIPLINES)]
FIVE = (RULES[0], QueueRules("shortest"), *RULES[1:4])


class GivenDraws:
    """The draws of a network, as the oracle asks for them."""

    def __init__(self, network: Network, seed: int) -> None:
        self.draws, self.processors = NetworkDraws(network, seed), network.processors

    def _fraction(self, key: np.uint64, number: int) -> float:
        with np.errstate(over="ignore"):
            return float(fractions.fraction(key, number))

    def _key(self, job: int, visit: int) -> np.uint64:
        with np.errstate(over="ignore"):
            of_job = np.uint64(fractions.folded(self.draws.keys[0], job))
            return np.uint64(fractions.folded(of_job, visit))

    def visit(self, job: int, visit: int) -> network_oracle.VisitDraws:
        key = self._key(job, visit)
        tasks = [
            network_oracle.TaskDraws(
                *(self._fraction(key, 2 + 5 * task + each) for each in range(5))
            )
            for task in range(self.processors)
        ]
        return network_oracle.VisitDraws(self._fraction(key, 0), self._fraction(key, 1), tasks)

    def parallelism_interval(self, number: int) -> float:
        return self._fraction(self.draws.keys[1], number)

    def demand_interval(self, number: int) -> float:
        return self._fraction(self.draws.keys[2], number)


def random_network(rng: random.Random, *, servers: bool = False) -> Network:
    processors = rng.choice([1, 2, 3, 4, 6, 8, 16])
    return Network(
        jobs=rng.randint(1, 12),
        processors=processors,
        error=rng.choice([0, 0.3, 1]),
        variation=rng.choice([1, 2, 4]),
        servers=rng.choice([each for each in range(1, processors + 1) if processors % each == 0])
        if servers
        else 1,
        tasks_interval=rng.choice([1.0, 5, 20]),
        demand_interval=rng.choice([1.0, 5, 20]),
        tasks=rng.choice(["varying", "uniform", "normal"]),
        demand=rng.choice(["varying", "exponential", "erlang"]),
        mean_io=rng.choice([0.1, 0.531, 2]),
        warmup=5,
        length=10 if IS_UNCOMPILED else 25,
        replication=rng.randint(0, 3),
    )


def random_rules(
    rng: random.Random, disciplines: tuple[str, ...] = tuple(DISCIPLINES)
) -> QueueRules:
    return QueueRules(
        rng.choice(list(ROUTINGS)),
        rng.choice(disciplines),
        rng.choice([1, 2, 10]),
        rng.choice(["random", "lowest"]),
    )


def policy_of(rules: QueueRules) -> str:
    return f"taskqueues:routing={rules.routing},discipline={rules.discipline},limit={rules.limit},ties={rules.ties}"


@pytest.mark.parametrize("seed", range(6 if IS_UNCOMPILED else 80))
def test_the_loop_does_what_the_oracle_does_task_for_task(seed: int) -> None:
    rng = random.Random(seed)
    network, rules = random_network(rng), random_rules(rng, ("fcfs", "stf", "snutf", "lstf"))
    run = NetworkRun(network, rules, seed, traced=20_000)
    measures = run.run()
    wanted = network_oracle.simulate(
        GivenDraws(network, seed),
        jobs=network.jobs,
        processors=network.processors,
        routing=rules.routing,
        ties=rules.ties,
        discipline=rules.discipline,
        limit=rules.limit,
        variation=network.variation,
        parallelism=network.tasks,
        demand=network.demand,
        mean_io=network.mean_io,
        parallelism_interval=network.tasks_interval,
        demand_interval=network.demand_interval,
        error=network.error,
        horizon=network.warmup + network.length,
    )
    assert sorted(map(tuple, run.trace.tolist())) == sorted(map(tuple, wanted.tasks))
    assert sorted(tuple(visit[:5]) for visit in run.visits.tolist()) == sorted(
        each[:5] for each in wanted.responses
    )
    throughput, utilisation, greatest = network_oracle.measures(
        wanted,
        processors=network.processors,
        window_start=network.warmup,
        window_length=network.length,
    )
    assert measures.throughput == pytest.approx(throughput)
    assert measures.utilisation == pytest.approx(utilisation)
    assert measures.response_max == (None if greatest is None else pytest.approx(greatest / 1e6))
    ended = [
        each for each in wanted.responses if network.warmup * 1e6 < each.ended <= network.horizon
    ]
    assert measures.parents == len(ended)
    if ended:
        assert measures.response_mean == pytest.approx(
            sum(each.ended - each.submitted for each in ended) / len(ended) / 1e6
        )


@pytest.mark.parametrize("seed", range(4 if IS_UNCOMPILED else 25))
def test_engine_source_and_policy_do_what_the_loop_does(seed: int) -> None:
    rng = random.Random(1000 + seed)
    network, rules = random_network(rng, servers=True), random_rules(rng)
    run = NetworkRun(network, rules, seed, traced=20_000)
    run.run()
    schedule = Calendar(
        NetworkSource(network, seed),
        network.machine(),
        load_policy(policy_of(rules)),
        is_audited=True,
    ).run()
    work = schedule.workload
    host = schedule.host if schedule.host is not None else np.zeros(len(schedule), np.int64)
    columns = (work.user - 1, work.submit, schedule.start, schedule.end, host)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    assert sorted(row for row in rows if row[2] <= network.horizon) == sorted(
        (job, dispatched, start, end, station)
        for job, _, _, station, dispatched, start, end in run.trace.tolist()
    )


def measured(rules: QueueRules, seed: int = 1, **numbers: object) -> NetworkMeasures:
    return NetworkRun(Network(**numbers), rules, seed).run()  # type: ignore[arg-type]


LONG = 300.0 if IS_UNCOMPILED else 20_000.0


@pytest.mark.skipif(IS_UNCOMPILED, reason="long runs are for the compiled loop")
@pytest.mark.parametrize("rules", RULES, ids=lambda rules: f"{rules.routing}-{rules.discipline}")
def test_one_processor_and_one_job_is_a_renewal_process(rules: QueueRules) -> None:
    found = measured(
        rules, jobs=1, processors=1, tasks="uniform", demand="exponential", length=LONG
    )
    assert found.throughput == pytest.approx(0.65317, rel=0.02)


@pytest.mark.skipif(IS_UNCOMPILED, reason="long runs are for the compiled loop")
@pytest.mark.parametrize(("jobs", "utilisation"), [(1, 0.6532), (4, 0.9611), (16, 0.99998)])
def test_one_processor_is_the_cyclic_pair_of_single_servers(jobs: int, utilisation: float) -> None:
    found = measured(
        RULES[0], jobs=jobs, processors=1, tasks="uniform", demand="exponential", length=LONG
    )
    assert found.utilisation == pytest.approx(utilisation, rel=0.01)


@pytest.mark.skipif(IS_UNCOMPILED, reason="long runs are for the compiled loop")
def test_one_job_with_exponential_tasks_over_all_processors() -> None:
    found = measured(
        QueueRules("shortest"), jobs=1, tasks="uniform", demand="exponential", length=10 * LONG
    )
    assert found.response_mean == pytest.approx(2.59202, rel=0.01)
    assert found.throughput == pytest.approx(0.3202, rel=0.01)
    assert found.utilisation == pytest.approx(0.1701, rel=0.02)


@pytest.mark.skipif(IS_UNCOMPILED, reason="long runs are for the compiled loop")
@pytest.mark.parametrize("rules", FIVE, ids=lambda rules: f"{rules.routing}-{rules.discipline}")
def test_processors_and_the_io_station_carry_the_same_load(rules: QueueRules) -> None:
    found = measured(rules, jobs=32, length=LONG)
    assert abs(found.utilisation - 0.53125 * found.throughput) < 0.01
    assert found.throughput <= 1.882 * 1.01


@pytest.mark.parametrize("seed", range(2 if IS_UNCOMPILED else 10))
def test_busy_time_is_the_demands_that_were_drawn(seed: int) -> None:
    network = Network(jobs=5, processors=4, warmup=0, length=20)
    run = NetworkRun(network, RULES[seed % 4], seed, traced=5000)
    found = run.run()
    busy = sum(min(end, network.horizon) - start for *_, start, end in run.trace.tolist())
    assert found.utilisation == pytest.approx(busy / (network.horizon * 4))
    draws = NetworkDraws(Network(jobs=5, processors=4, tasks="uniform"), seed)
    assert {
        len(draws.visit(0, visit, is_normal=False, is_erlang=False)) for visit in range(50)
    } == {1, 2, 3, 4}


@pytest.mark.parametrize("seed", range(2 if IS_UNCOMPILED else 10))
def test_a_job_that_is_alone_has_the_same_responses_under_every_discipline(seed: int) -> None:
    runs = []
    for discipline in DISCIPLINES:
        run = NetworkRun(
            Network(jobs=1, variation=4, length=50),
            QueueRules("probabilistic", discipline),
            seed,
            traced=5000,
        )
        run.run()
        runs.append(run.visits[:, :5].tolist())
    assert runs[0] == runs[1] == runs[2] == runs[3]


@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_with_one_processor_routing_makes_no_difference(discipline: str) -> None:
    network = Network(jobs=6, processors=1, length=50, error=0.3)
    runs = [
        NetworkRun(network, QueueRules(routing, discipline), 3, traced=5000) for routing in ROUTINGS
    ]
    assert runs[0].run() == runs[1].run()
    assert (runs[0].trace == runs[1].trace).all()


def test_replications_are_the_same_in_any_order_and_in_steps() -> None:
    networks = [Network(jobs=4, processors=4, length=20, replication=number) for number in range(4)]
    forward = [NetworkRun(each, FIVE[4], 9).run() for each in networks]
    backward = [NetworkRun(each, FIVE[4], 9).run() for each in reversed(networks)]
    assert forward == backward[::-1]
    assert len(set(forward)) == 4
    stepped = NetworkRun(networks[2], FIVE[4], 9)
    for until in range(0, networks[2].horizon, 7_000_000):
        stepped.run(until)
    assert stepped.run() == forward[2]


def test_a_network_that_is_too_large_is_refused() -> None:
    with pytest.raises(UsageError, match="too large"):
        NetworkRun(Network(jobs=100_000, processors=4096), RULES[0], 1)


def test_io_without_service_brings_jobs_back_at_once() -> None:
    network = Network(jobs=2, processors=2, mean_io=0.0, warmup=0, length=5)
    run = NetworkRun(network, RULES[0], 1, traced=1000)
    run.run()
    ended = {(job, visit): end for job, visit, _, _, end, *_ in run.visits.tolist()}
    began = {(job, visit): submitted for job, visit, _, submitted, *_ in run.visits.tolist()}
    assert all(began[job, visit] == ended[job, visit - 1] for job, visit in began if visit)
