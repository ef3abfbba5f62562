"""What happens to the engine: past participles, each with the row of the job or the host that it is about.

A *row* is the engine's number of a job: its rank in order of sequence.  Events carry no instant of their own:
they are handed in together for the instant on which they fall.
"""

from __future__ import annotations

import msgspec

from qbatch.model.actions import Allocation
from qbatch.model.job import Job

NO_RUN_TIME = -1
"""An attempt has no run time to learn from: the job begins again, or its script could not be started."""


class Submitted(msgspec.Struct, frozen=True, tag=True, gc=False):
    """A job arrived; the engine gives it the next row, whatever row it says."""

    job: Job


class Finished(msgspec.Struct, frozen=True, tag=True):
    """A running job ended, by itself or killed at its estimate.

    ``ran``: its run time in microseconds, on the processors that it asked for, where the driver knows it (a job may stand still
    without the engine); ``NO_RUN_TIME``: it has none to learn from; None: what the engine has counted.
    """

    row: int
    ran: int | None = None


class Returned(msgspec.Struct, frozen=True, tag=True):
    """A trial ended before its time because it used more memory than it was given: the job waits again."""

    row: int


class Withdrawn(msgspec.Struct, frozen=True, tag=True):
    """Somebody took a waiting or suspended job back."""

    row: int


class Forced(msgspec.Struct, frozen=True, tag=True):
    """An operator started a waiting job on these hosts, whatever the policy would do.

    The engine checks it as it checks a ``Start``.  The policy finds the row in ``withdrawn`` and in ``running``, and the machine
    changed: it plans anew from what runs.
    """

    row: int
    allocation: Allocation


class Woken(msgspec.Struct, frozen=True, tag=True):
    """An instant came that a policy had asked for, or at which a run ``until`` was due to stop."""


class HostClosed(msgspec.Struct, frozen=True, tag=True):
    """Nothing more starts on a host (its place in ``Machine.hosts``); what runs there goes on."""

    host: int


class HostOpened(msgspec.Struct, frozen=True, tag=True):
    """A closed host takes jobs again."""

    host: int


Event = Submitted | Finished | Returned | Withdrawn | Forced | Woken | HostClosed | HostOpened
"""What can happen to the engine."""
