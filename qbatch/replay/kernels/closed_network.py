"""The closed network as a ``decide`` of the event loop: the draws of the source and the queues of the policy.

It does to the microsecond what the source (:mod:`qbatch.replay.network`) and the policy ``taskqueues`` do through the engine;
routing and selection are the same kernels.  The order of one instant is papers.md 5.5, rule 2.  Jobs come back by the loop's
timer, so that no arrival is known to the loop.

A row of the loop is a *task*: ``job x P + its place among the tasks of its visit``, used again in each visit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from qbatch.planning.kernels import task_queues
from qbatch.planning.kernels.jit import kernel
from qbatch.planning.kernels.profile import FOREVER
from qbatch.planning.kernels.tables import Instant, JobColumns, Needs, ScheduleTable, StateTables
from qbatch.planning.kernels.types import Float64Array, Int64Array
from qbatch.workloads.kernels import network

NEEDS = Needs(has_queue=False, has_timers=True, reads_ended=True)
"""What :func:`decide` gives and reads."""

PROCESSORS, ROUTING, DISCIPLINE, LIMIT, IS_LOWEST, WINDOW_FROM, WINDOW_TO = range(7)
"""Places in ``rules``; ``LIMIT`` of ``LSTF``; whether ties go to the first station; the window in microseconds."""

IO_END, IO_HEAD, IO_WAITING, TRACED, VISITED, BACK, DONE, TASKS, COUNTS = range(9)
"""Places in ``counts``: the end of the job in I/O, the first of its queue and how many it holds, rows of the two traces, jobs
that came back and that ended at this instant, tasks that have ended in all."""

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


class NetworkTables(NamedTuple):
    """All that a network keeps; N jobs, P processors in S stations.

    ``keys``: three words of 64 bits, of the visits and of the two distributions.  ``rules``, ``counts``: above.  ``numbers``,
    ``cumulative``: of :func:`network.draw_visit`.  ``intervals[2]``: d and e (s).  ``switches[2, SWITCH_COLUMNS]``.
    ``jobs[JOB_ROWS, N]``.  ``tasks[N, P, TASK_COLUMNS]``: of the visits under way.  ``stations[STATION_ROWS, S]``.
    ``servers[S]``: how many each has.  ``queues[S, N x P, COLUMNS]``.
    ``demand[N x P]``: by task, the run times of the loop.  ``io[N]``: a ring.  ``back[N]``, ``done[N]``: jobs that came back, and
    whose last task has ended, ascending.
    ``totals``: above.  ``trace[?, TRACE_COLUMNS]``, ``visits[?, VISIT_COLUMNS]``: what happened, as far as there is room.
    """

    keys: Any
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
    demand: Int64Array
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
def _end_tasks(memory: NetworkTables, station_of: Int64Array, ended: Int64Array, count: int, now: int) -> None:
    """Count the tasks that end now; note the jobs of which one was the last."""
    counts, jobs, stations = memory.counts, memory.jobs, memory.stations
    for place in range(count):
        job, station = ended[place] // memory.rules[PROCESSORS], station_of[ended[place]]
        stations[LENGTH, station] -= 1
        stations[FREE, station] += 1
        counts[TASKS] += 1
        jobs[LEFT, job] -= 1
        if jobs[FIRST_END, job] < 0:
            jobs[FIRST_END, job] = now
        if jobs[LEFT, job] == 0:
            _insert(memory.done, counts[DONE], job)
            counts[DONE] += 1


@kernel
def _begin_io(memory: NetworkTables, job: int, now: int) -> None:
    service = network.io_time(network.visit_key(memory.keys[0], job, memory.jobs[VISIT, job]), memory.numbers)
    memory.counts[IO_END] = now + service
    for row in range(memory.counts[VISITED] - 1, -1, -1):
        if row < len(memory.visits) and memory.visits[row, 0] == job:
            memory.visits[row, 5], memory.visits[row, 6] = now, now + service
            break


@kernel
def _move_io(memory: NetworkTables, now: int) -> None:
    """Let the jobs come back whose I/O ends, and let those join whose last task has ended."""
    counts, jobs, totals = memory.counts, memory.jobs, memory.totals
    count = jobs.shape[1]
    while counts[IO_END] == now:
        _insert(memory.back, counts[BACK], memory.io[counts[IO_HEAD]])
        counts[BACK] += 1
        totals[COMPLETED] += _in_window(memory.rules, now)
        counts[IO_HEAD] = (counts[IO_HEAD] + 1) % count
        counts[IO_WAITING] -= 1
        counts[IO_END] = FOREVER
        if counts[IO_WAITING] > 0:
            _begin_io(memory, memory.io[counts[IO_HEAD]], now)
    for place in range(counts[DONE]):
        job = memory.done[place]
        _account(memory, job, now)
        memory.io[(counts[IO_HEAD] + counts[IO_WAITING]) % count] = job
        counts[IO_WAITING] += 1
        if counts[IO_WAITING] == 1:
            _begin_io(memory, job, now)
    counts[DONE] = 0


@kernel
def _account(memory: NetworkTables, job: int, now: int) -> None:
    """Enter a parent whose last task has ended into the measures."""
    counts, jobs, totals = memory.counts, memory.jobs, memory.totals
    response = now - jobs[SUBMITTED, job]
    if _in_window(memory.rules, now):
        totals[RESPONSES] += 1
        totals[RESPONSE_SUM] += response
        totals[RESPONSE_MAX] = max(totals[RESPONSE_MAX], response)
        totals[SLOWDOWN_SUM] += response / max(jobs[LONGEST, job], 1)
        totals[SPREAD_SUM] += now - jobs[FIRST_END, job]
    row = counts[VISITED]
    if row < len(memory.visits):
        visits = memory.visits
        visits[row, 0], visits[row, 1], visits[row, 2] = job, jobs[VISIT, job], jobs[WIDTH, job]
        visits[row, 3], visits[row, 4], visits[row, 5], visits[row, 6] = jobs[SUBMITTED, job], now, -1, -1
        counts[VISITED] += 1


@kernel
def _switch(memory: NetworkTables, now: int) -> None:
    for which in range(2):
        switches = memory.switches[which]
        while switches[NEXT] == now:
            switches[IS_SECOND] = 1 - switches[IS_SECOND]
            switches[NUMBER] += 1
            switches[NEXT] = now + network.interval(memory.keys[1 + which], memory.intervals[which], switches[NUMBER])


@kernel
def _dispatch(memory: NetworkTables, job: int, now: int) -> None:
    """Draw the tasks of a job that has come back, and route them one after another."""
    rules, jobs, stations = memory.rules, memory.jobs, memory.stations
    jobs[VISIT, job] += 1
    key = network.visit_key(memory.keys[0], job, jobs[VISIT, job])
    tasks = memory.tasks[job]
    width = network.draw_visit(
        key, memory.numbers, memory.cumulative, memory.switches[0, IS_SECOND] == 1, memory.switches[1, IS_SECOND] == 1, tasks
    )
    jobs[SUBMITTED, job], jobs[LEFT, job], jobs[WIDTH, job] = now, width, width
    jobs[FIRST_END, job], jobs[LONGEST, job] = -1, 0
    for task in range(width):
        drawn = tasks[task, network.DRAW]
        if rules[IS_LOWEST] and rules[ROUTING] == task_queues.SHORTEST:
            drawn = task_queues.LOWEST
        station = task_queues.routed(rules[ROUTING], drawn, stations[LENGTH], memory.servers)
        number = job * rules[PROCESSORS] + task
        task_queues.append(
            memory.queues[station], stations[WAITING, station], number, tasks[task, network.ESTIMATE], job
        )
        stations[WAITING, station] += 1
        stations[LENGTH, station] += 1
        memory.demand[number] = tasks[task, network.DEMAND]
        jobs[LONGEST, job] = max(jobs[LONGEST, job], memory.demand[number])


@kernel
def _serve(memory: NetworkTables, station_of: Int64Array, started: Int64Array, now: int) -> int:
    """Let each idle processor select a task, in order; return how many ``started``."""
    rules, counts, stations, count = memory.rules, memory.counts, memory.stations, 0
    for station in range(stations.shape[1]):
        queue = memory.queues[station]
        while stations[FREE, station] > 0 and stations[WAITING, station] > 0:
            waiting = stations[WAITING, station]
            place = task_queues.select(
                rules[DISCIPLINE], rules[LIMIT], station, queue, waiting, memory.jobs[LEFT], stations[SELECTIONS]
            )
            task = queue[place, task_queues.TASK]
            task_queues.take_out(queue, waiting, place)
            stations[WAITING, station] -= 1
            stations[FREE, station] -= 1
            started[count], station_of[task] = task, station
            count += 1
            end = now + memory.demand[task]
            busy = min(end, rules[WINDOW_TO]) - max(now, rules[WINDOW_FROM])
            memory.totals[BUSY] += max(busy, 0)
            row = counts[TRACED]
            if row < len(memory.trace):
                trace, job = memory.trace, task // rules[PROCESSORS]
                trace[row, 0], trace[row, 1], trace[row, 2] = job, memory.jobs[VISIT, job], task % rules[PROCESSORS]
                trace[row, 3], trace[row, 4], trace[row, 5] = station, memory.jobs[SUBMITTED, job], now
                trace[row, 6] = end
                counts[TRACED] += 1
    return count


@kernel
def decide(
    instant: Instant, jobs: JobColumns, state: StateTables, done: ScheduleTable, memory: NetworkTables
) -> int:  # fmt: skip
    """Make one round of a closed network: count what ended, move the I/O station, route what comes back, let stations select."""
    now, counts, switches = instant.now, memory.counts, memory.switches
    _end_tasks(memory, done.host, state.ended, instant.ended, now)
    _move_io(memory, now)
    _switch(memory, now)
    for place in range(counts[BACK]):
        _dispatch(memory, memory.back[place], now)
    counts[BACK] = 0
    count = _serve(memory, done.host, state.started, now)
    state.counts[0].timer = min(counts[IO_END], switches[0, NEXT], switches[1, NEXT])
    return count
