"""What the thesis on group optimisation prints, typed in from papers/scojo-pect-group-optimisation.txt, with its errors.

Most of its figures print no values; those that do are Figures 15, 23, 24, 28 and 29.
"""

from __future__ import annotations

LABELS = (71, 31, 73, 35, 7, 13)
"""The labels of its workloads; 13 stands in Table 7 only."""

TREE: dict[int, tuple[float, float]] = {4: (24, 64), 8: (40e3, 110e3), 10: (3629e3, 9864e3), 15: (1307674e6, 3554627e6)}
"""Table 2: paths and nodes of the search tree by the number of jobs."""

FACTS: dict[int, tuple[tuple[float, float, float], tuple[float, float, float], tuple[float, float, float]]] = {
    71: ((64, 19, 17), (0.5, 26.5, 73), (9, 17, 19)),
    31: ((63, 20, 17), (0.5, 25, 74.5), (9, 16, 20)),
    73: ((64, 20, 16), (0.4, 26.5, 73.5), (9, 17, 21)),
    35: ((65, 19, 16), (0.5, 27, 72.5), (9, 18, 20)),
    7: ((64, 20, 16), (0.5, 26, 73.5), (8, 17, 21)),
}
"""Table 5: short, medium and long: percent of the jobs, of the work, and the mean size."""

INTERARRIVAL_S: dict[int, float] = {71: 808, 31: 859, 73: 797, 35: 800, 7: 839}
"""Table 5: the mean seconds between arrivals."""

TRACE_FACTS: dict[
    str, tuple[tuple[float, float, float], tuple[float, float, float], tuple[float, float, float], float]
] = {
    "sdsc-blue": ((73.7, 17.7, 8.6), (1, 15, 84), (34, 114, 112), 0.79),
    "lanl": ((61.5, 34, 4.5), (2, 41, 57), (74, 92, 244), 0.52),
}
"""Table 6: the same of the logs, and how many of the long jobs are long and narrow."""

SIZES = (10, 20, 30, 40)
BEST_MEDIUM, BEST_LONG = 20, 30
_BY_SIZE = (
    (4.97, 4.81, 4.87, 4.97, 4.85, 5.09, 4.83, 4.79, 4.85, 4.96, 4.83, 4.79, 4.85, 4.96, 4.83, 4.79),
    (8.48, 8.14, 7.69, 7.98, 9.03, 8.51, 7.46, 8.47, 9.03, 8.29, 7.46, 8.47, 9.03, 8.29, 7.46, 8.47),
)
BY_SIZE: dict[tuple[int, int], tuple[float, float]] = {
    (medium, long): (_BY_SIZE[0][4 * row + column], _BY_SIZE[1][4 * row + column])
    for row, medium in enumerate(SIZES)
    for column, long in enumerate(SIZES)
}
"""Figure 15: slowdown of medium and of long jobs by the longest group of each; the order of its columns is deduced."""

GROUPS: dict[int | str, tuple[int, int, float]] = {
    71: (24, 31, 17), 35: (23, 38, 19), 31: (20, 39, 18), 73: (30, 29, 18), 7: (37, 32, 23), 13: (29, 27, 16.5),
    "sdsc-blue": (9, 0, 3), "lanl": (50, 11, 19),
}  # fmt: skip
"""Table 7: groups of medium, of long jobs, and what percent of these jobs was in one."""

GROUPS_ALONE: dict[int | str, tuple[int, int, float]] = {
    31: (35, 46, 30), 35: (34, 39, 26), 71: (39, 33, 25.5), 73: (40, 32, 25.5), 7: (41, 32, 26),
    "sdsc-blue": (18, 9, 8), "lanl": (81, 14, 36.5),
}  # fmt: skip
"""Table 9: the same without smart backfilling."""

NODES: dict[int, tuple[int, int]] = {
    71: (1709500, 69916), 31: (2308200, 92806), 35: (2530702, 211552), 73: (2115736, 113981), 7: (2340981, 112341),
}  # fmt: skip
"""Table 8: nodes of the search trees, and those that were pruned."""

MEANS_S: dict[int | str, tuple[int, int]] = {
    71: (22871, 7945), 31: (25783, 9341), 73: (23398, 8252), 35: (26760, 9913), 7: (26273, 9655),
    "sdsc-blue": (6687, 1026), "lanl": (12485, 4494),
}  # fmt: skip
"""Figures 23 and 24: mean response and mean wait with groups, in seconds; which workload stands where is deduced from the order
of Table 5, as the axis names none."""
