"""Resource models: one vocabulary over three kinds of machine; a pool of chunks is one pool while
no job asks for hosts."""

from __future__ import annotations

import random
from collections.abc import Iterator

import msgspec
import pytest

from qbatch.engine.engine import Engine
from qbatch.model.actions import Action, Start, procs_of
from qbatch.model.events import Event, Finished, Submitted
from qbatch.model.job import SCATTER, ChunkRequest, Job
from qbatch.model.machine import Host, Machine, one_host
from qbatch.planning.kernels.profile import FOREVER
from qbatch.planning.resources import HostModel, PoolModel, resource_model_of
from qbatch.planning.resources.hosts import are_loose
from qbatch.planning.resources.pool_plan import PoolPlan
from qbatch.planning.view import View
from qbatch.policies import load_policy
from qbatch.simulation import run
from qbatch.simulation.calendar import Calendar
from tests.engine.live import Life
from tests.harness import same_schedule, size, workload_of
from tests.oracle.workloads import random_jobs

SECOND = 1_000_000
LISTS = (
    "fcfs",
    "fcfs:order=sjf",
    "easy",
    "easy:order=lxf",
    "hybrid:depth=0",
    "hybrid",
    "hybrid:depth=99",
    "hybrid:order=sjf",
    "fcfs-backfill",
    "sjf-backfill",
    "sjf-backfill:depth=3",
    "lxfw-backfill",
    "priority-backfill:depth=3,bypass=2",
)
PLANS = (
    "conservative",
    "conservative:compress=start",
    "conservative:compress=none",
    "conservative:compress=scratch",
)


def test_the_kind_of_space_is_chosen_by_the_machine() -> None:
    hosts = (Host("a", 4), Host("b", 2))
    for machine, kind in (
        (one_host(4), PoolModel),
        (Machine(hosts), PoolModel),
        (Machine(hosts, single_host=True), HostModel),
        (Machine((Host("a", 4, 100),)), HostModel),
        (Machine(hosts, chunked=True), HostModel),
    ):
        assert resource_model_of(machine) is kind
        assert isinstance(Engine(machine, load_policy("easy")).view().resources, kind)


def random_hosts(rng: random.Random) -> tuple[Host, ...]:
    has_memory = rng.random() < 0.3
    return tuple(
        Host(f"h{place}", rng.randint(1, 4), rng.choice((0, 500)) if has_memory else 0)
        for place in range(rng.randint(2, 6))
    )


@pytest.mark.parametrize("policy", [*LISTS, *PLANS])
def test_a_pool_of_chunks_gives_the_schedule_of_one_pool(policy: str) -> None:
    for seed in range(size(30, 100)):
        rng = random.Random(seed)
        machine = Machine(random_hosts(rng), chunked=True)
        work = workload_of(random_jobs(rng, rng.randint(1, 30), machine.procs), machine.procs)
        pool = run(work, one_host(machine.procs), load_policy(policy), driver="compiled")
        assert same_schedule(
            pool, Calendar(work, machine, load_policy(policy), is_audited=True).run()
        ), seed
        if not machine.counts_memory:
            assert same_schedule(
                pool, run(work, machine, load_policy(policy), driver="compiled")
            ), seed


class Loose(Life):
    """A life in which every job is chunks of one processor, said in one of the ways to say so."""

    def job(self) -> Submitted:
        found: Job = super().job().job
        procs = self.rng.randint(1, self.machine.procs)
        chunks = self.rng.choice(((), (ChunkRequest(procs, 1),)))
        return Submitted(
            msgspec.structs.replace(
                found, procs=procs, memory=0, chunks=chunks, placing="free", is_exclusive=False
            )
        )


@pytest.mark.parametrize("policy", [*LISTS, *PLANS])
def test_a_pool_of_chunks_lives_as_hosts_that_jobs_span(policy: str) -> None:
    hosts = (Host("a", 3), Host("b", 1), Host("c", 4), Host("d", 2))
    starts = 0
    for seed in range(size(15, 40)):
        one, other = (
            Engine(Machine(hosts, chunked=is_chunked), load_policy(policy))
            for is_chunked in (True, False)
        )
        life = Loose(seed, one.machine)
        for _ in range(80):
            found = life.next(one)
            assert found is not None
            at, events = found
            done = one.handle(at, events)
            asked = other.handle(at, [_without_chunks(event) for event in events])
            # On the same hosts, too.
            assert (done.actions, done.parked, done.broken) == (
                asked.actions,
                asked.parked,
                asked.broken,
            ), (seed, at)
            life.account(one, done)
            starts += sum(isinstance(action, Start) for action in done.actions)
    assert starts > size(150, 400)


def _without_chunks(event: Event) -> Event:
    return (
        Submitted(msgspec.structs.replace(event.job, chunks=()))
        if isinstance(event, Submitted)
        else event
    )


def test_on_hosts_of_one_processor_apart_and_alone_ask_for_nothing() -> None:
    single = Machine(tuple(Host(f"h{place}", 1) for place in range(4)), chunked=True)
    wide = Machine((Host("a", 2), Host("b", 2)), chunked=True)
    for more in ({"placing": SCATTER}, {"is_exclusive": True}):
        for machine, is_loose in ((single, True), (wide, False)):
            engine = Engine(machine, load_policy("easy"))
            engine.handle(0, [Submitted(Job(number=1, submit=0, procs=3, estimate=9 * SECOND))])
            asks = Job(
                number=2, submit=0, procs=2, estimate=SECOND, chunks=(ChunkRequest(2, 1),), **more
            )  # type: ignore[arg-type]
            engine.handle(0, [Submitted(asks)])
            assert len(engine.view().queue) == 1
            assert are_loose(engine.view()) is is_loose


