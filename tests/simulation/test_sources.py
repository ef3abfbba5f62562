"""Where jobs come from: a log, and users who submit their next job when they have seen the end of
the last (a closed loop)."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from msgspec.structs import replace

from qbatch.engine.round import Round
from qbatch.model.errors import DecisionError, InputError, UsageError
from qbatch.model.job import Job
from qbatch.model.machine import Host, Machine, one_host
from qbatch.model.record import Schedule, Workload
from qbatch.policies import load_policy
from qbatch.simulation import run
from qbatch.simulation.sources import Arrival, LogSource, workload_of
from tests.harness import size

SECOND = 1_000_000


@dataclass(frozen=True)
class Wish:
    """A job that a user will want: he thinks for ``think`` after the end of his last one, then
    submits it."""

    think: int
    procs: int
    estimate: int
    run: int


def wishes_of(
    seed: int, procs: int, *, least_think: int, users: int = 5, jobs: int = 30
) -> list[list[Wish]]:
    """Draw each user's wishes on a coarse grid of times, for many ties; some run times are beyond
    their estimates, some 0."""
    draw = random.Random(seed)
    grain = draw.choice([1, SECOND, 7 * SECOND])

    def wish() -> Wish:
        run_time = draw.choice([0, 1, 2, 3, 5, 9]) * grain
        estimate = max(run_time + draw.choice([-2, -1, 0, 0, 1, 4]) * grain, 0)
        return Wish(
            draw.randint(least_think, 4) * grain,
            draw.choice([1, 1, 2, 3, procs]),
            estimate,
            run_time,
        )

    return [[wish() for _ in range(draw.randint(1, jobs))] for _ in range(users)]


class ClosedLoop:
    """Each user has one job at a time."""

    size = 0

    def __init__(self, wishes: list[list[Wish]], procs: int) -> None:
        self.wishes = wishes
        self.procs = procs
        self.made: list[Arrival] = []
        self.user_of: list[int] = []
        self.places = [0] * len(wishes)
        self.coming: list[tuple[int, int]] = []
        for user in range(len(wishes)):
            self._plan(user, 0)

    def _plan(self, user: int, seen: int) -> None:
        if self.places[user] < len(self.wishes[user]):
            heapq.heappush(self.coming, (seen + self.wishes[user][self.places[user]].think, user))

    def next_instant(self) -> int | None:
        return self.coming[0][0] if self.coming else None

    def take(self, at: int) -> list[Arrival]:
        first = len(self.made)
        while self.coming and self.coming[0][0] <= at:
            submit, user = heapq.heappop(self.coming)
            wish = self.wishes[user][self.places[user]]
            self.places[user] += 1
            row = len(self.made)
            job = Job(
                row=row,
                number=row + 1,
                submit=submit,
                procs=wish.procs,
                estimate=wish.estimate,
                user=user,
            )
            self.made.append(Arrival(job, wish.run))
            self.user_of.append(user)
        return self.made[first:]

    def ended(self, at: int, rows: Sequence[int]) -> None:
        for row in rows:
            self._plan(self.user_of[row], at)

    def after_round(self, done: Round) -> None:
        assert not done.refused

    def workload(self) -> Workload:
        return workload_of("closed loop", self.procs, self.made)


# An oracle without an engine, a calendar or a source: one loop over the users.


@dataclass
class Entry:
    """One job in the oracle's book."""

    user: int
    submit: int
    wish: Wish
    start: int = -1
    end: int = -1


Decide = Callable[[int, int, list[Entry], list[Entry]], list[Entry]]


def decide_fcfs(now: int, free: int, queue: list[Entry], running: list[Entry]) -> list[Entry]:
    started = []
    for job in queue:
        if job.wish.procs > free:
            break
        free -= job.wish.procs
        started.append(job)
    return started


def decide_easy(now: int, free: int, queue: list[Entry], running: list[Entry]) -> list[Entry]:
    started = decide_fcfs(now, free, queue, running)
    free -= sum(job.wish.procs for job in started)
    rest = queue[len(started) :]
    if not rest:
        return started

    def seen_end(job: Entry) -> int:
        end = (now if job.start < 0 else job.start) + job.wish.estimate
        # A job that has outlived its estimate is taken to end one second from now.
        return now + SECOND if end <= now and 0 <= job.start < now else end

    shadow, extra = now, free
    for job in sorted([*running, *started], key=seen_end):
        if extra >= rest[0].wish.procs and seen_end(job) > shadow:
            break
        shadow, extra = max(seen_end(job), now), extra + job.wish.procs
    extra -= rest[0].wish.procs
    for job in rest[1:]:
        is_short = now + job.wish.estimate <= shadow
        if job.wish.procs <= free and (is_short or job.wish.procs <= extra):
            free -= job.wish.procs
            extra -= 0 if is_short else job.wish.procs
            started.append(job)
    return started


def oracle(wishes: list[list[Wish]], procs: int, decide: Decide) -> list[Entry]:
    """Return the jobs in order of arrival."""
    book: list[Entry] = []
    left = [list(own) for own in wishes]
    comes: dict[int, int] = {user: own[0].think for user, own in enumerate(left) if own}
    while True:
        running = [job for job in book if job.start >= 0 and job.end < 0]
        ends = [job.start + job.wish.run for job in running]
        if not ends and not comes:
            return book
        now = min([*ends, *comes.values()])
        for job in running:
            if job.start + job.wish.run == now:
                job.end = now
        for job in running:
            if job.end == now and left[job.user]:
                comes[job.user] = now + left[job.user][0].think
        arriving = sorted(user for user, at in comes.items() if at == now)
        for user in arriving:
            book.append(Entry(user, now, left[user].pop(0)))
            del comes[user]
        running = [job for job in running if job.end < 0]
        queue = [job for job in book if job.start < 0]
        free = procs - sum(job.wish.procs for job in running)
        for job in decide(now, free, queue, running):
            job.start = now


