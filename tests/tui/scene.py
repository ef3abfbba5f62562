"""A batch server that is not there: a picture of one, and a source that answers and writes down
what it is asked."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from qbatch.tui.board import Board
from qbatch.wire.errors import ErrorRecord, Refusal
from qbatch.wire.records import (
    ClockRecord,
    EventRecord,
    Explanation,
    ForecastRecord,
    Forecasts,
    HostRecord,
    JobRecord,
    Jobs,
    Outcome,
    Outcomes,
    OutputFiles,
    QueueRecord,
    ReservationRecord,
    Reservations,
    ServerRecord,
    ShadowRecord,
    Shadows,
    TrailEntry,
    Trails,
)
from qbatch.wire.requests import (
    Explain,
    Forecast,
    History,
    JobOutput,
    JobStatus,
    Request,
    ReservationStatus,
    Shadow,
    Trail,
)

NOW = 1_795_000_000 * 1_000_000
MINUTE = 60_000_000


def job(number: int, state: str = "Q", **given: Any) -> JobRecord:
    """Return a job as events bear it."""
    procs = given.pop("procs", 4)
    hosts = given.pop("hosts", ())
    values: dict[str, Any] = {
        "id": f"{number}.qbatch",
        "name": f"sim{number}",
        "user": ("alice", "bob", "carol")[number % 3],
        "queue": "batch",
        "state": state,
        "resources": {"ncpus": str(procs), "walltime": "01:00:00", "mem": "4gb"},
        "submitted": NOW - number * MINUTE,
        "eligible": NOW - number * MINUTE,
        "started": NOW - number * MINUTE // 2 if hosts else None,
        "exec_host": "+".join(f"{name}/0*{procs // len(hosts)}" for name in hosts),
        "exec_vnode": "+".join(f"({name}:ncpus={procs // len(hosts)}:mem=4gb)" for name in hosts),
    }
    return JobRecord(**{**values, **given})


RUNNING = [
    job(1, "R", procs=16, hosts=("n1",)),
    job(2, "R", procs=8, hosts=("n2",)),
    job(3, "S", procs=8, hosts=("n2",)),
    job(4, "R", procs=16, hosts=("n3", "n5"), name="a[b]c", user="tr\x1b[31mudy"),
    job(5, "R", procs=32, hosts=("big1",), queue="fat"),
]
WAITING = [
    job(10, procs=64),
    job(11, procs=16, promised=NOW + 30 * MINUTE),
    job(12, "H", procs=2, hold="u"),
    job(13, procs=1, name="日本語の仕事", comment="Not Running: needs 1 processor"),
]
HOSTS = [
    *(
        HostRecord(
            name=f"n{number}",
            pool="cluster",
            state="free",
            cpus=16,
            memory=64 << 30,
            queues=("batch",),
        )
        for number in range(1, 7)
    ),
    HostRecord(
        name="n7", pool="cluster", state="offline", cpus=16, memory=64 << 30, comment="a fan"
    ),
    HostRecord(name="n8", pool="cluster", state="down", cpus=16, memory=64 << 30),
    HostRecord(
        name="big1", pool="fat", state="job-busy", cpus=32, memory=256 << 30, queues=("fat",)
    ),
]
QUEUES = [
    QueueRecord(
        name="batch",
        pool="cluster",
        policy="easy",
        counts={"Q": 3, "H": 1, "R": 3, "S": 1},
        max_running=50,
    ),
    QueueRecord(name="fat", pool="fat", policy="conservative", counts={"R": 1}, enabled=False),
]
CLOCK = ClockRecord(
    mode="scaled", now=NOW, speed=60.0, is_paused=True, log_arrived=120, log_jobs=400
)
SERVER = ServerRecord(name="qbatch", version="1", policy="easy", clock=CLOCK)
FORECASTS = Forecasts(
    made=NOW,
    jobs=(
        ForecastRecord(job="13.qbatch", start=NOW + 5 * MINUTE, end=NOW + 65 * MINUTE),
        ForecastRecord(
            job="11.qbatch",
            start=NOW + 28 * MINUTE,
            end=NOW + 88 * MINUTE,
            promised=NOW + 30 * MINUTE,
        ),
        ForecastRecord(job="10.qbatch", start=NOW + 50 * MINUTE, end=NOW + 110 * MINUTE),
    ),
)
ENDED = [
    job(
        number,
        "F",
        procs=2,
        hosts=("n1",),
        ended=NOW - number * 1000,
        exit_status=number % 2,
        submitted=NOW - 90 * MINUTE,
    )
    for number in range(900, 880, -1)
]
SHADOWS = Shadows(
    policies=(
        ShadowRecord(
            policy="easy",
            pool="cluster",
            is_real=True,
            started=80,
            ended=70,
            waiting=4,
            wait_mean_s=812.5,
            wait_max_s=9000,
            bounded_slowdown_mean=7.25,
            utilisation=0.81,
        ),
        ShadowRecord(
            policy="conservative",
            pool="cluster",
            started=79,
            ended=69,
            waiting=5,
            wait_mean_s=901.0,
            wait_max_s=7000,
            bounded_slowdown_mean=8.5,
            utilisation=0.8,
            provisional=6,
        ),
    ),
    since=NOW - 600 * MINUTE,
    made=NOW,
    note="since 10 hours",
)


class Scene:
    """A source: the picture above, and the events that a test pushes."""

    is_live = True
    trouble = ""
    title = "a scene"

    def __init__(self, clock: ClockRecord = CLOCK) -> None:
        self.asked: list[Request] = []
        self.driven: list[tuple[str, dict[str, Any]]] = []
        self.refusal: Refusal | None = None
        self.failing: set[str] = set()
        self.output = "/nonexistent/output"
        self.reservations: tuple[ReservationRecord, ...] = ()
        self._clock = clock
        self.board = Board()

    def progress(self) -> tuple[int, int] | None:
        return None

    async def run(self, board: Board) -> None:
        self.board = board
        board.load(
            msgspec.structs.replace(SERVER, clock=self._clock), HOSTS, QUEUES, RUNNING, WAITING
        )
        for number in range(1, 6):
            board.apply(self.event(number, "started", RUNNING[number - 1]))
        await asyncio.Event().wait()

    def event(
        self, number: int, kind: str, record: JobRecord | None = None, **given: Any
    ) -> EventRecord:
        """Return an event of this scene."""
        name = record.id if record is not None else ""
        counts = dict(
            next(
                (
                    queue.counts
                    for queue in QUEUES
                    if record is not None and queue.name == record.queue
                ),
                {},
            )
        )
        return EventRecord(
            number=number, at=NOW, kind=kind, job=name, record=record, counts=counts, **given
        )

    async def ask(self, request: Request, kind: type[Any]) -> Any:
        self.asked.append(request)
        if self.refusal is not None:
            raise self.refusal
        match request:
            case ReservationStatus():
                return Reservations(reservations=self.reservations)
            case Forecast():
                return FORECASTS
            case History():
                return self._history(request)
            case Shadow():
                return SHADOWS
            case JobStatus():
                found = [each for each in [*RUNNING, *WAITING, *ENDED] if each.id in request.jobs]
                return Jobs(
                    jobs=tuple(
                        msgspec.structs.replace(each, output=self.output, priority=7)
                        for each in found
                    )
                )
            case Explain():
                return Explanation(
                    job=request.job,
                    state="Q",
                    code="processors",
                    text="needs 64 processors, 16 are free",
                    said_by="easy",
                    blocked_by=("9.qbatch",),
                    estimated_start=NOW,
                    now=NOW,
                )
            case JobOutput():
                return OutputFiles(job=request.job, state="R", output=(self.output,))
            case Trail():
                return Trails(
                    job=request.job,
                    entries=(TrailEntry(at=NOW - MINUTE, kind="S", text="Job Queued"),),
                )
            case _:
                names = getattr(request, "jobs", ("x",))
                return Outcomes(
                    outcomes=tuple(Outcome(name=name, error=self._error(name)) for name in names)
                )

    def _error(self, name: str) -> ErrorRecord | None:
        return ErrorRecord("failed", f"{name}: no") if name in self.failing else None

    def _history(self, request: History) -> Jobs:
        found = [each for each in ENDED if not request.users or each.user in request.users]
        found = [each for each in found if not request.after or each.id < request.after]
        page = found[:8]
        return Jobs(jobs=tuple(page), next=page[-1].id if len(found) > 8 else "")

    async def drive(self, action: str, **given: Any) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.driven.append((action, given))
        if action in ("pause", "play"):
            self.board.set_clock(
                msgspec.structs.replace(self.board.clock, is_paused=action == "pause")
            )


def requests_of(scene: Scene, kind: type[Request]) -> list[Any]:
    """Return the requests of one kind that a scene got."""
    return [request for request in scene.asked if isinstance(request, kind)]
