"""What a live daemon wrote down about its jobs, imported as anybody's PBS accounting would be."""

from __future__ import annotations

import json
from pathlib import Path

from qbatch.cli.main import run
from qbatch.results.reading import read_result
from qbatch.workloads import read_log
from tests.daemon.harness import Daemon
from tests.daemon.hostile.tools import until

QUANTA = """
executor = "emulated"
[[pool]]
hosts = "n1"
cpus = 4
policy = "immediate:inner=fcfs-backfill,quantum=60,protect=600"
[[queue]]
name = "batch"
default_walltime = "1:00:00"
"""


def accounted(daemon: Daemon, *jobs: str) -> None:
    """Wait until the ends of jobs stand in the accounting files, which are written after a commit
    is answered."""
    folder = daemon.state / "accounting"
    until(
        lambda: all(
            f";E;{job};" in "".join(each.read_text() for each in folder.iterdir()) for job in jobs
        ),
        "the records",
    )


def test_the_accounting_files_of_a_daemon_become_the_log_of_what_ran(tmp_path: Path) -> None:
    with Daemon(tmp_path, "--time", "virtual", "--executor", "emulated") as daemon:
        wide = daemon.submit(
            "sleep 100\n", resources={"select": "4:ncpus=16", "walltime": "200"}, name="wide"
        )
        small = daemon.submit(
            "sleep 30\n", resources={"select": "1:ncpus=2:mem=1gb", "walltime": "60"}, name="small"
        )
        array = daemon.submit(
            "sleep 10\n", resources={"select": "1:ncpus=4", "walltime": "20"}, array="1-3"
        )
        never = daemon.submit("sleep 10\n", resources={"select": "4:ncpus=16"}, hold="u")
        for job in (wide, small, array):
            daemon.until(job, "FX")
        accounted(daemon, wide, small)
        daemon.run("qdel", never)
        daemon.until(never, "F")
        kept = [
            *daemon.jobs(wide, small).values(),
            *daemon.jobs(*(array.replace("[]", f"[{n}]") for n in (1, 2, 3))).values(),
        ]
        log = tmp_path / "own.swf"
        done = daemon.run(
            "qbatch", "import", "pbs", str(daemon.state / "accounting"), "-o", str(log), "--json"
        )
        assert json.loads(done.stdout)["unusable"] == []
        exported = tmp_path / "exported.swf"
        daemon.run("qbatch", "export", "swf", "-o", str(exported))
        daemon.run("qbatch", "trace", "validate", str(log))
        assert (
            "easy"
            in daemon.run("qbatch", "replay", str(log), "-p", "easy", "-p", "fcfs", "-q").stdout
        )
    ours, theirs = read_log(str(log)), read_log(str(exported))
    ran = ours["run"] >= 0
    expected = sorted(
        (job.submitted // 10**6, (job.ended - job.started) // 10**6, int(job.resources["ncpus"]))
        for job in kept
    )
    base = ours.header.unix_start_time
    columns = (ours["submit"][ran] + base, ours["run"][ran], ours["procs_allocated"][ran])
    assert sorted(zip(*(column.tolist() for column in columns), strict=True)) == expected
    assert int((~ran).sum()) == 1
    assert ours["status"][~ran].tolist() == [5]
    assert sorted(theirs["run"].tolist()) == sorted(ours["run"][ran].tolist())


def test_a_rerun_on_a_daemon_is_two_attempts_in_the_log(tmp_path: Path) -> None:
    with Daemon(
        tmp_path, "--time", "virtual", "--paused", "--origin", "86400", "--executor", "emulated"
    ) as daemon:
        job = daemon.submit("sleep 100\n", resources={"select": "1:ncpus=4", "walltime": "200"})
        daemon.run("qbatch", "time", "until", "86450")
        daemon.run("qrerun", job)
        daemon.run("qbatch", "time", "until", "90000")
        record = daemon.until(job, "F")
        assert (record.exit_status, record.run_count) == (0, 2)
        accounted(daemon, job)
        log = tmp_path / "own.swf"
        daemon.run("qbatch", "import", "pbs", str(daemon.state / "accounting"), "-o", str(log))
        daemon.kill()  # what is known of the attempt that was lost is known after a crash too
        daemon.start("--time", "virtual", "--paused")
        assert daemon.jobs(job)[job].lost == record.lost
        printed = daemon.run("tracejob", job).stdout
        daemon.run("qbatch", "export", "result", "-o", "lived")
    first, again = 86_400_000_000, 86_450_000_000
    assert record.lost == ((1, first, again, 4, "n1/0*4"),)
    assert (record.started, record.first_started) == (again, first)
    assert "attempt 1 is lost, job queued again" in printed
    (rows,) = read_result(tmp_path / "lived").schedules
    assert (rows.start.tolist(), rows.workload.run.tolist(), rows.end.tolist()) == (
        [0],
        [100_000_000],
        [150_000_000],
    )
    assert rows.pieces is not None
    assert rows.pieces[:, [1, 2, 3, 5]].tolist() == [
        [0, 50_000_000, 4, 0],
        [50_000_000, 150_000_000, 4, 1],
    ]
    assert run(["verify", str(tmp_path / "lived")]) == 0
    read = read_log(str(log))
    assert read["run"].tolist() == [50, 100]
    assert read["status"].tolist() == [0, 1]
    assert read["preceding_job"].tolist() == [-1, 1]


def test_quanta_on_a_daemon_are_neither_failures_nor_run_times(tmp_path: Path) -> None:
    virtual = ("--time", "virtual", "--paused", "--origin", "86400")
    with Daemon(tmp_path, *virtual, config=QUANTA) as daemon:
        first = daemon.submit("sleep 1000\n", resources={"ncpus": "4"})
        daemon.run("qbatch", "time", "until", "87000")
        trial = daemon.submit("sleep 100\n", resources={"ncpus": "3", "walltime": "500"})
        daemon.run("qbatch", "time", "until", "91400")
        assert len(daemon.until(trial, "F").trials) == 1
        accounted(daemon, first, trial)
        log = tmp_path / "own.swf"
        files = str(daemon.state / "accounting")
        done = json.loads(
            daemon.run("qbatch", "import", "pbs", files, "-o", str(log), "--json").stdout
        )
        daemon.run("qbatch", "verify", str(log))
    read = read_log(str(log))
    columns = ("submit", "wait", "run", "procs_allocated", "status")
    # The first was suspended for the quantum of the second, of which the trial run was discarded.
    assert list(zip(*(read[name].tolist() for name in columns), strict=True)) == [
        (0, 0, 1000, 4, 1),
        (600, 460, 100, 3, 1),
    ]
    assert (read.header.preemption, done["machine"]["procs"], done["unusable"]) == ("TS", 4, [])
    assert [each["count"] for each in (*done["adjusted"], *done["ignored"])] == [1, 1]
