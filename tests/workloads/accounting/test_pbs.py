"""PBS records as real servers write them: lives with turns, dialects, values of every shape."""

from __future__ import annotations

from pathlib import Path

import pytest

from qbatch.model.errors import UsageError
from qbatch.workloads.accounting import Imported

from .samples import BASE, column, imported, reasons, stamp


def record(at: int, letter: str, job: str = "7.head", **fields: object) -> str:
    text = " ".join(f"{name.replace('__', '.')}={value}" for name, value in fields.items())
    return f"{stamp(BASE + at)};{letter};{job};{text}\n"


def life(**more: object) -> dict[str, object]:
    times = {"ctime": BASE, "qtime": BASE, "etime": BASE, "start": BASE + 10}
    return {
        "user": "ann",
        "group": "g",
        "queue": "q",
        **times,
        "exec_host": "n1/0*4",
        "Resource_List__ncpus": 4,
        **more,
    }


def ended(at: int = 100, job: str = "7.head", **more: object) -> str:
    return record(at, "E", job, **life(**{"end": BASE + at, "Exit_status": 0, **more}))


def procs(done: Imported) -> float:
    """Return the processors that the first job had, else those that it asked for."""
    allocated = column(done, "procs_allocated")[0]
    return allocated if allocated > 0 else column(done, "procs_requested")[0]


def rows(done: Imported, *names: str) -> list[tuple[float, ...]]:
    return list(zip(*(column(done, name) for name in names), strict=True))


@pytest.mark.parametrize(
    ("fields", "cores", "nodes"),
    [
        ({"exec_host": "n1/0+n1/1+n2/0"}, 3, 2),
        ({"exec_host": "n1/0-3,7+n2/0-1"}, 7, 2),
        ({"exec_host": "n1/0*8+n2/0*8"}, 16, 2),
        (
            {
                "exec_host": "n1/0+n2/0",
                "exec_vnode": "(n1:ncpus=8:mem=4gb+n1b:ncpus=2)+(n2:ncpus=6)",
            },
            16,
            2,
        ),
        ({"exec_vnode": "(n1[0]:ncpus=8)+(n2[0]:ngpus=1:ncpus=6)", "exec_host": ""}, 14, 2),
        ({"exec_host": "n1"}, 4, 1),
        ({"exec_host": "n1", "Resource_List__ncpus": 1}, 1, 1),
        (
            {
                "exec_host": "nid7/17",
                "exec_vnode": "(login:ncpus=1)",
                "Resource_List__mppwidth": 64,
                "Resource_List__mppnppn": 2,
            },
            64,
            32,
        ),
        ({"exec_host": "", "Resource_List__nodes": "2:ppn=4+n7:ppn=2"}, 10, 3),
        (
            {
                "exec_host": "",
                "Resource_List__select": "2:ncpus=4:mem=1gb+ncpus=3",
                "Resource_List__ncpus": 11,
            },
            11,
            3,
        ),
        ({"exec_host": "", "Resource_List__ncpus": 5}, 5, -1),
    ],
)
def test_processors_and_hosts(
    tmp_path: Path, fields: dict[str, object], cores: int, nodes: int
) -> None:
    done = imported(tmp_path, "pbs", ended(**fields))
    assert procs(done) == cores
    if nodes > 0:
        by_nodes = imported(tmp_path, "pbs", ended(**fields), unit="nodes")
        assert procs(by_nodes) == nodes


TORQUE = {"exec_host": "n2/4+n3/4", "Resource_List__ncpus": "", "Resource_List__nodes": "2:ppn=4"}


