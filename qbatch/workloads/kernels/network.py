"""The draws of the closed network, by job, visit and purpose (docs/spec/papers.md 5.5, rules 4 to
7).

Visit ``v`` of job ``n`` has its own draws, whatever the policy does and in which order: one for the
number of tasks, one for the I/O time, then five per task.  Times are integer microseconds, rounded
to the nearest when drawn; means are seconds.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from qbatch.planning.kernels.fractions import bits, folded, fraction
from qbatch.planning.kernels.jit import kernel
from qbatch.planning.kernels.types import Float64Array, Int64Array

PARALLELISM, IO, FIRST_TASK, PER_TASK = 0, 1, 2, 5
"""Numbers of the draws of a visit: the two of the job, the first of its tasks, and the number per
task."""

STAGE_1, BRANCH, STAGE_2, ROUTE, ERROR = 0, 1, 2, 3, 4
"""Numbers of the draws of a task."""

DEMAND, ESTIMATE, DRAW = 0, 1, 2
"""Columns of the tasks of a visit: demand and its estimate in microseconds, and the draw of its
route (53 bits)."""

TASK_COLUMNS = 3

MEAN_DEMAND, VARIATION, MEAN_IO, FAULT = 0, 1, 2, 3
"""Indices into the numbers of a network: x, C, z and E of the paper."""

MOST = 4.0e15
"""No time is longer than this many microseconds (126 years)."""

_LN2 = float.fromhex("0x1.62e42fefa39efp-1")
_SQRT_HALF = float.fromhex("0x1.6a09e667f3bcdp-1")
_TERMS = np.array([1.0 / (2 * term + 1) for term in range(13)])


@kernel
def ln(x: float) -> float:
    """Return the natural logarithm of a positive number, equal to the bit to
    :func:`qbatch.workloads.draws.ln`."""
    mantissa, exponent = math.frexp(x)
    if mantissa < _SQRT_HALF:
        mantissa, exponent = mantissa * 2.0, exponent - 1
    s = (mantissa - 1.0) / (mantissa + 1.0)
    square = s * s
    series = 0.0
    for term in range(12, -1, -1):
        series = series * square
        series = series + _TERMS[term]
    series = series * s
    return exponent * _LN2 + 2.0 * series


@kernel
def microseconds(seconds: float) -> int:
    """Return seconds in whole microseconds, to the nearest, at most ``MOST``."""
    return int(math.floor(min(seconds * 1e6, MOST) + 0.5))


@kernel
def exponential(mean: float, drawn: float) -> float:
    """Return an exponential variate of a mean."""
    return -mean * ln(1.0 - drawn)


@kernel
def erlang(mean: float, variation: float, first: float, branch: float, second: float) -> float:
    """Return a variate of the branching Erlang distribution: a stage, and with probability 1 / (2
    C^2) a long second one."""
    drawn = exponential(mean / 2.0, first)
    square = variation * variation
    if branch < 1.0 / (2.0 * square):
        drawn += exponential(mean * square, second)
    return drawn


@kernel
def tasks_of(cumulative: Float64Array, is_normal: bool, drawn: float) -> int:
    """Return a number of tasks: uniform, or bounded normal by ``cumulative[k - 1]``, the
    probability of at most k."""
    most = len(cumulative)
    if not is_normal:
        return 1 + int(math.floor(most * drawn))
    count = 1
    while count < most and drawn >= cumulative[count - 1]:
        count += 1
    return count


@kernel
def visit_key(key: Any, job: int, visit: int) -> Any:
    """Return the key of a visit of a job within that of a replication."""
    return folded(folded(key, job), visit)


@kernel
def interval(key: Any, mean: float, number: int) -> int:
    """Return how long a distribution is active for the number-th time; ``key``: of that
    distribution."""
    return microseconds(exponential(mean, fraction(key, number)))


@kernel
def io_time(key: Any, numbers: Float64Array) -> int:
    """Return the I/O time at the end of a visit."""
    return microseconds(exponential(numbers[MEAN_IO], fraction(key, IO)))


@kernel
def draw_visit(
    key: Any,
    numbers: Float64Array,
    cumulative: Float64Array,
    is_normal: bool,
    is_erlang: bool,
    tasks: Int64Array,
) -> int:
    """Draw the tasks of a visit into ``tasks[P, TASK_COLUMNS]``; return their number.

    Args:
        key: of the visit.
        numbers: x, C, z and E.
        cumulative: of the bounded normal (:func:`tasks_of`).
        is_normal: whether the bounded normal is active, else the uniform distribution.
        is_erlang: whether the branching Erlang distribution is active, else the exponential one.
    """
    count = tasks_of(cumulative, is_normal, fraction(key, PARALLELISM))
    for task in range(count):
        base = FIRST_TASK + PER_TASK * task
        first = fraction(key, base + STAGE_1)
        if is_erlang:
            branch, second = fraction(key, base + BRANCH), fraction(key, base + STAGE_2)
            seconds = erlang(numbers[MEAN_DEMAND], numbers[VARIATION], first, branch, second)
        else:
            seconds = exponential(numbers[MEAN_DEMAND], first)
        demand = estimate = microseconds(seconds)
        if numbers[FAULT] > 0.0:
            share = 1.0 + numbers[FAULT] * (2.0 * fraction(key, base + ERROR) - 1.0)
            estimate = int(math.floor(demand * share + 0.5))
        tasks[task, DEMAND], tasks[task, ESTIMATE], tasks[task, DRAW] = (
            demand,
            estimate,
            bits(key, base + ROUTE),
        )
    return count
