"""The one door to the compiler: every kernel is decorated with :func:`kernel` or :func:`allocating_kernel`.

Numba takes a third of a second to load, and is loaded when a kernel is first called compiled: a daemon that serves with plain
Python, or a command that runs no kernel, never loads it.

Numba's cache does not notice when a callee in another file changes, so the cache directory carries
a hash of the sources of all kernels (law 6 of design.md): change one kernel and all are compiled
anew, change none and they load in a fraction of a second.

With ``NUMBA_DISABLE_JIT=1`` the decorator gives back the plain Python function: the tests and the
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

Function = TypeVar("Function", bound=Callable[..., Any])

IS_PLAIN = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
"""Whether nothing is compiled in this process."""

_PACKAGE = Path(__file__).resolve().parents[2]
_KEPT_CACHES = 4


def kernel_sources() -> list[Path]:
    """Return every file that may hold a kernel: those in the ``kernels`` folders."""
    return sorted(_PACKAGE.glob("*/kernels/*.py"))


def sources_hash() -> str:
    """Return a short hash over the sources of all kernels and the version of the compiler."""
    digest = hashlib.sha256(f"numba {version('numba')}".encode())
    for path in kernel_sources():
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def cache_root() -> Path:
    """Return the folder that holds the caches: ``$QBATCH_CACHE``, ``$XDG_CACHE_HOME/qbatch`` or ``~/.cache/qbatch``."""
    own = os.environ.get("QBATCH_CACHE")
    if own:
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "qbatch"


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _forget_old_caches(root: Path, current: Path) -> None:
    others = [path for path in root.glob("kernels-*") if path != current and path.is_dir()]
    # Another process may be forgetting the same folders.
    with suppress(OSError):
        others.sort(key=lambda path: path.stat().st_mtime, reverse=True)
        for path in others[_KEPT_CACHES - 1 :]:
            shutil.rmtree(path, ignore_errors=True)


@cache
def cache_folder() -> Path | None:
    """Return the folder of the kernels as they are now; None where nothing is compiled, or nothing can be written."""
    if IS_PLAIN:
        return None
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    folder = (Path(chosen) / "qbatch" if chosen else cache_root()) / f"kernels-{sources_hash()}"
    is_new = not folder.exists()
    if not _writable(folder):
        return None
    if is_new:
        _forget_old_caches(folder.parent, folder)
    return folder


@contextmanager
def saving() -> Iterator[None]:
    """Hold the lock under which compiled code is written into the cache."""
    with ExitStack() as held:
        # A file system without locks is no reason not to cache.
        with suppress(OSError):
            fcntl.flock(held.enter_context(open(f"{cache_folder()}/lock", "ab")), fcntl.LOCK_EX)
        yield


def _kept(compiled: Any) -> Any:
    """Let one process at a time write variants of a kernel into the cache.

    Numba numbers the file of a variant after those in the index that it has just read.  Of two processes that save their
    first variants at once, one would otherwise find the other's code under its own signature, and run it.
    """
    cache = getattr(compiled, "_cache", None)
    if cache is not None and cache_folder() is not None:
        save = cache.save_overload

        def save_alone(signature: Any, data: Any) -> None:
            with saving():
                save(signature, data)

        cache.save_overload = save_alone
    return compiled


_WHEN_LOADED: list[Callable[[], None]] = []


def load() -> None:
    """Load the compiler now, so that nothing runs as plain Python to save that."""
    if not IS_PLAIN:
        _numba()


def is_loaded() -> bool:
    """Tell whether the compiler is there already, or nothing is compiled at all."""
    return IS_PLAIN or _numba.cache_info().currsize > 0


def when_loaded(tell: Callable[[], None]) -> None:
    """Let a function be called when the compiler is loaded: now, or before a kernel is first called compiled."""
    if is_loaded():
        tell()
    else:
        _WHEN_LOADED.append(tell)


@cache
def _numba() -> Any:
    """Load the compiler; from then on it takes a :class:`Kernel` that another one calls for what it compiles to."""
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


class Kernel:
    """A kernel: ``py_func`` as it was written, ``compiled`` from its first call on."""

    def __init__(self, function: FunctionType, **options: Any) -> None:
        self.py_func = function
        self.__wrapped__ = function
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self._options = options

    @cached_property
    def compiled(self) -> Any:
        """What Numba makes of it."""
        njit: Any = _numba().njit
        return _kept(njit(cache=cache_folder() is not None, nogil=True, **self._options)(self.py_func))

    @property
    def signatures(self) -> list[Any]:
        """The types for which it was compiled, or loaded, in this process."""
        return self.compiled.signatures if "compiled" in vars(self) else []

    def __call__(self, *arguments: Any) -> Any:
        """Call it compiled."""
        return self.compiled(*arguments)


def kernel(function: Function) -> Function:
    """Compile ``function`` with Numba on its first call, cached on disk where a cache can be written.

    Such a kernel makes no array.  So it is compiled without Numba's reference counts: the caller holds every
    array that it is handed, and counting each of them up and down at every call cost a quarter of a replay.
    """
    return function if IS_PLAIN else cast(Function, Kernel(cast(FunctionType, function), _nrt=False))


def allocating_kernel(function: Function) -> Function:
    """Compile ``function`` like :func:`kernel`, with reference counts: for kernels that make arrays."""
    return function if IS_PLAIN else cast(Function, Kernel(cast(FunctionType, function)))


def is_warm(name: str) -> bool:
    """Tell whether the kernel of this name is likely to be on disk already (else its first call compiles)."""
    folder = cache_folder()
    return IS_PLAIN or (folder is not None and any(folder.rglob(f"*.{name}-*.nbi")))
