"""Hashes of the source files on which a run depends.

A study of a paper names the modules that take part in a run, and repeats it only if one of them has
changed, apart from comments (:func:`hash_of`).  A sweep takes every file of the packages that
decide, replay and measure (:func:`program_digest`), which is very fast.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import os
import sys
import time
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from qbatch.planning.policy import Policy
from qbatch.policies.registry import load_policy

_ROOT = Path(__file__).parents[1]
_PACKAGES = ("model", "planning", "engine", "policies", "workloads", "simulation", "metrics")
_REGISTRY = "qbatch.policies.registry"
"""The module imports every policy, each where it is created; only the policy that runs counts."""


@cache
def program_digest() -> str:
    """Return a hash of the source of the packages on which the figures of a run depend."""
    found = hashlib.sha256()
    for path in sorted(path for package in _PACKAGES for path in (_ROOT / package).rglob("*.py")):
        found.update(f"{path.relative_to(_ROOT).as_posix()}\n".encode())
        found.update(path.read_bytes())
    found.update((_ROOT / "sweeps" / "run.py").read_bytes())
    return found.hexdigest()


def digest_of_policy(policy: Any) -> str:
    """Return a hash of the source of a user's own modules that define a policy; an empty text for a
    built-in policy.

    They are the modules of its class, its bases and its parts, and what these import in turn,
    without installed packages.  A class without a file, such as one defined in a notebook, counts
    as another policy in every process.
    """
    found = hashlib.sha256()
    names = own_modules(policy)
    for name in names:
        source = getattr(sys.modules.get(name), "__file__", None)
        found.update(
            f"{os.getpid()} {time.time_ns()}".encode()
            if source is None
            else Path(source).read_bytes()
        )
    return found.hexdigest() if names else ""


_READ: dict[str, str] = {}
"""The hash of the source that this process has read, by the text of a user's own policy."""


def policy_by_digest(text: str, digest: str) -> Policy:
    """Return a policy; a user's own, which has a digest, from its current files, even if this
    process has read older ones."""
    policy = load_policy(text)
    if digest and _READ.get(text) != digest:
        for name in (each for each in own_modules(policy) if each != "__main__"):
            sys.modules.pop(name)
        importlib.invalidate_caches()
        policy = load_policy(text)
        _READ[text] = digest
    return policy


def own_modules(policy: Any) -> list[str]:
    """Return the names, sorted, of a user's own modules that define a policy."""
    parts = list(getattr(policy, "__dict__", {}).values())
    waiting = {each.__module__ for one in (policy, *parts) for each in type(one).__mro__}
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        module = sys.modules.get(name)
        if name in found or module is None or not _is_own(module):
            continue
        found.add(name)
        if name != "__main__":
            values = list(vars(module).values())
            waiting |= {each.__name__ for each in values if isinstance(each, ModuleType)}
            waiting |= {
                each
                for each in (getattr(value, "__module__", None) for value in values)
                if isinstance(each, str)
            }
    return sorted(found)


def _is_own(module: ModuleType) -> bool:
    """Whether a module is a user's own: not part of qbatch, of Python or of an installed
    package."""
    if (
        module.__name__.partition(".")[0] in ("qbatch", *sys.stdlib_module_names)
        and module.__name__ != "__main__"
    ):
        return False
    source = getattr(module, "__file__", None)
    return (source is None and module.__name__ == "__main__") or (
        source is not None and not {"site-packages", "dist-packages"} & set(Path(source).parts)
    )


def hash_of(asked: str, modules: Iterable[str]) -> str:
    """Return a hash of a request and of these modules of qbatch with all that they import."""
    found = hashlib.sha256(f"{asked}\n".encode())
    for name in sorted(imported(set(modules))):
        found.update(f"{name}\n{_code(name)}\n".encode())
    return found.hexdigest()


def modules_of_policy(policy: Any) -> set[str]:
    """Return the modules of qbatch that define a policy and its parts."""
    parts = {type(policy).__module__, *(type(part).__module__ for part in vars(policy).values())}
    return {name for name in parts if name.startswith("qbatch.")}


@cache
def _code(name: str) -> str:
    """Return the code of a module as text, without comments and docstrings."""
    tree = ast.parse(_file(name).read_bytes())
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            node.body = [
                one
                for one in node.body
                if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))
            ]
    return ast.dump(tree)


def imported(names: set[str]) -> set[str]:
    """Return these modules of qbatch and all that they import, directly or not."""
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


@cache
def _imports(name: str) -> list[str]:
    if name == "qbatch":  # the package loads its exports only on demand
        return []
    tree = ast.parse(_file(name).read_bytes())
    found: list[str] = []
    for node in tree.body if name == _REGISTRY else ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("qbatch"):
            found += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.startswith("qbatch")]
    return found


def _file(name: str) -> Path:
    inside = _ROOT.joinpath(*name.split(".")[1:])
    return inside / "__init__.py" if inside.is_dir() else inside.with_suffix(".py")
