"""The table of all metrics: the name, the unit, the meaning and the source of each.

``P`` is the number of processors of the machine, ``n`` the number of counted jobs, ``r`` that of
refused jobs; formulas are plain ASCII.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: its name in ``measure``, its unit, its formula, its source, its meaning in one
    line, the better direction."""

    name: str
    unit: str
    formula: str
    source: str
    meaning: str
    is_less_better: bool = True


_TEF07 = "Tsafrir, Etsion & Feitelson 2007"
_STATISTICS = {
    "mean": ("sum({0}) / n", "mean"),
    "median": ("ceil(0.50 n)-th smallest of {0}", "median (nearest rank)"),
    "p95": ("ceil(0.95 n)-th smallest of {0}", "95th percentile (nearest rank)"),
    "max": ("max({0})", "maximum"),
}


def _family(name: str, unit: str, formula: str, source: str, meaning: str) -> tuple[Metric, ...]:
    """Return the four statistics of one quantity that every job has."""
    suffix = "_s" if unit == "s" else ""
    return tuple(
        Metric(
            f"{name}_{statistic}{suffix}",
            unit,
            how.format(formula),
            source,
            f"{what} of the {meaning}",
        )
        for statistic, (how, what) in _STATISTICS.items()
    )


METRICS: tuple[Metric, ...] = (
    Metric("jobs", "jobs", "n", "standard", "jobs that ran and are counted (a warm-up is not)"),
    *_family(
        "wait",
        "s",
        "start - submit",
        "standard",
        "time from submission to start; if interrupted: end - submit - run",
    ),
    *_family("response", "s", "end - submit", "standard", "time from submission to end"),
    *_family(
        "slowdown",
        "ratio",
        "(end - submit) / run",
        "standard",
        "response time over run time, if that is not 0",
    ),
    Metric(
        "slowdown_skipped",
        "jobs",
        "count(run = 0)",
        "standard",
        "jobs left out of the slowdown: no run time",
    ),
    *_family(
        "bounded_slowdown",
        "ratio",
        "(end - submit) / max(run, 10 s)",
        "Feitelson & Weil 1998, section 3.1",
        "slowdown with run times of at least 10 s; below 1 for short jobs",
    ),
    *_family(
        "bounded_slowdown_clipped",
        "ratio",
        "max(1, (end - submit) / max(run, 10 s))",
        "literature after 1998",
        "bounded slowdown, at least 1",
    ),
    Metric(
        "backfilled_share",
        "share",
        "count(backfilled) / n",
        "Feitelson & Weil 1998, Fig. 10",
        "jobs that started while an earlier-submitted job was left waiting",
    ),
    Metric(
        "immediate_share",
        "share",
        "count(immediate) / n",
        "standard",
        "jobs that started when they arrived, ahead of no other job",
        is_less_better=False,
    ),
    Metric(
        "makespan_s",
        "s",
        "max(end) - min(submit)",
        "standard",
        "time from the first submission to the last end",
    ),
    Metric(
        "throughput_per_hour",
        "jobs/h",
        "jobs that ran / makespan",
        "standard",
        "jobs finished in an hour",
        is_less_better=False,
    ),
    Metric(
        "utilisation_makespan",
        "share",
        "sum(procs * run) / (P * makespan)",
        "standard",
        "share of the processor time until the last end that was used",
        is_less_better=False,
    ),
    Metric(
        "utilisation_submit",
        "share",
        "sum(procs * |[start, end) in W|) / (P * |W|), W = [min(submit), max(submit))",
        "standard for open traces",
        "share of the processor time until the last submission that was used",
        is_less_better=False,
    ),
    Metric(
        "loss_of_capacity",
        "share",
        "sum(idle * dt where a waiting job has procs <= idle) / (P * makespan)",
        "qbatch, tests/oracle/metrics.py",
        "processor time idle although a waiting job would have fitted",
    ),
    Metric(
        "queue_max", "jobs", "max(waiting before a pass)", "standard", "longest queue before a pass"
    ),
    Metric(
        "parents",
        "jobs",
        "count(parents)",
        "Karatza & Hilzer 2003",
        "parents of which a task ran and is counted",
    ),
    *_family(
        "parent_response",
        "s",
        "max(end) - min(submit) of its tasks",
        "Karatza & Hilzer 2003",
        "responses of parents",
    ),
    *_family(
        "parent_slowdown",
        "ratio",
        "response / max(run) of its tasks",
        "standard",
        "response of parents over their longest run time, if that is not 0",
    ),
    *_family(
        "parent_spread",
        "s",
        "max(end) - min(end) of its tasks",
        "standard",
        "time from a parent's first end to its last",
    ),
    Metric(
        "predicted_share",
        "share",
        "count(predicted) / n",
        _TEF07,
        "jobs with a run time predicted from earlier jobs",
    ),
    *_family(
        "prediction_error",
        "s",
        "|expected - run|, expected = prediction at submission, else estimate",
        _TEF07,
        "difference between the expected and the real run time",
    ),
    Metric(
        "prediction_accuracy_mean",
        "ratio",
        "sum(min(expected, run) / max(expected, run)) / n",
        _TEF07,
        "mean accuracy of the expected run times: 1 is perfect, too short and too long count alike",
        is_less_better=False,
    ),
    Metric(
        "estimate_accuracy_mean",
        "ratio",
        "sum(min(estimate, run) / max(estimate, run)) / n",
        _TEF07,
        "mean accuracy of the estimates, to compare with that of predictions",
        is_less_better=False,
    ),
    Metric(
        "underprediction_share",
        "share",
        "count(expected < run) / n",
        _TEF07,
        "jobs that ran longer than expected",
    ),
    Metric(
        "rejected_count",
        "jobs",
        "r",
        "standard",
        "counted jobs that were refused; absent if there were none",
    ),
    Metric(
        "rejected_share",
        "share",
        "r / (n + r)",
        "standard",
        "refused share of the counted jobs; absent if none were",
    ),
)
"""Every metric that ``measure`` returns, in its order.  Those of parents and of predictions, and
the last two, are returned only if there are parents, predicted run times or refused jobs."""

