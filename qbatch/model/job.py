"""A job as a policy may see it: what was asked for, never how long it will really run."""

from __future__ import annotations

import msgspec

FREE, PACK, SCATTER = PLACINGS = ("free", "pack", "scatter")
"""How chunks are placed: they may share hosts, all go to one host, or each goes to a different
host."""

SERVER = -2
"""The host of a chunk of server-wide amounts (licences), whatever its number in the machine."""


class ChunkRequest(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """``count`` equal parts of a job, each inside one host: processors, bytes of memory, and named
    ``resources``, such as ``("gpu", 2)``.

    ``host``: the index in the machine of the host on which they have to be, -1 for any; ``SERVER``:
    the chunk has no processors, and its resources are amounts of the whole server. ``features``:
    what their hosts must have.
    """

    count: int
    procs: int
    memory: int = 0
    host: int = -1
    resources: tuple[tuple[str, int], ...] = ()
    features: tuple[str, ...] = ()


class JobRequest(msgspec.Struct, frozen=True, gc=False):
    """What a job of a log asks for beyond processors: fields of :class:`Job`."""

    chunks: tuple[ChunkRequest, ...]
    placing: str = FREE
    is_exclusive: bool = False
    partitions: tuple[str, ...] = ()
    reservation: str = ""
    least_hosts: int = 0
    most_hosts: int = 0

    @property
    def procs(self) -> int:
        """Processors of all chunks."""
        return sum(chunk.count * chunk.procs for chunk in self.chunks)

    @property
    def memory(self) -> int:
        """Bytes of all chunks."""
        return sum(chunk.count * chunk.memory for chunk in self.chunks)

    @property
    def resources(self) -> dict[str, int]:
        """The named resources of all chunks."""
        total: dict[str, int] = {}
        for chunk in self.chunks:
            for name, amount in chunk.resources:
                total[name] = total.get(name, 0) + chunk.count * amount
        return total


class Charge(msgspec.Struct, frozen=True, gc=False):
    """The user, the account and the QOS of a job of a log, by their names at the site: fields of
    :class:`Job`."""

    owner: str = ""
    account: str = ""
    qos: str = ""
    nice: int = 0


class Job(msgspec.Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """A submission.  Times in microseconds, memory in bytes, -1 for an absent user, group or queue.

    It is serialized as an array, so that a million of them are fast: a new field comes last, with a
    default.

    ``row`` is the engine's number of the job, its rank in order of sequence (-1 before the engine
    has set it). ``procs`` is what a rigid job gets; a malleable one may be resized between
    ``min_procs`` and ``max_procs`` (0: rigid).  ``deadline``: an instant, or None.

    ``chunks`` (on a chunked machine) are the parts that go together: ``procs``, ``memory`` and
    ``resources`` are then their sums.  Without chunks the job is ``procs`` chunks of one processor,
    or one chunk if it asks for ``resources``.  ``placing``: one
    of ``PLACINGS``.  ``is_exclusive``: it takes whole hosts, with all that they have, and waits for
    hosts without other jobs.  ``is_rerunnable``: it may start again, as after a trial run.
    ``priority``: its importance to its user (``qsub -p``), -1,024 to 1,023. ``is_admitted``: it
    was accepted before and comes again (its host went down, it is to run again): a policy that may
    refuse does not refuse it now.

    ``parent``: the number of the job of which this is a task, done when its last task is (an array
    of jobs); -1: it is no task.  ``task``: its number among the tasks.  ``route``: 53 random bits
    for a policy that draws; -1: the policy makes them itself, from number and task.

    ``resources``: named amounts that the whole job asks for in addition to processors and memory,
    such as ``("gpu", 2)``.  ``partitions``: names of the partitions of the machine on which it may
    run; none named: the default partition, or every host if there is none.  ``reservation``: the name
    of the reservation of the machine inside which it runs; empty: outside all.

    ``owner``, ``account``, ``qos``: names of its user, of the account that is charged and of its
    quality of service, as the site has them (:mod:`qbatch.model.site`); empty: not said.  ``nice``: by
    how much its user lowers its priority.  ``least_hosts``, ``most_hosts``: on how many hosts its
    chunks are to be (0: not said); only the policy ``slurm`` follows that.
    """

    row: int = -1
    number: int
    submit: int
    procs: int
    estimate: int
    memory: int = 0
    min_procs: int = 0
    max_procs: int = 0
    user: int = -1
    group: int = -1
    queue: int = -1
    deadline: int | None = None
    chunks: tuple[ChunkRequest, ...] = ()
    placing: str = FREE
    is_exclusive: bool = False
    is_rerunnable: bool = True
    priority: int = 0
    is_admitted: bool = False
    parent: int = -1
    task: int = -1
    route: int = -1
    resources: tuple[tuple[str, int], ...] = ()
    partitions: tuple[str, ...] = ()
    reservation: str = ""
    owner: str = ""
    account: str = ""
    qos: str = ""
    nice: int = 0
    least_hosts: int = 0
    most_hosts: int = 0
