"""The model of Lublin and Feitelson: sizes, run times and arrivals of rigid jobs, as a log.

The results are the same on every machine.  NumPy does not promise the stream of ``Generator.gamma``
from one version to the next, so variates are made here from the package's own draws, by rejection
(R. C. H. Cheng, *The generation of gamma variables with non-integral shape parameter*, Applied
Statistics 26, 1977): two uniform draws and two logarithms per proposal, of which 0.68 to 0.89 are
accepted.

Source: U. Lublin and D. G. Feitelson, *The workload on parallel supercomputers: modeling the
characteristics of rigid jobs*, J. Parallel and Distributed Computing 63(11), 2003; constants and
readings of its program in docs/spec/workloads.md 2.1.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from qbatch.model.errors import UsageError, suggestion
from qbatch.workloads.draws import Draws, exp, ln
from qbatch.workloads.generate import generated_log
from qbatch.workloads.header import PROCS_MAX
from qbatch.workloads.log import Column, Log
from qbatch.workloads.tsafrir import tsafrir_estimates

RUN_LN_MAX = 12
"""Natural logarithm of the longest run time in seconds: e^12 s are 45 hours."""

GAP_LN_MAX = 13
"""Natural logarithm of the longest gap, in seconds of the busiest kind, before the daily cycle
stretches it."""

PUBLISHED_PROCS = 128
BUCKETS = 48
BUCKET_S = 1800
CYCLE_START = 11
"""The half hour at which the gamma distribution of the daily cycle begins."""

_QUANTUM = 2.0**-40


@dataclass(frozen=True)
class Parameters:
    """One set of parameters; gamma distributions are given by shape and scale, sizes by log2 of
    processors.

    Attributes:
        name: ``batch``, ``interactive`` or ``typeless``.
        serial, pow2: probabilities of a serial job, and of a parallel job with a power of two as
            size.
        ulow, umed, uhi, uprob: log2 of the size is uniform in [ulow, umed] with probability uprob,
            else in [umed, uhi].
        a1, b1, a2, b2: shapes and scales of the two gamma distributions of ln(run time in seconds).
        pa, pb: the first of them is used with probability pa x size + pb.
        aarr, barr: shape and scale of ln(gap in seconds) at the mean rate, without the factor
            ``arar`` of the shape.
        anum, bnum: shape and scale of the gamma distribution over the half hours of a day.
    """

    name: str
    serial: float
    pow2: float
    ulow: float
    umed: float
    uhi: float
    uprob: float
    a1: float
    b1: float
    a2: float
    b2: float
    pa: float
    pb: float
    aarr: float
    barr: float
    anum: float
    bnum: float
    arar: float

    def text(self) -> str:
        """Return the set on one line, as in a header."""
        values = (
            f"{each.name}={getattr(self, each.name)!r}"
            for each in fields(self)
            if each.name != "name"
        )
        return f"{self.name}: {' '.join(values)}"


BATCH = Parameters(
    name="batch",
    serial=0.2927,
    pow2=0.6686,
    ulow=1.2,
    umed=5.0,
    uhi=7.0,
    uprob=0.875,
    a1=6.57,
    b1=0.823,
    a2=639.1,
    b2=0.0156,
    pa=-0.003,
    pb=0.6986,
    aarr=6.0415,
    barr=0.8531,
    anum=6.1271,
    bnum=5.2740,
    arar=1.0519,
)
INTERACTIVE = Parameters(
    name="interactive",
    serial=0.1541,
    pow2=0.625,
    ulow=1.0,
    umed=3.0,
    uhi=5.5,
    uprob=0.705,
    a1=3.8351,
    b1=0.6605,
    a2=7.073,
    b2=0.6856,
    pa=-0.0118,
    pb=0.9156,
    aarr=6.5510,
    barr=0.6621,
    anum=8.9186,
    bnum=3.6680,
    arar=0.9797,
)
TYPELESS = Parameters(
    name="typeless",
    serial=0.244,
    pow2=0.576,
    ulow=0.8,
    umed=4.5,
    uhi=7.0,
    uprob=0.86,
    a1=4.2,
    b1=0.94,
    a2=312.0,
    b2=0.03,
    pa=-0.0054,
    pb=0.78,
    aarr=10.2303,
    barr=0.4871,
    anum=8.1737,
    bnum=3.9631,
    arar=1.0225,
)

TYPES: dict[str, tuple[Parameters, ...]] = {
    "none": (TYPELESS,),
    "batch": (BATCH,),
    "interactive": (INTERACTIVE,),
    "both": (INTERACTIVE, BATCH),
}
"""Choices of ``types``; of two jobs that arrive together, the one of the earlier set comes
first."""


@cache
def log2(procs: int) -> float:
    """Return log2 of a number of processors: exact for powers of two, the same on every machine."""
    value = float(ln(np.array([float(procs)]))[0] / ln(np.array([2.0]))[0])
    return round(value / _QUANTUM) * _QUANTUM


def for_machine(
    published: Parameters,
    procs: int,
    *,
    ulow: float | None = None,
    umed: float | None = None,
    uhi: float | None = None,
    uprob: float | None = None,
) -> Parameters:
    """Return a set for a machine of ``procs`` processors; given values are used unchanged.

    UHi keeps its distance to log2 of the machine (0 for batch and typeless jobs, 1.5 for
    interactive ones).  UMed keeps its distance to UHi (2 for batch jobs, 2.5 for the others; the
    model allows 1.5 to 3.5).  With some 30 processors or fewer UMed is at least a third of the way
    from ULow to UHi.  On 128 processors this is the published set.

    Raises:
        UsageError: unless ULow <= UMed <= UHi <= log2(procs), ULow >= 0 and UProb is a probability.
    """
    machine = log2(procs)
    if uhi is None:
        uhi = machine + published.uhi - log2(PUBLISHED_PROCS)
    ulow = published.ulow if ulow is None else ulow
    umed = (
        max(uhi - (published.uhi - published.umed), ulow + (uhi - ulow) / 3.0)
        if umed is None
        else umed
    )
    uprob = published.uprob if uprob is None else uprob
    if not 0 <= ulow <= umed <= uhi <= machine:
        raise UsageError(
            f"sizes of {published.name} jobs on {procs:,} processors: ULow {ulow:g}, UMed "
            f"{umed:g}, UHi {uhi:g} do not ascend "
            f"from 0 to log2 of the processors, {machine:g}; give another of --ulow, --umed, --uhi "
            "or more --procs"
        )
    if not 0 <= uprob <= 1:
        raise UsageError(
            f"--uprob is {uprob:g}; use a probability, 0 to 1 (the model has 0.7 to 0.95)"
        )
    return replace(published, ulow=ulow, umed=umed, uhi=uhi, uprob=uprob)


# -------------------------------------------------------------------------------- gamma variates
# and the weights of the day

WEIGHT_UNIT = 1 << 30
"""The mean weight of a half hour; weights, and points, are whole numbers in this unit."""

_LN_4 = 2.0 * float.fromhex("0x1.62e42fefa39efp-1")


class Streams(NamedTuple):
    """The streams of draws of one kind of jobs: job k takes element k of each, so that a longer log
    begins with the same jobs.

    ``seed``: a whole number >= 0.  ``kind``: the number of the set of parameters.
    """

    seed: int
    kind: int

    def fractions(self, quantity: int, attempt: int, count: int) -> Column:
        """Return the multiples of 2**-53 in [0, 1) of one quantity (a number >= 1) at one
        attempt."""
        return Draws((self.seed, 5, self.kind, quantity, attempt)).fractions(count)


def gamma_proposals(
    shape: Column, scale: Column, first: Column, second: Column
) -> tuple[Column, Column]:
    """Return proposals for gamma variates, and which of them are accepted; the others must be
    proposed again.

    Args:
        shape, scale: of each variate, shapes > 1; the mean is their product.
        first, second: uniform draws in [0, 1), one each for every variate.
    """
    # Draws in [0, 1) become the midpoints of 2**52 intervals, neither 0 nor 1.
    u, v = (np.floor(draw * 2.0**52) * 2.0**-52 + 2.0**-53 for draw in (first, second))
    steepness = np.sqrt(2.0 * shape - 1.0)
    odds = ln(u / (1.0 - u)) / steepness
    x = shape * exp(odds)
    bound = shape - _LN_4 + (shape + steepness) * odds - x
    return x * scale, np.asarray(bound >= ln(u * u * v))


def bucket_weights(shape: float, scale: float) -> Column:
    """Return the weights of the 48 half hours from midnight, in units of ``WEIGHT_UNIT``; their
    mean is 1.

    The day begins at half hour 11: half hour i of 11..58 (modulo 48, counted from 1) has the
    probability of [i - 0.5, i + 0.5].
    """
    place = np.arange(CYCLE_START, CYCLE_START + BUCKETS)
    probability = lower_gamma(shape, (place + 0.5) / scale) - lower_gamma(
        shape, (place - 0.5) / scale
    )
    weights = np.empty(BUCKETS, np.float64)
    weights[(place - 1) % BUCKETS] = probability
    mean = sum(weights.tolist()) / BUCKETS
    return np.floor(weights / mean * WEIGHT_UNIT + 0.5).astype(np.int64)


def lower_gamma(shape: float, x: Column) -> Column:
    """Return the distribution function of the gamma distribution of scale 1 at x, times Gamma(shape
    + 1).

    The series x^a e^-x (1 + x/(a+1) + x^2/((a+1)(a+2)) + ...), with positive terms only; x is at
    most some tens.  The factor depends only on the shape and is left out, because weights are
    divided by their mean.
    """
    x = np.asarray(x, np.float64)
    term = np.ones_like(x)
    total = np.ones_like(x)
    place = 0
    while bool((term > total * 2.0**-60).any()):
        place += 1
        term = term * x / (shape + place)
        total = total + term
    return np.asarray(exp(shape * ln(x) - x) * total)


# -------------------------------------------------------------------------------- sizes and run
# times

SIZE, STAGE, PLACE, BRANCH, RUN_FIRST, RUN_SECOND = range(1, 7)
"""Drawn quantities."""


def sizes(parameters: Parameters, streams: Streams, jobs: int, procs: int) -> Column:
    """Return the processors of each job.

    One draw decides between a serial job, a power of two and any size.  If the size of the machine
    is not a power of two, a job that would be rounded up to more than it has takes its largest
    power of two.
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

    The logarithm is from one of two gamma distributions.  Values above 12 are drawn again,
    including the choice of distribution.
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
            streams.fractions(quantity, attempt, jobs)[left]
            for quantity in (BRANCH, RUN_FIRST, RUN_SECOND)
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


