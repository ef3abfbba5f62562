"""How long an emulated job runs and how it ends: from its specification, its script, or the pool's distribution.

In this order: ``#QBATCH runtime=`` (or the trace), ``sleep N`` lines in the script added up, the distribution of the
pool.  A run that would pass the walltime ends there.  Draws come from a generator seeded by the configuration, the
job's number, index and attempt, and are whole microseconds: the same job runs equally long on every replay.
"""

from __future__ import annotations

import re
import zlib
from typing import TYPE_CHECKING

from qbatch.daemon.settings import parse_runtime
from qbatch.model.progress import NEVER
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
    """Return mean times -ln(u) for u = (draw + 1) / 2**52, by whole numbers only: -ln(u) = k ln 2 + series."""
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
    """Return how much work this attempt takes: what it wants, at most its walltime; ``NEVER`` if nobody can say."""
    run = min(wanted_run(core, job), job.prepared.walltime) if core.runs is None else core.runs.run_of(job)
    return run * job.prepared.request.procs if run >= 0 else NEVER


def memory_of(job: BatchJob) -> int:
    """Return the bytes of memory that an emulated job really uses: as it says, else all that it asks for."""
    used = job.spec.used_memory
    return job.prepared.request.memory if used is None else used


def fate_of(core: Core, job: BatchJob) -> int:
    """Return the exit status with which an emulated run ends that is not stopped."""
    if core.runs is not None:
        return core.runs.status_of(job)
    if wanted_run(core, job) > job.prepared.walltime:
        return -29
    spec = job.spec
    if spec.fate is not None:
        return spec.fate
    found = _FATE.findall(spec.script) if spec.script else ()
    return int(found[-1]) & 255 if found else 0
