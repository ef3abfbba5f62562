"""The only access to the compiler: every kernel is decorated with :func:`kernel` or
:func:`allocating_kernel`.

Numba takes a third of a second to load, and is loaded when a kernel is first called compiled.  A
daemon that serves with plain Python, or a command that runs no kernel, never loads it.  Nor does a
command if its kernels were compiled before: kernels that Python calls are kept as object code too
(:mod:`qbatch.planning.kernels.native`).

Numba's cache does not notice when a callee in another file changes, so the name of the cache
directory contains a hash of the sources of all kernels (law 6 of docs/design.md).  After a change
of one kernel all are compiled again; without a change they load in a fraction of a second.

With ``NUMBA_DISABLE_JIT=1`` the decorator returns the plain Python function: the tests and the
coverage report use this.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache, cached_property
from importlib.metadata import version
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar, cast

from qbatch.model.errors import InputError
from qbatch.planning.kernels import native
from qbatch.trust import is_of_another, others_may_write, who_may_replace

Function = TypeVar("Function", bound=Callable[..., Any])

IS_PLAIN = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
"""Whether nothing is compiled in this process."""

_PACKAGE = Path(__file__).resolve().parents[2]
_KEPT_CACHES = 4

_OBJECT_CALLS = 1000
"""The number of calls of a kernel as object code, each some ten microseconds slower than by Numba,
before Numba is loaded."""


def sources_hash() -> str:
    """Return a short hash over the sources of all kernels and the versions of the compiler."""
    digest = hashlib.sha256(f"numba {version('numba')} llvmlite {version('llvmlite')}".encode())
    for path in sorted(_PACKAGE.glob("*/kernels/*.py")):
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def cache_root() -> Path:
    """Return the folder that holds the caches: ``$QBATCH_CACHE``, ``$XDG_CACHE_HOME/qbatch`` or
    ``~/.cache/qbatch``."""
    own = os.environ.get("QBATCH_CACHE")
    if own:
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "qbatch"


def _made(folder: Path) -> None:
    """Make a folder and its missing parents, accessible only to this user whatever the umask is."""
    if not folder.exists():
        _made(folder.parent)
        with suppress(FileExistsError):  # another process made it
            folder.mkdir(mode=0o700)
            folder.chmod(0o700)


def _check_ours(folder: Path) -> None:
    """Refuse a folder into which other users may put code: its contents run as the code of the user
    of a kernel.

    Raises:
        InputError: names the folder and the reason.
    """
    reason, found = who_may_replace(folder), folder.stat()
    if not reason and is_of_another(found):
        reason = f"it belongs to user {found.st_uid}"
    if not reason and found.st_mode & 0o077:  # otherwise others cannot enter it
        for path in (folder, *folder.rglob("*")):
            with suppress(FileNotFoundError):  # another process has just renamed it
                if others_may_write(path.stat()):
                    reason = f"others may write to {'it' if path == folder else path}"
                    break
    if reason:
        raise InputError(
            f"{folder}: the compiled kernels there are not run: {reason}; take that right away "
            "(chmod go-w) and remove the "
            "folder, which is made again, or set QBATCH_CACHE to a folder of your own"
        )


@cache
def cache_folder() -> Path | None:
    """Return the folder of the kernels in their current version; None if nothing is compiled or
    nothing can be written.

    Raises:
        InputError: others may write to it, or replace it.
    """
    if IS_PLAIN:
        return None
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    folder = (Path(chosen) / "qbatch" if chosen else cache_root()) / f"kernels-{sources_hash()}"
    is_new = not folder.exists()
    try:
        _made(folder)
        _check_ours(folder)
        tempfile.TemporaryFile(dir=folder).close()  # whether it can be written
    except OSError:
        return None
    if is_new:
        with suppress(OSError):  # another process may be removing the same folders
            others = [
                path for path in folder.parent.glob("kernels-*") if path != folder and path.is_dir()
            ]
            others.sort(key=lambda path: path.stat().st_mtime, reverse=True)
            for path in others[_KEPT_CACHES - 1 :]:
                shutil.rmtree(path, ignore_errors=True)
    return folder


_HELD: set[str] = set()


@contextmanager
def _locked(name: str) -> Iterator[None]:
    """Hold the lock of one kernel against other processes."""
    if name in _HELD:
        yield
        return
    with ExitStack() as held:
        # A file system without locks is no reason not to cache.
        with suppress(OSError):
            fcntl.flock(
                held.enter_context(open(f"{cache_folder()}/{name}.lock", "ab")), fcntl.LOCK_EX
            )
        _HELD.add(name)
        held.callback(_HELD.discard, name)
        yield


def _alone(compiled: Any, name: str) -> Any:
    """Let one process at a time compile a kernel, or load it from the cache; another that needs it
    then finds it there.

    Numba numbers the file of a variant after those in the index that it has just read.  Of two
    processes that save their first variants at once, one could otherwise find the other's code
    under its own signature, and run it.
    """
    from numba.core.compiler_lock import global_compiler_lock

    if cache_folder() is not None:
        compile_variant = compiled.compile

        def compile_alone(signature: Any) -> Any:
            # The compiler's lock comes first: another thread of this process may hold it, and need
            # this kernel.
            with global_compiler_lock, _locked(name):
                return compile_variant(signature)

        compiled.compile = compile_alone
    return compiled


def _forget_literals(compiled: Any) -> None:
    """Let calls from other kernels be of the types of their arguments, and not of the values of
    constants: each value would be compiled apart."""
    from numba.core.types import unliteral

    template_of, plain = compiled.get_call_template, cast(Any, unliteral)

    def of_types(arguments: Any, named: Any) -> Any:
        named = {name: plain(value) for name, value in named.items()}
        return template_of(tuple(map(plain, arguments)), named)

    compiled.get_call_template = of_types


_WHEN_LOADED: list[Callable[[], None]] = []


def load() -> None:
    """Load the compiler now, so that nothing runs as plain Python to avoid loading it."""
    if not IS_PLAIN:
        _numba()


def is_loaded() -> bool:
    """Return whether the compiler is loaded, or nothing is compiled at all."""
    return IS_PLAIN or _numba.cache_info().currsize > 0


def when_loaded(tell: Callable[[], None]) -> None:
    """Have a function called when the compiler is loaded: now, or before a kernel is first called
    compiled."""
    if is_loaded():
        tell()
    else:
        _WHEN_LOADED.append(tell)


@cache
def _numba() -> Any:
    """Load the compiler and register :class:`Kernel`, so that a kernel can call another by what it
    compiles to."""
    for tell in _WHEN_LOADED:
        tell()
    import numba
    from numba.core import types
    from numba.extending import typeof_impl

    if cache_folder() is not None:
        numba.config.CACHE_DIR = str(cache_folder())  # type: ignore[attr-defined]

    @typeof_impl.register(Kernel)
    def _(kernel: Kernel, _context: Any) -> Any:
        return types.Dispatcher(kernel.compiled)

    return numba


def _hash_of(file: str) -> str | None:
    """Return a hash of a file's content, None if there is no such file."""
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()
    except OSError:
        return None


