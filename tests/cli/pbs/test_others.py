from __future__ import annotations

import json
import re

import pytest

from qbatch.wire import requests
from qbatch.wire.errors import Refusal
from qbatch.wire.records import HostRecord, Outcome, Outcomes
from tests.cli.pbs.harness import Shell, job


def sent(shell: Shell) -> object:
    request = shell.server.requests[-1]
    return type(request)(
        **{**{name: getattr(request, name) for name in request.__struct_fields__}, "id": 0}
    )


@pytest.mark.parametrize(
    ("line", "request_"),
    [
        ("qdel 1 2", requests.Delete(jobs=("1", "2"))),
        ("qdel -W force 1", requests.Delete(jobs=("1",), is_forced=True)),
        ("qdel -W delay=30 1", requests.Delete(jobs=("1",), grace=30.0)),
        ("qdel -W 5 1", requests.Delete(jobs=("1",), grace=5.0)),
        (
            "qdel -x -W force,suppress_email=-1 3[1-2].qbatch",
            requests.Delete(jobs=("3[1].qbatch", "3[2].qbatch"), is_forced=True, with_history=True),
        ),
        ("qhold 2", requests.Hold(jobs=("2",), kinds="u")),
        ("qhold -h uo 2", requests.Hold(jobs=("2",), kinds="uo")),
        ("qrls -h s 2", requests.Release(jobs=("2",), kinds="s")),
        ("qmove fast@qbatch 2 4", requests.Move(jobs=("2", "4"), destination="fast@qbatch")),
        ("qmsg -O hello 1", requests.Message(jobs=("1",), text="hello", files="O")),
        ("qmsg -EO hello 1", requests.Message(jobs=("1",), text="hello", files="EO")),
        ("qmsg hello 1", requests.Message(jobs=("1",), text="hello", files="E")),
        ("qrerun 1", requests.Rerun(jobs=("1",))),
        ("qrerun -W force 1", requests.Rerun(jobs=("1",), is_forced=True)),
        ("qrun 2", requests.ForceStart(jobs=("2",))),
        ("qrun -a -H n1+n2 2 4", requests.ForceStart(jobs=("2", "4"), hosts=("n1", "n2"))),
        ("qrun -H (n1)+(n2) 2", requests.ForceStart(jobs=("2",), hosts=("n1", "n2"))),
        ("qsig 1", requests.Signal(jobs=("1",), signal="SIGTERM")),
        ("qsig -s suspend 1", requests.Signal(jobs=("1",), signal="suspend")),
        ("qsig -s 9 1", requests.Signal(jobs=("1",), signal="9")),
        ("qorder 2 4", requests.Order(first="2", second="4")),
        ("qenable batch", requests.QueueControl(queues=("batch",), enabled=True)),
        ("qdisable batch@qbatch", requests.QueueControl(queues=("batch",), enabled=False)),
        ("qstart @qbatch", requests.QueueControl(queues=("batch",), started=True)),
        ("qstop batch", requests.QueueControl(queues=("batch",), started=False)),
        (
            "pbsnodes -o n1 -C broken",
            requests.HostControl(hosts=("n1",), action="drain", comment="broken"),
        ),
        ("pbsnodes -r n1", requests.HostControl(hosts=("n1",), action="resume")),
        (
            "qalter -l walltime=60 -N x -p 3 2",
            requests.Alter(
                jobs=("2",),
                changes=requests.Changes(resources={"walltime": "60"}, name="x", priority=3),
            ),
        ),
        (
            "qalter -h n -r n -W depend=afterok:1,umask=22 2",
            requests.Alter(
                jobs=("2",),
                changes=requests.Changes(
                    hold="n", is_rerunnable=False, depend="afterok:1", umask=0o22
                ),
            ),
        ),
        (
            "qalter -W max_run_subjobs=5 2[]",
            requests.Alter(jobs=("2[]",), changes=requests.Changes(slot_limit=5)),
        ),
        ("qalter 1", requests.Alter(jobs=("1",), changes=requests.Changes())),
        (
            "qalter -o /x/ -e localhost:/y -j oe -k o -m n -M a -S /bin/sh -A b -P c -c n 2",
            requests.Alter(
                jobs=("2",),
                changes=requests.Changes(
                    output="/x/",
                    error="localhost:/y",
                    join="oe",
                    keep="o",
                    mail_points="n",
                    mail_users="a",
                    shell="/bin/sh",
                    account="b",
                    project="c",
                    checkpoint="n",
                ),
            ),
        ),
    ],
)
def test_what_each_command_asks_for(line: str, request_: object, shell: Shell) -> None:
    command, *arguments = line.split()
    result = shell.run(command, *arguments)
    assert result.out == ""
    assert sent(shell) == request_
    if "[" not in line and "fast" not in line:
        assert (result.code, result.err) == (0, "")


