"""Table 2 and Figures 3 to 14 of Karatza and Hilzer 2003 as tables, and what they do not show: means over the replications."""

from __future__ import annotations

from itertools import product

from qbatch.metrics import interval
from qbatch.papers import closed_network_printed as printed
from qbatch.papers.closed_network_printed import INTERVALS, JOBS, POLICIES, PRFCFS, PRSNUTF, VARIATIONS
from qbatch.papers.closed_network_replicas import (
    LONGEST,
    PERCENT,
    RESPONSE,
    SLOWDOWN,
    SPREAD,
    THROUGHPUT,
    UTILISATION,
    NetworkReplicas,
    Number,
    half_share,
    replications_needed,
)
from qbatch.papers.closed_network_runs import PRSNUTF_STF, RULES
from qbatch.papers.closed_network_study import MANY_AT, MIDDLE, NetworkStudy
from qbatch.papers.evidence import written
from qbatch.papers.record import Cell, Column, Row, Table, Tolerance, pair, spread
from qbatch.workloads.network import Network

_POINT = [Column("C", "C"), Column("d", "d = e"), Column("N", "N")]
_PAIRED = "+-: half a 95 % interval; of ratios of means, by pairs (common draws)"


def point(network: Network) -> dict[str, Cell]:
    """Return the numbers of the paper that a network has."""
    return {"C": f"{network.variation:g}", "d": f"{network.tasks_interval:g}", "N": network.jobs}


def all_tables(study: NetworkStudy, replicas: NetworkReplicas) -> list[Table]:
    """Return every table of the paper's own runs."""
    tables = [policies_table(), table_2(study, replicas), gains_table(study, replicas), longest_table(study, replicas)]
    for name, title, number, factor, decimals in (
        ("utilisation", "Utilisation U in percent", UTILISATION, PERCENT, 1),
        ("throughput", "Throughput R: jobs a second", THROUGHPUT, 1.0, 3),
        ("response", "Mean response of a parent, the processors' part (s)", RESPONSE, 1.0, 2),
        ("slowdown", "Mean slowdown of a parent: response over the longest demand among its tasks", SLOWDOWN, 1.0, 2),
        ("spread", "Mean spread of a parent: the end of its last task less that of its first (s)", SPREAD, 1.0, 2),
    ):
        tables.append(levels_table(study, replicas, f"closed-network-{name}", title, number, factor, decimals))
    return [*tables, precision_table(study, replicas)]


def policies_table() -> Table:
    """Return what each policy is."""
    rows: list[Row] = [
        {
            "policy": name,
            "routing": rules.routing,
            "discipline": rules.discipline,
            "paper": "yes" if name in POLICIES else "no",
        }
        for name, rules in RULES.items()
    ]
    columns = [
        Column("policy", "policy"), Column("routing", "routing"), Column("discipline", "discipline"),
        Column("paper", "in the paper"),
    ]  # fmt: skip
    return Table("closed-network-policies", "The policies", columns, rows)


def table_2(study: NetworkStudy, replicas: NetworkReplicas) -> Table:
    """Return Table 2: utilisation at the lowest and the highest N; of PrSNUTF with either tie, where both were run."""
    policies = [(policy, policy) for policy in POLICIES]
    if any(replicas.of(network, PRSNUTF_STF, UTILISATION) for network in study.of_paper()):
        policies.insert(POLICIES.index(PRSNUTF) + 1, (PRSNUTF_STF, PRSNUTF))
    rows: list[Row] = []
    for variation, (policy, as_printed), (place, length) in product(VARIATIONS, policies, enumerate(INTERVALS)):
        for end, jobs in enumerate((JOBS[0], JOBS[-1])):
            told = printed.UTILISATION[variation][as_printed][place][end]
            calibrated = printed.CALIBRATED_UTILISATION[variation][policy][end] if policy == as_printed else None
            row: dict[str, Cell] = {
                **point(network := study.network(jobs, variation, length)),
                "policy": policy,
                "printed": told,
                **spread("ours", replicas.of(network, policy, UTILISATION)),
                "calibrated": calibrated if length == MIDDLE else None,
                **spread("short", replicas.of(study.short(jobs, variation, length), policy, UTILISATION)),
            }
            ours = row["ours"]
            tolerance = Tolerance(0.0, printed.TOLERANCES[variation])
            row["verdict"] = tolerance.verdict(told, ours if isinstance(ours, float) else None)
            rows.append(row)
    columns = [
        *_POINT, Column("policy", "policy"), Column("printed", "U printed", 2), *pair("ours", "ours", 3),
        Column("calibrated", "calibration", 3), Column("verdict", "verdict"), *pair("short", "short runs", 3),
    ]  # fmt: skip
    notes = [
        "within: the mean lies within .03 (C = 2) or .05 (C = 4) of the printed number",
        f"short runs: measured from the empty start on, for {study.length / 2:g} s",
        "calibration: spec/papers.md R003, a window of 120,000 s",
        f"the paper does not say which of two tasks goes first whose jobs have as few uncompleted tasks: with {PRSNUTF} the one "
        f"that came first, with {PRSNUTF_STF} (shown where it was run) the one with the least demand; {PRSNUTF_STF} was picked "
        "after the fact, among other ties, as it comes nearest to the print",
    ]
    return Table("closed-network-table2", "Table 2: utilisation at the lowest and the highest N", columns, rows, notes)


