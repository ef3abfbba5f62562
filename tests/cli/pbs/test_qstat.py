from __future__ import annotations

import json
import re
from xml.etree import ElementTree

import pytest

from qbatch.wire.requests import JobStatus
from tests.cli.pbs.harness import NOW, Shell, job

PLAIN = (
    "Job id            Name             User              Time Use S Queue\n"
    "----------------  ---------------- ----------------  -------- - -----\n"
)
ALTERNATE = (
    "\nqbatch: \n"
    "                                                            Req'd  Req'd   Elap\n"
    "Job ID          Username Queue    Jobname    SessID NDS TSK Memory Time  S Time\n"
    "--------------- -------- -------- ---------- ------ --- --- ------ ----- - -----\n"
)


def ids(text: str) -> list[str]:
    return [line.split()[0] for line in text.splitlines() if line[:1].isdigit()]


def test_the_plain_table_to_the_byte(shell: Shell) -> None:
    assert shell.run("qstat") == (
        0,
        PLAIN
        + "1.qbatch          job.sh           alice             00:59:00 R batch           \n"
        + "2.qbatch          job.sh           alice                    0 Q batch           \n"
        + "4.qbatch          job.sh           bob                      0 H batch           \n"
        + "5[].qbatch        job.sh           alice                    0 B batch           \n",
        "",
    )
    question = shell.sent()
    assert isinstance(question, JobStatus)
    assert question.is_brief


def test_no_jobs_no_output(shell: Shell) -> None:
    shell.server.jobs.clear()
    for options in ([], ["-a"], ["-w"], ["-f"], ["-n", "-1"], ["-u", "alice"], ["-f", "-w"]):
        assert shell.run("qstat", *options) == (0, "", "")
    assert "Jobs" not in json.loads(shell.run("qstat", "-f", "-F", "json").out)


def test_the_alternate_table_to_the_byte(shell: Shell) -> None:
    row = "1.qbatch        alice    batch    job.sh       4242   2   4    8gb 02:00 R 01:00"
    waiting = "2.qbatch        alice    batch    job.sh        --    2   4    8gb 02:00 Q   -- "
    out = shell.run("qstat", "-a").out
    assert out.startswith(f"{ALTERNATE}{row}\n{waiting}\n")
    assert shell.run("qstat", "-n", "1").out == f"{ALTERNATE}{row}\n   n0/0*2+n1/0*2\n"
    assert shell.run("qstat", "-n1", "1").out == f"{ALTERNATE}{row} n0/0*2+n1/0*2\n"
    comment = "   Job run at Mon Sep 21 at 13:13 on (n0:ncpus=2)+(n1:ncpus=2)\n"
    assert shell.run("qstat", "-s", "1").out == f"{ALTERNATE}{row}\n{comment}"
    assert shell.run("qstat", "-ns1", "1").out == f"{ALTERNATE}{row} n0/0*2+n1/0*2\n{comment}"
    assert shell.run("qstat", "-G", "1").out == f"{ALTERNATE}{row}\n"
    assert " 1024mw 02:00" in shell.run("qstat", "-M", "1").out


