"""Kernels as object code: what Numba has made, called without it, gives what Numba gives."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from qbatch.planning.kernels import jit, native
from tests.daemon.harness import ROOT

pytestmark = [
    pytest.mark.skipif(jit.IS_PLAIN, reason="nothing is compiled here"),
    pytest.mark.skipif(
        bool(native._unlisted()), reason="with these versions of Numba and llvmlite nothing is kept"
    ),
]


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
    """Return a function as object code, for such arguments, from a folder that was checked; None
    where it is not kept."""
    (folder / "kept-objects").write_text(native._PASSED, encoding="utf-8")
    return kept_unchecked(folder, function, *arguments)


def kept_unchecked(
    folder: Path, function: Callable[..., Any], *arguments: Any
) -> Callable[..., Any] | None:
    import numba

    compiled = numba.njit(function)
    compiled.compile(tuple(map(numba.typeof, arguments)))
    variant = native.described(arguments)
    assert variant is not None
    native.keep(
        folder, function.__name__, variant, compiled.overloads[compiled.signatures[0]], arguments
    )
    return native.find(folder, function.__name__, variant)


def same(first: Any, second: Any) -> bool:
    if isinstance(first, tuple):
        return len(first) == len(second) and all(map(same, first, second))
    return type(first) is type(second) and np.array_equal(
        first, second, equal_nan=isinstance(first, float)
    )


_FOUND: dict[Path, Any] = {}


@given(
    arrays(np.int64, st.integers(0, 6), elements=st.integers(-(2**40), 2**40)),
    arrays(np.float64, st.tuples(st.just(2), st.integers(0, 4)), elements=st.floats(-1e9, 1e9)),
    st.booleans(),
    st.integers(-(2**40), 2**40),
    st.floats(allow_nan=False, allow_infinity=False),
)
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_it_takes_and_gives_what_numba_does(
    tmp_path_factory: pytest.TempPathFactory,
    first: Any,
    second: Any,
    flag: bool,
    many: int,
    much: float,
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
def test_what_is_returned_in_another_form_is_left_to_numba(
    function: Callable[..., Any], tmp_path: Path
) -> None:
    assert kept(tmp_path, function, np.arange(6)) is None
    assert not list(tmp_path.glob("*.object"))


@pytest.mark.parametrize(
    "value",
    ["text", None, 2**63, [1], {}, (), np.array(["a"]), np.arange(3, dtype=">i8"), np.float32(1)],
)
def test_what_is_taken_in_another_form_is_left_to_numba(value: Any) -> None:
    assert native.described((1, value)) is None
    assert native.described((1, (2, value))) is None


def test_arguments_of_other_types_are_other_variants() -> None:
    values = np.arange(6).reshape(2, 3)
    frozen = values.copy()
    frozen.flags.writeable = False
    several = [Columns(values, 1, 1), (values, 1, 1), (1, 1)]
    kinds = [
        values,
        values.T,
        values[:, ::2],
        frozen,
        values.astype(float),
        values[0],
        *several,
        1,
        1.0,
        True,
    ]
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


def test_another_processor_has_objects_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert kept(tmp_path, number, np.arange(6)) is not None
    monkeypatch.setattr(native, "_target", lambda: ("another", "processor", ""))
    assert native.find(tmp_path, "number", str(native.described((np.arange(6),)))) is None


def test_a_convention_that_is_not_the_known_one_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flattened = native._flattened

    def without_owner(value: Any) -> Any:
        parts = list(flattened(value))
        return iter(parts[1:] if isinstance(value, np.ndarray) else parts)

    monkeypatch.setattr(native, "_flattened", without_owner)
    assert kept(tmp_path, number, np.arange(6)) is None


RECORD = np.dtype(
    [("since", np.int64), ("weight", np.float64), ("is_open", np.bool_), ("kind", np.int8)],
    align=True,
)


def advanced(jobs: Any, is_open: Any, kinds: Any, since: Any, weights: Any) -> Any:
    """Read and write records, and arrays of each type of their fields."""
    total, weight = 0, 0.0
    for row in range(jobs.shape[0]):
        job = jobs[row]
        if job.is_open != is_open[row]:
            job.since += since[row]
            job.kind = kinds[row]
        job.weight *= weights[row]
        is_open[row], kinds[row] = not is_open[row], job.kind + 1
        total += job.since * job.kind
        weight += job.weight
    return total, weight


@given(st.integers(0, 5), st.integers(0, 2**31))
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_records_and_arrays_of_small_types_are_taken(
    tmp_path_factory: pytest.TempPathFactory, count: int, seed: int
) -> None:
    import numba

    draw = np.random.default_rng(seed)
    jobs = np.frombuffer(bytearray(RECORD.itemsize * count), RECORD)
    jobs["since"], jobs["weight"] = draw.integers(-100, 100, count), draw.random(count)
    jobs["is_open"], jobs["kind"] = draw.random(count) < 0.5, draw.integers(-50, 50, count)
    others = (
        draw.random(count) < 0.5,
        draw.integers(-50, 50, count).astype(np.int8),
        draw.integers(0, 2**40, count),
    )
    arguments = (jobs, *others, draw.random(count))
    again = tuple(each.copy() for each in arguments)
    folder = tmp_path_factory.getbasetemp() / "records"
    if folder not in _FOUND:
        folder.mkdir()
        _FOUND[folder] = kept(folder, advanced, *arguments), numba.njit(advanced)
    found, compiled = _FOUND[folder]
    assert found is not None
    assert same(found(*arguments), compiled(*again))
    assert all(map(np.array_equal, arguments, again))


def test_records_of_other_fields_are_other_variants() -> None:
    types = [
        RECORD,
        [("a", "<i8"), ("b", "<i8")],
        [("a", "<i8"), ("c", "<i8")],
        [("b", "<i8"), ("a", "<i8")],
        [("a", "<i8"), ("b", "<f8")],
        [("a", "<i8", (2,)), ("b", "<i8")],
        [("a", "<i8"), ("b", "<i4")],
        np.dtype([("a", "<i8"), ("b", "<i4")], align=True),
        {"names": ["a", "b"], "formats": ["<i8", "<i8"], "offsets": [8, 0]},
        [("a", [("b", "<i8")]), ("c", "<i8")],
        {"names": ["a", "b"], "formats": ["<i8", "<i8"], "itemsize": 24},
        {"names": ["a", "b"], "formats": ["<i8", "<i8"], "offsets": [0, 4]},
    ]
    found = {native.described((np.zeros(2, np.dtype(each)),)) for each in types}
    assert len(found) == len(types)
    assert None not in found
    for wrong in (
        [("a", ">i8")],
        [("a", "O")],
        [("a", [("b", ">i8")])],
        "V8",
        "U3",
        "M8[s]",
        "c16",
    ):
        assert native.described((np.zeros(2, np.dtype(wrong)),)) is None


# Where it is not safe, nothing is kept and nothing is called


def is_refused(folder: Path) -> bool:
    """Return whether an object that is in a folder is not called, and no other is kept there."""
    variant = str(native.described((np.arange(6),)))
    assert native._find(folder, "number", variant) is not None
    is_called = native.find(folder, "number", variant) is not None
    assert is_called == native.is_kept(folder, "number")
    assert is_called == (kept_unchecked(folder, whole, np.arange(6)) is not None)
    assert is_called == any(folder.glob("whole-*.object"))
    return not is_called


@pytest.fixture
def list_versions(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Return a function that sets the list of versions."""

    def set_list(*pairs: tuple[str, str]) -> None:
        monkeypatch.setattr(native, "LISTED", pairs)
        native._unlisted.cache_clear()

    yield set_list
    monkeypatch.undo()
    native._unlisted.cache_clear()


