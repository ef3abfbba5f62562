"""Job rows: one row per job that ran, in order of start, as CSV or Parquet (design.md, "What the outside sees").

Jobs that were refused come after those that ran, with empty times from ``start`` on, ``kind`` ``rejected``, and why in a last
column ``reason``, which a file has only if there is such a job in it.

Times are seconds of the log's own clock in the file and integer microseconds in memory.  Parquet keeps fractions of
seconds as 64-bit floats: exact to the microsecond up to 2**32 s; whole seconds are 64-bit integers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from qbatch.metrics.per_job import bounded_slowdowns, responses, slowdowns, waits
from qbatch.model.errors import InputError, UsageError, suggestion
from qbatch.model.record import KINDS, MICROSECONDS, BoolArray, Int8Array, Int64Array, Schedule
from qbatch.model.spans import moved_pieces
from qbatch.results.row_text import Cells, ratios, row_text, times
from qbatch.results.table import BLOCK_ROWS, Block, arrow, read_blocks

COLUMNS = (
    "job_id", "submit", "start", "end", "procs", "estimate", "run", "wait", "slowdown", "bounded_slowdown",
    "kind", "promise", "user", "group", "queue", "policy", "first_promise", "sequence", "counted", "piece_count",
    "host",
)  # fmt: skip
"""The columns of job rows, in order.

