"""The checks of an action: job state, capacity, memory, hosts, promises.

A check changes nothing.  It raises ``DecisionError`` with the action, the instant, and the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from qbatch.engine.cluster import Cluster
from qbatch.engine.states import CODES, NEXT, STATES, State
from qbatch.model.actions import (
    Action,
    Allocation,
    Break,
    Promise,
    Reject,
    Resize,
    Resume,
    Start,
    Suspend,
    WakeAt,
    is_on_one_host,
    parts_of,
    procs_of,
    ranges_of,
)
from qbatch.model.errors import DecisionError
from qbatch.model.job import Job
from qbatch.model.reasons import Reason
from qbatch.planning.placement import divides
from qbatch.planning.requests import can_share_one_host, requested
from qbatch.planning.windows import blocked_hosts

_QUEUED = CODES[State.QUEUED]

_Answer = TypeVar("_Answer")


def _row(cluster: Cluster, action: Any, now: int) -> int:
    """Return the row of an action: that of a job, and not of one that only closed hosts could
    hold."""
    row: int = action.row
    if type(row) is not int:
        _whole(action, now, row=row)
    if not 0 <= row < len(cluster.jobs):
        raise _refused(action, now, f"there is no row {row}")
    if cluster.closed and row in cluster.parked:
        raise _refused(action, now, "the hosts that could hold it are closed")
    return row


def _whole(action: Action, now: int, **values: object) -> None:
    for name, value in values.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise _refused(action, now, f"its {name} is {value!r}, not a whole number")


def answer(found: Any, kind: type[_Answer], policy: str) -> _Answer:
    """Return a policy's answer (a reason, a quote), which goes over sockets and into records.

    Raises:
        DecisionError: it has another type, or contains something other than texts and whole numbers
            of Python.
    """
    try:
        if not isinstance(found, kind):
            raise TypeError(f"it is of type {type(found).__name__}")
        msgspec.msgpack.decode(msgspec.msgpack.encode(found), type=kind)
    except (TypeError, ValueError, OverflowError, msgspec.MsgspecError) as error:
        kinds = f"a {kind.__name__} of texts and whole numbers"
        raise DecisionError(
            f"policy {policy} returned {found!r}, which is not {kinds}: {error}"
        ) from error
    return found


def _reason(action: Reject | Break, now: int) -> None:
    try:
        answer(action.reason, Reason, "")
    except DecisionError as error:
        raise _refused(
            action, now, f"its reason is not one of texts and whole numbers: {error.__cause__}"
        ) from error


def _start(cluster: Cluster, action: Start, now: int) -> Allocation:
    _state(cluster, action, now, "start")
    if action.until is not None:
        _until(action, now)
    if action.is_trial:
        return _trial(cluster, action, now)
    job = cluster.job(action.row)
    if action.allocation:
        found = _allocation(cluster, action, now)
        _reserved(cluster, action, now, job, found)
        return found
    # If this finds hosts for the job, no other check is necessary.
    found = cluster.kind.allocation(
        cluster.machine,
        cluster.free_for(job, now),
        cluster.free_memory,
        job,
        cluster.free_resources,
    )
    if not found:
        raise _refused(
            action,
            now,
            (
                f"no host can now hold a job of {job.procs} processors ({sum(cluster.free)} free "
                "in "
                "total)"
            ),
        )
    return found


def _reserved(cluster: Cluster, action: Start, now: int, job: Job, allocation: Allocation) -> None:
    """Check that no reservation keeps a job from its hosts."""
    blocked = blocked_hosts(cluster.windows, cluster.machine, job, now)
    for host, _, _ in parts_of(allocation) if blocked else ():
        if host in blocked:
            name = cluster.machine.hosts[host].name
            raise _refused(action, now, f"host {name} is reserved during its estimate")


def _suspend(cluster: Cluster, action: Suspend, now: int) -> Allocation:
    _state(cluster, action, now, "suspend")
    _no_trial(cluster, action, now)
    return ()


def _resume(cluster: Cluster, action: Resume, now: int) -> Allocation:
    _state(cluster, action, now, "resume")
    if action.until is not None:
        _until(action, now)
    run = cluster.suspended[action.row]
    _free_on_hosts(
        cluster, action, now, run.allocation, "its own host", has_memory=run.holds_memory
    )
    return ()


def _reject(cluster: Cluster, action: Reject, now: int) -> Allocation:
    _state(cluster, action, now, "reject")
    _reason(action, now)
    return ()


def _refused(action: Action, now: int, reason: str) -> DecisionError:
    return DecisionError(f"the policy's {action} at {now / 1e6:.15g} s is refused: {reason}")


def _state(
    cluster: Cluster, action: Start | Suspend | Resume | Resize | Reject, now: int, cause: str
) -> None:
    code = cluster.codes[_row(cluster, action, now)]
    if NEXT[cause][code] < 0:
        raise _refused(action, now, f"row {action.row} is {STATES[code].value}")


def _until(action: Start | Resume, now: int) -> None:
    _whole(action, now, until=action.until)
    if action.until is not None and action.until <= now:
        raise _refused(action, now, "until must be later than now")


def _allocation(cluster: Cluster, action: Start, now: int) -> Allocation:
    """Check where a policy puts a job; return the allocation in the engine's form."""
    job, machine = cluster.job(action.row), cluster.machine
    allocation = action.allocation
    for chunk in action.allocation:
        _whole(
            action, now, host=chunk.host, procs=chunk.procs, memory=chunk.memory, count=chunk.count
        )
    after = 0
    for chunk in sorted(allocation, key=lambda chunk: chunk.host):
        if chunk.host < after or chunk.count < 1 or chunk.host + chunk.count > len(machine.hosts):
            raise _refused(action, now, "its chunks must be on different hosts of the machine")
        after = chunk.host + chunk.count
    if len(allocation) > 1:
        allocation = ranges_of(
            (chunk.host, chunk.procs, chunk.memory, chunk.count, *chunk.resources)
            for chunk in allocation
        )
    if machine.single_host and not is_on_one_host(allocation):
        raise _refused(action, now, "a job must stay inside one host of this machine")
    if machine.chunked:
        if any(
            chunk.memory < 0 or (chunk.procs < 1) != (chunk.host == machine.server)
            for chunk in allocation
        ):
            raise _refused(action, now, "a part of it has no processors or less than no memory")
        _free_on_hosts(cluster, action, now, allocation)
        if not divides(machine, allocation, job):
            parts = "+".join(
                f"{chunk.count}x{chunk.procs}p{chunk.memory}b"
                + "".join(f"{amount}{name}" for name, amount in chunk.resources)
                for chunk in requested(job)
            )
            whole = ", whole hosts" if job.is_exclusive else ""
            raise _refused(
                action,
                now,
                f"the chunks of the job ({parts}, {job.placing}{whole}) do not fit into it",
            )
        return allocation
    width = procs_of(allocation)
    least, most = _sizes(cluster, job)
    if not least <= width <= most or any(
        chunk.procs < 1 or chunk.memory < 0 for chunk in allocation
    ):
        raise _refused(
            action, now, f"it allocates {width} processors, the job asks for {job.procs}"
        )
    allocation = _with_resources(cluster, action, now, allocation)
    _free_on_hosts(cluster, action, now, allocation)
    counted = sum(chunk.memory * chunk.count for chunk in allocation)
    if counted < job.memory and all(
        machine.hosts[host].memory for host, _, _ in parts_of(allocation)
    ):
        raise _refused(
            action, now, f"it allocates {counted} bytes of memory, the job asks for {job.memory}"
        )
    return allocation