@pytest.mark.parametrize(
    ("fields", "allocated", "asked", "nodes", "said"),
    [
        (
            {**TORQUE, "total_execution_slots": 8, "unique_node_count": 2},
            8,
            8,
            2,
            "total_execution_slots has another number of processors than exec_host",
        ),
        (TORQUE, 8, 8, 2, "Resource_List has another number of processors than exec_host"),
        ({**TORQUE, "exec_host": "n2/0-3+n3/0-3", "total_execution_slots": 8}, 8, 8, 2, ""),
        ({**TORQUE, "exec_host": "n2/1+n2/0+n3/1+n3/0"}, 4, 8, 2, ""),
        (
            {"exec_host": "n1/0*2+n2/0*2", "exec_vnode": "(n1:ncpus=8)+(n2:ncpus=8)"},
            16,
            4,
            2,
            "exec_vnode has another number of processors than exec_host",
        ),
        (
            {"exec_host": "n1/0-7", "total_execution_slots": 8, "unique_node_count": 2},
            8,
            4,
            2,
            "unique_node_count has another number of hosts than exec_host",
        ),
        (
            {"exec_host": "n1/0*8", "Resource_List__nodes": "1:ppn=1", "Resource_List__ncpus": 8},
            8,
            8,
            1,
            "Resource_List names two numbers of processors",
        ),
        # ncpus=1 and nodes=1 are defaults of a server.
        (
            {"exec_host": "n1/0*8", "Resource_List__nodes": 1, "Resource_List__ncpus": 8},
            8,
            8,
            1,
            "",
        ),
        (
            {"exec_host": "n1/0*8", "Resource_List__nodes": "1:ppn=8", "Resource_List__ncpus": 1},
            8,
            8,
            1,
            "",
        ),
        (
            {"exec_host": "n1/0-7", "Resource_List__procs": 8, "Resource_List__ncpus": 1},
            8,
            8,
            1,
            "",
        ),
        (
            {
                "exec_host": "n1/0-7",
                "Resource_List__neednodes": "1:ppn=8",
                "Resource_List__ncpus": 1,
            },
            8,
            8,
            1,
            "",
        ),
    ],
)
def test_the_field_that_decides_the_size_where_fields_disagree(
    tmp_path: Path,
    fields: dict[str, object],
    allocated: int,
    asked: int,
    nodes: int,
    said: str,
) -> None:
    done = imported(tmp_path, "pbs", record(10, "S", **life(**fields)) + ended(**fields))
    assert rows(done, "procs_allocated", "procs_requested") == [(allocated, asked)]
    assert [reason.partition(":")[0] for reason in reasons(done, "adjusted")] == [said] * bool(said)
    assert (
        done.document["machine"] | {"procs": allocated, "wider_jobs": int(asked > allocated)}
        == (done.document["machine"])
    )
    by_nodes = imported(tmp_path, "pbs", ended(**fields), unit="nodes")
    assert column(by_nodes, "procs_allocated") == [nodes]


@pytest.mark.parametrize(
    ("fields", "hosts"),
    [
        ({**TORQUE, "total_execution_slots": 8}, {"n2": 4, "n3": 4}),
        (
            {"exec_host": "a/0+b/0", "exec_vnode": "(a:ncpus=8+a1:ncpus=2)+(b:ncpus=6)"},
            {"a": 10, "b": 6},
        ),
        ({"exec_host": "", "exec_vnode": "(a:ncpus=3)+(b:ncpus=1)+(a:ncpus=1)"}, {"a": 4, "b": 1}),
        ({"exec_host": "a/0+b/0+c/0", "total_execution_slots": 8}, {"a": 2, "b": 3, "c": 3}),
    ],
)
def test_the_processors_of_hosts_add_up_to_those_of_the_job(
    tmp_path: Path, fields: dict[str, object], hosts: dict[str, int]
) -> None:
    done = imported(tmp_path, "pbs", ended(**fields), keeps_hosts=True)
    assert done.seen is not None
    assert {host.name: host.cpus for host in done.seen.machine.hosts} == hosts


def test_a_requeue_that_says_nothing_has_the_processors_of_its_start(tmp_path: Path) -> None:
    fields = {**TORQUE, "total_execution_slots": 8}
    done = imported(tmp_path, "pbs", record(10, "S", **life(**fields)) + record(50, "R"))
    assert column(done, "procs_allocated") == [8]


