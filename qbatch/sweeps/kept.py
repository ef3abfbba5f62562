"""Cases that are made once: a study of a paper keeps them in a folder and resumes from there."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from qbatch.model.errors import QbatchError
from qbatch.sweeps.executors import WORKERS, Place, each_outcome
from qbatch.sweeps.store import Kept, RunStore

Tell = Callable[[str, int, int], None]
"""A receiver of progress: the name of the current work, the number of its finished runs, their total."""


def silent(_what: str, _done: int, _of: int) -> None:
    """Ignore progress."""


class OfCase(Protocol):
    """A run that knows its case."""

    @property
    def case(self) -> Any: ...


CaseRun = TypeVar("CaseRun", bound=OfCase)
Value = TypeVar("Value")


class KeptCases(Generic[CaseRun]):
    """Runs of one type in the store of a folder, by their case and the hash of the sources that take part in it."""

    def __init__(self, folder: Path, run: type[CaseRun], sources_of: Callable[[Any], str]) -> None:
        """Keep runs in this folder; it is created if its parent exists.

        Args:
            folder: the folder.
            run: the type of a run.
            sources_of: returns for a case a hash of all that its run depends on, without the case itself.

        Raises:
            OutputError: the folder cannot be created, or another process uses it.
        """
        self.folder, self.run, self.sources_of = folder, run, sources_of
        self.store = RunStore(folder)
        self.read_count = 0
        """Number of runs found in the folder."""

    def key_of(self, case: Any) -> str:
        """Return the key of a case."""
        return hashlib.sha256(f"{case!r}\n{self.sources_of(case)}".encode()).hexdigest()

    def read(self, cases: Sequence[Any]) -> dict[Any, CaseRun]:
        """Return the kept runs of some cases, if the current sources made them."""
        keys = {self.key_of(case): case for case in cases}
        there = self.store.find(list(keys))
        found = {keys[key]: msgspec.convert(kept.value, self.run) for key, kept in there.items() if kept.error is None}
        self.read_count += len(found)
        return found

    def write(self, one: CaseRun) -> None:
        """Keep a run in place of an earlier one of its case."""
        self.store.put([(self.key_of(one.case), Kept(one))])


def made_or_kept(
    make: Callable[[Any], CaseRun],
    cases: Sequence[Any],
    what: str,
    tell: Tell = silent,
    *,
    workers: int = WORKERS,
    kept: KeptCases[CaseRun] | None = None,
) -> list[CaseRun]:
    """Return the runs of all cases, in their order; ``workers`` processes share them, and one worker is this process.

    Runs in ``kept`` are not repeated.  New runs are kept one by one, so that an interrupted study resumes where it stopped.
    ``what``: the name of the work in reports of progress.

    Raises:
        QbatchError: a run failed.
    """
    results: dict[Any, CaseRun] = {} if kept is None else kept.read(cases)
    tell(what, len(results), len(cases))
    for case, one in each_made(make, [case for case in cases if case not in results], workers=workers):
        results[case] = one
        if kept is not None:
            kept.write(one)
        tell(what, len(results), len(cases))
    return [results[case] for case in cases]


def each_made(
    make: Callable[[Any], Value], cases: Sequence[Any], *, workers: int = WORKERS
) -> Iterator[tuple[Any, Value]]:
    """Yield each case and its value, in the order of completion.

    Raises:
        QbatchError: a run failed.
    """
    for outcome in each_outcome(_made, cases, Place(workers if len(cases) > 1 else 1), context=make):
        if outcome.error is not None:
            raise QbatchError(f"{outcome.case}: {outcome.error}")
        yield outcome.case, outcome.value


def _made(make: Callable[[Any], Value], case: Any) -> Value:
    return make(case)
