"""Which user waits for which job in a log, the slow and obvious way, written from rule 14 of
docs/spec/papers.md 5.5 alone.

Every job looks at every other.  Times are integer microseconds.  :func:`lived` is FCFS on such a
log, from that rule and "The meaning of one instant" of docs/design.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

UNKNOWN = -1
PATIENCE = 20 * 60 * 1_000_000
"""A user who comes back later than this did not wait for the earlier job."""


class Logged(NamedTuple):
    """What rule 14 reads of one line of a log; -1 where the log does not say."""

    number: int
    submit: int
    wait: int
    run: int
    user: int
    predecessor: int
    think: int


def predecessors(jobs: Sequence[Logged]) -> list[tuple[int, int]]:
    """Return the position of each job's predecessor, or -1, and its think time."""
    if any(job.predecessor != UNKNOWN for job in jobs):
        return [given(jobs, job) for job in jobs]
    return [derived(jobs, position) for position in range(len(jobs))]


def given(jobs: Sequence[Logged], job: Logged) -> tuple[int, int]:
    """Return what fields 17 and 18 say; a number that no other job bears is none."""
    for position, other in enumerate(jobs):
        if other.number == job.predecessor and other.number != job.number:
            return position, max(job.think, 0)
    return UNKNOWN, 0


def derived(jobs: Sequence[Logged], position: int) -> tuple[int, int]:
    """Return the user's latest earlier job that ended by this submission, if soon enough before
    it."""
    job = jobs[position]
    candidates = [
        other
        for other in range(len(jobs))
        if job.user != UNKNOWN
        and jobs[other].user == job.user
        and order(jobs, other) < order(jobs, position)
        and ends_by(jobs[other], job.submit)
    ]
    if not candidates:
        return UNKNOWN, 0
    latest = max(candidates, key=lambda other: (logged_end(jobs[other]), order(jobs, other)))
    think = job.submit - logged_end(jobs[latest])
    return (latest, think) if think <= PATIENCE else (UNKNOWN, 0)


def order(jobs: Sequence[Logged], position: int) -> tuple[int, int, int]:
    """Return what makes a job earlier or later: its submission, its number, its line."""
    return jobs[position].submit, jobs[position].number, position


def ends_by(job: Logged, instant: int) -> bool:
    """Return whether the log knows that the job ended by then."""
    return job.wait != UNKNOWN and job.run != UNKNOWN and logged_end(job) <= instant


def logged_end(job: Logged) -> int:
    """Return when the job ended, by the log."""
    return job.submit + job.wait + job.run


def feedback_submissions(jobs: Sequence[Logged], ended: Sequence[int | None]) -> list[int]:
    """Return when each job must have been submitted, of a schedule: its ends, or rejections, by
    position.

    None stands for a job that was skipped, which counts as ended at its logged submission.
    """
    submissions = []
    for job, (predecessor, think) in zip(jobs, predecessors(jobs), strict=True):
        if predecessor == UNKNOWN:
            submissions.append(job.submit)
            continue
        end = ended[predecessor]
        submissions.append((jobs[predecessor].submit if end is None else end) + think)
    return submissions


class Lived(NamedTuple):
    """What became of one job: when it was submitted, started and ended."""

    submit: int
    start: int
    end: int


def lived(jobs: Sequence[Logged], procs: Sequence[int], machine: int) -> list[Lived]:
    """Return what becomes of jobs that all fit the machine, in order of submission, start and end,
    by position.

    One round an instant: all ends, then all arrivals in order of job number, then FCFS.  A job of
    no length ends in another round of its instant, and what follows it arrives there.
    """
    links = predecessors(jobs)
    coming = {place: job.submit for place, job in enumerate(jobs) if links[place][0] == UNKNOWN}
    submitted: dict[int, int] = {}
    started: dict[int, int] = {}
    ended: dict[int, int] = {}
    while len(ended) < len(jobs):
        ends = {place: at + jobs[place].run for place, at in started.items() if place not in ended}
        now = min([*coming.values(), *ends.values()])
        for over in [place for place, end in ends.items() if end == now]:
            ended[over] = now
            coming |= {
                place: now + think for place, (before, think) in enumerate(links) if before == over
            }
        for place in sorted(
            (place for place, at in coming.items() if at == now),
            key=lambda place: jobs[place].number,
        ):
            submitted[place] = now
            del coming[place]
        for place in submitted:  # in order of arrival
            free = machine - sum(procs[other] for other in started if other not in ended)
            if place not in started and procs[place] > free:
                break
            started.setdefault(place, now)
    return [Lived(submitted[place], started[place], ended[place]) for place in range(len(jobs))]
