"""The job table and all that belongs to it: queues, run limits, pools with their engines, the
calendar, the outbox.

Only this package changes it.  ``now`` is the instant of the input being handled; it never runs
backwards.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from qbatch.daemon.core.faults import FaultState
from qbatch.daemon.core.job import NEXT, OVER, WAITING, BatchJob, BatchState, Prepared, Runs
from qbatch.daemon.settings import Pool, Queue, Settings
from qbatch.engine.engine import Engine
from qbatch.model.events import Event
from qbatch.model.job import Job
from qbatch.model.machine import Machine, Reservation
from qbatch.planning.policy import Policy, check_resources, name_of
from qbatch.wire.errors import Refusal
from qbatch.wire.identifiers import ARRAY, PLAIN, JobKey, format_id, parse_id
from qbatch.wire.records import JobRecord
from qbatch.wire.requests import Request

OWNER = "source_job"
"""The attribute of an arrival with the number of its job in the source."""

LOG_NUMBER = "log_number"
"""The attribute of an arrival of a log with the number of its job in the log."""

REFUSED_FOR = 1_000_000
"""Microseconds after which a refused job of a source counts as ended; without them, time could
stand still."""

RENEWAL = "reservations"
"""The entry of the calendar at which the reservations of a pool are renewed; it has the number of
the pool in place of that of a job."""

MOST_ENDINGS = 200_000
"""Exit statuses of ended jobs that are kept for dependencies."""

MOST_KEYS = 50_000
"""Submission keys that are kept to recognise repetitions."""

MOST_RECENT = 2_000
"""Finished records kept at hand; older ones are read from the store."""


class SourceState(msgspec.Struct):
    """The jobs of a source that reacts, so that it can go on after a restart; the journal holds the
    arrivals.

    ``visits``: how often each job of the source has come.  ``at_work``: by the sequence number of a
    job or an array, its job of the source.  ``ended``: the end (microseconds) and the number of
    each job at the I/O station of the source, which serves one after another, by instant and
    number.  ``io_end``: the latest instant at which one came back.
    """

    visits: dict[int, int] = {}
    at_work: dict[int, int] = {}
    ended: list[tuple[int, int]] = []
    io_end: int = 0

    def arrived(self, at: int, sequence: int, owner: int) -> None:
        self._came(at, owner)
        self.at_work[sequence] = owner

    def refused(self, at: int, owner: int) -> None:
        self._came(at, owner)
        self.ended.append((at + REFUSED_FOR, owner))

    def finished(self, at: int, sequence: int) -> None:
        owner = self.at_work.pop(sequence, None)
        if owner is not None:
            self.ended.append((at, owner))

    def _came(self, at: int, owner: int) -> None:
        self.visits[owner] = self.visits.get(owner, 0) + 1
        self.ended = [each for each in self.ended if each[1] != owner]
        self.io_end = max(self.io_end, at)


class Actor(NamedTuple):
    """The user who asks, by the credentials of the socket; ``role``: ``user``, ``operator`` or
    ``manager``."""

    uid: int
    user: str
    group: str
    role: str


@dataclass(eq=False)
class Work:
    """A command under way.  ``actor``, ``request``: its user and its request, None for a new
    configuration."""

    steps: Generator[None, None, Any]
    actor: Actor | None = None
    request: Request | None = None


class Launch(NamedTuple):
    """Effect: run this attempt of a job."""

    key: JobKey
    attempt: int


class Stop(NamedTuple):
    """Effect: TERM, then KILL after ``grace`` microseconds."""

    file_key: str
    grace: int


class SendSignal(NamedTuple):
    """Effect: send a signal to all processes of an attempt."""

    file_key: str
    signal: int


class ResizeAttempt(NamedTuple):
    """Effect: send an attempt the number of processors that it has now, and of those that it asked
    for."""

    file_key: str
    procs: int
    asked: int


class SetWalltime(NamedTuple):
    """Effect: give an attempt another walltime, in microseconds."""

    file_key: str
    walltime: int


class Forget(NamedTuple):
    """Effect: delete the run directory of an attempt of which the end is known."""

    file_key: str


class Append(NamedTuple):
    """Effect: a line for a job's output or error file (qmsg)."""

    key: JobKey
    files: str
    text: str


class Mail(NamedTuple):
    """Effect: mail for a job, by the configured command."""

    key: JobKey
    point: str
    users: str
    text: str


