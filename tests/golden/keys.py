"""What the schedules of a policy depend on: the sources of all modules that its runs import.

The file ``keys.txt`` holds a key for each policy: a hash of those sources, without comments and
docstrings, and of the versions of Python, NumPy and Numba.  With them the first schedules of its
cases were last made, and were those of the table.  As long as the key is the same, making them
again would show nothing new.
"""

from __future__ import annotations

import ast
import hashlib
import platform
from functools import cache
from pathlib import Path
from typing import Any

import numba
import numpy as np

from qbatch.policies import load_policy

ROOT = Path(__file__).resolve().parents[2]
FILE = Path(__file__).parent / "keys.txt"
BEGIN = "tests.golden.cases"
"""The module that makes the schedules."""

NOT_FOLLOWED = frozenset({"qbatch", "tests.harness"})
"""Modules of which the imports do not count: the public names are loaded when they are used, and of
the harness only the folder of the logs is used here."""


def read_keys() -> dict[str, str]:
    """Return the keys of the file by policy."""
    lines = FILE.read_text(encoding="utf-8").splitlines() if FILE.exists() else []
    return dict(reversed(line.split(" ", 1)) for line in lines)  # type: ignore[misc]


def write_keys(keys: dict[str, str]) -> None:
    """Write the file of keys."""
    FILE.write_text("".join(f"{key} {name}\n" for name, key in keys.items()), encoding="utf-8")


def key_of(policy: str) -> str:
    """Return the key of a policy as it is now."""
    versions = f"{platform.python_version_tuple()[:2]} {np.__version__} {numba.__version__}"
    parts = [versions, *(f"{name} {_digest(name)}" for name in sorted(modules_of(policy)))]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def modules_of(policy: str) -> set[str]:
    """Return the modules of ours that a run of a policy imports."""
    found: set[str] = set()
    left = [BEGIN, *_modules_of_parts(load_policy(policy))]
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += [] if name in NOT_FOLLOWED else _imports(name)
    return found


def _modules_of_parts(policy: Any) -> set[str]:
    """Return the modules of a policy, and of policies inside it."""
    inner = [each for each in getattr(policy, "__dict__", {}).values() if hasattr(each, "decide")]
    return {type(policy).__module__}.union(*map(_modules_of_parts, inner))


def _path(name: str) -> Path | None:
    """Return the file of a module of ours, None for others."""
    path = ROOT.joinpath(*name.split("."))
    for file in (path / "__init__.py", path.with_suffix(".py")):
        if name.split(".")[0] in ("qbatch", "tests") and file.is_file():
            return file
    return None


@cache
def _tree(name: str) -> ast.Module:
    file = _path(name)
    assert file is not None
    return ast.parse(file.read_text(encoding="utf-8"))


@cache
def _imports(name: str) -> frozenset[str]:
    """Return the modules of ours that a module imports, anywhere in it, and their packages."""
    found: set[str] = set()
    for node in ast.walk(_tree(name)):
        if isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
    packages = {each.rpartition(".")[0] for each in found}
    return frozenset(each for each in found | packages if each and _path(each) is not None)


@cache
def _digest(name: str) -> str:
    """Return a hash of the code of a module, without comments and docstrings."""
    tree = ast.parse(ast.unparse(_tree(name)))
    for node in ast.walk(tree):
        for body in (getattr(node, "body", None),):
            if isinstance(body, list):
                body[:] = [each for each in body if not _is_text(each)] or [ast.Pass()]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
