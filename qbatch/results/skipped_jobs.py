"""The jobs of a log that a replay skips, one by one: a CSV file with the line of each, its job
number and the reason."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from typing import BinaryIO

from qbatch.model.record import Int64Array
from qbatch.workloads import Log

COLUMNS = ("line", "job_id", "reason")
"""The columns of the file.  ``line`` counts the lines of the log from 1; an unreadable row has no
job number."""


def write_skipped(out: BinaryIO, log: Log, reasons: Mapping[str, Int64Array]) -> int:
    """Write the jobs of a log that cannot run, in order of line; return their number.

    ``reasons``: the rows of the log for each reason
    (:func:`qbatch.simulation.prepare.reasons_to_skip`).
    """
    rows = [
        (line, "", f"unreadable: {reason}")
        for line, reason in zip(log.bad_lines, log.bad_reasons, strict=True)
    ]
    rows += [
        (line, str(job), "checkpoint_part")
        for line, job in zip(log.part_lines.tolist(), log.part_jobs.tolist(), strict=True)
    ]
    for reason, of_log in reasons.items():
        jobs = zip(log.line[of_log].tolist(), log["job"][of_log].tolist(), strict=True)
        rows += [(line, str(job), reason) for line, job in jobs]
    text = io.TextIOWrapper(out, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(sorted(rows))
    text.detach()
    return len(rows)
