"""The public names of qbatch and their signatures, as text.

``python -m tests.library.signatures`` writes the list anew, after a change that is meant.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Any

import qbatch

LIST = Path(__file__).with_name("public_names.txt")
_OWN = ("__getitem__", "__iter__", "__len__", "__eq__", "__enter__", "__exit__", "__call__")


def lines() -> list[str]:
    """Return a line for each public name, and under a class one for each public method, property
    and attribute of ours."""
    found = []
    for name in qbatch.__all__:
        found += _of(name, getattr(qbatch, name))
    return found


def _of(name: str, thing: Any) -> list[str]:
    if not inspect.isclass(thing):
        return [
            f"{name}{inspect.signature(thing)}"
            if callable(thing)
            else f"{name}: {type(thing).__name__}"
        ]
    parents = ", ".join(parent.__name__ for parent in thing.__bases__ if parent is not object)
    has_none = issubclass(thing, BaseException) or getattr(thing, "_is_protocol", False)
    first = (
        f"class {name}{f'[{parents}]' if parents else ''}{'' if has_none else _signature(thing)}"
    )
    return [first, *(f"    {line}" for line in _members(thing))]


def _members(thing: type) -> list[str]:
    found = []
    own = [each for each in thing.__mro__ if each.__module__.startswith("qbatch.")]
    noted = {
        name: kind for each in own for name, kind in vars(each).get("__annotations__", {}).items()
    }
    for name in sorted({*noted, *(name for each in own for name in vars(each))}):
        if name.startswith("_") and name not in _OWN:
            continue
        kind = inspect.getattr_static(thing, name, None)
        if isinstance(kind, (classmethod, staticmethod)):
            found.append(f"{type(kind).__name__} {name}{_signature(kind.__func__)}")
        elif inspect.isfunction(kind):
            found.append(f"{name}{_signature(kind)}")
        elif name in noted:
            found.append(f"attribute {name}: {noted[name]}")
        else:
            getter = getattr(kind, "fget", None) or getattr(kind, "func", None)
            annotation = f": {getter.__annotations__.get('return')}" if getter else ""
            can_set = isinstance(kind, property) and kind.fset is not None
            found.append(
                f"{'property' if getter else 'attribute'} "
                f"{name}{annotation}{' (can be set)' if can_set else ''}"
            )
    return found


def _signature(thing: Any) -> str:
    try:
        return str(inspect.signature(thing))
    except ValueError:
        return "(...)"


if __name__ == "__main__":
    LIST.write_text("\n".join(lines()) + "\n", encoding="utf-8")
    sys.stderr.write(f"wrote {LIST}: {len(lines())} lines\n")