class Kernel:
    """A kernel: ``py_func`` is its Python function, ``compiled`` exists after its first call;
    ``is_outside``: a user's kernel."""

    def __init__(
        self, function: FunctionType, constants: dict[str, Any] | None = None, **options: Any
    ) -> None:
        self.py_func = function
        self._constants = constants or {}
        self.__wrapped__ = function
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self._options = options
        self.is_outside = not function.__module__.startswith("qbatch.")
        self._source = _hash_of(function.__code__.co_filename) if self.is_outside else None
        self._variants: dict[str, native.Loaded | None] = {}
        self._kept, self._calls = 0, 0

    @cached_property
    def compiled(self) -> Any:
        """The result of Numba."""
        njit, function = _numba().njit, self.py_func
        function.__qualname__ = self.qualified_name
        is_kept = cache_folder() is not None and self._identity is not None
        compiled = njit(cache=is_kept, nogil=True, no_cfunc_wrapper=True, **self._options)(function)
        _forget_literals(compiled)
        return _alone(compiled, f"{function.__module__}.{function.__qualname__}")

    @cached_property
    def qualified_name(self) -> str:
        """Its name, with a hash of the values in its closure.

        Numba names code by the function and a count in its process.  Two kernels of one factory,
        each the first that its process compiled, would share a name in a process that loads both,
        and with it the types of returned arrays.
        """
        name = self.py_func.__code__.co_qualname
        if self._identity is None or not (self._closure or self._constants or self.is_outside):
            return name
        factory, dot, name = name.rpartition(".<locals>.")
        made_with = hashlib.sha256(self._identity.encode()).hexdigest()[:8]
        return f"{factory}_{made_with}{dot}{name}" if factory else f"{name}_{made_with}"

    @property
    def signatures(self) -> list[Any]:
        """The types for which it was compiled, or loaded, in this process."""
        return self.compiled.signatures if "compiled" in vars(self) else []

    @cached_property
    def _closure(self) -> tuple[Any, ...]:
        """The values in its closure."""
        return tuple(cell.cell_contents for cell in self.py_func.__closure__ or ())

    @cached_property
    def _identity(self) -> str | None:
        """Its identity, with the values in its closure; None if there is none, because a value is
        no number, text or kernel, or the kernel was read from no file.  Then each process compiles
        it."""
        names = tuple(self._constants)
        values = [
            each._identity if isinstance(each, Kernel) else each
            for each in (*self._closure, *self._constants.values())
        ]
        if not all(isinstance(value, int | float | str) for value in values):
            return None
        made_with = f"{names}{values}" if values else ""
        if self.is_outside:
            if self._source is None:
                return None
            # The cache folder has the hash of the package's sources; a user's kernel is identified
            # by its own source.
            made_with += self._source
        return f"{self.py_func.__module__}.{self.py_func.__code__.co_qualname}{made_with}"

    def __call__(self, *arguments: Any) -> Any:
        """Call the kernel compiled: as its object code if that was kept and the compiler is not
        loaded, else by Numba."""
        if not is_loaded() and (loaded := self._object(arguments)) is not None:
            return loaded(*arguments)
        compiled = self.compiled
        result = compiled(*arguments)
        if len(compiled.overloads) > self._kept:
            self._kept = len(compiled.overloads)
            self._keep(arguments)
        return result

    def _object(self, arguments: tuple[Any, ...]) -> native.Loaded | None:
        """Return its object code for these arguments; None if there is none, or so many calls were
        made that Numba pays off."""
        self._calls += 1
        folder, variant = cache_folder(), self._variant(arguments)
        if folder is None or variant is None or self._calls > _OBJECT_CALLS:
            return None
        if variant not in self._variants:
            self._variants[variant] = native.find(folder, self.qualified_name, variant)
        return self._variants[variant]

    def _keep(self, arguments: tuple[Any, ...]) -> None:
        folder, variant = cache_folder(), self._variant(arguments)
        if folder is None or variant is None:
            return
        types = tuple(map(_numba().typeof, arguments))
        with suppress(OSError, AttributeError):
            native.keep(
                folder, self.qualified_name, variant, self.compiled.overloads[types], arguments
            )

    def _variant(self, arguments: tuple[Any, ...]) -> str | None:
        types = native.described(arguments)
        return None if self._identity is None or types is None else f"{self._identity} {types}"


