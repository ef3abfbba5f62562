"""Job rows: one row per job that ran, in order of start, as CSV or Parquet (docs/design.md, "What
the outside sees").

Refused jobs follow those that ran, with empty times from ``start`` on, ``kind`` ``rejected``, and
the reason in a last column ``reason``.  A file has optional columns only if some job needs them:
``reason``; ``broken``, how often a promise to the job was withdrawn or not kept; ``deadline``;
``predicted``, in a run with predicted run times.  The column ``hosts`` exists if the engine
replayed jobs on several hosts.

Times are seconds of the log's own clock in the file and integer microseconds in memory.  Parquet
keeps fractions of seconds as 64-bit floats: exact to the microsecond up to 2**32 s; whole seconds
are 64-bit integers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from qbatch.metrics.per_job import bounded_slowdowns, responses, slowdowns, waits
from qbatch.model.errors import InputError, UsageError, suggestion
from qbatch.model.record import (
    KINDS,
    MICROSECONDS,
    BoolArray,
    Int64Array,
    Rejection,
    Schedule,
    finished_run,
)
from qbatch.results.row_text import Cells, ratios, row_text, times
from qbatch.results.table import BLOCK_ROWS, Block, arrow, read_blocks

COLUMNS = (
    "job_id",
    "submit",
    "start",
    "end",
    "procs",
    "estimate",
    "run",
    "wait",
    "slowdown",
    "bounded_slowdown",
    "kind",
    "promise",
    "user",
    "group",
    "queue",
    "policy",
    "first_promise",
    "sequence",
    "counted",
    "piece_count",
    "host",
)
"""The columns of job rows, in order.

