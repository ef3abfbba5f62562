"""The array types that kernels take: always contiguous, always one of these few, so that each
kernel compiles once."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Int64Array: TypeAlias = NDArray[np.int64]
Float64Array: TypeAlias = NDArray[np.float64]
Float32Array: TypeAlias = NDArray[np.float32]
Int8Array: TypeAlias = NDArray[np.int8]
BoolArray: TypeAlias = NDArray[np.bool_]
Record: TypeAlias = Any
RecordArray: TypeAlias = NDArray[Any]
"""An array of records with named fields (:mod:`qbatch.planning.kernels.tables`), and one of
them."""


def read_only(array: Int64Array) -> Int64Array:
    """Return a view of an array that cannot be written, nor can its slices: to the compiler it is
    another type."""
    shown = array.view()
    shown.flags.writeable = False
    return shown
