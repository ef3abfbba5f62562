"""A life as a daemon has it: arrivals, ends early and late, jobs taken back, hosts that close and
open."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable

from qbatch.engine.engine import Engine
from qbatch.engine.round import Round
from qbatch.model.actions import Action, Resume, Start, Suspend, parts_of
from qbatch.model.events import (
    Event,
    Finished,
    HostClosed,
    HostOpened,
    Returned,
    Submitted,
    Withdrawn,
    Woken,
)
from qbatch.model.job import PLACINGS, ChunkRequest, Job
from qbatch.model.machine import Host, Machine, one_host
from qbatch.planning.view import View
from qbatch.policies.registry import POLICIES

SECOND = 1_000_000
MACHINES = {
    "one host": one_host(8),
    "spanned hosts": Machine((Host("a", 3), Host("b", 4), Host("c", 1))),
    "hosts with memory": Machine(
        (Host("a", 8, 1000), Host("b", 4, 3000), Host("c", 4)), single_host=True
    ),
    "hosts without memory": Machine((Host("a", 3), Host("b", 5)), single_host=True),
    "one host with memory": Machine((Host("a", 8, 1000),)),
    "chunks": Machine(
        (Host("a", 4, 1000), Host("b", 2), Host("c", 4, 3000), Host("d", 3, 500)), chunked=True
    ),
}


def random_chunks(rng: random.Random, machine: Machine) -> dict[str, object]:
    """Return what a job on a chunked machine may ask for; now and then too much."""
    widest = max(host.cpus for host in machine.hosts)
    sizes = (0, 0, 100, 300, 1000, 2000) if machine.counts_memory else (0,)
    placing = rng.choice((*PLACINGS, "free", "free"))
    is_exclusive = rng.random() < 0.15
    if rng.random() < 0.25:
        procs = rng.randint(1, machine.procs)
        return {
            "procs": procs,
            "memory": rng.choice(sizes),
            "is_exclusive": is_exclusive,
            "placing": "free",
        }
    chunks = tuple(
        ChunkRequest(
            rng.choice((1, 1, 1, 2, 3)),
            rng.randint(1, rng.choice((1, 2, widest))),
            rng.choice(sizes),
            rng.randrange(len(machine.hosts)) if rng.random() < 0.2 else -1,
        )
        for _ in range(rng.choice((1, 1, 2, 3)))
    )
    return {
        "procs": sum(chunk.count * chunk.procs for chunk in chunks),
        "memory": sum(chunk.count * chunk.memory for chunk in chunks),
        "chunks": chunks,
        "placing": placing,
        "is_exclusive": is_exclusive,
    }


def every_policy() -> list[str]:
    names = []
    is_uncompiled = (
        os.environ.get("QBATCH_FEW_POLICIES", os.environ.get("NUMBA_DISABLE_JIT")) == "1"
    )
    for name, entry in POLICIES.items():
        # Uncompiled, where lines are counted, each policy once is enough, and a search of a few
        # orders.
        names.append(f"{name}:nodes=20" if is_uncompiled and name == "bottom-line" else name)
        for parameter in entry.parameters if not is_uncompiled else ():
            if hasattr(parameter, "choices"):
                names += [f"{name}:{parameter.name}={value}" for value in parameter.choices[1:]]
            else:
                names += [f"{name}:{parameter.name}={value}" for value in (parameter.least, 3)]
    return names


def pairs(*more: str) -> list[tuple[str, str]]:
    """Return policies and names of machines that they take: defaults (and ``more``) on every
    machine, other parameters on one, in turn."""
    found = []
    for turn, name in enumerate([*every_policy(), *more]):
        taken = [each for each, machine in MACHINES.items() if takes(name, machine)]
        found += [
            (name, each) for each in (taken if ":" not in name else [taken[turn % len(taken)]])
        ]
    return found


def takes(name: str, machine: Machine) -> bool:
    """Return whether a policy works on a machine."""
    entry = POLICIES.get(name.partition(":")[0])
    return entry is None or entry.takes(machine)


class Turn:
    """The class that has its turn, for :class:`Slices`."""

    def __init__(self) -> None:
        self.order: list[int] = []
        self.seen: set[int] = set()


class Slices:
    """Round robin: every job runs for two seconds at a time, and keeps its memory while it is
    suspended."""

    name = "slices"

    def new_memory(self, machine: Machine) -> Turn:
        return Turn()

    def decide(self, view: View) -> Iterable[Action]:
        turn: Turn = view.memory
        gone = {*view.finished, *view.withdrawn}
        turn.order = [row for row in turn.order if row not in gone]
        turn.seen |= {*view.queue.tolist()}
        free = view.free_now()
        for row in [row for row in turn.order if row in view.suspended]:
            run = view.suspended[row]
            if all(free.free[host] >= procs for host, procs, _ in parts_of(run.allocation)):
                for host, procs, _ in parts_of(run.allocation):
                    free.free[host] -= procs
                turn.order.append(turn.order.pop(turn.order.index(row)))
                yield Resume(row, view.now + 2 * SECOND)
        for job in view.waiting:
            if free.take(job):
                turn.order.append(job.row)
                yield Start(job.row, until=view.now + 2 * SECOND)


class Life:
    """Makes events for an engine from a seed, and keeps the books of what really runs."""

    def __init__(self, seed: int, machine: Machine, *, closes: bool = True) -> None:
        self.rng = random.Random(seed)
        self.machine = machine
        self.closes = closes
        self.number = 0
        self.now = 0
        self.ends: dict[int, int] = {}
        self.left: dict[int, int] = {}
        self.since: dict[int, int] = {}
        self.truth: dict[int, int] = {}
        self.over: set[int] = set()
        self.trials: set[int] = set()
        self.is_ending = False

    def job(self) -> Submitted:
        rng = self.rng
        self.number += 1
        estimate = rng.choice((0, 1, 2, 3, 5, 8)) * SECOND + rng.choice((0, 0, 0, 1, 500_000))
        self.truth[self.number] = max(
            0,
            rng.choice(
                (
                    estimate,
                    estimate,
                    estimate // 2,
                    estimate - 1,
                    estimate + SECOND // 3,
                    3 * estimate,
                )
            ),
        )
        if self.machine.chunked:
            asked = random_chunks(rng, self.machine)
            asked["user"] = self.number % 3
            return Submitted(Job(number=self.number, submit=self.now, estimate=estimate, **asked))  # type: ignore[arg-type]
        procs = rng.randint(
            1, rng.choice((2, self.machine.widest_job, self.machine.widest_job + 1))
        )
        memory = rng.choice((0, 0, 1, 300, 1000, 3000)) if self.machine.counts_memory else 0
        numbers = {"number": self.number, "user": self.number % 3}
        return Submitted(
            Job(**numbers, submit=self.now, procs=procs, estimate=estimate, memory=memory)
        )

    def next(self, engine: Engine) -> tuple[int, list[Event]] | None:
        """Return the next instant and its events, or None when nothing is left to happen."""
        rng = self.rng
        timer = engine.next_timer()
        instants = [*self.ends.values(), *([] if timer is None else [timer])]
        if not self.is_ending:
            instants.append(self.now + rng.choice((0, 1, SECOND // 2, SECOND, 2 * SECOND)))
        if not instants:
            return None
        self.now = max(min(instants), self.now)
        events: list[Event] = [Finished(row) for row, end in self.ends.items() if end <= self.now]
        ended = {event.row for event in events if isinstance(event, Finished)}
        self.over |= ended
        self.trials -= ended
        # Now and then a trial uses more memory than it was given.
        events += [Returned(row) for row in sorted(self.trials) if rng.random() < 0.3]
        if timer is not None and timer <= self.now:
            events.append(Woken())
        if not self.is_ending:
            events += [self.job() for _ in range(rng.choice((0, 0, 1, 1, 2)))]
            waiting = [*engine.view().queue.tolist(), *engine.parked, *engine.view().suspended]
            # An instant at which a suspended job is resumed by its timer and taken back at once is
            # no contradiction.
            if waiting and rng.random() < 0.1:
                events.append(Withdrawn(rng.choice(waiting)))
            if self.closes:
                for host in range(len(self.machine.hosts)):
                    if rng.random() < 0.08:
                        events.append(
                            HostOpened(host) if host in engine.closed else HostClosed(host)
                        )
        rng.shuffle(events)
        return self.now, events

    def account(self, engine: Engine, done: Round) -> None:
        """Note what started, stopped and ended."""
        for row in done.finished:
            del self.ends[row]
        for row in done.stopped:
            self._stop(row)
        for row in done.requeued:
            del self.ends[row], self.left[row]
            self.trials.discard(row)
        self.over |= {row for row, _ in done.refused}
        for action in done.actions:
            match action:
                case Start() | Resume():
                    number = engine.view().jobs[action.row].number
                    left = self.left.setdefault(action.row, self.truth[number])
                    self.since[action.row] = done.at
                    self.ends[action.row] = done.at + left
                    if getattr(action, "is_trial", False):
                        self.trials.add(action.row)
                case Suspend():
                    self._stop(action.row)
                case _:
                    pass

    def _stop(self, row: int) -> None:
        self.left[row] -= self.now - self.since[row]
        del self.ends[row]

    def end(self, engine: Engine) -> list[Event]:
        """Return the events that open all hosts; from here on nothing arrives."""
        self.is_ending = True
        return [HostOpened(host) for host in sorted(engine.closed)]
