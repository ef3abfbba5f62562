"""Dask workers as hosts: scripts run there, output comes back; workers, the scheduler and the
daemon are killed in the middle."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.daemon.executors.dask_cluster import DaskCluster, host, until, until_down, until_up
from tests.daemon.harness import ROOT, Daemon
from tests.documents.blocks import blocks_of

Start = Callable[..., Daemon]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[DaskCluster]:
    made = DaskCluster(tmp_path / "dask")
    yield made
    made.close()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a daemon with a configuration; it is killed after the test."""
    started: list[Daemon] = []

    def begin(config: str, **options: bool) -> Daemon:
        directory = tmp_path / "daemon"
        directory.mkdir(exist_ok=True)
        daemon = Daemon(directory, config=config)
        started.append(daemon)
        return daemon.start(**options)

    yield begin
    for daemon in started:
        if daemon.process is not None and daemon.process.poll() is None:
            daemon.kill()


def marks(path: Path) -> Counter[str]:
    """Return what scripts have noted, and how often each."""
    return Counter(path.read_text(encoding="ascii").split()) if path.exists() else Counter()


def beating(path: Path) -> str:
    """Return a script that notes its start, then writes for as long as it lives."""
    return f"echo $PBS_JOBID >> {path}.starts\nwhile :; do echo $$ >> {path}; sleep 0.05; done\n"


def is_alive(path: Path) -> bool:
    """Return whether the last writer of a file lives."""
    number = path.read_text(encoding="ascii").split()[-1]
    return Path(f"/proc/{number}").exists()


def test_what_a_script_does_on_a_worker_is_as_on_the_daemons_machine(
    cluster: DaskCluster, start: Start, tmp_path: Path
) -> None:
    cluster.worker("w1", "w2")
    daemon = start(cluster.config())
    until_up(daemon, "w1", "w2")
    where = daemon.directory
    size = 3 * (1 << 20) + 17
    bytes_made = (
        f"head -c {size} /dev/urandom > {tmp_path}/bytes; cat {tmp_path}/bytes; printf "
        "'e\\377rr' >&2; exit 7\n"
    )
    plain = daemon.submit(bytes_made, name="plain", output=str(tmp_path / "out"))
    both = [
        daemon.submit(
            (
                f"echo $PBS_JOBID $0; cat $PBS_NODEFILE; until [ -e {tmp_path}/go ]; do sleep "
                "0.05; "
                "done\n"
            ),
            name=f"wide{number}",
            join="oe",
            resources={"ncpus": "2"},
        )
        for number in (1, 2)
    ]
    job = daemon.until(plain, "FX")
    assert (job.state, job.exit_status) == ("F", 7), job.comment
    assert (tmp_path / "out").read_bytes() == (tmp_path / "bytes").read_bytes()
    assert (where / f"plain.e{plain.split('.')[0]}").read_bytes() == b"e\xffrr"
    assert job.exec_host == "w1/0"
    assert job.used["cput"]

    for name in both:
        daemon.until(name, "R")
    assert sorted(daemon.jobs(name)[name].exec_host for name in both) == ["w1/0*2", "w2/0*2"]
    waiting = daemon.submit("true\n", resources={"ncpus": "1"})
    assert daemon.jobs(waiting)[waiting].state == "Q"
    (tmp_path / "go").touch()
    for number, name in enumerate(both, 1):
        assert daemon.until(name, "FX").exit_status == 0
        assert name in (where / f"wide{number}.o{name.split('.')[0]}").read_text(encoding="ascii")
    assert daemon.until(waiting, "FX").exit_status == 0

    long = daemon.submit(
        f"trap 'echo heard > {tmp_path}/heard' WINCH\necho > {tmp_path}/ready\nwhile :; do sleep "
        "0.05; done\n"
    )
    until((tmp_path / "ready").exists, "the script begins")
    daemon.run("qsig", "-s", "WINCH", long)  # which ends no shell
    until((tmp_path / "heard").exists, "the script hears the signal")
    daemon.run("qdel", long)
    assert daemon.until(long, "FX").exit_status == 271
    short = daemon.submit("sleep 600\n", resources={"walltime": "1"})
    assert daemon.until(short, "FX").exit_status == -29
    until(
        lambda: not list((daemon.state / "dask" / "cluster").glob("[0-9]*")),
        "run directories are removed",
    )
    until(lambda: not list(cluster.base.glob("attempts/*/*/[0-9]*")), "and those of the workers")
    assert not list(cluster.base.glob("attempts/*/*/outputs/*"))


