"""The timers of emulated jobs against a count of every microsecond, and against the last instant
that was noted."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest

from qbatch.daemon.core import execution
from qbatch.model.actions import Chunk
from qbatch.model.machine import Host, Machine
from qbatch.model.progress import NEVER, Progress, time_left


class TimedJob(SimpleNamespace):
    @property
    def under_way(self) -> Progress:
        progress: Progress = self.present.progress
        return progress


def timed(procs: int, work: int, at: int, noted: list[int]) -> tuple[Any, Any]:
    """Return a core, which notes when ends fall due, and a job with a timer that has just begun."""
    core = SimpleNamespace(now=at, at=lambda due, what, key, attempt: noted.append(due))
    job = TimedJob(
        present=SimpleNamespace(progress=Progress(procs, work=work)), key="job", attempts=1
    )
    execution.go_on(core, job)  # type: ignore[arg-type]
    return core, job


class Counted:
    """A run of which each microsecond is lived through."""

    def __init__(self, procs: int, work: int) -> None:
        self.procs, self.work, self.done = procs, work, 0
        self.is_running = True

    def is_over(self) -> bool:
        return self.is_running and self.done >= self.work

    def live(self) -> None:
        self.done += self.procs if self.is_running else 0


def one_life(seed: int) -> tuple[int | None, int, int]:
    """Live through one run with random suspensions, resizes and changes of its work; return its end
    and what happened."""
    draw = random.Random(seed)
    noted: list[int] = []
    begin, procs = draw.randint(0, 5), draw.randint(1, 4)
    counted = Counted(procs, draw.randint(0, 120))
    core, job = timed(procs, counted.work, begin, noted)
    timers, progress = execution.Emulated(), job.under_way
    pauses = resizes = 0
    for at in range(begin, begin + 200):
        core.now = at
        assert progress.worked(at) == counted.done
        assert progress.procs == counted.procs
        if counted.is_running:
            assert progress.due == at + time_left(counted.work - counted.done, counted.procs)
            assert progress.due in noted
        else:
            assert (progress.due, progress.since) == (NEVER, NEVER)
        if counted.is_over():
            assert progress.due == at
            return at, pauses, resizes
        kind = draw.random()
        if kind < 0.05 and counted.is_running:
            timers.pause(core, job)
            counted.is_running, pauses = False, pauses + 1
        elif kind < 0.2 and not counted.is_running:
            timers.resume(core, job)
            counted.is_running = True
        elif kind < 0.26:
            counted.procs, resizes = draw.randint(1, 4), resizes + 1
            timers.resize(core, job, counted.procs)
        elif kind < 0.29:
            counted.work = draw.randint(0, 150)
            execution.set_timer(core, job, progress.procs, counted.work)
        if counted.is_over():
            assert progress.due == at
            return at, pauses, resizes
        counted.live()
    return None, pauses, resizes


def test_a_run_ends_on_the_microsecond_at_which_its_work_is_done() -> None:
    lives = [one_life(seed) for seed in range(3000)]
    assert sum(end is not None for end, _, _ in lives) > 2500
    assert sum(pauses > 0 and end is not None for end, pauses, _ in lives) > 500
    assert sum(resizes > 1 and end is not None for end, _, resizes in lives) > 500


def test_a_run_of_unknown_work_is_counted_and_never_due() -> None:
    noted: list[int] = []
    core, job = timed(4, NEVER, 100, noted)
    timers, progress = execution.Emulated(), job.under_way
    core.now = 110
    timers.resize(core, job, 2)
    core.now = 120
    timers.pause(core, job)
    core.now = 150
    timers.resume(core, job)
    assert (progress.worked(151), progress.due, noted) == (4 * 10 + 2 * 10 + 2, NEVER, [])
    core.now = 151
    # It becomes known, and four processor-microseconds are missing.
    execution.set_timer(core, job, 2, 70)
    assert (progress.due, noted) == (155, [155])
    assert progress.end_of(62, 151) == 151
    assert progress.end_of(40, 151) == 140  # as if it had run through on what it has now


@pytest.mark.parametrize(
    ("of_host", "given", "used", "fails"),
    [(8, 2, 3, True), (8, 3, 3, False), (8, 2, 0, False), (0, 0, 3, False)],
)
def test_a_trial_fails_that_uses_more_memory_than_it_was_given_where_memory_counts(
    of_host: int, given: int, used: int, fails: bool
) -> None:
    machine = Machine((Host("a", 1), Host("b", 4, of_host)), single_host=True)
    core, job = timed(2, 10, 0, [])
    core.runs, core.pool_of = (
        SimpleNamespace(run_of=lambda job: 5),
        lambda job: SimpleNamespace(machine=machine),
    )
    job.spec, job.prepared = (
        SimpleNamespace(used_memory=used),
        SimpleNamespace(request=SimpleNamespace(procs=2)),
    )
    job.present.allocation = (Chunk(1, 2, given),)
    for is_trial in (False, True):
        assert execution.Emulated().launch(core, job, 2, is_trial=is_trial) is (is_trial and fails)
    assert job.under_way == Progress(procs=2, since=0, done=0, work=10, due=NEVER if fails else 5)
