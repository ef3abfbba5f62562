"""What an import leaves out of a log: counted by name, written into the header, read back."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbatch.model.machine_file import machine_as_toml, parse_machine
from qbatch.workloads import parse_header
from qbatch.workloads.accounting.sacct import COMMAND
from qbatch.workloads.left_out import KINDS, LeftOut, count_left_out, left_out_of
from qbatch.workloads.left_out_in_file import left_out_in
from tests.workloads.accounting.samples import (
    BASE,
    SACCT_HEADER,
    Sample,
    imported,
    pbs_pro,
    slurm,
    stamp,
    torque,
)

JOBS = [
    Sample(
        n,
        BASE + 60 * n,
        30,
        600,
        1 + n % 2,
        4,
        3600,
        True,
        f"u{n}",
        ("batch", "gpu", "debug")[n % 3],
    )
    for n in range(1, 11)
]
EXTRA = "ReqTRES|AllocTRES|Constraints|Licenses|QOS|Priority|Reservation|SubmitLine"


def absent(done) -> dict[str, tuple[int | None, str]]:
    return {each["what"]: (each["jobs"], each["names"]) for each in done.document["left_out"]}


def sacct(*extra: str) -> str:
    """Return ten jobs of Slurm, each with the columns of EXTRA."""
    rows = []
    for job, fields in zip(JOBS, extra, strict=True):
        main, step = slurm(job)
        rows += [f"{main}|{fields}", f"{step}|||||||||"[: len(step) + 8]]
    return "\n".join([f"{SACCT_HEADER}|{EXTRA}", *rows]) + "\n"


def test_slurm_is_counted_by_name(tmp_path: Path) -> None:
    plain = (
        "cpu=4,mem=4G,node=1,billing=4|billing=4,cpu=4,energy=77,mem=4G,node=1|(null)|(null)|"
        "normal|100||sbatch job.sh"
    )
    rows = [plain] * 10
    rows[0] = (
        "cpu=4,gres/gpu=2,node=1|cpu=4,gres/gpu:a100=2,gres/gpu=2|skylake&ib|matlab:2,ansys@flex:1|high|7|maint|"
        "sbatch --exclusive j"
    )
    rows[1] = (
        "cpu=4,gres/gpu=1,node=1|cpu=4,gres/gpu=1,gres/nvme=1,license/abaqus=5|[ib]||normal|100||"
        "sbatch --exclusive=user j"
    )
    done = imported(tmp_path, "slurm", sacct(*rows))
    assert absent(done) == {
        "GPUs": (2, "2 different: gpu 1, gpu:a100 1"),
        "other resources": (1, "gres/nvme 1"),
        "features": (2, "2 different: ib 2, skylake 1"),
        "licences": (2, "3 different: abaqus 1, ansys@flex 1, matlab 1"),
        "exclusive allocation": (2, ""),
        "node memory": (10, ""),
        "partitions": (10, "3 different: gpu 4, batch 3, debug 3"),
        "QOS": (10, "2 different: normal 9, high 1"),
        "priority": (10, "2 different"),
        "reservations": (1, "maint 1"),
    }
    assert done.document["unknown_fields"] == {}
    assert {each["of"] for each in done.document["left_out"]} == {10}


def test_a_column_that_is_not_there_is_not_nothing(tmp_path: Path) -> None:
    rows = "\n".join([SACCT_HEADER, *(line for job in JOBS for line in slurm(job))]) + "\n"
    silent = {
        what
        for what, (jobs, _) in absent(imported(tmp_path, "slurm", rows)).items()
        if jobs is None
    }
    assert silent == set(KINDS) - {"node memory", "partitions"}
    whole = absent(imported(tmp_path, "slurm", sacct(*["cpu=4|cpu=4|||normal|1||sbatch j"] * 10)))
    # One QOS and one priority distinguish no jobs.
    assert set(whole) == {"node memory", "partitions"}
    for column in EXTRA.split("|"):
        assert column in COMMAND


@pytest.mark.parametrize(
    ("asked", "what", "names"),
    [
        ("Resource_List.ngpus=2", "GPUs", "ngpus 1"),
        ("Resource_List.select=1:ncpus=4:ngpus=1:model=bro", "GPUs", "ngpus 1"),
        ("Resource_List.nodes=1:ppn=4:gpus=1", "GPUs", "gpus 1"),
        ("Resource_List.select=1:ncpus=4:ngpus=1:model=bro", "features", "model=bro 1"),
        ("Resource_List.nodes=1:ppn=4:bigmem", "features", "bigmem 1"),
        ("Resource_List.place=scatter:excl", "exclusive allocation", ""),
        ("Resource_List.naccesspolicy=SINGLEJOB", "exclusive allocation", ""),
        ("Resource_List.mem=4gb", "node memory", ""),
        ("Resource_List.select=1:ncpus=4:mem=8gb", "node memory", ""),
        ("Resource_List.scratch=100gb", "other resources", "scratch 1"),
        ("Resource_List.matlab_lic=1", "licences", "matlab_lic 1"),
        ("Resource_List.software=ansys", "licences", "ansys 1"),
        ("resvID=R12.head resvname=maint", "reservations", "maint 1"),
    ],
)
def test_what_pbs_lists_is_counted_by_name(
    tmp_path: Path, asked: str, what: str, names: str
) -> None:
    [record] = pbs_pro(JOBS[0])
    name = asked.partition("=")[0]
    kept = " ".join(word for word in record.split(" ") if not word.startswith(f"{name}="))
    done = imported(
        tmp_path, "pbs", f"{kept} {asked}\n", "".join(pbs_pro(job)[0] + "\n" for job in JOBS[1:])
    )
    assert absent(done)[what] == (1, names)
    assert absent(done)["partitions"][0] == 10
    assert {each for each, (jobs, _) in absent(done).items() if jobs is None} == {"QOS", "priority"}


def test_a_plain_job_of_pbs_leaves_nothing_out_but_what_no_record_holds(tmp_path: Path) -> None:
    for text in (torque, pbs_pro):
        done = imported(tmp_path, "pbs", "\n".join(line for line in text(JOBS[0])) + "\n")
        assert absent(done) == {"QOS": (None, ""), "priority": (None, "")}


def test_the_header_holds_what_the_record_says(tmp_path: Path) -> None:
    rows = ["cpu=4,gres/gpu=1|cpu=4|a(b), c|x (y):2|a|1||s"] + ["cpu=4|cpu=4|||b|2||s"] * 9
    done = imported(tmp_path, "slurm", sacct(*rows))
    left_out = left_out_of(parse_header(done.log.lines))
    assert msgspec.to_builtins([*left_out]) == done.document["left_out"]
    assert [each.what for each in left_out] == [kind for kind in KINDS if kind in absent(done)]


def test_an_attempt_that_was_requeued_is_counted_by_the_record_of_its_start(tmp_path: Path) -> None:
    """Torque writes nothing into the record that puts a job back."""
    queued, started, ended = (
        line.replace(".nodes=2:ppn=4", ".nodes=2:ppn=4:gpus=1") for line in torque(JOBS[0])
    )
    back = f"{stamp(JOBS[0].start + 60)};R;{JOBS[0].number}.head;"
    again = started.replace(f"start={JOBS[0].start}", f"start={JOBS[0].start + 100}").replace(
        stamp(JOBS[0].start), stamp(JOBS[0].start + 100)
    )
    over = ended.replace(f"start={JOBS[0].start}", f"start={JOBS[0].start + 100}")
    done = imported(tmp_path, "pbs", "\n".join([queued, started, back, again, over]) + "\n")
    assert done.document["jobs"]["ran"] == 2
    assert absent(done)["GPUs"] == (2, "gpus 2")


def test_an_anonymous_log_names_no_qos_no_reservation_no_feature_and_no_partition(
    tmp_path: Path,
) -> None:
    rows = [f"cpu=4,gres/gpu=1|cpu=4|node7||alice{n % 2}|1|bob|s" for n in range(10)]
    done = imported(
        tmp_path,
        "slurm",
        sacct(*rows),
        is_anonymous=True,
        has_anonymous_queues=True,
        keeps_hosts=True,
    )
    header = "\n".join(done.log.lines)
    assert not [name for name in ("alice", "bob", "debug", "node7") if name in header]
    assert absent(done)["QOS"] == (10, "2 different")
    assert absent(done)["GPUs"] == (10, "gpu 10")
    assert not [line for line in done.seen.remarks if "batch" in line]


names = st.text(st.characters(blacklist_categories=["Cs"]), max_size=50)


kinds = st.sampled_from(KINDS)
asked = st.lists(st.tuples(kinds, names), max_size=4).map(tuple)


@given(st.lists(asked, min_size=1, max_size=8), st.sets(kinds))
def test_notes_are_read_back_as_they_were_written(asks, spoken) -> None:
    found = count_left_out(asks, spoken, len(asks))
    assert left_out_of(parse_header([f"; Note: {each.note}" for each in found])) == found


def test_other_notes_are_none_of_these() -> None:
    lines = [
        "; Note: left out: nothing",
        "; Note: left out: GPUs: many jobs",
        "; Note: left out: GPUs: 1 of 2 jobs (x) or so",
    ]
    assert left_out_of(parse_header(lines)) == ()
    assert LeftOut("GPUs", 3, 4).words == "GPUs: 3 of 4 jobs"


def test_the_notes_of_a_file_are_read_without_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    path.write_text(
        "; MaxProcs: 8\n; Note: left out: GPUs: 1 of 2 jobs\n1 0 -1 5 1\n; Note: left out: QOS: 1 "
        "of 2 jobs\n"
    )
    assert left_out_in(str(path)) == (LeftOut("GPUs", 1, 2),)
    path.write_text("; Note: left out: QOS: not in the records")
    assert left_out_in(str(path)) == (LeftOut("QOS"),)


def test_the_machine_file_says_of_each_partition_what_the_records_show(tmp_path: Path) -> None:
    rows = "\n".join([SACCT_HEADER, *(line for job in JOBS for line in slurm(job))]) + "\n"
    seen = imported(tmp_path, "slurm", rows, keeps_hosts=True).seen
    text = "\n".join([*(f"# {line}" for line in seen.remarks), *machine_as_toml(seen.machine)])
    hosts = parse_machine(text, "machine.toml").hosts
    # Most jobs of each were of gpu.
    assert [(host.name, host.pool) for host in hosts] == [("n0", "gpu"), ("n1", "gpu")]
    at_once = max(
        sum(4 for job in JOBS if job.start <= at < job.end) for at in {job.start for job in JOBS}
    )
    assert hosts[0].cpus == at_once
    [gpu] = [line for line in seen.remarks if line.startswith("Partition gpu: 2 nodes, ")]
    assert f"{hosts[0].cpus + hosts[1].cpus} processors" in gpu
    # Each of the samples asks for 1 GB a processor.
    assert f"up to {1024 * at_once:,} MB on a node" in gpu
    assert "some of its nodes are also in debug, batch" in gpu
