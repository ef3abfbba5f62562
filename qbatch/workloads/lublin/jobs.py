"""The processors and the run times of jobs; larger jobs run longer."""

from __future__ import annotations

import numpy as np

from qbatch.workloads.log import Column
from qbatch.workloads.lublin.gamma import Streams, gamma_proposals
from qbatch.workloads.lublin.parameters import RUN_LN_MAX, Parameters
from qbatch.workloads.portable import exp, ln

SIZE, STAGE, PLACE, BRANCH, RUN_FIRST, RUN_SECOND = range(1, 7)
"""Drawn quantities."""


def sizes(parameters: Parameters, streams: Streams, jobs: int, procs: int) -> Column:
    """Return the processors of each job.

    One draw decides between a serial job, a power of two and any size.  If the size of the machine is not a power of two, a job
    that would be rounded up to more than it has takes its largest power of two.
    """
    kind = streams.fractions(SIZE, 0, jobs)
    is_low = streams.fractions(STAGE, 0, jobs) <= parameters.uprob
    place = streams.fractions(PLACE, 0, jobs)
    low = np.where(is_low, parameters.ulow, parameters.umed)
    high = np.where(is_low, parameters.umed, parameters.uhi)
    log_size = low + place * (high - low)
    exponent = np.minimum(np.floor(log_size + 0.5).astype(np.int64), procs.bit_length() - 1)
    two = ln(np.array([2.0]))
    parallel = np.minimum(np.floor(exp(log_size * two) + 0.5).astype(np.int64), procs)
    size = np.where(kind <= parameters.serial + parameters.pow2, np.int64(1) << exponent, parallel)
    return np.where(kind <= parameters.serial, np.int64(1), size)


def run_times(parameters: Parameters, streams: Streams, size: Column) -> Column:
    """Return the run times in whole seconds, 1 to e^12, for the processors of each job.

    The logarithm is from one of two gamma distributions.  Values above 12 are drawn again, including the choice of distribution.
    """
    jobs = len(size)
    share = np.clip(parameters.pa * size + parameters.pb, 0.0, 1.0)
    is_first = np.zeros(jobs, np.bool_)
    logarithm = np.zeros(jobs, np.float64)
    left = np.arange(jobs)
    to_choose = np.ones(jobs, np.bool_)
    attempt = 0
    while len(left):
        branch, first, second = (
            streams.fractions(quantity, attempt, jobs)[left] for quantity in (BRANCH, RUN_FIRST, RUN_SECOND)
        )
        is_first[left] = np.where(to_choose, branch < share[left], is_first[left])
        shape = np.where(is_first[left], parameters.a1, parameters.a2)
        scale = np.where(is_first[left], parameters.b1, parameters.b2)
        value, is_accepted = gamma_proposals(shape, scale, first, second)
        is_short = value <= RUN_LN_MAX
        done = is_accepted & is_short
        logarithm[left[done]] = value[done]
        to_choose = (is_accepted & ~is_short)[~done]
        left = left[~done]
        attempt += 1
    return np.asarray(exp(logarithm).astype(np.int64))
