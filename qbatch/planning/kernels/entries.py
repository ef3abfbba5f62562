"""Kernels that a live engine calls: compiled, or as plain Python until the compiler has finished.

Python code outside the kernels (policies, the cluster, profiles) calls them through an entry:
:func:`entry_to` or :func:`entries_to`.  :func:`serve_uncompiled` and :func:`serve_compiled` switch
all entries of the process.  The plain form of a kernel is its own source, and the kernels that it
calls are plain too.  A kernel that is a generator is called through a :class:`GeneratorEntry`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from types import CellType, FunctionType, ModuleType
from typing import Any, TypeVar, cast

from qbatch.planning.kernels.jit import Kernel, is_loaded, is_warm

Function = TypeVar("Function")

_PLAIN_NAMES: dict[int, dict[str, Any]] = {}
_PLAIN: dict[Any, Any] = {}
_ENTRIES: dict[Any, Any] = {}
_serves_compiled = True
_rows_left = 5_000
_plain_steps_left = 10_000


def uncompiled(kernel: Function) -> Function:
    """Return the plain Python function behind a kernel, which calls plain Python only; others are
    returned as they are."""
    source = getattr(kernel, "py_func", None)
    if source is None:
        return kernel
    if kernel not in _PLAIN:
        made_with = tuple(
            CellType(uncompiled(cell.cell_contents)) for cell in source.__closure__ or ()
        )
        names = _plain_names(source.__globals__)
        plain = FunctionType(
            source.__code__, names, source.__name__, source.__defaults__, made_with
        )
        plain.__kwdefaults__ = source.__kwdefaults__
        _PLAIN[kernel] = plain
    return cast(Function, _PLAIN[kernel])


def _plain_names(names: dict[str, Any]) -> dict[str, Any]:
    """Return a module's names with plain Python in place of kernels."""
    if id(names) not in _PLAIN_NAMES:
        _PLAIN_NAMES[id(names)] = found = dict(names)
        for name, value in names.items():
            if hasattr(value, "py_func"):
                found[name] = uncompiled(value)
            elif isinstance(value, ModuleType) and value.__name__.startswith("qbatch."):
                found[name] = _Module(value, uncompiled)
    return _PLAIN_NAMES[id(names)]


class _Module:
    """A module of kernels, each as ``form`` returns it; its constants are unchanged."""

    def __init__(self, module: ModuleType, form: Callable[[Any], Any]) -> None:
        self._module, self._form = module, form

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._module, name)
        if callable(value) and not isinstance(value, type):
            value = self._form(value)
        setattr(self, name, value)
        return value


def entry_to(kernel: Function) -> Function:
    """Return an entry to a kernel, for callers outside the kernels."""
    if kernel not in _ENTRIES:
        # Calling through a partial costs a tenth of a microsecond less than through a method.
        _ENTRIES[kernel] = partial(cast(Any, kernel))
        _point(kernel)
    return cast(Function, _ENTRIES[kernel])


def little(kernel: Function, rows: int) -> Function:
    """Return a kernel for ``rows`` rows: plain Python as long as that takes less time than loading
    the compiler."""
    global _rows_left
    if is_loaded() or rows > _rows_left:
        return kernel
    _rows_left -= rows
    return uncompiled(kernel)


def compile_at_once() -> None:
    """Compile the generators of this process for their first step."""
    global _plain_steps_left
    _plain_steps_left = 0


class GeneratorEntry:
    """A generator kernel with its arguments, which makes one step at each call of ``next``.

    If it would have to be compiled, a process makes the first steps in plain Python: compiling
    takes longer than they do. Between two steps the generator keeps nothing but its arguments, so
    that either form continues where the other stopped.

    Args:
        kernel: a generator in which every step does the same.
    """

    def __init__(self, kernel: Any, *arguments: Any) -> None:
        self._kernel, self._arguments = kernel, arguments
        self._is_plain: bool | None = None

    def __iter__(self) -> GeneratorEntry:
        return self

    def __next__(self) -> Any:
        global _plain_steps_left
        is_plain = not _serves_compiled or (_plain_steps_left > 0 and not _is_on_disk(self._kernel))
        if is_plain is not self._is_plain:
            self._is_plain = is_plain
            form = (
                uncompiled(self._kernel)
                if is_plain
                else getattr(self._kernel, "compiled", self._kernel)
            )
            self._steps = form(*self._arguments)
        if is_plain and _serves_compiled:
            _plain_steps_left -= 1
        return next(self._steps)


@cache
def _is_on_disk(kernel: Any) -> bool:
    return not isinstance(kernel, Kernel) or is_warm(kernel.qualified_name)


def entries_to(module: ModuleType) -> Any:
    """Return a module of kernels with an entry to each."""
    return _Module(module, entry_to)


def serve_uncompiled() -> None:
    """Make all entries of this process call plain Python: nothing is compiled or loaded from here
    on."""
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
    for kernel in list(_ENTRIES):
        _point(kernel)


def _point(kernel: Any) -> None:
    """Make the entry to a kernel call its current form."""
    entry = _ENTRIES[kernel]

    def first(*arguments: Any) -> Any:
        """Load the compiler; later calls go straight to its result."""
        entry.__setstate__((kernel.compiled, (), {}, None))
        return kernel.compiled(*arguments)

    form = kernel if _serves_compiled else uncompiled(kernel)
    entry.__setstate__((first if isinstance(form, Kernel) else form, (), {}, None))
