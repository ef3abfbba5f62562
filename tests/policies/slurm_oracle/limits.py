"""Limits of QOS and associations: at submission, before and after the choice of nodes.

Source: docs/spec/production.md, section 3 [`acct_policy_job_runnable_pre_select`, `..._post_select`,
`acct_policy_validate`], fitted against the recording `limits`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.policies.slurm_oracle import requests
from tests.policies.slurm_oracle import site as sites
from tests.policies.slurm_oracle.priority import Account
from tests.policies.slurm_oracle.world import PENDING, RUNNING, SUSPENDED, Job, World

NAMES = {"cpu": "Cpu", "node": "Node", "mem": "Memory", "gres/gpu": "GRES", "billing": "Billing"}
MINUTE_NAMES = {
    "cpu": "CPU",
    "node": "Node",
    "mem": "Memory",
    "gres/gpu": "GRES",
    "billing": "Billing",
}


def qos_order(
    world: World, request: requests.Request, partition: sites.Partition | None
) -> list[sites.Qos]:
    """The QOS that count, first the one that decides: that of the partition, then that of the job.

    OverPartQOS on the QOS of the job swaps them [`acct_policy_set_qos_order`].
    """
    own = world.site.qos.get(request.qos)
    part = world.site.qos.get(partition.qos) if partition and partition.qos else None
    if own is None or own is part:
        return [part] if part else []
    if part is None:
        return [own]
    return [own, part] if "overpartqos" in own.flags else [part, own]


def qos_names(world: World, job: Job) -> set[str]:
    """The QOS that a running job counts for."""
    part = world.site.partitions.get(job.partition)
    return {qos.name for qos in qos_order(world, job.request, part)}


def active(world: World) -> list[Job]:
    """Jobs that count as running for limits."""
    return [job for job in world.jobs.values() if job.state in (RUNNING, SUSPENDED)]


def of_qos(world: World, qos: sites.Qos) -> list[Job]:
    """Running jobs of a QOS, by their own QOS or by that of their partition."""
    return [job for job in active(world) if qos.name in qos_names(world, job)]


def below(world: World, item: sites.Association) -> list[Job]:
    """Running jobs of an association and of all below it."""
    found = []
    for job in active(world):
        own = world.site.associations.get((job.request.account, job.request.user))
        if own is not None and item in own.path():
            found.append(job)
    return found


def association_path(world: World, request: requests.Request) -> list[sites.Association]:
    """The association of a job and all above it."""
    own = world.site.associations.get((request.account, request.user))
    return own.path() if own else []


def first_number(order: list[sites.Qos], key: str) -> tuple[sites.Qos, int] | None:
    """The first QOS that sets a limit decides it."""
    for qos in order:
        value = qos.number(key)
        if value is not None:
            return qos, value
    return None


def first_amount(order: list[sites.Qos], key: str, name: str) -> tuple[sites.Qos, int] | None:
    """The same for one TRES of a limit."""
    for qos in order:
        value = qos.amounts(key).get(name)
        if value is not None:
            return qos, value
    return None


def enforced(world: World) -> bool:
    """True if the site enforces limits."""
    return "limits" in world.site.enforce or "safe" in world.site.enforce


def before_nodes(world: World, job: Job, partition: sites.Partition) -> bool:
    """Limits on numbers of jobs and on time, before nodes are chosen; sets the reason if one stops the job."""
    if not enforced(world):
        return True
    reason = reason_before(world, job, partition)
    if reason:
        job.reason = reason
        return False
    if holds_reason(job):
        job.reason = "None"
    return True


def reason_before(world: World, job: Job, partition: sites.Partition) -> str | None:
    """The first of these limits that stops a job: of its QOS, then of its associations upward."""
    order = qos_order(world, job.request, partition)
    return qos_reason_before(world, job, order) or association_reason_before(world, job, order)


def qos_reason_before(world: World, job: Job, order: list[sites.Qos]) -> str | None:
    """GrpWall, MaxJobsPerAccount, GrpJobs, MaxJobsPerUser and MaxWall of the QOS."""
    request = job.request
    wall = first_text(order, "grpwall")
    if (
        wall
        and world.priorities
        and wall_used(world.priorities.qos_usage[wall[0].name].wall, wall[1])
    ):
        return "QOSGrpWallLimit"
    found = first_number(order, "maxjobspa")
    if found:
        qos, limit = found
        if (
            sum(1 for other in of_qos(world, qos) if other.request.account == request.account)
            >= limit
        ):
            return "MaxJobsPerAccount"
    found = first_number(order, "grpjobs")
    if found and len(of_qos(world, found[0])) >= found[1]:
        return "QOSGrpJobsLimit"
    found = first_number(order, "maxjobspu")
    if found:
        qos, limit = found
        if sum(1 for other in of_qos(world, qos) if other.request.user == request.user) >= limit:
            return "QOSMaxJobsPerUserLimit"
    wall = first_text(order, "maxwall")
    if wall and job.limit > sites.minutes(wall[1]):
        return "QOSMaxWallDurationPerJobLimit"
    return None


def association_reason_before(world: World, job: Job, order: list[sites.Qos]) -> str | None:
    """GrpWall and GrpJobs of each association upward, MaxJobs and MaxWall of the first; not where a QOS decides."""
    by_user = first_number(order, "maxjobspu") or first_number(order, "maxjobspa")
    for position, item in enumerate(association_path(world, job.request)):
        wall = item.values.get("grpwall")
        memory = world.priorities
        if (
            wall
            and memory
            and first_text(order, "grpwall") is None
            and wall_used(memory.accounts[item.key].wall, wall)
        ):
            return "AssocGrpWallLimit"
        group = item.number("grpjobs")
        if (
            group is not None
            and first_number(order, "grpjobs") is None
            and len(below(world, item)) >= group
        ):
            return "AssocGrpJobsLimit"
        if position > 0:
            continue
        most = item.inherited("maxjobs")
        if most is not None and not by_user and len(below(world, item)) >= int(most):
            return "AssocMaxJobsLimit"
        longest = item.inherited("maxwalldurationperjob")
        if longest and first_text(order, "maxwall") is None and job.limit > sites.minutes(longest):
            return "AssocMaxWallDurationPerJobLimit"
    return None


def wall_used(seconds: float, limit: str) -> bool:
    """True if the decayed wall time of a group has reached its limit, in whole minutes."""
    return int(seconds / 60.0) >= sites.minutes(limit)


def first_text(order: list[sites.Qos], key: str) -> tuple[sites.Qos, str] | None:
    """The first QOS that sets a limit decides it."""
    return next(((qos, qos.values[key]) for qos in order if key in qos.values), None)


def holds_reason(job: Job) -> bool:
    """True if the reason of a job is one of a limit."""
    return job.reason.startswith(("QOS", "Assoc", "MaxJobsPer"))


def asked(world: World, job: Job, chosen: dict[int, int] | None, guess: int) -> dict[str, int]:
    """The TRES that a job would hold, in Slurm's order: on the chosen nodes, or on a guessed number of nodes."""
    request = job.request
    cpus = request.minimum_cpus
    count = guess if chosen is None else len(chosen)
    if chosen is not None and request.exclusive:
        cpus = sum(chosen.values())
    memory = 0
    if request.memory_per_node is not None:
        memory = request.memory_per_node * count
    elif request.memory_per_cpu is not None:
        memory = request.memory_per_cpu * cpus
    want = {"cpu": cpus, "mem": memory, "node": count, "billing": cpus}
    gpus = (
        request.gpus_per_job
        or request.gpus_per_node * count
        or request.gpus_per_task * request.tasks
    )
    if gpus:
        want["gres/gpu"] = gpus
    return want


