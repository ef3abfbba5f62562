"""A sweep from its grid to its table: it skips stored runs, records failures, and resumes after
interruptions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import msgspec

from qbatch.distribution import __version__
from qbatch.model.errors import InputError, OutputError
from qbatch.sweeps.code import program_digest
from qbatch.sweeps.executors import Place, each_outcome
from qbatch.sweeps.grid import Case
from qbatch.sweeps.plan import SweepPlan, check, check_logs, log_facts
from qbatch.sweeps.store import FILE, CachedRun, RunStore
from qbatch.sweeps.table import (
    DOCUMENT,
    SCHEMA,
    SweepTable,
    Written,
    check_parquet,
    has_table,
    read_document,
    write_document,
    write_table,
)

Progress = Callable[[int, int], None]
"""A receiver of progress: the number of finished runs, and their total."""

_PART = 1_000


@dataclass(frozen=True, slots=True)
class SweepDone:
    """The outcome of a call: the sweep; the numbers of earlier, new and failed runs; and the
    seconds that these took."""

    table: SweepTable
    kept: int
    made: int
    failed: int
    seconds: float


def run_sweep(
    plan: SweepPlan,
    folder: Path,
    place: Place,
    *,
    progress: Progress | None = None,
    retry: bool = False,
    command: Sequence[str] = (),
) -> SweepDone:
    """Make all runs of a plan that its folder lacks, and write its table.

    Args:
        plan: the plan.
        folder: the directory of the runs and the table; created if its parent exists.
        place: the executor of the runs.
        progress: called for each run.
        retry: whether to repeat failed runs; those with lost workers are always repeated.
        command: the command line, for the record.

    Raises:
        OutputError: the folder holds something else, or cannot be written; earlier runs stay.
        InputError: a log has changed since earlier runs of the folder.
        QbatchError: a case of the grid cannot run.
    """
    check_parquet()
    _check_folder(folder)
    with RunStore(folder) as store:
        before = _earlier(folder)
        if before is not None:
            check_logs(plan, before.get("logs", []), str(folder))
        count = len(plan)
        missing = _Missing(plan, store, retry=retry)
        first = next(missing, None)
        made, seconds = 0, 0.0
        if first is not None:
            from qbatch.sweeps.run import make_run  # the simulation takes long to load

            context = plan.context()
            check(plan, context, place)
            if before is None:
                write_document(folder, _document(plan, command, Written([], 0, count)), None)
            try:
                for outcome in each_outcome(make_run, chain([first], missing), place, context):
                    run = CachedRun(outcome.value, outcome.error, outcome.seconds, outcome.is_lost)
                    store.put([(plan.key_of(outcome.case), run)])
                    made, seconds = made + 1, seconds + outcome.seconds
                    if progress is not None:
                        progress(missing.stored + made, count)
            finally:
                failed = _written(plan, store, folder, command) if made else 0
        elif before is not None and _is_current(plan, folder, before):
            failed = int(before["failed"])
        else:
            failed = _written(plan, store, folder, command)
    return SweepDone(
        SweepTable(folder, read_document(folder)), missing.stored, made, failed, seconds
    )


def runs_kept(plan: SweepPlan, folder: Path) -> int:
    """Return how many runs of a plan a folder already has."""
    with RunStore(folder) as store:
        return len(plan) - sum(1 for _ in _Missing(plan, store, retry=False))


def _written(plan: SweepPlan, store: RunStore, folder: Path, command: Sequence[str]) -> int:
    """Write the table and the record; return how many runs failed."""
    written = write_table(plan, store, folder)
    write_document(folder, _document(plan, command, written), written.checksum)
    return written.failed


def _is_current(plan: SweepPlan, folder: Path, document: dict[str, Any]) -> bool:
    """Whether the folder holds the complete table and record of the plan, so that nothing must be
    written."""
    return (
        document.get("inputs") == plan.inputs
        and document.get("missing") == 0
        and has_table(folder, document)
    )


def _earlier(folder: Path) -> dict[str, Any] | None:
    """Return the record of an earlier call; None if there is none, or if it is damaged and will be
    written again."""
    try:
        return read_document(folder) if (folder / DOCUMENT).is_file() else None
    except InputError:
        return None


class _Missing(Iterator[Case]):
    """The cases without a run in the store, found on demand; ``stored``: the number of other cases
    so far."""

    def __init__(self, plan: SweepPlan, store: RunStore, *, retry: bool) -> None:
        self.stored = 0
        self._plan, self._store, self._retry = plan, store, retry
        self._found = self._all()

    def __next__(self) -> Case:
        return next(self._found)

    def _all(self) -> Iterator[Case]:
        cases = self._plan.cases()
        while part := list(islice(cases, _PART)):
            keys = [self._plan.key_of(case) for case in part]
            found = self._store.find(keys)
            for case, key in zip(part, keys, strict=True):
                run = found.get(key)
                if run is None or run.is_lost or (self._retry and run.error is not None):
                    yield case
                else:
                    self.stored += 1


def _check_folder(folder: Path) -> None:
    """Refuse a folder that holds other files and no sweep."""
    if not folder.exists() or (folder / FILE).is_file():
        return
    if not folder.is_dir():
        raise OutputError(f"{folder}: is a file; a sweep is a directory")
    others = sorted(entry.name for entry in folder.iterdir())
    if others:
        raise OutputError(
            f"{folder}: holds {others[0]}, which is no part of a sweep; name a new directory"
        )


def _document(plan: SweepPlan, command: Sequence[str], written: Written) -> dict[str, Any]:
    grid = msgspec.to_builtins(plan.grid)
    return {
        "schema": SCHEMA,
        "version": __version__,
        "program": program_digest()[:16],
        "command": list(command),
        "grid": {**grid, "log": list(plan.log_names)},
        "logs": log_facts(plan),
        "inputs": plan.inputs,
        "runs": len(plan),
        "missing": written.missing,
        "failed": written.failed,
        "failures": written.failures,
    }
