"""The two passes of Slurm: the main scheduler and backfill.

Sources: behaviour of `_schedule`, `select_nodes`, `_pick_best_nodes` and `_attempt_backfill` of 22.05.8, fitted
against the recordings.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

from tests.policies.slurm_oracle import (
    arrays,
    dependencies,
    gang,
    limits,
    nodes,
    preemption,
    reservations,
)
from tests.policies.slurm_oracle import site as sites
from tests.policies.slurm_oracle.recording import Plan, Start, Test, Try
from tests.policies.slurm_oracle.requests import feature_match
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

    Tiers do not count here (jobs 52 of partitions-gpu and 14 of preempt-part). Jobs with the reason of a limit, of
    their partition, or ReqNodeNotAvail do not count either.
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
    return dependencies.eligible(world, job)


def time_limit(job: Job, partition: sites.Partition) -> int:
    """The limit in minutes that plans use: the job's, at most the partition's; without one the partition's."""
    longest = YEAR_MINUTES if partition.max_time == sites.UNLIMITED else partition.max_time
    return min(job.limit, longest) if job.limit else longest


def fitting_features(world: World, job: Job, candidates: set[int]) -> set[int]:
    """The candidates that have the features of a job and are large enough for it."""
    return {
        index
        for index in candidates
        if feature_match(job.request.features, world.site.nodes[index].features)
    }


def owned_by_others(world: World, job: Job) -> set[int]:
    """Nodes that --exclusive=user closes to a job: of another user's exclusive job, or with other users' jobs."""
    closed: set[int] = set()
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
    verdict = reservations.usable_nodes(world, job, world.second, False, time_limit(job, partition))
    if verdict.refused and job.reservation:
        return MAINTENANCE if verdict.maintenance else RESERVED
    field = nodes_in_question(world, job, partition, verdict, open_nodes, excluded_nodes or set())
    if test_only:
        fits = len(field.free) >= least and would_fit(world, job, field.free, counts) is not None
        return STARTED if fits else why_not(world, job, field, counts, verdict)[0]
    nodes.forget_gpus(world, field.everything)
    nodes.prefer(world, limits.preferred_nodes(world, job, partition) & field.everything)
    chosen = None
    victims: list[Job] = []
    if len(field.free) >= least:
        chosen, victims = preemption.choose_now(
            world, job, field.free, world.running(), verdict.excluded, counts
        )
    code, guess = STARTED, desired
    if chosen is not None:
        guess = len(chosen)
    else:
        possible = (
            would_fit(world, job, field.present, counts) if len(field.free) >= least else None
        )
        code = BUSY
        if possible is None:
            code, possible = why_not(world, job, field, counts, verdict)
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


@dataclass
class Field:
    """The nodes that a job is tried on: all that could ever serve it, those open now, and of these the free."""

    everything: set[int]
    present: set[int]
    free: set[int]


def nodes_in_question(
    world: World,
    job: Job,
    partition: sites.Partition,
    verdict: reservations.Verdict,
    open_nodes: set[int],
    excluded_nodes: set[int],
) -> Field:
    """Sorts the nodes of a partition for a job. With preemption, nodes of exclusive jobs are not taken out here."""
    everything = fitting_features(world, job, set(partition.nodes))
    if job.reservation:
        everything &= verdict.nodes
    everything -= indices(world, job.request.excluded_nodes) | excluded_nodes
    present = everything & open_nodes & (set() if verdict.refused else verdict.nodes)
    free = present - owned_by_others(world, job) - world.completing_nodes()
    if not preemption.enabled(world):
        held = [other for other in world.running() if other.whole or job.request.exclusive]
        free -= {index for other in held for index in other.cores}
    return Field(everything, present, free)


def would_fit(
    world: World, job: Job, among: set[int], counts: tuple[int, int, int]
) -> dict[int, int] | None:
    """The nodes that a job would take were all of these idle."""
    return nodes.select(world, job.request, among, [], {}, counts, ever=True)


