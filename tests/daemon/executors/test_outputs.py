"""Output files: what is written where, and what is refused."""

from __future__ import annotations

import os

import pytest

from .world import World

SAY = "echo out; echo err >&2"


def test_joined_outputs(world: World) -> None:
    assert world.run(SAY, "1.1", join="oe").status == 0
    assert world.text("1.1.o") == "out\nerr\n"
    assert not (world.base / "1.1.e").exists()
    assert world.run(SAY, "2.1", join="eo").status == 0
    assert world.text("2.1.e") == "out\nerr\n"
    assert not (world.base / "2.1.o").exists()
    both = str(world.base / "both")
    assert world.run(SAY, "3.1", output=both, error=both).status == 0
    assert world.text("both") == "out\nerr\n"


def test_dev_null_is_left_alone_and_old_text_is_replaced(world: World) -> None:
    (world.base / "1.1.e").write_text("old " * 1000, encoding="utf-8")
    assert world.run(SAY, output="/dev/null").status == 0
    assert os.stat("/dev/null").st_rdev == os.makedev(1, 3)
    assert world.text("1.1.e") == "err\n"


@pytest.mark.parametrize("what", ["output", "error"])
@pytest.mark.parametrize(
    ("kind", "word"),
    [
        ("link", "symbolic link"),
        ("dangling", "symbolic link"),
        ("fifo", "FIFO"),
        ("directory", "directory"),
        ("device", "device"),
        ("absent", "No such file"),
        ("relative", "absolute"),
    ],
)
def test_what_is_not_a_regular_file_is_refused_by_name(world: World, what: str, kind: str, word: str) -> None:
    victim, path = world.base / "victim", world.base / "target"
    victim.write_text("precious", encoding="utf-8")
    if kind == "link":
        path.symlink_to(victim)
    elif kind == "dangling":
        path.symlink_to(world.base / "nothing")
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    name = {"device": "/dev/zero", "absent": str(world.base / "no" / "file"), "relative": "file"}.get(kind, str(path))
    end = world.run(f"touch {world.base}/ran", **{what: name})
    assert end.status == -1
    assert name in end.why
    assert word in end.why
    assert what in end.why
    assert world.text("victim") == "precious"
    assert not (world.base / "ran").exists()
    assert not (world.base / "nothing").exists()
    other = world.text("1.1.e" if what == "output" else "1.1.o")
    assert name in other  # the other file exists, and says it too


def test_fifo_with_a_reader_is_refused_too(world: World) -> None:
    path = world.base / "fifo"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    end = world.run(SAY, output=str(path))
    assert end.status == -1
    assert "FIFO" in end.why
    assert os.read(reader, 100) == b""
    os.close(reader)
