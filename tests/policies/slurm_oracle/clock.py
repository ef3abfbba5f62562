"""Runs a recording with passes at instants of its own: only submissions, commands and running times are input.

Rules [`_slurmctld_background`, `schedule`, `backfill_agent`], fitted against the instants of the recordings:

- A loop of the controller ticks once a second (really every 1.0033 s) from its start.
- At a tick a full pass runs if 60 s (sched_interval) have gone since the last full pass; the start of the controller
  counts as one. Else a quick pass runs if something asked for one: a submission, an end, or a change by the
  administrator. The last pass must then be at least 3 s (batch_sched_delay) old. Whole seconds are compared.
- Backfill wakes up bf_interval (30 s) after the end of its last cycle, first that long after its start. It skips the
  cycle if nothing has changed since the whole second of the last one (no job submitted, started, ended or updated). It
  then looks again each second. A cycle that looked at some job is itself a change: the next one is not skipped.
- Time limits are looked at every 30 s; that belongs to the running times, which are input.

Not reproduced: the controller runs a further quick pass a few milliseconds after some ends. That is when a message of
a node arrives that its epilog is done. A tick at most a second later takes its place.
"""

from __future__ import annotations

import heapq
import math

from tests.policies.slurm_oracle import passes
from tests.policies.slurm_oracle.recording import Event, Recording
from tests.policies.slurm_oracle.replay import CLEANING, Count, Replay
from tests.policies.slurm_oracle.world import COMPLETING, PENDING, Job

TICK = 1.0033
LOOP_BEGINS = 0.28
LOOP_START = 3.29
SCHED_INTERVAL = 60
BATCH_DELAY = 3
CYCLE = 0.003
PRIORITY_OF_KIND = {"event": 0, "end": 1, "loop": 2, "backfill": 3}
ASKS = ("submitted", "hold", "release", "update", "cancelled", "reservation", "reservation-gone")


class OwnClock(Replay):
    """A replay that decides its own pass instants."""

    def __init__(self, recording: Recording) -> None:
        super().__init__(recording)
        self.asked = True
        self.changed = 0
        self.last_cycle = 0
        self.last_pass = 0
        self.last_full = int(recording.thread_start + LOOP_BEGINS)
        self.queue: list[tuple[float, int, int, str, object]] = []
        self.number = 0
        self.begun: dict[int, list[float]] = {}
        self.durations = real_durations(recording)
        self.interval = int(recording.site.scheduler.get("bf_interval", "30"))
        self.backfills = (
            recording.site.setting("SchedulerType", "sched/backfill") == "sched/backfill"
        )

    def push(self, time: float, kind: str, what: object = None) -> None:
        """Puts something on the clock."""
        self.number += 1
        heapq.heappush(self.queue, (time, PRIORITY_OF_KIND[kind], self.number, kind, what))

    def run_alone(self) -> dict[int, list[float]]:
        """Goes on until all is over; returns the instants of the starts of each job."""
        recording = self.recording
        over = max(event.time for event in recording.events) + 600
        for event in recording.events:
            if event.kind in (*ASKS, "refused", "plugin", "tick"):
                self.push(event.time, "event", event)
        for time, _, command in recording.actions:
            self.push(time + 0.003, "event", command)
        self.push(recording.thread_start + LOOP_START, "loop")
        if self.backfills:
            self.push(recording.thread_start + self.interval, "backfill")
        while self.queue:
            time, _, _, kind, what = heapq.heappop(self.queue)
            if time > over:
                break
            self.world.now = time
            if kind == "loop":
                self.loop()
            elif kind == "backfill":
                self.backfill()
            elif kind == "end":
                assert isinstance(what, Job)
                self.finish(what)
            elif isinstance(what, str):
                self.act(what)
                self.asked, self.changed = True, int(time)
            elif isinstance(what, Event):
                self.event(what)
                if what.kind in ASKS:
                    self.asked, self.changed = True, int(time)
        return self.begun

    def loop(self) -> None:
        """One tick of the loop of the controller."""
        now = self.world.second
        self.push(self.world.now + TICK, "loop")
        if now - self.last_full >= SCHED_INTERVAL:
            self.last_full = now
        elif not self.asked or now - self.last_pass < BATCH_DELAY:
            return
        full = self.last_full == now
        self.last_pass = now
        self.asked = False
        self.note(passes.main_pass(self.world, full))

    def backfill(self) -> None:
        """One waking of backfill."""
        if self.changed < self.last_cycle:
            self.push(self.world.now + 1, "backfill")
            return
        self.last_cycle = self.world.second
        outcome = passes.backfill_pass(self.world)
        if outcome.tests:
            self.changed = self.world.second
        self.note(outcome)
        self.push(self.world.now + CYCLE + self.interval, "backfill")

    def note(self, outcome: passes.Outcome) -> None:
        """Plans the end of each started job by its real running time."""
        for start in outcome.starts:
            self.changed = self.world.second
            job = self.world.jobs[start.job]
            past = self.begun.setdefault(start.job, [])
            lengths = self.durations.get(start.job, [])
            length = lengths[min(len(past), len(lengths) - 1)] if lengths else math.inf
            past.append(self.world.now)
            if length < math.inf:
                self.push(self.world.now + length, "end", job)

    def finish(self, job: Job) -> None:
        """A job ends; this asks for a quick pass."""
        if job.state == PENDING:
            return
        job.exit_code = self.exit_codes().get(job.number, 0)
        self.priorities.ended(job, self.world.second)
        job.state = COMPLETING
        job.released = self.world.now + CLEANING
        self.asked, self.changed = True, self.world.second

    def exit_codes(self) -> dict[int, int]:
        """The exit codes of the real jobs."""
        return {event.job: event.value for event in self.recording.events if event.kind == "exit"}


