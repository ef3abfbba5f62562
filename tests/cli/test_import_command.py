"""``qbatch import`` as a user types it: from accounting files to a replay and a picture; mistakes
in one line."""

from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path

import pytest

from qbatch.cli.main import run
from qbatch.model.machine_file import parse_machine
from qbatch.workloads import read_log
from tests.workloads.accounting.samples import (
    BASE,
    SACCT_HEADER,
    Sample,
    iso,
    pbs_pro,
    slurm,
    torque,
)

JOBS = [
    Sample(
        n,
        BASE + 60 * n,
        30 * (n % 5),
        600 + 40 * (n % 7),
        1 + n % 2,
        4,
        3600,
        n % 6 != 0,
        f"u{n % 4}",
        f"q{n % 2}",
    )
    for n in range(1, 60)
]


def command(capfd: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = run([str(argument) for argument in arguments])
    out, err = capfd.readouterr()
    return code, out, err


@pytest.fixture
def pbs(tmp_path: Path) -> Path:
    folder = tmp_path / "accounting"
    folder.mkdir()
    (folder / "20231115").write_text(
        "".join(pbs_pro(job)[0] + "\n" for job in JOBS[30:]), encoding="utf-8"
    )
    with gzip.open(folder / "20231114.gz", "wt", encoding="utf-8") as file:
        file.write("".join("\n".join(torque(job)) + "\n" for job in JOBS[:30]))
    return folder


@pytest.fixture
def sacct(tmp_path: Path) -> Path:
    path = tmp_path / "sacct.txt"
    path.write_text(
        SACCT_HEADER + "\n" + "".join("\n".join(slurm(job)) + "\n" for job in JOBS),
        encoding="utf-8",
    )
    return path


@pytest.mark.parametrize("form", ["pbs", "slurm"])
def test_from_accounting_to_a_comparison_and_a_picture(
    form: str, pbs: Path, sacct: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log, result, picture = tmp_path / "log.swf.gz", tmp_path / "result", tmp_path / "gantt.svg"
    source = pbs if form == "pbs" else sacct
    code, out, err = command(
        capfd, "import", form, source, "-o", log, "--timezone", "UTC", "--machine-procs", 128
    )
    assert (code, out) == (0, "")
    assert "59 jobs that ran, 0 cancelled before they ran" in err
    assert "machine: 128 processors (as given)" in err
    assert command(capfd, "trace", "validate", log)[0] == 0
    assert command(capfd, "replay", log, "-p", "fcfs", "-p", "easy", "--out", result, "-q")[0] == 0
    assert (
        json.loads((result / "result.json").read_text(encoding="utf-8"))["machine"]["procs"] == 128
    )
    assert command(capfd, "plot", result, "--kind", "gantt", "-o", picture)[0] == 0
    assert picture.stat().st_size > 1000


def test_both_systems_show_the_same_jobs(
    pbs: Path, sacct: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    logs = []
    for form, source in (("pbs", pbs), ("slurm", sacct)):
        assert (
            command(capfd, "import", form, source, "-o", tmp_path / form, "--timezone", "UTC")[0]
            == 0
        )
        logs.append(read_log(str(tmp_path / form)))
    for name in (
        "submit",
        "wait",
        "run",
        "procs_allocated",
        "time_requested",
        "status",
        "user",
        "queue",
        "executable",
    ):
        assert logs[0][name].tolist() == logs[1][name].tolist(), name
    assert logs[0].header.max_procs == logs[1].header.max_procs


def test_json_is_the_same_record_as_the_table(
    pbs: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with open(pbs / "20231116", "wb") as file:
        file.write(b"junk\n\x00\x00\n")
    code, out, err = command(
        capfd, "import", "pbs", pbs, "-o", tmp_path / "log", "--json", "--timezone", "Asia/Tokyo"
    )
    document = json.loads(out)
    assert (code, document["schema"], document["time"]["zone"]) == (
        0,
        "qbatch.import/1",
        "Asia/Tokyo",
    )
    [lost] = document["unusable"]
    assert (lost["count"], lost["first"]) == (2, f"{pbs}/20231116:1")
    assert lost["reason"] in err
    assert lost["first"] in err
    assert command(capfd, "import", "pbs", pbs, "-o", tmp_path / "log", "-q", "--timezone", "UTC")[
        1:
    ] == ("", "")


@pytest.mark.parametrize("form", ["pbs", "slurm"])
def test_a_machine_smaller_than_the_peak_is_refused(
    form: str, pbs: Path, sacct: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    arguments = (
        "import",
        form,
        pbs if form == "pbs" else sacct,
        "-o",
        tmp_path / "log",
        "--timezone",
        "UTC",
    )
    _, out, _ = command(capfd, *arguments, "--json")
    peak = json.loads(out)["machine"]["procs"]
    (tmp_path / "log").unlink()
    code, out, err = command(capfd, *arguments, "--machine-procs", peak - 1)
    assert (code, out, err.count("\n")) == (2, "", 1)
    used = {
        at: sum(job.hosts * job.cores for job in JOBS if job.start <= at < job.end)
        for at in {job.start for job in JOBS}
    }
    first = iso(min(at for at, procs in used.items() if procs == peak))
    assert (
        f"--machine-procs {peak - 1}: the log has {peak} processors in use at once (at "
        f"{first}+00:00)"
    ) in err
    assert not (tmp_path / "log").exists()
    assert command(capfd, *arguments, "--machine-procs", peak)[0] == 0


@pytest.mark.parametrize("form", ["pbs", "slurm"])
def test_the_hosts_seen_become_a_machine_file(
    form: str, pbs: Path, sacct: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    arguments = (
        "import",
        form,
        pbs if form == "pbs" else sacct,
        "-o",
        tmp_path / "log.swf",
        "--timezone",
        "UTC",
    )
    code, _, err = command(capfd, *arguments)
    assert (code, "--machine-file FILE writes the hosts seen as a machine file" in err) == (0, True)
    path = tmp_path / "machine.toml"
    code, _, err = command(capfd, *arguments, "--machine-file", path)
    machine = parse_machine(path.read_text(encoding="utf-8"), "machine.toml")
    most = {f"n{number}": _most_on(number) for number in (0, 1)}
    assert {host.name: host.cpus for host in machine.hosts} == most
    assert (code, f"{path}: 2 hosts, {sum(most.values())} processors" in err) == (0, True)
    code, out, _ = command(
        capfd, "replay", tmp_path / "log.swf", "--machine", path, "-p", "easy", "--json"
    )
    document = json.loads(out)
    assert (code, document["machine"]["procs"], document["skipped"]) == (0, sum(most.values()), {})
    command(capfd, *arguments, "--machine-file", path, "--anonymize")
    named = parse_machine(path.read_text(encoding="utf-8"), "machine.toml").hosts
    assert [host.name for host in named] == ["host1", "host2"]
    assert command(capfd, *arguments, "--machine-file", path, "--unit", "nodes")[0] == 2


def _most_on(number: int) -> int:
    """Return the most processors that the sample jobs have in use at once on the host of this
    number, second by second."""
    on = [job for job in JOBS if job.hosts > number]
    return max(
        sum(job.cores for job in on if job.start <= at < job.end)
        for at in {job.start for job in on}
    )


def test_records_that_name_no_host_make_no_machine_file(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "sacct.txt"
    rows = [
        line.replace("|n0|", "|None assigned|").replace("|n[0-1]|", "|None assigned|")
        for job in JOBS
        for line in slurm(job)
    ]
    path.write_text("\n".join([SACCT_HEADER, *rows]) + "\n", encoding="utf-8")
    code, _, err = command(
        capfd,
        "import",
        "slurm",
        path,
        "-o",
        tmp_path / "log",
        "--timezone",
        "UTC",
        "--machine-file",
        tmp_path / "m",
    )
    assert (code, "no record names the hosts of a job" in err) == (3, True)
    assert not (tmp_path / "m").exists()


def test_the_zone_of_the_machine_is_said(
    sacct: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    _, _, err = command(capfd, "import", "slurm", sacct, "-o", tmp_path / "log")
    assert "local times: America/New_York (TZ; --timezone names another)" in err
    assert "; TimeZoneString: America/New_York" in (tmp_path / "log").read_text(encoding="utf-8")


def test_standard_input_and_output(
    sacct: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(sacct.read_bytes())))
    code, out, err = command(capfd, "import", "slurm", "-", "-o", "-", "--timezone", "UTC")
    assert (code, out.splitlines()[0]) == (0, "; Version: 2.2")
    assert sum(not line.startswith(";") for line in out.splitlines()) == 59
    assert "standard output: 59 jobs" in err


def test_anonymous_numbers_are_the_same_in_a_later_import(
    pbs: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    key = tmp_path / "key"
    users = []
    for source in (pbs, pbs / "20231115"):
        log = tmp_path / "log"
        code, _, err = command(
            capfd,
            "import",
            "pbs",
            source,
            "-o",
            log,
            "--anonymize",
            "--key",
            key,
            "--user",
            "u1",
            "--timezone",
            "UTC",
        )
        assert code == 0
        assert ("a new key" in err) == (source == pbs)
        text = log.read_text(encoding="utf-8")
        assert not any(name in text for name in ("u1", "staff", str(source)))
        users.append(set(read_log(str(log))["user"].tolist()))
    assert users[0] == users[1]
    assert len(users[0]) == 1


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("lsf", "FILE", "-o", "x"), 2, "FORMAT 'lsf': use one of pbs, slurm"),
        (("slrum", "FILE", "-o", "x"), 2, "did you mean 'slurm'?"),
        (("slurm", "FILE"), 2, "-o"),
        (("slurm", "FILE", "-o", "FILE"), 2, "must be different files"),
        (("slurm", "FILE", "-o", "absent/x"), 4, "does not exist; create it first"),
        (("slurm", "absent", "-o", "x"), 3, "absent"),
        (("pbs", ".", "-o", "x"), 2, "is among the accounting files"),
        (
            ("slurm", "FILE", "-o", "x", "--unit", "gpus"),
            2,
            "--unit 'gpus': use one of cores, nodes",
        ),
        (("slurm", "FILE", "-o", "x", "--key", "k"), 2, "go with --anonymize"),
        (("slurm", "FILE", "-o", "-", "--json"), 2, "both want standard output"),
        (
            ("slurm", "FILE", "-o", "x", "--timezone", "Mars/Base"),
            2,
            "--timezone 'Mars/Base': is not a known time zone",
        ),
        (("slurm", "FILE", "-o", "x", "--user", "nobody"), 3, "59 x left out by --user (first: "),
        (("pbs", "FILE", "-o", "x"), 3, "x not an accounting record"),
    ],
)
def test_a_mistake_is_one_line(
    arguments: tuple[str, ...],
    code: int,
    text: str,
    sacct: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    said = command(capfd, "import", *(str(sacct) if each == "FILE" else each for each in arguments))
    assert (said[0], said[1]) == (code, "")
    assert text in said[2]
    assert len(said[2].splitlines()) == 1
    assert not (tmp_path / "x").exists()


def test_the_clusters_are_named_and_one_is_chosen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    header = "JobID|Cluster|Submit|Start|End|State|AllocCPUS\n"
    times = "2024-05-01T10:00:00|2024-05-01T10:00:00|2024-05-01T10:01:00|COMPLETED|2\n"
    source = tmp_path / "sacct.txt"
    source.write_text(header + f"7|east|{times}7|west|{times}", encoding="utf-8")
    words = ["import", "slurm", str(source), "-o", str(tmp_path / "x.swf"), "--timezone", "UTC"]
    assert run(words) == 0
    said = capsys.readouterr().err
    assert "2 clusters: east (1 jobs), west (1 jobs)" in said
    assert "clusters (2 different: east 1, west 1)" in said
    for option in ("--cluster", "--server"):
        assert run([*words, option, "west", "--json"]) == 0
        shown = capsys.readouterr()
        assert json.loads(shown.out)["jobs"]["clusters"] == {"west": 1}
        assert "clusters:" not in shown.err
    assert run([*words, "--cluster", "wst"]) == 2
    assert "did you mean 'west'?; there are east, west" in capsys.readouterr().err
