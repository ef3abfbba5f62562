"""Karatza and Hilzer 2003: Table 2 and Figures 3 to 14 as tables and pictures, and a verdict on
each claim.

A claim is a set of comparisons over the replications (``evidence``).  Policies and networks are
compared in pairs, because they share their draws (docs/spec/papers.md, R003 and its claims that
were missing).  *Much* means at least twice; these bounds were set before the runs, with the
calibration known.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from itertools import chain, combinations, pairwise, product
from typing import TYPE_CHECKING, Any

from qbatch.metrics import interval
from qbatch.papers import closed_network as paper
from qbatch.papers import closed_network_beyond as beyond
from qbatch.papers import evidence, record
from qbatch.papers.closed_network import NetworkReplicas, NetworkStudy
from qbatch.papers.evidence import (
    NO,
    OPEN,
    YES,
    EvidenceItem,
    above,
    answers_of,
    below,
    claim_of,
    inside,
)
from qbatch.papers.harness import ALONE, Experiment, Runner, sources_hash
from qbatch.papers.pictures import curve, finished, new_picture
from qbatch.papers.record import (
    Claim,
    PaperOutcome,
    Table,
    Tolerance,
    cell,
    cells,
    means,
    table_of_lines,
)
from qbatch.papers.replicas import Number, Values, combined, difference, mean
from qbatch.reports.plot_style import GREY, PALETTE
from qbatch.workloads.network import Network

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PRFCFS, SQFCFS, PRSTF, PRSNUTF, PRLSTF = paper.POLICIES

RUNS = Experiment(
    "blocks of runs",
    paper.NetworkFigures,
    paper.simulate,
    lambda case: sources_hash(paper.__name__, text=repr(paper.RULES[case.policy])),
)


def run_paper(
    study: NetworkStudy, parts: Collection[str] = paper.PARTS, runner: Runner = ALONE
) -> PaperOutcome:
    """Run some parts of the paper."""
    return outcome_of(study, runner.runs(RUNS, study.cases(parts)), parts)


def outcome_of(
    study: NetworkStudy, runs: Sequence[paper.NetworkFigures], parts: Collection[str]
) -> PaperOutcome:
    """Return the tables, claims and pictures of finished runs."""
    replicas = NetworkReplicas(runs, study.replications)
    outcome = PaperOutcome(notes=_notes(study), method=list(METHOD), unknown=_unknown(study))
    claims = []
    if paper.FIGURES in parts:
        outcome.tables.extend(all_tables(study, replicas))
        claims += all_claims(study, replicas)
    if paper.MAXIMA in parts:
        outcome.tables.append(maxima_table(study, replicas, NetworkReplicas(runs)))
    if paper.ERRORS in parts:
        outcome.tables.extend(beyond.error_tables(study, replicas))
        claims += errors(study, replicas)
    for part, make in (
        (paper.TIES, beyond.ties_table),
        (paper.COMBINATIONS, beyond.combinations_table),
        (paper.TAILS, beyond.tails_table),
        (paper.STATIONS, beyond.stations_table),
        (paper.SIZES, beyond.sizes_table),
    ):
        if part in parts:
            outcome.tables.append(make(study, replicas))
    outcome.claims.extend(evidence.explained(claims, WHY, lambda name: expected(name, study)))
    outcome.pictures.update(all_pictures(study, replicas, parts))
    return outcome


def expected(name: str, study: NetworkStudy) -> str:
    """Return the known verdict of a claim with the usual replications, seed and window; else
    undecided."""
    return record.UNDECIDED if _unknown(study) else EXPECTED.get(name, record.UNDECIDED)


def _unknown(study: NetworkStudy) -> str:
    """Return why no verdicts are on record for a study; empty if some are."""
    if (
        study.replications >= paper.REPLICATIONS
        and study.seed == paper.SEED
        and study.length == paper.LENGTH_S
    ):
        return ""
    return (
        f"no verdicts are on record of {study.replications} replications of {study.length:g} s "
        f"with seed {study.seed}, only of "
        f"{paper.REPLICATIONS} or more of {paper.LENGTH_S:g} s with seed {paper.SEED}"
    )


def _notes(study: NetworkStudy) -> list[str]:
    notes = [
        f"each replication is measured for {study.length:g} s after {study.warmup:g} s (rule 11): "
        "the paper does not say how "
        "long its runs were, and RT_max depends on it",
        "in the paper STF has the largest task first; with that order U would lie below that of "
        "PrFCFS, with the smallest "
        "first it is that of Table 2 (docs/spec/papers.md 5.2)",
    ]
    if study.replications < paper.REPLICATIONS:
        notes.append(
            f"with {study.replications} of the usual {paper.REPLICATIONS} replications intervals "
            "are wide, or none"
        )
    return notes


# ------------------------------------------------------------------------------------------------
# tables of the paper

_PAIRED = "+-: half a 95 % interval; of ratios of means, by pairs (common draws)"


def all_tables(study: NetworkStudy, replicas: NetworkReplicas) -> list[Table]:
    """Return every table of the paper's own runs."""
    tables = [
        policies_table(),
        table_2(study, replicas),
        gains_table(study, replicas),
        longest_table(study, replicas),
    ]
    for name, title, number, factor, decimals in (
        ("utilisation", "Utilisation U in percent", paper.UTILISATION, paper.PERCENT, 1),
        ("throughput", "Throughput R: jobs a second", paper.THROUGHPUT, 1.0, 3),
        ("response", "Mean response of a parent, the processors' part (s)", paper.RESPONSE, 1.0, 2),
        (
            "slowdown",
            "Mean slowdown of a parent: response over the longest demand among its tasks",
            paper.SLOWDOWN,
            1.0,
            2,
        ),
        (
            "spread",
            "Mean spread of a parent: the end of its last task less that of its first (s)",
            paper.SPREAD,
            1.0,
            2,
        ),
    ):
        tables.append(
            levels_table(study, replicas, f"closed-network-{name}", title, number, factor, decimals)
        )
    return [*tables, precision_table(study, replicas)]


