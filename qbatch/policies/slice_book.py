"""What the time-shared policies remember: who is there in which class, who owns which nodes, the clock of the slices, the
groups."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from qbatch.model.actions import Allocation, parts_of, ranges_of
from qbatch.model.job import Job
from qbatch.model.machine import Machine
from qbatch.planning.kernels import slices
from qbatch.planning.kernels.live import live_module
from qbatch.planning.kernels.types import Int64Array
from qbatch.planning.view import Run, View

_kernels = live_module(slices)

NO_CLASS = -1


@dataclass
class Group:
    """A group that is carried out: the planned rows that have not begun, in plan order; the job with whose end the group ends;
    whether that job ended in the slice of another class; whether the group is over."""

    rows: list[int]
    finish: int
    is_due: bool = False
    is_over: bool = False


@dataclass
class Tally:
    """How much was searched: groups and jobs in them, by class; placements; prefixes that were cut."""

    groups: list[int] = field(default_factory=lambda: [0, 0, 0])
    grouped: list[int] = field(default_factory=lambda: [0, 0, 0])
    nodes: int = 0
    pruned: int = 0


class SliceBook:
    """The jobs that are there (as the kernels take them), the nodes, the clock, the groups by class.

    ``kind``: the class that has the slice, ``NO_CLASS`` in a switch and while nobody is there.  ``until``: when slice or switch
    end.  ``last``: the class of the slice before a switch.  ``is_switching``: a switch is under way.  ``present``: jobs that are
    there, by class.  ``strays``: of jobs that were suspended before this policy and own no nodes yet, hosts and processors;
    ``holders``: those that have kept their memory.  ``allocations``: where hosts matter, of each job that has begun.
    """

    def __init__(self, machine: Machine) -> None:
        self.jobs = np.zeros(64, slices.TIMED_JOB)
        self.count = 0
        self.owners: Int64Array = np.full((3, machine.procs), slices.NOBODY, np.int64)
        self.busy: Int64Array = np.full(machine.procs, slices.NOBODY, np.int64)
        self.hosts: Int64Array = np.repeat(np.arange(len(machine.hosts)), [host.cpus for host in machine.hosts])
        self.is_one_host = len(machine.hosts) == 1
        self.is_one_pool = machine.is_one_pool
        self.procs = self.open_procs = machine.procs
        self.kind = NO_CLASS
        self.until = 0
        self.last = NO_CLASS
        self.is_switching = False
        self.present = [0, 0, 0]
        self.groups: list[Group | None] = [None, None, None]
        self.strays: dict[int, list[tuple[int, int]]] = {}
        self.allocations: dict[int, Allocation] = {}
        self.holders: set[int] = set()
        self.tally = Tally()

    # -------------------------------------------------------------------------------------------- who is there

    def slot_of(self, row: int) -> int:
        """Return the place of a row, -1 if it is not there."""
        return int(_kernels.slot_of(self.jobs, self.count, row))

    def enter(self, row: int, procs: int, kind: int, estimate: int, submit: int) -> int:
        """Add a waiting job behind all others; return its place."""
        if self.count == len(self.jobs):
            self.jobs = np.concatenate([self.jobs, np.zeros_like(self.jobs)])
        slot = self.count
        self.jobs[slot] = (row, procs, procs, kind, estimate, submit, 0, submit, slices.WAITING)
        self.count += 1
        self.present[kind] += 1
        return slot

    def leave(self, row: int) -> None:
        """Take a job out."""
        slot = self.slot_of(row)
        if slot >= 0:
            self.present[int(self.jobs["kind"][slot])] -= 1
            _kernels.leave(self.jobs, self.count, slot, self.owners, self.busy)
            self.count -= 1
            self.strays.pop(row, None)
            self.allocations.pop(row, None)
            self.holders.discard(row)
            self.allocations.pop(row, None)

    def fact(self, row: int, name: str) -> int:
        """Return a fact of a row that is there, a field of ``TIMED_JOB``."""
        return int(self.jobs[name][self.slot_of(row)])

    def rows(self, state: int, kind: int | None = None) -> list[int]:
        """Return the rows in a state, of a class or of all, in sequence."""
        is_it = self.jobs["state"][: self.count] == state
        if kind is not None:
            is_it &= self.jobs["kind"][: self.count] == kind
        found: list[int] = self.jobs["row"][: self.count][is_it].tolist()
        return found

    def places(self, state: int, kind: int) -> Int64Array:
        """Return the places of the jobs of a class in a state, in sequence."""
        jobs = self.jobs[: self.count]
        return np.flatnonzero((jobs["kind"] == kind) & (jobs["state"] == state))

    def lives(self, kind: int) -> bool:
        """Tell whether a class has a job."""
        return self.present[kind] > 0

    def allocation(self, row: int, kind: int) -> Allocation:
        """Return where the nodes of a row are."""
        hosts, counts = np.unique(self.hosts[self.owners[kind] == row], return_counts=True)
        return ranges_of((host, count, 0, 1) for host, count in zip(hosts.tolist(), counts.tolist(), strict=True))

    # -------------------------------------------------------------------------------------------- what happened

    def follow(self, view: View) -> None:
        """Forget who ended or was taken back, and tell the groups of it; the clock still shows the slice that ran until now."""
        for row in view.finished:
            for kind, group in enumerate(self.groups):
                if group is None:
                    continue
                is_last = row == group.finish
                group.is_over = group.is_over or ((is_last or group.is_due) and self.kind == kind)
                group.is_due = group.is_due or is_last
            self.leave(row)
        for row in view.withdrawn:
            for group in self.groups:
                if group is not None:
                    group.is_due = group.is_due or row == group.finish
                    _drop(group, {row})
            self.leave(row)

    def end_group(self, kind: int) -> None:
        """Let a group end: who has not begun waits again."""
        group = self.groups[kind]
        assert group is not None
        for row in group.rows:
            self.jobs["state"][self.slot_of(row)] = slices.WAITING
        self.groups[kind] = None

    def drop_begun(self, begun: set[int]) -> None:
        """Take who has begun out of the plans."""
        for group in self.groups:
            if group is not None:
                _drop(group, begun)

    def suspend_all(self, now: int) -> list[int]:
        """Put every running job on disk; return their rows."""
        rows = self.rows(slices.RUNNING)
        _kernels.suspend_all(self.jobs, self.count, now, self.busy)
        return rows

    # -------------------------------------------------------------------------------------------- hosts

    def settle_hosts(self, view: View) -> None:
        """Close the nodes of closed hosts, and those that the engine keeps from us; take up who runs and is not known."""
        known = set(self.jobs["row"][: self.count].tolist())
        self.busy[self.busy == slices.CLOSED] = slices.NOBODY
        for row in view.running:
            if row in known:
                self.busy[self.owners[self.fact(row, "kind")] == row] = row
        for host, free in enumerate(view.free):
            here = self.hosts == host
            if host in view.closed:
                self.busy[here] = slices.CLOSED
                continue
            idle = np.flatnonzero(here & (self.busy == slices.NOBODY))
            if len(idle) > free:
                self.busy[idle[free:]] = slices.CLOSED
        self.open_procs = int((self.busy != slices.CLOSED).sum())
        for slot in range(self.count):
            row, kind = self.jobs["row"][slot], self.jobs["kind"][slot]
            if self.jobs["state"][slot] >= slices.RUNNING:
                owned = self.owners[kind] == row
                self.jobs["open_procs"][slot] = int((owned & (self.busy != slices.CLOSED)).sum())

    def adopt(self, run: Run, job: Job, kind: int) -> None:
        """Take up a job that runs and is not known: it owns free nodes of its hosts."""
        self._take_up(run, job, kind, slices.RUNNING)
        for chunk in run.allocation:
            for host in chunk.hosts:
                idle = np.flatnonzero((self.hosts == host) & (self.busy < 0) & (self.owners[kind] == slices.NOBODY))
                self.owners[kind, idle[: chunk.procs]] = run.row
                self.busy[idle[: chunk.procs]] = run.row

    def adopt_suspended(self, run: Run, job: Job, kind: int) -> None:
        """Take up a job that is suspended and is not known: it owns nodes of its hosts as soon as its class leaves some."""
        self._take_up(run, job, kind, slices.STRAY)
        if run.holds_memory:
            self.holders.add(run.row)
        self.strays[run.row] = [(host, procs) for host, procs, _ in parts_of(run.allocation)]

    def _take_up(self, run: Run, job: Job, kind: int, state: int) -> int:
        slot = self.enter(run.row, run.procs, kind, job.estimate, job.submit)
        width = job.procs if job.is_exclusive else run.procs
        self.jobs["done"][slot] = run.done // max(width, 1)
        self.jobs["since"][slot] = run.since
        self.jobs["state"][slot] = state
        self.allocations[run.row] = run.allocation
        return slot

    def claim_nodes(self) -> None:
        """Give nodes to the strays for which their hosts have enough that no job of their class owns."""
        for row, parts in sorted(self.strays.items()):
            slot = self.slot_of(row)
            owners = self.owners[int(self.jobs["kind"][slot])]
            found = [np.flatnonzero((self.hosts == host) & (owners == slices.NOBODY))[:procs] for host, procs in parts]
            if all(len(each) == procs for each, (_, procs) in zip(found, parts, strict=True)):
                nodes = np.concatenate(found)
                owners[nodes] = row
                self.jobs["open_procs"][slot] = int((self.busy[nodes] != slices.CLOSED).sum())
                self.jobs["state"][slot] = slices.SUSPENDED
                del self.strays[row]

    def holds_back(self, closed: frozenset[int]) -> bool:
        """Tell whether nobody starts, so that a stray finds room: one whose hosts are open waits for nodes."""
        return any(closed.isdisjoint(host for host, _ in parts) for parts in self.strays.values())

    def sort(self) -> None:
        """Put the jobs in order of row again, after some were taken up."""
        order = np.argsort(self.jobs["row"][: self.count], kind="stable")
        self.jobs[: self.count] = self.jobs[order]


def _drop(group: Group, rows: set[int]) -> None:
    group.rows = [row for row in group.rows if row not in rows]
