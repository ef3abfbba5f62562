"""Small workloads and schedules, made by the naive scheduler or by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from qbatch.model.machine import one_host
from qbatch.model.record import KINDS, MICROSECONDS, NO_PROMISE, LogClock, Schedule, Workload
from qbatch.policies import load_policy
from qbatch.results.result import Result
from qbatch.simulation import run as run_policy
from tests.oracle import naive

KTH_CLOCK = LogClock(843493334, "Europe/Stockholm")


def workload(
    submit: Any,
    procs: Any,
    estimate: Any,
    run: Any,
    *,
    procs_total: int = 16,
    clock: LogClock | None = None,
    **columns: Any,
) -> Workload:
    """Return a workload of jobs 1, 2, ...; times in microseconds."""
    submit, procs, estimate, run = (
        np.asarray(column, np.int64) for column in (submit, procs, estimate, run)
    )
    rows = len(submit)
    given = {
        "number": np.arange(1, rows + 1),
        "logged_run": run,
        "memory": np.zeros(rows, np.int64),
        "user": np.full(rows, -1),
        "group": np.full(rows, -1),
        "queue": np.full(rows, -1),
        "counted": np.ones(rows, bool),
        "log_row": np.arange(rows),
    } | columns
    return Workload(
        name="sample",
        procs_total=procs_total,
        submit=submit,
        procs=procs,
        estimate=estimate,
        run=run,
        clock=clock or LogClock(),
        sha256="0" * 64,
        **given,
    )


def random_workload(
    rows: int, seed: int = 1, procs_total: int = 16, clock: LogClock | None = None
) -> Workload:
    """Return jobs in whole seconds that keep the machine busy."""
    draw = np.random.default_rng(seed)
    submit = np.sort(draw.integers(0, 270 * rows, rows))
    run = draw.integers(300, 3000, rows) // (1 + 9 * (draw.random(rows) < 0.2)).astype(np.int64)
    estimate = np.maximum(run, draw.choice([1800, 3600, 7200], rows))
    procs = draw.choice([1, 2, 3, 4, 6, 8, 12], rows)
    times = (column * MICROSECONDS for column in (submit, estimate, run))
    first, second, third = times
    user = draw.integers(1, 12, rows)
    return workload(first, procs, second, third, procs_total=procs_total, clock=clock, user=user)


def scheduled(work: Workload, policy: str = "easy", name: str | None = None) -> Schedule:
    """Return what the naive scheduler makes of a workload."""
    columns = (work.submit, work.procs, work.estimate, work.run)
    outcomes = _outcomes(
        policy, work.procs_total, tuple(column.astype(np.int64).tobytes() for column in columns)
    )
    promise, first = (
        [NO_PROMISE if one is None else one for one in column]
        for column in ([out.promise for out in outcomes], [out.first_promise for out in outcomes])
    )
    return by_hand(
        work,
        [out.start for out in outcomes],
        name or policy,
        promise=promise,
        first_promise=first,
        kind=[KINDS.index(out.kind) for out in outcomes],
    )


@cache
def _outcomes(policy: str, procs: int, columns: tuple[bytes, ...]) -> tuple[naive.Outcome, ...]:
    """Return what the naive scheduler does: it is slow, and many tests have the same workload."""
    rows = zip(*(np.frombuffer(column, np.int64).tolist() for column in columns), strict=True)
    jobs = [naive.Job(row, *values) for row, values in enumerate(rows)]
    run = {
        "fcfs": naive.fcfs,
        "easy": naive.easy,
        "conservative": lambda *given: naive.conservative(*given, "arrival"),
    }
    return tuple(run[policy](jobs, procs))


def in_pieces(seed: int, jobs: int = 12, unit: int = MICROSECONDS) -> Schedule:
    """Return a schedule of whole jobs and of jobs in pieces: with gaps, with other processors, some
    thrown away.

    Times are small multiples of ``unit``; the last piece of a job is kept and lasts.
    """
    draw = np.random.default_rng(seed)
    submit = np.sort(draw.integers(0, 30, jobs))
    start = submit + draw.integers(0, 5, jobs)
    procs, end, lines = draw.integers(1, 7, jobs), start.copy(), []
    for row in range(jobs):
        count = int(draw.integers(0, 5))
        at = int(start[row])
        for piece in range(count):
            length = int(draw.integers(1, 8))
            wide = int(draw.integers(1, 7)) if draw.random() < 0.5 else int(procs[row])
            lines.append(
                (row, at, at + length, wide, 0, int(piece == count - 1 or draw.random() < 0.7))
            )
            end[row] = at + length
            at += length + int(draw.integers(0, 3)) * 2
        if not count:
            end[row] += int(draw.integers(0, 12))
    # What a job in pieces would have needed in one go is at most what it took; a whole one needs
    # just that.
    run = np.where(
        np.isin(np.arange(jobs), [line[0] for line in lines]), (end - start + 1) // 2, end - start
    )
    lines.sort(key=lambda line: line[2])
    pieces = np.array(lines, np.int64).reshape(-1, 6)
    pieces[:, 1:3] *= unit
    work = workload(submit * unit, procs, run * unit, run * unit, procs_total=6 * jobs)
    schedule = by_hand(work, start * unit, end=end * unit)
    return replace(schedule, pieces=pieces if len(pieces) else None)


def tried(policy: str) -> Schedule:
    """Return six jobs on 12 processors under a policy that suspends (``immediate:inner=easy``) or
    resizes (``equispatial``).

    Under the first, job 5 has a quantum from 700 s to 760 s for which jobs 1 and 2 are suspended,
    and runs from 5,070 s on.
    """
    jobs = (
        (0, 4, 4000),
        (10, 4, 3000),
        (20, 6, 2000),
        (400, 3, 1000),
        (700, 8, 200),
        (900, 2, 1500),
    )
    submit, procs, run = (np.array(column, np.int64) for column in zip(*jobs, strict=True))
    work = workload(
        submit * MICROSECONDS, procs, run * MICROSECONDS, run * MICROSECONDS, procs_total=12
    )
    return run_policy(work, one_host(12), load_policy(policy))


def by_hand(work: Workload, start: Any, policy: str = "hand", **columns: Any) -> Schedule:
    """Return a schedule with these starts; -1 is a job that was rejected."""
    start = np.asarray(start, np.int64)
    given = {
        "kind": np.zeros(len(start), np.int8),
        "promise": np.full(len(start), NO_PROMISE),
        "first_promise": np.full(len(start), NO_PROMISE),
        "end": np.where(start >= 0, start + work.run, -1),
    } | {name: np.asarray(column, np.int64) for name, column in columns.items()}
    given["kind"] = given["kind"].astype(np.int8)
    return Schedule(workload=work, policy=policy, start=start, queue_max=0, **given)


def changed(schedule: Schedule, **columns: Any) -> Schedule:
    """Return a schedule with other columns or facts, its own or its workload's."""
    of_jobs = {
        name: columns.pop(name) for name in list(columns) if name in Workload.__dataclass_fields__
    }
    return replace(schedule, workload=schedule.workload.changed(**of_jobs), **columns)


