"""Jobs of chunks: against the brute-force oracle, against the one pool, and in small cases by
hand."""

from __future__ import annotations

import random

import numpy as np
import pytest

from qbatch.engine.admission import refusal
from qbatch.engine.engine import Engine
from qbatch.engine.states import State
from qbatch.model.actions import Action, Chunk, Start, parts_of
from qbatch.model.errors import DecisionError
from qbatch.model.events import Event, Finished, Submitted
from qbatch.model.job import ChunkRequest, Job
from qbatch.model.machine import Host, Machine, one_host
from qbatch.model.reasons import COULD_START
from qbatch.planning.placement import divides, place_chunks
from qbatch.planning.requests import RequestBook
from qbatch.planning.view import View
from qbatch.policies import load_policy
from qbatch.simulation import run
from qbatch.simulation.calendar import Calendar
from tests.engine.live import random_chunks
from tests.golden.cases import random_workload
from tests.harness import same_schedule, size, workload_of
from tests.oracle.workloads import random_jobs
from tests.policies import naive_chunks
from tests.policies.naive_chunks import Asked

SECOND = 1_000_000


def random_machine(rng: random.Random) -> Machine:
    has_memory = rng.random() < 0.6
    hosts = [
        Host(f"h{place}", rng.randint(1, 5), rng.choice((0, 500, 1000, 3000)) if has_memory else 0)
        for place in range(rng.randint(1, 5))
    ]
    return Machine(tuple(hosts), chunked=True)


