"""A policy in Python inside the compiled loop: the schedules of the engine, whatever the policy is
and does."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from qbatch.model.actions import (
    Action,
    Chunk,
    Promise,
    Reject,
    Resize,
    Resume,
    Start,
    Suspend,
    WakeAt,
)
from qbatch.model.errors import DecisionError
from qbatch.model.machine import Host, Machine, one_host
from qbatch.model.reasons import Reason
from qbatch.model.record import Schedule, Workload
from qbatch.planning.view import View
from qbatch.policies import load_policy
from qbatch.simulation import drivers, loop_engine, run
from qbatch.simulation.drivers import run_around_python
from tests.golden.cases import MACHINES, policies, random_workload
from tests.harness import same_schedule, workload_of
from tests.oracle.naive import Job

SECOND = 1_000_000
POOL, HOSTS = one_host(8), Machine((Host("a", 8, 2000), Host("b", 4, 1000)), single_host=True)


class Doing:
    """A policy made of one function."""

    name = "doing"

    def __init__(self, decide: Callable[[View], list[Action]]) -> None:
        self.decide = decide


def pairs() -> Iterator[tuple[str, str]]:
    """Return every policy with a loop around it, each on one machine."""
    for turn, policy in enumerate(policies()):
        for name in (list(MACHINES) * 2)[turn % len(MACHINES) :][: len(MACHINES)]:
            if takes(policy, MACHINES[name]):
                yield policy, name
                break


def takes(policy: str, machine: Machine) -> bool:
    from tests.golden.cases import _works

    return _works(policy, machine)


def alike(one: Schedule, other: Schedule) -> bool:
    counts = [None if each.broken is None else each.broken.tolist() for each in (one, other)]
    intervals = [None if each.pieces is None else each.pieces.tolist() for each in (one, other)]
    return same_schedule(one, other) and counts[0] == counts[1] and intervals[0] == intervals[1]


@pytest.mark.parametrize(("policy", "machine"), list(pairs()))
def test_it_makes_the_schedule_of_the_engine(policy: str, machine: str) -> None:
    for seed in range(4):
        work = random_workload(random.Random(f"{machine} {seed}"), MACHINES[machine])
        engine = run(work, MACHINES[machine], load_policy(policy), driver="engine")
        assert alike(engine, run_around_python(work, MACHINES[machine], load_policy(policy))), seed


def first_that_fits(view: View) -> Iterator[Action]:
    free = view.free_now()
    for job in view.waiting:
        if free.take(job):
            yield Start(job.row)


def by_name_of_a_host(view: View) -> Iterator[Action]:
    free = view.free_now()
    for job in view.that_fit("estimate"):
        for host in reversed(range(len(view.machine.hosts))):
            if allocation := free.place_on(job, host):
                yield Start(job.row, allocation)
                break


def with_more_memory(view: View) -> Iterator[Action]:
    for job in view.waiting:
        memory = view.free_memory[0]
        if job.procs <= view.free[0] and job.memory <= memory:
            yield Start(job.row, (Chunk(0, job.procs, memory),))
            return


def what_it_sees(view: View) -> Iterator[Action]:
    """Promise a number made of everything that a view shows, so that a difference would be seen."""
    seen = [
        view.now,
        *view.finished,
        *view.arrived,
        view.only_arrivals,
        view.free_procs,
        view.is_late,
        *view.ends,
        *view.amounts,
    ]
    seen += [
        len(view.running),
        *view.running,
        *(run.since + run.expected_end + run.procs for run in view.running.values()),
    ]
    seen += [run.done + run.since + run.expected_end for run in view.ended]
    seen += [
        view.columns.started.sum(),
        len(view.columns.submit),
        *view.pieces.ravel(),
        *view.free_memory,
    ]
    for row in view.queue.tolist():
        if row not in view.promises:
            yield Promise(row, view.now + 1000 * SECOND + hash(tuple(map(int, seen))) % 1000)
    yield (
        WakeAt(view.now + 3 * SECOND)
        if len(view.queue) and len(view.running)
        else WakeAt(view.now + 10**12)
    )
    yield from first_that_fits(view)


def without_end(view: View) -> Iterator[Action]:
    if len(view.queue) or view.running:
        yield from what_it_sees(view)


def some_refused(view: View) -> Iterator[Action]:
    for row in view.arrived:
        if row % 5 == 3:
            yield Reject(row, Reason("five", "doing", "each fifth job is refused"))
    refused = {row for row in view.arrived if row % 5 == 3}
    yield from (action for action in first_that_fits(view) if action.row not in refused)


def in_turns(view: View) -> Iterator[Action]:
    """Start jobs for a while, suspend others, with or without their memory, and let them go on for
    a while or to their end."""
    yield from seen(view)
    if view.suspended and not view.running:
        yield Resume(min(view.suspended), view.now + 2 * SECOND if view.now % 3 else None)
        return
    for row, one in view.running.items():
        if one.since + SECOND <= view.now and (row + view.now // SECOND) % 3 == 0:
            yield Suspend(row, keep_memory=row % 2 == 0)
    free = view.free_now()
    for job in view.waiting:
        if free.take(job):
            yield Start(
                job.row, until=view.now + (1 + job.row % 4) * SECOND if job.row % 3 else None
            )
    if view.running:
        yield WakeAt(view.now + SECOND)


def on_trial(view: View) -> Iterator[Action]:
    """Try each job twice with half of its memory, then start it."""
    yield from seen(view)
    memory, free, free_memory = view.memory, list(view.free), list(view.free_memory)
    for job in view.waiting:
        tried = memory.get(job.row, 0)
        size = job.memory // 2 if tried < 2 else job.memory
        for place, host in enumerate(view.machine.hosts):
            if job.procs <= free[place] and (not host.memory or size <= free_memory[place]):
                free[place] -= job.procs
                free_memory[place] -= size
                memory[job.row] = tried + 1
                chunk = (Chunk(place, job.procs, size),)
                is_trial = tried < 2
                yield Start(
                    job.row, chunk, view.now + 2 * SECOND if is_trial else None, is_trial=is_trial
                )
                break


def resized(view: View) -> Iterator[Action]:
    """Start each job on one processor, and give it what is free at each pass."""
    yield from seen(view)
    free, free_memory = list(view.free), list(view.free_memory)
    if view.suspended and not view.running:
        yield Resize(min(view.suspended), 1)
        yield Resume(min(view.suspended))
        return
    for row, one in view.running.items():
        (chunk,), most = one.allocation, view.jobs[row].procs
        if row % 5 == 2 and one.procs == most and one.since < view.now and len(view.running) > 1:
            yield Suspend(row)
        elif one.procs < most and free[chunk.host]:
            free[chunk.host] -= 1
            yield Resize(row, one.procs + 1)
    for job in view.waiting:
        for place, host in enumerate(view.machine.hosts):
            if free[place] and (not host.memory or job.memory <= free_memory[place]):
                free[place] -= 1
                free_memory[place] -= job.memory
                yield Start(job.row, (Chunk(place, 1, job.memory),))
                break


def seen(view: View) -> Iterator[Action]:
    """Promise a number made of the jobs that a view shows."""
    runs = [*view.running.values(), *view.suspended.values(), *view.ended]
    facts = [
        len(view.running),
        *view.requeued,
        *view.ends,
        *view.amounts,
        *view.pieces.ravel(),
        *view.free,
        *view.free_memory,
    ]
    facts += [
        (one.row, one.allocation, one.since, one.expected_end, one.done, one.holds_memory)
        for one in runs
    ]
    facts += [view.only_arrivals, view.is_late, *view.columns.started]
    for row in view.arrived:
        yield Promise(row, view.now + 10**9 * SECOND + hash(tuple(facts)) % 1000)


@pytest.mark.parametrize(
    ("decide", "machine"),
    [
        (in_turns, "one host"),
        (in_turns, "spanned hosts"),
        (in_turns, "hosts with memory"),
        (in_turns, "chunks"),
        (on_trial, "one host with memory"),
        (on_trial, "hosts with memory"),
        (resized, "one host"),
        (resized, "hosts without memory"),
    ],
)
def test_jobs_that_are_interrupted_do_what_they_do_in_the_engine(
    decide: Callable, machine: str
) -> None:
    """They are suspended, resumed, tried and resized, and those with parts on several hosts too."""

    class Interrupting(Doing):
        is_malleable = decide is resized

        def new_memory(self, machine: Machine) -> dict[int, int]:
            return {}

    cut = 0
    for seed in range(8):
        work = random_workload(random.Random(f"{machine} {seed}"), MACHINES[machine])
        try:
            one = run(work, MACHINES[machine], Interrupting(decide), driver="engine")
        except (
            DecisionError
        ) as error:  # a job of which the memory was given back may not get it again
            with pytest.raises(DecisionError, match=re.escape(str(error))):
                run_around_python(work, MACHINES[machine], Interrupting(decide))
            continue
        other = run_around_python(work, MACHINES[machine], Interrupting(decide))
        assert alike(one, other), seed
        cut += 0 if other.pieces is None else len(other.pieces)
    assert cut > 8


def test_intervals_that_end_together_are_in_order_of_sequence_whatever_ended_them() -> None:
    def decide(view: View) -> list[Action]:
        if view.now == 0:
            trial = Start(0, (Chunk(0, 1),), until=5 * SECOND, is_trial=True)
            return [trial, Start(1, until=5 * SECOND), Start(2)]
        return [*first_that_fits(view), *map(Resume, view.suspended)]

    jobs = [Job(row, 0, 1, 10 * SECOND, length * SECOND) for row, length in enumerate((10, 10, 5))]
    work = workload_of(jobs, 3)
    for schedule in (
        run(work, one_host(3), Doing(decide), driver="engine"),
        run_around_python(work, one_host(3), Doing(decide)),
    ):
        assert schedule.pieces is not None
        at_five = [piece[0] for piece in schedule.pieces.tolist() if piece[2] == 5 * SECOND]
        assert at_five == [0, 1]


def test_there_is_space_for_more_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop begins with space for a few of them, and stops where it may have no more."""
    made, work = loop_engine.state_of, random_workload(random.Random(7), POOL)

    def with_little_space(*facts: Any) -> Any:
        state = made(*facts)
        few = 2 * len(state.actions) + 1
        return state._replace(intervals=state.intervals[:few].copy())

    monkeypatch.setattr(loop_engine, "state_of", with_little_space)
    long = work.changed(run=work.run * 50, estimate=work.estimate * 50)
    one = run(long, POOL, Doing(in_turns), driver="engine")
    other = run_around_python(long, POOL, Doing(in_turns))
    assert alike(one, other)
    assert other.pieces is not None
    assert len(other.pieces) > 40