def result_of(*schedules: Schedule, document: dict[str, Any] | None = None, **facts: Any) -> Result:
    """Return schedules as a result, with other facts about their log and machine."""
    return Result(schedules, document or {}).with_facts(**facts)


def check_read_back(read: Schedule, written: Schedule) -> None:
    """Check that a schedule that was read is the one that was written, put into order of
    sequence."""
    work, other = read.workload, written.workload
    rows = np.arange(len(read)) if work.sequence is None else work.sequence
    assert read.policy == written.policy
    assert sorted(rows.tolist()) == list(range(len(written)))
    assert (np.diff(work.submit) >= 0).all()
    for name in ("number", "submit", "procs", "estimate", "user", "group", "queue", "counted"):
        assert np.array_equal(getattr(work, name), getattr(other, name)[rows]), name
    ran = read.ran
    for name in ("start", "end", "piece_count", "ran"):
        assert np.array_equal(getattr(read, name), getattr(written, name)[rows]), name
    for name in ("kind", "promise", "first_promise"):
        assert np.array_equal(getattr(read, name)[ran], getattr(written, name)[rows][ran]), name
    assert np.array_equal(work.run[ran], other.run[rows][ran])
    assert (work.run[~ran] == -1).all()
    for name in ("host", "broken"):
        mine, theirs = getattr(read, name), getattr(written, name)
        assert (mine is None) == (theirs is None), name
        assert mine is None or np.array_equal(mine[ran], theirs[rows][ran]), name
    assert [(rows[each.row], each.code, each.text) for each in read.rejected] == [
        (each.row, each.code, each.text) for each in written.rejected
    ]


def unseal(document: Path) -> dict[str, Any]:
    """Take the checksums out of a document, and return what is left."""
    whole = json.loads(document.read_text())
    whole.pop("checksums", None)
    document.write_text(json.dumps(whole))
    return whole
