"""Small policies that refuse, promise, quote and break promises: what the tests of admission run.

They plan the whole queue on one pool of processors, by the estimates, and start what the plan
starts now.  A job with a planned end more than ``most`` seconds after its submission is refused in
the pass that first shows it; every other one is promised its planned start.  Where the plan puts a
promised job later, the promise is taken back and another is made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from qbatch.model.actions import Action, Break, Promise, Reject, Start, WakeAt
from qbatch.model.job import Job
from qbatch.model.machine import Machine
from qbatch.model.quote import Quote
from qbatch.model.reasons import Reason
from qbatch.planning.view import OVERDUE, View

SECOND = 1_000_000


class Plan:
    """How many processors each job holds, from when until when."""

    def __init__(self, view: View) -> None:
        self.now = view.now
        ends = np.where(view.ends > view.now, view.ends, view.now + OVERDUE).tolist()
        self.procs = sum(view.free) + sum(view.amounts.tolist())
        self.spans = [
            (view.now, end, procs) for end, procs in zip(ends, view.amounts.tolist(), strict=True)
        ]

    def book(self, job: Job, after: int) -> int:
        """Book a job at the earliest instant from ``after`` on at which it fits, and return
        that."""
        length = max(job.estimate, SECOND)
        for at in sorted({after, *(end for _, end, _ in self.spans if end > after)}):
            instants = {at, *(begin for begin, _, _ in self.spans if at < begin < at + length)}
            if all(self._used(each) + job.procs <= self.procs for each in instants):
                self.spans.append((at, at + length, job.procs))
                return at
        raise AssertionError("nothing is free for ever")

    def _used(self, at: int) -> int:
        return sum(procs for begin, end, procs in self.spans if begin <= at < end)


class Bounded:
    """First come, first served, for jobs that would end in time.

    ``order``: ``fcfs`` breaks no promise while jobs end by their estimates; ``sjf`` lets shorter
    jobs overtake, and so breaks some.
    """

    may_refuse = True

    def __init__(self, most: int = 100, order: str = "fcfs") -> None:
        self.most = most * SECOND
        self.order = order
        self.name = f"bounded:most={most},order={order}"

    def new_memory(self, machine: Machine) -> dict[int, int]:
        return {}

    def decide(self, view: View) -> Iterable[Action]:
        promised: dict[int, int] = view.memory
        for row in view.withdrawn:
            promised.pop(row, None)
        for row in (row for row in view.queue.tolist() if row not in promised):
            at = self._planned(view, [*promised, row])[row]
            reason = self._refusal(view.jobs[row], at)
            if reason is None:
                promised[row] = at
                yield Promise(row, at)
            else:
                yield Reject(row, reason)
        planned = self._planned(view, promised)
        for row, at in planned.items():
            if at > promised[row]:
                yield Break(
                    row, Reason("overtaken", self.name, f"it starts {at - promised[row]} us later")
                )
            if at != promised[row]:
                yield Promise(row, at)
                promised[row] = at
        for row, at in planned.items():
            if at == view.now:
                yield Start(row)
                del promised[row]
        if promised:
            yield WakeAt(max(min(promised.values()), view.now + SECOND))

    def quote(self, view: View, job: Job) -> Quote:
        plan = Plan(view)
        if self.order == "fcfs":
            planned = self._planned(view, view.memory, plan)
            at = plan.book(job, max([view.now, *planned.values()]))
        else:
            last = self._planned(
                view, [row for row in view.memory if view.jobs[row].estimate <= job.estimate], plan
            )
            at = plan.book(job, max([view.now, *last.values()]))
        end = at + job.estimate
        return Quote(self._refusal(job, at), at, end, end)

    def _refusal(self, job: Job, at: int) -> Reason | None:
        end = at + job.estimate
        if end - job.submit <= self.most:
            return None
        late = end - job.submit - self.most
        return Reason(
            "too-late",
            self.name,
            f"it would end {late / SECOND:g} s too late",
            {"at": at, "late": late},
        )

    def _planned(self, view: View, rows: Iterable[int], plan: Plan | None = None) -> dict[int, int]:
        """Return the planned start of each row; no job starts before the one in front of it."""
        plan = plan or Plan(view)
        planned, last = {}, view.now
        for row in self._in_order(view, rows):
            last = planned[row] = plan.book(view.jobs[row], last)
        return planned

    def _in_order(self, view: View, rows: Iterable[int]) -> Iterator[int]:
        if self.order == "fcfs":
            return iter(sorted(rows))
        return iter(sorted(rows, key=lambda row: (view.jobs[row].estimate, row)))


class Silent:
    """Refuses every job of more than two processors, promises nothing and has no quote."""

    may_refuse = True
    name = "silent"

    def decide(self, view: View) -> Iterable[Action]:
        free = sum(view.free)
        for row in view.queue.tolist():
            procs = view.jobs[row].procs
            if procs > 2:
                yield Reject(
                    row,
                    Reason(
                        "too-wide-for-me",
                        self.name,
                        f"asks for {procs} processors",
                        {"procs": procs},
                    ),
                )
            elif procs <= free:
                free -= procs
                yield Start(row)


class Forgetful(Bounded):
    """Writes into its memory when it is asked for a quote, which it must not do."""

    def quote(self, view: View, job: Job) -> Quote:
        view.memory[-1] = view.now
        return Quote()


class Faulty(Silent):
    """Fails when it sees a job of three processors."""

    name = "faulty"

    def decide(self, view: View) -> Iterable[Action]:
        if any(view.jobs[row].procs == 3 for row in view.arrived):
            raise ZeroDivisionError("three")
        return super().decide(view)


class Wavering:
    """Runs nothing, and promises each waiting job another start in every pass, a second apart."""

    may_refuse = True
    name = "wavering"

    def new_memory(self, machine: Machine) -> list[int]:
        return []

    def decide(self, view: View) -> Iterable[Action]:
        for row in view.memory:
            yield Break(row, Reason("wavers", self.name, f"it wavers at {view.now} us"))
        view.memory[:] = view.queue.tolist()
        yield from (Promise(row, view.now + 10 * SECOND) for row in view.memory)
        yield WakeAt(view.now + SECOND)
