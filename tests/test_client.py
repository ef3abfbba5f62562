from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from qbatch.client import ClientSession, ConnectionLost, NoDaemon
from qbatch.wire.errors import Refusal
from qbatch.wire.frames import encode
from qbatch.wire.paths import UnsafeDirectory
from qbatch.wire.records import EventRecord, JobRecord, Jobs, Outcomes, SubmissionRecord
from qbatch.wire.requests import Delete, JobStatus, ServerStatus, Spec, Submit
from tests.wire.fake_server import FakeServer


def job(number: int) -> JobRecord:
    return JobRecord(id=f"{number}.qbatch", name="j", user="u", queue="batch", state="Q")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[FakeServer]:
    with FakeServer(tmp_path / "s.sock", [job(number) for number in range(1, 26)]) as server:
        yield server


def test_pages_are_followed_to_the_end(server: FakeServer) -> None:
    server.page = 10
    with ClientSession(server.path) as session:
        assert [each.id for each in session.jobs()] == [
            f"{number}.qbatch" for number in range(1, 26)
        ]
    assert [request.after for request in server.requests] == ["", "10.qbatch", "20.qbatch"]


def test_answers_in_pieces_of_one_byte_are_put_together(server: FakeServer) -> None:
    server.piece = 1
    with ClientSession(server.path) as session:
        assert len(session.ask(JobStatus(), Jobs).jobs) == 25


def test_an_answer_of_many_megabytes_arrives(server: FakeServer) -> None:
    big = JobRecord(id="1.qbatch", name="x" * 40_000_000, user="u", queue="batch", state="Q")
    server.jobs = {"1.qbatch": big}
    with ClientSession(server.path) as session:
        assert session.ask(JobStatus(), Jobs).jobs == (big,)


def test_a_refusal_is_raised_with_its_codes(server: FakeServer) -> None:
    with ClientSession(server.path) as session:
        with pytest.raises(Refusal) as caught:
            session.ask(JobStatus(queues=("nope",)), Jobs)
        assert (caught.value.code, caught.value.pbs, caught.value.exit_code) == (
            "unknown-queue",
            15018,
            6,
        )
        with pytest.raises(Refusal) as caught:
            session.ask(JobStatus(v=99), Jobs)
        assert (caught.value.code, caught.value.exit_code) == ("protocol-version", 9)
        with pytest.raises(Refusal) as caught:
            session.ask(Submit(spec=Spec(script="x" * 2_000_000)), SubmissionRecord)
        assert caught.value.code == "too-large"
        assert len(session.ask(JobStatus(), Jobs).jobs) == 25


def test_where_no_server_listens_the_message_says_what_to_do(tmp_path: Path) -> None:
    path = str(tmp_path / "absent.sock")
    with pytest.raises(NoDaemon, match="start one with: qbatch up") as caught, ClientSession(path):
        pass
    assert path in str(caught.value)
    assert (caught.value.exit_code, caught.value.number) == (5, 2)


def test_a_submission_whose_connection_breaks_is_sent_again_under_one_key(
    server: FakeServer,
) -> None:
    server.drop_next = 2
    with ClientSession(server.path) as session:
        first = session.ask(Submit(spec=Spec(script="")), SubmissionRecord).job
        second = session.ask(Submit(spec=Spec(script="")), SubmissionRecord).job
    keys = [request.key for request in server.requests]
    assert (first, second) == ("1.qbatch", "2.qbatch")
    assert keys[0] == keys[1] == keys[2] != keys[3]
    assert all(keys)


def test_a_question_is_asked_again_and_another_command_is_not(server: FakeServer) -> None:
    with ClientSession(server.path) as session:
        server.drop_next = 1
        assert session.ask(JobStatus(), Jobs).jobs
        server.drop_next = 1
        with pytest.raises(ConnectionLost, match="may have been carried out") as caught:
            session.ask(Delete(jobs=("1",)), Outcomes)
        assert caught.value.exit_code == 5
        assert session.ask(Delete(jobs=("1",)), Outcomes).outcomes[0].error is None
    assert sum(isinstance(request, Delete) for request in server.requests) == 2


