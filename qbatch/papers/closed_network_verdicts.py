"""The claims of Karatza and Hilzer 2003: docs/spec/papers.md, R003 and its claims that were missing.

A claim is a set of comparisons over the replications (``evidence``), by pairs wherever policies or networks are compared: they
share their draws.  *Much* is read as at least twice; these bounds were set before the runs, with the calibration known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations, pairwise, product

from qbatch.papers import closed_network_printed as printed
from qbatch.papers.closed_network_figures import point
from qbatch.papers.closed_network_printed import (
    INTERVALS,
    JOBS,
    POLICIES,
    PRFCFS,
    PRLSTF,
    PRSNUTF,
    PRSTF,
    SQFCFS,
    VARIATIONS,
)
from qbatch.papers.closed_network_replicas import (
    BOUND,
    LONGEST,
    PERCENT,
    THROUGHPUT,
    UTILISATION,
    NetworkReplicas,
    Values,
    combined,
    difference,
    half_share,
    mean,
    replications_needed,
)
from qbatch.papers.closed_network_study import ERROR_STEPS, NetworkStudy
from qbatch.papers.closed_network_why import WHY
from qbatch.papers.evidence import NO, OPEN, YES, EvidenceItem, above, answers_of, below, claim_of, inside, verdict_of
from qbatch.papers.record import FAILS, UNCHECKED, Claim, claim
from qbatch.workloads.network import Network

LOW, HIGH = JOBS[0], JOBS[-1]
OTHERS = (PRSTF, PRSNUTF, PRLSTF)
MUCH = 2.0
"""At least so many times is *much*."""

CLOSE = 0.02
"""Within so much of utilisation two policies are *almost the same* (R003)."""

MARGINAL = 0.01
"""A change of utilisation below this is *marginal* (docs/spec/papers.md 5.4, check 7)."""

PAPER_ERRORS = ERROR_STEPS[:3]
MOST_THROUGHPUT = 1.882
"""Jobs a second when all processors are busy: 16 / 8.5."""

TASKS_MEAN, PROCESSORS, MEAN_IO = 8.5, 16, 0.531

Item = Callable[..., EvidenceItem]


def all_claims(study: NetworkStudy, replicas: NetworkReplicas) -> list[Claim]:
    """Return every claim of Table 2 and Figures 3 to 14."""
    makers = (arithmetic, ranges, best_and_worst, close, gains, patterns, by_variation, longest, precision, unchecked)
    return [one for make in makers for one in make(study, replicas)]


def _claim(
    name: str, text: str, findings: Sequence[EvidenceItem], note: str = "", together: Sequence[EvidenceItem] = ()
) -> Claim:
    return claim_of(name, text, findings, why=WHY.get(name, ""), note=note, together=together)


def _over_d(study: NetworkStudy, jobs: int, variation: float, read: Callable[[Network], Values]) -> list[float]:
    """Return the mean over d of what is read of a network, by replication."""
    each = [read(study.network(jobs, variation, length)) for length in INTERVALS]
    return _listed(combined(lambda *values: sum(values) / len(values), *each))


def _label(network: Network, *names: str) -> str:
    numbers = point(network)
    return f"{' - '.join(names)} C{numbers['C']} d{numbers['d']} N{numbers['N']}".strip()


def _apart(replicas: NetworkReplicas, network: Network, first: str, second: str) -> Values:
    return replicas.more(network, first, second, UTILISATION)


def _listed(values: Values) -> list[float]:
    return list(values.values())


# ------------------------------------------------------------------------------------------------ utilisation


def arithmetic(study: NetworkStudy, replicas: NetworkReplicas) -> list[Claim]:
    """What must be so whatever the policy: 5.4, checks 1 and 5."""
    kept = []
    for variation, policy in product(VARIATIONS, POLICIES):
        apart = [
            combined(
                lambda busy, rate: busy - rate * TASKS_MEAN / PROCESSORS,
                replicas.of(network, policy, UTILISATION),
                replicas.of(network, policy, THROUGHPUT),
            )
            for network in study.of_paper()
            if network.variation == variation
        ]
        pooled = combined(lambda *each: sum(each) / len(each), *apart)
        kept.append(inside(f"{policy} C{variation:g}", _listed(pooled), -0.01, 0.01))
    rates = [
        below(_label(network, SQFCFS), _listed(replicas.of(network, SQFCFS, THROUGHPUT)), MOST_THROUGHPUT)
        for network in study.of_paper()
        if network.jobs == HIGH
    ]
    share = MEAN_IO * PROCESSORS / TASKS_MEAN
    return [
        claim(
            "a.balance",
            "z = 0.531 balances processors and I/O: 1 / (16 / 8.5)",
            abs(share - 1) < 0.001,
            f"z R is {share:.4f} of U",
        ),
        _claim("a.identity", "U is 8.5/16 R: within .01 over all N and d together", kept),
        _claim("a.bound", "R is below 1.882 a second, also of SQFCFS at N = 48", rates),
    ]


def ranges(study: NetworkStudy, replicas: NetworkReplicas) -> list[Claim]:
    """Table 2, cell by cell; and that d hardly matters."""
    claims = []
    for variation, tolerance in printed.TOLERANCES.items():
        for policy in POLICIES:
            found = []
            for (place, length), (end, jobs) in product(enumerate(INTERVALS), enumerate((LOW, HIGH))):
                told = printed.UTILISATION[variation][policy][place][end]
                network = study.network(jobs, variation, length)
                values = _listed(replicas.of(network, policy, UTILISATION))
                label = f"{told:g} printed, d{length:g} N{jobs}:"
                found.append(inside(label, values, told - tolerance, told + tolerance))
            text = f"{policy}, C = {variation:g}: U within {tolerance:g} of Table 2 (3 d, N = 16 and 48)"
            claims.append(_claim(f"t2.C{variation:g}.{policy}", text, found))
    for variation, bound in ((2.0, 0.02), (4.0, 0.04)):
        found = []
        for policy, jobs, (one, other) in product(POLICIES, JOBS, combinations(INTERVALS, 2)):
            first, second = (replicas.of(study.network(jobs, variation, d), policy, UTILISATION) for d in (one, other))
            label = f"{policy} N{jobs} d{one:g} - d{other:g}"
            found.append(inside(label, _listed(difference(first, second)), -bound, bound))
        text = f"C = {variation:g}: U differs by at most {bound:g} over d = 10, 20, 30"
        claims.append(_claim(f"t2.d.C{variation:g}", text, found))
    return claims


def best_and_worst(study: NetworkStudy, replicas: NetworkReplicas) -> list[Claim]:
    """Section 4.1: the highest and the lowest utilisation, and the superiority of PrSTF."""

    def each(policy: str, others: Sequence[str], make: Item) -> list[EvidenceItem]:
        return [
            make(_label(network, policy, other), _listed(_apart(replicas, network, policy, other)), 0.0)
            for network, other in product(study.of_paper(), others)
        ]

    return [
        _claim("s41.best", "SQFCFS has the highest U everywhere", each(SQFCFS, (PRFCFS, *OTHERS), above)),
        _claim("s41.worst", "PrFCFS has the lowest U everywhere", each(PRFCFS, (SQFCFS, *OTHERS), below)),
        _claim("s41.stf", "PrSTF has a higher U than PrSNUTF and PrLSTF", each(PRSTF, (PRSNUTF, PRLSTF), above)),
    ]


def close(study: NetworkStudy, replicas: NetworkReplicas) -> list[Claim]:
    """Section 4.1: what lies near each other, and what far."""
    near = [
        inside(
            _label(network, PRSNUTF, PRLSTF), _listed(_apart(replicas, network, PRSNUTF, PRLSTF)), -CLOSE, CLOSE
        )
        for network in study.of_paper()
    ]  # fmt: skip
    near_together = [
        inside(
            f"C{variation:g} N{jobs}",
            _over_d(study, jobs, variation, lambda network: _apart(replicas, network, PRSNUTF, PRLSTF)), -CLOSE, CLOSE,
        )
        for variation, jobs in product(VARIATIONS, JOBS)
    ]  # fmt: skip
    low = [
        below(_label(study.network(LOW, *point)), _listed(_lead(study, replicas, LOW, *point)), 0.02)
        for point in product(VARIATIONS, INTERVALS)
    ]
    high = [
        above(_label(study.network(HIGH, *point)), _listed(_lead(study, replicas, HIGH, *point)), {2.0: 0.01}.get(point[0], 0.03))
        for point in product(VARIATIONS, INTERVALS)
    ]  # fmt: skip
    far = {jobs: list(_far(study, replicas, jobs)) for jobs in JOBS}
    return [
        _claim("s41.close", "U of PrSNUTF and of PrLSTF lie within .02 of each other everywhere", near, "", near_together),
        _claim("s41.stf-low", "N = 16: U of PrSTF is at most .02 above the better of PrSNUTF and PrLSTF", low),
        _claim("s41.stf-high", "N = 48: U of PrSTF is above the better of them by at least .01 (C = 2), .03 (C = 4)", high),
        _claim(
            "s41.sq-far",
            "SQFCFS leads PrSTF by more than PrSTF leads PrSNUTF and PrLSTF (U)",
            [one for found in far.values() for one, _ in found],
        ),
        _claim(
            "s41.sq-much-low", "N = 16: SQFCFS leads PrSTF by at least twice as much", [much for _, much in far[LOW]]
        ),
        _claim(
            "s41.sq-much-high", "N = 48: SQFCFS leads PrSTF by at least twice as much", [much for _, much in far[HIGH]]
        ),
    ]


def _lead(study: NetworkStudy, replicas: NetworkReplicas, jobs: int, variation: float, length: float) -> Values:
    """Return how far the utilisation of PrSTF lies above the better of PrSNUTF and PrLSTF, which is that of the higher mean."""
    network = study.network(jobs, variation, length)
    better = max((PRSNUTF, PRLSTF), key=lambda one: mean(replicas.of(network, one, UTILISATION)) or 0.0)
    return _apart(replicas, network, PRSTF, better)


def _far(study: NetworkStudy, replicas: NetworkReplicas, jobs: int) -> Iterator[tuple[EvidenceItem, EvidenceItem]]:
    """Give how far SQFCFS leads PrSTF less once, and less twice, what PrSTF leads another by."""
    for variation, length, other in product(VARIATIONS, INTERVALS, (PRSNUTF, PRLSTF)):
        network = study.network(jobs, variation, length)
        lead, rest = _apart(replicas, network, SQFCFS, PRSTF), _apart(replicas, network, PRSTF, other)
        once, twice = (
            above(
                f"{other} {_label(network)}", _listed(combined(lambda a, b, by=by: a - by * b, lead, rest)), 0.0
            )
            for by in (1.0, MUCH)
        )  # fmt: skip
        yield once, twice


# ------------------------------------------------------------------------------------------------ Figures 3 to 8


def gains(study: NetworkStudy, replicas: NetworkReplicas) -> list[Claim]:
    """Figures 3 to 8: D_R."""
    falls = []
    for variation, length in product(VARIATIONS, INTERVALS):
        for less, more in pairwise(JOBS):
            one, other = (replicas.gain(study.network(jobs, variation, length), SQFCFS) for jobs in (less, more))
            label = f"C{variation:g} d{length:g} N{less} - N{more}"
            falls.append(above(label, _listed(difference(one, other)), 0.0, " points"))
    higher = []
    for jobs, length in product(JOBS, INTERVALS):
        two, four = (replicas.gain(study.network(jobs, variation, length), SQFCFS) for variation in VARIATIONS)
        higher.append(above(f"d{length:g} N{jobs}", _listed(difference(four, two)), 0.0, " points"))
    some = _snutf_above_lstf(study, replicas)
    return [
        _claim("f3.sq-falls", "D_R of SQFCFS falls as N grows", falls),
        _claim("f3.sq-C4", "D_R of SQFCFS is higher with C = 4 than with C = 2", higher),
        *some,
    ]


def _snutf_above_lstf(study: NetworkStudy, replicas: NetworkReplicas) -> list[Claim]:
    found = [
        above(_label(network, PRSNUTF, PRLSTF), _listed(replicas.gain(network, PRSNUTF, PRLSTF)), 0.0, " %")
        for network in study.of_paper()
    ]
    at_most = [
        below(_label(network, PRLSTF, PRSNUTF), _listed(_apart(replicas, network, PRLSTF, PRSNUTF)), CLOSE)
        for network in study.of_paper()
    ]
    return [
        _exists("f3.snutf-some", "In some networks the R of PrSNUTF is higher than that of PrLSTF", found),
        _claim("f3.snutf-else", "In the others they are similar: U of PrLSTF is nowhere more than .02 above", at_most),
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


def _judged(name: str, text: str, said: str, numbers: str, answers: Mapping[str, int] | None = None) -> Claim:
    """Return a claim whose comparisons together say this."""
    verdict = verdict_of([said])
    return Claim(name, text, verdict, numbers, answers or {}, why=WHY.get(name, "") if verdict == FAILS else "")


def patterns(study: NetworkStudy, replicas: NetworkReplicas) -> list[Claim]:
    """Section 4.1: the change of D_R with N has no pattern for the three others, and is smaller than that of SQFCFS."""
    smaller: list[EvidenceItem] = []
    trend: dict[str, list[EvidenceItem]] = {policy: [] for policy in OTHERS}
    for variation, length, policy in product(VARIATIONS, INTERVALS, OTHERS):
        gain = {jobs: replicas.gain(study.network(jobs, variation, length), policy) for jobs in JOBS}
        ranked = sorted(JOBS, key=lambda jobs: mean(gain[jobs]) or 0.0)
        moved = difference(gain[ranked[-1]], gain[ranked[0]])
        first, last = (replicas.gain(study.network(jobs, variation, length), SQFCFS) for jobs in (LOW, HIGH))
        label = f"{policy} C{variation:g} d{length:g}"
        smaller.append(above(label, _listed(difference(difference(first, last), moved)), 0.0, " points"))
        trend[policy].append(above(label, _listed(difference(gain[HIGH], gain[LOW])), 0.0, " points"))
    ways = [{one.says for one in items} for items in trend.values()]
    without = NO if {YES} in ways or {NO} in ways else YES if all({YES, NO} <= each for each in ways) else OPEN
    told = "; ".join(
        f"{policy} N48 - N16: " + ", ".join(f"{count} {_WAYS[said]}" for said, count in answers_of(items).items())
        for policy, items in trend.items()
    )
    return [
        _claim("f3.less-than-sq", "D_R of the three others moves less over N than that of SQFCFS", smaller),
        _judged(
            "f3.no-pattern",
            "D_R of the three others has no pattern in N: from N = 16 to 48 each rises for some C and d, and falls for others",
            without,
            told,
        ),
    ]


_WAYS = {YES: "rise", NO: "fall", OPEN: "open"}


def by_variation(study: NetworkStudy, replicas: NetworkReplicas) -> list[Claim]:
    """Section 4.1: C changes D_R of the three others less than that of SQFCFS, and not always in the same direction."""
    smaller, up = [], []
    for jobs, length, policy in product(JOBS, INTERVALS, OTHERS):
        networks = [study.network(jobs, variation, length) for variation in VARIATIONS]
        (sq_2, sq_4), (two, four) = ([replicas.gain(one, name) for one in networks] for name in (SQFCFS, policy))
        moved = difference(four, two)
        sign = 1 if (mean(moved) or 0.0) >= 0 else -1
        rest = combined(lambda sq, own, sign=sign: sq - sign * own, difference(sq_4, sq_2), moved)
        label = f"{policy} d{length:g} N{jobs}"
        smaller.append(above(label, _listed(rest), 0.0, " points"))
        up.append(above(label, _listed(moved), 0.0, " points"))
    ways = {one.says for one in up}
    both = YES if {YES, NO} <= ways else OPEN if OPEN in ways else NO
    numbers = ", ".join(f"{count} {_BY_C[said]}" for said, count in answers_of(up).items())
    return [
        _claim("s41.C-less", "C changes D_R of the three others by less than that of SQFCFS", smaller),
        _judged("s41.C-both", "D_R of the others is higher with C = 2 in some networks, with C = 4 in others", both, numbers),
    ]


_BY_C = {YES: "higher with C = 4", NO: "higher with C = 2", OPEN: "open"}


# ------------------------------------------------------------------------------------------------ Figures 9 to 14


def longest(study: NetworkStudy, replicas: NetworkReplicas) -> list[Claim]:
    """Figures 9 to 14: RT_max."""
    networks = study.of_paper()

    def each(policy: str, others: Sequence[str], make: Item, bound: float = 1.0) -> list[EvidenceItem]:
        return [
            make(
                _label(network, policy if other == PRFCFS else f"{policy} / {other}"),
                _listed(replicas.ratio(network, policy, LONGEST, other)), bound,
            )
            for network, other in product(networks, others)
        ]  # fmt: skip

    fewest = each(PRSNUTF, (PRSTF,), above)
    usual, turned, unknown = (sum(one.says == said for one in fewest) for said in (NO, YES, OPEN))
    mostly = YES if usual > len(fewest) / 2 else OPEN if usual + unknown > len(fewest) / 2 else NO
    at_2 = []
    for policy, jobs, length in product((PRSTF, PRSNUTF), JOBS, INTERVALS):
        two, four = (
            replicas.ratio(study.network(jobs, variation, length), policy, LONGEST) for variation in VARIATIONS
        )
        at_2.append(above(f"{policy} d{length:g} N{jobs}", _listed(difference(two, four)), 0.0))
    return [
        _claim("f9.sq-least", "RT_max of SQFCFS is the smallest of all five everywhere", each(SQFCFS, (PRFCFS, *OTHERS), below)),
        _claim("f9.sq-one", "The ratio of SQFCFS is at most about 1 (1.1)", each(SQFCFS, (PRFCFS,), below, 1.1)),
        _claim("f9.lstf-above", "The ratio of PrLSTF is above 1", each(PRLSTF, (PRFCFS,), above)),
        _claim("f9.lstf-below", "RT_max of PrLSTF is below that of PrSTF and of PrSNUTF", each(PRLSTF, (PRSTF, PRSNUTF), below)),
        _claim(
            "f9.lstf-much",
            "RT_max of PrLSTF is much smaller than that of PrSTF and of PrSNUTF: at most half",
            each(PRLSTF, (PRSTF, PRSNUTF), below, 1 / MUCH),
        ),
        _judged(
            "f9.stf-usual",
            "Mostly PrSTF has a larger RT_max than PrSNUTF: decided in more than half of the networks",
            mostly,
            f"{usual} of {len(fewest)} decided so, {turned} the other way",
        ),
        _exists("f9.snutf-few", "In a few networks PrSNUTF has a larger RT_max than PrSTF", fewest, _singly(study, replicas)),
        _claim("f9.C2", "The ratios of PrSTF and PrSNUTF are larger with C = 2 than with C = 4", at_2),
    ]  # fmt: skip


def _singly(study: NetworkStudy, replicas: NetworkReplicas) -> str:
    """Say in how many single replications PrSNUTF has the larger RT_max."""
    each = [
        value for network in study.of_paper() for value in replicas.more(network, PRSNUTF, PRSTF, LONGEST).values()
    ]
    return f"so in {sum(value > 0 for value in each)} of {len(each)} single replications"


# ------------------------------------------------------------------------------------------------ protocol, errors, the rest


def precision(study: NetworkStudy, replicas: NetworkReplicas) -> list[Claim]:
    """Section 3: 95 % intervals below 5 % of the mean."""
    claims = []
    for name, text, number in (
        ("s3.U", "U", UTILISATION),
        ("s3.R", "R", THROUGHPUT),
        ("s3.RT", "RT_max", LONGEST),
    ):
        found = {
            f"{policy} {_label(network)}": replicas.of(network, policy, number)
            for network, policy in product(study.of_paper(), POLICIES)
        }
        shares = {label: share for label, values in found.items() if (share := half_share(values)) is not None}
        if not shares:
            claims.append(Claim(name, _protocol(text, study), UNCHECKED, "no intervals"))
            continue
        widest = max(shares, key=lambda label: shares[label])
        over = [label for label, share in shares.items() if share >= BOUND]
        numbers = f"{len(over)} of {len(shares)} above; the widest {PERCENT * shares[widest]:.1f} % ({widest})"
        if over:
            numbers += f", which would take {replications_needed(found[widest])} replications"
        claims.append(_judged(name, _protocol(text, study), NO if over else YES, numbers))
    return claims


def _protocol(what: str, study: NetworkStudy) -> str:
    return f"Half the 95 % interval of {what} is below 5 % of the mean everywhere ({study.replications} replications)"


def errors(study: NetworkStudy, replicas: NetworkReplicas) -> list[Claim]:
    """Section 4.1: errors of estimates of 10, 20 and 30 %."""

    def changed(exact: Network, policy: str, error: float) -> Values:
        wrong = study.network(exact.jobs, exact.variation, exact.tasks_interval, error=error)
        return difference(replicas.of(wrong, policy, UTILISATION), replicas.of(exact, policy, UTILISATION))

    claims = []
    for policy in (PRSTF, PRLSTF):
        found = [
            inside(f"E{error:g} {_label(exact)}", _listed(changed(exact, policy, error)), -MARGINAL, MARGINAL)
            for exact, error in product(study.of_paper(), PAPER_ERRORS)
        ]
        together = [
            inside(
                f"E{error:g} C{variation:g} N{jobs}",
                _over_d(study, jobs, variation, partial(changed, policy=policy, error=error)), -MARGINAL, MARGINAL,
            )
            for error, variation, jobs in product(PAPER_ERRORS, VARIATIONS, JOBS)
        ]  # fmt: skip
        text = f"{policy}: errors of 10, 20 and 30 % change U by less than .01"
        claims.append(_claim(f"s41.errors.{policy}", text, found, "", together))
    return claims


def unchecked(_study: NetworkStudy, _replicas: NetworkReplicas) -> list[Claim]:
    """What the model leaves out."""
    return [
        Claim(
            "s43.overhead",
            "PrFCFS costs the least and SQFCFS would still be the best if overhead were counted",
            UNCHECKED,
            "neither routing nor selection takes time in the model",
            expected=UNCHECKED,
        ),
    ]
