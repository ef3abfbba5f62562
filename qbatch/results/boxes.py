"""The processors of each job over time, for charts and for formats that name processors.

Job rows do not contain them, so this module assigns processors as a machine without a topology
might.  In order of start, a job gets the lowest run of free processors that is long enough, else
the lowest free ones.  A resized job keeps as many as it can.  If a schedule names the hosts of
jobs, each host assigns its own, and the hosts follow one another.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qbatch.model.free_runs import FreeRuns
from qbatch.model.record import Int64Array, Schedule
from qbatch.model.spans import Spans


@dataclass(frozen=True, slots=True)
class Boxes:
    """The processors of jobs: ``job`` (its row) held those from ``low`` to before ``high`` for a
    time."""

    job: Int64Array
    low: Int64Array
    high: Int64Array
    begin: Int64Array
    end: Int64Array


def assign(schedule: Schedule, procs_total: int, host_cpus: Sequence[int] = ()) -> Boxes:
    """Assign processors to jobs, which must never use more than there are; a job of no length gets
    none.

    ``host_cpus``: the processors of each host, if every span names one; else all are one pool.
    """
    spans = schedule.spans()
    if not host_cpus:
        return _assigned(spans, procs_total)
    parts, low = [], 0
    for host, cpus in enumerate(host_cpus):
        boxes = _assigned(spans.only(spans.host == host), cpus)
        parts.append(Boxes(boxes.job, boxes.low + low, boxes.high + low, boxes.begin, boxes.end))
        low += cpus
    names = ("job", "low", "high", "begin", "end")
    whole = Boxes(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))
    order = np.lexsort((whole.low, whole.job, whole.begin))
    return Boxes(*(getattr(whole, name)[order] for name in names))


def _assigned(spans: Spans, procs_total: int) -> Boxes:
    """Assign the processors of one pool."""
    lasting = np.flatnonzero(spans.end > spans.begin)
    lasting = lasting[np.lexsort((spans.job[lasting], spans.begin[lasting]))]
    spans = spans.only(lasting)
    goes_on = _continued(spans).tolist()
    job, begin, end, procs = (
        column.tolist() for column in (spans.job, spans.begin, spans.end, spans.procs)
    )
    assigner = _Assigner(procs_total)
    running: list[tuple[int, int, int]] = []
    first = 0
    while first < len(job):
        now, last = begin[first], first
        while last < len(job) and begin[last] == now:
            last += 1
        while running and running[0][0] <= now:
            at, _, span = heapq.heappop(running)
            if not goes_on[span]:
                assigner.set(job[span], 0, at)
        group = list(range(first, last))
        if len(group) > 1:
            # First the jobs that shrink, then those that continue with as many or more, then new
            # ones: each finds enough free.
            group.sort(
                key=lambda span: (
                    assigner.held(job[span]) == 0,
                    procs[span] >= assigner.held(job[span]),
                )
            )
        for span in group:
            assigner.set(job[span], procs[span], now)
            heapq.heappush(running, (end[span], job[span], span))
        first = last
    for at, _, span in sorted(running):
        if not goes_on[span]:
            assigner.set(job[span], 0, at)
    return assigner.boxes()


def _continued(spans: Spans) -> Int64Array:
    """Return for each span whether another one of its job begins where it ends."""
    order = np.lexsort((spans.begin, spans.job))
    follows = (spans.job[order[:-1]] == spans.job[order[1:]]) & (
        spans.end[order[:-1]] == spans.begin[order[1:]]
    )
    found = np.zeros(len(spans.job), np.int64)
    found[order[:-1][follows]] = 1
    return found


class _Assigner:
    """The current processors of each job, with the instant of their assignment, and the finished
    boxes."""

    def __init__(self, procs_total: int) -> None:
        self._free = FreeRuns(procs_total)
        self._runs: dict[int, list[tuple[int, int, int]]] = {}
        self._done: list[tuple[int, int, int, int, int]] = []

    def held(self, job: int) -> int:
        return sum(high - low for low, high, _ in self._runs.get(job, ()))

    def set(self, job: int, procs: int, now: int) -> None:
        """Set the number of processors of a job from now on; it keeps those that it has as far as
        possible."""
        runs = self._runs.setdefault(job, [])
        surplus = self.held(job) - procs
        while surplus > 0:
            low, high, since = runs.pop()
            middle = max(low, high - surplus)
            if since < now:
                self._done.append((job, low, high, since, now))
            if middle > low:
                runs.append((low, middle, now))
            self._free.give(middle, high)
            surplus -= high - middle
        if surplus < 0:
            runs += [(low, high, now) for low, high in self._free.take(-surplus)]
        if not runs:
            del self._runs[job]

    def boxes(self) -> Boxes:
        table = np.array(self._done, np.int64).reshape(-1, 5)
        table = table[np.lexsort((table[:, 1], table[:, 0], table[:, 3]))]
        return Boxes(*table.T)
