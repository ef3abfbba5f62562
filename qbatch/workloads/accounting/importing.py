"""The whole way from accounting files to a log, and the report of the import."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec
import numpy as np

from qbatch.model.errors import InputError, UsageError, suggestion
from qbatch.model.spans import too_small
from qbatch.workloads.accounting.assembly import assemble
from qbatch.workloads.accounting.hosts_seen import HostsSeen, machine_seen
from qbatch.workloads.accounting.pbs import read_pbs
from qbatch.workloads.accounting.record import AccountingRecord, ImportCounts, Line, Reasons
from qbatch.workloads.accounting.sacct import read_sacct
from qbatch.workloads.accounting.swf_log import ImportedLog, ImportOptions, make_log
from qbatch.workloads.accounting.times import WallClock, machine_zone, zone_named
from qbatch.workloads.header import readable
from qbatch.workloads.left_out import (
    CLUSTERS,
    FEATURES,
    HELD,
    PARTITIONS,
    QOS,
    RESERVATIONS,
    LeftOut,
    count_left_out,
)
from qbatch.workloads.source import STANDARD_INPUT, LogFile

LINE_BYTES_MAX = 16 << 20
"""A longer line is no accounting record; it is given cut to ``_SHOWN`` bytes and as not whole."""

_SHOWN = 256
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def accounting_files(paths: Sequence[str]) -> list[str]:
    """Return the files that these paths name, directories by their files in order of name (hidden
    ones left out).

    Raises:
        InputError: if a directory holds no file, or the same file is named twice.
    """
    found: list[str] = []
    for path in paths:
        if path != STANDARD_INPUT and os.path.isdir(path):
            names = (
                os.path.join(path, name)
                for name in sorted(os.listdir(path))
                if not name.startswith(".")
            )
            inside = [name for name in names if os.path.isfile(name)]
            if not inside:
                raise InputError(
                    f"{path}: the directory holds no file; name the directory of the accounting "
                    "files"
                )
            found += inside
        else:
            found.append(path)
    seen = set()
    for path in found:
        real = path if path == STANDARD_INPUT else os.path.realpath(path)
        if real in seen:
            raise InputError(f"{path}: is named twice; name each file once")
        seen.add(real)
    return found


def lines_of(path: str, progress: Callable[[int], None] | None = None) -> Iterator[Line]:
    """Yield the lines of one file, of any length, from bytes that may be anything; CR LF ends a
    line as LF does.

    Raises:
        InputError: if it cannot be read or its compressed data are corrupt.
    """
    name = "standard input" if path == STANDARD_INPUT else path
    source = LogFile(path)
    number, pending, is_cut = 0, b"", False
    for chunk in source.chunks(1 << 20):
        if progress is not None:
            progress(source.stored_bytes)
        parts = chunk.split(b"\n")
        parts[0] = pending + parts[0]
        pending = parts.pop()
        for part in parts:
            number += 1
            if number == 1:
                part = part.removeprefix(_BYTE_ORDER_MARK)
            yield Line(name, number, part[:-1] if part.endswith(b"\r") else part, not is_cut)
            is_cut = False
        if len(pending) > LINE_BYTES_MAX:
            pending, is_cut = pending[:_SHOWN], True
    if pending:
        yield Line(name, number + 1, pending, is_whole=False)


SCHEMA = "qbatch.import/1"
"""The schema of the record that ``--json`` prints."""

FORMATS = {"pbs": read_pbs, "slurm": read_sacct}
"""The readers by the name of their format."""

_NUMBERS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Imported:
    """A log made of accounting, and the record of the import (schema ``qbatch.import/1``).

    ``seen``: the hosts seen, if requested.  ``requests``: by job the cells of its line of resources,
    after the job number.  ``hosts``: the names of the hosts on which jobs ran.
    """

    log: ImportedLog
    document: dict[str, Any]
    seen: HostsSeen | None = None
    requests: tuple[tuple[str, ...], ...] = ()
    hosts: frozenset[str] = frozenset()


def import_files(
    form: str,
    paths: Sequence[str],
    options: ImportOptions,
    progress: Callable[[str, int], None] | None = None,
) -> Imported:
    """Read accounting files of one format and make a log of them; ``progress`` is called with the
    file and the bytes read.

    Raises:
        UsageError: a zone or a bound is invalid.
        InputError: a file cannot be read, or no job can be made of the records.
    """
    zone, zone_from = (
        machine_zone() if options.timezone is None else (zone_named(options.timezone), "--timezone")
    )
    clock = WallClock(zone)
    since, before = _bound(options.since, clock, "--from"), _bound(options.before, clock, "--to")
    clock.gaps = clock.folds = 0
    counts = ImportCounts(
        keeps_hosts=options.keeps_hosts,
        keeps_requests=options.keeps_requests,
        keeps_tasks=options.keeps_tasks,
    )
    files = accounting_files(paths)

    def records() -> Iterator[AccountingRecord]:
        for path in files:
            moved = None if progress is None else lambda count, path=path: progress(path, count)
            for record in FORMATS[form](lines_of(path, moved), clock, counts):
                if options.clusters and record.cluster not in options.clusters:
                    counts.ignored.add("records left out by --cluster", record.place)
                else:
                    yield record

    jobs = assemble(records(), counts)
    _check_clusters(options.clusters, counts.clusters - {""})
    held = sum(1 for job in jobs if job.eligible > job.submit and job.after is None)
    if options.is_eligible_submit:
        # Count waits from when a job could have started: not from when it was held, dependent or
        # asked for later.
        for job in jobs:
            job.submit = min(
                max(job.submit, job.eligible), job.start if job.start >= 0 else job.end
            )
    jobs = _chosen(jobs, options, since, before, counts)
    if not any(job.start >= 0 for job in jobs):
        named = ", ".join(map(readable, files[:3]))
        raise InputError(
            f"{named}: no job that ran can be made of these records{why_no_job(counts)}"
        )
    jobs.sort(
        key=lambda job: (
            job.submit,
            [int(number) for number in _NUMBERS.findall(job.job)],
            job.start,
            job.cluster,
        )
    )
    if options.unit == "nodes":
        jobs = _with_hosts(jobs, counts)
    # QOS and reservations are named after people and groups; a feature may be a host, which an
    # anonymous log does not name.
    hidden = {QOS, RESERVATIONS, FEATURES, CLUSTERS} if options.is_anonymous else set()
    hidden |= {PARTITIONS} if options.has_anonymous_queues else set()
    left_out = count_left_out((job.asks for job in jobs), counts.recorded, len(jobs), hidden)
    waited = sum(1 for job in jobs if job.eligible > job.submit and job.after is None)
    if waited and not options.is_eligible_submit:
        left_out = (*left_out, LeftOut(HELD, waited, len(jobs)))
    clusters = Counter(job.cluster for job in jobs)
    hosts = sum(cluster in clusters for cluster, _ in counts.hosts)
    system, noun = {"pbs": ("PBS", "server"), "slurm": ("Slurm", "cluster")}[form]
    named = ", ".join(sorted(filter(None, clusters)))
    computer = options.computer or (
        f"{system} {noun}{'s' if len(clusters) > 1 else ''} {named}"
        if named and not options.is_anonymous
        else system
    )
    log = make_log(jobs, options, computer, zone, left_out, hosts)
    if options.machine_procs is not None and options.machine_procs < log.peak.procs:
        unit = "hosts" if options.unit == "nodes" else "processors"
        when = datetime.fromtimestamp(log.peak.at, UTC).astimezone(zone).isoformat()
        raise UsageError(
            too_small(
                "--machine-procs", options.machine_procs, "the log", log.peak, f"at {when}", unit
            )
        )
    seen = None
    if options.keeps_hosts:
        seen = machine_seen(
            jobs, is_anonymous=options.is_anonymous, hides_queues=options.has_anonymous_queues
        )
        if seen.machine.procs < log.peak.procs:
            raise InputError(
                f"the hosts that the records name have {seen.machine.procs} processors in use at "
                "most, but the log "
                f"{log.peak.procs} at once: not every record names its hosts; leave --machine-file "
                "out"
            )
    ran = sum(1 for job in jobs if job.start >= 0)
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "format": form,
        "files": [readable(path) for path in files],
        "lines": counts.lines,
        "records": counts.records,
        "jobs": {
            "written": len(jobs),
            "ran": ran,
            "never_ran": len(jobs) - ran,
            "attempts_after_a_requeue": sum(1 for job in jobs if job.after is not None),
            "eligible_later_than_submitted": held,
            "names": log.names,
            "clusters": {readable(name): count for name, count in sorted(clusters.items())},
        },
        "left_out": msgspec.to_builtins([*left_out]),
        "unusable": listed_reasons(counts.unusable),
        "ignored": listed_reasons(counts.ignored),
        "adjusted": listed_reasons(counts.adjusted),
        "unknown_fields": {readable(name): count for name, count in sorted(counts.fields.items())},
        "time": {
            "zone": zone.key,
            "zone_from": zone_from,
            "gaps": clock.gaps,
            "folds": clock.folds,
        },
        "machine": {
            "procs": log.procs,
            "is_inferred": options.machine_procs is None
            and options.site_procs < max(log.peak.procs, 1),
            "hosts_seen": hosts,
            "wider_jobs": int(
                (
                    np.maximum(log.columns["procs_requested"], log.columns["procs_allocated"])
                    > log.procs
                ).sum()
            ),
        },
    }
    requests = tuple(
        (*job.request, str(job.suspended), readable(job.job), *_charged(job)) if job.request else ()
        for job in jobs
    )
    names = frozenset(host for cluster, host in counts.hosts if cluster in clusters)
    return Imported(log, document, seen, requests, names)


def _check_clusters(asked: Sequence[str], known: set[str]) -> None:
    for cluster in asked:
        if cluster not in known:
            names = ", ".join(map(readable, sorted(known))) or "none that is named"
            raise UsageError(
                f"--cluster {cluster!r}: no record is of it{suggestion(cluster, known)}; there are "
                f"{names}"
            )


def _bound(text: str | None, clock: WallClock, option: str) -> int | None:
    if text is None:
        return None
    found = clock.of_iso(text if len(text) != 10 or "-" not in text else f"{text}T00:00:00")
    if not found:
        raise UsageError(
            f"{option} {text!r}: should be seconds since 1970 or an ISO time like "
            "2024-05-01T08:00:00"
        )
    return found[0]


def _chosen(
    jobs: list[AccountingRecord],
    options: ImportOptions,
    since: int | None,
    before: int | None,
    counts: ImportCounts,
) -> list[AccountingRecord]:
    """Leave out what the filters leave out, counted by filter."""
    chosen = []
    for job in jobs:
        if options.queues and job.queue not in options.queues:
            counts.ignored.add("left out by --queue", job.place)
        elif options.users and job.user not in options.users:
            counts.ignored.add("left out by --user", job.place)
        elif (since is not None and job.submit < since) or (
            before is not None and job.submit >= before
        ):
            counts.ignored.add("left out by --from or --to", job.place)
        else:
            chosen.append(job)
    return chosen


def _with_hosts(jobs: list[AccountingRecord], counts: ImportCounts) -> list[AccountingRecord]:
    """Return the jobs with a number of hosts, and those that never ran."""
    known = []
    for job in jobs:
        if job.start < 0 or job.nodes > 0 or job.nodes_asked > 0:
            known.append(job)
        else:
            counts.unusable.add("without hosts, which --unit nodes counts", job.place)
    if not any(job.start >= 0 for job in known):
        raise InputError("--unit nodes: no record has the number of hosts of its job; leave it out")
    return known


def why_no_job(counts: ImportCounts) -> str:
    """Return the most frequent reasons, for the message of an import without a job."""
    both = [*counts.unusable.items(), *counts.ignored.items()]
    worst = sorted(both, key=lambda item: -item[1].count)[:2]
    reasons = "; ".join(
        f"{count.count:,} x {reason} (first: {readable(count.first)})" for reason, count in worst
    )
    return f": {reasons}" if reasons else ": they contain no record"


def listed_reasons(counts: Reasons) -> list[dict[str, Any]]:
    """Return counts as in the report, the most frequent first."""
    worst_first = sorted(counts.items(), key=lambda item: -item[1].count)
    return [
        {"reason": reason, "count": each.count, "first": readable(each.first)}
        for reason, each in worst_first
    ]


def _charged(job: AccountingRecord) -> tuple[str, ...]:
    """Return the cells of a job's user, account, QOS and nice value."""
    return readable(job.user), readable(job.account), readable(job.qos), str(job.nice or "")
