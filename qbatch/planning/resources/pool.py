"""One pool of processors: a job fits if enough are free.  To a pass over hosts a pool is one
host."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qbatch.model.actions import Allocation, Chunk, Start, procs_of
from qbatch.model.job import Job
from qbatch.model.machine import Host, Machine
from qbatch.model.reasons import Reason
from qbatch.planning.kernels import profile as profiles
from qbatch.planning.kernels.entries import entries_to
from qbatch.planning.kernels.profile import FOREVER
from qbatch.planning.kernels.tables import CPUS, END, FREE, PROCS, THERE
from qbatch.planning.kernels.types import Int64Array
from qbatch.planning.placement import fill
from qbatch.planning.resources.pool_plan import PoolPlan
from qbatch.planning.view import Named, Plan, Profile, Reserved, ResourceModel, Run, View

_profiles = entries_to(profiles)


class PoolModel(ResourceModel):
    """The processors of one host, or of hosts that jobs may span, without memory."""

    __slots__ = ()

    @staticmethod
    def allocation(
        machine: Machine,
        free: Sequence[int],
        free_memory: Sequence[int],
        job: Job,
        free_resources: Named = (),
    ) -> Allocation:
        if len(free) == 1:
            return (Chunk(0, job.procs),) if free[0] >= job.procs else ()
        return fill(free, job.procs)

    @staticmethod
    def widest(machine: Machine, free: Sequence[int]) -> int:
        return free[0] if len(free) == 1 else sum(free)

    @staticmethod
    def places(machine: Machine) -> tuple[Host, ...]:
        return machine.hosts if len(machine.hosts) == 1 else (Host("", machine.procs),)

    @staticmethod
    def new_plan(machine: Machine) -> Plan:
        return PoolPlan(machine.procs)

    @staticmethod
    def replayed_as(machine: Machine) -> Machine:
        return machine

    def start(self, row: int, allocation: Allocation) -> Start:
        """Return the start of a row: the engine fills the hosts in their order."""
        return Start(row)

    def profile(self, *, is_of_plan: bool = False) -> Profile:
        return _PoolProfile(self.view)

    def hold_up(
        self,
        by: str,
        job: Job,
        order: Int64Array,
        ahead: list[int],
        depth: int,
        reserved: list[Reserved],
    ) -> Reason:
        """Return which job a start would delay, and until when enough processors are free."""
        view, head = self.view, self.view.jobs[ahead[0]]
        ends, amounts, count = view.expected_ends()
        available, shadow, place = view.free_procs, view.now, 0
        while available < head.procs and place < count:
            shadow = int(ends[place])
            while place < count and ends[place] == shadow:
                available += int(amounts[place])
                place += 1
        extra = available - head.procs
        numbers = {
            "shadow": shadow,
            "extra": extra,
            "procs": job.procs,
            "expected_end": view.now + job.estimate,
        }
        text = f"would delay one of the first {depth} jobs in the queue, which have reservations"
        if depth == 1:
            text = (
                f"would delay job {head.number}, which is to start by {shadow / 1e6:.15g} s: it "
                "would run until "
                f"{(view.now + job.estimate) / 1e6:.15g} s on {job.procs} processors and {extra} "
                "are extra then"
            )
        return Reason("reservation", by, text, numbers, (ahead[0],))

    def hosts(self) -> Int64Array:
        hosts = np.zeros((2, 2, 1), np.int64)
        hosts[FREE, CPUS, 0], hosts[THERE, CPUS, 0] = self.view.free_procs, self.view.open_procs
        return hosts

    def parts(self) -> Int64Array:
        ends, amounts, count = self.view.expected_ends()
        parts = np.zeros((4, count), np.int64)
        parts[END], parts[PROCS] = ends[:count], amounts[:count]
        return parts

    def place_of(self, run: Run) -> int:
        return 0


class _PoolProfile(Profile):
    """The free processors over time; an allocation is one chunk of the pool."""

    def __init__(self, view: View) -> None:
        self._view = view
        ends, amounts, count = view.expected_ends()
        self._free: Int64Array = _profiles.new_profile(view.free_procs, view.now, 4 * count + 64)
        for end, procs in zip(ends[:count].tolist(), amounts[:count].tolist(), strict=True):
            _profiles.add(self._free, end, FOREVER, procs)

    def earliest(self, row: int, duration: int, not_before: int) -> tuple[int, Allocation]:
        procs = int(self._view.columns.procs[row])
        start = int(_profiles.earliest(self._free, procs, duration, not_before))
        return start, (Chunk(0, procs),) if start < FOREVER else ()

    def change(self, allocation: Allocation, start: int, end: int, sign: int) -> None:
        if not _profiles.has_room(self._free, 1):
            self._free = _profiles.grown(self._free)
        _profiles.add(self._free, start, end, sign * procs_of(allocation))