def why_not(
    world: World,
    job: Job,
    field: Field,
    counts: tuple[int, int, int],
    verdict: reservations.Verdict,
) -> tuple[str, dict[int, int] | None]:
    """Why a job does not fit on open nodes, and the nodes that it would take were all nodes open and idle."""
    possible = would_fit(world, job, field.everything, counts)
    if possible is None:
        return NEVER, None
    if field.free != field.present:
        return BUSY, possible
    return MAINTENANCE if verdict.maintenance else NOT_AVAILABLE, possible


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


def start_one(
    world: World,
    job: Job,
    partition: sites.Partition,
    open_nodes: set[int],
    outcome: Outcome,
    excluded_nodes: set[int] | None = None,
) -> tuple[str, Job, Job | None]:
    """Tries to start a job, or the first waiting task of an array.

    Returns what came of it, the record that was tried (the array's own if its task did not start), and the record of
    the tasks that still wait after a start.
    """
    task = arrays.split(world, job) if job.is_head else job
    code = start_now(world, task, partition, open_nodes, outcome, excluded_nodes)
    if task is job:
        return code, job, None
    if code != STARTED:
        arrays.join(world, job, task)
        return code, job, None
    arrays.commit(world, job, task)
    left = job if job.state == PENDING and task.number != job.number else None
    return code, task, left


def main_pass(world: World, full: bool) -> Outcome:
    """One pass of the main scheduler [`_schedule`]. It knows nothing of the plans of backfill.

    - Entries of a stopped partition are skipped.
    - A job stops its partition if fewer nodes are open there than it needs, or if it does not fit now. The nodes of
      the partition are then closed for all entries that follow in this pass.
    - A job that names all its nodes closes only these.
    - A job in a reservation that does not fit stops the reservation.
    - A job that a limit, licences or reservations forbid is skipped, and the next is looked at.
    - With sched/builtin and priority/basic and equal tiers, the queue is the list of jobs in order of submission.
    """
    entries = queue(world)
    if fifo(world):
        entries.sort(key=lambda entry: entry.job.sequence)
    state = MainPass(world, full, {node.index for node in world.site.nodes} - world.closed)
    for entry in entries:
        job: Job | None = entry.job
        if entry.job.state != PENDING or entry.job.in_progress:
            continue
        while job is not None:
            job = state.look_at(job, entry.partition)
        if state.over:
            break
    return state.outcome


def fifo(world: World) -> bool:
    """True if the list of jobs itself is the queue."""
    tiers = {partition.tier for partition in world.site.partitions.values()}
    return (
        world.site.setting("SchedulerType") == "sched/builtin"
        and world.site.setting("PriorityType", "priority/basic") == "priority/basic"
        and len(tiers) == 1
    )


