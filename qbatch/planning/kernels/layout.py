"""What compiled loops take and keep: few records of arrays with names, in place of many arrays in a row.

A record is a tuple with names: the compiler takes it apart, nothing is copied and nothing counted.  ``R`` is the number of
jobs; a *row* is a job's rank by (submit, number), and ``name[row]`` is what is known of it.  Instants and durations are
64-bit integers in microseconds, amounts are processors, memory is in bytes; -1 is "none" or "not yet".

The kernels that a live engine calls in every pass take plain arrays under the same names: from Python a record costs a
microsecond more than its arrays, which is nothing for a loop and much for a pass.
"""

from __future__ import annotations

from typing import NamedTuple

from qbatch.planning.kernels.types import Float64Array, Int8Array, Int64Array

ARRIVED, ACTIVE, FREE_NOW, HEAD, TAIL, NOW, LONGEST = 0, 1, 2, 3, 4, 5, 6
"""Places in ``counts``: what a loop keeps between two calls.  Rows that have arrived, jobs that run, processors free, the
ends of the waiting rows, the last instant, the longest queue so far."""

COUNTS = 8
"""Length of ``counts``."""


class JobColumns(NamedTuple):
    """The jobs of a log, ``[R]`` each: when it is submitted (ascending), processors, estimate, how long it runs."""

    submit: Int64Array
    procs: Int64Array
    estimate: Int64Array
    run: Int64Array


class StartColumns(NamedTuple):
    """What became of the jobs, ``[R]`` each: its start and how it started (``IN_ORDER``, ...)."""

    start: Int64Array
    kind: Int8Array


class PromiseColumns(NamedTuple):
    """What was promised, ``[R]`` each: the planned start last told, and the first."""

    last: Int64Array
    first: Int64Array


class LoopState(NamedTuple):
    """Who runs and who waits.  ``P``: the most jobs that can run at once, and one.

    ``endings[P, 2]``: a heap of ends, instant and row (:mod:`heap`), of which ``counts[ACTIVE]`` are in use.
    ``ends[P]``, ``amounts[P]``: expected ends of the running jobs, ascending, and their processors.
    ``waiting[R]``: the waiting rows in order of sequence, in use from ``counts[HEAD]`` to ``counts[TAIL]``.
    ``started[P]``: the rows that start in a pass.
    """

    counts: Int64Array
    endings: Int64Array
    ends: Int64Array
    amounts: Int64Array
    waiting: Int64Array
    started: Int64Array


class PlanArrays(NamedTuple):
    """The plan of conservative backfilling; what each array holds stands in :mod:`plan`."""

    queue: Int64Array
    place: Int64Array
    shapes: Int64Array
    table: Int64Array
    starts: Int64Array
    released: Int64Array
    state: Int64Array


class AdmissionState(NamedTuple):
    """What a loop that admits jobs by deadlines keeps: ``counts``, ``totals[4]`` (:mod:`qbatch.replay.kernels.admission_loop`),
    and ``endings[P, 2]``, a heap of ends, instant and row."""

    counts: Int64Array
    totals: Int64Array
    endings: Int64Array


class Classes(NamedTuple):
    """A workload by the classes of a machine, as :mod:`lsf` takes it: ``jobs`` is ``[4, R]``."""

    jobs: Int64Array
    sweep: Int64Array
    order: Int64Array
    ranks: Int64Array
    rules: Int64Array
    quota: Int64Array


class OnHosts(NamedTuple):
    """What a loop over ``H`` hosts keeps beside what every loop keeps; a pool is one host.

    ``memory[R]``: asked for.  ``hosts[4, H]`` (for ``lsf`` ``[6, H]``): what is free and what there is (:mod:`host_pass`).
    ``where[R]``: the host on which a job runs or ran.  ``bypasses[R]``: how often it was passed by.  ``held[3, n]``: row,
    host and start of each reservation that stays, of which ``holders[0]`` are in use.  ``weights[6]``: of the priority.
    """

    memory: Int64Array
    hosts: Int64Array
    where: Int64Array
    bypasses: Float64Array
    held: Int64Array
    holders: Int64Array
    weights: Float64Array
    is_stopping: bool
    is_sticky: bool
    classes: Classes


class QuantaState(NamedTuple):
    """What a loop with quanta keeps: few arrays, what each holds stands in :mod:`quantum_round`.

    ``counts``: as those of every loop, and some more.  ``runs[R, ...]``: the jobs.  ``lists[2, P]``: who runs, who is
    suspended.  ``quanta[P, ...]``: the oldest first.  ``pieces[n, 6]``: of runs not in one go, as a schedule holds them.
    ``hosts[4, H]``: what is free and what there is (:mod:`host_pass`).
    """

    counts: Int64Array
    runs: Int64Array
    lists: Int64Array
    quanta: Int64Array
    pieces: Int64Array
    hosts: Int64Array


class Scan(NamedTuple):
    """One pass of a loop: the instant, the order of the queue and how many get a reservation; whether a job ended at this
    instant; processors free; the ends of the waiting rows; jobs that run."""

    now: int
    order: int
    depth: int
    has_ended: bool
    free: int
    head: int
    tail: int
    active: int
