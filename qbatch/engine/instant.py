"""The events that fall on one instant, in the order of design.md, "The meaning of one instant"."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from operator import attrgetter
from types import MappingProxyType
from typing import Any

from qbatch.model.errors import DecisionError
from qbatch.model.events import Event, Finished, Forced, HostClosed, HostOpened, Returned, Submitted, Withdrawn, Woken
from qbatch.model.job import Job

_BY_SEQUENCE = attrgetter("submit", "number")

Rows = tuple[int, ...]

Happened = tuple[Rows, Mapping[int, int], Rows, Set[int], Sequence[HostClosed | HostOpened], Sequence[Job], Sequence[Forced]]
"""The rows that finished, and the run times that the driver told of them; the rows that were withdrawn, and those that were
returned; hosts that close and open; jobs that arrive; starts that an operator forced."""

_NO_ROWS: Rows = ()
_NO_RUN_TIMES: Mapping[int, int] = MappingProxyType({})
_NO_TRIALS: Set[int] = frozenset()
_NO_HOSTS: Sequence[HostClosed | HostOpened] = ()
_NO_JOBS: Sequence[Job] = ()
_NONE_FORCED: Sequence[Forced] = ()
_WOKEN = Woken()


def sorted_out(events: Iterable[Event]) -> Happened:
    """Return the events of one instant by kind, each kind in order.

    Raises:
        DecisionError: for something that is no event.
    """
    events = events if isinstance(events, list) else list(events)
    if len(events) > 1:
        return _sorted_out(events)
    event = events[0] if events else _WOKEN  # most instants have one
    if type(event) is Submitted:
        return _NO_ROWS, _NO_RUN_TIMES, _NO_ROWS, _NO_TRIALS, _NO_HOSTS, (event.job,), _NONE_FORCED
    if type(event) is Finished:
        ran = _NO_RUN_TIMES if event.ran is None else {event.row: event.ran}
        return (event.row,), ran, _NO_ROWS, _NO_TRIALS, _NO_HOSTS, _NO_JOBS, _NONE_FORCED
    if type(event) is Woken:
        return _NO_ROWS, _NO_RUN_TIMES, _NO_ROWS, _NO_TRIALS, _NO_HOSTS, _NO_JOBS, _NONE_FORCED
    return _sorted_out(events)


def _sorted_out(events: list[Event]) -> Happened:
    kinds: dict[type, list[Any]] = {}
    for event in events:
        kinds.setdefault(type(event), []).append(event)
    known = (Finished, Returned, Submitted, Withdrawn, Forced, Woken, HostClosed, HostOpened)
    for kind in kinds:
        if kind not in known:
            raise DecisionError(f"{kinds[kind][0]!r} is no event")
    finished = tuple(sorted(event.row for event in kinds.get(Finished, ())))
    ran = {event.row: event.ran for event in kinds.get(Finished, ()) if event.ran is not None}
    returned = {event.row for event in kinds.get(Returned, ())}
    withdrawn = tuple(sorted(event.row for event in kinds.get(Withdrawn, ())))
    hosts = [*kinds.get(HostClosed, ()), *kinds.get(HostOpened, ())]
    if len(hosts) > 1:
        # Of a host that closes and opens at one instant, the last word holds.
        hosts = [event for event in events if isinstance(event, HostClosed | HostOpened)]
    jobs = sorted((event.job for event in kinds.get(Submitted, ())), key=_BY_SEQUENCE)
    return finished, ran, withdrawn, returned, hosts, jobs, kinds.get(Forced, _NONE_FORCED)
