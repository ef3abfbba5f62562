"""Cases that are made once: what a study of a paper keeps in a folder, and goes on from."""

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
"""Told of progress: what is being run, how many runs of it are done, how many there are."""


def silent(_what: str, _done: int, _of: int) -> None:
    """Take progress and tell nobody."""


class OfCase(Protocol):
    """A run that says what it was asked for."""

    @property
    def case(self) -> Any: ...


CaseRun = TypeVar("CaseRun", bound=OfCase)
Value = TypeVar("Value")


class KeptCases(Generic[CaseRun]):
    """Runs of one type in the store of a folder, by their case and the hash of the sources that have a part in it."""

    def __init__(self, folder: Path, run: type[CaseRun], sources_of: Callable[[Any], str]) -> None:
        """Keep runs in this folder; it is made if only it is missing.

        Args:
            folder: where.
            run: the type of a run.
            sources_of: gives for a case a hash of all that its run depends on, but for the case itself.

        Raises:
            OutputError: if it cannot be made, or another process is at work there.
        """
        self.folder, self.run, self.sources_of = folder, run, sources_of
        self.store = RunStore(folder)
        self.read_count = 0
        """How many runs were found there."""

    def key_of(self, case: Any) -> str:
        """Return the key of a case."""
        return hashlib.sha256(f"{case!r}\n{self.sources_of(case)}".encode()).hexdigest()

    def read(self, cases: Sequence[Any]) -> dict[Any, CaseRun]:
        """Return the runs that are kept of some cases, made by the sources that there are."""
        keys = {self.key_of(case): case for case in cases}
        there = self.store.find(list(keys))
        found = {keys[key]: msgspec.convert(kept.value, self.run) for key, kept in there.items() if kept.error is None}
        self.read_count += len(found)
        return found

    def write(self, one: CaseRun) -> None:
        """Keep a run in place of what was kept of its case."""
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
    """Return the runs of all cases, in their order; ``workers`` processes share them, with one everything runs in this one.

    Runs that ``kept`` has are not made again; those that are made are kept there one by one, so that a study that was
    interrupted goes on where it stopped.  ``what``: the name under which progress is told.

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
    """Give each case and what is made of it, as they are made.

    Raises:
        QbatchError: a run failed.
    """
    for outcome in each_outcome(_made, cases, Place(workers if len(cases) > 1 else 1), context=make):
        if outcome.error is not None:
            raise QbatchError(f"{outcome.case}: {outcome.error}")
        yield outcome.case, outcome.value


def _made(make: Callable[[Any], Value], case: Any) -> Value:
    return make(case)
