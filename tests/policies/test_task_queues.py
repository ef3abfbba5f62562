"""Task queues through the engine: routing, selection, closing hosts, what it says; the schedules
are held in tests/replay."""

from __future__ import annotations

import pytest

from qbatch.engine.engine import Engine
from qbatch.engine.snapshot import dump, load
from qbatch.model.actions import Start
from qbatch.model.errors import UsageError
from qbatch.model.events import Event, Finished, HostClosed, HostOpened, Submitted, Withdrawn
from qbatch.model.job import ChunkRequest, Job
from qbatch.model.machine import Host, Machine, one_host
from qbatch.policies import load_policy

SECOND = 1_000_000
HOSTS = Machine(tuple(Host(f"n{number}", 1) for number in (1, 2, 3)), single_host=True)


def engine_of(policy: str = "taskqueues:ties=lowest", machine: Machine = HOSTS) -> Engine:
    return Engine(machine, load_policy(policy), is_audited=True)


def task(
    number: int,
    *,
    parent: int = -1,
    place: int = -1,
    seconds: int = 10,
    procs: int = 1,
    **more: object,
) -> Job:
    return Job(
        number=number,
        submit=0,
        procs=procs,
        estimate=seconds * SECOND,
        parent=parent,
        task=place,
        **more,  # type: ignore[arg-type]
    )


def tasks(parent: int, count: int, **more: object) -> list[Event]:
    return [Submitted(task(parent, parent=parent, place=place, **more)) for place in range(count)]  # type: ignore[arg-type]


def started(engine: Engine, at: int, events: list[Event]) -> list[tuple[int, str]]:
    done = engine.handle(at * SECOND, events)
    hosts = engine.machine.hosts
    return [
        (action.row, hosts[action.allocation[0].host].name)
        for action in done.actions
        if isinstance(action, Start)
    ]


def queues(engine: Engine) -> list[list[int]]:
    found = engine.host_queues()
    assert found is not None
    return found


def test_siblings_count_for_the_shortest_queue() -> None:
    engine = engine_of()
    assert started(engine, 0, tasks(7, 5)) == [(0, "n1"), (1, "n2"), (2, "n3")]
    assert queues(engine) == [[3], [4], []]
    assert started(engine, 1, [Submitted(task(8))]) == []
    assert queues(engine) == [[3], [4], [5]]
    assert started(engine, 2, [Finished(1)]) == [(4, "n2")]
    assert started(engine, 2, tasks(9, 1)) == []
    assert queues(engine) == [[3], [6], [5]]


def test_an_idle_host_does_not_look_at_other_queues() -> None:
    engine = engine_of()
    started(engine, 0, tasks(7, 6))
    assert started(engine, 1, [Finished(0)]) == [(3, "n1")]
    assert started(engine, 2, [Finished(3)]) == []
    assert queues(engine) == [[], [4], [5]]
    assert engine.explain(4).text.startswith(
        "first in the queue of n2, which has 0 processors free; it needs 1 processor"
    )


def test_it_says_which_jobs_are_ahead() -> None:
    engine = engine_of(machine=one_host(1))
    started(engine, 0, [*tasks(7, 3), Submitted(task(8))])
    said = engine.explain(3)
    assert said.text == "third in the queue of machine, behind 2 tasks of job 7"
    assert said.blocked_by == (1, 2)
    assert engine.explain(2).text == "second in the queue of machine, behind 1 task of job 7"
    started(engine, 0, tasks(9, 1))
    assert engine.explain(4).text == "fourth in the queue of machine, behind 3 tasks of 2 jobs"
    started(engine, 1, tasks(10, 20))
    assert "number 24 in the queue" in engine.explain(24).text


@pytest.mark.parametrize(
    ("discipline", "wanted"),
    [
        ("fcfs", [1, 2, 3, 4]),
        ("stf", [4, 3, 2, 1]),
        ("lstf,limit=1", [1, 4, 2, 3]),
        ("lstf,limit=2", [4, 1, 3, 2]),
    ],
)
def test_estimates_order_the_queue_and_the_oldest_has_its_turn(
    discipline: str, wanted: list[int]
) -> None:
    engine = engine_of(f"taskqueues:discipline={discipline}", one_host(1))
    # The first selection is of the only task: it counts.
    assert started(engine, 0, [Submitted(task(1))]) == [(0, "machine")]
    assert (
        started(
            engine, 0, [Submitted(task(number, seconds=10 - number)) for number in (2, 3, 4, 5)]
        )
        == []
    )
    assert queues(engine) == [wanted]
    order = [0]
    for instant in range(1, 5):
        ((row, _),) = started(engine, instant, [Finished(order[-1])])
        order.append(row)
    assert order[1:] == wanted


