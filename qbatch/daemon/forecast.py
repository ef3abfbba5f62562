"""When each waiting job is expected to start: the policy run forward from the present state, off the event loop.

The running jobs end by their estimates, the waiting ones run as long as they ask, nothing else is submitted.  The run is
made by the engine itself, loaded from a dump in a child process, so every policy is forecast by its own code.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

from qbatch.engine.engine import Engine
from qbatch.engine.round import Round
from qbatch.model.actions import Resume, Start, Suspend
from qbatch.model.events import Event, Finished, Woken
from qbatch.model.machine import Machine
from qbatch.planning.policy import Policy
from qbatch.planning.view import OVERDUE
from qbatch.policies.registry import load_policy

MOST_ROUNDS = 2_000_000
"""Rounds after which a forecast stops; who has no start by then has none."""


class Expected(NamedTuple):
    """When a job is expected to start and to end."""

    start: int
    end: int


def run_forward(
    machine: Machine, policy: str, dumped: bytes, now: int, extra: bytes = b""
) -> list[tuple[int, int, int]]:
    """Return (row, start, end) of each row that starts when the engine goes on by itself; in a process of its own."""
    return forward(Engine.load(machine, load_policy(policy), dumped), load_policy(policy), now)


def forward(engine: Engine, policy: Policy, now: int) -> list[tuple[int, int, int]]:
    """Drive an engine by estimates until nobody waits; see ``run_forward``."""
    ends: list[tuple[int, int]] = []
    view = engine.view()
    for row, run in view.running.items():
        heapq.heappush(ends, (run.expected_end if run.expected_end > now else now + OVERDUE, row))
    estimates = view.columns.estimate
    found: dict[int, tuple[int, int]] = {}
    rounds = 0
    instant = now
    events: list[Event] = [Woken()]
    while rounds < MOST_ROUNDS:
        done = engine.handle(instant, events)
        rounds += 1
        _note(done, found, ends, estimates)
        timer = engine.next_timer()
        if not len(engine.view().queue):
            break
        candidates = ([ends[0][0]] if ends else []) + ([timer] if timer is not None else [])
        if not candidates:
            break
        instant = max(min(candidates), instant)
        events = []
        while ends and ends[0][0] <= instant:
            events.append(Finished(heapq.heappop(ends)[1]))
        events = events or [Woken()]
    return [(row, start, end) for row, (start, end) in found.items()]


def _note(done: Round, found: dict[int, tuple[int, int]], ends: list[tuple[int, int]], estimates: object) -> None:
    for action in done.actions:
        if isinstance(action, Start):
            end = done.at + int(estimates[action.row])  # type: ignore[index]
            found[action.row] = (done.at, end)
            heapq.heappush(ends, (end, action.row))
        elif isinstance(action, Suspend | Resume):
            # Time slices are followed by their own timers; the end stays what it was by then.
            continue
