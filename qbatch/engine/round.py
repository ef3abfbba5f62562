"""The record of one round: what the engine did with the events of an instant."""

from __future__ import annotations

import msgspec

from qbatch.model.actions import Action
from qbatch.model.reasons import Reason


class Round(msgspec.Struct, frozen=True):
    """What one call of ``handle`` did.

    ``arrived``: rows that admission took.  ``refused``: jobs that admission turned away, with the reasons.
    ``stopped``: rows that the engine suspended because their ``until`` had come.  ``actions``: what the policy
    did, as it was carried out (allocations filled in).  ``broken``: rows that started after their promise,
    and rows whose promise the policy took back (``Break``), each once.
    ``first_waiting``: the first row left waiting, or None.  ``parked``: rows (arrivals too) that left the queue because
    only closed hosts could hold them; ``returned``: parked rows that came back to their places in the queue.
    ``requeued``: rows whose trial ended without their end; they wait again (a parked one among ``parked`` as well).
    """

    at: int
    finished: tuple[int, ...]
    stopped: tuple[int, ...]
    arrived: tuple[int, ...]
    refused: tuple[tuple[int, Reason], ...]
    actions: tuple[Action, ...]
    broken: tuple[int, ...]
    first_waiting: int | None
    parked: tuple[int, ...] = ()
    returned: tuple[int, ...] = ()
    requeued: tuple[int, ...] = ()