def test_a_worker_that_is_killed_is_a_host_that_went_down(
    cluster: DaskCluster, start: Start, tmp_path: Path
) -> None:
    cluster.worker("w1")
    daemon = start(cluster.config())
    until_up(daemon, "w1")
    assert until_down(daemon, "w2") == "dask: there is no Dask worker w2"
    again = daemon.submit(beating(tmp_path / "again"))
    never = daemon.submit(beating(tmp_path / "never"), is_rerunnable=False)
    until(
        lambda: (tmp_path / "again").exists() and (tmp_path / "never").exists(), "both scripts run"
    )
    cluster.kill("w1")
    assert "its Dask worker at tcp://127.0.0.1:" in until_down(daemon, "w1")
    lost = daemon.until(never, "FX")
    assert lost.exit_status == -12
    assert "host w1 went down" in lost.comment
    until(
        lambda: not is_alive(tmp_path / "never") and not is_alive(tmp_path / "again"),
        "what ran there is ended",
    )
    assert daemon.jobs(again)[again].state == "Q"

    cluster.worker("w2")  # it joins: the job runs again, there
    assert daemon.until(again, "R").exec_host == "w2/0"
    until(lambda: marks(tmp_path / "again.starts") == {again: 2}, "the second attempt begins")
    cluster.worker("w1")  # it comes back under its name
    until_up(daemon, "w1")
    assert host(daemon, "w1").comment == ""
    daemon.run("pbsnodes", "-o", "-C", "broken fan", "w1")  # what an operator closed stays closed
    cluster.kill("w1")
    until_down(daemon, "w1")
    cluster.worker("w1")
    more = daemon.submit("true\n", resources={"ncpus": "2"})
    until(
        lambda: daemon.log().count("host w1 is the Dask worker") == 3, "the worker is found again"
    )
    assert (
        host(daemon, "w1").state,
        host(daemon, "w1").comment,
        daemon.jobs(more)[more].state,
    ) == ("down", "broken fan", "Q")
    daemon.run("pbsnodes", "-r", "w1")
    assert daemon.until(more, "FX").exit_status == 0
    daemon.run("qdel", again)
    job = daemon.until(again, "FX")
    assert (job.run_count, marks(tmp_path / "again.starts"), marks(tmp_path / "never.starts")) == (
        2,
        {again: 2},
        {never: 1},
    )


def test_a_daemon_that_is_killed_finds_its_attempts_on_the_workers_again(
    cluster: DaskCluster, start: Start, tmp_path: Path
) -> None:
    cluster.worker("w1", "w2")
    daemon = start(cluster.config())
    until_up(daemon, "w1", "w2")
    names = {}
    for number in range(4):  # two end while the daemon is away, two after it
        gate = tmp_path / f"go{number}"
        script = (
            f"echo $PBS_JOBID >> {tmp_path}/starts\nuntil [ -e {gate} ]; do sleep 0.05; "
            "done\n"
            f"echo out{number}\n"
        )
        names[number] = daemon.submit(
            f"{script}echo $PBS_JOBID >> {tmp_path}/ends\nexit {number}\n", name=f"j{number}"
        )
    until(lambda: marks(tmp_path / "starts").total() == 4, "all run")
    daemon.kill()
    for number in (0, 1):
        (tmp_path / f"go{number}").touch()
    until(lambda: marks(tmp_path / "ends").total() == 2, "two end")
    daemon.start()
    daemon.kill()  # and again, perhaps while it fetches what they wrote
    daemon.start()
    for number in (0, 1):
        assert daemon.until(names[number], "FX").exit_status == number
    for number in (2, 3):
        assert daemon.jobs(names[number])[names[number]].state == "R"
        (tmp_path / f"go{number}").touch()
        assert daemon.until(names[number], "FX").exit_status == number
    for number, name in names.items():
        path = daemon.directory / f"j{number}.o{name.split('.')[0]}"
        assert path.read_text(encoding="ascii") == f"out{number}\n"
    assert marks(tmp_path / "starts") == dict.fromkeys(names.values(), 1)
    daemon.kill(signal.SIGTERM)
    ends = "".join(
        path.read_text(encoding="utf-8") for path in sorted((daemon.state / "accounting").iterdir())
    )
    assert [ends.count(f";E;{name};") for name in names.values()] == [1, 1, 1, 1]


def test_a_worker_that_dies_while_the_daemon_is_away_takes_its_jobs_with_it(
    cluster: DaskCluster, start: Start, tmp_path: Path
) -> None:
    cluster.worker("w1")
    daemon = start(cluster.config("w1"))
    until_up(daemon, "w1")
    job = daemon.submit(beating(tmp_path / "beat"), is_rerunnable=False)
    until((tmp_path / "beat").exists, "the script runs")
    daemon.kill()
    cluster.kill("w1")
    until(lambda: not is_alive(tmp_path / "beat"), "the script is ended")
    cluster.worker("w1")
    daemon.start()
    assert daemon.until(job, "FX").exit_status == -12
    until_up(daemon, "w1")
    assert marks(tmp_path / "beat.starts") == {job: 1}


