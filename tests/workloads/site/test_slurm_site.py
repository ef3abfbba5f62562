"""A site's own files (slurm.conf, sacctmgr, gres.conf) become a machine file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from qbatch.cli.main import run
from qbatch.model.errors import InputError
from qbatch.model.machine_file import machine_as_toml, parse_machine
from qbatch.model.site import NO_LIMIT, OF_PARENT, Limits
from qbatch.workloads.machines import load_machine
from qbatch.workloads.site.notes import SiteNotes
from qbatch.workloads.site.slurm_site import SlurmFiles, read_slurm_site

RECORDED = Path(__file__).resolve().parents[4] / "shared" / "recordings" / "slurm-22.05"
NAMES = sorted(path.name for path in RECORDED.iterdir()) if RECORDED.is_dir() else []

CONF = """ClusterName=alpha
SelectTypeParameters=CR_Core_Memory
NodeName=n[1-4] CPUs=8 RealMemory=64000 Gres=gpu:a100:4
Include more.conf
Licenses=matlab:5
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=15,bf_window=2880,bf_continue,default_queue_depth=50,\\
defer,sched_min_interval=1500000,bf_max_job_usr=3
PriorityType=priority/multifactor
PriorityWeightAge=1000
PriorityWeightFairshare=10000
PriorityWeightTRES=CPU=1000,Mem=2000,GRES/gpu=3000.5
PriorityMaxAge=7-0
PriorityDecayHalfLife=0:05:00
PriorityCalcPeriod=1
PriorityFlags=ACCRUE_ALWAYS,NO_FAIR_TREE,CALCULATE_RUNNING
PreemptType=preempt/qos
PreemptMode=SUSPEND,GANG
AccountingStorageEnforce=limits,safe
"""
MORE = "PartitionName=main Nodes=ALL Default=YES PriorityJobFactor=10 QOS=partq\n"
DUMP = """
Cluster - 'alpha':Fairshare=1:QOS='normal'
Parent - 'root'
User - 'root':DefaultAccount='root':AdminLevel='Administrator':Fairshare=1
Account - 'lab':Description='a: b':Organization='o':Fairshare=20:QOS='high,normal':DefaultQOS='normal'
Parent - 'lab'
User - 'u1':DefaultAccount='lab':Fairshare=2147483647:MaxJobs=3
Account - 'sub':GrpTRES=cpu=20,mem=1G,gres/gpu:a100=4:GrpJobs=2:MaxWallDurationPerJob=40:Odd=1
Parent - 'sub'
User - 'u1':DefaultAccount='lab':Fairshare=3
"""
QOS = "".join(
    f"{line}\n"
    for line in (
        "Name|Priority|GraceTime|Preempt|PreemptExemptTime|PreemptMode|Flags|UsageFactor"
        "|GrpTRESMins|MaxWall|MaxTRESPU|MaxJobsPU|MinTRES",
        "normal|0|00:00:00|||cluster||1.000000|||||",
        "high|100|00:01:00|normal|00:00:40|requeue|DenyOnLimit,Relative|2.5|cpu=10|2-00:00:00"
        "|cpu=12,node=1|2|cpu=4",
        "partq|0|00:00:00|||cluster||1.000000||||1|",
    )
)
GRES = "AutoDetect=off\nNodeName=n[1-4] Name=gpu Type=a100 File=/dev/nvidia[0-1]\n"


@pytest.fixture
def files(tmp_path: Path) -> SlurmFiles:
    texts = {"slurm.conf": CONF, "more.conf": MORE, "dump": DUMP, "qos": QOS, "gres.conf": GRES}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    conf, gres, dump, qos = (
        str(tmp_path / name) for name in ("slurm.conf", "gres.conf", "dump", "qos")
    )
    return SlurmFiles(conf, gres, dump, qos=qos)


def test_the_files_become_one_machine(files: SlurmFiles) -> None:
    notes = SiteNotes()
    machine = read_slurm_site(files, notes)
    site = machine.site
    assert site is not None
    assert (machine.partitions[0].priority, machine.partitions[0].qos) == (10, "partq")
    priority, passes = site.priority, site.passes
    assert (priority.kind, priority.age, priority.fairshare) == ("multifactor", 1000, 10_000)
    assert priority.resources == (("cpus", 1000.0), ("memory", 2000.0), ("gpu", 3000.5))
    assert (priority.max_age, priority.period, priority.flags) == (604_800, 60, ("accrue-always",))
    assert (site.fairshare.kind, site.fairshare.half_life) == ("classic", 300)
    assert passes is not None
    assert (passes.backfill_interval, passes.backfill_window, passes.depth) == (15, 172_800, 50)
    assert (passes.is_deferring, passes.least_gap, passes.has_backfill) == (True, 2, True)
    assert (site.preemption.kind, site.preemption.mode) == ("qos", "suspend")
    assert (site.enforces_accounts, site.enforces_limits, site.is_safe) == (True, True, True)
    assert not site.enforces_qos
    normal, high, partq = site.qos
    assert (high.priority, high.grace, high.exempt, high.usage_factor) == (100, 60, 40, 2.5)
    assert (high.preempts, high.preempt_mode, high.flags) == (
        ("normal",),
        "requeue",
        ("deny-on-limit",),
    )
    assert (normal.preempt_mode, normal.exempt, partq.limits) == ("", NO_LIMIT, "qos-partq")
    root, lab, sub = site.accounts
    assert (root.name, lab.parent, sub.parent, lab.shares) == ("root", "root", "lab", 20)
    assert lab.qos == ("high", "normal")
    assert lab.default_qos == "normal"
    assert [(user.shares, user.is_default) for user in lab.users] == [(OF_PARENT, True)]
    assert [(user.shares, user.is_default) for user in sub.users] == [(3, False)]
    limits = {each.name: each for each in site.limits}
    assert limits["account-sub"] == Limits(
        "account-sub",
        total_jobs=2,
        total=(("cpus", 20), ("memory", 2**30), ("gpu:a100", 4)),
        max_wall=40,
    )
    assert limits["user-u1-lab"].max_jobs_per_user == 3
    assert limits["qos-high"] == Limits(
        "qos-high",
        total_minutes=(("cpus", 10),),
        max_jobs_per_user=2,
        max_per_user=(("cpus", 12), ("hosts", 1)),
        max_wall=2880,
        min_per_job=(("cpus", 4),),
    )
    assert parse_machine("\n".join(machine_as_toml(machine)), "again") == machine


def test_what_is_used_and_ignored_is_named_with_its_place(files: SlurmFiles) -> None:
    notes = SiteNotes()
    read_slurm_site(files, notes)
    ignored = [f"{place.rpartition('/')[2]}: {name}: {text}" for place, name, text in notes.ignored]
    assert "slurm.conf: line 7: bf_continue: passes take no time in a replay" in ignored
    assert (
        "slurm.conf: line 7: bf_max_job_usr: is not emulated; did you mean 'bf_max_job_user'?"
        in ignored
    )
    assert "slurm.conf: line 16: PriorityFlags=CALCULATE_RUNNING: is not emulated" in ignored
    assert "qos: line 3: Flags=Relative of QOS high: is not emulated" in ignored
    assert "dump: line 8: odd of account sub: is not known" in ignored
    assert any("node n1 has 4 gpu:a100 in slurm.conf and 2 here" in each for each in ignored)
    used = {(place.rpartition("/")[2], name) for place, name, _ in notes.used}
    assert {("slurm.conf: line 7", "bf_interval"), ("dump: line 5", "account lab")} <= used


@pytest.mark.parametrize(
    ("name", "change", "error"),
    [
        (
            "slurm.conf",
            ("PriorityWeightAge=1000", "PriorityWeightAge=x"),
            "line 10: priorityweight",
        ),
        ("slurm.conf", ("bf_interval=15", "bf_interval=soon"), "line 7: bf_interval 'soon' is not"),
        (
            "slurm.conf",
            ("ACCRUE_ALWAYS", "DEPTH_OBLIVIOUS"),
            "line 16: DEPTH_OBLIVIOUS: its formula",
        ),
        ("slurm.conf", ("more.conf", "none.conf"), "none.conf: No such file"),
        ("slurm.conf", ("more.conf", "slurm.conf"), "files include each other"),
        ("dump", ("Parent - 'lab'", "Parent - 'lob'"), "line 7: there is no account 'lob' before"),
        ("dump", ("Account - 'sub'", "Acount - 'sub'"), "line 8: \"Acount - 'sub'"),
        ("dump", ("MaxJobs=3", "MaxJobs=three"), "line 7: maxjobs 'three' is not a whole number"),
        ("dump", ("cpu=20", "cpu=many"), "line 8: 'cpu=many' is not resource=amount"),
        ("qos", ("|2|cpu=4", "|2"), "line 3: 12 values, the header names 13"),
        ("gres.conf", ("n[1-4]", "n[1-5]"), "line 2: there is no node 'n5' in slurm.conf"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(
    files: SlurmFiles, tmp_path: Path, name: str, change: tuple[str, str], error: str
) -> None:
    text = (tmp_path / name).read_text()
    assert change[0] in text
    (tmp_path / name).write_text(text.replace(*change))

    def read() -> None:
        notes = SiteNotes()
        read_slurm_site(files, notes)
        notes.check()

    with pytest.raises(InputError) as refused:
        read()
    assert error in str(refused.value)


def test_a_refused_setting_can_be_left_out(files: SlurmFiles, tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text(CONF.replace("ACCRUE_ALWAYS", "DEPTH_OBLIVIOUS"))
    notes = SiteNotes(frozenset({"depth_oblivious"}))
    read_slurm_site(files, notes)
    notes.check()
    assert any(name == "DEPTH_OBLIVIOUS" for _, name, _ in notes.ignored)


def test_the_command_writes_a_machine_file(
    files: SlurmFiles, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "site.toml")
    command = ["import", "site", "--slurm", files.conf, "--sacctmgr", str(files.dump), "-o", out]
    assert run([*command, "--qos", str(files.qos)]) == 0
    assert "site.toml: 4 hosts; " in capfd.readouterr().err
    assert load_machine(out) == read_slurm_site(files, SiteNotes())
    assert run([*command, "--json"]) == 0
    record = json.loads(capfd.readouterr().out)
    assert record["schema"] == "qbatch.import-site/1"
    assert {"place", "name", "text"} == set(record["used"][0])
    assert run(["import", "site", "-o", out]) == 2
    assert "--slurm names the slurm.conf" in capfd.readouterr().err
    assert run([*command, "--assoc", files.conf]) == 2
    assert "give one of them" in capfd.readouterr().err


def test_associations_need_the_account_above(files: SlurmFiles, tmp_path: Path) -> None:
    table = tmp_path / "assoc"
    table.write_text(
        "Cluster|Account|User|ParentName|Share|Def QOS|QOS|GrpJobs\n"
        "alpha|root||||normal|normal|\nalpha|lab||root|20||high|2\nalpha|lab|u1||parent|||\n"
    )
    found = files._replace(dump=None, associations=str(table))
    site = read_slurm_site(found, SiteNotes()).site
    assert site is not None
    assert [account.name for account in site.accounts] == ["root", "lab"]
    assert site.accounts[1].users[0].shares == OF_PARENT
    table.write_text("Cluster|Account|User|Share\nalpha|root||1\n")
    with pytest.raises(InputError, match="it has no column parentname"):
        read_slurm_site(found, SiteNotes())


@pytest.mark.skipif(not NAMES, reason="../shared/recordings is absent")
@pytest.mark.parametrize("name", NAMES)
def test_the_site_of_each_recording(name: str) -> None:
    recording = RECORDED / name
    files = SlurmFiles(
        str(recording / "slurm.conf"),
        dump=str(recording / "sacctmgr.dump"),
        qos=str(recording / "text/sacctmgr_qos.psv"),
    )
    notes = SiteNotes()
    machine = read_slurm_site(files, notes)
    notes.check()
    assert machine.site is not None
    assert machine.site.accounts
    assert parse_machine("\n".join(machine_as_toml(machine)), name) == machine