def policies_table() -> Table:
    """Return the policies."""
    lines = []
    for name, rules in paper.RULES.items():
        line = cells(policy=name, routing=rules.routing, discipline=rules.discipline)
        lines.append(
            line + cell("paper", "in the paper", "yes" if name in paper.POLICIES else "no")
        )
    return table_of_lines("closed-network-policies", "The policies", lines)


def table_2(study: NetworkStudy, replicas: NetworkReplicas) -> Table:
    """Return Table 2: utilisation at the lowest and the highest N; of PrSNUTF with either tie, if
    both were run."""
    policies = [(policy, policy) for policy in paper.POLICIES]
    if any(
        replicas.of(network, paper.PRSNUTF_STF, paper.UTILISATION) for network in study.of_paper()
    ):
        policies.insert(paper.POLICIES.index(PRSNUTF) + 1, (paper.PRSNUTF_STF, PRSNUTF))
    lines = []
    for variation, (policy, as_printed), (place, length) in product(
        paper.VARIATIONS, policies, enumerate(paper.INTERVALS)
    ):
        for end, jobs in enumerate((paper.JOBS[0], paper.JOBS[-1])):
            network, tolerance = (
                study.network(jobs, variation, length),
                Tolerance(0.0, paper.TOLERANCES[variation]),
            )
            printed = paper.TABLE_2[variation][as_printed][place][end]
            is_calibrated = policy == as_printed and length == paper.MIDDLE
            calibrated = (
                paper.CALIBRATED_UTILISATION[variation][policy][end] if is_calibrated else None
            )
            ours = replicas.of(network, policy, paper.UTILISATION)
            short = replicas.of(study.short(jobs, variation, length), policy, paper.UTILISATION)
            lines.append(
                [
                    *beyond.point(network),
                    *cells(policy=policy),
                    *cell("printed", "U printed", printed, 2),
                    *means("ours", "ours", 3, ours),
                    *cell("calibrated", "calibration", calibrated, 3),
                    *cell("verdict", "verdict", tolerance.verdict(printed, mean(ours))),
                    *means("short", "short runs", 3, short),
                ]
            )
    notes = [
        "within: the mean lies within .03 (C = 2) or .05 (C = 4) of the printed number",
        f"short runs: measured from the empty start on, for {study.length / 2:g} s",
        "calibration: docs/spec/papers.md R003, a window of 120,000 s",
        "the paper does not define which of two tasks goes first if their jobs have as few "
        "uncompleted tasks. With "
        f"{PRSNUTF} it is the one that came first, with {paper.PRSNUTF_STF} (shown if it was run) "
        "the one with the least demand. "
        f"{paper.PRSNUTF_STF} was picked after the fact, among other ties, as it comes nearest to "
        "the print",
    ]
    return table_of_lines(
        "closed-network-table2",
        "Table 2: utilisation at the lowest and the highest N",
        lines,
        notes,
    )


def gains_table(study: NetworkStudy, replicas: NetworkReplicas) -> Table:
    """Return Figures 3 to 8: D_R, the gain of each policy's throughput over that of PrFCFS."""
    lines = []
    for network in study.of_paper():
        line = [*cells(figure=figure_of(network, 3)), *beyond.point(network)]
        for policy in paper.POLICIES[1:]:
            line += means(policy, policy, 1, replicas.gain(network, policy))
            known = paper.CALIBRATED_GAIN[network.variation][policy][paper.JOBS.index(network.jobs)]
            line += cell(
                f"{policy}_calibrated",
                "calibration",
                known if network.tasks_interval == paper.MIDDLE else None,
                1,
            )
        lines.append(line)
    title = "Figures 3 to 8: D_R in percent, throughput against PrFCFS"
    return table_of_lines(
        "closed-network-figure3", title, lines, [_PAIRED, "the figures carry no numbers"]
    )


def figure_of(network: Network, first: int) -> int:
    """Return the figure of a network, of the six that begin with this one."""
    return (
        first
        + 3 * paper.VARIATIONS.index(network.variation)
        + paper.INTERVALS.index(network.tasks_interval)
    )


def longest_table(study: NetworkStudy, replicas: NetworkReplicas) -> Table:
    """Return Figures 9 to 14: RT_max, and its ratio to that of PrFCFS."""
    lines = []
    for network in study.of_paper():
        line = [*cells(figure=figure_of(network, 9)), *beyond.point(network)]
        line += means(PRFCFS, "PrFCFS s", 1, replicas.of(network, PRFCFS, paper.LONGEST))
        for policy in paper.POLICIES[1:]:
            line += means(policy, policy, 2, replicas.ratio(network, policy, paper.LONGEST))
        lines.append(line)
    known = "; ".join(
        f"C = {variation:g}: " + ", ".join(f"{policy} {said}" for policy, said in by_policy.items())
        for variation, by_policy in paper.CALIBRATED_RATIO.items()
    )
    notes = [_PAIRED, f"the figures carry no numbers; our calibration, from N = 16 to 48: {known}"]
    title = "Figures 9 to 14: RT_max of PrFCFS, and its ratios to that"
    return table_of_lines("closed-network-figure9", title, lines, notes)


