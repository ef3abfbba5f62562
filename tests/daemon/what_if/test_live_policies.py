"""Shadows of a living daemon: the command, permissions, the process and its end, the
configuration."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from qbatch.daemon.config import parse_config
from qbatch.daemon.core.state import Actor
from qbatch.daemon.handlers.verbs import permit
from qbatch.daemon.what_if_process import check
from qbatch.model.errors import InputError
from qbatch.wire.errors import Refusal
from qbatch.wire.frames import encode
from qbatch.wire.records import EventRecord, ShadowRecord, Shadows, SubmissionRecord
from qbatch.wire.requests import HostControl, Shadow, Spec, Submit
from tests.daemon.core.driver import Bench
from tests.daemon.harness import Daemon, emulated


def table(daemon: Daemon) -> Shadows:
    with daemon.session() as session:
        return session.ask(Shadow(), Shadows)


def by_name(said: Shadows) -> dict[tuple[str, bool], ShadowRecord]:
    return {(row.policy, row.is_real): row for row in said.policies}


def until(daemon: Daemon, is_so: Callable[[Shadows], bool], seconds: float = 180.0) -> Shadows:
    deadline = time.monotonic() + seconds
    while True:
        said = table(daemon)
        if is_so(said):
            return said
        assert time.monotonic() < deadline, (said, daemon.log())
        time.sleep(0.05)


def children(process: int) -> list[int]:
    """Return the processes that a process has begun and that are not over."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            words = path.read_text(encoding="ascii").rpartition(")")[2].split()
            if int(words[1]) == process and words[0] not in "ZX":
                found.append(int(path.parent.name))
    return found


def is_there(process: int) -> bool:
    try:
        return (
            Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
            not in "ZX"
        )
    except OSError:
        return False


def wait_for_the_end(process: int) -> None:
    deadline = time.monotonic() + 120
    while is_there(process):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def shadow_of(daemon: Daemon) -> int:
    """Return the process of the shadows: the child with a session of its own."""
    assert daemon.process is not None
    found = [each for each in children(daemon.process.pid) if os.getpgid(each) == each]
    assert len(found) == 1, found
    return found[0]


def test_a_table_from_the_configuration_and_what_ends_it(tmp_path: Path) -> None:
    with Daemon(
        tmp_path, config=emulated(top='policy = "fcfs"\nshadows = ["easy", "fcfs"]')
    ) as daemon:
        wide = {"select": "3:ncpus=4", "walltime": "100"}
        jobs = [daemon.submit(runtime=2_000_000, resources=wide) for _ in range(2)]
        jobs.append(
            daemon.submit(runtime=1_000_000, resources={"select": "1:ncpus=4", "walltime": "2"})
        )
        for job in jobs:
            daemon.until(job, "F")
        said = until(daemon, lambda said: [row.ended for row in said.policies] == [3, 3, 3])
        rows = by_name(said)
        assert list(rows) == [("fcfs", True), ("easy", False), ("fcfs", False)]
        real, same, easy = rows["fcfs", True], rows["fcfs", False], rows["easy", False]
        assert (same.wait_mean_s, same.bounded_slowdown_mean) == (
            real.wait_mean_s,
            real.bounded_slowdown_mean,
        )
        assert easy.wait_max_s is not None
        assert easy.wait_mean_s < real.wait_mean_s  # type: ignore[operator]
        assert said.since is not None
        assert said.note == ""
        shown = daemon.run("qbatch", "shadow").stdout.splitlines()
        assert [line.split()[0] for line in shown] == ["policy", "fcfs", "easy", "fcfs"]
        document = json.loads(daemon.run("qbatch", "shadow", "--json").stdout)
        assert document["schema"] == "qbatch.shadows/1"
        assert [row["policy"] for row in document["policies"]] == ["fcfs", "easy", "fcfs"]
        child = shadow_of(daemon)
        assert os.sched_getscheduler(child) == os.SCHED_IDLE
        files = {
            name: os.readlink(f"/proc/{child}/fd/{name}")
            for name in os.listdir(f"/proc/{child}/fd")
        }
        assert all(path == "/dev/null" or path.startswith("pipe:") for path in files.values()), (
            files
        )
        # As when a service manager ends the group: it ends with the daemon.
        os.kill(child, signal.SIGTERM)
        daemon.run("qbatch", "shadow", "off")
        wait_for_the_end(child)
        assert table(daemon) == Shadows()
        assert "there are no what-if policies" in daemon.run("qbatch", "shadow").stderr
        daemon.run("qbatch", "shadow", "set", "conservative")
        child = shadow_of(daemon)
        daemon.run("qbatch", "down")
        wait_for_the_end(child)


