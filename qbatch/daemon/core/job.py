"""A job of the batch server: its states, its specification and its history.

``NEXT`` contains every change of a job's state that is allowed; :meth:`.state.Core.set_state` looks
each change up there and refuses any other.  The table knows neither time nor hosts nor policies.
The state of an array follows from those of its jobs: it is BEGUN once any has started.  The engine
has its own table (:mod:`qbatch.engine.states`), for the jobs that it knows.
"""

from __future__ import annotations

from enum import Enum
from typing import Protocol

import msgspec

from qbatch.model.actions import Allocation
from qbatch.model.job import Job
from qbatch.model.progress import Progress
from qbatch.model.reasons import Reason
from qbatch.wire.identifiers import ARRAY, PLAIN, JobKey
from qbatch.wire.requests import Spec
from qbatch.wire.resources import Demand, listed_resources


class BatchState(Enum):
    """The state of a job, an array or a job of an array.  The value is its letter in the protocol
    and in PBS formats."""

    QUEUED = "Q"
    HELD = "H"
    WAITING_FOR_TIME = "W"
    RUNNING = "R"
    SUSPENDED = "S"
    EXITING = "E"
    BEGUN = "B"
    FINISHED = "F"
    EXPIRED = "X"

    __hash__ = object.__hash__  # Enum's is slow Python code, and states are keys of counts

    @property
    def letter(self) -> str:
        letter: str = self._value_
        return letter


WAITING = (BatchState.QUEUED, BatchState.HELD, BatchState.WAITING_FOR_TIME)
"""The states of a job that has not started, or waits to start again."""

ON_HOSTS = (BatchState.RUNNING, BatchState.SUSPENDED, BatchState.EXITING)
"""The states of a job that has hosts; EXITING: it is being ended."""

OVER = (BatchState.FINISHED, BatchState.EXPIRED)
"""The states that no job leaves; EXPIRED: a job of an array."""

NEXT: dict[str, dict[BatchState, BatchState]] = {
    "queued": dict.fromkeys(WAITING, BatchState.QUEUED),
    "held": dict.fromkeys(WAITING, BatchState.HELD),
    "postponed": dict.fromkeys(WAITING, BatchState.WAITING_FOR_TIME),
    "begun": dict.fromkeys((*WAITING, BatchState.BEGUN), BatchState.BEGUN),
    "started": {BatchState.QUEUED: BatchState.RUNNING},
    "suspended": {BatchState.RUNNING: BatchState.SUSPENDED},
    "resumed": {BatchState.SUSPENDED: BatchState.RUNNING},
    "stopped": dict.fromkeys((BatchState.RUNNING, BatchState.SUSPENDED), BatchState.EXITING),
    "requeued": dict.fromkeys(ON_HOSTS, BatchState.QUEUED),
    "expired": dict.fromkeys((*WAITING, *ON_HOSTS), BatchState.EXPIRED),
    "finished": dict.fromkeys((*WAITING, *ON_HOSTS, BatchState.BEGUN), BatchState.FINISHED),
}
"""By cause, the state after each state in which the cause may occur.  ``begun`` is for arrays only,
``expired`` for their jobs only; a submitted job is QUEUED."""

SUBSTATES = {
    BatchState.QUEUED: 10,
    BatchState.HELD: 20,
    BatchState.WAITING_FOR_TIME: 30,
    BatchState.RUNNING: 42,
    BatchState.SUSPENDED: 45,
    BatchState.EXITING: 51,
    BatchState.BEGUN: 1,
    BatchState.FINISHED: 92,
    BatchState.EXPIRED: 91,
}
"""The substate that ``qstat -f`` shows for each state (OpenPBS job_attr.h)."""


USER_HOLD, OTHER_HOLD, SYSTEM_HOLD, DEPENDENCY_HOLD = 1, 2, 4, 8
"""Reasons for which a job is held; a job waits in state H while any is set."""

HOLD_LETTERS = {"s": SYSTEM_HOLD, "o": OTHER_HOLD, "u": USER_HOLD}
"""The letters of ``qhold -h`` in the order of OpenPBS; a dependency shows as ``s``."""


class Listed(dict[str, str]):
    """``Resource_List``: names and values.  ``text``: the list as accounting writes it, empty
    before the first time."""

    __slots__ = ("text",)

    def __init__(self, resources: dict[str, str]) -> None:
        super().__init__(resources)
        self.text = ""


