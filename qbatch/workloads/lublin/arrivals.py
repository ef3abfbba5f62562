"""Arrivals of jobs: gaps in points; each half hour of the day costs its weight in points.

Points and weights are whole multiples of 2**-30, so that sums are exact in any order.  The model goes through
the half hours one by one; here the half hour of each arrival is looked up, with the same result.
"""

from __future__ import annotations

import numpy as np

from qbatch.workloads.log import Column
from qbatch.workloads.lublin.gamma import WEIGHT_UNIT, Streams, bucket_weights, gamma_proposals
from qbatch.workloads.lublin.parameters import BUCKET_S, BUCKETS, GAP_LN_MAX, Parameters
from qbatch.workloads.portable import exp

GAP_FIRST, GAP_SECOND = 7, 8
"""Drawn quantities."""


def gap_points(parameters: Parameters, streams: Streams, jobs: int) -> Column:
    """Return the gap before each job in points (a half hour of mean weight is ``WEIGHT_UNIT``): e^G seconds, G up to 13."""
    logarithm = np.zeros(jobs, np.float64)
    shape, scale = np.array([parameters.aarr * parameters.arar]), np.array([parameters.barr])
    left = np.arange(jobs)
    attempt = 0
    while len(left):
        first, second = (streams.fractions(quantity, attempt, jobs)[left] for quantity in (GAP_FIRST, GAP_SECOND))
        value, is_accepted = gamma_proposals(shape, scale, first, second)
        done = is_accepted & (value <= GAP_LN_MAX)
        logarithm[left[done]] = value[done]
        left = left[~done]
        attempt += 1
    return np.asarray(np.floor(exp(logarithm) / BUCKET_S * WEIGHT_UNIT).astype(np.int64))


def arrival_times(parameters: Parameters, streams: Streams, jobs: int) -> Column:
    """Return the whole seconds from midnight at which the jobs of one kind arrive, ascending; the first is not at 0.

    As in the published program the clock is a whole number: each gap loses its fraction of a second.
    """
    weights = bucket_weights(parameters.anum, parameters.bnum)
    upto = np.cumsum(weights)
    total = np.cumsum(gap_points(parameters, streams, jobs))
    day, within = (total - 1) // upto[-1], (total - 1) % upto[-1] + 1
    bucket = np.searchsorted(upto, within)
    spent, weight = BUCKET_S * (within - upto[bucket] + weights[bucket]), weights[bucket]
    # The instant is second + rest / weight, exactly; the rest of a gap is rounded down.
    second = BUCKET_S * (BUCKETS * day + bucket) + spent // weight
    rest = spent % weight
    before = np.concatenate((np.zeros(1, np.int64), rest[:-1]))
    weight_before = np.concatenate((np.ones(1, np.int64), weight[:-1]))
    is_less = rest * weight_before < before * weight
    return np.asarray(np.cumsum(np.diff(second, prepend=0) - is_less))


def merged(times: tuple[Column, ...], jobs: int) -> tuple[Column, Column]:
    """Return the first ``jobs`` arrivals of several kinds and the kind of each; at one instant in the given order."""
    time = np.concatenate(times)
    kind = np.repeat(np.arange(len(times)), [len(each) for each in times])
    order = np.argsort(time, kind="stable")[:jobs]
    return time[order], kind[order]
