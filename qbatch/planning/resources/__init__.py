"""Resource models: whether, where and when a job fits a machine, with one vocabulary for all
machines.

There are three kinds (the processors of one pool; hosts that each hold whole jobs, with memory;
chunks over hosts), with the same verbs.  Now: ``fits``, ``fits_any``, ``place``, ``free_now``.
Ahead: ``profile`` (earliest start, reserve, release) and ``new_plan`` (the kept plan of
conservative backfilling).  The pass of list schedulers: ``list_pass``. :func:`resource_model_of`
chooses the kind once, when the machine is known.  A policy asks ``view.resources``, and never what
kind of machine it is.

The package never contains a particular policy, the order of a queue or the mutable cluster.
"""

from __future__ import annotations

from qbatch.model.machine import Machine
from qbatch.planning.resources.chunks import ChunkModel
from qbatch.planning.resources.hosts import HostModel
from qbatch.planning.resources.pool import PoolModel
from qbatch.planning.view import ResourceModel

__all__ = ["ChunkModel", "HostModel", "PoolModel", "ResourceModel", "resource_model_of"]


def resource_model_of(machine: Machine) -> type[ResourceModel]:
    """Return the resource model of a machine; ``resource_model_of(machine)(view)`` is that model
    for a view."""
    if machine.chunked:
        return ChunkModel
    return PoolModel if machine.is_one_pool else HostModel
