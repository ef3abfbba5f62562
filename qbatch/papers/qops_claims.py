"""Islam and others 2003: Figures 4 to 58 as tables and pictures, and a verdict on the conclusions
of the paper.

Its figures print no values.  Every claim is a set of comparisons over subsets (``evidence``),
paired by subset (docs/spec/papers.md, R000 and its claims that were missing, figure by figure).  A
claim of QoPS against its rivals is made twice: against the presets, which were picked because with
them the order of the paper appears, and against the stronger settings of the same rivals.  Bounds
that the paper leaves open ("about", "comparable") are ours and stand in the text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from functools import partial
from itertools import product
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from qbatch.papers import qops, record
from qbatch.papers.evidence import (
    EvidenceItem,
    above,
    below,
    claim_of,
    explained,
    inside,
    known_verdicts,
)
from qbatch.papers.harness import ALONE, Experiment, Runner, sources_hash
from qbatch.papers.pictures import curve, new_picture
from qbatch.papers.qops import GroupFigures, QopsStudy, SchemeFigures, Setting, Trace
from qbatch.papers.record import (
    Claim,
    PaperOutcome,
    Part,
    Table,
    cell,
    cells,
    means,
    table_of_lines,
)
from qbatch.papers.replicas import (
    Number,
    Replicas,
    Values,
    by_point,
    difference,
    mean,
    mean_over,
    ratio,
    scaled,
)
from qbatch.reports.plot_style import PALETTE, caption

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


RUNS = Experiment(
    "groups of runs",
    GroupFigures,
    qops.simulate,
    lambda _: sources_hash(qops.__name__, *qops.SCHEMES.values(), *qops.REFERENCES.values()),
)


def run_paper(study: QopsStudy, parts: Collection[str], runner: Runner = ALONE) -> PaperOutcome:
    """Run some parts of the paper."""
    outcome = PaperOutcome(notes=_notes(study), method=list(METHOD), unknown=_unknown(study, parts))
    claims: list[Claim] = []
    if "figures" in parts:
        claims += add_figures(outcome, study, runner.runs(RUNS, study.cases()))
    if "packed" in parts:
        found = runner.made("packed sets", qops.simulate_packed, qops.PACKED_CASES)
        outcome.tables.append(packed_table(found))
        claims += packed_claims(found)
    if "estimates" in parts:
        bounds = runner.made("estimates", qops.simulate_bounds, qops.estimate_cases(study))
        outcome.tables.append(estimates_table(bounds))
        claims += estimates_claims(bounds)
        outcome.notes.append(
            "the claims about users' estimates are not of the paper: its authors left them to "
            "later work"
        )
    outcome.claims.extend(explained(claims, WHY, lambda name: expected(name, study)))
    return outcome


def add_figures(outcome: PaperOutcome, study: QopsStudy, groups: list[GroupFigures]) -> list[Claim]:
    """Add tables and pictures of finished groups, and return the claims."""
    claims = _claims_of_every_run(groups)
    for source in study.sources:
        for method in source.methods:
            runs = TraceRuns(source.trace, method, groups)
            outcome.tables.extend(all_tables(runs))
            outcome.pictures.update(all_pictures(runs))
            claims += all_claims(runs)
    return claims


def expected(name: str, study: QopsStudy) -> str:
    """Return the known verdict of a claim; for one about runs, only with ten or more subsets of the
    paper's logs."""
    slug = name.partition(".")[0]
    for source in study.sources:
        if source.trace.slug == slug:
            return (
                EXPECTED.get(name, record.UNDECIDED)
                if _is_on_record(source, study)
                else record.UNDECIDED
            )
    return EXPECTED.get(name, record.HOLDS)


def _is_on_record(source: qops.QopsSource, study: QopsStudy) -> bool:
    """Whether verdicts of a log are on record, for as many subsets as here."""
    is_usual = study.jobs == qops.SUBSET_JOBS and study.seed == qops.SEED
    return (
        is_usual and source.trace.slug in (qops.CTC, qops.SDSC) and source.subsets >= qops.SUBSETS
    )


def _unknown(study: QopsStudy, parts: Collection[str]) -> str:
    """Return why no verdicts are on record for these parts; empty if some are."""
    if "figures" not in parts or any(_is_on_record(source, study) for source in study.sources):
        return ""
    had = ", ".join(f"{source.subsets} subsets of {source.trace.name}" for source in study.sources)
    return (
        f"no verdicts are on record of {had}, {study.jobs:,} jobs each, with seed {study.seed}, "
        f"only of {qops.SUBSETS} or more "
        f"of {qops.SUBSET_JOBS:,} jobs of the logs of CTC and SDSC with seed {qops.SEED}"
    )


def _notes(study: QopsStudy) -> list[str]:
    notes = ["the figures of the paper print no values: only what it concludes is checked"]
    if any(source.trace.path is None for source in study.sources):
        notes.append(
            f"NO LOG GIVEN: running on generated logs of {study.jobs:,} jobs for {qops.OWN_PROCS} "
            "processors; those of the paper "
            "are CTC's and SDSC's SP2 (CTC-SP2-1996, SDSC-SP2-1998 in the Parallel Workloads "
            "Archive), and verdicts may differ"
        )
    for source in study.sources:
        had, name = source.subsets, source.trace.name
        if had < study.wanted:
            notes.append(
                f"{name} has only {had} disjoint subsets of {study.jobs:,} jobs, not "
                f"{study.wanted} as asked"
            )
        if had < qops.SUBSETS:
            notes.append(
                f"{name}: with {had} of the usual {qops.SUBSETS} subsets intervals are wide, or "
                "none"
            )
    return notes


# ------------------------------------------------------------------------------------------------
# numbers of the runs

JOBS, WORK = attrgetter("unadmitted"), attrgetter("lost_work")
ALL_JOBS, ALL_WORK = attrgetter("unadmitted_all"), attrgetter("lost_work_all")
UTILISATION, RESPONSE, SLOWDOWN = (
    attrgetter("utilisation"),
    attrgetter("response_s"),
    attrgetter("slowdown"),
)
REFUSED = attrgetter("refused")
SERVICE: dict[str, Number] = {"response": RESPONSE, "slowdown": SLOWDOWN}

_PLACES = 9
"""Number of utilisations, evenly spread over the common range of two curves, at which they are
compared."""


