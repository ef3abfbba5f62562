"""What a policy that divides the time is doing."""

from __future__ import annotations

import msgspec


class Phase(msgspec.Struct, frozen=True):
    """Whose turn it is on a machine that is shared in time.  Instants in microseconds.

    ``name``: in a few words, such as ``slice of medium jobs`` or ``switch``.  ``until``: its end, None while nobody is there.
    ``following``: each class that does not have the machine, and when it has it at the earliest if the jobs that are there stay.
    ``on_disk``, ``procs_on_disk``: how many jobs are suspended, and their processors.
    """

    name: str
    until: int | None = None
    following: tuple[tuple[str, int], ...] = ()
    on_disk: int = 0
    procs_on_disk: int = 0
