"""The log of a Slurm controller (``slurmctld.log``): when its passes were, and when each job was
submitted, started and ended, to the millisecond.

Passes of the main scheduler are logged with ``SlurmctldDebug=debug``, cycles of backfill with
``DebugFlags=Backfill``, and ticks of priorities with ``DebugFlags=Priority``.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from zoneinfo import ZoneInfo

from qbatch.model.errors import InputError
from qbatch.model.site import BACKFILL, FULL, QUICK, TICK
from qbatch.workloads.accounting.times import WallClock

_STAMP = re.compile(r"\[(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d{1,9})?\] (.*)")
_PASSES = (
    ("Running job scheduler for full queue", FULL),
    ("Running job scheduler for default depth", QUICK),
    ("_attempt_backfill: beginning", BACKFILL),
    ("_decay_thread: PRIO: Decay factor", TICK),
)
_JOB = r"JobId=(\d+)(?:_(\d+))?"
_SUBMITTED = re.compile(rf"_slurm_rpc_submit_batch_job: {_JOB} InitPrio")
_STARTED = re.compile(rf"(?:sched: Allocate|_start_job: Started) {_JOB}")
_ENDED = re.compile(
    rf"(?:_job_complete: {_JOB}\S* done|Time limit exhausted for {_JOB}"
    rf"|job_signal: 9 of running {_JOB}\S* successful)"
)


class ControllerLog(NamedTuple):
    """Instants in seconds since 1970.

    ``passes``: each pass and tick with its kind, in order.  ``submitted``, ``started``, ``ended``: by
    the identifier of a job on the cluster (``12`` or ``12_3``); of a job that was requeued, its first
    start and its first end.
    """

    passes: list[tuple[float, str]]
    submitted: dict[str, float]
    started: dict[str, float]
    ended: dict[str, float]


def read_controller_log(path: str, zone: ZoneInfo) -> ControllerLog:
    """Return what a controller's log says; ``zone``: of its local times.

    Raises:
        InputError: the file cannot be read, or no pass is in it.
    """
    found, clock = ControllerLog([], {}, {}, {}), WallClock(zone)
    for number, line in enumerate(_lines(path), 1):
        stamp = _STAMP.match(line)
        if stamp is None:
            continue
        instants = clock.of_iso(stamp[1])
        if not instants:
            raise InputError(f"{path}: line {number}: {stamp[1]} is not a time")
        at, text = instants[0] + float(stamp[2] or 0), stamp[3]
        for words, kind in _PASSES:
            if words in text:
                found.passes.append((at, kind))
        for pattern, table in (
            (_SUBMITTED, found.submitted),
            (_STARTED, found.started),
            (_ENDED, found.ended),
        ):
            if (said := pattern.search(text)) is not None:
                job, task = next(
                    pair
                    for pair in zip(said.groups()[::2], said.groups()[1::2], strict=True)
                    if pair[0]
                )
                table.setdefault(f"{job}_{task}" if task else job, at)
    if not any(kind != TICK for _, kind in found.passes):
        raise InputError(
            f"{path}: no pass of the scheduler is in it; Slurm logs them with SlurmctldDebug=debug and "
            "DebugFlags=Backfill"
        )
    return found


def _lines(path: str) -> Iterator[str]:
    try:
        if path.endswith(".gz"):
            with gzip.open(path, "rt", encoding="utf-8", errors="replace") as file:
                yield from file
        else:
            with Path(path).open(encoding="utf-8", errors="replace") as file:
                yield from file
    except (OSError, EOFError) as error:
        raise InputError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
