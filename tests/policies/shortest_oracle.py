"""EASY that backfills the shortest job first, the slow and obvious way: one pass for
:mod:`tests.policies.prediction_oracle`.

Tsafrir, Etsion and Feitelson, IEEE TPDS 2007 (EASY++): the jobs start in order of submission while
they fit.  The first that does not fit, the head, is never delayed.  Behind it the other jobs are
tried once, the one with the shortest expected run time first, of equal ones the one that was
submitted first.  What is expected is the prediction, without one the estimate.
"""

from __future__ import annotations

from tests.policies.prediction_oracle import Task


def shortest_pass(waiting: list[Task], running: list[Task], procs: int, now: int) -> None:
    """Start what may start at one instant."""

    def free_at(instant: int) -> int:
        """Return what is free at an instant, as expected, if no other job starts."""
        return procs - sum(task.procs for task in running if task.start + task.prediction > instant)

    def begin(task: Task) -> None:
        waiting.remove(task)
        task.start, task.end = now, now + task.run
        running.append(task)

    def unused() -> int:
        return procs - sum(task.procs for task in running)

    while waiting and waiting[0].procs <= unused():
        begin(waiting[0])
    if not waiting:
        return
    head, rest = waiting[0], waiting[1:]
    expected = sorted({now, *(task.start + task.prediction for task in running)})
    shadow = next(instant for instant in expected if free_at(instant) >= head.procs)
    for task in sorted(rest, key=lambda task: task.prediction):
        if task.procs > unused():
            continue
        is_short = now + task.prediction <= shadow
        if is_short or free_at(shadow) - task.procs >= head.procs:
            begin(task)