@pytest.mark.parametrize(
    ("line", "request_"),
    [
        ("qdel -W 5 -m bye 1", requests.Delete(jobs=("1",), grace=5.0, message="bye")),
        ("qdel -p 1", requests.Delete(jobs=("1",), is_forced=True)),
        ("qdel -a -t 3 1", requests.Delete(jobs=("1",))),
        ("qhold -t 3 2", requests.Hold(jobs=("2",), kinds="u")),
        ("qrerun -f 1", requests.Rerun(jobs=("1",), is_forced=True)),
        ("qsig -a 1", requests.Signal(jobs=("1",), signal="SIGTERM")),
        ("pbsnodes -c n1", requests.HostControl(hosts=("n1",), action="resume")),
        ("pbsnodes", requests.HostStatus()),
        ("pbsnodes -N note", requests.HostStatus()),
    ],
)
def test_options_of_torque_are_known_in_its_dialect_only(
    line: str, request_: object, shell: Shell
) -> None:
    command, *arguments = line.split()
    result = shell.run(command, *arguments)
    assert (result.code, result.out) == (1 if command == "pbsnodes" else 2, "")
    assert re.search(rf"usage:\s*{command} ", result.err)
    assert not arguments or f"{command}: invalid option -- '" in result.err
    assert not shell.server.requests
    shell.run(command, *arguments, QBATCH_DIALECT="torque")
    assert sent(shell) == request_


@pytest.mark.parametrize(
    "line",
    [
        "qdel",
        "qdel -W soon 1",
        "qhold",
        "qhold -h z 1",
        "qhold -h nu 1",
        "qrls -h",
        "qmove batch",
        "qmove 1 2",
        "qmsg hi",
        "qrerun",
        "qrerun -W x 1",
        "qsig",
        "qsig -Z 1",
        "qorder 1",
        "qorder 1 2 3",
        "qenable",
        "qdisable",
        "qstart",
        "qstop",
        "qalter",
        "qalter -t 5 1",
        "qalter -p 9999 1",
        "qselect 1",
        "qselect -s z",
        "qselect -l ncpus",
        "qselect -l ncpus.xx.4",
        "qselect -l foo=1",
        "qselect -l walltime.lt.3:00:00,mem=8gb",
        "qstat -l",
        "qselect -p x",
        "qselect -a x",
        "pbsnodes -o",
        "pbsnodes -o -r n1",
        "pbsnodes -F xml",
        "tracejob",
        "tracejob -n x 1",
    ],
)
def test_wrong_usage_is_said_and_nothing_is_sent(line: str, shell: Shell) -> None:
    command, *arguments = line.split()
    result = shell.run(command, *arguments)
    assert (result.code, result.out) == (1 if command == "pbsnodes" else 2, "")
    one_line = result.err.count("\n") == 1 and result.err.startswith(f"{command}: illegal -")
    assert one_line or re.search(rf"usage:\s*{command} ", result.err)
    assert not shell.server.requests


