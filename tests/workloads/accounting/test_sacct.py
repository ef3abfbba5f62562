"""Lines of sacct as the manual shows them: states, steps, arrays, heterogeneous jobs, memory, times
of every shape."""

from __future__ import annotations

from pathlib import Path

import pytest

from qbatch.model.errors import InputError
from qbatch.workloads.accounting.sacct import host_names
from qbatch.workloads.accounting.sacct_rows import COMMAND

from .samples import SACCT_HEADER, column, imported, reasons

COLUMNS = SACCT_HEADER.split("|")
JOB = {
    "JobID": "100",
    "User": "ann",
    "Group": "g",
    "Account": "lab",
    "JobName": "wrap",
    "Partition": "compute",
    "State": "COMPLETED",
    "Submit": "2024-05-01T10:00:00",
    "Eligible": "2024-05-01T10:00:00",
    "Start": "2024-05-01T10:00:10",
    "End": "2024-05-01T10:01:40",
    "Elapsed": "00:01:30",
    "Suspended": "00:00:00",
    "Timelimit": "01:00:00",
    "AllocCPUS": "4",
    "ReqCPUS": "4",
    "NNodes": "1",
    "NodeList": "n1",
    "ReqMem": "4G",
}


def line(columns: list[str] = COLUMNS, **values: str) -> str:
    return "|".join((JOB | values).get(name, "") for name in columns) + "\n"


def text(*lines: str, columns: list[str] = COLUMNS) -> str:
    return "|".join(columns) + "\n" + "".join(lines)


NEVER = {"Start": "Unknown", "NodeList": "None assigned", "AllocCPUS": "0", "Elapsed": "00:00:00"}


@pytest.mark.parametrize(
    ("state", "more", "status"),
    [
        ("COMPLETED", {}, 1),
        ("FAILED", {}, 0),
        ("TIMEOUT", {}, 0),
        ("OUT_OF_MEMORY", {}, 0),
        ("NODE_FAIL", {}, 0),
        ("CANCELLED by 1000", {}, 5),
        ("CANCELLED+", {}, 5),
        ("PREEMPTED", {}, 0),
        ("REQUEUED", {}, 0),
        ("DEADLINE", {}, 5),
        ("CANCELLED by 0", NEVER, 5),
        ("CANCELLED", {**NEVER, "Start": "None"}, 5),
        ("CANCELLED", {**NEVER, "Start": "2024-05-01T10:01:40"}, 5),
    ],
)
def test_states(tmp_path: Path, state: str, more: dict[str, str], status: int) -> None:
    other = line(JobID="1")
    done = imported(tmp_path, "slurm", text(other, line(State=state, **more)))
    assert reasons(done) == {}
    assert column(done, "status")[-1] == status
    assert column(done, "run")[-1] == (-1 if more else 90)
    assert column(done, "wait")[-1] == (100 if more else 10)


@pytest.mark.parametrize("state", ["RUNNING", "PENDING", "SUSPENDED", "COMPLETING", "RESIZED?", ""])
def test_what_is_not_over_or_not_known_is_counted(tmp_path: Path, state: str) -> None:
    done = imported(tmp_path, "slurm", text(line(), line(JobID="2", State=state, End="Unknown")))
    assert len(column(done, "job")) == 1
    assert sum(reasons(done).values()) == 1


@pytest.mark.parametrize(
    ("limit", "seconds"),
    [
        ("1-00:00:00", 86400),
        ("10:00", 600),
        ("01:02:03", 3723),
        ("UNLIMITED", -1),
        ("Partition_Limit", -1),
        ("INVALID", -1),
    ],
)
def test_time_limits(tmp_path: Path, limit: str, seconds: int) -> None:
    assert column(imported(tmp_path, "slurm", text(line(Timelimit=limit))), "time_requested") == [
        seconds
    ]


