"""What records of PBS ask for, as requests and as lines of a side file."""

from __future__ import annotations

from pathlib import Path

import pytest

from qbatch.cli.main import run
from qbatch.model.job import FREE, PACK, SCATTER, SERVER, ChunkRequest, JobRequest
from qbatch.workloads import read_log
from qbatch.workloads.accounting.pbs_requests import request_of
from qbatch.workloads.resource_rows import COLUMNS, cells_of, read_resources
from qbatch.workloads.side_file import SideText, side_bytes
from tests.workloads.accounting.samples import BASE, Sample, pbs_pro, torque

GIB = 2**30


def listed(text: str) -> dict[str, str]:
    return dict(word.split("=", 1) for word in text.split())


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            "select=2:ncpus=8:ngpus=2:mem=16gb:ib=True:nvme=1 ncpus=16 ngpus=4 nvme=2 place=free",
            JobRequest(
                (ChunkRequest(2, 8, 16 * GIB, -1, (("gpu", 2), ("nvme", 1)), ("ib",)),), FREE
            ),
        ),
        (
            "select=1:ncpus=4:ngpus=2:accelerator_model=a100 place=pack:excl",
            JobRequest((ChunkRequest(1, 4, 0, -1, (("gpu", 2), ("gpu:a100", 2))),), FREE, True),
        ),
        (
            "select=3:ncpus=2:arch=linux mem=9gb place=group=host",
            JobRequest((ChunkRequest(3, 2, 3 * GIB, features=("arch=linux",)),), PACK),
        ),
        (
            "nodes=2:ppn=4:gpus=1:bigmem#excl neednodes=2:ppn=4 ncpus=1 pmem=1gb",
            JobRequest(
                (ChunkRequest(2, 4, 4 * GIB, -1, (("gpu", 1),), ("bigmem",)),), SCATTER, True
            ),
        ),
        (
            "select=1:ncpus=2 matlab_lic=3 software=abaqus",
            JobRequest(
                (
                    ChunkRequest(1, 2),
                    ChunkRequest(1, 0, host=SERVER, resources=(("matlab_lic", 3),)),
                ),
            ),
        ),
        ("procs=8 walltime=60", JobRequest((ChunkRequest(8, 1),))),
        ("ncpus=4 mem=2gb ngpus=1", JobRequest((ChunkRequest(1, 4, 2 * GIB, -1, (("gpu", 1),)),))),
    ],
)
def test_a_resource_list_becomes_a_request_that_a_line_holds(
    text: str, wanted: JobRequest, tmp_path: Path
) -> None:
    asked = request_of(listed(text))
    assert asked is not None
    assert asked == (wanted, True)
    log = tmp_path / "log.swf"
    log.write_text("; MaxProcs: 64\n7 0 -1 9 1 -1 -1 1 9 -1 1 1 1 -1 1 -1 -1 -1\n")
    cells = cells_of(wanted) | {"job": "7"}
    line = [cells.get(name, "") for name in COLUMNS]
    found = read_resources(SideText("side", side_bytes(COLUMNS, [line])), read_log(str(log)))
    assert found.requests == (wanted,)


@pytest.mark.parametrize(
    "text",
    ["select=1:ncpus=2:host=n7", "nodes=n7:ppn=2", "select=1:ib=False", "select=1:scratch=10gb"],
)
def test_what_a_line_cannot_say_is_known(text: str) -> None:
    asked = request_of(listed(text))
    assert asked is not None
    assert not asked.is_whole


def test_chunks_of_two_kinds_have_no_line_and_a_cray_has_no_request() -> None:
    asked = request_of(listed("select=1:ncpus=4+2:ncpus=8"))
    assert asked is not None
    assert cells_of(asked.request) == {}
    assert request_of(listed("mppwidth=64 nodes=1")) is None
    assert request_of(listed("walltime=60")) is None


def test_import_pbs_writes_a_side_file_that_replays_and_verifies(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    records, log, side = (str(tmp_path / name) for name in ("acct", "log.swf", "side.csv"))
    jobs = [Sample(n, BASE + n, 0, 600, 2, 4, 3600, True, "ann", "q") for n in (1, 2, 3)]
    gpus = pbs_pro(jobs[0])[0].replace("2:ncpus=4 ", "2:ncpus=4:ngpus=1 ")
    mixed = pbs_pro(jobs[2])[0].replace("2:ncpus=4 ", "1:ncpus=2+1:ncpus=6 ")
    Path(records).write_text("\n".join([gpus, *torque(jobs[1]), mixed, ""]))
    asked = ("import", "pbs", records, "--timezone", "UTC", "-o", log, "--resources", side)
    assert run([*asked]) == 0
    assert "chunks of different kinds" in capfd.readouterr().err
    head, *lines = Path(side).read_text().splitlines()
    assert head == ",".join(COLUMNS)
    assert lines == [
        "1,2,4,,1,,,,q,,,,,n[0-1],,,,0,1,ann,a b,,",
        "2,2,4,,,,,,q,,,,,n[0-1],,,,0,2,ann,,,",
    ]
    machine = tmp_path / "m.toml"
    machine.write_text('schema = 2\n[[host]]\nname = "n[0-2]"\ncpus = 8\nresources = { gpu = 1 }\n')
    options = ("--machine", str(machine), "--resources", side)
    capfd.readouterr()
    assert run(["replay", log, *options, "-p", "easy", "--audit"]) == 0
    said = capfd.readouterr().err
    assert "2 lines name a partition, which does not count: the machine has none" in said
    Path(side).write_text("\n".join([head, *lines, ""]).replace("2,2,4,,,", "2,2,4,,1,"))
    capfd.readouterr()
    assert run(["verify", log, *options]) == 1
    assert "gpu" in capfd.readouterr().out