def real_starts(recording: Recording) -> dict[int, list[float]]:
    """The instants of all starts of each job."""
    result: dict[int, list[float]] = {}
    for item in recording.passes:
        for start in item.starts:
            result.setdefault(start.job, []).append(item.time)
    return result


def real_durations(recording: Recording) -> dict[int, list[float]]:
    """How long each run of each job took."""
    ends: dict[int, list[float]] = {}
    for event in recording.events:
        if event.kind in ("ended", "exhausted", "killed"):
            ends.setdefault(event.job, []).append(event.time)
    result: dict[int, list[float]] = {}
    for job, starts in real_starts(recording).items():
        for start in starts:
            later = [end for end in ends.get(job, []) if end > start]
            result.setdefault(job, []).append(min(later) - start if later else math.inf)
    return result


def starts_within(recording: Recording, seconds: float) -> Count:
    """How many starts are within so many seconds of the real ones."""
    mine = OwnClock(recording).run_alone()
    count = Count()
    for job, starts in real_starts(recording).items():
        for position, start in enumerate(starts):
            found = mine.get(job, [])
            near = position < len(found) and abs(found[position] - start) <= seconds
            where = f"{found[position] - start:+.1f}" if position < len(found) else "never"
            count.add(near, f"JobId={job} real {start - recording.zero:.1f} mine {where}")
    return count


def predicted_passes(recording: Recording) -> list[tuple[float, str]]:
    """The instants of passes by these rules, given the real events and the real starts."""
    asking = [
        event.time
        for event in recording.events
        if event.kind in (*ASKS, "ended", "exhausted", "requeued")
    ]
    asking.extend(time for time, _, command in recording.actions if "update" in command)
    changes = sorted(
        [*asking, *(item.time for item in recording.passes if item.tests or item.starts)]
    )
    asking.sort()
    over = recording.passes[-1].time + 0.5
    result = []
    time = recording.thread_start + LOOP_START
    last_pass, last_full, seen = 0, int(recording.thread_start + LOOP_BEGINS), 0.0
    first = True
    while time < over:
        asked = first or any(seen < one <= time for one in asking)
        if int(time) - last_full >= SCHED_INTERVAL:
            last_full = last_pass = int(time)
            result.append((time, "full"))
            seen, first = time, False
        elif asked and int(time) - last_pass >= BATCH_DELAY:
            last_pass = int(time)
            result.append((time, "quick"))
            seen, first = time, False
        time += TICK
    if recording.site.setting("SchedulerType", "sched/backfill") != "sched/backfill":
        return result
    interval = int(recording.site.scheduler.get("bf_interval", "30"))
    time, last = recording.thread_start + interval, 0
    while time < over:
        if last == 0 or any(last <= int(one) and one <= time for one in changes):
            last = int(time)
            result.append((time, "backfill"))
            time += interval + CYCLE
        else:
            time += 1.0
    return sorted(result)


def passes_within(recording: Recording, seconds: float) -> Count:
    """How many real passes have a predicted one of the same kind within so many seconds."""
    mine = predicted_passes(recording)
    count = Count()
    for item in recording.passes:
        kinds = ("backfill",) if item.kind == "backfill" else ("quick", "full")
        near = [time for time, kind in mine if kind in kinds and abs(time - item.time) <= seconds]
        count.add(bool(near), f"{item.time - recording.zero:.3f} {item.kind}")
    return count


__all__ = ["OwnClock", "passes_within", "predicted_passes", "starts_within"]
