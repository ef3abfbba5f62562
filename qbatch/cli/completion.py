"""What a shell completes: policies, metrics, keys of breakdowns, columns, and what the daemon knows: jobs, queues, hosts.

A parameter is completed by what its name means (:data:`BY_NAME`), the same in every command.  Nothing here may fail or say a
word: where there is no daemon, there is nothing to complete.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

import typer

from qbatch.model.errors import QbatchError

if TYPE_CHECKING:
    from qbatch.client import ClientSession

Found = list[tuple[str, str]]
"""Words that may stand there, each with a word about it, which some shells show."""

_PATIENCE = 2.0
_MOST = 500


def _beginning(incomplete: str, words: Iterator[tuple[str, str]]) -> Found:
    return [(word, text) for word, text in words if word.startswith(incomplete)]


def policies(incomplete: str) -> Found:
    """Complete a policy's name."""
    from importlib.metadata import entry_points

    from qbatch.policies.registry import GROUP, POLICIES

    known = {name: entry.meaning for name, entry in POLICIES.items()}
    return _beginning(incomplete, iter({**{point.name: "" for point in entry_points(group=GROUP)}, **known}.items()))


def metrics(incomplete: str) -> Found:
    """Complete a metric's name."""
    from qbatch.metrics.table import METRICS

    return _beginning(incomplete, ((metric.name, metric.meaning) for metric in METRICS))


def breakdowns(incomplete: str) -> Found:
    """Complete what results are broken down by."""
    from qbatch.metrics import BREAKDOWNS

    return _beginning(incomplete, ((name, "") for name in BREAKDOWNS))


def jobs(context: typer.Context, incomplete: str) -> Found:
    """Complete the identifier of a job that the daemon has, active ones; whoever asks for more of them types on."""
    from qbatch.wire.requests import JobStatus

    def asked(session: ClientSession) -> Iterator[tuple[str, str]]:
        for job in islice(session.jobs(JobStatus(is_brief=True, limit=_MOST)), _MOST):
            yield job.id, f"{job.state} {job.name} of {job.user}"

    return _known(context, incomplete, asked)


def queues(context: typer.Context, incomplete: str) -> Found:
    """Complete the name of a queue."""
    from qbatch.wire.records import Queues
    from qbatch.wire.requests import QueueStatus

    return _known(
        context, incomplete, lambda session: ((each.name, "") for each in session.ask(QueueStatus(), Queues).queues)
    )


def hosts(context: typer.Context, incomplete: str) -> Found:
    """Complete the name of a host."""
    from qbatch.wire.records import Hosts
    from qbatch.wire.requests import HostStatus

    return _known(
        context,
        incomplete,
        lambda session: ((each.name, each.state) for each in session.ask(HostStatus(), Hosts).hosts),
    )


def _known(
    context: typer.Context, incomplete: str, ask: Callable[[ClientSession], Iterator[tuple[str, str]]]
) -> Found:  # fmt: skip
    """Return what a daemon knows, nothing where there is none."""
    from qbatch.client import ClientSession

    with suppress(QbatchError), ClientSession(context.params.get("socket"), timeout=_PATIENCE, patience=0.0) as session:
        return _beginning(incomplete, ask(session))
    return []


BY_NAME: dict[str, Callable[..., Found]] = {
    "policy": policies, "policies": policies, "baseline": policies, "by": breakdowns, "metric": metrics, "identifiers": jobs,
    "job": jobs, "queue": queues, "queues": queues, "hosts": hosts,
}  # fmt: skip
"""What completes a parameter of this name."""


def with_completion(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command whose parameters are completed by what their names mean."""
    # Typer must see the very objects that are changed here, not the texts that they are made of.
    hints = command.__annotations__ = typing.get_type_hints(command, include_extras=True)
    for name, parameter in inspect.signature(command).parameters.items():
        for told in (parameter.default, *getattr(hints.get(name), "__metadata__", ())):
            if isinstance(told, typer.models.ParameterInfo) and told.autocompletion is None:
                told.autocompletion = BY_NAME.get(name)
    return command
