"""When each waiting job is expected to start: the policy run forward from the present state.

The running jobs end by their estimates, the waiting ones run as long as they ask, nothing else is submitted.  Or all run as
long as is expected of them by other means; the policy goes by the estimates all the same.  Where the policy remembers
nothing, ranks by arrival and processors alone decide, the compiled replay does it; everywhere else the engine itself is
driven on, with the plans and promises that it has, so every policy is forecast by its own code.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from qbatch.engine.engine import Engine
from qbatch.engine.round import Round
from qbatch.model.actions import Resume, Start, Suspend
from qbatch.model.events import Event, Finished, Woken
from qbatch.model.machine import one_host
from qbatch.model.record import Workload
from qbatch.planning.policy import ListLoop, Phased, Policy, loop_of
from qbatch.planning.view import OVERDUE, Run, View
from qbatch.replay.drivers import run

BUDGET = 30.0
"""Seconds for one forecast; a job that has no start by then has none."""

_BY_ESTIMATES: Mapping[int, int] = MappingProxyType({})


class Expected(NamedTuple):
    """When a job is expected to start and to end."""

    start: int
    end: int


def is_quick(engine: Engine, policy: Policy, stopped: frozenset[int]) -> bool:
    """Whether the compiled replay can tell the forecast; it leaves the engine as it is."""
    loop = loop_of(policy, engine.machine)
    is_plain = isinstance(loop, ListLoop) and loop.order == "fcfs" and not loop.is_sticky
    view = engine.view()
    return is_plain and view.space.counts_only and not view.suspended and not stopped


def forecast(
    engine: Engine, policy: Policy, now: int, stopped: frozenset[int] = frozenset(),
    run_times: Mapping[int, int] = _BY_ESTIMATES,
) -> list[tuple[int, int, int]]:
    """Return (row, start, end) of each waiting row that can start; the engine is used up.

    Args:
        engine: a copy of the live one.
        policy: the policy that it has.
        now: the instant from which to go on, in microseconds.
        stopped: rows that hold their hosts and are suspended: they do not end.
        run_times: the run times that are expected, by row, as the engine counts them (:func:`qbatch.daemon.forecast_run_times.
            run_times_in`); of other rows the estimates.
    """
    if is_quick(engine, policy, stopped) and not _are_longer(engine.view(), run_times):
        return _replayed(engine, policy, now, run_times)
    return _driven(engine, now, stopped, run_times)


def _are_longer(view: View, run_times: Mapping[int, int]) -> bool:
    """Whether a running job is expected to run for longer than its estimate, as the engine counts."""
    return any(run_times.get(row, 0) > view.columns.estimate[row] for row in view.running)


def _earlier(view: View, run: Run, run_times: Mapping[int, int]) -> int:
    """Return how much earlier than by its estimate a job that runs ends by what is expected of it; below 0: later."""
    job = view.jobs[run.row]
    return (job.estimate - run_times.get(run.row, job.estimate)) * job.procs // run.procs


def _replayed(engine: Engine, policy: Policy, now: int, run_times: Mapping[int, int]) -> list[tuple[int, int, int]]:
    """The compiled replay: what runs arrives an instant earlier and starts at once, what waits arrives now."""
    view = engine.view()
    running = [
        (view.expected_end(each), _earlier(view, each, run_times), view.open_procs_of(each)) for each in view.running.values()
    ]
    running = [each for each in running if each[-1] > 0]
    queue = np.asarray(view.queue)
    count = len(running)
    rows = count + len(queue)
    ends = np.array([end for end, _, _ in running], np.int64)
    earlier = np.array([each for _, each, _ in running], np.int64)
    zeros = np.zeros(rows, np.int64)
    estimate = np.concatenate([np.maximum(ends - now, 1) + 1, view.columns.estimate[queue]]).astype(np.int64)
    estimates = zip(queue.tolist(), view.columns.estimate[queue].tolist(), strict=True)
    waiting = np.array([run_times.get(row, each) for row, each in estimates], np.int64)
    expected = np.concatenate([np.maximum(ends - earlier - now, 1) + 1, waiting])
    procs = np.concatenate([np.array([each for _, _, each in running], np.int64), view.columns.procs[queue]])
    submit = np.concatenate([np.full(count, now - 1, np.int64), np.full(len(queue), now, np.int64)])
    absent = np.full(rows, -1, np.int64)
    number = np.arange(rows, dtype=np.int64)
    work = Workload(
        "forecast", view.open_procs, number, submit, procs.astype(np.int64), estimate, expected, expected, zeros,
        absent, absent, absent, np.ones(rows, np.bool_), number,
    )  # fmt: skip
    if not rows or view.open_procs < 1:
        return []
    schedule = run(work, one_host(view.open_procs), policy)
    starts, finishes = schedule.start[count:].tolist(), schedule.end[count:].tolist()
    return [(row, start, end) for row, start, end in zip(queue.tolist(), starts, finishes, strict=True) if start >= 0]


def _driven(
    engine: Engine, now: int, stopped: frozenset[int], run_times: Mapping[int, int]
) -> list[tuple[int, int, int]]:
    """The engine, driven by estimates until no job waits or the time is up."""
    deadline = time.monotonic() + BUDGET
    if isinstance(engine.policy, Phased):
        return _driven_through_phases(engine, now, stopped, deadline, run_times)
    ends = _ends(engine, now, stopped, run_times)
    found: dict[int, tuple[int, int]] = {}
    instant = now
    events: list[Event] = [Woken()]
    while time.monotonic() < deadline:
        done = engine.handle(instant, events)
        if not _note(engine, done, found, ends, run_times) or not len(engine.view().queue):
            break
        timer = engine.next_timer()
        candidates = ([ends[0][0]] if ends else []) + ([timer] if timer is not None else [])
        if not candidates:
            break
        instant = max(min(candidates), instant)
        events = []
        while ends and ends[0][0] <= instant:
            events.append(Finished(heapq.heappop(ends)[1]))
        events = events or [Woken()]
    return [(row, start, end) for row, (start, end) in found.items()]


def _ends(
    engine: Engine, now: int, stopped: frozenset[int], run_times: Mapping[int, int]
) -> list[tuple[int, int]]:
    """Return when the running jobs end by the run times that are expected, as a heap."""
    ends: list[tuple[int, int]] = []
    view = engine.view()
    for row, each in view.running.items():
        if row in stopped or is_cut_short(engine, row):
            continue
        end = each.expected_end - _earlier(view, each, run_times)
        heapq.heappush(ends, (end if end > now else now + OVERDUE, row))
    return ends


def _driven_through_phases(
    engine: Engine, now: int, stopped: frozenset[int], deadline: float, run_times: Mapping[int, int]
) -> list[tuple[int, int, int]]:
    """The engine under a policy that divides the time: a suspended job goes on later, and ends then."""
    ends = {row: end for end, row in _ends(engine, now, stopped, run_times)}
    waiting = set(engine.view().queue.tolist())
    starts: dict[int, int] = {}
    found: list[tuple[int, int, int]] = []
    instant = now
    events: list[Event] = [Woken()]
    while waiting and time.monotonic() < deadline:
        done = engine.handle(instant, events)
        view = engine.view()
        running = view.running
        for action in done.actions:
            if isinstance(action, Suspend):
                ends.pop(action.row, None)
            elif isinstance(action, Start | Resume) and action.row not in stopped:
                end = running[action.row].expected_end - _earlier(view, running[action.row], run_times)
                ends[action.row] = end if end > instant else instant + (OVERDUE if isinstance(action, Resume) else 0)
                if isinstance(action, Start):
                    starts[action.row] = instant
        candidates = [*ends.values()]
        timer = engine.next_timer()
        if timer is not None:
            candidates.append(timer)
        if not candidates:
            break
        instant = max(min(candidates), instant)
        finished = [row for row, end in ends.items() if end <= instant]
        for row in finished:
            del ends[row]
            if row in waiting:
                waiting.remove(row)
                found.append((row, starts[row], instant))
        events = [*map(Finished, finished)] or [Woken()]
    return found + [(row, starts[row], ends.get(row, instant)) for row in sorted(waiting & starts.keys())]


def is_cut_short(engine: Engine, row: int) -> bool:
    """Tell whether a row runs a trial that its quantum ends before its estimate: it will start once more."""
    view = engine.view()
    run = view.running[row]
    return engine.is_trial(row) and run.expected_end < run.since + view.jobs[row].estimate


def _note(
    engine: Engine, done: Round, found: dict[int, tuple[int, int]], ends: list[tuple[int, int]], run_times: Mapping[int, int]
) -> bool:
    """Note what started; tell whether to go on (a policy that suspends has no forecast beyond its first suspension)."""
    for action in done.actions:
        if isinstance(action, Suspend):
            return False
        if isinstance(action, Start):
            if is_cut_short(engine, action.row):
                continue
            view = engine.view()
            run = view.running[action.row]
            end = run.expected_end - _earlier(view, run, run_times)
            found[action.row] = (done.at, end)
            heapq.heappush(ends, (end, action.row))
    return not done.stopped
