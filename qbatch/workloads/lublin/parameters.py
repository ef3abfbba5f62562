"""The published parameters of the three kinds of jobs, and their fit to a machine of another size."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cache

import numpy as np

from qbatch.model.errors import UsageError
from qbatch.workloads.portable import ln

RUN_LN_MAX = 12
"""Natural logarithm of the longest run time in seconds: e^12 s are 45 hours."""

GAP_LN_MAX = 13
"""Natural logarithm of the longest gap, in seconds of the busiest kind, before the daily cycle stretches it."""

PUBLISHED_PROCS = 128
BUCKETS = 48
BUCKET_S = 1800
CYCLE_START = 11
"""The half hour at which the gamma distribution of the daily cycle begins."""

_QUANTUM = 2.0**-40


@dataclass(frozen=True)
class Parameters:
    """One set of parameters; gamma distributions are given by shape and scale, sizes by log2 of processors.

    Attributes:
        name: ``batch``, ``interactive`` or ``typeless``.
        serial, pow2: probabilities of a serial job, and of a parallel job with a power of two as size.
        ulow, umed, uhi, uprob: log2 of the size is uniform in [ulow, umed] with probability uprob, else in [umed, uhi].
        a1, b1, a2, b2: shapes and scales of the two gamma distributions of ln(run time in seconds).
        pa, pb: the first of them is used with probability pa x size + pb.
        aarr, barr: shape and scale of ln(gap in seconds) at the mean rate, without the factor ``arar`` of the shape.
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
        values = (f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.name != "name")
        return f"{self.name}: {' '.join(values)}"


BATCH = Parameters(
    name="batch", serial=0.2927, pow2=0.6686, ulow=1.2, umed=5.0, uhi=7.0, uprob=0.875,
    a1=6.57, b1=0.823, a2=639.1, b2=0.0156, pa=-0.003, pb=0.6986,
    aarr=6.0415, barr=0.8531, anum=6.1271, bnum=5.2740, arar=1.0519,
)  # fmt: skip
INTERACTIVE = Parameters(
    name="interactive", serial=0.1541, pow2=0.625, ulow=1.0, umed=3.0, uhi=5.5, uprob=0.705,
    a1=3.8351, b1=0.6605, a2=7.073, b2=0.6856, pa=-0.0118, pb=0.9156,
    aarr=6.5510, barr=0.6621, anum=8.9186, bnum=3.6680, arar=0.9797,
)  # fmt: skip
TYPELESS = Parameters(
    name="typeless", serial=0.244, pow2=0.576, ulow=0.8, umed=4.5, uhi=7.0, uprob=0.86,
    a1=4.2, b1=0.94, a2=312.0, b2=0.03, pa=-0.0054, pb=0.78,
    aarr=10.2303, barr=0.4871, anum=8.1737, bnum=3.9631, arar=1.0225,
)  # fmt: skip

TYPES: dict[str, tuple[Parameters, ...]] = {
    "none": (TYPELESS,),
    "batch": (BATCH,),
    "interactive": (INTERACTIVE,),
    "both": (INTERACTIVE, BATCH),
}
"""Choices of ``types``; of two jobs that arrive together, the one of the earlier set comes first."""


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

    UHi keeps its distance to log2 of the machine (0 for batch and typeless jobs, 1.5 for interactive ones).  UMed keeps its
    distance to UHi (2 for batch jobs, 2.5 for the others; the model allows 1.5 to 3.5).  With some 30 processors or fewer UMed
    is at least a third of the way from ULow to UHi.  On 128 processors this is the published set.

    Raises:
        UsageError: unless ULow <= UMed <= UHi <= log2(procs), ULow >= 0 and UProb is a probability.
    """
    machine = log2(procs)
    if uhi is None:
        uhi = machine + published.uhi - log2(PUBLISHED_PROCS)
    ulow = published.ulow if ulow is None else ulow
    umed = max(uhi - (published.uhi - published.umed), ulow + (uhi - ulow) / 3.0) if umed is None else umed
    uprob = published.uprob if uprob is None else uprob
    if not 0 <= ulow <= umed <= uhi <= machine:
        raise UsageError(
            f"sizes of {published.name} jobs on {procs:,} processors: ULow {ulow:g}, UMed {umed:g}, UHi {uhi:g} do not ascend "
            f"from 0 to log2 of the processors, {machine:g}; give another of --ulow, --umed, --uhi or more --procs"
        )
    if not 0 <= uprob <= 1:
        raise UsageError(f"--uprob is {uprob:g}; use a probability, 0 to 1 (the model has 0.7 to 0.95)")
    return replace(published, ulow=ulow, umed=umed, uhi=uhi, uprob=uprob)
