"""Preemption (stub)."""

from __future__ import annotations

from tests.policies.slurm_oracle import gang, nodes
from tests.policies.slurm_oracle import site as sites
from tests.policies.slurm_oracle.world import Job, World


def enabled(world: World) -> bool:
    return False


def may_preempt(world: World, one: Job, part_one: sites.Partition, two: Job, part_two: sites.Partition) -> bool:
    return False


def candidates(world: World, job: Job, partition: sites.Partition) -> list[Job]:
    return []


def choose_now(
    world: World,
    job: Job,
    free: set[int],
    holders: list[Job],
    excluded: nodes.Excluded,
    counts: tuple[int, int, int],
) -> tuple[dict[int, int] | None, list[Job]]:
    return gang.job_test(world, job, free, holders, excluded, counts), []


def begin(world: World, job: Job, victims: list[Job]) -> None:
    pass
