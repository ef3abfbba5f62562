"""Push events from now on."""

from __future__ import annotations

from qbatch.daemon.connected_client import ConnectedClient
from qbatch.daemon.service import Service
from qbatch.wire.errors import Refusal
from qbatch.wire.records import Done
from qbatch.wire.requests import Subscribe


def handle(service: Service, client: ConnectedClient, request: Subscribe) -> Done:
    """Enter the connection among those that get events; the text is the number of the last event before them.

    Raises:
        Refusal: who asks knows another last event; those in between are not kept.
    """
    last = service.event_stream.last
    if request.after is not None and request.after != last:
        what = (
            "have come since and are not kept" if request.after < last else "have never been: the store is another one"
        )
        raise Refusal(
            "bad-value",
            f"after={request.after}: the last event is {last}, those between {what}; ask for the jobs anew, and subscribe "
            "without a number",
        )
    client.is_subscribed = True
    return Done(text=str(last))
