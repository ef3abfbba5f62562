"""The mirror and the shadows together: entries of the journal in, one table of policies side by side out."""

from __future__ import annotations

from collections.abc import Sequence

from qbatch.daemon.core import state_snapshot
from qbatch.daemon.core.state import Core
from qbatch.daemon.shadowing.mirror import Mirror
from qbatch.daemon.shadowing.shadow import ShadowRun, copy_of
from qbatch.wire.records import ShadowRecord, Shadows

MOST_KNOWN = 100_000
"""Run times kept before those that no shadow needs any more are dropped."""


class Team:
    """Policies in shadow beside the real one.

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
        self.mirror = Mirror(core)
        self.shadows = {policy: ShadowRun(copy, self.mirror.truth) for policy, copy in zip(policies, copies, strict=True)}
        self.failed: dict[str, str] = {}
        self._most_known = MOST_KNOWN

    def follow(self, entries: Sequence[bytes], frontier: int = -1) -> None:
        """Take entries of the journal; ``frontier``: an instant before which none will come any more."""
        mirror = self.mirror
        for data in entries:
            item, news = mirror.follow(data)
            for shadow in self.shadows.values():
                for key in news:
                    shadow.learn(key)
                if item is not None:
                    shadow.take(item)
        mirror.frontier = max(mirror.frontier, frontier)
        self._each("settle")
        self._forget()

    def _each(self, what: str) -> None:
        """Let each shadow go its way; one whose policy fails leaves, the others go on."""
        for policy, shadow in list(self.shadows.items()):
            try:
                getattr(shadow, what)(self.mirror.frontier)
            except Exception as error:
                self.failed[policy] = " ".join(f"{type(error).__name__}: {error}".split())[:300]
                del self.shadows[policy]

    def _forget(self) -> None:
        """Drop run times of jobs that have ended under every policy."""
        truth = self.mirror.truth
        if truth is None or len(truth.known) < self._most_known:
            return
        for key in list(truth.known):
            cores = [shadow.core for shadow in self.shadows.values()]
            if all(core.next_sequence > key.sequence and core.find(key) is None for core in cores):
                del truth.known[key]
        self._most_known = max(MOST_KNOWN, 2 * len(truth.known))

    @property
    def is_provisional(self) -> bool:
        """Whether a report needs :meth:`go_on`: a shadow waits for run times."""
        return any(not shadow.is_settled for shadow in self.shadows.values())

    def go_on(self) -> None:
        """Bring every shadow to the present on assumptions; on a copy only."""
        self._each("go_on")

    def report(self) -> Shadows:
        """Return the table by now: in each pool the real policy, then those in shadow in the order of their names given."""
        at = self.mirror.frontier
        columns = [self.mirror.tally.records(at, [0] * len(self.mirror.core.pools), is_real=True)]
        columns += [shadow.records(at) for shadow in self.shadows.values()]
        rows: list[ShadowRecord] = [record for of_pool in zip(*columns, strict=True) for record in of_pool]
        return Shadows(policies=tuple(rows), since=self.mirror.since, made=at, note="; ".join(self._notes()))

    def _notes(self) -> list[str]:
        notes = [f"{policy} has failed and is followed no more: {why}" for policy, why in self.failed.items()]
        for policy, shadow in self.shadows.items():
            if shadow.missed:
                notes.append(f"{policy} could not take {shadow.missed} jobs")
            if shadow.given_up:
                notes.append(
                    f"{policy} was too far ahead of reality: of {shadow.given_up} jobs the walltime stands for the run time"
                )
        return notes
