"""A job as a policy may see it: what was asked for, never how long it will really run."""

from __future__ import annotations

import msgspec


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What a submission says.  Times in microseconds, memory in bytes, -1 for an absent user, group or queue.

    ``row`` is the engine's number of the job, its rank in order of sequence (-1 before the engine gave it one).
    ``procs`` is what a rigid job gets; a malleable one may be resized between ``min_procs`` and ``max_procs``
    (0: rigid).  ``deadline``: an instant, or None.
    """

    row: int = -1
    number: int
    submit: int
    procs: int
    estimate: int
    memory: int = 0
    min_procs: int = 0
    max_procs: int = 0
    user: int = -1
    group: int = -1
    queue: int = -1
    deadline: int | None = None