class TraceRuns:
    """The groups of one trace with a load changed by one method."""

    def __init__(self, trace: Trace, method: str, groups: Sequence[GroupFigures]) -> None:
        """Select the groups of the trace and the method, and hold them by setting and load."""
        self.trace, self.method = trace, method
        self._at = by_point(
            ((each.setting, group.case.load), scheme, group.case.subset, run)
            for group in groups
            if group.case.trace == trace and group.case.method == method
            for each in group.settings
            for scheme, run in each.schemes.items()
        )

    def at(self, setting: Setting, load: float) -> Replicas[SchemeFigures]:
        """Return the runs of every scheme at one load, by subset."""
        return self._at((setting, load))

    def over(
        self, setting: Setting, scheme: str, number: Number, loads: Sequence[float] = qops.LOADS
    ) -> dict[int, float]:
        """Return the mean of a number over loads by subset, for subsets that have it at each
        load."""
        columns = [self.at(setting, load).of(scheme, number) for load in loads]
        return mean_over(columns) if all(columns) else {}

    def gap(
        self,
        setting: Setting,
        scheme: str,
        base: str,
        number: Number,
        loads: Sequence[float] = qops.LOADS,
    ) -> dict[int, float]:
        """Return by subset the difference of a scheme's number from that of another one, over
        loads."""
        return difference(
            self.over(setting, scheme, number, loads), self.over(setting, base, number, loads)
        )

    def points(
        self, setting: Setting, base: str, scheme: str, loads: Sequence[float] = qops.LOADS
    ) -> dict[int, float]:
        """Return by subset the points of utilisation that a scheme loses to ``base``, over
        loads."""
        return scaled(self.gap(setting, base, scheme, UTILISATION, loads), PERCENT)

    def ratios_at_equal_utilisation(
        self, setting: Setting, first: str, second: str, number: Number
    ) -> dict[int, float]:
        """Return by subset the ratio of the first's number to the second's, at equal utilisation.

        A curve joins the points (utilisation, number) of the loads by straight lines (rule 18).
        The ratio is the geometric mean at ``_PLACES`` utilisations, evenly spread over the common
        range; a subset without one is left out.
        """

        def curve_of(scheme: str, subset: int) -> list[tuple[float, float]]:
            runs = [self.at(setting, load).runs(scheme).get(subset) for load in qops.LOADS]
            points = [(run.utilisation, number(run)) for run in runs if run is not None]
            return sorted(
                (utilisation, float(value)) for utilisation, value in points if value is not None
            )

        found = {}
        for subset in sorted(
            {subset for load in qops.LOADS for subset in self.at(setting, load).numbers}
        ):
            one, other = (curve_of(scheme, subset) for scheme in (first, second))
            if len(one) < 2 or len(other) < 2:
                continue
            low, high = max(one[0][0], other[0][0]), min(one[-1][0], other[-1][0])
            if low >= high:
                continue
            places = np.linspace(low, high, _PLACES)
            values = [np.interp(places, *np.array(curve).T) for curve in (one, other)]
            if values[0].min() > 0 and values[1].min() > 0:
                logs = [
                    math.log(a) - math.log(b)
                    for a, b in zip(*(each.tolist() for each in values), strict=True)
                ]
                found[subset] = math.exp(math.fsum(logs) / len(logs))
        return found


PERCENT, POINTS = 100.0, " points"
LOW, HIGH = qops.LOADS[0], qops.LOADS[-1]
MIXES = [Setting(share, stringency) for share in (0.8, 0.2) for stringency in qops.STRINGENCIES]
ALL, ALL_TIGHT = (Setting(1.0, stringency) for stringency in qops.STRINGENCIES)
MOST, FEW = Setting(0.8, 0.2), Setting(0.2, 0.2)
FEW_FIRST = [*MIXES[2:], *MIXES[:2]]
HOUR_S = 3600.0


def first_figures(runs: TraceRuns) -> dict[str, int]:
    """Return the number of the first figure of each kind; a trace of another log has the numbers of
    CTC's."""
    kinds = ("all", "mixed", "response", "utilisation", "against")
    if runs.method == qops.EXPANSION:
        return dict(zip(kinds, (10, 21, 33, 41, 51), strict=True))
    return dict(
        zip(
            kinds,
            (7, 17, 29, 39, 47) if runs.trace.slug == qops.SDSC else (4, 13, 25, 37, 43),
            strict=True,
        )
    )


def figures_of_share(
    runs: TraceRuns,
    share: float,
    kinds: Sequence[str] = ("mixed", "response", "utilisation", "against"),
) -> str:
    """Return the figures of the paper with this share of deadline jobs, as text; for mixed shares
    only some kinds."""
    first = first_figures(runs)
    if share == 1:
        return f"Figures {first['all']} to {first['all'] + 2}"
    # The figures of admission begin with 80 %, those of response with 20 %; those of utilisation
    # have both side by side.
    later = {
        "mixed": 2 * (share < 0.5),
        "response": 2 * (share > 0.5),
        "utilisation": 0,
        "against": 2 * (share > 0.5),
    }
    begins = [first[kind] + later[kind] for kind in kinds]
    shown = [f"{begin}-{begin + 1}" for begin in begins]
    return f"Figures {', '.join(shown[:-1])} and {shown[-1]}"


def name_of(runs: TraceRuns, what: str) -> str:
    """Return the name of a table or picture of a trace."""
    return f"{runs.trace.slug}-{runs.method}-{what}"


def trace_words(runs: TraceRuns) -> str:
    """Return ``CTC (430 processors), duplication``."""
    return f"{runs.trace.name} ({runs.trace.procs} processors), {runs.method}"


# ------------------------------------------------------------------------------------------------
# tables

CURVES = (qops.EASY, qops.CONSERVATIVE, *qops.SCHEMES)
"""The lines of every figure, in the order of the legend."""

_SHARES: tuple[tuple[str, str, Number], ...] = (
    ("jobs", "unadmitted %", JOBS),
    ("work", "work %", WORK),
    ("all_jobs", "of all jobs %", ALL_JOBS),
    ("all_work", "of all work %", ALL_WORK),
    ("utilisation", "utilisation %", UTILISATION),
)
"""Numbers shown in percent: key, heading, number; the first two are of the jobs with deadlines."""

_NOTE = (
    f"{' and '.join(qops.PRESETS)} are the settings that were picked because with them the paper's "
    "order appears; "
    f"{' and '.join(qops.STRONGER)} are the stronger settings of the same rivals"
)
_RULE_18 = (
    "unadmitted and work: of the jobs with deadlines and of their processor-seconds; loss: "
    "utilisation of EASY less that of "
    "the scheme; response and slowdown: of admitted jobs without deadlines (EASY, conservative: "
    "all of them)"
)


def all_tables(runs: TraceRuns) -> list[Table]:
    """Return every table of a trace: one for each share of deadline jobs, the paired differences,
    and R."""
    tables = [*(runs_table(runs, share) for share in qops.SHARES), differences_table(runs)]
    return [*tables, relaxation_table(runs)] if runs.method == qops.DUPLICATION else tables


def runs_table(runs: TraceRuns, share: float) -> Table:
    """Return the runs with a share of deadline jobs: a line for each stringency, load and
    scheme."""
    lines = [
        [
            *_place(s=s, load=load),
            *cells(scheme=scheme),
            *_numbers(runs.at(Setting(share, s), load), scheme),
        ]
        for s, load, scheme in product(qops.STRINGENCIES, qops.LOADS, CURVES)
    ]
    title = (
        f"{figures_of_share(runs, share)}: {trace_words(runs)}, {100 * share:g} % of the jobs "
        "with deadlines"
    )
    return table_of_lines(name_of(runs, f"q{100 * share:g}"), title, lines, [_NOTE, _RULE_18])


def _place(**numbers: float) -> list[Part]:
    return [
        part
        for name, value in numbers.items()
        for part in cell(name, name, value, 0 if name == "R" else 1)
    ]


