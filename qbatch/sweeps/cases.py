"""The cases of a sweep: one run each, in places and values of the grid; and what all of them share."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from qbatch.model.machine import Machine
from qbatch.sweeps.grid import Grid
from qbatch.workloads.log import Log

ALL, NONE, OF_LOG = "all", "none", "log"
"""The whole log as a window, a log that is not drawn anew, and the machine that the log names."""


class Case(msgspec.Struct, frozen=True):
    """One run: places in the grid's logs, machines and windows, and values of its other axes.

    ``seed``: None where nothing is drawn, so that every seed would give the same run.
    """

    log: int
    machine: int
    window: int
    resample: str
    load: float
    estimates: str
    seed: int | None
    policy: str


@dataclass(frozen=True, slots=True)
class Context:
    """What all runs of a sweep share: the grid; its logs, None where a model generates one; its machines, None for the log's own.

    ``policies``: by name the hash of the source of each that is a user's own, else an empty text.  ``key``: tells one context
    from another in a worker that sees several.
    """

    grid: Grid
    logs: tuple[Log | None, ...]
    machines: tuple[Machine | None, ...]
    key: str
    policies: dict[str, str]
