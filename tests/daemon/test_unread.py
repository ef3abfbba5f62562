"""Clients that do not read: what the daemon keeps for them is bounded, shared between subscribers,
and given back."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from qbatch.daemon.questions.lists import MOST_BYTES
from qbatch.daemon.unread import (
    LITTLE_OF_CONNECTION,
    LITTLE_OF_USER,
    MOST_OF_ALL,
    MOST_OF_USER,
    Unread,
)
from qbatch.wire.errors import Refusal
from qbatch.wire.frames import encode
from qbatch.wire.records import Hosts, JobRecord, Jobs, Outcomes, ServerRecord, SubmissionRecord
from qbatch.wire.requests import (
    Delete,
    History,
    Hold,
    HostStatus,
    JobStatus,
    Release,
    ServerStatus,
    Spec,
    Submit,
)
from tests.daemon.harness import Daemon, emulated
from tests.daemon.hostile.test_permissions import ask
from tests.daemon.hostile.tools import Raw, needs_root, rss, settled_rss, until

MB = 1_000_000
JOBS, ENDED = 1000, 100
NAMES = tuple(str(number) for number in range(1, JOBS + 1))
SUBSCRIBE = b'{"verb":"subscribe"}'


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon with jobs of 8 KB each, some of which have ended."""
    with Daemon(tmp_path_factory.mktemp("unread"), config=emulated()) as found:
        spec = Spec(script="sleep 9000\n", directory="/", hold="u", variables={"A": "x" * 8000})
        with found.session() as session:
            for _ in NAMES:
                session.ask(Submit(spec=spec), SubmissionRecord)
            session.ask(Delete(jobs=NAMES[:ENDED]), Outcomes)
        settled_rss(found)
        yield found


def deaf(daemon: Daemon, question: bytes, times: int = 1) -> Raw:
    """Ask and do not read."""
    raw = Raw(daemon.socket)
    raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
    raw.socket.setblocking(False)
    try:
        for _ in range(times):
            raw.socket.sendall(encode(question))
    except BlockingIOError:
        pass
    return raw


def memory(daemon: Daemon) -> int:
    assert daemon.process is not None
    return rss(daemon.process.pid)


def grown(daemon: Daemon, before: int) -> int:
    """Return by how much the daemon has grown when it has done what it does for all; short
    questions are answered meanwhile."""
    found: list[int] = []
    with daemon.session() as session:
        while len(found) < 10 or found[-1] > found[-5] + MB:
            assert len(found) < 300, found
            for _ in range(200):
                assert session.ask(ServerStatus(), ServerRecord).total
            found.append(memory(daemon))
    return found[-1] - before


@pytest.mark.parametrize("finished", ["no", "also"])
def test_long_listings_that_no_client_reads_take_little_memory_and_give_it_back(
    daemon: Daemon, finished: str
) -> None:
    before = memory(daemon)
    question = b'{"verb":"job-status","finished":"%s","limit":1000}' % finished.encode()
    clients = [deaf(daemon, question, 50) for _ in range(60)]
    assert grown(daemon, before) < 60 * MB  # one page of each would be 500 MB
    for raw in clients:
        raw.close()
    until(lambda: memory(daemon) < before + 10 * MB, "the memory comes back")


def test_events_that_no_client_reads_are_there_once(daemon: Daemon) -> None:
    before = memory(daemon)
    clients = [deaf(daemon, SUBSCRIBE) for _ in range(40)]
    with daemon.session() as session:
        for _ in range(3):
            session.ask(Release(jobs=NAMES[ENDED:]), Outcomes)
            session.ask(Hold(jobs=NAMES[ENDED:], kinds="u"), Outcomes)
    assert grown(daemon, before) < 150 * MB  # 45 MB of events; for each client they would be 1.8 GB
    # One that begins to read gets all of them, in order.
    late = clients[0]
    late.socket.settimeout(60)
    reply = late.receive()
    assert reply is not None
    last = int(reply["result"]["text"])
    for _ in range(5000):
        event = late.receive()
        assert event is not None
        if event["event"]["kind"] == "clock":
            continue
        assert event["event"]["number"] == last + 1
        last += 1
    for raw in clients:
        raw.close()


def test_a_client_that_reads_late_gets_every_answer_in_order(daemon: Daemon) -> None:
    raw = Raw(daemon.socket)
    raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
    raw.socket.sendall(
        b"".join(
            encode(b'{"verb":"job-status","id":%d,"limit":20}' % number) for number in range(300)
        )
    )
    for number in range(300):
        reply = raw.receive()
        assert reply is not None
        assert reply["id"] == number
        assert len(reply["result"]["jobs"]) == 20
    raw.close()


