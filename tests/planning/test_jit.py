"""The cache of compiled kernels is written by one process at a time."""

from __future__ import annotations

import fcntl
from pathlib import Path
from types import SimpleNamespace

import pytest

from qbatch.planning.kernels import jit, order, running
from qbatch.wire.paths import cache_directory


def is_locked(folder: Path) -> bool:
    with open(folder / "lock", "ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


def test_a_variant_is_saved_while_no_other_process_can_save(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit, "cache_folder", lambda: tmp_path)
    seen = []
    compiled = SimpleNamespace(_cache=SimpleNamespace(save_overload=lambda *_: seen.append(is_locked(tmp_path))))
    jit._kept(compiled)._cache.save_overload("signature", "code")
    assert seen == [True]
    assert not is_locked(tmp_path)


@pytest.mark.skipif(jit.cache_folder() is None, reason="kernels are not compiled here, or there is no cache")
def test_every_kernel_saves_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(jit, "cache_folder", lambda: tmp_path)
    for kernel in (order.stable_order, running.enter):
        with pytest.raises(AttributeError):  # what is no code cannot be saved, but the lock comes first
            kernel.compiled._cache.save_overload("no signature", None)  # type: ignore[attr-defined]
        (tmp_path / "lock").unlink()


def test_the_cache_is_where_all_caches_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("QBATCH_CACHE", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HOME", "XDG_CACHE_HOME", "QBATCH_CACHE"):
        monkeypatch.setenv(name, str(tmp_path / name))
        assert jit.cache_root() == cache_directory()
    assert jit.cache_root() == tmp_path / "QBATCH_CACHE"
