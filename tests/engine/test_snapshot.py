"""A dump holds everything: the engine that is loaded from it does to the bit what the other one
does."""

from __future__ import annotations

import enum
import hashlib
from collections import Counter
from typing import NamedTuple

import msgspec
import numpy as np
import pytest

from qbatch.engine import plain, snapshot
from qbatch.engine.engine import Engine
from qbatch.model.errors import InputError
from qbatch.model.machine import one_host
from qbatch.planning.policy import Policy
from qbatch.policies import load_policy
from tests.engine.live import MACHINES, Life, Slices, pairs
from tests.harness import draws


def policy_of(name: str) -> Policy:
    return Slices() if name == "slices" else load_policy(name)


@pytest.mark.parametrize(("name", "where"), pairs("slices"))
def test_a_loaded_engine_goes_on_as_the_other_one(name: str, where: str) -> None:
    machine = MACHINES[where]
    for seed in range(draws(5, name)):
        life = Life(seed, machine)
        engine, duplicate = Engine(machine, policy_of(name), is_audited=True), None
        split = life.rng.randint(0, 40)
        for step in range(60):
            if step == split:
                data = snapshot.dump(engine)
                duplicate = snapshot.load(machine, policy_of(name), data, is_audited=True)
                assert snapshot.dump(duplicate) == data
            drawn = life.next(engine)
            assert drawn is not None
            done = engine.handle(*drawn)
            if duplicate is not None:
                assert duplicate.handle(*drawn) == done, (seed, step)
                assert duplicate.next_timer() == engine.next_timer()
            life.account(engine, done)
        assert duplicate is not None
        assert snapshot.dump(duplicate) == snapshot.dump(engine), seed


@pytest.mark.parametrize("name", ["fcfs", "conservative"])
def test_damaged_bytes_are_refused(name: str) -> None:
    machine = one_host(8)
    life, engine = Life(3, machine), Engine(machine, load_policy(name))
    for _ in range(20):
        drawn = life.next(engine)
        assert drawn is not None
        life.account(engine, engine.handle(*drawn))
    data = snapshot.dump(engine)
    for length in [*range(0, len(data), 37), len(data) - 1]:
        with pytest.raises(InputError):
            snapshot.load(machine, load_policy(name), data[:length])
    for place in range(0, len(data), 23):
        wrong = bytearray(data)
        wrong[place] ^= 0x41
        with pytest.raises(InputError):
            snapshot.load(machine, load_policy(name), bytes(wrong))
    with pytest.raises(InputError, match="another machine"):
        snapshot.load(one_host(9), load_policy(name), data)
    with pytest.raises(InputError, match="of the policy"):
        snapshot.load(machine, load_policy("easy"), data)


class Colour(enum.Enum):
    RED = 1


class Pair(NamedTuple):
    one: int
    other: object


class Record(msgspec.Struct, frozen=True):
    name: str
    values: tuple[int, ...]


class Slotted:
    __slots__ = ("__hidden", "shown", "unset")

    def __init__(self) -> None:
        self.__hidden = [1]
        self.shown = Pair(1, Colour.RED)


class Tree:
    def __init__(self) -> None:
        shared = np.arange(6, dtype=np.int32).reshape(2, 3)
        self.arrays = [shared, shared, np.array([True, False]), np.zeros((0, 4))]
        self.fields = np.array(
            [(1, 2.5), (-3, 4.5)], np.dtype([("small", np.int8), ("size", np.float64)])
        )
        self.own = self
        self.slots = Slotted()
        self.values = {
            1: "a",
            "b": 2**70,
            (3, "c"): -(2**64),
            None: 1.5,
            2.5: b"x",
            False: float("inf"),
        }
        self.sets = [{1, "x", (2, frozenset({3}))}, frozenset(), bytearray(b"yz")]
        self.record = Record("r", (1, 2))
        self.scalar = np.float32(1.5)


MODULE = __name__


def test_any_plain_value_is_written_and_read_back() -> None:
    tree = Tree()
    data = plain.encode(tree, MODULE)
    again = plain.decode(data, MODULE)
    assert plain.encode(again, MODULE) == data
    assert again.own is again
    assert again.arrays[0] is again.arrays[1]
    assert again.arrays[0].dtype == np.int32
    assert again.arrays[0].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert again.fields.tolist() == tree.fields.tolist()
    assert again.fields[1].small == -3
    assert again.values == tree.values
    assert again.sets == tree.sets
    assert (again.record, again.scalar) == (tree.record, tree.scalar)
    assert type(again.scalar) is np.float32
    assert again.slots.shown == Pair(1, Colour.RED)
    assert again.slots._Slotted__hidden == [1]
    assert not hasattr(again.slots, "unset")


def test_what_is_not_plain_is_refused_by_name() -> None:
    class Local:
        pass

    for value, reason in (
        (Counter(), "Counter"),
        (Local(), "move it out"),
        (len, "builtin"),
        (lambda: 0, "function"),
        (np.array([object()]), "array of object"),
        (np.zeros(1, np.dtype([("pair", np.int64, 2)])), "pair"),
        (Tree, "type"),
    ):
        with pytest.raises(InputError, match=reason):
            plain.encode([value], MODULE)


@pytest.mark.parametrize(
    "tree",
    [
        ["o", "os", "PathLike"],
        ["o", "subprocess", "Popen", "args", "true"],
        ["o", "qbatch.engine.plain", "importlib"],
        ["o", "qbatch.engine.plain", "Enum"],
        ["e", "qbatch.engine.states", "State", "NO_SUCH"],
        ["m", "qbatch.engine.states", "State"],
        ["o", "qbatch.no_such_module", "X"],
        ["r", 5],
        ["?", 1],
        [],
        ["d", 1],
        ["a", "|O", [1], True, b"12345678"],
        ["M", "qbatch.model.actions", "Chunk", 3, 2, 10],
    ],
)
def test_bytes_that_name_what_may_not_be_made_are_refused(tree: list[object]) -> None:
    with pytest.raises(InputError):
        plain.decode(msgspec.msgpack.encode(tree), MODULE)


def test_another_format_is_refused_by_name() -> None:
    machine = one_host(8)
    data = snapshot.dump(Engine(machine, load_policy("fcfs")))
    start = snapshot._START
    other = msgspec.msgpack.encode({**msgspec.msgpack.decode(data[start:]), "format": 2})
    with pytest.raises(
        InputError, match="the snapshot has format 2; this version of qbatch reads 8"
    ):
        snapshot.load(
            machine, load_policy("fcfs"), snapshot._MARK + hashlib.sha256(other).digest() + other
        )
