"""The invariants of the state: counts, run limits, hosts, rows.  Tests and ``qbatch check`` check
them."""

from __future__ import annotations

from collections import Counter

from qbatch.daemon.core.job import BY_POLICY, ON_HOSTS, WAITING, BatchJob, BatchState
from qbatch.daemon.core.state import Core, PoolState
from qbatch.model.actions import parts_of


def breaches(core: Core) -> list[str]:
    """Return the invariants that do not hold, one line each."""
    found: list[str] = []
    live = [job for whole in core.jobs.values() if not whole.is_over for job in core.members(whole)]
    real_counts = Counter((job.queue, job.state) for job in live)
    for name, queue in core.queues.items():
        for state in (*WAITING, *ON_HOSTS):
            counted, real = queue.counts.get(state, 0), real_counts[name, state]
            if counted != real:
                found.append(
                    f"queue {name} counts {counted} jobs in state {state.letter}; there are {real}"
                )
    used = Counter(name for job in live if job.waits_for for name in job.waits_for.split("\n"))
    for job in live:
        found += _of_job(core, job)
    for name, run_limit in core.run_limits.items():
        if run_limit.used != used[name]:
            found.append(
                f"run limit {name} counts {run_limit.used}; {used[name]} jobs have a place in it"
            )
    for pool in core.pools:
        taken = [0] * len(pool.machine.hosts)
        for job in pool.running.values():
            # A job that the policy has suspended has no processors, and a job after its trial has
            # given them back.
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
    chunks, procs, gpus = (Counter[tuple[int, int]]() for _ in range(3))
    for job in pool.running.values():
        for slot in job.present.slots:
            chunks.update((slot.host, slot.number + place) for place in range(slot.count))
            procs.update(
                (slot.host, number) for low, high in slot.ranges for number in range(low, high + 1)
            )
            gpus.update(
                (slot.host, number)
                for low, high in slot.gpu_ranges
                for number in range(low, high + 1)
            )
    for place, host in enumerate(pool.machine.hosts):
        known = *pool.numbers.get(place, (0, 0)), pool.gpus.get(place, 0)
        for given, used in zip((chunks, procs, gpus), known, strict=True):
            own = {number: count for (where, number), count in given.items() if where == place}
            if sum(1 << number for number in own) != used or any(
                count > 1 for count in own.values()
            ):
                found.append(
                    f"host {host.name}: numbers {bin(used)} are in use; its jobs have {sorted(own)}"
                )
    return found


def _of_job(core: Core, job: BatchJob) -> list[str]:
    pool, letter, attempt = core.pool_of(job), job.state.letter, job.attempt
    is_queued, is_with_engine = job.state is BatchState.QUEUED, job.is_pending or job.row >= 0
    is_without_hosts = job.key not in pool.running or attempt is None or not attempt.allocation
    wrong = (
        (
            job.row >= 0 and pool.by_row[job.row] is not job,
            f"has row {job.row}, which is another job's",
        ),
        (job.holds_hosts and is_without_hosts, "runs without hosts"),
        (
            not (job.holds_hosts or job.is_over) and attempt is not None,
            f"has an attempt, but is in state {letter}",
        ),
        (
            job.is_over is not (job.final is not None),
            f"is in state {letter}, but its end says otherwise",
        ),
        (
            is_queued and not (is_with_engine or job.run_limit),
            "is queued, but neither the engine nor a run limit knows it",
        ),
        (is_queued and (job.hold or job.unmet), "is queued, but it is held"),
        (
            job.is_waiting and not is_queued and is_with_engine,
            f"is in state {letter}, but the engine has it",
        ),
        (
            job.is_pending and job.key not in pool.pending,
            "is to arrive at the engine, but is not among the arrivals",
        ),
    )
    return [f"job {core.id_of(job.key)} {text}" for is_wrong, text in wrong if is_wrong]
