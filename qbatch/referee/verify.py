"""The referee: it checks a finished schedule, ours or another simulator's, against the rules of its
policy.

It calls no scheduler: every result follows from the schedule alone.  A rule that cannot be decided
is reported as unchecked, never as kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from qbatch.model.record import Schedule
from qbatch.planning.policy import ListRules, PlanRules, Policy, name_of
from qbatch.policies import POLICIES, load_policy
from qbatch.policies.registry import PolicyEntry
from qbatch.policies.slice_rules import SliceRules
from qbatch.referee import every_schedule
from qbatch.referee.breach import CODES, Breach, Findings, jobs_counted, seconds
from qbatch.referee.conservative_plan import PlanCheck
from qbatch.referee.queue_order import check_queue
from qbatch.referee.reading import NEVER, Conditions, read_finished
from qbatch.referee.site_check import check_site
from qbatch.referee.slices import check_slices

SCHEMA = "qbatch.verify/1"
"""The schema of the document that ``qbatch verify --json`` prints."""

__all__ = [
    "CODES",
    "SCHEMA",
    "Breach",
    "Conditions",
    "Judgement",
    "feasibility",
    "judge",
    "read_finished",
    "seconds",
    "verdict_document",
]


@dataclass(frozen=True, slots=True)
class Judgement:
    """The outcome of the checks: every breach, in order of instant, with what was checked and what
    could not be.

    ``schedule``: the jobs that were judged, without refused ones, with estimates never below their
    run times. ``taken_back``: how many promises the policy withdrew, and to how many jobs, which is
    no breach.  ``ids``: by job number, the identifier of the job on its cluster.
    """

    schedule: Schedule
    policy: str | None
    breaches: tuple[Breach, ...]
    checked: tuple[str, ...]
    unchecked: tuple[str, ...]
    notes: tuple[str, ...] = ()
    taken_back: tuple[int, int] = (0, 0)
    ids: Mapping[int, str] = field(default_factory=dict)

    @property
    def is_kept(self) -> bool:
        """Whether the schedule has no breach of the rules that could be checked."""
        return not self.breaches

    @property
    def not_checked(self) -> tuple[str, ...]:
        """The rules that could not be checked, in a few words each: ``unchecked`` without the
        reasons."""
        return tuple(text.partition(": ")[0] for text in self.unchecked)


def judge(
    schedule: Schedule,
    policy: str | None = None,
    known: Conditions | None = None,
    *,
    is_killing: bool = True,
) -> Judgement:
    """Check a finished schedule against the rules of every schedule and those of the policy.

    ``known``: facts in addition to the schedule.  Refused jobs are not checked. ``is_killing``:
    whether a job must end at its estimate; if not, estimates are raised to run times.

    Raises:
        UsageError: there is no such policy.
        InputError: the reservations of the machine cannot be placed on the clock of the log.
    """
    chosen = load_policy(policy) if policy is not None else None
    known = known or Conditions()
    is_judged = np.ones(len(schedule), np.bool_)
    is_judged[[each.row for each in schedule.rejected]] = False
    done, found = schedule.only(is_judged), Findings()
    if known.is_preempted:
        is_killing = False
        found.unchecked.append(
            "capacity and run times: the log has Preemption: TS, so its run times include time in "
            "which jobs were suspended"
        )
    late = done.workload.run - done.workload.estimate
    if is_killing and known.is_recorded and (late > 0).any():
        is_killing = False
        found.unchecked.append(
            f"run times against estimates: {jobs_counted(int((late > 0).sum()))} ran longer, by "
            f"{seconds(late.max())} at most; a real system ends jobs late"
        )
    _judge_machine(done, known, found, is_killing=is_killing)
    if is_killing:
        found.checked.append("run times against estimates")
    # From here on estimates are raised to the run times, so that an estimate is an upper bound.
    work = done.workload
    lasted = np.maximum(work.run, np.where(done.is_in_pieces, work.run, done.end - done.start))
    done = replace(done, workload=work.changed(estimate=np.maximum(work.estimate, lasted)))
    _judge_promises(done, chosen, found, POLICIES.get((policy or "").partition(":")[0]))
    _judge_deadlines(done, chosen, found)
    if chosen is None:
        found.unchecked.append("order and backfilling: name the policy with --policy")
    elif known.is_preempted:
        found.unchecked.append(
            f"order and backfilling of {name_of(chosen)}: the log does not contain which job ran "
            "when"
        )
    else:
        _judge_policy(done, chosen, known, found)
    if done.workload.skipped:
        found.unchecked.append(
            "the jobs left out: they are assumed never to have waited in the queue"
        )
    if known.known_until is not None:
        found.unchecked.append(
            f"events after {seconds(known.known_until)}, when the log was written: jobs still ran "
            "and waited"
        )
    breaches = _known_breaches(found, known)
    name = name_of(chosen) if chosen is not None else None
    count = len(schedule.rejected)
    refused = (
        (
            f"{jobs_counted(count)} {'was' if count == 1 else 'were'} refused by the policy and never ran",
        )
        if count
        else ()
    )
    counts = every_schedule.taken_back(done)
    withdrawn = int(counts.sum()), int((counts > 0).sum())
    return Judgement(
        done,
        name,
        breaches,
        tuple(found.checked),
        tuple(found.unchecked),
        (*known.notes, *refused),
        withdrawn,
        {} if known.site is None else known.site.rows.ids,
    )


def feasibility(schedule: Schedule, known: Conditions) -> tuple[tuple[Breach, ...], str]:
    """Return the breaches of a schedule of a real machine against its machine file, and a text of
    what was checked on the hosts; the text is empty if nothing could be.

    It is the part of :func:`judge` that asks whether the schedule can have run there
    (docs/spec/production.md 9).  A real system ends jobs late, so estimates are not checked.

    Raises:
        InputError: the reservations of the machine cannot be placed on the clock of the log.
    """
    found = Findings()
    _judge_machine(schedule, known, found, is_killing=False)
    return _known_breaches(found, known), found.on_hosts


def _judge_machine(done: Schedule, known: Conditions, found: Findings, *, is_killing: bool) -> None:
    """Check the times of jobs, and what the machine has."""
    found.breaches += every_schedule.check_times(done, is_killing=is_killing)
    found.checked.append("submissions, starts, run times and ends; one row per job")
    if not known.is_preempted:
        _judge_capacity(done, known.host_cpus, found, has_memory=known.site is not None)
    if known.site is not None:
        check_site(done, known.site, found, is_preempted=known.is_preempted)


def _known_breaches(found: Findings, known: Conditions) -> tuple[Breach, ...]:
    """Return the breaches before the log was written, in order of instant."""
    until = NEVER if known.known_until is None else known.known_until
    breaches = [breach for breach in found.breaches if breach.instant < until]
    return tuple(sorted(breaches, key=lambda breach: breach.rank))


def _judge_capacity(
    done: Schedule, host_cpus: Sequence[int], found: Findings, *, has_memory: bool
) -> None:
    found.breaches += every_schedule.check_capacity(done, host_cpus)
    held = " held by jobs with one execution interval" if done.lacks_pieces.any() else ""
    found.checked.append(f"capacity at every instant: {done.workload.procs_total} processors{held}")
    if host_cpus:
        found.checked.append(f"capacity of each of {len(host_cpus)} hosts at every instant")
        if not has_memory:
            found.unchecked.append("memory of hosts: job rows do not contain it")
    count = int(done.is_in_pieces.sum())
    if count and done.pieces is None:
        found.unchecked.append(
            f"the {jobs_counted(count)} with several execution intervals, and their processors: bare job "
            "rows do not contain the "
            "intervals; verify the result's directory (replay --out DIR)"
        )
    elif count and done.pieces is not None:
        found.breaches += every_schedule.check_pieces(done)
        found.checked.append(
            f"the {len(done.pieces):,} execution intervals of {jobs_counted(count)}: times, work, and "
            "capacity"
        )


def _judge_promises(
    done: Schedule, chosen: Policy | None, found: Findings, entry: PolicyEntry | None
) -> None:
    recorded = int((done.promise >= 0).sum())
    rules = getattr(chosen, "rules", None)
    if not recorded:
        return
    if isinstance(rules, PlanRules) and rules.compression == "scratch":
        found.unchecked.append(
            "promises: a plan made from scratch at each early end has none to keep"
        )
        return
    if entry is not None and (entry.is_interrupting or entry.breaks_promises):
        breaking = "quanta and shares" if entry.is_interrupting else "corrected predictions"
        broken = sum(1 for _ in every_schedule.check_promises(done))
        found.unchecked.append(
            f"promises: {breaking} may delay them; {broken:,} of {recorded:,} were"
        )
        return
    found.breaches += every_schedule.check_promises(done)
    found.checked.append(f"the promises recorded in the rows, of {recorded:,} jobs")


def _judge_deadlines(done: Schedule, chosen: Policy | None, found: Findings) -> None:
    count = int((done.workload.deadline >= 0).sum())
    if not count:
        return
    missed = list(every_schedule.check_deadlines(done))
    if getattr(chosen, "takes_deadlines", False):
        found.breaches += missed
        found.checked.append(f"the deadlines of {count:,} jobs that were accepted")
    else:
        of = "no policy is named" if chosen is None else f"{name_of(chosen)} keeps none"
        found.unchecked.append(
            f"deadlines: {of}; of {count:,} jobs {len(missed):,} ended after theirs"
        )


def _judge_policy(done: Schedule, chosen: Policy, known: Conditions, found: Findings) -> None:
    rules = getattr(chosen, "rules", None)
    if isinstance(rules, SliceRules):
        _judge_slices(done, name_of(chosen), rules, found)
    elif isinstance(rules, ListRules | PlanRules) and not known.is_one_pool:
        found.unchecked.append(
            f"order and backfilling of {name_of(chosen)}: the checks are for one pool of "
            "processors, and the machine has hosts"
        )
    elif isinstance(rules, ListRules | PlanRules) and done.is_in_pieces.any():
        for row in np.flatnonzero(done.is_in_pieces).tolist():
            number, count = int(done.workload.number[row]), int(done.piece_count[row])
            intervals = f"{count} execution interval{'' if count == 1 else 's'}"
            text = f"job {number} ran in {intervals}; {name_of(chosen)} gives every job one"
            found.breaches.append(Breach("in-pieces", int(done.start[row]), (number,), text))
        found.unchecked.append(
            f"order and backfilling of {name_of(chosen)}, which gives every job one execution "
            "interval"
        )
    elif (
        isinstance(rules, ListRules)
        and (rules.is_stopping or rules.is_by_shadow)
        and rules.order == "fcfs"
    ):
        found.breaches += check_queue(done, is_backfilling=rules.is_by_shadow)
        easy = "EASY: the guarantee to the head, every backfilled start, needless waits"
        found.checked.append(
            easy if rules.is_by_shadow else "FCFS: the order of the starts, needless waits"
        )
    elif isinstance(rules, PlanRules) and rules.compression != "scratch":
        _judge_plan(done, rules.compression, known, found)
    else:
        found.unchecked.append(
            f"order and backfilling of {name_of(chosen)}: there is no check for this policy yet"
        )


def _judge_slices(done: Schedule, name: str, rules: SliceRules, found: Findings) -> None:
    if done.lacks_pieces.any():
        found.unchecked.append(
            f"slices of {name}: bare job rows do not contain when jobs ran; verify the result's "
            "directory"
        )
        return
    if rules.switch == 0:
        found.unchecked.append(
            f"slices of {name}: without switches they do not follow from the schedule alone"
        )
        return
    found.breaches += check_slices(done, rules)
    found.checked.append(
        f"slices of {name}: no job runs during a switch or beyond a slice, or waits in its own "
        "after its start"
    )
    found.unchecked.append(
        f"order and backfilling of {name}: there is no check of the decisions inside a slice yet"
    )


def _judge_plan(done: Schedule, compression: str, known: Conditions, found: Findings) -> None:
    check = PlanCheck(done, is_compressing=compression != "none", known_until=known.known_until)
    found.breaches += check.breaches()
    total = len(done)
    if check.promised:
        found.checked.append(
            f"conservative: starts against first promises, of {check.promised:,} of {total:,} jobs"
        )
    if check.derived:
        derived = f"{check.derived:,} of {total:,} jobs"
        found.checked.append(
            f"conservative: first promises against the plan at the arrival, of {derived}"
        )
    if check.promised < total:
        found.unchecked.append(
            f"the promises of {total - check.promised:,} jobs: not checkable without promises in "
            "the rows "
            "(job rows of qbatch hold them; after an early end a plan does not follow from the "
            "schedule alone)"
        )
    elif check.derived < total:
        found.unchecked.append(
            f"the first promises of {total - check.derived:,} jobs against the plan at their "
            "arrival"
        )
    if compression == "none":
        return
    found.checked.append(
        "conservative: after an early end, whether the next job to start was moved up"
    )
    found.unchecked.append(f"the order in which compression ({compression}) moved the jobs")


def _ids(breach: Breach, known: Mapping[int, str]) -> dict[str, Any]:
    """Return the identifiers of the jobs of a breach on their cluster, empty without any."""
    ids = [known.get(job, "") for job in breach.jobs]
    return {"ids": ids} if any(ids) else {}


def verdict_document(verdict: Judgement, most: int) -> dict[str, Any]:
    """Return a verdict for JSON, with at most ``most`` breaches; instants in seconds of the log's
    clock.

    ``promises_taken_back`` exists only if the policy withdrew one.
    """
    done, (promises, jobs) = verdict.schedule, verdict.taken_back
    breaches = [
        {
            "code": each.code,
            "at_s": each.instant / 1e6,
            "at": seconds(each.instant),
            "jobs": list(each.jobs),
            "text": each.text,
            **_ids(each, verdict.ids),
        }
        for each in verdict.breaches[:most]
    ]
    taken = {"promises_taken_back": {"promises": promises, "jobs": jobs}} if promises else {}
    return {
        "schedule": done.workload.name,
        "policy": verdict.policy,
        "jobs": len(done),
        "procs": done.workload.procs_total,
        "skipped": done.workload.skipped,
        "kept": verdict.is_kept,
        "all_checked": not verdict.unchecked,
        "breaches_total": len(verdict.breaches),
        "breaches": breaches,
        "checked": list(verdict.checked),
        "unchecked": list(verdict.unchecked),
        "notes": list(verdict.notes),
    } | taken
