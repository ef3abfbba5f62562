"""An agent from outside chooses which waiting job starts next: the steps of its pass, what it is
shown, and the ``decide`` that makes the pass in the compiled loop.

A pass is a sequence of steps: the agent is asked, and the job that it chose is tried behind those
that it chose before.  The pass is over when a chosen job does not fit, or when no job is chosen.
:func:`next_step` decides on the steps.  :func:`decide` carries them out in a replay, and
``AgentPolicy`` of :mod:`qbatch.library.gym` on a view.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from qbatch.planning.kernels.jit import allocating_kernel, kernel
from qbatch.planning.kernels.lists import start_in_order
from qbatch.planning.kernels.tables import (
    CPUS,
    FREE,
    NO_JOB,
    OF_ROW,
    PROCS,
    THERE,
    Instant,
    JobColumns,
    ScheduleTable,
    StateTables,
    record,
)
from qbatch.planning.kernels.types import Float32Array, Int64Array, RecordArray

FEATURES = ("is_there", "wait", "estimate", "procs", "fits")
"""The numbers shown for a waiting job, each from 0 to 1.  They are: whether there is one; its wait
w as w / (w + 1 h), its estimate likewise; its processors as a share of the machine; whether so many
are free."""

GENERAL = 2
"""Numbers that are shown of the whole: free processors as a share of the machine, and q / (q + 32)
for q waiting jobs."""

ASK, TRY, BACKFILL, OVER = 1, 2, 3, 0
"""Steps of a pass.  ``ASK``: ask the agent.  ``TRY``: make a pass over the chosen jobs
(:func:`scan_order`), without reservations.  ``BACKFILL``: make one over all waiting jobs, with a
reservation for the first that cannot start.  ``OVER``: nothing more."""

AGENT = record(
    "step",  # The last step.
    "choice",  # The place of a job among those shown; a place without a job chooses none.
    "row",  # The chosen job, which starts as soon as it fits; -1 for none.
    "backfills",  # Whether other jobs may start meanwhile that do not delay it.
    "starts",  # How many jobs start in this pass so far.
)

HOUR = 3_600_000_000.0


class AgentTables(NamedTuple):
    """``agent[1]``: of ``AGENT``.  ``shown[jobs * 5 + 2]``: the observation."""

    agent: RecordArray
    shown: Float32Array


@kernel
def decide(
    instant: Instant, jobs: JobColumns, state: StateTables, done: ScheduleTable, memory: AgentTables
) -> int:
    """Go through the steps of a pass; where the agent is to choose, stop the loop (``counts.until``
    is then before ``counts.now``) and go on with its choice when the loop goes on.

    No job starts before the pass is over, so that no job of no length ends between two choices.
    """
    agent, counts, started = memory.agent[0], state.counts[0], state.started
    rows = state.waiting[instant.head : instant.tail]
    if agent.step == OVER:
        agent.starts = 0
    while True:
        begun = started[: agent.starts]
        free, widest = left_by(begun, jobs, state)
        there = state.hosts[THERE, CPUS].sum()
        is_idle = instant.parts == 0
        step = next_step(instant.now, rows, begun, jobs, widest, free, there, is_idle, memory)
        if step == OVER:
            return int(agent.starts)
        if step == ASK:
            counts.timer, counts.until = instant.now, instant.now - 1
            return 0
        order = scan_order(rows, begun, memory)
        agent.starts = start_in_order(instant, jobs, state, order, 1 if step == BACKFILL else 0)


@kernel
def left_by(begun: Int64Array, jobs: JobColumns, state: StateTables) -> tuple[int, int]:
    """Return the processors that the starts of a pass leave free, on all hosts, and for one job at
    most."""
    all_free, widest, spans = 0, 0, jobs.requests.of.shape[0] > 0
    for host in range(state.hosts.shape[2]):
        free = state.hosts[FREE, CPUS, host]
        for place in range(begun.shape[0]):
            if state.places[place] == host:
                free -= jobs.procs[begun[place]]
        all_free += free
        widest = max(widest, free)
    if spans and begun.shape[0] > 0:
        part = 0
        while state.begun[OF_ROW, part] != NO_JOB:
            all_free -= state.begun[PROCS, part]
            part += 1
    return all_free, all_free if spans else widest


@kernel
def next_step(
    now: int,
    rows: Int64Array,
    begun: Int64Array,
    jobs: JobColumns,
    widest: int,
    free: int,
    there: int,
    is_idle: bool,
    memory: AgentTables,
) -> int:
    """Return the next step of a pass over waiting rows, of which ``begun`` start in it so far.

    ``widest``, ``free``, ``there``: as for :func:`show`, after these starts.  ``is_idle``: no job
    runs.
    """
    agent, shown = memory.agent[0], memory.shown
    last, left = agent.step, rows.shape[0] - begun.shape[0]
    agent.step = OVER
    if last == ASK:
        place = agent.choice
        if place < 0 or place >= min(left, places_in(shown)):
            if not is_idle or begun.shape[0] > 0:
                return OVER
            place = 0  # nothing runs: without a start nothing would ever happen
        agent.row = still_waiting(rows, begun, place + 1)[place]
    elif last != OVER:
        for row in begun:
            if row == agent.row:
                agent.row = NO_JOB
        if last == BACKFILL:
            return OVER
        if agent.row != NO_JOB:
            agent.step = BACKFILL if agent.backfills != 0 else OVER
            return int(agent.step)
    if agent.row != NO_JOB:
        agent.step = TRY
    elif left > 0:
        offered = still_waiting(rows, begun, places_in(shown))
        show(now, offered, left, jobs, widest, free, there, shown)
        agent.step = ASK
    return int(agent.step)


@kernel
def places_in(shown: Float32Array) -> int:
    """Return how many jobs an observation shows."""
    return int((shown.shape[0] - GENERAL) // len(FEATURES))


@allocating_kernel
def still_waiting(rows: Int64Array, begun: Int64Array, most: int) -> Int64Array:
    """Return the first rows that do not start in this pass, ``most`` at most."""
    found, count = np.empty(min(most, rows.shape[0]), np.int64), 0
    for row in rows:
        if count == found.shape[0]:
            break
        is_left = True
        for other in begun:
            is_left = is_left and other != row
        if is_left:
            found[count] = row
            count += 1
    return found[:count]


@allocating_kernel
def scan_order(rows: Int64Array, begun: Int64Array, memory: AgentTables) -> Int64Array:
    """Return the rows of the pass that a step makes: those that start, the chosen one, and for
    ``BACKFILL`` all others."""
    agent, count = memory.agent[0], begun.shape[0] + 1
    order = np.empty(rows.shape[0] if agent.step == BACKFILL else count, np.int64)
    order[: count - 1], order[count - 1] = begun, agent.row
    if agent.step == BACKFILL:
        for row in still_waiting(rows, begun, rows.shape[0]):
            if row != agent.row:
                order[count] = row
                count += 1
    return order


@kernel
def show(
    now: int,
    rows: Int64Array,
    left: int,
    jobs: JobColumns,
    widest: int,
    free: int,
    there: int,
    shown: Float32Array,
) -> None:
    """Write what an agent is shown of the first of ``left`` waiting rows, in order.

    ``widest``: the most processors that one job may have now.  ``free``, ``there``: processors of
    all hosts.
    """
    size, places = len(FEATURES), places_in(shown)
    for place in range(rows.shape[0]):
        row, first = rows[place], place * size
        wait, estimate = float(now - jobs.submit[row]), jobs.estimate[row]
        shown[first] = 1.0
        shown[first + 1] = wait / (wait + HOUR)
        shown[first + 2] = estimate / (estimate + HOUR)
        shown[first + 3] = jobs.procs[row] / there
        shown[first + 4] = 1.0 if jobs.procs[row] <= widest else 0.0
    shown[rows.shape[0] * size : places * size] = 0.0
    shown[places * size] = free / there
    shown[places * size + 1] = left / (left + 32.0)
