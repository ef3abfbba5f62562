"""The claims of Islam and others 2003 where only some jobs have deadlines: Figures 13 to 58 (docs/spec/papers.md, R000)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from qbatch.papers.evidence import EvidenceItem, above, below, inside
from qbatch.papers.qops_comparisons import (
    ALL,
    MIXES,
    POINTS,
    SERVICE,
    Rivals,
    claim_on,
    claim_twice,
    convergence,
    first_figures,
    gaps,
    gaps_together,
    losses,
    order_of_utilisation,
    setting_words,
)
from qbatch.papers.qops_replicas import (
    JOBS,
    RESPONSE,
    SLOWDOWN,
    WORK,
    Number,
    QopsReplicas,
    less,
    ratio,
)
from qbatch.papers.qops_runs import (
    CONSERVATIVE,
    EASY,
    FACTORS,
    LOADS,
    PRESETS,
    QOPS,
    STRINGENCIES,
    Setting,
)
from qbatch.papers.record import Claim


def mixed(replicas: QopsReplicas) -> list[Claim]:
    """Figures 13 to 16: admission of the deadline jobs where others have none."""
    first = first_figures(replicas)["mixed"]
    claims = []
    for place, setting in enumerate(MIXES):
        text = f"QoPS leaves fewer deadline jobs unadmitted than MSB and MRT at every load; {setting_words(setting)}"
        claims += claim_twice(
            replicas,
            first + place,
            "jobs",
            text,
            partial(gaps, replicas, setting, JOBS),
            partial(gaps_together, replicas, setting, JOBS),
        )
    text = "With 80 % deadline jobs the gap is smaller at s = 0.5 than at 0.2, over the loads"
    claims += claim_twice(replicas, first + 1, "converge", text, lambda rivals: convergence(replicas, rivals, 0.8))
    text = "MRT loses more work of deadline jobs than QoPS at every load; 80 % deadline jobs, s = 0.2"
    claims += claim_twice(
        replicas, first, "mrt-rejects-more-work", text, lambda rivals: gaps(replicas, MIXES[0], WORK, rivals[1:])
    )
    return claims


def response(replicas: QopsReplicas) -> list[Claim]:
    """Figures 25 to 28: response and slowdown of jobs without deadlines, against load."""
    first = first_figures(replicas)["response"]
    lower = [
        above(
            f"{reference} / {scheme}, {name}, {setting_words(setting)}",
            _over(replicas, setting, reference, scheme, number),
            1.0,
            is_ratio=True,
        )
        for setting in MIXES
        for scheme in (QOPS, *PRESETS)
        for reference in (EASY, CONSERVATIVE)
        for name, number in SERVICE.items()
    ]

    def worse(rivals: Rivals) -> list[EvidenceItem]:
        return [
            above(
                f"QoPS / {rival}, {name}, {setting_words(setting)}",
                _over(replicas, setting, QOPS, rival, number),
                1.0,
                is_ratio=True,
            )
            for setting in MIXES[:2]
            for rival in rivals
            for name, number in SERVICE.items()
        ]

    return [
        claim_on(
            replicas,
            first,
            "below-references",
            "Response and slowdown of non-deadline jobs are lower under the deadline schemes than under EASY and conservative",
            lower,
        ),
        *claim_twice(
            replicas,
            first + 2,
            "worse-at-80",
            "With 80 % deadline jobs QoPS's response and slowdown are above its rivals'",
            worse,
        ),
        *_response_of_few(replicas, first),
    ]


def _response_of_few(replicas: QopsReplicas, first: int) -> list[Claim]:
    few = Setting(0.2, 0.2)

    def comparable(rivals: Rivals) -> list[EvidenceItem]:
        return [
            below(
                f"QoPS / {rivals[0]}, load {load:g}",
                _at(replicas, few, QOPS, rivals[0], RESPONSE, load),
                1.05,
                is_ratio=True,
            )
            for load in LOADS[:-1]
        ]

    def slower(rivals: Rivals) -> list[EvidenceItem]:
        return [
            above(
                f"{rivals[0]} / QoPS, load {load:g}",
                _at(replicas, few, rivals[0], QOPS, SLOWDOWN, load),
                1.0,
                is_ratio=True,
            )
            for load in LOADS
        ]

    return [
        *claim_twice(
            replicas,
            first,
            "comparable-response",
            "With 20 % deadline jobs QoPS's response is comparable to MSB's or better (at most 5 % above), below load 1.6",
            comparable,
        ),
        *claim_twice(
            replicas, first, "slowdown", "With 20 % deadline jobs QoPS's slowdown is below MSB's at every load", slower
        ),
    ]


def utilisation_of_mixed(replicas: QopsReplicas) -> list[Claim]:
    """Figures 37 and 38: what of the machine is lost where some jobs have deadlines."""
    figure = first_figures(replicas)["utilisation"]
    most, few = Setting(0.8, 0.2), Setting(0.2, 0.2)
    of_all, of_most, of_few = (losses(replicas, setting, EASY, QOPS) for setting in (ALL, most, few))
    return [
        claim_on(
            replicas,
            figure,
            "loss-at-80",
            "QoPS loses about 8 points (5 to 11) to EASY with 80 % deadline jobs, s = 0.2",
            [inside("EASY - QoPS", list(of_most.values()), 5.0, 11.0, POINTS)],
        ),
        claim_on(
            replicas,
            figure,
            "loss-at-20",
            "QoPS loses 2 to 3 points (1 to 4) to EASY with 20 % deadline jobs, s = 0.2",
            [inside("EASY - QoPS", list(of_few.values()), 1.0, 4.0, POINTS)],
        ),
        claim_on(
            replicas,
            figure,
            "loss-grows-with-q",
            "The loss grows with the share of deadline jobs: 20 %, 80 %, all",
            [
                above("80 % less 20 %", less(of_most, of_few), 0.0, POINTS),
                above("all less 80 %", less(of_all, of_most), 0.0, POINTS),
            ],
        ),
        *order_of_utilisation(replicas, figure, MIXES),
    ]


def against(replicas: QopsReplicas) -> list[Claim]:
    """Figures 43 to 46: response and slowdown of jobs without deadlines, at equal utilisation."""
    first = first_figures(replicas)["against"]
    claims = []
    for place, setting in enumerate(Setting(share, stringency) for share in (0.2, 0.8) for stringency in STRINGENCIES):

        def compared(others: Sequence[str], setting: Setting = setting) -> list[EvidenceItem]:
            return [
                above(f"{other} / QoPS, {name}", _equal(replicas, setting, other, number), 1.0, is_ratio=True)
                for other in others
                for name, number in SERVICE.items()
            ]

        text = f"At equal utilisation QoPS's response and slowdown are below its rivals'; {setting_words(setting)}"
        claims += claim_twice(replicas, first + place, "best", text, compared)
        text = f"At equal utilisation QoPS's response and slowdown are below EASY's and conservative's; {setting_words(setting)}"
        claims.append(
            claim_on(replicas, first + place, "below-references-at-equal", text, compared((EASY, CONSERVATIVE)))
        )
    gains = []
    for reference in (EASY, CONSERVATIVE):
        slowdown, response_ = (
            replicas.ratios_at_equal_utilisation(Setting(0.2, 0.2), reference, QOPS, number)
            for number in (SLOWDOWN, RESPONSE)
        )
        gains.append(
            above(f"{reference}, gain in slowdown / gain in response", ratio(slowdown, response_), 1.0, is_ratio=True)
        )
    text = "At equal utilisation QoPS gains more in slowdown than in response; 20 % deadline jobs, s = 0.2"
    return [*claims, claim_on(replicas, first, "slowdown-gains-more", text, gains)]


def relaxation(replicas: QopsReplicas) -> list[Claim]:
    """Figures 55 to 58: QoPS under several R."""
    claims = []
    least, most = FACTORS[0], FACTORS[-1]
    pairs = (
        ("response-rises-with-R", RESPONSE, most, least, "mean response rises"),
        ("slowdown-falls-with-R", SLOWDOWN, least, most, "mean slowdown falls"),
    )
    for what, number, upper, lower, says in pairs:
        found = []
        for share in (0.2, 0.8):
            for stringency in STRINGENCIES:
                high, low = (
                    replicas.over(Setting(share, stringency, factor), QOPS, number) for factor in (upper, lower)
                )
                label = f"R = {upper:g} / R = {lower:g}, {setting_words(Setting(share, stringency))}"
                found.append(above(label, ratio(high, low), 1.0, is_ratio=True))
        claims.append(claim_on(replicas, 55, what, f"QoPS: the {says} as R goes from 2 to 10", found))
    return claims


def _over(replicas: QopsReplicas, setting: Setting, first: str, second: str, number: Number) -> list[float]:
    return ratio(replicas.over(setting, first, number), replicas.over(setting, second, number))


def _at(replicas: QopsReplicas, setting: Setting, first: str, second: str, number: Number, load: float) -> list[float]:
    return ratio(replicas.at(setting, load, first, number), replicas.at(setting, load, second, number))


def _equal(replicas: QopsReplicas, setting: Setting, other: str, number: Number) -> list[float]:
    return list(replicas.ratios_at_equal_utilisation(setting, other, QOPS, number).values())
