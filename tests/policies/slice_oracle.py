"""The time-sliced schedulers the slow and obvious way, written from docs/spec/papers.md 4.10 and
docs/design.md alone.

SCOJO-PECT with conservative or EASY backfilling, with and without groups, and the bottom-line
search inside its slices. Times are integer microseconds.  A row is a job's place in the workload,
and its sequence.  A profile is a list of bookings, asked anew at every instant that may matter.
Numbers in comments are those of the rules of 4.10.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations
from typing import NamedTuple

SECOND = 1_000_000
CLASSES = "SML"
SHARES = {"M": 265, "L": 730}
"""Thousandths of the machine's time, by class (rule 9)."""


class Asked(NamedTuple):
    """One job of the workload; 0 <= run <= estimate."""

    submit: int
    procs: int
    estimate: int
    run: int
    queue: int = -1
    """1, 2 or 3: short, medium, long, where classes go by queue."""


class Piece(NamedTuple):
    """One stretch of time in which a job ran, on its nodes; of no length if the job ended or left
    at once."""

    row: int
    start: int
    end: int
    nodes: tuple[int, ...]


class Outcome(NamedTuple):
    """What became of the workload."""

    start: list[int]
    """First start, by row."""
    end: list[int]
    pieces: list[Piece]
    """In order of start, then row."""
    groups: list[tuple[int, str, tuple[int, ...]]]
    """Instant formed, class, rows in sequence."""
    nodes: int
    pruned: int


class Limits(NamedTuple):
    """When a group forms and how large it grows (4.3)."""

    minimum: int
    machines: float
    factor: float
    seconds: float
    maximum: int


@dataclass(frozen=True)
class Settings:
    """All parameters of a run; times in microseconds."""

    groups: bool = False
    bottom_line: bool = False
    backfill: str = "conservative"
    smart: bool = True
    class_by: str = "estimate"
    cycle: int = 7_200 * SECOND
    switch: int = 60 * SECOND
    short: int = 600 * SECOND
    search: str = "ilds"
    budget: int = 10_000
    select: bool = True
    shift: bool = True
    dynamic: bool = True
    split: bool = True
    level1: bool = True
    level2: bool = True
    medium: tuple[int, float, float, float, int] = (10, 1.5, 2, 800, 20)
    long: tuple[int, float, float, float, int] = (5, 2.0, 1, 15_000, 30)
    node_limit: int = 1_000
    bound: int | None = None

    def __post_init__(self) -> None:
        known = {
            "backfill": ("conservative", "easy"),
            "class_by": ("estimate", "queue"),
            "search": ("ilds", "lex", "dds"),
        }
        for name, values in known.items():
            if getattr(self, name) not in values:
                raise ValueError(
                    f"{name} must be one of {', '.join(values)}, not {getattr(self, name)}"
                )
        if self.groups and self.bottom_line:
            raise ValueError("the bottom line knows no groups")
        if min(slice_lengths(self.cycle, self.short).values()) <= 0:
            raise ValueError("every slice must have a length")
        if self.budget < 1:
            raise ValueError("a search needs one iteration")

    def limits(self, kind: str) -> Limits:
        """The group limits of class M or L."""
        return Limits(*(self.medium if kind == "M" else self.long))


def slice_lengths(cycle: int = 7_200 * SECOND, short: int = 600 * SECOND) -> dict[str, int]:
    """Rule 2: the length of a slice, by class; that of M in whole seconds."""
    medium = (cycle - short) * 265 // 995 // SECOND * SECOND
    return {"S": short, "M": medium, "L": cycle - short - medium}


# ---- the profile: a list of bookings
# -------------------------------------------------------------------------------


class Booking(NamedTuple):
    """Processors taken over [start, end)."""

    start: int
    end: int
    procs: int


def used(bookings: Iterable[Booking], instant: int) -> int:
    """Processors taken at one instant."""
    return sum(booking.procs for booking in bookings if booking.start <= instant < booking.end)


def fits(bookings: Sequence[Booking], machine: int, width: int, start: int, end: int) -> bool:
    """Whether so many processors are free all over [start, end)."""
    near = [booking for booking in bookings if booking.start < end and start < booking.end]
    instants = {start} | {booking.start for booking in near if booking.start > start}
    return all(used(near, instant) + width <= machine for instant in instants)


