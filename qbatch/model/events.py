"""What happens to the engine: past participles, each with the row of its job or its host.

A *row* is the engine's number of a job: its rank in order of sequence.  Events have no instant of
their own: all events of one instant are passed to the engine together.
"""

from __future__ import annotations

import msgspec

from qbatch.model.actions import Allocation
from qbatch.model.job import Job
from qbatch.model.machine import Reservation
from qbatch.model.reservations import Window

NO_RUN_TIME = -1
"""The attempt has no valid run time: the job starts again, or its script could not be started."""


class Submitted(msgspec.Struct, frozen=True, tag=True, gc=False):
    """A job arrived; the engine gives it the next row, whatever its own ``row`` is."""

    job: Job


class Finished(msgspec.Struct, frozen=True, tag=True):
    """A running job ended, by itself or killed at its estimate.

    ``ran``: its run time in microseconds, on the requested processors, if the driver knows it (a
    job may stand still without the engine); ``NO_RUN_TIME``: it has no valid one; None: the
    engine's own count.
    """

    row: int
    ran: int | None = None


class Returned(msgspec.Struct, frozen=True, tag=True):
    """A trial run ended before its time because it used more memory than it was given: the job
    waits again."""

    row: int


class Withdrawn(msgspec.Struct, frozen=True, tag=True):
    """A waiting or suspended job was taken back."""

    row: int


class Forced(msgspec.Struct, frozen=True, tag=True):
    """An operator started a waiting job on these hosts, whatever the policy would do.

    The engine checks it like a ``Start``.  The policy finds the row in ``withdrawn`` and in
    ``running``, and the machine counts as changed, so it plans again from what runs.
    """

    row: int
    allocation: Allocation


class Woken(msgspec.Struct, frozen=True, tag=True):
    """An instant came that a policy had asked for, or at which a run ``until`` was due to stop."""


class HostClosed(msgspec.Struct, frozen=True, tag=True):
    """No further job starts on a host (an index into ``Machine.hosts``); running jobs continue
    there."""

    host: int


class HostOpened(msgspec.Struct, frozen=True, tag=True):
    """A closed host takes jobs again."""

    host: int


class Reserved(msgspec.Struct, frozen=True, tag=True):
    """The machine has these reservations from now on, at these times, in place of all earlier ones
    (:func:`qbatch.model.reservations.windows_of`)."""

    reservations: tuple[Reservation, ...]
    windows: tuple[Window, ...]


Event = (
    Submitted
    | Finished
    | Returned
    | Withdrawn
    | Forced
    | Woken
    | HostClosed
    | HostOpened
    | Reserved
)
"""Every event of the engine."""
