"""Resource models: whether, where and when a job fits a machine, with one vocabulary for all
machines.

There are two kinds, with the same verbs: hosts with named amounts, and the fast special case of the
processors of one pool.  Now: ``fits``, ``fits_any``, ``place``.
Ahead: ``profile`` (earliest start, reserve, release) and ``new_plan`` (the kept plan of
conservative backfilling).  The pass of list schedulers: ``list_pass``. :func:`resource_model_of`
chooses the kind once, when the machine is known.  A policy asks ``view.resources``, and never what
kind of machine it is.

The package never contains a particular policy, the order of a queue or the mutable cluster.
"""

from __future__ import annotations

from qbatch.model.machine import Machine
from qbatch.planning.resources.hosts import HostModel
from qbatch.planning.resources.pool import PoolModel
from qbatch.planning.view import ResourceModel

__all__ = ["HostModel", "PoolModel", "ResourceModel", "resource_model_of"]


def resource_model_of(machine: Machine) -> type[ResourceModel]:
    """Return the resource model of a machine; ``resource_model_of(machine)(view)`` is that model
    for a view."""
    return PoolModel if machine.is_one_pool else HostModel
