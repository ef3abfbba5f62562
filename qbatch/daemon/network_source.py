"""The closed network in a live server: each visit of a job is an array whose tasks the policy routes; it comes back by itself.

The draws and the I/O station are those of the replay's source (:mod:`qbatch.simulation.network`); where its jobs are is
kept in the core (:class:`~qbatch.daemon.core.source_state.SourceState`), so that a server that was killed goes on where it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from qbatch.daemon import journal_entry
from qbatch.daemon.core.source_state import OWNER
from qbatch.daemon.core.state import Actor, Core
from qbatch.model.errors import InputError
from qbatch.simulation.network import Distributions
from qbatch.wire.errors import Refusal
from qbatch.wire.requests import Spec, Submit, TaskSpec
from qbatch.workloads.kernels.network import DEMAND, DRAW, ESTIMATE
from qbatch.workloads.network import NetworkDraws

if TYPE_CHECKING:
    from qbatch.workloads.network import Network

_encode = msgspec.json.Encoder().encode


class LiveNetwork:
    """The jobs of a closed network, which come back for as long as the server runs.

    Args:
        network: its numbers.
        seed: of the draws.
        offset: the instant in microseconds at which all jobs come for the first time.

    Estimates are exact (E = 0): a live job is ended at its walltime.
    """

    size = None

    def __init__(self, network: Network, seed: int, offset: int) -> None:
        self.identity = f"{network.name} seed {seed}"
        """Which network it is, in a word."""
        self.offset = offset
        self.network = network
        self._draws = NetworkDraws(network, seed)
        self._distributions = Distributions(self._draws)
        self._core: Core | None = None

    def attach(self, core: Core) -> None:
        """Go on where a core says that the jobs are.

        Raises:
            InputError: the core has seen another source, or a log.
        """
        if core.log_arrived and core.log_id != self.identity:
            raise InputError(
                f"other jobs have arrived in this store ({core.log_arrived} of {core.log_id}); give this source one of its own "
                "with --state DIR"
            )
        if core.log_arrived:
            self.offset = core.log_offset
        self._core = core

    def next_instant(self) -> int | None:
        """Return when the next job comes back, None while all are at work."""
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
        return [self._submit(core, owner) for owner in sorted(back)]

    def _returns(self, core: Core) -> Iterator[tuple[int, int]]:
        """Return when which job comes back, in order: one service after another, nothing is kept of it."""
        state = core.source
        io_end = state.io_end
        for at, owner in sorted(state.ended):
            io_end = max(at, io_end) + self._draws.io_time(owner, state.visits[owner] - 1)
            yield io_end, owner

    def _submit(self, core: Core, owner: int) -> bytes:
        actor, request = self._submission(owner, core.source.visits.get(owner, 0), core.now)
        place = (core.log_arrived + 1, self.identity, self.offset)
        with suppress(Refusal):
            journal_entry.arrive(core, actor, request, place)
        return journal_entry.arrival(core.now, actor, _encode(request), place)

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
