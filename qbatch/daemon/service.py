"""The service: takes commands and reports, keeps the journal, makes passes, answers when the effect is committed.

One event loop, one writer.  A command is applied to the core at once and journaled with its instant; while one group is
being committed the next one gathers.  After the commit the replies go out, then the effects (launches, mail, events),
then one pass.  An unexpected error of the core or of the store ends the process or starts it anew from disk: what was
answered is there, what was not answered may be asked again.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from msgspec import structs

from qbatch.daemon import entry
from qbatch.daemon.announcer import Announcer
from qbatch.daemon.caller import Caller
from qbatch.daemon.clock import FOREVER, Clock
from qbatch.daemon.core import passes, reports
from qbatch.daemon.core.state import Actor, Core, Effect, Ending
from qbatch.daemon.effects import Effects
from qbatch.daemon.executors.attempt import Ended, Report
from qbatch.daemon.feed import Feed
from qbatch.daemon.forecasts import Forecasts
from qbatch.daemon.handlers import verbs
from qbatch.daemon.pass_times import PassTimes
from qbatch.daemon.settings import Settings
from qbatch.daemon.shadows import Shadows
from qbatch.daemon.store import StorageError, StorageFull, Store
from qbatch.daemon.waiters import Waiters
from qbatch.model.errors import DecisionError
from qbatch.wire.errors import Refusal
from qbatch.wire.identifiers import JobKey
from qbatch.wire.records import ClockRecord, JobRecord
from qbatch.wire.requests import Request

log = logging.getLogger("qbatch")

SLICE = 0.008
"""Seconds for which time may move on before commands get their turn."""

AGAIN = 1.0
"""Seconds until a full disk is tried again."""

MOST_CONNECTIONS = 12_000

MOST_WAITING = 20_000
"""Commands that may wait for a commit; beyond it the answer is ``busy``."""

MOST_ARRIVALS = 1000
"""Jobs that may wait for the pass that takes them in; with so many it is made at once."""

SHORTEST_PAUSE = 0.01
"""Seconds between two passes that follow commands: who submits one job after the other does not pay a pass for each."""

LONGEST_PAUSE = 0.25
"""Seconds for which passes rest at most after a long one, so that commands get their turn."""


@dataclass(frozen=True, kw_only=True)
class Instance:
    """The process in which a service runs, as far as the service is asked about it.

    ``started``: microseconds since 1970.  ``socket``, ``config``: paths.  ``is_compiled``: whether compiled kernels serve.
    ``reload``: reads the configuration again and tells what has changed.
    """

    started: int
    socket: str
    config: str
    is_compiled: Callable[[], bool]
    reload: Callable[[], Awaitable[str]]


class Group:
    """What one commit holds, and what follows it."""

    def __init__(self) -> None:
        self.entries: list[bytes] = []
        self.endings: list[tuple[JobKey, JobRecord]] = []
        self.effects: list[Effect] = []
        self.replies: list[tuple[Caller, int, object]] = []

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to commit."""
        return not (self.entries or self.endings or self.replies or self.effects)


