"""The parts of running jobs, as the passes over hosts take them; imports kernels, so only policies that have them import it."""

from __future__ import annotations

import numpy as np

from qbatch.planning.kernels import running
from qbatch.planning.kernels.live import live
from qbatch.planning.kernels.types import Int64Array
from qbatch.planning.view import OVERDUE, View

_parts_by_end = live(running.parts_by_end)


def open_parts(view: View) -> tuple[Int64Array, int]:
    """Return the parts of running jobs on open hosts in order of expected end, and how many they are.

    Rows of the result: expected end (overdue ones end ``OVERDUE`` from now), host, processors, memory.
    """
    closed = np.array(list(view.closed), np.int64)
    found, count = _parts_by_end(view.pieces.copy(), view.now, view.now + OVERDUE, closed)
    return found, int(count)
