"""Karatza and Hilzer 2003, what the paper does not ask: does the order of its policies survive, and is FCFS the best discipline?

An *order* is that of the throughputs, the highest first: ``>`` where the paired interval of a difference leaves out 0, else
``~``.  Beside it stands what became of the ten pairs of policies that the network of the paper decides.  Nothing is claimed here.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise, product

from qbatch.papers import closed_network as paper
from qbatch.papers.closed_network import (
    BEYOND_JOBS,
    INTERVALS,
    JOBS,
    LONGEST,
    MIDDLE,
    PERCENT,
    POLICIES,
    PRFCFS,
    PRLSTF,
    PRSNUTF,
    PRSNUTF_STF,
    PRSTF,
    SQFCFS,
    THROUGHPUT,
    UTILISATION,
    VARIATIONS,
    NetworkReplicas,
    NetworkStudy,
)
from qbatch.papers.evidence import NO, OPEN, YES, above
from qbatch.papers.record import Cell, Part, Table, cell, means, table_of_lines
from qbatch.papers.replicas import difference, mean, scaled
from qbatch.workloads.network import Network


def numbers(C: float | None = None, d: float | None = None, N: int | None = None) -> list[Part]:  # noqa: N803
    """Return the numbers of the paper that a point has, as it calls them."""
    parts = ((one, heading, value) for one, heading, value in (("C", "C", C), ("d", "d = e", d), ("N", "N", N)))
    return [part for key, heading, value in parts if value is not None for part in cell(key, heading, _short(value))]


def _short(value: float) -> Cell:
    return value if isinstance(value, int) else f"{value:g}"


def point(network: Network) -> list[Part]:
    """Return the numbers of the paper that a network has."""
    return numbers(network.variation, network.tasks_interval, network.jobs)


_ORDER_NOTE = (
    "Order: > where the paired 95 % interval of the difference of throughputs leaves out 0, else ~; pairs: of those that the "
    "network of the paper with this N (in proportion) and C decides, how many are decided the same way, left open, turned round"
)


def says(replicas: NetworkReplicas, network: Network, policy: str, base: str) -> str:
    """Return whether a policy's throughput is decided to be higher than another's, lower, or neither."""
    return above(policy, replicas.more(network, policy, base, THROUGHPUT), 0.0).says


def order(replicas: NetworkReplicas, network: Network, policies: Sequence[str] = POLICIES) -> str:
    """Return the policies from the highest throughput to the lowest; empty if one has no run."""
    each = {one: mean(replicas.of(network, one, THROUGHPUT)) for one in policies}
    known = {one: value for one, value in each.items() if value is not None}
    if len(known) < len(policies):
        return ""
    ranked = sorted(policies, key=lambda one: -known[one])
    text = ranked[0]
    for one, following in pairwise(ranked):
        text += f" {'>' if says(replicas, network, one, following) == YES else '~'} {following}"
    return text


def pairs_kept(replicas: NetworkReplicas, network: Network, base: Network) -> dict[str, Cell]:
    """Return of the pairs of policies that the base decides how many a network keeps, leaves open and turns round."""
    counts = {YES: 0, OPEN: 0, NO: 0}
    for one, other in combinations(POLICIES, 2):
        before = says(replicas, base, one, other)
        if before != OPEN:
            now = says(replicas, network, one, other)
            counts[OPEN if now == OPEN else YES if now == before else NO] += 1
    return {"kept": counts[YES], "open": counts[OPEN], "turned": counts[NO]}


def _beside(replicas: NetworkReplicas, network: Network) -> list[Part]:
    """Return the utilisation of PrFCFS, and D_R of the others."""
    found = means("U", "U of PrFCFS %", 1, replicas.of(network, PRFCFS, UTILISATION), PERCENT)
    return found + _gains(replicas, network)


def _gains(replicas: NetworkReplicas, network: Network) -> list[Part]:
    return [part for policy in POLICIES[1:] for part in means(policy, f"{policy} D_R %", 1, replicas.gain(network, policy))]


def _order(replicas: NetworkReplicas, network: Network, base: Network) -> list[Part]:
    kept = pairs_kept(replicas, network, base)
    found = cell("order", "order of the throughputs", order(replicas, network))
    headings = {"kept": "pairs kept", "open": "open", "turned": "turned round"}
    return found + [part for key, heading in headings.items() for part in cell(key, heading, kept[key])]


def error_tables(study: NetworkStudy, replicas: NetworkReplicas) -> list[Table]:
    """Return what errors of estimates change, of each policy that asks for one, and what is left of the order."""
    changes = []
    estimating = [policy for policy in POLICIES if policy in paper.ESTIMATING]
    for policy, variation, length, jobs in product(estimating, VARIATIONS, INTERVALS, JOBS):
        exact = study.network(jobs, variation, length)
        before = replicas.of(exact, policy, UTILISATION)
        line = [*cell("policy", "policy", policy), *point(exact), *means("U", "U at E = 0 %", 1, before, PERCENT)]
        for error in paper.ERROR_STEPS:
            now = replicas.of(study.network(jobs, variation, length, error=error), policy, UTILISATION)
            line += means(f"E{error:g}", f"E = {error:g}", 2, scaled(difference(now, before), PERCENT))
        changes.append(line)
    orders = []
    for variation, jobs, error in product(VARIATIONS, BEYOND_JOBS, (0.0, *paper.ERROR_STEPS)):
        network = study.network(jobs, variation, error=error)
        line = [*numbers(variation, N=jobs), *cell("E", "E", f"{error:g}"), *_gains(replicas, network)]
        orders.append(line + _order(replicas, network, study.network(jobs, variation)))
    note = "E columns: U with errors less U without, in points of percent, by pairs"
    title = f"Errors of estimates: what is left of the order, d = e = {MIDDLE:g}"
    return [
        table_of_lines("closed-network-errors", "Errors of estimates: what they change in U", changes, [note]),
        table_of_lines("closed-network-errors-order", title, orders, [_ORDER_NOTE]),
    ]


def ties_table(study: NetworkStudy, replicas: NetworkReplicas) -> Table:
    """Return what PrSNUTF is if of equal tasks the shortest goes first, beside Table 2 and the policies next to it."""
    lines = []
    for variation, (place, length), jobs in product(VARIATIONS, enumerate(INTERVALS), (JOBS[0], JOBS[-1])):
        network = study.network(jobs, variation, length)
        first, shortest = (replicas.of(network, policy, UTILISATION) for policy in (PRSNUTF, PRSNUTF_STF))
        printed = paper.TABLE_2[variation][PRSNUTF][place][jobs != JOBS[0]]
        found = mean(shortest)
        is_near = None if found is None else "yes" if abs(found - printed) <= paper.TOLERANCES[variation] else "no"
        apart = replicas.more(network, PRSNUTF_STF, PRLSTF, UTILISATION)
        lines.append([
            *numbers(variation, length, jobs), *cell("printed", "printed U %", PERCENT * printed, 1),
            *means("first", "PrSNUTF U %", 1, first, PERCENT), *means("shortest", "with ties U %", 1, shortest, PERCENT),
            *cell("near", "within the tolerance", is_near), *means("lstf", "over PrLSTF, points", 2, apart, PERCENT),
            *means("longest", "RT_max ratio to PrSTF", 2, replicas.ratio(network, PRSNUTF_STF, LONGEST, PRSTF)),
        ])  # fmt: skip
    notes = ["ties: of two tasks whose jobs have as few uncompleted tasks the one with the least demand goes first (snutf-stf)"]
    return table_of_lines("closed-network-ties", "PrSNUTF, if of equals the shortest goes first", lines, notes)


def combinations_table(study: NetworkStudy, replicas: NetworkReplicas) -> Table:
    """Return what the shortest queue gives with each discipline, against SQFCFS."""
    ratios = (
        ("longest", "RT_max ratio", 2, LONGEST), ("response", "response ratio", 3, paper.RESPONSE),
        ("slowdown", "slowdown ratio", 3, paper.SLOWDOWN), ("spread", "spread ratio", 3, paper.SPREAD),
    )  # fmt: skip
    lines = []
    for variation, jobs, policy in product(VARIATIONS, JOBS, paper.COMBINED):
        network = study.network(jobs, variation)
        line = [*numbers(variation, N=jobs), *cell("policy", "policy", policy)]
        line += means("U", "U %", 1, replicas.of(network, policy, UTILISATION), PERCENT)
        line += means("gain", "D_R %", 1, replicas.gain(network, policy))
        is_base = policy == SQFCFS
        line += means("more", "R against SQFCFS %", 2, {} if is_base else replicas.gain(network, policy, SQFCFS))
        for key, heading, decimals, number in ratios:
            line += means(key, heading, decimals, {} if is_base else replicas.ratio(network, policy, number, SQFCFS))
        lines.append(line)
    notes = ["D_R against PrFCFS; the other ratios against SQFCFS, of means, by pairs"]
    title = f"The shortest queue with each discipline, d = e = {MIDDLE:g}"
    return table_of_lines("closed-network-combinations", title, lines, notes)


def tails_table(study: NetworkStudy, replicas: NetworkReplicas) -> Table:
    """Return what a heavier tail does, by the length of the window."""
    lines = []
    for jobs, length in product(BEYOND_JOBS, paper.TAIL_LENGTHS_S):
        network = study.tail(jobs, length)
        shares = [paper.half_share(replicas.of(network, policy, THROUGHPUT)) for policy in POLICIES]
        widest = max((share for share in shares if share is not None), default=None)
        needed = None if widest is None else f"{network.length * (widest / 0.05) ** 2:.2g}"
        lines.append([
            *numbers(N=jobs), *cell("window", "window s", f"{network.length:g}"), *_beside(replicas, network),
            *cell("widest", "widest of R %", None if widest is None else PERCENT * widest, 1),
            *cell("longest", "5 % takes s", needed), *_order(replicas, network, study.network(jobs, VARIATIONS[-1])),
        ])  # fmt: skip
    notes = [
        _ORDER_NOTE + "; here that with C = 4",
        f"widest: half the interval of R in percent of the mean, of the worst of the five; 5 % takes: the window with which it "
        f"would be 5 % with {study.replications} replications, by the variance seen (it falls as the window grows)",
    ]
    return table_of_lines("closed-network-tails", "Heavier tails: C = 8", lines, notes)


def stations_table(study: NetworkStudy, replicas: NetworkReplicas) -> Table:
    """Return what stations of several processors do."""
    lines = []
    for variation, jobs, servers in product(VARIATIONS, BEYOND_JOBS, paper.SERVERS):
        network = study.network(jobs, variation, servers=servers)
        line = [*numbers(variation, N=jobs), *cell("servers", "servers", servers), *_beside(replicas, network)]
        lines.append(line + _order(replicas, network, study.network(jobs, variation)))
    title = f"Stations of several processors, 16 in all, d = e = {MIDDLE:g}"
    return table_of_lines("closed-network-stations", title, lines, [_ORDER_NOTE])


def sizes_table(study: NetworkStudy, replicas: NetworkReplicas) -> Table:
    """Return what more processors do."""
    lines = []
    sizes = {JOBS[0]: BEYOND_JOBS, **paper.SIZED_JOBS}
    for variation, processors in product(VARIATIONS, sizes):
        for jobs in sizes[processors]:
            is_paper = processors == JOBS[0]
            network = study.network(jobs, variation) if is_paper else study.sized(processors, jobs, variation)
            line = [*numbers(variation), *cell("P", "P", processors), *numbers(N=jobs)]
            line += cell("replications", "replications", len(replicas.of(network, PRFCFS, UTILISATION)))
            line += _beside(replicas, network)
            for policy in POLICIES[1:]:
                ratios = replicas.ratio(network, policy, LONGEST)
                line += means(f"{policy}_longest", f"{policy} RT_max ratio", 1, ratios)
            lines.append(line + _order(replicas, network, study.network(JOBS[0] * jobs // processors, variation)))
    notes = [
        _ORDER_NOTE,
        "tasks: 1 to P; z = (P + 1) / (2 P) x, so that the I/O station can take what the processors give; the warm-up grows with "
        f"P, the window stays {study.length:g} s: RT_max is that of a window, and what waits longer than it is not in it",
    ]
    return table_of_lines("closed-network-sizes", f"More processors, d = e = {MIDDLE:g}", lines, notes)
