"""The check of what is in use on each host and of the whole server at every instant, and of hosts
that a job has alone.

A host is swept once, over its starts and ends in order of time: at one instant ends come first,
because a job holds the half-open interval from its start to its end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from qbatch.model.machine import memory_text
from qbatch.model.record import BoolArray, Int64Array, Schedule
from qbatch.referee.breach import Breach, job_list
from qbatch.referee.site import MEMORY


class Held(NamedTuple):
    """What is held on hosts, a line for each part of a job and interval: the row of the schedule, the
    host, begin, end (microseconds) and the amount."""

    job: Int64Array
    host: Int64Array
    begin: Int64Array
    end: Int64Array
    amount: Int64Array

    def only(self, which: BoolArray) -> Held:
        """Return the lines of a mask."""
        return Held(*(column[which] for column in self))


class Spells(NamedTuple):
    """The beginnings of times of too much use: the host, the instant, and what was in use."""

    host: Int64Array
    instant: Int64Array
    used: Int64Array


def overuse(held: Held, there: Int64Array) -> Spells:
    """Return where and when more than ``there``, by host, began to be in use."""
    held = held.only((held.end > held.begin) & (held.amount > 0))
    host, instant, used = _in_use(held, held.amount)
    return _spells(host, instant, used, used > there[host])


def shared_exclusively(held: Held, is_exclusive: BoolArray) -> Spells:
    """Return where and when several jobs began to be on a host that one of them has alone; ``used``
    is their number.

    ``is_exclusive``: by line of ``held``.
    """
    lasts = held.end > held.begin
    held, is_exclusive = held.only(lasts), is_exclusive[lasts]
    host, instant, jobs = _in_use(held, np.ones(len(held.job), np.int64))
    _, _, alone = _in_use(held, is_exclusive.astype(np.int64))
    return _spells(host, instant, jobs, (jobs > 1) & (alone > 0))


def _in_use(held: Held, amount: Int64Array) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Return hosts and instants in order, and what is in use from each on."""
    host = np.concatenate([held.host, held.host])
    instant = np.concatenate([held.begin, held.end])
    change = np.concatenate([amount, -amount])
    order = np.lexsort((instant, host))
    host, instant = host[order], instant[order]
    # Every host ends with nothing in use: one sum serves them all.
    used = np.cumsum(change[order])
    is_last = np.ones(len(host), np.bool_)
    is_last[:-1] = (host[1:] != host[:-1]) | (instant[1:] != instant[:-1])
    return host[is_last], instant[is_last], used[is_last]


def _spells(host: Int64Array, instant: Int64Array, used: Int64Array, is_over: BoolArray) -> Spells:
    begins = is_over.copy()
    begins[1:] &= ~(is_over[:-1] & (host[1:] == host[:-1]))
    return Spells(host[begins], instant[begins], used[begins])


class HeldByHost:
    """Finds the jobs on a host at an instant."""

    def __init__(self, done: Schedule, held: Held) -> None:
        self._numbers = done.workload.number
        order = np.argsort(held.host, kind="stable")
        self._held = Held(*(column[order] for column in held))

    def jobs(self, host: int, instant: int) -> tuple[int, ...]:
        """Return the numbers of the jobs there, the one that started last first."""
        first, last = np.searchsorted(self._held.host, [host, host + 1])
        begin, end = self._held.begin[first:last], self._held.end[first:last]
        there = np.flatnonzero((begin <= instant) & (end > instant))
        there = there[np.argsort(-begin[there], kind="stable")]
        return tuple(dict.fromkeys(self._numbers[self._held.job[first:last][there]].tolist()))


def check_amounts(
    done: Schedule, held: Held, name: str, there: Int64Array, names: list[str]
) -> Iterator[Breach]:
    """Check one resource on each host; ``there``: what each has; ``names``: of the hosts."""
    spells = overuse(held, there)
    known = HeldByHost(done, held.only(held.amount > 0)) if len(spells.host) else None
    for host, instant, used in zip(*(column.tolist() for column in spells), strict=True):
        assert known is not None
        jobs = known.jobs(host, instant)
        text = (
            f"{_amount(name, used)} of {_amount(name, int(there[host]))} {name} of host "
            f"{names[host]} in use, by {job_list(jobs)}"
        )
        yield Breach("host-overfull", instant, jobs, text)


def check_server(done: Schedule, held: Held, name: str, total: int) -> Iterator[Breach]:
    """Check an amount of the whole server; the host of every line is 0."""
    spells = overuse(held, np.array([total], np.int64))
    known = HeldByHost(done, held) if len(spells.host) else None
    for _, instant, used in zip(*(column.tolist() for column in spells), strict=True):
        assert known is not None
        jobs = known.jobs(0, instant)
        text = f"{used} of {total} {name} of the server in use, by {job_list(jobs)}"
        yield Breach("server-overfull", instant, jobs, text)


def check_exclusive(
    done: Schedule, held: Held, is_exclusive: BoolArray, names: list[str]
) -> Iterator[Breach]:
    """Check that no job is on a host that another has alone; ``is_exclusive``: by row of the
    schedule."""
    spells = shared_exclusively(held, is_exclusive[held.job])
    known = HeldByHost(done, held) if len(spells.host) else None
    alone = set(done.workload.number[is_exclusive].tolist())
    for host, instant, _ in zip(*(column.tolist() for column in spells), strict=True):
        assert known is not None
        jobs = known.jobs(host, instant)
        text = (
            f"{job_list(jobs)} are on host {names[host]}, which "
            f"{job_list([number for number in jobs if number in alone])} should have alone"
        )
        yield Breach("not-alone", instant, jobs, text)


def _amount(name: str, amount: int) -> str:
    return memory_text(amount) if name == MEMORY else str(amount)
