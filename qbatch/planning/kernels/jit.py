"""The one door to the compiler: every kernel is decorated with :func:`kernel` or :func:`allocating_kernel`.

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
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])

_CONFIG: Any = numba.config
_NJIT: Any = numba.njit
_PACKAGE = Path(__file__).resolve().parents[2]
_KEPT_CACHES = 4


def kernel_sources() -> list[Path]:
    """Return every file that may hold a kernel: those in the ``kernels`` folders."""
    return sorted(_PACKAGE.glob("*/kernels/*.py"))


def sources_hash() -> str:
    """Return a short hash over the sources of all kernels and the version of the compiler."""
    digest = hashlib.sha256(f"numba {numba.__version__}".encode())
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


def _choose_cache() -> Path | None:
    if _CONFIG.DISABLE_JIT:
        return None
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    folder = (Path(chosen) / "qbatch" if chosen else cache_root()) / f"kernels-{sources_hash()}"
    is_new = not folder.exists()
    if not _writable(folder):
        return None
    if is_new:
        _forget_old_caches(folder.parent, folder)
    _CONFIG.CACHE_DIR = str(folder)
    return folder


CACHE = _choose_cache()


@contextmanager
def saving() -> Iterator[None]:
    """Hold the lock under which compiled code is written into the cache."""
    with ExitStack() as held:
        # A file system without locks is no reason not to cache.
        with suppress(OSError):
            fcntl.flock(held.enter_context(open(f"{CACHE}/lock", "ab")), fcntl.LOCK_EX)
        yield


def _kept(compiled: Any) -> Any:
    """Let one process at a time write variants of a kernel into the cache.

    Numba numbers the file of a variant after those in the index that it has just read.  Of two processes that save their
    first variants at once, one would otherwise find the other's code under its own signature, and run it.
    """
    cache = getattr(compiled, "_cache", None)
    if CACHE is not None and cache is not None:
        save = cache.save_overload

        def save_alone(signature: Any, data: Any) -> None:
            with saving():
                save(signature, data)

        cache.save_overload = save_alone
    return compiled


def kernel(function: Function) -> Function:
    """Compile ``function`` with Numba on its first call, cached on disk where a cache can be written.

    Such a kernel makes no array.  So it is compiled without Numba's reference counts: the caller holds every
    array that it is handed, and counting each of them up and down at every call cost a quarter of a replay.
    """
    compiled = _kept(_NJIT(cache=CACHE is not None, nogil=True, _nrt=False)(function))
    return cast(Function, compiled)


def allocating_kernel(function: Function) -> Function:
    """Compile ``function`` like :func:`kernel`, with reference counts: for kernels that make arrays."""
    compiled = _kept(_NJIT(cache=CACHE is not None, nogil=True)(function))
    return cast(Function, compiled)


def is_warm(name: str) -> bool:
    """Tell whether the kernel of this name is likely to be on disk already (else its first call compiles)."""
    return bool(_CONFIG.DISABLE_JIT) or (CACHE is not None and any(CACHE.rglob(f"*.{name}-*.nbi")))