@dataclass
class MainPass:
    """What one main pass keeps."""

    world: World
    full: bool
    open_nodes: set[int]
    outcome: Outcome = field(default_factory=Outcome)
    stopped: set[str] = field(default_factory=set)
    stopped_reservations: set[str] = field(default_factory=set)
    rejected: tuple[int, str] | None = None
    looked_at: int = 0
    over: bool = False

    def look_at(self, job: Job, partition: sites.Partition) -> Job | None:
        """Looks at one entry. Returns the record of the tasks that still wait if a task of an array was started.

        An array of which a task did not start is not looked at again in the same partition. A quick pass is over after
        default_queue_depth (100) entries.
        """
        world = self.world
        depth = int(world.site.scheduler.get("default_queue_depth", "100"))
        self.looked_at += 1
        if job.array and self.rejected == (job.array, partition.name):
            return None
        if self.looked_at > depth + 1 and not self.full:
            self.over = True
            return None
        enter_partition(world, job, partition)
        if (not job.array or arrays.may_start(world, job)) and self.skipped(job, partition):
            return None
        following = (
            self.try_to_start(job, partition) if may_be_tried(world, job, partition) else None
        )
        if following is not None or job.state != PENDING:
            self.rejected = None
        elif job.array:
            self.rejected = (job.array, partition.name)
        return following

    def skipped(self, job: Job, partition: sites.Partition) -> bool:
        """True if the reservation of a job, or else its partition, has been stopped in this pass."""
        if job.reservation:
            if job.reservation in self.stopped_reservations:
                job.reason = "Priority"
                return True
            return False
        if partition.name not in self.stopped:
            return False
        if job.reason in ("None", "Resources", DOWN_TEXT):
            job.reason = "Priority"
        return True

    def try_to_start(self, job: Job, partition: sites.Partition) -> Job | None:
        """Starts a job, or stops what it stops. Returns the record of the tasks that still wait after a start."""
        world = self.world
        if job.request.minimum_nodes > len(self.open_nodes & set(partition.nodes)):
            job.reason = DOWN_TEXT
            self.stop(job, partition)
            return None
        if not world.licenses_fit(job):
            job.reason = "Licenses"
            return None
        verdict, tried, following = start_one(world, job, partition, self.open_nodes, self.outcome)
        if verdict == STARTED:
            return following
        set_reason(world, tried, partition, verdict, self.open_nodes)
        if verdict in (RESERVED, MAINTENANCE) and job.reservation:
            self.open_nodes -= reservations.nodes_of(world, job.reservation)
        if verdict == BUSY:
            self.stop(job, partition)
        elif names_all_nodes(job):
            self.open_nodes -= indices(world, job.request.required_nodes)
        return None

    def stop(self, job: Job, partition: sites.Partition) -> None:
        """Stops the nodes that a job names, if it names all; else its reservation, or its partition with all nodes."""
        if names_all_nodes(job):
            self.open_nodes -= indices(self.world, job.request.required_nodes)
        elif job.reservation:
            self.stopped_reservations.add(job.reservation)
        elif partition.name not in self.stopped:
            self.stopped.add(partition.name)
            self.open_nodes -= set(partition.nodes)


def names_all_nodes(job: Job) -> bool:
    """True if a job names as many nodes as it needs."""
    named = job.request.required_nodes
    return bool(named) and len(named) >= job.request.minimum_nodes


def may_be_tried(world: World, job: Job, partition: sites.Partition) -> bool:
    """False if the limit of tasks of an array, or a limit on numbers of jobs or on time, forbids a start now."""
    if job.array and not arrays.may_start(world, job):
        return False
    return limits.holds_reason(job) or limits.before_nodes(world, job, partition)


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


@dataclass
class Cycle:
    """What one cycle of backfill keeps."""

    world: World
    now: int
    resolution: int
    window: int
    window_end: int
    plan_map: PlanMap
    outcome: Outcome

    def candidates(
        self, job: Job, partition: sites.Partition, verdict: reservations.Verdict, minutes: int
    ) -> tuple[set[int], int]:
        """The nodes that are planned for no job while the job would run, and when to look again (0: not at all).

        The job would run from `verdict.start`; a segment of the map counts if it ends after that and begins not after
        the end of the job. The next look is at the end of the first segment that ends after the start and is followed
        by one with a node which is not among those left so far. If a reservation took nodes away, it is at most one
        second after its next end.
        """
        world, start = self.world, verdict.start
        end = minutes * 60 + max(start, self.now)
        base = (verdict.nodes & set(partition.nodes)) - world.closed - owned_by_others(world, job)
        left = set(base)
        later = 0
        segments = self.plan_map.segments
        for segment, following in zip(segments, [*segments[1:], None], strict=True):
            if segment.end <= start:
                continue
            if following and not later and not (base & following.nodes) <= (left & segment.nodes):
                later = segment.end
            if segment.begin > end:
                break
            left &= segment.nodes
        if verdict.overlap:
            after = reservations.next_end(world, start, self.resolution)
            if after and after + 1 < self.window_end and (later == 0 or after + 1 < later):
                later = after + 1
        left -= indices(world, job.request.excluded_nodes)
        return fitting_features(world, job, left), later

    def start(
        self, job: Job, partition: sites.Partition, candidates: set[int]
    ) -> tuple[str, Job, Job | None]:
        """Starts a job on these nodes. An exclusive job that starts stays in the map; licences split it."""
        world = self.world
        others = set(range(len(world.site.nodes))) - candidates
        open_nodes = set(partition.nodes) - world.closed
        code, job, following = start_one(world, job, partition, open_nodes, self.outcome, others)
        if code == STARTED:
            if job.whole or job.request.licenses:
                taken = job.nodes if job.whole else frozenset()
                self.plan_map.book(
                    0, job.end // self.resolution * self.resolution, taken, self.resolution
                )
            return code, job, following
        everywhere = set(range(len(world.site.nodes))) - world.closed
        set_reason(world, job, partition, code, everywhere)
        return code, job, following

    def occupied(self, job: Job, chosen: dict[int, int], minutes: int) -> bool:
        """True if some of the nodes are planned for another in the time of a plan that does not begin now."""
        begin, finish = self.booking(job.planned, minutes)
        return job.planned > self.now and self.plan_map.overlaps(frozenset(chosen), begin, finish)

    def plan(
        self,
        job: Job,
        partition: sites.Partition,
        chosen: dict[int, int],
        minutes: int,
        original: int,
    ) -> None:
        """Books the nodes whole. A job keeps the earliest of its plans in several partitions."""
        begin, finish = self.booking(job.planned, minutes)
        names = self.world.site.node_list(set(chosen))
        self.outcome.plans.append(Plan(job.number, job.planned, finish, names, partition.name))
        if original == 0 or job.planned < original:
            job.planned_nodes = names
        self.plan_map.book(begin, finish, frozenset(chosen), self.resolution)
        dump(self.world, self.plan_map, self.outcome)
        if original and original < job.planned:
            job.planned = original

    def booking(self, start: int, minutes: int) -> tuple[int, int]:
        """Begin and end of a plan in the map: both rounded down to the resolution, at least one step long."""
        begin = start // self.resolution * self.resolution
        finish = (start + minutes * 60) // self.resolution * self.resolution
        return begin, max(finish, begin + self.resolution)