def earliest(bookings: Sequence[Booking], machine: int, width: int, length: int, now: int) -> int:
    """The first instant from now on at which so many processors are free for so long."""
    instants = {now} | {booking.end for booking in bookings if booking.end > now}
    return next(at for at in sorted(instants) if fits(bookings, machine, width, at, at + length))


def holes(
    bookings: Sequence[Booking], machine: int, width: int, now: int, until: int
) -> list[tuple[int, int]]:
    """The maximal spans [a, b) from now on, b <= until, in which so many processors are free, in
    order."""
    borders = {edge for booking in bookings for edge in booking[:2] if edge > now} | {now}
    spans: list[tuple[int, int]] = []
    begun: int | None = None
    for instant in sorted(borders):
        room = used(bookings, instant) + width <= machine
        if room and begun is None:
            begun = instant
        if not room and begun is not None:
            spans.append((begun, instant))
            begun = None
    return [span for span in spans if span[1] <= until]


# ---- facts of one waiting job, and its slowdown
# --------------------------------------------------------------------


class Fact(NamedTuple):
    """What a search knows of a job."""

    row: int
    submit: int
    procs: int
    estimate: int

    @property
    def books(self) -> int:
        """The time that the job books: its estimate, at least one second."""
        return max(self.estimate, SECOND)

    @property
    def work(self) -> int:
        return self.procs * self.estimate


class Placed(NamedTuple):
    """A job and its start in class time."""

    job: Fact
    start: int

    @property
    def end(self) -> int:
        return self.start + self.job.books

    @property
    def booking(self) -> Booking:
        return Booking(self.start, self.end, self.job.procs)


def stretched(job: Fact | Asked, kind: str, now: int, start: int) -> Fraction:
    """Rule 9 without the ceiling, not below 1."""
    age, ahead, share = now - job.submit, start + job.estimate - now, SHARES[kind]
    return max(
        Fraction(1), Fraction(age * share + 1000 * ahead, share * max(job.estimate, 600 * SECOND))
    )


