"""The checks of conservative backfilling, as far as a finished schedule shows its plan.

A plan moves only when a job ends early, and then only forward.  So the place of a waiting job in
the plan is known during two spans.  From its arrival to the first early end after it, it is its
first promise; from the last early end before its start, it is its start.  Where every waiting job's
place is known, the first promise of an arriving job follows: it is the earliest start among the
running jobs, by their estimates, and these places.  Otherwise the rows must contain it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from qbatch.model.record import MICROSECONDS, BoolArray, Int64Array, Schedule
from qbatch.referee.breach import Breach, processors, seconds, were
from qbatch.referee.reading import NEVER
from qbatch.results.job_rows import ABSENT


class PlanCheck:
    """Checks a schedule against the plan that follows from it.

    ``derived`` counts the jobs with a first promise that follows from the schedule, ``promised``
    those with a known promise.

    Source: Feitelson and Weil 1998, section 2.1, Figs. 2 to 4; docs/design.md, "The meaning of one
    instant" (the earliest reservation at the arrival, at least a second long; plans only move
    earlier; compression at early ends).
    """

    def __init__(
        self, done: Schedule, *, is_compressing: bool, known_until: int | None = None
    ) -> None:
        self.done = done
        self.booked = np.maximum(done.workload.estimate, MICROSECONDS)
        early = (
            (done.workload.run < done.workload.estimate)
            & (done.start >= done.workload.submit)
            & is_compressing
        )
        # If a job of no length ends early, the sweep follows the arrivals of that instant;
        # otherwise it precedes them.
        self.sweeps = np.unique(done.end[early & (done.end > done.start)])
        self.late_sweeps = np.unique(done.end[early & (done.end <= done.start)])
        self.until = NEVER if known_until is None else known_until
        self.derived = 0
        self.promised = 0

    def breaches(self) -> Iterator[Breach]:
        """Yield the breaches of promises, of the plan, and of compression."""
        yield from self._promises()
        yield from self._idleness()

    def _promises(self) -> Iterator[Breach]:
        """Check job by job, in order of arrival, the first promise, recorded or derived."""
        done = self.done
        first_sweep = _first(self.sweeps, done.workload.submit, "right")
        first_late = _first(self.late_sweeps, done.workload.submit, "left")
        promised = done.first_promise.copy()
        there = np.empty(0, np.int64)
        rows = np.flatnonzero(
            (done.start >= done.workload.submit)
            & (done.workload.procs <= done.workload.procs_total)
        )
        for row in rows.tolist():
            now = int(done.workload.submit[row])
            there = there[(done.end[there] > now) | (done.start[there] >= now)]
            waits = done.start[there] >= now
            places, is_known = self._places(now, there[waits], promised, (first_sweep, first_late))
            begins = done.start[there].copy()
            begins[waits] = places
            if is_known:
                most_used = done.workload.procs_total - int(done.workload.procs[row])
                spans = begins, begins + self.booked[there], done.workload.procs[there]
                found = _earliest(*spans, most_used, int(self.booked[row]), now)
                self.derived += 1
                if promised[row] == ABSENT:
                    promised[row] = found
                first = int(done.first_promise[row])
                if first not in (ABSENT, found):
                    number, earliest = int(done.workload.number[row]), seconds(found)
                    text = (
                        f"job {number} was promised {seconds(first)} at its arrival; the "
                        f"earliest start was {earliest}"
                    )
                    yield Breach("wrong-promise", now, (number,), text)
            if promised[row] != ABSENT:
                self.promised += 1
                is_unmoved = (
                    first_sweep[row] > done.start[row] and first_late[row] > done.start[row]
                )
                yield from self._kept(row, int(promised[row]), bool(is_unmoved))
                if promised[row] < min(self.until, int(done.start[row])):
                    promised[row] = ABSENT  # broken: its place in the plan is unknown from here on
            there = np.append(there, row)

    def _places(
        self,
        now: int,
        rows: Int64Array,
        promised: Int64Array,
        firsts: tuple[Int64Array, Int64Array],
    ) -> tuple[Int64Array, bool]:
        """Return the places of waiting jobs in the plan at an arrival, and whether all of them are
        known."""
        first_sweep, first_late = firsts
        start = self.done.start[rows]
        has_stayed = (
            (promised[rows] != ABSENT) & (first_sweep[rows] > now) & (first_late[rows] >= now)
        )
        next_sweep, next_late = (
            _next(self.sweeps, now, "right"),
            _next(self.late_sweeps, now, "left"),
        )
        has_settled = (promised[rows] == start) | ((next_sweep > start) & (next_late > start))
        places = np.where(has_stayed, promised[rows], start)
        return places, bool((has_stayed | has_settled).all())

    def _kept(self, row: int, promise: int, is_unmoved: bool) -> Iterator[Breach]:
        done = self.done
        number, start = int(done.workload.number[row]), int(done.start[row])
        if start > promise and (done.promise[row] == ABSENT or start <= done.promise[row]):
            is_recorded = done.first_promise[row] != ABSENT
            source = "was promised" if is_recorded else "by the plan at its arrival was to start by"
            text = f"job {number} {source} {seconds(promise)}, and started at {seconds(start)}"
            yield Breach("promise-broken", promise, (number,), text)
        elif start < promise and is_unmoved:
            text = (
                f"job {number} started at {seconds(start)}, before its place at "
                f"{seconds(promise)}, and no job ended early"
            )
            yield Breach("plan-left", start, (number,), text)

    def _idleness(self) -> Iterator[Breach]:
        """Check that after a sweep no job that is next to start, with no further sweep before, fits
        and still waits.

        Of the jobs that a sweep leaves in the queue, the one with the earliest place cannot fit at
        that instant. Otherwise it would fit from then on, because the machine only empties until
        its place.
        """
        done = self.done
        if not len(self.sweeps):
            return
        by_start, by_end = (
            np.argsort(done.start, kind="stable"),
            np.argsort(done.end, kind="stable"),
        )
        starts, taken_by = (
            done.start[by_start],
            np.concatenate([[0], np.cumsum(done.workload.procs[by_start])]),
        )
        ends, freed_by = (
            done.end[by_end],
            np.concatenate([[0], np.cumsum(done.workload.procs[by_end])]),
        )
        used = (
            taken_by[np.searchsorted(starts, self.sweeps, "right")]
            - freed_by[np.searchsorted(ends, self.sweeps, "right")]
        )
        # They end in a further round of that instant and count as still running.
        brief = np.flatnonzero(done.end <= done.start)
        named: set[int] = set()
        for at, taken in zip(self.sweeps.tolist(), used.tolist(), strict=True):
            free = (
                done.workload.procs_total
                - taken
                - int(done.workload.procs[brief[done.start[brief] == at]].sum())
            )
            limit = min(_next(self.sweeps, at, "right"), _next(self.late_sweeps, at, "left"))
            # The next job to start before the limit, of those submitted before this instant.
            begun, over = (
                np.searchsorted(starts, at, "right"),
                np.searchsorted(starts, limit, "left"),
            )
            row = next(
                (row for row in map(int, by_start[begun:over]) if done.workload.submit[row] < at),
                -1,
            )
            if row >= 0 and done.workload.procs[row] <= free and row not in named:
                named.add(row)
                number, start = int(done.workload.number[row]), seconds(int(done.start[row]))
                text = (
                    f"job {number} ({processors(int(done.workload.procs[row]))}) was next to "
                    f"start, at {start}, and should have "
                    f"been moved to {seconds(at)}, when a job ended early and {were(free)} free"
                )
                yield Breach("needless-wait", at, (number,), text)


def _earliest(
    begin: Int64Array, end: Int64Array, procs: Int64Array, most_used: int, duration: int, now: int
) -> int:
    """Return the first instant, from now on, from which at most ``most_used`` processors are booked
    for a duration.

    ``begin``, ``end``, ``procs``: the half-open spans in which processors are booked.
    """
    lasting = end > now
    at = np.concatenate([[now], np.maximum(begin[lasting], now), end[lasting]])
    change = np.concatenate([[0], procs[lasting], -procs[lasting]])
    order = np.argsort(at, kind="stable")
    at, used = at[order], np.cumsum(change[order])
    last = np.append(at[1:] > at[:-1], True)  # of each instant, the level after all its changes
    at, used = at[last], used[last]
    full: BoolArray = used > most_used
    opens = at[~full & np.concatenate([[True], full[:-1]])]
    closes = at[full & np.concatenate([[False], ~full[:-1]])]
    closes = (
        np.append(closes, NEVER)[: len(opens)]
        if not full[0]
        else np.append(closes, NEVER)[-len(opens) :]
    )
    return int(opens[np.argmax(closes - opens >= duration)])


def _first(instants: Int64Array, after: Int64Array, side: str) -> Int64Array:
    """Return for each instant the first of the sorted instants after it (``left``: at or after
    it)."""
    found: Int64Array = np.append(instants, NEVER)[np.searchsorted(instants, after, side)]  # type: ignore[call-overload]
    return found


def _next(instants: Int64Array, after: int, side: str) -> int:
    place = int(np.searchsorted(instants, after, side))  # type: ignore[call-overload]
    return int(instants[place]) if place < len(instants) else NEVER
