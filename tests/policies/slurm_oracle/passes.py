"""The two passes of Slurm: the main scheduler and backfill.

Sources: behaviour of `_schedule`, `select_nodes`, `_pick_best_nodes` and `_attempt_backfill` of 22.05.8, fitted
against the recordings.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

from tests.policies.slurm_oracle import gang, limits, nodes, preemption, reservations
from tests.policies.slurm_oracle import site as sites
from tests.policies.slurm_oracle.recording import Plan, Start, Test, Try
from tests.policies.slurm_oracle.world import PENDING, RUNNING, Job, World

YEAR_MINUTES = 365 * 24 * 60
MANY = 500_000


@dataclass
class Entry:
    """One entry of the queue: a job in one of its partitions."""

    job: Job
    partition: sites.Partition
    priority: int


@dataclass
class Outcome:
    """What a pass decided."""

    starts: list[Start] = field(default_factory=list)
    tests: list[Test] = field(default_factory=list)
    tries: list[Try] = field(default_factory=list)
    plans: list[Plan] = field(default_factory=list)
    map_lines: list[tuple[int, int, str]] = field(default_factory=list)
    failed: list[int] = field(default_factory=list)


def partition_fault(world: World, job: Job, partition: sites.Partition) -> str | None:
    """Why a job may not run in a partition at all; such an entry is not in the queue [`job_limits_check`]."""
    if job.limit and partition.max_time != sites.UNLIMITED and job.limit > partition.max_time:
        return "PartitionTimeLimit"
    request = job.request
    if request.minimum_nodes > min(partition.max_nodes, len(partition.nodes)):
        return "PartitionNodeLimit"
    if request.maximum_nodes is not None and request.maximum_nodes < partition.min_nodes:
        return "PartitionNodeLimit"
    return None


def node_counts(world: World, job: Job, partition: sites.Partition) -> tuple[int, int, int] | None:
    """Least, greatest and desired number of nodes [`get_node_cnts`]; None if a limit on nodes forbids the job."""
    request = job.request
    least = max(request.minimum_nodes, partition.min_nodes)
    most = min(request.maximum_nodes or MANY, partition.max_nodes, MANY)
    allowed = limits.most_nodes(world, job)
    if allowed is not None and allowed < least:
        return None
    if allowed is not None:
        most = min(most, allowed)
    desired = most if request.maximum_nodes else least
    return least, most, desired


def queue(world: World) -> list[Entry]:
    """The entries of jobs that may run, sorted [`build_job_queue`, `sort_job_queue2`].

    Order: jobs that name a reservation, jobs that may preempt the other, tier of the partition, priority, submission,
    job number.
    """
    from tests.policies.slurm_oracle import arrays

    arrays.split_for_correspondence(world)
    for job in world.pending():
        job.in_progress = False
    entries = []
    for job in world.pending():
        if not eligible(world, job):
            continue
        if not reservations.begun(world, job):
            job.reason = "Reservation"
            continue
        for name in job.request.partitions:
            partition = world.site.partitions[name]
            fault = partition_fault(world, job, partition)
            if fault:
                job.reason = fault
                continue
            if job.reason in ("PartitionTimeLimit", "PartitionNodeLimit"):
                job.reason = "None"
            entries.append(Entry(job, partition, job.partition_priority.get(name, job.priority)))

    def compare(one: Entry, two: Entry) -> int:
        first, second = bool(one.job.reservation), bool(two.job.reservation)
        if first != second:
            return -1 if first else 1
        if preemption.may_preempt(world, one.job, one.partition, two.job, two.partition):
            return -1
        if preemption.may_preempt(world, two.job, two.partition, one.job, one.partition):
            return 1
        key_one = (-one.partition.tier, -one.priority, int(one.job.submit), *place(one.job))
        key_two = (-two.partition.tier, -two.priority, int(two.job.submit), *place(two.job))
        return (key_one > key_two) - (key_one < key_two)

    return sorted(entries, key=functools.cmp_to_key(compare))


def at_submission(world: World, job: Job) -> None:
    """The reason that a new batch job shows before any pass has looked at it [`job_allocate`, `_top_priority`].

    A limit of its partition; else a limit of its QOS or association; else Priority if a job that may be looked at and
    that stands before it waits on some of the same nodes.
    """
    if not eligible(world, job):
        return
    partition = world.site.partitions[job.request.partitions[0]]
    if not before_all_others(world, job, partition):
        job.reason = "Priority"
    if partition_fault(world, job, partition):
        job.reason = "PartitionConfig"
        return
    enter_partition(world, job, partition)
    everywhere = set(range(len(world.site.nodes))) - world.closed
    verdict = start_now(world, job, partition, everywhere, Outcome(), test_only=True)
    if verdict != STARTED:
        set_reason(world, job, partition, verdict, everywhere)


def before_all_others(world: World, job: Job, partition: sites.Partition) -> bool:
    """True if no waiting job that may be looked at has a higher priority and shares nodes of its partition with this.

    Tiers do not count here (jobs 52 of partitions-gpu and 14 of preempt-part). Jobs whose reason is a limit, their
    partition, or ReqNodeNotAvail do not count either.
    """
    for other in world.pending():
        if (
            other is job
            or other.reason.startswith(("Partition", "ReqNodeNotAvail"))
            or limits.holds_reason(other)
        ):
            continue
        if not eligible(world, other) or not reservations.begun(world, other):
            continue
        if other.reservation and not job.reservation:
            return False
        if job.reservation and not other.reservation:
            continue
        its = world.site.partitions[other.partition or other.request.partitions[0]]
        if not set(its.nodes) & set(partition.nodes):
            continue
        if other.priority > job.priority:
            return False
    return True


def place(job: Job) -> tuple[int, int]:
    """The number of a job, or of its array and then of its task; the record of waiting tasks is last."""
    return (job.array, MANY if job.task is None else job.task) if job.array else (job.number, 0)


def eligible(world: World, job: Job) -> bool:
    """True if a job is not held, its begin time has come and its dependencies are met."""
    from tests.policies.slurm_oracle import dependencies

    return dependencies.eligible(world, job)


def time_limit(job: Job, partition: sites.Partition) -> int:
    """The limit in minutes that plans use: the job's, at most the partition's; without one the partition's."""
    longest = YEAR_MINUTES if partition.max_time == sites.UNLIMITED else partition.max_time
    return min(job.limit, longest) if job.limit else longest