# -------------------------------------------------------------------------------- arrivals

GAP_FIRST, GAP_SECOND = 7, 8
"""Drawn quantities."""


def gap_points(parameters: Parameters, streams: Streams, jobs: int) -> Column:
    """Return the gap before each job in points (a half hour of mean weight is ``WEIGHT_UNIT``): e^G
    seconds, G up to 13."""
    logarithm = np.zeros(jobs, np.float64)
    shape, scale = np.array([parameters.aarr * parameters.arar]), np.array([parameters.barr])
    left = np.arange(jobs)
    attempt = 0
    while len(left):
        first, second = (
            streams.fractions(quantity, attempt, jobs)[left] for quantity in (GAP_FIRST, GAP_SECOND)
        )
        value, is_accepted = gamma_proposals(shape, scale, first, second)
        done = is_accepted & (value <= GAP_LN_MAX)
        logarithm[left[done]] = value[done]
        left = left[~done]
        attempt += 1
    return np.asarray(np.floor(exp(logarithm) / BUCKET_S * WEIGHT_UNIT).astype(np.int64))


def arrival_times(parameters: Parameters, streams: Streams, jobs: int) -> Column:
    """Return the whole seconds from midnight at which the jobs of one kind arrive, ascending; the
    first is not at 0.

    As in the published program the clock is a whole number: each gap loses its fraction of a
    second.  The program goes through the half hours one by one.  Here the half hour of each arrival
    is looked up, with the same result, because points and weights are whole numbers, with exact
    sums in any order.
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


# -------------------------------------------------------------------------------- the log

JOBS_MAX = 10_000_000
ESTIMATES = ("exact", "tsafrir")
QUEUES = {"interactive": 0, "batch": 1}
"""Numbers of the queues, by the convention of SWF; typeless jobs have none."""

_STREAMS = {"interactive": 0, "batch": 1, "typeless": 2}
# Enough seconds from the first to the last arrival that whole seconds meet a load to a percent.
_SPAN_S = (100, 10**15)


@dataclass(frozen=True)
class _Asked:
    """The checked arguments."""

    jobs: int
    procs: int
    types: str
    seed: int
    load: float | None
    interarrival: float | None
    estimates: str
    estimate_max: int | None
    overrides: dict[str, float]

    @property
    def command(self) -> str:
        """Return the command that makes the same log."""
        words = (
            f"qbatch generate lublin --jobs {self.jobs} --procs {self.procs} --types "
            f"{self.types} --seed {self.seed}"
        )
        options: dict[str, Any] = {"load": self.load, "interarrival": self.interarrival}
        options |= {
            "estimates": self.estimates,
            "estimate-max": self.estimate_max,
            **self.overrides,
        }
        return words + "".join(
            f" --{name} {value}" for name, value in options.items() if value is not None
        )


def generate_lublin(
    *,
    jobs: int,
    procs: int = 128,
    types: str = "none",
    seed: int = 1,
    load: float | None = None,
    interarrival: float | None = None,
    estimates: str = "exact",
    estimate_max: int | None = None,
    ulow: float | None = None,
    umed: float | None = None,
    uhi: float | None = None,
    uprob: float | None = None,
) -> Log:
    """Return a log of ``jobs`` jobs of the model for ``procs`` processors; the same arguments give
    the same log on every machine.

    Log second 0 is a midnight.  Without ``load`` and ``interarrival`` the arrivals are those of the
    model, and a longer log begins with the jobs of a shorter one.

    Args:
        types: ``none`` (typeless jobs), ``batch``, ``interactive``, or ``both`` (two streams,
            merged; queues 1 and 0).
        load: the offered load to reach (work over processors x span of submissions), by one factor
            for all arrival times.
        interarrival: the mean seconds between submissions to reach, by one factor for all arrival
            times.
        estimates: ``exact`` (the run times) or ``tsafrir`` (users' estimates of
            ``qbatch.workloads.tsafrir``).
        estimate_max: the largest estimate of ``tsafrir`` in seconds; None: the least whole hour
            that no run exceeds.
        ulow, umed, uhi, uprob: see ``Parameters``; None: the published ones, for a machine of this
            size (``for_machine``).

    Raises:
        UsageError: a value is out of range, values contradict each other, or the load cannot be
            reached.
    """
    overrides = {"ulow": ulow, "umed": umed, "uhi": uhi, "uprob": uprob}
    given = {name: float(value) for name, value in overrides.items() if value is not None}
    load, interarrival = (None if each is None else float(each) for each in (load, interarrival))
    asked = _Asked(jobs, procs, types, seed, load, interarrival, estimates, estimate_max, given)
    _check(asked)
    sets = tuple(for_machine(each, procs, **given) for each in TYPES[types])
    streams = [Streams(seed, _STREAMS[each.name]) for each in sets]
    times = [arrival_times(each, stream, jobs) for each, stream in zip(sets, streams, strict=True)]
    # At one instant in the order of the sets.
    order = np.argsort(np.concatenate(times), kind="stable")[:jobs]
    submit, kind = np.concatenate(times)[order], np.repeat(np.arange(len(sets)), jobs)[order]
    size, run = np.zeros(jobs, np.int64), np.zeros(jobs, np.int64)
    for number, (each, stream) in enumerate(zip(sets, streams, strict=True)):
        rows = np.flatnonzero(kind == number)
        size[rows] = sizes(each, stream, len(rows), procs)
        run[rows] = run_times(each, stream, size[rows])
    submit, factor = _stretched(submit, run * size, asked)
    estimate = run
    if estimates == "tsafrir":
        estimate = tsafrir_estimates(run, seed=seed, largest_s=estimate_max)
    values = {
        "job": np.arange(1, jobs + 1),
        "submit": submit,
        "run": run,
        "procs_allocated": size,
        "procs_requested": size,
        "time_requested": estimate,
        "status": np.ones(jobs, np.int64),
        "queue": np.array([QUEUES.get(each.name, -1) for each in sets])[kind],
    }
    notes = [
        (
            "the model of Lublin and Feitelson 2003, in which no real user submits; second 0 is a "
            "midnight"
        ),
        *(each.text() for each in sets),
    ]
    if factor != 1.0:
        notes.append(
            f"arrival times, and with them the daily cycle, are {factor!r} times those of the model"
        )
    if estimates == "tsafrir":
        notes.append(
            "requested times are users' estimates by the model of Tsafrir, Etsion and Feitelson "
            "2005"
        )
    else:
        notes.append("requested times are the run times")
    longest_s = max(int(exp(np.array([float(RUN_LN_MAX)]))[0]), int(estimate.max()))
    queues = {QUEUES[each.name]: each.name for each in sets if each.name in QUEUES}
    return generated_log(
        "lublin",
        asked.command,
        values,
        computer="none (Lublin-Feitelson model)",
        procs=procs,
        longest_s=longest_s,
        queues=queues,
        notes=notes,
    )


def _check(asked: _Asked) -> None:
    wrong = None
    if not 1 <= asked.jobs <= JOBS_MAX:
        wrong = f"--jobs is {asked.jobs}; use 1 to {JOBS_MAX:,}"
    elif not 1 <= asked.procs <= PROCS_MAX:
        wrong = f"--procs is {asked.procs}; use 2 to {PROCS_MAX:,}"
    elif asked.types not in TYPES:
        wrong = f"--types {asked.types!r}: use {', '.join(TYPES)}{suggestion(asked.types, TYPES)}"
    elif asked.seed < 0:
        wrong = f"--seed is {asked.seed}; use 0 or more"
    elif asked.load is not None and not 0.001 <= asked.load <= 1000:
        wrong = f"--load is {asked.load:g}; use 0.001 to 1000, for example 0.8"
    elif asked.interarrival is not None and not 0.001 <= asked.interarrival <= 1e7:
        wrong = f"--interarrival is {asked.interarrival:g}; use 0.001 to 10,000,000 seconds"
    elif asked.load is not None and asked.interarrival is not None:
        wrong = "--load and --interarrival both stretch the arrivals; give one of them"
    elif (asked.load is not None or asked.interarrival is not None) and asked.jobs < 2:
        wrong = "one job has no load and no interarrival time; use --jobs 2 or more"
    elif asked.estimates not in ESTIMATES:
        wrong = (
            f"--estimates {asked.estimates!r}: use "
            f"{' or '.join(ESTIMATES)}{suggestion(asked.estimates, ESTIMATES)}"
        )
    elif asked.estimate_max is not None and asked.estimates != "tsafrir":
        wrong = "--estimate-max goes with --estimates tsafrir"
    elif asked.overrides and len(TYPES[asked.types]) > 1:
        wrong = (
            f"--{next(iter(asked.overrides))} is for one set of parameters; --types both has "
            "two: make two logs"
        )
    if wrong is not None:
        raise UsageError(f"generate lublin: {wrong}")


def _stretched(submit: Column, area: Column, asked: _Asked) -> tuple[Column, float]:
    """Return the arrival times multiplied by one factor, rounded to whole seconds, and the factor.

    ``area``: the processor-seconds of each job; their sum may exceed 63 bits, the sum of their
    halves does not.
    """
    span = int(submit[-1] - submit[0])
    if asked.load is not None:
        work = (int((area >> 32).sum()) << 32) + int((area & 0xFFFF_FFFF).sum())
        wanted = work / (asked.procs * asked.load)
    elif asked.interarrival is not None:
        wanted = asked.interarrival * (asked.jobs - 1)
    else:
        return submit, 1.0
    if span == 0 or not _SPAN_S[0] <= wanted <= _SPAN_S[1]:
        said = (
            f"--load {asked.load:g}"
            if asked.load is not None
            else f"--interarrival {asked.interarrival:g}"
        )
        raise UsageError(
            f"generate lublin: {said} cannot be reached with these {asked.jobs:,} jobs; use more "
            "jobs"
        )
    factor = wanted / span
    return np.rint(submit * factor).astype(np.int64), factor
