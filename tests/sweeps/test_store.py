"""The store of runs: what is kept stays, whatever happens to who keeps it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qbatch.model.errors import InputError, OutputError
from qbatch.sweeps.store import FILE, Kept, RunStore

WRITER = """
import sys
from pathlib import Path
from qbatch.sweeps.store import Kept, RunStore
store = RunStore(Path(sys.argv[1]))
number = 0
while True:
    store.put([(f"key {number}", Kept({"wait": number / 7}))])
    print(number, flush=True)
    number += 1
"""


def test_what_is_kept_is_found_and_replaced(tmp_path: Path) -> None:
    with RunStore(tmp_path / "runs") as store:
        store.put([("a", Kept({"x": 1.5, "y": None})), ("b", Kept(None, "ValueError: no", 0.25))])
        store.put([("a", Kept({"x": 2}))])
    with RunStore(tmp_path / "runs") as store:
        assert store.find(["b", "a", "c"]) == {"a": Kept({"x": 2}), "b": Kept(None, "ValueError: no", 0.25)}
        assert len(store) == 2


@settings(max_examples=25)
@given(st.dictionaries(st.text(min_size=1), st.floats(allow_nan=False) | st.none() | st.integers(-(2**53), 2**53), max_size=40))
def test_every_value_comes_back_the_same(tmp_path_factory: pytest.TempPathFactory, values: dict[str, float]) -> None:
    with RunStore(tmp_path_factory.mktemp("store")) as store:
        store.put((key, Kept(value)) for key, value in values.items())
        assert {key: kept.value for key, kept in store.find([*values, "\0none"]).items()} == values


def test_a_kill_loses_nothing_that_was_kept(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(folder)], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    told = [int(writer.stdout.readline()) for _ in range(200)]
    os.kill(writer.pid, signal.SIGKILL)
    told += [int(line) for line in writer.stdout.read().split()]
    writer.wait()
    writer.stdout.close()
    with RunStore(folder) as store:
        found = store.find([f"key {number}" for number in told])
        assert [found[f"key {number}"].value for number in told] == [{"wait": number / 7} for number in told]
        assert len(told) <= len(store) <= len(told) + 1


def test_one_process_at_a_time(tmp_path: Path) -> None:
    first = RunStore(tmp_path)
    with pytest.raises(OutputError, match="another process is at work there"):
        RunStore(tmp_path)
    first.close()
    RunStore(tmp_path).close()


def test_a_full_disk_is_said_and_what_was_kept_stays(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    store.put([("kept", Kept(1))])
    store._database.execute("PRAGMA max_page_count=1")
    with pytest.raises(OutputError, match=r"full.*the runs that were kept before stay"):
        store.put((f"more {number}", Kept("x" * 500)) for number in range(100))
    assert store.find(["kept", "more 0"]) == {"kept": Kept(1)}
    store.close()


def test_what_is_no_store_is_named(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"something else " * 400)
    with pytest.raises(InputError, match=r"runs\.sqlite: is no store of runs"):
        RunStore(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be made"):
        RunStore(tmp_path / "file" / "runs")