def levels_table(
    study: NetworkStudy,
    replicas: NetworkReplicas,
    name: str,
    title: str,
    number: Number,
    factor: float,
    decimals: int,
) -> Table:
    """Return a number of each policy on each network of the paper."""
    lines = []
    for network in study.of_paper():
        each = (
            means(policy, policy, decimals, replicas.of(network, policy, number), factor)
            for policy in paper.POLICIES
        )
        lines.append([*beyond.point(network), *chain.from_iterable(each)])
    return table_of_lines(name, title, lines)


def precision_table(study: NetworkStudy, replicas: NetworkReplicas) -> Table:
    """Return half the intervals of RT_max, U and R in percent of the mean, and how many
    replications 5 % of RT_max would take."""
    lines = []
    for network in study.of_paper():
        line = beyond.point(network)
        for key, number in (("U", paper.UTILISATION), ("R", paper.THROUGHPUT)):
            found = [_half_percent(replicas.of(network, one, number)) for one in paper.POLICIES]
            line += cell(
                key,
                f"{key} %",
                max((share for share in found if share is not None), default=None),
                2,
            )
        for policy in paper.POLICIES:
            values = replicas.of(network, policy, paper.LONGEST)
            line += cell(policy, f"{policy} %", _half_percent(values), 1)
            line += cell(f"{policy}_needed", "needed", paper.replications_needed(values))
        lines.append(line)
    notes = [
        "U, R: the widest of the five policies. Each policy: RT_max, and with how many "
        "replications half its interval would be "
        "below 5 % of the mean, by the variance seen"
    ]
    return table_of_lines(
        "closed-network-precision", "Half the 95 % intervals in percent of the mean", lines, notes
    )


def _half_percent(values: Values) -> float | None:
    share = paper.half_share(values)
    return None if share is None else paper.PERCENT * share


def maxima_table(study: NetworkStudy, replicas: NetworkReplicas, whole: NetworkReplicas) -> Table:
    """Return RT_max of the networks with many replications, enough for an interval below 5 %;
    ``whole``: all runs."""
    lines = []
    for (jobs, variation), policy in product(paper.MANY_AT, paper.POLICIES):
        network = study.network(jobs, variation)
        values, few = (of.of(network, policy, paper.LONGEST) for of in (whole, replicas))
        ratio = evidence.written(
            interval(list(whole.ratio(network, policy, paper.LONGEST).values()))
        )
        lines.append(
            [
                *beyond.point(network),
                *cells(policy=policy, replications=len(values)),
                *means("longest", "RT_max s", 1, values),
                *cell("share", "half interval %", _half_percent(values), 1),
                *cell("needed", "5 % takes", paper.replications_needed(values)),
                *cell(
                    "needed_before",
                    f"by the first {study.replications}",
                    paper.replications_needed(few),
                ),
                *cell("ratio", "ratio to PrFCFS", ratio),
            ]
        )
    return table_of_lines("closed-network-maxima", "RT_max by many replications", lines)


# ------------------------------------------------------------------------------------------------
# pictures

_BARS = "Bars: 95 % intervals over the replications, by pairs (common draws)."
_GAIN = "D_R: throughput against PrFCFS, percent. "
_MARKS = "os^Dv<>p"

Panel = tuple[str, Callable[[float], Network]]
"""A panel of a picture: its title, and the network at a place of its axis."""


def all_pictures(
    study: NetworkStudy, replicas: NetworkReplicas, parts: Collection[str]
) -> dict[str, Callable[[], Figure]]:
    """Return functions that draw each picture of some parts, by name of file."""
    network, others = study.network, paper.POLICIES[1:]

    def rows(title: str, seconds: Sequence[float], of: Callable[..., Network]) -> list[list[Panel]]:
        """Return a row for each C with a panel for each of ``seconds``; ``of`` makes a network of
        both and a place."""
        return [
            [(title.format(C=c, x=x), partial(of, c, x)) for x in seconds] for c in paper.VARIATIONS
        ]

    def of_size(c: float, share: int, processors: int) -> Network:
        of = network if processors == paper.JOBS[0] else partial(study.sized, processors)
        return of(share * processors, c)

    by_jobs = "C = {C:g}, N = {x}"
    of_paper = rows("d = e = {x:g}", paper.INTERVALS, lambda c, d, jobs: network(jobs, c, d))
    of_errors = rows(by_jobs, paper.BEYOND_JOBS, lambda c, n, error: network(n, c, error=error))
    of_stations = rows(
        by_jobs, paper.BEYOND_JOBS, lambda c, n, servers: network(n, c, servers=servers)
    )
    several = rows("C = {C:g}, N = {x} P", (1, 2, 3), of_size)
    of_sizes = [[(title.replace("1 P", "P"), of) for title, of in row] for row in several]
    combined = [
        panel
        for row in rows("C = {C:g}", [0.0], lambda c, _, jobs: network(jobs, c))
        for panel in row
    ]
    gain, ratio = replicas.gain, partial(replicas.ratio, number=paper.LONGEST)
    text = "RT_max: the longest response of a replication, against PrFCFS; a scale of logarithms. "
    pictures: list[tuple[Any, ...]] = [
        (
            paper.FIGURES,
            f"figure{first}-C{c:g}",
            f"Figures {begin} to {begin + 2}: {what} against N, C = {c:g}",
            [row],
            read,
            others,
            paper.JOBS,
            "N",
            note,
            look,
        )
        for first, what, read, note, look in (
            (3, "D_R (%)", gain, _GAIN, {"level": 0}),
            (9, "RT_max ratio", ratio, text, {"level": 1, "is_ratio": True}),
        )
        for begin, c, row in zip((first, first + 3), paper.VARIATIONS, of_paper, strict=True)
    ]
    pictures += [
        (
            paper.ERRORS,
            "errors-order",
            "Beyond the paper: D_R (%) by the error of estimates",
            of_errors,
            gain,
            others,
            (0.0, *paper.ERROR_STEPS),
            "E",
            _GAIN,
            {},
        ),
        (
            paper.COMBINATIONS,
            "combinations",
            "Beyond the paper: the shortest queue, throughput against SQFCFS (%)",
            [combined],
            partial(gain, base=SQFCFS),
            paper.COMBINED[1:],
            paper.JOBS,
            "N",
            "",
            {"level": 0},
        ),
        (
            paper.STATIONS,
            "stations",
            "Beyond the paper: D_R (%) by processors of a station",
            of_stations,
            gain,
            others,
            paper.SERVERS,
            "processors of a station, of 16",
            _GAIN,
            {"is_log": True},
        ),
        (
            paper.SIZES,
            "sizes",
            "Beyond the paper: D_R (%) by the number of processors",
            of_sizes,
            gain,
            others,
            (paper.JOBS[0], *paper.SIZED_JOBS),
            "P",
            _GAIN,
            {"is_log": True},
        ),
    ]
    return {
        f"closed-network-{name}": partial(_draw, *drawn, **look)
        for part, name, *drawn, look in pictures
        if part in parts
    }


