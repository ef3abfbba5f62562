"""The current phase of a policy that divides the time."""

from __future__ import annotations

import msgspec


class Phase(msgspec.Struct, frozen=True):
    """Which jobs have a time-shared machine now.  Instants in microseconds.

    ``name``: in a few words, such as ``slice of medium jobs`` or ``switch``.  ``until``: its end,
    None while there is no job. ``following``: each class that does not have the machine, and its
    earliest next slice if the current jobs stay. ``on_disk``, ``procs_on_disk``: the number of
    suspended jobs, and their processors.
    """

    name: str
    until: int | None = None
    following: tuple[tuple[str, int], ...] = ()
    on_disk: int = 0
    procs_on_disk: int = 0
