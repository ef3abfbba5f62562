"""Reading of an input of a command line: a result's directory, a file of job rows, or a log with
waits."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from qbatch.model.errors import InputError
from qbatch.results.recorded import is_log, recorded_result
from qbatch.results.result import Result, read_bare, read_directory, result_of_rows


def read_result(path: str | Path, *, procs: int | None = None) -> Result:
    """Read a result's directory, a file of job rows, or a log with waits; ``procs`` overrides the
    size of the machine.

    Job rows in a result's directory are read as that part of the result; others stand alone.  A log
    with its own waits is read as the policy ``log`` (:mod:`qbatch.results.recorded`).

    Raises:
        InputError: it is none of these, or damaged, or no job ran, or more than ``procs``
            processors were in use at once.
    """
    source = Path(path)
    if not source.is_dir() and is_log(str(path)):
        return recorded_result(str(path), procs)
    result = (
        read_directory(source) if source.is_dir() else result_of_rows(source) or read_bare(source)
    )
    if not any(schedule.ran.any() for schedule in result.schedules):
        raise InputError(f"{path}: no job ran")
    result = replace(result, path=str(path))
    return result if procs is None else result.sized(procs)


def read_named(text: str, *, procs: int | None = None) -> Result:
    """Read an input named as on a command line: ``PATH``, or ``PATH:POLICY`` for one policy of it.

    Raises:
        InputError: as ``read_result``.
        UsageError: it holds no such policy.
    """
    path, policy = split_name(text)
    return read_result(path, procs=procs).only([] if policy is None else [policy])


def split_name(text: str) -> tuple[str, str | None]:
    """Return the path and the policy in ``PATH`` or ``PATH:POLICY``; both may contain colons
    (``hybrid:depth=2``)."""
    if not os.path.exists(text):
        for place, letter in enumerate(text):
            if letter == ":" and place and os.path.exists(text[:place]):
                return text[:place], text[place + 1 :]
    return text, None
