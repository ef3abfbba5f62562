"""A log with waits as a schedule, for every command that takes one: what really happened next to
what would have happened."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import qbatch
from qbatch.cli.main import run
from qbatch.results.reading import read_result
from qbatch.results.recorded import kinds_of
from tests.harness import OWN_TRACES, TRACES

DEMO = str(OWN_TRACES / "demo-128.swf")
KTH = TRACES / "KTH-SP2-1996-2.1-cln.swf.gz"


def command(capfd, *arguments):
    code = run([str(argument) for argument in arguments])
    out, err = capfd.readouterr()
    return code, out, err


@pytest.fixture(scope="module")
def lived(tmp_path_factory) -> Path:
    """A log with the waits of EASY, and a result of EASY and FCFS on it."""
    folder = tmp_path_factory.mktemp("lived")
    options = ["--no-kill", "--first", "600", "--quiet"]
    assert run(["replay", DEMO, "-p", "easy", *options, "--swf", str(folder / "mine.swf")]) == 0
    both = ["replay", str(folder / "mine.swf"), "-p", "easy", "-p", "fcfs", "--no-kill", "--quiet"]
    assert run([*both, "--out", str(folder / "result")]) == 0
    return folder


def test_a_log_is_compared_with_what_a_policy_would_have_done(capfd, lived, monkeypatch) -> None:
    monkeypatch.chdir(lived)
    code, out, err = command(capfd, "compare", "mine.swf", "result:easy")
    assert (code, err) == (0, "")
    assert "A is mine.swf, B is result:easy: 600 common jobs" in out
    for words in ("Mean wait", "Mean slowdown", "Mean bounded slowdown", "Utilisation", "Makespan"):
        assert f"{words}: easy and log are equal" in out
    _, out, _ = command(capfd, "compare", "mine.swf:log", "result:fcfs", "--json")
    document = json.loads(out)
    assert document["a"]["policy"] == "log"
    _, out, _ = command(capfd, "compare", "result:easy", "result:fcfs", "--json")
    same = json.loads(out)
    for key in ("a", "b", "difference", "relative", "ratio"):
        assert [record[key] for record in document["metrics"]] == [
            record[key] for record in same["metrics"]
        ], key
    assert document.keys() == same.keys()
    assert [record.keys() for record in document["metrics"]] == [
        record.keys() for record in same["metrics"]
    ]


@pytest.mark.parametrize("turned", [False, True])
def test_nothing_is_called_better_than_what_really_happened(
    capfd, lived, monkeypatch, turned
) -> None:
    """The differences are described, by class and month too, and above them stands what a replay
    does not know."""
    monkeypatch.chdir(lived)
    sides = ["result:fcfs", "mine.swf"] if turned else ["mine.swf", "result:fcfs"]
    code, out, err = command(capfd, "compare", *sides)
    assert (code, err) == (0, "")
    assert not [word for word in ("better than", "worse", "noise", "Holm 1979") if word in out]
    unknown = out.index(
        "A replay does not know the machine that the log is of: the log does not show whether"
    )
    assert (
        unknown < out.index("neither schedule is called better") < out.index("Mean wait: log is ")
    )
    assert " % lower than fcfs (fcfs " in out
    assert "median of the differences" in out
    assert out.splitlines()[-1].startswith(
        "Intervals: none, for differences from the log are described"
    )
    _, out, _ = command(capfd, "compare", *sides, "--json")
    document = json.loads(out)
    records = [
        *document["metrics"],
        *(each for part in document["parts"].values() for each in part),
    ]
    assert {part for part, found in document["parts"].items() if found} == {"class", "month"}
    assert {record["finding"] for record in records} == {"described"}
    assert {record[key] for record in records for key in ("low", "high", "p")} == {None}
    assert all(record["difference"] for record in records if record["name"] == "wait_mean_s")
    assert len(document["history"]) == 3


def test_what_an_import_left_out_stands_with_every_table_page_and_comparison(
    capfd, lived, monkeypatch, tmp_path
) -> None:
    lines = (lived / "mine.swf").read_text(encoding="utf-8").splitlines()
    notes = [
        "; Note: left out: GPUs: 37 of 600 jobs (gpu:a100 37)",
        "; Note: left out: licences: not in the records",
    ]
    (tmp_path / "cluster.swf").write_text("\n".join([*notes, *lines]) + "\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    left_out = "GPUs: 37 of 600 jobs (gpu:a100 37); not in the records: licences"
    code, out, err = command(
        capfd, "replay", "cluster.swf", "-p", "fcfs", "--no-kill", "--out", "result"
    )
    assert (code, f"note: left out of the log: {left_out}" in err) == (0, True)
    assert f"not in log  {left_out}" in out.splitlines()
    _, out, _ = command(capfd, "compare", "cluster.swf", "result")
    assert f"the machine that the log is of: left out of the log: {left_out}." in out
    assert f"not in log  {left_out}" in command(capfd, "metrics", "cluster.swf")[1].splitlines()
    assert (
        command(capfd, "report", "result", "cluster.swf", "--baseline", "log", "-o", "page.html")[0]
        == 0
    )
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count(left_out) == 2  # at its head, and above the differences
    assert (
        page.index(left_out)
        < page.index("neither schedule is called better.")
        < page.index("lower than")
    )
    assert "A difference with 0 in its interval is noise" not in page
    assert (
        f"not in log            {left_out}"
        in command(capfd, "trace", "info", "cluster.swf")[1].splitlines()
    )
    assert "is better than" not in page
    assert read_result("result").document["log"]["left_out"] == [
        {"what": "GPUs", "jobs": 37, "of": 600, "names": "gpu:a100 37"},
        {"what": "licences", "jobs": None, "of": None, "names": ""},
    ]
    shown = qbatch.read_result("result").notes
    assert f"left out of the log: {left_out}" in shown


def test_a_result_of_before_says_nothing_of_what_its_log_left_out(capfd, lived, tmp_path) -> None:
    for kept in (lived / "result").iterdir():
        (tmp_path / kept.name).write_bytes(kept.read_bytes())
    document = json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))
    del document["log"]["left_out"], document["checksums"]
    (tmp_path / "result.json").write_text(json.dumps(document), encoding="utf-8")
    assert command(capfd, "metrics", tmp_path)[0] == 0
    document["log"]["left_out"] = [{"what": "GPUs", "jobs": "many"}]
    (tmp_path / "result.json").write_text(json.dumps(document), encoding="utf-8")
    code, _, err = command(capfd, "metrics", tmp_path)
    assert (code, "result.json: log: left_out: Expected `int | null`" in err) == (3, True)


def test_every_metric_of_a_log_is_that_of_the_schedule_in_it(capfd, lived, monkeypatch) -> None:
    monkeypatch.chdir(lived)
    code, out, _ = command(capfd, "metrics", "mine.swf", "result", "--by", "class", "--json")
    document = json.loads(out)
    assert (code, document["schema"]) == (0, "qbatch.measured/1")
    by_policy = {each["policy"]: each for each in document["results"]}
    assert list(by_policy) == ["log", "easy", "fcfs"]
    assert by_policy["log"]["metrics"] == by_policy["easy"]["metrics"]
    assert by_policy["log"]["by"] == by_policy["easy"]["by"]
    kept = json.loads((lived / "result" / "result.json").read_text())["results"]
    assert [each["metrics"] for each in document["results"][1:]] == [
        each["metrics"] for each in kept
    ]
    _, out, _ = command(capfd, "metrics", "mine.swf")
    assert out.splitlines()[0].split() == ["metric", "log"]


def test_pictures_reports_exports_and_the_referee_take_a_log(
    capfd, lived, monkeypatch, tmp_path
) -> None:
    monkeypatch.chdir(lived)
    assert (
        command(capfd, "plot", "mine.swf", "--kind", "wait-hist", "-o", tmp_path / "p.svg")[0] == 0
    )
    code, _, err = command(
        capfd, "report", "result", "mine.swf", "--baseline", "log", "-o", tmp_path / "p.html"
    )
    assert code == 0
    assert "wrote" in err
    assert "log, easy, fcfs" in err
    assert "note: mine.swf: log is the schedule of the log itself, by its recorded waits" in err
    assert command(capfd, "export", "csv", "mine.swf", "-o", tmp_path / "rows.csv")[0] == 0
    assert command(capfd, "verify", "mine.swf", "-p", "easy", "--no-kill")[0] == 0
    assert command(capfd, "export", "result", "mine.swf", "-o", tmp_path / "kept")[0] == 0
    code, out, _ = command(capfd, "compare", tmp_path / "kept", "result:easy")
    assert (code, "easy and log are equal" in out) == (0, True)


def test_what_is_left_out_is_said_and_the_machine_has_a_size(
    capfd, lived, monkeypatch, tmp_path
) -> None:
    monkeypatch.chdir(lived)
    lines = Path("mine.swf").read_text(encoding="utf-8").splitlines()
    header = [
        line
        for line in lines
        if line.startswith(";") and "MaxProcs" not in line and "MaxNodes" not in line
    ]
    jobs = [line.split() for line in lines if not line.startswith(";")]
    jobs[3][2] = jobs[4][2] = "-1"
    jobs[5][3] = "-1"
    jobs[6][4] = jobs[6][7] = "-1"
    jobs[7][2] = "-60"
    log = tmp_path / "odd.swf"
    log.write_text("\n".join([*header, *(" ".join(job) for job in jobs)]) + "\n", encoding="utf-8")
    code, _, err = command(capfd, "metrics", log)
    assert (code, err.count("\n"), "say how many with --procs N" in err) == (3, 1, True)
    code, out, err = command(capfd, "compare", log, "result:fcfs", "--procs", 128)
    assert code == 0
    assert "596 common jobs" not in out
    assert "595 common jobs" in out
    for words in (
        "2 jobs are left out: no wait",
        "1 job is left out: no run time",
        "1 job is left out: no processors",
        "1 job is left out: negative wait",
    ):
        assert f"note: {log}: {words}" in err, words
    for asked in (
        ("plot", log, "--kind", "queue", "-o", tmp_path / "queue.png"),
        ("metrics", log),
        ("export", "csv", log),
        ("report", log, "-o", tmp_path / "page.html"),
    ):
        code, _, err = command(capfd, *asked, "--procs", 128)
        assert (code, "2 jobs are left out: no wait" in err) == (0, True), asked


def test_a_log_without_waits_is_no_schedule(capfd, tmp_path) -> None:
    code, out, err = command(capfd, "metrics", DEMO)
    assert (code, out, err.count("\n")) == (3, "", 1)
    assert "it does not contain when its jobs started" in err
    assert "--out DIR" in err
    code, _, err = command(capfd, "compare", DEMO)
    assert code == 3


def test_one_schedule_needs_another(capfd, lived) -> None:
    code, _, err = command(capfd, "compare", lived / "mine.swf")
    assert (code, "name B too, as in: qbatch compare" in err) == (2, True)


def test_a_report_shows_of_a_log_what_the_replays_ran(capfd, lived, monkeypatch, tmp_path) -> None:
    monkeypatch.chdir(lived)
    part = [
        "replay",
        "mine.swf",
        "-p",
        "fcfs",
        "--no-kill",
        "--first",
        "200",
        "--warmup",
        "1h",
        "--quiet",
    ]
    assert command(capfd, *part, "--out", tmp_path / "part")[0] == 0
    code, out, err = command(capfd, "metrics", tmp_path / "part", "mine.swf", "--json")
    assert code == 0
    assert "mine.swf: 200 of its 600 jobs are shown, those that the replay ran" in err
    fcfs, log = (each["metrics"] for each in json.loads(out)["results"])
    assert log["jobs"] == fcfs["jobs"] < 200


def test_how_jobs_started_follows_from_the_schedule_alone(lived) -> None:
    easy = read_result(str(lived / "result")).only(["easy"]).schedules[0]
    assert (kinds_of(easy.workload.submit, easy.start) == easy.kind).all()


@pytest.mark.skipif(not KTH.exists(), reason="the KTH log is not here (../shared/traces)")
def test_a_real_log_whose_jobs_got_other_processors_than_they_asked_for(capfd, tmp_path) -> None:
    assert command(capfd, "replay", KTH, "-p", "easy", "--quiet", "--out", tmp_path / "out")[0] == 0
    code, out, err = command(capfd, "compare", KTH, f"{tmp_path / 'out'}:easy")
    assert code == 0
    assert "28,475 common jobs" in out
    assert (
        "Mean wait: easy is 55.3 % lower than log (log 4.25 h, easy 1.9 h: -2.35 h; median of the "
        "differences"
    ) in out
    assert "note: 219 of 28,475 common jobs have another number of processors in B than in A" in err
    assert "104 processors are in use at once, more than the 100 of the machine" in err


def test_two_logs_that_only_count_their_jobs_alike_are_not_compared(capfd, lived, tmp_path) -> None:
    other = tmp_path / "other.swf"
    lines = (lived / "mine.swf").read_text(encoding="utf-8").splitlines()
    rows = [line.split() for line in lines if not line.startswith(";")]
    for job, fields in enumerate(rows):
        fields[1], fields[3] = str(int(fields[1]) + 7 * job + 1), str(int(fields[3]) + 3)
    other.write_text("; MaxProcs: 128\n" + "\n".join(map(" ".join, rows)) + "\n", encoding="utf-8")
    assert run(["compare", str(other), f"{lived}/result:easy"]) == 3
    said = capfd.readouterr().err
    assert "have another submission and run time here; compare two schedules of one log" in said


@pytest.mark.parametrize("form", ["rows", "result", "log"])
def test_a_machine_on_which_rows_could_not_have_run_is_refused(
    capfd, lived, tmp_path, form
) -> None:
    """Else utilisation would be above 1; by the same check, in the same words, as an import refuses
    --machine-procs."""
    rows = tmp_path / "rows.csv"
    assert command(capfd, "export", "csv", f"{lived}/result:easy", "-o", rows)[0] == 0
    schedule = read_result(str(rows)).schedules[0]
    used = {
        int(at): int(schedule.workload.procs[(schedule.start <= at) & (at < schedule.end)].sum())
        for at in schedule.start
    }
    peak = max(used.values())
    first = min(at for at, procs in used.items() if procs == peak) / 1_000_000
    source = {"rows": rows, "result": f"{lived}/result:easy", "log": tmp_path / "easy.swf"}[form]
    assert (
        command(capfd, "export", "swf", f"{lived}/result:easy", "-o", tmp_path / "easy.swf")[0] == 0
    )
    for asked in (
        ("metrics", source),
        ("export", "csv", source),
        ("plot", source, "--kind", "queue", "-o", tmp_path / "p.png"),
    ):
        code, out, err = command(capfd, *asked, "--procs", peak - 1)
        assert (code, out, err.count("\n")) == (3, "", 1)
        cause = (
            f"has {peak} processors in use at once (at second {first:.15g} of the log), which "
            "a smaller machine does not have"
        )
        assert f"--procs {peak - 1}: " in err
        assert cause in err
    code, out, _ = command(capfd, "metrics", source, "--procs", peak, "--json")
    metrics = json.loads(out)["results"][0]["metrics"]
    assert (code, metrics["utilisation_makespan"] <= 1, metrics["utilisation_submit"] <= 1) == (
        0,
        True,
        True,
    )
    code, out, _ = command(capfd, "verify", source, "-p", "easy", "--procs", peak - 1)
    assert (code, "capacity" in out) == (1, True)  # what the referee is there to find
