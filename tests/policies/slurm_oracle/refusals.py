"""Refusals at submission: what sbatch prints."""

from __future__ import annotations

from tests.policies.slurm_oracle import limits, nodes, passes, requests, reservations
from tests.policies.slurm_oracle.world import Job, World

POLICY_TEXT = (
    "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"
)


def refusal(world: World, request: requests.Request, now: float) -> tuple[list[str], bool]:
    """The messages of a refusal, and whether it used up a priority (priority/basic). No message: the job is taken."""
    site = world.site
    known = {feature for node in site.nodes for feature in node.features}
    if request.dependency and request.dependency.startswith("expand"):
        return ["Requested operation not supported on this system"], False
    text = limits.refusal(world, request)
    if text in (
        "Invalid qos specification",
        "Invalid account or account/partition combination specified",
    ):
        return [text], False
    if text:
        return [text, POLICY_TEXT], False
    names = request.features.replace("|", "&").split("&") if request.features else []
    if any(name not in known for name in names):
        return ["Invalid feature specification"], False
    for name, count in request.licenses.items():
        if count > site.licenses.get(name, 0):
            return ["Invalid license specification"], False
    if request.reservation:
        item = world.reservations.get(request.reservation)
        if item is None:
            return ["Requested reservation is invalid"], False
        if not reservations.may_use(item, request.user):
            return ["Access denied to requested reservation"], False
    if never_runs(world, request, now):
        return ["Requested node configuration is not available"], True
    return [], False


def never_runs(world: World, request: requests.Request, now: float) -> bool:
    """True if no partition of a job could run it even if all its nodes were idle.

    A job that is larger or longer than its partition allows is taken and waits.
    """
    job = Job(0, request, now, 0)
    job.limit = request.limit or 0
    for name in request.partitions:
        partition = world.site.partitions[name]
        if passes.partition_fault(world, job, partition):
            return False
        passes.enter_partition(world, job, partition)
        counts = passes.node_counts(world, job, partition)
        if counts is None:
            return False
        candidates = passes.fitting_features(world, job, set(partition.nodes))
        saved = dict(world.weights)
        found = nodes.select(world, request, candidates, [], {}, counts, ever=True)
        world.weights = saved
        if found is not None:
            return False
    return True
