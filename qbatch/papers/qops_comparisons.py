"""What the claims of Islam and others 2003 are made of: comparisons of QoPS with its rivals on one trace.

A claim that holds QoPS against its rivals is made twice: against the presets, which were picked because with them the order of
the paper appears, and against the stronger settings of the same rivals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from qbatch.papers.evidence import EvidenceItem, above, claim_of, inside
from qbatch.papers.qops_replicas import (
    JOBS,
    RESPONSE,
    SLOWDOWN,
    UTILISATION,
    Number,
    QopsReplicas,
    less,
)
from qbatch.papers.qops_runs import (
    EXPANSION,
    LOADS,
    PRESETS,
    QOPS,
    STRINGENCIES,
    STRONGER,
    Setting,
)
from qbatch.papers.qops_why import WHY
from qbatch.papers.record import Claim

PERCENT = 100.0
POINTS = " points"
LOW, HIGH = LOADS[0], LOADS[-1]
SERVICE = {"response": RESPONSE, "slowdown": SLOWDOWN}
MIXES = [Setting(share, stringency) for share in (0.8, 0.2) for stringency in STRINGENCIES]
ALL, ALL_TIGHT = (Setting(1.0, stringency) for stringency in STRINGENCIES)

Rivals = tuple[str, str]
"""MSB and MRT, as presets or in their stronger settings."""


def first_figures(replicas: QopsReplicas) -> dict[str, int]:
    """Return the number of the first figure of each kind; a trace that is not the paper's takes the numbers of CTC's."""
    kinds = ("all", "mixed", "response", "utilisation", "against")
    if replicas.method == EXPANSION:
        return dict(zip(kinds, (10, 21, 33, 41, 51), strict=True))
    return dict(zip(kinds, (7, 17, 29, 39, 47) if replicas.trace.slug == "sdsc" else (4, 13, 25, 37, 43), strict=True))


def claim_on(
    replicas: QopsReplicas,
    figure: int | str,
    what: str,
    text: str,
    findings: Sequence[EvidenceItem],
    together: Sequence[EvidenceItem] = (),
) -> Claim:
    """Return a claim on a trace, by the figure that it is about and what it is about."""
    name = f"{replicas.trace.slug}.{figure}.{what}"
    return claim_of(name, text, findings, why=WHY.get(what, ""), together=together)


def claim_twice(
    replicas: QopsReplicas,
    figure: int,
    what: str,
    text: str,
    make: Callable[[Rivals], list[EvidenceItem]],
    together: Callable[[Rivals], list[EvidenceItem]] = lambda _: [],
) -> list[Claim]:
    """Return a claim against the presets, and the same against the stronger rivals."""
    more = f"{text} (MSB by fraction, MRT by LLF with 10 backtracks)"
    return [
        claim_on(replicas, figure, what, text, make(PRESETS), together(PRESETS)),
        claim_on(replicas, figure, f"{what}-stronger", more, make(STRONGER), together(STRONGER)),
    ]


def gap(
    replicas: QopsReplicas, setting: Setting, rival: str, number: Number, load: float, scheme: str = QOPS
) -> dict[int, float]:
    """Return by subset how far a rival's number lies above QoPS's at a load."""
    mine = replicas.at(setting, load, scheme, number)
    return {
        subset: value - mine[subset]
        for subset, value in replicas.at(setting, load, rival, number).items()
        if subset in mine
    }


def gaps(replicas: QopsReplicas, setting: Setting, number: Number, rivals: Sequence[str]) -> list[EvidenceItem]:
    """Compare QoPS with rivals at every load: theirs is above."""
    return [
        above(
            f"{rival} - QoPS, load {load:g}",
            list(gap(replicas, setting, rival, number, load).values()),
            0.0,
            POINTS,
            PERCENT,
        )
        for rival in rivals
        for load in LOADS
    ]


def gaps_together(replicas: QopsReplicas, setting: Setting, number: Number, rivals: Sequence[str]) -> list[EvidenceItem]:
    """Compare QoPS with rivals over the mean of the loads: theirs is above."""
    mine = replicas.over(setting, QOPS, number)
    apart = {rival: less(replicas.over(setting, rival, number), mine) for rival in rivals}
    return [above(f"{rival} - QoPS, all loads", values, 0.0, POINTS, PERCENT) for rival, values in apart.items()]


def losses(
    replicas: QopsReplicas, setting: Setting, reference: str, scheme: str, loads: Sequence[float] = LOADS
) -> dict[int, float]:
    """Return by subset the points of utilisation that a scheme loses to a reference, over loads."""
    mine = replicas.over(setting, scheme, UTILISATION, loads)
    base = replicas.over(setting, reference, UTILISATION, loads)
    return {subset: PERCENT * (value - mine[subset]) for subset, value in base.items() if subset in mine}


def convergence(replicas: QopsReplicas, rivals: Rivals, share: float) -> list[EvidenceItem]:
    """Compare the gaps of rivals over the loads: at s = 0.2 they are wider than at s = 0.5."""
    found = []
    for rival in rivals:
        loose, tight = (
            less(replicas.over(setting, rival, JOBS), replicas.over(setting, QOPS, JOBS))
            for setting in (Setting(share, stringency) for stringency in STRINGENCIES)
        )
        found_gaps = [one - other for one, other in zip(loose, tight, strict=True)]
        found.append(above(f"{rival} - QoPS, s = 0.2 less 0.5", found_gaps, 0.0, POINTS, PERCENT))
    return found


def order_of_utilisation(replicas: QopsReplicas, figure: int, settings: Sequence[Setting]) -> list[Claim]:
    """Return what is said of QoPS, MSB and MRT in utilisation."""

    def alike(rivals: Rivals) -> list[EvidenceItem]:
        return [
            inside(
                f"QoPS - {rivals[0]}, {setting_words(setting)}",
                list(losses(replicas, setting, QOPS, rivals[0]).values()),
                -2.0,
                2.0,
                POINTS,
            )
            for setting in settings
        ]

    def mrt_below(rivals: Rivals) -> list[EvidenceItem]:
        return [
            above(
                f"QoPS - {rivals[1]}, {setting_words(setting)}",
                list(losses(replicas, setting, QOPS, rivals[1], (HIGH,)).values()),
                0.0,
                POINTS,
            )
            for setting in settings
        ]

    return [
        *claim_twice(
            replicas, figure, "alike", "QoPS and MSB use the machine alike (within 2 points, over the loads)", alike
        ),
        *claim_twice(replicas, figure, "mrt-below", "QoPS uses more of the machine than MRT at load 1.6", mrt_below),
    ]


def setting_words(setting: Setting) -> str:
    """Return ``80 % deadline jobs, s = 0.2``."""
    return f"{100 * setting.share:g} % deadline jobs, s = {setting.stringency:g}"
