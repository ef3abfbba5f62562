"""Results gathered into a study: the policies, the workloads, and warnings where a comparison is
not fair."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from qbatch.model.errors import InputError, UsageError, suggestion
from qbatch.model.record import Schedule
from qbatch.policies.registry import name_among
from qbatch.reports.comparison import HistoryCheck
from qbatch.reports.host_use import HostMap
from qbatch.results.pieces import unknown_pieces
from qbatch.results.reading import read_named
from qbatch.results.recorded import POLICY
from qbatch.results.replicas import check_alike, check_distinct, jobs_of, log_of
from qbatch.results.result import Result
from qbatch.results.run_words import left_out_notes, missing_estimates, recorded_notes, short_name

_WAY_OUT = (
    "policies are compared on one machine and under the same options: report the others separately"
)


@dataclass(frozen=True, slots=True)
class Replica:
    """One workload (a log, a seed) and its schedules by policy; ``paths`` are the results from
    which they come.

    ``said``: remarks about a recorded log among them; ``check``: of its schedule on a machine.
    """

    result: Result
    paths: tuple[str, ...]
    documents: tuple[dict[str, Any], ...]
    said: tuple[str, ...] = ()
    check: HistoryCheck | None = None

    def schedule(self, policy: str) -> Schedule | None:
        """Return the schedule of a policy; None if the policy was not run, or ran no job."""
        return next(
            (each for each in self.result.schedules if each.policy == policy and each.ran.any()),
            None,
        )

    @property
    def history(self) -> tuple[str, ...]:
        """The policy names of recorded logs in it."""
        return (
            (POLICY,)
            if any(document.get("recorded") is True for document in self.documents)
            else ()
        )

    def metrics(self, policy: str) -> dict[str, Any]:
        """Return a policy's metrics from the result; empty for bare job rows."""
        for document in self.documents:
            for one in document.get("results") or []:
                if (
                    isinstance(one, dict)
                    and one.get("policy") == policy
                    and isinstance(one.get("metrics"), dict)
                ):
                    return dict(one["metrics"])
        return {}


@dataclass(frozen=True, slots=True)
class ReportStudy:
    """The policies in order, the first of them the baseline; their replicas; and warnings for the
    reader."""

    policies: tuple[str, ...]
    replicas: tuple[Replica, ...]
    notes: tuple[str, ...]

    @property
    def first(self) -> Replica:
        """The replica that charts of single jobs show."""
        return self.replicas[0]

    @property
    def has_replicas(self) -> bool:
        """Whether intervals can be taken over replicas."""
        return len(self.replicas) > 1


@dataclass(frozen=True, slots=True)
class OnMachine:
    """What a machine file and a side file add to a study.

    ``measured``: by policy, the use of resources and of partitions, and the billed hours, as in the
    record of a replay.  ``maps``: what each map of hosts shows.  ``result``: the schedules of which
    the hosts of jobs are known, with what their jobs ask for; None: there are none.
    ``reservations``: the tables of the machine file.  ``has_partitions``: whether the machine has
    any.  ``notes``: what a reader must know.
    """

    measured: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    maps: Sequence[HostMap] = ()
    result: Result | None = None
    reservations: Sequence[Mapping[str, Any]] = ()
    has_partitions: bool = False
    notes: Sequence[str] = ()


def gather(
    paths: Sequence[str],
    *,
    policies: Sequence[str] = (),
    procs: int | None = None,
    checks: Mapping[str, HistoryCheck] = MappingProxyType({}),
) -> ReportStudy:
    """Read results and gather them: results of one workload are combined, others become replicas.

    ``checks``: of logs by path; such a log is of the machine of its check.

    Raises:
        InputError: a result is damaged, machines or options differ, or a policy's run occurs twice.
        UsageError: a requested policy is in none of them.
    """
    sizes = {path: checks[path].procs if path in checks else procs for path in paths}
    read = [(path, read_named(path, procs=sizes[path])) for path in paths]
    check_alike(read, _WAY_OUT)
    replicas = tuple(_replica(group, checks) for group in _groups(read))
    check_distinct([(", ".join(one.paths), one.result.schedules) for one in replicas])
    names = tuple(
        dict.fromkeys(
            each.policy for one in replicas for each in one.result.schedules if each.ran.any()
        )
    )
    policies = [name_among(policy, names) for policy in policies]
    for policy in policies:
        if policy not in names:
            raise UsageError(
                f"--policy {policy!r}: there is none{suggestion(policy, names)}; the results have "
                f"{', '.join(names)}"
            )
    chosen = tuple(dict.fromkeys(policies)) or names
    replicas = tuple(one for each in replicas if (one := _only(each, chosen)).result.schedules)
    return ReportStudy(chosen, replicas, tuple(_notes(replicas, chosen)))


def with_baseline(study: ReportStudy, baseline: str | None) -> ReportStudy:
    """Return the study with this policy first, so that the others are compared with it.

    Raises:
        UsageError: there is no such policy.
    """
    if baseline is None:
        return study
    baseline = name_among(baseline, study.policies)
    if baseline not in study.policies:
        known = ", ".join(study.policies)
        raise UsageError(
            f"--baseline {baseline!r}: there is none{suggestion(baseline, study.policies)}; known "
            f"are {known}"
        )
    order = (baseline, *(policy for policy in study.policies if policy != baseline))
    return ReportStudy(order, tuple(_only(one, order) for one in study.replicas), study.notes)


def _only(replica: Replica, policies: tuple[str, ...]) -> Replica:
    schedules = tuple(
        found for policy in policies if (found := replica.schedule(policy)) is not None
    )
    return replace(replica, result=replace(replica.result, schedules=schedules))