class Account(msgspec.Struct, frozen=True, gc=False):
    """Effect: an accounting record (docs/spec/pbs.md section 6).

    ``record``: that of an ended job, in place of the text; :func:`.accounting.text_of` makes the
    text when it is written.  A core that follows another one, or replays a journal, writes nothing.
    """

    at: int
    kind: str
    job: str
    text: str = ""
    record: JobRecord | None = None


class Ending(NamedTuple):
    """Effect: a finished job for the history."""

    key: JobKey
    record: JobRecord


class Happening(msgspec.Struct, frozen=True, gc=False):
    """Effect: an event for subscribers."""

    number: int
    at: int
    kind: str
    key: JobKey | None
    text: str


Effect = (
    Launch
    | Stop
    | SendSignal
    | ResizeAttempt
    | SetWalltime
    | Forget
    | Append
    | Mail
    | Account
    | Ending
    | Happening
)


class QueueState(msgspec.Struct, gc=False):
    """The state of a queue: enabled, started, jobs by state, jobs by user.

    ``place``: its number in the configuration, from 1, which a policy sees as the queue of a job.
    ``reservation``: the name of the reservation to which it belongs, or empty.
    """

    settings: Queue
    place: int
    pool: int
    enabled: bool
    started: bool
    counts: dict[BatchState, int]
    users: dict[str, int]
    reservation: str = ""

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def waiting(self) -> int:
        return sum(self.counts.get(state, 0) for state in WAITING)

    @property
    def letter_counts(self) -> dict[str, int]:
        """Jobs by the letter of their state, as PBS counts them."""
        return {state.letter: count for state, count in self.counts.items()}


class ArrayState(msgspec.Struct, gc=False):
    """The jobs of one array by index, in ascending order; how many are in each state; when the
    first of them started."""

    members: dict[int, BatchJob]
    counts: dict[BatchState, int]
    live: int
    failed: int = 0
    started: int | None = None


class RunLimit(msgspec.Struct):
    """A limit on how many jobs may be with the engine or running at once; the others wait here in
    order."""

    used: int = 0
    waiting: list[tuple[int, int, int]] = []


class ReservationState(msgspec.Struct):
    """A reservation, and how it was made (:mod:`.reservations`).

    ``kept``: what the engine gets; it has no hosts any more when the reservation was deleted.
    ``uid``: of its owner, -1 if it is of the machine file.  ``title``, ``resources``: as its owner
    gave them.  ``is_over``: it has no time left.
    """

    kept: Reservation
    owner: str = ""
    uid: int = -1
    made: int | None = None
    title: str = ""
    resources: dict[str, str] = {}
    is_over: bool = False

    @property
    def is_configured(self) -> bool:
        return self.uid < 0


class PoolState:
    """One pool: its machine, its engine, and the events for the next pass.

    ``chosen``: the policy that was set on the live server in place of the configured one, as the
    user named it; or empty.  ``machine``: with the reservations that the engine has after its next
    pass.  ``renewal``: when these get further times (:mod:`.reservations`).
    """

    def __init__(self, settings: Pool, policy: Policy) -> None:
        self.settings = settings
        self.policy = policy
        self.chosen = ""
        self.machine = machine_of(settings)
        check_resources(policy, self.machine)
        # The engine has no reservations before the first instant.
        self.engine = Engine(msgspec.structs.replace(self.machine, reservations=()), policy)
        self.reservations = [ReservationState(each) for each in self.machine.reservations]
        self.renewal: int | None = None
        self.by_row: list[BatchJob | None] = []
        self.pending: dict[JobKey, Job] = {}
        self.running: dict[JobKey, BatchJob] = {}
        self.events: list[Event] = []
        self.host_comments: dict[int, str] = {}
        # By host: the numbers in use of chunks and of processors, as bits.
        self.numbers: dict[int, tuple[int, int]] = {}
        # By host: the numbers in use of GPUs, as bits.
        self.gpus: dict[int, int] = {}
        self.shut: set[int] = set()
        self.down: set[int] = set()

    @property
    def name_of_policy(self) -> str:
        return name_of(self.policy)


def machine_of(pool: Pool) -> Machine:
    """Return the machine of a pool for the engine."""
    if pool.machine is not None:
        return pool.machine
    if pool.spans:
        hosts = tuple(msgspec.structs.replace(host, memory=0) for host in pool.hosts)
        return Machine(hosts, name=pool.name)
    is_simple = len(pool.hosts) == 1 and not pool.hosts[0].memory
    chunked = not pool.single_host and not is_simple
    return Machine(pool.hosts, single_host=pool.single_host, name=pool.name, chunked=chunked)