def test_a_scheduler_that_is_killed_takes_the_hosts_with_it_until_it_is_back(
    cluster: DaskCluster, start: Start, tmp_path: Path
) -> None:
    cluster.worker("w1")
    daemon = start(cluster.config("w1", timeout=1))
    until_up(daemon, "w1")
    job = daemon.submit(beating(tmp_path / "beat"))
    until((tmp_path / "beat").exists, "the script runs")
    cluster.kill_scheduler()
    # On a machine that is busy the worker may be missed first: of it nothing is heard without its
    # scheduler.
    until(
        lambda: "no Dask scheduler answers at tcp://127.0.0.1:" in host(daemon, "w1").comment,
        "its scheduler is missed",
    )
    assert until_down(daemon, "w1")
    assert daemon.until(job, "Q").run_count == 1
    cluster.kill("w1")
    until(lambda: not is_alive(tmp_path / "beat"), "the script is ended")
    daemon.kill(signal.SIGTERM)
    daemon.start()  # it knows the scheduler, and waits for it
    assert host(daemon, "w1").state == "down"
    cluster.restart_scheduler()
    cluster.worker("w1")
    assert daemon.until(job, "R").exec_host == "w1/0"
    until(lambda: marks(tmp_path / "beat.starts") == {job: 2}, "it runs again")
    daemon.run("qdel", job)
    daemon.until(job, "FX")


def test_a_worker_that_cannot_be_the_host_is_said_and_left_alone(
    cluster: DaskCluster, start: Start
) -> None:
    cluster.worker("w1", threads=1)
    cluster.worker("other")
    daemon = start(cluster.config("w1"))
    until(lambda: "threads" in host(daemon, "w1").comment, "why w1 is down")
    assert host(daemon, "w1").comment == "dask: its Dask worker has 1 threads, cpus = 2"
    job = daemon.submit("true\n")
    assert daemon.jobs(job)[job].state == "Q"
    file = daemon.directory / "qbatch.toml"
    before = file.read_text(encoding="utf-8")
    file.write_text(before.replace("timeout = 60", "timeout = 61"), encoding="utf-8")
    assert (
        "change only when the daemon is started anew"
        in daemon.run("qbatch", "reload", code=3).stderr
    )
    file.write_text(before.replace('"w1"', '"w[1-2]"'), encoding="utf-8")
    daemon.run("qbatch", "reload")
    assert until_down(daemon, "w2") == "dask: there is no Dask worker w2"
    cluster.kill("w1")
    cluster.worker("w1")
    assert daemon.until(job, "FX").exit_status == 0


def test_an_address_that_does_not_answer_is_reported_in_one_line(tmp_path: Path) -> None:
    (block,) = [
        block
        for block in blocks_of(ROOT / "docs" / "how-to" / "dask-workers.md")
        if 'executor = "dask"' in block.text
    ]
    text = block.text.replace("tcp://head:8786", "tcp://127.0.0.1:9")
    daemon = Daemon(tmp_path, config=text)
    done = daemon.run(*daemon.command(), *daemon.arguments, code=3)
    (line,) = [
        line
        for line in done.stderr.splitlines()
        if "no Dask scheduler answers at tcp://127.0.0.1:9" in line
    ]
    assert "Traceback" not in done.stderr
    assert line.startswith("qbatch: pool cluster: no Dask scheduler")


def test_the_extra_is_named_where_dask_is_missing(tmp_path: Path) -> None:
    (tmp_path / "distributed.py").write_text("raise ImportError('not here')\n", encoding="ascii")
    config = '[[pool]]\nexecutor = "dask"\naddress = "tcp://127.0.0.1:9"\nhosts = "a"\ncpus = 1\n'
    daemon = Daemon(tmp_path, config=config)
    done = daemon.run(
        *daemon.command(), *daemon.arguments, code=3, PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT}"
    )
    assert "pip install '.[dask]' in the folder of the sources" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_document_s_pools_run_jobs_on_both(
    cluster: DaskCluster, start: Start, tmp_path: Path
) -> None:
    (block,) = [
        block
        for block in blocks_of(ROOT / "docs" / "how-to" / "dask-workers.md")
        if 'executor = "dask"' in block.text
    ]
    text = block.text.replace("tcp://head:8786", cluster.address).replace(
        '"/scratch/qbatch"', f'"{cluster.base}/attempts"'
    )
    assert cluster.address in text
    assert str(cluster.base) in text
    cluster.worker("w01", threads=16)
    daemon = start(text)
    until_up(daemon, "w01")
    there = daemon.submit("hostname\n", queue="batch")
    here = daemon.submit("hostname\n", queue="here")
    assert (daemon.until(there, "FX").exec_host, daemon.until(here, "FX").exec_host) == (
        "w01/0",
        "here/0",
    )
