"""The passes of Slurm, held against recordings of a real one: with the instants of its passes, its
submissions and its ends, jobs start in the same pass on the same hosts."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from qbatch.cli.main import run as command
from qbatch.library.validation import facts_of, validated, zone_of
from qbatch.policies.slurm import passes_of
from qbatch.simulation import prepare
from qbatch.workloads import read_log
from qbatch.workloads.accounting.sacct import host_names
from qbatch.workloads.machines import load_machine
from qbatch.workloads.resource_rows import read_resources
from qbatch.workloads.site.controller_log import read_controller_log

RECORDED = Path(__file__).resolve().parents[3] / "shared" / "recordings" / "slurm-22.05"
pytestmark = pytest.mark.skipif(not RECORDED.is_dir(), reason="../shared/recordings is absent")

EQUAL = {
    "backfill-basic": (39, 39),
    "builtin-fifo": (40, 40),
    "multifactor": (60, 60),
    "limits": (45, 36),
}
"""By recording: how many jobs start in the same pass, and how many of these on the same hosts.  Job 16
of ``backfill-basic`` waits in reality for hosts that are still cleaned up, some milliseconds after
the end of a job: no log says when that is over."""


def imported(name: str, folder: Path) -> tuple[str, str, str]:
    """Return the paths of the site, the log and the side file that the commands make."""
    source = RECORDED / name
    site, log, side = (str(folder / each) for each in ("site.toml", "log.swf", "log.resources.csv"))
    sacct = next(str(path) for path in source.glob("sacct_all.psv*"))
    files = ["--slurm", str(source / "slurm.conf"), "--sacctmgr", str(source / "sacctmgr.dump")]
    files += ["--qos", str(source / "text" / "sacctmgr_qos.psv")]
    assert command(["import", "site", *files, "-q", "-o", site]) == 0
    options = ["--timezone", "UTC", "--resources", side, "--tasks", "-q"]
    assert command(["import", "slurm", sacct, *options, "-o", log]) == 0
    return site, log, side


def controller_log(name: str) -> str:
    return next(str(path) for path in (RECORDED / name).glob("decisions.log*"))


@pytest.mark.parametrize("name", EQUAL)
def test_jobs_start_when_and_where_slurm_started_them(name: str, tmp_path: Path) -> None:
    site, log_file, side = imported(name, tmp_path)
    log, machine = read_log(log_file), load_machine(site)
    rows = read_resources(side, log)
    work = prepare(log, machine, resources=rows)
    controller = read_controller_log(controller_log(name), zone_of(log))
    found = validated(log, work, machine, rows, controller)
    schedule = found.schedule
    assert schedule.hosts is not None
    same = np.abs(schedule.start - found.real) < 5000  # of the pass, and of the start in it
    there = sum(
        bool(same[row])
        and set(host_names(schedule.hosts[row])) == set(host_names(rows.hosts[place]))
        for row, place in enumerate(schedule.workload.log_row.tolist())
    )
    assert (int(same.sum()), there) == EQUAL[name]
    facts = facts_of(found, passes_of(machine))
    assert facts["jobs"] == len(work)
    assert facts["within_backfill_interval"] >= 0.97


def test_validate_finds_limits_that_do_not_hold(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    site, log, side = imported("limits", tmp_path)
    asked = ["validate", log, "--site", site, "--resources", side]
    asked += ["--passes", controller_log("limits")]
    capfd.readouterr()
    assert command([*asked, "--json"]) == 0
    record = json.loads(capfd.readouterr().out)
    assert record["schema"] == "qbatch.validate/1"
    assert record["breaches"] == {}
    assert record["replays"]["site"]["within_1_s"] == pytest.approx(45 / 49)
    assert record["replays"]["limits off"]["within_1_s"] < 0.7
    assert {job["id"] for job in record["jobs"]} == {"35", "38", "43", "44"}
    assert command(asked) == 0
    shown = capfd.readouterr()
    assert "limits off" in shown.out
    assert "job 38 (38 on the cluster): starts 50.3 s, really 80.303 s" in shown.out
    assert "5 jobs skipped" in shown.err


def test_without_a_controllers_log_most_starts_are_within_an_interval(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    site, log, side = imported("limits", tmp_path)
    capfd.readouterr()
    assert command(["validate", log, "--site", site, "--resources", side, "--json"]) == 0
    record = json.loads(capfd.readouterr().out)
    assert record["replays"]["site"]["within_backfill_interval"] >= 0.95


def test_a_machine_without_a_site_is_refused(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    site, log, side = imported("builtin-fifo", tmp_path)
    text = Path(site).read_text()
    Path(site).write_text(text[: text.index("[[qos]]")])
    assert command(["validate", log, "--site", site, "--resources", side]) == 2
    assert "make it with qbatch import site" in capfd.readouterr().err
