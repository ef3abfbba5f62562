"""The checks of time slices: derive the slices from submissions and ends, and compare the execution
intervals with them.

Source: docs/spec/papers.md 4.10, rules 1 to 4.  A class is present while it has a job, so
submissions and ends alone determine which class had the machine at each instant, and when the
machine switched.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from qbatch.model.record import Int64Array, Schedule
from qbatch.policies.slice_rules import SliceRules
from qbatch.referee.breach import Breach, seconds

SWITCH, IDLE = -1, -2


class Slice(NamedTuple):
    """A half-open span in which a class has the machine, or the machine switches or is idle.  In
    microseconds."""

    start: int
    end: int
    kind: int


def classes_of(done: Schedule, rules: SliceRules) -> list[int]:
    """Return the class of each job."""
    work = done.workload
    return list(map(rules.class_of, work.estimate.tolist(), work.queue.tolist()))


def clock_of(done: Schedule, rules: SliceRules) -> list[Slice]:
    """Return the slices and switches that follow from the jobs of a schedule, in order; consecutive
    slices of a class are one."""
    rounds = _rounds(done, classes_of(done, rules))
    there, slices, at = [0, 0, 0], [], 0
    kind, begun, until, last, seen = IDLE, 0, 0, 0, -1
    while at < len(rounds) or kind != IDLE:
        coming = rounds[at][0] if at < len(rounds) else until
        now = coming if kind == IDLE else min(coming, until)
        # A job that ends at the instant of its start ends in a separate round.
        if at < len(rounds) and rounds[at][0] == now and (rounds[at][1] == 0 or seen == now):
            there = [count + change for count, change in zip(there, rounds[at][2], strict=True)]
            at += 1
        seen = now
        settled = _settled(kind, now, until, last, there, rules)
        if settled is None:
            continue
        if settled[0] != kind:
            if kind != IDLE and now > begun:
                slices.append(Slice(begun, now, kind))
            last, begun = kind if kind >= 0 else last, now
        kind, until = settled[0], now + settled[1]
    return slices


def _rounds(done: Schedule, kinds: list[int]) -> list[tuple[int, int, list[int]]]:
    """Return the changes in the jobs present, round by round: at an instant first the ends and
    arrivals, then the jobs that start there and end at once."""
    changes: dict[tuple[int, int], list[int]] = {}
    last = done.start.copy()
    if done.pieces is not None:
        np.maximum.at(last, done.pieces[:, 0], done.pieces[:, 1])
    for row in np.flatnonzero(done.ran).tolist():
        submit, end = int(done.workload.submit[row]), int(done.end[row])
        changes.setdefault((submit, 0), [0, 0, 0])[kinds[row]] += 1
        changes.setdefault((end, int(last[row] == end)), [0, 0, 0])[kinds[row]] -= 1
    return [(instant, part, changes[instant, part]) for instant, part in sorted(changes)]


def _settled(
    kind: int, now: int, until: int, last: int, there: list[int], rules: SliceRules
) -> tuple[int, int] | None:
    """Return the next phase of the clock and its length; None if the phase stays (rule 3)."""
    if kind >= 0:
        if now < until and there[kind]:
            return None
        if any(count for each, count in enumerate(there) if each != kind):
            return SWITCH, rules.switch
        return (kind, rules.length(kind, now)) if there[kind] else (IDLE, 0)
    if kind == SWITCH and now < until:
        return None
    turns = [0, 1, 2] if kind == IDLE else [(last + step) % 3 for step in (1, 2, 3)]
    following = next((each for each in turns if there[each]), IDLE)
    if following == IDLE:
        return None if kind == IDLE else (IDLE, 0)
    return following, rules.length(following, now)


def check_slices(done: Schedule, rules: SliceRules) -> Iterator[Breach]:
    """Check that no job runs during a switch or beyond the slice in which it started or resumed,
    and that a started job runs whenever its class has the machine."""
    clock, kinds, spans = clock_of(done, rules), classes_of(done, rules), done.spans()
    begins = [each.start for each in clock]
    ran = np.zeros((3, len(done)), np.int64)
    for row, start, end in zip(
        spans.job.tolist(), spans.begin.tolist(), spans.end.tolist(), strict=True
    ):
        if start == end:
            continue
        number = int(done.workload.number[row])
        place = bisect_right(begins, start) - 1
        if place < 0 or clock[place].kind == SWITCH or clock[place].end <= start:
            text = (
                f"job {number} runs from {seconds(start)}, in a switch or while no class has "
                "the machine"
            )
            yield Breach("outside-slice", start, (number,), text)
        elif clock[place].end < end:
            text = (
                f"job {number} runs from {seconds(start)} to {seconds(end)}, the slice ends at "
                f"{seconds(clock[place].end)}"
            )
            yield Breach("outside-slice", clock[place].end, (number,), text)
        if place >= 0 and clock[place].kind >= 0:
            ran[clock[place].kind, row] += max(min(end, clock[place].end) - start, 0)
    owed = _owed(done, clock)
    for row in np.flatnonzero(done.ran).tolist():
        missed = owed[kinds[row]][row] - int(ran[kinds[row], row])
        if missed > 0:
            number = int(done.workload.number[row])
            text = (
                f"job {number} did not run for {seconds(missed)} in slices of its own class, "
                "after it had begun"
            )
            yield Breach("idle-in-slice", int(done.start[row]), (number,), text)


def _owed(done: Schedule, clock: list[Slice]) -> list[Int64Array]:
    """Return, by class and row, for how long the class had the machine between the job's start and
    its end."""
    owed = []
    for kind in range(3):
        edges = np.array(
            [(each.start, each.end) for each in clock if each.kind == kind], np.int64
        ).reshape(-1, 2)
        lengths = np.concatenate([[0], np.cumsum(edges[:, 1] - edges[:, 0])])

        def until(
            instants: Int64Array, edges: Int64Array = edges, lengths: Int64Array = lengths
        ) -> Int64Array:
            place = np.searchsorted(edges[:, 0], instants, side="right")
            if not len(edges):
                return np.zeros(len(instants), np.int64)
            inside = np.where(
                place > 0, np.minimum(instants, edges[place - 1, 1]) - edges[place - 1, 0], 0
            )
            return np.asarray(lengths[np.maximum(place - 1, 0)] + inside, np.int64)

        owed.append(until(done.end) - until(done.start))
    return owed
