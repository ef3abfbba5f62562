"""When a waiting job may be looked at: holds, begin times and dependencies.

Source: behaviour of `job_independent` and `test_job_dependency`; sbatch(1).
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from tests.policies.slurm_oracle.world import (
    COMPLETING,
    DONE,
    PENDING,
    RUNNING,
    SUSPENDED,
    Job,
    World,
)


def eligible(world: World, job: Job) -> bool:
    """True if a job is not held, its begin time has come and its dependencies are met; sets the reason if not."""
    if job.held or (job.priority == 0 and not job.partition_priority):
        return False
    if job.begin > world.second:
        job.reason = "BeginTime"
        return False
    if job.request.dependency and not job.independent:
        state = dependency_state(world, job, job.request.dependency)
        if state == "met":
            job.independent = True
        else:
            job.reason = "DependencyNeverSatisfied" if state == "failed" else "Dependency"
            if state == "failed" and job.request.kill_on_invalid_dependency:
                job.state = DONE
            return False
    if job.reason in ("BeginTime", "Dependency"):
        job.reason = "None"
    return True


def finished(world: World, job: Job) -> bool:
    """True if a job has ended and its nodes are clean."""
    return job.state == DONE or (job.state == COMPLETING and world.now >= job.released)


def dependency_state(world: World, job: Job, text: str) -> str:
    """met, failed or waiting. Terms joined by ? need one of them, joined by a comma all."""
    separator = "?" if "?" in text else ","
    states = []
    for term in text.split(separator):
        kind, _, rest = term.partition(":")
        if kind == "singleton":
            states.append(singleton_state(world, job))
            continue
        states.extend(term_state(world, job, kind, item) for item in rest.split(":"))
    if separator == "?":
        if "met" in states:
            return "met"
        return "failed" if all(state == "failed" for state in states) else "waiting"
    if "failed" in states:
        return "failed"
    return "met" if all(state == "met" for state in states) else "waiting"


def term_state(world: World, job: Job, kind: str, item: str) -> str:
    """One job of a dependency such as afterok:12 or after:12+5. An unknown job counts as met."""
    match = re.fullmatch(r"(\d+)(?:_(\d+))?(?:\+(\d+))?", item)
    assert match, item
    number, delay = int(match[1]), int(match[3] or "0")
    group = [
        other for other in world.jobs.values() if other.number == number or other.array == number
    ]
    if not group:
        return "met"
    if kind == "aftercorr":
        group = [other for other in group if other.task == job.task]
        if not group or job.task is None:
            return "waiting"
    if kind == "after":
        begun = all(
            other.state != PENDING and other.start + delay * 60 <= world.second for other in group
        )
        return "met" if begun else "waiting"
    if not all(finished(world, other) for other in group) or any(other.is_head for other in group):
        return "waiting"
    good = all(other.exit_code == 0 for other in group)
    if kind == "afterany":
        return "met"
    if kind in ("afterok", "aftercorr"):
        return "met" if good else "failed"
    return "failed" if good else "met"


def singleton_state(world: World, job: Job) -> str:
    """Met if no job of the same user and name runs, and none with a smaller number waits."""
    for other in world.jobs.values():
        if other is job or (other.request.user, other.request.name) != (
            job.request.user,
            job.request.name,
        ):
            continue
        if other.state in (RUNNING, SUSPENDED) or (
            other.state == PENDING and other.number < job.number
        ):
            return "waiting"
    return "met"


def begin_second(text: str, now: int) -> int:
    """--begin=now+45, now+1minute or an ISO time in epoch seconds."""
    match = re.fullmatch(r"now(?:\+(\d+)(second|minute|hour|day)?s?)?", text)
    if match:
        unit = {None: 1, "second": 1, "minute": 60, "hour": 3600, "day": 86400}[match[2]]
        return now + int(match[1] or "0") * unit
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())
