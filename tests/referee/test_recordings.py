"""The referee on recordings of a real Slurm: the real schedule keeps its machine, a planted fault
does not."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from qbatch.cli.main import run
from qbatch.referee.breach import CODES
from tests.referee.samples import (
    OWN,
    SHARED,
    Change,
    Row,
    imported,
    side_rows,
    verdict,
    verify,
    write_side_rows,
)

NAMES = (
    "arrays-deps",
    "backfill-basic",
    "builtin-fifo",
    "limits",
    "multifactor",
    "partitions-gpu",
    "preempt-part",
    "preempt-qos",
    "reservation",
)
DAY = "2026-11-27T"


def at(recording: str) -> Path:
    """Return where a recording is; the small copy, if it is one of ours."""
    folder = OWN / recording if (OWN / recording).is_dir() else SHARED / recording
    if not folder.is_dir():
        pytest.skip("the recordings of Slurm are not here (../shared/recordings)")
    return folder


@pytest.mark.parametrize("recording", NAMES)
def test_the_real_schedule_keeps_its_machine(recording: str, tmp_path: Path) -> None:
    of = imported(at(recording), tmp_path)
    code, out, _ = verify(of, "--all")
    assert (code, out.split(":")[0]) == (0, "kept as far as could be checked"), out
    assert "processors" in out.split("on each of")[0]


def change(job: str, **columns: str) -> Change:
    """Return a change of columns of one job; ``+text`` adds to a cell."""

    def apply(rows: dict[str, Row]) -> None:
        for name, value in columns.items():
            before = rows[job][name]
            rows[job][name] = before + value[1:] if value.startswith("+") else value

    return apply


def test_breaches_and_explanations_name_the_jobs_of_the_cluster(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    of = imported(at("partitions-gpu"), tmp_path, change("13", ReqTRES="+,gres/gpu=1"))
    _, out, _ = verify(of)
    lines = out.splitlines()
    numbers = re.findall(r"[0-9]+", lines[1].partition("by ")[2])
    ids = {row["job"]: row["id"] for row in side_rows(of)}
    assert "13" in {ids[number] for number in numbers}
    named = ", ".join(f"job {number} is {ids[number]}" for number in numbers)
    assert lines[2] == f"    ({named} on the cluster)"
    _, out, _ = verify(of, "--json")
    [breach] = json.loads(out)["results"][0]["breaches"]
    assert breach["ids"] == [ids[str(job)] for job in breach["jobs"]]
    files = ["--machine", of.machine, "--resources", of.resources]
    assert run(["replay", of.log, *files, "-p", "easy", "--explain", numbers[0], "-q"]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"job {numbers[0]} is {ids[numbers[0]]} on the cluster\n")


TEN: dict[str, tuple[str, Change, str, str]] = {
    "a GPU twice": (
        "partitions-gpu",
        change("13", ReqTRES="+,gres/gpu=1"),
        "host-overfull",
        "3 of 2 gpu of host n5 in use",
    ),
    "a licence too many": (
        "partitions-gpu",
        change("32", ReqTRES="+,license/matlab=1"),
        "server-overfull",
        "4 of 3 matlab of the server in use",
    ),
    "a job outside its partition": (
        "partitions-gpu",
        change("59", NodeList="n8"),
        "outside-partition",
        "ran on host n8, outside of partition high",
    ),
    "two on an exclusive node": (
        "partitions-gpu",
        change("17", NodeList="n1"),
        "not-alone",
        "are on host n1, which job",
    ),
    "memory over a node": (
        "partitions-gpu",
        change("5", ReqTRES="billing=1,cpu=1,mem=130000M,node=1"),
        "host-overfull",
        "memory of host n7 in use",
    ),
    "processors over a node": (
        "partitions-gpu",
        change("12", ReqTRES="cpu=9,mem=2000M,node=1", AllocTRES="cpu=9,mem=2000M,node=1"),
        "host-overfull",
        "of 8 processors of host n7 in use",
    ),
    "a job inside somebody else's reservation": (
        "reservation",
        change("25", Start=f"{DAY}20:33:50", End=f"{DAY}20:34:10"),
        "reserved-host",
        "started on host n1 during the reservation r1",
    ),
    "a job on a node without its feature": (
        "partitions-gpu",
        change("12", Constraints="thin"),
        "missing-feature",
        "asks for thin, and ran on host n7",
    ),
    "over the time limit of the partition": (
        "partitions-gpu",
        change("2", Timelimit="00:05:00"),
        "partition-limit",
        "partition gpu: it asks for 300 s, at most 180 s are allowed",
    ),
    "too many nodes for the partition": (
        "partitions-gpu",
        change("61", NodeList="n[2-4]", AllocTRES="cpu=3,mem=12000M,node=3"),
        "partition-limit",
        "partition high: it asks for 3 hosts, at most 2 are allowed",
    ),
    "a host that does not exist": (
        "partitions-gpu",
        change("59", NodeList="n9"),
        "unknown-host",
        "ran on n9, which the machine does not have",
    ),
    "a job that did not wait for its reservation": (
        "reservation",
        change("7", Start=f"{DAY}20:31:50", End=f"{DAY}20:32:20"),
        "outside-reservation",
        "names the reservation r1, and started outside of its times",
    ),
    "a job in its reservation on another host": (
        "reservation",
        change("7", NodeList="n3"),
        "outside-reservation",
        "names the reservation r1, and ran on host n3, which it does not have",
    ),
    "a job during maintenance": (
        "reservation",
        change("5", Start=f"{DAY}20:35:51", End=f"{DAY}20:36:31"),
        "reserved-host",
        "started on host n2 and 1 more during the reservation m1",
    ),
}


@pytest.mark.parametrize("fault", TEN)
def test_a_planted_fault_is_found(fault: str, tmp_path: Path) -> None:
    recording, planted, code, text = TEN[fault]
    of = imported(at(recording), tmp_path, planted)
    found = verdict(of).breaches
    assert code in CODES
    assert any(each.code == code and text in each.text for each in found), found
    assert verify(of)[0] == 1


@pytest.mark.parametrize("recording", NAMES)
def test_jobs_moved_onto_one_host_are_found(recording: str, tmp_path: Path) -> None:
    """All jobs on one host, of one partition, at one time, are too many in every recording."""
    columns = ("Partition", "Submit", "Eligible", "Start", "End", "ElapsedRaw", "NodeList")
    planted: list[str] = []

    def together(rows: dict[str, Row]) -> None:
        alone = [
            row
            for row in rows.values()
            if row["AllocNodes"] == "1" and row["Suspended"] == "00:00:00"
            if row["ElapsedRaw"] > "0"
        ]
        for row in alone:
            row |= {name: alone[0][name] for name in columns}
        planted.append(alone[0]["NodeList"])

    found = verdict(imported(at(recording), tmp_path, together)).breaches
    where = f"processors of host {planted[0]}"
    assert any(each.code == "host-overfull" and where in each.text for each in found), found


def test_a_job_that_was_there_before_a_reservation_is_counted(tmp_path: Path) -> None:
    earlier = change("25", Submit=f"{DAY}20:31:40", Start=f"{DAY}20:31:41", End=f"{DAY}20:31:59")
    judged = verdict(imported(at("reservation"), tmp_path, earlier))
    assert "reserved-host" not in {each.code for each in judged.breaches}
    assert any("1 job that started earlier ran on into one" in text for text in judged.checked)


def test_what_was_suspended_or_is_unknown_is_said_and_not_counted(tmp_path: Path) -> None:
    of = imported(at("preempt-part"), tmp_path)
    said = " ".join(verdict(of).unchecked)
    assert "what 3 jobs had in use: suspended" in said
    assert "jobs of several partitions had at once" in said
    rows = side_rows(of)
    for row in rows:
        del row["suspended"]
    write_side_rows(of, rows)
    judged = verdict(of)
    assert judged.is_kept
    assert any("has no column suspended" in text for text in judged.unchecked)
    assert not any("processors on each" in text for text in judged.checked)


def test_the_shares_of_uneven_jobs_are_the_least_that_must_be_there(tmp_path: Path) -> None:
    """With equal shares the schedule of this recording would seem to break its hosts."""
    of = imported(OWN / "partitions-gpu", tmp_path)
    judged = verdict(of)
    assert judged.is_kept
    assert any("the shares of hosts of 8 jobs" in text for text in judged.unchecked)
    rows = side_rows(of)
    for row in rows:
        row["spread"] = ""
    write_side_rows(of, rows)
    assert {each.code for each in verdict(of).breaches} == {"host-overfull"}


def test_lines_and_hosts_that_are_absent_are_said(tmp_path: Path) -> None:
    of = imported(OWN / "partitions-gpu", tmp_path)
    rows = side_rows(of)
    rows[1]["hosts"] = ""
    rows[2]["reservation"] = "gone"
    rows[3]["server"] = "spice=2"
    rows[4] |= {"gpus_per_node": "1", "gpu_type": "h100"}
    write_side_rows(of, rows[:-1])
    said = " ".join(verdict(of).unchecked)
    assert "1 job without a line in the side file" in said
    assert "the hosts of 2 jobs: the side file does not name them" in said
    assert "the reservations of 1 job: the machine file does not have them" in said
    assert "spice: the machine file has no such amount of the server" in said
    assert "gpu:h100 (1 job) on hosts: no host" in said


def test_a_partition_that_does_not_exist_admits_no_job(tmp_path: Path) -> None:
    of = imported(OWN / "partitions-gpu", tmp_path)
    rows = side_rows(of)
    rows[1]["partitions"] = "gone"
    write_side_rows(of, rows)
    found = {each.code: each.text for each in verdict(of).breaches}
    assert set(found) == {"partition-limit", "outside-partition"}
    assert "names the partition gone, which the machine does not have" in found["partition-limit"]


@pytest.mark.parametrize(
    ("more", "error"),
    [
        (("--machine", "M"), "--machine and --resources go together"),
        (("--resources", "R"), "--machine and --resources go together"),
        (("--machine", "M", "--resources", "R", "--procs", "3"), "leave --procs out"),
        (("--machine", "M", "--resources", "absent.csv"), "absent.csv: No such file"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], more: tuple[str, ...], error: str
) -> None:
    of = imported(OWN / "partitions-gpu", tmp_path)
    names = {"M": of.machine, "R": of.resources}
    assert run(["verify", of.log, *(names.get(each, each) for each in more)]) in (2, 3)
    assert error in capfd.readouterr().err


def test_json_has_the_breaches_and_what_was_checked(tmp_path: Path) -> None:
    of = imported(OWN / "partitions-gpu", tmp_path, change("59", NodeList="n9"))
    code, out, _ = verify(of, "--json")
    document = json.loads(out)
    assert (code, document["schema"]) == (1, "qbatch.verify/1")
    [result] = document["results"]
    assert [each["code"] for each in result["breaches"]] == ["unknown-host"]
    assert "ansys and matlab of the server at every instant" in result["checked"]
    assert result["procs"] == 64


def test_the_hosts_of_job_rows_are_checked_if_each_job_is_inside_one(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "log.swf").write_text(
        "; MaxProcs: 16\n"
        + "".join(f"{n} 0 -1 9 2 -1 -1 2 9 -1 1 1 1 -1 1 -1 -1 -1\n" for n in "1234")
    )
    (tmp_path / "side.csv").write_text(
        "job,nodes,cpus_per_node,memory_per_node,gpus_per_node,hosts\n"
        + "".join(f"{n},1,2,1GB,1,nowhere\n" for n in "123")
    )
    machine = (
        'schema = 2\nsingle_host = true\n[[host]]\nname = "n[1-2]"\ncpus = 8\nmemory = "8GB"\n'
        "resources = { gpu = 3 }\n"
    )
    (tmp_path / "site.toml").write_text(machine)
    given = ["--machine", str(tmp_path / "site.toml"), "--resources", str(tmp_path / "side.csv")]
    out = str(tmp_path / "result")
    asked = ["replay", str(tmp_path / "log.swf"), *given[:2], "-p", "easy", "--out", out, "-q"]
    assert run(asked) == 0
    capfd.readouterr()
    assert run(["verify", f"{out}:easy", *given]) == 0
    said = capfd.readouterr().out
    assert "memory and gpu on each of 2 hosts at every instant, of 4 jobs" in said
    assert "1 job without a line in the side file" in said
    (tmp_path / "site.toml").write_text(machine.replace("gpu = 3", "gpu = 2"))
    assert run(["verify", f"{out}:easy", *given]) == 1
    assert "3 of 2 gpu of host n1 in use, by jobs 1, 2, 3" in capfd.readouterr().out


def test_the_result_of_a_replay_is_checked_without_its_hosts(tmp_path: Path) -> None:
    of = imported(OWN / "partitions-gpu", tmp_path)
    out = str(tmp_path / "result")
    given = ("--machine", of.machine, "--resources", of.resources)
    assert run(["replay", of.log, *given, "-p", "easy", "--out", out, "-q"]) == 0
    assert run(["verify", f"{out}:easy", *given]) == 0
