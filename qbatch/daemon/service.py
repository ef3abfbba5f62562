"""The service: receives commands and reports, keeps the journal, makes passes, and answers when the
effect is committed.

There is one event loop and one writer.  A command is applied to the core at once and journaled with
its instant; while one group is being committed, the next one gathers.  After the commit the replies
are sent, then the effects of the core are carried out (launches, mail, events), then one pass is
made.  So an answer never waits for a pass, unless the policy may refuse: then a submission makes
the pass of its pool before it is answered, and both are one entry of the journal
(:mod:`qbatch.daemon.core.admission`).

After an unexpected error of a command, the command is refused and the state before it is read from
disk.  An error of the store ends the process: answered commands are kept, the others may be sent
again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from qbatch.daemon import journal_entry
from qbatch.daemon.clock import Clock
from qbatch.daemon.config import as_toml
from qbatch.daemon.connection import Clients, ConnectedClient
from qbatch.daemon.containment import Containment
from qbatch.daemon.core import flow, steps, submission
from qbatch.daemon.core.reconfigure import reconfigure
from qbatch.daemon.core.state import Account, Actor, Core, Ending
from qbatch.daemon.core.steps import UNFINISHED
from qbatch.daemon.event_stream import EventStream
from qbatch.daemon.executors.attempt import LOST, Ended, Report
from qbatch.daemon.forecasts import Forecaster
from qbatch.daemon.handlers import verbs
from qbatch.daemon.live_state import Asker, CommitGroup, LiveState
from qbatch.daemon.outbox import Outbox, Waiters
from qbatch.daemon.own_policies import OwnPolicies
from qbatch.daemon.pass_driver import PassDriver, WorkDriver
from qbatch.daemon.scripts import Scripts
from qbatch.daemon.settings import Settings
from qbatch.daemon.sources import JobSource
from qbatch.daemon.store import StorageError, StorageFull, Store
from qbatch.daemon.unread import Unread
from qbatch.daemon.what_if_process import WhatIfProcess
from qbatch.model.errors import DecisionError, InputError, QbatchError
from qbatch.wire.errors import Refusal
from qbatch.wire.requests import Hold, Request, Submit

log = logging.getLogger("qbatch")

AGAIN = 1.0
"""Seconds until a full disk is checked again."""

BUSY = 100
"""Commits, or jobs at one time, from which a daemon is busy and loads compiled kernels (half a
second, 80 MB).  A daemon with a log is busy from the start."""

MOST_WAITING = 20_000
"""Commands that may wait for a commit; a further one is refused as ``busy``."""

MOST_CONNECTIONS = 12_000
"""Connections at the same time, if the limit of descriptors allows so many."""

_SERVER = Actor(0, "qbatch", "qbatch", "manager")
"""The asker of commands of the server itself."""

_encode = msgspec.json.Encoder().encode

Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True)
class Instance:
    """The process in which a service runs, as far as clients ask about it.

    ``started``: microseconds since 1970.  ``socket``, ``config``: paths.  ``is_compiled``: whether
    compiled kernels serve. ``reload``: reads the configuration again and returns what has changed.
    ``most_connections``: at the same time.
    """

    started: int
    socket: str
    config: str
    is_compiled: Callable[[], bool]
    reload: Callable[[], Awaitable[str]]
    most_connections: int = MOST_CONNECTIONS


@dataclass(frozen=True)
class Recovered:
    """The state that was read from the store.

    ``was_there``: whether the store had been used.  ``records``: the accounting of the journal's
    tail.  ``touched``: the live jobs of the commands since the last pass.
    """

    core: Core
    was_there: bool
    records: list[Account]
    touched: tuple[str, ...]


async def to_its_end(work: Coroutine[Any, Any, Result]) -> Result:
    """Do some work and return its result; a cancellation of the present task takes effect after the
    work."""
    task, is_cancelled = asyncio.ensure_future(work), False
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            is_cancelled = True
    if is_cancelled:
        if not task.cancelled():
            task.exception()  # no task waits for it any more
        raise asyncio.CancelledError
    return task.result()


class Service(LiveState):
    """One running batch server.

    ``core``: the recovered state, with the settings in force.  ``clock``: at the instant from which
    to continue.  ``rebuild``: reads the state from the store again, after a commit without space on
    the disk or a command that raised.  ``instance``: the process around it.  ``trace``: the source
    of jobs that arrive by themselves, if there is one.
    """

    def __init__(
        self,
        core: Core,
        store: Store,
        clock: Clock,
        rebuild: Callable[[], Awaitable[Recovered]],
        instance: Instance,
        trace: JobSource | None = None,
    ) -> None:
        containment = Containment()
        clients = Clients(instance.most_connections, lambda: self.settings, Unread(), containment)
        super().__init__(core, containment, EventStream(clients.subscribers))
        self.store = store
        self.clock = clock
        self.trace = trace
        self.instance = instance
        self.clients = clients
        self.unread = clients.unread
        self.waiters = Waiters()
        self.scripts = Scripts(store.directory / "scripts", lambda: submission.digests(self.core))
        self.pass_driver = PassDriver(self, clock, trace)
        self.works = WorkDriver(self, self.pass_driver)
        self.forecasts = Forecaster(lambda: self.core, clock, self.pass_driver.pass_times)
        self.outbox = Outbox(self.waiters, self.forecasts, self.event_stream, self.report)
        self.what_if = WhatIfProcess(self, self.pass_driver)
        self.own_policies = OwnPolicies(lambda: self.settings.named_policies(), instance.config)
        self.stop_reason = ""
        self.commits = 0
        self.is_busy = asyncio.Event()
        if trace is not None:
            self.is_busy.set()
        self._rebuild = rebuild

    # Commands

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self.core.settings

    @property
    def now(self) -> int:
        """The present instant of the clock, or the instant of the state if that is later."""
        return max(self.core.now, self.clock.now())

    def receive(self, client: ConnectedClient, request: Request, body: bytes) -> None:
        """Carry out a permitted request that changes the core; its reply is sent when its effect is
        committed.

        Raises:
            Refusal: nothing has changed.
        """
        self.refuse_if_busy()
        if isinstance(request, Submit) and request.spec.script_digest:
            self.scripts.require(request.spec.script_digest)
        if (
            result := self.change(client.actor, request, body, (client, request.id))
        ) is not UNFINISHED:
            self.answer(client, request.id, result)

    def change(
        self, actor: Actor, request: Request, body: bytes, asker: Asker | None = None
    ) -> object:
        """Apply a request that changes the core, and journal it; the effect counts when it is
        committed.

        A returned ``Refusal`` is an answer too: the policy refused a job, which has a record.
        ``UNFINISHED``: the request takes several steps, and ``asker`` gets the answer after the
        last one (:mod:`.core.steps`).

        Raises:
            Refusal: nothing has changed.
        """
        self.containment.refuse_repeated(actor, request)
        core = self.core
        before = core.now
        core.now = max(before, self.pass_driver.instant())
        try:
            result = verbs.begin(core, actor, request)
        except Refusal as error:
            # It has counted itself, and must count again in a replay.
            if error.code == "refused-by-fault":
                self._group.entries.append(journal_entry.command(core.now, actor, body))
                self.collect()
            else:
                core.now = before
            raise
        except Exception as error:
            refusal = self.containment.command_failed(actor, request, error)
            self._work.set()
            raise refusal from error
        self._group.entries.append(journal_entry.command(core.now, actor, body))
        self.collect()
        if result is UNFINISHED:
            self.works.take(asker)
        if isinstance(request, Submit) and not core.is_dirty:  # it may have made the pass
            self.pass_driver.stop_at_breakpoint()
        return result

    def command(self, request: Request) -> object:
        """Give a command of the server itself; it is journaled like any other.

        Raises:
            Refusal: nothing has changed.
        """
        return self.change(_SERVER, request, _encode(request))

    def refuse_if_busy(self) -> None:
        """Refuse a command if the server cannot store it.

        Raises:
            Refusal: the server stops, its disk is full, or too many commands wait for the disk.
        """
        if self.stop_reason:
            raise Refusal("stopping", "the server is stopping; try again when it is back")
        if self.is_full:
            text = (
                f"the disk of {self.store.directory} is full: nothing can be taken until there "
                "is space"
            )
            raise Refusal("storage-full", text)
        if len(self._group.replies) >= MOST_WAITING:
            raise Refusal("busy", "too many commands wait for the disk; try again in a second")

    def report(self, report: Report) -> None:
        """Apply a report of the executor; a report that cannot be applied now is asked for again
        after the recovery."""
        if self.containment.is_spoiled:
            return
        if isinstance(report, Ended) and self.containment.has_failed(report.key):
            report = Ended(report.key, LOST, report.at, "the report of its end cannot be taken")
        if flow.job_of_attempt(self.core, report.key) is None:
            if isinstance(report, Ended):
                self.outbox.forget(report.key)
            return
        count = len(self._group.entries)
        try:
            self.core.now = max(self.core.now, self.pass_driver.instant())
            self._group.entries.append(journal_entry.report(self.core.now, report))
            flow.reported(self.core, report)
            self.collect()
        except Exception as error:
            if self.containment.report_failed(report.key, error):
                del self._group.entries[count:]
                self._work.set()
            else:
                self.fail(error)

    # Commits

    async def run(self) -> None:
        """Commit, answer, carry out effects and move time on until ``stop`` is called; then commit
        what is left.

        Raises:
            StorageError: it is not known what was written; no command of the commit was answered.
        """
        self.pass_driver.schedule()
        if self.core.works:  # they were under way when the previous daemon ended
            self._work.set()
        while True:
            await self._work.wait()
            self._work.clear()
            if self.failure is not None:
                raise self.failure
            while self._is_unsettled():
                async with self.commit_lock:
                    await self._commit_group()
                if self.failure is not None:
                    raise self.failure
                self.works.step()
                self.pass_driver.move_on()
                # Read what has arrived in the meantime, so that it joins the next commit.
                await asyncio.sleep(0)
            if self.stop_reason and self._group.is_empty:
                return
            self.pass_driver.schedule()

    @asynccontextmanager
    async def quiet(self, *, is_past_snapshot: bool = False) -> AsyncIterator[None]:
        """Hold a moment in which all commands are committed to their last step and no commit is
        under way.

        ``is_past_snapshot``: wait until the journal is beyond the snapshot, so that the next
        snapshot gets a file of its own.
        """
        async with self.commit_lock:
            await to_its_end(self._settle(is_past_snapshot=is_past_snapshot))
            yield

    async def _settle(self, *, is_past_snapshot: bool) -> None:
        if is_past_snapshot and self.store.number == self.store.snapshot_number:
            await self.store.commit([], [])
        while self._is_unsettled():
            await self._commit_group()
            if self.failure is not None:
                raise StorageError(str(self.failure))
            self.works.step()
            await asyncio.sleep(0)
        if self.core.works:
            raise StorageFull(
                f"the disk of {self.store.directory} is full: a command under way cannot go on"
            )

    async def committed(self) -> None:
        """Wait until everything received by now is committed; commands of several steps need not be
        finished."""
        async with self.commit_lock:
            if not self._group.is_empty:
                await to_its_end(self._commit_group())

    async def reconfigure(self, settings: Settings) -> None:
        """Change the settings; the change is journaled like a command.

        Raises:
            InputError: the settings cannot be used; nothing has changed.
        """
        before, core = self.settings.shadows, self.core
        done: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        core.now = max(core.now, self.pass_driver.instant())
        try:
            result = steps.begin(core, reconfigure(core, settings))
        except Exception as error:
            if not isinstance(error, QbatchError):
                self.containment.is_spoiled = True
                self._work.set()
            raise
        self._group.entries.append(journal_entry.reconfiguration(core.now, as_toml(settings)))
        self.collect()
        if result is UNFINISHED:
            self.works.take(done)
            if isinstance(answer := await done, Refusal):
                raise InputError(str(answer))
        async with self.quiet():
            asked = self.settings.shadows
            self.what_if.begin_again(asked if asked != before else self.what_if.policies)

    async def _commit_group(self) -> None:
        # The state cannot be trusted: nothing is written or answered any more.
        if self.failure is not None:
            if isinstance(self.failure, DecisionError):
                raise self.failure
            raise StorageError(str(self.failure)) from self.failure
        written = [await self._write_group()]
        is_recovered = self.containment.is_spoiled
        if is_recovered:  # nothing is accepted any more, so the state on disk is complete
            written.append(await self._write_group())
            await self._recover()
        for group in filter(None, written):
            for client, number, result in group.replies:
                client.settled()
                if isinstance(result, Refusal):
                    client.fail(number, result)
                else:
                    client.reply(number, result)
            self.outbox.carry_out(self.core, group.outbox)
            self.what_if.follow(group.entries)
        if is_recovered:  # missed reports are asked for, clients and passes have their turn
            self.outbox.after_rebuild(self.core)
            for client in list(self.clients):
                client.go_on()
            self.pass_driver.schedule()

    def _is_unsettled(self) -> bool:
        return self.works.is_due() or not self._group.is_empty or self.containment.is_spoiled

    async def _write_group(self) -> CommitGroup | None:
        """Commit the group and return it; None: the disk is full, and the askers were refused."""
        group, self._group = self._group, CommitGroup()
        endings = [effect for effect in group.outbox if type(effect) is Ending]
        if group.entries or endings:
            try:
                await self.store.commit(group.entries, endings)
            except StorageFull:
                await self._out_of_space(group)
                return None
            except (
                StorageError
            ) as error:  # the daemon stops, even if a question waits for this commit
                self.fail(error)
                raise
            self.commits += 1
            if self.commits >= BUSY or len(self.core.jobs) >= BUSY:
                self.is_busy.set()
        return group

    async def _recover(self) -> None:
        """Replace the state in memory by the one on disk."""
        recovered = await self._rebuild()
        self.core = recovered.core
        contained = self.containment
        must_hold, contained.must_hold, contained.is_spoiled = contained.must_hold, False, False
        self.works.after_recovery()
        if must_hold and recovered.touched:
            why = "held: the pass that was to schedule it failed; see the log of the server"
            self.command(Hold(jobs=recovered.touched, kinds="s", comment=why))

    async def _out_of_space(self, group: CommitGroup) -> None:
        """Refuse the askers of a group that was not written, go back to the state on disk, and wait
        for space."""
        was_full, self.is_full = self.is_full, True
        if not was_full:
            log.error("the disk of %s is full: submissions are refused", self.store.directory)
        self.store.free_reserve()
        refusal = Refusal(
            "storage-full", f"the disk of {self.store.directory} is full; nothing has changed"
        )
        for client, number, _ in (*group.replies, *self._group.replies):
            client.settled()
            client.fail(number, refusal)
        self._group = CommitGroup()
        self.pass_driver.rest(AGAIN)
        self.core = (await self._rebuild()).core
        # Reports of the meantime were applied to the lost state; they are asked for again.
        self._group = CommitGroup()
        self.works.after_full_disk(str(self.store.directory))
        if not was_full:
            asyncio.get_running_loop().call_later(AGAIN, self._try_space)
        self.pass_driver.schedule()

    def _try_space(self) -> None:
        if self.store.reserve_space():
            log.warning("there is space in %s again", self.store.directory)
            self.is_full = False
            self._work.set()
        else:
            asyncio.get_running_loop().call_later(AGAIN, self._try_space)
        self.outbox.after_rebuild(self.core)
        self.pass_driver.schedule()

    # Ends

    def stop(self, reason: str) -> None:
        """Commit what was received and stop; jobs run on."""
        self.stop_reason = self.stop_reason or reason
        self._work.set()
