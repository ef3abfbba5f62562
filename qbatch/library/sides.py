"""Read the inputs of a comparison, the two sides and their replicas, and make the record of it.

``qbatch compare`` and :func:`qbatch.compare` share this module.  A side is named as on a command
line (``DIR``, ``DIR:POLICY``, job rows, a log with waits), or is a result object.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from qbatch.metrics import BREAKDOWNS
from qbatch.model.errors import UsageError, suggestion
from qbatch.referee.reading import SiteFiles, read_finished, site_files
from qbatch.referee.site import Site
from qbatch.referee.verify import feasibility, seconds
from qbatch.reports.comparison import (
    PARTS,
    ComparedSettings,
    HistoryCheck,
    Side,
    check_pairs,
    compare,
)
from qbatch.results.reading import read_result, split_name
from qbatch.results.recorded import is_log
from qbatch.results.result import Result
from qbatch.workloads.left_out import (
    EXCLUSIVE,
    FEATURES,
    GPUS,
    HELD,
    LICENCES,
    MEMORY,
    OTHERS,
    PARTITIONS,
    QOS,
    RESERVATIONS,
    LeftOut,
)
from qbatch.workloads.resource_rows import ids_in_words, kinds_of

Named = str | Result
"""A side or a replica: its name, or its result."""


def settings_of(
    by: Sequence[str], confidence: float, practical: float, seed: int
) -> ComparedSettings:
    """Return the settings of a comparison, with the usual breakdowns if none is named.

    Raises:
        UsageError: one of them is out of range or unknown.
    """
    for key in by:
        if key not in BREAKDOWNS:
            raise UsageError(
                f"--by {key!r}: use one of {', '.join(BREAKDOWNS)}{suggestion(key, BREAKDOWNS)}"
            )
    if not 0 < confidence < 1:
        raise UsageError(f"--confidence {confidence:g}: is not between 0 and 1; 0.95 is usual")
    if not 0 <= practical < 1:
        raise UsageError(
            f"--practical {practical:g}: should be a share from 0 to below 1, such as 0.01"
        )
    return ComparedSettings(confidence, practical, seed, tuple(dict.fromkeys(by)) if by else PARTS)


def comparison_of(
    a: Named,
    b: Named | None,
    replicas: Sequence[Named],
    settings: ComparedSettings,
    *,
    may_logs_differ: bool = False,
    procs: int | None = None,
    machine: str | None = None,
    resources: str | None = None,
) -> dict[str, Any]:
    """Return the record of a comparison, schema ``qbatch.compare/1``.

    Args:
        b: None if ``a`` holds two policies.
        replicas: results of the same two policies with other seeds, or of other logs with
            ``may_logs_differ``.
        procs: processors of the machine of job rows and of logs.
        machine, resources: the machine file and the side file of the log that is one side.

    Raises:
        InputError: a result cannot be read, or the jobs do not match.
        UsageError: arguments conflict.
    """
    sized, site = _Sized(procs), site_files(machine, resources, procs)
    first, second = _sides(a, b, sized)
    if site is not None:
        if first.is_history == second.is_history:
            raise UsageError(
                "--machine and --resources are about a log with its own waits; make one of A and B "
                "such a log, or leave them out"
            )
        first, second = (
            _checked(each, site) if each.is_history else each for each in (first, second)
        )
    _check_replicas([_place(name) for name in (a, *([b] if b is not None else []))], replicas)
    pairs = [
        _replica(each, first.schedule.policy, second.schedule.policy, sized) for each in replicas
    ]
    check_pairs([(first, second), *pairs], may_logs_differ=may_logs_differ)
    if may_logs_differ and not pairs:
        raise UsageError("--logs-differ needs replicas: name them with --with DIR, or leave it out")
    sized.check(_called(a))
    return compare(first, second, settings, pairs)


_HOLDS_BACK = frozenset(
    (QOS, HELD, RESERVATIONS, LICENCES, GPUS, OTHERS, FEATURES, EXCLUSIVE, MEMORY, PARTITIONS)
)
"""Kinds of what a log leaves out that can keep a job from starting, whatever the policy."""


_FEW = 20
"""If fewer than one in so many jobs have it, what a log leaves out cannot explain a difference."""


def _matters(lacking: LeftOut) -> bool:
    return lacking.what in _HOLDS_BACK and (lacking.jobs or 0) * _FEW > (lacking.of or 0)


def _unknown_reservations(site: Site) -> str:
    """Return the reservations that jobs name and the machine does not have."""
    known = {each.name for each in site.machine.reservations}
    named = {each.reservation for each in site.rows.requests if each.reservation}
    return ", ".join(sorted(named - known)[:5])


def check_of(path: str, site: SiteFiles) -> HistoryCheck:
    """Return whether the schedule of a log can have run on a machine.

    Raises:
        InputError: the log or the side file cannot be read.
    """
    [(schedule, known)] = read_finished(path, site=site)
    assert known.site is not None
    rows = known.site.rows
    breaches, on_hosts = feasibility(schedule, known)
    doubt = ""
    if known.is_preempted:
        doubt = "the log has Preemption: TS, so it does not contain when its jobs ran"
    elif not on_hosts:
        doubt = (
            f"the side file {site.resources} does not name the hosts on which jobs ran, so what they "
            "had there is unchecked"
        )
    elif held := [each.words for each in known.lacking if _matters(each)]:
        doubt = (
            f"waits of the log also hold what the replay does not know ({'; '.join(held)}), so a "
            "difference may come from that"
        )
    elif unknown := _unknown_reservations(known.site):
        doubt = f"jobs of the log name reservations that {site.path} does not have: {unknown}"
    first = breaches[0] if breaches else None
    named = "" if first is None else ids_in_words(first.jobs, rows.ids)
    return HistoryCheck(
        site.path,
        site.machine.digest,
        site.machine.procs,
        kinds_of(rows),
        rows.sha256,
        dict(Counter(breach.code for breach in breaches)),
        ""
        if first is None
        else f"{first.code} at {seconds(first.instant)}: {first.text}{named and f' ({named})'}",
        on_hosts,
        doubt,
        f"qbatch verify {path} --machine {site.path} --resources {site.resources} --all",
    )


def checks_of(results: Sequence[str], site: SiteFiles | None) -> dict[str, HistoryCheck]:
    """Return the checks of the logs among some results, by path."""
    return {} if site is None else {path: check_of(path, site) for path in filter(is_log, results)}


def _checked(side: Side, site: SiteFiles) -> Side:
    """Return the side of a log on the machine on which its schedule was checked."""
    result = side.result.with_facts(procs_total=site.machine.procs)
    return replace(side, result=result, check=check_of(side.result.path, site))


class _Sized:
    """Reads results and job rows; bare job rows get the given machine size."""

    def __init__(self, procs: int | None) -> None:
        self.procs = procs
        self.is_used = False

    def read(self, named: Named) -> Result:
        if isinstance(named, str) and is_log(named):
            self.is_used = True
            return read_result(named, procs=self.procs)
        result = read_result(named) if isinstance(named, str) else named
        if self.procs is None or not result.is_size_guessed:
            return result
        self.is_used = True
        return result.sized(self.procs)

    def check(self, first: str) -> None:
        """Refuse a machine size that no input needs."""
        if self.procs is not None and not self.is_used:
            raise UsageError(
                f"--procs is for bare job rows, and {first} contains the size of its machine; "
                "leave it out"
            )


def _sides(a: Named, b: Named | None, sized: _Sized) -> tuple[Side, Side]:
    if b is None:
        where, result, policy = _read(a, sized)
        if result.is_recorded:
            how = f"name B too, as in: qbatch compare {_called(a)} DIR:POLICY"
            raise UsageError(f"{_called(a)}: is one schedule, that of the log; {how}")
        if policy is not None or len(result.schedules) != 2:
            has = (
                "names one policy" if policy is not None else f"holds {', '.join(result.policies)}"
            )
            raise UsageError(
                f"{_called(a)}: {has}; name B too, as in: qbatch compare {where}:POLICY "
                f"{where}:POLICY"
            )
        first, second = (
            Side(result, each, f"{where}:{each.policy}", each.policy) for each in result.schedules
        )
        return first, second
    sides = [_side(named, sized) for named in (a, b)]
    first, second = sides
    if first.label == second.label:
        first, second = (replace(side, label=side.where) for side in sides)
    if first.label == second.label:
        first, second = (
            replace(side, label=f"{name} ({side.label})")
            for name, side in zip("AB", sides, strict=True)
        )
    return first, second


def _side(named: Named, sized: _Sized) -> Side:
    where, result, policy = _read(named, sized)
    if policy is None and len(result.schedules) != 1:
        names = ", ".join(f"{where}:{name}" for name in result.policies)
        raise UsageError(f"{where}: holds {len(result.schedules)} policies; name one of {names}")
    schedule = result.only([policy] if policy is not None else []).schedules[0]
    called = named if isinstance(named, str) else f"{where}:{schedule.policy}"
    if not schedule.ran.any():
        raise UsageError(f"{called}: no job ran under {schedule.policy}")
    return Side(result, schedule, called, schedule.policy, result.is_recorded)


def _read(named: Named, sized: _Sized) -> tuple[str, Result, str | None]:
    """Read DIR or DIR:POLICY; return the directory, its result and the policy."""
    path, policy = split_name(named) if isinstance(named, str) else (named.called, None)
    return path, sized.read(path if isinstance(named, str) else named), policy


def _called(named: Named) -> str:
    return named if isinstance(named, str) else named.called


def _place(named: Named) -> str | int:
    """Return a key that is equal for two names of one result; for results in memory, their
    identity."""
    if isinstance(named, str):
        return os.path.realpath(split_name(named)[0])
    return os.path.realpath(named.path) if named.path else id(named)


def _check_replicas(first: list[str | int], replicas: Sequence[Named]) -> None:
    """Refuse a result that occurs twice: it would make the intervals too narrow."""
    known = set(first)
    for each in replicas:
        place = os.path.realpath(each) if isinstance(each, str) else _place(each)
        if place in known:
            raise UsageError(
                f"--with {_called(each)}: is compared already; a replica is a result of another "
                "seed or log"
            )
        known.add(place)


def _replica(named: Named, a: str, b: str, sized: _Sized) -> tuple[Side, Side]:
    path = _called(named)
    if a == b:
        raise UsageError(
            f"--with {path}: A and B are one policy ({a}) in two results; replicas need two "
            "policies"
        )
    result = sized.read(named).only([a, b])
    if not all(schedule.ran.any() for schedule in result.schedules):
        raise UsageError(f"--with {path}: no job ran under one of {a}, {b}")
    one, other = result.schedules
    return Side(result, one, path, a), Side(result, other, path, b)
