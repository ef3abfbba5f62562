"""Jobs, queues, servers and hosts as lists of PBS attributes, from which every full format is made.
Pure functions."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from qbatch.cli.pbs.text import MICROSECONDS, ctime
from qbatch.wire.attributes import JOB_ATTRIBUTES, PLACE_OF
from qbatch.wire.records import (
    DEFAULT_PROJECT,
    HostRecord,
    JobRecord,
    QueueRecord,
    ReservationRecord,
    ServerRecord,
)
from qbatch.wire.resources import format_duration, format_size

_STATE_COUNTS = {
    "Transit": "T",
    "Queued": "Q",
    "Held": "H",
    "Waiting": "W",
    "Running": "RSU",
    "Exiting": "E",
    "Begun": "B",
}
_NAMES_OF_EXTRA = {
    **{each.field: each.name for each in JOB_ATTRIBUTES},
    "init_dir": "init_work_dir",
}
_FIRST_VARIABLES = [
    f"PBS_O_{name}"
    for name in ("HOME", "LANG", "LOGNAME", "PATH", "MAIL", "SHELL", "TZ", "WORKDIR", "SYSTEM")
]
_LAST_VARIABLES = ("PBS_O_QUEUE", "PBS_O_HOST")
_MOST_NUMBERS = 1000
_TORQUE_STATES = {"F": "C", "X": "C", "M": "C", "B": "R", "U": "S"}
RESERVATION_STATES = {
    "confirmed": ("CO", "RESV_CONFIRMED"),
    "running": ("RN", "RESV_RUNNING"),
    "over": ("FN", "RESV_FINISHED"),
}
"""How PBS writes the state of a reservation: in a table, and in full."""

_ARRAY_COUNTS = (("Queued", "QHW"), ("Running", "RSU"), ("Exiting", "E"), ("Expired", "XF"))


class Attribute(NamedTuple):
    """``name = value`` or ``name.resource = value``; a time also has its ``instant``."""

    name: str
    resource: str
    value: str
    instant: int | None = None

    @property
    def full_name(self) -> str:
        """The name as one word."""
        return f"{self.name}.{self.resource}" if self.resource else self.name


def shown_state(job: JobRecord, is_torque: bool) -> str:
    """Return the letter of a job's state in a dialect; Torque has C for jobs that have ended, and
    no letter for begun arrays.  The jobs of an array that is held are queued: the array is held."""
    state = "Q" if job.is_held_with_array else job.state
    return _TORQUE_STATES.get(state, state) if is_torque else state


def variable_list(variables: Mapping[str, str]) -> str:
    """Return the variables as one value, ``A=1,B=x\\,y``, with a backslash before each comma and
    backslash."""
    escapes = str.maketrans({"\\": "\\\\", ",": "\\,"})
    return ",".join(f"{name}={value.translate(escapes)}" for name, value in variables.items())


def ordered_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables in the order of OpenPBS: those of the submission first, the two that the
    server adds last."""
    first = {name: variables[name] for name in _FIRST_VARIABLES if name in variables}
    last = {name: variables[name] for name in _LAST_VARIABLES if name in variables}
    others = {name: variables[name] for name in variables if name not in last}
    return {**first, **others, **last}


def array_counts(counts: Mapping[str, int]) -> str:
    """Return ``Queued:0 Running:1 Exiting:0 Expired:2``, from counts by letter or by word."""
    return " ".join(
        f"{word}:{counts.get(word, 0) + sum(counts.get(letter, 0) for letter in letters)}"
        for word, letters in _ARRAY_COUNTS
    )


def state_counts(counts: Mapping[str, int]) -> str:
    """Return ``Transit:0 Queued:3 ...`` from counts by letter; suspended jobs count as running."""
    return "".join(
        f"{word}:{sum(counts.get(each, 0) for each in letters)} "
        for word, letters in _STATE_COUNTS.items()
    )


