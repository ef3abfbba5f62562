"""What a job may use by what it asked for, and where it uses more although its pool does not end it for that (``enforce``)."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import TYPE_CHECKING

from qbatch.wire.resources import MICROSECONDS, format_duration, format_size, parse_duration, parse_size

if TYPE_CHECKING:
    from qbatch.daemon.core.job import BatchJob
    from qbatch.daemon.core.state import Core


def limits_of(job: BatchJob) -> dict[str, float]:
    """Return the limits that a job asked for: ``cput`` and ``pcput`` in seconds, ``mem`` and ``vmem`` in bytes.

    ``pmem`` is a share of ``mem`` (:func:`qbatch.wire.resources.parse_demand`), so it is held or not as ``mem`` is.
    """
    resources = job.spec.resources
    limits: dict[str, float] = {}
    for name in ("cput", "pcput", "vmem"):
        if name in resources:
            text = resources[name]
            limits[name] = float(parse_size(text)) if name == "vmem" else parse_duration(text) / MICROSECONDS
    if job.prepared.demand.memory:
        limits["mem"] = float(job.prepared.demand.memory)
    return limits


def excess(core: Core, job: BatchJob, used: Mapping[str, float]) -> str:
    """Return in words what a job uses beyond what it asked for and is not ended for; nothing where there is no such thing.

    ``used``: seconds and bytes, as executors measure them.
    """
    enforced = core.pool_of(job).settings.enforce
    return "; ".join(
        f"{name} {_text(name, used[name])} exceeds the {_text(name, limit)} asked for (not enforced)"
        for name, limit in limits_of(job).items()
        if name not in enforced and used.get(name, 0) > limit
    )


def _text(name: str, amount: float) -> str:
    """Return an amount as PBS writes it, rounded up: what is exceeded by a part of a second is seen to be."""
    return format_size(int(amount)) if name in ("mem", "vmem") else format_duration(ceil(amount) * MICROSECONDS)
