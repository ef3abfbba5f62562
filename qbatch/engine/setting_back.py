"""Set an engine back after its instants were ahead of the real time: every instant in it, by the same amount.

A policy's record is its own, and may hold instants anywhere.  So the policy begins with an empty one, as after
:meth:`.Engine.exchange_policy`, and promises are made again.
"""

from __future__ import annotations

import msgspec

from qbatch.engine.engine import Engine
from qbatch.engine.runs import STARTED, SUBMITTED
from qbatch.model.job import Job


def job_set_back(job: Job, by: int) -> Job:
    """Return a job with its submission and deadline set back by ``by`` microseconds."""
    deadline = None if job.deadline is None else job.deadline - by
    return msgspec.structs.replace(job, submit=job.submit - by, deadline=deadline)


def set_back(engine: Engine, by: int) -> None:
    """Set an engine back by ``by`` microseconds; its next pass plans again.

    Raises:
        QbatchError: the policy cannot start again; nothing has changed.
    """
    engine.exchange_policy(engine.policy)
    cluster = engine._cluster
    cluster.jobs[:] = [None if job is None else job_set_back(job, by) for job in cluster.jobs]
    submitted, started = cluster.table[SUBMITTED], cluster.table[STARTED]
    submitted -= by
    started[started >= 0] -= by
    cluster.runs.set_back(by)
    if engine.now is not None:
        engine.now -= by