def _draw(
    title: str,
    rows: Sequence[Sequence[Panel]],
    read: Callable[[Network, str], Values],
    policies: Sequence[str],
    places: Sequence[float],
    below: str,
    text: str,
    *,
    level: float | None = None,
    is_log: bool = False,
    is_ratio: bool = False,
) -> Figure:
    """Draw a line for each policy in each panel, with intervals; a place without runs is left out.

    ``level``: the height of a grey line.  ``is_log``, ``is_ratio``: the axis of the places, or of
    the values, is logarithmic.
    """
    figure = new_picture(2.6 if len(rows) == 1 else 4.2, title)
    grid = figure.subplots(
        len(rows), len(rows[0]), sharey="row", sharex=len(rows) > 1, squeeze=False
    )
    for row, panels in zip(grid, rows, strict=True):
        for axes, (heading, network_at) in zip(row, panels, strict=True):
            for number, policy in enumerate(policies, 0 if SQFCFS in policies else 4):
                look: dict[str, Any] = {
                    "color": PALETTE[number],
                    "marker": _MARKS[number],
                    "ms": 3,
                    "label": policy,
                }
                curve(
                    axes,
                    places,
                    [read(network_at(place), policy) for place in places],
                    linewidth=0.9,
                    **look,
                )
            if is_log:
                axes.set_xscale("log", base=2)
            axes.set_xticks(places, [f"{place:g}" for place in places])
            axes.minorticks_off()
            axes.set_title(heading, fontsize=7)
            axes.set_xlabel(below if panels is rows[-1] else "")
            if level is not None:
                axes.axhline(level, color=GREY, linewidth=0.6)
            if is_ratio:
                axes.set_yscale("log", base=2)
                axes.yaxis.set_major_formatter("{x:g}")
    return finished(figure, text + _BARS)


# ------------------------------------------------------------------------------------------------
# claims

LOW, HIGH = paper.JOBS[0], paper.JOBS[-1]
OTHERS = (PRSTF, PRSNUTF, PRLSTF)
POINTS = [*product(paper.VARIATIONS, paper.INTERVALS)]
MUCH = 2.0
"""At least so many times is *much*."""

CLOSE = 0.02
"""Within so much of utilisation two policies are *almost the same* (R003)."""

MARGINAL = 0.01
"""A change of utilisation below this is *marginal* (docs/spec/papers.md 5.4, check 7)."""

PAPER_ERRORS = paper.ERROR_STEPS[:3]
MOST_THROUGHPUT = 1.882
"""Jobs a second when all processors are busy: 16 / 8.5."""

TASKS_MEAN, PROCESSORS, MEAN_IO = 8.5, 16, 0.531

Item = Callable[..., EvidenceItem]


def all_claims(study: NetworkStudy, replicas: NetworkReplicas) -> list[Claim]:
    """Return every claim of Table 2 and Figures 3 to 14."""
    makers = (
        arithmetic,
        ranges,
        best_and_worst,
        close,
        gains,
        patterns,
        by_variation,
        longest,
        precision,
    )
    text = "PrFCFS costs the least and SQFCFS would still be the best if overhead were counted"
    overhead = Claim(
        "s43.overhead",
        text,
        record.UNCHECKED,
        "neither routing nor selection takes time in the model",
    )
    return [*(one for make in makers for one in make(study, replicas)), overhead]


def _over_d(
    study: NetworkStudy, jobs: int, variation: float, read: Callable[[Network], Values]
) -> Values:
    """Return the mean over d of the values of a network, by replication."""
    each = [read(study.network(jobs, variation, length)) for length in paper.INTERVALS]
    return combined(lambda *values: sum(values) / len(values), *each)


def _label(network: Network, *names: str) -> str:
    point = f"C{network.variation:g} d{network.tasks_interval:g} N{network.jobs}"
    return f"{' - '.join(names)} {point}".strip()


def _apart(replicas: NetworkReplicas, network: Network, first: str, second: str) -> Values:
    return replicas.more(network, first, second, paper.UTILISATION)


def _compared(
    study: NetworkStudy,
    replicas: NetworkReplicas,
    make: Item,
    policy: str,
    others: Sequence[str],
    *bounds: float,
) -> list[EvidenceItem]:
    return [
        make(_label(network, policy, other), _apart(replicas, network, policy, other), *bounds)
        for network, other in product(study.of_paper(), others)
    ]


# ------------------------------------------------------------------------------------------------
# utilisation


