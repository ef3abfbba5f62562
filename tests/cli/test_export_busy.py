"""Evaluate your own cluster: the log of a daemon that is busy, replayed and compared, says what its
history says."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import qbatch
from qbatch.workloads import read_log
from tests.daemon.harness import Daemon, emulated

HOUR = 3600


def submitted(daemon: Daemon, hours: float, procs: int, walltime: int = 0) -> str:
    resources = {"ncpus": str(procs), "walltime": f"{walltime or int(hours * HOUR)}"}
    return daemon.submit(f"sleep {int(hours * HOUR)}\n", resources=resources)


def waits_of(daemon: Daemon, now: int) -> dict[str, float]:
    """Return the wait of each job by the daemon's own history, so far of those that still wait."""
    found = daemon.jobs(finished="also").values()
    return {
        job.id: ((now if job.started is None else job.started) - (job.eligible or 0)) / 1e6
        for job in found
        if job.state in "FRQ"
    }


@pytest.mark.parametrize("form", ["csv", "parquet", "chrome", "batsim", "result"])
def test_other_forms_say_what_they_leave_out(form: str, tmp_path: Path) -> None:
    with Daemon(
        tmp_path, "--time", "virtual", "--paused", "--origin", "0", config=emulated("n1")
    ) as daemon:
        for hours in (1, 2, 3):
            submitted(daemon, hours, 4)
        daemon.run("qbatch", "time", "until", f"{2 * HOUR}")
        said = daemon.run("qbatch", "export", form, "-o", "out").stderr
    assert "1 jobs; 0 that never ran or are held, 1 that run and 1 that wait are left out" in said


def test_a_busy_daemon_where_nothing_has_ended_exports_its_log_only(tmp_path: Path) -> None:
    with Daemon(
        tmp_path, "--time", "virtual", "--paused", "--origin", "0", config=emulated("n1")
    ) as daemon:
        assert "no job has run yet" in daemon.run("qbatch", "export", "swf", code=3).stderr
        submitted(daemon, 1, 4)
        daemon.run("qbatch", "time", "until", "60")
        assert "no job has ended yet" in daemon.run("qbatch", "export", "csv", code=3).stderr
        log = daemon.run("qbatch", "export", "swf").stdout
    assert log.splitlines()[-1] == "1 0 0 60 4 60 0 4 3600 -1 2 1 1 -1 1 -1 -1 -1"


def test_up_submit_export_replay_verify(tmp_path: Path) -> None:
    with Daemon(
        tmp_path, "--time", "virtual", "--paused", "--origin", "0", config=emulated("n1")
    ) as daemon:
        # One ends, one that waited two hours for it runs, one before them runs still, two wait, one
        # is held.
        submitted(daemon, 20, 1)
        submitted(daemon, 2, 3)
        submitted(daemon, 5, 3, walltime=6 * HOUR)
        submitted(daemon, 1, 4)
        submitted(daemon, 9, 1)
        daemon.submit("sleep 5\n", hold="u")
        daemon.run("qbatch", "time", "until", f"{3 * HOUR}")
        waits = waits_of(daemon, 3 * HOUR * 1_000_000)
        said = daemon.run("qbatch", "export", "swf", "-o", "mine.swf").stderr
        assert (
            "1 ended, 2 running (status 2, run time so far) and 2 waiting (no wait, no run time)"
            in said
        )
        assert "1 that never ran or are held are left out" in said
        replayed = daemon.run(
            "qbatch", "replay", "mine.swf", "-p", "easy", "--json", "--jobs", "rows.csv"
        )
        verdict = daemon.run("qbatch", "verify", "mine.swf", "-p", "easy").stdout
        daemon.run("qbatch", "verify", "mine.swf", "-p", "fcfs")
        daemon.run("qbatch", "replay", "mine.swf", "-p", "easy", "--out", "result")
        compared = daemon.run("qbatch", "compare", "mine.swf", "result:easy")
    log = read_log(str(tmp_path / "mine.swf"))
    assert log["status"].tolist() == [2, 1, 2, -1, -1]
    assert log["run"].tolist() == [3 * HOUR, 2 * HOUR, HOUR, -1, -1]
    assert log["wait"].tolist() == [0, 0, 2 * HOUR, -1, -1]
    assert "written at second 10800 while 2 jobs ran" in log.header.notes[-1]
    document = json.loads(replayed.stdout)
    assert document["unfinished"] == {"second": 10800.0, "running": 2, "waiting": 2}
    assert document["skipped"] == {}
    assert "2 of these jobs ran and 2 waited: they take part and are counted" in replayed.stderr
    lines = (tmp_path / "rows.csv").read_text().splitlines()
    place = lines[0].split(",").index("wait")
    again = {f"{line.split(',')[0]}.qbatch": float(line.split(",")[place]) for line in lines[1:]}
    assert again.keys() == waits.keys()
    # Whoever had started waits as long again, the others at least as long as so far.
    for job, wait in waits.items():
        has_waited = log["wait"].tolist()[int(job.partition(".")[0]) - 1] < 0
        assert again[job] > wait if has_waited else again[job] == wait, job
    assert "3 common jobs (left out: 2 only in B)" in compared.stdout
    # 0, 0 and two hours, as in the history.
    assert "Mean wait: easy and log are equal (40 min)" in compared.stdout
    assert verdict.startswith("kept as far as could be checked")
    assert "EASY: the guarantee to the head" in verdict
    assert "events after 10800 s, when the log was written" in verdict


