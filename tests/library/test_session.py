"""``qbatch.Session``: a private batch server in a block."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import qbatch as qb
from tests.library.commands import ROOT

HOUR = 3_600_000_000


def test_scripts_and_commands_run_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with qb.Session() as session:
        directory = os.path.dirname(session.socket)
        script = session.submit("echo $PBS_JOBNAME; exit 3\n", name="mine", output="out")
        command = session.submit([sys.executable, "-c", "print('of a command')"], output="said")
        assert session.wait(script).exit_status == 3
        assert session.wait(command).exit_status == 0
        assert (tmp_path / "out").read_text(encoding="utf-8") == "mine\n"
        assert (tmp_path / "said").read_text(encoding="utf-8") == "of a command\n"
        assert [job.id for job in session.jobs()] == [script, command]
        assert session.jobs(finished=False) == []
        assert script in session.run(["qstat", "-x"]).stdout
        assert session.run("qsub -- /bin/true").returncode == 0
        assert len(session.hosts()) == 4
        assert repr(session) == f"<Session at {session.socket}>"
    assert not os.path.exists(directory)
    session.stop()
    assert repr(session) == "<Session, not running>"


def test_virtual_time_passes_hours_at_once() -> None:
    began = time.monotonic()
    with qb.Session(executor="emulated", time="virtual", policy="easy") as session:
        job = session.submit(resources={"ncpus": "2", "walltime": "5:00:00"}, runtime=4 * HOUR)
        ended = session.wait(job)
        assert ended.started is not None
        assert ended.ended is not None
        assert ended.ended - ended.started == 4 * HOUR
        session.pause()
        first = session.now
        second = session.submit(resources={"ncpus": "1", "walltime": "1:00:00"}, runtime=HOUR)
        with pytest.raises(TimeoutError, match=f"job {second} is in state [QR] after 0.3 s"):
            session.wait(second, timeout=0.3)
        session.run_until(first + 1800)
        while session.now < first + 1800:
            time.sleep(0.01)
        assert session.job(second).state == "R"
        session.play()
        assert session.wait(second).state == "F"
        assert session.now >= first + 3600
    assert time.monotonic() - began < 60


def test_the_policy_is_read_and_set() -> None:
    with qb.Session(executor="emulated", time="virtual", policy="fcfs") as session:
        assert session.policy == "fcfs"
        session.policy = "conservative"
        assert session.policy == "conservative"
        with pytest.raises(qb.Refusal, match="there is no policy 'esay'"):
            session.policy = "esay"
        assert session.policy == "conservative"


CONFIG = """
[[pool]]
name = "batch"
hosts = "n[1-2]"
cpus = 3
"""


def test_a_configuration_is_a_text_or_a_file(tmp_path: Path) -> None:
    (tmp_path / "qbatch.toml").write_text(CONFIG, encoding="utf-8")
    for config in (CONFIG, tmp_path / "qbatch.toml"):
        with qb.Session(config=config, executor="emulated") as session:
            assert {name: host.cpus for name, host in session.hosts().items()} == {"n1": 3, "n2": 3}
            assert session.hosts("n1", action="down")["n1"].state == "down"


def test_what_the_server_does_not_take_is_a_refusal() -> None:
    with qb.Session(executor="emulated", time="virtual") as session:
        with pytest.raises(qb.Refusal, match="queue"):
            session.submit("true", queue="nowhere")
        with pytest.raises(qb.UsageError, match=r"submit: .*colour"):
            session.submit("true", colour="red")
        session.fault("submit-refused", count=1, message="not now")
        with pytest.raises(qb.QbatchError, match="not now"):
            session.submit("true")
        with pytest.raises(KeyError):
            session.job("77")


def test_mistakes_before_the_daemon_is_there(tmp_path: Path) -> None:
    with (
        pytest.raises(qb.InputError, match="no such configuration file"),
        qb.Session(config=tmp_path / "none.toml"),
    ):
        pytest.fail("it is up")
    with (
        pytest.raises(qb.QbatchError, match="there is no policy 'esay'"),
        qb.Session(policy="esay"),
    ):
        pytest.fail("it is up")
    with (
        pytest.raises(qb.QbatchError, match="time soon: write real"),
        qb.Session(executor="emulated", time="soon"),
    ):
        pytest.fail("it is up")


def test_it_is_gone_when_its_owner_is_killed(tmp_path: Path) -> None:
    code = """
import os, qbatch
session = qbatch.Session(executor="emulated").start()
print(os.path.dirname(session.socket), flush=True)
os.kill(os.getpid(), 9)
"""
    own = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, env=own, check=False
    )
    directory, limit = done.stdout.strip(), time.monotonic() + 30
    assert directory
    while os.path.exists(directory) and time.monotonic() < limit:
        time.sleep(0.05)
    assert not os.path.exists(directory)