_WORDS = {
    "wait": "wait",
    "response": "response",
    "slowdown": "slowdown",
    "bounded_slowdown": "bounded slowdown",
    "bounded_slowdown_clipped": "bounded slowdown, clipped",
    "parent_response": "response of parents",
    "parent_slowdown": "slowdown of parents",
    "parent_spread": "spread of parents' ends",
    "prediction_error": "error of the expected run time",
    "prediction_accuracy": "accuracy of the expected run time",
    "estimate_accuracy": "accuracy of the estimate",
}
_STATISTIC_WORDS = {
    "mean": "Mean {}",
    "median": "Median {}",
    "p95": "95th percentile of {}",
    "max": "Longest {}",
}
_OTHER_WORDS = {
    "jobs": "Jobs",
    "slowdown_skipped": "Jobs without slowdown",
    "backfilled_share": "Backfilled",
    "immediate_share": "Started at once",
    "makespan_s": "Makespan",
    "throughput_per_hour": "Throughput",
    "utilisation_makespan": "Utilisation to the last end",
    "utilisation_submit": "Utilisation while jobs come",
    "loss_of_capacity": "Loss of capacity",
    "queue_max": "Longest queue",
    "parents": "Parents",
    "predicted_share": "Run time predicted",
    "underprediction_share": "Outlived the prediction",
    "rejected_count": "Rejected",
    "rejected_share": "Share rejected",
}


def words_of(name: str) -> str:
    """Return the name of a metric in a sentence."""
    if name in _OTHER_WORDS:
        return _OTHER_WORDS[name]
    family, _, statistic = name.removesuffix("_s").rpartition("_")
    text = _STATISTIC_WORDS[statistic].format(_WORDS[family])
    return (
        text
        if family in ("wait", "response", "parent_response", "parent_spread")
        else text.replace("Longest", "Highest")
    )
