"""Paired changes from one scheme to another, as tables: what each part of the optimiser gives, and to whom.

Every line is a comparison on one source: the mean over its workloads of the ratio on the same workload, by logarithms, told as a
change in percent with its 95 % interval; below 0 the first of the two is better.
"""

from __future__ import annotations

from collections.abc import Sequence

from qbatch.papers.record import Cell, Column, Row, Table, pair, spread
from qbatch.papers.scojo_figures import HOUR_S, PERCENT, change
from qbatch.papers.scojo_replicas import (
    RESPONSE,
    UTILISATION,
    WAIT,
    Number,
    ScojoReplicas,
    groups_of,
    of_cell,
    slowdown,
)
from qbatch.papers.scojo_runs import (
    BOTTOM,
    BOTTOM_ALONE,
    CONSERVATIVE,
    DDS,
    EASY,
    GROUPS,
    GROUPS_ALONE,
    LEX,
    NO_DYNAMIC,
    NO_HALVES,
    NO_LEVEL1,
    NO_LEVEL2,
    NO_SELECT,
    NO_SHIFT,
    ONE,
    ONE_BOTTOM,
    ONE_GROUPS,
    ONE_UNSEARCHED,
    SCOJO,
    SCOJO_ALONE,
    SCOJO_EASY,
    WIDTHS,
)
from qbatch.policies.slice_rules import NAMES

Comparison = tuple[str, str]
"""A scheme, and the one that it is held against."""

COMPARISONS: tuple[Comparison, ...] = (
    (GROUPS, SCOJO), (GROUPS, SCOJO_EASY), (GROUPS_ALONE, SCOJO_ALONE), (SCOJO, SCOJO_ALONE), (GROUPS, NO_DYNAMIC),
    (GROUPS, NO_LEVEL2), (GROUPS, NO_LEVEL1), (GROUPS, NO_SELECT), (GROUPS, NO_SHIFT), (GROUPS, NO_HALVES), (GROUPS, LEX),
    (GROUPS, DDS), (GROUPS, BOTTOM), (GROUPS_ALONE, BOTTOM_ALONE), (BOTTOM, SCOJO), (BOTTOM_ALONE, SCOJO_ALONE),
)  # fmt: skip
"""What the paper compares, and each of the parts by itself."""

BEYOND: tuple[Comparison, ...] = (
    (GROUPS, SCOJO), (GROUPS, SCOJO_EASY), (BOTTOM, SCOJO), (GROUPS, BOTTOM), (SCOJO, CONSERVATIVE), (GROUPS, CONSERVATIVE),
    (GROUPS, EASY), (BOTTOM, EASY),
)  # fmt: skip
"""What is compared under users' estimates."""

ON_PLAIN: tuple[Comparison, ...] = (
    (ONE, CONSERVATIVE), (ONE_GROUPS, ONE), (ONE_GROUPS, CONSERVATIVE), (ONE_GROUPS, EASY), (ONE_BOTTOM, CONSERVATIVE),
    (ONE_BOTTOM, EASY), (ONE_UNSEARCHED, CONSERVATIVE), (ONE_BOTTOM, ONE_UNSEARCHED), (ONE_GROUPS, ONE_BOTTOM),
)  # fmt: skip
"""What is compared on a plain space-shared machine."""

_NUMBERS: tuple[tuple[str, str, Number], ...] = (
    ("short", "short", slowdown("short")),
    ("medium", "medium", slowdown("medium")),
    ("long", "long", slowdown("long")),
    ("response", "response", RESPONSE),
    ("wait", "wait", WAIT),
)

_BY_WIDTH = tuple((f"{kind}_{width}", f"{kind} {width}", slowdown(kind, width)) for kind in NAMES for width in WIDTHS)

_NOTE = (
    "Change in percent from the second scheme to the first: the mean ratio over the workloads (by logarithms) with its 95 % "
    "interval; below 0 the first is better"
)


def change_tables(sources: Sequence[ScojoReplicas], name: str, title: str, comparisons: Sequence[Comparison]) -> list[Table]:
    """Return two tables of some comparisons on some sources: by class, and by class and width."""
    by_class = [Column(key, heading) for key, heading, _ in _NUMBERS]
    by_class += [Column("groups", "groups", 1), *pair("utilisation", "utilisation points", 2)]
    by_width = [Column(key, heading) for key, heading, _ in _BY_WIDTH]
    return [
        Table(
            name,
            f"{title}: slowdown by class, response, wait",
            [*_FIRST, *by_class],
            _rows(sources, comparisons),
            [_NOTE],
        ),
        Table(
            f"{name}-widths",
            f"{title}: slowdown by class and width",
            [*_FIRST, *by_width],
            _rows(sources, comparisons, _BY_WIDTH),
            [_NOTE],
        ),
    ]


_FIRST = [
    Column("source", "source"), Column("estimates", "estimates"), Column("scheme", "scheme"), Column("base", "against"),
    Column("workloads", "n"),
]  # fmt: skip


def _rows(
    sources: Sequence[ScojoReplicas],
    comparisons: Sequence[Comparison],
    numbers: Sequence[tuple[str, str, Number]] = _NUMBERS,
) -> list[Row]:
    rows: list[Row] = []
    for replicas in sources:
        for scheme, base in comparisons:
            apart = replicas.more(scheme, base, UTILISATION)
            if not apart:
                continue
            row: dict[str, Cell] = {
                "source": replicas.slug, "estimates": replicas.estimates, "scheme": scheme, "base": base,
                "workloads": len(apart),
            }  # fmt: skip
            for key, _, number in numbers:
                row[key] = change(list(replicas.ratio(scheme, base, number).values()))
            if numbers is _NUMBERS:
                row |= spread("utilisation", apart, PERCENT)
                row["groups"] = spread("groups", replicas.of(scheme, groups_of))["groups"]
            rows.append(row)
    return rows


def levels_table(sources: Sequence[ScojoReplicas], name: str, title: str, schemes: Sequence[str]) -> Table:
    """Return what each scheme is worth on each source: means over the workloads."""
    rows: list[Row] = []
    for replicas in sources:
        for scheme in schemes:
            runs = replicas.runs(scheme)
            if not runs:
                continue
            row: dict[str, Cell] = {
                "source": replicas.slug, "estimates": replicas.estimates, "scheme": scheme, "workloads": len(runs)
            }  # fmt: skip
            for kind in ("all", *NAMES):
                row |= spread(kind, replicas.of(scheme, slowdown(kind)))
            row |= spread("wide", replicas.of(scheme, slowdown("long", "wide")))
            row |= spread("worst", replicas.of(scheme, of_cell("worst")))
            row |= spread("response", replicas.of(scheme, RESPONSE), 1 / HOUR_S)
            row |= spread("wait", replicas.of(scheme, WAIT), 1 / HOUR_S)
            row |= spread("utilisation", replicas.of(scheme, UTILISATION), PERCENT)
            rows.append(row)
    columns = [
        Column("source", "source"),
        Column("estimates", "estimates"),
        Column("scheme", "scheme"),
        Column("workloads", "n"),
    ]
    for kind in ("all", *NAMES):
        columns += pair(kind, f"slowdown {kind}", 2)
    columns += [*pair("wide", "long wide", 2), *pair("worst", "worst", 0), *pair("response", "response h", 2)]
    columns += [*pair("wait", "wait h", 2), *pair("utilisation", "utilisation %", 1)]
    notes = [
        "Slowdown: ceil(max(1, response / max(run, 600 s))); classes by run time, whatever the policy took them for; worst: the "
        "largest of a job, not rounded up"
    ]
    return Table(name, title, columns, rows, notes)
