"""Every request that a daemon understands, one struct for each verb.  In a message, ``verb`` is the
struct's name in lower case with dashes (``HostControl`` is ``host-control``).

A struct declares all of a verb: its fields, its effect, the role that may send it, whether it
changes the core, and whether its answer may be long.  Permissions, the journal and the table in
docs/reference/protocol.md follow from that.

Each request has ``v``, the protocol's version, and ``id``, which comes back with the reply.  The
daemon refuses unknown fields. Job identifiers are texts as a user writes them; instants are
microseconds of the server's clock.  None or an empty value means "as it is" in changes and "any" in
questions.
"""

from __future__ import annotations

import re
from functools import reduce
from operator import or_
from typing import Annotated, Any, ClassVar, Literal

import msgspec

STATES = "BEFHMQRSTUWX"
"""The letters by which PBS shows the states of jobs."""

PROTOCOL = 1
"""The version of the protocol."""

Whole = Annotated[int, msgspec.Meta(ge=-(1 << 62), le=1 << 62)]
"""A whole number that the journal, the database and 64 bits can hold."""

Role = Literal["anyone", "owner", "operator", "manager"]
"""The role that may send a request; ``owner`` is the owner of each job that it names, or an
operator."""


def _verb(name: str) -> str:
    return re.sub(r"(?<!^)([A-Z])", r"-\1", name).lower()


class Request(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag_field="verb",
    tag=_verb,
):
    """The base of all requests."""

    role: ClassVar[Role] = "anyone"

    v: Whole = PROTOCOL
    id: Whole = 0


class Command(Request, frozen=True):
    """A request that changes the core.  The journal keeps it, a restart replays it, and the answer
    comes when it is committed."""

    role: ClassVar[Role] = "owner"


class Question(Request, frozen=True):
    """A request that only asks, or controls the daemon itself (``is_driving``); the journal does
    not keep it.

    ``answer``: ``short``, ``long`` (it may be long) or ``stored`` (it may be long, and is read from
    the store).
    """

    is_driving: ClassVar[bool] = False
    answer: ClassVar[Literal["short", "long", "stored"]] = "short"


class TaskSpec(msgspec.Struct, frozen=True, array_like=True):
    """One job of an array of different jobs: its walltime and the run time of an emulated job, in
    microseconds.

    ``route``: 53 random bits for a policy that draws (-1: it makes them itself).
    """

    walltime: Whole
    runtime: Whole
    route: Whole = -1


class Spec(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    gc=False,
):
    """The specification of a submitted job.  Texts are as PBS writes them; the daemon reads and
    checks them.

    ``script``: the text of the script; or ``argv``: a command without a shell.  ``resources``: the
    ``-l`` names and values.  ``hold``: letters of ``uos``.  ``depend``:
    ``afterok:12:13,afterany:9``.  ``array``: ``1-10:2%3``. ``not_before``: microseconds since 1970
    (``-a``).  ``variables``: the job's environment beyond the standard one. ``directory``: the
    directory of the submission.  ``runtime``: microseconds of an emulated run; ``fate``: its exit
    status; ``used_memory``: bytes that it really uses (None: all that it asks for).  ``shell``:
    ``-S``.  ``is_torque``: Torque's names for output and indices.  ``script_digest``: of a script
    that ``upload`` sent before; ``script`` is then its beginning. ``tasks``: the jobs of an array
    of different jobs, in order of index.
    """

    name: str = "STDIN"
    script: str | None = None
    argv: tuple[str, ...] = ()
    queue: str = ""
    resources: dict[str, str] = {}
    output: str = ""
    error: str = ""
    join: str = "n"
    keep: str = "n"
    hold: str = ""
    mail_points: str = "a"
    mail_users: str = ""
    priority: Whole = 0
    is_rerunnable: bool = True
    shell: str = ""
    account: str = ""
    project: str = ""
    group_list: str = ""
    depend: str = ""
    array: str = ""
    not_before: Whole | None = None
    variables: dict[str, str] = {}
    directory: str = ""
    host: str = ""
    submit_arguments: str = ""
    is_blocking: bool = False
    umask: Whole | None = None
    checkpoint: str = "u"
    deadline: Whole | None = None
    runtime: Whole | None = None
    fate: Whole | None = None
    used_memory: Whole | None = None
    is_torque: bool = False
    extra: dict[str, str] = {}
    encoding: str = "utf-8"
    script_digest: str = ""
    tasks: tuple[TaskSpec, ...] = ()


