"""Steps of the node selection that only gang scheduling reaches (PreemptMode=...,GANG).

Source: select/cons_tres `_job_test`, steps 1 to 4.
"""

from __future__ import annotations

from tests.policies.slurm_oracle import nodes
from tests.policies.slurm_oracle.world import Job, World


def active(world: World) -> bool:
    """True if the site shares processors in time."""
    return "GANG" in world.site.setting("PreemptMode").upper()


def job_test(
    world: World,
    job: Job,
    candidates: set[int],
    holders: list[Job],
    excluded: nodes.Excluded,
    counts: tuple[int, int, int],
) -> dict[int, int] | None:
    """Step 1: idle cores only. Without gang scheduling nothing else is tried."""
    return nodes.select(world, job.request, candidates, holders, excluded, counts)


def rooms_for(
    world: World, job: Job, chosen: dict[int, int], holders: list[Job], excluded: nodes.Excluded
) -> dict[int, nodes.Room]:
    """The free room that a chosen job draws its cores from."""
    return nodes.rooms(world, holders, excluded)


def after_start(world: World, job: Job, outcome: object) -> None:
    """Gang scheduling after a start (stub)."""
