"""Submissions: the server reads, checks and queues them, and refuses a job that can never run, with
the reason."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from qbatch.daemon.core import accounting, admission, dependencies, flow, reservations
from qbatch.daemon.core.counted import counted_names, counted_of, server_chunk
from qbatch.daemon.core.job import USER_HOLD, BatchJob, BatchState, Listed, Prepared, hold_bits
from qbatch.daemon.core.state import (
    LOG_NUMBER,
    MOST_KEYS,
    Actor,
    ArrayState,
    Core,
    PoolState,
    QueueState,
)
from qbatch.daemon.core.steps import Steps, is_enough
from qbatch.engine.admission import refusal
from qbatch.model.job import ChunkRequest, Job, JobRequest
from qbatch.model.machine import Machine
from qbatch.planning.partitions import default_time, has_limits, limited
from qbatch.planning.requests import total_of
from qbatch.wire.errors import Refusal
from qbatch.wire.identifiers import ARRAY, PLAIN, JobKey, parse_indices
from qbatch.wire.requests import Spec
from qbatch.wire.resource_rules import refused_resource
from qbatch.wire.resource_values import ResourceFault
from qbatch.wire.resources import (
    Demand,
    format_duration,
    format_size,
    listed_resources,
    parse_demand,
)
from qbatch.wire.staging import names_of, parse_staging

LONGEST_NAME = 236
LONGEST_SCRIPT = 512 * 1024
LONGEST_PATH = 4096
MOST_ENVIRONMENT = 128 * 1024
_MOST_CACHED = 512

_encode = msgspec.msgpack.Encoder().encode


def submit(core: Core, actor: Actor, spec: Spec, key: str = "") -> Steps[JobKey]:
    """Queue a job, or an array in steps, and return its key; if the job is refused, nothing has
    changed."""
    if key and (known := core.keys.get((actor.uid, key))) is not None:
        return known
    queue, prepared = check(core, actor, spec)
    deadline = admission.deadline_asked(core, spec)
    found = dependencies.parse(core, actor, spec.depend) if spec.depend else []
    if found:
        dependencies.refuse_cycle(core, None, found)
    hold = bits_of_hold(actor, spec.hold, "place") if spec.hold else 0
    sequence = core.next_sequence
    core.next_sequence += 1
    job = BatchJob(
        sequence,
        ARRAY if prepared.indices else PLAIN,
        prepared,
        spec.name,
        actor.user,
        actor.uid,
        actor.group,
        queue.settings.name,
        submitted=core.now,
        queued=core.now,
        modified=core.now,
        hold=hold,
        not_before=spec.not_before,
        priority=spec.priority,
        slot_limit=prepared.slot_limit,
        deadline=deadline,
    )
    core.jobs[sequence] = job
    core.order.append(sequence)
    job_key = job.key
    if key:
        core.keys[actor.uid, key] = job_key
        if len(core.keys) > MOST_KEYS:
            core.keys.popitem(last=False)
    core.account("Q", job, accounting.queued(job))
    core.happened("submitted", job_key)
    count = max(len(prepared.indices), 1)
    queue.users[actor.user] = queue.users.get(actor.user, 0) + count
    core.user_jobs[actor.user] = core.user_jobs.get(actor.user, 0) + count
    can_run = flow.depend(core, job, found) if found else True
    queue.counts[BatchState.QUEUED] = queue.counts.get(BatchState.QUEUED, 0) + count
    if prepared.indices:
        yield from _expand(core, job)
    else:
        flow.settle(core, job)
    if not can_run:
        yield from flow.delete(core, job, is_forced=False, grace=0, message=dependencies.UNMET)
    return job_key


def _expand(core: Core, parent: BatchJob) -> Steps[None]:
    """Make the jobs of an array, which are copies of it but for what is each one's own; ``settle``
    gives each its state."""
    indices = parent.prepared.indices
    members: dict[int, BatchJob] = {}
    core.arrays[parent.sequence] = ArrayState(
        members, {BatchState.QUEUED: len(indices)}, len(indices)
    )
    for index in indices:
        if is_enough(core):
            yield
        members[index] = job = msgspec.structs.replace(
            parent,
            member=index,
            prepared=of_task(parent.prepared, index),
            state=BatchState.QUEUED,
            unmet=0,
            slot_limit=None,
            comment="",
            ending=None,
        )
        flow.settle(core, job)


def of_task(whole: Prepared, index: int) -> Prepared:
    """Return what the job of an array with an index asks for; the jobs share it unless they differ
    (``Spec.tasks``)."""
    if not whole.spec.tasks or index < 0:
        return whole
    task = whole.spec.tasks[whole.indices.index(index)]
    spec = msgspec.structs.replace(whole.spec, tasks=(), runtime=task.runtime)
    request = msgspec.structs.replace(whole.request, estimate=task.walltime, route=task.route)
    return Prepared(spec, whole.demand, task.walltime, request, whole.indices, whole.slot_limit)


def bits_of_hold(actor: Actor, letters: str, doing: str) -> int:
    """Return the bits of ``uos`` letters; refuse unknown ones, and kinds of hold with which the
    asker may not do this."""
    try:
        bits = hold_bits(letters)
    except ValueError as error:
        raise Refusal("bad-value", f"Hold_Types: {error}") from None
    if bits & ~USER_HOLD and actor.role == "user":
        raise Refusal(
            "not-permitted", f"Unauthorized Request: only operators {doing} o and s holds"
        )
    return bits


def check(core: Core, actor: Actor, spec: Spec) -> tuple[QueueState, Prepared]:
    """Read a specification, and refuse one that the queue that it names, or the limits, do not
    allow; nothing changes."""
    if len(core.jobs) >= core.settings.max_jobs:
        raise Refusal(
            "too-many-jobs",
            f"the server holds {len(core.jobs)} jobs; more are not taken (max_jobs)",
        )
    name = spec.queue.partition("@")[0] or core.settings.default_queue
    queue = core.queue(name)
    check_name(spec.name, spec.is_torque)
    tried = []
    destinations = queue.settings.destinations
    for destination in destinations or (name,):
        try:
            chosen = core.queue(destination)
            if destinations and not queue.enabled:
                raise Refusal("queue-disabled", f"Queue is not enabled: {name}")
            prepared = _prepared(core, spec, chosen)
            _check_asker(core, actor, spec)
            check_queue(core, actor, chosen, prepared)
            return chosen, prepared
        except Refusal as error:
            if not destinations:
                raise
            tried.append(f"{destination}: {error}")
    raise Refusal(
        "queue-access", f"no destination of queue {name} takes the job ({'; '.join(tried)})"
    )


def check_queue(
    core: Core, actor: Actor, queue: QueueState, prepared: Prepared, *, is_new: bool = True
) -> None:
    """Refuse a job that the queue does not take now, or not from its owner; a job that only moves
    is not counted again."""
    settings, user = queue.settings, actor.user
    name = settings.name
    if not queue.enabled:
        raise Refusal("queue-disabled", f"Queue is not enabled: {name}")
    if settings.users and user not in settings.users:
        raise Refusal("queue-access", f"Access to queue is denied: {name} is not for user {user}")
    if settings.groups and actor.group not in settings.groups:
        raise Refusal(
            "queue-access", f"Access to queue is denied: {name} is not for group {actor.group}"
        )
    count = max(len(prepared.indices), 1)
    if (most := settings.max_queued) is not None and queue.total + count > most:
        raise Refusal(
            "queue-limit", f"queue {name} takes at most {most} jobs; it has {queue.total}"
        )
    reservations.check_times(core, queue, prepared.request)
    has = queue.users.get(user, 0)
    if (most := settings.max_queued_per_user) is not None and has + count > most:
        raise Refusal(
            "queue-limit", f"queue {name} takes at most {most} jobs of one user; {user} has {has}"
        )
    has = core.user_jobs.get(user, 0)
    if is_new and (most := core.settings.max_jobs_per_user) is not None and has + count > most:
        raise Refusal("too-many-jobs", f"a user may have {most} jobs; {user} has {has}")


def _prepared(core: Core, spec: Spec, queue: QueueState) -> Prepared:
    found, known = core.prepared, None
    if LOG_NUMBER not in spec.extra:  # each job of a log is different
        known = _encode(msgspec.structs.replace(spec, name="", queue="")), queue.settings.name
        if (prepared := found.get(known)) is not None:
            return prepared
    prepared = prepare(core, spec, queue)
    _check_as_openpbs(core, spec, prepared, known_names(core, queue))
    if known is not None:
        if len(found) >= _MOST_CACHED:
            found.popitem(last=False)
        found[known] = prepared
    return prepared


def prepare(core: Core, spec: Spec, queue: QueueState) -> Prepared:
    """Read a specification for a queue, and refuse all that depends on neither the moment nor the
    user."""
    _check_texts(spec)
    asked = asked_of(core, spec, queue)
    indices: tuple[int, ...] = ()
    slot_limit = None
    if spec.array:
        try:
            listed, slot_limit = parse_indices(spec.array)
        except ValueError as error:
            raise Refusal("bad-value", f"illegal -J value: {error}") from None
        if len(listed) > (most := core.settings.max_array):
            raise Refusal(
                "array-too-large",
                f"Array job exceeds server or queue size limit: {len(listed)} jobs in one array; "
                f"{most} are allowed (max_array)",
            )
        indices = tuple(listed)
    if spec.tasks and len(spec.tasks) != len(indices):
        raise Refusal(
            "bad-value",
            f"illegal tasks: {len(spec.tasks)} are described, the array has {len(indices)}",
        )
    for task in spec.tasks:
        if not (
            0 <= task.walltime < 1 << 60
            and 0 <= task.runtime < 1 << 60
            and -1 <= task.route < 1 << 53
        ):
            raise Refusal("bad-value", "illegal tasks: a time or a draw is out of range")
        _check_limits(queue, asked.demand.procs, asked.demand.memory, task.walltime)
    of_job = msgspec.structs.replace(spec, name="") if spec.name else spec
    return Prepared(
        of_job, asked.demand, asked.walltime, asked.request, indices, slot_limit, asked.listed
    )


def asked_of(
    core: Core, spec: Spec, queue: QueueState, partitions: tuple[str, ...] | None = None
) -> Prepared:
    """Return what the resources of a specification ask for; refuse those that the queue or its
    hosts do not have.  ``partitions``: in place of those of the queue."""
    known = queue.settings.name, spec.is_torque, *spec.resources.items()
    if (asked := core.asked.get(known)) is not None:
        return asked
    try:
        demand = parse_demand(spec.resources, is_torque=spec.is_torque)
    except ResourceFault as fault:
        raise Refusal(fault.code, str(fault)) from None
    settings = queue.settings
    pool = core.pools[queue.pool]
    if partitions is None:
        partitions = _partitions_of(pool.machine, queue)
    walltime = demand.walltime
    if walltime is None:
        walltime = default_time(pool.machine, partitions) or min(
            settings.default_walltime, settings.max_walltime or settings.default_walltime
        )
    if settings.default_memory and not demand.memory:
        chunks = tuple(
            msgspec.structs.replace(chunk, memory=settings.default_memory)
            for chunk in demand.chunks
        )
        demand = msgspec.structs.replace(demand, chunks=chunks)
    _check_limits(queue, demand.procs, demand.memory, walltime)
    # A chunk that asks for a host is placed before one that can go anywhere.
    placed = sorted(_chunks(demand, pool, settings.name), key=lambda chunk: chunk.host < 0)
    if (of_server := server_chunk(pool.machine, spec.resources)) is not None:
        placed.append(of_server)
    request = Job(
        number=0,
        submit=0,
        procs=demand.procs,
        estimate=walltime,
        memory=demand.memory,
        chunks=tuple(placed),
        resources=total_of(placed),
        placing=demand.placing,
        is_exclusive=demand.is_exclusive,
        reservation=queue.reservation,
        partitions=partitions,
    )
    if has_limits(pool.machine):
        whole = JobRequest(request.chunks, request.placing, request.is_exclusive, partitions)
        allowed = limited(pool.machine, whole, walltime)
        request = msgspec.structs.replace(
            request, is_exclusive=allowed.is_exclusive, partitions=allowed.partitions
        )
    reason = refusal(pool.machine, request)
    if reason is not None:
        text = reason.text.replace(
            "the largest host has", f"the largest host of queue {settings.name} has"
        )
        raise Refusal("never-fits", f"the job can never run in queue {settings.name}: {text}")
    listed = Listed(listed_resources(spec.resources, demand, walltime))
    if len(core.asked) >= _MOST_CACHED:
        core.asked.popitem(last=False)
    core.asked[known] = asked = Prepared(Spec(), demand, walltime, request, listed=listed)
    return asked


def _partitions_of(machine: Machine, queue: QueueState) -> tuple[str, ...]:
    """Return the partitions in which the jobs of a queue run, none for the default one.  Those of a
    reservation run in all that have one of its hosts."""
    if queue.settings.partition:
        return (queue.settings.partition,)
    kept = next((each for each in machine.reservations if each.name == queue.reservation), None)
    if kept is None:
        return ()
    return tuple(
        each.name for each in machine.partitions if not set(kept.hosts).isdisjoint(each.hosts)
    )


def _chunks(demand: Demand, pool: PoolState, queue: str) -> Iterator[ChunkRequest]:
    """Yield the chunks for the engine, with the places of the hosts that they name.

    Unknown hosts are refused, as are certain, different and whole hosts in a pool that does not
    place chunks on hosts.
    """
    hosts, is_chunked = pool.machine.real_hosts, pool.machine.chunked
    if demand.is_exclusive and not is_chunked:
        raise Refusal(
            "unsupported",
            f"whole hosts (place=excl) are not available: jobs of queue {queue} share hosts",
        )
    is_scattered = demand.placing == "scatter" and sum(chunk.count for chunk in demand.chunks) > 1
    if is_scattered and not is_chunked and len(hosts) > 1:
        text = f"the policy of queue {queue} chooses the host; write ncpus={demand.procs}"
        raise Refusal(
            "unsupported", f"different hosts (nodes=, place=scatter) cannot be asked for: {text}"
        )
    places = {host.name: place for place, host in enumerate(hosts)}
    for chunk in demand.chunks:
        place = places.get(chunk.host, -1) if chunk.host else -1
        if chunk.host and place < 0:
            known = ", ".join(list(places)[:20]) + (", ..." if len(places) > 20 else "")
            raise Refusal(
                "never-fits",
                f"the job can never run: queue {queue} has no host {chunk.host} ({known})",
            )
        if chunk.host and not is_chunked and len(places) > 1:
            text = (
                f"host {chunk.host} cannot be asked for: the policy of queue {queue} chooses "
                "the host"
            )
            raise Refusal("unsupported", text)
        yield ChunkRequest(
            chunk.count,
            chunk.procs,
            chunk.memory,
            place if is_chunked else -1,
            *counted_of(pool.machine, chunk),
        )


def known_names(core: Core, queue: QueueState) -> frozenset[str]:
    """Return the resources that jobs of a queue may name in addition to those of PBS."""
    return counted_names(core.pools[queue.pool].machine).union(core.settings.custom_resources)


def _check_as_openpbs(core: Core, spec: Spec, prepared: Prepared, known: frozenset[str]) -> None:
    """Refuse what OpenPBS refuses to every user, unless the server is lenient about it
    (:mod:`qbatch.wire.resource_rules`).  ``known``: :func:`known_names`."""
    settings = core.settings
    found = refused_resource(
        spec.resources,
        prepared.demand,
        known,
        settings.lenient,
        is_torque=spec.is_torque,
    )
    if found is not None:
        raise Refusal(*found)
    if (
        len(prepared.indices) == 1
        and not spec.tasks
        and not spec.is_torque
        and "array" not in settings.lenient
    ):
        raise Refusal(
            "illegal-option",
            f"illegal -J value: {spec.array} is one job; an array has at least two, as in 1-2",
        )
    if any("\0" in value or len(value) > LONGEST_PATH * 8 for value in spec.extra.values()):
        raise Refusal(
            "bad-value", f"illegal -W value: a NUL or more than {LONGEST_PATH * 8} letters"
        )
    for name in ("stagein", "stageout"):
        if name in spec.extra:
            try:
                parse_staging(spec.extra[name], names_of(spec.host))
            except ValueError as error:
                raise Refusal("bad-value", f"illegal -W value: {name}: {error}") from None


def _check_asker(core: Core, actor: Actor, spec: Spec) -> None:
    """Refuse another server, and a user or a group other than the submitter's, unless the server is
    lenient about it."""
    check_server(core, spec.queue.partition("@")[2], spec.host)
    others = [name for name in _names(spec.extra.get("user_list", "")) if name != actor.user]
    if others and "user" not in core.settings.lenient:
        text = (
            f"Bad UID for job execution: -u {others[0]}; a job runs as the user who submits "
            "it, "
            f"{actor.user}"
        )
        raise Refusal("bad-user", text)
    check_group(core, actor.group, spec)


def check_group(core: Core, group: str, spec: Spec) -> None:
    """Refuse a ``group_list`` that names a group other than that of the job's owner."""
    others = [name for name in _names(spec.group_list) if name != group]
    if others and "user" not in core.settings.lenient:
        text = (
            f"Bad GID for job execution: group_list={others[0]}; jobs run in the group of "
            "their "
            f"owner, {group}"
        )
        raise Refusal("bad-group", text)


