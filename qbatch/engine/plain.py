"""Any plain object as bytes and back: the memory of a policy, without pickle, so that the bytes
cannot run anything.

A value is a number, a text, bytes, None, or a list with its kind as first entry.  Classes are named
by module and name, and only classes of qbatch or of the policy's own module are made again.  A
mutable object that occurs twice is one object again.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from enum import Enum
from typing import Any

import msgspec
import numpy as np

from qbatch.model.errors import InputError

_LEAST, _MOST = -(2**63), 2**63 - 1
_ABSENT = object()


def encode(value: Any, own_module: str) -> bytes:
    """Return a value as bytes; classes may come from qbatch or from ``own_module``.  An InputError
    names another type."""
    try:
        return msgspec.msgpack.encode(_Writer(own_module).tree(value))
    except RecursionError as error:
        raise InputError("a policy's memory is nested too deep to be written down") from error


def decode(data: bytes, own_module: str) -> Any:
    """Return the value that :func:`encode` wrote.

    Raises:
        InputError: the bytes are not such a value, or name a class that may not be made.
    """
    try:
        return _Reader(own_module).value(msgspec.msgpack.decode(data))
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"a policy's memory cannot be read back: {type(error).__name__}: {error}"
        ) from error


def array_tree(array: np.ndarray[Any, Any]) -> list[Any]:
    """Return an array as (dtype, shape, whether it is writable, bytes); an array of records has the
    names and dtypes of its fields, and the bytes of one field after another."""
    fields = {name: dtype for name, (dtype, *_) in (array.dtype.fields or {}).items()}
    if array.dtype.hasobject or any(dtype.shape or dtype.names for dtype in fields.values()):
        raise InputError(f"an array of {array.dtype} cannot be written down")
    kind = [[name, dtype.str] for name, dtype in fields.items()] if fields else array.dtype.str
    columns = [array[name] for name in fields] if fields else [array]
    data = b"".join(np.ascontiguousarray(column).tobytes() for column in columns)
    return [kind, list(array.shape), bool(array.flags.writeable), data]


def array_of(tree: Any) -> np.ndarray[Any, Any]:
    """Return the array of a tree that :func:`array_tree` made."""
    kind, shape, is_writeable, data = tree
    if isinstance(kind, str):
        array = np.frombuffer(data, dtype=np.dtype(kind)).reshape(shape).copy()
    else:
        # Like the tables of the core.
        fields = np.dtype([(name, np.dtype(each)) for name, each in kind], align=True)
        array, begin = np.zeros(shape, np.dtype((np.record, fields))), 0
        for name, each in kind:
            column = np.frombuffer(data, np.dtype(each), array.size, begin)
            array[name] = column.reshape(shape)
            begin += column.nbytes
    array.flags.writeable = is_writeable
    return array


def _slots(kind: type) -> list[str]:
    names: list[str] = []
    for each in kind.__mro__:
        slots = each.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__"):
                is_hidden = name.startswith("__") and not name.endswith("__")
                names.append(f"_{each.__name__.lstrip('_')}{name}" if is_hidden else name)
    return names


def _is_frozen(value: Any, kind: type) -> bool:
    if isinstance(value, msgspec.Struct):
        return bool(value.__struct_config__.frozen)
    return isinstance(value, tuple | frozenset | Enum | np.generic)


class _Writer:
    """Turns values into trees."""

    def __init__(self, own_module: str) -> None:
        self.own_module = own_module
        self.seen: dict[int, int] = {}

    def tree(self, value: Any) -> Any:
        kind = type(value)
        if value is None or kind in (bool, float, str, bytes):
            return value
        if kind is int:
            return value if _LEAST <= value <= _MOST else ["i", str(value)]
        if not _is_frozen(value, kind):
            if id(value) in self.seen:
                return ["r", self.seen[id(value)]]
            self.seen[id(value)] = len(self.seen)
        return self._whole(value, kind)

    def _whole(self, value: Any, kind: type) -> list[Any]:
        if kind in (list, tuple):
            return ["l" if kind is list else "t", *map(self.tree, value)]
        if kind is dict:
            return ["d", *(self.tree(part) for pair in value.items() for part in pair)]
        if kind in (set, frozenset):
            # Ordered by their bytes, so that equal sets have equal bytes; entries of a set are
            # frozen, and each is numbered separately.
            trees = [_Writer(self.own_module).tree(entry) for entry in value]
            return ["s" if kind is set else "f", *sorted(trees, key=msgspec.msgpack.encode)]
        if kind is bytearray:
            return ["b", bytes(value)]
        if kind is np.ndarray:
            return ["a", *array_tree(value)]
        if isinstance(value, np.generic):
            return ["g", *array_tree(np.asarray(value))]
        name = [kind.__module__, kind.__qualname__]
        if not (kind.__module__.startswith("qbatch.") or kind.__module__ == self.own_module):
            raise InputError(
                f"a policy remembers {'.'.join(name)}; only plain values and classes of qbatch or "
                "of the "
                f"policy's own module ({self.own_module}) can be written down"
            )
        if "<locals>" in kind.__qualname__:
            raise InputError(
                f"a policy remembers {'.'.join(name)}, a class inside a function: move it out"
            )
        if isinstance(value, Enum):
            return ["e", *name, value.name]
        if isinstance(value, msgspec.Struct):
            parts = [getattr(value, field) for field in value.__struct_fields__]
            return ["M" if _is_frozen(value, kind) else "m", *name, *map(self.tree, parts)]
        if isinstance(value, tuple) and hasattr(kind, "_fields"):
            return ["n", *name, *map(self.tree, value)]
        if isinstance(
            value, list | tuple | dict | set | frozenset | str | bytes | int | float | type
        ) or callable(value):
            raise InputError(
                f"a policy remembers a {kind.__qualname__}, which cannot be written down"
            )
        fields = getattr(value, "__dict__", {}) | {
            slot: getattr(value, slot, _ABSENT) for slot in _slots(kind)
        }
        fields = {name: part for name, part in fields.items() if part is not _ABSENT}
        return ["o", *name, *(self.tree(part) for pair in fields.items() for part in pair)]


class _Reader:
    """Turns trees into values."""

    def __init__(self, own_module: str) -> None:
        self.own_module = own_module
        self.made: list[Any] = []

    def value(self, tree: Any) -> Any:
        if not isinstance(tree, list):
            return tree
        tag, *rest = tree
        match tag:
            case "i":
                return int(rest[0])
            case "t":
                return tuple(map(self.value, rest))
            case "f":
                return frozenset(map(_Reader(self.own_module).value, rest))
            case "g":
                return array_of(rest)[()]
            case "e":
                return self._class(rest, Enum)[rest[2]]
            case "M":
                return self._struct(rest)
            case "n":
                return self._class(rest, tuple)._make(map(self.value, rest[2:]))
            case "r":
                found = self.made[rest[0]]
                if found is _ABSENT:
                    raise InputError("a policy's memory holds a value that holds itself")
                return found
        return self._mutable(tag, rest)

    def _mutable(self, tag: str, rest: list[Any]) -> Any:
        """Return a mutable object, which may occur again; a list, a dictionary or an object also
        inside itself."""
        place, made = len(self.made), self.made
        made.append(_ABSENT)
        match tag:
            case "l":
                made[place] = []
                made[place].extend(map(self.value, rest))
            case "d":
                made[place] = {}
                made[place].update(self._pairs(rest))
            case "o":
                kind = self._class(rest, object)
                made[place] = kind.__new__(kind)
                for name, part in self._pairs(rest[2:]):
                    object.__setattr__(made[place], name, part)
            case "s":
                made[place] = set(map(_Reader(self.own_module).value, rest))
            case "b":
                made[place] = bytearray(rest[0])
            case "a":
                made[place] = array_of(rest)
            case "m":
                made[place] = self._struct(rest)
            case _:
                raise InputError(f"a policy's memory holds an unknown kind {tag!r}")
        return made[place]

    def _pairs(self, rest: list[Any]) -> Iterator[tuple[Any, Any]]:
        values = map(self.value, rest)
        return zip(values, values, strict=True)

    def _struct(self, rest: list[Any]) -> Any:
        kind = self._class(rest, msgspec.Struct)
        return kind(**dict(zip(kind.__struct_fields__, map(self.value, rest[2:]), strict=True)))

    def _class(self, rest: list[Any], family: type) -> Any:
        module, name = rest[:2]
        if not (module.startswith("qbatch.") or module == self.own_module):
            raise InputError(
                f"a snapshot names the class {module}.{name}, which is neither qbatch's nor the "
                "policy's"
            )
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
        if (
            not isinstance(found, type)
            or found.__module__ != module
            or not issubclass(found, family)
        ):
            raise InputError(
                f"a snapshot names {module}.{name}, which is not a class of the right kind"
            )
        return found
