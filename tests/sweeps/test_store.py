"""The store of runs: what is kept stays, whatever happens to the process that keeps it."""

from __future__ import annotations

import logging
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qbatch.model.errors import InputError, OutputError
from qbatch.sweeps.store import FILE, CachedRun, RunStore

WRITER = """
import sys
from pathlib import Path
from qbatch.sweeps.store import CachedRun, RunStore
store = RunStore(Path(sys.argv[1]))
number = 0
while True:
    store.put([(f"key {number}", CachedRun({"wait": number / 7}))])
    print(number, flush=True)
    number += 1
"""


def test_what_is_kept_is_found_and_replaced(tmp_path: Path) -> None:
    with RunStore(tmp_path / "runs") as store:
        store.put(
            [
                ("a", CachedRun({"x": 1.5, "y": None})),
                ("b", CachedRun(None, "ValueError: no", 0.25)),
            ]
        )
        store.put([("a", CachedRun({"x": 2}))])
    with RunStore(tmp_path / "runs") as store:
        assert store.find(["b", "a", "c"]) == {
            "a": CachedRun({"x": 2}),
            "b": CachedRun(None, "ValueError: no", 0.25),
        }
        assert len(store) == 2


@settings(max_examples=25)
@given(
    st.dictionaries(
        st.text(min_size=1),
        st.floats(allow_nan=False) | st.none() | st.integers(-(2**53), 2**53),
        max_size=40,
    )
)
def test_every_value_comes_back_the_same(
    tmp_path_factory: pytest.TempPathFactory, values: dict[str, float]
) -> None:
    with RunStore(tmp_path_factory.mktemp("store")) as store:
        store.put((key, CachedRun(value)) for key, value in values.items())
        assert {key: kept.value for key, kept in store.find([*values, "\0none"]).items()} == values


def test_a_kill_loses_nothing_that_was_kept(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder)], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    written = [int(writer.stdout.readline()) for _ in range(200)]
    os.kill(writer.pid, signal.SIGKILL)
    written += [int(line) for line in writer.stdout.read().split()]
    writer.wait()
    writer.stdout.close()
    with RunStore(folder) as store:
        found = store.find([f"key {number}" for number in written])
        assert [found[f"key {number}"].value for number in written] == [
            {"wait": number / 7} for number in written
        ]
        assert len(written) <= len(store) <= len(written) + 1


def test_one_process_at_a_time(tmp_path: Path) -> None:
    first = RunStore(tmp_path)
    with pytest.raises(OutputError, match="another process is at work there"):
        RunStore(tmp_path)
    first.close()
    RunStore(tmp_path).close()


@pytest.mark.parametrize("name", ["", FILE])
def test_a_store_that_every_user_may_write_to_is_refused(tmp_path: Path, name: str) -> None:
    with RunStore(tmp_path / "runs") as store:
        store.put([("a", CachedRun({"x": 1}))])
    place = tmp_path / "runs" / name
    mode = place.stat().st_mode
    place.chmod(mode | 0o002)
    with pytest.raises(InputError, match=rf"^{place}: every user may write to it"):
        RunStore(tmp_path / "runs")
    place.chmod(mode)
    with RunStore(tmp_path / "runs") as store:
        assert len(store) == 1


def test_a_full_disk_is_said_and_what_was_kept_stays(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    store.put([("kept", CachedRun(1))])
    store._database.execute("PRAGMA max_page_count=1")
    with pytest.raises(OutputError, match=r"full.*earlier runs stay"):
        store.put((f"more {number}", CachedRun("x" * 500)) for number in range(100))
    assert store.find(["kept", "more 0"]) == {"kept": CachedRun(1)}
    store.close()


def test_what_is_no_store_is_named(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"something else " * 400)
    with pytest.raises(InputError, match=r"runs\.sqlite: is no store of runs, or a damaged one"):
        RunStore(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be created"):
        RunStore(tmp_path / "file" / "runs")


KEPT = {
    f"{number:064x}": CachedRun(
        {"wait_mean_s": number / 7, "jobs": number, "note": "x" * 60}, None, number / 3
    )
    for number in range(40)
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    with RunStore(folder) as store:
        store.put(KEPT.items())
    return folder / FILE


def _flipped(whole: Path, folder: Path, bit: int) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    content = bytearray(whole.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    (folder / FILE).write_bytes(content)


def test_a_flipped_bit_costs_one_run_and_is_said_or_the_file_is_refused(
    whole: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder, draw = tmp_path / "runs", random.Random(3)
    size, seen, refused = 8 * whole.stat().st_size, {0: 0, 1: 0}, []
    for bit in [*range(0, 800, 3), *(draw.randrange(size) for _ in range(400))]:
        _flipped(whole, folder, bit)
        caplog.clear()
        try:
            with RunStore(folder) as store:
                found = store.find(list(KEPT))
        except InputError as error:
            refused.append(str(error))
            continue
        lost = len(KEPT) - len(found)
        assert found == {key: kept for key, kept in KEPT.items() if key in found}
        said = [
            record.getMessage() for record in caplog.records if record.levelno == logging.WARNING
        ]
        assert said == (
            [f"{folder / FILE}: 1 damaged run was removed; the sweep repeats what it needs"] * lost
        )
        seen[lost] += 1
    assert all(seen.values()), seen
    assert refused
    assert all(f"{folder / FILE}: is " in said and "name another place" in said for said in refused)


def test_the_damaged_run_is_kept_again_and_then_whole(whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    shutil.copytree(whole.parent, folder)
    database = sqlite3.connect(folder / FILE)
    key, another = list(KEPT)[7], list(KEPT)[9]
    database.execute(
        "UPDATE runs SET kept = ? WHERE key = ?", (msgspec.msgpack.encode(CachedRun(99)), key)
    )
    database.execute("UPDATE runs SET key = ? WHERE key = ?", ("f" * 64, another))
    database.commit()
    database.close()
    with RunStore(folder) as store:
        assert len(store) == len(store.find(list(KEPT))) == len(KEPT) - 2
        store.put([(key, KEPT[key]), (another, KEPT[another])])
    with RunStore(folder) as store:
        assert store.find(list(KEPT)) == KEPT


@pytest.mark.parametrize("version", [1, 3])
def test_a_store_of_another_version_is_refused(tmp_path: Path, version: int) -> None:
    database = sqlite3.connect(tmp_path / FILE)
    database.execute(f"PRAGMA user_version={version}")
    database.close()
    with pytest.raises(
        InputError, match=rf"is of another version of qbatch \({version}\); name another place"
    ):
        RunStore(tmp_path)


def test_a_store_that_may_not_be_written_is_not_called_damaged(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A format for writing that SQLite does not know: it then reads only.
    _flipped(whole, tmp_path / "runs", 8 * 18 + 4)
    with pytest.raises(InputError, match="is no store of runs, or a damaged one"):
        RunStore(tmp_path / "runs")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(OutputError, match="cannot be used"):
        RunStore(tmp_path / "runs")
