"""Partitions, features and typed GPUs: what jobs may have, live and compiled."""

from __future__ import annotations

import random

import msgspec
import numpy as np
import pytest

from qbatch.engine.admission import refusal
from qbatch.engine.engine import Engine
from qbatch.model.actions import Start, parts_of
from qbatch.model.errors import UsageError
from qbatch.model.events import Submitted
from qbatch.model.job import PACK, PLACINGS, SERVER, ChunkRequest, Job, JobRequest
from qbatch.model.machine import Host, Machine, Partition, server_host
from qbatch.model.record import Workload
from qbatch.planning.partitions import has_limits, limited
from qbatch.planning.policy import compiled_of
from qbatch.policies import load_policy
from qbatch.simulation import run
from qbatch.simulation.prepare import in_partitions
from tests.golden.cases import random_workload
from tests.harness import same_schedule, size

SECOND = 1_000_000
SITE = Machine(
    (
        Host("c1", 8, 1000, features=("ib",)),
        Host("c2", 8, 1000),
        Host("g1", 4, 4000, resources=(("gpu", 2), ("gpu:a100", 2)), features=("ib", "nvme")),
        Host("g2", 4, 4000, resources=(("gpu", 4), ("gpu:v100", 4))),
    ),
    chunked=True,
    partitions=(
        Partition("cpu", (0, 1), is_default=True),
        Partition("gpu", (2, 3)),
        Partition("all", (0, 1, 2, 3)),
    ),
)


def random_site(rng: random.Random) -> Machine:
    hosts = tuple(
        Host(
            f"h{place}",
            rng.randint(1, 5),
            rng.choice((500, 3000)),
            resources=rng.choice(((), (("gpu", 2), ("gpu:a", 2)), (("gpu", 3), ("gpu:b", 3)))),
            features=tuple(name for name in ("ib", "ssd") if rng.random() < 0.5),
        )
        for place in range(rng.randint(1, 5))
    )
    every = range(len(hosts))
    partitions = tuple(
        Partition(
            name,
            tuple(place for place in every if rng.random() < 0.6) or (0,),
            name == "p1" and rng.random() < 0.5,
            max_time=rng.choice((0, 0, 20 * SECOND)),
            max_hosts=rng.choice((0, 0, 2)),
            share=rng.choice(("shared", "shared", "exclusive")),
        )
        for name in ("p1", "p2", "p3")[: rng.randint(0, 3)]
    )
    if rng.random() < 0.4:
        hosts += (server_host((("lic", rng.randint(1, 3)),)),)
    return Machine(hosts, chunked=True, partitions=partitions)


def random_request(rng: random.Random, machine: Machine) -> JobRequest:
    def chunk() -> ChunkRequest:
        gpus = rng.choice((0, 0, 1, 2))
        kind = rng.choice(("", "a", "b"))
        asked = {"gpu": gpus, f"gpu:{kind}": gpus} if kind else {"gpu": gpus}
        return ChunkRequest(
            rng.choice((1, 1, 2, 3)),
            rng.randint(1, 3),
            rng.choice((0, 100, 400)),
            resources=tuple((name, amount) for name, amount in asked.items() if amount),
            features=("ib",) if rng.random() < 0.2 else (),
        )

    names = [each.name for each in machine.partitions]
    licences = ((ChunkRequest(1, 0, host=SERVER, resources=(("lic", rng.randint(1, 2)),))),)
    has_licences = rng.random() < 0.4 and (machine.server >= 0 or rng.random() < 0.1)
    return JobRequest(
        (*(chunk() for _ in range(rng.choice((1, 1, 2)))), *licences * has_licences),
        rng.choice(PLACINGS),
        rng.random() < 0.15,
        tuple(name for name in names if rng.random() < 0.4),
    )