class Service:
    """One running batch server.

    Args:
        settings: what it goes by.
        core: the state, recovered.
        store: open.
        clock: set to the instant from which to go on.
        rebuild: makes a core from the store again, after a commit that failed for want of space.
        instance: the process around it.
        feed: the workload log that arrives by itself, if there is one.
    """

    def __init__(self, settings: Settings, core: Core, store: Store, clock: Clock,
                 rebuild: Callable[[], Awaitable[Core]], instance: Instance, feed: Feed | None = None) -> None:  # fmt: skip
        self.settings = settings
        self.core = core
        self.store = store
        self.clock = clock
        self.feed = feed
        self.instance = instance
        self.callers: set[Caller] = set()
        self.waiters = Waiters()
        self.pass_times = PassTimes()
        self.forecasts = Forecasts(lambda: self.core, clock, self.pass_times)
        self.announcer = Announcer(self.subscribers)
        self.announcer.last = core.events_made
        self.effects = Effects(self.waiters, self.forecasts, self.announcer)
        self.shadows = Shadows(self)
        self.stop_reason = ""
        self.is_full = False
        self.breakpoint: Callable[[], str] | None = None
        self.commits = 0
        self.failure: BaseException | None = None
        self._rebuild = rebuild
        self._group = Group()
        self._work = asyncio.Event()
        self._commit_lock = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._next_pass = 0.0
        self._rest_until = 0.0

    # Commands

    def take(self, caller: Caller) -> bool:
        """Take a caller, if there is room for it."""
        if len(self.callers) >= MOST_CONNECTIONS:
            return False
        self.callers.add(caller)
        return True

    def leave(self, caller: Caller) -> None:
        """A caller has gone."""
        self.callers.discard(caller)

    def receive(self, caller: Caller, request: Request, body: bytes) -> None:
        """Take a permitted request that changes the core; its reply comes when its effect is committed.

        Raises:
            Refusal: nothing has changed.
        """
        self._refuse_if_busy()
        result = self.change(caller.actor, request, body)
        self._group.replies.append((caller, request.id, result))

    def change(self, actor: Actor, request: Request, body: bytes) -> object:
        """Apply a request that changes the core, and journal it; the effect counts when it is committed.

        Raises:
            Refusal: nothing has changed.
        """
        core = self.core
        before = core.now
        core.now = max(before, self.instant())
        try:
            result = verbs.MUTATORS[type(request)](core, actor, request)
        except Refusal as error:
            if error.code == "refused-by-fault":  # it has counted itself, and must do so when it is replayed
                self._group.entries.append(entry.command(core.now, actor, body))
                self._collect()
            else:
                core.now = before
            raise
        self._group.entries.append(entry.command(core.now, actor, body))
        self._collect()
        return result

    def _refuse_if_busy(self) -> None:
        if self.stop_reason:
            raise Refusal("stopping", "the server is stopping; try again when it is back")
        if self.is_full:
            raise Refusal(
                "storage-full", f"the disk of {self.store.directory} is full: nothing can be taken until there is space"
            )
        if len(self._group.replies) >= MOST_WAITING:
            raise Refusal("busy", "too many commands wait for the disk; try again in a second")

    def instant(self) -> int:
        """Return the instant with which a command is stamped: now, but not past what is due and not yet handled."""
        now = self.clock.now()
        due = self.next_due()
        return now if due is None or due >= now else max(self.core.now, due)

    def frontier(self) -> int:
        """Return an instant before which nothing will be taken any more."""
        now, due = self.clock.now(), self.next_due()
        return self.core.now if self.core.is_dirty else max(self.core.now, now if due is None else min(now, due))

    def is_at_rest(self) -> bool:
        """Whether everything that was taken is committed."""
        return self._group.is_empty and not self._commit_lock.locked()

    def commit_soon(self) -> None:
        """Commit what was taken, also if nothing in it has an effect."""
        self._work.set()

    def report(self, said: Report) -> None:
        """Take a report of the executor."""
        if reports.job_of(self.core, said.key) is None:
            if isinstance(said, Ended):
                self.effects.forget(said.key)
            return
        try:
            self.core.now = max(self.core.now, self.instant())
            self._group.entries.append(entry.report(self.core.now, said))
            reports.reported(self.core, said)
            self._collect()
        except Exception as error:
            self.fail(error)

    # Time

    def next_due(self) -> int | None:
        """Return the next instant at which something happens by itself."""
        due = passes.next_due(self.core)
        if self.feed is not None:
            arrival = self.feed.next_arrival()
            if arrival is not None and (due is None or arrival < due):
                due = arrival
        return due

    def move_on(self) -> None:
        """Handle what is due, for a moment; then let commands have their turn."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        end = self._loop.time() + SLICE
        try:
            while self._step():
                if self._loop.time() >= end:
                    break
        except Exception as error:
            self.fail(error)
            return
        self._stop_where_asked()
        self.announcer.clock(self.core, self.clock_record)
        self._schedule()

    def hold(self) -> None:
        """Make no more passes and handle nothing that is due: the daemon is about to stop."""
        self._rest_until = math.inf

    def _stop_where_asked(self) -> None:
        """Time that runs until an instant stops there, even if nothing happens at it."""
        clock = self.clock
        if clock.until == FOREVER or clock.is_paused or self.core.is_dirty:
            return
        due = self.next_due()
        if (due is None or due > clock.until) and (clock.is_stepped or clock.now() >= clock.until):
            clock.reach(clock.until)
            clock.pause()
            clock.until = FOREVER

    def _step(self) -> bool:
        """Handle one instant, if one is due; tell whether."""
        core = self.core
        if self._loop.time() < self._rest_until:
            return False
        if core.is_dirty and not self.clock.is_paused:
            # The pass that follows commands belongs to their instant, before anything that is due later.
            if self._loop.time() < self._next_pass and self._arrivals() < MOST_ARRIVALS:
                return False
            at = core.now
        else:
            due = self.next_due()
            if due is None or due > self.clock.limit():
                return False
            self.clock.reach(due)
            at = max(core.now, due)
        began = self._loop.time()
        if self.feed is not None:
            self._group.entries += self.feed.arrive(core, at)
        passes.advance(core, at)
        self._group.entries.append(entry.one_pass(core.now))
        if core.effects or core.has_promised or len(self._group.entries) > 1000:
            self._collect()
        core.has_promised = False
        took = self._loop.time() - began
        if not self.clock.is_stepped:
            self._next_pass = began + min(max(2 * took, SHORTEST_PAUSE), LONGEST_PAUSE)
        self.pass_times.add(took)
        if self.breakpoint is not None:
            text = self.breakpoint()
            if text:
                self.breakpoint = None
                self.clock.pause()
        return len(self._group.entries) < MOST_WAITING

    def _arrivals(self) -> int:
        """Return how many jobs wait for the pass that takes them in."""
        return sum(len(pool.pending) for pool in self.core.pools)

    def step_once(self) -> bool:
        """Handle the next instant whatever the clock says (``qbatch time step``); tell whether there was one."""
        due = self.core.now if self.core.is_dirty else self.next_due()
        if due is None:
            return False
        was_until, self.clock.until = self.clock.until, due
        was_paused, self.clock.is_paused = self.clock.is_paused, False
        self.clock.reach(due)
        self._next_pass = 0.0
        try:
            self._step()
        finally:
            self.clock.until, self.clock.is_paused = was_until, was_paused
        return True

    def _schedule(self) -> None:
        """Come back when the next instant is due."""
        if self._timer is not None or self.failure is not None:
            return
        delay: float | None = None
        due = self.next_due()
        if self.clock.until < FOREVER:
            due = self.clock.until if due is None else min(due, self.clock.until)
        if due is not None:
            delay = self.clock.delay(due)
        if self.core.is_dirty and not self.clock.is_paused:
            pause = 0.0 if self._arrivals() >= MOST_ARRIVALS else max(self._next_pass - self._loop.time(), 0.0)
            delay = min(pause, delay if delay is not None else 3600.0)
        if delay is None:
            return
        delay = max(delay, self._rest_until - self._loop.time())
        if delay <= 0:
            self._timer = self._loop.call_later(0, self.move_on)
        else:
            self._timer = self._loop.call_later(min(delay, 3600.0), self.move_on)

    def clock_record(self) -> ClockRecord:
        """Return the clock with the progress of the log."""
        record = self.clock.record()
        if self.feed is not None:
            record = structs.replace(record, log_arrived=self.core.log_arrived, log_jobs=self.feed.size)
        return record

    # Commits

    def _collect(self) -> None:
        group = self._group
        for effect in self.core.take_effects():
            if isinstance(effect, Ending):
                group.endings.append((effect.key, effect.record))
            group.effects.append(effect)
        self._work.set()

    async def run(self) -> None:
        """Commit, answer, act and move time on, until ``stop`` is called; then commit what is left.

        Raises:
            StorageError: it is not known what was written; nobody was answered.
        """
        self._schedule()
        while True:
            await self._work.wait()
            self._work.clear()
            if self.failure is not None:
                raise self.failure
            while not self._group.is_empty:
                async with self._commit_lock:
                    await self._commit_group()
                if self.failure is not None:
                    raise self.failure
                self.move_on()
                # Let what has arrived in the meantime be read before the next commit: it joins it.
                await asyncio.sleep(0)
            if self.stop_reason and self._group.is_empty:
                return
            self._schedule()

    @asynccontextmanager
    async def quiet(self, *, is_past_snapshot: bool = False) -> AsyncIterator[None]:
        """A moment in which everything that was taken is committed and nothing is being committed.

        ``is_past_snapshot``: the journal has a number above that of the snapshot, so that another gets a file of its own.
        """
        async with self._commit_lock:
            if is_past_snapshot and self.store.number == self.store.snapshot_number:
                await self.store.commit([], [])
            while not self._group.is_empty:
                await self._commit_group()
                if self.failure is not None:
                    raise StorageError(str(self.failure))
            yield

    async def exchange_core(self, change: Callable[[Core], Core], keep: Callable[[], Awaitable[None]]) -> None:
        """Put another state in place of the present one, between two commits, and ``keep`` it before the next.

        What is taken under the new settings must never be replayed under the old ones.
        """
        async with self.quiet(is_past_snapshot=True):
            before, self.core = self.settings.shadows, change(self.core)
            self.settings = self.core.settings
            if self.feed is not None:
                self.feed.attach(self.core)
            try:
                await keep()
            except (OSError, StorageError) as error:
                self.fail(StorageError(f"the new configuration cannot be kept: {error}"))
                raise
            asked = self.settings.shadows
            self.shadows.begin_again(asked if asked != before else self.shadows.policies)
        self.move_on()
        self._work.set()

    async def gets_on(self, seconds: float) -> bool:
        """Whether the committer does its work: an empty group goes through it in time."""
        try:
            async with asyncio.timeout(seconds):
                async with self._commit_lock:
                    return self.failure is None
        except TimeoutError:
            return False

    async def _commit_group(self) -> None:
        if self.failure is not None:  # the state is not to be trusted: nothing is written any more, nobody answered
            if isinstance(self.failure, DecisionError):
                raise self.failure
            raise StorageError(str(self.failure)) from self.failure
        group, self._group = self._group, Group()
        if group.entries or group.endings:
            try:
                await self.store.commit(group.entries, group.endings)
            except StorageFull:
                await self._out_of_space(group)
                return
            except StorageError as error:  # whoever waits for this commit, the daemon stops
                self.fail(error)
                raise
            self.commits += 1
        for caller, number, result in group.replies:
            caller.reply(number, result)
        self.effects.carry_out(self.core, group.effects)
        self.shadows.follow(group.entries)

    async def _out_of_space(self, group: Group) -> None:
        """Nothing was written: refuse who asked, go back to what is on disk, and try again until there is space."""
        was_full, self.is_full = self.is_full, True
        if not was_full:
            log.error("the disk of %s is full: submissions are refused", self.store.directory)
        self.store.free_reserve()
        lost, self._group = [group, self._group], Group()
        for each in lost:
            for caller, number, _ in each.replies:
                caller.fail(
                    number, Refusal("storage-full", f"the disk of {self.store.directory} is full; nothing has changed")
                )
        self._rest_until = self._loop.time() + AGAIN
        self.core = await self._rebuild()
        # What was reported meanwhile went to the state that is gone; it is asked for again.
        self._group = Group()
        if not was_full:
            self._loop.call_later(AGAIN, self._try_space)
        self._schedule()

    def _try_space(self) -> None:
        if self.store.has_space():
            log.warning("there is space in %s again", self.store.directory)
            self.is_full = False
        else:
            self._loop.call_later(AGAIN, self._try_space)
        self.effects.after_rebuild(self.core)
        self._schedule()

    # Ends

    def subscribers(self) -> Iterator[Caller]:
        """Return the callers that get events."""
        return (caller for caller in self.callers if caller.is_subscribed)

    def stop(self, reason: str) -> None:
        """Commit what was taken and stop; jobs run on."""
        self.stop_reason = self.stop_reason or reason
        self._work.set()

    def fail(self, error: BaseException) -> None:
        """Something that must not happen has happened: answer nobody, stop, and let the next start recover."""
        log.critical("the server stops: %s: %s", type(error).__name__, error, exc_info=error)
        if self.failure is None:
            if isinstance(error, DecisionError):
                again = "no job is lost: start again under another policy, for example qbatch up --policy easy"
                self.failure = DecisionError(f"{error}; {again}")
            else:
                is_known = isinstance(error, StorageError)
                self.failure = error if is_known else RuntimeError(f"{type(error).__name__}: {error}")
        self._work.set()
