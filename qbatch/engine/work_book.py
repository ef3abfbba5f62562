"""The work of each job, from the actions alone: suspension and resizing must conserve work.

Work is processors times time.  The cluster keeps it by entering and leaving runs.  This book sums up what the rounds
report, and finds where the two differ, and jobs that resumed on other processors than those on which they were suspended.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from qbatch.model.actions import Allocation, Resize, Resume, Start, Suspend, procs_of

if TYPE_CHECKING:
    from qbatch.engine.cluster import Cluster
    from qbatch.engine.round import Round


class _Entry(msgspec.Struct):
    """Work done before ``since``; current width, 0 while suspended; the hosts."""

    done: int
    since: int
    width: int
    places: Allocation


class WorkBook:
    """Work done by each living job, from the rounds."""

    def __init__(self) -> None:
        self._entries: dict[int, _Entry] = {}

    def resume(self, cluster: Cluster) -> None:
        """Begin with a cluster in the middle of its work."""
        for row, run in cluster.running.items():
            width = _width(cluster, row, run.procs)
            self._entries[row] = _Entry(run.done, run.since, width, run.allocation)
        for row, run in cluster.suspended.items():
            self._entries[row] = _Entry(run.done, run.since, 0, run.allocation)

    def problems(self, cluster: Cluster, done: Round) -> Iterator[str]:
        """Follow one round and return the differences from the cluster's own account."""
        for row in (*done.finished, *done.requeued):
            self._entries.pop(row, None)
        for row in done.stopped:
            self._settle(row, done.at, 0)
        for action in done.actions:
            match action:
                case Start():
                    width = _width(cluster, action.row, procs_of(action.allocation))
                    self._entries[action.row] = _Entry(0, done.at, width, action.allocation)
                case Suspend():
                    self._settle(action.row, done.at, 0)
                case Resume():
                    own = procs_of(self._entries[action.row].places)
                    self._settle(action.row, done.at, _width(cluster, action.row, own))
                case Resize():
                    self._settle(action.row, done.at, action.procs if self._entries[action.row].width else 0)
                    (had,) = self._entries[action.row].places
                    self._entries[action.row].places = (msgspec.structs.replace(had, procs=action.procs),)
        for row in [row for row in self._entries if row not in cluster.running and row not in cluster.suspended]:
            del self._entries[row]  # withdrawn while it was suspended
        yield from self._differences(cluster)

    def _settle(self, row: int, at: int, width: int) -> None:
        entry = self._entries[row]
        entry.done += (at - entry.since) * entry.width
        entry.since, entry.width = at, width

    def _differences(self, cluster: Cluster) -> Iterator[str]:
        for runs, is_running in ((cluster.running, True), (cluster.suspended, False)):
            for row, run in runs.items():
                entry = self._entries[row]
                if (entry.done, entry.since, entry.width > 0) != (run.done, run.since, is_running):
                    number = cluster.job(row).number
                    yield f"job {number}: {run.done} processor-microseconds of work recorded, {entry.done} were done"
                if entry.places != run.allocation:
                    yield f"job {cluster.job(row).number} is not on the processors of the host that it had"


def _width(cluster: Cluster, row: int, procs: int) -> int:
    """Return the number of processors that a job uses: one that takes whole hosts uses those that it asked for."""
    job = cluster.job(row)
    return job.procs if job.is_exclusive and cluster.machine.chunked else procs
