"""The claims of Islam and others 2003 on one trace: docs/spec/papers.md, R000 and its claims that were missing, figure by figure.

Every claim is a set of comparisons over subsets (``evidence``), paired by subset.  A claim that holds QoPS against its rivals is
made twice: against the presets, which were picked because with them the paper's order appears, and against the stronger settings
of the same rivals.  Bounds that the paper leaves open ("about", "comparable") are readings of ours and stand in the text.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from qbatch.papers.evidence import EvidenceItem, above, inside
from qbatch.papers.qops_comparisons import (
    ALL,
    ALL_TIGHT,
    HIGH,
    LOW,
    PERCENT,
    POINTS,
    Rivals,
    claim_on,
    claim_twice,
    convergence,
    first_figures,
    gap,
    gaps,
    gaps_together,
    losses,
    order_of_utilisation,
)
from qbatch.papers.qops_mixed_verdicts import against, mixed, relaxation, response, utilisation_of_mixed
from qbatch.papers.qops_replicas import (
    JOBS,
    REFUSED,
    UTILISATION,
    WORK,
    QopsReplicas,
    less,
)
from qbatch.papers.qops_runs import (
    CONSERVATIVE,
    DUPLICATION,
    EASY,
    LOADS,
    MRT,
    MSB,
    PRESETS,
    QOPS,
    STRONGER,
)
from qbatch.papers.record import Claim


def all_claims(replicas: QopsReplicas) -> list[Claim]:
    """Return every claim of the figures of a trace with its verdict."""
    makers: list[Callable[[QopsReplicas], list[Claim]]] = [
        admission,
        utilisation,
        mixed,
        response,
        utilisation_of_mixed,
        against,
    ]
    if replicas.method == DUPLICATION:
        makers += [relaxation, calibration]
    return [one for make in makers for one in make(replicas)]


def admission(replicas: QopsReplicas) -> list[Claim]:
    """Figures 4 and 5: who admits more, how that changes with load and stringency."""
    first = first_figures(replicas)["all"]
    claims = []
    for figure, setting in ((first, ALL), (first + 1, ALL_TIGHT)):
        s = f"s = {setting.stringency:g}"
        for what, number, of in (("jobs", JOBS, "jobs"), ("work", WORK, "processor-seconds")):
            text = f"QoPS leaves fewer {of} unadmitted than MSB and MRT at every load; all jobs with deadlines, {s}"
            claims += claim_twice(
                replicas,
                figure,
                what,
                text,
                partial(gaps, replicas, setting, number),
                partial(gaps_together, replicas, setting, number),
            )
    text = "The gap in unadmitted jobs between QoPS and its rivals is wider at load 1.6 than at 1.0, s = 0.2"
    claims += claim_twice(replicas, first, "gap-grows", text, lambda rivals: _growth(replicas, rivals))
    text = "The gap in unadmitted jobs is smaller at s = 0.5 than at 0.2, over the loads"
    claims += claim_twice(replicas, first + 1, "converge", text, lambda rivals: convergence(replicas, rivals, 1.0))
    return claims + _with_load(replicas, first) + _with_stringency(replicas, first)


def _growth(replicas: QopsReplicas, rivals: Rivals) -> list[EvidenceItem]:
    ends = [[gap(replicas, ALL, rival, JOBS, load) for load in (HIGH, LOW)] for rival in rivals]
    return [
        above(f"{rival} - QoPS, load 1.6 less 1.0", less(high, low), 0.0, POINTS, PERCENT)
        for rival, (high, low) in zip(rivals, ends, strict=True)
    ]


def _with_load(replicas: QopsReplicas, figure: int) -> list[Claim]:
    """What the paper says of the rise of the load."""
    before, after = (replicas.at(ALL, load, QOPS, REFUSED) for load in LOADS[-2:])
    work = [replicas.at(ALL, load, QOPS, WORK) for load in (LOW, HIGH)]
    return [
        claim_on(
            replicas,
            figure,
            "count-falls",
            "QoPS: fewer jobs, in number, are unadmitted at load 1.6 than at 1.4, s = 0.2",
            [above("1.4 less 1.6", less(before, after), 0.0, " jobs")],
        ),
        claim_on(
            replicas,
            figure,
            "work-falls",
            "QoPS: a smaller share of the processor-seconds is lost at load 1.6 than at 1.0",
            [above("1.0 less 1.6", less(*work), 0.0, POINTS, PERCENT)],
        ),
    ]


def _with_stringency(replicas: QopsReplicas, figure: int) -> list[Claim]:
    claims = []
    for what, number, of in (("jobs-rise-with-s", JOBS, "jobs"), ("work-rises-with-s", WORK, "processor-seconds")):
        found = []
        for scheme in (QOPS, *PRESETS, *STRONGER):
            for load in LOADS:
                tight, loose = (replicas.at(setting, load, scheme, number) for setting in (ALL_TIGHT, ALL))
                found.append(above(f"{scheme}, load {load:g}", less(tight, loose), 0.0, POINTS, PERCENT))
        text = f"More {of} are unadmitted at s = 0.5 than at 0.2, at every load, under every scheme"
        claims.append(claim_on(replicas, figure, what, text, found))
    return claims


def utilisation(replicas: QopsReplicas) -> list[Claim]:
    """Figure 6: what of the machine is lost."""
    figure = first_figures(replicas)["all"] + 2
    lost = [
        inside(f"{reference} - QoPS", list(losses(replicas, ALL, reference, QOPS).values()), 7.0, 13.0, POINTS)
        for reference in (EASY, CONSERVATIVE)
    ]
    drops = []
    for scheme in (QOPS, *PRESETS):
        loose, tight = (replicas.over(setting, scheme, UTILISATION) for setting in (ALL, ALL_TIGHT))
        drops.append(inside(scheme, [PERCENT * value for value in less(loose, tight)], 5.0, 10.0, POINTS))
    return [
        claim_on(
            replicas,
            figure,
            "loss",
            "QoPS loses about 10 points (7 to 13) of utilisation to EASY and conservative, s = 0.2",
            lost,
        ),
        claim_on(replicas, figure, "stringency-costs", "At s = 0.5 the schemes lose 5 to 10 points more", drops),
        *order_of_utilisation(replicas, figure, (ALL, ALL_TIGHT)),
        claim_on(
            replicas,
            figure,
            "mrt-by-3-to-5",
            "MRT's utilisation is 3 to 5 points lower at load 1.6",
            [
                inside(
                    f"{scheme} - {MRT}, s = {setting.stringency:g}",
                    list(losses(replicas, setting, scheme, MRT, (HIGH,)).values()),
                    3.0,
                    5.0,
                    POINTS,
                )
                for setting in (ALL, ALL_TIGHT)
                for scheme in (QOPS, MSB)
            ],
        ),
    ]


def calibration(replicas: QopsReplicas) -> list[Claim]:
    """What the calibration on CTC asked for at load 1.4 (docs/spec/papers.md, R000, acceptance)."""
    load = 1.4
    found = [
        above(f"{rival} - QoPS, {of}", list(gap(replicas, ALL, rival, number, load).values()), 0.0, POINTS, PERCENT)
        for rival, of, number in ((MSB, "jobs", JOBS), (MRT, "jobs", JOBS), (MRT, "work", WORK))
    ]
    loss = list(losses(replicas, ALL, EASY, QOPS, (load,)).values())
    found.append(inside("EASY - QoPS, utilisation", loss, 7.0, 12.0, POINTS))
    text = (
        "As calibrated on CTC, load 1.4, s = 0.2: QoPS leaves fewer jobs unadmitted than both presets, loses less work than "
        "MRT, and 7 to 12 points of utilisation"
    )
    return [claim_on(replicas, "calibration", "load-1.4", text, found)]
