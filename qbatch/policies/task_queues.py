"""Task queues: every host has its own queue; a task is routed to one on arrival, and each host
selects the next by itself.

Source: Karatza and Hilzer 2003, section 2.2; exact readings in docs/spec/papers.md 5.5, rules 8 to
10.  A station is a host with as many servers as processors.  A job is a task; jobs with the same
``parent`` are its tasks, and an uncompleted task counts wherever it is.  If the host cannot yet
hold a selected task, the station waits.  Tasks queued at a host that closes are routed again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from qbatch.model.actions import Action, Reject, Start
from qbatch.model.job import Job
from qbatch.model.machine import Machine, memory_text
from qbatch.model.quote import Quote
from qbatch.model.reasons import Reason
from qbatch.planning.kernels import fractions, task_queues
from qbatch.planning.kernels.entries import entries_to
from qbatch.planning.kernels.types import BoolArray, Int64Array
from qbatch.planning.policy import check_single_hosts
from qbatch.planning.view import View

_kernels, _fractions = entries_to(task_queues), entries_to(fractions)

ROUTINGS = {"probabilistic": task_queues.PROBABILISTIC, "shortest": task_queues.SHORTEST}
"""Routing by name."""

DISCIPLINES = {
    "fcfs": task_queues.FCFS,
    "stf": task_queues.STF,
    "snutf": task_queues.SNUTF,
    "lstf": task_queues.LSTF,
    "snutf-stf": task_queues.SNUTF_STF,
}
"""Disciplines by name."""

NOWHERE = -1
"""The station of a task that only closed hosts could hold."""

_WORDS = (
    "first",
    "second",
    "third",
    "fourth",
    "fifth",
    "sixth",
    "seventh",
    "eighth",
    "ninth",
    "tenth",
)


class QueueRules(NamedTuple):
    """How tasks are routed and selected: ``routing`` of ``ROUTINGS``, ``discipline`` of
    ``DISCIPLINES``.

    ``limit``: the number of selections after which ``lstf`` takes the oldest; ``ties``: among the
    shortest queues a ``random`` one or the ``lowest``; ``seed``: of the draws of jobs that bring
    none.
    """

    routing: str = "shortest"
    discipline: str = "fcfs"
    limit: int = 10
    ties: str = "random"
    seed: int = 0


class Station:
    """The queue of one host: ``queue[?]`` (:mod:`~qbatch.planning.kernels.task_queues`), in use up
    to ``waiting``; the number of its tasks that ``run``; the row of a ``chosen`` task that does not
    fit yet, -1 for none."""

    __slots__ = ("chosen", "queue", "running", "waiting")

    def __init__(self) -> None:
        self.queue = np.zeros(4, task_queues.QUEUED_TASK)
        self.waiting = self.running = 0
        self.chosen = -1

    @property
    def rows(self) -> list[int]:
        """The waiting rows in order of sequence."""
        return [int(row) for row in self.queue["task"][: self.waiting]]

    def append(self, row: int, estimate: int, parent: int) -> None:
        """Add a task to the end of the queue."""
        if self.waiting == len(self.queue):
            self.queue = np.concatenate([self.queue, np.zeros_like(self.queue)])
        _kernels.append(self.queue, self.waiting, row, estimate, parent)
        self.waiting += 1

    def take_out(self, row: int) -> None:
        """Remove a task from the queue."""
        place = int(np.flatnonzero(self.queue["task"][: self.waiting] == row)[0])
        _kernels.take_out(self.queue, self.waiting, place)
        self.waiting -= 1
        if self.chosen == row:
            self.chosen = -1


class StationBook:
    """The memory of the policy.

    In order: its stations, by host; the number of selections of each since it took the oldest; the
    station of each task.  Then: of each parent, by its index in ``left``, how many tasks have not
    ended; and what another policy had ``accepted``, which is not refused.
    """

    def __init__(self, hosts: int) -> None:
        self.stations = [Station() for _ in range(hosts)]
        self.selections: Int64Array = np.zeros(hosts, np.int64)
        self.station_of: dict[int, int] = {}
        self.running_on: dict[int, int] = {}
        self.parent_of: dict[int, int] = {}
        self.places: dict[int, int] = {}
        self.left: Int64Array = np.zeros(4, np.int64)
        self.unused: list[int] = [3, 2, 1, 0]
        self.accepted: set[int] = set()
        self.is_new = True

    def lengths(self) -> Int64Array:
        """Return by station the number of tasks that wait or run."""
        return np.array([station.waiting + station.running for station in self.stations], np.int64)

    def count(self, row: int, parent: int) -> int:
        """Count a task among the uncompleted ones of its parent; return the parent's index."""
        place = self.places.get(parent, -1)
        if place < 0:
            if not self.unused:
                self.unused = list(range(2 * len(self.left) - 1, len(self.left) - 1, -1))
                self.left = np.concatenate([self.left, np.zeros_like(self.left)])
            place = self.places[parent] = self.unused.pop()
        self.left[place] += 1
        self.parent_of[row] = parent
        return place

    def forget(self, row: int) -> None:
        """Forget a task that has ended or was withdrawn."""
        parent = self.parent_of.pop(row, None)
        if parent is None:
            return
        place = self.places[parent]
        self.left[place] -= 1
        if self.left[place] == 0:
            del self.places[parent]
            self.unused.append(place)
        station = self.station_of.pop(row, NOWHERE)
        if station >= 0:
            self.stations[station].take_out(row)
        ran_on = self.running_on.pop(row, NOWHERE)
        if ran_on >= 0:
            self.stations[ran_on].running -= 1

    def run(self, row: int, station: int) -> None:
        """Note that a task runs."""
        self.station_of.pop(row, None)
        self.running_on[row] = station
        self.stations[station].running += 1


