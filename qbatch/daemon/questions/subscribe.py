"""Push events from now on."""

from __future__ import annotations

from qbatch.daemon.caller import Caller
from qbatch.daemon.service import Service
from qbatch.wire.records import Done
from qbatch.wire.requests import Subscribe


def handle(service: Service, caller: Caller, request: Subscribe) -> Done:
    """Enter the connection among those that get events; the text is the number of the last event before them."""
    caller.is_subscribed = True
    return Done(text=str(service.core.events_made))