def _numbers(at: Replicas[SchemeFigures], scheme: str) -> list[Part]:
    line = cells(subsets=len(at.of(scheme, JOBS)))
    for key, heading, number in _SHARES:
        is_known = key == "utilisation" or scheme in qops.SCHEMES
        line += means(key, heading, 1, at.of(scheme, number) if is_known else {}, unit=100.0)
    line += means(
        "loss",
        "loss points",
        1,
        {} if scheme == qops.EASY else at.more(qops.EASY, scheme, UTILISATION),
        unit=100.0,
    )
    line += means("response", "response h", 2, at.of(scheme, RESPONSE), unit=1 / HOUR_S)
    return line + means("slowdown", "slowdown", 1, at.of(scheme, SLOWDOWN))


def differences_table(runs: TraceRuns) -> Table:
    """Return the difference of each rival from QoPS, paired by subset: a line for each setting,
    load and rival."""
    shown = (
        ("jobs", "jobs points", JOBS),
        ("work", "work points", WORK),
        ("utilisation", "utilisation points", UTILISATION),
    )
    lines = []
    for q, s, load, rival in product(
        qops.SHARES, qops.STRINGENCIES, qops.LOADS, (*qops.PRESETS, *qops.STRONGER)
    ):
        line = [*_place(q=q, s=s, load=load), *cells(rival=rival)]
        for key, heading, number in shown:
            line += means(
                key,
                heading,
                2,
                runs.at(Setting(q, s), load).more(rival, qops.QOPS, number),
                unit=100.0,
            )
        lines.append(line)
    title = (
        f"{trace_words(runs)}: the rival less QoPS, paired by subset, with half the 95 % interval"
    )
    notes = [
        _NOTE,
        (
            "jobs and work: above 0, QoPS leaves fewer deadline jobs, or less of their work, "
            "unadmitted"
        ),
    ]
    return table_of_lines(name_of(runs, "differences"), title, lines, notes)


def relaxation_table(runs: TraceRuns) -> Table:
    """Return Figures 55 to 58: QoPS under several R."""
    lines = []
    names = ("jobs", "all_jobs", "response", "slowdown")
    for q, s, factor, load in product((0.2, 0.8), qops.STRINGENCIES, qops.FACTORS, qops.LOADS):
        numbers = _numbers(runs.at(Setting(q, s, factor), load), qops.QOPS)
        chosen = [part for part in numbers if part[0].key.removesuffix("_half") in names]
        lines.append([*_place(q=q, s=s, R=factor, load=load), *chosen])
    title = f"Figures 55 to 58: QoPS by the factor R of artificial deadlines, {trace_words(runs)}"
    return table_of_lines(name_of(runs, "R"), title, lines)


# ------------------------------------------------------------------------------------------------
# pictures

_LOOKS = {
    qops.EASY: (PALETTE[6], "-", ""),
    qops.CONSERVATIVE: (PALETTE[6], ":", ""),
    qops.QOPS: (PALETTE[0], "-", "o"),
    qops.MSB: (PALETTE[1], "-", "s"),
    qops.MRT: (PALETTE[2], "-", "^"),
    qops.MSB_FRACTION: (PALETTE[1], "--", "s"),
    qops.MRT_LLF: (PALETTE[2], "--", "^"),
}
"""Colour, line and marker: a rival's stronger setting is its dashed line."""

_LEGEND = 0.05
"""The share of the height for the legend, under the title."""

_CAPTION = (
    "Jobs with deadlines (response and slowdown: those without). Means over the subsets; bars: 95 "
    "% intervals. "
    "Solid: presets, picked to match the paper; dashed: stronger rivals."
)
_ADMISSION: tuple[tuple[str, Number, float], ...] = (
    ("Unadmitted jobs (%)", JOBS, 100.0),
    ("Unadmitted processor-seconds (%)", WORK, 100.0),
    ("Utilisation (%)", UTILISATION, 100.0),
)
_SERVICE: tuple[tuple[str, Number, float], ...] = (
    ("Response (h)", RESPONSE, 1 / HOUR_S),
    ("Slowdown", SLOWDOWN, 1.0),
)


def all_pictures(runs: TraceRuns) -> dict[str, Callable[[], Figure]]:
    """Return functions that draw each picture of a trace, by name of file."""
    pictures: dict[str, Callable[[], Figure]] = {}
    for share in qops.SHARES:
        name = name_of(runs, f"q{100 * share:g}")
        pictures[name] = partial(draw_admission, runs, share)
        if share < 1:
            pictures[f"{name}-response"] = partial(draw_response, runs, share)
    if runs.method == qops.DUPLICATION:
        pictures[name_of(runs, "R")] = partial(draw_relaxation, runs)
    return pictures


def draw_admission(runs: TraceRuns, share: float) -> Figure:
    """Draw unadmitted jobs and work, and utilisation, against load: a row for each stringency."""
    figure = new_picture(
        4.4,
        f"{figures_of_share(runs, share, ('mixed', 'utilisation'))}, q = {share:g}",
        trace_words(runs),
    )
    panels = figure.subplots(len(qops.STRINGENCIES), len(_ADMISSION), sharex=True, sharey="col")
    for row, stringency in zip(panels, qops.STRINGENCIES, strict=True):
        for axes, (heading, number, factor) in zip(row, _ADMISSION, strict=True):
            for scheme in CURVES if number is UTILISATION else qops.SCHEMES:
                _line(axes, runs, Setting(share, stringency), scheme, number, factor)
            _say(axes, f"{heading}, s = {stringency:g}", is_last=row[0] is panels[-1][0])
    for axes in panels[:, :2].flat:
        # After the last line of a column: a bound that is set ends the scaling of the other.
        axes.set_ylim(bottom=0)
    return _finished(figure, panels[0][-1])


def draw_response(runs: TraceRuns, share: float) -> Figure:
    """Draw response and slowdown of jobs without deadlines, against load and against
    utilisation."""
    figure = new_picture(
        4.4,
        f"{figures_of_share(runs, share, ('response', 'against'))}, q = {share:g}",
        trace_words(runs),
    )
    panels = figure.subplots(len(qops.STRINGENCIES), 2 * len(_SERVICE), sharey="col")
    for row, stringency in zip(panels, qops.STRINGENCIES, strict=True):
        for place, (heading, number, factor) in enumerate(_SERVICE):
            for axes, by_load in ((row[place], True), (row[place + len(_SERVICE)], False)):
                for scheme in CURVES:
                    _line(
                        axes,
                        runs,
                        Setting(share, stringency),
                        scheme,
                        number,
                        factor,
                        by_load=by_load,
                    )
                _say(
                    axes,
                    f"{heading}, s = {stringency:g}",
                    is_last=row[0] is panels[-1][0],
                    by_load=by_load,
                )
    for axes in panels.flat:
        axes.set_yscale("log")  # the references lie far above the schemes
    return _finished(figure, panels[0][0])


