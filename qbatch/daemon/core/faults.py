"""Faults on demand, so that a tool's handling of errors can be tested."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from qbatch.daemon.executors.attempt import LOST

KINDS = ("submit-refused", "status-slow", "status-failed", "job-exit", "job-lost")
"""What can be made to go wrong; hosts that die are ``host-control`` requests."""


class FaultState(msgspec.Struct):
    """One fault: how often it strikes still (-1: until it is cleared), and which jobs (a pattern for their names)."""

    kind: str
    count: int
    seconds: float
    status: int
    pattern: str
    message: str


def take_fault(faults: Iterable[FaultState], kind: str, name: str = "") -> FaultState | None:
    """Return the fault that strikes now, and count it."""
    for fault in faults:
        if fault.kind == kind and fault.count != 0 and re.search(fault.pattern, name):
            if fault.count > 0:
                fault.count -= 1
            return fault
    return None


def status_of(faults: list[FaultState], name: str, status: int) -> int:
    """Return the status with which a job that ended by itself is said to have ended: its own, unless a fault strikes."""
    if not faults:
        return status
    if take_fault(faults, "job-lost", name) is not None:
        return LOST
    fault = take_fault(faults, "job-exit", name)
    return status if fault is None else fault.status