def check_server(core: Core, server: str, host: str) -> None:
    """Refuse another server than this one, as in ``queue@server``; ``host``: this machine, as the
    client calls it."""
    settings = core.settings
    if (
        server
        and server not in names_of(host) | {settings.name}
        and "server" not in settings.lenient
    ):
        raise Refusal(
            "unknown-server",
            f"cannot connect to server {settings.name} (errno=15008): it is no server {server}",
        )


def _names(text: str) -> list[str]:
    """Return the users of -u, or the groups of group_list, without their hosts."""
    return (
        [part.partition("@")[0].strip() for part in text.split(",") if part.strip()] if text else []
    )


def _check_limits(queue: QueueState, procs: int, memory: int, walltime: int) -> None:
    settings = queue.settings
    limits = (
        ("ncpus", procs, settings.max_procs, settings.min_procs, str),
        ("mem", memory, settings.max_memory, None, format_size),
        ("walltime", walltime, settings.max_walltime, settings.min_walltime, format_duration),
    )
    for name, value, most, least, text in limits:
        if most is not None and value > most:
            wrong = f"{name}={text(value)} is more than {text(most)}"
        elif least is not None and value < least:
            wrong = f"{name}={text(value)} is less than {text(least)}"
        else:
            continue
        raise Refusal(
            "resource-limit", f"Job violates queue limits: {wrong} (queue {settings.name})"
        )


