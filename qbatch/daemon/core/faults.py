"""Faults on demand, to test how a tool handles errors."""

from __future__ import annotations

import re

import msgspec

from qbatch.daemon.executors.attempt import LOST

KINDS = ("submit-refused", "status-slow", "status-failed", "job-exit", "job-lost")
"""The kinds of faults; hosts that die are ``host-control`` requests."""


class FaultState(msgspec.Struct):
    """One fault: how often it still strikes (-1: until it is cleared), and a pattern for the names
    of its jobs."""

    kind: str
    count: int
    seconds: float
    status: int
    pattern: str
    message: str


def take_fault(faults: list[FaultState], kind: str, name: str = "") -> FaultState | None:
    """Return the fault that strikes now, or None, and count it."""
    for fault in faults:
        if fault.kind == kind and fault.count != 0 and re.search(fault.pattern, name):
            if fault.count > 0:
                fault.count -= 1
            return fault
    return None


def status_of(faults: list[FaultState], name: str, status: int) -> int:
    """Return the exit status that is recorded for a job that ended by itself: its own, unless a
    fault strikes."""
    if take_fault(faults, "job-lost", name) is not None:
        return LOST
    fault = take_fault(faults, "job-exit", name)
    return status if fault is None else fault.status
