"""Equal shares as older snapshots remember them: an object for each job and each host, in place of arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from qbatch.planning.kernels import equal_shares as shares
from qbatch.planning.kernels.layout import SharesState
from qbatch.planning.kernels.live import live_module
from qbatch.planning.kernels.profile import FOREVER
from qbatch.planning.view import View

_kernels = live_module(shares)


@dataclass
class Share:
    """One job that had a place; the fields are columns of :mod:`qbatch.planning.kernels.equal_shares` (``asked``: requested)."""

    host: int
    asked: int
    procs: int
    share: int
    owed: int
    executed: int
    is_guest: bool
    is_squeezing: bool


@dataclass
class Division:
    """One host; what can be found from its jobs is left out."""

    at: int
    last: int | None
    is_due: bool
    is_stale: bool
    look_at: int | None


class EarlierShares(Protocol):
    """What was remembered: who had a place, and who of them had not begun; of those that waited, what they would have got and
    would get; the instant of the last pass; which hosts were closed."""

    placed: dict[int, Share]
    hosts: list[Division]
    not_begun: list[int]
    missed: dict[int, int]
    missing: dict[int, int]
    at: int
    closed: frozenset[int]


def state_of(earlier: EarlierShares, view: View, rules: tuple[int, int, int]) -> SharesState:
    """Return the books that hold the same, as they were before the round of a view."""
    count = len(earlier.placed) + len(earlier.missed)
    state = shares.new_state(view.machine, rules, max(64, count))
    state.hosts[:-1, shares.AT] = [each.at for each in earlier.hosts]
    state.hosts[-1, shares.AT] = earlier.at
    held = {row: run.allocation[0].memory for row, run in (*view.running.items(), *view.suspended.items())}
    held |= {row: view.jobs[row].memory for row in earlier.not_begun}
    for row, each in earlier.placed.items():
        # What those held that end in this round is free by now.
        job = state.jobs[_kernels.come(row, each.asked, held.get(row, 0), 0, state)]
        job[shares.SHARE], job[shares.OWED], job[shares.EXECUTED] = each.share, each.owed, each.executed
        guest = (shares.SQUEEZING if each.is_squeezing else shares.ON_IDLE) if each.is_guest else shares.NO_GUEST
        _kernels.enter(earlier.hosts[each.host].at, _kernels.slot_of(row, state), each.host, each.procs, guest, state)
        job[shares.HAD] = each.procs
    for row, missed in earlier.missed.items():
        asked = view.jobs[row]
        job = state.jobs[_kernels.come(row, asked.procs, asked.memory, 0, state)]
        job[shares.OWED], job[shares.SHARE] = missed, earlier.missing[row]
    for host, division in enumerate(earlier.hosts):
        at = state.hosts[host]
        at[shares.IS_CLOSED], at[shares.IS_TOUCHED] = host in earlier.closed, 0
        at[shares.IS_DUE], at[shares.IS_STALE] = division.is_due, division.is_stale
        at[shares.LAST] = shares.NEVER if division.last is None else division.last
        at[shares.LOOK_AT] = FOREVER if division.look_at is None else division.look_at
    return state