def test_estimated_starts(shell: Shell) -> None:
    day = 86_400_000_000
    starts = {
        2: NOW + 3_600_000_000,
        6: NOW + 2 * day,
        7: NOW + 60 * day,
        8: NOW + 400 * day,
        9: NOW + 3000 * day,
        10: NOW - 1,
        11: None,
    }
    for number, start in starts.items():
        shell.server.jobs[f"{number}.qbatch"] = job(number, "Q", estimated_start=start)
    shell.server.jobs["12.qbatch"] = job(12, "R", started=NOW - 9_000_000_000)
    result = shell.run("qstat", "-T")
    lines = result.out.splitlines()
    assert lines[2] == " " * 75 + "Est"
    assert lines[3] == " " * 60 + "Req'd  Req'd   Start"
    shown = {line.split(".")[0]: line[75:].strip() for line in lines[6:]}
    assert shown == {
        "12": "--",
        "1": "--",
        "10": "--",
        "2": "15:13",
        "6": "We 14",
        "7": "Nov",
        "8": "2027",
        "9": ">5yrs",
        "11": "?",
        "4": "--",
        "5[]": "--",
    }
    assert list(shown)[:3] == ["12", "1", "10"]
    assert shell.sent().with_estimates  # type: ignore[attr-defined]
    for number, state in {"13": "H", "14": "W", "15[]": "B"}.items():
        shell.server.jobs[f"{number}.qbatch"] = job(
            13, state, id=f"{number}.qbatch", name="later", estimated_start=starts[2]
        )
    lines = [line for line in shell.run("qstat", "-T").out.splitlines() if " later " in line]
    assert [line[73:].split() for line in lines] == [["H", "15:13"], ["W", "15:13"], ["B", "15:13"]]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["-x"], ["1", "2", "3", "4", "5[]"]),
        (["-H"], ["3"]),
        (["-i"], ["2", "4"]),
        (["-r"], ["1"]),
        (["-u", "bob"], ["4"]),
        (["-u", "alice,bob@host"], ["1", "2", "4", "5[]"]),
        (["-J"], ["5[]"]),
        (["batch"], ["1", "2", "4", "5[]"]),
        (["@qbatch"], ["1", "2", "4", "5[]"]),
        (["batch@qbatch"], ["1", "2", "4", "5[]"]),
        (["2", "1.qbatch", "4.qbatch@qbatch"], ["2", "1", "4"]),
        (["5"], ["5[]"]),
        (["-E", "1", "2"], ["1", "2"]),
        (["-x", "3"], ["3"]),
        (["-W", "i"], ["2", "4"]),
        (["-W", "ubob"], ["4"]),
        (["1", "batch"], ["1", "1", "2", "4", "5[]"]),
    ],
)
def test_which_jobs_are_shown(options: list[str], expected: list[str], shell: Shell) -> None:
    result = shell.run("qstat", *options)
    assert (result.code, result.err) == (0, "")
    assert [each.split(".")[0] for each in ids(result.out)] == expected


def test_the_last_failing_identifier_sets_the_code(shell: Shell) -> None:
    known = (
        PLAIN + "1.qbatch          job.sh           alice             00:59:00 R batch           \n"
    )
    unknown = "qstat: Unknown Job Id 999.qbatch\n"
    finished = (
        "qstat: 3.qbatch Job has finished, use -x or -H to obtain historical job information\n"
    )
    assert shell.run("qstat", "1", "999") == (153, known, unknown)
    assert shell.run("qstat", "3", "1", "999") == (153, known, finished + unknown)
    assert shell.run("qstat", "999", "3", "1") == (35, known, unknown + finished)
    assert shell.run("qstat", "nope") == (170, "", "qstat: Unknown queue destination nope\n")
    assert shell.run("qstat", "1x", "1") == (
        1,
        known,
        "qstat: illegally formed job identifier: 1x\n",
    )


def test_history_that_is_not_kept(shell: Shell) -> None:
    shell.server.has_history = False
    result = shell.run("qstat", "-x", "1")
    assert result.code == 0
    assert ids(result.out) == ["1.qbatch"]
    assert result.err == "qstat: PBS is not configured to maintain job history\n"


@pytest.mark.parametrize(
    "options",
    [
        ["-Z"],
        ["-ai"],
        ["-ir"],
        ["-MG"],
        ["-Ba"],
        ["-BQ"],
        ["-Qn"],
        ["-qf"],
        ["-F", "json"],
        ["-D", "x"],
        ["-f", "-F", "json", "-a"],
        ["-f", "-F", "json", "-w"],
        ["-f", "-F", "xml"],
        ["-W", "z"],
        ["-u"],
    ],
)
def test_options_that_do_not_go_together(options: list[str], shell: Shell) -> None:
    result = shell.run("qstat", *options)
    assert (result.code, result.out) == (2, "")
    assert "\nusage: \nqstat [-f]" in result.err
    assert not shell.server.requests


