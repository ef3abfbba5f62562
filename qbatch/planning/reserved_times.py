"""Whether a job fits a time of the reservation that it names."""

from __future__ import annotations

from datetime import timedelta

from qbatch.model.job import Job
from qbatch.model.machine import Machine
from qbatch.planning.placement import place_chunks
from qbatch.planning.windows import Windows, blocked_hosts, number_of


def first_start(windows: Windows, machine: Machine, job: Job, now: int) -> int | None:
    """Return the first instant from ``now`` at which a job of a reservation that is not flexible
    could start if no other job ran.

    None: its estimate fits none of the windows, because other reservations have the hosts then. A
    job may run past the end of its window.
    """
    number = number_of(machine, job)
    begin, over, other = windows.table
    own = (other == number) & (over > now)
    instants: set[int] = {max(at, now) for at in begin[own].tolist()}
    # A host that another reservation has is free for the job when that one ends.
    instants.update(
        at
        for at in over[other != number].tolist()
        if at > now and ((begin[own] < at) & (at < over[own])).any()
    )
    for at in sorted(instants):
        blocked = blocked_hosts(windows, machine, job, at)
        there = [
            [0 if host in blocked else amount for host, amount in enumerate(row)]
            for row in machine.there
        ]
        if place_chunks(machine, there, job):
            return at
    return None


def never_text(job: Job) -> str:
    """Return that a job fits no time of its reservation, in words."""
    estimate = timedelta(microseconds=job.estimate)
    return (
        f"it can never run: its {estimate} fit into no known time of its reservation "
        f"{job.reservation}, because other reservations have the hosts then; ask for less time"
    )
