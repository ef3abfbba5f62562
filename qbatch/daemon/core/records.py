"""The records of jobs, queues and hosts that clients get."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from math import ceil
from operator import attrgetter
from typing import Any

from msgspec import structs

from qbatch.daemon.core.dependencies import depend_text
from qbatch.daemon.core.execution import executor_of
from qbatch.daemon.core.job import BY_POLICY, OVER, SUBSTATES, WAITING, BatchJob, BatchState, Slot
from qbatch.daemon.core.slots import Part, divide, ranges_of_chunks
from qbatch.daemon.core.state import Core, QueueState
from qbatch.daemon.executors.attempt import NOT_STARTED
from qbatch.model.actions import amounts_of, parts_of
from qbatch.model.machine import Host
from qbatch.wire.identifiers import ARRAY, JobKey, format_id, format_indices
from qbatch.wire.records import HostRecord, JobRecord, QueueRecord
from qbatch.wire.requests import Spec
from qbatch.wire.resources import (
    MICROSECONDS,
    format_duration,
    format_size,
    parse_duration,
    parse_size,
)

TERMINATED = "terminated"
"""The word with which the comment of a deleted job begins."""

SUBSTATE_BEGINNING = 41
"""The substate of a job of which the script is not known to run yet (OpenPBS job.h)."""

SUBSTATE_TERMINATED, SUBSTATE_FINISHED, SUBSTATE_FAILED = 91, 92, 93
"""Substates of ended jobs (OpenPBS job.h)."""


def limits_of(job: BatchJob) -> dict[str, float]:
    """Return the limits that a job asked for: ``cput`` and ``pcput`` in seconds, ``mem`` and
    ``vmem`` in bytes.

    In Torque, ``pmem`` is a share of ``mem`` (:func:`qbatch.wire.resources.parse_demand`), so it is
    enforced or not as ``mem`` is.
    """
    resources = job.spec.resources
    limits: dict[str, float] = {}
    for name in ("cput", "pcput"):
        if name in resources:
            limits[name] = parse_duration(resources[name]) / MICROSECONDS
    if "vmem" in resources:
        limits["vmem"] = float(parse_size(resources["vmem"]))
    if job.prepared.demand.memory:
        limits["mem"] = float(job.prepared.demand.memory)
    return limits


def excess(core: Core, job: BatchJob, used: Mapping[str, float]) -> str:
    """Return in words what a job uses beyond what it asked for without being ended for it; empty if
    there is nothing.

    ``used``: seconds and bytes, as executors measure them.
    """
    enforced = core.pool_of(job).settings.enforce
    return "; ".join(
        (
            f"{name} {_text(name, used[name])} exceeds the {_text(name, limit)} asked for (not "
            "enforced)"
        )
        for name, limit in limits_of(job).items()
        if name not in enforced and used.get(name, 0) > limit
    )


def _text(name: str, amount: float) -> str:
    """Return an amount as PBS writes it, rounded up, so that an excess by a part of a second
    shows."""
    return (
        format_size(int(amount))
        if name in ("mem", "vmem")
        else format_duration(ceil(amount) * MICROSECONDS)
    )


_AS_SUBMITTED = (
    "join",
    "keep",
    "mail_points",
    "mail_users",
    "is_rerunnable",
    "checkpoint",
    "account",
    "project",
    "group_list",
    "shell",
    "submit_arguments",
    "is_blocking",
    "umask",
)
_as_submitted = attrgetter(*_AS_SUBMITTED)
_DEFAULTS = _as_submitted(JobRecord(id="", name="", user="", queue="", state=""))
_AS_CONFIGURED = (
    "name",
    "partition",
    "priority",
    "max_queued",
    "max_running",
    "max_running_per_user",
    "max_procs",
    "max_walltime",
    "default_walltime",
    "max_memory",
    "destinations",
    "users",
)
# Each field that is given to the constructor takes time, and there are seventy: those that few
# submissions set are left out.


def used_of(job: BatchJob) -> dict[str, str]:
    """Return ``resources_used``; empty before anything was measured."""
    used = job.used
    return {} if used is None else used_texts(used, job.prepared.request.procs)


def used_texts(used: Mapping[str, float], procs: int) -> dict[str, str]:
    """Return ``resources_used`` of measured figures: seconds and bytes."""
    memory = int(used.get("mem", 0))
    virtual = int(used.get("vmem", memory))
    cput = round(used.get("cput", 0) * MICROSECONDS)
    walltime = round(used.get("walltime", 0) * MICROSECONDS)
    percent = round(100 * cput / walltime) if walltime > 0 else 0
    size = format_size(memory)
    return {
        "cpupercent": str(percent),
        "cput": format_duration(cput),
        "mem": size,
        "ncpus": str(procs),
        "vmem": size if virtual == memory else format_size(virtual),
        "walltime": format_duration(walltime),
    }


def slots_of(core: Core, job: BatchJob) -> list[Part]:
    """Return the chunks of a running job, each alone, in their order."""
    runs = [
        Part(slot.host, slot.procs, slot.memory, slot.lines, slot.count, slot.gpus)
        for slot in job.present.slots
    ]
    runs = runs or divide(job, core.pool_of(job).machine)
    return [each._replace(many=1) for each in runs for _ in range(each.many)]


def exec_texts(core: Core, job: BatchJob) -> tuple[str, str]:
    """Return ``exec_host`` and ``exec_vnode``."""
    hosts = _hosts_of(core, job)
    if not hosts:
        return "", ""
    slots = job.present.slots or [
        Slot(each.host, each.procs, each.memory, each.lines, 0, (), 1, each.gpus)
        for each in slots_of(core, job)
    ]
    texts = [
        _texts_of_run(
            hosts[slot.host].name, slot.number, slot.count, slot.procs, slot.memory, slot.gpus
        )
        for slot in slots
    ]
    if len(texts) == 1:
        return texts[0]
    return "+".join([place for place, _ in texts]), "+".join([node for _, node in texts])


@lru_cache(maxsize=1024)
def _texts_of_run(
    name: str, first: int, count: int, procs: int, memory: int, gpus: int = 0
) -> tuple[str, str]:
    """Return ``exec_host`` and ``exec_vnode`` of equal chunks on a host; ``first``: the number of
    the first there."""
    many = f"*{procs}" if procs > 1 else ""
    size = f":mem={format_size(memory)}" if memory else ""
    node = f"({name}:ncpus={procs}{size}{f':ngpus={gpus}' if gpus else ''})"
    places = [f"{name}/{number}{many}" for number in range(first, first + count)]
    return "+".join(places), "+".join([node] * count)


def numbered_text(core: Core, job: BatchJob) -> str:
    """Return ``exec_host`` as Torque writes it, with ranges of the numbers of processors:
    ``n0/0-1+n1/4``."""
    hosts = _hosts_of(core, job)
    places: list[str] = []
    for slot in job.present.slots if hosts else ():
        name = hosts[slot.host].name
        if slot.procs == 1:
            places += [
                _texts_of_run(name, low, high - low + 1, 1, 0)[0] for low, high in slot.ranges
            ]
            continue
        for own in ranges_of_chunks(slot):
            places.append(
                f"{name}/"
                + ",".join([f"{low}-{high}" if high > low else str(low) for low, high in own])
            )
    return "+".join(places)


def _hosts_of(core: Core, job: BatchJob) -> tuple[Host, ...]:
    """Return the hosts of a job's pool; none if it is on none of them."""
    attempt = job.attempt
    if attempt is None or not attempt.allocation:
        return ()
    queue = core.queues.get(job.queue)
    hosts = core.pools[queue.pool].machine.hosts if queue is not None else ()
    # A job of an array may have ended on hosts, or in a queue, that the configuration does not have
    # any more.
    return (
        hosts if all(chunk.host + chunk.count <= len(hosts) for chunk in attempt.allocation) else ()
    )


