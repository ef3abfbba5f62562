"""How often intervals of a comparison hold the truth, on logs of which the truth is known: ``python
-m tests.bench --coverage``.

The truth of a pair of policies is the ratio of their mean waits over all the logs that are drawn;
of chains it is exact. docs/explanation/statistics.md keeps what this printed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qbatch.metrics.dependence import Estimate, a_day_of, mean_estimate
from qbatch.metrics.ratio import difference_estimate
from qbatch.model.machine import one_host
from qbatch.model.record import MICROSECONDS
from qbatch.policies import load_policy
from qbatch.simulation import prepare, run
from qbatch.simulation.prepare import choose_procs
from qbatch.workloads import generate_log, read_log
from tests.harness import TRACES

Floats = NDArray[np.float64]
PROCS = 64
_DAY = 86_400
_REAL = TRACES / "KTH-SP2-1996-2.1-cln.swf.gz"
_ON_REAL = ("easy", "conservative")
PAIRS = (("fcfs", "easy"), ("easy", "easy:order=sjf"))


@dataclass(frozen=True)
class Coverage:
    """Over some logs: how often the interval of B / A - 1 held the truth, left the possible, said
    that A and B differ."""

    name: str
    truth: float
    logs: int
    held: float
    impossible: float
    differs: float
    plain_held: float
    plain_impossible: float

    def line(self) -> str:
        """Return it as a row of a Markdown table."""
        cells = (
            f"{self.truth:+.1%}",
            f"{self.held:.1%}",
            f"{self.impossible:.1%}",
            f"{self.differs:.1%}",
            f"{self.plain_held:.1%}",
            f"{self.plain_impossible:.1%}",
        )
        return f"| {self.name} | {self.logs} | {' | '.join(cells)} |"


def covered(name: str, truth: float, samples: list[tuple[Floats, Floats, float]]) -> Coverage:
    """Count over samples of a, b and the least block: ours, and the plain interval of the mean
    difference, cut by nothing."""
    ours = [_relative(difference_estimate(a, b, least_block=least), a) for a, b, least in samples]
    plain = [_relative(mean_estimate(b - a, least_block=least), a) for a, b, least in samples]
    n = len(samples)
    return Coverage(
        name,
        truth,
        n,
        sum(low <= truth <= high for low, high in ours) / n,
        sum(low < -1 for low, _ in ours) / n,
        sum(not low <= 0 <= high for low, high in ours) / n,
        sum(low <= truth <= high for low, high in plain) / n,
        sum(low < -1 for low, _ in plain) / n,
    )


def _relative(found: Estimate, a: Floats) -> tuple[float, float]:
    assert found.low is not None
    assert found.high is not None
    mean = float(a.mean())
    return found.low / mean, found.high / mean


def of_logs(load: float, logs: int, jobs: int) -> Iterator[Coverage]:
    """Replay generated logs under pairs of policies; the truth is that of all logs together."""
    waits: dict[str, list[Floats]] = {}
    least: list[float] = []
    for seed in range(logs):
        work = prepare(
            generate_log(jobs=jobs, procs=PROCS, load=load, seed=seed + 1), one_host(PROCS)
        )
        least.append(a_day_of(work.submit))
        for policy in dict.fromkeys(name for pair in PAIRS for name in pair):
            done = run(work, one_host(PROCS), load_policy(policy))
            waits.setdefault(policy, []).append((done.start - work.submit) / MICROSECONDS)
    for a, b in PAIRS:
        truth = float(np.mean(waits[b]) / np.mean(waits[a]) - 1)
        yield covered(
            f"{a}, {b}; load {load:g}", truth, list(zip(waits[a], waits[b], least, strict=True))
        )


def of_chains(memory: float, logs: int, values: int, ratio: float = 0.2) -> Coverage:
    """Draw waits under A, the logarithm of each keeping a share of the last one, and a random part
    of them under B."""
    samples = []
    for seed in range(logs):
        draw = np.random.default_rng([seed, round(1000 * memory)])
        noise = draw.normal(size=values) * math.sqrt(1 - memory**2)
        chain = np.empty(values)
        chain[0] = draw.normal()
        for place in range(1, values):
            chain[place] = memory * chain[place - 1] + noise[place]
        a = np.exp(chain)
        samples.append((a, a * ratio * draw.exponential(1.0, values), 1.0))
    return covered(f"chains, memory {memory:g}", ratio - 1, samples)


def exchanged(load: float, logs: int, jobs: int, block: Callable[[Floats], Floats]) -> Coverage:
    """Exchange the labels of two policies at random by stretches of time: then there is no
    difference to be found."""
    samples = []
    for seed in range(logs):
        work = prepare(
            generate_log(jobs=jobs, procs=PROCS, load=load, seed=seed + 1), one_host(PROCS)
        )
        one, other = (
            (run(work, one_host(PROCS), load_policy(name)).start - work.submit) / MICROSECONDS
            for name in PAIRS[1]
        )
        stretch = block(work.submit / MICROSECONDS).astype(np.int64)
        swap = (np.random.default_rng(seed).random(int(stretch.max()) + 1) < 0.5)[stretch]
        samples.append(
            (np.where(swap, other, one), np.where(swap, one, other), a_day_of(work.submit))
        )
    return covered(f"labels exchanged; load {load:g}", 0.0, samples)


def exchanged_on(path: str, draws: int) -> Iterator[Coverage]:
    """Exchange the labels of EASY and conservative backfilling on a real log, by stretches of
    several lengths."""
    log = read_log(path)
    machine = one_host(choose_procs(log, None))
    work = prepare(log, machine)
    one, other = (
        (run(work, machine, load_policy(name)).start - work.submit) / MICROSECONDS
        for name in _ON_REAL
    )
    at, least = (work.submit - work.submit[0]) / MICROSECONDS, a_day_of(work.submit)
    for name, stretch in (
        ("job", np.arange(len(at))),
        ("day", at // _DAY),
        ("week", at // (7 * _DAY)),
        ("four weeks", at // (28 * _DAY)),
    ):
        samples = []
        for seed in range(draws):
            labels = np.random.default_rng(seed).random(int(stretch.max()) + 1) < 0.5
            swap = labels[stretch.astype(np.int64)]
            samples.append((np.where(swap, other, one), np.where(swap, one, other), least))
        yield covered(f"labels exchanged by {name}: {work.name.rpartition('/')[2]}", 0.0, samples)


def report(*, is_short: bool = False) -> None:
    """Print the table of docs/explanation/statistics.md."""
    logs, jobs = (20, 1000) if is_short else (400, 3000)
    print(
        f"| what ({jobs:,} jobs on {PROCS} processors) | logs | truth | held | below -100 % | "
        "differs | plain: held | "
        "plain: below |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for memory in (0.0, 0.9, 0.99):
        print(of_chains(memory, logs, jobs).line(), flush=True)
    for load in (0.3, 0.4, 0.6, 0.75, 1.0):
        for each in of_logs(load, logs, jobs):
            print(each.line(), flush=True)
    for days, name in ((1, "day"), (7, "week")):
        found = exchanged(0.4, logs, jobs, lambda at, days=days: (at - at[0]) // (86_400 * days))
        print(found.line().replace("exchanged", f"exchanged by {name}"), flush=True)
    if _REAL.exists():
        for each in exchanged_on(str(_REAL), 5 if is_short else 60):
            print(each.line(), flush=True)
