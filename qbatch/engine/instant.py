"""The events that fall on one instant, in the order of docs/design.md, "The meaning of one instant"."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from operator import attrgetter
from types import MappingProxyType
from typing import Any, NamedTuple

from qbatch.model.errors import DecisionError
from qbatch.model.events import Event, Finished, Forced, HostClosed, HostOpened, Returned, Submitted, Withdrawn, Woken
from qbatch.model.job import Job

_BY_SEQUENCE = attrgetter("submit", "number")


class Happened(NamedTuple):
    """The events of one instant by kind.

    ``finished``: rows, ascending; ``ran``: the run times of them that the driver knows.  ``withdrawn``: rows, ascending.
    ``returned``: rows of trial runs.  ``hosts``: closings and openings, in order.  ``jobs``: arrivals, in order of (submit,
    number).  ``forced``: starts by an operator.
    """

    finished: tuple[int, ...] = ()
    ran: Mapping[int, int] = MappingProxyType({})
    withdrawn: tuple[int, ...] = ()
    returned: Set[int] = frozenset()
    hosts: Sequence[HostClosed | HostOpened] = ()
    jobs: Sequence[Job] = ()
    forced: Sequence[Forced] = ()


NOTHING = Happened()
"""No event."""


def sorted_out(events: Iterable[Event]) -> Happened:
    """Return the events of one instant by kind, each kind in order.

    Raises:
        DecisionError: an event is of an unknown type.
    """
    kinds: dict[type, list[Any]] = {
        kind: [] for kind in (Finished, Returned, Submitted, Withdrawn, Forced, Woken, HostClosed, HostOpened)
    }
    hosts: list[HostClosed | HostOpened] = []  # if a host closes and opens at one instant, the last event counts
    for event in events:
        if type(event) not in kinds:
            raise DecisionError(f"{event!r} is not an event")
        kinds[type(event)].append(event)
        if isinstance(event, HostClosed | HostOpened):
            hosts.append(event)
    return Happened(
        finished=tuple(sorted(event.row for event in kinds[Finished])),
        ran={event.row: event.ran for event in kinds[Finished] if event.ran is not None},
        withdrawn=tuple(sorted(event.row for event in kinds[Withdrawn])),
        returned={event.row for event in kinds[Returned]},
        hosts=hosts,
        jobs=sorted((event.job for event in kinds[Submitted]), key=_BY_SEQUENCE),
        forced=kinds[Forced],
    )
