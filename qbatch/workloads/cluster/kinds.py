"""The kinds of jobs of the generated cluster, each with its distributions.

A unit is a GPU, or a processor for jobs without GPUs.  Every table of choices has a weight first in
each row.
"""

from __future__ import annotations

from typing import NamedTuple

MINUTE_S, HOUR_S = 60, 3600
DAY_S = 24 * HOUR_S

_SHORT_S = tuple(MINUTE_S * each for each in (10, 30))
_HOURS_S = tuple(HOUR_S * each for each in (1, 2, 4, 8, 12))
_DAYS_S = tuple(DAY_S * each for each in (1, 2, 3, 5, 7))


class Ask(NamedTuple):
    """Where a job may run: names of partitions separated by commas, a type of GPU (empty: any), and
    features joined by ``&``."""

    weight: int
    partitions: str
    gpu_type: str = ""
    features: str = ""


class Kind(NamedTuple):
    """One kind of jobs.

    Attributes:
        name: in the documentation.
        model: the hosts of which it uses a share.
        percent: that share, of the GPU time (processor time without GPUs) of all kinds there.
        sizes: weight, nodes and units of each node; on a small cluster, those of at most half of
            the hosts.
        asks: where it may run.
        cpus: processors of each unit, equally likely.
        memory_gb: memory of each unit in GB, equally likely.
        exclusive_percent: jobs that take their hosts whole.
        octave, octaves: a run time is uniform in [2**k, 2**(k+1)) seconds; ``octave`` is the first
            k, ``octaves`` the weights of k, k+1, ...
        limits_s: requested times, ascending.
        array_per_mille: submissions that are arrays.
        failed_percent, cancelled_percent: jobs that end so.
        is_interactive: submitted during working hours.
    """

    name: str
    model: str
    percent: int
    sizes: tuple[tuple[int, int, int], ...]
    asks: tuple[Ask, ...]
    cpus: tuple[int, ...]
    memory_gb: tuple[int, ...]
    exclusive_percent: int
    octave: int
    octaves: tuple[int, ...]
    limits_s: tuple[int, ...]
    array_per_mille: int
    failed_percent: int
    cancelled_percent: int
    is_interactive: bool = False


_FEW_SECONDS_TO_DAYS = (2, 4, 8, 13, 16, 15, 11, 8, 6, 5, 4, 3, 3, 2, 1)

