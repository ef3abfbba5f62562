"""Classes of jobs, and the class that a job is in.

A machine file names classes in one of two ways.  With plain classes, a job is in the first one with bounds that it keeps.  With
classes of two kinds, ``time`` and ``size``, a job is in the smallest of each, and its class is the pair, such as ``lt_mj``.

Source: Chiang and Vernon, Production Job Scheduling for Parallel Shared Memory Systems, 2001, table 1.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Kind = Literal["plain", "time", "size"]


class JobClass(msgspec.Struct, frozen=True):
    """A class of jobs: upper bounds of what its jobs ask for, limits on how many run, and its reserve wait.

    ``memory`` in bytes, ``time`` (of the job), ``cpu_time`` (of each processor) and ``reserve_wait`` in microseconds; None if
    the class sets no bound.  ``limit``: how many may run on the whole machine, ``per_host`` on any one host, ``per_user`` of one
    user.  ``hosts``: names of the hosts, or pools of hosts, where its jobs may run; empty: all.
    ``goes_first``: its jobs are tried before those of the other classes of its kind.
    """

    name: str
    procs: int | None = None
    memory: int | None = None
    time: int | None = None
    per_host: int | None = None
    limit: int | None = None
    per_user: int | None = None
    reserve_wait: int | None = None
    hosts: tuple[str, ...] = ()
    cpu_time: int | None = None
    kind: Kind = "plain"
    goes_first: bool = False

    def runs_on(self, host: str, pool: str) -> bool:
        """Whether its jobs may run on a host of this name in this pool."""
        return not self.hosts or host in self.hosts or pool in self.hosts

    def holds(self, procs: int, memory: int, estimate: int, cpu_time: int) -> bool:
        """Whether a job keeps every bound of this class."""
        asked = ((self.procs, procs), (self.memory, memory), (self.time, estimate), (self.cpu_time, cpu_time))
        return all(bound is None or value <= bound for bound, value in asked)


class JobClassPair(msgspec.Struct, frozen=True):
    """The class of a job: its time class and its size class, which are the same if classes are plain."""

    time: JobClass
    size: JobClass

    @property
    def name(self) -> str:
        """``lt_mj`` for a pair, the plain name otherwise."""
        return self.time.name if self.time is self.size else f"{self.time.name}_{self.size.name}"


def class_pairs(classes: tuple[JobClass, ...]) -> tuple[JobClassPair, ...]:
    """Return every class that a job can be in: plain ones first, then pairs, the time classes of the first size first."""
    plain = [JobClassPair(each, each) for each in classes if each.kind == "plain"]
    sizes = [each for each in classes if each.kind == "size"]
    times = [each for each in classes if each.kind == "time"]
    return (*plain, *(JobClassPair(time, size) for size in sizes for time in times))


def class_of(
    classes: tuple[JobClass, ...], procs: int, memory: int, estimate: int, cpu_time: int | None = None
) -> JobClassPair | None:
    """Return the first class, in the order of the file, with bounds that a job keeps; None if there is none.

    Args:
        classes: of a machine; those of one kind are in order, the smallest first.
        procs: processors asked for.
        memory: bytes asked for, of the whole job.
        estimate: requested run time in microseconds.
        cpu_time: requested processor time of each processor in microseconds; the estimate if a job gives only one time.
    """
    asked = (procs, memory, estimate, estimate if cpu_time is None else cpu_time)
    return next((pair for pair in class_pairs(classes) if pair.time.holds(*asked) and pair.size.holds(*asked)), None)
