"""Hosts that are closed over known spans: in a replay, in the file, and for the referee."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import qbatch
from qbatch.cli.main import run as command
from qbatch.engine.engine import Engine
from qbatch.engine.round import Round
from qbatch.model.actions import Start, parts_of
from qbatch.model.errors import InputError, UsageError
from qbatch.model.machine import Host, Machine
from qbatch.model.record import LogClock
from qbatch.policies import load_policy
from qbatch.simulation import run
from qbatch.workloads.outages import Outage, read_outages
from tests.policies.test_partitions import random_site, work_of
from tests.policies.test_reservations import SECOND, machine_with, work_on

POLICIES = ("fcfs", "easy", "conservative", "lxfw-backfill", "hybrid:depth=2")
MACHINE = """schema = 2
[[host]]
name = "n[1-2]"
cpus = 4
"""
LOG = "\n".join(
    [
        "; MaxProcs: 8",
        "; UnixStartTime: 1767225600",
        "; TimeZoneString: UTC",
        "1 0 -1 100 4 -1 -1 4 100 -1 1 1 1 -1 1 -1 -1 -1",
        "2 5 -1 100 4 -1 -1 4 100 -1 1 1 1 -1 1 -1 -1 -1",
        "3 6 -1 100 8 -1 -1 8 100 -1 1 1 1 -1 1 -1 -1 -1",
        "",
    ]
)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "m.toml").write_text(MACHINE)
    (tmp_path / "log.swf").write_text(LOG)
    (tmp_path / "side.csv").write_text("job,nodes,cpus_per_node\n1,1,4\n2,1,4\n3,2,4\n")
    return tmp_path


@pytest.mark.parametrize("policy", POLICIES)
def test_a_closed_host_takes_no_job_and_its_jobs_run_on(policy: str) -> None:
    machine = machine_with(hosts=2)
    work = work_on(machine, (0, 2, 10, 10, ""), (1, 1, 10, 10, ""), (2, 2, 5, 5, ""))
    outages = [Outage(5 * SECOND, 100 * SECOND, 1)]
    done = run(work, machine, load_policy(policy), is_audited=True, outages=outages)
    # The first job runs on over the begin of the outage; the third needs both hosts.
    assert (done.start // SECOND).tolist() == [0, 10, 100]
    free = run(work, machine, load_policy(policy), is_audited=True)
    assert (free.start // SECOND).tolist() == [0, 10, 20]


@pytest.mark.parametrize("policy", POLICIES)
def test_no_job_starts_on_a_closed_host(policy: str) -> None:
    for seed in range(12):
        draw = random.Random(seed)
        if policy == "lxfw-backfill":
            machine = Machine(tuple(Host(f"n{n}", 4) for n in range(3)), single_host=True)
            work = work_of_pool(draw)
        else:
            machine = random_site(draw)
            work = work_of(draw, machine)
        ends = [draw.randint(0, 60), draw.randint(61, 200)]
        hosts = draw.choices(range(len(machine.real_hosts)), k=2)
        outages = [Outage(ends[0] * SECOND, ends[1] * SECOND, host) for host in {*hosts}]
        outages.append(Outage(ends[1] * SECOND + 1, ends[1] * SECOND + 40, hosts[0]))

        def watch(engine: Engine, done: Round, spans: list[Outage] = outages) -> None:
            closed = {each.host for each in spans if each.begin <= done.at < each.end}
            assert closed == engine.closed
            for action in done.actions:
                if isinstance(action, Start):
                    assert closed.isdisjoint(each[0] for each in parts_of(action.allocation))

        done = run(work, machine, load_policy(policy), outages=outages, observe=watch)
        plain = run(work, machine, load_policy(policy))
        assert np.array_equal(done.ran, plain.ran)


def work_of_pool(draw: random.Random) -> Any:
    machine = machine_with(hosts=3)
    jobs = sorted((draw.randint(0, 50), 1, draw.randint(1, 30), 40, "") for _ in range(12))
    work = work_on(machine, *jobs)
    return work.changed(requests=(), request=np.full(len(work), -1), procs=work.procs // 2)


def test_replay_and_verify_take_a_file_of_outages(
    files: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = files / "closed.csv"
    file.write_text('host,start,end\n"n[1-2]",5,50\nn2,2026-01-01T00:00:40,2026-01-01T00:05:00\n')
    given = ("--machine", str(files / "m.toml"), "--resources", str(files / "side.csv"))
    closed = ("--outages", str(file))
    log = str(files / "log.swf")
    out = str(files / "out.swf")
    asked = ("replay", log, *given, *closed, "-p", "easy", "--audit", "--swf", out)
    assert command([*asked, "--json"]) == 0
    record = json.loads(capfd.readouterr().out)
    assert record["outages"]["spans"] == 2
    assert record["outages"]["host_seconds"] == 340
    done = qbatch.replay(
        log, "easy", machine=files / "m.toml", resources=files / "side.csv", outages=file
    )
    assert (done.schedules[0].start // SECOND).tolist() == [0, 100, 300]
    assert command([*asked, "--driver", "compiled"]) == 2
    assert "has no compiled loop with outages" in capfd.readouterr().err
    hosts = "job,nodes,cpus_per_node,hosts\n1,1,4,n1\n2,1,4,n1\n3,2,4,n[1-2]\n"
    (files / "side.csv").write_text(hosts)
    assert command(["verify", out, *given, *closed]) == 0
    said = capfd.readouterr().out
    assert "starts on closed hosts (2 closed at times); 1 job that started earlier ran on" in said
    file.write_text("host,start,end\nn1,90,101\nn2,299,301\n")
    assert command(["verify", out, *given, *closed, "--all"]) == 1
    said = capfd.readouterr().out
    assert "closed-host at 100 s: job 2 started on host n1 while it was closed, from 90" in said
    assert "closed-host at 300 s: job 3 started on host n2 while it was closed" in said
    assert command(["verify", out, *closed]) == 2
    assert "--outages goes with --machine and --resources" in capfd.readouterr().err
    assert command(["replay", log, *given, *closed, "--explain", "3"]) == 2


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "line 1: the columns are missing; a file of outages begins host,start,end"),
        ("host,begin,end\n", "line 1: the columns are host,begin,end"),
        ("host,start,end\nn3,1,2\n", "line 2: the machine has no host 'n3'"),
        ("host,start,end\nn[1-,1,2\n", "line 2: host 'n[1-': a bracket is not closed"),
        ("host,start,end\nn1,2,2\n", "line 2: the end is not after the start"),
        ("host,start,end\nn1,soon,2\n", "line 2: start 'soon': neither seconds of the log nor an"),
        ("host,start,end\nn1,1,1e300\n", "line 2: end '1e300': is beyond the times"),
        ("host,start,end\nn1,2026-01-01T00:00:00,9\n", "log has no UnixStartTime"),
        ("host,start,end\nn1,1\n", "line 2: 2 values, the header names 3"),
    ],
)
def test_a_wrong_file_is_refused_with_line_and_reason(
    tmp_path: Path, text: str, error: str
) -> None:
    file = tmp_path / "closed.csv"
    file.write_text(text)
    machine = machine_with(hosts=2)
    with pytest.raises(InputError) as caught:
        read_outages(str(file), machine, LogClock(), "log")
    assert str(caught.value).startswith(f"{file}: ")
    assert error in str(caught.value)


def test_outages_of_a_host_are_joined(tmp_path: Path) -> None:
    file = tmp_path / "closed.csv"
    file.write_text("end,host,start\n9,n1,5\n5,n1,-3\n30,n2,20\n7,n1,6\n-1,n2,-4\n")
    found = read_outages(str(file), machine_with(hosts=2), LogClock(), "log").spans
    assert found == (Outage(0, 9 * SECOND, 0), Outage(20 * SECOND, 30 * SECOND, 1))


def test_the_compiled_driver_refuses_outages() -> None:
    machine = machine_with(hosts=2)
    work = work_on(machine, (0, 1, 10, 10, ""))
    with pytest.raises(UsageError, match="no compiled loop with outages"):
        run(work, machine, load_policy("easy"), driver="compiled", outages=[Outage(0, 1, 0)])
