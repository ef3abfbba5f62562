"""Resource models: whether, where and when a job fits a machine, with one vocabulary for all machines.

There are three kinds (the processors of one pool; hosts that each hold whole jobs, with memory; chunks over hosts), with
the same verbs.  Now: ``fits``, ``fits_any``, ``place``, ``room``.  Ahead: ``profile`` (earliest start, reserve, release)
and ``new_plan`` (the kept plan of conservative backfilling).  The pass of list schedulers: ``list_pass``.
:func:`space_of` chooses the kind once, when the machine is known; a policy asks ``view.space`` and never what kind of
machine it is.

The package never contains a particular policy, the order of a queue or the mutable cluster.
"""

from __future__ import annotations

from qbatch.model.machine import Machine
from qbatch.planning.spaces.chunks import ChunkSpace
from qbatch.planning.spaces.hosts import HostSpace
from qbatch.planning.spaces.pool import PoolSpace
from qbatch.planning.spaces.space import Space

__all__ = ["ChunkSpace", "HostSpace", "PoolSpace", "Space", "space_of"]


def space_of(machine: Machine) -> type[Space]:
    """Return the resource model of a machine; ``space_of(machine)(view)`` is that model for a view."""
    if machine.chunked:
        return ChunkSpace
    return PoolSpace if machine.is_one_pool else HostSpace
