"""Every request that a daemon understands: one struct a verb; ``verb`` on the wire is its name in lower case with
dashes (``HostControl`` is ``host-control``).

Each has ``v``, the protocol's version, and ``id``, which comes back with the reply.  Unknown fields are refused.  Job
identifiers are texts as a user writes them; instants are microseconds of the server's clock; None or an empty value
means "as it is" in changes and "any" in questions.
"""

from __future__ import annotations

import re
from typing import Annotated

import msgspec

STATES = "BEFHMQRSTUWX"
"""The letters of the states of jobs, as PBS has them."""

PROTOCOL = 1
"""The version of the protocol."""


Whole = Annotated[int, msgspec.Meta(ge=-(1 << 62), le=1 << 62)]
"""A whole number that the journal, the database and 64 bits can hold."""


def _verb(name: str) -> str:
    return re.sub(r"(?<!^)([A-Z])", r"-\1", name).lower()


class Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True,
              tag_field="verb", tag=_verb):  # fmt: skip
    """What all requests have."""

    v: Whole = PROTOCOL
    id: Whole = 0


class TaskSpec(msgspec.Struct, frozen=True, array_like=True):
    """One job of an array whose jobs differ: its walltime and the time for which an emulated run takes, in microseconds;
    ``route``: 53 random bits for a policy that draws (-1: it makes them itself)."""

    walltime: Whole
    runtime: Whole
    route: Whole = -1


class Spec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """What a submission says of a job.  Texts as PBS writes them; the daemon reads and checks them.

    ``script``: the text of the script; or ``argv``: a command without a shell.  ``resources``: the ``-l`` names and
    values.  ``hold``: letters of ``uos``.  ``depend``: ``afterok:12:13,afterany:9``.  ``array``: ``1-10:2%3``.
    ``not_before``: microseconds since 1970 (``-a``).  ``variables``: the job's environment beyond the standard one.
    ``directory``: where the submission was made.  ``runtime``: microseconds that an emulated run takes; ``fate``:
    how an emulated run ends (exit status); ``used_memory``: bytes that it really uses (None: all that it asks for).
    ``shell``: ``-S``.  ``is_torque``: Torque's names for output and indices.
    ``script_digest``: of a script that was sent before with ``upload``; ``script`` is its beginning then.
    ``tasks``: of an array whose jobs differ, each of them in order of index.
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


class Changes(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What ``qalter`` changes of a job; None leaves a thing as it is."""

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


# What changes something; the journal keeps these.


class Submit(Request, frozen=True):
    """Queue a job; gives ``SubmissionRecord``.  ``key`` makes a repeated submission of one user give the same job."""

    spec: Spec
    key: str = ""
    is_dry_run: bool = False


class Delete(Request, frozen=True):
    """End jobs: a waiting one leaves, a running one gets TERM, then KILL.  ``is_forced`` removes it at once;
    ``with_history`` also what is remembered of it.  Gives ``Outcomes``."""

    jobs: tuple[str, ...]
    is_forced: bool = False
    with_history: bool = False
    grace: float | None = None
    message: str = ""


class Alter(Request, frozen=True):
    """Change what jobs ask for.  Gives ``Outcomes``."""

    jobs: tuple[str, ...]
    changes: Changes


class Hold(Request, frozen=True):
    """Place holds (letters of ``uos``).  ``comment``: why, for the jobs' records.  Gives ``Outcomes``."""

    jobs: tuple[str, ...]
    kinds: str = "u"
    comment: str = ""


class Release(Request, frozen=True):
    """Take holds away.  Gives ``Outcomes``."""

    jobs: tuple[str, ...]
    kinds: str = "u"


class Move(Request, frozen=True):
    """Put waiting jobs into another queue.  Gives ``Outcomes``."""

    jobs: tuple[str, ...]
    destination: str


class Order(Request, frozen=True):
    """Exchange the places of two waiting jobs in their queue.  Gives ``Outcomes``."""

    first: str
    second: str


