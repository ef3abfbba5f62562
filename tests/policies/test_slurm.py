"""The passes of Slurm, held against recordings of a real one: with the instants of its passes, its
submissions and its ends, every job starts in the same pass on the same hosts."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from qbatch.cli.main import run as command
from qbatch.model.machine import Machine
from qbatch.model.record import Workload
from qbatch.policies.slurm import Slurm
from qbatch.simulation import prepare, run
from qbatch.workloads import read_log
from qbatch.workloads.accounting.sacct import host_names
from qbatch.workloads.machines import load_machine
from qbatch.workloads.resource_rows import read_resources
from tests.policies.slurm_oracle.recording import read_recording

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


class Recorded(NamedTuple):
    """A recording as a replay: the site, the jobs, the identifiers of their rows, the real starts
    (instant in microseconds and hosts) by identifier, and the instants of passes and ticks."""

    machine: Machine
    work: Workload
    ids: list[int]
    starts: dict[int, tuple[int, str]]
    instants: list[tuple[int, str]]
    epoch: int


def recorded(name: str, folder: Path) -> Recorded:
    source = RECORDED / name
    site, log_file, side = (
        str(folder / each) for each in ("site.toml", "log.swf", "log.resources.csv")
    )
    sacct = next(str(path) for path in source.glob("sacct_all.psv*"))
    files = ["--sacctmgr", str(source / "sacctmgr.dump")]
    files += ["--qos", str(source / "text" / "sacctmgr_qos.psv")]
    assert (
        command(["import", "site", "--slurm", str(source / "slurm.conf"), *files, "-q", "-o", site])
        == 0
    )
    options = ["--timezone", "UTC", "--resources", side, "-q"]
    assert command(["import", "slurm", sacct, *options, "-o", log_file]) == 0
    log, machine = read_log(log_file), load_machine(site)
    rows = read_resources(side, log)
    work = prepare(log, machine, resources=rows)
    ids = [int(rows.ids[number]) for number in work.number.tolist()]
    real, epoch = read_recording(source), log.header.unix_start_time

    def micro(instant: float) -> int:
        return round((instant - epoch) * 1e6)

    submits = {each.job: micro(each.time) for each in real.events if each.kind == "submitted"}
    ends = {
        each.job: micro(each.time)
        for each in real.events
        if each.kind in ("ended", "exhausted", "killed")
    }
    starts = {
        start.job: (micro(each.time), start.nodes) for each in real.passes for start in each.starts
    }
    instants = [(micro(each.time), each.kind) for each in real.passes]
    instants += [(micro(each.time), "tick") for each in real.events if each.kind == "tick"]
    submit = np.array([submits[each] for each in ids])
    run_time = np.array([ends[each] - starts[each][0] for each in ids])
    work = work.changed(submit=submit, run=run_time)
    assert (np.diff(submit) >= 0).all()
    instants = sorted(each for each in instants if each[0] >= 0)
    return Recorded(machine, work, ids, starts, instants, epoch)


@pytest.mark.parametrize("name", EQUAL)
def test_jobs_start_when_and_where_slurm_started_them(name: str, tmp_path: Path) -> None:
    real = recorded(name, tmp_path)
    policy = Slurm("slurm", real.epoch, real.instants)
    done = run(real.work, real.machine, policy, driver="engine", is_audited=True)
    assert done.hosts is not None
    same, there = 0, 0
    for row, each in enumerate(real.ids):
        at, nodes = real.starts[each]
        is_same = abs(int(done.start[row]) - at) < 1000
        same += is_same
        there += is_same and set(host_names(done.hosts[row])) == set(host_names(nodes))
    assert (same, there) == EQUAL[name]