def test_a_daemon_that_starts_again_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "s.sock"
    first = FakeServer(path)
    with ClientSession(str(path)) as session:
        session.connect()
        first.drop_next = 100
        first.overrides["Submit"] = lambda request: (
            first.stop(),
            SubmissionRecord(job="9.qbatch"),
        )[1]
        again: list[FakeServer] = []
        threading.Thread(target=lambda: (time.sleep(0.4), again.append(FakeServer(path)))).start()
        assert session.ask(Submit(spec=Spec(script="")), SubmissionRecord).job == "1.qbatch"
        again[0].stop()
        session.patience = 0.1
        session.close()
        with pytest.raises(NoDaemon):
            session.ask(JobStatus(), Jobs)


def test_silence_ends_in_a_timeout(server: FakeServer) -> None:
    server.overrides["ServerStatus"] = lambda request: (time.sleep(1), server.server)[1]
    with (
        ClientSession(server.path, timeout=0.1) as session,
        pytest.raises(Refusal, match=r"within 0\.1 s") as caught,
    ):
        session.ask(ServerStatus(), Jobs)
    assert caught.value.code == "timeout"
    with ClientSession(server.path, timeout=0.1) as session:
        assert session.ask(ServerStatus(), type(server.server), timeout=None).name == "qbatch"


@pytest.mark.parametrize(
    "garbage",
    [
        b"\0\0\0\0",
        b"HTTP/1.1 400 Bad Request\r\n",
        encode(b"not json"),
        encode(b'{"id":1,"result":{"jobs":5}}'),
    ],
)
def test_garbage_is_a_matter_of_versions(garbage: bytes, server: FakeServer) -> None:
    server.garbage = garbage
    with (
        ClientSession(server.path) as session,
        pytest.raises(Refusal, match="cannot be read") as caught,
    ):
        session.ask(JobStatus(), Jobs)
    assert caught.value.code == "protocol-version"


def test_events_come_in_order_and_the_end_of_the_stream_is_said(server: FakeServer) -> None:
    server.events = [
        EventRecord(number=number, at=0, kind="submitted", job="1.qbatch") for number in (1, 2, 3)
    ]
    with ClientSession(server.path) as session:
        stream = session.events()
        assert [next(stream).number for _ in range(3)] == [1, 2, 3]
        threading.Timer(0.1, lambda: [each.shutdown(2) for each in server._open]).start()
        with pytest.raises(ConnectionLost):
            next(stream)


def test_fifty_at_once_are_all_served(server: FakeServer) -> None:
    counts: list[int] = []

    def ask() -> None:
        with ClientSession(server.path) as session:
            counts.append(len(session.ask(JobStatus(), Jobs).jobs))

    threads = [threading.Thread(target=ask) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [25] * 50


def test_the_client_and_the_short_commands_import_little() -> None:
    code = (
        "import sys, qbatch.client, qbatch.cli.pbs.qstat, qbatch.cli.pbs.qsub\n"
        "print(sorted(set(sys.modules) & {'asyncio', 'typer', 'rich', 'numpy', 'argparse', "
        "'dataclasses', 'json', "
        "'pathlib', 'shlex', 'subprocess', 'click', 'numba', 'tomllib'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_socket_that_others_may_have_put_there_is_refused(
    server: FakeServer, tmp_path: Path
) -> None:
    with ClientSession(server.path) as session:
        assert len(session.ask(JobStatus(), Jobs).jobs) == 25
    tmp_path.chmod(0o777)
    with (
        pytest.raises(UnsafeDirectory, match=rf"others may write to {tmp_path} \(mode 0777\)"),
        ClientSession(server.path),
    ):
        pass
    done = subprocess.run(
        [sys.executable, "-m", "qbatch", "jobs"],
        env=os.environ | {"QBATCH_SOCKET": server.path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (7, "", 1)
    assert f"the socket {server.path} may not be the daemon's" in done.stderr


@pytest.mark.skipif(os.getuid() != 0, reason="needs root: files of other users")
def test_a_service_of_another_user_is_asked_but_not_where_everyone_may_put_a_socket(
    server: FakeServer, tmp_path: Path
) -> None:
    service = 30001
    os.chown(server.path, service, service)
    os.chown(tmp_path, service, service)
    tmp_path.chmod(0o755)
    with ClientSession(server.path) as session:
        assert len(session.ask(JobStatus(), Jobs).jobs) == 25
    os.chown(tmp_path, 0, 0)
    tmp_path.chmod(0o1777)
    with (
        pytest.raises(UnsafeDirectory, match=f"belongs to user {service}"),
        ClientSession(server.path),
    ):
        pass
