"""What the model means by itself: expectations by summing over sizes and integrating over run
times, without drawing."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, floor, lgamma, log, log2

import numpy as np

from qbatch.workloads.lublin import Parameters

STEPS = 240_000


@dataclass(frozen=True)
class Expected:
    """Expectations over jobs; classes are run times below, between and from the limits on."""

    procs: float
    run_s: float
    area: float
    serial: float
    pow2: float
    class_jobs: tuple[float, ...]
    class_work: tuple[float, ...]
    class_procs: tuple[float, ...]


def density(shape: float, scale: float, x: np.ndarray) -> np.ndarray:
    return np.exp((shape - 1) * np.log(x) - x / scale - lgamma(shape) - shape * log(scale))


def truncated_mean_s(shape: float, scale: float, limit: float) -> float:
    """Return the mean of e^G for a gamma variate G that is drawn again while it is above the
    limit."""
    x = (np.arange(STEPS) + 0.5) * (limit / STEPS)
    weight = density(shape, scale, x)
    return float((weight * np.exp(x)).sum() / weight.sum())


def size_probabilities(parameters: Parameters, procs: int) -> dict[int, float]:
    """Return the probability of each number of processors."""

    def uniform(low: float, high: float) -> float:
        stages = (
            (parameters.ulow, parameters.umed, parameters.uprob),
            (parameters.umed, parameters.uhi, 1 - parameters.uprob),
        )
        return sum(
            p * max(0.0, min(high, b) - max(low, a)) / (b - a) for a, b, p in stages if b > a
        )

    found = {1: parameters.serial}
    for exponent in range(20):
        size = 2 ** min(exponent, floor(log2(procs)))
        found[size] = found.get(size, 0.0) + parameters.pow2 * uniform(
            exponent - 0.5, exponent + 0.5
        )
    other = 1 - parameters.serial - parameters.pow2
    for size in range(1, procs + 1):
        found[size] = found.get(size, 0.0) + other * uniform(log2(size - 0.5), log2(size + 0.5))
    return {size: probability for size, probability in found.items() if probability > 0}


def expected(
    parameters: Parameters, procs: int, limits_s: tuple[int, ...] = (600, 10_800)
) -> Expected:
    """Return the expectations of one set of parameters on a machine."""
    sizes = size_probabilities(parameters, procs)
    assert abs(sum(sizes.values()) - 1) < 1e-12
    x = (np.arange(STEPS) + 0.5) * (12 / STEPS)
    first, second = (
        density(parameters.a1, parameters.b1, x),
        density(parameters.a2, parameters.b2, x),
    )
    seconds = np.floor(np.exp(x))
    of_class = np.searchsorted(np.array(limits_s), seconds, side="right")
    classes = range(len(limits_s) + 1)
    parts = [
        [float((f * g)[of_class == c].sum()) for c in classes]
        for f in (first, second)
        for g in (np.ones(STEPS), seconds)
    ]
    jobs, work, procs_sum, run_s = (
        np.zeros(len(classes)),
        np.zeros(len(classes)),
        np.zeros(len(classes)),
        0.0,
    )
    for size, probability in sizes.items():
        share = min(max(parameters.pa * size + parameters.pb, 0.0), 1.0)
        mass = np.array(parts[0]) * share + np.array(parts[2]) * (1 - share)
        time = np.array(parts[1]) * share + np.array(parts[3]) * (1 - share)
        in_class, mean = probability * mass / mass.sum(), time / mass.sum()
        jobs += in_class
        procs_sum += size * in_class
        work += size * probability * mean
        run_s += probability * float(mean.sum())
    return Expected(
        procs=sum(size * probability for size, probability in sizes.items()),
        run_s=run_s,
        area=float(work.sum()),
        serial=sizes[1],
        pow2=sum(probability for size, probability in sizes.items() if size & (size - 1) == 0),
        class_jobs=tuple(jobs.tolist()),
        class_work=tuple((work / work.sum()).tolist()),
        class_procs=tuple((procs_sum / jobs).tolist()),
    )


def erlang_distribution(shape: int, x: float) -> float:
    """Return the distribution function of a gamma distribution of whole shape and scale 1, in
    closed form."""
    term, total = 1.0, 1.0
    for k in range(1, shape):
        term *= x / k
        total += term
    return 1 - exp(-x) * total