def arithmetic(study: NetworkStudy, replicas: NetworkReplicas) -> list[Claim]:
    """What holds for every policy: docs/spec/papers.md 5.4, checks 1 and 5."""
    balanced = []
    for variation, policy in product(paper.VARIATIONS, paper.POLICIES):
        apart = [
            combined(
                lambda busy, rate: busy - rate * TASKS_MEAN / PROCESSORS,
                *(
                    replicas.of(network, policy, number)
                    for number in (paper.UTILISATION, paper.THROUGHPUT)
                ),
            )
            for network in study.of_paper()
            if network.variation == variation
        ]
        pooled = combined(lambda *each: sum(each) / len(each), *apart)
        balanced.append(inside(f"{policy} C{variation:g}", pooled, -0.01, 0.01))
    rates = [
        below(
            _label(network, SQFCFS), replicas.of(network, SQFCFS, paper.THROUGHPUT), MOST_THROUGHPUT
        )
        for network in study.of_paper()
        if network.jobs == HIGH
    ]
    share = MEAN_IO * PROCESSORS / TASKS_MEAN
    text = "z = 0.531 balances processors and I/O: 1 / (16 / 8.5)"
    return [
        record.claim("a.balance", text, abs(share - 1) < 0.001, f"z R is {share:.4f} of U"),
        claim_of("a.identity", "U is 8.5/16 R: within .01 over all N and d together", balanced),
        claim_of("a.bound", "R is below 1.882 a second, also of SQFCFS at N = 48", rates),
    ]


def ranges(study: NetworkStudy, replicas: NetworkReplicas) -> list[Claim]:
    """Table 2, cell by cell; and that d hardly matters."""
    claims = []
    for variation, tolerance in paper.TOLERANCES.items():
        for policy in paper.POLICIES:
            found = []
            for (place, length), (end, jobs) in product(
                enumerate(paper.INTERVALS), enumerate((LOW, HIGH))
            ):
                printed = paper.TABLE_2[variation][policy][place][end]
                values = replicas.of(
                    study.network(jobs, variation, length), policy, paper.UTILISATION
                )
                label = f"{printed:g} printed, d{length:g} N{jobs}:"
                found.append(inside(label, values, printed - tolerance, printed + tolerance))
            text = (
                f"{policy}, C = {variation:g}: U within {tolerance:g} of Table 2 (3 d, N = 16 "
                "and 48)"
            )
            claims.append(claim_of(f"t2.C{variation:g}.{policy}", text, found))
    for variation, bound in ((2.0, 0.02), (4.0, 0.04)):
        found = []
        for policy, jobs, pair in product(
            paper.POLICIES, paper.JOBS, combinations(paper.INTERVALS, 2)
        ):
            first, second = (
                replicas.of(study.network(jobs, variation, d), policy, paper.UTILISATION)
                for d in pair
            )
            label = f"{policy} N{jobs} d{pair[0]:g} - d{pair[1]:g}"
            found.append(inside(label, difference(first, second), -bound, bound))
        text = f"C = {variation:g}: U differs by at most {bound:g} over d = 10, 20, 30"
        claims.append(claim_of(f"t2.d.C{variation:g}", text, found))
    return claims


def best_and_worst(study: NetworkStudy, replicas: NetworkReplicas) -> list[Claim]:
    """Section 4.1: the highest and the lowest utilisation, and the superiority of PrSTF."""
    compared = partial(_compared, study, replicas)
    return [
        claim_of(
            "s41.best",
            "SQFCFS has the highest U everywhere",
            compared(above, SQFCFS, (PRFCFS, *OTHERS), 0.0),
        ),
        claim_of(
            "s41.worst",
            "PrFCFS has the lowest U everywhere",
            compared(below, PRFCFS, (SQFCFS, *OTHERS), 0.0),
        ),
        claim_of(
            "s41.stf",
            "PrSTF has a higher U than PrSNUTF and PrLSTF",
            compared(above, PRSTF, (PRSNUTF, PRLSTF), 0.0),
        ),
    ]


def close(study: NetworkStudy, replicas: NetworkReplicas) -> list[Claim]:
    """Section 4.1: policies near each other, and policies far apart."""

    def pair_apart(network: Network) -> Values:
        return _apart(replicas, network, PRSNUTF, PRLSTF)

    def lead(jobs: int, variation: float, length: float) -> Values:
        """Return how far the utilisation of PrSTF lies above that of PrSNUTF or PrLSTF, whichever
        has the higher mean."""
        network = study.network(jobs, variation, length)
        better = max(
            (PRSNUTF, PRLSTF),
            key=lambda one: mean(replicas.of(network, one, paper.UTILISATION)) or 0.0,
        )
        return _apart(replicas, network, PRSTF, better)

    def leads(of: Sequence[int], times: float) -> list[EvidenceItem]:
        """Compare the lead of SQFCFS over PrSTF with so many times that of PrSTF over the
        others."""
        found = []
        for jobs, point, other in product(of, POINTS, (PRSNUTF, PRLSTF)):
            network = study.network(jobs, *point)
            more = _apart(replicas, network, SQFCFS, PRSTF), _apart(replicas, network, PRSTF, other)
            found.append(
                above(
                    f"{other} {_label(network)}", combined(lambda a, b: a - times * b, *more), 0.0
                )
            )
        return found

    near_together = [
        inside(
            f"C{variation:g} N{jobs}", _over_d(study, jobs, variation, pair_apart), -CLOSE, CLOSE
        )
        for variation, jobs in product(paper.VARIATIONS, paper.JOBS)
    ]
    low = [below(_label(study.network(LOW, *point)), lead(LOW, *point), 0.02) for point in POINTS]
    high = [
        above(
            _label(study.network(HIGH, *point)),
            lead(HIGH, *point),
            0.01 if point[0] == 2.0 else 0.03,
        )
        for point in POINTS
    ]
    text = "U of PrSNUTF and of PrLSTF lie within .02 of each other everywhere"
    near = _compared(study, replicas, inside, PRSNUTF, (PRLSTF,), -CLOSE, CLOSE)
    return [
        claim_of("s41.close", text, near, "", near_together),
        claim_of(
            "s41.stf-low",
            "N = 16: U of PrSTF is at most .02 above the better of PrSNUTF and PrLSTF",
            low,
        ),
        claim_of(
            "s41.stf-high",
            "N = 48: U of PrSTF is above the better of them by at least .01 (C = 2), .03 (C = 4)",
            high,
        ),
        claim_of(
            "s41.sq-far",
            "SQFCFS leads PrSTF by more than PrSTF leads PrSNUTF and PrLSTF (U)",
            leads(paper.JOBS, 1.0),
        ),
        claim_of(
            "s41.sq-much-low",
            "N = 16: SQFCFS leads PrSTF by at least twice as much",
            leads((LOW,), MUCH),
        ),
        claim_of(
            "s41.sq-much-high",
            "N = 48: SQFCFS leads PrSTF by at least twice as much",
            leads((HIGH,), MUCH),
        ),
    ]