def test_a_page_has_so_many_bytes_and_the_pages_are_the_whole(daemon: Daemon) -> None:
    def size(page: Jobs) -> int:
        return len(msgspec.json.encode(page.jobs))

    with daemon.session() as session:
        for finished, jobs, count in (
            ("no", (), JOBS - ENDED),
            ("also", (), JOBS),
            ("only", (), ENDED),
            ("also", NAMES, JOBS),
        ):
            pages = list(session.pages(JobStatus(jobs=jobs, finished=finished)))
            assert max(map(size, pages)) < MOST_BYTES + 10_000
            names = [job.id.partition(".")[0] for page in pages for job in page.jobs]
            first = 0 if count == JOBS else ENDED if finished == "no" else 0
            assert names == list(NAMES[first : first + count])
        found: list[JobRecord] = []
        page = session.ask(History(limit=1000), Jobs)
        while True:
            assert size(page) < MOST_BYTES + 10_000
            found += page.jobs
            if not page.next:
                break
            page = session.ask(History(limit=1000, after=page.next), Jobs)
        assert sorted(int(job.id.partition(".")[0]) for job in found) == list(range(1, ENDED + 1))


def test_a_job_that_is_longer_than_a_page_is_a_page(tmp_path: Path) -> None:
    with Daemon(tmp_path, config=emulated()) as daemon, daemon.session() as session:
        for size in (10, 100_000, 10, 10):
            variables = {"A": "\x01" * size}  # six letters each in JSON
            session.ask(
                Submit(spec=Spec(script="sleep 9\n", directory="/", hold="u", variables=variables)),
                SubmissionRecord,
            )
        pages = list(session.pages(JobStatus()))
        assert [[job.id for job in page.jobs] for page in pages] == [
            ["1.qbatch"],
            ["2.qbatch"],
            ["3.qbatch", "4.qbatch"],
        ]


def test_an_answer_that_no_client_would_read_is_refused(tmp_path: Path) -> None:
    queues = "\n".join(f'[[queue]]\nname = "queue-{number}"' for number in range(100))
    with Daemon(tmp_path, config=emulated(queues=queues)) as daemon, daemon.session() as session:
        # A host names its queues.
        with pytest.raises(Refusal, match="ask for less at once") as error:
            session.ask(HostStatus(hosts=("n1",) * 80_000), Hosts)
        assert error.value.code == "too-large"
        assert len(session.ask(HostStatus(hosts=("n1",) * 1000), Hosts).hosts) == 1000


class Client:
    """A client of a user with so many bytes unread."""

    def __init__(self, uid: int, unread: int) -> None:
        self.uid = uid
        self.unread = unread
        self.tried = 0

    def may_go_on(self) -> None:
        self.tried += 1


def test_long_answers_of_a_user_wait_until_enough_is_read() -> None:
    async def go() -> None:
        unread = Unread()
        hanging = [Client(1, MOST_OF_USER // 2) for _ in range(2)]
        asks, other = Client(1, 0), Client(2, 0)
        for each in hanging:
            unread.note(each)
        assert not unread.must_wait(asks, is_long=True)
        asks.unread = 1
        unread.note(asks)
        assert unread.must_wait(asks, is_long=True)
        assert not unread.must_wait(asks, is_long=False)
        assert unread.must_wait(hanging[0], is_long=False)  # it has not read its last answers
        assert not unread.must_wait(other, is_long=True)
        await asyncio.sleep(0.2)
        assert asks.tried == 0
        hanging[0].unread = LITTLE_OF_CONNECTION  # as if no client had read anything
        while not asks.tried:
            await asyncio.sleep(0.01)
        assert not unread.must_wait(asks, is_long=True)
        hanging[1].unread = hanging[0].unread = MOST_OF_USER
        for each in hanging:
            unread.note(each)
        assert unread.must_wait(asks, is_long=True)
        for each in hanging:
            each.unread = 0
            unread.forget(each)
        assert not unread.must_wait(asks, is_long=True)

    asyncio.run(go())


def test_beyond_the_limit_of_all_those_with_little_unread_are_answered() -> None:
    async def go() -> None:
        unread = Unread()
        for uid in range(1, 2 + MOST_OF_ALL // MOST_OF_USER):
            unread.note(Client(uid, MOST_OF_USER))
        some, little = Client(100, LITTLE_OF_USER + 1), Client(101, LITTLE_OF_USER)
        for each in (some, little):
            unread.note(each)
        assert unread.must_wait(some, is_long=True)
        assert not unread.must_wait(little, is_long=True)

    asyncio.run(go())


@needs_root
@pytest.mark.skipif(shutil.which("prlimit") is None, reason="needs prlimit")
def test_no_user_takes_all_connections() -> None:
    with tempfile.TemporaryDirectory(prefix="qbatch-open-") as place:
        os.chmod(place, 0o755)
        with Daemon(Path(place), config=emulated()).start(
            wrap=("prlimit", "--nofile=160:160")
        ) as daemon:
            os.chmod(daemon.socket, 0o666)
            clients = []
            while True:  # 80 are taken, 70 of one user
                clients.append(Raw(daemon.socket))
                reply = clients[-1].ask({"verb": "hello"})
                assert reply is not None
                if "error" in reply:
                    break
            assert reply["error"]["code"] == "busy"
            assert len(clients) == 71
            (said,) = ask(daemon, 65534, {"verb": "hello"})
            assert "result" in said
            for raw in clients:
                raw.close()
