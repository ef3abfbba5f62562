"""The array types that kernels take: always contiguous, always one of these few, so that they compile once."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Int64Array: TypeAlias = NDArray[np.int64]
Float64Array: TypeAlias = NDArray[np.float64]
Int8Array: TypeAlias = NDArray[np.int8]
BoolArray: TypeAlias = NDArray[np.bool_]


class Classes(NamedTuple):
    """A workload by the classes of a machine, as :mod:`qbatch.planning.kernels.lsf` takes it: ``jobs`` is ``[4, row]``."""

    jobs: Int64Array
    sweep: Int64Array
    order: Int64Array
    ranks: Int64Array
    rules: Int64Array
    quota: Int64Array
