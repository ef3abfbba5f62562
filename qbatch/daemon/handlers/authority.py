"""Who may do what: one table for every verb, and the one function that asks it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable

import msgspec

from qbatch.daemon.core.job import BatchJob
from qbatch.daemon.core.state import Actor, Core
from qbatch.daemon.core.steps import Steps, is_enough
from qbatch.wire import requests
from qbatch.wire.errors import ErrorRecord, Refusal
from qbatch.wire.records import Outcome, Outcomes

RANKS = {"anyone": 0, "owner": 0, "user": 0, "operator": 1, "manager": 2}
"""Roles by what they include."""

WHO: dict[type[requests.Request], str] = {
    requests.Submit: "anyone",
    requests.Delete: "owner",
    requests.Alter: "owner",
    requests.Hold: "owner",
    requests.Release: "owner",
    requests.Move: "owner",
    requests.Order: "owner",
    requests.Rerun: "owner",
    requests.ForceStart: "operator",
    requests.Message: "owner",
    requests.Signal: "owner",
    requests.QueueControl: "operator",
    requests.HostControl: "operator",
    requests.PolicySet: "manager",
    requests.Fault: "manager",
    requests.Hello: "anyone",
    requests.JobStatus: "anyone",
    requests.QueueStatus: "anyone",
    requests.HostStatus: "anyone",
    requests.ServerStatus: "anyone",
    requests.Explain: "anyone",
    requests.Wait: "anyone",
    requests.Trail: "anyone",
    requests.JobOutput: "owner",
    requests.History: "anyone",
    requests.Subscribe: "anyone",
    requests.Time: "operator",
    requests.Forecast: "anyone",
    requests.Shadow: "operator",
    requests.Upload: "anyone",
    requests.Metrics: "anyone",
    requests.Backup: "manager",
    requests.Check: "operator",
    requests.ConfigShow: "anyone",
    requests.Reload: "manager",
    requests.Shutdown: "manager",
}
"""Who may send each request: ``owner`` is the owner of each job that it names, or an operator."""


def permit(actor: Actor, request: requests.Request) -> None:
    """Refuse a request that the asker's role does not allow.

    Raises:
        Refusal: not permitted.
    """
    who = WHO[type(request)]
    if isinstance(request, requests.Time | requests.Shadow) and request.action == "show":
        return
    if RANKS[actor.role] < RANKS[who]:
        verb = type(request).__name__
        raise Refusal(
            "not-permitted", f"Unauthorized Request: {verb} needs the role {who}; {actor.user} is {actor.role}"
        )


def owned(core: Core, actor: Actor, text: str) -> BatchJob:
    """Return the live job that a text names, if the asker owns it or is an operator.

    Raises:
        Refusal: there is none, it has finished, or it is somebody else's.
    """
    job = core.live(text)
    if job.uid != actor.uid and RANKS[actor.role] < RANKS["operator"]:
        name = core.id_of(job.key)
        raise Refusal("not-permitted", f"Unauthorized Request {name}", name)
    return job


def may_see(actor: Actor, uid: int) -> bool:
    """Whether the asker may see the script and the environment of a job of this user."""
    return actor.uid == uid or RANKS[actor.role] >= RANKS["operator"]


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
