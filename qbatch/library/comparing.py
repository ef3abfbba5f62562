"""``compare``: compare two schedules of one log, job by job."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from qbatch.library.arguments import in_arguments, speaks_of_arguments
from qbatch.library.html import table_html
from qbatch.library.result import ReplayResult
from qbatch.library.sides import Named, comparison_of, settings_of
from qbatch.metrics.paired import PRACTICAL
from qbatch.reports.comparison_words import intervals
from qbatch.results.run_words import number_text
from qbatch.results.table import arrow

if TYPE_CHECKING:
    import pyarrow

ResultLike = str | os.PathLike[str] | ReplayResult
"""A result: its path (``DIR``, ``DIR:POLICY``, job rows, a log with waits), or a result object."""

_NUMBERS = ("a", "b", "difference", "low", "high", "relative", "ratio", "p", "p_holm")
_TEXTS = ("name", "unit", "words", "finding", "sentence")


class Comparison:
    """The outcome of a comparison.  Differences are B - A.  A finding about B is ``better``,
    ``worse``, ``equal``, ``negligible``, ``noise``, ``unknown``, or ``described`` if one side is a
    real log.  Made by :func:`qbatch.compare`."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document

    @property
    def document(self) -> dict[str, Any]:
        """The record, as ``qbatch compare --json`` prints it (schema ``qbatch.compare/1``)."""
        return self._document

    @property
    def findings(self) -> dict[str, str]:
        """The finding by metric: ``comparison.findings["wait_mean_s"]``."""
        return {record["name"]: record["finding"] for record in self._document["metrics"]}

    @property
    def sentences(self) -> tuple[str, ...]:
        """The findings in words, a sentence for each metric."""
        return tuple(record["sentence"] for record in self._document["metrics"])

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks to read before the numbers: what a replay does not know of a real machine, unlike
        options, ..."""
        return tuple(
            in_arguments(note) for note in (*self._document["history"], *self._document["notes"])
        )

    @property
    def table(self) -> pyarrow.Table:
        """The metrics as an Arrow table: ``name``, ``unit``, ``words``, ``finding``, ``sentence``,
        ``a``, ``b``, ``difference``, ``low`` and ``high`` (the interval of the difference),
        ``relative`` (to A), ``ratio`` (B / A), ``p``; null for no value.

        Raises:
            UsageError: pyarrow is missing.
        """
        return _table(self._document["metrics"], ())

    @property
    def parts(self) -> pyarrow.Table:
        """The same for each part of the jobs: ``by`` (class, month, ...), ``label``, ``jobs``, then
        the columns of ``table`` without the sentences, and ``p_holm``, which decides the findings.

        Raises:
            UsageError: pyarrow is missing.
        """
        records = [
            {"by": key, **record}
            for key, records in self._document["parts"].items()
            for record in records
        ]
        return _table(records, ("by", "label", "jobs"))

    def __repr__(self) -> str:
        a, b = (self._document[side]["label"] for side in ("a", "b"))
        found = ", ".join(f"{name} {finding}" for name, finding in self.findings.items())
        return (
            f"<Comparison of {b} with {a}, {self._document['jobs']['common']:,} common jobs: "
            f"{found}>"
        )

    def _repr_html_(self) -> str:
        document = self._document
        a, b = document["a"]["label"], document["b"]["label"]
        rows = [
            [
                record["name"],
                *(number_text(record[key], record["unit"]) for key in ("a", "b")),
                number_text(record["ratio"]),
                *(
                    number_text(record[key], record["unit"])
                    for key in ("difference", "low", "high")
                ),
                record["finding"],
            ]
            for record in document["metrics"]
        ]
        lines = [*self.sentences, intervals(document), *self.notes]
        headings = ["", a, b, "ratio", "difference", "low", "high", "finding"]
        return table_html(
            f"{b} compared with {a}: {document['jobs']['common']:,} common jobs",
            headings,
            rows,
            lines,
        )


def _table(records: Sequence[dict[str, Any]], first: tuple[str, ...]) -> Any:
    pa = arrow("a table of a comparison")
    texts = [
        name for name in (*first, *_TEXTS) if name != "jobs" and not (first and name == "sentence")
    ]
    columns: dict[str, Any] = {
        name: pa.array([record[name] for record in records], pa.string()) for name in texts
    }
    if first:
        columns["jobs"] = pa.array([record["jobs"] for record in records], pa.int64())
    for name in _NUMBERS[: None if first else -1]:
        columns[name] = pa.array([record[name] for record in records], pa.float64())
    order = [*first, *(name for name in columns if name not in first)]
    return pa.table({name: columns[name] for name in order})


@speaks_of_arguments
def compare(
    a: ResultLike,
    b: ResultLike | None = None,
    *,
    replicas: ResultLike | Sequence[ResultLike] = (),
    logs_differ: bool = False,
    by: Sequence[str] = (),
    confidence: float = 0.95,
    practical: float = PRACTICAL,
    seed: int = 0,
    procs: int | None = None,
    machine: str | os.PathLike[str] | None = None,
    resources: str | os.PathLike[str] | None = None,
) -> Comparison:
    """Compare two schedules of one log, job by job: which is better, by how much, and whether the
    difference is noise.

    ``qbatch compare`` does the same and gives the same record.  A log with its own waits is
    described next to a policy, and neither is called better, unless ``machine`` is
    given.

    Args:
        a: a result of one policy, as ``result["easy"]`` or ``"DIR:easy"``; ``b`` likewise, or
            omitted if ``a`` holds two policies.
        replicas: results of the same two policies with other seeds; the intervals are then over the
            replicas.
        logs_differ: allow replicas of other logs.
        by: breakdowns: ``class`` and ``month`` if none is named; ``size``, ``runtime``, ``user``,
            ...
        confidence: confidence of the intervals, between 0 and 1.
        practical: ignore differences below this share of the larger value.
        seed: seed of the resampling of medians.
        procs: processors of the machine, for job rows and for logs that do not contain the number.
        machine: the machine file of a log with its own waits; with ``resources``, its side file.
            If the log's schedule can have run there, it is compared like any other.

    Raises:
        InputError: a result cannot be read, or the jobs of the two do not match.
        UsageError: an argument is unknown or conflicts with another.
    """
    how = settings_of([by] if isinstance(by, str) else by, confidence, practical, seed)
    others = [_named(each) for each in _listed(replicas)]
    second = None if b is None else _named(b)
    return Comparison(
        comparison_of(
            _named(a),
            second,
            others,
            how,
            may_logs_differ=logs_differ,
            procs=procs,
            machine=None if machine is None else os.fspath(machine),
            resources=None if resources is None else os.fspath(resources),
        )
    )


def _listed(given: ResultLike | Sequence[ResultLike]) -> Sequence[ResultLike]:
    return (given,) if isinstance(given, (str, os.PathLike, ReplayResult)) else given


def _named(given: ResultLike) -> Named:
    return given.recorded if isinstance(given, ReplayResult) else os.fspath(given)
