"""The tables of the core: one declaration of each, with named columns.

``R`` is the number of jobs; a *row* is a job's rank by (submit, number).  ``P``: the most jobs that
can run at once, plus one. ``H``: hosts (a pool is one).  ``N``: resources, of which a host has
amounts and a job takes some: processors, memory in bytes, then those that the machine file names.
Instants and durations are 64-bit integers in microseconds; -1 is "none" or "not yet".

Values that a scan reads for thousands of waiting jobs are columns; the values of one running job
are a record.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from qbatch.planning.kernels.types import Int8Array, Int64Array, RecordArray

NO_JOB = -1
"""No row."""

REFUSED_START = -2
"""``start`` of a job that was refused when it arrived."""

STARTS, INTERRUPTIONS = 0, 1
"""What a policy does with jobs: it starts each once; or it also suspends and resizes them or gives
them trial runs."""

NO_PARTS, ENDS, PARTS = 0, 1, 2
"""What a policy reads of the running jobs, in order of expected end: nothing; ends and processors;
also hosts and memory.  With ``ENDS`` the passes enter the jobs that they start (:mod:`passes`),
with ``PARTS`` the loop does."""


class Needs(NamedTuple):
    """What a ``decide`` returns and reads: constants of the loop around it.

    ``has_queue``: the queue is kept for it in ``waiting``.  ``has_hosts``: the host of a job
    matters.  ``has_timers``: it sets ``counts.timer``.  ``reads_ended``: it reads ``ended``.
    """

    gives: int = STARTS
    reads: int = NO_PARTS
    has_queue: bool = True
    has_hosts: bool = False
    has_timers: bool = False
    reads_ended: bool = False


CPUS, MEMORY, NAMED = 0, 1, 2
"""Resources: processors, memory, and the first of those that the machine file names."""

FREE, THERE, WITHHELD = 0, 1, 2
"""What ``hosts[., N, H]`` hold of each resource: the free amount, the total (memory 0: not counted;
processors 0: closed). The engine also keeps what is free on a closed host, which shows nothing
free."""

END, HOST, AMOUNTS = 0, 1, 2
"""Rows of ``parts[2 + N, P]``: the parts of running jobs in order of expected end: that end, the
host, and from ``AMOUNTS`` on the amount of each resource."""

PROCS, HELD = AMOUNTS + CPUS, AMOUNTS + MEMORY
"""Rows of ``parts``: processors and memory."""

SINCE, OF_ROW = -2, -1
"""The last rows of ``parts``, if jobs are interrupted or on several hosts: since when the job runs,
and its row."""

SPREAD = -1
"""The host of a job that has parts on several hosts."""


def record(*names: str, kind: type = np.int64) -> np.dtype[Any]:
    """Return a type of records with fields that are attributes in plain Python too.

    The fields are aligned: compiled code reads others more slowly (a sweep over a plan takes a
    tenth longer).
    """
    assert not any(hasattr(np.record, name) for name in names), (
        "what NumPy calls so would be found instead"
    )
    return np.dtype((np.record, np.dtype([(name, kind) for name in names], align=True)))


COUNTS = record(
    "arrived",  # rows that have arrived.
    "running",  # jobs that run.
    "free",  # free processors of all hosts.
    "head",  # the first index of the queue in ``waiting``.
    "tail",  # the index after its last.
    "first",  # no job before this row waits.
    "begun",  # rows that have started.
    "refused",  # rows that were refused.
    "now",  # the last instant.
    "until",  # no round is made after this instant.
    "longest",  # the longest queue so far.
    "timer",  # when to make a round even if nothing happens.
    "decided",  # actions of a Python policy to carry out; below 0: it was not asked.
    "ends",  # entries in the heap of ends.
    "intervals",  # recorded execution intervals.
    "parts",  # parts of running jobs in use.
    "ended",  # jobs that ended in this round.
    "stopped",  # jobs suspended in this round because their time was over.
    "returned",  # trial runs that were over in this round.
    "starts",  # jobs that started for the first time in this round.
    "last",  # the last row that left the queue in this round.
    "fault",  # why a decision of a policy was refused (:mod:`verbs`); 0: none was.
    "fault_row",  # the row of that decision.
)
"""The one record of numbers that the loop keeps between two calls."""

RUN = record(
    "since",  # when it last began to run; -1: it does not run.
    "done",  # processor-microseconds done before; -1: it has not begun, or starts again.
    "due",  # when it ends; -1: it does not run.
    "end",  # when it ends by its estimate.
    "until",  # when its trial run ends or it is suspended; -1: never.
    "is_trial",  # whether it is a trial run.
    "procs",  # processors that it has.
    "held",  # memory that it has on its first host.
    "keeps",  # whether it keeps its memory while suspended.
    "is_cut",  # whether an execution interval of it was recorded.
)
"""The progress of a job that may be interrupted."""

INTERVAL = record("row", "begin", "end", "procs", "host", "is_kept")
"""An execution interval, as in a schedule; ``is_kept``: whether its work counts."""

START, TRY, SUSPEND, RESUME, RESIZE, END_NOW, RETURN, DROP = range(1, 9)
"""Kinds of actions.  A try is a trial run: when it is over, its work is discarded and the job waits
again.  The last three come from the driver of an engine: a running job ends; a trial run is over; a
suspended job leaves with its memory."""

ACTION = record(
    "kind",
    "row",
    "host",  # of a start and a resumption.
    "procs",  # of a start, a resumption and a resize.
    "held",  # memory, of a start and a resumption; of a suspension, 0: the memory is given back.
    "until",  # of a start and a resumption, -1: never.
    "parts",  # parts of it, stored after those in use; 0: one part, given by the fields above.
)
"""An action of a policy that interrupts jobs."""


REQUEST = record(
    "first",  # the index of its first group.
    "groups",  # and their number; 0: it contradicts itself, and never fits.
    "procs",  # processors of all its chunks.
    "is_scattered",  # whether each chunk goes to a different host.
    "is_exclusive",  # whether it takes whole hosts, which no other job uses.
    "is_mixed",  # whether two of its groups may be on one host.
    "is_tight",  # whether hosts matter to it (:func:`qbatch.planning.requests.is_loose`).
    "reservation",  # the number of the reservation that it names; -1: none.
    "is_inside",  # whether it has to start in a window of that reservation.
)
"""What equal jobs ask for: groups of equal chunks, in the order in which they are placed."""

GROUP = record(
    "count",  # their number.
    "hosts",  # the row of ``Requests.sets`` with the hosts on which they may be (-1: any).
    "begin",  # the first of these hosts.
    "end",  # the host after the last of them.
)
"""Equal chunks, each inside one host."""


class Requests(NamedTuple):
    """The requests of jobs that are chunks over several hosts.

    ``of[R]``: the index in ``heads`` of each job's request.  ``heads`` of ``REQUEST``, ``groups``
    of ``GROUP``.  ``amounts[G, N]``: what one chunk of each group takes, by resource.  ``sets[S,
    H]``: sets of hosts, 1 for those that belong to them.  ``windows[3, W]``: the times in which
    hosts are reserved, in order of host and begin: begin, end, and the number of the reservation.
    Those of a host begin at its entry of ``firsts[H + 1]``, which is empty if nothing is reserved.

    All are empty where each job is one chunk, inside one host: then ``JobColumns.asked`` is that
    chunk.
    """

    of: Int64Array
    heads: RecordArray
    groups: RecordArray
    amounts: Int64Array
    sets: Int8Array
    firsts: Int64Array
    windows: Int64Array


BEGIN, OVER, RESERVED = range(3)
"""Rows of ``Requests.windows``."""


class JobColumns(NamedTuple):
    """What the jobs ask for, ``[R]`` each; ``submit`` ascends.  ``asked[N, R]``: by resource,
    including processors; it is empty if hosts do not matter."""

    submit: Int64Array
    procs: Int64Array
    estimate: Int64Array
    asked: Int64Array
    requests: Requests


def no_requests() -> Requests:
    """Return the requests of jobs that are one chunk each."""
    return Requests(
        np.empty(0, np.int64),
        np.empty(0, REQUEST),
        np.empty(0, GROUP),
        np.empty((0, 0), np.int64),
        np.empty((0, 0), np.int8),
        np.empty(0, np.int64),
        np.empty((3, 0), np.int64),
    )


class LogTable(NamedTuple):
    """What only the log knows about the jobs, ``[R]`` each: the run time, the memory that a job
    really uses (-1: what it asks for), and whether admission accepts it.  The last two are empty if
    hosts do not matter."""

    run: Int64Array
    used_memory: Int64Array
    may_run: Int8Array


class ScheduleTable(NamedTuple):
    """The outcome of the jobs, ``[R]`` each: the first start, how the job started, its end, its
    host, and its last and first promised start.  Columns that are not written are empty."""

    start: Int64Array
    kind: Int8Array
    end: Int64Array
    host: Int64Array
    promise: Int64Array
    first_promise: Int64Array


class StateTables(NamedTuple):
    """The jobs that run and the jobs that wait.

    ``counts[1]``: of ``COUNTS``.  ``endings[., 2]``: a heap of ends, instant and row (:mod:`heap`).
    ``waiting[R]``: the waiting rows in order of sequence, in use from ``head`` to ``tail``.
    ``parts[2 + N, P]``; where jobs have requests, and where they are interrupted, ``parts[4 + N,
    P]``.  ``hosts[2, N, H]``.  ``started[P]``, ``places[P]``: the rows that start in a pass, and
    their hosts; where that is ``SPREAD``, the parts of the job are in ``begun[4 + N, P]``, in the
    order of the starts.  ``ended[P]``, ``stopped[P]``, ``returned[P]``: the rows that ended in
    this round, that were suspended because their time was over, and that came back from a trial
    run. Only if jobs are interrupted: ``runs[R]`` of ``RUN``; ``running[P]``, the running rows,
    ascending; ``intervals[.]`` of ``INTERVAL``; ``actions[.]`` of ``ACTION``.
    """

    counts: RecordArray
    endings: Int64Array
    waiting: Int64Array
    parts: Int64Array
    hosts: Int64Array
    started: Int64Array
    places: Int64Array
    begun: Int64Array
    ended: Int64Array
    stopped: Int64Array
    returned: Int64Array
    runs: RecordArray
    running: Int64Array
    intervals: RecordArray
    actions: RecordArray


class Instant(NamedTuple):
    """One round, for a policy.

    In order: the instant, processors free, the ends of the queue in ``waiting``; the first index of
    it that has changed since the last pass (``scan_from``); parts in use of ``parts``.  Then the
    rows that arrived in this round (from ``first_arrived`` to before ``arrived``), how many jobs
    ended and how many trial runs were over.
    """

    now: int
    free: int
    head: int
    tail: int
    scan_from: int
    parts: int
    first_arrived: int
    arrived: int
    ended: int
    returned: int
