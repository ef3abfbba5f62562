"""Limits of QOS and associations: at submission, before and after the choice of nodes.

Source: docs/spec/production.md, section 3 [`acct_policy_job_runnable_pre_select`, `..._post_select`,
`acct_policy_validate`], fitted against the recording `limits`.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.policies.slurm_oracle import requests
from tests.policies.slurm_oracle import site as sites
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
    request = job.request
    order = qos_order(world, request, partition)
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
    per_user = first_number(order, "maxjobspu")
    if per_user:
        qos, limit = per_user
        if sum(1 for other in of_qos(world, qos) if other.request.user == request.user) >= limit:
            return "QOSMaxJobsPerUserLimit"
    for qos in order:
        if "maxwall" in qos.values:
            if job.limit > sites.minutes(qos.values["maxwall"]):
                return "QOSMaxWallDurationPerJobLimit"
            break
    per_account = first_number(order, "maxjobspa")
    for position, item in enumerate(association_path(world, request)):
        group = item.number("grpjobs")
        if (
            group is not None
            and first_number(order, "grpjobs") is None
            and len(below(world, item)) >= group
        ):
            return "AssocGrpJobsLimit"
        if position == 0:
            most = item.number("maxjobs")
            if (
                most is not None
                and not per_user
                and not per_account
                and len(below(world, item)) >= most
            ):
                return "AssocMaxJobsLimit"
    return None


def holds_reason(job: Job) -> bool:
    """True if the reason of a job is one of a limit."""
    return job.reason.startswith(("QOS", "Assoc", "MaxJobsPer"))


def asked(job: Job, chosen: dict[int, int] | None, guess: int) -> dict[str, int]:
    """The TRES that a job would hold: on the chosen nodes, or on a guessed number of nodes."""
    cpus = job.request.minimum_cpus
    if chosen is not None and job.request.exclusive:
        cpus = sum(chosen.values())
    return {"cpu": cpus, "node": guess if chosen is None else len(chosen), "billing": cpus}


def new_nodes(jobs: list[Job], chosen: dict[int, int] | None, guess: int) -> int:
    """How many nodes these jobs and a new one hold together; a node counts once [`_get_unique_job_node_cnt`]."""
    used = {index for job in jobs for index in job.cores}
    return len(used) + guess if chosen is None else len(used | set(chosen))


def preferred_nodes(world: World, job: Job, partition: sites.Partition) -> set[int]:
    """Nodes already in use by those with whom a job shares a limit on nodes; it takes them first."""
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


def reason_after(
    world: World, job: Job, partition: sites.Partition, chosen: dict[int, int] | None, guess: int
) -> str | None:
    """The first of these limits that stops a job: of its QOS, then of its associations upward.

    MaxTRESRunMinsPerUser is stored by 22.05 but not enforced (recording `limits`, jobs 51 to 53).
    """
    request = job.request
    order = qos_order(world, request, partition)
    want = asked(job, chosen, guess)
    minutes = {name: amount * job.limit for name, amount in want.items()}
    memory = world.priorities
    safe = "safe" in world.site.enforce

    def together(jobs: list[Job], tres: str) -> int:
        return new_nodes(jobs, chosen, guess) if tres == "node" else held(jobs, tres) + want[tres]

    def each(key: str, test: Callable[[sites.Qos, str, int], bool]) -> str | None:
        for name in want:
            found = first_amount(order, key, name)
            if found and test(found[0], name, found[1]):
                return name
        return None

    def minutes_exceeded(used: float, running: int, limit: int, more: int) -> bool:
        spent = int(used / 60.0)
        if spent >= limit:
            return True
        return safe and (more > limit - spent or running // 60 + more > limit - spent)

    if memory is not None:
        name = each(
            "grptresmins",
            lambda qos, tres, limit: minutes_exceeded(
                memory.qos_usage[qos.name].tres_usage.get(tres, 0.0),
                memory.qos_usage[qos.name].run_seconds.get(tres, 0),
                limit,
                minutes[tres],
            ),
        )
        if name:
            return f"QOSGrp{MINUTE_NAMES[name]}MinutesLimit"
    name = each("grptres", lambda qos, tres, limit: together(of_qos(world, qos), tres) > limit)
    if name:
        return f"QOSGrp{NAMES[name]}Limit"
    if memory is not None:
        name = each(
            "grptresrunmins",
            lambda qos, tres, limit: (
                memory.qos_usage[qos.name].run_seconds.get(tres, 0) // 60 + minutes[tres] > limit
            ),
        )
        if name:
            return f"QOSGrp{MINUTE_NAMES[name]}RunMinutesLimit"
    name = each("maxtres", lambda qos, tres, limit: want[tres] > limit)
    if name:
        return f"QOSMax{NAMES[name]}PerJobLimit"
    name = each("mintres", lambda qos, tres, limit: want[tres] < limit)
    if name:
        return f"QOSMin{NAMES[name]}NotSatisfied"
    name = each(
        "maxtrespu",
        lambda qos, tres, limit: (
            together(
                [other for other in of_qos(world, qos) if other.request.user == request.user], tres
            )
            > limit
        ),
    )
    if name:
        return f"QOSMax{NAMES[name]}PerUserLimit"
    for item in association_path(world, request):
        for tres, limit in item.amounts("grptresmins").items():
            if memory is None or tres not in want or first_amount(order, "grptresmins", tres):
                continue
            account = memory.accounts[item.key]
            if minutes_exceeded(
                account.tres_usage.get(tres, 0.0),
                account.run_seconds.get(tres, 0),
                limit,
                minutes[tres],
            ):
                return f"AssocGrp{MINUTE_NAMES[tres]}MinutesLimit"
        for tres, limit in item.amounts("grptres").items():
            if tres not in want or first_amount(order, "grptres", tres):
                continue
            if together(below(world, item), tres) > limit:
                return f"AssocGrp{NAMES[tres]}Limit"
    return None


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
        most = own.number("maxsubmitjobs")
        if most is not None:
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


def begin(world: World, job: Job) -> None:
    """Nothing is kept apart: the counts are taken from the running jobs."""
