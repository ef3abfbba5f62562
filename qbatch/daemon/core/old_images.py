"""Jobs of a snapshot of version 1, in which a job's progress was five numbers among its others.

``due``: when an emulated run ended; ``left``: how long it would run on, of one that was suspended; ``work``, ``done`` and
``since``.  Snapshots from before the last three were kept have none of them: no job was resized then.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from qbatch.daemon.core.job import BatchJob
from qbatch.daemon.core.states import BatchState
from qbatch.model.progress import Progress

_GONE = {"due": -1, "left": -1, "work": -1, "done": 0, "since": -1}
"""The fields that were there in version 1, with what they were at first."""

_AFTER = {"session": ("due", "left"), "stopped_by": ("work", "done", "since")}
"""Behind which fields they stood."""


def jobs_of(data: bytes, decode: Callable[[bytes], list[BatchJob]], now: int) -> list[BatchJob]:
    """Return the jobs of version 1, read with the present reader; ``now``: the instant of the snapshot."""
    names: list[str] = []
    for name in BatchJob.__struct_fields__:
        names += (name, *_AFTER.get(name, ()))
    rows = [dict(zip(names, row, strict=False)) for row in msgspec.msgpack.decode(data)]
    old = [tuple(row.pop(name, first) for name, first in _GONE.items()) for row in rows]
    jobs = decode(msgspec.msgpack.encode([list(row.values()) for row in rows]))
    for job, (due, left, work, done, since) in zip(jobs, old, strict=True):
        if job.holds_hosts:
            job.progress = Progress(job.size, since, done, work, due)
            if since < 0 and work < 0 and not done:
                _count_work(job, job.progress, left, now)
    return jobs


def _count_work(job: BatchJob, progress: Progress, left: int, now: int) -> None:
    progress.done = job.ran(now) * progress.procs
    if job.state is BatchState.RUNNING:
        progress.since = now
    left = progress.due - now if progress.due >= 0 else left
    if left >= 0:
        progress.work = progress.done + left * progress.procs