``piece_count``: 0 for a job that ran without interruption on the processors that it requested; else
the number of its execution intervals, which a result keeps (:mod:`qbatch.results.pieces`).
``wait`` of a job with several intervals is all the time in which it did not advance, ``end -
submit - run``, as in the metrics; of any other job it is ``start - submit``.  ``host``: the last
host of the job, counted from 0 in the machine's order, if jobs run inside one of several hosts;
else empty.
"""

BROKEN = "broken"
"""The column with the number of withdrawn or unkept promises to a job."""

DEADLINE = "deadline"
"""The column with the deadline of a job."""

PREDICTED = "predicted"
"""The column with the run time predicted at submission, if there was a prediction."""

HOSTS = "hosts"
"""The column with the hosts of a job, as ``n[01-02]``, if they were recorded."""

REASON = "reason"
"""The column with the reason of a refusal: the code, a colon and the text."""

REJECTED = "rejected"
"""The kind of a job that was refused."""

SUFFIXES = (".csv", ".parquet")
"""The formats of job rows."""

ABSENT = -1
"""The value of a column for a job without a promise, user, group, queue or known kind."""

LATEST = float(1 << 42)
"""Largest time in seconds, so that sums of microseconds stay in 64 bits."""

_TIMES = (
    "submit",
    "start",
    "end",
    "estimate",
    "run",
    "wait",
    "promise",
    "first_promise",
    DEADLINE,
    PREDICTED,
)
_RATIOS = ("slowdown", "bounded_slowdown")
_REASONS_AT_ONCE = 5_000  # texts are long, and each may be another
_MAY_LACK = (
    "promise",
    "first_promise",
    "user",
    "group",
    "queue",
    "sequence",
    "piece_count",
    "host",
    DEADLINE,
    BROKEN,
    PREDICTED,
)
_NOT_JUDGED = ("kind", "counted", "user", "group", "queue")

Chunk = dict[str, NDArray[Any]]


def _columns(schedule: Schedule, rows: Int64Array, piece_counts: Int64Array) -> Chunk:
    """Return the stored columns of some rows, without those that can be computed from them."""
    work = schedule.workload
    absent = np.broadcast_to(np.int64(ABSENT), len(rows))
    return {
        "job_id": work.number[rows],
        "submit": work.submit[rows],
        "start": schedule.start[rows],
        "end": schedule.end[rows],
        "procs": work.procs[rows],
        "estimate": work.estimate[rows],
        "run": work.run[rows],
        "kind": schedule.kind[rows],
        "promise": schedule.promise[rows],
        "user": work.user[rows].astype(np.int64),
        "group": work.group[rows].astype(np.int64),
        "queue": work.queue[rows].astype(np.int64),
        "first_promise": schedule.first_promise[rows],
        "sequence": rows if work.sequence is None else work.sequence[rows],
        "counted": work.counted[rows],
        "piece_count": piece_counts[rows],
        "host": absent if schedule.host is None else schedule.host[rows],
        DEADLINE: work.deadline[rows],
        BROKEN: absent if schedule.broken is None else schedule.broken[rows],
        PREDICTED: absent if schedule.predicted is None else schedule.predicted[rows],
        **({} if schedule.hosts is None else {HOSTS: schedule.hosts[rows]}),
    }


def _chunks(schedules: Sequence[Schedule]) -> Iterator[tuple[str, Chunk]]:
    """Yield the columns of some rows at a time, with waits and slowdowns, NaN for none; refused
    jobs are last."""
    for schedule in schedules:
        rows, counts = schedule.in_order_of_start(), schedule.piece_count
        for first in range(0, len(rows), BLOCK_ROWS):
            chunk = _columns(schedule, rows[first : first + BLOCK_ROWS], counts)
            submit, start, end, run = (chunk[name] for name in ("submit", "start", "end", "run"))
            response = responses(submit, end)
            yield (
                schedule.policy,
                chunk
                | {
                    "wait": waits(submit, start, end, run, chunk["piece_count"] > 0),
                    "slowdown": slowdowns(response, run),
                    "bounded_slowdown": bounded_slowdowns(response, run),
                },
            )
        for first in range(0, len(schedule.rejected), _REASONS_AT_ONCE):
            refused = schedule.rejected[first : first + _REASONS_AT_ONCE]
            yield schedule.policy, _refused(schedule, refused, counts)


def _refused(schedule: Schedule, refused: Sequence[Rejection], piece_counts: Int64Array) -> Chunk:
    """Return the columns of some jobs that were refused, with the reasons."""
    nothing, none = np.full(len(refused), ABSENT), np.full(len(refused), np.nan)
    chunk = _columns(schedule, np.array([each.row for each in refused], np.int64), piece_counts)
    chunk |= dict.fromkeys(
        ("start", "end", "run", "promise", "first_promise", "kind", "wait"), nothing
    )
    chunk |= dict.fromkeys(_RATIOS, none)
    reasons = [f"{each.code}: {each.text}" if each.text else each.code for each in refused]
    return chunk | {REASON: np.array(reasons, object)}


# ------------------------------------------------------------------------------------------------
# writing


def write_job_rows(out: BinaryIO, schedules: Sequence[Schedule], suffix: str = ".csv") -> None:
    """Write the job rows of one or more schedules, one after another, as ``.csv`` or ``.parquet``.

    Raises:
        UsageError: the suffix is neither, or pyarrow is needed and missing.
    """
    if suffix.lower() == ".csv":
        _write_csv(out, schedules)
    elif suffix.lower() == ".parquet":
        _write_parquet(out, schedules)
    else:
        raise UsageError(
            f"job rows are written as {' or '.join(SUFFIXES)}, not as "
            f"{suffix or 'a file without suffix'}"
        )


def _write_csv(out: BinaryIO, schedules: Sequence[Schedule]) -> None:
    columns = _columns_for(schedules)
    out.write(",".join(columns).encode() + b"\n")
    for policy, chunk in _chunks(schedules):
        out.write(row_text([_cells_of(name, policy, chunk) for name in columns]))


def _columns_for(schedules: Sequence[Schedule]) -> tuple[str, ...]:
    """Return the columns of a file, with optional ones (deadlines, broken promises, predictions,
    reasons) only if needed."""
    deadline = (
        (DEADLINE,)
        if any((schedule.workload.deadline >= 0).any() for schedule in schedules)
        else ()
    )
    broken = (BROKEN,) if any(schedule.broken is not None for schedule in schedules) else ()
    predicted = (
        (PREDICTED,) if any(schedule.predicted is not None for schedule in schedules) else ()
    )
    return (
        *COLUMNS,
        *deadline,
        *broken,
        *predicted,
        *((HOSTS,) if any(schedule.hosts is not None for schedule in schedules) else ()),
        *((REASON,) if any(schedule.rejected for schedule in schedules) else ()),
    )


def _cells_of(name: str, policy: str, chunk: Chunk) -> Cells:
    """Return a column as text cells; of refused jobs, which have reasons, any number may be
    absent."""
    rows, is_refused = len(chunk["job_id"]), REASON in chunk
    if name == "policy":
        return Cells(np.zeros(rows, np.int64), words=[policy])
    if name in (REASON, HOSTS):
        texts = chunk[name].tolist() if name in chunk else [""] * rows
        places = {word: place for place, word in enumerate(dict.fromkeys(texts))}
        return Cells(np.array([places[text] for text in texts], np.int64), words=list(places))
    values = chunk[name]
    if name in _RATIOS:
        return ratios(values)
    if name == "kind":
        known = Cells(values, is_absent=values < 0, words=KINDS)
        return Cells(np.zeros(rows, np.int64), words=[REJECTED]) if is_refused else known
    is_absent = values < 0 if name in _MAY_LACK or is_refused else None
    return times(values, is_absent) if name in _TIMES else Cells(values, is_absent=is_absent)


def _write_parquet(out: BinaryIO, schedules: Sequence[Schedule]) -> None:
    arrow("writing Parquet")
    import pyarrow.parquet as pq

    schema = _schema(schedules)
    with pq.ParquetWriter(out, schema, compression="zstd", write_page_checksum=True) as writer:
        for batch in _batches(schedules, schema):
            writer.write_batch(batch)


def job_table(schedules: Sequence[Schedule]) -> Any:
    """Return the job rows of one or more schedules, one after another, as an Arrow table.

    Columns and types are those of the Parquet file; the metadata of a field holds its ``unit``, if
    it has one.

    Raises:
        UsageError: pyarrow is missing.
    """
    pa = arrow("a table of jobs")
    schema = _schema(schedules)
    table = pa.Table.from_batches(_batches(schedules, schema), schema).unify_dictionaries()
    units = dict.fromkeys(_TIMES, "s") | dict.fromkeys(_RATIOS, "ratio") | {"procs": "processors"}
    fields = [
        field.with_metadata({"unit": units[field.name]}) if field.name in units else field
        for field in schema
    ]
    return table.cast(pa.schema(fields)).combine_chunks()


def _schema(schedules: Sequence[Schedule]) -> Any:
    """Return the columns of a table of jobs; times are whole numbers if all of them are."""
    import pyarrow as pa

    time = pa.int64() if all(map(_is_whole, schedules)) else pa.float64()
    word = pa.dictionary(pa.int32(), pa.string())
    types = dict.fromkeys(_TIMES, time) | dict.fromkeys(_RATIOS, pa.float64())
    types |= {"kind": word, "policy": word, HOSTS: word, "counted": pa.bool_(), REASON: pa.string()}
    return pa.schema([(name, types.get(name, pa.int64())) for name in _columns_for(schedules)])


def _batches(schedules: Sequence[Schedule], schema: Any) -> Iterator[Any]:
    import pyarrow as pa

    for policy, chunk in _chunks(schedules):
        cells = [_cells(pa, field.name, policy, chunk, field.type) for field in schema]
        yield pa.record_batch(cells, schema=schema)


def _is_whole(schedule: Schedule) -> bool:
    work, ran = schedule.workload, schedule.ran
    columns = (work.submit, work.estimate, schedule.start[ran], schedule.end[ran])
    absent = [work.run, schedule.promise, schedule.first_promise, work.deadline]
    absent += [] if schedule.predicted is None else [schedule.predicted]
    return not any((times % MICROSECONDS).any() for times in columns) and not any(
        (times[times >= 0] % MICROSECONDS).any() for times in absent
    )


def _cells(pa: Any, name: str, policy: str, chunk: Chunk, kind: Any) -> Any:
    if name in ("policy", "kind", HOSTS, REASON):
        cells = _cells_of(name, policy, chunk)
        places = pa.array(cells.whole.astype(np.int32), type=pa.int32(), mask=cells.is_absent)
        coded = pa.DictionaryArray.from_arrays(places, list(cells.words or ()))
        return coded.dictionary_decode() if name == REASON else coded
    values = chunk[name]
    if name in _RATIOS:
        return pa.array(np.round(values, 6), type=kind, mask=np.isnan(values))
    is_absent = values < 0 if name in _MAY_LACK or REASON in chunk else None
    if name in _TIMES:
        values = values / MICROSECONDS if pa.types.is_floating(kind) else values // MICROSECONDS
    return pa.array(values, type=kind, mask=is_absent)


# ------------------------------------------------------------------------------------------------
# reading


def read_job_rows(path: str | Path, *, is_judged: bool = False) -> list[Schedule]:
    """Read job rows of any program from CSV or Parquet: one schedule per policy, in order of
    appearance.

    Columns may be in any order, among others.  Required are job_id, submit, start, procs, and end
    or run.  A missing estimate is the run time; a missing policy is named after the file.  The jobs
    are sorted by their sequence if all have one and it agrees with the submissions, else by
    (submit, job number, line).  The size of the machine stays unknown.

    ``is_judged``: for the referee, for which a row that starts before its submission or ends before
    its start is a breach to report.  A missing policy is then empty, and kinds, users, groups and
    queues are not read.

    Raises:
        InputError: the file cannot be used; the message names the file, the line, the column and
            the reason.
    """
    wanted = [
        name
        for name in (*COLUMNS, DEADLINE, BROKEN, PREDICTED, HOSTS, REASON)
        if not (is_judged and name in _NOT_JUDGED[1:])
    ]
    chunks: list[Chunk] = []
    codes: dict[str, int] = {}
    names: Sequence[str] = ()
    for block in read_blocks(path, wanted):
        names = block.names
        chunk = _read_block(block, is_judged)
        words, places = (
            block.coded("policy") if "policy" in names else ([""], np.zeros(len(block), np.int64))
        )
        known = [
            codes.setdefault(word or ("" if is_judged else Path(path).stem), len(codes))
            for word in words
        ]
        chunk["policy"] = np.array(known, np.int64)[places]
        chunks.append(chunk)
    if not codes or not any(len(chunk["policy"]) for chunk in chunks):
        return []
    whole = {
        name: np.concatenate([chunk.pop(name) for chunk in chunks]) for name in list(chunks[0])
    }
    of_policy = whole.pop("policy")
    facts: dict[str, Any] = {"name": Path(path).name, "is_estimated": "estimate" in names}
    if len(codes) == 1:
        return [_schedule_of(next(iter(codes)), whole, **facts)]
    return [
        _schedule_of(
            policy, {name: column[of_policy == code] for name, column in whole.items()}, **facts
        )
        for policy, code in codes.items()
    ]


def _schedule_of(
    policy: str, columns: dict[str, Any], *, name: str, is_estimated: bool
) -> Schedule:
    """Return the schedule of one policy, with its rows in order of sequence and without columns
    that no row has."""
    sequence = columns.pop("sequence")
    order = np.argsort(sequence, kind="stable")
    if (sequence < 0).any() or (np.diff(columns["submit"][order]) < 0).any():
        order = np.lexsort((columns["job_id"], columns["submit"]))
    reasons, is_rejected = columns.pop(REASON), columns.pop(REJECTED)
    refused = np.flatnonzero(is_rejected)
    place = np.empty(len(order) if len(refused) else 0, np.int64)
    place[order[: len(place)]] = np.arange(len(place))
    sequence = sequence[order]
    for key in list(columns):
        columns[key] = columns[key][order]  # one by one, so that each old column is freed
    rejected = tuple(
        Rejection(row, int(columns["submit"][row]), *reason.partition(": ")[::2])
        for row, reason in zip(place[refused].tolist(), reasons[refused].tolist(), strict=True)
    )
    broken, counts = np.maximum(columns.pop(BROKEN), 0), columns.pop("piece_count")
    columns["number"] = columns.pop("job_id")
    if not (columns["host"] >= 0).any():
        columns["host"] = None
    if not columns[HOSTS].any():
        columns[HOSTS] = None
    for name_of_column in (DEADLINE, PREDICTED):
        if not (columns[name_of_column] >= 0).any():
            del columns[name_of_column]
    return finished_run(
        policy,
        name=name,
        estimates_missing=0 if is_estimated else len(order),
        rejected=rejected,
        broken=broken if broken.any() else None,
        read_piece_count=counts if counts.any() else None,
        sequence=None if np.array_equal(sequence, np.arange(len(order))) else sequence,
        **columns,
    )


def _read_block(block: Block, is_judged: bool) -> Chunk:
    """Return the columns of a block, with missing ones filled in."""
    names = [name for name in block.names if not (is_judged and name in _NOT_JUDGED)]
    missing = [name for name in ("job_id", "submit", "start", "procs") if name not in names]
    if "end" not in names and "run" not in names:
        missing.append("end or run")
    if missing:
        raise InputError(
            f"{block.path}: line 1: no job rows: there is no column {', '.join(missing)}"
        )
    kinds = {"": ABSENT} | {kind: place for place, kind in enumerate((*KINDS, REJECTED))}
    absent = np.broadcast_to(np.int64(ABSENT), len(block))
    kind = absent if is_judged else meant(block, "kind", kinds, np.int8)
    words, places = (
        block.coded("kind") if "kind" in block.names else ([""], np.zeros(len(block), np.int64))
    )
    is_rejected = np.array([word.lower() == REJECTED for word in words], np.bool_)[places]
    chunk: Chunk = {"submit": block.scaled("submit", MICROSECONDS, may_lack=False)}
    chunk |= {name: block.scaled(name, 1, may_lack=False) for name in ("job_id", "procs")}
    chunk |= {
        name: _times_of(block, name, is_rejected)
        for name in ("start", "end", "run", "estimate")
        if name in names
    }
    for name in filter(chunk.__contains__, _TIMES):
        block.check(name, chunk[name] > LATEST * MICROSECONDS, "is too large")
    start = chunk["start"]
    chunk.setdefault("end", np.where(is_rejected, ABSENT, start + chunk.get("run", start)))
    chunk.setdefault("run", np.where(is_rejected, ABSENT, chunk["end"] - start))
    chunk.setdefault("estimate", chunk["run"])
    for name in _MAY_LACK:
        scale = MICROSECONDS if name in _TIMES else 1
        chunk[name] = block.scaled(name, scale, may_lack=True) if name in names else absent
    chunk["kind"] = np.where(is_rejected, np.int8(ABSENT), kind).astype(np.int8)
    chunk["counted"] = (
        np.ones(len(block), np.bool_) if is_judged else meant(block, "counted", YES_OR_NO, bool)
    )
    words, places = (
        block.coded(REASON) if REASON in block.names else ([""], np.zeros(len(block), np.int64))
    )
    chunk[REJECTED], chunk[REASON] = is_rejected, np.array(words, object)[places]
    words, places = (
        block.coded(HOSTS) if HOSTS in block.names else ([""], np.zeros(len(block), np.int64))
    )
    chunk[HOSTS] = np.array(words, object)[places]
    block.check("procs", chunk["procs"] < 1, "is less than 1")
    if not is_judged:
        block.check("start", ~is_rejected & (start < chunk["submit"]), "lies before submit")
        block.check("end", chunk["end"] < start, "lies before start")
    return chunk


def _times_of(block: Block, name: str, is_rejected: BoolArray) -> Int64Array:
    """Return a column of times that every job but the refused ones has."""
    if not is_rejected.any():
        return block.scaled(name, MICROSECONDS, may_lack=False)
    times = block.scaled(name, MICROSECONDS, may_lack=True)
    block.check(name, (times < 0) & ~is_rejected, "is empty")
    return times


YES_OR_NO = {"": 1, "1": 1, "true": 1, "0": 0, "false": 0}
"""Meaning of the words of a yes-or-no column; an empty cell means yes."""


def meant(block: Block, name: str, meanings: dict[str, int], kind: Any) -> NDArray[Any]:
    """Return a column of words as numbers; a missing column counts as empty words."""
    if name not in block.names:
        return np.full(len(block), meanings[""], kind)
    words, places = block.coded(name)
    for place, word in enumerate(words):
        if word.lower() not in meanings:
            known = [meaning for meaning in meanings if meaning]
            reason = f"{word[:40]!r} is none of {', '.join(known)}{suggestion(word, known)}"
            raise block.refuse(int(np.argmax(places == place)), name, reason)
    return np.array([meanings[word.lower()] for word in words], kind)[places]
