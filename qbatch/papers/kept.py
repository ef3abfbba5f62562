"""A folder that keeps runs, so that a study can go on where it stopped and only what has changed is run again.

A run is taken for the same while what it was asked for and every source file that has a part in it are the same, comments apart.
"""

from __future__ import annotations

import ast
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from qbatch.model.errors import OutputError
from qbatch.papers.processes import WORKERS, each_made
from qbatch.papers.record import Tell, silent
from qbatch.results.output import whole_file

_ROOT = Path(__file__).parents[1]
_REGISTRY = "qbatch.policies.registry"
"""It imports every policy, each where it is made; only the policy that is run counts."""

Run = TypeVar("Run")


class Folder(Generic[Run]):
    """Runs of one type in a folder, a file each, with the hash of what each depends on."""

    def __init__(self, folder: Path, run: type[Run]) -> None:
        """Keep runs in this folder; it is made if only it is missing.

        Raises:
            OutputError: if it cannot be made.
        """
        self.folder = folder
        self.run = run
        self.read_count = 0
        """How many runs were found there."""
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise OutputError(f"{folder}: cannot be made ({error.strerror or error})") from error

    def find(self, name: str, sources: str) -> Run | None:
        """Return the run of a name; None if there is none, or if it was made by other sources."""
        try:
            record = msgspec.json.decode((self.folder / name).read_bytes(), type=_Record)
            found = msgspec.convert(record.run, self.run) if record.sources == sources else None
        except (OSError, msgspec.DecodeError, msgspec.ValidationError):
            return None
        return found

    def put(self, name: str, sources: str, run: Run) -> None:
        """Keep a run in place of what was kept under its name.

        Raises:
            OutputError: if it cannot be written.
        """
        with whole_file(self.folder / name) as file:
            file.write(msgspec.json.encode(_Record(sources, run)))


class _Record(msgspec.Struct):
    sources: str
    run: Any


class OfCase(Protocol):
    """A run that says what it was asked for."""

    @property
    def case(self) -> Any: ...


CaseRun = TypeVar("CaseRun", bound=OfCase)


class CaseFolder(Folder[CaseRun], ABC):
    """Runs of cases in a folder, a file each."""

    @staticmethod
    @abstractmethod
    def name_of(case: Any) -> str:
        """Return the name of the file of a case."""

    @staticmethod
    @abstractmethod
    def sources_of(case: Any) -> str:
        """Return a hash of all that a run depends on, but for what the name of its file says."""

    def read(self, case: Any) -> CaseRun | None:
        """Return the run that is kept of a case; None if there is none, or if it was made by other sources."""
        found = self.find(self.name_of(case), self.sources_of(case))
        if found is None or found.case != case:
            return None
        self.read_count += 1
        return found

    def write(self, one: CaseRun) -> None:
        """Keep a run in place of what was kept of its case."""
        self.put(self.name_of(one.case), self.sources_of(one.case), one)


def made_or_kept(
    make: Callable[[Any], CaseRun],
    cases: Sequence[Any],
    what: str,
    tell: Tell = silent,
    *,
    workers: int = WORKERS,
    kept: CaseFolder[CaseRun] | None = None,
) -> list[CaseRun]:
    """Return the runs of all cases, in their order; ``workers`` processes share them, with one everything runs in this one.

    Runs that ``kept`` has are not made again; those that are made are kept there one by one, so that a study that was
    interrupted goes on where it stopped.  ``what``: the name under which progress is told.
    """
    results: dict[Any, CaseRun] = {}
    for case in cases:
        if kept is not None and (found := kept.read(case)) is not None:
            results[case] = found
    tell(what, len(results), len(cases))
    for one in each_made(make, [case for case in cases if case not in results], workers):
        results[one.case] = one
        if kept is not None:
            kept.write(one)
        tell(what, len(results), len(cases))
    return [results[case] for case in cases]


def hash_of(asked: str, modules: Iterable[str]) -> str:
    """Return a hash of what was asked for and of these modules of qbatch with all that they import."""
    found = hashlib.sha256(f"{asked}\n".encode())
    for name in sorted(imported(set(modules))):
        found.update(f"{name}\n{_code(name)}\n".encode())
    return found.hexdigest()


def modules_of_policy(policy: Any) -> set[str]:
    """Return the modules of qbatch that a policy and its parts come from."""
    parts = {type(policy).__module__, *(type(part).__module__ for part in vars(policy).values())}
    return {name for name in parts if name.startswith("qbatch.")}


@cache
def _code(name: str) -> str:
    """Return what a module does, as text: comments and docstrings have no part in it."""
    tree = ast.parse(_file(name).read_bytes())
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            node.body = [one for one in node.body if not _is_text(one)]
    return ast.dump(tree)


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def imported(names: set[str]) -> set[str]:
    """Return these modules of qbatch and all that they import, one through the other."""
    known: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in known or not _file(name).is_file():
            continue
        known.add(name)
        waiting.extend(_imports(name))
        waiting.extend(name[:place] for place, letter in enumerate(name) if letter == ".")
    return known


def _imports(name: str) -> Iterator[str]:
    if name == "qbatch":  # what the package exports is loaded by who asks for it
        return
    tree = ast.parse(_file(name).read_bytes())
    for node in tree.body if name == _REGISTRY else ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("qbatch"):
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("qbatch"))


def _file(name: str) -> Path:
    inside = _ROOT.joinpath(*name.split(".")[1:])
    return inside / "__init__.py" if inside.is_dir() else inside.with_suffix(".py")