@pytest.mark.parametrize(
    ("walltime", "seconds"),
    [
        ("00:16:40", 1000),
        ("16:40", 1000),
        ("1000", 1000),
        ("1:00:00:00", 86400),
        ("UNLIMITED", -1),
        ("9" * 30, -1),
    ],
)
def test_the_requested_time(tmp_path: Path, walltime: str, seconds: int) -> None:
    done = imported(tmp_path, "pbs", ended(Resource_List__walltime=walltime))
    assert column(done, "time_requested") == [seconds]


@pytest.mark.parametrize(
    ("fields", "used", "asked"),
    [
        ({"resources_used__mem": "8192kb", "Resource_List__mem": "16mb"}, 2048, 4096),
        ({"resources_used__mem": "8388608b", "Resource_List__pmem": "1gb"}, 2048, 2**20),
        ({"resources_used__mem": "1048576", "Resource_List__mem": "lots"}, 256, -1),
    ],
)
def test_memory_is_kilobytes_of_a_processor(
    tmp_path: Path, fields: dict[str, object], used: int, asked: int
) -> None:
    done = imported(tmp_path, "pbs", ended(**fields))
    assert rows(done, "memory_used", "memory_requested") == [(used, asked)]


@pytest.mark.parametrize(
    ("status", "limit", "expected"),
    [
        (0, "1:00:00", 1),
        (1, "1:00:00", 0),
        (271, "1:00:00", 5),
        (271, "00:01:30", 0),
        (265, "1:00:00", 5),
        (-11, "1:00:00", 0),
    ],
)
def test_how_a_job_ended(tmp_path: Path, status: int, limit: str, expected: int) -> None:
    done = imported(tmp_path, "pbs", ended(Exit_status=status, Resource_List__walltime=limit))
    assert column(done, "status") == [expected]


def test_a_requeued_job_is_a_row_for_each_attempt_that_names_the_one_before(tmp_path: Path) -> None:
    text = (
        record(0, "Q", queue="q")
        + record(10, "S", **life())
        + record(50, "R")  # Torque says nothing in it
        + record(60, "S", **life(start=BASE + 60))
        + ended(start=BASE + 60)
    )
    done = imported(tmp_path, "pbs", text)
    names = ("submit", "wait", "run", "status", "preceding_job", "think_time")
    assert rows(done, *names) == [(0, 10, 40, 0, -1, -1), (50, 10, 40, 1, 1, 0)]
    assert done.document["jobs"]["attempts_after_a_requeue"] == 1


def test_openpbs_says_all_in_the_record_of_a_requeue(tmp_path: Path) -> None:
    text = record(50, "R", **life(end=BASE + 50, Exit_status=-11, run_count=1)) + ended(
        start=BASE + 60, run_count=2
    )
    assert rows(imported(tmp_path, "pbs", text), "submit", "wait", "run") == [
        (0, 10, 40),
        (50, 10, 40),
    ]


@pytest.mark.parametrize(
    ("first", "second", "status", "run"),
    [
        ("E", "E", 1, 70),
        ("R", "R", 0, 70),
        ("R", "E", 1, 70),
        ("E", "R", 0, 70),
    ],
)
def test_the_last_of_two_records_that_close_an_attempt_holds(
    tmp_path: Path, first: str, second: str, status: int, run: int
) -> None:
    for start in (10, 15):  # the start is that of the record, or before the end of the other
        text = (
            record(10, "S", **life())
            + record(50, first, **life(end=BASE + 50, Exit_status=1))
            + record(80, second, **life(start=BASE + start, end=BASE + 80, Exit_status=0))
            + ended(300, start=BASE + 200)
        )
        done = imported(tmp_path, "pbs", text)
        found = rows(done, "wait", "run", "status")
        assert found[0] == (start, run + 10 - start, status)
        assert [each[1] for each in found[1:]] == [100]
        assert reasons(done, "adjusted") == {"an attempt closed again: its last record holds": 1}
        assert column(done, "preceding_job") == [-1, 1 if second == "R" else -1]
        assert column(done, "submit") == [0, 80 if second == "R" else 0]


def test_the_last_closing_record_keeps_what_only_the_others_say(tmp_path: Path) -> None:
    text = (
        record(10, "S", **life(Resource_List__walltime="1:00:00"))
        + record(20, "z")
        + record(30, "r")
        + record(50, "R")
        + record(80, "R", start=BASE + 10)
    )
    done = imported(tmp_path, "pbs", text)
    assert rows(done, "run", "procs_allocated", "time_requested", "user") == [(60, 4, 3600, 1)]


