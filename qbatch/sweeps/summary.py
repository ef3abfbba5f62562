"""The summary of a sweep: a mean for each point of the grid, with an interval over its replicas,
and differences in pairs.

A *point* is one combination of all axes but the seed; the runs of its seeds are its replicas.  The
rules are those of ``qbatch compare``: Student's t over replicas, differences between policies in
pairs of the same seed, bounds cut at the possible values (docs/explanation/statistics.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qbatch.metrics import METRICS, interval
from qbatch.metrics.interval import SAME, are_same
from qbatch.metrics.paired import PRACTICAL, finding_of
from qbatch.metrics.ratio import replicated_difference
from qbatch.model.errors import UsageError, suggestion
from qbatch.sweeps.grid import AXES
from qbatch.sweeps.table import DONE, SweepTable, metric_named

SHOWN = ("wait_mean_s", "bounded_slowdown_mean", "utilisation_submit")
"""The metrics shown by default."""

_AT = tuple(axis for axis in AXES if axis != "seed")


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean of a metric over the replicas of a point, and the bounds of its interval, or None.

    ``reason``: why several replicas have no interval: they cannot differ.
    """

    value: float | None
    low: float | None
    high: float | None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Point:
    """One combination of all axes but the seed: its axes, the seeds of its replicas, and their
    values of metrics."""

    at: dict[str, Any]
    seeds: tuple[int | None, ...]
    values: dict[str, NDArray[np.float64]]

    @property
    def replicas(self) -> int:
        """Number of its runs."""
        return len(self.seeds)

    def mean(self, metric: str, confidence: float = 0.95) -> Mean:
        """Return the mean of a metric and its interval, which needs two replicas."""
        values = self.values[metric]
        known = values[~np.isnan(values)]
        found = interval(known.tolist(), confidence)
        if are_same(known.tolist()):
            return Mean(found.mean, None, None, SAME)
        if found.low is None or found.high is None:
            return Mean(found.mean, None, None)
        low = max(found.low, 0.0) if float(known.min()) >= 0 else found.low
        high = min(found.high, 1.0) if _UNITS[metric] == "share" else found.high
        return Mean(found.mean, low, high)


def points(
    sweep: SweepTable,
    metrics: Sequence[str] = SHOWN,
    where: Mapping[str, Sequence[Any]] | None = None,
) -> list[Point]:
    """Return the points of a sweep in the order of its grid, with some metrics of the runs that
    were done.

    Args:
        sweep: the sweep.
        metrics: names of metrics, with or without their unit.
        where: for some axes, the values to take; by default all of them.

    Raises:
        UsageError: there is no such metric, axis or value.
    """
    names = [metric_named(name) for name in metrics]
    table = sweep.read([*AXES, "status", *names]).combine_chunks()
    columns = {name: _column(table[name]) for name in (*AXES, "status")}
    numbers = {name: _numbers(table[name]) for name in names}
    seeds = np.array([*columns["seed"].values, None], object)[columns["seed"].codes]
    is_taken = np.isin(columns["status"].codes, columns["status"].places([DONE]))
    for axis, values in (where or {}).items():
        known = _among(sweep, axis, values)
        is_taken &= np.isin(columns[axis].codes, columns[axis].places(known))
    rows = np.flatnonzero(is_taken)
    if not len(rows):
        return []
    code = np.zeros(len(rows), np.int64)
    for axis in _AT:
        code = code * (len(columns[axis].values) + 1) + columns[axis].codes[rows]
    _, place = np.unique(code, return_inverse=True)
    order = np.argsort(place, kind="stable")
    groups = np.split(rows[order], np.flatnonzero(np.diff(place[order])) + 1)
    return [
        Point(
            {axis: columns[axis].at(int(group[0])) for axis in _AT},
            tuple(seeds[group].tolist()),
            {name: values[group] for name, values in numbers.items()},
        )
        for group in sorted(groups, key=lambda group: int(group[0]))
    ]


class _Column(NamedTuple):
    """A column of the table as indices into its values; -1 for null.  Arrow's conversions to NumPy
    load pandas, which is slow."""

    codes: NDArray[np.int64]
    values: list[Any]

    def at(self, row: int) -> Any:
        code = int(self.codes[row])
        return None if code < 0 else self.values[code]

    def places(self, values: Sequence[Any]) -> list[int]:
        return [place for place, value in enumerate(self.values) if value in values]