``piece_count``: 0 where a job ran in one go on the processors that it asked for; else in how many pieces it ran.  When, and on
how many processors, stands in the pieces of a result (:mod:`qbatch.results.pieces`).  ``wait`` of a job in pieces is all the time
in which it did not advance, ``end - submit - run``, as in the metrics; of every other one ``start - submit``.  ``host``: where
the job ran (at last), counted from 0 in the machine's order, where jobs live inside one of several hosts; else empty.
"""

REASON = "reason"
"""The column that says why a job was refused: the code, a colon and the text."""

REJECTED = "rejected"
"""The kind of a job that was refused."""

SUFFIXES = (".csv", ".parquet")
"""The forms in which job rows are written."""

ABSENT = -1
"""What a column holds for a job without a promise, user, group, queue or known kind."""

_TIMES = ("submit", "start", "end", "estimate", "run", "wait", "promise", "first_promise")
_RATIOS = ("slowdown", "bounded_slowdown")
_REASONS_AT_ONCE = 5_000  # texts are long, and each may be another
_MAY_LACK = ("promise", "first_promise", "user", "group", "queue", "sequence", "piece_count", "host")

Chunk = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class JobRows:
    """The jobs that one policy ran, as columns; times in integer microseconds, ``ABSENT`` where nothing is known.

    ``kind`` holds places in ``KINDS``; ``run`` is how long a job ran, or would have in one go, and ``end - start`` is more
    when it was suspended in between.  ``piece_count`` and ``host`` are as in the file, ``ABSENT`` where nobody says.
    ``pieces``: what the jobs in pieces ran, as in ``Schedule.pieces``, with places in these rows; None where there are none or
    none are known.  ``rejected``: the jobs that were refused, as rows whose start, end, run and kind are ``ABSENT``, each with
    its entry in ``reasons``; None where there are none.
    """

    policy: str
    job_id: Int64Array
    submit: Int64Array
    start: Int64Array
    end: Int64Array
    procs: Int64Array
    estimate: Int64Array
    run: Int64Array
    kind: Int8Array
    promise: Int64Array
    first_promise: Int64Array
    user: Int64Array
    group: Int64Array
    queue: Int64Array
    sequence: Int64Array
    counted: BoolArray
    piece_count: Int64Array = field(default_factory=lambda: np.empty(0, np.int64))
    host: Int64Array = field(default_factory=lambda: np.empty(0, np.int64))
    pieces: Int64Array | None = None
    rejected: JobRows | None = None
    reasons: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("piece_count", "host"):
            if len(getattr(self, name)) != len(self.job_id):
                object.__setattr__(self, name, np.full(len(self.job_id), ABSENT, np.int64))

    def __len__(self) -> int:
        return len(self.job_id)

    @property
    def is_in_pieces(self) -> BoolArray:
        """Which jobs did not run in one go on the processors that they asked for."""
        return np.asarray(self.piece_count > 0)

    @property
    def lacks_pieces(self) -> BoolArray:
        """Which jobs ran in pieces that are not known: of them only the first start and the end are."""
        return np.asarray((self.piece_count > 0) & (self.pieces is None))

    @property
    def wait(self) -> Int64Array:
        """How long each job waited: all the time in which it did not advance (papers.md 0.3)."""
        return waits(self.submit, self.start, self.end, self.run, self.is_in_pieces)

    @property
    def slowdown(self) -> NDArray[np.float64]:
        """Response over run time; NaN where the run time is 0."""
        return slowdowns(responses(self.submit, self.end), self.run)

    @property
    def bounded_slowdown(self) -> NDArray[np.float64]:
        """Response over run time, which counts as 10 s when it is less."""
        return bounded_slowdowns(responses(self.submit, self.end), self.run)

    def taken(self, which: NDArray[Any]) -> JobRows:
        """Return some of the rows: a mask, or indices without repetitions."""
        columns: dict[str, Any] = {name: getattr(self, name)[which] for name in ROW_FIELDS}
        if self.pieces is None:
            return replace(self, **columns)
        places = np.full(len(self), ABSENT, np.int64)
        places[np.arange(len(self))[which]] = np.arange(len(columns["job_id"]))
        return replace(self, **columns, pieces=moved_pieces(self.pieces, places))


ROW_FIELDS = tuple(field.name for field in fields(JobRows) if field.name not in ("policy", "pieces", "rejected", "reasons"))
"""The fields of ``JobRows`` that hold one value a job."""


def job_rows_of(schedule: Schedule) -> JobRows:
    """Return the rows of a schedule, as they would be read back from its file."""
    rows = schedule.in_order_of_start()
    columns = _columns(schedule, rows, _piece_counts(schedule))
    places = np.full(len(schedule.workload), ABSENT, np.int64)
    places[rows] = np.arange(len(rows))
    pieces, rejected = moved_pieces(schedule.pieces, places), _rejected_of(schedule)
    values: dict[str, Any] = {name: columns[name] for name in ROW_FIELDS}
    return JobRows(policy=schedule.policy, pieces=pieces, rejected=rejected, **values)


def _rejected_of(schedule: Schedule) -> JobRows | None:
    """Return the rows of the jobs that were refused."""
    if not schedule.rejected:
        return None
    rows = np.array([each.row for each in schedule.rejected], np.int64)
    columns = _columns(schedule, rows, _piece_counts(schedule))
    nothing = np.full(len(rows), ABSENT, np.int64)
    columns |= dict.fromkeys(("start", "end", "run", "promise", "first_promise", "kind"), nothing)
    reasons = tuple(f"{each.code}: {each.text}" for each in schedule.rejected)
    values: dict[str, Any] = {name: columns[name] for name in ROW_FIELDS}
    return JobRows(policy=schedule.policy, reasons=reasons, **values)


def _piece_counts(schedule: Schedule) -> Int64Array:
    """Return in how many pieces each row of the workload ran; 0 for one go."""
    rows = np.empty(0, np.int64) if schedule.pieces is None else schedule.pieces[:, 0]
    return np.bincount(rows, minlength=len(schedule.workload)).astype(np.int64)


def _columns(schedule: Schedule, rows: Int64Array, piece_counts: Int64Array) -> Chunk:
    """Return the ``ROW_FIELDS`` of some rows."""
    work = schedule.workload
    submit, start, end, run = work.submit[rows], schedule.start[rows], schedule.end[rows], work.run[rows]
    return {
        "job_id": work.number[rows],
        "submit": submit,
        "start": start,
        "end": end,
        "procs": work.procs[rows],
        "estimate": work.estimate[rows],
        "run": run,
        "kind": schedule.kind[rows],
        "promise": schedule.promise[rows],
        "user": work.user[rows].astype(np.int64),
        "group": work.group[rows].astype(np.int64),
        "queue": work.queue[rows].astype(np.int64),
        "first_promise": schedule.first_promise[rows],
        "sequence": rows,
        "counted": work.counted[rows],
        "piece_count": piece_counts[rows],
        "host": np.full(len(rows), ABSENT, np.int64) if schedule.host is None else schedule.host[rows],
    }


def _chunks(schedules: Iterable[Schedule | JobRows]) -> Iterator[tuple[str, Chunk]]:
    for schedule in schedules:
        if isinstance(schedule, JobRows):
            for first in range(0, len(schedule), BLOCK_ROWS):
                block = slice(first, first + BLOCK_ROWS)
                yield schedule.policy, _with_figures({name: getattr(schedule, name)[block] for name in ROW_FIELDS})
            yield from _rejected_chunks(schedule.rejected)
            continue
        rows, counts = schedule.in_order_of_start(), _piece_counts(schedule)
        for first in range(0, len(rows), BLOCK_ROWS):
            yield schedule.policy, _with_figures(_columns(schedule, rows[first : first + BLOCK_ROWS], counts))
        yield from _rejected_chunks(_rejected_of(schedule))


def _rejected_chunks(rejected: JobRows | None) -> Iterator[tuple[str, Chunk]]:
    if rejected is None:
        return
    nothing = np.full(len(rejected), np.nan)
    whole: Chunk = {name: getattr(rejected, name) for name in ROW_FIELDS}
    whole |= {"wait": np.full(len(rejected), ABSENT), "slowdown": nothing, "bounded_slowdown": nothing}
    whole[REASON] = np.array(rejected.reasons, object)
    for first in range(0, len(rejected), _REASONS_AT_ONCE):
        yield rejected.policy, {name: column[first : first + _REASONS_AT_ONCE] for name, column in whole.items()}


def _with_figures(columns: Chunk) -> Chunk:
    """Return the columns of jobs that ran with what they waited and their slowdowns, NaN for none."""
    submit, start, end, run = (columns[name] for name in ("submit", "start", "end", "run"))
    response = responses(submit, end)
    return columns | {
        "wait": waits(submit, start, end, run, columns["piece_count"] > 0),
        "slowdown": slowdowns(response, run),
        "bounded_slowdown": bounded_slowdowns(response, run),
    }


# ------------------------------------------------------------------------------------------------ writing


def write_job_rows(out: BinaryIO, schedules: Sequence[Schedule | JobRows], suffix: str = ".csv") -> None:
    """Write the job rows of one or more schedules, or rows that were read, one after another, as ``.csv`` or ``.parquet``.

    Raises:
        UsageError: if the suffix is neither, or pyarrow is needed and missing.
    """
    if suffix.lower() == ".csv":
        _write_csv(out, schedules)
    elif suffix.lower() == ".parquet":
        _write_parquet(out, schedules)
    else:
        raise UsageError(f"job rows are written as {' or '.join(SUFFIXES)}, not as {suffix or 'a file without suffix'}")


def _write_csv(out: BinaryIO, schedules: Sequence[Schedule | JobRows]) -> None:
    columns = _columns_for(schedules)
    out.write(",".join(columns).encode() + b"\n")
    for policy, chunk in _chunks(schedules):
        out.write(row_text([_cells_of(name, policy, chunk) for name in columns]))


def _columns_for(schedules: Sequence[Schedule | JobRows]) -> tuple[str, ...]:
    """Return the columns of a file: with the reasons where a job was refused."""
    return (*COLUMNS, REASON) if any(schedule.rejected for schedule in schedules) else COLUMNS


def _cells_of(name: str, policy: str, chunk: Chunk) -> Cells:
    """Return a column as the cells of its text; of jobs that were refused, which have reasons, any number may be absent."""
    rows, is_refused = len(chunk["job_id"]), REASON in chunk
    if name == "policy":
        return Cells(np.zeros(rows, np.int64), words=[policy])
    if name == REASON:
        words = list(dict.fromkeys(chunk[REASON])) if is_refused else [""]
        places = {word: place for place, word in enumerate(words)}
        codes = [places[word] for word in chunk[REASON]] if is_refused else [0] * rows
        return Cells(np.array(codes, np.int64), words=words)
    values = chunk[name]
    if name in _RATIOS:
        return ratios(values)
    if name == "kind":
        known = Cells(values, is_absent=values < 0, words=KINDS)
        return Cells(np.zeros(rows, np.int64), words=[REJECTED]) if is_refused else known
    is_absent = values < 0 if name in _MAY_LACK or is_refused else None
    return times(values, is_absent) if name in _TIMES else Cells(values, is_absent=is_absent)


def _write_parquet(out: BinaryIO, schedules: Sequence[Schedule | JobRows]) -> None:
    pa = arrow("writing Parquet")
    import pyarrow.parquet as pq

    time = pa.int64() if all(map(_is_whole, schedules)) else pa.float64()
    word = pa.dictionary(pa.int32(), pa.string())
    types = dict.fromkeys(_TIMES, time) | dict.fromkeys(_RATIOS, pa.float64())
    types |= {"kind": word, "policy": word, "counted": pa.bool_(), REASON: pa.string()}
    columns = _columns_for(schedules)
    schema = pa.schema([(name, types.get(name, pa.int64())) for name in columns])
    with pq.ParquetWriter(out, schema, compression="zstd") as writer:
        for policy, chunk in _chunks(schedules):
            cells = [_cells(pa, name, policy, chunk, schema.field(name).type) for name in columns]
            writer.write_batch(pa.record_batch(cells, schema=schema))


def _is_whole(schedule: Schedule | JobRows) -> bool:
    work = schedule if isinstance(schedule, JobRows) else schedule.workload
    ran = schedule.start >= 0
    columns = (work.submit, work.estimate, work.run, schedule.start[ran], schedule.end[ran])
    absent = [schedule.promise, schedule.first_promise]
    if isinstance(schedule, JobRows) and schedule.rejected is not None:
        absent += [getattr(schedule.rejected, name) for name in ("submit", "start", "end", "estimate", "run", "promise")]
    return not any((times % MICROSECONDS).any() for times in columns) and not any(
        (times[times >= 0] % MICROSECONDS).any() for times in absent
    )


def _cells(pa: Any, name: str, policy: str, chunk: Chunk, kind: Any) -> Any:
    if name == "policy":
        return pa.DictionaryArray.from_arrays(np.zeros(len(chunk["job_id"]), np.int32), [policy])
    if name == REASON:
        return pa.array(chunk.get(REASON, [""] * len(chunk["job_id"])), type=kind)
    values = chunk[name]
    if name == "kind":
        if REASON in chunk:
            return pa.DictionaryArray.from_arrays(np.zeros(len(values), np.int32), [REJECTED])
        places = pa.array(values.astype(np.int32), type=pa.int32(), mask=values < 0)
        return pa.DictionaryArray.from_arrays(places, list(KINDS))
    is_absent = REASON in chunk and name not in _RATIOS and name != "counted"
    lacks = values < 0 if name in _MAY_LACK or is_absent else np.isnan(values) if name in _RATIOS else None
    if name in _TIMES:
        values = values / MICROSECONDS if pa.types.is_floating(kind) else values // MICROSECONDS
    elif name in _RATIOS:
        values = np.round(values, 6)
    return pa.array(values, type=kind, mask=lacks)


# ------------------------------------------------------------------------------------------------ reading


def read_job_rows(path: str | Path) -> list[JobRows]:
    """Read job rows from CSV or Parquet, whoever wrote them: one ``JobRows`` per policy, in order of appearance.

    Columns may stand in any order and others beside them.  Needed are job_id, submit, start, procs, and end or run;
    an estimate that is not given is the run time, a policy that is not given is named after the file.

    Raises:
        InputError: naming the file, the line, the column and the reason.
    """
    chunks: list[Chunk] = []
    codes: dict[str, int] = {}
    for block in read_blocks(path, (*COLUMNS, REASON)):
        chunk = _read_block(block)
        words, places = block.coded("policy") if "policy" in block.names else ([""], np.zeros(len(block), np.int64))
        known = [codes.setdefault(word or Path(path).stem, len(codes)) for word in words]
        chunk["policy"] = np.array(known, np.int64)[places]
        chunks.append(chunk)
    if not codes or not any(len(chunk["policy"]) for chunk in chunks):
        return []
    whole = {name: np.concatenate([chunk[name] for chunk in chunks]) for name in chunks[0]}
    of_policy = whole.pop("policy")
    if len(codes) == 1:
        return [_rows_of(next(iter(codes)), whole)]
    return [
        _rows_of(policy, {name: column[of_policy == code] for name, column in whole.items()})
        for policy, code in codes.items()
    ]


def _rows_of(policy: str, columns: dict[str, Any]) -> JobRows:
    """Return the rows of one policy, the jobs that were refused apart."""
    reasons, is_rejected = columns.pop(REASON), columns.pop(REJECTED)
    if not is_rejected.any():
        return JobRows(policy=policy, **columns)
    ran, rejected = (
        {name: column[mask] for name, column in columns.items()} for mask in (~is_rejected, is_rejected)
    )
    refused = JobRows(policy=policy, reasons=tuple(reasons[is_rejected].tolist()), **rejected)
    return JobRows(policy=policy, rejected=refused, **ran)


def _read_block(block: Block) -> Chunk:
    """Return the columns of a block, those that are not given filled in."""
    names = block.names
    missing = [name for name in ("job_id", "submit", "start", "procs") if name not in names]
    if "end" not in names and "run" not in names:
        missing.append("end or run")
    if missing:
        raise InputError(f"{block.path}: line 1: these are no job rows: no column {', '.join(missing)}")
    kinds = {"": ABSENT} | {kind: place for place, kind in enumerate((*KINDS, REJECTED))}
    kind, is_rejected = meant(block, "kind", kinds, np.int8), rejected_in(block)
    chunk: Chunk = {"submit": block.scaled("submit", MICROSECONDS, may_lack=False)}
    chunk |= {name: block.scaled(name, 1, may_lack=False) for name in ("job_id", "procs")}
    for name in ("start", "end", "run", "estimate"):
        if name in names:
            chunk[name] = times_of(block, name, is_rejected)
    start = chunk["start"]
    if "end" not in chunk:
        block.check("run", chunk["run"] > np.iinfo(np.int64).max - np.maximum(start, 0), "is too large")
        chunk["end"] = np.where(is_rejected, ABSENT, start + chunk["run"])
    chunk.setdefault("run", np.where(is_rejected, ABSENT, chunk["end"] - start))
    chunk.setdefault("estimate", chunk["run"])
    for name in _MAY_LACK:
        scale = MICROSECONDS if name in _TIMES else 1
        given = name in names
        chunk[name] = block.scaled(name, scale, may_lack=True) if given else np.full(len(block), ABSENT, np.int64)
    chunk["kind"] = np.where(is_rejected, np.int8(ABSENT), kind)
    chunk["counted"] = meant(block, "counted", YES_OR_NO, bool)
    chunk[REJECTED], chunk[REASON] = is_rejected, _reasons(block)
    block.check("procs", chunk["procs"] < 1, "is less than 1")
    block.check("start", ~is_rejected & (start < chunk["submit"]), "lies before submit")
    block.check("end", chunk["end"] < start, "lies before start")
    return chunk


def times_of(block: Block, name: str, is_rejected: BoolArray) -> Int64Array:
    """Return a column of times that every job has but those that were refused."""
    if not is_rejected.any():
        return block.scaled(name, MICROSECONDS, may_lack=False)
    times = block.scaled(name, MICROSECONDS, may_lack=True)
    block.check(name, (times < 0) & ~is_rejected, "is empty")
    return times


def rejected_in(block: Block) -> BoolArray:
    """Return which rows of a block are jobs that were refused."""
    if "kind" not in block.names:
        return np.zeros(len(block), np.bool_)
    words, places = block.coded("kind")
    return np.array([word.lower() == REJECTED for word in words], np.bool_)[places]


def _reasons(block: Block) -> NDArray[Any]:
    if REASON not in block.names:
        return np.full(len(block), "", object)
    words, places = block.coded(REASON)
    return np.array(words, object)[places]


YES_OR_NO = {"": 1, "1": 1, "true": 1, "0": 0, "false": 0}
"""What the words of a yes-or-no column mean; nothing is yes."""


def meant(block: Block, name: str, meanings: dict[str, int], kind: Any) -> NDArray[Any]:
    """Return a column of words as numbers; a column that is not there is all empty words."""
    if name not in block.names:
        return np.full(len(block), meanings[""], kind)
    words, places = block.coded(name)
    for place, word in enumerate(words):
        if word.lower() not in meanings:
            known = [meaning for meaning in meanings if meaning]
            reason = f"{word[:40]!r} is none of {', '.join(known)}{suggestion(word, known)}"
            raise block.refuse(int(np.argmax(places == place)), name, reason)
    return np.array([meanings[word.lower()] for word in words], kind)[places]
