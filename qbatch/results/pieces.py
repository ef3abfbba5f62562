"""The pieces in which suspended and resized jobs really ran: their file in a result, and what follows from them over time.

The file is ``pieces-POLICY.parquet`` beside the job rows, one row a piece in order of its end, and is there only where a job of
that policy ran in pieces.  Times are in seconds of the log's own clock, whole numbers where all are whole, as in job rows.
Everything that asks what ran when asks here, so that a job in one go and a job in pieces are the same thing to it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import numpy as np

from qbatch.model.errors import InputError
from qbatch.model.record import MICROSECONDS, Int64Array
from qbatch.model.spans import Spans, rows_in_pieces, with_pieces
from qbatch.results.job_rows import YES_OR_NO, JobRows, meant
from qbatch.results.table import Block, arrow, read_blocks

COLUMNS = ("job_id", "sequence", "begin", "end", "procs", "host", "kept")
"""The columns of the file: the job by its number and by its ``sequence`` in the job rows, the half-open time, the processors,
the (first) host counted from 0 in the machine's order, and whether the work of the piece was kept or thrown away."""


def spans_of(rows: JobRows) -> Spans:
    """Return what ran, one span each: a job in pieces has one for each of them, where they are known."""
    whole = np.flatnonzero(~rows_in_pieces(rows.pieces, len(rows)))
    spans = Spans(whole, rows.start[whole], rows.end[whole], rows.procs[whole], rows.host[whole])
    return with_pieces(spans, rows.pieces)


def waits_of(rows: JobRows) -> Spans:
    """Return who stood in the queue when: until the first start, and again from a run that was thrown away to the next.

    A suspended job, whose work is kept, stands in no queue.
    """
    first = Spans(np.arange(len(rows)), rows.submit, rows.start, rows.procs, np.full(len(rows), -1))
    if rows.pieces is None:
        return first
    ordered = rows.pieces[np.lexsort((rows.pieces[:, 2], rows.pieces[:, 1], rows.pieces[:, 0]))]
    job, begin, end, kept = ordered[:, 0], ordered[:, 1], ordered[:, 2], ordered[:, 5]
    is_again = np.flatnonzero((job[:-1] == job[1:]) & (kept[:-1] == 0))
    again = job[is_again]
    return Spans(
        np.concatenate([first.job, again]),
        np.concatenate([first.begin, end[is_again]]),
        np.concatenate([first.end, begin[is_again + 1]]),
        np.concatenate([first.procs, rows.procs[again]]),
        np.full(len(rows) + len(again), -1),
    )


def off_machine(rows: JobRows) -> Int64Array:
    """Return for how long each job, once begun, held no processors: suspended, or back in the queue."""
    found = rows.end - rows.start - rows.run
    if rows.pieces is not None:
        job = np.unique(rows.pieces[:, 0])
        found[job] = rows.end[job] - rows.start[job]
        np.subtract.at(found, rows.pieces[:, 0], rows.pieces[:, 2] - rows.pieces[:, 1])
    return np.asarray(found)


def as_one_bar(rows: JobRows) -> JobRows:
    """Return the rows with every job running from its first start to its end, for forms that know nothing else."""
    return replace(rows, pieces=None)


# ------------------------------------------------------------------------------------------------ the file


def write_pieces(out: BinaryIO, rows: JobRows) -> None:
    """Write the pieces of some rows as Parquet; the rows must have pieces.

    Raises:
        UsageError: if pyarrow is missing.
    """
    pa = arrow("writing Parquet")
    import pyarrow.parquet as pq

    assert rows.pieces is not None  # the caller has looked
    job, begin, end, procs, host, kept = rows.pieces.T
    is_whole = not (rows.pieces[:, 1:3] % MICROSECONDS).any()
    times = [time // MICROSECONDS if is_whole else time / MICROSECONDS for time in (begin, end)]
    columns = (rows.job_id[job], rows.sequence[job], *times, procs, host, kept.astype(bool))
    pq.write_table(pa.table(dict(zip(COLUMNS, columns, strict=True))), out, compression="zstd")


def read_pieces(rows: JobRows, path: str | Path) -> JobRows:
    """Return the rows with the pieces that a file holds.

    Raises:
        InputError: if it cannot be read, or does not fit the rows; with the row and the column.
    """
    order = np.argsort(rows.sequence, kind="stable")
    blocks = [_read_block(block, rows, order) for block in read_blocks(path, COLUMNS)]
    pieces = np.concatenate(blocks)
    counts = np.bincount(pieces[:, 0], minlength=len(rows))
    wrong = np.flatnonzero(counts != np.maximum(rows.piece_count, 0))
    if len(wrong):
        row = int(wrong[0])
        raise InputError(
            f"{path}: holds {counts[row]} pieces of job {rows.job_id[row]}, but its job row says {rows.piece_count[row]}; "
            "the files of this result do not belong together"
        )
    return replace(rows, pieces=pieces if len(pieces) else None)


def _read_block(block: Block, rows: JobRows, order: Int64Array) -> Int64Array:
    """Return the pieces of a block, with the places of their jobs in the rows."""
    missing = [name for name in COLUMNS if name not in block.names]
    if missing:
        raise InputError(f"{block.path}: these are no pieces of jobs: no column {', '.join(missing)}")
    number = {name: block.scaled(name, 1, may_lack=False) for name in ("job_id", "sequence", "procs", "host")}
    begin, end = (block.scaled(name, MICROSECONDS, may_lack=False) for name in ("begin", "end"))
    found = np.searchsorted(rows.sequence[order], number["sequence"])
    job = order[np.minimum(found, len(order) - 1)] if len(order) else np.zeros(len(block), np.int64)
    is_known = rows.sequence[job] == number["sequence"] if len(order) else np.zeros(len(block), np.bool_)
    block.check("sequence", ~is_known, "names no job of the job rows")
    block.check("job_id", rows.job_id[job] != number["job_id"], "is not the job that the sequence names")
    block.check("end", end < begin, "lies before begin")
    block.check("procs", number["procs"] < 1, "is less than 1")
    kept = meant(block, "kept", YES_OR_NO, np.int64)
    return np.stack([job, begin, end, number["procs"], number["host"], kept], axis=1).astype(np.int64)