def test_full_and_alternate_as_in_pbs(shell: Shell) -> None:
    assert shell.run("qstat", "-f", "-u", "bob").out.startswith("\nqbatch: \n")
    assert shell.run("qstat", "-f", "-w", "-u", "bob").out.startswith("Job Id: 4.qbatch\n")
    assert shell.run("qstat", "-f", "-1").out.startswith("Job Id: 1.qbatch\n")  # Nextflow


def test_the_full_text(shell: Shell) -> None:
    out = shell.run("qstat", "-f", "1", "2").out
    assert out.count("\n\n") == 2
    first, second, rest = out.split("\n\n")
    assert rest == ""
    assert first.startswith(
        "Job Id: 1.qbatch\n    Job_Name = job.sh\n    Job_Owner = alice@host\n    "
        "resources_used.cpup"
    )
    assert second.startswith("Job Id: 2.qbatch\n")
    for line in (
        "    job_state = R",
        "    exec_host = n0/0*2+n1/0*2",
        "    exec_vnode = (n0:ncpus=2)+(n1:ncpus=2)",
        "    Resource_List.ncpus = 4",
        "    Resource_List.nodect = 2",
        "    Resource_List.walltime = 02:00:00",
        "    ctime = Mon Sep 21 12:13:20 2026",
        "    Variable_List = PBS_O_HOME=/home/alice,A=x\\,y,N=4",
        "    Rerunable = True",
        "    project = _pbs_project_default",
        "    session_id = 4242",
    ):
        assert line in first.splitlines()
    assert "    Exit_status = 0" in shell.run("qstat", "-xf", "3").out
    shell.server.jobs["2.qbatch"] = job(2, "Q", output="/x/o", error="elsewhere:/x/e")
    assert "    Output_Path = host:/x/o\n" in shell.run("qstat", "-f", "2").out
    assert "    Error_Path = elsewhere:/x/e\n" in shell.run("qstat", "-f", "2").out
    array = shell.run("qstat", "-f", "5[]").out
    assert (
        "    array = True\n    array_state_count = Queued:2 Running:0 Exiting:0 Expired:1\n"
        in array
    )
    assert "    array_indices_submitted = 1-3\n    array_indices_remaining = 2-3\n" in array


def test_long_values_are_wrapped_and_can_be_joined_again(shell: Shell) -> None:
    variables = {f"NAME_{number}": "v" * number for number in range(1, 60)}
    shell.server.jobs["1.qbatch"] = job(1, variables=variables, comment="c" * 500, name="n" * 230)
    wide = shell.run("qstat", "-f", "-w", "1").out
    narrow = shell.run("qstat", "-f", "1").out
    assert narrow.replace("\n\t", "") == wide
    assert max(len(line.expandtabs(8)) for line in narrow.splitlines()) <= 88
    assert "\n\tNAME_" in narrow
    assert all(line[0] in " \tJ" for line in narrow.splitlines() if line)
    assert shell.run("qstat", "-f", "-1", "1").out == wide


