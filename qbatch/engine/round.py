"""The record of one round: what the engine did with the events of an instant."""

from __future__ import annotations

import msgspec

from qbatch.model.actions import Action
from qbatch.model.reasons import Reason


class Round(msgspec.Struct, frozen=True):
    """The result of one call of ``handle``.

    ``arrived``: rows that admission accepted.  ``refused``: jobs that admission refused, with the
    reasons. ``stopped``: rows that the engine suspended because their ``until`` had come.
    ``actions``: the policy's actions as carried out (allocations filled in).  ``broken``: rows
    that started after their promise, and rows of promises that the policy took back (``Break``),
    each once. ``first_waiting``: the first row left waiting, or None.  ``parked``: rows (also
    arrivals) that left the queue because only closed hosts could hold them; ``returned``: parked
    rows that came back to the queue. ``requeued``: rows that had a trial run in which the job did
    not end; they wait again (a parked one is also in ``parked``).
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
