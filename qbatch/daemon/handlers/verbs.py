"""The table of verbs, which the modules of ``handlers`` and ``questions`` fill; who may send a request; how a command is done."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import Any, TypeVar

import msgspec

from qbatch.daemon.core import steps
from qbatch.daemon.core.job import BatchJob
from qbatch.daemon.core.state import Actor, Core
from qbatch.daemon.core.steps import Steps, is_enough
from qbatch.wire import requests
from qbatch.wire.errors import ErrorRecord, Refusal
from qbatch.wire.records import Outcome, Outcomes

Handler = TypeVar("Handler", bound=Callable[..., Any])

HANDLERS: dict[type[requests.Request], Callable[..., Any]] = {}
"""What carries out each verb.  Commands: pure functions of (core, asker, request), replayed from the journal; some take steps.
Questions: functions of (service, client, request)."""

RANKS = {"anyone": 0, "owner": 0, "user": 0, "operator": 1, "manager": 2}
"""Roles by what they include."""


def handles(kind: type[requests.Request]) -> Callable[[Handler], Handler]:
    """Enter a function into the table of verbs (a decorator)."""

    def enter(handler: Handler) -> Handler:
        HANDLERS[kind] = handler
        return handler

    return enter


def require_handlers(kind: type[requests.Request]) -> None:
    """Let an import fail where a verb of a kind (commands or questions) has no handler."""
    lacking = [each.__name__ for each in kind.__subclasses__() if each not in HANDLERS]
    assert not lacking, f"nothing handles {', '.join(lacking)}"


def begin(core: Core, actor: Actor, request: requests.Request) -> Any:
    """Carry out a command, or begin one that takes steps; return its answer or ``UNFINISHED``.

    Raises:
        Refusal: nothing has changed.
    """
    return steps.begin(core, HANDLERS[type(request)](core, actor, request), actor, request)


def carry_out(core: Core, actor: Actor, request: requests.Request) -> Any:
    """Carry out a command as a whole; return its answer.

    Raises:
        Refusal: nothing has changed.
    """
    return steps.whole(HANDLERS[type(request)](core, actor, request))


def permit(actor: Actor, request: requests.Request) -> None:
    """Refuse a request that the asker's role does not allow; to look at the clock or at shadows is for anyone.

    Raises:
        Refusal: not permitted.
    """
    if isinstance(request, requests.Time | requests.Shadow) and request.action == "show":
        return
    if RANKS[actor.role] < RANKS[request.role]:
        verb = type(request).__name__
        text = f"Unauthorized Request: {verb} needs the role {request.role}; {actor.user} is {actor.role}"
        raise Refusal("not-permitted", text)


def is_operator(actor: Actor) -> bool:
    """Whether the asker may do what operators may."""
    return RANKS[actor.role] >= RANKS["operator"]


def owned(core: Core, actor: Actor, text: str) -> BatchJob:
    """Return the live job that a text names, if the asker owns it or is an operator.

    Raises:
        Refusal: there is none, it has finished, or it is somebody else's.
    """
    job = core.live(text)
    if not may_see(actor, job.uid):
        name = core.id_of(job.key)
        raise Refusal("not-permitted", f"Unauthorized Request {name}", name)
    return job


def may_see(actor: Actor, uid: int) -> bool:
    """Whether the asker may see the script and the environment of a job of this user."""
    return actor.uid == uid or is_operator(actor)


def wrong_state(core: Core, job: BatchJob, why: str = "") -> Refusal:
    """Return the refusal of what cannot be done to a job in its state."""
    name = core.id_of(job.key)
    return Refusal("bad-state", f"Request invalid for state of job {name}{f': {why}' if why else ''}", name)


def each(core: Core, names: Iterable[str], act: Callable[[str], Steps[None] | str | None]) -> Steps[Outcomes]:
    """Do something to each thing that a command names, in steps; a refusal of one does not stop the others.

    ``act``: returns the state that the thing has now, if that is to be told; or it takes steps itself.
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
            outcomes.append(Outcome(name=name, error=_about(core, name, error)))
    return Outcomes(outcomes=tuple(outcomes))


def _about(core: Core, name: str, error: Refusal) -> ErrorRecord:
    record = error.record
    if record.job or name in core.queues or name in core.host_places:
        return record
    try:
        return msgspec.structs.replace(record, job=core.id_of(core.key_of(name)))
    except Refusal:
        return record