@pytest.mark.parametrize("command", ["qdel", "qhold", "qrls", "qrerun", "qsig"])
def test_errors_of_jobs(command: str, shell: Shell) -> None:
    assert shell.run(command, "1", "999") == (153, "", f"{command}: Unknown Job Id 999.qbatch\n")
    both = f"{command}: Unknown Job Id 999.qbatch\n{command}: Job has finished 3.qbatch\n"
    assert shell.run(command, "999", "3", "1") == (35, "", both)
    assert shell.run(command, "x1", "1") == (
        1,
        "",
        f"{command}: illegally formed job identifier: x1\n",
    )


@pytest.mark.parametrize(
    ("code", "exit_code", "line"),
    [
        ("not-permitted", 159, "qdel: Unauthorized Request  1.qbatch: the job belongs to bob"),
        (
            "bad-state",
            168,
            "qdel: Request invalid for state of job 1.qbatch: the job belongs to bob",
        ),
        ("never-fits", 196, "qdel: the job belongs to bob 1.qbatch"),
        ("unknown-queue", 170, "qdel: Unknown queue 1.qbatch: the job belongs to bob"),
    ],
)
def test_other_refusals(code: str, exit_code: int, line: str, shell: Shell) -> None:
    error = Refusal(code, "the job belongs to bob", "1.qbatch").record
    shell.server.overrides["Delete"] = lambda _: Outcomes(
        outcomes=(Outcome(name="1", error=error),)
    )
    assert shell.run("qdel", "1") == (exit_code, "", line + "\n")

    def refuse(_: object) -> Outcomes:
        raise Refusal(code, "the job belongs to bob", "1.qbatch")

    shell.server.overrides["Delete"] = refuse
    assert shell.run("qdel", "1") == (exit_code, "", line + "\n")


def test_the_words_of_pbs_are_not_said_twice(shell: Shell) -> None:
    error = Refusal("not-permitted", "Unauthorized Request 1.qbatch", "1.qbatch").record
    shell.server.overrides["Delete"] = lambda _: Outcomes(
        outcomes=(Outcome(name="1", error=error),)
    )
    assert shell.run("qdel", "1").err == "qdel: Unauthorized Request  1.qbatch\n"


def test_queues_that_are_not_there(shell: Shell) -> None:
    assert shell.run("qenable", "nope", "batch") == (170, "", "qenable: Unknown queue nope\n")


def test_all_is_every_job_of_mine(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: "bob")
    assert shell.run("qdel", "all").code == 0
    assert sent(shell) == requests.Delete(jobs=("4.qbatch",))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", "1 2 4 5[]"),
        ("-u bob", "4"),
        ("-s R", "1"),
        ("-x", "1 2 3 4 5[]"),
        ("-H", "3"),
        ("-J", "5[]"),
        ("-q batch", "1 2 4 5[]"),
        ("-N other", ""),
        ("-h u", "4"),
        ("-h n", "1 2 5[]"),
        ("-l ncpus.ge.4", "1 2 4 5[]"),
        ("-l ncpus.gt.4", ""),
        ("-l walltime.lt.3:00:00,mem.eq.8gb", "1 2 4 5[]"),
        ("-l place.eq.pack", ""),
        ("-r n", ""),
        ("-p .gt.-1", "1 2 4 5[]"),
        ("-t s.gt.202601010000", "1"),
        ("-A none", ""),
        ("-l gpus.eq.1", ""),
    ],
)
def test_qselect(options: str, expected: str, shell: Shell) -> None:
    result = shell.run("qselect", *options.split())
    assert (result.code, result.err) == (0, "")
    assert result.out.replace(".qbatch", "").split() == expected.split()


def test_qselect_prints_what_the_other_commands_take(shell: Shell) -> None:
    assert shell.run("qselect").out.startswith("1.qbatch\n2.qbatch\n")
    assert shell.run("qselect", POSIXLY_CORRECT="1").out.startswith(
        "1.qbatch@qbatch\n2.qbatch@qbatch\n"
    )
    assert shell.run("qselect", "-q", "nope")[::2] == (170, "qselect: Unknown queue nope\n")


