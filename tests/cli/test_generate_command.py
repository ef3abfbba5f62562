"""``qbatch generate`` as a user types it, and a replay of what it makes on the shipped machine."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from qbatch.cli.main import run
from qbatch.model.machine_file import parse_machine
from qbatch.workloads import read_log
from qbatch.workloads.cluster import generate_cluster
from qbatch.workloads.lublin import generate_lublin
from qbatch.workloads.origin2000 import CLASSES, MONTHS, generate_month
from qbatch.workloads.resource_rows import read_resources
from tests.workloads.samples import same

MARCH = ("generate", "origin2000", "--month", "2000-03")


def command(capfd: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = run([str(argument) for argument in arguments])
    out, err = capfd.readouterr()
    return code, out, err


def test_a_month_goes_to_a_file_a_packed_file_and_standard_output(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    plain, packed = tmp_path / "march.swf", tmp_path / "march.swf.gz"
    written = f"{len(generate_month('2000-03')):,} jobs on 960 processors, submitted over "
    for path in (plain, packed):
        code, out, err = command(capfd, *MARCH, "-o", path)
        assert (code, out) == (0, "")
        assert err.startswith(f"{path}: {written}")
    code, out, err = command(capfd, *MARCH)
    assert code == 0
    assert err.startswith(f"standard output: {written}")
    assert err.endswith(" 911 h 39 min\n")
    assert plain.read_text() == out == gzip.decompress(packed.read_bytes()).decode()
    assert same(read_log(str(plain)), generate_month("2000-03"))


def test_the_options_choose_the_seed_and_the_warm_up(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "march.swf"
    assert command(capfd, *MARCH, "--seed", 5, "--warmup-days", 0, "-o", path)[0] == 0
    log = read_log(str(path))
    assert same(log, generate_month("2000-03", seed=5, warmup_days=0))
    assert len(log) == MONTHS["2000-03"].jobs


def test_the_facts_stand_next_to_the_printed_ones(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = command(capfd, *MARCH, "--json")
    record = json.loads(out)
    assert code == 0
    assert (record["schema"], record["month"], record["seed"]) == (
        "qbatch.generate-facts/1",
        "2000-03",
        1,
    )
    assert record["classes"][0]["name"] == "vst_sj"
    assert [row["procs_printed"] for row in record["classes"]] == list(
        MONTHS["2000-03"].procs_percent
    )
    code, table, _ = command(capfd, *MARCH, "--facts")
    rows = {line.split()[0]: line.split()[1:] for line in table.splitlines() if line}
    assert rows["overall"][:3] == ["7034", "85", "85.00"]
    for row in record["classes"]:
        assert rows[row["name"]][2] == f"{row['procs_percent']:.2f}"
    for fact in record["facts"]:
        assert f"{fact['value']:.3f}" in next(
            line for line in table.splitlines() if line.startswith(fact["name"])
        )


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--month", "1999-13"), 2, "--month '1999-13': use one of 1999-10"),
        (("--month", "2000-03", "--warmup-days", "40"), 2, "--warmup-days is 40; use 0 to 28"),
        (("--month", "2000-03", "--facts", "-o", "x"), 2, "--facts prints to stdout; leave out -o"),
        (("--month", "2000-03", "-o", "/proc/no/folder/x.swf"), 4, "cannot be created"),
        ((), 2, "--month"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_an_exit_code(
    capfd: pytest.CaptureFixture[str], arguments: tuple[str, ...], code: int, message: str
) -> None:
    found, out, err = command(capfd, "generate", "origin2000", *arguments)
    assert (found, out) == (code, "")
    assert message in err
    assert err.count("\n") == 1


def test_the_model_of_lublin_and_feitelson_goes_to_a_file_and_to_standard_output(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "model.swf"
    options = (
        "--jobs",
        400,
        "--procs",
        64,
        "--types",
        "both",
        "--load",
        0.7,
        "--seed",
        5,
        "--estimates",
        "tsafrir",
    )
    code, out, err = command(
        capfd, "generate", "lublin", *options, "--estimate-max", 200_000, "--out", path
    )
    assert (code, out) == (0, "")
    assert err.startswith(f"{path}: 400 jobs on 64 processors, submitted over ")
    made = generate_lublin(
        jobs=400,
        procs=64,
        types="both",
        load=0.7,
        seed=5,
        estimates="tsafrir",
        estimate_max=200_000,
    )
    assert same(read_log(str(path)), made)
    sizes = (
        "--jobs",
        50,
        "--ulow",
        1.5,
        "--umed",
        2,
        "--uhi",
        3,
        "--uprob",
        0.8,
        "--interarrival",
        60,
    )
    code, out, _ = command(capfd, "generate", "lublin", *sizes)
    path.write_text(out)
    assert code == 0
    assert same(
        read_log(str(path)),
        generate_lublin(jobs=50, ulow=1.5, umed=2, uhi=3, uprob=0.8, interarrival=60),
    )


def test_the_command_in_the_header_makes_the_log_again(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "model.swf"
    options = (
        "--jobs",
        90,
        "--procs",
        100,
        "--types",
        "batch",
        "--interarrival",
        808.5,
        "--seed",
        3,
        "--umed",
        4.25,
    )
    _, out, _ = command(capfd, "generate", "lublin", *options)
    path.write_text(out)
    note = read_log(str(path)).header.notes[0].removeprefix("made by qbatch ")
    assert command(capfd, *note.split())[:2] == (0, out)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--procs", 1), 2, "sizes of typeless jobs on 1 processors"),
        (("--types", "serial"), 2, "--types 'serial': use none, batch, interactive, both"),
        (("--load", 0.5, "--interarrival", 9), 2, "give one of them"),
        (
            ("--estimates", "tsafrir", "--estimate-max", 3600),
            2,
            "the largest estimate is 3600 s, but",
        ),
        (("--seed", -1), 2, "--seed"),
        (("--jobs", "many"), 2, "--jobs"),
        (("--out", "/proc/no/folder/x.swf"), 4, "cannot be created"),
    ],
)
def test_what_the_model_cannot_do_is_one_line_and_an_exit_code(
    capfd: pytest.CaptureFixture[str], arguments: tuple[object, ...], code: int, message: str
) -> None:
    found, out, err = command(capfd, "generate", "lublin", "--jobs", 100, *arguments)
    assert (found, out) == (code, "")
    assert message in err
    assert err.count("\n") == 1


def test_a_replay_of_the_model_waits_less_under_easy(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "model.swf"
    assert (
        command(
            capfd,
            "generate",
            "lublin",
            "--jobs",
            2000,
            "--load",
            0.8,
            "--estimates",
            "tsafrir",
            "-o",
            path,
        )[0]
        == 0
    )
    code, out, _ = command(capfd, "replay", path, "-p", "fcfs", "-p", "easy", "--json", "--audit")
    document = json.loads(out)
    assert (code, document["skipped"], document["log"]["jobs"]) == (0, {}, 2000)
    fcfs, easy = (each["metrics"]["wait_mean_s"] for each in document["results"])
    assert easy < fcfs


def test_a_replay_on_the_shipped_machine_reports_the_month_alone(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path, result = tmp_path / "march.swf", tmp_path / "result"
    assert command(capfd, *MARCH, "--warmup-days", 2, "-o", path)[0] == 0
    replay = (
        "replay",
        path,
        "--machine",
        "origin2000",
        "-p",
        "fcfs",
        "-p",
        "easy",
        "--warmup",
        "2000-03-01",
        "--json",
    )
    code, out, _ = command(
        capfd, *replay, "--audit", "--by", "month", "--by", "queue", "--out", result
    )
    assert code == 0
    document = json.loads(out)
    hosts = [document["machine"].pop(name) for name in ("host_names", "host_cpus")]
    assert (len(hosts[0]), sum(hosts[1])) == (8, 960)
    assert document["machine"] == {"procs": 960, "hosts": 8, "single_host": True, "one_pool": False}
    assert document["skipped"] == {}
    assert document["log"]["jobs"] > MONTHS["2000-03"].jobs
    for each in document["results"]:
        assert each["metrics"]["jobs"] == MONTHS["2000-03"].jobs
        (month,) = each["by"]["month"]
        assert (month["label"], month["jobs"]) == ("2000-03", MONTHS["2000-03"].jobs)
        counts = {group["label"]: group["jobs"] for group in each["by"]["queue"]}
        assert tuple(counts[name] for name in CLASSES) == MONTHS["2000-03"].counts
    fcfs, easy = (each["metrics"]["wait_mean_s"] for each in document["results"])
    assert easy < fcfs


def test_a_warm_up_that_is_no_time_is_refused(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "log.txt"
    path.write_text("; MaxProcs: 4\n0 10 1\n5 10 1\n")
    code, _, err = command(capfd, "replay", path, "-p", "easy", "--warmup", "March")
    assert (code, "--warmup 'March': use seconds" in err) == (2, True)
    code, _, err = command(capfd, "replay", path, "-p", "easy", "--warmup", "2000-03-01")
    assert (code, "has no UnixStartTime" in err) == (2, True)


def test_the_command_alone_lists_its_models_quickly() -> None:
    code = "import sys, qbatch.cli.generate; print('numpy' in sys.modules, 'numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "False False\n"


CLUSTER = ("generate", "cluster", "--days", 1, "--nodes", 8, "--load", "0.5", "--seed", 2)


def test_a_cluster_is_three_files_that_a_replay_takes_without_a_skipped_job(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    log, side, machine = (
        tmp_path / "new" / f"c{end}" for end in (".swf", ".resources.csv", ".toml")
    )
    code, out, err = command(capfd, *CLUSTER, "-o", log)
    assert (code, out) == (0, "")
    made = generate_cluster(days=1, nodes=8, load=0.5, seed=2)
    assert f"{log}: {len(made.log):,} jobs on {made.machine.procs:,} processors" in err
    assert err.endswith(f"replay it with --machine {machine} --resources {side}\n")
    assert sorted(log.parent.iterdir()) == sorted((log, side, machine))
    assert same(read_log(str(log)), made.log)
    assert parse_machine(machine.read_text(), "c.toml") == made.machine
    read = read_resources(str(side), read_log(str(log)))
    assert (read.of >= 0).all()
    code, out, err = command(
        capfd, "replay", log, "--machine", machine, "--resources", side, "-p", "easy", "--json"
    )
    record = json.loads(out)
    assert (code, record["skipped"]) == (0, {})
    assert (record["results"][0]["rejected"], record["log"]["jobs"]) == (0, len(made.log))


def test_the_files_of_a_cluster_may_have_other_names(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    files = [tmp_path / name for name in ("a.swf.gz", "b.csv", "c.toml")]
    log, side, machine = files
    assert command(
        capfd, *CLUSTER, "-o", log, "--resources", side, "--machine-file", machine
    )[0] == 0  # fmt: skip
    assert sorted(tmp_path.iterdir()) == files
    plain = tmp_path / "plain.swf"
    assert command(capfd, *CLUSTER, "-o", plain)[0] == 0
    assert gzip.decompress(log.read_bytes()) == plain.read_bytes()
    assert side.read_bytes() == (tmp_path / "plain.resources.csv").read_bytes()
    assert machine.read_bytes() == (tmp_path / "plain.toml").read_bytes()


def test_the_statistics_of_a_cluster_stand_next_to_the_published_ones(
    capfd: pytest.CaptureFixture[str],
) -> None:
    code, out, err = command(capfd, *CLUSTER, "--json")
    record = json.loads(out)
    assert (code, err, record["schema"]) == (0, "", "qbatch.generate-cluster/1")
    of = {(each["name"], each["unit"]): each for each in record["statistics"]}
    assert of["load", "% of GPUs"]["value"] == pytest.approx(50, abs=0.1)
    assert of["completed", "% of GPU jobs"]["helios"] == "62.4 A"
    code, out, _ = command(capfd, *CLUSTER, "--facts")
    assert code == 0
    assert "62.4 A" in out
    assert len(out.splitlines()) == len(record["statistics"]) + 1


@pytest.mark.parametrize(
    ("options", "code", "error"),
    [
        ((), 2, "three files; name the log with -o"),
        (("-o", "-"), 2, "three files; name the log with -o"),
        (("-o", "c.swf", "--resources", "c.swf"), 2, "must be three different files"),
        (("-o", "c.swf", "--facts"), 2, "leave out -o, --resources and --machine-file"),
        (("-o", "c.swf", "--days", 0), 2, "generate cluster: --days is 0; use 1 to 366"),
        (("-o", "c.swf", "--load", 9), 2, "generate cluster: --load is 9; use 0.01 to 4"),
        (("-o", "c.swf", "--resources", "."), 4, "is a directory"),
        (("-o", ".", "--resources", "s.csv", "--machine-file", "m.toml"), 4, "is a directory"),
    ],
)
def test_a_cluster_that_cannot_be_written_leaves_nothing(
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[object, ...],
    code: int,
    error: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    got, out, err = command(capfd, *CLUSTER, *options)
    assert (got, out) == (code, "")
    assert error in err
    assert len(err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []
