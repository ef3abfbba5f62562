"""The events that fall on one instant, in the order of design.md, "The meaning of one instant"."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from operator import attrgetter
from types import MappingProxyType
from typing import Any

from qbatch.model.errors import DecisionError
from qbatch.model.events import Event, Finished, HostClosed, HostOpened, Returned, Submitted, Withdrawn, Woken
from qbatch.model.job import Job

_BY_SEQUENCE = attrgetter("submit", "number")


class EventsOfInstant:
    """The events of one instant, sorted out by kind and each kind put in order."""

    finished: tuple[int, ...] = ()
    ran: Mapping[int, int] = MappingProxyType({})
    withdrawn: tuple[int, ...] = ()
    returned: Set[int] = frozenset()
    hosts: Sequence[HostClosed | HostOpened] = ()
    jobs: Sequence[Job] = ()

    def __init__(self, events: Iterable[Event]) -> None:
        events = events if isinstance(events, list) else list(events)
        if len(events) > 1:
            self._sort_out(events)
            return
        for event in events:  # most instants have one
            if type(event) is Submitted:
                self.jobs = (event.job,)
            elif type(event) is Finished:
                self.finished = (event.row,)
                if event.ran is not None:
                    self.ran = {event.row: event.ran}
            elif type(event) is not Woken:
                self._sort_out(events)

    def _sort_out(self, events: list[Event]) -> None:
        kinds: dict[type, list[Any]] = {}
        for event in events:
            kinds.setdefault(type(event), []).append(event)
        known = (Finished, Returned, Submitted, Withdrawn, Woken, HostClosed, HostOpened)
        for kind in kinds:
            if kind not in known:
                raise DecisionError(f"{kinds[kind][0]!r} is no event")
        self.finished = tuple(sorted(event.row for event in kinds.get(Finished, ())))
        self.ran = {event.row: event.ran for event in kinds.get(Finished, ()) if event.ran is not None}
        self.returned = {event.row for event in kinds.get(Returned, ())}
        self.withdrawn = tuple(sorted(event.row for event in kinds.get(Withdrawn, ())))
        self.hosts = [*kinds.get(HostClosed, ()), *kinds.get(HostOpened, ())]
        if len(self.hosts) > 1:
            # Of a host that closes and opens at one instant, the last word holds.
            self.hosts = [event for event in events if isinstance(event, HostClosed | HostOpened)]
        self.jobs = sorted((event.job for event in kinds.get(Submitted, ())), key=_BY_SEQUENCE)