# ------------------------------------------------------------------------------------------------
# Figures 3 to 8


def gains(study: NetworkStudy, replicas: NetworkReplicas) -> list[Claim]:
    """Figures 3 to 8: D_R."""
    falls = []
    for (variation, length), pair in product(POINTS, pairwise(paper.JOBS)):
        one, other = (
            replicas.gain(study.network(jobs, variation, length), SQFCFS) for jobs in pair
        )
        label = f"C{variation:g} d{length:g} N{pair[0]} - N{pair[1]}"
        falls.append(above(label, difference(one, other), 0.0, " points"))
    higher = []
    for jobs, length in product(paper.JOBS, paper.INTERVALS):
        two, four = (
            replicas.gain(study.network(jobs, variation, length), SQFCFS)
            for variation in paper.VARIATIONS
        )
        higher.append(above(f"d{length:g} N{jobs}", difference(four, two), 0.0, " points"))
    some = [
        above(_label(network, PRSNUTF, PRLSTF), replicas.gain(network, PRSNUTF, PRLSTF), 0.0, " %")
        for network in study.of_paper()
    ]
    at_most = _compared(study, replicas, below, PRLSTF, (PRSNUTF,), CLOSE)
    return [
        claim_of("f3.sq-falls", "D_R of SQFCFS falls as N grows", falls),
        claim_of("f3.sq-C4", "D_R of SQFCFS is higher with C = 4 than with C = 2", higher),
        _exists(
            "f3.snutf-some", "In some networks the R of PrSNUTF is higher than that of PrLSTF", some
        ),
        claim_of(
            "f3.snutf-else",
            "In the others they are similar: U of PrLSTF is nowhere more than .02 above",
            at_most,
        ),
    ]


def _exists(name: str, text: str, found: Sequence[EvidenceItem], note: str = "") -> Claim:
    """Return a claim that holds if one comparison says yes, and does not if all say no."""
    says = [one.says for one in found]
    together = YES if YES in says else OPEN if OPEN in says or not says else NO
    best = sorted(found, key=lambda one: (YES, OPEN, NO).index(one.says))
    shown = "; ".join(one.text() for one in best[:4])
    if len(best) > 4:
        shown += f"; and {len(best) - 4} more"
    return _judged(name, text, together, f"{shown}; {note}" if note else shown, answers_of(found))


def _judged(
    name: str, text: str, said: str, numbers: str, answers: Mapping[str, int] | None = None
) -> Claim:
    return Claim(name, text, evidence.verdict_of([said]), numbers, answers or {})


def _counted(items: Sequence[EvidenceItem], yes: str, no: str) -> str:
    """Return the numbers of answers in words, which stand for yes and no."""
    words = {YES: yes, NO: no, OPEN: "open"}
    return ", ".join(f"{count} {words[said]}" for said, count in answers_of(items).items())


def patterns(study: NetworkStudy, replicas: NetworkReplicas) -> list[Claim]:
    """Section 4.1: the change of D_R with N has no pattern for the three others, and is smaller
    than that of SQFCFS."""
    smaller: list[EvidenceItem] = []
    trend: dict[str, list[EvidenceItem]] = {policy: [] for policy in OTHERS}
    for variation, length, policy in product(paper.VARIATIONS, paper.INTERVALS, OTHERS):
        gain = {
            jobs: replicas.gain(study.network(jobs, variation, length), policy)
            for jobs in paper.JOBS
        }
        ranked = sorted(paper.JOBS, key=lambda jobs: mean(gain[jobs]) or 0.0)
        moved = difference(gain[ranked[-1]], gain[ranked[0]])
        first, last = (
            replicas.gain(study.network(jobs, variation, length), SQFCFS) for jobs in (LOW, HIGH)
        )
        label = f"{policy} C{variation:g} d{length:g}"
        smaller.append(above(label, difference(difference(first, last), moved), 0.0, " points"))
        trend[policy].append(above(label, difference(gain[HIGH], gain[LOW]), 0.0, " points"))
    ways = [{one.says for one in items} for items in trend.values()]
    without = (
        NO
        if {YES} in ways or {NO} in ways
        else YES
        if all({YES, NO} <= each for each in ways)
        else OPEN
    )
    trends = "; ".join(
        f"{policy} N48 - N16: {_counted(items, 'rise', 'fall')}" for policy, items in trend.items()
    )
    text = (
        "D_R of the three others has no pattern in N: from N = 16 to 48 each rises for some C "
        "and d, and falls for others"
    )
    return [
        claim_of(
            "f3.less-than-sq",
            "D_R of the three others moves less over N than that of SQFCFS",
            smaller,
        ),
        _judged("f3.no-pattern", text, without, trends),
    ]


