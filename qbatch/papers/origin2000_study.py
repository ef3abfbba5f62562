"""All runs behind Figures 3 to 10: which there are, a pool of processes that makes them, and a folder that keeps them."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context

from qbatch.papers.origin2000_kept import Kept
from qbatch.papers.origin2000_runs import POLICIES, WARMUP_DAYS, Case, RunFigures, simulate
from qbatch.papers.record import Tell
from qbatch.workloads.origin2000 import MONTHS

WORKERS = 2


def silent(_what: str, _done: int, _of: int) -> None:
    """Take progress and tell nobody."""


@dataclass(frozen=True, slots=True)
class Study:
    """What is run: which months, which seeds (a replica each), under which policies, and on how much of a month.

    ``days``: only the first so many days of each month are submitted (None: all of it).
    """

    months: tuple[str, ...] = tuple(MONTHS)
    seeds: tuple[int, ...] = (1, 2, 3, 4, 5)
    policies: tuple[str, ...] = tuple(POLICIES)
    days: int | None = None
    warmup_days: int = WARMUP_DAYS

    def cases(self) -> list[Case]:
        """Return all runs, replica by replica, so that an early end leaves whole replicas."""
        return [
            Case(month, seed, policy, self.days, self.warmup_days)
            for seed in self.seeds
            for month in self.months
            for policy in self.policies
        ]


def run_study(
    study: Study, tell: Tell = silent, *, workers: int = WORKERS, kept: Kept | None = None
) -> list[RunFigures]:
    """Return the figures of all runs of a study, in the order of its cases; ``workers`` processes share them.

    With one worker everything runs in this process.  Runs that ``kept`` has are not made again; those that are made are
    kept there one by one, so that a study that was interrupted goes on where it stopped.
    """
    cases = study.cases()
    results: dict[Case, RunFigures] = {}
    for case in cases:
        if kept is not None and (found := kept.read(case)) is not None:
            results[case] = found
    tell("simulations", len(results), len(cases))
    for one in _made([case for case in cases if case not in results], workers):
        results[one.case] = one
        if kept is not None:
            kept.write(one)
        tell("simulations", len(results), len(cases))
    return [results[case] for case in cases]


def _made(cases: list[Case], workers: int) -> Iterator[RunFigures]:
    """Give the figures of some runs as they are made."""
    if workers == 1 or len(cases) < 2:
        yield from map(simulate, cases)
        return
    # A process begun afresh: a fork of one that draws bars in a thread may inherit a lock that nobody holds.
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_ignore_interrupts)
    try:
        for future in as_completed([pool.submit(simulate, case) for case in cases]):
            yield future.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _ignore_interrupts() -> None:
    """Leave Ctrl-C to the process that the user talks to; it ends the pool."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
