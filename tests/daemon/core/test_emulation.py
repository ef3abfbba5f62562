"""The emulated executor against a count of every microsecond, and against what it was told last."""

from __future__ import annotations

import random

import pytest

from qbatch.daemon.core.emulation import EmulatedExecutor
from qbatch.model.actions import Chunk
from qbatch.model.machine import Host, Machine
from qbatch.model.progress import NEVER, Progress, time_left


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
    """Live through one run with random suspensions, resizes and changes of its work; return its end and what happened."""
    draw = random.Random(seed)
    noted: list[tuple[int, str]] = []
    executor: EmulatedExecutor[str] = EmulatedExecutor(lambda due, key: noted.append((due, key)))
    begin, procs = draw.randint(0, 5), draw.randint(1, 4)
    counted = Counted(procs, draw.randint(0, 120))
    progress = executor.launch("job", procs, counted.work, begin)
    pauses = resizes = 0
    for at in range(begin, begin + 200):
        assert progress.worked(at) == counted.done
        assert progress.procs == counted.procs
        if counted.is_running:
            assert progress.due == at + time_left(counted.work - counted.done, counted.procs)
            assert (progress.due, "job") in noted
        else:
            assert (progress.due, progress.since) == (NEVER, NEVER)
        if counted.is_over():
            assert progress.due == at
            return at, pauses, resizes
        kind = draw.random()
        if kind < 0.05 and counted.is_running:
            executor.pause(progress, at)
            counted.is_running, pauses = False, pauses + 1
        elif kind < 0.2 and not counted.is_running:
            executor.resume("job", progress, at)
            counted.is_running = True
        elif kind < 0.26:
            counted.procs, resizes = draw.randint(1, 4), resizes + 1
            executor.resize("job", progress, counted.procs, at)
        elif kind < 0.29:
            counted.work = draw.randint(0, 150)
            executor.set_work("job", progress, counted.work, at)
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


def test_a_run_of_which_nobody_knows_the_work_is_counted_and_never_due() -> None:
    noted: list[int] = []
    executor: EmulatedExecutor[str] = EmulatedExecutor(lambda due, _: noted.append(due))
    progress = executor.launch("job", 4, NEVER, 100)
    executor.resize("job", progress, 2, 110)
    executor.pause(progress, 120)
    executor.resume("job", progress, 150)
    assert (progress.worked(151), progress.due, noted) == (4 * 10 + 2 * 10 + 2, NEVER, [])
    executor.set_work("job", progress, 70, 151)  # it becomes known, and four processor-microseconds are missing
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
    executor: EmulatedExecutor[str] = EmulatedExecutor(lambda due, key: None)
    machine = Machine((Host("a", 1), Host("b", 4, of_host)), single_host=True)
    assert executor.fails_trial(machine, (Chunk(1, 2, given),), used) is fails
    progress = executor.launch("job", 2, 10, 0)
    executor.give_up(progress)
    assert progress == Progress(procs=2, since=0, done=0, work=10, due=NEVER)
