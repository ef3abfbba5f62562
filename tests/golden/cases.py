"""The cases: policies on machines and logs, and what of a schedule is hashed."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple
from zlib import crc32

import numpy as np

from qbatch.engine.engine import Engine
from qbatch.engine.round import Round
from qbatch.model.actions import (
    Break,
    Promise,
    Reject,
    Resize,
    Resume,
    Start,
    Suspend,
    WakeAt,
    parts_of,
)
from qbatch.model.errors import UsageError
from qbatch.model.events import Event, Submitted
from qbatch.model.job_class import JobClass
from qbatch.model.machine import Host, Machine, one_host
from qbatch.model.record import Schedule, Workload
from qbatch.planning.policy import compiled_of
from qbatch.policies import load_policy
from qbatch.policies.registry import POLICIES
from qbatch.simulation import Options, prepare, run
from qbatch.simulation.drivers import run_around_python
from qbatch.workloads import read_log
from tests.engine.live import MACHINES as PLAIN_MACHINES
from tests.engine.live import Life
from tests.harness import TRACES

SECOND = 1_000_000
WORKLOADS = 100
"""How many random workloads, and how many random lives of an engine, a case has."""

FIRST = 4
"""How many of them have a hash of their own, which the suite computes."""

_TIMES = (
    JobClass("short", time=3 * SECOND, reserve_wait=4 * SECOND, kind="time", goes_first=True),
    JobClass("middle", time=9 * SECOND, reserve_wait=10 * SECOND, kind="time", limit=3),
    JobClass("long", reserve_wait=20 * SECOND, kind="time", limit=2),
)
_SIZES = (
    JobClass("small", procs=2, memory=300, kind="size"),
    JobClass("large", kind="size", per_host=2),
)
MACHINES = {
    **PLAIN_MACHINES,
    "time and size classes": Machine(
        (
            Host("a", 8, 1000, serves=("large", "small"), limits=(("large", 1),)),
            Host("b", 4, 3000, serves=("large", "small"), limits=(("small", 2),)),
            Host("c", 4, 500, serves=("small",)),
        ),
        single_host=True,
        classes=(*_TIMES, *_SIZES),
    ),
    "plain classes": Machine(
        (Host("a", 8, 2000, pool="wide"), Host("b", 4, 1000)),
        single_host=True,
        per_user=4,
        classes=(
            JobClass("brief", time=3 * SECOND, limit=4, reserve_wait=5 * SECOND),
            JobClass("wide", procs=8, hosts=("wide",), per_user=2, reserve_wait=9 * SECOND),
        ),
    ),
}
LOGS = {
    "KTH-SP2-1996-2.1-cln": (100, 3000),
    "CTC-SP2-1996-3.1-cln": (338, 2000),
    "SDSC-SP2-1998-4.2-cln": (128, 2000),
    "SDSC-BLUE-2000-4.2-cln": (1152, 3000),
    "LANL-CM5-1994-4.1-cln": (1024, 3000),
    "NASA-iPSC-1993-3.1-cln": (128, 3000),
}
"""Processors of the machine, and how many jobs of the log a case replays."""

WHOLE_LOGS = (
    "fcfs",
    "easy",
    "easy:order=sjf",
    "easy:order=lxf",
    "hybrid:depth=4",
    "conservative",
    "conservative:compress=start",
    "conservative:compress=none",
    "lxfw-backfill",
    "priority-backfill",
    "sjf-backfill",
)
"""The policies that replay all jobs of each log; they have compiled loops."""

_MORE = (
    "easy:search=ilds,budget=50",
    "hybrid:depth=1000000",
    "hybrid:depth=0,order=lxf",
    "priority-backfill:depth=4,bypass=1",
    "priority-backfill:memory=2,both=1",
    "sjf-backfill:depth=4",
    "lxfw-backfill:depth=1000000",
    "immediate:quantum=2,protect=0",
    "immediate:inner=sjf-backfill,quantum=2,protect=1,memory=200",
    "immediate:inner=lsf,quantum=3,protect=2",
    "immediate:inner=conservative,quantum=2,protect=0",
    "soon:inner=lsf,quantum=2",
    "soon:inner=sjf-backfill,quantum=3",
    "equispatial:interval=3,quantum=2",
    "predicted:inner=conservative",
    "predicted:inner=lxfw-backfill,last=3",
    "qops:placing=both,key=edf,others=reject",
    "qops:violations=0,placing=head",
    "msb:order=edf,price=makespan",
    "mrt:key=edf,backtracks=100,others=reject",
    "slack:factor=0.5",
    "taskqueues:discipline=lstf,limit=2",
    "scojo:backfill=easy",
    "scojo-groups:budget=200",
    "bottom-line:nodes=50",
)


class Case(NamedTuple):
    """A policy, and what it is replayed on: ``log NAME``, ``whole log NAME``, ``random MACHINE`` or
    ``live MACHINE``."""

    policy: str
    on: str

    @property
    def count(self) -> int:
        """How many schedules it has."""
        return WORKLOADS if self.on.startswith(("random ", "live ")) else 1


def policies() -> list[str]:
    """Return every policy with its defaults, with each extreme value of each parameter, and some
    combinations; but those with passes of their own, which recordings hold."""
    names: list[str] = []
    for name, entry in POLICIES.items():
        if entry.has_own_passes:
            continue
        names.append(name)
        for parameter in entry.parameters:
            if hasattr(parameter, "choices"):
                names += [
                    f"{name}:{parameter.name}={value}"
                    for value in parameter.choices
                    if value != parameter.default
                ]
            else:
                names += [f"{name}:{parameter.name}={value}" for value in (parameter.least, 3)]
    return list(dict.fromkeys([*names, *_MORE]))


@cache
def cases() -> tuple[Case, ...]:
    """Return all cases, in the order of the file.

    On random workloads and lives each policy with its defaults meets every machine that it takes,
    and other parameters meet two of them.  Policies with their defaults and the combinations meet a
    prefix of each log.
    """
    found: list[Case] = []
    for name in policies():
        # The same machines, whatever other policies there are.
        is_plain, turn = ":" not in name, crc32(name.encode())
        if is_plain or name in _MORE:
            found += [
                Case(name, f"log {log}") for log in LOGS if _works(name, one_host(LOGS[log][0]))
            ]
        for kind in ("random", "live"):
            taken = [each for each, machine in MACHINES.items() if _works(name, machine)]
            taken = [each for each in taken if kind == "live" or not MACHINES[each].chunked]
            if kind == "live" and name.startswith("bottom-line") and "nodes=50" not in name:
                continue  # its search of a thousand nodes in every pass of a life takes minutes
            if not is_plain:
                taken = [taken[(turn + more) % len(taken)] for more in range(min(2, len(taken)))]
            found += [Case(name, f"{kind} {each}") for each in taken]
    return (*found, *(Case(name, f"whole log {log}") for name in WHOLE_LOGS for log in LOGS))


def hash_of(case: Case, number: int) -> str:
    """Return the hash of one schedule of a case; one that the compiled loop and the engine make is
    made by both.

    Raises:
        AssertionError: the two differ.
    """
    kind, _, on = case.on.partition(" ")
    if kind == "live":
        return _digest(_lived(case.policy, MACHINES[on], number))
    is_whole = kind == "whole"
    if is_whole or kind == "log":
        log = on.removeprefix("log ")
        machine = one_host(LOGS[log][0])
        work = prepare(
            read_log(str(TRACES / f"{log}.swf.gz")),
            machine,
            Options(first=None if is_whole else LOGS[log][1]),
        )
    else:
        machine = MACHINES[on]
        work = random_workload(random.Random(f"{on} {number}"), machine)
    return _digest(_replayed(case.policy, work, machine, is_whole=is_whole))


def _works(name: str, machine: Machine) -> bool:
    if not POLICIES[name.partition(":")[0]].takes(machine):
        return False
    try:
        Engine(machine, load_policy(name))
    except UsageError:
        return False
    return True


def _replayed(name: str, work: Workload, machine: Machine, *, is_whole: bool) -> Iterator[str]:
    is_compiled = compiled_of(load_policy(name), machine) is not None
    drivers = (
        ["engine"] if not is_compiled else ["compiled"] if is_whole else ["engine", "compiled"]
    )
    schedules = [run(work, machine, load_policy(name), driver=driver) for driver in drivers]
    if not is_whole:
        schedules.append(run_around_python(work, machine, load_policy(name)))
    texts = [list(_lines(schedule)) for schedule in schedules]
    assert all(text == texts[0] for text in texts), (
        f"{name}: the engine and the compiled loops differ"
    )
    yield from texts[0]
    # A compiled loop does not count the promises that a policy breaks.
    if drivers[0] == "engine" and schedules[0].broken is not None:
        yield f"broken {schedules[0].broken.tolist()}"


def _lines(schedule: Schedule) -> Iterator[str]:
    """What a schedule holds, one line a job; the execution intervals in order of begin, then of
    job."""
    host = np.full(len(schedule), -1) if schedule.host is None else schedule.host
    columns = (
        schedule.workload.number,
        schedule.start,
        schedule.end,
        schedule.kind,
        schedule.promise,
        schedule.first_promise,
        host,
    )
    yield from (
        " ".join(map(str, each))
        for each in zip(*(column.tolist() for column in columns), strict=True)
    )
    pieces = np.empty((0, 6), np.int64) if schedule.pieces is None else schedule.pieces
    yield from sorted("ran " + " ".join(map(str, each)) for each in pieces.tolist())
    yield from sorted(f"refused {each.row} {each.at} {each.code}" for each in schedule.rejected)


def random_workload(rng: random.Random, machine: Machine) -> Workload:
    """Return some forty jobs, submitted, planned and ended at the same few instants; a third of the
    workloads have deadlines."""
    count, gaps = (
        rng.randint(20, 60),
        rng.choice(((0,), (0, 0, 1, 2), (0, 1, 1, 3, 8), (1, 500_000, SECOND))),
    )
    grain = rng.choice((SECOND, SECOND, SECOND, SECOND // 4, 1))
    is_exact, has_deadlines = rng.random() < 0.3, rng.random() < 0.33
    widths = (1, 1, 2, 3, machine.widest_job // 2 or 1, machine.widest_job)
    rows: list[list[int]] = []
    submit = 0
    for _ in range(count):
        submit += rng.choice(gaps) * grain
        estimate = rng.choice((0, 1, 2, 3, 4, 6, 9, 15, 40)) * grain
        run_time = (
            estimate
            if is_exact
            else rng.choice(
                (estimate, estimate // 2, max(0, estimate - 1), rng.randint(0, estimate))
            )
        )
        memory = rng.choice((0, 0, 100, 300, 900, 2500)) if machine.counts_memory else 0
        deadline = (
            submit + estimate + rng.choice((-1, 0, 2, 10, 60)) * grain
            if has_deadlines and rng.random() < 0.7
            else -1
        )
        rows.append(
            [
                submit,
                rng.choice(widths),
                estimate,
                run_time,
                memory,
                rng.randrange(4),
                max(-1, deadline),
                memory // 2,
            ]
        )
    submits, procs, estimates, runs, memories, users, deadlines, used = np.array(
        rows, np.int64
    ).T.copy()
    absent = np.full(count, -1, np.int64)
    return Workload(
        "random",
        machine.procs,
        np.arange(1, count + 1),
        submits,
        procs,
        estimates,
        runs,
        runs,
        memories,
        users,
        absent,
        absent,
        np.ones(count, np.bool_),
        np.arange(count),
        used_memory=used,
        deadline=deadlines,
    )


class _LifeWithDeadlines(Life):
    """Of the jobs of a life, some have a deadline and a priority."""

    def job(self) -> Submitted:
        submitted, rng = super().job(), self.rng
        job = submitted.job
        deadline = (
            job.submit + job.estimate + rng.choice((0, 2, 20)) * SECOND
            if rng.random() < 0.3
            else None
        )
        return Submitted(
            type(job)(
                **{
                    **{name: getattr(job, name) for name in job.__struct_fields__},
                    "deadline": deadline,
                }
            )
        )


def _lived(name: str, machine: Machine, seed: int) -> Iterator[str]:
    """What an engine decides in a life in which hosts close and open, jobs are withdrawn, and
    estimates are outlived."""
    policy = load_policy(name)
    takes_deadlines = bool(getattr(policy, "takes_deadlines", False))
    life = (_LifeWithDeadlines if takes_deadlines else Life)(seed, machine)
    engine = Engine(machine, policy)
    for _ in range(60):
        due = life.next(engine)
        if due is None:
            break
        yield from _round(engine, life, *due)
    yield from _round(engine, life, life.now, life.end(engine))
    for _ in range(2000):
        due = life.next(engine)
        if due is None:
            return
        yield from _round(engine, life, *due)
    yield "did not end within 2,000 rounds"


def _round(engine: Engine, life: Life, at: int, events: list[Event]) -> Iterator[str]:
    """One round in words: what a schedule would keep of it, whatever the order of the actions in
    the pass."""
    done = engine.handle(at, events)
    life.account(engine, done)
    words = [f"broken {row}" for row in done.broken] + [
        f"refused {row} {reason.code}" for row, reason in done.refused
    ]
    words += [f"stopped {row}" for row in done.stopped] + [
        f"requeued {row}" for row in done.requeued
    ]
    words += [f"parked {row}" for row in done.parked] + [f"returned {row}" for row in done.returned]
    words += [f"finished {row}" for row in done.finished] + _actions(done)
    if words:
        yield f"{done.at}: {'; '.join(sorted(words))}"


def _actions(done: Round) -> list[str]:
    words = []
    for action in done.actions:
        match action:
            case Start(row, allocation, until, is_trial):
                words.append(
                    f"start {row} on {list(parts_of(allocation))} until {until} trial {is_trial}"
                )
            case Resume(row, until):
                words.append(f"resume {row} until {until}")
            case Suspend(row, keep_memory):
                words.append(f"suspend {row} {keep_memory}")
            case Resize(row, procs):
                words.append(f"resize {row} to {procs}")
            case Promise(row, at):
                words.append(f"promise {row} {at}")
            case Break(row, reason):
                words.append(f"break {row} {reason.code}")
            case Reject(row, reason):
                words.append(f"reject {row} {reason.code}")
            case WakeAt():
                pass  # when a policy wants to be woken is its own affair
    return words


def _digest(lines: Iterator[str]) -> str:
    whole = hashlib.sha256()
    for line in lines:
        whole.update(line.encode() + b"\n")
    return whole.hexdigest()[:16]
