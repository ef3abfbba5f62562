"""A log from a table in memory: a data frame of pandas or polars, an Arrow table, or a dictionary of arrays.

Columns have the names of SWF's fields (:data:`qbatch.workloads.log.FIELDS`), or those of the five-column log and of job
rows (``procs``, ``estimate``, ``job_id``).  ``submit``, ``run`` and the processors are needed; a null or NaN is unknown.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from qbatch.model.errors import InputError, suggestion
from qbatch.workloads.header import Header
from qbatch.workloads.log import FIELDS, Column, Log, absent, compact, in_order

_OTHER_NAMES = {"job_id": "job", "procs": "procs_requested", "estimate": "time_requested"}
_NEEDED = ("submit", "run", "procs_requested")


def log_of_frame(frame: Any, procs: int | None = None, name: str = "frame") -> Log:
    """Return a log of the rows of a table; a note names the columns that are not used.

    Args:
        procs: processors of the machine, as ``MaxProcs`` in a header.
        name: of the log.

    Raises:
        InputError: a needed column is missing, or one holds anything else than numbers.
    """
    listed = next((getattr(frame, each) for each in ("column_names", "columns") if hasattr(frame, each)), frame)
    names = list(map(str, listed))
    found = {_OTHER_NAMES.get(each, each): each for each in names}
    if "procs_allocated" in found:
        found.setdefault("procs_requested", found["procs_allocated"])
    for needed in _NEEDED:
        if needed not in found:
            raise InputError(f"{name}: column {needed} is missing{suggestion(needed, names)}; there are {', '.join(names)}")
    columns = {field: _numbers(frame[found[field]], found[field], name) for field in FIELDS if field in found}
    rows = len(columns["submit"])
    if not rows:
        raise InputError(f"{name}: has no row")
    columns.setdefault("job", np.arange(1, rows + 1, dtype=np.int32))
    columns.setdefault("procs_allocated", columns["procs_requested"])
    digest = hashlib.sha256()
    for field in FIELDS:
        columns.setdefault(field, absent(rows))
        digest.update(np.ascontiguousarray(columns[field]).tobytes())
    unused = [each for each in names if _OTHER_NAMES.get(each, each) not in FIELDS]
    notes = [f"columns that are not used: {', '.join(unused)}"] if unused else []
    line = np.arange(1, rows + 1, dtype=np.int32)
    return in_order(Log(name, digest.hexdigest(), Header(max_procs=procs), columns, line, notes))


def _numbers(values: Any, column: str, name: str) -> Column:
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "iu":
            array = np.array([np.nan if value is None else value for value in array.tolist()], np.float64)
            array = np.where(np.isnan(array), -1.0, array)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name}: column {column} holds something that is no number ({error})") from error
    return compact(array.astype(np.int64) if array.dtype.kind in "iu" else array)
