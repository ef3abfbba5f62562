"""No client waits for the large request of another: others are answered between its steps, and it
is whole after a kill."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest

from qbatch.wire.records import Outcomes, Queues, SubmissionRecord, Text
from qbatch.wire.requests import Delete, QueueControl, QueueStatus, Reload, Request, Spec, Submit
from tests.daemon.harness import Daemon, emulated
from tests.daemon.hostile.tools import Raw, check

MANY = 4000
CONFIG = emulated()
Answer = TypeVar("Answer", bound=msgspec.Struct)
ARRAY = Submit(spec=Spec(script="sleep 1000\n", array=f"1-{MANY}"))
ONE = Submit(spec=Spec(script="sleep 1000\n"))


def waiting(daemon: Daemon) -> int:
    """Return how many jobs are in the queue."""
    with daemon.session() as session:
        return sum(session.ask(QueueStatus(queues=("batch",)), Queues).queues[0].counts.values())


def answered_meanwhile(daemon: Daemon, large: Request, kind: type[Answer]) -> tuple[int, Answer]:
    """Return how many submissions of another client are answered between the sending of a large
    request and its answer."""
    is_over, answers = threading.Event(), []

    def ask() -> None:
        with daemon.session() as session:
            answers.append(session.ask(large, kind))
            is_over.set()

    thread, count = threading.Thread(target=ask), 0
    with daemon.session() as other:
        other.ask(ONE, SubmissionRecord)
        thread.start()
        while not is_over.is_set():
            other.ask(ONE, SubmissionRecord)
            count += 1
    thread.join()
    return count, answers[0]


def test_submissions_are_answered_between_the_steps_of_a_large_request(tmp_path: Path) -> None:
    with Daemon(tmp_path, config=CONFIG).start() as daemon:
        count, made = answered_meanwhile(daemon, ARRAY, SubmissionRecord)
        assert count > 5
        for large in (
            QueueControl(queues=("batch",), started=False),
            QueueControl(queues=("batch",), started=True),
            Delete(jobs=(made.job,)),
        ):
            count, said = answered_meanwhile(daemon, large, Outcomes)
            assert count > 5, large
            assert [each.error for each in said.outcomes] == [None]
        assert "all counts, run limits, hosts and rows agree" in check(daemon)
        assert made.job not in daemon.jobs(finished="no")


def test_no_job_of_an_array_starts_while_it_is_deleted(tmp_path: Path) -> None:
    with Daemon(tmp_path, config=CONFIG).start() as daemon:
        array = daemon.submit("sleep 1000\n", array=f"1-{MANY}", hold="u")
        daemon.run("qrls", array)
        daemon.run("qdel", array)
        assert daemon.jobs(finished="no") == {}


@pytest.mark.parametrize("kills", [1, 3])
def test_a_large_request_that_was_under_way_at_a_kill_is_finished_after_it(
    tmp_path: Path, kills: int
) -> None:
    with Daemon(tmp_path, config=CONFIG).start() as daemon:
        array = daemon.submit("sleep 1000\n", array=f"1-{MANY}")
        left = waiting(daemon)
        raw = Raw(daemon.socket)
        raw.send(msgspec.json.encode(Delete(jobs=(array,))))
        for _ in range(kills):
            while waiting(daemon) in (left, 0):
                pass
            left = waiting(daemon)
            daemon.submit("true\n", hold="u")  # its answer follows the commit of what was seen
            daemon.kill()
            daemon.start()
        live = daemon.jobs(finished="no")
        while array in live:
            live = daemon.jobs(finished="no")
        assert [job.name for job in live.values()] == ["STDIN"] * kills
        assert "all counts, run limits, hosts and rows agree" in check(daemon)


def test_a_new_configuration_is_kept_without_a_snapshot(tmp_path: Path) -> None:
    with Daemon(tmp_path, config=CONFIG).start() as daemon:
        for _ in range(3):
            daemon.submit("sleep 1000\n")
        before = sorted(path.name for path in daemon.state.glob("snapshot-*"))
        (tmp_path / "qbatch.toml").write_text(
            CONFIG + '[[queue]]\nname = "more"\nmax_running = 1\n', encoding="utf-8"
        )
        with daemon.session() as session:
            said = session.ask(Reload(), Text)
        assert 'name = "more"' in said.text
        jobs = [daemon.submit("sleep 1000\n", queue="more") for _ in range(2)]
        daemon.until(jobs[0], "R")
        assert sorted(path.name for path in daemon.state.glob("snapshot-*")) == before
        daemon.kill()
        daemon.start()
        found = daemon.jobs()
        assert [found[job].state for job in jobs] == ["R", "Q"]
        backup = tmp_path / "backup"
        daemon.run("qbatch", "backup", str(backup))
        daemon.kill()
        daemon.run("qbatch", "restore", str(backup))
        daemon.start()
        assert set(daemon.jobs(finished="no")) == set(found)