def slowdown(job: Fact | Asked, kind: str, now: int, start: int) -> int:
    """Rule 9: the estimated slowdown of a job of class M or L that starts at this class time."""
    age, ahead, share = now - job.submit, start + job.estimate - now, SHARES[kind]
    return max(1, -(-(age * share + 1000 * ahead) // (share * max(job.estimate, 600 * SECOND))))


# ---- the orders that a search visits (rule 13)
# ---------------------------------------------------------------------


def strays(prefix: Sequence[int]) -> bool:
    """Whether the last choice of a prefix was not the first one left."""
    return any(place not in prefix for place in range(prefix[-1]))


def discrepancies(order: Sequence[int]) -> int:
    """How many choices were not the first one left."""
    return sum(strays(order[: depth + 1]) for depth in range(len(order)))


def allowed(prefix: tuple[int, ...], length: int, kind: str, wave: int) -> bool:
    """Whether the wave of this search has an order that begins like this."""
    depth = len(prefix)
    if kind == "ilds":
        return 0 <= wave - discrepancies(prefix) <= max(length - depth - 1, 0)
    if kind == "dds":
        return depth < wave or strays(prefix) == (depth == wave)
    return True


def below(
    prefix: tuple[int, ...], length: int, kind: str, wave: int
) -> Generator[tuple[int, ...], bool | None, None]:
    """Each prefix under this one, depth first; the answer True cuts what stands below the one just
    given."""
    for place in range(length):
        child = (*prefix, place)
        if place not in prefix and allowed(child, length, kind, wave):
            cut = yield child
            if not cut:
                yield from below(child, length, kind, wave)


def prefixes(length: int, kind: str) -> Generator[tuple[int, ...], bool | None, None]:
    """Each prefix that a search visits: one is one placement."""
    for wave in range(1 if kind == "lex" else length):
        yield from below((), length, kind, wave)


def walk(length: int, kind: str) -> Iterator[tuple[int, ...]]:
    """The orders of so many places, as `lex`, `ilds` or `dds` visits them when nothing is cut."""
    return (prefix for prefix in prefixes(length, kind) if len(prefix) == length)


# ---- placing an order, and what it is worth
# ------------------------------------------------------------------------


class Frame(NamedTuple):
    """What a search stands on: the instant, the machine, what is booked on it before the search,
    the class."""

    now: int
    machine: int
    bookings: tuple[Booking, ...]
    kind: str

    def place(self, job: Fact, before: Sequence[Placed]) -> Placed:
        """The job at its earliest, given the jobs placed before it."""
        taken = [*self.bookings, *(placed.booking for placed in before)]
        return Placed(job, earliest(taken, self.machine, job.procs, job.books, self.now))

    def place_all(self, order: Iterable[Fact]) -> list[Placed]:
        """An order, one job after another."""
        plan: list[Placed] = []
        for job in order:
            plan.append(self.place(job, plan))
        return plan

    def total(self, plan: Iterable[Placed]) -> int:
        """The sum of slowdowns."""
        return sum(slowdown(placed.job, self.kind, self.now, placed.start) for placed in plan)

    def on_top(self, plan: Iterable[Placed]) -> Frame:
        """The same frame with a plan booked."""
        return self._replace(bookings=(*self.bookings, *(placed.booking for placed in plan)))


class Merits(NamedTuple):
    """Makespan, utilisation and sum of responses of a plan (rule 15)."""

    makespan: int
    utilisation: Fraction
    response: Fraction


def merits(frame: Frame, plan: Sequence[Placed]) -> Merits:
    """Rule 15: M, U and R."""
    now = frame.now
    makespan = max(placed.end for placed in plan) - now
    booked = frame.on_top(plan).bookings
    area = sum(b.procs * max(0, min(b.end, now + makespan) - max(b.start, now)) for b in booked)
    ages = sum(now - placed.job.submit for placed in plan)
    ahead = sum(placed.start + placed.job.estimate - now for placed in plan)
    return Merits(
        makespan,
        Fraction(area, frame.machine * makespan),
        ages + Fraction(1000 * ahead, SHARES[frame.kind]),
    )


def replaces(a: Merits, b: Merits) -> bool:
    """Rule 15: whether plan a, of more slowdown, is taken in place of b."""
    close = 10 * a.makespan < 11 * b.makespan and 20 * a.utilisation > 19 * b.utilisation
    better = a.makespan < b.makespan or a.utilisation > b.utilisation or a.response < b.response
    return close and 10 * a.response < 11 * b.response and better


def selected(frame: Frame, candidates: Sequence[list[Placed]], select: bool) -> list[Placed]:
    """Rule 15: the plan chosen of the candidates, which stand in order of falling total."""
    best = candidates[-1]
    for other in reversed(candidates[-3:-1] if select else []):
        if replaces(merits(frame, other), merits(frame, best)):
            best = other
    return best


# ---- the search (rules 10 to 15)
# -----------------------------------------------------------------------------------


class Found(NamedTuple):
    """The plan that a search chose, in its order, and its count of nodes."""

    plan: list[Placed]
    nodes: int
    pruned: int


def long_wide(jobs: Iterable[Fact], frame: Frame) -> list[Fact]:
    """Rule 10: the long-wide jobs in the order that is best for them; fewer than three: none."""
    width, least = (4, 15_000) if frame.kind == "L" else (10, 800)
    wide = [
        job for job in jobs if width * job.procs >= frame.machine and job.estimate >= least * SECOND
    ]
    if len(wide) < 3:
        return []
    largest = sorted(
        sorted(wide, key=lambda job: (-job.work, job.row))[:6], key=lambda job: job.row
    )
    plans = [frame.place_all(order) for order in permutations(largest)]
    best = min(plans, key=lambda plan: (frame.total(plan), max(placed.end for placed in plan)))
    return [placed.job for placed in best]


def initial_order(jobs: Iterable[Fact], wide: Sequence[Fact], frame: Frame) -> list[Placed]:
    """Rule 11: always the job of largest slowdown if placed next; of the long-wide only the next
    one may be it."""
    waiting, queue = [job for job in jobs if job not in wide], list(wide)
    plan: list[Placed] = []
    while waiting or queue:
        tried = [frame.place(job, plan) for job in [*waiting, *queue[:1]]]
        chosen = min(
            tried, key=lambda p: (-stretched(p.job, frame.kind, frame.now, p.start), p.job.row)
        )
        plan.append(chosen)
        (queue if chosen.job in queue else waiting).remove(chosen.job)
    return plan


def shifted(plan: Sequence[Placed], frame: Frame) -> list[Fact] | None:
    """Rule 14: the order in which the first job that nearly fits a hole is pushed into it; None
    without such a job."""
    for place, (job, start) in enumerate(plan):
        before = plan[:place]
        for begin, end in holes(
            frame.on_top(before).bookings, frame.machine, job.procs, frame.now, start
        ):
            if end - begin < job.estimate and 2 * job.estimate <= 3 * (end - begin):
                first = [placed.job for placed in before if placed.start < begin]
                others = [placed.job for placed in before if placed.start >= begin]
                return [*first, job, *others, *(placed.job for placed in plan[place + 1 :])]
    return None


def searched_half(order: Sequence[Fact], frame: Frame, settings: Settings) -> Found:
    """Rules 13 to 15 on one order."""
    candidates: list[list[Placed]] = []
    least: int | None = None
    nodes = pruned = iterations = 0
    plan: list[Placed] = []
    visits = prefixes(len(order), settings.search)
    prefix: tuple[int, ...] | None = next(visits)
    while prefix is not None and iterations < settings.budget:
        plan = plan[: len(prefix) - 1]
        plan.append(frame.place(order[prefix[-1]], plan))
        nodes += 1
        total, left = frame.total(plan), len(order) - len(prefix)
        cut = least is not None and total + left >= least
        pruned += cut and left > 0
        iterations += cut or left == 0
        if not cut and left == 0:
            candidates.append(plan)
            least = total
            other = shifted(plan, frame) if settings.shift else None
            if other is not None and frame.total(moved := frame.place_all(other)) < least:
                candidates.append(moved)
                least = frame.total(moved)
        try:
            prefix = visits.send(cut)
        except StopIteration:
            prefix = None
    return Found(selected(frame, candidates, settings.select), nodes, pruned)


def searched(jobs: Sequence[Fact], frame: Frame, settings: Settings) -> Found:
    """Rules 10 to 15: the plan of a group of class M or L, made on this frame (its bookings: rule
    5, running jobs)."""
    wide = long_wide(jobs, frame) if settings.level1 else []
    first_plan = initial_order(jobs, wide, frame)
    if not settings.level2:
        return Found(first_plan, 0, 0)
    order = [placed.job for placed in first_plan]
    halved = settings.split and len(order) == settings.limits(frame.kind).maximum
    middle = (len(order) + 1) // 2 if halved else len(order)
    plan: list[Placed] = []
    nodes = pruned = 0
    for half in (order[:middle], order[middle:]):
        if half:
            found = searched_half(half, frame.on_top(plan), settings)
            plan, nodes, pruned = plan + found.plan, nodes + found.nodes, pruned + found.pruned
    return Found(plan, nodes, pruned)


def finish_job(
    running: Iterable[Placed], plan: Iterable[Placed], minimum: int, frame: Frame
) -> int | None:
    """Rule 17: the row that is to finish the group by its end; None if fewer plan jobs than the
    minimum stand in it.

    A running job is given as placed now, with what is left of its estimate.
    """
    now, planned = frame.now, {placed.job.row for placed in plan}
    everybody = sorted([*running, *plan], key=lambda placed: (placed.end, placed.job.row))
    highest: Fraction | None = None
    ended, chosen = 0, None
    for row, until in [(placed.job.row, placed.end) for placed in everybody]:
        ended += row in planned
        if ended < minimum:
            continue
        area = sum(p.job.procs * max(0, min(p.end, until) - p.start) for p in everybody)
        utilisation = Fraction(area, frame.machine * (until - now))
        if highest is None or 20 * utilisation > 19 * highest:
            highest = utilisation if highest is None else max(highest, utilisation)
            chosen = row
        elif 4 * utilisation > 3:
            chosen = row
    return chosen


# ---- the bottom line (rule 18)
# -------------------------------------------------------------------------------------


def bottom_line(jobs: Sequence[Fact], frame: Frame, limit: int, bound: int | None) -> list[Placed]:
    """Rule 18: the best plan of a depth-bounded discrepancy walk that stops after so many
    placements."""
    now = frame.now
    order = sorted(
        jobs,
        key=lambda j: (-Fraction(now - j.submit + j.estimate, max(j.estimate, 60 * SECOND)), j.row),
    )
    patience = max(now - job.submit for job in jobs) if bound is None else bound
    best: tuple[tuple[int, int], list[Placed]] | None = None
    plan: list[Placed] = []
    for placements, prefix in enumerate(prefixes(len(order), "dds")):
        if best is not None and placements >= limit:
            break
        plan = plan[: len(prefix) - 1]
        plan.append(frame.place(order[prefix[-1]], plan))
        if len(prefix) == len(order):
            value = bottom_value(plan, patience)
            if best is None or value < best[0]:
                best = (value, plan)
    return best[1] if best is not None else []


def bottom_value(plan: Iterable[Placed], patience: int) -> tuple[int, int]:
    """Rule 18: total excessive wait, then total slowdown in millionths."""
    excess = millionths = 0
    for job, start in plan:
        excess += max(0, start - job.submit - patience)
        millionths += (
            1_000_000 * (start + job.estimate - job.submit) // max(job.estimate, 600 * SECOND)
        )
    return excess, millionths


# ---- the simulation
# ------------------------------------------------------------------------------------------------


@dataclass
class Group:
    """The group of a class: its rows in plan order, and how far its end has come."""

    order: list[int]
    finish: int | None
    elsewhere: bool = False
    """The finish job has ended in another class's slice."""
    over: bool = False
    """The end of the group waits for the next pass of a slice of its class."""


class Slice(NamedTuple):
    """A slice that ended, or a switch ("-")."""

    kind: str
    start: int
    end: int


class Simulation:
    """One workload under one set of parameters, run round by round."""

    def __init__(self, jobs: Sequence[Asked], procs: int, settings: Settings) -> None:
        if [job.submit for job in jobs] != sorted(job.submit for job in jobs):
            raise ValueError("jobs must stand in order of submission")
        if any(not 0 <= job.run <= job.estimate or not 0 < job.procs <= procs for job in jobs):
            raise ValueError("a job must fit the machine and run no longer than its estimate")
        if settings.class_by == "queue" and any(job.queue not in (1, 2, 3) for job in jobs):
            raise ValueError("a queue must be 1, 2 or 3")
        self.jobs, self.procs, self.settings = jobs, procs, settings
        self.lengths = slice_lengths(settings.cycle, settings.short)
        self.kind = [self.class_of(job) for job in jobs]
        self.state = ["away" for _ in jobs]
        """away, waits, planned, runs, suspended or ended."""
        self.executed = [0 for _ in jobs]
        """Time executed before the piece that runs."""
        self.since = [0 for _ in jobs]
        """When the piece that runs began."""
        self.nodes: list[tuple[int, ...]] = [() for _ in jobs]
        self.start = [-1 for _ in jobs]
        self.end = [-1 for _ in jobs]
        self.pieces: list[Piece] = []
        self.groups: dict[str, Group] = {}
        self.formed: list[tuple[int, str, tuple[int, ...]]] = []
        self.searched_nodes = self.pruned = 0
        self.now = 0
        self.phase, self.slice, self.until = "idle", "", 0
        self.begun = 0
        self.history: list[Slice] = []
        self.fresh: list[int] = []
        self.bookings: list[Booking] = []

    def class_of(self, job: Asked) -> str:
        """Rule 1."""
        if self.settings.class_by == "queue":
            return CLASSES[job.queue - 1]
        return (
            "S" if job.estimate < 600 * SECOND else "M" if job.estimate < 10_800 * SECOND else "L"
        )

    # -- small questions

    def rows(self, state: str, kind: str | None = None) -> list[int]:
        """The rows in this state, of this class or of any, in sequence."""
        return [
            r
            for r, s in enumerate(self.state)
            if s == state and (kind is None or self.kind[r] == kind)
        ]

    def remaining(self, row: int) -> int:
        """`rem`: estimate less executed time, at least one second."""
        running = self.now - self.since[row] if self.state[row] == "runs" else 0
        return max(self.jobs[row].estimate - self.executed[row] - running, SECOND)

    def ends(self, row: int) -> int:
        """When a running row completes, if it is not suspended."""
        return self.since[row] + self.jobs[row].run - self.executed[row]

    def lives(self, kind: str) -> bool:
        """Rule 3."""
        return any(
            self.kind[r] == kind and s not in ("away", "ended") for r, s in enumerate(self.state)
        )

    def others(self) -> list[str]:
        """The classes that do not own the slice, shortest first."""
        return [kind for kind in CLASSES if kind != self.slice]

    def fact(self, row: int) -> Fact:
        job = self.jobs[row]
        return Fact(row, job.submit, job.procs, job.estimate)

    def frame(self) -> Frame:
        """The profile as booked so far in this pass."""
        return Frame(self.now, self.procs, tuple(self.bookings), self.slice)

    # -- instants and rounds

    def run(self) -> Outcome:
        """The whole workload."""
        while any(state != "ended" for state in self.state):
            self.now = self.next_instant()
            while self.round():
                pass
        self.pieces.sort(key=lambda piece: (piece.start, piece.row, piece.end))
        return Outcome(
            self.start, self.end, self.pieces, self.formed, self.searched_nodes, self.pruned
        )

    def next_instant(self) -> int:
        """The next arrival, completion, end of slice or end of switch."""
        instants = [self.jobs[row].submit for row in self.rows("away")] + [
            self.ends(row) for row in self.rows("runs")
        ]
        return min(instants if self.phase == "idle" else [*instants, self.until])

    def round(self) -> bool:
        """Completions, arrivals, one pass; whether another round at this instant must follow."""
        for row in [row for row in self.rows("runs") if self.ends(row) == self.now]:
            self.complete(row)
        self.fresh = [row for row in self.rows("away") if self.jobs[row].submit == self.now]
        for row in self.fresh:
            self.state[row] = "waits"
        self.settle_clock()
        if self.phase == "slice":
            self.work()
        return any(self.ends(row) == self.now for row in self.rows("runs"))

    def complete(self, row: int) -> None:
        """A job ends; the clock still shows the slice that ran up to this instant (rule 17)."""
        self.close_piece(row)
        self.state[row], self.end[row] = "ended", self.now
        for kind, group in self.groups.items():
            if kind == self.slice:
                group.over = group.over or group.elsewhere or row == group.finish
            elif row == group.finish:
                group.elsewhere = True

    def close_piece(self, row: int) -> None:
        self.pieces.append(Piece(row, self.since[row], self.now, self.nodes[row]))
        self.executed[row] += self.now - self.since[row]

    # -- the clock (rules 3 and 4)

    def settle_clock(self) -> None:
        """Bring the clock to this instant."""
        if self.phase == "slice" and (self.now == self.until or not self.lives(self.slice)):
            if any(self.lives(kind) for kind in self.others()):
                self.begin_switch()
            elif self.lives(self.slice):
                self.until = self.now + self.lengths[self.slice]
            else:
                self.begin_idle()
        if self.phase == "switch" and self.now == self.until:
            self.history.append(Slice("-", self.begun, self.now))
            place = CLASSES.index(self.slice) + 1
            self.begin_slice(CLASSES[place:] + CLASSES[:place])
        elif self.phase == "idle":
            self.begin_slice(CLASSES)

    def begin_switch(self) -> None:
        self.history.append(Slice(self.slice, self.begun, self.now))
        for row in self.rows("runs"):
            self.close_piece(row)
            self.state[row] = "suspended"
        self.phase, self.begun, self.until = "switch", self.now, self.now + self.settings.switch

    def begin_idle(self) -> None:
        self.history.append(Slice(self.slice, self.begun, self.now))
        self.phase = "idle"

    def begin_slice(self, turns: str) -> None:
        """The slice of the first living class of these; its suspended jobs resume."""
        kind = next((kind for kind in turns if self.lives(kind)), None)
        if kind is None:
            self.phase = "idle"
            return
        self.phase, self.slice, self.begun = "slice", kind, self.now
        self.until = self.now + self.lengths[kind]
        for row in self.rows("suspended", kind):
            if not self.own_nodes_idle(row):
                raise AssertionError("a suspended job cannot resume")
            self.set_running(row)

    # -- nodes (rule 6)

    def busy(self) -> set[int]:
        return {node for row in self.rows("runs") for node in self.nodes[row]}

    def own_nodes_idle(self, row: int) -> bool:
        return self.busy().isdisjoint(self.nodes[row])

    def nodes_for(self, row: int) -> tuple[int, ...] | None:
        """The lowest nodes on which no job runs and which no suspended job of the row's class
        owns."""
        owned = {
            node for other in self.rows("suspended", self.kind[row]) for node in self.nodes[other]
        }
        closed = owned | self.busy()
        free = [node for node in range(self.procs) if node not in closed]
        wanted = self.jobs[row].procs
        return tuple(free[:wanted]) if len(free) >= wanted else None

    def start_job(self, row: int) -> None:
        """First start, on nodes of rule 6."""
        nodes = self.nodes_for(row)
        if nodes is None:
            raise AssertionError("counts did not suffice")
        self.nodes[row], self.start[row] = nodes, self.now
        self.set_running(row)

    def set_running(self, row: int) -> None:
        self.state[row], self.since[row] = "runs", self.now

    # -- a pass in a slice

    def work(self) -> None:
        """Rules 5, 16 or 18 for the class of the slice, then rule 7; before them rule 8."""
        kind = self.slice
        self.book_running()
        if self.settings.groups and kind in SHARES:
            self.renew_group(kind)
        if kind in self.groups:
            self.start_planned(self.groups[kind])
        elif self.settings.bottom_line:
            self.start_bottom_line()
        elif self.settings.backfill == "easy":
            self.start_easy()
        else:
            self.start_or_book([self.fact(row) for row in self.rows("waits", kind)])
        if self.settings.smart:
            self.smart_backfill()
        for group in self.groups.values():
            group.over = group.over or not any(self.state[row] == "planned" for row in group.order)

    def book_running(self) -> None:
        """Rule 5: running jobs of the class over what remains, others no further than the slice's
        end."""
        self.bookings = [
            Booking(self.now, self.booked_until(row), self.jobs[row].procs)
            for row in self.rows("runs")
        ]

    def booked_until(self, row: int) -> int:
        whole = self.now + self.remaining(row)
        return whole if self.kind[row] == self.slice else min(whole, self.until)

    def start_or_book(self, jobs: Iterable[Fact]) -> None:
        """Each job in turn at its earliest; one that is placed at now starts."""
        for placed in self.frame().place_all(jobs):
            self.bookings.append(placed.booking)
            if placed.start == self.now:
                self.start_job(placed.job.row)

    def start_easy(self) -> None:
        """Rule 5, `easy`: one reservation for the first that does not fit."""
        reserved = False
        for row in self.rows("waits", self.slice):
            job = self.fact(row)
            placed = self.frame().place(job, [])
            if placed.start == self.now:
                self.bookings.append(placed.booking)
                self.start_job(row)
            elif not reserved:
                self.bookings.append(placed.booking)
                reserved = True

    def start_bottom_line(self) -> None:
        """Rule 18."""
        jobs = [self.fact(row) for row in self.rows("waits", self.slice)]
        if not jobs:
            return
        for placed in bottom_line(
            jobs, self.frame(), self.settings.node_limit, self.settings.bound
        ):
            self.bookings.append(placed.booking)
            if placed.start == self.now:
                self.start_job(placed.job.row)

    def try_now(self, row: int, until: int, booked: int) -> None:
        """Start or resume a row that fits over [now, until) on its nodes, and book it up to
        `booked`."""
        resumes = self.state[row] == "suspended"
        reachable = self.own_nodes_idle(row) if resumes else self.nodes_for(row) is not None
        width = self.jobs[row].procs
        if reachable and fits(self.bookings, self.procs, width, self.now, until):
            self.bookings.append(Booking(self.now, booked, width))
            if resumes:
                self.set_running(row)
            else:
                self.start_job(row)

    def smart_backfill(self) -> None:
        """Rule 7: other classes' jobs, to the end of the slice."""
        others = self.others()
        suspended = [row for kind in others for row in self.rows("suspended", kind)]
        orders = [self.groups[kind].order for kind in others if kind in self.groups]
        planned = [row for order in orders for row in order if self.state[row] == "planned"]
        waiting = [row for kind in others for row in self.rows("waits", kind)]
        for row in suspended + planned + waiting:
            until = self.booked_until(row)
            self.try_now(row, until, until)

    # -- groups

    def renew_group(self, kind: str) -> None:
        """Rules 17 and 8: an ended group goes, and a new one may form at once."""
        if kind in self.groups and self.groups[kind].over:
            for row in self.groups.pop(kind).order:
                if self.state[row] == "planned":
                    self.state[row] = "waits"
        waiting = [self.fact(row) for row in self.rows("waits", kind)]
        if kind not in self.groups and self.group_forms(waiting, self.settings.limits(kind)):
            self.form_group(waiting[: self.settings.limits(kind).maximum])

    def group_forms(self, waiting: Sequence[Fact], limits: Limits) -> bool:
        """The three tests of 4.3."""
        procs, work = sum(job.procs for job in waiting), sum(job.work for job in waiting)
        ideal = Fraction(str(limits.factor)) * Fraction(str(limits.seconds)) * SECOND
        return (
            len(waiting) >= limits.minimum
            and procs > Fraction(str(limits.machines)) * self.procs
            and work > ideal * self.procs
        )

    def form_group(self, jobs: Sequence[Fact]) -> None:
        """Search a plan and find the job that is to finish the group."""
        kind, frame = self.slice, self.frame()
        found = searched(jobs, frame, self.settings)
        running = []
        for row in self.rows("runs", kind):
            job = self.fact(row)._replace(estimate=self.remaining(row))
            running.append(Placed(job, self.now))
        finish = finish_job(running, found.plan, self.settings.limits(kind).minimum, frame)
        self.groups[kind] = Group([placed.job.row for placed in found.plan], finish)
        self.formed.append((self.now, kind, tuple(job.row for job in jobs)))
        self.searched_nodes += found.nodes
        self.pruned += found.pruned
        for job in jobs:
            self.state[job.row] = "planned"

    def start_planned(self, group: Group) -> None:
        """Rule 16, but for its last step."""
        self.start_or_book([self.fact(row) for row in group.order if self.state[row] == "planned"])
        for row in self.fresh if self.settings.dynamic else []:
            ours = self.kind[row] == self.slice
            if self.state[row] == "waits" and (ours or self.settings.smart):
                whole = self.now + self.remaining(row)
                until = min(whole, self.until)
                self.try_now(row, until, whole if ours else until)
        for row in self.rows("waits", self.slice):
            whole = self.now + self.remaining(row)
            self.try_now(row, whole, whole)


def simulate(
    jobs: Sequence[Asked],
    procs: int,
    *,
    groups: bool = False,
    bottom_line: bool = False,
    backfill: str = "conservative",
    smart: bool = True,
    class_by: str = "estimate",
    cycle: int = 7_200 * SECOND,
    switch: int = 60 * SECOND,
    short: int = 600 * SECOND,
    search: str = "ilds",
    budget: int = 10_000,
    select: bool = True,
    shift: bool = True,
    dynamic: bool = True,
    split: bool = True,
    level1: bool = True,
    level2: bool = True,
    medium: tuple[int, float, float, float, int] = (10, 1.5, 2, 800, 20),
    long: tuple[int, float, float, float, int] = (5, 2.0, 1, 15_000, 30),
    node_limit: int = 1_000,
    bound: int | None = None,
) -> Outcome:
    """Run a workload; all times are microseconds, but for the seconds in `medium` and `long`."""
    settings = Settings(
        groups=groups,
        bottom_line=bottom_line,
        backfill=backfill,
        smart=smart,
        class_by=class_by,
        cycle=cycle,
        switch=switch,
        short=short,
        search=search,
        budget=budget,
        select=select,
        shift=shift,
        dynamic=dynamic,
        split=split,
        level1=level1,
        level2=level2,
        medium=medium,
        long=long,
        node_limit=node_limit,
        bound=bound,
    )
    return Simulation(jobs, procs, settings).run()