@pytest.mark.parametrize("policy", PLANS[:3])
def test_a_promise_is_kept_when_somebody_asks_for_hosts(policy: str) -> None:
    changes, promises = 0, 0
    for seed in range(size(30, 80)):
        rng = random.Random(seed)
        machine = Machine(random_hosts(rng), chunked=True)
        widest = max(host.cpus for host in machine.hosts)
        engine = Engine(machine, load_policy(policy), is_audited=True)
        at, number, ends = 0, 0, dict[int, int]()
        truth: dict[int, int] = {}
        was: type = PoolPlan
        while number < 40 or ends or len(engine.view().queue):
            events: list[Event] = [Finished(row) for row, end in ends.items() if end == at]
            ends = {row: end for row, end in ends.items() if end > at}
            for _ in range(rng.choice((0, 1, 2)) if number < 40 else 0):
                estimate = rng.choice((1, 2, 3, 5, 8)) * SECOND
                procs = rng.randint(1, machine.procs)
                chunks = (
                    (ChunkRequest(1, procs),) if procs <= widest and rng.random() < 0.15 else ()
                )
                truth[number] = rng.choice((estimate, estimate, estimate // 2, 0))
                job = Job(number=number, submit=at, procs=procs, estimate=estimate, chunks=chunks)
                events.append(Submitted(job))
                number += 1
            done = engine.handle(at, events)
            assert not done.broken, (seed, at)
            plan = engine.view().memory.inner
            changes += type(plan) is not was
            was = type(plan)
            promises += sum(type(action).__name__ == "Promise" for action in done.actions)
            for action in done.actions:
                if isinstance(action, Start):
                    ends[action.row] = at + truth[engine.view().jobs[action.row].number]
            timer = engine.next_timer()
            coming = [at + SECOND // 2] if number < 40 else []
            at = min([*ends.values(), *coming, *([] if timer is None else [timer])], default=at)
    assert promises > size(560, 1500)
    assert changes > size(22, 60)


class ByProfile:
    """Conservative from scratch, written with the words of a space only."""

    name = "by-profile"

    def decide(self, view: View) -> Iterator[Action]:
        profile = view.resources.profile()
        for job in view.waiting:
            at, allocation = profile.earliest(job.row, job.estimate, view.now)
            profile.reserve(allocation, at, at + job.estimate)
            if at == view.now:
                yield view.resources.start(job.row, allocation)


@pytest.mark.parametrize(
    "machine",
    [
        one_host(8),
        Machine((Host("a", 3), Host("b", 5))),
        Machine((Host("a", 4, 9), Host("b", 3), Host("c", 1)), chunked=True),
    ],
    ids=["one host", "spanned hosts", "chunks"],
)
def test_a_policy_in_the_words_of_a_space_is_the_kernels(machine: Machine) -> None:
    for seed in range(size(30, 80)):
        rng = random.Random(seed)
        jobs = random_jobs(rng, rng.randint(1, 25), machine.procs)
        work = workload_of(jobs, machine.procs, [1 if machine.counts_memory else 0] * len(jobs))
        work = work.changed(estimate=work.estimate.clip(SECOND))
        found = Calendar(work, machine, ByProfile(), is_audited=True).run()
        kernel = Calendar(work, machine, load_policy("hybrid:depth=1000000"), is_audited=True).run()
        assert found.start.tolist() == kernel.start.tolist(), seed


@pytest.mark.parametrize(
    "machine",
    [
        one_host(8),
        Machine((Host("a", 6, 100), Host("b", 8)), single_host=True),
        Machine((Host("a", 6), Host("b", 4)), chunked=True),
    ],
    ids=["pool", "hosts", "chunks"],
)
def test_a_profile_gives_back_what_it_took_and_knows_never(machine: Machine) -> None:
    for seed in range(size(15, 40)):
        rng = random.Random(seed)
        engine = Engine(machine, load_policy("fcfs"))
        jobs = [
            Job(number=n, submit=0, procs=rng.randint(1, 6), estimate=rng.randint(1, 9) * SECOND)
            for n in range(8)
        ]
        engine.handle(0, [Submitted(job) for job in jobs])
        view = engine.view()
        rows = view.queue.tolist()
        profile = view.resources.profile()
        before = [profile.earliest(row, 5 * SECOND, 0) for row in rows]
        for row, (at, allocation) in zip(rows, before, strict=True):
            assert at < FOREVER
            assert view.resources.fits(view.jobs[row]) or at > 0
            profile.reserve(allocation, at, at + 5 * SECOND)
            assert procs_of(allocation) == view.jobs[row].procs
            assert profile.earliest(row, 5 * SECOND, at + 1)[0] > at
            profile.release(allocation, at, at + 5 * SECOND)
        assert [profile.earliest(row, 5 * SECOND, 0) for row in rows] == before


@pytest.mark.parametrize("kind", ["pool", "hosts"])
def test_one_of_many_fits_where_one_of_them_does(kind: str) -> None:
    answers = set()
    for seed in range(150):
        rng = random.Random(seed)
        engine = Engine(
            Machine(random_hosts(rng), single_host=kind == "hosts"), load_policy("fcfs")
        )
        for at in range(rng.randint(1, 8)):
            asked = Job(
                number=at,
                submit=at,
                procs=rng.randint(1, 4),
                estimate=99,
                memory=rng.choice((0, 200, 400)),
            )
            engine.handle(at, [Submitted(asked)])
        view = engine.view()
        if len(view.queue):
            answers.add(view.resources.fits_any(view.queue))
            assert view.resources.fits_any(view.queue) == any(
                view.resources.fits(job) for job in view.waiting
            ), seed
    assert answers == {False, True}
