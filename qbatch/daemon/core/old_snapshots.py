"""Jobs of a snapshot of version 1 or 2, in which a job was one row of fields, -1 and the like for those that it did not have.

Version 1 kept a job's progress as five numbers among the others: ``due``, when an emulated run ended; ``left``, how long it
would run on, of one that was suspended; ``work``, ``done`` and ``since``.  Snapshots from before the last three were kept have
none of them: no job was resized then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from qbatch.daemon.core.job import BatchJob
from qbatch.daemon.core.states import BatchState
from qbatch.model.progress import Progress
from qbatch.wire.identifiers import ARRAY

_NAMES = (
    "sequence", "member", "prepared", "name", "user", "uid", "group", "queue", "submitted", "state", "hold", "unmet", "row",
    "is_pending", "run_limit", "queued", "eligible", "modified", "started", "ended", "not_before", "priority", "attempt",
    "allocation", "status", "session", "ending", "comment", "used", "promised", "slot_limit", "waits_for", "pauses",
    "stopped_by", "sizes", "trials", "lost", "slots", "refused", "broken", "progress",
)  # fmt: skip
"""The fields of version 2, in their order; a row ends behind the last one that its program knew."""

_OF_1 = {"session": ("due", "left"), "stopped_by": ("work", "done", "since")}
"""The fields that were there in version 1 only, behind which others."""

_ABSENT: dict[str, Any] = {
    "state": "Q", "hold": 0, "unmet": 0, "row": -1, "is_pending": False, "run_limit": "", "queued": -1, "eligible": -1,
    "modified": -1, "started": -1, "ended": -1, "not_before": -1, "priority": 0, "attempt": 0, "allocation": [], "status": None,
    "session": 0, "ending": "", "comment": "", "used": None, "promised": -1, "slot_limit": None, "waits_for": "", "pauses": [],
    "stopped_by": 0, "sizes": [], "trials": [], "lost": [], "slots": [], "refused": None, "broken": [], "progress": None,
    "due": -1, "left": -1, "work": -1, "done": 0, "since": -1,
}  # fmt: skip
"""What stood for a field that had no value, and is taken for one that a row does not have."""


def jobs_of(
    data: bytes, decode: Callable[[bytes], list[BatchJob]], version: int, now: int
) -> tuple[list[BatchJob], dict[int, int]]:
    """Return the jobs of version 1 or 2, read with the present reader, and when each array began that has begun.

    ``now``: the instant of the snapshot.
    """
    names: list[str] = []
    for name in _NAMES:
        names += (name, *(_OF_1.get(name, ()) if version == 1 else ()))
    rows = [_ABSENT | dict(zip(names, row, strict=False)) for row in msgspec.msgpack.decode(data)]
    begun = {row["sequence"]: row["started"] for row in rows if row["member"] == ARRAY and row["started"] >= 0}
    jobs = decode(msgspec.msgpack.encode([_present(row) for row in rows]))
    if version == 1:
        for job, row in zip(jobs, rows, strict=True):
            if job.holds_hosts:
                _take_progress(job, row, now)
    return jobs, begun


def _present(row: dict[str, Any]) -> list[Any]:
    """Return a row as the present reader reads it."""
    row = {name: None if value == _ABSENT.get(name) and name in _NONE else value for name, value in row.items()}
    has_run = row["member"] != ARRAY and row["started"] is not None and bool(row["allocation"])
    is_over = row["status"] is not None
    attempt = earlier = final = None
    if has_run:
        pauses = [(since, None if until < 0 else until) for since, until in row["pauses"]]
        progress = row["progress"] or msgspec.to_builtins(Progress(1))
        attempt = [
            row["started"], row["allocation"], progress, row["slots"], row["session"], pauses, row["stopped_by"], row["sizes"],
            row["used"],
        ]  # fmt: skip
    if row["trials"] or row["lost"] or (row["used"] and not has_run):
        earlier = [row["trials"], row["lost"], None if has_run else row["used"]]
    if is_over:
        final = [row["ended"], row["status"], row["refused"]]
    new = {**row, "attempts": row["attempt"], "attempt": attempt, "earlier": earlier, "final": final}
    return [new[name] for name in BatchJob.__struct_fields__ if name in new]  # later ones stand last, with defaults


_NONE = ("run_limit", "eligible", "not_before", "promised", "started", "session", "ending")
"""The fields of which an absent one is None now."""


def _take_progress(job: BatchJob, row: dict[str, Any], now: int) -> None:
    """Make one record of the five numbers of version 1."""
    due, left, work, done, since = (row[name] for name in ("due", "left", "work", "done", "since"))
    progress = job.present.progress = Progress(job.size, since, done, work, due)
    if since >= 0 or work >= 0 or done:
        return
    progress.done = job.present.ran(now) * progress.procs
    if job.state is BatchState.RUNNING:
        progress.since = now
    left = progress.due - now if progress.due >= 0 else left
    if left >= 0:
        progress.work = progress.done + left * progress.procs
