"""A folder that keeps runs, so that a study can go on where it stopped and only what has changed is run again.

A run is taken for the same while the month, the seed, the policy, the machine and every source file that has a part in it are
the same, comments apart: a change of one policy leaves the runs of the others.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import msgspec

import qbatch
from qbatch.model.errors import OutputError
from qbatch.papers import origin2000_runs
from qbatch.papers.origin2000_runs import POLICIES, Case, RunFigures, machine_of_paper
from qbatch.policies import load_policy
from qbatch.results.output import whole_file

_ROOT = Path(qbatch.__file__).parent
_REGISTRY = "qbatch.policies.registry"
"""It imports every policy, each where it is made; only the policy that is run counts."""


class Kept:
    """Runs in a folder, a file each."""

    def __init__(self, folder: Path) -> None:
        """Keep runs in this folder; it is made if only it is missing.

        Raises:
            OutputError: if it cannot be made.
        """
        self.folder = folder
        self.read_count = 0
        """How many runs were found there."""
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise OutputError(f"{folder}: cannot be made ({error.strerror or error})") from error

    def read(self, case: Case) -> RunFigures | None:
        """Return the run that is kept of a case; None if there is none, or if it was made by other sources."""
        try:
            record = msgspec.json.decode(self._path(case).read_bytes(), type=_Record)
        except (OSError, msgspec.DecodeError):
            return None
        if record.sources != sources_hash(case.policy) or record.run.case != case:
            return None
        self.read_count += 1
        return record.run

    def write(self, one: RunFigures) -> None:
        """Keep a run in place of what was kept of its case.

        Raises:
            OutputError: if it cannot be written.
        """
        with whole_file(self._path(one.case)) as file:
            file.write(msgspec.json.encode(_Record(sources_hash(one.case.policy), one)))

    def _path(self, case: Case) -> Path:
        policy = re.sub(r"[^\w*&.=-]+", "_", case.policy)
        days = "" if case.days is None else f"-{case.days}days"
        return self.folder / f"{case.month}{days}-seed{case.seed}-{policy}.json"


class _Record(msgspec.Struct):
    sources: str
    run: RunFigures


@lru_cache(maxsize=len(POLICIES))
def sources_hash(policy: str) -> str:
    """Return a hash of all that a run under a policy of the paper depends on, but for month and seed."""
    asked = POLICIES[policy]
    made = load_policy(asked)
    parts = {type(made).__module__, *(type(part).__module__ for part in vars(made).values())}
    modules = imported({origin2000_runs.__name__} | {name for name in parts if name.startswith("qbatch.")})
    found = hashlib.sha256(f"{asked}\n{machine_of_paper()!r}\n".encode())
    for name in sorted(modules):
        found.update(f"{name}\n{_code(name)}\n".encode())
    return found.hexdigest()


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
