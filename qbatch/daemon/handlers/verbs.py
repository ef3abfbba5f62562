"""The table of verbs, which the modules of ``handlers`` and ``questions`` fill; permissions; how
commands are carried out."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

from qbatch.daemon.core import steps
from qbatch.daemon.core.job import BatchJob
from qbatch.daemon.core.state import Actor, Core
from qbatch.daemon.core.steps import Steps, is_enough
from qbatch.wire import requests
from qbatch.wire.errors import Refusal
from qbatch.wire.records import Outcome, Outcomes

Handler = TypeVar("Handler", bound=Callable[..., Any])

HANDLERS: dict[type[requests.Request], Callable[..., Any]] = {}
"""The function of each verb.  Commands: pure functions of (core, asker, request), replayed from the
journal; some take steps. Questions: functions of (service, client, request)."""

RANKS = {"anyone": 0, "owner": 0, "user": 0, "operator": 1, "manager": 2}
"""Roles by what they include."""


def handles(kind: type[requests.Request]) -> Callable[[Handler], Handler]:
    """Enter a function into the table of verbs (a decorator)."""

    def enter(handler: Handler) -> Handler:
        HANDLERS[kind] = handler
        return handler

    return enter


def require_handlers(kind: type[requests.Request]) -> None:
    """Let an import fail if a verb of a kind (commands or questions) has no handler."""
    lacking = [each.__name__ for each in kind.__subclasses__() if each not in HANDLERS]
    assert not lacking, f"nothing handles {', '.join(lacking)}"


def begin(core: Core, actor: Actor, request: requests.Request) -> Any:
    """Carry out a command, or begin one that takes steps; return its answer or ``UNFINISHED``.  A
    refused one changes nothing."""
    return steps.begin(core, HANDLERS[type(request)](core, actor, request), actor, request)


def carry_out(core: Core, actor: Actor, request: requests.Request) -> Any:
    """Carry out a command as a whole and return its answer; a refused one changes nothing."""
    return steps.whole(HANDLERS[type(request)](core, actor, request))


def permit(actor: Actor, request: requests.Request) -> None:
    """Refuse a request that the asker's role does not allow; every user may look at the clock and
    at the what-if policies."""
    if isinstance(request, requests.Time | requests.Shadow) and request.action == "show":
        return
    if RANKS[actor.role] < RANKS[request.role]:
        text = (
            f"{type(request).__name__} needs the role {request.role}; {actor.user} is {actor.role}"
        )
        raise Refusal("not-permitted", f"Unauthorized Request: {text}")


def is_operator(actor: Actor) -> bool:
    """Return whether the asker is an operator or a manager."""
    return RANKS[actor.role] >= RANKS["operator"]


def owned(core: Core, actor: Actor, text: str) -> BatchJob:
    """Return the live job that a text names, if the asker owns it or is an operator; else
    refuse."""
    job = core.live(text)
    if not may_see(actor, job.uid):
        name = core.id_of(job.key)
        raise Refusal("not-permitted", f"Unauthorized Request {name}", name)
    return job


def may_see(actor: Actor, uid: int) -> bool:
    """Return whether the asker may see the script and the environment of a job of this user."""
    return actor.uid == uid or is_operator(actor)


def wrong_state(core: Core, job: BatchJob, why: str = "") -> Refusal:
    """Return the refusal of a command that the state of a job does not allow."""
    name = core.id_of(job.key)
    return Refusal(
        "bad-state", f"Request invalid for state of job {name}{f': {why}' if why else ''}", name
    )


def each(
    core: Core, names: Iterable[str], act: Callable[[str], Steps[None] | str | None]
) -> Steps[Outcomes]:
    """Carry out a command for each thing that it names, in steps; a refusal of one does not stop
    the others.

    ``act`` returns the new state of the thing, if the answer is to contain it, or takes steps
    itself.
    """
    outcomes = []
    for name in names:
        if is_enough(core):
            yield
        try:
            state = act(name)
            if isinstance(state, Generator):
                yield from state
                state = None
            outcomes.append(Outcome(name=name, state=state or ""))
        except Refusal as error:
            record = error.record
            if not (record.job or name in core.queues or name in core.host_places):
                with suppress(Refusal):
                    record = msgspec.structs.replace(record, job=core.id_of(core.key_of(name)))
            outcomes.append(Outcome(name=name, error=record))
    return Outcomes(outcomes=tuple(outcomes))