def brief_record(core: Core, job: BatchJob) -> JobRecord:
    """Return the record of a job for tables."""
    demand, walltime = job.prepared.demand, format_duration(job.prepared.walltime)
    resources = {"ncpus": str(demand.procs), "nodect": str(demand.hosts), "walltime": walltime}
    if demand.memory:
        resources["mem"] = format_size(demand.memory)
    return JobRecord(
        core.id_of(job.key),
        job.name,
        job.user,
        job.queue,
        job.state.letter,
        resources=resources,
        used=_used_so_far(core, job),
        started=_started(core, job),
        is_array=job.is_array,
        is_held_with_array=_is_held_with_array(core, job),
        priority=job.priority,
        session=job.attempt.session if job.attempt is not None else None,
        exit_status=job.final.status if job.final is not None else None,
        exec_host=exec_texts(core, job)[0],
        comment=_comment(core, job),
        deadline=job.deadline,
    )


def _started(core: Core, job: BatchJob) -> int | None:
    """Return when its attempt started; of an array, when the first of its jobs did."""
    if job.is_array:
        return core.arrays[job.sequence].started
    return job.attempt.started if job.attempt is not None else None


def _comment(core: Core, job: BatchJob) -> str:
    """Return the last comment on a job; without one, whether it is on trial or suspended, and by
    what."""
    if job.comment or not job.is_running_or_suspended:
        return job.comment
    pool = core.pool_of(job)
    if job.state is BatchState.SUSPENDED:
        return f"Job suspended by {pool.name_of_policy if job.present.stopped_by & BY_POLICY else 'a user'}"
    return "Job runs for a quantum" if job.row >= 0 and pool.engine.is_trial(job.row) else ""