def test_pbsnodes(shell: Shell) -> None:
    shell.server.hosts = [
        HostRecord(
            name="n1",
            pool="main",
            state="job-busy",
            cpus=4,
            cpus_used=4,
            memory=8 << 30,
            memory_used=2 << 30,
            jobs=("1.qbatch", "1.qbatch", "2.qbatch"),
            queues=("batch",),
            has_other_pools=True,
        ),
        HostRecord(
            name="n2", pool="main", state="offline", cpus=64, memory=512 << 30, comment="disk"
        ),
    ]
    block = shell.run("pbsnodes", "-a").out
    assert block.startswith(
        "n1\n     Mom = n1\n     ntype = PBS\n     state = job-busy\n     pcpus = 4\n"
    )
    assert "     jobs = 1.qbatch/0, 1.qbatch/1, 2.qbatch/2\n" in block
    assert "     resources_available.ncpus = 4\n" in block
    assert "\n\nn2\n" in block
    assert shell.run("pbsnodes", "n2").out.startswith("n2\n")
    nodes = json.loads(shell.run("pbsnodes", "-a", "-F", "json").out)["nodes"]
    assert nodes["n1"]["resources_available"]["ncpus"] == 4
    assert nodes["n1"]["jobs"] == ["1.qbatch", "2.qbatch"]
    assert shell.run("pbsnodes", "-S").out == (
        "vnode           state           OS       hardware host            queue        mem     "
        "ncpus   nmics   ngpus  "
        "comment\n"
        "--------------- --------------- -------- -------- --------------- ---------- -------- "
        "------- ------- ------- "
        "---------\n"
        "n1              job-busy        --       --       n1              batch           "
        "8gb       4       0       0 --\n"
        "n2              offline         --       --       n2              --            "
        "512gb      64       0       0 "
        "disk\n"
    )
    assert shell.run("pbsnodes", "-aSj").out.splitlines()[3] == (
        "n1              job-busy             2     2      0      6gb/8gb     0/4     0/0     0/0 "
        "1,2"
    )
    assert shell.run("pbsnodes", "-l").out == "n2                   offline disk\n"
    assert shell.run("pbsnodes", "-F", "dsv", "n1").out.startswith(
        "Name=n1|Mom=n1|ntype=PBS|state=job-busy|"
    )
    assert shell.run("pbsnodes", "n9") == (1, "", "Node: n9,  Error: Unknown node \n")