class Prepared:
    """A specification that was read and checked once for a queue; equal submissions share one.

    ``demand``: what its resources ask for, in parts; ``walltime``: microseconds; ``request``: as
    the engine gets it; ``listed``: as ``Resource_List``; ``indices``, ``slot_limit``: of an array.

    It is a plain class on purpose: snapshots write each one once and refer to it by its place
    (:mod:`.state_snapshot`).
    """

    __slots__ = ("demand", "indices", "listed", "request", "slot_limit", "spec", "walltime")

    def __init__(
        self,
        spec: Spec,
        demand: Demand,
        walltime: int,
        request: Job,
        indices: tuple[int, ...] = (),
        slot_limit: int | None = None,
        listed: Listed | None = None,
    ) -> None:
        self.spec = spec
        self.demand = demand
        self.walltime = walltime
        self.request = request
        self.indices = indices
        self.slot_limit = slot_limit
        self.listed = listed or Listed(listed_resources(spec.resources, demand, walltime))


# Takes half the time of a named tuple's own, and runs a dozen times a job.
_new_tuple = tuple.__new__

BY_USER, BY_POLICY = 1, 2
"""Bits of :attr:`AttemptState.stopped_by`."""


class Runs(Protocol):
    """Run times and exit statuses that replace those of the specifications, for copies of jobs that
    really run."""

    def run_of(self, job: BatchJob) -> int:
        """Return how long the present attempt of a job runs, in microseconds; ``NEVER`` while that
        is not known."""

    def status_of(self, job: BatchJob) -> int:
        """Return the exit status of a job that ends by itself."""


