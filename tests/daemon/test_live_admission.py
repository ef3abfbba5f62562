"""A daemon with a policy that may refuse: the answer over the socket, the exit codes, and what a
kill -9 leaves."""

from __future__ import annotations

import json
import random
import threading
import time
from pathlib import Path

import pytest

from qbatch.wire.errors import Refusal
from qbatch.wire.records import Explanation, SubmissionRecord, Text
from qbatch.wire.requests import Check, Explain, Spec, Submit
from tests.daemon.harness import Daemon

CONFIG = """
executor = "emulated"
policy = "tests.policies.refusing:Bounded:most={most}{more}"
[[pool]]
hosts = "n1"
cpus = 4
[[queue]]
name = "batch"
default_walltime = "10:00"
"""


def started(tmp_path: Path, most: int, more: str = "") -> Daemon:
    return Daemon(tmp_path, config=CONFIG.format(most=most, more=more)).start()


def test_a_refused_submission_gets_the_reason_and_the_codes(tmp_path: Path) -> None:
    with started(tmp_path, 1000) as daemon:
        first = daemon.run("qsub", "-l", "ncpus=4,walltime=600", "--", "/bin/true").stdout.strip()
        assert daemon.jobs(first)[first].state == "R"
        script = tmp_path / "job.sh"
        script.write_text("true\n", encoding="utf-8")
        refused = daemon.run("qsub", "-l", "ncpus=4,walltime=600", str(script), code=15039 % 256)
        assert refused.stdout == ""
        assert "too late" in refused.stderr
        again = daemon.run("qbatch", "submit", "-n", "4", "-t", "600", str(script), code=8)
        assert "too late" in again.stderr
        with daemon.session() as session:
            with pytest.raises(Refusal) as caught:
                session.ask(
                    Submit(spec=Spec(script="x\n", resources={"ncpus": "4", "walltime": "600"})),
                    SubmissionRecord,
                )
            error = caught.value
            assert (error.code, error.reason, error.job) == (
                "refused-by-policy",
                "too-late",
                "4.qbatch",
            )
            assert 0 < error.numbers["late"] < 1_000_000_000
            explained = session.ask(Explain(job=error.job), Explanation)
        assert (explained.code, explained.said_by) == ("too-late", "bounded:most=1000,order=fcfs")
        record = daemon.jobs(error.job)[error.job]
        assert record.refused is not None
        assert (record.state, record.refused.code, record.exit_status) == ("F", "too-late", -1)
        assert "comment = it would end" in daemon.run("qstat", "-xf", error.job).stdout
        assert "it would end" in daemon.run("tracejob", error.job).stdout
        lines = [
            line
            for path in (daemon.state / "accounting").glob("*")
            for line in path.read_text().splitlines()
        ]
        of_job = [line.split(";")[1] for line in lines if f";{error.job};" in line]
        assert of_job == ["Q", "A"]


def test_a_dry_run_shows_the_quote_and_takes_no_number(tmp_path: Path) -> None:
    with started(tmp_path, 1000) as daemon:
        asked = ("-n", "4", "-t", "600", "--", "/bin/true")
        said = json.loads(daemon.run("qbatch", "submit", "--dry-run", "--json", *asked).stdout)
        assert said["quote"]["end"] - said["quote"]["start"] == 600_000_000
        first = daemon.run("qbatch", "submit", *asked).stdout.strip()
        text = daemon.run(
            "qbatch", "submit", "--dry-run", "-n", "4", "-t", "60", "--", "/bin/true"
        ).stdout
        assert "would accept it" in text
        assert "start " in text
        daemon.run("qbatch", "submit", "--dry-run", *asked, code=8)
        second = daemon.run(
            "qbatch", "submit", "-n", "1", "-t", "60", "--", "/bin/true"
        ).stdout.strip()
        assert [each.partition(".")[0] for each in (first, second)] == ["1", "2"]