def _with_resources(
    cluster: Cluster, action: Start, now: int, allocation: Allocation
) -> Allocation:
    """Return an allocation with the named resources that the job asks for on its one host."""
    amounts = cluster.machine.amounts(cluster.job(action.row).resources)
    for chunk in allocation:
        if chunk.resources and chunk.resources != amounts:
            asked = dict(zip(cluster.machine.resources, amounts, strict=True))
            raise _refused(
                action,
                now,
                f"it allocates {chunk.resources} of other resources, the job asks for {asked}",
            )
    if not amounts:
        return allocation
    return tuple(msgspec.structs.replace(chunk, resources=amounts) for chunk in allocation)


def _sizes(cluster: Cluster, job: Job) -> tuple[int, int]:
    """Return the fewest and the most processors that a job takes; every job is malleable if the
    policy sets it so."""
    if job.max_procs:
        return max(job.min_procs, 1), job.max_procs
    return (1 if cluster.is_malleable else job.procs), job.procs


def _no_trial(cluster: Cluster, action: Suspend | Resize, now: int) -> None:
    if action.row in cluster.trials:
        raise _refused(action, now, "a trial runs to its end or goes back to the queue")


def _trial(cluster: Cluster, action: Start, now: int) -> Allocation:
    """Check a trial run: it is inside one host, on as many processors as the job asks for, with the
    memory that it is given."""
    job, machine = cluster.job(action.row), cluster.machine
    if action.until is None:
        raise _refused(action, now, "a trial must have an end (until)")
    if not job.is_rerunnable:
        raise _refused(action, now, "the job may not start twice")
    for chunk in action.allocation:
        _whole(
            action, now, host=chunk.host, procs=chunk.procs, memory=chunk.memory, count=chunk.count
        )
    if not is_on_one_host(action.allocation) or not 0 <= action.allocation[0].host < len(
        machine.hosts
    ):
        raise _refused(
            action, now, "a trial must have an allocation inside one host of the machine"
        )
    chunk = action.allocation[0]
    if chunk.procs != job.procs or chunk.memory < 0:
        raise _refused(
            action, now, f"it allocates {chunk.procs} processors, the job asks for {job.procs}"
        )
    if machine.chunked and not can_share_one_host(job):
        raise _refused(action, now, "the chunks of the job cannot be on one host with other jobs")
    allocation = _with_resources(cluster, action, now, action.allocation)
    _free_on_hosts(cluster, action, now, allocation)
    return allocation


