"""A machine of a ``slurm.conf``, and the side file of resources of ``sacct``."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from qbatch.cli.main import run
from qbatch.model.errors import InputError
from qbatch.model.machine import Partition
from qbatch.model.machine_file import machine_as_toml, parse_machine
from qbatch.workloads import read_log
from qbatch.workloads.accounting.slurm_conf import read_slurm_conf
from qbatch.workloads.resource_rows import read_resources

GIB = 2**30
CONF = """# A site.
ClusterName=alpha
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
Licenses=matlab:20
NodeName=DEFAULT Sockets=2 CoresPerSocket=4 \\
    ThreadsPerCore=2 RealMemory=65536 State=UNKNOWN
NodeName=n[01-02] Feature=ib,avx Weight=20   # Taken last.
NodeName=g1 CPUs=8 Gres=gpu:a100:4(S:0-1),nvme:2 Features=ib Weight=10
nodename=x1 CPUs=4 RealMemory=1024 gres=gpu:2
# Partitions.
PartitionName=DEFAULT MaxTime=60 State=UP
PartitionName=long Nodes=n[01-02],g1 Default=YES
PartitionName=all Nodes=ALL PriorityTier=3 MaxTime=2-00:00:00 DefaultTime=10:00 MinNodes=2 \
    MaxNodes=UNLIMITED MaxMemPerCPU=4096 OverSubscribe=EXCLUSIVE