def draw_relaxation(runs: TraceRuns) -> Figure:
    """Draw response and slowdown of jobs without deadlines under QoPS, a line for each R."""
    figure = new_picture(4.4, "Figures 55 to 58, QoPS by R", trace_words(runs))
    panels = figure.subplots(len(_SERVICE), 4, sharex=True)
    for row, (heading, number, unit) in zip(panels, _SERVICE, strict=True):
        for axes, setting in zip(row, FEW_FIRST, strict=True):
            q, s = setting.share, setting.stringency
            for place, factor in enumerate(qops.FACTORS):
                look = (f"R = {factor:g}", (PALETTE[place], "-", "o"))
                _line(axes, runs, Setting(q, s, factor), qops.QOPS, number, unit, look)
            _say(axes, f"{heading}, q = {q:g}, s = {s:g}", is_last=row[0] is panels[-1][0])
    for axes in panels.flat:
        axes.set_ylim(bottom=0)
    return _finished(figure, panels[0][0], "Means over the subsets; bars: 95 % intervals.")


def _line(
    axes: Axes,
    runs: TraceRuns,
    setting: Setting,
    scheme: str,
    number: Number,
    factor: float,
    named: tuple[str, tuple[str, str, str]] | None = None,
    *,
    by_load: bool = True,
) -> None:
    """Draw a number of a scheme by load, or by utilisation; ``named``: label, then colour, line and
    marker."""
    label, (colour, style, marker) = named or (scheme, _LOOKS[scheme])
    at: list[float | None] = list(qops.LOADS)
    if not by_load:
        busy = (mean(runs.at(setting, load).of(scheme, UTILISATION)) for load in qops.LOADS)
        at = [None if each is None else 100 * each for each in busy]
    values = [runs.at(setting, load).of(scheme, number) for load in qops.LOADS]
    look: dict[str, Any] = {
        "color": colour,
        "linestyle": style,
        "marker": marker,
        "ms": 2.5,
        "label": label,
    }
    curve(axes, at, values, factor, has_bars=by_load, **look)


def _say(axes: Axes, title: str, *, is_last: bool, by_load: bool = True) -> None:
    axes.set_title(title, fontsize=7)
    if by_load:
        axes.set_xticks(qops.LOADS)
    if is_last:
        axes.set_xlabel("Load" if by_load else "Utilisation (%)")


def _finished(figure: Figure, axes: Axes, text: str = _CAPTION) -> Figure:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="upper left",
        bbox_to_anchor=(0.0, 1 - _LEGEND),
        ncols=len(labels),
        fontsize=6.5,
    )
    engine: Any = figure.get_layout_engine()
    engine.set(rect=(0, 0, 1, 1 - _LEGEND))
    caption(figure, text)
    return figure


# ------------------------------------------------------------------------------------------------
# claims

Rivals = tuple[str, str]
"""MSB and MRT, as presets or in their stronger settings."""

Items = Callable[[Rivals], list[EvidenceItem]]
"""A function that makes the comparisons with some rivals."""


def all_claims(runs: TraceRuns) -> list[Claim]:
    """Return every claim of the figures of a trace with its verdict."""
    makers = [admission, utilisation, mixed, response, utilisation_of_mixed, against]
    if runs.method == qops.DUPLICATION:
        makers += [relaxation, calibration]
    return [one for make in makers for one in make(runs)]


def _claim(
    runs: TraceRuns,
    figure: int | str,
    what: str,
    text: str,
    found: list[EvidenceItem],
    together: Sequence[EvidenceItem] = (),
) -> Claim:
    return claim_of(f"{runs.trace.slug}.{figure}.{what}", text, found, together=together)


def _twice(
    runs: TraceRuns, figure: int, what: str, text: str, make: Items, together: Items = lambda _: []
) -> list[Claim]:
    """Return a claim against the presets, and the same against the stronger rivals."""
    more = f"{text} (MSB by fraction, MRT by LLF with 10 backtracks)"
    return [
        _claim(runs, figure, what, text, make(qops.PRESETS), together(qops.PRESETS)),
        _claim(
            runs, figure, f"{what}-stronger", more, make(qops.STRONGER), together(qops.STRONGER)
        ),
    ]


def _more(label: str, values: Values) -> EvidenceItem:
    return above(label, values, 0.0, POINTS, PERCENT)


def _higher(label: str, ratios: Values) -> EvidenceItem:
    return above(label, ratios, 1.0, is_ratio=True)


def _gaps(
    runs: TraceRuns, setting: Setting, number: Number, rivals: Sequence[str]
) -> list[EvidenceItem]:
    """Compare QoPS with rivals at every load: their number is higher."""
    return [
        _more(
            f"{rival} - QoPS, load {load:g}", runs.at(setting, load).more(rival, qops.QOPS, number)
        )
        for rival in rivals
        for load in qops.LOADS
    ]


def _gaps_together(
    runs: TraceRuns, setting: Setting, number: Number, rivals: Sequence[str]
) -> list[EvidenceItem]:
    return [
        _more(f"{rival} - QoPS, all loads", runs.gap(setting, rival, qops.QOPS, number))
        for rival in rivals
    ]


def _converge(runs: TraceRuns, rivals: Rivals, share: float) -> list[EvidenceItem]:
    """Compare the gaps of rivals over the loads: at s = 0.2 they are wider than at s = 0.5."""
    loose, tight = (Setting(share, stringency) for stringency in qops.STRINGENCIES)
    gaps = {
        rival: [runs.gap(setting, rival, qops.QOPS, JOBS) for setting in (loose, tight)]
        for rival in rivals
    }
    return [
        _more(f"{rival} - QoPS, s = 0.2 less 0.5", difference(*pair))
        for rival, pair in gaps.items()
    ]


def admission(runs: TraceRuns) -> list[Claim]:
    """Figures 4 and 5: which scheme admits more, and how that changes with load and stringency."""
    first = first_figures(runs)["all"]
    shares: tuple[tuple[str, Number, str], ...] = (
        ("jobs", JOBS, "jobs"),
        ("work", WORK, "processor-seconds"),
    )
    claims = []
    for figure, setting in ((first, ALL), (first + 1, ALL_TIGHT)):
        for what, number, of in shares:
            where = f"all jobs with deadlines, s = {setting.stringency:g}"
            text = f"QoPS leaves fewer {of} unadmitted than MSB and MRT at every load; {where}"
            each, together = (
                partial(make, runs, setting, number) for make in (_gaps, _gaps_together)
            )
            claims += _twice(runs, figure, what, text, each, together)

    def growth(rivals: Rivals) -> list[EvidenceItem]:
        ends = {
            rival: [runs.at(ALL, load).more(rival, qops.QOPS, JOBS) for load in (HIGH, LOW)]
            for rival in rivals
        }
        return [
            _more(f"{rival} - QoPS, load 1.6 less 1.0", difference(*gaps))
            for rival, gaps in ends.items()
        ]

    text = (
        "The gap in unadmitted jobs between QoPS and its rivals is wider at load 1.6 than at "
        "1.0, s = 0.2"
    )
    claims += _twice(runs, first, "gap-grows", text, growth)
    text = "The gap in unadmitted jobs is smaller at s = 0.5 than at 0.2, over the loads"
    claims += _twice(runs, first + 1, "converge", text, lambda rivals: _converge(runs, rivals, 1.0))
    before, after = (runs.at(ALL, load).of(qops.QOPS, REFUSED) for load in qops.LOADS[-2:])
    text = "QoPS: fewer jobs, in number, are unadmitted at load 1.6 than at 1.4, s = 0.2"
    fewer = above("1.4 less 1.6", difference(before, after), 0.0, " jobs")
    claims.append(_claim(runs, first, "count-falls", text, [fewer]))
    low, high = (runs.at(ALL, load).of(qops.QOPS, WORK) for load in (LOW, HIGH))
    text = "QoPS: a smaller share of the processor-seconds is lost at load 1.6 than at 1.0"
    claims.append(
        _claim(runs, first, "work-falls", text, [_more("1.0 less 1.6", difference(low, high))])
    )
    for what, (_, number, of) in zip(
        ("jobs-rise-with-s", "work-rises-with-s"), shares, strict=True
    ):
        found = [
            _more(
                f"{scheme}, load {load:g}",
                difference(*(runs.at(s, load).of(scheme, number) for s in (ALL_TIGHT, ALL))),
            )
            for scheme in (qops.QOPS, *qops.PRESETS, *qops.STRONGER)
            for load in qops.LOADS
        ]
        text = f"More {of} are unadmitted at s = 0.5 than at 0.2, at every load, under every scheme"
        claims.append(_claim(runs, first, what, text, found))
    return claims


