"""``qrun``, ``qterm``, ``qmgr`` and ``pbsdsh`` against a real server: what they do holds after a
crash."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.daemon.harness import Daemon, emulated

WHOLE = {"select": "4:ncpus=4", "walltime": "100"}


def on_hosts(daemon: Daemon, *names: str) -> list[str]:
    jobs = daemon.jobs(*names)
    return [f"{jobs[name].state} {jobs[name].exec_vnode}" for name in names]


@pytest.mark.parametrize("policy", ["fcfs", "conservative"])
def test_a_forced_start_is_kept_over_a_crash_and_the_policy_goes_on(
    policy: str, tmp_path: Path
) -> None:
    config = emulated(top=f'policy = "{policy}"\n')
    with Daemon(
        tmp_path, "--time", "virtual", "--paused", "--origin", "0", config=config
    ) as daemon:
        first = daemon.submit(
            "sleep 100\n", resources={"select": "3:ncpus=4", "walltime": "100"}, runtime=50_000_000
        )
        second = daemon.submit("sleep 100\n", resources=WHOLE)
        third, fourth = (
            daemon.submit("x\n", resources={"ncpus": "2", "walltime": "1000"}) for _ in range(2)
        )
        daemon.run("qbatch", "time", "until", "1")
        assert on_hosts(daemon, first, second, third) == [
            "R (n1:ncpus=4)+(n2:ncpus=4)+(n3:ncpus=4)",
            "Q ",
            "Q ",
        ]
        daemon.run("qrun", "-H", "n4", third)
        # Conservative plans anew: the wide job waits for the forced one now, and the last delays it
        # no more.
        last = "Q " if policy == "fcfs" else "R (n4:ncpus=2)"
        assert on_hosts(daemon, third, fourth) == ["R (n4:ncpus=2)", last]
        assert (
            daemon.jobs(third)[third].comment
            == f"started by root with qrun, not by policy {policy}"
        )
        refused = daemon.run("qrun", second, "999", code=2).stderr.splitlines()
        assert refused[0].startswith(
            "qrun: Resources temporarily unavailable: it cannot start now: it asks for 16 "
        )
        assert refused[1] == "qrun: Unknown Job Id 999.qbatch"
        daemon.kill()
        daemon.start("--time", "virtual", "--paused")
        assert on_hosts(daemon, first, second, third, fourth)[1:] == ["Q ", "R (n4:ncpus=2)", last]
        daemon.run("qbatch", "time", "until", "2000")
        ended = daemon.jobs(first, second, third)
        assert [ended[name].started for name in (first, third)] == [0, 1_000_000]
        assert ended[second].started == ended[third].ended == 1_001_000_000
        assert daemon.run("qbatch", "check").returncode == 0


def test_what_waits_for_something_else_is_not_forced(tmp_path: Path) -> None:
    queues = (
        '[[queue]]\nname = "narrow"\nmax_running = 1\n[[pool]]\nname = "other"\nhosts = '
        '"m1"\n'
        "cpus = 1\n"
    )
    with Daemon(
        tmp_path, "--time", "virtual", "--paused", "--origin", "0", config=emulated(queues=queues)
    ) as daemon:
        runs, limited = (
            daemon.submit("x\n", queue="narrow", resources={"ncpus": "1"}) for _ in range(2)
        )
        held = daemon.submit("x\n", hold="u")
        array = daemon.submit("x\n", array="1-2", resources=WHOLE)
        daemon.run("qbatch", "time", "until", "1")
        for job, why in (
            (runs, "has run for 00:00:01 on n1"),
            (limited, "queue narrow lets 1 jobs run at once"),
            (held, "is held (u)"),
            (array, "name one of its jobs, such as 4[1].qbatch"),
        ):
            said = daemon.run("qrun", job, code=2).stderr
            assert said.startswith(f"qrun: Request invalid for state of job {job}: {why}"), said
        assert (
            "host m1 is not in pool main" in daemon.run("qrun", "-H", "m1", "4[1]", code=2).stderr
        )
        said = daemon.run("qrun", "-H", "n9", "4[1]", code=2).stderr
        assert said.startswith("qrun: Unknown node  4[1].qbatch: n9"), said
        assert (
            "it asks for 16 processors, 4 are free on n2"
            in daemon.run("qrun", "-H", "n2", "4[1]", code=2).stderr
        )
        daemon.run("qdel", runs)
        assert daemon.run("qrun", "4[1]").stdout == ""
        assert daemon.jobs("4[1]", subjobs=True)["4[1].qbatch"].state == "R"


@pytest.mark.parametrize("manner", ["quick", "delay", "immediate"])
def test_the_server_stops_in_each_manner(manner: str, tmp_path: Path) -> None:
    config = emulated(hosts="n1", top='kill_delay = "1"\n').replace("emulated", "process")
    with Daemon(tmp_path, config=config) as daemon:
        again = daemon.submit("exec sleep 300\n", resources={"ncpus": "2", "walltime": "5:00"})
        once = daemon.submit("exec sleep 300\n", resources={"ncpus": "2"}, is_rerunnable=False)
        waits = daemon.submit("exec sleep 300\n", resources={"ncpus": "4"})
        for job in (again, once):
            daemon.until(job, "R")
        assert "it is no server other" in daemon.run("qterm", "other", code=255).stderr
        assert "no secondary server" in daemon.run("qterm", "-i", code=181).stderr
        done = daemon.run("qterm", "-t", manner)
        assert (done.stdout, done.stderr) == ("", "")
        assert daemon.process is not None
        assert daemon.process.wait(60) == 0
        daemon.process = None
        daemon.start()
        begun = {"quick": (1, 1, 0), "delay": (2, 1, 0), "immediate": (1, 1, 1)}[manner]
        if manner == "delay":
            daemon.until(again, "R")  # again, next to the one that has run on
        if manner == "immediate":
            daemon.until(waits, "R")  # it has waited for longer than the one that was queued again
            assert daemon.jobs(once)[once].exit_status == 271
            assert daemon.jobs(again)[again].state == "Q"
        jobs = daemon.jobs(again, once, waits)
        assert tuple(jobs[name].run_count for name in (again, once, waits)) == begun
        daemon.run("qdel", *[name for name in jobs if jobs[name].state != "F"])


def test_queues_and_hosts_are_set(tmp_path: Path) -> None:
    with Daemon(tmp_path, config=emulated()) as daemon:
        commands = (
            "set queue batch enabled = False\nset node n1 state = offline\nset node n1 "
            "comment = 'a new disk'\n"
        )
        assert daemon.run("qmgr", stdin=commands).stdout == ""
        assert daemon.run("qsub", stdin="true\n", code=173).stderr.startswith(
            "qsub: Queue is not enabled"
        )
        assert daemon.run("pbsnodes", "-l").stdout.split() == ["n1", "offline", "a", "new", "disk"]
        # What is printed can be read again: what only the configuration sets is refused by name.
        printed = daemon.run("qmgr", "-c", "print queue batch").stdout
        refused = daemon.run("qmgr", stdin=printed, code=None).stderr.splitlines()
        assert all("then qbatch reload" in line for line in refused[::2])
        assert {line[:13] for line in refused[1::2]} == {"qmgr: Error ("}
        daemon.run("qmgr", "-c", "set queue batch enabled = True, started = True")
        assert daemon.run("qsub", stdin="true\n").stdout == "1.qbatch\n"


def test_pbsdsh_runs_a_program_on_the_slots_of_a_job(tmp_path: Path) -> None:
    with Daemon(tmp_path, config=emulated().replace("emulated", "process")) as daemon:
        script = (
            "#!/bin/sh\npbsdsh -s -- sh -c 'echo $PBS_TASKNUM $PBS_NODENUM $PBS_VNODENUM'\n"
            "pbsdsh -n 2 false\n"
        )
        job = daemon.submit(
            script,
            resources={"select": "2:ncpus=4:mpiprocs=2"},
            join="oe",
            output=str(tmp_path / "out"),
        )
        assert daemon.until(job, "F").exit_status == 0
        said = (tmp_path / "out").read_text().splitlines()
        assert said == ["2 0 0", "3 0 1", "4 1 2", "5 1 3", "pbsdsh: task 0x00000000 exit status 1"]
