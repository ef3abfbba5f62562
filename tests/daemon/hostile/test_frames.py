"""Frames that no client of ours sends, and clients that behave as none of ours does: no other
client notices."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qbatch.client import ClientSession
from qbatch.daemon import connection
from qbatch.daemon.connection import STALLED
from qbatch.wire.frames import FrameError, Splitter, encode
from qbatch.wire.records import ServerRecord
from qbatch.wire.requests import AnyRequest, ServerStatus
from tests.daemon.harness import Daemon
from tests.daemon.hostile.tools import EMULATED, Raw, check, rss, settled_rss
from tests.harness import size

HUGE = 10**25
DECODER = msgspec.json.Decoder(AnyRequest)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with Daemon(
        tmp_path_factory.mktemp("frames"), "--time", "virtual", config=EMULATED
    ).start() as running:
        running.submit("sleep 100\n", hold="u")
        yield running


RESET: list[dict[str, Any]] = [
    {"verb": "queue-control", "queues": ["batch"], "enabled": True, "started": True},
    {"verb": "fault", "kind": "clear"},
    {"verb": "host-control", "hosts": ["n1"], "action": "up"},
    {"verb": "time", "action": "play", "speed": 0.0},
]


def sentinel(daemon: Daemon) -> None:
    """A daemon that is well takes a submission and ends it."""
    assert daemon.process is not None
    assert daemon.process.poll() is None, daemon.log()[-3000:]
    with Raw(daemon.socket) as raw:  # whoever may do everything may also have closed the queue
        for body in RESET:
            raw.ask(body)
    daemon.submit("sleep 1\n", name="sentinel")
    assert "Traceback" not in daemon.log(), daemon.log()[-3000:]


numbers = st.one_of(
    st.integers(),
    st.sampled_from([0, -1, 2**31, 2**32, 2**53, 2**62, 2**63 - 1, 2**63, 2**64, HUGE, -HUGE]),
    st.sampled_from([1e308, -1e308, 5e-324, 0.5]),
)
texts = st.one_of(
    st.text(max_size=30),
    st.sampled_from(
        [
            "1",
            "2[]",
            "3[1]",
            "1.qbatch",
            "²",
            "٣",
            "\0",
            "\x1b[2J",
            "\u202e",
            "'; DROP TABLE history; --",
            "a\nb",
            "9" * 50,
            "afterok:1",
            "on:²",
            "before:1",
            "uos",
            "1-5%2",
            "0-9999999",
            "8:ncpus=4:mem=1gb",
            "1:00:00",
            "down",
            "pause",
            "until-end",
            "batch",
            "n1",
            "%s%n",
            "../../etc/passwd",
            "${PBS_JOBID}",
            "x" * 5000,
        ]
    ),
)
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=6,
)
VERBS = [
    kind.__struct_config__.tag
    for kind in AnyRequest.__args__
    if kind.__name__ not in ("Shutdown", "Backup")
]
FIELDS = sorted(
    {name for kind in AnyRequest.__args__ for name in kind.__struct_fields__} - {"path"}
)


RESOURCES = st.dictionaries(
    st.sampled_from(["ncpus", "mem", "select", "walltime", "nodes", "x"]), texts, max_size=3
)
JOB_FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "name": texts,
    "resources": RESOURCES,
    "hold": texts,
    "depend": texts,
    "output": texts,
    "shell": texts,
    "priority": st.integers(-2000, 2000),
    "not_before": numbers,
    "runtime": numbers,
    "umask": numbers,
    "variables": st.dictionaries(texts, texts, max_size=2),
}


def of_type(kind: Any) -> st.SearchStrategy[Any]:
    """Return values of about the right type: what gets past the decoder and reaches the
    handlers."""
    text = str(kind)
    if "Spec" in text or "Changes" in text:
        return st.fixed_dictionaries(
            {"script": st.sampled_from(["true", "sleep 5\nexit 3", "sleep " + "9" * 40])}
            if "Spec" in text
            else {},
            optional=JOB_FIELDS,
        )
    if "tuple[str" in text:
        return st.lists(texts, max_size=3)
    if "bool" in text:
        return st.booleans()
    if "int" in text or "float" in text:
        return numbers
    return texts


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    kind = draw(
        st.sampled_from(
            [
                each
                for each in AnyRequest.__args__
                if each.__name__ not in ("Shutdown", "Backup", "Wait")
            ]
        )
    )
    body: dict[str, Any] = {"verb": kind.__struct_config__.tag}
    for field in msgspec.structs.fields(kind):
        if field.name not in ("v", "id") and (field.required or draw(st.booleans())):
            body[field.name] = draw(of_type(field.type))
    return json.dumps(body).encode()


loose = st.one_of(
    st.binary(min_size=1, max_size=200),
    values.map(lambda value: json.dumps(value).encode() or b"0"),
    st.fixed_dictionaries(
        {"verb": st.sampled_from(VERBS)},
        optional={name: values for name in FIELDS if name not in ("verb",)},
    ).map(lambda value: json.dumps(value).encode()),
)


@given(loose | requests())
@settings(max_examples=size(200, 20_000))
def test_the_decoder_reads_a_request_or_says_why_not(body: bytes) -> None:
    request, reason = None, ""
    try:
        request = DECODER.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        reason = str(error)
    if request is None:
        assert reason
        return
    assert type(request) in AnyRequest.__args__
    assert DECODER.decode(msgspec.json.encode(request)) == request


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=6), st.integers(1, 9))
@settings(max_examples=size(200, 5000))
def test_frames_come_out_as_they_went_in_however_they_are_cut(
    bodies: list[bytes], piece: int
) -> None:
    stream = b"".join(encode(body) for body in bodies)
    splitter = Splitter(1000)
    found = [
        body
        for place in range(0, len(stream), piece)
        for body in splitter.feed(stream[place : place + piece])
    ]
    assert found == bodies
    assert splitter.is_empty


def test_a_length_that_is_not_allowed_ends_the_stream() -> None:
    for length in (0, 1001, 2**32 - 1):
        with pytest.raises(FrameError):
            Splitter(1000).feed(length.to_bytes(4, "big"))


def test_a_live_daemon_answers_whatever_comes(daemon: Daemon) -> None:
    count = 0
    with Raw(daemon.socket) as raw:

        @given(loose | requests())
        @settings(max_examples=size(200, 100_000))
        def go(body: bytes) -> None:
            nonlocal count
            count += 1
            raw.socket.sendall(encode(body) + encode(b'{"verb":"hello","id":77}'))
            while (reply := raw.receive()) is not None and not (
                reply.get("id") == 77 and "result" in reply
            ):
                assert "result" in reply or "error" in reply or "event" in reply
            assert reply is not None, (body, daemon.log()[-3000:])
            if count % 200 == 0:
                sentinel(daemon)

        go()
    assert "integrity ok" in check(daemon)
    assert daemon.kill() == -signal.SIGKILL
    daemon.start()  # whatever was taken can be taken again
    assert "integrity ok" in check(daemon)


NASTY = {
    "depth": b"[" * 200_000,
    "depth in a field": b'{"verb":"submit","spec":{"script":"x","extra":' + b'{"a":' * 100_000,
    "closed depth": b'{"a":' * 5000 + b"1" + b"}" * 5000,
    "twice the same key": b'{"verb":"hello","verb":"shutdown"}',
    "NaN": b'{"verb":"time","speed":NaN}',
    "Infinity": b'{"verb":"time","speed":-Infinity}',
    "1e999": b'{"verb":"time","action":"play","speed":1e999}',
    "lone surrogate": rb'{"verb":"submit","spec":{"script":"\ud800"}}',
    "half a pair": rb'{"verb":"explain","job":"\udc00x"}',
    "no UTF-8": b'{"verb":"explain","job":"\xff\xfe"}',
    "NUL": rb'{"verb":"submit","spec":{"script":"\u0000"}}',
    "NUL in the name": rb'{"verb":"submit","spec":{"script":"x","name":"a\u0000b"}}',
    "many digits": b'{"verb":"time","at":' + b"9" * 100_000 + b"}",
    "huge": b'{"verb":"history","since":' + str(HUGE).encode() + b"}",
    "history of 2**63": b'{"verb":"history","since":9223372036854775808}',
    "huge status": b'{"verb":"history","status":"99999999999999999999999"}',
    "long pattern": b'{"verb":"history","name":"' + b"*a" * 30_000 + b'"}',
    "superscript signal": '{"verb":"signal","jobs":["1"],"signal":"²"}'.encode(),
    "long signal": b'{"verb":"signal","jobs":["1"],"signal":"' + b"9" * 5000 + b'"}',
    "superscript count": '{"verb":"submit","spec":{"script":"x","depend":"on:²"}}'.encode(),
    "long count": b'{"verb":"submit","spec":{"script":"x","depend":"on:' + b"9" * 5000 + b'"}}',
    "huge fate": b'{"verb":"submit","spec":{"script":"x","fate":' + str(HUGE).encode() + b"}}",
    "huge release": b'{"verb":"alter","jobs":["1"],"changes":{"not_before":'
    + str(HUGE).encode()
    + b"}}",
    "long sleep": b'{"verb":"submit","spec":{"script":"sleep ' + b"9" * 400 + b'"}}',
    "fine sleep": b'{"verb":"submit","spec":{"script":"sleep 0.123456789"}}',
    "name too long": b'{"verb":"submit","spec":{"script":"x","name":"' + b"n" * 900_000 + b'"}}',
    "long path": b'{"verb":"backup","path":"/tmp/' + b"x" * 5000 + b'"}',
    "type": b'{"verb":"hold","jobs":"1"}',
    "unknown field": b'{"verb":"hello","uid":0}',
    "version": b'{"verb":"hello","v":' + str(HUGE).encode() + b"}",
    "nothing": b" ",
    "big wait": b'{"verb":"wait","jobs":["999999999999999[999999999]"]}',
}


@pytest.mark.parametrize("what", NASTY)
def test_a_nasty_frame_is_answered_and_the_next_one_too(daemon: Daemon, what: str) -> None:
    with Raw(daemon.socket) as raw:
        reply = raw.ask(NASTY[what])
        assert reply is not None, daemon.log()[-2000:]
        (outcome,) = reply.get("result", {}).get("outcomes", [{}])[:1]
        assert "error" in {**reply, **outcome} or what in ("long sleep", "fine sleep"), reply
        hello = raw.ask({"verb": "hello", "id": 5})
        assert hello is not None
        assert hello["id"] == 5
        assert "result" in hello
    sentinel(daemon)


@pytest.mark.parametrize("head", [b"\0\0\0\0", b"\xff\xff\xff\xff", b"GET ", b"\x00\x10\x00\x01"])
def test_a_length_that_is_too_great_is_reported_before_the_end(daemon: Daemon, head: bytes) -> None:
    with Raw(daemon.socket) as raw:
        raw.socket.sendall(head)
        reply = raw.receive()
        assert reply is not None
        assert reply["error"]["code"] == "too-large"
        assert raw.receive() is None
    sentinel(daemon)


HOSTILE = [
    "\x1b[31mred\x1b]0;owned\x07",
    "Robert'); DROP TABLE history;--",
    "a\nb",
    "$(touch /tmp/x)",
    "%s%n",
    "\u202eabc",
    "é" * 100,
]


def test_hostile_texts_change_nothing_and_never_reach_a_terminal_as_they_are(
    daemon: Daemon,
) -> None:
    with daemon.session() as session:
        for text in [*HOSTILE, "x" * 900_000]:
            raw = Raw(daemon.socket)
            for field in (
                "name",
                "queue",
                "output",
                "account",
                "directory",
                "shell",
                "group_list",
                "host",
            ):
                reply = raw.ask(
                    {"verb": "submit", "spec": {"script": "true", "hold": "u", field: text}}
                )
                assert reply is not None
                if "error" in reply:
                    assert reply["error"]["message"].isprintable(), (field, reply)
                    assert len(reply["error"]["message"]) < 2000, (field, reply)
            reply = raw.ask(
                {
                    "verb": "submit",
                    "spec": {
                        "script": "true",
                        "hold": "u",
                        "variables": {"A": text[:1000], text[:50]: "1"},
                    },
                }
            )
            assert reply is not None
            for verb in ("explain", "trail"):
                reply = raw.ask({"verb": verb, "job": text})
                assert reply is not None
                assert reply["error"]["message"].isprintable(), (verb, reply)
            for field in ("users", "queues"):
                reply = raw.ask({"verb": "history", field: [text]})
                assert reply is not None
                assert "error" in reply or reply["result"] is not None
            raw.close()
        assert session.ask(ServerStatus(), ServerRecord).total > 0
    for command in (["qstat"], ["qstat", "-f"], ["qstat", "-x"], ["qbatch", "history"]):
        shown = daemon.run(*command, code=None).stdout
        assert not {"\x1b", "\x07", "\u202e"} & set(shown), command
    assert "integrity ok" in check(daemon)
    sentinel(daemon)


def latency(daemon: Daemon, count: int) -> float:
    """Return the 99th percentile of the time that an ordinary question takes, in seconds."""
    taken = []
    with ClientSession(daemon.socket) as session:
        for _ in range(count):
            began = time.perf_counter()
            session.ask(ServerStatus(), ServerRecord)
            taken.append(time.perf_counter() - began)
    return sorted(taken)[len(taken) * 99 // 100]


class Crowd:
    """Clients by the hundred that send slowly, close half of their connection, or never read what
    they asked for."""

    def __init__(self, daemon: Daemon, each: int) -> None:
        self.is_over = False
        self.slow = [Raw(daemon.socket) for _ in range(each)]
        self.half = [Raw(daemon.socket) for _ in range(each)]
        self.deaf = [Raw(daemon.socket) for _ in range(each)]
        self._thread = threading.Thread(target=self._drip)

    def __enter__(self) -> Crowd:
        for raw in self.slow:
            raw.socket.sendall(b"\0\0\2\0")
        for raw in self.half:
            raw.send({"verb": "hello"})
            raw.socket.shutdown(socket.SHUT_WR)
        question = encode(b'{"verb":"job-status","finished":"no","limit":1000}')
        for raw in self.deaf:
            raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
            raw.socket.setblocking(False)
            try:
                for _ in range(200):
                    raw.socket.sendall(question * 20)
            except BlockingIOError:
                continue
        self._thread.start()
        return self

    def _drip(self) -> None:
        while not self.is_over:
            for raw in self.slow:
                try:
                    raw.socket.send(b"x")
                except OSError:
                    continue
            time.sleep(1.0)

    def __exit__(self, *_: object) -> None:
        self.is_over = True
        self._thread.join()
        for raw in [*self.slow, *self.half, *self.deaf]:
            raw.close()


def test_clients_that_hang_cost_others_little_and_the_daemon_bounded_memory(tmp_path: Path) -> None:
    each = size(40, 170)
    with Daemon(tmp_path, config=EMULATED).start() as daemon:
        for number in range(300):
            daemon.submit("sleep 600\n", name=f"waits{number}", hold="u")
        assert daemon.process is not None
        before, base = settled_rss(daemon), latency(daemon, 300)
        with Crowd(daemon, each) as crowd:
            for raw in crowd.half:
                reply = raw.receive()
                assert reply is not None
                assert "result" in reply
                assert raw.receive() is None
            worse = latency(daemon, 300)
            grown = rss(daemon.process.pid) - before
            print(
                f"{3 * each} hanging: p99 {base * 1e3:.2f} -> {worse * 1e3:.2f} ms, "
                f"{grown / 3 / each / 1024:.0f} KiB each"
            )
            assert worse < size(20, 2) * max(base, 0.002)
            assert grown < each * (3 << 20), grown
            daemon.submit("true\n", name="still")
            if size(0, 1):  # a byte a second does not keep a connection for ever
                time.sleep(STALLED + 3)
                for raw in crowd.slow[:20]:
                    assert raw.receive() is None
                assert rss(daemon.process.pid) - before < each << 20
        check(daemon)
        assert daemon.kill(signal.SIGTERM) == 0


def test_a_byte_now_and_then_does_not_keep_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "STALLED", 0.3)

    class Transport(asyncio.Transport):
        closed = False

        def get_extra_info(self, name: str, default: Any = None) -> Any:
            return pair[0]

        def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
            return

        def close(self) -> None:
            self.closed = True

        def is_closing(self) -> bool:
            return self.closed

    clients: Any = SimpleNamespace(accept=lambda client: True)

    async def go() -> float:
        transport = Transport()
        client = connection.ConnectedClient(clients, lambda client, body: True)
        client.connection_made(transport)
        client.data_received(b"\0\0\1\0")
        began = time.monotonic()
        while not transport.closed and time.monotonic() - began < 20:
            client.data_received(b"x")
            await asyncio.sleep(0.1)
        return time.monotonic() - began

    pair = socket.socketpair()
    assert asyncio.run(go()) < 10
    for end in pair:
        end.close()


def test_two_thousand_idle_connections_are_held(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    count = min(size(500, 2000), (hard if hard > 0 else 4096) - 200)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, count + 200)), hard))
    try:
        with Daemon(tmp_path, config=EMULATED).start() as daemon:
            assert daemon.process is not None
            before = settled_rss(daemon)
            idle = [Raw(daemon.socket) for _ in range(count)]
            daemon.submit("true\n")
            grown = rss(daemon.process.pid) - before
            print(
                f"{count} idle connections: {grown / count / 1024:.1f} KiB each, p99 "
                f"{latency(daemon, 200) * 1e3:.2f} ms"
            )
            assert grown < count * (16 << 10)
            for raw in idle:
                raw.close()
            assert os.path.exists(f"/proc/{daemon.process.pid}")
            check(daemon)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
