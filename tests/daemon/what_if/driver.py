"""Reality for what-if policies: a bench with jobs of which the real run times are unknown until
they have ended."""

from __future__ import annotations

import contextlib
import heapq
import os
from collections.abc import Sequence

import msgspec

from qbatch.daemon import journal_entry
from qbatch.daemon.core import state_snapshot
from qbatch.daemon.core.state import Core, Ending, Launch, Stop
from qbatch.daemon.executors.attempt import Ended
from qbatch.daemon.what_if.group import PolicyGroup
from qbatch.policies.registry import load_policy
from qbatch.wire.errors import Refusal
from qbatch.wire.identifiers import JobKey
from qbatch.wire.records import JobRecord, Shadows
from qbatch.wire.requests import Submit
from tests.daemon.core.driver import EMULATED, SECOND, Bench

Fate = tuple[str, int | None, int | None, int | None]
"""What became of a job: state, eligible, started, ended."""


def bench_of(policy: str, executor: str = "emulated") -> Bench:
    """Return a bench of 16 processors under a policy."""
    text = EMULATED.replace("[[pool]]", f'[[pool]]\npolicy = "{policy}"', 1)
    return (RealBench if executor == "process" else Bench)(
        text.replace('"emulated"', f'"{executor}"')
    )


def group_of(bench: Bench, policies: Sequence[str]) -> PolicyGroup:
    """Return shadows that begin with the present state of a bench."""
    return PolicyGroup(
        state_snapshot.load(state_snapshot.dump(bench.core), bench.settings, load_policy),
        policies,
        bench.now,
    )


def fates(core: Core) -> dict[JobKey, Fate]:
    """Return what became of each job that a core knows of."""
    found: dict[JobKey, Fate] = {}
    for job in core.live_jobs():
        for one in [job, *core.members(job)]:
            if not one.is_array:
                started = one.attempt.started if one.attempt is not None else None
                found[one.key] = (
                    one.state.letter,
                    one.eligible,
                    started,
                    one.final.ended if one.final is not None else None,
                )
    return found | ended(core)


def ended(core: Core) -> dict[JobKey, Fate]:
    """Return what became of each job that has ended."""
    return {key: fate(record) for key, record in core.recent.items() if not record.is_array}


def fate(record: JobRecord) -> Fate:
    """Return what became of a job by its record."""
    return record.state, record.eligible, record.started, record.ended


def present(group: PolicyGroup) -> Shadows:
    """Return the table by now, made in a forked child as the daemon makes it."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        with contextlib.suppress(BaseException):
            group.go_on()
            os.write(writer, msgspec.msgpack.encode(group.report()))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        said = file.read()
    os.waitpid(child, 0)
    return msgspec.msgpack.decode(said, type=Shadows)


def alone(policy: str, journal: list[bytes], until: int) -> Bench:
    """Give the commands of a journal to an emulated bench under a policy.

    It makes a pass where reality made one.  A command comes before what falls on its instant,
    unless such a pass stands between.
    """
    bench = bench_of(policy)
    for data in journal:
        entry = journal_entry.read(data)
        if entry.request is not None and entry.actor is not None:
            if entry.at > bench.now:
                bench.wait((entry.at - bench.now - 1) / SECOND)
                bench.now = entry.at
            try:
                bench.do(entry.actor, entry.request)
            except (
                Refusal
            ):  # in reality it was not refused, and a job that was submitted has got a number
                bench.core.next_sequence += isinstance(entry.request, Submit)
        elif entry.kind == "p" and entry.at > bench.now:
            bench.wait((entry.at - bench.now) / SECOND)
        elif entry.kind == "p" and bench.core.is_dirty:
            bench.make_pass()
    bench.wait((until - bench.now) / SECOND)
    return bench


class RealBench(Bench):
    """A bench with the process executor: ``runtime`` of a job is how long it really runs, which the
    core does not ask.

    A job that is stopped takes a second to die.
    """

    def __init__(self, config: str) -> None:
        super().__init__(config)
        self.ends: list[tuple[int, str, int]] = []
        self.seen = 0

    def _collect(self) -> None:
        super()._collect()
        for effect in self.outbox[self.seen :]:
            if isinstance(effect, Launch):
                job = self.core.find(effect.key)
                assert job is not None
                self._end(self.core.now + (job.spec.runtime or 0), job.file_key, 0)
            elif isinstance(effect, Stop):
                self._end(self.core.now + SECOND, effect.file_key, 271)
        self.seen = len(self.outbox)

    def _end(self, at: int, file_key: str, status: int) -> None:
        if file_key not in {key for was, key, _ in self.ends if was <= at}:
            heapq.heappush(self.ends, (at, file_key, status))

    def wait(self, seconds: float) -> None:
        """Let time go on; ends are reported when they come, each with the pass that follows it."""
        goal = self.now + round(seconds * SECOND)
        super().wait(0)
        while self.ends and self.ends[0][0] <= goal:
            at = self.ends[0][0]
            super().wait((at - self.now) / SECOND)
            while self.ends and self.ends[0][0] <= at:
                _, key, status = heapq.heappop(self.ends)
                self.core.now = max(self.core.now, at)
                self.report(Ended(key, status, at, "", {"walltime": 0.0}))
            super().wait(0)
        super().wait((goal - self.now) / SECOND)


def endings(bench: Bench) -> dict[JobKey, Fate]:
    """Return what became of the jobs of a bench that have ended."""
    return {
        effect.key: fate(effect.record)
        for effect in bench.outbox
        if isinstance(effect, Ending) and not effect.record.is_array
    }
