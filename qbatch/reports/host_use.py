"""What a map of hosts shows: the amounts of a resource that jobs had on each host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from qbatch.model.machine import Reservation
from qbatch.model.record import Int64Array, Schedule


class HostLines(NamedTuple):
    """What was in use: a line for each job on each of its hosts, from ``begin`` to ``end``."""

    host: Int64Array
    begin: Int64Array
    end: Int64Array
    amount: Int64Array


class HostClass(NamedTuple):
    """Equal hosts of one rack, by their indices: their names and what they have, in words, and the
    name of the rack, empty if there is none."""

    names: str
    has: str
    hosts: Sequence[int]
    rack: str = ""


@dataclass(frozen=True, slots=True)
class HostMap:
    """What a heat map shows: a resource, what each host has of it, the classes of hosts, what was in
    use in a schedule, and the reservations, which are hatched."""

    resource: str
    there: Int64Array
    classes: Sequence[HostClass]
    lines_of: Callable[[Schedule], HostLines]
    reservations: Sequence[Reservation] = ()
