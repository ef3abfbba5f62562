"""The closed network as a ``decide`` of the event loop: the draws of the source and the queues of
the policy.

It does to the microsecond what the source (:mod:`qbatch.simulation.network`) and the policy
``taskqueues`` do through the engine (docs/spec/papers.md 5.5, rule 2).  Jobs come back by the
loop's timer, so that the loop knows no arrival.  A row of the loop is a *task*: ``job x P + its
index among the tasks of its visit``, used again in each visit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from qbatch.planning.kernels import task_queues
from qbatch.planning.kernels.jit import kernel
from qbatch.planning.kernels.profile import FOREVER
from qbatch.planning.kernels.tables import (
    Instant,
    JobColumns,
    Needs,
    ScheduleTable,
    StateTables,
    record,
)
from qbatch.planning.kernels.types import Float64Array, Int64Array, Record, RecordArray
from qbatch.workloads.kernels import network

NEEDS = Needs(has_queue=False, has_timers=True, reads_ended=True)
"""What :func:`decide` returns and reads."""

RULES = record(
    "processors",
    "routing",
    "discipline",
    "limit",  # of ``LSTF``.
    "is_lowest",  # whether ties go to the first station.
    "window_from",  # the begin of the measured window, microseconds.
    "window_to",  # the end of the measured window.
)
"""The parameters of the simulation."""

NETWORK_COUNTS = record(
    "io_end",  # the end of the job in I/O.
    "io_head",  # the first index of the I/O queue.
    "io_waiting",  # the length of the I/O queue.
    "traced",  # rows of the trace of tasks.
    "visited",  # rows of the trace of visits.
    "back",  # jobs that came back at this instant.
    "done",  # jobs of which the last task ended at this instant.
    "tasks",  # tasks that have ended so far.
)
"""The progress of the network."""

SWITCH = record(
    "following",  # the next change of the distribution.
    "number",  # the number of changes.
    "is_second",  # whether the second one is active.
)
"""Which of two distributions is active."""

PARENT = record(
    "visit",  # the number of the visit.
    "submitted",  # its begin.
    "left",  # tasks that have not ended.
    "width",  # its number of tasks.
    "first_end",  # the end of the first task.
    "longest",  # the longest demand among them.
)
"""A job of the network."""

STATION = record(
    "length",  # tasks that wait or are in service.
    "waiting",  # those that wait.
    "free",  # idle servers.
    "selections",  # selections since the oldest was taken.
)
"""A station."""

MEASURED = record(
    "completed",  # I/O completions.
    "busy",  # busy microseconds of processors.
    "responses",  # parents that ended.
    "response_sum",
    "response_max",
    "slowdown_sum",  # sum of slowdowns: response over the longest demand.
    "spread_sum",  # sum of spreads: last end minus first end.
    kind=np.float64,
)
"""The measures of the window."""

TASK_TRACE = record("job", "visit", "task", "station", "dispatched", "start", "end")
VISIT_TRACE = record("job", "visit", "tasks", "submitted", "ended", "io_begin", "io_end")
"""The trace of a task, and of a visit."""


class NetworkTables(NamedTuple):
    """The memory of a network; N jobs, P processors in S stations.

    ``keys``: three words of 64 bits, of the visits and of the two distributions.  ``rules[1]``,
    ``counts[1]``, ``totals[1]``, ``switches[2]``, ``jobs[N]``, ``stations[S]``: of the records
    above.  ``numbers``, ``cumulative``: of :func:`network.draw_visit`.  ``intervals[2]``: d and e
    (s).  ``tasks[N, P, TASK_COLUMNS]``: of the visits under way. ``servers[S]``: by station.
    ``queues[S, N x P]`` of ``QUEUED_TASK``. ``demand[N x P]``: by task, the run times of the loop.
    ``io[N]``: a ring.  ``back[N]``, ``done[N]``: jobs that came back, and jobs with no task left,
    ascending.  ``trace[?]``, ``visits[?]``: what happened, as far as there is space.
    """

    keys: Any
    rules: RecordArray
    counts: RecordArray
    numbers: Float64Array
    cumulative: Float64Array
    intervals: Float64Array
    switches: RecordArray
    jobs: RecordArray
    tasks: Int64Array
    stations: RecordArray
    servers: Int64Array
    queues: RecordArray
    demand: Int64Array
    io: Int64Array
    back: Int64Array
    done: Int64Array
    totals: RecordArray
    trace: RecordArray
    visits: RecordArray


@kernel
def _insert(rows: Int64Array, count: int, row: int) -> None:
    """Insert a number in order among ``count`` ascending ones."""
    place = count
    while place > 0 and rows[place - 1] > row:
        rows[place] = rows[place - 1]
        place -= 1
    rows[place] = row


@kernel
def _in_window(rules: Record, at: int) -> bool:
    return bool(rules.window_from < at <= rules.window_to)


@kernel
def _end_tasks(
    memory: NetworkTables, station_of: Int64Array, ended: Int64Array, count: int, now: int
) -> None:
    """Count the tasks that end now; note the jobs that have no task left."""
    counts, jobs, stations = memory.counts[0], memory.jobs, memory.stations
    for place in range(count):
        job, station = ended[place] // memory.rules[0].processors, station_of[ended[place]]
        stations[station].length -= 1
        stations[station].free += 1
        counts.tasks += 1
        jobs[job].left -= 1
        if jobs[job].first_end < 0:
            jobs[job].first_end = now
        if jobs[job].left == 0:
            _insert(memory.done, counts.done, job)
            counts.done += 1


@kernel
def _begin_io(memory: NetworkTables, job: int, now: int) -> None:
    service = network.io_time(
        network.visit_key(memory.keys[0], job, memory.jobs[job].visit), memory.numbers
    )
    memory.counts[0].io_end = now + service
    for row in range(memory.counts[0].visited - 1, -1, -1):
        if row < len(memory.visits) and memory.visits[row].job == job:
            memory.visits[row].io_begin, memory.visits[row].io_end = now, now + service
            break


@kernel
def _move_io(memory: NetworkTables, now: int) -> None:
    """Bring back the jobs that finish their I/O, and add those that have no task left to the I/O
    queue."""
    counts, jobs, totals = memory.counts[0], memory.jobs, memory.totals[0]
    count = jobs.shape[0]
    while counts.io_end == now:
        _insert(memory.back, counts.back, memory.io[counts.io_head])
        counts.back += 1
        totals.completed += _in_window(memory.rules[0], now)
        counts.io_head = (counts.io_head + 1) % count
        counts.io_waiting -= 1
        counts.io_end = FOREVER
        if counts.io_waiting > 0:
            _begin_io(memory, memory.io[counts.io_head], now)
    for place in range(counts.done):
        job = memory.done[place]
        _account(memory, job, now)
        memory.io[(counts.io_head + counts.io_waiting) % count] = job
        counts.io_waiting += 1
        if counts.io_waiting == 1:
            _begin_io(memory, job, now)
    counts.done = 0


@kernel
def _account(memory: NetworkTables, job: int, now: int) -> None:
    """Add a completed parent to the measures."""
    counts, jobs, totals = memory.counts[0], memory.jobs, memory.totals[0]
    response = now - jobs[job].submitted
    if _in_window(memory.rules[0], now):
        totals.responses += 1
        totals.response_sum += response
        totals.response_max = max(totals.response_max, response)
        totals.slowdown_sum += response / max(jobs[job].longest, 1)
        totals.spread_sum += now - jobs[job].first_end
    row = counts.visited
    if row < len(memory.visits):
        visit, parent = memory.visits[row], jobs[job]
        visit.job, visit.visit, visit.tasks, visit.submitted = (
            job,
            parent.visit,
            parent.width,
            parent.submitted,
        )
        visit.ended, visit.io_begin, visit.io_end = now, -1, -1
        counts.visited += 1


@kernel
def _switch(memory: NetworkTables, now: int) -> None:
    for which in range(2):
        switch = memory.switches[which]
        while switch.following == now:
            switch.is_second = 1 - switch.is_second
            switch.number += 1
            switch.following = now + network.interval(
                memory.keys[1 + which], memory.intervals[which], switch.number
            )


@kernel
def _dispatch(memory: NetworkTables, job: int, now: int) -> None:
    """Draw the tasks of a job that has come back, and route them one after another."""
    rules, jobs, stations = memory.rules[0], memory.jobs, memory.stations
    jobs[job].visit += 1
    key = network.visit_key(memory.keys[0], job, jobs[job].visit)
    tasks = memory.tasks[job]
    width = network.draw_visit(
        key,
        memory.numbers,
        memory.cumulative,
        memory.switches[0].is_second == 1,
        memory.switches[1].is_second == 1,
        tasks,
    )
    jobs[job].submitted, jobs[job].left, jobs[job].width = now, width, width
    jobs[job].first_end, jobs[job].longest = -1, 0
    for task in range(width):
        drawn = tasks[task, network.DRAW]
        if rules.is_lowest and rules.routing == task_queues.SHORTEST:
            drawn = task_queues.LOWEST
        station = task_queues.routed(rules.routing, drawn, stations["length"], memory.servers)
        number = job * rules.processors + task
        task_queues.append(
            memory.queues[station],
            stations[station].waiting,
            number,
            tasks[task, network.ESTIMATE],
            job,
        )
        stations[station].waiting += 1
        stations[station].length += 1
        memory.demand[number] = tasks[task, network.DEMAND]
        jobs[job].longest = max(jobs[job].longest, memory.demand[number])


@kernel
def _serve(memory: NetworkTables, station_of: Int64Array, started: Int64Array, now: int) -> int:
    """Let each idle processor select a task, in order; return the number of ``started``."""
    rules, counts, stations, count = memory.rules[0], memory.counts[0], memory.stations, 0
    for station in range(stations.shape[0]):
        queue = memory.queues[station]
        while stations[station].free > 0 and stations[station].waiting > 0:
            waiting = stations[station].waiting
            place = task_queues.select(
                rules.discipline,
                rules.limit,
                station,
                queue,
                waiting,
                memory.jobs["left"],
                stations["selections"],
            )
            task = queue[place].task
            task_queues.take_out(queue, waiting, place)
            stations[station].waiting -= 1
            stations[station].free -= 1
            started[count], station_of[task] = task, station
            count += 1
            end = now + memory.demand[task]
            busy = min(end, rules.window_to) - max(now, rules.window_from)
            memory.totals[0].busy += max(busy, 0)
            row = counts.traced
            if row < len(memory.trace):
                trace, job = memory.trace[row], task // rules.processors
                trace.job, trace.visit, trace.task = (
                    job,
                    memory.jobs[job].visit,
                    task % rules.processors,
                )
                trace.station, trace.dispatched = station, memory.jobs[job].submitted
                trace.start, trace.end = now, end
                counts.traced += 1
    return count


@kernel
def decide(
    instant: Instant,
    jobs: JobColumns,
    state: StateTables,
    done: ScheduleTable,
    memory: NetworkTables,
) -> int:
    """Make one round of a closed network: count ended tasks, move the I/O station, route new tasks,
    let stations select."""
    now, counts, switches = instant.now, memory.counts[0], memory.switches
    _end_tasks(memory, done.host, state.ended, instant.ended, now)
    _move_io(memory, now)
    _switch(memory, now)
    for place in range(counts.back):
        _dispatch(memory, memory.back[place], now)
    counts.back = 0
    count = _serve(memory, done.host, state.started, now)
    state.counts[0].timer = min(counts.io_end, switches[0].following, switches[1].following)
    return count