"""


def conf(tmp_path: Path, text: str = CONF) -> str:
    path = tmp_path / "slurm.conf"
    path.write_text(text)
    return str(path)


def test_nodes_and_partitions_are_a_machine_in_order_of_weight(tmp_path: Path) -> None:
    machine, remarks, *_ = read_slurm_conf(conf(tmp_path))
    assert machine.name == "alpha"
    assert [(host.name, host.cpus, host.memory // GIB) for host in machine.real_hosts] == [
        ("x1", 4, 1),
        ("g1", 8, 64),
        ("n01", 16, 64),
        ("n02", 16, 64),
    ]
    assert dict(machine.hosts[1].resources) == {"gpu": 4, "gpu:a100": 4, "nvme": 2}
    assert dict(machine.hosts[0].resources) == {"gpu": 2}
    assert machine.hosts[2].features == ("ib", "avx")
    assert (machine.hosts[4].name, machine.hosts[4].resources) == ("@server", (("matlab", 20),))
    assert machine.partitions == (
        Partition("long", (1, 2, 3), is_default=True, max_time=3600 * 10**6),
        Partition(
            "all",
            (0, 1, 2, 3),
            default_time=600 * 10**6,
            max_time=2 * 86400 * 10**6,
            min_hosts=2,
            max_memory_per_cpu=4 * GIB,
            share="exclusive",
            tier=3,
        ),
    )
    assert remarks == ()
    assert parse_machine("\n".join(machine_as_toml(machine)), "again") == machine


def test_memory_counts_only_if_slurm_counts_it(tmp_path: Path) -> None:
    machine, remarks, *_ = read_slurm_conf(
        conf(tmp_path, CONF.replace("CR_Core_Memory", "CR_Core"))
    )
    assert not machine.counts_memory
    assert remarks[-1] == "memory does not count: SelectTypeParameters names no memory"


def test_billing_weights_have_units_of_memory_and_types(tmp_path: Path) -> None:
    def billing(weights: str, more: str = "") -> tuple[dict[str, float], tuple[str, ...]]:
        text = CONF.replace("PriorityTier=3", f"PriorityTier=0 TRESBillingWeights={weights}")
        machine, remarks, *_ = read_slurm_conf(conf(tmp_path, text + more))
        assert machine.partitions[1].tier == 0
        assert parse_machine("\n".join(machine_as_toml(machine)), "again") == machine
        return dict(machine.partitions[1].billing), remarks

    weights = '"CPU=1.0,Mem=0.25G,GRES/gpu=2.5,gres/gpu:A100=10,License/matlab=3"'
    assert billing(weights) == (
        {"cpus": 1.0, "memory_gb": 0.25, "gpu": 2.5, "gpu:a100": 10.0, "matlab": 3.0},
        (),
    )
    memory = {"1K": 2.0**20, "1M": 1024, "1": 1024, "1g": 1, "512T": 0.5, "1024P": 2.0**-10}
    for text, weight in memory.items():
        assert billing(f"Mem={text}") == ({"memory_gb": weight}, ())
    found, remarks = billing("Node=1,CPU=.5,GRES/fpga=2", "PriorityFlags=MAX_TRES\n")
    assert found == {"cpus": 0.5}
    assert remarks == (
        "gres/fpga of tresbillingweights: does not count (1 times)",
        "node of tresbillingweights: does not count (1 times)",
        "priorityflags=MAX_TRES: does not count; billing is the sum of all weights",
    )


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (("PriorityTier=3", "PriorityTier=70000"), "line 14: prioritytier 70000 is above 65533"),
        (("PriorityTier=3", "TRESBillingWeights=CPU=x"), "line 14: TRESBillingWeights 'CPU=x' is"),
        (("PriorityTier=3", "TRESBillingWeights=CPU=1G"), "'CPU=1G' is not name=weight"),
        (("CPUs=8", "CPUs=many"), "line 9: cpus 'many' is not a whole number"),
        (("gpu:a100:4(S:0-1)", "gpu:4:a100"), "line 9: Gres 'gpu:4:a100' is not name:type:number"),
        (("nvme:2", "gpu:v100:2"), "line 9: a node has gpu of two types"),
        (("nodename=x1", "nodename=g1"), "line 10: the node 'g1' appears twice"),
        (("n[01-02],g1", "n[01-03],g1"), "line 13: there is no node 'n03'"),
        (("matlab:20", "matlab:many"), "line 5: Licenses 'matlab:many' is not name:number"),
        (("MaxTime=60", "MaxTime=soon"), "line 13: maxtime 'soon' is neither minutes nor a time"),
        (("MinNodes=2", "MinNodes=two"), "line 14: minnodes 'two' is not a whole number"),
        (("Licenses=matlab:20", "Licenses matlab"), "line 5: 'Licenses matlab' is not Name=value"),
    ],
)
def test_a_bad_file_is_refused_with_line_and_reason(
    tmp_path: Path, change: tuple[str, str], error: str
) -> None:
    assert change[0] in CONF
    with pytest.raises(InputError) as found:
        read_slurm_conf(conf(tmp_path, CONF.replace(*change)))
    assert error in str(found.value)


def test_a_file_without_nodes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="it has no NodeName line"):
        read_slurm_conf(conf(tmp_path, "ClusterName=alpha\n"))
    with pytest.raises(InputError, match="No such file"):
        read_slurm_conf(str(tmp_path / "absent.conf"))


ROWS = "\n".join(
    "|".join(cells)
    for cells in (
        (
            *("JobID", "User", "Partition", "Submit", "Start", "End", "State", "Timelimit"),
            *("ReqTRES", "AllocTRES", "NodeList", "Constraints", "SubmitLine", "Reservation"),
        ),
        (
            *("1", "ann", "long", "2026-01-01T10:00:00", "2026-01-01T10:00:00"),
            *("2026-01-01T10:10:00", "COMPLETED", "00:20:00"),
            *("cpu=8,mem=16G,node=2,gres/gpu=2,gres/gpu:a100=2", "cpu=8,mem=16G,node=2"),
            *("n[01-02]", "ib&avx", "sbatch -N2", "r1"),
        ),
        (
            *("2", "ann", "all", "2026-01-01T10:00:01", "2026-01-01T10:00:02"),
            *("2026-01-01T10:10:00", "COMPLETED", "00:20:00"),
            *("cpu=12,mem=1000M,node=1", "cpu=12,mem=1000M,node=2"),
            *("n[01-02]", "ib|avx", "sbatch --exclusive --reservation=r2 x", ""),
        ),
        (
            *("3", "bob", "", "2026-01-01T10:00:05", "2026-01-01T10:00:06"),
            *("2026-01-01T10:10:00", "COMPLETED", "00:20:00"),
            *("cpu=2,node=1,license/matlab=3", "cpu=2,node=1", "x1", "", "", ""),
        ),
        (),
    )
)


def test_sacct_gives_a_side_file_that_replays_on_the_site(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    records = tmp_path / "sacct.psv"
    records.write_text(ROWS)
    log, side, machine = (str(tmp_path / name) for name in ("log.swf", "side.csv", "site.toml"))
    asked = ("import", "slurm", str(records), "--timezone", "UTC", "-o", log, "--resources", side)
    assert run([*asked, "--slurm-conf", conf(tmp_path), "--machine-file", machine]) == 0
    assert "does not count" not in capfd.readouterr().err
    assert "rank = { tier = 3 }" in Path(machine).read_text()
    rows = list(csv.reader(Path(side).read_text().splitlines()))[1:]
    assert rows == [
        ["1", "2", "4", str(8 * GIB), "1", "a100", "", "ib&avx", "long", "0", "", "", "r1"]
        + ["n[01-02]", "unknown", "", "", "0", "1", "ann", "", "", ""],
        # Of a choice of features none is named; 12 processors went to two nodes.
        ["2", "2", "6", str(500 * 2**20), "0", "", "", "", "all", "1", "", "", "r2"]
        + ["n[01-02]", "unknown", "", "", "0", "2", "ann", "", "", ""],
        ["3", "1", "2", "0", "0", "", "", "", "", "0", "", "matlab=3", "", "x1", "", "", "", "0"]
        + ["3", "bob", "", "", ""],
    ]
    rows_of_log = read_resources(side, read_log(log))
    assert rows_of_log.of.tolist() == [0, 1, 2]
    assert rows_of_log.ids == {1: "1", 2: "2", 3: "3"}
    replay = ("replay", log, "--machine", machine, "--resources", side, "-p", "easy", "--audit")
    assert run([*replay, "--json", "-q"]) == 0
    assert json.loads(capfd.readouterr().out)["resources"]["jobs"] == 3


@pytest.mark.parametrize(
    ("command", "cells"),
    [
        ("sbatch -n 12 x", {"nodes": "12", "cpus_per_node": "1", "place": "free"}),
        (
            "sbatch -N 2-3 --ntasks=6 -c 2 x",
            {"nodes": "6", "cpus_per_node": "2", "min_nodes": "2", "max_nodes": "3"},
        ),
        ("sbatch --ntasks=12 --ntasks-per-node=6 -p all,long x", {"partitions": "all,long"}),
        ("sbatch --ntasks=12 --mem=1G -p other,all x", {"nodes": "2", "partitions": "long"}),
        ("sbatch --ntasks=5 x", {"nodes": "2", "cpus_per_node": "6", "place": ""}),
        ("sbatch --nice -n 12 --exclusive x", {"nodes": "2", "nice": "100", "exclusive": "1"}),
        ("sbatch --nice=-7 x", {"nodes": "2", "nice": "-7"}),
    ],
)
def test_the_command_line_says_tasks_partitions_and_nice_values(
    tmp_path: Path, command: str, cells: dict[str, str]
) -> None:
    names = "JobID|User|Account|QOS|Partition|Submit|Start|End|State|Timelimit|ReqTRES|AllocTRES"
    row = "1|ann|lab|high|long|2026-01-01T10:00:00|2026-01-01T10:00:00|2026-01-01T10:10:00"
    row += "|COMPLETED|00:20:00|cpu=12,mem=12G,node=1|cpu=12,mem=12G,node=2|n[01-02]"
    records, log, side = (str(tmp_path / name) for name in ("sacct.psv", "log.swf", "side.csv"))
    Path(records).write_text(f"{names}|NodeList|SubmitLine\n{row}|{command}\n")
    asked = ["import", "slurm", records, "--timezone", "UTC", "-q", "-o", log, "--resources", side]
    assert run([*asked, "--tasks"]) == 0
    found = next(csv.DictReader(Path(side).read_text().splitlines()))
    assert {name: found[name] for name in cells} == cells
    assert (found["user"], found["account"], found["qos"]) == ("ann", "lab", "high")


def test_the_configuration_of_another_cluster_is_said(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    header, *rows = ROWS.splitlines()
    records = "\n".join([f"{header}|Cluster", *(f"{row}|beta" for row in rows)]) + "\n"
    (tmp_path / "sacct.psv").write_text(records.replace("|x1|", "|x[1-9]|"))
    asked = ["import", "slurm", str(tmp_path / "sacct.psv"), "--timezone", "UTC", "-q"]
    asked += ["-o", str(tmp_path / "log.swf"), "--machine-file", str(tmp_path / "site.toml")]
    assert run([*asked, "--slurm-conf", conf(tmp_path)]) == 0
    file = tmp_path / "slurm.conf"
    assert capfd.readouterr().err.splitlines() == [
        f"warning: {file} may be of another cluster: ClusterName is alpha, and the records are of "
        "beta",
        f"warning: {file} may be of another cluster: 8 of 11 hosts on which jobs ran are not in it: "
        "x2, x3, x4, x5, x6, ...",
    ]
    (tmp_path / "sacct.psv").write_text(records.replace("beta", "Alpha"))
    assert run([*asked, "--slurm-conf", conf(tmp_path)]) == 0
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("more", "error"),
    [
        (
            ("--resources", "side.csv", "--anonymize"),
            "--resources takes records by cores and with their names",
        ),
        (("--slurm-conf", "slurm.conf"), "--slurm-conf goes with --machine-file"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], more: tuple[str, ...], error: str
) -> None:
    (tmp_path / "sacct.psv").write_text(ROWS)
    asked = ("import", "slurm", str(tmp_path / "sacct.psv"), "-o", str(tmp_path / "log.swf"))
    assert run([*asked, *more]) == 2
    assert error in capfd.readouterr().err
    assert not (tmp_path / "log.swf").exists()


@pytest.mark.parametrize(
    ("command", "tres", "nodes", "expected"),
    [
        ("sbatch x", "cpu=4,mem=1G,node=1,gres/gpu=3", 1, ("", "0")),
        ("sbatch -N2 --ntasks-per-node=2 x", "cpu=4,mem=2G,node=2,gres/gpu=2", 2, ("", "0")),
        ("sbatch -N2 --ntasks-per-node=2 -n4 x", "cpu=8,mem=2G,node=2", 2, ("", "0")),
        ("sbatch -N2 --ntasks-per-node=4 -n4 x", "cpu=4,mem=2G,node=2", 2, ("unknown", "0")),
        ("sbatch -N2 -n2 x", "cpu=2,mem=2G,node=2", 2, ("", "0")),
        ("sbatch -N2 x", "cpu=4,mem=2G,node=2", 2, ("unknown", "0")),
        ("sbatch --ntasks-per-node=2 x", "cpu=4,mem=2G,node=1", 2, ("unknown", "0")),
        ("sbatch -N2 -n2 x", "cpu=2,mem=2G,node=2,gres/gpu=3", 2, ("unknown", "0")),
        ("sbatch -N2 -n2 x", "cpu=2,mem=1025K,node=2", 2, ("", "0")),
        ("sbatch -N3 -n3 x", "cpu=3,mem=1025K,node=3", 3, ("unknown", "0")),
        ("sbatch -N2 -n2 --gpus=2 x", "cpu=2,mem=2G,node=2,gres/gpu=2", 2, ("unknown", "0")),
        ("sbatch -N2 --exclusive=user -n2 x", "cpu=2,mem=2G,node=2", 2, ("", "0")),
    ],
)
def test_the_side_file_says_whether_the_shares_of_hosts_are_known(
    tmp_path: Path, command: str, tres: str, nodes: int, expected: tuple[str, str]
) -> None:
    header, first, *_ = ROWS.splitlines()
    cells = dict(zip(header.split("|"), first.split("|"), strict=True))
    had = tres.partition(",node=")[0] + f",node={nodes}"
    cells |= {"ReqTRES": tres, "AllocTRES": had, "SubmitLine": command, "Reservation": ""}
    (tmp_path / "sacct.psv").write_text(f"{header}\n{'|'.join(cells.values())}\n")
    side = tmp_path / "side.csv"
    asked = ("import", "slurm", str(tmp_path / "sacct.psv"), "--timezone", "UTC", "-q")
    assert run([*asked, "-o", str(tmp_path / "log.swf"), "--resources", str(side)]) == 0
    [row] = list(csv.DictReader(side.open()))
    assert (row["spread"], row["suspended"]) == expected
    assert row["exclusive"] == "0"


def test_processors_that_are_shared_are_said(tmp_path: Path) -> None:
    assert not read_slurm_conf(conf(tmp_path)).is_time_sliced
    text = CONF.replace("DefaultTime=10:00", "OverSubscribe=FORCE:4", 1)
    text = text.replace(" OverSubscribe=EXCLUSIVE", "") + "PreemptMode=SUSPEND,GANG\n"
    _, remarks, is_time_sliced, *_ = read_slurm_conf(conf(tmp_path, text))
    assert is_time_sliced
    assert remarks[-1] == "oversubscribe=FORCE:4 of partition all: does not count"
