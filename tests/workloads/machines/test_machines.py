"""The shipped machines: the printed tables, and how a name is distinguished from a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from qbatch.model.errors import InputError
from qbatch.workloads.machines import SHIPPED, load_machine

GB = 2**30
LARGE_FIRST = ("lj", "mj", "sj")
TABLE_2 = [
    ("eir", 128, 64, LARGE_FIRST, {"lj": 3, "mj": 4}),
    ("nerthus", 128, 64, LARGE_FIRST, {"lj": 3, "mj": 4}),
    ("jord1", 128, 32, LARGE_FIRST, {"lj": 3, "mj": 4}),
    ("saga1", 128, 32, LARGE_FIRST, {"lj": 3, "mj": 4}),
    ("huldra", 128, 32, LARGE_FIRST, {"lj": 3, "mj": 4}),
    ("hod1", 128, 64, LARGE_FIRST, {"lj": 6, "mj": 2}),
    ("mimir", 128, 32, ("sj",), {}),
    ("modi2", 64, 16, ("mj",), {}),
]


def test_the_origin_2000_is_that_of_table_2() -> None:
    machine = load_machine("origin2000")
    read = [
        (host.name, host.cpus, host.memory / GB, host.serves, dict(host.limits))
        for host in machine.hosts
    ]
    assert read == TABLE_2
    assert (machine.procs, machine.widest_job, machine.single_host, machine.per_user) == (
        960,
        128,
        True,
        None,
    )
    memory = sum(host.memory for host in machine.hosts)
    assert memory == 336 * GB
    assert memory / 2**20 / machine.procs == 358.4, "the constant under table 3"


def test_its_classes_are_those_of_table_1() -> None:
    classes = {each.name: each for each in load_machine("origin2000").classes}
    hours = 3_600_000_000
    read = {
        name: (each.cpu_time, each.time, each.reserve_wait, each.limit, each.goes_first)
        for name, each in classes.items()
        if each.kind == "time"
    }
    assert read == {
        "vst": (5 * hours, 11 * hours // 2, 12 * hours, None, True),
        "st": (50 * hours, None, 45 * hours, None, False),
        "mt": (200 * hours, None, 180 * hours, 48, False),
        "lt": (400 * hours, None, 360 * hours, 20, False),
    }
    sizes = {
        name: (each.procs, each.memory) for name, each in classes.items() if each.kind == "size"
    }
    assert sizes == {"sj": (8, 2 * GB), "mj": (16, 4 * GB), "lj": (64, 16 * GB)}


@pytest.mark.parametrize("name", SHIPPED)
def test_a_file_of_the_name_wins_and_a_folder_does_not(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shipped = load_machine(name)
    (tmp_path / name).mkdir()
    assert load_machine(name) == shipped
    (tmp_path / name).rmdir()
    (tmp_path / name).write_text('schema = 1\n[[host]]\nname = "a"\ncpus = 4\n')
    assert load_machine(name).procs == 4


def test_what_is_neither_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"origin200: machine file cannot be read .*did you mean 'origin2000'"
    ):
        load_machine("origin200")
    with pytest.raises(
        InputError, match=r"none\.toml: .*name a file, or a machine that is shipped: origin2000"
    ):
        load_machine(str(tmp_path / "none.toml"))
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="binary: machine file cannot be read"):
        load_machine(str(tmp_path / "binary"))
