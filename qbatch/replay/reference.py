"""The reference schedule of deadlines: EASY on the log's own machine (docs/spec/papers.md 2.8, rule 16)."""

from __future__ import annotations

import numpy as np

from qbatch.model.machine import one_host
from qbatch.model.record import MICROSECONDS, Schedule
from qbatch.policies import load_policy
from qbatch.replay.calendar import ProgressCallback
from qbatch.replay.drivers import run
from qbatch.replay.prepare import choose_procs, prepare
from qbatch.workloads import Log
from qbatch.workloads.log import Column


def easy_responses(log: Log, progress: ProgressCallback | None = None) -> Column:
    """Return the response of each row under EASY, in whole seconds (floored); -1: it did not run."""
    machine = one_host(choose_procs(log, None))
    return responses_of(log, run(prepare(log, machine), machine, load_policy("easy"), progress=progress))


def responses_of(log: Log, schedule: Schedule) -> Column:
    """Return the response of each row of a log in a schedule of it, in whole seconds (floored); -1: it did not run."""
    work = schedule.workload
    responses = np.full(len(log), -1, np.int64)
    responses[work.log_row] = np.where(schedule.ran, (schedule.end - work.submit) // MICROSECONDS, -1)
    return responses
