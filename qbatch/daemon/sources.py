"""Sources of jobs that arrive by themselves: a workload log, at its instants on the server's clock,
or the closed network.

The log is read as in a replay (:class:`~qbatch.simulation.sources.LogSource`), but each job is
submitted as by a client.  In the network each visit of a job is an array of tasks that the policy
routes; the job comes back by itself.  Draws and I/O station are those of the replay's source
(:mod:`qbatch.simulation.network`).  The core keeps the places of its jobs
(:class:`~qbatch.daemon.core.state.SourceState`), so that a server that was killed continues where
it was.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from qbatch.daemon import journal_entry
from qbatch.daemon.core.state import LOG_NUMBER, OWNER, Actor, Core
from qbatch.model.errors import InputError
from qbatch.simulation.network import Distributions
from qbatch.simulation.sources import Arrival, LogSource
from qbatch.wire.deadlines import RESOURCE
from qbatch.wire.errors import Refusal
from qbatch.wire.records import FedLogRecord
from qbatch.wire.requests import Spec, Submit, TaskSpec
from qbatch.workloads.kernels.network import DEMAND, DRAW, ESTIMATE
from qbatch.workloads.network import NetworkDraws

if TYPE_CHECKING:
    from qbatch.model.record import Workload
    from qbatch.workloads.network import Network

_encode = msgspec.json.Encoder().encode
_log = logging.getLogger("qbatch.trace")


class TraceSource:
    """The jobs of a log.

    Args:
        workload: prepared as for a replay: jobs in order of sequence.  A job enters the server's
            queue of the name that its queue has in ``queue_names``, else the default queue.
        offset: microseconds from the log's clock to the server's.
    """

    def __init__(self, workload: Workload, offset: int) -> None:
        self.size: int | None = len(workload)
        self.offset = offset
        self.identity = (
            f"{workload.sha256 or workload.name} {len(workload)} "
            f"{int(workload.number.max(initial=0))}"
        )
        """Identity of the log: its hash or name, its number of jobs, their largest number
        (:func:`fed_log` reads it)."""
        self._workload = workload
        self._log = LogSource(workload, offset)

    def attach(self, core: Core) -> None:
        """Continue after the arrivals that a core has seen, with its offset.

        Raises:
            InputError: the core has seen another log.
        """
        if core.log_arrived and core.log_id != self.identity:
            raise InputError(
                f"another log has arrived in this store ({core.log_arrived} jobs of it); give this "
                "one a store of its own with "
                "--state DIR"
            )
        if core.log_arrived and core.log_offset != self.offset:
            self.offset = core.log_offset
            self._log = LogSource(self._workload, self.offset)
        self._log.go_to(core.log_arrived)

    def next_instant(self) -> int | None:
        """Return the instant of the next arrival; None after the last."""
        return self._log.next_instant()

    def take(self, core: Core, at: int) -> list[bytes]:
        """Submit the jobs that arrive at or before an instant; return their journal entries."""
        entries = []
        for arrival in self._log.take(at):
            core.now = max(core.now, arrival.job.submit)
            queue = self._workload.queue_names.get(arrival.job.queue, "")
            actor, request = _submission(arrival, queue if queue in core.queues else "")
            place = (arrival.job.row + 1, self.identity, self.offset)
            try:
                journal_entry.arrive(core, actor, request, place)
            except Refusal as error:
                _log.warning("job %d of the log is refused: %s", arrival.job.number, error)
            entries.append(journal_entry.arrival(core.now, actor, _encode(request), place))
        return entries


def fed_log(core: Core) -> FedLogRecord | None:
    """Return the log that has arrived in a core; None if there is none."""
    digest, _, numbers = core.log_id.partition(" ")
    jobs, _, last = numbers.partition(" ")
    if not core.log_arrived or not jobs.isdecimal():
        return None
    return FedLogRecord(
        sha256=digest, jobs=int(jobs), last_number=int(last), offset=core.log_offset
    )


def _submission(arrival: Arrival, queue: str) -> tuple[Actor, Submit]:
    job, run, used = arrival
    select = f"1:ncpus={job.procs}:mem={job.memory}b" if job.memory > 0 else f"{job.procs}:ncpus=1"
    resources = {"select": select, "walltime": _seconds(job.estimate)}
    if job.deadline is not None:
        resources[RESOURCE] = f"+{_seconds(max(job.deadline - job.submit, 0))}"
    spec = Spec(
        name=f"job{job.number}",
        queue=queue,
        argv=("true",),
        resources=resources,
        runtime=run,
        used_memory=used if used >= 0 else None,
        host="trace",
        extra={LOG_NUMBER: str(job.number)},
    )
    user = f"user{job.user}" if job.user >= 0 else "trace"
    group = f"group{job.group}" if job.group >= 0 else "trace"
    return Actor(-2 - max(job.user, 0), user, group, "user"), Submit(spec=spec)


def _seconds(microseconds: int) -> str:
    whole, rest = divmod(microseconds, 1_000_000)
    return f"{whole}.{rest:06d}" if rest else str(whole)


class ClosedNetworkSource:
    """The jobs of a closed network, which come back for as long as the server runs.

    ``offset``: the instant in microseconds at which all jobs arrive for the first time.  Estimates
    are exact (E = 0): a live job is ended at its walltime.
    """

    size: int | None = None

    def __init__(self, network: Network, seed: int, offset: int) -> None:
        self.identity = f"{network.name} seed {seed}"
        self.offset = offset
        self.network = network
        self._draws = NetworkDraws(network, seed)
        self._distributions = Distributions(self._draws)
        self._core: Core | None = None

    def attach(self, core: Core) -> None:
        """Continue with the places of the jobs in a core.

        Raises:
            InputError: the core has seen another source, or a log.
        """
        if core.log_arrived and core.log_id != self.identity:
            raise InputError(
                f"other jobs have arrived in this store ({core.log_arrived} of {core.log_id}); "
                "give this source one of its own "
                "with --state DIR"
            )
        if core.log_arrived:
            self.offset = core.log_offset
        self._core = core

    def next_instant(self) -> int | None:
        """Return when the next job comes back; None while all are in the queue or run."""
        core = self._core
        if core is None or len(core.source.visits) < self.network.jobs:
            return self.offset
        return next((end for end, _ in self._returns(core)), None)

    def take(self, core: Core, at: int) -> list[bytes]:
        """Submit the jobs that come back by an instant; return their journal entries."""
        self._core = core
        due = self.next_instant()
        if due is None or due > at:
            return []
        state = core.source
        back = [owner for end, owner in self._returns(core) if end <= at]
        back += [owner for owner in range(self.network.jobs) if owner not in state.visits]
        core.now = max(core.now, due)
        entries = []
        for owner in sorted(back):
            actor, request = self._submission(owner, core.source.visits.get(owner, 0), core.now)
            place = (core.log_arrived + 1, self.identity, self.offset)
            with suppress(Refusal):
                journal_entry.arrive(core, actor, request, place)
            entries.append(journal_entry.arrival(core.now, actor, _encode(request), place))
        return entries

    def _returns(self, core: Core) -> Iterator[tuple[int, int]]:
        """Yield the instant and the number of each job that comes back, in order: one service after
        another."""
        state = core.source
        io_end = state.io_end
        for at, owner in sorted(state.ended):
            io_end = max(at, io_end) + self._draws.io_time(owner, state.visits[owner] - 1)
            yield io_end, owner

    def _submission(self, owner: int, visit: int, at: int) -> tuple[Actor, Submit]:
        is_normal, is_erlang = self._distributions.at(at - self.offset)
        drawn = self._draws.visit(owner, visit, is_normal=is_normal, is_erlang=is_erlang).tolist()
        spec = Spec(
            name=f"job{owner + 1}.{visit + 1}",
            argv=("true",),
            resources={"select": "1:ncpus=1", "walltime": "1"},
            array=f"1-{len(drawn)}",
            tasks=tuple(TaskSpec(task[ESTIMATE], task[DEMAND], task[DRAW]) for task in drawn),
            host="source",
            extra={OWNER: str(owner)},
        )
        return Actor(-2 - owner, f"user{owner + 1}", "source", "user"), Submit(spec=spec)


JobSource: TypeAlias = TraceSource | ClosedNetworkSource
"""A source of jobs that arrive by themselves; ``size``: how many there are, None if they arrive for
ever."""
