"""FCFS, EASY and the depth-K hybrid on a chunked machine: the same scans, with reservations made on hosts.

First fit is not monotone: once somebody has started, a job that was passed over may fit elsewhere.  So a backfill scan
that started somebody is made again, as if those had been running, until one starts nobody.  (With one host
the second scan never finds anybody.)
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from qbatch.model.actions import Chunk, Start
from qbatch.planning.grid import HostGrid, hosts_now
from qbatch.planning.kernels import chunks, plan
from qbatch.planning.kernels.live import live
from qbatch.planning.kernels.profile import FOREVER
from qbatch.planning.kernels.types import Int64Array
from qbatch.planning.parts import open_parts
from qbatch.planning.view import View

_start_in_order = live(chunks.start_in_order)
_backfill = live(chunks.backfill)
_booked = live(plan.booked)


def kernel_pass(view: View, waiting: Int64Array, *, is_easy: bool) -> tuple[list[Start], int]:
    """Make one pass of FCFS or EASY; return the starts, and the shadow time (``FOREVER`` if nobody is held up)."""
    assert view.shapes is not None
    hosts, space = hosts_now(view), view.free_procs
    going, running = open_parts(view)
    begun = np.empty((4, space), np.int64)
    taken, facts = np.empty((2, hosts.shape[1]), np.int64), np.array([0, FOREVER], np.int64)
    estimate = view.columns.estimate
    starts: dict[int, list[Chunk]] = {}
    while True:
        # Always arrays of the same kinds, so that each kernel compiles once.
        pieces = np.ascontiguousarray(np.concatenate([going, begun], axis=1))
        waiting = waiting.view()
        waiting.flags.writeable = False
        common = (view.now, waiting, estimate, *view.shapes, hosts)
        if not is_easy:
            count = _start_in_order(*common, taken, pieces, running, begun, facts)
        else:
            learned = np.full((2, len(view.shapes.heads)), -1, np.int64)
            scratch = (hosts.copy(), taken, taken.copy())
            count = _backfill(*common, *scratch, pieces, running, begun, learned, facts)
        for row, host, procs, memory in begun[:, :count].T.tolist():
            starts.setdefault(row, []).append(Chunk(host, procs, memory))
        if count == 0 or not is_easy:
            return [Start(row, tuple(parts)) for row, parts in starts.items()], int(facts[1])
        # Again, as if what began had been running: a start can push a later placement to hosts where it hurts nobody.
        fresh = begun[:, :count].copy()
        waiting = waiting[~np.isin(waiting, fresh[chunks.ROW])]
        fresh[chunks.END] = view.now + estimate[fresh[chunks.ROW]]
        going = np.concatenate([going, fresh], axis=1)
        going = going[:, np.argsort(going[chunks.END], kind="stable")]
        running += count


def grid_pass(view: View, waiting: Int64Array, depth: int) -> Iterator[Start]:
    """Make one pass that gives the first ``depth`` jobs that cannot start a reservation each."""
    begun: list[Start] = []
    while True:
        fresh = list(_grid_scan(view, waiting, depth, begun))
        if not fresh:
            return iter(begun)
        begun += fresh
        waiting = waiting[~np.isin(waiting, [start.row for start in fresh])]


def _grid_scan(view: View, waiting: Int64Array, depth: int, begun: list[Start]) -> Iterator[Start]:
    assert view.shapes is not None
    grid, heads = HostGrid(view), view.shapes.heads
    estimate = view.columns.estimate
    for start in begun:
        grid.begin(start.allocation, view.now + int(estimate[start.row]))
    reserved = 0
    rows = waiting
    place = 0
    while place < len(rows):
        row = int(rows[place])
        place += 1
        allocation = grid.start_now(row, view.now + int(estimate[row]))
        if allocation:
            yield Start(row, allocation)
        elif reserved < depth:
            duration = _booked(int(estimate[row]))
            at, allocation = grid.earliest(row, duration)
            grid.book(allocation, at, at + duration, -1)
            reserved += 1
        else:
            continue
        if reserved >= depth:
            # Who cannot start any more by numbers alone needs no look.
            rest = rows[place:]
            asked = heads[view.shapes.of[rest]]
            free = grid.now_free[0]
            rows = rest[(asked[:, chunks.TOTAL] <= free.sum()) & (asked[:, chunks.LARGEST] <= free.max())]
            place = 0
