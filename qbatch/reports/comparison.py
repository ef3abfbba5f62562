"""The comparison of two schedules of one log: the record that ``qbatch compare`` prints and a
report shows.

This module matches the jobs by number, sorts them into classes, and words the findings.
:mod:`qbatch.metrics.paired` supplies the statistics of each quantity and their verdicts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbatch.metrics import BREAKDOWNS
from qbatch.metrics.dependence import Estimate, a_day_of
from qbatch.metrics.machine import makespan_us
from qbatch.metrics.paired import PRACTICAL, Difference, Verdict, finding_of, holm, paired
from qbatch.metrics.per_job import JobTimes, bounded_slowdowns, job_times, slowdowns
from qbatch.metrics.ratio import difference_estimate, replicated_difference
from qbatch.model.errors import InputError
from qbatch.model.record import MICROSECONDS, Schedule
from qbatch.reports.comparison_words import sentence
from qbatch.reports.plot_style import DAY
from qbatch.reports.series import used_procs
from qbatch.results.pieces import unknown_pieces
from qbatch.results.replicas import (
    check_alike,
    check_distinct,
    check_one_log,
    job_keys,
    log_of,
    option_differences,
)
from qbatch.results.result import Result
from qbatch.results.run_words import (
    history_notes,
    left_out_notes,
    missing_estimates,
    recorded_notes,
    run_words,
    short_name,
)

SCHEMA = "qbatch.compare/1"

METHOD = (
    "paired by job number, in order of submission; of means: on the scale of the ratio B / A "
    "(delta method), in units of this A. "
    "The error is the widest of two: the stationary bootstrap (Politis and Romano 1994), and the "
    "means of 5, 10 and 20 equal "
    "parts with Student's t. The block length is by Politis and White 2004, a day at least. Of a "
    "median: percentiles of "
    "200 to 1,000 resamples (docs/explanation/statistics.md)"
)
METHOD_REPLICAS = (
    "Student's t over the replicas, each a pair; cut at the lowest possible value (-100 %)"
)
METHOD_DESCRIBED = "none, for differences from the log are described and not tested"
CORRECTION = (
    "Holm 1979, over the parts of a table and its quantities; "
    "a part that holds every job is the whole, and is not tested separately"
)
_WAY_OUT = (
    "replicas differ in their seed only: replay it with the same options, or compare it separately"
)

PARTS = ("class", "month")
"""The usual breakdowns of a comparison; p is corrected for the number of parts of each
separately."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Quantity:
    """A quantity of every job, under the name of its mean among the metrics."""

    name: str
    unit: str
    words: str
    of: Callable[[JobTimes], Floats]


QUANTITIES = (
    Quantity("wait_mean_s", "s", "Mean wait", lambda jobs: jobs.wait / MICROSECONDS),
    Quantity(
        "slowdown_mean", "ratio", "Mean slowdown", lambda jobs: slowdowns(jobs.response, jobs.run)
    ),
    Quantity(
        "bounded_slowdown_mean",
        "ratio",
        "Mean bounded slowdown",
        lambda jobs: bounded_slowdowns(jobs.response, jobs.run),
    ),
)
"""The quantities that are compared job by job; jobs of no run time are left out of the slowdown."""


