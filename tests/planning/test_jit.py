"""The cache of compiled kernels is written by one process at a time."""

from __future__ import annotations

import fcntl
import logging
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from qbatch.daemon.warm import BIG, Warming
from qbatch.model.errors import InputError
from qbatch.planning.kernels import entries, jit
from qbatch.wire.paths import cache_directory
from tests.harness import OWN_TRACES

COMPILE = """
import sys
from qbatch.planning.kernels import jit, order
import numpy as np
jit.load()
print("ready", flush=True)
sys.stdin.readline()
order.stable_order(np.arange(5.0))
print(sum(order.stable_order.compiled.stats.cache_misses.values()))
"""


@pytest.mark.skipif(jit.IS_PLAIN, reason="nothing is compiled here")
def test_a_kernel_is_compiled_by_one_process_and_loaded_by_others_that_want_it_at_the_same_time(
    tmp_path: Path,
) -> None:
    environment = os.environ | {"QBATCH_CACHE": str(tmp_path)}
    environment.pop("NUMBA_CACHE_DIR", None)
    streams: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    both = [
        subprocess.Popen([sys.executable, "-c", COMPILE], env=environment, **streams)
        for _ in range(2)
    ]
    for process in both:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in both:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    assert sorted(int(process.communicate()[0]) for process in both) == [0, 1]


def times(factor: float) -> Any:
    """Return a kernel that closes over a number, and returns an array of its type."""

    @jit.allocating_kernel
    def multiplied(values: Any) -> Any:
        return values * factor

    return multiplied


CLOSURES = """
import sys
import numpy as np
from qbatch.planning.kernels import jit
from tests.planning.test_jit import times
jit.load()
print([times(eval(word))(np.array([10]))[0].item() for word in sys.argv[1:]])
"""


@pytest.mark.skipif(jit.IS_PLAIN, reason="nothing is compiled here")
def test_kernels_of_one_factory_that_two_processes_have_compiled_are_distinguished(
    tmp_path: Path,
) -> None:
    """Numba names code by a count within its process: two that were compiled first in theirs would
    have one name in a third."""
    environment = os.environ | {"QBATCH_CACHE": str(tmp_path), "PYTHONPATH": str(OWN_TRACES.parent)}
    environment.pop("NUMBA_CACHE_DIR", None)

    def said(*words: str) -> str:
        arguments = [sys.executable, "-c", CLOSURES, *words]
        return subprocess.run(
            arguments, env=environment, capture_output=True, text=True, check=True
        ).stdout

    assert said("2") == "[20]\n"
    assert said("0.5") == "[5.0]\n"
    assert said("2", "0.5") == "[20, 5.0]\n"
    assert said("0.5", "2") == "[5.0, 20]\n"


