"""Steps that give jobs deadlines: by stringency, from the responses of a reference schedule, and
artificial ones.

SWF has no field for deadlines, so a log has a side file of them: CSV in UTF-8, one header line, one
row per job that has a deadline, in order of the log.  Columns: ``job_id`` (the job's number in the
log), ``deadline`` (seconds of the log's own clock, whole or with up to six decimals), ``kind``
(``asked`` or ``artificial``).  Other columns are ignored; ``kind`` may be missing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import BinaryIO

import numpy as np

from qbatch.model.errors import InputError, UsageError
from qbatch.workloads.draws import Draws
from qbatch.workloads.log import Column, Log
from qbatch.workloads.side_file import read_side_file
from qbatch.workloads.transform.load import THOUSAND, thousandths

ASKED, ARTIFICIAL = "asked", "artificial"
"""Kinds of deadlines: the job's own, and an artificial one for a job without."""

DAY_S = 86_400


@dataclass(frozen=True)
class DeadlineLog:
    """A log and the deadlines of its jobs: in whole seconds of its clock, -1 for none, one per row;
    and which are artificial."""

    log: Log
    deadline: Column
    is_artificial: Column = field(default_factory=lambda: np.empty(0, np.bool_))

    def __post_init__(self) -> None:
        if len(self.is_artificial) != len(self.log):
            object.__setattr__(self, "is_artificial", np.zeros(len(self.log), np.bool_))

    def __len__(self) -> int:
        return len(self.log)

    def __repr__(self) -> str:
        return f"<DeadlineLog of {self.log!r}, {int((self.deadline >= 0).sum()):,} with deadlines>"

    @classmethod
    def without(cls, log: Log) -> DeadlineLog:
        """Return a log without deadlines."""
        return cls(log, np.full(len(log), -1, np.int64))


def with_deadlines(
    log: Log, responses: Column, *, stringency: float, share: float = 1.0, seed: int = 0
) -> DeadlineLog:
    """Give a share of the jobs deadlines: submission + max(run, (1 - stringency) x response),
    floored to a second (rule 16).

    Args:
        responses: by row, the seconds from submission to end under the reference schedule (EASY);
            -1: the job did not run.
        stringency: 0 (the reference schedule itself meets every deadline) to 1.
        share: of the jobs that get one.  Each job has its own draw, so that a smaller share is part
            of a larger one.
    """
    tight, wanted = thousandths(stringency, "stringency", 0, 1), thousandths(share, "share", 0, 1)
    job = np.asarray(log["job"], np.int64)
    if len(np.unique(job)) < len(job):
        raise UsageError(
            "deadlines: two jobs of the log have the same number; a side file could not "
            "distinguish them"
        )
    # A job keeps its draw whatever other jobs there are: draws are ordered by job number.
    draws = Draws((seed, 2)).fractions(int(job.max(initial=0)) + 1)[job]
    run = np.asarray(log["run"], np.int64)
    allowed = np.maximum(run, (THOUSAND - tight) * np.asarray(responses, np.int64) // THOUSAND)
    has_one = (draws * THOUSAND < wanted) & (np.asarray(responses) >= 0)
    return DeadlineLog(log, np.where(has_one, np.asarray(log["submit"], np.int64) + allowed, -1))


def with_artificial(log: DeadlineLog, *, factor: float = 5.0) -> DeadlineLog:
    """Give every job without a deadline an artificial one: submission + max(24 h, factor x
    estimate) (rule 9)."""
    times = thousandths(factor, "factor", 1, 1e6)
    asked, run = (
        np.asarray(log.log["time_requested"], np.int64),
        np.asarray(log.log["run"], np.int64),
    )
    estimate = np.maximum(np.where(asked > 0, asked, run), 0)
    late = np.asarray(log.log["submit"], np.int64) + np.maximum(DAY_S, times * estimate // THOUSAND)
    lacks = log.deadline < 0
    return DeadlineLog(log.log, np.where(lacks, late, log.deadline), log.is_artificial | lacks)


# ------------------------------------------------------------------------------------------------
# the side file


COLUMNS = ("job_id", "deadline", "kind")
MICROSECONDS = 1_000_000
_LATEST_S = (1 << 61) // MICROSECONDS


def write_deadlines(out: BinaryIO, log: DeadlineLog) -> None:
    """Write the side file of a log."""
    rows = np.flatnonzero(log.deadline >= 0)
    columns = (
        np.asarray(column)[rows].tolist()
        for column in (log.log["job"], log.deadline, log.is_artificial)
    )
    lines = [
        f"{job},{at},{ARTIFICIAL if is_artificial else ASKED}"
        for job, at, is_artificial in zip(*columns, strict=True)
    ]
    out.write("".join(f"{line}\n" for line in (",".join(COLUMNS), *lines)).encode())


def read_deadlines(path: str, log: Log, *, with_artificial: bool = True) -> Column:
    """Return the deadlines of a log's rows in microseconds, -1 for none, from a side file.

    Args:
        with_artificial: whether artificial deadlines count.

    Raises:
        InputError: names the file, the line and the reason.
    """
    numbers = np.asarray(log["job"], np.int64)
    places = {number: row for row, number in enumerate(numbers.tolist())}
    deadline = np.full(len(log), -1, np.int64)
    header, rows, _ = read_side_file(path)
    if "job_id" not in header or "deadline" not in header:
        raise InputError(
            f"{path}: line 1: no columns job_id and deadline; a side file begins "
            f"{','.join(COLUMNS)}"
        )
    for place, values in rows:
        try:
            job = int(values["job_id"])
        except ValueError:
            raise InputError(
                f"{place}: job_id {values['job_id'][:40]!r} is not a whole number"
            ) from None
        at = _instant(values["deadline"], place)
        if job not in places:
            raise InputError(
                f"{place}: job {job} is not in {log.name}; is this the side file of another log?"
            )
        kind = values.get("kind", ASKED) or ASKED
        if kind not in (ASKED, ARTIFICIAL):
            raise InputError(f"{place}: kind {kind!r} is neither {ASKED} nor {ARTIFICIAL}")
        if deadline[places[job]] >= 0:
            raise InputError(f"{place}: job {job} has a deadline already")
        if with_artificial or kind == ASKED:
            deadline[places[job]] = at
    return deadline


def _instant(text: str, place: str) -> int:
    whole, _, fraction = text.partition(".")
    is_number = (
        whole.isdecimal()
        and whole.isascii()
        and (fraction == "" or (fraction.isdecimal() and len(fraction) <= 6))
    )
    if not is_number or len(whole) > 18 or int(whole) > _LATEST_S:
        raise InputError(
            f"{place}: deadline {text[:40]!r} is not seconds of the log's clock, at most six "
            "decimals"
        )
    return int(whole) * MICROSECONDS + int(fraction.ljust(6, "0") or 0)
