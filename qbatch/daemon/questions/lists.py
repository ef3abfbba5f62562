"""Lists of jobs, page by page: live and ended jobs (qstat), and the search in the history (qbatch
history)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import TYPE_CHECKING

import msgspec

from qbatch.daemon.core.faults import take_fault
from qbatch.daemon.core.job import BatchJob, BatchState
from qbatch.daemon.core.records import (
    brief_record,
    full_record,
    used_texts,
    with_excess,
)
from qbatch.daemon.core.state import Actor, has_finished, shown
from qbatch.daemon.forecasts import Made
from qbatch.daemon.handlers.verbs import handles, is_operator
from qbatch.daemon.service import Service
from qbatch.wire import requests
from qbatch.wire.errors import ErrorRecord, Refusal
from qbatch.wire.identifiers import ARRAY, PLAIN, JobKey, parse_id
from qbatch.wire.records import JobRecord, Jobs

if TYPE_CHECKING:
    from qbatch.daemon.connection import ConnectedClient

MOST = 1000
"""Jobs in one page."""

MOST_BYTES = 1 << 18
"""Bytes of a page; a longer job is a page of its own."""

HIDDEN = {"variables": {}, "submit_arguments": ""}
"""Fields of a job that only its owner and operators see, with the values for others."""

_ON_HOSTS = frozenset("RSE")
_LONGEST_PATTERN = 1000
_encode = msgspec.json.Encoder().encode


class PageLimit:
    """The jobs and the bytes that a page can still take; ``limit``: the jobs that the request asks
    for."""

    def __init__(self, limit: int) -> None:
        self._jobs, self._bytes = min(max(limit, 1), MOST), MOST_BYTES

    def takes(self, record: JobRecord) -> bool:
        """Return whether the page takes one more job, and count it."""
        if self._jobs == 0 or self._bytes <= 0:
            return False
        size = len(_encode(record))
        if size > self._bytes and self._bytes < MOST_BYTES:
            self._bytes = 0
            return False
        self._jobs -= 1
        self._bytes -= size
        return True


@handles(requests.JobStatus)
def job_status(
    service: Service, client: ConnectedClient, request: requests.JobStatus
) -> Jobs | Awaitable[Jobs]:
    """Show jobs (qstat): at once if the request is for live jobs only."""

    async def late(seconds: float) -> Jobs:
        await asyncio.sleep(seconds)
        made = _Page(service, client, request).answer()
        return made if isinstance(made, Jobs) else await made

    faults = service.core.faults
    failed, slow = take_fault(faults, "status-failed"), take_fault(faults, "status-slow")
    if failed is not None:
        raise Refusal(
            "refused-by-fault", failed.message or "the status is not available (a fault on demand)"
        )
    return late(slow.seconds) if slow is not None else _Page(service, client, request).answer()


@dataclass(slots=True)
class _Named:
    """A job that a request names: its key, its name there, and the job if it is live, or the
    error."""

    key: JobKey
    text: str
    job: BatchJob | None = None
    error: ErrorRecord | None = None


class _Page:
    """One page of jobs."""

    def __init__(
        self, service: Service, client: ConnectedClient, request: requests.JobStatus
    ) -> None:
        self.service = service
        self.core = service.core
        self.request = request
        self.actor = client.actor
        self.limit = min(max(request.limit, 1), MOST)
        self.left = PageLimit(self.limit)
        self.jobs: list[JobRecord] = []
        self.errors: list[ErrorRecord] = []
        self.next = ""
        self.forecast: Made | None = None
        for queue in request.queues:
            self.core.queue(queue)
        if not set(request.states) <= set(requests.STATES):
            raise Refusal(
                "bad-value", f"states: {request.states[:40]!r} are not letters of {requests.STATES}"
            )

    def answer(self) -> Jobs | Awaitable[Jobs]:
        """Return the page, at once if the request is for live jobs only and without estimates."""
        if self.request.with_estimates and self.forecast is None:
            return self._with_estimates()
        if self.request.jobs:
            return self._with_named()
        if self.request.finished != "no":
            return self._with_finished()
        for job in self._live(self._after()):
            if not self._take(self._record(job)):
                break
        return self._made()

    async def _with_estimates(self) -> Jobs:
        """Return the page after a forecast for the jobs that may be on it."""
        asked: Iterable[BatchJob] = self._live(self._after())
        if self.request.jobs:
            named = self._named()
            asked = (each.job for each in named[self._first_of(named) :] if each.job is not None)
        self.forecast = await self.service.forecasts.until(jobs=islice(asked, self.limit))
        page = self.answer()
        return page if isinstance(page, Jobs) else await page

    def _made(self) -> Jobs:
        records, settings = tuple(self.jobs), self.core.settings
        if self.forecast is not None:
            records = tuple(
                self.service.forecasts.with_estimate(record, self.forecast) for record in records
            )
        return Jobs(
            jobs=records,
            errors=tuple(self.errors),
            next=self.next,
            now=self.service.now,
            server=settings.name,
            has_history=settings.is_history_shown,
        )

    def _record(self, job: BatchJob) -> JobRecord:
        core = self.core
        was, core.now = core.now, self.service.now
        try:
            record = brief_record(core, job) if self.request.is_brief else full_record(core, job)
        finally:
            core.now = was
        executor = self.service.outbox.executor
        if job.holds_hosts and executor is not None and (used := executor.used(job.file_key)):
            # What the job has really used so far; its end brings the last figures.
            texts = used_texts(
                {**used, "walltime": job.walltime_used(self.service.now) / 1e6}, job.size
            )
            record = msgspec.structs.replace(
                record, used=texts, comment=with_excess(core, job, record.comment, used)
            )
        # OpenPBS says nothing about a job that is held: its state says it.
        is_to_explain = job.is_waiting and job.state is not BatchState.HELD and not job.is_array
        if not self.request.is_brief and not record.comment and is_to_explain:
            record = msgspec.structs.replace(
                record, comment=self.service.forecasts.short_reason(job)
            )
        return _visible(self.actor, record, job.uid)

    def _is_wanted(self, user: str, queue: str, letter: str, is_array: bool) -> bool:
        request = self.request
        return (
            (not request.users or user in request.users)
            and (not request.queues or queue in request.queues)
            and (not request.states or letter in request.states)
            and (not request.arrays_only or is_array)
        )

    def _take(self, record: JobRecord) -> bool:
        """Put a job into the page, or let the next page begin with it."""
        if self.left.takes(record):
            self.jobs.append(record)
            return True
        self.next = self.jobs[-1].id
        return False

    def _after(self) -> JobKey:
        return _key_of(self.request.after) if self.request.after else JobKey(0)

    def _live(self, after: JobKey) -> Iterator[BatchJob]:
        if self.request.states and set(self.request.states) <= _ON_HOSTS:
            yield from self._on_hosts(after)
            return
        first = (
            after.sequence - 1 if after.member != PLAIN and self.request.subjobs else after.sequence
        )
        for job in self.core.live_jobs(max(first, 0)):
            if self._is_wanted(job.user, job.queue, job.state.letter, job.is_array) and (
                job.sequence > after.sequence or after.sequence == 0
            ):
                yield job
            if job.is_array and self.request.subjobs:
                for each in self.core.arrays[job.sequence].members.values():
                    if (
                        job.sequence == after.sequence
                        and each.member <= after.member
                        and after.member != ARRAY
                    ):
                        continue
                    if self._is_wanted(each.user, each.queue, each.state.letter, False):
                        yield each

    def _on_hosts(self, after: JobKey) -> Iterator[BatchJob]:
        """Yield the jobs that hold hosts, without a look at those that wait."""
        running = {key: job for pool in self.core.pools for key, job in pool.running.items()}
        for key in sorted(running):
            job = running[key]
            is_asked = self.request.subjobs or not job.is_subjob
            if (
                key > after
                and is_asked
                and self._is_wanted(job.user, job.queue, job.state.letter, job.is_array)
            ):
                yield job

    async def _with_named(self) -> Jobs:
        """Return the named jobs, in that order, each array before its subjobs; all errors are on
        the first page."""
        named = self._named()
        first = self._first_of(named)
        missing = [each for each in named if each.job is None and each.error is None]
        found = await self._finished([each.key for each in missing])
        for each in missing:
            name = self.core.id_of(each.key)
            if each.key not in found:
                text = shown(each.text[:80])
                each.error = Refusal(
                    "unknown-job", f"Unknown Job Id {text if '.' in text else name}", name
                ).record
            elif self.request.finished == "no":
                each.error = has_finished(name).record
        for each in named[first:]:
            if each.error is not None:
                continue
            record = (
                self._record(each.job)
                if each.job is not None
                else _visible(self.actor, found[each.key])
            )
            if not self._take(record):
                break
        self.errors = (
            [each.error for each in named if each.error is not None]
            if not self.request.after
            else []
        )
        return self._made()

    def _named(self) -> list[_Named]:
        named: list[_Named] = []
        for text in self.request.jobs:
            try:
                key = self.core.key_of(text)
            except Refusal as error:
                named.append(_Named(JobKey(-len(named)), text, error=error.record))
                continue
            job = self.core.find(key)
            if job is None or (job.is_over and self.request.finished == "no" and not job.is_subjob):
                named.append(_Named(key, text))
                continue
            named.append(_Named(job.key, text, job))
            if job.is_array and self.request.subjobs:
                named += [
                    _Named(each.key, text, each)
                    for each in self.core.arrays[job.sequence].members.values()
                ]
        # A job that is named twice is shown twice on one page; several pages could not go on after
        # it.
        if len(named) <= self.limit:
            return named
        once: dict[JobKey, _Named] = {}
        for each in named:
            once.setdefault(each.key, each)
        return list(once.values())

    def _first_of(self, named: list[_Named]) -> int:
        """Return the place after that of the job to go on after; if it has gone, after those before
        it in its array."""
        if not self.request.after:
            return 0
        after = self._after()
        for place in range(len(named) - 1, -1, -1):
            key = named[place].key
            if key.sequence == after.sequence and max(key.member, PLAIN) <= max(
                after.member, PLAIN
            ):
                return place + 1
        raise Refusal("bad-value", f"after: {self.request.after} is none of the named jobs")

    async def _finished(self, keys: list[JobKey]) -> dict[JobKey, JobRecord]:
        core = self.core
        found = {key: core.recent[key] for key in keys if key in core.recent}
        wanted = [key for key in keys if key not in found]
        # A bare number of an array that is over names the array.
        wanted += [JobKey(key.sequence, ARRAY) for key in wanted if key.member == PLAIN]
        async with self.service.unread.turn_of(self.actor.uid):
            stored = await self.service.store.finished(wanted) if wanted else {}
        for key in keys:
            whole = JobKey(key.sequence, ARRAY)
            if key not in found and key in stored:
                found[key] = stored[key]
            elif (
                key not in found
                and key.member == PLAIN
                and (whole in stored or whole in core.recent)
            ):
                found[key] = core.recent.get(whole) or stored[whole]
        return found

    async def _with_finished(self) -> Jobs:
        request = self.request
        after = self._after()
        where: list[tuple[str, object]] = [("sequence > ?", after.sequence)]
        if not request.subjobs:
            where.append(("member < ?", 0))
        if (kept := self.core.settings.history_kept) is not None:
            where.append(("ended >= ?", self.core.now - kept))
        async with self.service.unread.turn_of(self.actor.uid):
            stored = await self.service.store.search(where, self.limit + 1, is_newest_first=False)
        merged: dict[JobKey, JobRecord] = {parse_id(record.id): record for record in stored}
        last = (
            max((key.sequence for key in merged), default=1 << 60)
            if len(stored) > self.limit
            else 1 << 60
        )
        for key, record in self.core.recent.items():
            if after.sequence < key.sequence <= last and (request.subjobs or key.member < 0):
                merged[key] = record
        records = [
            (key, _visible(self.actor, record))
            for key, record in merged.items()
            if self._is_wanted(record.user, record.queue, record.state, record.is_array)
        ]
        if request.finished != "only":
            page = PageLimit(self.limit)
            for job in self._live(after):
                if job.sequence > last:
                    break
                if not job.is_over:
                    records.append((job.key, self._record(job)))
                    if not page.takes(records[-1][1]):  # these alone are more than a page
                        break
        records.sort(key=lambda pair: pair[0])
        # A page ends between two sequence numbers, so that the next one can begin there.
        self.jobs = [record for _, record in records]
        count = sum(1 for _ in takewhile(self.left.takes, self.jobs))
        if len(records) > count:
            cut = records[count][0].sequence
            whole = [record for key, record in records if key.sequence < cut]
            self.jobs = whole or [record for key, record in records if key.sequence == cut]
            self.next = self.jobs[-1].id
        elif last < 1 << 60:
            self.next = f"{last}"
        return self._made()


def _visible(actor: Actor, record: JobRecord, uid: int | None = None) -> JobRecord:
    """Return a record as the asker may see it; ``uid``: the job's owner, if known, else the user of
    the record is."""
    is_mine = record.user == actor.user if uid is None else uid == actor.uid
    return record if is_mine or is_operator(actor) else msgspec.structs.replace(record, **HIDDEN)


def _key_of(text: str) -> JobKey:
    try:
        return parse_id(text)
    except ValueError as error:
        raise Refusal("bad-value", str(error)) from None


@handles(requests.History)
async def history(service: Service, client: ConnectedClient, request: requests.History) -> Jobs:
    """Search all jobs that have ever ended (qbatch history); one page, the latest first, with those
    that have ended by now."""
    where: list[tuple[str, object]] = []
    for column, values in (("user", request.users), ("queue", request.queues)):
        if len(values) > 1:
            raise Refusal("bad-value", f"name one {column} at a time")
        if values:
            where.append((f"{column} = ?", values[0]))
    if len(request.name) > _LONGEST_PATTERN:
        raise Refusal(
            "bad-value", f"a pattern of {len(request.name)} letters; {_LONGEST_PATTERN} are allowed"
        )
    if request.name:
        where.append(("name GLOB ?", request.name))
    if request.status == "failed":
        where.append(("status != ?", 0))
    elif request.status:
        try:
            status = int(request.status)
            if abs(status) >= 1 << 31:
                raise ValueError
            where.append(("status = ?", status))
        except ValueError:
            raise Refusal(
                "bad-value", f"status {request.status[:20]!r} is neither a number nor failed"
            ) from None
    for condition, at in (("ended >= ?", request.since), ("ended < ?", request.until)):
        if at is not None:
            where.append((condition, at))
    if not service.is_at_rest():
        await service.committed()
    if request.after:
        key = _key_of(request.after)
        found = (await service.store.finished([key])).get(key)
        if found is not None:
            place = (
                "SELECT ended, sequence, member FROM history WHERE sequence * 4294967296 + "
                "member = ?"
            )
            where.append(
                (f"(ended, sequence, member) < ({place})", key.sequence * 4294967296 + key.member)
            )
    limit = min(max(request.limit, 1), MOST)
    async with service.unread.turn_of(client.uid):
        records = await service.store.search(where, limit + 1, is_newest_first=True)
    page = tuple(
        takewhile(PageLimit(limit).takes, (_visible(client.actor, each) for each in records))
    )
    following = page[-1].id if len(page) < len(records) else ""
    return Jobs(jobs=page, next=following, now=service.now, server=service.core.settings.name)