@pytest.mark.skipif(
    jit.cache_folder() is None, reason="kernels are not compiled here, or there is no cache"
)
def test_the_lock_of_a_kernel_is_taken_once_by_a_process(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(jit, "cache_folder", lambda: tmp_path)

    def is_locked() -> bool:
        with open(tmp_path / "some.kernel.lock", "ab") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            return False

    with jit._locked("some.kernel"):
        with jit._locked("some.kernel"):  # a kernel that a kernel of the same factory calls
            assert is_locked()
        assert is_locked()
    assert not is_locked()


def test_the_cache_is_where_all_caches_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("QBATCH_CACHE", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HOME", "XDG_CACHE_HOME", "QBATCH_CACHE"):
        monkeypatch.setenv(name, str(tmp_path / name))
        assert jit.cache_root() == cache_directory()
    assert jit.cache_root() == tmp_path / "QBATCH_CACHE"


@pytest.fixture
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return where the folder of the kernels is to be, two folders above it missing too."""
    if jit.IS_PLAIN:
        pytest.skip("nothing is compiled here")
    monkeypatch.setenv("QBATCH_CACHE", str(tmp_path / "new" / "cache"))
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    return tmp_path / "new" / "cache" / f"kernels-{jit.sources_hash()}"


def found_cache() -> Path | None:
    """Return the folder of the kernels, looked for anew."""
    return jit.cache_folder.__wrapped__()


@pytest.mark.parametrize("mask", [0, 0o022, 0o777])
def test_the_cache_is_for_its_user_alone_whatever_the_umask_is(own_cache: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        assert found_cache() == own_cache
    finally:
        os.umask(before)
    made = (own_cache, own_cache.parent, own_cache.parent.parent)
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in made] == [0o700] * 3


@pytest.mark.parametrize("which", ["folder", "above", "file", "object", "file of Numba"])
def test_a_cache_to_which_others_may_write_is_refused_by_name(own_cache: Path, which: str) -> None:
    assert found_cache() == own_cache
    own_cache.chmod(0o755)
    files = {
        "file": "kernel.nbi",
        "object": "kernel-0123.object",
        "file of Numba": "kernels_0123/kernel.nbi",
    }
    (own_cache / "kernels_0123").mkdir(mode=0o755)
    for name in files.values():
        (own_cache / name).touch(mode=0o644)
    assert found_cache() == own_cache
    unsafe = {"folder": own_cache, "above": own_cache.parent}.get(which) or own_cache / files[which]
    unsafe.chmod(unsafe.stat().st_mode | 0o002)
    with pytest.raises(InputError) as caught:
        found_cache()
    which = "it" if unsafe == own_cache else str(unsafe)
    assert str(caught.value).startswith(
        f"{own_cache}: the compiled kernels there are not run: others may write to {which}"
    )
    assert "set QBATCH_CACHE" in str(caught.value)


@pytest.mark.skipif(os.getuid() != 0, reason="needs root: files of other users")
def test_a_cache_of_another_user_is_refused(own_cache: Path) -> None:
    assert found_cache() == own_cache
    os.chown(own_cache, 30002, 30002)
    with pytest.raises(InputError, match="are not run: it belongs to user 30002"):
        found_cache()


def test_a_command_that_needs_kernels_says_so(own_cache: Path) -> None:
    found_cache()
    own_cache.chmod(0o777)
    words = [sys.executable, "-m", "qbatch", "replay", str(OWN_TRACES / "tiny.txt"), "-p", "easy"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (3, "")
    said = done.stderr.splitlines()[-1]
    assert said.startswith(
        f"qbatch: {own_cache}: the compiled kernels there are not run: others may write to it; "
    )
    assert "Traceback" not in done.stderr


def test_a_daemon_then_serves_with_plain_kernels(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    found_cache()
    own_cache.chmod(0o777)
    monkeypatch.setattr(jit, "cache_folder", jit.cache_folder.__wrapped__)
    warming = Warming(["easy"])
    try:
        warming.before_the_first_pass(BIG)
    finally:
        entries.serve_compiled()
    assert not warming.is_over()
    (record,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert record.getMessage().endswith(
        "to a folder of your own; the plain form of the kernels serves"
    )


def picking(places: tuple[int, ...]) -> Any:
    """Return a kernel that closes over what has no name on disk."""

    @jit.kernel
    def picked(value: int) -> int:
        return places[value]

    return picked


@pytest.mark.skipif(jit.IS_PLAIN, reason="nothing is compiled here")
def test_a_kernel_that_cannot_be_distinguished_from_another_is_not_kept() -> None:
    first, second = picking((5, 6)), picking((7, 8))
    assert (first(1), second(1)) == (6, 8)
    space: dict[str, Any] = {"__name__": "nowhere"}
    for added in (1, 2):
        exec(f"def plus(value):\n    return value + {added}\n", space)
        unread = jit.kernel(space["plus"])
        assert unread(1) == 1 + added
        assert type(unread.compiled._cache).__name__ == "NullCache"
    assert type(first.compiled._cache).__name__ == "NullCache"