@pytest.mark.parametrize("machine", [POOL, HOSTS], ids=["pool", "hosts"])
@pytest.mark.parametrize(
    "decide", [first_that_fits, by_name_of_a_host, with_more_memory, without_end, some_refused]
)
def test_a_policy_of_ones_own_is_shown_what_the_engine_shows(
    decide: Callable, machine: Machine
) -> None:
    for seed in range(6):
        work = random_workload(random.Random(seed), machine)
        by_engine = columns_of(lambda *given: run(*given, driver="engine"), work, machine, decide)
        assert by_engine == columns_of(run_around_python, work, machine, decide)


def columns_of(
    replay: Callable[..., Schedule], work: Workload, machine: Machine, decide: Callable
) -> object:
    """Return everything that a schedule says, or why there is none."""
    try:
        schedule = replay(work, machine, Doing(decide))
    except DecisionError as error:
        return str(error)
    columns = (
        schedule.start,
        schedule.end,
        schedule.kind,
        schedule.promise,
        schedule.first_promise,
    )
    return [column.tolist() for column in columns], schedule.queue_max, schedule.rejected


def suspend(view: View) -> list[Action]:
    return [Suspend(row) for row in view.running if view.finished] + list(first_that_fits(view))


FAULTS = {
    "twice": lambda view: [Start(row) for row in view.queue.tolist()[:1]] * 2,
    "no such row": lambda view: [Start(99)],
    "no whole number": lambda view: [Start(float(view.queue[0]))] if len(view.queue) else [],
    "no room": lambda view: [Start(row) for row in view.queue.tolist()],
    "no host": lambda view: [
        Start(row, (Chunk(7, view.jobs[row].procs),)) for row in view.queue.tolist()
    ],
    "fewer processors": lambda view: [
        Start(row, (Chunk(0, view.jobs[row].procs - 1),)) for row in view.queue.tolist()
    ],
    "nothing": lambda view: [],
    "no action": lambda view: ["start"],
    "fails": lambda view: [1 // 0],
    "woken now": lambda view: [WakeAt(view.now)],
    "later promise": lambda view: [
        Promise(row, view.now + view.now) for row in view.queue.tolist()
    ],
    "refused and started": lambda view: [
        action
        for row in view.queue.tolist()
        for action in (Reject(row, Reason("no", "doing", "no")), Start(row))
    ],
    "suspends": suspend,
    "suspended at once": lambda view: [
        action for row in view.queue.tolist()[:1] for action in (Start(row), Suspend(row))
    ],
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("machine", [POOL, HOSTS], ids=["pool", "hosts"])
def test_what_may_not_happen_is_refused_in_the_words_of_the_engine(
    fault: str, machine: Machine
) -> None:
    work = random_workload(random.Random(5), machine)
    with pytest.raises(DecisionError) as engine:
        run(work, machine, Doing(FAULTS[fault]), driver="engine")
    with pytest.raises(DecisionError) as loop:
        run_around_python(work, machine, Doing(FAULTS[fault]))
    assert str(loop.value) == str(engine.value)


def test_the_loop_is_taken_for_many_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    work, taken = random_workload(random.Random(2), POOL), []
    monkeypatch.setattr(
        drivers,
        "run_around_python",
        lambda *given: taken.append(given) or run_around_python(*given),
    )
    run(work, POOL, Doing(first_that_fits))
    assert not taken
    monkeypatch.setattr(drivers, "MANY", len(work))
    monkeypatch.setattr(drivers, "MANY_MORE", len(work))
    run(work, POOL, Doing(first_that_fits))
    run(work, POOL, Doing(first_that_fits), driver="engine")
    assert len(taken) == 1


def test_progress_is_reported() -> None:
    calls: list[tuple[int, int]] = []
    work = random_workload(random.Random(3), POOL)
    before, loop_engine.PROGRESS_EVERY = loop_engine.PROGRESS_EVERY, 10
    try:
        run_around_python(
            work, POOL, Doing(first_that_fits), lambda arrived, now: calls.append((arrived, now))
        )
    finally:
        loop_engine.PROGRESS_EVERY = before
    assert calls
    assert calls == sorted(calls)
    assert calls[-1][0] <= len(work)
