"""The checks of FCFS and EASY, instant by instant, from the state that the schedule itself shows.

At each instant this module derives the rule of docs/design.md anew, in plain Python: which jobs may
start, and which must.  It compares the schedule with the rule and continues from the schedule, so
that one breach does not cause others.  Jobs of no length make further rounds of one instant, and
the schedule does not show in which of them a job started.  So a start that the rule forbids is a
breach only if no further round follows.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator

import numpy as np

from qbatch.model.record import Int64Array, Schedule
from qbatch.referee.breach import Breach, processors, seconds, were
from qbatch.referee.reading import NEVER

_Forbidden = tuple[int, str, str, int]
"""A start that the rule forbids: the job, the code, the reason, and the head that waited."""


def check_queue(done: Schedule, *, is_backfilling: bool) -> Iterator[Breach]:
    """Check the starts against FCFS (stop at the first that does not fit) or EASY (Fig. 5, Property
    2).

    Source: Feitelson and Weil 1998, sections 1, 2.2 and 3.1; docs/design.md, "The meaning of one
    instant" (every job that ends exactly at the shadow time counts toward the extra processors; one
    scan; half-open reservations).
    """
    table = _Table(done, is_backfilling)
    submits, starts = _by_instant(done.workload.submit), _by_instant(done.start)
    ends = _by_instant(np.maximum(done.end, done.start))
    for instant in sorted(submits.keys() | starts.keys() | ends.keys()):
        for row in ends.get(instant, ()):
            if done.start[row] < instant:
                table.end(row)
        begun = starts.get(instant, [])
        for row in submits.get(instant, ()):
            if done.start[row] >= instant:
                table.submit(row)
        yield from table.pass_at(instant, begun)


def _by_instant(column: Int64Array) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for row, instant in enumerate(column.tolist()):
        found.setdefault(instant, []).append(row)
    return found


class _Table:
    """The machine and the queue of the schedule, and the rule."""

    def __init__(self, done: Schedule, is_backfilling: bool) -> None:
        self.done = done
        self.is_backfilling = is_backfilling
        self.free = done.workload.procs_total
        self.waiting = np.empty(len(done), np.int64)
        self.count = 0
        self.running: list[tuple[int, int]] = []  # (expected end, row), in order
        self.procs: list[int] = done.workload.procs.tolist()
        self.expected: list[int] = (done.start + done.workload.estimate).tolist()
        self.named: set[int] = set()  # jobs with a reported needless wait
        self.head = -1
        self.guarantee = NEVER

    def submit(self, row: int) -> None:
        """Put a job at the end of the queue: rows come in order of sequence."""
        self.waiting[self.count] = row
        self.count += 1

    def end(self, row: int) -> None:
        self.free += self.procs[row]
        del self.running[bisect_left(self.running, (self.expected[row], row))]

    def start(self, row: int) -> None:
        """Start a job on the machine, and remove it from the queue if it is there."""
        self.free -= self.procs[row]
        insort(self.running, (self.expected[row], row))
        place = int(np.searchsorted(self.waiting[: self.count], row))
        if place < self.count and self.waiting[place] == row:
            self.waiting[place : self.count - 1] = self.waiting[place + 1 : self.count]
            self.count -= 1

    def pass_at(self, now: int, begun: list[int]) -> Iterator[Breach]:
        """Yield the breaches among the starts of this instant, round by round."""
        done = self.done
        left = {row for row in begun if done.workload.submit[row] <= now}
        for row in begun:
            if row not in left:  # started before its submission, so it is in no queue
                self.start(row)
        while True:
            taken, breaches = self._round(now, left)
            yield from breaches
            brief = [row for row in taken if done.end[row] <= now]
            for row in brief:
                self.end(row)
            if not brief:
                break
        for row in begun:
            if row not in left and done.workload.submit[row] > now and done.end[row] <= now:
                self.end(row)

    def _round(self, now: int, left: set[int]) -> tuple[list[int], list[Breach]]:
        """Carry out one pass as the schedule shows it; return the jobs that started and the
        breaches among them."""
        taken: list[int] = []
        breaches: list[Breach] = []
        while (
            self.count
            and int(self.waiting[0]) in left
            and self.procs[int(self.waiting[0])] <= self.free
        ):
            row = int(self.waiting[0])
            taken.append(self._take(row, left, now, breaches))
        if not self.count:
            return taken, breaches
        head = int(self.waiting[0])
        if not left and self.free <= 0 and head == self.head:
            return taken, breaches
        shadow, extra = self._shadow(now, head)
        if head != self.head:
            self.head, self.guarantee = head, shadow if self.is_backfilling else NEVER
        if self.procs[head] <= self.free and head not in self.named:
            breaches.append(self._needless(head, now, f"{were(self.free)} free"))
        forbidden: list[_Forbidden] = []
        if self.is_backfilling:
            forbidden = self._scan(now, left, taken, breaches, head, shadow, extra)
        elif left:
            forbidden = [(row, "overtaken", "", head) for row in sorted(left) if row != head]
        if not any(self.done.end[row] <= now for row in taken):
            self._settle(now, left, taken, forbidden, breaches)
        return taken, breaches

    def _take(self, row: int, left: set[int], now: int, breaches: list[Breach]) -> int:
        """Start a job; a head that starts later than its guarantee is a breach of ``guarantee``."""
        if row == self.head and now > self.guarantee:
            number, due = int(self.done.workload.number[row]), seconds(self.guarantee)
            text = (
                f"job {number}, when it became head, was to start by {due}, and started at "
                f"{seconds(now)}"
            )
            breaches.append(Breach("guarantee", self.guarantee, (number,), text))
        left.discard(row)
        self.start(row)
        return row

    def _shadow(self, now: int, head: int) -> tuple[int, int]:
        """Return when the head fits by the estimates of the running jobs, and the processors that
        it then leaves."""
        wanted, available = self.procs[head], self.free
        if available >= wanted:
            return now, available - wanted
        for place, (at, row) in enumerate(self.running):
            available += self.procs[row]
            if available >= wanted:
                for same, other in self.running[place + 1 :]:
                    if same != at:
                        break
                    available += self.procs[other]
                return max(at, now), available - wanted
        return NEVER, 0

    def _scan(
        self,
        now: int,
        left: set[int],
        taken: list[int],
        breaches: list[Breach],
        head: int,
        shadow: int,
        extra: int,
    ) -> list[_Forbidden]:
        """Scan the queue behind the head once, in order; return the starts that the rule
        forbids."""
        done, extra_at_first = self.done, extra
        queue = self.waiting[1 : self.count]
        wide = done.workload.procs[queue]
        may_start = (wide <= self.free) & (
            (now + done.workload.estimate[queue] <= shadow) | (wide <= extra)
        )
        forbidden: list[_Forbidden] = []
        for row in sorted({*queue[may_start].tolist(), *(row for row in left if row != head)}):
            procs, is_timely = self.procs[row], now + int(done.workload.estimate[row]) <= shadow
            if procs <= self.free and (is_timely or procs <= extra):
                if row in left:
                    taken.append(self._take(row, left, now, breaches))
                    extra -= 0 if is_timely else procs
                elif row not in self.named:
                    may = "it ends by" if is_timely else f"{extra} of them extra at"
                    of = f"the shadow time {seconds(shadow)} of job {done.workload.number[head]}"
                    breaches.append(
                        self._needless(row, now, f"{were(self.free)} free, and {may} {of}")
                    )
            elif row in left and not is_timely and procs > extra:
                forbidden.append(
                    (row, *self._violation(row, now, shadow, extra, extra_at_first), head)
                )
        return forbidden

    def _violation(
        self, row: int, now: int, shadow: int, extra: int, extra_at_first: int
    ) -> tuple[str, str]:
        done, procs = self.done, self.procs[row]
        until = f"it lasts until {seconds(now + int(done.workload.estimate[row]))} by its estimate"
        if now + int(done.workload.run[row]) <= shadow:
            return (
                "clairvoyant",
                f"{until}, and only by its run time ends by the shadow time {seconds(shadow)}",
            )
        late = f"{until}, beyond the shadow time {seconds(shadow)}, on {processors(procs)}"
        if procs <= extra_at_first:
            return (
                "extra-misused",
                f"{late}, and of {extra_at_first} extra this pass has left {extra}",
            )
        return "head-delayed", f"{late}, and {extra} are extra"

    def _settle(
        self,
        now: int,
        left: set[int],
        taken: list[int],
        forbidden: list[_Forbidden],
        breaches: list[Breach],
    ) -> None:
        """Report the forbidden starts as breaches, since no further round follows, and carry them
        out."""
        done = self.done
        for row, code, text, head in forbidden:
            number, first = int(done.workload.number[row]), int(done.workload.number[head])
            passed = f"job {number} started while job {first}, submitted earlier, waited"
            backfilled = f"job {number} was backfilled before job {first}: {text}"
            breaches.append(
                Breach(code, now, (number, first), passed if code == "overtaken" else backfilled)
            )
        reported = {row for row, *_ in forbidden}
        for row in sorted(left):
            if row not in reported and self.procs[row] > self.free and done.end[row] <= now:
                # A job of no length: the common check cannot see that it did not fit.
                number = int(done.workload.number[row])
                text = (
                    f"job {number} of no length started on {processors(self.procs[row])}, and "
                    f"{self.free} were free"
                )
                breaches.append(Breach("capacity", now, (number,), text))
        for row in sorted(left):
            taken.append(self._take(row, left, now, breaches))

    def _needless(self, row: int, now: int, why: str) -> Breach:
        self.named.add(row)
        number, start = int(self.done.workload.number[row]), int(self.done.start[row])
        did = (
            "but still waited when the log was written"
            if start == NEVER
            else f"not at {seconds(start)}"
        )
        text = (
            f"job {number} ({processors(self.procs[row])}) should have started at "
            f"{seconds(now)}, {did}: {why}"
        )
        return Breach("needless-wait", now, (number,), text)
