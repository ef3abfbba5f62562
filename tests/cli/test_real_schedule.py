"""The comparison of a real schedule with a replay: only a schedule that can have run on the machine
gets findings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import qbatch
from qbatch.cli.main import run
from qbatch.workloads.left_out import LeftOut, still_left_out
from qbatch.workloads.resource_rows import kinds_in
from tests.referee.samples import OWN, Imported, imported, side_rows, write_side_rows

ALL_KNOWN = "GPUs", "licences", "node memory", "partitions"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Imported:
    """A recording of Slurm, imported, and a replay of it in the folder ``replay``."""
    folder = tmp_path_factory.mktemp("site")
    of = imported(OWN / "partitions-gpu", folder)
    asked = ["replay", of.log, "--machine", of.machine, "--resources", of.resources, "-q"]
    assert run([*asked, "-p", "easy", "--out", str(folder / "replay")]) == 0
    return of


def compared(
    site: Imported,
    capsys: pytest.CaptureFixture[str],
    *,
    turned: bool = False,
    log: str | None = None,
    **files: str,
) -> dict[str, Any]:
    """Return the record of a comparison of the real schedule with the replay."""
    sides = [log or site.log, str(Path(site.log).parent / "replay")]
    options = [part for name, path in files.items() for part in (f"--{name}", path)]
    capsys.readouterr()
    assert run(["compare", *(sides[::-1] if turned else sides), *options, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize("turned", [False, True])
def test_a_schedule_that_fits_its_machine_gets_findings(
    site: Imported, capsys: pytest.CaptureFixture[str], turned: bool
) -> None:
    found = compared(site, capsys, turned=turned, machine=site.machine, resources=site.resources)
    assert found["is_described"] is False
    metrics = {each["name"]: each for each in found["metrics"]}
    assert metrics["wait_mean_s"]["finding"] == ("worse" if turned else "better")
    assert metrics["wait_mean_s"]["low"] < metrics["wait_mean_s"]["difference"]
    assert metrics["utilisation_submit"]["finding"] != "described"  # both machines have one size
    first, second, *_ = found["history"]
    assert first.startswith(f"the real schedule can have run on {site.machine} (processors, memory")
    # One job asks for a choice of features, and one shares its nodes with its own user only.
    assert second == (
        "left out of the log: features: 1 of 64 jobs; exclusive allocation: 1 of 64 jobs"
    )


def test_without_a_check_differences_are_described(
    site: Imported, capsys: pytest.CaptureFixture[str]
) -> None:
    found = compared(site, capsys)
    assert found["is_described"] is True
    assert {each["finding"] for each in found["metrics"]} == {"described"}
    text = "; ".join(found["history"])
    assert not [kind for kind in ALL_KNOWN if f"{kind}:" in text]
    assert "--machine and --resources check whether" in text


def changed(site: Imported, tmp_path: Path, before: str, after: str) -> str:
    """Return the path of a machine file with another text."""
    text = Path(site.machine).read_text()
    assert before in text
    (tmp_path / "other.toml").write_text(text.replace(before, after))
    return str(tmp_path / "other.toml")


def test_breaches_are_counted_by_kind_and_no_verdict_is_given(
    site: Imported, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    machine = changed(site, tmp_path, '"gpu" = 2', '"gpu" = 1')
    found = compared(site, capsys, machine=machine, resources=site.resources)
    assert found["is_described"] is True
    assert {each["finding"] for each in found["metrics"]} == {"described"}
    asked = ["verify", site.log, "--machine", machine, "--resources", site.resources, "--json"]
    assert run(asked) == 1
    (verdict,) = json.loads(capsys.readouterr().out)["results"]
    count = verdict["breaches_total"]
    assert found["history"][0].startswith(
        f"the real schedule cannot have run on {machine}: {count} breaches ({count} host-overfull)"
    )
    assert "qbatch " + " ".join(asked[:-1]) in found["history"][0]


def test_too_few_processors_are_a_breach_and_no_error(
    site: Imported, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    machine = changed(site, tmp_path, "cpus = 8", "cpus = 4")
    found = compared(site, capsys, machine=machine, resources=site.resources)
    assert found["is_described"] is True
    assert " capacity" in found["history"][0]


def test_a_replay_on_another_machine_gives_no_verdict(
    site: Imported, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    machine = changed(site, tmp_path, "cpus = 8", "cpus = 9")
    found = compared(site, capsys, machine=machine, resources=site.resources)
    assert found["is_described"] is True
    assert found["history"][0] == f"the replay was not on the machine of {machine}"


@pytest.mark.parametrize("without", ["a line", "hosts"])
def test_another_side_file_gives_no_verdict(
    site: Imported, capsys: pytest.CaptureFixture[str], tmp_path: Path, without: str
) -> None:
    rows = side_rows(site)
    for row in rows:
        row["hosts"] = "" if without == "hosts" else row["hosts"]
    other = site._replace(resources=str(tmp_path / "side.csv"))
    write_side_rows(other, rows if without == "hosts" else rows[:-1])
    found = compared(site, capsys, machine=site.machine, resources=other.resources)
    assert found["is_described"] is True
    assert found["history"][0].startswith(
        f"the side file {other.resources} does not name the hosts"
        if without == "hosts"
        else "the replay had another side file"
    )


def test_a_log_of_preempted_jobs_gives_no_verdict(
    site: Imported, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "log.swf").write_text("; Preemption: TS\n" + Path(site.log).read_text())
    files = {"machine": site.machine, "resources": site.resources}
    found = compared(site, capsys, log=str(tmp_path / "log.swf"), **files)
    assert found["is_described"] is True
    assert found["history"][0].startswith("the log has Preemption: TS")


def test_a_page_and_python_give_the_same_findings(site: Imported, tmp_path: Path) -> None:
    replay, page = str(Path(site.log).parent / "replay"), tmp_path / "page.html"
    files = ["--machine", site.machine, "--resources", site.resources]
    asked = ["report", replay, site.log, *files, "-o", str(page)]
    assert run(asked) == 0
    text = page.read_text(encoding="utf-8")
    assert "is better than log" in text
    assert "The real schedule can have run on" in text
    assert not [kind for kind in ALL_KNOWN if f"{kind}: " in text]
    found = qbatch.compare(site.log, replay, machine=site.machine, resources=site.resources)
    assert found.findings["wait_mean_s"] == "better"


@pytest.mark.parametrize("command", ["compare", "report"])
def test_without_a_log_or_one_file_there_is_one_line(
    site: Imported, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    replay = str(Path(site.log).parent / "replay")
    files = ["--machine", site.machine, "--resources", site.resources]
    sides = [replay, replay] if command == "compare" else [replay]
    refused = [(files[:2], "go together")]
    # A page about a replay alone takes both files too: it shows the hosts.
    refused += [(files, "a log with its own waits")] if command == "compare" else []
    for options, words in refused:
        capsys.readouterr()
        assert run([command, *sides, *options]) == 2
        error = capsys.readouterr().err
        assert (error.count("\n"), words in error) == (1, True)


def test_what_a_side_file_says_of_some_jobs_is_left_out_of_the_others(tmp_path: Path) -> None:
    (tmp_path / "side.csv").write_text(
        "job,nodes,gpus_per_node,memory_per_node,features,partitions,exclusive,server,reservation\n"
        "1,1,2,,a,p,1,lic=1,r\n2,2,1,1GB,,,,,\n3,1,,,,,,,\n"
    )
    kinds = kinds_in(str(tmp_path / "side.csv"))
    assert kinds == {
        "GPUs": 2,
        "features": 1,
        "licences": 1,
        "exclusive allocation": 1,
        "node memory": 1,
        "partitions": 1,
        "reservations": 1,
    }
    noted = [LeftOut("GPUs", 5, 9, "gpu 5"), LeftOut("QOS"), LeftOut("node memory", 1, 9)]
    assert still_left_out(noted, kinds, 9) == [LeftOut("GPUs", 3, 9), LeftOut("QOS")]
    assert still_left_out(noted, kinds, 4) == [LeftOut("QOS")]  # a part of that log
    assert still_left_out(noted, {}, 9) == noted