GPUS = """executor = "emulated"
[[pool]]
[pool.machine]
schema = 2
[[pool.machine.host]]
name = "g[1-2]"
cpus = 8
resources = { "gpu:a100" = 2 }
features = ["ib"]

[[queue]]
name = "batch"
"""


def test_an_export_has_the_side_file_of_jobs_that_ask_for_more(tmp_path: Path) -> None:
    """Live equals replay: the exported log, on the machine of the server, starts every job when the
    server did."""
    with Daemon(tmp_path, "--time", "virtual", "--paused", "--origin", "0", config=GPUS) as daemon:
        for select in ("2:ncpus=2:ngpus=2:ib=true:ompthreads=2", "1:ncpus=1:ngpus=1", "1:ncpus=1"):
            daemon.submit("sleep 60\n", resources={"select": select, "walltime": "100"})
        daemon.run("qbatch", "time", "until", "3600")
        said = daemon.run("qbatch", "export", "swf", "-o", "ours.swf").stderr
        assert "ours.resources.csv: what the jobs ask for" in said
        assert "-o LOG writes them too" in daemon.run("qbatch", "export", "swf").stderr
    lines = (tmp_path / "ours.resources.csv").read_text().splitlines()[1:]
    assert lines == [
        "1,2,2,,2,,,ib,,,free,,,g[1-2],,,,,,,,,",
        "2,1,1,,1,,,,,,,,,g1,,,,,,,,,",
        "3,1,1,,,,,,,,,,,g1,,,,,,,,,",
    ]
    machine = GPUS.partition("[pool.machine]\n")[2].partition("[[queue]]")[0]
    (tmp_path / "m.toml").write_text(machine.replace("pool.machine.", ""))
    machine, side = tmp_path / "m.toml", tmp_path / "ours.resources.csv"
    done = qbatch.replay(tmp_path / "ours.swf", "easy", machine=machine, resources=side)
    real = read_log(str(tmp_path / "ours.swf"))
    assert done.schedules[0].start.tolist() == [
        int(1e6 * each) for each in real["submit"] + real["wait"]
    ]


PARTITIONS = """executor = "emulated"
default_queue = "cpu"
[[pool]]
policy = "easy"
[pool.machine]
schema = 2
[[pool.machine.host]]
name = "n[1-4]"
cpus = 4
[[pool.machine.partition]]
name = "main"
hosts = ["n[1-2]"]
default = true
[[pool.machine.partition]]
name = "big"
hosts = ["n[2-4]"]
share = "exclusive"
[[queue]]
name = "cpu"
[[queue]]
name = "big"
partition = "big"
"""


def test_queues_with_partitions_live_are_as_in_a_replay(tmp_path: Path) -> None:
    with Daemon(
        tmp_path, "--time", "virtual", "--paused", "--origin", "0", config=PARTITIONS
    ) as daemon:
        for number in range(40):
            queue, many = ("cpu", "big")[number * 7 % 3 > 0], 1 + number % 3
            seconds = 30 + 37 * number % 200
            daemon.submit(
                f"sleep {seconds}\n",
                queue=queue,
                resources={"select": f"{many}:ncpus={1 + number % 2}", "walltime": "300"},
            )
            if number % 4 == 0:
                daemon.run("qbatch", "time", "until", str(20 * (number + 1)))
        daemon.run("qbatch", "time", "until", "36000")
        assert "partition = big" in daemon.run("qstat", "-Q", "-f", "big").stdout
        daemon.run("qbatch", "export", "swf", "-o", "ours.swf")
    machine = PARTITIONS.partition("[pool.machine]\n")[2].partition("[[queue]]")[0]
    (tmp_path / "m.toml").write_text(machine.replace("pool.machine.", ""))
    machine, side = tmp_path / "m.toml", tmp_path / "ours.resources.csv"
    done = qbatch.replay(tmp_path / "ours.swf", "easy", machine=machine, resources=side)
    real = read_log(str(tmp_path / "ours.swf"))
    starts = (np.asarray(real["submit"] + real["wait"]) * 1e6).astype(np.int64)
    assert done.schedules[0].start.tolist() == starts.tolist()
    daemon_side = side.read_text()
    assert ",big,1," not in daemon_side  # whole hosts are of the partition, not of the job
    assert daemon_side.count(",big,") == sum(number * 7 % 3 > 0 for number in range(40))
