"""Functions that read, write, generate and transform logs."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from qbatch.library.arguments import speaks_of_arguments
from qbatch.model.errors import UsageError, suggestion
from qbatch.workloads import Log
from qbatch.workloads.generate import ALL_MODELS
from qbatch.workloads.log import FIELDS, Column
from qbatch.workloads.resource_rows import side_file_of, side_for
from qbatch.workloads.transform import DeadlineLog, read_steps, sized, with_origin

LogLike = str | os.PathLike[str] | Log | DeadlineLog
"""A log: its path, or a log object."""

Frame = Any
"""A table with named columns: a data frame of pandas or polars, an Arrow table, or a dictionary of
arrays."""


@speaks_of_arguments
def read_log(
    path: str | os.PathLike[str] | Frame,
    *,
    lenient: bool = False,
    procs: int | None = None,
    name: str = "frame",
    map: str | os.PathLike[str] | Mapping[str, Any] | None = None,  # noqa: A002 - as --map
    resources: str | os.PathLike[str] | None = None,
) -> Log:
    """Read a workload log: the Standard Workload Format, five columns ``submit run procs [estimate
    [user]]``, a data frame, or with ``map`` a table of jobs as a cluster has it.

    Args:
        path: a file, plain, gzip or xz; or a table: a data frame of pandas or polars, an Arrow
            table, a dictionary of arrays. Its columns have the names of SWF's fields
            (``log["submit"]``), or ``procs``, ``estimate`` and ``job_id``; ``submit``, ``run`` and
            the processors are needed.
        lenient: skip rows that cannot be read, and count them.
        procs: processors of the machine, for a table, which has no header.
        name: of the log, for a table.
        map: what the columns of a table mean, as in ``qbatch import table --map``: the name of a
            map (``"pm100"``), the path of a map, or its keys as a dictionary. The table is then a
            data frame, or a file in CSV, JSON or Parquet. The log then knows what its jobs ask for
            (nodes, memory, GPUs, partitions), as far as the table says it.
        resources: a side file of what the jobs ask for by job number (CSV); :func:`replay`,
            :func:`transform` and :func:`write_log` then use it.

    Returns:
        The log: ``len(log)`` rows by (submit, job number, line).  ``log["submit"]`` and the other
            17 fields of SWF are NumPy
        arrays: times in seconds of the log's own clock, memory in KB per processor, -1 for unknown.
        ``log.header`` and ``log.notes`` hold the rest.

    Raises:
        InputError: it cannot be read; the message names the line and the reason.
    """
    if map is not None:
        if resources is not None:
            raise UsageError("map and resources both say what the jobs ask for; leave one out")
        return _read_table(path, map, procs, name)
    read = _read(path, lenient, procs, name)
    if resources is None:
        return read
    from qbatch.workloads.resource_rows import read_resources
    from qbatch.workloads.side_file import load_side_file

    side = load_side_file(os.fspath(resources))
    read_resources(side, read)  # refuses what a replay would refuse
    return replace(read, side=side)


def _read(path: str | os.PathLike[str] | Frame, lenient: bool, procs: int | None, name: str) -> Log:
    if not isinstance(path, str | os.PathLike):
        from qbatch.workloads.checkpoints import without_parts
        from qbatch.workloads.log import in_order, log_of_frame

        return in_order(without_parts(log_of_frame(path, procs, name)))
    from qbatch.workloads.swf import read_log as read

    return read(os.fspath(path), lenient=lenient)


def _read_table(
    given: str | os.PathLike[str] | Frame,
    map_given: str | os.PathLike[str] | Mapping[str, Any],
    procs: int | None,
    name: str,
) -> Log:
    from qbatch.workloads.accounting.record import ImportCounts
    from qbatch.workloads.tables.importing import TableOptions, import_tables
    from qbatch.workloads.tables.reading import open_table, table_of_frame
    from qbatch.workloads.tables.table_map import read_map

    table_map, counts = read_map(map_given), ImportCounts()
    if isinstance(given, str | os.PathLike):
        name = os.fspath(given)
        table = open_table(name, table_map, counts)
    else:
        table = table_of_frame(given, name)
    options = TableOptions(machine_procs=procs)
    return import_tables([table], table_map, options, counts).in_memory(name)


@speaks_of_arguments
def write_log(
    log: Log | DeadlineLog,
    path: str | os.PathLike[str],
    *,
    deadlines: str | os.PathLike[str] | None = None,
    resources: str | os.PathLike[str] | None = None,
) -> None:
    """Write a log as SWF; a name that ends in ``.gz`` is compressed.

    Args:
        deadlines: the side file (CSV) for the deadlines of jobs, for which SWF has no field.
        resources: the side file (CSV) for what jobs ask for beyond processors, if the log knows it;
            ``month.resources.csv`` next to ``month.swf`` if none is named.

    Raises:
        OutputError: the file cannot be written; no partial file is left.
        UsageError: jobs have deadlines and ``deadlines`` is missing, or ``resources`` is given for
            a log that knows no requests.
    """
    from qbatch.results.output import log_file, whole_file
    from qbatch.workloads import write_log as write
    from qbatch.workloads.transform import write_deadlines

    whole = log_of(log)
    count = int((whole.deadline >= 0).sum())
    if count and deadlines is None:
        raise UsageError(
            f"{count:,} jobs have deadlines, which SWF has no field for; add deadlines=FILE"
        )
    side = whole.log.side
    if resources is not None and side is None:
        raise UsageError(
            f"resources {os.fspath(resources)}: the log does not know what its jobs ask for; leave "
            "it out, or read the log with resources=FILE"
        )
    place = side_file_of(os.fspath(path)) if resources is None else os.fspath(resources)
    with ExitStack() as files:
        # All files get their names at the end, or none does.
        if side is not None:
            files.enter_context(whole_file(place)).write(side.content)
        if deadlines is not None:
            write_deadlines(files.enter_context(whole_file(os.fspath(deadlines))), whole)
        write(files.enter_context(log_file(os.fspath(path))), whole.log.header, whole.log.columns)


def log_of(given: LogLike) -> DeadlineLog:
    """Return a log with its deadlines, after reading it if it is a path; a log without deadlines
    gets none.

    Raises:
        InputError: it cannot be read.
    """
    if isinstance(given, DeadlineLog):
        return given
    return DeadlineLog.without(given if isinstance(given, Log) else read_log(given))


@speaks_of_arguments
def generate(model: str, **parameters: Any) -> Log:
    """Return a workload log generated by a model: the same parameters give the same log on every
    machine.

    Args:
        model: ``"lublin"``, the model of Lublin and Feitelson (2003): ``jobs`` (required),
            ``procs=128``, ``types``, ``seed=1``, ``load``, ``interarrival`` (seconds),
            ``estimates="exact"`` or ``"tsafrir"``, ``estimate_max`` (seconds), ``ulow``, ``umed``,
            ``uhi``, ``uprob`` (``qbatch generate lublin``). ``"origin2000"``, a month of NCSA's
            Origin 2000 (Chiang and Vernon 2001): ``month`` (required, ``"1999-10"`` to
            ``"2000-03"``), ``seed=1``, ``warmup_days=7``. ``"plain"``, the small generator of
            ``qbatch trace generate``: ``jobs``, ``procs`` (required), ``load=0.85``, ``seed=1``,
            ``accuracy=0.4``, ``campaigns=0.0``.

    Raises:
        UsageError: there is no such model or parameter, one is missing, or a value is out of range.
    """
    if model not in ALL_MODELS:
        raise UsageError(
            f"there is no model {model!r}{suggestion(model, ALL_MODELS)} (known: {', '.join(ALL_MODELS)})"
        )
    make = ALL_MODELS[model]()
    known = inspect.signature(make).parameters
    for name in parameters:
        if name not in known:
            raise UsageError(
                f"{model}: {name!r} is no parameter of it{suggestion(name, known)} "
                f"({', '.join(known)})"
            )
    for name, each in known.items():
        if each.default is each.empty and name not in parameters:
            raise UsageError(f"{model}: {name} is missing")
    return make(**parameters)


@speaks_of_arguments
def transform(log: LogLike, *steps: str, seed: int = 0, procs: int | None = None) -> DeadlineLog:
    """Return a log after transforming it step by step, from left to right.

    Args:
        steps: ``"take:first=1000,skip=0"``, ``"duplicate:load=1.4"``, ``"expand:load=1.2"``,
            ``"estimates:model=tsafrir"``, ``"deadlines:stringency=0.2,share=0.8"``,
            ``"artificial:factor=5"`` (``qbatch transform --list``).
        seed: seed of all draws; the same seed gives the same log.
        procs: processors of the machine, instead of those of the header.

    Returns:
        The log (``.log``) and the deadlines of its jobs (``.deadline``: whole seconds of its clock,
        -1 for none); ``replay`` and ``transform`` accept it.

    Raises:
        InputError: the log cannot be read, or the size of its machine is unknown.
        UsageError: a step or parameter is unknown, or a step is in the wrong place.
    """
    from qbatch.simulation.drivers import easy_responses
    from qbatch.simulation.prepare import choose_procs

    made = log_of(log)
    if not (made.deadline >= 0).any():
        made = DeadlineLog.without(sized(made.log, choose_procs(made.log, procs)))
    return transformed(made, read_steps(list(steps)), seed, easy_responses)


def transformed(
    made: DeadlineLog,
    steps: Sequence[tuple[Any, dict[str, Any]]],
    seed: int,
    reference: Callable[[Log], Column],
) -> DeadlineLog:
    """Return a log after the steps, its side file with it; ``reference`` returns the responses of
    its jobs under EASY, for ``deadlines``."""
    side = made.log.side
    if side is not None:
        made = replace(made, log=with_origin(made.log))
    for step, given in steps:
        made = step.make(made, given, seed, reference)
    if side is None:
        return made
    fields = {name: made.log[name] for name in FIELDS}
    return replace(made, log=replace(made.log, columns=fields, side=side_for(made.log, side)))