def new_nodes(jobs: list[Job], chosen: dict[int, int] | None, guess: int) -> int:
    """How many nodes these jobs and a new one hold together; a node counts once [`_get_unique_job_node_cnt`]."""
    used = {index for job in jobs for index in job.cores}
    return len(used) + guess if chosen is None else len(used | set(chosen))


def preferred_nodes(world: World, job: Job, partition: sites.Partition) -> set[int]:
    """Nodes already in use by jobs that share a limit on nodes with this one; it takes them first."""
    if not enforced(world):
        return set()
    order = qos_order(world, job.request, partition)
    result: set[int] = set()
    group = first_amount(order, "grptres", "node")
    if group:
        result |= {index for other in of_qos(world, group[0]) for index in other.cores}
    user = first_amount(order, "maxtrespu", "node")
    if user:
        result |= {
            index
            for other in of_qos(world, user[0])
            if other.request.user == job.request.user
            for index in other.cores
        }
    if not group:
        for item in association_path(world, job.request):
            if "node" in item.amounts("grptres"):
                result |= {index for other in below(world, item) for index in other.cores}
                break
    return result


def held(jobs: list[Job], name: str) -> int:
    """How much of a TRES these running jobs hold."""
    if name == "cpu" or name == "billing":
        return sum(job.cpus for job in jobs)
    if name == "node":
        return sum(len(job.cores) for job in jobs)
    if name == "mem":
        return sum(sum(job.memory.values()) for job in jobs)
    return sum(sum(job.gpus.values()) for job in jobs)