def by_variation(study: NetworkStudy, replicas: NetworkReplicas) -> list[Claim]:
    """Section 4.1: C changes D_R of the three others less than that of SQFCFS, and not always in
    the same direction."""
    smaller, up = [], []
    for jobs, length, policy in product(paper.JOBS, paper.INTERVALS, OTHERS):
        networks = [study.network(jobs, variation, length) for variation in paper.VARIATIONS]
        (sq_2, sq_4), (two, four) = (
            [replicas.gain(one, name) for one in networks] for name in (SQFCFS, policy)
        )
        moved = difference(four, two)
        sign = 1 if (mean(moved) or 0.0) >= 0 else -1
        rest = combined(lambda sq, own, sign=sign: sq - sign * own, difference(sq_4, sq_2), moved)
        label = f"{policy} d{length:g} N{jobs}"
        smaller.append(above(label, rest, 0.0, " points"))
        up.append(above(label, moved, 0.0, " points"))
    ways = {one.says for one in up}
    both = YES if {YES, NO} <= ways else OPEN if OPEN in ways else NO
    numbers = _counted(up, "higher with C = 4", "higher with C = 2")
    return [
        claim_of(
            "s41.C-less", "C changes D_R of the three others by less than that of SQFCFS", smaller
        ),
        _judged(
            "s41.C-both",
            "D_R of the others is higher with C = 2 in some networks, with C = 4 in others",
            both,
            numbers,
        ),
    ]


# ------------------------------------------------------------------------------------------------
# Figures 9 to 14


def longest(study: NetworkStudy, replicas: NetworkReplicas) -> list[Claim]:
    """Figures 9 to 14: RT_max."""
    networks = study.of_paper()

    def each(
        policy: str, others: Sequence[str], make: Item, bound: float = 1.0
    ) -> list[EvidenceItem]:
        found = []
        for network, other in product(networks, others):
            label = _label(network, policy if other == PRFCFS else f"{policy} / {other}")
            found.append(make(label, replicas.ratio(network, policy, paper.LONGEST, other), bound))
        return found

    fewest = each(PRSNUTF, (PRSTF,), above)
    usual, turned, unknown = (sum(one.says == said for one in fewest) for said in (NO, YES, OPEN))
    mostly = YES if usual > len(fewest) / 2 else OPEN if usual + unknown > len(fewest) / 2 else NO
    usually = (
        "Mostly PrSTF has a larger RT_max than PrSNUTF: decided in more than half of the networks"
    )
    singly = [
        more
        for network in networks
        for more in replicas.more(network, PRSNUTF, PRSTF, paper.LONGEST).values()
    ]
    note = f"so in {sum(more > 0 for more in singly)} of {len(singly)} single replications"
    at_2 = []
    for policy, jobs, length in product((PRSTF, PRSNUTF), paper.JOBS, paper.INTERVALS):
        pair = [study.network(jobs, variation, length) for variation in paper.VARIATIONS]
        two, four = (replicas.ratio(network, policy, paper.LONGEST) for network in pair)
        at_2.append(above(f"{policy} d{length:g} N{jobs}", difference(two, four), 0.0))
    rest = (PRSTF, PRSNUTF)
    return [
        claim_of(
            "f9.sq-least",
            "RT_max of SQFCFS is the smallest of all five everywhere",
            each(SQFCFS, (PRFCFS, *OTHERS), below),
        ),
        claim_of(
            "f9.sq-one",
            "The ratio of SQFCFS is at most about 1 (1.1)",
            each(SQFCFS, (PRFCFS,), below, 1.1),
        ),
        claim_of("f9.lstf-above", "The ratio of PrLSTF is above 1", each(PRLSTF, (PRFCFS,), above)),
        claim_of(
            "f9.lstf-below",
            "RT_max of PrLSTF is below that of PrSTF and of PrSNUTF",
            each(PRLSTF, rest, below),
        ),
        claim_of(
            "f9.lstf-much",
            "RT_max of PrLSTF is much smaller than that of PrSTF and of PrSNUTF: at most half",
            each(PRLSTF, rest, below, 1 / MUCH),
        ),
        _judged(
            "f9.stf-usual",
            usually,
            mostly,
            f"{usual} of {len(fewest)} decided so, {turned} the other way",
        ),
        _exists(
            "f9.snutf-few", "In a few networks PrSNUTF has a larger RT_max than PrSTF", fewest, note
        ),
        claim_of(
            "f9.C2", "The ratios of PrSTF and PrSNUTF are larger with C = 2 than with C = 4", at_2
        ),
    ]


# ------------------------------------------------------------------------------------------------
# protocol and errors


def precision(study: NetworkStudy, replicas: NetworkReplicas) -> list[Claim]:
    """Section 3: 95 % intervals below 5 % of the mean."""
    claims = []
    numbers = {"U": paper.UTILISATION, "R": paper.THROUGHPUT, "RT": paper.LONGEST}
    for key, number in numbers.items():
        found = {
            f"{policy} {_label(network)}": replicas.of(network, policy, number)
            for network, policy in product(study.of_paper(), paper.POLICIES)
        }
        shares = {
            label: share
            for label, values in found.items()
            if (share := paper.half_share(values)) is not None
        }
        what = "RT_max" if key == "RT" else key
        text = (
            f"Half the 95 % interval of {what} is below 5 % of the mean everywhere "
            f"({study.replications} replications)"
        )
        if not shares:
            claims.append(Claim(f"s3.{key}", text, record.UNCHECKED, "no intervals"))
            continue
        widest = max(shares, key=lambda label: shares[label])
        over = [label for label, share in shares.items() if share >= paper.BOUND]
        counts = (
            f"{len(over)} of {len(shares)} above; the widest "
            f"{paper.PERCENT * shares[widest]:.1f} % ({widest})"
        )
        if over:
            counts += f", which would take {paper.replications_needed(found[widest])} replications"
        claims.append(_judged(f"s3.{key}", text, NO if over else YES, counts))
    return claims