def test_submissions_that_share_a_commit_are_judged_one_after_another(tmp_path: Path) -> None:
    with started(tmp_path, 1000) as daemon, daemon.session() as session:
        requests = [
            Submit(spec=Spec(script="x\n", resources={"ncpus": "4", "walltime": "300"}))
            for _ in range(8)
        ]
        answers = []
        for request in requests:
            try:
                answers.append(session.ask(request, SubmissionRecord).job)
            except Refusal as error:
                answers.append(error.reason)
        assert answers == ["1.qbatch", "2.qbatch", "3.qbatch", *["too-late"] * 5]


def test_nothing_acknowledged_is_lost_and_no_promise_changes_by_kill_9(tmp_path: Path) -> None:
    chance = random.Random(3)
    daemon = started(tmp_path, 3000)
    accepted: dict[str, str] = {}
    refused: set[str] = set()
    is_over = threading.Event()

    def submit(client: int) -> None:
        draw = random.Random(client)
        number = 0
        while not is_over.is_set():
            number += 1
            time.sleep(0.01)
            key = f"{client}-{number}"
            resources = {
                "ncpus": str(draw.randrange(1, 5)),
                "walltime": str(draw.choice((100, 300, 900))),
            }
            request = Submit(spec=Spec(script="x\n", name=f"k{key}", resources=resources), key=key)
            while not is_over.is_set():
                try:
                    with daemon.session() as session:
                        accepted[session.ask(request, SubmissionRecord).job] = f"k{key}"
                    break
                except Refusal as error:
                    if error.code == "refused-by-policy":
                        refused.add(error.job)
                        break
                    time.sleep(0.02)
                except Exception:
                    time.sleep(0.02)

    clients = [threading.Thread(target=submit, args=(client,)) for client in range(3)]
    for each in clients:
        each.start()
    for _ in range(5):
        time.sleep(chance.uniform(0.2, 0.8))
        daemon.kill()
        daemon.start()
    is_over.set()
    for each in clients:
        each.join()
    jobs = {job.id: job for job in daemon.jobs(*accepted).values()}
    assert len(accepted) > 5
    assert len(refused) > 5
    assert {job.id: job.name for job in jobs.values()} == accepted
    assert all(job.state in "QR" and job.refused is None for job in jobs.values())
    some = sorted(refused)[:900]
    gone = daemon.jobs(*some)
    assert all(gone[job].refused is not None and gone[job].state == "F" for job in some)
    promises = {job.id: job.promised for job in jobs.values()}
    assert all(at is not None for at in promises.values())
    daemon.kill()
    daemon.start()
    with daemon:
        assert {job.id: job.promised for job in daemon.jobs(*accepted).values()} == promises
        assert not any(job.broken for job in daemon.jobs(*accepted).values())
        with daemon.session() as session:
            assert session.ask(Check(), Text).text


def test_a_broken_promise_is_in_the_record_after_a_kill_9(tmp_path: Path) -> None:
    daemon = started(tmp_path, 100_000, ",order=sjf")
    ids = [
        daemon.submit(resources={"ncpus": "4", "walltime": str(each)}) for each in (500, 400, 300)
    ]
    before = daemon.jobs(*ids)
    assert [len(before[each].broken) for each in ids] == [0, 1, 0]
    assert before[ids[1]].promised is not None
    assert "the promised start is lost" in before[ids[1]].comment
    daemon.kill()
    daemon.start()
    with daemon:
        assert daemon.jobs(*ids)[ids[1]].broken == before[ids[1]].broken
        assert daemon.jobs(*ids)[ids[1]].promised == before[ids[1]].promised


def test_a_policy_that_fails_before_the_answer_fails_one_submission(tmp_path: Path) -> None:
    config = CONFIG.format(most=1, more="").replace("Bounded:most=1", "Faulty")
    with Daemon(tmp_path, config=config) as daemon:
        first = daemon.submit(resources={"ncpus": "1", "walltime": "300"})
        with pytest.raises(Refusal, match="three") as caught:
            daemon.submit(resources={"ncpus": "3"})
        assert caught.value.code == "failed"
        second = daemon.submit(resources={"ncpus": "1", "walltime": "300"})
        assert [first, second] == ["1.qbatch", "2.qbatch"]
        assert [job.state for job in daemon.jobs(first, second).values()] == ["R", "R"]
