"""The claims of the thesis on group optimisation: docs/spec/papers.md, R002 and its claims that were missing, figure by figure.

A claim on the workloads of the model is a set of comparisons over them (``evidence``), paired by workload.  What the paper says
of a size ("about 15 %") is read as between half and twice of it; whether there is any gain at all is a claim of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from qbatch.papers import scojo_printed as printed
from qbatch.papers.evidence import EvidenceItem, above, below, claim_of, inside, written
from qbatch.papers.record import CONTRADICTED, FAILS, UNCHECKED, Claim, claim
from qbatch.papers.scojo_figures import COUNTED, PERCENT, counted_nodes, nodes_of, paths_of
from qbatch.papers.scojo_replicas import (
    RESPONSE,
    UTILISATION,
    WAIT,
    ScojoReplicas,
    grouped_percent,
    groups_of,
    of_cell,
    pruned_percent,
    slowdown,
)
from qbatch.papers.scojo_runs import (
    BOTTOM,
    BOTTOM_ALONE,
    GROUPS,
    GROUPS_ALONE,
    LEX,
    NO_DYNAMIC,
    NO_LEVEL2,
    SCOJO,
    SCOJO_ALONE,
    label_of,
    sized,
)
from qbatch.papers.scojo_why import WHY
from qbatch.policies.slice_rules import NAMES

_PERCENT = " %"
_POINTS = " points"
_NOT_WIDE = [(kind, width) for kind in ("long", "medium") for width in ("narrow", "medium")]


def all_claims(model: ScojoReplicas, logs: Mapping[str, ScojoReplicas]) -> list[Claim]:
    """Return every claim of the tables and figures but Figure 15; ``logs``: those of the paper that were run, by slug."""
    makers: list[Callable[[ScojoReplicas], list[Claim]]] = [
        workloads, groups, gains, means, dynamic, pruning, second_level, without_smart, bottom_line, smart
    ]  # fmt: skip
    claims = tree() + [one for make in makers for one in make(model)]
    for slug in printed.TRACE_FACTS:
        claims += on_log(slug, model, logs.get(slug))
    return claims


def _claim(name: str, text: str, findings: Sequence[EvidenceItem], note: str = "") -> Claim:
    return claim_of(name, text, findings, why=WHY.get(name, ""), note=note)


def _about(label: str, values: Mapping[int, float], percent: float) -> EvidenceItem:
    """Compare ratios with a gain of about so many percent: between half and twice of it."""
    return _within(label, values, -2 * percent, -percent / 2)


def _within(label: str, ratios: Mapping[int, float], low: float, high: float) -> EvidenceItem:
    return inside(label, list(ratios.values()), low, high, _PERCENT, is_change=True)


def _less(label: str, ratios: Mapping[int, float], percent: float = 0.0) -> EvidenceItem:
    return below(label, list(ratios.values()), percent, _PERCENT, is_change=True)


def _more(label: str, ratios: Mapping[int, float], percent: float = 0.0) -> EvidenceItem:
    return above(label, list(ratios.values()), percent, _PERCENT, is_change=True)


def _cells(
    replicas: ScojoReplicas, scheme: str, base: str, parts: Sequence[tuple[str, str]]
) -> list[tuple[str, dict[int, float]]]:
    """Return the changes of slowdown of some classes and widths, with what they are called."""
    return [(f"{kind} {width}", replicas.ratio(scheme, base, slowdown(kind, width))) for kind, width in parts]


def _divided(ratios: Mapping[int, float], others: Mapping[int, float]) -> dict[int, float]:
    """Return ratios of ratios, of the workloads that have both."""
    return {workload: value / others[workload] for workload, value in ratios.items() if workload in others}


def tree() -> list[Claim]:
    """Table 2: how fast the tree grows."""
    wrong = [jobs for jobs in COUNTED if counted_nodes(jobs) != nodes_of(jobs)]
    far = [
        jobs
        for jobs, (paths, nodes) in printed.TREE.items()
        if abs(paths_of(jobs) - paths) > 0.01 * paths or abs(nodes_of(jobs) - nodes) > 0.01 * nodes
    ]
    counts = ", ".join(f"{jobs} jobs: {counted_nodes(jobs):,} nodes" for jobs in COUNTED)
    text = "n! paths and sum over i of n!/(n-i)! nodes, as printed to 1 %; the search itself makes as many"
    return [claim("t2.tree", text, not wrong and not far, counts)]


def workloads(model: ScojoReplicas) -> list[Claim]:
    """Table 5: what the workloads are like (jobs to 1.5 points, work to 3, sizes to 1.5, of the mean of those printed)."""
    runs = model.runs(SCOJO) or model.runs(GROUPS)
    known = list(printed.FACTS.values())
    found = []
    for place, (what, tolerance) in enumerate((("jobs", 1.5), ("work", 3.0), ("sizes", 1.5))):
        factor = 1.0 if what == "sizes" else PERCENT
        for kind, name in enumerate(NAMES):
            middle = sum(row[place][kind] for row in known) / len(known)
            values = [factor * getattr(one.facts, what)[kind] for one in runs.values()]
            found.append(inside(f"{what} {name}", values, middle - tolerance, middle + tolerance))
    return [_claim("t5.facts", "The workloads of the model are as Table 5 prints them", found)]


def groups(model: ScojoReplicas) -> list[Claim]:
    """Tables 7 and 9: how many groups there are."""
    total, percent = ([*model.of(GROUPS, number).values()] for number in (groups_of, grouped_percent))
    alone = model.more(GROUPS_ALONE, GROUPS, groups_of)
    return [
        _claim("t7.count", "40 to 90 groups to a workload", [inside("groups", total, 40, 90)]),
        _claim("t7.share", "10 to 30 % of the medium and long jobs are in one", [inside("%", percent, 10, 30)]),
        _claim(
            "t9.more",
            "Without smart backfilling there are more groups",
            [above("groups more", [*alone.values()], 0.0)],
        ),
    ]


def gains(model: ScojoReplicas) -> list[Claim]:
    """Figures 16 to 20: slowdown with groups against conservative scojo."""
    change = {kind: model.ratio(GROUPS, SCOJO, slowdown(kind)) for kind in ("all", *NAMES)}
    wide = _cells(model, GROUPS, SCOJO, [("long", "wide"), ("medium", "wide")])
    return [
        _claim("f16.medium", "Medium jobs: slowdown is lower with groups", [_less("medium", change["medium"])]),
        _claim("f16.long", "Long jobs: slowdown is lower with groups", [_less("long", change["long"])]),
        _claim(
            "f16.narrow-medium",
            "Narrow and medium-sized jobs of both classes: slowdown is lower with groups",
            [_less(*one) for one in _cells(model, GROUPS, SCOJO, _NOT_WIDE)],
        ),
        _claim("f16.wide", "Wide medium and long jobs are worse off with groups", [_more(*one) for one in wide]),
        _claim("f16.text-medium", "Medium jobs gain about 9 % (4.5 to 18)", [_about("medium", change["medium"], 9)]),
        _claim("f16.text-long", "Long jobs gain about 15 % (7.5 to 30)", [_about("long", change["long"], 15)]),
        _claim(
            "abstract.gains",
            "Slowdowns improve by 18 to 32 % (medium and long jobs)",
            [_within(kind, change[kind], -32, -18) for kind in ("medium", "long")],
        ),
        _claim(
            "conclusion.gains",
            "Slowdown improves by about 16 % (8 to 32), all jobs",
            [_about("all", change["all"], 16)],
        ),
        _size_of_gains(change),
        Claim(
            "f16.by-seed",
            "By seed: 31 gains 26 % (long; narrow and medium-sized 49), 73 40 % and 22 (medium), 35 30 %",
            UNCHECKED,
            "the labels are seeds of another generator: workloads with the same labels are others here",
            expected=UNCHECKED,
        ),
    ]


def _size_of_gains(change: Mapping[str, Mapping[int, float]]) -> Claim:
    said = "; ".join(
        one.text() for one in (_less(kind, change[kind]) for kind in ("all", *NAMES)) if one.found.mean is not None
    )
    return Claim(
        "gains.size",
        "The paper says how much groups gain: 18 to 32 % (abstract), 9 and 15 % (9.3.1), 16 % (10)",
        CONTRADICTED,
        said or "no such runs",
        why=WHY["gains.size"],
        expected=CONTRADICTED,
    )


def means(model: ScojoReplicas) -> list[Claim]:
    """Figures 23, 24 and 26: response, wait, utilisation."""
    response, wait = (model.ratio(GROUPS, SCOJO, number) for number in (RESPONSE, WAIT))
    used = [PERCENT * value for value in model.more(GROUPS, SCOJO, UTILISATION).values()]
    return [
        _claim("f23.response", "Mean response is lower with groups", [_less("response", response)]),
        _claim("f23.by-12", "Mean response is about 12 % lower (6 to 24)", [_about("response", response, 12)]),
        _claim("f24.wait", "Mean wait is lower with groups", [_less("wait", wait)]),
        _claim("f24.by-10", "Mean wait is about 10 % lower (5 to 20)", [_about("wait", wait, 10)]),
        _claim("f26.falls", "Utilisation falls with groups", [below("utilisation", used, 0.0, _POINTS)]),
        _claim(
            "f26.at-most-2",
            "Utilisation falls by no more than 2 points",
            [above("utilisation", used, -2.0, _POINTS)],
        ),
    ]


def dynamic(model: ScojoReplicas) -> list[Claim]:
    """Figure 25: dynamic backfilling on submission."""
    wait = model.ratio(GROUPS, NO_DYNAMIC, WAIT)
    by_class = {kind: model.ratio(GROUPS, NO_DYNAMIC, of_cell("wait_s", kind)) for kind in NAMES}
    most = [_less(f"{kind} beside long", _divided(by_class[kind], by_class["long"])) for kind in ("short", "medium")]
    return [
        _claim("f25.wait", "Dynamic backfilling lowers the mean wait", [_less("wait", wait)]),
        _claim(
            "f25.by-5", "Dynamic backfilling lowers the mean wait by about 5 % (2.5 to 10)", [_about("wait", wait, 5)]
        ),
        _claim("f25.short-medium", "Waits of short and of medium jobs gain more by it than those of long ones", most),
    ]


def pruning(model: ScojoReplicas) -> list[Claim]:
    """Table 8: branch and bound."""
    found = [
        below(name, [*model.of(scheme, pruned_percent).values()], 15.0, _PERCENT)
        for name, scheme in (("lex", LEX), ("ilds", GROUPS))
    ]
    return [_claim("t8.little", "Branch and bound prunes less than 15 % of the nodes", found)]


def second_level(model: ScojoReplicas) -> list[Claim]:
    """Figures 27 to 29: what the search of the merged order gives."""
    change = {kind: model.ratio(GROUPS, NO_LEVEL2, slowdown(kind)) for kind in ("medium", "long")}
    response, wait = (model.ratio(GROUPS, NO_LEVEL2, number) for number in (RESPONSE, WAIT))
    count = model.ratio(GROUPS, NO_LEVEL2, groups_of)
    wide = _cells(model, GROUPS, NO_LEVEL2, [("long", "wide"), ("medium", "wide")])
    return [
        _claim("f27.gains", "The second level lowers slowdown", [_less(*one) for one in change.items()]),
        _claim(
            "f27.by-2-to-6",
            "The second level lowers slowdown by 2 to 6 %",
            [_within(kind, ratios, -6, -2) for kind, ratios in change.items()],
        ),
        _claim(
            "f27.wide",
            "Wide jobs do as well without the second level (within 5 %)",
            [_within(name, ratios, -5, 5) for name, ratios in wide],
        ),
        _claim(
            "f27.groups",
            "As many groups with as without the second level (within 10 %)",
            [_within("groups", count, -10, 10)],
        ),
        _claim("f28.response", "The second level lowers mean response", [_less("response", response)]),
        _claim(
            "f28.at-most-10",
            "The second level lowers mean response by no more than 10 %",
            [_more("response", response, -10)],
        ),
        _claim("f29.wait", "The second level lowers mean wait", [_less("wait", wait)]),
    ]


def without_smart(model: ScojoReplicas) -> list[Claim]:
    """Figures 30 to 39: both without smart backfilling."""
    change = {kind: model.ratio(GROUPS_ALONE, SCOJO_ALONE, slowdown(kind)) for kind in NAMES}
    worst = {kind: model.ratio(GROUPS_ALONE, SCOJO_ALONE, of_cell("worst", kind)) for kind in NAMES}
    response, wait = (model.ratio(GROUPS_ALONE, SCOJO_ALONE, number) for number in (RESPONSE, WAIT))
    of = "Without smart backfilling:"
    return [
        _claim("f30.long", f"{of} long jobs have a lower slowdown", [_less("long", change["long"])]),
        _claim("f30.medium", f"{of} medium jobs have a lower slowdown", [_less("medium", change["medium"])]),
        _claim("f30.long-25", f"{of} long jobs gain about 25 % (12.5 to 50)", [_about("long", change["long"], 25)]),
        _claim(
            "f30.medium-15", f"{of} medium jobs gain about 15 % (7.5 to 30)", [_about("medium", change["medium"], 15)]
        ),
        _claim(
            "f30.short-little",
            f"{of} short jobs gain little (0 to 10 %)",
            [_within("short", change["short"], -10, 0)],
        ),
        _claim("f37.medium", f"{of} the worst slowdown of a medium job is lower", [_less("medium", worst["medium"])]),
        _claim("f37.long", f"{of} the worst slowdown of a long job is higher", [_more("long", worst["long"])]),
        _claim(
            "f38.by-12",
            f"{of} mean response is lower by more than 12 %",
            [_less("response", response, -12)],
        ),
        _claim("f38.response", f"{of} mean response is lower", [_less("response", response)]),
        _claim("f39.by-12", f"{of} mean wait is lower by more than 12 %", [_less("wait", wait, -12)]),
        _claim("f39.wait", f"{of} mean wait is lower", [_less("wait", wait)]),
    ]


def bottom_line(model: ScojoReplicas) -> list[Claim]:
    """Figures 40 and 41: groups against the search without groups."""
    claims = []
    for figure, scheme, base, said in (
        ("f40", GROUPS, BOTTOM, "With smart backfilling"),
        ("f41", GROUPS_ALONE, BOTTOM_ALONE, "Without smart backfilling"),
    ):
        not_wide = _cells(model, scheme, base, _NOT_WIDE)
        wide = _cells(model, scheme, base, [("long", "wide"), ("medium", "wide")])
        of = "narrow and medium-sized jobs of both classes"
        claims += [
            _claim(f"{figure}.better", f"{said}, {of}: groups beat the bottom line", [_less(*one) for one in not_wide]),
            _claim(
                f"{figure}.by-10",
                f"{said}, {of}: groups beat the bottom line by about 10 % (5 to 20)",
                [_about(*one, 10) for one in not_wide],
            ),
            _claim(
                f"{figure}.wide",
                f"{said}, wide jobs: groups are worse than the bottom line",
                [_more(*one) for one in wide],
            ),
        ]
    return claims


def smart(model: ScojoReplicas) -> list[Claim]:
    """Section 4: smart backfilling by itself, under conservative scojo."""
    change = {kind: model.ratio(SCOJO, SCOJO_ALONE, of_cell("response_s", kind)) for kind in ("short", "medium")}
    return [
        _claim(
            "s4.smart",
            "Smart backfilling lowers the response of short and medium jobs",
            [_less(*one) for one in change.items()],
        ),
        _claim(
            "s4.smart-27",
            "Smart backfilling lowers the response of short and medium jobs by about 27 % (13.5 to 54)",
            [_about(*one, 27) for one in change.items()],
        ),
    ]


def sizes(model: ScojoReplicas) -> list[Claim]:
    """Figure 15: the best sizes of groups, on the workloads that the paper labels."""
    best = sized(printed.BEST_MEDIUM, printed.BEST_LONG)

    def apart(medium: int, long: int, kind: str) -> dict[int, float]:
        found = model.ratio(sized(medium, long), best, slowdown(kind))
        return {workload: value for workload, value in found.items() if label_of(workload) is not None}

    other_long = [size for size in printed.SIZES if size != printed.BEST_LONG]
    saturated = [
        _within(f"M{size}, {kind}", apart(size, printed.BEST_LONG, kind), -0.5, 0.5)
        for size in (30, 40)
        for kind in ("medium", "long")
    ]
    return [
        _claim(
            "f15.long-30",
            "Groups of up to 30 serve long jobs better than those of 10, 20 or 40 (with M20)",
            [_more(f"L{size}", apart(printed.BEST_MEDIUM, size, "long")) for size in other_long],
        ),
        _claim(
            "f15.medium-20",
            "Groups of up to 20 serve medium jobs better than those of 10 (with L30)",
            [_more("M10", apart(10, printed.BEST_LONG, "medium"))],
        ),
        _claim(
            "f15.saturates", "Above 20 the size of medium groups hardly matters (within 0.5 %, with L30)", saturated
        ),
    ]


# ------------------------------------------------------------------------------------------------ the logs


def on_log(slug: str, model: ScojoReplicas, log: ScojoReplicas | None) -> list[Claim]:
    """Table 6 and Figures 21 and 22: one window of a log, so numbers without intervals; None: it was not run."""
    one = None if log is None else log.runs(GROUPS).get(0)
    jobs, work, *_ = printed.TRACE_FACTS[slug]
    text = f"The window of {slug} is as Table 6 prints it (shares of jobs and of work, to 3 points)"
    less = "Medium and long jobs gain less by groups than those of the model"
    medium, long, _ = printed.GROUPS[slug]
    few = f"About as many groups as the {medium} + {long} of Table 7 (to a third)"
    if log is None or one is None:
        return [
            Claim(name, said, UNCHECKED, f"no log of {slug} was given")
            for name, said in ((f"t6.{slug}", text), (f"t7.{slug}", few), (f"f21.{slug}", less))
        ]
    facts = one.facts
    is_near = _near(facts.jobs, jobs) and _near(facts.work, work)
    shown = "/".join(f"{PERCENT * value:.1f}" for value in facts.jobs)
    heavy = "/".join(f"{PERCENT * value:.1f}" for value in facts.work)
    mean = "/".join(f"{value:.0f}" for value in facts.sizes)
    count = groups_of(one)
    return [
        _with_why(claim(f"t6.{slug}", text, is_near, f"jobs {shown} %, work {heavy} %, sizes {mean}")),
        _with_why(
            claim(
                f"t7.{slug}",
                few,
                abs(count - medium - long) <= (medium + long) / 3,
                f"{one.groups[1]} + {one.groups[2]}",
            )
        ),
        _with_why(_less_gain(f"f21.{slug}", less, model, log)),
    ]


def _near(shares: Sequence[float], percent: Sequence[float]) -> bool:
    return all(abs(PERCENT * one - other) <= 3 for one, other in zip(shares, percent, strict=True))


def _with_why(one: Claim) -> Claim:
    return replace(one, why=WHY.get(one.name, "")) if one.verdict == FAILS else one


def _less_gain(name: str, text: str, model: ScojoReplicas, log: ScojoReplicas) -> Claim:
    said, answers = [], []
    for kind in ("medium", "long"):
        here = [PERCENT * (value - 1) for value in log.ratio(GROUPS, SCOJO, slowdown(kind)).values()]
        there = _less(kind, model.ratio(GROUPS, SCOJO, slowdown(kind))).found
        if not here or there.mean is None:
            return claim(name, text, None, "no such runs")
        answers.append(here[0] > there.mean)
        said.append(f"{kind} {here[0]:+.1f} % (the model {written(there, _PERCENT)})")
    return claim(name, text, all(answers), "; ".join(said))
