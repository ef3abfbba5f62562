"""Emulated jobs: the executor that runs them as timers, how long each runs and how it ends.

The caller keeps the :class:`~qbatch.model.progress.Progress` of a job (a snapshot holds it), and a calendar of the instants at
which ends fall due.  A suspension or a resize gives the progress another ``due`` and leaves the old entry in the calendar; the
entry is then void.

The run time of a job is the first of these that exists: ``#QBATCH runtime=`` (or the trace's), the sum of the ``sleep N`` lines
in the script, a draw from the pool's distribution.  A run that would exceed the walltime ends there.  Draws are whole
microseconds, seeded by the configuration and the job's number, index and attempt: the same job runs equally long on every replay.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from qbatch.daemon.settings import parse_runtime
from qbatch.model.actions import Allocation
from qbatch.model.machine import Machine
from qbatch.model.progress import NEVER, Progress, time_left
from qbatch.wire.resources import MICROSECONDS

if TYPE_CHECKING:
    from qbatch.daemon.core.job import BatchJob
    from qbatch.daemon.core.state import Core

_SLEEP = re.compile(r"^[ \t]*sleep[ \t]+([0-9]+(?:\.[0-9]+)?)([smhd]?)[ \t]*(?:[;#&\r].*)?$", re.MULTILINE)
_LONGEST = 1000 * 365 * 86_400
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}
_FATE = re.compile(r"^[ \t]*exit[ \t]+(\d{1,3})[ \t]*$", re.MULTILINE)


def wanted_run(core: Core, job: BatchJob) -> int:
    """Return how long a job would run if nothing stopped it, in microseconds."""
    spec = job.spec
    if spec.runtime is not None:
        return spec.runtime
    slept = _slept(spec.script) if spec.script is not None else _slept(" ".join(spec.argv))
    if slept is not None:
        return slept
    kind, low, high = parse_runtime(core.pool_of(job).settings.runtime)
    if kind == "fixed":
        return low
    if kind == "walltime":
        return job.prepared.walltime
    seed = f"{core.settings.seed} {job.sequence} {job.member} {job.attempts}".encode()
    # 52 bits of a hash: a draw without a transcendental function, the same on every machine.
    draw = (zlib.crc32(seed) << 20 | zlib.crc32(seed + b"'") & 0xFFFFF) % (1 << 52)
    if kind == "uniform":
        return low + draw * (high - low) // (1 << 52)
    return _exponential(draw, low)


def _exponential(draw: int, mean: int) -> int:
    """Return mean times -ln(u) for u = (draw + 1) / 2**52, in whole numbers only: -ln(u) = k ln 2 + series."""
    value = draw + 1
    halvings = 53 - value.bit_length()
    value <<= halvings  # now in [2**52, 2**53): u = (value / 2**53) * 2**(1 - halvings)
    gap = (1 << 53) - value
    term, total, power = gap, 0, 1
    while term and power < 80:
        total += term // power
        term = term * gap >> 53
        power += 1
    ln2 = 6243314768165359  # ln 2 in units of 2**-53
    return max(mean * (total + (halvings - 1) * ln2) >> 53, 0)


def _slept(script: str) -> int | None:
    found = _SLEEP.findall(script) if script else []
    if not found:
        return None
    total = 0
    for number, unit in found:
        whole, _, fraction = number.partition(".")
        seconds = int(whole) if len(whole) <= 12 else _LONGEST
        total += (seconds * MICROSECONDS + int(fraction[:6].ljust(6, "0"))) * _UNITS[unit]
    return min(total, _LONGEST * MICROSECONDS)


def work_of(core: Core, job: BatchJob) -> int:
    """Return the processor-microseconds of work of this attempt, at most those of its walltime; ``NEVER`` if unknown."""
    run = min(wanted_run(core, job), job.prepared.walltime) if core.runs is None else core.runs.run_of(job)
    return run * job.prepared.request.procs if run >= 0 else NEVER


def memory_of(job: BatchJob) -> int:
    """Return the bytes of memory that an emulated job uses: those that it declares, else all that it asks for."""
    used = job.spec.used_memory
    return job.prepared.request.memory if used is None else used


def fate_of(core: Core, job: BatchJob) -> int:
    """Return the exit status of an emulated run that is not stopped."""
    if core.runs is not None:
        return core.runs.status_of(job)
    if wanted_run(core, job) > job.prepared.walltime:
        return -29
    spec = job.spec
    if spec.fate is not None:
        return spec.fate
    found = _FATE.findall(spec.script) if spec.script else ()
    return int(found[-1]) & 255 if found else 0


Key = TypeVar("Key")
"""What the caller identifies a job by."""


class EmulatedExecutor(Generic[Key]):
    """Runs jobs as timers.

    Args:
        note: enters in the caller's calendar the instant (microseconds) at which the end of a job falls due.
    """

    __slots__ = ("_note",)

    def __init__(self, note: Callable[[int, Key], object]) -> None:
        self._note = note

    def launch(self, key: Key, procs: int, work: int, at: int) -> Progress:
        """Start a job that takes ``work`` processor-microseconds, ``NEVER`` if its end is not known; return its progress."""
        if work < 0:
            return Progress(procs, at, 0, work)
        due = at + time_left(work, procs)
        self._note(due, key)
        return Progress(procs, at, 0, work, due)

    def pause(self, progress: Progress, at: int) -> None:
        """Suspend a job."""
        progress.stand_still(at)

    def resume(self, key: Key, progress: Progress, at: int) -> None:
        """Let a suspended job go on."""
        progress.go_on(at)
        if progress.due >= 0:
            self._note(progress.due, key)

    def resize(self, key: Key, progress: Progress, procs: int, at: int) -> None:
        """Give a job another number of processors; a suspended job stays suspended."""
        is_running = progress.since >= 0
        progress.stand_still(at)
        progress.procs = procs
        if is_running:
            self.resume(key, progress, at)

    def set_work(self, key: Key, progress: Progress, work: int, at: int) -> None:
        """Give a job another total amount of work; one that has done more ends now."""
        progress.work = work
        self.resize(key, progress, progress.procs, at)

    def fails_trial(self, machine: Machine, allocation: Allocation, used_memory: int) -> bool:
        """Return whether a trial cannot go on: its host counts memory, and the job uses more than it was given there."""
        chunk = allocation[0]
        return machine.hosts[chunk.host].memory > 0 and used_memory > chunk.memory

    def give_up(self, progress: Progress) -> None:
        """Cancel the end of a run: its trial has failed."""
        progress.due = NEVER
