"""Which nodes a job takes: select/cons_tres without topology.

Source: behaviour of select/cons_tres of 22.05.8 (`_job_test`, `_select_nodes`, `_eval_nodes`, `_will_run_test`),
fitted against the recordings.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.policies.slurm_oracle import requests
from tests.policies.slurm_oracle import site as sites
from tests.policies.slurm_oracle.world import Job, World

ENDS_TOGETHER = 30
KILL_WAIT = 30


@dataclass
class Room:
    """What is free on one node for one job."""

    cores: frozenset[int]
    memory: int
    gpus: int
    holders: list[Job]


Excluded = dict[int, frozenset[int]]


def rooms(world: World, holders: list[Job], excluded: Excluded) -> dict[int, Room]:
    """The free cores, memory and GPUs of every node while these jobs hold theirs."""
    result = {}
    for node in world.site.nodes:
        here = [job for job in holders if node.index in job.cores]
        used = frozenset().union(*(job.cores[node.index] for job in here)) if here else frozenset()
        result[node.index] = Room(
            frozenset(range(node.cpus)) - used - excluded.get(node.index, frozenset()),
            node.memory - sum(job.memory.get(node.index, 0) for job in here),
            node.gpus - sum(job.gpus.get(node.index, 0) for job in here),
            here,
        )
    return result


def needed_memory(request: requests.Request) -> int:
    """The least memory that a node must have free: per node, or per processor times the processors of a node."""
    if request.memory_per_cpu is not None:
        return request.memory_per_cpu * max(request.tasks_per_node, request.cpus_on_node)
    return request.memory_per_node or 0


def usable(
    node: sites.Node, room: Room, request: requests.Request, world: World, ever: bool
) -> bool:
    """The first test of a node: memory, GPUs and exclusive use, before its cores are counted [`_verify_node_state`]."""
    if ever:
        return True
    if world.site.counts_memory:
        if request.all_memory:
            if room.memory < node.memory:
                return False
        elif room.memory < needed_memory(request):
            return False
    if request.exclusive and (room.gpus < node.gpus or room.holders):
        return False
    if any(job.whole for job in room.holders):
        return False
    if request.gpus_per_node and room.gpus < request.gpus_per_node:
        return False
    return not ((request.gpus_per_job or request.gpus_per_task) and room.gpus < 1)


def processors(
    node: sites.Node, room: Room, request: requests.Request, world: World, ever: bool
) -> int:
    """How many processors of a node the job can use; 0 if it cannot use the node [`_can_job_run_on_node`].

    All free processors count, even if fewer tasks per node are asked for. The tasks per node must fit; where one node
    is the greatest number, all tasks must fit. A job that asks for GPUs, with known tasks on a node, counts only
    the processors of these tasks [`gres_select_filter_sock_core`].
    """
    count = node.cpus if ever else len(room.cores)
    if count < request.cpus_on_node or count < 1:
        return 0
    tasks = request.tasks_per_node
    if not tasks:
        tasks = request.tasks if request.maximum_nodes == 1 else 1
    if count < tasks * request.cpus_per_task:
        return 0
    if world.site.counts_memory:
        memory = node.memory if ever else room.memory
        if request.memory_per_cpu is not None:
            if request.exclusive and count * request.memory_per_cpu > memory:
                return 0
            while count > 0 and count * request.memory_per_cpu > memory:
                count -= 1
            count -= count % request.cpus_per_task
            if count < request.tasks_per_node:
                return 0
        elif request.memory_per_node and request.memory_per_node > memory:
            return 0
    gpus = node.gpus if ever else room.gpus
    if request.gpus_per_node and gpus < request.gpus_per_node:
        return 0
    if (request.gpus_per_job or request.gpus_per_task) and gpus < 1:
        return 0
    if count // request.cpus_per_task < tasks:
        return 0
    wants_gpus = request.gpus_per_node or request.gpus_per_job or request.gpus_per_task
    if (
        wants_gpus
        and not request.exclusive
        and (request.tasks_per_node or request.maximum_nodes == 1)
    ):
        count = tasks * request.cpus_per_task
    elif wants_gpus and request.tasks == 1:
        count = request.cpus_per_task
    return count


def select(
    world: World,
    request: requests.Request,
    candidates: set[int],
    holders: list[Job],
    excluded: Excluded,
    counts: tuple[int, int, int],
    ever: bool = False,
) -> dict[int, int] | None:
    """The nodes that a job takes of these, with its processors on each; None if it does not fit.

    `counts` are the least, the greatest and the desired number of nodes. `ever` ignores what other jobs hold.
    """
    free = rooms(world, [] if ever else holders, {} if ever else excluded)
    return choose(world, request, candidates, free, counts, ever)


def choose(
    world: World,
    request: requests.Request,
    candidates: set[int],
    free: dict[int, Room],
    counts: tuple[int, int, int],
    ever: bool = False,
) -> dict[int, int] | None:
    """`select` with what is free on each node given [`_select_nodes`, `_choose_nodes`].

    If the nodes do not suffice as a whole, those with the fewest processors are taken out step by step.
    """
    least, most, desired = counts
    amounts: dict[int, int] = {}
    for index in sorted(candidates):
        node = world.site.nodes[index]
        if usable(node, free[index], request, world, ever):
            note_gpus(world, request, node, free[index], ever)
            count = processors(node, free[index], request, world, ever)
            if count > 0:
                amounts[index] = count
    required = {node.index for node in world.site.nodes if node.name in request.required_nodes}
    if len(amounts) < least or not required <= set(amounts):
        return None
    if request.tasks_per_node and request.tasks:
        least = max(least, -(-request.tasks // request.tasks_per_node))
    if request.tasks and most > request.tasks:
        most = max(request.tasks, least)
    gpus = {
        index: (world.site.nodes[index].gpus if ever else free[index].gpus) for index in amounts
    }
    wants_gpus = bool(request.gpus_per_node or request.gpus_per_job or request.gpus_per_task)
    totals = {index: amounts[index] + (gpus[index] if wants_gpus else 0) for index in amounts}
    found = evaluate(world, request, amounts, set(amounts), gpus, required, (least, most, desired))
    if found is not None:
        return found
    remaining = set(amounts)
    if len(remaining) <= least:
        return evaluate(
            world, request, amounts, set(remaining), gpus, required, (least, most, desired)
        )
    for count in range(1, max(totals.values(), default=0)):
        small = [
            index for index in sorted(remaining) if totals[index] <= count and index not in required
        ]
        for index in small:
            remaining.discard(index)
            if len(remaining) <= least:
                break
        if not small and count != 1:
            continue
        found = evaluate(
            world, request, amounts, set(remaining), gpus, required, (least, most, desired)
        )
        if found is not None:
            return found
        if len(remaining) <= least:
            return None
    return None


def note_gpus(
    world: World, request: requests.Request, node: sites.Node, room: Room, ever: bool
) -> None:
    """Among nodes of one weight those with more free GPUs come first for a job that asks for GPUs.

    The node keeps this order for the jobs that are tried next, until the main scheduler or a start tries a job on it
    [`sched_weight` in `can_job_run_on_node`, `_sync_node_weight`].
    """
    if request.gpus_per_node or request.gpus_per_job or request.gpus_per_task:
        world.weights[node.index] = (node.weight, 255 - (node.gpus if ever else room.gpus))


def forget_gpus(world: World, among: set[int]) -> None:
    """Sets the order of these nodes back to their weights."""
    for index in among:
        world.weights[index] = (world.site.nodes[index].weight, 255)


def prefer(world: World, among: set[int]) -> None:
    """Puts these nodes before all others [`_find_grp_node_bitmap`]."""
    for index in among:
        world.weights[index] = (-1, 255)


@dataclass
class Group:
    """Neighbouring nodes of one weight."""

    members: list[int]
    cpus: int
    gpus: int
    weight: tuple[int, int]
    required: int | None


def groups_of(
    world: World, amounts: dict[int, int], gpus: dict[int, int], required: set[int]
) -> list[Group]:
    """Runs of usable neighbours of equal weight, in the order of the file."""
    result: list[Group] = []
    open_group = False
    for node in world.site.nodes:
        if node.index not in amounts:
            open_group = False
            continue
        if not open_group or result[-1].weight != world.weights[node.index]:
            result.append(Group([], 0, 0, world.weights[node.index], None))
            open_group = True
        group = result[-1]
        if node.index in required:
            if group.required is None:
                group.required = node.index
            continue
        group.members.append(node.index)
        group.cpus += amounts[node.index]
        group.gpus += gpus[node.index]
    return [group for group in result if group.members]


def evaluate(
    world: World,
    request: requests.Request,
    all_amounts: dict[int, int],
    among: set[int],
    gpus: dict[int, int],
    required: set[int],
    counts: tuple[int, int, int],
) -> dict[int, int] | None:
    """Best fit over runs of neighbours [`_eval_nodes`].

    1. The required nodes come first.
    2. Of the runs, one with a required node wins, then the lowest weight. Then one that suffices wins, of these the
       one with the fewest processors. Of those that do not suffice it is the one with the most.
    3. If one more node is enough, the node of the run with the fewest processors that suffice is taken (file order if
       equal). Else the nodes of the run are taken in the order of the file.
    4. If that is not enough, the next run is chosen.

    The processors taken of a node leave at least one for each node that is still to come. What was taken in a try that
    failed stays the amount of that node in the next try.
    """
    least = counts[0]
    amounts = {index: all_amounts[index] for index in among}
    if len(amounts) < least:
        return None
    if request.spread:
        return _spread(world, request, amounts, counts)
    fit = BestFit(request, all_amounts, amounts, gpus, counts)
    for index in sorted(required):
        if fit.most <= 0:
            return None
        fit.take(index)
    if required and fit.satisfied():
        return fit.taken
    if required and fit.most <= 0:
        return None
    groups = groups_of(world, amounts, gpus, required)
    while groups and fit.most > 0:
        best = fit.best_of(groups)
        for index in fit.order_in(best):
            if fit.most == 0 or fit.satisfied():
                break
            if best.required is None and fit.most == 1 and amounts[index] < fit.rest_cpus:
                continue
            fit.take(index)
        if fit.satisfied():
            return fit.taken
        groups.remove(best)
    if fit.rest_cpus <= 0 and (not fit.per_job or fit.rest_gpus <= 0) and fit.nodes_needed() <= 0:
        return fit.taken
    return None


class BestFit:
    """What is still wanted while nodes are taken."""

    def __init__(
        self,
        request: requests.Request,
        all_amounts: dict[int, int],
        amounts: dict[int, int],
        gpus: dict[int, int],
        counts: tuple[int, int, int],
    ) -> None:
        self.request, self.all_amounts, self.amounts, self.gpus = (
            request,
            all_amounts,
            amounts,
            gpus,
        )
        self.least, self.most, self.desired = counts
        self.per_job = bool(request.gpus_per_job or request.gpus_per_task)
        self.rest_gpus = request.gpus_per_job or request.gpus_per_task * request.tasks
        self.rest_cpus = self.rest_most = request.minimum_cpus
        self.rest_nodes = (
            min(self.least, self.desired) if self.per_job else max(self.least, self.desired)
        )
        self.rest_least = self.least
        self.taken: dict[int, int] = {}

    def take(self, index: int) -> None:
        """Takes processors of a node: all, but for one for each node to come, and no less than it must have."""
        request = self.request
        count = self.amounts[index]
        if not request.exclusive:
            limit = self.rest_most - max(self.rest_least - 1, 0)
            if count > limit:
                count = max(limit, request.cpus_on_node)
            if request.gpus_per_task:
                count = min(
                    count, self.gpus[index] // request.gpus_per_task * request.cpus_per_task
                )
        self.taken[index] = count
        self.all_amounts[index] = count
        self.rest_cpus -= count
        self.rest_most -= count
        self.rest_nodes -= 1
        self.rest_least -= 1
        self.most -= 1
        self.rest_gpus -= self.gpus[index]

    def satisfied(self) -> bool:
        """True if nothing more is wanted."""
        return (
            self.rest_nodes <= 0
            and self.rest_cpus <= 0
            and (not self.per_job or self.rest_gpus <= 0)
        )

    def nodes_needed(self) -> int:
        """How many nodes are needed at least, not counting those that are only desired."""
        return (
            self.rest_nodes + self.least - self.desired
            if self.desired > self.least
            else self.rest_nodes
        )

    def enough(self, group: Group) -> bool:
        """True if a run can serve all that is still wanted."""
        if self.per_job and group.gpus < self.rest_gpus:
            return False
        return group.cpus >= self.rest_cpus and len(group.members) >= self.nodes_needed()

    def best_of(self, groups: list[Group]) -> Group:
        """The best run; of equal ones the first."""
        best, best_enough = groups[0], self.enough(groups[0])
        for group in groups[1:]:
            enough = self.enough(group)
            fitter = (
                (enough and not best_enough)
                or (enough and group.cpus < best.cpus)
                or (not enough and group.cpus > best.cpus)
            )
            if (
                (best.required is None and group.required is not None)
                or group.weight < best.weight
                or (group.weight == best.weight and fitter)
            ):
                best, best_enough = group, enough
        return best

    def order_in(self, group: Group) -> list[int]:
        """The order in which the nodes of a run are taken: outwards from a required node; or the one that suffices."""
        order = list(group.members)
        if group.required is not None:
            first = group.required
            return [i for i in order if i > first] + [i for i in reversed(order) if i < first]
        if self.rest_nodes > 1:
            return order
        sufficient = [
            index
            for index in order
            if self.amounts[index] >= self.rest_cpus
            and (not self.per_job or self.gpus[index] >= self.rest_gpus)
        ]
        return [min(sufficient, key=lambda index: self.amounts[index])] if sufficient else order


def _spread(
    world: World, request: requests.Request, amounts: dict[int, int], counts: tuple[int, int, int]
) -> dict[int, int] | None:
    """--spread-job: nodes by weight, then file order, as many as asked [`_eval_nodes_spread`]."""
    least, most, desired = counts
    most = min(most, request.tasks) if request.tasks else most
    rest_cpus, rest_nodes, rest_least, rest_most = (
        request.minimum_cpus,
        max(least, desired),
        least,
        request.minimum_cpus,
    )
    taken: dict[int, int] = {}
    for index in sorted(amounts, key=lambda i: (world.weights[i], i)):
        if most <= 0:
            break
        limit = rest_most - max(rest_least - 1, 0)
        count = amounts[index] if amounts[index] <= limit else max(limit, request.cpus_on_node)
        taken[index] = count
        rest_cpus -= count
        rest_most -= count
        rest_nodes -= 1
        rest_least -= 1
        most -= 1
        if rest_nodes <= 0 and rest_cpus <= 0:
            return taken
    return taken if rest_cpus <= 0 and rest_least <= 0 else None


def earliest(
    world: World,
    job: Job,
    candidates: set[int],
    excluded: Excluded,
    counts: tuple[int, int, int],
    gone: list[Job] | None = None,
    now_only: bool = False,
) -> tuple[int, dict[int, int]] | None:
    """When and where a job can start if running jobs end at their limits [`_will_run_test`].

    `gone` are jobs that the job may preempt: it starts now if it fits without them.

    The ends of running jobs that share a candidate node are sorted. They are taken away in windows. The first window
    ends `w` after the first end rounded up to 30 s (a whole one if it is a multiple), with w = 30 s. Each further
    window doubles w. After each window the job is tried. The start is the end of the last job that was taken away.
    """
    from tests.policies.slurm_oracle import gang

    holders = world.running()
    chosen = gang.job_test(world, job, candidates, holders, excluded, counts)
    if chosen is not None:
        return world.second, chosen
    if gone:
        holders = [job for job in holders if job not in gone]
        chosen = gang.job_test(world, job, candidates, holders, excluded, counts)
        if chosen is not None:
            return world.second, chosen
    if now_only:
        return None
    queue = sorted(holders, key=lambda other: other.end)
    window = ENDS_TOGETHER
    base = 0
    position = 0
    more = True
    while more:
        last: Job | None = None
        following: Job | None = None
        while True:
            if position >= len(queue):
                more = False
                break
            ending = queue[position]
            position += 1
            if not (ending.nodes & candidates):
                continue
            if not base:
                base = ending.end + (ENDS_TOGETHER - ending.end % ENDS_TOGETHER)
            last = ending
            holders = [other for other in holders if other is not ending]
            following = queue[position] if position < len(queue) else None
            if following is None:
                more = False
                break
            if following.end > base + window:
                break
        if last is None:
            break
        window *= 2
        while following is not None and following.end > base + window:
            window *= 2
        chosen = gang.job_test(world, job, candidates, holders, excluded, counts)
        if chosen is not None:
            when = last.end if last.end > world.second else guessed_end(last, world.second)
            return when, chosen
    return None


def guessed_end(job: Job, now: int) -> int:
    """When a job past its limit is expected to end: its limit + KillWait, at least the next second."""
    return max(job.end + KILL_WAIT, now + 1)


def allocate(world: World, job: Job, chosen: dict[int, int]) -> None:
    """Gives a job its cores (the lowest free ones of those it was chosen from), memory and GPUs."""
    request = job.request
    free = world.rooms
    job.cores, job.memory, job.gpus = {}, {}, {}
    rest_gpus = request.gpus_per_job or request.gpus_per_task * request.tasks
    shares = distribute(request, chosen)
    for index in chosen:
        node = world.site.nodes[index]
        cores = sorted(free[index].cores)
        job.cores[index] = frozenset(
            range(node.cpus) if request.exclusive else cores[: shares[index]]
        )
        if world.site.counts_memory:
            if request.all_memory:
                job.memory[index] = node.memory
            elif request.memory_per_cpu is not None:
                job.memory[index] = request.memory_per_cpu * len(job.cores[index])
            else:
                job.memory[index] = request.memory_per_node or 0
        if request.exclusive:
            job.gpus[index] = node.gpus
        elif rest_gpus:
            here = min(rest_gpus, free[index].gpus)
            job.gpus[index] = here
            rest_gpus -= here
        else:
            job.gpus[index] = request.gpus_per_node
    job.cpus = sum(len(cores) for cores in job.cores.values())


def distribute(request: requests.Request, chosen: dict[int, int]) -> dict[int, int]:
    """The processors of a job on each node: tasks go round the nodes, as far as each has processors left for it.

    With tasks per node each node gets exactly these [`dist_tasks_compute_c_b`].
    """
    if request.tasks_per_node:
        return dict.fromkeys(chosen, request.tasks_per_node * request.cpus_per_task)
    shares = dict.fromkeys(sorted(chosen), 0)
    left = request.tasks
    while left > 0:
        before = left
        for index in shares:
            if left > 0 and shares[index] + request.cpus_per_task <= chosen[index]:
                shares[index] += request.cpus_per_task
                left -= 1
        if left == before:
            break
    return shares