def job_attributes(job: JobRecord, server: str = "", is_torque: bool = False) -> list[Attribute]:
    """Return the attributes that a job has, in the order in which ``qstat -f`` of PBS shows
    them."""
    found: list[Attribute] = []
    _add(found, "Job_Name", job.name or "-")
    _add(found, "Job_Owner", job.owner or job.user)
    for name, value in job.used.items():
        _add(found, "resources_used", value, name)
    _add(found, "job_state", shown_state(job, is_torque))
    _add(found, "queue", job.queue)
    _add(found, "server", job.server or server)
    _add(found, "Account_Name", job.account)
    _add(found, "Checkpoint", job.checkpoint)
    _add_time(found, "ctime", job.submitted)
    _add(found, "Error_Path", _with_host(job.error, job.owner))
    _add_time(found, "Execution_Time", job.not_before)
    _add(found, "exec_host", torque_hosts(job) if is_torque else job.exec_host)
    _add(found, "exec_vnode", job.exec_vnode)
    _add(found, "Hold_Types", job.hold or "n")
    _add(found, "Join_Path", job.join)
    _add(found, "Keep_Files", job.keep)
    _add(found, "Mail_Points", job.mail_points)
    _add(found, "Mail_Users", job.mail_users)
    _add_time(found, "mtime", job.modified)
    _add(found, "Output_Path", _with_host(job.output, job.owner))
    _add(found, "Priority", job.priority)
    _add_time(found, "qtime", job.queued)
    _add(found, "Rerunable", str(job.is_rerunnable))
    for name, value in job.resources.items():
        _add(found, "Resource_List", value, name)
    _add(found, "Shell_Path_List", job.shell)
    _add_time(found, "start_time" if is_torque else "stime", job.started)
    _add_time(found, "comp_time" if is_torque else "obittime", job.ended)
    _add(found, "session_id", job.session)
    _add_rest(found, job, is_torque)
    return sorted(found, key=lambda each: PLACE_OF.get(each.name, len(PLACE_OF)))


def torque_hosts(job: JobRecord) -> str:
    """Return ``exec_host`` as Torque writes it, a number for each processor: ``n0/2+n0/3+n1/0``."""
    found: list[str] = []
    for part in (job.exec_slots or job.exec_host).split("+"):
        host, _, numbers = part.rpartition("/")
        first, star, count = numbers.partition("*")
        if star and first.isdecimal() and count.isdecimal():
            numbers = f"{first}-{int(first) + int(count) - 1}"
        for part_of_host in numbers.split(","):
            low, dash, high = part_of_host.partition("-")
            if (
                not dash
                or not (low.isdecimal() and high.isdecimal())
                or int(high) - int(low) > _MOST_NUMBERS
            ):
                # A long range stays one, as in newer releases of Torque.
                found.append(f"{host}/{part_of_host}" if host else part_of_host)
            else:
                found += [f"{host}/{number}" for number in range(int(low), int(high) + 1)]
    return "+".join(found)


