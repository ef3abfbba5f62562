"""Drive scaled and virtual time: pause, play, step, speed, run until an instant, a job's start or end, a count."""

from __future__ import annotations

from qbatch.daemon.clock import FASTEST, FOREVER, SLOWEST
from qbatch.daemon.connected_client import ConnectedClient
from qbatch.daemon.service import Service
from qbatch.model.errors import suggestion
from qbatch.results.shown import moment
from qbatch.wire.errors import Refusal
from qbatch.wire.records import ClockRecord
from qbatch.wire.requests import Time

ACTIONS = ("show", "pause", "play", "step", "speed", "until", "until-start", "until-end", "until-count")


def handle(service: Service, client: ConnectedClient, request: Time) -> ClockRecord:
    """Do what is asked and return the clock."""
    clock = service.clock
    if request.action not in ACTIONS:
        raise Refusal(
            "bad-value", f"{request.action[:20]!r} is nothing to do with time{suggestion(request.action[:20], ACTIONS)}"
        )
    if request.action == "show":
        return service.clock_record()
    if clock.mode == "real":
        raise Refusal("bad-state", "real time cannot be driven; start the daemon with --time x60 or --time virtual")
    speed = request.speed
    if speed is not None and not (SLOWEST <= speed <= FASTEST or (speed == 0 and clock.mode == "virtual")):
        raise Refusal(
            "bad-value",
            f"speed {speed:g} is not from {SLOWEST:g} to {FASTEST:g} (virtual time takes 0: as fast as it can)",
        )
    if request.action == "pause":
        clock.pause()
    elif request.action == "step":
        clock.pause()
        service.pass_driver.step_once()
    elif request.action in ("play", "speed"):
        if request.action == "speed" and speed is None:
            raise Refusal("bad-value", "say which speed")
        service.pass_driver.breakpoint = None
        is_still = request.action == "speed" and clock.is_paused
        clock.play(speed)
        if is_still:
            clock.pause()
    else:
        _until(service, request)
    service.pass_driver.move_on()
    return service.clock_record()


def _until(service: Service, request: Time) -> None:
    clock, core = service.clock, service.core
    service.pass_driver.breakpoint = None
    if request.action == "until":
        at = request.at
        if at is not None and service.trace is not None and at < service.trace.offset:
            at += service.trace.offset  # before the log's calendar begins: seconds of the log are meant
        if at is None or at < clock.now():
            raise Refusal("bad-value", "say an instant that is not over yet")
        clock.play(request.speed, at, moment(at))
        return
    if request.action == "until-count":
        if request.count is not None and request.count < 1:
            raise Refusal("bad-value", f"{request.count} is no number of jobs to wait for; say at least 1")
        goal = core.ended_count + (request.count or 1)
        service.pass_driver.breakpoint = lambda: service.core.ended_count >= goal
        clock.play(request.speed, FOREVER, f"{request.count or 1} more jobs have ended")
        return
    job = core.live(request.job)
    key, name = job.key, core.id_of(job.key)
    is_start = request.action == "until-start"

    def is_reached() -> bool:
        now = service.core.find(key)
        is_over = now is None or now.is_over
        return is_over or (is_start and now is not None and now.has_begun)

    service.pass_driver.breakpoint = is_reached
    clock.play(request.speed, FOREVER, f"job {name} has {'started' if is_start else 'ended'}")
