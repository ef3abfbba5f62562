"""Decisions a second of the Gymnasium environment, and of a plain Python stand-in for the
environment of RLScheduler, in one run.

The loop of RLScheduler (Zhang, Dai, He, Zhang and Xie, SC 2020; HPCSimPickJobs.py of
DIR-LAB/deep-batch-scheduler): a step takes one of 128 visible jobs.  While the job does not fit,
the loop sorts the running jobs by their ends and goes on to the next end or arrival.  Then the job
starts, and if the queue is empty the loop goes on to the next arrival.  The observation has eight
numbers of each of 128 places: Python computes them job by job and writes them into an array slice
by slice.  The stand-in does the same and counts free processors, where RLScheduler walks through
lists of nodes, which takes longer.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from qbatch.library.gym import SchedulingEnv

SHOWN, FEATURES, LENGTH = 128, 8, 256
TWELVE_HOURS, MOST = 43_200.0, 1.0 - 1e-5
Row = Callable[[str, str], None]


@dataclass(slots=True)
class PlainJob:
    """A job of the log, in seconds; -1 is unknown."""

    submit: float
    run: float
    estimate: float
    procs: int
    memory: int = -1
    user: int = 1
    group: int = 1
    executable: int = -1
    end: float = -1.0


class PlainEnvironment:
    """One log, one pool of processors."""

    def __init__(self, jobs: list[PlainJob], procs: int) -> None:
        self.jobs, self.procs = jobs, procs
        self.most_user, self.most_group = (
            max(getattr(job, name) for job in jobs) for name in ("user", "group")
        )
        self.longest = max(job.estimate for job in jobs)

    def reset(self, first: int) -> np.ndarray:
        self.coming = self.jobs[first + 1 : first + LENGTH]
        self.queue = [self.jobs[first]]
        self.running: list[PlainJob] = []
        self.now, self.free, self.waited = self.jobs[first].submit, self.procs, 0.0
        return self._observe()

    def step(self, place: int) -> tuple[np.ndarray, float, bool]:
        job = self.shown[place]
        while not self._fits(job):
            self._advance()
        self.free -= job.procs
        job.end = self.now + job.run
        self.running.append(job)
        self.waited += self.now - job.submit
        self.queue.remove(job)
        while not self.queue:
            if not self.coming:
                return np.zeros(SHOWN * FEATURES), -self.waited / LENGTH, True
            self._advance()
        return self._observe(), 0.0, False

    def _fits(self, job: PlainJob) -> bool:
        return job.procs <= self.free

    def _advance(self) -> None:
        self.running.sort(key=lambda run: run.end)
        if self.coming and (not self.running or self.coming[0].submit <= self.running[0].end):
            job = self.coming.pop(0)
            self.now = max(self.now, job.submit)
            self.queue.append(job)
        else:
            job = self.running.pop(0)
            self.now = max(self.now, job.end)
            self.free += job.procs

    def _observe(self) -> np.ndarray:
        vector, rows = np.zeros(SHOWN * FEATURES), []
        self.queue.sort(key=lambda job: job.submit)
        self.shown = self.queue[:SHOWN]
        for place in range(SHOWN):
            if place < len(self.shown):
                job = self.shown[place]
                wait = min((self.now - job.submit) / TWELVE_HOURS, MOST)
                length = min(job.estimate / self.longest, MOST)
                width = min(job.procs / self.procs, MOST)
                memory = 1 if job.memory == -1 else min(job.memory / 1e6, MOST)
                user = 1 if job.user == -1 else min(job.user / self.most_user, MOST)
                group = 1 if job.group == -1 else min(job.group / self.most_group, MOST)
                program = 1 if job.executable == -1 else min(job.executable / 1e3, MOST)
                rows.append(
                    [
                        wait,
                        length,
                        width,
                        memory,
                        user,
                        group,
                        program,
                        MOST if self._fits(job) else 1e-5,
                    ]
                )
            else:
                rows.append([0, 1, 1, 1, 1, 1, 1, 0])
        for place in range(SHOWN):
            vector[place * FEATURES : (place + 1) * FEATURES] = rows[place]
        return vector


def figures(row: Row, log: Path, *, is_short: bool) -> None:
    """Measure both in turn, with an agent that always takes the first job: decisions a second of
    processor time."""
    env = SchedulingEnv(str(log), jobs=SHOWN, length=LENGTH, reward="wait_mean_s")
    work = env._work
    columns = (work.submit / 1e6, work.run / 1e6, work.estimate / 1e6, work.procs)
    jobs = [
        PlainJob(*numbers) for numbers in zip(*(column.tolist() for column in columns), strict=True)
    ]
    plain = PlainEnvironment(jobs, env.machine.procs)
    episodes = 3 if is_short else 30

    def of_ours(seed: int) -> tuple[int, float]:
        env.reset(options={"first": seed * 50})
        count, is_over, reward = 0, False, 0.0
        while not is_over:
            _, reward, is_over, _, _ = env.step(0)
            count += 1
        return count, reward

    def of_plain(seed: int) -> tuple[int, float]:
        plain.reset(seed * 50)
        count, is_over, reward = 0, False, 0.0
        while not is_over:
            _, reward, is_over = plain.step(0)
            count += 1
        return count, reward

    # The same schedules.
    assert all(abs(of_ours(seed)[1] - of_plain(seed)[1]) < 1e-6 for seed in range(episodes))
    rates = {}
    for name, make in (("ours", of_ours), ("plain", of_plain)) * 2:
        begin, count = time.process_time(), 0
        for seed in range(episodes):
            count += make(seed)[0]
        rates[name] = max(rates.get(name, 0.0), count / (time.process_time() - begin))
    ratio = rates["ours"] / rates["plain"]
    row(
        (
            f"decisions a second, {SHOWN} jobs shown: the environment; a plain Python loop like "
            "RLScheduler's; the ratio (aim 10)"
        ),
        f"{rates['ours']:,.0f}; {rates['plain']:,.0f}; {ratio:.1f}",
    )
