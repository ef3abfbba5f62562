"""Preemption by QOS or by the tier of partitions.

Sources: docs/spec/production.md, section 6 [`slurm_find_preemptable_jobs`, `_run_now`, `_preempt_jobs`,
`slurm_job_check_grace`], fitted against the recordings `preempt-qos` and `preempt-part`.
"""

from __future__ import annotations

import math

from tests.policies.slurm_oracle import gang, nodes
from tests.policies.slurm_oracle import site as sites
from tests.policies.slurm_oracle.world import COMPLETING, Job, World

KILL_WAIT = 30
MESSAGE_TIMEOUT = 10
REORDERS = 1
REQUEUE_DELAY = 121


def kind(world: World) -> str:
    """none, qos or partition_prio."""
    return world.site.setting("PreemptType", "preempt/none").rpartition("/")[2]


def enabled(world: World) -> bool:
    """True if the site preempts."""
    return kind(world) != "none"


def mode(world: World, job: Job) -> str:
    """How a job is preempted: OFF, SUSPEND, REQUEUE or CANCEL, by its QOS or partition, else by the cluster."""
    cluster = (
        world.site.setting("PreemptMode", "OFF").upper().replace(",GANG", "").replace("GANG,", "")
    )
    if kind(world) == "qos":
        own = world.site.qos[job.request.qos].values.get("preemptmode", "").upper()
        return cluster if own in ("", "CLUSTER") else own
    partition = world.site.partitions[job.partition]
    return partition.preempt_mode or cluster


def grace(world: World, job: Job) -> int:
    """The grace time of a job in seconds."""
    if kind(world) == "qos":
        return int(world.site.qos[job.request.qos].values.get("gracetime", "0"))
    return world.site.partitions[job.partition].grace_time


def exempt_time(world: World, job: Job) -> int:
    """How long a job must have run before it may be preempted, in seconds."""
    text = world.site.qos[job.request.qos].values.get("preemptexempttime", "0:0:0")
    return sites.seconds(text)


def qos_preempts(world: World, one: Job, two: Job) -> bool:
    """True if the QOS of the first lists that of the second."""
    listed = world.site.qos[one.request.qos].values.get("preempt", "")
    return two.request.qos in listed.split(",")


def may_preempt(
    world: World, one: Job, part_one: sites.Partition, two: Job, part_two: sites.Partition
) -> bool:
    """True if the first entry of the queue could preempt the second; it is then sorted before it."""
    if kind(world) == "qos":
        return qos_preempts(world, one, two)
    if kind(world) == "partition_prio":
        return part_one.tier > part_two.tier
    return False


def candidates(world: World, job: Job, partition: sites.Partition) -> list[Job]:
    """Running jobs that a job may preempt: lowest priority of their QOS or partition first, then fewest nodes.

    Jobs that run in their grace time are still candidates.
    """
    if not enabled(world):
        return []
    found = []
    for other in world.running():
        if mode(world, other) == "OFF" or not (other.nodes & partition.nodes):
            continue
        other_part = world.site.partitions[other.partition]
        if not may_preempt(world, job, partition, other, other_part):
            continue
        if kind(world) == "qos" and other.start + exempt_time(world, other) > world.second:
            continue
        found.append(other)

    def rank(other: Job) -> int:
        if kind(world) == "qos":
            base = world.site.qos[other.request.qos].priority
        else:
            base = world.site.partitions[other.partition].tier
        return (min(base, 0xFFFF) << 16) + min(len(other.cores), 0xFFFF)

    return sorted(found, key=rank)


def choose_now(
    world: World,
    job: Job,
    free: set[int],
    holders: list[Job],
    excluded: nodes.Excluded,
    counts: tuple[int, int, int],
) -> tuple[dict[int, int] | None, list[Job]]:
    """The nodes for a start at once and the jobs to preempt for it [`_run_now`].

    If the job does not fit, candidates are taken away one after another until it fits. Then the candidates are sorted
    anew, twice at most: the last one taken first, the others by the number of chosen nodes that they hold, and the
    search is repeated. Preempted are those taken away that hold a chosen node.
    """
    chosen = gang.job_test(world, job, free, holders, excluded, counts)
    if chosen is not None:
        return chosen, []
    order = candidates(world, job, world.site.partitions[job.partition])
    if not order:
        return None, []
    rounds = 0
    while True:
        left = list(holders)
        taken: list[Job] = []
        found: dict[int, int] | None = None
        for other in order:
            if mode(world, other) not in ("REQUEUE", "CANCEL") or not (other.nodes & free):
                continue
            left.remove(other)
            taken.append(other)
            found = gang.job_test(world, job, free, left, excluded, counts)
            if found is not None:
                break
        if found is None:
            return None, []
        rounds += 1
        if rounds - 1 > REORDERS or len(order) <= rounds:
            return found, [other for other in taken if other.nodes & set(found)]
        usable = {other.number: 0 for other in order}
        for other in order[: order.index(taken[-1])]:
            usable[other.number] = len(set(found) & other.nodes)
        usable[taken[-1].number] = 99999
        order.sort(key=lambda other: -usable[other.number])


def begin(world: World, job: Job, victims: list[Job]) -> None:
    """Starts to preempt; the job itself waits and is not looked at again in this pass [`_preempt_jobs`].

    Within KillWait + MessageTimeout of its last attempt a job preempts nothing further. A preempted job with grace time
    gets its end set to now + grace; one without is ended at once.
    """
    if job.preempt_time and job.preempt_time > world.second - KILL_WAIT - MESSAGE_TIMEOUT:
        return
    for victim in victims:
        if victim.grace_until:
            continue
        seconds = grace(world, victim)
        if seconds:
            victim.grace_until = world.second + seconds
            victim.end = min(victim.end, victim.grace_until)
            world.preemptions.append((world.second, "grace", victim.number))
        else:
            victim.state = COMPLETING
            victim.released = math.inf
            world.preemptions.append((world.second, "ended", victim.number))
    job.preempt_time = world.second
    job.in_progress = True