def fitting_features(world: World, job: Job, candidates: set[int]) -> set[int]:
    """The candidates that have the features of a job and are large enough for it."""
    from tests.policies.slurm_oracle.requests import feature_match

    return {
        index
        for index in candidates
        if feature_match(job.request.features, world.site.nodes[index].features)
    }


def owned_by_others(world: World, job: Job) -> set[int]:
    """Nodes that --exclusive=user closes to a job: of another user's exclusive job, or with other users' jobs."""
    closed = set()
    for other in world.running():
        if other.request.user == job.request.user:
            continue
        if other.request.by_user or job.request.by_user:
            closed |= other.nodes
    return closed


def indices(world: World, names: list[str]) -> set[int]:
    """The indices of named nodes."""
    return {node.index for node in world.site.nodes if node.name in names}


def enter_partition(world: World, job: Job, partition: sites.Partition) -> None:
    """Sets the partition that a job is tried in; a job that names no memory asks for the default of this partition."""
    job.partition = partition.name
    options = job.request.options
    if world.site.counts_memory and "mem" not in options and "mem-per-cpu" not in options:
        job.request.memory_per_cpu = partition.default_memory_per_cpu


BUSY, RESERVED, POLICY, NOT_AVAILABLE, NEVER, BAD_PARTITION, LICENSES, STARTED = (
    "busy",
    "reserved",
    "policy",
    "not available",
    "never",
    "bad partition",
    "licenses",
    "started",
)
MAINTENANCE = "reserved for maintenance"
DOWN_TEXT = (
    "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions"
)