def _column(column: Any) -> _Column:
    encoded = _whole(column)
    if not hasattr(encoded, "dictionary"):
        encoded = encoded.dictionary_encode()
    codes, is_null = _buffer(encoded.indices, encoded.indices.type.bit_width // 8, "i")
    found = codes.astype(np.int64)
    found[is_null] = -1
    return _Column(found, encoded.dictionary.to_pylist())


def _numbers(column: Any) -> NDArray[np.float64]:
    """Return a column of numbers, NaN for null."""
    values, is_null = _buffer(_whole(column), 8, "f" if str(column.type) == "double" else "i")
    found = values.astype(np.float64)
    found[is_null] = np.nan
    return found


def _whole(column: Any) -> Any:
    whole = column.combine_chunks() if hasattr(column, "chunks") else column
    return whole.chunk(0) if hasattr(whole, "chunks") else whole


def _buffer(array: Any, size: int, kind: str) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the values of an Arrow array of numbers, and which of them are null."""
    validity, data = array.buffers()
    count, begin = len(array), array.offset
    values = (
        np.frombuffer(data, f"{kind}{size}", count, begin * size)
        if count
        else np.empty(0, f"{kind}{size}")
    )
    if validity is None or not array.null_count:
        return values, np.zeros(count, np.bool_)
    bits = np.unpackbits(np.frombuffer(validity, np.uint8), bitorder="little")
    return values, bits[begin : begin + count] == 0


def _among(sweep: SweepTable, axis: str, values: Sequence[Any]) -> list[Any]:
    """Return values of an axis in the form that the axis has, however they are typed."""
    if axis not in AXES:
        raise UsageError(
            f"there is no axis {axis!r}{suggestion(axis, AXES)} (there are {', '.join(AXES)})"
        )
    by_text = {_text(value): value for value in sweep.document["grid"][axis]}
    for value in values:
        if _text(value) not in by_text:
            raise UsageError(
                f"{axis} {value}: is not in this sweep, which has {', '.join(by_text)}"
            )
    return [by_text[_text(value)] for value in values]


def _text(value: Any) -> str:
    try:
        return f"{float(value):g}"
    except (TypeError, ValueError):
        return str(value)


@dataclass(frozen=True, slots=True)
class PolicyDifference:
    """A policy and the baseline at one point: both means, the mean difference over pairs, its
    interval, and the finding."""

    at: dict[str, Any]
    policy: str
    pairs: int
    base: float | None
    value: float | None
    difference: float | None
    low: float | None
    high: float | None
    finding: str
    reason: str | None = None


def differences(
    found: Sequence[Point],
    metric: str,
    baseline: str,
    *,
    confidence: float = 0.95,
    practical: float = PRACTICAL,
) -> list[PolicyDifference]:
    """Return the difference of every policy from the baseline at each point, in pairs of the same
    seed.

    The finding is that of ``qbatch compare``.  One pair, or pairs that all differ by the same, have
    no interval, and their finding is unknown (equal if they do not differ).
    """
    is_less_better = next(one for one in METRICS if one.name == metric).is_less_better
    by_place = {_place(point): point for point in found if point.at["policy"] == baseline}
    records = []
    for point in found:
        base = by_place.get(_place(point))
        if point.at["policy"] == baseline or base is None:
            continue
        places = {seed: place for place, seed in enumerate(base.seeds)}
        pairs = [(place, places[seed]) for place, seed in enumerate(point.seeds) if seed in places]
        ours = point.values[metric][[place for place, _ in pairs]]
        theirs = base.values[metric][[place for _, place in pairs]]
        known = ~(np.isnan(ours) | np.isnan(theirs))
        ours, theirs = ours[known], theirs[known]
        if not len(ours):
            continue
        estimate = replicated_difference(theirs, ours, confidence)
        mean = float(theirs.mean())
        larger = max(mean, float(ours.mean()))
        finding = finding_of(
            estimate,
            larger,
            is_less_better=is_less_better,
            practical=practical,
            level=1 - confidence,
        )
        reason = SAME if are_same((ours - theirs).tolist()) else None
        records.append(
            PolicyDifference(
                point.at,
                point.at["policy"],
                len(ours),
                mean,
                float(ours.mean()),
                estimate.value,
                estimate.low,
                estimate.high,
                finding.value,
                reason,
            )
        )
    return records


_UNITS = {metric.name: metric.unit for metric in METRICS}


def _place(point: Point) -> tuple[Any, ...]:
    return tuple(value for axis, value in point.at.items() if axis != "policy")


def record(
    sweep: SweepTable,
    metrics: Sequence[str] = SHOWN,
    *,
    confidence: float = 0.95,
    baseline: str | None = None,
) -> dict[str, Any]:
    """Return the record of a sweep with its points, as ``--json`` prints it.

    Every point has ``at`` (its axes), ``replicas`` and ``metrics``: by name ``mean``, ``low``,
    ``high`` and, if several replicas have no interval, the ``reason``, as every difference has.
    ``against`` holds the difference of each policy from the ``baseline``, by default the first
    policy of the grid.
    """
    found, names = points(sweep, metrics), [metric_named(name) for name in metrics]
    policies = sweep.document["grid"]["policy"]
    base = policies[0] if baseline is None else baseline
    return {
        **sweep.document,
        "confidence": confidence,
        "points": [
            {
                "at": point.at,
                "replicas": point.replicas,
                "metrics": {
                    name: {
                        "mean": mean.value,
                        "low": mean.low,
                        "high": mean.high,
                        "reason": mean.reason,
                    }
                    for name, mean in ((name, point.mean(name, confidence)) for name in names)
                },
            }
            for point in found
        ],
        "baseline": base,
        "against": [
            {
                "at": one.at,
                "metric": name,
                "pairs": one.pairs,
                "baseline": one.base,
                "policy": one.value,
                "difference": one.difference,
                "low": one.low,
                "high": one.high,
                "finding": one.finding,
                "reason": one.reason,
            }
            for name in names
            for one in (
                differences(found, name, base, confidence=confidence) if len(policies) > 1 else []
            )
        ],
    }
