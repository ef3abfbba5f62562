"""Projections: the inner policy sees what a wrapper says in every form, and the machine's state is
not touched."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from qbatch.engine.engine import Engine
from qbatch.model.actions import Action, Chunk, Start, Suspend, parts_of
from qbatch.model.errors import DecisionError
from qbatch.model.events import Event, HostClosed, Submitted
from qbatch.model.job import Job
from qbatch.model.machine import Host, Machine
from qbatch.planning.projection import Inner, Projection
from qbatch.planning.view import View
from qbatch.policies import load_policy

SECOND = 1_000_000
HOSTS = (Host("a", 4, 100), Host("b", 8))


def busy(machine: Machine, then: tuple[Event, ...] = ()) -> View:
    """Return a view: rows 0 and 1 run on hosts a and b for 5 and 9 seconds, rows 2 and 3 wait;
    after what happened ``then``."""
    engine = Engine(machine, load_policy("fcfs"))
    sizes = ((3, 5), (6, 9), (7, 2), (1, 2))
    jobs = [
        Job(number=n, submit=0, procs=procs, estimate=length * SECOND)
        for n, (procs, length) in enumerate(sizes)
    ]
    engine.handle(0, [Submitted(job) for job in jobs])
    if then:
        engine.handle(1, then)
    return engine.view()


@pytest.fixture(params=["hosts", "chunks"])
def view(request: pytest.FixtureRequest) -> View:
    return busy(
        Machine(HOSTS, single_host=request.param == "hosts", chunked=request.param == "chunks")
    )


def test_what_is_not_changed_is_what_it_was(view: View) -> None:
    other = Projection(view).view(memory="inner")
    assert (other.free, other.free_memory, other.running) == (
        view.free,
        view.free_memory,
        view.running,
    )
    assert (other.queue.tolist(), other.ends.tolist()) == (view.queue.tolist(), view.ends.tolist())
    assert (other.amounts.tolist(), other.memory, view.memory) == (
        view.amounts.tolist(),
        "inner",
        None,
    )


def test_a_running_job_that_is_hidden_is_in_no_form_there(view: View) -> None:
    shown = Projection(view)
    hidden = shown.hide_running(0)
    other = shown.view()
    assert list(other.running) == [1]
    assert len(other.ends) == len(view.ends) - 1
    assert other.pieces is not None
    assert other.pieces.shape[1] == len(list(parts_of(view.running[1].allocation)))
    assert other.free == view.free  # that is the wrapper's to say
    shown.show_running(replace(hidden, expected_end=7 * SECOND))
    assert shown.view().ends.tolist() == [7 * SECOND, 9 * SECOND]
    assert view.ends.tolist() == [5 * SECOND, 9 * SECOND]


def test_of_two_runs_that_are_alike_the_other_one_is_left() -> None:
    engine = Engine(Machine(HOSTS, single_host=True), load_policy("fcfs"))
    engine.handle(
        0, [Submitted(Job(number=n, submit=0, procs=1, estimate=SECOND)) for n in range(3)]
    )
    shown = Projection(engine.view())
    shown.hide_running(0)
    shown.hide_running(2)
    other = shown.view()
    assert other.pieces is not None
    assert (list(other.running), other.pieces.shape[1], other.amounts.tolist()) == ([1], 1, [1])


def test_what_is_shown_does_not_change_with_the_projection(view: View) -> None:
    shown = Projection(view)
    other = shown.view()
    shown.hide_running(0)
    shown.take((Chunk(1, 8),))
    assert (other.running, other.ends.tolist(), other.free) == (
        view.running,
        view.ends.tolist(),
        view.free,
    )


def test_waiting_rows_are_shown_in_order(view: View) -> None:
    shown = Projection(view)
    rows = view.queue.tolist()
    shown.show_waiting([0])
    assert shown.view().queue.tolist() == [0, *rows]
    assert view.queue.tolist() == rows


def test_a_closed_host_has_nothing_whatever_the_wrapper_says_and_gives_nothing_back(
    view: View,
) -> None:
    machine = Machine(HOSTS, single_host=view.machine.single_host, chunked=view.machine.chunked)
    closed = busy(machine, (HostClosed(1),))
    shown = Projection(closed)
    shown.free[1] = 2
    other = shown.view()
    assert other.closed == {1}
    assert (other.free[1], other.free[0]) == (0, closed.free[0])
    on_first = sum(
        chunk.procs
        for run in closed.running.values()
        for chunk in run.allocation
        if 0 in chunk.hosts
    )
    assert int(other.amounts.sum()) == on_first


def test_the_inner_policy_decides_by_what_it_is_shown(view: View) -> None:
    shown = Projection(view)
    shown.take((Chunk(0, 4), Chunk(1, 8)))
    assert list(load_policy("hybrid:depth=0").decide(shown.view())) == []
    assert [action.row for action in load_policy("hybrid:depth=0").decide(view)] == [3]  # type: ignore[union-attr]


def test_actions_come_back_with_places_from_what_was_shown(view: View) -> None:
    shown = Projection(view)
    shown.take((Chunk(0, 4),))
    inner = Inner(shown.view(), "inner")
    row = int(view.queue[-1])
    placed: Action = inner.action(Start(row))
    assert isinstance(placed, Start)
    assert [(chunk.host, chunk.procs) for chunk in placed.allocation] == [(1, 1)]
    assert inner.gone == {row}
    assert inner.free_now.free[1] == view.free[1] - 1
    with pytest.raises(DecisionError, match="only starts can be wrapped"):
        inner.action(Suspend(0))
