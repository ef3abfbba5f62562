"""The limits of partitions: on which of them a job may run, and whether it has its hosts alone
(docs/spec/production.md, sections 1.1 and 3)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from qbatch.model.job import SCATTER, SERVER, ChunkRequest, Job, JobRequest
from qbatch.model.machine import EXCLUSIVE, USUAL_TIER, Machine, Partition, memory_text


def partitions_of(machine: Machine, names: Sequence[str]) -> tuple[Partition, ...]:
    """Return the partitions that a job names, or the default one if it names none."""
    if names:
        return tuple(each for each in machine.partitions if each.name in names)
    return tuple(each for each in machine.partitions if each.is_default)


def default_time(machine: Machine, names: Sequence[str]) -> int:
    """Return the estimate of a job that asks for no time, in microseconds: the least default of its
    partitions; 0: they have none."""
    times = [each.default_time for each in partitions_of(machine, names) if each.default_time]
    return min(times, default=0)


def has_tiers(machine: Machine) -> bool:
    """Return whether the partitions of a machine differ in their tier."""
    return len({each.tier for each in machine.partitions}) > 1


def tier_of(machine: Machine, names: Sequence[str]) -> int:
    """Return the tier of a job that names partitions: the highest of them."""
    tiers = [each.tier for each in partitions_of(machine, names)]
    return max(tiers, default=USUAL_TIER)


def has_limits(machine: Machine) -> bool:
    """Return whether a partition of a machine has a limit, or gives its jobs hosts of their own."""
    return any(
        each.max_time
        or each.min_hosts
        or each.max_hosts
        or each.max_memory_per_cpu
        or each.share == EXCLUSIVE
        for each in machine.partitions
    )


def limited(machine: Machine, asked: JobRequest, estimate: int) -> JobRequest:
    """Return a request with only those partitions that admit it, and exclusive if one of them is.

    If none admits it, it keeps all that it names (:func:`breach` says why it cannot run).
    """
    named = partitions_of(machine, asked.partitions)
    admitting = [
        each for each in named if not breach(each, asked.chunks, asked.placing, estimate)
    ] or named
    is_exclusive = asked.is_exclusive or any(each.share == EXCLUSIVE for each in admitting)
    kept = asked.partitions
    if len(admitting) < len(named):
        kept = tuple(each.name for each in admitting)
    return msgspec.structs.replace(asked, partitions=kept, is_exclusive=is_exclusive)


def breach(
    partition: Partition, chunks: Sequence[ChunkRequest], placing: str, estimate: int
) -> str:
    """Return which limit of a partition a job breaks, in words; empty: none.

    A job asks for as many hosts as it has chunks if these go to different hosts, else for one.
    """
    if partition.max_time and estimate > partition.max_time:
        return (
            f"it asks for {_seconds(estimate)}, at most {_seconds(partition.max_time)} are allowed"
        )
    parts = [chunk for chunk in chunks if chunk.host != SERVER]
    hosts = sum(chunk.count for chunk in parts) if placing == SCATTER else 1
    if hosts < partition.min_hosts:
        return f"it asks for {hosts} hosts, at least {partition.min_hosts} are required"
    if partition.max_hosts and hosts > partition.max_hosts:
        return f"it asks for {hosts} hosts, at most {partition.max_hosts} are allowed"
    most = partition.max_memory_per_cpu
    for chunk in parts:
        if most and chunk.memory > most * chunk.procs:
            return (
                f"it asks for {memory_text(chunk.memory)} with {chunk.procs} processors, at most "
                f"{memory_text(most)} for each are allowed"
            )
    return ""


def limits_refusal(machine: Machine, job: Job, chunks: Sequence[ChunkRequest]) -> str:
    """Return why none of its partitions admits a job, in words; empty: one does."""
    named = partitions_of(machine, job.partitions)
    found = [(each.name, breach(each, chunks, job.placing, job.estimate)) for each in named]
    if not found or any(not why for _, why in found):
        return ""
    return "; ".join(f"partition {name}: {why}" for name, why in found)


def _seconds(span: int) -> str:
    return f"{span / 1e6:.15g} s"
