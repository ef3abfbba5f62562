"""The drivers of a service: one handles due instants and makes passes, with commands in between;
the other does the steps of commands, one between two commits.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable

from msgspec import structs

from qbatch.daemon import journal_entry
from qbatch.daemon.clock import FOREVER, Clock, PassTimes
from qbatch.daemon.collector import undisturbed
from qbatch.daemon.core import passes, steps
from qbatch.daemon.live_state import Asker, LiveState
from qbatch.daemon.sources import JobSource
from qbatch.model.errors import DecisionError
from qbatch.wire.errors import Refusal
from qbatch.wire.records import ClockRecord

SLICE = 0.008
"""Seconds for which due instants are handled before commands get their turn."""

MOST_UNCOMMITTED = 20_000
"""Entries of the journal that may wait for a commit before time moves on."""

MOST_ARRIVALS = 1000
"""Arrived jobs from which the next pass is made at once."""

SHORTEST_PAUSE = 0.01
"""Seconds between two passes after commands, so that a client that submits many jobs does not cause
a pass for each."""

LONGEST_PAUSE = 0.25
"""Seconds between two passes at most, after a long one, so that commands get their turn."""


class PassDriver:
    """Decides when a service makes its passes, and makes them; ``trace``: the source of jobs that
    arrive by themselves, if any.

    ``is_owed``: a command of several steps is done, and a pass may be made before the next such
    command.  ``breakpoint``: is called after each pass; when it returns True, the clock is paused
    and the breakpoint removed.
    """

    def __init__(self, live: LiveState, clock: Clock, trace: JobSource | None) -> None:
        self.clock = clock
        self.trace = trace
        self.pass_times = PassTimes()
        self.is_owed = False
        self.breakpoint: Callable[[], bool] | None = None
        self._live = live
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._next_pass = 0.0
        self._rest_until = 0.0
        self._has_failed = False

    def next_due(self) -> int | None:
        """Return the next instant at which something happens by itself."""
        due = passes.next_due(self._live.core)
        arrival = self.trace.next_instant() if self.trace is not None else None
        return due if arrival is None else arrival if due is None else min(due, arrival)

    def clock_record(self) -> ClockRecord:
        """Return the clock with the progress of the log."""
        record = self.clock.record()
        if self.trace is not None:
            record = structs.replace(
                record, log_arrived=self._live.core.log_arrived, log_jobs=self.trace.size
            )
        return record

    def instant(self) -> int:
        """Return the instant with which a command is stamped: now, or the next due instant if that
        is earlier."""
        now = self.clock.now()
        due = self.next_due()
        return now if due is None or due >= now else max(self._live.core.now, due)

    def frontier(self) -> int:
        """Return an instant before which the core will get no more entries."""
        core = self._live.core
        now, due = self.clock.now(), self.next_due()
        return core.now if core.is_dirty else max(core.now, now if due is None else min(now, due))

    def move_on(self) -> None:
        """Handle due instants for a moment, then let commands have their turn."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._live.containment.is_spoiled:  # the state is read from disk first
            return
        end = self._loop.time() + SLICE
        try:
            with undisturbed():
                while self._step():
                    if self._loop.time() >= end:
                        break
        except Exception as error:
            self._live.fail(error)
            return
        clock = self.clock
        if not (clock.until == FOREVER or clock.is_paused or self._live.core.is_dirty):
            due = self.next_due()
            if (due is None or due > clock.until) and (
                clock.is_stepped or clock.now() >= clock.until
            ):
                # Time was to run until this instant; it stops here even if nothing happens.
                clock.reach(clock.until)
                clock.pause()
                clock.until = FOREVER
        self._live.event_stream.clock(self._live.core, self.clock_record)
        self.schedule()

    def hold(self) -> None:
        """Handle nothing any more, because the daemon is about to stop."""
        self._rest_until = math.inf

    def _step(self) -> bool:
        """Handle one instant if one is due; return whether one was."""
        live, core = self._live, self._live.core
        began = self._loop.time()
        if began < self._rest_until or live.containment.is_spoiled:
            return False
        # Jobs that a command is about to delete or hold must not start.
        if core.works and not self.is_owed:
            return False
        if core.is_dirty and not self.clock.is_paused:
            # The pass after commands belongs to their instant, before anything that is due later.
            if began < self._next_pass and self._arrivals() < MOST_ARRIVALS:
                return False
            at = core.now
        else:
            due = self.next_due()
            if due is None or due > self.clock.limit():
                return False
            self.clock.reach(due)
            at = max(core.now, due)
        try:
            arrivals = self.trace.take(core, at) if self.trace is not None else []
            passes.advance(core, at)
        except Exception as error:
            if self._has_failed or isinstance(error, DecisionError):
                live.fail(error)
            else:  # the state is read from disk, and the jobs before the pass are held
                live.containment.pass_failed(error)
                live.commit_soon()
            self._has_failed = True
            return False
        self._has_failed = self.is_owed = False
        live.journal(*arrivals, journal_entry.one_pass(core.now))
        if core.outbox or core.has_promised or live.uncommitted > 1000:
            live.collect()
        core.has_promised = False
        took = self._loop.time() - began
        if not self.clock.is_stepped:
            self._next_pass = began + min(max(2 * took, SHORTEST_PAUSE), LONGEST_PAUSE)
        self.pass_times.add(took)
        self.stop_at_breakpoint()
        return live.uncommitted < MOST_UNCOMMITTED

    def stop_at_breakpoint(self) -> None:
        """Pause the clock after a pass if the breakpoint is reached."""
        if self.breakpoint is not None and self.breakpoint():
            self.breakpoint = None
            self.clock.pause()

    def _arrivals(self) -> int:
        """Return how many arrived jobs wait for their first pass."""
        return sum(len(pool.pending) for pool in self._live.core.pools)

    def step_once(self) -> bool:
        """Handle the next instant whatever the clock shows (``qbatch time step``); return whether
        there was one."""
        due = self._live.core.now if self._live.core.is_dirty else self.next_due()
        if due is None:
            return False
        was_until, self.clock.until = self.clock.until, due
        was_paused, self.clock.is_paused = self.clock.is_paused, False
        self.clock.reach(due)
        self._next_pass = 0.0
        try:
            with undisturbed():
                self._step()
        finally:
            self.clock.until, self.clock.is_paused = was_until, was_paused
        return True

    def schedule(self) -> None:
        """Set the timer for the next due instant."""
        if (
            self._timer is not None
            or self._live.failure is not None
            or self._live.containment.is_spoiled
        ):
            return
        if self._live.core.works and not self.is_owed:
            return
        due = self.next_due()
        if self.clock.until < FOREVER:
            due = self.clock.until if due is None else min(due, self.clock.until)
        delay = None if due is None else self.clock.delay(due)
        if self._live.core.is_dirty and not self.clock.is_paused:
            pause = (
                0.0
                if self._arrivals() >= MOST_ARRIVALS
                else max(self._next_pass - self._loop.time(), 0.0)
            )
            delay = min(pause, delay if delay is not None else 3600.0)
        if delay is None:
            return
        delay = max(delay, self._rest_until - self._loop.time(), 0)
        self._timer = self._loop.call_later(min(delay, 3600.0), self.move_on)

    def rest(self, seconds: float) -> None:
        """Handle nothing for so many seconds."""
        self._rest_until = self._loop.time() + seconds


