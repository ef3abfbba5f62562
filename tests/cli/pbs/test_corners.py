"""Corners of the contract: other servers, Torque's own words, what is shown of a submission as PBS
shows it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from qbatch.library.private_server import PrivateServer
from qbatch.wire.records import HostRecord
from tests.cli.pbs.harness import Shell, job

TORQUE = {"QBATCH_DIALECT": "torque"}
NO_SERVER = "cannot connect to server qbatch (errno=15008): it is no server x"


@pytest.mark.parametrize(
    "line",
    [
        "qstat @x",
        "qstat batch@x",
        "qstat 1@x",
        "qstat -f 1.qbatch@x",
        "qstat -Q @x",
        "qstat -q batch@x",
        "qstat -B x",
        "qdel 1@x",
        "qhold 1@x",
        "qsig -s USR1 1@x",
        "qalter -p 1 1@x",
        "tracejob 1@x",
        "qselect -q @x",
        "qmove batch@x 1",
        "qenable batch@x",
        "pbsnodes -s x -a",
        "pbsnodes -s x -o n1",
        "qrun 1@x",
        "qterm x",
        "qmgr @x -c list_server",
        "qmgr -c list_queue_batch@x",
        "qmgr -c set_node_n1,n2@x_state=offline",
    ],
)
def test_a_server_that_is_not_this_one_cannot_be_connected_to(line: str, shell: Shell) -> None:
    command, *arguments = line.split()
    arguments = [argument.replace("_", " ") for argument in arguments]
    assert shell.run(command, *arguments) == (255, "", f"Unknown Host.\n{command}: {NO_SERVER}\n")


@pytest.mark.parametrize("server", ["qbatch", "localhost"])
def test_this_server_may_be_named(server: str, shell: Shell) -> None:
    for line in (
        f"qstat @{server}",
        f"qstat batch@{server}",
        f"qstat 1@{server}",
        f"qstat -B {server}",
        f"qstat -Q @{server}",
        f"pbsnodes -s {server} -a",
        f"qselect -q @{server}",
        f"qmgr -c list_queue_@{server}",
        f"qmgr {server} -c p_s",
        "qmgr -c list_queue_@default",
    ):
        command, *arguments = line.split()
        arguments = [argument.replace("_", " ") for argument in arguments]
        result = shell.run(command, *arguments)
        assert (result.code, result.err) == (0, ""), line
        assert result.out


def test_the_operands_of_this_server_are_answered_next_to_those_of_others(shell: Shell) -> None:
    result = shell.run("qstat", "1", "2@x", "batch@x")
    assert [line.split()[0] for line in result.out.splitlines()[2:]] == ["1.qbatch"]
    assert (result.code, result.err) == (255, f"Unknown Host.\nqstat: {NO_SERVER}\n" * 2)


def test_torque_says_of_a_completed_job_that_it_is_complete(shell: Shell) -> None:
    said = "Request invalid for state of job MSG=invalid state for job - COMPLETE 3.qbatch"
    assert shell.run("qdel", "3", **TORQUE) == (15018 % 256, "", f"qdel: {said}\n")
    assert shell.run("qdel", "3") == (35, "", "qdel: Job has finished 3.qbatch\n")
    assert shell.run("qdel", "99", **TORQUE).code == 153


def test_torque_shows_hosts_and_its_version_in_its_own_way(shell: Shell) -> None:
    shell.server.hosts = [
        HostRecord(
            name="n1",
            pool="main",
            state="job-busy",
            cpus=2,
            cpus_used=2,
            memory=8 << 30,
            memory_used=2 << 30,
            jobs=("1.qbatch", "2.qbatch"),
        ),
        HostRecord(name="n2", pool="main", state="offline", cpus=4, comment="disk"),
    ]
    assert shell.run("pbsnodes", "-a", **TORQUE).out == (
        "n1\n     state = job-exclusive\n     power_state = Running\n     np = 2\n     ntype = "
        "cluster\n"
        "     jobs = 0/1.qbatch, 1/2.qbatch\n"
        "     status = rectime=1790000000,jobs=1.qbatch "
        "2.qbatch,state=job-exclusive,ncpus=2,totmem=8388608kb,"
        "availmem=6291456kb,physmem=8388608kb,opsys=linux\n"
        "     mom_service_port = 15002\n     mom_manager_port = 15003\n     gpus = 0\n\n"
        "n2\n     state = offline\n     power_state = Running\n     np = 4\n     ntype = cluster\n"
        "     status = rectime=1790000000,jobs=,state=offline,ncpus=4,opsys=linux\n     note = "
        "disk\n"
        "     mom_service_port = 15002\n     mom_manager_port = 15003\n     gpus = 0\n\n"
    )
    for command in ("pbsnodes", "qstat", "qsub"):
        assert shell.run(command, "--version", **TORQUE) == (0, "", "Version: 6.1.3\n")


def test_jobs_without_a_project_are_in_the_one_that_is_shown_of_them(shell: Shell) -> None:
    shell.server.jobs = {"1.qbatch": job(1), "2.qbatch": job(2, project="mine")}
    assert shell.run("qselect", "-P", "_pbs_project_default").out == "1.qbatch\n"
    assert shell.run("qselect", "-P", "mine").out == "2.qbatch\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateServer]:
    if not os.path.exists("/proc/self/stat"):
        pytest.skip("the process executor needs /proc")
    config = tmp_path_factory.mktemp("server") / "qbatch.toml"
    config.write_text("login_shell = false\n")
    with PrivateServer(config=str(config)) as running:
        yield running


def command(
    server: PrivateServer, directory: Path, *words: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words,
        cwd=directory,
        env=server.environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("asked", "lines"),
    [
        ("cput=600,pcput=1:30", ("cput = 00:10:00", "pcput = 00:01:30", "place = pack")),
        ("ncpus=2", ("place = pack", "select = 1:ncpus=2")),
        ("", ("place = pack",)),
        ("select=2", ("place = free",)),
        ("nodes=2", ("place = scatter",)),
    ],
)
def test_resources_are_shown_as_pbs_shows_them(
    server: PrivateServer, tmp_path: Path, asked: str, lines: tuple[str, ...]
) -> None:
    options = ("-l", asked) if asked else ()
    job = command(server, tmp_path, "qsub", "-h", *options, "--", "true").stdout.strip()
    shown = command(server, tmp_path, "qstat", "-f", job).stdout
    for line in lines:
        assert f"    Resource_List.{line}\n" in shown


def test_an_output_with_a_host_is_shown_as_given_and_stays_on_this_machine(
    server: PrivateServer, tmp_path: Path
) -> None:
    options = ("-o", f"localhost:{tmp_path}/out", "-e", "localhost:err", "-W", "block=true")
    job = command(server, tmp_path, "qsub", *options, "--", "echo", "said").stdout.strip()
    shown = command(server, tmp_path, "qstat", "-x", "-f", "-w", job).stdout
    assert f"    Output_Path = localhost:{tmp_path}/out\n" in shown
    assert f"    Error_Path = localhost:{tmp_path}/err\n" in shown
    assert (tmp_path / "out").read_text() == "said\n"
    assert (tmp_path / "err").read_text() == ""
    assert command(server, tmp_path, "qbatch", "output", job).stdout == "said\n"


def test_a_dependency_on_a_job_of_another_server_is_refused(
    server: PrivateServer, tmp_path: Path
) -> None:
    first = command(server, tmp_path, "qsub", "-h", "--", "true").stdout.strip()
    for words in (
        ("qsub", "-W", f"depend=afterany:{first}@x", "--", "true"),
        ("qalter", "-W", "depend=afterany:1@x", first),
    ):
        done = command(server, tmp_path, *words)
        assert (done.returncode, done.stdout) == (160 if words[0] == "qsub" else 255, "")
        assert NO_SERVER in done.stderr
    named = command(
        server,
        tmp_path,
        "qsub",
        "-h",
        "-W",
        f"depend=afterany:{first}@{os.uname().nodename}",
        "--",
        "true",
    )
    assert named.returncode == 0, named.stderr
    shown = command(server, tmp_path, "qstat", "-f", "-w", named.stdout.strip()).stdout
    assert f"    depend = afterany:{first}@qbatch\n" in shown
