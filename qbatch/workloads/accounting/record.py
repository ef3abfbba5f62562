"""What one line of accounting says, whatever system wrote it, and the tally of what could not be used."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from qbatch.workloads.left_out import Asks

ABSENT = -1
"""What a number of a record is when the line does not say it."""

TIME_MAX = 7_258_118_400
"""Seconds since 1970 of the year 2200: later times are taken for damage."""

COUNT_MAX = 2**31 - 1
"""The most processors, hosts or seconds of run time that are believed."""

QUEUED, STARTED, ENDED, REQUEUED, CANCELLED, SUSPENDED, RESUMED, UNFINISHED = range(8)
"""What a record tells.  ENDED and REQUEUED close an attempt that ran; CANCELLED: deleted or aborted; UNFINISHED: still
waiting or running when the records were written."""

FAILED, COMPLETED, KILLED = 0, 1, 5
"""The states of the Standard Workload Format that come out of accounting."""


class Line(NamedTuple):
    """One line of a file: its content without the line's end, and whether it had one."""

    file: str
    number: int
    text: bytes
    is_whole: bool = True


class AccountingRecord(msgspec.Struct, gc=False, omit_defaults=True):
    """What one line says of one job; ``ABSENT`` or empty where it says nothing.  One that closes an attempt becomes the job
    (:mod:`.assembly`): one attempt, or a job that never ran (``start`` is ``ABSENT``), with what the lines before it say.

    Instants are seconds since 1970: ``at`` (when it happened), ``submit``, ``eligible``, ``start``, ``end``.  Spans are
    seconds: ``limit`` (the requested time), ``suspended``, ``walltime`` (that ran while it was not suspended), ``cpu`` (of all
    processors).  Memory is KB of the whole job.  ``part`` is the component of a heterogeneous job.  ``hosts``: names and
    processors, where the tally keeps them.  ``is_trial``: an attempt for a quantum, that was thrown away when this was over.
    ``asks``: what a log does not hold, but for memory, partition and ``priority``, which have fields of their own.

    Of a job, ``end`` is when it ended or was cancelled, ``run`` how long it ran, without the time it was ``suspended``, and
    ``after`` the attempt before this one; ``asks`` is all that a log does not hold of it.
    """

    kind: int
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
    priority: int = ABSENT
    run: int = ABSENT
    after: AccountingRecord | None = None

    @property
    def place(self) -> str:
        """Return where it stands, as ``file:line``."""
        return f"{self.file}:{self.line}"


class Count(msgspec.Struct):
    """How often something was met, and where first (``file:line``; empty where no line stands for it)."""

    count: int
    first: str


class ImportTally:
    """What was met while reading, by reason: ``unusable`` (lost), ``ignored`` (rightly left out), ``adjusted``
    (used, but changed), ``fields`` (unknown to us).  ``keeps_hosts``: whether records keep on which hosts a job ran.
    ``told``: of which kinds that a log leaves out the records speak at all."""

    def __init__(self, *, keeps_hosts: bool = False) -> None:
        self.keeps_hosts = keeps_hosts
        self.unusable: dict[str, Count] = {}
        self.ignored: dict[str, Count] = {}
        self.adjusted: dict[str, Count] = {}
        self.fields: dict[str, int] = {}
        self.lines = 0
        self.records = 0
        self.hosts: set[str] = set()
        self.servers: set[str] = set()
        self.told: set[str] = set()

    def lose(self, reason: str, file: str, line: int) -> None:
        """Count a record that cannot be used."""
        _count(self.unusable, reason, file, line)

    def skip(self, reason: str, file: str, line: int) -> None:
        """Count a record that is no job that ran, and is left out rightly."""
        _count(self.ignored, reason, file, line)

    def adjust(self, reason: str, file: str, line: int) -> None:
        """Count a record that is used otherwise than it stands there."""
        _count(self.adjusted, reason, file, line)

    def met_fields(self, names: set[str]) -> None:
        """Count fields that are not known; beyond a thousand different ones they are counted together."""
        for name in names:
            known = name if name in self.fields or len(self.fields) < 1000 else "(others)"
            self.fields[known] = self.fields.get(known, 0) + 1


def _count(counts: dict[str, Count], reason: str, file: str, line: int) -> None:
    found = counts.get(reason)
    if found is None:
        counts[reason] = Count(1, f"{file}:{line}" if file else "")
    else:
        found.count += 1


def whole_number(text: str | None, most: int = COUNT_MAX) -> int:
    """Return a number written in at most 18 digits, ``ABSENT`` for anything else or more than ``most``."""
    if not text or len(text) > 18 or not text.isdigit() or not text.isascii():
        return ABSENT
    value = int(text)
    return value if value <= most else ABSENT