def both_servers() -> tuple[str, str]:
    """Return the records of two servers: same numbers, hosts, queues and times."""
    one, other = (
        record(10, "S", f"7.{server}", **life())
        + ended(job=f"7.{server}", Exit_status=status)
        + ended(200, f"8.{server}", start=BASE + 20)
        for server, status in (("east", 0), ("west", 1))
    )
    return one, other


def test_the_server_is_part_of_the_identity_of_a_job(tmp_path: Path) -> None:
    for texts in (both_servers(), ("".join(both_servers()),)):
        done = imported(tmp_path, "pbs", *texts)
        assert rows(done, "submit", "wait", "run") == [(0, 10, 90)] * 2 + [(0, 20, 180)] * 2
        assert sorted(column(done, "status")) == [0, 1, 1, 1]
        assert (reasons(done), reasons(done, "ignored"), reasons(done, "adjusted")) == ({}, {}, {})
        assert done.document["jobs"]["clusters"] == {"east": 2, "west": 2}
        assert done.document["left_out"][0] == {
            "what": "clusters",
            "jobs": 4,
            "of": 4,
            "names": "2 different: east 2, west 2",
        }
        assert "; Computer: PBS servers east, west" in done.log.lines
        assert done.document["machine"]["hosts_seen"] == 2
    hidden = imported(tmp_path, "pbs", *both_servers(), is_anonymous=True, keeps_hosts=True)
    assert not any("east" in line or "west" in line for line in hidden.log.lines)
    assert hidden.seen is not None
    assert {host.pool for host in hidden.seen.machine.hosts} == {"cluster1/q", "cluster2/q"}


def test_hosts_of_two_servers_are_no_one_host(tmp_path: Path) -> None:
    done = imported(tmp_path, "pbs", *both_servers(), keeps_hosts=True)
    assert done.seen is not None
    found = {(host.name, host.cpus, host.pool) for host in done.seen.machine.hosts}
    assert found == {("east/n1", 8, "east/q"), ("west/n1", 8, "west/q")}


def test_one_server_is_chosen(tmp_path: Path) -> None:
    both = both_servers()
    done = imported(tmp_path, "pbs", *both, clusters=("west",), keeps_hosts=True)
    alone = imported(tmp_path, "pbs", both[1], keeps_hosts=True)
    assert (done.log.lines, done.seen) == (alone.log.lines, alone.seen)
    assert all(column(done, name) == column(alone, name) for name in done.log.columns)
    assert reasons(done, "ignored") == {"records left out by --cluster": 3}
    with pytest.raises(
        UsageError, match=r"'wst': no record is of it; did you mean 'west'\?; there"
    ):
        imported(tmp_path, "pbs", *both, clusters=("east", "wst"))


def test_an_attempt_of_no_length_is_not_closed_again_by_the_next_one(tmp_path: Path) -> None:
    text = (
        record(10, "S", **life())
        + record(10, "R", **life(end=BASE + 10))
        + record(10, "S", **life())
        + ended()
    )
    assert rows(imported(tmp_path, "pbs", text), "wait", "run") == [(10, 0), (0, 90)]


def test_words_of_a_command_are_no_fields(tmp_path: Path) -> None:
    args = "-l nodes=4:ppn=8 -v start=5,x=1 -F end=7 walltime=3 job.sh"
    done = imported(tmp_path, "pbs", ended(submit_args=args, resources_used__walltime="00:01:30"))
    assert rows(done, "wait", "run", "procs_allocated") == [(10, 90, 4)]
    assert done.document["unknown_fields"] == {}