def test_json(shell: Shell) -> None:
    document = json.loads(shell.run("qstat", "-x", "-f", "-F", "json", "1", "3").out)
    assert list(document) == ["timestamp", "pbs_version", "pbs_server", "Jobs"]
    assert (document["timestamp"], document["pbs_version"]) == (NOW // 1_000_000, "23.06.06")
    running, finished = document["Jobs"]["1.qbatch"], document["Jobs"]["3.qbatch"]
    assert running["Resource_List"] == {
        "mem": "8gb",
        "ncpus": 4,
        "nodect": 2,
        "place": "free",
        "select": "2:ncpus=2",
        "walltime": "02:00:00",
    }
    assert running["Variable_List"] == {"PBS_O_HOME": "/home/alice", "A": "x,y", "N": 4}
    assert (running["Rerunable"], running["job_state"]) == ("True", "R")
    assert (finished["Exit_status"], finished["job_state"]) == (0, "F")
    shell.server.jobs["1.qbatch"] = job(1, name="42", project="7", account="1e5")
    shown = json.loads(shell.run("qstat", "-f", "-F", "json", "1").out)["Jobs"]["1.qbatch"]
    assert (shown["Job_Name"], shown["project"], shown["Account_Name"]) == ("42", "7", "1e5")
    assert (
        json.loads(shell.run("qstat", "-Q", "-f", "-F", "json").out)["Queue"]["batch"]["total_jobs"]
        == 5
    )
    assert (
        json.loads(shell.run("qstat", "-B", "-f", "-F", "json").out)["Server"]["qbatch"][
            "server_state"
        ]
        == "Active"
    )


def test_dsv(shell: Shell) -> None:
    out = shell.run("qstat", "-f", "-F", "dsv", "1").out
    assert out.startswith(
        "Job Id: 1.qbatch|Job_Name=job.sh|Job_Owner=alice@host|resources_used.cpupercent=99|"
    )
    assert out.count("\n") == 1
    assert "\\@" in shell.run("qstat", "-f", "-F", "dsv", "-D", "@", "1").out


def test_queues_and_the_server_to_the_byte(shell: Shell) -> None:
    assert shell.run("qstat", "-Q").out == (
        "Queue              Max   Tot Ena Str   Que   Run   Hld   Wat   Trn   Ext Type\n"
        "---------------- ----- ----- --- --- ----- ----- ----- ----- ----- ----- ----\n"
        "batch                0     5 yes yes     1     2     0     0     0     0 Exe*\n"
    )
    assert shell.run("qstat", "-q").out == (
        "\nserver: qbatch\n\n"
        "Queue            Memory CPU Time Walltime Node   Run   Que   Lm  State\n"
        "---------------- ------ -------- -------- ---- ----- ----- ----  -----\n"
        "batch              --      --       --     --      2     1   --   E R\n"
        "                                               ----- -----\n"
        "                                                   2     1\n"
    )
    assert shell.run("qstat", "-B").out == (
        "Server             Max   Tot   Que   Run   Hld   Wat   Trn   Ext Status\n"
        "---------------- ----- ----- ----- ----- ----- ----- ----- ----- -----------\n"
        "qbatch               0     3     0     3     0     0     0     0 Active    \n"
    )
    assert shell.run("qstat", "-Q", "-f").out.startswith(
        "Queue: batch\n    queue_type = Execution\n"
    )
    assert shell.run("qstat", "-Bf").out.startswith("Server: qbatch\n    server_state = Active\n")
    assert shell.run("qstat", "-Q", "nope", "batch")[::2] == (
        170,
        "qstat: Unknown queue nope\n",
    )


def test_wide_and_percent(shell: Shell) -> None:
    assert shell.run("qstat", "-w", "1").out == (
        "Job id                         Name            User             Time Use S Queue\n"
        "-----------------------------  --------------- ---------------  -------- - "
        "---------------\n"
        "1.qbatch                       job.sh          alice            00:59:00 R batch          "
        "\n"
    )
    lines = shell.run("qstat", "-p").out.splitlines()
    assert lines[0] == "Job id            Name             User               % done  S Queue"
    assert [line[52:61].strip() for line in lines[2:]] == ["50", "--", "--", "33"]
    assert shell.run("qstat", "-aw", "1").out.splitlines()[-1] == (
        "1.qbatch                       alice           batch           job.sh              "
        "4242    2     4    8gb 02:00 "
        "R 01:00:00"
    )


def test_torque(shell: Shell) -> None:
    torque = {"QBATCH_DIALECT": "torque"}
    assert shell.run("qstat", **torque).out == (
        "Job ID                    Name             User            Time Use S Queue\n"
        "------------------------- ---------------- --------------- -------- - -----\n"
        "1.qbatch                  job.sh           alice           00:59:00 R batch          \n"
        "2.qbatch                  job.sh           alice                  0 Q batch          \n"
        "3.qbatch                  job.sh           alice           00:59:00 C batch          \n"
        "4.qbatch                  job.sh           bob                    0 H batch          \n"
        "5[].qbatch                job.sh           alice                  0 R batch          \n"
    )
    assert ids(shell.run("qstat", "-u", "bob,carol", **torque).out) == ["4.qbatch"]
    full = shell.run("qstat", "-f", "3", **torque).out
    assert "    exit_status = 0\n" in full
    assert "    job_state = C\n" in full
    shell.invoked_as = "/opt/qbatch/torque/qstat"
    assert shell.run("qstat", "1").out.startswith("Job ID   ")
    assert shell.run("qstat", "1", QBATCH_DIALECT="openpbs").out.startswith("Job id   ")
    xml = shell.run("qstat", "-x", "3").out
    assert xml.startswith("<Data><Job><Job_Id>3.qbatch</Job_Id>")
    assert "<job_state>C</job_state>" in xml
    assert "<exec_host>n0/0+n0/1+n1/0+n1/1</exec_host>" in xml
    assert f"<ctime>{NOW // 1_000_000 - 7200}</ctime>" in xml


def test_torque_full_listings_of_a_user_and_xml(shell: Shell) -> None:
    torque = {"QBATCH_DIALECT": "torque"}
    bobs = shell.run("qstat", "-f", "-u", "bob", **torque)
    assert (bobs.code, bobs.err) == (0, "")
    assert re.findall(r"^Job Id: (\S+)", bobs.out, re.MULTILINE) == ["4.qbatch"]
    for options in (["-x"], ["-fx"], ["-x", "-f"], ["-f", "-x", "-u", "bob,carol"]):
        jobs = [
            job.findtext("Job_Id")
            for job in ElementTree.fromstring(shell.run("qstat", *options, **torque).out)
        ]
        assert jobs == (
            ["4.qbatch"]
            if "-u" in options
            else [f"{n}.qbatch" for n in (1, 2, 3, 4)] + ["5[].qbatch"]
        )
    nothing = shell.run("qstat", "-fx", "-u", "nobody", **torque)
    assert (nothing.code, nothing.out) == (0, "<Data></Data>\n")
    # -e shows execution queues only; it has no argument.
    assert ids(shell.run("qstat", "-e", "1", **torque).out) == ["1.qbatch"]
    numbered = job(1, exec_host="n0/1*2+n1/0", exec_slots="n0/2,5-6+n1/0")
    shell.server.jobs = {"1.qbatch": numbered}
    assert "    exec_host = n0/2+n0/5+n0/6+n1/0\n" in shell.run("qstat", "-f", "1", **torque).out
    assert "    exec_host = n0/1*2+n1/0\n" in shell.run("qstat", "-f", "1").out


def test_many_pages_and_many_identifiers(shell: Shell) -> None:
    shell.server.jobs = {f"{number}.qbatch": job(number) for number in range(1, 2501)}
    assert len(ids(shell.run("qstat").out)) == 2500
    asked = [str(number) for number in range(1, 1301)]
    result = shell.run("qstat", *asked, "9999")
    assert [each.split(".")[0] for each in ids(result.out)] == asked
    assert result.code == 153


def test_the_version(shell: Shell) -> None:
    for command in ("qstat", "qsub", "pbsnodes", "qdel"):
        assert shell.run(command, "--version") == (0, "pbs_version = 23.06.06\n", "")


def test_with_E_only_an_answer_without_any_job_is_an_error(shell: Shell) -> None:
    result = shell.run("qstat", "-E", "1", "999", "3")
    assert (result.code, result.err) == (0, "")
    assert result.out.count("qbatch") == 1
    assert shell.run("qstat", "-E", "998", "999") == (
        153,
        "",
        "qstat: Unknown Job Id 999.qbatch\n",
    )


def test_jobs_of_arrays_without_their_arrays(shell: Shell) -> None:
    shell.server.jobs["5[1].qbatch"] = job(
        5, "Q", id="5[1].qbatch", array_id="5[].qbatch", array_index=1
    )
    rows = shell.run("qstat", "-Jt").out.splitlines()[2:]
    assert [row.split()[0] for row in rows] == ["5[1].qbatch"]
    request = shell.server.requests[-1]
    assert isinstance(request, JobStatus)
    assert (request.subjobs, request.arrays_only) == (True, False)