def utilisation(runs: TraceRuns) -> list[Claim]:
    """Figure 6: the loss of utilisation."""
    figure = first_figures(runs)["all"] + 2
    lost = [
        inside(f"{reference} - QoPS", runs.points(ALL, reference, qops.QOPS), 7.0, 13.0, POINTS)
        for reference in (qops.EASY, qops.CONSERVATIVE)
    ]
    drops = []
    for scheme in (qops.QOPS, *qops.PRESETS):
        loose, tight = (runs.over(setting, scheme, UTILISATION) for setting in (ALL, ALL_TIGHT))
        drops.append(inside(scheme, scaled(difference(loose, tight), PERCENT), 5.0, 10.0, POINTS))
    by_3_to_5 = []
    for setting, scheme in product((ALL, ALL_TIGHT), (qops.QOPS, qops.MSB)):
        more = runs.points(setting, scheme, qops.MRT, (HIGH,))
        by_3_to_5.append(
            inside(f"{scheme} - {qops.MRT}, s = {setting.stringency:g}", more, 3.0, 5.0, POINTS)
        )
    text = "QoPS loses about 10 points (7 to 13) of utilisation to EASY and conservative, s = 0.2"
    return [
        _claim(runs, figure, "loss", text, lost),
        _claim(
            runs,
            figure,
            "stringency-costs",
            "At s = 0.5 the schemes lose 5 to 10 points more",
            drops,
        ),
        *_order_of_utilisation(runs, figure, (ALL, ALL_TIGHT)),
        _claim(
            runs,
            figure,
            "mrt-by-3-to-5",
            "MRT's utilisation is 3 to 5 points lower at load 1.6",
            by_3_to_5,
        ),
    ]


def _order_of_utilisation(runs: TraceRuns, figure: int, settings: Sequence[Setting]) -> list[Claim]:
    """Return the claims about the utilisation of QoPS, MSB and MRT."""

    def alike(rivals: Rivals) -> list[EvidenceItem]:
        lost = {setting: runs.points(setting, qops.QOPS, rivals[0]) for setting in settings}
        return [
            inside(f"QoPS - {rivals[0]}, {at.words}", each, -2.0, 2.0, POINTS)
            for at, each in lost.items()
        ]

    def mrt_below(rivals: Rivals) -> list[EvidenceItem]:
        lost = {
            setting: runs.points(setting, qops.QOPS, rivals[1], (HIGH,)) for setting in settings
        }
        return [
            above(f"QoPS - {rivals[1]}, {at.words}", each, 0.0, POINTS) for at, each in lost.items()
        ]

    text = "QoPS and MSB use the machine alike (within 2 points, over the loads)"
    return [
        *_twice(runs, figure, "alike", text, alike),
        *_twice(
            runs,
            figure,
            "mrt-below",
            "QoPS uses more of the machine than MRT at load 1.6",
            mrt_below,
        ),
    ]


def mixed(runs: TraceRuns) -> list[Claim]:
    """Figures 13 to 16: admission of the deadline jobs if other jobs have none."""
    first = first_figures(runs)["mixed"]
    claims = []
    for place, setting in enumerate(MIXES):
        text = (
            "QoPS leaves fewer deadline jobs unadmitted than MSB and MRT at every load; "
            f"{setting.words}"
        )
        each, together = (partial(make, runs, setting, JOBS) for make in (_gaps, _gaps_together))
        claims += _twice(runs, first + place, "jobs", text, each, together)
    text = "With 80 % deadline jobs the gap is smaller at s = 0.5 than at 0.2, over the loads"
    claims += _twice(runs, first + 1, "converge", text, lambda rivals: _converge(runs, rivals, 0.8))
    text = (
        "MRT loses more work of deadline jobs than QoPS at every load; 80 % deadline jobs, s = 0.2"
    )
    return claims + _twice(
        runs,
        first,
        "mrt-rejects-more-work",
        text,
        lambda rivals: _gaps(runs, MOST, WORK, rivals[1:]),
    )


def response(runs: TraceRuns) -> list[Claim]:
    """Figures 25 to 28: response and slowdown of jobs without deadlines, against load."""
    first = first_figures(runs)["response"]

    def over(setting: Setting, above: str, below: str, name: str) -> EvidenceItem:
        one, other = (runs.over(setting, scheme, SERVICE[name]) for scheme in (above, below))
        return _higher(f"{above} / {below}, {name}, {setting.words}", ratio(one, other))

    lower = [
        over(setting, reference, scheme, name)
        for setting in MIXES
        for scheme in (qops.QOPS, *qops.PRESETS)
        for reference in (qops.EASY, qops.CONSERVATIVE)
        for name in SERVICE
    ]

    def worse(rivals: Rivals) -> list[EvidenceItem]:
        return [
            over(setting, qops.QOPS, rival, name)
            for setting in MIXES[:2]
            for rival in rivals
            for name in SERVICE
        ]

    def comparable(rivals: Rivals) -> list[EvidenceItem]:
        ratios = {
            load: runs.at(FEW, load).ratio(qops.QOPS, rivals[0], RESPONSE)
            for load in qops.LOADS[:-1]
        }
        return [
            below(f"QoPS / {rivals[0]}, load {load:g}", each, 1.05, is_ratio=True)
            for load, each in ratios.items()
        ]

    def slower(rivals: Rivals) -> list[EvidenceItem]:
        ratios = {
            load: runs.at(FEW, load).ratio(rivals[0], qops.QOPS, SLOWDOWN) for load in qops.LOADS
        }
        return [
            _higher(f"{rivals[0]} / QoPS, load {load:g}", each) for load, each in ratios.items()
        ]

    text = (
        "Response and slowdown of non-deadline jobs are lower under the deadline schemes than "
        "under EASY and conservative"
    )
    claims = [_claim(runs, first, "below-references", text, lower)]
    text = "With 80 % deadline jobs QoPS's response and slowdown are above its rivals'"
    claims += _twice(runs, first + 2, "worse-at-80", text, worse)
    text = (
        "With 20 % deadline jobs QoPS's response is comparable to MSB's or better (at most 5 % "
        "above), below load 1.6"
    )
    claims += _twice(runs, first, "comparable-response", text, comparable)
    text = "With 20 % deadline jobs QoPS's slowdown is below MSB's at every load"
    return claims + _twice(runs, first, "slowdown", text, slower)


