"""Kernels as object code: what Numba has made, called without it, gives what Numba gives."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from qbatch.planning.kernels import jit, native

pytestmark = pytest.mark.skipif(jit.IS_PLAIN, reason="nothing is compiled here")


class Columns(NamedTuple):
    first: Any
    second: Any
    weight: Any


def added(columns: Columns, rows: Any, flag: bool, many: int, much: float) -> Any:
    """Change what it is given, and return numbers, new memory and its argument's memory."""
    total = 0
    for row in range(columns.first.size):
        columns.first[row] += row + many
        total += columns.first[row] * (2 if flag else 1)
    new = np.empty((2, columns.second.shape[1]))
    for row in range(2):
        for place in range(columns.second.shape[1]):
            new[row, place] = columns.second[row, place] * much + columns.weight
    return flag and total > 0, total, new, rows, much * total


def nothing(values: Any) -> None:
    values[0] = 7


def number(values: Any) -> Any:
    return values[0] * 0.5


def is_long(values: Any) -> Any:
    return values.size > 3


def whole(values: Any) -> Any:
    return values


def part(values: Any) -> Any:
    return values[1::2]


def divided(values: Any) -> Any:
    return values[0] // values[1]


def text(values: Any) -> Any:
    return "long" if values.size > 3 else "short"


def nested(values: Any) -> Any:
    return values.size, (values.size, 1)


def kept(folder: Path, function: Callable[..., Any], *arguments: Any) -> Callable[..., Any] | None:
    """Return a function as object code, for such arguments; None where it is not kept."""
    import numba

    compiled = numba.njit(function)
    compiled.compile(tuple(map(numba.typeof, arguments)))
    variant = native.described(arguments)
    assert variant is not None
    native.keep(folder, function.__name__, variant, compiled.overloads[compiled.signatures[0]], arguments)
    return native.find(folder, function.__name__, variant)


def same(first: Any, second: Any) -> bool:
    if isinstance(first, tuple):
        return len(first) == len(second) and all(map(same, first, second))
    return type(first) is type(second) and np.array_equal(first, second, equal_nan=isinstance(first, float))


_FOUND: dict[Path, Any] = {}


@given(
    arrays(np.int64, st.integers(0, 6), elements=st.integers(-(2**40), 2**40)),
    arrays(np.float64, st.tuples(st.just(2), st.integers(0, 4)), elements=st.floats(-1e9, 1e9)),
    st.booleans(), st.integers(-(2**40), 2**40), st.floats(allow_nan=False, allow_infinity=False),
)  # fmt: skip
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_it_takes_and_gives_what_numba_does(
    tmp_path_factory: pytest.TempPathFactory, first: Any, second: Any, flag: bool, many: int, much: float
) -> None:
    import numba

    arguments = Columns(first, second, 1.5), np.arange(4), flag, many, much
    folder = tmp_path_factory.getbasetemp()
    if folder not in _FOUND:
        _FOUND[folder] = kept(folder, added, *arguments), numba.njit(added)
    found, compiled = _FOUND[folder]
    again = Columns(first.copy(), second.copy(), 1.5), np.arange(4), flag, many, much
    assert same(found(*arguments), compiled(*again))
    assert np.array_equal(first, again[0].first)


@pytest.mark.parametrize("function", [nothing, number, is_long, whole, part])
def test_results_of_every_kind(function: Callable[..., Any], tmp_path: Path) -> None:
    import numba

    values, other = np.arange(6), np.arange(6)
    found = kept(tmp_path, function, values)
    assert found is not None
    assert same(found(values), numba.njit(function)(other))
    assert np.array_equal(values, other)


