"""Named resources in the engine: which job has them, what is refused, what is given back; checked,
audited, kept in snapshots."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from qbatch.engine import snapshot
from qbatch.engine.engine import Engine
from qbatch.model.actions import Action, Chunk, Resize, Resume, Start, Suspend
from qbatch.model.errors import AuditError, DecisionError, UsageError
from qbatch.model.events import Finished, HostClosed, HostOpened, Submitted, Withdrawn, Woken
from qbatch.model.job import Job
from qbatch.model.machine import Host, Machine, one_host
from qbatch.policies import load_policy
from tests.engine.live import Life, Slices
from tests.engine.test_engine import SECOND, Script
from tests.harness import size

ONE = Machine((Host("a", 8, 1000, resources=(("gpu", 2), ("nvme", 5))),))
TWO = Machine(
    (Host("a", 8), Host("b", 4, resources=(("gpu", 2),)), Host("c", 8, resources=(("gpu", 4),))),
    single_host=True,
)


def job(
    number: int,
    procs: int = 1,
    submit: int = 0,
    estimate: int = 100,
    memory: int = 0,
    **amounts: int,
) -> Submitted:
    asked = tuple(amounts.items())
    return Submitted(
        Job(
            number=number,
            submit=submit,
            procs=procs,
            estimate=estimate * SECOND,
            memory=memory,
            resources=asked,
        )
    )


def engine_with(*steps: Iterable[Action], machine: Machine = ONE) -> Engine:
    return Engine(machine, Script(*steps), is_audited=True)


def free(engine: Engine) -> tuple[Any, ...]:
    view = engine.view()
    return (
        *view.free,
        *view.free_memory,
        *(amount for row in view.free_resources for amount in row),
    )


def test_a_job_has_what_it_asks_for_until_it_ends() -> None:
    engine = engine_with([Start(0)])
    done = engine.handle(0, [job(1, 3, memory=10, gpu=1, nvme=4)])
    assert done.actions == (Start(0, (Chunk(0, 3, 10, resources=(1, 4)),)),)
    assert free(engine) == (5, 990, 1, 1)
    assert engine.view().pieces[:, 0].tolist() == [100 * SECOND, 0, 3, 10, 1, 4, 0]
    assert engine.view().columns.asked[:, 0].tolist() == [3, 10, 1, 4]
    engine.handle(9, [Finished(0)])
    assert free(engine) == (8, 1000, 2, 5)


def test_the_engine_fills_in_what_a_policy_leaves_out_and_refuses_what_is_wrong() -> None:
    engine = engine_with([Start(0, (Chunk(0, 1),))])
    engine.handle(0, [job(1, gpu=2)])
    assert engine.view().running[0].allocation == (Chunk(0, 1, resources=(2, 0)),)
    for allocation in ((Chunk(0, 1, resources=(1, 0)),), (Chunk(0, 1, resources=(2,)),)):
        with pytest.raises(
            DecisionError, match=r"of other resources, the job asks for \{'gpu': 2, 'nvme': 0\}"
        ):
            engine_with([Start(0, allocation)]).handle(0, [job(1, gpu=2)])
    with pytest.raises(DecisionError, match=r"of other resources, the job asks for \{\}"):
        engine_with([Start(0, (Chunk(0, 1, resources=(1,)),))], machine=one_host(4)).handle(
            0, [job(1)]
        )


def test_what_is_not_free_is_refused() -> None:
    for start in (
        Start(1),
        Start(1, (Chunk(0, 1),)),
        Start(1, (Chunk(0, 1),), until=9, is_trial=True),
    ):
        with pytest.raises(DecisionError, match=r"no host can now hold|host a has 1 gpu free"):
            engine_with([Start(0), start]).handle(0, [job(1, gpu=1), job(2, gpu=2)])


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ({"gpu": 5}, "needs 5 gpu on one host; no host has more than 4"),
        ({"fpga": 1}, "needs 1 fpga on one host; no host has any"),
        ({"gpu": -1}, "asks for -1 gpu"),
        ({"procs": 6, "gpu": 2, "estimate": 1}, None),
        ({"procs": 9, "gpu": 1}, "needs 9 processors on one host; the largest host has 8"),
    ],
)
@pytest.mark.parametrize("others", [0, 2])
def test_admission_refuses_what_no_host_could_hold(
    asked: dict[str, int], text: str | None, others: int
) -> None:
    engine = engine_with(machine=TWO)
    done = engine.handle(0, [job(1, **asked), *(job(number) for number in range(2, 2 + others))])
    assert [reason.text for _, reason in done.refused] == ([] if text is None else [text])
    assert len(done.arrived) == others + (text is None)


def test_admission_looks_at_one_host_for_everything() -> None:
    machine = Machine((Host("a", 8), Host("b", 2, 10, resources=(("gpu", 1),))), single_host=True)
    done = engine_with(machine=machine).handle(
        0, [job(1, 4, memory=5, gpu=1), job(2), job(3, 2, memory=10, gpu=1)]
    )
    ((row, reason),) = done.refused
    assert (row, reason.code, reason.numbers) == (
        0,
        "too-many-resources",
        {"procs": 4, "memory": 5, "gpu": 1},
    )
    assert (
        reason.text == "needs 4 processors, 5B of memory, 1 gpu on one host; no host has all of it"
    )
    (reason,) = [
        reason for _, reason in engine_with(machine=one_host(4)).handle(0, [job(1, gpu=1)]).refused
    ]
    assert reason.text == "needs 1 gpu on one host; no host has any"


@pytest.mark.parametrize("keeps", [True, False])
def test_a_suspended_job_gives_them_back_with_its_memory(keeps: bool) -> None:
    steps: list[list[Action]] = [[Start(0)], [Suspend(0, keep_memory=keeps)], [Resume(0)]]
    engine = engine_with(*steps)
    engine.handle(0, [job(1, 4, memory=100, gpu=2)])
    engine.handle(1, [Woken()])
    assert free(engine) == ((8, 900, 0, 5) if keeps else (8, 1000, 2, 5))
    engine.handle(2, [Woken()])
    assert free(engine) == (4, 900, 0, 5)
    engine.handle(3, [Finished(0)])
    assert free(engine) == (8, 1000, 2, 5)


def test_a_job_cannot_resume_while_another_has_its_own() -> None:
    engine = engine_with([Start(0)], [Suspend(0, keep_memory=False), Start(1)], [Resume(0)])
    engine.handle(0, [job(1, gpu=2), job(2, gpu=1)])
    engine.handle(1, [Woken()])
    with pytest.raises(DecisionError, match="its own host a has 1 gpu free"):
        engine.handle(2, [Woken()])
    engine = engine_with([Start(0)], [Suspend(0)])
    engine.handle(0, [job(1, gpu=2)])
    engine.handle(1, [Woken()])
    engine.handle(2, [Withdrawn(0)])
    assert free(engine) == (8, 1000, 2, 5)


def test_resizes_and_trials() -> None:
    engine = Engine(
        ONE,
        script := Script(
            [Start(0)], [Resize(0, 6)], [Start(1, (Chunk(0, 1),), until=9, is_trial=True)]
        ),
        is_audited=True,
    )
    engine.handle(
        0,
        [
            Submitted(
                Job(
                    number=1,
                    submit=0,
                    procs=2,
                    estimate=9,
                    min_procs=1,
                    max_procs=8,
                    resources=(("gpu", 1),),
                )
            )
        ],
    )
    engine.handle(1, [Woken()])
    assert free(engine) == (2, 1000, 1, 5)
    engine.handle(2, [job(2, submit=2, gpu=1)])
    assert free(engine) == (1, 1000, 0, 5)
    assert engine.handle(9, [Woken()]).requeued == (1,)
    assert free(engine) == (2, 1000, 1, 5)
    assert not script.steps


def test_what_is_free_on_a_closed_host_is_withheld() -> None:
    engine = Engine(TWO, load_policy("easy"), is_audited=True)
    engine.handle(0, [job(1, 2, gpu=1), job(2, 2, gpu=4), job(3, 1, gpu=1)])
    assert engine.view().free_resources == ((0, 0, 0),)
    engine.handle(1, [HostClosed(2)])
    assert engine.view().free_resources == ((0, 0, 0),)
    engine.handle(2, [Finished(1)])
    done = engine.handle(3, [job(4, 1, submit=3, gpu=3), job(5, 1, submit=3, gpu=2)])
    assert engine.parked == (3,)
    assert not done.actions
    why = "the open hosts could never hold it: needs 3 gpu on one host; no host has more than 2"
    assert engine.explain(3).text.startswith(why)
    assert engine.explain(4).text == "no host has 1 processors and 2 gpu free for its 100 s"
    done = engine.handle(4, [HostOpened(2)])
    assert [action.row for action in done.actions if isinstance(action, Start)] == [3]
    assert engine.view().free_resources == ((0, 0, 1),)


@pytest.mark.parametrize("policy", ["easy", "conservative", "sjf-backfill"])
def test_a_snapshot_holds_them(policy: str) -> None:
    engine = Engine(TWO, load_policy(policy), is_audited=True)
    engine.handle(
        0, [job(number, 1 + number % 3, estimate=number, gpu=number % 4) for number in range(1, 12)]
    )
    engine.handle(1, [HostClosed(1)])
    again = snapshot.load(TWO, load_policy(policy), snapshot.dump(engine), is_audited=True)
    assert snapshot.dump(again) == snapshot.dump(engine)
    for one in (engine, again):
        one.handle(2, [HostOpened(1)])
    rows = [sorted(one.view().running) for one in (engine, again)]
    assert rows[0] == rows[1]
    rounds = [
        [one.handle(3 + turn, [Finished(row)]) for turn, row in enumerate(rows[0])]
        for one in (engine, again)
    ]
    assert rounds[0] == rounds[1]


def test_the_audit_sees_what_is_given_twice() -> None:
    engine = engine_with([Start(0)])
    engine.handle(0, [job(1, gpu=1)])
    engine._cluster.hosts[0, 2, 0] = 2
    with pytest.raises(AuditError, match="host a: 1 of 2 gpu used, 2 free"):
        engine.handle(1, [Woken()])


def test_a_policy_that_does_not_know_them_cannot_take_over() -> None:
    engine = Engine(ONE, load_policy("easy"))
    engine.handle(0, [job(1, gpu=1)])
    with pytest.raises(
        UsageError,
        match=r"policy lsf counts only processors and memory, and .* also have gpu, nvme",
    ):
        engine.exchange_policy(load_policy("lsf"))
    engine.exchange_policy(load_policy("conservative"))
    engine.handle(1, [job(2, submit=1, gpu=2)])
    assert list(engine.view().running) == [0]


class Asking(Life):
    """Jobs that ask for resources of the machine, now and then too many."""

    def job(self) -> Submitted:
        amounts = ((name, self.rng.choice((0, 0, 1, 2, 4, 5))) for name in self.machine.resources)
        asked = tuple(each for each in amounts if each[1])
        return Submitted(msgspec.structs.replace(super().job().job, resources=asked))


MIXED = Machine(
    (
        Host("a", 8, 1000, resources=(("gpu", 2),)),
        Host("b", 4, 3000, resources=(("nvme", 3), ("gpu", 4))),
        Host("c", 4),
    ),
    single_host=True,
)
LIVED = [
    "easy",
    "fcfs",
    "hybrid",
    "conservative",
    "conservative:compress=start",
    "sjf-backfill",
    "lxfw-backfill",
    "predicted",
]


@pytest.mark.parametrize("name", [*LIVED, "predicted:inner=conservative", "slices"])
def test_a_life_of_closing_hosts_and_late_jobs_is_audited_and_goes_on_from_a_snapshot(
    name: str,
) -> None:
    for seed in range(size(6, 100)):
        policy = Slices() if name == "slices" else load_policy(name)
        life, rng = Asking(seed, MIXED), random.Random(seed)
        engine = Engine(MIXED, policy, is_audited=True)
        for turn in range(120):
            happens = (life.now, life.end(engine)) if turn == 100 else life.next(engine)
            if happens is None:
                break
            done = engine.handle(*happens)
            life.account(engine, done)
            if rng.random() < 0.1:
                engine = snapshot.load(MIXED, policy, snapshot.dump(engine), is_audited=True)
        while (happens := life.next(engine)) is not None:
            life.account(engine, engine.handle(*happens))
        view = engine.view()
        assert [len(view.running), len(view.suspended), len(view.queue)] == [0, 0, 0]
        assert view.free_resources == ((2, 4, 0), (0, 3, 0))