class Slot(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """``count`` equal chunks on a host.

    ``procs``, ``memory`` (bytes), ``lines`` (of the node file): of each chunk.  ``number``: that of
    the first among the chunks on the host; the others follow it.  ``ranges``: the numbers of their
    processors, chunk after chunk.  ``gpus``: of each chunk, and ``gpu_ranges`` the numbers of the GPUs
    of all on the host.
    """

    host: int
    procs: int
    memory: int
    lines: int
    number: int
    ranges: tuple[tuple[int, int], ...]
    count: int = 1
    gpus: int = 0
    gpu_ranges: tuple[tuple[int, int], ...] = ()


class AttemptState(msgspec.Struct, gc=False, array_like=True):
    """An attempt of a job, from its start until it ends or is queued again; of an ended job, the
    last one.

    ``started``: an instant, in microseconds.  ``slots``: its chunks on their hosts.  ``session``:
    of its processes, once known. ``pauses``: the start and the end of each suspension; None if it
    has not ended.  ``stopped_by``: ``BY_USER``, ``BY_POLICY`` or both suspend it; it goes on when
    neither does.  ``sizes``: its processors from each instant on, if it ever had others than it
    asked for.  ``used``: what was measured at its end (seconds and bytes).  ``is_undelivered``: not
    all of its files could be delivered.
    """

    started: int
    allocation: Allocation
    progress: Progress
    slots: tuple[Slot, ...] = ()
    session: int | None = None
    pauses: tuple[tuple[int, int | None], ...] = ()
    stopped_by: int = 0
    sizes: tuple[tuple[int, int], ...] = ()
    used: dict[str, float] | None = None
    is_undelivered: bool = False

    def ran(self, now: int) -> int:
        """Return how long it has run: microseconds from its start to ``now`` without its pauses."""
        paused = sum((now if until is None else until) - since for since, until in self.pauses)
        return max(now - self.started - paused, 0)


class EarlierAttempts(msgspec.Struct, gc=False, array_like=True):
    """The attempts of a job before the present one; it was queued again.

    ``trials``: start, end, processors and hosts (as in ``exec_host``) of each trial run.  ``lost``:
    the execution intervals of the latest lost attempts (the host went down, the job was rerun),
    each after the number of its attempt.  ``used``: what was measured of the last one.
    """

    trials: tuple[tuple[int, int, int, str], ...] = ()
    lost: tuple[tuple[int, int, int, int, str], ...] = ()
    used: dict[str, float] | None = None


class FinalState(msgspec.Struct, gc=False, array_like=True):
    """How a job ended: the instant (microseconds), its exit status, and why it was refused after it
    was queued, if it was."""

    ended: int
    status: int
    refused: Reason | None = None


class BatchJob(msgspec.Struct, gc=False, array_like=True):
    """One job, array or subjob.  Instants are in microseconds; None means not yet.

    ``hold``: bits of holds.  ``row``: its row in the engine of its pool, -1 while the engine does
    not know it.  ``run_limit``: the name of the run limit at which it waits.  ``waits_for``: the
    run limits in which it has a place, one a line. ``ending``: why it is being ended (``deleted``,
    ``rerun``, ``host``, ``signal``, ``refused``).  ``broken``: the latest promises that the policy
    took back: when, the promised start, and why.  ``deadline``: the instant by which it is to end.
    ``price``: what it costs, fixed when the policy accepted it, in millionths of a processor-hour.

    ``attempts``: how many have begun.  ``attempt`` is set from a start until the job is queued
    again, ``final`` once it has ended, ``earlier`` once it was queued again.
    """

    sequence: int
    member: int
    prepared: Prepared
    name: str
    user: str
    uid: int
    group: str
    queue: str
    submitted: int
    queued: int
    modified: int
    state: BatchState = BatchState.QUEUED
    hold: int = 0
    unmet: int = 0
    row: int = -1
    is_pending: bool = False
    run_limit: str | None = None
    waits_for: str = ""
    eligible: int | None = None
    not_before: int | None = None
    promised: int | None = None
    priority: int = 0
    slot_limit: int | None = None
    attempts: int = 0
    ending: str | None = None
    comment: str = ""
    broken: tuple[tuple[int, int, str], ...] = ()
    attempt: AttemptState | None = None
    earlier: EarlierAttempts | None = None
    final: FinalState | None = None
    deadline: int | None = None
    price: int | None = None

    @property
    def key(self) -> JobKey:
        return _new_tuple(JobKey, (self.sequence, self.member))

    @property
    def spec(self) -> Spec:
        return self.prepared.spec

    @property
    def is_array(self) -> bool:
        return self.member == ARRAY

    @property
    def is_subjob(self) -> bool:
        return self.member >= 0

    @property
    def is_plain(self) -> bool:
        """Whether it is neither an array nor one of its jobs."""
        return self.member == PLAIN

    @property
    def holds_hosts(self) -> bool:
        return self.state in ON_HOSTS

    @property
    def is_waiting(self) -> bool:
        return self.state in WAITING

    @property
    def is_over(self) -> bool:
        return self.state in OVER

    @property
    def is_running_or_suspended(self) -> bool:
        return self.state is BatchState.RUNNING or self.state is BatchState.SUSPENDED

    @property
    def has_begun(self) -> bool:
        """Whether an attempt of it has started and was not queued again; of an array, whether any
        of its jobs ever has."""
        return self.attempt is not None or self.state is BatchState.BEGUN

    @property
    def present(self) -> AttemptState:
        assert self.attempt is not None, f"{self.file_key} does not run"
        return self.attempt

    @property
    def under_way(self) -> Progress:
        return self.present.progress

    @property
    def size(self) -> int:
        """The number of its processors: what it asked for, unless the policy has resized it."""
        sizes = self.attempt.sizes if self.attempt is not None else ()
        return sizes[-1][1] if sizes else self.prepared.request.procs

    @property
    def hold_types(self) -> str:
        """``Hold_Types`` as ``qstat -f`` shows it."""
        return hold_text(self.hold | (DEPENDENCY_HOLD if self.unmet else 0))

    @property
    def used(self) -> dict[str, float] | None:
        """What was measured of its attempt, or of the one before if it waits again; None before any
        measurement."""
        last = self.attempt if self.attempt is not None else self.earlier
        return last.used if last is not None else None

    @property
    def refused(self) -> Reason | None:
        return self.final.refused if self.final is not None else None

    def worked(self, now: int) -> int:
        """Return the processor-microseconds that its attempt has done."""
        return self.attempt.progress.worked(now) if self.attempt is not None else 0

    def walltime_used(self, now: int) -> int:
        """Return the microseconds of walltime that its attempt has used, as if on the processors
        that it asked for."""
        return self.worked(now) // self.prepared.request.procs

    @property
    def file_key(self) -> str:
        """The name of the present attempt's run directory: digits, dashes and a dot only."""
        inner = f"-{self.member}" if self.member >= 0 else ""
        return f"{self.sequence}{inner}.{self.attempts}"


def hold_bits(letters: str) -> int:
    """Return the bits of ``uos`` letters; ``n`` means none.

    Raises:
        ValueError: a letter is not one of them.
    """
    if letters.strip() == "n":
        return 0
    bits = 0
    for letter in letters.strip():
        if letter not in HOLD_LETTERS:
            raise ValueError(
                f"{letter!r} is not a kind of hold; use u (user), o (operator) or s (system)"
            )
        bits |= HOLD_LETTERS[letter]
    return bits


def hold_text(bits: int) -> str:
    """Return ``Hold_Types`` as ``qstat -f`` shows it."""
    if bits & DEPENDENCY_HOLD:
        bits |= SYSTEM_HOLD
    return "".join(letter for letter, bit in HOLD_LETTERS.items() if bits & bit) or "n"