def work_of(rng: random.Random, machine: Machine) -> Workload:
    work = random_workload(rng, machine)
    requests = tuple(random_request(rng, machine) for _ in range(12))
    of = np.array([rng.randrange(-3, len(requests)) for _ in range(len(work))]).clip(-1)
    if has_limits(machine):
        requests, of = in_partitions(machine, requests, of, work.procs, work.estimate)
    asked = [requests[kind] if kind >= 0 else None for kind in of.tolist()]
    column = {
        name: np.array([0 if each is None else each.resources.get(name, 0) for each in asked])
        for name in ("gpu", "gpu:a", "gpu:b", "lic")
    }
    procs = [old if new is None else new.procs for old, new in zip(work.procs, asked, strict=True)]
    memory = [
        old if new is None else new.memory for old, new in zip(work.memory, asked, strict=True)
    ]
    return work.changed(
        procs=np.array(procs, np.int64),
        memory=np.array(memory, np.int64),
        resources=column,
        requests=requests,
        request=of,
    )


@pytest.mark.parametrize(
    "name",
    [
        "fcfs",
        "easy",
        "easy:order=sjf",
        "hybrid:depth=3",
        "priority-backfill",
        "conservative",
        "conservative:compress=start",
    ],
)
def test_the_compiled_loop_replays_as_the_engine_and_the_audit_holds(name: str) -> None:
    """The audit finds a job outside its partitions, or on a host without its features or GPUs."""
    waited = refused = 0
    for seed in range(size(25, 120)):
        rng = random.Random(seed)
        machine = random_site(rng)
        work = work_of(rng, machine)
        one = run(work, machine, load_policy(name), driver="engine", is_audited=True)
        other = run(work, machine, load_policy(name), driver="compiled")
        assert same_schedule(one, other), seed
        assert {each.row for each in one.rejected} == {each.row for each in other.rejected}, seed
        waited += int((one.start > work.submit).sum())
        refused += len(one.rejected)
    assert waited > 50
    assert refused > 20


def asks(*chunks: ChunkRequest, **more: object) -> Job:
    request = JobRequest(chunks)
    values: dict[str, object] = {
        "procs": request.procs,
        "memory": request.memory,
        "resources": tuple(request.resources.items()),
        "estimate": SECOND,
    }
    return Job(number=1, submit=0, chunks=chunks, **(values | more))  # type: ignore[arg-type]


A100 = (("gpu", 2), ("gpu:a100", 2))


@pytest.mark.parametrize(
    ("job", "hosts"),
    [
        (asks(ChunkRequest(2, 8)), [0, 1]),
        (asks(ChunkRequest(1, 4), partitions=("gpu",)), [2]),
        (asks(ChunkRequest(1, 1, resources=A100), partitions=("gpu",)), [2]),
        (asks(ChunkRequest(2, 1, resources=(("gpu", 2),)), partitions=("gpu",)), [2, 3]),
        (asks(ChunkRequest(1, 1, features=("ib", "nvme")), partitions=("all",)), [2]),
        (asks(ChunkRequest(1, 1, host=1), partitions=("cpu", "gpu")), [1]),
        (Job(number=1, submit=0, procs=12, estimate=SECOND), [0, 1]),
    ],
)
def test_a_job_goes_to_the_hosts_that_it_may_have(job: Job, hosts: list[int]) -> None:
    for policy in ("fcfs", "easy", "conservative"):
        engine = Engine(SITE, load_policy(policy), is_audited=True)
        (start,) = [
            action
            for action in engine.handle(0, [Submitted(job)]).actions
            if isinstance(action, Start)
        ]
        assert [host for host, *_ in parts_of(start.allocation)] == hosts, policy


@pytest.mark.parametrize(
    ("job", "code", "text"),
    [
        (asks(ChunkRequest(1, 1), partitions=("fat",)), "no-partition", "there are cpu, gpu, all"),
        (asks(ChunkRequest(1, 1, features=("nvme",))), "no-host", "no host of its partitions with"),
        (asks(ChunkRequest(1, 8), partitions=("gpu",)), "too-wide", "the largest host has 4"),
        (
            asks(ChunkRequest(1, 1, resources=(("gpu", 3),)), partitions=("cpu",)),
            "too-many-resources",
            "needs 3 gpu on one host; the most is 0",
        ),
        (
            asks(ChunkRequest(2, 1, resources=A100), partitions=("gpu",)),
            "too-many-resources",
            "but not all of them at once",
        ),
        (Job(number=1, submit=0, procs=17, estimate=1), "too-wide", "but not all of them at once"),
    ],
)
def test_a_job_that_no_host_may_hold_is_refused_with_the_reason(
    job: Job, code: str, text: str
) -> None:
    reason = refusal(SITE, job)
    assert reason is not None
    assert reason.code == code
    assert text in reason.text


