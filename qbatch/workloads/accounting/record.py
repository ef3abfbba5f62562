"""One line of accounting, from any batch system, and the counts of what could not be used."""

from __future__ import annotations

from collections import Counter
from enum import IntEnum
from typing import NamedTuple

import msgspec

from qbatch.workloads.left_out import Asks

ABSENT = -1
"""A number that the line does not contain."""

TIME_MAX = 7_258_118_400
"""Seconds since 1970 of the year 2200: later times count as damage."""

COUNT_MAX = 2**31 - 1
"""The most processors, hosts or seconds of run time that are accepted."""


class Kind(IntEnum):
    """Kinds of records.  ENDED and REQUEUED close an attempt that ran; CANCELLED: deleted or
    aborted; UNFINISHED: still waiting or running when the records were written."""

    QUEUED, STARTED, ENDED, REQUEUED, CANCELLED, SUSPENDED, RESUMED, UNFINISHED = range(8)


class Status(IntEnum):
    """The states of the Standard Workload Format that an import can produce."""

    FAILED, COMPLETED, KILLED = 0, 1, 5


class Line(NamedTuple):
    """One line of a file: its content without the line end, and whether it had one."""

    file: str
    number: int
    text: bytes
    is_whole: bool = True

    @property
    def place(self) -> str:
        """The place of the line, as ``file:line``."""
        return f"{self.file}:{self.number}"


class AccountingRecord(msgspec.Struct, gc=False, omit_defaults=True):
    """What one line says of one job; ``ABSENT`` or empty where it says nothing.  One that closes an
    attempt becomes the job (:mod:`.assembly`): one attempt, or a job that never ran (``start`` is
    ``ABSENT``), with what the lines before it say.

    Instants are seconds since 1970: ``at`` (when it happened), ``submit``, ``eligible``, ``start``,
    ``end``.  ``cluster`` (the server of PBS) is part of the identity of a job: two of them give the
    same numbers.  Spans are seconds: ``limit`` (the requested time), ``suspended``, ``walltime``
    (without suspensions), ``cpu`` (of all processors).  Memory is KB of the whole job.  ``part`` is
    the component of a heterogeneous job.  ``hosts``: names and processors, where the counts keep
    them.  ``is_trial``: an attempt for a quantum, that was thrown away when this was over.
    ``request``: the cells of its line in a side file of resources, after the job number
    (:mod:`qbatch.workloads.resource_rows`).  ``asks``: what a log does not hold, but for memory,
    partition and ``priority``, which have fields of their own.

    Of a job, ``end`` is when it ended or was cancelled.  ``run`` is how long it ran, without the
    time it was ``suspended``. ``after`` is the attempt before this one; ``asks`` is all that a log
    does not hold of it.
    """

    kind: Kind
    job: str
    at: int
    file: str
    line: int
    submit: int = ABSENT
    eligible: int = ABSENT
    start: int = ABSENT
    end: int = ABSENT
    suspended: int = 0
    limit: int = ABSENT
    cores: int = ABSENT
    cores_asked: int = ABSENT
    nodes: int = ABSENT
    nodes_asked: int = ABSENT
    cpu: float = ABSENT
    memory_used: int = ABSENT
    memory_asked: int = ABSENT
    status: int = ABSENT
    part: int = ABSENT
    walltime: float = ABSENT
    is_trial: bool = False
    user: str = ""
    group: str = ""
    account: str = ""
    name: str = ""
    queue: str = ""
    hosts: tuple[tuple[str, int], ...] = ()
    asks: Asks = ()
    request: tuple[str, ...] = ()
    qos: str = ""
    nice: int = 0
    priority: int = ABSENT
    cluster: str = ""
    run: int = ABSENT
    after: AccountingRecord | None = None

    @property
    def place(self) -> str:
        """Return the place of the line, as ``file:line``."""
        return f"{self.file}:{self.line}"


class Count(msgspec.Struct):
    """How often something occurred, and where first (``file:line``)."""

    count: int
    first: str


class Reasons(dict[str, Count]):
    """Counts by reason."""

    def add(self, reason: str, place: str, many: int = 1) -> None:
        """Count records under a reason; ``place``: that of the first."""
        self.setdefault(reason, Count(0, place)).count += many


class ImportCounts:
    """What occurred while reading, by reason.

    ``unusable``: lost; ``ignored``: rightly left out; ``adjusted``: used, but changed; ``fields``:
    unknown to us.  ``keeps_hosts``: records keep the hosts of a job.  ``keeps_requests``: they keep
    its ``request``; ``keeps_tasks``: with tasks on any hosts where it asks for them.
    ``recorded``: the kinds that a log leaves out and the records contain.
    ``hosts``: pairs of a cluster and a name.
    """

    def __init__(
        self, *, keeps_hosts: bool = False, keeps_requests: bool = False, keeps_tasks: bool = False
    ) -> None:
        self.keeps_hosts, self.keeps_requests = keeps_hosts, keeps_requests
        self.keeps_tasks = keeps_tasks
        self.unusable, self.ignored, self.adjusted = Reasons(), Reasons(), Reasons()
        self.fields: Counter[str] = Counter()
        self.lines = self.records = 0
        self.hosts: set[tuple[str, str]] = set()
        self.clusters: set[str] = set()
        self.recorded: set[str] = set()

    def met_fields(self, names: set[str]) -> None:
        """Count unknown fields; beyond a thousand different ones they are counted together."""
        for name in names:
            self.fields[name if name in self.fields or len(self.fields) < 1000 else "(others)"] += 1


def whole_number(text: str | None, most: int = COUNT_MAX) -> int:
    """Return a number of at most 18 digits, ``ABSENT`` for anything else or more than ``most``."""
    if not text or len(text) > 18 or not text.isdigit() or not text.isascii():
        return ABSENT
    value = int(text)
    return value if value <= most else ABSENT