def test_deleted_while_queued_and_while_running(tmp_path: Path) -> None:
    text = (
        record(0, "Q", "1.head", queue="q")
        + record(30, "D", "1.head", requestor="ann@head")
        + record(0, "Q", "2.head", queue="q")
        + record(10, "S", "2.head", **life())
        + record(30, "D", "2.head", requestor="ann@head")
        + ended(31, "2.head", Exit_status=143)
        + record(40, "D", "3.head", requestor="root")
        + record(5, "Q", "4.head", queue="q")
        + record(50, "A", "4.head")
    )
    done = imported(tmp_path, "pbs", text)
    assert rows(done, "wait", "run", "procs_allocated", "status") == [
        (30, -1, -1, 5),
        (10, 21, 4, 5),
        (45, -1, -1, 5),
    ]
    assert reasons(done) == {"deleted, but its submission is not in the records": 1}


def test_what_is_not_over_is_counted(tmp_path: Path) -> None:
    text = (
        ended()
        + record(0, "Q", "8.head", queue="q")
        + record(0, "Q", "9.head", queue="q")
        + record(9, "S", "9.head", **life())
    )
    assert reasons(imported(tmp_path, "pbs", text)) == {
        "queued, but its outcome is not in the records": 1,
        "started, but its end is not in the records": 1,
    }


def test_suspended_time_is_not_run_time(tmp_path: Path) -> None:
    text = record(10, "S", **life()) + record(20, "z") + record(50, "r") + ended()
    assert column(imported(tmp_path, "pbs", text), "run") == [60]


@pytest.mark.parametrize(
    ("walltime", "run", "is_suspended"),
    [
        ("00:01:00", 60, True),
        ("00:01:19", 79, True),
        ("00:01:20", 90, False),
        ("00:01:31", 90, False),
        ("00:00:00", 90, False),
    ],
)
def test_a_walltime_that_falls_short_of_the_time_is_the_run_time(
    tmp_path: Path, walltime: str, run: int, is_suspended: bool
) -> None:
    done = imported(tmp_path, "pbs", ended(resources_used__walltime=walltime))
    assert rows(done, "wait", "run") == [(10, run)]
    assert ("; Preemption: TS" in done.log.lines, "; Preemption: No" in done.log.lines) == (
        is_suspended,
        not is_suspended,
    )
    noted = (
        {"suspended, by the walltime, which is taken as the run time": 1} if is_suspended else {}
    )
    assert reasons(done, "adjusted") == noted


def test_suspensions_that_records_hold_are_not_taken_off_twice(tmp_path: Path) -> None:
    text = (
        record(10, "S", **life())
        + record(20, "z")
        + record(50, "r")
        + ended(resources_used__walltime="00:01:00")
    )
    done = imported(tmp_path, "pbs", text)
    assert (column(done, "run"), reasons(done, "adjusted")) == ([60], {})
    assert "; Preemption: TS" in done.log.lines


def test_a_job_that_was_suspended_makes_the_machine_no_larger(tmp_path: Path) -> None:
    other = life(
        ctime=BASE + 20,
        qtime=BASE + 20,
        etime=BASE + 20,
        start=BASE + 20,
        end=BASE + 50,
        Exit_status=0,
    )
    text = ended(resources_used__walltime="00:01:00") + record(50, "E", "8.head", **other)
    assert imported(tmp_path, "pbs", text).log.procs == 4
    assert imported(tmp_path, "pbs", ended() + record(50, "E", "8.head", **other)).log.procs == 8


def test_a_trial_that_was_thrown_away_is_no_job(tmp_path: Path) -> None:
    trial = life(end=BASE + 50, Exit_status=0, run_count=1, requeue_reason="quantum_over")
    text = (
        record(0, "Q", queue="q")
        + record(10, "S", **life())
        + record(50, "R", **trial)
        + record(60, "S", **life(start=BASE + 60))
        + ended(start=BASE + 60)
    )
    done = imported(tmp_path, "pbs", text)
    names = ("submit", "wait", "run", "status", "preceding_job", "think_time")
    assert rows(done, *names) == [(0, 60, 40, 1, -1, -1)]
    assert reasons(done, "ignored") == {"trial runs that were discarded": 1}
    assert done.document["unknown_fields"] == {}


