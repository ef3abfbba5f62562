"""Kernels kept as object code, which a later process runs without loading the compiler.

Loading Numba costs a third of a second and 60 MB; loading an object with llvmlite costs a tenth of
that.  So Numba's machine code of a kernel that Python calls is written next to Numba's own cache,
one file per kernel and signature, by :func:`keep`, and loaded by :func:`find`.  It is the same
machine code, without Numba's wrapper for Python.

It is called by Numba's convention for processors (``numba.core.callconv.CPUCallConv``): it returns
a status, and takes the address of its result, the address of an exception and its arguments,
flattened.  :func:`keep` checks that a kernel follows it. If something is unknown here (a type, a
symbol, another processor), the object is not kept or found, and Numba runs the kernel.

That convention is private to Numba and may change with any version.  So objects are kept and called
only with the pairs of versions in ``LISTED``.  In each folder of the cache, a sample kernel, called
as object code, must first return the same as Numba (:func:`refusal`).
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib
import os
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec
from importlib.metadata import distribution, version
from importlib.util import module_from_spec
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

Loaded = Callable[..., Any]

LISTED = (("0.68.1", "0.50.0"),)
"""Pairs of versions of Numba and llvmlite with which the whole suite has passed (those of
``constraints.txt``).  To add another, install it and run the suite with it in this list."""

_MARK = "kept-objects"  # the file with the result of the check of a folder
_PASSED = "the sample kernel gives what Numba gives"
_DID_NOT_END = "the call of the sample kernel did not end"

_WORDS = {bool: "b", np.bool_: "b", int: "i", np.int64: "i", float: "f", np.float64: "f"}
_RESULTS = {"bool": "b", "boolean": "b", "int64": "i", "float64": "f", "none": "n"}
_NUMBERS: dict[str, Any] = {
    "b": ctypes.c_uint8,
    "i": ctypes.c_int64,
    "f": ctypes.c_double,
    "n": ctypes.c_void_p,
}
_IN_LLVM = {
    ctypes.c_uint8: "i8",
    ctypes.c_int64: "i64",
    ctypes.c_double: "double",
    ctypes.c_void_p: "ptr",
}
_INT64 = range(-(2**63), 2**63)
_OK = (0, -2)  # RETCODE_OK, RETCODE_NONE
_DIGEST = 32
_LIBRARIES = count()


# Arguments of a kernel


def described(arguments: tuple[Any, ...]) -> str | None:
    """Return the types of arguments, which distinguish the variants of a kernel; None if one of
    them is unknown here."""
    return _joined([_word(value) for value in arguments])


def _joined(words: list[str | None]) -> str | None:
    return None if None in words else ",".join(map(str, words))


def _word(value: Any) -> str | None:
    kind = type(value)
    if kind is np.ndarray:
        flags = value.flags
        layout = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
        word = _dtype_word(value.dtype) if flags.aligned else None
        return (
            None if word is None else f"{word}{value.ndim}{layout}{'w' if flags.writeable else 'r'}"
        )
    if isinstance(value, tuple) and value:
        words = _joined([_word(part) for part in value])
        return None if words is None else f"{kind.__qualname__}({words})"
    return _WORDS.get(kind) if kind is not int or value in _INT64 else None


@cache
def _dtype_word(dtype: np.dtype[Any]) -> str | None:
    if not dtype.isnative or dtype.hasobject:
        return None
    if dtype.names is not None:
        return f"{dtype!r}{dtype.itemsize}"  # names, types and offsets of all fields
    return dtype.str if dtype.kind in "iufb" else None


def _flattened(value: Any) -> Iterator[Any]:
    """Yield the parts of an argument in the order of the convention, as ctypes passes them."""
    if isinstance(value, np.ndarray):
        yield ctypes.c_void_p()  # no reference count, no owner: the caller holds the array
        yield ctypes.c_void_p()
        yield ctypes.c_int64(value.size)
        yield ctypes.c_int64(value.itemsize)
        yield ctypes.c_void_p(value.ctypes.data)
        yield from map(ctypes.c_int64, value.shape)
        yield from map(ctypes.c_int64, value.strides)
    elif isinstance(value, tuple):
        for part in value:
            yield from _flattened(part)
    else:
        yield _NUMBERS[_WORDS[type(value)]](value)


# Results of a kernel: a number, nothing, an array, or a flat tuple of these


def _result_word(returned: Any) -> str | None:
    """Return how to read a result of a Numba type; None if the type is unknown here."""
    from numba.core import types

    if isinstance(returned, types.Array):
        kind = (
            np.dtype(str(returned.dtype)).str
            if str(returned.dtype) in ("int64", "float64")
            else None
        )
        return None if kind is None else f"{kind}{returned.ndim}"
    if isinstance(returned, types.Tuple | types.UniTuple):
        words = [
            None if isinstance(part, types.BaseTuple) else _result_word(part)
            for part in returned.types
        ]
        return f"({_joined(words)})" if words and None not in words else None
    return _RESULTS.get(str(returned))


class _ArrayStruct(ctypes.Structure):
    """The beginning of an array, before its shape and strides."""

    _fields_ = (
        ("meminfo", ctypes.c_void_p),
        ("parent", ctypes.c_void_p),
        ("items", ctypes.c_int64),
        ("itemsize", ctypes.c_int64),
        ("data", ctypes.c_void_p),
    )


@cache
def _structure(word: str) -> Any:
    """Return the layout of a result."""
    if word in _NUMBERS:
        return _NUMBERS[word]
    if word.startswith("("):
        fields = [
            (f"part{number}", _structure(part)) for number, part in enumerate(word[1:-1].split(","))
        ]
    else:
        lengths = ctypes.c_int64 * int(word[3:])
        fields = [("array", _ArrayStruct), ("shape", lengths), ("strides", lengths)]
    return type("Result", (ctypes.Structure,), {"_fields_": fields})


class _Memory:
    """The memory of a returned array: the kernel has allocated it, or one of its arguments owns
    it."""

    def __init__(self, kind: str, place: Any, arguments: tuple[Any, ...]) -> None:
        self.__array_interface__ = {
            "version": 3,
            "typestr": kind,
            "shape": tuple(place.shape),
            "strides": tuple(place.strides),
            "data": (place.array.data, False),
        }
        self._meminfo, self._arguments = place.array.meminfo, arguments

    def __del__(self) -> None:
        if self._meminfo:
            ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_runtime_symbols()["NRT_MemInfo_release"])(
                self._meminfo
            )


def _value(word: str, place: Any, arguments: tuple[Any, ...]) -> Any:
    """Read a result."""
    if word.startswith("("):
        words = word[1:-1].split(",")
        return tuple(
            _value(part, getattr(place, f"part{number}"), arguments)
            for number, part in enumerate(words)
        )
    if word in _NUMBERS:
        value = getattr(place, "value", place)
        return {"b": bool(value), "n": None}.get(word, value)
    return np.asarray(_Memory(word[:3], place, arguments))


# Files


def _file(folder: Path, name: str, variant: str, target: tuple[str, ...]) -> Path:
    digest = hashlib.sha256("\0".join((variant, *target)).encode()).hexdigest()
    return folder / f"{name}-{digest[:_DIGEST]}.object"


def _write(path: Path, content: bytes) -> None:
    """Write a whole file or none."""
    unfinished = path.with_suffix(f".{os.getpid()}")
    unfinished.write_bytes(content)
    unfinished.replace(path)


def is_kept(folder: Path, name: str) -> bool:
    """Return whether a folder has a variant of a kernel that can be called."""
    return refusal(folder) == "" and any(folder.glob(f"{name}-*.object"))


def keep(folder: Path, name: str, variant: str, result: Any, arguments: tuple[Any, ...]) -> None:
    """Write Numba's code of a kernel (``result``, a ``CompileResult``) for such arguments, if it
    can be called from here.

    Raises: OSError if it cannot be written; AttributeError with a Numba that names its parts
    differently.
    """
    if refusal(folder) is None:
        _check(folder)
    if refusal(folder) == "":
        _keep(folder, name, variant, result, arguments)


def _keep(folder: Path, name: str, variant: str, result: Any, arguments: tuple[Any, ...]) -> None:
    from llvmlite import binding

    word, codegen, symbol = (
        _result_word(result.signature.return_type),
        result.library.codegen,
        result.fndesc.llvm_func_name,
    )
    target = _file(folder, name, variant, codegen.magic_tuple())
    if word is None or target.exists():
        return
    module = result.library._get_module_for_linking().clone()
    takes = [
        "ptr" if str(part.type).endswith("*") else str(part.type)
        for part in module.get_function(symbol).arguments
    ]
    if takes != ["ptr", "ptr", *(_IN_LLVM[type(part)] for part in _flattened(arguments))]:
        return
    # Only the function and what it uses stay in the module.
    for part in (*module.functions, *module.global_variables):
        if not part.is_declaration:
            part.linkage = "external" if part.name == symbol else "internal"
    manager = binding.create_new_module_pass_manager()
    manager.add_global_dead_code_eliminate_pass()
    manager.add_strip_dead_prototype_pass()
    manager.run(
        module, binding.create_pass_builder(codegen._tm, binding.create_pipeline_tuning_options())
    )
    needed = {
        part.name for part in (*module.functions, *module.global_variables) if part.is_declaration
    }
    if not all(
        one.startswith("llvm.") or one in _runtime_symbols() or hasattr(ctypes.pythonapi, one)
        for one in needed
    ):
        return
    content = f"{symbol}\n{word}\n".encode() + codegen._tm.emit_object(module)
    _write(target, hashlib.sha256(content).digest() + content)


def find(folder: Path, name: str, variant: str) -> Loaded | None:
    """Return a kernel, to be called with arguments of this variant; None if the folder does not
    have it, or it is damaged."""
    # Avoids loading llvmlite for nothing.
    return _find(folder, name, variant) if is_kept(folder, name) else None


def _find(folder: Path, name: str, variant: str) -> Loaded | None:
    try:
        content = _file(folder, name, variant, _target()).read_bytes()
    except OSError:
        return None
    digest, content = content[:_DIGEST], content[_DIGEST:]
    if hashlib.sha256(content).digest() != digest:
        return None
    symbol, word, code = content.split(b"\n", 2)
    library = _linked(symbol.decode(), code)
    return (
        None
        if library is None
        else partial(_run, name, word.decode(), library, _function(library[symbol.decode()]))
    )


# Safety


@cache
def _unlisted() -> str:
    found = version("numba"), version("llvmlite")
    if found in LISTED:
        return ""
    known = " or ".join(f"numba=={numba} llvmlite=={llvmlite}" for numba, llvmlite in LISTED)
    return f"Numba {found[0]} with llvmlite {found[1]} was not tried; install {known}"


def refusal(folder: Path) -> str | None:
    """Return why no object is kept in or called from a folder; empty if objects are, None before
    the first check there."""
    if _unlisted():
        return _unlisted()
    try:
        found = (folder / _MARK).read_text(encoding="utf-8")
    except OSError:
        return None
    return "" if found == _PASSED else f"{found}; remove {folder} to have it checked again"


def _sample(number: Any, values: Any, both: Any) -> Any:
    """Take a number, an array and a tuple of both; return a number, new memory and an argument's
    memory."""
    made = np.empty(values.size)
    for place in range(values.size):
        made[place] = values[place] * both[0]
        values[place] += number + both[1][place]
    return number * 2, made, values


def _sample_arguments() -> tuple[Any, ...]:
    return 3, np.arange(5), (0.5, np.array([True, False, True, True, False]))


@cache
def _compiled_sample() -> Any:
    from numba import njit

    return njit(nogil=True)(_sample)


def _check(folder: Path) -> None:
    """Call a sample kernel as object code, and write into a folder whether its result is that of
    Numba.

    The call could end the process; then the next process finds that it did not finish.

    Raises: OSError if nothing can be written.
    """
    mark = folder / _MARK
    try:
        expected, ours = _sample_arguments(), _sample_arguments()
        compiled, variant = _compiled_sample(), str(described(ours))
        result = compiled(*expected)
        _keep(folder, _sample.__name__, variant, compiled.overloads[compiled.signatures[0]], ours)
        loaded = _find(folder, _sample.__name__, variant)
        if loaded is None:
            said = "the sample kernel cannot be kept and loaded here"
        else:
            _write(mark, _DID_NOT_END.encode())
            is_same = _is_same((loaded(*ours), ours), (result, expected))
            said = _PASSED if is_same else "the sample kernel does not give what Numba gives"
    except OSError:
        raise
    except Exception as error:
        said = f"the check of the sample kernel failed ({type(error).__name__}: {error})"
    _write(mark, said.encode())


def _is_same(one: Any, other: Any) -> bool:
    if isinstance(one, tuple):
        return (
            isinstance(other, tuple) and len(one) == len(other) and all(map(_is_same, one, other))
        )
    if isinstance(one, np.ndarray):
        return (
            isinstance(other, np.ndarray)
            and one.dtype == other.dtype
            and np.array_equal(one, other)
        )
    return type(one) is type(other) and bool(one == other)


# Running


_function = ctypes.CFUNCTYPE(ctypes.c_int32)  # other threads run during the call


def _run(name: str, word: str, _library: Any, function: Any, *arguments: Any) -> Any:
    place, exception = _structure(word)(), ctypes.c_void_p()
    status = function(ctypes.byref(place), ctypes.byref(exception), *_flattened(arguments))
    if status not in _OK:
        raise RuntimeError(f"the compiled kernel {name} ended with status {status}")
    return _value(word, place, arguments)


@cache
def _target() -> tuple[str, ...]:
    """Return Numba's compilation target in this process, as ``Codegen.magic_tuple`` does."""
    from llvmlite import binding

    return (
        binding.get_process_triple(),
        binding.get_host_cpu_name(),
        binding.get_host_cpu_features().flatten(),
    )


