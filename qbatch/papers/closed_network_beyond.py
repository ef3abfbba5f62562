"""Karatza and Hilzer 2003, what the paper does not ask: does the order of its policies survive, and is FCFS the best discipline?

An *order* is that of the throughputs, the highest first: ``>`` where the paired interval of a difference leaves out 0, else
``~``.  Beside it stands what became of the ten pairs of policies that the network of the paper decides.  Nothing is claimed here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, pairwise, product

from qbatch.metrics import interval
from qbatch.papers import closed_network as paper
from qbatch.papers.closed_network import (
    BEYOND_JOBS,
    COMBINED,
    ERROR_STEPS,
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
    RESPONSE,
    SERVERS,
    SIZED_JOBS,
    SLOWDOWN,
    SPREAD,
    SQFCFS,
    THROUGHPUT,
    UTILISATION,
    VARIATIONS,
    NetworkReplicas,
    NetworkStudy,
    half_share,
)
from qbatch.papers.evidence import NO, OPEN, YES, above
from qbatch.papers.record import Cell, Column, Row, Table, pair, spread
from qbatch.papers.replicas import Values, difference, mean, scaled
from qbatch.workloads.network import Network

POINT = [Column("C", "C"), Column("d", "d = e"), Column("N", "N")]


def point(network: Network) -> dict[str, Cell]:
    """Return the numbers of the paper that a network has."""
    return {"C": f"{network.variation:g}", "d": f"{network.tasks_interval:g}", "N": network.jobs}


_ORDER = [
    Column("order", "order of the throughputs"), Column("kept", "pairs kept"), Column("open", "open"),
    Column("turned", "turned round"),
]  # fmt: skip
_ORDER_NOTE = (
    "Order: > where the paired 95 % interval of the difference of throughputs leaves out 0, else ~; pairs: of those that the "
    "network of the paper with this N (in proportion) and C decides, how many are decided the same way, left open, turned round"
)


def says(replicas: NetworkReplicas, network: Network, policy: str, base: str) -> str:
    """Return whether a policy's throughput is decided to be higher than another's, lower, or neither."""
    return above(policy, list(replicas.more(network, policy, base, THROUGHPUT).values()), 0.0).says


def order(replicas: NetworkReplicas, network: Network, policies: Sequence[str] = POLICIES) -> str:
    """Return the policies from the highest throughput to the lowest; empty if one has no run."""
    means = {one: interval(list(replicas.of(network, one, THROUGHPUT).values())).mean for one in policies}
    known = {one: value for one, value in means.items() if value is not None}
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


def _order_cells(replicas: NetworkReplicas, network: Network, base: Network) -> dict[str, Cell]:
    return {"order": order(replicas, network), **pairs_kept(replicas, network, base)}


def _gains(replicas: NetworkReplicas, network: Network) -> dict[str, Cell]:
    row: dict[str, Cell] = {}
    for policy in POLICIES[1:]:
        row |= spread(policy, replicas.gain(network, policy))
    return row


_GAIN_COLUMNS = [column for policy in POLICIES[1:] for column in pair(policy, f"{policy} D_R %", 1)]
_U_COLUMNS = pair("U", "U of PrFCFS %", 1)


def _utilisation(replicas: NetworkReplicas, network: Network) -> dict[str, Cell]:
    return spread("U", replicas.of(network, PRFCFS, UTILISATION), PERCENT)


def error_tables(study: NetworkStudy, replicas: NetworkReplicas) -> list[Table]:
    """Return what errors of estimates change, of each policy that asks for one, and what is left of the order."""
    estimating = [policy for policy in POLICIES if policy in paper.ESTIMATING]
    rows: list[Row] = []
    for policy, variation, length, jobs in product(estimating, VARIATIONS, INTERVALS, JOBS):
        exact = study.network(jobs, variation, length)
        row: dict[str, Cell] = {"policy": policy, **point(exact)}
        row |= spread("U", replicas.of(exact, policy, UTILISATION), PERCENT)
        for error in ERROR_STEPS:
            row |= spread(f"E{error:g}", _error_change(study, replicas, policy, exact, error))
        rows.append(row)
    columns = [Column("policy", "policy"), *POINT, *pair("U", "U at E = 0 %", 1)]
    columns += [column for error in ERROR_STEPS for column in pair(f"E{error:g}", f"E = {error:g}", 2)]
    notes = ["E columns: U with errors less U without, in points of percent, by pairs"]
    changes = Table("closed-network-errors", "Errors of estimates: what they change in U", columns, rows, notes)
    return [changes, _error_orders(study, replicas)]


def _error_change(study: NetworkStudy, replicas: NetworkReplicas, policy: str, exact: Network, error: float) -> Values:
    """Return by how many points utilisation with errors lies above that without."""
    wrong = study.network(exact.jobs, exact.variation, exact.tasks_interval, error=error)
    now, before = (replicas.of(network, policy, UTILISATION) for network in (wrong, exact))
    return scaled(difference(now, before), PERCENT)


def _error_orders(study: NetworkStudy, replicas: NetworkReplicas) -> Table:
    rows: list[Row] = []
    for variation, jobs, error in product(VARIATIONS, BEYOND_JOBS, (0.0, *ERROR_STEPS)):
        base = study.network(jobs, variation)
        network = study.network(jobs, variation, error=error)
        row = {"C": f"{variation:g}", "N": jobs, "E": f"{error:g}", **_gains(replicas, network)}
        row |= _order_cells(replicas, network, base)
        rows.append(row)
    columns = [Column("C", "C"), Column("N", "N"), Column("E", "E"), *_GAIN_COLUMNS, *_ORDER]
    title = f"Errors of estimates: what is left of the order, d = e = {MIDDLE:g}"
    return Table("closed-network-errors-order", title, columns, rows, [_ORDER_NOTE])


def ties_table(study: NetworkStudy, replicas: NetworkReplicas) -> Table:
    """Return what PrSNUTF is if of equal tasks the shortest goes first, beside Table 2 and the policies next to it."""
    rows: list[Row] = []
    for variation, (place, interval_s), jobs in product(VARIATIONS, enumerate(INTERVALS), (JOBS[0], JOBS[-1])):
        network = study.network(jobs, variation, interval_s)
        printed = paper.TABLE_2[variation][PRSNUTF][place][jobs != JOBS[0]]
        found = mean(replicas.of(network, PRSNUTF_STF, UTILISATION))
        is_near = None if found is None else "yes" if abs(found - printed) <= paper.TOLERANCES[variation] else "no"
        rows.append({
            "C": f"{variation:g}", "d": f"{interval_s:g}", "N": jobs, "printed": PERCENT * printed,
            **spread("first", replicas.of(network, PRSNUTF, UTILISATION), PERCENT),
            **spread("shortest", replicas.of(network, PRSNUTF_STF, UTILISATION), PERCENT), "near": is_near,
            **spread("lstf", replicas.more(network, PRSNUTF_STF, PRLSTF, UTILISATION), PERCENT),
            **spread("longest", replicas.ratio(network, PRSNUTF_STF, LONGEST, PRSTF)),
        })  # fmt: skip
    columns = [Column("C", "C"), Column("d", "d = e"), Column("N", "N"), Column("printed", "printed U %", 1)]
    columns += [*pair("first", "PrSNUTF U %", 1), *pair("shortest", "with ties U %", 1), Column("near", "within the tolerance")]
    columns += [*pair("lstf", "over PrLSTF, points", 2), *pair("longest", "RT_max ratio to PrSTF", 2)]
    notes = ["ties: of two tasks whose jobs have as few uncompleted tasks the one with the least demand goes first (snutf-stf)"]
    return Table("closed-network-ties", "PrSNUTF, if of equals the shortest goes first", columns, rows, notes)


def combinations_table(study: NetworkStudy, replicas: NetworkReplicas) -> Table:
    """Return what the shortest queue gives with each discipline, against SQFCFS."""
    rows: list[Row] = []
    for variation, jobs, policy in product(VARIATIONS, JOBS, COMBINED):
        network = study.network(jobs, variation)
        row: dict[str, Cell] = {"C": f"{variation:g}", "N": jobs, "policy": policy}
        row |= spread("U", replicas.of(network, policy, UTILISATION), PERCENT)
        row |= spread("gain", replicas.gain(network, policy))
        if policy != SQFCFS:
            row |= spread("more", replicas.gain(network, policy, SQFCFS))
        for key, number in (("longest", LONGEST), ("response", RESPONSE), ("slowdown", SLOWDOWN), ("spread", SPREAD)):
            row |= spread(key, replicas.ratio(network, policy, number, SQFCFS)) if policy != SQFCFS else {}
        rows.append(row)
    columns = [Column("C", "C"), Column("N", "N"), Column("policy", "policy"), *pair("U", "U %", 1)]
    columns += [*pair("gain", "D_R %", 1), *pair("more", "R against SQFCFS %", 2), *pair("longest", "RT_max ratio", 2)]
    columns += [*pair("response", "response ratio", 3), *pair("slowdown", "slowdown ratio", 3)]
    columns += pair("spread", "spread ratio", 3)
    notes = ["D_R against PrFCFS; the other ratios against SQFCFS, of means, by pairs"]
    title = f"The shortest queue with each discipline, d = e = {MIDDLE:g}"
    return Table("closed-network-combinations", title, columns, rows, notes)


def tails_table(study: NetworkStudy, replicas: NetworkReplicas) -> Table:
    """Return what a heavier tail does, by the length of the window."""
    rows: list[Row] = []
    for jobs, length in product(BEYOND_JOBS, paper.TAIL_LENGTHS_S):
        network = study.tail(jobs, length)
        shares = {policy: half_share(replicas.of(network, policy, THROUGHPUT)) for policy in POLICIES}
        known = [share for share in shares.values() if share is not None]
        widest = max(known, default=None)
        row: dict[str, Cell] = {
            "N": jobs, "window": f"{network.length:g}", **_utilisation(replicas, network), **_gains(replicas, network),
            "widest": None if widest is None else PERCENT * widest,
            "longest": None if widest is None else f"{network.length * (widest / 0.05) ** 2:.2g}",
            **_order_cells(replicas, network, study.network(jobs, VARIATIONS[-1])),
        }  # fmt: skip
        rows.append(row)
    columns = [
        Column("N", "N"), Column("window", "window s"), *_U_COLUMNS, *_GAIN_COLUMNS, Column("widest", "widest of R %", 1),
        Column("longest", "5 % takes s"), *_ORDER,
    ]  # fmt: skip
    notes = [
        _ORDER_NOTE + "; here that with C = 4",
        f"widest: half the interval of R in percent of the mean, of the worst of the five; 5 % takes: the window with which it "
        f"would be 5 % with {study.replications} replications, by the variance seen (it falls as the window grows)",
    ]
    return Table("closed-network-tails", "Heavier tails: C = 8", columns, rows, notes)


def stations_table(study: NetworkStudy, replicas: NetworkReplicas) -> Table:
    """Return what stations of several processors do."""
    rows: list[Row] = []
    for variation, jobs, servers in product(VARIATIONS, BEYOND_JOBS, SERVERS):
        network = study.network(jobs, variation, servers=servers)
        base = study.network(jobs, variation)
        rows.append(
            {
                "C": f"{variation:g}", "N": jobs, "servers": servers, **_utilisation(replicas, network),
                **_gains(replicas, network), **_order_cells(replicas, network, base),
            }
        )  # fmt: skip
    columns = [Column("C", "C"), Column("N", "N"), Column("servers", "servers"), *_U_COLUMNS, *_GAIN_COLUMNS, *_ORDER]
    title = f"Stations of several processors, 16 in all, d = e = {MIDDLE:g}"
    return Table("closed-network-stations", title, columns, rows, [_ORDER_NOTE])


def sizes_table(study: NetworkStudy, replicas: NetworkReplicas) -> Table:
    """Return what more processors do."""
    rows: list[Row] = []
    for variation, (network_of, processors, several) in product(VARIATIONS, _networks(study)):
        for jobs in several:
            network = network_of(jobs, variation)
            base = study.network(JOBS[0] * jobs // processors, variation)
            row: dict[str, Cell] = {
                "C": f"{variation:g}", "P": processors, "N": jobs,
                "replications": len(replicas.of(network, PRFCFS, UTILISATION)), **_utilisation(replicas, network),
                **_gains(replicas, network), **_order_cells(replicas, network, base),
            }  # fmt: skip
            for policy in POLICIES[1:]:
                row |= spread(f"{policy}_longest", replicas.ratio(network, policy, LONGEST))
            rows.append(row)
    columns = [Column("C", "C"), Column("P", "P"), Column("N", "N"), Column("replications", "replications")]
    columns += [*_U_COLUMNS, *_GAIN_COLUMNS]
    columns += [column for policy in POLICIES[1:] for column in pair(f"{policy}_longest", f"{policy} RT_max ratio", 1)]
    notes = [
        _ORDER_NOTE,
        "tasks: 1 to P; z = (P + 1) / (2 P) x, so that the I/O station can take what the processors give; the warm-up grows with "
        f"P, the window stays {study.length:g} s: RT_max is that of a window, and what waits longer than it is not in it",
    ]
    title = f"More processors, d = e = {MIDDLE:g}"
    return Table("closed-network-sizes", title, [*columns, *_ORDER], rows, notes)


def _networks(study: NetworkStudy) -> list[tuple[Callable[[int, float], Network], int, tuple[int, ...]]]:
    """Return the sizes, that of the paper first: what makes a network, its processors, and its N."""

    def of_size(processors: int) -> Callable[[int, float], Network]:
        return lambda jobs, variation: study.sized(processors, jobs, variation)

    return [(study.network, JOBS[0], BEYOND_JOBS), *((of_size(one), one, jobs) for one, jobs in SIZED_JOBS.items())]
