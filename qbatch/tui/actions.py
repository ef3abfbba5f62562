"""The monitor's actions on jobs, hosts and queues: the question before, the request, and its
outcome."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from qbatch.model.errors import QbatchError
from qbatch.results.shown import clean
from qbatch.tui.board import Board
from qbatch.tui.panels.jobs import short_id
from qbatch.tui.screens.questions import Ask, Confirm
from qbatch.tui.source import MonitorSource
from qbatch.wire import requests
from qbatch.wire.records import JobRecord, Outcomes

Show = Callable[[Any], Awaitable[Any]]
"""A function that shows a screen and returns its answer."""


class CommandResult(NamedTuple):
    """The outcome of an action in one line, and whether it succeeded."""

    text: str
    is_done: bool


_DONE = {"hold": "held", "release": "released", "delete": "deleted", "move": "moved"}
_NAMED = 6
"""Most jobs that a question names."""


def _named(jobs: Sequence[JobRecord]) -> str:
    """Return the description of these jobs in a question."""
    if len(jobs) == 1:
        return f"job {short_id(jobs[0].id)} ({clean(jobs[0].name)}, {clean(jobs[0].user)})"
    more = f" and {len(jobs) - _NAMED:,} more" if len(jobs) > _NAMED else ""
    return f"{len(jobs):,} jobs ({', '.join(short_id(job.id) for job in jobs[:_NAMED])}{more})"


async def to_jobs(
    what: str, jobs: Sequence[JobRecord], board: Board, source: MonitorSource, show: Show
) -> CommandResult | None:
    """Hold, release, delete or move jobs, or change their priority; return None if the user
    cancels."""
    if what == "delete" and all(job.state in "FX" for job in jobs):
        return CommandResult(
            f"{_named(jobs)} {'has' if len(jobs) == 1 else 'have'} ended already", False
        )
    if what == "delete":
        jobs = [job for job in jobs if job.state not in "FX"]
    name, ids = _named(jobs), tuple(job.id for job in jobs)
    request: requests.Request
    match what:
        case "hold":
            question, verb, request = f"Hold {name}?", "Hold", requests.Hold(jobs=ids)
        case "release":
            kinds = (
                "".join(letter for letter in "uos" if any(letter in job.hold for job in jobs))
                or "u"
            )
            question, verb, request = (
                f"Release {name}?",
                "Release",
                requests.Release(jobs=ids, kinds=kinds),
            )
        case "delete":
            running = sum(job.id in board.running for job in jobs)
            if len(jobs) == 1:
                what_ends = (
                    "It runs and gets TERM, then KILL."
                    if running
                    else "It waits and leaves the queue."
                )
            else:
                parts = [f"{running:,} run: they get TERM, then KILL."] * (running > 0)
                parts += [f"{len(jobs) - running:,} wait: they leave the queue."] * (
                    running < len(jobs)
                )
                what_ends = " ".join(parts)
            question, verb, request = (
                f"Delete {name}? {what_ends}",
                "Delete",
                requests.Delete(jobs=ids),
            )
        case "move":
            others = [queue for queue in board.queues if any(queue != job.queue for job in jobs)]
            hint = f"queues: {', '.join(others)}"
            queue = await show(
                Ask(f"Move {name} to which queue?", others[0] if others else "", hint)
            )
            if not queue:
                return None
            question, verb = f"Move {name} to {clean(queue)}?", "Move"
            request = requests.Move(jobs=ids, destination=queue)
        case _:
            value = await show(
                Ask(f"Which priority for {name}?", str(jobs[0].priority), "-1024 to 1023")
            )
            if value is None:
                return None
            try:
                priority = int(value)
            except ValueError:
                return CommandResult(f"{clean(value)!r} is not a number", False)
            question, verb = f"Set the priority of {name} to {priority}?", "Set"
            request = requests.Alter(jobs=ids, changes=requests.Changes(priority=priority))
    if not await show(Confirm(question, verb)):
        return None
    return await _send(source, request, _DONE.get(what, "altered"), name)


async def to_host(
    host: str, board: Board, source: MonitorSource, show: Show
) -> CommandResult | None:
    """Drain a host, or resume a drained or lost one."""
    place = board.grid.places.get(host)
    if place is None:
        return None
    is_out = place.record.state in ("offline", "down")
    action = "resume" if is_out else "drain"
    does = (
        ""
        if is_out
        else f" Its {len(place.runs) + len(place.stopped)} jobs continue; no new job starts there."
    )
    if not await show(
        Confirm(f"{action.capitalize()} host {clean(host)}?{does}", action.capitalize())
    ):
        return None
    request = requests.HostControl(hosts=(host,), action=action)
    return await _send(source, request, "resumed" if is_out else "drained", f"host {host}")


async def to_queue(
    what: str, name: str, board: Board, source: MonitorSource, show: Show
) -> CommandResult | None:
    """Open or close a queue for submissions (``submission``), or start or stop its jobs
    (``execution``)."""
    queue = board.queues.get(name)
    if queue is None:
        return None
    if what == "submission":
        verb, done = ("Disable", "disabled") if queue.enabled else ("Enable", "enabled")
        request = requests.QueueControl(queues=(name,), enabled=not queue.enabled)
        does = "it accepts no more jobs" if queue.enabled else "it accepts jobs again"
    else:
        verb, done = ("Stop", "stopped") if queue.started else ("Start", "started")
        request = requests.QueueControl(queues=(name,), started=not queue.started)
        does = (
            "it starts no more jobs; running ones continue"
            if queue.started
            else "it starts jobs again"
        )
    if not await show(Confirm(f"{verb} queue {clean(name)}? Then {does}.", verb)):
        return None
    return await _send(source, request, done, f"queue {name}")


async def _send(
    source: MonitorSource, request: requests.Request, done: str, name: str
) -> CommandResult:
    try:
        said = await source.ask(request, Outcomes)
    except QbatchError as error:
        return CommandResult(str(error), False)
    errors = [each.error.message for each in said.outcomes if each.error is not None]
    if not errors:
        return CommandResult(f"{name}: {done}", True)
    count = len(said.outcomes)
    some = f"{count - len(errors):,} of {count:,} {done}; " if len(errors) < count else ""
    more = f" (and {len(errors) - _NAMED:,} more)" if len(errors) > _NAMED else ""
    return CommandResult(f"{some}{'; '.join(errors[:_NAMED])}{more}", False)