def errors(study: NetworkStudy, replicas: NetworkReplicas) -> list[Claim]:
    """Section 4.1: errors of estimates of 10, 20 and 30 %."""

    def changed(exact: Network, policy: str, error: float) -> Values:
        wrong = study.network(exact.jobs, exact.variation, exact.tasks_interval, error=error)
        return difference(
            replicas.of(wrong, policy, paper.UTILISATION),
            replicas.of(exact, policy, paper.UTILISATION),
        )

    claims = []
    for policy in (PRSTF, PRLSTF):
        found = [
            inside(
                f"E{error:g} {_label(exact)}", changed(exact, policy, error), -MARGINAL, MARGINAL
            )
            for exact, error in product(study.of_paper(), PAPER_ERRORS)
        ]
        together = []
        for error, variation, jobs in product(PAPER_ERRORS, paper.VARIATIONS, paper.JOBS):
            values = _over_d(study, jobs, variation, partial(changed, policy=policy, error=error))
            together.append(
                inside(f"E{error:g} C{variation:g} N{jobs}", values, -MARGINAL, MARGINAL)
            )
        text = f"{policy}: errors of 10, 20 and 30 % change U by less than .01"
        claims.append(claim_of(f"s41.errors.{policy}", text, found, "", together))
    return claims


# ------------------------------------------------------------------------------------------------
# known verdicts

WHY: dict[str, str] = {
    "t2.C4.PrSNUTF": (
        "at N = 48 ours lie .05 to .07 below the print, as the calibration did. Short runs from an "
        "empty start (a column of "
        "Table 2) are higher by .01 only. The order of equal tasks makes more difference, and the "
        "paper does not define it "
        "(here: first come). If the task with the least demand goes first (PrSNUTF-STF, picked "
        "after the fact), all twelve means "
        "of this seed lie within the tolerance. The nearest to it, .733 of .78 (d = 30, N = 48), "
        "lies outside with 11 of 30 seeds"
    ),
    "s41.sq-much-high": (
        "the bound is ours. With C = 2 SQFCFS leads PrSTF by .06 and PrSTF leads the two others by "
        ".035; in the print they lead "
        "by .07 and by .01 to .03. Everywhere the lead of SQFCFS is the larger one"
    ),
    "f9.lstf-much": (
        "the bound of a half is ours. PrLSTF is below both in nearly every network: by half and "
        "more at high N with C = 2, by a "
        "fifth at N = 16, where queues are short"
    ),
    "f9.snutf-few": (
        "the paper's few cases are likely single maxima: RT_max varies so much from one "
        "replication to the next that "
        "PrSNUTF has the larger one in many replications, and in the mean nowhere"
    ),
    "s3.RT": (
        "RT_max is the greatest of thousands of responses, and its variance takes hundreds of "
        "replications. The paper says that "
        "all its intervals are below 5 %, but not how many replications it ran or how long"
    ),
}
"""The best explanation of claims that do not hold, by name."""

METHOD: tuple[str, ...] = (
    "Table 2 holds the only numbers that the paper prints; its Figures 3 to 14 carry none. Each "
    "network (N, d = e, C) is run for "
    "30 replications, each measured for 2,000 s after 200 s. The five policies share the draws of "
    "a replication, by job and "
    "visit. A claim is a set of comparisons over the replications, and each comparison has one of "
    "three answers. It is *yes* if "
    "the whole 95 % interval (Student's t) lies on the claimed side, *no* if it lies on the other "
    "side, and *open* if it has the "
    "bound inside. A claim holds if all answers are yes, does not hold if one is no, and else is "
    "not decidable. No interval is "
    "corrected for their number. A claim that something happens in *some* networks holds if one "
    "answer is yes, and does not hold "
    "if all are no.",
    "Policies, networks and errors of estimates are compared in pairs. D_R and the ratios of "
    "RT_max are ratios of means; their "
    "intervals are those of r + (a - r b) / mean(b) over the replications (the delta method).",
    "*Much* means at least twice, *almost the same* means within .02 of utilisation, and "
    "*marginal* less than .01 of it "
    "(R003, and docs/spec/papers.md 5.4). These bounds were set before these runs; a calibration "
    "by another program was known.",
    "Beyond the paper no claim is made: tables hold the order of the throughputs, and what becomes "
    "of the pairs of policies "
    "that the paper's own network decides.",
)
"""Paragraphs on how a claim is judged."""

_HELD = """
a.balance a.identity a.bound t2.C2.PrFCFS t2.C2.SQFCFS t2.C2.PrSTF t2.C2.PrLSTF t2.C4.PrFCFS t2.C4.SQFCFS t2.C4.PrSTF
t2.C4.PrLSTF t2.d.C2 t2.d.C4 s41.best s41.worst s41.stf-high s41.sq-far s41.sq-much-low f3.sq-C4 f3.less-than-sq
s41.C-less f9.stf-usual f9.C2 s3.U s3.R
"""

_FAILED = """
t2.C4.PrSNUTF s41.sq-much-high f9.lstf-much f9.snutf-few s3.RT
"""

EXPECTED = evidence.known_verdicts(_HELD, _FAILED)
"""The known verdicts of claims: with thirty replications of the first seed."""
