"""List schedulers: an order of the queue, and a number of reservations for jobs that a pass cannot
start.

Source: Feitelson and Weil 1998, "Utilization and Predictability in Scheduling the IBM SP2 with
Backfilling", sections 1 and 2.2; Lifka 1995 for EASY.  Backfilling is one number, the reservation
depth: 0 is first fit, 1 is EASY, more is a hybrid, all is conservative backfilling from scratch.

The rules are kernels (:mod:`qbatch.planning.kernels.lists`), which the replay runs compiled and the
engine calls with the tables of a view.  If jobs are chunks over hosts, the resource model makes the
pass itself: each pass finds its reservations again, and a reservation that stays keeps only its
holder's place at the front.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np

from qbatch.model.actions import Start
from qbatch.model.errors import DecisionError
from qbatch.model.machine import Machine
from qbatch.model.reasons import COULD_START, Reason
from qbatch.model.record import Workload
from qbatch.planning.compiled_policy import LiveTables, with_old
from qbatch.planning.kernels import lists, passes
from qbatch.planning.kernels.entries import entry_to
from qbatch.planning.kernels.order import BYPASS
from qbatch.planning.kernels.orders import FCFS, LOOP_ORDERS, PRIORITY, SJF_BEHIND
from qbatch.planning.kernels.tables import ENDS, NAMED, NO_PARTS, PARTS, Needs
from qbatch.planning.kernels.types import Int64Array
from qbatch.planning.partitions import has_tiers, tier_of
from qbatch.planning.policy import Compiled, ListRules
from qbatch.planning.resources import PoolModel, resource_model_of
from qbatch.planning.view import Reserved, View, for_starts, jobs_of, reserved_in

_looked_through, _forget_holders = entry_to(lists.looked_through), entry_to(lists.forget_holders)
_list_pass: Any = entry_to(lists.list_pass_apart)
_list_pass_of_pool = entry_to(lists.list_pass_of_pool)
_note_pass = entry_to(lists.note_pass)


class ListMemory(LiveTables):
    """The tables of a list scheduler and, if bypasses have a weight, the rows that waited in the
    last pass and how often other jobs had bypassed each before it."""

    tables: lists.HostList
    seen: tuple[Int64Array, Any] | None = None

    @property
    def held(self) -> list[Reserved]:
        """The reservations that stay, the oldest first."""
        return reserved_in(self.tables.held, int(self.tables.holders[lists.HELD]))


class Backfill:
    """A list scheduler: it scans the queue in an order, and keeps reservations ahead of the jobs
    that it starts."""

    def __init__(self, name: str, rules: ListRules) -> None:
        self.name = name
        self.rules = rules
        self._order = LOOP_ORDERS.get(rules.order, PRIORITY)
        self._weights = np.array(rules.weights, np.float64)
        # On a pool such a pass counts processors; to all others a pool is one host.
        self._counts = not (rules.is_sticky or self._order == PRIORITY)
        one_pass = passes.easy_pass if rules.depth == 1 else passes.hybrid_pass
        self._one_pass = passes.fcfs_pass if rules.is_stopping else one_pass
        self._pool_pass = lists.pool_pass(self._one_pass, self._order != FCFS)
        self._pass_apart = entry_to(lists.pool_pass_apart(self._pool_pass))
        self.follows_tiers = not rules.is_sticky
        self._remembers = rules.is_sticky or rules.weights[BYPASS] != 0

    def compiled_on(self, machine: Machine) -> Compiled | None:
        """Return the kernel that makes the same decisions on a machine; None: the engine replays it
        there."""
        if self._order == SJF_BEHIND and not machine.is_one_pool:
            return None
        if self.follows_tiers and has_tiers(machine):
            return None  # the kernels order the queue themselves, without tiers
        if resource_model_of(machine) is not PoolModel or not self._counts:
            return Compiled(
                lists.decide_on_hosts,
                Needs(reads=PARTS, has_hosts=True),
                self._of_loop,
            )

        def new_memory(work: Workload, machine: Machine) -> passes.PoolList:
            space = self._space(min(len(work), machine.procs) + 1, len(work))
            return passes.PoolList(self._order, self.rules.depth, np.zeros((2, space), np.int64))

        needs = Needs(reads=NO_PARTS if self.rules.is_stopping else ENDS)
        return Compiled(lists.pool_scheduler(self._pool_pass), needs, new_memory)

    def _space(self, running: int, rows: int) -> int:
        """Return the space of the profile of a pass over a pool, by the jobs that run or start, and
        those that wait."""
        return (
            8 * running + 4 * min(self.rules.depth, rows) + 16
            if self._one_pass is passes.hybrid_pass
            else 0
        )

    def _of_loop(self, work: Workload, machine: Machine) -> lists.HostList:
        """Return the tables of the compiled loop."""
        rules = self._host_list(len(work))
        if not machine.chunked:
            return rules
        resources = NAMED + len(machine.resources)
        return rules._replace(last=lists.last_pass(len(work), resources, len(machine.hosts)))

    def _host_list(self, rows: int) -> lists.HostList:
        """Return the tables for ``rows`` jobs."""
        rules = self.rules
        return lists.HostList(
            self._order,
            rules.depth,
            self._weights,
            rules.is_stopping,
            rules.is_sticky,
            bypasses=np.zeros(rows if rules.weights[BYPASS] else 0),
            held=np.zeros((3, min(rules.depth, rows)), np.int64),
            holders=np.zeros(3, np.int64),
            last=lists.last_pass(0, 0, 0),
        )

    def new_memory(self, machine: Machine) -> ListMemory | None:
        """Return the record for a machine before its first event; None if a pass needs nothing from
        earlier ones."""
        return ListMemory(64, self._host_list(64)) if self._remembers else None

    def decide(self, view: View) -> list[Start]:
        """Make one pass."""
        queue, resources = view.queue, view.resources
        if self._counts:
            if len(queue) == 0 or (free := view.free_procs) == 0:
                return []
            whole = resources.whole()
            if isinstance(whole, PoolModel):
                return resources.starts(self._counted(view, free), [])
        if self._remembers:
            memory = view.memory
            if not isinstance(memory, ListMemory):
                raise DecisionError(
                    f"policy {self.name} remembers bypasses or reservations, and its view holds no "
                    "record of them: a wrapper "
                    "keeps what its new_memory returns and shows it as view.memory "
                    "(docs/how-to/wrap-a-policy.md)"
                )
            tables = memory.for_rows(len(view.columns.submit), self._host_list)
            _forget_holders(queue, np.array(view.requeued, np.int64), tables)
            if self.rules.weights[BYPASS]:
                tables.bypasses[[*view.withdrawn, *view.finished]] = 0.0
                memory.seen = queue.copy(), tables.bypasses[queue]
        if len(queue) == 0:
            return []
        # A reservation that stays is made even if nothing can start.
        tables = tables if self._remembers else self._host_list(len(queue))
        return self._pass_by(view, tables, reserves=self.rules.is_sticky)

    def _counted(self, view: View, free: int) -> list[int]:
        """Make one pass by the number of free processors; return the rows that start, in order."""
        queue, jobs = view.queue, view.window.jobs_of
        end, scan_from = len(queue), 0
        if end == 1:
            rows = queue.tolist()
            return rows if next(jobs(rows)).procs <= free else []
        # If only arrivals happened since, what was passed over before cannot start now.
        if (
            view.only_arrivals
            and self._order == FCFS
            and self._one_pass is not passes.hybrid_pass
            and not view.is_late
        ):
            scan_from = max(end - len(view.arrived), 0)
            if scan_from and (
                self.rules.is_stopping or all(job.procs > free for job in jobs(view.arrived))
            ):
                return []
        columns, started = view.window.long_columns, np.empty(min(end, free), np.int64)
        ends, amounts, running = view.expected_ends()
        count = self._pass_apart(
            self._order,
            self.rules.depth,
            self._space(running + len(started), end),
            view.now,
            free,
            scan_from,
            columns.submit,
            columns.procs,
            columns.estimate,
            queue,
            ends,
            amounts,
            running,
            started,
        )
        return started[:count].tolist() if count else []

    def _pass_by(self, view: View, tables: lists.HostList, *, reserves: bool) -> list[Start]:
        """Make one pass by these tables, and leave its reservations in them; ``reserves``: even if
        nothing can start."""
        resources, queue, columns = view.resources, view.queue, view.window.long_columns
        whole = resources.whole()
        if isinstance(whole, PoolModel) and self._order != SJF_BEHIND:
            started, (ends, amounts, running) = np.empty(len(queue), np.int64), view.expected_ends()
            count = _list_pass_of_pool(
                view.now,
                view.free_procs,
                view.open_procs,
                columns.submit,
                columns.procs,
                columns.estimate,
                columns.asked,
                queue,
                ends,
                amounts,
                running,
                started,
                reserves,
                *tables[:-1],
            )
            return resources.starts(started[:count].tolist(), []) if count else []
        if not (reserves or resources.fits_any(queue)):
            return []
        if self._order != SJF_BEHIND and not (self.follows_tiers and has_tiers(view.machine)):
            started, places, begun = for_starts(whole, len(queue))
            count = _list_pass(
                view.now,
                view.free_procs,
                columns.submit,
                columns.procs,
                columns.estimate,
                columns.asked,
                *whole.requests(),
                queue,
                whole.hosts(),
                whole.parts(),
                started,
                places,
                begun,
                *tables[:-1],
            )
            if count == 0:
                return []
            return whole.starts(started[:count].tolist(), places[:count].tolist(), begun)
        order = self._looked_through(view, tables)
        starts, reserved = self.pass_in(view, order)
        tables.held[:, : len(reserved)] = np.array(reserved, np.int64).reshape(-1, 3).T
        started = np.array([start.row for start in starts], np.int64)
        _note_pass(order, started, len(starts), len(reserved), tables)
        return starts

    def pass_in(self, view: View, order: Int64Array) -> tuple[list[Start], list[Reserved]]:
        """Make one pass over the waiting rows in an order; return the starts and the
        reservations."""
        rules = self.rules
        return view.resources.list_pass(order, rules.depth, is_stopping=rules.is_stopping)

    def in_order(self, view: View) -> Int64Array:
        """Return the waiting rows in the order of the scan, of a coming pass or the one just
        over."""
        return self._looked_through(view, self._tables_afterwards(view))

    def _looked_through(self, view: View, tables: lists.HostList) -> Int64Array:
        queue, behind = view.queue, 0
        if self._order == SJF_BEHIND:
            behind = len(view.resources.list_pass(queue, 0, is_stopping=True)[0]) + 1
        found: Int64Array = _looked_through(view.now, jobs_of(view), queue, behind, tables)
        if not (self.follows_tiers and has_tiers(view.machine)):
            return found
        # Jobs of a higher tier come first, and otherwise the order stays (docs/spec/production.md 2.1).
        known = cache(partial(tier_of, view.machine))
        tiers = [known(view.jobs[row].partitions) for row in found.tolist()]
        return found[np.argsort(-np.array(tiers, np.int64), kind="stable")]

    def _tables_afterwards(self, view: View) -> lists.HostList:
        """Return a copy of the tables without the bypasses that the pass just over has added."""
        if not self._remembers:
            return self._host_list(len(view.queue))
        memory: ListMemory = view.memory
        tables: lists.HostList = with_old(
            self._host_list(max(len(view.columns.submit), memory.rows)), memory.tables
        )
        if memory.seen is not None:
            rows, bypasses = memory.seen
            tables.bypasses[rows] = bypasses
        return tables

    def _as_afterwards(self, view: View) -> tuple[list[Start], list[Reserved]]:
        """Repeat the pass just over, on what it has left."""
        if len(view.queue) == 0:
            return [], []
        tables = self._tables_afterwards(view)
        starts = self._pass_by(view, tables, reserves=True)
        return starts, reserved_in(tables.held, int(tables.holders[lists.KEPT]))

    def reserved_after(self, view: View) -> list[Reserved]:
        """Return the reservations of the pass just over; the next pass makes those that do not stay
        again."""
        return self._as_afterwards(view)[1]

    def explain(self, view: View, row: int) -> Reason:
        """Return why a waiting job did not start in the pass just over."""
        job, resources, rules = view.jobs[row], view.resources, self.rules
        order = self.in_order(view)
        waiting = order.tolist()
        ahead = waiting[: waiting.index(row)]
        if view.machine.spans and job.procs > view.free_procs:
            text = f"needs {job.procs} processors, {view.free_procs} are free"
            return Reason(
                "processors", self.name, text, {"procs": job.procs, "free": view.free_procs}
            )
        starts, reserved = self._as_afterwards(view)
        if any(start.row == row for start in starts):
            return Reason(COULD_START, self.name, "could start now", {})
        if rules.is_stopping and ahead:
            head = view.jobs[ahead[0]]
            text = (
                f"job {head.number} is ahead and needs {head.procs} processors, "
                f"{view.free_procs} are free"
            )
            return Reason(
                "order",
                self.name,
                text,
                {"procs": head.procs, "free": view.free_procs},
                (ahead[0],),
            )
        return resources.hold_up(self.name, job, order, ahead, rules.depth, reserved)