KINDS = (
    Kind(
        "interactive",
        model="l40s",
        percent=15,
        sizes=((88, 1, 1), (12, 1, 2)),
        asks=(Ask(1, "interactive"),),
        cpus=(4, 8),
        memory_gb=(32, 64),
        exclusive_percent=0,
        octave=4,
        octaves=(4, 6, 9, 12, 14, 14, 12, 9, 6, 3, 1),
        limits_s=(*_SHORT_S, *_HOURS_S[:4]),
        array_per_mille=0,
        failed_percent=10,
        cancelled_percent=35,
        is_interactive=True,
    ),
    Kind(
        "small",
        model="l40s",
        percent=85,
        sizes=((78, 1, 1), (13, 1, 2), (9, 1, 4)),
        asks=(Ask(60, "small"), Ask(25, "small", "l40s"), Ask(15, "gpu,small")),
        cpus=(4, 8, 16),
        memory_gb=(32, 64, 96),
        exclusive_percent=0,
        octave=3,
        octaves=_FEW_SECONDS_TO_DAYS,
        limits_s=(*_SHORT_S, *_HOURS_S, *_DAYS_S[:2]),
        array_per_mille=30,
        failed_percent=16,
        cancelled_percent=16,
    ),
    Kind(
        "single",
        model="a100",
        percent=8,
        sizes=((1, 1, 1),),
        asks=(Ask(55, "gpu"), Ask(45, "gpu", "a100")),
        cpus=(4, 8, 16),
        memory_gb=(32, 64, 120),
        exclusive_percent=0,
        octave=3,
        octaves=_FEW_SECONDS_TO_DAYS,
        limits_s=(*_SHORT_S, *_HOURS_S, *_DAYS_S[:3]),
        array_per_mille=30,
        failed_percent=16,
        cancelled_percent=17,
    ),
    Kind(
        "several",
        model="a100",
        percent=34,
        sizes=((50, 1, 2), (50, 1, 4)),
        asks=(Ask(55, "gpu"), Ask(45, "gpu", "a100")),
        cpus=(8, 16),
        memory_gb=(64, 120),
        exclusive_percent=0,
        octave=4,
        octaves=(2, 4, 8, 12, 14, 13, 11, 9, 8, 7, 6, 5, 4, 2),
        limits_s=(*_HOURS_S, *_DAYS_S[:4]),
        array_per_mille=10,
        failed_percent=17,
        cancelled_percent=32,
    ),
    Kind(
        "node",
        model="a100",
        percent=58,
        sizes=((82, 1, 8), (15, 2, 8), (3, 4, 8)),
        asks=(Ask(60, "gpu", "a100"), Ask(40, "gpu", "a100", "ib")),
        cpus=(12, 16),
        memory_gb=(96, 120),
        exclusive_percent=30,
        octave=5,
        octaves=(3, 5, 8, 10, 12, 12, 11, 10, 9, 8, 7, 6, 4),
        limits_s=(*_HOURS_S, *_DAYS_S),
        array_per_mille=0,
        failed_percent=18,
        cancelled_percent=38,
    ),
    Kind(
        "large",
        model="h100",
        percent=100,
        sizes=((40, 1, 8), (30, 2, 8), (16, 4, 8), (8, 8, 8), (3, 16, 8), (1, 32, 8), (1, 64, 8)),
        asks=(Ask(70, "large", "h100", "ib"), Ask(30, "large", "h100", "ib&nvme")),
        cpus=(12,),
        memory_gb=(240,),
        exclusive_percent=70,
        octave=6,
        octaves=(4, 6, 8, 10, 11, 11, 11, 10, 9, 8, 6, 5),
        limits_s=(*_HOURS_S[2:], *_DAYS_S),
        array_per_mille=0,
        failed_percent=20,
        cancelled_percent=42,
    ),
    Kind(
        "cpu",
        model="cpu",
        percent=100,
        sizes=((14, 1, 1), (10, 1, 4), (12, 1, 8), (16, 1, 16), (16, 1, 32), (16, 1, 64),
               (12, 1, 128), (4, 2, 128)),
        asks=(Ask(1, "cpu"),),
        cpus=(1,),
        memory_gb=(2, 4),
        exclusive_percent=0,
        octave=1,
        octaves=(6, 6, 6, 7, 8, 9, 9, 9, 9, 8, 8, 7, 6, 4, 3, 2),
        limits_s=(*_SHORT_S, *_HOURS_S, *_DAYS_S[:2]),
        array_per_mille=15,
        failed_percent=6,
        cancelled_percent=4,
    ),
)  # fmt: skip
"""All kinds.  The shares of the kinds on hosts of one model add up to 100."""

ARRAY_TASKS_MAX = 64
LIMIT_PERCENT = 25
"""Submissions that request the longest time of their kind."""

FACTOR_PERCENT = (110, 310)
"""The others request their longest task times a factor between these, rounded up to a usual
value."""

TIMEOUT_PERCENT = 3
"""Jobs of these that run up to the requested time."""

FAILED_SHORTER = 16
"""A job that fails runs for one part of so many of its drawn run time."""

# Submissions per hour of the day and per day of the week (Monday first), relative.  Batch jobs have
# quiet nights and a dip at noon; interactive jobs follow working hours.
HOURLY = (
    56, 46, 38, 32, 28, 28, 32, 40, 58, 82, 98, 100, 84, 90, 100, 104, 104, 100, 84, 78, 80, 82, 78, 68,
)  # fmt: skip
INTERACTIVE_HOURLY = (
    14, 8, 5, 3, 2, 2, 4, 12, 40, 80, 100, 100, 78, 90, 104, 106, 104, 94, 60, 44, 42, 40, 34, 24,
)  # fmt: skip
DAILY = (100, 108, 110, 108, 100, 58, 54)
