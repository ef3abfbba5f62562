"""What the monitor costs: processor time, memory, and the time from a key to the paint, on a real
terminal device.

A server that is not there pushes events about 2,000 visible jobs; ``qbatch top`` runs in a pseudo
terminal of 200 x 60.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import select
import statistics
import struct
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from qbatch.wire.frames import Splitter, encode
from qbatch.wire.records import (
    ClockRecord,
    EventRecord,
    Forecasts,
    HostRecord,
    Hosts,
    JobRecord,
    Jobs,
    QueueRecord,
    Queues,
    ServerRecord,
)
from qbatch.wire.requests import (
    AnyRequest,
    Forecast,
    HostStatus,
    JobStatus,
    QueueStatus,
    ServerStatus,
)
from tests.bench.live import cpu_seconds, resident_megabytes

Row = Callable[[str, str], None]
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(AnyRequest).decode
RUNNING, WAITING = 1500, 500


def _job(number: int, state: str) -> JobRecord:
    now = time.time_ns() // 1000
    host = f"n{number % 64 + 1:02d}"
    where = (
        {"exec_host": f"{host}/0", "exec_vnode": f"({host}:ncpus=1:mem=1gb)", "started": now}
        if state == "R"
        else {}
    )
    return JobRecord(
        id=f"{number}.b",
        name=f"sim{number}",
        user=f"user{number % 40}",
        queue="batch",
        state=state,
        submitted=now,
        eligible=now,
        resources={"ncpus": "1", "walltime": "01:00:00", "mem": "1gb"},
        **where,
    )


async def _read(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read(1 << 16)
    except ConnectionError:
        return b""


class _Server:
    """Answers as a daemon with so many queued jobs, and pushes ``rate`` events a second."""

    def __init__(self, path: str, queued: int, rate: float) -> None:
        self.path, self.queued, self.rate = path, queued, rate
        self.running = list(range(1, RUNNING + 1))
        self.next = RUNNING + WAITING + 1
        self.number = 0

    def serve(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        server = await asyncio.start_unix_server(self._client, self.path)
        async with server:
            await server.serve_forever()

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        splitter = Splitter(1 << 20)
        pushing: asyncio.Task[None] | None = None
        while data := await _read(reader):
            for body in splitter.feed(data):
                request = _decode(body)
                writer.write(encode(_encode({"id": request.id, "result": self._answer(request)})))
                if isinstance(request, JobStatus) and "Q" in request.states and pushing is None:
                    pushing = asyncio.create_task(self._push(writer))
        if pushing is not None:
            pushing.cancel()

    def _counts(self) -> dict[str, int]:
        return {"Q": self.queued, "R": len(self.running)}

    def _answer(self, request: Any) -> Any:
        match request:
            case ServerStatus():
                clock = ClockRecord(mode="real", now=time.time_ns() // 1000)
                return ServerRecord(name="bench", version="0", clock=clock)
            case HostStatus():
                hosts = tuple(
                    HostRecord(
                        name=f"n{n:02d}", pool="main", state="free", cpus=32, memory=64 << 30
                    )
                    for n in range(1, 65)
                )
                return Hosts(hosts=hosts)
            case QueueStatus():
                return Queues(queues=(QueueRecord(name="batch", counts=self._counts()),))
            case JobStatus() if "R" in request.states:
                return Jobs(jobs=tuple(_job(number, "R") for number in self.running))
            case JobStatus():
                return Jobs(
                    jobs=tuple(
                        _job(number, "Q") for number in range(RUNNING + 1, RUNNING + WAITING + 1)
                    )
                )
            case Forecast():
                return Forecasts(made=0, jobs=())
            case _:
                return {}

    async def _push(self, writer: asyncio.StreamWriter) -> None:
        begun, sent = time.monotonic(), 0
        while self.rate and not writer.is_closing():
            while sent < (time.monotonic() - begun) * self.rate:
                for event in self._round(sent):
                    writer.write(encode(_encode({"event": event})))
                    sent += 1
            await asyncio.sleep(0.01)

    def _round(self, turn: int) -> Iterator[EventRecord]:
        """One job ends, another starts in its place, a third is submitted."""
        place = turn % RUNNING
        for kind, job in (
            ("ended", _job(self.running[place], "F")),
            ("started", _job(self.next, "R")),
            ("submitted", _job(self.next + 1, "Q")),
        ):
            self.number += 1
            if kind == "started":
                self.running[place] = self.next
            yield EventRecord(
                number=self.number,
                at=time.time_ns() // 1000,
                kind=kind,
                job=job.id,
                record=job,
                counts=self._counts(),
            )
        self.next += 2


def _drain(terminal: int, seconds: float) -> int:
    """Read what is drawn for a while; return how many bytes came."""
    end, count = time.monotonic() + seconds, 0
    while (left := end - time.monotonic()) > 0:
        if select.select([terminal], [], [], left)[0]:
            try:
                count += len(os.read(terminal, 1 << 16))
            except OSError:  # it has ended
                break
    return count


def _watched(path: str) -> tuple[int, int]:
    """Start the monitor in a pseudo terminal; return its process and the terminal."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm-256color", COLORTERM="truecolor", QBATCH_SOCKET=path)
        os.execv(sys.executable, [sys.executable, "-m", "qbatch", "top"])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 60, 200, 0, 0))
    return pid, terminal


def _key_to_paint(terminal: int, times: int) -> list[float]:
    """Return the seconds from a key until something was drawn, while nothing else moves."""
    found = []
    for turn in range(times):
        _drain(terminal, 0.37)
        begun = time.perf_counter()
        os.write(terminal, b"\x1b[B" if turn % 20 < 10 else b"\x1b[A")
        select.select([terminal], [], [], 5)
        found.append(time.perf_counter() - begun)
    return found


def figures(row: Row, seconds: float = 30.0) -> None:
    """Measure and tell."""
    for queued, rate in ((WAITING, 100.0), (1_000_000, 100.0), (1_000_000, 0.0)):
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "s")
            threading.Thread(target=_Server(path, queued, rate).serve, daemon=True).start()
            time.sleep(0.3)
            pid, terminal = _watched(path)
            try:
                _drain(terminal, 4.0)
                what = (
                    f"monitor, {RUNNING + WAITING:,} jobs shown, {queued:,} queued, {rate:g} "
                    "events/s"
                )
                if rate:
                    before, begun = cpu_seconds(pid), time.monotonic()
                    drawn = _drain(terminal, seconds)
                    share = (cpu_seconds(pid) - before) / (time.monotonic() - begun)
                    row(
                        what,
                        (
                            f"{100 * share:.1f} % of a core, {resident_megabytes(pid):.0f} MB, "
                            f"{drawn / seconds / 1024:.0f} KiB/s"
                        ),
                    )
                else:
                    waits = sorted(_key_to_paint(terminal, 60))
                    row(
                        f"{what}: key to paint",
                        (
                            f"p50 {1e3 * statistics.median(waits):.0f} ms, p95 "
                            f"{1e3 * waits[56]:.0f} "
                            "ms"
                        ),
                    )
            finally:
                os.write(terminal, b"q")
                _drain(terminal, 1.0)
                os.close(terminal)
                os.waitpid(pid, 0)