def test_the_versions_of_the_constraints_are_listed() -> None:
    pinned = dict(
        line.split("==")
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if "==" in line
    )
    assert (pinned["numba"], pinned["llvmlite"]) in native.LISTED


@pytest.mark.parametrize("which", ["numba", "llvmlite"])
def test_with_versions_that_are_not_listed(
    which: str, tmp_path: Path, list_versions: Callable[..., None]
) -> None:
    numba, llvmlite = version("numba"), version("llvmlite")
    assert kept(tmp_path, number, np.arange(6)) is not None
    list_versions(("0.1", llvmlite) if which == "numba" else (numba, "0.1"), ("0.2", "0.3"))
    assert is_refused(tmp_path)
    first = (
        f"numba=={'0.1' if which == 'numba' else numba} "
        f"llvmlite=={'0.1' if which == 'llvmlite' else llvmlite}"
    )
    said = (
        f"Numba {numba} with llvmlite {llvmlite} was not tried; install {first} or numba==0.2 "
        "llvmlite==0.3"
    )
    assert native.refusal(tmp_path) == said
    list_versions((numba, llvmlite))
    assert not is_refused(tmp_path)


def test_a_new_folder_is_checked_when_something_is_kept_there(tmp_path: Path) -> None:
    assert kept(tmp_path, number, np.arange(6)) is not None
    mark = tmp_path / "kept-objects"
    mark.unlink()
    assert native.refusal(tmp_path) is None
    assert native.find(tmp_path, "number", str(native.described((np.arange(6),)))) is None
    assert kept_unchecked(tmp_path, whole, np.arange(6)) is not None
    assert native.refusal(tmp_path) == ""
    assert mark.read_text(encoding="utf-8") == native._PASSED


