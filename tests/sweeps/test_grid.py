"""What a grid says, in a file or as options, and what is refused of it."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbatch.model.errors import InputError, UsageError
from qbatch.sweeps.grid import AXES, OPTIONS, Grid, grid_of, read_grid


def of(**keys: object) -> Grid:
    return grid_of({"log": "a.swf", **keys}, "test")


def test_a_grid_is_lists_values_and_ranges() -> None:
    grid = of(
        load="0.7:1.1:0.05",
        seed=["1:3", 9],
        policy=["easy", "fcfs"],
        estimates="f:2",
        warmup="1d",
        kill=False,
    )
    assert grid.load == (0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0, 1.05, 1.1)
    assert grid.seed == (1, 2, 3, 9)
    assert (grid.policy, grid.estimates, grid.warmup, grid.kill) == (
        ("easy", "fcfs"),
        ("f:2",),
        86400.0,
        False,
    )
    assert grid.varying == ("load", "seed", "policy")


@given(st.integers(1, 200), st.integers(0, 60), st.integers(1, 40))
def test_a_range_of_loads_has_both_ends_and_no_rounding(first: int, steps: int, step: int) -> None:
    low, by = Decimal(first) / 100, Decimal(step) / 100
    text = f"{low}:{low + steps * by}:{by}"
    assert of(load=text).load == tuple(float(low + place * by) for place in range(steps + 1))


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"polcy": "easy"}, r"test: polcy: is not an axis.*did you mean 'policy'"),
        ({"policy": []}, r"test: policy: is empty"),
        ({"policy": ["easy", "easy"]}, r"test: policy: easy occurs twice"),
        ({"load": "0.7:1.1"}, r"test: load: '0.7:1.1' is not a load"),
        ({"load": "1.1:0.7:0.1"}, r"holds no load"),
        ({"load": "0:1:0.5"}, r"load: 0.0 is not a load"),
        ({"load": "nan"}, r"is not a load"),
        ({"load": True}, r"is not a load"),
        ({"seed": "5:1"}, r"holds no seed"),
        ({"seed": -1}, r"is not a seed"),
        ({"seed": "1:2:3"}, r"is not a seed"),
        ({"estimates": ""}, r"an empty text"),
        ({"estimates": 2.5}, r"is not a text"),
        ({"window": 100}, r"window: '100' is not a span"),
        ({"first": 0}, r"first: 0 is not a number of jobs"),
        ({"warmup": "2y"}, r"warmup: '2y' is not a time"),
        ({"audit": 1}, r"audit: 1 is neither true nor false"),
        ({"log": []}, r"log: is empty"),
    ],
)
def test_what_is_refused_is_named_with_its_place(keys: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        of(**keys)


def test_a_grid_without_a_log_is_refused_in_the_words_of_the_command_line() -> None:
    with pytest.raises(UsageError, match="--log is missing"):
        grid_of({}, "qbatch sweep", form="--{}")


def test_a_file_is_read_and_its_logs_lie_next_to_it(tmp_path: Path) -> None:
    (tmp_path / "log.swf").write_text("")
    path = tmp_path / "study.toml"
    path.write_text(
        'schema = 1\nout = "study"\nlog = ["log.swf", "lublin:jobs=50"]\nload = "0.9:1:0.1"\n'
    )
    keys, out = read_grid(str(path))
    assert keys == {"log": [str(tmp_path / "log.swf"), "lublin:jobs=50"], "load": "0.9:1:0.1"}
    assert out == str(tmp_path / "study")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("log = 'a'", "does not contain schema = 1"),
        ("schema = 2\nlog = 'a'", "contains schema = 2"),
        ("schema = 1\nlog = a\n", "is not TOML.*line 2"),
        ("schema = 1\nout = 3", "out = 3 is not the name"),
    ],
)
def test_a_file_that_is_none_is_named(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "study.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=f"study.toml: {said}"):
        read_grid(str(path))
    with pytest.raises(InputError, match="cannot be read"):
        read_grid(str(tmp_path / "none.toml"))


def test_every_axis_and_option_is_a_field_of_the_grid() -> None:
    assert set(Grid.__struct_fields__) == {*AXES, *OPTIONS}
