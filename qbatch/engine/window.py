"""What of the cluster a policy may look at: each part is made when a view asks for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from qbatch.engine.cluster import Cluster
from qbatch.model.actions import parts_of
from qbatch.model.job import Job
from qbatch.planning.kernels.types import Int64Array
from qbatch.planning.shapes import Shapes
from qbatch.planning.view import Columns, Run


class ClusterWindow:
    """The read-only side of a cluster (:class:`qbatch.planning.view.Window`)."""

    __slots__ = ("_cluster", "_rows", "kind")

    def __init__(self, cluster: Cluster) -> None:
        self._cluster, self._rows = cluster, cluster.rows
        self.kind = cluster.kind

    @property
    def columns(self) -> Columns:
        """What was asked for, by row."""
        return self._rows.columns

    @property
    def long_columns(self) -> Columns:
        """The same in longer arrays, which are made anew only when they have to grow."""
        return self._rows.long_columns

    @property
    def jobs(self) -> Sequence[Job]:
        """The jobs by row."""
        return self._rows.view

    def jobs_of(self, rows: Sequence[int]) -> Iterator[Job]:
        """Return the jobs of rows that wait or run, or were over in this round."""
        return map(self._rows.jobs.__getitem__, rows)  # type: ignore[arg-type]  # those live

    @property
    def free(self) -> tuple[int, ...]:
        """The free processors by host: none where a job left behind waits for its own."""
        cluster = self._cluster
        if not cluster.left_behind:
            return tuple(cluster.free)
        kept = {place for row in cluster.left_behind for place, _, _ in parts_of(cluster.suspended[row].allocation)}
        return tuple(0 if host in kept else free for host, free in enumerate(cluster.free))

    @property
    def free_memory(self) -> tuple[int, ...]:
        """The free memory by host."""
        return tuple(self._cluster.free_memory)

    @property
    def running(self) -> Mapping[int, Run]:
        """The running jobs by row."""
        return MappingProxyType(self._cluster.running)

    @property
    def suspended(self) -> Mapping[int, Run]:
        """The suspended jobs by row."""
        return MappingProxyType(self._cluster.suspended)

    @property
    def ends(self) -> Int64Array:
        """The expected ends of the running jobs, ascending."""
        return self._cluster.ends

    @property
    def amounts(self) -> Int64Array:
        """Their processors."""
        return self._cluster.amounts

    def by_end(self) -> tuple[Int64Array, Int64Array, int]:
        """Return ``ends`` and ``amounts`` in longer arrays, and how many entries are in use."""
        return self._cluster.by_end()

    @property
    def closed(self) -> frozenset[int]:
        """The hosts that are closed."""
        return self._cluster.closed

    @property
    def parked(self) -> Int64Array:
        """The waiting rows that only closed hosts could hold."""
        return self._cluster.parked.rows

    @property
    def promises(self) -> Mapping[int, int]:
        """The promised latest starts by row, but those that were taken back."""
        return MappingProxyType(self._cluster.promises)

    @property
    def shapes(self) -> Shapes | None:
        """What the waiting jobs of a chunked machine ask for."""
        return None if self._cluster.shapes is None else self._cluster.shapes.arrays

    @property
    def pieces(self) -> Int64Array | None:
        """The parts of running jobs, where hosts matter."""
        return self._cluster.parts()
