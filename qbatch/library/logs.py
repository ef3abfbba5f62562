"""Logs: read, written, generated from models, transformed step by step."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from typing import Any

from qbatch.library.arguments import speaks_of_arguments
from qbatch.model.errors import UsageError, suggestion
from qbatch.workloads import Log
from qbatch.workloads.log import Column
from qbatch.workloads.models import MODELS
from qbatch.workloads.transform import DeadlineLog, read_steps, sized

LogLike = str | os.PathLike[str] | Log | DeadlineLog
"""A log: its path, or one that has been read or made."""


@speaks_of_arguments
def read_log(path: str | os.PathLike[str], *, lenient: bool = False) -> Log:
    """Read a workload log: the Standard Workload Format, or five columns ``submit run procs [estimate [user]]``.

    Args:
        path: a file, plain, gzip or xz.
        lenient: skip rows that cannot be read, and count them.

    Returns:
        The log: ``len(log)`` rows by (submit, job number, line); ``log["submit"]`` and the other 17 fields of SWF as NumPy
        arrays, times in seconds of the log's own clock, memory in KB a processor, -1 is unknown; ``log.header``, ``log.notes``.

    Raises:
        InputError: it cannot be read; the message names the line and the reason.
    """
    from qbatch.workloads.swf import read_log as read

    return read(os.fspath(path), lenient=lenient)


@speaks_of_arguments
def write_log(log: Log | DeadlineLog, path: str | os.PathLike[str], *, deadlines: str | os.PathLike[str] | None = None) -> None:
    """Write a log as SWF; a name that ends in ``.gz`` is compressed.

    Args:
        deadlines: the side file (CSV) for the deadlines of jobs, which SWF has no field for.

    Raises:
        OutputError: it cannot be written; nothing is left there.
        UsageError: jobs have deadlines and ``deadlines`` is missing.
    """
    from qbatch.results.output import log_file, whole_file
    from qbatch.workloads import write_log as write
    from qbatch.workloads.transform import write_deadlines

    whole = log_of(log)
    count = int((whole.deadline >= 0).sum())
    if count and deadlines is None:
        raise UsageError(f"{count:,} jobs have deadlines, which SWF has no field for; add deadlines=FILE")
    with log_file(os.fspath(path)) as file:
        write(file, whole.log.header, whole.log.columns)
    if deadlines is not None:
        with whole_file(os.fspath(deadlines)) as file:
            write_deadlines(file, whole)


def log_of(given: LogLike) -> DeadlineLog:
    """Return a log with its deadlines, read if it is a path; without deadlines none of its jobs has one.

    Raises:
        InputError: it cannot be read.
    """
    if isinstance(given, DeadlineLog):
        return given
    return DeadlineLog.without(given if isinstance(given, Log) else read_log(given))


@speaks_of_arguments
def generate(model: str, **parameters: Any) -> Log:
    """Return a workload log that a model generates: same parameters, same log, on every machine.

    Args:
        model: ``"lublin"``, the model of Lublin and Feitelson (2003): ``jobs`` (needed), ``procs=128``, ``types``, ``seed=1``,
            ``load``, ``interarrival`` (seconds), ``estimates="exact"`` or ``"tsafrir"``, ``estimate_max`` (seconds), ``ulow``,
            ``umed``, ``uhi``, ``uprob`` (``qbatch generate lublin``);
            ``"origin2000"``, a month of NCSA's Origin 2000 (Chiang and Vernon 2001): ``month`` (needed, ``"1999-10"`` to
            ``"2000-03"``), ``seed=1``, ``warmup_days=7``;
            ``"plain"``, the small generator of ``qbatch trace generate``: ``jobs``, ``procs`` (needed), ``load=0.85``,
            ``seed=1``, ``accuracy=0.4``, ``campaigns=0.0``.

    Raises:
        UsageError: there is no such model or parameter, one is missing, or a value is out of range.
    """
    if model not in MODELS:
        raise UsageError(f"there is no model {model!r}{suggestion(model, MODELS)} (known: {', '.join(MODELS)})")
    make = MODELS[model]()
    known = inspect.signature(make).parameters
    for name in parameters:
        if name not in known:
            raise UsageError(f"{model}: {name!r} is no parameter of it{suggestion(name, known)} ({', '.join(known)})")
    for name, each in known.items():
        if each.default is each.empty and name not in parameters:
            raise UsageError(f"{model}: {name} is missing")
    return make(**parameters)


@speaks_of_arguments
def transform(log: LogLike, *steps: str, seed: int = 0, procs: int | None = None) -> DeadlineLog:
    """Return a log made from a log, step by step, from left to right.

    Args:
        steps: ``"take:first=1000,skip=0"``, ``"duplicate:load=1.4"``, ``"expand:load=1.2"``, ``"estimates:model=tsafrir"``,
            ``"deadlines:stringency=0.2,share=0.8"``, ``"artificial:factor=5"`` (``qbatch transform --list``).
        seed: of all draws; same seed, same log.
        procs: processors of the machine, else those of the header.

    Returns:
        The log (``.log``) and the deadlines of its jobs (``.deadline``: whole seconds of its clock, -1 for none); ``replay`` and
        ``transform`` take it as it is.

    Raises:
        InputError: the log cannot be read, or nobody says how large its machine is.
        UsageError: there is no such step or parameter, or a step stands in the wrong place.
    """
    from qbatch.replay.prepare import choose_procs
    from qbatch.replay.reference import easy_responses

    made = log_of(log)
    if not (made.deadline >= 0).any():
        made = DeadlineLog.without(sized(made.log, choose_procs(made.log, procs)))
    return transformed(made, read_steps(list(steps)), seed, easy_responses)


def transformed(
    made: DeadlineLog, steps: Sequence[tuple[Any, dict[str, Any]]], seed: int, reference: Callable[[Log], Column]
) -> DeadlineLog:
    """Return a log after the steps; ``reference`` gives the responses of its jobs under EASY, for ``deadlines``."""
    for step, given in steps:
        made = step.make(made, given, seed, reference)
    return made