def after_nodes(
    world: World, job: Job, partition: sites.Partition, chosen: dict[int, int] | None, guess: int
) -> bool:
    """Limits on amounts, after nodes are chosen; sets the reason if one stops the job."""
    if not enforced(world):
        return True
    reason = reason_after(world, job, partition, chosen, guess)
    if reason:
        job.reason = reason
        return False
    return True


@dataclass
class Asking:
    """What one job would add, and how it is set against a limit."""

    world: World
    job: Job
    order: list[sites.Qos]
    chosen: dict[int, int] | None
    guess: int
    want: dict[str, int]

    def together(self, jobs: list[Job], name: str) -> int:
        """What these running jobs and the new one hold; a node counts once."""
        if name == "node":
            return new_nodes(jobs, self.chosen, self.guess)
        return held(jobs, name) + self.want[name]

    def minutes(self, name: str) -> int:
        """TRES minutes of the job by its limit."""
        return self.want[name] * self.job.limit

    def spent(self, account: Account, name: str, limit: int) -> bool:
        """True if GrpTRESMins is used up; with `safe` also if running jobs and this one could use it up."""
        spent = int(account.tres_usage.get(name, 0.0) / 60.0)
        if spent >= limit:
            return True
        more = self.minutes(name)
        running = account.run_seconds.get(name, 0) // 60
        return "safe" in self.world.site.enforce and (
            more > limit - spent or running + more > limit - spent
        )

    def promised(self, account: Account, name: str, limit: int) -> bool:
        """True if GrpTRESRunMins would be exceeded."""
        return account.run_seconds.get(name, 0) // 60 + self.minutes(name) > limit

    def each(self, key: str, test: Callable[[sites.Qos, str, int], bool]) -> str | None:
        """The first TRES with a limit, set by the first QOS that has one, which is exceeded."""
        for name in self.want:
            found = first_amount(self.order, key, name)
            if found and test(found[0], name, found[1]):
                return name
        return None


def reason_after(
    world: World, job: Job, partition: sites.Partition, chosen: dict[int, int] | None, guess: int
) -> str | None:
    """The first of these limits that stops a job: of its QOS, then of its associations upward."""
    order = qos_order(world, job.request, partition)
    asking = Asking(world, job, order, chosen, guess, asked(world, job, chosen, guess))
    return qos_reason_after(asking) or association_reason_after(asking)


def qos_reason_after(asking: Asking) -> str | None:
    """GrpTRESMins, GrpTRES, GrpTRESRunMins, MaxTRES, MinTRES, MaxTRESPerAccount and MaxTRESPerUser of the QOS.

    MaxTRESRunMinsPerUser is stored by 22.05 but not enforced (recording `limits`, jobs 51 to 53). MaxTRESPerAccount
    is in no recording.
    """
    world, request, memory = asking.world, asking.job.request, asking.world.priorities
    if memory is not None:
        usage = memory.qos_usage
        name = asking.each(
            "grptresmins", lambda qos, tres, limit: asking.spent(usage[qos.name], tres, limit)
        )
        if name:
            return f"QOSGrp{MINUTE_NAMES[name]}MinutesLimit"
    name = asking.each(
        "grptres", lambda qos, tres, limit: asking.together(of_qos(world, qos), tres) > limit
    )
    if name:
        return f"QOSGrp{NAMES[name]}Limit"
    if memory is not None:
        name = asking.each(
            "grptresrunmins", lambda qos, tres, limit: asking.promised(usage[qos.name], tres, limit)
        )
        if name:
            return f"QOSGrp{MINUTE_NAMES[name]}RunMinutesLimit"
    name = asking.each("maxtres", lambda qos, tres, limit: asking.want[tres] > limit)
    if name:
        return f"QOSMax{NAMES[name]}PerJobLimit"
    name = asking.each("mintres", lambda qos, tres, limit: asking.want[tres] < limit)
    if name:
        return f"QOSMin{NAMES[name]}NotSatisfied"

    def of_account(qos: sites.Qos, tres: str, limit: int) -> bool:
        same = [other for other in of_qos(world, qos) if other.request.account == request.account]
        return asking.together(same, tres) > limit

    def of_user(qos: sites.Qos, tres: str, limit: int) -> bool:
        same = [other for other in of_qos(world, qos) if other.request.user == request.user]
        return asking.together(same, tres) > limit

    name = asking.each("maxtrespa", of_account)
    if name:
        return f"QOSMax{NAMES[name]}PerAccount"
    name = asking.each("maxtrespu", of_user)
    return f"QOSMax{NAMES[name]}PerUserLimit" if name else None


