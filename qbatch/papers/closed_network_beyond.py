"""Karatza and Hilzer 2003, beyond the paper: does the order of its policies survive, and is FCFS
the best discipline?

An *order* lists policies by throughput, the highest first: ``>`` if the paired interval of a
difference excludes 0, else ``~``. Next to it stands what became of the ten pairs of policies that
the network of the paper decides.  No claim is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise, product

from qbatch.papers import closed_network as paper
from qbatch.papers.evidence import NO, OPEN, YES, above
from qbatch.papers.record import Cell, Column, Part, Table, cell, cells, means, table_of_lines
from qbatch.papers.replicas import difference, mean, scaled
from qbatch.workloads.network import Network


def numbers(C: float | None = None, d: float | None = None, N: int | None = None) -> list[Part]:  # noqa: N803
    """Return those numbers of a point that are given, under the names of the paper."""
    given = (("C", "C", C), ("d", "d = e", d), ("N", "N", N))
    return [
        (Column(key, heading), value if isinstance(value, int) else f"{value:g}")
        for key, heading, value in given
        if value is not None
    ]


def point(network: Network) -> list[Part]:
    """Return the numbers of the paper that a network has."""
    return numbers(network.variation, network.tasks_interval, network.jobs)


_ORDER_NOTE = (
    "Order: > if the paired 95 % interval of the difference of throughputs excludes 0, else ~. "
    "Pairs: of those that the network "
    "of the paper with this N (in proportion) and C decides, how many are decided in the same way, "
    "left open, or turned round"
)
_AT_MIDDLE = f"d = e = {paper.MIDDLE:g}"


def says(replicas: paper.NetworkReplicas, network: Network, policy: str, base: str) -> str:
    """Return whether a policy's throughput is decided to be higher than another's, lower, or
    neither."""
    return above(policy, replicas.more(network, policy, base, paper.THROUGHPUT), 0.0).says


def order(
    replicas: paper.NetworkReplicas, network: Network, policies: Sequence[str] = paper.POLICIES
) -> str:
    """Return the policies from the highest throughput to the lowest; empty if one has no run."""
    each = {one: mean(replicas.of(network, one, paper.THROUGHPUT)) for one in policies}
    known = {one: value for one, value in each.items() if value is not None}
    if len(known) < len(policies):
        return ""
    ranked = sorted(policies, key=lambda one: -known[one])
    text = ranked[0]
    for one, following in pairwise(ranked):
        text += f" {'>' if says(replicas, network, one, following) == YES else '~'} {following}"
    return text


def pairs_kept(replicas: paper.NetworkReplicas, network: Network, base: Network) -> dict[str, Cell]:
    """Return of the pairs of policies that the base decides how many a network keeps, leaves open
    and turns round."""
    counts = {YES: 0, OPEN: 0, NO: 0}
    for one, other in combinations(paper.POLICIES, 2):
        before = says(replicas, base, one, other)
        if before != OPEN:
            now = says(replicas, network, one, other)
            counts[OPEN if now == OPEN else YES if now == before else NO] += 1
    return {"kept": counts[YES], "open": counts[OPEN], "turned": counts[NO]}


def _levels(replicas: paper.NetworkReplicas, network: Network) -> list[Part]:
    used = replicas.of(network, paper.PRFCFS, paper.UTILISATION)
    return means("U", "U of PrFCFS %", 1, used, paper.PERCENT) + _gains(replicas, network)


def _gains(replicas: paper.NetworkReplicas, network: Network) -> list[Part]:
    others = paper.POLICIES[1:]
    return [
        part
        for policy in others
        for part in means(policy, f"{policy} D_R %", 1, replicas.gain(network, policy))
    ]


def _order(replicas: paper.NetworkReplicas, network: Network, base: Network) -> list[Part]:
    kept = pairs_kept(replicas, network, base)
    return [
        *cell("order", "order of the throughputs", order(replicas, network)),
        *cell("kept", "pairs kept", kept["kept"]),
        *cells(open=kept["open"]),
        *cell("turned", "turned round", kept["turned"]),
    ]


def error_tables(study: paper.NetworkStudy, replicas: paper.NetworkReplicas) -> list[Table]:
    """Return what errors of estimates change for each policy that needs estimates, and what is left
    of the order."""
    changes = []
    estimating = [policy for policy in paper.POLICIES if policy in paper.ESTIMATING]
    for policy, variation, length, jobs in product(
        estimating, paper.VARIATIONS, paper.INTERVALS, paper.JOBS
    ):
        exact = study.network(jobs, variation, length)
        before = replicas.of(exact, policy, paper.UTILISATION)
        line = [
            *cells(policy=policy),
            *point(exact),
            *means("U", "U at E = 0 %", 1, before, paper.PERCENT),
        ]
        for error in paper.ERROR_STEPS:
            now = replicas.of(
                study.network(jobs, variation, length, error=error), policy, paper.UTILISATION
            )
            line += means(
                f"E{error:g}", f"E = {error:g}", 2, scaled(difference(now, before), paper.PERCENT)
            )
        changes.append(line)
    orders = []
    for variation, jobs, error in product(
        paper.VARIATIONS, paper.BEYOND_JOBS, (0.0, *paper.ERROR_STEPS)
    ):
        network = study.network(jobs, variation, error=error)
        line = [*numbers(variation, N=jobs), *cells(E=f"{error:g}"), *_gains(replicas, network)]
        orders.append(line + _order(replicas, network, study.network(jobs, variation)))
    note = "E columns: U with errors less U without, in points of percent, by pairs"
    title = f"Errors of estimates: what is left of the order, {_AT_MIDDLE}"
    return [
        table_of_lines(
            "closed-network-errors", "Errors of estimates: what they change in U", changes, [note]
        ),
        table_of_lines("closed-network-errors-order", title, orders, [_ORDER_NOTE]),
    ]


def ties_table(study: paper.NetworkStudy, replicas: paper.NetworkReplicas) -> Table:
    """Return PrSNUTF, if of equal tasks the shortest goes first, next to Table 2 and the policies
    nearest to it."""
    lines = []
    ends = enumerate((paper.JOBS[0], paper.JOBS[-1]))
    for variation, (place, length), (end, jobs) in product(
        paper.VARIATIONS, enumerate(paper.INTERVALS), ends
    ):
        network = study.network(jobs, variation, length)
        first, shortest = (
            replicas.of(network, policy, paper.UTILISATION)
            for policy in (paper.PRSNUTF, paper.PRSNUTF_STF)
        )
        printed, found = paper.TABLE_2[variation][paper.PRSNUTF][place][end], mean(shortest)
        is_near = (
            None
            if found is None
            else "yes"
            if abs(found - printed) <= paper.TOLERANCES[variation]
            else "no"
        )
        apart = replicas.more(network, paper.PRSNUTF_STF, paper.PRLSTF, paper.UTILISATION)
        longest = replicas.ratio(network, paper.PRSNUTF_STF, paper.LONGEST, paper.PRSTF)
        lines.append(
            [
                *numbers(variation, length, jobs),
                *cell("printed", "printed U %", paper.PERCENT * printed, 1),
                *means("first", "PrSNUTF U %", 1, first, paper.PERCENT),
                *means("shortest", "with ties U %", 1, shortest, paper.PERCENT),
                *cell("near", "within the tolerance", is_near),
                *means("lstf", "over PrLSTF, points", 2, apart, paper.PERCENT),
                *means("longest", "RT_max ratio to PrSTF", 2, longest),
            ]
        )
    notes = [
        (
            "ties: of two tasks of jobs with as few uncompleted tasks, the one with the least "
            "demand "
            "goes first (snutf-stf)"
        )
    ]
    return table_of_lines(
        "closed-network-ties", "PrSNUTF, if of equals the shortest goes first", lines, notes
    )


def combinations_table(study: paper.NetworkStudy, replicas: paper.NetworkReplicas) -> Table:
    """Return the shortest queue with each discipline, against SQFCFS."""
    ratios = (
        ("longest", "RT_max ratio", 2, paper.LONGEST),
        ("response", "response ratio", 3, paper.RESPONSE),
        ("slowdown", "slowdown ratio", 3, paper.SLOWDOWN),
        ("spread", "spread ratio", 3, paper.SPREAD),
    )
    lines = []
    for variation, jobs, policy in product(paper.VARIATIONS, paper.JOBS, paper.COMBINED):
        network, is_base = study.network(jobs, variation), policy == paper.SQFCFS
        line = [*numbers(variation, N=jobs), *cells(policy=policy)]
        line += means("U", "U %", 1, replicas.of(network, policy, paper.UTILISATION), paper.PERCENT)
        line += means("gain", "D_R %", 1, replicas.gain(network, policy))
        line += means(
            "more",
            "R against SQFCFS %",
            2,
            {} if is_base else replicas.gain(network, policy, paper.SQFCFS),
        )
        for key, heading, decimals, number in ratios:
            line += means(
                key,
                heading,
                decimals,
                {} if is_base else replicas.ratio(network, policy, number, paper.SQFCFS),
            )
        lines.append(line)
    notes = ["D_R against PrFCFS; the other ratios against SQFCFS, of means, by pairs"]
    return table_of_lines(
        "closed-network-combinations",
        f"The shortest queue with each discipline, {_AT_MIDDLE}",
        lines,
        notes,
    )


def tails_table(study: paper.NetworkStudy, replicas: paper.NetworkReplicas) -> Table:
    """Return the effect of a heavier tail, by the length of the window."""
    lines = []
    for jobs, length in product(paper.BEYOND_JOBS, paper.TAIL_LENGTHS_S):
        network = study.tail(jobs, length)
        shares = [
            paper.half_share(replicas.of(network, policy, paper.THROUGHPUT))
            for policy in paper.POLICIES
        ]
        widest = max((share for share in shares if share is not None), default=None)
        needed = None if widest is None else f"{network.length * (widest / 0.05) ** 2:.2g}"
        lines.append(
            [
                *numbers(N=jobs),
                *cell("window", "window s", f"{network.length:g}"),
                *_levels(replicas, network),
                *cell(
                    "widest", "widest of R %", None if widest is None else paper.PERCENT * widest, 1
                ),
                *cell("longest", "5 % takes s", needed),
                *_order(replicas, network, study.network(jobs, paper.VARIATIONS[-1])),
            ]
        )
    notes = [
        f"{_ORDER_NOTE}; here that with C = 4",
        "widest: half the interval of R in percent of the mean, of the worst of the five; 5 % "
        "takes: the window with which it "
        f"would be 5 % with {study.replications} replications, by the variance seen (it falls as "
        "the window grows)",
    ]
    return table_of_lines("closed-network-tails", "Heavier tails: C = 8", lines, notes)


def stations_table(study: paper.NetworkStudy, replicas: paper.NetworkReplicas) -> Table:
    """Return the effect of stations with several processors."""
    lines = []
    for variation, jobs, servers in product(paper.VARIATIONS, paper.BEYOND_JOBS, paper.SERVERS):
        network = study.network(jobs, variation, servers=servers)
        line = [*numbers(variation, N=jobs), *cells(servers=servers), *_levels(replicas, network)]
        lines.append(line + _order(replicas, network, study.network(jobs, variation)))
    title = f"Stations of several processors, 16 in all, {_AT_MIDDLE}"
    return table_of_lines("closed-network-stations", title, lines, [_ORDER_NOTE])


def sizes_table(study: paper.NetworkStudy, replicas: paper.NetworkReplicas) -> Table:
    """Return the effect of more processors."""
    least, lines = paper.JOBS[0], []
    sizes = [
        (processors, jobs)
        for processors, each in {least: paper.BEYOND_JOBS, **paper.SIZED_JOBS}.items()
        for jobs in each
    ]
    for variation, (processors, jobs) in product(paper.VARIATIONS, sizes):
        is_paper = processors == least
        network = (
            study.network(jobs, variation) if is_paper else study.sized(processors, jobs, variation)
        )
        line = [*numbers(variation), *cells(P=processors), *numbers(N=jobs)]
        line += cells(replications=len(replicas.of(network, paper.PRFCFS, paper.UTILISATION)))
        line += _levels(replicas, network)
        for policy in paper.POLICIES[1:]:
            line += means(
                f"{policy}_longest",
                f"{policy} RT_max ratio",
                1,
                replicas.ratio(network, policy, paper.LONGEST),
            )
        lines.append(
            line + _order(replicas, network, study.network(least * jobs // processors, variation))
        )
    notes = [
        _ORDER_NOTE,
        "tasks: 1 to P; z = (P + 1) / (2 P) x, so that the I/O station can take what the "
        "processors give; the warm-up grows with "
        f"P, the window stays {study.length:g} s: RT_max is that of a window, and what waits "
        "longer than it is not in it",
    ]
    return table_of_lines("closed-network-sizes", f"More processors, {_AT_MIDDLE}", lines, notes)
