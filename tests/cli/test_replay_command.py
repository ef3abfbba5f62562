"""``qbatch replay`` as a user types it: outputs, exit codes, one-line errors, nothing
half-written."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from qbatch.cli.main import run
from qbatch.results.job_rows import COLUMNS, read_job_rows
from qbatch.workloads import generate_log, read_log, write_log
from tests.harness import OWN_TRACES

TINY = str(OWN_TRACES / "tiny.txt")
DEMO = str(OWN_TRACES / "demo-128.swf")


def command(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = run([str(argument) for argument in arguments])
    out, err = capfd.readouterr()
    return code, out, err


def test_several_policies_stand_side_by_side(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = command(capfd, "replay", DEMO, "-p", "fcfs", "-p", "easy")
    lines = out.splitlines()
    assert code == 0
    assert lines[0].split() == ["metric", "fcfs", "easy"]
    assert [line[:27].strip() for line in lines[1:11]] == [
        "Jobs",
        "Mean wait",
        "Median wait",
        "95th percentile of wait",
        "Longest wait",
        "Mean slowdown",
        "Mean bounded slowdown",
        "Utilisation while jobs come",
        "Makespan",
        "Backfilled",
    ]
    assert lines[11] == ""
    assert " ".join(lines[2].split()) == "Mean wait 177 h 26 min 7 h 10 min"
    assert " ".join(lines[8].split()[-4:]) == "51.21 % 78.08 %"
    assert "\x1b" not in out


def test_the_whole_table_has_every_metric_by_its_name_in_seconds(
    capfd: pytest.CaptureFixture[str],
) -> None:
    _, out, _ = command(capfd, "replay", DEMO, "-p", "fcfs", "-p", "easy", "--all", "--by", "class")
    rows = out.partition("\n\n")[0].splitlines()[1:]
    _, out_json, _ = command(capfd, "replay", DEMO, "-p", "fcfs", "-p", "easy", "--json")
    assert [line.split()[0] for line in rows] == list(json.loads(out_json)["results"][0]["metrics"])
    assert next(line for line in rows if line.startswith("wait_mean_s")).count(".") == 2
    assert "class         policy  jobs  wait_mean_s" in out
    short = command(capfd, "replay", DEMO, "-p", "easy", "--by", "class")[1]
    headings = next(line for line in short.splitlines() if line.startswith("class "))
    assert " ".join(headings.split()[:5]) == "class policy jobs Mean wait"
    assert "1 h 18 min" in short


def test_json_is_the_same_record_as_the_table(capfd: pytest.CaptureFixture[str]) -> None:
    _, out, _ = command(
        capfd, "replay", DEMO, "-p", "easy", "--json", "--by", "month", "--by", "size"
    )
    document = json.loads(out)
    assert document["schema"] == "qbatch.replay/1"
    result = document["results"][0]
    assert result["policy"] == "easy"
    _, table, _ = command(capfd, "replay", DEMO, "-p", "easy", "--all")
    shown = dict(line.split() for line in table.partition("\n\n")[0].splitlines()[1:])
    assert float(shown["wait_mean_s"]) == round(result["metrics"]["wait_mean_s"], 1)
    assert sum(group["jobs"] for group in result["by"]["month"]) == result["metrics"]["jobs"]
    assert document["log"]["sha256"]
    assert document["machine"]["procs"] == 128


def classes(folder: Path, longest: int) -> str:
    """Return a machine file with one class, which takes jobs of at most so many seconds."""
    path = folder / f"classes-{longest}.toml"
    path.write_text(
        'schema = 1\n[[host]]\nname = "n"\ncpus = 128\n[[class]]\nname = "short"\ntime = '
        f"{longest}\n"
    )
    return str(path)


@pytest.mark.parametrize("driver", ["compiled", "engine"])
def test_a_policy_under_which_no_job_ran_fails_the_replay_and_says_why(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, driver: str
) -> None:
    asked = (
        "replay",
        DEMO,
        "--machine",
        classes(tmp_path, 1),
        "-p",
        "lsf",
        "-p",
        "easy",
        "--driver",
        driver,
        "--quiet",
        "--all",
    )
    code, out, err = command(capfd, *asked)
    (line,) = err.splitlines()
    assert code == 1
    assert line.startswith(
        "qbatch: lsf rejected all 2,000 jobs, each as no-class (job 1: no class takes it, "
    )
    assert "--jobs FILE.csv" in line
    rows = {
        name: values
        for name, *values in (row.split() for row in out.partition("\n\n")[0].splitlines()[1:])
    }
    assert rows.pop("jobs") == ["0", "2000"]
    assert rows.pop("rejected_count") == ["2000", "-"]
    assert rows.pop("rejected_share") == ["1.0000", "-"]
    assert {lsf for lsf, _ in rows.values()} == {"-"}
    code, out, _ = command(capfd, *asked, "--json")
    metrics = json.loads(out)["results"][0]["metrics"]
    known = {name: value for name, value in metrics.items() if value is not None}
    assert (code, known) == (1, {"jobs": 0, "rejected_count": 2000, "rejected_share": 1.0})


@pytest.mark.parametrize(("longest", "is_said"), [(600, True), (14_400, False)])
def test_a_policy_that_rejected_half_of_the_jobs_says_so_and_is_no_failure(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, longest: int, is_said: bool
) -> None:
    asked = ("replay", DEMO, "--machine", classes(tmp_path, longest), "-p", "lsf", "--json")
    code, out, err = command(capfd, *asked)
    rejected = json.loads(out)["results"][0]["rejected"]
    assert code == 0
    assert 0 < rejected < 2000
    assert (2 * rejected >= 2000) == is_said
    assert (f"note: lsf rejected {rejected:,} of 2,000 jobs, each as no-class" in err) == is_said
    assert "rejected" not in command(capfd, *asked, "--quiet")[2]


@pytest.mark.parametrize(
    ("given", "said"), [(2, "no job has an estimate"), (1, "1 of 2 jobs have no estimate")]
)
def test_a_log_without_estimates_says_so_wherever_its_numbers_are(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, given: int, said: str
) -> None:
    rows = [
        f"{job} {job} -1 60 2 -1 -1 2 {-1 if job <= given else 90} -1 1 1 1 -1 1 -1 -1 -1"
        for job in (1, 2)
    ]
    log = tmp_path / "log.swf"
    log.write_text("; MaxProcs: 4\n" + "\n".join(rows) + "\n", encoding="utf-8")
    code, out, err = command(
        capfd, "replay", log, "-p", "easy", "-p", "fcfs", "--out", tmp_path / "result"
    )
    assert (code, said in out, said in err) == (0, True, True)
    assert ("run times as estimates" in out) == (given == 2)
    _, out, _ = command(capfd, "replay", log, "-p", "easy", "--json")
    assert json.loads(out)["estimates_missing"] == given
    assert (
        json.loads((tmp_path / "result" / "result.json").read_text())["estimates_missing"] == given
    )
    _, _, err = command(capfd, "report", tmp_path / "result", "-o", tmp_path / "page.html")
    assert said in err
    assert said in (tmp_path / "page.html").read_text(encoding="utf-8")
    _, _, err = command(capfd, "compare", tmp_path / "result")
    assert said in err
    for asked in ("perfect", "f:2"):
        _, out, err = command(capfd, "replay", log, "-p", "easy", "--estimates", asked)
        assert "no estimate" not in out + err, asked


def test_a_table_names_the_log_the_machine_and_the_options(
    capfd: pytest.CaptureFixture[str],
) -> None:
    options = (
        "--load",
        "1.2",
        "--no-kill",
        "--estimates",
        "f:3",
        "--seed",
        "5",
        "--first",
        "90",
        "--warmup",
        "1h",
    )
    _, out, _ = command(capfd, "replay", DEMO, "-p", "easy", *options, "--by", "class")
    facts = dict(line.split(maxsplit=1) for line in out.rpartition("\n\n")[2].splitlines())
    assert facts["log"] == "demo-128.swf, 90 jobs"
    assert facts["sha256"] == read_log(DEMO).sha256
    assert facts["machine"] == "128 processors"
    assert facts["options"] == (
        "estimates f:3 (seed 5); no kill: estimates lifted to run times; load x1.2; first 90 jobs; "
        "warm-up of 3600 s"
    )


def test_skipped_jobs_are_listed_with_line_and_reason(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    rows = [
        "7 10 -1 60 2 -1 -1 2 90 -1 1 1 1 -1 1 -1 -1 -1",
        "8 20 -1 60 9 -1 -1 9 90 -1 1 1 1 -1 1 -1 -1 -1",
        "9 5 -1 -1 2 -1 -1 2 90 -1 5 1 1 -1 1 -1 -1 -1",
        "10 40 junk 60 2 -1 -1 2 90 -1 1 1 1 -1 1 -1 -1 -1",
        "11 50 -1 60 0 -1 -1 -1 90 -1 1 1 1 -1 1 -1 -1 -1",
    ]
    log, listed = tmp_path / "log.swf", tmp_path / "skipped.csv"
    log.write_text("; MaxProcs: 4\n" + "\n".join(rows) + "\n", encoding="utf-8")
    code, _, err = command(capfd, "replay", log, "-p", "easy", "--lenient", "--skipped", listed)
    assert code == 0
    assert "1 jobs skipped: too wide (--skipped FILE lists them)" in err
    assert listed.read_text(encoding="utf-8").splitlines() == [
        "line,job_id,reason",
        "3,8,too_wide",
        "4,9,cancelled",
        "5,,\"unreadable: field 3 (wait) is 'junk', which is not a number\"",
        "6,11,no_processors",
    ]
    code, _, _ = command(capfd, "replay", DEMO, "-p", "easy", "--skipped", listed, "-q")
    assert (code, listed.read_text(encoding="utf-8")) == (0, "line,job_id,reason\n")
    log.write_text("; MaxProcs: 4\n" + rows[1] + "\n", encoding="utf-8")
    assert command(capfd, "replay", log, "-p", "easy", "--skipped", listed)[0] == 3
    assert listed.read_text(encoding="utf-8").splitlines()[1:] == ["2,8,too_wide"]
    assert command(capfd, "replay", log, "--skipped", log)[0] == 2


def test_the_acknowledgement_goes_with_the_numbers(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    log = tmp_path / "log.swf"
    header = (
        "; MaxProcs: 4\n; Acknowledge: Ada <L> for\n;              the log\n; Acknowledge: Grace\n"
    )
    log.write_text(f"{header}1 1 0 60 2 -1 -1 2 90 -1 1 1 1 -1 1 -1 -1 -1\n", encoding="utf-8")
    _, out, _ = command(capfd, "replay", log, "-p", "easy", "--out", tmp_path / "out")
    assert "\nacknowledge  Ada <L> for the log; Grace\n" in out
    names = json.loads((tmp_path / "out" / "result.json").read_text())["log"]["acknowledge"]
    assert [" ".join(name.split()) for name in names] == ["Ada <L> for the log", "Grace"]
    command(capfd, "report", tmp_path / "out", "-o", tmp_path / "page.html")
    assert "Ada &lt;L&gt; for the log; Grace" in (tmp_path / "page.html").read_text(
        encoding="utf-8"
    )
    command(capfd, "export", "swf", tmp_path / "out", "-o", tmp_path / "again.swf")
    assert read_log(str(tmp_path / "again.swf")).header.acknowledgements == (
        "Ada <L> for the log; Grace",
    )


def test_the_folders_of_a_result_are_made(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    deep = tmp_path / "a" / "b" / "result"
    assert command(capfd, "replay", TINY, "-p", "easy", "--out", deep)[0] == 0
    assert (deep / "result.json").exists()
    assert command(capfd, "export", "result", deep, "-o", tmp_path / "g" / "h")[0] == 0
    for name, words in (
        ("i/j/page.html", ("report", deep)),
        ("k/l/chart.svg", ("plot", deep, "--kind", "gantt")),
        ("m/n/log.swf.gz", ("trace", "generate", "--jobs", "5", "--procs", "4")),
    ):
        code, _, err = command(capfd, *words, "--out", tmp_path / name)
        assert (code, (tmp_path / name).exists()) == (0, True), err
    (tmp_path / "file").touch()
    code, out, err = command(capfd, "replay", TINY, "-p", "easy", "--out", tmp_path / "file" / "b")
    assert (code, out, err.count("\n"), "is not a folder" in err) == (4, "", 1, True)


_HOSTILE = (
    "9223372036854775808",
    "-9223372036854775808",
    "9007199254740992",
    "-9007199254740992",
    "999999999999999",
    "-999999999999999",
    "4611686018427387904",
    "2147483648",
    "1e300",
    "-1e-9",
    "0.5",
    "nan",
    "0",
    "-2",
)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("seed", range(12))
def test_hostile_numbers_are_named_or_taken_and_warn_of_nothing(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, seed: int
) -> None:
    draw, log = np.random.default_rng(seed), tmp_path / "log.swf"
    rows = [
        ["1", "10", "5", "60", "2", "30", "100", "2", "120", "200", *"111111", "-1", "-1"]
        for _ in range(6)
    ]
    for field in (6, 9, *draw.integers(1, 18, 2)):
        rows[draw.integers(6)][field] = str(draw.choice(_HOSTILE))
    log.write_text(
        "; MaxProcs: 8\n" + "".join(" ".join(row) + "\n" for row in rows), encoding="utf-8"
    )
    for asked in (
        ("replay", log, "-p", "easy"),
        ("replay", log, "-p", "lsf", "--machine", "origin2000", "--lenient"),
        (
            "replay",
            log,
            "-p",
            "easy",
            "--lenient",
            "--swf",
            tmp_path / "s.swf",
            "--by",
            "size",
            "--by",
            "runtime",
        ),
        ("verify", log),
        ("metrics", log),
        ("trace", "info", log, "--lenient"),
        ("trace", "validate", log),
    ):
        code, _, err = command(capfd, *asked, *(["-q"] if asked[0] == "replay" else []))
        assert code in (0, 1, 3), (asked, err)
        assert "Traceback" not in err
        if code == 3 and asked[0] != "trace":
            assert err.count("\n") == 1, err


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("field", [7, 10])
def test_memory_beyond_64_bits_is_an_unreadable_row_with_line_and_field(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, field: int
) -> None:
    row = ["1", "10", "5", "60", "8", "30", "-1", "8", "120", "-1", *"111111", "-1", "-1"]
    names = {7: "memory_used", 10: "memory_requested"}
    log = tmp_path / "log.swf"
    for value in ("9007199254740993", "-9223372036854775808", "1e300"):
        row[field - 1] = value
        log.write_text("; MaxProcs: 8\n" + " ".join(row) + "\n", encoding="utf-8")
        code, _, err = command(capfd, "replay", log, "-p", "easy")
        assert (code, err.count("\n")) == (3, 1)
        assert f"line 2: field {field} ({names[field]}) is {value!r}, which is beyond" in err
    for value in ("-9007199254740992", "9007199254740992", "-999999999999999"):
        row[field - 1] = value
        log.write_text("; MaxProcs: 8\n" + " ".join(row) + "\n", encoding="utf-8")
        assert command(capfd, "replay", log, "-p", "easy", "-q")[0] == 0


def test_job_rows_are_as_the_design_fixes_them(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "rows.csv"
    assert (
        command(capfd, "replay", TINY, "-p", "easy", "-p", "conservative", "--jobs", path)[0] == 0
    )
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith(
        "job_id,submit,start,end,procs,estimate,run,wait,slowdown,bounded_slowdown,kind,promise,user,group,queue,policy"
    )
    assert tuple(lines[0].split(",")) == tuple(COLUMNS)
    rows = read_job_rows(path)
    assert [each.policy for each in rows] == ["easy", "conservative"]
    starts = [int(line.split(",")[2]) for line in lines[1:] if line.split(",")[15] == "easy"]
    assert starts == sorted(starts)


def test_a_schedule_goes_out_as_swf_and_verifies(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "schedule.swf"
    for extra in (
        (),
        ("--load", "1.3"),
        ("--estimates", "perfect"),
        ("--estimates", "f:4"),
        ("--no-kill",),
    ):
        assert command(capfd, "replay", DEMO, "-p", "easy", "--swf", path, *extra)[0] == 0
        code, out, err = command(capfd, "verify", path, "-p", "easy")
        assert code == 0, (extra, out, err)


def test_a_round_trip_through_swf_loses_nothing(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "schedule.swf"
    command(capfd, "replay", DEMO, "-p", "easy", "--swf", path, "--no-kill")
    before, after = read_log(DEMO), read_log(str(path))
    for name in ("job", "submit", "user", "group", "queue", "procs_requested", "run"):
        assert np.array_equal(before[name], after[name]), name
    assert set(before.header.lines) - set(after.header.lines) <= {
        line for line in before.header.lines if "MaxJobs" in line or "MaxRecords" in line
    }


def test_a_result_directory_is_complete_and_can_be_drawn(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "result"
    assert (
        command(
            capfd, "replay", DEMO, "-p", "easy", "-p", "conservative:compress=start", "--out", out
        )[0]
        == 0
    )
    assert sorted(path.name for path in out.iterdir()) == [
        "jobs-conservative-compress-start.parquet",
        "jobs-easy.parquet",
        "result.json",
    ]
    document = json.loads((out / "result.json").read_text(encoding="utf-8"))
    assert {"schema", "command", "version", "log", "machine", "seed"} <= set(document)
    assert command(capfd, "plot", out, "--kind", "queue", "-o", tmp_path / "queue.svg")[0] == 0
    assert command(capfd, "verify", out)[0] == 0
    # A message calls the result what the command line calls it.
    for said in (
        ("plot", f"{out}:fcfs", "--kind", "queue"),
        ("plot", out, "--kind", "queue", "-p", "fcfs"),
        ("export", "swf", out),
        ("verify", out, "-p", "fcfs"),
    ):
        code, _, err = command(capfd, *said)
        assert (code, str(out) in err) == (2, True), err
    code, _, err = command(capfd, "plot", out, "--kind", "gant")
    assert (code, err) == (
        2,
        "qbatch plot: Invalid value for '--kind': 'gant' is not one of 'gantt', 'utilisation', "
        "'queue', 'wait-hist', "
        "'slowdown-by-size', 'estimates', 'hosts' (see qbatch plot --help)\n",
    )


def test_both_drivers_and_the_audit_from_the_command_line(
    capfd: pytest.CaptureFixture[str],
) -> None:
    one = command(capfd, "replay", DEMO, "-p", "conservative", "--audit")
    other = command(capfd, "replay", DEMO, "-p", "conservative", "--audit", "--driver", "engine")
    assert one[0] == other[0] == 0
    assert one[1] == other[1]
    assert "audit: capacity, submissions, starts, ends and promises hold" in one[2]


def test_options_change_what_is_run(capfd: pytest.CaptureFixture[str]) -> None:
    def jobs(*extra: str) -> dict[str, object]:
        return json.loads(command(capfd, "replay", DEMO, "-p", "easy", "--json", *extra)[1])[
            "results"
        ][0]["metrics"]

    whole = jobs()
    assert jobs("--first", "100")["jobs"] == 100
    assert jobs("--from", "100000", "--to", "400000")["jobs"] < whole["jobs"]
    assert 0 < jobs("--warmup", "2d")["jobs"] < whole["jobs"]
    assert jobs("--load", "2")["wait_mean_s"] > whole["wait_mean_s"]
    assert jobs("--procs", "256")["wait_mean_s"] < whole["wait_mean_s"]
    assert jobs("--estimates", "f:5", "--seed", "1") != jobs("--estimates", "f:5", "--seed", "2")
    assert jobs("--estimates", "f:5", "--seed", "1") == jobs("--estimates", "f:5", "--seed", "1")


def test_the_story_of_a_job_and_the_chart_pass_by_pass(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = command(capfd, "replay", TINY, "-p", "conservative", "--explain", "4")
    assert code == 0
    assert "promised" in out
    assert "ahead in the queue" in out
    assert "started after the end of job" in out
    code, out, _ = command(capfd, "replay", TINY, "-p", "easy", "--step")
    assert code == 0
    assert "(backfilled)" in out
    assert out.count("\nt = ") > 10


def test_a_note_says_which_policies_do_not_follow_the_classes(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    machine = tmp_path / "machine.toml"
    machine.write_text(
        'schema = 1\n[[host]]\nname = "a"\ncpus = 128\n[[class]]\nname = "any"\n', encoding="utf-8"
    )
    run = ("replay", DEMO, "--machine", machine, "--first", "20", "-p", "lsf")
    assert "follows the classes" not in command(capfd, *run, "-p", "soon:inner=lsf")[2]
    printed = command(capfd, *run, "-p", "easy", "-p", "soon:inner=fcfs")[2]
    assert (
        "only lsf follows the classes of the machine file, also inside immediate and soon; easy, "
        "soon:inner=fcfs do not"
    ) in printed
    machine.write_text('schema = 1\n[[host]]\nname = "a"\ncpus = 128\n', encoding="utf-8")
    assert "follows the classes" not in command(capfd, *run, "-p", "easy")[2]


def test_standard_input_is_a_log_too() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "qbatch", "replay", "-", "-p", "easy", "-q"],
        input=Path(TINY).read_bytes(),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0
    assert b"Mean wait" in done.stdout


def test_resources_of_jobs_need_hosts_and_what_does_not_count_is_said(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    log, side, machine = tmp_path / "log.swf", tmp_path / "side.csv", tmp_path / "machine.toml"
    row = "{} 0 -1 10 4 -1 -1 4 10 -1 1 1 1 -1 1 -1 -1 -1\n"
    log.write_text("; MaxProcs: 8\n" + row.format(1) + row.format(2))
    side.write_text("job,nodes,cpus_per_node,gpus_per_node,priority\n1,2,2,1,7\n2,2,2,1,\n")
    replay = ("replay", log, "-p", "easy", "--resources", side, "--json")
    code, out, err = command(capfd, *replay)
    assert (code, out) == (2, "")
    assert "a machine file with schema = 2" in err
    hosts = 'schema = 2\n[[host]]\nname = "n[1-2]"\ncpus = 4\nresources = { gpu = 1 }\n'
    machine.write_text(hosts)
    code, out, err = command(capfd, *replay, "--machine", machine)
    assert code == 0
    assert "the column priority does not count yet (1 lines)" in err
    found = json.loads(out)
    digest = hashlib.sha256(side.read_bytes()).hexdigest()
    facts = {"name": str(side), "sha256": digest, "jobs": 2, "kinds": {"GPUs": 2}}
    assert found["resources"] == facts
    # Each takes both GPUs, so that one runs after the other.
    assert found["results"][0]["metrics"]["wait_max_s"] == 10
    result = tmp_path / "result"
    code, out, err = command(capfd, *replay[:-1], "--machine", machine, "--out", result)
    assert (code, json.loads((result / "result.json").read_text())["resources"]) == (
        0,
        found["resources"],
    )
    assert "resources  side.csv, of 2 jobs" in out
    assert digest in out
    other, plain = tmp_path / "other.csv", tmp_path / "plain"
    other.write_text(side.read_text().replace(",7", ","))
    command(capfd, *replay[:4], "--machine", machine, "--out", plain)
    command(capfd, *replay[:5], other, "--machine", machine, "--out", tmp_path / "second")
    for name, said in (("plain", "the resources of no side file"), ("second", "of " + str(other))):
        code, out, err = command(capfd, "compare", result, tmp_path / name)
        assert code == 0
        assert said in " ".join((out + err).split())


def test_a_machine_file_takes_the_place_of_the_header(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    machine = tmp_path / "machine.toml"
    machine.write_text(
        'schema = 1\nsingle_host = true\n[[host]]\nname = "n[1-4]"\ncpus = 40\nmemory = "4GB"\n'
    )
    code, out, err = command(
        capfd,
        "replay",
        DEMO,
        "-p",
        "easy",
        "--machine",
        machine,
        "--json",
        "--audit",
        "--first",
        "200",
    )
    assert code == 0
    assert json.loads(out)["machine"] == {
        "procs": 160,
        "hosts": 4,
        "single_host": True,
        "one_pool": False,
        "host_names": ["n1", "n2", "n3", "n4"],
        "host_cpus": [40] * 4,
    }
    assert "too wide" in err
    machine.write_text('schema = 1\n[[host]]\nname = "n[1-4]"\ncpu = 40\n')
    code, _, err = command(capfd, "replay", DEMO, "--machine", machine)
    assert code == 3
    assert "line 4, key 'cpu'" in err
    assert "did you mean 'cpus'" in err


ROW = "1 0 -1 10 4 -1 -1 4 20 -1 1 1 1 -1 1 -1 -1 -1\n"


@pytest.mark.parametrize(
    ("content", "arguments", "code", "says"),
    [
        (b"", (), 3, "empty"),
        (bytes(range(256)) * 16, (), 3, ""),
        (gzip.compress(ROW.encode() * 500, mtime=0)[:-30], (), 3, "too early"),
        (b"; nothing but a comment\n", (), 3, "no job"),
        (
            ROW.replace(" 10 4 ", " -1 0 ", 1).replace("4 20", "0 20").encode(),
            ("--procs", "8"),
            3,
            "no job in it can run",
        ),
        (ROW.encode(), (), 3, "--procs"),
        (b"1 0 -1 10 4\n", (), 3, "--procs"),
        ((ROW + "1 2 3\n").encode(), ("--procs", "8"), 3, "line 2.*--lenient"),
        (ROW.replace("10", "nan").encode(), ("--procs", "8"), 3, "nan"),
        (ROW.replace(" 10 ", " 1e300 ").encode(), ("--procs", "8"), 3, ""),
        (
            ROW.replace(" 10 ", " 9000000000000 ").encode(),
            ("--procs", "8", "--no-kill"),
            3,
            "too large",
        ),
        (ROW.replace(" 4 ", " 10000000 ").encode(), ("--procs", "8"), 3, "too wide"),
        (ROW.encode(), ("--procs", "8", "-p", "esy"), 2, "did you mean 'easy'"),
        (ROW.encode(), ("--procs", "8", "-p", "easy:ordr=sjf"), 2, "did you mean 'order'"),
        (ROW.encode(), ("--procs", "8", "-p", "easy", "-p", "easy"), 2, "twice"),
        (ROW.encode(), ("--procs", "8", "--estimates", "wild"), 2, "f:N"),
        (ROW.encode(), ("--procs", "8", "--by", "mnth"), 2, "did you mean 'month'"),
        (ROW.encode(), ("--procs", "0"), 2, "procs"),
        (ROW.encode(), ("--procs", "8", "--from", "soon"), 2, "ISO time"),
        (ROW.encode(), ("--procs", "8", "--from", "1996-01-01"), 2, "UnixStartTime"),
        (ROW.encode(), ("--procs", "8", "--explain", "77"), 2, "no job of this number"),
        (ROW.encode(), ("--procs", "8", "--load", "0"), 2, "--load"),
        (ROW.encode(), ("--procs", "8", "--jobs", "rows.txt"), 2, ".csv or .parquet"),
        (ROW.encode(), ("--procs", "8", "--swf", "x.swf"), 2, "one schedule"),
        (ROW.encode(), ("--procs", "8", "--jobs", "/nowhere/rows.csv"), 4, "does not exist"),
        (ROW.encode(), ("--procs", "8", "--frst", "3"), 2, "--first"),
        (ROW.encode(), ("--machine", "/nowhere.toml"), 3, "cannot be read"),
    ],
    ids=lambda value: str(len(value)) if isinstance(value, bytes) else None,
)
def test_bad_input_is_one_clear_line_and_an_exit_code(
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
    content: bytes,
    arguments: tuple[str, ...],
    code: int,
    says: str,
) -> None:
    path = tmp_path / "log.swf"
    path.write_bytes(content)
    found, out, err = command(capfd, "replay", path, "-q", *arguments)
    assert found == code, err
    assert out == ""
    assert len(err.strip().splitlines()) == 1, err
    import re

    assert re.search(says, err), err
    assert sorted(each.name for each in tmp_path.iterdir()) == ["log.swf"]


def test_a_directory_and_a_missing_log_are_named(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert command(capfd, "replay", tmp_path)[0] == 3
    assert command(capfd, "replay", tmp_path / "none.swf")[0] == 3


@pytest.mark.skipif(
    not os.path.exists("/dev/full"), reason="/dev/full is not there to play a full disk"
)
def test_a_full_disk_leaves_no_file_and_says_so(tmp_path: Path) -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run(
            [sys.executable, "-m", "qbatch", "replay", TINY, "-q"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 4
    assert "No space left" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_closed_pipe_is_no_error() -> None:
    done = subprocess.run(
        f"{sys.executable} -m qbatch replay {DEMO} -q | head -1",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.startswith("metric")
    assert "Traceback" not in done.stderr


def _wait_for_work(process: subprocess.Popen[str], seconds: float) -> None:
    """Wait until a process has had so much processor time: on a busy machine it takes longer to
    come as far."""
    ticks = os.sysconf("SC_CLK_TCK")
    while process.poll() is None:
        with open(f"/proc/{process.pid}/stat", encoding="ascii") as file:
            fields = file.read().rpartition(")")[2].split()
        if (int(fields[11]) + int(fields[12])) / ticks >= seconds:
            return
        time.sleep(0.05)


def _heed_interrupts() -> None:
    # A suite that runs in the background was started with interrupts ignored, and so would be
    # whoever it starts.
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_interrupted_it_leaves_no_half_written_file(tmp_path: Path) -> None:
    log = generate_log(jobs=45_000, procs=512, load=1.0, seed=3)
    path = tmp_path / "big.swf"
    with open(path, "wb") as file:
        write_log(file, log.header, log.columns)
    rows = tmp_path / "rows.csv"
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "qbatch",
            "replay",
            str(path),
            "-p",
            "conservative",
            "--driver",
            "engine",
            "--jobs",
            str(rows),
        ],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_heed_interrupts,
    )
    _wait_for_work(process, 1.5)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert err.endswith("qbatch: interrupted; nothing was left half-written\n")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["big.swf"]


def test_the_overview_and_the_small_commands(capfd: pytest.CaptureFixture[str]) -> None:
    for arguments in (
        ["--help"],
        ["policies"],
        ["policies", "--json"],
        ["metrics"],
        ["states"],
        ["--version"],
    ):
        code, out, _ = command(capfd, *arguments)
        assert code == 0
        assert len(out) > 5
    code, _, err = command(capfd, "rplay")
    assert code == 2
    assert "did you mean 'replay'" in err


def test_interrupted_in_a_compiled_loop_it_says_so_in_one_line(tmp_path: Path) -> None:
    log = generate_log(jobs=400_000, procs=128, load=1.3, seed=3)
    path = tmp_path / "big.swf"
    with open(path, "wb") as file:
        write_log(file, log.header, log.columns)
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "qbatch",
            "replay",
            str(path),
            "-p",
            "conservative",
            "--jobs",
            str(tmp_path / "rows.csv"),
        ],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_heed_interrupts,
    )
    _wait_for_work(process, 3.0)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert "interrupted" in err
    assert sorted(each.name for each in tmp_path.iterdir()) == ["big.swf"]


def test_jobs_that_are_ended_at_their_estimate_are_counted(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "log.swf"
    path.write_text(ROW.replace(" 10 ", " 100 "))
    _, out, err = command(capfd, "replay", path, "--procs", "8", "--json")
    assert "1 jobs run longer than their estimate" in err
    assert json.loads(out)["killed_at_estimate"] == 1


def test_a_pipe_that_closes_early_is_no_failure() -> None:
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {sys.executable} -m qbatch policies | head -1"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
