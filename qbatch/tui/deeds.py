"""What the monitor can do to jobs, hosts and queues: the question before, the request, what became of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from qbatch.model.errors import QbatchError
from qbatch.reports.shown import clean
from qbatch.tui.board import Board
from qbatch.tui.panels.jobs import short_id
from qbatch.tui.screens.questions import Ask, Confirm
from qbatch.tui.source import Source
from qbatch.wire import requests
from qbatch.wire.records import JobRecord, Outcomes

Show = Callable[[Any], Awaitable[Any]]
"""Shows a screen and gives its answer."""


class Done(NamedTuple):
    """What became of it, in a line, and whether it was done."""

    text: str
    is_done: bool


async def to_job(what: str, job: JobRecord, board: Board, source: Source, show: Show) -> Done | None:
    """Hold, release, delete or move a job, or alter its priority; None if the user thinks better of it."""
    name = f"job {short_id(job.id)} ({clean(job.name)}, {clean(job.user)})"
    request: requests.Request
    match what:
        case "hold":
            question, verb, request = f"Hold {name}?", "Hold", requests.Hold(jobs=(job.id,))
        case "release":
            kinds = "".join(letter for letter in job.hold if letter in "uos") or "u"
            question, verb, request = f"Release {name}?", "Release", requests.Release(jobs=(job.id,), kinds=kinds)
        case "delete":
            if job.state in "FX":
                return Done(f"{name} has ended already", False)
            does = "It runs: it gets TERM, then KILL." if job.id in board.running else "It waits: it leaves the queue."
            question, verb, request = f"Delete {name}? {does}", "Delete", requests.Delete(jobs=(job.id,))
        case "move":
            others = [queue for queue in board.queues if queue != job.queue]
            queue = await show(
                Ask(f"Move {name} to which queue?", others[0] if others else "", f"queues: {', '.join(others)}")
            )
            if not queue:
                return None
            question, verb = f"Move {name} to {clean(queue)}?", "Move"
            request = requests.Move(jobs=(job.id,), destination=queue)
        case _:
            value = await show(Ask(f"Which priority for {name}?", str(job.priority), "-1024 to 1023"))
            if value is None:
                return None
            try:
                priority = int(value)
            except ValueError:
                return Done(f"{clean(value)!r} is no number", False)
            question, verb = f"Set the priority of {name} to {priority}?", "Set"
            request = requests.Alter(jobs=(job.id,), changes=requests.Changes(priority=priority))
    if not await show(Confirm(question, verb)):
        return None
    return await _tell(source, request, {"hold": "held", "release": "released", "delete": "deleted", "move": "moved"}.get(
        what, "altered"), name)  # fmt: skip


async def to_host(host: str, board: Board, source: Source, show: Show) -> Done | None:
    """Drain a host, or let a drained or lost one go on."""
    place = board.grid.places.get(host)
    if place is None:
        return None
    is_out = place.record.state in ("offline", "down")
    action = "resume" if is_out else "drain"
    does = "" if is_out else f" Its {len(place.runs) + len(place.stopped)} jobs run on, nothing new starts there."
    if not await show(Confirm(f"{action.capitalize()} host {clean(host)}?{does}", action.capitalize())):
        return None
    return await _tell(
        source, requests.HostControl(hosts=(host,), action=action), f"{action}{'d' if is_out else 'ed'}", f"host {host}"
    )


async def to_queue(what: str, name: str, board: Board, source: Source, show: Show) -> Done | None:
    """Open or close a queue (``submission``), let it start jobs or stop it (``execution``)."""
    queue = board.queues.get(name)
    if queue is None:
        return None
    if what == "submission":
        verb, done = ("Disable", "disabled") if queue.enabled else ("Enable", "enabled")
        request = requests.QueueControl(queues=(name,), enabled=not queue.enabled)
        does = "it takes no more jobs" if queue.enabled else "it takes jobs again"
    else:
        verb, done = ("Stop", "stopped") if queue.started else ("Start", "started")
        request = requests.QueueControl(queues=(name,), started=not queue.started)
        does = "it starts no more jobs; what runs runs on" if queue.started else "it starts jobs again"
    if not await show(Confirm(f"{verb} queue {clean(name)}? Then {does}.", verb)):
        return None
    return await _tell(source, request, done, f"queue {name}")


async def _tell(source: Source, request: requests.Request, done: str, name: str) -> Done:
    try:
        said = await source.ask(request, Outcomes)
    except QbatchError as error:
        return Done(str(error), False)
    errors = [each.error.message for each in said.outcomes if each.error is not None]
    return Done("; ".join(errors), False) if errors else Done(f"{name}: {done}", True)
