"""Dependencies (stub)."""

from __future__ import annotations

from tests.policies.slurm_oracle.world import Job, World


def eligible(world: World, job: Job) -> bool:
    return not job.held
