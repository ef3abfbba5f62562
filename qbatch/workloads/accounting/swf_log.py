"""From jobs to a log in the Standard Workload Format 2.2: the header, the 18 columns, the size of
the machine.

Names become numbers by first appearance, or, for publication, by a keyed hash that cannot be undone
without the key.  With a key, a name's number is the first 31 bits of HMAC-SHA256(key, kind and
name), so it depends only on the key: a later import, with other people in it, gives the same
numbers.  Two names may get one number (likely only from tens of thousands of names on); then they
are numbered in order of the whole hash: the second takes the next free number.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np

from qbatch.model.errors import InputError, OutputError
from qbatch.model.spans import Peak, most_at_once
from qbatch.workloads.accounting.record import AccountingRecord
from qbatch.workloads.left_out import LeftOut
from qbatch.workloads.log import FIELDS, Column, compact

_KEY_DIGITS = 64
_NUMBER_MAX = 2**31 - 1


def numbers_of(names: Iterable[str], kind: str, key: bytes | None = None) -> dict[str, int]:
    """Return a number from 1 for each name except the empty one; with a key, by the keyed hash of
    ``kind`` and name."""
    distinct = list(dict.fromkeys(name for name in names if name))
    if key is None:
        return {name: number for number, name in enumerate(distinct, 1)}
    hashes = sorted((_hash(key, kind, name), name) for name in distinct)
    taken: set[int] = set()
    numbers: dict[str, int] = {}
    for digest, name in hashes:
        number = max(int.from_bytes(digest[:4], "big") >> 1, 1)
        while number in taken:
            number = number % _NUMBER_MAX + 1
        taken.add(number)
        numbers[name] = number
    return numbers


def _hash(key: bytes, kind: str, name: str) -> bytes:
    return hmac.new(
        key, f"{kind}\0{name}".encode("utf-8", "surrogateescape"), hashlib.sha256
    ).digest()


def read_or_make_key(path: str) -> tuple[bytes, bool, bool]:
    """Return the key of a file, whether it was made now, and whether others may read it; a new file
    has mode 0600.

    Raises:
        InputError: the file exists and contains no key.
        OutputError: it cannot be made.
    """
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return _read_key(path), False, bool(os.stat(path).st_mode & (stat.S_IRWXG | stat.S_IRWXO))
    except OSError as error:
        raise OutputError(
            f"{path}: the key cannot be written ({error.strerror or error}); name another file"
        ) from error
    text = secrets.token_hex(_KEY_DIGITS // 2)
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(text + "\n")
        file.flush()
        os.fsync(file.fileno())
    return bytes.fromhex(text), True, False


def _read_key(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            text = file.read(4096).strip()
    except OSError as error:
        raise InputError(f"{path}: the key cannot be read ({error.strerror or error})") from error
    try:
        if len(text) != _KEY_DIGITS:
            raise ValueError
        return bytes.fromhex(text.decode("ascii"))
    except ValueError:
        raise InputError(
            f"{path}: line 1: is not a key ({_KEY_DIGITS} hexadecimal digits); name a new file to "
            "make one"
        ) from None


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """The choice of records for the log, and its form.  ``since`` and ``before`` bound submissions:
    seconds or ISO times.

    ``unit``: what a processor is, ``cores`` or ``nodes``.  ``key`` numbers names by a keyed hash.
    ``keeps_hosts``: also make a machine of the hosts that jobs ran on.  ``keeps_requests``: also
    make the lines of a side file of resources.  ``site_procs``: the processors of the machine by the
    site's configuration (0: unknown).  ``is_time_sliced``: the system may give processors
    to several jobs at once, in turns.
    """

    timezone: str | None = None
    is_eligible_submit: bool = False
    queues: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    clusters: tuple[str, ...] = ()
    since: str | None = None
    before: str | None = None
    unit: str = "cores"
    is_anonymous: bool = False
    has_anonymous_queues: bool = False
    key: bytes | None = None
    machine_procs: int | None = None
    site_procs: int = 0
    keeps_hosts: bool = False
    keeps_requests: bool = False
    keeps_tasks: bool = False
    is_time_sliced: bool = False
    computer: str | None = None
    installation: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ImportedLog:
    """A finished log: header lines, columns by name, processors of the machine, the number of names
    by kind, the peak of use."""

    lines: list[str]
    columns: dict[str, Column]
    procs: int
    names: dict[str, int]
    peak: Peak


def make_log(
    jobs: Sequence[AccountingRecord],
    options: ImportOptions,
    computer: str,
    zone: ZoneInfo,
    left_out: Iterable[LeftOut],
    hosts: int,
) -> ImportedLog:
    """Return the log of at least one job, in order of submission.

    Args:
        computer, zone: for the header.
        left_out: what the log does not contain, for the header.
        hosts: the number of different hosts seen.
    """

    def of_jobs(name: str) -> Column:
        return np.array([getattr(job, name) for job in jobs])

    unit = "nodes" if options.unit == "nodes" else "cores"
    submit, start, end, asked = (
        of_jobs("submit"),
        of_jobs("start"),
        of_jobs("end"),
        of_jobs(f"{unit}_asked"),
    )
    used = np.where(start >= 0, of_jobs(unit), -1)
    each = np.where(used > 0, used, asked)
    columns: dict[str, Column] = {
        "job": np.arange(1, len(jobs) + 1),
        "submit": submit - submit.min(),
        "wait": np.where(start >= 0, start, end) - submit,
        "run": of_jobs("run"),
        "procs_allocated": used,
        "cpu_time": per_processor(of_jobs("cpu"), each),
        "memory_used": np.floor(per_processor(of_jobs("memory_used"), each)),
        "procs_requested": asked,
        "time_requested": of_jobs("limit"),
        "memory_requested": np.floor(per_processor(of_jobs("memory_asked"), each)),
        "status": of_jobs("status"),
    }
    numbers: dict[str, dict[str, int]] = {}
    for column, attribute in (
        ("user", "user"),
        ("group", "group"),
        ("executable", "name"),
        ("queue", "queue"),
    ):
        is_hidden = options.is_anonymous and (column != "queue" or options.has_anonymous_queues)
        names = [getattr(job, attribute) for job in jobs]
        numbers[column] = numbers_of(names, column, options.key if is_hidden else None)
        columns[column] = np.array([numbers[column].get(name, -1) for name in names])
    columns["partition"] = columns["queue"]
    columns["preceding_job"], columns["think_time"] = _attempts_before(jobs)
    # The time of a suspension is unknown, only its length: a suspended job counts for the second
    # after its start.
    held_until = np.where(of_jobs("suspended") <= 0, end, np.minimum(end, start + 1))
    ran = used > 0
    peak = most_at_once(start[ran], held_until[ran], used[ran])
    peak = peak if peak.procs else Peak(1, int(start.max()))
    procs = options.machine_procs or max(peak.procs, options.site_procs)

    of_unit = "hosts" if unit == "nodes" else "cores"
    inferred = f"inferred: most {of_unit} allocated at once"
    how = f"given; a processor is one of the {of_unit}" if options.machine_procs else inferred
    if not options.machine_procs and options.site_procs == procs:
        how = f"of the site's configuration; a processor is one of the {of_unit}"
    nodes = []
    is_sliced = options.is_time_sliced or any(job.suspended > 0 for job in jobs)
    if unit == "nodes":
        nodes = [f"MaxNodes: {procs}"]
    elif hosts:
        nodes = [f"MaxNodes: {hosts} (inferred: hosts seen)"]
    hidden = options.has_anonymous_queues
    notes = [*options.notes, *(each.note for each in left_out)]
    if not options.is_anonymous:
        notes += names_as_notes({kind: numbers[kind] for kind in ("user", "group")})
    lines = header_lines(
        computer=computer,
        installation=options.installation,
        jobs=len(jobs),
        preemption="TS" if is_sliced else "No",
        first=int(submit.min()),
        last=int(end.max()),
        zone=zone,
        sizes=[*nodes, f"MaxProcs: {procs} ({how})"],
        longest_run=int(columns["run"].max()),
        queues={
            number: f"queue-{number}" if hidden else name
            for name, number in numbers["queue"].items()
        },
        notes=notes,
    )
    counts = {kind: len(of_kind) for kind, of_kind in numbers.items()}
    return ImportedLog(
        lines,
        {name: compact(columns[name]) for name in FIELDS},
        procs,
        counts,
        peak,
    )


def header_lines(
    *,
    computer: str,
    installation: str | None,
    jobs: int,
    preemption: str,
    first: int,
    last: int,
    zone: ZoneInfo,
    sizes: Iterable[str],
    longest_run: int,
    queues: Mapping[int, str],
    notes: Iterable[str],
) -> list[str]:
    """Return the lines of the header of an imported log.

    Args:
        first, last: the first submission and the last end, in seconds since 1970.
        sizes: the lines on the size of the machine.
        longest_run: in seconds.
        queues: names by number.
    """
    lines = [
        "Version: 2.2",
        f"Computer: {computer}",
        f"Installation: {installation or 'not stated'}",
        "Conversion: qbatch import",
        f"MaxJobs: {jobs}",
        f"MaxRecords: {jobs}",
        f"Preemption: {preemption}",
        f"UnixStartTime: {first}",
        f"TimeZoneString: {zone.key}",
        f"StartTime: {_date(first, zone)}",
        f"EndTime: {_date(last, zone)}",
        *sizes,
        f"MaxRuntime: {longest_run}",
        f"MaxQueues: {len(queues)}",
    ]
    for number, name in sorted(queues.items()):
        lines += [f"Queue: {number} {name}", f"Partition: {number} {name}"]
    lines += [f"Note: {note}" for note in notes]
    return [f"; {_one_line(line)}" for line in lines]


def names_as_notes(numbers: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Return by kind (``user``, ``group``) which number is which name, for the header."""
    return [
        f"{kind} {number} is {name}"
        for kind, of_kind in numbers.items()
        for name, number in of_kind.items()
    ]


