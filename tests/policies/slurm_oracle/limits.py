"""Limits (stub)."""

from __future__ import annotations

from tests.policies.slurm_oracle import site as sites
from tests.policies.slurm_oracle.world import Job, World


def before_nodes(world: World, job: Job, partition: sites.Partition) -> bool:
    return True


def after_nodes(world: World, job: Job, partition: sites.Partition, chosen: dict[int, int]) -> bool:
    return True


def most_nodes(world: World, job: Job) -> int | None:
    return None


def holds_reason(job: Job) -> bool:
    return False


def begin(world: World, job: Job) -> None:
    pass
