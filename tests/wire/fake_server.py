"""A daemon for tests: a thread behind a Unix socket that speaks frames, and answers from canned
records.

It keeps what it was asked (``requests``), and misbehaves on request: it can close a connection
before the answer, answer garbage, or answer in one-byte pieces.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from qbatch.wire.errors import Refusal
from qbatch.wire.frames import LONGEST_REQUEST, Splitter, encode
from qbatch.wire.identifiers import ARRAY, PLAIN, format_id, parse_id
from qbatch.wire.records import (
    Done,
    EventRecord,
    HostRecord,
    Hosts,
    JobRecord,
    Jobs,
    Outcome,
    Outcomes,
    QueueRecord,
    Queues,
    ServerRecord,
    SubmissionRecord,
    TrailEntry,
    Trails,
    Welcome,
)
from qbatch.wire.requests import PROTOCOL, AnyRequest, Request

SERVER = "qbatch"
Answer = Callable[[Any], msgspec.Struct]


class FakeServer:
    """Answers on ``path``; a context manager."""

    def __init__(self, path: Path, jobs: list[JobRecord] | None = None) -> None:
        self.path = str(path)
        self.jobs = {job.id: job for job in jobs or []}
        self.queues = [QueueRecord(name="batch", total=len(self.jobs), counts={"Q": 1, "R": 2})]
        self.hosts = [HostRecord(name="n1", pool="main", state="free", cpus=4, memory=8 << 30)]
        self.server = ServerRecord(
            name=SERVER, version="0.1.0", default_queue="batch", total=3, counts={"R": 3}
        )
        self.requests: list[Any] = []
        self.bodies: list[bytes] = []
        self.overrides: dict[str, Answer] = {}
        self.drop_next = 0
        self.piece = 1 << 20
        self.garbage: bytes | None = None
        self.events: list[EventRecord] = []
        self.keys: dict[str, str] = {}
        self.now = 1_790_000_000_000_000
        self.page = 1000
        self.has_history = True
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.path)
        self._listener.listen(64)
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> FakeServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._listener.close()
        for connection in self._open:
            connection.close()
        Path(self.path).unlink(missing_ok=True)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._open.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        splitter = Splitter(LONGEST_REQUEST)
        with connection:
            while True:
                try:
                    data = connection.recv(65536)
                except OSError:
                    return
                if not data:
                    return
                for body in splitter.feed(data):
                    self.bodies.append(body)
                    if not self._reply(connection, body):
                        return

    def _reply(self, connection: socket.socket, body: bytes) -> bool:
        number = msgspec.json.decode(body).get("id", 0)
        try:
            request = msgspec.json.decode(body, type=AnyRequest)
            self.requests.append(request)
            if request.v != PROTOCOL:
                raise Refusal(
                    "protocol-version", f"this daemon speaks version {PROTOCOL}, not {request.v}"
                )
            reply: dict[str, object] = {"id": number, "result": self.answer(request)}
        except Refusal as refusal:
            reply = {"id": number, "error": refusal.record}
        except msgspec.DecodeError as error:
            reply = {"id": number, "error": Refusal("bad-request", str(error)).record}
        if self.drop_next:
            self.drop_next -= 1
            return False
        frame = encode(msgspec.json.encode(reply)) if self.garbage is None else self.garbage
        frames = [frame]
        if type(request).__name__ == "Subscribe":
            frames += [encode(msgspec.json.encode({"event": event})) for event in self.events]
        whole = b"".join(frames)
        try:
            for place in range(0, len(whole), self.piece):
                connection.sendall(whole[place : place + self.piece])
        except OSError:
            return False
        return True

    def answer(self, request: Request) -> msgspec.Struct:
        name = type(request).__name__
        if name in self.overrides:
            return self.overrides[name](request)
        return getattr(self, f"_{name}")(request)

    def _found(self, text: str) -> JobRecord:
        key = parse_id(text)
        shown = format_id(key, SERVER)
        if key.member == PLAIN and shown not in self.jobs:
            array = format_id(key._replace(member=ARRAY), SERVER)
            shown = array if array in self.jobs else shown
        if shown not in self.jobs:
            raise Refusal("unknown-job", f"no job {shown}", shown)
        return self.jobs[shown]

    def _Hello(self, request: Any) -> Welcome:
        if request.server not in ("", SERVER, "localhost"):
            raise Refusal(
                "unknown-server",
                f"cannot connect to server {SERVER} (errno=15008): it is no server {request.server}",
            )
        return Welcome(server=SERVER, version="0.1.0", protocol=PROTOCOL, user="alice", role="user")

    def _JobStatus(self, request: Any) -> Jobs:
        errors, found = [], []
        if request.jobs:
            for text in request.jobs:
                try:
                    job = self._found(text)
                    if job.state in "FX" and request.finished == "no":
                        raise Refusal("finished-job", "Job has finished", job.id)
                    found.append(job)
                except Refusal as refusal:
                    errors.append(refusal.record)
        else:
            found = [job for job in self.jobs.values() if self._is_asked(job, request)]
            unknown = set(request.queues) - {queue.name for queue in self.queues}
            if unknown:
                raise Refusal("unknown-queue", f"Unknown queue {min(unknown)}")
        ids = [job.id for job in found]
        begin = ids.index(request.after) + 1 if request.after else 0
        page = found[begin : begin + min(request.limit, self.page)]
        rest = page[-1].id if begin + len(page) < len(found) else ""
        return Jobs(
            jobs=tuple(page),
            errors=tuple(errors),
            next=rest,
            now=self.now,
            server=SERVER,
            has_history=self.has_history,
        )

    def _is_asked(self, job: JobRecord, request: Any) -> bool:
        is_over = job.state in "FX"
        return (
            (not request.queues or job.queue in request.queues)
            and (not request.users or job.user in request.users)
            and (not request.states or job.state in request.states)
            and (request.finished == "also" or is_over == (request.finished == "only"))
            and (not request.arrays_only or job.is_array)
        )

    def _History(self, request: Any) -> Jobs:
        jobs = [
            job
            for job in self.jobs.values()
            if job.state == "F" and (job.ended or 0) >= (request.since or 0)
        ]
        return Jobs(jobs=tuple(jobs), now=self.now, server=SERVER)

    def _Submit(self, request: Any) -> SubmissionRecord:
        job = self.keys.setdefault(request.key, f"{len(self.keys) + 1}.{SERVER}")
        return SubmissionRecord(job=job if not request.spec.array else job.replace(".", "[]."))

    def _outcomes(self, request: Any) -> Outcomes:
        found = []
        for text in request.jobs:
            try:
                job = self._found(text)
                error = (
                    Refusal("finished-job", "Job has finished", job.id).record
                    if job.state in "FX"
                    else None
                )
                found.append(
                    Outcome(name=job.id, error=error, exit_status=job.exit_status, state=job.state)
                )
            except Refusal as refusal:
                found.append(Outcome(name=text, error=refusal.record))
        return Outcomes(outcomes=tuple(found))

    _Delete = _Hold = _Release = _Alter = _Move = _Rerun = _ForceStart = _Message = _Signal = (
        _outcomes
    )

    def _Order(self, request: Any) -> Outcomes:
        self._found(request.first)
        self._found(request.second)
        return Outcomes(outcomes=(Outcome(name=request.first), Outcome(name=request.second)))

    def _Wait(self, request: Any) -> Outcomes:
        return Outcomes(
            outcomes=tuple(Outcome(name=job, exit_status=0, state="F") for job in request.jobs)
        )

    def _QueueControl(self, request: Any) -> Outcomes:
        known = {queue.name for queue in self.queues}
        return Outcomes(
            outcomes=tuple(
                Outcome(
                    name=name,
                    error=None
                    if name in known
                    else Refusal("unknown-queue", f"Unknown queue {name}").record,
                )
                for name in request.queues
            )
        )

    def _QueueStatus(self, request: Any) -> Queues:
        known = {queue.name: queue for queue in self.queues}
        errors = [
            Refusal("unknown-queue", f"Unknown queue {name}", name).record
            for name in request.queues
            if name not in known
        ]
        found = (
            [known[name] for name in request.queues if name in known]
            if request.queues
            else self.queues
        )
        return Queues(queues=tuple(found), errors=tuple(errors), now=self.now, server=SERVER)

    def _HostStatus(self, request: Any) -> Hosts:
        found = [host for host in self.hosts if not request.hosts or host.name in request.hosts]
        known = {host.name for host in self.hosts}
        errors = [
            Refusal("unknown-host", f"Unknown node {name}").record
            for name in request.hosts
            if name not in known
        ]
        return Hosts(hosts=tuple(found), errors=tuple(errors), now=self.now, server=SERVER)

    def _HostControl(self, request: Any) -> Outcomes:
        return Outcomes(outcomes=tuple(Outcome(name=name) for name in request.hosts))

    def _ServerStatus(self, request: Any) -> ServerRecord:
        return self.server

    def _Trail(self, request: Any) -> Trails:
        job = self._found(request.job)
        return Trails(
            job=job.id,
            entries=(TrailEntry(at=self.now, kind="S", text="Job Queued at request of a@h"),),
        )

    def _Subscribe(self, request: Any) -> Done:
        return Done()
