"""A workload log of the model: jobs, arrivals, the requested load, estimates, and a header that shows how it was made."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from qbatch.model.errors import UsageError, suggestion
from qbatch.workloads.generate import UNIX_START_TIME, header_date
from qbatch.workloads.header import PROCS_MAX, Header, parse_header
from qbatch.workloads.log import FIELDS, Column, Log, absent, compact
from qbatch.workloads.lublin.arrivals import arrival_times, merged
from qbatch.workloads.lublin.gamma import Streams
from qbatch.workloads.lublin.jobs import run_times, sizes
from qbatch.workloads.lublin.parameters import RUN_LN_MAX, TYPES, Parameters, for_machine
from qbatch.workloads.portable import exp
from qbatch.workloads.tsafrir import tsafrir_estimates

JOBS_MAX = 10_000_000
ESTIMATES = ("exact", "tsafrir")
QUEUES = {"interactive": 0, "batch": 1}
"""Numbers of the queues, by the convention of SWF; typeless jobs have none."""

_STREAMS = {"interactive": 0, "batch": 1, "typeless": 2}
# Enough seconds from the first to the last arrival that whole seconds meet a load to a percent.
_SPAN_S = (100, 10**15)


@dataclass(frozen=True)
class _Asked:
    """The checked arguments."""

    jobs: int
    procs: int
    types: str
    seed: int
    load: float | None
    interarrival: float | None
    estimates: str
    estimate_max: int | None
    overrides: dict[str, float]

    @property
    def command(self) -> str:
        """Return the command that makes the same log."""
        words = f"qbatch generate lublin --jobs {self.jobs} --procs {self.procs} --types {self.types} --seed {self.seed}"
        options: dict[str, Any] = {"load": self.load, "interarrival": self.interarrival}
        options |= {"estimates": self.estimates, "estimate-max": self.estimate_max, **self.overrides}
        return words + "".join(f" --{name} {value}" for name, value in options.items() if value is not None)


def generate_lublin(
    *,
    jobs: int,
    procs: int = 128,
    types: str = "none",
    seed: int = 1,
    load: float | None = None,
    interarrival: float | None = None,
    estimates: str = "exact",
    estimate_max: int | None = None,
    ulow: float | None = None,
    umed: float | None = None,
    uhi: float | None = None,
    uprob: float | None = None,
) -> Log:
    """Return a log of ``jobs`` jobs of the model for ``procs`` processors; the same arguments give the same log on every machine.

    Log second 0 is a midnight.  Without ``load`` and ``interarrival`` the arrivals are those of the model, and a longer log
    begins with the jobs of a shorter one.

    Args:
        types: ``none`` (typeless jobs), ``batch``, ``interactive``, or ``both`` (two streams, merged; queues 1 and 0).
        load: the offered load to reach (work over processors x span of submissions), by one factor for all arrival times.
        interarrival: the mean seconds between submissions to reach, by one factor for all arrival times.
        estimates: ``exact`` (the run times) or ``tsafrir`` (users' estimates of ``qbatch.workloads.tsafrir``).
        estimate_max: the largest estimate of ``tsafrir`` in seconds; None: the least whole hour that no run exceeds.
        ulow, umed, uhi, uprob: see ``Parameters``; None: the published ones, for a machine of this size (``for_machine``).

    Raises:
        UsageError: a value is out of range, values contradict each other, or the load cannot be reached.
    """
    overrides = {"ulow": ulow, "umed": umed, "uhi": uhi, "uprob": uprob}
    given = {name: float(value) for name, value in overrides.items() if value is not None}
    load, interarrival = (None if each is None else float(each) for each in (load, interarrival))
    asked = _Asked(jobs, procs, types, seed, load, interarrival, estimates, estimate_max, given)
    _check(asked)
    sets = tuple(for_machine(each, procs, **given) for each in TYPES[types])
    submit, kind, size, run = _drawn(sets, asked)
    submit, factor = _stretched(submit, _work(run, size), asked)
    estimate = run
    if estimates == "tsafrir":
        estimate = tsafrir_estimates(run, seed=seed, largest_s=estimate_max)
    values = {
        "job": np.arange(1, jobs + 1),
        "submit": submit,
        "run": run,
        "procs_allocated": size,
        "procs_requested": size,
        "time_requested": estimate,
        "status": np.ones(jobs, np.int64),
        "queue": np.array([QUEUES.get(each.name, -1) for each in sets])[kind],
    }
    header = _header(asked, sets, factor, values)
    columns = {name: compact(values[name]) if name in values else absent(jobs) for name in FIELDS}
    line = np.arange(len(header.lines) + 1, len(header.lines) + jobs + 1, dtype=np.int32)
    digest = hashlib.sha256(asked.command.encode()).hexdigest()
    return Log(name="lublin", sha256=digest, header=header, columns=columns, line=line)


def _check(asked: _Asked) -> None:
    wrong = None
    if not 1 <= asked.jobs <= JOBS_MAX:
        wrong = f"--jobs is {asked.jobs}; use 1 to {JOBS_MAX:,}"
    elif not 1 <= asked.procs <= PROCS_MAX:
        wrong = f"--procs is {asked.procs}; use 2 to {PROCS_MAX:,}"
    elif asked.types not in TYPES:
        wrong = f"--types {asked.types!r}: use {', '.join(TYPES)}{suggestion(asked.types, TYPES)}"
    elif asked.seed < 0:
        wrong = f"--seed is {asked.seed}; use 0 or more"
    elif asked.load is not None and not 0.001 <= asked.load <= 1000:
        wrong = f"--load is {asked.load:g}; use 0.001 to 1000, for example 0.8"
    elif asked.interarrival is not None and not 0.001 <= asked.interarrival <= 1e7:
        wrong = f"--interarrival is {asked.interarrival:g}; use 0.001 to 10,000,000 seconds"
    elif asked.load is not None and asked.interarrival is not None:
        wrong = "--load and --interarrival both stretch the arrivals; give one of them"
    elif (asked.load is not None or asked.interarrival is not None) and asked.jobs < 2:
        wrong = "one job has no load and no interarrival time; use --jobs 2 or more"
    elif asked.estimates not in ESTIMATES:
        wrong = f"--estimates {asked.estimates!r}: use {' or '.join(ESTIMATES)}{suggestion(asked.estimates, ESTIMATES)}"
    elif asked.estimate_max is not None and asked.estimates != "tsafrir":
        wrong = "--estimate-max goes with --estimates tsafrir"
    elif asked.overrides and len(TYPES[asked.types]) > 1:
        wrong = f"--{next(iter(asked.overrides))} is for one set of parameters; --types both has two: make two logs"
    if wrong is not None:
        raise UsageError(f"generate lublin: {wrong}")


def _drawn(sets: tuple[Parameters, ...], asked: _Asked) -> tuple[Column, Column, Column, Column]:
    """Return arrival time, kind, processors and run time of each job, in order of arrival."""
    streams = [Streams(asked.seed, _STREAMS[each.name]) for each in sets]
    times = [arrival_times(each, stream, asked.jobs) for each, stream in zip(sets, streams, strict=True)]
    submit, kind = merged(tuple(times), asked.jobs)
    size, run = np.zeros(asked.jobs, np.int64), np.zeros(asked.jobs, np.int64)
    for number, (each, stream) in enumerate(zip(sets, streams, strict=True)):
        rows = np.flatnonzero(kind == number)
        size[rows] = sizes(each, stream, len(rows), asked.procs)
        run[rows] = run_times(each, stream, size[rows])
    return submit, kind, size, run


def _work(run: Column, size: Column) -> int:
    """Return the processor-seconds of all jobs; the sum of areas may exceed 63 bits, the sum of their halves does not."""
    area = run * size
    return (int((area >> 32).sum()) << 32) + int((area & 0xFFFF_FFFF).sum())


def _stretched(submit: Column, work: int, asked: _Asked) -> tuple[Column, float]:
    """Return the arrival times multiplied by one factor, rounded to whole seconds, and the factor."""
    span = int(submit[-1] - submit[0])
    if asked.load is not None:
        wanted = work / (asked.procs * asked.load)
    elif asked.interarrival is not None:
        wanted = asked.interarrival * (asked.jobs - 1)
    else:
        return submit, 1.0
    if span == 0 or not _SPAN_S[0] <= wanted <= _SPAN_S[1]:
        said = f"--load {asked.load:g}" if asked.load is not None else f"--interarrival {asked.interarrival:g}"
        raise UsageError(f"generate lublin: {said} cannot be reached with these {asked.jobs:,} jobs; use more jobs")
    factor = wanted / span
    return np.rint(submit * factor).astype(np.int64), factor


def _header(asked: _Asked, sets: tuple[Parameters, ...], factor: float, values: dict[str, Column]) -> Header:
    longest = int(exp(np.array([float(RUN_LN_MAX)]))[0])
    notes = [
        f"made by {asked.command}",
        "the model of Lublin and Feitelson 2003, in which no real user submits; second 0 is a midnight",
        *(each.text() for each in sets),
    ]
    if factor != 1.0:
        notes.append(f"arrival times, and with them the daily cycle, are {factor!r} times those of the model")
    if asked.estimates == "tsafrir":
        notes.append("requested times are users' estimates by the model of Tsafrir, Etsion and Feitelson 2005")
    else:
        notes.append("requested times are the run times")
    queues = [f"; Queue: {QUEUES[each.name]} {each.name}" for each in sets if each.name in QUEUES]
    return parse_header(
        (
            "; Version: 2.2",
            "; Computer: none (Lublin-Feitelson model)",
            "; Installation: qbatch",
            f"; MaxJobs: {asked.jobs}",
            f"; MaxRecords: {asked.jobs}",
            "; Preemption: No",
            f"; UnixStartTime: {UNIX_START_TIME}",
            "; TimeZoneString: UTC",
            f"; StartTime: {header_date(0)}",
            f"; EndTime: {header_date(int((values['submit'] + values['run']).max()))}",
            f"; MaxNodes: {asked.procs}",
            f"; MaxProcs: {asked.procs}",
            f"; MaxRuntime: {max(longest, int(values['time_requested'].max()))}",
            *([f"; MaxQueues: {len(queues)}", *queues] if queues else []),
            *(f"; Note: {note}" for note in notes),
        )
    )
