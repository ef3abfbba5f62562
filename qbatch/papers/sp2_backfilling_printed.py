"""What Feitelson and Weil 1998 print, as data: Tables 1 to 3 and the numbers that the text gives for Figure 11.

Typed in as printed, with the paper's own inconsistencies: the months of Table 2 hold 28,290 jobs where the text says
28,240, and begin in September where the text says October.
"""

from __future__ import annotations

from dataclasses import dataclass

POLICIES = ("easy", "conservative")
"""The two schemes, in the order of the paper's columns."""

IUCC_JOBS = 5203
KTH_JOBS = 28240
"""Jobs in the text of section 3.2."""

IUCC_SIZES = (33, 49, 58)


@dataclass(frozen=True, slots=True)
class PrintedMonth:
    """One row of Table 2: month of the log, jobs, and the mean bounded slowdown under both schemes."""

    label: str
    jobs: int
    easy: int
    conservative: int


TABLE_1: dict[str, tuple[int, tuple[tuple[int, int], ...]]] = {
    "Jan": (635, ((8176, 8306), (1769, 1586), (492, 413))),
    "Feb": (562, ((1886, 2580), (328, 318), (201, 201))),
    "Mar": (1406, ((10077, 10366), (1088, 1137), (540, 519))),
    "Apr": (493, ((510, 496), (112, 119), (39, 38))),
    "May": (529, ((2954, 2850), (410, 397), (145, 145))),
    "Jun": (566, ((2551, 2508), (438, 421), (213, 213))),
    "Jul": (550, ((4075, 3341), (623, 607), (315, 312))),
    "Aug": (462, ((3238, 3540), (807, 860), (251, 251))),
}
"""IUCC, 1997: jobs, and (EASY, conservative) at each of ``IUCC_SIZES``.  That log was never published."""

TABLE_2 = (
    PrintedMonth("1996-09", 86, 2, 2),
    PrintedMonth("1996-10", 2377, 93, 76),
    PrintedMonth("1996-11", 1988, 128, 135),
    PrintedMonth("1996-12", 2294, 86, 124),
    PrintedMonth("1997-01", 2899, 97, 81),
    PrintedMonth("1997-02", 2908, 122, 134),
    PrintedMonth("1997-03", 2078, 104, 118),
    PrintedMonth("1997-04", 2820, 83, 92),
    PrintedMonth("1997-05", 4061, 67, 60),
    PrintedMonth("1997-06", 2694, 37, 31),
    PrintedMonth("1997-07", 2160, 32, 34),
    PrintedMonth("1997-08", 1925, 50, 57),
)
"""KTH, users' estimates, by month."""

USERS = "users"
"""The row of Table 3 with the estimates that stand in the log."""

TABLE_3: dict[int | str, tuple[int, int]] = {
    1: (62, 61),
    4: (57, 53),
    11: (51, 44),
    31: (57, 45),
    101: (62, 57),
    301: (59, 52),
    USERS: (81, 84),
}
"""KTH, whole log: (EASY, conservative) by the factor f of estimates drawn from [run, f x run]."""

FIGURE_11_JOBS = 20054
FIGURE_11_FULL = 3215
"""Jobs that used exactly 100 % of what they asked for."""
FIGURE_11_KILLED = 3204
"""Those of them that the system killed."""
FIGURE_11_FOUR_HOURS = 793
"""Jobs killed by the system that had asked for four hours."""
FIGURE_11_HIGHEST_H = 60