def backfill_pass(world: World) -> Outcome:
    """One cycle of backfill [`_attempt_backfill`]."""
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
    cycle = Cycle(world, now, resolution, window, window_end, plan_map, outcome)
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
            verdict, following = backfill_entry(cycle, job, entry, original)
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

    Jobs in order of the queue: the earliest start next to the running jobs. If the nodes were already given to an
    earlier job and that start is not after its end, then that end.
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


def backfill_entry(cycle: Cycle, job: Job, entry: Entry, original: int) -> tuple[str, Job | None]:
    """One entry of a cycle: it starts now, or is planned, or neither.

    The job is tried from now; where that fails or would take nodes planned for another, it is tried again from the
    next instant at which more nodes are free (`later`).
    """
    world, partition = cycle.world, entry.partition
    cycle.outcome.tests.append(
        Test(job.number, entry.priority, partition.name, job.reservation or "NONE")
    )
    counts = node_counts(world, job, partition) if world.licenses_fit(job) else None
    if counts is None:
        return POLICY, None
    minutes = time_limit(job, partition)
    later = cycle.now
    while True:
        verdict = reservations.usable_nodes(world, job, later, True, minutes)
        if verdict.refused:
            return RESERVED, None
        start = verdict.start
        if cycle.window_end < start:
            return "too late", None
        candidates, later = cycle.candidates(job, partition, verdict, minutes)
        found = None
        if (
            len(candidates) >= counts[0]
            and indices(world, job.request.required_nodes) <= candidates
        ):
            cycle.outcome.tries.append(Try(job.number, start, world.site.node_list(candidates)))
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
        if job.planned <= cycle.now and set(chosen) & world.completing_nodes():
            job.planned = cycle.now + 1
            later = 0
        elif job.planned <= cycle.now:
            code, job, following = cycle.start(job, partition, candidates)
            if code == STARTED:
                return STARTED, following
            if code in (RESERVED, MAINTENANCE, POLICY):
                job.planned = original
                return POLICY, None
            later = 0
        if later and job.planned > later:
            job.planned = 0
            continue
        if job.planned > cycle.now + cycle.window:
            return "too late", None
        if cycle.occupied(job, chosen, minutes):
            later = job.planned
            job.planned = 0
            continue
        if not limits.after_nodes(world, job, partition, None, len(chosen)):
            return POLICY, None
        cycle.plan(job, partition, chosen, minutes, original)
        return "planned", None