def utilisation_of_mixed(runs: TraceRuns) -> list[Claim]:
    """Figures 37 and 38: the loss of utilisation if some jobs have deadlines."""
    figure = first_figures(runs)["utilisation"]
    of_all, of_most, of_few = (
        runs.points(setting, qops.EASY, qops.QOPS) for setting in (ALL, MOST, FEW)
    )
    grows = [
        above("80 % less 20 %", difference(of_most, of_few), 0.0, POINTS),
        above("all less 80 %", difference(of_all, of_most), 0.0, POINTS),
    ]
    return [
        _claim(
            runs,
            figure,
            "loss-at-80",
            "QoPS loses about 8 points (5 to 11) to EASY with 80 % deadline jobs, s = 0.2",
            [inside("EASY - QoPS", of_most, 5.0, 11.0, POINTS)],
        ),
        _claim(
            runs,
            figure,
            "loss-at-20",
            "QoPS loses 2 to 3 points (1 to 4) to EASY with 20 % deadline jobs, s = 0.2",
            [inside("EASY - QoPS", of_few, 1.0, 4.0, POINTS)],
        ),
        _claim(
            runs,
            figure,
            "loss-grows-with-q",
            "The loss grows with the share of deadline jobs: 20 %, 80 %, all",
            grows,
        ),
        *_order_of_utilisation(runs, figure, MIXES),
    ]


def against(runs: TraceRuns) -> list[Claim]:
    """Figures 43 to 46: response and slowdown of jobs without deadlines, at equal utilisation."""
    first = first_figures(runs)["against"]
    claims = []
    for place, setting in enumerate(FEW_FIRST):

        def compared(others: Sequence[str], setting: Setting = setting) -> list[EvidenceItem]:
            return [
                _higher(
                    f"{other} / QoPS, {name}",
                    runs.ratios_at_equal_utilisation(setting, other, qops.QOPS, number),
                )
                for other in others
                for name, number in SERVICE.items()
            ]

        text = (
            "At equal utilisation QoPS's response and slowdown are below its rivals'; "
            f"{setting.words}"
        )
        claims += _twice(runs, first + place, "best", text, compared)
        text = (
            "At equal utilisation QoPS's response and slowdown are below EASY's and "
            f"conservative's; {setting.words}"
        )
        found = compared((qops.EASY, qops.CONSERVATIVE))
        claims.append(_claim(runs, first + place, "below-references-at-equal", text, found))
    gains = []
    for reference in (qops.EASY, qops.CONSERVATIVE):
        each = (
            runs.ratios_at_equal_utilisation(FEW, reference, qops.QOPS, number)
            for number in (SLOWDOWN, RESPONSE)
        )
        gains.append(_higher(f"{reference}, gain in slowdown / gain in response", ratio(*each)))
    text = (
        "At equal utilisation QoPS gains more in slowdown than in response; 20 % deadline "
        "jobs, "
        "s = 0.2"
    )
    return [*claims, _claim(runs, first, "slowdown-gains-more", text, gains)]


def relaxation(runs: TraceRuns) -> list[Claim]:
    """Figures 55 to 58: QoPS under several R."""
    claims = []
    least, most = qops.FACTORS[0], qops.FACTORS[-1]
    compared: tuple[tuple[str, Number, float, float, str], ...] = (
        ("response-rises-with-R", RESPONSE, most, least, "mean response rises"),
        ("slowdown-falls-with-R", SLOWDOWN, least, most, "mean slowdown falls"),
    )
    for what, number, upper, lower, says in compared:
        found = []
        for setting in FEW_FIRST:
            both = (Setting(setting.share, setting.stringency, factor) for factor in (upper, lower))
            label = f"R = {upper:g} / R = {lower:g}, {setting.words}"
            found.append(
                _higher(label, ratio(*(runs.over(each, qops.QOPS, number) for each in both)))
            )
        claims.append(_claim(runs, 55, what, f"QoPS: the {says} as R goes from 2 to 10", found))
    return claims


def calibration(runs: TraceRuns) -> list[Claim]:
    """The bounds of the calibration on CTC at load 1.4 (docs/spec/papers.md, R000, acceptance)."""
    load = 1.4
    compared: tuple[tuple[str, str, Number], ...] = (
        (qops.MSB, "jobs", JOBS),
        (qops.MRT, "jobs", JOBS),
        (qops.MRT, "work", WORK),
    )
    found = [
        _more(f"{rival} - QoPS, {of}", runs.at(ALL, load).more(rival, qops.QOPS, number))
        for rival, of, number in compared
    ]
    found.append(
        inside(
            "EASY - QoPS, utilisation",
            runs.points(ALL, qops.EASY, qops.QOPS, (load,)),
            7.0,
            12.0,
            POINTS,
        )
    )
    text = (
        "As calibrated on CTC, load 1.4, s = 0.2: QoPS leaves fewer jobs unadmitted than both "
        "presets, loses less work than "
        "MRT, and 7 to 12 points of utilisation"
    )
    return [_claim(runs, "calibration", "load-1.4", text, found)]


def _claims_of_every_run(groups: list[GroupFigures]) -> list[Claim]:
    """Return the claims that no run may break, over all traces."""
    runs = [
        one
        for group in groups
        for each in group.settings
        for name, one in each.schemes.items()
        if name in qops.SCHEMES
    ]
    late, easy_late = sum(one.late for one in runs), sum(group.easy_late for group in groups)
    loads = {f"{group.case.load:g}" for group in groups if group.is_wrong_size}
    counts = "QoPS tries at most (K + 1)(ceil(log2 N) + 2) schedules an arrival, MSB N + 1"
    why_not = "the compiled searches do not count; tests hold rules 4 to 7 to an oracle"
    return [
        record.claim(
            "all.promises-kept",
            "Every admitted deadline job ends by its deadline",
            not late,
            f"{late} late in {len(runs):,} runs",
        ),
        record.claim(
            "all.easy-at-0",
            "At s = 0 EASY itself meets every deadline",
            not easy_late,
            f"{easy_late} late in {len(groups)} schedules",
        ),
        record.claim(
            "all.jobs-by-load",
            "Duplication at load l makes l times the jobs (7,000 of 5,000 at 1.4, 8,000 at 1.6)",
            not loads,
            f"{len(groups)} logs, wrong at {', '.join(sorted(loads)) or 'no load'}",
        ),
        Claim("all.schedules-tried", counts, record.UNCHECKED, why_not),
    ]


# ------------------------------------------------------------------------------------------------
# packed sets


def packed_table(found: list[qops.PackedFigures]) -> Table:
    """Return the number of sets that are admitted whole, a line for each kind and slack."""
    lines = []
    for one in found:
        line = [
            *cell("kind", "set", one.kind),
            *cell("r", "r", one.slack, 2),
            *cells(sets=qops.SETS),
        ]
        lines.append(line + cells(**one.whole))
    title = (
        f"Section 4.1: packed sets ({qops.PROCS} processors, {qops.SPAN_S:,} s) of which all "
        "jobs are admitted"
    )
    return table_of_lines("packed", title, lines)


