"""Our best explanation for claims that may fail on the generated months; told with the verdict, never tuned away."""

from __future__ import annotations

from collections.abc import Mapping

_CALM = (
    "the generated months are probably calmer than the real ones: arrivals know nothing of each other, where users submit in "
    "batches, and the machine is empty a week before the month"
)
_ONE_JOB = "a longest wait is that of one job, and which one changes with every decision before it"

WHY: Mapping[str, str] = {
    "1.lsf-is-worse": f"{_CALM}; where nearly nobody waits, the order of two policies is chance",
    "1.backfills-are-alike": f"{_CALM}; both wait so little that a few jobs decide the ratio",
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
    "9.hours-or-tens": f"{_CALM}; in calm months serial classes wait minutes",
    "9.max-hundreds": _CALM,
}
"""By name of claim."""
