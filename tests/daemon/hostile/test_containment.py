"""A bug in one command, question, report or pass ends neither the daemon nor what was
acknowledged."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from qbatch.wire.errors import Refusal
from qbatch.wire.records import Outcomes, SubmissionRecord, Trails
from qbatch.wire.requests import Alter, Changes, Message, Release, Spec, Submit, Trail
from tests.daemon.harness import Daemon
from tests.daemon.hostile.tools import EMULATED, REAL, Raw, check, until


class Broken(Daemon):
    """A daemon with bugs, as :mod:`tests.daemon.hostile.broken_daemon` says."""

    def command(self, state: Path | None = None) -> list[str]:
        """Return the command that serves with bugs."""
        words = super().command(state)
        words[words.index("qbatch")] = "tests.daemon.hostile.broken_daemon"
        return words

    @property
    def pid(self) -> int:
        """The process."""
        assert self.process is not None
        assert self.process.poll() is None, self.log()[-3000:]
        return self.process.pid


@pytest.fixture
def broken(tmp_path: Path) -> Iterator[Broken]:
    with Broken(tmp_path, config=EMULATED) as daemon:
        yield daemon


def breaking(daemon: Daemon, job: str) -> Refusal:
    with daemon.session() as session, pytest.raises(Refusal) as refused:
        session.ask(Message(jobs=(job,), text="x"), Outcomes)
    return refused.value


def test_a_command_that_raises_is_refused_and_has_changed_nothing(broken: Broken) -> None:
    running = broken.submit("sleep 500\n")
    broken.until(running, "R")
    held = broken.submit("sleep 500\n", hold="u")
    before, pid = broken.jobs(), broken.pid
    refusal = breaking(broken, held)
    assert refusal.code == "failed"
    digest = re.search(r"frame ([0-9a-f]{16})", str(refusal))
    assert digest is not None
    assert broken.jobs() == before
    assert "integrity ok" in check(broken)
    log = broken.log()
    assert digest[1] in log
    assert "ZeroDivisionError: a bug in message" in log
    assert broken.submit("true\n") == "3.qbatch"  # no number is lost either
    assert broken.pid == pid


def test_the_same_frame_is_not_tried_again_at_once(broken: Broken) -> None:
    job = broken.submit("sleep 500\n", hold="u")
    for _ in range(3):
        breaking(broken, job)
    assert broken.log().count("Traceback") == 1
    assert "not tried again" in str(breaking(broken, job))


def test_what_was_taken_around_it_is_kept_and_what_follows_waits_for_the_state(
    broken: Broken,
) -> None:
    count = 50
    with Raw(broken.socket) as raw:
        for number in range(count):
            raw.send({"verb": "submit", "id": number, "spec": {"script": "sleep 500", "hold": "u"}})
            if number % 10 == 5:
                raw.send(
                    {"verb": "message", "id": 1000 + number, "jobs": ["1"], "text": f"{number}"}
                )
        replies = {}
        while len(replies) < count + count // 10:
            reply = raw.receive()
            assert reply is not None
            replies[reply["id"]] = reply
    assert [replies[number]["result"]["job"] for number in range(count)] == [
        f"{n + 1}.qbatch" for n in range(count)
    ]
    assert {reply["error"]["code"] for number, reply in replies.items() if number >= 1000} == {
        "failed"
    }
    assert len(broken.jobs()) == count
    assert broken.kill() == -signal.SIGKILL
    broken.start()
    assert len(broken.jobs()) == count
    assert "integrity ok" in check(broken)


def test_a_question_that_raises_is_refused_alone(broken: Broken) -> None:
    job, pid = broken.submit("sleep 500\n"), broken.pid
    with broken.session() as session:
        with pytest.raises(Refusal, match="LookupError: a bug in trail"):
            session.ask(Trail(job=job), Trails)
        session.ask(Submit(spec=Spec(script="true")), SubmissionRecord)
    assert broken.pid == pid


def test_a_job_that_no_pass_can_take_in_is_held_and_the_others_run(
    broken: Broken, tmp_path: Path
) -> None:
    first, pid = broken.submit("sleep 500\n"), broken.pid
    broken.until(first, "R")
    poison = broken.submit("true\n", name="poison")
    job = broken.until(poison, "H")
    assert "the pass that was to schedule it failed" in job.comment
    other = broken.submit("sleep 500\n")
    broken.until(other, "R")
    assert broken.jobs()[first].state == "R"
    assert broken.pid == pid
    assert broken.kill() == -signal.SIGKILL
    broken.start()  # it is not run into again
    assert broken.until(poison, "H").comment == job.comment
    assert broken.kill(signal.SIGTERM) == 0
    with Daemon(tmp_path, config=EMULATED) as mended:
        with mended.session() as session:
            session.ask(Release(jobs=(poison,), kinds="s"), Outcomes)
        mended.until(poison, "R")


def test_a_report_that_cannot_be_taken_costs_its_job_only(tmp_path: Path) -> None:
    with Broken(tmp_path, config=REAL) as daemon:
        pid = daemon.pid
        good = daemon.submit("sleep 1; exit 3\n")
        bad = daemon.submit("exit 4\n", name="bad-end", is_rerunnable=False)
        assert daemon.until(bad, "F").comment.startswith(
            "LOST: the report of its end cannot be taken"
        )
        assert daemon.until(good, "F").exit_status == 3
        never = daemon.submit("exit 5\n", name="no-start")
        job = daemon.until(never, "F")
        assert job.exit_status == -1
        assert "a bug in attempts" in job.comment
        assert daemon.pid == pid
        until(lambda: not list((daemon.state / "run").glob("*.[0-9]")), "run directories are gone")


def test_a_reload_that_raises_leaves_the_state_as_it_was(broken: Broken) -> None:
    job = broken.submit("sleep 500\n", hold="u")
    (broken.directory / "qbatch.toml").write_text("not toml [", encoding="utf-8")
    done = broken.run("qbatch", "reload", code=3)
    assert "Traceback" not in done.stderr
    assert broken.jobs()[job].state == "H"
    with broken.session() as session:
        session.ask(Release(jobs=(job,)), Outcomes)
    broken.until(job, "R")


def test_the_door_refuses_it_by_name(broken: Broken) -> None:
    for resources, said in (
        ({"vmem": "hybrid:depth=3"}, "vmem: 'hybrid:depth=3' is no size"),
        ({"pcput": "x"}, "pcput: 'x' is no time"),
        ({"select": "1:ncpus=1:mpiprocs=1000001"}, "1000001 lines in the node file"),
        ({"bad name": "x"}, "'bad name' cannot be the name of a resource"),
    ):
        with pytest.raises(Refusal, match=re.escape(said)):
            broken.submit(resources=resources)
    job = broken.submit(hold="u")
    with broken.session() as session, pytest.raises(Refusal, match="mem: 'x' is no size"):
        session.ask(Alter(jobs=(job,), changes=Changes(resources={"mem": "x"})), Outcomes)
