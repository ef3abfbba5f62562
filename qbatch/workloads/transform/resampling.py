"""Logs resampled from a log: its weeks, or its users, drawn with replacement, so that one log gives
many workloads.

Both keep the cycles of day and week: a job comes at the same weekday and hour, in the log's own
time zone, as in the log.  Both keep the load in expectation: each week, or user, is drawn once on
average.

- ``weeks``: as many whole weeks as the log has, one after another.  A week begins at the midnight
  before the first submission; jobs after the last whole week are left out.  The behaviour of a user
  extends over weeks; this dependence is lost.
- ``users``: as many users as the log has, each with all its jobs.  A user that is drawn again is
  another user, with jobs whole weeks later; those beyond the end come at the beginning.  Jobs
  without a user (-1) are not changed.

If the first midnight is before the log's second 0, the log begins whole days earlier
(``UnixStartTime``), and all jobs come as many days later by its seconds.  So every instant is the
same, and no submission is negative.

Source: N. Zakay and D. G. Feitelson, *Workload resampling for performance evaluation of parallel
job schedulers*, ICPE 2013 and Concurrency and Computation 26 (12), 2014.  They divide a log into
its users' streams and combine them again, keeping the cycles of day and week.  Only the summary was
available: drawing with replacement and the shift of whole weeks are our own reading. That paper
separates permanent from temporary users; here all are treated alike.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import numpy as np

from qbatch.model.errors import InputError, UsageError, suggestion
from qbatch.workloads.draws import Draws
from qbatch.workloads.header import Header, parse_header
from qbatch.workloads.log import Column, Log, counted, log_zone
from qbatch.workloads.transform.load import changed, rows_of

DAY_S = 86_400
_SPAN_MAX_S = 400 * 366 * DAY_S


@dataclass(frozen=True)
class LocalClock:
    """The clock of a log.  Its local seconds count from the midnight (of local time) of a day
    before the log's second 0.

    Attributes:
        changes: log seconds at which the clock is set forward or back, ascending.
        offsets: the additions to log seconds before the first change, between changes, and after
            the last one.
    """

    changes: tuple[int, ...]
    offsets: tuple[int, ...]

    @classmethod
    def of(cls, header: Header, first: float, last: float) -> LocalClock:
        """Return the clock by UnixStartTime and TimeZoneString, for log seconds from ``first`` to
        ``last`` and a month more.

        Without UnixStartTime the log's second 0 is midnight.  An unknown zone counts as UTC.
        """
        start = header.unix_start_time
        if start is None:
            return cls((), (0,))
        zone = log_zone(header)
        base = start // DAY_S * DAY_S  # midnight, UTC, of the day of second 0

        def offset(second: int) -> int:
            delta = datetime.fromtimestamp(start + second, UTC).astimezone(zone).utcoffset()
            return start - base + round((delta or timedelta()).total_seconds())

        begin, end = int(first) - 2 * DAY_S, int(last) + 31 * DAY_S
        try:
            if end - begin > _SPAN_MAX_S:
                return cls((), (offset(int(first)),))
            days = [offset(second) for second in range(begin, end, DAY_S)]
            changes, offsets = [], [days[0]]
            for place, (before, after) in enumerate(pairwise(days)):
                if before != after:
                    changes.append(_change(offset, begin + place * DAY_S, before))
                    offsets.append(after)
        except (OverflowError, ValueError, OSError):
            return cls((), (start - base,))
        return cls(tuple(changes), tuple(offsets))

    def local(self, seconds: Column) -> Column:
        """Return the local seconds of log seconds."""
        place = np.searchsorted(np.array(self.changes, np.int64), seconds, side="right")
        return np.asarray(seconds + np.array(self.offsets, np.int64)[place])

    def instants(self, local: Column) -> Column:
        """Return the log seconds of local seconds.

        In an hour that occurs twice the first is meant; an hour that is skipped counts as the one
        after it.
        """
        from_local = [
            change + max(offsets)
            for change, offsets in zip(self.changes, pairwise(self.offsets), strict=True)
        ]
        place = np.searchsorted(np.array(from_local, np.int64), local, side="right")
        return np.asarray(local - np.array(self.offsets, np.int64)[place])


def _change(offset: Callable[[int], int], low: int, before: int) -> int:
    """Return the first second of a day, after ``low``, at which the offset is no longer
    ``before``."""
    high = low + DAY_S
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if offset(middle) == before else (low, middle)
    return high


WEEK_S = 7 * DAY_S
WEEKS_MAX = 100_000

_WEEK_STREAM, _USER_STREAM = 8, 9
_WITHOUT_USER = -1


RESAMPLINGS = ("weeks", "users")
"""The ways to resample."""


@dataclass(frozen=True)
class _Weeks:
    """The rows of a log that have an instant, their local seconds from the first midnight, and the
    number of whole weeks."""

    rows: Column
    local: Column
    start: int
    clock: LocalClock
    count: int


@dataclass(frozen=True)
class _DrawnWeeks:
    """The jobs of a resampled log: indices into ``_Weeks``, the copy of each, and its local seconds
    from the first midnight."""

    places: Column
    copy: Column
    local: Column
    user: Column | None = None


def resampled(log: Log, how: str, seed: int) -> Log:
    """Return a log made of weeks or users drawn from a log, with jobs numbered from 1 in order of
    submission.

    A preceding job (field 17) is kept if it is in the same week, or among the jobs of the same
    drawn user and before the job; else it is dropped, with its think time.  The header contains the
    draws, and the SHA-256 of the original log.

    Args:
        log: a log of two weeks or more.
        how: ``weeks`` or ``users``.
        seed: of the draws; a whole number >= 0.

    Raises:
        UsageError: ``how`` is neither, or the seed is negative.
        InputError: the log is shorter than two weeks, or has no user, or only weeks without a job
            were drawn.
    """
    if how not in RESAMPLINGS:
        raise UsageError(
            f"resampling {how!r}: use one of {', '.join(RESAMPLINGS)}{suggestion(how, RESAMPLINGS)}"
        )
    if seed < 0:
        raise UsageError(f"resampling: the seed is {seed}; use 0 or more")
    weeks = _weeks_of(log, how)
    drawn, said = (_draw_weeks if how == "weeks" else _draw_users)(log, weeks, seed)
    rows = weeks.rows[drawn.places]
    if not len(rows):
        raise InputError(
            f"{log.name}: the weeks drawn with seed {seed} have no job, as most of its weeks; take "
            "another seed"
        )
    # The log begins whole days earlier if its first midnight would be before second 0.
    midnight = int(weeks.clock.instants(np.array([weeks.start], np.int64))[0])
    days = max(-(midnight // DAY_S), 0)
    # A job that is not moved keeps its own instant, also in an hour that occurs twice.
    is_moved = drawn.local != weeks.local[drawn.places]
    moved = weeks.clock.instants(drawn.local + weeks.start)
    submit = np.where(is_moved, moved, np.asarray(log["submit"])[rows]) + days * DAY_S
    submit = np.round(submit, 6) if submit.dtype.kind == "f" else submit
    # Order of submission; jobs of one instant as in the log, and copy by copy.
    order = np.lexsort((drawn.copy, rows, submit))
    rows = rows[order]
    columns = rows_of(log, rows) | {"job": np.arange(1, len(rows) + 1), "submit": submit[order]}
    if drawn.user is not None:
        columns["user"] = drawn.user[order]
    before, dropped = _preceding(log, rows, drawn.copy[order])
    if before is not None:
        columns["preceding_job"] = before
        columns["think_time"] = np.where(before > 0, columns["think_time"], -1)
        said += f"; {counted(dropped, 'preceding job', 'preceding jobs')} dropped"
    note = f"resampled by {how}, seed={seed}: {said}; of the log with sha256 {log.sha256}"
    start = log.header.unix_start_time
    if days and start is not None:
        # The text of the StartTime would be wrong, and is left out.
        parsed = [(line, parse_header([line])) for line in log.header.lines]
        kept = [
            line for line, own in parsed if own.unix_start_time is None and own.start_time is None
        ]
        log = replace(log, header=parse_header([*kept, f"; UnixStartTime: {start - days * DAY_S}"]))
    return changed(log, columns, note)


def _weeks_of(log: Log, how: str) -> _Weeks:
    """Return the rows of a log by its own calendar."""
    rows = np.flatnonzero(np.asarray(log["submit"]) >= 0)
    submit = np.asarray(log["submit"])[rows]
    days = (float(submit[-1]) - float(submit[0])) / DAY_S if len(rows) else 0.0
    if days > 7 * WEEKS_MAX:
        raise InputError(
            f"{log.name}: its submissions span {days / 7:.3g} weeks; {WEEKS_MAX:,} can be resampled"
        )
    clock = LocalClock.of(log.header, *(submit[[0, -1]].tolist() if len(rows) else (0, 0)))
    local = clock.local(submit)
    start = int(local[0] // DAY_S) * DAY_S if len(rows) else 0
    local = local - start
    # The last week is whole if a job comes on its last day.
    count = int((local.max() + DAY_S) // WEEK_S) if len(rows) else 0
    if count < 2:
        raise InputError(
            f"{log.name}: its submissions span {days:.1f} days; resampling by {how} needs two "
            "whole weeks; take a longer log"
        )
    return _Weeks(rows, local, start, clock, count)


def _draw_weeks(log: Log, weeks: _Weeks, seed: int) -> tuple[_DrawnWeeks, str]:
    week = (weeks.local // WEEK_S).astype(np.int64)
    by_week = np.argsort(week, kind="stable")
    ends = np.cumsum(np.bincount(week, minlength=weeks.count)[: weeks.count])
    begins = np.concatenate(([0], ends[:-1]))
    drawn = Draws((seed, _WEEK_STREAM)).below(weeks.count, weeks.count)
    picked, copy = _slices(begins[drawn], ends[drawn])
    places = by_week[picked]
    local = weeks.local[places] - week[places] * WEEK_S + copy * WEEK_S
    left_out = len(log) - int(ends[-1])
    said = f"{weeks.count} whole weeks"
    said += f", {counted(left_out, 'job', 'jobs')} outside them left out" if left_out else ""
    return _DrawnWeeks(places, copy, local), said


def _draw_users(log: Log, weeks: _Weeks, seed: int) -> tuple[_DrawnWeeks, str]:
    owner = np.asarray(log["user"])[weeks.rows].astype(np.int64)
    users, place = np.unique(owner, return_inverse=True)
    first = int(np.searchsorted(users, 0))
    users, place = users[first:], place - first
    if not len(users):
        raise InputError(f"{log.name}: has no user for any job (field 12); resample it by weeks")
    by_user = np.argsort(place, kind="stable")
    ends = np.cumsum(np.bincount(place[place >= 0], minlength=len(users))) + int((place < 0).sum())
    begins = np.concatenate((ends[:1] * 0 + int((place < 0).sum()), ends[:-1]))
    draws = Draws((seed, _USER_STREAM))
    drawn = np.sort(draws.below(len(users), len(users)))
    shift = 1 + draws.below(weeks.count - 1, len(users))
    is_first = np.concatenate(([True], drawn[1:] != drawn[:-1]))
    shift = np.where(is_first, 0, shift)
    fresh = int(users[-1]) + np.cumsum(~is_first)
    number = np.where(is_first, users[drawn], fresh)
    without_user = by_user[: int(begins[0])]
    picked, copy = _slices(begins[drawn], ends[drawn])
    places = np.concatenate((without_user, by_user[picked]))
    local = weeks.local[by_user[picked]]
    cycle = weeks.count * WEEK_S
    local = np.where(shift[copy] > 0, (local + shift[copy] * WEEK_S) % cycle, local)
    again = int((~is_first).sum())
    said = (
        f"{counted(len(users), 'user', 'users')} drawn, {len(users) - again} of the log's and "
        f"{again} of them again"
    )
    return _DrawnWeeks(
        places,
        np.concatenate((np.full(len(without_user), _WITHOUT_USER), copy)),
        np.concatenate((weeks.local[without_user], local)),
        np.concatenate((owner[without_user], number[copy])),
    ), said


def _slices(begins: Column, ends: Column) -> tuple[Column, Column]:
    """Return the indices of consecutive slices, and for each the number of its slice."""
    sizes = ends - begins
    copy = np.repeat(np.arange(len(sizes)), sizes)
    return np.arange(int(sizes.sum())) + (begins - np.cumsum(sizes) + sizes)[copy], copy


def _preceding(log: Log, rows: Column, copy: Column) -> tuple[Column | None, int]:
    """Return the numbers of the preceding jobs in the resampled log, -1 for none, and how many were
    dropped.

    ``rows``, ``copy``: of each job of the resampled log, in order.  None if no job of the log has a
    preceding one.
    """
    before = np.asarray(log["preceding_job"])
    if not (before > 0).any():
        return None, 0
    number = np.asarray(log["job"])
    numbers, first = np.unique(number, return_index=True)
    places = np.minimum(np.searchsorted(numbers, before), len(numbers) - 1)
    wanted = np.where((before > 0) & (numbers[places] == before), first[places], -1)[rows]
    # A job of the resampled log is a row of the log in a copy: one key each.
    keys, asked = (copy + 1) * len(log) + rows, (copy + 1) * len(log) + wanted
    by_key = np.argsort(keys)
    job = by_key[np.minimum(np.searchsorted(keys[by_key], asked), len(keys) - 1)]
    is_kept = (wanted >= 0) & (keys[job] == asked)
    # A job that was earlier in the log and comes later now is no predecessor; nor is the job
    # itself.
    is_kept &= (job < np.arange(len(rows))) | (wanted > rows)
    return np.where(is_kept, job + 1, -1), int(((before[rows] > 0) & ~is_kept).sum())