def kernel(function: Function) -> Function:
    """Compile ``function`` with Numba on its first call, cached on disk if a cache can be written.

    Such a kernel makes no array.  So it is compiled without Numba's reference counts: the caller
    holds every array that it passes, and counting each of them at every call cost a quarter of a
    replay.
    """
    return (
        function if IS_PLAIN else cast(Function, Kernel(cast(FunctionType, function), _nrt=False))
    )


def inlined_kernel(function: Function) -> Function:
    """Compile ``function`` like :func:`kernel`, into every kernel that calls it: a call would copy
    each part of the tables."""
    return (
        function
        if IS_PLAIN
        else cast(Function, Kernel(cast(FunctionType, function), _nrt=False, forceinline=True))
    )


def allocating_kernel(function: Function) -> Function:
    """Compile ``function`` like :func:`kernel`, with reference counts: for kernels that make
    arrays.

    A kernel that a :func:`kernel` calls must not return an array: nothing would free it.
    """
    return function if IS_PLAIN else cast(Function, Kernel(cast(FunctionType, function), _nrt=True))


def with_constants(made: Function, **constants: Any) -> Function:
    """Return a kernel with other values for some names of its module; the compiler takes them, also
    kernels, as constants."""
    source = cast(FunctionType, getattr(made, "py_func", made))
    names = {**source.__globals__, **constants}
    function = FunctionType(
        source.__code__, names, source.__name__, source.__defaults__, source.__closure__
    )
    function.__doc__, function.__module__ = source.__doc__, source.__module__
    if IS_PLAIN:
        return cast(Function, function)
    return cast(Function, Kernel(function, constants, **cast(Kernel, made)._options))


def is_kept(kernel: Callable[..., Any]) -> bool:
    """Return whether a kernel can be called, at least with some arguments, without loading the
    compiler."""
    folder = cache_folder()
    return (
        isinstance(kernel, Kernel)
        and folder is not None
        and native.is_kept(folder, kernel.qualified_name)
    )


def is_warm(name: str) -> bool:
    """Return whether the kernel of this name is probably on disk already (if not, its first call
    compiles)."""
    folder = cache_folder()
    return IS_PLAIN or (folder is not None and any(folder.rglob(f"*.{name}-*.nbi")))