class WorkDriver:
    """Does the steps of the works (commands of several steps) of a service's core, one after the
    other.

    A full disk stops them until there is space.  No client waits for a command that was under way
    when the daemon started.
    """

    def __init__(self, live: LiveState, pass_driver: PassDriver) -> None:
        self._live = live
        self._pass_driver = pass_driver
        self._askers: deque[Asker | None] = deque([None] * len(live.core.works))
        self._must_give_up = False

    def take(self, asker: Asker | None) -> None:
        """Note that the core has one more work; ``asker`` gets its answer after the last step."""
        self._askers.append(asker)

    def is_due(self) -> bool:
        """Return whether there is a step to do."""
        live = self._live
        return bool(live.core.works) and not (live.is_full or live.containment.is_spoiled)

    def step(self) -> None:
        """Do the next step of the oldest work; after the last step its answer is part of the next
        commit."""
        if not self.is_due():
            return
        live, core = self._live, self._live.core
        work = core.works[0]
        core.now = max(core.now, self._pass_driver.instant())
        try:
            answer = steps.go_on(core)
        except Exception as error:
            self._must_give_up = True
            self._answer(live.containment.step_failed(work, error))
            return
        live.journal(journal_entry.step(core.now))
        live.collect()
        if answer is not steps.UNFINISHED:
            self._pass_driver.is_owed = True
            self._answer(answer)

    def _answer(self, answer: object) -> None:
        asker = self._askers.popleft()
        if isinstance(asker, asyncio.Future):
            if not asker.done():
                asker.set_result(answer)
        elif asker is not None:
            self._live.answer(*asker, answer)

    def after_recovery(self) -> None:
        """Continue the works of a state that was read from disk; a work with a failed step is given
        up."""
        if self._must_give_up:
            self._must_give_up = False
            core = self._live.core
            del core.works[0]
            self._live.journal(journal_entry.step(core.now, is_last=True))

    def after_full_disk(self, directory: str) -> None:
        """Refuse all askers after the state was read from disk, which lost what was not committed;
        committed works go on."""
        refusal = Refusal(
            "storage-full",
            f"the disk of {directory} is full; what was begun goes on when there is space",
        )
        for asker in self._askers:
            if isinstance(asker, asyncio.Future):
                asker.set_result(refusal)
            elif asker is not None:
                asker[0].settled()
                asker[0].fail(asker[1], refusal)
        self._askers = deque([None] * len(self._live.core.works))
