"""``pbsdsh``: which slots it takes, what the tasks see, what is said of their ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from qbatch.cli.pbs.pbsdsh import TaskPlace, chosen, slots_of

CODE = "from qbatch.cli.pbs.start import pbsdsh; pbsdsh()"
SHOW = 'echo "$PBS_TASKNUM $PBS_NODENUM $PBS_VNODENUM $PWD"'


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    nodes = tmp_path / "nodes"
    nodes.write_text("n1\nn1\nn2\nn1\n")
    return {
        **os.environ,
        "PBS_ENVIRONMENT": "PBS_BATCH",
        "PBS_NODEFILE": str(nodes),
        "PBS_JOBDIR": str(tmp_path),
    }


def pbsdsh(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", CODE, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        cwd="/",
    )


def test_slots_and_hosts_are_numbered_in_the_order_of_the_node_file() -> None:
    slots = slots_of("n1\nn1\nn2\nn1\n")
    assert slots == [TaskPlace(0, 0), TaskPlace(0, 1), TaskPlace(1, 2), TaskPlace(0, 3)]
    assert chosen(slots, None, None) == slots
    assert [slot.number for slot in chosen(slots, 6, None)] == [0, 1, 2, 3, 0, 1]
    assert chosen(slots, 0, None) == []
    assert [slot.number for slot in chosen(slots, None, 2)] == [2]
    assert [slot.number for slot in chosen(slots, None, 5)] == [1]


def test_each_task_sees_its_place(environment: dict[str, str], tmp_path: Path) -> None:
    done = pbsdsh(environment, "-s", "sh", "-c", SHOW)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        f"{task} {node} {slot} {tmp_path}"
        for task, node, slot in ((2, 0, 0), (3, 0, 1), (4, 1, 2), (5, 0, 3))
    ]
    done = pbsdsh(environment, "-n", "2", "--", "sh", "-c", SHOW)
    assert done.stdout == f"2 1 2 {tmp_path}\n"
    assert len(pbsdsh(environment, "--", "sh", "-c", SHOW).stdout.splitlines()) == 4


def test_a_task_that_fails_is_reported_and_the_exit_code_stays_0(
    environment: dict[str, str],
) -> None:
    done = pbsdsh(environment, "-c", "1", "sh", "-c", "exit 7")
    assert (done.returncode, done.stdout) == (0, "pbsdsh: task 0x00000000 exit status 7\n")
    done = pbsdsh(environment, "-n", "0", "--", "sh", "-c", "kill -9 $$")
    assert done.stdout == "pbsdsh: task 0x00000000 exit status 265\n"
    done = pbsdsh(environment, "-v", "-n", "1", "true")
    assert (
        done.stdout
        == "pbsdsh: spawned task 0x00000000 on logical node 1\npbsdsh: task 0x00000000 exit status 0\n"
    )
    done = pbsdsh(environment, "-n", "1", "no-such-program", "-x")
    assert done.stdout == "pbsdsh: task 0x00000000 exit status 254\n"
    assert done.stderr == "pbsdsh: no-such-program: No such file or directory\n"


def test_a_signal_ends_the_tasks(environment: dict[str, str]) -> None:
    """Each task says that it runs: the signal may come before ``pbsdsh`` itself goes on."""
    with subprocess.Popen(
        [sys.executable, "-c", CODE, "-c", "2", "--", "sh", "-c", "echo there; exec sleep 60"],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(2)] == ["there\n", "there\n"]
        process.send_signal(signal.SIGTERM)
        said = process.stdout.read()  # until the tasks, which have the same pipe, are gone
        assert process.wait(30) == 1
    assert said == "".join(
        f"pbsdsh: killing task 0x{number:08X} signal 15\n" for number in range(2)
    )


def test_a_signal_at_the_start_of_a_task_misses_none(environment: dict[str, str]) -> None:
    """The first thing that a task does is to signal its ``pbsdsh``."""
    for _ in range(5):
        done = pbsdsh(environment, "-c", "1", "sh", "-c", "kill -TERM $PPID; exec sleep 60")
        assert (done.returncode, done.stderr) == (1, "")
        assert done.stdout == "pbsdsh: killing task 0x00000000 signal 15\n"


def test_wrong_use_is_said(environment: dict[str, str]) -> None:
    for arguments in (
        (),
        ("-c", "1", "-n", "1", "true"),
        ("-c", "x", "true"),
        ("-n", "-1", "true"),
    ):
        done = pbsdsh(environment, *arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert "usage: pbsdsh [-c copies]" in done.stderr
    outside = {name: value for name, value in environment.items() if not name.startswith("PBS_")}
    done = pbsdsh(outside, "true")
    assert (done.returncode, done.stderr) == (1, "pbsdsh: not executing under PBS\n")
    done = pbsdsh({**environment, "PBS_NODEFILE": "/nowhere"}, "true")
    assert done.returncode == 1
    assert (
        done.stderr
        == "pbsdsh: the node file '/nowhere' ($PBS_NODEFILE) cannot be read: No such file or directory\n"
    )
