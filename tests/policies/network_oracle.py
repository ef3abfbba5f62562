"""The closed fork-join network the slow and obvious way, written from docs/spec/papers.md 5.1 to
5.5 alone.

Jobs circulate between processors, each with a queue of its own, and one I/O station.  Lists, and
scans of them. Times are integer microseconds once drawn; means, intervals, windows and the horizon
are given in seconds. Letters and numbers in comments are those of the rules of 5.5.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

SECOND = 1_000_000
MEAN_IO = 0.531
ROUNDS_MAX = 10_000
"""So many rounds or switches at one instant mean that time has stopped: every time drawn is
zero."""

Routing = Literal["probabilistic", "shortest"]
Ties = Literal["random", "lowest"]
Discipline = Literal["fcfs", "stf", "snutf", "lstf"]
Parallelism = Literal["varying", "uniform", "normal"]
Demand = Literal["varying", "exponential", "erlang"]
Script = Callable[[int, int], tuple[list[int], list[int], int]]
"""Of a job and a visit: the demands and the estimates of its tasks, and its I/O service, in
microseconds."""


class TaskDraws(NamedTuple):
    """The fractions of one task (rule 4)."""

    first: float
    branch: float
    second: float
    route: float
    error: float


class VisitDraws(NamedTuple):
    """The fractions of one visit of one job; as many tasks as processors."""

    parallelism: float
    io: float
    tasks: Sequence[TaskDraws]


class Draws(Protocol):
    """Where the fractions come from, all of them in [0, 1)."""

    def visit(self, job: int, visit: int) -> VisitDraws:
        """Return the fractions of this visit of this job, both counted from 0."""
        ...

    def parallelism_interval(self, number: int) -> float:
        """Return the fraction of the interval before switch `number` of the number of tasks, from
        0."""
        ...

    def demand_interval(self, number: int) -> float:
        """Return the fraction of the interval before switch `number` of the demands, from 0."""
        ...


class Task(NamedTuple):
    """One task that started."""

    job: int
    visit: int
    task: int
    processor: int
    dispatched: int
    start: int
    end: int


class Response(NamedTuple):
    """One visit of which the last task ended.  Its I/O times may lie beyond the horizon."""

    job: int
    visit: int
    tasks: int
    submitted: int
    ended: int
    io_start: int
    io_end: int


class Outcome(NamedTuple):
    """What happened up to the horizon, and at it."""

    tasks: list[Task]
    """In order of start, then processor."""
    responses: list[Response]
    """In order of ended, then job."""


# ---- Generators (rules 1, 5, 6 and 7).


def microseconds(seconds: float) -> int:
    """Round to the nearest microsecond, halves up."""
    return math.floor(seconds * SECOND + 0.5)


def exponential(mean: float, u: float) -> int:
    """Return an exponential time in microseconds, of a mean in seconds (rule 6)."""
    return microseconds(-mean * math.log(1 - u))


def branching_erlang(mean: float, variation: float, u1: float, u2: float, u3: float) -> int:
    """Return a time of one stage or two in microseconds, of a mean in seconds (rule 6); rounded
    once."""
    time = -(mean / 2) * math.log(1 - u1)
    if u2 < 1 / (2 * variation**2):
        time -= mean * variation**2 * math.log(1 - u3)
    return microseconds(time)


def estimate(demand: int, error: float, u: float) -> int:
    """Return what the queues believe the demand to be (rule 7), halves up."""
    return math.floor(demand * (1 + error * (2 * u - 1)) + 0.5)


def parallelism_table(processors: int) -> list[float]:
    """Return the probabilities of 1, 2, .. tasks by the bounded normal distribution (rule 5)."""
    mean = (1 + processors) / 2
    deviation = mean / 4

    def below(value: float) -> float:
        return math.erfc((mean - value) / (deviation * math.sqrt(2))) / 2

    weights = [below(tasks + 0.5) - below(tasks - 0.5) for tasks in range(1, processors + 1)]
    return [weight / sum(weights) for weight in weights]


def uniform_tasks(processors: int, u: float) -> int:
    """Return a number of tasks, each equally likely (rule 5)."""
    return 1 + math.floor(processors * u)


def normal_tasks(processors: int, u: float) -> int:
    """Return the least number of tasks with a cumulative probability above the fraction (rule
    5)."""
    cumulative = 0.0
    for index, probability in enumerate(parallelism_table(processors)):
        cumulative += probability
        if u < cumulative:
            return index + 1
    return processors


# ---- The network.


@dataclass(frozen=True)
class Settings:
    """What `simulate` was asked."""

    jobs: int
    processors: int
    routing: Routing
    ties: Ties
    discipline: Discipline
    limit: int
    variation: float
    mean_demand: float
    mean_io: float
    error: float
    scripted: Script | None


def refuse_standstill(count: int, now: int) -> None:
    """Raise if so much happens at one instant that time does not go on."""
    if count > ROUNDS_MAX:
        raise RuntimeError(f"time stands still at {now} us")


@dataclass
class Alternation:
    """Which of its distributions is in force, and when it switches; one distribution alone never
    does."""

    names: tuple[str, ...]
    mean: float
    fraction: Callable[[int], float]
    switched: int = 0
    next_switch: int | None = None

    def __post_init__(self) -> None:
        self.draw_interval(0)

    def draw_interval(self, now: int) -> None:
        """Draw the next interval, if there is anything to switch to."""
        if len(self.names) > 1:
            self.next_switch = now + exponential(self.mean, self.fraction(self.switched))

    def in_force(self) -> str:
        """Return the distribution in force."""
        return self.names[self.switched % len(self.names)]

    def switch(self, now: int) -> None:
        """Switch as often as is due at this instant: an interval may be of no length."""
        before = self.switched
        while self.next_switch == now:
            self.switched += 1
            self.draw_interval(now)
            refuse_standstill(self.switched - before, now)


@dataclass
class QueuedTask:
    """A task at a processor: waiting, or in service."""

    job: int
    visit: int
    task: int
    sequence: int
    demand: int
    estimate: int
    dispatched: int


@dataclass
class Processor:
    """A processor, its queue in order of sequence, and the task in service."""

    index: int
    waiting: list[QueuedTask] = field(default_factory=list)
    serving: QueuedTask | None = None
    serving_end: int = 0
    selections: int = 0

    def length(self) -> int:
        """Count the waiting and the one in service (rule 8)."""
        return len(self.waiting) + (self.serving is not None)


@dataclass
class Visit:
    """The visit that a job is on."""

    number: int
    tasks: int
    submitted: int
    uncompleted: int
    io_service: int


class Network:
    """The state of the network; one round is the steps (a) to (f) of rule 2."""

    def __init__(
        self, draws: Draws, settings: Settings, tasks: Alternation, demands: Alternation
    ) -> None:
        self.draws = draws
        self.settings = settings
        self.task_distribution = tasks
        self.demand_distribution = demands
        self.now = 0
        self.sequence = 0
        self.processors = [Processor(index) for index in range(settings.processors)]
        self.visits: dict[int, Visit] = {}
        self.ended: list[int] = []
        self.in_io: list[tuple[int, int]] = []
        self.last_io_end = 0
        self.back = list(range(settings.jobs))
        self.outcome = Outcome([], [])

    def run(self, horizon: int) -> Outcome:
        """Work every instant up to the horizon, and the horizon itself."""
        rounds = 0
        while self.now <= horizon:
            self.round()
            before, self.now = self.now, self.next_instant()
            rounds = rounds + 1 if self.now == before else 0
            refuse_standstill(rounds, self.now)
        self.outcome.tasks.sort(key=lambda task: (task.start, task.processor))
        self.outcome.responses.sort(key=lambda response: (response.ended, response.job))
        return self.outcome

    def round(self) -> None:
        """Work this instant once; tasks of no demand that start in it ask for another round."""
        self.complete_tasks()
        self.join_io()
        self.complete_io()
        self.task_distribution.switch(self.now)
        self.demand_distribution.switch(self.now)
        self.dispatch()
        self.select()

    def next_instant(self) -> int:
        """Return the instant of the next event, this one again if something of it is left."""
        instants = [
            processor.serving_end for processor in self.processors if processor.serving is not None
        ]
        instants += [end for end, _ in self.in_io]
        switches = (self.task_distribution.next_switch, self.demand_distribution.next_switch)
        instants += [switch for switch in switches if switch is not None]
        return min(instants)

    def complete_tasks(self) -> None:
        """(a) Every count of uncompleted tasks falls."""
        for processor in self.processors:
            if processor.serving is not None and processor.serving_end == self.now:
                job = processor.serving.job
                processor.serving = None
                self.visits[job].uncompleted -= 1
                if self.visits[job].uncompleted == 0:
                    self.ended.append(job)

    def join_io(self) -> None:
        """(b) Jobs of which the last task ended join the I/O queue: its server is free at the end
        last given (rule 13)."""
        for job in sorted(self.ended):
            visit = self.visits[job]
            start = max(self.now, self.last_io_end)
            self.last_io_end = start + visit.io_service
            self.in_io.append((self.last_io_end, job))
            times = (visit.submitted, self.now, start, self.last_io_end)
            self.outcome.responses.append(Response(job, visit.number, visit.tasks, *times))
        self.ended = []

    def complete_io(self) -> None:
        """(c) Jobs of which the I/O is over come back; one of no service that joined in (b) may be
        among them."""
        self.back += [job for end, job in self.in_io if end == self.now]
        self.in_io = [(end, job) for end, job in self.in_io if end != self.now]

    def dispatch(self) -> None:
        """(e) Jobs that are back dispatch, in order of job number."""
        for job in sorted(self.back):
            number = self.visits[job].number + 1 if job in self.visits else 0
            fractions = self.draws.visit(job, number)
            demands, estimates, io_service = self.drawn(job, number, fractions)
            self.visits[job] = Visit(number, len(demands), self.now, len(demands), io_service)
            for task, (demand, estimated) in enumerate(zip(demands, estimates, strict=True)):
                processor = self.routed(fractions.tasks[task].route)
                processor.waiting.append(
                    QueuedTask(job, number, task, self.sequence, demand, estimated, self.now)
                )
                self.sequence += 1
        self.back = []

    def drawn(
        self, job: int, number: int, fractions: VisitDraws
    ) -> tuple[list[int], list[int], int]:
        """Return demands, estimates and I/O service by the distributions in force, or as
        scripted."""
        if self.settings.scripted is not None:
            return self.settings.scripted(job, number)
        uniform = self.task_distribution.in_force() == "uniform"
        number_of_tasks = (uniform_tasks if uniform else normal_tasks)(
            len(self.processors), fractions.parallelism
        )
        chosen = fractions.tasks[:number_of_tasks]
        demands = [self.demand(task) for task in chosen]
        estimates = [
            estimate(demand, self.settings.error, task.error)
            for demand, task in zip(demands, chosen, strict=True)
        ]
        return demands, estimates, exponential(self.settings.mean_io, fractions.io)

    def demand(self, task: TaskDraws) -> int:
        """Return the demand of one task by the distribution in force."""
        mean = self.settings.mean_demand
        if self.demand_distribution.in_force() == "exponential":
            return exponential(mean, task.first)
        return branching_erlang(mean, self.settings.variation, task.first, task.branch, task.second)

    def routed(self, u: float) -> Processor:
        """Return the processor of the next task (rule 8)."""
        candidates = self.processors
        if self.settings.routing == "shortest":
            shortest = min(processor.length() for processor in self.processors)
            candidates = [
                processor for processor in self.processors if processor.length() == shortest
            ]
            if self.settings.ties == "lowest":
                return candidates[0]
        return candidates[math.floor(len(candidates) * u)]

    def select(self) -> None:
        """(f) Each idle processor, in order of index, selects one task."""
        for processor in self.processors:
            if processor.serving is None and processor.waiting:
                task = self.selected(processor)
                processor.waiting.remove(task)
                processor.serving = task
                processor.serving_end = self.now + task.demand
                times = (task.dispatched, self.now, processor.serving_end)
                self.outcome.tasks.append(
                    Task(task.job, task.visit, task.task, processor.index, *times)
                )

    def selected(self, processor: Processor) -> QueuedTask:
        """Return the task that the discipline takes next (rule 9)."""
        if self.settings.discipline == "lstf" and processor.selections == self.settings.limit:
            processor.selections = 0
            return min(processor.waiting, key=lambda task: task.sequence)
        processor.selections += 1
        return min(processor.waiting, key=self.rank)

    def rank(self, task: QueuedTask) -> tuple[int, int]:
        """Return what the discipline compares, then the sequence."""
        match self.settings.discipline:
            case "fcfs":
                return 0, task.sequence
            case "stf" | "lstf":
                return task.estimate, task.sequence
            case "snutf":
                return self.visits[task.job].uncompleted, task.sequence


TASK_DISTRIBUTIONS = {
    "varying": ("uniform", "normal"),
    "uniform": ("uniform",),
    "normal": ("normal",),
}
DEMAND_DISTRIBUTIONS = {
    "varying": ("exponential", "erlang"),
    "exponential": ("exponential",),
    "erlang": ("erlang",),
}


def simulate(
    draws: Draws,
    *,
    jobs: int,
    horizon: float,
    processors: int = 16,
    routing: Routing = "probabilistic",
    ties: Ties = "random",
    discipline: Discipline = "fcfs",
    limit: int = 10,
    variation: float = 2.0,
    parallelism: Parallelism = "varying",
    demand: Demand = "varying",
    mean_demand: float = 1.0,
    mean_io: float = MEAN_IO,
    parallelism_interval: float = 20.0,
    demand_interval: float = 20.0,
    error: float = 0.0,
    scripted: Script | None = None,
) -> Outcome:
    """Run the network up to the horizon, in seconds, and at it."""
    settings = Settings(
        jobs,
        processors,
        routing,
        ties,
        discipline,
        limit,
        variation,
        mean_demand,
        mean_io,
        error,
        scripted,
    )
    tasks = Alternation(
        TASK_DISTRIBUTIONS[parallelism], parallelism_interval, draws.parallelism_interval
    )
    demands = Alternation(DEMAND_DISTRIBUTIONS[demand], demand_interval, draws.demand_interval)
    return Network(draws, settings, tasks, demands).run(microseconds(horizon))


# ---- Measures (rule 11).


class Measures(NamedTuple):
    """What one replication measures."""

    throughput: float
    """Jobs that completed their I/O in a second."""
    utilisation: float
    greatest_response: int | None
    """Microseconds; None where no response ended in the window."""


def busy_time(outcome: Outcome, start: int, stop: int) -> int:
    """Add up the time of all processors in service between two instants."""
    return sum(max(0, min(task.end, stop) - max(task.start, start)) for task in outcome.tasks)


def measures(
    outcome: Outcome, *, processors: int, window_start: float, window_length: float
) -> Measures:
    """Measure the window (start, start + length], in seconds; it must end by the horizon."""
    start, length = microseconds(window_start), microseconds(window_length)
    stop = start + length
    completions = sum(start < response.io_end <= stop for response in outcome.responses)
    responses = [
        response.ended - response.submitted
        for response in outcome.responses
        if start < response.ended <= stop
    ]
    utilisation = busy_time(outcome, start, stop) / (processors * length)
    return Measures(completions * SECOND / length, utilisation, max(responses, default=None))