def random_case(seed: int) -> tuple[Machine, list[Job], dict[int, int]]:
    """Return a machine, jobs that it can hold, and how long each really runs."""
    rng = random.Random(seed)
    machine = random_machine(rng)
    jobs, runs, at = [], {}, 0
    while len(jobs) < rng.randint(3, 16):
        at += rng.choice((0, 0, 0, 1, 2)) * SECOND
        estimate = rng.choice((0, 1, 2, 3, 5, 8, 12)) * SECOND
        job = Job(number=len(jobs), submit=at, estimate=estimate, **random_chunks(rng, machine))
        if refusal(machine, job) is None:
            runs[job.number] = rng.choice((estimate, estimate, estimate // 2, 0))
            jobs.append(job)
    return machine, jobs, runs


def drive(engine: Engine, jobs: list[Job], runs: dict[int, int], explained: bool = False):
    """Run jobs to their ends; return start and allocation of each by number."""
    found: dict[int, tuple[int, dict[int, tuple[int, int]]]] = {}
    coming = sorted(jobs, key=lambda job: (job.submit, job.number))
    ends: dict[int, int] = {}
    while True:
        timer = engine.next_timer()
        instants = [
            *ends.values(),
            *([coming[0].submit] if coming else []),
            *([] if timer is None else [timer]),
        ]
        if not instants or not (ends or coming or len(engine.view().queue)):
            return found
        now = min(instants)
        events: list[Event] = [Finished(row) for row, end in ends.items() if end == now]
        ends = {row: end for row, end in ends.items() if end > now}
        events += [Submitted(job) for job in coming if job.submit == now]
        coming = [job for job in coming if job.submit > now]
        for action in engine.handle(now, events).actions:
            if isinstance(action, Start):
                job = engine.view().jobs[action.row]
                ends[action.row] = now + runs[job.number]
                found[job.number] = (
                    now,
                    {host: (procs, memory) for host, procs, memory in parts_of(action.allocation)},
                )
        if explained:
            for row in engine.view().queue.tolist():
                reason = engine.explain(row)
                assert reason.code != COULD_START, reason
                assert reason.text


def oracle(machine: Machine, jobs: list[Job], runs: dict[int, int], *, is_easy: bool):
    asked = [asked_of(job, runs[job.number]) for job in jobs]
    hosts = [(host.cpus, host.memory) for host in machine.hosts]
    return naive_chunks.simulate(hosts, asked, is_easy=is_easy)


def asked_of(job: Job, run: int) -> Asked:
    parts = [
        (chunk.procs, chunk.memory, chunk.host) for chunk in job.chunks for _ in range(chunk.count)
    ]
    if not job.chunks:
        parts = [(1, (job.memory + job.procs - 1) // job.procs, -1)] * job.procs
    return Asked(
        job.number, job.submit, tuple(parts), job.placing, job.is_exclusive, job.estimate, run
    )


@pytest.mark.parametrize("name", ["fcfs", "easy"])
def test_every_start_is_the_oracles(name: str) -> None:
    for seed in range(size(300, 1500)):
        machine, jobs, runs = random_case(seed)
        engine = Engine(machine, load_policy(name), is_audited=True)
        found = drive(engine, jobs, runs)
        assert found == oracle(machine, jobs, runs, is_easy=name == "easy"), seed


@pytest.mark.parametrize(
    "name",
    [
        "fcfs",
        "fcfs:order=sjf",
        "easy",
        "easy:order=lxf",
        "hybrid:depth=0",
        "hybrid",
        "hybrid:depth=99",
        "conservative",
        "conservative:compress=start",
        "conservative:compress=none",
        "conservative:compress=scratch",
    ],
)
def test_every_job_runs_and_none_could_start_after_a_pass(name: str) -> None:
    for seed in range(3000, 3000 + size(40, 150)):
        machine, jobs, runs = random_case(seed)
        found = drive(
            Engine(machine, load_policy(name), is_audited=True), jobs, runs, explained=True
        )
        assert len(found) == len(jobs), seed


@pytest.mark.parametrize(
    "name",
    [
        "fcfs",
        "easy",
        "easy:order=lxf",
        "hybrid:depth=3",
        "fcfs-backfill",
        "priority-backfill",
        "conservative",
        "conservative:compress=start",
        "conservative:compress=none",
        "conservative:compress=scratch",
    ],
)
def test_a_log_on_hosts_is_replayed_compiled_as_by_the_engine(name: str) -> None:
    """Jobs of a log with memory and GPUs, which are chunks over several hosts."""
    for seed in range(size(12, 60)):
        rng = random.Random(seed)
        hosts = tuple(
            Host(
                f"h{place}",
                rng.randint(1, 5),
                rng.choice((500, 1000, 3000)),
                resources=(("gpu", rng.randint(0, 3)),) if seed % 2 else (),
            )
            for place in range(rng.randint(1, 5))
        )
        machine = Machine(hosts, chunked=True)
        work = random_workload(rng, machine)
        if machine.resources:
            asked = np.array([rng.choice((0, 0, 0, 1, 2)) for _ in range(len(work))])
            work = work.changed(resources={"gpu": asked})
        one = run(work, machine, load_policy(name), driver="engine", is_audited=True)
        other = run(work, machine, load_policy(name), driver="compiled")
        assert same_schedule(one, other), seed
        assert one.promise.tolist() == other.promise.tolist(), seed


@pytest.mark.parametrize(
    "name",
    [
        "fcfs",
        "easy",
        "fcfs:order=sjf",
        "fcfs:order=lxf",
        "easy:order=sjf",
        "easy:order=lxf",
        "hybrid",
        "hybrid:depth=0",
        "hybrid:depth=5",
        "hybrid:order=sjf",
        "conservative",
        "conservative:compress=start",
        "conservative:compress=none",
        "conservative:compress=scratch",
    ],
)
def test_one_host_of_chunks_is_one_pool(name: str) -> None:
    for seed in range(size(25, 60)):
        rng = random.Random(seed)
        procs = rng.randint(1, 10)
        work = workload_of(random_jobs(rng, rng.randint(1, 25), procs), procs)
        chunked = Machine((Host("machine", procs),), chunked=True)
        one = Calendar(work, one_host(procs), load_policy(name), is_audited=True).run()
        other = Calendar(work, chunked, load_policy(name), is_audited=True).run()
        assert same_schedule(one, other), seed


def test_a_placement_is_that_of_the_oracle_and_divides_into_the_chunks() -> None:
    for seed in range(size(600, 3000)):
        rng = random.Random(seed)
        machine = random_machine(rng)
        hosts = machine.hosts
        free = [rng.choice((host.cpus, host.cpus, rng.randint(0, host.cpus))) for host in hosts]
        memory = [rng.choice((host.memory, rng.randint(0, host.memory))) for host in hosts]
        job = Job(row=0, number=0, submit=0, estimate=1, **random_chunks(rng, machine))
        used = {
            host: (there.cpus - free[host], there.memory - memory[host])
            for host, there in enumerate(hosts)
            if (free[host], memory[host]) != (there.cpus, there.memory)
        }
        other = naive_chunks.Going(asked_of(job, 1), 0, used)
        placed = place_chunks(machine, (free, memory), job)
        there = [(host.cpus, host.memory) for host in hosts]
        found = naive_chunks.place(there, [other], asked_of(job, 1))
        assert (found or {}) == {host: (procs, size) for host, procs, size in parts_of(placed)}, (
            seed
        )
        if placed:
            assert divides(machine, placed, job)


TWO = Machine((Host("a", 16, 100), Host("b", 8, 400)), chunked=True)


def asks(*chunks: tuple[int, ...], **more: object) -> Job:
    parts = tuple(ChunkRequest(*chunk) for chunk in chunks)
    values: dict[str, object] = {
        "procs": sum(chunk.count * chunk.procs for chunk in parts),
        "memory": sum(chunk.count * chunk.memory for chunk in parts),
        "estimate": SECOND,
    }
    return Job(number=1, submit=0, chunks=parts, **(values | more))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("job", "code", "text"),
    [
        (asks((1, 200)), "too-wide", "needs 200 processors on one host; the largest host has 16"),
        (
            asks((2, 4), (1, 20)),
            "too-wide",
            "needs 20 processors on one host; the largest host has 16",
        ),
        (
            asks((3, 7), placing="pack"),
            "too-wide",
            "needs 21 processors on one host; the largest host has 16",
        ),
        (asks((25, 1)), "too-wide", "needs 25 processors on the machine; 24 are there"),
        (
            asks((3, 1), placing="scatter"),
            "too-many-hosts",
            "needs 3 hosts for scattered chunks; there are 2",
        ),
        (
            asks((1, 12, 200)),
            "too-much-memory",
            "needs 12 processors and 200B of memory on one host; no host has both",
        ),
        (asks((2, 4, 300)), "too-much-memory", "but not all of them at once"),
        (asks((2, 9)), "too-wide", "but not all of them at once"),
        (
            asks((2, 9), placing="scatter"),
            "too-many-hosts",
            "too few of the 2 hosts are large enough",
        ),
        (asks((1, 0)), "no-processors", "asks for 0 processors"),
        (asks((1, 1), (1, 0)), "bad-chunks", "a chunk without processors"),
        (asks((1, 2), procs=3), "bad-chunks", "its chunks are 2 processors"),
        (asks((1, 2), placing="heap"), "bad-chunks", "none of free, pack, scatter"),
    ],
)
def test_a_refusal_says_which_chunk(job: Job, code: str, text: str) -> None:
    reason = refusal(TWO, job)
    assert reason is not None
    assert reason.code == code
    assert text in reason.text


def test_chunks_may_share_a_host_or_not() -> None:
    for job, expected in (
        (asks((3, 4)), (Chunk(0, 12),)),
        (asks((5, 4)), (Chunk(0, 16), Chunk(1, 4))),
        (asks((2, 4), placing="scatter"), (Chunk(0, 4, 0, 2),)),
        (asks((2, 2, 60)), (Chunk(0, 2, 60, 2),)),
        (asks((2, 2, 60), placing="pack"), (Chunk(1, 4, 120),)),
        (asks((1, 2, 60), is_exclusive=True), (Chunk(0, 16, 100),)),
        (asks((1, 2, 160), is_exclusive=True), (Chunk(1, 8, 400),)),
        (
            Job(number=1, submit=0, procs=3, estimate=1, memory=250),
            (Chunk(0, 1, 84), Chunk(1, 2, 168)),
        ),
    ):
        assert place_chunks(TWO, ((16, 8), (100, 400)), job) == expected
        assert divides(TWO, expected, job)


def test_an_exclusive_job_takes_its_hosts_whole_and_runs_as_long_as_it_says() -> None:
    engine = Engine(TWO, load_policy("easy"), is_audited=True)
    engine.handle(0, [Submitted(asks((1, 2), is_exclusive=True, estimate=10 * SECOND))])
    assert engine.view().free == (0, 8)
    assert engine.view().running[0].expected_end == 10 * SECOND
    engine.handle(1, [Submitted(asks((1, 9)))])
    assert engine.state_of(1) is State.QUEUED
    engine.handle(2, [Submitted(asks((1, 8), estimate=1))])
    engine.handle(3, [Submitted(asks((1, 1), is_exclusive=True))])
    reason = engine.explain(3)
    assert reason.code == "processors"
    engine.handle(5 * SECOND, [Finished(0)])
    assert engine.state_of(1) is State.RUNNING


class Wilful:
    """Gives the allocation that the test says."""

    def __init__(self, allocation: tuple[Chunk, ...]) -> None:
        self.allocation = allocation

    def decide(self, view: View) -> list[Action]:
        return [Start(0, self.allocation)]


@pytest.mark.parametrize(
    ("job", "allocation", "reason"),
    [
        (asks((2, 4)), (Chunk(0, 5), Chunk(1, 3)), "do not fit into it"),
        (asks((2, 4)), (Chunk(0, 4),), "do not fit into it"),
        (asks((2, 4)), (Chunk(0, 17),), "16 processors free"),
        (asks((1, 4, 50)), (Chunk(0, 4, 40),), "do not fit into it"),
        (asks((1, 4, 50)), (Chunk(0, 4, 140),), "100 bytes free"),
        (asks((2, 4), placing="scatter"), (Chunk(0, 8),), "do not fit into it"),
        (asks((2, 4), placing="pack"), (Chunk(0, 4), Chunk(1, 4)), "do not fit into it"),
        (asks((1, 4), is_exclusive=True), (Chunk(0, 4),), "do not fit into it"),
        (asks((1, 3), (1, 2)), (Chunk(0, 4), Chunk(1, 1)), "do not fit into it"),
    ],
)
def test_an_allocation_that_does_not_hold_the_chunks_is_refused(
    job: Job, allocation: tuple[Chunk, ...], reason: str
) -> None:
    with pytest.raises(DecisionError, match=reason):
        Engine(TWO, Wilful(allocation)).handle(0, [Submitted(job)])


def test_any_division_into_the_chunks_is_taken() -> None:
    for job, allocation in (
        (asks((1, 3), (1, 2)), (Chunk(1, 3), Chunk(0, 2))),
        (asks((2, 3), (2, 2)), (Chunk(0, 5), Chunk(1, 5))),
        (asks((1, 2, 10), (1, 2, 300)), (Chunk(1, 4, 310),)),
        (asks((1, 2), is_exclusive=True), (Chunk(1, 8, 400),)),
    ):
        engine = Engine(TWO, Wilful(allocation), is_audited=True)
        engine.handle(0, [Submitted(job)])
        assert engine.state_of(0) is State.RUNNING


def test_chunks_that_are_to_be_on_one_host_and_name_two_are_refused() -> None:
    job = asks((1, 1, 10, 0), (1, 1, 10, 1), placing="pack")
    engine = Engine(TWO, load_policy("easy"), is_audited=True)
    done = engine.handle(0, [Submitted(job), Submitted(asks((1, 1, 10, 1)))])
    assert [row for row, _ in done.refused] == [0]
    assert engine.state_of(1) is State.RUNNING


def test_requests_that_no_job_waits_with_are_forgotten() -> None:
    book = RequestBook(TWO)
    jobs = [
        Job(row=row, number=row, submit=0, procs=1 + row % 7, estimate=1, memory=row)
        for row in range(5000)
    ]
    book.add(jobs)
    assert book.is_full()
    book.renew(jobs[10:20])
    requests = book.arrays.arrays
    assert len(requests.heads) == 10
    assert not book.is_full()
    group = requests.heads["first"][requests.of[15]]
    assert requests.groups[group].item()[:2] == (1 + 15 % 7, -1)
    assert requests.amounts[group].tolist() == [1, -(-15 // (1 + 15 % 7))]