def places_of(settings: Settings) -> dict[str, tuple[int, int]]:
    """Return the place of each host by name: that of its pool, and its own in the pool."""
    return {
        host.name: (number, place)
        for number, pool in enumerate(settings.pools)
        for place, host in enumerate(pool.hosts)
    }


class Core:
    """The batch server's state.

    ``works``: commands of several steps that are under way, the oldest first (:mod:`.steps`).
    ``step_left``: how many more jobs the present step may change.  ``keeps_records``: whether
    accounting, history and the numbers of chunks on hosts are kept; a copy that only looks ahead
    does not need them.
    """

    def __init__(self, settings: Settings, load: Callable[[str], Policy]) -> None:
        self.settings = settings
        self.load_policy = load
        self.now = 0
        self.next_sequence = 1
        self.jobs: dict[int, BatchJob] = {}
        self.order: list[int] = []
        self.arrays: dict[int, ArrayState] = {}
        self.queues: dict[str, QueueState] = {}
        self.pools = [PoolState(pool, load(pool.policy)) for pool in settings.pools]
        self.host_places = places_of(settings)
        self.run_limits: dict[str, RunLimit] = {}
        self.children: dict[JobKey, list[tuple[str, JobKey]]] = {}
        self.endings: OrderedDict[JobKey, int] = OrderedDict()
        self.keys: OrderedDict[tuple[int, str], JobKey] = OrderedDict()
        self.recent: OrderedDict[JobKey, JobRecord] = OrderedDict()
        self.calendar: list[tuple[int, int, str, int, int, int]] = []
        self.entries = 0
        self.numbers: dict[str, int] = {}
        self.user_jobs: dict[str, int] = {}
        self.run_times: dict[str, list[int]] = {}
        self.events_made = 0
        self.is_dirty = False
        self.has_promised = False
        self.log_arrived = 0
        self.log_id = ""
        self.log_offset = 0
        self.source = SourceState()
        self.ended_count = 0
        self.faults: list[FaultState] = []
        self.outbox: list[Effect] = []
        self.works: list[Work] = []
        self.step_left = 0
        self.runs: Runs | None = None
        self.keeps_records = True
        self.prepared: OrderedDict[tuple[bytes, str], Prepared] = OrderedDict()
        self.asked: OrderedDict[tuple[object, ...], Prepared] = OrderedDict()
        for place, queue in enumerate(settings.queues, 1):
            pool = next((n for n, each in enumerate(settings.pools) if each.name == queue.pool), 0)
            self.queues[queue.name] = QueueState(
                queue, place, pool, queue.enabled, queue.started, {}, {}
            )
        for number, state in enumerate(self.pools):
            if state.reservations:
                for each in state.reservations:
                    self.open_queue(number, each.kept)
                self.renew_at(number, 0)

    # Finding things

    def id_of(self, key: JobKey) -> str:
        return format_id(key, self.settings.name)

    def key_of(self, text: str) -> JobKey:
        """Return the key that a text names; a bare number names an array too.  A text that is no
        job identifier is refused."""
        try:
            key = parse_id(text)
        except ValueError:
            raise Refusal("unknown-job", f"Unknown Job Id {shown(text)}", shown(text)) from None
        if key.member == PLAIN and key.sequence in self.arrays:
            return JobKey(key.sequence, ARRAY)
        return key

    def find(self, key: JobKey) -> BatchJob | None:
        """Return a live job, array or subjob (also an ended subjob of a live array), or None."""
        if key.member >= 0:
            array = self.arrays.get(key.sequence)
            return array.members.get(key.member) if array is not None else None
        job = self.jobs.get(key.sequence)
        return job if job is not None and job.member == key.member else None

    def live(self, text: str) -> BatchJob:
        """Return the live job that a text names; refuse the name of one that does not exist or has
        finished."""
        key = self.key_of(text)
        job = self.find(key)
        if job is not None and not job.is_over:
            return job
        name = self.id_of(key)
        was_used = (
            0 < key.sequence < self.next_sequence
            and key.sequence not in self.jobs
            and key.member == PLAIN
        )
        if job is not None or key in self.recent or key in self.endings or was_used:
            raise has_finished(name)
        raise Refusal("unknown-job", f"Unknown Job Id {name}", name)

    def is_live(self, text: str) -> bool:
        """Return whether a text names a live job."""
        try:
            return bool(self.live(text))
        except Refusal:
            return False

    def members(self, job: BatchJob) -> list[BatchJob]:
        """Return the jobs of an array that have not ended, or the job itself."""
        if not job.is_array:
            return [job]
        array = self.arrays.get(job.sequence)
        return (
            [] if array is None else [each for each in array.members.values() if not each.is_over]
        )

    def queue(self, name: str) -> QueueState:
        """Return a queue; refuse an unknown name."""
        if name not in self.queues:
            raise Refusal("unknown-queue", f"Unknown queue {shown(name)}")
        return self.queues[name]

    def pool_of(self, job: BatchJob) -> PoolState:
        return self.pools[self.queues[job.queue].pool]

    def live_jobs(self, after: int = 0) -> Iterator[BatchJob]:
        """Return plain jobs and arrays in order of number, from the first number above
        ``after``."""
        if len(self.order) > 1000 and len(self.order) > 2 * len(self.jobs):
            self.order = list(self.jobs)
        for place in range(bisect_right(self.order, after), len(self.order)):
            job = self.jobs.get(self.order[place])
            if job is not None:
                yield job

    # Changing things

    def open_queue(self, number: int, kept: Reservation) -> None:
        """Give a reservation of a pool its queue, with the walltime of the default queue;
        maintenance has none."""
        if kept.is_maintenance or kept.name in self.queues:
            return
        settings = Queue(
            name=kept.name,
            pool=self.pools[number].settings.name,
            users=kept.users,
            default_walltime=self.queues[self.settings.default_queue].settings.default_walltime,
        )
        place = len(self.settings.queues) + 1
        self.queues[kept.name] = QueueState(
            settings, place, number, True, True, {}, {}, reservation=kept.name
        )

    def renew_at(self, number: int, at: int) -> None:
        """Let the reservations of a pool be renewed at an instant, and at no other one."""
        self.pools[number].renewal = at
        self.at(at, RENEWAL, JobKey(number, PLAIN))

    def number_of(self, name: str) -> int:
        """Return the number by which policies know a user, group or queue."""
        return self.numbers.setdefault(name, len(self.numbers))

    def set_state(self, job: BatchJob, cause: str) -> None:
        """Change a job's state for a cause, with every count of it and the state of its array.

        Raises:
            RuntimeError: the cause cannot occur in this state (:data:`.job.NEXT`); a defect of the
                server.
        """
        was, member = job.state, job.member
        state = NEXT[cause].get(was)
        if state is None:
            raise RuntimeError(
                f"job {self.id_of(job.key)} is {was.name.lower()}; it cannot be {cause}"
            )
        if member != ARRAY:
            counts = self.queues[job.queue].counts
            counts[was] = counts.get(was, 0) - 1
            if state not in OVER:
                counts[state] = counts.get(state, 0) + 1
        job.state = state
        if member >= 0:
            of_array = self.arrays[job.sequence].counts
            of_array[was] = of_array.get(was, 0) - 1
            of_array[state] = of_array.get(state, 0) + 1
            parent = self.jobs[job.sequence]
            if parent.state not in WAITING:
                return
            # An array that has not begun is held, or waits for a time, if all its waiting jobs do;
            # else it is queued.
            queued, held, postponed = (of_array.get(state, 0) for state in WAITING)
            if queued or (held and postponed):
                self.set_state(parent, "queued")
            elif held or postponed:
                self.set_state(parent, "held" if held else "postponed")

    def at(self, due: int, what: str, key: JobKey, attempt: int = 0) -> None:
        self.entries += 1
        heapq.heappush(self.calendar, (due, self.entries, what, key.sequence, key.member, attempt))

    def happened(self, kind: str, key: JobKey | None, text: str = "") -> None:
        """Report an event to subscribers."""
        self.events_made += 1
        self.outbox.append(Happening(self.events_made, self.now, kind, key, text))

    def account(self, kind: str, job: BatchJob, text: str) -> None:
        """Put an accounting record of a job into the outbox."""
        self.outbox.append(Account(self.now, kind, self.id_of(job.key), text))

    def take_effects(self) -> list[Effect]:
        """Return the effects since the last call."""
        outbox, self.outbox = self.outbox, []
        return outbox


def shown(text: str) -> str:
    """Return a user's text, cut and printable."""
    printable = "".join(letter if letter.isprintable() else "?" for letter in text[:80])
    return printable + ("..." if len(text) > 80 else "")


def has_finished(name: str) -> Refusal:
    """Return the refusal of a request for a live job that names one that has ended."""
    text = f"{name} Job has finished, use -x or -H to obtain historical job information"
    return Refusal("finished-job", text, name)
