"""The claims of Islam and others 2003 on one trace: spec/papers.md, R000 and its claims that were missing, figure by figure.

Every claim is a set of comparisons over subsets (``evidence``), paired by subset.  A claim that holds QoPS against its rivals is
made twice: against the presets, which were picked because with them the paper's order appears, and against the stronger settings
of the same rivals.  Bounds that the paper leaves open ("about", "comparable") are readings of ours and stand in the text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from qbatch.papers.evidence import EvidenceItem, above, below, claim_of, inside
from qbatch.papers.qops_replicas import (
    JOBS,
    REFUSED,
    RESPONSE,
    SLOWDOWN,
    UTILISATION,
    WORK,
    Number,
    Replicas,
    less,
    ratio,
)
from qbatch.papers.qops_runs import (
    CONSERVATIVE,
    DUPLICATION,
    EASY,
    EXPANSION,
    FACTORS,
    LOADS,
    MRT,
    MSB,
    PRESETS,
    QOPS,
    STRINGENCIES,
    STRONGER,
    Setting,
)
from qbatch.papers.qops_why import WHY
from qbatch.papers.record import Claim

_PERCENT = 100.0
_POINTS = " points"
_LOW, _HIGH = LOADS[0], LOADS[-1]
_SERVICE = {"response": RESPONSE, "slowdown": SLOWDOWN}
_MIXES = [Setting(share, stringency) for share in (0.8, 0.2) for stringency in STRINGENCIES]
_ALL, _ALL_TIGHT = (Setting(1.0, stringency) for stringency in STRINGENCIES)

Rivals = tuple[str, str]
"""MSB and MRT, as presets or in their stronger settings."""


def first_figures(replicas: Replicas) -> dict[str, int]:
    """Return the number of the first figure of each kind; a trace that is not the paper's takes the numbers of CTC's."""
    kinds = ("all", "mixed", "response", "utilisation", "against")
    if replicas.method == EXPANSION:
        return dict(zip(kinds, (10, 21, 33, 41, 51), strict=True))
    return dict(zip(kinds, (7, 17, 29, 39, 47) if replicas.trace.slug == "sdsc" else (4, 13, 25, 37, 43), strict=True))


def all_claims(replicas: Replicas) -> list[Claim]:
    """Return every claim of the figures of a trace with its verdict."""
    makers: list[Callable[[Replicas], list[Claim]]] = [
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


def _claim(
    replicas: Replicas, figure: int | str, what: str, text: str, findings: Sequence[EvidenceItem], note: str = ""
) -> Claim:
    name = f"{replicas.trace.slug}.{figure}.{what}"
    return claim_of(name, text, findings, why=WHY.get(what, ""), note=note)


def _twice(
    replicas: Replicas, figure: int, what: str, text: str, make: Callable[[Rivals], list[EvidenceItem]]
) -> list[Claim]:
    """Return a claim against the presets, and the same against the stronger rivals."""
    return [
        _claim(replicas, figure, what, text, make(PRESETS)),
        _claim(
            replicas,
            figure,
            f"{what}-stronger",
            f"{text} (MSB by fraction, MRT by LLF with 10 backtracks)",
            make(STRONGER),
        ),
    ]


def _gap(
    replicas: Replicas, setting: Setting, rival: str, number: Number, load: float, scheme: str = QOPS
) -> dict[int, float]:
    """Return by subset how far a rival's number lies above QoPS's at a load."""
    mine = replicas.at(setting, load, scheme, number)
    return {
        subset: value - mine[subset]
        for subset, value in replicas.at(setting, load, rival, number).items()
        if subset in mine
    }


def _gaps(replicas: Replicas, setting: Setting, number: Number, rivals: Sequence[str]) -> list[EvidenceItem]:
    """Compare QoPS with rivals at every load: theirs is above."""
    return [
        above(
            f"{rival} - QoPS, load {load:g}",
            list(_gap(replicas, setting, rival, number, load).values()),
            0.0,
            _POINTS,
            _PERCENT,
        )
        for rival in rivals
        for load in LOADS
    ]


def _losses(
    replicas: Replicas, setting: Setting, reference: str, scheme: str, loads: Sequence[float] = LOADS
) -> dict[int, float]:
    """Return by subset the points of utilisation that a scheme loses to a reference, over loads."""
    mine = replicas.over(setting, scheme, UTILISATION, loads)
    base = replicas.over(setting, reference, UTILISATION, loads)
    return {subset: _PERCENT * (value - mine[subset]) for subset, value in base.items() if subset in mine}


# ------------------------------------------------------------------------------------- all jobs have deadlines


def admission(replicas: Replicas) -> list[Claim]:
    """Figures 4 and 5: who admits more, how that changes with load and stringency."""
    first = first_figures(replicas)["all"]
    claims = []
    for figure, setting in ((first, _ALL), (first + 1, _ALL_TIGHT)):
        s = f"s = {setting.stringency:g}"
        for what, number, of in (("jobs", JOBS, "jobs"), ("work", WORK, "processor-seconds")):
            text = f"QoPS leaves fewer {of} unadmitted than MSB and MRT at every load; all jobs with deadlines, {s}"
            claims += _twice(replicas, figure, what, text, partial(_gaps, replicas, setting, number))
    text = "The gap in unadmitted jobs between QoPS and its rivals is wider at load 1.6 than at 1.0, s = 0.2"
    claims += _twice(replicas, first, "gap-grows", text, lambda rivals: _growth(replicas, rivals))
    text = "The gap in unadmitted jobs is smaller at s = 0.5 than at 0.2, over the loads"
    claims += _twice(replicas, first + 1, "converge", text, lambda rivals: _convergence(replicas, rivals, 1.0))
    return claims + _with_load(replicas, first) + _with_stringency(replicas, first)


def _growth(replicas: Replicas, rivals: Rivals) -> list[EvidenceItem]:
    ends = [[_gap(replicas, _ALL, rival, JOBS, load) for load in (_HIGH, _LOW)] for rival in rivals]
    return [
        above(f"{rival} - QoPS, load 1.6 less 1.0", less(high, low), 0.0, _POINTS, _PERCENT)
        for rival, (high, low) in zip(rivals, ends, strict=True)
    ]


def _convergence(replicas: Replicas, rivals: Rivals, share: float) -> list[EvidenceItem]:
    found = []
    for rival in rivals:
        loose, tight = (
            less(replicas.over(setting, rival, JOBS), replicas.over(setting, QOPS, JOBS))
            for setting in (Setting(share, stringency) for stringency in STRINGENCIES)
        )
        gaps = [one - other for one, other in zip(loose, tight, strict=True)]
        found.append(above(f"{rival} - QoPS, s = 0.2 less 0.5", gaps, 0.0, _POINTS, _PERCENT))
    return found


def _with_load(replicas: Replicas, figure: int) -> list[Claim]:
    """What the paper says of the rise of the load."""
    before, after = (replicas.at(_ALL, load, QOPS, REFUSED) for load in LOADS[-2:])
    work = [replicas.at(_ALL, load, QOPS, WORK) for load in (_LOW, _HIGH)]
    return [
        _claim(
            replicas,
            figure,
            "count-falls",
            "QoPS: fewer jobs, in number, are unadmitted at load 1.6 than at 1.4, s = 0.2",
            [above("1.4 less 1.6", less(before, after), 0.0, " jobs")],
        ),
        _claim(
            replicas,
            figure,
            "work-falls",
            "QoPS: a smaller share of the processor-seconds is lost at load 1.6 than at 1.0",
            [above("1.0 less 1.6", less(*work), 0.0, _POINTS, _PERCENT)],
        ),
    ]


def _with_stringency(replicas: Replicas, figure: int) -> list[Claim]:
    claims = []
    for what, number, of in (("jobs-rise-with-s", JOBS, "jobs"), ("work-rises-with-s", WORK, "processor-seconds")):
        found = []
        for scheme in (QOPS, *PRESETS, *STRONGER):
            for load in LOADS:
                tight, loose = (replicas.at(setting, load, scheme, number) for setting in (_ALL_TIGHT, _ALL))
                found.append(above(f"{scheme}, load {load:g}", less(tight, loose), 0.0, _POINTS, _PERCENT))
        text = f"More {of} are unadmitted at s = 0.5 than at 0.2, at every load, under every scheme"
        claims.append(_claim(replicas, figure, what, text, found))
    return claims


def utilisation(replicas: Replicas) -> list[Claim]:
    """Figure 6: what of the machine is lost."""
    figure = first_figures(replicas)["all"] + 2
    losses = [
        inside(f"{reference} - QoPS", list(_losses(replicas, _ALL, reference, QOPS).values()), 7.0, 13.0, _POINTS)
        for reference in (EASY, CONSERVATIVE)
    ]
    drops = []
    for scheme in (QOPS, *PRESETS):
        loose, tight = (replicas.over(setting, scheme, UTILISATION) for setting in (_ALL, _ALL_TIGHT))
        drops.append(inside(scheme, [_PERCENT * value for value in less(loose, tight)], 5.0, 10.0, _POINTS))
    return [
        _claim(
            replicas,
            figure,
            "loss",
            "QoPS loses about 10 points (7 to 13) of utilisation to EASY and conservative, s = 0.2",
            losses,
        ),
        _claim(replicas, figure, "stringency-costs", "At s = 0.5 the schemes lose 5 to 10 points more", drops),
        *_order_of_utilisation(replicas, figure, (_ALL, _ALL_TIGHT)),
        _claim(
            replicas,
            figure,
            "mrt-by-3-to-5",
            "MRT's utilisation is 3 to 5 points lower at load 1.6",
            [
                inside(
                    f"{scheme} - {MRT}, s = {setting.stringency:g}",
                    list(_losses(replicas, setting, scheme, MRT, (_HIGH,)).values()),
                    3.0,
                    5.0,
                    _POINTS,
                )
                for setting in (_ALL, _ALL_TIGHT)
                for scheme in (QOPS, MSB)
            ],
        ),
    ]


def _order_of_utilisation(replicas: Replicas, figure: int, settings: Sequence[Setting]) -> list[Claim]:
    def alike(rivals: Rivals) -> list[EvidenceItem]:
        return [
            inside(
                f"QoPS - {rivals[0]}, {_words(setting)}",
                list(_losses(replicas, setting, QOPS, rivals[0]).values()),
                -2.0,
                2.0,
                _POINTS,
            )
            for setting in settings
        ]

    def mrt_below(rivals: Rivals) -> list[EvidenceItem]:
        return [
            above(
                f"QoPS - {rivals[1]}, {_words(setting)}",
                list(_losses(replicas, setting, QOPS, rivals[1], (_HIGH,)).values()),
                0.0,
                _POINTS,
            )
            for setting in settings
        ]

    return [
        *_twice(
            replicas, figure, "alike", "QoPS and MSB use the machine alike (within 2 points, over the loads)", alike
        ),
        *_twice(replicas, figure, "mrt-below", "QoPS uses more of the machine than MRT at load 1.6", mrt_below),
    ]


def calibration(replicas: Replicas) -> list[Claim]:
    """What the calibration on CTC asked for at load 1.4 (spec/papers.md, R000, acceptance)."""
    load = 1.4
    found = [
        above(f"{rival} - QoPS, {of}", list(_gap(replicas, _ALL, rival, number, load).values()), 0.0, _POINTS, _PERCENT)
        for rival, of, number in ((MSB, "jobs", JOBS), (MRT, "jobs", JOBS), (MRT, "work", WORK))
    ]
    loss = list(_losses(replicas, _ALL, EASY, QOPS, (load,)).values())
    found.append(inside("EASY - QoPS, utilisation", loss, 7.0, 12.0, _POINTS))
    text = (
        "As calibrated on CTC, load 1.4, s = 0.2: QoPS leaves fewer jobs unadmitted than both presets, loses less work than "
        "MRT, and 7 to 12 points of utilisation"
    )
    return [_claim(replicas, "calibration", "load-1.4", text, found)]


# --------------------------------------------------------------------------------- some jobs have deadlines


def mixed(replicas: Replicas) -> list[Claim]:
    """Figures 13 to 16: admission of the deadline jobs where others have none."""
    first = first_figures(replicas)["mixed"]
    claims = []
    for place, setting in enumerate(_MIXES):
        text = f"QoPS leaves fewer deadline jobs unadmitted than MSB and MRT at every load; {_words(setting)}"
        claims += _twice(replicas, first + place, "jobs", text, partial(_gaps, replicas, setting, JOBS))
    text = "With 80 % deadline jobs the gap is smaller at s = 0.5 than at 0.2, over the loads"
    claims += _twice(replicas, first + 1, "converge", text, lambda rivals: _convergence(replicas, rivals, 0.8))
    text = "MRT loses more work of deadline jobs than QoPS at every load; 80 % deadline jobs, s = 0.2"
    claims += _twice(
        replicas, first, "mrt-rejects-more-work", text, lambda rivals: _gaps(replicas, _MIXES[0], WORK, rivals[1:])
    )
    return claims


def response(replicas: Replicas) -> list[Claim]:
    """Figures 25 to 28: response and slowdown of jobs without deadlines, against load."""
    first, few = first_figures(replicas)["response"], Setting(0.2, 0.2)
    lower = [
        above(
            f"{reference} / {scheme}, {name}, {_words(setting)}",
            _over(replicas, setting, reference, scheme, number),
            1.0,
            is_ratio=True,
        )
        for setting in _MIXES
        for scheme in (QOPS, *PRESETS)
        for reference in (EASY, CONSERVATIVE)
        for name, number in _SERVICE.items()
    ]

    def worse(rivals: Rivals) -> list[EvidenceItem]:
        return [
            above(
                f"QoPS / {rival}, {name}, {_words(setting)}",
                _over(replicas, setting, QOPS, rival, number),
                1.0,
                is_ratio=True,
            )
            for setting in _MIXES[:2]
            for rival in rivals
            for name, number in _SERVICE.items()
        ]

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
        _claim(
            replicas,
            first,
            "below-references",
            "Response and slowdown of non-deadline jobs are lower under the deadline schemes than under EASY and conservative",
            lower,
        ),
        *_twice(
            replicas,
            first + 2,
            "worse-at-80",
            "With 80 % deadline jobs QoPS's response and slowdown are above its rivals'",
            worse,
        ),
        *_twice(
            replicas,
            first,
            "comparable-response",
            "With 20 % deadline jobs QoPS's response is comparable to MSB's or better (at most 5 % above), below load 1.6",
            comparable,
        ),
        *_twice(
            replicas, first, "slowdown", "With 20 % deadline jobs QoPS's slowdown is below MSB's at every load", slower
        ),
    ]


def utilisation_of_mixed(replicas: Replicas) -> list[Claim]:
    """Figures 37 and 38: what of the machine is lost where some jobs have deadlines."""
    figure = first_figures(replicas)["utilisation"]
    most, few = Setting(0.8, 0.2), Setting(0.2, 0.2)
    of_all, of_most, of_few = (_losses(replicas, setting, EASY, QOPS) for setting in (_ALL, most, few))
    return [
        _claim(
            replicas,
            figure,
            "loss-at-80",
            "QoPS loses about 8 points (5 to 11) to EASY with 80 % deadline jobs, s = 0.2",
            [inside("EASY - QoPS", list(of_most.values()), 5.0, 11.0, _POINTS)],
        ),
        _claim(
            replicas,
            figure,
            "loss-at-20",
            "QoPS loses 2 to 3 points (1 to 4) to EASY with 20 % deadline jobs, s = 0.2",
            [inside("EASY - QoPS", list(of_few.values()), 1.0, 4.0, _POINTS)],
        ),
        _claim(
            replicas,
            figure,
            "loss-grows-with-q",
            "The loss grows with the share of deadline jobs: 20 %, 80 %, all",
            [
                above("80 % less 20 %", less(of_most, of_few), 0.0, _POINTS),
                above("all less 80 %", less(of_all, of_most), 0.0, _POINTS),
            ],
        ),
        *_order_of_utilisation(replicas, figure, _MIXES),
    ]


def against(replicas: Replicas) -> list[Claim]:
    """Figures 43 to 46: response and slowdown of jobs without deadlines, at equal utilisation."""
    first = first_figures(replicas)["against"]
    claims = []
    for place, setting in enumerate(Setting(share, stringency) for share in (0.2, 0.8) for stringency in STRINGENCIES):

        def compared(others: Sequence[str], setting: Setting = setting) -> list[EvidenceItem]:
            return [
                above(f"{other} / QoPS, {name}", _equal(replicas, setting, other, number), 1.0, is_ratio=True)
                for other in others
                for name, number in _SERVICE.items()
            ]

        text = f"At equal utilisation QoPS's response and slowdown are below its rivals'; {_words(setting)}"
        claims += _twice(replicas, first + place, "best", text, compared)
        text = f"At equal utilisation QoPS's response and slowdown are below those of EASY and conservative; {_words(setting)}"
        claims.append(
            _claim(replicas, first + place, "below-references-at-equal", text, compared((EASY, CONSERVATIVE)))
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
    return [*claims, _claim(replicas, first, "slowdown-gains-more", text, gains)]


def relaxation(replicas: Replicas) -> list[Claim]:
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
                label = f"R = {upper:g} / R = {lower:g}, {_words(Setting(share, stringency))}"
                found.append(above(label, ratio(high, low), 1.0, is_ratio=True))
        claims.append(_claim(replicas, 55, what, f"QoPS: the {says} as R goes from 2 to 10", found))
    return claims


def _over(replicas: Replicas, setting: Setting, first: str, second: str, number: Number) -> list[float]:
    return ratio(replicas.over(setting, first, number), replicas.over(setting, second, number))


def _at(replicas: Replicas, setting: Setting, first: str, second: str, number: Number, load: float) -> list[float]:
    return ratio(replicas.at(setting, load, first, number), replicas.at(setting, load, second, number))


def _equal(replicas: Replicas, setting: Setting, other: str, number: Number) -> list[float]:
    return list(replicas.ratios_at_equal_utilisation(setting, other, QOPS, number).values())


def _words(setting: Setting) -> str:
    return f"{100 * setting.share:g} % deadline jobs, s = {setting.stringency:g}"