def check_name(name: str, is_torque: bool = False) -> None:
    """Refuse a name that PBS clients could not read back; in Torque a name may have slashes."""
    if not 0 < len(name) <= LONGEST_NAME:
        raise Refusal(
            "bad-value",
            f"illegal -N value: a name has 1 to {LONGEST_NAME} letters, not {len(name)}",
        )
    slash = "" if is_torque and not name.endswith("/") else "/"
    if name.isalnum():
        return
    bad = next(
        (each for each in name if not each.isprintable() or each.isspace() or each == slash), None
    )
    if bad is not None:
        raise Refusal("bad-value", f"illegal -N value: {bad!r} is not allowed in a name")


def _check_texts(spec: Spec) -> None:
    if (spec.script is None) == (not spec.argv):
        raise Refusal("bad-request", "a submission has either a script or a command")
    size = len(spec.script or "") + len("".join(spec.argv))
    if size > LONGEST_SCRIPT:
        raise Refusal(
            "too-large",
            f"the script has {size} letters; {LONGEST_SCRIPT} are allowed, more with upload",
        )
    if spec.script_digest and (spec.argv or not re.fullmatch(r"[0-9a-f]{64}", spec.script_digest)):
        raise Refusal("bad-value", f"{spec.script_digest[:64]!r} is no SHA-256 digest of a script")
    for name, text in (
        ("-o", spec.output),
        ("-e", spec.error),
        ("-S", spec.shell),
        ("directory", spec.directory),
        ("-A", spec.account),
        ("-P", spec.project),
        ("-M", spec.mail_users),
        ("host", spec.host),
        ("-W group_list", spec.group_list),
        ("arguments", spec.submit_arguments),
    ):
        if text and (
            "\0" in text or (name != "arguments" and "\n" in text) or len(text) > LONGEST_PATH * 8
        ):
            raise Refusal(
                "bad-value",
                (
                    f"illegal {name} value: a NUL, a line break or more than {LONGEST_PATH * 8} "
                    "letters"
                ),
            )
    if "\0" in "".join(spec.argv) or "\0" in (spec.script or ""):
        raise Refusal("bad-value", "a NUL byte is not allowed in a script or a command")
    total = 0
    for name, value in spec.variables.items():
        if not name or "=" in name or "\0" in name or "\0" in value:
            wrong = f"{name[:60]!r} cannot be the name of a variable, or its value has a NUL"
            raise Refusal("bad-value", f"illegal -v value: {wrong}")
        total += len(name) + len(value) + 2
    if total > MOST_ENVIRONMENT:
        text = (
            f"the environment has {total} letters; {MOST_ENVIRONMENT} are allowed (use -v "
            "instead of -V)"
        )
        raise Refusal("too-large", text)
    if spec.encoding not in ("utf-8", "latin-1"):
        raise Refusal("bad-value", f"encoding {spec.encoding[:20]!r} is neither utf-8 nor latin-1")
    if not -1024 <= spec.priority <= 1023:
        raise Refusal("bad-value", f"illegal -p value: {spec.priority} is not from -1024 to 1023")
    if spec.join not in ("n", "oe", "eo"):
        raise Refusal("bad-value", f"illegal -j value: {spec.join[:20]!r} is not one of oe, eo, n")
    for number, end, wrong in (
        (spec.runtime, 1 << 60, "runtime: it is negative or too long"),
        (spec.used_memory, 1 << 60, "used memory: it is negative or too much"),
        (spec.umask, 0o1000, "umask: it is not from 000 to 777"),
        (spec.not_before, 1 << 60, "-a value: out of range"),
    ):
        if number is not None and not 0 <= number < end:
            raise Refusal("bad-value", f"illegal {wrong}")


def digests(core: Core) -> set[str]:
    """Return the digests of the long scripts of live jobs."""
    return {job.spec.script_digest for job in core.jobs.values()} - {""}
