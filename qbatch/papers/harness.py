"""The runs of a paper: several processes make them, report progress, and take from a folder those
that it already holds.

A paper declares its *experiments*: what makes the run of a case, and what such a run depends on.  A
case is a frozen record; a run is a record that has its case (``case``) and is small, so that
hundreds of them fit anywhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from qbatch.model.errors import QbatchError
from qbatch.policies.registry import load_policy
from qbatch.sweeps.code import hash_of, modules_of_policy
from qbatch.sweeps.executors import WORKERS, Place, each_outcome
from qbatch.sweeps.store import CachedRun, RunStore


class RunOfCase(Protocol):
    """A run that has its case."""

    @property
    def case(self) -> Any: ...


Run = TypeVar("Run", bound=RunOfCase)
Value = TypeVar("Value")

Progress = Callable[[str, int, int], None]
"""A receiver of progress: the name of the current work, the number of its finished runs, their
total."""


def silent(_what: str, _done: int, _of: int) -> None:
    """Ignore progress."""


class Study(Protocol):
    """What is run of a paper, made of the options of a command."""

    def facts(self, parts: Sequence[str]) -> dict[str, Any]:
        """Return what it runs on and its options, for the record of the command."""


@dataclass(frozen=True, slots=True)
class Experiment(Generic[Run]):
    """One kind of run: the name of several, the type of one, what makes the run of a case, and the
    hash of its sources.

    ``sources``: a hash of everything on which a run depends, without its case
    (:func:`sources_hash`).
    """

    what: str
    run: type[Run]
    simulate: Callable[[Any], Run]
    sources: Callable[[Any], str]


@cache
def sources_hash(module: str, *policies: str, text: str = "") -> str:
    """Return a hash of a module, of what it imports, of some policies by their texts, and of a
    text.

    The policies are those of the run: a change of one leaves the runs of the others.
    """
    modules = {module}.union(*(modules_of_policy(load_policy(each)) for each in policies))
    return hash_of(f"{policies!r}\n{text}", modules)


class CachedRuns(Generic[Run]):
    """The runs of an experiment in the store of a folder, by their case and the hash of the sources
    that made them."""

    def __init__(self, experiment: Experiment[Run], folder: Path) -> None:
        """Open the store of a folder, which is created if its parent exists.

        Raises:
            OutputError: the folder cannot be created, or another process uses it.
        """
        self.experiment = experiment
        self.store = RunStore(folder)

    def key_of(self, case: Any) -> str:
        """Return the key of a case."""
        return hashlib.sha256(f"{case!r}\n{self.experiment.sources(case)}".encode()).hexdigest()

    def read(self, cases: Sequence[Any]) -> dict[Any, Run]:
        """Return the stored runs of some cases, if the current sources made them."""
        keys = {self.key_of(case): case for case in cases}
        stored = self.store.find(list(keys)).items()
        return {
            keys[key]: msgspec.convert(one.value, self.experiment.run)
            for key, one in stored
            if one.error is None
        }

    def write(self, run: Run) -> None:
        """Store a run in place of an earlier one of its case."""
        self.store.put([(self.key_of(run.case), CachedRun(run))])


@dataclass(frozen=True, slots=True)
class Runner:
    """Makes runs in ``workers`` processes (1: this one); ``folder``: stores them, and its runs are
    not repeated.

    ``progress``: receives progress.  ``say``: receives a sentence for the user.
    """

    progress: Progress = silent
    workers: int = WORKERS
    folder: Path | None = None
    say: Callable[[str], None] = lambda _: None

    def runs(self, experiment: Experiment[Run], cases: Sequence[Any]) -> list[Run]:
        """Return the runs of all cases, in their order.

        Each run is stored when it is finished: an interrupted study resumes where it stopped, and
        after a change of the sources only the runs that depend on them are repeated.

        Raises:
            OutputError: the folder cannot be created, or another process uses it.
            QbatchError: a run failed.
        """
        if self.folder is None:
            return self.made(experiment.what, experiment.simulate, cases)
        cached = CachedRuns(experiment, self.folder)
        found = cached.read(cases)
        count = len(found)
        runs = self._made(
            experiment.what, experiment.simulate, cases, found, cached.write, self.workers
        )
        if count:
            self.say(
                f"{count} of {len(cases)} {experiment.what} were there already, in {self.folder}"
            )
        return runs

    def made(
        self,
        what: str,
        make: Callable[[Any], Value],
        cases: Sequence[Any],
        workers: int | None = None,
    ) -> list[Value]:
        """Return what is made of each case, in their order, and store nothing; ``workers``: another
        number of processes.

        Raises:
            QbatchError: a run failed.
        """
        return self._made(what, make, cases, {}, lambda _: None, workers or self.workers)

    def _made(
        self,
        what: str,
        make: Callable[[Any], Value],
        cases: Sequence[Any],
        found: dict[Any, Value],
        store: Callable[[Value], None],
        workers: int,
    ) -> list[Value]:
        """Make, store and report the values of those cases that are not found yet; return those of
        all cases."""
        self.progress(what, len(found), len(cases))
        missing = [case for case in cases if case not in found]
        for outcome in each_outcome(
            _made_of, missing, Place(workers if len(missing) > 1 else 1), context=make
        ):
            if outcome.error is not None:
                raise QbatchError(f"{outcome.case}: {outcome.error}")
            found[outcome.case] = outcome.value
            store(outcome.value)
            self.progress(what, len(found), len(cases))
        return [found[case] for case in cases]


def _made_of(make: Callable[[Any], Value], case: Any) -> Value:
    return make(case)


ALONE = Runner()
"""Makes runs without a word, and stores none."""
