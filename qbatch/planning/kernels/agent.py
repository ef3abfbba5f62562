"""An agent from outside chooses which waiting job starts next: the ``decide`` that asks it, and
what it is shown.

The loop stops where the agent is to choose (``counts.until`` is then before ``counts.now``) and
goes on with its choice.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from qbatch.planning.kernels.jit import allocating_kernel, kernel
from qbatch.planning.kernels.lists import start_in_order
from qbatch.planning.kernels.tables import (
    CPUS,
    FREE,
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

AGENT = record(
    "is_asked",  # Whether the agent has been asked and its choice is yet to be carried out.
    "choice",  # The place of a job among those shown; a place without a job chooses none.
    "row",  # The chosen job, which starts as soon as it fits; -1 for none.
    "backfills",  # Whether other jobs may start meanwhile that do not delay it.
)

HOUR = 3_600_000_000.0


class AgentTables(NamedTuple):
    """``agent[1]``: of ``AGENT``.  ``shown[jobs * 5 + 2]``: the observation."""

    agent: RecordArray
    shown: Float32Array


@allocating_kernel
def decide(
    instant: Instant, jobs: JobColumns, state: StateTables, done: ScheduleTable, memory: AgentTables
) -> int:
    """Start the chosen job if it fits; where none is chosen, show the waiting jobs and stop the
    loop."""
    agent, counts = memory.agent[0], state.counts[0]
    rows = state.waiting[instant.head : instant.tail]
    if rows.shape[0] == 0:
        return 0
    if agent.is_asked != 0:
        agent.is_asked = 0
        place = agent.choice
        if place >= min(rows.shape[0], (memory.shown.shape[0] - GENERAL) // len(FEATURES)):
            if instant.parts > 0:
                return 0
            place = 0  # nothing runs: without a start nothing would ever happen
        agent.row = rows[place]
    if agent.row >= 0:
        order = np.empty(rows.shape[0], np.int64)
        order[0] = agent.row
        count = start_in_order(instant, jobs, state, order[:1], 0)
        if count > 0:
            agent.row = -1
            counts.timer = instant.now  # the next choice is made at the same instant
        elif agent.backfills != 0:
            behind = 1
            for row in rows:
                if row != agent.row:
                    order[behind] = row
                    behind += 1
            count = start_in_order(instant, jobs, state, order, 1)
        return count
    free, there = state.hosts[FREE, CPUS], state.hosts[THERE, CPUS]
    show(
        instant.now,
        rows,
        jobs.submit,
        jobs.procs,
        jobs.estimate,
        free.max(),
        instant.free,
        there.sum(),
        memory.shown,
    )
    agent.is_asked = 1
    counts.timer, counts.until = instant.now, instant.now - 1
    return 0


@kernel
def show(
    now: int,
    rows: Int64Array,
    submit: Int64Array,
    procs: Int64Array,
    estimate: Int64Array,
    widest: int,
    free: int,
    there: int,
    shown: Float32Array,
) -> None:
    """Write what an agent is shown of waiting rows, in order.

    ``widest``: the most processors that one job may have now.  ``free``, ``there``: processors of
    all hosts.
    """
    size = len(FEATURES)
    jobs = (shown.shape[0] - GENERAL) // size
    count = min(jobs, rows.shape[0])
    for place in range(count):
        row, first = rows[place], place * size
        wait = float(now - submit[row])
        shown[first] = 1.0
        shown[first + 1] = wait / (wait + HOUR)
        shown[first + 2] = estimate[row] / (estimate[row] + HOUR)
        shown[first + 3] = procs[row] / there
        shown[first + 4] = 1.0 if procs[row] <= widest else 0.0
    shown[count * size : jobs * size] = 0.0
    shown[jobs * size] = free / there
    shown[jobs * size + 1] = rows.shape[0] / (rows.shape[0] + 32.0)
