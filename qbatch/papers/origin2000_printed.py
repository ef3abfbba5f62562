"""What Chiang and Vernon 2001 print of their workload and what they say of it, to hold generated months to.

Classes and demands of Table 4 stand with the generator (``workloads/origin2000/tables.py``); here is what it does not need.
"""

from __future__ import annotations

TOTAL_JOBS = {
    "1999-10": 9974, "1999-11": 7348, "1999-12": 5863, "2000-01": 7046, "2000-02": 8122, "2000-03": 7034,
}  # fmt: skip
"""Table 4: the total of each month, to which its twelve classes must add up."""

ROUNDING_POINTS = 2
"""By how many points the demands of twelve classes, each rounded, may miss the overall demand."""

LARGE_PERCENT, LARGE_MONTHS = 30, 4
"""Section 3: "the large jobs (lj) have high demand (i.e., over 30 % ...) during four of the months"."""

MT_LJ_PERCENT = (10, 15)
LT_MJ_PERCENT = (1, 5)
"""Section 3: what these classes demand each month."""

PERIODS = {
    "peak": tuple(range(9, 18)),
    "intermediate": (7, 8, *range(18, 24)),
    "low": tuple(range(7)),
}
"""Section 3, Figure 1: "three periods (peak, intermediate, and low) of relatively stable job arrival rate"; the hours are ours
(docs/spec/papers.md, part 3): the figure prints none."""

STATEMENTS = {
    "F.ended-early": (
        "15 to 20 % of the jobs of each class end within a minute",
        ("ended within 1 min, least of the classes", "ended within 1 min, most of the classes"),
    ),
    "F.lt-could-be-st": ("Over 50 % of the lt jobs could have asked for st", ("lt that could have asked for st",)),
    "F.memory-unused": (
        "25 to 35 % of the jobs of each class use less than a tenth of the memory they request",
        ("used below 10 % of memory, least of the classes", "used below 10 % of memory, most of the classes"),
    ),
    "F.serial-memory": (
        "About half (40 to 65 %) of the serial jobs request more than 512 MB",
        ("serial jobs that request over 512 MB",),
    ),
    "F.over-an-hour": (
        "12 to 33 % of the jobs that request over an hour end within a minute",
        ("requested over 1 h, ended within 1 min",),
    ),
    "F.over-ten-hours": (
        "11 to 42 % of the jobs that request over ten hours end within a minute",
        ("requested over 10 h, ended within 1 min",),
    ),
}
"""Sections 2.4 and 3: claim, what is said, and the statistics of a month that it is about.  The paper says some of it of weekday
peaks; here it is of whole months."""
