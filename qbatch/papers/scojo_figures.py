"""Tables 2 and 5 to 9 of the thesis on group optimisation and Figure 15: the printed numbers with ours beside them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np

from qbatch.papers import scojo_printed as printed
from qbatch.papers.evidence import change_interval
from qbatch.papers.record import Cell, Column, Row, Table, pair, spread
from qbatch.papers.scojo_replicas import (
    RESPONSE,
    UTILISATION,
    WAIT,
    Number,
    ScojoReplicas,
    groups_of,
    pruned_percent,
    slowdown,
)
from qbatch.papers.scojo_runs import (
    CONSERVATIVE,
    EASY,
    GROUPS,
    GROUPS_ALONE,
    LEX,
    NO_LEVEL2,
    SCHEMES,
    SCOJO,
    SCOJO_ALONE,
    WIDTHS,
    Facts,
    ScojoFigures,
    grouped_share,
    label_of,
    sized,
)
from qbatch.planning import search as searching
from qbatch.planning.kernels.discrepancy import SEARCHED_JOB
from qbatch.planning.kernels.live import live
from qbatch.planning.kernels.profile import new_profile
from qbatch.policies.slice_rules import LONG, MEDIUM, NAMES

_new_profile = live(new_profile)

HOUR_S = 3600.0
PERCENT = 100.0
COUNTED = (4, 8)
"""For how many jobs the nodes of the whole tree are counted by the search itself."""


def change(ratios: Sequence[float]) -> str | None:
    """Return ratios as a change in percent with its interval: ``-12.8 [-16.1, -9.4]``; None without any."""
    found = change_interval(ratios)
    if found.mean is None:
        return None
    bounds = "" if found.low is None or found.high is None else f" [{found.low:.1f}, {found.high:.1f}]"
    return f"{found.mean:.1f}{bounds}"


def workload_name(replicas: ScojoReplicas, workload: int) -> str:
    """Return ``71``, ``own 3``, or the name of a log."""
    if replicas.slug != "model":
        return replicas.slug
    label = label_of(workload)
    return f"own {workload - len(printed.LABELS) + 1}" if label is None else str(label)


def printed_key(replicas: ScojoReplicas, workload: int) -> int | str | None:
    """Return by what the printed tables know a workload; None where they do not."""
    return label_of(workload) if replicas.slug == "model" else replicas.slug


# ------------------------------------------------------------------------------------------------ Table 2


def paths_of(jobs: int) -> int:
    """Return how many orders of so many jobs there are."""
    return math.factorial(jobs)


def nodes_of(jobs: int) -> int:
    """Return how many nodes the tree of their orders has below its root: every beginning of an order is one."""
    return sum(math.factorial(jobs) // math.factorial(jobs - length) for length in range(1, jobs + 1))


@cache
def counted_nodes(jobs: int) -> int:
    """Return how many placements the search makes that looks at every order."""
    asked = np.array([(1, 1_000_000, 1_000_000, 0)] * jobs, SEARCHED_JOB)
    rules = searching.SearchRules(walk="lex", budget=paths_of(jobs) + 1, cuts=False)
    return searching.search(0, _new_profile(jobs, 0, 4 * jobs), asked, rules).nodes


def tree_table() -> Table:
    """Return Table 2: paths and nodes by the number of jobs."""
    rows: list[Row] = [
        {
            "jobs": jobs,
            "printed_paths": f"{paths:.0f}",
            "paths": paths_of(jobs),
            "printed_nodes": f"{nodes:.0f}",
            "nodes": nodes_of(jobs),
            "counted": counted_nodes(jobs) if jobs in COUNTED else None,
        }
        for jobs, (paths, nodes) in printed.TREE.items()
    ]
    columns = [
        Column("jobs", "jobs"), Column("printed_paths", "paths, printed"), Column("paths", "paths"),
        Column("printed_nodes", "nodes, printed"), Column("nodes", "nodes"), Column("counted", "counted by the search"),
    ]  # fmt: skip
    return Table("scojo-table2", "Table 2: orders of a group, and nodes of their tree", columns, rows)


# ------------------------------------------------------------------------------------------------ Tables 5 and 6


def facts_table(replicas: ScojoReplicas) -> Table:
    """Return Table 5 (the model) or Table 6 (a log): what the workloads are like."""
    found = {workload: one.facts for workload, one in sorted(_one_each(replicas).items())}
    rows = [
        {"workload": workload_name(replicas, workload), **_facts(facts), **_printed_facts(replicas, workload)}
        for workload, facts in found.items()
    ]
    columns = [Column("workload", "workload")]
    for what, heading, decimals in (("jobs", "jobs %", 1), ("work", "work %", 1), ("sizes", "size", 1)):
        for kind in NAMES:
            columns.append(Column(f"{what}_{kind}", f"{heading} {kind}", decimals))
        columns.append(Column(f"printed_{what}", "printed"))
    columns += [Column("interarrival", "interarrival s", 0), Column("printed_interarrival", "printed")]
    columns += [Column("load", "load", 3), Column("long_narrow", "long narrow / long", 2)]
    columns += [Column("narrow_of_long", "narrow of long", 2), Column("printed_ratio", "printed")]
    is_model = replicas.slug == "model"
    title = "Table 5: the workloads of the model" if is_model else f"Table 6: the first jobs of {replicas.slug}"
    notes = [
        "Long narrow: above 8 hours on at most a tenth of the machine, as the text of Table 6 says; narrow of long: above 3 hours"
    ]
    return Table(f"scojo-{'table5' if is_model else f'table6-{replicas.slug}'}", title, columns, rows, notes)


def _one_each(replicas: ScojoReplicas) -> dict[int, ScojoFigures]:
    found: dict[int, ScojoFigures] = {}
    for scheme in replicas.schemes:
        found |= replicas.runs(scheme)
    return found


def _facts(facts: Facts) -> dict[str, Cell]:
    cells: dict[str, Cell] = {
        "interarrival": facts.interarrival_s,
        "load": facts.load,
        "long_narrow": facts.long_narrow,
        "narrow_of_long": facts.narrow_of_long,
    }
    for what, values, factor in (
        ("jobs", facts.jobs, PERCENT),
        ("work", facts.work, PERCENT),
        ("sizes", facts.sizes, 1),
    ):
        cells |= {f"{what}_{kind}": factor * value for kind, value in zip(NAMES, values, strict=True)}
    return cells


def _printed_facts(replicas: ScojoReplicas, workload: int) -> dict[str, Cell]:
    if replicas.slug in printed.TRACE_FACTS:
        *three, ratio = printed.TRACE_FACTS[replicas.slug]
        return {**_slashed(three), "printed_ratio": f"{ratio:g}"}
    label = label_of(workload) if replicas.slug == "model" else None
    if label not in printed.FACTS:
        return {}
    return {**_slashed(printed.FACTS[label]), "printed_interarrival": f"{printed.INTERARRIVAL_S[label]:g}"}


def _slashed(three: Sequence[object]) -> dict[str, Cell]:
    """Return triples such as ``64/19/17``."""
    return {
        f"printed_{what}": "/".join(f"{value:g}" for value in values)  # type: ignore[attr-defined]
        for what, values in zip(("jobs", "work", "sizes"), three, strict=True)
    }


# ------------------------------------------------------------------------------------------------ Tables 7, 8 and 9


def groups_table(sources: Sequence[ScojoReplicas], scheme: str) -> Table:
    """Return Table 7, or Table 9 (without smart backfilling): how many groups there were."""
    known = printed.GROUPS if scheme == GROUPS else printed.GROUPS_ALONE
    rows: list[Row] = []
    for replicas in sources:
        for workload, one in sorted(replicas.runs(scheme).items()):
            medium, long, percent = known.get(printed_key(replicas, workload) or 0, (None, None, None))
            rows.append(
                {
                    "workload": workload_name(replicas, workload),
                    "medium": one.groups[MEDIUM],
                    "long": one.groups[LONG],
                    "total": one.groups[MEDIUM] + one.groups[LONG],
                    "percent": PERCENT * grouped_share(one),
                    "printed": None if medium is None else f"{medium} + {long}",
                    "printed_percent": None if percent is None else f"{percent:g}",
                }
            )
    rows += _mean_of_model(sources, scheme)
    columns = [
        Column("workload", "workload"), Column("medium", "medium", 1), Column("long", "long", 1), Column("total", "total", 1),
        Column("total_half", "+-", 1), Column("printed", "printed"), Column("percent", "% in groups", 1),
        Column("percent_half", "+-", 1), Column("printed_percent", "printed"),
    ]  # fmt: skip
    number, what = ("7", "") if scheme == GROUPS else ("9", ", without smart backfilling")
    notes = ["% in groups: of the medium and long jobs"]
    return Table(f"scojo-table{number}", f"Table {number}: groups{what}", columns, rows, notes)


def _mean_of_model(sources: Sequence[ScojoReplicas], scheme: str) -> list[Row]:
    runs = [one for replicas in sources if replicas.slug == "model" for one in replicas.runs(scheme).values()]
    if len(runs) < 2:
        return []
    return [
        {
            "workload": f"mean of {len(runs)}",
            "medium": sum(one.groups[MEDIUM] for one in runs) / len(runs),
            "long": sum(one.groups[LONG] for one in runs) / len(runs),
            **spread("total", [groups_of(one) for one in runs]),
            **spread("percent", [grouped_share(one) for one in runs], PERCENT),
        }
    ]


def nodes_table(replicas: ScojoReplicas) -> Table:
    """Return Table 8: nodes and pruned nodes, by the search that the paper had (``lex``) and by the default."""
    rows: list[Row] = []
    for workload in replicas.workloads:
        row: dict[str, Cell] = {"workload": workload_name(replicas, workload)}
        if (nodes := printed.NODES.get(label_of(workload) or 0)) is not None:
            row |= {
                "printed_nodes": nodes[0],
                "printed_pruned": nodes[1],
                "printed_percent": PERCENT * nodes[1] / nodes[0],
            }
        for key, scheme in (("lex", LEX), ("ilds", GROUPS)):
            one = replicas.runs(scheme).get(workload)
            if one is not None:
                row |= {
                    f"{key}_nodes": one.nodes,
                    f"{key}_pruned": one.pruned,
                    f"{key}_percent": pruned_percent(one),
                    f"{key}_group": one.nodes / max(groups_of(one), 1),
                }
        rows.append(row)
    columns = [Column("workload", "workload")]
    for key in ("printed", "lex", "ilds"):
        columns += [Column(f"{key}_nodes", f"nodes, {key}"), Column(f"{key}_pruned", "pruned")]
        columns += [Column(f"{key}_percent", "%", 1), Column(f"{key}_group", "nodes a group", 0)]
    notes = [
        "Printed nodes over the groups of Table 7 are 31 to 41 thousand a group: the tree of the paper was lexicographic "
        "(rule 22)"
    ]
    return Table("scojo-table8", "Table 8: what branch and bound prunes", columns, rows, notes)


# ------------------------------------------------------------------------------------------------ Figure 15


def sizes_table(replicas: ScojoReplicas) -> Table:
    """Return Figure 15: the slowdown of medium and of long jobs by the longest groups."""
    rows: list[Row] = []
    best = sized(printed.BEST_MEDIUM, printed.BEST_LONG)
    chosen = [workload for workload in replicas.workloads if label_of(workload) is not None]
    for (medium, long), (known_medium, known_long) in printed.BY_SIZE.items():
        row: dict[str, Cell] = {"medium": medium, "long": long}
        scheme = sized(medium, long)
        for kind, known in (("medium", known_medium), ("long", known_long)):
            number = slowdown(kind)
            here = {workload: value for workload, value in replicas.of(scheme, number).items() if workload in chosen}
            row |= {f"printed_{kind}": known, **spread(f"of_{kind}", here)}
            apart = replicas.ratio(scheme, best, number)
            row[f"change_{kind}"] = change([value for workload, value in apart.items() if workload in chosen])
        rows.append(row)
    columns = [Column("medium", "M"), Column("long", "L")]
    for kind in ("medium", "long"):
        columns += [Column(f"printed_{kind}", f"{kind}, printed", 2), *pair(f"of_{kind}", kind, 2)]
        columns.append(Column(f"change_{kind}", "% from M20 L30"))
    notes = [
        "Means over the workloads that the paper labels; the order of its columns is deduced (M outside, L inside)"
    ]
    title = "Figure 15: slowdown of medium and of long jobs by the longest groups"
    return Table("scojo-figure15", title, columns, rows, notes)


# ------------------------------------------------------------------------------------------------ Figures 23 to 29, 38, 39


MEANS_OF: tuple[tuple[str, str, Number, float, int], ...] = (
    ("response", "response h", RESPONSE, 1 / HOUR_S, 2),
    ("wait", "wait h", WAIT, 1 / HOUR_S, 2),
    ("utilisation", "utilisation %", UTILISATION, PERCENT, 1),
)
"""What Figures 23, 24 and 26 show: key, heading, number, factor, decimals."""

MEANS_SCHEMES = (SCOJO, GROUPS, NO_LEVEL2, SCOJO_ALONE, GROUPS_ALONE)


def means_table(sources: Sequence[ScojoReplicas]) -> Table:
    """Return Figures 23, 24, 26, 28, 29, 38 and 39: mean response, mean wait and utilisation of each workload."""
    rows: list[Row] = []
    for replicas in sources:
        for workload in replicas.workloads:
            for scheme in MEANS_SCHEMES:
                one = replicas.runs(scheme).get(workload)
                if one is not None:
                    rows.append(
                        {"workload": workload_name(replicas, workload), "scheme": scheme}
                        | {key: _scaled(number(one), factor) for key, _, number, factor, _ in MEANS_OF}
                        | _printed_means(replicas, workload, scheme)
                    )
    columns = [Column("workload", "workload"), Column("scheme", "scheme")]
    for key, heading, _, _, decimals in MEANS_OF:
        columns += [Column(key, heading, decimals), Column(f"printed_{key}", "printed", decimals)]
    notes = [
        "Over all jobs, the wait to the first start (rule 20). The printed numbers are of other workloads with the same labels; "
        "which stands for which is deduced"
    ]
    title = "Figures 23, 24, 26, 28, 29, 38 and 39: mean response, mean wait, utilisation"
    return Table("scojo-means", title, columns, rows, notes)


def _scaled(value: float | None, factor: float) -> float | None:
    return None if value is None else factor * value


def _printed_means(replicas: ScojoReplicas, workload: int, scheme: str) -> dict[str, Cell]:
    known = printed.MEANS_S.get(printed_key(replicas, workload) or 0)
    if known is None or scheme != GROUPS:
        return {}
    return {"printed_response": known[0] / HOUR_S, "printed_wait": known[1] / HOUR_S}


# ------------------------------------------------------------------------------------------------ slowdowns


def slowdowns_table(replicas: ScojoReplicas, name: str, title: str, schemes: Sequence[str]) -> Table:
    """Return the mean slowdown of each class and width under some schemes, over the workloads: Figures 16 to 22, 30 to 36."""
    rows: list[Row] = []
    for kind in NAMES:
        for width in ("all", *WIDTHS):
            row: dict[str, Cell] = {"jobs": kind, "width": width}
            row["count"] = _mean_count(replicas, kind, width)
            for scheme in schemes:
                row |= spread(scheme, replicas.of(scheme, slowdown(kind, width)))
            for scheme in schemes[1:]:
                ratios = replicas.ratio(scheme, schemes[0], slowdown(kind, width))
                row[f"change_{scheme}"] = change(list(ratios.values()))
            rows.append(row)
    columns = [Column("jobs", "jobs"), Column("width", "width"), Column("count", "how many", 0)]
    for scheme in schemes:
        columns += pair(scheme, scheme, 2)
    for scheme in schemes[1:]:
        columns.append(Column(f"change_{scheme}", f"% from {schemes[0]}"))
    return Table(name, title, columns, rows)


def _mean_count(replicas: ScojoReplicas, kind: str, width: str) -> float:
    name = kind if width == "all" else f"{kind} {width}"
    counts = [one.cells[name].jobs if name in one.cells else 0 for one in _one_each(replicas).values()]
    return sum(counts) / max(len(counts), 1)


def schemes_table() -> Table:
    """Return what the schemes of the tables are called by ``qbatch replay -p``."""
    names = [name for name in SCHEMES if not name.startswith("groups M")]
    rows: list[Row] = [{"scheme": name, "policy": SCHEMES[name]} for name in names]
    columns = [Column("scheme", "scheme"), Column("policy", "policy")]
    notes = [f"{EASY} and {CONSERVATIVE} know no slices; one class has the whole machine for itself"]
    return Table("scojo-schemes", "The schemes", columns, rows, notes)
