"""How the runs of a paper are made: in processes that share the cores, with their progress, kept in a folder and taken from it.

A paper declares its *experiments*: what makes the run of a case, and what such a run depends on.  A case is a frozen record; a
run is a record that has its case (``case``) and is small, so that hundreds of them fit anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from qbatch.policies.registry import load_policy
from qbatch.sweeps.code import hash_of, modules_of_policy
from qbatch.sweeps.executors import WORKERS
from qbatch.sweeps.kept import KeptCases, OfCase, Tell, each_made, made_or_kept, silent

Run = TypeVar("Run", bound=OfCase)
Value = TypeVar("Value")


class Study(Protocol):
    """What is run of a paper, made of the options of a command."""

    def facts(self, parts: Sequence[str]) -> dict[str, Any]:
        """Return what it runs on and its options, for the record of the command."""


@dataclass(frozen=True, slots=True)
class Experiment(Generic[Run]):
    """One kind of run: what several are called, the type of one, what makes the run of a case, and the hash of its sources.

    ``sources``: a hash of all that a run depends on, but for its case (:func:`sources_hash`).
    """

    what: str
    run: type[Run]
    simulate: Callable[[Any], Run]
    sources: Callable[[Any], str]

    def kept_in(self, folder: Path) -> KeptCases[Run]:
        """Return the runs that a folder keeps; it is made if only it is missing.

        Raises:
            OutputError: if it cannot be made, or another process is at work there.
        """
        return KeptCases(folder, self.run, lambda case: self.sources(case))


@cache
def sources_hash(module: str, *policies: str, text: str = "") -> str:
    """Return a hash of a module, of what it imports, of some policies by their texts, and of a text.

    The policies are those of the run: a change of one leaves the runs of the others.
    """
    modules = {module}.union(*(modules_of_policy(load_policy(each)) for each in policies))
    return hash_of(f"{policies!r}\n{text}", modules)


@dataclass(frozen=True, slots=True)
class Runner:
    """Makes runs in so many processes; ``folder``: keeps them, and those that it has are not made again.

    ``tell``: takes progress.  ``say``: takes a sentence for the user.
    """

    tell: Tell = silent
    workers: int = WORKERS
    folder: Path | None = None
    say: Callable[[str], None] = lambda _: None

    def runs(self, experiment: Experiment[Run], cases: Sequence[Any]) -> list[Run]:
        """Return the runs of all cases, in their order.

        Each is kept as soon as it is made: a study that was interrupted goes on where it stopped, and after a change of the
        sources only what depends on them is made again.

        Raises:
            OutputError: the folder cannot be made, or another process is at work there.
            QbatchError: a run failed.
        """
        kept = None if self.folder is None else experiment.kept_in(self.folder)
        simulate, what = experiment.simulate, experiment.what
        found = made_or_kept(simulate, cases, what, self.tell, workers=self.workers, kept=kept)
        if kept is not None and kept.read_count:
            self.say(f"{kept.read_count} of {len(cases)} {what} were there already, in {kept.folder}")
        return found

    def made(
        self, what: str, make: Callable[[Any], Value], cases: Sequence[Any], workers: int | None = None
    ) -> list[Value]:
        """Return what is made of each case, in their order; nothing of it is kept.  ``workers``: other than the usual ones.

        Raises:
            QbatchError: one fails.
        """
        self.tell(what, 0, len(cases))
        found: dict[Any, Value] = {}
        for case, value in each_made(make, cases, workers=workers or self.workers):
            found[case] = value
            self.tell(what, len(found), len(cases))
        return [found[case] for case in cases]


ALONE = Runner()
"""Makes runs without a word, and keeps none."""
