"""``sweep``: run a grid of replays, keep and resume the runs, and return tables and pictures of
them."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qbatch.library.arguments import speaks_of_arguments
from qbatch.library.html import picture_html, table_html
from qbatch.library.logs import write_log
from qbatch.library.progress import changing_line
from qbatch.model.errors import UsageError
from qbatch.results.run_words import left_out_notes, number_text
from qbatch.results.table import arrow
from qbatch.sweeps.executors import Place, place_of
from qbatch.sweeps.grid import AXES, grid_of
from qbatch.sweeps.plan import plan_of
from qbatch.sweeps.summary import SHOWN, points, record
from qbatch.sweeps.sweep import Progress, run_sweep
from qbatch.sweeps.table import SweepTable, metric_named
from qbatch.sweeps.table import read_sweep as read_table
from qbatch.workloads import Log
from qbatch.workloads.transform.deadlines import DeadlineLog

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow
    from matplotlib.axes import Axes

_SHOWN_POINTS = 30

SweptLog = str | os.PathLike[str] | Log | DeadlineLog
"""A log of a sweep: its path, a model such as ``"lublin:jobs=5000,procs=128"``, or a log object."""

SweptPolicy = str | type[Any]
"""A policy of a sweep: its text as on a command line, or a class that needs no parameters."""

SweptMachine = str | int | os.PathLike[str]
"""A machine of a sweep: a machine file, a shipped name, or a number of processors."""


class SweepResult:
    """The runs of a sweep; ``len(sweep)`` is their number.  Made by :func:`qbatch.sweep` and
    :func:`qbatch.read_sweep`."""

    def __init__(self, table: SweepTable, kept: int = 0, made: int = 0, folder: Any = None) -> None:
        self._table, self._folder = table, folder
        self.kept = kept
        """Number of runs that existed before."""
        self.made = made
        """Number of runs made by this call."""

    def __len__(self) -> int:
        return int(self.document["runs"])

    @property
    def directory(self) -> str:
        """The directory of the runs, for ``qbatch plot`` and ``qbatch report``; a temporary one if
        none was named."""
        return str(self._table.folder)

    @property
    def document(self) -> dict[str, Any]:
        """Its record (schema ``qbatch.sweep/1``): grid, logs with their SHA-256, versions, counts,
        failures."""
        return self._table.document

    @property
    def failures(self) -> list[dict[str, Any]]:
        """The first hundred runs that failed: their axes and the ``error``."""
        return list(self.document["failures"])

    @cached_property
    def runs(self) -> pyarrow.Table:
        """Every run as an Arrow table, in the order of the grid.

        Columns: the axes (``log``, ``machine``, ``window``, ``resample``, ``load``, ``estimates``,
        ``seed``, ``policy``), ``status`` (done, failed, missing), ``error``, then every metric; the
        metadata of its field holds ``unit`` and ``meaning``; null if a run has no value.
        """
        return self._table.read()

    def to_pandas(self) -> pandas.DataFrame:
        """Return ``runs`` as a pandas data frame.

        Raises:
            UsageError: pandas is missing.
        """
        if find_spec("pandas") is None:
            raise UsageError("to_pandas needs pandas: pip install pandas")
        frame: pandas.DataFrame = self.runs.to_pandas()
        return frame

    def to_polars(self) -> polars.DataFrame:
        """Return ``runs`` as a polars data frame.

        Raises:
            UsageError: polars is missing.
        """
        if find_spec("polars") is None:
            raise UsageError("to_polars needs polars: pip install polars")
        import polars

        return polars.DataFrame(self.runs)

    @speaks_of_arguments
    def points(self, *metrics: str, confidence: float = 0.95) -> pyarrow.Table:
        """Return the mean of metrics at each point of the grid, over its replicas (seeds), as an
        Arrow table.

        Columns: the axes without the seed, ``replicas``, and three columns for each metric:
        ``NAME``, ``NAME_low`` and ``NAME_high``.  The last two bound the interval by Student's t
        over the replicas; they are null if there are fewer than two or all are equal.

        Args:
            metrics: names with or without their unit, such as ``"wait_mean"``; by default, those
                that a notebook displays.
            confidence: confidence of the intervals, between 0 and 1.

        Raises:
            UsageError: there is no such metric.
        """
        names = [metric_named(name) for name in metrics or SHOWN]
        rows = []
        for point in points(self._table, names):
            row = {**point.at, "replicas": point.replicas}
            for name in names:
                mean = point.mean(name, confidence)
                row |= {name: mean.value, f"{name}_low": mean.low, f"{name}_high": mean.high}
            rows.append(row)
        pa = arrow("a table of points")
        columns = [axis for axis in AXES if axis != "seed"] + ["replicas"]
        kinds = dict.fromkeys(columns, pa.string()) | {"load": pa.float64(), "replicas": pa.int64()}
        columns += [f"{name}{end}" for name in names for end in ("", "_low", "_high")]
        return pa.table(
            {
                name: pa.array([row[name] for row in rows], kinds.get(name, pa.float64()))
                for name in columns
            }
        )

    @speaks_of_arguments
    def against(
        self, baseline: str | None = None, *metrics: str, confidence: float = 0.95
    ) -> list[dict[str, Any]]:
        """Return the difference of each policy from a baseline at each point, in pairs of the same
        seed, as ``compare`` does.

        Each record has ``at``, ``metric``, ``pairs``, ``baseline`` and ``policy`` (means),
        ``difference``, ``low``, ``high``, and the ``finding``: better, worse, noise, negligible,
        equal; unknown if there is one pair.

        Args:
            baseline: a policy of the sweep; the first if none is named.
            metrics: as in ``points``.
            confidence: confidence of the intervals.

        Raises:
            UsageError: there is no such policy or metric.
        """
        policies = self.document["grid"]["policy"]
        if baseline is not None and baseline not in policies:
            raise UsageError(
                f"baseline {baseline!r}: is not in this sweep, which has {', '.join(policies)}"
            )
        found = record(self._table, metrics or SHOWN, confidence=confidence, baseline=baseline)
        return list(found["against"])

    @speaks_of_arguments
    def plot(
        self,
        y: str = "wait_mean",
        *,
        x: str | None = None,
        by: str = "policy",
        where: Mapping[str, Sequence[Any]] | None = None,
        confidence: float = 0.95,
        log_scale: bool = False,
        title: str | None = None,
        columns: int = 2,
        grey: bool = False,
        ax: Axes | Sequence[Axes] | None = None,
    ) -> Any:
        """Return a matplotlib figure of a metric against an axis, with the intervals over the
        replicas.

        With ``ax`` it draws into your axes and returns them.

        Args:
            y: the metric.
            x: the horizontal axis; by default the load if it varies, else the first axis that does.
            by: draw a line for each value of this axis.
            where: for some axes, the values to draw.  An axis that keeps several values makes a
                panel for each.
            confidence: confidence of the intervals.
            log_scale: whether the metric has a logarithmic scale.
            title: title instead of the usual one.
            columns: width of the figure: 1 or 2 columns of a journal.
            grey: draw in grey, for print.
            ax: axes to draw into, without title and caption: one, or one for each panel.

        Raises:
            UsageError: there is no such axis, metric or value, the number of axes is wrong, or
                matplotlib is missing.
        """
        from qbatch.reports.sweep_plot import SweepPicture, draw_sweep

        chosen = {
            axis: [one] if isinstance(one, str | int | float) else list(one)
            for axis, one in (where or {}).items()
        }
        axes = [] if ax is None else [*ax] if isinstance(ax, Iterable) else [ax]
        figure = draw_sweep(
            self._table,
            SweepPicture(x, y, by, chosen, confidence, log_scale, title, columns, grey, axes),
        )
        return figure if ax is None else ax

    def __repr__(self) -> str:
        grid = self.document["grid"]
        axes = ", ".join(f"{len(grid[axis])} {axis}" for axis in self._table.varying)
        failed = f", {self.document['failed']:,} failed" if self.document["failed"] else ""
        return (
            f"<SweepResult {', '.join(grid['log'])}: {len(self):,} "
            f"runs{f' ({axes})' if axes else ''}{failed}>"
        )

    def _repr_html_(self) -> str:
        axes = [axis for axis in self._table.varying if axis not in ("seed", "policy")]
        found = points(self._table, SHOWN)
        rows = []
        for point in found[:_SHOWN_POINTS]:
            cells = [_cell(point.mean(name), name) for name in SHOWN]
            rows.append(
                [
                    *(str(point.at[axis]) for axis in axes),
                    point.at["policy"],
                    str(point.replicas),
                    *cells,
                ]
            )
        footer = (
            [f"{len(found) - _SHOWN_POINTS:,} more points: points()"]
            if len(found) > _SHOWN_POINTS
            else []
        )
        if self.document["failed"]:
            footer.append(f"{self.document['failed']:,} runs failed: failures")
        reasons = [
            reason for point in found for name in SHOWN if (reason := point.mean(name).reason)
        ]
        footer += [f"[-]: {reason}" for reason in reasons[:1]]
        footer += [
            f"{log['name']}: {note}"
            for log in self.document["logs"]
            for note in left_out_notes({"log": log, "resources": log.get("resources")})
        ]
        table = table_html(repr(self)[1:-1], [*axes, "policy", "replicas", *SHOWN], rows, footer)
        png = self._repr_png_()
        return table if png is None else table + picture_html(png, "mean wait by load and policy")

    def _repr_png_(self) -> bytes | None:
        if find_spec("matplotlib") is None or not points(self._table, SHOWN[:1]):
            return None
        from qbatch.library.figure import png_of

        try:
            return png_of(self.plot(SHOWN[0]))
        except UsageError:  # too many panels for a picture: show only the table
            return None


def _cell(mean: Any, name: str) -> str:
    unit = "s" if name.endswith("_s") else ""
    text = number_text(mean.value, unit)
    if mean.low is None or mean.high is None:
        return f"{text} [-]" if mean.reason else text
    return f"{text} [{number_text(mean.low, unit)}, {number_text(mean.high, unit)}]"


@speaks_of_arguments
def sweep(
    log: SweptLog | Sequence[SweptLog],
    policies: SweptPolicy | Sequence[SweptPolicy] = ("fcfs", "easy", "conservative"),
    *,
    load: str | float | Sequence[str | float] = 1.0,
    seed: str | int | Sequence[str | int] = 1,
    estimates: str | Sequence[str] = "log",
    machine: SweptMachine | Sequence[SweptMachine] = "log",
    window: str | Sequence[str] = "all",
    resample: str | Sequence[str] = "none",
    resources: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    first: int | None = None,
    warmup: str | float = 0,
    kill: bool = True,
    closed: bool = False,
    audit: bool = False,
    out: str | os.PathLike[str] | None = None,
    on: str | None = None,
    retry: bool = False,
    progress: bool = False,
) -> SweepResult:
    """Replay every combination of logs, loads, estimates, seeds and policies; keep every run, and
    resume after interruptions.

    ``qbatch sweep`` does the same.  Every axis takes one value or several.

    Args:
        log: logs, or models that generate one for each seed.
        policies: texts or classes; a class defined in a notebook runs in this process.
        load: divide the gaps between arrivals by this; ``"0.7:1.1:0.05"`` is a range with both
            ends.
        seed: seed of all draws; ``"1:10"`` is a range.  Seeds are replicas; the policies share the
            draws.
        estimates: ``"log"``, ``"perfect"``, ``"f:2"``, ... as in ``replay``.
        machine: machine files, shipped names or numbers of processors; by default each log's own.
        window: spans of submission, ``"FROM..TO"`` in log seconds or ISO times.
        resample: ``"weeks"`` or ``"users"`` resamples the log for each seed.
        resources: side files of nodes, memory, GPUs and partitions by job number (CSV), one for
            each log, in their order.
        first: replay at most this many jobs of each log.
        warmup: seconds, or ``"7d"``, after the first submission in which jobs run but are not
            counted.
        kill: whether a job that reaches its estimate ends there.
        closed: whether users wait for their jobs before they submit the next.
        audit: whether to check the invariants of each schedule.
        out: the directory of the runs; by default a temporary one that is removed with the result.
        on: ``"local"``, ``"local:4"`` processes, or ``"dask=ADDRESS"``.
        retry: whether to repeat runs that have failed.
        progress: whether to show, in a terminal or a notebook, how many runs are done.

    Raises:
        InputError: a log or machine cannot be used, or a log has changed since its runs were kept.
        UsageError: an axis has an unknown value.
        OutputError: ``out`` cannot be written.
    """
    temporary = tempfile.TemporaryDirectory(prefix="qbatch-sweep-")
    names = [_policy_text(each) for each in _listed(policies)]
    options = {
        "log": [_log_text(each, Path(temporary.name)) for each in _listed(log)],
        "policy": names,
        "load": _listed(load),
        "seed": _listed(seed),
        "estimates": _listed(estimates),
        "window": _listed(window),
        "resample": _listed(resample),
        "machine": [
            os.fspath(one) if isinstance(one, os.PathLike) else one for one in _listed(machine)
        ],
        "resources": [os.fspath(one) for one in _listed(resources)],
        "warmup": warmup,
        "kill": kill,
        "closed": closed,
        "audit": audit,
    }
    grid = grid_of(options if first is None else {**options, "first": first}, "sweep")
    is_typed_here = any(name.startswith("__main__:") for name in names)
    if is_typed_here and on is not None and on != "local:1":
        raise UsageError(
            f"on={on}: other processes do not know a class defined here; write it to a module, or "
            "leave on out"
        )
    place = Place(1) if is_typed_here else place_of(on or "local")
    plan = plan_of(grid)
    folder = Path(temporary.name) / "sweep" if out is None else Path(out)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _progress(is_shown=progress) as tell:
        done = run_sweep(plan, folder, place, progress=tell, retry=retry, command=["qbatch.sweep"])
    return SweepResult(done.table, done.kept, done.made, temporary)


@speaks_of_arguments
def read_sweep(path: str | os.PathLike[str]) -> SweepResult:
    """Read the directory of a sweep that :func:`qbatch.sweep` or ``qbatch sweep`` wrote.

    Raises:
        InputError: the path is no sweep, or damaged.
    """
    return SweepResult(read_table(path))


def _listed(given: Any) -> list[Any]:
    is_several = isinstance(given, Iterable) and not isinstance(
        given, str | os.PathLike | Log | DeadlineLog | type
    )
    return list(given) if is_several else [given]


def _log_text(log: SweptLog, folder: Path) -> str:
    """Return the path or model of a log; write a log in memory to a file, for workers to read."""
    if isinstance(log, DeadlineLog):
        if (log.deadline >= 0).any():
            raise UsageError("a sweep takes no deadlines; sweep the log without them: log.log")
        log = log.log
    if not isinstance(log, Log):
        return os.fspath(log)
    name = (
        "".join(
            letter if letter.isalnum() or letter in ".-_" else "-" for letter in Path(log.name).name
        )
        or "log"
    )
    path = folder / f"{name.removesuffix('.gz').removesuffix('.swf')}.swf"
    for again in range(2, 1000):
        if not path.exists():
            break
        path = folder / f"{name}-{again}.swf"
    write_log(log, path)
    return str(path)


def _policy_text(policy: SweptPolicy) -> str:
    if isinstance(policy, str):
        return policy
    if not isinstance(policy, type):
        raise UsageError(
            f"policies: {policy!r} is an object; pass its class or its text, from which every "
            "process can create it"
        )
    return f"{policy.__module__}:{policy.__qualname__}"


@contextmanager
def _progress(*, is_shown: bool) -> Iterator[Progress | None]:
    """Write one line that changes, in a terminal or a notebook."""
    if not is_shown or not (sys.stderr.isatty() or "ipykernel" in sys.modules):
        yield None
        return
    with changing_line("\n") as write:
        yield lambda done, of: write(100 * done // of, f"{done:,} of {of:,} runs")
