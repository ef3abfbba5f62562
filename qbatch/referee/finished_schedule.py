"""The finished schedule that the referee looks at, and how it is read: SWF with waits, job rows, a result.

The reading is more tolerant than that of ``job_rows``: a row that starts before its submission is a breach to
name, not a file to refuse.  Rows that never ran (no wait, no run time, no processors) are counted and left out.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from qbatch.model.errors import InputError, UsageError, suggestion
from qbatch.model.record import MICROSECONDS, BoolArray, Int64Array, Schedule
from qbatch.model.spans import Spans, moved_pieces, with_pieces
from qbatch.results.job_rows import JobRows, job_rows_of, rejected_in, times_of
from qbatch.results.recorded import LATEST, read_recorded
from qbatch.results.table import Block, read_blocks

ABSENT = -1
"""A promise that was not recorded."""

NEVER = 1 << 62
"""The start of a job that still waited when its log was written."""

_COLUMNS = (
    "job_id", "submit", "start", "end", "procs", "estimate", "run", "promise", "first_promise", "policy", "sequence",
    "piece_count", "host", "kind",
)  # fmt: skip
_TIMES = ("submit", "start", "end", "run", "estimate", "promise", "first_promise")


@dataclass(frozen=True, slots=True)
class FinishedSchedule:
    """A finished schedule in order of sequence: by (submit, job number, line), unless the rows record their own.

    Times in integer microseconds.  ``run`` is what the rows say of the run time, ``end`` what they say of the
    end.  ``estimate`` is never below ``run`` once ``judge`` has looked for overruns.  ``promise`` and
    ``first_promise`` are ``ABSENT`` where nothing was recorded.  ``piece_count`` and ``pieces`` are those of ``JobRows``: a job
    with a count above 0 did not run in one go, and its pieces are known unless ``pieces`` is None.  ``host_cpus``: the
    processors of each host, where ``host`` and the pieces say on which each job ran; else empty.  ``is_one_pool``: whether
    all processors are alike to every job, which a machine of several hosts need not be.  ``is_preempted``: a log whose header
    says ``Preemption: TS`` holds totals of jobs that may have been suspended, and does not say which.  ``known_until``: a log
    that was written while jobs ran and waited shows the schedule up to this instant; those that ran are taken to end at their
    estimates, those that waited to start at ``NEVER``.
    """

    name: str
    procs_total: int
    number: Int64Array
    submit: Int64Array
    start: Int64Array
    end: Int64Array
    procs: Int64Array
    estimate: Int64Array
    run: Int64Array
    promise: Int64Array
    first_promise: Int64Array
    piece_count: Int64Array = field(default_factory=lambda: np.empty(0, np.int64))
    host: Int64Array = field(default_factory=lambda: np.empty(0, np.int64))
    pieces: Int64Array | None = None
    host_cpus: tuple[int, ...] = ()
    is_one_pool: bool = True
    is_preempted: bool = False
    known_until: int | None = None
    policy: str | None = None
    notes: tuple[str, ...] = ()
    skipped: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("piece_count", "host"):
            if len(getattr(self, name)) != len(self.number):
                object.__setattr__(self, name, np.full(len(self.number), ABSENT, np.int64))

    def __len__(self) -> int:
        return len(self.number)

    def lifted(self) -> FinishedSchedule:
        """Return the schedule with estimates raised to the run times, so that an estimate is an upper bound."""
        lasted = np.where(self.is_in_pieces, self.run, self.end - self.start)
        return replace(self, estimate=np.maximum(self.estimate, np.maximum(self.run, lasted)))

    @property
    def is_in_pieces(self) -> BoolArray:
        """Which jobs did not run in one go on the processors that they asked for."""
        return np.asarray(self.piece_count > 0)

    def spans(self) -> Spans:
        """Return what held processors when; a job in pieces has a span for each of them, and none where they are not known."""
        rows = np.flatnonzero(~self.is_in_pieces)
        whole = Spans(rows, self.start[rows], self.end[rows], self.procs[rows], self.host[rows])
        return with_pieces(whole, self.pieces)


def finished_of(schedule: Schedule) -> FinishedSchedule:
    """Return a schedule of ours, from memory, as the referee sees it."""
    return _from_rows(job_rows_of(schedule), schedule.workload.name, schedule.workload.procs_total)


def read_finished(path: str, procs: int | None = None) -> list[FinishedSchedule]:
    """Read the schedules in a file or in a result: one for each policy in it, or the one that ``DIR:POLICY`` names.

    ``procs`` overrides what the header or the result says of the machine.  Job rows in a result's directory are checked as that
    part of the result.

    Raises:
        InputError: if it cannot be read, holds no schedule, or nobody says how large the machine is.
        UsageError: if a result holds no such policy.
    """
    from qbatch.results.reading import read_named, split_name
    from qbatch.results.result import result_beside

    bare, policy = split_name(path)
    if os.path.isdir(bare) or result_beside(bare) is not None:
        result = read_named(path, procs=procs)
        is_one_pool = _is_one_pool(result.document.get("machine"))
        return [
            replace(
                _from_rows(rows, result.name, result.procs_total), is_one_pool=is_one_pool, host_cpus=result.host_cpus
            )
            for rows in result.rows
        ]
    if bare.lower().endswith((".csv", ".parquet")):
        return _only(_read_rows(bare, procs), bare, policy)
    return [_read_swf(path, procs)]


def _only(found: list[FinishedSchedule], path: str, policy: str | None) -> list[FinishedSchedule]:
    """Return the schedule of one policy, of all if none is named."""
    from qbatch.policies.registry import name_among

    if policy is None:
        return found
    known = {str(each.policy): each for each in found}
    name = name_among(policy, known)
    if name not in known:
        raise UsageError(f"{path}: no policy {policy!r}{suggestion(policy, known)}; it has {', '.join(known)}")
    return [known[name]]


def _is_one_pool(machine: Any) -> bool:
    """Return what a result says of its machine; one that does not say it has one pool, unless jobs must stay in a host."""
    told = machine if isinstance(machine, dict) else {}
    return bool(told.get("one_pool", not (told.get("single_host") and told.get("hosts") != 1)))


def _from_rows(rows: JobRows, name: str, procs: int) -> FinishedSchedule:
    columns = {key: getattr(rows, key) for key in (*_TIMES, "procs", "sequence", "piece_count", "host")}
    notes = _refusals(len(rows.rejected)) if rows.rejected is not None else ()
    return _ordered(
        name, procs, {"number": rows.job_id, **columns}, policy=rows.policy, pieces=rows.pieces, notes=notes
    )


# ----------------------------------------------------------------------------------------------- job rows


def _read_rows(path: str, procs: int | None) -> list[FinishedSchedule]:
    if procs is None:
        raise InputError(f"{path}: job rows do not say how large the machine is; say it with --procs N")
    parts: dict[str | None, list[dict[str, Int64Array]]] = {}
    refused: dict[str | None, int] = {}
    notes: tuple[str, ...] = ()
    try:
        for block in read_blocks(path, _COLUMNS):
            if "estimate" not in block.names:
                notes = ("no column estimate: run times are taken for estimates",)
            chunk, rejected = _block_columns(block)
            words, places = block.coded("policy") if "policy" in block.names else ([""], np.zeros(len(block), np.int64))
            for place, word in enumerate(words):
                mask = places == place
                refused[word or None] = refused.get(word or None, 0) + int(rejected[mask].sum())
                mask &= ~rejected
                if mask.any():
                    parts.setdefault(word or None, []).append({key: part[mask] for key, part in chunk.items()})
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error}); check the path") from error
    if not parts:
        raise InputError(f"{path}: no job in it")
    found = []
    for policy, chunks in parts.items():
        columns = {key: np.concatenate([chunk[key] for chunk in chunks]) for key in chunks[0]}
        found.append(_ordered(path, procs, columns, policy=policy, notes=(*notes, *_refusals(refused[policy]))))
    return found


def _refusals(count: int) -> tuple[str, ...]:
    """Return a note about jobs that were refused: they owe nothing and are owed nothing."""
    jobs = "1 job was" if count == 1 else f"{count:,} jobs were"
    return (f"{jobs} refused by the policy and never ran",) if count else ()


def _block_columns(block: Block) -> tuple[dict[str, Int64Array], BoolArray]:
    """Return the columns that the referee needs, and which rows are jobs that were refused.

    job_id, submit, start, procs, and end or run have to be there.
    """
    names = block.names
    missing = [name for name in ("job_id", "submit", "start", "procs") if name not in names]
    if "end" not in names and "run" not in names:
        missing.append("end or run")
    if missing:
        raise InputError(f"{block.path}: line 1: these are no job rows: no column {', '.join(missing)}")
    rejected = rejected_in(block)
    columns = {
        name: times_of(block, name, rejected)
        for name in ("submit", "start", "end", "run", "estimate")
        if name in names
    }
    for name, column in columns.items():
        block.check(name, column > LATEST * MICROSECONDS, "is too large")
    columns["number"] = block.scaled("job_id", 1, may_lack=False)
    columns["procs"] = block.scaled("procs", 1, may_lack=False)
    if "end" not in columns:
        columns["end"] = columns["start"] + columns["run"]
    if "run" not in columns:
        columns["run"] = columns["end"] - columns["start"]
    columns.setdefault("estimate", columns["run"])
    for name in ("promise", "first_promise"):
        given = name in names
        columns[name] = (
            block.scaled(name, MICROSECONDS, may_lack=True) if given else np.full(len(block), ABSENT, np.int64)
        )
    for name in ("sequence", "piece_count", "host"):
        given = name in names
        columns[name] = block.scaled(name, 1, may_lack=True) if given else np.full(len(block), ABSENT, np.int64)
    block.check("procs", columns["procs"] < 1, "is less than 1")
    return columns, rejected


# ---------------------------------------------------------------------------------------------------- SWF


def _read_swf(path: str, procs: int | None) -> FinishedSchedule:
    from qbatch.workloads.unfinished import is_on_hosts

    recorded = read_recorded(path, procs, with_waiting=True)
    start = np.where(recorded.waits, NEVER, recorded.submit + recorded.wait)
    nobody = np.full(len(start), ABSENT, np.int64)
    notes = () if (recorded.requested > 0).all() else ("jobs without an estimate: their run time is taken for it",)
    whole = {
        "number": recorded.log["job"][recorded.row].astype(np.int64),
        "submit": recorded.submit,
        "start": start,
        "end": start + recorded.run,
        "procs": recorded.procs,
        "estimate": recorded.estimate,
        "run": recorded.run,
        "promise": nobody,
        "first_promise": nobody,
        "sequence": nobody,
        "piece_count": nobody,
        "host": nobody,
    }
    done = _ordered(path, recorded.procs_total, whole, notes=(*recorded.log.notes, *notes), skipped=recorded.skipped)
    return replace(
        done,
        is_preempted=recorded.is_preempted,
        is_one_pool=not is_on_hosts(recorded.log.header),
        known_until=recorded.known_until,
    )


def _ordered(
    name: str,
    procs: int,
    columns: dict[str, Int64Array],
    *,
    policy: str | None = None,
    notes: tuple[str, ...] = (),
    skipped: dict[str, int] | None = None,
    pieces: Int64Array | None = None,
) -> FinishedSchedule:
    """Return the rows by sequence where it is recorded for all and agrees with the submissions, else by the rule."""
    sequence = columns.pop("sequence")
    submit = columns["submit"]
    order = np.argsort(sequence, kind="stable")
    if (sequence < 0).any() or (np.diff(submit[order]) < 0).any():
        order = np.lexsort((columns["number"], submit))
    found = {key: column[order].astype(np.int64) for key, column in columns.items()}
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    known = moved_pieces(pieces, places)
    return FinishedSchedule(
        name=name,
        procs_total=procs,
        pieces=known,
        host_cpus=(),
        is_one_pool=True,
        is_preempted=False,
        known_until=None,
        policy=policy,
        notes=notes,
        skipped=skipped or {},
        **found,
    )
