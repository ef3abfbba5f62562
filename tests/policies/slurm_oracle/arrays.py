"""Arrays (stub)."""

from __future__ import annotations

from tests.policies.slurm_oracle.world import Job, World


def may_start(world: World, job: Job) -> bool:
    return True


def split(world: World, head: Job) -> Job:
    return head


def join(world: World, head: Job, task: Job) -> None:
    pass


def enough_planned(world: World, head: Job, count: int) -> bool:
    return True