def assert_equal(schedule: Schedule, book: list[Entry], context: object) -> None:
    assert schedule.workload.submit.tolist() == [job.submit for job in book], context
    assert schedule.workload.user.tolist() == [job.user for job in book], context
    assert schedule.start.tolist() == [job.start for job in book], context
    assert schedule.end.tolist() == [job.end for job in book], context


@pytest.mark.parametrize(("policy", "decide"), [("fcfs", decide_fcfs), ("easy", decide_easy)])
def test_a_closed_loop_runs_as_a_plain_loop_over_its_users_says(
    policy: str, decide: Decide
) -> None:
    late = again = 0
    for seed in range(size(60, 300)):
        wishes = wishes_of(seed, 4, least_think=seed % 2)
        schedule = run(ClosedLoop(wishes, 4), one_host(4), load_policy(policy), is_audited=True)
        assert_equal(schedule, oracle(wishes, 4, decide), seed)
        late += int((schedule.workload.run > schedule.workload.estimate).sum())
        again += int((schedule.end == schedule.start).sum())
    assert late > size(200, 1000)  # jobs that outlive their estimates: a log has none
    # Jobs of no length: their users submit again in another round of the same instant.
    assert again > size(200, 1000)


MACHINES = {
    "pool": one_host(8),
    "hosts": Machine((Host("a", 4), Host("b", 4)), single_host=True),
    "chunks": Machine((Host("a", 4), Host("b", 4)), chunked=True),
}


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    "policy",
    [
        "fcfs",
        "easy",
        "hybrid:depth=2",
        "conservative",
        "lxfw-backfill",
        "sjf-backfill",
        "immediate:inner=easy",
        "equispatial",
    ],
)
def test_what_a_closed_loop_made_is_a_log_that_gives_the_same_schedule(
    policy: str, machine: str
) -> None:
    if machine == "chunks" and policy == "equispatial":
        with pytest.raises(UsageError, match="host"):
            run(
                ClosedLoop(wishes_of(1, 4, least_think=1), 8),
                MACHINES[machine],
                load_policy(policy),
            )
        return
    longest = 0
    for seed in range(12):
        source = ClosedLoop(wishes_of(seed, 4, least_think=1), 8)
        closed = run(source, MACHINES[machine], load_policy(policy), is_audited=True)
        assert len(closed.workload) == sum(map(len, source.wishes)), seed
        opened = run(
            closed.workload,
            MACHINES[machine],
            load_policy(policy),
            driver="engine",
            is_audited=True,
        )
        for column in ("start", "end", "kind", "promise", "first_promise"):
            assert np.array_equal(getattr(closed, column), getattr(opened, column)), (seed, column)
        assert closed.queue_max == opened.queue_max
        assert closed.queue_max <= len(source.wishes)  # no user has two jobs
        longest = max(longest, len(closed.workload))
    assert longest > 64  # more jobs than the columns had space for at first


def test_a_source_that_comes_too_late_is_reported() -> None:
    class Late(ClosedLoop):
        def next_instant(self) -> int | None:
            found = super().next_instant()
            return None if found is None else found - 10 * SECOND * len(self.made)

    with pytest.raises(DecisionError, match="time runs backwards"):
        run(Late([[Wish(SECOND, 1, 9, 9)] * 3], 4), one_host(4), load_policy("fcfs"))


@pytest.mark.parametrize("fault", ["row", "submit", "order"])
def test_a_source_that_gives_jobs_out_of_order_is_reported(fault: str) -> None:
    class Disordered(ClosedLoop):
        def take(self, at: int) -> list[Arrival]:
            found = super().take(at)
            if fault == "order":
                rows = [arrival.job.row for arrival in found]
                return [
                    each._replace(job=replace(each.job, row=row))
                    for each, row in zip(found[::-1], rows, strict=True)
                ]
            changed = {"row": {"row": found[0].job.row + 1}, "submit": {"submit": at - 1}}[fault]
            return [found[0]._replace(job=replace(found[0].job, **changed)), *found[1:]]

    wishes = [[Wish(SECOND, 1, 9, 9)], [Wish(SECOND, 1, 9, 9)]]
    with pytest.raises(InputError, match=r"the source gave job \d of .* at 1 s"):
        run(Disordered(wishes, 4), one_host(4), load_policy("fcfs"))


def test_a_source_has_no_compiled_loop() -> None:
    with pytest.raises(UsageError, match="no compiled loop"):
        run(
            ClosedLoop(wishes_of(1, 4, least_think=1), 4),
            one_host(4),
            load_policy("easy"),
            driver="compiled",
        )


def test_a_log_goes_on_at_any_row() -> None:
    made = ClosedLoop(wishes_of(3, 4, least_think=1, users=80, jobs=60), 4)
    work = run(made, one_host(4), load_policy("fcfs")).workload
    assert len(work) > 1024  # more than are made at once
    whole = LogSource(work).take(int(work.submit[-1]))
    assert whole == made.made
    for row in (0, 1, 1023, 1024, 1025, len(work) - 1, len(work)):
        source = LogSource(work, 5)
        source.go_to(row)
        assert source.row == row
        rest = source.take(1 << 60)
        assert [(each.job.row, each.job.submit - 5) for each in rest] == [
            (e.job.row, e.job.submit) for e in whole[row:]
        ]
        assert source.next_instant() is None
        assert source.row == len(work)