@pytest.mark.parametrize(
    "discipline", ["fcfs", "stf", "lstf,limit=1", "lstf,limit=2", "lstf,limit=3"]
)
def test_the_queue_is_listed_in_the_order_in_which_it_is_taken(discipline: str) -> None:
    engine = engine_of(f"taskqueues:discipline={discipline}", one_host(1))
    arrays = [*tasks(1, 2, seconds=9), *tasks(2, 3, seconds=5), *tasks(3, 3, seconds=7)]
    ((running, _),) = started(engine, 0, arrays)
    listed, taken = queues(engine)[0], []
    while any(queues(engine)):
        assert queues(engine)[0] == listed[len(taken) :]
        ((row, _),) = started(engine, 1, [Finished(running)])
        taken.append(row)
        running = row
    assert taken == listed


def test_the_fewest_uncompleted_tasks_come_first_wherever_they_are() -> None:
    engine = engine_of(
        "taskqueues:discipline=snutf,ties=lowest",
        Machine((Host("a", 1), Host("b", 1)), single_host=True),
    )
    # Rows 0 to 2 are of job 1, 3 and 4 of job 2; a has 0, 2 and 4, b has 1 and 3.
    assert started(engine, 0, [*tasks(1, 3), *tasks(2, 2)]) == [(4, "a"), (3, "b")]
    assert started(engine, 1, [Finished(4)]) == [(0, "a")]
    assert started(engine, 2, tasks(3, 2)) == []
    # Job 3 has two tasks left, job 1 three, of which one runs.
    assert queues(engine) == [[5, 2], [6, 1]]
    # With the task that runs, job 1 has two left now: as many as job 3, and its tasks were routed
    # before.
    assert started(engine, 3, [Finished(0)]) == [(2, "a")]
    assert queues(engine) == [[5], [1, 6]]


def test_of_equals_the_shortest_may_come_first() -> None:
    engine = engine_of("taskqueues:discipline=snutf-stf", one_host(1))
    arrays = [*tasks(1, 2, seconds=9), *tasks(2, 2, seconds=5), *tasks(3, 3, seconds=1)]
    started(engine, 0, [*arrays, Submitted(task(4, seconds=20))])
    assert list(engine.view().running) == [7]  # the one task of job 4
    assert queues(engine) == [[2, 3, 0, 1, 4, 5, 6]]
    assert started(engine, 1, [Finished(7)]) == [(2, "machine")]
    assert queues(engine) == [[3, 0, 1, 4, 5, 6]]


def test_a_selected_task_that_does_not_fit_makes_its_host_wait() -> None:
    engine = engine_of(machine=Machine((Host("a", 4),)))
    assert started(engine, 0, [Submitted(task(1, procs=3))]) == [(0, "a")]
    assert started(engine, 1, [Submitted(task(2, procs=2)), Submitted(task(3))]) == []
    assert (
        "first in the queue of a, which has 1 processor free; it needs 2 processors"
        in engine.explain(1).text
    )
    assert engine.explain(2).text == "second in the queue of a, behind job 2"
    assert started(engine, 2, [Finished(0)]) == [(1, "a"), (2, "a")]


def test_a_station_of_more_processors_is_longer_for_the_same_number() -> None:
    engine = engine_of(
        "taskqueues:ties=lowest", Machine((Host("a", 1), Host("b", 3)), single_host=True)
    )
    started(engine, 0, tasks(1, 8))
    assert [len(queue) for queue in queues(engine)] == [1, 3]


def test_a_host_that_closes_gives_its_tasks_back_to_routing_in_sequence() -> None:
    engine = engine_of()
    started(engine, 0, tasks(1, 9))
    assert queues(engine) == [[3, 6], [4, 7], [5, 8]]
    assert started(engine, 1, [HostClosed(1)]) == []
    assert queues(engine) == [[3, 6, 4], [], [5, 8, 7]]
    # What ran there has ended; nothing starts on a closed host.
    assert started(engine, 2, [Finished(1)]) == []
    engine.handle(3 * SECOND, [HostOpened(1)])
    assert started(engine, 3, tasks(2, 1)) == [(9, "n2")]
    assert queues(engine) == [[3, 6, 4], [], [5, 8, 7]]


def test_hosts_that_close_together_give_their_tasks_back_in_one_sequence() -> None:
    engine = engine_of(
        machine=Machine(tuple(Host(f"n{number}", 1) for number in range(4)), single_host=True)
    )
    started(engine, 0, tasks(1, 12))
    assert queues(engine) == [[4, 8], [5, 9], [6, 10], [7, 11]]
    engine.handle(1 * SECOND, [HostClosed(0), HostClosed(1)])
    assert queues(engine) == [[], [], [6, 10, 4, 8], [7, 11, 5, 9]]


