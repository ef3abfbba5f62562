"""Small nasty workloads: everything happens at the same few instants, on a small machine.

`random_jobs` is for loops over thousands of seeds; `workloads` is the Hypothesis strategy, which
shrinks what it finds. Both give jobs sorted by (submit, sequence), with `run <= estimate`.
"""

import random
from collections.abc import Callable

from hypothesis import strategies as st

from .naive import SECOND, Job, conservative

Shape = tuple[int, int, int]  # procs, estimate, run
Shaper = Callable[[random.Random, int], Shape]


def random_jobs(rng: random.Random, n: int, procs: int) -> list[Job]:
    """`n` jobs for a machine of `procs`, under a regime of arrivals and of shapes drawn from `rng`.

    Some of the workloads are echoes: later jobs are submitted at the very instants at which
    earlier ones start, end or are planned to start. Some are sieges: thin jobs of all lengths
    throng behind a head that waits for one long job.
    """
    if procs > 2 and rng.random() < 0.2:
        return _besieging(rng, n, procs)
    shaper = rng.choice((*_SHAPERS, _narrow, _any_of_all, _any_of_all))
    shapes = [shaper(rng, procs) for _ in range(n)]
    if rng.random() < 0.15:
        shapes = [_cut_finer(rng, shape) for shape in shapes]
    if n > 1 and rng.random() < 0.3:
        return _echoing(rng, shapes, procs)
    return _numbered(_submits(rng, n), shapes)


def _numbered(submits: list[int], shapes: list[Shape]) -> list[Job]:
    return [
        Job(sequence, submit, *shape)
        for sequence, (submit, shape) in enumerate(zip(sorted(submits), shapes, strict=True))
    ]


# --- when jobs come ---------------------------------------------------------------------------


