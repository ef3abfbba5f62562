"""Arrays: one record stands for all tasks that wait; each started task gets a record of its own.

Source: behaviour of `job_array_start_test`, `job_array_post_sched` and of the loop over tasks in both passes.
"""

from __future__ import annotations

import copy
import re

from tests.policies.slurm_oracle.world import RUNNING, SUSPENDED, Job, World

PLANS_PER_ARRAY = 20
TASKS_TO_SPLIT = 10


def tasks_of(text: str) -> tuple[list[int], int]:
    """--array=0-9%3 or 1-7:2 as task numbers and the greatest number that may run at once (0 = any)."""
    body, _, limit = text.partition("%")
    tasks: list[int] = []
    for item in body.split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?(?::(\d+))?", item)
        assert match, text
        first, last = int(match[1]), int(match[2] or match[1])
        tasks.extend(range(first, last + 1, int(match[3] or "1")))
    return sorted(tasks), int(limit or "0")


def running_tasks(world: World, array: int) -> int:
    """How many tasks of an array run."""
    return sum(
        1 for job in world.jobs.values() if job.array == array and job.state in (RUNNING, SUSPENDED)
    )


def task_limit(world: World, job: Job) -> int:
    """The limit of tasks at once of the array of a job; its first record keeps it."""
    head = world.jobs.get(job.array)
    return head.task_limit if head else job.task_limit


def may_start(world: World, job: Job) -> bool:
    """False while as many tasks run as the array allows; sets the reason."""
    limit = task_limit(world, job)
    if limit and running_tasks(world, job.array) >= limit:
        job.reason = "JobArrayTaskLimit"
        return False
    if job.reason == "JobArrayTaskLimit":
        job.reason = "None"
    return True


def split(world: World, head: Job) -> Job:
    """A record for the first waiting task, not yet in the world."""
    task = copy.copy(head)
    task.partition_priority = dict(head.partition_priority)
    task.task = head.waiting_tasks[0]
    task.waiting_tasks = []
    task.number = world.task_numbers.get((head.array, task.task), head.number)
    return task


def commit(world: World, head: Job, task: Job) -> None:
    """Puts a split task into the world. The last task takes over the record of the array.

    The task keeps the place of the array in the list of jobs; the record of the tasks that still wait goes to its end.
    """
    head.waiting_tasks = head.waiting_tasks[1:]
    if task.number == head.number:
        world.jobs[head.number] = task
        return
    world.jobs[task.number] = task
    world.last_sequence += 1
    head.sequence = world.last_sequence
    head.planned = 0
    if len(head.waiting_tasks) == 1:
        head.task = head.waiting_tasks[0]
        head.waiting_tasks = []


def join(world: World, head: Job, task: Job) -> None:
    """A task that did not start goes back; its reason becomes that of the array."""
    head.reason = task.reason
    head.planned = task.planned


def enough_planned(world: World, head: Job, count: int) -> bool:
    """True if backfill plans no further task of an array: 20 are planned, or all, or as many as may run at once."""
    limit = head.task_limit
    running = running_tasks(world, head.array)
    if count == 0:
        return bool(limit and running >= limit)
    return (
        count >= PLANS_PER_ARRAY
        or count >= len(head.waiting_tasks)
        or bool(limit and count + running >= limit)
    )


def split_for_correspondence(world: World) -> None:
    """An array that waits for the tasks of another (aftercorr) gets a record for each task but the last.

    This happens when a queue is built, for at most ten tasks [`build_job_queue`].
    """
    for head in world.pending():
        if not head.is_head or "aftercorr" not in (head.request.dependency or ""):
            continue
        waiting = head.waiting_tasks
        for _ in range(min(len(waiting) - 1, TASKS_TO_SPLIT)):
            commit(world, head, split(world, head))