def per_processor(values: Column, procs: Column) -> Column:
    """Return the share of one processor, to the microsecond; -1 if there is none."""
    known = (values >= 0) & (procs > 0)
    return np.where(known, np.round(values / np.maximum(procs, 1), 6), -1.0)


def _attempts_before(jobs: Sequence[AccountingRecord]) -> tuple[Column, Column]:
    """Return the preceding job and the think time of attempts after a requeue, -1 for other
    jobs."""
    preceding, think = np.full(len(jobs), -1), np.full(len(jobs), -1)
    places = {id(job): place for place, job in enumerate(jobs)}
    for place, job in enumerate(jobs):
        before = places.get(id(job.after)) if job.after is not None else None
        if before is not None and before < place:
            preceding[place] = before + 1
            think[place] = max(job.submit - jobs[before].end, 0)
    return preceding, think


def _one_line(text: str) -> str:
    """Return the text without characters that would break a header line; bytes that are not UTF-8
    are kept."""
    return "".join(
        letter if letter.isprintable() or "\udc80" <= letter <= "\udcff" else "_" for letter in text
    )


def _date(at: int, zone: ZoneInfo) -> str:
    return datetime.fromtimestamp(int(at), UTC).astimezone(zone).strftime("%a %b %d %H:%M:%S %Z %Y")
