"""A finished schedule as numbered events, so that a result plays in the monitor.

A job with several execution intervals starts, is suspended and resumed, is resized or returns to
the queue as they show.  A job with unknown intervals runs from its first start to its end.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from qbatch.model.errors import InputError
from qbatch.tui.recording import FileRecording, Picture, Recording
from qbatch.wire.records import (
    ClockRecord,
    EventRecord,
    HostRecord,
    JobRecord,
    QueueRecord,
    ServerRecord,
)
from qbatch.wire.resources import format_duration

# Kinds in the order of one instant: first those that release processors, then arrivals, then those
# that take processors; then the ends of jobs of no length.
_ENDED, _SUSPENDED, _REQUEUED, _SUBMITTED, _SHRUNK, _GROWN, _RESUMED, _STARTED, _ENDED_AT_ONCE = (
    range(9)
)
_KINDS = (
    "ended",
    "suspended",
    "requeued",
    "submitted",
    "resized",
    "resized",
    "resumed",
    "started",
    "ended",
)
_WAITING = (0, 0, 1, 1, 0, 0, 0, -1, 0)
_RUNNING = (-1, -1, -1, 0, 0, 0, 1, 1, -1)
_SUSPENSIONS = (0, 1, 0, 0, 0, 0, -1, 0, 0)
_STATES = {"submitted": "Q", "requeued": "Q", "suspended": "S", "ended": "F"}


class ScheduleRecording:
    """The schedule of one policy as events: submitted, started, suspended, ended, ...; on one host
    with all processors.

    Args:
        schedule: a :class:`qbatch.model.record.Schedule`.
        offset: microseconds from the log's clock to 1970.
    """

    def __init__(self, schedule: Any, offset: int, title: str) -> None:
        import numpy as np

        self.title = title
        ran = schedule.only_ran()
        self._schedule, self._jobs, self._offset = ran, ran.workload, offset
        count = len(ran)
        self._pieces = _pieces_by_job(ran)
        own = [_of_pieces(job, pieces) for job, pieces in self._pieces.items()]
        whole = np.ones(count, np.bool_)
        whole[list(self._pieces)] = False
        jobs = np.flatnonzero(whole)
        at_once = ran.end[jobs] == ran.start[jobs]
        extra = np.array([each for events in own for each in events], np.int64).reshape(-1, 4)
        at = np.concatenate([ran.workload.submit, ran.start[jobs], ran.end[jobs], extra[:, 0]])
        kind = np.concatenate(
            [
                np.full(count, _SUBMITTED),
                np.full(len(jobs), _STARTED),
                np.where(at_once, _ENDED_AT_ONCE, _ENDED),
                extra[:, 1],
            ]
        )
        job = np.concatenate([np.arange(count), jobs, jobs, extra[:, 2]])
        piece = np.concatenate([np.full(count + 2 * len(jobs), -1), extra[:, 3]])
        order = np.lexsort((job, kind, at))
        self.at = (at[order] + offset).tolist()
        self._job, self._piece = job[order].tolist(), piece[order].tolist()
        self.kinds = [_KINDS[each] for each in kind[order].tolist()]
        self._counts = {
            letter: np.cumsum(np.array(change)[kind[order]]).tolist()
            for letter, change in (("Q", _WAITING), ("R", _RUNNING), ("S", _SUSPENSIONS))
        }

    def picture(self, place: int) -> Picture | None:
        """Return the empty machine, before the first event."""
        if place:
            return None
        begin = self.at[0] if self.at else 0
        clock = ClockRecord(mode="scaled", now=begin, log_arrived=0, log_jobs=len(self._jobs))
        host = HostRecord(name="machine", pool="machine", state="free", cpus=self._jobs.procs_total)
        server = ServerRecord(
            name=self.title, version="", policy=self._schedule.policy, clock=clock
        )
        queue = QueueRecord(name="log", pool="machine", policy=self._schedule.policy)
        return Picture(server=server, hosts=(host,), queues=(queue,))

    def event(self, place: int) -> EventRecord:
        job = self._job[place]
        kind = self.kinds[place]
        return EventRecord(
            number=place + 1,
            at=self.at[place],
            kind=kind,
            job=str(self._jobs.number[job]),
            record=self._record(job, kind, self._piece[place]),
            counts={letter: counts[place] for letter, counts in self._counts.items()},
        )

    def _record(self, job: int, kind: str, piece: int) -> JobRecord:
        ran, jobs, offset = self._schedule, self._jobs, self._offset
        user, promise = int(jobs.user[job]), int(ran.promise[job])
        state = _STATES.get(kind, "R")
        has_begun = state in "RSF"
        sizes, started, pauses = self._attempt(job, piece, is_suspended=state == "S")
        asked, procs = int(jobs.procs[job]), sizes[-1][1]
        is_resized = has_begun and any(size != asked for _, size in sizes)
        return JobRecord(
            id=str(int(jobs.number[job])),
            name=f"job{int(jobs.number[job])}",
            user=f"user{user}" if user >= 0 else "-",
            queue="log",
            state=state,
            submitted=int(jobs.submit[job]) + offset,
            eligible=int(jobs.submit[job]) + offset,
            started=started + offset if has_begun else None,
            ended=int(ran.end[job]) + offset if kind == "ended" else None,
            promised=promise + offset if promise >= 0 else None,
            estimated_start=int(ran.start[job]) + offset,
            resources={"ncpus": str(asked), "walltime": format_duration(int(jobs.estimate[job]))},
            exec_host=f"machine/0*{procs}" if has_begun else "",
            exit_status=0 if kind == "ended" else None,
            pauses=tuple(
                (since + offset, None if until is None else until + offset)
                for since, until in pauses
            )
            if has_begun
            else (),
            sizes=tuple((since + offset, size) for since, size in sizes) if is_resized else (),
        )

    def _attempt(
        self, job: int, piece: int, *, is_suspended: bool
    ) -> tuple[list[tuple[int, int]], int, list[tuple[int, int | None]]]:
        """Return the processors over time of a job's present attempt, its begin, and its pauses so
        far."""
        if piece < 0:
            start = int(self._schedule.start[job])
            return [(start, int(self._jobs.procs[job]))], start, []
        pieces = self._pieces[job]
        first = next((each + 1 for each in range(piece - 1, -1, -1) if not pieces[each].is_kept), 0)
        known = pieces[first : piece + 1]
        pauses: list[tuple[int, int | None]] = [
            (one.end, other.begin) for one, other in pairwise(known) if other.begin > one.end
        ]
        if is_suspended:
            pauses.append((known[-1].end, None))
        return [(one.begin, one.procs) for one in known], known[0].begin, pauses


class _Piece(NamedTuple):
    """An execution interval of a job: begin, end, processors, and whether the work was kept."""

    begin: int
    end: int
    procs: int
    is_kept: bool


def _pieces_by_job(schedule: Any) -> dict[int, list[_Piece]]:
    """Return the intervals of each job with several, in order of time; one of no length only if a
    job has no other."""
    found: dict[int, list[_Piece]] = {}
    if schedule.pieces is not None:
        for job, begin, end, procs, _, is_kept in sorted(schedule.pieces.tolist()):
            found.setdefault(job, []).append(_Piece(begin, end, procs, bool(is_kept)))
    return {
        job: [each for each in pieces if each.end > each.begin] or pieces[-1:]
        for job, pieces in found.items()
    }


def _of_pieces(job: int, pieces: list[_Piece]) -> list[tuple[int, int, int, int]]:
    """Return the events of a job after its submission: (instant, kind, job, index of its latest
    interval)."""
    events = [(pieces[0].begin, _STARTED, job, 0)]
    for place, (before, after) in enumerate(pairwise(pieces), 1):
        if not before.is_kept:
            events += [(before.end, _REQUEUED, job, place - 1), (after.begin, _STARTED, job, place)]
        elif after.begin > before.end:
            events += [
                (before.end, _SUSPENDED, job, place - 1),
                (after.begin, _RESUMED, job, place),
            ]
        elif after.procs != before.procs:
            events.append(
                (after.begin, _SHRUNK if after.procs < before.procs else _GROWN, job, place)
            )
    last = pieces[-1]
    return [
        *events,
        (last.end, _ENDED_AT_ONCE if last.end == last.begin else _ENDED, job, len(pieces) - 1),
    ]


def open_recording(text: str) -> Recording:
    """Open the input of ``--recording``: a recording, a result (``DIR`` or ``DIR:POLICY``), or job
    rows.

    Raises:
        InputError: it cannot be used.
    """
    from qbatch.results.reading import read_named, split_name

    path, _ = split_name(text)
    if Path(path).is_dir() or path.endswith((".csv", ".parquet")):
        result = read_named(text)
        if len(result.schedules) > 1:
            names = ", ".join(result.policies)
            raise InputError(
                f"{path} holds several policies ({names}); name one: {path}:{result.policies[0]}"
            )
        offset = result.clock.unix_start * 1_000_000 if result.clock.unix_start else 0
        return ScheduleRecording(
            result.schedules[0], offset, f"{Path(path).name}: {result.policies[0]}"
        )
    return FileRecording(path)