def association_reason_after(asking: Asking) -> str | None:
    """GrpTRESMins, GrpTRES and GrpTRESRunMins of each association upward, MaxTRESPerJob of the first."""
    world, memory = asking.world, asking.world.priorities
    for position, item in enumerate(association_path(world, asking.job.request)):
        for name in asking.want:
            limit = own_limit(asking, item, "grptresmins", name)
            if (
                limit is not None
                and memory
                and asking.spent(memory.accounts[item.key], name, limit)
            ):
                return f"AssocGrp{MINUTE_NAMES[name]}MinutesLimit"
        for name in asking.want:
            limit = own_limit(asking, item, "grptres", name)
            if limit is not None and asking.together(below(world, item), name) > limit:
                return f"AssocGrp{NAMES[name]}Limit"
        for name in asking.want:
            limit = own_limit(asking, item, "grptresrunmins", name)
            if (
                limit is not None
                and memory
                and asking.promised(memory.accounts[item.key], name, limit)
            ):
                return f"AssocGrp{MINUTE_NAMES[name]}RunMinutesLimit"
        most = sites.amounts(item.inherited("maxtresperjob") or "") if position == 0 else {}
        for name, amount in asking.want.items():
            if (
                name in most
                and first_amount(asking.order, "maxtres", name) is None
                and amount > most[name]
            ):
                return f"AssocMax{NAMES[name]}PerJobLimit"
    return None


def own_limit(asking: Asking, item: sites.Association, key: str, name: str) -> int | None:
    """A limit of an association on one TRES, unless a QOS decides it."""
    if first_amount(asking.order, key, name):
        return None
    return item.amounts(key).get(name)


def most_nodes(world: World, job: Job) -> int | None:
    """The greatest number of nodes that limits allow one job [`acct_policy_get_max_nodes`]; sets the reason."""
    if not enforced(world):
        return None
    part = world.site.partitions.get(job.partition)
    order = qos_order(world, job.request, part)
    best: int | None = None
    for key, reason in (
        ("maxtrespu", "QOSMaxNodePerUserLimit"),
        ("maxtres", "QOSMaxNodePerJobLimit"),
    ):
        found = first_amount(order, key, "node")
        if found and (best is None or found[1] < best):
            best = found[1]
            if best < job.request.minimum_nodes:
                job.reason = reason
    for item in association_path(world, job.request):
        limit = item.amounts("grptres").get("node")
        if limit is not None and (best is None or limit < best):
            best = limit
            if best < job.request.minimum_nodes:
                job.reason = "AssocGrpNodeLimit"
    return best


def refusal(world: World, request: requests.Request) -> str | None:
    """Why a job is refused at submission because of its account, its QOS or a limit [`acct_policy_validate`]."""
    site = world.site
    own = site.associations.get((request.account, request.user))
    if "associations" in site.enforce and own is None:
        return "Invalid account or account/partition combination specified"
    if "qos" in site.enforce and request.qos not in allowed_qos(own):
        return "Invalid qos specification"
    if not enforced(world):
        return None
    part = site.partitions.get(request.partitions[0])
    order = qos_order(world, request, part)
    waiting = [job for job in world.jobs.values() if job.state in (PENDING, RUNNING, SUSPENDED)]
    found = first_number(order, "maxsubmitpu")
    if found:
        qos, limit = found
        same = [
            job
            for job in waiting
            if job.request.user == request.user and submitted_to(world, job, qos)
        ]
        if len(same) + 1 > limit:
            return "QOSMaxSubmitJobPerUserLimit"
    for qos in order:
        if "denyonlimit" not in qos.flags:
            continue
        for name, limit in qos.amounts("maxtres").items():
            amount = {"cpu": request.minimum_cpus, "node": request.minimum_nodes}.get(name, 0)
            if amount > limit:
                return f"QOSMax{NAMES[name]}PerJobLimit"
        if "maxwall" in qos.values and (request.limit or 0) > sites.minutes(qos.values["maxwall"]):
            return "QOSMaxWallDurationPerJobLimit"
    if own is not None:
        text = own.inherited("maxsubmitjobs")
        if text is not None:
            most = int(text)
            same = [job for job in waiting if (job.request.account, job.request.user) == own.key]
            if len(same) + 1 > most:
                return "AssocMaxSubmitJobLimit"
    return None


def submitted_to(world: World, job: Job, qos: sites.Qos) -> bool:
    """True if a job counts for a QOS from its submission."""
    part = world.site.partitions.get(job.partition or job.request.partitions[0])
    return qos in qos_order(world, job.request, part)


def allowed_qos(own: sites.Association | None) -> set[str]:
    """The QOS of an association: its own list, or that of the nearest association above which has one."""
    for item in own.path() if own else []:
        if "qos" in item.values:
            return set(item.values["qos"].split(","))
    return {"normal"}