def _submits(rng: random.Random, n: int) -> list[int]:
    """All at once, in bursts, in a trickle of small gaps, or strewn over a short while."""
    regime = rng.randrange(5)
    if regime == 0:
        return [0] * n
    if regime == 1:
        bursts = [rng.randint(0, 12) for _ in range(rng.randint(2, 4))]
        return [rng.choice(bursts) * SECOND for _ in range(n)]
    if regime == 2:
        return [rng.randint(0, 2 * n) * SECOND for _ in range(n)]
    if regime == 3:
        return [rng.randint(0, 4 * n) * SECOND // 2 for _ in range(n)]
    submits = [0]
    for _ in range(n - 1):
        submits.append(submits[-1] + rng.choice((0, 0, 1, 1, 2, 3, 5)) * SECOND)
    return submits[:n]


def _echoing(rng: random.Random, shapes: list[Shape], procs: int) -> list[Job]:
    """The first half comes anyhow; the rest exactly when something happens to the first half."""
    half = rng.randint(1, len(shapes) - 1)
    jobs = _numbered(_submits(rng, half), shapes[:half])
    outcomes = conservative(jobs, procs, rng.choice(("arrival", "start", "none", "scratch")))
    instants = [jobs[-1].submit]
    for job, outcome in zip(jobs, outcomes, strict=True):
        assert outcome.first_promise is not None
        instants += [outcome.start, outcome.end, outcome.first_promise]
        instants += [outcome.start + job.estimate]
    later = [instant for instant in instants if instant >= jobs[-1].submit]
    submits = [job.submit for job in jobs]
    submits += [rng.choice(later) for _ in range(len(shapes) - half)]
    return _numbered(submits, shapes)


def _besieging(rng: random.Random, n: int, procs: int) -> list[Job]:
    """Again and again: a job that runs, a head that it keeps waiting, and a throng behind."""
    jobs: list[tuple[int, Shape]] = []
    submit = 0
    while len(jobs) < n:
        width = rng.randint(1, procs - 1)
        length = rng.randint(2, 8)
        head = rng.randint(procs - width + 1, procs)
        siege = [(width, length), (head, rng.randint(1, 5))]
        for _ in range(rng.randint(2, 6)):
            estimate = rng.choice((0, 1, 2, length - 1, length, length + 1, 20))
            siege.append((rng.randint(1, max(1, procs // 3)), estimate))
        for procs_wanted, estimate in siege:
            run = rng.choice((estimate, estimate, estimate, rng.randint(0, estimate)))
            jobs.append((submit, (procs_wanted, estimate * SECOND, run * SECOND)))
            submit += rng.choice((0, 0, 0, 0, 1)) * SECOND
        submit += rng.randint(0, 12) * SECOND
    return _numbered([at for at, _ in jobs[:n]], [shape for _, shape in jobs[:n]])


# --- what jobs look like ----------------------------------------------------------------------


def _mixed(rng: random.Random, procs: int) -> Shape:
    """Small whole seconds; exact, early and empty jobs side by side."""
    estimate = rng.choice((0, 1, 1, 2, 3, 4, 5, 6, 8, 10))
    run = rng.choice((estimate, estimate, rng.randint(0, estimate), min(1, estimate), 0))
    return rng.randint(1, procs), estimate * SECOND, run * SECOND


def _exact(rng: random.Random, procs: int) -> Shape:
    """Jobs that run for just their estimate; some of them for no time at all."""
    estimate = rng.choice((0, 1, 2, 3, 4, 6, 9)) * SECOND
    return rng.randint(1, procs), estimate, estimate


def _loose(rng: random.Random, procs: int) -> Shape:
    """Estimates far above what happens: every end leaves a big hole."""
    run = rng.randint(0, 4)
    estimate = max(1, run) * rng.choice((1, 2, 5, 20, 100))
    return rng.randint(1, procs), estimate * SECOND, run * SECOND


def _empty(rng: random.Random, procs: int) -> Shape:
    """Mostly zero run times, many zero estimates: several rounds in one instant."""
    estimate = rng.choice((0, 0, 0, 1, 2, 5))
    run = rng.choice((0, 0, 0, estimate))
    return rng.choice((1, procs, rng.randint(1, procs))), estimate * SECOND, run * SECOND


def _wide(rng: random.Random, procs: int) -> Shape:
    """The full machine, all but one, a half: one that waits blocks every other job."""
    width = rng.choice((procs, procs, max(1, procs - 1), (procs + 1) // 2, 1, 1))
    estimate = rng.randint(1, 8)
    return width, estimate * SECOND, rng.choice((estimate, rng.randint(0, estimate))) * SECOND


def _narrow(rng: random.Random, procs: int) -> Shape:
    """Many thin jobs around a few thick ones: holes to fill, and extra processors to fight for."""
    width = rng.choice((1, 1, 2, 2, 3, procs - 1, procs - 2, procs // 2 + 1))
    estimate = rng.randint(1, 12)
    run = rng.choice((estimate, estimate, estimate, rng.randint(0, estimate)))
    return min(max(1, width), procs), estimate * SECOND, run * SECOND


def _brief(rng: random.Random, procs: int) -> Shape:
    """Quarters of a second, and jobs that are over before the second that they book."""
    estimate = rng.choice((0, 0, 1, 2, 3, 4, 5, 8))
    run = rng.choice((0, estimate, rng.randint(0, estimate)))
    return rng.randint(1, procs), estimate * SECOND // 4, run * SECOND // 4


def _alike(rng: random.Random, procs: int) -> Shape:
    """A few equal shapes, so that only the sequence distinguishes jobs."""
    width = rng.choice((1, max(1, procs // 2), procs))
    return width, rng.choice((2, 4)) * SECOND, rng.choice((1, 2)) * SECOND


def _any_of_all(rng: random.Random, procs: int) -> Shape:
    """Every job from another of the regimes above."""
    return rng.choice(_SHAPERS)(rng, procs)


_SHAPERS: tuple[Shaper, ...] = (_mixed, _exact, _loose, _empty, _wide, _narrow, _brief, _alike)


def _cut_finer(rng: random.Random, shape: Shape) -> Shape:
    """The same job with times that are no whole seconds, some of them below one second."""
    procs, estimate, run = shape
    estimate = max(run, rng.choice((estimate // 2, estimate // 4, estimate + 1, estimate)))
    run = rng.choice((run, run // 2, min(estimate, run + 1), estimate))
    return procs, estimate, run


# --- the strategy -----------------------------------------------------------------------------


@st.composite
def workloads(draw: st.DrawFn, max_jobs: int = 12, max_procs: int = 8) -> tuple[list[Job], int]:
    """A list of jobs and the processors of their machine; it shrinks to few, small, early jobs."""
    procs = draw(st.integers(1, max_procs))
    grain = draw(st.sampled_from((SECOND, SECOND, SECOND, SECOND // 2, SECOND // 5, 1)))
    jobs: list[Job] = []
    submit = 0
    for sequence in range(draw(st.integers(1, max_jobs))):
        submit += draw(st.integers(0, 6)) * grain
        run = draw(st.integers(0, 10)) * grain
        estimate = run + draw(st.sampled_from((0, 0, 1, 2, 5, 10, 100))) * grain
        width = draw(st.one_of(st.integers(1, procs), st.just(procs)))
        jobs.append(Job(sequence, submit, width, estimate, run))
    return jobs, procs
