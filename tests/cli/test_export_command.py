"""``qbatch export`` as a user types it: a result, job rows, and what really ran on a live
daemon."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from qbatch.cli.main import run
from qbatch.results.job_rows import read_job_rows
from qbatch.results.reading import read_result
from qbatch.workloads import read_log
from tests.daemon.harness import Daemon
from tests.harness import OWN_TRACES
from tests.reports.samples import check_read_back

TINY = str(OWN_TRACES / "tiny.txt")
DEMO = str(OWN_TRACES / "demo-128.swf")


def command(capfd: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = run([str(argument) for argument in arguments])
    out, err = capfd.readouterr()
    return code, out, err


@pytest.fixture
def result(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Path:
    path = tmp_path / "result"
    assert (
        command(
            capfd, "replay", DEMO, "-p", "easy", "-p", "fcfs", "--first", 300, "--out", path, "-q"
        )[0]
        == 0
    )
    return path


def test_every_form_of_a_result(
    result: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for form in ("parquet", "csv", "chrome", "swf", "batsim"):
        one = ["--policy", "easy"] if form in ("swf", "batsim") else []
        code, out, err = command(capfd, "export", form, result, "-o", tmp_path / form, *one)
        assert (code, out) == (0, ""), err
        assert f"under {'easy' if one else 'easy, fcfs'}" in err
    assert [rows.policy for rows in read_job_rows(tmp_path / "csv")] == ["easy", "fcfs"]
    assert len(json.loads((tmp_path / "chrome").read_text(encoding="utf-8"))["traceEvents"]) > 1200
    assert len(read_log(str(tmp_path / "swf"))) == 300
    assert len((tmp_path / "batsim").read_text(encoding="utf-8").splitlines()) == 301


def test_what_is_lost_of_jobs_in_pieces_is_said_in_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log, out = tmp_path / "log.txt", tmp_path / "out"
    log.write_text("0 4000 4 4000\n10 3000 4 3000\n20 2000 6 2000\n700 200 8 200\n")
    named = ("replay", log, "--procs", 12, "-p", "immediate:inner=easy")
    code, _, err = command(capfd, *named, "--out", out, "--jobs", tmp_path / "rows.csv")
    assert code == 0
    assert "2 jobs were suspended or resized: --jobs and --swf do not hold" in err
    for form, count in (("swf", 1), ("csv", 1), ("parquet", 1), ("batsim", 1), ("chrome", 0)):
        code, _, err = command(capfd, "export", form, out, "-o", tmp_path / form)
        assert code == 0
        assert err.count("note: 2 jobs with several intervals: kept is first start") == count
    # In the result without what is the default.
    typed = "immediate:protect=600,inner=easy,quantum=60"
    assert command(capfd, "export", "csv", out, "-o", tmp_path / "typed", "-p", typed)[0] == 0
    assert (tmp_path / "typed").read_bytes() == (tmp_path / "csv").read_bytes()
    assert (
        command(capfd, "plot", out, "--kind", "queue", "-o", tmp_path / "typed.svg", "-p", typed)[0]
        == 0
    )
    assert (
        command(
            capfd, "report", out, "-o", tmp_path / "typed.html", "-p", typed, "--baseline", typed
        )[0]
        == 0
    )
    assert command(capfd, "verify", out)[0] == 0
    assert command(capfd, *named, "--swf", tmp_path / "replayed.swf", "-q")[0] == 0
    for name in ("swf", "replayed.swf"):
        assert (tmp_path / name).read_text().count("; Preemption: TS") == 1
        code, said, _ = command(capfd, "verify", tmp_path / name, "--policy", "easy", "--procs", 12)
        assert code == 0
        assert "not checked  capacity and run times" in said
    code, said, _ = command(capfd, "verify", tmp_path / "rows.csv", "--procs", 12)
    assert code == 0
    assert "not checked  the 2 jobs with several execution intervals" in said


def test_a_log_without_the_memory_that_was_asked_for_says_so(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log, machine = tmp_path / "log.swf", tmp_path / "machine.toml"
    log.write_text("; MaxProcs: 8\n1 0 -1 50 4 -1 -1 4 60 1024 1 1 1 -1 -1 -1 -1 -1\n")
    host = '[[host]]\nname = "{}"\ncpus = 4\n'
    for hosts, is_noted in (
        (host.format("a") + 'memory = "1GB"\n', True),
        (host.format("a") + host.format("b"), True),
        (host.format("a"), False),
    ):
        machine.write_text("schema = 1\n" + hosts)
        replay = ("replay", log, "--machine", machine, "-p", "easy")
        assert command(capfd, *replay, "--out", tmp_path / "out", "-q")[0] == 0
        for form in ("swf", "csv"):
            code, _, err = command(
                capfd, "export", form, tmp_path / "out", "-o", tmp_path / "out.swf"
            )
            assert code == 0
            assert err.count("note: the requested memory is lost") == (is_noted and form == "swf")
            assert err.count("--swf FILE keeps it") == (is_noted and form == "swf")
        assert command(capfd, *replay, "--swf", tmp_path / "kept.swf", "-q")[0] == 0
        assert read_log(str(tmp_path / "kept.swf"))["memory_requested"].tolist() == [1024]


def test_the_exported_log_keeps_what_its_policy_owes(
    result: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "easy.swf"
    assert command(capfd, "export", "swf", result, "-o", log, "--policy", "easy")[0] == 0
    assert command(capfd, "verify", log, "-p", "easy")[0] == 0
    assert command(capfd, "verify", log, "-p", "fcfs")[0] == 1


def test_bare_job_rows_and_standard_output(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    rows = tmp_path / "rows.csv"
    assert command(capfd, "replay", TINY, "-p", "easy", "--jobs", rows, "-q")[0] == 0
    code, out, _ = command(capfd, "export", "csv", rows)
    assert (code, out) == (0, rows.read_text(encoding="utf-8"))
    code, out, _ = command(capfd, "export", "chrome", rows, "--procs", 99)
    assert (code, json.loads(out)["otherData"]["processors"]) == (0, 99)
    code, out, _ = command(capfd, "export", "batsim", rows, "-o", "-")
    assert (
        len(list(csv.DictReader(out.splitlines())))
        == len(rows.read_text(encoding="utf-8").splitlines()) - 1
    )


def test_a_result_of_one_policy_is_a_result_again(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log, out, one = tmp_path / "log.txt", tmp_path / "out", tmp_path / "one"
    log.write_text("0 4000 4 4000\n10 3000 4 3000\n20 2000 6 2000\n700 200 8 200\n")
    policy = "immediate:inner=easy"
    replay = (
        "replay",
        log,
        "--procs",
        12,
        "-p",
        policy,
        "-p",
        "easy",
        "--out",
        out,
        "--jobs",
        tmp_path / "rows.csv",
        "-q",
    )
    assert command(capfd, *replay)[0] == 0
    assert command(capfd, "export", "result", f"{out}:{policy}", "-o", one)[0] == 0
    first, second = read_result(out).only([policy]), read_result(one)
    assert (second.policies, second.procs_total, second.clock) == (first.policies, 12, first.clock)
    assert [each["policy"] for each in second.document["results"]] == list(first.policies)
    assert second.document["log"] == first.document["log"]
    assert sorted(path.name for path in one.iterdir()) == sorted(
        ["result.json", *second.document["files"].values(), *second.document["pieces"].values()]
    )
    pairs = zip(first.schedules, second.schedules, strict=True)
    for one_run, again in pairs:
        check_read_back(again, one_run)
        assert np.array_equal(again.pieces, one_run.pieces)
    code, _, err = command(
        capfd, "export", "result", tmp_path / "rows.csv", "-o", tmp_path / "bare"
    )
    assert (code, "give it with --procs N" in err) == (2, True)
    assert (
        command(
            capfd, "export", "result", tmp_path / "rows.csv", "-o", tmp_path / "bare", "--procs", 12
        )[0]
        == 0
    )
    assert read_result(tmp_path / "bare").procs_total == 12


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (
            ("xlsx", "RESULT"),
            2,
            "export xlsx: use one of parquet, csv, swf, chrome, batsim, result",
        ),
        (("result", "RESULT"), 2, "name it with -o DIR"),
        (("result", "RESULT", "-o", "RESULT"), 2, "is the source of the export; name another file"),
        (
            ("result", "RESULT", "-o", "new", "--procs", "999"),
            2,
            "--procs is for bare job rows, and the machine of",
        ),
        (("result", "RESULT", "-o", "."), 4, "is not empty and no result of qbatch"),
        (("crome", "RESULT"), 2, "did you mean 'chrome'?"),
        (("swf", "RESULT"), 2, "name one --policy (easy, fcfs)"),
        (("csv", "RESULT", "--policy", "esay"), 2, "did you mean 'easy'?"),
        (("csv", "absent"), 3, "absent"),
        (("csv", DEMO), 3, "is a log, not a result"),
        (("csv", "RESULT", "-o", "absent/x"), 4, "does not exist; create it first"),
        (("csv", "RESULT", "-o", "RESULT"), 2, "is the source of the export; name another file"),
        (("csv", "RESULT", "--socket", "/x"), 2, "leave one out"),
        (("csv", "--policy", "easy"), 2, "are for a result or job rows"),
        (("csv", "--socket", "/nowhere/at/all"), 5, "/nowhere/at/all"),
    ],
)
def test_a_mistake_is_one_line(
    arguments: tuple[str, ...],
    code: int,
    text: str,
    result: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    said = command(
        capfd, "export", *(str(result) if each == "RESULT" else each for each in arguments)
    )
    assert (said[0], said[1]) == (code, "")
    assert text in said[2]
    assert len(said[2].splitlines()) == 1


def test_what_really_ran_in_every_form(tmp_path: Path) -> None:
    with Daemon(tmp_path, "--time", "virtual", "--executor", "emulated") as daemon:
        refused = daemon.run("qbatch", "export", "csv", code=3)
        assert "no job has run yet" in refused.stderr
        jobs = [
            daemon.submit(f"sleep {n}0\n", resources={"select": f"{n}:ncpus=9", "walltime": "99"})
            for n in (1, 2, 3)
        ]
        for job in jobs:
            daemon.until(job, "F")
        records = daemon.jobs(*jobs)
        for form in ("parquet", "csv", "chrome", "swf", "batsim"):
            daemon.run("qbatch", "export", form, "-o", form)
    [rows] = read_job_rows(tmp_path / "csv")
    assert (rows.policy, rows.workload.run.tolist()) == (
        "live",
        [10_000_000, 20_000_000, 30_000_000],
    )
    log = read_log(str(tmp_path / "swf"))
    assert (log["run"].tolist(), log["procs_allocated"].tolist(), log["status"].tolist()) == (
        [10, 20, 30],
        [9, 18, 27],
        [1] * 3,
    )
    events = json.loads((tmp_path / "chrome").read_text(encoding="utf-8"))["traceEvents"]
    names = {
        event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"
    }
    shown = {
        (names[event["pid"]].split()[-1], event["args"]["job"])
        for event in events
        if event["ph"] == "B"
    }
    expected = {
        (part.partition("/")[0], place)
        for place, job in enumerate(jobs, 1)
        for part in records[job].exec_host.split("+")
    }
    assert shown == expected
    assert len(expected) == 6


def test_a_suspended_job_shows_as_a_gap_in_the_trace(tmp_path: Path) -> None:
    with Daemon(
        tmp_path, "--time", "virtual", "--paused", "--origin", "0", "--executor", "emulated"
    ) as daemon:
        job = daemon.submit("sleep 100\n", resources={"select": "1:ncpus=2", "walltime": "500"})
        daemon.run("qbatch", "time", "until", "10")
        daemon.run("qsig", "-s", "suspend", job)
        daemon.run("qbatch", "time", "until", "40")
        daemon.run("qsig", "-s", "resume", job)
        daemon.run("qbatch", "time", "until", "60")
        daemon.run("qsig", "-s", "suspend", job)
        daemon.kill()  # what is known of pauses is known after a crash too
        daemon.start("--time", "virtual", "--paused")
        daemon.run("qbatch", "time", "until", "65")
        daemon.run("qsig", "-s", "resume", job)
        daemon.run("qbatch", "time", "play")
        record = daemon.until(job, "F")
        assert record.used["walltime"] == "00:01:40"
        assert record.pauses == ((10_000_000, 40_000_000), (60_000_000, 65_000_000))
        assert daemon.run("tracejob", job).stdout.count("Job suspended") == 2
        daemon.run("qbatch", "export", "chrome", "-o", "chrome")
        daemon.run("qbatch", "export", "csv", "-o", "rows.csv")
        assert "note:" not in daemon.run("qbatch", "export", "result", "-o", "lived").stderr
        note = daemon.run("qbatch", "export", "swf", "-o", "log.swf").stderr
    log = read_log(str(tmp_path / "log.swf"))
    assert (log["wait"].tolist(), log["run"].tolist(), log.header.preemption) == ([0], [100], "TS")
    lived = read_result(tmp_path / "lived")
    (pieces,) = [rows.pieces for rows in lived.schedules]
    assert pieces is not None
    assert pieces[:, 1:3].tolist() == [
        [0, 10_000_000],
        [40_000_000, 60_000_000],
        [65_000_000, 135_000_000],
    ]
    assert (lived.name, lived.queue_names) == ("server qbatch", {1: "batch"})
    assert run(["verify", str(tmp_path / "lived"), "--no-kill"]) == 0
    assert (
        "1 job with several intervals: kept is first start (field 3) and the time that each "
        "really "
        "ran (field 4); lost is"
    ) in note
    assert "end - start" not in note
    events = json.loads((tmp_path / "chrome").read_text(encoding="utf-8"))["traceEvents"]
    bars = [(event["ph"], event["ts"] / 1e6) for event in events if event["ph"] in "BE"]
    assert bars == [("B", 0.0), ("E", 10.0), ("B", 40.0), ("E", 60.0), ("B", 65.0), ("E", 135.0)]
    [rows] = read_job_rows(tmp_path / "rows.csv")
    assert rows.workload.run.tolist() == [100_000_000]