def test_a_returned_array_lives_as_long_as_it_is_held_and_no_longer(tmp_path: Path) -> None:
    from numba.core.runtime import _nrt_python as runtime

    def doubled(values: Any) -> Any:
        return values * 2

    found = kept(tmp_path, doubled, np.arange(100))
    shared = kept(tmp_path, whole, np.arange(100))
    assert found is not None
    assert shared is not None
    result, same_memory = found(np.arange(100)), shared(np.arange(100) + 5)
    gc.collect()
    part_of_it = result[10:12]
    del result
    noise = [found(np.arange(100) + place) for place in range(50)]
    assert part_of_it.tolist() == [20, 22]
    assert same_memory[:2].tolist() == [5, 6]
    assert noise[49][0] == 98
    runtime.memsys_enable_stats()
    try:
        made, freed = runtime.memsys_get_stats_mi_alloc(), runtime.memsys_get_stats_mi_free()
        for _ in range(1000):
            found(np.arange(100))
        del noise, part_of_it
        gc.collect()
        assert runtime.memsys_get_stats_mi_alloc() - made == 1000
        assert runtime.memsys_get_stats_mi_free() - freed == 1051
    finally:
        runtime.memsys_disable_stats()


def test_a_kernel_that_fails_says_so(tmp_path: Path) -> None:
    found = kept(tmp_path, divided, np.arange(2) + 1)
    assert found is not None
    assert found(np.array([9, 2])) == 4
    with pytest.raises(RuntimeError, match="the compiled kernel divided ended with status"):
        found(np.array([9, 0]))


@pytest.mark.parametrize("function", [text, nested])
def test_what_is_returned_in_another_form_is_left_to_numba(function: Callable[..., Any], tmp_path: Path) -> None:
    assert kept(tmp_path, function, np.arange(6)) is None
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("value", ["text", None, 2**63, [1], {}, (), np.array(["a"]), np.arange(3, dtype=">i8"), np.float32(1)])
def test_what_is_taken_in_another_form_is_left_to_numba(value: Any) -> None:
    assert native.described((1, value)) is None
    assert native.described((1, (2, value))) is None


def test_arguments_of_other_types_are_other_variants() -> None:
    values = np.arange(6).reshape(2, 3)
    frozen = values.copy()
    frozen.flags.writeable = False
    several = [Columns(values, 1, 1), (values, 1, 1), (1, 1)]
    kinds = [values, values.T, values[:, ::2], frozen, values.astype(float), values[0], *several, 1, 1.0, True]
    assert len({native.described((kind,)) for kind in kinds}) == len(kinds)


@pytest.mark.parametrize("harm", ["cut", "changed", "empty"])
def test_a_damaged_object_is_not_called(harm: str, tmp_path: Path) -> None:
    assert kept(tmp_path, number, np.arange(6)) is not None
    [file] = tmp_path.glob("number-*.object")
    content = bytearray(file.read_bytes())
    if harm == "changed":
        content[len(content) // 2] ^= 1
    file.write_bytes({"cut": content[:-9], "changed": content, "empty": b""}[harm])
    assert native.find(tmp_path, "number", str(native.described((np.arange(6),)))) is None


def test_another_processor_has_objects_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert kept(tmp_path, number, np.arange(6)) is not None
    monkeypatch.setattr(native, "_target", lambda: ("another", "processor", ""))
    assert native.find(tmp_path, "number", str(native.described((np.arange(6),)))) is None


def test_a_convention_that_is_not_the_known_one_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flattened = native._flattened

    def without_owner(value: Any) -> Any:
        parts = list(flattened(value))
        return iter(parts[1:] if isinstance(value, np.ndarray) else parts)

    monkeypatch.setattr(native, "_flattened", without_owner)
    assert kept(tmp_path, number, np.arange(6)) is None


LOADED = """
import sys
import numpy as np
from qbatch.planning.kernels import order
found = [order.stable_order(np.array([3.0, 1.0, 2.0])).tolist() for _ in range(int(sys.argv[1]))]
assert all(one == [1, 2, 0] for one in found)
print(*("numba" in sys.modules, "llvmlite" in sys.modules))
"""


def test_numba_is_loaded_where_nothing_is_kept_and_where_a_kernel_is_called_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QBATCH_CACHE", str(tmp_path))
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)

    def loaded(calls: int) -> str:
        arguments = [sys.executable, "-W", "error", "-c", LOADED, str(calls)]
        done = subprocess.run(arguments, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    assert loaded(1) == "True True"
    assert loaded(1) == "False True"
    assert loaded(1001) == "True True"
    for file in tmp_path.rglob("*.object"):
        file.write_bytes(b"no code")
    assert loaded(1) == "True True"
