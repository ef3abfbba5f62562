"""What follows a commit: launches and signals, accounting files, mail, events, and answers to those who wait."""

from __future__ import annotations

import asyncio
import logging
import os
from typing import TYPE_CHECKING, Any

import msgspec

from qbatch.daemon import attempts
from qbatch.daemon.core.records import brief_record, output_path
from qbatch.daemon.core.state import Account, Append, Effect, Ending, Forget, Happening, Launch, Mail, Send, Stop
from qbatch.daemon.forecast import Expected
from qbatch.daemon.forecasts import Forecasts
from qbatch.wire.identifiers import JobKey, parse_id
from qbatch.wire.records import EventRecord, JobRecord, Outcome

if TYPE_CHECKING:
    from qbatch.daemon.core.job import BatchJob
    from qbatch.daemon.service import Service

log = logging.getLogger("qbatch")
_encode = msgspec.json.Encoder().encode


MOST_MAILS = 8
"""Mail commands that run at once."""


class _EventFrame(msgspec.Struct):
    """An event as it is pushed to subscribers."""

    event: EventRecord


class Effects:
    """Carries effects out, in order."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.executor: Any = None
        self.accounting: Any = None
        self.surroundings: dict[str, str] = {}
        self.passes = 0
        self.pass_seconds = 0.0
        self.longest_pass = 0.0
        self.forecasts = Forecasts(service)
        self._mails: set[asyncio.Task[None]] = set()
        self._mailing = asyncio.Semaphore(MOST_MAILS)

    def count_pass(self, seconds: float) -> None:
        """Note how long a pass took."""
        self.passes += 1
        self.pass_seconds += seconds
        self.longest_pass = max(self.longest_pass, seconds)

    def carry_out(self, effects: list[Effect]) -> None:
        """Carry out what a commit has made true."""
        lines: list[Account] = []
        for effect in effects:
            match effect:
                case Happening():
                    self._tell(effect)
                case Account():
                    lines.append(effect)
                case Ending():
                    self._ended(effect)
                case Launch():
                    self._launch(effect)
                case Stop():
                    if self.executor is not None:
                        self.executor.stop(effect.file_key, effect.grace / 1e6)
                case Send():
                    if self.executor is not None:
                        self.executor.signal(effect.file_key, effect.signal)
                case Forget():
                    self.forget(effect.file_key)
                case Append():
                    self._append(effect)
                case Mail():
                    self._mail(effect)
        if lines and self.accounting is not None:
            self.accounting.write(lines)

    def _launch(self, effect: Launch) -> None:
        core = self.service.core
        job = core.find(effect.key)
        if self.executor is not None and job is not None and job.attempt == effect.attempt and job.holds_hosts:
            self.executor.launch(attempts.attempt_of(core, job, self.surroundings))

    def _ended(self, effect: Ending) -> None:
        record = effect.record
        self.forecasts.forget(effect.key)
        outcome = Outcome(
            name=record.id,
            exit_status=record.exit_status,
            state=record.state,
            has_run=record.run_count > 0 or record.is_array,
        )
        for table in (self.service.waiting, self.service.starting):
            for future in table.pop(effect.key, ()):
                if not future.done():
                    future.set_result(outcome)

    def forget(self, file_key: str) -> None:
        """The end of an attempt is known and kept: its run directory may go."""
        if self.executor is not None:
            try:
                self.executor.forget(file_key)
            except ValueError as error:
                log.warning("run directory %s stays: %s", file_key, error)

    def _tell(self, effect: Happening) -> None:
        service = self.service
        if effect.kind == "started" and effect.key is not None:
            self.forecasts.started(effect)
            for future in service.starting.pop(effect.key, ()):
                if not future.done():
                    future.set_result(Outcome(name=service.core.id_of(effect.key), state="R"))
        listeners = list(service.subscribers())
        if not listeners:
            return
        key = effect.key
        job = service.core.find(key) if key is not None else None
        record = brief_record(service.core, job) if job is not None else None
        name = service.core.id_of(key) if key is not None else ""
        words = effect.text.split(" ", 1)
        event = EventRecord(
            number=effect.number,
            at=effect.at,
            kind=effect.kind,
            job=name,
            record=record,
            host=words[0] if effect.kind == "host" else "",
            queue=words[0] if effect.kind == "queue" else "",
            text=effect.text,
        )
        frame = _encode(_EventFrame(event))
        for connection in listeners:
            connection.send(frame)

    def _append(self, effect: Append) -> None:
        """Append a line to a job's files; never through a link, and only to a file that is there."""
        service = self.service
        job = service.core.find(effect.key)
        if job is None or self.executor is None or job.uid != os.getuid():
            return
        attempt = attempts.attempt_of(service.core, job, {})
        for letter, path in (("O", attempt.output), ("E", attempt.error)):
            if letter in effect.files and path != "/dev/null":
                try:
                    flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
                    handle = os.open(path, flags)
                    try:
                        os.write(handle, (effect.text + "\n").encode("utf-8", "replace"))
                    finally:
                        os.close(handle)
                except OSError as error:
                    log.warning("message for %s: %s: %s", output_path(job, "out"), path, error.strerror)

    def _mail(self, effect: Mail) -> None:
        command = self.service.settings.mail_command
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

    def after_rebuild(self) -> None:
        """The core was made again from disk: what the executor has said since is asked for again."""
        core = self.service.core
        if self.executor is not None:
            for pool in core.pools:
                for job in pool.running.values():
                    # Launching twice does no harm: one that runs is left alone, one that has ended is reported again.
                    self.executor.launch(attempts.attempt_of(core, job, self.surroundings))

    async def forecast(self) -> dict[JobKey, Expected]:
        """Return the expected start and end of every waiting job."""
        return await self.forecasts.all()

    def forecast_error(self) -> dict[str, float]:
        """Return how far forecasts were off."""
        return self.forecasts.error()

    def short_reason(self, job: BatchJob) -> str:
        """Return why a job waits, as a comment."""
        return self.forecasts.short_reason(job)

    def with_estimate(self, record: JobRecord) -> JobRecord:
        """Return a record with the forecast of its start."""
        expected = self.forecasts.last.get(parse_id(record.id))
        return record if expected is None else msgspec.structs.replace(record, estimated_start=expected.start)
