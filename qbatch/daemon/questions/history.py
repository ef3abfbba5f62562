"""Search the jobs that have ended, for ever (qbatch history)."""

from __future__ import annotations

from itertools import takewhile

import msgspec

from qbatch.daemon.connected_client import ConnectedClient
from qbatch.daemon.handlers.authority import may_see
from qbatch.daemon.questions.job_status import HIDDEN
from qbatch.daemon.questions.page import MOST, PageRoom
from qbatch.daemon.service import Service
from qbatch.wire.errors import Refusal
from qbatch.wire.identifiers import parse_id
from qbatch.wire.records import Jobs
from qbatch.wire.requests import History

_LONGEST_PATTERN = 1000


async def handle(service: Service, client: ConnectedClient, request: History) -> Jobs:
    """Return one page, the latest first: what has ended by now is in it."""
    where: list[tuple[str, object]] = []
    for column, values in (("user", request.users), ("queue", request.queues)):
        if len(values) > 1:
            raise Refusal("bad-value", f"name one {column} at a time")
        if values:
            where.append((f"{column} = ?", values[0]))
    if len(request.name) > _LONGEST_PATTERN:
        raise Refusal("bad-value", f"a pattern of {len(request.name)} letters; {_LONGEST_PATTERN} are allowed")
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
            raise Refusal("bad-value", f"status {request.status[:20]!r} is neither a number nor failed") from None
    if request.since is not None:
        where.append(("ended >= ?", request.since))
    if request.until is not None:
        where.append(("ended < ?", request.until))
    if not service.is_at_rest():
        await service.committed()
    if request.after:
        try:
            key = parse_id(request.after)
        except ValueError as error:
            raise Refusal("bad-value", str(error)) from None
        found = (await service.store.finished([key])).get(key)
        if found is not None:
            place = "SELECT ended, sequence, member FROM history WHERE sequence * 4294967296 + member = ?"
            where.append((f"(ended, sequence, member) < ({place})", key.sequence * 4294967296 + key.member))
    limit = min(max(request.limit, 1), MOST)
    async with service.unread.turn_of(client.uid):
        records = await service.store.search(where, limit + 1, is_newest_first=True)
    actor = client.actor
    shown = (
        each if each.user == actor.user or may_see(actor, -1) else msgspec.structs.replace(each, **HIDDEN)
        for each in records
    )
    page = tuple(takewhile(PageRoom(limit).takes, shown))
    core = service.core
    return Jobs(
        jobs=page,
        next=page[-1].id if len(page) < len(records) else "",
        now=max(core.now, service.clock.now()),
        server=core.settings.name,
    )