class Changes(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """The changes of a job by ``qalter``; None leaves a field as it is."""

    name: str | None = None
    resources: dict[str, str] | None = None
    output: str | None = None
    error: str | None = None
    join: str | None = None
    keep: str | None = None
    hold: str | None = None
    mail_points: str | None = None
    mail_users: str | None = None
    priority: Whole | None = None
    is_rerunnable: bool | None = None
    shell: str | None = None
    account: str | None = None
    project: str | None = None
    group_list: str | None = None
    depend: str | None = None
    slot_limit: Whole | None = None
    not_before: Whole | None = None
    runtime: Whole | None = None
    variables: dict[str, str] | None = None
    checkpoint: str | None = None
    umask: Whole | None = None


class Submit(Command, frozen=True):
    """Queue a job; gives ``SubmissionRecord``.  Two submissions of a user with the same ``key``
    give the same job."""

    role = "anyone"
    spec: Spec
    key: str = ""
    is_dry_run: bool = False


class Delete(Command, frozen=True):
    """End jobs: a waiting job leaves the queue, a running job gets TERM, then KILL.  ``is_forced``
    removes it at once; ``with_history`` also removes its history.  Gives ``Outcomes``."""

    jobs: tuple[str, ...]
    is_forced: bool = False
    with_history: bool = False
    grace: float | None = None
    message: str = ""


class Alter(Command, frozen=True):
    """Change what jobs ask for.  Gives ``Outcomes``."""

    jobs: tuple[str, ...]
    changes: Changes


class Hold(Command, frozen=True):
    """Place holds (letters of ``uos``).  ``comment``: the reason, for the jobs' records.  Gives
    ``Outcomes``."""

    jobs: tuple[str, ...]
    kinds: str = "u"
    comment: str = ""


class Release(Command, frozen=True):
    """Take holds away.  Gives ``Outcomes``."""

    jobs: tuple[str, ...]
    kinds: str = "u"


class Move(Command, frozen=True):
    """Put waiting jobs into another queue.  Gives ``Outcomes``."""

    jobs: tuple[str, ...]
    destination: str


class Order(Command, frozen=True):
    """Exchange the places of two waiting jobs in their queue.  Gives ``Outcomes``."""

    first: str
    second: str


class Rerun(Command, frozen=True):
    """Stop running jobs and queue them again.  Gives ``Outcomes``."""

    jobs: tuple[str, ...]
    is_forced: bool = False


class ForceStart(Command, frozen=True):
    """Start waiting jobs now, whatever the policy would do, on the named ``hosts`` (none: on any).
    The engine refuses a job that does not fit.  Gives ``Outcomes``."""

    role = "operator"
    jobs: tuple[str, ...]
    hosts: tuple[str, ...] = ()


class Message(Command, frozen=True):
    """Append a line to the output (``O``), error (``E``) or both files of running jobs.  Gives
    ``Outcomes``."""

    jobs: tuple[str, ...]
    text: str
    files: str = "E"


class Signal(Command, frozen=True):
    """Send a signal (``TERM``, ``SIGTERM``, ``15``, ``suspend``, ``resume``) to running jobs.
    Gives ``Outcomes``."""

    jobs: tuple[str, ...]
    signal: str = "TERM"


class QueueControl(Command, frozen=True):
    """Enable or disable submission, start or stop execution of queues.  Gives ``Outcomes``."""

    role = "operator"
    queues: tuple[str, ...]
    enabled: bool | None = None
    started: bool | None = None


class HostControl(Command, frozen=True):
    """Do ``drain``, ``resume`` (also ``up``) or ``down`` (their jobs are lost or run again) to
    hosts.  Gives ``Outcomes``."""

    role = "operator"
    hosts: tuple[str, ...]
    action: str
    comment: str | None = None


class Reserve(Command, frozen=True):
    """Keep hosts for the jobs of a queue of the reservation's own, or for maintenance.

    ``hosts``: their names, folded or not; or ``resources``: what the hosts must hold together, as
    ``-l`` of a job.  ``start``: if None, it begins ``delay`` from now.  ``delay``, ``duration``: in
    microseconds.  ``repeat``: ``hourly``, ``daily``, ``weekday``, ``weekend``, ``weekly``, or empty;
    ``times``: how often (0: for ever).  ``users``: those who may submit; none: the asker.
    ``is_flexible``: its jobs may also use other hosts, and run before and after it.
    ``ignores_jobs``: also hosts with jobs that may run into it.  Maintenance needs an operator.
    Gives ``ReservationRecord``.
    """

    role = "anyone"
    duration: Whole
    hosts: tuple[str, ...] = ()
    resources: dict[str, str] = {}
    start: Whole | None = None
    delay: Whole = 0
    name: str = ""
    title: str = ""
    repeat: str = ""
    times: Whole = 0
    users: tuple[str, ...] = ()
    pool: str = ""
    is_maintenance: bool = False
    is_flexible: bool = False
    ignores_jobs: bool = False


class Unreserve(Command, frozen=True):
    """End reservations, and the jobs in their queues.  Gives ``Outcomes``."""

    reservations: tuple[str, ...]


class PolicySet(Command, frozen=True):
    """Set the policy of a pool (of all pools if none is named) until the configuration names
    another.  Running jobs run on; promises end.  ``is_dry_run``: only describe what would become of
    jobs.  Gives ``Text``."""

    role = "manager"
    policy: str
    pool: str = ""
    is_dry_run: bool = False


class Fault(Command, frozen=True):
    """Make a fault: ``kind`` is ``submit-refused``, ``status-slow``, ``status-failed``,
    ``job-exit``, ``job-lost`` or ``clear`` (see ``qbatch fault --help``).  Gives ``Done``."""

    role = "manager"
    kind: str
    count: Whole = -1
    seconds: float = 0.0
    status: Whole = 1
    pattern: str = ""
    hosts: tuple[str, ...] = ()
    message: str = ""


class Hello(Question, frozen=True):
    """Ask for the server's name and the client's role: gives ``Welcome``.  ``server``: the expected
    name; another server refuses the request."""

    server: str = ""


class JobStatus(Question, frozen=True):
    """Ask for jobs: gives ``Jobs``.

    ``jobs``: identifiers, empty for all.  ``queues``, ``users``: only these.  ``states``: letters.
    ``finished``: ``no`` (live jobs only), ``also`` or ``only``.  ``subjobs``: show each subjob of
    arrays.  ``is_brief``: only the fields of the table.  A page has at most ``limit`` jobs (of
    named arrays: subjobs) and about 256 KiB, and begins after the identifier ``after``, in the
    order of the identifiers, or in that of ``jobs``.  The answer's ``next`` is ``after`` for the
    next page.
    """

    answer = "stored"
    jobs: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    states: str = ""
    finished: str = "no"
    subjobs: bool = False
    arrays_only: bool = False
    is_brief: bool = False
    with_estimates: bool = False
    after: str = ""
    limit: Whole = 1000


class QueueStatus(Question, frozen=True):
    """Ask for queues (all if none is named): gives ``Queues``."""

    answer = "long"
    queues: tuple[str, ...] = ()


class HostStatus(Question, frozen=True):
    """Ask for hosts (all if none is named): gives ``Hosts``."""

    answer = "long"
    hosts: tuple[str, ...] = ()


class ReservationStatus(Question, frozen=True):
    """Ask for reservations (all if none is named): gives ``Reservations``."""

    reservations: tuple[str, ...] = ()


class ServerStatus(Question, frozen=True):
    """Ask for the server: gives ``ServerRecord``."""


class Explain(Question, frozen=True):
    """Ask why a job waits and when it is expected to start: gives ``Explanation``."""

    job: str


class Wait(Question, frozen=True):
    """Wait until jobs have ended (``until="end"``) or started (``"start"``); then gives
    ``Outcomes``."""

    jobs: tuple[str, ...]
    until: str = "end"
    timeout: float | None = None


class Trail(Question, frozen=True):
    """Ask for all events of a job (tracejob): gives ``Trails``."""

    answer = "stored"
    job: str
    days: Whole = 0


class JobOutput(Question, frozen=True):
    """Ask for the files of a job's output and error: gives ``OutputFiles``, to its owner and to
    operators."""

    role = "owner"
    job: str


class History(Question, frozen=True):
    """Search all finished jobs: gives ``Jobs``, in pages.  ``since`` and ``until`` bound the jobs'
    end, in microseconds."""

    answer = "stored"
    users: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    name: str = ""
    status: str = ""
    since: Whole | None = None
    until: Whole | None = None
    after: str = ""
    limit: Whole = 100


class Subscribe(Question, frozen=True):
    """Get every event from now on: gives ``Done`` with the number of the last event before, then
    frames ``{"event": ...}``. ``after``: the last number that the client knows; the server, which
    keeps no events, refuses it if others have come since."""

    after: Whole | None = None


class Time(Question, frozen=True):
    """Control scaled or virtual time: ``action`` is ``show``, ``pause``, ``play``, ``step``,
    ``speed``, ``until`` (an instant), ``until-start`` (a job), ``until-end`` (a job) or
    ``until-count`` (finished jobs).  Gives ``ClockRecord``."""

    role = "operator"
    is_driving = True
    action: str = "show"
    speed: float | None = None
    at: Whole | None = None
    job: str = ""
    count: Whole | None = None


class Forecast(Question, frozen=True):
    """Ask for the expected start of every waiting job: gives ``Forecasts``.  ``limit``: only that
    many, the first to start (0: all)."""

    answer = "long"
    limit: Whole = 0


class Shadow(Question, frozen=True):
    """Ask for the results of what-if policies (``action`` ``show``, by anyone), or ``set`` them (at
    most four; an empty list ends them): gives ``Shadows``."""

    role = "operator"
    action: str = "show"
    policies: tuple[str, ...] = ()


class Upload(Question, frozen=True):
    """Send a part of a script that is too long for a frame (in JSON its bytes are Base64): gives
    ``Done``.  ``upload``: 8 to 64 letters of 0-9 and a-f, the same for all parts.  ``offset``:
    where the part begins.  ``digest``: with the last part, the SHA-256 of all bytes in hexadecimal
    letters, by which a submission then names the script."""

    upload: str
    offset: Whole
    data: bytes
    digest: str = ""


class Metrics(Question, frozen=True):
    """Ask for the metrics in the Prometheus text format: gives ``Text``."""

    answer = "long"


class Backup(Question, frozen=True):
    """Write a copy of the store to a path on the server's machine: gives ``Done``."""

    role = "manager"
    path: str


class Check(Question, frozen=True):
    """Check the store and the invariants: gives ``Text``, or an error that names what is wrong."""

    role = "operator"


class ConfigShow(Question, frozen=True):
    """Ask for the configuration in use: gives ``Text`` (TOML)."""


class Reload(Question, frozen=True):
    """Read the configuration again: gives ``Text`` with the changes."""

    role = "manager"
    is_driving = True


class Shutdown(Question, frozen=True):
    """Stop the daemon; jobs run on.  ``is_requeueing`` first requeues the rerunnable jobs;
    ``is_with_jobs`` first ends the jobs that still run.  Gives ``Done``."""

    role = "manager"
    is_driving = True
    is_with_jobs: bool = False
    is_requeueing: bool = False


REQUESTS: tuple[type[Request], ...] = (*Command.__subclasses__(), *Question.__subclasses__())
"""The structs of all verbs."""

AnyRequest: Any = reduce(or_, REQUESTS)
"""The union of all requests, for decoding."""