def start_now(
    world: World,
    job: Job,
    partition: sites.Partition,
    open_nodes: set[int],
    outcome: Outcome,
    excluded_nodes: set[int] | None = None,
    test_only: bool = False,
) -> str:
    """Tries to start a job at once and says what came of it [`select_nodes`, `_get_req_features`, `_pick_best_nodes`].

    With `test_only` (at submission) it says whether the job could start were all nodes in question idle, changes
    nothing, and does not ask the limits on amounts.

    - Nodes that still clean up are not used, nor those of an exclusive job. An exclusive job uses idle nodes only.
    - A job that does not fit is busy if it would fit on the open nodes were they idle, or if some node was passed over
      because it is in use. Else its nodes are not available, which stops nothing.
    - The limits on amounts are tested even if the job does not fit; a breach of one is what counts then.
    """
    enter_partition(world, job, partition)
    if not limits.before_nodes(world, job, partition):
        return POLICY
    counts = node_counts(world, job, partition)
    if counts is None:
        return POLICY
    least, most, desired = counts
    if most < least:
        return BAD_PARTITION
    if not test_only and not world.licenses_fit(job):
        return LICENSES
    request = job.request
    verdict = reservations.usable_nodes(world, job, world.second, False, time_limit(job, partition))
    if verdict.refused and job.reservation:
        return MAINTENANCE if verdict.maintenance else RESERVED
    everything = fitting_features(world, job, set(partition.nodes))
    if job.reservation:
        everything &= verdict.nodes
    everything -= indices(world, request.excluded_nodes)
    everything -= excluded_nodes or set()
    present = everything & open_nodes & (set() if verdict.refused else verdict.nodes)
    free = present - owned_by_others(world, job) - world.completing_nodes()
    if not preemption.enabled(world):
        if request.exclusive:
            free -= {index for other in world.running() for index in other.cores}
        else:
            free -= {index for other in world.running() if other.whole for index in other.cores}
    nodes_busy = free != present
    if test_only:
        if (
            len(free) >= least
            and nodes.select(world, request, free, [], {}, counts, ever=True) is not None
        ):
            return STARTED
        if nodes.select(world, request, everything, [], {}, counts, ever=True) is None:
            return NEVER
        if nodes_busy:
            return BUSY
        return MAINTENANCE if verdict.maintenance else NOT_AVAILABLE
    nodes.forget_gpus(world, everything)
    nodes.prefer(world, limits.preferred_nodes(world, job, partition) & everything)
    holders = world.running()
    chosen = None
    victims: list[Job] = []
    if len(free) >= least:
        chosen, victims = preemption.choose_now(world, job, free, holders, verdict.excluded, counts)
    code = STARTED
    guess = len(chosen) if chosen is not None else desired
    if chosen is None:
        code = BUSY
        possible = (
            nodes.select(world, request, present, [], {}, counts, ever=True)
            if len(free) >= least
            else None
        )
        if possible is None:
            ever = nodes.select(world, request, everything, [], {}, counts, ever=True)
            possible = ever
            if ever is None:
                code = NEVER
            elif not nodes_busy:
                code = MAINTENANCE if verdict.maintenance else NOT_AVAILABLE
        guess = len(possible) if possible is not None else desired
    if not limits.after_nodes(world, job, partition, chosen, guess):
        return POLICY
    if chosen is None:
        return code
    if victims:
        preemption.begin(world, job, victims)
        return BUSY
    nodes.allocate(world, job, chosen)
    begin_job(world, job, partition)
    outcome.starts.append(Start(job.number, world.site.node_list(job.nodes), partition.name))
    gang.after_start(world, job)
    return STARTED