@pytest.mark.parametrize(
    ("asked", "each"),
    [
        ("4Gc", 4 << 20),
        ("4Gn", 2 << 20),
        ("16G", 4 << 20),
        ("16384", 4 << 20),
        ("1.5Gc", 3 << 19),
        ("0n", -1),
        ("?", -1),
    ],
)
def test_requested_memory(tmp_path: Path, asked: str, each: int) -> None:
    done = imported(tmp_path, "slurm", text(line(ReqMem=asked, NNodes="2")))
    assert column(done, "memory_requested") == [each]


@pytest.mark.parametrize(
    ("asked", "traced", "each", "flagged"),
    [
        ("2147486448Mn", "billing=4,cpu=4,mem=11200M,node=1", 2800 << 10, 1),
        ("2147486448Mn", "", 2800 << 10, 1),
        ("2147486448", "cpu=4,mem=2147486448M", 2800 << 10, 2),
        ("2097154.73G", "", 2797.4 * 1024, 1),
        ("9223372036854778608M", "", 2800 << 10, 1),
        ("4294967294Mn", "", -1, 1),
        ("4294967294Mn", "mem=4G", 1 << 20, 1),
        ("0n", "cpu=4,mem=16G,node=1", 4 << 20, 0),
        ("16Gn", "cpu=4,mem=1T,node=1", 1 << 28, 0),
        ("1023Tn", "", 1023 << 28, 0),
    ],
)
def test_the_flag_bit_of_requested_memory_is_no_size(
    tmp_path: Path, asked: str, traced: str, each: float, flagged: int
) -> None:
    columns = [*COLUMNS, "ReqTRES"]
    job = line(columns, ReqMem=asked, ReqTRES=traced)
    done = imported(tmp_path, "slurm", text(job, columns=columns))
    assert column(done, "memory_requested")[0] == pytest.approx(each, rel=1e-3)
    assert sum(reasons(done, "adjusted").values()) == flagged


@pytest.mark.parametrize(
    ("values", "allocated", "asked", "nodes", "said"),
    [
        ({"AllocTRES": "billing=8,cpu=8,node=2", "NNodes": "2"}, 8, 4, 2, ["AllocCPUS"]),
        ({"AllocTRES": "cpu=4,node=1", "ReqTRES": "cpu=2,node=1"}, 4, 2, 1, ["ReqCPUS"]),
        ({"AllocTRES": "cpu=4,node=2", "AllocNodes": "1"}, 4, 4, 2, ["AllocNodes", "NNodes"]),
        ({"AllocTRES": "", "ReqTRES": "billing=4,gres/gpu=9"}, 4, 4, 1, []),
        ({"AllocCPUS": "0", "AllocTRES": "cpu=6,node=1"}, 6, 4, 1, []),
    ],
)
def test_trackable_resources_decide_the_size_where_counts_disagree(
    tmp_path: Path,
    values: dict[str, str],
    allocated: int,
    asked: int,
    nodes: int,
    said: list[str],
) -> None:
    columns = [*COLUMNS, "AllocTRES", "ReqTRES", "AllocNodes"]
    content = text(line(columns, **values), columns=columns)
    done = imported(tmp_path, "slurm", content)
    assert (column(done, "procs_allocated"), column(done, "procs_requested")) == (
        [allocated],
        [asked],
    )
    assert [reason.split()[0] for reason in reasons(done, "adjusted")] == said
    by_nodes = imported(tmp_path, "slurm", content, unit="nodes")
    assert column(by_nodes, "procs_allocated") == [nodes]


def test_a_job_that_failed_without_nodes_never_ran(tmp_path: Path) -> None:
    columns = [*COLUMNS, "AllocNodes"]
    at = "2024-05-01T10:00:00"
    times = {"Start": at, "End": at, "Elapsed": "00:00:00", "State": "FAILED"}
    never = line(columns, JobID="2", NodeList="None assigned", AllocNodes="0", **times)
    short = line(columns, JobID="3", NodeList="n1", AllocNodes="1", **times)
    done = imported(tmp_path, "slurm", text(line(columns), never, short, columns=columns))
    assert (column(done, "run"), column(done, "procs_allocated")) == ([-1, 0, 90], [-1, 4, 4])


