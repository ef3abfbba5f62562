"""The evaluation that section 4.1 of Islam and others 2003 begins with: sets of jobs that fill a machine (rule 17)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qbatch.model.machine import one_host
from qbatch.model.record import MICROSECONDS
from qbatch.papers.qops_runs import SCHEMES
from qbatch.papers.qops_why import WHY
from qbatch.papers.record import FAILS, HOLDS, Cell, Claim, Column, Row, Table
from qbatch.policies import load_policy
from qbatch.simulation import prepare, run
from qbatch.sweeps.kept import Tell, silent
from qbatch.workloads.transform import packed_set

SETS = 15
PROCS, SPAN_S = 32, 7_200
SLACKS = {"static": (0.0, 0.05, 0.1, 0.2), "dynamic": (0.0, 0.1, 0.5)}
"""The values of r by kind of set."""


@dataclass(frozen=True, slots=True)
class PackedFigures:
    """Of ``SETS`` packed sets of one kind and slack, how many each scheme admits whole."""

    kind: str
    slack: float
    whole: dict[str, int]


def run_packed(tell: Tell = silent) -> list[PackedFigures]:
    """Run every kind and slack under every scheme; all sets are drawn from seeds 1 on."""
    machine, found = one_host(PROCS), []
    points = [(kind, slack) for kind, slacks in SLACKS.items() for slack in slacks]
    for place, (kind, slack) in enumerate(points):
        whole = dict.fromkeys(SCHEMES, 0)
        for seed in range(1, SETS + 1):
            made = packed_set(kind, procs=PROCS, span_s=SPAN_S, slack=slack, seed=seed)
            deadlines = np.asarray(made.deadline) * MICROSECONDS
            work = prepare(made.log, machine, deadlines=deadlines)
            for scheme, asked in SCHEMES.items():
                whole[scheme] += bool(run(work, machine, load_policy(asked)).ran.all())
        found.append(PackedFigures(kind, slack, whole))
        tell("packed sets", place + 1, len(points))
    return found


def packed_table(found: list[PackedFigures]) -> Table:
    """Return how many sets are admitted whole, a line for each kind and slack."""
    rows: list[Row] = []
    for one in found:
        row: dict[str, Cell] = {"kind": one.kind, "r": one.slack, "sets": SETS, **one.whole}
        rows.append(row)
    columns = [
        Column("kind", "set"),
        Column("r", "r", 2),
        Column("sets", "sets"),
        *(Column(name, name) for name in SCHEMES),
    ]
    title = f"Section 4.1: packed sets ({PROCS} processors, {SPAN_S:,} s) of which all jobs are admitted"
    return Table("packed", title, columns, rows)


def packed_claims(found: list[PackedFigures]) -> list[Claim]:
    """Return the two claims of section 4.1 on packed sets."""
    static, dynamic = ([one for one in found if one.kind == kind] for kind in SLACKS)
    rises = all(
        counts == sorted(counts) and counts[-1] == SETS and counts[0] < SETS
        for counts in ([one.whole[scheme] for one in static] for scheme in SCHEMES)
    )
    at_0 = all(count == SETS for count in dynamic[0].whole.values())
    falls = any(count < SETS for one in dynamic[1:] for count in one.whole.values())
    return [
        Claim(
            "4.1.static", "Packed static sets: admitted whole ever more often as r rises, in the end always",
            HOLDS if rises else FAILS, _numbers(static),
        ),
        Claim(
            "4.1.dynamic-at-0", "Packed dynamic sets: always admitted whole at r = 0", HOLDS if at_0 else FAILS,
            _numbers(dynamic[:1]),
        ),
        Claim(
            "4.1.dynamic-falls", "Packed dynamic sets: admitted whole less often at r > 0", HOLDS if falls else FAILS,
            _numbers(dynamic[1:]), why="" if falls else WHY["dynamic-falls"],
        ),
    ]  # fmt: skip


def _numbers(found: list[PackedFigures]) -> str:
    return "; ".join(
        f"r = {one.slack:g}: {', '.join(f'{name} {count}' for name, count in one.whole.items())} of {SETS}"
        for one in found
    )