def begin_job(world: World, job: Job, partition: sites.Partition) -> None:
    """Marks a job as running; its limit counts from the whole second of its start."""
    job.state = RUNNING
    job.partition = partition.name
    job.start = world.second
    job.started = world.now
    minutes = job.limit or partition.default_time or partition.max_time
    job.limit = minutes
    job.end = job.start + minutes * 60
    job.reason = "None"
    if world.priorities is not None:
        world.priorities.started(job)


def main_pass(world: World, full: bool) -> Outcome:
    """One pass of the main scheduler [`_schedule`]. It knows nothing of the plans of backfill.

    - Entries of a stopped partition are skipped.
    - A job whose partition has fewer open nodes than it needs, or that does not fit now, stops its partition: the
      nodes of the partition are closed for all entries that follow in this pass.
    - A job that names all its nodes closes only these.
    - A job in a reservation that does not fit stops the reservation.
    - A job whose limit, licences or reservations forbid it is skipped, and the next is looked at.
    - With sched/builtin and priority/basic and equal tiers, the queue is the list of jobs in order of submission.
    """
    outcome = Outcome()
    entries = queue(world)
    if fifo(world):
        entries.sort(key=lambda entry: entry.job.sequence)
    open_nodes = {node.index for node in world.site.nodes} - world.closed
    stopped: set[str] = set()
    stopped_reservations: set[str] = set()
    depth = int(world.site.scheduler.get("default_queue_depth", "100"))
    looked_at = 0
    rejected: tuple[int, str] | None = None
    position = 0
    while position < len(entries):
        entry = entries[position]
        position += 1
        job, partition = entry.job, entry.partition
        if job.state != PENDING or job.in_progress:
            continue
        while True:
            again, counted = _main_entry(
                world,
                job,
                partition,
                open_nodes,
                stopped,
                stopped_reservations,
                outcome,
                rejected,
                looked_at > depth,
            )
            looked_at += 1
            if counted == "end" and not full:
                return outcome
            rejected = (
                (job.array, partition.name)
                if counted == "reject" and job.array
                else rejected
                if counted != "started"
                else None
            )
            if again is None:
                break
            job = again
    return outcome


def fifo(world: World) -> bool:
    """True if the list of jobs itself is the queue."""
    tiers = {partition.tier for partition in world.site.partitions.values()}
    return (
        world.site.setting("SchedulerType") == "sched/builtin"
        and world.site.setting("PriorityType", "priority/basic") == "priority/basic"
        and len(tiers) == 1
    )


def _main_entry(
    world: World,
    job: Job,
    partition: sites.Partition,
    open_nodes: set[int],
    stopped: set[str],
    stopped_reservations: set[str],
    outcome: Outcome,
    rejected: tuple[int, str] | None,
    too_deep: bool,
) -> tuple[Job | None, str]:
    """One entry of the main pass. Returns the next task of an array to try, and what was decided."""
    from tests.policies.slurm_oracle import arrays

    if job.array and rejected == (job.array, partition.name):
        return None, "skip"
    if job.array and not arrays.may_start(world, job):
        return None, "reject"
    if too_deep:
        return None, "end"
    enter_partition(world, job, partition)
    if job.reservation:
        if job.reservation in stopped_reservations:
            job.reason = "Priority"
            return None, "skip"
    elif partition.name in stopped:
        if job.reason in ("None", "Resources", DOWN_TEXT):
            job.reason = "Priority"
        return None, "skip"
    if not limits.holds_reason(job) and not limits.before_nodes(world, job, partition):
        return None, "reject"
    least = job.request.minimum_nodes
    stop = False
    if least > len(open_nodes & set(partition.nodes)):
        job.reason = DOWN_TEXT
        stop = True
        verdict = BUSY
    else:
        if not world.licenses_fit(job):
            job.reason = "Licenses"
            return None, "reject"
        head = job
        if job.is_head:
            job = arrays.split(world, head)
        verdict = start_now(world, job, partition, open_nodes, outcome)
        if head is not job:
            if verdict == STARTED:
                arrays.commit(world, head, job)
            else:
                arrays.join(world, head, job)
                job = head
        if verdict == STARTED:
            following = (
                head
                if head is not job and head.state == PENDING and job.number != head.number
                else None
            )
            return following, "started"
        set_reason(world, job, partition, verdict, open_nodes)
        if verdict == BUSY:
            stop = True
        elif verdict in (RESERVED, MAINTENANCE) and job.reservation:
            open_nodes -= reservations.nodes_of(world, job.reservation)
    required = indices(world, job.request.required_nodes)
    if required and len(required) >= job.request.minimum_nodes:
        stop = False
        open_nodes -= required
    if stop and job.reservation:
        stop = False
        stopped_reservations.add(job.reservation)
    if stop and partition.name not in stopped:
        stopped.add(partition.name)
        open_nodes -= set(partition.nodes)
    return None, "reject"


