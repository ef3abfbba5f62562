"""The printed numbers behind the generated months, and the shares that the months are drawn from.

Source: S.-H. Chiang, M. K. Vernon, Production Job Scheduling for Parallel Shared Memory Systems,
2001: table 4 (counts and demands) and section 3 (run times and memory).  The shares of requested
times and of processors are our own choices: the paper prints none.  Weights are whole numbers; only
their ratios matter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

TIMES = ("vst", "st", "mt", "lt")
SIZES = ("sj", "mj", "lj")
CLASSES = tuple(f"{time}_{size}" for size in SIZES for time in TIMES)
"""The twelve classes in the order of table 4: class k has queue number k + 1."""

PROCS = 960
MEMORY_GB = 336
"""The total memory of the eight hosts: demands are shares of it over the month."""

Weights = Mapping[int, int]


@dataclass(frozen=True)
class Month:
    """One month of table 4; counts exact, demands in percent of the machine, twelve classes
    each."""

    year: int
    month: int
    days: int
    counts: tuple[int, ...]
    procs_percent: tuple[int, ...]
    memory_percent: tuple[int, ...]
    procs_overall: int
    memory_overall: int

    @property
    def name(self) -> str:
        """``1999-12``."""
        return f"{self.year}-{self.month:02}"

    @property
    def jobs(self) -> int:
        """Jobs of the month."""
        return sum(self.counts)


MONTHS = {
    month.name: month
    for month in (
        Month(
            1999,
            10,
            31,
            (3234, 2188, 2224, 116, 707, 748, 145, 27, 218, 243, 73, 51),
            (1, 9, 13, 3, 1, 8, 8, 1, 1, 13, 11, 4),
            (1, 4, 8, 2, 1, 4, 7, 5, 0, 4, 11, 8),
            75,
            55,
        ),
        Month(
            1999,
            11,
            30,
            (2155, 2216, 502, 139, 629, 711, 208, 40, 304, 333, 90, 21),
            (1, 9, 7, 2, 1, 14, 10, 3, 2, 14, 14, 3),
            (1, 6, 6, 2, 1, 5, 10, 5, 0, 7, 7, 5),
            80,
            53,
        ),
        Month(
            1999,
            12,
            31,
            (1605, 2075, 552, 114, 190, 571, 189, 28, 101, 275, 134, 29),
            (1, 8, 9, 4, 0, 12, 17, 4, 0, 10, 15, 9),
            (0, 5, 7, 3, 0, 5, 11, 4, 0, 10, 14, 11),
            89,
            72,
        ),
        Month(
            2000,
            1,
            31,
            (2033, 2601, 550, 71, 493, 585, 161, 61, 130, 250, 89, 22),
            (1, 9, 11, 3, 1, 9, 13, 6, 1, 8, 11, 10),
            (0, 6, 7, 3, 1, 5, 10, 6, 0, 11, 10, 16),
            83,
            74,
        ),
        Month(
            2000,
            2,
            29,
            (3252, 2252, 465, 70, 549, 697, 212, 32, 173, 312, 88, 20),
            (1, 9, 11, 3, 1, 10, 13, 3, 1, 18, 12, 5),
            (1, 7, 7, 3, 1, 5, 10, 5, 0, 10, 12, 15),
            88,
            74,
        ),
        Month(
            2000,
            3,
            31,
            (1668, 2666, 469, 57, 450, 624, 213, 70, 173, 497, 122, 25),
            (1, 11, 9, 3, 1, 11, 15, 4, 1, 14, 13, 3),
            (0, 7, 6, 3, 1, 6, 9, 8, 0, 15, 19, 4),
            85,
            78,
        ),
    )
}
"""Table 4; it has no values for single jobs.  All six months are consistent, also October's mt_sj,
four times the others."""

REQUESTED_HOURS: Mapping[str, Weights] = {
    "vst": {1: 10, 2: 12, 3: 8, 4: 10, 5: 60},
    "st": {10: 12, 12: 5, 20: 8, 24: 12, 30: 5, 40: 3, 50: 55},
    "mt": {75: 8, 100: 22, 150: 10, 200: 60},
    "lt": {250: 8, 300: 17, 400: 75},
}
"""Requested time, of the job and of each of its processors alike, in hours."""

WIDE_PROCS: Mapping[str, Weights] = {
    "sj": {1: 42, 2: 12, 3: 3, 4: 19, 5: 2, 6: 2, 8: 20},
    "mj": {9: 3, 10: 6, 12: 12, 14: 2, 15: 2, 16: 75},
    "lj": {17: 3, 20: 5, 24: 7, 32: 60, 48: 5, 64: 20},
}
"""Processors of a job that is in its size class for its processors."""

NARROW_PROCS: Mapping[str, Weights] = {
    "sj": {1: 1},
    "mj": {1: 50, 2: 15, 4: 20, 8: 15},
    "lj": {1: 25, 2: 10, 4: 20, 8: 20, 16: 25},
}
"""Processors of a job that is in its size class for its memory alone."""

NARROW_PERCENT = {"sj": 0, "mj": 25, "lj": 15}
"""Initial share of the jobs that are in their class because of their memory alone: it grows until
memory demand can be met."""

MEMORY_KB_MAX = {"sj": 2 << 20, "mj": 4 << 20, "lj": 16 << 20}
"""Most memory of a job of the class (table 1), in KB."""

MEMORY_KB_MIN = 16 << 10
"""Least memory of a request, in KB."""

EARLY_PERCENT = {"vst": 20, "st": 18, "mt": 17, "lt": 15}
"""Share of the jobs that end within their first minute; section 3 has 15 to 20 % in each class."""

EARLY_S = 60
EARLY_PERCENT_RANGE = (15, 20)
KILLED_PERCENT = 3
"""Share of the others that run up to their requested time, and are ended there."""

BOUND_PERCENT = 25
"""Share of the jobs of a class in which jobs with more processors run longer; by section 3 the two
correlate."""

BOUND_MEMORY_PERCENT = 40
"""Share of the jobs of a class in which longer jobs use more of their memory, also by section 3."""

SERIAL_TILT_STEP = 0.5
"""The step by which the memory of serial jobs is bent until about half of them request more than
512 MB (section 3)."""

LOW_MEMORY_PERCENT = 30
"""Share of the jobs that use less than a tenth of the requested memory; section 3 has 25 to 35 % in
each class."""

SMALL_EARLY_PERCENT = 97
SMALL_EARLY_KB = 1 << 20
"""Nearly all jobs that end within a minute use less than one GB."""

USERS = 400

HOUR_WEIGHTS = (60,) * 7 + (120,) * 2 + (180,) * 9 + (120,) * 6
"""Arrivals by hour of the day: low, intermediate, peak, intermediate (figure 1)."""

WEEKEND_PERCENT = 55
"""Arrivals of a Saturday or Sunday, in percent of those of a weekday."""

QUIET_PERCENT = 130
"""How often a job that arrives at night or on a weekend asks for 64 processors, in percent of other
times."""


def percents(printed: tuple[int, ...], overall: int) -> list[float]:
    """Return demands in percent that round to the printed ones and add up to the printed overall
    demand as nearly as possible.

    A printed 0 counts as 0.3; the missing amount is shared in proportion, and no demand moves by
    more than 0.45.
    """
    bases = [float(value) if value else 0.3 for value in printed]
    missing = overall - sum(bases)
    moved = list(bases)
    for _ in range(50):
        sign = 1.0 if missing > 0 else -1.0
        room = [
            max(0.0, 0.45 - sign * (value - base)) if base > 0.3 else 0.0
            for value, base in zip(moved, bases, strict=True)
        ]
        weight = sum(base for base, left in zip(bases, room, strict=True) if left > 0.0)
        if weight == 0.0 or abs(missing) < 1e-9:
            break
        moved = [
            value + sign * min(left, abs(missing) * base / weight)
            for value, base, left in zip(moved, bases, room, strict=True)
        ]
        missing = overall - sum(moved)
    return moved
