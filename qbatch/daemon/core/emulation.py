"""How long an emulated job runs, how it ends, and how much memory it uses.

The run time of a job is the first of these that exists: ``#QBATCH runtime=`` (or the trace's), the
sum of the ``sleep N`` lines in the script, a draw from the pool's distribution.  A run that would
exceed the walltime ends there.  Draws are whole microseconds, seeded by the configuration and the
job's number, index and attempt: the same job runs equally long on every replay.
"""

from __future__ import annotations

import re
import zlib

from qbatch.daemon.core.job import BatchJob
from qbatch.daemon.core.state import Core
from qbatch.daemon.settings import parse_runtime
from qbatch.model.progress import NEVER
from qbatch.wire.resources import MICROSECONDS

_SLEEP = re.compile(
    r"^[ \t]*sleep[ \t]+([0-9]+(?:\.[0-9]+)?)([smhd]?)[ \t]*(?:[;#&\r].*)?$", re.MULTILINE
)
_LONGEST = 1000 * 365 * 86_400
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}
_FATE = re.compile(r"^[ \t]*exit[ \t]+(\d{1,3})[ \t]*$", re.MULTILINE)


def wanted_run(core: Core, job: BatchJob) -> int:
    """Return how long a job would run if nothing stopped it, in microseconds."""
    spec = job.spec
    if spec.runtime is not None:
        return spec.runtime
    if found := _SLEEP.findall(spec.script if spec.script is not None else " ".join(spec.argv)):
        slept = 0
        for number, unit in found:
            whole, _, fraction = number.partition(".")
            seconds = int(whole) if len(whole) <= 12 else _LONGEST
            slept += (seconds * MICROSECONDS + int(fraction[:6].ljust(6, "0"))) * _UNITS[unit]
        return min(slept, _LONGEST * MICROSECONDS)
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
    """Return mean times -ln(u) for u = (draw + 1) / 2**52, in whole numbers only: -ln(u) = k ln 2 +
    series."""
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


def work_of(core: Core, job: BatchJob) -> int:
    """Return the processor-microseconds of work of this attempt, at most those of its walltime;
    ``NEVER`` if unknown."""
    run = (
        min(wanted_run(core, job), job.prepared.walltime)
        if core.runs is None
        else core.runs.run_of(job)
    )
    return run * job.prepared.request.procs if run >= 0 else NEVER


def memory_of(job: BatchJob) -> int:
    """Return the bytes of memory that an emulated job uses: those that it declares, else all that
    it asks for."""
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