def set_reason(
    world: World, job: Job, partition: sites.Partition, verdict: str, open_nodes: set[int]
) -> None:
    """The reason that a waiting job shows after it was tried and did not start [`select_nodes`]."""
    if verdict == BUSY:
        job.reason = "Resources"
    elif verdict == RESERVED:
        job.reason = "Reservation"
    elif verdict == MAINTENANCE:
        job.reason = "ReqNodeNotAvail, Reserved for maintenance"
    elif verdict == LICENSES:
        job.reason = "Licenses"
    elif verdict == NOT_AVAILABLE:
        missing = set(partition.nodes) - (open_nodes - owned_by_others(world, job))
        required = indices(world, job.request.required_nodes)
        if missing & required:
            missing &= required
        if missing:
            job.reason = "ReqNodeNotAvail, UnavailableNodes:" + world.site.node_list(missing)
        else:
            job.reason = "ReqNodeNotAvail, May be reserved for other job"
    elif verdict == NEVER:
        job.reason = "BadConstraints"


@dataclass
class Segment:
    """A piece of the map of planned nodes: `nodes` are not planned for any job in [begin, end)."""

    begin: int
    end: int
    nodes: frozenset[int]


class PlanMap:
    """The map of planned nodes of one cycle [`node_space`, `_add_reservation`]."""

    def __init__(self, begin: int, end: int, everything: frozenset[int]) -> None:
        self.segments = [Segment(begin, end, everything)]

    def book(self, start: int, end: int, taken: frozenset[int], resolution: int) -> None:
        """Takes nodes out of [start, end). Afterwards at most one pair of equal neighbours is joined."""
        segments = self.segments
        start = max(start, segments[0].begin)
        end = max(end, start + resolution)
        placed = None
        before = 0
        for position, segment in enumerate(segments):
            if segment.end > start:
                segments.insert(position + 1, Segment(start, segment.end, segment.nodes))
                segment.end = start
                placed = position
                break
            if segment.end == start:
                placed = position
                break
            before = position
        after = None
        if placed is not None:
            position = placed
            while position + 1 < len(segments):
                position += 1
                segment = segments[position]
                if end < segment.end:
                    segments.insert(position + 1, Segment(end, segment.end, segment.nodes))
                    segment.end = end
                segment.nodes -= taken
                if end == segment.end:
                    after = position + 1 if position + 1 < len(segments) else None
                    break
        position = before
        while position + 1 < len(segments) and position != after:
            if segments[position].nodes == segments[position + 1].nodes:
                segments[position].end = segments[position + 1].end
                del segments[position + 1]
                break
            position += 1

    def overlaps(self, chosen: frozenset[int], start: int, end: int) -> bool:
        """True if some of the nodes are planned for another job in [start, end)."""
        return any(
            segment.end > start and segment.begin < end and not chosen <= segment.nodes
            for segment in self.segments
        )


