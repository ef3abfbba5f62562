"""The audit finds work that is lost, done twice or done elsewhere: in the live books and in a
finished schedule."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from qbatch.engine.audit import breaches
from qbatch.engine.engine import Engine
from qbatch.model.actions import Chunk, Resume, Start, Suspend
from qbatch.model.errors import AuditError
from qbatch.model.events import Submitted, Woken
from qbatch.model.job import Job
from qbatch.model.machine import Host, Machine, one_host
from qbatch.model.record import Schedule
from qbatch.policies import load_policy
from qbatch.simulation.calendar import Calendar
from tests.harness import workload_of
from tests.oracle.naive import Job as Asked

SECOND = 1_000_000


class Script:
    """A policy that does at each instant what the test wrote down for it."""

    def __init__(self, **at: list[object]) -> None:
        self.at = at

    def decide(self, view):
        return self.at.get(f"at{view.now}", [])


def engine_with(**at: list[object]) -> Engine:
    machine = Machine((Host("a", 4), Host("b", 4)), single_host=True)
    engine = Engine(machine, Script(at0=[Start(0, (Chunk(0, 2),))], **at), is_audited=True)
    engine.handle(0, [Submitted(Job(number=7, submit=0, procs=2, estimate=100))])
    return engine


def test_the_books_agree_through_a_suspension() -> None:
    engine = engine_with(at10=[Suspend(0)], at20=[Resume(0)])
    for at in (10, 20, 30):
        engine.handle(at, [Woken()])
    assert engine.view().running[0].done == 20


def test_work_that_the_cluster_loses_is_found() -> None:
    engine = engine_with(at10=[Suspend(0)])
    engine._cluster.runs.state.runs[0].done = 5
    with pytest.raises(
        AuditError, match="job 7: 25 processor-microseconds of work recorded, 20 were done"
    ):
        engine.handle(10, [Woken()])


def test_a_job_that_goes_on_elsewhere_is_found() -> None:
    engine = engine_with(at10=[Suspend(0)], at20=[Resume(0)])
    engine.handle(10, [Woken()])
    engine._cluster.suspended[0] = msgspec.structs.replace(
        engine._cluster.suspended[0], allocation=(Chunk(1, 2),)
    )
    with pytest.raises(AuditError, match="job 7 is not on the processors of the host that it had"):
        engine.handle(20, [Woken()])


def in_pieces() -> Schedule:
    jobs = [
        Asked(0, 0, 4, 1000 * SECOND, 1000 * SECOND),
        Asked(1, 600 * SECOND, 4, 100 * SECOND, 100 * SECOND),
    ]
    schedule = Calendar(workload_of(jobs, 4), one_host(4), load_policy("immediate")).run()
    assert schedule.pieces is not None
    assert schedule.pieces[:, 5].tolist() == [1, 0, 1, 1]
    return schedule


def test_a_finished_schedule_in_pieces_is_whole() -> None:
    assert breaches(in_pieces()) == []


@pytest.mark.parametrize(
    ("line", "column", "change", "said"),
    [
        (0, 5, -1, "were to be done"),
        (1, 5, 1, "were to be done"),
        (3, 2, -1, "were to be done"),
        (3, 3, -1, "were to be done"),
        (2, 1, -SECOND, "were to be done"),
        (2, 1, -100 * SECOND, "runs twice"),
    ],
)
def test_pieces_that_do_not_add_up_are_found(
    line: int, column: int, change: int, said: str
) -> None:
    schedule = in_pieces()
    pieces = np.array(schedule.pieces)
    pieces[line, column] += change
    found = breaches(replace(schedule, pieces=pieces))
    assert any(said in text for text in found), found


def test_pieces_that_take_more_than_there_is_are_found() -> None:
    schedule = in_pieces()
    pieces = np.array(schedule.pieces)
    pieces[1, 3] = 5
    assert any(
        "5 of 4 processors used" in text for text in breaches(replace(schedule, pieces=pieces))
    )


@pytest.mark.parametrize(
    ("start", "said"), [(1, "host a: 8 of 4 processors"), (3, "host b: 30 of 20 bytes")]
)
def test_a_host_with_more_on_it_than_it_has_is_found(start: int, said: str) -> None:
    hosts = (Host("a", 4), Host("b", 8, 20))
    machine = Machine(hosts, single_host=True)
    jobs = [
        Asked(row, 0, procs, 100 * SECOND, 100 * SECOND) for row, procs in enumerate((4, 4, 5, 3))
    ]
    work = workload_of(jobs, 12, memory=[0, 15, 15, 15])
    schedule = Calendar(work, machine, load_policy("easy")).run()
    assert breaches(schedule, is_one_pool=False, hosts=hosts) == []
    spoiled, where = schedule.start.copy(), schedule.host.copy()
    spoiled[start] = 0
    where[start] = 0 if start == 1 else 1
    found = breaches(replace(schedule, start=spoiled, host=where), is_one_pool=False, hosts=hosts)
    assert any(said in text for text in found), found
