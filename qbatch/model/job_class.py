"""Classes of jobs: a job is in the first with bounds that it keeps; or there are classes of two
kinds, ``time`` and ``size``.

Then a job is in the smallest of each, and its class is the pair, such as ``lt_mj``.  Source: Chiang
and Vernon, Production Job Scheduling for Parallel Shared Memory Systems, 2001, table 1.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Kind = Literal["plain", "time", "size"]


class JobClass(msgspec.Struct, frozen=True):
    """A class of jobs: upper bounds of what its jobs ask for, limits on how many run, and its
    reserve wait.

    ``memory`` in bytes, ``time`` (of the job), ``cpu_time`` (of each processor) and
    ``reserve_wait`` in microseconds; None if the class sets no bound.  ``limit``: how many may run
    on the whole machine, ``per_host`` on any one host, ``per_user`` of one user.  ``hosts``: names
    of the hosts, or pools of hosts, where its jobs may run; empty: all. ``goes_first``: its jobs
    are tried before those of the other classes of its kind.
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
        asked = (
            (self.procs, procs),
            (self.memory, memory),
            (self.time, estimate),
            (self.cpu_time, cpu_time),
        )
        return all(bound is None or value <= bound for bound, value in asked)


class JobClassPair(msgspec.Struct, frozen=True):
    """The class of a job: its time class and its size class, which are the same if classes are
    plain."""

    time: JobClass
    size: JobClass

    @property
    def name(self) -> str:
        """``lt_mj`` for a pair, the plain name otherwise."""
        return self.time.name if self.time is self.size else f"{self.time.name}_{self.size.name}"