def backfill_pass(world: World) -> Outcome:
    """One cycle of backfill [`_attempt_backfill`]."""
    from tests.policies.slurm_oracle import arrays

    outcome = Outcome()
    parameters = world.site.scheduler
    resolution = int(parameters.get("bf_resolution", "60"))
    window = int(parameters.get("bf_window", "1440")) * 60
    now = world.second
    window_end = (now + window) // resolution * resolution
    everything = frozenset(
        node.index for node in world.site.nodes if node.index not in world.closed
    )
    plan_map = PlanMap(now // resolution * resolution, window_end, everything)
    entries = queue(world)
    if not entries:
        return outcome
    for job in world.pending():
        job.planned, job.planned_nodes = 0, ""
    dump(world, plan_map, outcome)
    rejected: tuple[int, str] | None = None
    for entry in entries:
        job = entry.job
        if job.state != PENDING or job.in_progress:
            continue
        enter_partition(world, job, entry.partition)
        if not limits.before_nodes(world, job, entry.partition):
            continue
        if job.is_head and arrays.enough_planned(world, job, 0):
            continue
        original = job.planned
        count = 0
        while True:
            if job.array:
                if rejected == (job.array, entry.partition.name):
                    break
                rejected = (job.array, entry.partition.name)
                if not arrays.may_start(world, job):
                    break
            verdict, following = _backfill_entry(
                world, job, entry, plan_map, outcome, resolution, window, window_end, original
            )
            if verdict in (STARTED, "planned"):
                rejected = None
            if verdict == STARTED and following is not None:
                job = following
                continue
            if verdict == "planned" and job.is_head:
                count += 1
                if not arrays.enough_planned(world, job, count):
                    continue
            break
    return outcome


def builtin_estimates(world: World) -> None:
    """sched/builtin sets the expected start of each waiting job, every bf_interval; it starts none [`builtin_agent`].

    Jobs in order of the queue: the earliest start beside the running jobs; if the nodes were already given to an
    earlier job and that start is not after the end of the job before, then that end.
    """
    now = world.second
    before = now - 1
    given: set[int] = set()
    for entry in queue(world):
        job, partition = entry.job, entry.partition
        enter_partition(world, job, partition)
        counts = node_counts(world, job, partition)
        if counts is None or counts[1] < counts[0]:
            continue
        minutes = time_limit(job, partition)
        verdict = reservations.usable_nodes(world, job, now, True, minutes)
        if verdict.refused:
            continue
        candidates = (
            fitting_features(world, job, set(partition.nodes) & verdict.nodes) - world.closed
        )
        candidates -= indices(world, job.request.excluded_nodes)
        found = nodes.earliest(world, job, candidates, verdict.excluded, counts, [])
        if found is None:
            continue
        job.planned = found[0]
        if given & set(found[1]) and job.planned <= before:
            job.planned = before
        given |= set(found[1])
        before = job.planned + minutes * 60


def dump(world: World, plan_map: PlanMap, outcome: Outcome) -> None:
    """Notes the map as the log prints it."""
    outcome.map_lines.extend(
        (segment.begin, segment.end, world.site.node_list(segment.nodes))
        for segment in plan_map.segments
    )


def _backfill_entry(
    world: World,
    job: Job,
    entry: Entry,
    plan_map: PlanMap,
    outcome: Outcome,
    resolution: int,
    window: int,
    window_end: int,
    original: int,
) -> tuple[str, Job | None]:
    """One entry of a cycle: it starts now, or is planned, or neither."""
    partition = entry.partition
    outcome.tests.append(
        Test(job.number, entry.priority, partition.name, job.reservation or "NONE")
    )
    if not world.licenses_fit(job):
        return LICENSES, None
    counts = node_counts(world, job, partition)
    if counts is None:
        return POLICY, None
    least, _, _ = counts
    minutes = time_limit(job, partition)
    now = world.second
    later = now
    while True:
        start = later
        later = 0
        verdict = reservations.usable_nodes(world, job, start, True, minutes)
        if verdict.refused:
            return RESERVED, None
        start = verdict.start
        if window_end < start:
            return "too late", None
        end = minutes * 60 + max(start, now)
        candidates = verdict.nodes & set(partition.nodes)
        candidates -= world.closed
        candidates -= owned_by_others(world, job)
        base = set(candidates)
        segments = plan_map.segments
        for position, segment in enumerate(segments):
            if segment.end > start and position + 1 < len(segments) and later == 0:
                if not (base & segments[position + 1].nodes) <= (candidates & segment.nodes):
                    later = segment.end
            if segment.end <= start:
                continue
            if segment.begin <= end:
                candidates &= segment.nodes
            else:
                break
        if verdict.overlap:
            after = reservations.next_end(world, start, resolution)
            if after and after + 1 < window_end and (later == 0 or after + 1 < later):
                later = after + 1
        candidates -= indices(world, job.request.excluded_nodes)
        required = indices(world, job.request.required_nodes)
        if len(candidates) >= least and required <= candidates:
            candidates = fitting_features(world, job, candidates)
        if len(candidates) < least or not required <= candidates:
            if later:
                job.planned = 0
                continue
            job.planned = original
            return BUSY, None
        outcome.tries.append(Try(job.number, start, world.site.node_list(candidates)))
        gone = preemption.candidates(world, job, partition)
        found = nodes.earliest(world, job, candidates, verdict.excluded, counts, gone)
        if found is None:
            if later:
                job.planned = 0
                continue
            job.planned = original
            return BUSY, None
        when, chosen = found
        job.planned = max(when, start)
        if job.planned <= now and set(chosen) & world.completing_nodes():
            job.planned = now + 1
            later = 0
        elif job.planned <= now:
            from tests.policies.slurm_oracle import arrays

            head = job
            if job.is_head:
                job = arrays.split(world, head)
            others = set(range(len(world.site.nodes))) - candidates
            started = start_now(
                world, job, partition, set(partition.nodes) - world.closed, outcome, others
            )
            if head is not job:
                if started == STARTED:
                    arrays.commit(world, head, job)
                else:
                    arrays.join(world, head, job)
                    job = head
            if started == STARTED:
                if job.whole or job.request.licenses:
                    taken = job.nodes if job.whole else frozenset()
                    plan_map.book(0, job.end // resolution * resolution, taken, resolution)
                following = (
                    head
                    if head is not job and head.state == PENDING and job.number != head.number
                    else None
                )
                return STARTED, following
            if started != STARTED:
                set_reason(
                    world, job, partition, started, set(range(len(world.site.nodes))) - world.closed
                )
            if started in (RESERVED, MAINTENANCE, POLICY):
                job.planned = original
                return POLICY, None
            outcome.failed.append(job.number)
            later = 0
        if later and job.planned > later:
            job.planned = 0
            continue
        begin = job.planned // resolution * resolution
        finish = (job.planned + minutes * 60) // resolution * resolution
        finish = max(finish, begin + resolution)
        if job.planned > now + window:
            return "too late", None
        taken = frozenset(chosen)
        if job.planned > now and plan_map.overlaps(taken, begin, finish):
            later = job.planned
            job.planned = 0
            continue
        if not limits.after_nodes(world, job, partition, None, len(chosen)):
            return POLICY, None
        outcome.plans.append(
            Plan(job.number, job.planned, finish, world.site.node_list(taken), partition.name)
        )
        if original == 0 or job.planned < original:
            job.planned_nodes = world.site.node_list(taken)
        plan_map.book(begin, finish, taken, resolution)
        dump(world, plan_map, outcome)
        if original and original < job.planned:
            job.planned = original
        return "planned", None