class TaskQueues:
    """Task queues as a policy, by the fields of :class:`QueueRules`."""

    may_refuse = True
    knows_resources = False

    def __init__(self, name: str, **rules: Any) -> None:
        self.name = name
        self.rules = QueueRules(**rules)
        self._routing, self._discipline = (
            ROUTINGS[self.rules.routing],
            DISCIPLINES[self.rules.discipline],
        )

    def new_memory(self, machine: Machine) -> StationBook:
        """Return empty stations.

        Raises:
            UsageError: a job may span the hosts of the machine but does not ask for chunks.
        """
        check_single_hosts(machine, self.name, "a task is inside one host")
        return StationBook(len(machine.hosts))

    def decide(self, view: View) -> Iterator[Action]:
        """Make one pass: count what ended, route what arrived, let each idle host select."""
        book: StationBook = view.memory
        for row in (*view.finished, *view.withdrawn, *view.requeued):
            book.forget(row)
        is_known = not (book.is_new or view.is_machine_changed)
        if book.is_new:  # count the tasks that another policy has started
            book.is_new = False
            for row, run in (*view.running.items(), *view.suspended.items()):
                book.count(row, _parent(view.jobs[row]))
                book.run(row, run.allocation[0].host)
            book.accepted.update(
                {*view.queue.tolist(), *view.parked.tolist()}.difference(view.arrived)
            )
        gone = set(view.withdrawn)
        arrived = [row for row in (*view.requeued, *view.arrived) if row not in gone]
        yield from self._route(view, book, arrived if is_known else self._unrouted(view, book))
        yield from self._select(view, book)

    def _unrouted(self, view: View, book: StationBook) -> list[int]:
        """Return all waiting rows that are at no open host, in order of sequence; first those of
        closed hosts, in their order."""
        # Rows were added in the order of routing, which is that of their sequence.
        again = [row for row, station in book.station_of.items() if station in view.closed]
        for row in again:
            book.forget(row)
        known = {row for row, station in book.station_of.items() if station >= 0} | set(again)
        return [*again, *(row for row in view.queue.tolist() if row not in known)]

    def _route(self, view: View, book: StationBook, rows: list[int]) -> Iterator[Reject]:
        """Add rows to queues, one after another."""
        if not rows:
            return
        lengths, cpus = (
            book.lengths(),
            np.array([host.cpus for host in view.machine.hosts], np.int64),
        )
        is_open = np.ones(len(cpus), np.bool_)
        is_open[list(view.closed)] = False
        found: dict[tuple[object, ...], BoolArray] = {}
        for row in rows:
            book.forget(row)
            job = view.jobs[row]
            shape = (job.procs, job.memory, job.chunks, job.placing)
            if shape not in found:
                found[shape] = view.resources.holders(job)
            holders = found[shape]
            if not holders.any() and row not in book.accepted and not job.is_admitted:
                yield Reject(row, self._refusal(view, job))
                continue
            place = book.count(row, _parent(job))
            station = _kernels.routed(
                self._routing, self._drawn(job), lengths, np.where(holders & is_open, cpus, 0)
            )
            book.station_of[row] = station
            if station >= 0:
                lengths[station] += 1
                book.stations[station].append(row, job.estimate, place)

    def _drawn(self, job: Job) -> int:
        if self._routing == task_queues.SHORTEST and self.rules.ties == "lowest":
            return task_queues.LOWEST
        if job.route >= 0:
            return job.route
        with np.errstate(over="ignore"):
            key = np.uint64(_fractions.folded(np.uint64(self.rules.seed), job.number))
            return int(_fractions.bits(key, job.task + 1))

    def quote(self, view: View, job: Job) -> Quote:
        """Return whether a job would be accepted; a policy without plans gives no instants."""
        return Quote() if view.resources.holders(job).any() else Quote(self._refusal(view, job))

    def _refusal(self, view: View, job: Job) -> Reason:
        most = max(host.cpus for host in view.machine.hosts)
        text = (
            f"a task runs inside one host, and no host can hold this one ({job.procs} "
            f"processors; the widest host has {most})"
        )
        return Reason("too-wide", self.name, text, {"procs": job.procs, "most": most})

    def _select(self, view: View, book: StationBook) -> Iterator[Start]:
        """Let each host with free processors select, in host order."""
        free_now = view.free_now()
        for place, station in enumerate(book.stations):
            while station.waiting and free_now.free[place] > 0:
                row = station.chosen
                if row < 0:
                    facts = (place, station.queue, station.waiting, book.left, book.selections)
                    row = int(
                        station.queue["task"][
                            _kernels.select(self._discipline, self.rules.limit, *facts)
                        ]
                    )
                allocation = free_now.place_on(view.jobs[row], place)
                if not allocation:
                    station.chosen = row
                    break
                station.take_out(row)
                book.run(row, place)
                yield Start(row, allocation)

    def host_queues(self, view: View) -> list[list[int]]:
        """Return the queue of each host, in the order of its selections if no other tasks came."""
        return [self._in_order(view.memory, place) for place in range(len(view.machine.hosts))]

    def _in_order(self, book: StationBook, place: int) -> list[int]:
        station = book.stations[place]
        queue = station.queue[: station.waiting]
        if self._discipline == task_queues.FCFS:
            key = np.zeros(len(queue), np.int64)
        elif self._discipline in (task_queues.SNUTF, task_queues.SNUTF_STF):
            key = book.left[queue["parent"]]
        else:
            key = queue["estimate"]
        minor = (
            queue["estimate"] if self._discipline == task_queues.SNUTF_STF else np.zeros_like(key)
        )
        rows = [int(each) for each in queue["task"][np.lexsort((minor, key))]]
        if station.chosen >= 0:
            rows = [station.chosen, *(row for row in rows if row != station.chosen)]
        if self._discipline != task_queues.LSTF:
            return rows
        # In order of estimate, and the oldest after each ``limit`` selections.
        selections = int(book.selections[place])
        found = dict.fromkeys(rows[: station.chosen >= 0])
        ways = (iter(rows), iter(station.rows))
        while len(found) < len(rows):
            is_oldest = selections >= self.rules.limit
            found[next(row for row in ways[is_oldest] if row not in found)] = None
            selections = 0 if is_oldest else selections + 1
        return list(found)

    def explain(self, view: View, row: int) -> Reason:
        """Return in which queue a task waits, and behind which others."""
        book: StationBook = view.memory
        place = book.station_of.get(row, NOWHERE)
        job = view.jobs[row]
        if place == NOWHERE and not view.resources.holders(job).any():
            return self._refusal(view, job)
        if place == NOWHERE:
            return Reason(
                "hosts-closed",
                self.name,
                "no open host can hold it alone; it is routed when one opens",
            )
        rows = self._in_order(book, place)
        ahead = rows[: rows.index(row)]
        host, free = view.machine.hosts[place].name, view.free[place]
        numbers = {"place": len(ahead) + 1, "host": place, "free": free}
        ordinal = _WORDS[len(ahead)] if len(ahead) < len(_WORDS) else f"number {len(ahead) + 1}"
        if ahead:
            parents = {book.parent_of[each] for each in ahead}
            text = f"{ordinal} in the queue of {host}, behind {_tasks(view, ahead, len(parents))}"
            return Reason("station-queue", self.name, text, numbers, tuple(ahead))
        text = (
            f"{ordinal} in the queue of {host}, which has "
            f"{_amount(free, view.free_memory[place], job)} free; it needs "
        )
        text += _amount(job.procs, job.memory, job)
        there = [each for each, station in book.running_on.items() if station == place]
        return Reason("station-busy", self.name, text, numbers, tuple(there))


def _amount(procs: int, memory: int, job: Job) -> str:
    """Return the number of processors, and the memory if the job asks for any, in words."""
    text = f"{procs} processor{'' if procs == 1 else 's'}"
    return f"{text} and {memory_text(memory)} of memory" if job.memory else text


def _parent(job: Job) -> int:
    """Return the identity that tasks of one parent share; a job without a parent is its own."""
    return job.parent if job.parent >= 0 else -2 - job.number


def _tasks(view: View, rows: list[int], parents: int) -> str:
    first = view.jobs[rows[0]]
    many = f"{len(rows)} tasks" if len(rows) > 1 else "1 task"
    if parents > 1:
        return f"{many} of {parents} jobs"
    return f"{many} of job {first.parent}" if first.parent >= 0 else f"job {first.number}"
