"""Deadlines on a live daemon: what users type, kill -9 in the midst, and a flood of what cannot
be."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path

import pytest

from qbatch.wire.errors import Refusal
from qbatch.wire.records import SubmissionRecord, Text
from qbatch.wire.requests import Check, Spec, Submit
from tests.daemon.harness import Daemon
from tests.harness import size

CONFIG = """
executor = "emulated"
policy = "qops"
[[pool]]
hosts = "n[1-2]"
cpus = 4
spans = true
[[queue]]
name = "batch"
default_walltime = "10:00"
"""


def asked(procs: int, walltime: int, deadline: int | None = None) -> dict[str, str]:
    resources = {"ncpus": str(procs), "walltime": str(walltime)}
    return resources if deadline is None else resources | {"deadline": f"+{deadline}"}


def test_the_commands_promise_quote_change_and_refuse(tmp_path: Path) -> None:
    with Daemon(tmp_path, config=CONFIG) as daemon:
        daemon.run("qsub", "-l", "ncpus=8,walltime=1:00:00", "--", "/bin/true")
        job = daemon.run(
            "qsub", "-l", "ncpus=8,walltime=0:30:00,deadline=+2:00:00", "--", "/bin/true"
        ).stdout.strip()
        shown = daemon.run("qstat", "-f", job).stdout
        for name in ("deadline", "latest_start", "planned_start", "deadline_slack", "price"):
            assert f"    {name} = " in shown
        refused = daemon.run(
            "qsub", "-l", "ncpus=8,walltime=0:30:00,deadline=+1:20:00", "--", "x", code=15039 % 256
        )
        assert "the earliest deadline that would be accepted now is" in refused.stderr
        quote = daemon.run("qsub", "--quote", "-l", "ncpus=8,walltime=0:30:00", "--", "x").stdout
        assert "earliest_deadline = " in quote
        assert "price = " in quote
        assert len(daemon.jobs()) == 3  # one of them was refused
        assert (
            "cannot be kept"
            in daemon.run(
                "qsub",
                "-l",
                "ncpus=1,walltime=0:30:00,deadline=2020-01-01T00:00",
                "--",
                "x",
                code=15039 % 256,
            ).stderr
        )
        assert (
            "is no deadline"
            in daemon.run("qsub", "-l", "ncpus=1,deadline=soon", "--", "x", code=166).stderr
        )
        daemon.run("qalter", "-l", "deadline=+3:00:00", job)
        daemon.run("qalter", "-l", "deadline=+1:10:00", job, code=15039 % 256)
        assert daemon.jobs(job)[job].resources["deadline"] == "+3:00:00"
        assert "planned for" in daemon.run("qbatch", "explain", job).stdout


def test_tables_have_a_column_of_deadlines_where_a_job_has_one(tmp_path: Path) -> None:
    with Daemon(
        tmp_path, "--time", "virtual", "--paused", "--origin", "0", config=CONFIG
    ) as daemon:

        def tables() -> list[list[str]]:
            lines = [
                daemon.run("qbatch", each).stdout.splitlines() for each in ("forecast", "history")
            ]
            return [[" ".join(line.split()) for line in each] for each in lines]

        for _ in range(2):
            daemon.submit(resources=asked(8, 600), runtime=600_000_000)
        daemon.run("qbatch", "time", "until", "700")
        assert [table[0] for table in tables()] == [
            "job start in end",
            "id name user queue procs submitted waited ended status",
        ]
        late, none = (
            daemon.submit(resources=asked(8, 600, each), runtime=600_000_000)
            for each in (3600, None)
        )
        forecast, _ = tables()
        assert forecast[0] == "job start in end deadline"
        clock = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(4300))
        assert {line.split()[0]: line.endswith(clock) for line in forecast[1:3]} == {
            late: True,
            none: False,
        }
        daemon.run("qbatch", "time", "until", "5000")
        _, history = tables()
        assert history[0] == "id name user queue procs submitted waited ended deadline status"
        assert [clock in line for line in history[1:]] == [
            line.startswith(late) for line in history[1:]
        ]


def test_no_promise_changes_by_kill_9_and_every_accepted_deadline_stands(tmp_path: Path) -> None:
    chance = random.Random(5)
    daemon = Daemon(tmp_path, config=CONFIG).start()
    accepted: dict[str, str] = {}
    refused = 0
    is_over = threading.Event()

    def submit(client: int) -> None:
        nonlocal refused
        draw, number = random.Random(client), 0
        while not is_over.is_set():
            number += 1
            time.sleep(0.02)
            walltime = draw.choice((600, 900, 1800))
            resources = asked(
                draw.randrange(1, 9), walltime, walltime + draw.choice((600, 3600, 20_000))
            )
            request = Submit(
                spec=Spec(script="x\n", name=f"k{client}-{number}", resources=resources),
                key=f"{client}-{number}",
            )
            while not is_over.is_set():
                try:
                    with daemon.session() as session:
                        accepted[session.ask(request, SubmissionRecord).job] = request.spec.name
                    break
                except Refusal as error:
                    if error.code == "refused-by-policy":
                        refused += 1
                        break
                    time.sleep(0.02)
                except Exception:
                    time.sleep(0.02)

    clients = [threading.Thread(target=submit, args=(client,)) for client in range(2)]
    for each in clients:
        each.start()
    for _ in range(size(2, 4)):
        time.sleep(chance.uniform(0.4, 1.0))
        daemon.kill()
        daemon.start()
    is_over.set()
    for each in clients:
        each.join()
    assert len(accepted) > 5
    assert refused > 0
    recorded = {
        job.id: (job.name, job.deadline, job.promised, job.price)
        for job in daemon.jobs(*accepted).values()
    }
    assert {name: facts[0] for name, facts in recorded.items()} == accepted
    assert all(
        deadline is not None and price is not None for _, deadline, _, price in recorded.values()
    )
    daemon.kill()
    daemon.start()
    with daemon:
        again = daemon.jobs(*accepted).values()
        assert {
            job.id: (job.name, job.deadline, job.promised, job.price) for job in again
        } == recorded
        assert not any(job.broken or job.refused for job in again)
        with daemon.session() as session:
            assert session.ask(Check(), Text).text


def test_a_flood_of_impossible_deadlines_leaves_no_job_behind(tmp_path: Path) -> None:
    with Daemon(tmp_path, config=CONFIG) as daemon, daemon.session() as session:
        session.ask(Submit(spec=Spec(script="x\n", resources=asked(8, 3600))), SubmissionRecord)
        impossible = Submit(spec=Spec(script="x\n", resources=asked(8, 600, 60)))
        for _ in range(1000):
            with pytest.raises(Refusal, match="cannot be kept"):
                session.ask(impossible, SubmissionRecord)
        assert (
            session.ask(
                Submit(spec=Spec(script="x\n", resources=asked(8, 600, 9000))), SubmissionRecord
            ).job
            == "2.qbatch"
        )


def test_what_really_ran_is_exported_with_its_deadlines_and_verified(tmp_path: Path) -> None:
    with Daemon(tmp_path, "--time", "virtual", config=CONFIG) as daemon:
        names = [
            daemon.submit(resources=asked(8, 600, each), runtime=300_000_000)
            for each in (None, 2000, 3000)
        ]
        for name in names:
            daemon.until(name, "F")
        daemon.run("qbatch", "export", "result", "-o", str(tmp_path / "lived"))
        said = daemon.run("qbatch", "verify", str(tmp_path / "lived"), "--policy", "qops")
        assert "the deadlines of 2 jobs" in said.stdout + said.stderr