def wrong_number(word: str, place: Any, arguments: Any) -> Any:
    return _VALUE(word, place, arguments) if word != "i" else 7


def wrong_array(word: str, place: Any, arguments: Any) -> Any:
    found = _VALUE(word, place, arguments)
    return found + 1 if isinstance(found, np.ndarray) else found


def of_another_type(word: str, place: Any, arguments: Any) -> Any:
    return float(_VALUE(word, place, arguments)) if word == "i" else _VALUE(word, place, arguments)


def failing(word: str, place: Any, arguments: Any) -> Any:
    raise RuntimeError("no such thing")


_VALUE = native._value


@pytest.mark.parametrize(
    ("name", "wrong", "said"),
    [
        ("_value", wrong_number, "the sample kernel does not give what Numba gives"),
        ("_value", wrong_array, "the sample kernel does not give what Numba gives"),
        ("_value", of_another_type, "the sample kernel does not give what Numba gives"),
        ("_value", failing, "the check of the sample kernel failed (RuntimeError: no such thing)"),
        ("_linked", lambda *_: None, "the sample kernel cannot be kept and loaded here"),
        ("_result_word", lambda _: None, "the sample kernel cannot be kept and loaded here"),
    ],
)
def test_after_a_check_that_failed(
    name: str, wrong: Any, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert kept(tmp_path, number, np.arange(6)) is not None
    (tmp_path / "kept-objects").unlink()
    monkeypatch.setattr(native, name, wrong)
    native._check(tmp_path)
    monkeypatch.undo()
    assert native.refusal(tmp_path) == f"{said}; remove {tmp_path} to have it checked again"
    assert is_refused(tmp_path)


def test_a_kernel_that_does_not_change_its_argument_fails_the_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = native._run
    copying = lambda name, word, library, function, number, values, both: run(  # noqa: E731
        name, word, library, function, number, values.copy(), both
    )
    monkeypatch.setattr(native, "_run", copying)
    native._check(tmp_path)
    assert str(native.refusal(tmp_path)).startswith(
        "the sample kernel does not give what Numba gives"
    )


DIES = """
import os, sys
from pathlib import Path
from qbatch.planning.kernels import native
native._value = lambda *_: os._exit(9)
native._check(Path(sys.argv[1]))
"""


def test_after_a_check_that_ended_the_process(tmp_path: Path) -> None:
    assert kept(tmp_path, number, np.arange(6)) is not None
    (tmp_path / "kept-objects").unlink()
    assert subprocess.run([sys.executable, "-c", DIES, str(tmp_path)], check=False).returncode == 9
    assert (
        native.refusal(tmp_path)
        == f"the call of the sample kernel did not end; remove {tmp_path} to have it checked again"
    )
    assert is_refused(tmp_path)


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