def test_jobs_of_arrays_are_jobs_and_arrays_are_none(tmp_path: Path) -> None:
    text = (
        record(0, "Q", "12[].head", queue="q")
        + "".join(ended(100, f"12[{n}].head") for n in (10, 2))
        + ended(100, "12-3.head")
    )
    done = imported(tmp_path, "pbs", text + record(100, "E", "12[].head", **life(end=BASE + 100)))
    assert len(column(done, "job")) == 3
    assert reasons(done, "ignored") == {
        "records of arrays as a whole; their jobs have separate records": 2
    }


def test_an_identifier_that_is_used_again_is_another_job(tmp_path: Path) -> None:
    again = {
        "ctime": BASE + 500,
        "qtime": BASE + 500,
        "etime": BASE + 500,
        "start": BASE + 510,
        "end": BASE + 600,
    }
    done = imported(tmp_path, "pbs", ended() + record(600, "E", **life(Exit_status=0, **again)))
    assert rows(done, "submit", "wait", "preceding_job") == [(0, 10, -1), (500, 10, -1)]


def test_the_same_record_in_two_files_counts_once(tmp_path: Path) -> None:
    done = imported(tmp_path, "pbs", ended(), ended())
    assert len(column(done, "job")) == 1
    assert reasons(done, "ignored") == {"the same record again": 1}


def test_values_with_blanks_and_quotes(tmp_path: Path) -> None:
    text = ended(
        jobname='"my job=x 5"', account='"a b"', group="", depend="afterok:1 2 3", user="ann"
    )
    done = imported(
        tmp_path, "pbs", text, text.replace("7.head", "8.head").replace('"my job=x 5"', "my job")
    )
    assert done.document["jobs"]["names"] == {"user": 1, "group": 1, "executable": 2, "queue": 1}
    assert "; Note: group 1 is a b" in done.log.lines
    assert done.document["unknown_fields"] == {}


def test_unknown_fields_and_record_types_are_counted(tmp_path: Path) -> None:
    done = imported(
        tmp_path,
        "pbs",
        ended(shoe_size=46) + record(0, "L", "license", x=1) + record(0, "B", "R5.head", x=1),
    )
    assert done.document["unknown_fields"] == {"shoe_size": 1}
    assert sum(reasons(done, "ignored").values()) == 2
    assert reasons(done) == {}


def test_a_job_may_be_eligible_later_than_submitted(tmp_path: Path) -> None:
    text = ended(etime=BASE + 8)
    done = imported(tmp_path, "pbs", text)
    assert (rows(done, "wait"), done.document["jobs"]["eligible_later_than_submitted"]) == (
        [(10,)],
        1,
    )
    assert rows(imported(tmp_path, "pbs", text, is_eligible_submit=True), "wait") == [(2,)]


def test_filters(tmp_path: Path) -> None:
    text = ended() + ended(
        200, "8.head", user="bob", queue="other", ctime=BASE + 50, start=BASE + 60
    )
    for options, kept in (
        ({"users": ("bob",)}, [2]),
        ({"queues": ("q",)}, [1]),
        ({"since": str(BASE + 1)}, [2]),
        ({"before": str(BASE + 50)}, [1]),
        ({"since": "2023-11-14T22:13:20", "before": "2023-11-14T22:14:10"}, [1]),
    ):
        done = imported(tmp_path, "pbs", text, **options)
        assert [1 if run == 90 else 2 for run in column(done, "run")] == kept, options


def test_deletions_in_the_hour_that_comes_twice_follow_the_order_of_the_file(
    tmp_path: Path,
) -> None:
    # 2023-10-29, Berlin: 02:59:59 is followed by 02:00:00.
    lines = [
        "10/29/2023 02:10:00;Q;1.head;queue=q",
        "10/29/2023 02:50:00;D;1.head;requestor=a",
        "10/29/2023 02:40:00;Q;2.head;queue=q",
        "10/29/2023 02:45:00;D;2.head;requestor=a",
    ]
    text = "".join(f"{line}\n" for line in lines) + ended()
    done = imported(tmp_path, "pbs", text, timezone="Europe/Berlin")
    assert rows(done, "submit", "wait")[:2] == [(0, 40 * 60), (90 * 60, 5 * 60)]
    assert done.document["time"]["folds"] == 4
