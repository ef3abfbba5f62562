"""A log of one's own through one's own queues and pools in virtual time, and what came of it
compared with what happened."""

from __future__ import annotations

import json
import time
from pathlib import Path

from qbatch.results.reading import read_result
from qbatch.wire.records import ClockRecord
from qbatch.wire.requests import Time
from qbatch.workloads import read_log
from tests.daemon.harness import Daemon
from tests.daemon.test_promise import finished

QUEUES = """
executor = "emulated"
[[pool]]
name = "thin"
hosts = "n[1-2]"
cpus = 4
[[pool]]
name = "fat"
hosts = ["big"]
cpus = 16
policy = "conservative"
[[queue]]
name = "batch"
pool = "thin"
[[queue]]
name = "large"
pool = "fat"
"""
HEADER = (
    "; MaxProcs: 24\n; UnixStartTime: 1700000000\n; Queue: 2 batch\n; Queue: 1 large\n; "
    "Queue: 3 gone\n"
)
NUMBERS = [40, 11, 12, 30, 31, 99]
ROWS = [
    # submit, wait, run, allocated, requested processors, requested time, queue; numbers have gaps
    # and an order of their own
    (5000, 10, 600, 4, 4, 900, 2),
    (5100, 0, 500, 16, 16, 600, 1),
    (5150, 70, 300, 8, 6, 400, 2),
    (5200, 0, 200, 12, 12, 200, 1),
    (7000, 20, 100, 2, 2, 300, 3),
    (9000, 0, 50, 1, 1, 60, 2),
]


def write_log(path: Path, more: str = "") -> None:
    lines = [
        (
            f"{number} {submit} {wait} {run} {had} -1 -1 {asked} {walltime} -1 1 3 1 -1 {queue} -1 "
            "-1 "
            "-1\n"
        )
        for number, (submit, wait, run, had, asked, walltime, queue) in zip(
            NUMBERS, ROWS, strict=True
        )
    ]
    path.write_text(HEADER + "".join(lines) + more, encoding="utf-8")


def run_until(daemon: Daemon, second: int) -> None:
    daemon.run("qbatch", "time", "until", str(second))
    with daemon.session() as session:
        while session.ask(Time(), ClockRecord).now < second * 1_000_000:
            time.sleep(0.01)


def test_a_log_through_ones_own_queues_is_compared_with_what_happened(tmp_path: Path) -> None:
    # Wider than its pool.
    write_log(tmp_path / "mine.swf", "50 9100 0 60 20 -1 -1 20 60 -1 1 3 1 -1 1 -1 -1 -1\n")
    fed = ("--trace", str(tmp_path / "mine.swf"), "--time", "virtual")
    with Daemon(tmp_path, *fed, config=QUEUES) as daemon:
        jobs = {int(job.extra["log_number"]): job for job in finished(daemon)}
        daemon.run("qbatch", "export", "result", "-o", "lived")
        daemon.run("qbatch", "export", "swf", "-o", "lived.swf")
        compared = json.loads(daemon.run("qbatch", "compare", "mine.swf", "lived", "--json").stdout)
        measured = json.loads(
            daemon.run("qbatch", "metrics", "mine.swf", "lived", "--by", "queue", "--json").stdout
        )
        assert "job 50 of the log is refused: " in daemon.log()
    assert {number: job.queue for number, job in jobs.items()} == {
        40: "batch",
        11: "large",
        12: "batch",
        30: "large",
        31: "batch",
        99: "batch",
    }
    assert {job.exec_host.partition("/")[0] for job in jobs.values() if job.queue == "large"} == {
        "big"
    }
    log = read_log(str(tmp_path / "lived.swf"))
    assert log["job"].tolist() == NUMBERS
    assert log["submit"].tolist() == [row[0] for row in ROWS]
    assert log.header.unix_start_time == 1_700_000_000
    assert log["wait"].tolist() == [0, 0, 450, 400, 0, 0]
    rows = read_result(str(tmp_path / "lived")).schedules[0].workload
    assert sorted(rows.number.tolist()) == sorted(NUMBERS)
    assert compared["jobs"] == {"common": 6, "only_a": 1, "only_b": 0, "not_counted": 0}
    assert [note for note in compared["notes"] if "another" in note] == [
        "1 of 6 common jobs have another number of processors in B than in A"
    ]
    queues = {
        one["policy"]: {each["label"]: each["jobs"] for each in one["by"]["queue"]}
        for one in measured["results"]
    }
    assert queues == {"log": {"batch": 3, "large": 2, "gone": 1}, "live": {"batch": 4, "large": 2}}


def test_numbers_of_a_log_outlive_a_kill_and_a_restart_and_no_other_job_has_one_of_them(
    tmp_path: Path,
) -> None:
    write_log(tmp_path / "mine.swf")
    fed = ("--trace", str(tmp_path / "mine.swf"), "--time", "virtual", "--paused")
    with Daemon(tmp_path, *fed, config=QUEUES) as daemon:
        daemon.submit("sleep 60\n", resources={"ncpus": "1", "walltime": "100"})
        run_until(daemon, 1_700_006_000)
        daemon.submit("sleep 70\n", resources={"ncpus": "1", "walltime": "100"})
        daemon.kill()
        daemon.start()
        run_until(daemon, 1_700_006_500)
        daemon.run("qbatch", "down")
        daemon.process = None
        daemon.start()
        run_until(daemon, 1_700_008_000)
        daemon.run("qbatch", "export", "csv", "-o", "lived.csv")
        daemon.run("qbatch", "export", "swf", "-o", "lived.swf")
        compared = json.loads(
            daemon.run("qbatch", "compare", "mine.swf", "lived.swf", "--json").stdout
        )
    lines = (tmp_path / "lived.csv").read_text(encoding="utf-8").splitlines()[1:]
    numbers = {int(line.split(",")[0]) for line in lines}
    # 99, the largest of the log, has not arrived yet.
    assert numbers == {40, 11, 12, 30, 31, 100, 101}
    assert set(read_log(str(tmp_path / "lived.swf"))["job"].tolist()) == numbers
    assert compared["jobs"] == {"common": 5, "only_a": 1, "only_b": 2, "not_counted": 0}