def with_excess(core: Core, job: BatchJob, comment: str, used: Mapping[str, float] | None) -> str:
    """Return a comment, followed by what the job uses beyond what it asked for."""
    return "; ".join(text for text in (comment, excess(core, job, used) if used else "") if text)


def event_record(core: Core, key: JobKey) -> JobRecord | None:
    """Return the record of a job for events: that for tables, with where it runs, when it came and
    its promised start."""
    job = core.find(key)
    if job is None or job.is_over:
        return core.recent.get(key)
    attempt = job.attempt
    return structs.replace(
        brief_record(core, job),
        hold=job.hold_types,
        submitted=job.submitted,
        eligible=job.eligible,
        promised=job.promised,
        exec_vnode=exec_texts(core, job)[1] if job.prepared.demand.memory else "",
        pauses=attempt.pauses if attempt is not None else (),
        sizes=attempt.sizes if attempt is not None else (),
    )


def _used_so_far(core: Core, job: BatchJob) -> dict[str, str]:
    if not job.holds_hosts or job.used is not None:
        return used_of(job)
    cput, walltime = executor_of(core).cpu_time(core, job), job.walltime_used(core.now)
    return {
        "cput": format_duration(cput),
        "walltime": format_duration(walltime),
        "mem": "0kb",
        "cpupercent": "0",
        "ncpus": str(job.size),
        "vmem": "0kb",
    }


def full_record(core: Core, job: BatchJob) -> JobRecord:
    """Return the record of a job for ``qstat -f``."""
    spec, settings = job.prepared.spec, core.settings
    attempt, earlier, final = job.attempt, job.earlier, job.final
    hosts, nodes = exec_texts(core, job)
    queue = _queue_variable(asked_queue(core, job))
    others: dict[str, Any] = {}
    if (given := _as_submitted(spec)) != _DEFAULTS:
        others.update(zip(_AS_SUBMITTED, given, strict=True))
    if job.is_array:
        others.update(_array_fields(core, job))
    elif job.is_subjob:
        others.update(array_id=core.id_of(JobKey(job.sequence, ARRAY)), array_index=job.member)
    if attempt is not None:
        others.update(session=attempt.session, pauses=attempt.pauses, sizes=attempt.sizes)
    if earlier is not None:
        others.update(trials=earlier.trials, lost=earlier.lost)
    if final is not None:
        others.update(ended=final.ended, exit_status=final.status, refused=final.refused)
    if job.deadline is not None and job.row >= 0 and job.is_waiting:
        others["planned"] = core.pool_of(job).engine.explain(job.row).numbers.get("planned")
    # ``-W run_count`` states how often the job ran before.
    before = spec.extra.get("run_count", "")
    runs = int(before) if len(before) < 10 and before.isascii() and before.isdecimal() else 0
    home = spec.variables.get("PBS_O_HOME", "") if nodes else ""
    comment = _comment(core, job)
    return JobRecord(
        format_id(job.key, settings.name),
        job.name,
        job.user,
        job.queue,
        job.state.letter,
        owner=f"{job.user}@{spec.host or 'localhost'}",
        group=job.group,
        substate=_substate(core, job),
        hold=job.hold_types,
        priority=job.priority,
        is_array=job.is_array,
        is_held_with_array=_is_held_with_array(core, job),
        server=settings.name,
        depend=depend_text(core, job),
        submitted=job.submitted,
        queued=job.queued,
        eligible=job.eligible,
        modified=job.modified,
        not_before=job.not_before,
        promised=job.promised,
        broken=job.broken,
        deadline=job.deadline,
        price=job.price,
        started=_started(core, job),
        attempt=job.attempts,
        run_count=job.attempts + runs,
        exec_host=hosts,
        exec_vnode=nodes,
        exec_slots=numbered_text(core, job),
        directory=directory_of(spec, format_id(job.key, settings.name), home) if home else "",
        stageout=_stageout(job),
        resources=job.prepared.listed,
        used=_used_so_far(core, job),
        comment=with_excess(core, job, comment, job.used if job.is_over else None),
        output=output_path(job, "out"),
        error=output_path(job, "err"),
        extra=spec.extra,
        variables={**spec.variables, **queue} if spec.variables else queue,
        **others,
    )


