"""Output files: what is written where, and what is refused."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest

from qbatch.daemon.executors.attempt import LOST
from qbatch.daemon.executors.process_directory import RunDirectory
from tests.daemon.hostile.tools import needs_root, small_disk

from .world import World, supervisor_of, until

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
        ("relative", "absolute"),
    ],
)
def test_what_is_not_a_regular_file_is_refused_by_name(
    world: World, what: str, kind: str, word: str
) -> None:
    precious, path = world.base / "precious", world.base / "target"
    precious.write_text("precious", encoding="utf-8")
    if kind == "link":
        path.symlink_to(precious)
    elif kind == "dangling":
        path.symlink_to(world.base / "nothing")
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    name = {"device": "/dev/zero", "relative": "file"}.get(kind, str(path))
    end = world.run(f"touch {world.base}/ran", **{what: name})
    assert end.status == -1
    assert name in end.why
    assert word in end.why
    assert what in end.why
    assert world.text("precious") == "precious"
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


def kept(world: World) -> dict[str, str]:
    """Return the spools that could not be delivered."""
    place = world.root / "undelivered"
    return (
        {path.name: path.read_text(encoding="utf-8") for path in place.iterdir()}
        if place.exists()
        else {}
    )


@pytest.mark.parametrize("what", ["output", "error"])
def test_the_job_may_make_the_folder_of_its_output(world: World, what: str) -> None:
    path = world.base / "made" / "by" / "it"
    end = world.run(f"mkdir -p {path.parent}; {SAY}", **{what: str(path)})
    assert (end.status, end.why, end.undelivered) == (0, "", "")
    assert path.read_text() == ("out\n" if what == "output" else "err\n")
    assert path.stat().st_mode & 0o777 == 0o600  # by the job's umask
    assert path.stat().st_nlink == 2  # the spool is the same file until the run directory goes


def test_a_folder_that_the_job_made_in_place_of_its_output_takes_the_file(world: World) -> None:
    path = world.base / "results"
    assert (
        world.run(f"mkdir {path}; {SAY}", "7.1", output=str(path), job_id="7.server").undelivered
        == ""
    )
    assert (path / "7.server.OU").read_text() == "out\n"


@needs_root
@pytest.mark.parametrize("mode", [0o755, 0o1777])
def test_a_file_of_another_user_gets_nothing_whatever_the_kernel_protects(
    world: World, mode: int
) -> None:
    """``fs.protected_regular`` looks at sticky directories only, and only if it is on."""
    place = world.base / "place"
    place.mkdir()
    place.chmod(mode)
    path = place / "out"
    path.write_text("theirs", encoding="utf-8")
    path.chmod(0o666)
    os.chown(path, 30002, 30002)
    end = world.run(SAY, output=str(path))
    assert (end.status, end.why) == (0, "")
    where = world.root / "undelivered" / "1.1.OU"
    assert (
        end.undelivered
        == f"output file {path} belongs to another user (30002); it is kept as {where}"
    )
    assert kept(world) == {"1.1.OU": "out\n"}
    end = world.run(f"touch {world.base}/ran", "2.1", output=str(path), direct="o")
    assert (end.status, end.why) == (-1, f"output file {path} belongs to another user (30002)")
    assert path.read_text(encoding="utf-8") == "theirs"
    assert not (world.base / "ran").exists()


def test_what_cannot_be_delivered_is_reported_and_kept(world: World) -> None:
    lost = world.base / "no" / "where"
    end = world.run(SAY, output=str(lost))
    assert (end.status, end.why) == (0, "")
    where = world.root / "undelivered" / "1.1.OU"
    assert (
        end.undelivered == f"output file {lost}: No such file or directory; it is kept as {where}"
    )
    assert kept(world) == {"1.1.OU": "out\n"}
    assert world.text("1.1.e") == "err\n"

    async def forget() -> None:
        async with world.running() as executor:
            executor.forget("1.1")

    asyncio.run(forget())
    assert kept(world) == {"1.1.OU": "out\n"}  # for good, whatever becomes of the run directory


@pytest.mark.parametrize("kind", ["link", "fifo", "device"])
def test_what_the_job_puts_in_place_of_its_output_is_not_written_to(
    world: World, kind: str
) -> None:
    precious, path = world.base / "precious", world.base / "1.1.o"
    precious.write_text("precious", encoding="utf-8")
    how = {
        "link": f"ln -s {precious} {path}",
        "fifo": f"mkfifo {path}",
        "device": f"ln -s /dev/full {path}",
    }[kind]
    end = world.run(f"{how}; {SAY}")
    assert end.status == 0
    assert str(path) in end.undelivered
    assert world.text("precious") == "precious"
    assert kept(world) == {"1.1.OU": "out\n"}


def test_outputs_that_are_kept_where_they_belong_grow_while_the_job_runs(world: World) -> None:
    script = f"{SAY}; until test -e {world.base}/go; do sleep 0.02; done"

    async def go() -> None:
        async with world.running() as executor:
            executor.launch(world.attempt("1.1", script, direct="o"))
            spooled = Path(executor.spools("1.1")[1])
            await until(lambda: spooled.exists() and spooled.read_text() == "err\n")
            assert world.text("1.1.o") == "out\n"
            assert not Path(executor.spools("1.1")[0]).exists()
            assert not (world.base / "1.1.e").exists()
            (world.base / "go").touch()
            assert (await world.end_of("1.1")).status == 0

    asyncio.run(go())
    assert world.text("1.1.e") == "err\n"
    assert world.run("true", "2.1", direct="o", output=str(world.base / "no" / "file")).status == -1


def test_a_killed_supervisor_loses_no_output(world: World) -> None:
    async def go() -> None:
        async with world.running() as executor:
            executor.launch(world.attempt("1.1", f"{SAY}; touch up; sleep 99"))
            await until(lambda: (world.base / "up").exists())
            os.kill(supervisor_of(world, "1.1"), signal.SIGKILL)
            assert (await world.end_of("1.1")).status == LOST

    asyncio.run(go())
    assert (world.text("1.1.o"), world.text("1.1.e")) == ("out\n", "err\n")


@pytest.mark.parametrize("was_there", [False, True])
@pytest.mark.parametrize("has_copied", [0, 4, 1 << 20])
def test_a_delivery_that_was_cut_short_is_made_again(
    world: World, was_there: bool, has_copied: int
) -> None:
    """The supervisor is killed in the middle of a copy, or between the delivery and the record of
    the end."""
    text = "x" * 100_000 + "\n"
    directory = RunDirectory(world.root / "1.1")
    world.root.mkdir()
    directory.prepare(world.attempt("1.1", "true"))
    (directory.path / "OU").write_text(text)
    (directory.path / "claim").write_text(
        json.dumps({"pid": 1 << 22, "start": 1, "boot": "before", "token": "", "leaf": ""})
    )
    target = world.base / "1.1.o"
    if was_there:
        target.write_text(text[:has_copied])
    elif has_copied > len(text):
        os.link(directory.path / "OU", target)

    async def go() -> None:
        async with world.running(world.attempt("1.1", "true")):
            end = await world.end_of("1.1")
            assert (end.status, end.undelivered) == (LOST, "")

    asyncio.run(go())
    assert target.read_text() == text


def test_a_full_disk_keeps_the_spool(world: World) -> None:
    with small_disk("64k") as disk:
        end = world.run("head -c 200000 /dev/zero; echo end", output=str(disk / "file"))
        assert end.status == 0
        assert "No space left" in end.undelivered
    assert len(kept(world)["1.1.OU"]) == 200_004


def test_another_disk_gets_a_copy(world: World) -> None:
    with small_disk("1m") as disk:
        assert world.run(SAY, output=str(disk / "file")).undelivered == ""
        assert (disk / "file").read_text() == "out\n"
        assert (disk / "file").stat().st_mode & 0o777 == 0o600