def packed_claims(found: list[qops.PackedFigures]) -> list[Claim]:
    """Return the claims of section 4.1 on packed sets."""
    static, dynamic = ([one for one in found if one.kind == kind] for kind in qops.SLACKS)
    rises = all(
        counts == sorted(counts) and counts[-1] == qops.SETS and counts[0] < qops.SETS
        for counts in ([one.whole[scheme] for one in static] for scheme in qops.SCHEMES)
    )
    at_0 = all(count == qops.SETS for count in dynamic[0].whole.values())
    falls = any(count < qops.SETS for one in dynamic[1:] for count in one.whole.values())

    def numbers(found: list[qops.PackedFigures]) -> str:
        counts = {
            one.slack: ", ".join(f"{name} {count}" for name, count in one.whole.items())
            for one in found
        }
        return "; ".join(f"r = {slack:g}: {text} of {qops.SETS}" for slack, text in counts.items())

    text = "Packed static sets: admitted whole ever more often as r rises, in the end always"
    return [
        record.claim("4.1.static", text, rises, numbers(static)),
        record.claim(
            "4.1.dynamic-at-0",
            "Packed dynamic sets: always admitted whole at r = 0",
            at_0,
            numbers(dynamic[:1]),
        ),
        record.claim(
            "4.1.dynamic-falls",
            "Packed dynamic sets: admitted whole less often at r > 0",
            falls,
            numbers(dynamic[1:]),
        ),
    ]


# ------------------------------------------------------------------------------------------------
# users' estimates


def estimates_table(found: Sequence[qops.QopsEstimateFigures]) -> Table:
    """Return refused and admitted jobs, a line for each trace, kind of deadline and bound."""
    by_trace = _by_trace(found)
    lines = []
    for (trace, mine), rule, bound in product(by_trace, qops.RULES, qops.BOUNDS):
        runs = [one.runs[rule][bound] for one in mine]
        admitted, late = sum(one.admitted for one in runs), sum(one.late for one in runs)
        late_h = sum(one.late * (one.late_s or 0.0) for one in runs) / late / 3600 if late else None
        late_most_h = max(one.late_most_s or 0.0 for one in runs) / 3600 if late else None
        lines.append(
            [
                *cells(log=trace.name, deadlines=rule, bound=bound, subsets=len(runs)),
                *means("refused", "refused %", 1, [one.refused for one in runs], 100),
                *cell("work", "work %", 100 * (sum(one.lost_work for one in runs) / len(runs)), 1),
                *cells(admitted=admitted, late=late),
                *cell("late_share", "late %", 100 * late / max(admitted, 1), 1),
                *cell("late_h", "late by h", late_h, 2),
                *cell("late_most_h", "at most h", late_most_h, 1),
            ]
        )
    outlived = ", ".join(
        f"{trace.name} {100 * sum(one.outlived for one in mine) / len(mine):.0f} %"
        for trace, mine in by_trace
    )
    title = (
        "Users' estimates: QoPS, all jobs with deadlines, s = 0.2, subsets of "
        f"{found[0].case.jobs:,} jobs"
    )
    return table_of_lines(
        "estimates", title, lines, [f"jobs that outlive the prediction: {outlived}"]
    )


def _by_trace(
    found: Sequence[qops.QopsEstimateFigures],
) -> list[tuple[Trace, list[qops.QopsEstimateFigures]]]:
    traces = dict.fromkeys(one.case.trace for one in found)
    return [(trace, [one for one in found if one.case.trace == trace]) for trace in traces]


def estimates_claims(found: Sequence[qops.QopsEstimateFigures]) -> list[Claim]:
    """Return the claims about users' estimates, for each trace; none is a claim of the paper."""
    claims = []
    for trace, mine in _by_trace(found):
        bounds = [
            one.runs[rule][bound]
            for one in mine
            for rule in one.runs
            for bound in (qops.EXACT, qops.USERS, qops.ALL_USED)
        ]
        late, count = sum(one.late for one in bounds), sum(one.admitted for one in bounds)
        of = f"{trace.slug}.estimates"

        def fewer(
            upper: str, lower: str, mine: Sequence[qops.QopsEstimateFigures] = mine
        ) -> list[EvidenceItem]:
            gaps = {
                rule: [
                    one.runs[rule][upper].refused - one.runs[rule][lower].refused for one in mine
                ]
                for rule in qops.RULES
            }
            return [
                above(f"{upper} - {lower}, deadlines {rule}", gaps[rule], 0.0, POINTS, PERCENT)
                for rule in qops.RULES
            ]

        broken = []
        for rule in qops.RULES:
            runs = [one.runs[rule][qops.PREDICTED] for one in mine]
            broken.append(
                above(
                    f"deadlines {rule}",
                    [one.late / max(one.admitted, 1) for one in runs],
                    0.01,
                    " %",
                    PERCENT,
                )
            )
        claims += [
            record.claim(
                f"{of}.upper-bounds-keep",
                "No promise breaks where the bound is one",
                not late,
                f"{late} of {count:,} late",
            ),
            claim_of(
                f"{of}.users-refuse-more",
                "More jobs are refused with users' estimates than with exact ones",
                fewer(qops.USERS, qops.EXACT),
            ),
            claim_of(
                f"{of}.early-ends-give-back",
                "Early ends let more jobs in: fewer are refused than if all were used",
                fewer(qops.ALL_USED, qops.USERS),
            ),
            claim_of(
                f"{of}.predictions-admit-more",
                "Fewer jobs are refused with predictions than with estimates",
                fewer(qops.USERS, qops.PREDICTED),
            ),
            claim_of(
                f"{of}.predictions-break",
                "Predictions break more than one promise in a hundred",
                broken,
            ),
        ]
    return claims


# ------------------------------------------------------------------------------------------------
# known verdicts

_MRT_ADMITS = (
    "MRT orders the whole plan anew at every arrival. Under load it refuses fewer jobs and heavier "
    "ones: it loses more work and "
    "more utilisation at the same time (the tables)"
)
_MSB_IS_QUICKER = (
    "QoPS places jobs anew by least laxity, which puts jobs without deadlines, with a slack of a "
    "day or more, behind the rest. "
    "MSB leaves the order of the plan as it is: it delays those jobs less, and admits fewer of the "
    "jobs with deadlines"
)