def gains_table(study: NetworkStudy, replicas: NetworkReplicas) -> Table:
    """Return Figures 3 to 8: D_R, by how much each policy's throughput lies above that of PrFCFS."""
    rows: list[Row] = []
    for network in study.of_paper():
        row = {"figure": figure_of(network, 3), **point(network)}
        for policy in POLICIES[1:]:
            row |= spread(policy, replicas.gain(network, policy))
            known = printed.CALIBRATED_GAIN[network.variation][policy][JOBS.index(network.jobs)]
            row[f"{policy}_calibrated"] = known if network.tasks_interval == MIDDLE else None
        rows.append(row)
    columns = [Column("figure", "figure"), *_POINT]
    for policy in POLICIES[1:]:
        columns += [*pair(policy, policy, 1), Column(f"{policy}_calibrated", "calibration", 1)]
    title = "Figures 3 to 8: D_R in percent, throughput against PrFCFS"
    return Table("closed-network-figure3", title, columns, rows, [_PAIRED, "the figures carry no numbers"])


def figure_of(network: Network, first: int) -> int:
    """Return which figure a network is in, of the six that begin with this one."""
    return first + 3 * VARIATIONS.index(network.variation) + INTERVALS.index(network.tasks_interval)


def longest_table(study: NetworkStudy, replicas: NetworkReplicas) -> Table:
    """Return Figures 9 to 14: RT_max, and its ratio to that of PrFCFS."""
    rows: list[Row] = []
    for network in study.of_paper():
        row = {"figure": figure_of(network, 9), **point(network)}
        row |= spread(PRFCFS, replicas.of(network, PRFCFS, LONGEST))
        for policy in POLICIES[1:]:
            row |= spread(policy, replicas.ratio(network, policy, LONGEST))
        rows.append(row)
    columns = [Column("figure", "figure"), *_POINT, *pair(PRFCFS, "PrFCFS s", 1)]
    columns += [column for policy in POLICIES[1:] for column in pair(policy, policy, 2)]
    known = "; ".join(
        f"C = {variation:g}: " + ", ".join(f"{policy} {said}" for policy, said in by_policy.items())
        for variation, by_policy in printed.CALIBRATED_RATIO.items()
    )
    notes = [_PAIRED, f"the figures carry no numbers; our calibration, from N = 16 to 48: {known}"]
    title = "Figures 9 to 14: RT_max of PrFCFS, and its ratios to that"
    return Table("closed-network-figure9", title, columns, rows, notes)


def levels_table(
    study: NetworkStudy, replicas: NetworkReplicas, name: str, title: str, number: Number, factor: float, decimals: int
) -> Table:
    """Return a number of each policy on each network of the paper."""
    rows: list[Row] = []
    for network in study.of_paper():
        row = point(network)
        for policy in POLICIES:
            row |= spread(policy, replicas.of(network, policy, number), factor)
        rows.append(row)
    columns = [*_POINT, *(column for policy in POLICIES for column in pair(policy, policy, decimals))]
    return Table(name, title, columns, rows)


def precision_table(study: NetworkStudy, replicas: NetworkReplicas) -> Table:
    """Return half the intervals of RT_max in percent of the mean, how many replications 5 % would take, and those of U and R."""
    rows: list[Row] = []
    for network in study.of_paper():
        row = point(network)
        for key, number in (("U", UTILISATION), ("R", THROUGHPUT)):
            found = [half_share(replicas.of(network, one, number)) for one in POLICIES]
            known = [PERCENT * share for share in found if share is not None]
            row[key] = max(known, default=None)
        for policy in POLICIES:
            values = replicas.of(network, policy, LONGEST)
            share = half_share(values)
            row[policy] = None if share is None else PERCENT * share
            row[f"{policy}_needed"] = replications_needed(values)
        rows.append(row)
    columns = [*_POINT, Column("U", "U %", 2), Column("R", "R %", 2)]
    for policy in POLICIES:
        columns += [Column(policy, f"{policy} %", 1), Column(f"{policy}_needed", "needed")]
    notes = [
        "U, R: the widest of the five policies; each policy: RT_max, and with how many replications half its interval would be "
        "below 5 % of the mean, by the variance seen"
    ]
    return Table("closed-network-precision", "Half the 95 % intervals in percent of the mean", columns, rows, notes)


def maxima_table(study: NetworkStudy, replicas: NetworkReplicas, whole: NetworkReplicas) -> Table:
    """Return RT_max of the networks that are run so often that its interval should be below 5 %; ``whole``: all that was run."""
    rows: list[Row] = []
    for jobs, variation in MANY_AT:
        network = study.network(jobs, variation)
        for policy in POLICIES:
            values, few = (of.of(network, policy, LONGEST) for of in (whole, replicas))
            share = half_share(values)
            row: dict[str, Cell] = {
                **point(network), "policy": policy, "replications": len(values), **spread("longest", values),
                "share": None if share is None else PERCENT * share, "needed": replications_needed(values),
                "needed_before": replications_needed(few),
                "ratio": written(interval(list(whole.ratio(network, policy, LONGEST).values()))),
            }  # fmt: skip
            rows.append(row)
    columns = [
        *_POINT, Column("policy", "policy"), Column("replications", "replications"), *pair("longest", "RT_max s", 1),
        Column("share", "half interval %", 1), Column("needed", "5 % takes"),
        Column("needed_before", f"by the first {study.replications}"), Column("ratio", "ratio to PrFCFS"),
    ]  # fmt: skip
    return Table("closed-network-maxima", "RT_max by many replications", columns, rows)


