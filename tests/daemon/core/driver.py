"""A daemon without a daemon: a core, a journal in memory and a clock that the test moves."""

from __future__ import annotations

import msgspec

from qbatch.daemon import journal_entry
from qbatch.daemon.config import parse_config
from qbatch.daemon.core import flow, passes, state_snapshot, steps
from qbatch.daemon.core.invariants import breaches
from qbatch.daemon.core.state import Actor, Core, Effect, Ending
from qbatch.daemon.executors.attempt import Report
from qbatch.daemon.forecasts import ALL, ExpectedStarts, forecast
from qbatch.daemon.handlers import verbs
from qbatch.daemon.handlers.verbs import permit
from qbatch.daemon.settings import Settings
from qbatch.policies.registry import load_policy
from qbatch.wire.errors import Refusal
from qbatch.wire.records import JobRecord
from qbatch.wire.requests import Request, Spec, Submit
from tests.daemon.harness import emulated

SECOND = 1_000_000
ALICE = Actor(1001, "alice", "users", "user")
BOB = Actor(1002, "bob", "users", "user")
ROOT = Actor(0, "root", "root", "manager")
_encode = msgspec.json.Encoder().encode

EMULATED = emulated(
    queues="""
[[queue]]
name = "narrow"
max_running = 2
max_running_per_user = 1
"""
)


class Bench:
    """One core under test."""

    def __init__(self, config: str = EMULATED, settings: Settings | None = None) -> None:
        self.settings = settings or parse_config(config, "the test")
        self.core = Core(self.settings, load_policy)
        self.journal: list[bytes] = []
        self.outbox: list[Effect] = []
        self.ended: dict[str, JobRecord] = {}
        self.now = 0

    def do(self, actor: Actor, request: Request) -> object:
        """Send a request, as the service does."""
        permit(actor, request)
        before = self.core.now
        self.core.now = max(self.core.now, self.now)
        try:
            result = verbs.begin(self.core, actor, request)
        except Refusal:
            self.core.now = before
            raise
        self.journal.append(journal_entry.command(self.core.now, actor, _encode(request)))
        while result is steps.UNFINISHED:
            result = steps.go_on(self.core)
            self.journal.append(journal_entry.step(self.core.now))
        self._collect()
        if isinstance(result, Refusal):  # the policy's: what was done stays done
            raise result
        return result

    def submit(self, script: str = "sleep 10\n", actor: Actor = ALICE, **fields: object) -> str:
        """Submit a job and return its identifier."""
        result = self.do(actor, Submit(spec=Spec(script=script, **fields)))  # type: ignore[arg-type]
        return result.job  # type: ignore[attr-defined, no-any-return]

    def report(self, said: Report) -> None:
        """Report something as an executor does."""
        self.journal.append(journal_entry.report(self.core.now, said))
        flow.reported(self.core, said)
        self._collect()

    def make_pass(self) -> None:
        """Make the pass that follows a commit."""
        self._advance(max(self.core.now, self.now))

    def _advance(self, at: int) -> None:
        passes.advance(self.core, at)
        self.journal.append(journal_entry.one_pass(self.core.now))
        self._collect()

    def wait(self, seconds: float) -> None:
        """Let time go on, instant by instant."""
        goal = self.now + round(seconds * SECOND)
        while self.core.is_dirty:
            self.make_pass()
        while (due := passes.next_due(self.core)) is not None and due <= goal:
            self._advance(max(self.core.now, due))
            while self.core.is_dirty:
                self._advance(self.core.now)
        self.now = goal

    def _collect(self) -> None:
        for effect in self.core.take_effects():
            self.outbox.append(effect)
            if isinstance(effect, Ending):
                self.ended[effect.record.id] = effect.record

    def state(self, job: str) -> str:
        """Return the state letter of a job, F or X once it has ended."""
        found = self.core.find(self.core.key_of(job))
        return found.state.letter if found is not None else self.ended[job].state

    def check(self) -> None:
        """Check the invariants."""
        assert breaches(self.core) == []

    def replayed(self, journal: list[bytes], snapshot: bytes | None = None) -> Core:
        """Return a core made from a snapshot and a journal, as after a crash."""
        core = (
            state_snapshot.load(snapshot, self.settings, load_policy)
            if snapshot
            else Core(self.settings, load_policy)
        )
        for data in journal:
            journal_entry.apply(core, data)
        core.take_effects()
        return core


def forecast_of(
    bench: Bench, first: int = ALL, jobs: tuple[str, ...] = (), by: str = ""
) -> dict[str, tuple[int, int]]:
    """Return the expected start and end of each job, by a copy of the core; ``by``: the run times
    to go by, if others."""
    return {
        bench.core.id_of(key): times
        for key, times in forecast_made(bench, first, jobs, by).found.items()
    }


def forecast_made(
    bench: Bench, first: int = ALL, jobs: tuple[str, ...] = (), by: str = ""
) -> ExpectedStarts:
    """Return the forecast itself."""
    settings = msgspec.structs.replace(
        bench.settings, forecast_run_times=by or bench.settings.forecast_run_times
    )
    copy = state_snapshot.load(state_snapshot.dump(bench.core), settings, load_policy)
    made = forecast(
        copy, bench.now, first=first, keys=[bench.core.key_of(job) for job in jobs], budget=60.0
    )
    assert not made.was_cut
    return made
