"""The answers of a daemon, one struct for each kind.  The tables, the PBS texts and ``--json`` are
made from them.

Instants are microseconds since 1970 on the server's clock (in virtual time: on the clock of its
log), None if there is none.  Durations are microseconds and memory is bytes, unless a field is a
text as PBS writes it.
"""

from __future__ import annotations

import msgspec

from qbatch.model.quote import Quote
from qbatch.model.reasons import Reason
from qbatch.wire.errors import ErrorRecord

DEFAULT_PROJECT = "_pbs_project_default"
"""The project that PBS shows for a job that has none."""


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The base of all answers."""


class JobRecord(Record, frozen=True, gc=False):
    """One job as ``qstat`` shows it.

    ``state``: one letter (docs/spec/pbs.md 5: B E F H M Q R S T U W X).  ``resources``:
    Resource_List.  ``used``: resources_used (cput and walltime as HH:MM:SS, mem and vmem as sizes,
    cpupercent and ncpus as numbers).  A brief record has id, name, user, queue, state,
    ``used["cput"]`` and what the alternate table shows (session, hosts ``nodect`` and ncpus, mem
    and walltime in ``resources``, started).  ``pauses``: begin and end of each suspension, None for
    an end that has not come.  ``sizes``: each instant at which the policy resized it, and its
    processors from then on. ``trials``: begin, end, processors and hosts (as in ``exec_host``) of
    each trial run after which it went back into the queue; ``started`` is the start of its last
    attempt, which comes after them.  ``lost``: the execution intervals of the latest lost attempts
    (a host went down, or the job was rerun): number of the attempt, begin, end, processors and
    hosts. ``no_estimate``: why a waiting job has no forecast, if the request asked for forecasts.
    ``refused``: why it was refused after it was queued; it never ran.  ``broken``: the latest
    promises taken back: when, the start that was promised, and why.  ``deadline``: the instant by
    which it should end.  With a deadline, ``promised`` is the latest start that keeps it, and
    ``planned`` the start that the policy plans at present.  ``price``: its cost, fixed when it was
    accepted, in millionths of a processor-hour.  ``directory``: where it begins.  ``stageout``: of
    an ended job, 1 if all its files were delivered, else 0.  ``is_held_with_array``: a job of an
    array is held only because its array is.
    """

    id: str
    name: str
    user: str
    queue: str
    state: str
    owner: str = ""
    group: str = ""
    substate: int = 10
    hold: str = "n"
    priority: int = 0
    submitted: int | None = None
    queued: int | None = None
    eligible: int | None = None
    modified: int | None = None
    started: int | None = None
    ended: int | None = None
    not_before: int | None = None
    resources: dict[str, str] = {}
    used: dict[str, str] = {}
    exec_host: str = ""
    exec_vnode: str = ""
    exit_status: int | None = None
    output: str = ""
    error: str = ""
    join: str = "n"
    keep: str = "n"
    mail_points: str = "a"
    mail_users: str = ""
    is_rerunnable: bool = True
    checkpoint: str = "u"
    account: str = ""
    project: str = ""
    group_list: str = ""
    shell: str = ""
    variables: dict[str, str] = {}
    submit_arguments: str = ""
    comment: str = ""
    run_count: int = 0
    session: int | None = None
    directory: str = ""
    depend: str = ""
    is_blocking: bool = False
    umask: int | None = None
    stageout: int | None = None
    server: str = ""
    is_array: bool = False
    is_held_with_array: bool = False
    array_id: str = ""
    array_index: int | None = None
    array_submitted: str = ""
    array_remaining: str = ""
    array_counts: dict[str, int] = {}
    slot_limit: int | None = None
    promised: int | None = None
    estimated_start: int | None = None
    no_estimate: str = ""
    reason: str = ""
    attempt: int = 0
    pauses: tuple[tuple[int, int | None], ...] = ()
    sizes: tuple[tuple[int, int], ...] = ()
    extra: dict[str, str] = {}
    trials: tuple[tuple[int, int, int, str], ...] = ()
    lost: tuple[tuple[int, int, int, int, str], ...] = ()
    exec_slots: str = ""
    refused: Reason | None = None
    broken: tuple[tuple[int, int, str], ...] = ()
    deadline: int | None = None
    price: int | None = None
    planned: int | None = None

    @property
    def first_started(self) -> int | None:
        """The instant at which it first ran, in a trial run or an attempt."""
        begun = [begin for begin, *_ in self.thrown_away]
        return min(begun) if begun else self.started

    @property
    def thrown_away(self) -> list[tuple[int, int, int, str]]:
        """Begin, end, processors and hosts of its trial runs and of the execution intervals of lost
        attempts."""
        return [
            *self.trials,
            *((begin, end, procs, where) for _, begin, end, procs, where in self.lost),
        ]


class Jobs(Record, frozen=True):
    """A page of jobs.

    ``errors``: for requested identifiers that do not exist.  ``next``: the last identifier of this
    page, to ask for the next page, empty at the end.  ``now``: the server's instant.
    """

    jobs: tuple[JobRecord, ...] = ()
    errors: tuple[ErrorRecord, ...] = ()
    next: str = ""
    now: int = 0
    server: str = ""
    has_history: bool = True


class SubmissionRecord(Record, frozen=True):
    """The identifier that a submission got; with ``--dry-run`` it is empty, and ``comment``
    describes what would happen.

    ``quote``: with ``--dry-run``, the answer of the queue's policy, if it may refuse jobs and can
    quote.
    """

    job: str
    comment: str = ""
    quote: Quote | None = None


class Outcome(Record, frozen=True):
    """The result for one object that a command named.  ``exit_status``: of the job, if the command
    waited for it."""

    name: str
    error: ErrorRecord | None = None
    exit_status: int | None = None
    state: str = ""
    has_run: bool = False


class Outcomes(Record, frozen=True):
    """The results, in the order in which the command named the objects."""

    outcomes: tuple[Outcome, ...]


class QueueRecord(Record, frozen=True):
    """One queue.  ``kind``: Execution or Route.  ``counts``: jobs by state letter.  A limit of None
    means no limit.  ``assigned``: what its running jobs have, as in ``resources_assigned``.
    ``partition``: the partition in which its jobs run."""

    name: str
    kind: str = "Execution"
    pool: str = ""
    enabled: bool = True
    started: bool = True
    priority: int = 0
    counts: dict[str, int] = {}
    total: int = 0
    max_queued: int | None = None
    max_running: int | None = None
    max_running_per_user: int | None = None
    max_procs: int | None = None
    max_walltime: int | None = None
    default_walltime: int | None = None
    max_memory: int | None = None
    destinations: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    policy: str = ""
    comment: str = ""
    assigned: dict[str, str] = {}
    partition: str = ""


class Queues(Record, frozen=True):
    """Queues in the order of the configuration."""

    queues: tuple[QueueRecord, ...]
    errors: tuple[ErrorRecord, ...] = ()
    now: int = 0
    server: str = ""


class ReservationRecord(Record, frozen=True):
    """One reservation.

    ``name``: that of its queue; ``id``: with the server.  ``state``: ``confirmed``, ``running`` or
    ``over``.  ``start``, ``end``: of the present or next time.  ``times``: how often it comes, if it
    repeats (0: for ever).  ``owner``: empty if it is of the configuration.  ``title``,
    ``resources``: as its owner gave them.  ``procs``: of its hosts.
    """

    name: str
    id: str
    pool: str
    state: str
    hosts: tuple[str, ...]
    start: int | None
    end: int | None
    duration: int
    repeat: str = ""
    times: int = 0
    users: tuple[str, ...] = ()
    owner: str = ""
    title: str = ""
    resources: dict[str, str] = {}
    made: int | None = None
    is_maintenance: bool = False
    is_flexible: bool = False
    procs: int = 0


class Reservations(Record, frozen=True):
    """Reservations in order of their next start."""

    reservations: tuple[ReservationRecord, ...]
    errors: tuple[ErrorRecord, ...] = ()
    now: int = 0
    server: str = ""


class HostRecord(Record, frozen=True):
    """One host.  ``state``: free, job-busy, job-exclusive, resv-exclusive (reserved now),
    maintenance, offline (drained) or down.  ``jobs``: those that run there.

    ``queue``: the jobs that wait for this host, in the policy's order; None if the policy has no
    queue for each host.  ``has_other_pools``: whether the server has hosts of other pools.
    ``resources`` and ``resources_used``: named amounts that the host has, and that its jobs have;
    ``features``: what jobs may ask it to have.  ``reservations``: those of the host that are not
    over.
    """

    name: str
    pool: str
    state: str
    cpus: int
    cpus_used: int = 0
    memory: int = 0
    memory_used: int = 0
    jobs: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    comment: str = ""
    queue: tuple[str, ...] | None = None
    has_other_pools: bool = False
    resources: dict[str, int] = {}
    resources_used: dict[str, int] = {}
    features: tuple[str, ...] = ()
    reservations: tuple[str, ...] = ()

    @property
    def own_queue(self) -> str:
        """The queue to which the host belongs: the only one of its pool, if there are other
        pools."""
        return self.queues[0] if self.has_other_pools and len(self.queues) == 1 else ""


class Hosts(Record, frozen=True):
    """Hosts in the order of the configuration."""

    hosts: tuple[HostRecord, ...]
    errors: tuple[ErrorRecord, ...] = ()
    now: int = 0
    server: str = ""


class ClockRecord(Record, frozen=True):
    """The server's clock.

    ``mode``: real, scaled or virtual.  ``speed``: 0 is as fast as possible.  ``until``: where it
    will stop.  ``log_arrived`` and ``log_jobs``: jobs of the log that have arrived, and all of
    them.  ``ahead``: microseconds by which the server's real time is ahead of the machine's clock,
    which was set back.
    """

    mode: str
    now: int
    speed: float = 1.0
    is_paused: bool = False
    until: str = ""
    log_arrived: int | None = None
    log_jobs: int | None = None
    ahead: int = 0


class FedLogRecord(Record, frozen=True):
    """A workload log that a server runs: its hash, its number of jobs, their largest number (0:
    unknown), and the microseconds from the log's clock to the server's."""

    sha256: str
    jobs: int
    last_number: int
    offset: int


class PhaseRecord(Record, frozen=True):
    """The phase of a pool that is shared in time (:class:`qbatch.model.phase.Phase`).

    ``following``: the earliest instant at which each class has the machine.
    """

    pool: str
    name: str
    until: int | None = None
    following: dict[str, int] = {}
    on_disk: int = 0
    procs_on_disk: int = 0


class ServerRecord(Record, frozen=True):
    """The server: version, state, counts by state letter and the paths of its files.

    ``phases``: of pools that are shared in time.  ``log``: the workload log from which jobs have
    arrived.  ``owner``: the user who runs it, its first manager.  ``assigned``: what running jobs
    have, as in ``resources_assigned``.  ``max_array``, ``history_kept``,
    ``mail_command``: settings.
    """

    name: str
    version: str
    state: str = "Active"
    pid: int = 0
    policy: str = ""
    executor: str = ""
    default_queue: str = ""
    counts: dict[str, int] = {}
    total: int = 0
    clock: ClockRecord | None = None
    started: int = 0
    socket: str = ""
    store: str = ""
    config: str = ""
    is_compiled: bool = True
    operators: tuple[str, ...] = ()
    managers: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    is_history_kept: bool = True
    forecast_error: dict[str, float] = {}
    phases: tuple[PhaseRecord, ...] = ()
    log: FedLogRecord | None = None
    owner: str = ""
    assigned: dict[str, str] = {}
    max_array: int = 0
    history_kept: int | None = None
    mail_command: str = ""


class Explanation(Record, frozen=True):
    """Why a job waits: the reason's ``code``, ``text`` and numbers, its origin, the jobs ahead, and
    the expected start."""

    job: str
    state: str
    code: str
    text: str
    said_by: str = ""
    numbers: dict[str, int] = {}
    blocked_by: tuple[str, ...] = ()
    promised: int | None = None
    estimated_start: int | None = None
    no_estimate: str = ""
    now: int = 0


class ForecastRecord(Record, frozen=True):
    """The expected start and end of one waiting job if nothing else is submitted, its promised
    start and its deadline.

    ``code`` and ``reason``: why it has no forecast (``held``, ``dependency``, ``queue-stopped``,
    ``no-start``, ``not-reached``, ``no-forecast``, ``arriving``) if ``start`` and ``end`` are None.
    """

    job: str
    start: int | None = None
    end: int | None = None
    promised: int | None = None
    code: str = ""
    reason: str = ""
    deadline: int | None = None


class Forecasts(Record, frozen=True):
    """Every waiting job: by expected start, then those without a forecast, with the reason.

    ``made``: the instant of the state from which the forecast was made.
    """

    made: int
    jobs: tuple[ForecastRecord, ...]
    error_mean: float | None = None
    error_count: int = 0
    server: str = ""


class ShadowRecord(Record, frozen=True):
    """Results of a what-if policy for the jobs that came since it was set.

    ``is_real``: it is the policy that really decides in the ``pool``.  ``started``, ``ended``,
    ``waiting``: numbers of jobs. ``wait_mean_s`` and ``wait_max_s``: of the jobs that started, all
    the time before their last start or resumption in which they made no progress.
    ``bounded_slowdown_mean`` (10 s, unclipped): of those that ended.  ``utilisation``: busy
    processor time over processor time.  ``provisional``: jobs of which the real run time is not
    known (yet) and the walltime is used instead, with those that were there at the beginning.
    """

    policy: str
    pool: str = ""
    is_real: bool = False
    started: int = 0
    ended: int = 0
    waiting: int = 0
    wait_mean_s: float | None = None
    wait_max_s: float | None = None
    bounded_slowdown_mean: float | None = None
    utilisation: float | None = None
    provisional: int = 0


class Shadows(Record, frozen=True):
    """The what-if policies, the real one first: they were followed from ``since`` to ``made``;
    ``note`` names what is missing or went wrong."""

    policies: tuple[ShadowRecord, ...] = ()
    since: int | None = None
    made: int | None = None
    note: str = ""


class OutputFiles(Record, frozen=True):
    """The files on the server's machine to which a job's present attempt (number ``attempt``)
    writes.

    ``output``, ``error``: paths, of which the first that exists counts.  While the job runs, it is
    the spool file, or the file itself if the job writes to it directly; later the delivered file,
    or the kept one if delivery failed.  ``join``: ``oe`` or ``eo`` if both streams go to one file.
    ``is_waiting``: the job has not started (again) yet; ``is_running``: it may write more.
    ``removed``: the letters of the files that were removed because the job ended well (-R).
    """

    job: str
    state: str
    attempt: int = 0
    output: tuple[str, ...] = ()
    error: tuple[str, ...] = ()
    join: str = "n"
    is_waiting: bool = False
    is_running: bool = False
    comment: str = ""
    removed: str = ""


class TrailEntry(Record, frozen=True):
    """One event of a job: ``kind`` is L (log), S (scheduler) or A (accounting)."""

    at: int
    kind: str
    text: str


class Trails(Record, frozen=True):
    """All events of a job, in order."""

    job: str
    entries: tuple[TrailEntry, ...]


class Welcome(Record, frozen=True):
    """The server, and the user and role that it takes the client for."""

    server: str
    version: str
    protocol: int
    user: str
    role: str


class Done(Record, frozen=True):
    """The request is done."""

    text: str = ""


class Text(Record, frozen=True):
    """A text for the user."""

    text: str


class EventRecord(Record, frozen=True):
    """One event: ``kind`` is submitted, started, suspended, resumed, requeued, held, released,
    altered, moved, resized, promise-broken, ended, lost, host, queue, clock or shadow.

    Numbers go up without gaps; ``clock`` and ``shadow`` events have the number of the event before
    them.  The job's record is brief, with its hosts and its promised start.  A change of an array
    as a whole is one event, that of the array.  A ``queue`` event without a queue means that the
    configuration was read again, and every queue may be new.  ``counts``: the jobs of its queue by
    state letter after it.  ``clock``: the server's clock, if a user set it or it has moved on for a
    second.
    """

    number: int
    at: int
    kind: str
    job: str = ""
    record: JobRecord | None = None
    host: str = ""
    queue: str = ""
    text: str = ""
    counts: dict[str, int] = {}
    clock: ClockRecord | None = None
