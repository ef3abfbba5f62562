"""The memory of the time-shared policies: the jobs by class, the owners of nodes, the clock of the
slices, the groups."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from qbatch.model.actions import Allocation, parts_of, ranges_of
from qbatch.model.job import Job
from qbatch.model.machine import Machine
from qbatch.planning.kernels import slices
from qbatch.planning.kernels.entries import entries_to
from qbatch.planning.kernels.types import Int64Array, RecordArray
from qbatch.planning.search import jobs_to_search
from qbatch.planning.view import Run, View

_kernels = entries_to(slices)

NO_CLASS = -1


@dataclass
class Group:
    """A group that is carried out.

    In order: the planned rows that have not begun, in plan order; the job that ends the group.
    Then: whether that job ended in the slice of another class; whether the group is over.
    """

    rows: list[int]
    finish: int
    is_due: bool = False
    is_over: bool = False


@dataclass
class SearchCounts:
    """The counters of searches: groups and jobs in them, by class; placements; prefixes that were
    cut."""

    groups: list[int] = field(default_factory=lambda: [0, 0, 0])
    grouped: list[int] = field(default_factory=lambda: [0, 0, 0])
    nodes: int = 0
    pruned: int = 0


class SliceBook:
    """The jobs in the system (as the kernels take them), the nodes, the clock, the groups by class.

    ``kind``: the class that has the slice, ``NO_CLASS`` in a switch and while there is no job.
    ``until``: when slice or switch end.  ``last``: the class of the slice before a switch.
    ``is_switching``: a switch is under way.  ``present``: number of jobs by class.  ``strays``:
    hosts and processors of jobs that were suspended before this policy and own no nodes yet;
    ``holders``: those that have kept their memory.  ``allocations``: of each job that has begun, if
    hosts matter.
    """

    def __init__(self, machine: Machine) -> None:
        self.jobs = np.zeros(64, slices.TIMED_JOB)
        self.count = 0
        self.owners: Int64Array = np.full((3, machine.procs), slices.NO_JOB, np.int64)
        self.busy: Int64Array = np.full(machine.procs, slices.NO_JOB, np.int64)
        self.hosts: Int64Array = np.repeat(
            np.arange(len(machine.hosts)), [host.cpus for host in machine.hosts]
        )
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
        self.counts = SearchCounts()

    def slot_of(self, row: int) -> int:
        """Return the slot of a row, -1 if it is not in the table."""
        return int(_kernels.slot_of(self.jobs, self.count, row))

    def enter(self, row: int, procs: int, kind: int, estimate: int, submit: int) -> int:
        """Add a waiting job after all others; return its slot."""
        if self.count == len(self.jobs):
            self.jobs = np.concatenate([self.jobs, np.zeros_like(self.jobs)])
        slot = self.count
        self.jobs[slot] = (row, procs, procs, kind, estimate, submit, 0, submit, slices.WAITING)
        self.count += 1
        self.present[kind] += 1
        return slot

    def leave(self, row: int) -> None:
        """Remove a job."""
        slot = self.slot_of(row)
        if slot >= 0:
            self.present[int(self.jobs["kind"][slot])] -= 1
            _kernels.leave(self.jobs, self.count, slot, self.owners, self.busy)
            self.count -= 1
            self.strays.pop(row, None)
            self.allocations.pop(row, None)
            self.holders.discard(row)

    def fact(self, row: int, name: str) -> int:
        """Return a field of ``TIMED_JOB`` of a row in the table."""
        return int(self.jobs[name][self.slot_of(row)])

    def rows(self, state: int) -> list[int]:
        """Return the rows in a state, in sequence."""
        jobs = self.jobs[: self.count]
        found: list[int] = jobs["row"][jobs["state"] == state].tolist()
        return found

    def places(self, state: int, kind: int) -> Int64Array:
        """Return the slots of the jobs of a class in a state, in sequence."""
        jobs = self.jobs[: self.count]
        return np.flatnonzero((jobs["kind"] == kind) & (jobs["state"] == state))

    def to_search(self, places: Int64Array) -> RecordArray:
        """Return waiting jobs (by slot) as records for a search."""
        jobs = self.jobs[places]
        return jobs_to_search(jobs["procs"], jobs["estimate"], jobs["submit"], slices.SECOND)

    def lives(self, kind: int) -> bool:
        """Return whether a class has a job."""
        return self.present[kind] > 0

    def allocation(self, row: int, kind: int) -> Allocation:
        """Return the hosts of the nodes of a row."""
        hosts, counts = np.unique(self.hosts[self.owners[kind] == row], return_counts=True)
        return ranges_of(
            (host, count, 0, 1) for host, count in zip(hosts.tolist(), counts.tolist(), strict=True)
        )

    def follow(self, view: View) -> None:
        """Remove ended and withdrawn jobs, also from the groups; the clock still shows the slice
        that ran until now."""
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

    def drop_begun(self, begun: set[int]) -> None:
        """Remove jobs that have begun from the plans."""
        for group in self.groups:
            if group is not None:
                _drop(group, begun)

    def suspend_all(self, now: int) -> list[int]:
        """Suspend every running job; return the rows."""
        rows = self.rows(slices.RUNNING)
        _kernels.suspend_all(self.jobs, self.count, now, self.busy)
        return rows

    def settle_hosts(self, view: View) -> None:
        """Close the nodes of closed hosts, and those that the engine withholds; add running jobs
        that are unknown."""
        known = set(self.jobs["row"][: self.count].tolist())
        self.busy[self.busy == slices.CLOSED] = slices.NO_JOB
        for row in view.running:
            if row in known:
                self.busy[self.owners[self.fact(row, "kind")] == row] = row
        for host, free in enumerate(view.free):
            here = self.hosts == host
            if host in view.closed:
                self.busy[here] = slices.CLOSED
                continue
            idle = np.flatnonzero(here & (self.busy == slices.NO_JOB))
            if len(idle) > free:
                self.busy[idle[free:]] = slices.CLOSED
        self.open_procs = int((self.busy != slices.CLOSED).sum())
        for slot in range(self.count):
            row, kind = self.jobs["row"][slot], self.jobs["kind"][slot]
            if self.jobs["state"][slot] >= slices.RUNNING:
                owned = self.owners[kind] == row
                self.jobs["open_procs"][slot] = int((owned & (self.busy != slices.CLOSED)).sum())

    def adopt(self, run: Run, job: Job, kind: int) -> None:
        """Add a running job that is unknown: it owns free nodes of its hosts."""
        self._take_up(run, job, kind, slices.RUNNING)
        for chunk in run.allocation:
            for host in chunk.hosts:
                idle = np.flatnonzero(
                    (self.hosts == host) & (self.busy < 0) & (self.owners[kind] == slices.NO_JOB)
                )
                self.owners[kind, idle[: chunk.procs]] = run.row
                self.busy[idle[: chunk.procs]] = run.row

    def adopt_suspended(self, run: Run, job: Job, kind: int) -> None:
        """Add a suspended job that is unknown: it owns nodes of its hosts as soon as its class
        leaves some."""
        self._take_up(run, job, kind, slices.STRAY)
        if run.holds_memory:
            self.holders.add(run.row)
        self.strays[run.row] = [(host, procs) for host, procs, _ in parts_of(run.allocation)]

    def _take_up(self, run: Run, job: Job, kind: int, state: int) -> None:
        slot = self.enter(run.row, run.procs, kind, job.estimate, job.submit)
        width = job.procs if job.is_exclusive else run.procs
        entry = self.jobs[slot]
        entry["done"], entry["since"], entry["state"] = run.done // max(width, 1), run.since, state
        self.allocations[run.row] = run.allocation

    def claim_nodes(self) -> None:
        """Give nodes to the strays if their hosts have enough that no job of their class owns."""
        for row, parts in sorted(self.strays.items()):
            slot = self.slot_of(row)
            owners = self.owners[int(self.jobs["kind"][slot])]
            found = [
                np.flatnonzero((self.hosts == host) & (owners == slices.NO_JOB))[:procs]
                for host, procs in parts
            ]
            if all(len(each) == procs for each, (_, procs) in zip(found, parts, strict=True)):
                nodes = np.concatenate(found)
                owners[nodes] = row
                self.jobs["open_procs"][slot] = int((self.busy[nodes] != slices.CLOSED).sum())
                self.jobs["state"][slot] = slices.SUSPENDED
                del self.strays[row]

    def sort(self) -> None:
        """Sort the jobs by row again, after some were added."""
        order = np.argsort(self.jobs["row"][: self.count], kind="stable")
        self.jobs[: self.count] = self.jobs[order]


def _drop(group: Group, rows: set[int]) -> None:
    group.rows = [row for row in group.rows if row not in rows]