class Rerun(Request, frozen=True):
    """Stop running jobs and queue them again.  Gives ``Outcomes``."""

    jobs: tuple[str, ...]
    is_forced: bool = False


class ForceStart(Request, frozen=True):
    """Start waiting jobs now, whatever the policy would do, on the ``hosts`` that are named (none: on any).  The engine checks
    that there is room.  Gives ``Outcomes``."""

    jobs: tuple[str, ...]
    hosts: tuple[str, ...] = ()


class Message(Request, frozen=True):
    """Append a line to the output (``O``), error (``E``) or both files of running jobs.  Gives ``Outcomes``."""

    jobs: tuple[str, ...]
    text: str
    files: str = "E"


class Signal(Request, frozen=True):
    """Send a signal (``TERM``, ``SIGTERM``, ``15``, ``suspend``, ``resume``) to running jobs.  Gives ``Outcomes``."""

    jobs: tuple[str, ...]
    signal: str = "TERM"


class QueueControl(Request, frozen=True):
    """Enable or disable submission, start or stop execution of queues.  Gives ``Outcomes``."""

    queues: tuple[str, ...]
    enabled: bool | None = None
    started: bool | None = None


class HostControl(Request, frozen=True):
    """``drain``, ``resume`` (also ``up``), ``down`` (its jobs are lost or run again) for hosts.  Gives ``Outcomes``."""

    hosts: tuple[str, ...]
    action: str
    comment: str | None = None


class PolicySet(Request, frozen=True):
    """Let another policy decide in a pool (all pools if none is named) from now on, until the configuration names another:
    what runs runs on, promises are forgotten.  ``is_dry_run``: only say what would become of jobs.  Gives ``Text``."""

    policy: str
    pool: str = ""
    is_dry_run: bool = False


class Fault(Request, frozen=True):
    """Faults on demand: ``kind`` is ``submit-refused``, ``status-slow``, ``status-failed``, ``job-exit``,
    ``host-down`` or ``clear``; see ``qbatch fault --help``.  Gives ``Done``."""

    kind: str
    count: Whole = -1
    seconds: float = 0.0
    status: Whole = 1
    pattern: str = ""
    hosts: tuple[str, ...] = ()
    message: str = ""


# What only asks.


class Hello(Request, frozen=True):
    """Who is there: gives ``Welcome``.  ``server``: the server that is meant; refused if that is another one."""

    server: str = ""


class JobStatus(Request, frozen=True):
    """Ask for jobs: gives ``Jobs``.

    ``jobs``: identifiers, empty for all.  ``queues``, ``users``: only these.  ``states``: letters.  ``finished``:
    ``no`` (live jobs only), ``also`` or ``only``.  ``subjobs``: show each subjob of arrays; ``is_brief``: only what
    the table shows.  Pages: at most ``limit`` jobs (of arrays that are named: subjobs) and about 256 KiB, after the identifier
    ``after``, in the order of the identifiers, or in that of ``jobs``; ``next`` is the next ``after``.
    """

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


class QueueStatus(Request, frozen=True):
    """Ask for queues (all if none is named): gives ``Queues``."""

    queues: tuple[str, ...] = ()


class HostStatus(Request, frozen=True):
    """Ask for hosts (all if none is named): gives ``Hosts``."""

    hosts: tuple[str, ...] = ()


class ServerStatus(Request, frozen=True):
    """Ask for the server: gives ``ServerRecord``."""


class Explain(Request, frozen=True):
    """Ask why a job waits and when it is expected to start: gives ``Explanation``."""

    job: str


class Wait(Request, frozen=True):
    """Wait until jobs have ended (``until="end"``) or started (``"start"``); the reply, ``Outcomes``, comes then."""

    jobs: tuple[str, ...]
    until: str = "end"
    timeout: float | None = None


class Trail(Request, frozen=True):
    """Ask for all that happened to a job (tracejob): gives ``Trails``."""

    job: str
    days: Whole = 0


class JobOutput(Request, frozen=True):
    """Ask where the output and the error of a job can be read: gives ``OutputFiles``; for its owner and operators."""

    job: str


