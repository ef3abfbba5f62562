"""Steps that give jobs deadlines: by stringency, from the responses of a reference schedule, and artificial ones."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from qbatch.model.errors import UsageError
from qbatch.workloads.draws import Draws
from qbatch.workloads.log import Column, Log
from qbatch.workloads.transform.load import THOUSAND, thousandths

ASKED, ARTIFICIAL = "asked", "artificial"
"""Kinds of deadlines: the job's own, and an artificial one for a job without."""

DAY_S = 86_400


@dataclass(frozen=True)
class DeadlineLog:
    """A log and the deadlines of its jobs: in whole seconds of its clock, -1 for none, one per row; and which are artificial."""

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
    """Give a share of the jobs deadlines: submission + max(run, (1 - stringency) x response), floored to a second (rule 16).

    Args:
        responses: by row, the seconds from submission to end under the reference schedule (EASY); -1: the job did not run.
        stringency: 0 (the reference schedule itself meets every deadline) to 1.
        share: of the jobs that get one.  Each job has its own draw, so that a smaller share is part of a larger one.
    """
    tight, wanted = thousandths(stringency, "stringency", 0, 1), thousandths(share, "share", 0, 1)
    job = np.asarray(log["job"], np.int64)
    if len(np.unique(job)) < len(job):
        raise UsageError("deadlines: two jobs of the log have the same number; a side file could not distinguish them")
    # A job keeps its draw whatever other jobs there are: draws are ordered by job number.
    draws = Draws((seed, 2)).fractions(int(job.max(initial=0)) + 1)[job]
    run = np.asarray(log["run"], np.int64)
    allowed = np.maximum(run, (THOUSAND - tight) * np.asarray(responses, np.int64) // THOUSAND)
    has_one = (draws * THOUSAND < wanted) & (np.asarray(responses) >= 0)
    return DeadlineLog(log, np.where(has_one, np.asarray(log["submit"], np.int64) + allowed, -1))


def with_artificial(log: DeadlineLog, *, factor: float = 5.0) -> DeadlineLog:
    """Give every job without a deadline an artificial one: submission + max(24 h, factor x estimate) (rule 9)."""
    times = thousandths(factor, "factor", 1, 1e6)
    asked, run = np.asarray(log.log["time_requested"], np.int64), np.asarray(log.log["run"], np.int64)
    estimate = np.maximum(np.where(asked > 0, asked, run), 0)
    late = np.asarray(log.log["submit"], np.int64) + np.maximum(DAY_S, times * estimate // THOUSAND)
    lacks = log.deadline < 0
    return DeadlineLog(log.log, np.where(lacks, late, log.deadline), log.is_artificial | lacks)
