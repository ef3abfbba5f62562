"""What every policy owes, by books that are kept here from the rounds alone: capacity, memory, own
hosts, work.

The audit of the engine checks the same with its own books; these share nothing with it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from qbatch.engine.engine import Engine
from qbatch.engine.round import Round
from qbatch.model.actions import Chunk, Resize, Resume, Start, Suspend, parts_of, procs_of
from qbatch.model.machine import Machine
from qbatch.model.record import Workload
from qbatch.policies import load_policy
from qbatch.policies.registry import POLICIES
from qbatch.simulation.calendar import Calendar
from tests.contract.test_policies import MACHINES, cases
from tests.oracle import equispatial_checks
from tests.policies.test_equispatial_oracle import calendar_of

INTERRUPTING = {
    "immediate:protect=0,quantum=2,memory=300": MACHINES["hosts with memory"],
    "immediate:protect=1,quantum=1,memory=1,inner=fcfs-backfill": MACHINES["one host with memory"],
    "equispatial:quantum=2,memory=1": MACHINES["hosts with memory"],
    "equispatial:interval=2": MACHINES["one host with memory"],
}
POLICY_AND_MACHINE = [
    (name, machine)
    for name, entry in POLICIES.items()
    for machine in MACHINES.values()
    if entry.takes(machine) and not entry.is_interrupting
] + list(INTERRUPTING.items())


@dataclass
class Held:
    """What one job has: its chunks, whether it runs, since when, the work of this start before
    that."""

    chunks: tuple[Chunk, ...]
    since: int
    is_running: bool = True
    done: int = 0

    @property
    def procs(self) -> int:
        return procs_of(self.chunks)

    def stop(self, at: int) -> None:
        assert self.is_running
        self.done += (at - self.since) * self.procs
        self.is_running = False


@dataclass
class Book:
    """Follows the rounds of one run."""

    work: Workload
    machine: Machine
    held: dict[int, Held] = field(default_factory=dict)
    over: set[int] = field(default_factory=set)
    resumed: int = 0
    resized: int = 0

    def follow(self, engine: Engine, done: Round) -> None:
        for row in done.finished:
            self.finish(row, done.at)
        for row in done.requeued:
            del self.held[row]
        for row in done.stopped:
            self.held[row].stop(done.at)
        for action in done.actions:
            self.act(action, done.at)
        self.count(engine)

    def finish(self, row: int, at: int) -> None:
        held = self.held.pop(row)
        held.stop(at)
        wanted = int(self.work.run[row]) * int(self.work.procs[row])
        assert wanted <= held.done < wanted + held.procs, (row, held)
        self.over.add(row)

    def act(self, action: object, at: int) -> None:
        match action:
            case Start():
                assert action.row not in self.held
                assert action.row not in self.over
                self.held[action.row] = Held(action.allocation, at)
                parts = list(parts_of(action.allocation))
                if not action.is_trial and all(
                    self.machine.hosts[place].memory for place, _, _ in parts
                ):
                    assert sum(memory for _, _, memory in parts) >= self.work.memory[action.row]
            case Suspend():
                assert action.keep_memory, "no policy of ours lets a suspended job lose its memory"
                self.held[action.row].stop(at)
            case Resume():
                held = self.held[action.row]
                assert not held.is_running
                held.is_running, held.since = True, at
                self.resumed += any(chunk.memory for chunk in held.chunks)
            case Resize():
                held = self.held[action.row]
                held.stop(at)
                (chunk,) = held.chunks
                held.chunks, held.is_running, held.since = (
                    (Chunk(chunk.host, action.procs, chunk.memory),),
                    True,
                    at,
                )
                self.resized += 1
            case _:
                pass

    def count(self, engine: Engine) -> None:
        """What the books say is held is at most what there is, and what the engine says: place by
        place."""
        view = engine.view()
        running = {row: held.chunks for row, held in self.held.items() if held.is_running}
        assert {row: run.allocation for row, run in view.running.items()} == running
        still = {row: held.chunks for row, held in self.held.items() if not held.is_running}
        assert {row: run.allocation for row, run in view.suspended.items()} == still
        for place, host in enumerate(self.machine.hosts):
            used = sum(
                chunk.procs
                for chunks in running.values()
                for chunk in chunks
                if place in chunk.hosts
            )
            assert 0 <= used <= host.cpus
            assert view.free[place] == host.cpus - used
            if host.memory:
                kept = sum(
                    chunk.memory
                    for held in self.held.values()
                    for chunk in held.chunks
                    if place in chunk.hosts
                )
                assert 0 <= kept <= host.memory
                assert view.free_memory[place] == host.memory - kept


@pytest.mark.parametrize(("policy", "machine"), POLICY_AND_MACHINE)
def test_nothing_is_overcommitted_moved_or_done_twice(policy: str, machine: Machine) -> None:
    resumed = resized = 0
    for seed, work in cases(machine, 60 if policy in INTERRUPTING else 10):
        book = Book(work, machine)
        schedule = Calendar(work, machine, load_policy(policy)).run(book.follow)
        assert not schedule.rejected or getattr(load_policy(policy), "may_refuse", False), seed
        assert len(book.over) == len(work) - len(schedule.rejected), seed
        assert not book.held, seed
        resumed += book.resumed
        resized += book.resized
    if policy in INTERRUPTING:
        # The test shows nothing unless some job that holds memory is resumed, or some job is
        # resized.
        assert (resized if "equispatial" in policy else resumed) > 0


def test_shares_that_stand_still_keep_their_host_and_memory() -> None:
    resumed = 0
    for seed in range(200):
        jobs, hosts, interval, is_over50 = equispatial_checks.standing_workload(random.Random(seed))
        calendar = calendar_of(jobs, hosts, interval, is_over50)
        book = Book(calendar.source.workload(), calendar.engine.machine)
        calendar.run(book.follow)
        assert len(book.over) == len(jobs), seed
        resumed += book.resumed
    assert resumed > 0