class History(Request, frozen=True):
    """Search finished jobs for ever: gives ``Jobs``, in pages.  ``since`` and ``until`` bound the end, in microseconds."""

    users: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    name: str = ""
    status: str = ""
    since: Whole | None = None
    until: Whole | None = None
    after: str = ""
    limit: Whole = 100


class Subscribe(Request, frozen=True):
    """Get every event from now on: gives ``Done`` with the number of the last one before, then frames ``{"event":
    ...}``.  ``after``: the last number that is known; refused if others have come since, for events are not kept."""

    after: Whole | None = None


class Time(Request, frozen=True):
    """Drive scaled or virtual time: ``action`` is ``show``, ``pause``, ``play``, ``step``, ``speed``, ``until``
    (an instant), ``until-start`` (a job), ``until-end`` (a job) or ``until-count`` (finished jobs).  Gives ``ClockRecord``."""

    action: str = "show"
    speed: float | None = None
    at: Whole | None = None
    job: str = ""
    count: Whole | None = None


class Forecast(Request, frozen=True):
    """Ask when every waiting job is expected to start: gives ``Forecasts``.  ``limit``: only so many, the first to
    start (0: all)."""

    limit: Whole = 0


class Shadow(Request, frozen=True):
    """Ask what other policies would have done (``action`` ``show``, anyone may), or ``set`` which ones (at most four,
    none ends them): gives ``Shadows``."""

    action: str = "show"
    policies: tuple[str, ...] = ()


class Upload(Request, frozen=True):
    """Send a piece of a script that is too long for a frame (in JSON its bytes are Base64): gives ``Done``.  ``upload``: 8 to 64
    letters of 0-9 and a-f that the pieces share; ``offset``: where it begins; ``digest``: with the last piece, the SHA-256 of all
    bytes in hexadecimal letters, by which a submission then names the script."""

    upload: str
    offset: Whole
    data: bytes
    digest: str = ""


class Metrics(Request, frozen=True):
    """Ask for the metrics in the Prometheus text format: gives ``Text``."""


class Backup(Request, frozen=True):
    """Write a copy of the store to a path on the server's machine: gives ``Done``."""

    path: str


class Check(Request, frozen=True):
    """Check the store and the invariants: gives ``Text``, or an error that names what is wrong."""


class ConfigShow(Request, frozen=True):
    """Ask for the configuration in use: gives ``Text`` (TOML)."""


class Reload(Request, frozen=True):
    """Read the configuration again: gives ``Text`` with what changed."""


class Shutdown(Request, frozen=True):
    """Stop the daemon; jobs run on.  ``is_requeueing`` first queues those again that may be run again; ``is_with_jobs`` first
    ends those that still run.  Gives ``Done``."""

    is_with_jobs: bool = False
    is_requeueing: bool = False


MUTATING: tuple[type[Request], ...] = (
    Submit, Delete, Alter, Hold, Release, Move, Order, Rerun, ForceStart, Message, Signal, QueueControl, HostControl,
    PolicySet, Fault,
)  # fmt: skip
"""Requests that change the server's state: answered when they are committed."""

ASKING: tuple[type[Request], ...] = (
    Hello, JobStatus, QueueStatus, HostStatus, ServerStatus, Explain, Wait, Trail, JobOutput, History, Subscribe, Time,
    Forecast, Shadow, Upload, Metrics, Backup, Check, ConfigShow, Reload, Shutdown,
)  # fmt: skip

AnyRequest = (
    Submit | Delete | Alter | Hold | Release | Move | Order | Rerun | ForceStart | Message | Signal | QueueControl
    | HostControl | PolicySet | Fault | Hello | JobStatus | QueueStatus | HostStatus | ServerStatus | Explain | Wait | Trail
    | JobOutput | History | Subscribe | Time | Forecast | Shadow | Upload | Metrics | Backup | Check | ConfigShow | Reload
    | Shutdown
)  # fmt: skip
