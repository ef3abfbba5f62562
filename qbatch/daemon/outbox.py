"""What follows a commit: launches and signals, accounting files, mail, events, and answers to those who wait."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterable

from qbatch.daemon import attempts
from qbatch.daemon.accounting_files import AccountingFiles
from qbatch.daemon.core.job import BatchJob
from qbatch.daemon.core.records import output_path
from qbatch.daemon.core.state import (
    Account,
    Append,
    Core,
    Effect,
    Ending,
    Forget,
    Happening,
    Launch,
    Mail,
    ResizeAttempt,
    SendSignal,
    SetWalltime,
    Stop,
)
from qbatch.daemon.event_stream import EventStream
from qbatch.daemon.executors.attempt import NOT_STARTED, Attempt, Ended, Executor, Report
from qbatch.daemon.forecasts import Forecaster
from qbatch.wire.identifiers import JobKey
from qbatch.wire.records import Outcome

log = logging.getLogger("qbatch")


MOST_MAILS = 8
"""Mail commands that run at once."""


class Waiters:
    """Two tables of promised answers: what is known when a job has started, and when it has ended."""

    def __init__(self) -> None:
        self._tables: dict[str, dict[JobKey, list[asyncio.Future[Outcome]]]] = {"start": {}, "end": {}}

    def __len__(self) -> int:
        """Return how many answers are promised."""
        return sum(len(futures) for table in self._tables.values() for futures in table.values())

    def __bool__(self) -> bool:
        """Tell whether any answer is promised."""
        return any(self._tables.values())

    def enter(self, key: JobKey, until: str) -> asyncio.Future[Outcome]:
        """Promise an answer for when a job has come to its ``start`` or ``end``."""
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._tables[until].setdefault(key, []).append(future)
        return future

    def started(self, key: JobKey, outcome: Outcome) -> None:
        """A job has started: answer who waited for that."""
        self._answer("start", key, outcome)

    def ended(self, key: JobKey, outcome: Outcome) -> None:
        """A job has ended: answer all who waited for it; one that never started does not start any more."""
        self._answer("end", key, outcome)
        self._answer("start", key, outcome)

    def _answer(self, until: str, key: JobKey, outcome: Outcome) -> None:
        for future in self._tables[until].pop(key, ()):
            if not future.done():
                future.set_result(outcome)

    def forget(self, until: str, futures: Iterable[asyncio.Future[Outcome]]) -> None:
        """Nobody waits for these any more (who waited has been answered, has given up, or has left)."""
        table, gone = self._tables[until], set(futures)
        for key in [key for key, held in table.items() if not gone.isdisjoint(held)] if gone else ():
            left = [each for each in table[key] if each not in gone]
            if left:
                table[key] = left
            else:
                del table[key]


class Outbox:
    """Carries out what the core asks for, in order.

    ``executor``: None where jobs are emulated.  ``surroundings``: variables that every job gets.

    Args:
        waiters: are answered when jobs start and end.
        forecasts: are held against what happens.
        event_stream: tells who subscribed.
        report: takes what is known of an attempt that cannot be made.
    """

    def __init__(
        self, waiters: Waiters, forecasts: Forecaster, event_stream: EventStream, report: Callable[[Report], None]
    ) -> None:
        self.report = report
        self.executor: Executor | None = None
        self.accounting: AccountingFiles | None = None
        self.surroundings: dict[str, str] = {}
        self.scripts = ""
        self._waiters = waiters
        self._forecasts = forecasts
        self._event_stream = event_stream
        self._mails: set[asyncio.Task[None]] = set()
        self._mailing = asyncio.Semaphore(MOST_MAILS)

    def carry_out(self, core: Core, outbox: list[Effect]) -> None:
        """Carry out what a commit has made true of a state."""
        lines: list[Account] = []
        stream = self._event_stream
        is_heard = stream.is_heard()
        for effect in outbox:
            try:
                if type(effect) is Account:
                    lines.append(effect)
                elif type(effect) is Happening:
                    stream.last = effect.number
                    if effect.kind == "started":
                        self._started(core, effect)
                    if is_heard:
                        stream.happened(core, effect)
                else:
                    self._carry_out(core, effect)
            except Exception:  # it is committed: the others follow from it all the same
                log.exception("%s after a commit failed", type(effect).__name__)
        if lines and self.accounting is not None:
            self.accounting.write(lines)

    def _carry_out(self, core: Core, effect: Effect) -> None:
        match effect:
            case Ending():
                self._ended(effect)
            case Launch():
                self._launch(core, effect)
            case Stop():
                if self.executor is not None:
                    self.executor.stop(effect.file_key, effect.grace / 1e6)
            case SendSignal():
                if self.executor is not None:
                    self.executor.signal(effect.file_key, effect.signal)
            case ResizeAttempt():
                if self.executor is not None:
                    self.executor.resize(effect.file_key, effect.procs, effect.procs / effect.asked)
            case SetWalltime():
                if self.executor is not None:
                    self.executor.set_walltime(effect.file_key, effect.walltime / 1e6)
            case Forget():
                self.forget(effect.file_key)
            case Append():
                self._append(core, effect)
            case Mail():
                self._mail(core.settings.mail_command, effect)

    def _launch(self, core: Core, effect: Launch) -> None:
        job = core.find(effect.key)
        if self.executor is not None and job is not None and job.attempts == effect.attempt and job.holds_hosts:
            self._start(self.executor, core, job)

    def _start(self, executor: Executor, core: Core, job: BatchJob) -> None:
        attempt = self.attempt_of(core, job)
        if attempt is not None:
            executor.launch(attempt)

    def attempt_of(self, core: Core, job: BatchJob) -> Attempt | None:
        """Return the present attempt of a running job; None: it cannot be made, and is reported as not started."""
        try:
            return attempts.attempt_of(core, job, self.surroundings, self.scripts)
        except Exception as error:
            log.exception("attempt %s cannot be made", job.file_key)
            why = f"it cannot be started: {type(error).__name__}: {error}"
            asyncio.get_running_loop().call_soon(self.report, Ended(job.file_key, NOT_STARTED, core.now, why))
            return None

    def _ended(self, effect: Ending) -> None:
        self._forecasts.forget(effect.key)
        if not self._waiters:
            return
        record = effect.record
        outcome = Outcome(
            name=record.id,
            exit_status=record.exit_status,
            state=record.state,
            has_run=record.attempt > 0 or record.is_array,
        )
        self._waiters.ended(effect.key, outcome)

    def forget(self, file_key: str) -> None:
        """The end of an attempt is known and kept: its run directory may go."""
        if self.executor is not None:
            try:
                self.executor.forget(file_key)
            except ValueError as error:
                log.warning("run directory %s stays: %s", file_key, error)

    def _started(self, core: Core, effect: Happening) -> None:
        self._forecasts.started(effect)
        if self._waiters and effect.key is not None:
            self._waiters.started(effect.key, Outcome(name=core.id_of(effect.key), state="R"))

    def _append(self, core: Core, effect: Append) -> None:
        """Append a line to a job's files; never through a link, and only to a file that is there."""
        job = core.find(effect.key)
        if job is None or self.executor is None or job.uid != os.getuid():
            return
        attempt = attempts.attempt_of(core, job, {})
        spools = self.executor.spools(job.file_key)
        for letter, spool, path in (("O", spools[0], attempt.output), ("E", spools[1], attempt.error)):
            if letter in effect.files and path != "/dev/null":
                try:
                    _append_line(spool if os.path.lexists(spool) else path, effect.text)
                except OSError as error:
                    log.warning("message for %s: %s: %s", output_path(job, "out"), path, error.strerror)

    def _mail(self, command: tuple[str, ...], effect: Mail) -> None:
        users = [user for user in effect.users.split(",") if user and not user.startswith("-")]

        async def send() -> None:
            process = None
            async with self._mailing:
                try:
                    process = await asyncio.create_subprocess_exec(
                        *command,
                        *users,
                        stdin=asyncio.subprocess.PIPE,
                        stdout=asyncio.subprocess.DEVNULL,
                        stderr=asyncio.subprocess.DEVNULL,
                        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
                    )
                    await asyncio.wait_for(process.communicate(effect.text.encode() + b"\n"), 60)
                except (OSError, TimeoutError) as error:
                    log.warning("mail for job %s: %s", effect.key.sequence, error or "it took too long")
                finally:
                    if process is not None and process.returncode is None:
                        process.kill()

        task = asyncio.get_running_loop().create_task(send())
        self._mails.add(task)
        task.add_done_callback(self._mails.discard)

    def after_rebuild(self, core: Core) -> None:
        """The core was made again from disk: what the executor has said since is asked for again."""
        if self.executor is not None:
            for pool in core.pools:
                for job in pool.running.values():
                    # Launching twice does no harm: one that runs is left alone, one that has ended is reported again.
                    self._start(self.executor, core, job)


def _append_line(path: str, text: str) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        os.write(handle, (text + "\n").encode("utf-8", "replace"))
    finally:
        os.close(handle)