def test_steps_hold_the_memory_of_their_job(tmp_path: Path) -> None:
    steps = [
        line(JobID="100_4.batch", MaxRSS="4000K", NTasks="1"),
        line(JobID="100_4.extern", MaxRSS="12K", NTasks="1"),
        line(JobID="100_4.0", MaxRSS="4M", NTasks="2"),
        line(JobID="100_5.0", MaxRSS="4T", NTasks="2"),
    ]
    done = imported(tmp_path, "slurm", text(line(JobID="100_4"), *steps, line(JobID="100_5")))
    assert column(done, "memory_used") == [2048, -1]


def test_allocation_from_tres_where_there_are_no_counts(tmp_path: Path) -> None:
    columns = [
        "JobIDRaw",
        "Submit",
        "Start",
        "End",
        "State",
        "AllocTRES",
        "ReqTRES",
        "TimelimitRaw",
    ]
    tres = {
        "JobIDRaw": "5",
        "AllocTRES": "billing=8,cpu=8,gres/gpu=1,mem=16G,node=2",
        "ReqTRES": "cpu=6,mem=12000M,node=1",
    }
    done = imported(
        tmp_path, "slurm", text(line(columns, **tres, TimelimitRaw="5"), columns=columns)
    )
    names = ("procs_allocated", "procs_requested", "memory_requested", "time_requested")
    assert [column(done, name)[0] for name in names] == [8, 6, 12000 * 1024 // 8, 300]


def test_a_requeued_job_is_a_row_for_each_record(tmp_path: Path) -> None:
    again = {
        "Submit": "2024-05-01T10:01:45",
        "Start": "2024-05-01T10:02:00",
        "End": "2024-05-01T10:03:00",
        "Elapsed": "00:01:00",
    }
    for state in ("REQUEUED", "NODE_FAIL", "PREEMPTED"):
        done = imported(tmp_path, "slurm", text(line(State=state), line(**again)))
        assert (
            column(done, "submit"),
            column(done, "preceding_job"),
            column(done, "think_time"),
        ) == (
            [0, 105],
            [-1, 1],
            [-1, 5],
        )
    assert column(imported(tmp_path, "slurm", text(line(), line(**again))), "preceding_job") == [
        -1,
        -1,
    ]


def test_the_last_of_two_rows_of_one_attempt_holds(tmp_path: Path) -> None:
    later = {"End": "2024-05-01T10:02:10", "Elapsed": "00:02:00"}
    done = imported(tmp_path, "slurm", text(line(State="NODE_FAIL")), text(line(**later)))
    assert (column(done, "run"), column(done, "status")) == ([120], [1])
    assert reasons(done, "adjusted") == {"an attempt closed again: its last record holds": 1}


@pytest.mark.parametrize("state", ["RUNNING", "PENDING"])
def test_a_job_that_a_later_row_shows_to_be_over_is_not_counted_as_unfinished(
    tmp_path: Path, state: str
) -> None:
    early = line(State=state, Start="Unknown", End="Unknown")
    for over, run in (({}, [90]), ({"State": "CANCELLED", **NEVER}, [90, -1])):
        done = imported(tmp_path, "slurm", text(early), text(line(**over)), text(line(JobID="7")))
        assert (sorted(column(done, "run"), reverse=True)[: len(run)], reasons(done)) == (run, {})
    again = line(State=state, Submit="2024-05-01T11:00:00", Start="Unknown", End="Unknown")
    done = imported(tmp_path, "slurm", text(line(State="PREEMPTED"), again))
    assert (column(done, "run"), sum(reasons(done).values())) == ([90], 1)


def test_the_cluster_is_part_of_the_identity_of_a_job(tmp_path: Path) -> None:
    columns = [*COLUMNS, "Cluster"]
    lines = []
    for cluster in ("east", "west"):
        lines += [
            line(columns, JobID="7+0", Cluster=cluster),
            line(columns, JobID="7+1", Cluster=cluster),
            line(columns, JobID="8", Cluster=cluster),
            line(columns, JobID="8.batch", Cluster=cluster, MaxRSS="4M", NTasks="1"),
        ]
    for content in (lines, [*lines[::2], *lines[1::2]]):
        done = imported(tmp_path, "slurm", text(*content, columns=columns))
        assert column(done, "procs_allocated") == [8, 8, 4, 4]
        assert done.document["jobs"]["clusters"] == {"east": 2, "west": 2}
        assert (reasons(done), reasons(done, "ignored")) == ({}, {})
    done = imported(tmp_path, "slurm", text(*lines, columns=columns), clusters=("east",))
    assert column(done, "procs_allocated") == [8, 4]
    assert column(done, "memory_used") == [-1, 1024]
    assert "; Computer: Slurm cluster east" in done.log.lines


def test_a_revoked_sibling_is_no_job(tmp_path: Path) -> None:
    columns = [*COLUMNS, "Cluster"]
    ran = line(columns, Cluster="east")
    gone = line(columns, Cluster="west", State="REVOKED", **NEVER)
    done = imported(tmp_path, "slurm", text(ran, gone, columns=columns))
    assert (column(done, "run"), column(done, "status")) == ([90], [1])
    assert reasons(done, "ignored") == {
        "revoked: another cluster of the federation took the job": 1
    }


def test_components_of_a_heterogeneous_job_are_one_job(tmp_path: Path) -> None:
    done = imported(
        tmp_path,
        "slurm",
        text(line(JobID="7+0"), line(JobID="7+1", AllocCPUS="2", ReqCPUS="2"), line(JobID="8")),
    )
    assert column(done, "procs_allocated") == [6, 4]


def test_suspended_time_is_not_run_time(tmp_path: Path) -> None:
    done = imported(tmp_path, "slurm", text(line(Suspended="00:00:30", Elapsed="00:01:00")))
    assert (column(done, "run"), reasons(done, "adjusted")) == ([60], {})


def test_times_with_a_zone_and_in_seconds(tmp_path: Path) -> None:
    by_zone = line(
        JobID="1",
        Submit="2024-05-01T12:00:00+0200",
        Start="2024-05-01T10:00:10Z",
        End="2024-05-01T12:01:40+02:00",
    )
    by_seconds = line(
        JobID="2", Submit="1714557600", Start="1714557610", End="1714557700", Eligible="1714557600"
    )
    done = imported(tmp_path, "slurm", text(by_zone, by_seconds, line(JobID="3")), timezone="UTC")
    assert (column(done, "submit"), column(done, "wait"), column(done, "run")) == (
        [0] * 3,
        [10] * 3,
        [90] * 3,
    )


def test_a_fold_is_decided_by_the_elapsed_time(tmp_path: Path) -> None:
    times = {
        "Submit": "2024-10-27T01:00:00",
        "Eligible": "2024-10-27T01:00:00",
        "Start": "2024-10-27T01:30:00",
    }
    once = line(JobID="1", **times, End="2024-10-27T02:30:00", Elapsed="01:00:00")
    twice = line(JobID="2", **times, End="2024-10-27T02:30:00", Elapsed="02:00:00")
    done = imported(tmp_path, "slurm", text(once, twice), timezone="Europe/Berlin")
    assert (column(done, "run"), done.document["time"]["folds"]) == ([3600, 7200], 2)


def test_a_gap_is_counted_and_elapsed_time_holds(tmp_path: Path) -> None:
    times = {
        "Submit": "2024-03-31T01:00:00",
        "Eligible": "",
        "Start": "2024-03-31T01:30:00",
        "End": "2024-03-31T03:30:00",
    }
    done = imported(
        tmp_path, "slurm", text(line(**times, Elapsed="01:00:00")), timezone="Europe/Berlin"
    )
    assert (column(done, "run"), done.document["time"]["gaps"]) == ([3600], 0)
    inside = times | {"End": "2024-03-31T02:30:00"}
    done = imported(
        tmp_path, "slurm", text(line(**inside, Elapsed="01:00:00")), timezone="Europe/Berlin"
    )
    assert (column(done, "run"), done.document["time"]["gaps"]) == ([3600], 1)


def test_parsable_with_a_bar_at_the_end_and_bars_in_names(tmp_path: Path) -> None:
    lines = [each.replace("\n", "|\n") for each in (line(), line(JobID="2", JobName="a|b||c"))]
    done = imported(tmp_path, "slurm", SACCT_HEADER + "|\n" + "".join(lines))
    assert done.document["jobs"]["names"]["executable"] == 2
    assert (reasons(done), sum(reasons(done, "adjusted").values())) == ({}, 1)


def test_bars_in_a_free_text_at_the_end(tmp_path: Path) -> None:
    columns = [*COLUMNS, "SubmitLine"]
    lines = [
        line(columns, JobID=str(n), SubmitLine=said)
        for n, said in ((1, "sbatch a"), (2, "sbatch --wrap=a|b|c"))
    ]
    done = imported(
        tmp_path, "slurm", text(*lines, line(columns, JobID="3", JobName="x|y"), columns=columns)
    )
    assert (column(done, "run"), reasons(done)) == ([90, 90, 90], {})
    assert done.document["jobs"]["names"]["executable"] == 2
    assert reasons(done, "adjusted") == {
        "bars inside a job's name or another free text: part of it": 2
    }


def test_files_with_headers_of_their_own_and_a_header_in_the_middle(tmp_path: Path) -> None:
    other = ["State", "JobID", "End", "Start", "Submit", "NCPUS", "Comment"]
    done = imported(
        tmp_path,
        "slurm",
        text(line()) + text(line(other, JobID="2", NCPUS="9"), columns=other),
        text(line(JobID="3")),
    )
    assert column(done, "procs_allocated") == [9, 4, 4]
    assert done.document["unknown_fields"] == {"comment": 1}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (line(), "is not a header line of sacct"),
        ("JobID|User|State\n", "no column submit, start, end"),
        (
            SACCT_HEADER + "\n",
            "no job that ran can be made of these records: they contain no record",
        ),
        (SACCT_HEADER + "\nx|y\n", "1 x not as many fields as the header has columns (first:"),
    ],
)
def test_what_is_no_output_of_sacct_is_refused(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(InputError) as refused:
        imported(tmp_path, "slurm", content)
    assert message in str(refused.value)
    assert str(tmp_path) in str(refused.value)


def test_the_command_that_is_proposed_prints_every_column_that_is_needed() -> None:
    assert {"JobID", "State", "Submit", "Start", "End", "AllocCPUS", "Timelimit"} <= set(
        COMMAND.partition("format=")[2].split(",")
    )


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ("n1", ["n1"]),
        ("n[01-03,7],login1", ["n01", "n02", "n03", "n7", "login1"]),
        ("a[1-2]b[3,5]", ["a1b3", "a1b5", "a2b3", "a2b5"]),
        ("n[x]", ["nx"]),
        ("", []),
        ("n[", ["n"]),
    ],
)
def test_host_lists(given: str, names: list[str]) -> None:
    assert sorted(host_names(given)) == sorted(names)


def test_a_huge_host_list_is_bounded() -> None:
    assert len(host_names("n[0-999999999]")) <= 100_000
    assert len(host_names("n[0-9999][0-9999][0-9999]")) <= 100_000
