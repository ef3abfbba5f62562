"""Shell completion of policies, metrics, breakdown keys and columns, and of the daemon's jobs,
queues and hosts.

The name of a parameter selects its completion (:data:`BY_NAME`), the same in every command.
Completion must never fail or print: without a daemon it offers nothing.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

import typer

from qbatch.model.errors import QbatchError

if TYPE_CHECKING:
    from qbatch.client import ClientSession

Found = list[tuple[str, str]]
"""Possible words, each with a short description, which some shells show.  Typer keeps those that
begin as the typed word."""

_PATIENCE = 2.0
_MOST = 500


def policies(incomplete: str) -> Found:
    """Complete a policy's name."""
    from importlib.metadata import entry_points

    from qbatch.policies.registry import GROUP, POLICIES

    known = {name: entry.meaning for name, entry in POLICIES.items()}
    return list({**{point.name: "" for point in entry_points(group=GROUP)}, **known}.items())


def metrics(incomplete: str) -> Found:
    """Complete a metric's name."""
    from qbatch.metrics.table import METRICS

    return [(metric.name, metric.meaning) for metric in METRICS]


def breakdowns(incomplete: str) -> Found:
    """Complete a key by which results are broken down."""
    from qbatch.metrics import BREAKDOWNS

    return [(name, "") for name in BREAKDOWNS]


def jobs(context: typer.Context, incomplete: str) -> Found:
    """Complete the identifier of a job of the daemon, active ones only."""
    from qbatch.wire.requests import JobStatus

    request = JobStatus(is_brief=True, limit=_MOST)
    asked = _known(context, lambda session: islice(session.jobs(request), _MOST))
    return [(job.id, f"{job.state} {job.name} of {job.user}") for job in asked]


def queues(context: typer.Context, incomplete: str) -> Found:
    """Complete the name of a queue."""
    from qbatch.wire.records import Queues
    from qbatch.wire.requests import QueueStatus

    return [
        (each.name, "")
        for each in _known(context, lambda session: session.ask(QueueStatus(), Queues).queues)
    ]


def hosts(context: typer.Context, incomplete: str) -> Found:
    """Complete the name of a host."""
    from qbatch.wire.records import Hosts
    from qbatch.wire.requests import HostStatus

    return [
        (each.name, each.state)
        for each in _known(context, lambda session: session.ask(HostStatus(), Hosts).hosts)
    ]


def _known(context: typer.Context, ask: Callable[[ClientSession], Iterable[Any]]) -> list[Any]:
    """Return the answer of the daemon, nothing if there is no daemon."""
    from qbatch.client import ClientSession

    with (
        suppress(QbatchError),
        ClientSession(context.params.get("socket"), timeout=_PATIENCE, patience=0.0) as session,
    ):
        return list(ask(session))
    return []


BY_NAME: dict[str, Callable[..., Found]] = {
    "policy": policies,
    "policies": policies,
    "baseline": policies,
    "by": breakdowns,
    "metric": metrics,
    "identifiers": jobs,
    "job": jobs,
    "queue": queues,
    "queues": queues,
    "hosts": hosts,
}
"""The completion of a parameter, by the parameter's name."""


def with_completion(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command with completion of its parameters by their names."""
    # Typer must see the objects that are changed here, not the source text of the annotations.
    hints = command.__annotations__ = typing.get_type_hints(command, include_extras=True)
    for name, parameter in inspect.signature(command).parameters.items():
        for info in (parameter.default, *getattr(hints.get(name), "__metadata__", ())):
            if isinstance(info, typer.models.ParameterInfo) and info.autocompletion is None:
                info.autocompletion = BY_NAME.get(name)
    return command
