"""A workload log whose jobs arrive in the live queue by themselves, at their instants on the server's clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from qbatch.daemon import entry
from qbatch.daemon.core.state import Actor, Core
from qbatch.daemon.handlers import submit
from qbatch.model.errors import InputError
from qbatch.wire.errors import Refusal
from qbatch.wire.requests import Spec, Submit

if TYPE_CHECKING:
    from qbatch.model.record import Workload

_encode = msgspec.json.Encoder().encode


class Feed:
    """The jobs of a log.

    Args:
        workload: prepared as for a replay: jobs in order of sequence.
        offset: microseconds from the log's clock to the server's.
        core: knows how many have arrived already.
    """

    def __init__(self, workload: Workload, offset: int) -> None:
        self.workload = workload
        self.offset = offset
        self.size = len(workload)
        self.refused = 0
        self._submits: list[int] = (workload.submit + offset).tolist()
        self._core: Core | None = None

    @property
    def identity(self) -> str:
        """Which log it is, in a word."""
        return f"{self.workload.sha256 or self.workload.name} {self.size}"

    def attach(self, core: Core) -> None:
        """Go on after the arrivals that a core has seen, where they were to come.

        Raises:
            InputError: it has seen another log.
        """
        if core.log_arrived and core.log_id != self.identity:
            raise InputError(
                f"another log has arrived in this store ({core.log_arrived} jobs of it); give this one a store of its own with "
                "--state DIR"
            )
        if core.log_arrived and core.log_offset != self.offset:
            self._submits = [each - self.offset + core.log_offset for each in self._submits]
            self.offset = core.log_offset
        self._core = core

    def next_arrival(self) -> int | None:
        """Return the instant of the next arrival, None after the last."""
        place = self._core.log_arrived if self._core is not None else 0
        return self._submits[place] if place < self.size else None

    def arrive(self, core: Core, at: int) -> list[bytes]:
        """Submit the jobs that arrive at or before an instant; return their journal entries."""
        self._core = core
        entries = []
        while core.log_arrived < self.size and self._submits[core.log_arrived] <= at:
            row = core.log_arrived
            core.now = max(core.now, self._submits[row])
            actor, request = self._submission(row)
            core.log_arrived, core.log_id, core.log_offset = row + 1, self.identity, self.offset
            try:
                submit.enter(core, actor, request)
            except Refusal:
                self.refused += 1
            entries.append(entry.arrival(core.now, actor, _encode(request), (row + 1, self.identity, self.offset)))
        return entries

    def _submission(self, row: int) -> tuple[Actor, Submit]:
        work: Any = self.workload
        number = int(work.user[row])
        user = f"user{number}" if number >= 0 else "trace"
        group = f"group{int(work.group[row])}" if int(work.group[row]) >= 0 else "trace"
        procs, memory = int(work.procs[row]), int(work.memory[row])
        select = f"1:ncpus={procs}:mem={memory}b" if memory > 0 else f"{procs}:ncpus=1"
        resources = {"select": select, "walltime": _seconds(int(work.estimate[row]))}
        used = int(work.used_memory[row])
        spec = Spec(
            name=f"job{int(work.number[row])}",
            argv=("true",),
            resources=resources,
            runtime=int(work.run[row]),
            used_memory=used if used >= 0 else None,
            host="trace",
            extra={"log_number": str(int(work.number[row]))},
        )
        return Actor(-2 - max(number, 0), user, group, "user"), Submit(spec=spec)


def _seconds(microseconds: int) -> str:
    whole, rest = divmod(microseconds, 1_000_000)
    return f"{whole}.{rest:06d}" if rest else str(whole)
