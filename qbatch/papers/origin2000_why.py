"""How a claim is judged, and our best explanation for claims that may fail on the generated months; never tuned away."""

from __future__ import annotations

from collections.abc import Mapping

from qbatch.papers.record import CONTRADICTED, FAILS, UNDECIDED

_CALM = (
    "the generated months are probably calmer than the real ones: arrivals know nothing of each other, where users submit in "
    "batches, and the machine is empty a week before the month"
)
_ONE_JOB = "a longest wait is that of one job, and which one changes with every decision before it"

WHY: Mapping[str, str] = {
    "1.lsf-is-worse": f"{_CALM}; where nearly nobody waits, the order of two policies is chance",
    "1.backfills-are-alike": f"{_CALM}; both wait so little that a few jobs decide the ratio",
    "2.idle-under-specials": (
        "where the generated months ask for much memory (March, January) waits under LSF* reach the reserve waits of the "
        "classes, and each job that has a special then keeps a host half empty until it fits"
    ),
    "3.lsf-varies-more": (
        "this variation is relative, and under Priority-bf the mean waits of most classes are minutes: a few jobs make a large "
        "share of little. In hours LSF* varies more"
    ),
    "4.short-first-is-better": f"{_CALM}; where hardly anybody waits, who is first hardly matters",
    "4.not-in-max-wait": _ONE_JOB,
    "6.others-unharmed": f"{_CALM}; where waits are short, what guests cost is a larger share of them",
    "6.others-unchanged": f"{_CALM}; where waits are short, small changes are large shares",
    "7.p95-is-lower": f"{_CALM}; the 95th percentile is minutes under both",
    "7.rest-is-comparable": f"{_CALM}; equal shares keep nobody waiting while there is memory, backfilling does",
    "7.longest-jobs-wait": f"{_CALM}; hosts are seldom shared so long that the longest jobs lose much",
    "7.over-50h-cuts-it": _ONE_JOB,
    "7.interval-hardly-matters": _ONE_JOB,
    "7.placed-at-once": (
        "a job is not placed only when no host has its memory: in months of high load the generated requests, independent of "
        "the hour and of each other, fill the memory of all eight hosts more often than the real ones did"
    ),
    "5.one-reservation-is-enough": "both wait so little in calm months that a few jobs decide the ratio",
    "8.high-load-differs-more": (
        "the paper calls a month high by its demand for processors; in the generated months memory decides as much, and January "
        "and March, which count as low, demand 74 and 78 % of it, no less than December (72 %) and February (74 %)"
    ),
    "9.hours-or-tens": f"{_CALM}; in calm months serial classes wait minutes",
    "9.max-hundreds": _CALM,
}
"""By name of claim."""

EXPECTED: Mapping[str, str] = {
    "A.lt_mj": CONTRADICTED,
    "2.idle-under-specials": FAILS,
    "3.lsf-varies-more": UNDECIDED,
    "4.short-first-is-better": UNDECIDED,
    "4.sjf-mostly-better": UNDECIDED,
    "6.others-unharmed": UNDECIDED,
    "6.others-unchanged": UNDECIDED,
    "7.p95-is-lower": UNDECIDED,
    "7.rest-is-comparable": UNDECIDED,
    "7.interval-hardly-matters": UNDECIDED,
    "7.placed-at-once": FAILS,
    "8.high-load-differs-more": UNDECIDED,
    "9.hours-or-tens": UNDECIDED,
    "9.max-hundreds": FAILS,
}
"""The verdicts that are known of six months and ten replicas (docs/papers/origin2000-results.md), by name of claim; the
others hold.

What is no verdict here may become either with other seeds, and claims that fail in some months need not in those of a smaller
study: of these a check expects nothing.  ``WHY`` explains each that does not hold.
"""

METHOD = (
    "Each replica is the month drawn with another seed. A comparison is *yes* if the whole 95 % interval over the replicas "
    "(paired by seed, Student's t; ratios by their logarithms) lies on the claimed side, *no* if it lies wholly on the other, "
    "else *open*. A claim holds if all its comparisons say yes, does not hold if one says no, else it is not decidable with "
    'these replicas; one of *at least one month* holds if one says yes. Bounds that the paper leaves open ("similar": 25 %, '
    '"comparable": twice) are ours. Slowdowns that decide are raw, as in the paper; the tables also have them bounded by a '
    "minute (run times count as 60 s at least, and no slowdown below 1).",
    "A claim of *every month* is a conjunction: 1.lsf-is-worse is six months x three measures x two policies, 36 comparisons "
    "that must all say yes. One that is open keeps the claim open, however clear the others are. And where two policies do not "
    "differ at all, a comparison still says *no* once in forty times, so of many one may say it for nothing. Therefore the "
    "counts stand beside each verdict, and below it what the same comparisons say over all months together (the mean "
    "over the months of each replica). This second reading is no part of any verdict, and was added after the rules.",
    "Claims A and F are of the workload: counted, an answer for each month, no intervals but for the periods. The generator "
    "draws a month again until what F says of its jobs is true, so F holds by construction: it checks the generator.",
)
"""How a claim is judged, a paragraph each."""
