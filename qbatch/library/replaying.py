"""``replay``: run a workload log under policies in virtual time; and its machines and policies."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any, cast

import numpy as np

from qbatch.library.arguments import in_arguments, speaks_of_arguments
from qbatch.library.experiment import distinct, experiment_of, machine_of, warmup_of
from qbatch.library.logs import LogLike, log_of
from qbatch.library.progress import progress_bars
from qbatch.library.result import ReplayResult
from qbatch.metrics import BREAKDOWNS
from qbatch.model.errors import UsageError, suggestion
from qbatch.model.machine import Machine, one_host
from qbatch.model.record import MICROSECONDS, Int64Array
from qbatch.planning.policy import Policy, name_of
from qbatch.policies import load_policy
from qbatch.results.result import Result
from qbatch.simulation.drivers import DRIVERS
from qbatch.simulation.prepare import Options
from qbatch.workloads import Log
from qbatch.workloads.machines import load_machine
from qbatch.workloads.resource_rows import ResourceRows, read_resources
from qbatch.workloads.transform import DeadlineLog, read_deadlines

PolicyLike = str | Policy | type[Any]
"""A policy: its text as on a command line, an object with ``decide``, or a class of such
objects."""

MachineLike = str | os.PathLike[str] | Machine | int
"""A machine: a machine file, a shipped name, a number of processors, or a machine object."""


@speaks_of_arguments
def policy(given: PolicyLike) -> Policy:
    """Return a policy.

    Args:
        given: a text such as ``"easy"``, ``"hybrid:depth=4"`` or ``"module:Class"`` (``qbatch
            policies`` lists the names); a class of your own without parameters; or an object with
            ``decide(view)``, which is returned unchanged.

    Raises:
        UsageError: there is no such policy or parameter, or it has no ``decide``.
    """
    if isinstance(given, str):
        return load_policy(given)
    made = given
    if isinstance(given, type):
        try:
            made = given()
        except TypeError as error:
            raise UsageError(
                f"policy {given.__name__}: cannot be made: {error}; make it and pass the object"
            ) from error
    if not callable(getattr(made, "decide", None)):
        called = given.__name__ if isinstance(given, type) else type(given).__name__
        raise UsageError(f"policy {called}: has no method decide(view)")
    return cast(Policy, made)


@speaks_of_arguments
def machine(given: MachineLike) -> Machine:
    """Return a machine.

    Args:
        given: a number of processors (one pool, memory not counted); the path of a machine file
            (TOML, docs/reference/machine-file.md); or the name of a shipped machine, such as
            ``"origin2000"``.

    Raises:
        InputError: there is no such file or name, or the file cannot be parsed.
        UsageError: the number is not from 1 to 1,000,000,000.
    """
    if isinstance(given, Machine):
        return given
    if isinstance(given, int):
        if isinstance(given, bool) or not 1 <= given <= 10**9:
            raise UsageError(f"machine {given}: use 1 to 1000000000 processors")
        return one_host(given)
    return load_machine(os.fspath(given))


@speaks_of_arguments
def replay(
    log: LogLike,
    policies: PolicyLike | Sequence[PolicyLike] = ("fcfs", "easy", "conservative"),
    *,
    machine: MachineLike | None = None,
    procs: int | None = None,
    estimates: str = "log",
    seed: int = 0,
    kill: bool = True,
    since: str | float | None = None,
    before: str | float | None = None,
    first: int | None = None,
    warmup: str | float = 0,
    load: float = 1.0,
    deadlines: str | os.PathLike[str] | None = None,
    resources: str | os.PathLike[str] | None = None,
    outages: str | os.PathLike[str] | None = None,
    closed: bool = False,
    by: Sequence[str] = (),
    driver: str = "auto",
    audit: bool = False,
    progress: bool = False,
) -> ReplayResult:
    """Replay a workload log under one or more policies, in virtual time.

    ``qbatch replay`` makes the same schedules and the same metrics, to the last digit, on every
    machine.

    Args:
        log: the path of a log (SWF or five columns, also .gz or .xz), or one from :func:`read_log`,
            :func:`generate` or :func:`transform`.
        policies: one or several: names with parameters, classes or objects (:func:`policy`).
        machine: a machine file, a shipped name, or a :class:`Machine`; without it, the machine of
            a generated cluster, else one pool of ``procs`` processors, or of the number in the
            header of the log.
        estimates: ``log``, ``perfect`` (the run times), or ``f:N`` (drawn from run to N x run, by
            ``seed``).
        kill: end a job that reaches its estimate; else raise estimates to run times.
        since: first submission, in seconds of the log's clock or an ISO time; ``before``: the end
            of that half-open span.
        first: replay at most this many jobs.
        warmup: run but do not count the jobs of this first time: seconds, ``"12h"``, ``"7d"``, or
            an ISO time.
        load: divide the gaps between arrivals by this factor.
        deadlines: a side file of deadlines by job number (CSV); a log from ``transform`` already
            has its own.
        resources: a side file of nodes, memory, GPUs and partitions by job number (CSV); the
            machine file has ``schema = 2``. A log that was read with its side file, imported from
            a table or generated as a cluster already knows its own.
        outages: a file of the spans in which hosts take no further jobs (CSV ``host,start,end``, in
            seconds of the log or ISO times); jobs that run there continue.
        closed: users wait for their jobs before they submit the next.
        by: breakdowns to keep in the record: ``month``, ``user``, ``size``, ...
        driver: loop that runs the jobs: ``auto``, ``compiled`` or ``engine``; the schedules are the
            same.
        audit: check the invariants of every schedule.
        progress: show progress bars, on a terminal or in a notebook.

    Returns:
        The schedules, one for each policy in the given order, with their metrics, jobs and
        pictures.

    Raises:
        InputError: the log or the machine cannot be read or used, or no job can run.
        UsageError: an argument is unknown or conflicts with another.
        DecisionError: a policy returned an illegal action.
        AuditError: an invariant does not hold.
    """
    if driver not in DRIVERS:
        raise UsageError(
            f"driver {driver!r}: use one of {', '.join(DRIVERS)}{suggestion(driver, DRIVERS)}"
        )
    by = (by,) if isinstance(by, str) else tuple(by)
    for key in by:
        if key not in BREAKDOWNS:
            raise UsageError(
                f"by {key!r}: use one of {', '.join(BREAKDOWNS)}{suggestion(key, BREAKDOWNS)}"
            )
    chosen = distinct(map(policy, _listed(policies)))
    if not chosen:
        raise UsageError("policies: none is named")
    whole = log_of(log)
    options = Options(
        estimates=estimates,
        seed=_whole("seed", seed, 0),
        kill=kill,
        since=None if since is None else str(since),
        before=None if before is None else str(before),
        first=None if first is None else _whole("first", first, 1),
        load=_number("load", load),
        **warmup_of(str(warmup)),
    )
    hosts = _machine(whole.log, procs, machine)
    requests = _requests(whole.log, resources, hosts)
    experiment = experiment_of(
        whole.log,
        hosts,
        options,
        _deadlines(whole, deadlines),
        requests,
        None if outages is None else os.fspath(outages),
    )
    experiment = experiment.closed() if closed else experiment
    schedules, submit = [], experiment.work.submit
    shown = {"is_quiet": not progress, "is_anywhere": "ipykernel" in sys.modules}
    for each in chosen:
        with progress_bars(
            name_of(each), len(submit), int(submit[0]), int(submit[-1]), **shown
        ) as moved:
            schedules.append(
                experiment.schedule(each, driver=driver, is_audited=audit, progress=moved)
            )
    document = experiment.document(
        schedules, by, ["qbatch.replay", experiment.log.name, *map(name_of, chosen)]
    )
    notes = [*experiment.notes(chosen), *filter(None, [experiment.note_of_users()])]
    if requests is None and whole.log.side is not None:
        notes.append(
            "what the jobs ask for beyond processors does not count: the machine has no hosts for it "
            "(a machine file with schema = 2 has)"
        )
    return ReplayResult(Result(tuple(schedules), document), [in_arguments(note) for note in notes])


def _listed(policies: PolicyLike | Sequence[PolicyLike]) -> Sequence[PolicyLike]:
    if (
        isinstance(policies, (str, type))
        or hasattr(policies, "decide")
        or not isinstance(policies, Iterable)
    ):
        return (policies,)  # an object that is no policy is refused later
    return tuple(policies)


def _machine(log: Log, procs: int | None, given: MachineLike | None) -> Machine:
    if procs is not None and not 1 <= procs <= 10**9:
        raise UsageError(f"procs {procs}: use 1 to 1000000000")
    if given is None:
        return log.machine if log.machine and procs is None else machine_of(log, procs, None)
    if procs is not None:
        raise UsageError("procs and machine both set the machine; leave one out")
    return machine(given)


def _requests(log: Log, path: str | os.PathLike[str] | None, hosts: Machine) -> ResourceRows | None:
    """Return what the jobs ask for, from a side file or from the log; None if nothing does, or no
    host counts what the log knows."""
    if path is not None:
        if log.side is not None:
            raise UsageError(
                f"resources {os.fspath(path)}: the log knows what its jobs ask for; leave it out"
            )
        return read_resources(os.fspath(path), log)
    return None if log.side is None or not hosts.chunked else read_resources(log.side, log)


def _number(name: str, value: float) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise UsageError(f"{name} {value!r}: is not a number") from None


def _whole(name: str, value: int, least: int) -> int:
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
        raise UsageError(f"{name} {value!r}: use a whole number from {least}")
    return int(value)


def _deadlines(log: DeadlineLog, path: str | os.PathLike[str] | None) -> Int64Array | None:
    """Return the deadlines by row in microseconds, from a side file or from the log; None if there
    are none."""
    has_own = bool((log.deadline >= 0).any())
    if path is not None:
        if has_own:
            raise UsageError(
                f"deadlines {os.fspath(path)}: the log has deadlines of its own; leave it out"
            )
        return cast(Int64Array, read_deadlines(os.fspath(path), log.log))
    return np.where(log.deadline >= 0, log.deadline * MICROSECONDS, -1) if has_own else None
