"""EQspatial against an oracle that was written from the specification alone: starts, ends and every
piece."""

from __future__ import annotations

import random

import numpy as np
import pytest

from qbatch.model.machine import Host, Machine
from qbatch.model.record import Schedule, Workload
from qbatch.policies import load_policy
from qbatch.simulation import run
from qbatch.simulation.calendar import Calendar
from tests.harness import size
from tests.oracle import equispatial as oracle
from tests.oracle import equispatial_checks as checks

Piece = list[int]


def calendar_of(
    jobs: list[oracle.Job], hosts: list[oracle.Host], interval: int = 0, is_over50: bool = False
) -> Calendar:
    """Return a replay under ``equispatial``, audited round by round."""
    machine = Machine(
        tuple(Host(f"h{n}", host.cpus, host.memory) for n, host in enumerate(hosts)),
        single_host=True,
    )
    absent = np.full(len(jobs), -1, np.int64)
    columns = {
        name: np.array([getattr(job, name) for job in jobs], np.int64)
        for name in oracle.Job.__annotations__
    }
    run = np.array([job.time for job in jobs], np.int64)
    work = Workload(
        "random",
        machine.procs,
        columns["sequence"],
        columns["submit"],
        columns["procs"],
        columns["estimate"],
        run,
        run,
        columns["memory"],
        absent,
        absent,
        absent,
        np.ones(len(jobs), np.bool_),
        np.arange(len(jobs)),
        used_memory=columns["used_memory"],
    )
    text = f"equispatial:interval={interval // oracle.SECOND},over50={'yes' if is_over50 else 'no'}"
    return Calendar(work, machine, load_policy(text), is_audited=True)


def joined(pieces: list[Piece]) -> list[Piece]:
    """Begin, end, processors, host, whether kept: what follows on its like is one piece, what takes
    no time is none."""
    found: list[Piece] = []
    for begin, end, *rest in sorted(pieces):
        if begin < end and found and found[-1][1:] == [begin, *rest]:
            found[-1][1] = end
        elif begin < end:
            found.append([begin, end, *rest])
    return found


def pieces_of(schedule: Schedule, row: int, hosts_of_whole: list[Piece]) -> list[Piece]:
    """The execution intervals of a job; of a job with only one the schedule holds no host, so it
    has that of the oracle."""
    cut = (
        []
        if schedule.pieces is None
        else schedule.pieces[schedule.pieces[:, 0] == row, 1:].tolist()
    )
    if cut:
        return joined(cut)
    host = hosts_of_whole[0][3] if hosts_of_whole else 0
    procs = int(schedule.workload.procs[row])
    return joined([[int(schedule.start[row]), int(schedule.end[row]), procs, host, 1]])


def assert_same(
    schedule: Schedule, jobs: list[oracle.Job], outcome: dict[int, oracle.Outcome], label: object
) -> None:
    assert schedule.end.tolist() == [outcome[job.sequence].end for job in jobs], label
    assert schedule.start.tolist() == [outcome[job.sequence].start for job in jobs], label
    for row, job in enumerate(jobs):
        theirs = joined(outcome[job.sequence].pieces)
        assert pieces_of(schedule, row, theirs) == theirs, (label, job)


def test_every_piece_of_every_job_is_the_oracles() -> None:
    counts: dict[str, int] = {}
    for seed in range(size(300, 1500)):
        jobs, hosts, interval, is_over50 = checks.random_workload(random.Random(seed))
        outcome = oracle.simulate(jobs, hosts, interval, is_over50, counts=counts)
        assert_same(calendar_of(jobs, hosts, interval, is_over50).run(), jobs, outcome, seed)
    assert [feature for feature in checks.FEATURES if not counts.get(feature)] == []


def test_every_piece_of_the_compiled_loop_is_the_oracles() -> None:
    for seed in range(10_000, 10_000 + size(300, 1500)):
        jobs, hosts, interval, is_over50 = checks.random_workload(random.Random(seed))
        calendar = calendar_of(jobs, hosts, interval, is_over50)
        schedule = run(
            calendar.source.workload(),
            calendar.engine.machine,
            calendar.engine.policy,
            driver="compiled",
        )
        assert_same(schedule, jobs, oracle.simulate(jobs, hosts, interval, is_over50), seed)


@pytest.mark.parametrize("label", checks.HAND_CASES)
def test_cases_worked_by_hand(label: str) -> None:
    hosts, jobs, parameters, wanted = checks.HAND_CASES[label]
    parameters = dict(parameters)
    parameters["interval"] = parameters.get("interval", 0) * oracle.SECOND
    outcome = oracle.simulate(jobs, hosts, **parameters)
    for sequence, pieces in wanted.items():
        intervals = [
            [round(begin * 1_000_000), round(end * 1_000_000), *rest]
            for begin, end, *rest in pieces
        ]
        assert [piece[:4] for piece in joined(outcome[sequence].pieces)] == intervals, (
            "oracle",
            sequence,
        )
    assert_same(calendar_of(jobs, hosts, **parameters).run(), jobs, outcome, label)
