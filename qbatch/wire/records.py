"""What a daemon answers: one struct a kind of answer.  The table, the PBS text and ``--json`` render these.

Instants are microseconds since 1970 on the server's clock (in virtual time: on the clock of its log), None if there is
none; durations are microseconds, memory is bytes, unless a field is a text as PBS writes it.
"""

from __future__ import annotations

import msgspec

from qbatch.model.quote import Quote
from qbatch.model.reasons import Reason
from qbatch.wire.errors import ErrorRecord

DEFAULT_PROJECT = "_pbs_project_default"
"""How PBS shows the project of a job that has none."""


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What all answers are."""


class JobRecord(Record, frozen=True, gc=False):
    """One job as ``qstat`` shows it.

    ``state``: one letter (docs/spec/pbs.md section 5: B E F H M Q R S T U W X).  ``resources``: Resource_List.  ``used``:
    resources_used (cput and walltime as HH:MM:SS, mem and vmem as sizes, cpupercent and ncpus as numbers).  A brief
    record has id, name, user, queue, state, ``used["cput"]`` and what the alternate table shows (session, hosts
    ``nodect`` and ncpus, mem and walltime in ``resources``, started).  ``pauses``: from when until when it was
    suspended, None for an end that has not come.  ``sizes``: from when on it had how many processors, where the policy has
    resized it.  ``trials``: from when until when, on how many processors and where (as in ``exec_host``) it ran on trial and was
    thrown back into the queue; ``started`` is the start of its last attempt, which comes after them.  ``lost``: the latest
    attempts that were lost (a host went down, the job was to run again), a tuple each piece: which attempt, from when until
    when, on how many processors and where.  ``no_estimate``: why a waiting job has no forecast, where that was asked for.
    ``refused``: why it was refused after it was queued; it never ran.  ``broken``: the latest promises taken back: when,
    the start that was promised, and why.  ``deadline``: the instant by which it is to end; ``promised`` is then the latest start
    that keeps it, and ``planned`` when the policy plans to start it as things stand.  ``price``: what it costs, fixed when it
    was accepted, in millionths of a processor-hour.
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
    server: str = ""
    is_array: bool = False
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
        """When it first ran: on its first trial or in its first attempt, if it had others than the last."""
        begun = [begin for begin, *_ in self.thrown_away]
        return min(begun) if begun else self.started

    @property
    def thrown_away(self) -> list[tuple[int, int, int, str]]:
        """From when until when, on how many processors and where it ran for nothing: on trial, or in attempts that were lost."""
        return [*self.trials, *((begin, end, procs, where) for _, begin, end, procs, where in self.lost)]


class Jobs(Record, frozen=True):
    """A page of jobs; ``errors`` for identifiers that were asked for and are not there; ``next`` is the identifier to
    go on after, empty at the end; ``now`` the server's instant."""

    jobs: tuple[JobRecord, ...] = ()
    errors: tuple[ErrorRecord, ...] = ()
    next: str = ""
    now: int = 0
    server: str = ""
    has_history: bool = True


class SubmissionRecord(Record, frozen=True):
    """The identifier that a submission got; with ``--dry-run``, empty, and what would happen in ``comment``.

    ``quote``: with ``--dry-run``, what the policy of the queue would answer, if it may refuse and can say.
    """

    job: str
    comment: str = ""
    quote: Quote | None = None


class Outcome(Record, frozen=True):
    """What became of one thing that a command named.  ``exit_status``: of a job that was waited for."""

    name: str
    error: ErrorRecord | None = None
    exit_status: int | None = None
    state: str = ""
    has_run: bool = False


class Outcomes(Record, frozen=True):
    """What became of each, in the order in which they were named."""

    outcomes: tuple[Outcome, ...]


class QueueRecord(Record, frozen=True):
    """One queue.  ``kind``: Execution or Route.  ``counts``: jobs by state letter.  Limits None where there is none."""

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


class Queues(Record, frozen=True):
    """Queues in the order of the configuration."""

    queues: tuple[QueueRecord, ...]
    errors: tuple[ErrorRecord, ...] = ()
    now: int = 0
    server: str = ""


class HostRecord(Record, frozen=True):
    """One host.  ``state``: free, job-busy, job-exclusive, offline (drained) or down.  ``jobs``: who runs there.

    ``queue``: where the policy keeps a queue for each host, what waits in this one, in the order in which it would be taken;
    None elsewhere.
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


class Hosts(Record, frozen=True):
    """Hosts in the order of the configuration."""

    hosts: tuple[HostRecord, ...]
    errors: tuple[ErrorRecord, ...] = ()
    now: int = 0
    server: str = ""


class ClockRecord(Record, frozen=True):
    """The server's clock: ``mode`` real, scaled or virtual; ``speed`` (0: as fast as it can); ``now``; what it runs
    until; ``log``: jobs of the trace that have arrived, and how many it has; ``ahead``: by how many microseconds real time is
    ahead of the machine's clock, which was set back."""

    mode: str
    now: int
    speed: float = 1.0
    is_paused: bool = False
    until: str = ""
    log_arrived: int | None = None
    log_jobs: int | None = None
    ahead: int = 0


