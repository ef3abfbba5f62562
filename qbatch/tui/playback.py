"""A recording as a source: it plays, pauses, steps and jumps; occasional keyframes make going back
cheap."""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Any, TypeVar

import msgspec

from qbatch.tui.board import MOST_EVENTS, Board
from qbatch.tui.recording import Recording
from qbatch.wire.errors import Refusal
from qbatch.wire.records import ClockRecord, JobRecord, Jobs
from qbatch.wire.requests import History, JobStatus, Request

Result = TypeVar("Result", bound=msgspec.Struct)

TICK = 0.05
"""Seconds between two looks at the clock."""

EVERY = 4096
"""Events between two keyframes, in a recording of usual length."""

MOST_KEYFRAMES = 64
"""Most keyframes; above this number every second one is dropped."""

WHOLE = 120.0
"""Seconds of real time for the whole recording at the first speed."""

TURN = 2000
"""Events after which the screen may update."""


class Playback:
    """A recorded run, from the events of a recording; ``wall`` returns the seconds of a clock that
    never jumps."""

    is_live = False
    trouble = ""

    def __init__(self, recording: Recording, wall: Callable[[], float] = time.monotonic) -> None:
        self.recording = recording
        self.title = recording.title
        self._wall = wall
        self._place = 0
        self._now = recording.at[0] if len(recording.at) else 0
        self._mark = wall()
        self._until: tuple[str, int | str] | None = None
        self._keyframes: dict[int, Board] = {}
        self._every = EVERY
        self._ends = [place for place, kind in enumerate(recording.kinds) if kind == "ended"]
        length = (recording.at[-1] - recording.at[0]) / 1e6 if len(recording.at) else 0.0
        self.speed = _round(max(length / WHOLE, 1.0))
        self.is_paused = False
        self._board: Board | None = None
        self._lock = asyncio.Lock()

    def progress(self) -> tuple[int, int] | None:
        if not len(self.recording.at):
            return (0, 0)
        return self._now - self.recording.at[0], self.recording.at[-1] - self.recording.at[0]

    async def run(self, board: Board) -> None:
        self._board = board
        board.window = 1 << 60
        board.is_driven = True
        await self._show(board, 0)
        self._mark = self._wall()
        self._set_clock()
        while True:
            await asyncio.sleep(TICK)
            async with self._lock:
                await self._move(board)

    async def _move(self, board: Board) -> None:
        mark = self._wall()
        passed, self._mark = mark - self._mark, mark
        if self.is_paused:
            return
        goal = self._now + int(passed * 1e6 * self.speed)
        if self._until is not None and self._until[0] == "until":
            goal = min(goal, int(self._until[1]))
        last = self.recording.at[-1] if len(self.recording.at) else self._now
        stopped = await self._forward(board, bisect_right(self.recording.at, goal))
        self._now = board.clock.now if stopped else min(goal, last)
        self._set_clock()
        is_reached = (
            self._until is not None
            and self._until[0] == "until"
            and self._now >= int(self._until[1])
        )
        if stopped or is_reached or self._now >= last:
            self.is_paused, self._until = True, None
            self._set_clock()

    async def _forward(self, board: Board, place: int) -> bool:
        """Apply the events up to a place between two instants; return whether the awaited event has
        happened.

        The screen updates between two instants only, and all events of the awaited instant are
        applied.
        """
        turn, is_over = self._place + TURN, False
        while self._place < place:
            self._picture(board)
            if self._place % self._every == 0 and self._place not in self._keyframes:
                self._keep(board)
            event = self.recording.event(self._place)
            self._place += 1
            board.apply(event)
            if not is_over and self._is_awaited(event.kind, event.job):
                self._now, is_over = event.at, True
                place = min(place, bisect_right(self.recording.at, event.at))
                board.set_clock(msgspec.structs.replace(board.clock, now=event.at))
            is_between = (
                self._place == len(self.recording.at) or self.recording.at[self._place] != event.at
            )
            if self._place >= turn and is_between:
                turn, self._now = self._place + TURN, event.at
                self._set_clock()
                await asyncio.sleep(0)
        return is_over

    def _keep(self, board: Board) -> None:
        """Keep the present state as a keyframe, without its log of events, which is in the
        recording."""
        frame = self._keyframes[self._place] = board.keyframe()
        frame.events.clear()
        if len(self._keyframes) > MOST_KEYFRAMES:
            self._every *= 2
            self._keyframes = {
                place: each for place, each in self._keyframes.items() if place % self._every == 0
            }

    def _is_awaited(self, kind: str, job: str) -> bool:
        if self._until is None or self._until[0] == "until":
            return False
        what, wanted = self._until
        if what == "until-count":
            if kind != "ended":
                return False
            self._until = (what, int(wanted) - 1)
            return int(wanted) <= 1
        over = ("started", "ended") if what == "until-start" else ("ended",)
        return kind in over and job.partition(".")[0] == str(wanted).partition(".")[0]

    def _picture(self, board: Board) -> None:
        picture = self.recording.picture(self._place)
        if picture is not None:
            clock = picture.server.clock
            now = clock.now if clock is not None else self._now
            server = msgspec.structs.replace(picture.server, clock=self._clock(now))
            board.load(server, picture.hosts, picture.queues, picture.running, picture.waiting)

    async def _show(self, board: Board, place: int) -> None:
        """Show the state before an event: continue from here, or from the last keyframe before
        it."""
        start = max((each for each in self._keyframes if each <= place), default=0)
        if place < self._place or start > self._place:
            if start in self._keyframes:
                board.become(self._keyframes[start].keyframe())
                latest = (
                    self.recording.event(each) for each in range(max(start - MOST_EVENTS, 0), start)
                )
                board.events.extend(event for event in latest if event.kind != "clock")
            self._place = start
        until, self._until = self._until, None
        await self._forward(board, place)
        if place == 0:
            self._picture(board)
        self._until = until

    def _clock(self, now: int) -> ClockRecord:
        known = (
            self._board.clock if self._board is not None else ClockRecord(mode="scaled", now=now)
        )
        until = "" if self._until is None else f"{self._until[1]}"
        shown = {"speed": self.speed, "is_paused": self.is_paused, "until": until}
        return msgspec.structs.replace(known, mode="scaled", now=now, **shown)

    def _set_clock(self) -> None:
        assert self._board is not None
        self._board.set_clock(self._clock(self._now))

    async def drive(self, action: str, **given: Any) -> None:
        """Control the recording: pause, play, speed, step, until..., jump.

        Raises:
            Refusal: the value cannot be used.
        """
        board = self._board
        if board is None:
            return
        async with self._lock:
            self._now = max(self._now, board.clock.now)
            match action:
                case "pause":
                    self.is_paused, self._until = True, None
                case "play":
                    self.is_paused, self._until = False, None
                case "speed":
                    self.speed = float(given["speed"])
                case "step":
                    self.is_paused = True
                    if self._place < len(self.recording.at):
                        at = self.recording.at[self._place]
                        await self._forward(board, bisect_right(self.recording.at, at))
                        self._now = at
                case "jump":
                    if len(self.recording.at):
                        at = min(max(int(given["at"]), self.recording.at[0]), self.recording.at[-1])
                        await self._show(board, bisect_right(self.recording.at, at))
                        self._now = at
                case "until" | "until-start" | "until-end" | "until-count":
                    wanted = (
                        given.get("at")
                        if action == "until"
                        else given.get("job") or given.get("count") or 1
                    )
                    if wanted is None:
                        raise Refusal("bad-value", "name an instant")
                    self._until, self.is_paused = (action, wanted), False
                case _:
                    raise Refusal("bad-value", f"{action!r} is not possible with a recording")
            self._mark = self._wall()
            self._set_clock()

    async def ask(self, request: Request, kind: type[Result]) -> Result:
        """Answer from the recording: jobs on the board, ended jobs.

        Raises:
            Refusal: only a live daemon has the answer.
        """
        answer: Any = None
        if isinstance(request, History):
            answer = self._history(request)
        elif isinstance(request, JobStatus) and request.jobs:
            jobs = tuple(job for name in request.jobs if (job := self._job(name)) is not None)
            answer = Jobs(jobs=jobs, now=self._now)
        if not isinstance(answer, kind):
            raise Refusal("bad-state", "this is a recording: only a live daemon can do that")
        return answer

    def _job(self, name: str) -> JobRecord | None:
        found = self._board.find(name) if self._board is not None else None
        if found is not None:
            return found
        for place in reversed(self._ends[: bisect_left(self._ends, self._place)]):
            event = self.recording.event(place)
            if event.job == name:
                return event.record
        return None

    def _history(self, request: History) -> Jobs:
        """Return the ended jobs before the present place, the latest first."""
        found: list[JobRecord] = []
        place = bisect_left(self._ends, self._place)
        after = int(request.after) if request.after.isdigit() else place
        for number in range(min(after, place) - 1, -1, -1):
            job = self.recording.event(self._ends[number]).record
            if (
                job is not None
                and (not request.users or job.user in request.users)
                and (not request.queues or job.queue in request.queues)
                and (not request.name or fnmatchcase(job.name, request.name))
                and (
                    request.status in ("", str(job.exit_status))
                    or (request.status == "failed" and job.exit_status)
                )
            ):
                found.append(job)
                if len(found) == request.limit:
                    return Jobs(jobs=tuple(found), next=str(number), now=self._now)
        return Jobs(jobs=tuple(found), now=self._now)


def _round(speed: float) -> float:
    """Return the smallest speed of the series 1, 2, 5, 10, 20, 50 ... that is not below this
    one."""
    steps = (step * 10**power for power in range(12) for step in (1, 2, 5))
    return next((float(step) for step in steps if step >= speed), speed)