def _array_fields(core: Core, job: BatchJob) -> dict[str, Any]:
    array = core.arrays[job.sequence]
    counts = array.counts
    waiting = [index for index, each in array.members.items() if each.is_waiting]
    # As written, without the limit: 1-10:2 although 9 is the last.
    submitted = job.spec.array.partition("%")[0].strip()
    return {
        "array_submitted": submitted,
        "array_remaining": submitted
        if len(waiting) == len(job.prepared.indices)
        else format_indices(waiting),
        "array_counts": {
            "Queued": sum(counts.get(state, 0) for state in WAITING),
            "Running": counts.get(BatchState.RUNNING, 0) + counts.get(BatchState.SUSPENDED, 0),
            "Exiting": counts.get(BatchState.EXITING, 0),
            "Expired": sum(counts.get(state, 0) for state in OVER),
        },
        "slot_limit": job.slot_limit,
    }


def _is_held_with_array(core: Core, job: BatchJob) -> bool:
    """Return whether a job of an array is held only because its array is."""
    if job.state is not BatchState.HELD or not job.is_subjob:
        return False
    array = core.jobs.get(job.sequence)
    return array is not None and array.hold == job.hold


def _substate(core: Core, job: BatchJob) -> int:
    """Return the substate as OpenPBS has it: of an ended job, whether it finished, failed or was
    terminated."""
    if job.final is None or job.is_array:
        if job.state is BatchState.RUNNING and job.attempt is not None and not job.attempt.session:
            return SUBSTATE_BEGINNING
        return SUBSTATES[BatchState.QUEUED if _is_held_with_array(core, job) else job.state]
    if job.ending == "deleted":
        return SUBSTATE_TERMINATED
    return SUBSTATE_FAILED if job.final.status else SUBSTATE_FINISHED


def _stageout(job: BatchJob) -> int | None:
    """Return whether the files of an ended job were delivered: 1 or 0; None if it never ran."""
    if job.final is None or job.attempt is None or job.final.status == NOT_STARTED:
        return None
    return 0 if job.attempt.is_undelivered else 1


def directory_of(spec: Spec, identifier: str, home: str) -> str:
    """Return the directory in which a job begins."""
    sandbox = spec.extra.get("sandbox", "HOME")
    if sandbox == "PRIVATE":  # made for the job
        return f"{home.rstrip('/')}/pbs.{identifier}.x8z"
    if sandbox == "O_WORKDIR" and spec.directory:
        return spec.directory
    return spec.extra.get("init_dir") or home


# Records share equal mappings, because many of them are kept in memory.
@lru_cache(maxsize=64)
def _queue_variable(queue: str) -> dict[str, str]:
    return {"PBS_O_QUEUE": queue}


def asked_queue(core: Core, job: BatchJob) -> str:
    """Return the queue that a submission named, or the default queue; the job may have been routed
    on."""
    return job.spec.queue.partition("@")[0] or core.settings.default_queue


def output_path(job: BatchJob, which: str) -> str:
    """Return the path of the output (``out``) or error (``err``) file as far as it is known:
    absolute, with the index in place.

    A path that ends in ``/`` is a directory; the daemon adds the name when the job starts.
    """
    spec, is_subjob = job.prepared.spec, job.member >= 0
    given = spec.output if which == "out" else spec.error
    if not given:
        letter = "o" if which == "out" else "e"
        inner = "" if not is_subjob else f"-{job.member}" if spec.is_torque else f".{job.member}"
        inner = ".^array_index^" if job.is_array else inner
        # A name of Torque may have slashes: the last part counts (svr_jobfunc.c, default_std).
        given = f"{spec.directory.rstrip('/')}/{job.name.rpartition('/')[2]}.{letter}{job.sequence}{inner}"
    if is_subjob:
        given = given.replace("^array_index^", str(job.member))
    return given


