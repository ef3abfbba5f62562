"""Which results may be compared, which are replicas of one experiment, and which jobs of two
schedules are the same.

A replica is the same experiment again: the same machine, the same options, and another seed, or, if
asked for, another log. Results that differ in anything else are different experiments, and a mean
over them means nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbatch.model.errors import InputError
from qbatch.model.record import Int64Array, Schedule
from qbatch.results.result import Result

Named = tuple[str, Result]
"""The user's name for a result, and the result."""

_MACHINE = {
    "hosts": "hosts:",
    "single_host": "single_host =",
    "one_pool": "one_pool =",
    "host_cpus": "processors by host:",
    "digest": "other hosts, memory or classes: digest",
}


def check_alike(read: Sequence[Named], way_out: str) -> None:
    """Refuse results of different machines or options; a seed may differ, and a log.

    ``way_out`` ends the message: how to solve the problem.

    Raises:
        InputError: they differ; the message names the result, the one that it is unlike, and the
            difference.
    """
    for each in read[1:]:
        for what in (*machine_differences(read[0], each), *option_differences(read[0], each)):
            raise InputError(f"{each[0]}: {what}; {way_out}")


def check_one_log(read: Sequence[Named]) -> None:
    """Refuse results of several logs.

    Raises:
        InputError: they do; the message names the result, the one that it is unlike, and both logs.
    """
    path, first = read[0]
    for where, result in read[1:]:
        if log_of(result) != log_of(first):
            raise InputError(
                f"{where}: is of another log ({_log_words(result)}) than {path} "
                f"({_log_words(first)}); replicas differ in "
                "their seed only: --logs-differ allows other logs as replicas too"
            )


def check_distinct(replicas: Sequence[tuple[str, Sequence[Schedule]]]) -> None:
    """Refuse a replica with the schedules of an earlier one: it would make the intervals too
    narrow.

    Raises:
        InputError: there is one; the message names both.
    """
    known: dict[str, str] = {}
    for where, schedules in replicas:
        digest = _digest(sorted(schedules, key=lambda schedule: schedule.policy), ("start", "end"))
        if digest in known:
            raise InputError(
                f"{where}: holds the same schedules as {known[digest]}, and counted twice they "
                "would make intervals too "
                "narrow; leave one out (a seed changes only what is drawn, as with --estimates f:N)"
            )
        known[digest] = where


def machine_differences(one: Named, other: Named) -> Iterator[str]:
    """Yield, in words, the differences of the second result's machine from that of the first."""
    (path, first), (_, result) = one, other
    if result.procs_total != first.procs_total:
        is_guess = first.is_size_guessed or result.is_size_guessed
        hint = " (bare job rows do not contain its size: give --procs)" if is_guess else ""
        yield f"has a machine of {result.procs_total} processors, but {path} one of {first.procs_total}{hint}"
    before, after = _machine(first), _machine(result)
    for key, words in _MACHINE.items():
        if key in before and key in after and before[key] != after[key]:
            yield f"has a machine with {words} {after[key]}, but {path} one with {before[key]}"


def option_differences(one: Named, other: Named) -> Iterator[str]:
    """Yield, in words, the options in which the second result differs from the first, without the
    seed; and whether their side files of resources differ."""
    (path, first), (_, result) = one, other
    if first.is_recorded or result.is_recorded:
        return  # a recorded log has no options
    options, others = _options(first), _options(result)
    if bool(options) != bool(others):
        lacking, other_name = ("it", path) if options else (path, "it")
        yield f"cannot be compared with {path}: {lacking} does not contain its options, as {other_name} does"
        return
    for key in sorted(set(options) | set(others)):
        if options.get(key) != others.get(key):
            yield f"was run with {key} = {others.get(key)}, but {path} with {options.get(key)}"
    found = (each.document.get("resources") for each in (first, result))
    sides = [each if isinstance(each, dict) else {} for each in found]
    if sides[0].get("sha256") != sides[1].get("sha256"):
        here, there = (each.get("name", "no side file") for each in sides)
        yield f"was run with the resources of {there}, but {path} with those of {here}"


def log_of(result: Result) -> str:
    """Return a key of the log: its hash, else its name; for bare job rows, a digest of the jobs
    that ran."""
    if not result.document:
        return jobs_digest(result)
    log = result.document.get("log")
    key = (log.get("sha256") or log.get("name")) if isinstance(log, dict) else None
    return str(key or Path(result.called).resolve())


def jobs_digest(result: Result) -> str:
    """Return a hash of the jobs that ran, the same under every policy: their numbers, submissions
    and sizes."""
    return _digest([next(schedule for schedule in result.schedules if schedule.ran.any())], ())


def _digest(schedules: Sequence[Schedule], names: Sequence[str]) -> str:
    """Return a hash of the jobs that ran, with some columns of the schedule."""
    digest = hashlib.sha256()
    for schedule in (each.only_ran() for each in schedules):
        work = schedule.workload
        for column in (
            work.number,
            work.submit,
            work.procs,
            *(getattr(schedule, name) for name in names),
        ):
            digest.update(np.ascontiguousarray(column).tobytes())
    return digest.hexdigest()


def _log_words(result: Result) -> str:
    log = result.document.get("log")
    digest = log.get("sha256") if isinstance(log, dict) else None
    return f"{result.name}, sha256 {digest[:12]}" if isinstance(digest, str) else result.name


def _machine(result: Result) -> dict[str, Any]:
    machine, digest = result.document.get("machine"), result.document.get("machine_digest")
    return (machine if isinstance(machine, dict) else {}) | (
        {} if digest is None else {"digest": digest}
    )


def _options(result: Result) -> dict[str, Any]:
    options = result.document.get("options")
    return (
        {key: value for key, value in options.items() if key != "seed"}
        if isinstance(options, dict)
        else {}
    )


# ------------------------------------------------------------------------------------------------
# the same jobs


def job_keys(numbers: Int64Array) -> NDArray[Any]:
    """Return a key for each row that two schedules share: the job number, and its rank by
    submission among equal numbers."""
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    begins = (
        np.concatenate([[True], ordered[1:] != ordered[:-1]]) if len(ordered) else np.zeros(0, bool)
    )
    first = (
        np.maximum.accumulate(np.where(begins, np.arange(len(ordered)), 0))
        if len(ordered)
        else ordered
    )
    again = np.empty(len(numbers), np.int64)
    again[order] = np.arange(len(numbers)) - first
    keys = np.empty(len(numbers), [("number", np.int64), ("again", np.int64)])
    keys["number"], keys["again"] = numbers, again
    return keys


def jobs_of(schedule: Schedule, other: Schedule) -> Schedule:
    """Return the schedule of the jobs that ran in both schedules, with the other's choice of
    counted jobs."""
    work = schedule.workload
    _, here, there = np.intersect1d(
        job_keys(work.number), job_keys(other.workload.number), return_indices=True
    )
    counted = np.zeros(len(work), np.bool_)
    counted[here] = other.workload.counted[there]
    return replace(schedule, workload=work.changed(counted=counted)).only(np.sort(here))
