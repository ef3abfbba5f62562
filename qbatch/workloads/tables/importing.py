"""The whole way from tables of jobs to a log, its side file, and the report of the import.

The tables are read once, in batches.  The jobs go through :class:`DiskSort`, so memory does not
grow with their number, but with the number of different names in them.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, BinaryIO, NamedTuple

import msgspec
import numpy as np

from qbatch.model.errors import InputError, UsageError
from qbatch.model.spans import Peak, too_small
from qbatch.workloads.accounting.importing import SCHEMA, listed_reasons, why_no_job
from qbatch.workloads.accounting.record import ImportCounts
from qbatch.workloads.accounting.swf_log import header_lines, names_as_notes, per_processor
from qbatch.workloads.accounting.times import WallClock, zone_named
from qbatch.workloads.header import Header, parse_header, readable
from qbatch.workloads.left_out import (
    GPUS,
    MEMORY,
    PARTITIONS,
    PRIORITY,
    QOS,
    RESERVATIONS,
    Asks,
    LeftOut,
    count_left_out,
)
from qbatch.workloads.log import FIELDS, Column, Log, compact, counted
from qbatch.workloads.side_file import SideText
from qbatch.workloads.swf_writer import write_log
from qbatch.workloads.tables.disk_sort import RUN_ROWS, DiskSort
from qbatch.workloads.tables.reading import Table
from qbatch.workloads.tables.rows import JOB_ORDER, JOB_ROW, RowMaker
from qbatch.workloads.tables.table_map import TableMap

SIDE_COLUMNS = (
    "job",
    "nodes",
    "cpus_per_node",
    "memory_per_node",
    "gpus_per_node",
    "gpu_type",
    "partitions",
    "qos",
    "account",
    "reservation",
    "eligible",
    "priority",
)
"""The columns of the side file (:mod:`qbatch.workloads.resource_rows`).  ``memory_per_node`` is
bytes, ``eligible`` seconds of the log."""

_IN_USE = np.dtype([("at", np.int64), ("change", np.int64)])


class _Kind(NamedTuple):
    """A kind of what a log leaves out: our names of its columns, the field of ``JOB_ROW`` that is
    above 0 if a job has it, and the field of its name."""

    names: tuple[str, ...]
    has: str
    by: str = ""


_KINDS = {
    GPUS: _Kind(("gpus", "gpus_per_node"), "gpus", "gpu_type"),
    MEMORY: _Kind(("memory", "memory_per_node"), "memory"),
    PARTITIONS: _Kind(("partition",), "partition", "partition"),
    QOS: _Kind(("qos",), "qos", "qos"),
    PRIORITY: _Kind(("priority",), "priority", "priority"),
    RESERVATIONS: _Kind(("reservation",), "reservation", "reservation"),
}


@dataclass(frozen=True, slots=True)
class TableOptions:
    """How to import tables.  ``timezone`` replaces that of the map.  ``machine_procs``: the size of
    the machine; None: the most in use at once.  ``notes``: for the header of the log.
    ``run_rows``: the rows that are sorted in memory at once."""

    timezone: str | None = None
    machine_procs: int | None = None
    computer: str | None = None
    installation: str | None = None
    notes: tuple[str, ...] = ()
    run_rows: int = RUN_ROWS


@dataclass
class _Seen:
    """What all jobs together are, counted while they are read; instants in seconds since 1970.
    ``widths``: how many jobs have so many processors.  ``asks``: by kind, how many jobs have each
    name, by the number of the name."""

    jobs: int = 0
    ran: int = 0
    first_submit: int = 0
    last_end: int = 0
    longest_run: int = 0
    without_nodes: int = 0
    eligible_later: int = 0
    widest: Peak = field(default_factory=lambda: Peak(0, 0))
    widths: Counter[int] = field(default_factory=Counter)
    asks: dict[str, Counter[int]] = field(
        default_factory=lambda: {kind: Counter() for kind in _KINDS}
    )

    def add(self, rows: Column) -> None:
        """Count the jobs of a batch."""
        if not len(rows):
            return
        submit, procs, used = rows["submit"], rows["procs"], rows["procs_allocated"]
        first = int(submit.min())
        self.first_submit = min(self.first_submit, first) if self.jobs else first
        self.jobs += len(rows)
        self.ran += int((rows["start"] >= 0).sum())
        self.last_end = max(self.last_end, int(rows["end"].max()), int(submit.max()))
        self.longest_run = max(self.longest_run, int(rows["run"].max()))
        self.without_nodes += int((rows["nodes"] < 0).sum())
        self.eligible_later += int((rows["eligible"] > submit).sum())
        self.widths.update(_counted(np.maximum(procs, used)))
        row = rows[int(used.argmax())]
        if row["procs_allocated"] > self.widest.procs:
            self.widest = Peak(int(row["procs_allocated"]), int(row["start"]))
        for kind, (_, has, by) in _KINDS.items():
            having = rows[rows[has] > 0]
            self.asks[kind].update(_counted(having[by] if by else np.full(len(having), -1)))


def _counted(values: Column) -> dict[int, int]:
    found, many = np.unique(values, return_counts=True)
    return dict(zip(found.tolist(), many.tolist(), strict=True))


class TableLog:
    """A log made of tables, still on disk: ``lines`` of the header, ``document`` (the record of the
    import, schema ``qbatch.import/1``), and the jobs in order, which can be read once."""

    def __init__(
        self,
        lines: list[str],
        document: dict[str, Any],
        first_submit: int,
        rows: DiskSort,
        words: dict[str, list[str]],
    ) -> None:
        self.lines, self.document = lines, document
        self._first_submit, self._rows, self._words = first_submit, rows, words

    def write(self, log: BinaryIO, side: BinaryIO | None) -> int:
        """Write the log, and the side file of resources if one is given; return how many jobs that
        describes."""
        header, described = Header(lines=tuple(self.lines)), 0
        if side is not None:
            side.write((",".join(SIDE_COLUMNS) + "\n").encode())
        for first, rows in self._blocks():
            write_log(log, header, self._columns(rows, first))
            header = Header()
            if side is not None:
                described += self._write_side(side, rows, first)
        return described

    def in_memory(self, name: str) -> Log:
        """Return the log in memory, with its side file of resources."""
        side, described, parts = io.BytesIO(), 0, []
        side.write((",".join(SIDE_COLUMNS) + "\n").encode())
        for first, rows in self._blocks():
            parts.append(self._columns(rows, first))
            described += self._write_side(side, rows, first)
        columns = {each: compact(np.concatenate([part[each] for part in parts])) for each in FIELDS}
        digest = hashlib.sha256()
        for each in FIELDS:
            digest.update(np.ascontiguousarray(columns[each]).tobytes())
        line = np.arange(1, len(columns["job"]) + 1, dtype=np.int32)
        notes = [
            f"{counted(each['count'], 'row', 'rows')} of the table: {each['reason']}"
            for part in ("unusable", "ignored", "adjusted")
            for each in self.document[part]
        ]
        text = SideText(name, side.getvalue()) if described else None
        header = parse_header(self.lines)
        return Log(name, digest.hexdigest(), header, columns, line, notes, side=text)

    def _blocks(self) -> Iterator[tuple[int, Column]]:
        """Yield blocks of jobs in order, each with the number of its first."""
        first = 1
        for rows in self._rows.blocks():
            yield first, rows
            first += len(rows)

    def _columns(self, rows: Column, first: int) -> dict[str, Column]:
        """Return the 18 fields of SWF."""
        unknown = np.full(len(rows), -1)
        left = np.where(rows["start"] >= 0, rows["start"], rows["end"])
        memory_kb = np.where(rows["memory"] > 0, rows["memory"] / 1024, -1)
        return {
            "job": np.arange(first, first + len(rows)),
            "submit": rows["submit"] - self._first_submit,
            "wait": np.where(left >= 0, left - rows["submit"], -1),
            "run": rows["run"],
            "procs_allocated": rows["procs_allocated"],
            "cpu_time": unknown,
            "memory_used": unknown,
            "procs_requested": rows["procs"],
            "time_requested": rows["limit"],
            "memory_requested": np.floor(per_processor(memory_kb, rows["procs"])),
            "status": rows["status"],
            "user": rows["user"],
            "group": rows["group"],
            "executable": rows["name"],
            "queue": rows["partition"],
            "partition": rows["partition"],
            "preceding_job": unknown,
            "think_time": unknown,
        }

    def _write_side(self, side: BinaryIO, rows: Column, first: int) -> int:
        """Write the lines of jobs with a known number of nodes; return their number."""
        is_known = (rows["nodes"] > 0) & (rows["procs"] > 0)
        job, rows = np.arange(first, first + len(rows))[is_known], rows[is_known]

        def each_node(name: str) -> list[int]:
            shares: list[int] = np.maximum(-(-rows[name] // rows["nodes"]), 0).tolist()
            return shares

        def word(name: str) -> list[str]:
            words = self._words[name]
            return [words[number] for number in rows[name].tolist()]

        eligible = rows["eligible"]
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(
            zip(
                job.tolist(),
                rows["nodes"].tolist(),
                each_node("procs"),
                each_node("memory"),
                each_node("gpus"),
                word("gpu_type"),
                word("partition"),
                word("qos"),
                word("account"),
                word("reservation"),
                _known_only(np.where(eligible >= 0, eligible - self._first_submit, -1)),
                _known_only(rows["priority"]),
                strict=True,
            )
        )
        side.write(text.getvalue().encode("utf-8", "replace"))
        return len(rows)


def _known_only(values: Column) -> list[int | str]:
    return ["" if value < 0 else value for value in values.tolist()]


def import_tables(
    tables: Iterable[Table], table_map: TableMap, options: TableOptions, counts: ImportCounts
) -> TableLog:
    """Return the log of some tables that have the columns of one map.

    Raises:
        UsageError: a time zone or the size of the machine is wrong.
        InputError: a table cannot be read, lacks a column, or no job can be made of it.
        OutputError: the temporary file cannot be written.
    """
    clock = WallClock(zone_named(options.timezone or table_map.timezone))
    maker, seen = RowMaker(table_map, clock, counts), _Seen()
    jobs = DiskSort(JOB_ROW, JOB_ORDER, options.run_rows)
    in_use = DiskSort(_IN_USE, ("at", "change"), options.run_rows)
    files: list[str] = []
    there: set[str] = set(table_map.defaults)
    for table in tables:
        files.append(readable(table.name))
        chosen = table_map.chosen(table.columns, table.name)
        there |= set(chosen)
        for batch in table.batches([*dict.fromkeys((*chosen.values(), *table_map.filters))]):
            rows = maker.rows(batch, chosen)
            seen.add(rows)
            jobs.add(rows)
            in_use.add(_changes(rows))
    maker.count_words_without_number()
    if not seen.ran:
        named = ", ".join(files[:3])
        raise InputError(f"{named}: no job that ran can be made of these rows{why_no_job(counts)}")
    if seen.without_nodes:
        counts.adjusted.add(
            "without a number of nodes: not in the side file",
            "",
            seen.without_nodes,
        )
    peak = max(_peak(in_use), seen.widest, key=lambda each: each.procs)
    procs = options.machine_procs or peak.procs
    if procs < peak.procs:
        when = datetime.fromtimestamp(peak.at, UTC).astimezone(clock.zone).isoformat()
        raise UsageError(too_small("--machine-procs", procs, "the log", peak, f"at {when}"))
    # The index of a word is its number; -1, unknown, is the empty one at the end.
    words = {name: ["", *found.words, ""] for name, found in maker.words.items()}
    left_out = _left_out(seen, there, words)
    given = "given; a processor is one of the cores"
    how = given if options.machine_procs else "inferred: most cores allocated at once"
    lines = header_lines(
        computer=options.computer or table_map.title or "not stated",
        installation=options.installation,
        jobs=seen.jobs,
        preemption="No",
        first=seen.first_submit,
        last=seen.last_end,
        zone=clock.zone,
        sizes=[f"MaxProcs: {procs} ({how})"],
        longest_run=seen.longest_run,
        queues={number: name for name, number in maker.words["partition"].words.items()},
        notes=[
            *options.notes,
            *table_map.notes,
            *(each.note for each in left_out),
            *names_as_notes({kind: maker.words[kind].words for kind in ("user", "group")}),
        ],
    )
    names = {"user": "user", "group": "group", "executable": "name", "queue": "partition"}
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "format": "table",
        "map": table_map.name,
        "notes": list(table_map.notes),
        "files": files,
        "lines": counts.lines,
        "records": counts.records,
        "jobs": {
            "written": seen.jobs,
            "ran": seen.ran,
            "never_ran": seen.jobs - seen.ran,
            "attempts_after_a_requeue": 0,
            "eligible_later_than_submitted": seen.eligible_later,
            "names": {kind: len(maker.words[ours].words) for kind, ours in names.items()},
            "clusters": {},
        },
        "left_out": msgspec.to_builtins([*left_out]),
        "unusable": listed_reasons(counts.unusable),
        "ignored": listed_reasons(counts.ignored),
        "adjusted": listed_reasons(counts.adjusted),
        "unknown_fields": {},
        "time": {
            "zone": clock.zone.key,
            "zone_from": "--timezone" if options.timezone else f"the map {table_map.name}",
            "gaps": clock.gaps,
            "folds": clock.folds,
        },
        "machine": {
            "procs": procs,
            "is_inferred": options.machine_procs is None,
            "hosts_seen": 0,
            "wider_jobs": sum(many for width, many in seen.widths.items() if width > procs),
        },
    }
    return TableLog(lines, document, seen.first_submit, jobs, words)


def _changes(rows: Column) -> Column:
    """Return when processors came into use and went out of it, of jobs that took time."""
    lasting = rows[(rows["run"] > 0) & (rows["procs_allocated"] > 0)]
    changes = np.empty(2 * len(lasting), _IN_USE)
    changes["at"] = np.concatenate([lasting["start"], lasting["end"]])
    changes["change"] = np.concatenate([lasting["procs_allocated"], -lasting["procs_allocated"]])
    return changes


def _peak(in_use: DiskSort) -> Peak:
    """Return the most processors in use at once; at one instant, ends come first."""
    peak, now = Peak(0, 0), 0
    for block in in_use.blocks():
        used = now + np.cumsum(block["change"])
        most = int(used.argmax())
        if used[most] > peak.procs:
            peak = Peak(int(used[most]), int(block["at"][most]))
        now = int(used[-1])
    return peak


def _left_out(seen: _Seen, there: set[str], words: dict[str, list[str]]) -> tuple[LeftOut, ...]:
    """Return what the log does not contain; ``there``: our names that the tables have."""
    asks: Counter[Asks] = Counter()
    for kind, (_, _, by) in _KINDS.items():
        for number, many in seen.asks[kind].items():
            name = str(number) if by == "priority" else words[by][number] if by else ""
            if kind == GPUS:
                name = f"gpu:{name}" if name else "gpu"
            asks[((kind, name),)] += many
    recorded = {kind for kind, each in _KINDS.items() if not there.isdisjoint(each.names)}
    return count_left_out(asks, recorded, seen.jobs)
