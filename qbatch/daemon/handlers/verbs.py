"""The table of verbs: which file handles which request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from qbatch.daemon.core import steps
from qbatch.daemon.core.state import Actor, Core
from qbatch.daemon.handlers import (
    alter,
    delete,
    fault,
    force_start,
    hold,
    host_control,
    message,
    move,
    order,
    policy_set,
    queue_control,
    release,
    rerun,
    signal,
    submit,
)
from qbatch.wire import requests

MUTATORS: dict[type[requests.Request], Callable[..., Any]] = {
    requests.Submit: submit.handle,
    requests.Delete: delete.handle,
    requests.Alter: alter.handle,
    requests.Hold: hold.handle,
    requests.Release: release.handle,
    requests.Move: move.handle,
    requests.Order: order.handle,
    requests.Rerun: rerun.handle,
    requests.ForceStart: force_start.handle,
    requests.Message: message.handle,
    requests.Signal: signal.handle,
    requests.QueueControl: queue_control.handle,
    requests.HostControl: host_control.handle,
    requests.PolicySet: policy_set.handle,
    requests.Fault: fault.handle,
}
"""What changes the core, as pure functions of (core, asker, request): replayed from the journal.  Some take steps."""


def begin(core: Core, actor: Actor, request: requests.Request) -> Any:
    """Carry out a command, or begin one that takes steps; return its answer or ``UNFINISHED``.

    Raises:
        Refusal: nothing has changed.
    """
    return steps.begin(core, MUTATORS[type(request)](core, actor, request), actor, request)


def carry_out(core: Core, actor: Actor, request: requests.Request) -> Any:
    """Carry out a command as a whole; return its answer.

    Raises:
        Refusal: nothing has changed.
    """
    return steps.whole(MUTATORS[type(request)](core, actor, request))
