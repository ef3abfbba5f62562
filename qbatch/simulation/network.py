"""The closed network as a source: its N jobs come back when the I/O station is done with them, and
bring new tasks.

The I/O station belongs to the source (docs/spec/papers.md 5.5, rule 13): it is no host or job.  The
tasks of a job depend on the draws of its visit and on the distributions that are active when it
comes back, not on the policy.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from qbatch.engine.round import Round
from qbatch.model.actions import Reject
from qbatch.model.job import Job
from qbatch.model.record import Workload
from qbatch.planning.kernels.profile import FOREVER
from qbatch.simulation.sources import Arrival, workload_of
from qbatch.workloads import network as purposes
from qbatch.workloads.kernels.network import DEMAND, DRAW, ESTIMATE
from qbatch.workloads.network import Network, NetworkDraws


class Distributions:
    """The active distributions of the number of tasks and of the demands."""

    def __init__(self, draws: NetworkDraws) -> None:
        network, self._draws = draws.network, draws
        self._is_second = [network.tasks == "normal", network.demand == "erlang"]
        self._changes = [0, 0]
        kinds = ((purposes.TASKS, network.tasks), (purposes.DEMAND, network.demand))
        self._following = [
            draws.interval(which, 0) if kind == "varying" else FOREVER for which, kind in kinds
        ]

    def at(self, now: int) -> tuple[bool, bool]:
        """Return whether the bounded normal and the branching Erlang are active at an instant;
        calls are in order of time."""
        for place, which in enumerate((purposes.TASKS, purposes.DEMAND)):
            while self._following[place] <= now:
                self._is_second[place] = not self._is_second[place]
                self._changes[place] += 1
                self._following[place] += self._draws.interval(which, self._changes[place])
        return self._is_second[0], self._is_second[1]


class NetworkSource:
    """The jobs of a closed network.  Each visit of a job is a parent; its tasks arrive together and
    take one processor each.

    ``until``: no job comes back after this instant in microseconds (default: the end of the
    measured window).  A job's ``user`` is its number in the network, from 1; its tasks may run
    longer than their estimates (E > 0).
    """

    size = 0

    def __init__(self, network: Network, seed: int, until: int | None = None) -> None:
        self.network = network
        self._draws = NetworkDraws(network, seed)
        self._until = network.horizon if until is None else until
        self._distributions = Distributions(self._draws)
        self._returns: deque[tuple[int, int]] = deque((0, job) for job in range(network.jobs))
        self._io_end = 0
        self._visits = [0] * network.jobs
        self._left = [0] * network.jobs
        self._job_of: dict[int, int] = {}
        self._made: list[Arrival] = []
        self._parents = 0

    def next_instant(self) -> int | None:
        """Return when the next job comes back; None if no job is in I/O, or the simulation is
        over."""
        found = self._returns[0][0] if self._returns else None
        return None if found is None or found > self._until else found

    def take(self, at: int) -> list[Arrival]:
        """Return the tasks of the jobs that come back by an instant."""
        back = []
        while self._returns and self._returns[0][0] <= at:
            back.append(self._returns.popleft()[1])
        is_normal, is_erlang = self._distributions.at(at)
        found = []
        for job in sorted(back):
            tasks = self._draws.visit(
                job, self._visits[job], is_normal=is_normal, is_erlang=is_erlang
            )
            self._left[job] = len(tasks)
            self._parents += 1
            for place, task in enumerate(tasks.tolist()):
                row = len(self._job_of)
                self._job_of[row] = job
                one = Job(
                    row=row,
                    number=row + 1,
                    submit=at,
                    procs=1,
                    estimate=task[ESTIMATE],
                    user=job + 1,
                    parent=self._parents,
                    task=place,
                    route=task[DRAW],
                )
                found.append(Arrival(one, task[DEMAND]))
        self._made += found
        return found

    def ended(self, at: int, rows: Sequence[int]) -> None:
        """Do nothing before the round: no job comes back before every task that ends at this
        instant has ended."""

    def after_round(self, done: Round) -> None:
        """Move the jobs with no task left to the I/O station, in order of their numbers; a refused
        task counts as ended."""
        refused = (action.row for action in done.actions if isinstance(action, Reject))
        over = set()
        for row in (*done.finished, *(row for row, _ in done.refused), *refused):
            job = self._job_of[row]
            self._left[job] -= 1
            if self._left[job] == 0:
                over.add(job)
        for job in sorted(over):
            self._io_end = max(done.at, self._io_end) + self._draws.io_time(job, self._visits[job])
            self._visits[job] += 1
            self._returns.append((self._io_end, job))

    def workload(self) -> Workload:
        """Return all tasks so far; those that came during the warm-up are not counted."""
        made = workload_of(self.network.name, self.network.processors, self._made)
        return made.changed(counted=made.submit >= round(self.network.warmup * 1e6))