def test_it_says_that_memory_is_short() -> None:
    engine = engine_of(machine=Machine((Host("a", 4, 1024),)))
    started(engine, 0, [Submitted(task(1, memory=1000)), Submitted(task(2, memory=512))])
    said = (
        "first in the queue of a, which has 3 processors and 24B of memory free; it needs 1 "
        "processor and 512B of memory"
    )
    assert engine.explain(1).text == said


def test_what_was_accepted_before_waits_where_no_one_host_can_hold_it() -> None:
    machine = Machine((Host("a", 2), Host("b", 2)), chunked=True)
    engine = engine_of("easy", machine)
    wide = {"procs": 4, "chunks": (ChunkRequest(2, 2),)}
    started(engine, 0, [Submitted(task(1, **wide)), Submitted(task(2, **wide))])  # type: ignore[arg-type]
    engine.exchange_policy(load_policy("taskqueues"))
    done = engine.handle(1 * SECOND, [Submitted(task(3, is_admitted=True, **wide))])  # type: ignore[arg-type]
    assert not done.actions
    assert {engine.explain(row).code for row in (1, 2)} == {"too-wide"}
    engine.exchange_policy(load_policy("easy"))
    assert started(engine, 2, [Finished(0)]) == [(1, "a")]


def test_tasks_for_which_all_hosts_are_closed_are_routed_when_one_opens() -> None:
    engine = engine_of(machine=Machine((Host("a", 1), Host("b", 4)), single_host=True))
    started(engine, 0, [Submitted(task(1, procs=4)), Submitted(task(2, procs=3))])
    engine.handle(1 * SECOND, [HostClosed(1)])
    assert engine.explain(1).code == "hosts-closed"
    assert queues(engine) == [[], []]
    engine.handle(2 * SECOND, [HostOpened(1)])
    assert queues(engine) == [[], [1]]
    assert started(engine, 3, [Finished(0)]) == [(1, "b")]


def test_a_job_that_is_taken_back_leaves_its_queue() -> None:
    engine = engine_of(machine=one_host(1))
    started(engine, 0, tasks(1, 4))
    engine.handle(1 * SECOND, [Withdrawn(2)])
    assert queues(engine) == [[1, 3]]
    assert started(engine, 2, [Finished(0), Withdrawn(1)]) == [(3, "machine")]


def test_what_cannot_be_inside_one_host_is_refused() -> None:
    machine = Machine((Host("a", 4), Host("b", 2)), chunked=True)
    engine = engine_of(machine=machine)
    two = task(1, procs=6, chunks=(ChunkRequest(3, 2),))
    apart = task(2, procs=2, chunks=(ChunkRequest(2, 1),), placing="scatter")
    packed = task(3, procs=4, chunks=(ChunkRequest(2, 2),))
    done = engine.handle(0, [Submitted(two), Submitted(apart), Submitted(packed)])
    refused = {
        action.row: action.reason for action in done.actions if type(action).__name__ == "Reject"
    }
    assert sorted(refused) == [0, 1]
    assert refused[0].code == "too-wide"
    assert [action.row for action in done.actions if isinstance(action, Start)] == [2]
    quotes = [engine.quote(job) for job in (two, apart, packed)]
    assert [quote is not None and quote.reason is not None for quote in quotes] == [
        True,
        True,
        False,
    ]
    with pytest.raises(UsageError, match="single_host = true"):
        Engine(Machine((Host("a", 4), Host("b", 2))), load_policy("taskqueues"))


def test_it_takes_over_what_another_policy_has_started() -> None:
    engine = engine_of("easy")
    started(engine, 0, [*tasks(1, 5), Submitted(task(2))])
    engine.exchange_policy(load_policy("taskqueues:ties=lowest"))
    engine.handle(1 * SECOND, [])
    assert queues(engine) == [[3], [4], [5]]
    assert started(engine, 2, [Finished(2)]) == [(5, "n3")]


def test_a_written_engine_goes_on_with_its_queues() -> None:
    engine = engine_of("taskqueues:discipline=lstf,limit=1,ties=lowest")
    started(engine, 0, tasks(1, 12))
    duplicate = load(HOSTS, engine.policy, dump(engine), is_audited=True)
    for instant, row in enumerate((0, 1, 2), 1):
        assert started(engine, instant, [Finished(row)]) == started(
            duplicate, instant, [Finished(row)]
        )
    assert queues(engine) == queues(duplicate)


def test_draws_of_arrays_are_by_task_and_the_same_again() -> None:
    machine = Machine(tuple(Host(f"n{number}", 1) for number in range(8)), single_host=True)
    engines = [engine_of("taskqueues:routing=probabilistic", machine) for _ in range(2)]
    other = engine_of("taskqueues:routing=probabilistic,seed=1", machine)
    for engine in (*engines, other):
        started(engine, 0, tasks(5, 40))
    assert queues(engines[0]) == queues(engines[1]) != queues(other)
    assert sum(bool(queue) for queue in queues(other)) > 4