def test_a_child_that_is_killed_leaves_a_note_and_a_daemon_that_is_killed_leaves_no_child(
    tmp_path: Path,
) -> None:
    daemon = Daemon(tmp_path, config=emulated()).start()
    assert daemon.process is not None
    daemon.run("qbatch", "shadow", "set", "fcfs")
    until(daemon, lambda said: said.made is not None)
    os.kill(shadow_of(daemon), signal.SIGKILL)
    said = until(daemon, lambda said: "SIGKILL" in said.note)
    assert "qbatch shadow set fcfs" in said.note
    assert said.policies
    assert "Traceback" not in daemon.log()
    job = daemon.submit(runtime=100_000)
    daemon.until(job, "F")
    daemon.run("qbatch", "shadow", "set", "fcfs", "hybrid:depth=3")
    said = until(daemon, lambda said: len(said.policies) == 3)
    assert said.policies[0].ended == 0  # they begin again from now
    child = shadow_of(daemon)
    daemon.kill()
    wait_for_the_end(child)


def test_a_reload_begins_them_again(tmp_path: Path) -> None:
    with Daemon(tmp_path, config=emulated(top='shadows = ["fcfs"]')) as daemon:
        first = until(daemon, lambda said: said.made is not None)
        child = shadow_of(daemon)
        (tmp_path / "qbatch.toml").write_text(
            emulated(top='shadows = ["conservative"]'), encoding="utf-8"
        )
        daemon.run("qbatch", "reload")
        wait_for_the_end(child)
        said = until(
            daemon,
            lambda said: said.made is not None and said.policies[-1].policy == "conservative",
        )
        assert said.since > first.since  # type: ignore[operator]
        daemon.run("qbatch", "shadow", "set", "easy:order=sjf")
        (tmp_path / "qbatch.toml").write_text(
            emulated(top='operators = ["x"]\nshadows = ["conservative"]'), encoding="utf-8"
        )
        daemon.run("qbatch", "reload")
        said = until(daemon, lambda said: said.made is not None)
        assert [row.policy for row in said.policies] == ["easy", "easy:order=sjf"]


def test_jobs_that_really_run_are_provisional_until_they_have_ended(tmp_path: Path) -> None:
    config = emulated(top='policy = "fcfs"\nshadows = ["easy"]').replace('"emulated"', '"process"')
    with Daemon(tmp_path, config=config) as daemon:
        wide = {"select": "3:ncpus=4", "walltime": "100"}
        first = daemon.submit("sleep 4\n", resources=wide)
        second = daemon.submit("true\n", resources=wide)
        third = daemon.submit("sleep 0.2\n", resources={"select": "1:ncpus=4", "walltime": "4"})
        said = until(daemon, lambda said: len(said.policies) == 2 and said.policies[1].started == 2)
        assert said.policies[0].started == 1
        assert said.policies[1].provisional == 1
        for job in (first, second, third):
            daemon.until(job, "F")
        said = until(daemon, lambda said: [row.ended for row in said.policies] == [3, 3])
        assert said.policies[1].provisional == 0
        assert said.policies[1].wait_mean_s < said.policies[0].wait_mean_s  # type: ignore[operator]


