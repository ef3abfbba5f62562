"""The jobs as columns for the page's own script: compact, exact, and harmless whatever a name
contains.

Each column is little-endian, as differences between neighbours if that is smaller, deflated, in
base64.  Times are seconds from the first submit.  Facts of a job that all policies share are stored
once.  A policy with suspended or resized jobs has the begin and end of each box (``piece_*``) and
of each further wait (``again_*``); without them, a box is as long as its job.
"""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbatch.model.record import KINDS, MICROSECONDS, Int64Array, Schedule, Workload
from qbatch.reports.report.study import ReportStudy
from qbatch.results.boxes import Boxes, assign
from qbatch.results.result import most_procs
from qbatch.results.run_words import short_name

MOST_JOBS = 120_000
"""Most jobs that are embedded, the first by submission, so that a browser can open the page."""

_SHARED = {"job_id": "number"} | {
    name: name for name in ("submit", "procs", "estimate", "run", "user", "group", "queue")
}
"""Facts of a job that all policies share: their names in the page, and their columns in a
workload."""

_OWN = {name: name for name in ("start", "end", "kind", "promise", "first_promise")}
_TIMES = {"submit", "estimate", "run", "start", "end", "promise", "first_promise"}


def embedded(study: ReportStudy) -> dict[str, Any]:
    """Return the data of the first replica for the page's script, as JSON values."""
    result = study.first.result
    shown = {schedule.policy: schedule.only_ran() for schedule in result.schedules}
    longest = max((ran.workload for ran in shown.values()), key=len)
    is_cut = len(longest) > MOST_JOBS
    if is_cut:
        shown = {
            policy: ran.only(ran.workload.submit < int(longest.submit[MOST_JOBS]))
            for policy, ran in shown.items()
        }
    origin = min(int(ran.workload.submit.min()) for ran in shown.values())
    is_whole = all(_is_whole(ran) for ran in shown.values())
    start = result.clock.unix_start
    total = max(result.procs_total, *map(most_procs, shown.values()))
    # If most jobs started in one way, for example backfilled, colours by it would be one colour.
    is_one_kind = any(
        2 * max(int((ran.kind == kind).sum()) for kind in range(len(KINDS))) > len(ran)
        for ran in shown.values()
    )
    tables: list[Workload] = []
    policies = []
    for ran in (shown[policy] for policy in study.policies if policy in shown):
        place = next(
            (at for at, one in enumerate(tables) if _is_same(one, ran.workload)), len(tables)
        )
        if place == len(tables):
            tables.append(ran.workload)
        policies.append(_policy(ran, place, assign(ran, total, result.host_cpus), origin, is_whole))
    return {
        "name": short_name(result.name),
        "procs": result.procs_total,
        "height": total,
        "clock": {
            "unix": None if start is None else start + origin / MICROSECONDS,
            "zone": result.clock.zone,
            "log": origin / MICROSECONDS,
        },
        "kinds": [kind.replace("_", " ") for kind in KINDS],
        "colour": "size" if is_one_kind else "kind",
        "cut": is_cut,
        "tables": [_columns(jobs, _SHARED, origin, is_whole) for jobs in tables],
        "policies": policies,
    }


def _is_same(one: Workload, other: Workload) -> bool:
    """Whether two policies ran exactly the same jobs, so that one table serves both."""
    return len(one) == len(other) and all(
        np.array_equal(getattr(one, name), getattr(other, name)) for name in _SHARED.values()
    )


def _is_whole(ran: Schedule) -> bool:
    if ran.pieces is not None and (ran.pieces[:, 1:3] % MICROSECONDS).any():
        return False
    times = [getattr(ran if name in _OWN else ran.workload, name) for name in _TIMES]
    return not any((time % MICROSECONDS * (time >= 0)).any() for time in times)


def _policy(ran: Schedule, table: int, boxes: Boxes, origin: int, is_whole: bool) -> dict[str, Any]:
    columns = _columns(ran, _OWN, origin, is_whole)
    columns |= {
        "piece_job": packed(boxes.job),
        "piece_low": packed(boxes.low),
        "piece_high": packed(boxes.high),
    }
    if ran.is_in_pieces.any():
        columns["piece_count"] = packed(np.maximum(ran.piece_count, 0))
    if ran.pieces is not None:
        waits = ran.queue_spans()
        times = {
            "piece_begin": boxes.begin,
            "piece_end": boxes.end,
            "again_begin": waits.begin[len(ran) :],
            "again_end": waits.end[len(ran) :],
        }
        columns |= {name: packed(_seconds(at - origin, is_whole)) for name, at in times.items()}
    return {"policy": ran.policy, "table": table, "columns": columns}


def _columns(
    source: Schedule | Workload, names: dict[str, str], origin: int, is_whole: bool
) -> dict[str, Any]:
    """Return columns in the units of the page; an absent time becomes a year before the first
    submit."""
    columns = {}
    for name, column in names.items():
        values: NDArray[Any] = getattr(source, column)
        if name in _TIMES:
            if name not in ("estimate", "run"):
                values = np.where(values < 0, ABSENT_S * MICROSECONDS, values - origin)
            values = _seconds(values, is_whole)
        columns[name] = packed(values)
    return columns


def _seconds(times: Int64Array, is_whole: bool) -> NDArray[Any]:
    return times // MICROSECONDS if is_whole else times / MICROSECONDS


ABSENT_S = -365 * 86400
"""The value of an absent promise, in seconds from the first submit."""


def packed(values: NDArray[Any]) -> dict[str, Any]:
    """Return a column as its type, its coding, its length and its bytes.

    ``type``: i1, i2, i4 or f8.  ``delta``: whether each value is stored as its difference from the
    one before it (the first from 0), with 32-bit arithmetic that wraps around.
    """
    if values.dtype.kind == "f" or (
        len(values) and (values.min() < -(2**31) or values.max() >= 2**31)
    ):
        return _column("f8", False, values.astype("<f8"))
    plain = _column(_narrow(values), False, values)
    delta = np.diff(values, prepend=0)
    if len(values) and (delta.min() < -(2**31) or delta.max() >= 2**31):
        return plain
    return min(plain, _column(_narrow(delta), True, delta), key=lambda one: len(one["data"]))


def _narrow(values: NDArray[Any]) -> str:
    low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    for bits in (8, 16):
        if -(2 ** (bits - 1)) <= low and high < 2 ** (bits - 1):
            return f"i{bits // 8}"
    return "i4"


def _column(kind: str, is_delta: bool, values: NDArray[Any]) -> dict[str, Any]:
    data = zlib.compress(values.astype(f"<{kind}").tobytes(), 9)
    return {
        "type": kind,
        "delta": is_delta,
        "length": len(values),
        "data": base64.b64encode(data).decode(),
    }


def script_json(value: Any) -> str:
    """Return JSON that is safe inside a script element: no ``<`` in it can end the element or begin
    a comment."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
