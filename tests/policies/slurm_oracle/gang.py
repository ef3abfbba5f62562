"""Steps of the node selection that only gang scheduling reaches (PreemptMode=...,GANG).

Source: behaviour of select/cons_tres `_job_test`, steps 1 to 4, and of the gang scheduler at the start of a job,
fitted against the recording `preempt-part`.
"""

from __future__ import annotations

import math

from tests.policies.slurm_oracle import nodes
from tests.policies.slurm_oracle import site as sites
from tests.policies.slurm_oracle.world import COMPLETING, SUSPENDED, Job, World


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
    """The nodes a job takes while these jobs hold theirs.

    1. Idle cores only. Without gang scheduling nothing else is tried.
    2. Cores but those of partitions of a higher tier and of partitions with PreemptMode=OFF. If the job does not fit
       there, it cannot run.
    3. Of these, cores but those of partitions of its own tier. If it fits, the cores of each partition of a lower
       tier are left out as well, one partition after another in the order of the file, until it no longer fits.
    4. Else cores but those of its own partition.
    """
    everything = nodes.rooms(world, holders, excluded)
    world.rooms = everything
    chosen = nodes.choose(world, job.request, candidates, everything, counts)
    if chosen is not None or not active(world):
        return chosen
    own = world.site.partitions[job.partition]
    parts = sorted(world.site.partitions.values(), key=lambda part: -part.tier)

    def without(names: set[str]) -> dict[int, int] | None:
        blocking = [other for other in holders if other.partition in names]
        cores = nodes.rooms(world, blocking, excluded)
        merged = {
            index: nodes.Room(
                cores[index].cores, everything[index].memory, everything[index].gpus, room.holders
            )
            for index, room in cores.items()
        }
        found = nodes.choose(world, job.request, candidates, merged, counts)
        if found is not None:
            world.rooms = merged
        return found

    closed = {
        part.name for part in parts if part.tier > own.tier or part_mode(world, part) == "OFF"
    }
    if without(closed) is None:
        return None
    same = closed | {part.name for part in parts if part.tier == own.tier}
    chosen = without(same)
    if chosen is not None:
        avoided = set(same)
        for part in parts:
            if part.tier >= own.tier:
                continue
            avoided.add(part.name)
            better = without(avoided)
            if better is None:
                break
            chosen = better
        return chosen
    if not any(other.partition == own.name for other in holders):
        return without(closed)
    return without(closed | {own.name})


def part_mode(world: World, part: sites.Partition) -> str:
    """The preempt mode of a partition, else that of the cluster."""
    cluster = (
        world.site.setting("PreemptMode", "OFF").upper().replace(",GANG", "").replace("GANG,", "")
    )
    return part.preempt_mode or cluster


def after_start(world: World, job: Job) -> None:
    """A started job takes the cores of jobs of lower tiers at once, without grace time.

    By the mode of their partition these are suspended, requeued (cancelled if they must not be), or cancelled.
    """
    if not active(world):
        return
    own = world.site.partitions[job.partition]
    for other in world.running():
        part = world.site.partitions[other.partition]
        if other is job or part.tier >= own.tier or other.state == SUSPENDED:
            continue
        if not any(job.cores[index] & other.cores.get(index, frozenset()) for index in job.cores):
            continue
        how = part_mode(world, part)
        if how == "SUSPEND":
            other.state = SUSPENDED
            other.suspended_at = world.second
            world.preemptions.append((world.second, "suspended", other.number))
        else:
            other.state = COMPLETING
            other.released = math.inf
            world.preemptions.append((world.second, "ended", other.number))
