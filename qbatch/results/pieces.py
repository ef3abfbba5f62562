"""The execution intervals of suspended and resized jobs: their file in a result.

The file is ``pieces-POLICY.parquet`` next to the job rows, one row per interval in order of its
end, and exists only if a job of that policy has several.  Times are in seconds of the log's own
clock, whole numbers if all are whole, as in job rows. ``Schedule.spans`` combines these intervals
with the jobs that have only one.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import numpy as np

from qbatch.model.errors import InputError
from qbatch.model.record import MICROSECONDS, Int64Array, Schedule
from qbatch.results.job_rows import YES_OR_NO, meant
from qbatch.results.table import Block, arrow, read_blocks

COLUMNS = ("job_id", "sequence", "begin", "end", "procs", "host", "kept")
"""The columns of the file: the job's number and its ``sequence`` in the job rows, the half-open
interval, and the processors. ``host`` is the (first) host, counted from 0 in the machine's order;
``kept``, whether the work was kept or discarded."""


def unknown_pieces(schedule: Schedule) -> str | None:
    """Return a sentence about jobs with unknown execution intervals; None if there are none."""
    count = int(schedule.lacks_pieces.sum())
    if not count:
        return None
    jobs = "1 job" if count == 1 else f"{count:,} jobs"
    return (
        f"{jobs} under {schedule.policy} had execution intervals that job rows do not contain: "
        "each job is shown as one bar from "
        "first start to end, which makes the machine look fuller than it was; give the result's "
        "directory (--out)"
    )


def write_pieces(out: BinaryIO, schedule: Schedule) -> None:
    """Write the execution intervals of a schedule as Parquet; it must have some.

    Raises:
        UsageError: pyarrow is missing.
    """
    pa = arrow("writing Parquet")
    import pyarrow.parquet as pq

    assert schedule.pieces is not None  # the caller has checked
    job, begin, end, procs, host, kept = schedule.pieces.T
    is_whole = not (schedule.pieces[:, 1:3] % MICROSECONDS).any()
    times = [time // MICROSECONDS if is_whole else time / MICROSECONDS for time in (begin, end)]
    columns = (
        schedule.workload.number[job],
        _sequence(schedule)[job],
        *times,
        procs,
        host,
        kept.astype(bool),
    )
    pq.write_table(
        pa.table(dict(zip(COLUMNS, columns, strict=True))),
        out,
        compression="zstd",
        write_page_checksum=True,
    )


def _sequence(schedule: Schedule) -> Int64Array:
    sequence = schedule.workload.sequence
    return np.arange(len(schedule)) if sequence is None else sequence


def read_pieces(schedule: Schedule, path: str | Path) -> Schedule:
    """Return the schedule with the execution intervals of a file.

    Raises:
        InputError: the file cannot be read or does not fit the schedule; the message names the row
            and the column.
    """
    sequence = _sequence(schedule)
    order = np.argsort(sequence, kind="stable")
    blocks = [
        _read_block(block, schedule.workload.number, sequence, order)
        for block in read_blocks(path, COLUMNS)
    ]
    pieces = np.concatenate(blocks)
    counts, wanted = np.bincount(pieces[:, 0], minlength=len(schedule)), schedule.piece_count
    wrong = np.flatnonzero(counts != np.maximum(wanted, 0))
    if len(wrong):
        row = int(wrong[0])
        raise InputError(
            f"{path}: holds {counts[row]} intervals of job {schedule.workload.number[row]}, but "
            f"its job row says {wanted[row]}; "
            "the files of this result do not belong together"
        )
    return replace(schedule, pieces=pieces, read_piece_count=None) if len(pieces) else schedule


def _read_block(
    block: Block, numbers: Int64Array, sequence: Int64Array, order: Int64Array
) -> Int64Array:
    """Return the intervals of a block, with the rows of their jobs in the schedule, of which
    ``order`` sorts the ``sequence``."""
    missing = [name for name in COLUMNS if name not in block.names]
    if missing:
        raise InputError(
            f"{block.path}: no execution intervals: there is no column {', '.join(missing)}"
        )
    number = {
        name: block.scaled(name, 1, may_lack=False)
        for name in ("job_id", "sequence", "procs", "host")
    }
    begin, end = (block.scaled(name, MICROSECONDS, may_lack=False) for name in ("begin", "end"))
    found = np.searchsorted(sequence[order], number["sequence"])
    job = order[np.minimum(found, len(order) - 1)] if len(order) else np.zeros(len(block), np.int64)
    is_known = sequence[job] == number["sequence"] if len(order) else np.zeros(len(block), np.bool_)
    block.check("sequence", ~is_known, "names no job of the job rows")
    block.check(
        "job_id", numbers[job] != number["job_id"], "is not the job that the sequence names"
    )
    block.check("end", end < begin, "lies before begin")
    block.check("procs", number["procs"] < 1, "is less than 1")
    kept = meant(block, "kept", YES_OR_NO, np.int64)
    return np.stack([job, begin, end, number["procs"], number["host"], kept], axis=1).astype(
        np.int64
    )