def test_pbsnodes_summaries_are_records_of_their_own(shell: Shell) -> None:
    """The keys of OpenPBS (pbsnodes.c): programs count processors with them."""
    shell.server.hosts = [
        HostRecord(
            name="n1",
            pool="main",
            state="free",
            cpus=4,
            cpus_used=3,
            memory=8 << 30,
            memory_used=2 << 30,
            jobs=("1.qbatch", "1.qbatch", "2.qbatch"),
            queues=("batch",),
            has_other_pools=True,
        ),
        HostRecord(name="n2", pool="main", state="offline", cpus=64, comment="disk"),
    ]
    document = json.loads(shell.run("pbsnodes", "-aSj", "-F", "json").out)
    assert set(document) == {"timestamp", "pbs_version", "pbs_server", "nodes"}
    assert document["nodes"] == {
        "n1": {
            "State": "free",
            "Total Jobs": 2,
            "Running Jobs": 2,
            "Suspended Jobs": 0,
            "mem f/t": "6gb/8gb",
            "ncpus f/t": "1/4",
            "nmics f/t": "0/0",
            "ngpus f/t": "0/0",
            "jobs": ["1.qbatch", "2.qbatch"],
        },
        "n2": {
            "State": "offline",
            "Total Jobs": 0,
            "Running Jobs": 0,
            "Suspended Jobs": 0,
            "mem f/t": "0kb/0kb",
            "ncpus f/t": "64/64",
            "nmics f/t": "0/0",
            "ngpus f/t": "0/0",
            "jobs": [],
        },
    }
    for arguments in (
        ("-aS", "-F", "json"),
        ("-avS", "-F", "json"),
        ("-Sv", "n1", "n2", "-F", "json"),
    ):
        assert json.loads(shell.run("pbsnodes", *arguments).out)["nodes"] == {
            "n1": {
                "State": "free",
                "OS": "--",
                "hardware": "--",
                "host": "n1",
                "queue": "batch",
                "Memory": "8gb",
                "ncpus": 4,
                "nmics": 0,
                "ngpus": 0,
                "comment": "--",
            },
            "n2": {
                "State": "offline",
                "OS": "--",
                "hardware": "--",
                "host": "n2",
                "queue": "--",
                "Memory": "0kb",
                "ncpus": 64,
                "nmics": 0,
                "ngpus": 0,
                "comment": "disk",
            },
        }
    assert shell.run("pbsnodes", "-aSj", "-F", "dsv").out.splitlines() == [
        "vnode=n1|state=free|njobs=2|run=2|susp=0|mem(f/t)=6gb/8gb|ncpus(f/t)=1/4|nmics(f/t)=0/0|ngpus(f/t)=0/0|jobs=1.qbatch,2.qbatch",
        "vnode=n2|state=offline|njobs=0|run=0|susp=0|mem(f/t)=0kb/0kb|ncpus(f/t)=64/64|nmics(f/t)=0/0|ngpus(f/t)=0/0|jobs=--",
    ]
    assert shell.run("pbsnodes", "-S", "-F", "dsv", "-D", ";", "n2").out == (
        "vnode=n2;state=offline;OS=--;hardware=--;host=n2;queue=--;mem=0kb;ncpus=64;nmics=0;ngpus=0;comment=disk\n"
    )


def test_tracejob(shell: Shell) -> None:
    assert shell.run("tracejob", "1") == (
        0,
        "\nJob: 1.qbatch\n\n09/21/2026 14:13:20  S    Job Queued at request of a@h\n",
        "",
    )
    assert "Queued" not in shell.run("tracejob", "-s", "1").out
    assert shell.run("tracejob", "999", "1").code == 153


def test_without_a_daemon(shell: Shell) -> None:
    shell.environment["QBATCH_SOCKET"] = str(shell.directory / "absent.sock")
    shell.stdin = b"true\n"
    for line in (
        "qsub",
        "qstat",
        "qstat -B",
        "qstat -Q",
        "qdel 1",
        "qselect",
        "pbsnodes -a",
        "tracejob 1",
        "qenable q",
    ):
        command, *arguments = line.split()
        result = shell.run(command, *arguments)
        assert (result.code, result.out) == (255, "")
        (only,) = result.err.splitlines()
        assert only.startswith(
            f"{command}: cannot connect to server qbatch (errno=2): no daemon listens at "
        )
        assert "start one with: qbatch up" in only


def test_the_job_of_a_message_is_not_said_twice(shell: Shell) -> None:
    shell.server.jobs["7.qbatch"] = job(7)
    for said, shown in (
        ("job 7.qbatch cannot be moved", "job 7.qbatch cannot be moved"),
        ("it needs 17 processors", "it needs 17 processors 7.qbatch"),
        ("Unknown queue nope", "Unknown queue 7.qbatch: nope"),
    ):
        error = Refusal("failed" if said.startswith("job") else "unknown-queue", said).record
        error = error if "processors" not in said else Refusal("never-fits", said).record
        shell.server.overrides["Move"] = lambda _, error=error: Outcomes(
            outcomes=(Outcome(name="7.qbatch", error=error),)
        )
        assert shell.run("qmove", "batch", "7").err == f"qmove: {shown}\n"