WHY: dict[str, str] = {
    **dict.fromkeys(("jobs", "jobs-stronger", "gap-grows", "gap-grows-stronger"), _MRT_ADMITS),
    "count-falls": (
        "deadlines do become looser with the load, as the paper says, and the work that is lost "
        "falls (work-falls holds). But "
        "the number of refused jobs rises on every trace, here as in the calibration"
    ),
    "jobs-rise-with-s": (
        "under high load tighter deadlines refuse heavier jobs, which leaves capacity for more "
        "small ones. The work that is lost "
        "rises with s at every load (work-rises-with-s holds), the number of jobs need not"
    ),
    "mrt-by-3-to-5": "MRT is lower, but by 1 to 2.5 points",
    **dict.fromkeys(
        (
            "comparable-response",
            "comparable-response-stronger",
            "slowdown",
            "slowdown-stronger",
            "best",
            "best-stronger",
        ),
        _MSB_IS_QUICKER,
    ),
    "below-references-at-equal": (
        "the slowdown is lower, about half. The mean response depends on long jobs, and it is not "
        "lower if 80 % of the jobs have "
        "deadlines and go before the others"
    ),
    "slowdown-falls-with-R": (
        "at load 1.0 it falls or stays; under high load it rises with R. Long jobs without "
        "deadlines are then admitted that a "
        "small R refuses, and small jobs wait for them. With q = 0.2 and load 1.6, 5 % of all jobs "
        "are refused with R = 2, and "
        "14 % with R = 10"
    ),
    "load-1.4": (
        "SDSC is nearly full at load 1.4 (EASY uses 96 % of it), so that there is less to lose, "
        "and there MRT by earliest "
        "deadline refuses fewer jobs"
    ),
    "dynamic-falls": (
        "every job of such a set can start when it arrives, so no job ever waits. Schemes that "
        "place jobs at their earliest "
        "start admit all of them at every r. The fall that section 4.1 reports needs a scheme that "
        "delays jobs for no reason"
    ),
}
"""The best explanation of claims that do not hold, by subject."""

METHOD: tuple[str, ...] = (
    "The figures print no values. A claim is a set of comparisons, each over disjoint subsets of a "
    "log, paired by subset. A "
    "comparison is *yes* if the whole 95 % interval (Student's t) lies on the claimed side, *no* "
    "if it lies on the other side, "
    "and *open* if it contains the bound. A claim holds if all say yes, does not hold if one says "
    "no, and else is not decidable. "
    "No interval is corrected for their number.",
    "**The presets were picked because they match the paper.** It says neither what a plan costs "
    "MSB nor how often MRT may step "
    "back nor in what order it looks. Of four defensible settings the order of the paper appears "
    "against two: MSB with the sum "
    "of delays as its price, and MRT by earliest deadline without a step back. These are the "
    "presets. MSB with the fraction of "
    "slack as its price and MRT by least laxity with 10 steps back are stronger, and stand next to "
    "them in every table and "
    "picture. Every claim of QoPS against its rivals is judged a second time against them, as "
    "*-stronger*.",
    "Estimates are exact. Deadlines are submission + max(run, (1 - s) x response under EASY) on "
    "the log at its load. Jobs "
    "without a deadline get submission + max(24 h, 5 x run), and are refused if that cannot be "
    "kept. QoPS: K = 5, least laxity, "
    "the new job sorted in. All these runs are compiled.",
    "At equal utilisation: a curve joins the points (utilisation, number) of the four loads. Two "
    "curves are compared at nine "
    "utilisations, evenly spread over their common range, by the geometric mean of the ratio.",
)
"""Paragraphs on how a claim is judged."""

_HELD = """
ctc.4.work-falls ctc.4.work-rises-with-s ctc.6.loss ctc.6.stringency-costs ctc.6.alike ctc.6.alike-stronger
ctc.6.mrt-below ctc.6.mrt-below-stronger ctc.13.mrt-rejects-more-work ctc.25.below-references ctc.27.worse-at-80
ctc.37.loss-at-80 ctc.37.loss-grows-with-q ctc.37.alike ctc.37.alike-stronger ctc.37.mrt-below
ctc.43.slowdown-gains-more ctc.55.response-rises-with-R ctc.55.slowdown-falls-with-R ctc.calibration.load-1.4

ctc.10.gap-grows ctc.11.converge ctc.10.work-falls ctc.10.work-rises-with-s ctc.12.loss ctc.12.stringency-costs
ctc.12.alike ctc.12.alike-stronger ctc.12.mrt-below ctc.21.mrt-rejects-more-work ctc.33.below-references
ctc.35.worse-at-80 ctc.41.loss-at-80 ctc.41.loss-grows-with-q ctc.41.alike ctc.41.alike-stronger ctc.41.mrt-below
ctc.51.slowdown-gains-more

sdsc.7.work-falls sdsc.7.work-rises-with-s sdsc.9.alike sdsc.9.alike-stronger sdsc.9.mrt-below
sdsc.9.mrt-below-stronger sdsc.18.converge-stronger sdsc.17.mrt-rejects-more-work sdsc.29.below-references
sdsc.31.worse-at-80-stronger sdsc.39.alike sdsc.39.alike-stronger sdsc.39.mrt-below sdsc.47.below-references-at-equal
sdsc.48.below-references-at-equal sdsc.49.below-references-at-equal sdsc.50.below-references-at-equal
sdsc.55.response-rises-with-R
"""

_FAILED = """
ctc.4.jobs-stronger ctc.4.gap-grows-stronger ctc.5.converge-stronger ctc.4.count-falls ctc.4.jobs-rise-with-s
ctc.6.mrt-by-3-to-5 ctc.13.jobs-stronger ctc.14.jobs-stronger ctc.15.jobs-stronger ctc.16.jobs ctc.16.jobs-stronger
ctc.25.comparable-response ctc.25.comparable-response-stronger ctc.25.slowdown ctc.25.slowdown-stronger ctc.43.best
ctc.43.best-stronger ctc.44.best ctc.44.best-stronger ctc.45.best ctc.45.best-stronger
ctc.45.below-references-at-equal ctc.46.best ctc.46.best-stronger ctc.46.below-references-at-equal

ctc.10.count-falls ctc.10.jobs-rise-with-s ctc.12.mrt-by-3-to-5 ctc.23.jobs ctc.33.comparable-response
ctc.33.comparable-response-stronger ctc.33.slowdown ctc.33.slowdown-stronger ctc.51.best ctc.51.best-stronger
ctc.51.below-references-at-equal ctc.52.best ctc.52.best-stronger ctc.53.best ctc.53.best-stronger
ctc.53.below-references-at-equal ctc.54.best ctc.54.best-stronger ctc.54.below-references-at-equal

sdsc.7.jobs sdsc.7.jobs-stronger sdsc.7.work-stronger sdsc.8.jobs sdsc.8.jobs-stronger sdsc.8.work
sdsc.8.work-stronger sdsc.7.gap-grows sdsc.7.gap-grows-stronger sdsc.7.count-falls sdsc.9.mrt-by-3-to-5
sdsc.17.jobs-stronger sdsc.18.jobs sdsc.18.jobs-stronger sdsc.19.jobs sdsc.19.jobs-stronger sdsc.20.jobs
sdsc.20.jobs-stronger sdsc.29.comparable-response sdsc.29.comparable-response-stronger sdsc.29.slowdown
sdsc.29.slowdown-stronger sdsc.47.best sdsc.47.best-stronger sdsc.48.best sdsc.48.best-stronger sdsc.49.best
sdsc.49.best-stronger sdsc.50.best sdsc.50.best-stronger sdsc.55.slowdown-falls-with-R sdsc.calibration.load-1.4
"""

EXPECTED = known_verdicts(_HELD, f"{_FAILED} 4.1.dynamic-falls")
"""The known verdicts of claims: about runs, of ten subsets of 5,000 jobs of CTC and SDSC from seed
1.  A claim about runs that is missing here has no known verdict, except for the claims that no run
may break."""