def _free_on_hosts(
    cluster: Cluster,
    action: Start | Resume,
    now: int,
    allocation: Allocation,
    noun: str = "host",
    *,
    has_memory: bool = False,
) -> None:
    """Check that the hosts are open and have an allocation free: its processors, and the rest too
    unless it has that already."""
    hosts = cluster.machine.hosts
    for place, procs, memory in parts_of(allocation):
        host = hosts[place]
        if place in cluster.closed:
            raise _refused(action, now, f"{noun} {host.name} is closed")
        if procs > cluster.free[place]:
            raise _refused(
                action, now, f"{noun} {host.name} has {cluster.free[place]} processors free"
            )
        if host.memory and not has_memory and memory > cluster.free_memory[place]:
            raise _refused(
                action, now, f"{noun} {host.name} has {cluster.free_memory[place]} bytes free"
            )
    lack = None if has_memory else cluster.lacks(allocation)
    if lack is not None:
        raise _refused(action, now, f"{noun} {hosts[lack[0]].name} has {lack[2]} {lack[1]} free")


def _resize(cluster: Cluster, action: Resize, now: int) -> Allocation:
    _state(cluster, action, now, "resize")
    _no_trial(cluster, action, now)
    _whole(action, now, procs=action.procs)
    job = cluster.job(action.row)
    run = cluster.suspended.get(action.row) or cluster.running[action.row]
    if not (job.max_procs or cluster.is_malleable):
        raise _refused(action, now, f"job {job.number} is rigid")
    least, most = _sizes(cluster, job)
    if not least <= action.procs <= most:
        raise _refused(action, now, f"the job takes {least} to {most} processors")
    if not is_on_one_host(run.allocation):
        raise _refused(action, now, "a job on several hosts cannot be resized")
    free = cluster.free[run.allocation[0].host]
    if action.procs - run.procs > free and action.row not in cluster.suspended:
        raise _refused(action, now, f"its host has {free} processors free")
    return ()


def _promise(cluster: Cluster, action: Promise, now: int) -> Allocation:
    at = action.at
    if cluster.codes[_row(cluster, action, now)] != _QUEUED:
        raise _refused(action, now, "only a waiting job is promised a start")
    last = cluster.promises.get(action.row)
    if type(at) is not int:
        _whole(action, now, at=at)
    if at < now or (last is not None and at > last):
        raise _refused(
            action,
            now,
            f"a promise is not in the past and only moves earlier (last promise: {last})",
        )
    return ()


def _break(cluster: Cluster, action: Break, now: int) -> Allocation:
    if cluster.codes[_row(cluster, action, now)] != _QUEUED:
        raise _refused(action, now, "only a promise to a waiting job can be broken")
    if action.row not in cluster.promises:
        raise _refused(action, now, "nothing is promised to it")
    _reason(action, now)
    return ()


def _wake(cluster: Cluster, action: WakeAt, now: int) -> Allocation:
    if type(action.at) is not int:
        _whole(action, now, at=action.at)
    if action.at <= now:
        raise _refused(action, now, "an instant to wake at must be later than now")
    return ()


CHECKS: dict[type, Callable[..., Allocation]] = {
    Start: _start,
    Suspend: _suspend,
    Resume: _resume,
    Resize: _resize,
    Reject: _reject,
    Promise: _promise,
    Break: _break,
    WakeAt: _wake,
}
"""The actions and their checks: each check returns the allocation of a start, and an empty one for
other actions."""