@cache
def _runtime_symbols() -> dict[str, int]:
    """Return the addresses of Numba's memory functions: an extension that needs nothing else of
    Numba."""
    name = "numba.core.runtime._nrt_python"
    if "numba" in sys.modules:
        runtime: Any = importlib.import_module(name)
    else:
        stem = Path(str(distribution("numba").locate_file("numba/core/runtime/_nrt_python")))
        file = next(
            path for end in EXTENSION_SUFFIXES if (path := stem.with_name(stem.name + end)).exists()
        )
        loader = ExtensionFileLoader(name, str(file))
        runtime = module_from_spec(ModuleSpec(name, loader, origin=str(file)))
        loader.exec_module(runtime)
    return {
        key if key.startswith("_") else f"NRT_{key}": address
        for key, address in runtime.c_helpers.items()
    }


@cache
def _linker() -> Any:
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding.create_lljit_compiler()


def _linked(symbol: str, code: bytes) -> Any | None:
    """Return a library with one function; None if something that it needs is missing."""
    from llvmlite import binding

    builder = (
        binding.JITLibraryBuilder().add_object_img(code).add_current_process().export_symbol(symbol)
    )
    for name, address in _runtime_symbols().items():
        builder.import_symbol(name, address)
    try:
        return builder.link(_linker(), f"kernel{next(_LIBRARIES)}")
    except RuntimeError:
        return None
