"""The replica and the what-if policies together: entries of the journal in, one table of all
policies out."""

from __future__ import annotations

from collections.abc import Sequence

from qbatch.daemon.core import state_snapshot
from qbatch.daemon.core.state import Core
from qbatch.daemon.what_if.policy_run import PolicyRun, copy_of
from qbatch.daemon.what_if.replica import Replica
from qbatch.wire.records import ShadowRecord, Shadows

MOST_KNOWN = 100_000
"""Known run times that are kept before those that no policy needs any more are dropped."""


class PolicyGroup:
    """What-if policies and the real one.

    Args:
        core: a copy of the real state; it is used up.
        policies: as ``--policy`` takes them.
        since: the present instant; the core may have last been touched before it.

    Raises:
        QbatchError: a policy cannot be used here.
    """

    def __init__(self, core: Core, policies: Sequence[str], since: int) -> None:
        core.take_effects()
        core.now = max(core.now, since)
        data = state_snapshot.dump(core)
        copies = [copy_of(core, data, policy) for policy in policies]
        self.replica = Replica(core)
        known_runs = self.replica.known_runs
        self.runs = {
            policy: PolicyRun(copy, known_runs)
            for policy, copy in zip(policies, copies, strict=True)
        }
        self.failed: dict[str, str] = {}
        self._most_known = MOST_KNOWN

    def follow(self, entries: Sequence[bytes], frontier: int = -1) -> None:
        """Take entries of the journal; none will come any more from before the instant
        ``frontier``."""
        replica = self.replica
        for data in entries:
            item, news = replica.follow(data)
            for run in self.runs.values():
                for key in news:
                    run.learn(key)
                if item is not None:
                    run.take(item)
        replica.frontier = max(replica.frontier, frontier)
        self._each("settle")
        if replica.known_runs is None or len(replica.known_runs.known) < self._most_known:
            return
        known, cores = replica.known_runs.known, [run.core for run in self.runs.values()]
        for key in list(known):  # those that have ended under every policy
            if all(core.next_sequence > key.sequence and core.find(key) is None for core in cores):
                del known[key]
        self._most_known = max(MOST_KNOWN, 2 * len(known))

    def _each(self, what: str) -> None:
        """Call a method of each run; a policy that fails leaves, and the others go on."""
        for policy, run in list(self.runs.items()):
            try:
                getattr(run, what)(self.replica.frontier)
            except Exception as error:
                self.failed[policy] = " ".join(f"{type(error).__name__}: {error}".split())[:300]
                del self.runs[policy]

    @property
    def is_provisional(self) -> bool:
        """Whether a report needs :meth:`go_on`: a policy waits for run times."""
        return any(not run.is_settled for run in self.runs.values())

    def go_on(self) -> None:
        """Bring every policy to the present on assumptions; on a copy only."""
        self._each("go_on")

    def report(self) -> Shadows:
        """Return the table by now: for each pool the real policy, then the what-if policies in
        their given order."""
        at = self.replica.frontier
        columns = [
            self.replica.statistics.records(at, [0] * len(self.replica.core.pools), is_real=True)
        ]
        columns += [run.records(at) for run in self.runs.values()]
        rows: list[ShadowRecord] = [
            record for of_pool in zip(*columns, strict=True) for record in of_pool
        ]
        notes = [
            f"{policy} has failed and is followed no more: {why}"
            for policy, why in self.failed.items()
        ]
        for policy, run in self.runs.items():
            if run.missed:
                notes.append(f"{policy} could not take {run.missed} jobs")
            if run.given_up:
                notes.append(
                    f"{policy} was too far ahead of reality: of {run.given_up} jobs the walltime "
                    "stands for the run time"
                )
        return Shadows(
            policies=tuple(rows), since=self.replica.since, made=at, note="; ".join(notes)
        )