def test_what_is_followed_is_sent_to_subscribers(tmp_path: Path) -> None:
    with Daemon(tmp_path, config=emulated()) as daemon, daemon.session() as session:
        events = session.events()
        daemon.run("qbatch", "shadow", "set", "fcfs")
        event: EventRecord = next(each for each in events if each.kind != "clock")
        assert event.kind == "shadow"


@pytest.mark.parametrize(
    ("command", "code", "text"),
    [
        (("set", "esy"), 2, "there is no policy 'esy'; did you mean 'easy'?"),
        (("set", "hybrid:depth=x"), 2, "depth"),
        (("set", "a", "b", "c", "d", "e"), 2, "at most 4"),
        (("set", "easy", "easy:order=fcfs"), 2, "named twice"),
        (("set",), 2, "name the policies"),
        (("off", "easy"), 2, "takes no policy"),
        (("sett", "easy"), 2, "did you mean 'set'"),
    ],
)
def test_what_cannot_be_followed_is_refused_with_a_reason(
    one: Daemon, command: tuple[str, ...], code: int, text: str
) -> None:
    said = one.run("qbatch", "shadow", *command, code=code).stderr
    assert text in said
    assert len(said.splitlines()) == 1
    assert table(one) == Shadows()


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with Daemon(tmp_path_factory.mktemp("one"), config=emulated()) as daemon:
        yield daemon


def test_an_action_that_is_none_is_refused(one: Daemon) -> None:
    with one.session() as session, pytest.raises(Refusal, match="did you mean 'show'"):
        session.ask(Shadow(action="shoe"), Shadows)


def test_anyone_may_look_and_operators_may_set() -> None:
    user, operator = Actor(1, "u", "g", "user"), Actor(2, "o", "g", "operator")
    permit(user, Shadow())
    permit(operator, Shadow(action="set", policies=("easy",)))
    with pytest.raises(Refusal, match="needs the role operator") as caught:
        permit(user, Shadow(action="set", policies=("easy",)))
    assert caught.value.code == "not-permitted"
    with pytest.raises(Refusal, match="HostControl"):
        permit(user, HostControl(hosts=("n1",), action="show"))


def test_a_policy_that_a_pool_refuses_is_refused_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "narrow_minded.py").write_text(
        "from qbatch.model.errors import UsageError\n"
        "class One:\n    name = 'one'\n    def decide(self, view):\n        return []\n"
        "    def new_memory(self, machine):\n        raise UsageError(f'{len(machine.hosts)} hosts "
        "are too many')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(Refusal, match=r"narrow_minded:One.*4 hosts are too many"):
        check(Bench().core, ["narrow_minded:One"])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ('["fcfs", "esy"]', "did you mean 'easy'"),
        ('"fcfs"', "must be a list"),
        ('["fcfs", "easy", "conservative", "hybrid", "easy:order=sjf"]', "at most 4"),
    ],
)
def test_the_key_of_the_configuration_is_checked_with_its_line(value: str, text: str) -> None:
    with pytest.raises(InputError, match=rf"line 3.*shadows.*{text}"):
        parse_config(emulated(top=f"shadows = {value}"), "test.toml")


def test_a_caller_that_leaves_while_shadows_are_set_stops_no_commit(tmp_path: Path) -> None:
    """What is committed first comes to its end: a commit that was not counted would have its number
    twice in the journal."""
    submission = encode(msgspec.json.encode(Submit(id=1, spec=Spec(script="sleep 1\n"))))
    with Daemon(tmp_path, config=emulated()) as daemon:
        for number in range(60):
            asked = Shadow(
                id=2, action="set", policies=("fcfs",) if number % 2 else ("lxf-backfill",)
            )
            with socket.socket(socket.AF_UNIX) as caller:
                caller.connect(daemon.socket)
                caller.sendall(submission + encode(msgspec.json.encode(asked)))
                time.sleep(number % 7 * 0.001)
        with daemon.session() as session:
            assert session.ask(Submit(spec=Spec(script="true\n")), SubmissionRecord).job
        assert daemon.process is not None
        assert daemon.process.poll() is None