class FedLogRecord(Record, frozen=True):
    """The workload log whose jobs arrive on a server or have arrived.

    Its hash, how many jobs it has, the largest of their numbers (0: unknown), and microseconds from its clock to the server's.
    """

    sha256: str
    jobs: int
    last_number: int
    offset: int


class PhaseRecord(Record, frozen=True):
    """Whose turn it is in a pool that is shared in time (:class:`qbatch.model.phase.Phase`); instants in microseconds of the
    server's clock.  ``following``: classes and when each has the machine at the earliest."""

    pool: str
    name: str
    until: int | None = None
    following: dict[str, int] = {}
    on_disk: int = 0
    procs_on_disk: int = 0


class ServerRecord(Record, frozen=True):
    """The server: version, state, counts by state letter, where its files are; ``phases``: of pools that are shared in time;
    ``log``: the log of which jobs have arrived."""

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


class Explanation(Record, frozen=True):
    """Why a job waits: ``code`` and ``text`` with the numbers, who said it, who is ahead, when it should start."""

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
    """When one waiting job is expected to start and end if nothing else is submitted, what it was promised, and its
    deadline.

    ``code`` and ``reason``: why it has no forecast (``held``, ``dependency``, ``queue-stopped``, ``no-start``,
    ``not-reached``, ``no-forecast``, ``arriving``), where ``start`` and ``end`` are None.
    """

    job: str
    start: int | None = None
    end: int | None = None
    promised: int | None = None
    code: str = ""
    reason: str = ""
    deadline: int | None = None


class Forecasts(Record, frozen=True):
    """Every waiting job: by expected start, then those that have no forecast, with the reason; ``made``: the instant of the
    state that it stands on."""

    made: int
    jobs: tuple[ForecastRecord, ...]
    error_mean: float | None = None
    error_count: int = 0
    server: str = ""


class ShadowRecord(Record, frozen=True):
    """What a policy would have done so far with the jobs that came since its shadow began.

    ``pool``: where; ``is_real``: the policy that really decides.  ``started``, ``ended``, ``waiting``: jobs by now;
    ``wait_mean_s`` and ``wait_max_s``: of those that started, all the time in which they had not advanced when they last went
    on; ``bounded_slowdown_mean`` (10 s, unclipped): of those that ended; ``utilisation``: busy processor time over processor
    time since then.  ``provisional``: jobs whose real run time is not known, or not yet, so that their walltime stands for it
    (also those that were there when it began).
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
    """The policies in shadow, the real one first: ``since`` when and until when (``made``) they were followed; ``note``
    says what is missing or went wrong."""

    policies: tuple[ShadowRecord, ...] = ()
    since: int | None = None
    made: int | None = None
    note: str = ""


class OutputFiles(Record, frozen=True):
    """Where what a job writes can be read on the server's machine, the present attempt's (``attempt``: its number).

    ``output``, ``error``: paths, the first that is there counts: while the job runs its spool, or the file itself where it is
    written directly; then where it was delivered, or kept if it could not be.  ``join``: ``oe`` or ``eo`` if both go to one.
    ``is_waiting``: it has not started (again) yet; ``is_running``: more may be written.  ``removed``: the letters of the files
    that were removed because the job ended well (-R).
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
    """One thing that happened to a job: ``kind`` is L (log), S (scheduler) or A (accounting)."""

    at: int
    kind: str
    text: str


class Trails(Record, frozen=True):
    """All that happened to a job, in order."""

    job: str
    entries: tuple[TrailEntry, ...]


class Welcome(Record, frozen=True):
    """Who is there, and who the daemon takes the asker for."""

    server: str
    version: str
    protocol: int
    user: str
    role: str


class Done(Record, frozen=True):
    """It is done."""

    text: str = ""


class Text(Record, frozen=True):
    """A text."""

    text: str


class EventRecord(Record, frozen=True):
    """One thing that happened: ``kind`` is submitted, started, suspended, resumed, requeued, held, released, altered,
    moved, resized, promise-broken, ended, lost, host, queue, clock or shadow.

    Numbers go up without gaps; ``clock`` and ``shadow`` bear the number of the event before them.  The job's record is
    brief, with where it runs and what it was promised; what is done to an array as a whole is one event, that of the array.
    A ``queue`` event without a queue: the configuration was read again, and all may be new.  ``counts``: the jobs of its
    queue by state letter after it; ``clock``: the server's clock, where it was driven or has moved on for a second.
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
