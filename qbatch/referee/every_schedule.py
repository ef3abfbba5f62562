"""The checks of every schedule, whatever its policy: consistent times, no overfilled machine, kept
promises."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

import numpy as np

from qbatch.model.record import BoolArray, Int64Array, Schedule
from qbatch.model.spans import Spans, with_pieces
from qbatch.referee.breach import Breach, job_list, processors, seconds


def check_times(done: Schedule, *, is_killing: bool) -> Iterator[Breach]:
    """Check submit <= start, end = start + run, run <= estimate (unless no job is killed), one row
    per job number.

    For jobs with several execution intervals, the intervals are checked instead of the end
    (:func:`check_pieces`).

    Source: docs/design.md, "The meaning of one instant"; Standard Workload Format 2.2, fields 1 to
    4 and 9.
    """
    for row in _rows(done.start < done.workload.submit):
        text = f"started before its submission at {seconds(done.workload.submit[row])}"
        yield _breach(done, row, "early-start", done.start[row], text)
    for row in _rows((done.end != done.start + done.workload.run) & ~done.is_in_pieces):
        run = done.workload.run[row]
        says = f"its start and its run time of {seconds(run)} say {seconds(done.start[row] + run)}"
        yield _breach(
            done, row, "wrong-end", done.start[row], f"ends at {seconds(done.end[row])}, but {says}"
        )
    if is_killing:
        for row in _rows(done.workload.run > done.workload.estimate):
            text = (
                f"ran for {seconds(done.workload.run[row])}, beyond its estimate of "
                f"{seconds(done.workload.estimate[row])}"
            )
            yield _breach(done, row, "overrun", done.start[row] + done.workload.estimate[row], text)
    order = np.argsort(done.workload.number, kind="stable")
    numbers = done.workload.number[order]
    for row in order[1:][numbers[1:] == numbers[:-1]].tolist():
        yield _breach(
            done, row, "duplicate-job", done.start[row], "has a number that another row has too"
        )


def check_capacity(done: Schedule, host_cpus: Sequence[int] = ()) -> Iterator[Breach]:
    """Check the processors in use at every instant; a job holds the half-open [start, end), one of
    no length holds nothing.

    A job with several execution intervals holds the processors of each; one with unknown intervals
    is left out. Each unbroken spell of overuse is one breach, at its beginning; so is each job
    wider than the machine.  If every job and interval names its host, each host is checked as well.
    """
    for row in _rows(done.workload.procs > done.workload.procs_total):
        text = (
            f"runs on {processors(int(done.workload.procs[row]))}, but the machine has "
            f"{done.workload.procs_total}"
        )
        yield _breach(done, row, "capacity", done.start[row], text)
    # The processors held over time, by the jobs for which that is known.
    rows = np.flatnonzero(~done.is_in_pieces)
    host = np.full(len(done), -1) if done.host is None else done.host
    whole = Spans(rows, done.start[rows], done.end[rows], done.workload.procs[rows], host[rows])
    spans = with_pieces(whole, done.pieces)
    spans = spans.only(
        (spans.end > spans.begin) & (done.workload.procs[spans.job] <= done.workload.procs_total)
    )
    yield from _overuse(done, spans, done.workload.procs_total, "")
    for place, cpus in enumerate(host_cpus):
        yield from _overuse(done, spans.only(spans.host == place), cpus, f" of host {place}")


def _overuse(done: Schedule, spans: Spans, total: int, where: str) -> Iterator[Breach]:
    row_of, begin, end, procs, _ = spans
    instants, places = np.unique(np.concatenate([begin, end]), return_inverse=True)
    used = np.cumsum(
        np.bincount(places, weights=np.concatenate([procs, -procs]), minlength=len(instants))
    )
    over = used > total
    for place in (
        np.flatnonzero(over & ~np.concatenate([[False], over[:-1]])).tolist() if len(over) else []
    ):
        instant = int(instants[place])
        there = np.flatnonzero((begin <= instant) & (end > instant))
        # The last one exceeded the capacity.
        there = there[np.argsort(-begin[there], kind="stable")]
        numbers = tuple(dict.fromkeys(done.workload.number[row_of[there]].tolist()))
        text = f"{int(used[place])} of {processors(total)}{where} in use, by {job_list(numbers)}"
        yield Breach("capacity", instant, numbers, text)


def check_pieces(done: Schedule) -> Iterator[Breach]:
    """Check the execution intervals of each job with several: in sequence, from its start to its
    end, and with its work.

    Work is conserved under suspension and resizing (docs/spec/papers.md 3.7), up to microseconds.
    A replay rounds the last interval up to one, and the run time of a recorded job, its work over
    its processors, is rounded down.  So the intervals contain too much work by less than a
    microsecond of the job's processors.
    """
    if done.pieces is None:
        return
    ordered = done.pieces[
        np.lexsort((done.pieces[:, 2], done.pieces[:, 1], done.pieces[:, 0]))
    ].tolist()
    for row, group in groupby(ordered, key=lambda piece: int(piece[0])):
        pieces = list(group)
        begins, ends = [piece[1] for piece in pieces], [piece[2] for piece in pieces]
        for before, after in pairwise(pieces):
            if after[1] < before[2]:
                text = (
                    f"has an execution interval from {seconds(after[1])}, but the one before "
                    f"lasts until {seconds(before[2])}"
                )
                yield _breach(done, row, "piece-times", after[1], text)
        if begins[0] != done.start[row] or max(ends) != done.end[row]:
            inside = f"from {seconds(begins[0])} to {seconds(max(ends))}"
            text = (
                f"ran from {seconds(done.start[row])} to {seconds(done.end[row])}, but its "
                f"execution intervals {inside}"
            )
            yield _breach(done, row, "piece-times", done.start[row], text)
        wanted = int(done.workload.run[row]) * int(done.workload.procs[row])
        work = sum((end - begin) * procs for _, begin, end, procs, _, is_kept in pieces if is_kept)
        if not wanted <= work < wanted + int(done.workload.procs[row]):
            text = (
                f"did {_work(work)} of work in its execution intervals; its processors and run "
                f"time make {_work(wanted)}"
            )
            yield _breach(done, row, "piece-work", done.end[row], text)


def _work(microseconds: int) -> str:
    return f"{seconds(microseconds).removesuffix(' s')} processor-seconds"


def taken_back(done: Schedule) -> Int64Array:
    """Return how many promises to each job the policy withdrew: the broken ones of its row, without
    one before its start.

    A job gets another promised start then, later or not, or none.
    """
    if done.broken is None:
        return np.zeros(len(done), np.int64)
    return np.maximum(done.broken - ((done.promise >= 0) & (done.start > done.promise)), 0)


def check_promises(done: Schedule) -> Iterator[Breach]:
    """Check that no job started after its promise in the rows, and that promises that were not
    withdrawn only moved earlier.

    Source: Feitelson and Weil 1998, section 2.1; docs/design.md, "The meaning of one instant".
    """
    for row in _rows((done.promise >= 0) & (done.start > done.promise)):
        text = (
            f"was promised to start at {seconds(done.promise[row])}, and started at "
            f"{seconds(done.start[row])}"
        )
        yield _breach(done, row, "promise-broken", done.promise[row], text)
    is_moved = (done.promise >= 0) & (done.first_promise >= 0) & (done.promise > done.first_promise)
    for row in _rows(is_moved & (taken_back(done) == 0)):
        text = (
            f"was promised {seconds(done.first_promise[row])} at first and "
            f"{seconds(done.promise[row])} at last"
        )
        yield _breach(done, row, "promise-moved", done.first_promise[row], text)


def check_deadlines(done: Schedule) -> Iterator[Breach]:
    """Check that every job that ran ended by its deadline, unless the policy withdrew its promise
    before.

    Source: Islam et al. 2003, section 3: accepted deadlines are kept; docs/spec/papers.md 2.2 and
    rule 11 of 2.8.
    """
    deadline = done.workload.deadline
    for row in _rows((deadline >= 0) & done.ran & (done.end > deadline) & (taken_back(done) == 0)):
        text = (
            f"should have ended by {seconds(deadline[row])}, and ended at {seconds(done.end[row])}"
        )
        yield _breach(done, row, "deadline-missed", deadline[row], text)


def _rows(mask: BoolArray) -> list[int]:
    return np.flatnonzero(mask).tolist()


def _breach(done: Schedule, row: int, code: str, instant: int, text: str) -> Breach:
    number = int(done.workload.number[row])
    return Breach(code, int(instant), (number,), f"job {number} {text}")
