"""The commands of a living daemon, as a user types them."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.daemon.harness import ROOT, Daemon

EMULATED = """
executor = "emulated"
[[pool]]
hosts = "n[1-4]"
cpus = 4
[[queue]]
name = "batch"
[[queue]]
name = "other"
max_running = 1
"""


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with Daemon(tmp_path_factory.mktemp("real")) as daemon:
        yield daemon


@pytest.fixture
def paused(tmp_path: Path) -> Iterator[Daemon]:
    with Daemon(
        tmp_path, "--time", "virtual", "--paused", "--origin", "0", config=EMULATED
    ) as daemon:
        yield daemon


def document(daemon: Daemon, *command: str) -> dict[str, object]:
    found = json.loads(daemon.run("qbatch", *command, "--json").stdout)
    assert found["schema"].startswith("qbatch.")
    assert found["schema"].endswith("/1")
    return found  # type: ignore[no-any-return]


def test_a_job_from_submission_to_history(real: Daemon) -> None:
    job = real.run(
        "qbatch",
        "submit",
        "--name",
        "first",
        "--procs",
        "2",
        "--",
        "sh",
        "-c",
        "echo $PBS_JOBID; exit 3",
    ).stdout.strip()
    done = real.run("qbatch", "wait", job, code=3)
    assert f"{job} ended with 3" in done.stderr
    assert (real.directory / f"first.o{job.split('.')[0]}").read_text(
        encoding="utf-8"
    ) == f"{job}\n"
    table = real.run("qbatch", "history", "--name", "fir*", "--exit", "failed").stdout
    assert job in table
    record = document(real, "jobs", job)["jobs"][0]  # type: ignore[index]
    assert record["exit_status"] == 3
    assert record["resources"]["ncpus"] == "2"
    assert real.run("qbatch", "jobs").stderr.startswith("no active jobs")


def test_a_dry_run_and_a_refusal_queue_nothing(real: Daemon) -> None:
    said = real.run(
        "qbatch", "submit", "--dry-run", "-l", "select=2:ncpus=4", "-t", "0:2:0", "--", "true"
    ).stdout
    assert "would be queued in batch: a job of 8 processors in 2 chunks for 00:02:00" in said
    refused = real.run("qbatch", "submit", "-n", "200", "--", "true", code=8)
    assert (
        "needs 200 processors on one host; the largest host of queue batch has 16" in refused.stderr
    )
    assert refused.stdout == ""


def test_submitting_and_waiting_in_one_go(real: Daemon) -> None:
    script = real.directory / "job.sh"
    script.write_text(
        "#!/bin/sh\n#PBS -N scripted\necho out; echo err >&2; exit 5\n", encoding="utf-8"
    )
    done = real.run("qbatch", "submit", "--wait", str(script), code=5)
    number = done.stdout.split(".")[0]
    assert (real.directory / f"scripted.e{number}").read_text(encoding="utf-8") == "err\n"


def test_status_doctor_and_check_find_nothing_wrong(real: Daemon) -> None:
    assert "executor:      process" in real.run("qbatch", "status").stdout
    assert "qbatch_passes_total" in real.run("qbatch", "status", "--prometheus").stdout
    assert "wrong" not in real.run("qbatch", "doctor").stdout
    assert "integrity ok" in real.run("qbatch", "check").stdout


def test_a_job_that_was_deleted_before_it_ran_is_called_cancelled(real: Daemon) -> None:
    job = real.run("qbatch", "submit", "--name", "never", "--hold", "--", "true").stdout.strip()
    real.run("qbatch", "delete", job)
    assert f"{job} was cancelled before it ran" in real.run("qbatch", "wait", job, code=1).stderr
    for command in (("jobs", "-x", "-c", "id,status,comment"), ("history", "--name", "never")):
        (line,) = [
            line
            for line in real.run("qbatch", *command).stdout.splitlines()
            if line.startswith(f"{job} ")
        ]
        assert "cancelled" in line
        assert "271" not in line
    assert "was cancelled before it ran" in real.run("qbatch", "explain", job).stdout
    ran = real.run("qbatch", "submit", "--", "sleep", "60").stdout.strip()
    real.until(ran, "R")
    real.run("qbatch", "delete", "--force", ran)
    assert f"{ran} ended with 271" in real.run("qbatch", "wait", ran, code=1).stderr


def test_what_ran_becomes_a_log_that_replay_takes(real: Daemon) -> None:
    for _ in range(3):
        real.run("qbatch", "submit", "--wait", "--", "sleep", "0.1")
    log = real.directory / "ran.swf"
    real.run("qbatch", "export", "swf", "-o", str(log))
    found = json.loads(real.run("qbatch", "replay", str(log), "-p", "easy", "--json").stdout)
    assert found["results"][0]["metrics"]["jobs"] >= 3


def test_a_running_job_survives_the_daemon(real: Daemon) -> None:
    job = real.run(
        "qbatch", "submit", "--name", "long", "--", "sh", "-c", "sleep 2; exit 9"
    ).stdout.strip()
    real.until(job, "R")
    real.kill()
    real.start()
    assert real.until(job, "F").exit_status == 9


def test_virtual_time_is_paused_stepped_and_run_until_something_happens(paused: Daemon) -> None:
    jobs = [
        paused.submit("sleep 100\n", resources={"select": "4:ncpus=4", "walltime": "200"})
        for _ in range(3)
    ]
    assert {job.state for job in paused.jobs(*jobs).values()} == {"Q"}
    assert "paused" in paused.run("qbatch", "time").stdout
    paused.run("qbatch", "time", "until", "50")
    assert document(paused, "time")["now"] == 50_000_000
    assert paused.jobs(*jobs)[jobs[0]].state == "R"
    paused.run("qbatch", "time", "until-start", jobs[1])
    deadline = time.monotonic() + 20
    while paused.jobs(jobs[1])[jobs[1]].state != "R":
        assert time.monotonic() < deadline
    clock = document(paused, "time")
    assert (clock["now"], clock["is_paused"]) == (100_000_000, True)
    paused.run("qbatch", "time", "step")
    assert document(paused, "time")["now"] == 200_000_000
    paused.run("qbatch", "time", "play")
    ended = paused.until(jobs[2], "F")
    assert ended.ended == 300_000_000


def test_why_and_when(paused: Daemon) -> None:
    first = paused.submit("sleep 100\n", resources={"select": "4:ncpus=4", "walltime": "200"})
    second = paused.submit("sleep 10\n", resources={"select": "2:ncpus=4", "walltime": "50"})
    limited = [
        paused.submit("sleep 500\n", queue="other", resources={"walltime": "600"}) for _ in range(2)
    ]
    paused.run("qbatch", "time", "until", "10")
    text = paused.run("qbatch", "explain", second).stdout
    assert "needs 8 processors, 0 are free" in text
    found = document(paused, "explain", second)
    assert found["estimated_start"] == 200_000_000
    assert found["code"] == "processors"
    assert document(paused, "explain", limited[1])["code"] == "queue-limit"
    forecasts = {each["job"]: each["start"] for each in document(paused, "forecast")["jobs"]}  # type: ignore[union-attr,index]
    assert forecasts[second] == 200_000_000
    assert first not in forecasts
    shown = paused.run("qstat", "-s").stdout
    assert "Not Running: needs 8 processors, 0 are free" in shown


def test_hosts_and_queues_are_driven_by_hand(paused: Daemon) -> None:
    paused.run("qbatch", "host", "drain", "n[1-2]", "--comment", "new disks")
    hosts = {host["name"]: host for host in document(paused, "hosts")["hosts"]}  # type: ignore[union-attr,index]
    assert [hosts[f"n{number}"]["state"] for number in range(1, 5)] == [
        "offline",
        "offline",
        "free",
        "free",
    ]
    assert hosts["n1"]["comment"] == "new disks"
    paused.run("qbatch", "queue", "disable", "other")
    assert (
        "Queue is not enabled"
        in paused.run("qsub", "-q", "other", "--", "true", code=15021 % 256).stderr
    )
    assert paused.run("qbatch", "host", "drain", "n9", code=6).stderr.startswith(
        "qbatch: Unknown node n9; did you mean"
    )
    assert (
        paused.run("qbatch", "queue", "stop", "nope", code=6).stderr
        == "qbatch: Unknown queue nope\n"
    )


def test_selectors_delete_what_they_find(paused: Daemon) -> None:
    jobs = [paused.submit(name=f"s{number}", hold="u" if number % 2 else "") for number in range(4)]
    paused.run("qbatch", "delete", "--state", "H")
    left = paused.run("qbatch", "jobs", "--ids").stdout.split()
    assert left == [jobs[0], jobs[2]]
    shown = paused.run("qbatch", "jobs", "--where", "name=s2", "--columns", "id,state").stdout
    assert [line.split() for line in shown.splitlines()[1:]] == [[jobs[2], "Q"]]
    assert (
        "there is no column 'nme'; did you mean 'name'?"
        in paused.run("qbatch", "jobs", "--columns", "nme", code=2).stderr
    )


def test_a_reload_takes_the_new_configuration_or_keeps_the_old_one(paused: Daemon) -> None:
    path = paused.directory / "qbatch.toml"
    job = paused.submit(queue="other")
    path.write_text(EMULATED + '[[queue]]\nname = "third"\n', encoding="utf-8")
    assert '+ name = "third"' in paused.run("qbatch", "reload").stdout
    assert paused.submit(queue="third")
    path.write_text(EMULATED.replace("cpus = 4", "cpsu = 4"), encoding="utf-8")
    failed = paused.run("qbatch", "reload", code=None)
    assert failed.returncode != 0
    assert "line 5, key 'cpsu': is not known in [[pool]]; did you mean 'cpus'?" in failed.stderr
    path.write_text(EMULATED.replace('name = "other"', 'name = "others"'), encoding="utf-8")
    assert (
        "queue other cannot go while it has 1 jobs"
        in paused.run("qbatch", "reload", code=None).stderr
    )
    assert paused.jobs(job)[job].state == "Q"


def test_up_and_down_in_the_background(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path)
    where = ("--state", str(tmp_path / "state"), "--socket", daemon.socket)
    up = daemon.run("qbatch", "up", *where)
    assert "the daemon is up" in up.stderr
    assert oct(os.stat(daemon.socket).st_mode & 0o777) == "0o600"
    assert "a daemon is up already" in daemon.run("qbatch", "up", *where, code=75).stderr
    assert "1.qbatch" in daemon.run("qsub", "--", "true").stdout
    down = daemon.run("qbatch", "down")
    assert "the daemon has stopped" in down.stderr
    gone = daemon.run("qbatch", "status", code=5)
    assert "start one with: qbatch up" in gone.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("up", "--time", "x0"), 2, "--time x0: write real"),
        (("up", "--executor", "cloud", "--foreground"), 2, "write process or emulated"),
        (("up", "--foreground", "--config", "absent.toml"), 3, "absent.toml"),
        (("up", "--foreground", "--policy", "esay"), 2, "did you mean 'easy'"),
        (("up", "--foreground", "--trace", "absent.swf"), 3, "absent.swf"),
        (("up", "--foreground", "--executor", "process", "--time", "x10"), 3, "needs --time real"),
        (("up", "--foreground", "--socket", "/tmp/" + "x" * 110), 3, "the kernel takes 107"),
        (("config", "check", "--config", "absent.toml"), 3, "absent.toml"),
        (("delete",), 2, "name at least one job"),
        (("export", "pdf"), 2, "use one of parquet, csv, swf, chrome, batsim"),
        (("restore", "absent.db"), 3, "there is no such file"),
    ],
)
def test_a_mistake_is_one_line(
    tmp_path: Path, arguments: tuple[str, ...], code: int, text: str
) -> None:
    done = Daemon(tmp_path).run("qbatch", *arguments, code=code)
    assert text in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_log_arrives_in_the_live_queue_while_people_submit(tmp_path: Path) -> None:
    trace = str(ROOT / "traces" / "demo-128.swf")
    with Daemon(
        tmp_path, "--trace", trace, "--first", "50", "--time", "virtual", "--paused"
    ) as daemon:
        mine = daemon.submit("sleep 10\n", name="mine")
        daemon.run("qbatch", "time", "play")
        assert daemon.until(mine, "F").exit_status == 0
        deadline = time.monotonic() + 30
        while "50 of 50 jobs" not in daemon.run("qbatch", "time").stdout:
            assert time.monotonic() < deadline
        users = {job.user for job in daemon.jobs().values()}
        assert any(user.startswith("user") for user in users)
        assert re.search(r"\(2024-12-3\d .*\), 50 of 50 jobs", daemon.run("qbatch", "time").stdout)
        assert " 2024-12-30 " in daemon.run("qbatch", "history", TZ="UTC").stdout
        daemon.run("qbatch", "export", "swf", "-o", "mine.swf")
        assert "; UnixStartTime: 17355" in (tmp_path / "mine.swf").read_text()


def test_time_runs_until_a_second_of_the_log_or_of_the_clock(tmp_path: Path) -> None:
    trace = str(ROOT / "traces" / "demo-128.swf")
    with Daemon(
        tmp_path, "--trace", trace, "--first", "50", "--time", "virtual", "--paused"
    ) as daemon:
        for second in ("3600", "1735524000"):
            clock = daemon.run("qbatch", "time", "until", second, TZ="UTC").stdout
            instant = "2024-12-30 01:00:00" if second == "3600" else "2024-12-30 02:00:00"
            assert f"until {instant}" in clock or f"({instant})" in clock
        assert "still to come" in daemon.run("qbatch", "time", "until", "3600", code=2).stderr


def test_comments_and_explanations_say_dates_and_durations(tmp_path: Path) -> None:
    config = EMULATED.replace("n[1-4]", "n1")
    with Daemon(tmp_path, "--time", "virtual", "--paused", config=config) as daemon:
        for procs, walltime in ((3, "3600"), (4, "7200"), (1, "7200")):
            daemon.run(
                "qsub", "-l", f"ncpus={procs},walltime={walltime}", "--", "/bin/sleep", "99999"
            )
            daemon.run("qbatch", "time", "step")
        daemon.run("qsub", "-a", "203901020304", "--", "true")
        printed = daemon.run("qstat", "-s").stdout + daemon.run("qstat", "-f").stdout
        for job in "1234":
            printed += daemon.run("qbatch", "explain", job).stdout
        assert not re.search(r"\d{7,}(\.\d+)? s\b|\d{7,}\.\.\.", printed), printed
        day = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"
        assert re.search(
            rf"would delay job 2, which is to start by {day}: it would run until {day}", printed
        )
        assert "may not start before 2039-01-02 03:04:00" in printed
        assert re.search(
            r"job 1.qbatch \(R\): has run for 00:00:00 on n1, at most 01:00:00 in all", printed
        )


def test_a_resized_job_shows_the_processors_that_it_has_next_to_those_that_it_asked_for(
    tmp_path: Path,
) -> None:
    config = 'policy = "equispatial"\n' + EMULATED.replace("n[1-4]", "n1").replace(
        "cpus = 4", "cpus = 8"
    )
    with Daemon(
        tmp_path, "--time", "virtual", "--paused", "--origin", "0", config=config
    ) as daemon:
        for _ in range(2):
            daemon.run("qsub", "-l", "ncpus=8,walltime=1:00:00", "--", "/bin/sleep", "600")
            daemon.run("qbatch", "time", "step")
        shown = daemon.run("qbatch", "jobs", "--columns", "id,procs,asked,hosts").stdout
        assert [line.split() for line in shown.splitlines()[-2:]] == [
            ["1.qbatch", "4", "of", "8", "8", "n1/0*4"],
            ["2.qbatch", "4", "of", "8", "8", "n1/1*4"],
        ]
        assert (
            daemon.run(
                "qbatch", "jobs", "--where", "procs=4", "--sort", "procs", "--ids"
            ).stdout.count("\n")
            == 2
        )
        assert (
            daemon.run("qbatch", "jobs", "--where", "asked=8", "--where", "procs=8", "--ids").stdout
            == ""
        )
        # PBS: what was asked for stays in Resource_List and under TSK; exec_host shows the present.
        lines = daemon.run("qstat", "-an", "1").stdout.splitlines()
        assert lines[-2].split()[5:7] == ["1", "8"]
        assert lines[-1].strip() == "n1/0*4"
