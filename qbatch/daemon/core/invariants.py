"""The invariants of the state: counts, run limits, hosts, rows.  Tests and ``qbatch check`` check them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from qbatch.daemon.core.job import BY_POLICY, ON_HOSTS, WAITING, BatchState
from qbatch.model.actions import parts_of

if TYPE_CHECKING:
    from qbatch.daemon.core.job import BatchJob
    from qbatch.daemon.core.state import Core, PoolState


def breaches(core: Core) -> list[str]:
    """Return the invariants that do not hold, one line each."""
    found: list[str] = []
    ones: list[BatchJob] = []
    for job in core.jobs.values():
        if job.is_array:
            ones += core.arrays[job.sequence].members.values()
        else:
            ones.append(job)
    live = [job for job in ones if not job.is_over]
    real_counts = Counter((job.queue, job.state) for job in live)
    for name, queue in core.queues.items():
        for state in (*WAITING, *ON_HOSTS):
            counted, real = queue.counts.get(state, 0), real_counts[name, state]
            if counted != real:
                found.append(f"queue {name} counts {counted} jobs in state {state.letter}; there are {real}")
    used: dict[str, int] = {}
    for job in live:
        for passed in job.waits_for.split("\n") if job.waits_for else []:
            used[passed] = used.get(passed, 0) + 1
        found += _of_job(core, job)
    for name, run_limit in core.run_limits.items():
        if run_limit.used != used.get(name, 0):
            found.append(f"run limit {name} counts {run_limit.used}; {used.get(name, 0)} jobs have a place in it")
    for pool in core.pools:
        taken = [0] * len(pool.machine.hosts)
        for job in pool.running.values():
            # A job that the policy has suspended has no processors, and a job after its trial has given them back.
            if job.row < 0 or job.present.stopped_by & BY_POLICY:
                continue
            for place, procs, _ in parts_of(job.present.allocation):
                taken[place] += procs
        found += _of_numbers(pool)
        for host, count in zip(pool.machine.hosts, taken, strict=True):
            if count > host.cpus:
                found.append(f"host {host.name} has {host.cpus} processors; {count} are taken")
    return found


def _of_numbers(pool: PoolState) -> list[str]:
    """Return the hosts on which the numbers in use are not those of the running jobs, each once."""
    found = []
    chunks, procs = Counter[tuple[int, int]](), Counter[tuple[int, int]]()
    for job in pool.running.values():
        for slot in job.present.slots:
            chunks.update((slot.host, slot.number + place) for place in range(slot.count))
            procs.update((slot.host, number) for low, high in slot.ranges for number in range(low, high + 1))
    for place, host in enumerate(pool.machine.hosts):
        known = pool.numbers.get(place, (0, 0))
        for given, used in zip((chunks, procs), known, strict=True):
            own = {number: count for (where, number), count in given.items() if where == place}
            if sum(1 << number for number in own) != used or any(count > 1 for count in own.values()):
                found.append(f"host {host.name}: numbers {bin(used)} are in use; its jobs have {sorted(own)}")
    return found


def _of_job(core: Core, job: BatchJob) -> list[str]:
    name = core.id_of(job.key)
    pool = core.pool_of(job)
    found = []
    if job.row >= 0 and pool.by_row[job.row] is not job:
        found.append(f"job {name} has row {job.row}, which is another job's")
    if job.holds_hosts and (job.key not in pool.running or job.attempt is None or not job.attempt.allocation):
        found.append(f"job {name} runs without hosts")
    if not (job.holds_hosts or job.is_over) and job.attempt is not None:
        found.append(f"job {name} has an attempt, but is in state {job.state.letter}")
    if job.is_over is not (job.final is not None):
        found.append(f"job {name} is in state {job.state.letter}, but its end says otherwise")
    if job.state is BatchState.QUEUED and not (job.is_pending or job.row >= 0 or job.run_limit):
        found.append(f"job {name} is queued, but neither the engine nor a run limit knows it")
    if job.state is BatchState.QUEUED and (job.hold or job.unmet):
        found.append(f"job {name} is queued, but it is held")
    if job.is_waiting and job.state is not BatchState.QUEUED and (job.is_pending or job.row >= 0):
        found.append(f"job {name} is in state {job.state.letter}, but the engine has it")
    if job.is_pending and job.key not in pool.pending:
        found.append(f"job {name} is to arrive at the engine, but is not among the arrivals")
    return found