def comment_of(job: JobRecord) -> str:
    """Return the comment that ``qstat`` shows: when and where the job runs and how it ended, in the
    words of OpenPBS, then what else is known."""
    if job.started is None or not job.exec_vnode or job.state == "S" or job.is_array:
        return job.comment
    begun = time.strftime("%a %b %d at %H:%M", time.localtime(job.started // MICROSECONDS))
    ran = f"Job run at {begun} on {job.exec_vnode}"
    if job.ended is not None:
        if job.comment.startswith("terminated"):
            return f"{ran} and {job.comment}"
        ran += " and failed" if job.exit_status else " and finished"
    return f"{ran}; {job.comment}" if job.comment else ran


def _with_host(path: str, owner: str) -> str:
    """Return an absolute path as PBS shows it, ``host:path``, with the host of the submission."""
    host = owner.partition("@")[2]
    return f"{host}:{path}" if host and path.startswith("/") else path


def _add(found: list[Attribute], name: str, value: str | int | None, resource: str = "") -> None:
    if value is not None and value != "":
        found.append(Attribute(name, resource, str(value)))


def _add_time(found: list[Attribute], name: str, instant: int | None, resource: str = "") -> None:
    if instant is not None:
        found.append(Attribute(name, resource, ctime(instant), instant))


def price_text(price: int) -> str:
    """Return a price in processor-hours, from millionths of them."""
    return f"{price // 1_000_000}.{price % 1_000_000:06d}"


def _add_rest(found: list[Attribute], job: JobRecord, is_torque: bool) -> None:
    if job.started is not None and not is_torque:
        _add(found, "jobdir", job.directory)
        _add(found, "Stageout_status", job.stageout)
    _add(found, "substate", job.substate)
    _add(found, "Variable_List", variable_list(ordered_variables(job.variables)))
    _add(found, "comment", comment_of(job))
    _add_time(found, "etime", job.eligible)
    _add(found, "umask", None if job.umask is None else f"{job.umask:o}")
    _add(found, "run_count", job.run_count or None)
    _add(found, "exit_status" if is_torque else "Exit_status", job.exit_status)
    _add(found, "group_list", job.group_list)
    _add(found, "Submit_arguments" if not is_torque else "submit_args", job.submit_arguments)
    if job.ended is not None and not is_torque:
        _add(found, "history_timestamp", job.ended // MICROSECONDS)
    _add(found, "project", job.project or DEFAULT_PROJECT)
    _add(found, "submit_host" if is_torque else "Submit_Host", job.owner.partition("@")[2])
    if job.is_blocking:
        _add(found, "block", "True")
    if job.is_array:
        _add(found, "array", "True")
        _add(found, "array_state_count", array_counts(job.array_counts))
        _add(found, "array_indices_submitted", job.array_submitted)
        _add(found, "array_indices_remaining", job.array_remaining or "-")
        _add(found, "max_run_subjobs", job.slot_limit)
    if job.array_index is not None:
        _add(found, "array_id", job.array_id)
        _add(found, "array_index", job.array_index)
    _add(found, "depend", job.depend)
    if job.deadline is not None:
        _add_time(found, "deadline", job.deadline)
        _add_time(found, "latest_start", job.promised)  # the latest that keeps the deadline
        _add_time(found, "planned_start", job.planned)
        if job.planned is not None and job.promised is not None:
            _add(found, "deadline_slack", format_duration(job.promised - job.planned))
        _add(found, "price", None if job.price is None else price_text(job.price))
    if job.started is None:
        starts = (
            each for each in (job.estimated_start, job.planned, job.promised) if each is not None
        )
        _add_time(found, "estimated", next(starts, None), "start_time")
    known = {each.name for each in found}
    for field, value in job.extra.items():
        name = _NAMES_OF_EXTRA.get(field, field)
        if name not in known:
            _add(found, name, value)


def queue_attributes(queue: QueueRecord) -> list[Attribute]:
    """Return the attributes of a queue that ``qstat -Q -f`` shows."""
    default = None if queue.default_walltime is None else format_duration(queue.default_walltime)
    return _attributes(
        [
            ("queue_type", "", queue.kind),
            ("partition", "", queue.partition),
            ("Priority", "", queue.priority or None),
            ("total_jobs", "", queue.total),
            ("state_count", "", state_counts(queue.counts)),
            ("max_queued", "", queue.max_queued),
            ("max_running", "", queue.max_running),
            ("max_user_run", "", queue.max_running_per_user),
            (
                "resources_max",
                "mem",
                None if queue.max_memory is None else format_size(queue.max_memory),
            ),
            ("resources_max", "ncpus", queue.max_procs),
            (
                "resources_max",
                "walltime",
                None if queue.max_walltime is None else format_duration(queue.max_walltime),
            ),
            ("resources_default", "walltime", default),
            *(("resources_assigned", name, value) for name, value in queue.assigned.items()),
            ("route_destinations", "", ",".join(queue.destinations)),
            ("acl_users", "", ",".join(queue.users)),
            ("comment", "", queue.comment),
            ("enabled", "", queue.enabled),
            ("started", "", queue.started),
        ]
    )


def server_attributes(server: ServerRecord, version: str) -> list[Attribute]:
    """Return the attributes of the server that ``qstat -B -f`` shows; ``version``: that of PBS.

    Those of OpenPBS are shown as far as they hold here.
    """
    owners = dict.fromkeys(name for name in (server.owner, *server.managers) if name)
    return _attributes(
        [
            ("server_state", "", server.state),
            ("server_host", "", server.name),
            ("scheduling", "", server.state not in ("Idle", "Paused")),
            ("total_jobs", "", server.total),
            ("state_count", "", state_counts(server.counts)),
            ("managers", "", ",".join(f"{name}@*" if "@" not in name else name for name in owners)),
            ("operators", "", ",".join(server.operators)),
            ("default_queue", "", server.default_queue),
            ("mailer", "", server.mail_command),
            ("query_other_jobs", "", True),
            ("resources_default", "ncpus", 1),
            ("default_chunk", "ncpus", 1),
            *(("resources_assigned", name, value) for name, value in server.assigned.items()),
            ("comment", "", "; ".join(server.problems)),
            ("flatuid", "", True),
            ("resv_enable", "", False),
            ("max_array_size", "", server.max_array or None),
            ("pbs_version", "", version),
            ("eligible_time_enable", "", False),
            ("job_history_enable", "", server.is_history_kept),
            (
                "job_history_duration",
                "",
                None if server.history_kept is None else format_duration(server.history_kept),
            ),
            ("qbatch_version", "", server.version),
            ("qbatch_policy", "", server.policy),
            (
                "qbatch_slice",
                "",
                "; ".join(f"{phase.name} on {phase.pool}" for phase in server.phases),
            ),
        ]
    )


def _named(amounts: Mapping[str, int]) -> Iterator[tuple[str, int | str]]:
    """Yield resources of a machine file under their names in PBS: GPUs are ``ngpus``, and their
    type is ``accelerator_model``."""
    for name, amount in amounts.items():
        kind, colon, of_type = name.partition(":")
        if not colon:
            yield "ngpus" if name == "gpu" else name, amount
        elif kind == "gpu":
            yield "accelerator_model", of_type


def host_attributes(host: HostRecord) -> list[Attribute]:
    """Return the attributes of a host that ``pbsnodes`` shows."""
    slots = [f"{job}/{place}" for place, job in enumerate(host.jobs)]
    return _attributes(
        [
            ("Mom", "", host.name),
            ("ntype", "", "PBS"),
            ("state", "", host.state),
            ("pcpus", "", host.cpus),
            ("jobs", "", ", ".join(slots)),
            ("resources_available", "arch", "linux"),
            ("resources_available", "host", host.name),
            ("resources_available", "mem", format_size(host.memory) if host.memory else None),
            ("resources_available", "ncpus", host.cpus),
            *(("resources_available", *each) for each in _named(host.resources)),
            *(("resources_available", name, True) for name in host.features),
            ("resources_available", "pool", host.pool if host.has_other_pools else ""),
            ("resources_available", "vnode", host.name),
            ("resources_assigned", "accelerator_memory", "0kb"),
            ("resources_assigned", "hbmem", "0kb"),
            ("resources_assigned", "mem", format_size(host.memory_used)),
            ("resources_assigned", "naccelerators", 0),
            ("resources_assigned", "ncpus", host.cpus_used),
            *(
                ("resources_assigned", *each)
                for each in _named(host.resources_used)
                if isinstance(each[1], int)
            ),
            ("resources_assigned", "vmem", "0kb"),
            ("queue", "", host.own_queue),
            ("resv", "", ", ".join(host.reservations)),
            ("resv_enable", "", True),
            ("sharing", "", "default_shared"),
            ("comment", "", host.comment),
            ("qbatch_queue", "", ", ".join(host.queue or ())),
        ]
    )


def reservation_attributes(kept: ReservationRecord, server: str) -> list[Attribute]:
    """Return the attributes of a reservation that ``pbs_rstat -f`` shows."""
    nodes = "+".join(f"({host})" for host in kept.hosts)
    rows: list[tuple[str, str, object]] = [
        ("Reserve_Name", "", kept.title or "NULL"),
        ("Reserve_Owner", "", f"{kept.owner}@localhost" if kept.owner else ""),
        ("reserve_state", "", RESERVATION_STATES[kept.state][1]),
        ("reserve_start", "", None if kept.start is None else ctime(kept.start)),
        ("reserve_end", "", None if kept.end is None else ctime(kept.end)),
        ("reserve_duration", "", kept.duration // MICROSECONDS),
        ("queue", "", "" if kept.is_maintenance else kept.name),
        ("Resource_List", "ncpus", kept.procs),
        ("Resource_List", "nodect", len(kept.hosts)),
        *(
            ("Resource_List", name, value)
            for name, value in kept.resources.items()
            if name not in ("ncpus", "nodect")
        ),
        ("resv_nodes", "", nodes),
        ("Authorized_Users", "", ",".join(kept.users)),
        ("server", "", server),
        ("ctime", "", None if kept.made is None else ctime(kept.made)),
        ("qbatch_repeat", "", kept.repeat),
        ("qbatch_times", "", kept.times or None),
        ("qbatch_maintenance", "", True if kept.is_maintenance else None),
    ]
    return _attributes(rows)


def torque_host_attributes(host: HostRecord, now: int) -> list[Attribute]:
    """Return the attributes of a host that Torque's ``pbsnodes`` shows; ``now``: the server's
    instant in microseconds."""
    state = "job-exclusive" if host.state == "job-busy" else host.state
    seconds, free = now // MICROSECONDS, max(host.memory - host.memory_used, 0)
    memory = (
        f",totmem={host.memory // 1024}kb,availmem={free // 1024}kb,physmem={host.memory // 1024}kb"
        if host.memory
        else ""
    )
    jobs = " ".join(dict.fromkeys(host.jobs))
    return _attributes(
        [
            ("state", "", state),
            ("power_state", "", "Running"),
            ("np", "", host.cpus),
            ("ntype", "", "cluster"),
            ("jobs", "", ", ".join(f"{place}/{job}" for place, job in enumerate(host.jobs))),
            (
                "status",
                "",
                f"rectime={seconds},jobs={jobs},state={state},ncpus={host.cpus}{memory},opsys=linux",
            ),
            ("note", "", host.comment),
            ("mom_service_port", "", 15002),
            ("mom_manager_port", "", 15003),
            ("gpus", "", host.resources.get("gpu", 0)),
        ]
    )


def _attributes(rows: list[tuple[str, str, object]]) -> list[Attribute]:
    return [
        Attribute(name, resource, str(value))
        for name, resource, value in rows
        if value is not None and value != ""
    ]
