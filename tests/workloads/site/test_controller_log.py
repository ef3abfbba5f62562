"""The log of a Slurm controller: instants of passes and of jobs."""

from __future__ import annotations

import gzip
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from qbatch.model.errors import InputError
from qbatch.workloads.site.controller_log import read_controller_log

LINES = "".join(
    f"{line}\n"
    for line in (
        "slurmctld: no stamp",
        "[2026-01-01T10:00:00.250] _slurm_rpc_submit_batch_job: JobId=1 InitPrio=100 usec=599",
        "[2026-01-01T10:00:01.500] debug:  sched: Running job scheduler for default depth.",
        "[2026-01-01T10:00:01.502] sched: Allocate JobId=1 NodeList=n1 Partition=main",
        "[2026-01-01T10:00:02.000] _slurm_rpc_submit_batch_job: JobId=2 InitPrio=99 usec=599",
        "[2026-01-01T10:00:30.125] sched/backfill: _attempt_backfill: beginning",
        "[2026-01-01T10:00:30.126] sched/backfill: _start_job: Started JobId=2_7(3) in main on n2",
        "[2026-01-01T10:01:00] priority/multifactor: _decay_thread: PRIO: Decay factor over 60 seconds goes",
        "[2026-01-01T10:01:01.000] debug:  sched: Running job scheduler for full queue.",
        "[2026-01-01T10:02:00.000] _job_complete: JobId=1 WEXITSTATUS 0",
        "[2026-01-01T10:02:00.001] _job_complete: JobId=1 done",
        "[2026-01-01T10:03:00.001] _job_complete: JobId=1 done",
        "[2026-01-01T10:03:02.001] Time limit exhausted for JobId=2_7(3)",
    )
)
TEN = 1_767_261_600.0 - 3600
"""2026-01-01T10:00 in Berlin, in seconds since 1970."""


def test_instants_are_read_to_the_millisecond(tmp_path: Path) -> None:
    path = tmp_path / "slurmctld.log.gz"
    path.write_bytes(gzip.compress(LINES.encode()))
    found = read_controller_log(str(path), ZoneInfo("Europe/Berlin"))
    assert [(at - TEN, kind) for at, kind in found.passes] == [
        (1.5, "quick"),
        (30.125, "backfill"),
        (60.0, "tick"),
        (61.0, "full"),
    ]
    assert found.submitted == {"1": TEN + 0.25, "2": TEN + 2.0}
    assert found.started == pytest.approx({"1": TEN + 1.502, "2_7": TEN + 30.126}, abs=1e-4)
    assert found.ended == pytest.approx({"1": TEN + 120.001, "2_7": TEN + 182.001}, abs=1e-4)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "no pass of the scheduler is in it; Slurm logs them with SlurmctldDebug=debug"),
        ("[2026-01-01T10:01:00] _decay_thread: PRIO: Decay factor\n", "no pass of the scheduler"),
        ("[2026-13-01T10:01:00] x\n", "line 1: 2026-13-01T10:01:00 is not a time"),
    ],
)
def test_a_log_without_passes_is_refused(tmp_path: Path, text: str, error: str) -> None:
    path = tmp_path / "slurmctld.log"
    path.write_text(text)
    with pytest.raises(InputError) as refused:
        read_controller_log(str(path), ZoneInfo("UTC"))
    assert error in str(refused.value)


def test_a_log_that_is_not_there_or_damaged_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        read_controller_log(str(tmp_path / "none"), ZoneInfo("UTC"))
    damaged = tmp_path / "damaged.gz"
    damaged.write_bytes(gzip.compress(LINES.encode())[:-20])
    with pytest.raises(InputError, match=r"damaged\.gz: "):
        read_controller_log(str(damaged), ZoneInfo("UTC"))
