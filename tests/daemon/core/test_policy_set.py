"""Another policy on the live server: said before, journaled, kept in snapshots, given up when the
configuration changes."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from qbatch.client import ClientSession
from qbatch.model.errors import QbatchError
from qbatch.wire.errors import Refusal
from qbatch.wire.records import Text
from qbatch.wire.requests import PolicySet
from tests.daemon.harness import Daemon, emulated


def decides(daemon: Daemon) -> str:
    return daemon.run("qbatch", "policy", "show").stdout.splitlines()[-1].split()[-1]


def test_a_policy_is_set_kept_over_crashes_and_given_up(tmp_path: Path) -> None:
    with Daemon(
        tmp_path, "--time", "virtual", "--paused", "--origin", "0", config=emulated()
    ) as daemon:
        for width in (4, 3, 1):
            daemon.submit(
                "sleep 100\n", resources={"select": f"4:ncpus={width}", "walltime": "200"}
            )
        daemon.run("qbatch", "time", "until", "1")
        said = daemon.run("qbatch", "policy", "set", "sjf-backfill", "--dry-run").stdout
        assert (
            "easy -> sjf-backfill; 1 running jobs run on, 2 waiting jobs are looked at anew" in said
        )
        assert decides(daemon) == "easy"
        assert (
            "easy -> sjf-backfill" in daemon.run("qbatch", "policy", "set", "sjf-backfill").stderr
        )
        assert decides(daemon) == "sjf-backfill"
        daemon.kill()
        daemon.start("--time", "virtual", "--paused")
        assert decides(daemon) == "sjf-backfill"  # from the journal
        daemon.run("qbatch", "down")
        daemon.start("--time", "virtual", "--paused")
        assert decides(daemon) == "sjf-backfill"  # from a snapshot
        short = daemon.submit("sleep 1\n", resources={"select": "4:ncpus=4", "walltime": "2"})
        daemon.run("qbatch", "time", "until-start", short)
        running = [job.id for job in daemon.jobs().values() if job.state == "R"]
        assert running == [short]  # the shortest is next, not the first
        daemon.run("qbatch", "down", "--jobs")
        (tmp_path / "qbatch.toml").write_text(emulated(top='policy = "fcfs"\n'), encoding="utf-8")
        daemon.start("--time", "virtual", "--paused")
        assert decides(daemon) == "fcfs"  # the configuration has said something else since


def test_another_policy_in_the_configuration_decides_over_jobs_that_run(tmp_path: Path) -> None:
    with Daemon(
        tmp_path, "--time", "virtual", "--paused", "--origin", "0", config=emulated()
    ) as daemon:
        running, waiting = (
            daemon.submit("sleep 100\n", resources={"select": "4:ncpus=4", "walltime": "200"})
            for _ in range(2)
        )
        short = daemon.submit("sleep 1\n", resources={"select": "4:ncpus=4", "walltime": "2"})
        daemon.run("qbatch", "time", "until", "1")
        (tmp_path / "qbatch.toml").write_text(
            emulated(top='policy = "sjf-backfill"\n'), encoding="utf-8"
        )
        daemon.run("qbatch", "reload")
        assert decides(daemon) == "sjf-backfill"
        daemon.kill()
        # Also at a start.
        daemon.start("--time", "virtual", "--paused", "--policy", "easy:order=sjf")
        assert decides(daemon) == "easy:order=sjf"
        daemon.run("qbatch", "time", "until", "1000")
        ended = daemon.jobs(running, waiting, short)
        assert [ended[name].ended for name in (running, short, waiting)] == [
            100_000_000,
            101_000_000,
            201_000_000,
        ]


def test_a_policy_that_refuses_the_machine_changes_nothing(tmp_path: Path) -> None:
    with Daemon(tmp_path, config=emulated()) as daemon:
        assert (
            "single_host = true"
            in daemon.run("qbatch", "policy", "set", "equispatial", code=2).stderr
        )
        assert decides(daemon) == "easy"


def test_jobs_that_are_ended_at_the_stop_free_no_resources_for_others(tmp_path: Path) -> None:
    with Daemon(tmp_path, config=emulated(hosts="n1").replace("emulated", "process")) as daemon:
        running, waiting = (
            daemon.submit("sleep 300\n", resources={"ncpus": "4"}) for _ in range(2)
        )
        daemon.until(running, "R")
        said = daemon.run("qbatch", "down", "--jobs").stderr
        assert "1 running jobs were ended; 1 waiting ones stay queued" in said
        daemon.start()
        assert daemon.jobs(running)[running].exit_status == 271
        assert daemon.until(waiting, "R").run_count == 1


def test_what_cannot_be_set_is_said(tmp_path: Path) -> None:
    with Daemon(tmp_path, config=emulated()) as daemon:
        assert "sjf-backfill" in daemon.run("qbatch", "policy", "set", "sjf-backfil", code=2).stderr
        assert (
            "pools: main"
            in daemon.run("qbatch", "policy", "set", "easy", "--pool", "bach", code=2).stderr
        )
        assert "decides already" in daemon.run("qbatch", "policy", "set", "easy").stderr
        with ClientSession(daemon.socket) as session, pytest.raises(Refusal, match="no parameter"):
            session.ask(PolicySet(policy="easy:dpth=3"), Text)


def test_a_job_that_the_old_policy_suspended_goes_on_under_the_new_one(tmp_path: Path) -> None:
    config = emulated(hosts="n1", top='policy = "immediate:inner=easy,protect=0"\n')
    with Daemon(
        tmp_path, "--time", "virtual", "--paused", "--origin", "0", config=config
    ) as daemon:
        preempted = daemon.submit("sleep 500\n", resources={"ncpus": "4", "walltime": "600"})
        daemon.run("qbatch", "time", "until", "100")
        trial = daemon.submit("sleep 200\n", resources={"ncpus": "4", "walltime": "300"})
        daemon.run("qbatch", "time", "until", "110")
        assert [daemon.jobs(name)[name].state for name in (preempted, trial)] == ["S", "R"]
        assert "is suspended by immediate" in daemon.run("qbatch", "explain", preempted).stdout
        assert "has a quantum on n1" in daemon.run("qbatch", "explain", trial).stdout
        said = daemon.run("qbatch", "policy", "set", "fcfs").stderr
        assert "0 running jobs run on" in said
        assert "1 quanta end and their jobs wait again, 1 jobs that it has suspended go on" in said
        daemon.kill()
        daemon.start("--time", "virtual", "--paused")
        daemon.run("qbatch", "time", "until", "120")
        assert [daemon.jobs(name)[name].state for name in (preempted, trial)] == ["R", "Q"]
        daemon.run("qbatch", "time", "until", "1000")
        ended = daemon.jobs(preempted, trial)
        assert (ended[preempted].ended, ended[trial].ended) == (510_000_000, 710_000_000)


BROKEN = """
from qbatch.model.actions import Chunk, Start


class Greedy:
    name = "greedy"

    def decide(self, view):
        return [Start(row) for row in view.queue.tolist()]
"""


def test_a_policy_that_overcommits_stops_the_server_and_another_takes_its_jobs(
    tmp_path: Path,
) -> None:
    (tmp_path / "broken.py").write_text(BROKEN, encoding="utf-8")
    daemon = Daemon(tmp_path, config=emulated(hosts="n1")).start("--policy", "broken:Greedy")
    first = daemon.submit("sleep 300\n", resources={"ncpus": "4"})
    daemon.until(first, "R")
    with suppress(QbatchError):
        daemon.submit("sleep 300\n", resources={"ncpus": "4"})  # may be answered, and is kept then
    assert daemon.process is not None
    assert daemon.process.wait(30) == 1
    assert (
        "start again under another policy, for example qbatch up --policy easy"
        in daemon.log().splitlines()[-1]
    )
    with daemon.start("--policy", "easy"):
        jobs = daemon.jobs()
        assert jobs[first].state == "R"
        assert all(job.state == "Q" for name, job in jobs.items() if name != first)
