"""Spaces: what the room of a machine is to a job, in one vocabulary.

What lives here: three kinds of space (the processors of one pool; hosts that a job lives inside, with memory; chunks
over hosts) with the same verbs.  Now: ``fits``, ``fits_any``, ``place``, ``room``.  Ahead: ``profile`` (earliest start,
reserve, release) and ``new_plan`` (the kept plan of conservative backfilling).  The pass of list schedulers: ``list_pass``.
The kind is chosen once, when the machine is known (:func:`space_of`); a policy asks ``view.space`` and never what kind of
machine it is.

What must never come in: a particular policy, the order of a queue, the mutable cluster.
"""

from __future__ import annotations

from qbatch.model.machine import Machine
from qbatch.planning.spaces.chunks import ChunkSpace
from qbatch.planning.spaces.hosts import HostSpace
from qbatch.planning.spaces.pool import PoolSpace
from qbatch.planning.spaces.space import Space

__all__ = ["ChunkSpace", "HostSpace", "PoolSpace", "Space", "space_of"]


def space_of(machine: Machine) -> type[Space]:
    """Return the kind of space that a machine is; ``space_of(machine)(view)`` is that space as a view shows it."""
    if machine.chunked:
        return ChunkSpace
    return PoolSpace if machine.is_one_pool else HostSpace
