"""The cases of a sweep, one run each, as indices and values of the grid; and the data that all of them share."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from qbatch.model.machine import Machine
from qbatch.sweeps.grid import Grid
from qbatch.workloads.log import Log

ALL, NONE, OF_LOG = "all", "none", "log"
"""The whole log as a window, a log that is not resampled, and the machine of the log."""


class Case(msgspec.Struct, frozen=True):
    """One run: indices of the grid's logs, machines and windows, and values of its other axes.

    ``seed``: None if nothing is drawn, so that every seed would give the same run.
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
    """The shared data of all runs of a sweep: the grid; its logs, None for one that a model generates; its machines, None for
    the log's own.

    ``policies``: by name, the hash of the source of each user's own policy, else an empty text.  ``key``: distinguishes contexts
    in a worker that gets several.
    """

    grid: Grid
    logs: tuple[Log | None, ...]
    machines: tuple[Machine | None, ...]
    key: str
    policies: dict[str, str]