def test_jobs_of_one_partition_do_not_delay_those_of_another() -> None:
    engine = Engine(SITE, load_policy("fcfs-backfill"), is_audited=True)
    whole = asks(ChunkRequest(2, 8), estimate=100 * SECOND)
    gpus = asks(ChunkRequest(2, 4), partitions=("gpu",), estimate=1000 * SECOND)
    done = engine.handle(0, [Submitted(whole), Submitted(whole), Submitted(gpus)])
    assert [action.row for action in done.actions if isinstance(action, Start)] == [0, 2]


def test_packed_chunks_have_the_features_of_all() -> None:
    job = asks(
        ChunkRequest(1, 1, features=("ib",)),
        ChunkRequest(1, 1, features=("nvme",)),
        placing=PACK,
        partitions=("all",),
    )
    engine = Engine(SITE, load_policy("easy"), is_audited=True)
    engine.handle(0, [Submitted(job)])
    assert [host for host, *_ in parts_of(engine.view().running[0].allocation)] == [2]


def test_jobs_share_the_amounts_of_the_server_and_wait_for_them() -> None:
    machine = Machine((Host("a", 4), Host("b", 4), server_host((("lic", 2),))), chunked=True)

    def licensed(amount: int) -> Job:
        server = ChunkRequest(1, 0, host=SERVER, resources=(("lic", amount),))
        return asks(ChunkRequest(1, 1), server, estimate=10 * SECOND * amount)

    for policy in ("easy", "conservative"):
        engine = Engine(machine, load_policy(policy), is_audited=True)
        jobs = [licensed(2), licensed(1), licensed(1)]
        done = engine.handle(0, [Submitted(job) for job in jobs])
        assert [each.row for each in done.actions if isinstance(each, Start)] == [0], policy
        start = next(each for each in done.actions if isinstance(each, Start))
        assert [host for host, *_ in parts_of(start.allocation)] == [0, 2]
    reason = refusal(machine, licensed(3))
    assert reason is not None
    assert reason.text == "needs 3 lic of the server, which has 2"


@pytest.mark.parametrize(
    ("partition", "job", "text"),
    [
        (Partition("p", (0,), max_time=SECOND // 2), asks(ChunkRequest(1, 1)), "asks for 1 s, at"),
        (Partition("p", (0,), min_hosts=2), asks(ChunkRequest(1, 1)), "1 hosts, at least 2"),
        (
            Partition("p", (0,), max_hosts=1),
            asks(ChunkRequest(2, 1), placing="scatter"),
            "2 hosts, at most 1",
        ),
        (
            Partition("p", (0,), max_memory_per_cpu=10),
            asks(ChunkRequest(1, 2, 21)),
            "asks for 21B with 2 processors, at most 10B for each",
        ),
    ],
)
def test_a_partition_refuses_what_is_beyond_its_limits(
    partition: Partition, job: Job, text: str
) -> None:
    machine = Machine((Host("a", 4, 100), Host("b", 4, 100)), chunked=True, partitions=(partition,))
    reason = refusal(machine, msgspec.structs.replace(job, partitions=("p",)))
    assert reason is not None
    assert reason.code == "partition-limit"
    assert text in reason.text
    other = msgspec.structs.replace(machine, partitions=(partition, Partition("q", (1, 0))))
    both = msgspec.structs.replace(job, partitions=("p", "q"))
    assert refusal(other, both) is None
    request = JobRequest(both.chunks, both.placing, partitions=both.partitions)
    assert limited(other, request, both.estimate).partitions == ("q",)


@pytest.mark.parametrize("name", ["lsf", "immediate", "soon", "equispatial", "taskqueues"])
def test_policies_that_count_themselves_refuse_partitions_by_name(name: str) -> None:
    machine = Machine(
        (Host("a", 4), Host("b", 4)), chunked=True, partitions=(Partition("p", (0,)),)
    )
    assert compiled_of(load_policy(name), machine) is None
    with pytest.raises(UsageError, match=f"policy {name}.*(partitions|span|whole)"):
        Engine(machine, load_policy(name))
