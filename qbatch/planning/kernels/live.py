"""Kernels that a live engine calls: compiled, or as plain Python until the compiler has finished.

Python code outside the kernels (policies, the cluster, profiles) calls them through an entry: :func:`live` or
:func:`live_module`.  :func:`serve_uncompiled` and :func:`serve_compiled` switch all entries of the process.
The plain twin of a kernel is its own source, and the kernels that it calls are plain twins too.  A kernel that is a generator is
called through a :class:`LiveGenerator`.
"""

from __future__ import annotations

from functools import cache, partial
from types import CellType, FunctionType, ModuleType
from typing import Any, TypeVar, cast

from qbatch.planning.kernels.jit import Kernel, is_loaded, is_warm

Function = TypeVar("Function")

_TWIN_GLOBALS: dict[int, dict[str, Any]] = {}
_TWINS: dict[Any, Any] = {}
_DOORS: list[tuple[partial[Any], Any]] = []
_serves_compiled = True
_LITTLE = 5_000
_rows_left = _LITTLE
_plain_steps_left = 10_000


def uncompiled(kernel: Function) -> Function:
    """Return the plain Python function behind a kernel, which calls plain Python only; others are returned as they are."""
    source = getattr(kernel, "py_func", None)
    if source is None:
        return kernel
    if kernel not in _TWINS:
        space = _twin_globals(source.__globals__)
        made_with = tuple(CellType(uncompiled(cell.cell_contents)) for cell in source.__closure__ or ())
        twin = FunctionType(source.__code__, space, source.__name__, source.__defaults__, made_with)
        twin.__kwdefaults__ = source.__kwdefaults__
        _TWINS[kernel] = twin
    return cast(Function, _TWINS[kernel])


def _twin_globals(names: dict[str, Any]) -> dict[str, Any]:
    """Return a module's names with plain twins in place of kernels."""
    if id(names) not in _TWIN_GLOBALS:
        _TWIN_GLOBALS[id(names)] = twins = dict(names)
        for name, value in names.items():
            if hasattr(value, "py_func"):
                twins[name] = uncompiled(value)
            elif isinstance(value, ModuleType) and value.__name__.startswith("qbatch."):
                twins[name] = _TwinModule(value)
    return _TWIN_GLOBALS[id(names)]


class _TwinModule:
    """A module in which the kernels are plain Python."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return uncompiled(getattr(self._module, name))


class _LiveModule:
    """A module of kernels, each behind an entry; its constants are unchanged."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._module, name)
        if callable(value) and not isinstance(value, type):
            value = live(value)
        setattr(self, name, value)
        return value


def live(kernel: Function) -> Function:
    """Return an entry to a kernel, for callers outside the kernels."""
    # Calling through a partial costs a tenth of a microsecond less than through a method.
    door = partial(cast(Any, kernel))
    _DOORS.append((door, kernel))
    _serve_at(door, kernel, _serves_compiled)
    return cast(Function, door)


def little(kernel: Function, rows: int) -> Function:
    """Return a kernel for ``rows`` rows: plain Python as long as that takes less time than loading the compiler."""
    global _rows_left
    if is_loaded() or rows > _rows_left:
        return kernel
    _rows_left -= rows
    return uncompiled(kernel)


def compile_at_once() -> None:
    """Compile the generators of this process for their first step."""
    global _plain_steps_left
    _plain_steps_left = 0


class LiveGenerator:
    """A generator kernel with its arguments, which makes one step at each call of ``next``.

    If it would have to be compiled, a process makes the first steps in plain Python: compiling takes longer than they do.
    Between two steps the generator keeps nothing but its arguments, so that either form continues where the other stopped.

    Args:
        kernel: a generator in which every step does the same.
    """

    def __init__(self, kernel: Any, *arguments: Any) -> None:
        self._kernel, self._arguments = kernel, arguments
        self._is_plain: bool | None = None

    def __iter__(self) -> LiveGenerator:
        return self

    def __next__(self) -> Any:
        global _plain_steps_left
        is_plain = not _serves_compiled or (_plain_steps_left > 0 and not _is_on_disk(self._kernel))
        if is_plain is not self._is_plain:
            self._is_plain = is_plain
            self._steps = (uncompiled(self._kernel) if is_plain else _compiled(self._kernel))(*self._arguments)
        if is_plain and _serves_compiled:
            _plain_steps_left -= 1
        return next(self._steps)


def _compiled(kernel: Any) -> Any:
    return kernel.compiled if isinstance(kernel, Kernel) else kernel


@cache
def _is_on_disk(kernel: Any) -> bool:
    return not isinstance(kernel, Kernel) or is_warm(kernel.qualified_name)


def live_module(module: ModuleType) -> Any:
    """Return a module of kernels with an entry to each."""
    return _LiveModule(module)


def serve_uncompiled() -> None:
    """Make all entries of this process call plain Python: nothing is compiled or loaded from here on."""
    _serve(False)


def serve_compiled() -> None:
    """Make all entries of this process call compiled kernels (as they do from the beginning)."""
    _serve(True)


def serves_compiled() -> bool:
    """Return whether the entries call compiled kernels."""
    return _serves_compiled


def _serve(is_compiled: bool) -> None:
    global _serves_compiled
    _serves_compiled = is_compiled
    for door, kernel in _DOORS:
        _serve_at(door, kernel, is_compiled)


def _serve_at(door: Any, kernel: Any, is_compiled: bool) -> None:
    if not is_compiled:
        _lead(door, uncompiled(kernel))
    elif isinstance(kernel, Kernel):
        # The first call loads the compiler; later ones go straight to its result.
        def first(*arguments: Any) -> Any:
            _lead(door, kernel.compiled)
            return kernel.compiled(*arguments)

        _lead(door, first)
    else:
        _lead(door, kernel)


def _lead(door: Any, target: Any) -> None:
    door.__setstate__((target, (), {}, None))
