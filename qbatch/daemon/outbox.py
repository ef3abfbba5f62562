"""What follows a commit: launches and signals, accounting files, mail, events, and promised
answers."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterable

from qbatch.daemon import attempts
from qbatch.daemon.accounting_files import AccountingFiles
from qbatch.daemon.core import state
from qbatch.daemon.core.job import BatchJob
from qbatch.daemon.core.records import output_path
from qbatch.daemon.core.state import Account, Append, Core, Effect, Ending, Happening, Mail
from qbatch.daemon.event_stream import EventStream
from qbatch.daemon.executors.attempt import NOT_STARTED, Attempt, Ended, Executor, Report
from qbatch.daemon.forecasts import Forecaster
from qbatch.wire.identifiers import JobKey
from qbatch.wire.records import Outcome

log = logging.getLogger("qbatch")

MOST_MAILS = 8
"""Mail commands that run at the same time."""


class Waiters:
    """Two tables of promised answers: for when a job has started, and for when it has ended."""

    def __init__(self) -> None:
        self._tables: dict[str, dict[JobKey, list[asyncio.Future[Outcome]]]] = {
            "start": {},
            "end": {},
        }

    def __bool__(self) -> bool:
        """Return whether any answer is promised."""
        return any(self._tables.values())

    def enter(self, key: JobKey, until: str) -> asyncio.Future[Outcome]:
        """Promise an answer for when a job has come to its ``start`` or ``end``."""
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._tables[until].setdefault(key, []).append(future)
        return future

    def answer(self, key: JobKey, outcome: Outcome, *points: str) -> None:
        """Answer the clients that wait for these points of a job (``start``, ``end``)."""
        for until in points:
            for future in self._tables[until].pop(key, ()):
                if not future.done():
                    future.set_result(outcome)

    def forget(self, until: str, futures: Iterable[asyncio.Future[Outcome]]) -> None:
        """Drop promises that are answered, or that no client waits for any more."""
        table, gone = self._tables[until], set(futures)
        for key in (
            [key for key, held in table.items() if not gone.isdisjoint(held)] if gone else ()
        ):
            left = [each for each in table[key] if each not in gone]
            if left:
                table[key] = left
            else:
                del table[key]


class Outbox:
    """Carries out the effects of the core, in order.

    ``executor``: None if jobs are emulated.  ``surroundings``: variables that every job gets.
    ``scripts``: the directory of long scripts.  ``report`` takes the report of an attempt that
    cannot be made.
    """

    def __init__(
        self,
        waiters: Waiters,
        forecasts: Forecaster,
        event_stream: EventStream,
        report: Callable[[Report], None],
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
        """Carry out the effects of a commit."""
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
            except Exception:  # the commit stands, so the other effects must follow
                log.exception("%s after a commit failed", type(effect).__name__)
        if lines and self.accounting is not None:
            self.accounting.write(lines)

    def _carry_out(self, core: Core, effect: Effect) -> None:
        executor = self.executor
        match effect:
            case Ending():
                self._ended(effect)
            case Mail():
                self._mail(core.settings.mail_command, effect)
            case _ if executor is None:  # jobs are emulated
                return
            case state.Launch():
                job = core.find(effect.key)
                if job is not None and job.attempts == effect.attempt and job.holds_hosts:
                    self._launch(executor, core, job)
            case state.Stop():
                executor.stop(effect.file_key, effect.grace / 1e6)
            case state.SendSignal():
                executor.signal(effect.file_key, effect.signal)
            case state.ResizeAttempt():
                executor.resize(effect.file_key, effect.procs, effect.procs / effect.asked)
            case state.SetWalltime():
                executor.set_walltime(effect.file_key, effect.walltime / 1e6)
            case state.Forget():
                self.forget(effect.file_key)
            case Append():
                self._append(executor, core, effect)

    def _launch(self, executor: Executor, core: Core, job: BatchJob) -> None:
        if (attempt := self.attempt_of(core, job)) is not None:
            executor.launch(attempt)

    def attempt_of(self, core: Core, job: BatchJob) -> Attempt | None:
        """Return the present attempt of a running job; None if it cannot be made (reported as not
        started)."""
        try:
            return attempts.attempt_of(core, job, self.surroundings, self.scripts)
        except Exception as error:
            log.exception("attempt %s cannot be made", job.file_key)
            why = f"it cannot be started: {type(error).__name__}: {error}"
            asyncio.get_running_loop().call_soon(
                self.report, Ended(job.file_key, NOT_STARTED, core.now, why)
            )
            return None

    def _ended(self, effect: Ending) -> None:
        self._forecasts.forget(effect.key)
        if not self._waiters:
            return
        record, has_run = effect.record, effect.record.attempt > 0 or effect.record.is_array
        outcome = Outcome(
            name=record.id, exit_status=record.exit_status, state=record.state, has_run=has_run
        )
        self._waiters.answer(effect.key, outcome, "end", "start")  # a start will not come any more

    def forget(self, file_key: str) -> None:
        """Let the executor remove the run directory of an attempt, of which the end is
        committed."""
        if self.executor is not None:
            try:
                self.executor.forget(file_key)
            except ValueError as error:
                log.warning("run directory %s stays: %s", file_key, error)

    def _started(self, core: Core, effect: Happening) -> None:
        self._forecasts.started(effect)
        if self._waiters and effect.key is not None:
            self._waiters.answer(
                effect.key, Outcome(name=core.id_of(effect.key), state="R"), "start"
            )

    def _append(self, executor: Executor, core: Core, effect: Append) -> None:
        """Append a line to a job's files; never through a link, and only to an existing file."""
        job = core.find(effect.key)
        if job is None or job.uid != os.getuid():
            return
        attempt = attempts.attempt_of(core, job, {})
        spools = executor.spools(job.file_key)
        flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        for letter, spool, path in (
            ("O", spools[0], attempt.output),
            ("E", spools[1], attempt.error),
        ):
            if letter in effect.files and path != "/dev/null":
                try:
                    with open(
                        os.open(spool if os.path.lexists(spool) else path, flags), "wb", 0
                    ) as file:
                        file.write((effect.text + "\n").encode("utf-8", "replace"))
                except OSError as error:
                    log.warning(
                        "message for %s: %s: %s", output_path(job, "out"), path, error.strerror
                    )

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
                    log.warning(
                        "mail for job %s: %s", effect.key.sequence, error or "it took too long"
                    )
                finally:
                    if process is not None and process.returncode is None:
                        process.kill()

        task = asyncio.get_running_loop().create_task(send())
        self._mails.add(task)
        task.add_done_callback(self._mails.discard)

    def after_rebuild(self, core: Core) -> None:
        """Launch the attempts of a core that was read from disk again, so that the executor repeats
        its reports."""
        if self.executor is not None:
            for pool in core.pools:
                for job in pool.running.values():
                    # A second launch does no harm: a running attempt is left alone, an ended one is
                    # reported again.
                    self._launch(self.executor, core, job)