def assigned(jobs: Iterable[BatchJob]) -> dict[str, str]:
    """Return what running jobs have been given in all, as ``resources_assigned``: mpiprocs, ncpus
    and nodect as they asked, and memory, if any has some."""
    sums = {"mem": 0, "mpiprocs": 0, "ncpus": 0, "nodect": 0}
    for job in jobs:
        for name in ("mpiprocs", "ncpus", "nodect"):
            sums[name] += int(job.prepared.listed.get(name, "0"))
        sums["mem"] += job.prepared.demand.memory
    memory = sums.pop("mem")
    found = {name: str(amount) for name, amount in sums.items()}
    return {"mem": format_size(memory), **found} if memory else found


def running_jobs(core: Core) -> Iterator[BatchJob]:
    """Yield the jobs that hold hosts."""
    for pool in core.pools:
        yield from pool.running.values()


def queue_record(core: Core, queue: QueueState) -> QueueRecord:
    """Return all that is known of a queue."""
    settings, pool = queue.settings, core.pools[queue.pool]
    return QueueRecord(
        assigned=assigned(job for job in running_jobs(core) if job.queue == settings.name),
        kind="Route" if settings.destinations else "Execution",
        pool=pool.settings.name,
        policy=pool.name_of_policy,
        enabled=queue.enabled,
        started=queue.started,
        total=queue.total,
        counts={letter: count for letter, count in queue.letter_counts.items() if count},
        **{name: getattr(settings, name) for name in _AS_CONFIGURED},
    )


def host_records(core: Core, now: int) -> list[HostRecord]:
    """Return all hosts at an instant, in the order of the configuration.

    A job that the policy has suspended keeps its memory there, but not its processors.
    """
    found = []
    for number, pool in enumerate(core.pools):
        # By host, the jobs that wait for it, if the policy keeps such queues.
        waiting = [[pool.by_row[row] for row in queue] for queue in pool.engine.host_queues() or ()]
        used = [[0, 0] for _ in pool.machine.hosts]
        named: list[dict[str, int]] = [{} for _ in pool.machine.hosts]
        jobs: list[list[str]] = [[] for _ in pool.machine.hosts]
        whole: set[int] = set()
        for job in pool.running.values():
            is_displaced = bool(job.present.stopped_by & BY_POLICY)
            for place, procs, memory in parts_of(job.present.allocation):
                used[place][0] += 0 if is_displaced else procs
                used[place][1] += memory
                jobs[place].append(core.id_of(job.key))
                if job.prepared.request.is_exclusive and not is_displaced:
                    whole.add(place)
            for place, _, _, *amounts in amounts_of(job.present.allocation):
                for name, amount in zip(pool.machine.resources, amounts, strict=False):
                    named[place][name] = named[place].get(name, 0) + amount
        queues = tuple(
            name
            for name, queue in core.queues.items()
            if queue.pool == number and not queue.reservation
        )
        now_reserved = {
            host: pool.machine.reservations[window.reservation].is_maintenance
            for window in pool.engine.windows
            for host in window.hosts
            if window.begin <= now < window.end
            and window.reservation < len(pool.machine.reservations)
        }
        reserved = [each.kept for each in pool.reservations if not each.is_over]
        for place, host in enumerate(pool.settings.hosts):
            cpus_used, memory_used = used[place]
            if place in pool.down:
                state = "down"
            elif place in pool.shut:
                state = "offline"
            elif place in whole:
                state = "job-exclusive"
            else:
                state = "job-busy" if cpus_used >= host.cpus else "free"
            if state == "free" and place in now_reserved:
                state = "maintenance" if now_reserved[place] else "resv-exclusive"
            queue = (
                tuple(core.id_of(job.key) for job in waiting[place] if job is not None)
                if waiting
                else None
            )
            record = HostRecord(
                name=host.name,
                pool=pool.settings.name,
                state=state,
                cpus=host.cpus,
                cpus_used=cpus_used,
                memory=host.memory,
                memory_used=memory_used,
                jobs=tuple(jobs[place]),
                queues=queues,
                comment=pool.host_comments.get(place, ""),
                queue=queue,
                has_other_pools=len(core.pools) > 1,
                resources=dict(host.resources),
                resources_used={name: named[place].get(name, 0) for name, _ in host.resources},
                features=host.features,
                reservations=tuple(
                    f"{kept.name}.{core.settings.name}" for kept in reserved if place in kept.hosts
                ),
            )
            found.append(record)
    return found