@dataclass(frozen=True, slots=True)
class HistoryCheck:
    """Whether the schedule of a log can have run on the machine of a file.

    ``machine``: the path of its file; ``digest`` and ``procs``: of the machine.  ``kinds``: what the side file
    says (:func:`qbatch.workloads.resource_rows.kinds_of`), and ``sha256`` the hash of that file.
    ``breaches``: how many there are of each kind; ``first``: the first of them.  ``checked``: what
    was checked on the hosts.  ``doubt``: why no verdict can be given, also without a breach; empty:
    one can.  ``command``: what lists every breach.
    """

    machine: str
    digest: str
    procs: int
    kinds: Mapping[str, int]
    sha256: str
    breaches: Mapping[str, int]
    first: str
    checked: str
    doubt: str
    command: str

    @property
    def breach_words(self) -> str:
        """The breaches in a sentence; empty without any."""
        count = sum(self.breaches.values())
        kinds = ", ".join(f"{number:,} {code}" for code, number in self.breaches.items())
        if not count:
            return ""
        return (
            f"the real schedule cannot have run on {self.machine}: "
            f"{count:,} breach{'es' * (count > 1)} ({kinds}), first {self.first}; "
            f"{self.command} lists them"
        )

    def against(self, replay: Result) -> str:
        """Return why a replay cannot be judged by this history; empty: it can."""
        if self.breaches:
            return self.breach_words
        if self.doubt:
            return self.doubt
        document = replay.document
        side = document.get("resources") or {}
        if document.get("machine_digest") != self.digest:
            return f"the replay was not on the machine of {self.machine}"
        return "" if side.get("sha256") == self.sha256 else "the replay had another side file"


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two schedules, its result, and its name in sentences.

    ``is_history``: whether it is a recorded log; ``check``: of which it was checked on which
    machine it can have run, None if it was not.
    """

    result: Result
    schedule: Schedule
    where: str
    label: str
    is_history: bool = False
    check: HistoryCheck | None = None


@dataclass(frozen=True, slots=True)
class ComparedSettings:
    """The settings of a comparison: confidence, least share that matters, seed of the resampling,
    and breakdowns.

    ``is_tested``: whether a difference may be called real; a difference from a recorded log is only
    described.
    """

    confidence: float = 0.95
    practical: float = PRACTICAL
    seed: int = 0
    parts: tuple[str, ...] = PARTS
    is_tested: bool = True


@dataclass(frozen=True, slots=True)
class Matched:
    """The jobs that both schedules ran and count, row by row in order of submission, and the number
    of other jobs.

    ``common``: the jobs that both ran, counted or not, for measures of the machine.
    """

    a: Schedule
    b: Schedule
    common: tuple[Schedule, Schedule]
    only_a: int
    only_b: int
    uncounted: int
    notes: tuple[str, ...] = ()


def check_pairs(pairs: Sequence[tuple[Side, Side]], *, may_logs_differ: bool = False) -> None:
    """Refuse pairs that are no replicas of the first: means over unlike experiments mean nothing.

    Raises:
        InputError: as in ``qbatch.results.replicas``; a report refuses the same pairs.
    """
    for side in (0, 1):
        read = [(pair[side].where, pair[side].result) for pair in pairs]
        check_alike(read, _WAY_OUT)
        if not may_logs_differ:
            check_one_log(read)
    check_distinct([(pair[1].where, [side.schedule for side in pair]) for pair in pairs])


# ------------------------------------------------------------------------------------------------
# the jobs


def match(a: Side, b: Side) -> Matched:
    """Match the jobs of two schedules by number.

    Raises:
        InputError: no job is common; or a common job requests another number of processors; or most
            common jobs have another submission and run time.  The latter are two logs with equal
            job numbers.
    """
    first, second = a.schedule.only_ran(), b.schedule.only_ran()
    key_a, key_b = job_keys(first.workload.number), job_keys(second.workload.number)
    _, at_a, at_b = np.intersect1d(key_a, key_b, return_indices=True)
    if not len(at_a):
        raise InputError(
            f"{a.where} and {b.where}: have no job number in common; compare two schedules of one "
            "log"
        )
    order = np.argsort(at_a)
    one, other = first.only(at_a[order]), second.only(at_b[order])
    work, others = one.workload, other.workload
    unlike = np.flatnonzero(work.procs != others.procs)
    # A schedule may be the recorded log of the other: then jobs need not have got what they
    # requested.  It is, if the logs are the same, or if all common jobs were submitted at the same
    # times.
    # In a report the side of a log has the result of its replays.
    is_recorded = any(side.is_history or side.result.is_recorded for side in (a, b)) and (
        log_of(a.result) == log_of(b.result) or np.array_equal(work.submit, others.submit)
    )
    if len(unlike) and not is_recorded:
        row = int(unlike[0])
        raise InputError(
            f"{b.where}: job {work.number[row]} requests {others.procs[row]} processors, but "
            f"{work.procs[row]} in {a.where}; compare two schedules of one log"
        )
    strange = int(((work.submit != others.submit) & (work.run != others.run)).sum())
    if 2 * strange > len(one) and len(set(_hashes(a, b))) > 1:
        raise InputError(
            f"{b.where}: {strange:,} of {len(one):,} jobs of {a.where} have another submission and "
            "run time here; "
            "compare two schedules of one log"
        )
    is_counted = work.counted & others.counted
    if not is_counted.any():
        raise InputError(
            f"{a.where} and {b.where}: have no counted job in common (a warm-up is not counted)"
        )
    notes = _notes(a, b, one, other)
    left = (len(first) - len(one), len(second) - len(one), int((~is_counted).sum()))
    return Matched(one.only(is_counted), other.only(is_counted), (one, other), *left, notes=notes)


def _hashes(a: Side, b: Side) -> list[str]:
    """Return the known hashes of the logs."""
    known = (side.result.document.get("log", {}).get("sha256") for side in (a, b))
    return [digest for digest in known if digest is not None]


def _notes(a: Side, b: Side, one: Schedule, other: Schedule) -> tuple[str, ...]:
    notes = []
    if len(set(_hashes(a, b))) > 1:
        notes.append(
            f"these are results of two log files ({a.where}, {b.where}); jobs are matched by "
            "number anyway"
        )
    if a.result.document and b.result.document:
        found = option_differences((a.where, a.result), (b.where, b.result))
        notes += [f"{b.where} {what}" for what in found]
    missing = dict.fromkeys(missing_estimates(side.result.document) for side in (a, b))
    notes += [f"{short_name(a.result.name)}: {note}" for note in missing if note is not None]
    notes += [f"{side.where}: {note}" for side in (a, b) for note in recorded_notes(side.result)]
    if not (a.is_history or b.is_history):  # which say it themselves
        said = [
            f"{short_name(side.result.name)}: {note}"
            for side in (a, b)
            for note in left_out_notes(side.result.document)
        ]
        notes += dict.fromkeys(said)
    notes += [note for note in map(unknown_pieces, (a.schedule, b.schedule)) if note is not None]
    for name, side, against, ran_in in (("A", a, b, "B"), ("B", b, a, "A")):
        if refused := side.schedule.rejected:
            numbers = job_keys(side.schedule.workload.number[[each.row for each in refused]])
            ran = len(
                np.intersect1d(numbers, job_keys(against.schedule.only_ran().workload.number))
            )
            notes.append(f"{name} refused {len(refused):,} jobs, of which {ran:,} ran in {ran_in}")
    for name, words in (
        ("submit", "are submitted at another time"),
        ("run", "run for another time"),
        ("estimate", "have another estimate"),
        ("procs", "have another number of processors"),
    ):
        count = int((getattr(one.workload, name) != getattr(other.workload, name)).sum())
        if count:
            notes.append(f"{count:,} of {len(one):,} common jobs {words} in B than in A")
    return tuple(notes)


# ------------------------------------------------------------------------------------------------
# the record


def compare(
    a: Side,
    b: Side,
    settings: ComparedSettings | None = None,
    replicas: Sequence[tuple[Side, Side]] = (),
) -> dict[str, Any]:
    """Return the record of a comparison, schema ``qbatch.compare/1``; differences are b - a.

    With ``replicas`` (further pairs, of other seeds or logs) the intervals are over the pairs.
    Effects, medians and breakdowns stay those of the first pair, but a part that holds every job
    equals the whole.  Utilisation is left out, and a note gives the reason, if the size of a
    machine is unknown or those of a pair differ.  Utilisation and makespan are of the jobs that
    both ran, including the warm-up.

    If one side is a recorded log, nothing is called better, there is no interval and no p, and
    ``is_described`` is true.  Differences then come from the machine, which a replay does not know,
    as well as from the policy.  A schedule that was checked on the machine of the replay
    (``Side.check``), and has no breach there, is compared like any other.  ``history`` lists what
    is unknown.

    Raises:
        InputError: the jobs of a pair do not match.
    """
    history, is_described = _history(a, b)
    how = replace(settings or ComparedSettings(), is_tested=not is_described)
    pairs = [match(one, other) for one, other in ((a, b), *replicas)]
    jobs = pairs[0]
    notes = list(jobs.notes)
    for place, pair in enumerate(pairs[1:], 2):
        notes += [f"pair {place}: {note}" for note in pair.notes if note not in jobs.notes]
    logs = {log_of(one.result) for one, _ in ((a, b), *replicas)}
    if len(logs) > 1:
        notes.append(
            f"the pairs are of {len(logs)} different logs, as requested; values are means over them"
        )
    metrics = [_quantity(pairs, quantity, how) for quantity in QUANTITIES]
    sides = [(a, b), *replicas]
    unlike = _unlike_machines(sides)
    if unlike is None:
        metrics.append(_utilisation(sides, pairs, how))
    else:
        notes.append(f"utilisation is not compared: {unlike}")
    metrics.append(_makespan(pairs, how))
    for record in metrics:
        record["sentence"] = sentence(record, a.label, b.label, how.confidence, how.practical)
    return {
        "schema": SCHEMA,
        "a": _side_facts(a),
        "b": _side_facts(b),
        "jobs": {
            "common": len(jobs.a),
            "only_a": jobs.only_a,
            "only_b": jobs.only_b,
            "not_counted": jobs.uncounted,
        },
        "pairs": len(pairs),
        "confidence": how.confidence,
        "practical": how.practical,
        "seed": how.seed,
        "method": METHOD_DESCRIBED
        if is_described
        else METHOD_REPLICAS
        if len(pairs) > 1
        else METHOD,
        "correction": CORRECTION,
        "history": history,
        "is_described": is_described,
        "notes": notes,
        "metrics": metrics,
        "parts": {key: _parts(jobs, key, how, metrics) for key in how.parts},
    }


def _history(a: Side, b: Side) -> tuple[list[str], bool]:
    """Return what is unknown of a real machine, and whether its schedule may only be described."""
    sides = [side for side in (a, b) if side.is_history]
    if not sides:
        return [], False
    documents = [side.result.document for side in (b, a) if not side.is_history]
    documents += [side.result.document for side in sides]
    check = sides[0].check
    if check is None or len(sides) > 1:
        return history_notes(documents), True
    kinds = {"resources": {"kinds": check.kinds}}
    known = [document | kinds for document in documents]
    if why := check.against(b.result if a.is_history else a.result):
        return history_notes(known, why_not=why), True
    return history_notes(known, checked=f"{check.machine} ({check.checked})"), False


def _side_facts(side: Side) -> dict[str, Any]:
    result = side.result
    return {
        "result": side.where,
        "policy": side.schedule.policy,
        "label": side.label,
        "log": result.name,
        "procs": None if result.is_size_guessed else result.procs_total,
        "options": result.document.get("options"),
        "run": "; ".join(run_words(result)),
    }


def _quantity(pairs: list[Matched], quantity: Quantity, how: ComparedSettings) -> dict[str, Any]:
    values = [_values(pair.a, pair.b, quantity) for pair in pairs]
    one, other = values[0]
    difference = paired(
        one, other, how.confidence, seed=how.seed, least_block=a_day_of(pairs[0].a.workload.submit)
    )
    return _record(
        quantity.name, quantity.unit, quantity.words, difference, how, _means(values)
    ) | {"jobs": len(one)}


def _means(pairs: list[tuple[Floats, Floats]]) -> list[tuple[float, float]]:
    """Return the means of those of several pairs that have values; none of a single pair."""
    return (
        [(float(one.mean()), float(other.mean())) for one, other in pairs if len(one)]
        if len(pairs) > 1
        else []
    )


def _values(a: Schedule, b: Schedule, quantity: Quantity) -> tuple[Floats, Floats]:
    one, other = quantity.of(job_times(a)), quantity.of(job_times(b))
    if quantity.name != "slowdown_mean":
        return one, other
    is_shown = (a.workload.run > 0) & (b.workload.run > 0)
    return one[is_shown], other[is_shown]


def _record(
    name: str,
    unit: str,
    words: str,
    difference: Difference,
    how: ComparedSettings,
    means: Sequence[tuple[float, float]] = (),
    *,
    is_less_better: bool = True,
    found: Verdict | None = None,
) -> dict[str, Any]:
    """Return the record of a quantity of the first pair.

    Args:
        means: of each of several pairs; they and Student's t over them replace the interval of one
            pair.
        found: the finding of the first pair, if it is known without a test.
    """
    mean, median, effect = difference.mean, difference.median, difference.effect

    def verdict(estimate: Estimate, larger: float | None) -> Verdict:
        return finding_of(
            estimate,
            larger,
            is_less_better=is_less_better,
            practical=how.practical,
            level=1 - how.confidence,
        )

    record: dict[str, Any] = {
        "name": name,
        "unit": unit,
        "words": words,
        "is_less_better": is_less_better,
        "a": difference.a,
        "b": difference.b,
        **_changed(difference.a, difference.b, mean, how),
        "block": round(mean.block, 1),
        "finding": _shown_finding(found or verdict(mean, difference.larger), how),
    }
    if median is not None:
        low, high = (median.low, median.high) if how.is_tested else (None, None)
        record["median"] = {"difference": median.value, "low": low, "high": high}
    if effect is not None:
        record["effect"] = {
            "jobs_better": effect.better,
            "jobs_worse": effect.worse,
            "jobs_equal": effect.equal,
            "cliff_delta": effect.cliff_delta,
            "rank_biserial": effect.rank_biserial,
        }
    if means:
        one, other = (np.array(column, np.float64) for column in zip(*means, strict=True))
        estimate, a, b = (
            replicated_difference(one, other, how.confidence),
            float(one.mean()),
            float(other.mean()),
        )
        record |= {
            "a": a,
            "b": b,
            **_changed(a, b, estimate, how),
            "block": None,
            "finding": _shown_finding(verdict(estimate, max(a, b)), how),
            "replicas": [{"a": first, "b": second} for first, second in means],
        }
    return record


def _changed(
    a: float | None, b: float | None, estimate: Estimate, how: ComparedSettings
) -> dict[str, Any]:
    """Return the difference, its interval and its p, the difference as a share of ``a``, and the
    ratio ``b / a``."""
    low, high, p = (
        (estimate.low, estimate.high, estimate.p) if how.is_tested else (None, None, None)
    )
    has_ratio = a is not None and b is not None and a != 0 and estimate.value is not None
    return {
        "difference": estimate.value,
        "low": low,
        "high": high,
        "relative": estimate.value / a if has_ratio else None,  # type: ignore[operator]
        "ratio": b / a if has_ratio else None,  # type: ignore[operator]
        "p": p,
    }


def _shown_finding(found: Verdict, how: ComparedSettings) -> str:
    """Return the finding to show; without a test, whether there is a difference at all."""
    return (found if how.is_tested or found is Verdict.equal else Verdict.described).value


# ------------------------------------------------------------------------------------------------
# the machine


def _unlike_machines(sides: Sequence[tuple[Side, Side]]) -> str | None:
    """Return why measures that depend on the size of the machine cannot be compared; None if they
    can."""
    guessed = next((side for pair in sides for side in pair if side.result.is_size_guessed), None)
    if guessed is not None:
        return (
            f"bare job rows do not contain the size of the machine of {guessed.where}; give "
            "its "
            "processors with --procs N"
        )
    for a, b in sides:
        if a.result.procs_total != b.result.procs_total:
            return (
                f"the machines differ: {a.result.procs_total} and {b.result.procs_total} processors"
            )
    return None


def _utilisation(
    sides: Sequence[tuple[Side, Side]], pairs: list[Matched], how: ComparedSettings
) -> dict[str, Any]:
    """Compare the utilisation from the first to the last submit; each day is one value."""
    days = [_daily(pair, a.result.procs_total) for pair, (a, _) in zip(pairs, sides, strict=True)]
    one, other = days[0]
    a, b = (float(values.mean()) if len(values) else None for values in days[0])
    change = difference_estimate(one, other, how.confidence)
    if not (
        change.low is None or change.high is None or change.value is None or a is None or b is None
    ):
        # Bounds keep both machines at most full: b / a lies between b and 1 / a.
        low, high = (
            min(max(change.low, a * b - a), change.value),
            max(min(change.high, 1.0 - a), change.value),
        )
        change = replace(change, low=low, high=high)
    difference = Difference(a, b, change, None, None)
    return _record(
        "utilisation_submit",
        "share",
        "Utilisation",
        difference,
        how,
        _means(days),
        is_less_better=False,
    )


def _daily(pair: Matched, procs_total: int) -> tuple[Floats, Floats]:
    """Return the utilisation of equal parts, of about a day each, from the first to the last submit
    of both."""
    first = min(int(ran.workload.submit.min()) for ran in pair.common)
    last = max(int(ran.workload.submit.max()) for ran in pair.common)
    if last <= first:
        return np.empty(0), np.empty(0)
    parts = max(round((last - first) / DAY), 1)
    parts = parts if parts >= 16 else max(min(24 * parts, (last - first) // MICROSECONDS), 1)
    edges = np.linspace(first, last, parts + 1).astype(np.int64)
    one, other = (used_procs(ran).means(edges) / procs_total for ran in pair.common)
    return one, other


def _makespan(pairs: list[Matched], how: ComparedSettings) -> dict[str, Any]:
    """Compare the makespan: one number per schedule, so an interval exists only over replicas."""
    spans = [
        [makespan_us(ran.workload.submit, ran.end) / MICROSECONDS for ran in pair.common]
        for pair in pairs
    ]
    one, other = spans[0]
    found = Verdict.better if other < one else Verdict.worse
    if one == other:
        found = Verdict.equal
    elif abs(other - one) < how.practical * max(one, other):
        found = Verdict.negligible
    difference = Difference(one, other, Estimate(other - one, None, None, None, 1, 0.0), None, None)
    means = [(a, b) for a, b in spans] if len(spans) > 1 else []
    return _record("makespan_s", "s", "Makespan", difference, how, means, found=found)


# ------------------------------------------------------------------------------------------------
# the parts


_OF_THE_WHOLE = (
    "name",
    "unit",
    "words",
    "is_less_better",
    "a",
    "b",
    "difference",
    "low",
    "high",
    "relative",
    "ratio",
    "p",
    "block",
    "finding",
)


def _parts(
    jobs: Matched, key: str, how: ComparedSettings, whole: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Compare each part of the jobs by one breakdown; p is corrected over the whole table.

    A part that holds every job, such as the only month, repeats the test of the ``whole``.  It
    keeps that result: a correction for the number of quantities, which the whole does not have,
    would give one test two results.
    """
    codes, labels = BREAKDOWNS[key](jobs.a, np.arange(len(jobs.a)))
    if len(set(codes.tolist())) == 1:
        answered = {record["name"]: record for record in whole}
        return [
            {"label": str(labels[int(codes[0])]), "jobs": answered[quantity.name]["jobs"]}
            | {name: answered[quantity.name][name] for name in _OF_THE_WHOLE}
            | {"p_holm": answered[quantity.name]["p"]}
            for quantity in QUANTITIES
        ]
    records: list[dict[str, Any]] = []
    estimates: list[Estimate] = []
    for code, label in enumerate(labels):
        is_in = codes == code
        if not is_in.any():
            continue
        part = jobs.a.only(is_in), jobs.b.only(is_in)
        for quantity in QUANTITIES:
            one, other = _values(*part, quantity)
            difference = paired(
                one,
                other,
                how.confidence,
                has_effect=False,
                least_block=a_day_of(part[0].workload.submit),
            )
            record = _record(quantity.name, quantity.unit, quantity.words, difference, how)
            records.append({"label": str(label), "jobs": len(one)} | record)
            estimates.append(difference.mean)
    for record, estimate, p in zip(
        records, estimates, holm([one.p for one in estimates]), strict=True
    ):
        record["p_holm"] = p if how.is_tested else None
        larger = None if record["a"] is None else max(record["a"], record["b"])
        found = finding_of(estimate, larger, practical=how.practical, p=p, level=1 - how.confidence)
        record["finding"] = _shown_finding(found, how)
    return records