def _groups(read: list[tuple[str, Result]]) -> list[list[tuple[str, Result]]]:
    """Group results by log, seed and options.  A recorded log belongs to every run of that log,
    whatever its seed."""
    found: dict[str, list[tuple[str, Result]]] = {}
    for path, result in read:
        if not result.is_recorded:
            document = result.document
            key = json.dumps(
                [log_of(result), document.get("seed"), document.get("options")], sort_keys=True
            )
            found.setdefault(key, []).append((path, result))
    runs = [(log_of(group[0][1]), group) for group in found.values()]
    alone = []
    for path, result in read:
        same_log = [group for log, group in runs if result.is_recorded and log == log_of(result)]
        for group in same_log:
            group.append((path, result))
        alone += [[(path, result)]] if result.is_recorded and not same_log else []
    places = {path: place for place, (path, _) in enumerate(read)}
    groups = [sorted(group, key=lambda one: places[one[0]]) for group in (*found.values(), *alone)]
    return sorted(groups, key=lambda group: places[group[0][0]])


def _replica(group: list[tuple[str, Result]], checks: Mapping[str, HistoryCheck]) -> Replica:
    first = next((result for _, result in group if not result.is_recorded), group[0][1])
    found: dict[str, tuple[str, Schedule]] = {}
    names = dict(first.queue_names)
    for where, result in group:
        for one in result.schedules:
            if result.is_recorded and not first.is_recorded:
                one = jobs_of(one, max((each.only_ran() for each in first.schedules), key=len))
                one = _queues_of(one, names)
            if one.policy in found:
                raise InputError(
                    f"{where}: the policy {one.policy} with this log, seed and options is in "
                    f"{found[one.policy][0]} too; "
                    "leave one of the two out"
                )
            found[one.policy] = (where, one)
    whole = replace(first, schedules=tuple(one for _, one in found.values())).with_facts(
        name=first.name,
        procs_total=first.procs_total,
        clock=first.clock,
        queue_names=names,
    )
    said = [f"{where}: {note}" for where, result in group for note in _remarks(result, found)]
    return Replica(
        whole,
        tuple(where for where, _ in group),
        tuple(result.document for _, result in group),
        tuple(said),
        next((checks[where] for where, _ in group if where in checks), None),
    )


def _queues_of(schedule: Schedule, names: dict[int, str]) -> Schedule:
    """Return a schedule with the queue numbers of ``names``, by the queues' names; add those that
    ``names`` lacks.

    A server numbers its queues differently from the log that it replays.
    """
    own = schedule.workload.queue_names
    if not names or not own or own == names:
        return schedule
    numbers = {name: number for number, name in names.items()}
    queue = np.array(schedule.workload.queue)
    for number, name in own.items():
        if name not in numbers:
            numbers[name] = max(names) + 1
            names[numbers[name]] = name
        queue[schedule.workload.queue == number] = numbers[name]
    return replace(schedule, workload=schedule.workload.changed(queue=queue))


def _remarks(result: Result, found: dict[str, tuple[str, Schedule]]) -> list[str]:
    """Return the remarks about a recorded log: what it lacks, and the jobs that the replays of it
    left out."""
    if not result.is_recorded:
        return []
    own = result.schedules[0]
    kept = found[own.policy][1]
    notes = [
        f"{own.policy} is the schedule of the log itself, by its recorded waits",
        *recorded_notes(result),
    ]
    if len(kept) < len(own):
        notes.append(f"{len(kept):,} of its {len(own):,} jobs are shown, those that the replay ran")
    return notes


def _notes(replicas: tuple[Replica, ...], policies: tuple[str, ...]) -> list[str]:
    """Return the warnings for the reader."""
    notes = []
    logs = list(dict.fromkeys(short_name(one.result.name) for one in replicas))
    documents = [(one, one.result.document.get("log")) for one in replicas]
    hashes = {
        str((log.get("sha256") if isinstance(log, dict) else None) or one.result.name)
        for one, log in documents
    }
    if len(hashes) > 1:
        notes.append(
            f"These are results of {len(hashes)} different logs ({', '.join(logs)}). Values are "
            "means over them; pictures of "
            f"single jobs show {logs[0]} only."
        )
    for one in replicas:
        missing = [policy for policy in policies if one.schedule(policy) is None]
        if missing:
            notes.append(
                f"{', '.join(one.paths)} holds no job under {', '.join(missing)}: its numbers rest "
                "on fewer replicas."
            )
    counts = (
        {one.policy: int(one.ran.sum()) for one in replicas[0].result.schedules} if replicas else {}
    )
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{policy} {count:,}" for policy, count in counts.items())
        notes.append(
            f"The policies ran different numbers of jobs ({listed}): means over all jobs compare "
            "unlike sets."
        )
    notes += [
        f"{note}."
        for one in replicas
        for each in one.result.schedules
        if (note := unknown_pieces(each)) is not None
    ]
    for one, log in documents:
        notes += [
            f"The log: {note}."
            for note in (log.get("notes") or [] if isinstance(log, dict) else [])
        ]
        sides = (each["resources"] for each in one.documents if each.get("resources"))
        side: Any = next(sides, {} if one.check is None else {"kinds": one.check.kinds})
        notes += [
            f"{short_name(one.result.name)}: {note}."
            for each in one.documents
            for note in left_out_notes({"resources": side} | each)
        ]
        notes += [
            f"{short_name(one.result.name)}: {note}."
            for each in one.documents
            if (note := missing_estimates(each))
        ]
    notes += [f"{note}." for one in replicas for note in one.said]
    return list(dict.fromkeys(notes))
