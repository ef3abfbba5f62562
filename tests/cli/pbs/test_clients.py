"""What the real clients make of our output: their parsers, written again from docs/spec/pbs.md
section 7."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from datetime import datetime

import pytest

from qbatch.wire.records import HostRecord
from tests.cli.pbs.harness import Shell, job

OPENPBS_STATES = set("BEFHMQRSTUWX")


@pytest.fixture(autouse=True)
def _script(shell: Shell) -> None:
    (shell.directory / "job.sh").write_text("#!/bin/sh\ntrue\n")


def test_dask_and_ipyparallel_find_digits_and_delete_by_digits(shell: Shell) -> None:
    out = shell.run("qsub", "job.sh").out
    found = re.search(r"(?P<job_id>\d+)", out)
    assert found is not None
    assert shell.run("qdel", found["job_id"]).code == 0
    assert shell.run("qdel", "5").code == 0  # 5[] by its digits
    assert shell.run("qsig", "-s", "SIGINT", "5").code == 0


def test_parsl_pbspro(shell: Shell) -> None:
    identifier = shell.run("qsub", "job.sh").out.strip()
    assert "\n" not in identifier
    result = shell.run("qstat", "-x", "-f", "-F", "json", "1.qbatch", "3.qbatch", "777.qbatch")
    jobs = json.loads(result.out)["Jobs"]
    assert {name: entry["job_state"] for name, entry in jobs.items()} == {
        "1.qbatch": "R",
        "3.qbatch": "F",
    }


def test_parsl_torque_reads_the_table(shell: Shell) -> None:
    long = job(
        1234567, id="1234567[1000].qbatch", name="a name that is long", user="somebody-with-a-name"
    )
    shell.server.jobs[long.id] = long
    whole = ["1.qbatch", "2.qbatch", long.id]
    for environment in ({}, {"QBATCH_DIALECT": "torque"}):
        states = {}
        for line in shell.run("qstat", *whole, **environment).out.split("\n"):
            parts = line.split()
            if not parts or parts[0].upper().startswith("JOB") or parts[0].startswith("---"):
                continue
            (identifier,) = (each for each in whole if each.startswith(parts[0]))
            states[identifier] = parts[4]
        assert states == {"1.qbatch": "R", "2.qbatch": "Q", long.id: "R"}


def test_psij(shell: Shell) -> None:
    assert shell.run("qsub", "job.sh").out.split()[-1] == "1.qbatch"
    result = shell.run("qstat", "-f", "-F", "json", "-x", "1.qbatch", "3.qbatch")
    assert result.code == 0
    for entry in json.loads(result.out)["Jobs"].values():
        assert entry["job_state"] in OPENPBS_STATES
        assert entry["job_state"] != "F" or isinstance(entry["Exit_status"], int)
    assert (
        json.loads(shell.run("qstat", "-f", "-F", "json", "-x", "3", QBATCH_DIALECT="torque").out)[
            "Jobs"
        ]["3.qbatch"]["job_state"]
        in OPENPBS_STATES
    )
    listed = shell.run("qstat", "-u", "bob").out.split("\n")[2:]
    assert "4.qbatch" in [line.split()[0] for line in listed if line.split()]


def test_reframe_pbs_splits_blocks_on_empty_lines(shell: Shell) -> None:
    found = re.search(r"^(?P<jobid>\S+)", shell.run("qsub", "-o", "out", "-e", "err", "job.sh").out)
    assert found is not None
    result = shell.run("qstat", "-f", "1", "2")
    blocks = [block for block in result.out.split("\n\n") if block.strip()]
    states = {}
    for block in blocks:
        identifier = re.search(r"^Job Id:\s*(\S+)", block, re.MULTILINE)
        state = re.search(r"^\s*job_state = (?P<state>[A-Z])", block, re.MULTILINE)
        assert identifier is not None
        assert state is not None
        states[identifier[1]] = state["state"]
    assert states == {"1.qbatch": "R", "2.qbatch": "Q"}
    hosts = re.search(r"^\s*exec_host = (?P<nodespec>\S+)", result.out, re.MULTILINE)
    assert hosts is not None
    assert [part.split("/")[0] for part in hosts["nodespec"].split("+")] == ["n0", "n1"]
    assert shell.run("qstat", "-f", "999").code == 153
    assert shell.run("qstat", "-f", "3").code == 35
    finished = shell.run("qstat", "-xf", "3").out
    assert re.search(r"^\s*Exit_status = (\d+)", finished, re.MULTILINE)
    torque = shell.run("qstat", "-f", "3", QBATCH_DIALECT="torque").out
    assert re.search(r"^\s*exit_status = (\d+)", torque, re.MULTILINE)
    assert re.search(r"^\s*job_state = [QHRETWSC]", torque, re.MULTILINE)


def test_reframe_pbspro_needs_the_exit_status_in_json(shell: Shell) -> None:
    result = shell.run("qstat", "-xf", "-F", "json", "1", "3", "999")
    assert result.code == 153
    jobs = json.loads(result.out)["Jobs"]
    assert jobs["3.qbatch"]["Exit_status"] == 0
    assert jobs["1.qbatch"]["exec_host"] == "n0/0*2+n1/0*2"


def test_qtoolkit(shell: Shell) -> None:
    for options in (["1", "2"], ["-u", "alice"]):
        result = shell.run("qstat", "-f", "-w", *options)
        jobs: dict[str, dict[str, str]] = {}
        current: dict[str, str] = {}
        for line in result.out.splitlines():
            begins = re.match(r"^\s*Job Id: (\S+)", line)
            if begins:
                current = jobs.setdefault(begins[1], {})
            elif " = " in line:
                key, _, value = line.strip().partition(" = ")
                current[key] = value
        assert {"1.qbatch", "2.qbatch"} <= set(jobs)
        one = jobs["1.qbatch"]
        assert int(one["Resource_List.nodect"]) == 2
        assert int(one["Resource_List.ncpus"]) == 4
        assert re.fullmatch(r"\d+(kb|mb|gb|tb)", one["Resource_List.mem"])
        assert re.fullmatch(r"\d+:\d\d:\d\d", one["Resource_List.walltime"])
    assert "Unknown Job Id" in shell.run("qstat", "-f", "-w", "999").err
    assert "Job has finished" in shell.run("qdel", "3").err


def test_snakemake_takes_the_first_line(shell: Shell) -> None:
    assert shell.run("qsub", "job.sh").out.split("\n")[0] == "1.qbatch"


def test_batchspawner(shell: Shell) -> None:
    shell.stdin = b"#!/bin/sh\n#PBS -q batch@qbatch\n#PBS -N jupyterhub\n#PBS \n#PBS -v A,B\njupyterhub-singleuser\n"
    assert shell.run("qsub", A="1", B="").out.strip() == "1.qbatch"
    assert shell.server.requests[-1].spec.queue == "batch@qbatch"
    assert re.search(r"job_state = [QH]", shell.run("qstat", "-fx", "2").out)
    running = shell.run("qstat", "-fx", "1").out
    assert re.search(r"job_state = R", running)
    host = re.search(r"exec_host = ([\w_-]+)/", running)
    assert host is not None
    assert host[1] == "n0"
    xml = shell.run("qstat", "-x", "1", QBATCH_DIALECT="torque").out
    assert re.search(r"<job_state>R</job_state>", xml)
    assert re.search(r"<exec_host>((?:[\w_-]+\.?)+)/\d+", xml)
    assert ElementTree.fromstring(xml)[0].findtext("Job_Id") == "1.qbatch"


def test_cylc(shell: Shell) -> None:
    found = re.search(r"^\s*(?P<id>\d+)", shell.run("qsub", "job.sh").out)
    assert found is not None
    listed = [
        line.split()[0].split(".")[0]
        for line in shell.run("qstat", "1", "2", "999").out.splitlines()
        if line
    ]
    assert {"1", "2"} <= set(listed)
    missing = shell.run("qstat", "1", QBATCH_SOCKET=str(shell.directory / "none"))
    assert missing.code == 255
    assert "cannot connect to server" in missing.err
    spec_like = "#PBS -l walltime=60\n"
    shell.stdin = spec_like.encode()
    assert shell.run("qsub").code == 0


def test_aiida(shell: Shell) -> None:
    shell.server.jobs["1.qbatch"] = job(1, variables={f"V{n}": "x" * 30 for n in range(20)})
    out = shell.run("qstat", "-f", "1", "2").out
    jobs: list[dict[str, str]] = []
    last = ""
    for line in out.split("\n"):
        if line.startswith("Job Id:"):
            jobs.append({"id": line.split(":", 1)[1].strip()})
        elif line.startswith("\t"):
            jobs[-1][last] += line[1:]
        elif line.strip():
            assert line.startswith(" ")
            last, _, value = line.partition(" = ")
            last = last.strip().lower()
            jobs[-1][last] = value
    assert [each["id"] for each in jobs] == ["1.qbatch", "2.qbatch"]
    assert jobs[0]["variable_list"] == ",".join(f"V{n}={'x' * 30}" for n in range(20))
    hours, minutes, seconds = jobs[0]["resource_list.walltime"].split(":")
    assert (int(hours), int(minutes), int(seconds)) == (2, 0, 0)
    assert datetime.strptime(jobs[0]["ctime"], "%a %b %d %H:%M:%S %Y").year == 2026
    assert jobs[0]["job_state"] in OPENPBS_STATES
    for part in jobs[0]["exec_host"].split("+"):
        assert re.fullmatch(r"[^/]+/\d+\*\d+", part)
    assert shell.run("tracejob", "-v", "1").code == 0


def test_saga(shell: Shell) -> None:
    assert shell.run("qsub", "job.sh").out.strip().split("\n")[-1] == "1.qbatch"
    assert shell.run("pbsnodes", "--version").out == "pbs_version = 23.06.06\n"
    nodes = shell.run("pbsnodes", "-a").out
    found = [line for line in nodes.split("\n") if re.search(r"(np|pcpus?)[ \t]*=", line)]
    assert [line.split("=")[1].strip() for line in found] == ["4"]
    assert re.search(r"job_state = R", shell.run("qstat", "-fx", "1").out)


def test_nextflow(shell: Shell) -> None:
    out = shell.run("qsub", "-N", "nf-task", "job.sh").out
    assert len([line for line in out.splitlines() if line]) == 1
    server = next(
        line.split()[1]
        for line in shell.run("qstat", "-B", "-f").out.splitlines()
        if line.split()[0] == "Server:"
    )
    for options in (["-f", "-1"], ["-f", "-1", "batch"], ["-f", f"@{server}"], ["-f", "batch"]):
        result = shell.run("qstat", *options)
        lines = [
            line for line in result.out.splitlines() if re.match(r"(Job Id:|\s*job_state =)", line)
        ]
        states = {
            first.split(":", 1)[1].strip(): second.split("=")[1].strip()
            for first, second in zip(lines[::2], lines[1::2], strict=True)
        }
        assert states["1.qbatch"] == "R"
        assert states["2.qbatch"] == "Q"


def test_toil(shell: Shell) -> None:
    words = (
        "-S /bin/sh -V -N toil_job_1 -v A=1,B=2 -l mem=953674K,ncpus=1 -o /x/${PBS_JOBID}.out "
        "job.sh"
    )
    assert shell.run("qsub", *words.split()).out.strip().split(".")[0] == "1"
    lines = shell.run("qstat", "-x", "1", "3").out.strip().split("\n")
    assert {line.split()[0].split(".")[0]: line.split()[4] for line in lines[2:]} == {
        "1": "R",
        "3": "F",
    }
    for environment, key in (({}, "Exit_status"), ({"QBATCH_DIALECT": "torque"}, "exit_status")):
        full = shell.run("qstat", "-f", *([] if environment else ["-x"]), "3", **environment).out
        assert any(line.strip().split(" = ") == [key, "0"] for line in full.splitlines())


def test_gc3pie(shell: Shell) -> None:
    row = next(line for line in shell.run("qstat", "1").out.splitlines() if line.startswith("1"))
    assert row.split()[4] == "R"
    trace = shell.run("tracejob", "1").out
    assert re.search(
        r"^\d\d/\d\d/\d{4} \d\d:\d\d:\d\d  S    Job Queued at request of ", trace, re.MULTILINE
    )


def test_fireworks_counts_rows(shell: Shell) -> None:
    assert re.search(r"(\d+)", shell.run("qsub", "job.sh").out)
    out = shell.run("qstat", "-u", "alice").out
    rows = [
        line
        for line in out.split("\n")
        if line.strip() and line.split()[0].split(".")[0].rstrip("[]").isdigit()
    ]
    assert len(rows) == 3


def test_cromwell_asks_the_exit_code(shell: Shell) -> None:
    found = re.fullmatch(r"(\d+).*", shell.run("qsub", "job.sh").out.strip())
    assert found is not None
    assert shell.run("qstat", found[1]).code == 0
    assert shell.run("qstat", "999").code != 0


def test_exec_host_names_stay_free_of_dots(shell: Shell) -> None:
    shell.server.hosts = [
        HostRecord(name="n1", pool="p", state="offline", cpus=4, comment="drained by root")
    ]
    assert shell.run("pbsnodes", "-l").out == "n1                   offline drained by root\n"
