"""The closed network as one compiled loop: the draws of the source and the queues of the policy, with a calendar between them.

It does to the microsecond what the source (:mod:`qbatch.replay.network`) and the policy ``taskqueues`` do through the engine;
routing and selection are the same kernels.  The order of one instant is papers.md 5.5, rule 2; what comes back or ends at
the instant at which it began does so in another round of the same instant (design.md, "The meaning of one instant").

A *task* is numbered ``job x P + its place among the tasks of its visit``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from qbatch.planning.kernels import task_queues
from qbatch.planning.kernels.jit import kernel
from qbatch.planning.kernels.types import Float64Array, Int64Array
from qbatch.workloads.kernels import network

NEVER = 1 << 62
"""No event is as late."""

PROCESSORS, SERVERS, ROUTING, DISCIPLINE, LIMIT, IS_LOWEST, WINDOW_FROM, WINDOW_TO, IS_FIXED_TASKS, IS_FIXED_DEMAND = range(10)
"""Places in ``rules``; the window in microseconds; ``LIMIT`` of ``LSTF``; whether ties go to the first station; whether the
distributions never change."""

NOW, IO_END, IO_HEAD, IO_WAITING, TRACED, VISITED, BACK, DONE, TASKS, IS_BEGUN = range(10)
"""Places in ``counts``: the instant, the end of the job in I/O, the first of its queue and how many it holds, rows of the two
traces, jobs that came back and that ended at this instant, tasks that have ended in all."""

NEXT, NUMBER, IS_SECOND, SWITCH_COLUMNS = range(4)
"""Columns of ``switches``: when the distribution changes next, how often it has, whether the second one is in force."""

VISIT, SUBMITTED, LEFT, WIDTH, FIRST_END, LONGEST, JOB_ROWS = range(7)
"""Rows of ``jobs``: number of the visit, when it began, tasks that have not ended, tasks in all, when the first one ended, and
the longest demand among them."""

LENGTH, WAITING, FREE, SELECTIONS, STATION_ROWS = range(5)
"""Rows of ``stations``: tasks that wait and are in service, those that wait, idle servers, selections since the oldest."""

COMPLETED, BUSY, RESPONSES, RESPONSE_SUM, RESPONSE_MAX, SLOWDOWN_SUM, SPREAD_SUM, TOTALS = range(8)
"""Places in ``totals``, of the window: I/O completions, busy microseconds of processors, parents that ended, their responses,
the greatest of them, their slowdowns (response over the longest demand) and spreads (last end less first)."""

TRACE_COLUMNS, VISIT_COLUMNS = 7, 7
"""Columns of the traces: job, visit, task, station, dispatched, start, end; and job, visit, tasks, submitted, ended, begin and
end of the I/O."""


class NetworkState(NamedTuple):
    """All that a network keeps; N jobs, P processors in S stations.

    ``rules``, ``counts``: above.  ``numbers``, ``cumulative``: of :func:`network.draw_visit`.  ``intervals[2]``: d and e (s).
    ``switches[2, SWITCH_COLUMNS]``.  ``jobs[JOB_ROWS, N]``.  ``tasks[N, P, TASK_COLUMNS]``: of the visits under way.
    ``stations[STATION_ROWS, S]``.  ``servers[S]``: how many each has.  ``queues[S, N x P, COLUMNS]``.
    ``ends[P]``, ``serving[P]``: when each processor ends its task, and which.  ``io[N]``: a ring.  ``back[N]``, ``done[N]``.
    ``totals``: above.  ``trace[?, TRACE_COLUMNS]``, ``visits[?, VISIT_COLUMNS]``: what happened, as far as there is room.
    """

    rules: Int64Array
    counts: Int64Array
    numbers: Float64Array
    cumulative: Float64Array
    intervals: Float64Array
    switches: Int64Array
    jobs: Int64Array
    tasks: Int64Array
    stations: Int64Array
    servers: Int64Array
    queues: Int64Array
    ends: Int64Array
    serving: Int64Array
    io: Int64Array
    back: Int64Array
    done: Int64Array
    totals: Float64Array
    trace: Int64Array
    visits: Int64Array


@kernel
def _insert(rows: Int64Array, count: int, row: int) -> None:
    """Put a number where it belongs among ``count`` ascending ones."""
    place = count
    while place > 0 and rows[place - 1] > row:
        rows[place] = rows[place - 1]
        place -= 1
    rows[place] = row


@kernel
def _in_window(rules: Int64Array, at: int) -> bool:
    return bool(rules[WINDOW_FROM] < at <= rules[WINDOW_TO])


@kernel
def _end_tasks(state: NetworkState, now: int) -> None:
    """End the tasks whose time has come; note the jobs of which one was the last."""
    counts, jobs, stations = state.counts, state.jobs, state.stations
    processors, servers = state.rules[PROCESSORS], state.rules[SERVERS]
    for processor in range(processors):
        if state.ends[processor] != now:
            continue
        state.ends[processor] = NEVER
        job, station = state.serving[processor] // processors, processor // servers
        stations[LENGTH, station] -= 1
        stations[FREE, station] += 1
        counts[TASKS] += 1
        jobs[LEFT, job] -= 1
        if jobs[FIRST_END, job] < 0:
            jobs[FIRST_END, job] = now
        if jobs[LEFT, job] == 0:
            _insert(state.done, counts[DONE], job)
            counts[DONE] += 1


@kernel
def _begin_io(state: NetworkState, keys: Any, job: int, now: int) -> None:
    service = network.io_time(network.visit_key(keys[0], job, state.jobs[VISIT, job]), state.numbers)
    state.counts[IO_END] = now + service
    for row in range(state.counts[VISITED] - 1, -1, -1):
        if row < len(state.visits) and state.visits[row, 0] == job:
            state.visits[row, 5], state.visits[row, 6] = now, now + service
            break


@kernel
def _move_io(state: NetworkState, keys: Any, now: int) -> None:
    """Let the jobs come back whose I/O ends, and let those join whose last task has ended."""
    counts, jobs, totals = state.counts, state.jobs, state.totals
    count = jobs.shape[1]
    while counts[IO_END] == now:
        _insert(state.back, counts[BACK], state.io[counts[IO_HEAD]])
        counts[BACK] += 1
        totals[COMPLETED] += _in_window(state.rules, now)
        counts[IO_HEAD] = (counts[IO_HEAD] + 1) % count
        counts[IO_WAITING] -= 1
        counts[IO_END] = NEVER
        if counts[IO_WAITING] > 0:
            _begin_io(state, keys, state.io[counts[IO_HEAD]], now)
    for place in range(counts[DONE]):
        job = state.done[place]
        _account(state, job, now)
        state.io[(counts[IO_HEAD] + counts[IO_WAITING]) % count] = job
        counts[IO_WAITING] += 1
        if counts[IO_WAITING] == 1:
            _begin_io(state, keys, job, now)
    counts[DONE] = 0


@kernel
def _account(state: NetworkState, job: int, now: int) -> None:
    """Enter a parent whose last task has ended into the measures."""
    counts, jobs, totals = state.counts, state.jobs, state.totals
    response = now - jobs[SUBMITTED, job]
    if _in_window(state.rules, now):
        totals[RESPONSES] += 1
        totals[RESPONSE_SUM] += response
        totals[RESPONSE_MAX] = max(totals[RESPONSE_MAX], response)
        totals[SLOWDOWN_SUM] += response / max(jobs[LONGEST, job], 1)
        totals[SPREAD_SUM] += now - jobs[FIRST_END, job]
    row = counts[VISITED]
    if row < len(state.visits):
        visits = state.visits
        visits[row, 0], visits[row, 1], visits[row, 2] = job, jobs[VISIT, job], jobs[WIDTH, job]
        visits[row, 3], visits[row, 4], visits[row, 5], visits[row, 6] = jobs[SUBMITTED, job], now, -1, -1
        counts[VISITED] += 1


@kernel
def _switch(state: NetworkState, keys: Any, now: int) -> None:
    for which in range(2):
        switches = state.switches[which]
        while switches[NEXT] == now:
            switches[IS_SECOND] = 1 - switches[IS_SECOND]
            switches[NUMBER] += 1
            switches[NEXT] = now + network.interval(keys[1 + which], state.intervals[which], switches[NUMBER])


@kernel
def _dispatch(state: NetworkState, keys: Any, job: int, now: int) -> None:
    """Draw the tasks of a job that has come back, and route them one after another."""
    rules, jobs, stations = state.rules, state.jobs, state.stations
    jobs[VISIT, job] += 1
    key = network.visit_key(keys[0], job, jobs[VISIT, job])
    tasks = state.tasks[job]
    width = network.draw_visit(
        key, state.numbers, state.cumulative, state.switches[0, IS_SECOND] == 1, state.switches[1, IS_SECOND] == 1, tasks
    )
    jobs[SUBMITTED, job], jobs[LEFT, job], jobs[WIDTH, job] = now, width, width
    jobs[FIRST_END, job], jobs[LONGEST, job] = -1, 0
    for task in range(width):
        drawn = tasks[task, network.DRAW]
        if rules[IS_LOWEST] and rules[ROUTING] == task_queues.SHORTEST:
            drawn = task_queues.LOWEST
        station = task_queues.routed(rules[ROUTING], drawn, stations[LENGTH], state.servers)
        number = job * rules[PROCESSORS] + task
        task_queues.append(
            state.queues[station], stations[WAITING, station], number, tasks[task, network.ESTIMATE], job
        )
        stations[WAITING, station] += 1
        stations[LENGTH, station] += 1
        jobs[LONGEST, job] = max(jobs[LONGEST, job], tasks[task, network.DEMAND])


@kernel
def _serve(state: NetworkState, now: int) -> None:
    """Let each idle processor select a task, in order."""
    rules, counts, stations = state.rules, state.counts, state.stations
    processors, servers = rules[PROCESSORS], rules[SERVERS]
    for processor in range(processors):
        station = processor // servers
        waiting = stations[WAITING, station]
        if waiting == 0 or state.ends[processor] != NEVER:
            continue
        queue = state.queues[station]
        place = task_queues.select(
            rules[DISCIPLINE], rules[LIMIT], station, queue, waiting, state.jobs[LEFT], stations[SELECTIONS]
        )
        task = queue[place, task_queues.TASK]
        task_queues.take_out(queue, waiting, place)
        stations[WAITING, station] -= 1
        stations[FREE, station] -= 1
        job, number = task // processors, task % processors
        end = now + state.tasks[job, number, network.DEMAND]
        state.ends[processor], state.serving[processor] = end, task
        busy = min(end, rules[WINDOW_TO]) - max(now, rules[WINDOW_FROM])
        state.totals[BUSY] += max(busy, 0)
        row = counts[TRACED]
        if row < len(state.trace):
            trace = state.trace
            trace[row, 0], trace[row, 1], trace[row, 2] = job, state.jobs[VISIT, job], number
            trace[row, 3], trace[row, 4], trace[row, 5] = station, state.jobs[SUBMITTED, job], now
            trace[row, 6] = end
            counts[TRACED] += 1


@kernel
def run_network(state: NetworkState, keys: Any, until: int) -> None:
    """Run a network up to and including an instant in microseconds; it can be gone on with.

    ``keys``: three words of 64 bits, of the visits and of the two distributions.
    """
    counts = state.counts
    if counts[IS_BEGUN] == 0:
        counts[IS_BEGUN], counts[IO_END] = 1, NEVER
        for which in range(2):
            is_fixed = state.rules[IS_FIXED_TASKS + which] == 1
            first = network.interval(keys[1 + which], state.intervals[which], 0)
            state.switches[which, NEXT] = NEVER if is_fixed else first
        for job in range(state.jobs.shape[1]):
            state.back[job] = job
        counts[BACK] = state.jobs.shape[1]
    while True:
        now = counts[NOW]
        if counts[BACK] == 0:
            now = min(counts[IO_END], min(state.switches[0, NEXT], state.switches[1, NEXT]))
            for end in state.ends:
                now = min(now, end)
            if now > until:
                return
            counts[NOW] = now
        _end_tasks(state, now)
        _move_io(state, keys, now)
        _switch(state, keys, now)
        for place in range(counts[BACK]):
            _dispatch(state, keys, state.back[place], now)
        counts[BACK] = 0
        _serve(state, now)
