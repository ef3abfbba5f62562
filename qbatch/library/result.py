"""The result of a replay: schedules and their metrics as tables, pictures and files, displayed by
notebooks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from qbatch.distribution import install_command
from qbatch.library.arguments import speaks_of_arguments
from qbatch.library.html import picture_html, table_html
from qbatch.metrics import BREAKDOWNS, METRICS, breakdown, measure
from qbatch.metrics.per_job import Metrics
from qbatch.model.errors import UsageError, suggestion
from qbatch.model.record import Schedule
from qbatch.reports.plots import PICTURES
from qbatch.results.job_rows import job_table
from qbatch.results.result import Result, write_result
from qbatch.results.run_words import (
    left_out_notes,
    missing_estimates,
    number_text,
    recorded_notes,
    run_words,
    short_name,
)
from qbatch.results.table import arrow

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow
    from matplotlib.axes import Axes

_SHOWN = (
    "jobs",
    "wait_mean_s",
    "wait_median_s",
    "wait_p95_s",
    "wait_max_s",
    "bounded_slowdown_mean",
    "bounded_slowdown_median",
    "backfilled_share",
    "utilisation_makespan",
    "loss_of_capacity",
    "makespan_s",
    "rejected_count",
)
"""Metrics that a notebook displays; ``metrics`` holds all of them."""

_PICTURE = "wait-hist"
_SEVERAL = "queue"


class NamedMetrics(dict[str, float | int | None]):
    """The metrics of a run by name; an unknown name is answered with the nearest one."""

    def __missing__(self, name: str) -> None:
        raise UnknownMetric(
            f"there is no metric {name!r}{suggestion(name, self)} (qbatch metrics lists them)"
        )


class UnknownMetric(UsageError, KeyError):  # noqa: N818 - a KeyError that is a usage error
    """There is no metric of this name in a run."""

    __str__ = Exception.__str__


class ReplayResult:
    """Schedules of one log on one machine, one for each policy, and their metrics.

    ``result["easy"]`` is the part of one policy, ``len(result)`` is the number of policies, and
    iteration yields their names. Two results are equal if their jobs and metrics are equal.  Made
    by :func:`qbatch.replay` and :func:`qbatch.read_result`.
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, read: Result, notes: Sequence[str] = ()) -> None:
        self._read = read
        self._notes = tuple(notes)

    @property
    def policies(self) -> tuple[str, ...]:
        """The canonical names of the policies, in the order of the runs."""
        return self._read.policies

    @property
    def schedules(self) -> tuple[Schedule, ...]:
        """The schedules: columns of whole microseconds, one row per job
        (``qbatch.model.record``)."""
        return self._read.schedules

    @property
    def recorded(self) -> Result:
        """The schedules and the document in their internal form
        (``qbatch.results.result.Result``)."""
        return self._read

    @property
    def document(self) -> dict[str, Any]:
        """The record of the run, as in ``qbatch replay --json`` and ``result.json``; empty for bare
        job rows."""
        return self._read.document

    @property
    def log(self) -> str:
        """The name of the log."""
        return self._read.name

    @property
    def procs(self) -> int:
        """Processors of the machine; for bare job rows without that number, the most in use at
        once."""
        return self._read.procs_total

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks to read before the numbers: jobs left out, missing estimates, jobs ended at their
        estimates."""
        return self._notes

    def __len__(self) -> int:
        return len(self.policies)

    def __iter__(self) -> Iterator[str]:
        return iter(self.policies)

    @speaks_of_arguments
    def __getitem__(self, policy: str) -> ReplayResult:
        return self.only(policy)

    @speaks_of_arguments
    def only(self, *policies: str) -> ReplayResult:
        """Return the part of some policies, in this order.

        Raises:
            UsageError: there is no such policy in it.
        """
        part = ReplayResult(self._read.only(policies), self._notes)
        part.__dict__["metrics"] = {name: self.metrics[name] for name in part.policies}
        return part

    @cached_property
    def metrics(self) -> Mapping[str, Metrics]:
        """Every metric by policy and name: ``result.metrics["easy"]["wait_mean_s"]``.

        Names end in their unit: ``_s`` is seconds, ``_share`` is 0 to 1, slowdowns are ratios.
        None if a metric has no value (a mean over no jobs).  ``metrics_table`` and ``qbatch
        metrics`` show the meaning of each.
        """
        kept = {
            each.get("policy"): each.get("metrics") for each in self.document.get("results", ())
        }
        found = {each.policy: kept.get(each.policy) or measure(each) for each in self.schedules}
        return {name: NamedMetrics(metrics) for name, metrics in found.items()}

    @property
    def metrics_table(self) -> pyarrow.Table:
        """Every metric as an Arrow table, a row for each policy and metric: ``policy``, ``metric``,
        ``value`` (float, null for none), ``unit``, ``meaning``.

        Raises:
            UsageError: pyarrow is missing.
        """
        known = {
            policy: [each for each in METRICS if each.name in values]
            for policy, values in self.metrics.items()
        }
        rows = [
            (policy, each, self.metrics[policy][each.name])
            for policy, metrics in known.items()
            for each in metrics
        ]
        pa = arrow("a table of metrics")
        return pa.table(
            {
                "policy": pa.array([policy for policy, _, _ in rows], pa.string()),
                "metric": pa.array([each.name for _, each, _ in rows], pa.string()),
                "value": pa.array(
                    [None if value is None else float(value) for _, _, value in rows], pa.float64()
                ),
                "unit": pa.array([each.unit for _, each, _ in rows], pa.string()),
                "meaning": pa.array([each.meaning for _, each, _ in rows], pa.string()),
            }
        )

    @speaks_of_arguments
    def breakdown(self, by: str) -> pyarrow.Table:
        """Return the metrics of parts of the jobs as an Arrow table: ``policy``, ``label``,
        ``jobs``, and a column for each metric of jobs.

        Args:
            by: ``month``, ``week``, ``user``, ``size``, ``class``, ... (``qbatch replay --by``).

        Raises:
            UsageError: there is no such breakdown, or pyarrow is missing.
        """
        if by not in BREAKDOWNS:
            raise UsageError(
                f"by {by!r}: use one of {', '.join(BREAKDOWNS)}{suggestion(by, BREAKDOWNS)}"
            )
        pa = arrow("a table of metrics")

        def as_floats(metrics: Metrics) -> dict[str, float | None]:
            return {
                name: None if value is None else float(value)
                for name, value in metrics.items()
                if name != "jobs"
            }

        rows = [
            {"policy": each.policy, "label": str(group.label), "jobs": group.jobs}
            | as_floats(group.metrics)
            for each in self.schedules
            for group in breakdown(each, by)
        ]
        return pa.Table.from_pylist(rows)

    @cached_property
    def jobs(self) -> pyarrow.Table:
        """The jobs of all policies as an Arrow table, one row per job and policy, by policy and in
        order of start.

        Columns are those of job rows: ``job_id``, ``submit``, ``start``, ``end`` (seconds of the
        log's own clock), ``procs``, ``estimate``, ``run``, ``wait`` (seconds), ``slowdown``,
        ``bounded_slowdown``, ``kind``, ``promise``, ``user``, ``group``, ``queue``, ``policy`` and
        more.  Kinds are in_order, immediate, backfilled, rejected; null is absent.  Times are whole
        numbers if all are whole, else floats.  The metadata of each field holds its ``unit``.

        Raises:
            UsageError: pyarrow is missing.
        """
        return job_table(self.schedules)

    def to_pandas(self) -> pandas.DataFrame:
        """Return ``jobs`` as a pandas data frame.

        Raises:
            UsageError: pandas or pyarrow is missing.
        """
        if find_spec("pandas") is None:
            raise UsageError("to_pandas needs pandas: pip install pandas")
        frame: pandas.DataFrame = self.jobs.to_pandas()
        return frame

    def to_polars(self) -> polars.DataFrame:
        """Return ``jobs`` as a polars data frame.

        Raises:
            UsageError: polars or pyarrow is missing.
        """
        if find_spec("polars") is None:
            raise UsageError("to_polars needs polars: pip install polars")
        import polars

        return polars.DataFrame(self.jobs)

    @speaks_of_arguments
    def plot(
        self,
        kind: str = _PICTURE,
        *,
        policies: Sequence[str] = (),
        since: str | float | None = None,
        before: str | float | None = None,
        title: str | None = None,
        colour_by: str = "size",
        columns: int = 2,
        grey: bool = False,
        ax: Axes | Sequence[Axes] | None = None,
    ) -> Any:
        """Return a picture as a matplotlib figure, which a notebook displays;
        ``figure.savefig("x.pdf")`` writes it.

        With ``ax`` it draws into your axes and returns them.

        Args:
            kind: ``gantt``, ``utilisation``, ``queue``, ``wait-hist``, ``slowdown-by-size`` or
                ``estimates``.
            policies: policies to draw; all if none is named.
            since: log seconds or an ISO time; ``before`` likewise.  The window is half-open; by
                default it is the whole run.
            title: title instead of the usual one.
            colour_by: colours of Gantt charts: ``size`` or ``user``.
            columns: width of the figure: 1 or 2 columns of a journal.
            grey: draw in grey, for print.
            ax: axes to draw into, without title and caption: one, or one for each panel
                (``wait-hist``, ``queue`` and ``estimates`` have two, ``gantt`` has one for each
                policy).

        Raises:
            UsageError: there is no such picture or policy, the window is empty, the number of axes
                is wrong, or matplotlib is missing.
        """
        if find_spec("matplotlib") is None:
            raise UsageError(f"drawing needs matplotlib: {install_command('report')}")
        if colour_by not in ("size", "user"):
            raise UsageError(f"colour_by {colour_by!r}: use size or user")
        if kind not in PICTURES:
            raise UsageError(
                f"no picture {kind!r}{suggestion(kind, PICTURES)}; there are {', '.join(PICTURES)}"
            )
        if columns not in (1, 2):
            raise UsageError(f"columns {columns!r}: use 1 or 2")
        from qbatch.library.figure import shown
        from qbatch.reports.plots import draw

        begin, end = (None if at is None else str(at) for at in (since, before))
        axes = [] if ax is None else [*ax] if isinstance(ax, Iterable) else [ax]
        figure = draw(
            self._read,
            kind,
            policies=(policies,) if isinstance(policies, str) else tuple(policies),
            begin=begin,
            end=end,
            title=title,
            colour_by=colour_by,
            columns=columns,
            is_grey=grey,
            axes=axes,
        )
        return shown(figure) if ax is None else ax

    @speaks_of_arguments
    def save(self, directory: str | os.PathLike[str]) -> None:
        """Write the result as ``qbatch replay --out DIR`` does: ``result.json`` and the job rows of
        each policy as Parquet.

        The directory appears whole or not at all.  :func:`qbatch.read_result`, ``qbatch plot``,
        ``report``, ``compare`` and ``metrics`` read it.

        Raises:
            OutputError: the directory holds anything else than an earlier result, or cannot be
                written.
            UsageError: pyarrow is missing.
        """
        arrow("writing a result")
        from qbatch.results.output import make_folder

        make_folder(os.fspath(directory))
        kept = [
            each for each in self.document.get("results", ()) if each.get("policy") in self.policies
        ]
        fresh = {
            key: value
            for key, value in self.document.items()
            if key not in ("files", "pieces", "policies")
        }
        write_result(
            os.fspath(directory), {**fresh, **({"results": kept} if kept else {})}, self.schedules
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ReplayResult):
            return NotImplemented
        return (
            self.policies == other.policies
            and self.procs == other.procs
            and dict(self.metrics) == dict(other.metrics)
            and bool(self.jobs.equals(other.jobs))
        )

    def __repr__(self) -> str:
        name, waits = short_name(self.log), []
        for policy in self.policies[:6]:
            value = self.metrics[policy].get("wait_mean_s")
            waits.append(f"{policy} {number_text(value, 's')}{' s' if value is not None else ''}")
        more = f", and {len(self) - 6} more" if len(self) > 6 else ""
        jobs = max((len(each) for each in self.schedules), default=0)
        return (
            f"<ReplayResult {name}: {jobs:,} jobs on {self.procs:,} processors; mean wait: "
            f"{', '.join(waits)}{more}>"
        )

    def _repr_html_(self) -> str:
        rows = []
        for each in METRICS:
            if each.name in _SHOWN and any(each.name in values for values in self.metrics.values()):
                cells = (
                    number_text(self.metrics[policy].get(each.name), each.unit)
                    for policy in self.policies
                )
                rows.append([each.name, *cells])
        jobs = max((len(each) for each in self.schedules), default=0)
        caption = f"{short_name(self.log)}: {jobs:,} jobs on {self.procs:,} processors"
        footer = ["; ".join(run_words(self._read)[1:])] if self.document else []
        table = table_html(caption, ["", *self.policies], rows, [*footer, *self.notes])
        png = self._repr_png_()
        return (
            table
            if png is None
            else table + picture_html(png, f"{self._picture} of {short_name(self.log)}")
        )

    def _repr_png_(self) -> bytes | None:
        return self._png

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        del include, exclude  # the notebook selects from the bundle
        bundle: dict[str, Any] = {"text/plain": repr(self), "text/html": self._repr_html_()}
        return bundle if self._png is None else {**bundle, "image/png": self._png}

    @cached_property
    def _png(self) -> bytes | None:
        """The usual picture as PNG; None without matplotlib, or if no job ran."""
        if find_spec("matplotlib") is None or not any(each.ran.any() for each in self.schedules):
            return None
        from qbatch.library.figure import png_of

        return png_of(self.plot(self._picture))

    @property
    def _picture(self) -> str:
        """The kind of the usual picture: the queue of one policy, or the waits of several."""
        return _PICTURE if len(self) > 1 else _SEVERAL


@speaks_of_arguments
def read_result(path: str | os.PathLike[str], *, procs: int | None = None) -> ReplayResult:
    """Read a result: a directory that ``save`` or ``qbatch replay --out`` wrote, job rows, or a log
    with waits.

    Args:
        path: a directory; a ``.csv`` or ``.parquet`` file of job rows of any program; or a workload
            log (SWF) with waits, which is read as a result of the policy ``log``.  ``PATH:POLICY``
            reads one policy of it.
        procs: processors of the machine, which bare job rows do not contain.

    Raises:
        InputError: the path is none of these, or damaged, or no job ran.
        UsageError: it holds no such policy.
    """
    from qbatch.results.reading import read_named

    read = read_named(os.fspath(path), procs=procs)
    document, notes = read.document, recorded_notes(read)
    if not notes:
        notes = [str(note) for note in (document.get("log") or {}).get("notes") or ()]
        for reason, count in (document.get("skipped") or {}).items():
            notes.append(f"{count} jobs skipped: {str(reason).replace('_', ' ')}")
        if (missing := missing_estimates(document)) is not None:
            notes.append(missing)
        if killed := document.get("killed_at_estimate"):
            notes.append(f"{killed} jobs run longer than their estimate and are ended there")
    return ReplayResult(read, [*notes, *left_out_notes(document)])
